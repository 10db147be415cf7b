/* SPDX-License-Identifier: Apache-2.0
 *
 * The running 128-bit hash of a recorded step, and the hash of tables whose keys come from files:
 * XXH3 from xxHash. No other file includes xxHash.
 *
 * It is compiled in from the header for two reasons. Recording adds a few bytes at a time, and a
 * call into a shared library would cost more than the hashing. Also, the layout of the state is
 * private to a library version.
 */
#include "base/base.h"

#include <pthread.h>
#include <sys/random.h>

#define XXH_INLINE_ALL
#define XXH_NO_STDLIB /* we do not use its allocating functions */
#include <xxhash.h>

struct ctn__hasher {
    XXH3_state_t state; /* needs 64-byte alignment */
};

static ctn__hash128 from_xxh(XXH128_hash_t h)
{
    return (ctn__hash128){.lo = h.low64, .hi = h.high64};
}

ctn__hasher *ctn__hasher_new(void)
{
    ctn__hasher *h = ctn__aligned(sizeof *h);
    if (h == NULL) return NULL;
    memset(h, 0, sizeof *h);
    ctn__hasher_reset(h);
    return h;
}

void ctn__hasher_free(ctn__hasher *h)
{
    ctn__free(h);
}

void ctn__hasher_reset(ctn__hasher *h)
{
    XXH3_128bits_reset(&h->state);
}

void ctn__hasher_add(ctn__hasher *h, const void *p, size_t bytes)
{
    if (bytes > 0) XXH3_128bits_update(&h->state, p, bytes);
}

ctn__hash128 ctn__hasher_value(const ctn__hasher *h)
{
    return from_xxh(XXH3_128bits_digest(&h->state));
}

ctn__hash128 ctn__hash(const void *p, size_t bytes)
{
    return from_xxh(XXH3_128bits(p, bytes));
}

static uint64_t seed;

static void draw_seed(void)
{
    /* Without random bytes, the time and an address are harder to guess than a constant. */
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed)
        seed = ctn__mix(ctn__now_ns(), (uint64_t)(uintptr_t)&seed);
}

uint64_t ctn__table_seed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_seed);
    return seed;
}

uint64_t ctn__table_hash(const void *p, size_t bytes)
{
    return XXH3_64bits_withSeed(p, bytes, ctn__table_seed());
}
