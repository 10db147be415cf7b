/* SPDX-License-Identifier: Apache-2.0
 *
 * The broadcasting walk: one output and up to three inputs seen in the output's shape, neighbouring
 * dimensions merged where every operand allows it.
 */
#include "ops/ops.h"

void ctn__walk_init(ctn__walk *w, const ctn_desc *out, int nin, const ctn_desc *din)
{
    ctn_desc v[CTN__WALK_MAX];
    w->nin = nin;
    w->nd = 0;
    for (int k = 0; k < nin; k++) v[k] = ctn__broadcast_view(&din[k], out);
    for (int i = 0; i < out->ndim; i++) {
        if (out->dim[i] == 1) continue;
        int j = w->nd - 1;
        bool merge = j >= 0;
        for (int k = 0; k < nin && merge; k++)
            merge = w->stride[k][j] == v[k].stride[i] * out->dim[i];
        if (!merge) {
            j = w->nd++;
            w->dim[j] = 1;
        }
        w->dim[j] *= out->dim[i];
        for (int k = 0; k < nin; k++) w->stride[k][j] = v[k].stride[i];
    }
    if (w->nd == 0) {
        w->nd = 1;
        w->dim[0] = 1;
        for (int k = 0; k < nin; k++) w->stride[k][0] = 1;
    }
    w->run = w->dim[w->nd - 1];
    w->rows = 1;
    for (int i = 0; i < w->nd - 1; i++) w->rows *= w->dim[i];
    if (w->run == 0) w->rows = 0;
}

int64_t ctn__walk_offset(const ctn__walk *w, int k, int64_t row)
{
    int64_t off = 0;
    for (int i = w->nd - 2; i >= 0; i--) {
        off += row % w->dim[i] * w->stride[k][i];
        row /= w->dim[i];
    }
    return off;
}

#define COPY_RUN(T)                                               \
    do {                                                          \
        const T *x = src;                                         \
        T *y = dst;                                               \
        const T c = x[0];                                         \
        if (stride == 0)                                          \
            for (int64_t i = 0; i < n; i++) y[i] = c;             \
        else                                                      \
            for (int64_t i = 0; i < n; i++) y[i] = x[i * stride]; \
    } while (0)

static void copy_run(const void *src, int64_t stride, size_t size, int64_t n, void *dst)
{
    if (stride == 1) {
        memcpy(dst, src, (size_t)n * size);
        return;
    }
    switch (size) {
    case 1: COPY_RUN(uint8_t); break;
    case 2: COPY_RUN(uint16_t); break;
    case 4: COPY_RUN(uint32_t); break;
    default: COPY_RUN(uint64_t); break;
    }
}

void ctn__walk_copy(const ctn__walk *w, int k, const void *src, size_t size, int64_t first,
                    int64_t n, void *dst)
{
    const int64_t stride = w->stride[k][w->nd - 1];
    int64_t row = first / w->run, at = first % w->run;
    for (char *to = dst; n > 0; row++, at = 0) {
        const int64_t m = w->run - at < n ? w->run - at : n;
        const int64_t off = ctn__walk_offset(w, k, row) + at * stride;
        copy_run((const char *)src + off * (int64_t)size, stride, size, m, to);
        to += m * (int64_t)size;
        n -= m;
    }
}
