/* SPDX-License-Identifier: Apache-2.0
 *
 * U-Net for one to three spatial dimensions. A stage is twice a convolution with kernel 3, batch
 * normalisation and ReLU. Going down, the result of each stage is saved and halved by max pooling.
 * Going up, it is doubled by a transposed convolution and concatenated with the saved one:
 *     enc.0 ------------------------------ dec.3 - head       channels: width
 *        enc.1 -------------------- dec.2                     2 width
 *           ...  enc.4 - up.0, dec.0  ...                     16 width at the bottom
 */
#include "nn/zoo/zoo.h"

enum { MAX_DEPTH = 8 };

typedef struct {
    ctn_module *conv[2], *bn[2];
} stage;

typedef struct {
    ctn_module *enc[MAX_DEPTH + 1], *up[MAX_DEPTH], *dec[MAX_DEPTH], *head;
    int depth, spatial;
} unet;

static ctn_tensor *stage_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const stage *s = self;
    const char *at = m->at;
    for (int i = 0; i < 2; i++)
        x = ctn_relu_at(at, ctn_call_at(at, s->bn[i], ctn_call_at(at, s->conv[i], x)));
    return x;
}

static ctn_status check_input(const unet *u, const ctn_module *m, const ctn_tensor *x)
{
    if (ctn_ndim(x) != 2 + u->spatial)
        return ctn_fail(CTN_ESHAPE, "unet: x has %d dimensions, expected %d: (N,C,...) (%s)",
                        ctn_ndim(x), 2 + u->spatial, m->at);
    for (int i = 2; i < ctn_ndim(x); i++)
        if (ctn_dim(x, i) % ((int64_t)1 << u->depth))
            return ctn_fail(CTN_ESHAPE,
                            "unet: x has length %lld in dimension %d, not a multiple of %d; pad it "
                            "or choose a smaller depth (%s)",
                            (long long)ctn_dim(x, i), i, 1 << u->depth, m->at);
    return CTN_OK;
}

static ctn_tensor *unet_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const unet *u = self;
    const char *at = m->at;
    ctn_tensor *kept[MAX_DEPTH + 1];
    if (check_input(u, m, x) < 0) return NULL;
    for (int i = 0; i < u->depth; i++) {
        kept[i] = ctn_call_at(at, u->enc[i], x);
        x = ctn_max_pool_at(at, kept[i], CTN_OPT(ctn_pool_opt, .kernel = {2}));
    }
    x = ctn_call_at(at, u->enc[u->depth], x);
    for (int i = 0; i < u->depth; i++) {
        ctn_tensor *both[] = {kept[u->depth - 1 - i], ctn_call_at(at, u->up[i], x)};
        x = ctn_call_at(at, u->dec[i], ctn_concat_at(at, 2, both, 1));
    }
    return ctn_call_at(at, u->head, x);
}

/* A convolution over all spatial dimensions, padded by half the kernel. */
static ctn_status new_conv(ctn_module **c, ctn_context *ctx, int spatial, int64_t in, int64_t out,
                           int64_t kernel, int no_bias)
{
    const int64_t k[] = {kernel, kernel, kernel};
    return ctn_conv_new(c, ctx, in, out, spatial, k,
                        CTN_OPT(ctn_conv_module_opt, .pad = {kernel / 2}, .no_bias = no_bias));
}

static ctn_status fill_stage(ctn_module *m, int spatial, int64_t in, int64_t out)
{
    stage *s = m->self;
    static const char *const conv[] = {"conv1", "conv2"}, *const bn[] = {"bn1", "bn2"};
    for (int i = 0; i < 2; i++) {
        CTN_TRY(ctn__zoo_put(m, conv[i],
                             new_conv(&s->conv[i], m->ctx, spatial, i ? out : in, out, 3, 1),
                             &s->conv[i]));
        CTN_TRY(ctn__zoo_norm(&s->bn[i], m, bn[i], out));
    }
    return CTN_OK;
}

static ctn_status put_stage(ctn_module **s, ctn_module *list, int number, int spatial, int64_t in,
                            int64_t out)
{
    CTN_TRY(ctn__zoo_put_at(list, number,
                            ctn__zoo_begin(s, list->ctx, stage_forward, sizeof(stage),
                                           CTN__ALL_REFS(stage)),
                            s));
    return fill_stage(*s, spatial, in, out);
}

static ctn_status put_list(ctn_module **list, ctn_module *m, const char *name)
{
    return ctn__zoo_put(m, name, ctn_module_list_new(list, m->ctx, 0, NULL), list);
}

static ctn_status fill_unet(ctn_module *m, const ctn_unet_opt *o)
{
    unet *u = m->self;
    ctn_module *enc = NULL, *up = NULL, *dec = NULL;
    const int64_t two[] = {2, 2, 2};
    u->depth = o->depth;
    u->spatial = o->spatial;
    CTN_TRY(put_list(&enc, m, "enc"));
    CTN_TRY(put_list(&up, m, "up"));
    CTN_TRY(put_list(&dec, m, "dec"));
    for (int i = 0; i <= o->depth; i++)
        CTN_TRY(put_stage(&u->enc[i], enc, i, o->spatial, i ? o->width << (i - 1) : o->in_channels,
                          o->width << i));
    for (int i = 0; i < o->depth; i++) {
        const int64_t c = o->width << (o->depth - 1 - i); /* channels of the result */
        CTN_TRY(ctn__zoo_put_at(up, i,
                                ctn_conv_transpose_new(&u->up[i], m->ctx, 2 * c, c, o->spatial, two,
                                                       CTN_OPT(ctn_conv_module_opt, .stride = {2})),
                                &u->up[i]));
        CTN_TRY(put_stage(&u->dec[i], dec, i, o->spatial, 2 * c, c));
    }
    return ctn__zoo_put(m, "head",
                        new_conv(&u->head, m->ctx, o->spatial, o->width, o->out_channels, 1, 0),
                        &u->head);
}

ctn_status ctn_zoo_unet(ctn_module **m, ctn_context *ctx, const ctn_unet_opt *opt)
{
    ctn_unet_opt o;
    if (!m) return ctn_fail(CTN_EARG, "unet: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("unet", &o, sizeof o, opt));
    if (o.spatial == 0) o.spatial = 2;
    if (o.depth == 0) o.depth = 4;
    if (o.spatial < 1 || o.spatial > CTN_MAX_SPATIAL || o.depth < 1 || o.depth > MAX_DEPTH)
        return ctn_fail(CTN_EARG, "unet: spatial is %d and depth %d, expected 1 to %d and 1 to %d",
                        o.spatial, o.depth, CTN_MAX_SPATIAL, MAX_DEPTH);
    CTN_TRY(ctn__zoo_default("unet", "in_channels", &o.in_channels, 1));
    CTN_TRY(ctn__zoo_default("unet", "out_channels", &o.out_channels, 1));
    CTN_TRY(ctn__zoo_default("unet", "width", &o.width, 32));
    CTN_TRY(ctn__zoo_begin(m, ctx, unet_forward, sizeof(unet), CTN__REFS(unet, depth)));
    return ctn__zoo_end(m, fill_unet(*m, &o));
}
