/* SPDX-License-Identifier: Apache-2.0
 *
 * linear with a few rows, as when text is generated token by token: the time is that of reading W
 * once from memory, so W is read in its own order, AT_ONCE rows next to each other.
 */
#include "engine/isa.h"
#include "ops/ops.h"

enum { AT_ONCE = 4, MOST = 2, SMALL = 65536 }; /* rows of W; rows of x; elements of W */

/* out[k] = x . w[k], for AT_ONCE rows of W. */
CTN__PER_ISA(dots, (const float *x, const float *w, int64_t n, int64_t stride, float *out),
             (x, w, n, stride, out))
{
    const float *w1 = w + stride, *w2 = w1 + stride, *w3 = w2 + stride;
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
    for (int64_t i = 0; i < n; i++) {
        s0 += x[i] * w[i];
        s1 += x[i] * w1[i];
        s2 += x[i] * w2[i];
        s3 += x[i] * w3[i];
    }
    out[0] = s0;
    out[1] = s1;
    out[2] = s2;
    out[3] = s3;
}

bool ctn__few_rows(const ctn_prepare_args *a)
{
    const ctn_desc *x = &a->din[0], *w = &a->din[1];
    return x->dtype == CTN_F32 && a->dout[0].dtype == CTN_F32 && x->dim[0] <= MOST &&
           w->dim[0] >= AT_ONCE && ctn__count(w) >= SMALL && w->layout == 0 && w->stride[1] == 1 &&
           w->stride[0] >= w->dim[1];
}

ctn_status ctn__few_rows_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0], *w = &a->din[1];
    const int64_t N = x->dim[0], I = x->dim[1], O = w->dim[0], blocks = (O + AT_ONCE - 1) / AT_ONCE;
    const float *bias = a->nin > 2 ? a->in[2] : NULL;
    const ctn__isa isa = ctn__isa_in_use();
    float *y = a->out[0];
#pragma omp parallel for schedule(static) num_threads(a->env->threads)
    for (int64_t b = 0; b < blocks; b++) {
        /* the last block begins earlier, so that it has as many rows */
        const int64_t o = b * AT_ONCE < O - AT_ONCE ? b * AT_ONCE : O - AT_ONCE;
        for (int64_t n = 0; n < N; n++) {
            float s[AT_ONCE];
            dots[isa]((const float *)a->in[0] + n * I, (const float *)a->in[1] + o * w->stride[0],
                      I, w->stride[0], s);
            for (int k = 0; k < AT_ONCE; k++) {
                const float v = s[k] + (bias ? bias[o + k] : 0);
                y[n * O + o + k] = a->attr[0] == CTN__ELT_RELU && v < 0 ? 0 : v;
            }
        }
    }
    return CTN_OK;
}
