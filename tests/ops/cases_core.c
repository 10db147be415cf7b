/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the first ops: add, full, linear, matmul, relu, reshape, transpose, broadcast_to,
 * sum, softmax cross entropy, detach. The references follow the formulas, one output element at
 * a time.
 */
#include <math.h>
#include <stdbool.h>

#include "harness.h"

/* clang-format off */
#define S0() .ndim = 0
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
/* clang-format on */

/* Offset in `in` of the element that is broadcast to `index` of a result with ndim dimensions. */
static int64_t broadcast_offset(const case_in *in, int ndim, const int64_t *index)
{
    int64_t stride[CTN_MAX_DIMS], off = 0;
    case_strides(in->ndim, in->dim, stride);
    for (int k = 0; k < in->ndim; k++)
        if (in->dim[k] != 1) off += index[ndim - in->ndim + k] * stride[k];
    return off;
}

/* ---- add, relu, full, detach ---------------------------------------------------------------- */

static ctn_tensor *add_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_add(x[0], x[1]);
}

static void add_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t at[CTN_MAX_DIMS];
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        y[i] = x[0][broadcast_offset(&c->in[0], out->ndim, at)] +
               x[1][broadcast_offset(&c->in[1], out->ndim, at)];
    }
}

static ctn_tensor *add_self_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_add(ctn_add(x[0], x[0]), x[0]);
}

static void add_self_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)c;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 3 * x[0][i];
}

static ctn_tensor *relu_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_relu(x[0]);
}

static void relu_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)c;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = fmax(x[0][i], 0);
}

/* The input only determines the type. */
static ctn_tensor *full_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_dtype t = c->p[11] ? (ctn_dtype)c->p[11] : ctn_dtype_of(x[0]);
    return ctn_full(ctx, c->q[0], t, (int)c->p[0], c->p + 1);
}

static void full_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)x;
    for (int64_t i = 0; i < desc_count(out); i++)
        y[i] = out->dtype == CTN_F32 ? (double)(float)c->q[0] : c->q[0];
}

static ctn_tensor *detach_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_detach(x[0]);
}

static void same_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)c;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][i];
}

/* ---- matrix products ------------------------------------------------------------------------ */

static ctn_tensor *matmul_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_matmul(x[0], x[1], (int)c->p[0], (int)c->p[1]);
}

/* Treats the last two dimensions as one, so that only batches are broadcast. */
static int64_t batch_offset(const case_in *in, int nbatch, const int64_t *index)
{
    case_in b = *in;
    b.ndim -= 2;
    return broadcast_offset(&b, nbatch, index) * in->dim[in->ndim - 2] * in->dim[in->ndim - 1];
}

static void matmul_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *a = &c->in[0], *b = &c->in[1];
    int nd = out->ndim;
    int64_t at[CTN_MAX_DIMS], ca = a->dim[a->ndim - 1], cb = b->dim[b->ndim - 1];
    int64_t K = c->p[0] ? a->dim[a->ndim - 2] : ca;
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, nd, out->dim, at);
        const double *pa = x[0] + batch_offset(a, nd - 2, at);
        const double *pb = x[1] + batch_offset(b, nd - 2, at);
        int64_t m = at[nd - 2], n = at[nd - 1];
        y[i] = 0;
        for (int64_t k = 0; k < K; k++)
            y[i] += pa[c->p[0] ? k * ca + m : m * ca + k] * pb[c->p[1] ? n * cb + k : k * cb + n];
    }
}

static ctn_tensor *linear_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_linear(x[0], x[1], c->nin > 2 ? x[2] : NULL);
}

static void linear_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t O = c->in[1].dim[0], I = c->in[1].dim[1];
    for (int64_t i = 0; i < desc_count(out); i++) {
        int64_t r = i / O, o = i % O;
        y[i] = c->nin > 2 ? x[2][o] : 0;
        for (int64_t k = 0; k < I; k++) y[i] += x[0][r * I + k] * x[1][o * I + k];
    }
}

/* relu after linear, which fusion turns into one kernel. */
static ctn_tensor *linear_relu_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    return ctn_relu(linear_call(c, ctx, x));
}

static void linear_relu_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    linear_ref(c, x, out, y);
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = fmax(y[i], 0);
}

/* ---- shapes: p[0] number of dimensions, then the dimensions ---------------------------------- */

static ctn_tensor *reshape_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_reshape(x[0], (int)c->p[0], c->p + 1);
}

/* A reshape of a transposed tensor cannot be a view. */
static ctn_tensor *reshape_turned_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_reshape(ctn_transpose(x[0], 2, (const int64_t[]){1, 0}), (int)c->p[0], c->p + 1);
}

static void reshape_turned_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                               double *y)
{
    int64_t R = c->in[0].dim[0], C = c->in[0].dim[1];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[0][i % R * C + i / R];
}

static ctn_tensor *transpose_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_transpose(x[0], (int)c->p[0], c->p + 1);
}

static void transpose_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t at[CTN_MAX_DIMS], stride[CTN_MAX_DIMS];
    case_strides(c->in[0].ndim, c->in[0].dim, stride);
    for (int64_t i = 0; i < desc_count(out); i++) {
        int64_t off = 0;
        unravel(i, out->ndim, out->dim, at);
        for (int k = 0; k < out->ndim; k++) {
            int64_t axis = c->p[1 + k];
            off += at[k] * stride[axis < 0 ? axis + out->ndim : axis];
        }
        y[i] = x[0][off];
    }
}

static ctn_tensor *broadcast_to_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_broadcast_to(x[0], (int)c->p[0], c->p + 1);
}

static void broadcast_to_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                             double *y)
{
    int64_t at[CTN_MAX_DIMS];
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        y[i] = x[0][broadcast_offset(&c->in[0], out->ndim, at)];
    }
}

/* ---- sum: p = keep, naxes, axes ------------------------------------------------------------- */

static ctn_tensor *sum_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_sum(x[0], (int)c->p[1], c->p + 2, (int)c->p[0]);
}

static void sum_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    int64_t at[CTN_MAX_DIMS];
    unsigned gone = c->p[1] == 0 ? ~0u : 0;
    for (int k = 0; k < c->p[1]; k++)
        gone |= 1u << (c->p[2 + k] < 0 ? c->p[2 + k] + in->ndim : c->p[2 + k]);
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < case_count(in); i++) {
        int64_t to = 0;
        unravel(i, in->ndim, in->dim, at);
        for (int k = 0; k < in->ndim; k++)
            if (!(gone >> k & 1)) to = to * in->dim[k] + at[k];
        y[to] += x[0][i];
    }
}

/* ---- softmax cross entropy: p = reduction, ignored class plus one; q = smoothing ------------ */

static ctn_tensor *xent_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    int64_t ignore = c->p[1] - 1;
    return ctn_softmax_cross_entropy_with(x[0], x[1],
                                          CTN_OPT(ctn_softmax_cross_entropy_opt,
                                                  .weights = c->nin > 2 ? x[2] : NULL,
                                                  .reduction = (ctn_reduction)c->p[0],
                                                  .ignore = c->p[1] ? &ignore : NULL,
                                                  .smoothing = c->q[0]));
}

static void xent_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    (void)out;
    int64_t C = c->in[0].dim[c->in[0].ndim - 1], rows = case_count(&c->in[0]) / C;
    bool soft = c->in[1].dtype == 0;
    double loss = 0, norm = 0, s = c->q[0];
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        int64_t t = soft ? -1 : (int64_t)x[1][r];
        if (c->p[1] && t == c->p[1] - 1) continue;
        for (int64_t k = 0; k < C; k++) sum += exp(x[0][r * C + k]);
        for (int64_t k = 0; k < C; k++) {
            double q = (1 - s) * (soft ? x[1][r * C + k] : k == t) + s / (double)C;
            loss -= (c->nin > 2 ? x[2][k] : 1) * q * (x[0][r * C + k] - log(sum));
        }
        norm += soft || c->nin < 3 ? 1 : x[2][t];
    }
    y[0] = c->p[0] == CTN_SUM ? loss : loss / norm;
}

static ctn_tensor *xent_default_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)c, (void)ctx;
    return ctn_softmax_cross_entropy(x[0], x[1]);
}

/* clang-format off */
#define ADD(n, ...) {"add", n, 2, {__VA_ARGS__}, .call = add_call, .ref = add_ref, .grad = 2}
#define MATMUL_TO(n, ta, tb, tol, ...) \
    {"matmul", n, 2, {__VA_ARGS__}, {ta, tb}, .call = matmul_call, .ref = matmul_ref, .grad = 2, \
     .tol32 = tol, .engine_sums = 2}
#define MATMUL(n, ta, tb, ...) MATMUL_TO(n, ta, tb, 0, __VA_ARGS__)
#define LINEAR(n, nin, ...) \
    {"linear", n, nin, {__VA_ARGS__}, .call = linear_call, .ref = linear_ref, .grad = 2, \
     .engine_sums = 2}
#define RELU(n, ...) \
    {"relu", n, 1, {{__VA_ARGS__, .fill = FILL_AWAY}}, .call = relu_call, .ref = relu_ref, \
     .grad = 2}
#define P(...) __VA_ARGS__ /* keeps the commas of one argument together */
#define RESHAPE(n, in, p) \
    {"reshape", n, 1, {in}, p, .call = reshape_call, .ref = same_ref, .grad = 2}
#define TRANSPOSE(n, in, p) \
    {"transpose", n, 1, {in}, p, .call = transpose_call, .ref = transpose_ref, .grad = 2}
#define BROADCAST(n, in, p) \
    {"broadcast_to", n, 1, {in}, p, .call = broadcast_to_call, .ref = broadcast_to_ref, .grad = 2}
#define SUM(n, in, p) {"sum", n, 1, {in}, p, .call = sum_call, .ref = sum_ref, .grad = 2}
#define XENT(n, nin, p, s, ...) \
    {"softmax_cross_entropy", n, nin, {__VA_ARGS__}, p, {s}, xent_call, xent_ref, .grad = 2}
#define CLASSES(t, C, ...) {t, __VA_ARGS__, .fill = FILL_INDEX, .lo = 0, .hi = C}
#define SOFT(...) {__VA_ARGS__, .fill = FILL_UNIFORM, .lo = 0, .hi = 1, .no_grad = 1}
#define WEIGHTS(C) {S1(C), .fill = FILL_UNIFORM, .lo = 0.5, .hi = 2, .no_grad = 1}

case_table cases_core = {
    ADD("same", {S2(3, 5)}, {S2(3, 5)}),
    ADD("row", {S2(3, 5)}, {S1(5)}),
    ADD("column", {S2(3, 5)}, {S2(3, 1)}),
    ADD("outer", {S2(4, 1)}, {S2(1, 7)}),
    ADD("middle", {S3(2, 1, 3)}, {S3(2, 4, 3)}),
    ADD("more_dims", {S1(3)}, {S4(2, 1, 2, 3)}),
    ADD("scalar", {S0()}, {S2(2, 3)}),
    ADD("scalars", {S0()}, {S0()}),
    ADD("zero_rows", {S2(0, 3)}, {S1(3)}),
    ADD("big", {S2(211, 173)}, {S1(173)}),
    {"add", "self", 1, {{S2(3, 4)}}, .call = add_self_call, .ref = add_self_ref, .grad = 2},

    {"full", "matrix", 1, {{S1(1)}}, {2, 3, 5}, {0.1}, .call = full_call, .ref = full_ref},
    {"full", "scalar", 1, {{S1(1)}}, {0}, {-2.5}, .call = full_call, .ref = full_ref},
    {"full", "zero_rows", 1, {{S1(1)}}, {2, 0, 5}, {1}, .call = full_call, .ref = full_ref},
    {"full", "i64", 1, {{S1(1)}}, {1, 7, [11] = CTN_I64}, {-3}, .call = full_call, .ref = full_ref},
    {"full", "u8", 1, {{S1(1)}}, {1, 7, [11] = CTN_U8}, {200}, .call = full_call, .ref = full_ref},

    LINEAR("2d", 3, {S2(5, 7)}, {S2(3, 7)}, {S1(3)}),
    LINEAR("no_bias", 2, {S2(5, 7)}, {S2(3, 7)}),
    LINEAR("3d", 3, {S3(2, 3, 5)}, {S2(4, 5)}, {S1(4)}),
    LINEAR("4d", 2, {S4(2, 1, 3, 2)}, {S2(4, 2)}),
    LINEAR("1d", 3, {S1(5)}, {S2(4, 5)}, {S1(4)}),
    LINEAR("one_output", 3, {S2(4, 3)}, {S2(1, 3)}, {S1(1)}),
    LINEAR("zero_rows", 3, {S2(0, 5)}, {S2(4, 5)}, {S1(4)}),
    LINEAR("zero_inputs", 3, {S2(3, 0)}, {S2(4, 0)}, {S1(4)}),
    LINEAR("zero_inputs_3d", 3, {S3(3, 2, 0)}, {S2(4, 0)}, {S1(4)}),
    LINEAR("big", 3, {S2(67, 129)}, {S2(130, 129)}, {S1(130)}),
    {"linear", "relu", 3, {{S2(6, 5)}, {S2(7, 5)}, {S1(7)}}, .call = linear_relu_call,
     .ref = linear_relu_ref, .grad = 2},

    MATMUL("nn", 0, 0, {S2(3, 5)}, {S2(5, 4)}),
    MATMUL("nt", 0, 1, {S2(3, 5)}, {S2(4, 5)}),
    MATMUL("tn", 1, 0, {S2(5, 3)}, {S2(5, 4)}),
    MATMUL("tt", 1, 1, {S2(5, 3)}, {S2(4, 5)}),
    MATMUL("vector", 0, 0, {S2(1, 5)}, {S2(5, 1)}),
    MATMUL("outer", 0, 0, {S2(4, 1)}, {S2(1, 3)}),
    MATMUL("batch", 0, 0, {S3(2, 3, 5)}, {S3(2, 5, 4)}),
    MATMUL("batch_tn", 1, 0, {S3(2, 5, 3)}, {S3(2, 5, 4)}),
    MATMUL("batch_tt", 1, 1, {S3(2, 5, 3)}, {S3(2, 4, 5)}),
    MATMUL("batch_broadcast", 0, 1, {S4(2, 1, 3, 5)}, {S3(3, 4, 5)}),
    MATMUL("batch_broadcast_a", 0, 0, {S2(3, 5)}, {S3(2, 5, 4)}),
    MATMUL("batch_broadcast_b", 1, 0, {S3(2, 5, 3)}, {S2(5, 4)}),
    MATMUL("batch_of_ones", 0, 0, {S4(3, 1, 17, 20)}, {S2(20, 40)}),
    MATMUL("many_batches_of_ones", 0, 1, {S4(17, 1, 17, 5)}, {S4(1, 1, 17, 5)}),
    MATMUL("batch_both", 0, 0, {S4(3, 1, 2, 2)}, {S4(1, 2, 2, 3)}),
    MATMUL("empty_sum", 0, 0, {S2(3, 0)}, {S2(0, 4)}),
    MATMUL("zero_rows", 0, 0, {S2(0, 3)}, {S2(3, 4)}),
    MATMUL("zero_batch", 0, 0, {S3(0, 2, 3)}, {S2(3, 4)}),
    MATMUL_TO("big", 0, 0, 1e-4, {S2(70, 300)}, {S2(300, 65)}),
    MATMUL("big_batch", 0, 1, {S3(5, 40, 33)}, {S3(5, 31, 33)}),

    RELU("matrix", S2(5, 7)),
    RELU("scalar", S0()),
    RELU("empty", S2(0, 7)),
    RELU("big", S2(170, 211)),

    RESHAPE("flatten", P({S3(2, 3, 4)}), P({1, 24})),
    RESHAPE("guess", P({S3(2, 3, 4)}), P({2, -1, 6})),
    RESHAPE("scalar", P({S2(1, 1)}), P({0})),
    RESHAPE("from_scalar", P({S0()}), P({3, 1, 1, 1})),
    RESHAPE("zero_rows", P({S2(0, 3)}), P({3, 3, 0, 2})),
    {"reshape", "of_transposed", 1, {{S2(3, 4)}}, {2, 2, 6}, .call = reshape_turned_call,
     .ref = reshape_turned_ref, .grad = 2},

    TRANSPOSE("2d", P({S2(3, 5)}), P({2, 1, 0})),
    TRANSPOSE("rotate", P({S3(2, 3, 4)}), P({3, 1, 2, 0})),
    TRANSPOSE("negative", P({S3(2, 3, 4)}), P({3, -1, -3, -2})),
    TRANSPOSE("same", P({S3(2, 3, 4)}), P({3, 0, 1, 2})),
    TRANSPOSE("4d", P({S4(2, 3, 2, 4)}), P({4, 0, 2, 3, 1})),
    TRANSPOSE("1d", P({S1(4)}), P({1, 0})),
    TRANSPOSE("scalar", P({S0()}), P({0})),
    TRANSPOSE("zero_rows", P({S2(0, 5)}), P({2, 1, 0})),
    TRANSPOSE("big", P({S2(150, 170)}), P({2, 1, 0})),

    BROADCAST("row", P({S1(4)}), P({2, 3, 4})),
    BROADCAST("column", P({S2(3, 1)}), P({2, 3, 4})),
    BROADCAST("middle", P({S3(2, 1, 3)}), P({4, 2, 2, 5, 3})),
    BROADCAST("scalar", P({S0()}), P({2, 2, 3})),
    BROADCAST("same", P({S2(2, 3)}), P({2, 2, 3})),
    BROADCAST("to_zero_rows", P({S2(1, 3)}), P({2, 0, 3})),
    BROADCAST("big", P({S2(1, 170)}), P({2, 160, 170})),

    SUM("all", P({S3(2, 3, 4)}), P({0, 0})),
    SUM("all_keep", P({S3(2, 3, 4)}), P({1, 0})),
    SUM("leading", P({S3(5, 3, 4)}), P({0, 1, 0})),
    SUM("leading_two", P({S3(5, 3, 4)}), P({0, 2, 1, 0})),
    SUM("trailing", P({S3(2, 3, 4)}), P({0, 1, 2})),
    SUM("trailing_keep", P({S3(2, 3, 4)}), P({1, 1, 2})),
    SUM("middle", P({S3(2, 3, 4)}), P({0, 1, 1})),
    SUM("first_and_last", P({S3(2, 3, 4)}), P({1, 2, 0, 2})),
    SUM("negative", P({S3(2, 3, 4)}), P({0, 2, -1, -3})),
    SUM("scalar", P({S0()}), P({0, 0})),
    SUM("vector", P({S1(9)}), P({0, 1, 0})),
    SUM("nothing", P({S2(0, 3)}), P({0, 1, 0})),
    SUM("no_columns", P({S2(3, 0)}), P({0, 1, 0})),
    SUM("no_elements", P({S2(3, 0)}), P({0, 0})),
    SUM("big_leading", P({S2(601, 67)}), P({0, 1, 0})),
    SUM("big_trailing", P({S2(170, 201)}), P({0, 1, 1})),
    SUM("big_all", P({S2(170, 201)}), P({0, 0})),

    {"softmax_cross_entropy", "default", 2, {{S2(4, 5)}, CLASSES(CTN_I64, 5, S1(4))},
     .call = xent_default_call, .ref = xent_ref, .grad = 2},
    XENT("classes_i32", 2, P({CTN_MEAN}), 0, {S2(4, 5)}, CLASSES(CTN_I32, 5, S1(4))),
    XENT("classes_3d", 2, P({CTN_MEAN}), 0, {S3(2, 3, 5)}, CLASSES(CTN_I64, 5, S2(2, 3))),
    XENT("classes_1d", 2, P({CTN_MEAN}), 0, {S1(5)}, CLASSES(CTN_I64, 5, S0())),
    XENT("one_class", 2, P({CTN_MEAN}), 0, {S2(3, 1)}, CLASSES(CTN_I64, 1, S1(3))),
    XENT("sum", 2, P({CTN_SUM}), 0, {S2(4, 5)}, CLASSES(CTN_I64, 5, S1(4))),
    XENT("ignore", 2, P({CTN_MEAN, 1}), 0, {S2(9, 3)}, CLASSES(CTN_I64, 3, S1(9))),
    XENT("smoothing", 2, P({CTN_MEAN}), 0.1, {S2(4, 5)}, CLASSES(CTN_I64, 5, S1(4))),
    XENT("weights", 3, P({CTN_MEAN}), 0, {S2(6, 5)}, CLASSES(CTN_I64, 5, S1(6)), WEIGHTS(5)),
    XENT("weights_ignore_smoothing_sum", 3, P({CTN_SUM, 2}), 0.2, {S2(9, 4)},
         CLASSES(CTN_I64, 4, S1(9)), WEIGHTS(4)),
    XENT("weights_ignore_smoothing", 3, P({CTN_MEAN, 2}), 0.2, {S2(9, 4)},
         CLASSES(CTN_I32, 4, S1(9)), WEIGHTS(4)),
    XENT("soft", 2, P({CTN_MEAN}), 0, {S2(4, 5)}, SOFT(S2(4, 5))),
    XENT("soft_weights_smoothing", 3, P({CTN_SUM}), 0.1, {S3(2, 2, 5)}, SOFT(S3(2, 2, 5)),
         WEIGHTS(5)),
    XENT("zero_rows_sum", 2, P({CTN_SUM}), 0, {S2(0, 5)}, CLASSES(CTN_I64, 5, S1(0))),
    XENT("big", 2, P({CTN_MEAN}), 0, {S2(300, 33)}, CLASSES(CTN_I64, 33, S1(300))),
    XENT("many_classes", 2, P({CTN_MEAN, 2}), 0, {S2(19, 71)}, CLASSES(CTN_I64, 71, S1(19))),
    XENT("many_classes_weights_smoothing", 3, P({CTN_SUM}), 0.1, {S2(5, 71)},
         CLASSES(CTN_I64, 71, S1(5)), WEIGHTS(71)),
    XENT("many_classes_soft", 2, P({CTN_MEAN}), 0.1, {S2(5, 71)}, SOFT(S2(5, 71))),

    {"detach", "matrix", 1, {{S2(3, 5)}}, .call = detach_call, .ref = same_ref},
    {"detach", "scalar", 1, {{S0()}}, .call = detach_call, .ref = same_ref},
    {"detach", "i64", 1, {CLASSES(CTN_I64, 9, S2(3, 2))}, .call = detach_call, .ref = same_ref},
    {0},
};
