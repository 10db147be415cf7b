/* SPDX-License-Identifier: Apache-2.0
 *
 * attention: softmax(q k^T scale + mask) v, composed. The scale goes to q, usually the smaller
 * factor; causal takes the places after the diagonal out by -infinity, as PyTorch does.
 */
#include <math.h>

#include "ops/ops.h"

static bool fits(const ctn_desc *q, const ctn_desc *k, const ctn_desc *v)
{
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2) return false;
    return q->dim[q->ndim - 1] == k->dim[k->ndim - 1] && k->dim[k->ndim - 2] == v->dim[v->ndim - 2];
}

ctn_tensor *ctn_attention_at(const char *at, ctn_tensor *q, ctn_tensor *k, ctn_tensor *v,
                             ctn_tensor *mask, const ctn_attention_opt *opt)
{
    ctn_attention_opt o;
    char tq[128], tk[128], tv[128];
    if (!q || !k || !v) return ctn_matmul_at(at, NULL, NULL, 0, 1);
    if (ctn__opt("attention", &o, sizeof o, opt) < 0) return NULL;
    if (!fits(&q->d, &k->d, &v->d)) {
        ctn_fail(CTN_ESHAPE,
                 "attention: q is %s, k is %s, v is %s; (...,L,E), (...,M,E), (...,M,F) are needed "
                 "(%s)",
                 ctn__shape_text(&q->d, tq, sizeof tq), ctn__shape_text(&k->d, tk, sizeof tk),
                 ctn__shape_text(&v->d, tv, sizeof tv), at);
        return NULL;
    }
    int64_t L = q->d.dim[q->d.ndim - 2], E = q->d.dim[q->d.ndim - 1], M = k->d.dim[k->d.ndim - 2];
    double scale = o.scale != 0 ? o.scale : 1 / sqrt((double)(E > 0 ? E : 1));
    ctn_tensor *s = ctn_matmul_at(at, ctn_scale_at(at, q, scale), k, 0, 1); /* (...,L,M) */
    if (mask) s = ctn_add_at(at, s, mask);
    if (o.causal) {
        ctn_tensor *all = ctn_full_at(at, q->ctx, 1, CTN_BOOL, CTN_SHAPE(L, M));
        ctn_tensor *none = ctn_full_at(at, q->ctx, -INFINITY, q->d.dtype, CTN_SCALAR_SHAPE);
        s = ctn_where_at(at, ctn_tril_at(at, all, 0), s, none);
    }
    return ctn_matmul_at(at, ctn_softmax_at(at, s, -1), v, 0, 0);
}
