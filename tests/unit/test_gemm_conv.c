/* SPDX-License-Identifier: Apache-2.0
 *
 * Convolutions by matrix products (engine/gemm_conv.c) and depthwise ones (engine/depthwise.c)
 * against plain loops in double: one to three spatial dimensions, strides, padding, dilation,
 * groups, all three kinds, and what a forward convolution does with its sums. Every CPU runs this,
 * not only those whose plans need it.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "engine/blas.h"
#include "support/ok.h"

typedef struct {
    int spatial;
    int64_t N, I, O, groups, x[3], w[3], stride[3], pad[3], end[3], dilation[3];
} size;

static float *numbers(int64_t n, uint32_t seed)
{
    float *x = malloc((size_t)(n + 1) * sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1;
    }
    return x;
}

static ctn_desc image(int nd, int64_t n, int64_t c, const int64_t *at)
{
    ctn_desc d = {.dtype = CTN_F32, .ndim = nd + 2, .dim = {n, c}};
    for (int i = 0; i < nd; i++) d.dim[2 + i] = at[i];
    ctn__channels_last(&d);
    return d;
}

static int64_t place(const ctn_desc *d, int64_t n, int64_t c, const int64_t *at)
{
    int64_t r = n * d->stride[0] + c * d->stride[1];
    for (int i = 0; i < d->ndim - 2; i++) r += at[i] * d->stride[2 + i];
    return r;
}

static bool next(int64_t *at, const int64_t *count, int nd)
{
    for (int i = nd - 1; i >= 0; i--) {
        if (++at[i] < count[i]) return true;
        at[i] = 0;
    }
    return false;
}

/* Adds every product of the convolution to the operand that is computed. */
static void plain(const size *s, ctn__conv_kind kind, const ctn_desc *dx, const ctn_desc *dw,
                  const ctn_desc *dy, const float *x, const float *w, const float *y, double *out)
{
    const int nd = s->spatial;
    const int64_t Ig = s->I / s->groups, Og = s->O / s->groups;
    for (int64_t n = 0; n < s->N; n++)
        for (int64_t o = 0; o < s->O; o++)
            for (int64_t i = 0; i < Ig; i++) {
                int64_t m[3] = {0};
                do {
                    int64_t k[3] = {0};
                    do {
                        int64_t at[3];
                        bool inside = true;
                        for (int d = 0; d < nd; d++) {
                            at[d] = m[d] * s->stride[d] - s->pad[d] + k[d] * s->dilation[d];
                            inside &= at[d] >= 0 && at[d] < s->x[d];
                        }
                        if (!inside) continue;
                        const int64_t px = place(dx, n, o / Og * Ig + i, at);
                        const int64_t pw = place(dw, o, i, k), py = place(dy, n, o, m);
                        if (kind == CTN__CONV_FORWARD) out[py] += (double)x[px] * (double)w[pw];
                        if (kind == CTN__CONV_DATA) out[px] += (double)y[py] * (double)w[pw];
                        if (kind == CTN__CONV_WEIGHTS) out[pw] += (double)x[px] * (double)y[py];
                    } while (next(k, dw->dim + 2, nd));
                } while (next(m, dy->dim + 2, nd));
            }
}

/* With `extra`: y = relu(scale y + shift + residual); without: y = relu(y + bias). */
static void check(ctn__engine *e, const size *s, ctn__conv_kind kind, bool extra)
{
    ctn__conv_shape shape = {.groups = s->groups};
    int64_t my[3];
    for (int i = 0; i < s->spatial; i++) {
        shape.stride[i] = s->stride[i];
        shape.pad[i] = s->pad[i];
        shape.pad_end[i] = s->end[i];
        shape.dilation[i] = s->dilation[i];
        my[i] =
            (s->x[i] + s->pad[i] + s->end[i] - s->dilation[i] * (s->w[i] - 1) - 1) / s->stride[i] +
            1;
    }
    const ctn_desc dx = image(s->spatial, s->N, s->I, s->x), dy = image(s->spatial, s->N, s->O, my);
    ctn_desc dw = image(s->spatial, s->O, s->I / s->groups, s->w);
    const ctn_desc row = {.dtype = CTN_F32, .ndim = 1, .dim = {s->O}, .stride = {1}};
    const bool forward = kind == CTN__CONV_FORWARD;
    ctn__conv_post post = {.act = forward ? CTN__ELT_RELU : CTN__ELT_NONE};
    if (forward && extra) post = (ctn__conv_post){CTN__ELT_RELU, &row, &row, &dy};
    float *x = numbers(ctn__count(&dx), 1), *w = numbers(ctn__count(&dw), 2);
    float *y = numbers(ctn__count(&dy), 3), *old = numbers(ctn__count(&dy), 4);
    float *bias = numbers(s->O, 5), *scale = numbers(s->O, 6);
    ctn__prim *p;
    OK((s->groups == s->I ? ctn__depthwise : ctn__gemm_conv)(&p, e, kind, &shape, &dx, &dw,
                                                             forward && !extra ? &row : NULL, &dy,
                                                             &post));
    assert_non_null(p);
    const ctn_desc *d = forward ? &dy : kind == CTN__CONV_DATA ? &dx : &dw;
    double *expected = calloc((size_t)ctn__count(d), sizeof *expected);
    assert_non_null(expected);
    plain(s, kind, &dx, &dw, &dy, x, w, y, expected);
    void *ptr[7] = {x, w, NULL, y};
    if (forward && extra) {
        ptr[4] = scale;
        ptr[5] = bias;
        ptr[6] = old;
    } else if (forward) {
        ptr[2] = bias;
    }
    void *scratch = malloc(ctn__prim_scratch(p) + 1);
    OK(ctn__prim_run(p, ptr, scratch));
    const float *result = forward ? y : kind == CTN__CONV_DATA ? x : w;
    for (int64_t i = 0; i < ctn__count(d); i++) {
        double v = expected[i];
        if (forward && extra) v = v * (double)scale[i % s->O] + (double)(bias[i % s->O] + old[i]);
        else if (forward) v += (double)bias[i % s->O];
        if (forward && v < 0) v = 0;
        if (fabs(v - (double)result[i]) > 2e-4)
            fail_msg("kind %d, element %lld: %g instead of %g", kind, (long long)i,
                     (double)result[i], v);
    }
    ctn__prim_free(p);
    void *all[] = {x, w, y, old, bias, scale, expected, scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void every_kind(void **state)
{
    (void)state;
    static const size sizes[] = {
        {2, 3, 5, 7, 1, {9, 8}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        {2, 2, 4, 6, 1, {8, 8}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
        {2, 2, 4, 6, 2, {8, 7}, {1, 1}, {1, 1}, {0, 0}, {0, 0}, {1, 1}},
        {2, 2, 8, 4, 1, {9, 7}, {1, 1}, {2, 2}, {0, 0}, {0, 0}, {1, 1}},
        {2, 2, 6, 4, 2, {11, 10}, {3, 2}, {2, 3}, {1, 0}, {0, 2}, {2, 1}},
        {1, 2, 3, 5, 1, {17}, {5}, {2}, {2}, {1}, {1}},
        {3, 1, 4, 4, 2, {5, 6, 4}, {3, 1, 2}, {1, 2, 1}, {1, 0, 1}, {1, 0, 0}, {1, 1, 2}},
        {2, 2, 3, 4, 1, {40, 40}, {7, 7}, {2, 2}, {3, 3}, {3, 3}, {1, 1}},
        /* several blocks of rows */
        {2, 2, 64, 1, 1, {44, 44}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
        /* depthwise */
        {1, 3, 21, 21, 21, {37}, {5}, {1}, {2}, {2}, {1}},
        {1, 3, 2, 2, 2, {900}, {31}, {1}, {15}, {15}, {1}},
        {2, 2, 87, 87, 87, {9, 8}, {3, 2}, {2, 1}, {1, 0}, {0, 1}, {1, 2}},
        {3, 1, 18, 18, 18, {5, 6, 4}, {3, 1, 2}, {1, 2, 1}, {1, 0, 1}, {1, 0, 0}, {1, 1, 2}},
    };
    for (int threads = 1; threads <= 2; threads++) {
        ctn__engine *e;
        OK(ctn__engine_new(&e, threads));
        const int was = ctn__threads_enter(threads);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            check(e, &sizes[i], CTN__CONV_FORWARD, false);
            check(e, &sizes[i], CTN__CONV_FORWARD, true);
            check(e, &sizes[i], CTN__CONV_DATA, false);
            check(e, &sizes[i], CTN__CONV_WEIGHTS, false);
        }
        ctn__threads_leave(was);
        ctn__engine_free(e);
    }
}

/* What it leaves to oneDNN. */
static void others_are_refused(void **state)
{
    (void)state;
    ctn__engine *e;
    ctn__prim *p;
    OK(ctn__engine_new(&e, 1));
    const int64_t side[] = {4, 4}, taps[] = {3, 3};
    ctn_desc x = image(2, 1, 4, side), w = image(2, 4, 1, taps), y = x;
    ctn__conv_shape s = {{1, 1}, {1, 1}, {1, 1}, {1, 1}, .groups = 4};
    const ctn__conv_post post = {.act = CTN__ELT_NONE};
    OK(ctn__gemm_conv(&p, e, CTN__CONV_FORWARD, &s, &x, &w, NULL, &y, &post));
    assert_null(p);
    ctn_desc rows = x;
    ctn__plain(&rows);
    OK(ctn__depthwise(&p, e, CTN__CONV_FORWARD, &s, &rows, &w, NULL, &y, &post));
    assert_null(p);
    s.groups = 1;
    w = image(2, 4, 4, taps);
    OK(ctn__depthwise(&p, e, CTN__CONV_FORWARD, &s, &x, &w, NULL, &y, &post));
    assert_null(p);
    ctn__plain(&x);
    OK(ctn__gemm_conv(&p, e, CTN__CONV_FORWARD, &s, &x, &w, NULL, &y, &post));
    assert_null(p);
    ctn__engine_free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind),
                                       cmocka_unit_test(others_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
