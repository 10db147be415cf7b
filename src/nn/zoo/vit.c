/* SPDX-License-Identifier: Apache-2.0
 *
 * The vision transformer with the names of Hugging Face: square patches of an image are the tokens,
 * after one more token, whose result is classified. The layers are in encoder.c.
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *projection, *layers, *norm, *classifier;
    ctn_var *cls, *position; /* (1,1,C), (1,1+patches,C) */
    int64_t image, channels;
} vit;

/* x (N,channels,H,W) -> (N,1+patches,C) */
static ctn_tensor *embed(const vit *v, const char *at, ctn_tensor *x)
{
    x = ctn_call_at(at, v->projection, x); /* (N,C,H/patch,W/patch) */
    if (!x) return NULL;
    const int64_t N = ctn_dim(x, 0), C = ctn_dim(x, 1);
    x = ctn_transpose_at(at, ctn_reshape_at(at, x, CTN_SHAPE(N, C, -1)), CTN_SHAPE(0, 2, 1));
    ctn_tensor *cls = ctn_broadcast_to_at(at, ctn_use_at(at, v->cls), CTN_SHAPE(N, 1, C));
    x = ctn_concat_at(at, 2, (ctn_tensor *[]){cls, x}, 1);
    return ctn_add_at(at, x, ctn_use_at(at, v->position));
}

static ctn_tensor *vit_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const vit *v = self;
    const char *at = m->at;
    char s[128];
    const ctn_desc *d = &x->d;
    if (d->ndim != 4 || d->dim[1] != v->channels || d->dim[2] != v->image ||
        d->dim[3] != v->image) {
        ctn_fail(CTN_ESHAPE, "vit: x is %s, expected (N,%lld,%lld,%lld) (%s)",
                 ctn__shape_text(d, s, sizeof s), (long long)v->channels, (long long)v->image,
                 (long long)v->image, at);
        return NULL;
    }
    x = ctn__zoo_encode(at, v->layers, embed(v, at, x), NULL);
    x = ctn_squeeze_at(at, ctn_slice_at(at, x, 1, 0, 1), 1);
    return ctn_call_at(at, v->classifier, ctn_call_at(at, v->norm, x));
}

/* ---- construction ---------------------------------------------------------------------------- */

static ctn_status fill_embeddings(vit *v, ctn_module *body, const ctn_vit_opt *o)
{
    ctn_module *m = NULL, *patches = NULL;
    const int64_t side = o->image / o->patch, C = o->width;
    const ctn_init *normal = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.02);
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    CTN_TRY(ctn__zoo_group(&m, body, "embeddings"));
    CTN_TRY(ctn_module_param(&v->cls, m, "cls_token", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(1, 1, C), normal));
    CTN_TRY(ctn_module_param(&v->position, m, "position_embeddings", ctn_context_float_type(m->ctx),
                             CTN_SHAPE(1, 1 + side * side, C), normal));
    CTN_TRY(ctn__zoo_group(&patches, m, "patch_embeddings"));
    return ctn__zoo_put(patches, "projection",
                        ctn_conv_new(&v->projection, m->ctx, o->in_channels, C,
                                     CTN_SHAPE(o->patch, o->patch),
                                     CTN_OPT(ctn_conv_module_opt, .stride = {o->patch},
                                             .weight = normal, .bias = zero)),
                        &v->projection);
}

static ctn_status fill_vit(ctn_module *m, const ctn_vit_opt *o, const ctn__encoder_opt *e)
{
    vit *v = m->self;
    ctn_module *body = NULL;
    v->image = o->image;
    v->channels = o->in_channels;
    CTN_TRY(ctn__zoo_group(&body, m, "vit"));
    CTN_TRY(fill_embeddings(v, body, o));
    CTN_TRY(ctn__zoo_encoder(&v->layers, body, e));
    CTN_TRY(ctn__zoo_layer_norm(&v->norm, body, "layernorm", o->width, o->eps));
    return ctn__zoo_dense(&v->classifier, m, "classifier", o->width, o->classes);
}

static const ctn__published published = {
    .prefix = "vit.",
    .ignored = (const char *const[]){"pooler.dense.weight", "pooler.dense.bias", NULL},
};

ctn_status ctn_zoo_vit(ctn_module **m, ctn_context *ctx, const ctn_vit_opt *opt)
{
    ctn_vit_opt o;
    if (!m) return ctn_fail(CTN_EARG, "vit: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("vit", &o, sizeof o, opt));
    ctn__encoder_opt e = {o.width, o.hidden, o.layers, o.heads, o.eps, true};
    CTN_TRY(ctn__zoo_check_encoder("vit", &e));
    CTN_TRY(ctn__zoo_default("vit", "classes", &o.classes, 1000));
    CTN_TRY(ctn__zoo_default("vit", "in_channels", &o.in_channels, 3));
    CTN_TRY(ctn__zoo_default("vit", "image", &o.image, 224));
    CTN_TRY(ctn__zoo_default("vit", "patch", &o.patch, 16));
    if (o.patch > o.image)
        return ctn_fail(CTN_EARG,
                        "vit: patches of %lld pixels in images of %lld; images must not "
                        "be smaller than a patch",
                        (long long)o.patch, (long long)o.image);
    o.width = e.width;
    o.eps = e.eps;
    CTN_TRY(ctn__zoo_begin(m, ctx, vit_forward, sizeof(vit), CTN__REFS(vit, image)));
    (*m)->published = &published;
    return ctn__zoo_end(m, fill_vit(*m, &o, &e));
}
