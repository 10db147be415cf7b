/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a bucketed sampler: batches of samples with similar lengths. A table lists the
 * samples by length; those of equal length are in random order, because neighbours in a dataset
 * often resemble each other. An epoch derives its order from this row in three steps, each a pure
 * function of (seed, epoch):
 *     mix    The row is cut into windows, from a random place on, and each window is shuffled.
 *     cut    What that gives is cut into batches; the incomplete one, if any, at a random place.
 *     order  The full batches come in random order, then the incomplete one.
 * A position is followed back through these steps, so nothing is kept per epoch. A window has a
 * 64th of the samples, but at least two batches. The spread of lengths within a window is what
 * padding costs; its size is what makes the batches of two epochs differ.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "data/data.h"

enum { WINDOWS = 64 };

/* These keep the random numbers independent of others drawn from the same seed. */
#define TIE_STREAM UINT64_C(0x7469657321212121)
#define PLACE_STREAM UINT64_C(0x706c616365212121)
#define WINDOW_STREAM UINT64_C(0x77696e646f772121)
#define BATCH_STREAM UINT64_C(0x6261746368657321)

struct ctn__buckets {
    _Atomic int64_t holders;
    uint64_t count, batch, window; /* samples in all, in a batch and in a window */
    int64_t *row;                  /* (count) samples by length */
};

typedef struct {
    int64_t length, place; /* place: rank among samples of equal length */
} item;

static int by_length(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

/* The order of equal lengths is the same for every seed, because a state may bring another one. */
static ctn_status make_row(struct ctn__buckets *b, const int64_t *length)
{
    const size_t n = b->count;
    b->row = ctn__malloc(ctn__mul(n, sizeof *b->row));
    item *items = b->row ? ctn__malloc(ctn__mul(n, sizeof *items)) : NULL;
    if (!items) return CTN_ENOMEM;
    for (size_t i = 0; i < n; i++)
        items[i] = (item){length[ctn__permute(TIE_STREAM, 0, i, n)], (int64_t)i};
    if (n > 1) qsort(items, n, sizeof *items, by_length);
    for (size_t i = 0; i < n; i++)
        b->row[i] = ctn__permute(TIE_STREAM, 0, (uint64_t)items[i].place, n);
    ctn__free(items);
    return CTN_OK;
}

ctn_status ctn__buckets_new(struct ctn__buckets **out, int64_t count, const int64_t *length,
                            int64_t batch)
{
    if (batch < 1)
        return ctn_fail(CTN_EARG, "sampler: batch is %lld, expected at least 1", (long long)batch);
    for (int64_t i = 0; i < count; i++)
        if (length[i] < 0)
            return ctn_fail(CTN_EARG, "sampler: length %lld is %lld, expected 0 or more",
                            (long long)i, (long long)length[i]);
    struct ctn__buckets *b = ctn__calloc(1, sizeof *b);
    if (!b) return CTN_ENOMEM;
    atomic_init(&b->holders, 1);
    b->count = (uint64_t)count;
    b->batch = (uint64_t)(batch < count || count == 0 ? batch : count);
    const uint64_t batches = b->count / b->batch / WINDOWS;
    b->window = b->batch * (batches < 2 ? 2 : batches);
    ctn_status st = make_row(b, length);
    if (st == CTN_OK) *out = b;
    else ctn__buckets_release(b);
    return st;
}

struct ctn__buckets *ctn__buckets_retain(struct ctn__buckets *b)
{
    if (b) atomic_fetch_add(&b->holders, 1);
    return b;
}

void ctn__buckets_release(struct ctn__buckets *b)
{
    if (!b || atomic_fetch_sub(&b->holders, 1) > 1) return;
    ctn__free(b->row);
    ctn__free(b);
}

/* A number from 0 to n-1. */
static uint64_t draw(uint64_t seed, uint64_t epoch, uint64_t which, uint64_t n)
{
    return ctn__philox(ctn__mix(seed, PLACE_STREAM), epoch, which).v[0] % n;
}

/* Element i of the row after its windows were shuffled. */
static int64_t mixed(const struct ctn__buckets *b, uint64_t seed, uint64_t epoch, uint64_t i)
{
    const uint64_t shift = draw(seed, epoch, 0, b->window), k = (i + shift) / b->window;
    const uint64_t first = k ? k * b->window - shift : 0, next = (k + 1) * b->window - shift;
    const uint64_t n = (next < b->count ? next : b->count) - first;
    const uint64_t key = ctn__mix(ctn__mix(seed, WINDOW_STREAM), k);
    return b->row[first + (uint64_t)ctn__permute(key, epoch, i - first, n)];
}

int64_t ctn__buckets_sample(const struct ctn__buckets *b, uint64_t seed, uint64_t epoch,
                            uint64_t position)
{
    const uint64_t full = b->count / b->batch, rest = b->count % b->batch;
    const uint64_t k = position / b->batch, in = position % b->batch;
    const uint64_t cut = draw(seed, epoch, 1, full + 1); /* batches before the incomplete one */
    if (k == full) return mixed(b, seed, epoch, cut * b->batch + in);
    const uint64_t at = (uint64_t)ctn__permute(ctn__mix(seed, BATCH_STREAM), epoch, k, full);
    return mixed(b, seed, epoch, at * b->batch + (at >= cut ? rest : 0) + in);
}
