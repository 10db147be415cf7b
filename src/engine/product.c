/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products in f64, for which oneDNN has only reference loops. This is the usual blocked
 * product: parts of A and B are packed into panels, and a kernel multiplies two panels with the
 * sums of a small tile of C in registers. Every thread computes a rectangle of C. The order in
 * which an element of C is summed does not depend on the number of threads.
 */
#include <omp.h>
#include <string.h>

#include "engine/engine.h"
#include "engine/tile_f64.h"

enum {
    DEPTH = 128,  /* of a block, along the sum; a panel of B stays in the L1 cache */
    ROWS = 192,   /* of a block of A, which stays in the L2 cache */
    COLS = 1536,  /* of a block of B */
    WIDE = 24,    /* columns of a tile with AVX-512 */
    WORTH = 65536 /* with fewer operations, one thread does everything */
};

/* at[l] is where row l of a packed panel begins. */
typedef struct {
    ctn__f64_tile t;
    int cols;
    int64_t at[DEPTH];
} kernel;

static kernel best_kernel(void)
{
    kernel of = {.t = ctn__f64_tile_best()};
    of.cols = of.t.vectors * of.t.lanes;
    for (int l = 0; l < DEPTH; l++) of.at[l] = (int64_t)l * of.cols;
    return of;
}

/* Multiplies panels of depth k and stores the product in c, or adds it. */
static void run_tile(const kernel *f, int64_t k, const double *a, const double *b, double *c,
                     int64_t row, bool add)
{
    const double *x[CTN__F64_VECTORS];
    for (int j = 0; j < f->t.vectors; j++) x[j] = b + (int64_t)j * f->t.lanes;
    f->t.run(k, a, f->t.rows, x, f->at, c, row, add);
}

void ctn__turn_f64(double *to, int64_t width, const double *from, int64_t n, int64_t s, int64_t k)
{
    typedef double pair __attribute__((vector_size(2 * sizeof(double))));
    const int64_t even = n / 2 * 2, steps = k / 8 * 8;
    for (int64_t first = 0; first < steps; first += 8) /* a cache line of each row at a time */
        for (int64_t i = 0; i < even; i += 2)
            for (int64_t l = first; l < first + 8; l += 2) {
                pair p, q;
                memcpy(&p, from + i * s + l, sizeof p);
                memcpy(&q, from + (i + 1) * s + l, sizeof q);
                const pair x = {p[0], q[0]}, y = {p[1], q[1]};
                memcpy(to + l * width + i, &x, sizeof x);
                memcpy(to + (l + 1) * width + i, &y, sizeof y);
            }
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = i < even ? steps : 0; l < k; l++) to[l * width + i] = from[i * s + l];
}

/* Packs panels that are `width` elements across and k along, padded with zeros if fewer than width
 * of the n elements are left. s and along are the strides of x. */
static void pack(double *to, int width, const double *x, int64_t n, int64_t s, int64_t k,
                 int64_t along)
{
    for (int64_t first = 0; first < n; first += width, to += width * k) {
        const int64_t have = n - first < width ? n - first : width;
        const double *from = x + first * s;
        if (have < width) memset(to, 0, (size_t)(width * k) * sizeof *to);
        if (s == 1 && have == WIDE) { /* a copy of constant size is faster */
            for (int64_t l = 0; l < k; l++)
                memcpy(to + l * WIDE, from + l * along, WIDE * sizeof *to);
        } else if (s == 1) {
            for (int64_t l = 0; l < k; l++)
                memcpy(to + l * width, from + l * along, (size_t)have * sizeof *to);
        } else if (along == 1) {
            ctn__turn_f64(to, width, from, have, s, k);
        } else {
            for (int64_t i = 0; i < have; i++)
                for (int64_t l = 0; l < k; l++) to[l * width + i] = from[i * s + l * along];
        }
    }
}

/* One unbatched product, or a rectangle of it. */
typedef struct {
    int64_t m, n, k;
    const double *a, *b;
    double *c;
    int64_t am, ak, bk, bn, cm;
} product;

/* Computes a tile at the edge in a buffer and copies the part that exists. */
static void edge(const kernel *f, int64_t k, const double *a, const double *b, double *c,
                 int64_t row, bool add, int64_t m, int64_t n)
{
    double whole[CTN__F64_ROWS * CTN__F64_COLS];
    run_tile(f, k, a, b, whole, f->cols, false);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * row + j] = whole[i * f->cols + j] + (add ? c[i * row + j] : 0);
}

static void multiply_block(const kernel *f, const product *p, int64_t i0, int64_t rows, int64_t j0,
                           int64_t cols, int64_t k, const double *a, const double *b, bool add)
{
    const int64_t high = f->t.rows;
    for (int64_t j = 0; j < cols; j += f->cols) {
        const int64_t n = cols - j < f->cols ? cols - j : f->cols;
        for (int64_t i = 0; i < rows; i += high) {
            const int64_t m = rows - i < high ? rows - i : high;
            double *c = p->c + (i0 + i) * p->cm + j0 + j;
            if (m == high && n == f->cols) run_tile(f, k, a + i * k, b + j * k, c, p->cm, add);
            else edge(f, k, a + i * k, b + j * k, c, p->cm, add, m, n);
        }
    }
}

static void multiply(const kernel *f, const product *p, double *packed)
{
    double *a = packed, *b = packed + ROWS * DEPTH;
    for (int64_t j = 0; j < p->n; j += COLS) {
        const int64_t cols = p->n - j < COLS ? p->n - j : COLS;
        for (int64_t l = 0; l < p->k; l += DEPTH) {
            const int64_t k = p->k - l < DEPTH ? p->k - l : DEPTH;
            pack(b, f->cols, p->b + l * p->bk + j * p->bn, cols, p->bn, k, p->bk);
            for (int64_t i = 0; i < p->m; i += ROWS) {
                const int64_t rows = p->m - i < ROWS ? p->m - i : ROWS;
                pack(a, f->t.rows, p->a + i * p->am + l * p->ak, rows, p->am, k, p->ak);
                multiply_block(f, p, i, rows, j, cols, k, a, b, l > 0);
            }
        }
    }
}

/* The number of rectangles across and down for `threads` threads; minimises the amount to pack. */
static void cut(const product *p, int threads, int64_t *across, int64_t *down)
{
    double least = 0;
    for (int d = 1; d <= threads; d++) {
        const double edges = (double)p->m / d + (double)p->n * d / threads;
        if (threads % d != 0 || (d > 1 && edges >= least)) continue;
        least = edges;
        *down = d;
        *across = threads / d;
    }
}

size_t ctn__product_f64_scratch(int threads)
{
    return (size_t)threads * (ROWS + COLS) * DEPTH * sizeof(double);
}

static int64_t offset(const ctn_desc *batch, const ctn_desc *view, int64_t i)
{
    int64_t off = 0;
    for (int k = batch->ndim - 1; k >= 0; k--) {
        off += i % batch->dim[k] * view->stride[k];
        i /= batch->dim[k];
    }
    return off;
}

/* Rectangle r of across x down. */
static product rectangle(const product *p, int64_t r, int64_t across, int64_t down, const kernel *f)
{
    const int64_t high = (p->m + down * f->t.rows - 1) / (down * f->t.rows) * f->t.rows;
    const int64_t wide = (p->n + across * f->cols - 1) / (across * f->cols) * f->cols;
    const int64_t i = r / across * high, j = r % across * wide;
    product q = *p;
    q.m = p->m - i < high ? p->m - i : high;
    q.n = p->n - j < wide ? p->n - j : wide;
    q.a += i * p->am;
    q.b += j * p->bn;
    q.c += i * p->cm + j;
    return q;
}

void ctn__product_f64(const ctn_desc *a, const ctn_desc *b, const ctn_desc *c, const double *pa,
                      const double *pb, double *pc, int threads, void *scratch)
{
    const int nd = c->ndim - 2;
    const kernel f = best_kernel();
    product p = {.m = c->dim[nd], .n = c->dim[nd + 1], .k = a->dim[a->ndim - 1]};
    p.am = a->stride[a->ndim - 2];
    p.ak = a->stride[a->ndim - 1];
    p.bk = b->stride[b->ndim - 2];
    p.bn = b->stride[b->ndim - 1];
    p.cm = p.n;
    ctn_desc batch = *c, da = *a, db = *b;
    batch.ndim = nd;
    da.ndim -= 2;
    db.ndim -= 2;
    da = ctn__broadcast_view(&da, &batch);
    db = ctn__broadcast_view(&db, &batch);
    int64_t batches = ctn__count(&batch), across = 1, down = 1;
    if (p.k == 0) memset(pc, 0, (size_t)(batches * p.m * p.n) * sizeof *pc);
    if (p.k == 0 || batches * p.m * p.n == 0) return;
    if (batches < threads) cut(&p, (int)((threads + batches - 1) / batches), &across, &down);
    const int64_t parts = across * down;
    const bool alone = batches * p.m * p.n * p.k < WORTH;
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (!alone)
    for (int64_t u = 0; u < batches * parts; u++) {
        product one = p;
        one.a = pa + offset(&batch, &da, u / parts);
        one.b = pb + offset(&batch, &db, u / parts);
        one.c = pc + u / parts * p.m * p.n;
        const product q = rectangle(&one, u % parts, across, down, &f);
        if (q.m > 0 && q.n > 0)
            multiply(&f, &q,
                     (double *)scratch + (size_t)omp_get_thread_num() * (ROWS + COLS) * DEPTH);
    }
}
