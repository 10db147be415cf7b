/* SPDX-License-Identifier: Apache-2.0
 *
 * A multilayer perceptron, and LeNet-5.
 */
#include "nn/zoo/zoo.h"

static ctn_status fill_mlp(ctn_module *m, const ctn_mlp_opt *o)
{
    ctn_module *c = NULL;
    int at = 0;
    for (int i = 0; i + 1 < o->n; i++) {
        if (i > 0)
            CTN_TRY(ctn__zoo_put_at(m, at++, ctn_activation_new(&c, m->ctx, o->activation), &c));
        if (i > 0 && o->dropout != 0)
            CTN_TRY(ctn__zoo_put_at(m, at++, ctn_dropout_new(&c, m->ctx, o->dropout), &c));
        CTN_TRY(ctn__zoo_put_at(m, at++,
                                ctn_linear_new(&c, m->ctx, o->size[i], o->size[i + 1], NULL), &c));
    }
    return CTN_OK;
}

ctn_status ctn_zoo_mlp(ctn_module **m, ctn_context *ctx, const ctn_mlp_opt *opt)
{
    static const int64_t usual[] = {784, 1000, 1000, 10};
    ctn_mlp_opt o;
    if (!m) return ctn_fail(CTN_EARG, "mlp: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("mlp", &o, sizeof o, opt));
    if (o.n == 0 && !o.size) {
        o.n = 4;
        o.size = usual;
    }
    if (o.n < 2 || !o.size)
        return ctn_fail(CTN_EARG, "mlp: got %d sizes, expected at least 2 (inputs and outputs)",
                        o.n);
    if (!o.activation) o.activation = ctn_relu_at;
    CTN_TRY(ctn_sequential_new(m, ctx, 0, NULL));
    return ctn__zoo_end(m, fill_mlp(*m, &o));
}

typedef struct {
    ctn_module *conv[2], *fc[3];
} lenet;

static ctn_tensor *lenet_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const lenet *l = self;
    const char *at = m->at;
    for (int i = 0; i < 2; i++) {
        x = ctn_relu_at(at, ctn_call_at(at, l->conv[i], x));
        x = ctn_max_pool_at(at, x, CTN_OPT(ctn_pool_opt, .kernel = {2}));
    }
    x = ctn_relu_at(at, ctn_call_at(at, l->fc[0], ctn__flatten(at, x)));
    x = ctn_relu_at(at, ctn_call_at(at, l->fc[1], x));
    return ctn_call_at(at, l->fc[2], x);
}

static ctn_status fill_lenet(ctn_module *m, const ctn_lenet5_opt *o)
{
    lenet *l = m->self;
    static const char *const conv[] = {"conv1", "conv2"}, *const fc[] = {"fc1", "fc2", "fc3"};
    const int64_t channels[] = {o->in_channels, 6, 16}, size[] = {16 * 5 * 5, 120, 84, o->classes};
    for (int i = 0; i < 2; i++) /* the first is padded: 28 -> 28 -> 14 -> 10 -> 5 */
        CTN_TRY(ctn__zoo_put(m, conv[i],
                             ctn_conv_new(&l->conv[i], m->ctx, channels[i], channels[i + 1],
                                          CTN_SHAPE(5, 5),
                                          CTN_OPT(ctn_conv_module_opt, .pad = {i == 0 ? 2 : 0})),
                             &l->conv[i]));
    for (int i = 0; i < 3; i++)
        CTN_TRY(ctn__zoo_put(m, fc[i],
                             ctn_linear_new(&l->fc[i], m->ctx, size[i], size[i + 1], NULL),
                             &l->fc[i]));
    return CTN_OK;
}

ctn_status ctn_zoo_lenet5(ctn_module **m, ctn_context *ctx, const ctn_lenet5_opt *opt)
{
    ctn_lenet5_opt o;
    if (!m) return ctn_fail(CTN_EARG, "lenet5: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("lenet5", &o, sizeof o, opt));
    CTN_TRY(ctn__zoo_default("lenet5", "classes", &o.classes, 10));
    CTN_TRY(ctn__zoo_default("lenet5", "in_channels", &o.in_channels, 1));
    CTN_TRY(ctn__zoo_begin(m, ctx, lenet_forward, sizeof(lenet), CTN__ALL_REFS(lenet)));
    return ctn__zoo_end(m, fill_lenet(*m, &o));
}
