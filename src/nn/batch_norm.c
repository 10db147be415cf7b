/* SPDX-License-Identifier: Apache-2.0
 *
 * The batch normalisation module: parameters weight and bias (C), states running_mean and
 * running_var (C) and num_batches_tracked, with PyTorch's names and initial values. The count
 * exists only so that weights can be exchanged with PyTorch; no result depends on it. It is
 * incremented by every call in training, at the call and not at the step.
 */
#include "nn/nn.h"

typedef struct {
    ctn_var *weight, *bias; /* both NULL: none */
    ctn_var *mean, *var, *batches;
    ctn_batch_norm_opt how;
    ctn__batch_norm_fn train; /* used in training; NULL: the op */
    void *user;
} batch_norm;

static ctn_tensor *batch_norm_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const batch_norm *b = self;
    const char *at = m->at;
    ctn_tensor *scale = NULL, *shift = NULL;
    if (b->weight && !((scale = ctn_use_at(at, b->weight)) && (shift = ctn_use_at(at, b->bias))))
        return NULL;
    const bool training = ctn_context_training(m->ctx) != 0;
    ctn_tensor *y = training && b->train
                        ? b->train(b->user, at, x, scale, shift, b->mean, b->var, &b->how)
                        : ctn_batch_norm_at(at, x, scale, shift, b->mean, b->var, &b->how);
    if (y && training) ++*(int64_t *)b->batches->data;
    return y;
}

void ctn__batch_norm_set(ctn_module *m, ctn__batch_norm_fn fn, void *user)
{
    if (m->forward != batch_norm_forward) return;
    batch_norm *b = m->self;
    b->train = fn;
    b->user = user;
}

static ctn_status add_vars(ctn_module *m, batch_norm *b, const ctn_batch_norm_module_opt *o,
                           int64_t channels)
{
    const ctn_init *ones = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT, .value = 1);
    if (!o->no_affine) {
        CTN_TRY(ctn_module_param(&b->weight, m, "weight", ctn_context_float_type(m->ctx),
                                 CTN_SHAPE(channels), o->weight ? o->weight : ones));
        CTN_TRY(ctn_module_param(&b->bias, m, "bias", ctn_context_float_type(m->ctx),
                                 CTN_SHAPE(channels), o->bias));
    }
    CTN_TRY(ctn_module_state(&b->mean, m, "running_mean", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(channels), NULL));
    CTN_TRY(ctn_module_state(&b->var, m, "running_var", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(channels), ones));
    return ctn_module_state(&b->batches, m, "num_batches_tracked", CTN_I64, CTN_SCALAR_SHAPE, NULL);
}

ctn_status ctn_batch_norm_new(ctn_module **m, ctn_context *ctx, int64_t channels,
                              const ctn_batch_norm_module_opt *opt)
{
    ctn_batch_norm_module_opt o;
    if (!m) return ctn_fail(CTN_EARG, "batch_norm_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("batch_norm_new", &o, sizeof o, opt));
    if (channels < 1)
        return ctn_fail(CTN_EARG, "batch_norm_new: got %lld channels, expected at least 1",
                        (long long)channels);
    batch_norm *b = ctn__calloc(1, sizeof *b);
    if (b) b->how = (ctn_batch_norm_opt){sizeof b->how, o.eps, o.momentum};
    CTN_TRY(ctn__module_own(m, ctx, batch_norm_forward, b, sizeof *b, CTN__REFS(batch_norm, how)));
    ctn_status st = add_vars(*m, b, &o, channels);
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    return st;
}
