/* SPDX-License-Identifier: Apache-2.0
 *
 * The optimizer sweep kernels for AArch64 with SVE, for vectors of any length. Only
 * sweep.c uses the table, and only after checking the CPU. Empty elsewhere.
 */
/* System headers come before the pragma, so that their inline functions keep the common target. */
#include <math.h>
#include <string.h>

#include "engine/sweep.h"

#if defined(__aarch64__) && defined(__GNUC__)
#if !defined(__clang__)
#pragma GCC target("+sve")
#endif
#define SWEEP_TABLE ctn__sweep_sve
#include "engine/sweep_body.h"
#endif
