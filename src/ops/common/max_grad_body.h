/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of max_grad for one element type, included by max.c once per type. T is the type,
 * NAME gives the functions their names.
 */

/* gy of one result, split evenly among its elements that equal y. */
static void NAME(share)(const ctn__reduce *s, const T *x, T *gx, T y, T gy)
{
    int64_t lines = s->r / s->last, step = s->last_step, count = 0;
    for (int64_t l = 0; l < lines; l++) {
        const T *v = x + ctn__reduce_offset(&s->red, s->red.ndim - 1, l);
        for (int64_t i = 0; i < s->last; i++)
            count += v[i * step] == y || (v[i * step] != v[i * step] && y != y);
    }
    T share = gy / (T)count;
    for (int64_t l = 0; l < lines; l++) {
        int64_t off = ctn__reduce_offset(&s->red, s->red.ndim - 1, l);
        for (int64_t i = 0; i < s->last; i++) {
            T v = x[off + i * step];
            gx[off + i * step] = v == y || (v != v && y != y) ? share : 0;
        }
    }
}

/* The same for results i to i + nc - 1, which are contiguous in memory. */
CTN__PER_ISA(NAME(share_columns),
             (const ctn__reduce *s, const void *in, const void *best, const void *grad, void *out,
              int64_t i, int64_t nc),
             (s, in, best, grad, out, i, nc))
{
    const int64_t at = ctn__reduce_offset(&s->kept, s->kept.ndim, i);
    const T *x = (const T *)in + at, *restrict y = (const T *)best + i;
    T *gx = (T *)out + at, share[COLS];
    int32_t count[COLS];
    for (int64_t c = 0; c < nc; c++) count[c] = 0;
    for (int64_t r = 0; r < s->r; r++) {
        const T *restrict v = x + ctn__reduce_offset(&s->red, s->red.ndim, r);
        CTN__SIMD(c, 0, nc, const T p = v[c]; const T q = y[c];
                  count[c] += (p == q) | ((p != p) & (q != q));)
    }
    for (int64_t c = 0; c < nc; c++) share[c] = ((const T *)grad)[i + c] / (T)count[c];
    for (int64_t r = 0; r < s->r; r++) {
        const int64_t off = ctn__reduce_offset(&s->red, s->red.ndim, r);
        const T *restrict v = x + off;
        T *restrict g = gx + off;
        CTN__SIMD(c, 0, nc, const T p = v[c]; const T q = y[c];
                  g[c] = ((p == q) | ((p != p) & (q != q))) ? share[c] : (T)0;)
    }
}

#undef T
#undef NAME
