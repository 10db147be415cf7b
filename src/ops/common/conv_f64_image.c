/* SPDX-License-Identifier: Apache-2.0
 *
 * conv and conv_data in f64. A row of a tile is a channel of the result, a vector consecutive
 * positions of it, and the sum runs over channels and taps of what is read.
 *
 * conv with a stride: the copy has the elements of each residue of the last coordinate together, so
 * that vectors are contiguous.
 *
 * conv_data with a stride: the positions of x of one residue in each dimension read the same taps
 * of y, at consecutive positions; so each set of residues is a pass of its own.
 */
#include <omp.h>

#include "ops/common/conv_f64.h"

typedef ctn__conv_f64_problem problem;

enum {
    DEPTH = 144, /* steps of a sum in one call of a tile: what they read stays in the L1 cache */
    GROUPS = 16, /* in a block of work; they share weights that stay in the L2 cache */
    ENOUGH = 96  /* vectors in a chunk of samples */
};

/* The copy of the image: zeros before it, its lengths, and into how many residues the last
 * coordinate is divided. */
typedef struct {
    int64_t from[3], low[3], length[3], residues;
    int64_t row, channel, samples; /* elements of a row and of a channel, samples of a chunk */
    int64_t channels;
    double *at;
} copy;

/* The positions begin + step * q with q < count, which all read the same taps. */
typedef struct {
    int64_t begin[3], step[3], count[3];
    int64_t across;     /* vectors of a row of positions */
    int64_t K;          /* channels x taps of this pass */
    int64_t *at;        /* K offsets in the copy */
    const double *pack; /* panels of weights, each K x rows of a tile */
} pass;

/* Number of taps of dimension i whose positions have residue r, or all for conv. For tap k of
 * conv_data, position r + step * q of x reads y at q + shift. */
static bool takes(const problem *p, int i, int64_t r, int64_t k, int64_t *shift)
{
    const int64_t v = r + p->pad[i] - k * p->dilation[i], s = p->stride[i];
    if (v % s != 0) return false;
    *shift = v / s;
    return true;
}

/* The distance of channels with n elements. A tile reads a few cache lines of many channels: their
 * distance modulo 1 kB is 5 lines, so that they do not displace each other. */
static int64_t apart(int64_t n)
{
    return n < 1024 ? (ctn__round_up(n, 8) / 8 | 1) * 8 : ctn__round_up(n - 40, 128) + 40;
}

static copy plan_copy(const problem *p)
{
    const bool data = p->kind == CTN__CONV_DATA;
    const int64_t lanes = p->tile.lanes;
    copy c = {.channels = data ? p->Og : p->Ig, .residues = data ? 1 : p->stride[2]};
    for (int i = 0; i < 3; i++) {
        const int64_t reach = (p->w[i] - 1) * p->dilation[i], s = p->stride[i];
        c.from[i] = data ? p->y[i] : p->x[i];
        c.low[i] = data ? 0 : p->pad[i];
        int64_t most = i < 2 ? reach : reach / s, count = data ? (p->x[i] + s - 1) / s : p->y[i];
        if (data) {
            most = 0;
            for (int64_t r = 0; r < s && r < p->x[i]; r++)
                for (int64_t k = 0; k < p->w[i]; k++) {
                    int64_t shift = 0;
                    if (!takes(p, i, r, k, &shift)) continue;
                    if (-shift > c.low[i]) c.low[i] = -shift;
                    if (shift > most) most = shift;
                }
            most += c.low[i];
        }
        if (i < 2) c.length[i] = (count - 1) * (data ? 1 : s) + most + 1;
        else c.length[i] = most + ctn__round_up(count, lanes);
    }
    c.row = c.residues * c.length[2];
    c.channel = apart(c.length[0] * c.length[1] * c.row);
    return c;
}

/* Copies channel `from` into the copy; what lies outside of it is not read. */
static void copy_channel(const copy *c, const double *from, double *to)
{
    for (int64_t z = 0; z < c->from[0] && z + c->low[0] < c->length[0]; z++)
        for (int64_t y = 0; y < c->from[1] && y + c->low[1] < c->length[1]; y++) {
            const double *row = from + (z * c->from[1] + y) * c->from[2];
            double *at = to + ((z + c->low[0]) * c->length[1] + y + c->low[1]) * c->row;
            int64_t n = c->row - c->low[2];
            if (n > c->from[2]) n = c->from[2];
            if (n <= 0) continue;
            if (c->residues == 1) {
                memcpy(at + c->low[2], row, (size_t)n * sizeof *at);
                continue;
            }
            for (int64_t r = 0; r < c->residues; r++) {
                const int64_t first = ((r - c->low[2]) % c->residues + c->residues) % c->residues;
                double *to_r = at + r * c->length[2] + (first + c->low[2]) / c->residues;
                for (int64_t x = first, k = 0; x < n; x += c->residues, k++) to_r[k] = row[x];
            }
        }
}

/* Offsets and panels of the pass that computes the positions with residues r. */
static pass plan_pass(const problem *p, const copy *c, const int64_t *r, ctn__conv_f64_room *room)
{
    const bool data = p->kind == CTN__CONV_DATA;
    const int64_t out = data ? p->Ig : p->Og;
    pass s = {0};
    int64_t taps = 1;
    for (int i = 0; i < 3; i++) {
        int64_t n = p->w[i], shift;
        s.begin[i] = r[i];
        s.step[i] = data ? p->stride[i] : 1;
        s.count[i] = data ? (p->x[i] - r[i] + s.step[i] - 1) / s.step[i] : p->y[i];
        for (int64_t k = 0; data && k < p->w[i]; k++) n -= !takes(p, i, r[i], k, &shift);
        taps *= n;
    }
    s.across = (s.count[2] + p->tile.lanes - 1) / p->tile.lanes;
    s.K = c->channels * taps;
    s.at = ctn__conv_f64_take(room, s.K + 1);
    s.pack = ctn__conv_f64_take(room, s.K * ctn__round_up(out, p->tile.rows));
    return s;
}

/* The taps of a pass: their offsets in the copy and their numbers in the weights. */
static int64_t find_taps(const problem *p, const copy *c, const pass *s, int64_t *at, int64_t *tap)
{
    int64_t n = 0, k[3];
    for (k[0] = 0; k[0] < p->w[0]; k[0]++)
        for (k[1] = 0; k[1] < p->w[1]; k[1]++)
            for (k[2] = 0; k[2] < p->w[2]; k[2]++) {
                int64_t o[3] = {0};
                bool reads = true;
                for (int i = 0; i < 3; i++) {
                    if (p->kind == CTN__CONV_DATA) reads &= takes(p, i, s->begin[i], k[i], &o[i]);
                    else o[i] = k[i] * p->dilation[i];
                }
                if (!reads) continue;
                if (p->kind == CTN__CONV_DATA)
                    for (int i = 0; i < 3; i++) o[i] += c->low[i];
                tap[n] = (k[0] * p->w[1] + k[1]) * p->w[2] + k[2];
                at[n++] = (o[0] * c->length[1] + o[1]) * c->row +
                          o[2] % c->residues * c->length[2] + o[2] / c->residues;
            }
    return n;
}

/* Fills the offsets and packs the weights of one group, which begin at w, in panels. taps: scratch
 * for 2 x taps numbers. */
static void fill_pass(const problem *p, const copy *c, const pass *s, const double *w,
                      int64_t *taps)
{
    const bool data = p->kind == CTN__CONV_DATA;
    const int64_t out = data ? p->Ig : p->Og, rows = p->tile.rows;
    const int64_t of_out = data ? p->taps : p->Ig * p->taps;
    const int64_t of_in = data ? p->Ig * p->taps : p->taps;
    int64_t *at = taps, *tap = taps + p->taps;
    const int64_t n = find_taps(p, c, s, at, tap);
    for (int64_t i = 0; i < c->channels; i++)
        for (int64_t t = 0; t < n; t++) s->at[i * n + t] = i * c->channel + at[t];
    double *pack = (double *)s->pack;
#pragma omp parallel for schedule(static) num_threads(p->threads) if (out * s->K > CTN__GRAIN)
    for (int64_t o = 0; o < out; o += rows) {
        double *to = pack + o * s->K;
        const double *from = w + o * of_out;
        const int64_t have = out - o < rows ? out - o : rows;
        if (have < rows) memset(to, 0, (size_t)(rows * s->K) * sizeof *to);
        if (!data) {
            ctn__turn_f64(to, rows, from, have, of_out, s->K);
            continue;
        }
        for (int64_t in = 0; in < c->channels; in++)
            for (int64_t t = 0; t < n; t++, to += rows)
                for (int64_t i = 0; i < have; i++) to[i] = from[in * of_in + i * of_out + tap[t]];
    }
}

/* Where the channels of one group begin in the result, and what is added to it. */
typedef struct {
    double *at;
    int64_t sample; /* elements from one sample to the next */
    const double *bias;
    bool relu;
} result;

/* Position of vector v of the chunk. */
static void locate(const pass *s, int64_t v, int64_t *n, int64_t q[3])
{
    q[2] = v % s->across;
    v /= s->across;
    q[1] = v % s->count[1];
    v /= s->count[1];
    q[0] = v % s->count[0];
    *n = v / s->count[0];
}

/* Stores vectors [begin, end) of the chunk. Channel after channel, because consecutive vectors are
 * mostly neighbours in memory. */
static void store(const problem *p, const pass *s, const result *y, int64_t first_sample,
                  int64_t begin, int64_t end, const double *tiles)
{
    const bool data = p->kind == CTN__CONV_DATA;
    const int64_t *size = data ? p->x : p->y, image = p->image[data ? 0 : 1], rows = p->tile.rows;
    const int64_t out = data ? p->Ig : p->Og, panels = (out + rows - 1) / rows;
    const int64_t nv = p->tile.vectors, step = s->step[2];
    int64_t at[GROUPS * CTN__F64_VECTORS], have[GROUPS * CTN__F64_VECTORS];
    for (int64_t v = begin; v < end; v++) {
        int64_t n, q[3], to = 0;
        locate(s, v, &n, q);
        q[2] *= p->tile.lanes;
        for (int i = 0; i < 3; i++) to = to * size[i] + s->begin[i] + s->step[i] * q[i];
        at[v - begin] = (first_sample + n) * y->sample + to;
        have[v - begin] = s->count[2] - q[2] < p->tile.lanes ? s->count[2] - q[2] : p->tile.lanes;
    }
    for (int64_t o = 0; o < out; o++) {
        const double *panel = tiles + (o / rows * rows + o % rows) * p->cols;
        const double add = y->bias ? y->bias[o] : 0;
        for (int64_t v = 0; v < end - begin; v++) {
            const double *from = panel + v / nv * panels * rows * p->cols + v % nv * p->tile.lanes;
            double *to = y->at + at[v] + o * image;
            if (step == 1 && !y->relu)
                for (int64_t l = 0; l < have[v]; l++) to[l] = from[l] + add;
            else
                for (int64_t l = 0; l < have[v]; l++) {
                    const double sum = from[l] + add;
                    to[l * step] = y->relu && sum < 0 ? 0 : sum;
                }
        }
    }
}

/* Computes vectors [begin, end) of the chunk; tiles: scratch for their results. */
static void run_block(const problem *p, const copy *c, const pass *s, const result *y,
                      int64_t first_sample, int64_t begin, int64_t end, double *tiles)
{
    const bool data = p->kind == CTN__CONV_DATA;
    const int64_t rows = p->tile.rows, size = rows * p->cols, nv = p->tile.vectors;
    const int64_t panels = ((data ? p->Ig : p->Og) + rows - 1) / rows;
    const int64_t groups = (end - begin + nv - 1) / nv;
    const double *x[GROUPS * CTN__F64_VECTORS] = {NULL};
    for (int64_t v = begin; v < begin + groups * nv; v++) {
        int64_t n, q[3];
        locate(s, v < end ? v : end - 1, &n, q);
        for (int i = 0; i < 2 && !data; i++) q[i] *= p->stride[i];
        x[v - begin] = c->at + n * c->channels * c->channel +
                       (q[0] * c->length[1] + q[1]) * c->row + q[2] * p->tile.lanes;
    }
    if (s->K == 0) memset(tiles, 0, (size_t)(groups * panels * size) * sizeof *tiles);
    for (int64_t k = 0; k < s->K; k += DEPTH) {
        const int64_t depth = s->K - k < DEPTH ? s->K - k : DEPTH;
        for (int64_t g = 0; g < groups; g++)
            for (int64_t o = 0; o < panels; o++)
                p->tile.run(depth, s->pack + (o * s->K + k) * rows, rows, x + g * nv, s->at + k,
                            tiles + (g * panels + o) * size, p->cols, k > 0);
    }
    store(p, s, y, first_sample, begin, end, tiles);
}

/* Computes one pass over `samples` samples of the copy. */
static void run_pass(const problem *p, const copy *c, const pass *s, const result *y,
                     int64_t first_sample, int64_t samples, double *tiles, int64_t per_thread)
{
    const int64_t vectors = samples * s->count[0] * s->count[1] * s->across;
    const int64_t groups = (vectors + p->tile.vectors - 1) / p->tile.vectors;
    int64_t width = (groups + p->threads - 1) / p->threads;
    if (width > GROUPS) width = GROUPS;
    width *= p->tile.vectors;
#pragma omp parallel for schedule(dynamic) num_threads(p->threads)
    for (int64_t v = 0; v < vectors; v += width)
        run_block(p, c, s, y, first_sample, v, v + width < vectors ? v + width : vectors,
                  tiles + omp_get_thread_num() * per_thread);
}

static int64_t samples_of_chunk(const problem *p)
{
    const int64_t *size = p->kind == CTN__CONV_DATA ? p->x : p->y;
    const int64_t vectors = size[0] * size[1] * ((size[2] + p->tile.lanes - 1) / p->tile.lanes);
    const int64_t n = vectors > 0 ? ENOUGH / vectors : 1;
    return n < 1 ? 1 : n > p->N ? p->N : n;
}

/* The residues of pass i; false if it has no positions. */
static bool residues(const problem *p, int64_t i, int64_t r[3])
{
    const bool data = p->kind == CTN__CONV_DATA;
    for (int d = 2; d >= 0; d--) {
        const int64_t s = data ? p->stride[d] : 1;
        r[d] = i % s;
        i /= s;
        if (r[d] >= (data ? p->x[d] : p->y[d])) return false;
    }
    return true;
}

static void copy_samples(const problem *p, const copy *c, const double *from, int64_t samples)
{
    const bool data = p->kind == CTN__CONV_DATA;
    const int64_t image = p->image[data ? 1 : 0], sample = p->G * c->channels * image;
#pragma omp parallel for schedule(static) num_threads(p->threads)
    for (int64_t i = 0; i < samples * c->channels; i++)
        copy_channel(c, from + i / c->channels * sample + i % c->channels * image,
                     c->at + i * c->channel);
}

void ctn__conv_f64_image(const problem *p, const double *from, const double *w, const double *bias,
                         bool relu, double *to, ctn__conv_f64_room *room)
{
    const bool data = p->kind == CTN__CONV_DATA;
    const int64_t in = p->image[data ? 1 : 0], image = p->image[data ? 0 : 1];
    const int64_t out = data ? p->Ig : p->Og, chunk = samples_of_chunk(p);
    const int64_t passes = data ? p->stride[0] * p->stride[1] * p->stride[2] : 1;
    const int64_t per_thread = GROUPS * ctn__round_up(out, p->tile.rows) * p->cols;
    if (p->N * image * out == 0) return;
    copy c = plan_copy(p);
    const int64_t all = chunk * c.channels * c.channel;
    int64_t *taps = ctn__conv_f64_take(room, 2 * p->taps);
    double *tiles = ctn__conv_f64_take(room, p->threads * per_thread);
    c.at = ctn__conv_f64_take(room, all);
    const ctn__conv_f64_room rest = *room;
    int64_t r[3];
    if (c.at) memset(c.at, 0, (size_t)all * sizeof *c.at); /* the border stays zero */
    for (int64_t g = 0; g < p->G; g++) {
        *room = rest;
        for (int64_t i = 0; i < passes; i++) {
            if (!residues(p, i, r)) continue;
            const pass s = plan_pass(p, &c, r, room);
            if (c.at) fill_pass(p, &c, &s, w + g * p->Og * p->Ig * p->taps, taps);
        }
        if (!c.at) return;
        const result y = {.at = to + g * out * image,
                          .sample = p->G * out * image,
                          .bias = bias ? bias + g * out : NULL,
                          .relu = relu};
        for (int64_t n = 0; n < p->N; n += chunk) {
            const int64_t samples = p->N - n < chunk ? p->N - n : chunk;
            copy_samples(p, &c, from + (n * p->G + g) * c.channels * in, samples);
            *room = rest;
            for (int64_t i = 0; i < passes; i++) {
                if (!residues(p, i, r)) continue;
                const pass s = plan_pass(p, &c, r, room);
                run_pass(p, &c, &s, &y, n, samples, tiles, per_thread);
            }
        }
    }
}
