/* SPDX-License-Identifier: Apache-2.0
 *
 * VGG-11 to -19 without normalisation, with torchvision's names and initial values. The children of
 * `features` are numbered consecutively, including activations and poolings.
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *features, *classifier;
} vgg;

static const struct {
    int depth, convs[5]; /* 3x3 convolutions before each pooling */
} depths[] = {{11, {1, 1, 2, 2, 2}},
              {13, {2, 2, 2, 2, 2}},
              {16, {2, 2, 3, 3, 3}},
              {19, {2, 2, 4, 4, 4}}};

static ctn_tensor *vgg_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const vgg *v = self;
    const char *at = m->at;
    x = ctn_adaptive_avg_pool_at(at, ctn_call_at(at, v->features, x), CTN_SHAPE(7, 7));
    return ctn_call_at(at, v->classifier, ctn__flatten(at, x));
}

static ctn_status fill_features(ctn_module *m, int64_t in, const int *convs)
{
    static const int64_t channels[] = {64, 128, 256, 512, 512};
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    ctn_module *c = NULL;
    int k = 0;
    for (int s = 0; s < 5; s++) {
        const int64_t out = channels[s];
        const ctn_init *by_out =
            CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL, .fan_in = out * 3 * 3);
        for (int i = 0; i < convs[s]; i++) {
            ctn_status st = ctn_conv_new(&c, m->ctx, in, out, CTN_SHAPE(3, 3),
                                         CTN_OPT(ctn_conv_module_opt, .pad = {1}, .weight = by_out,
                                                 .bias = zero));
            CTN_TRY(ctn__zoo_put_at(m, k++, st, &c));
            CTN_TRY(ctn__zoo_put_at(m, k++, ctn_activation_new(&c, m->ctx, ctn_relu_at), &c));
            in = out;
        }
        CTN_TRY(ctn__zoo_put_at(m, k++,
                                ctn_max_pool_new(&c, m->ctx, CTN_OPT(ctn_pool_opt, .kernel = {2})),
                                &c));
    }
    return CTN_OK;
}

static ctn_status fill_classifier(ctn_module *m, int64_t classes, double dropout)
{
    const int64_t size[] = {512 * 7 * 7, 4096, 4096, classes};
    const ctn_init *small = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.01);
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    ctn_module *c = NULL;
    for (int i = 0; i < 3; i++) {
        ctn_status st = ctn_linear_new(&c, m->ctx, size[i], size[i + 1],
                                       CTN_OPT(ctn_linear_opt, .weight = small, .bias = zero));
        CTN_TRY(ctn__zoo_put_at(m, 3 * i, st, &c));
        if (i == 2) break;
        CTN_TRY(ctn__zoo_put_at(m, 3 * i + 1, ctn_activation_new(&c, m->ctx, ctn_relu_at), &c));
        if (dropout >= 0)
            CTN_TRY(ctn__zoo_put_at(m, 3 * i + 2, ctn_dropout_new(&c, m->ctx, dropout), &c));
    }
    return CTN_OK;
}

static ctn_status fill_vgg(ctn_module *m, const ctn_vgg_opt *o, const int *convs)
{
    vgg *v = m->self;
    CTN_TRY(ctn__zoo_put(m, "features", ctn_sequential_new(&v->features, m->ctx, 0, NULL),
                         &v->features));
    CTN_TRY(fill_features(v->features, o->in_channels, convs));
    CTN_TRY(ctn__zoo_put(m, "classifier", ctn_sequential_new(&v->classifier, m->ctx, 0, NULL),
                         &v->classifier));
    return fill_classifier(v->classifier, o->classes, o->dropout);
}

ctn_status ctn_zoo_vgg(ctn_module **m, ctn_context *ctx, const ctn_vgg_opt *opt)
{
    ctn_vgg_opt o;
    size_t which = 0, n = sizeof depths / sizeof *depths;
    if (!m) return ctn_fail(CTN_EARG, "vgg: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("vgg", &o, sizeof o, opt));
    if (o.depth == 0) o.depth = 16;
    while (which < n && depths[which].depth != o.depth) which++;
    if (which == n)
        return ctn_fail(CTN_EARG, "vgg: depth is %d, expected 11, 13, 16 or 19", o.depth);
    if (o.dropout == 0) o.dropout = 0.5;
    CTN_TRY(ctn__zoo_default("vgg", "classes", &o.classes, 1000));
    CTN_TRY(ctn__zoo_default("vgg", "in_channels", &o.in_channels, 3));
    CTN_TRY(ctn__zoo_begin(m, ctx, vgg_forward, sizeof(vgg), CTN__ALL_REFS(vgg)));
    return ctn__zoo_end(m, fill_vgg(*m, &o, depths[which].convs));
}
