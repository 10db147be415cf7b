/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation with the statistics of all ranks, whose batches may differ in size or be
 * empty. Uses the kernels of engine/bnorm.h.
 *
 * The forward pass needs one allreduce of (n, S1, S2): the number of elements per channel, their
 * sum and the sum of their squares. Then m = S1/N and v = S2/N - m^2. S1 and S2 are computed in
 * f64 from the local mean and variance, so the cancellation in v loses less than rounding x to
 * f32 already has. The backward pass needs one allreduce too: with h = (x - m) r and sums over
 * all ranks
 *   gx = scale r (g - sum(g) / N - h sum(g h) / N)
 * while gshift = sum(g) and gscale = sum(g h) are this rank's only; the optimizer adds those up.
 */
#include <math.h>

#include "distributed/distributed.h"
#include "engine/bnorm.h"
#include "nn/nn.h"

enum { X, SCALE, SHIFT, TOTAL, RMEAN, RVAR, NIN }; /* inputs of sync_batch_norm */
enum { Y, MEAN, RSTD, NEW_MEAN, NEW_VAR, NOUT };   /* its outputs */
enum { EPS, MOMENTUM, NSCALAR };                   /* its scalars */
/* inputs of the gradients; G_ALL is TOTAL */
enum { G_GY, G_X, G_MEAN, G_RSTD, G_SCALE, G_SUMS, G_ALL };
enum { R_SUMS, R_GSCALE, R_GSHIFT, R_NOUT }; /* outputs of the reduction */

static ctn__bnorm_arg input(const ctn_run_args *a, int i)
{
    return (ctn__bnorm_arg){(void *)(uintptr_t)a->in[i], &a->din[i]};
}

static ctn__bnorm_arg output(const ctn_run_args *a, int i)
{
    return (ctn__bnorm_arg){a->out[i], &a->dout[i]};
}

static void widen(const ctn_run_args *a, int i, double *to, int64_t C)
{
    if (a->din[i].dtype == CTN_F64) memcpy(to, a->in[i], (size_t)C * sizeof *to);
    else
        for (int64_t c = 0; c < C; c++) to[c] = (double)((const float *)a->in[i])[c];
}

/* Writes element c of output i, if that output is used. */
static void put(const ctn_run_args *a, int i, int64_t c, double value)
{
    if (!a->out[i]) return;
    if (a->dout[i].dtype == CTN_F64) ((double *)a->out[i])[c] = value;
    else ((float *)a->out[i])[c] = (float)value;
}

static void vector(ctn_desc *d, ctn_dtype type, int64_t n)
{
    *d = (ctn_desc){.dtype = type, .ndim = 1, .dim = {n}};
}

/* ---- statistics of this rank: x -> (n, S1 (C), S2 (C)) --------------------------------------- */

static ctn_status stats_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    if (x->dtype != CTN_F32 && x->dtype != CTN_F64)
        return ctn_fail(CTN_EDTYPE, "%s: x is %s, expected f32 or f64", a->name,
                        ctn_dtype_name(x->dtype));
    if (x->ndim < 2)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, expected (N,C,...)", a->name,
                        ctn__shape_text(x, t, sizeof t));
    vector(&a->out[0], CTN_F64, 1 + 2 * x->dim[1]);
    return CTN_OK;
}

static ctn_status stats_prepare(ctn_prepare_args *a)
{
    a->scratch = ctn__bnorm_scratch(&a->din[0]);
    a->kernel = ctn__bnorm_name(&a->din[0]);
    return CTN_OK;
}

static ctn_status stats_run(const ctn_run_args *a)
{
    const int64_t C = a->din[0].dim[1];
    const int64_t each = C > 0 ? ctn__count(&a->din[0]) / C : 0;
    const double n = (double)each;
    double *out = a->out[0], *s1 = out + 1, *s2 = s1 + C;
    ctn__bnorm_stats(input(a, 0), s1, s2, a->scratch); /* mean and variance */
    out[0] = n;
    for (int64_t c = 0; c < C; c++) {
        const double m = s1[c];
        s1[c] = n * m;
        s2[c] = n * (s2[c] + m * m);
    }
    return CTN_OK;
}

/* Has no gradient of its own: it is part of the gradient of sync_batch_norm. */
static ctn_op op_stats = {
    .struct_size = sizeof(ctn_op),
    .name = "sync_batch_norm_stats",
    .nin = 1,
    .nout = 1,
    .spatial_in = CTN_OPERAND(0),
    .infer = stats_infer,
    .prepare = stats_prepare,
    .run = stats_run,
};

/* ---- forward --------------------------------------------------------------------------------- */

static ctn_status check_vectors(const ctn_infer_args *a, const ctn_desc *x, const int *which, int n)
{
    for (int i = 0; i < n; i++) {
        const ctn_desc *v = a->in[which[i]];
        char t[128], tx[128];
        if (v->dtype != x->dtype)
            return ctn_fail(CTN_EDTYPE, "%s: x is %s, but input %d is %s", a->name,
                            ctn_dtype_name(x->dtype), which[i], ctn_dtype_name(v->dtype));
        if (v->ndim != 1 || v->dim[0] != x->dim[1])
            return ctn_fail(CTN_ESHAPE,
                            "%s: x is %s, input %d is %s, expected one number per channel", a->name,
                            ctn__shape_text(x, tx, sizeof tx), which[i],
                            ctn__shape_text(v, t, sizeof t));
    }
    return CTN_OK;
}

static ctn_status norm_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[X];
    CTN_TRY(check_vectors(a, x, (const int[]){SCALE, SHIFT, RMEAN, RVAR}, 4));
    a->out[Y] = *x;
    for (int i = MEAN; i < NOUT; i++) vector(&a->out[i], x->dtype, x->dim[1]);
    return CTN_OK;
}

/* Doubles per channel that precede the engine's scratch memory. */
enum { ROWS = 4 };

static double *rows(const ctn_run_args *a, int i, int64_t C)
{
    return (double *)a->scratch + i * C;
}

static size_t rows_bytes(int64_t C)
{
    return (ROWS * (size_t)C * sizeof(double) + 63) / 64 * 64;
}

static ctn_status prepare(ctn_prepare_args *a)
{
    const ctn_desc *x = &a->din[a->nattr > 0 ? X : G_X]; /* only gradients have no attributes */
    a->scratch = rows_bytes(x->dim[1]) + ctn__bnorm_scratch(x);
    a->kernel = ctn__bnorm_name(x);
    return CTN_OK;
}

static ctn_status norm_run(const ctn_run_args *a)
{
    const int64_t C = a->din[X].dim[1];
    const double *total = a->in[TOTAL], *s1 = total + 1, *s2 = s1 + C, N = total[0];
    const double unbias = N > 1 ? N / (N - 1) : 1, part = N > 0 ? a->scalar[MOMENTUM] : 0;
    double *scale = rows(a, 0, C), *shift = rows(a, 1, C), *rmean = rows(a, 2, C);
    double *rvar = rows(a, 3, C);
    widen(a, SCALE, scale, C);
    widen(a, SHIFT, shift, C);
    widen(a, RMEAN, rmean, C);
    widen(a, RVAR, rvar, C);
    for (int64_t c = 0; c < C; c++) {
        const double m = N > 0 ? s1[c] / N : 0, v = N > 0 ? fmax(s2[c] / N - m * m, 0) : 0;
        const double r = 1 / sqrt(v + a->scalar[EPS]);
        put(a, MEAN, c, m);
        put(a, RSTD, c, r);
        put(a, NEW_MEAN, c, rmean[c] + part * (m - rmean[c]));
        put(a, NEW_VAR, c, rvar[c] + part * (v * unbias - rvar[c]));
        scale[c] *= r; /* y = x scale + shift */
        shift[c] -= m * scale[c];
    }
    ctn__bnorm_apply(input(a, X), scale, shift, (ctn__bnorm_arg){NULL, &a->din[X]}, false,
                     output(a, Y), (char *)a->scratch + rows_bytes(C));
    return CTN_OK;
}

/* ---- backward -------------------------------------------------------------------------------- */

static ctn_status reduce_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[G_X];
    vector(&a->out[R_SUMS], CTN_F64, 2 * x->dim[1]);
    vector(&a->out[R_GSCALE], x->dtype, x->dim[1]);
    vector(&a->out[R_GSHIFT], x->dtype, x->dim[1]);
    return CTN_OK;
}

/* sums = (sum(g), sum(g h)) of this rank */
static ctn_status reduce_run(const ctn_run_args *a)
{
    const int64_t C = a->din[G_X].dim[1];
    double *m = rows(a, 0, C), *r = rows(a, 1, C), *s = a->out[R_SUMS], *d = s + C;
    const ctn__bnorm_arg none = {NULL, &a->din[G_X]};
    const ctn__bnorm_gradient g = {.gy = input(a, G_GY), .gy2 = none, .y = none};
    widen(a, G_MEAN, m, C);
    widen(a, G_RSTD, r, C);
    ctn__bnorm_reduce(&g, input(a, G_X), m, none, s, d, (char *)a->scratch + rows_bytes(C));
    for (int64_t c = 0; c < C; c++) {
        d[c] *= r[c];
        put(a, R_GSHIFT, c, s[c]);
        put(a, R_GSCALE, c, d[c]);
    }
    return CTN_OK;
}

static ctn_op op_reduce = {
    .struct_size = sizeof(ctn_op),
    .name = "sync_batch_norm_sums",
    .nin = G_SCALE,
    .nout = R_NOUT,
    .order = 1, /* has no gradient: the error for a second derivative names this op */
    .spatial_in = 1u << G_GY | 1u << G_X,
    .infer = reduce_infer,
    .prepare = prepare,
    .run = reduce_run,
};

static ctn_status grad_x_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[G_X];
    return CTN_OK;
}

/* gx = p g + q x + k with sums over all ranks */
static ctn_status grad_x_run(const ctn_run_args *a)
{
    const int64_t C = a->din[G_X].dim[1];
    const double *sum = a->in[G_SUMS], *dot = sum + C, N = *(const double *)a->in[G_ALL];
    const double inv = N > 0 ? 1 / N : 0;
    double *p = rows(a, 0, C), *q = rows(a, 1, C), *k = rows(a, 2, C), *m = rows(a, 3, C);
    const ctn__bnorm_arg none = {NULL, &a->din[G_X]};
    const ctn__bnorm_gradient g = {.gy = input(a, G_GY), .gy2 = none, .y = none};
    widen(a, G_MEAN, m, C);
    widen(a, G_RSTD, q, C);
    widen(a, G_SCALE, p, C);
    for (int64_t c = 0; c < C; c++) {
        const double r = q[c];
        p[c] *= r;
        q[c] = -p[c] * r * dot[c] * inv;
        k[c] = -p[c] * sum[c] * inv - q[c] * m[c];
    }
    ctn__bnorm_grad_apply(&g, input(a, G_X), p, q, k, output(a, 0),
                          (char *)a->scratch + rows_bytes(C));
    return CTN_OK;
}

static ctn_op op_grad_x = {
    .struct_size = sizeof(ctn_op),
    .name = "sync_batch_norm_grad",
    .nin = G_ALL + 1,
    .nout = 1,
    .order = 1,
    .inplace = 1u << G_GY | 1u << G_X,
    .spatial_in = 1u << G_GY | 1u << G_X,
    .spatial_out = CTN_OPERAND(0),
    .infer = grad_x_infer,
    .prepare = prepare,
    .run = grad_x_run,
};

static ctn_status norm_grad(const ctn_grad_args *a)
{
    ctn_tensor *in[G_ALL + 1] = {a->gout[Y],   a->in[X], a->out[MEAN], a->out[RSTD],
                                 a->in[SCALE], NULL,     a->in[TOTAL]};
    ctn_tensor *out[CTN_MAX_OUT];
    if (!a->gout[Y])
        return ctn_fail(CTN_EGRAD,
                        "sync_batch_norm at %s: cannot differentiate through its statistics",
                        a->at);
    CTN_TRY(ctn_apply_at(a->at, a->ctx, &op_reduce, G_SCALE, in, NULL, out));
    if (a->need[SCALE]) a->gin[SCALE] = out[R_GSCALE];
    if (a->need[SHIFT]) a->gin[SHIFT] = out[R_GSHIFT];
    if (!a->need[X]) return CTN_OK;
    in[G_SUMS] = ctn_dist_allreduce_at(a->at, ctn__dist_comm(a->attr), out[R_SUMS]);
    a->gin[X] = ctn__apply1(a->at, a->ctx, &op_grad_x, G_ALL + 1, in, 0, NULL, 0, NULL);
    return a->gin[X] ? CTN_OK : ctn_error_status();
}

static ctn_op op_norm = {
    .struct_size = sizeof(ctn_op),
    .name = "sync_batch_norm",
    .nin = NIN,
    .nout = NOUT,
    .flags = CTN_OP_TRAIN,
    .order = 1,
    .grad_in = 1u << X | 1u << SCALE | 1u << TOTAL,
    .grad_out = 1u << MEAN | 1u << RSTD,
    .inplace = 1u << X,
    .spatial_in = 1u << X,
    .spatial_out = 1u << Y,
    .attr_names = ctn__dist_attr_names,
    .infer = norm_infer,
    .grad = norm_grad,
    .prepare = prepare,
    .run = norm_run,
};

/* ---- modules --------------------------------------------------------------------------------- */

static ctn_tensor *sync_batch_norm(void *comm, const char *at, ctn_tensor *x, ctn_tensor *scale,
                                   ctn_tensor *shift, ctn_var *mean, ctn_var *var,
                                   const ctn_batch_norm_opt *how)
{
    const ctn_scalar scalar[NSCALAR] = {[EPS] = CTN_CONST(how->eps > 0 ? how->eps : 1e-5),
                                        [MOMENTUM] =
                                            CTN_CONST(how->momentum > 0 ? how->momentum : 0.1)};
    int64_t attr[CTN__DIST_NATTR];
    const ctn_op_args args = {CTN__DIST_NATTR, NSCALAR, attr, scalar};
    ctn_tensor *out[CTN_MAX_OUT];
    ctn_tensor *mine = ctn__apply1(at, NULL, &op_stats, 1, &x, 0, NULL, 0, NULL);
    ctn_tensor *total = mine ? ctn_dist_allreduce_at(at, comm, mine) : NULL;
    if (!total || ctn__dist_attr("sync_batch_norm", comm, 0, attr) < 0) return NULL;
    if (!scale) {
        scale = ctn_full_at(at, x->ctx, 1, x->d.dtype, 1, &x->d.dim[1]);
        shift = ctn_full_at(at, x->ctx, 0, x->d.dtype, 1, &x->d.dim[1]);
    }
    ctn_tensor *in[NIN] = {x, scale, shift, total, ctn_use_at(at, mean), ctn_use_at(at, var)};
    if (ctn_apply_at(at, NULL, &op_norm, NIN, in, &args, out) < 0) return NULL;
    if (ctn_assign_at(at, mean, out[NEW_MEAN]) < 0 || ctn_assign_at(at, var, out[NEW_VAR]) < 0)
        return NULL;
    return out[Y];
}

static void set(ctn_module *m, ctn_comm *c)
{
    ctn__batch_norm_set(m, c ? sync_batch_norm : NULL, c);
    for (int i = 0; i < ctn_module_children(m); i++) set(ctn_module_child(m, i), c);
}

ctn_status ctn_dist_sync_batch_norm(ctn_module *m, ctn_comm *c)
{
    if (!m) return ctn_fail(CTN_EARG, "dist_sync_batch_norm: no module");
    set(m, c);
    return CTN_OK;
}
