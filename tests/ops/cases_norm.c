/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of batch_norm, batch_norm_grad (and _x), channel_affine, group_norm and instance_norm.
 * The first two are called through ctn_apply, so that running statistics are plain inputs and
 * options that only fusion sets (act, residual, joined gradients) are checked too. The call with
 * variables, and the channels-last and bf16 kernels, are in tests/unit/test_bnorm.c.
 */
#include <math.h>

#include "harness.h"
#include "ops/ops.h"

/* clang-format off */
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
#define S5(a, b, c, d, e) .ndim = 5, .dim = {a, b, c, d, e}
#define X(...) {__VA_ARGS__}
#define FIXED(...) {__VA_ARGS__, .no_grad = 1}
#define POSITIVE(...) {__VA_ARGS__, .fill = FILL_UNIFORM, .lo = 0.5, .hi = 2, .no_grad = 1}
/* clang-format on */

enum { EPS, MOMENTUM }; /* q */

/* Index of element k of channel c in a row-major tensor of C channels with S elements. */
static int64_t place(int64_t C, int64_t S, int64_t c, int64_t k)
{
    return (k / S * C + c) * S + k % S;
}

static void sizes(const case_in *in, int64_t *C, int64_t *S, int64_t *M)
{
    *C = in->dim[1];
    *S = 1;
    for (int i = 2; i < in->ndim; i++) *S *= in->dim[i];
    *M = in->dim[0] * *S;
}

static void statistics(const double *x, int64_t C, int64_t S, int64_t M, int64_t c, double *mean,
                       double *var)
{
    double m = 0, v = 0;
    for (int64_t k = 0; k < M; k++) m += x[place(C, S, c, k)] / (double)M;
    for (int64_t k = 0; k < M; k++) v += pow(x[place(C, S, c, k)] - m, 2) / (double)M;
    *mean = m;
    *var = v;
}

/* ---- batch_norm: p[0] output, p[1] act, p[2] add --------------------------------------------- */

/* Inputs: x, scale, shift, rmean, rvar, residual. */

static ctn_tensor *batch_norm_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_scalar s[2] = {CTN_CONST(c->q[EPS]), CTN_CONST(c->q[MOMENTUM])};
    ctn_tensor *out[CTN_MAX_OUT];
    if (ctn_apply(ctx, &ctn__op_batch_norm, c->nin, x, &(ctn_op_args){2, 2, c->p + 1, s}, out) < 0)
        return NULL;
    return out[c->p[0]];
}

static void batch_norm_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t C, S, M;
    (void)out;
    sizes(&c->in[0], &C, &S, &M);
    for (int64_t i = 0; i < C; i++) {
        double m, v, t = c->q[MOMENTUM], b = M > 1 ? (double)M / (double)(M - 1) : 1;
        statistics(x[0], C, S, M, i, &m, &v);
        double r = 1 / sqrt(v + c->q[EPS]);
        double per[5] = {0, m, r, (1 - t) * x[3][i] + t * m, (1 - t) * x[4][i] + t * v * b};
        if (c->p[0] > 0) y[i] = per[c->p[0]];
        for (int64_t k = 0; k < M && c->p[0] == 0; k++) {
            int64_t o = place(C, S, i, k);
            double h = (x[0][o] - m) * r * x[1][i] + x[2][i] + (c->p[2] ? x[5][o] : 0);
            y[o] = c->p[1] && h < 0 ? 0 : h;
        }
    }
}

/* ---- batch_norm_grad: p[0] output, p[1] act, p[2] join; inputs gy, x, scale, more ------------ */

/* y and gy2 are both `more`; if both are needed, gy2 is x. The statistics are those of x. With
 * act 2 (by x), `more` is shift and gy2 is x. */

enum { BY_X = 2 };

static ctn_tensor *batch_norm_grad_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_dtype t = ctn_dtype_of(x[2]);
    int64_t C = ctn_dim(x[2], 0), none[2] = {0, 0};
    ctn_scalar s[2] = {CTN_CONST(c->q[EPS]), CTN_CONST(0.1)};
    ctn_tensor *o[CTN_MAX_OUT], *z = ctn_full(ctx, 0, t, 1, &C), *one = ctn_full(ctx, 1, t, 1, &C);
    ctn_tensor *forward[5] = {x[1], one, z, z, z};
    if (ctn_apply(ctx, &ctn__op_batch_norm, 5, forward, &(ctn_op_args){2, 2, none, s}, o) < 0)
        return NULL;
    ctn_tensor *in[7] = {x[0], x[1], o[1], o[2], x[2], x[c->nin - 1], x[1]};
    int nin = 5 + (c->p[1] != 0) + (c->p[2] != 0);
    ctn_op_args args = {.nattr = 2, .attr = c->p + 1};
    ctn_op *op = c->p[1] == BY_X ? &ctn__op_batch_norm_grad_x : &ctn__op_batch_norm_grad;
    if (ctn_apply(ctx, op, nin, in, &args, o) < 0) return NULL;
    return o[c->p[0]];
}

/* h: x normalised, in channel i. */
static double masked(const op_case *c, const double *const *x, int64_t o, int64_t i, double h)
{
    bool act = c->p[1] != 0, join = c->p[2] != 0;
    double g = x[0][o] + (join ? (act ? x[1][o] : x[3][o]) : 0);
    if (!act) return g;
    return (c->p[1] == BY_X ? h * x[2][i] + x[3][i] : x[3][o]) > 0 ? g : 0;
}

static void batch_norm_grad_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                                double *y)
{
    int64_t C, S, M;
    (void)out;
    sizes(&c->in[0], &C, &S, &M);
    for (int64_t i = 0; i < C; i++) {
        double m, v, sum = 0, dot = 0;
        statistics(x[1], C, S, M, i, &m, &v);
        double r = 1 / sqrt(v + c->q[EPS]);
        for (int64_t k = 0; k < M; k++) {
            int64_t o = place(C, S, i, k);
            double h = (x[1][o] - m) * r, g = masked(c, x, o, i, h);
            sum += g;
            dot += g * h;
        }
        if (c->p[0] == 1) y[i] = dot;
        if (c->p[0] == 2) y[i] = sum;
        for (int64_t k = 0; k < M && c->p[0] % 3 == 0; k++) {
            int64_t o = place(C, S, i, k);
            double h = (x[1][o] - m) * r, g = masked(c, x, o, i, h);
            y[o] = c->p[0] == 3 ? g : x[2][i] * r * (g - sum / (double)M - h * dot / (double)M);
        }
    }
}

/* ---- channel_affine: p[0] act, p[1] add, p[2] bias ------------------------------------------ */

static ctn_tensor *channel_affine_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *out[CTN_MAX_OUT];
    if (c->p[0] == 0 && c->p[1] == 0) return ctn_channel_affine(x[0], x[1], c->p[2] ? x[2] : NULL);
    ctn_op_args args = {.nattr = 3, .attr = c->p};
    return ctn_apply(ctx, &ctn__op_channel_affine, c->nin, x, &args, out) < 0 ? NULL : out[0];
}

static void channel_affine_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                               double *y)
{
    int64_t C, S, M;
    (void)out;
    sizes(&c->in[0], &C, &S, &M);
    for (int64_t i = 0; i < C; i++) {
        for (int64_t k = 0; k < M; k++) {
            int64_t o = place(C, S, i, k);
            double v = x[0][o] * x[1][i] + (c->p[2] ? x[2][i] : 0) + (c->p[1] ? x[3][o] : 0);
            y[o] = c->p[0] && v < 0 ? 0 : v;
        }
    }
}

/* ---- group_norm: p[0] groups, 0: instance_norm; p[1] scale, p[2] shift ---------------------- */

static ctn_tensor *group_norm_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *scale = c->p[1] ? x[1] : NULL, *shift = c->p[2] ? x[c->nin - 1] : NULL;
    if (c->p[0] == 0) return ctn_instance_norm(x[0], scale, shift, c->q[EPS]);
    return ctn_group_norm(x[0], c->p[0], scale, shift, c->q[EPS]);
}

static void group_norm_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t C, S, M, groups = c->p[0] ? c->p[0] : out->dim[1];
    sizes(&c->in[0], &C, &S, &M);
    const int64_t D = C / groups * S;
    for (int64_t g = 0; g < out->dim[0] * groups; g++) {
        double m, v;
        statistics(x[0] + g * D, 1, D, D, 0, &m, &v);
        for (int64_t i = g * D; i < (g + 1) * D; i++) {
            int64_t ch = i / S % C;
            y[i] = (x[0][i] - m) / sqrt(v + c->q[EPS]) * (c->p[1] ? x[1][ch] : 1) +
                   (c->p[2] ? x[c->nin - 1][ch] : 0);
        }
    }
}

/* clang-format off */
#define NORM(op_, call_, ref_, name_, p0, p1, p2, grad_, ...) \
    {.op = op_, .name = name_, .nin = sizeof((case_in[]){__VA_ARGS__}) / sizeof(case_in), \
     .in = {__VA_ARGS__}, .p = {p0, p1, p2}, .q = {1e-3, 0.2}, \
     .call = call_, .ref = ref_, .grad = grad_}
#define BN(name_, out_, act_, add_, grad_, ...) \
    NORM("batch_norm", batch_norm_call, batch_norm_ref, name_, out_, act_, add_, grad_, __VA_ARGS__)
#define BNG(name_, out_, act_, join_, grad_, ...) \
    NORM("batch_norm_grad", batch_norm_grad_call, batch_norm_grad_ref, name_, out_, act_, join_, \
         grad_, __VA_ARGS__)
#define BNGX(name_, out_, join_, ...) \
    NORM("batch_norm_grad_x", batch_norm_grad_call, batch_norm_grad_ref, name_, out_, BY_X, join_, \
         0, __VA_ARGS__)
#define AFFINE(name_, act_, add_, bias_, grad_, ...) \
    NORM("channel_affine", channel_affine_call, channel_affine_ref, name_, act_, add_, bias_, \
         grad_, __VA_ARGS__)
#define GROUP(op_, name_, groups_, scale_, shift_, grad_, ...) \
    NORM(op_, group_norm_call, group_norm_ref, name_, groups_, scale_, shift_, grad_, __VA_ARGS__)
#define PER(c) X(S1(c)), X(S1(c)), FIXED(S1(c)), POSITIVE(S1(c))

case_table cases_norm = {
    BN("1d", 0, 0, 0, 2, X(S3(2, 3, 4)), PER(3)),
    BN("2d", 0, 0, 0, 2, X(S4(2, 2, 2, 3)), PER(2)),
    BN("3d", 0, 0, 0, 2, X(S5(2, 2, 2, 1, 2)), PER(2)),
    BN("no_spatial", 0, 0, 0, 2, X(S2(6, 3)), PER(3)),
    BN("5_channels", 0, 0, 0, 1, X(S4(3, 5, 4, 3)), PER(5)),
    BN("17_channels", 0, 0, 0, 1, X(S3(2, 17, 5)), PER(17)),
    BN("17_columns", 0, 0, 0, 1, X(S2(37, 17)), PER(17)),
    BN("64_channels", 0, 0, 0, 1, X(S4(3, 64, 7, 5)), PER(64)),
    BN("600_columns", 0, 0, 0, 1, X(S2(19, 600)), PER(600)),
    BN("blocks", 0, 0, 0, 1, X(S2(5003, 5)), PER(5)),
    BN("large", 0, 0, 0, 1, X(S3(5, 6, 1001)), PER(6)),
    BN("one_element", 0, 0, 0, 0, X(S3(1, 3, 1)), PER(3)),
    BN("no_rows", 0, 0, 0, 0, X(S3(0, 3, 2)), PER(3)),
    BN("mean", 1, 0, 0, 0, X(S4(3, 5, 4, 3)), PER(5)),
    BN("mean_by_x", 1, 0, 0, 2,
       X(S3(3, 2, 2)), FIXED(S1(2)), FIXED(S1(2)), FIXED(S1(2)), POSITIVE(S1(2))),
    BN("rstd", 2, 0, 0, 0, X(S2(37, 17)), PER(17)),
    BN("rstd_by_x", 2, 0, 0, 2,
       X(S3(3, 2, 2)), FIXED(S1(2)), FIXED(S1(2)), FIXED(S1(2)), POSITIVE(S1(2))),
    BN("running_mean", 3, 0, 0, 0, X(S4(3, 5, 4, 3)), PER(5)),
    BN("running_var", 4, 0, 0, 0, X(S4(3, 5, 4, 3)), PER(5)),
    BN("running_var_one", 4, 0, 0, 0, X(S2(1, 5)), PER(5)),
    BN("relu", 0, 1, 0, 0, X(S4(3, 5, 4, 3)), PER(5)),
    BN("add", 0, 0, 1, 0, X(S4(3, 5, 4, 3)), PER(5), X(S4(3, 5, 4, 3))),
    BN("add_relu", 0, 1, 1, 0, X(S3(4, 6, 1003)), PER(6), X(S3(4, 6, 1003))),
    BN("add_relu_columns", 0, 1, 1, 0, X(S2(100, 7)), PER(7), X(S2(100, 7))),

    BNG("gx", 0, 0, 0, 2, X(S3(3, 2, 2)), X(S3(3, 2, 2)), X(S1(2))),
    BNG("gx_columns", 0, 0, 0, 1, X(S2(7, 3)), X(S2(7, 3)), X(S1(3))),
    BNG("gscale", 1, 0, 0, 2, X(S3(3, 2, 2)), X(S3(3, 2, 2)), FIXED(S1(2))),
    BNG("gshift", 2, 0, 0, 1, X(S3(3, 2, 2)), FIXED(S3(3, 2, 2)), FIXED(S1(2))),
    BNG("g", 3, 0, 0, 1, X(S3(3, 2, 2)), FIXED(S3(3, 2, 2)), FIXED(S1(2))),
    BNG("act", 0, 1, 0, 0, X(S4(3, 5, 4, 3)), X(S4(3, 5, 4, 3)), X(S1(5)), X(S4(3, 5, 4, 3))),
    BNG("join", 0, 0, 1, 0, X(S4(3, 5, 4, 3)), X(S4(3, 5, 4, 3)), X(S1(5)), X(S4(3, 5, 4, 3))),
    BNG("act_join", 0, 1, 1, 0, X(S3(4, 6, 1003)), X(S3(4, 6, 1003)), X(S1(6)), X(S3(4, 6, 1003))),
    BNG("act_join_g", 3, 1, 1, 0, X(S2(50, 17)), X(S2(50, 17)), X(S1(17)), X(S2(50, 17))),
    BNG("no_rows", 0, 0, 0, 0, X(S3(0, 2, 2)), X(S3(0, 2, 2)), X(S1(2))),

    BNGX("gx", 0, 0, X(S4(3, 5, 4, 3)), X(S4(3, 5, 4, 3)), X(S1(5)), X(S1(5))),
    BNGX("gx_columns", 0, 0, X(S2(50, 17)), X(S2(50, 17)), X(S1(17)), X(S1(17))),
    BNGX("gscale", 1, 0, X(S2(50, 17)), X(S2(50, 17)), X(S1(17)), X(S1(17))),
    BNGX("gshift", 2, 0, X(S3(3, 2, 7)), X(S3(3, 2, 7)), X(S1(2)), X(S1(2))),
    BNGX("join", 0, 1, X(S3(4, 6, 103)), X(S3(4, 6, 103)), X(S1(6)), X(S1(6))),
    BNGX("join_g", 3, 1, X(S2(50, 17)), X(S2(50, 17)), X(S1(17)), X(S1(17))),
    BNGX("no_rows", 0, 0, X(S3(0, 2, 2)), X(S3(0, 2, 2)), X(S1(2)), X(S1(2))),

    AFFINE("1d", 0, 0, 1, 2, X(S3(2, 3, 4)), X(S1(3)), X(S1(3))),
    AFFINE("2d", 0, 0, 1, 2, X(S4(2, 5, 2, 3)), X(S1(5)), X(S1(5))),
    AFFINE("3d", 0, 0, 1, 1, X(S5(2, 2, 2, 3, 2)), X(S1(2)), X(S1(2))),
    AFFINE("no_spatial", 0, 0, 1, 2, X(S2(5, 17)), X(S1(17)), X(S1(17))),
    AFFINE("no_bias", 0, 0, 0, 2, X(S3(2, 3, 4)), X(S1(3))),
    AFFINE("64_channels", 0, 0, 1, 1, X(S4(3, 64, 7, 5)), X(S1(64)), X(S1(64))),
    AFFINE("no_rows", 0, 0, 1, 1, X(S3(0, 3, 2)), X(S1(3)), X(S1(3))),
    AFFINE("relu", 1, 0, 1, 0, X(S4(3, 5, 4, 3)), X(S1(5)), X(S1(5))),
    AFFINE("add", 0, 1, 1, 0, X(S4(3, 5, 4, 3)), X(S1(5)), X(S1(5)), X(S4(3, 5, 4, 3))),
    AFFINE("add_relu", 1, 1, 1, 0, X(S2(300, 67)), X(S1(67)), X(S1(67)), X(S2(300, 67))),

    GROUP("channel_affine", "group_norm", 2, 1, 1, 2, X(S4(2, 4, 2, 2)), X(S1(4)), X(S1(4))),
    GROUP("channel_affine", "group_norm_1d", 3, 1, 0, 1, X(S3(2, 6, 5)), X(S1(6))),
    GROUP("channel_affine", "group_norm_shift", 1, 0, 1, 1, X(S5(2, 5, 2, 2, 3)), X(S1(5))),
    GROUP("layer_norm", "group_norm_bare", 4, 0, 0, 2, X(S3(2, 8, 3))),
    GROUP("channel_affine", "group_norm_64", 32, 1, 1, 1, X(S4(2, 64, 3, 3)), X(S1(64)), X(S1(64))),
    GROUP("channel_affine", "instance_norm", 0, 1, 1, 2, X(S4(2, 3, 2, 3)), X(S1(3)), X(S1(3))),
    GROUP("layer_norm", "instance_norm_bare", 0, 0, 0, 1, X(S5(2, 5, 2, 2, 2))),
    {0},
};
/* clang-format on */
