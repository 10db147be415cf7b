/* SPDX-License-Identifier: Apache-2.0
 *
 * Samplers compute the sample at (seed, epoch, position) directly. A shuffled order is a
 * permutation of {0 .. count-1} from a Feistel network with Philox as its round function, over
 * the smallest power of two that holds count. Results outside the range are fed in again (cycle
 * walking), which keeps it a permutation. The state is therefore three integers, resuming and
 * sharding cost nothing, and any thread can compute any position. Cost: ROUNDS Philox calls per
 * walk and fewer than 2 walks on average, but at least 256 walks per epoch (MIN_BITS). Weighted
 * draws use two numbers of a Philox stream per position. Orders by length are in buckets.c.
 *
 * Sharding takes every size-th position of the whole order, starting at the state's position,
 * which is the same on all ranks. Positions before it have been used by some rank, however many
 * ranks there were; those after it are divided among the current ranks.
 */
#include "data/data.h"

/* Six rounds over 8 bits showed no bias in the joint positions of two samples (100,000 epochs, 2
 * to 40 samples); four rounds over 6 bits and ten over 3 bits did. ROUNDS is even so that the
 * widths of the two halves end as they began. */
enum { ROUNDS = 6, MIN_BITS = 8 };

/* These keep the random numbers independent of others drawn from the same seed. */
#define SHUFFLE_STREAM UINT64_C(0x73687566666c6521)
#define WEIGHTED_STREAM UINT64_C(0x7765696768746564)

int64_t ctn__permute(uint64_t seed, uint64_t epoch, uint64_t position, uint64_t count)
{
    int bits = MIN_BITS;
    if (count == 1) return 0; /* would take 256 walks */
    while (bits < 64 && (UINT64_C(1) << bits) < count) bits++;
    const uint64_t key = ctn__mix(seed, SHUFFLE_STREAM);
    uint64_t x = position;
    do {
        int wl = bits - bits / 2, wr = bits / 2; /* widths of left and right, at most 32 each */
        uint64_t left = x >> wr, right = x & ((UINT64_C(1) << wr) - 1);
        for (uint64_t r = 0; r < ROUNDS; r++) {
            /* right < 2^32, so the round and the half fit into one counter word */
            uint64_t mixed = left + ctn__philox(key, epoch, r << 32 | right).v[0];
            left = right;
            right = mixed & ((UINT64_C(1) << wl) - 1);
            int w = wl;
            wl = wr;
            wr = w;
        }
        x = left << wr | right;
    } while (x >= count);
    return (int64_t)x;
}

static ctn_status sampler_new(ctn_sampler **out, int64_t count, bool shuffle, uint64_t seed)
{
    if (!out) return ctn_fail(CTN_EARG, "sampler: NULL argument");
    *out = NULL;
    if (count < 0)
        return ctn_fail(CTN_EARG, "sampler: count is %lld, expected 0 or more", (long long)count);
    ctn_sampler *s = ctn__calloc(1, sizeof *s);
    if (!s) return CTN_ENOMEM;
    s->total = count;
    s->size = 1;
    s->shuffle = shuffle;
    s->state.seed = seed;
    *out = s;
    return CTN_OK;
}

ctn_status ctn_sampler_sequential(ctn_sampler **s, int64_t count)
{
    return sampler_new(s, count, false, 0);
}

ctn_status ctn_sampler_shuffled(ctn_sampler **s, int64_t count, uint64_t seed)
{
    return sampler_new(s, count, true, seed);
}

ctn_status ctn_sampler_weighted(ctn_sampler **out, int64_t count, const double *weight,
                                uint64_t seed)
{
    ctn_status st = CTN_OK;
    ctn_sampler *s = NULL;
    if (!out || (!weight && count > 0)) return ctn_fail(CTN_EARG, "sampler: NULL argument");
    *out = NULL;
    CTN_TRY(sampler_new(&s, count, false, seed));
    CTN_TRY_GOTO(st, done, ctn__alias_new(&s->alias, count, weight));
    *out = s;
    s = NULL;
done:
    ctn_sampler_free(s);
    return st;
}

ctn_status ctn_sampler_bucketed(ctn_sampler **out, int64_t count, const int64_t *length,
                                int64_t batch, uint64_t seed)
{
    ctn_status st = CTN_OK;
    ctn_sampler *s = NULL;
    if (!out || (!length && count > 0)) return ctn_fail(CTN_EARG, "sampler: NULL argument");
    *out = NULL;
    CTN_TRY(sampler_new(&s, count, false, seed));
    CTN_TRY_GOTO(st, done, ctn__buckets_new(&s->buckets, count, length, batch));
    *out = s;
    s = NULL;
done:
    ctn_sampler_free(s);
    return st;
}

ctn_status ctn_sampler_new(ctn_sampler **s, int64_t count, ctn_sampler_fn fn, void *user,
                           uint64_t seed)
{
    if (!s || !fn) return ctn_fail(CTN_EARG, "sampler: NULL argument");
    const ctn_status st = sampler_new(s, count, false, seed);
    if (!*s) return st;
    (*s)->fn = fn;
    (*s)->user = user;
    return CTN_OK;
}

void ctn__sampler_retain(const ctn_sampler *s)
{
    ctn__alias_retain(s->alias);
    ctn__buckets_retain(s->buckets);
}

void ctn__sampler_release(const ctn_sampler *s)
{
    ctn__alias_release(s->alias);
    ctn__buckets_release(s->buckets);
}

void ctn_sampler_free(ctn_sampler *s)
{
    if (s) ctn__sampler_release(s);
    ctn__free(s);
}

ctn_status ctn_sampler_shard(ctn_sampler *s, int rank, int size)
{
    if (!s) return ctn_fail(CTN_EARG, "sampler: NULL argument");
    if (size < 1 || rank < 0 || rank >= size)
        return ctn_fail(CTN_EARG, "sampler: rank is %d of %d, expected 0 to size - 1", rank, size);
    s->rank = rank;
    s->size = size;
    return CTN_OK;
}

int64_t ctn_sampler_total(const ctn_sampler *s)
{
    return s ? s->total : 0;
}

int64_t ctn__sampler_left(const ctn_sampler *s, uint64_t position)
{
    const int64_t left = s->total - (int64_t)position; /* of all ranks */
    return left > s->rank ? (left - s->rank - 1) / s->size + 1 : 0;
}

int64_t ctn_sampler_count(const ctn_sampler *s)
{
    return s ? ctn__sampler_left(s, 0) : 0;
}

int64_t ctn_sampler_index(const ctn_sampler *s, uint64_t epoch, uint64_t position)
{
    if (position >= (uint64_t)ctn_sampler_count(s)) return -1;
    return ctn__sampler_sample(s, epoch, 0, position);
}

int64_t ctn__sampler_sample(const ctn_sampler *s, uint64_t epoch, uint64_t begin, uint64_t i)
{
    const uint64_t position = begin + i * (uint64_t)s->size + (uint64_t)s->rank;
    const uint64_t seed = s->state.seed;
    if (s->alias) {
        const uint64_t key = ctn__mix(seed, WEIGHTED_STREAM);
        return ctn__alias_draw(s->alias, ctn__uniform(key, epoch, 2 * position),
                               ctn__uniform(key, epoch, 2 * position + 1));
    }
    if (s->buckets) return ctn__buckets_sample(s->buckets, seed, epoch, position);
    if (s->fn) return s->fn(s->user, &(ctn_sampler_state){seed, epoch, position});
    return s->shuffle ? ctn__permute(seed, epoch, position, (uint64_t)s->total) : (int64_t)position;
}

ctn_sampler_state ctn_sampler_get_state(const ctn_sampler *s)
{
    return s ? s->state : (ctn_sampler_state){0};
}

ctn_status ctn_sampler_set_state(ctn_sampler *s, const ctn_sampler_state *state)
{
    if (!s || !state) return ctn_fail(CTN_EARG, "sampler: NULL argument");
    if (state->position > (uint64_t)s->total)
        return ctn_fail(CTN_EARG,
                        "sampler: the state is at position %llu of an epoch, but there are %lld "
                        "samples: was it saved with other data?",
                        (unsigned long long)state->position, (long long)s->total);
    s->state = *state;
    return CTN_OK;
}
