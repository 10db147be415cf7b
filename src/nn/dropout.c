/* SPDX-License-Identifier: Apache-2.0
 *
 * The dropout module, for sequential models. It has no parameters.
 */
#include <catena/ops.h>

#include "nn/nn.h"

typedef struct {
    double rate;
} dropout;

static ctn_tensor *dropout_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const dropout *d = self;
    return ctn_dropout_at(m->at, x, d->rate);
}

ctn_status ctn_dropout_new(ctn_module **m, ctn_context *ctx, double rate)
{
    if (!m) return ctn_fail(CTN_EARG, "dropout_new: NULL argument");
    *m = NULL;
    if (!(rate >= 0 && rate < 1))
        return ctn_fail(CTN_EARG, "dropout_new: rate is %g, expected 0 or more and less than 1",
                        rate);
    dropout *d = ctn__malloc(sizeof *d);
    if (d) d->rate = rate;
    return ctn__module_own(m, ctx, dropout_forward, d, sizeof *d, 0);
}
