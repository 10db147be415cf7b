/* SPDX-License-Identifier: Apache-2.0
 *
 * Philox on LANES counters at a time, so that its rounds become vector code, and where the numbers
 * of a call lie among those of its step (random.h).
 */
#include "ops/common/random.h"

#include "engine/isa.h"

enum { LANES = 16, EXTRA = 4 * LANES }; /* words that aligned ends may add to a block */

/* ctn__philox(key, stream, first + i), i < n, a multiple of LANES. */
CTN__PER_ISA(philox, (uint32_t *w, uint64_t key, uint64_t stream, uint64_t first, uint64_t n),
             (w, key, stream, first, n))
{
    for (uint64_t at = 0; at < n; at += LANES) {
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

void ctn__random_words(const ctn__draws *w, uint64_t at, int64_t n, uint32_t *to)
{
    const uint64_t skip = at % 4, all = ((uint64_t)n + skip + EXTRA - 1) / EXTRA * EXTRA;
    uint32_t room[CTN__WORDS + EXTRA];
    const bool fits = all == (uint64_t)n; /* so nothing is skipped */
    philox[ctn__isa_in_use()](fits ? to : room, w->seed, w->stream, at / 4, all / 4);
    if (!fits) memcpy(to, room + skip, (size_t)n * sizeof *to);
}

/* ---- the place of an element ----------------------------------------------------------------- */

/* Streams besides the one that step and ordinal name. */
#define PART_STREAM UINT64_C(0x7061727473)  /* of what belongs to no sample */
#define LINES_STREAM UINT64_C(0x6c696e6573) /* of results with several lines for a sample */

ctn__draws ctn__draws_of(const ctn_run_args *a, const ctn_desc *d, int axis)
{
    const ctn_share *s = &a->env->share;
    const int64_t here = axis < d->ndim ? d->dim[axis] : 1;
    ctn__draws w = {.seed = a->env->seed,
                    .stream = ctn__mix(a->env->step, a->ordinal),
                    .every = 1,
                    .lines = 1,
                    .inner = 1,
                    .here = here,
                    .there = here};
    for (int i = axis + 1; i < d->ndim; i++) w.inner *= d->dim[i];
    if (axis >= d->ndim || s->rows <= 0 || here % s->rows != 0) {
        if (s->part > 0) w.stream = ctn__mix(ctn__mix(w.stream, PART_STREAM), s->part);
        return w;
    }
    w.first = s->first;
    w.every = s->every;
    w.lines = here / s->rows;
    w.there = s->total * w.lines;
    if (w.lines > 1) w.stream = ctn__mix(ctn__mix(w.stream, LINES_STREAM), (uint64_t)w.lines);
    return w;
}

/* The place of element i, and how many of n elements from there on lie one after another. */
static int64_t place_of(const ctn__draws *w, int64_t i, int64_t n, uint64_t *place)
{
    const int64_t c = i % w->inner, outer = i / w->inner / w->here, line = i / w->inner % w->here;
    *place = (uint64_t)((outer * w->there + ctn__draws_line(w, line)) * w->inner + c);
    if (w->every == 1 && w->here == w->there) return n;
    const int64_t lines = w->every == 1 ? w->here - line : w->lines - line % w->lines;
    return n < lines * w->inner - c ? n : lines * w->inner - c;
}

void ctn__random_elements(const ctn__draws *w, int64_t i, int64_t n, uint32_t *to)
{
    for (int64_t k; n > 0; i += k, n -= k, to += k) {
        uint64_t place;
        k = place_of(w, i, n, &place);
        ctn__random_words(w, place, k, to);
    }
}

/* ---- random tensors -------------------------------------------------------------------------- */

typedef struct {
    ctn__draws w;
    ctn__random_f32 *f32; /* NULL: f64 */
    ctn__random_f64 *f64;
    const double *scalar;
} filler;

/* n elements at consecutive places. Functions of several words begin at a multiple of 4 words. */
static void fill(const filler *f, uint64_t place, int64_t n, void *y)
{
    const int64_t per = f->f32 ? 1 : 2; /* words of an element */
    const size_t size = f->f32 ? sizeof(float) : sizeof(double);
    const uint64_t first = place * (uint64_t)per, skip = first % 4;
    uint32_t w[CTN__WORDS];
    union {
        float f32[CTN__WORDS];
        double f64[CTN__WORDS / 2];
    } v;
    const int words = (int)(((uint64_t)(n * per) + skip + 3) / 4 * 4);
    ctn__random_words(&f->w, first - skip, words, w);
    if (f->f32) f->f32(w, words, v.f32, f->scalar[0], f->scalar[1]);
    else f->f64(w, words, v.f64, f->scalar[0], f->scalar[1]);
    memcpy(y, (char *)&v + skip / (uint64_t)per * size, (size_t)n * size);
}

ctn_status ctn__random_run(const ctn_run_args *a, ctn__random_f32 *f32, ctn__random_f64 *f64)
{
    const bool single = a->dout[0].dtype == CTN_F32;
    const size_t size = single ? sizeof(float) : sizeof(double);
    const int64_t n = ctn__count(&a->dout[0]), per = single ? CTN__WORDS : CTN__WORDS / 2;
    const int64_t nb = (n + per - 1) / per,
                  most = per - 4; /* if the first word is not a multiple */
    const filler f = {ctn__draws_of(a, &a->dout[0], 0), single ? f32 : NULL, f64, a->scalar};
#pragma omp parallel for schedule(static) if (nb > 1)
    for (int64_t b = 0; b < nb; b++) {
        const int64_t end = n < (b + 1) * per ? n : (b + 1) * per;
        for (int64_t i = b * per, k; i < end; i += k) {
            uint64_t place;
            k = place_of(&f.w, i, end - i, &place);
            if (k > most && place % 4 != 0) k = most;
            fill(&f, place, k, (char *)a->out[0] + (size_t)i * size);
        }
    }
    return CTN_OK;
}
