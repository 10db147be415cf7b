/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of softmax, the losses, accuracy, confusion_matrix, layer_norm, rms_norm, dropout and
 * random tensors. The references follow the formulas. Distributions, evaluation mode and errors
 * cannot be expressed as cases and are tested in tests/unit/test_ops_loss.c.
 */
#include <math.h>
#include <string.h>

#include "harness.h"

/* clang-format off */
#define S0() .ndim = 0
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
/* clang-format on */

/* ---- softmax: p[0] axis ---------------------------------------------------------------------- */

static ctn_tensor *softmax_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_softmax(x[0], (int)c->p[0]);
}

static ctn_tensor *log_softmax_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_log_softmax(x[0], (int)c->p[0]);
}

static void log_softmax_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    int axis = (int)(c->p[0] < 0 ? c->p[0] + out->ndim : c->p[0]);
    int64_t C = out->dim[axis], inner = 1, n = case_count(&c->in[0]);
    for (int i = axis + 1; i < out->ndim; i++) inner *= out->dim[i];
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i - i / inner % C * inner;
        double top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < C; k++) top = fmax(top, x[0][first + k * inner]);
        for (int64_t k = 0; k < C; k++) sum += exp(x[0][first + k * inner] - top);
        y[i] = x[0][i] - top - log(sum);
    }
}

static void softmax_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    log_softmax_ref(c, x, out, y);
    for (int64_t i = 0; i < case_count(&c->in[0]); i++) y[i] = exp(y[i]);
}

/* ---- losses: p[0] reduction, q[0] delta ------------------------------------------------------ */

/* linear_cross_entropy: p[0] reduction, p[1] the class to ignore; a fourth input is the bias */
static ctn_tensor *lce_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_linear_cross_entropy(x[0], x[1], x[2],
                                    CTN_OPT(ctn_softmax_cross_entropy_opt,
                                            .reduction = (ctn_reduction)c->p[0], .ignore = &c->p[1],
                                            .bias = c->nin > 3 ? x[3] : NULL));
}

static void lce_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    const int64_t V = c->in[1].dim[0], C = c->in[1].dim[1], N = case_count(&c->in[2]);
    int64_t rows = 0;
    *y = 0;
    for (int64_t r = 0; r < N; r++) {
        double top = -INFINITY, sum = 0, own = 0;
        if ((int64_t)x[2][r] == c->p[1]) continue;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t v = 0; v < V; v++) {
                double s = c->nin > 3 ? x[3][v] : 0;
                for (int64_t i = 0; i < C; i++) s += x[0][r * C + i] * x[1][v * C + i];
                if (pass == 0) top = fmax(top, s);
                else sum += exp(s - top);
                if (v == (int64_t)x[2][r]) own = s;
            }
        *y += top + log(sum) - own;
        rows++;
    }
    if (c->p[0] == CTN_MEAN) *y /= (double)rows;
}

static ctn_tensor *sxent_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_sigmoid_cross_entropy(x[0], x[1], (ctn_reduction)c->p[0]);
}

static ctn_tensor *mse_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_mean_squared_error(x[0], x[1], (ctn_reduction)c->p[0]);
}

static ctn_tensor *mae_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_mean_absolute_error(x[0], x[1], (ctn_reduction)c->p[0]);
}

static ctn_tensor *huber_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_huber(x[0], x[1], c->q[0], (ctn_reduction)c->p[0]);
}

static double element(const op_case *c, double x, double t)
{
    double d = fabs(x - t), delta = c->q[0];
    if (strcmp(c->op, "mean_squared_error") == 0) return d * d;
    if (strcmp(c->op, "mean_absolute_error") == 0) return d;
    if (strcmp(c->op, "huber") == 0) return d <= delta ? d * d / 2 : delta * (d - delta / 2);
    double p = 1 / (1 + exp(-x)), q = 1 / (1 + exp(x));
    return -t * log(p) - (1 - t) * log(q);
}

static void loss_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    int64_t n = case_count(&c->in[0]);
    double s = 0;
    for (int64_t i = 0; i < n; i++) s += element(c, x[0][i], x[1][i]);
    y[0] = c->p[0] == CTN_MEAN ? s / (double)n : s;
}

/* ---- metrics: p[0] k or number of classes ---------------------------------------------------- */

static ctn_tensor *accuracy_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_accuracy(x[0], x[1], (int)c->p[0]);
}

static void accuracy_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    int64_t C = c->in[0].dim[c->in[0].ndim - 1], rows = case_count(&c->in[1]), hits = 0, n = 0;
    for (int64_t r = 0; r < rows; r++) {
        const double *v = x[0] + r * C;
        int64_t t = (int64_t)x[1][r], before = 0;
        if (t == -100) continue;
        for (int64_t k = 0; k < C; k++) before += v[k] > v[t] || (k < t && v[k] == v[t]);
        hits += before < c->p[0];
        n++;
    }
    y[0] = n ? (double)hits / (double)n : 0;
}

static ctn_tensor *confusion_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_confusion_matrix(x[0], x[1], c->p[0]);
}

static void confusion_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    int64_t C = c->p[0], rows = case_count(&c->in[1]);
    memset(y, 0, (size_t)(C * C) * sizeof *y);
    for (int64_t r = 0; r < rows; r++) {
        int64_t p = 0;
        if (c->in[0].dtype == CTN_I64 || c->in[0].dtype == CTN_I32) {
            p = (int64_t)x[0][r];
        } else {
            for (int64_t k = 1; k < C; k++)
                if (x[0][r * C + k] > x[0][r * C + p]) p = k;
        }
        y[(int64_t)x[1][r] * C + p]++;
    }
}

/* ---- normalisation: p[0] dimensions, p[1] 1: with weight, p[2] 1: with bias; q[0] eps -------- */

static ctn_tensor *layer_norm_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_layer_norm(x[0], (int)c->p[0], c->p[1] ? x[1] : NULL, c->p[2] ? x[c->nin - 1] : NULL,
                          c->q[0]);
}

static ctn_tensor *rms_norm_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_rms_norm(x[0], (int)c->p[0], c->p[1] ? x[1] : NULL, c->q[0]);
}

static void norm_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t D = 1, n = case_count(&c->in[0]);
    for (int i = out->ndim - (int)c->p[0]; i < out->ndim; i++) D *= out->dim[i];
    for (int64_t first = 0; first < n; first += D) {
        const double *v = x[0] + first;
        double m = 0, q = 0;
        for (int64_t i = 0; i < D && strcmp(c->op, "layer_norm") == 0; i++) m += v[i] / (double)D;
        for (int64_t i = 0; i < D; i++) q += (v[i] - m) * (v[i] - m) / (double)D;
        for (int64_t i = 0; i < D; i++)
            y[first + i] = (v[i] - m) / sqrt(q + c->q[0]) * (c->p[1] ? x[1][i] : 1) +
                           (c->p[2] ? x[c->nin - 1][i] : 0);
    }
}

/* ---- random: dropout q[0] rate; others p[0] ndim, p[1..] dims, q[0], q[1] -------------------- */

static ctn_tensor *dropout_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_dropout(x[0], c->q[0]);
}

/* The input only determines the type. */
static ctn_tensor *normal_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_random_normal(ctx, c->q[0], c->q[1], ctn_dtype_of(x[0]), (int)c->p[0], c->p + 1);
}

static ctn_tensor *uniform_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_random_uniform(ctx, c->q[0], c->q[1], ctn_dtype_of(x[0]), (int)c->p[0], c->p + 1);
}

#define X(...) {__VA_ARGS__}
#define CLASSES(t, lo_, hi_, ...) \
    {.dtype = t, __VA_ARGS__, .fill = FILL_INDEX, .lo = lo_, .hi = hi_}
#define UNIT(...) {__VA_ARGS__, .fill = FILL_UNIFORM, .lo = 0.05, .hi = 0.95}

/* clang-format off */
#define SOFTMAX(name_, axis, order, ...) \
    {.op = "softmax", .name = name_, .nin = 1, .in = {X(__VA_ARGS__)}, .p = {axis}, \
     .call = softmax_call, .ref = softmax_ref, .grad = order}, \
    {.op = "log_softmax", .name = name_, .nin = 1, .in = {X(__VA_ARGS__)}, .p = {axis}, \
     .call = log_softmax_call, .ref = log_softmax_ref, .grad = order}
/* x and t differ by more than the step of finite differences where a loss has kinks. */
#define LOSS(op_, f, name_, reduction, order, delta, ...) \
    {.op = op_, .name = name_, .nin = 2, .p = {reduction}, .q = {delta}, .call = f, \
     .ref = loss_ref, .grad = order, .in = {{__VA_ARGS__, .fill = FILL_AWAY}, \
                           {__VA_ARGS__, .fill = FILL_UNIFORM, .lo = -0.1, .hi = 0.1}}}
#define LOSSES(name_, reduction, order, ...) \
    LOSS("mean_squared_error", mse_call, name_, reduction, order, 0, __VA_ARGS__), \
    LOSS("mean_absolute_error", mae_call, name_, reduction, order ? 1 : 0, 0, __VA_ARGS__), \
    LOSS("huber", huber_call, name_, reduction, order, 0.75, __VA_ARGS__)
#define SXENT(name_, reduction, order, ...) \
    {.op = "sigmoid_cross_entropy", .name = name_, .nin = 2, .p = {reduction}, .call = sxent_call, \
     .ref = loss_ref, .grad = order, .in = {X(__VA_ARGS__), UNIT(__VA_ARGS__)}}
#define NORM(op_, f, name_, n, weight, bias, order, ...) \
    {.op = op_, .name = name_, .nin = 1 + weight + bias, .p = {n, weight, bias}, .q = {1e-3}, \
     .call = f, .ref = norm_ref, .grad = order, .in = {__VA_ARGS__}}
#define RANDOM(name_, lo, hi, nd, ...) \
    {.op = "random_normal", .name = name_, .nin = 1, .in = {X(S0())}, .p = {nd, __VA_ARGS__}, \
     .q = {lo, hi}, .call = normal_call}, \
    {.op = "random_uniform", .name = name_, .nin = 1, .in = {X(S0())}, .p = {nd, __VA_ARGS__}, \
     .q = {lo, hi}, .call = uniform_call}
#define DROPOUT(name_, rate, order, ...) \
    {.op = "dropout", .name = name_, .nin = 1, .in = {X(__VA_ARGS__)}, .q = {rate}, \
     .call = dropout_call, .grad = order}

case_table cases_loss = {
    SOFTMAX("rows", 1, 2, S2(3, 7)),
    SOFTMAX("one", -1, 2, S1(1)),
    SOFTMAX("vector", 0, 2, S1(5)),
    SOFTMAX("middle", 1, 2, S3(2, 5, 3)),
    SOFTMAX("first", 0, 1, S2(4, 70)),
    SOFTMAX("negative", -2, 1, S4(2, 3, 4, 5)),
    SOFTMAX("wide", -1, 0, S2(5, 5003)),
    SOFTMAX("many", 1, 0, S3(3, 129, 131)),
    SOFTMAX("long_rows", -1, 1, S2(2, 333)),
    SOFTMAX("spread", -1, 1, S2(9, 10), .fill = FILL_UNIFORM, .lo = -60, .hi = 60),
    SOFTMAX("no_rows", 1, 1, S2(0, 4)),
    SOFTMAX("no_classes", 1, 0, S2(4, 0)),

    LOSSES("mean", CTN_MEAN, 2, S2(4, 3)),
    LOSSES("sum", CTN_SUM, 2, S2(3, 5)),
    LOSSES("scalar", CTN_MEAN, 2, S0()),
    LOSSES("odd", CTN_MEAN, 1, S3(7, 1, 13)),
    LOSSES("blocks", CTN_MEAN, 0, S2(211, 97)),
    LOSSES("blocks_sum", CTN_SUM, 0, S2(13, 1009)),
    LOSSES("empty", CTN_SUM, 1, S2(0, 3)),
    SXENT("mean", CTN_MEAN, 2, S2(4, 3)),
    SXENT("sum", CTN_SUM, 2, S1(7)),
    SXENT("odd", CTN_MEAN, 1, S3(3, 1, 13)),
    SXENT("blocks", CTN_MEAN, 0, S2(211, 97)),
    SXENT("empty", CTN_SUM, 1, S2(0, 3)),
    {.op = "linear_cross_entropy", .name = "small", .nin = 3, .p = {CTN_MEAN, -100},
     .in = {{S3(2, 3, 4)}, {S2(7, 4)}, {.dtype = CTN_I64, S2(2, 3), .fill = FILL_INDEX, .hi = 7}},
     .call = lce_call, .ref = lce_ref, .composed = 1, .grad = 1},
    {.op = "linear_cross_entropy", .name = "ignored rows, sum", .nin = 3, .p = {CTN_SUM, 2},
     .in = {{S2(9, 5)}, {S2(4, 5)}, {.dtype = CTN_I32, S1(9), .fill = FILL_INDEX, .hi = 4}},
     .call = lce_call, .ref = lce_ref, .composed = 1, .grad = 1},
    {.op = "linear_cross_entropy", .name = "chunks", .nin = 3, .p = {CTN_MEAN, 3},
     .in = {{S2(521, 6)}, {S2(301, 6)},
            {.dtype = CTN_I64, S1(521), .fill = FILL_INDEX, .hi = 301}},
     .call = lce_call, .ref = lce_ref, .composed = 1, .grad = 1, .engine_sums = 2},
    {.op = "linear_cross_entropy", .name = "bias", .nin = 4, .p = {CTN_MEAN, 1},
     .in = {{S3(2, 5, 4)}, {S2(7, 4)},
            {.dtype = CTN_I32, S2(2, 5), .fill = FILL_INDEX, .hi = 7}, {S1(7)}},
     .call = lce_call, .ref = lce_ref, .composed = 1, .grad = 1},
    {.op = "linear_cross_entropy", .name = "bias, many ignored", .nin = 4, .p = {CTN_MEAN, 0},
     .in = {{S2(1031, 5)}, {S2(3, 5)},
            {.dtype = CTN_I64, S1(1031), .fill = FILL_INDEX, .hi = 3}, {S1(3)}},
     .call = lce_call, .ref = lce_ref, .composed = 1, .grad = 1, .engine_sums = 2},
    {.op = "sigmoid_cross_entropy", .name = "large", .nin = 2, .p = {CTN_MEAN}, .call = sxent_call,
     .ref = loss_ref, .grad = 1,
     .in = {X(S1(50), .fill = FILL_UNIFORM, .lo = -30, .hi = 30), UNIT(S1(50))}},

    {.op = "accuracy", .name = "top1", .nin = 2,
     .in = {X(S2(30, 4)), CLASSES(CTN_I64, 0, 4, S1(30))},
     .p = {1}, .call = accuracy_call, .ref = accuracy_ref, .tol64 = 1e-7},
    {.op = "accuracy", .name = "top3_i32", .nin = 2,
     .in = {X(S3(7, 5, 10)), CLASSES(CTN_I32, 0, 10, S2(7, 5))}, .p = {3}, .call = accuracy_call,
     .ref = accuracy_ref, .tol64 = 1e-7},
    {.op = "accuracy", .name = "ties", .nin = 2,
     .in = {X(S2(40, 6), .fill = FILL_INDEX, .lo = 0, .hi = 3), CLASSES(CTN_I64, 0, 6, S1(40))},
     .p = {2}, .call = accuracy_call, .ref = accuracy_ref, .tol64 = 1e-7},
    {.op = "accuracy", .name = "ignored", .nin = 2,
     .in = {X(S2(8, 3)), CLASSES(CTN_I64, -100, -99, S1(8))}, .p = {1}, .call = accuracy_call,
     .ref = accuracy_ref},
    {.op = "accuracy", .name = "many", .nin = 2,
     .in = {X(S2(401, 101)), CLASSES(CTN_I64, 0, 101, S1(401))}, .p = {5}, .call = accuracy_call,
     .ref = accuracy_ref, .tol64 = 1e-7},
    {.op = "accuracy", .name = "no_rows", .nin = 2,
     .in = {X(S2(0, 3)), CLASSES(CTN_I64, 0, 3, S1(0))}, .p = {1}, .call = accuracy_call,
     .ref = accuracy_ref},
    {.op = "confusion_matrix", .name = "logits", .nin = 2,
     .in = {X(S2(50, 4)), CLASSES(CTN_I64, 0, 4, S1(50))}, .p = {4}, .call = confusion_call,
     .ref = confusion_ref},
    {.op = "confusion_matrix", .name = "classes", .nin = 2,
     .in = {CLASSES(CTN_I64, 0, 7, S2(9, 5)), CLASSES(CTN_I32, 0, 7, S2(9, 5))}, .p = {7},
     .call = confusion_call, .ref = confusion_ref},
    {.op = "confusion_matrix", .name = "many", .nin = 2,
     .in = {X(S2(2003, 11)), CLASSES(CTN_I64, 0, 11, S1(2003))}, .p = {11}, .call = confusion_call,
     .ref = confusion_ref},
    {.op = "confusion_matrix", .name = "no_rows", .nin = 2,
     .in = {X(S2(0, 3)), CLASSES(CTN_I64, 0, 3, S1(0))}, .p = {3}, .call = confusion_call,
     .ref = confusion_ref},

    NORM("layer_norm", layer_norm_call, "full", 1, 1, 1, 2, X(S2(3, 5)), X(S1(5)), X(S1(5))),
    NORM("layer_norm", layer_norm_call, "weight", 1, 1, 0, 2, X(S3(2, 3, 4)), X(S1(4))),
    NORM("layer_norm", layer_norm_call, "bias", 1, 0, 1, 2, X(S2(3, 4)), X(S1(4))),
    NORM("layer_norm", layer_norm_call, "bare", 1, 0, 0, 2, X(S2(2, 6))),
    NORM("layer_norm", layer_norm_call, "two_dims", 2, 1, 1, 2,
         X(S3(2, 3, 2)), X(S2(3, 2)), X(S2(3, 2))),
    NORM("layer_norm", layer_norm_call, "all_dims", 2, 1, 1, 1,
         X(S2(3, 4)), X(S2(3, 4)), X(S2(3, 4))),
    NORM("layer_norm", layer_norm_call, "one_element", 1, 1, 1, 1, X(S2(3, 1)), X(S1(1)), X(S1(1))),
    NORM("layer_norm", layer_norm_call, "rows", 1, 1, 1, 1, X(S2(131, 7)), X(S1(7)), X(S1(7))),
    NORM("layer_norm", layer_norm_call, "large", 1, 1, 1, 0,
         X(S2(67, 515)), X(S1(515)), X(S1(515))),
    NORM("layer_norm", layer_norm_call, "no_rows", 1, 1, 1, 1, X(S2(0, 5)), X(S1(5)), X(S1(5))),
    NORM("rms_norm", rms_norm_call, "weight", 1, 1, 0, 2, X(S2(3, 5)), X(S1(5))),
    NORM("rms_norm", rms_norm_call, "bare", 1, 0, 0, 2, X(S3(2, 2, 4))),
    NORM("rms_norm", rms_norm_call, "two_dims", 2, 1, 0, 1, X(S3(5, 3, 2)), X(S2(3, 2))),
    NORM("rms_norm", rms_norm_call, "rows", 1, 1, 0, 1, X(S2(131, 7)), X(S1(7))),
    NORM("rms_norm", rms_norm_call, "large", 1, 1, 0, 0, X(S2(67, 515)), X(S1(515))),
    NORM("rms_norm", rms_norm_call, "no_rows", 1, 1, 0, 1, X(S2(0, 5)), X(S1(5))),

    DROPOUT("half", 0.5, 2, S2(5, 7)),
    DROPOUT("tenth", 0.1, 1, S3(3, 5, 11)),
    DROPOUT("none", 0, 1, S1(9)),
    DROPOUT("blocks", 0.3, 0, S2(17, 1031)),
    DROPOUT("empty", 0.3, 1, S2(0, 4)),
    RANDOM("small", -1, 2, 2, 3, 5),
    RANDOM("scalar", 0, 1, 0, 0),
    RANDOM("blocks", 0, 1, 3, 7, 11, 131),
    RANDOM("empty", 0, 1, 2, 0, 5),
    {0},
};
