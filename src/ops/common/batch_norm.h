/* SPDX-License-Identifier: Apache-2.0
 *
 * What batch_norm and batch_renorm share (batch_norm.c).
 */
#ifndef CTN_OPS_COMMON_BATCH_NORM_H
#define CTN_OPS_COMMON_BATCH_NORM_H

#include "ops/ops.h"

/* Checks x, and replaces scale and shift by ones and zeros if both are NULL. False: an error. */
bool ctn__batch_norm_args(const char *at, const char *who, ctn_tensor *x, ctn_tensor **scale,
                          ctn_tensor **shift);

/* The outputs of batch_norm in training that another op may want, with (C) elements but for y. */
typedef struct {
    ctn_tensor *y;
    ctn_tensor *mean, *rstd;        /* of this batch; rstd = 1 / sqrt(variance + eps) */
    ctn_tensor *new_mean, *new_var; /* running statistics, to be assigned to mean and var */
} ctn__batch_norm_out;
/* Normalises by this batch. False after an error. */
bool ctn__batch_norm_train(const char *at, ctn_tensor *x, ctn_tensor *scale, ctn_tensor *shift,
                           ctn_var *mean, ctn_var *var, double eps, double momentum,
                           ctn__batch_norm_out *out);

#endif
