/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch normalisation: chooses the way and the instruction set, and divides the work of the fast
 * way. A channels-last tensor is M rows of C. If C is small, `fold` rows are treated as one row of
 * W = fold C columns, so that vectors are full and loops are long. Column j belongs to channel
 * j mod C, and elements that do not fill a row form a shorter last one.
 *
 * Sums: threads share items, each a block of rows times a tile of columns. Inside an item, float
 * sums of at most STEP rows are added up in double. Each block leaves one pair of sums per channel
 * in scratch, and these are added in the order of the blocks.
 */
#include "engine/bnorm.h"

#include "engine/isa.h"

#include <omp.h>

#define BNORM_TABLE ctn__bnorm_portable
#include "engine/bnorm_body.h"

enum {
    FOLD_TO = 128,       /* minimum number of columns */
    TILE = 512,          /* maximum columns of one item, so that their sums stay in the L1 cache */
    STEP = 64,           /* rows in a float sum */
    ITEMS = 128,         /* wanted, for the threads to share */
    COLUMNS = 5,         /* maximum numbers per column */
    CHUNK = 8192,        /* elements mapped at a time */
    PARALLEL_MIN = 16384 /* with fewer elements, one thread is faster than a team */
};

/* ---- instruction sets ------------------------------------------------------------------------ */

static const ctn__bnorm_kernels *kernels(void)
{
    static const ctn__bnorm_kernels *const table[] = CTN__ISA_TABLE(&ctn__bnorm);
    return table[ctn__isa_in_use()];
}

/* ---- ways ------------------------------------------------------------------------------------ */

typedef enum { FAST, PLAIN, ANY } way;

static way way_of(int n, const ctn__bnorm_arg *v)
{
    bool fast = true, plain = true;
    const ctn_dtype t = v[0].d->dtype;
    for (int i = 0; i < n; i++) {
        if (!v[i].p) continue;
        fast &= v[i].d->dtype == t && ctn__is_channels_last(v[i].d);
        plain &= v[i].d->dtype == t && ctn__is_plain(v[i].d);
    }
    if (fast && (t == CTN_F32 || t == CTN_BF16)) return FAST;
    return plain && (t == CTN_F32 || t == CTN_F64) ? PLAIN : ANY;
}

#define NAME_portable "bnorm:portable"
#define NAME_avx2 "bnorm:avx2"
#define NAME_avx512 "bnorm:avx512"
#define NAME_sve "bnorm:sve"

const char *ctn__bnorm_name(const ctn_desc *x)
{
    static const char *const fast[] = CTN__ISA_TABLE(NAME);
    char something;
    switch (way_of(1, &(ctn__bnorm_arg){&something, x})) {
    case FAST: return fast[ctn__isa_in_use()];
    case PLAIN: return "bnorm:row_major";
    case ANY: break;
    }
    return "bnorm:any";
}

/* ---- geometry of the fast way ---------------------------------------------------------------- */

typedef struct {
    int64_t C, M, fold, W;
    int64_t rows, rest;         /* rows of W columns; columns of the shorter last row */
    int64_t tiles, blocks, per; /* tiles of columns, blocks of rows, rows per block */
} shape;

static shape shape_of(const ctn_desc *x)
{
    shape h = {.C = x->dim[1]};
    h.M = h.C > 0 ? ctn__count(x) / h.C : 0;
    if (h.M == 0) return h;
    h.fold = (FOLD_TO + h.C - 1) / h.C;
    h.W = h.fold * h.C;
    h.rows = h.M / h.fold;
    h.rest = h.M % h.fold * h.C;
    h.tiles = (h.W + TILE - 1) / TILE;
    int64_t most = ITEMS / h.tiles < 1 ? 1 : ITEMS / h.tiles;
    h.per = (h.rows + most - 1) / most;
    if (h.per < STEP) h.per = STEP;
    h.blocks = h.rows > 0 ? (h.rows + h.per - 1) / h.per : 1;
    return h;
}

static size_t part_bytes(const shape *h)
{
    return 2 * (size_t)h->blocks * (size_t)h->C * sizeof(double);
}

size_t ctn__bnorm_scratch(const ctn_desc *x)
{
    shape h = shape_of(x);
    return part_bytes(&h) + COLUMNS * (size_t)h.W * sizeof(float);
}

/* Scratch for row `i` of numbers per column; it follows the partial sums. */
static float *columns(const shape *h, void *scratch, int i)
{
    void *behind = (char *)scratch + part_bytes(h);
    return (float *)behind + i * h->W;
}

/* Spreads v[C] (NULL: zeros) to one f32 per column. */
static const float *spread(const shape *h, const double *v, float *to)
{
    for (int64_t j = 0; j < h->W; j += h->C)
        for (int64_t c = 0; c < h->C; c++) to[j + c] = v ? (float)v[c] : 0;
    return to;
}

/* The part of the span that begins at element o. */
static ctn__bnorm_span part_of(const ctn__bnorm_span *s, int64_t o, int64_t rows, int64_t width,
                               int flags)
{
    ctn__bnorm_span p = *s;
    const void **operand[] = {&p.x, &p.residual, &p.gy, &p.gy2, &p.y};
    const int64_t bytes = o * (flags & CTN__BNORM_LOW ? 2 : 4);
    p.rows = rows;
    p.width = width;
    for (int i = 0; i < 5; i++)
        if (*operand[i]) *operand[i] = (const char *)*operand[i] + bytes;
    if (p.out) p.out = (char *)p.out + bytes;
    return p;
}

/* ---- sums ------------------------------------------------------------------------------------ */

typedef struct {
    shape h;
    const ctn__bnorm_kernels *k;
    ctn__bnorm_span all;
    int flags;
    bool backward;
    double *part; /* (blocks,2,C) */
} job;

/* Computes the float sums of the rows from `row` and the columns from c0, and adds them to sum and
 * square of `channels`. */
static void add_step(const job *j, int64_t row, int64_t rows, int64_t c0, int64_t width,
                     int64_t channels, const float *base, double *sum, double *square)
{
    float shift[TILE], s[TILE], q[TILE];
    ctn__bnorm_span p = part_of(&j->all, row * j->h.W + c0, rows, width, j->flags);
    if (j->backward) {
        p.a += c0;
        if (j->flags & CTN__BNORM_BY_X) {
            p.ya += c0;
            p.yb += c0;
        }
        j->k->reduce(&p, j->flags, s, q);
    } else {
        j->k->stats(&p, j->flags, shift, s, q);
    }
    for (int64_t o = 0; o < width; o += channels) {
        if (!j->backward) {
            j->k->gather(channels, (double)rows, base, shift + o, s + o, q + o, sum, square);
            continue;
        }
        for (int64_t c = 0; c < channels; c++) {
            sum[c] += (double)s[o + c];
            square[c] += (double)q[o + c];
        }
    }
}

static void add_item(const job *j, int64_t block, int64_t tile)
{
    const shape *h = &j->h;
    const int64_t c0 = tile * TILE, width = h->W - c0 < TILE ? h->W - c0 : TILE;
    const int64_t channels = h->fold > 1 ? h->C : width, begin = block * h->per;
    const int64_t end = h->rows - begin < h->per ? h->rows : begin + h->per;
    double *sum = j->part + 2 * block * h->C + c0, *square = sum + h->C;
    float base[TILE];
    memset(sum, 0, (size_t)channels * sizeof *sum);
    memset(square, 0, (size_t)channels * sizeof *square);
    for (int64_t c = 0; c < channels; c++)
        base[c] = j->backward ? 0 : get(j->all.x, c0 + c, j->flags);
    for (int64_t r = begin; r < end; r += STEP)
        add_step(j, r, end - r < STEP ? end - r : STEP, c0, width, channels, base, sum, square);
    if (block == h->blocks - 1 && h->rest > 0)
        add_step(j, h->rows, 1, 0, h->rest, channels, base, sum, square);
}

/* The sums over all rows, one pair per channel. */
static void add_all(const job *j, double *sum, double *square)
{
    const shape *h = &j->h;
    const int64_t items = h->blocks * h->tiles, groups = (h->C + 63) / 64;
    const bool team = h->M * h->C > PARALLEL_MIN;
#pragma omp parallel for schedule(static) if (team && items > 1)
    for (int64_t i = 0; i < items; i++) add_item(j, i / h->tiles, i % h->tiles);

#pragma omp parallel for schedule(static) if (h->blocks * h->C > PARALLEL_MIN)
    for (int64_t g = 0; g < groups; g++) {
        const int64_t c0 = g * 64, n = h->C - c0 < 64 ? h->C - c0 : 64;
        memset(sum + c0, 0, (size_t)n * sizeof *sum);
        memset(square + c0, 0, (size_t)n * sizeof *square);
        for (int64_t b = 0; b < h->blocks; b++) {
            const double *s = j->part + 2 * b * h->C + c0, *q = s + h->C;
#pragma omp simd
            for (int64_t c = 0; c < n; c++) {
                sum[c0 + c] += s[c];
                square[c0 + c] += q[c];
            }
        }
    }
}

void ctn__bnorm_stats(ctn__bnorm_arg x, double *mean, double *var, void *scratch)
{
    job j = {.h = shape_of(x.d)};
    const int64_t C = j.h.C, M = j.h.M;
    if (M == 0) {
        memset(mean, 0, (size_t)C * sizeof *mean);
        memset(var, 0, (size_t)C * sizeof *var);
        return;
    }
    switch (way_of(1, &x)) {
    case PLAIN: ctn__bnorm_stats_plain(x, mean, var); return;
    case ANY: ctn__bnorm_stats_any(x, mean, var); return;
    case FAST: break;
    }
    j.k = kernels();
    j.flags = x.d->dtype == CTN_BF16 ? CTN__BNORM_LOW : 0;
    j.all = (ctn__bnorm_span){.ld = j.h.W, .x = x.p};
    j.part = scratch;
    add_all(&j, mean, var);
    for (int64_t c = 0; c < C; c++) {
        double m = mean[c] / (double)M, v = var[c] / (double)M - m * m;
        mean[c] = (double)get(x.p, c, j.flags) + m;
        var[c] = v < 0 ? 0 : v;
    }
}

static int gradient_flags(const ctn__bnorm_gradient *g)
{
    return (g->gy.d->dtype == CTN_BF16 ? CTN__BNORM_LOW : 0) | (g->y.p ? CTN__BNORM_RELU : 0) |
           (g->gy2.p ? CTN__BNORM_SECOND : 0) | (g->a ? CTN__BNORM_BY_X : 0);
}

/* Operands of a gradient and `out`. Rows 0 and 1 of the columns in scratch are those of y. */
static ctn__bnorm_span gradient_span(const shape *h, const ctn__bnorm_gradient *g, ctn__bnorm_arg x,
                                     ctn__bnorm_arg out, void *scratch)
{
    ctn__bnorm_span s = {
        .ld = h->W, .x = x.p, .gy = g->gy.p, .gy2 = g->gy2.p, .y = g->y.p, .out = out.p};
    if (g->a) {
        s.ya = spread(h, g->a, columns(h, scratch, 0));
        s.yb = spread(h, g->b, columns(h, scratch, 1));
    }
    return s;
}

void ctn__bnorm_reduce(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *mean,
                       ctn__bnorm_arg out, double *sum, double *dot, void *scratch)
{
    const ctn__bnorm_arg all[] = {g->gy, g->gy2, g->y, x, out};
    job j = {.h = shape_of(x.d), .k = kernels(), .backward = true, .part = scratch};
    if (j.h.M == 0) {
        memset(sum, 0, (size_t)j.h.C * sizeof *sum);
        memset(dot, 0, (size_t)j.h.C * sizeof *dot);
        return;
    }
    switch (way_of(5, all)) {
    case PLAIN: ctn__bnorm_reduce_plain(g, x, mean, out, sum, dot); return;
    case ANY: ctn__bnorm_reduce_any(g, x, mean, out, sum, dot); return;
    case FAST: break;
    }
    j.flags = gradient_flags(g) | (out.p ? CTN__BNORM_WRITE : 0);
    j.all = gradient_span(&j.h, g, x, out, scratch);
    j.all.a = spread(&j.h, mean, columns(&j.h, scratch, 2));
    add_all(&j, sum, dot);
}

/* ---- maps ------------------------------------------------------------------------------------ */

/* Each thread takes the rows that it has just summed, the last ones first, because they are still
 * in its cache. */
static void map_all(const shape *h, const ctn__bnorm_span *all, int flags,
                    void (*kernel)(const ctn__bnorm_span *p, int flags))
{
    const int64_t chunk = CHUNK / h->W < 1 ? 1 : CHUNK / h->W;
#pragma omp parallel if (h->rows * h->W > PARALLEL_MIN)
    {
        const int64_t t = omp_get_thread_num(), team = omp_get_num_threads();
        const int64_t lo = h->rows * t / team, hi = h->rows * (t + 1) / team;
        for (int64_t end = hi; end > lo; end -= chunk) {
            const int64_t n = end - lo < chunk ? end - lo : chunk;
            ctn__bnorm_span p = part_of(all, (end - n) * h->W, n, h->W, flags);
            kernel(&p, flags);
        }
    }
    if (h->rest > 0) {
        ctn__bnorm_span p = part_of(all, h->rows * h->W, 1, h->rest, flags);
        kernel(&p, flags);
    }
}

void ctn__bnorm_apply(ctn__bnorm_arg x, const double *a, const double *b, ctn__bnorm_arg residual,
                      bool relu, ctn__bnorm_arg y, void *scratch)
{
    const ctn__bnorm_arg all[] = {x, residual, y};
    const shape h = shape_of(x.d);
    if (h.M == 0) return;
    switch (way_of(3, all)) {
    case PLAIN: ctn__bnorm_apply_plain(x, a, b, residual, relu, y); return;
    case ANY: ctn__bnorm_apply_any(x, a, b, residual, relu, y); return;
    case FAST: break;
    }
    const int flags = (x.d->dtype == CTN_BF16 ? CTN__BNORM_LOW : 0) | (relu ? CTN__BNORM_RELU : 0) |
                      (residual.p ? CTN__BNORM_SECOND : 0);
    const ctn__bnorm_span s = {.ld = h.W,
                               .x = x.p,
                               .residual = residual.p,
                               .out = y.p,
                               .a = spread(&h, a, columns(&h, scratch, 0)),
                               .b = spread(&h, b, columns(&h, scratch, 1))};
    map_all(&h, &s, flags, kernels()->apply);
}

void ctn__bnorm_grad_apply(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *p,
                           const double *q, const double *r, ctn__bnorm_arg gx, void *scratch)
{
    const ctn__bnorm_arg all[] = {g->gy, g->gy2, g->y, x, gx};
    const shape h = shape_of(x.d);
    if (h.M == 0) return;
    switch (way_of(5, all)) {
    case PLAIN: ctn__bnorm_grad_apply_plain(g, x, p, q, r, gx); return;
    case ANY: ctn__bnorm_grad_apply_any(g, x, p, q, r, gx); return;
    case FAST: break;
    }
    ctn__bnorm_span s = gradient_span(&h, g, x, gx, scratch);
    s.a = spread(&h, p, columns(&h, scratch, 2));
    s.b = spread(&h, q, columns(&h, scratch, 3));
    s.c = spread(&h, r, columns(&h, scratch, 4));
    map_all(&h, &s, gradient_flags(g), kernels()->grad_apply);
}
