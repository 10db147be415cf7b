/* SPDX-License-Identifier: Apache-2.0
 *
 * linear: y = act(x W^T + b), x (N,I), W (O,I) as in PyTorch, b (O) or absent. act is set only by
 * fusion (plan/fuse/product_act.c). Gradients: gx = gy W, gW = gy^T x, gb = sum of gy over N.
 */
#include "ops/ops.h"

enum { ACT, NATTR };
static const char *const attr_names[] = {"act"};

static ctn_status linear_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *w = a->in[1], *b = a->nin > 2 ? a->in[2] : NULL;
    char tx[128], tw[128], tb[128];
    if (x->dtype != w->dtype || (b && b->dtype != x->dtype) || !ctn__is_float(x->dtype))
        return ctn_fail(CTN_EDTYPE,
                        "linear: x is %s, weight is %s%s%s; expected the same float type",
                        ctn_dtype_name(x->dtype), ctn_dtype_name(w->dtype), b ? ", bias is " : "",
                        b ? ctn_dtype_name(b->dtype) : "");
    bool ok = a->nin >= 2 && a->nin <= 3 && x->ndim == 2 && w->ndim == 2 &&
              x->dim[1] == w->dim[1] && (!b || (b->ndim == 1 && b->dim[0] == w->dim[0]));
    if (!ok)
        return ctn_fail(CTN_ESHAPE, "linear: shapes do not match: x is %s, weight is %s%s%s",
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(w, tw, sizeof tw),
                        b ? ", bias is " : "", b ? ctn__shape_text(b, tb, sizeof tb) : "");
    a->out[0].dtype = x->dtype;
    a->out[0].ndim = 2;
    a->out[0].dim[0] = x->dim[0];
    a->out[0].dim[1] = w->dim[0];
    return CTN_OK;
}

static ctn_desc transposed(const ctn_desc *d)
{
    ctn_desc r = *d;
    r.dim[0] = d->dim[1];
    r.dim[1] = d->dim[0];
    r.stride[0] = d->stride[1];
    r.stride[1] = d->stride[0];
    return r;
}

/* Called only if there are no elements to sum: the result is zeros or the bias. */
static ctn_status linear_run(const ctn_run_args *a)
{
    const ctn_desc *y = &a->dout[0];
    for (int64_t i = 0; i < ctn__count(y); i++) {
        const int64_t o = i % y->dim[1];
        double s =
            a->nin > 2 ? ctn__elem_get(a->in[2], a->din[2].dtype, o * a->din[2].stride[0]) : 0;
        if (a->attr[ACT] == CTN__ELT_RELU && s < 0) s = 0;
        ctn__elem_set(a->out[0], y->dtype, i, s);
    }
    return CTN_OK;
}

static ctn_status run_f64(const ctn_run_args *a)
{
    const ctn_desc wt = transposed(&a->din[1]);
    const int64_t N = a->dout[0].dim[0], O = a->dout[0].dim[1];
    const double *bias = a->nin > 2 ? a->in[2] : NULL;
    const bool relu = a->attr[ACT] == CTN__ELT_RELU;
    ctn__product_f64(&a->din[0], &wt, &a->dout[0], a->in[0], a->in[1], a->out[0], a->env->threads,
                     a->scratch);
    if (!bias && !relu) return CTN_OK;
#pragma omp parallel for schedule(static) if (N * O > CTN__GRAIN)
    for (int64_t n = 0; n < N; n++) {
        double *y = (double *)a->out[0] + n * O;
        for (int64_t o = 0; o < O; o++) {
            const double s = y[o] + (bias ? bias[o] : 0);
            y[o] = relu && s < 0 ? 0 : s;
        }
    }
    return CTN_OK;
}

static ctn_status prim_run(const ctn_run_args *a)
{
    void *ptr[4] = {(void *)(uintptr_t)a->in[0], (void *)(uintptr_t)a->in[1],
                    a->nin > 2 ? (void *)(uintptr_t)a->in[2] : NULL, a->out[0]};
    return ctn__prim_run(a->priv, ptr, a->scratch);
}

static ctn_status by_prim(ctn_prepare_args *a, ctn__product_maker *make)
{
    const ctn_desc wt = transposed(&a->din[1]);
    ctn__prim *prim;
    CTN_TRY(make(&prim, a->engine, &a->din[0], &wt, a->nin > 2 ? &a->din[2] : NULL, &a->dout[0],
                 (ctn__elt)a->attr[ACT]));
    return prim ? ctn__with_prim(a, prim, prim_run) : CTN_END;
}

static ctn_status by_matmul(ctn_prepare_args *a)
{
    return by_prim(a, ctn__prim_matmul);
}

static ctn_status by_inner(ctn_prepare_args *a)
{
    return by_prim(a, ctn__prim_inner);
}

static ctn_status linear_prepare(ctn_prepare_args *a)
{
    static const ctn__way ways[] = {{"matmul", by_matmul}, {"inner", by_inner}};
    for (int i = 0; i < 2; i++) ctn__ask_matrix(&a->din[i]);
    const ctn_desc *x = &a->din[0], *y = &a->dout[0];
    a->flops = ctn__work(2.0 * (double)ctn__count(y) * (double)x->dim[1]);
    a->kernel = "empty";
    if (a->nin > 2) ctn__plain(&a->din[2]);
    if (ctn__count(y) == 0 || x->dim[1] == 0) return CTN_OK;
    if (y->dtype == CTN_F64) {
        a->kernel = "own:blocked";
        a->scratch = ctn__product_f64_scratch(a->threads);
        a->run = run_f64;
        return CTN_OK;
    }
    const bool act = a->attr[ACT] != CTN__ELT_NONE && a->attr[ACT] != CTN__ELT_RELU;
    if (ctn__few_rows(a) && !act) {
        ctn__plain(&a->din[0]);
        a->kernel = "own:rows";
        a->run = ctn__few_rows_run;
        return CTN_OK;
    }
    return ctn__choose(a, a->flops, a->flops < CTN__WORTH_CHOOSING ? 1 : 2, ways);
}

static ctn_status linear_grad(const ctn_grad_args *a)
{
    ctn_tensor *x = a->in[0], *w = a->in[1], *g = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, ctn_matmul_at(a->at, g, w, 0, 0)));
    if (a->need[1]) CTN_TRY(ctn__grad_to(a, 1, ctn_matmul_at(a->at, g, x, 1, 0)));
    if (a->nin > 2 && a->need[2])
        CTN_TRY(ctn__grad_to(a, 2, ctn_sum_at(a->at, g, 1, (const int64_t[]){0}, 0)));
    return CTN_OK;
}

ctn_op ctn__op_linear = {
    .struct_size = sizeof(ctn_op),
    .name = "linear",
    .nin = -1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .prec = CTN_PREC_LOW,
    .grad_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = linear_infer,
    .grad = linear_grad,
    .prepare = linear_prepare,
    .run = linear_run,
};

ctn_tensor *ctn_linear_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b)
{
    ctn_tensor *in[3] = {x, w, b};
    int64_t attr[NATTR] = {CTN__ELT_NONE}, rows = 1;
    ctn_desc d = x ? x->d : (ctn_desc){.ndim = 2};
    int last = d.ndim - 1;
    /* Leading dimensions are rows; a vector is one row. */
    bool fold = d.ndim != 2 && d.ndim > 0;
    for (int i = 0; i < last; i++) rows *= d.dim[i];
    if (fold) in[0] = ctn_reshape_at(at, x, CTN_SHAPE(rows, d.dim[last]));
    ctn_tensor *y = ctn__apply1(at, NULL, &ctn__op_linear, b ? 3 : 2, in, NATTR, attr, 0, NULL);
    if (!y || !fold) return y;
    d.dim[last] = y->d.dim[1];
    return ctn_reshape_at(at, y, d.ndim, d.dim);
}
