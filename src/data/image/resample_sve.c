/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of resampling for AArch64 with SVE, for vectors of any length. Only resample.c uses
 * the table, after checking the CPU. Empty on other architectures.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <string.h>

#include "data/image/image.h"

#if defined(__aarch64__)
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("+sve")
#endif
#define RESAMPLE_TABLE ctn__resample_sve
#include "data/image/resample_body.h"
#endif
