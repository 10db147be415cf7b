/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts a pool into buckets; see buckets.h.
 */
#include "comm/buckets.h"

enum { VECTOR = 16 }; /* borders are multiples of it, so that kernels see full vectors */

static ctn_status allot(ctn__buckets *k, int n)
{
    int64_t *begin = ctn__calloc((size_t)n + 1, sizeof *begin);
    if (!begin) return CTN_ENOMEM;
    ctn__free(k->begin);
    k->begin = begin;
    k->n = n;
    return CTN_OK;
}

static void hold_back(ctn__buckets *k)
{
    k->held = 0;
    while (k->held < k->n && k->begin[k->held + 1] >= k->prompt) k->held++;
}

ctn_status ctn__buckets_cut(ctn__buckets *k, int64_t bytes)
{
    int64_t length = bytes / (int64_t)k->unit / VECTOR * VECTOR;
    if (length < VECTOR) length = VECTOR;
    CTN_TRY(allot(k, (int)((k->count + length - 1) / length)));
    for (int b = 0; b <= k->n; b++) {
        k->begin[b] = k->count - b * length;
        if (k->begin[b] < 0) k->begin[b] = 0;
    }
    hold_back(k);
    return CTN_OK;
}

ctn_status ctn__buckets_cut_at(ctn__buckets *k, int n, const int64_t *begin)
{
    CTN_TRY(allot(k, n));
    for (int i = 0; i <= n; i++) k->begin[i] = begin[n - i];
    hold_back(k);
    return CTN_OK;
}

void ctn__buckets_free(ctn__buckets *k)
{
    ctn__free(k->begin);
    k->begin = NULL;
}

/* Of the held-back buckets, the one that the forward pass needs first starts first. */
int ctn__buckets_order(const ctn__buckets *k, int s)
{
    return s < k->n - k->held ? s + k->held : k->n - 1 - s;
}

int ctn__buckets_find(const ctn__buckets *k, int64_t element)
{
    int lo = 0, hi = k->n - 1; /* begin is descending */
    while (lo < hi) {
        const int mid = (lo + hi) / 2;
        if (k->begin[mid + 1] <= element) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}
