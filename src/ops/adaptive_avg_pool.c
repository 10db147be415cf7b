/* SPDX-License-Identifier: Apache-2.0
 *
 * adaptive_avg_pool: the mean of windows that cover x, m of them along n elements:
 *   window i is from floor(i n / m) to ceil((i + 1) n / m)
 * If m divides n in every dimension, this is avg_pool, which is recorded instead.
 */
#include "ops/common/pool.h"

static const char *const attr_names[] = {CTN__P_SIZE_NAMES};

static void cover_mean(const int64_t *attr, int d, int64_t o, ctn__taps *t)
{
    int64_t n = attr[CTN__P_IN + d], m = attr[CTN__P_OUT + d];
    int64_t lo = o * n / m, hi = ((o + 1) * n + m - 1) / m;
    double weight = 1 / (double)(hi - lo);
    *t = (ctn__taps){.start = lo, .count = hi - lo, .first = weight, .rest = weight};
}

static ctn_status adaptive_prepare(ctn_prepare_args *a)
{
    return ctn__sample_prepare(a, cover_mean, false);
}

static ctn_status adaptive_grad_of(const ctn_grad_args *a)
{
    return ctn__sample_grad(a, &ctn__op_adaptive_avg_pool_grad);
}

ctn_op ctn__op_adaptive_avg_pool = {
    CTN__SAMPLE_OP("adaptive_avg_pool", attr_names),
    .infer = ctn__pool_infer,
    .grad = adaptive_grad_of,
    .prepare = adaptive_prepare,
};

static ctn_status adaptive_grad_prepare(ctn_prepare_args *a)
{
    return ctn__sample_prepare(a, cover_mean, true);
}

static ctn_status adaptive_grad_grad(const ctn_grad_args *a)
{
    return ctn__sample_grad(a, &ctn__op_adaptive_avg_pool);
}

ctn_op ctn__op_adaptive_avg_pool_grad = {
    CTN__SAMPLE_OP("adaptive_avg_pool_grad", attr_names),
    .infer = ctn__pool_grad_infer,
    .grad = adaptive_grad_grad,
    .prepare = adaptive_grad_prepare,
};

ctn_tensor *ctn_adaptive_avg_pool_at(const char *at, ctn_tensor *x, int n, const int64_t *size)
{
    int64_t attr[CTN__P_SIZES];
    if (ctn__pool_sizes("adaptive_avg_pool", at, x, n, size, attr) < 0) return NULL;
    ctn_pool_opt even = {.struct_size = sizeof even};
    bool divides = true;
    for (int i = 0; i < n; i++) {
        even.kernel[i] = x->d.dim[2 + i] / size[i];
        divides = divides && x->d.dim[2 + i] % size[i] == 0;
    }
    if (divides) return ctn_avg_pool_at(at, x, &even);
    return ctn__apply1(at, NULL, &ctn__op_adaptive_avg_pool, 1, &x, CTN__P_SIZES, attr, 0, NULL);
}
