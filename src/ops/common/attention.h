/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as ordinary ops, which hold the whole matrix of probabilities: for f64, for operands
 * that the kernel of ops/attention.c does not take, and for gradients that it does not have.
 */
#ifndef CTN_OPS_COMMON_ATTENTION_H
#define CTN_OPS_COMMON_ATTENTION_H

#include "ops/ops.h"

typedef struct {
    const char *at;
    ctn_tensor *q, *k, *v; /* (...,L,E), (...,M,E), (...,M,F) */
    ctn_tensor *mask;      /* added to the scores; NULL: none */
    ctn_tensor *lengths;   /* visible keys, broadcasts to (...,L,M) as a type of q; NULL: all */
    ctn_tensor *first;     /* positions of the first queries, like lengths; NULL: 0 */
    ctn_scalar scale;
    bool causal;
    int64_t window;
    double dropout;
} ctn__attention;

/* softmax(q k^T scale + mask), zero where a key is not visible. */
ctn_tensor *ctn__attention_share(const ctn__attention *a);
/* softmax(...) v */
ctn_tensor *ctn__attention_composed(const ctn__attention *a);

/* The gradients with respect to q, k, v and the mask, for the gradient g of the result. */
ctn_status ctn__attention_grads(const ctn__attention *a, ctn_tensor *g, ctn_tensor *out[4]);
/* The derivative of the result and of the gradients of q, k, v in the direction d (of q, k, v;
 * NULL: zero): out[0] to out[2] belong to q, k, v, out[3] to g. Hessians are symmetric, so these
 * are also the second derivatives. */
ctn_status ctn__attention_seconds(const ctn__attention *a, ctn_tensor *g, ctn_tensor *const d[3],
                                  ctn_tensor *out[4]);

#endif
