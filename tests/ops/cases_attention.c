/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of rotary, and of attention: lengths around those of a block of the kernel, all masks,
 * grouped queries, and queries that see no key. In f64 attention is composed of other ops, so the
 * comparison of f32 with f64 also compares the kernel, and the gradients of inputs of more than
 * 1000 elements, with the composed form.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "harness.h"

/* What the parameters of a case mean. */
enum { CAUSAL, WINDOW, MASK, LENGTHS, FIRST };

static ctn_tensor *attention_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *mask = c->p[MASK] ? x[3] : NULL;
    ctn_tensor *lengths = c->p[LENGTHS] ? x[3 + c->p[MASK]] : NULL;
    return ctn_attention(x[0], x[1], x[2], mask,
                         CTN_OPT(ctn_attention_opt, .causal = (int)c->p[CAUSAL], .scale = c->q[0],
                                 .window = c->p[WINDOW], .lengths = lengths,
                                 .first = c->p[FIRST] ? x[c->nin - 1] : NULL));
}

/* The element of the mask that belongs to (n,h,l,m); its dimensions may have length 1. */
static double mask_of(const op_case *c, const double *mask, int64_t n, int64_t h, int64_t l,
                      int64_t m)
{
    const case_in *d = &c->in[3];
    const int64_t at[4] = {n, h, l, m};
    int64_t i = 0;
    if (!c->p[MASK]) return 0;
    for (int k = 0; k < d->ndim; k++) i = i * d->dim[k] + (d->dim[k] > 1 ? at[4 - d->ndim + k] : 0);
    return mask[i];
}

static bool sees(const op_case *c, const double *const *x, int64_t n, int64_t l, int64_t m)
{
    if (c->p[FIRST]) l += (int64_t)x[c->nin - 1][n];
    if (c->p[CAUSAL] && m > l) return false;
    if (c->p[WINDOW] && llabs(l - m) >= c->p[WINDOW]) return false;
    return !c->p[LENGTHS] || (double)m < x[3 + c->p[MASK]][n];
}

/* q (N,H,L,E), k (N,K,M,E), v (N,K,M,F) */
static void attention_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *q = &c->in[0], *k = &c->in[1], *v = &c->in[2];
    const int nd = q->ndim;
    const int64_t L = q->dim[nd - 2], E = q->dim[nd - 1], M = k->dim[nd - 2], F = v->dim[nd - 1];
    const int64_t H = nd > 3 ? q->dim[1] : 1, K = nd > 3 ? k->dim[1] : 1;
    const double scale = c->q[0] > 0 ? c->q[0] : 1 / sqrt((double)E);
    double *s = malloc((size_t)(M + 1) * sizeof *s);
    for (int64_t r = 0; s && r < (F > 0 ? desc_count(out) / F : 0); r++) {
        const int64_t n = r / L / H, h = r / L % H, l = r % L, b = n * K + h / (H / K);
        double top = -INFINITY, sum = 0;
        for (int64_t m = 0; m < M; m++) {
            s[m] = 0;
            for (int64_t e = 0; e < E; e++) s[m] += x[0][r * E + e] * x[1][(b * M + m) * E + e];
            s[m] = s[m] * scale + mask_of(c, x[3], n, h, l, m);
            if (!sees(c, x, n, l, m)) s[m] = -INFINITY;
            top = fmax(top, s[m]);
        }
        for (int64_t m = 0; m < M; m++) sum += s[m] = top > -INFINITY ? exp(s[m] - top) : 0;
        for (int64_t f = 0; f < F; f++) {
            y[r * F + f] = 0;
            for (int64_t m = 0; m < M && sum > 0; m++)
                y[r * F + f] += s[m] / sum * x[2][(b * M + m) * F + f];
        }
    }
    free(s);
}

/* Dropout of values that are all 1: the mean of what is kept, so about 1. */
static ctn_tensor *dropout_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_attention(x[0], x[1], x[2], NULL,
                         CTN_OPT(ctn_attention_opt, .dropout = c->q[1],
                                 .causal = (int)c->p[CAUSAL]));
}

/* p: interleaved, dims; q: base, first */
static ctn_tensor *rotary_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_rotary(x[0], CTN_OPT(ctn_rotary_opt, .interleaved = (int)c->p[0], .dims = c->p[1],
                                    .base = c->q[0], .first = c->q[1],
                                    .positions = c->nin > 1 ? x[1] : NULL));
}

static void rotary_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t T = out->dim[out->ndim - 2], E = out->dim[out->ndim - 1];
    const int64_t D = c->p[1] ? c->p[1] : E;
    const double base = c->q[0] > 0 ? c->q[0] : 10000;
    for (int64_t i = 0; i < desc_count(out); i++) {
        const int64_t t = i / E % T, e = i % E;
        const int64_t pair = c->p[0] ? e / 2 : e % (D / 2);
        const bool second = c->p[0] ? e % 2 : e >= D / 2;
        const int64_t other = c->p[0] ? (second ? -1 : 1) : (second ? -D / 2 : D / 2);
        const int64_t n = i / (desc_count(out) / out->dim[0]);
        const double first = c->q[1] + (c->nin > 1 ? x[1][n] : 0);
        const double angle = ((double)t + first) * pow(base, -2 * (double)pair / (double)D);
        y[i] = e >= D ? x[0][i]
                      : x[0][i] * cos(angle) + (second ? 1 : -1) * x[0][i + other] * sin(angle);
    }
}

/* clang-format off */
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
#define X(...) {__VA_ARGS__}
#define KEYS(n, low, high) \
    {.dtype = CTN_I64, .ndim = 1, .dim = {n}, .fill = FILL_INDEX, .lo = low, .hi = high}
/* parameters: causal, window, mask, lengths, first */
#define ATTENTION(n, order, scale, parameters, ...) \
    {.op = "attention", .name = n, .nin = sizeof((case_in[]){__VA_ARGS__}) / sizeof(case_in), \
     .in = {__VA_ARGS__}, .p = parameters, .q = {scale}, \
     .call = attention_call, .ref = attention_ref, .composed = 1, .engine_sums = 2, \
     .grad = order}
#define EMPTY(n, ...) \
    {.op = "softmax", .name = "attention, " n, .nin = 3, .in = {__VA_ARGS__}, \
     .call = attention_call, .ref = attention_ref, .grad = 1}
#define P(...) {__VA_ARGS__}

case_table cases_attention = {
    ATTENTION("plain", 2, 0, P(0), X(S3(2, 5, 4)), X(S3(2, 7, 4)), X(S3(2, 7, 3))),
    ATTENTION("causal", 2, 0, P(1), X(S3(3, 6, 4)), X(S3(3, 6, 4)), X(S3(3, 6, 4))),
    ATTENTION("causal, longer keys", 1, 0.3, P(1),
              X(S4(2, 2, 3, 4)), X(S4(2, 2, 5, 4)), X(S4(2, 2, 5, 2))),
    ATTENTION("mask", 2, 0, P(0, 0, 1),
              X(S4(1, 2, 4, 3)), X(S4(1, 2, 5, 3)), X(S4(1, 2, 5, 3)), X(S2(4, 5))),
    ATTENTION("mask and causal", 1, 0, P(1, 0, 1),
              X(S2(8, 16)), X(S2(8, 16)), X(S2(8, 9)), X(S2(8, 8))),
    ATTENTION("mask of each head", 1, 0, P(0, 0, 1),
              X(S4(2, 4, 3, 3)), X(S4(2, 2, 6, 3)), X(S4(2, 2, 6, 3)), X(S4(1, 4, 3, 6))),
    ATTENTION("window", 2, 0, P(0, 2), X(S3(2, 7, 3)), X(S3(2, 6, 3)), X(S3(2, 6, 3))),
    ATTENTION("causal window", 2, 0, P(1, 3), X(S3(2, 7, 3)), X(S3(2, 7, 3)), X(S3(2, 7, 3))),
    ATTENTION("lengths, some 0", 2, 0, P(0, 0, 0, 1),
              X(S4(5, 2, 3, 4)), X(S4(5, 2, 4, 4)), X(S4(5, 2, 4, 4)), KEYS(5, 0, 3)),
    ATTENTION("grouped queries", 2, 0, P(1),
              X(S4(2, 6, 4, 3)), X(S4(2, 2, 4, 3)), X(S4(2, 2, 4, 3))),
    ATTENTION("one query", 1, 0, P(0, 0, 0, 1),
              X(S4(2, 3, 1, 8)), X(S4(2, 3, 9, 8)), X(S4(2, 3, 9, 8)), KEYS(2, 1, 9)),
    ATTENTION("first", 2, 0, P(1, 0, 0, 0, 1),
              X(S4(3, 2, 3, 4)), X(S4(3, 2, 9, 4)), X(S4(3, 2, 9, 4)), KEYS(3, 0, 7)),
    ATTENTION("first, window and lengths", 2, 0, P(0, 3, 0, 1, 1), X(S3(4, 5, 4)),
              X(S3(4, 8, 4)), X(S3(4, 8, 4)), KEYS(4, 0, 9), KEYS(4, 0, 12)),
    ATTENTION("one query of each group, later", 1, 0, P(1, 6, 0, 0, 1),
              X(S4(2, 6, 1, 20)), X(S4(2, 2, 40, 20)), X(S4(2, 2, 40, 12)), KEYS(2, 0, 40)),
    ATTENTION("one query, mask", 1, 0, P(0, 0, 1), X(S4(2, 2, 1, 16)), X(S4(2, 2, 130, 16)),
              X(S4(2, 2, 130, 16)), X(S4(1, 2, 1, 130), .no_grad = 1)),
    EMPTY("no samples", X(S4(0, 2, 3, 4)), X(S4(0, 2, 3, 4)), X(S4(0, 2, 3, 4))),
    EMPTY("no keys", X(S3(2, 3, 4)), X(S3(2, 0, 4)), X(S3(2, 0, 5))),
    ATTENTION("blocks, odd", 1, 0, P(0),
              X(S4(1, 2, 131, 17)), X(S4(1, 2, 261, 17)), X(S4(1, 2, 261, 13))),
    ATTENTION("blocks, causal", 1, 0, P(1),
              X(S4(1, 2, 200, 16)), X(S4(1, 2, 200, 16)), X(S4(1, 2, 200, 16))),
    ATTENTION("blocks, causal window", 1, 0, P(1, 70),
              X(S4(1, 1, 300, 8)), X(S4(1, 1, 300, 8)), X(S4(1, 1, 300, 8))),
    ATTENTION("blocks, window", 1, 0, P(0, 33),
              X(S4(1, 2, 150, 8)), X(S4(1, 2, 290, 8)), X(S4(1, 2, 290, 8))),
    ATTENTION("blocks, lengths", 1, 0, P(0, 0, 0, 1),
              X(S4(3, 2, 70, 9)), X(S4(3, 2, 140, 9)), X(S4(3, 2, 140, 9)), KEYS(3, 0, 140)),
    ATTENTION("blocks, first", 1, 0, P(1, 40, 0, 0, 1),
              X(S4(2, 2, 70, 9)), X(S4(2, 2, 140, 9)), X(S4(2, 2, 140, 9)), KEYS(2, 0, 150)),
    ATTENTION("blocks, grouped queries", 1, 0, P(1, 0, 0, 1),
              X(S4(2, 4, 130, 8)), X(S4(2, 2, 130, 8)), X(S4(2, 2, 130, 8)), KEYS(2, 100, 131)),
    ATTENTION("blocks, mask", 1, 0, P(1, 0, 1),
              X(S4(2, 2, 66, 12)), X(S4(2, 2, 130, 12)), X(S4(2, 2, 130, 12)),
              X(S4(1, 2, 66, 130), .no_grad = 1)),
    {.op = "rotary", .name = "halves", .nin = 1, .in = {X(S4(2, 3, 5, 8))},
     .call = rotary_call, .ref = rotary_ref, .grad = 2},
    {.op = "rotary", .name = "interleaved, part, later", .nin = 1, .in = {X(S3(2, 4, 10))},
     .p = {1, 6}, .q = {500, 7}, .call = rotary_call, .ref = rotary_ref, .grad = 2},
    {.op = "rotary", .name = "many", .nin = 1, .in = {X(S4(2, 4, 70, 64))}, .p = {0, 32},
     .call = rotary_call, .ref = rotary_ref, .grad = 1},
    {.op = "rotary", .name = "positions", .nin = 2, .in = {X(S4(3, 2, 4, 8)), KEYS(3, 0, 90)},
     .q = {0, 2}, .call = rotary_call, .ref = rotary_ref, .grad = 2},
    {.op = "rotary", .name = "no rows", .nin = 1, .in = {X(S3(2, 0, 4))},
     .call = rotary_call, .ref = rotary_ref, .grad = 1},
    {.op = "attention_dropout", .name = "small", .nin = 3,
     .in = {X(S3(2, 5, 4)), X(S3(2, 7, 4)), X(S3(2, 7, 3))}, .q = {0, 0.3}, .only_f32 = 1,
     .call = dropout_call},
    {.op = "attention_dropout", .name = "blocks", .nin = 3, .only_f32 = 1,
     .in = {X(S3(2, 70, 8)), X(S3(2, 150, 8)), X(S3(2, 150, 8))}, .p = {1}, .q = {0, 0.3},
     .call = dropout_call},
    {0},
};
