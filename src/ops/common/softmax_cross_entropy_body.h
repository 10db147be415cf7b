/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of softmax_cross_entropy for one element type, included by softmax_cross_entropy.c
 * once per type. T is the type, EXP its exponential function, NAME gives the functions their
 * names. Sums are accumulated in double because there may be a million classes.
 */

/* m = max(x), s = sum(exp(x - m)). */
CTN__PER_ISA(NAME(sum_exp), (const T *x, int64_t C, T *m, double *s), (x, C, m, s))
{
    T most = (T)-INFINITY;
    double lane[LANES] = {0}, total = 0;
    int64_t c = 0;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < C; i++) most = x[i] > most ? x[i] : most;
    for (; c + LANES <= C; c += LANES) {
#pragma omp simd
        for (int j = 0; j < LANES; j++) lane[j] += EXP(x[c + j] - most);
    }
    for (; c < C; c++) total += EXP(x[c] - most);
    for (int j = 0; j < LANES; j++) total += lane[j];
    *m = most;
    *s = total;
}

/* The gradient's pass over a row: y = f exp(x - m) - b. */
CTN__PER_ISA(NAME(slope), (const T *x, T *y, int64_t n, T m, double f, double b),
             (x, y, n, m, f, b))
{
    CTN__EACH(y[i_] = (T)(f * EXP(x[i_] - m) - b););
}

/* ---- few classes ----

 * A row of 21 classes has one full vector and a rest, so its exponentials would mostly be computed
 * one at a time. Instead each of LANES rows is a lane. t (C,LANES) has the rows as columns; lanes
 * beyond row n - 1 repeat it. */
static inline __attribute__((always_inline)) void NAME(turn)(const T *x, int64_t C, int64_t n, T *t)
{
    for (int64_t j = 0; j < LANES; j++) {
        const T *row = x + (j < n ? j : n - 1) * C;
        for (int64_t c = 0; c < C; c++) t[c * LANES + j] = row[c];
    }
}

/* m = max(x), s = sum(exp(x - m)), l = log(s) of n rows. */
CTN__PER_ISA(NAME(sums_few), (const T *x, int64_t C, int64_t n, T *m, double *s, double *l),
             (x, C, n, m, s, l))
{
    T t[FEW * LANES];
    NAME(turn)(x, C, n, t);
    for (int j = 0; j < LANES; j++) {
        m[j] = (T)-INFINITY;
        s[j] = 0;
    }
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int j = 0; j < LANES; j++) m[j] = t[c * LANES + j] > m[j] ? t[c * LANES + j] : m[j];
    }
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int j = 0; j < LANES; j++) s[j] += EXP(t[c * LANES + j] - m[j]);
    }
#pragma omp simd
    for (int j = 0; j < LANES; j++) l[j] = LOG(s[j]);
}

/* y = f exp(x - m) - b, where m, f and b belong to the row; y may be x. */
CTN__PER_ISA(NAME(slopes_few),
             (const T *x, T *y, int64_t C, int64_t n, const T *m, const double *f, const double *b),
             (x, y, C, n, m, f, b))
{
    T t[FEW * LANES];
    NAME(turn)(x, C, n, t);
    for (int64_t c = 0; c < C; c++) {
#pragma omp simd
        for (int j = 0; j < LANES; j++)
            t[c * LANES + j] = (T)(f[j] * EXP(t[c * LANES + j] - m[j]) - b[j]);
    }
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < C; c++) y[j * C + c] = t[c * LANES + j];
}

/* ---- rows of any length ---- */

/* The loss of a row with soft targets (cls is -1) or smoothing: sum of q_c (lse - x_c). */
static double NAME(soft_loss)(const target *g, const T *x, int64_t r, int64_t cls, double lse)
{
    const T *w = g->w, *t = cls < 0 ? (const T *)g->t + r * g->C : NULL;
    const double even = g->smooth / (double)g->C, keep = 1 - g->smooth;
    double l = 0;
    for (int64_t c = 0; c < g->C; c++) {
        double y = t ? (double)t[c] : (double)(c == cls);
        l += (w ? (double)w[c] : 1) * (keep * y + even) * (lse - (double)x[c]);
    }
    return l;
}

/* The loss of n rows from row r on, at most LANES, and in stat, which may be NULL, what the
 * gradient needs of them: m and 1 / s. Returns the last row whose class is out of range, or -1. */
static int64_t NAME(loss_rows)(const target *g, const T *x, T *stat, int64_t r, int64_t n,
                               double *loss, ctn__isa isa)
{
    T m[LANES];
    double s[LANES], l[LANES];
    int64_t bad = -1;
    if (g->C <= FEW) NAME(sums_few)[isa](x, g->C, n, m, s, l);
    for (int64_t j = 0; j < n; j++) {
        const T *row = x + j * g->C;
        if (g->C > FEW) {
            NAME(sum_exp)[isa](row, g->C, &m[j], &s[j]);
            l[j] = log(s[j]);
        }
        const int64_t cls = g->soft ? -1 : class_of(g, r + j);
        const double lse = (double)m[j] + l[j];
        if (stat) {
            stat[2 * j] = m[j];
            stat[2 * j + 1] = (T)(1 / s[j]);
        }
        if (cls == -2) bad = r + j;
        if (!g->soft && cls < 0) loss[j] = 0;
        else if (g->soft || g->smooth != 0) loss[j] = NAME(soft_loss)(g, row, r + j, cls, lse);
        else loss[j] = weight(g, cls) * (lse - (double)row[cls]);
    }
    return bad;
}

/* What y = f exp(x - m) - b, which y (C) holds, lacks to be the gradient of row r. */
static void NAME(finish_row)(const target *g, T *y, int64_t r, double scale)
{
    const T *w = g->w, *t = g->soft ? (const T *)g->t + r * g->C : NULL;
    const int64_t cls = g->soft ? 0 : class_of(g, r);
    const double even = scale * g->smooth / (double)g->C, keep = scale * (1 - g->smooth);
    if (cls < 0) memset(y, 0, (size_t)g->C * sizeof *y);
    if (cls < 0) return;
    for (int64_t c = 0; w && g->smooth != 0 && c < g->C; c++) y[c] -= (T)even * w[c];
    for (int64_t c = 0; t && c < g->C; c++) y[c] -= (T)keep * (w ? w[c] : 1) * t[c];
    if (!t) y[cls] -= (T)(keep * weight(g, cls));
}

/* The gradient of n rows from row r on, at most LANES. scale is gy / divisor, of each row. */
static void NAME(grad_rows)(const target *g, const T *x, const T *stat, T *y, int64_t r, int64_t n,
                            const double *scale, ctn__isa isa)
{
    T m[LANES];
    double f[LANES], b[LANES];
    for (int64_t j = 0; j < LANES; j++) {
        const int64_t k = j < n ? j : n - 1;
        m[j] = stat[2 * k];
        f[j] = scale[k] * sum_of_q(g, r + k) * (double)stat[2 * k + 1];
        b[j] = g->w ? 0 : scale[k] * g->smooth / (double)g->C;
    }
    if (g->C <= FEW) NAME(slopes_few)[isa](x, y, g->C, n, m, f, b);
    for (int64_t j = 0; j < n; j++) {
        const int64_t at = j * g->C;
        if (g->C > FEW) NAME(slope)[isa](x + at, y + at, g->C, m[j], f[j], b[j]);
        NAME(finish_row)(g, y + at, r + j, scale[j]);
    }
}

#undef T
#undef EXP
#undef LOG
#undef NAME
