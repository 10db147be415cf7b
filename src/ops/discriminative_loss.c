/* SPDX-License-Identifier: Apache-2.0
 *
 * discriminative_margin_based_clustering_loss, recorded with other ops. The formulas are in
 * catena/ops_loss.h. x is seen as (N,C,P) with P pixels, and mask (N,K,P) is 1 where a pixel
 * belongs to instance k. As a pixel belongs to at most one instance, the mean that it is compared
 * with is a product with the mask, and nothing of the size (N,K,C,P) is made.
 */
#include "ops/ops.h"

typedef struct {
    const char *at;
    double pull, push;
    int norm;
    ctn_tensor *x;     /* (N,C,P) */
    ctn_tensor *mask;  /* (N,K,P) */
    ctn_tensor *count; /* (N,K): pixels of each instance, at least 1 */
    ctn_tensor *here;  /* (N,K): 1 if the sample has the instance, else 0 */
    ctn_tensor *n;     /* (N): instances, at least 1 */
    ctn_tensor *means; /* (N,K,C); 0 for instances that are not there */
} clusters;

static ctn_tensor *number(const clusters *c, double v)
{
    return ctn_full_at(c->at, c->x->ctx, v, c->x->d.dtype, CTN_SCALAR_SHAPE);
}

static ctn_tensor *at_least_one(const clusters *c, ctn_tensor *v)
{
    return ctn_maximum_at(c->at, v, number(c, 1));
}

static ctn_tensor *sum_last(const clusters *c, ctn_tensor *v)
{
    const int64_t last = -1;
    return ctn_sum_at(c->at, v, 1, &last, 0);
}

/* max(0, v)^2 */
static ctn_tensor *hinge(const clusters *c, ctn_tensor *v)
{
    return ctn_square_at(c->at, ctn_relu_at(c->at, v));
}

/* The mean over the samples of v (N) / n (N). */
static ctn_tensor *mean_of(const clusters *c, ctn_tensor *v, ctn_tensor *n)
{
    return ctn_mean_at(c->at, ctn_div_at(c->at, v, n), CTN_ALL_AXES, 0);
}

static ctn_tensor *variance_term(const clusters *c)
{
    const char *at = c->at;
    const int64_t channels = 1;
    ctn_tensor *own = ctn_matmul_at(at, c->means, c->mask, 1, 0); /* (N,C,P) */
    ctn_tensor *d = ctn_norm_at(at, ctn_sub_at(at, c->x, own), c->norm, 1, &channels, 0);
    ctn_tensor *v = hinge(c, ctn_shift_at(at, d, -c->pull)); /* (N,P) */
    v = ctn_squeeze_at(at, ctn_matmul_at(at, c->mask, ctn_unsqueeze_at(at, v, 2), 0, 0), 2);
    return mean_of(c, sum_last(c, ctn_div_at(at, v, c->count)), c->n);
}

static ctn_tensor *distance_term(const clusters *c)
{
    const char *at = c->at;
    const int64_t last = -1, K = c->mask->d.dim[1];
    ctn_tensor *a = ctn_unsqueeze_at(at, c->means, 2), *b = ctn_unsqueeze_at(at, c->means, 1);
    ctn_tensor *d = ctn_norm_at(at, ctn_sub_at(at, a, b), c->norm, 1, &last, 0); /* (N,K,K) */
    ctn_tensor *v = hinge(c, ctn_shift_at(at, ctn_neg_at(at, d), 2 * c->push));
    ctn_tensor *both =
        ctn_mul_at(at, ctn_unsqueeze_at(at, c->here, 2), ctn_unsqueeze_at(at, c->here, 1));
    both = ctn_mul_at(at, both, /* each pair once */
                      ctn_tril_at(at, ctn_full_at(at, c->x->ctx, 1, c->x->d.dtype, CTN_SHAPE(K, K)),
                                  -1));
    ctn_tensor *pairs = sum_last(c, sum_last(c, both));
    return mean_of(c, sum_last(c, sum_last(c, ctn_mul_at(at, v, both))), at_least_one(c, pairs));
}

static ctn_tensor *regular_term(const clusters *c)
{
    const int64_t last = -1;
    ctn_tensor *length = ctn_norm_at(c->at, c->means, c->norm, 1, &last, 0);
    return mean_of(c, sum_last(c, length), c->n);
}

static ctn_status check(const char *at, const ctn_tensor *x, const ctn_tensor *t, int64_t K,
                        int norm)
{
    const char *who = "discriminative_margin_based_clustering_loss";
    char tx[128], tt[128];
    bool ok = x->d.ndim >= 2 && t->d.ndim == x->d.ndim - 1 && t->d.dim[0] == x->d.dim[0];
    for (int i = 1; ok && i < t->d.ndim; i++) ok = t->d.dim[i] == x->d.dim[i + 1];
    if (!ok)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, t is %s; expected (N,C,...) and (N,...) (%s)",
                        who, ctn__shape_text(&x->d, tx, sizeof tx),
                        ctn__shape_text(&t->d, tt, sizeof tt), at);
    if (!ctn__is_f32_f64(x->d.dtype) || (t->d.dtype != CTN_I64 && t->d.dtype != CTN_I32))
        return ctn_fail(CTN_EDTYPE,
                        "%s: x is %s, t is %s; expected f32 or f64, and i64 or i32 (%s)", who,
                        ctn_dtype_name(x->d.dtype), ctn_dtype_name(t->d.dtype), at);
    if (K < 1 || (norm != 1 && norm != 2))
        return ctn_fail(CTN_EARG,
                        "%s: %lld instances and norm %d; expected at least 1, and 1 or 2 (%s)", who,
                        (long long)K, norm, at);
    return CTN_OK;
}

/* Set the members of c after norm; false after an error. */
static bool prepare(clusters *c, ctn_tensor *x, ctn_tensor *t, int64_t K)
{
    const char *at = c->at;
    const int64_t N = x->d.dim[0], C = x->d.dim[1], P = N > 0 ? ctn__count(&t->d) / N : 0;
    c->x = ctn_reshape_at(at, x, CTN_SHAPE(N, C, P));
    if (!c->x) return false;
    ctn_tensor *one = ctn_full_at(at, x->ctx, 1, CTN_F64, CTN_SHAPE(K, 1));
    ctn_tensor *id = ctn_cast_at(at, ctn_cumsum_at(at, one, 0, 0), t->d.dtype); /* 1 to K */
    ctn_tensor *is = ctn_equal_at(at, ctn_reshape_at(at, t, CTN_SHAPE(N, 1, P)), id);
    c->mask = ctn_cast_at(at, is, x->d.dtype);
    ctn_tensor *count = sum_last(c, c->mask);
    c->count = at_least_one(c, count);
    c->here = ctn_minimum_at(at, count, number(c, 1));
    c->n = at_least_one(c, sum_last(c, c->here));
    ctn_tensor *sum = ctn_matmul_at(at, c->mask, c->x, 0, 1); /* (N,K,C) */
    c->means = ctn_div_at(at, sum, ctn_unsqueeze_at(at, c->count, 2));
    return c->mask && c->means && c->n;
}

ctn_status ctn_discriminative_margin_based_clustering_loss_at(
    const char *at, ctn_tensor *x, ctn_tensor *t, int64_t K, const ctn_clustering_opt *opt,
    ctn_tensor **variance, ctn_tensor **distance, ctn_tensor **regular)
{
    ctn_clustering_opt o;
    if (variance) *variance = NULL;
    if (distance) *distance = NULL;
    if (regular) *regular = NULL;
    CTN_TRY(ctn__opt("discriminative_margin_based_clustering_loss", &o, sizeof o, opt));
    if (!x || !t)
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG,
                              "discriminative_margin_based_clustering_loss: x or t is NULL (%s)",
                              at);
    clusters c = {.at = at,
                  .pull = o.pull > 0 ? o.pull : 0.5,
                  .push = o.push > 0 ? o.push : 1.5,
                  .norm = o.norm ? o.norm : 2};
    CTN_TRY(check(at, x, t, K, c.norm));
    if (!prepare(&c, x, t, K)) return ctn_error_status();
    ctn_tensor *out[3] = {variance_term(&c), distance_term(&c), regular_term(&c)};
    if (!out[0] || !out[1] || !out[2]) return ctn_error_status();
    if (variance) *variance = out[0];
    if (distance) *distance = out[1];
    if (regular) *regular = out[2];
    return CTN_OK;
}
