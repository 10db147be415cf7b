/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch normalisation kernels for AArch64 with SVE, for vectors of any length. Only
 * bnorm.c uses the table, and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <string.h>

#include "engine/bnorm.h"

#if defined(__aarch64__) && defined(__GNUC__)
#if !defined(__clang__)
#pragma GCC target("+sve")
#endif
#define BNORM_TABLE ctn__bnorm_sve
#include "engine/bnorm_body.h"
#endif
