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

ctn_status ctn__infer_arith(const ctn_infer_args *a, const ctn_desc *x)
{
    if (x->dtype == CTN_F32 || x->dtype == CTN_F64) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "%s: input is %s, expected f32 or f64; use ctn_cast", a->name,
                    ctn_dtype_name(x->dtype));
}

/* Columns of a matrix: runs of S bytes, a constant, so that each copy is one move. */
#define DEFINE_COLUMN(S)                                                                     \
    static void column_##S(char *dst, const char *src, int64_t to, int64_t from, int64_t n)  \
    {                                                                                        \
        _Pragma("omp parallel for schedule(static) if (n > CTN__GRAIN)") for (int64_t i = 0; \
                                                                              i < n; i++)    \
            memcpy(dst + i * to, src + i * from, S);                                         \
    }
DEFINE_COLUMN(4)
DEFINE_COLUMN(8)

void ctn__copy_block(const ctn__block_copy *c)
{
    enum { PIECE = 1 << 16 }; /* bytes */
    const int64_t unit = c->inner * (int64_t)c->es, run = c->len * unit;
    if (run == 4 || run == 8) {
        (run == 4 ? column_4 : column_8)(c->dst + c->dat * unit, c->src + c->sat * unit,
                                         c->dn * unit, c->sn * unit, c->outer);
        return;
    }
    const int64_t pieces = (run + PIECE - 1) / PIECE, total = c->outer * pieces;
#pragma omp parallel for schedule(static) if (c->outer * run > 4 * CTN__GRAIN)
    for (int64_t i = 0; i < total; i++) {
        int64_t o = i / pieces, from = i % pieces * PIECE;
        int64_t n = run - from < PIECE ? run - from : PIECE;
        memcpy(c->dst + (o * c->dn + c->dat) * unit + from,
               c->src + (o * c->sn + c->sat) * unit + from, (size_t)n);
    }
}

ctn_status ctn__infer_index(const ctn_infer_args *a, const ctn_desc *d)
{
    if (d->dtype == CTN_I64 || d->dtype == CTN_I32) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "%s: indices are %s, expected i64 or i32", a->name,
                    ctn_dtype_name(d->dtype));
}

ctn_status ctn__index_check(const char *op, const void *p, const ctn_desc *d, int64_t limit)
{
    int64_t n = ctn__count(d), i = 0;
    while (i < n && (uint64_t)ctn__index_get(p, d->dtype, i) < (uint64_t)limit) i++;
    if (i == n) return CTN_OK;
    int64_t last = d->ndim > 0 ? d->dim[d->ndim - 1] : 1;
    return ctn_fail(CTN_EARG, "%s: the index of row %lld, column %lld is %lld, outside 0 to %lld",
                    op, (long long)(d->ndim > 1 ? i / last : i),
                    (long long)(d->ndim > 1 ? i % last : 0),
                    (long long)ctn__index_get(p, d->dtype, i), (long long)limit - 1);
}
