/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of ops along one axis. Copies are cut into pieces of a fixed size, so that the threads
 * share one long run as evenly as many short ones.
 */
#include "ops/common/along.h"

ctn__along ctn__along_axis(const ctn_desc *d, int axis)
{
    ctn__along s = {1, d->dim[axis], 1};
    for (int i = 0; i < axis; i++) s.outer *= d->dim[i];
    for (int i = axis + 1; i < d->ndim; i++) s.inner *= d->dim[i];
    return s;
}

ctn_status ctn__infer_axis(const ctn_infer_args *a, const ctn_desc *x, int64_t axis, int *out)
{
    char t[128];
    *out = ctn__axis(x->ndim, axis);
    if (*out >= 0) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "%s: axis %lld does not exist in %s", a->name, (long long)axis,
                    ctn__shape_text(x, t, sizeof t));
}

int ctn__axis_of(const char *who, const char *at, const ctn_tensor *x, int64_t axis)
{
    char t[128];
    const int ax = ctn__axis(x->d.ndim, axis);
    if (ax < 0)
        ctn_fail(CTN_ESHAPE, "%s: axis %lld does not exist in %s (%s)", who, (long long)axis,
                 ctn__shape_text(&x->d, t, sizeof t), at);
    return ax;
}

ctn_status ctn__infer_arith(const ctn_infer_args *a, const ctn_desc *x)
{
    if (x->dtype == CTN_F32 || x->dtype == CTN_F64) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "%s: input is %s, expected f32 or f64; use ctn_cast", a->name,
                    ctn_dtype_name(x->dtype));
}

/* The dimensions of a strided copy from the outermost in dst to the innermost. Dimensions of length
 * 1 are dropped, and neighbours that both sides pass through in one run are merged. */
typedef struct {
    int nd;
    int64_t dim[CTN_MAX_DIMS], dst[CTN_MAX_DIMS], src[CTN_MAX_DIMS]; /* strides in elements */
} strided;

static strided merge(const ctn_desc *dd, const ctn_desc *sd)
{
    strided s = {.nd = 0};
    ctn_desc sizes = *dd; /* with the signs of its strides removed */
    int order[CTN_MAX_DIMS];
    for (int i = 0; i < dd->ndim; i++)
        if (dd->stride[i] < 0) sizes.stride[i] = -dd->stride[i];
    ctn__by_stride(&sizes, order);
    for (int k = 0; k < dd->ndim; k++) {
        const int i = order[k], j = s.nd - 1;
        if (dd->dim[i] == 1) continue;
        const bool joins = j >= 0 && s.dst[j] == dd->stride[i] * dd->dim[i] &&
                           s.src[j] == sd->stride[i] * dd->dim[i];
        const int at = joins ? j : s.nd++;
        s.dim[at] = dd->dim[i] * (joins ? s.dim[j] : 1);
        s.dst[at] = dd->stride[i];
        s.src[at] = sd->stride[i];
    }
    if (s.nd == 0) s = (strided){1, {1}, {1}, {1}};
    return s;
}

#define COPY_RUN(T)                                                \
    do {                                                           \
        const T *x = src;                                          \
        T *y = dst;                                                \
        if (ds == 1 && ss == -1)                                   \
            for (int64_t i = 0; i < n; i++) y[i] = x[-i];          \
        else if (ds == 1)                                          \
            for (int64_t i = 0; i < n; i++) y[i] = x[i * ss];      \
        else                                                       \
            for (int64_t i = 0; i < n; i++) y[i * ds] = x[i * ss]; \
    } while (0)

static void copy_run(void *dst, int64_t ds, const void *src, int64_t ss, int64_t n, size_t es)
{
    if (ds == 1 && ss == 1) {
        memcpy(dst, src, (size_t)n * es);
        return;
    }
    switch (es) {
    case 1: COPY_RUN(uint8_t); break;
    case 2: COPY_RUN(uint16_t); break;
    case 4: COPY_RUN(uint32_t); break;
    default: COPY_RUN(uint64_t); break;
    }
}

void ctn__copy_view(void *dst, const ctn_desc *dd, const void *src, const ctn_desc *sd)
{
    enum { PIECE = CTN__GRAIN }; /* elements */
    if (ctn__count(dd) == 0) return;
    const strided s = merge(dd, sd);
    const int last = s.nd - 1;
    const size_t es = ctn_dtype_size(dd->dtype);
    const int64_t run = s.dim[last], pieces = (run + PIECE - 1) / PIECE;
    const int64_t total = ctn__count(dd) / run * pieces;
#pragma omp parallel for schedule(static) if (ctn__count(dd) > CTN__GRAIN)
    for (int64_t i = 0; i < total; i++) {
        int64_t row = i / pieces, at = i % pieces * PIECE;
        int64_t to = at * s.dst[last], from = at * s.src[last];
        for (int k = last - 1; k >= 0; k--) {
            to += row % s.dim[k] * s.dst[k];
            from += row % s.dim[k] * s.src[k];
            row /= s.dim[k];
        }
        copy_run((char *)dst + to * (int64_t)es, s.dst[last],
                 (const char *)src + from * (int64_t)es, s.src[last],
                 run - at < PIECE ? run - at : PIECE, es);
    }
}

void ctn__copy_block(const ctn__block_copy *c)
{
    const int64_t run = c->len * c->inner, unit = c->inner * (int64_t)ctn_dtype_size(c->dtype);
    const ctn_desc d = {.dtype = c->dtype, .ndim = 2, .dim = {c->outer, run}};
    ctn_desc to = d, from = d;
    to.stride[0] = c->dn * c->inner;
    from.stride[0] = c->sn * c->inner;
    to.stride[1] = from.stride[1] = 1;
    ctn__copy_view(c->dst + c->dat * unit, &to, c->src + c->sat * unit, &from);
}

ctn_status ctn__infer_index(const ctn_infer_args *a, const ctn_desc *d)
{
    if (d->dtype == CTN_I64 || d->dtype == CTN_I32) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "%s: indices are %s, expected i64 or i32", a->name,
                    ctn_dtype_name(d->dtype));
}

ctn_status ctn__index_check(const char *op, const void *p, const ctn_desc *d, int64_t limit)
{
    const int64_t n = ctn__count(d);
    int64_t bad = 0, i = 0;
#pragma omp parallel for schedule(static) reduction(+ : bad) if (n > 4 * CTN__GRAIN)
    for (int64_t k = 0; k < n; k++)
        bad += (uint64_t)ctn__index_get(p, d->dtype, k) >= (uint64_t)limit;
    if (bad == 0) return CTN_OK;
    while ((uint64_t)ctn__index_get(p, d->dtype, i) < (uint64_t)limit) i++;
    int64_t last = d->ndim > 0 ? d->dim[d->ndim - 1] : 1;
    return ctn_fail(CTN_EARG, "%s: the index of row %lld, column %lld is %lld, outside 0 to %lld",
                    op, (long long)(d->ndim > 1 ? i / last : i),
                    (long long)(d->ndim > 1 ? i % last : 0),
                    (long long)ctn__index_get(p, d->dtype, i), (long long)limit - 1);
}
