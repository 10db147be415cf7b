/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of convolution and transposed convolution in one, two and three spatial dimensions.
 * Parameters: stride, padding, dilation, groups, padding at the end (0: as at the front), output
 * padding; one number for all spatial dimensions. The references visit every pair of input and
 * kernel element.
 */
#include <string.h>

#include "harness.h"

enum { STRIDE, PAD, DILATION, GROUPS, PAD_END, OUT_PAD };

static ctn_conv_opt options(const op_case *c)
{
    ctn_conv_opt o = {.struct_size = sizeof o, .groups = c->p[GROUPS]};
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        o.stride[i] = c->p[STRIDE];
        o.pad[i] = c->p[PAD];
        o.dilation[i] = c->p[DILATION];
        o.pad_end[i] = c->p[PAD_END];
        o.out_pad[i] = c->p[OUT_PAD];
    }
    return o;
}

static ctn_tensor *call_conv(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_conv_opt o = options(c);
    return ctn_conv(x[0], x[1], c->nin > 2 ? x[2] : NULL, &o);
}

static ctn_tensor *call_transpose(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_conv_opt o = options(c);
    return ctn_conv_transpose(x[0], x[1], c->nin > 2 ? x[2] : NULL, &o);
}

/* Sizes in three spatial dimensions, missing ones in front. */
typedef struct {
    int64_t n[3], k[3], m[3], taps, big, small, stride, pad, dil, groups;
    int missing;
} sizes;

static void widen(int64_t *to, int ndim, const int64_t *dim)
{
    for (int i = 0; i < 3; i++) to[i] = i < 5 - ndim ? 1 : dim[2 + i - (5 - ndim)];
}

static sizes measure(const op_case *c, const int64_t *big, const int64_t *small)
{
    int nd = c->in[0].ndim;
    sizes s = {.stride = c->p[STRIDE] ? c->p[STRIDE] : 1,
               .pad = c->p[PAD],
               .dil = c->p[DILATION] ? c->p[DILATION] : 1,
               .groups = c->p[GROUPS] ? c->p[GROUPS] : 1,
               .missing = 5 - nd};
    widen(s.n, nd, big);
    widen(s.m, nd, small);
    widen(s.k, nd, c->in[1].dim);
    s.taps = s.k[0] * s.k[1] * s.k[2];
    s.big = s.n[0] * s.n[1] * s.n[2];
    s.small = s.m[0] * s.m[1] * s.m[2];
    return s;
}

/* Index on the large side that tap t connects with element m of the small side; -1: padding. */
static int64_t joined(const sizes *s, int64_t m, int64_t t)
{
    int64_t at = 0, step = 1;
    for (int i = 2; i >= 0; i--) {
        int64_t mi = m % s->m[i], ti = t % s->k[i];
        m /= s->m[i];
        t /= s->k[i];
        int64_t n = i < s->missing ? 0 : mi * s->stride - s->pad + ti * s->dil;
        if (n < 0 || n >= s->n[i]) return -1;
        at += n * step;
        step *= s->n[i];
    }
    return at;
}

static void ref_conv(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    sizes s = measure(c, c->in[0].dim, out->dim);
    int64_t I = c->in[0].dim[1], O = out->dim[1], Ig = I / s.groups, Og = O / s.groups;
    for (int64_t n = 0; n < out->dim[0]; n++)
        for (int64_t o = 0; o < O; o++)
            for (int64_t m = 0; m < s.small; m++) {
                double v = c->nin > 2 ? x[2][o] : 0;
                for (int64_t i = 0; i < Ig; i++)
                    for (int64_t t = 0; t < s.taps; t++) {
                        int64_t at = joined(&s, m, t);
                        if (at >= 0)
                            v += x[0][(n * I + o / Og * Ig + i) * s.big + at] *
                                 x[1][(o * Ig + i) * s.taps + t];
                    }
                y[(n * O + o) * s.small + m] = v;
            }
}

static void ref_transpose(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    sizes s = measure(c, out->dim, c->in[0].dim);
    int64_t I = c->in[0].dim[1], O = out->dim[1], Ig = I / s.groups, Og = O / s.groups;
    for (int64_t n = 0; n < out->dim[0]; n++) {
        for (int64_t o = 0; o < O; o++)
            for (int64_t b = 0; b < s.big; b++)
                y[(n * O + o) * s.big + b] = c->nin > 2 ? x[2][o] : 0;
        for (int64_t i = 0; i < I; i++)
            for (int64_t o = 0; o < Og; o++)
                for (int64_t m = 0; m < s.small; m++)
                    for (int64_t t = 0; t < s.taps; t++) {
                        int64_t at = joined(&s, m, t), q = i / Ig * Og + o;
                        if (at >= 0)
                            y[(n * O + q) * s.big + at] +=
                                x[0][(n * I + i) * s.small + m] * x[1][(i * Og + o) * s.taps + t];
                    }
    }
}

#define T(...)                                                                                    \
    {                                                                                             \
        .ndim = (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dim = { __VA_ARGS__ } \
    }
#define CONV(label, n, ...)                                                               \
    .op = "conv", .name = label, .nin = n, .call = call_conv, .ref = ref_conv, .grad = 2, \
    .tol32 = 3e-5, .engine_sums = 1, .in = {__VA_ARGS__}
#define TRANSPOSE(label, n, ...)                                                              \
    .op = "conv_data", .name = label, .nin = n, .call = call_transpose, .ref = ref_transpose, \
    .grad = 2, .tol32 = 3e-5, .engine_sums = 1, .in = {__VA_ARGS__}

case_table cases_conv = {
    {CONV("1d", 3, T(2, 3, 7), T(4, 3, 3), T(4)), .p = {1, 1}},
    {CONV("1d-depthwise", 3, T(2, 5, 9), T(5, 1, 4), T(5)), .p = {1, 2, 1, 5}},
    {CONV("1d-depthwise-stride-dilation", 2, T(2, 3, 13), T(3, 1, 3)), .p = {2, 1, 3, 3}},
    {CONV("1d-stride-dilation", 2, T(2, 2, 11), T(3, 2, 3)), .p = {2, 2, 2}},
    {CONV("2d", 3, T(2, 3, 5, 6), T(4, 3, 3, 3), T(4)), .p = {1, 1}},
    {CONV("2d-1x1", 2, T(2, 4, 3, 3), T(5, 4, 1, 1)), .p = {1, 0}},
    {CONV("2d-1x1-stride", 2, T(2, 4, 6, 6), T(5, 4, 1, 1)), .p = {2, 0}},
    {CONV("2d-stride", 2, T(1, 3, 7, 6), T(2, 3, 3, 3)), .p = {2, 1}},
    {CONV("2d-kernel-5", 2, T(1, 1, 8, 7), T(2, 1, 5, 5)), .p = {2, 2}},
    {CONV("2d-dilation", 2, T(1, 2, 7, 7), T(2, 2, 3, 3)), .p = {1, 2, 2}},
    {CONV("2d-groups", 3, T(2, 4, 4, 5), T(6, 2, 3, 3), T(6)), .p = {1, 1, 1, 2}},
    {CONV("2d-depthwise", 2, T(2, 5, 4, 4), T(5, 1, 3, 3)), .p = {1, 1, 1, 5}},
    {CONV("2d-pad-end", 2, T(1, 2, 5, 5), T(3, 2, 2, 2)), .p = {1, 1, 1, 1, -1}},
    {CONV("2d-channels-16", 2, T(1, 16, 4, 4), T(16, 16, 3, 3)), .p = {1, 1}},
    {CONV("2d-no-rows", 3, T(0, 3, 5, 6), T(4, 3, 3, 3), T(4)), .p = {1, 1}},
    {CONV("3d", 3, T(1, 2, 3, 4, 3), T(3, 2, 2, 3, 2), T(3)), .p = {1, 1}},
    {CONV("3d-depthwise", 2, T(1, 3, 3, 4, 3), T(3, 1, 2, 3, 2)), .p = {1, 1, 1, 3}},
    {TRANSPOSE("1d-depthwise", 2, T(2, 3, 5), T(3, 1, 4)), .p = {2, 1, 1, 3}},
    {TRANSPOSE("1d", 3, T(2, 3, 5), T(3, 2, 3), T(2)), .p = {2, 1}},
    {TRANSPOSE("2d", 3, T(2, 3, 3, 4), T(3, 2, 3, 3), T(2)), .p = {2, 1, 1, 1, 0, 1}},
    {TRANSPOSE("2d-groups", 2, T(1, 4, 3, 3), T(4, 2, 2, 2)), .p = {2, 0, 1, 2}},
    {TRANSPOSE("3d", 2, T(1, 2, 2, 3, 2), T(2, 2, 2, 2, 2)), .p = {2}},
    {.op = NULL},
};
