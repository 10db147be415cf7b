/* SPDX-License-Identifier: Apache-2.0
 *
 * MobileNetV2 with torchvision's names and initial values. An inverted residual is a 1x1
 * convolution to more channels, a 3x3 depthwise convolution, and a 1x1 convolution back without
 * activation. Its input is added where the shapes are equal.
 */
#include <math.h>

#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *conv;
    bool residual;
} inverted;

typedef struct {
    ctn_module *features, *classifier;
} mobilenet;

static ctn_tensor *relu6_at(const char *at, ctn_tensor *x)
{
    return ctn_clip_at(at, x, 0, 6);
}

static ctn_tensor *inverted_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const inverted *v = self;
    ctn_tensor *y = ctn_call_at(m->at, v->conv, x);
    return v->residual ? ctn_add_at(m->at, y, x) : y;
}

static ctn_tensor *mobilenet_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const mobilenet *n = self;
    const char *at = m->at;
    x = ctn_global_avg_pool_at(at, ctn_call_at(at, n->features, x));
    return ctn_call_at(at, n->classifier, ctn__flatten(at, x));
}

/* Add convolution, normalisation and relu6 to m as child `number`. */
static ctn_status put_layer(ctn_module *m, int number, int64_t in, int64_t out, int64_t kernel,
                            int64_t stride, int64_t groups)
{
    ctn_module *l = NULL, *act = NULL;
    CTN_TRY(ctn__zoo_put_at(m, number, ctn_sequential_new(&l, m->ctx, 0, NULL), &l));
    CTN_TRY(ctn__zoo_conv(NULL, l, "0", in, out, kernel, stride, groups));
    CTN_TRY(ctn__zoo_norm(NULL, l, "1", out));
    return ctn__zoo_put(l, "2", ctn_activation_new(&act, m->ctx, relu6_at), &act);
}

static ctn_status put_inverted(ctn_module *m, int number, int64_t in, int64_t out, int64_t expand,
                               int64_t stride)
{
    ctn_module *b = NULL;
    CTN_TRY(ctn__zoo_put_at(m, number,
                            ctn__zoo_begin(&b, m->ctx, inverted_forward, sizeof(inverted),
                                           CTN__REFS(inverted, residual)),
                            &b));
    inverted *v = b->self;
    v->residual = stride == 1 && in == out;
    CTN_TRY(ctn__zoo_put(b, "conv", ctn_sequential_new(&v->conv, m->ctx, 0, NULL), &v->conv));
    int k = 0;
    const int64_t wide = in * expand;
    if (expand != 1) CTN_TRY(put_layer(v->conv, k++, in, wide, 1, 1, 1));
    CTN_TRY(put_layer(v->conv, k++, wide, wide, 3, stride, wide));
    CTN_TRY(ctn__zoo_conv(NULL, v->conv, k == 1 ? "1" : "2", wide, out, 1, 1, 1));
    return ctn__zoo_norm(NULL, v->conv, k == 1 ? "2" : "3", out);
}

/* The multiple of 8 nearest to v, at least 8 and not more than a tenth below v. */
static int64_t divisible(double v)
{
    int64_t n = (int64_t)(v + 4) / 8 * 8;
    if (n < 8) n = 8;
    return (double)n < 0.9 * v ? n + 8 : n;
}

static ctn_status fill_features(ctn_module *m, const ctn_mobilenet_v2_opt *o, int64_t last)
{
    static const struct {
        int expand, channels, blocks, stride;
    } stage[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int64_t in = divisible(32 * o->width);
    int number = 0;
    CTN_TRY(put_layer(m, number++, o->in_channels, in, 3, 2, 1));
    for (size_t s = 0; s < sizeof stage / sizeof *stage; s++) {
        const int64_t out = divisible(stage[s].channels * o->width);
        for (int i = 0; i < stage[s].blocks; i++) {
            CTN_TRY(put_inverted(m, number++, in, out, stage[s].expand, i ? 1 : stage[s].stride));
            in = out;
        }
    }
    return put_layer(m, number, in, last, 1, 1, 1);
}

static ctn_status fill_mobilenet(ctn_module *m, const ctn_mobilenet_v2_opt *o)
{
    mobilenet *n = m->self;
    ctn_module *c = NULL;
    const int64_t last = divisible(1280 * fmax(1, o->width));
    CTN_TRY(ctn__zoo_put(m, "features", ctn_sequential_new(&n->features, m->ctx, 0, NULL),
                         &n->features));
    CTN_TRY(fill_features(n->features, o, last));
    CTN_TRY(ctn__zoo_put(m, "classifier", ctn_sequential_new(&n->classifier, m->ctx, 0, NULL),
                         &n->classifier));
    if (o->dropout >= 0) /* the linear layer is "1" with or without dropout */
        CTN_TRY(ctn__zoo_put(n->classifier, "0", ctn_dropout_new(&c, m->ctx, o->dropout), &c));
    const ctn_init *small = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.01);
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    return ctn__zoo_put(n->classifier, "1",
                        ctn_linear_new(&c, m->ctx, last, o->classes,
                                       CTN_OPT(ctn_linear_opt, .weight = small, .bias = zero)),
                        &c);
}

ctn_status ctn_zoo_mobilenet_v2(ctn_module **m, ctn_context *ctx, const ctn_mobilenet_v2_opt *opt)
{
    ctn_mobilenet_v2_opt o;
    if (!m) return ctn_fail(CTN_EARG, "mobilenet_v2: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("mobilenet_v2", &o, sizeof o, opt));
    if (!(o.width >= 0))
        return ctn_fail(CTN_EARG,
                        "mobilenet_v2: width is %g, it must be positive (0: the default, 1)",
                        o.width);
    if (o.width == 0) o.width = 1;
    if (o.dropout == 0) o.dropout = 0.2;
    CTN_TRY(ctn__zoo_default("mobilenet_v2", "classes", &o.classes, 1000));
    CTN_TRY(ctn__zoo_default("mobilenet_v2", "in_channels", &o.in_channels, 3));
    CTN_TRY(ctn__zoo_begin(m, ctx, mobilenet_forward, sizeof(mobilenet), CTN__ALL_REFS(mobilenet)));
    return ctn__zoo_end(m, fill_mobilenet(*m, &o));
}
