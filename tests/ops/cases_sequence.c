/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of losses of sequences. Short sequences are held against the sum over all alignments, one
 * by one. Longer ones are held against the recursion with probabilities instead of their
 * logarithms. The composed form of ctc is listed under logsumexp's ops, which it records.
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
    {0},
};
