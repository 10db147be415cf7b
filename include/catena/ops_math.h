/* SPDX-License-Identifier: Apache-2.0
 *
 * Element-wise arithmetic, activations, comparisons and casts. Part of catena/ops.h, which says what all
 * ops have in common. Operands with two inputs broadcast; both have one float type unless said otherwise.
 */
#ifndef CATENA_OPS_MATH_H
#define CATENA_OPS_MATH_H

#include <catena/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* y = a b. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_mul_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_mul(...) ctn_mul_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
