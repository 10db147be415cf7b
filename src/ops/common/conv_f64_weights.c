/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_weights in f64. A row of a tile is a channel of y, a vector consecutive channels of x
 * through one tap, and the sum runs over positions. So the copy of x has the channels last, and
 * that of y consists of panels of channels that are last in them.
 */
#include "ops/common/conv_f64.h"

typedef ctn__conv_f64_problem problem;

enum {
    POSITIONS = 128, /* of one call of a tile: what they read stays in the L1 cache */
    ENOUGH = 1024    /* positions in a chunk of samples */
};

typedef struct {
    int64_t length[3];    /* of an image of x with its padding, as far as y reads it */
    int64_t C, O;         /* channels, rounded up to whole vectors and tiles */
    int64_t to_c;         /* elements from one position of x to the next */
    int64_t chunk;        /* samples */
    double *x, *y, *sums; /* sums: NULL if one chunk has all samples */
    int64_t *at;          /* where each position of y begins in the copy of x */
} layout;

/* The distance of positions with n channels: an odd number of cache lines, so that many positions
 * fit into a cache. */
static int64_t apart(int64_t n)
{
    return (ctn__round_up(n, 8) / 8 | 1) * 8;
}

static int64_t vectors_of(const problem *p, const layout *l)
{
    return p->taps * l->C / p->tile.lanes;
}

static int64_t groups_of(const problem *p, const layout *l)
{
    return (vectors_of(p, l) + p->tile.vectors - 1) / p->tile.vectors;
}

static layout plan(const problem *p, ctn__conv_f64_room *room)
{
    layout l = {.C = ctn__round_up(p->Ig, p->tile.lanes), .O = ctn__round_up(p->Og, p->tile.rows)};
    l.to_c = apart(l.C);
    for (int i = 0; i < 3; i++)
        l.length[i] = (p->y[i] - 1) * p->stride[i] + (p->w[i] - 1) * p->dilation[i] + 1;
    l.chunk = ENOUGH / p->image[1];
    l.chunk = l.chunk < 1 ? 1 : l.chunk > p->N ? p->N : l.chunk;
    l.x = ctn__conv_f64_take(room, l.chunk * l.length[0] * l.length[1] * l.length[2] * l.to_c);
    l.y = ctn__conv_f64_take(room, l.chunk * p->image[1] * l.O);
    l.at = ctn__conv_f64_take(room, l.chunk * p->image[1]);
    if (l.chunk < p->N) l.sums = ctn__conv_f64_take(room, groups_of(p, &l) * p->cols * l.O);
    return l;
}

static void copy_x(const problem *p, const layout *l, const double *x, int64_t samples)
{
    const int64_t rows = p->x[0] * p->x[1], to_row = l->length[2] * l->to_c;
    int64_t n = l->length[2] - p->pad[2];
    if (n > p->x[2]) n = p->x[2];
    if (n <= 0) return;
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t i = 0; i < samples * rows; i++) {
        const int64_t z = i % rows / p->x[1] + p->pad[0], y = i % p->x[1] + p->pad[1];
        if (z >= l->length[0] || y >= l->length[1]) continue;
        const double *from = x + i / rows * p->G * p->Ig * p->image[0] + i % rows * p->x[2];
        double *to = l->x + ((i / rows * l->length[0] + z) * l->length[1] + y) * to_row;
        ctn__turn_f64(to + p->pad[2] * l->to_c, l->to_c, from, p->Ig, p->image[0], n);
    }
}

static void copy_y(const problem *p, const layout *l, const double *y, int64_t samples)
{
    const int64_t lines = p->y[0] * p->y[1], rows = p->tile.rows, panels = l->O / rows;
    const int64_t positions = l->chunk * p->image[1];
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t i = 0; i < samples * panels * lines; i++) {
        const int64_t n = i / lines / panels, o = i / lines % panels * rows, line = i % lines;
        const int64_t have = p->Og - o < rows ? p->Og - o : rows;
        ctn__turn_f64(l->y + o * positions + (n * p->image[1] + line * p->y[2]) * rows, rows,
                      y + (n * p->G * p->Og + o) * p->image[1] + line * p->y[2], have, p->image[1],
                      p->y[2]);
    }
}

static void find_positions(const problem *p, const layout *l)
{
    for (int64_t i = 0; i < l->chunk * p->image[1]; i++) {
        const int64_t z = i / p->y[2] / p->y[1] % p->y[0], y = i / p->y[2] % p->y[1];
        const int64_t row =
            (i / p->image[1] * l->length[0] + z * p->stride[0]) * l->length[1] + y * p->stride[1];
        l->at[i] = (row * l->length[2] + i % p->y[2] * p->stride[2]) * l->to_c;
    }
}

/* Vector v: which tap t, and which channels of x from c on. The taps of the same channels follow
 * each other, as in w. */
static void locate(const problem *p, int64_t v, int64_t *c, int64_t *t)
{
    *c = v / p->taps * p->tile.lanes;
    *t = v % p->taps;
}

/* Where the vectors of group g begin; missing ones repeat the last. */
static void find_vectors(const problem *p, const layout *l, int64_t g, const double **x)
{
    const int64_t last = vectors_of(p, l) - 1;
    for (int64_t i = 0; i < p->tile.vectors; i++) {
        const int64_t v = g * p->tile.vectors + i;
        int64_t c, t, at = 0;
        locate(p, v < last ? v : last, &c, &t);
        const int64_t k[3] = {t / p->w[2] / p->w[1], t / p->w[2] % p->w[1], t % p->w[2]};
        for (int d = 0; d < 3; d++) at = at * l->length[d] + k[d] * p->dilation[d];
        x[i] = l->x + at * l->to_c + c;
    }
}

/* Adds the products of positions [q, q + n) of the chunk to a tile of channels from o on. */
static void add_positions(const problem *p, const layout *l, const double *const *x, int64_t o,
                          int64_t q, int64_t n, double *tile, bool add)
{
    const double *y = l->y + o * l->chunk * p->image[1] + q * p->tile.rows;
    p->tile.run(n, y, p->tile.rows, x, l->at + q, tile, p->cols, add);
}

/* w[o][c][tap] of the channels from o on and of the vectors of group g. */
static void store(const problem *p, const layout *l, const double *tile, int64_t g, int64_t o,
                  double *w)
{
    const int64_t lanes = p->tile.lanes, vectors = vectors_of(p, l);
    for (int64_t i = 0; i < p->tile.rows && o + i < p->Og; i++)
        for (int64_t k = 0; k < p->tile.vectors && g * p->tile.vectors + k < vectors; k++) {
            const double *from = tile + i * p->cols + k * lanes;
            int64_t c, t;
            locate(p, g * p->tile.vectors + k, &c, &t);
            double *to = w + ((o + i) * p->Ig + c) * p->taps + t;
            const int64_t have = p->Ig - c < lanes ? p->Ig - c : lanes;
            for (int64_t j = 0; j < have; j++) to[j * p->taps] = from[j];
        }
}

/* All positions are in one chunk: a tile is summed up at once. */
static void add_at_once(const problem *p, const layout *l, double *w)
{
    const int64_t positions = p->N * p->image[1], groups = groups_of(p, l);
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t g = 0; g < groups; g++) {
        double tile[CTN__F64_ROWS * CTN__F64_COLS];
        const double *x[CTN__F64_VECTORS];
        find_vectors(p, l, g, x);
        for (int64_t o = 0; o < l->O; o += p->tile.rows) {
            for (int64_t q = 0; q < positions; q += POSITIONS)
                add_positions(p, l, x, o, q, positions - q < POSITIONS ? positions - q : POSITIONS,
                              tile, q > 0);
            store(p, l, tile, g, o, w);
        }
    }
}

/* Adds the products of a chunk to the sums of groups [begin, end). */
static void add_groups(const problem *p, const layout *l, int64_t samples, int64_t begin,
                       int64_t end, bool first)
{
    const int64_t positions = samples * p->image[1];
    for (int64_t q = 0; q < positions; q += POSITIONS) {
        const int64_t n = positions - q < POSITIONS ? positions - q : POSITIONS;
        for (int64_t g = begin; g < end; g++) {
            const double *x[CTN__F64_VECTORS];
            find_vectors(p, l, g, x);
            for (int64_t o = 0; o < l->O; o += p->tile.rows)
                add_positions(p, l, x, o, q, n, l->sums + (g * l->O + o) * p->cols,
                              !first || q > 0);
        }
    }
}

static void add_chunk(const problem *p, const layout *l, int64_t samples, bool first)
{
    const int64_t groups = groups_of(p, l);
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int i = 0; i < p->threads; i++)
        add_groups(p, l, samples, groups * i / p->threads, groups * (i + 1) / p->threads, first);
}

static void store_sums(const problem *p, const layout *l, double *w)
{
    const int64_t groups = groups_of(p, l);
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t o = 0; o < l->O; o += p->tile.rows)
        for (int64_t g = 0; g < groups; g++)
            store(p, l, l->sums + (g * l->O + o) * p->cols, g, o, w);
}

void ctn__conv_f64_weights(const problem *p, const double *x, const double *y, double *w,
                           ctn__conv_f64_room *room)
{
    const int64_t elements = p->Og * p->Ig * p->taps;
    if (elements == 0) return;
    if (p->N * p->image[1] == 0) {
        if (w) memset(w, 0, (size_t)(p->G * elements) * sizeof *w);
        return;
    }
    const layout l = plan(p, room);
    if (!room->base) return;
    /* Borders and channels that round up stay zero. */
    memset(l.x, 0, (size_t)(l.y - l.x) * sizeof *l.x);
    if (l.O > p->Og) memset(l.y, 0, (size_t)(l.chunk * p->image[1] * l.O) * sizeof *l.y);
    find_positions(p, &l);
    for (int64_t g = 0; g < p->G; g++) {
        for (int64_t n = 0; n < p->N; n += l.chunk) {
            const int64_t samples = p->N - n < l.chunk ? p->N - n : l.chunk;
            copy_x(p, &l, x + (n * p->G + g) * p->Ig * p->image[0], samples);
            copy_y(p, &l, y + (n * p->G + g) * p->Og * p->image[1], samples);
            if (l.sums) add_chunk(p, &l, samples, n == 0);
            else add_at_once(p, &l, w + g * elements);
        }
        if (l.sums) store_sums(p, &l, w + g * elements);
    }
}
