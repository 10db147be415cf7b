/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool kernels for x86 with AVX2, without FMA, so that results equal those of the portable
 * kernels. Only pool.c uses the table, and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <math.h>
#include <string.h>

#include "engine/pool.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#endif
#define POOL_TABLE ctn__pool_avx2
#include "engine/pool_body.h"
#endif
