/* SPDX-License-Identifier: Apache-2.0
 *
 * Inception blocks: branches of convolutions with ReLU over the same input, joined along the
 * channels. The names are those of torchvision's GoogLeNet. A layer of a branch is a convolution
 * with a bias or, as `bn` beside it, batch normalisation.
 */
#include "nn/inception.h"

/* ---- a convolution with ReLU ----------------------------------------------------------------- */

typedef struct {
    ctn_module *conv, *bn; /* bn NULL: none */
} layer;

static ctn_tensor *layer_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const layer *l = self;
    x = ctn_call_at(m->at, l->conv, x);
    if (l->bn) x = ctn_call_at(m->at, l->bn, x);
    return ctn_relu_at(m->at, x);
}

static ctn_status fill_layer(ctn_module *m, const ctn__conv_relu *o)
{
    layer *l = m->self;
    const ctn_init *weight = o->batch_norm ? CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.01)
                                           : CTN_OPT(ctn_init, .kind = CTN_INIT_LECUN_UNIFORM);
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    const int64_t kernel = o->kernel, pad = kernel / 2;
    CTN_TRY(ctn__zoo_put(m, "conv",
                         ctn_conv_new(&l->conv, m->ctx, o->in, o->out, CTN_SHAPE(kernel, kernel),
                                      CTN_OPT(ctn_conv_module_opt, .stride = {o->stride},
                                              .pad = {pad}, .no_bias = o->batch_norm,
                                              .weight = weight, .bias = zero)),
                         &l->conv));
    if (!o->batch_norm) return CTN_OK;
    return ctn__zoo_put(m, "bn",
                        ctn_batch_norm_new(&l->bn, m->ctx, o->out,
                                           CTN_OPT(ctn_batch_norm_module_opt, .eps = 1e-3)),
                        &l->bn);
}

ctn_status ctn__conv_relu_new(ctn_module **m, ctn_context *ctx, const ctn__conv_relu *o)
{
    CTN_TRY(ctn__zoo_begin(m, ctx, layer_forward, sizeof(layer), CTN__ALL_REFS(layer)));
    return ctn__zoo_end(m, fill_layer(*m, o));
}

/* ---- branches -------------------------------------------------------------------------------- */

typedef struct {
    ctn_module *branch[4];
} block;

static ctn_tensor *block_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const block *b = self;
    ctn_tensor *y[4];
    int n = 0;
    for (int i = 0; i < 4; i++)
        if (b->branch[i] && !(y[n++] = ctn_call_at(m->at, b->branch[i], x))) return NULL;
    return ctn_concat_at(m->at, n, y, 1);
}

/* Add the next layer to a branch. *in becomes its channels. */
static ctn_status put(ctn_module *branch, int number, int64_t *in, int64_t out, int64_t kernel,
                      int64_t stride, bool batch_norm)
{
    ctn_module *l = NULL;
    const ctn__conv_relu o = {*in, out, kernel, stride, batch_norm};
    *in = out;
    return ctn__zoo_put_at(branch, number, ctn__conv_relu_new(&l, branch->ctx, &o), &l);
}

static ctn_status put_branch(ctn_module *m, int i)
{
    static const char *const name[] = {"branch1", "branch2", "branch3", "branch4"};
    block *b = m->self;
    return ctn__zoo_put(m, name[i], ctn_sequential_new(&b->branch[i], m->ctx, 0, NULL),
                        &b->branch[i]);
}

/* The first branch is a layer and not a sequence of one. */
static ctn_status put_first(ctn_module *m, int64_t in, int64_t out, bool batch_norm)
{
    block *b = m->self;
    const ctn__conv_relu o = {in, out, 1, 1, batch_norm};
    return ctn__zoo_put(m, "branch1", ctn__conv_relu_new(&b->branch[0], m->ctx, &o), &b->branch[0]);
}

/* A pooling and, unless out is 0, a 1x1 convolution. */
static ctn_status put_pool(ctn_module *m, int64_t in, int64_t out, int64_t stride, bool average,
                           bool batch_norm)
{
    const block *b = m->self;
    ctn_module *pool = NULL;
    const ctn_pool_opt *o = CTN_OPT(ctn_pool_opt, .kernel = {3}, .stride = {stride}, .pad = {1});
    CTN_TRY(put_branch(m, 3));
    CTN_TRY(ctn__zoo_put_at(b->branch[3], 0,
                            average ? ctn_avg_pool_new(&pool, m->ctx, o)
                                    : ctn_max_pool_new(&pool, m->ctx, o),
                            &pool));
    return out > 0 ? put(b->branch[3], 1, &in, out, 1, 1, batch_norm) : CTN_OK;
}

/* A 1x1 convolution and n others; the last one has the stride. */
static ctn_status put_reduced(ctn_module *m, int i, int64_t in, int64_t reduce, int64_t out, int n,
                              int64_t kernel, int64_t stride, bool batch_norm)
{
    const block *b = m->self;
    CTN_TRY(put_branch(m, i));
    CTN_TRY(put(b->branch[i], 0, &in, reduce, 1, 1, batch_norm));
    for (int k = 1; k <= n; k++)
        CTN_TRY(put(b->branch[i], k, &in, out, kernel, k == n ? stride : 1, batch_norm));
    return CTN_OK;
}

static ctn_status begin(ctn_module **m, ctn_context *ctx, const char *who, int64_t channels, int n,
                        const int64_t *sizes)
{
    bool ok = channels > 0;
    for (int i = 0; i < n; i++) ok &= sizes[i] > 0;
    if (!ok)
        return ctn_fail(CTN_EARG, "%s: channels is %lld; all numbers of channels must be positive",
                        who, (long long)channels);
    return ctn__zoo_begin(m, ctx, block_forward, sizeof(block), CTN__ALL_REFS(block));
}

/* ---- the two blocks -------------------------------------------------------------------------- */

static ctn_status fill_inception(ctn_module *m, int64_t in, const ctn_inception_opt *o)
{
    const bool bn = o->batch_norm != 0;
    CTN_TRY(put_first(m, in, o->out1, bn));
    CTN_TRY(put_reduced(m, 1, in, o->reduce3, o->out3, 1, 3, 1, bn));
    CTN_TRY(put_reduced(m, 2, in, o->reduce5, o->out5, 1, bn ? 3 : 5, 1, bn));
    return put_pool(m, in, o->pool, 1, false, bn);
}

ctn_status ctn_inception_new(ctn_module **m, ctn_context *ctx, int64_t channels,
                             const ctn_inception_opt *opt)
{
    ctn_inception_opt o;
    if (!m) return ctn_fail(CTN_EARG, "inception_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("inception_new", &o, sizeof o, opt));
    CTN_TRY(begin(m, ctx, "inception_new", channels, 6,
                  (const int64_t[]){o.out1, o.reduce3, o.out3, o.reduce5, o.out5, o.pool}));
    return ctn__zoo_end(m, fill_inception(*m, channels, &o));
}

static ctn_status fill_inception_bn(ctn_module *m, int64_t in, const ctn_inception_bn_opt *o)
{
    if (o->out1 > 0) CTN_TRY(put_first(m, in, o->out1, true));
    CTN_TRY(put_reduced(m, 1, in, o->reduce3, o->out3, 1, 3, o->stride, true));
    CTN_TRY(put_reduced(m, 2, in, o->reduce33, o->out33, 2, 3, o->stride, true));
    return put_pool(m, in, o->pool, o->stride, o->average != 0, true);
}

ctn_status ctn_inception_bn_new(ctn_module **m, ctn_context *ctx, int64_t channels,
                                const ctn_inception_bn_opt *opt)
{
    ctn_inception_bn_opt o;
    if (!m) return ctn_fail(CTN_EARG, "inception_bn_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("inception_bn_new", &o, sizeof o, opt));
    if (o.stride == 0) o.stride = 1;
    if (o.stride < 0 || o.out1 < 0 || o.pool < 0 || (o.stride > 1 && o.out1 > 0))
        return ctn_fail(CTN_EARG,
                        "inception_bn_new: out1 is %lld, pool is %lld, stride is %lld; they must "
                        "not be negative, and out1 must be 0 with a stride",
                        (long long)o.out1, (long long)o.pool, (long long)o.stride);
    CTN_TRY(begin(m, ctx, "inception_bn_new", channels, 4,
                  (const int64_t[]){o.reduce3, o.out3, o.reduce33, o.out33}));
    return ctn__zoo_end(m, fill_inception_bn(*m, channels, &o));
}
