/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop over the positions of an index tensor (scatter.h).
 */
#include "ops/common/scatter.h"

enum { X, INDEX, SRC };

ctn_status ctn__infer_scatter(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[X], *index = a->in[INDEX], *src = a->in[SRC];
    int axis;
    char tx[128], ti[128], ts[128];
    CTN_TRY(ctn__infer_index(a, index));
    CTN_TRY(ctn__infer_axis(a, x, a->attr[0], &axis));
    if (src->dtype != x->dtype)
        return ctn_fail(CTN_EDTYPE, "%s: x is %s, src is %s; expected the same type; use ctn_cast",
                        a->name, ctn_dtype_name(x->dtype), ctn_dtype_name(src->dtype));
    bool ok = x->ndim == index->ndim && x->ndim == src->ndim;
    for (int i = 0; i < x->ndim && ok; i++)
        ok = index->dim[i] <= src->dim[i] && (i == axis || index->dim[i] <= x->dim[i]);
    if (!ok)
        return ctn_fail(CTN_ESHAPE,
                        "%s along axis %d: shapes do not match: x is %s, index is %s, src is %s",
                        a->name, axis, ctn__shape_text(x, tx, sizeof tx),
                        ctn__shape_text(index, ti, sizeof ti), ctn__shape_text(src, ts, sizeof ts));
    a->out[0] = *x;
    return CTN_OK;
}

static void unit_set(ctn__scatter_unit *u, const ctn_desc *y, const ctn_desc *index,
                     const ctn_desc *src, int axis, int64_t first, int64_t lines)
{
    u->n = lines - first < CTN__SCATTER_LINES ? lines - first : CTN__SCATTER_LINES;
    for (int64_t k = 0; k < u->n; k++) {
        int64_t q = first + k;
        u->y[k] = u->index[k] = u->src[k] = 0;
        for (int i = y->ndim - 1; i >= 0; i--) {
            if (i == axis) continue;
            int64_t c = q % index->dim[i];
            q /= index->dim[i];
            u->y[k] += c * y->stride[i];
            u->index[k] += c * index->stride[i];
            u->src[k] += c * src->stride[i];
        }
    }
}

void ctn__scatter_units(const ctn_run_args *a, const ctn_desc *y, const ctn_desc *index,
                        const ctn_desc *src, int axis, ctn__scatter_fn *fn)
{
    const int64_t n = index->dim[axis], lines = n > 0 ? ctn__count(index) / n : 0;
    const int64_t units = (lines + CTN__SCATTER_LINES - 1) / CTN__SCATTER_LINES;
    const int64_t threads = a->env ? a->env->threads : 1;
    const int64_t parts = units > 0 && units < threads ? (threads + units - 1) / units : 1;
#pragma omp parallel for schedule(static) if (lines * n > CTN__GRAIN)
    for (int64_t k = 0; k < units * parts; k++) {
        ctn__scatter_unit u;
        unit_set(&u, y, index, src, axis, k / parts * CTN__SCATTER_LINES, lines);
        u.begin = y->dim[axis] * (k % parts) / parts;
        u.end = y->dim[axis] * (k % parts + 1) / parts;
        fn(a, &u, axis);
    }
}

ctn_status ctn__scatter_run(const char *op, const ctn_run_args *a, ctn__scatter_fn *fn)
{
    const ctn_desc *x = &a->din[X], *index = &a->din[INDEX];
    const int axis = ctn__axis(x->ndim, a->attr[0]);
    CTN_TRY(ctn__index_check(op, a->in[INDEX], index, x->dim[axis]));
    if (a->out[0] != a->in[X] && ctn__count(x) > 0)
        ctn__copy_block(&(ctn__block_copy){.dst = a->out[0],
                                           .src = a->in[X],
                                           .outer = 1,
                                           .len = ctn__count(x),
                                           .inner = 1,
                                           .dtype = x->dtype});
    ctn__scatter_units(a, x, index, &a->din[SRC], axis, fn);
    return CTN_OK;
}

ctn_tensor *ctn__scatter_pad(const ctn_grad_args *a, ctn_tensor *g)
{
    const ctn_desc *src = &a->in[SRC]->d, *index = &a->in[INDEX]->d;
    int64_t after[CTN_MAX_DIMS];
    if (ctn__same_shape(src, index)) return g;
    for (int i = 0; i < src->ndim; i++) after[i] = src->dim[i] - index->dim[i];
    return ctn_pad_at(a->at, g, NULL, after, 0);
}
