/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention as ordinary ops. With the scores S, P = softmax(S) and the gradient g of y = P v:
 *     dP = g v^T,   dS = P (dP - sum of P dP over the keys)
 *     gq = scale dS k,   gk = scale dS^T q,   gv = P^T g,   gradient of the mask = dS
 * The derivatives of these in the direction (q', k', v') are marked by a dash:
 *     S' = scale (q' k^T + q k'^T),   P' = P (S' - sum of P S'),   dP' = g v'^T
 */
#include "ops/common/attention.h"

#include <math.h>

static const double NOTHING = -1e30; /* score of a key that is not visible */

static ctn_tensor *product(const ctn__attention *a, ctn_tensor *x, ctn_tensor *y, int ta, int tb)
{
    return ctn_matmul_at(a->at, x, y, ta, tb);
}

static ctn_tensor *scaled(const ctn__attention *a, ctn_tensor *x)
{
    return ctn__apply1(a->at, NULL, &ctn__op_scale, 1, &x, 0, NULL, 1, &a->scale);
}

/* The sum over the last dimension, which stays with length 1. */
static ctn_tensor *row_sum(const ctn__attention *a, ctn_tensor *x)
{
    return ctn_sum_at(a->at, x, 1, (const int64_t[]){-1}, 1);
}

/* *v = *v and more, where *v NULL stands for true. False after an error. */
static bool also(const ctn__attention *a, ctn_tensor **v, ctn_tensor *more)
{
    *v = *v && more ? ctn_logical_and_at(a->at, *v, more) : more;
    return *v != NULL;
}

/* *sum += x, where *sum NULL stands for zero. False after an error. */
static bool plus(const ctn__attention *a, ctn_tensor **sum, ctn_tensor *x)
{
    *sum = *sum && x ? ctn_add_at(a->at, *sum, x) : x;
    return *sum != NULL;
}

/* Ones on and below diagonal `k` of (L,M), as bool. */
static ctn_tensor *below(const ctn__attention *a, int64_t L, int64_t M, int64_t k)
{
    ctn_tensor *all = ctn_full_at(a->at, a->q->ctx, 1, CTN_BOOL, CTN_SHAPE(L, M));
    return ctn_tril_at(a->at, all, k);
}

/* 1, 2, ... n as the type of `like`, with shape (n) or (n,1). */
static ctn_tensor *count_up(const ctn__attention *a, const ctn_tensor *like, int64_t n, bool column)
{
    const int64_t shape[2] = {n, 1};
    ctn_tensor *ones = ctn_full_at(a->at, a->q->ctx, 1, like->d.dtype, 1 + column, shape);
    return ctn_cumsum_at(a->at, ones, 0, 0);
}

static bool within_lengths(const ctn__attention *a, int64_t M, ctn_tensor **v)
{
    if (!a->lengths) return true;
    ctn_tensor *number = count_up(a, a->lengths, M, false);
    return also(a, v, ctn_less_equal_at(a->at, number, a->lengths));
}

/* Which keys are visible by causal and window if queries begin at other positions than 0. */
static bool find_visible_later(const ctn__attention *a, int64_t L, int64_t M, ctn_tensor **v)
{
    const char *at = a->at;
    ctn_tensor *key = count_up(a, a->first, M, false);
    ctn_tensor *query = ctn_add_at(at, a->first, count_up(a, a->first, L, true)); /* (N,...,L,1) */
    ctn_tensor *width =
        ctn_full_at(at, a->q->ctx, (double)a->window, a->first->d.dtype, CTN_SCALAR_SHAPE);
    if (a->causal && !also(a, v, ctn_less_equal_at(at, key, query))) return false;
    if (a->window == 0) return true;
    if (!also(a, v, ctn_greater_at(at, key, ctn_sub_at(at, query, width)))) return false;
    return a->causal || also(a, v, ctn_less_at(at, key, ctn_add_at(at, query, width)));
}

/* Which keys are visible by position: *v (L,M), or a shape that broadcasts with it; NULL: all. */
static bool find_visible(const ctn__attention *a, int64_t L, int64_t M, ctn_tensor **v)
{
    *v = NULL;
    if (a->first) return find_visible_later(a, L, M, v) && within_lengths(a, M, v);
    if (a->causal && !also(a, v, below(a, L, M, 0))) return false;
    if (a->window > 0 && !also(a, v, ctn_logical_not_at(a->at, below(a, L, M, -a->window))))
        return false;
    if (a->window > 0 && !a->causal && !also(a, v, below(a, L, M, a->window - 1))) return false;
    return within_lengths(a, M, v);
}

ctn_tensor *ctn__attention_share(const ctn__attention *a)
{
    const char *at = a->at;
    ctn_tensor *see, *s = product(a, scaled(a, a->q), a->k, 0, 1); /* (...,L,M) */
    if (!s || !find_visible(a, ctn_dim(a->q, -2), ctn_dim(a->k, -2), &see)) return NULL;
    ctn_tensor *none = ctn_full_at(at, s->ctx, NOTHING, s->d.dtype, CTN_SCALAR_SHAPE);
    if (a->mask) {
        s = ctn_add_at(at, s, a->mask);
        if (!also(a, &see, ctn_greater_at(at, s, none))) return NULL; /* it may be -infinity */
    }
    if (!see) return ctn_softmax_at(at, s, -1);
    ctn_tensor *p = ctn_softmax_at(at, ctn_where_at(at, see, s, none), -1);
    ctn_tensor *zero = ctn_full_at(at, see->ctx, 0, none->d.dtype, CTN_SCALAR_SHAPE);
    return ctn_where_at(at, see, p, zero);
}

ctn_tensor *ctn__attention_composed(const ctn__attention *a)
{
    ctn_tensor *p = ctn__attention_share(a);
    if (a->dropout > 0) p = ctn_dropout_at(a->at, p, a->dropout);
    return product(a, p, a->v, 0, 0);
}

/* p (x - sum of p x): the derivative of softmax applied to x. */
static ctn_tensor *through(const ctn__attention *a, ctn_tensor *p, ctn_tensor *x)
{
    return ctn_mul_at(a->at, p, ctn_sub_at(a->at, x, row_sum(a, ctn_mul_at(a->at, p, x))));
}

ctn_status ctn__attention_grads(const ctn__attention *a, ctn_tensor *g, ctn_tensor *out[4])
{
    ctn_tensor *p = ctn__attention_share(a);
    ctn_tensor *ds = through(a, p, product(a, g, a->v, 0, 1));
    out[0] = scaled(a, product(a, ds, a->k, 0, 0));
    out[1] = scaled(a, product(a, ds, a->q, 1, 0));
    out[2] = product(a, p, g, 1, 0);
    out[3] = ds;
    return out[0] && out[1] && out[2] ? CTN_OK : ctn_error_status();
}

/* The derivatives by S' = s: *ds gets that of dS, out[2] and out[3] theirs. */
static bool by_scores(const ctn__attention *a, ctn_tensor *p, ctn_tensor *dp, ctn_tensor *s,
                      ctn_tensor *g, ctn_tensor **ds, ctn_tensor *out[4])
{
    ctn_tensor *p1 = through(a, p, s);
    ctn_tensor *dot = row_sum(a, ctn_mul_at(a->at, p, dp));
    ctn_tensor *dot1 = row_sum(a, ctn_mul_at(a->at, p1, dp));
    /* P' (dP - sum of P dP) - P sum of P' dP */
    *ds = ctn_sub_at(a->at, ctn_mul_at(a->at, p1, ctn_sub_at(a->at, dp, dot)),
                     ctn_mul_at(a->at, p, dot1));
    return *ds && plus(a, &out[2], product(a, p1, g, 1, 0)) &&
           plus(a, &out[3], product(a, p1, a->v, 0, 0));
}

/* dS' k, dS'^T q, and what the directions of q and k add to them; both still to be scaled. */
static bool by_operands(const ctn__attention *a, ctn_tensor *ds, ctn_tensor *ds1,
                        ctn_tensor *const d[3], ctn_tensor *out[4])
{
    return plus(a, &out[0], product(a, ds1, a->k, 0, 0)) &&
           plus(a, &out[1], product(a, ds1, a->q, 1, 0)) &&
           (!d[1] || plus(a, &out[0], product(a, ds, d[1], 0, 0))) &&
           (!d[0] || plus(a, &out[1], product(a, ds, d[0], 1, 0)));
}

ctn_status ctn__attention_seconds(const ctn__attention *a, ctn_tensor *g, ctn_tensor *const d[3],
                                  ctn_tensor *out[4])
{
    ctn_tensor *p = ctn__attention_share(a), *dp = product(a, g, a->v, 0, 1);
    ctn_tensor *ds = through(a, p, dp), *ds1 = NULL, *s = NULL;
    bool ok = ds != NULL;
    if (ok && d[0]) ok = plus(a, &s, scaled(a, product(a, d[0], a->k, 0, 1)));
    if (ok && d[1]) ok = plus(a, &s, scaled(a, product(a, a->q, d[1], 0, 1)));
    if (ok && s) ok = by_scores(a, p, dp, s, g, &ds1, out);
    if (ok && d[2]) {
        ok = plus(a, &ds1, through(a, p, product(a, g, d[2], 0, 1))) &&
             plus(a, &out[3], product(a, p, d[2], 0, 0));
    }
    if (ok) ok = by_operands(a, ds, ds1, d, out);
    for (int i = 0; i < 2 && ok; i++) ok = (out[i] = scaled(a, out[i])) != NULL;
    return ok ? CTN_OK : ctn_error_status();
}
