/* SPDX-License-Identifier: Apache-2.0
 *
 * The loops of rows.c for one element type, included once per type. T is the type, NAME gives the
 * functions their names. COLS columns of a row are one tile, which stays in registers while the
 * rows of a segment are combined.
 */

/* acc[c] = the sum of terms k to end - 1 in column c of the tile at x; w has their weights. */
static inline __attribute__((always_inline)) void NAME(add_terms)(T *restrict acc,
                                                                  const ctn__rows *r, const T *x,
                                                                  const T *w, int64_t k,
                                                                  int64_t end, int64_t nc)
{
    const int64_t wn = r->D / r->width, last = r->terms - 1;
    for (int64_t c = 0; c < nc; c++) acc[c] = 0;
    for (; k < end; k++) {
        const int64_t next = k + AHEAD < last ? k + AHEAD : last;
        const T *ahead = x + ctn__index_get(r->row, r->row_type, next) * r->D;
        for (int64_t c = 0; c < nc; c += 64 / (int64_t)sizeof(T)) __builtin_prefetch(ahead + c);
        const T *v = x + ctn__index_get(r->row, r->row_type, k) * r->D;
        if (w) {
            const T f = w[k * wn];
            for (int64_t c = 0; c < nc; c++) acc[c] += f * v[c];
        } else
            for (int64_t c = 0; c < nc; c++) acc[c] += v[c];
    }
}

static inline __attribute__((always_inline)) void NAME(sum_tile)(const ctn__rows *r, const T *x,
                                                                 const T *w, const T *base, T *y,
                                                                 int64_t k, int64_t end, int64_t nc)
{
    T acc[COLS];
    if (end - k <= CHUNK) {
        NAME(add_terms)(acc, r, x, w, k, end, nc);
    } else {
        double total[COLS] = {0};
        for (; k < end; k += CHUNK) {
            NAME(add_terms)(acc, r, x, w, k, end - k < CHUNK ? end : k + CHUNK, nc);
            for (int64_t c = 0; c < nc; c++) total[c] += (double)acc[c];
        }
        for (int64_t c = 0; c < nc; c++) acc[c] = (T)total[c];
    }
    if (base)
#pragma omp simd /* base may be y */
        for (int64_t c = 0; c < nc; c++) y[c] = base[c] + acc[c];
    else
        for (int64_t c = 0; c < nc; c++) y[c] = acc[c];
}

static inline __attribute__((always_inline)) void NAME(max_tile)(const ctn__rows *r, const T *x,
                                                                 T *y, int64_t k, int64_t end,
                                                                 int64_t nc)
{
    T acc[COLS];
    for (int64_t c = 0; c < nc; c++) acc[c] = k < end ? (T)-INFINITY : 0;
    for (; k < end; k++) {
        const T *v = x + ctn__index_get(r->row, r->row_type, k) * r->D;
        for (int64_t c = 0; c < nc; c++) /* NaN stays: nothing is larger */
            acc[c] = (v[c] > acc[c]) | (v[c] != v[c]) ? v[c] : acc[c];
    }
    for (int64_t c = 0; c < nc; c++) y[c] = acc[c];
}

/* Columns c0 to c0 + nc - 1 of segments first to end - 1 of array `outer`. */
CTN__PER_ISA(NAME(tile),
             (const ctn__rows *r, int64_t outer, int64_t first, int64_t end, int64_t c0,
              int64_t nc),
             (r, outer, first, end, c0, nc))
{
    const T *x = (const T *)r->x + outer * r->rows * r->D + c0;
    const T *w = r->weight ? (const T *)r->weight + c0 / r->width : NULL;
    const int64_t shift = outer * r->n * r->D + c0;
    int64_t k = ctn__index_get(r->offsets, r->offset_type, first);
    for (int64_t v = first; v < end; v++) {
        const int64_t e = ctn__index_get(r->offsets, r->offset_type, v + 1);
        const T *base = r->base ? (const T *)r->base + shift + v * r->D : NULL;
        T *y = (T *)r->y + shift + v * r->D;
        if (r->kind == CTN__ROWS_MAX) NAME(max_tile)(r, x, y, k, e, nc);
        else if (base == y && k == e) continue;
        else if (nc == COLS) NAME(sum_tile)(r, x, w, base, y, k, e, COLS);
        else NAME(sum_tile)(r, x, w, base, y, k, e, nc);
        k = e;
    }
}

/* Segments first to end - 1 in n narrow columns, counted over all arrays, from column c0 on. Each
 * column is a lane, so that the loop over the terms runs once for all. */
CTN__PER_ISA(NAME(lanes), (const ctn__rows *r, int64_t c0, int64_t n, int64_t first, int64_t end),
             (r, c0, n, first, end))
{
    const T *x = r->x, *base = r->base;
    T *y = r->y;
    int64_t from[LANES], to[LANES];
    for (int64_t j = 0; j < LANES; j++) { /* lanes beyond the last column repeat it */
        const int64_t at = c0 + (j < n ? j : n - 1), o = at / r->D, c = at % r->D;
        from[j] = o * r->rows * r->D + c;
        to[j] = o * r->n * r->D + c;
    }
    int64_t k = ctn__index_get(r->offsets, r->offset_type, first);
    for (int64_t v = first; v < end; v++) {
        const int64_t e = ctn__index_get(r->offsets, r->offset_type, v + 1), at = v * r->D;
        double acc[LANES] = {0};
        if (base == y && k == e) continue;
        for (; k < e; k++) {
            const T *term = x + ctn__index_get(r->row, r->row_type, k) * r->D;
            for (int64_t j = 0; j < LANES; j++) acc[j] += (double)term[from[j]];
        }
        for (int64_t j = 0; j < n; j++)
            y[to[j] + at] = (T)(base ? base[to[j] + at] + (T)acc[j] : (T)acc[j]);
    }
}

#undef T
#undef NAME
