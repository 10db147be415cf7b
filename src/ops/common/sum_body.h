/* SPDX-License-Identifier: Apache-2.0
 *
 * The innermost loops of sum for one element type, included by sum.c once per type. T is the type,
 * NAME gives the functions their names. The order of additions is part of the result: see sum.c.
 */

/* Sum of n contiguous elements. A chain of additions in T is at most CHUNK / LANES long. */
static double NAME(run)(const T *restrict x, int64_t n)
{
    double total = 0;
    int64_t i = 0;
    while (n - i >= LANES) {
        T lane[LANES] = {0};
        int64_t end = n - i < CHUNK ? n - (n - i) % LANES : i + CHUNK;
        for (; i < end; i += LANES) {
            for (int j = 0; j < LANES; j++) lane[j] += x[i + j];
        }
        double part[8];
        for (int j = 0; j < 8; j++)
            part[j] = ((double)lane[j] + (double)lane[j + 8]) +
                      ((double)lane[j + 16] + (double)lane[j + 24]);
        total += ((part[0] + part[1]) + (part[2] + part[3])) +
                 ((part[4] + part[5]) + (part[6] + part[7]));
    }
    for (; i < n; i++) total += (double)x[i];
    return total;
}

static double NAME(run_strided)(const T *x, int64_t n, int64_t step)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++) total += (double)x[i * step];
    return total;
}

/* total[c] += the sum of nr rows at x, four at a time; off has their offsets. */
static void NAME(add_rows)(double *restrict total, const T *restrict x, const int64_t *off,
                           int64_t nr, int64_t nc)
{
    T part[COLS];
    for (int64_t c = 0; c < nc; c++) part[c] = 0;
    int64_t r = 0;
    for (; r + 4 <= nr; r += 4) {
        const T *a = x + off[r], *b = x + off[r + 1], *d = x + off[r + 2], *e = x + off[r + 3];
        for (int64_t c = 0; c < nc; c++) part[c] += (a[c] + b[c]) + (d[c] + e[c]);
    }
    for (; r < nr; r++) {
        const T *a = x + off[r];
        for (int64_t c = 0; c < nc; c++) part[c] += a[c];
    }
    for (int64_t c = 0; c < nc; c++) total[c] += (double)part[c];
}

#undef T
#undef NAME
