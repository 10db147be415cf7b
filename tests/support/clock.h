/* SPDX-License-Identifier: Apache-2.0
 *
 * A clock that a test can stop, so that what depends on time does not depend on how busy the
 * machine is. It replaces the library's clock (base/clock.c). Include this once in a program.
 */
#ifndef CTN_TESTS_CLOCK_H
#define CTN_TESTS_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "base/base.h"

static _Atomic uint64_t clock_stopped; /* 0: it runs */

uint64_t ctn__now_ns(void)
{
    const uint64_t stopped = clock_stopped;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return stopped ? stopped : (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* From now on, time passes only in clock_pass. Other threads may call that, too. */
static inline void clock_stop(void)
{
    clock_stopped = ctn__now_ns();
}

static inline void clock_pass(int ms)
{
    clock_stopped += (uint64_t)ms * 1000000u;
}

static inline void clock_run(void)
{
    clock_stopped = 0;
}

#endif
