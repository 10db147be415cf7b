/* SPDX-License-Identifier: Apache-2.0
 *
 * The module of a linear-chain conditional random field: one parameter, cost (K,K). Called with
 * labels it gives the loss, without them the best labels.
 */
#include "nn/nn.h"

typedef struct {
    ctn_var *cost;
} crf;

static ctn_tensors crf_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const crf *c = self;
    const char *at = m->at;
    ctn_tensors out = {0};
    if (in.n > 3) {
        ctn_fail(CTN_EARG, "got %d inputs, expected x, labels, lengths", in.n);
        return out;
    }
    ctn_tensor *cost = ctn_use_at(at, c->cost), *labels = in.t[1], *lengths = in.t[2];
    if (labels) {
        out.t[0] =
            ctn_crf_loss_at(at, cost, in.t[0], labels, CTN_OPT(ctn_crf_opt, .lengths = lengths));
        out.n = out.t[0] != NULL;
    } else if (ctn_crf_decode_at(at, cost, in.t[0], lengths, &out.t[0], &out.t[1]) >= 0) {
        out.n = 2;
    }
    return out;
}

ctn_status ctn_crf_new(ctn_module **m, ctn_context *ctx, int64_t K, const ctn_init *init)
{
    ctn_module *made = NULL;
    if (!m) return ctn_fail(CTN_EARG, "crf_new: NULL argument");
    *m = NULL;
    if (K < 1)
        return ctn_fail(CTN_EARG, "crf_new: got %lld labels, expected at least 1", (long long)K);
    crf *c = ctn__calloc(1, sizeof *c);
    if (!c) return CTN_ENOMEM;
    CTN_TRY(ctn__module_own(&made, ctx, NULL, c, sizeof *c, CTN__ALL_REFS(crf)));
    made->forward_multi = crf_forward;
    const ctn_status st = ctn_module_param(&c->cost, made, "cost", ctn_context_float_type(ctx),
                                           CTN_SHAPE(K, K), init);
    if (st < 0) ctn_module_free(made);
    else *m = made;
    return st;
}
