/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of fft.c for one element type, included once per type. T is the type, NAME gives the
 * functions their names. All arrays of a block are [position][line], so that a loop over the
 * innermost index has no dependences and needs no shuffles.
 */

typedef struct {
    T *re, *im;
} NAME(block);

static void NAME(swap)(NAME(block) * u, NAME(block) * v)
{
    const NAME(block) t = *u;
    *u = *v;
    *v = t;
}

/* One pass of radix r over m groups of r elements, each a row of s numbers:
 *   y[r p + k] = w^(k p) sum_j x[p + j m] exp(-2 pi i j k / r), w = exp(-2 pi i / (r m))
 * w holds w^(k p), k = 1 to r-1, for each p. */
#define PASS(radix)                                                                          \
    CTN__PER_ISA(NAME(pass##radix),                                                          \
                 (const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w), \
                 (xr, xi, yr, yi, m, s, w))
#define IN(j) const T r##j = xr[(p + (j) * m) * s + q], i##j = xi[(p + (j) * m) * s + q]
#define OUT(r, k, re, im)                                    \
    do {                                                     \
        const T tr_ = (re), ti_ = (im);                      \
        const T wr_ = w[2 * ((r) - 1) * p + 2 * (k) - 2];    \
        const T wi_ = w[2 * ((r) - 1) * p + 2 * (k) - 1];    \
        yr[((r) * p + (k)) * s + q] = tr_ * wr_ - ti_ * wi_; \
        yi[((r) * p + (k)) * s + q] = tr_ * wi_ + ti_ * wr_; \
    } while (0)
#define OUT0(r, re, im)             \
    do {                            \
        yr[(r) * p * s + q] = (re); \
        yi[(r) * p * s + q] = (im); \
    } while (0)

PASS(2)
{
    for (int64_t p = 0; p < m; p++) {
#pragma omp simd
        for (int64_t q = 0; q < s; q++) {
            IN(0);
            IN(1);
            OUT0(2, r0 + r1, i0 + i1);
            OUT(2, 1, r0 - r1, i0 - i1);
        }
    }
}

PASS(3)
{
    const T h = (T)0.86602540378443864676; /* sin(2 pi / 3) */
    for (int64_t p = 0; p < m; p++) {
#pragma omp simd
        for (int64_t q = 0; q < s; q++) {
            IN(0);
            IN(1);
            IN(2);
            const T ar = r1 + r2, ai = i1 + i2, br = h * (i1 - i2), bi = h * (r2 - r1);
            const T cr = r0 - ar / 2, ci = i0 - ai / 2;
            OUT0(3, r0 + ar, i0 + ai);
            OUT(3, 1, cr + br, ci + bi);
            OUT(3, 2, cr - br, ci - bi);
        }
    }
}

PASS(4)
{
    for (int64_t p = 0; p < m; p++) {
#pragma omp simd
        for (int64_t q = 0; q < s; q++) {
            IN(0);
            IN(1);
            IN(2);
            IN(3);
            const T ar = r0 + r2, ai = i0 + i2, br = r0 - r2, bi = i0 - i2;
            const T cr = r1 + r3, ci = i1 + i3, dr = i1 - i3, di = r3 - r1;
            OUT0(4, ar + cr, ai + ci);
            OUT(4, 1, br + dr, bi + di);
            OUT(4, 2, ar - cr, ai - ci);
            OUT(4, 3, br - dr, bi - di);
        }
    }
}

PASS(5)
{
    const T c1 = (T)0.30901699437494742410, c2 = (T)-0.80901699437494742410;
    const T s1 = (T)0.95105651629515357212, s2 = (T)0.58778525229247312917;
    for (int64_t p = 0; p < m; p++) {
#pragma omp simd
        for (int64_t q = 0; q < s; q++) {
            IN(0);
            IN(1);
            IN(2);
            IN(3);
            IN(4);
            const T ar = r1 + r4, ai = i1 + i4, br = r2 + r3, bi = i2 + i3;
            const T cr = i1 - i4, ci = r4 - r1, dr = i2 - i3, di = r3 - r2;
            const T er = r0 + c1 * ar + c2 * br, ei = i0 + c1 * ai + c2 * bi;
            const T fr = r0 + c2 * ar + c1 * br, fi = i0 + c2 * ai + c1 * bi;
            const T gr = s1 * cr + s2 * dr, gi = s1 * ci + s2 * di;
            const T hr = s2 * cr - s1 * dr, hi = s2 * ci - s1 * di;
            OUT0(5, r0 + ar + br, i0 + ai + bi);
            OUT(5, 1, er + gr, ei + gi);
            OUT(5, 2, fr + hr, fi + hi);
            OUT(5, 3, fr - hr, fi - hi);
            OUT(5, 4, er - gr, ei - gi);
        }
    }
}

/* Any radix r; c holds the roots of unity exp(-2 pi i k / r). */
CTN__PER_ISA(NAME(pass_any),
             (const T *xr, const T *xi, T *yr, T *yi, int64_t m, int64_t s, const T *w, int64_t r,
              const T *c),
             (xr, xi, yr, yi, m, s, w, r, c))
{
    for (int64_t p = 0; p < m; p++)
        for (int64_t k = 0; k < r; k++) {
            T *ur = yr + (r * p + k) * s, *ui = yi + (r * p + k) * s;
            const T wr = k > 0 ? w[2 * ((r - 1) * p + k - 1)] : 1;
            const T wi = k > 0 ? w[2 * ((r - 1) * p + k - 1) + 1] : 0;
            memcpy(ur, xr + p * s, (size_t)s * sizeof(T));
            memcpy(ui, xi + p * s, (size_t)s * sizeof(T));
            for (int64_t j = 1; j < r; j++) {
                const T *vr = xr + (p + j * m) * s, *vi = xi + (p + j * m) * s;
                const T cr = c[2 * (j * k % r)], ci = c[2 * (j * k % r) + 1];
#pragma omp simd
                for (int64_t q = 0; q < s; q++) {
                    ur[q] += vr[q] * cr - vi[q] * ci;
                    ui[q] += vr[q] * ci + vi[q] * cr;
                }
            }
#pragma omp simd
            for (int64_t q = 0; q < s; q++) {
                const T tr = ur[q], ti = ui[q];
                ur[q] = tr * wr - ti * wi;
                ui[q] = tr * wi + ti * wr;
            }
        }
}
#undef PASS
#undef IN
#undef OUT
#undef OUT0

/* Rows of L numbers times one complex number of w each: x[j] *= w[j]. */
CTN__PER_ISA(NAME(multiply), (T * re, T *im, const T *w, int64_t n, int64_t L), (re, im, w, n, L))
{
    for (int64_t j = 0; j < n; j++) {
        const T wr = w[2 * j], wi = w[2 * j + 1];
#pragma omp simd
        for (int64_t l = 0; l < L; l++) {
            const T tr = re[j * L + l], ti = im[j * L + l];
            re[j * L + l] = tr * wr - ti * wi;
            im[j * L + l] = tr * wi + ti * wr;
        }
    }
}

static void NAME(passes)(const ctn__fft *f, NAME(block) * x, NAME(block) * y, int64_t L)
{
    const ctn__isa isa = ctn__isa_in_use();
    const T *w = f->w, *c = f->roots;
    int64_t s = L, m = f->n;
    for (int i = 0; i < f->npass; i++) {
        const int64_t r = f->radix[i];
        m /= r;
        switch (r) {
        case 2: NAME(pass2)[isa](x->re, x->im, y->re, y->im, m, s, w); break;
        case 3: NAME(pass3)[isa](x->re, x->im, y->re, y->im, m, s, w); break;
        case 4: NAME(pass4)[isa](x->re, x->im, y->re, y->im, m, s, w); break;
        case 5: NAME(pass5)[isa](x->re, x->im, y->re, y->im, m, s, w); break;
        default: NAME(pass_any)[isa](x->re, x->im, y->re, y->im, m, s, w, r, c); c += 2 * r;
        }
        w += 2 * m * (r - 1);
        s *= r;
        NAME(swap)(x, y);
    }
}

/* L lines of length f->n. The result replaces x; both blocks are overwritten and may change places.
 * They have room for f->room rows. */
static void NAME(transform)(const ctn__fft *f, NAME(block) * x, NAME(block) * y, int64_t L)
{
    const ctn__isa isa = ctn__isa_in_use();
    const ctn__fft *g = f->longer;
    if (!g) {
        NAME(passes)(f, x, y, L);
        return;
    }
    /* Bluestein: with j k = (j^2 + k^2 - (k-j)^2) / 2, y_k is c_k times the convolution of x_j c_j
     * with the conjugate of c, where c_j = exp(-pi i j^2 / n). */
    const size_t rest = (size_t)((g->n - f->given) * L) * sizeof(T);
    NAME(multiply)[isa](x->re, x->im, f->chirp, f->given, L);
    memset(x->re + f->given * L, 0, rest);
    memset(x->im + f->given * L, 0, rest);
    NAME(passes)(g, x, y, L);
    NAME(multiply)[isa](x->re, x->im, f->spectrum, g->n, L);
    NAME(block) u = {x->im, x->re}, v = {y->im, y->re}; /* swapped: the inverse transform */
    NAME(passes)(g, &u, &v, L);
    *x = (NAME(block)){u.im, u.re};
    *y = (NAME(block)){v.im, v.re};
    NAME(multiply)[isa](x->re, x->im, f->chirp, f->wanted, L);
}

/* ---- between tensors and blocks: line l begins at at[l], its elements are `step` apart ------ */

/* Element j of line l is element o of the tensor. Lines that are neighbours in memory are visited
 * together, others one after another, a few elements at a time, so that the rows of the block that
 * all of them write stay in the nearest cache. */
#define EACH(n, ...)                                                       \
    do {                                                                   \
        if (beside(at, L)) {                                               \
            for (int64_t j = 0; j < (n); j++) {                            \
                const int64_t first = at[0] + j * step;                    \
                _Pragma("omp simd") for (int64_t l = 0; l < L; l++)        \
                {                                                          \
                    const int64_t o = first + l, b = j * L + l;            \
                    __VA_ARGS__                                            \
                }                                                          \
            }                                                              \
        } else {                                                           \
            for (int64_t j0 = 0; j0 < (n); j0 += FEW)                      \
                for (int64_t l = 0; l < L; l++)                            \
                    for (int64_t j = j0; j < (n) && j < j0 + FEW; j++) {   \
                        const int64_t o = at[l] + j * step, b = j * L + l; \
                        __VA_ARGS__                                        \
                    }                                                      \
        }                                                                  \
    } while (0)

CTN__PER_ISA(NAME(load),
             (const T *x, T *re, T *im, const int64_t *at, int64_t step, int64_t n, int64_t L),
             (x, re, im, at, step, n, L))
{
    EACH(n, re[b] = x[2 * o]; im[b] = x[2 * o + 1];);
}

CTN__PER_ISA(NAME(store),
             (T * x, const T *re, const T *im, const int64_t *at, int64_t step, int64_t n,
              int64_t L),
             (x, re, im, at, step, n, L))
{
    EACH(n, x[2 * o] = re[b]; x[2 * o + 1] = im[b];);
}

/* Real lines of odd length. */
CTN__PER_ISA(NAME(load_real),
             (const T *x, T *re, T *im, const int64_t *at, int64_t step, int64_t n, int64_t L),
             (x, re, im, at, step, n, L))
{
    EACH(n, re[b] = x[o]; im[b] = 0;);
}

CTN__PER_ISA(NAME(store_real),
             (T * x, const T *re, const int64_t *at, int64_t step, int64_t n, int64_t L),
             (x, re, at, step, n, L))
{
    EACH(n, x[o] = re[b];);
}

/* Real lines of length 2n as n pairs. */
CTN__PER_ISA(NAME(load_pairs),
             (const T *x, T *re, T *im, const int64_t *at, int64_t step, int64_t n, int64_t L),
             (x, re, im, at, step, n, L))
{
    EACH(n, re[b] = x[o + j * step]; im[b] = x[o + (j + 1) * step];);
}

CTN__PER_ISA(NAME(store_pairs),
             (T * x, const T *re, const T *im, const int64_t *at, int64_t step, int64_t n,
              int64_t L),
             (x, re, im, at, step, n, L))
{
    EACH(n, x[o + j * step] = re[b]; x[o + (j + 1) * step] = im[b];);
}

#undef EACH

/* ---- spectra of real lines, of which a block has the first half ------------------------------ */

/* The spectrum of a line of length 2h from that of its pairs, Z, each with its factor:
 *   X_k = (Z_k + Z*_(h-k)) / 2 - i w^k (Z_k - Z*_(h-k)) / 2,  w = exp(-pi i / h), k = 0 to h */
CTN__PER_ISA(NAME(to_half),
             (const T *re, const T *im, T *yr, T *yi, const T *w, int64_t h, int64_t L, T edge,
              T middle),
             (re, im, yr, yi, w, h, L, edge, middle))
{
    for (int64_t k = 0; k <= h; k++) {
        const int64_t u = (k == h ? 0 : k) * L, v = (k == 0 ? 0 : h - k) * L; /* Z_h is Z_0 */
        const T *ur = re + u, *ui = im + u, *vr = re + v, *vi = im + v;
        const T f = (k == 0 || k == h ? edge : middle) / 2, wr = w[2 * k], wi = w[2 * k + 1];
#pragma omp simd
        for (int64_t l = 0; l < L; l++) {
            const T ar = ur[l] + vr[l], ai = ui[l] - vi[l], br = ui[l] + vi[l], bi = vr[l] - ur[l];
            yr[k * L + l] = f * (ar + (wr * br - wi * bi));
            yi[k * L + l] = f * (ai + (wr * bi + wi * br));
        }
    }
}

/* And back, without the factor 1/2: Z_k = X_k + X*_(h-k) + i w^-k (X_k - X*_(h-k)). The imaginary
 * parts of X_0 and X_h are ignored. */
CTN__PER_ISA(NAME(from_half),
             (const T *xr, const T *xi, T *re, T *im, const T *w, int64_t h, int64_t L, T edge,
              T middle),
             (xr, xi, re, im, w, h, L, edge, middle))
{
    for (int64_t k = 0; k < h; k++) {
        const T *ur = xr + k * L, *ui = xi + k * L, *vr = xr + (h - k) * L, *vi = xi + (h - k) * L;
        const T f = k == 0 ? edge : middle, wr = w[2 * k], wi = w[2 * k + 1];
#pragma omp simd
        for (int64_t l = 0; l < L; l++) {
            const T pi = k == 0 ? 0 : ui[l], qi = k == 0 ? 0 : vi[l];
            const T br = ur[l] - vr[l], bi = pi + qi;
            re[k * L + l] = f * (ur[l] + vr[l] - (wr * bi - wi * br));
            im[k * L + l] = f * (pi - qi + (wr * br + wi * bi));
        }
    }
}

/* The factors of n frequencies of a line of odd length. */
CTN__PER_ISA(NAME(weigh), (T * re, T *im, int64_t n, int64_t L, T edge, T middle),
             (re, im, n, L, edge, middle))
{
#pragma omp simd
    for (int64_t i = 0; i < n * L; i++) {
        re[i] *= i < L ? edge : middle;
        im[i] *= i < L ? edge : middle;
    }
}

/* All frequencies of a line of odd length n from the first half: the others are conjugates. The
 * imaginary part of the first is ignored. */
CTN__PER_ISA(NAME(mirror), (T * re, T *im, int64_t n, int64_t L, T edge, T middle),
             (re, im, n, L, edge, middle))
{
    for (int64_t k = 0; k <= n / 2; k++) {
        const int64_t v = (k == 0 ? 0 : n - k) * L;
        T *ur = re + k * L, *ui = im + k * L, *vr = re + v, *vi = im + v;
        const T f = k == 0 ? edge : middle;
        for (int64_t l = 0; l < L; l++) {
            const T pr = f * ur[l], pi = k == 0 ? 0 : f * ui[l];
            vr[l] = ur[l] = pr;
            vi[l] = -pi;
            ui[l] = pi;
        }
    }
}

/* ---- one block ------------------------------------------------------------------------------- */

/* Swap real and imaginary parts. */
static void NAME(turn)(NAME(block) * u, NAME(block) * v)
{
    *u = (NAME(block)){u->im, u->re};
    *v = (NAME(block)){v->im, v->re};
}

/* From the tensor to what is transformed; v is room. */
static void NAME(take)(const job *b, const T *x, const int64_t *at, int64_t L, NAME(block) * u,
                       NAME(block) * v)
{
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t n = b->fft->n, step = b->inner;
    const T edge = (T)b->edge, middle = (T)b->middle;
    if (b->what == TO_HALF) {
        (b->half ? NAME(load_pairs) : NAME(load_real))[isa](x, u->re, u->im, at, step, n, L);
        return;
    }
    NAME(load)[isa](x, u->re, u->im, at, step, b->rows[0], L);
    if (b->what == FROM_HALF && b->half) {
        NAME(from_half)[isa](u->re, u->im, v->re, v->im, b->half, n, L, edge, middle);
        NAME(swap)(u, v);
    } else if (b->what == FROM_HALF && b->fft->longer) { /* conjugates double the real parts */
        memset(u->im, 0, (size_t)L * sizeof(T));
        NAME(weigh)[isa](u->re, u->im, b->rows[0], L, edge, 2 * middle);
    } else if (b->what == FROM_HALF) {
        NAME(mirror)[isa](u->re, u->im, n, L, edge, middle);
    }
}

/* And from the transform to the tensor. */
static void NAME(give)(const job *b, T *y, const int64_t *at, int64_t L, NAME(block) * u,
                       NAME(block) * v)
{
    const ctn__isa isa = ctn__isa_in_use();
    const int64_t n = b->fft->n, step = b->inner;
    const T edge = (T)b->edge, middle = (T)b->middle;
    if (b->what == FROM_HALF) {
        if (b->half) NAME(store_pairs)[isa](y, u->re, u->im, at, step, n, L);
        else NAME(store_real)[isa](y, u->re, at, step, n, L);
        return;
    }
    if (b->what == TO_HALF && b->half) {
        NAME(to_half)[isa](u->re, u->im, v->re, v->im, b->half, n, L, edge, middle);
        NAME(swap)(u, v);
    } else if (edge != 1 || middle != 1) {
        NAME(weigh)[isa](u->re, u->im, b->rows[1], L, edge, middle);
    }
    NAME(store)[isa](y, u->re, u->im, at, step, b->rows[1], L);
}

/* The block of L lines from `first`, through scratch for 4 arrays of it. */
static void NAME(run_block)(const job *b, const T *x, T *y, int64_t first, int64_t L, T *scratch)
{
    const int64_t all = b->room * L;
    int64_t at[VECTOR];
    NAME(block) u = {scratch, scratch + all}, v = {scratch + 2 * all, scratch + 3 * all};
    places(b, 0, first, L, at);
    NAME(take)(b, x, at, L, &u, &v);
    if (b->inverse) NAME(turn)(&u, &v);
    NAME(transform)(b->fft, &u, &v, L);
    if (b->inverse) NAME(turn)(&u, &v);
    places(b, 1, first, L, at);
    NAME(give)(b, y, at, L, &u, &v);
}
