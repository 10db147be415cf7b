/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch normalisation kernels for x86 with AVX-512, at full width like sweep_avx512.c. Only
 * bnorm.c uses the table, and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <string.h>

#include "engine/bnorm.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw,prefer-vector-width=512")
#endif
#define BNORM_TABLE ctn__bnorm_avx512
#include "engine/bnorm_body.h"
#endif
