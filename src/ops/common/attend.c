/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention block by block. Operands are copied into contiguous blocks first (packed), padded with
 * zero rows to whole blocks, so every product has one shape and no operand needs special strides.
 * Queries are scaled when they are packed. A task is one head of keys of one sample with all heads
 * of queries that share it, or a part of these blocks if there are more threads than heads.
 */
#include "ops/common/attend.h"

#include <math.h>
#include <omp.h>

#include "ops/common/random.h"
#include "ops/common/vmath.h"

/* Most rows of a block. Blocks of keys are smaller where a mask hides parts of the matrix. */
enum { BQ = 64, BK = 256, BK_MASKED = 128, LINE = 16 }; /* LINE: floats of a cache line */

/* ---- which keys a query sees ----------------------------------------------------------------- */

typedef ctn__keys range;

/* What a sample sees. */
typedef struct {
    int64_t keys, first; /* number of keys; position of query 0 */
} view;

static view view_of(const ctn__attend *t, const ctn__attend_args *a, int64_t n)
{
    return (view){ctn__attend_keys(t, a, n), ctn__attend_first(a, n)};
}

static range visible(const ctn__attend *t, view v, int64_t i)
{
    return ctn__attend_visible(t, v.keys, v.first + i);
}

/* Keys that at least one of the queries of block b sees. lo and hi never decrease from a query to
 * the next. */
static range visible_to_block(const ctn__attend *t, view v, int64_t b)
{
    const int64_t last = (b + 1) * t->bq < t->L ? (b + 1) * t->bq : t->L;
    return (range){visible(t, v, b * t->bq).lo, visible(t, v, last - 1).hi};
}

/* r relative to block b, cut to it. */
static range within(const ctn__attend *t, range r, int64_t b)
{
    const int64_t lo = r.lo - b * t->bk, hi = r.hi - b * t->bk;
    const range c = {lo < 0 ? 0 : lo, hi > t->bk ? t->bk : hi};
    return c.hi > c.lo ? c : (range){0, 0};
}

/* The keys that each query of a block sees, relative to a block of keys. */
typedef struct {
    int32_t lo[BQ], hi[BQ];
} sight;

static sight sight_of(const ctn__attend *t, view v, int64_t i, int64_t j)
{
    sight s;
    for (int64_t k = 0; k < t->bq; k++) {
        const range c = within(t, visible(t, v, i * t->bq + k), j);
        s.lo[k] = (int32_t)c.lo;
        s.hi[k] = (int32_t)c.hi;
    }
    return s;
}

/* ---- packing --------------------------------------------------------------------------------- */

/* The rows r of head h of sample n, times c, then zero rows up to `padded`. */
static void pack_rows(float *to, const ctn__attend_in *x, int64_t n, int64_t h, range r,
                      int64_t padded, int64_t cols, float c)
{
    for (int64_t i = r.lo; i < r.hi; i++, to += cols) ctn__attend_read(to, x, n, h, i, cols, c);
    memset(to, 0, (size_t)((padded - (r.hi - r.lo)) * cols) * sizeof *to);
}

/* Packed rows, block by block transposed: (blocks, cols, b) from (blocks, b, cols). */
static void turn_blocks(float *to, const float *from, int64_t blocks, int64_t b, int64_t cols)
{
    for (int64_t k = 0; k < blocks; k++, to += b * cols, from += b * cols)
        for (int64_t i = 0; i < b; i += LINE)
            for (int64_t j = 0; j < cols; j++) {
                const int64_t n = b - i < LINE ? b - i : LINE;
                for (int64_t r = 0; r < n; r++) to[j * b + i + r] = from[(i + r) * cols + j];
            }
}

/* ---- dropout --------------------------------------------------------------------------------- */

/* The words of block (i, j) of the matrix of head h of sample n, w[query * bk + key]. */
static void random_block(const ctn__attend *t, const ctn__attend_args *a, int64_t n, int64_t h,
                         int64_t i, int64_t j, uint32_t *w)
{
    const int64_t blocks = (t->bq * t->bk + CTN__WORDS - 1) / CTN__WORDS;
    const int64_t head = ctn__draws_line(&a->draws, n) * t->H + h;
    const int64_t first = ((head * t->nq + i) * t->nk + j) * blocks;
    for (int64_t b = 0; b < blocks; b++)
        ctn__random_words(&a->draws, (uint64_t)(first + b) * CTN__WORDS, CTN__WORDS,
                          w + b * CTN__WORDS);
}

/* In words, which are as large as floats. */
static size_t random_room(const ctn__attend *t)
{
    return (size_t)((t->bq * t->bk + CTN__WORDS - 1) / CTN__WORDS * CTN__WORDS);
}

/* ---- forward --------------------------------------------------------------------------------- */

/* What a block of queries has summed up. */
typedef struct {
    float *s, *y; /* (bq,bk) scores, then probabilities; (bq,F) */
    float max[BQ], sum[BQ];
    const float *bias; /* of the first score; NULL: none */
    const int64_t *bias_stride;
    const uint32_t *words; /* NULL: no dropout */
    uint32_t limit;        /* words below it are dropped */
    float keep;            /* 1 / (1 - drop) */
} block;

/* Row i of a block: the scores of keys [lo,hi) become exp(score - max), the others zero. */
CTN__VECTOR void fold_row(block *b, int64_t i, int64_t bk, int64_t lo, int64_t hi, int64_t F)
{
    float *s = b->s + i * bk, *y = b->y + i * F;
    float top = b->max[i], sum = 0;
    if (b->bias)
        for (int64_t j = lo; j < hi; j++)
            s[j] += b->bias[i * b->bias_stride[0] + j * b->bias_stride[1]];
#pragma omp simd reduction(max : top)
    for (int64_t j = lo; j < hi; j++) top = s[j] > top ? s[j] : top;
    const float from = top > -INFINITY ? top : 0; /* no key yet: all probabilities are zero */
#pragma omp simd reduction(+ : sum)
    for (int64_t j = lo; j < hi; j++) {
        s[j] = ctn__expf(s[j] - from);
        sum += s[j];
    }
    memset(s, 0, (size_t)lo * sizeof *s);
    memset(s + hi, 0, (size_t)(bk - hi) * sizeof *s);
    if (top > b->max[i]) {
        const float c = ctn__expf(b->max[i] - from);
        b->sum[i] *= c;
#pragma omp simd
        for (int64_t f = 0; f < F; f++) y[f] *= c;
    }
    b->max[i] = top;
    b->sum[i] += sum;
    if (b->words)
#pragma omp simd
        for (int64_t j = 0; j < bk; j++)
            s[j] = b->words[i * bk + j] >= b->limit ? s[j] * b->keep : 0;
}

/* All rows in one call, so that their chains of instructions overlap. */
CTN__PER_ISA(fold_rows, (block * b, const sight *s, int64_t rows, int64_t bk, int64_t F),
             (b, s, rows, bk, F))
{
    for (int64_t i = 0; i < rows; i++) fold_row(b, i, bk, s->lo[i], s->hi[i], F);
}

/* y / sum, and the logarithm of the sum. */
static void finish_block(const ctn__attend *t, const block *b, int64_t n, int64_t h, int64_t first,
                         const ctn__attend_out *y, float *sums)
{
    const int64_t rows = t->L - first < t->bq ? t->L - first : t->bq;
    for (int64_t i = 0; i < rows; i++) {
        const float c = b->sum[i] > 0 ? 1 / b->sum[i] : 0;
        ctn__attend_write(y, n, h, first + i, b->y + i * t->F, 1, t->F, c);
        if (sums)
            sums[(n * t->H + h) * t->L + first + i] =
                b->sum[i] > 0 ? b->max[i] + logf(b->sum[i]) : INFINITY;
    }
}

/* The operands of one task, packed. */
typedef struct {
    float *kt, *v, *q; /* (nk,E,bk), (nk bk,F), (bq,E) */
    block b;
    uint32_t *words;
} forward_room;

static size_t forward_floats(const ctn__attend *t)
{
    return (size_t)(t->nk * t->bk * (2 * t->E + t->F) + t->bq * (t->E + t->F + t->bk)) +
           random_room(t) + 8 * LINE;
}

static forward_room forward_cut(const ctn__attend *t, float *p)
{
    forward_room r;
    r.kt = p;
    r.v = r.kt + t->nk * t->bk * t->E;
    r.q = r.v + t->nk * t->bk * t->F;
    r.b.s = r.q + t->bq * t->E;
    r.b.y = r.b.s + t->bq * t->bk;
    void *rest = r.b.y + t->bq * t->F;
    r.words = rest;
    return r;
}

/* One block of queries of head h. */
static void forward_block(const ctn__attend *t, const ctn__attend_args *a, forward_room *r,
                          int64_t n, int64_t h, int64_t i, ctn__attend_out y, float *sums)
{
    const int64_t first = i * t->bq;
    const view v = view_of(t, a, n);
    const int64_t rows = t->L - first < t->bq ? t->L - first : t->bq;
    const range seen = visible_to_block(t, v, i);
    block *b = &r->b;
    pack_rows(r->q, &a->q, n, h, (range){first, first + rows}, t->bq, t->E, a->scale);
    memset(b->y, 0, (size_t)(t->bq * t->F) * sizeof(float));
    for (int k = 0; k < BQ; k++) b->max[k] = -INFINITY, b->sum[k] = 0;
    b->bias_stride = a->bias.stride ? a->bias.stride + 2 : NULL;
    b->limit = (uint32_t)(a->drop * 0x1p32f);
    b->keep = 1 / (1 - a->drop);
    b->words = a->drop > 0 ? r->words : NULL;
    for (int64_t j = seen.lo / t->bk; j * t->bk < seen.hi; j++) {
        ctn__tile_run(t->tile[0], r->q, r->kt + j * t->bk * t->E, b->s);
        if (a->drop > 0) random_block(t, a, n, h, i, j, r->words);
        b->bias = a->bias.at ? a->bias.at + n * a->bias.stride[0] + h * a->bias.stride[1] +
                                   first * a->bias.stride[2] + j * t->bk * a->bias.stride[3]
                             : NULL;
        const sight s = sight_of(t, v, i, j);
        fold_rows[t->isa](b, &s, rows, t->bk, t->F);
        ctn__tile_run(t->tile[1], b->s, r->v + j * t->bk * t->F, b->y);
    }
    finish_block(t, b, n, h, first, &y, sums);
}

/* The keys and values of head k. */
static void pack_keys(const ctn__attend *t, const ctn__attend_args *a, int64_t n, int64_t k,
                      float *rows, float *turned, float *v)
{
    const int64_t keys = ctn__attend_keys(t, a, n), padded = t->nk * t->bk;
    pack_rows(rows, &a->k, n, k, (range){0, keys}, padded, t->E, 1);
    pack_rows(v, &a->v, n, k, (range){0, keys}, padded, t->F, 1);
    turn_blocks(turned, rows, t->nk, t->bk, t->E);
}

void ctn__attend_forward(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_out y,
                         float *sums, int threads, float *scratch)
{
    const int64_t tasks = t->N * t->K * t->parts, group = t->H / t->K;
    const size_t room = forward_floats(t);
    if (t->few && a->drop == 0) {
        ctn__attend_few(t, a, y, sums, threads, scratch);
        return;
    }
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (tasks > 1)
    for (int64_t u = 0; u < tasks; u++) {
        const int64_t n = u / t->parts / t->K, k = u / t->parts % t->K, part = u % t->parts;
        float *mine = scratch + (size_t)omp_get_thread_num() * room;
        forward_room r = forward_cut(t, mine);
        pack_keys(t, a, n, k, mine + room - (size_t)(t->nk * t->bk * t->E), r.kt, r.v);
        for (int64_t h = k * group; h < (k + 1) * group; h++)
            for (int64_t i = part; i < t->nq; i += t->parts)
                forward_block(t, a, &r, n, h, i, y, sums);
    }
}

/* ---- backward -------------------------------------------------------------------------------- */

/* The packed operands of one task and its results. Those of the queries belong to one head. */
typedef struct {
    float *k, *kt, *v, *gk, *gv;  /* (nk bk, E or F), kt (nk,E,bk) */
    float *q, *qt, *g, *gt, *gqt; /* (nq bq, E or F); qt, gt and gqt (nq, E or F, bq) */
    float *sums, *dots;           /* (nq bq): logarithms of sums; sum of y g of each row */
    float *p, *d;                 /* (bk,bq): probabilities and the gradients of scores */
    uint32_t *words;
    float *row; /* (F) */
} backward_room;

static size_t backward_floats(const ctn__attend *t)
{
    const int64_t keys = t->nk * t->bk, queries = t->nq * t->bq;
    return (size_t)(keys * (3 * t->E + 2 * t->F) + queries * (3 * t->E + 2 * t->F + 2) +
                    2 * t->bq * t->bk + t->F) +
           random_room(t) + 8 * LINE;
}

static backward_room backward_cut(const ctn__attend *t, float *p)
{
    const int64_t keys = t->nk * t->bk, queries = t->nq * t->bq;
    backward_room r;
    r.k = p;
    r.kt = r.k + keys * t->E;
    r.v = r.kt + keys * t->E;
    r.gk = r.v + keys * t->F;
    r.gv = r.gk + keys * t->E;
    r.q = r.gv + keys * t->F;
    r.qt = r.q + queries * t->E;
    r.gqt = r.qt + queries * t->E;
    r.g = r.gqt + queries * t->E;
    r.gt = r.g + queries * t->F;
    r.sums = r.gt + queries * t->F;
    r.dots = r.sums + queries;
    r.p = r.dots + queries;
    r.d = r.p + t->bq * t->bk;
    r.row = r.d + t->bq * t->bk;
    void *rest = r.row + t->F;
    r.words = rest;
    return r;
}

static void pack_queries(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_in y,
                         ctn__attend_in g, const float *sums, int64_t n, int64_t h,
                         backward_room *r)
{
    const int64_t queries = t->nq * t->bq;
    pack_rows(r->q, &a->q, n, h, (range){0, t->L}, queries, t->E, a->scale);
    pack_rows(r->g, &g, n, h, (range){0, t->L}, queries, t->F, 1);
    turn_blocks(r->qt, r->q, t->nq, t->bq, t->E);
    turn_blocks(r->gt, r->g, t->nq, t->bq, t->F);
    for (int64_t i = 0; i < queries; i++) {
        double dot = 0;
        if (i < t->L) ctn__attend_read(r->row, &y, n, h, i, t->F, 1);
#pragma omp simd reduction(+ : dot)
        for (int64_t f = 0; f < (i < t->L ? t->F : 0); f++)
            dot += (double)(r->row[f] * r->g[i * t->F + f]);
        r->dots[i] = (float)dot;
        r->sums[i] = i < t->L ? sums[(n * t->H + h) * t->L + i] : INFINITY;
    }
    memset(r->gqt, 0, (size_t)(queries * t->E) * sizeof(float));
}

/* A transposed block, whose rows are keys: scores s become probabilities, and the gradients d of
 * probabilities those of scores. */
CTN__PER_ISA(unfold_rows,
             (float *s, float *d, int64_t rows, int64_t n, const float *sums, const float *dots),
             (s, d, rows, n, sums, dots))
{
    for (int64_t k = 0; k < rows; k++, s += n, d += n)
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const float p = ctn__expf(s[i] - sums[i]);
            d[i] = p * (d[i] - dots[i]);
            s[i] = p;
        }
}

/* Zeros for the queries that do not see a key. */
CTN__PER_ISA(mask_rows, (const sight *s, int32_t rows, int64_t n, float *p, float *d),
             (s, rows, n, p, d))
{
    for (int32_t key = 0; key < rows; key++, p += n, d += n)
#pragma omp simd
        for (int64_t i = 0; i < n; i++) {
            const bool seen = (key >= s->lo[i]) & (key < s->hi[i]);
            p[i] = seen ? p[i] : 0;
            d[i] = seen ? d[i] : 0;
        }
}

/* Does every query of block i see all keys of block j? */
static bool sees_all(const ctn__attend *t, view v, int64_t i, int64_t j)
{
    const range first = visible(t, v, i * t->bq), last = visible(t, v, (i + 1) * t->bq - 1);
    return last.lo <= j * t->bk && first.hi >= (j + 1) * t->bk;
}

/* Dropout of a transposed block: `to` gets what was multiplied with the values. */
static void drop_block(const ctn__attend *t, const ctn__attend_args *a, const uint32_t *words,
                       const float *from, float *to)
{
    const uint32_t limit = (uint32_t)(a->drop * 0x1p32f);
    const float keep = 1 / (1 - a->drop);
    for (int64_t j = 0; j < t->bk; j++)
        for (int64_t i = 0; i < t->bq; i++)
            to[j * t->bq + i] = words[i * t->bk + j] >= limit ? from[j * t->bq + i] * keep : 0;
}

static void add_bias(const ctn__attend *t, const ctn__attend_args *a, int64_t n, int64_t h,
                     int64_t i, int64_t j, float *s)
{
    const int64_t *st = a->bias.stride;
    const float *b = a->bias.at + n * st[0] + h * st[1] + i * t->bq * st[2] + j * t->bk * st[3];
    const int64_t rows = t->L - i * t->bq < t->bq ? t->L - i * t->bq : t->bq;
    const int64_t cols = t->M - j * t->bk < t->bk ? t->M - j * t->bk : t->bk;
    for (int64_t y = 0; y < cols; y++)
        for (int64_t x = 0; x < rows; x++) s[y * t->bq + x] += b[x * st[2] + y * st[3]];
}

/* The block of queries i and keys j: probabilities p and gradients of scores d, transposed. */
static void backward_scores(const ctn__attend *t, const ctn__attend_args *a, backward_room *r,
                            int64_t n, int64_t h, int64_t i, int64_t j)
{
    const int64_t bq = t->bq, bk = t->bk;
    const view v = view_of(t, a, n);
    ctn__tile_run(t->tile[0], r->k + j * bk * t->E, r->qt + i * bq * t->E, r->p);
    ctn__tile_run(t->tile[1], r->v + j * bk * t->F, r->gt + i * bq * t->F, r->d);
    if (a->bias.at) add_bias(t, a, n, h, i, j, r->p);
    if (a->drop > 0) {
        random_block(t, a, n, h, i, j, r->words);
        drop_block(t, a, r->words, r->d, r->d);
    }
    unfold_rows[t->isa](r->p, r->d, bk, bq, r->sums + i * bq, r->dots + i * bq);
    if (sees_all(t, v, i, j)) return;
    const sight s = sight_of(t, v, i, j);
    mask_rows[t->isa](&s, (int32_t)bk, bq, r->p, r->d);
}

/* All blocks of one head of queries: keys [kb.lo,kb.hi) and queries [qb.lo,qb.hi), in blocks.
 * What is not wanted is not computed. */
static void backward_head(const ctn__attend *t, const ctn__attend_args *a, backward_room *r,
                          int64_t n, int64_t h, range kb, range qb, bool keys, bool queries)
{
    const int64_t bq = t->bq, bk = t->bk;
    const view v = view_of(t, a, n);
    for (int64_t j = kb.lo; j < kb.hi; j++)
        for (int64_t i = qb.lo; i < qb.hi; i++) {
            const range s = visible_to_block(t, v, i);
            if (s.lo >= (j + 1) * bk || s.hi <= j * bk) continue;
            backward_scores(t, a, r, n, h, i, j);
            if (keys) ctn__tile_run(t->tile[3], r->d, r->q + i * bq * t->E, r->gk + j * bk * t->E);
            if (queries)
                ctn__tile_run(t->tile[4], r->kt + j * bk * t->E, r->d, r->gqt + i * bq * t->E);
            if (!keys) continue;
            if (a->drop > 0) drop_block(t, a, r->words, r->p, r->p);
            ctn__tile_run(t->tile[2], r->p, r->g + i * bq * t->F, r->gv + j * bk * t->F);
        }
}

/* Rows [from,to) of a packed result. */
static void unpack_rows(const ctn__attend_out *o, int64_t n, int64_t h, const float *x,
                        int64_t from, int64_t to, int64_t cols)
{
    for (int64_t i = from; i < to && o->at; i++)
        ctn__attend_write(o, n, h, i, x + i * cols, 1, cols, 1);
}

/* Blocks [qb.lo,qb.hi) of the gradient of the queries, from its transpose. */
static void unpack_queries(const ctn__attend *t, const ctn__attend_args *a,
                           const ctn__attend_out *o, int64_t n, int64_t h, backward_room *r,
                           range qb)
{
    for (int64_t i = qb.lo * t->bq; i < qb.hi * t->bq && i < t->L && o->at; i++)
        ctn__attend_write(o, n, h, i, r->gqt + i / t->bq * t->bq * t->E + i % t->bq, t->bq, t->E,
                          a->scale);
}

static range cut(int64_t n, int64_t parts, int64_t part)
{
    return (range){n * part / parts, n * (part + 1) / parts};
}

/* Task u of head k: with one part everything; otherwise a share of the gradients of keys and
 * values, or a share of the gradients of queries. */
static void backward_task(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_in y,
                          ctn__attend_in g, const float *sums, const ctn__attend_out grad[3],
                          int64_t u, float *scratch)
{
    const int64_t group = t->H / t->K, half = t->parts > 1 ? 2 : 1, tasks = t->parts * half;
    const int64_t n = u / tasks / t->K, k = u / tasks % t->K, part = u % tasks;
    const bool keys = part < t->parts && (grad[1].at || grad[2].at);
    const bool queries = (half == 1 || part >= t->parts) && grad[0].at;
    const range kb = half == 2 && keys ? cut(t->nk, t->parts, part) : (range){0, t->nk};
    const range qb = half == 2 && !keys ? cut(t->nq, t->parts, part - t->parts) : (range){0, t->nq};
    if (!keys && !queries) return;
    backward_room r = backward_cut(t, scratch);
    pack_keys(t, a, n, k, r.k, r.kt, r.v);
    memset(r.gk, 0, (size_t)(t->nk * t->bk * (t->E + t->F)) * sizeof(float));
    for (int64_t h = k * group; h < (k + 1) * group; h++) {
        pack_queries(t, a, y, g, sums, n, h, &r);
        backward_head(t, a, &r, n, h, kb, qb, keys, queries);
        if (queries) unpack_queries(t, a, &grad[0], n, h, &r, qb);
    }
    const int64_t last = kb.hi * t->bk < t->M ? kb.hi * t->bk : t->M;
    if (!keys) return;
    unpack_rows(&grad[1], n, k, r.gk, kb.lo * t->bk, last, t->E);
    unpack_rows(&grad[2], n, k, r.gv, kb.lo * t->bk, last, t->F);
}

void ctn__attend_backward(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_in y,
                          ctn__attend_in g, const float *sums, const ctn__attend_out grad[3],
                          int threads, float *scratch)
{
    const int64_t tasks = t->N * t->K * t->parts * (t->parts > 1 ? 2 : 1);
    const size_t room = backward_floats(t);
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (tasks > 1)
    for (int64_t u = 0; u < tasks; u++)
        backward_task(t, a, y, g, sums, grad, u, scratch + (size_t)omp_get_thread_num() * room);
}

/* ---- making ---------------------------------------------------------------------------------- */

static ctn_status make_tiles(ctn__attend *t, bool backward)
{
    const int64_t bq = t->bq, bk = t->bk, E = t->E, F = t->F;
    const ctn__tile_shape there[] = {{bq, bk, E, E, bk, bk, false}, {bq, F, bk, bk, F, F, true}};
    const ctn__tile_shape back[] = {{bk, bq, E, E, bq, bq, false},
                                    {bk, bq, F, F, bq, bq, false},
                                    {bk, F, bq, bq, F, F, true},
                                    {bk, E, bq, bq, E, E, true},
                                    {E, bq, bk, bk, bq, bq, true}};
    for (int i = 0; i < (backward ? 5 : 2); i++)
        CTN_TRY(ctn__tile_new(&t->tile[i], backward ? &back[i] : &there[i]));
    return CTN_OK;
}

ctn_status ctn__attend_make(ctn__attend *t, bool backward, int threads)
{
    t->isa = ctn__isa_in_use();
    t->few = t->L * (t->H / t->K) <= CTN__FEW;
    t->bq = t->L < BQ ? t->L : BQ;
    t->bk = t->causal || t->window > 0 ? BK_MASKED : BK;
    if (t->bk > t->M) t->bk = t->M;
    t->nq = (t->L + t->bq - 1) / t->bq;
    t->nk = (t->M + t->bk - 1) / t->bk;
    const int64_t heads = t->N * t->K, most = backward && t->nk < t->nq ? t->nk : t->nq;
    t->parts = heads < threads ? (threads + heads - 1) / heads : 1;
    if (t->parts > most) t->parts = most;
    memset(t->tile, 0, sizeof t->tile);
    const ctn_status st = make_tiles(t, backward);
    if (st < 0) ctn__attend_drop(t);
    return st;
}

void ctn__attend_drop(ctn__attend *t)
{
    for (int i = 0; i < CTN__ATTEND_TILES; i++) ctn__tile_free(t->tile[i]);
}

size_t ctn__attend_scratch(const ctn__attend *t, bool backward, int threads)
{
    size_t floats = backward ? backward_floats(t) : forward_floats(t);
    if (!backward && t->few && floats < ctn__attend_few_floats(t))
        floats = ctn__attend_few_floats(t);
    return (size_t)threads * floats * sizeof(float);
}
