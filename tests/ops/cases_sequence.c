/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of losses of sequences and of cells of trees. Losses of short sequences are held against
 * the sum over all alignments or labellings, one by one. Those of ctc for longer ones are held
 * against the recursion with probabilities instead of their logarithms. What is not an op of its
 * own is listed under one of the ops that it records.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* clang-format off */
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
/* clang-format on */

/* ---- ctc: x (T,N,V), labels (N,L), [input_lengths, label_lengths] ---------------------------- */

enum { BLANK, REDUCTION, PER_LABEL, ZERO_INFINITY, COMPOSED }; /* p */

static ctn_tensor *ctc_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_ctc_loss(x[0], x[1],
                        CTN_OPT(ctn_ctc_opt, .input_lengths = c->nin > 2 ? x[2] : NULL,
                                .label_lengths = c->nin > 2 ? x[3] : NULL, .blank = c->p[BLANK],
                                .reduction = (ctn_reduction)c->p[REDUCTION],
                                .per_label = (int)c->p[PER_LABEL],
                                .zero_infinity = (int)c->p[ZERO_INFINITY],
                                .composed = (int)c->p[COMPOSED]));
}

/* Does the path of T classes collapse to the L labels? */
static int collapses(const int64_t *path, int64_t T, int64_t blank, const double *label, int64_t L)
{
    int64_t found = 0;
    for (int64_t t = 0; t < T; t++) {
        if (path[t] == blank || (t > 0 && path[t] == path[t - 1])) continue;
        if (found == L || path[t] != (int64_t)label[found]) return 0;
        found++;
    }
    return found == L;
}

/* The probability of the labels; p (T,V) are the probabilities of the classes. */
static double by_paths(const double *p, int64_t T, int64_t V, int64_t blank, const double *label,
                       int64_t L)
{
    int64_t path[8] = {0}, count = 1;
    double sum = 0;
    for (int64_t t = 0; t < T; t++) count *= V;
    for (int64_t i = 0; i < count; i++) {
        double product = 1;
        for (int64_t t = 0, rest = i; t < T; t++, rest /= V) {
            path[t] = rest % V;
            product *= p[t * V + path[t]];
        }
        if (collapses(path, T, blank, label, L)) sum += product;
    }
    return sum;
}

static int64_t class_of(const double *label, int64_t s, int64_t blank)
{
    return s % 2 ? (int64_t)label[s / 2] : blank;
}

static double by_recursion(const double *p, int64_t T, int64_t V, int64_t blank,
                           const double *label, int64_t L)
{
    const int64_t S = 2 * L + 1;
    double *a = calloc((size_t)(2 * S), sizeof *a), *b = a + S;
    a[0] = 1; /* before the first step */
    for (int64_t t = 0; t < T; t++) {
        for (int64_t s = 0; s < S; s++) {
            const int64_t c = class_of(label, s, blank);
            b[s] = a[s] + (s > 0 ? a[s - 1] : 0);
            if (s > 1 && c != blank && c != class_of(label, s - 2, blank)) b[s] += a[s - 2];
            b[s] *= p[t * V + c];
        }
        memcpy(a, b, (size_t)S * sizeof *a);
    }
    const double sum = a[S - 1] + (S > 1 ? a[S - 2] : 0);
    free(a);
    return sum;
}

static void ctc_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t most = c->in[0].dim[0], N = c->in[0].dim[1], V = c->in[0].dim[2];
    double *p = calloc((size_t)(most * V + 1), sizeof *p), all = 0;
    (void)out;
    for (int64_t n = 0; n < N; n++) {
        const int64_t T = c->nin > 2 ? (int64_t)x[2][n] : most;
        const int64_t L = c->nin > 2 ? (int64_t)x[3][n] : c->in[1].dim[1];
        const double *label = x[1] + n * c->in[1].dim[1];
        for (int64_t t = 0; t < T; t++) {
            const double *v = x[0] + (t * N + n) * V;
            double sum = 0;
            for (int64_t k = 0; k < V; k++) sum += exp(v[k]);
            for (int64_t k = 0; k < V; k++) p[t * V + k] = exp(v[k]) / sum;
        }
        double l = -log((T > 6 ? by_recursion : by_paths)(p, T, V, c->p[BLANK], label, L));
        if (c->p[ZERO_INFINITY] && isinf(l)) l = 0;
        if (c->p[PER_LABEL]) l /= L > 1 ? (double)L : 1;
        if (c->p[REDUCTION] == CTN_NONE) y[n] = l;
        all += l;
    }
    if (c->p[REDUCTION] == CTN_SUM) *y = all;
    if (c->p[REDUCTION] == CTN_MEAN) *y = all / (double)N;
    free(p);
}

/* ---- crf: cost (K,K), x (T,N,K), [labels (T,N)], [lengths (N)] ------------------------------- */

enum { CRF_REDUCTION, CRF_OUT }; /* p; out 1: path, 2: score of crf_decode */

static ctn_tensor *crf_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_crf_loss(x[0], x[1], x[2],
                        CTN_OPT(ctn_crf_opt, .lengths = c->nin > 3 ? x[3] : NULL,
                                .reduction = (ctn_reduction)c->p[CRF_REDUCTION]));
}

static ctn_tensor *crf_decode_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *out[2];
    (void)ctx;
    return ctn_crf_decode(x[0], x[1], c->nin > 2 ? x[2] : NULL, &out[0], &out[1]) < 0
               ? NULL
               : out[c->p[CRF_OUT] - 1];
}

/* The score of labelling number i of the first T steps of sample n: digit t of i is label t. */
static double crf_score(const op_case *c, const double *const *x, int64_t n, int64_t T, int64_t i)
{
    const int64_t N = c->in[1].dim[1], K = c->in[1].dim[2];
    double score = 0;
    for (int64_t t = 0, last = 0; t < T; t++, i /= K) {
        score += x[1][(t * N + n) * K + i % K];
        if (t > 0) score += x[0][last * K + i % K];
        last = i % K;
    }
    return score;
}

static int64_t labellings(int64_t K, int64_t T)
{
    int64_t count = 1;
    for (int64_t t = 0; t < T; t++) count *= K;
    return count;
}

static void crf_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t most = c->in[1].dim[0], N = c->in[1].dim[1], K = c->in[1].dim[2];
    double all = 0;
    (void)out;
    for (int64_t n = 0; n < N; n++) {
        const int64_t T = c->nin > 3 ? (int64_t)x[3][n] : most;
        double sum = 0;
        int64_t own = 0;
        for (int64_t i = 0; i < labellings(K, T); i++) sum += exp(crf_score(c, x, n, T, i));
        for (int64_t t = T - 1; t >= 0; t--) own = own * K + (int64_t)x[2][t * N + n];
        const double l = log(sum) - crf_score(c, x, n, T, own);
        if (c->p[CRF_REDUCTION] == CTN_NONE) y[n] = l;
        all += l;
    }
    if (c->p[CRF_REDUCTION] == CTN_SUM) *y = all;
    if (c->p[CRF_REDUCTION] == CTN_MEAN) *y = all / (double)N;
}

static void crf_decode_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t most = c->in[1].dim[0], N = c->in[1].dim[1], K = c->in[1].dim[2];
    (void)out;
    for (int64_t n = 0; n < N; n++) {
        const int64_t T = c->nin > 2 ? (int64_t)x[2][n] : most;
        int64_t best = 0;
        for (int64_t i = 1; i < labellings(K, T); i++)
            if (crf_score(c, x, n, T, i) > crf_score(c, x, n, T, best)) best = i;
        if (c->p[CRF_OUT] == 2) y[n] = crf_score(c, x, n, T, best);
        for (int64_t t = 0; t < most && c->p[CRF_OUT] == 1; t++, best /= K)
            y[t * N + n] = t < T ? (double)(best % K) : 0;
    }
}

/* ---- cells of trees: x (N,(3+n) H), c_1 to c_n (N,H); slstm: x1, x2 (N,4 H), c1, c2 (N,H) ---- */

enum { CELL_C }; /* p: 1 for the state, 0 for the output */

static ctn_tensor *tree_lstm_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *out[2];
    (void)ctx;
    return ctn_tree_lstm(c->nin - 1, x + 1, x[0], &out[0], &out[1]) < 0 ? NULL : out[c->p[CELL_C]];
}

static ctn_tensor *slstm_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *out[2];
    (void)ctx;
    return ctn_slstm(x[2], x[3], x[0], x[1], &out[0], &out[1]) < 0 ? NULL : out[c->p[CELL_C]];
}

static double logistic(double v)
{
    return 1 / (1 + exp(-v));
}

static void tree_lstm_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t H = out->dim[1], children = c->nin - 1;
    for (int64_t i = 0; i < desc_count(out); i++) {
        const double *g = x[0] + i / H * (3 + children) * H + i % H; /* every H-th is a gate */
        double v = tanh(g[0]) * logistic(g[H]);
        for (int64_t k = 0; k < children; k++) v += logistic(g[(3 + k) * H]) * x[1 + k][i];
        y[i] = c->p[CELL_C] ? v : tanh(v) * logistic(g[2 * H]);
    }
}

static void slstm_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for (int64_t i = 0; i < desc_count(out); i++) {
        const double *p = x[0] + 4 * i, *q = x[1] + 4 * i; /* a, i, f, o */
        const double v = tanh(p[0]) * logistic(p[1]) + tanh(q[0]) * logistic(q[1]) +
                         logistic(p[2]) * x[2][i] + logistic(q[2]) * x[3][i];
        y[i] = c->p[CELL_C] ? v : tanh(v) * logistic(p[3] + q[3]);
    }
}

/* clang-format off */
#define INDEX(t, lo_, hi_, ...) {.dtype = t, __VA_ARGS__, .fill = FILL_INDEX, .lo = lo_, .hi = hi_}
/* Labels are lo to hi - 1. */
#define CTC(op_, label, order, T, N, V, L, lo, hi, ...) \
    {.op = op_, .name = label, .nin = 2, .in = {{S3(T, N, V)}, INDEX(CTN_I64, lo, hi, S2(N, L))}, \
     .p = {__VA_ARGS__}, .call = ctc_call, .ref = ctc_ref, .grad = order}
/* With t0 to T steps and l0 to L labels. */
#define CTC_LENGTHS(op_, label, order, T, N, V, L, lo, hi, t0, l0, ...) \
    {.op = op_, .name = label, .nin = 4, \
     .in = {{S3(T, N, V)}, INDEX(CTN_I32, lo, hi, S2(N, L)), \
            INDEX(CTN_I64, t0, (T) + 1, S1(N)), INDEX(CTN_I32, l0, (L) + 1, S1(N))}, \
     .p = {__VA_ARGS__}, .call = ctc_call, .ref = ctc_ref, .grad = order}
#define CRF(label, order, T, N, K, ...) \
    {.op = "gather", .name = label, .nin = 3, \
     .in = {{S2(K, K)}, {S3(T, N, K)}, INDEX(CTN_I64, 0, K, S2(T, N))}, \
     .p = {__VA_ARGS__}, .call = crf_call, .ref = crf_ref, .grad = order}
#define CRF_LENGTHS(label, order, T, N, K, ...) \
    {.op = "gather", .name = label, .nin = 4, \
     .in = {{S2(K, K)}, {S3(T, N, K)}, INDEX(CTN_I32, 0, K, S2(T, N)), \
            INDEX(CTN_I64, 1, (T) + 1, S1(N))}, \
     .p = {__VA_ARGS__}, .call = crf_call, .ref = crf_ref, .grad = order}
#define DECODE(label, order, out, n, T, N, K) \
    {.op = "argmax", .name = label, .nin = n, \
     .in = {{S2(K, K)}, {S3(T, N, K)}, INDEX(CTN_I32, 1, (T) + 1, S1(N))}, \
     .p = {0, out}, .call = crf_decode_call, .ref = crf_decode_ref, .grad = order}
#define CELLS(label, f, ...) \
    {.op = "sigmoid", .name = label "_h", .p = {0}, .call = f##_call, .ref = f##_ref, .grad = 2, \
     __VA_ARGS__}, \
    {.op = "sigmoid", .name = label "_c", .p = {1}, .call = f##_call, .ref = f##_ref, .grad = 2, \
     __VA_ARGS__}
/* clang-format on */

case_table cases_sequence = {
    CTC("ctc", "small", 1, 4, 3, 3, 2, 1, 3, 0, CTN_MEAN),
    CTC("ctc", "none", 1, 5, 3, 3, 2, 1, 3, 0, CTN_NONE),
    CTC("ctc", "last_blank", 1, 5, 2, 4, 2, 0, 3, 3, CTN_SUM),
    CTC("ctc", "no_labels", 1, 3, 2, 3, 0, 1, 3, 0, CTN_SUM),
    CTC("ctc", "impossible", 1, 2, 3, 3, 3, 1, 3, 0, CTN_NONE, 0, 1),
    CTC("ctc", "per_label", 1, 5, 3, 3, 2, 1, 3, 0, CTN_MEAN, 1),
    CTC("ctc", "no_samples", 1, 5, 0, 3, 2, 1, 3, 0, CTN_SUM),
    CTC("ctc", "long", 1, 31, 3, 5, 9, 1, 5, 0, CTN_MEAN),
    CTC("ctc", "large", 1, 97, 7, 33, 21, 1, 33, 0, CTN_NONE),
    CTC_LENGTHS("ctc", "lengths", 1, 6, 7, 3, 2, 1, 3, 4, 0, 0, CTN_NONE),
    CTC_LENGTHS("ctc", "lengths_mean", 1, 6, 7, 3, 2, 1, 3, 3, 0, 0, CTN_MEAN, 1),
    CTC_LENGTHS("ctc", "some_impossible", 1, 5, 9, 3, 3, 1, 3, 0, 0, 0, CTN_SUM, 0, 1),
    CTC_LENGTHS("ctc", "lengths_large", 0, 89, 11, 29, 17, 0, 28, 40, 0, 28, CTN_NONE),
    CTC("ctc", "composed", 2, 4, 2, 3, 2, 1, 3, 0, CTN_MEAN, 0, 0, 1),
    CTC("ctc", "composed_no_labels", 2, 3, 2, 3, 0, 1, 3, 0, CTN_SUM, 0, 0, 1),
    CTC("ctc", "composed_impossible", 1, 2, 3, 3, 3, 1, 3, 0, CTN_NONE, 0, 1, 1),
    CTC_LENGTHS("ctc", "composed_lengths", 2, 6, 3, 3, 2, 1, 3, 4, 0, 0, CTN_NONE, 1, 0, 1),
    CRF("crf_loss", 2, 3, 2, 3, CTN_MEAN),
    CRF("crf_loss_none", 2, 4, 3, 2, CTN_NONE),
    CRF("crf_loss_one_step", 0, 1, 3, 4, CTN_SUM),
    CRF("crf_loss_one_label", 1, 4, 3, 1, CTN_SUM),
    CRF("crf_loss_longer", 1, 7, 5, 4, CTN_SUM),
    CRF_LENGTHS("crf_loss_lengths", 2, 4, 4, 3, CTN_NONE),
    CRF_LENGTHS("crf_loss_lengths_mean", 1, 6, 7, 3, CTN_MEAN),
    DECODE("crf_path", 0, 1, 2, 5, 4, 3),
    DECODE("crf_score", 1, 2, 2, 5, 4, 3),
    DECODE("crf_path_lengths", 0, 1, 3, 6, 9, 3),
    DECODE("crf_score_lengths", 1, 2, 3, 6, 9, 3),
    DECODE("crf_path_one_step", 0, 1, 2, 1, 4, 3),
    CELLS("tree_lstm_leaf", tree_lstm, .nin = 1, .in = {{S2(3, 6)}}),
    CELLS("tree_lstm_one", tree_lstm, .nin = 2, .in = {{S2(3, 20)}, {S2(3, 5)}}),
    CELLS("tree_lstm_three", tree_lstm, .nin = 4,
          .in = {{S2(2, 18)}, {S2(2, 3)}, {S2(2, 3)}, {S2(2, 3)}}),
    CELLS("slstm", slstm, .nin = 4, .in = {{S2(3, 20)}, {S2(3, 20)}, {S2(3, 5)}, {S2(3, 5)}}),
    {0},
};
