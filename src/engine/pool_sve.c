/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool kernels for AArch64 with SVE, for vectors of any length. Only
 * pool.c uses the table, and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <math.h>
#include <string.h>

#include "engine/pool.h"

#if defined(__aarch64__) && defined(__GNUC__)
#if !defined(__clang__)
#pragma GCC target("+sve")
#endif
#define POOL_TABLE ctn__pool_sve
#include "engine/pool_body.h"
#endif
