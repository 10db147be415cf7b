/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of max and min for one element type, included by max.c once per op and type. T is
 * the type, BEST(v, m) the better of two elements, NAME gives the functions their names.
 */

/* The best of m and n contiguous elements. */
static inline __attribute__((always_inline)) T NAME(run)(const T *v, int64_t n, T m)
{
    T lane[WIDE];
    int64_t i = 0;
    for (int j = 0; j < WIDE; j++) lane[j] = m;
    for (; i + WIDE <= n; i += WIDE)
        CTN__SIMD(j, 0, WIDE, const T p = v[i + j]; const T q = lane[j]; lane[j] = BEST(p, q);)
    for (; i + LANES <= n; i += LANES)
        CTN__SIMD(j, 0, LANES, const T p = v[i + j]; const T q = lane[j]; lane[j] = BEST(p, q);)
    for (int64_t k = LANES; k < WIDE; k += LANES) /* four vectors to one */
        CTN__SIMD(j, 0, LANES, const T p = lane[j + k]; const T q = lane[j]; lane[j] = BEST(p, q);)
    CTN__SIMD(j, 0, 8, const T p = lane[j + 8]; const T q = lane[j]; lane[j] = BEST(p, q);)
    CTN__SIMD(j, 0, 4, const T p = lane[j + 4]; const T q = lane[j]; lane[j] = BEST(p, q);)
    for (int64_t j = 0; j < 2; j++) lane[j] = BEST(lane[j + 2], lane[j]);
    lane[0] = BEST(lane[1], lane[0]);
    for (; i < n; i++) m = BEST(v[i], m);
    return BEST(lane[0], m);
}

/* Results i to i + nc - 1, each from its lines of s->last elements. */
CTN__PER_ISA(NAME(rows), (const ctn__reduce *s, const void *in, void *out, int64_t i, int64_t nc),
             (s, in, out, i, nc))
{
    const int64_t lines = s->r / s->last;
    for (int64_t c = i; c < i + nc; c++) {
        const T *x = (const T *)in + ctn__reduce_offset(&s->kept, s->kept.ndim, c);
        T m = x[0];
        for (int64_t l = 0; l < lines; l++) {
            const T *v = x + (l > 0 ? ctn__reduce_offset(&s->red, s->red.ndim - 1, l) : 0);
            if (s->last_step == 1) m = NAME(run)(v, s->last, m);
            else
                for (int64_t k = 0; k < s->last; k++) m = BEST(v[k * s->last_step], m);
        }
        ((T *)out)[c] = m;
    }
}

/* Results i to i + nc - 1, which are contiguous in memory. */
CTN__PER_ISA(NAME(columns),
             (const ctn__reduce *s, const void *in, void *out, int64_t i, int64_t nc),
             (s, in, out, i, nc))
{
    const T *x = (const T *)in + ctn__reduce_offset(&s->kept, s->kept.ndim, i);
    T *restrict y = (T *)out + i;
    for (int64_t c = 0; c < nc; c++) y[c] = x[c];
    for (int64_t r = 1; r < s->r; r++) {
        const T *restrict v = x + ctn__reduce_offset(&s->red, s->red.ndim, r);
        CTN__SIMD(c, 0, nc, const T p = v[c]; const T q = y[c]; y[c] = BEST(p, q);)
    }
}

#undef T
#undef BEST
#undef NAME
