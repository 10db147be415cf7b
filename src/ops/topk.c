/* SPDX-License-Identifier: Apache-2.0
 *
 * topk along the last axis: the k largest in descending order and their places; equals in the
 * order of their places, NaN first. The public function brings another axis to the end.
 * Gradient: gy added into the places of the chosen elements.
 *
 * A row costs n log k: a heap of the k best so far, the worst of them on top, is then taken
 * apart.
 */
#include "ops/along.h"

enum { K };

static ctn_status topk_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int axis;
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    CTN_TRY(ctn__infer_axis(a, x, -1, &axis));
    if (a->attr[K] < 0 || a->attr[K] > x->dim[axis])
        return ctn_fail(CTN_ESHAPE, "topk: k is %lld, the last axis of %s allows 0 to %lld",
                        (long long)a->attr[K], ctn__shape_text(x, t, sizeof t),
                        (long long)x->dim[axis]);
    a->out[0] = *x;
    a->out[0].dim[axis] = a->attr[K];
    a->out[1] = a->out[0];
    a->out[1].dtype = CTN_I64;
    return CTN_OK;
}

/* before: element i stands before element j in the result */
#define DEFINE_TOPK(T)                                                              \
    static bool before_##T(const T *x, int64_t i, int64_t j)                        \
    {                                                                               \
        T p = x[i], q = x[j];                                                       \
        if (p > q || (p != p && q == q)) return true;                               \
        return !(q > p || (q != q && p == p)) && i < j;                             \
    }                                                                               \
    static void sink_##T(const T *x, int64_t *heap, int64_t n, int64_t i)           \
    {                                                                               \
        for (int64_t c = 2 * i + 1; c < n; c = 2 * i + 1) {                         \
            if (c + 1 < n && before_##T(x, heap[c], heap[c + 1])) c++;              \
            if (!before_##T(x, heap[i], heap[c])) return;                           \
            int64_t t = heap[i];                                                    \
            heap[i] = heap[c];                                                      \
            heap[c] = t;                                                            \
            i = c;                                                                  \
        }                                                                           \
    }                                                                               \
    static void topk_row_##T(const T *x, int64_t n, int64_t k, T *y, int64_t *heap) \
    {                                                                               \
        for (int64_t i = 0; i < k; i++) heap[i] = i;                                \
        for (int64_t i = k / 2; i-- > 0;) sink_##T(x, heap, k, i);                  \
        for (int64_t i = k; i < n; i++) {                                           \
            if (!before_##T(x, i, heap[0])) continue;                               \
            heap[0] = i;                                                            \
            sink_##T(x, heap, k, 0);                                                \
        }                                                                           \
        for (int64_t left = k; left > 1;) {                                         \
            int64_t worst = heap[0];                                                \
            heap[0] = heap[--left];                                                 \
            heap[left] = worst;                                                     \
            sink_##T(x, heap, left, 0);                                             \
        }                                                                           \
        for (int64_t i = 0; i < k; i++) y[i] = x[heap[i]];                          \
    }
DEFINE_TOPK(float)
DEFINE_TOPK(double)

static ctn_status topk_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    int64_t n = x->dim[x->ndim - 1], k = a->attr[K], rows = n > 0 ? ctn__count(x) / n : 0;
    int64_t *place = a->out[1] ? a->out[1] : a->scratch;
    if (k == 0) return CTN_OK;
#pragma omp parallel for schedule(static) if (rows * n > 1024)
    for (int64_t r = 0; r < rows; r++) {
        if (x->dtype == CTN_F32)
            topk_row_float((const float *)a->in[0] + r * n, n, k, (float *)a->out[0] + r * k,
                           place + r * k);
        else
            topk_row_double((const double *)a->in[0] + r * n, n, k, (double *)a->out[0] + r * k,
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
    a->gin[0] = ctn_scatter_add_at(a->at, zero, a->out[1], a->gout[0], -1);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_topk = {
    .struct_size = sizeof(ctn_op),
    .name = "topk",
    .nin = 1,
    .nout = 2,
    .order = -1,
    .grad_out = 2,
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
        return ctn_fail(CTN_ESHAPE, "topk: there is no axis %lld in %s (%s)", (long long)axis,
                        ctn__shape_text(&x->d, t, sizeof t), at);
    for (int i = 0; i < nd; i++) order[i] = i;
    order[ax] = nd - 1; /* swapped with the last: the same order leads back */
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
