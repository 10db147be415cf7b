/* SPDX-License-Identifier: Apache-2.0
 *
 * scatter_add: y = x with src added at the indices. For axis 1 of 3 and every position of index:
 *   y[i,index[i,j,k],k] += src[i,j,k]
 * Gradients: gx = gy, gsrc = gather(gy, index).
 *
 * Only elements on the same line along the axis can be added to the same place. A unit of work
 * owns whole lines or, if there are fewer lines than threads, a part of each. It adds in the
 * order of the index, so the result does not depend on the thread count.
 */
#include "ops/common/along.h"

enum { AXIS };

static ctn_status scatter_add_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *index = a->in[1], *src = a->in[2];
    int axis;
    char tx[128], ti[128], ts[128];
    CTN_TRY(ctn__infer_arith(a, x));
    CTN_TRY(ctn__infer_index(a, index));
    CTN_TRY(ctn__infer_axis(a, x, a->attr[AXIS], &axis));
    if (src->dtype != x->dtype)
        return ctn_fail(CTN_EDTYPE,
                        "scatter_add: x is %s, src is %s; expected the same type; use ctn_cast",
                        ctn_dtype_name(x->dtype), ctn_dtype_name(src->dtype));
    bool ok = x->ndim == index->ndim && x->ndim == src->ndim;
    for (int i = 0; i < x->ndim && ok; i++)
        ok = index->dim[i] <= src->dim[i] && (i == axis || index->dim[i] <= x->dim[i]);
    if (!ok)
        return ctn_fail(
            CTN_ESHAPE,
            "scatter_add along axis %d: shapes do not match: x is %s, index is %s, src is %s", axis,
            ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(index, ti, sizeof ti),
            ctn__shape_text(src, ts, sizeof ts));
    a->out[0] = *x;
    return CTN_OK;
}

enum { LINES = 64 }; /* adjacent lines of a unit, processed together for the cache */

typedef struct {
    int64_t y[LINES], index[LINES], src[LINES]; /* offset of each line */
    int64_t n;
    int64_t begin, end; /* the part of each line of y that the unit owns */
} unit;

static void unit_set(unit *u, const ctn_run_args *a, int axis, int64_t first, int64_t lines)
{
    const ctn_desc *x = &a->din[0], *index = &a->din[1], *src = &a->din[2];
    u->n = lines - first < LINES ? lines - first : LINES;
    for (int64_t k = 0; k < u->n; k++) {
        int64_t q = first + k;
        u->y[k] = u->index[k] = u->src[k] = 0;
        for (int i = x->ndim - 1; i >= 0; i--) {
            if (i == axis) continue;
            int64_t c = q % index->dim[i];
            q /= index->dim[i];
            u->y[k] += c * x->stride[i];
            u->index[k] += c * index->stride[i];
            u->src[k] += c * src->stride[i];
        }
    }
}

#define DEFINE_ADD(T)                                                                          \
    static void add_##T(const ctn_run_args *a, const unit *u, int axis)                        \
    {                                                                                          \
        const T *src = a->in[2];                                                               \
        T *y = a->out[0];                                                                      \
        const ctn_desc *d = a->din;                                                            \
        for (int64_t i = 0; i < d[1].dim[axis]; i++)                                           \
            for (int64_t k = 0; k < u->n; k++) {                                               \
                int64_t to =                                                                   \
                    ctn__index_get(a->in[1], d[1].dtype, u->index[k] + i * d[1].stride[axis]); \
                if (to < u->begin || to >= u->end) continue;                                   \
                y[u->y[k] + to * d[0].stride[axis]] += src[u->src[k] + i * d[2].stride[axis]]; \
            }                                                                                  \
    }
DEFINE_ADD(float)
DEFINE_ADD(double)

static ctn_status scatter_add_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0], *index = &a->din[1];
    const int axis = ctn__axis(x->ndim, a->attr[AXIS]);
    const int64_t n = index->dim[axis], lines = n > 0 ? ctn__count(index) / n : 0;
    CTN_TRY(ctn__index_check("scatter_add", a->in[1], index, x->dim[axis]));
    if (a->out[0] != a->in[0] && ctn__count(x) > 0)
        ctn__copy_block(&(ctn__block_copy){.dst = a->out[0],
                                           .src = a->in[0],
                                           .outer = 1,
                                           .len = ctn__count(x),
                                           .inner = 1,
                                           .es = ctn_dtype_size(x->dtype)});
    const int64_t units = (lines + LINES - 1) / LINES, threads = a->env ? a->env->threads : 1;
    const int64_t parts = units > 0 && units < threads ? (threads + units - 1) / units : 1;
#pragma omp parallel for schedule(static) if (lines * n > CTN__GRAIN)
    for (int64_t k = 0; k < units * parts; k++) {
        unit u;
        unit_set(&u, a, axis, k / parts * LINES, lines);
        u.begin = x->dim[axis] * (k % parts) / parts;
        u.end = x->dim[axis] * (k % parts + 1) / parts;
        if (x->dtype == CTN_F32) add_float(a, &u, axis);
        else add_double(a, &u, axis);
    }
    return CTN_OK;
}

static ctn_status scatter_add_grad(const ctn_grad_args *a)
{
    a->gin[0] = a->gout[0];
    if (!a->need[2]) return CTN_OK;
    const ctn_desc *src = &a->in[2]->d, *index = &a->in[1]->d;
    int64_t after[CTN_MAX_DIMS];
    for (int i = 0; i < src->ndim; i++) after[i] = src->dim[i] - index->dim[i];
    ctn_tensor *g = ctn_gather_at(a->at, a->gout[0], a->in[1], a->attr[AXIS]);
    if (!ctn__same_shape(src, index)) g = ctn_pad_at(a->at, g, NULL, after, 0);
    return ctn__grad_to(a, 2, g);
}

ctn_op ctn__op_scatter_add = {
    .struct_size = sizeof(ctn_op),
    .name = "scatter_add",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .inplace = CTN_OPERAND(0),
    .infer = scatter_add_infer,
    .grad = scatter_add_grad,
    .run = scatter_add_run,
};

ctn_tensor *ctn_scatter_add_at(const char *at, ctn_tensor *x, ctn_tensor *index, ctn_tensor *src,
                               int64_t axis)
{
    ctn_tensor *in[3] = {x, index, src};
    return ctn__apply1(at, NULL, &ctn__op_scatter_add, 3, in, 1, &axis, 0, NULL);
}
