/* SPDX-License-Identifier: Apache-2.0
 *
 * topk along the last axis: the k largest elements in descending order, and their indices. NaN
 * comes first, and equal elements are in the order of their indices. The public function moves
 * any other axis to the end. Gradient: gy added to zeros at the indices.
 *
 * A row costs n log k: a heap keeps the k best elements so far, with the worst of them on top,
 * and is then sorted.
 */
#include "ops/common/along.h"

enum { K };

static ctn_status topk_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int axis;
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    CTN_TRY(ctn__infer_axis(a, x, -1, &axis));
    if (a->attr[K] < 0 || a->attr[K] > x->dim[axis])
        return ctn_fail(CTN_ESHAPE, "topk: k is %lld for the last axis of %s, expected 0 to %lld",
                        (long long)a->attr[K], ctn__shape_text(x, t, sizeof t),
                        (long long)x->dim[axis]);
    a->out[0] = *x;
    a->out[0].dim[axis] = a->attr[K];
    a->out[1] = a->out[0];
    a->out[1].dtype = CTN_I64;
    return CTN_OK;
}

#define T float
#define NAME(x) x##_f32
#include "ops/common/topk_body.h"

#define T double
#define NAME(x) x##_f64
#include "ops/common/topk_body.h"

static ctn_status topk_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    int64_t n = x->dim[x->ndim - 1], k = a->attr[K], rows = n > 0 ? ctn__count(x) / n : 0;
    int64_t *place = a->out[1] ? a->out[1] : a->scratch;
    if (k == 0) return CTN_OK;
#pragma omp parallel for schedule(static) if (rows * n > 1024)
    for (int64_t r = 0; r < rows; r++) {
        if (x->dtype == CTN_F32)
            topk_row_f32((const float *)a->in[0] + r * n, n, k, (float *)a->out[0] + r * k,
                         place + r * k);
        else
            topk_row_f64((const double *)a->in[0] + r * n, n, k, (double *)a->out[0] + r * k,
                         place + r * k);
    }
    return CTN_OK;
}

static ctn_status topk_prepare(ctn_prepare_args *a)
{
    a->scratch = (size_t)ctn__count(&a->dout[0]) * sizeof(int64_t);
    return CTN_OK;
}

static ctn_status topk_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    ctn_tensor *zero = ctn_full_at(a->at, a->ctx, 0, x->dtype, x->ndim, x->dim);
    return ctn__grad_to(a, 0, ctn_scatter_add_at(a->at, zero, a->out[1], a->gout[0], -1));
}

ctn_op ctn__op_topk = {
    .struct_size = sizeof(ctn_op),
    .name = "topk",
    .nin = 1,
    .nout = 2,
    .order = -1,
    .grad_out = CTN_OPERAND(1),
    .infer = topk_infer,
    .grad = topk_grad,
    .prepare = topk_prepare,
    .run = topk_run,
};

ctn_status ctn_topk_at(const char *at, ctn_tensor *x, int64_t k, int64_t axis, ctn_tensor **values,
                       ctn_tensor **indices)
{
    int64_t order[CTN_MAX_DIMS];
    int nd = x ? x->d.ndim : 1, ax = x ? ctn__axis(nd, axis) : 0;
    char t[128];
    if (values) *values = NULL;
    if (indices) *indices = NULL;
    if (ax < 0)
        return ctn_fail(CTN_ESHAPE, "topk: axis %lld does not exist in %s (%s)", (long long)axis,
                        ctn__shape_text(&x->d, t, sizeof t), at);
    for (int i = 0; i < nd; i++) order[i] = i;
    order[ax] = nd - 1; /* swapped with the last, so that the same order swaps back */
    order[nd - 1] = ax;
    ctn_tensor *out[2];
    ctn_op_args args = {.nattr = 1, .attr = &k};
    if (x && ax != nd - 1) x = ctn_transpose_at(at, x, nd, order);
    CTN_TRY(ctn_apply_at(at, NULL, &ctn__op_topk, 1, &x, &args, out));
    for (int i = 0; i < 2; i++) {
        ctn_tensor **to = i == 0 ? values : indices;
        if (!to) continue;
        *to = ax == nd - 1 ? out[i] : ctn_transpose_at(at, out[i], nd, order);
        if (!*to) return ctn_error_status();
    }
    return CTN_OK;
}
