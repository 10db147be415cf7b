/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of sum for one element type, included by sum.c for sums of elements and of squares.
 * T is the type, TERM(v) what is added for an element, NAME gives the functions their names. The
 * order of additions is part of the result: see sum.c.
 */

/* Sum of n contiguous elements. A chain of additions in T is at most CHUNK / LANES long. */
static inline __attribute__((always_inline)) double NAME(run)(const T *restrict x, int64_t n)
{
    double total = 0;
    int64_t i = 0;
    while (n - i >= LANES) {
        T lane[LANES] = {0};
        int64_t end = n - i < CHUNK ? n - (n - i) % LANES : i + CHUNK;
        for (; i < end; i += LANES) {
            CTN__SIMD(j, 0, LANES, lane[j] += TERM(x[i + j]);)
        }
        double part[8];
        for (int j = 0; j < 8; j++)
            part[j] = ((double)lane[j] + (double)lane[j + 8]) +
                      ((double)lane[j + 16] + (double)lane[j + 24]);
        total += ((part[0] + part[1]) + (part[2] + part[3])) +
                 ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; i < n; i++) total += (double)TERM(x[i]);
    return total;
}

static inline double NAME(line)(const T *x, int64_t n, int64_t step)
{
    if (step == 1) return NAME(run)(x, n);
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += (double)TERM(x[i * step]);
    return total;
}

/* sum[k] = block i + k of all results, for nb blocks. */
CTN__PER_ISA(NAME(add_blocks),
             (const rows_plan *p, const void *in, double *sum, int64_t i, int64_t nb),
             (p, in, sum, i, nb))
{
    const ctn__reduce *s = &p->s;
    const int nd = s->red.ndim - 1; /* dimensions that number the lines */
    for (int64_t k = 0; k < nb; k++) {
        const int64_t result = p->blocks > 1 ? (i + k) / p->blocks : i + k;
        const int64_t block = p->blocks > 1 ? (i + k) % p->blocks : 0;
        const T *x = (const T *)in + ctn__reduce_offset(&s->kept, s->kept.ndim, result);
        sum[k] = 0;
        if (p->cuts > 1) {
            const int64_t from = block % p->cuts * BLOCK, left = s->last - from;
            x += ctn__reduce_offset(&s->red, nd, block / p->cuts) + from * s->last_step;
            sum[k] = NAME(line)(x, left < BLOCK ? left : BLOCK, s->last_step);
            continue;
        }
        int64_t l = block * p->group, end = l + p->group < p->lines ? l + p->group : p->lines;
        for (; l < end; l++) {
            const int64_t off = l > 0 ? ctn__reduce_offset(&s->red, nd, l) : 0;
            sum[k] += NAME(line)(x + off, s->last, s->last_step);
        }
    }
}

/* Results i to i + n - 1. */
CTN__PER_ISA(NAME(store), (void *out, int64_t i, const double *sum, int64_t n, double divisor),
             (out, i, sum, n, divisor))
{
    T *y = (T *)out + i;
    CTN__SIMD(k, 0, n, y[k] = (T)(sum[k] / divisor);)
}

/* total[c] += the sum of nr rows at x, four at a time; off has their offsets. */
CTN__PER_ISA(NAME(add_rows),
             (double *restrict total, const void *in, const int64_t *off, int64_t nr, int64_t nc),
             (total, in, off, nr, nc))
{
    const T *restrict x = in;
    T part[COLS];
    for (int64_t c = 0; c < nc; c++) part[c] = 0;
    int64_t r = 0;
    for (; r + 4 <= nr; r += 4) {
        const T *a = x + off[r], *b = x + off[r + 1], *d = x + off[r + 2], *e = x + off[r + 3];
        CTN__SIMD(c, 0, nc, part[c] += (TERM(a[c]) + TERM(b[c])) + (TERM(d[c]) + TERM(e[c]));)
    }
    for (; r < nr; r++) {
        const T *a = x + off[r];
        CTN__SIMD(c, 0, nc, part[c] += TERM(a[c]);)
    }
    CTN__SIMD(c, 0, nc, total[c] += (double)part[c];)
}

#undef T
#undef TERM
#undef NAME
