/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rules, gradients and dispatch of layer_norm and rms_norm. The formulas are in norm.h, the
 * kernels in norm_body.h.
 */
#include "ops/common/norm.h"

#include <math.h>

const char *const ctn__norm_attr_names[] = {"n", "center", "weight", "bias"};

static ctn_op *forward_op(bool center)
{
    return center ? &ctn__op_layer_norm : &ctn__op_rms_norm;
}

static ctn_op *gradient_op(bool center)
{
    return center ? &ctn__op_layer_norm_grad : &ctn__op_rms_norm_grad;
}

/* The last n dimensions of x (tail) and those before them (head). */
static ctn_desc tail(const ctn_desc *x, int64_t n)
{
    ctn_desc d = {.dtype = x->dtype, .ndim = (int)n};
    memcpy(d.dim, x->dim + x->ndim - n, (size_t)n * sizeof *d.dim);
    ctn__plain(&d);
    return d;
}

static ctn_desc head(const ctn_desc *x, int64_t n)
{
    ctn_desc d = {.dtype = x->dtype, .ndim = x->ndim - (int)n};
    memcpy(d.dim, x->dim, (size_t)d.ndim * sizeof *d.dim);
    ctn__plain(&d);
    return d;
}

ctn_status ctn__norm_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int64_t n = a->attr[CTN__NORM_N];
    char tx[128], tw[128];
    CTN_TRY(ctn__infer_same(a));
    if (n < 1 || n > x->ndim)
        return ctn_fail(CTN_ESHAPE, "%s: cannot normalise over the last %lld dimensions, x is %s",
                        a->name, (long long)n, ctn__shape_text(x, tx, sizeof tx));
    ctn_desc d = tail(x, n);
    for (int i = 1; i < a->nin; i++) {
        const ctn_desc *w = a->in[i];
        const char *what = i == 1 && a->attr[CTN__NORM_WEIGHT] ? "weight" : "bias";
        if (w->dtype != x->dtype)
            return ctn_fail(CTN_EDTYPE, "%s: x is %s, %s is %s; expected the same type", a->name,
                            ctn_dtype_name(x->dtype), what, ctn_dtype_name(w->dtype));
        if (!ctn__same_shape(w, &d))
            return ctn_fail(CTN_ESHAPE,
                            "%s: x is %s, normalised over its last %lld dimensions, but %s is %s",
                            a->name, ctn__shape_text(x, tx, sizeof tx), (long long)n, what,
                            ctn__shape_text(w, tw, sizeof tw));
    }
    a->out[1] = head(x, n);
    if (a->attr[CTN__NORM_CENTER]) a->out[2] = a->out[1];
    return CTN_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Rows per block of the sums over rows: enough for at most 64 blocks, but no more than 256 rows in
 * one float sum. */
static int64_t block_rows(int64_t R)
{
    int64_t n = (R + 63) / 64;
    return n < 1 ? 1 : n > 256 ? 256 : n;
}

static int64_t row_blocks(int64_t R)
{
    return (R + block_rows(R) - 1) / block_rows(R);
}

#define T float
#define NAME(x) x##_f32
#include "ops/common/norm_body.h"

#define T double
#define NAME(x) x##_f64
#include "ops/common/norm_body.h"

ctn_status ctn__norm_run(const ctn_run_args *a)
{
    const ctn_desc *d = &a->din[0];
    ctn_desc rows = head(d, a->attr[CTN__NORM_N]), row = tail(d, a->attr[CTN__NORM_N]);
    int64_t R = ctn__count(&rows), D = ctn__count(&row);
    if (d->dtype == CTN_F32) forward_f32(a, R, D);
    else forward_f64(a, R, D);
    return CTN_OK;
}

/* ---- gradient -------------------------------------------------------------------------------- */

ctn_status ctn__norm_grad_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__infer_same(a));
    a->out[1] = a->out[2] = tail(a->in[0], a->attr[CTN__NORM_N]);
    return CTN_OK;
}

ctn_status ctn__norm_grad_prepare(ctn_prepare_args *a)
{
    ctn_desc rows = head(&a->din[0], a->attr[CTN__NORM_N]);
    a->scratch = 2 * (size_t)row_blocks(ctn__count(&rows)) * ctn__bytes(&a->dout[1]);
    return CTN_OK;
}

ctn_status ctn__norm_grad_run(const ctn_run_args *a)
{
    const ctn_desc *d = &a->din[0];
    ctn_desc rows = head(d, a->attr[CTN__NORM_N]);
    int64_t R = ctn__count(&rows), D = ctn__count(&a->dout[1]);
    if (d->dtype == CTN_F32) backward_f32(a, R, D);
    else backward_f64(a, R, D);
    return CTN_OK;
}

/* The gradient op with statistics r and m (NULL: not centered); out: gx, gw, gb. */
static ctn_status backward(const ctn_grad_args *a, ctn_tensor *gy, ctn_tensor *x, ctn_tensor *r,
                           ctn_tensor *m, ctn_tensor *w, ctn_tensor **out)
{
    int64_t attr[CTN__NORM_NATTR] = {a->attr[CTN__NORM_N], m != NULL, w != NULL, 0};
    ctn_tensor *in[5] = {gy, x, r};
    int nin = 3;
    if (m) in[nin++] = m;
    if (w) in[nin++] = w;
    ctn_op_args args = {CTN__NORM_NATTR, 1, attr, a->scalar};
    return ctn_apply_at(a->at, a->ctx, gradient_op(m != NULL), nin, in, &args, out);
}

/* t of shape (R) as (R,1,...,1), which broadcasts to x. */
static ctn_tensor *per_row(const char *at, ctn_tensor *t, const ctn_desc *x)
{
    int64_t dims[CTN_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dims[i] = i < t->d.ndim ? t->d.dim[i] : 1;
    return ctn_reshape_at(at, t, x->ndim, dims);
}

/* The sum of p q over each row, of shape (R,1,...,1). */
static ctn_tensor *row_dot(const ctn_grad_args *a, ctn_tensor *p, ctn_tensor *q)
{
    int64_t axes[CTN_MAX_DIMS], n = a->attr[CTN__NORM_N];
    for (int64_t i = 0; i < n; i++) axes[i] = i - n;
    return ctn_sum_at(a->at, ctn_mul_at(a->at, p, q), (int)n, axes, 1);
}

/* h, recorded so that gradients also flow through its statistics. */
static ctn_tensor *normalised(const ctn_grad_args *a, ctn_tensor *x)
{
    return ctn__norm(a->at, a->attr[CTN__NORM_CENTER] != 0, x, a->attr[CTN__NORM_N], NULL, NULL,
                     a->scalar[0]);
}

/* r has a gradient only in a second derivative: gx += gr dr/dx, dr/dx = -r^2 h / D. m is read by
 * gradient ops only, which assign all of the derivative to x. */
ctn_status ctn__norm_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    bool center = a->attr[CTN__NORM_CENTER] != 0;
    ctn_tensor *x = a->in[0], *r = a->out[1];
    ctn_tensor *w = a->attr[CTN__NORM_WEIGHT] ? a->in[1] : NULL, *out[CTN_MAX_OUT];
    int bias = a->attr[CTN__NORM_BIAS] ? a->nin - 1 : 0;
    if (a->gout[0]) {
        CTN_TRY(backward(a, a->gout[0], x, r, center ? a->out[2] : NULL, w, out));
        if (a->need[0]) a->gin[0] = out[0];
        if (w && a->need[1]) a->gin[1] = out[1];
        if (bias && a->need[bias]) a->gin[bias] = out[2];
    }
    if (a->gout[1] && a->need[0]) {
        ctn_desc row = tail(&x->d, a->attr[CTN__NORM_N]);
        ctn_tensor *c = ctn_mul_at(at, a->gout[1], ctn_mul_at(at, r, r));
        c = ctn__scaled(at, c, -1 / (double)ctn__count(&row));
        if (!c) return ctn_error_status();
        CTN_TRY(ctn__grad_to(a, 0, ctn_mul_at(at, per_row(at, c, &x->d), normalised(a, x))));
    }
    return CTN_OK;
}

/* Let J(v) = r (v - mean(v) - h mean(v h)), the symmetric derivative of h by x; gx = J(e),
 * e = gy w. With u the gradient by gx, the gradients are
 *   by gy: w J(u);  by w: sum over rows of gy J(u);
 *   by x: -r (h <u,J(e)> + J(u) <e,h> + J(e) <u,h>) / D   with <,> over a row. */
static ctn_status grad_of_gx(const ctn_grad_args *a, ctn_tensor *m, ctn_tensor *w)
{
    const char *at = a->at;
    ctn_tensor *u = a->gout[0], *gy = a->in[0], *x = a->in[1], *r = a->in[2];
    ctn_tensor *ju[CTN_MAX_OUT], *je[CTN_MAX_OUT];
    CTN_TRY(backward(a, u, x, r, m, NULL, ju));
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, w ? ctn_mul_at(at, w, ju[0]) : ju[0]));
    if (w && a->need[a->nin - 1])
        CTN_TRY(ctn__grad_to(a, a->nin - 1, ctn__sum_to(at, ctn_mul_at(at, gy, ju[0]), &w->d)));
    if (!a->need[1]) return CTN_OK;
    CTN_TRY(backward(a, gy, x, r, m, w, je));
    ctn_desc row = tail(&x->d, a->attr[CTN__NORM_N]);
    ctn_tensor *h = normalised(a, x), *e = w ? ctn_mul_at(at, gy, w) : gy;
    ctn_tensor *t = ctn_mul_at(at, h, row_dot(a, u, je[0]));
    t = ctn_add_at(at, t, ctn_mul_at(at, ju[0], row_dot(a, e, h)));
    t = ctn_add_at(at, t, ctn_mul_at(at, je[0], row_dot(a, u, h)));
    ctn_tensor *c = ctn__scaled(at, r, -1 / (double)ctn__count(&row));
    if (!c) return ctn_error_status();
    return ctn__grad_to(a, 1, ctn_mul_at(at, t, per_row(at, c, &x->d)));
}

ctn_status ctn__norm_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *gy = a->in[0], *x = a->in[1], *r = a->in[2], *out[CTN_MAX_OUT];
    ctn_tensor *m = a->attr[CTN__NORM_CENTER] ? a->in[3] : NULL;
    ctn_tensor *w = a->attr[CTN__NORM_WEIGHT] ? a->in[a->nin - 1] : NULL;
    if (a->gout[0]) CTN_TRY(grad_of_gx(a, m, w));
    if (a->gout[1]) { /* gw = sum over rows of gy h: by gy p h, by x J(gy p) */
        if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, ctn_mul_at(at, normalised(a, x), a->gout[1])));
        if (a->need[1]) {
            CTN_TRY(backward(a, gy, x, r, m, a->gout[1], out));
            CTN_TRY(ctn__grad_to(a, 1, out[0]));
        }
    }
    if (a->gout[2] && a->need[0]) /* gb = sum over rows of gy */
        CTN_TRY(ctn__grad_to(a, 0, ctn_broadcast_to_at(at, a->gout[2], gy->d.ndim, gy->d.dim)));
    return CTN_OK;
}

ctn_tensor *ctn__norm(const char *at, bool center, ctn_tensor *x, int64_t n, ctn_tensor *weight,
                      ctn_tensor *bias, ctn_scalar eps)
{
    int64_t attr[CTN__NORM_NATTR] = {n, center, weight != NULL, bias != NULL};
    ctn_tensor *in[3] = {x};
    int nin = 1;
    if (weight) in[nin++] = weight;
    if (bias) in[nin++] = bias;
    return ctn__apply1(at, NULL, forward_op(center), nin, in, CTN__NORM_NATTR, attr, 1, &eps);
}
