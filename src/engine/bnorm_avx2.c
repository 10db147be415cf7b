/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch normalisation kernels for x86 with AVX2, without FMA, which must not be used (see
 * bnorm.h). Only bnorm.c uses the table, and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <string.h>

#include "engine/bnorm.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#endif
#define BNORM_TABLE ctn__bnorm_avx2
#include "engine/bnorm_body.h"
#endif
