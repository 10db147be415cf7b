/* SPDX-License-Identifier: Apache-2.0
 *
 * The linear module: weight (out,in) and bias (out), with PyTorch's default initial values. It may
 * have an adapter (lora.c), whose product is added to the result.
 */
#include <math.h>

#include <catena/ops.h>

#include "nn/nn.h"

/* y = x W^T + b, with an adapter + scale (x A^T) B^T */
static ctn_tensor *linear_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const ctn__linear *l = self;
    const char *at = m->at;
    ctn_tensor *b = l->bias ? ctn_use_at(at, l->bias) : NULL;
    if (l->bias && !b) return NULL;
    ctn_tensor *w = ctn_use_at(at, l->weight);
    if (x && w && w->d.dtype == CTN_BF16) w = ctn_cast_at(at, w, x->d.dtype); /* by lora_add */
    ctn_tensor *y = ctn_linear_at(at, x, w, b);
    if (!l->lora_a) return y;
    x = ctn_linear_at(at, x, ctn_use_at(at, l->lora_a), NULL);
    x = ctn_linear_at(at, x, ctn_use_at(at, l->lora_b), NULL);
    return ctn_add_at(at, y, ctn_scale_at(at, x, l->scale));
}

ctn__linear *ctn__linear_of(const ctn_module *m)
{
    return m->forward == linear_forward ? m->self : NULL;
}

ctn_status ctn_linear_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out,
                          const ctn_linear_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn_linear_opt o;
    ctn_module *made = NULL;
    if (!m) return ctn_fail(CTN_EARG, "linear_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("linear_new", &o, sizeof o, opt));
    if (in < 1 || out < 1)
        return ctn_fail(CTN_EARG, "linear_new: %lld inputs and %lld outputs, both must be positive",
                        (long long)in, (long long)out);
    ctn__linear *l = ctn__calloc(1, sizeof *l);
    CTN_TRY(
        ctn__module_own(&made, ctx, linear_forward, l, sizeof *l, CTN__REFS(ctn__linear, scale)));
    double bound = 1 / sqrt((double)in);
    const ctn_init *usual =
        CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = -bound, .high = bound);
    CTN_TRY_GOTO(st, fail,
                 ctn_module_param(&l->weight, made, "weight", ctn_context_float_type(made->ctx),
                                  CTN_SHAPE(out, in), o.weight ? o.weight : usual));
    if (!o.no_bias)
        CTN_TRY_GOTO(st, fail,
                     ctn_module_param(&l->bias, made, "bias", ctn_context_float_type(made->ctx),
                                      CTN_SHAPE(out), o.bias ? o.bias : usual));
    *m = made;
    return CTN_OK;
fail:
    ctn_module_free(made);
    return st;
}
