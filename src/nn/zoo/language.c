/* SPDX-License-Identifier: Apache-2.0
 *
 * What the language models of the zoo share: heads of attention, the cache of keys and values, and
 * logits.
 */
#include "nn/zoo/zoo.h"

ctn_status ctn__zoo_linear(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                           int64_t out, double std, bool bias)
{
    const ctn_init *weight = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = std);
    const ctn_init *zero = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    return ctn__zoo_put(m, name,
                        ctn_linear_new(child, m->ctx, in, out,
                                       CTN_OPT(ctn_linear_opt, .weight = weight, .bias = zero,
                                               .no_bias = !bias)),
                        child);
}

ctn_status ctn__zoo_embedding(ctn_module **child, ctn_module *m, const char *name, int64_t rows,
                              int64_t width, double std)
{
    const ctn_init *weight = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = std);
    return ctn__zoo_put(m, name, ctn_embedding_new(child, m->ctx, rows, width, weight), child);
}

ctn_status ctn__zoo_head(ctn_var **head, ctn_module *m, int64_t vocabulary, int64_t width,
                         ctn_var *tied)
{
    ctn_module *c = NULL;
    const ctn_init *weight = CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL, .std = 0.02);
    CTN_TRY(ctn__zoo_group(&c, m, "lm_head"));
    *head = tied;
    if (tied) return ctn_module_tie(c, "weight", tied);
    return ctn_module_param(head, c, "weight", ctn_context_float_type(c->ctx),
                            CTN_SHAPE(vocabulary, width), weight);
}

ctn_tensor *ctn__zoo_split_heads(const char *at, ctn_tensor *x, int64_t heads)
{
    if (!x) return NULL;
    x = ctn_reshape_at(at, x,
                       CTN_SHAPE(ctn_dim(x, 0), ctn_dim(x, 1), heads, ctn_dim(x, 2) / heads));
    return ctn_transpose_at(at, x, 4, (const int64_t[]){0, 2, 1, 3});
}

ctn_tensor *ctn__zoo_join_heads(const char *at, ctn_tensor *x)
{
    if (!x) return NULL;
    const int64_t N = ctn_dim(x, 0), T = ctn_dim(x, 2), C = ctn_dim(x, 1) * ctn_dim(x, 3);
    x = ctn_transpose_at(at, x, 4, (const int64_t[]){0, 2, 1, 3});
    return ctn_reshape_at(at, x, CTN_SHAPE(N, T, C));
}

/* The variable with x written to the positions from `first` on. */
static ctn_tensor *extended(const char *at, ctn_var *v, ctn_tensor *x, ctn_tensor *first)
{
    ctn_tensor *all = ctn_put_rows_at(at, ctn_use_at(at, v), x, first);
    return ctn_assign_at(at, v, all) < 0 ? NULL : all;
}

ctn_tensor *ctn__zoo_attend(const char *at, ctn_tensor *q, ctn_tensor *k, ctn_tensor *v,
                            int64_t window, const ctn__cache *c, int i)
{
    if (!q || !k || !v) return NULL;
    ctn_tensor *keys = c ? extended(at, c->k[i], k, c->first) : k;
    ctn_tensor *values = c ? extended(at, c->v[i], v, c->first) : v;
    if (!keys || !values) return NULL;
    if (!c || c->begin) keys = k, values = v;
    return ctn_attention_at(at, q, keys, values, NULL,
                            CTN_OPT(ctn_attention_opt, .causal = 1, .window = window,
                                    .first = c && !c->begin ? c->first : NULL));
}

ctn_tensor *ctn__zoo_last_logits(const char *at, ctn_tensor *x, ctn_tensor *last, ctn_var *head)
{
    if (!x) return NULL;
    x = ctn_reshape_at(at, x, CTN_SHAPE(ctn_dim(x, 0) * ctn_dim(x, 1), ctn_dim(x, 2)));
    return ctn_linear_at(at, ctn_embedding_at(at, x, last), ctn_use_at(at, head), NULL);
}

ctn_tensors ctn__zoo_logits(const char *at, ctn_tensor *x, ctn_tensor *targets, ctn_tensor *w,
                            ctn_tensor *bias)
{
    const ctn_softmax_cross_entropy_opt *how = CTN_OPT(ctn_softmax_cross_entropy_opt, .bias = bias);
    x = targets ? ctn_linear_cross_entropy_at(at, x, w, targets, how)
                : ctn_linear_at(at, x, w, bias);
    return (ctn_tensors){x != NULL, {x}};
}

ctn_status ctn__zoo_check_tokens(const char *who, const char *at, const ctn_tensor *x,
                                 int64_t block)
{
    const int64_t T = ctn_dim(x, -1);
    if (ctn_ndim(x) == 2 && T <= block) return CTN_OK;
    return ctn_fail(CTN_ESHAPE,
                    "%s: x has %d dimensions and sequences of %lld, expected (N,T) with T at most "
                    "%lld (%s)",
                    who, ctn_ndim(x), (long long)T, (long long)block, at);
}
