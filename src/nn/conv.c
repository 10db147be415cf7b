/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules of convolution and transposed convolution: weight (out,in/groups,k...) or
 * (in,out/groups,k...), and bias (out). Initial values are PyTorch's defaults: uniform within
 * +-1/sqrt(fan in), where fan in is the weight's second dimension times the kernel in both cases.
 */
#include <math.h>

#include <catena/ops.h>

#include "nn/nn.h"

typedef struct {
    ctn_var *weight, *bias; /* owned by the module; bias NULL: none */
    ctn_conv_opt how;
    bool transposed;
    ctn__conv_fn fn; /* NULL: the op */
    void *user;
} conv;

static ctn_tensor *conv_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const conv *c = self;
    const char *at = m->at;
    ctn_tensor *w = ctn_use_at(at, c->weight), *b = NULL;
    if (c->bias && !(b = ctn_use_at(at, c->bias))) return NULL;
    if (c->fn) return c->fn(c->user, at, x, w, b, &c->how, c->transposed);
    return c->transposed ? ctn_conv_transpose_at(at, x, w, b, &c->how)
                         : ctn_conv_at(at, x, w, b, &c->how);
}

void ctn__conv_set(ctn_module *m, ctn__conv_fn fn, void *user)
{
    if (m->forward != conv_forward) return;
    conv *c = m->self;
    c->fn = fn;
    c->user = user;
}

static ctn_status check(const char *who, bool transposed, const ctn_conv_module_opt *o, int64_t in,
                        int64_t out, int spatial, const int64_t *kernel)
{
    if (spatial < 1 || spatial > CTN_MAX_SPATIAL || !kernel)
        return ctn_fail(CTN_EARG, "%s: kernel has %d dimensions, expected 1 to %d", who, spatial,
                        CTN_MAX_SPATIAL);
    for (int i = 0; i < spatial; i++)
        if (kernel[i] < 1)
            return ctn_fail(CTN_EARG, "%s: kernel size %d is %lld, it must be positive", who, i,
                            (long long)kernel[i]);
    if (o->pad_mode < CTN_PAD_ZEROS || o->pad_mode > (transposed ? CTN_PAD_ZEROS : CTN_PAD_WRAP))
        return ctn_fail(CTN_EARG, "%s: pad_mode %d is not possible", who, (int)o->pad_mode);
    if (in < 1 || out < 1 || o->groups < 1 || in % o->groups || out % o->groups)
        return ctn_fail(CTN_EARG,
                        "%s: %lld inputs and %lld outputs in %lld groups; all must be positive, "
                        "and groups must divide both",
                        who, (long long)in, (long long)out, (long long)o->groups);
    return CTN_OK;
}

static ctn_conv_opt how_of(const ctn_conv_module_opt *o)
{
    ctn_conv_opt how = {.struct_size = sizeof how, .groups = o->groups, .pad_mode = o->pad_mode};
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        how.stride[i] = o->stride[i];
        how.pad[i] = o->pad[i];
        how.pad_end[i] = o->pad_end[i];
        how.dilation[i] = o->dilation[i];
        how.out_pad[i] = o->out_pad[i];
    }
    return how;
}

/* Add the parameters of c: a weight of shape dims, a bias of `out` elements. */
static ctn_status add_params(ctn_module *m, conv *c, const ctn_conv_module_opt *o, int ndim,
                             const int64_t *dims, int64_t out)
{
    double fan = 1;
    for (int i = 1; i < ndim; i++) fan *= (double)dims[i];
    const double bound = 1 / sqrt(fan);
    const ctn_init *usual =
        CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = -bound, .high = bound);
    CTN_TRY(ctn_module_param(&c->weight, m, "weight", ctn_context_float_type(m->ctx), ndim, dims,
                             o->weight ? o->weight : usual));
    if (!o->no_bias)
        CTN_TRY(ctn_module_param(&c->bias, m, "bias", ctn_context_float_type(m->ctx),
                                 CTN_SHAPE(out), o->bias ? o->bias : usual));
    return CTN_OK;
}

static ctn_status new_conv(const char *who, bool transposed, ctn_module **m, ctn_context *ctx,
                           int64_t in, int64_t out, int spatial, const int64_t *kernel,
                           const ctn_conv_module_opt *opt)
{
    ctn_conv_module_opt o;
    if (!m) return ctn_fail(CTN_EARG, "%s: NULL argument", who);
    *m = NULL;
    CTN_TRY(ctn__opt(who, &o, sizeof o, opt));
    if (o.groups == 0) o.groups = 1;
    CTN_TRY(check(who, transposed, &o, in, out, spatial, kernel));
    conv *c = ctn__malloc(sizeof *c);
    if (c) *c = (conv){.how = how_of(&o), .transposed = transposed};
    CTN_TRY(ctn__module_own(m, ctx, conv_forward, c, sizeof *c, CTN__REFS(conv, how)));
    int64_t dims[2 + CTN_MAX_SPATIAL] = {transposed ? in : out, (transposed ? out : in) / o.groups};
    for (int i = 0; i < spatial; i++) dims[2 + i] = kernel[i];
    ctn_status st = add_params(*m, c, &o, 2 + spatial, dims, out);
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    return st;
}

ctn_status ctn_conv_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out, int spatial,
                        const int64_t *kernel, const ctn_conv_module_opt *opt)
{
    return new_conv("conv_new", false, m, ctx, in, out, spatial, kernel, opt);
}

ctn_status ctn_conv_transpose_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out,
                                  int spatial, const int64_t *kernel,
                                  const ctn_conv_module_opt *opt)
{
    return new_conv("conv_transpose_new", true, m, ctx, in, out, spatial, kernel, opt);
}
