/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of rnn and rnn_grad: LSTM, GRU and plain recurrent layers in both directions, with and
 * without biases, initial states and lengths. The composed form (options `composed` and `w_hr`)
 * is held against the same reference. Its cases are listed under tanh and relu, which it records.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "harness.h"

enum { LSTM, GRU, TANH, RELU };
enum { OUT_Y, OUT_H, OUT_C };
enum { MODE, OUT, REVERSE, BIAS, STATE, LENGTHS, COMPOSED, PROJ }; /* p */

/* Numbers of the inputs x, w_ih, w_hh, [b_ih, b_hh], [w_hr], [h0], [c0], [lengths]; 0: none. */
typedef struct {
    int b, hr, h0, c0, lengths;
} places;

static places places_of(const op_case *c)
{
    places i = {0};
    int n = 3;
    if (c->p[BIAS]) {
        i.b = n;
        n += 2;
    }
    if (c->p[PROJ]) i.hr = n++;
    if (c->p[STATE]) i.h0 = n++;
    if (c->p[STATE] && c->p[MODE] == LSTM) i.c0 = n++;
    if (c->p[LENGTHS]) i.lengths = n++;
    return i;
}

static ctn_tensor *rnn_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    const places i = places_of(c);
    ctn_tensor *out[3] = {NULL};
    const ctn_rnn_weights w = {x[1], x[2], i.b ? x[i.b] : NULL, i.b ? x[i.b + 1] : NULL,
                               i.hr ? x[i.hr] : NULL};
    const ctn_rnn_opt *opt =
        CTN_OPT(ctn_rnn_opt, .h0 = i.h0 ? x[i.h0] : NULL, .c0 = i.c0 ? x[i.c0] : NULL,
                .lengths = i.lengths ? x[i.lengths] : NULL, .reverse = c->p[REVERSE] != 0,
                .relu = c->p[MODE] == RELU, .composed = c->p[COMPOSED] != 0);
    ctn_status st = c->p[MODE] == LSTM  ? ctn_lstm(x[0], &w, opt, &out[0], &out[1], &out[2])
                    : c->p[MODE] == GRU ? ctn_gru(x[0], &w, opt, &out[0], &out[1])
                                        : ctn_rnn(x[0], &w, opt, &out[0], &out[1]);
    return st < 0 ? NULL : out[c->p[OUT]];
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Row r of the matrix w times v. */
static double dot(const double *w, int64_t r, const double *v, int64_t n)
{
    double s = 0;
    for (int64_t k = 0; k < n; k++) s += w[r * n + k] * v[k];
    return s;
}

typedef struct {
    const op_case *c;
    const double *const *x;
    int64_t K, H, P, I;
} layer;

/* One step of one sample: h (P) and cell (H) are updated. */
static void step(const layer *l, const double *in, double *h, double *cell)
{
    const places i = places_of(l->c);
    const int64_t W = l->K * l->H, mode = l->c->p[MODE];
    double *p = calloc((size_t)(2 * W + l->H), sizeof *p), *q = p + W, *out = q + W;
    for (int64_t r = 0; r < W; r++) {
        p[r] = dot(l->x[1], r, in, l->I) + (i.b ? l->x[i.b][r] : 0);
        q[r] = dot(l->x[2], r, h, l->P) + (i.b ? l->x[i.b + 1][r] : 0);
    }
    for (int64_t j = 0; j < l->H; j++) {
        const int64_t k1 = l->H + j, k2 = 2 * l->H + j, k3 = 3 * l->H + j;
        if (mode == LSTM) {
            cell[j] = sigmoid(p[k1] + q[k1]) * cell[j] + sigmoid(p[j] + q[j]) * tanh(p[k2] + q[k2]);
            out[j] = sigmoid(p[k3] + q[k3]) * tanh(cell[j]);
        } else if (mode == GRU) {
            const double n = tanh(p[k2] + sigmoid(p[j] + q[j]) * q[k2]), z = sigmoid(p[k1] + q[k1]);
            out[j] = (1 - z) * n + z * h[j];
        } else {
            out[j] = mode == TANH ? tanh(p[j] + q[j]) : fmax(p[j] + q[j], 0);
        }
    }
    for (int64_t j = 0; j < l->P; j++) h[j] = i.hr ? dot(l->x[i.hr], j, out, l->H) : out[j];
    free(p);
}

static void rnn_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    const places at = places_of(c);
    const int64_t T = c->in[0].dim[0], N = c->in[0].dim[1];
    layer l = {c, x, c->p[MODE] == LSTM ? 4 : c->p[MODE] == GRU ? 3 : 1, 0, 0, c->in[0].dim[2]};
    l.H = c->in[2].dim[0] / l.K;
    l.P = c->in[2].dim[1];
    for (int64_t n = 0; n < N; n++) {
        double *h = calloc((size_t)(l.P + l.H), sizeof *h), *cell = h + l.P;
        for (int64_t j = 0; j < l.P && at.h0; j++) h[j] = x[at.h0][n * l.P + j];
        for (int64_t j = 0; j < l.H && at.c0; j++) cell[j] = x[at.c0][n * l.H + j];
        for (int64_t k = 0; k < T; k++) {
            const int64_t t = c->p[REVERSE] ? T - 1 - k : k;
            const bool in = !at.lengths || (double)t < x[at.lengths][n];
            if (in) step(&l, x[0] + (t * N + n) * l.I, h, cell);
            for (int64_t j = 0; j < l.P && c->p[OUT] == OUT_Y; j++)
                y[(t * N + n) * l.P + j] = in ? h[j] : 0;
        }
        for (int64_t j = 0; j < l.P && c->p[OUT] == OUT_H; j++) y[n * l.P + j] = h[j];
        for (int64_t j = 0; j < l.H && c->p[OUT] == OUT_C; j++) y[n * l.H + j] = cell[j];
        free(h);
    }
}

/* clang-format off */
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define X(...) {__VA_ARGS__}
#define W(...) {__VA_ARGS__, .fill = FILL_UNIFORM, .lo = -0.6, .hi = 0.6}
#define LEN(n, lo_, hi_) {.dtype = CTN_I64, S1(n), .fill = FILL_INDEX, .lo = lo_, .hi = (hi_) + 1}
#define LEN32(n, lo_, hi_) {.dtype = CTN_I32, S1(n), .fill = FILL_INDEX, .lo = lo_, .hi = (hi_) + 1}
/* K gates, T steps, N samples, I inputs, H elements */
#define BARE(K, T, N, I, H) X(S3(T, N, I)), W(S2((K) * (H), I)), W(S2((K) * (H), H))
#define BIASED(K, T, N, I, H) BARE(K, T, N, I, H), W(S1((K) * (H))), W(S1((K) * (H)))
#define FULL(K, T, N, I, H) BIASED(K, T, N, I, H), X(S2(N, H))
#define RNN(op_, name_, mode_, out_, reverse_, bias_, state_, lengths_, composed_, proj_, grad_, \
            ...) \
    {.op = op_, .name = name_, .nin = sizeof((case_in[]){__VA_ARGS__}) / sizeof(case_in), \
     .in = {__VA_ARGS__}, .p = {mode_, out_, reverse_, bias_, state_, lengths_, composed_, proj_}, \
     .call = rnn_call, .ref = rnn_ref, .grad = grad_, .engine_sums = 1}

case_table cases_rnn = {
    RNN("rnn", "lstm", LSTM, OUT_Y, 0, 1, 1, 0, 0, 0, 1, FULL(4, 4, 3, 5, 3), X(S2(3, 3))),
    RNN("rnn", "lstm_bare", LSTM, OUT_Y, 0, 0, 0, 0, 0, 0, 1, BARE(4, 3, 2, 3, 5)),
    RNN("rnn", "lstm_final_h", LSTM, OUT_H, 1, 1, 0, 0, 0, 0, 1, BIASED(4, 3, 2, 3, 5)),
    RNN("rnn", "lstm_final_c", LSTM, OUT_C, 0, 1, 1, 0, 0, 0, 1, FULL(4, 3, 2, 2, 3), X(S2(2, 3))),
    RNN("rnn", "lstm_reverse", LSTM, OUT_Y, 1, 1, 1, 0, 0, 0, 1, FULL(4, 3, 2, 2, 3), X(S2(2, 3))),
    RNN("rnn", "lstm_lengths", LSTM, OUT_Y, 0, 1, 1, 1, 0, 0, 1, FULL(4, 5, 4, 2, 3), X(S2(4, 3)),
        LEN(4, 0, 5)),
    RNN("rnn", "lstm_lengths_reverse", LSTM, OUT_Y, 1, 1, 1, 1, 0, 0, 1, FULL(4, 5, 4, 2, 3),
        X(S2(4, 3)), LEN(4, 1, 5)),
    RNN("rnn", "lstm_lengths_final_c", LSTM, OUT_C, 1, 1, 1, 1, 0, 0, 1, FULL(4, 5, 4, 2, 3),
        X(S2(4, 3)), LEN32(4, 0, 5)),
    RNN("rnn", "lstm_one_step", LSTM, OUT_Y, 0, 1, 1, 0, 0, 0, 1, FULL(4, 1, 3, 2, 3), X(S2(3, 3))),
    RNN("rnn", "lstm_one_sample", LSTM, OUT_Y, 1, 1, 0, 0, 0, 0, 1, BIASED(4, 4, 1, 2, 3)),
    RNN("rnn", "lstm_no_samples", LSTM, OUT_Y, 0, 1, 0, 0, 0, 0, 1, BIASED(4, 2, 0, 2, 3)),
    RNN("rnn", "lstm_one_element", LSTM, OUT_Y, 0, 1, 0, 0, 0, 0, 1, BIASED(4, 2, 2, 1, 1)),
    RNN("rnn", "lstm_37", LSTM, OUT_Y, 0, 1, 1, 1, 0, 0, 1, FULL(4, 3, 13, 7, 37), X(S2(13, 37)),
        LEN(13, 1, 3)),
    RNN("rnn", "lstm_64", LSTM, OUT_Y, 1, 1, 0, 0, 0, 0, 0, BIASED(4, 5, 67, 32, 64)),

    RNN("rnn", "gru", GRU, OUT_Y, 0, 1, 1, 0, 0, 0, 1, FULL(3, 4, 3, 5, 3)),
    RNN("rnn", "gru_bare", GRU, OUT_Y, 1, 0, 0, 0, 0, 0, 1, BARE(3, 3, 2, 3, 5)),
    RNN("rnn", "gru_final_h", GRU, OUT_H, 0, 1, 1, 0, 0, 0, 1, FULL(3, 3, 2, 3, 3)),
    RNN("rnn", "gru_lengths", GRU, OUT_Y, 0, 1, 1, 1, 0, 0, 1, FULL(3, 5, 4, 2, 3), LEN32(4, 0, 5)),
    RNN("rnn", "gru_lengths_reverse", GRU, OUT_Y, 1, 1, 1, 1, 0, 0, 1, FULL(3, 5, 4, 2, 3),
        LEN(4, 0, 5)),
    RNN("rnn", "gru_one_step", GRU, OUT_Y, 0, 1, 1, 0, 0, 0, 1, FULL(3, 1, 1, 2, 3)),
    RNN("rnn", "gru_no_samples", GRU, OUT_H, 0, 1, 0, 0, 0, 0, 1, BIASED(3, 2, 0, 2, 3)),
    RNN("rnn", "gru_37", GRU, OUT_Y, 1, 1, 1, 1, 0, 0, 1, FULL(3, 3, 13, 7, 37), LEN(13, 1, 3)),

    RNN("rnn", "tanh", TANH, OUT_Y, 0, 1, 1, 0, 0, 0, 1, FULL(1, 4, 3, 5, 3)),
    RNN("rnn", "tanh_bare", TANH, OUT_H, 1, 0, 0, 0, 0, 0, 1, BARE(1, 3, 2, 3, 5)),
    RNN("rnn", "tanh_lengths", TANH, OUT_Y, 1, 1, 1, 1, 0, 0, 1, FULL(1, 5, 4, 2, 3), LEN(4, 0, 5)),
    RNN("rnn", "relu", RELU, OUT_Y, 0, 1, 1, 0, 0, 0, 1, FULL(1, 4, 3, 5, 3)),
    RNN("rnn", "relu_37", RELU, OUT_Y, 0, 0, 0, 1, 0, 0, 1, BARE(1, 3, 13, 7, 37), LEN(13, 1, 3)),

    RNN("tanh", "lstm_composed", LSTM, OUT_Y, 1, 1, 1, 0, 1, 0, 2, FULL(4, 2, 2, 2, 2),
        X(S2(2, 2))),
    RNN("tanh", "lstm_composed_lengths", LSTM, OUT_C, 0, 1, 1, 1, 1, 0, 1, FULL(4, 3, 3, 2, 2),
        X(S2(3, 2)), LEN(3, 0, 3)),
    RNN("tanh", "lstm_projection", LSTM, OUT_Y, 0, 1, 0, 0, 0, 1, 2, X(S3(2, 2, 2)), W(S2(12, 2)),
        W(S2(12, 2)), W(S1(12)), W(S1(12)), W(S2(2, 3))),
    RNN("tanh", "lstm_projection_reverse", LSTM, OUT_H, 1, 0, 1, 1, 0, 1, 1, X(S3(4, 3, 2)),
        W(S2(12, 2)), W(S2(12, 2)), W(S2(2, 3)), X(S2(3, 2)), X(S2(3, 3)), LEN(3, 0, 4)),
    RNN("tanh", "gru_composed", GRU, OUT_Y, 0, 1, 1, 1, 1, 0, 2, FULL(3, 2, 2, 2, 2), LEN(2, 1, 2)),
    RNN("tanh", "rnn_composed", TANH, OUT_Y, 0, 1, 0, 0, 1, 0, 1, BIASED(1, 17, 1, 2, 2)),
    RNN("relu", "rnn_composed", RELU, OUT_H, 1, 1, 0, 1, 1, 0, 1, BIASED(1, 3, 2, 2, 3),
        LEN(2, 0, 3)),
    {0},
};
/* clang-format on */
