/* SPDX-License-Identifier: Apache-2.0
 *
 * The ResNet for CIFAR of depth 6 n + 2: three stages of n basic blocks, with the shortcuts of
 * option A (every second pixel, channels padded with zeros on both sides) and the names and
 * initial values of the common PyTorch version.
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *conv1, *bn1, *conv2, *bn2;
    int64_t stride;
    int64_t before, after; /* channels of zeros before and after those of x in the shortcut */
} block;

typedef struct {
    ctn_module *conv1, *bn1, *layer[3], *linear;
} resnet;

static ctn_tensor *shortcut(const char *at, const block *b, ctn_tensor *x)
{
    if (b->stride > 1) /* a window of one pixel: subsampling */
        x = ctn_avg_pool_at(at, x, CTN_OPT(ctn_pool_opt, .kernel = {1}, .stride = {b->stride}));
    if (b->before == 0 && b->after == 0) return x;
    return ctn_pad_at(at, x, (const int64_t[]){0, b->before, 0, 0},
                      (const int64_t[]){0, b->after, 0, 0}, 0);
}

static ctn_tensor *block_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const block *b = self;
    const char *at = m->at;
    ctn_tensor *y = ctn_relu_at(at, ctn_call_at(at, b->bn1, ctn_call_at(at, b->conv1, x)));
    y = ctn_call_at(at, b->bn2, ctn_call_at(at, b->conv2, y));
    return ctn_relu_at(at, ctn_add_at(at, y, shortcut(at, b, x)));
}

/* A 3x3 convolution without bias; weights are normal with variance 2 / (in * 9). */
static ctn_status put_conv(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                           int64_t out, int64_t stride)
{
    const ctn_init *by_in = CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL);
    ctn_status st = ctn_conv_new(child, m->ctx, in, out, CTN_SHAPE(3, 3),
                                 CTN_OPT(ctn_conv_module_opt, .stride = {stride}, .pad = {1},
                                         .no_bias = 1, .weight = by_in));
    return ctn__zoo_put(m, name, st, child);
}

static ctn_status fill_block(ctn_module *m, int64_t in, int64_t out, int64_t stride)
{
    block *b = m->self;
    b->stride = stride;
    b->before = (out - in) / 2;
    b->after = out - in - b->before;
    CTN_TRY(put_conv(&b->conv1, m, "conv1", in, out, stride));
    CTN_TRY(ctn__zoo_norm(&b->bn1, m, "bn1", out));
    CTN_TRY(put_conv(&b->conv2, m, "conv2", out, out, 1));
    return ctn__zoo_norm(&b->bn2, m, "bn2", out);
}

static ctn_tensor *resnet_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const resnet *r = self;
    const char *at = m->at;
    x = ctn_relu_at(at, ctn_call_at(at, r->bn1, ctn_call_at(at, r->conv1, x)));
    for (int i = 0; i < 3; i++) x = ctn_call_at(at, r->layer[i], x);
    return ctn_call_at(at, r->linear, ctn__flatten(at, ctn_global_avg_pool_at(at, x)));
}

static ctn_status fill_resnet(ctn_module *m, const ctn_resnet_cifar_opt *o)
{
    resnet *r = m->self;
    static const char *const layer[] = {"layer1", "layer2", "layer3"};
    int64_t in = o->width;
    CTN_TRY(put_conv(&r->conv1, m, "conv1", o->in_channels, in, 1));
    CTN_TRY(ctn__zoo_norm(&r->bn1, m, "bn1", in));
    for (int s = 0; s < 3; s++) {
        CTN_TRY(ctn__zoo_put(m, layer[s], ctn_sequential_new(&r->layer[s], m->ctx, 0, NULL),
                             &r->layer[s]));
        for (int i = 0; i < (o->depth - 2) / 6; i++) {
            ctn_module *b = NULL;
            CTN_TRY(ctn__zoo_put_at(r->layer[s], i,
                                    ctn__zoo_begin(&b, m->ctx, block_forward, sizeof(block),
                                                   CTN__REFS(block, stride)),
                                    &b));
            CTN_TRY(fill_block(b, in, o->width << s, s > 0 && i == 0 ? 2 : 1));
            in = o->width << s;
        }
    }
    const ctn_init *by_in = CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL);
    return ctn__zoo_put(m, "linear",
                        ctn_linear_new(&r->linear, m->ctx, in, o->classes,
                                       CTN_OPT(ctn_linear_opt, .weight = by_in)),
                        &r->linear);
}

ctn_status ctn_zoo_resnet_cifar(ctn_module **m, ctn_context *ctx, const ctn_resnet_cifar_opt *opt)
{
    ctn_resnet_cifar_opt o;
    if (!m) return ctn_fail(CTN_EARG, "resnet_cifar: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("resnet_cifar", &o, sizeof o, opt));
    if (o.depth == 0) o.depth = 20;
    if (o.depth < 8 || (o.depth - 2) % 6)
        return ctn_fail(CTN_EARG, "resnet_cifar: depth is %d, expected 6 n + 2: 20, 32, 44, 56",
                        o.depth);
    CTN_TRY(ctn__zoo_default("resnet_cifar", "classes", &o.classes, 10));
    CTN_TRY(ctn__zoo_default("resnet_cifar", "in_channels", &o.in_channels, 3));
    CTN_TRY(ctn__zoo_default("resnet_cifar", "width", &o.width, 16));
    CTN_TRY(ctn__zoo_begin(m, ctx, resnet_forward, sizeof(resnet), CTN__ALL_REFS(resnet)));
    return ctn__zoo_end(m, fill_resnet(*m, &o));
}
