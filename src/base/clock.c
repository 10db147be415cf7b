/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock of traces and measurements: monotonic, in nanoseconds; not the time of day.
 */
#include "base/base.h"

#include <time.h>

uint64_t ctn__now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
