/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of resampling for x86 with AVX2. FMA is left out: it may not be used (resample_body.h).
 * Only resample.c uses the table, and only after asking the processor. Empty elsewhere.
 */
/* System headers stand before the pragma: their inline functions keep the common target. */
#include <string.h>

#include "data/image.h"

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2")
#endif
#define RESAMPLE_TABLE ctn__resample_avx2
#include "data/resample_body.h"
#endif
