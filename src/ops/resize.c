/* SPDX-License-Identifier: Apache-2.0
 *
 * resize: the n elements of each spatial dimension are resampled to m.
 *   nearest  result o is element floor(o n / m), as in PyTorch's "nearest"
 *   linear   result o is at (o + 1/2) n / m - 1/2, but at least 0. It interpolates the two elements
 *            around that position; beyond the last element it is the last element.
 * Linear; resize_grad is its transpose, whose gradient is resize again.
 */
#include "ops/common/pool.h"

enum { KIND = CTN__P_SIZES, NATTR };
static const char *const attr_names[] = {CTN__P_SIZE_NAMES, "kind"};

static void resample(const int64_t *attr, int d, int64_t o, ctn__taps *t)
{
    int64_t n = attr[CTN__P_IN + d], m = attr[CTN__P_OUT + d];
    *t = (ctn__taps){.start = o * n / m, .count = 1, .first = 1};
    if (attr[KIND] == CTN_RESIZE_NEAREST || n == m) return;
    double at = ((double)o + 0.5) * ((double)n / (double)m) - 0.5;
    if (at < 0) at = 0;
    t->start = (int64_t)at < n ? (int64_t)at : n - 1;
    t->rest = at - (double)t->start;
    if (t->start == n - 1 || t->rest == 0) return;
    t->count = 2;
    t->first = 1 - t->rest;
}

static ctn_status resize_prepare(ctn_prepare_args *a)
{
    return ctn__sample_prepare(a, resample, false);
}

static ctn_status resize_grad_of(const ctn_grad_args *a)
{
    return ctn__sample_grad(a, &ctn__op_resize_grad);
}

ctn_op ctn__op_resize = {
    CTN__SAMPLE_OP("resize", attr_names),
    .infer = ctn__pool_infer,
    .grad = resize_grad_of,
    .prepare = resize_prepare,
};

static ctn_status resize_grad_prepare(ctn_prepare_args *a)
{
    return ctn__sample_prepare(a, resample, true);
}

static ctn_status resize_grad_grad(const ctn_grad_args *a)
{
    return ctn__sample_grad(a, &ctn__op_resize);
}

ctn_op ctn__op_resize_grad = {
    CTN__SAMPLE_OP("resize_grad", attr_names),
    .infer = ctn__pool_grad_infer,
    .grad = resize_grad_grad,
    .prepare = resize_grad_prepare,
};

ctn_tensor *ctn_resize_at(const char *at, ctn_tensor *x, ctn_resize_kind kind, int n,
                          const int64_t *size)
{
    int64_t attr[NATTR];
    if (ctn__pool_sizes("resize", at, x, n, size, attr) < 0) return NULL;
    attr[KIND] = kind;
    if (kind != CTN_RESIZE_NEAREST && kind != CTN_RESIZE_LINEAR) {
        ctn_fail(CTN_EARG, "resize: kind %d is neither nearest nor linear (%s)", (int)kind, at);
        return NULL;
    }
    return ctn__apply1(at, NULL, &ctn__op_resize, 1, &x, NATTR, attr, 0, NULL);
}
