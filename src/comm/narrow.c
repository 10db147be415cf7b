/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of sharded updates that come back in 16 bits, because forward reads them in 16 bits anyway. What it reads in f32 (biases, scales) is a
 * small part in many short ranges: these are set aside by their owners and come back as one sum, to which one rank contributes each number
 * and the others zero. When a bucket has arrived they take their places in it.
 */
#include "comm/exchange.h"

ctn_status ctn__exchange_narrow(ctn__exchange *x, ctn_dtype values, int n, const ctn__range *exact)
{
    int64_t count = 0;
    for (int i = 0; i < n; i++) count += exact[i].end - exact[i].begin;
    x->exact = ctn__calloc((size_t)n + 1, sizeof *x->exact);
    x->aside = ctn__aligned((size_t)(count + 1) * sizeof *x->aside);
    if (!x->exact || !x->aside) return CTN_ENOMEM;
    if (n > 0) memcpy(x->exact, exact, (size_t)n * sizeof *exact);
    x->nexact = n;
    x->naside = count;
    x->values = values;
    return CTN_OK;
}

/* What lies aside of the elements [begin, end) of the pool, out of it or into it. */
static void move(ctn__exchange *x, int64_t begin, int64_t end, bool out)
{
    float *aside = x->aside;
    for (int i = 0; i < x->nexact; i++) {
        const ctn__range *r = &x->exact[i];
        int64_t lo = r->begin > begin ? r->begin : begin, hi = r->end < end ? r->end : end;
        float *a = aside + (lo - r->begin), *w = x->w + lo;
        if (lo < hi) memcpy(out ? a : w, out ? w : a, (size_t)(hi - lo) * sizeof *w);
        aside += r->end - r->begin;
    }
}

ctn_status ctn__aside_start(ctn__exchange *x)
{
    if (x->naside == 0) return CTN_OK;
    memset(x->aside, 0, (size_t)x->naside * sizeof *x->aside);
    for (int b = 0; b < x->nbucket; b++) {
        int64_t begin, end;
        ctn__exchange_own(x, b, &begin, &end);
        move(x, begin, end, true);
    }
    return ctn__coll_start(x->comm, &x->aside_sum, &ctn__ring, x->aside, x->naside, CTN_F32,
                           CTN_F32);
}

ctn_status ctn__aside_take(ctn__exchange *x, int b)
{
    if (x->naside == 0) return CTN_OK;
    CTN_TRY(ctn__coll_wait(x->aside_sum));
    x->aside_sum = NULL;
    move(x, x->begin[b + 1], x->begin[b], false);
    return CTN_OK;
}
