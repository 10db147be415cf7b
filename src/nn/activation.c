/* SPDX-License-Identifier: Apache-2.0
 *
 * An op of one input as a module, for sequential models.
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
    if (!a) return CTN_ENOMEM;
    a->op = op;
    ctn_status st = ctn_module_new(out, ctx, activation_forward, a, ctn__free);
    if (st < 0) ctn__free(a);
    return st;
}
