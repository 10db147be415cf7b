/* SPDX-License-Identifier: Apache-2.0
 *
 * The update of Adafactor for one type, included by adafactor.c with T, ROOT and NAME defined.
 */

/* (gscale g)^2 */
static inline double NAME(square)(T g, double gscale)
{
    const double x = gscale * (double)g;
    return x * x;
}

/* The averages r and c of a matrix of gradients. */
static void NAME(average)(const T *g, T *row, T *col, int64_t R, int64_t C, const rule *k)
{
#pragma omp parallel for num_threads(k->threads) schedule(static) if (k->threads > 1)
    for (int64_t i = 0; i < R; i++) {
        double sum = 0;
        for (int64_t j = 0; j < C; j++) sum += NAME(square)(g[i * C + j], k->gscale);
        row[i] += (T)(k->share * (sum / (double)C - (double)row[i]));
    }
#pragma omp parallel for num_threads(k->threads) schedule(static) if (k->threads > 1)
    for (int64_t b = 0; b < C; b += BLOCK) {
        const int64_t n = C - b < BLOCK ? C - b : BLOCK;
        double sum[BLOCK] = {0};
        for (int64_t i = 0; i < R; i++)
            for (int64_t j = 0; j < n; j++) sum[j] += NAME(square)(g[i * C + b + j], k->gscale);
        for (int64_t j = 0; j < n; j++)
            col[b + j] += (T)(k->share * (sum[j] / (double)R - (double)col[b + j]));
    }
}

static void NAME(matrix)(T *g, T *row, T *col, int64_t R, int64_t C, const rule *k)
{
    const T least = (T)(k->eps1 * k->eps1), gscale = (T)k->gscale;
    double mean = 0;
    NAME(average)(g, row, col, R, C, k);
    for (int64_t i = 0; i < R; i++) mean += (double)row[i] / (double)R;
    mean = fmax(mean, k->eps1);
#pragma omp parallel for num_threads(k->threads) schedule(static) if (k->threads > 1)
    for (int64_t i = 0; i < R; i++) {
        const T r = (T)((double)row[i] / mean);
        for (int64_t j = 0; j < C; j++) {
            const T v = r * col[j];
            g[i * C + j] *= gscale / ROOT(v > least ? v : least);
        }
    }
}

static void NAME(vector)(T *g, T *v, int64_t n, const rule *k)
{
    const T least = (T)(k->eps1 * k->eps1), gscale = (T)k->gscale, share = (T)k->share;
#pragma omp parallel for simd num_threads(k->threads) schedule(static) if (k -> threads > 1)
    for (int64_t i = 0; i < n; i++) {
        const T x = gscale * g[i];
        v[i] += share * (x * x - v[i]);
        g[i] = x / ROOT(v[i] > least ? v[i] : least);
    }
}

/* Replaces the gradients of a parameter by its update. Threads share one large matrix, or many. */
static void NAME(update)(void *gradients, void *factors, shape s, const rule *k)
{
    T *g = gradients, *row = factors, *col = row + s.n * s.R;
    if (s.R == 0) {
        NAME(vector)(g, row, s.n, k);
        return;
    }
    if (s.n == 1) {
        NAME(matrix)(g, row, col, s.R, s.C, k);
        return;
    }
    rule one = *k;
    one.threads = 1;
#pragma omp parallel for num_threads(k->threads) schedule(static) if (k->threads > 1)
    for (int64_t i = 0; i < s.n; i++)
        NAME(matrix)(g + i * s.R * s.C, row + i * s.R, col + i * s.C, s.R, s.C, &one);
}

#undef T
#undef ROOT
#undef NAME
