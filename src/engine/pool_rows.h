/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool kernels of one element type, included by pool_body.h once per type. T is the type in
 * memory, A the type of the arithmetic, GET and PUT convert between them, and NAME makes function
 * names. Channels-last (inner > 1) uses vectors over channels, row-major uses vectors along the
 * row. Both do the same operations in the same order for each element.
 */

/* ---- maxima ---------------------------------------------------------------------------------- */

/* Compares x[q step + j] with the maximum `top`; its position is code + q. */
#define AGAINST(q)                      \
    do {                                \
        A v = GET(x[(q) * step + j]);   \
        int up = (v > top) | (v != v);  \
        top = up ? v : top;             \
        at = up ? code + (int)(q) : at; \
    } while (0)

/* m[j], k[j] = the maximum and its position, updated with count elements. Takes three at a time
 * while m stays in a register. */
static inline void NAME(best)(A *restrict m, int32_t *restrict k, const T *restrict x, int64_t n,
                              int64_t count, int64_t step, int32_t code)
{
    for (; count >= 3; count -= 3, x += 3 * step, code += 3) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            A top = m[j];
            int32_t at = k[j];
            AGAINST(0);
            AGAINST(1);
            AGAINST(2);
            m[j] = top;
            k[j] = at;
        }
    }
    for (; count > 0; count--, x += step, code++) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            A top = m[j];
            int32_t at = k[j];
            AGAINST(0);
            m[j] = top;
            k[j] = at;
        }
    }
}

/* The same without positions, for evaluation. */
static inline void NAME(largest)(A *restrict m, const T *restrict x, int64_t n, int64_t count,
                                 int64_t step)
{
    for (; count > 0; count--, x += step) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) {
            A v = GET(x[j]), top = m[j];
            m[j] = (v > top) | (v != v) ? v : top;
        }
    }
}

/* Writes n results, m to y and k to index. */
static inline void NAME(finish)(const ctn__windows *w, const A *m, const int32_t *k, T *restrict y,
                                void *index, int64_t at, int64_t n)
{
    for (int64_t j = 0; j < n; j++) y[at + j] = PUT(m[j]);
    if (!index) return;
    if (w->wide) {
        memcpy((int32_t *)index + at, k, (size_t)n * sizeof *k);
    } else {
        uint8_t *restrict to = (uint8_t *)index + at;
        for (int64_t j = 0; j < n; j++) to[j] = (uint8_t)k[j];
    }
}

/* One row of windows, which covers rows d x h of x. The row of y starts at element `to`. */
static void NAME(max_channels)(const ctn__windows *w, const T *x, span d, span h, int64_t code,
                               T *y, void *index, int64_t to)
{
    const int64_t C = w->inner;
    A m[TILE];
    int32_t k[TILE];
    for (int64_t ow = 0; ow < w->out[2]; ow++) {
        span v = window(w, 2, ow);
        int64_t first = place(w, 2, v.lo, ow), nw = v.hi - v.lo;
        for (int64_t c = 0; c < C; c += TILE) {
            int64_t n = C - c < TILE ? C - c : TILE;
            for (int64_t j = 0; j < n; j++) {
                m[j] = (A)-INFINITY;
                k[j] = (int32_t)(code + first);
            }
            for (int64_t id = d.lo; id < d.hi; id++) {
                for (int64_t ih = h.lo; ih < h.hi; ih++) {
                    const T *p = x + ((id * w->in[1] + ih) * w->in[2] + v.lo) * C + c;
                    int64_t base = ((id - d.lo) * w->kernel[1] + ih - h.lo) * w->kernel[2];
                    if (index) NAME(best)(m, k, p, n, nw, C, (int32_t)(code + base + first));
                    else NAME(largest)(m, p, n, nw, C);
                }
            }
            NAME(finish)(w, m, k, y, index, to + ow * C + c, n);
        }
    }
}

/* The same for inner == 1, TILE windows at a time. */
static void NAME(max_line)(const ctn__windows *w, const T *x, span d, span h, int64_t code, T *y,
                           void *index, int64_t to)
{
    const int64_t step = w->stride[2], W = w->in[2];
    A m[TILE];
    int32_t k[TILE];
    for (int64_t o = 0; o < w->out[2]; o += TILE) {
        int64_t n = w->out[2] - o < TILE ? w->out[2] - o : TILE;
        for (int64_t j = 0; j < n; j++) {
            m[j] = (A)-INFINITY;
            k[j] = (int32_t)(code + place(w, 2, window(w, 2, o + j).lo, o + j));
        }
        for (int64_t id = d.lo; id < d.hi; id++) {
            for (int64_t ih = h.lo; ih < h.hi; ih++) {
                int64_t base = ((id - d.lo) * w->kernel[1] + ih - h.lo) * w->kernel[2];
                for (int64_t q = 0; q < w->kernel[2]; q++) {
                    int64_t i0 = o * step - w->pad[2] + q; /* element of window o */
                    const T *p = x + (id * w->in[1] + ih) * W;
                    int64_t j = i0 < 0 ? (-i0 + step - 1) / step : 0;
                    int64_t end = i0 >= W ? 0 : (W - 1 - i0) / step + 1;
                    for (end = end < n ? end : n; j < end; j++) {
                        A v = GET(p[i0 + j * step]), top = m[j];
                        int up = (v > top) | (v != v);
                        m[j] = up ? v : top;
                        k[j] = up ? (int32_t)(code + base + q) : k[j];
                    }
                }
            }
        }
        NAME(finish)(w, m, k, y, index, to + o, n);
    }
}

static void NAME(max)(const ctn__windows *w, int64_t row, const void *x, void *y, void *index)
{
    int64_t oh = row % w->out[1], od = row / w->out[1] % w->out[0];
    int64_t n = row / w->out[1] / w->out[0];
    span d = window(w, 0, od), h = window(w, 1, oh);
    int64_t code = (place(w, 0, d.lo, od) * w->kernel[1] + place(w, 1, h.lo, oh)) * w->kernel[2];
    const T *from = (const T *)x + n * w->in[0] * w->in[1] * w->in[2] * w->inner;
    int64_t to = row * w->out[2] * w->inner;
    if (w->inner == 1) NAME(max_line)(w, from, d, h, code, y, index, to);
    else NAME(max_channels)(w, from, d, h, code, y, index, to);
}

/* ---- their gradient -------------------------------------------------------------------------- */

/* sum[j] += g[j] for each of count windows, C elements apart, whose maximum is this element. Its
 * position is `code` in the first window and decreases by `less` from one window to the next. */
#define COLLECT(I)                                                                 \
    do {                                                                           \
        const I *restrict k = (const I *)index + at;                               \
        for (; count >= 2; count -= 2, g += 2 * C, k += 2 * C, code -= 2 * less) { \
            const int32_t next = code - less;                                      \
            _Pragma("omp simd") for (int64_t j = 0; j < n; j++)                    \
            {                                                                      \
                A p = GET(g[j]), q = GET(g[C + j]);                                \
                int32_t i = k[j], l = k[C + j];                                    \
                p = sum[j] + (i == code ? p : (A)0);                               \
                sum[j] = p + (l == next ? q : (A)0);                               \
            }                                                                      \
        }                                                                          \
        for (; count > 0; count--, g += C, k += C, code -= less) {                 \
            _Pragma("omp simd") for (int64_t j = 0; j < n; j++)                    \
            {                                                                      \
                A p = GET(g[j]);                                                   \
                int32_t i = k[j];                                                  \
                sum[j] += i == code ? p : (A)0;                                    \
            }                                                                      \
        }                                                                          \
    } while (0)

static inline void NAME(collect)(const ctn__windows *w, A *restrict sum, const T *restrict gy,
                                 const void *index, int64_t at, int64_t n, int64_t count,
                                 int32_t code)
{
    const int64_t C = w->inner;
    const int32_t less = (int32_t)w->stride[2];
    const T *restrict g = gy + at;
    if (w->wide) COLLECT(int32_t);
    else COLLECT(uint8_t);
}

/* One row of gx, which the windows d x h read. `at` is the first element of this sample in gy. */
static void NAME(back_channels)(const ctn__windows *w, int64_t id, int64_t ih, span d, span h,
                                const T *gy, const void *index, int64_t at, T *restrict gx)
{
    const int64_t C = w->inner;
    A sum[TILE];
    for (int64_t iw = 0; iw < w->in[2]; iw++) {
        span v = readers(w, 2, iw);
        int64_t q = place(w, 2, iw, v.lo);
        for (int64_t c = 0; c < C; c += TILE) {
            int64_t n = C - c < TILE ? C - c : TILE;
            for (int64_t j = 0; j < n; j++) sum[j] = 0;
            for (int64_t od = d.lo; od < d.hi; od++) {
                for (int64_t oh = h.lo; oh < h.hi; oh++) {
                    int64_t code =
                        (place(w, 0, id, od) * w->kernel[1] + place(w, 1, ih, oh)) * w->kernel[2] +
                        q;
                    int64_t o = at + ((od * w->out[1] + oh) * w->out[2] + v.lo) * C + c;
                    NAME(collect)(w, sum, gy, index, o, n, v.hi - v.lo, (int32_t)code);
                }
            }
            for (int64_t j = 0; j < n; j++) gx[iw * C + c + j] = PUT(sum[j]);
        }
    }
}

/* The same for inner == 1: every window adds to the element that its index points to. */
static void NAME(back_line)(const ctn__windows *w, int64_t id, int64_t ih, span d, span h,
                            const T *gy, const void *index, int64_t at, T *gx, A *sum)
{
    for (int64_t i = 0; i < w->in[2]; i++) sum[i] = 0;
    for (int64_t od = d.lo; od < d.hi; od++) {
        for (int64_t oh = h.lo; oh < h.hi; oh++) {
            int64_t code =
                (place(w, 0, id, od) * w->kernel[1] + place(w, 1, ih, oh)) * w->kernel[2];
            int64_t o = at + (od * w->out[1] + oh) * w->out[2];
            for (int64_t ow = 0; ow < w->out[2]; ow++, o++) {
                int64_t k = w->wide ? ((const int32_t *)index)[o] : ((const uint8_t *)index)[o];
                int64_t q = k - code; /* in this row of the window? */
                if (q < 0 || q >= w->kernel[2]) continue;
                sum[ow * w->stride[2] - w->pad[2] + q] += GET(gy[o]);
            }
        }
    }
    for (int64_t i = 0; i < w->in[2]; i++) gx[i] = PUT(sum[i]);
}

static void NAME(back)(const ctn__windows *w, int64_t row, const void *gy, const void *index,
                       void *gx, void *scratch)
{
    int64_t ih = row % w->in[1], id = row / w->in[1] % w->in[0];
    int64_t at = row / w->in[1] / w->in[0] * w->out[0] * w->out[1] * w->out[2] * w->inner;
    span d = readers(w, 0, id), h = readers(w, 1, ih);
    T *to = (T *)gx + row * w->in[2] * w->inner;
    if (w->inner == 1) NAME(back_line)(w, id, ih, d, h, gy, index, at, to, scratch);
    else NAME(back_channels)(w, id, ih, d, h, gy, index, at, to);
}

/* The elements of x that one row of windows points to. Not vectorised: second derivatives only. */
static void NAME(pick)(const ctn__windows *w, int64_t row, const void *x, const void *index,
                       void *y)
{
    const int64_t C = w->inner, *K = w->kernel;
    int64_t oh = row % w->out[1], od = row / w->out[1] % w->out[0];
    int64_t n = row / w->out[1] / w->out[0], o = row * w->out[2] * C;
    const T *from = (const T *)x + n * w->in[0] * w->in[1] * w->in[2] * C;
    for (int64_t ow = 0; ow < w->out[2]; ow++) {
        for (int64_t c = 0; c < C; c++, o++) {
            int64_t k = w->wide ? ((const int32_t *)index)[o] : ((const uint8_t *)index)[o];
            int64_t id = od * w->stride[0] - w->pad[0] + k / K[2] / K[1];
            int64_t ih = oh * w->stride[1] - w->pad[1] + k / K[2] % K[1];
            int64_t iw = ow * w->stride[2] - w->pad[2] + k % K[2];
            ((T *)y)[o] = from[((id * w->in[1] + ih) * w->in[2] + iw) * C + c];
        }
    }
}

/* ---- linear resampling ----------------------------------------------------------------------- */

static inline void NAME(add)(A *restrict t, const T *restrict x, A weight, int64_t n, bool first)
{
    if (first) {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) t[j] = weight * GET(x[j]);
    } else {
#pragma omp simd
        for (int64_t j = 0; j < n; j++) t[j] += weight * GET(x[j]);
    }
}

/* t (W,n) = weighted sum of the rows of x that the result's row reads, from channel c. */
static void NAME(sample_rows)(const ctn__sampling *s, int64_t od, int64_t oh, const T *x, int64_t c,
                              int64_t n, A *t)
{
    const ctn__band *d = &s->band[0], *h = &s->band[1];
    const int64_t W = s->in[2], C = s->inner;
    bool first = true;
    for (int64_t p = 0; p < d->count[od]; p++) {
        for (int64_t q = 0; q < h->count[oh]; q++) {
            A weight = ((const A *)d->w)[d->at[od] + p] * ((const A *)h->w)[h->at[oh] + q];
            const T *row = x + ((d->start[od] + p) * s->in[1] + h->start[oh] + q) * W * C + c;
            if (n == C) NAME(add)(t, row, weight, W * C, first);
            else
                for (int64_t i = 0; i < W; i++) NAME(add)(t + i * n, row + i * C, weight, n, first);
            first = false;
        }
    }
    if (first) memset(t, 0, (size_t)(W * n) * sizeof *t); /* a transpose may have empty rows */
}

/* y[j] = w[0] t[j] + w[1] t[n + j] + ..., n at a time */
static inline void NAME(mix)(T *restrict y, const A *restrict t, const A *w, int64_t count,
                             int64_t n)
{
    A sum[TILE];
    if (count == 1) {
        const A a = w[0];
#pragma omp simd
        for (int64_t j = 0; j < n; j++) y[j] = PUT(a * t[j]);
        return;
    }
    if (count == 2) {
        const A a = w[0], b = w[1];
#pragma omp simd
        for (int64_t j = 0; j < n; j++) y[j] = PUT(a * t[j] + b * t[n + j]);
        return;
    }
    for (int64_t c = 0; c < n; c += TILE) {
        int64_t m = n - c < TILE ? n - c : TILE;
        for (int64_t j = 0; j < m; j++) sum[j] = count > 0 ? w[0] * t[c + j] : (A)0;
        for (int64_t q = 1; q < count; q++) {
            const A a = w[q], *restrict p = t + q * n + c;
#pragma omp simd
            for (int64_t j = 0; j < m; j++) sum[j] += a * p[j];
        }
#pragma omp simd
        for (int64_t j = 0; j < m; j++) y[c + j] = PUT(sum[j]);
    }
}

static void NAME(sample)(const ctn__sampling *s, int64_t unit, const void *x, void *y,
                         void *scratch)
{
    const ctn__band *b = &s->band[2];
    const int64_t C = s->inner, c = unit % s->blocks * s->width;
    const int64_t n = C - c < s->width ? C - c : s->width, row = unit / s->blocks;
    int64_t outer = row / s->out[1] / s->out[0];
    A *t = scratch;
    NAME(sample_rows)(s, row / s->out[1] % s->out[0], row % s->out[1],
                      (const T *)x + outer * s->in[0] * s->in[1] * s->in[2] * C, c, n, t);
    T *to = (T *)y + row * s->out[2] * C + c;
    for (int64_t ow = 0; ow < s->out[2]; ow++) {
        const A *w = (const A *)b->w + b->at[ow], *p = t + b->start[ow] * n;
        const int64_t count = b->count[ow];
        if (n > 1) {
            NAME(mix)(to + ow * C, p, w, count, n);
        } else {
            A sum = count > 0 ? w[0] * p[0] : (A)0;
            for (int64_t q = 1; q < count; q++) sum += w[q] * p[q];
            to[ow * C] = PUT(sum);
        }
    }
}

#undef AGAINST
#undef COLLECT
#undef T
#undef A
#undef GET
#undef PUT
#undef NAME
