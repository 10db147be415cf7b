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

/* The loss of a row, and in stat, which may be NULL, what the gradient needs of it: m and 1 / s. */
static double NAME(loss_row)(const target *g, const T *x, T *stat, int64_t r, bool *bad,
                             ctn__isa isa)
{
    T m;
    double s;
    const int64_t cls = g->soft ? -1 : class_of(g, r);
    NAME(sum_exp)[isa](x, g->C, &m, &s);
    if (stat) {
        stat[0] = m;
        stat[1] = (T)(1 / s);
    }
    const double lse = (double)m + log(s);
    *bad = cls == -2;
    if (!g->soft && cls < 0) return 0;
    if (g->soft || g->smooth != 0) return NAME(soft_loss)(g, x, r, cls, lse);
    return weight(g, cls) * (lse - (double)x[cls]);
}

/* A row of the gradient; scale is gy / divisor. */
static void NAME(grad_row)(const target *g, const T *x, const T *stat, T *y, int64_t r,
                           double scale, ctn__isa isa)
{
    const T *w = g->w, *t = g->soft ? (const T *)g->t + r * g->C : NULL;
    const int64_t cls = g->soft ? 0 : class_of(g, r);
    const double even = scale * g->smooth / (double)g->C, keep = scale * (1 - g->smooth);
    if (cls < 0) memset(y, 0, (size_t)g->C * sizeof *y);
    if (cls < 0) return;
    const double f = scale * sum_of_q(g, r) * (double)stat[1];
    NAME(slope)[isa](x, y, g->C, stat[0], f, w ? 0 : even);
    for (int64_t c = 0; w && g->smooth != 0 && c < g->C; c++) y[c] -= (T)even * w[c];
    for (int64_t c = 0; t && c < g->C; c++) y[c] -= (T)keep * (w ? w[c] : 1) * t[c];
    if (!t) y[cls] -= (T)(keep * weight(g, cls));
}

#undef T
#undef EXP
#undef NAME
