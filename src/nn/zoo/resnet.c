/* SPDX-License-Identifier: Apache-2.0
 *
 * ResNet-18 to -152 with torchvision's names and initial values. A block is
 *     relu(bn(conv(... relu(bn(conv(x))) ...)) + shortcut(x))
 * with the stride in its first 3x3 convolution. Basic blocks have two 3x3 convolutions, bottlenecks
 * 1x1, 3x3, 1x1.
 */
#include "nn/zoo/zoo.h"

typedef struct {
    ctn_module *conv[3], *bn[3];
    ctn_module *shortcut; /* NULL: x itself */
    int n;                /* number of convolutions */
} block;

typedef struct {
    ctn_module *conv1, *bn1, *layer[4], *fc;
} resnet;

static const struct {
    int depth, blocks[4];
    bool bottleneck;
} depths[] = {
    {18, {2, 2, 2, 2}, false},  {34, {3, 4, 6, 3}, false},  {50, {3, 4, 6, 3}, true},
    {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true},
};

static ctn_tensor *block_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const block *b = self;
    const char *at = m->at;
    ctn_tensor *y = x;
    for (int i = 0; i < b->n; i++) {
        y = ctn_call_at(at, b->bn[i], ctn_call_at(at, b->conv[i], y));
        if (i + 1 < b->n) y = ctn_relu_at(at, y);
    }
    if (b->shortcut) x = ctn_call_at(at, b->shortcut, x);
    return ctn_relu_at(at, ctn_add_at(at, y, x));
}

static ctn_status fill_shortcut(ctn_module *m, int64_t in, int64_t out, int64_t stride)
{
    CTN_TRY(ctn__zoo_conv(NULL, m, "0", in, out, 1, stride, 1));
    return ctn__zoo_norm(NULL, m, "1", out);
}

static ctn_status fill_block(ctn_module *m, bool bottleneck, int64_t in, int64_t width,
                             int64_t stride)
{
    block *b = m->self;
    const int64_t out = bottleneck ? 4 * width : width;
    static const char *const conv[] = {"conv1", "conv2", "conv3"}, *const bn[] = {"bn1", "bn2",
                                                                                  "bn3"};
    const int n = bottleneck ? 3 : 2;
    b->n = n;
    int64_t from = in;
    for (int i = 0; i < n; i++) {
        const bool strided = i == (bottleneck ? 1 : 0), last = i + 1 == n;
        const int64_t to = last ? out : width; /* channels */
        const int64_t kernel = bottleneck && i != 1 ? 1 : 3;
        CTN_TRY(ctn__zoo_conv(&b->conv[i], m, conv[i], from, to, kernel, strided ? stride : 1, 1));
        CTN_TRY(ctn__zoo_norm(&b->bn[i], m, bn[i], to));
        from = to;
    }
    if (stride == 1 && in == out) return CTN_OK;
    CTN_TRY(ctn__zoo_put(m, "downsample", ctn_sequential_new(&b->shortcut, m->ctx, 0, NULL),
                         &b->shortcut));
    return fill_shortcut(b->shortcut, in, out, stride);
}

/* Add n blocks, the first of them with the stride. *in becomes the channels of the result. */
static ctn_status fill_layer(ctn_module *m, int n, bool bottleneck, int64_t *in, int64_t width,
                             int64_t stride)
{
    for (int i = 0; i < n; i++) {
        ctn_module *b = NULL;
        CTN_TRY(ctn__zoo_put_at(m, i,
                                ctn__zoo_begin(&b, m->ctx, block_forward, sizeof(block),
                                               CTN__REFS(block, n)),
                                &b));
        CTN_TRY(fill_block(b, bottleneck, *in, width, i == 0 ? stride : 1));
        *in = bottleneck ? 4 * width : width;
    }
    return CTN_OK;
}

static ctn_tensor *resnet_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const resnet *r = self;
    const char *at = m->at;
    x = ctn_relu_at(at, ctn_call_at(at, r->bn1, ctn_call_at(at, r->conv1, x)));
    x = ctn_max_pool_at(at, x, CTN_OPT(ctn_pool_opt, .kernel = {3}, .stride = {2}, .pad = {1}));
    for (int i = 0; i < 4; i++) x = ctn_call_at(at, r->layer[i], x);
    return ctn_call_at(at, r->fc, ctn__flatten(at, ctn_global_avg_pool_at(at, x)));
}

static ctn_status fill_resnet(ctn_module *m, const ctn_resnet_opt *o, size_t which)
{
    resnet *r = m->self;
    static const char *const layer[] = {"layer1", "layer2", "layer3", "layer4"};
    int64_t channels = o->width;
    CTN_TRY(ctn__zoo_conv(&r->conv1, m, "conv1", o->in_channels, channels, 7, 2, 1));
    CTN_TRY(ctn__zoo_norm(&r->bn1, m, "bn1", channels));
    for (int i = 0; i < 4; i++) {
        CTN_TRY(ctn__zoo_put(m, layer[i], ctn_sequential_new(&r->layer[i], m->ctx, 0, NULL),
                             &r->layer[i]));
        CTN_TRY(fill_layer(r->layer[i], depths[which].blocks[i], depths[which].bottleneck,
                           &channels, o->width << i, i == 0 ? 1 : 2));
    }
    return ctn__zoo_put(m, "fc", ctn_linear_new(&r->fc, m->ctx, channels, o->classes, NULL),
                        &r->fc);
}

ctn_status ctn_zoo_resnet(ctn_module **m, ctn_context *ctx, const ctn_resnet_opt *opt)
{
    ctn_resnet_opt o;
    size_t which = 0, n = sizeof depths / sizeof *depths;
    if (!m) return ctn_fail(CTN_EARG, "resnet: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("resnet", &o, sizeof o, opt));
    if (o.depth == 0) o.depth = 50;
    while (which < n && depths[which].depth != o.depth) which++;
    if (which == n)
        return ctn_fail(CTN_EARG, "resnet: depth is %d, expected 18, 34, 50, 101 or 152", o.depth);
    CTN_TRY(ctn__zoo_default("resnet", "classes", &o.classes, 1000));
    CTN_TRY(ctn__zoo_default("resnet", "in_channels", &o.in_channels, 3));
    CTN_TRY(ctn__zoo_default("resnet", "width", &o.width, 64));
    CTN_TRY(ctn__zoo_begin(m, ctx, resnet_forward, sizeof(resnet), CTN__ALL_REFS(resnet)));
    return ctn__zoo_end(m, fill_resnet(*m, &o, which));
}
