/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of resampling for x86 with AVX2. FMA is not enabled, because it would change results
 * (resample_body.h). Only resample.c uses the table, after checking the CPU. Empty on other
 * architectures.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <string.h>

#include "data/image/image.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#endif
#define RESAMPLE_TABLE ctn__resample_avx2
#include "data/image/resample_body.h"
#endif
