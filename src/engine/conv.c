/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolution by oneDNN: forward, and the two adjoints that are its gradients. Activations have the
 * layout that the plan chose. The kernel chooses the layout of the weights, which is reported back.
 */
#include "engine/blas.h"

typedef struct {
    dnnl_memory_desc_t x, w, b, y, extra[3]; /* extra: scale, shift, residual */
    dnnl_dims_t stride, dilate, pad, pad_end;
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t forward; /* hint for the adjoints */
} setting;

static void release(setting *s)
{
    dnnl_memory_desc_t md[7] = {s->x, s->w, s->b, s->y, s->extra[0], s->extra[1], s->extra[2]};
    for (int i = 0; i < 7; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    if (s->attr) dnnl_primitive_attr_destroy(s->attr);
    if (s->forward) dnnl_primitive_desc_destroy(s->forward);
}

/* w with dimensions only; oneDNN chooses the layout. */
static dnnl_status_t any_weights(dnnl_memory_desc_t *md, const ctn_desc *w, int64_t groups)
{
    dnnl_dims_t dims;
    int k = groups > 1;
    dims[0] = groups;
    dims[k] = w->dim[0] / groups;
    for (int i = 1; i < w->ndim; i++) dims[k + i] = w->dim[i];
    return dnnl_memory_desc_create_with_tag(md, w->ndim + k, dims, ctn__dnnl_type(w->dtype),
                                            dnnl_format_tag_any);
}

/* d (C) as (1,C,1,...), with as many dimensions as y. */
static ctn_desc per_channel(const ctn_desc *d, const ctn_desc *y)
{
    ctn_desc r = {.dtype = d->dtype, .ndim = y->ndim};
    for (int i = 0; i < y->ndim; i++) r.dim[i] = i == 1 ? d->dim[0] : 1;
    ctn__plain(&r);
    return r;
}

static ctn_status append_post(setting *t, const ctn__engine *e, const ctn_desc *y,
                              const ctn__conv_post *post)
{
    ctn_status st = CTN_OK;
    dnnl_post_ops_t ops = NULL;
    ctn_desc scale = per_channel(post->scale, y), shift = per_channel(post->shift, y);
    CTN_TRY(ctn__dnnl_desc(&t->extra[0], e, &scale));
    CTN_TRY(ctn__dnnl_desc(&t->extra[1], e, &shift));
    if (post->residual) CTN_TRY(ctn__dnnl_desc(&t->extra[2], e, post->residual));
    CTN__DNNL(st, done, "convolution", dnnl_post_ops_create(&ops));
    CTN__DNNL(st, done, "convolution",
              dnnl_post_ops_append_binary(ops, dnnl_binary_mul, t->extra[0]));
    for (int i = 1; i < 3; i++)
        if (t->extra[i])
            CTN__DNNL(st, done, "convolution",
                      dnnl_post_ops_append_binary(ops, dnnl_binary_add, t->extra[i]));
    CTN__DNNL(st, done, "convolution", ctn__dnnl_append(ops, post->act));
    CTN__DNNL(st, done, "convolution", dnnl_primitive_attr_set_post_ops(t->attr, ops));
done:
    if (ops) dnnl_post_ops_destroy(ops);
    return st;
}

/* An image with one channel or one pixel is both row-major and channels-last. oneDNN needs the
 * strides that match the other operand. */
static ctn_desc named(const ctn_desc *d, bool last)
{
    ctn_desc r = *d;
    if (last) ctn__channels_last(&r);
    else if (ctn__is_plain(d)) ctn__plain(&r);
    return r;
}

static ctn_status set_up(setting *t, const ctn__engine *e, const ctn__conv_shape *s,
                         const ctn_desc *x, const ctn_desc *w, const ctn_desc *bias,
                         const ctn_desc *y, const ctn__conv_post *post)
{
    ctn_status st = CTN_OK;
    for (int i = 0; i < x->ndim - 2; i++) {
        t->stride[i] = s->stride[i];
        t->dilate[i] = s->dilation[i] - 1;
        t->pad[i] = s->pad[i];
        t->pad_end[i] = s->pad_end[i];
    }
    const bool last = ctn__is_channels_last(x) && ctn__is_channels_last(y);
    const ctn_desc nx = named(x, last), ny = named(y, last);
    CTN_TRY(ctn__dnnl_desc(&t->x, e, &nx));
    CTN_TRY(ctn__dnnl_desc(&t->y, e, &ny));
    if (bias) CTN_TRY(ctn__dnnl_desc(&t->b, e, bias));
    CTN_TRY(ctn__dnnl_attr(&t->attr, post->scale ? CTN__ELT_NONE : post->act));
    if (post->scale) CTN_TRY(append_post(t, e, y, post));
    CTN__DNNL(st, done, "convolution", any_weights(&t->w, w, s->groups));
done:
    return st;
}

static dnnl_status_t create(dnnl_primitive_desc_t *pd, const setting *t, const ctn__engine *e,
                            ctn__conv_kind kind)
{
    const dnnl_alg_kind_t alg = dnnl_convolution_direct;
    switch (kind) {
    case CTN__CONV_DATA:
        return dnnl_convolution_backward_data_primitive_desc_create(pd, e->engine, alg, t->x, t->w,
                                                                    t->y, t->stride, t->dilate,
                                                                    t->pad, t->pad_end, t->forward,
                                                                    t->attr);
    case CTN__CONV_WEIGHTS:
        return dnnl_convolution_backward_weights_primitive_desc_create(pd, e->engine, alg, t->x,
                                                                       t->w, NULL, t->y, t->stride,
                                                                       t->dilate, t->pad,
                                                                       t->pad_end, t->forward,
                                                                       t->attr);
    case CTN__CONV_FORWARD: break;
    }
    return dnnl_convolution_forward_primitive_desc_create(pd, e->engine, dnnl_forward_training, alg,
                                                          t->x, t->w, t->b, t->y, t->stride,
                                                          t->dilate, t->pad, t->pad_end, t->attr);
}

/* The adjoints need a forward descriptor with one type as a hint; oneDNN has none for f32 weights
 * with bf16 images. */
static ctn_status make_hint(setting *t, const ctn__engine *e, const ctn__conv_shape *s,
                            const ctn_desc *w, const ctn_desc *x)
{
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t kept = t->w;
    ctn_desc same = *w;
    same.dtype = x->dtype;
    t->w = NULL;
    CTN__DNNL(st, done, "convolution", any_weights(&t->w, &same, s->groups));
    CTN__DNNL(st, done, "convolution", create(&t->forward, t, e, CTN__CONV_FORWARD));
done:
    if (t->w) dnnl_memory_desc_destroy(t->w);
    t->w = kept;
    return st;
}

/* oneDNN's primitive cache would return the first kernel of a description for its second. An
 * attribute that only affects integers keeps the two apart. oneDNN before 3.5 lacks this attribute,
 * so no second kernel is available there: dnnl_last_impl_reached. */
static dnnl_status_t mark_second(dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR > 3 || (DNNL_VERSION_MAJOR == 3 && DNNL_VERSION_MINOR >= 5)
    return dnnl_primitive_attr_set_fpmath_mode_v2(attr, dnnl_fpmath_mode_strict, 1);
#else
    (void)attr;
    return dnnl_last_impl_reached;
#endif
}

/* Advances pd to the next kernel in oneDNN's list. False: none, or one of its reference or gemm
 * kernels, which are never faster. */
static bool next_kernel(dnnl_primitive_desc_t pd)
{
    if (dnnl_primitive_desc_next_impl(pd) != dnnl_success || ctn__dnnl_settle(pd) != dnnl_success)
        return false;
    return !strstr(ctn__dnnl_kernel(pd), "ref") && !strstr(ctn__dnnl_kernel(pd), "gemm");
}

/* oneDNN 3.7 gathers the pixels of a strided 1x1 convolution in full vectors of 16 channels. If
 * the last vector is not full, it writes into the next thread's part and beyond the end: wrong
 * sums or a hang. */
static bool gathers_beyond(const ctn__conv_shape *s, const ctn_desc *x, const ctn_desc *w)
{
    bool strides = false;
    for (int i = 2; i < w->ndim; i++) {
        if (w->dim[i] != 1) return false;
        strides |= s->stride[i - 2] > 1;
    }
    return strides && x->dim[1] / s->groups % 16 != 0;
}

/* Of oneDNN's kernels, those that generate code and those with products take time that grows with
 * the square of the stride: minutes for a stride of 32,767. */
static bool strides_far(const ctn__conv_shape *s, const ctn_desc *w)
{
    enum { FAR = 256 };
    for (int i = 2; i < w->ndim; i++)
        if (s->stride[i - 2] > FAR) return true;
    return false;
}

/* The kernels of oneDNN 3.7 that are made of small products confuse the steps of a strided
 * convolution of one channel: wrong results, and writes beyond the end. */
static bool confuses_steps(const ctn__conv_shape *s, const ctn_desc *x)
{
    bool strides = false;
    for (int i = 2; i < x->ndim; i++) strides |= s->stride[i - 2] > 1;
    return strides && x->dim[1] == s->groups;
}

/* oneDNN 3.7 leaves out depths of a three-dimensional kernel's gradient if the last position of the
 * kernel reaches further beyond the end than a step. */
static bool loses_depths(const ctn__conv_shape *s, const ctn_desc *x, const ctn_desc *w,
                         const ctn_desc *y)
{
    if (x->ndim != 5) return false;
    const int64_t last = (y->dim[2] - 1) * s->stride[0] - s->pad[0];
    return last + (w->dim[2] - 1) * s->dilation[0] + 1 - x->dim[2] > s->stride[0];
}

/* Advances pd to its first kernel without this in its name, which may be that of several. */
static dnnl_status_t skip_kernels(dnnl_primitive_desc_t pd, const char *name)
{
    dnnl_status_t r = dnnl_success;
    while (r == dnnl_success && strstr(ctn__dnnl_kernel(pd), name))
        r = dnnl_primitive_desc_next_impl(pd);
    return r;
}

/* Advances pd to its plain loops. */
static dnnl_status_t skip_to_loops(dnnl_primitive_desc_t pd)
{
    dnnl_status_t r = dnnl_success;
    while (r == dnnl_success && !strstr(ctn__dnnl_kernel(pd), "ref"))
        r = dnnl_primitive_desc_next_impl(pd);
    return r;
}

ctn_status ctn__prim_conv(ctn__prim **out, ctn__engine *e, ctn__conv_kind kind,
                          const ctn__conv_shape *s, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y, const ctn__conv_post *post,
                          bool second)
{
    int args[7] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    if (kind == CTN__CONV_DATA) args[0] = DNNL_ARG_DIFF_SRC;
    if (kind == CTN__CONV_WEIGHTS) args[1] = DNNL_ARG_DIFF_WEIGHTS;
    if (kind != CTN__CONV_FORWARD) args[3] = DNNL_ARG_DIFF_DST;
    for (int i = 0; i < 3; i++) args[4 + i] = DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1;
    ctn_status st = CTN_OK;
    setting t = {NULL};
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    CTN_TRY_GOTO(st, done, set_up(&t, e, s, x, w, bias, y, post));
    if (second) {
        const dnnl_status_t r = mark_second(t.attr);
        if (r == dnnl_last_impl_reached) goto done;
        CTN__DNNL(st, done, "convolution", r);
    }
    if (kind != CTN__CONV_FORWARD) CTN_TRY_GOTO(st, done, make_hint(&t, e, s, w, x));
    CTN__DNNL(st, done, "convolution", create(&pd, &t, e, kind));
    CTN__DNNL(st, done, "convolution", ctn__dnnl_settle(pd));
    if (gathers_beyond(s, x, w)) CTN__DNNL(st, done, "convolution", skip_kernels(pd, "jit_1x1"));
    if (confuses_steps(s, x)) CTN__DNNL(st, done, "convolution", skip_kernels(pd, "brg"));
    if (kind == CTN__CONV_WEIGHTS && loses_depths(s, x, w, y))
        CTN__DNNL(st, done, "convolution", skip_kernels(pd, "jit"));
    if (strides_far(s, w)) CTN__DNNL(st, done, "convolution", skip_to_loops(pd));
    if (second && (!next_kernel(pd) || confuses_steps(s, x))) goto done;
    if (!strstr(ctn__dnnl_kernel(pd), "dw")) { /* oneDNN's own kernels for groups of one channel */
        CTN_TRY_GOTO(st, done, ctn__depthwise(out, e, kind, s, x, w, bias, y, post));
        if (*out) goto done;
    }
    if (ctn__dnnl_is_loops(pd) && ctn__blas_name()) {
        CTN_TRY_GOTO(st, done, ctn__gemm_conv(out, e, kind, s, x, w, bias, y, post));
        if (*out) goto done;
    }
    const_dnnl_memory_desc_t wanted = dnnl_primitive_desc_query_md(
        pd, kind == CTN__CONV_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
    dnnl_memory_desc_t plain = NULL;
    ctn_desc pw = *w;
    ctn__plain(&pw);
    st = s->groups > 1 ? ctn__dnnl_grouped(&plain, &pw, s->groups) : ctn__dnnl_desc(&plain, e, &pw);
    if (st == CTN_OK) {
        if (dnnl_memory_desc_equal(plain, wanted)) *w = pw;
        else st = ctn__dnnl_layout(e, w, wanted);
        dnnl_memory_desc_destroy(plain);
    }
    if (st < 0) goto done;
    const const_dnnl_memory_desc_t mds[7] = {t.x,        wanted,     t.b,       t.y,
                                             t.extra[0], t.extra[1], t.extra[2]};
    st = ctn__prim_make(out, e, pd, 7, args, mds, "convolution");
    pd = NULL; /* ctn__prim_make owns it, even if it failed */
    if (st == CTN_OK) (*out)->bytes = CTN__CONV_BYTES;
done:
    if (pd) dnnl_primitive_desc_destroy(pd);
    release(&t);
    return st;
}
