/* SPDX-License-Identifier: Apache-2.0
 *
 * gather: y has the shape of index; each element is taken from x at the same position, except
 * that the coordinate along the axis is the index. For axis 1 of 3:
 *   y[i,j,k] = x[i,index[i,j,k],k]
 * Outside the axis, index is not longer than x. Gradient: gy added to zeros at the indices.
 */
#include "ops/common/along.h"

enum { AXIS };

static ctn_status gather_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *index = a->in[1];
    int axis;
    char tx[128], ti[128];
    CTN_TRY(ctn__infer_index(a, index));
    CTN_TRY(ctn__infer_axis(a, x, a->attr[AXIS], &axis));
    bool ok = x->ndim == index->ndim;
    for (int i = 0; i < x->ndim && ok; i++) ok = i == axis || index->dim[i] <= x->dim[i];
    if (!ok)
        return ctn_fail(CTN_ESHAPE,
                        "gather along axis %d: shapes do not match: x is %s, index is %s", axis,
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(index, ti, sizeof ti));
    a->out[0] = *index;
    a->out[0].dtype = x->dtype;
    return CTN_OK;
}

/* One line along the last dimension. S is a constant, so that each copy is one move. */
#define DEFINE_LINE(S)                                                                       \
    static void line_##S(char *y, const char *x, const void *index, ctn_dtype t, int64_t at, \
                         int64_t n, int64_t step, int64_t axis_step)                         \
    {                                                                                        \
        for (int64_t j = 0; j < n; j++) {                                                    \
            int64_t from = j * step + ctn__index_get(index, t, at + j) * axis_step;          \
            memcpy(y + j * S, x + from * S, S);                                              \
        }                                                                                    \
    }
DEFINE_LINE(1)
DEFINE_LINE(2)
DEFINE_LINE(4)
DEFINE_LINE(8)

static ctn_status gather_run(const ctn_run_args *a)
{
    enum { PIECE = 4096 }; /* elements of a line that one thread takes at a time */
    const ctn_desc *x = &a->din[0], *index = &a->din[1];
    const int axis = ctn__axis(x->ndim, a->attr[AXIS]), last = x->ndim - 1;
    const int64_t n = index->dim[last], lines = n > 0 ? ctn__count(index) / n : 0;
    const int64_t pieces = (n + PIECE - 1) / PIECE;
    const int64_t es = (int64_t)ctn_dtype_size(x->dtype), axis_step = x->stride[axis];
    CTN_TRY(ctn__index_check("gather", a->in[1], index, x->dim[axis]));
#pragma omp parallel for schedule(static) if (lines * n > CTN__GRAIN)
    for (int64_t u = 0; u < lines * pieces; u++) {
        const int64_t l = u / pieces, j = u % pieces * PIECE;
        int64_t base = axis == last ? 0 : j, q = l;
        for (int i = last - 1; i >= 0; i--) {
            base += i == axis ? 0 : q % index->dim[i] * x->stride[i];
            q /= index->dim[i];
        }
        const char *from = (const char *)a->in[0] + base * es;
        char *to = (char *)a->out[0] + (l * n + j) * es;
        (es == 4   ? line_4
         : es == 8 ? line_8
         : es == 2 ? line_2
                   : line_1)(to, from, a->in[1], index->dtype, l * n + j,
                             n - j < PIECE ? n - j : PIECE, axis == last ? 0 : 1, axis_step);
    }
    return CTN_OK;
}

static ctn_status gather_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    ctn_tensor *zero = ctn_full_at(a->at, a->ctx, 0, x->dtype, x->ndim, x->dim);
    return ctn__grad_to(a, 0, ctn_scatter_add_at(a->at, zero, a->in[1], a->gout[0], a->attr[AXIS]));
}

ctn_op ctn__op_gather = {
    .struct_size = sizeof(ctn_op),
    .name = "gather",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .infer = gather_infer,
    .grad = gather_grad,
    .run = gather_run,
};

ctn_tensor *ctn_gather_at(const char *at, ctn_tensor *x, ctn_tensor *index, int64_t axis)
{
    ctn_tensor *in[2] = {x, index};
    return ctn__apply1(at, NULL, &ctn__op_gather, 2, in, 1, &axis, 0, NULL);
}
