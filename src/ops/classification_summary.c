/* SPDX-License-Identifier: Apache-2.0
 *
 * classification_summary: precision, recall, F1 and support of each class from a confusion
 * matrix. Row sums count the rows of a class, column sums how often it was predicted, and the
 * diagonal the hits. In double, in which counts are exact. No gradient.
 */
#include "ops/ops.h"

/* a / b as f32, 0 where b is 0. */
static ctn_tensor *ratio(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    if (!a || !b) return NULL;
    ctn_tensor *zero = ctn_full_at(at, a->ctx, 0, CTN_F64, CTN_SCALAR_SHAPE);
    ctn_tensor *none = ctn_equal_at(at, b, zero);
    return ctn_cast_at(at, ctn_where_at(at, none, zero, ctn_div_at(at, a, b)), CTN_F32);
}

ctn_status ctn_classification_summary_at(const char *at, ctn_tensor *confusion,
                                         ctn_tensor **precision, ctn_tensor **recall,
                                         ctn_tensor **f1, ctn_tensor **support)
{
    const int64_t row = 0, column = 1;
    ctn_tensor **to[4] = {precision, recall, f1, support};
    char t[128];
    for (int i = 0; i < 4; i++)
        if (to[i]) *to[i] = NULL;
    if (!confusion) return ctn_error_status();
    const ctn_desc *d = &confusion->d;
    if (d->ndim != 2 || d->dim[0] != d->dim[1])
        return ctn_fail(CTN_ESHAPE,
                        "classification_summary: the confusion matrix is %s, expected "
                        "(C,C) (%s)",
                        ctn__shape_text(d, t, sizeof t), at);
    ctn_tensor *m = ctn_cast_at(at, confusion, CTN_F64);
    ctn_tensor *diagonal = ctn_sub_at(at, ctn_tril_at(at, m, 0), ctn_tril_at(at, m, -1));
    ctn_tensor *hits = ctn_sum_at(at, diagonal, 1, &column, 0);
    ctn_tensor *rows = ctn_sum_at(at, m, 1, &column, 0), *calls = ctn_sum_at(at, m, 1, &row, 0);
    ctn_tensor *both = ctn_add_at(at, rows, calls);
    if (precision) *precision = ratio(at, hits, calls);
    if (recall) *recall = ratio(at, hits, rows);
    if (f1) *f1 = ratio(at, ctn_scale_at(at, hits, 2), both);
    if (support) *support = ctn_cast_at(at, rows, CTN_F32);
    for (int i = 0; i < 4; i++)
        if (to[i] && !*to[i]) return ctn_error_status();
    return CTN_OK;
}
