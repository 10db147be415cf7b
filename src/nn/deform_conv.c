/* SPDX-License-Identifier: Apache-2.0
 *
 * The module of deformable convolution: weight (out,in,kh,kw) and bias (out), and the child
 * offset_conv, which computes an offset for each tap and position from the same input.
 */
#include <math.h>

#include <catena/ops.h>

#include "nn/nn.h"

typedef struct {
    ctn_module *offset;     /* child */
    ctn_var *weight, *bias; /* owned by the module; bias NULL: none */
    ctn_conv_opt how;
} deform;

static ctn_tensor *deform_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const deform *c = self;
    const char *at = m->at;
    ctn_tensor *w = ctn_use_at(at, c->weight), *b = NULL;
    if (c->bias && !(b = ctn_use_at(at, c->bias))) return NULL;
    return ctn_deform_conv_at(at, x, ctn_call_at(at, c->offset, x), w, b, NULL, &c->how);
}

/* The convolution that computes the offsets, with the stride, padding and dilation of o. */
static ctn_status add_offset(ctn_module *m, deform *c, const ctn_conv_module_opt *o, int64_t in,
                             const int64_t *kernel)
{
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    ctn_conv_module_opt how = *o;
    how.struct_size = sizeof how;
    how.no_bias = 0;
    how.weight = how.bias = zero;
    CTN_TRY(ctn_conv_new(&c->offset, m->ctx, in, 2 * kernel[0] * kernel[1], 2, kernel, &how));
    const ctn_status st = ctn_module_add(m, "offset_conv", c->offset);
    if (st < 0) ctn_module_free(c->offset);
    return st;
}

static ctn_status add_params(ctn_module *m, deform *c, const ctn_conv_module_opt *o, int64_t in,
                             int64_t out, const int64_t *kernel)
{
    const ctn_dtype t = ctn_context_float_type(m->ctx);
    const double bound = 1 / sqrt((double)in * (double)kernel[0] * (double)kernel[1]);
    const ctn_init *usual =
        CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = -bound, .high = bound);
    CTN_TRY(ctn_module_param(&c->weight, m, "weight", t, CTN_SHAPE(out, in, kernel[0], kernel[1]),
                             o->weight ? o->weight : usual));
    if (o->no_bias) return CTN_OK;
    return ctn_module_param(&c->bias, m, "bias", t, CTN_SHAPE(out), o->bias ? o->bias : usual);
}

static ctn_status check(const ctn_conv_module_opt *o, int64_t in, int64_t out, int spatial,
                        const int64_t *kernel)
{
    if (spatial != 2 || !kernel || kernel[0] < 1 || kernel[1] < 1)
        return ctn_fail(CTN_EARG,
                        "deform_conv_new: kernel has %d dimensions, expected 2 positive numbers",
                        spatial);
    if (in < 1 || out < 1)
        return ctn_fail(CTN_EARG,
                        "deform_conv_new: %lld inputs and %lld outputs, expected 1 or more",
                        (long long)in, (long long)out);
    if (o->groups > 1 || o->groups < 0 || o->pad_mode != CTN_PAD_ZEROS)
        return ctn_fail(CTN_EARG,
                        "deform_conv_new: groups is %lld and pad_mode %d, expected 1 and "
                        "CTN_PAD_ZEROS",
                        (long long)o->groups, (int)o->pad_mode);
    return CTN_OK;
}

static ctn_conv_opt how_of(const ctn_conv_module_opt *o)
{
    ctn_conv_opt how = {.struct_size = sizeof how};
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        how.stride[i] = o->stride[i];
        how.pad[i] = o->pad[i];
        how.pad_end[i] = o->pad_end[i];
        how.dilation[i] = o->dilation[i];
    }
    return how;
}

ctn_status ctn_deform_conv_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out,
                               int spatial, const int64_t *kernel, const ctn_conv_module_opt *opt)
{
    ctn_conv_module_opt o;
    if (!m) return ctn_fail(CTN_EARG, "deform_conv_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("deform_conv_new", &o, sizeof o, opt));
    CTN_TRY(check(&o, in, out, spatial, kernel));
    deform *c = ctn__malloc(sizeof *c);
    if (c) *c = (deform){.how = how_of(&o)};
    CTN_TRY(ctn__module_own(m, ctx, deform_forward, c, sizeof *c, CTN__REFS(deform, how)));
    ctn_status st = c ? add_offset(*m, c, &o, in, kernel) : CTN_ENOMEM;
    if (st == CTN_OK) st = add_params(*m, c, &o, in, out, kernel);
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    return st;
}
