/* SPDX-License-Identifier: Apache-2.0
 *
 * scatter: y = x with elements replaced by those of src. For axis 1 of 3 and every position of
 * index, in order:
 *   y[i,index[i,j,k],k] = src[i,j,k]
 * Gradients: gx = gy with zeros at the indices; gsrc = gather(gy, index) where the element has
 * remained, and 0 where a later one has replaced it. scatter_grad_last tells which have remained.
 */
#include "ops/common/scatter.h"

enum { AXIS };

#define DEFINE_SET(S)                                                                          \
    static void set_##S(const ctn_run_args *a, const ctn__scatter_unit *u, int axis)           \
    {                                                                                          \
        const char *src = a->in[2];                                                            \
        char *y = a->out[0];                                                                   \
        const ctn_desc *d = a->din;                                                            \
        for (int64_t i = 0; i < d[1].dim[axis]; i++)                                           \
            for (int64_t k = 0; k < u->n; k++) {                                               \
                int64_t to =                                                                   \
                    ctn__index_get(a->in[1], d[1].dtype, u->index[k] + i * d[1].stride[axis]); \
                if (to < u->begin || to >= u->end) continue;                                   \
                memcpy(y + (u->y[k] + to * d[0].stride[axis]) * S,                             \
                       src + (u->src[k] + i * d[2].stride[axis]) * S, S);                      \
            }                                                                                  \
    }
DEFINE_SET(1)
DEFINE_SET(2)
DEFINE_SET(4)
DEFINE_SET(8)

static ctn_status scatter_run(const ctn_run_args *a)
{
    const size_t es = ctn_dtype_size(a->din[0].dtype);
    return ctn__scatter_run("scatter", a,
                            es == 4   ? set_4
                            : es == 8 ? set_8
                            : es == 2 ? set_2
                                      : set_1);
}

static ctn_status scatter_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d, *index = &a->in[1]->d;
    const char *at = a->at;
    if (a->need[0]) {
        ctn_tensor *zero = ctn_full_at(at, a->ctx, 0, x->dtype, index->ndim, index->dim);
        CTN_TRY(ctn__grad_to(a, 0, ctn_scatter_at(at, a->gout[0], a->in[1], zero, a->attr[AXIS])));
    }
    if (!a->need[2]) return CTN_OK;
    int64_t attr[2 + CTN_MAX_DIMS] = {a->attr[AXIS], x->dtype};
    for (int i = 0; i < x->ndim; i++) attr[2 + i] = x->dim[i];
    ctn_tensor *remained =
        ctn__apply1(at, NULL, &ctn__op_scatter_grad_last, 1, &a->in[1], 2 + x->ndim, attr, 0, NULL);
    ctn_tensor *g = ctn_gather_at(at, a->gout[0], a->in[1], a->attr[AXIS]);
    return ctn__grad_to(a, 2, ctn__scatter_pad(a, ctn_mul_at(at, g, remained)));
}

ctn_op ctn__op_scatter = {
    .struct_size = sizeof(ctn_op),
    .name = "scatter",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .inplace = CTN_OPERAND(0),
    .infer = ctn__infer_scatter,
    .grad = scatter_grad,
    .run = scatter_run,
};

ctn_tensor *ctn_scatter_at(const char *at, ctn_tensor *x, ctn_tensor *index, ctn_tensor *src,
                           int64_t axis)
{
    ctn_tensor *in[3] = {x, index, src};
    return ctn__apply1(at, NULL, &ctn__op_scatter, 3, in, 1, &axis, 0, NULL);
}

/* ---- scatter_grad_last: index -> 1 where a position is the last with its index, else 0 ------ */

/* attributes: the axis, the type of the result, and the shape of x */
enum { DTYPE = 1, DIM0 };

static ctn_status last_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    a->out[0].dtype = (ctn_dtype)a->attr[DTYPE];
    return CTN_OK;
}

static ctn_status shape_of_x(ctn_desc *x, int nattr, const int64_t *attr)
{
    return ctn__desc_set(x, "scatter", CTN_U8, nattr - DIM0, attr + DIM0);
}

/* From the last position to the first; scratch has a byte for each element of x that was seen. */
static void mark_last(const ctn_run_args *a, const ctn__scatter_unit *u, int axis)
{
    const ctn_desc *index = &a->din[0];
    unsigned char *seen = a->scratch;
    ctn_desc x;
    if (shape_of_x(&x, a->nattr, a->attr) < 0) return;
    for (int64_t i = index->dim[axis] - 1; i >= 0; i--)
        for (int64_t k = 0; k < u->n; k++) {
            const int64_t at = u->index[k] + i * index->stride[axis];
            const int64_t to = ctn__index_get(a->in[0], index->dtype, at);
            if (to < u->begin || to >= u->end) continue;
            unsigned char *s = &seen[u->y[k] + to * x.stride[axis]];
            ctn__elem_set(a->out[0], a->dout[0].dtype, at, *s ? 0 : 1);
            *s = 1;
        }
}

static ctn_status last_run(const ctn_run_args *a)
{
    ctn_desc x;
    CTN_TRY(shape_of_x(&x, a->nattr, a->attr));
    const int axis = ctn__axis(x.ndim, a->attr[AXIS]);
    CTN_TRY(ctn__index_check("scatter", a->in[0], &a->din[0], x.dim[axis]));
    memset(a->scratch, 0, (size_t)ctn__count(&x));
    ctn__scatter_units(a, &x, &a->din[0], &a->din[0], axis, mark_last);
    return CTN_OK;
}

static ctn_status last_prepare(ctn_prepare_args *a)
{
    ctn_desc x;
    CTN_TRY(shape_of_x(&x, a->nattr, a->attr));
    a->scratch = (size_t)ctn__count(&x);
    return CTN_OK;
}

ctn_op ctn__op_scatter_grad_last = {
    .struct_size = sizeof(ctn_op),
    .name = "scatter_grad_last",
    .nin = 1,
    .nout = 1,
    .infer = last_infer,
    .prepare = last_prepare,
    .run = last_run,
};
