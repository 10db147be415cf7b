/* SPDX-License-Identifier: Apache-2.0
 *
 * A module that applies an op of one input, for sequential models.
 */
#include "nn/nn.h"

typedef struct {
    ctn_tensor *(*op)(const char *at, ctn_tensor *x);
} activation;

static ctn_tensor *activation_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const activation *a = self;
    return a->op(m->at, x);
}

ctn_status ctn_activation_new(ctn_module **out, ctn_context *ctx,
                              ctn_tensor *(*op)(const char *at, ctn_tensor *x))
{
    if (out) *out = NULL;
    if (!out || !op) return ctn_fail(CTN_EARG, "activation_new: NULL argument");
    activation *a = ctn__malloc(sizeof *a);
    if (a) a->op = op;
    return ctn__module_own(out, ctx, activation_forward, a, sizeof *a, 0);
}
