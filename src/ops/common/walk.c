/* SPDX-License-Identifier: Apache-2.0
 *
 * The broadcasting walk: an input of any strides is broadcast to the output's shape and copied to
 * contiguous memory in the output's order. Adjacent dimensions are merged where the strides allow
 * it.
 */
#include "ops/ops.h"

void ctn__walk_init(ctn__walk *w, const ctn_desc *out, const ctn_desc *in)
{
    const ctn_desc v = ctn__broadcast_view(in, out);
    w->nd = 0;
    for (int i = 0; i < out->ndim; i++) {
        if (out->dim[i] == 1) continue;
        int j = w->nd - 1;
        if (j < 0 || w->stride[j] != v.stride[i] * out->dim[i]) {
            j = w->nd++;
            w->dim[j] = 1;
        }
        w->dim[j] *= out->dim[i];
        w->stride[j] = v.stride[i];
    }
    if (w->nd == 0) {
        w->nd = 1;
        w->dim[0] = w->stride[0] = 1;
    }
}

/* Offset, in elements, of row `row` of the innermost dimension. */
static int64_t row_offset(const ctn__walk *w, int64_t row)
{
    int64_t off = 0;
    for (int i = w->nd - 2; i >= 0; i--) {
        off += row % w->dim[i] * w->stride[i];
        row /= w->dim[i];
    }
    return off;
}

/* Copies rows of n elements: stride from element to element, by from row to row. */
#define COPY_ROWS(T)                                                  \
    do {                                                              \
        const T *x = src;                                             \
        T *y = dst;                                                   \
        for (int64_t r = 0; r < rows; r++, x += by, y += n) {         \
            const T c = x[0];                                         \
            if (stride == 0)                                          \
                for (int64_t i = 0; i < n; i++) y[i] = c;             \
            else                                                      \
                for (int64_t i = 0; i < n; i++) y[i] = x[i * stride]; \
        }                                                             \
    } while (0)

static void copy_rows(const void *src, size_t size, int64_t rows, int64_t by, int64_t n,
                      int64_t stride, void *dst)
{
    if (stride == 1) {
        const size_t bytes = (size_t)n * size;
        for (int64_t r = 0; r < rows; r++)
            memcpy((char *)dst + (size_t)r * bytes, (const char *)src + r * by * (int64_t)size,
                   bytes);
        return;
    }
    switch (size) {
    case 1: COPY_ROWS(uint8_t); break;
    case 2: COPY_ROWS(uint16_t); break;
    case 4: COPY_ROWS(uint32_t); break;
    default: COPY_ROWS(uint64_t); break;
    }
}

void ctn__walk_copy(const ctn__walk *w, const void *src, size_t size, int64_t first, int64_t n,
                    void *dst)
{
    const int64_t run = w->dim[w->nd - 1], stride = w->stride[w->nd - 1];
    const int64_t lines = w->nd > 1 ? w->dim[w->nd - 2] : 1,
                  by = w->nd > 1 ? w->stride[w->nd - 2] : 0;
    int64_t row = first / run, at = first % run;
    for (char *to = dst; n > 0; at = 0) {
        const bool part = at > 0 || n < run;
        const int64_t left = lines - row % lines, whole = left < n / run ? left : n / run;
        const int64_t rows = part ? 1 : whole, m = !part ? run : run - at < n ? run - at : n;
        const int64_t off = row_offset(w, row) + at * stride;
        copy_rows((const char *)src + off * (int64_t)size, size, rows, by, m, stride, to);
        to += rows * m * (int64_t)size;
        n -= rows * m;
        row += rows;
    }
}
