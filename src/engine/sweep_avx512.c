/* SPDX-License-Identifier: Apache-2.0
 *
 * The sweep kernels for x86 with AVX-512, at full width. The compiler's default of 256 bits keeps
 * the clock high in mixed code, but these loops only wait for memory. Only sweep.c uses the table,
 * and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <math.h>
#include <string.h>

#include "engine/sweep.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")
#endif
#define SWEEP_TABLE ctn__sweep_avx512
#include "engine/sweep_body.h"
#endif
