/* SPDX-License-Identifier: Apache-2.0
 *
 * sum over axes (no axes: all). Gradient: gy broadcast back. mean.c uses the same kernels. Fusion
 * makes sums of squares (plan/fuse/sum_squares.c).
 *
 * The order of additions depends on shape and strides alone, never on the thread count; in f64,
 * where operands are row-major, on the shape alone. The terms of every result are cut into blocks
 * of fixed size. Each block is added in a fixed number of lanes, with short f32 chains collected in
 * double. The totals of the blocks are kept in scratch and added in order.
 */
#include "ops/common/reduce.h"

/* Rows: elements of a block, elements added before they are collected in double, lanes.
 * Columns: columns of a tile, rows added at a time, rows of a block. */
enum { BLOCK = 4096, CHUNK = 1024, LANES = 32, COLS = 256, ROWS = 128, ROW_BLOCK = 1024 };
enum { ROOM = 16 }; /* results of short rows that are stored together */

/* ---- kernels --------------------------------------------------------------------------------- */

/* The terms of one result are `lines` lines of s.last elements. A block is a part of a line or
 * several lines. */
typedef struct {
    ctn__reduce s;
    int64_t lines, cuts; /* lines of a result, parts of a line */
    int64_t group;       /* lines of a block; 1 if lines are cut */
    int64_t blocks;      /* of one result */
} rows_plan;

static rows_plan plan_rows(const ctn__reduce *s)
{
    rows_plan p = {.s = *s, .lines = s->last > 0 ? s->r / s->last : 0};
    p.cuts = s->last > BLOCK ? (s->last + BLOCK - 1) / BLOCK : 1;
    p.group = s->last > 0 && s->last < BLOCK ? BLOCK / s->last : 1;
    p.blocks = p.cuts > 1 ? p.lines * p.cuts : (p.lines + p.group - 1) / p.group;
    return p;
}

#define SELF(v) (v)
#define SQUARE(v) ((v) * (v))

#define T float
#define TERM SELF
#define NAME(x) x##_f32
#include "ops/common/sum_body.h"

#define T float
#define TERM SQUARE
#define NAME(x) x##_squares_f32
#include "ops/common/sum_body.h"

#define T double
#define TERM SELF
#define NAME(x) x##_f64
#include "ops/common/sum_body.h"

#define T double
#define TERM SQUARE
#define NAME(x) x##_squares_f64
#include "ops/common/sum_body.h"

/* Those of one type, term and instruction set. */
typedef struct {
    void (*add_blocks)(const rows_plan *p, const void *in, double *sum, int64_t i, int64_t nb);
    void (*add_rows)(double *restrict total, const void *in, const int64_t *off, int64_t nr,
                     int64_t nc);
    void (*store)(void *out, int64_t i, const double *sum, int64_t n, double divisor);
} kernels;
#define KERNELS(name) {add_blocks_##name[isa], add_rows_##name[isa], store_##name[isa]}

static kernels kernels_of(const ctn__reduce *s, const ctn_run_args *a)
{
    const ctn__isa isa = ctn__isa_in_use();
    const bool squares = a->attr[CTN__R_KIND] == CTN__R_SQUARES;
    const kernels of[2][2] = {{KERNELS(f64), KERNELS(squares_f64)},
                              {KERNELS(f32), KERNELS(squares_f32)}};
    return of[s->kept.dtype == CTN_F32][squares];
}

/* ---- rows: the reduced elements are contiguous in memory, or none are ------------------------ */

/* ROOM results at a time, unless they are long enough for a thread of their own. */
static void sum_rows(const ctn_run_args *a, const ctn__reduce *s, double divisor)
{
    const rows_plan p = plan_rows(s);
    const kernels k = kernels_of(s, a);
    double *part = a->scratch;
    const int64_t width = s->r < CHUNK ? ROOM : 1, tiles = (s->n + width - 1) / width;
    const int64_t total = s->n * p.blocks;
    if (p.blocks > 1) {
#pragma omp parallel for schedule(static) if (s->n * s->r > CTN__GRAIN)
        for (int64_t i = 0; i < total; i++) k.add_blocks(&p, a->in[0], part + i, i, 1);
    }
#pragma omp parallel for schedule(static) if (s->n * s->r > CTN__GRAIN && tiles > 1)
    for (int64_t t = 0; t < tiles; t++) {
        double sum[ROOM] = {0};
        const int64_t i = t * width, n = s->n - i < width ? s->n - i : width;
        if (p.blocks == 1) k.add_blocks(&p, a->in[0], sum, i, n);
        else
            for (int64_t c = 0; c < n; c++)
                for (int64_t b = 0; b < p.blocks; b++) sum[c] += part[(i + c) * p.blocks + b];
        k.store(a->out[0], i, sum, n, divisor);
    }
}

/* ---- columns: the kept elements are contiguous in memory ------------------------------------- */

/* If there are only a few dense columns, `fold` rows are treated as one wide row, so that the
 * inner loop is long. Rows here are those wide rows; the last one may be shorter. */
typedef struct {
    ctn__reduce s;
    int64_t fold, wide;  /* rows of a wide row, and its elements */
    int64_t rows, tiles; /* wide rows, tiles of columns */
    int64_t blocks;      /* of rows */
} columns_plan;

static columns_plan plan_columns(const ctn__reduce *s)
{
    columns_plan p = {.s = *s, .fold = 1};
    if (s->red.ndim == 1 && s->last_step == s->C && s->C <= COLS / 4) p.fold = COLS / s->C;
    if (p.fold > s->r) p.fold = s->r;
    p.wide = p.fold * s->C;
    p.rows = (s->r + p.fold - 1) / p.fold;
    p.tiles = (p.wide + COLS - 1) / COLS;
    p.blocks = (p.rows + ROW_BLOCK - 1) / ROW_BLOCK;
    return p;
}

/* total[nc] = the tile's sums over one block of rows; x is its first column. */
static void tile_sum(const columns_plan *p, const kernels *k, double *total, const char *x,
                     int64_t block, int64_t nc)
{
    const ctn__reduce *s = &p->s;
    int64_t r0 = block * ROW_BLOCK, r1 = r0 + ROW_BLOCK < p->rows ? r0 + ROW_BLOCK : p->rows;
    int64_t whole = s->r / p->fold, rest = s->r % p->fold; /* of the last wide row */
    memset(total, 0, (size_t)nc * sizeof *total);
    for (int64_t r = r0; r < r1; r += ROWS) {
        int64_t off[ROWS], n = 0, end = r + ROWS < r1 ? r + ROWS : r1;
        for (int64_t i = r; i < end && i < whole; i++)
            off[n++] = ctn__reduce_offset(&s->red, s->red.ndim, i * p->fold);
        if (n > 0) k->add_rows(total, x, off, n, nc);
    }
    if (r1 == p->rows && rest > 0) {
        int64_t off = ctn__reduce_offset(&s->red, s->red.ndim, whole * p->fold);
        k->add_rows(total, x, &off, 1, rest * s->C);
    }
}

static int64_t tile_width(const columns_plan *p, int64_t tile)
{
    int64_t left = p->wide - tile * COLS;
    return left < COLS ? left : COLS;
}

/* Fold the sums of one tile and write its results. */
static void finish_tile(const columns_plan *p, const kernels *k, double *sum, void *y,
                        int64_t group, double divisor)
{
    const ctn__reduce *s = &p->s;
    int64_t tile = group % p->tiles, c0 = tile * COLS, nc = tile_width(p, tile);
    for (int64_t f = 1; f < p->fold; f++)
        for (int64_t c = 0; c < s->C; c++) sum[c] += sum[f * s->C + c];
    if (p->fold > 1) nc = s->C;
    k->store(y, group / p->tiles * s->C + c0, sum, nc, divisor);
}

static void sum_columns(const ctn_run_args *a, const ctn__reduce *s, double divisor)
{
    const columns_plan p = plan_columns(s);
    const kernels k = kernels_of(s, a);
    double *part = a->scratch; /* (outer, tiles, blocks, COLS); unused with one block */
    const int64_t es = (int64_t)ctn_dtype_size(s->kept.dtype);
    const int64_t groups = s->outer * p.tiles, units = groups * p.blocks;
#pragma omp parallel for schedule(static) if (s->n * s->r > CTN__GRAIN)
    for (int64_t u = 0; u < units; u++) {
        double own[COLS], *total = p.blocks > 1 ? part + u * COLS : own;
        int64_t block = u % p.blocks, group = u / p.blocks, tile = group % p.tiles;
        int64_t base =
            ctn__reduce_offset(&s->kept, s->kept.ndim - 1, group / p.tiles) + tile * COLS;
        tile_sum(&p, &k, total, (const char *)a->in[0] + base * es, block, tile_width(&p, tile));
        if (p.blocks == 1) finish_tile(&p, &k, total, a->out[0], group, divisor);
    }
    if (p.blocks == 1) return;
#pragma omp parallel for schedule(static) if (units * COLS > CTN__GRAIN)
    for (int64_t g = 0; g < groups; g++) {
        double *sum = part + g * p.blocks * COLS;
        int64_t nc = tile_width(&p, g % p.tiles);
        for (int64_t b = 1; b < p.blocks; b++)
            for (int64_t c = 0; c < nc; c++) sum[c] += sum[b * COLS + c];
        finish_tile(&p, &k, sum, a->out[0], g, divisor);
    }
}

/* ---- the op ---------------------------------------------------------------------------------- */

ctn_status ctn__sum_run(const ctn_run_args *a)
{
    ctn__reduce s;
    ctn__reduce_split(&s, &a->din[0], a->attr, a->nattr);
    double divisor = a->attr[CTN__R_KIND] == CTN__R_MEAN ? (double)s.r : 1;
    if (s.columns) sum_columns(a, &s, divisor);
    else sum_rows(a, &s, divisor);
    return CTN_OK;
}

ctn_status ctn__sum_prepare(ctn_prepare_args *a)
{
    ctn__reduce s;
    ctn__reduce_in_order(a);
    ctn__reduce_split(&s, &a->din[0], a->attr, a->nattr);
    int64_t n = 0;
    if (s.columns) {
        columns_plan p = plan_columns(&s);
        n = p.blocks > 1 ? s.outer * p.tiles * p.blocks * COLS : 0;
    } else {
        rows_plan p = plan_rows(&s);
        n = p.blocks > 1 ? s.n * p.blocks : 0;
    }
    a->scratch = (size_t)n * sizeof(double);
    a->kernel = s.columns ? "own:columns" : s.last_step == 1 ? "own:rows" : "own:strided";
    return CTN_OK;
}

static ctn_status sum_grad(const ctn_grad_args *a)
{
    ctn_tensor *g = ctn__reduce_kept(a, a->gout[0]);
    return ctn__grad_to(a, 0, ctn_broadcast_to_at(a->at, g, a->in[0]->d.ndim, a->in[0]->d.dim));
}

ctn_op ctn__op_sum = {
    .struct_size = sizeof(ctn_op),
    .name = "sum",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .prec = CTN_PREC_F32,
    .infer = ctn__reduce_infer,
    .grad = sum_grad,
    .prepare = ctn__sum_prepare,
    .run = ctn__sum_run,
};

ctn_tensor *ctn_sum_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes, int keep)
{
    return ctn__reduce_record(at, &ctn__op_sum, CTN__R_SUM, x, naxes, axes, keep);
}
