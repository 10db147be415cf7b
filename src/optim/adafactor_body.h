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

/* The sum of n squares, in LANES partial sums that a compiler can vectorise. */
static double NAME(squares)(const T *g, int64_t n, double gscale)
{
    double lane[LANES] = {0}, sum = 0;
    const int64_t whole = n - n % LANES;
    for (int64_t j = 0; j < whole; j += LANES) {
#pragma omp simd
        for (int k = 0; k < LANES; k++) lane[k] += NAME(square)(g[j + k], gscale);
    }
    for (int64_t j = whole; j < n; j++) lane[j - whole] += NAME(square)(g[j], gscale);
    for (int k = 0; k < LANES; k++) sum += lane[k];
    return sum;
}

/* The averages r and c of a matrix of gradients. */
static void NAME(average)(const T *g, T *row, T *col, int64_t R, int64_t C, const rule *k)
{
    const double gscale = k->gscale, share = k->share;
#pragma omp parallel for num_threads(k->threads) schedule(static) if (k->threads > 1)
    for (int64_t i = 0; i < R; i++)
        row[i] += (T)(share * (NAME(squares)(g + i * C, C, gscale) / (double)C - (double)row[i]));
#pragma omp parallel for num_threads(k->threads) schedule(static) if (k->threads > 1)
    for (int64_t b = 0; b < C; b += BLOCK) {
        const int64_t n = C - b < BLOCK ? C - b : BLOCK;
        double sum[BLOCK] = {0};
        for (int64_t i = 0; i < R; i++) {
            const T *at = g + i * C + b;
#pragma omp simd
            for (int64_t j = 0; j < n; j++) sum[j] += NAME(square)(at[j], gscale);
        }
        for (int64_t j = 0; j < n; j++)
            col[b + j] += (T)(share * (sum[j] / (double)R - (double)col[b + j]));
    }
}

/* u = G / sqrt(r c^T / mean) for rows [i, end). The root of a product is that of its factors, so
 * there is one root per column and block of rows. */
static void NAME(divide)(T *g, const T *row, const T *col, int64_t i, int64_t end, int64_t C,
                         double mean, const rule *k)
{
    const T least = (T)k->eps1, gscale = (T)k->gscale;
    for (int64_t b = 0; b < C; b += BLOCK) {
        const int64_t n = C - b < BLOCK ? C - b : BLOCK;
        T root[BLOCK] = {0};
        for (int64_t j = 0; j < n; j++) root[j] = ROOT(col[b + j]);
        for (int64_t r = i; r < end; r++) {
            const T of_row = (T)sqrt((double)row[r] / mean);
            T *at = g + r * C + b;
#pragma omp simd
            for (int64_t j = 0; j < n; j++) {
                const T v = of_row * root[j];
                at[j] *= gscale / (v > least ? v : least);
            }
        }
    }
}

static void NAME(matrix)(T *g, T *row, T *col, int64_t R, int64_t C, const rule *k)
{
    double mean = 0;
    NAME(average)(g, row, col, R, C, k);
    for (int64_t i = 0; i < R; i++) mean += (double)row[i] / (double)R;
    mean = fmax(mean, k->eps1);
#pragma omp parallel for num_threads(k->threads) schedule(static) if (k->threads > 1)
    for (int64_t i = 0; i < R; i += BLOCK)
        NAME(divide)(g, row, col, i, R - i < BLOCK ? R : i + BLOCK, C, mean, k);
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
