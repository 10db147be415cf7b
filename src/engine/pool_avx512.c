/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool kernels for x86 with AVX-512, at full width. Only pool.c uses the table, and only after
 * checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <math.h>
#include <string.h>

#include "engine/pool.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define POOL_TABLE ctn__pool_avx512
#include "engine/pool_body.h"
#endif
