/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of layer_norm and rms_norm for one element type, included by norm.c once per type.
 * T is the type, NAME gives the functions their names. The formulas are in norm.h.
 *
 * Invariant: sums over a row are accumulated in double, and sums over rows (gw, gb) in blocks that
 * depend on the shape alone, so results do not depend on the thread count.
 */

/* One row; w and b may be NULL. */
static void NAME(forward_row)(const T *x, const T *w, const T *b, T *y, int64_t D, bool center,
                              double eps, T *mean, T *rstd)
{
    double s = 0, q = 0;
    if (center) {
#pragma omp simd reduction(+ : s)
        for (int64_t i = 0; i < D; i++) s += (double)x[i];
    }
    T m = (T)(s / (double)D);
#pragma omp simd reduction(+ : q)
    for (int64_t i = 0; i < D; i++) {
        T d = x[i] - m;
        q += (double)(d * d);
    }
    T r = (T)(1 / sqrt(q / (double)D + eps));
    if (w && b) {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) y[i] = (x[i] - m) * r * w[i] + b[i];
    } else if (w) {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) y[i] = (x[i] - m) * r * w[i];
    } else if (b) {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) y[i] = (x[i] - m) * r + b[i];
    } else {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) y[i] = (x[i] - m) * r;
    }
    *mean = m;
    *rstd = r;
}

/* R rows of D elements. */
static void NAME(forward)(const ctn_run_args *a, int64_t R, int64_t D)
{
    const bool center = a->attr[CTN__NORM_CENTER] != 0;
    const double eps = a->scalar[0];
    const T *x = a->in[0], *w = a->attr[CTN__NORM_WEIGHT] ? a->in[1] : NULL;
    const T *b = a->attr[CTN__NORM_BIAS] ? a->in[a->nin - 1] : NULL;
    T *y = a->out[0], *rstd = a->out[1], *mean = center ? a->out[2] : NULL;
#pragma omp parallel for schedule(static) if (R * D > CTN__GRAIN)
    for (int64_t i = 0; i < R; i++) {
        T m, r;
        NAME(forward_row)(x + i * D, w, b, y + i * D, D, center, eps, &m, &r);
        if (rstd) rstd[i] = r;
        if (mean) mean[i] = m;
    }
}

/* With e = gy w: gx = r (e - mean(e) - h mean(e h)), the first mean only if centered. gy h is
 * added to pw and gy to pb unless they are NULL. gx may be the same memory as gy or x, so h is
 * computed again where it is needed. */
static void NAME(backward_row)(const T *g, const T *x, const T *w, T *gx, int64_t D, bool center,
                               T m, T r, T *pw, T *pb)
{
    double s1 = 0, s2 = 0;
    if (w) {
#pragma omp simd reduction(+ : s1, s2)
        for (int64_t i = 0; i < D; i++) {
            T e = g[i] * w[i];
            s1 += (double)e;
            s2 += (double)(e * ((x[i] - m) * r));
        }
    } else {
#pragma omp simd reduction(+ : s1, s2)
        for (int64_t i = 0; i < D; i++) {
            s1 += (double)g[i];
            s2 += (double)(g[i] * ((x[i] - m) * r));
        }
    }
    if (pw) {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) pw[i] += g[i] * ((x[i] - m) * r);
    }
    if (pb) {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) pb[i] += g[i];
    }
    T m1 = center ? (T)(s1 / (double)D) : 0, m2 = (T)(s2 / (double)D);
    if (w) {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) gx[i] = r * (g[i] * w[i] - m1 - (x[i] - m) * r * m2);
    } else {
#pragma omp simd
        for (int64_t i = 0; i < D; i++) gx[i] = r * (g[i] - m1 - (x[i] - m) * r * m2);
    }
}

/* Blocks of rows run in parallel, each with its own sums; the sums of the blocks are then added in
 * order. */
static void NAME(backward)(const ctn_run_args *a, int64_t R, int64_t D)
{
    const bool center = a->attr[CTN__NORM_CENTER] != 0;
    const int64_t per = block_rows(R), nb = row_blocks(R);
    const T *g = a->in[0], *x = a->in[1], *r = a->in[2], *m = center ? a->in[3] : NULL;
    const T *w = a->attr[CTN__NORM_WEIGHT] ? a->in[a->nin - 1] : NULL;
    T *gx = a->out[0], *gw = a->out[1], *gb = a->out[2], *part = a->scratch;
#pragma omp parallel for schedule(static) if (R * D > CTN__GRAIN)
    for (int64_t k = 0; k < nb; k++) {
        T *pw = gw ? part + 2 * k * D : NULL, *pb = gb ? part + (2 * k + 1) * D : NULL;
        int64_t end = (k + 1) * per < R ? (k + 1) * per : R;
        if (pw) memset(pw, 0, (size_t)D * sizeof *pw);
        if (pb) memset(pb, 0, (size_t)D * sizeof *pb);
        for (int64_t i = k * per; i < end; i++)
            NAME(backward_row)(g + i * D, x + i * D, w, gx + i * D, D, center, m ? m[i] : 0, r[i],
                               pw, pb);
    }
    for (int64_t i = 0; i < D && (gw || gb); i++) {
        double sw = 0, sb = 0;
        for (int64_t k = 0; k < nb; k++) {
            sw += gw ? (double)part[2 * k * D + i] : 0;
            sb += gb ? (double)part[(2 * k + 1) * D + i] : 0;
        }
        if (gw) gw[i] = (T)sw;
        if (gb) gb[i] = (T)sb;
    }
}

#undef T
#undef NAME
