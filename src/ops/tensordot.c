/* SPDX-License-Identifier: Apache-2.0
 *
 * tensordot: the sum of products over pairs of axes. It is not an op of its own but an einsum whose
 * letters are made up here: a to h for the dimensions of a, A to H for those of b.
 */
#include "ops/common/along.h"

ctn_tensor *ctn_tensordot_at(const char *at, ctn_tensor *a, ctn_tensor *b, int naxes,
                             const int64_t *axes_a, const int64_t *axes_b)
{
    char left[CTN_MAX_DIMS + 1] = "", right[CTN_MAX_DIMS + 1] = "", text[4 * CTN_MAX_DIMS + 4];
    char rest[2 * CTN_MAX_DIMS + 1], ta[128], tb[128];
    int n = 0;
    ctn_tensor *in[2] = {a, b};
    if (!a || !b) return ctn_einsum_at(at, "", 2, in);
    for (int i = 0; i < a->d.ndim; i++) left[i] = (char)('a' + i);
    for (int i = 0; i < b->d.ndim; i++) right[i] = (char)('A' + i);
    for (int k = 0; k < naxes; k++) {
        const int i = ctn__axis_of("tensordot", at, a, axes_a[k]);
        const int j = i < 0 ? -1 : ctn__axis_of("tensordot", at, b, axes_b[k]);
        if (j < 0) return NULL;
        bool again = false;
        for (int m = 0; m < b->d.ndim; m++) again = again || right[m] == left[i];
        if (again || right[j] != 'A' + j || a->d.dim[i] != b->d.dim[j]) {
            ctn_fail(CTN_ESHAPE, "tensordot: axis %d of %s and axis %d of %s %s (%s)", i,
                     ctn__shape_text(&a->d, ta, sizeof ta), j,
                     ctn__shape_text(&b->d, tb, sizeof tb),
                     a->d.dim[i] != b->d.dim[j] ? "have different lengths" : "are named twice", at);
            return NULL;
        }
        right[j] = left[i];
    }
    for (int i = 0; i < a->d.ndim; i++)
        if (!strchr(right, left[i])) rest[n++] = left[i];
    for (int i = 0; i < b->d.ndim; i++)
        if (!strchr(left, right[i])) rest[n++] = right[i];
    rest[n] = 0;
    snprintf(text, sizeof text, "%s,%s->%s", left, right, rest);
    return ctn_einsum_at(at, text, 2, in);
}
