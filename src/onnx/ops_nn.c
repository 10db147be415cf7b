/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products, convolutions, normalisation layers and dropout.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "onnx/kinds.h"
#include "onnx/window.h"

static ctn_tensor *optional(ctn__onnx_call *c, int i)
{
    return ctn__onnx_has(c, i) ? ctn__onnx_in(c, i) : NULL;
}

/* ---- products -------------------------------------------------------------------------------- */

/* y' = alpha A B + beta C; with B transposed and a vector C this is a linear layer. */
ctn_status ctn__onnx_do_gemm(ctn__onnx_call *c)
{
    const char *at = c->at;
    const int ta = ctn__onnx_int(c, "transA", 0) != 0, tb = ctn__onnx_int(c, "transB", 0) != 0;
    const double alpha = ctn__onnx_float(c, "alpha", 1), beta = ctn__onnx_float(c, "beta", 1);
    ctn_tensor *a = ctn__onnx_in(c, 0), *b = ctn__onnx_in(c, 1), *bias = optional(c, 2);
    if (!a || !b || (ctn__onnx_has(c, 2) && !bias)) return ctn_error_status();
    const ctn_dtype type = a->d.dtype;
    a = ctn__onnx_real(at, a);
    b = ctn__onnx_real(at, b);
    if (bias) bias = ctn__onnx_real(at, bias);
    if (!ta && tb && alpha == 1 && beta == 1 && bias && b->d.ndim == 2 && bias->d.ndim == 1 &&
        bias->d.dim[0] == b->d.dim[0])
        return ctn__onnx_set(c, 0, ctn_cast_at(at, ctn_linear_at(at, a, b, bias), type));
    ctn_tensor *y = ctn_matmul_at(at, a, b, ta, tb);
    if (alpha != 1) y = ctn_scale_at(at, y, alpha);
    if (bias && beta != 1) bias = ctn_scale_at(at, bias, beta);
    if (bias) y = ctn_add_at(at, y, bias);
    return ctn__onnx_set(c, 0, y ? ctn_cast_at(at, y, type) : NULL);
}

/* A vector counts as a row on the left and as a column on the right. */
ctn_status ctn__onnx_do_matmul(ctn__onnx_call *c)
{
    const char *at = c->at;
    ctn_tensor *a = ctn__onnx_in(c, 0), *b = ctn__onnx_in(c, 1);
    if (!a || !b) return ctn_error_status();
    const ctn_dtype type = a->d.dtype;
    const bool row = a->d.ndim == 1, column = b->d.ndim == 1;
    a = ctn__onnx_real(at, a);
    b = ctn__onnx_real(at, b);
    if (row) a = ctn_unsqueeze_at(at, a, 0);
    if (column) b = ctn_unsqueeze_at(at, b, 1);
    ctn_tensor *y = ctn_matmul_at(at, a, b, 0, 0);
    if (row) y = ctn_squeeze_at(at, y, -2);
    if (column) y = ctn_squeeze_at(at, y, -1);
    return ctn__onnx_set(c, 0, y ? ctn_cast_at(at, y, type) : NULL);
}

ctn_status ctn__onnx_do_einsum(ctn__onnx_call *c)
{
    const Onnx__AttributeProto *a = ctn__onnx_attr(c->node, "equation");
    char text[256];
    size_t n = 0;
    ctn_tensor **x = ctn__onnx_memory(c->run, c->nin + 1, sizeof *x);
    if (!x) return ctn_error_status();
    if (!a || a->s.len >= sizeof text) return ctn__onnx_fail(c, CTN_EFORMAT, "no equation");
    for (size_t i = 0; i < a->s.len; i++)
        if (a->s.data[i] != ' ') text[n++] = (char)a->s.data[i];
    text[n] = 0;
    for (int i = 0; i < c->nin; i++) x[i] = ctn__onnx_in(c, i);
    return ctn__onnx_set(c, 0, ctn_einsum_at(c->at, text, c->nin, x));
}

ctn_status ctn__onnx_do_det(ctn__onnx_call *c)
{
    return ctn__onnx_set(c, 0, ctn_det_at(c->at, ctn__onnx_in(c, 0)));
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* Padding of 0 is a default in the options of a convolution. */
static int64_t pad_of(int64_t n)
{
    return n > 0 ? n : CTN_PAD_NONE;
}

static ctn_status window_of(ctn__onnx_call *c, const ctn_tensor *x, const ctn_tensor *weight,
                            ctn__onnx_window *w)
{
    if (weight->d.ndim != x->d.ndim)
        return ctn__onnx_fail(c, CTN_ESHAPE, "x has %d dimensions, the weight has %d", x->d.ndim,
                              weight->d.ndim);
    return ctn__onnx_window_of(c, &x->d, weight->d.dim + 2, w);
}

ctn_status ctn__onnx_do_conv(ctn__onnx_call *c)
{
    ctn__onnx_window w;
    ctn_tensor *x = ctn__onnx_in(c, 0), *weight = ctn__onnx_in(c, 1), *bias = optional(c, 2);
    if (!x || !weight || (ctn__onnx_has(c, 2) && !bias)) return ctn_error_status();
    CTN_TRY(window_of(c, x, weight, &w));
    ctn_conv_opt opt = {.struct_size = sizeof opt, .groups = ctn__onnx_int(c, "group", 1)};
    for (int i = 0; i < w.n; i++) {
        opt.stride[i] = w.stride[i];
        opt.dilation[i] = w.dilation[i];
        opt.pad[i] = pad_of(w.before[i]);
        opt.pad_end[i] = pad_of(w.after[i]);
    }
    return ctn__onnx_set(c, 0, ctn_conv_at(c->at, x, weight, bias, &opt));
}

/* The padding of a transposed convolution: given directly, or by the size of the result. A result
 * that is larger than the kernels reach is padded at its end. */
static ctn_status transposed_pads(ctn__onnx_call *c, const ctn_tensor *x, ctn__onnx_window *w,
                                  int64_t *more)
{
    int64_t size[CTN_MAX_SPATIAL], extra[CTN_MAX_SPATIAL] = {0};
    int n, ne;
    CTN_TRY(ctn__onnx_list(c, "output_shape", -1, size, CTN_MAX_SPATIAL, &n));
    CTN_TRY(ctn__onnx_list(c, "output_padding", -1, extra, CTN_MAX_SPATIAL, &ne));
    const bool same = ctn__onnx_text_is(c, "auto_pad", "SAME_UPPER", false) ||
                      ctn__onnx_text_is(c, "auto_pad", "SAME_LOWER", false);
    const bool upper = ctn__onnx_text_is(c, "auto_pad", "SAME_UPPER", false);
    for (int i = 0; i < w->n; i++) {
        more[i] = extra[i];
        if (extra[i] < 0 || extra[i] > CTN__ONNX_LARGE)
            return ctn__onnx_fail(c, CTN_ESHAPE, "output_padding %lld", (long long)extra[i]);
        if (n < w->n && !same) continue;
        const int64_t in = x->d.dim[2 + i], reach = ctn__onnx_times(in, w->stride[i]);
        const int64_t want = n == w->n ? size[i] : reach;
        if (want < 0 || want > CTN__ONNX_LARGE || reach > CTN__ONNX_LARGE)
            return ctn__onnx_fail(c, CTN_ESHAPE, "output_shape %lld", (long long)want);
        const int64_t full =
            (in - 1) * w->stride[i] + extra[i] + (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t total = full - want;
        const int64_t half = total / 2, rest = total - half;
        w->before[i] = total < 0 ? 0 : upper ? half : rest;
        w->after[i] = total < 0 ? 0 : total - w->before[i];
        if (total < 0) more[i] = extra[i] - total;
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_conv_transpose(ctn__onnx_call *c)
{
    ctn__onnx_window w;
    int64_t more[CTN_MAX_SPATIAL] = {0};
    ctn_tensor *x = ctn__onnx_in(c, 0), *weight = ctn__onnx_in(c, 1), *bias = optional(c, 2);
    if (!x || !weight || (ctn__onnx_has(c, 2) && !bias)) return ctn_error_status();
    CTN_TRY(window_of(c, x, weight, &w));
    CTN_TRY(transposed_pads(c, x, &w, more));
    ctn_conv_opt opt = {.struct_size = sizeof opt, .groups = ctn__onnx_int(c, "group", 1)};
    int64_t before[CTN_MAX_DIMS] = {0}, after[CTN_MAX_DIMS] = {0};
    bool pad = false;
    for (int i = 0; i < w.n; i++) {
        opt.stride[i] = w.stride[i];
        opt.dilation[i] = w.dilation[i];
        opt.pad[i] = pad_of(w.before[i]);
        opt.pad_end[i] = pad_of(w.after[i]);
        const bool fits = more[i] < w.stride[i] || more[i] < w.dilation[i];
        opt.out_pad[i] = pad_of(fits ? more[i] : 0);
        after[2 + i] = fits ? 0 : more[i];
        pad |= !fits;
    }
    if (!pad) return ctn__onnx_set(c, 0, ctn_conv_transpose_at(c->at, x, weight, bias, &opt));
    ctn_tensor *y = ctn_conv_transpose_at(c->at, x, weight, NULL, &opt);
    y = ctn_pad_at(c->at, y, before, after, 0);
    if (!y || !bias) return ctn__onnx_set(c, 0, y);
    int64_t dims[CTN_MAX_DIMS] = {1, bias->d.dim[0], 1, 1, 1};
    return ctn__onnx_set(c, 0, ctn_add_at(c->at, y, ctn_reshape_at(c->at, bias, y->d.ndim, dims)));
}

/* ---- normalisation layers -------------------------------------------------------------------- */

/* y = (x - mean) / sqrt(var + eps) scale + shift with given statistics (C). */
static ctn_tensor *fixed_norm(const char *at, ctn_tensor *x, ctn_tensor *scale, ctn_tensor *shift,
                              ctn_tensor *mean, ctn_tensor *var, double eps)
{
    ctn_tensor *a = ctn_mul_at(at, scale, ctn_rsqrt_at(at, ctn_shift_at(at, var, eps)));
    return ctn_channel_affine_at(at, x, a, ctn_sub_at(at, shift, ctn_mul_at(at, mean, a)));
}

/* Statistics of the batch, and the running statistics as further outputs. */
static ctn_status training_norm(ctn__onnx_call *c, ctn_tensor *x, ctn_tensor *const *p, double eps,
                                double keep)
{
    const char *at = c->at;
    int64_t axes[CTN_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < x->d.ndim; i++)
        if (i != 1) axes[n++] = i;
    ctn_tensor *mean = ctn_mean_at(at, x, n, axes, 0);
    ctn_tensor *var = ctn_variance_at(at, x, n, axes, 0, 0);
    CTN_TRY(ctn__onnx_set(c, 0, fixed_norm(at, x, p[0], p[1], mean, var, eps)));
    mean = ctn_add_at(at, ctn_scale_at(at, p[2], keep), ctn_scale_at(at, mean, 1 - keep));
    var = ctn_add_at(at, ctn_scale_at(at, p[3], keep), ctn_scale_at(at, var, 1 - keep));
    CTN_TRY(ctn__onnx_set(c, 1, mean));
    return ctn__onnx_set(c, 2, var);
}

static bool keeps_statistics(const ctn__batch_norm_hook *h, const ctn_var *scale,
                             const ctn_var *shift)
{
    const bool fixed = scale && shift && !scale->trainable && !shift->trainable;
    return h->statistics == CTN__NORM_FROZEN || (h->statistics == CTN__NORM_LIKE_PARAMS && fixed);
}

ctn_status ctn__onnx_do_batch_norm(ctn__onnx_call *c)
{
    const double eps = ctn__onnx_float(c, "epsilon", 1e-5);
    const double keep = ctn__onnx_float(c, "momentum", 0.9);
    ctn_tensor *x = ctn__onnx_in(c, 0);
    for (int i = 3; i < 5; i++)
        if (!ctn__onnx_has(c, i)) return ctn__onnx_fail(c, CTN_EFORMAT, "expected five inputs");
    ctn_var *mean = c->in[3]->var, *var = c->in[4]->var;
    const bool states = mean && var && mean->kind == CTN_STATE && var->kind == CTN_STATE;
    ctn_tensor *scale = ctn__onnx_in(c, 1), *shift = ctn__onnx_in(c, 2);
    if (!x || !scale || !shift) return ctn_error_status();
    if (states && !c->run->model->frozen) { /* the context decides about training */
        const ctn__batch_norm_hook *h = c->run->norm;
        const int fixed = keeps_statistics(h, c->in[1]->var, c->in[2]->var);
        const ctn_batch_norm_opt *opt =
            CTN_OPT(ctn_batch_norm_opt, .eps = eps, .momentum = 1 - keep, .frozen = fixed);
        for (int i = 1; i < 3 && i < c->nout; i++) CTN_TRY(ctn__onnx_set_value(c, i, c->in[2 + i]));
        return ctn__onnx_set(c, 0,
                             h->train && ctn_context_training(c->run->ctx) && !fixed
                                 ? h->train(h->user, c->at, x, scale, shift, mean, var, opt)
                                 : ctn_batch_norm_at(c->at, x, scale, shift, mean, var, opt));
    }
    ctn_tensor *p[4] = {scale, shift, ctn__onnx_in(c, 3), ctn__onnx_in(c, 4)};
    if (!p[2] || !p[3]) return ctn_error_status();
    if (ctn__onnx_int(c, "training_mode", 0)) return training_norm(c, x, p, eps, keep);
    return ctn__onnx_set(c, 0, fixed_norm(c->at, x, scale, shift, p[2], p[3], eps));
}

ctn_status ctn__onnx_do_instance_norm(ctn__onnx_call *c)
{
    return ctn__onnx_set(c, 0,
                         ctn_instance_norm_at(c->at, ctn__onnx_in(c, 0), ctn__onnx_in(c, 1),
                                              ctn__onnx_in(c, 2),
                                              ctn__onnx_float(c, "epsilon", 1e-5)));
}

/* Up to opset 20 there is one scale per group. */
static ctn_tensor *per_channel(ctn__onnx_call *c, int i, int64_t channels)
{
    ctn_tensor *t = ctn__onnx_in(c, i);
    if (!t || t->d.ndim != 1 || t->d.dim[0] == 0 || channels % t->d.dim[0] != 0) return t;
    const int64_t each = channels / t->d.dim[0];
    return each == 1 ? t : ctn_repeat_at(c->at, t, each, 0);
}

ctn_status ctn__onnx_do_group_norm(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x || x->d.ndim < 2) return ctn__onnx_fail(c, CTN_ESHAPE, "expected (N,C,...)");
    const int64_t C = x->d.dim[1];
    return ctn__onnx_set(c, 0,
                         ctn_group_norm_at(c->at, x, ctn__onnx_int(c, "num_groups", 1),
                                           per_channel(c, 1, C), per_channel(c, 2, C),
                                           ctn__onnx_float(c, "epsilon", 1e-5)));
}

ctn_status ctn__onnx_do_lrn(ctn__onnx_call *c)
{
    const int64_t size = ctn__onnx_int(c, "size", 1);
    const double alpha = ctn__onnx_float(c, "alpha", 0.0001) / (double)size;
    return ctn__onnx_set(c, 0,
                         ctn_local_response_norm_at(c->at, ctn__onnx_in(c, 0), size,
                                                    ctn__onnx_float(c, "bias", 1), alpha,
                                                    ctn__onnx_float(c, "beta", 0.75)));
}

/* ---- dropout --------------------------------------------------------------------------------- */

ctn_status ctn__onnx_do_dropout(ctn__onnx_call *c)
{
    if (!ctn__onnx_has(c, 0)) return ctn__onnx_fail(c, CTN_EFORMAT, "there is no input");
    double rate = ctn__onnx_float(c, "ratio", 0.5);
    CTN_TRY(ctn__onnx_one_number(c, 1, &rate));
    const bool active = c->ctx->training && !c->run->model->frozen && rate > 0;
    if (c->nout > 1 && c->out[1]) {
        if (active) return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "the mask is an output");
        const ctn__onnx_value *x = c->in[0];
        uint8_t *mask = ctn__onnx_set_host(c, 1, CTN_BOOL, x->ndim, x->dim);
        if (!mask) return ctn_error_status();
        memset(mask, 1, (size_t)ctn__onnx_count(x));
    }
    if (!active) return ctn__onnx_set_value(c, 0, c->in[0]);
    return ctn__onnx_set(c, 0, ctn_dropout_at(c->at, ctn__onnx_in(c, 0), rate));
}

#endif
