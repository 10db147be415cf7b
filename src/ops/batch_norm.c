/* SPDX-License-Identifier: Apache-2.0
 *
 * batch_norm: y = act(h scale + shift + residual), h = (x - m) r, with m the mean of a channel,
 * v its variance and r = 1/sqrt(v + eps), over the M elements of the channel in this batch. The
 * other outputs are m, r and the running statistics after this batch: (1 - momentum) old +
 * momentum new. The new variance is divided by M - 1 (by M if that is 0). Without elements the
 * statistics do not change. Gradient: with g = (gy + gy2) where y > 0,
 *   gshift = sum(g),  gscale = sum(g h),  gx = scale r (g - gshift / M - h gscale / M)
 * Only fusion adds act, residual and gy2 (JOIN); recorded calls have none of them. If there was
 * no residual, batch_norm_grad_x does not read y but computes its sign from x and `shift`. To
 * make that exact, p and q of y = x p + q are computed from m and r as rounded in the outputs.
 * The kernels are in engine/bnorm.h.
 */
#include "engine/bnorm.h"

#include <math.h>

#include "ops/common/batch_norm.h"

/* batch_norm: ACT is 0 (none) or 1 (relu); ADD is 1 if there is a residual. batch_norm_grad: ACT
 * is 1 if y is an input; JOIN is 1 if gy2 is. batch_norm_grad_x: ACT is always BY_X, and shift
 * takes the position of y. It is an op of its own because masks of spatial operands go by
 * position. */
enum { ACT, ADD, JOIN = ADD, NATTR };
enum { BY_X = 2 };
enum { X, SCALE, SHIFT, RMEAN, RVAR, RESIDUAL };      /* inputs of batch_norm */
enum { Y, MEAN, RSTD, NEW_MEAN, NEW_VAR, NOUT };      /* its outputs */
enum { EPS, MOMENTUM, NSCALAR };                      /* its scalars */
enum { G_GY, G_X, G_MEAN, G_RSTD, G_SCALE, G_FIRST }; /* inputs of batch_norm_grad */
enum { G_GX, G_GSCALE, G_GSHIFT, G_G, G_NOUT };       /* its outputs */
/* Inputs of shape (N,C,...): in batch_norm_grad, y and gy2 follow G_SCALE; in batch_norm_grad_x,
 * shift and gy2 do. */
enum {
    G_SPATIAL = 1u << G_GY | 1u << G_X | 3u << G_FIRST,
    G_SPATIAL_X = 1u << G_GY | 1u << G_X | 2u << G_FIRST
};

static const char *const attr_names[] = {"act", "add"};
static const char *const grad_attr_names[] = {"act", "join"};

/* ---- shapes ---------------------------------------------------------------------------------- */

/* Check that the inputs in the mask `spatial` are like x, the others (C), and all of one type. */
static ctn_status check(const ctn_infer_args *a, const ctn_desc *x, uint32_t spatial)
{
    char tx[128], tv[128];
    if (x->ndim < 2)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, expected (N,C,...)", a->name,
                        ctn__shape_text(x, tx, sizeof tx));
    ctn_desc c = {.dtype = x->dtype, .ndim = 1, .dim = {x->dim[1]}};
    for (int i = 0; i < a->nin; i++) {
        const ctn_desc *v = a->in[i], *want = spatial >> i & 1 ? x : &c;
        if (v->dtype != x->dtype)
            return ctn_fail(CTN_EDTYPE, "%s: x is %s, input %d is %s; expected the same type",
                            a->name, ctn_dtype_name(x->dtype), i, ctn_dtype_name(v->dtype));
        if (!ctn__same_shape(v, want)) {
            char tw[128];
            return ctn_fail(CTN_ESHAPE, "%s: x is %s, input %d is %s, expected %s", a->name,
                            ctn__shape_text(x, tx, sizeof tx), i, ctn__shape_text(v, tv, sizeof tv),
                            ctn__shape_text(want, tw, sizeof tw));
        }
    }
    return CTN_OK;
}

static ctn_status count_inputs(const ctn_infer_args *a, int want)
{
    if (a->nin == want) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: got %d inputs, its attributes require %d", a->name, a->nin,
                    want);
}

static ctn_status batch_norm_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__infer_same(a));
    CTN_TRY(count_inputs(a, RESIDUAL + (int)a->attr[ADD]));
    CTN_TRY(check(a, a->in[X], 1u << X | 1u << RESIDUAL));
    for (int i = MEAN; i < NOUT; i++) a->out[i] = *a->in[SCALE];
    return CTN_OK;
}

static ctn_status batch_norm_grad_infer(ctn_infer_args *a)
{
    const uint32_t more = a->attr[ACT] == BY_X ? G_SPATIAL_X : G_SPATIAL;
    CTN_TRY(ctn__infer_same(a));
    CTN_TRY(count_inputs(a, G_FIRST + (a->attr[ACT] != 0) + (a->attr[JOIN] != 0)));
    CTN_TRY(check(a, a->in[G_X], more));
    a->out[G_GX] = a->out[G_G] = *a->in[G_X];
    a->out[G_GSCALE] = a->out[G_GSHIFT] = *a->in[G_SCALE];
    return CTN_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Doubles per channel, which are placed before the scratch of the engine's kernels. */
enum { ROWS = 5 };

static size_t rows_bytes(int64_t C)
{
    return (ROWS * (size_t)C * sizeof(double) + 63) / 64 * 64;
}

static ctn_status prepare(ctn_prepare_args *a)
{
    const ctn_desc *x = &a->dout[0];
    a->scratch = rows_bytes(x->dim[1]) + ctn__bnorm_scratch(x);
    a->kernel = ctn__bnorm_name(x);
    return CTN_OK;
}

static ctn__bnorm_arg input(const ctn_run_args *a, int i)
{
    return (ctn__bnorm_arg){(void *)(uintptr_t)a->in[i], &a->din[i]};
}

static ctn__bnorm_arg output(const ctn_run_args *a, int i)
{
    return (ctn__bnorm_arg){a->out[i], &a->dout[i]};
}

/* q of y = x p + q, in one place because the gradient relies on the same bits. */
static inline double offset(double shift, double m, double p)
{
    return shift - m * p;
}

#define T float
#define NAME(x) x##_f32
#include "ops/common/batch_norm_body.h"

#define T double
#define NAME(x) x##_f64
#include "ops/common/batch_norm_body.h"

static ctn_status batch_norm_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[X];
    const int64_t C = x->dim[1], M = C > 0 ? ctn__count(x) / C : 0;
    double *m = a->scratch, *v = m + C, *p = v + C, *q = p + C;
    void *rest = (char *)a->scratch + rows_bytes(C);
    const ctn__bnorm_arg none = {NULL, x};
    ctn__bnorm_stats(input(a, X), m, v, rest);
    if (a->din[SCALE].dtype == CTN_F32) per_channel_f32(a, C, M, m, v, p, q);
    else per_channel_f64(a, C, M, m, v, p, q);
    ctn__bnorm_apply(input(a, X), p, q, a->attr[ADD] ? input(a, RESIDUAL) : none, a->attr[ACT] != 0,
                     output(a, Y), rest);
    return CTN_OK;
}

static ctn_status batch_norm_grad_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[G_X];
    const int64_t C = x->dim[1], M = C > 0 ? ctn__count(x) / C : 0;
    double *m = a->scratch, *s = m + C, *d = s + C, *p = d + C, *q = p + C;
    const double inv = M > 0 ? 1 / (double)M : 0;
    void *rest = (char *)a->scratch + rows_bytes(C);
    const ctn__bnorm_arg none = {NULL, x}, out = output(a, G_G);
    const bool act = a->attr[ACT] != 0, by_x = a->attr[ACT] == BY_X, join = a->attr[JOIN] != 0;
    ctn__bnorm_gradient g = {input(a, G_GY), join ? input(a, G_FIRST + act) : none,
                             act && !by_x ? input(a, G_FIRST) : none, by_x ? p : NULL,
                             by_x ? q : NULL};
    if (a->din[G_SCALE].dtype == CTN_F32) per_channel_again_f32(a, C, by_x, m, p, q);
    else per_channel_again_f64(a, C, by_x, m, p, q);
    ctn__bnorm_reduce(&g, input(a, G_X), m, out, s, d, rest);
    if (a->din[G_SCALE].dtype == CTN_F32) per_channel_grad_f32(a, C, inv, m, p, s, d);
    else per_channel_grad_f64(a, C, inv, m, p, s, d);
    if (out.p) g = (ctn__bnorm_gradient){.gy = out, .gy2 = none, .y = none};
    ctn__bnorm_grad_apply(&g, input(a, G_X), p, s, d, output(a, G_GX), rest);
    return CTN_OK;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* batch_norm_grad with nothing fused. scale NULL: ones. */
static ctn_status backward(const ctn_grad_args *a, ctn_tensor *gy, ctn_tensor *x, ctn_tensor *mean,
                           ctn_tensor *rstd, ctn_tensor *scale, ctn_tensor **out)
{
    int64_t attr[NATTR] = {0, 0};
    ctn_op_args args = {.nattr = NATTR, .attr = attr};
    if (!scale) scale = ctn_full_at(a->at, a->ctx, 1, rstd->d.dtype, 1, rstd->d.dim);
    ctn_tensor *in[G_FIRST] = {gy, x, mean, rstd, scale};
    return ctn_apply_at(a->at, a->ctx, &ctn__op_batch_norm_grad, G_FIRST, in, &args, out);
}

static double elements(const ctn_tensor *x)
{
    return x->d.dim[1] > 0 ? (double)ctn__count(&x->d) / (double)x->d.dim[1] : 0;
}

/* m and r have gradients only in second derivatives: dm/dx = 1 / M, dr/dx = -r^3 (x - m) / M,
 * which is k x - k m with k = -r^3 / M. */
static ctn_status grad_of_statistics(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[X], *m = a->out[MEAN], *r = a->out[RSTD];
    ctn_tensor *gm = a->gout[MEAN], *gr = a->gout[RSTD], *k;
    double inv = elements(x) > 0 ? 1 / elements(x) : 0;
    ctn_tensor *b = gm ? ctn_scale_at(at, gm, inv) : NULL;
    if (gm && !b) return ctn_error_status();
    if (gr) {
        k = ctn_scale_at(at, ctn_mul_at(at, gr, ctn_mul_at(at, r, ctn_mul_at(at, r, r))), -inv);
        ctn_tensor *km = ctn_mul_at(at, k, m);
        b = b ? ctn_sub_at(at, b, km) : ctn_neg_at(at, km);
    } else {
        k = ctn_full_at(at, a->ctx, 0, r->d.dtype, 1, r->d.dim);
    }
    return k && b ? ctn__grad_to(a, X, ctn_channel_affine_at(at, x, k, b)) : ctn_error_status();
}

static ctn_status batch_norm_grad_of(const ctn_grad_args *a)
{
    ctn_tensor *out[CTN_MAX_OUT];
    if (a->gout[Y]) {
        CTN_TRY(backward(a, a->gout[Y], a->in[X], a->out[MEAN], a->out[RSTD], a->in[SCALE], out));
        if (a->need[X]) a->gin[X] = out[G_GX];
        if (a->need[SCALE]) a->gin[SCALE] = out[G_GSCALE];
        if (a->need[SHIFT]) a->gin[SHIFT] = out[G_GSHIFT];
    }
    if (a->need[X] && (a->gout[MEAN] || a->gout[RSTD])) CTN_TRY(grad_of_statistics(a));
    return CTN_OK;
}

/* The sum of p q over each channel. */
static ctn_tensor *channel_dot(const char *at, ctn_tensor *p, ctn_tensor *q)
{
    int64_t axes[CTN_MAX_DIMS] = {0};
    for (int i = 2; p && i < p->d.ndim; i++) axes[i - 1] = i;
    return ctn_sum_at(at, ctn_mul_at(at, p, q), p ? p->d.ndim - 1 : 1, axes, 0);
}

/* h as a function of x, m and r; the gradients of m and r reach x through batch_norm's outputs. */
static ctn_tensor *normalised(const ctn_grad_args *a)
{
    ctn_tensor *m = a->in[G_MEAN], *r = a->in[G_RSTD];
    ctn_tensor *b = ctn_neg_at(a->at, ctn_mul_at(a->at, m, r));
    return b ? ctn_channel_affine_at(a->at, a->in[G_X], r, b) : NULL;
}

/* Let J(v) = r (v - mean(v) - h mean(v h)), the symmetric derivative of h by x; gx = scale J(gy).
 * With u the gradient by gx, the gradients are
 *   by gy: scale J(u);  by scale: sum(gy J(u));
 *   by x: -scale r (h <u,J(gy)> + J(u) <gy,h> + J(gy) <u,h>) / M   with <,> over a channel.
 * batch_norm_grad of v with scale 1 gives J(v) and, as gscale, <v,h>. */
static ctn_status grad_of_gx(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *u = a->gout[G_GX], *gy = a->in[G_GY], *x = a->in[G_X], *m = a->in[G_MEAN];
    ctn_tensor *r = a->in[G_RSTD], *scale = a->in[G_SCALE], *ju[CTN_MAX_OUT], *jg[CTN_MAX_OUT];
    CTN_TRY(backward(a, u, x, m, r, NULL, ju));
    if (a->need[G_GY])
        CTN_TRY(ctn__grad_to(a, G_GY, ctn_channel_affine_at(at, ju[G_GX], scale, NULL)));
    if (a->need[G_SCALE]) CTN_TRY(ctn__grad_to(a, G_SCALE, channel_dot(at, gy, ju[G_GX])));
    if (!a->need[G_X]) return CTN_OK;
    CTN_TRY(backward(a, gy, x, m, r, NULL, jg));
    double M = elements(x);
    ctn_tensor *k = ctn_scale_at(at, ctn_mul_at(at, scale, r), M > 0 ? -1 / M : 0);
    ctn_tensor *kh = ctn_mul_at(at, k, channel_dot(at, u, jg[G_GX]));
    ctn_tensor *ku = ctn_mul_at(at, k, jg[G_GSCALE]), *kg = ctn_mul_at(at, k, ju[G_GSCALE]);
    ctn_tensor *t = ctn_channel_affine_at(at, normalised(a), kh, NULL);
    t = ctn_add_at(at, t, ctn_channel_affine_at(at, ju[G_GX], ku, NULL));
    return ctn__grad_to(a, G_X, ctn_add_at(at, t, ctn_channel_affine_at(at, jg[G_GX], kg, NULL)));
}

/* c (C) broadcast to the shape of x. */
static ctn_tensor *per_channel(const char *at, ctn_tensor *c, const ctn_desc *x)
{
    int64_t dims[CTN_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dims[i] = i == 1 ? x->dim[1] : 1;
    return ctn_broadcast_to_at(at, ctn_reshape_at(at, c, x->ndim, dims), x->ndim, x->dim);
}

/* m and r are functions of x here, so all of the derivative goes to x and none to them. */
static ctn_status batch_norm_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *p = a->gout[G_GSCALE], *out[CTN_MAX_OUT];
    if (a->gout[G_GX]) CTN_TRY(grad_of_gx(a));
    if (p && a->need[G_GY]) /* gscale = sum(gy h): by gy p h, by x p J(gy) */
        CTN_TRY(ctn__grad_to(a, G_GY, ctn_channel_affine_at(at, normalised(a), p, NULL)));
    if (p && a->need[G_X]) {
        CTN_TRY(backward(a, a->in[G_GY], a->in[G_X], a->in[G_MEAN], a->in[G_RSTD], p, out));
        CTN_TRY(ctn__grad_to(a, G_X, out[G_GX]));
    }
    if (a->gout[G_GSHIFT] && a->need[G_GY])
        CTN_TRY(ctn__grad_to(a, G_GY, per_channel(at, a->gout[G_GSHIFT], &a->in[G_GY]->d)));
    if (a->gout[G_G] && a->need[G_GY]) CTN_TRY(ctn__grad_to(a, G_GY, a->gout[G_G]));
    return CTN_OK;
}

ctn_op ctn__op_batch_norm = {
    .struct_size = sizeof(ctn_op),
    .name = "batch_norm",
    .nin = -1,
    .nout = NOUT,
    .flags = CTN_OP_TRAIN,
    .order = -1,
    .grad_in = 1u << X | 1u << SCALE,
    .grad_out = 1u << MEAN | 1u << RSTD,
    .inplace = 1u << X | 1u << RESIDUAL,
    .spatial_in = 1u << X | 1u << RESIDUAL,
    .spatial_out = 1u << Y,
    .attr_names = attr_names,
    .infer = batch_norm_infer,
    .grad = batch_norm_grad_of,
    .prepare = prepare,
    .run = batch_norm_run,
};

ctn_op ctn__op_batch_norm_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "batch_norm_grad",
    .nin = -1,
    .nout = G_NOUT,
    .order = -1,
    .grad_in = (1u << G_FIRST) - 1,
    .inplace = G_SPATIAL,
    .spatial_in = G_SPATIAL,
    .spatial_out = 1u << G_GX | 1u << G_G,
    .attr_names = grad_attr_names,
    .infer = batch_norm_grad_infer,
    .grad = batch_norm_grad_grad,
    .prepare = prepare,
    .run = batch_norm_grad_run,
};

ctn_op ctn__op_batch_norm_grad_x = {
    .struct_size = sizeof(ctn_op),
    .name = "batch_norm_grad_x",
    .nin = -1,
    .nout = G_NOUT,
    .order = -1,
    .inplace = G_SPATIAL_X,
    .spatial_in = G_SPATIAL_X,
    .spatial_out = 1u << G_GX | 1u << G_G,
    .attr_names = grad_attr_names,
    .infer = batch_norm_grad_infer,
    .prepare = prepare,
    .run = batch_norm_grad_run,
};

/* ---- the call -------------------------------------------------------------------------------- */

bool ctn__batch_norm_train(const char *at, ctn_tensor *x, ctn_tensor *scale, ctn_tensor *shift,
                           ctn_var *mean, ctn_var *var, double eps, double momentum,
                           ctn__batch_norm_out *to)
{
    int64_t attr[NATTR] = {0, 0};
    const ctn_scalar scalar[NSCALAR] = {[EPS] = CTN_CONST(eps), [MOMENTUM] = CTN_CONST(momentum)};
    ctn_op_args args = {NATTR, NSCALAR, attr, scalar};
    ctn_tensor *out[CTN_MAX_OUT];
    ctn_tensor *in[RESIDUAL] = {x, scale, shift, ctn_use_at(at, mean), ctn_use_at(at, var)};
    if (ctn_apply_at(at, x->ctx, &ctn__op_batch_norm, RESIDUAL, in, &args, out) < 0) return false;
    *to = (ctn__batch_norm_out){out[Y], out[MEAN], out[RSTD], out[NEW_MEAN], out[NEW_VAR]};
    return true;
}

bool ctn__batch_norm_args(const char *at, const char *who, ctn_tensor *x, ctn_tensor **scale,
                          ctn_tensor **shift)
{
    if (x->d.ndim < 2) {
        char t[128];
        ctn_fail(CTN_ESHAPE, "%s: x is %s, expected (N,C,...) (%s)", who,
                 ctn__shape_text(&x->d, t, sizeof t), at);
        return false;
    }
    if ((*scale == NULL) != (*shift == NULL)) {
        if (ctn_error_status() == CTN_OK)
            ctn_fail(CTN_EARG, "%s: give both scale and shift, or neither (%s)", who, at);
        return false;
    }
    if (!*scale) {
        *scale = ctn_full_at(at, x->ctx, 1, x->d.dtype, 1, &x->d.dim[1]);
        *shift = ctn_full_at(at, x->ctx, 0, x->d.dtype, 1, &x->d.dim[1]);
    }
    return *scale && *shift;
}

ctn_tensor *ctn_batch_norm_at(const char *at, ctn_tensor *x, ctn_tensor *scale, ctn_tensor *shift,
                              ctn_var *mean, ctn_var *var, const ctn_batch_norm_opt *opt)
{
    ctn_batch_norm_opt o;
    if (!x || ctn__opt("batch_norm", &o, sizeof o, opt) < 0) return NULL;
    const double eps = o.eps > 0 ? o.eps : 1e-5, momentum = o.momentum > 0 ? o.momentum : 0.1;
    if (!ctn__batch_norm_args(at, "batch_norm", x, &scale, &shift)) return NULL;
    if (ctn_context_training(x->ctx) && !o.frozen) {
        ctn__batch_norm_out out;
        if (!ctn__batch_norm_train(at, x, scale, shift, mean, var, eps, momentum, &out) ||
            ctn_assign_at(at, mean, out.new_mean) < 0 || ctn_assign_at(at, var, out.new_var) < 0)
            return NULL;
        return out.y;
    }
    ctn_tensor *v = ctn_shift_at(at, ctn_use_at(at, var), eps);
    ctn_tensor *a = ctn_mul_at(at, scale, ctn_rsqrt_at(at, v));
    ctn_tensor *b = ctn_sub_at(at, shift, ctn_mul_at(at, ctn_use_at(at, mean), a));
    return a && b ? ctn_channel_affine_at(at, x, a, b) : NULL;
}
