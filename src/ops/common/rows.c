/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of rows by index, and reductions over the rows of segments (rows.h). Rows are read in an
 * order that no processor foresees, so the loops ask for each row some terms before its turn.
 */
#include "ops/common/rows.h"

#include <math.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Columns of a tile; terms between a prefetch and its use; terms that are added in f32; narrow
 * columns that are reduced together. */
enum { COLS = 64, AHEAD = 12, CHUNK = 128, LANES = 8 };

#define T float
#define NAME(x) x##_f32
#include "ops/common/rows_body.h"

#define T double
#define NAME(x) x##_f64
#include "ops/common/rows_body.h"

/* ---- sharing segments among threads ---------------------------------------------------------- */

/* The first segment v with offsets[v] + v >= work. */
static int64_t segment_at(const void *offsets, ctn_dtype t, int64_t n, int64_t work)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (ctn__index_get(offsets, t, mid) + mid < work) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

void ctn__rows_share(const void *offsets, ctn_dtype t, int64_t n, int threads, ctn__range_fn *fn,
                     const void *user)
{
    const int64_t work = ctn__index_get(offsets, t, n) + n;
    const int64_t parts = threads > 1 ? 8 * (int64_t)threads : 1;
#pragma omp parallel for schedule(dynamic, 1) if (parts > 1)
    for (int64_t p = 0; p < parts; p++) {
        int64_t first = segment_at(offsets, t, n, work * p / parts);
        int64_t end = p + 1 < parts ? segment_at(offsets, t, n, work * (p + 1) / parts) : n;
        if (first < end) fn(user, first, end);
    }
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* Rows of a few columns in many arrays, as for the last axis of a matrix. A tile would hold no more
 * than one row, and its loops would cost more than the additions. */
static bool is_narrow(const ctn__rows *r)
{
    return r->D < LANES && r->outer > 1 && r->kind == CTN__ROWS_SUM && !r->weight;
}

/* Tiles of an array. They end where the weight changes. */
static int64_t tiles_of(const ctn__rows *r)
{
    return r->D > 0 ? r->D / r->width * ((r->width + COLS - 1) / COLS) : 0;
}

/* Parts of the columns of all arrays. */
static int64_t parts_of(const ctn__rows *r)
{
    return is_narrow(r) ? (r->outer * r->D + LANES - 1) / LANES : r->outer * tiles_of(r);
}

static void reduce_part(const ctn__rows *r, int64_t part, int64_t first, int64_t end)
{
    const ctn__isa isa = ctn__isa_in_use();
    const bool f32 = r->dtype == CTN_F32;
    if (is_narrow(r)) {
        const int64_t c0 = part * LANES, n = r->outer * r->D - c0;
        (f32 ? lanes_f32 : lanes_f64)[isa](r, c0, n < LANES ? n : LANES, first, end);
        return;
    }
    const int64_t tiles = tiles_of(r);
    if (tiles == 0) return; /* no columns */
    const int64_t tile = part % tiles;
    const int64_t per = (r->width + COLS - 1) / COLS, at = tile % per * COLS;
    const int64_t nc = r->width - at < COLS ? r->width - at : COLS;
    (f32 ? tile_f32 : tile_f64)[isa](r, part / tiles, first, end, tile / per * r->width + at, nc);
}

static void reduce_range(const void *user, int64_t first, int64_t end)
{
    const ctn__rows *r = user;
    const int64_t parts = parts_of(r), tiles = is_narrow(r) ? 1 : tiles_of(r);
    /* segments whose rows are still in cache for the next tile */
    const int64_t block = tiles > 1 ? 16 : end - first;
    for (int64_t p = 0; p < parts; p += tiles)
        for (int64_t v = first; v < end; v += block)
            for (int64_t i = 0; i < tiles; i++)
                reduce_part(r, p + i, v, v + block < end ? v + block : end);
}

void ctn__rows_reduce(const ctn__rows *r)
{
    const int64_t work = r->outer * (r->terms + r->n) * r->D, parts = parts_of(r);
    const int threads = work > CTN__GRAIN ? r->threads : 1;
    if (work == 0) return;
    if (r->n >= 4 * (int64_t)threads) {
        ctn__rows_share(r->offsets, r->offset_type, r->n, threads, reduce_range, r);
        return;
    }
    /* few segments: the threads share their columns */
#pragma omp parallel for schedule(static) if (threads > 1)
    for (int64_t p = 0; p < parts; p++) reduce_part(r, p, 0, r->n);
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef struct {
    char *y;
    const char *x;
    const void *index;
    ctn_dtype type;
    int64_t rows, K, bytes; /* rows of x and of y in one array, and bytes of a row */
} copies;

/* Copies of this many bytes and more are written past the caches, where they would push out
 * everything else, and without reading the old contents of y first. */
enum { STREAM = 32 << 20 };
/* Arrays of up to this many bytes stay in the cache, so no row is asked for before its turn. */
enum { CACHED = 256 << 10 };

/* One row of a multiple of 16 bytes to an address that is one too. */
static inline void stream_row(char *y, const char *x, int64_t bytes)
{
#if defined(__SSE2__)
    for (int64_t b = 0; b < bytes; b += 16) {
        void *to = y + b;
        const void *from = x + b;
        _mm_stream_si128(to, _mm_loadu_si128(from));
    }
#else
    memcpy(y, x, (size_t)bytes);
#endif
}

static inline void stream_end(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

/* The next n rows of one array x, with the indices from position k on. Constant arguments make each
 * copy one move. */
static inline __attribute__((always_inline)) void copy_array(const copies *c, const char *x,
                                                             char *y, int64_t k, int64_t n,
                                                             int64_t S, ctn_dtype type, bool stream)
{
    const bool far = c->rows * S > CACHED;
    for (const int64_t end = k + n; k < end; k++, y += S) {
        const char *from = x + ctn__index_get(c->index, type, k) * S;
        if (far) {
            const int64_t next = k + AHEAD < c->K ? k + AHEAD : k;
            const char *ahead = x + ctn__index_get(c->index, type, next) * S;
            for (int64_t b = 0; b < S && b < 512; b += 64) __builtin_prefetch(ahead + b);
        }
        if (stream) stream_row(y, from, S);
        else memcpy(y, from, (size_t)S);
    }
}

/* Rows [i, end) of y, counted over all arrays. */
static inline __attribute__((always_inline)) void copy_rows(const copies *c, int64_t i, int64_t end,
                                                            int64_t S, bool stream)
{
    while (i < end) {
        const int64_t o = i / c->K, k = i - o * c->K, n = end - i < c->K - k ? end - i : c->K - k;
        const char *x = c->x + o * c->rows * S;
        if (c->type == CTN_I64) copy_array(c, x, c->y + i * S, k, n, S, CTN_I64, stream);
        else copy_array(c, x, c->y + i * S, k, n, S, CTN_I32, stream);
        i += n;
    }
    if (stream) stream_end();
}

ctn_status ctn__select_run(const char *op, const ctn_run_args *a, int axis)
{
    const ctn_desc *x = &a->din[0], *index = &a->din[1];
    const ctn__along s = ctn__along_axis(x, axis);
    const copies c = {.y = a->out[0],
                      .x = a->in[0],
                      .index = a->in[1],
                      .type = index->dtype,
                      .rows = s.n,
                      .K = ctn__count(index),
                      .bytes = s.inner * (int64_t)ctn_dtype_size(x->dtype)};
    const int64_t total = s.outer * c.K;
    const int64_t block = c.bytes < 64 ? 4096 : 256; /* rows that a thread copies at a time */
    CTN_TRY(ctn__index_check(op, a->in[1], index, s.n));
    if (c.bytes == 0) return CTN_OK;
    const bool stream = c.bytes % 16 == 0 && (uintptr_t)c.y % 16 == 0 && total >= STREAM / c.bytes;
#pragma omp parallel for schedule(static) if (total * s.inner > CTN__GRAIN)
    for (int64_t i = 0; i < total; i += block) {
        const int64_t end = i + block < total ? i + block : total;
        if (c.bytes == 4) copy_rows(&c, i, end, 4, false);
        else if (c.bytes == 8) copy_rows(&c, i, end, 8, false);
        else if (stream) copy_rows(&c, i, end, c.bytes, true);
        else copy_rows(&c, i, end, c.bytes, false);
    }
    return CTN_OK;
}
