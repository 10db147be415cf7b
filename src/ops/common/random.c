/* SPDX-License-Identifier: Apache-2.0
 *
 * The random words of a block: Philox on LANES counters at a time, so that its rounds become
 * vector code.
 */
#include "ops/common/random.h"

#include "engine/isa.h"

enum { LANES = 16 };

/* ctn__philox(key, stream, first + i), i < CTN__WORDS / 4. */
CTN__PER_ISA(philox, (uint32_t *w, uint64_t key, uint64_t stream, uint64_t first),
             (w, key, stream, first))
{
    for (uint64_t at = 0; at < CTN__WORDS / 4; at += LANES) {
        uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
        uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
        for (uint64_t i = 0; i < LANES; i++) {
            c0[i] = (uint32_t)(first + at + i);
            c1[i] = (uint32_t)((first + at + i) >> 32);
            c2[i] = (uint32_t)stream;
            c3[i] = (uint32_t)(stream >> 32);
        }
        for (int round = 0; round < 10; round++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
#pragma omp simd
            for (int i = 0; i < LANES; i++) {
                const uint64_t p0 = (uint64_t)0xD2511F53u * c0[i];
                const uint64_t p1 = (uint64_t)0xCD9E8D57u * c2[i];
                c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
                c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
                c1[i] = (uint32_t)p1;
                c3[i] = (uint32_t)p0;
            }
        }
        for (int i = 0; i < LANES; i++, w += 4) {
            w[0] = c0[i];
            w[1] = c1[i];
            w[2] = c2[i];
            w[3] = c3[i];
        }
    }
}

void ctn__random_words_of(uint64_t seed, uint64_t stream, int64_t b, uint32_t *w)
{
    philox[ctn__isa_in_use()](w, seed, stream, (uint64_t)b * (CTN__WORDS / 4));
}

uint64_t ctn__random_stream(const ctn_run_args *a)
{
    return ctn__mix(a->env->step, a->ordinal);
}

void ctn__random_words(const ctn_run_args *a, int64_t b, uint32_t *w)
{
    ctn__random_words_of(a->env->seed, ctn__random_stream(a), b, w);
}
