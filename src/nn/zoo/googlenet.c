/* SPDX-License-Identifier: Apache-2.0
 *
 * GoogLeNet (Szegedy et al., 2015) with torchvision's names: as published, with local response
 * normalisation, or with batch normalisation, as torchvision has it. The auxiliary classifiers
 * take part in training only.
 */
#include "nn/inception.h"

enum { BLOCKS = 9, AUX1_AFTER = 2, AUX2_AFTER = 5 };

typedef struct {
    ctn_module *conv, *fc1, *fc2, *dropout;
} aux;

typedef struct {
    ctn_module *conv1, *conv2, *conv3, *block[BLOCKS], *aux[2], *dropout, *fc;
    bool batch_norm;
} googlenet;

/* pool: a maximum pooling comes after the block. */
static const struct {
    const char *name;
    int64_t out1, reduce3, out3, reduce5, out5, proj;
    bool pool;
} blocks[BLOCKS] = {
    {"inception3a", 64, 96, 128, 16, 32, 32, false},
    {"inception3b", 128, 128, 192, 32, 96, 64, true},
    {"inception4a", 192, 96, 208, 16, 48, 64, false},
    {"inception4b", 160, 112, 224, 24, 64, 64, false},
    {"inception4c", 128, 128, 256, 24, 64, 64, false},
    {"inception4d", 112, 144, 288, 32, 64, 64, false},
    {"inception4e", 256, 160, 320, 32, 128, 128, true},
    {"inception5a", 256, 160, 320, 32, 128, 128, false},
    {"inception5b", 384, 192, 384, 48, 128, 128, false},
};

/* ---- forward --------------------------------------------------------------------------------- */

static ctn_tensor *aux_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const aux *a = self;
    const char *at = m->at;
    x = ctn_call_at(at, a->conv, ctn_adaptive_avg_pool_at(at, x, CTN_SHAPE(4, 4)));
    x = ctn_relu_at(at, ctn_call_at(at, a->fc1, ctn__flatten(at, x)));
    return ctn_call_at(at, a->fc2, ctn_call_at(at, a->dropout, x));
}

/* Of small images a window has at most the whole. */
static ctn_tensor *pool(const char *at, ctn_tensor *x, int64_t kernel)
{
    if (!x) return NULL;
    const int64_t H = ctn_dim(x, 2), W = ctn_dim(x, 3);
    return ctn_max_pool_at(at, x,
                           CTN_OPT(ctn_pool_opt,
                                   .kernel = {H < kernel ? H : kernel, W < kernel ? W : kernel},
                                   .stride = {2}, .ceil = 1));
}

static ctn_tensor *respond(const googlenet *g, const char *at, ctn_tensor *x)
{
    return g->batch_norm ? x : ctn_local_response_norm_at(at, x, 5, 2, 1e-4, 0.75);
}

static ctn_tensors googlenet_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const googlenet *g = self;
    const char *at = m->at;
    ctn_tensors y = {1, {NULL}};
    ctn_tensor *x = pool(at, ctn_call_at(at, g->conv1, in.t[0]), 3);
    x = ctn_call_at(at, g->conv2, respond(g, at, x));
    x = pool(at, respond(g, at, ctn_call_at(at, g->conv3, x)), 3);
    for (int i = 0; i < BLOCKS && x; i++) {
        const int k = i == AUX1_AFTER ? 0 : 1; /* which classifier comes after the block, if any */
        x = ctn_call_at(at, g->block[i], x);
        if ((i == AUX1_AFTER || i == AUX2_AFTER) && g->aux[k] && ctn_context_training(m->ctx) &&
            !(y.t[y.n++] = ctn_call_at(at, g->aux[k], x)))
            return (ctn_tensors){0};
        if (blocks[i].pool) x = pool(at, x, g->batch_norm && i > AUX2_AFTER ? 2 : 3);
    }
    x = ctn__flatten(at, ctn_global_avg_pool_at(at, x));
    y.t[0] = ctn_call_at(at, g->fc, ctn_call_at(at, g->dropout, x));
    return y.t[0] ? y : (ctn_tensors){0};
}

/* ---- making ---------------------------------------------------------------------------------- */

static ctn_status put_conv(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                           int64_t out, int64_t kernel, int64_t stride, bool batch_norm)
{
    const ctn__conv_relu o = {in, out, kernel, stride, batch_norm};
    return ctn__zoo_put(m, name, ctn__conv_relu_new(child, m->ctx, &o), child);
}

static ctn_status put_linear(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                             int64_t out, bool batch_norm)
{
    const ctn_init *weight = batch_norm ? CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.01)
                                        : CTN_OPT(ctn_init, .kind = CTN_INIT_LECUN_UNIFORM);
    const ctn_linear_opt *o = CTN_OPT(ctn_linear_opt, .weight = weight);
    return ctn__zoo_put(m, name, ctn_linear_new(child, m->ctx, in, out, o), child);
}

static ctn_status put_aux(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                          const ctn_googlenet_opt *o)
{
    CTN_TRY(
        ctn__zoo_put(m, name,
                     ctn__zoo_begin(child, m->ctx, aux_forward, sizeof(aux), CTN__ALL_REFS(aux)),
                     child));
    aux *a = (*child)->self;
    const bool bn = o->batch_norm != 0;
    CTN_TRY(put_conv(&a->conv, *child, "conv", in, 128, 1, 1, bn));
    CTN_TRY(put_linear(&a->fc1, *child, "fc1", 128 * 4 * 4, 1024, bn));
    CTN_TRY(put_linear(&a->fc2, *child, "fc2", 1024, o->classes, bn));
    return ctn__zoo_put(*child, "dropout", ctn_dropout_new(&a->dropout, m->ctx, 0.7), &a->dropout);
}

/* The blocks, and the classifiers between them. *in becomes the channels of the result. */
static ctn_status put_blocks(ctn_module *m, const ctn_googlenet_opt *o, int64_t *in)
{
    googlenet *g = m->self;
    for (int i = 0; i < BLOCKS; i++) {
        const ctn_inception_opt *b =
            CTN_OPT(ctn_inception_opt, .out1 = blocks[i].out1, .reduce3 = blocks[i].reduce3,
                    .out3 = blocks[i].out3, .reduce5 = blocks[i].reduce5, .out5 = blocks[i].out5,
                    .pool = blocks[i].proj, .batch_norm = o->batch_norm);
        CTN_TRY(ctn__zoo_put(m, blocks[i].name, ctn_inception_new(&g->block[i], m->ctx, *in, b),
                             &g->block[i]));
        *in = b->out1 + b->out3 + b->out5 + b->pool;
        if (i == AUX1_AFTER && !o->no_aux) CTN_TRY(put_aux(&g->aux[0], m, "aux1", *in, o));
        if (i == AUX2_AFTER && !o->no_aux) CTN_TRY(put_aux(&g->aux[1], m, "aux2", *in, o));
    }
    return CTN_OK;
}

static ctn_status fill_googlenet(ctn_module *m, const ctn_googlenet_opt *o)
{
    googlenet *g = m->self;
    const bool bn = g->batch_norm = o->batch_norm != 0;
    const double usual = bn ? 0.2 : 0.4, rate = o->dropout < 0 ? 0 : o->dropout;
    int64_t in = 192;
    CTN_TRY(put_conv(&g->conv1, m, "conv1", o->in_channels, 64, 7, 2, bn));
    CTN_TRY(put_conv(&g->conv2, m, "conv2", 64, 64, 1, 1, bn));
    CTN_TRY(put_conv(&g->conv3, m, "conv3", 64, 192, 3, 1, bn));
    CTN_TRY(put_blocks(m, o, &in));
    CTN_TRY(ctn__zoo_put(m, "dropout",
                         ctn_dropout_new(&g->dropout, m->ctx, o->dropout == 0 ? usual : rate),
                         &g->dropout));
    return put_linear(&g->fc, m, "fc", in, o->classes, bn);
}

ctn_status ctn_zoo_googlenet(ctn_module **m, ctn_context *ctx, const ctn_googlenet_opt *opt)
{
    ctn_googlenet_opt o;
    if (!m) return ctn_fail(CTN_EARG, "googlenet: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("googlenet", &o, sizeof o, opt));
    CTN_TRY(ctn__zoo_default("googlenet", "classes", &o.classes, 1000));
    CTN_TRY(ctn__zoo_default("googlenet", "in_channels", &o.in_channels, 3));
    CTN_TRY(ctn__zoo_begin(m, ctx, NULL, sizeof(googlenet), CTN__REFS(googlenet, batch_norm)));
    (*m)->forward_multi = googlenet_forward;
    return ctn__zoo_end(m, fill_googlenet(*m, &o));
}
