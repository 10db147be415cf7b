/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep kernels for x86 with AVX2, without FMA, which must not be used (see sweep.h). Only
 * sweep.c uses the table, and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <math.h>
#include <string.h>

#include "engine/sweep.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#endif
#define SWEEP_TABLE ctn__sweep_avx2
#include "engine/sweep_body.h"
#endif
