/* SPDX-License-Identifier: Apache-2.0
 *
 * avg_pool: y = the mean of each window. The divisor is the window's size including padding or,
 * with exclude_pad, the number of elements of x in it. Linear; avg_pool_grad is its transpose,
 * whose gradient is avg_pool again.
 */
#include "ops/common/pool.h"

enum { EXCLUDE_PAD = CTN__P_WINDOWS, NATTR };
static const char *const attr_names[] = {CTN__P_SIZE_NAMES, CTN__P_WINDOW_NAMES, "exclude_pad"};

/* The divisor is a product over the dimensions. A window added by `ceil` may reach beyond the
 * padding; positions there do not count. */
static void window_mean(const int64_t *attr, int d, int64_t o, ctn__taps *t)
{
    int64_t n = attr[CTN__P_IN + d], pad = attr[CTN__P_PAD + d];
    int64_t lo = o * attr[CTN__P_STRIDE + d] - pad, hi = lo + attr[CTN__P_KERNEL + d];
    int64_t size = (hi < n + pad ? hi : n + pad) - lo;
    lo = lo < 0 ? 0 : lo;
    hi = hi < n ? hi : n;
    *t = (ctn__taps){.start = lo, .count = hi - lo};
    t->first = t->rest = 1 / (double)(attr[EXCLUDE_PAD] ? t->count : size);
}

static ctn_status avg_pool_prepare(ctn_prepare_args *a)
{
    return ctn__sample_prepare(a, window_mean, false);
}

static ctn_status avg_pool_grad_of(const ctn_grad_args *a)
{
    return ctn__sample_grad(a, &ctn__op_avg_pool_grad);
}

ctn_op ctn__op_avg_pool = {
    CTN__SAMPLE_OP("avg_pool", attr_names),
    .infer = ctn__pool_infer,
    .grad = avg_pool_grad_of,
    .prepare = avg_pool_prepare,
};

static ctn_status avg_pool_grad_prepare(ctn_prepare_args *a)
{
    return ctn__sample_prepare(a, window_mean, true);
}

static ctn_status avg_pool_grad_grad(const ctn_grad_args *a)
{
    return ctn__sample_grad(a, &ctn__op_avg_pool);
}

ctn_op ctn__op_avg_pool_grad = {
    CTN__SAMPLE_OP("avg_pool_grad", attr_names),
    .infer = ctn__pool_grad_infer,
    .grad = avg_pool_grad_grad,
    .prepare = avg_pool_grad_prepare,
};

ctn_tensor *ctn_avg_pool_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt)
{
    int64_t attr[NATTR];
    ctn_pool_opt o;
    if (ctn__pool_windows("avg_pool", at, x, opt, attr) < 0) return NULL;
    if (ctn__opt("avg_pool", &o, sizeof o, opt) < 0) return NULL;
    attr[EXCLUDE_PAD] = o.exclude_pad != 0;
    return ctn__apply1(at, NULL, &ctn__op_avg_pool, 1, &x, NATTR, attr, 0, NULL);
}
