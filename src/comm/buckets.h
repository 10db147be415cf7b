/* SPDX-License-Identifier: Apache-2.0
 *
 * How a pool is cut for its exchange. Buckets are ranges of the pool, ordered from its end, which
 * the backward pass writes first, to its beginning. The last few elements of the pool may be held
 * back: their buckets start after all others, and a step does not wait for them.
 *
 * Invariant: which elements may be held back depends only on the pool, not on the buckets, so plans
 * made before the pool is cut again stay valid.
 */
#ifndef CTN_COMM_BUCKETS_H
#define CTN_COMM_BUCKETS_H

#include "base/base.h"

typedef struct {
    int64_t count;  /* elements of the pool */
    int64_t prompt; /* elements before this one are never held back */
    size_t unit;    /* bytes of an element */
    int n;
    int held;       /* buckets [0, held) are held back; they lie at or after `prompt` */
    int64_t *begin; /* [n + 1], descending: bucket b is [begin[b+1], begin[b]) */
} ctn__buckets;

/* Cuts into buckets of this many bytes. Errors: ENOMEM. */
ctn_status ctn__buckets_cut(ctn__buckets *k, int64_t bytes);
/* Cuts into n ranges that begin at begin[i] (ascending; begin[n] is the end). Errors: ENOMEM. */
ctn_status ctn__buckets_cut_at(ctn__buckets *k, int n, const int64_t *begin);
void ctn__buckets_free(ctn__buckets *k);
/* The bucket that a step starts as number s. */
int ctn__buckets_order(const ctn__buckets *k, int s);
/* The bucket that contains this element. */
int ctn__buckets_find(const ctn__buckets *k, int64_t element);

static inline int64_t ctn__bucket_length(const ctn__buckets *k, int b)
{
    return k->begin[b] - k->begin[b + 1];
}

#endif
