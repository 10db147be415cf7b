/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocking sums and maxima, sent with a tag of their own: short ones by recursive doubling, long
 * ones by a ring.
 */
#include <math.h>

#include "comm/comm.h"

typedef void combine_fn(void *y, const void *x, int64_t n, ctn_dtype type);

static void add(void *y, const void *x, int64_t n, ctn_dtype type)
{
    ctn__sum_into(y, x, n, type, type);
}

static void larger(void *y, const void *x, int64_t n, ctn_dtype type)
{
    const double *a = x;
    double *b = y;
    (void)type;
    for (int64_t i = 0; i < n; i++)
        if (a[i] > b[i]) b[i] = a[i];
}

/* The same result on every rank, though ranks combine in different orders: any NaN gives the same
 * NaN, and +0 is larger than -0. */
#define MORE(v, than) ((v) > (than) || ((v) == (than) && !signbit(v)))
#define LESS(v, than) ((v) < (than) || ((v) == (than) && signbit(v)))
#define EXTREME(T, BETTER)                              \
    do {                                                \
        const T *a = x;                                 \
        T *b = y;                                       \
        for (int64_t i = 0; i < n; i++) {               \
            if (BETTER(a[i], b[i])) b[i] = a[i];        \
            if (isnan(a[i]) || isnan(b[i])) b[i] = NAN; \
        }                                               \
    } while (0)

static void maximum(void *y, const void *x, int64_t n, ctn_dtype type)
{
    if (type == CTN_F32) EXTREME(float, MORE);
    else EXTREME(double, MORE);
}

static void minimum(void *y, const void *x, int64_t n, ctn_dtype type)
{
    if (type == CTN_F32) EXTREME(float, LESS);
    else EXTREME(double, LESS);
}

/* Runs the rounds of an algorithm that only exchanges. scratch: as long as buf. */
static ctn_status reduce(ctn_comm *c, const ctn__algorithm *alg, void *buf, int64_t count,
                         ctn_dtype type, void *scratch, combine_fn *combine)
{
    const size_t size = ctn_dtype_size(type);
    ctn__round r;
    for (int k = 0; count > 0 && alg->round(&c->place, count, k, &r); k++) {
        char *out = (char *)buf + (size_t)r.sbegin * size,
             *to = (char *)buf + (size_t)r.rbegin * size;
        void *in = r.add ? scratch : to;
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_SMALL, out, (size_t)r.scount * size, r.to, in,
                               (size_t)r.rcount * size, r.from));
        if (r.add && r.rcount > 0) combine(to, in, r.rcount, type);
    }
    return CTN_OK;
}

static const ctn__algorithm *for_length(int64_t count, ctn_dtype type)
{
    enum { SHORT = 64 * 1024 }; /* bytes */
    return (size_t)count * ctn_dtype_size(type) <= SHORT ? &ctn__doubling : &ctn__ring;
}

ctn_status ctn__comm_sum(ctn_comm *c, void *buf, int64_t count, ctn_dtype type, void *scratch)
{
    return reduce(c, for_length(count, type), buf, count, type, scratch, add);
}

ctn_status ctn__comm_extreme(ctn_comm *c, bool max, void *buf, int64_t count, ctn_dtype type,
                             void *scratch)
{
    return reduce(c, for_length(count, type), buf, count, type, scratch, max ? maximum : minimum);
}

ctn_status ctn__comm_sum_scatter(ctn_comm *c, void *buf, int64_t count, ctn_dtype type,
                                 void *scratch)
{
    return reduce(c, &ctn__ring_scatter, buf, count, type, scratch, add);
}

ctn_status ctn__comm_max_small(ctn_comm *c, int n, double *value)
{
    double theirs[16];
    if (n < 0 || n > 16) return ctn_fail(CTN_EARG, "comm: got %d values, expected 0 to 16", n);
    return reduce(c, &ctn__doubling, value, n, CTN_F64, theirs, larger);
}
