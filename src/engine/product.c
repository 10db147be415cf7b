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
#include "engine/isa.h"

enum {
    DEPTH = 128, /* of a block, along the sum; a panel of B stays in the L1 cache */
    ROWS = 192,  /* of a block of A, which stays in the L2 cache */
    COLS = 1536, /* of a block of B */
    TILE_M = 8,  /* the largest tile of C */
    TILE_N = 64,
    WORTH = 65536 /* with fewer operations, one thread does everything */
};

/* Multiplies panels of depth k and stores the product in c, or adds it. */
typedef void tile_fn(int64_t k, const double *a, const double *b, double *c, int64_t row, bool add);

/* V: elements per vector. The tile has MR rows of NV vectors. */
#define DEFINE_TILE(name, target, V, MR, NV)                                                     \
    target static void name(int64_t k, const double *a, const double *b, double *c, int64_t row, \
                            bool add)                                                            \
    {                                                                                            \
        typedef double vec __attribute__((vector_size((V) * sizeof(double))));                   \
        vec sum[MR][NV];                                                                         \
        memset(sum, 0, sizeof sum);                                                              \
        for (; k > 0; k--, a += (MR), b += (NV) * (V)) {                                         \
            vec x[NV];                                                                           \
            memcpy(x, b, sizeof x);                                                              \
            _Pragma("GCC unroll 8") for (int i = 0; i < (MR); i++)                               \
            {                                                                                    \
                _Pragma("GCC unroll 3") for (int j = 0; j < (NV); j++) sum[i][j] += x[j] * a[i]; \
            }                                                                                    \
        }                                                                                        \
        _Pragma("GCC unroll 8") for (int i = 0; i < (MR); i++)                                   \
        {                                                                                        \
            vec y[NV];                                                                           \
            if (add) {                                                                           \
                memcpy(y, c + i * row, sizeof y);                                                \
                _Pragma("GCC unroll 3") for (int j = 0; j < (NV); j++) sum[i][j] += y[j];        \
            }                                                                                    \
            memcpy(c + i * row, sum[i], sizeof y);                                               \
        }                                                                                        \
    }

#if defined(__x86_64__) && defined(__GNUC__)
DEFINE_TILE(tile_portable, , 2, 4, 2)
DEFINE_TILE(tile_avx2, __attribute__((target("avx2,fma"))), 4, 4, 3)
DEFINE_TILE(tile_avx512, __attribute__((target("avx512f,prefer-vector-width=512"))), 8, 8, 3)
#elif defined(__aarch64__) && defined(__GNUC__)
DEFINE_TILE(tile_portable, , 2, 6, 4) /* NEON: 32 registers */
#define TYPE double
#define VEC svfloat64_t
#define ZERO svdup_f64(0)
#define COUNT svcntd
#define BELOW svwhilelt_b64_s64
#include "engine/sve_tile.h"

CTN__FOR_SVE static int sve_columns(void)
{
    return 2 * (int)svcntd();
}

CTN__FOR_SVE static void tile_sve(int64_t k, const double *a, const double *b, double *c,
                                  int64_t row, bool add)
{
    const int64_t n = 2 * (int64_t)svcntd();
    sve_tile(SVE_ROWS, n, k, a, 1, SVE_ROWS, b, n, c, row, add);
}
#else
DEFINE_TILE(tile_portable, , 2, 4, 2)
#endif

typedef struct {
    tile_fn *fn;
    int rows, cols;
} tile;

static tile best_tile(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    static const tile of[] = {{tile_portable, 4, 4}, {tile_avx2, 4, 12}, {tile_avx512, 8, 24}};
    return of[ctn__isa_in_use()];
#elif defined(__aarch64__) && defined(__GNUC__)
    if (ctn__isa_in_use() == CTN__ISA_SVE) return (tile){tile_sve, SVE_ROWS, sve_columns()};
    return (tile){tile_portable, 6, 8};
#else
    return (tile){tile_portable, 4, 4};
#endif
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
        if (s == 1) {
            for (int64_t l = 0; l < k; l++)
                memcpy(to + l * width, from + l * along, (size_t)have * sizeof *to);
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
static void edge(const tile *t, int64_t k, const double *a, const double *b, double *c, int64_t row,
                 bool add, int64_t m, int64_t n)
{
    double whole[TILE_M * TILE_N];
    t->fn(k, a, b, whole, t->cols, false);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            c[i * row + j] = whole[i * t->cols + j] + (add ? c[i * row + j] : 0);
}

static void multiply_block(const tile *t, const product *p, int64_t i0, int64_t rows, int64_t j0,
                           int64_t cols, int64_t k, const double *a, const double *b, bool add)
{
    for (int64_t j = 0; j < cols; j += t->cols) {
        const int64_t n = cols - j < t->cols ? cols - j : t->cols;
        for (int64_t i = 0; i < rows; i += t->rows) {
            const int64_t m = rows - i < t->rows ? rows - i : t->rows;
            double *c = p->c + (i0 + i) * p->cm + j0 + j;
            if (m == t->rows && n == t->cols) t->fn(k, a + i * k, b + j * k, c, p->cm, add);
            else edge(t, k, a + i * k, b + j * k, c, p->cm, add, m, n);
        }
    }
}

static void multiply(const tile *t, const product *p, double *packed)
{
    double *a = packed, *b = packed + ROWS * DEPTH;
    for (int64_t j = 0; j < p->n; j += COLS) {
        const int64_t cols = p->n - j < COLS ? p->n - j : COLS;
        for (int64_t l = 0; l < p->k; l += DEPTH) {
            const int64_t k = p->k - l < DEPTH ? p->k - l : DEPTH;
            pack(b, t->cols, p->b + l * p->bk + j * p->bn, cols, p->bn, k, p->bk);
            for (int64_t i = 0; i < p->m; i += ROWS) {
                const int64_t rows = p->m - i < ROWS ? p->m - i : ROWS;
                pack(a, t->rows, p->a + i * p->am + l * p->ak, rows, p->am, k, p->ak);
                multiply_block(t, p, i, rows, j, cols, k, a, b, l > 0);
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
static product rectangle(const product *p, int64_t r, int64_t across, int64_t down, const tile *t)
{
    const int64_t high = (p->m + down * t->rows - 1) / (down * t->rows) * t->rows;
    const int64_t wide = (p->n + across * t->cols - 1) / (across * t->cols) * t->cols;
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
    const tile t = best_tile();
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
        const product q = rectangle(&one, u % parts, across, down, &t);
        if (q.m > 0 && q.n > 0)
            multiply(&t, &q,
                     (double *)scratch + (size_t)omp_get_thread_num() * (ROWS + COLS) * DEPTH);
    }
}
