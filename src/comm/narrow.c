/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of sharded updates that come back in 16 bits, because the forward pass reads them in 16
 * bits anyway. The values that it reads in f32 (biases, scales) are a small part in many short
 * ranges. Their owners set them aside, and they come back as one sum, to which one rank contributes
 * each number and all other ranks zero. When a bucket has arrived, they are copied to their places
 * in it.
 */
#include "comm/flight.h"

ctn_status ctn__exchange_narrow(ctn__exchange *x, ctn_dtype values, int n, const ctn__range *exact)
{
    ctn__narrow *k = &x->narrow;
    int64_t count = 0;
    for (int i = 0; i < n; i++) count += exact[i].end - exact[i].begin;
    k->exact = ctn__calloc((size_t)n + 1, sizeof *k->exact);
    k->aside = ctn__aligned((size_t)(count + 1) * sizeof *k->aside);
    if (!k->exact || !k->aside) return CTN_ENOMEM;
    if (n > 0) memcpy(k->exact, exact, (size_t)n * sizeof *exact);
    k->nexact = n;
    k->count = count;
    k->type = values;
    return CTN_OK;
}

ctn_dtype ctn__exchange_values(const ctn__exchange *x)
{
    return x->narrow.type;
}

bool ctn__exchange_exact(const ctn__exchange *x, ctn__range r)
{
    const ctn__narrow *k = &x->narrow;
    bool exact = k->type == CTN_F32;
    for (int i = 0; i < k->nexact; i++)
        exact |= k->exact[i].begin <= r.begin && r.end <= k->exact[i].end;
    return exact;
}

static bool nothing_aside(const ctn__narrow *k)
{
    return k->type == CTN_F32 || k->count == 0;
}

/* Copies the exact values in [begin, end) from the pool to `aside` (out) or back. */
static void move(ctn__exchange *x, int64_t begin, int64_t end, bool out)
{
    float *aside = x->narrow.aside;
    for (int i = 0; i < x->narrow.nexact; i++) {
        const ctn__range *r = &x->narrow.exact[i];
        int64_t lo = r->begin > begin ? r->begin : begin, hi = r->end < end ? r->end : end;
        float *a = aside + (lo - r->begin), *w = (float *)x->w + lo;
        if (lo < hi) memcpy(out ? a : w, out ? w : a, (size_t)(hi - lo) * sizeof *w);
        aside += r->end - r->begin;
    }
}

ctn_status ctn__aside_start(ctn__exchange *x)
{
    ctn__narrow *k = &x->narrow;
    if (nothing_aside(k)) return CTN_OK;
    memset(k->aside, 0, (size_t)k->count * sizeof *k->aside);
    for (int b = 0; b < x->buckets.n; b++) {
        const ctn__range own = ctn__exchange_own(x, b);
        move(x, own.begin, own.end, true);
    }
    return ctn__coll_start(x->comm, &k->sum, &ctn__ring, k->aside, k->count, CTN_F32, CTN_F32);
}

ctn_status ctn__aside_take(ctn__exchange *x, int b)
{
    ctn__narrow *k = &x->narrow;
    if (nothing_aside(k)) return CTN_OK;
    CTN_TRY(ctn__coll_wait(k->sum));
    k->sum = NULL;
    move(x, x->buckets.begin[b + 1], x->buckets.begin[b], false);
    return CTN_OK;
}
