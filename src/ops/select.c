/* SPDX-License-Identifier: Apache-2.0
 *
 * select, separate, select_item, permutate and masked_fill. They are not ops of their own but
 * record slices, split, gather, embedding and where.
 */
#include "ops/common/along.h"

ctn_tensor *ctn_select_at(const char *at, ctn_tensor *x, int64_t axis, int64_t index)
{
    if (x && ctn__axis_of("select", at, x, axis) < 0) return NULL;
    return ctn_squeeze_at(at, ctn_slice_at(at, x, axis, index, 1), axis);
}

ctn_status ctn_separate_at(const char *at, ctn_tensor *x, int64_t axis, int n, ctn_tensor **out)
{
    char t[128];
    for (int i = 0; i < n; i++) out[i] = NULL;
    const int ax = x ? ctn__axis_of("separate", at, x, axis) : 0;
    if (ax < 0) return ctn_error_status();
    if (x && (n < 1 || x->d.dim[ax] != n))
        return ctn_fail(CTN_ESHAPE, "separate: axis %d of %s does not have length %d (%s)", ax,
                        ctn__shape_text(&x->d, t, sizeof t), n, at);
    int64_t *ones = ctn__malloc((size_t)(n > 0 ? n : 1) * sizeof *ones);
    if (!ones) return CTN_ENOMEM;
    for (int i = 0; i < n; i++) ones[i] = 1;
    ctn_status st = ctn_split_at(at, x, axis, n, ones, out);
    ctn__free(ones);
    for (int i = 0; i < n && st >= 0; i++) {
        out[i] = ctn_squeeze_at(at, out[i], axis);
        if (!out[i]) st = ctn_error_status();
    }
    for (int i = 0; i < n && st < 0; i++) out[i] = NULL;
    return st;
}

ctn_tensor *ctn_select_item_at(const char *at, ctn_tensor *x, ctn_tensor *t)
{
    char tx[128], tt[128];
    if (!x || !t) return ctn_gather_at(at, x, t, -1);
    ctn_desc rows = x->d;
    rows.ndim--;
    if (x->d.ndim < 1 || !ctn__same_shape(&rows, &t->d)) {
        ctn_fail(CTN_ESHAPE, "select_item: x is %s, t is %s; expected one index per row of x (%s)",
                 ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&t->d, tt, sizeof tt), at);
        return NULL;
    }
    return ctn_squeeze_at(at, ctn_gather_at(at, x, ctn_unsqueeze_at(at, t, -1), -1), -1);
}

/* Whole rows are copied, so the axis comes first and the others are one dimension. */
ctn_tensor *ctn_permutate_at(const char *at, ctn_tensor *x, ctn_tensor *index, int64_t axis)
{
    char tx[128], ti[128];
    if (!x || !index) return ctn_embedding_at(at, x, index);
    const int ax = ctn__axis_of("permutate", at, x, axis);
    if (ax < 0) return NULL;
    const int64_t n = x->d.dim[ax];
    if (index->d.ndim != 1 || index->d.dim[0] != n) {
        ctn_fail(CTN_ESHAPE, "permutate along axis %d: x is %s, index is %s; expected (%lld) (%s)",
                 ax, ctn__shape_text(&x->d, tx, sizeof tx),
                 ctn__shape_text(&index->d, ti, sizeof ti), (long long)n, at);
        return NULL;
    }
    ctn_tensor *first = ctn_moveaxis_at(at, x, ax, 0);
    if (!first) return NULL;
    const int64_t width = n > 0 ? ctn__count(&x->d) / n : 1;
    ctn_tensor *y = ctn_embedding_at(at, ctn_reshape_at(at, first, CTN_SHAPE(n, width)), index);
    return ctn_moveaxis_at(at, ctn_reshape_at(at, y, first->d.ndim, first->d.dim), 0, ax);
}

ctn_tensor *ctn_masked_fill_at(const char *at, ctn_tensor *x, ctn_tensor *mask, double value)
{
    char tx[128], tm[128];
    if (!x || !mask) return ctn_where_at(at, mask, x, x);
    ctn_desc both = {0};
    if (ctn__broadcast(&both, "masked_fill", &x->d, &mask->d) < 0) return NULL;
    if (!ctn__same_shape(&both, &x->d)) {
        ctn_fail(CTN_ESHAPE, "masked_fill: x is %s; cannot broadcast the mask, which is %s (%s)",
                 ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&mask->d, tm, sizeof tm),
                 at);
        return NULL;
    }
    ctn_tensor *fill = ctn_full_at(at, x->ctx, value, x->d.dtype, CTN_SCALAR_SHAPE);
    return ctn_where_at(at, mask, fill, x);
}
