/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of elementary and special functions and of activations that are made of other ops. As in
 * cases_math.c, each has one line in `functions`: how it is called, and its formula for a single
 * element, which is computed differently from the library where the C library lacks the function.
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

/* Parameters of a case: p[WHICH] is the line of `functions`, p[N] the order of polygamma; q[0] and
 * q[1] scalars of the op. q[BEFORE] multiplies input 0 and q[AFTER] the result (0: no factor), so
 * that the tolerance is relative where results are small. */
enum { WHICH, N };
enum { BEFORE = 2, AFTER = 3 };

/* ---- references ------------------------------------------------------------------------------ */

/* The x in [lo, hi] for which f, which is monotonic, is y. */
static double inverse(double (*f)(double), double y, double lo, double hi)
{
    const double sign = f(hi) > f(lo) ? 1 : -1;
    for (int k = 0; k < 200; k++) {
        const double mid = 0.5 * (lo + hi);
        if (sign * f(mid) < sign * y) lo = mid;
        else hi = mid;
    }
    return 0.5 * (lo + hi);
}

static double ndtr(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* A long sum, and the first terms of the Euler-Maclaurin formula for the rest. */
static double zeta(double s, double q)
{
    double sum = 0, a = q;
    for (int k = 0; k < 1000; k++, a++) sum += pow(a, -s);
    return sum + pow(a, 1 - s) / (s - 1) + pow(a, -s) / 2 + s * pow(a, -s - 1) / 12;
}

static double digamma(double x)
{
    double y = 0;
    for (; x < 1000; x++) y -= 1 / x;
    return y + log(x) - 0.5 / x - 1 / (12 * x * x) + 1 / (120 * x * x * x * x);
}

static double polygamma(double n, double x)
{
    if (n == 0) return digamma(x);
    return (fmod(n, 2) == 0 ? -1 : 1) * tgamma(n + 1) * zeta(n + 1, x);
}

static double hard_sigmoid(double x)
{
    return fmin(fmax((x + 3) / 6, 0), 1);
}

static double selu(double x)
{
    return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
}

/* ---- how each is called, and what it computes; v are the elements of the inputs at one place */

#define FUNCTION(op, call, ...)                                          \
    static ctn_tensor *call_##op(const op_case *c, ctn_tensor *const *x) \
    {                                                                    \
        (void)c;                                                         \
        return call;                                                     \
    }                                                                    \
    static double at_##op(const op_case *c, const double *v)             \
    {                                                                    \
        (void)c;                                                         \
        return __VA_ARGS__;                                              \
    }
#define UNARY_FUNCTION(op, ...) FUNCTION(op, ctn_##op(x[0]), __VA_ARGS__)
#define BINARY_FUNCTION(op, ...) FUNCTION(op, ctn_##op(x[0], x[1]), __VA_ARGS__)

UNARY_FUNCTION(sin, sin(v[0]))
UNARY_FUNCTION(cos, cos(v[0]))
UNARY_FUNCTION(tan, tan(v[0]))
UNARY_FUNCTION(arcsin, asin(v[0]))
UNARY_FUNCTION(arccos, acos(v[0]))
UNARY_FUNCTION(arctan, atan(v[0]))
BINARY_FUNCTION(arctan2, atan2(v[0], v[1]))
UNARY_FUNCTION(sinh, sinh(v[0]))
UNARY_FUNCTION(cosh, cosh(v[0]))
UNARY_FUNCTION(arcsinh, asinh(v[0]))
UNARY_FUNCTION(arccosh, acosh(v[0]))
UNARY_FUNCTION(arctanh, atanh(v[0]))
UNARY_FUNCTION(expm1, expm1(v[0]))
UNARY_FUNCTION(log1p, log1p(v[0]))
UNARY_FUNCTION(log2, log2(v[0]))
UNARY_FUNCTION(log10, log10(v[0]))
UNARY_FUNCTION(floor, floor(v[0]))
UNARY_FUNCTION(ceil, ceil(v[0]))
UNARY_FUNCTION(round, rint(v[0]))
UNARY_FUNCTION(trunc, trunc(v[0]))
BINARY_FUNCTION(fmod, fmod(v[0], v[1]))
FUNCTION(signed_power, ctn_signed_power(x[0], c->q[0]), copysign(pow(fabs(v[0]), c->q[0]), v[0]))
UNARY_FUNCTION(erf, erf(v[0]))
UNARY_FUNCTION(erfc, erfc(v[0]))
UNARY_FUNCTION(erfcx, v[0] > 20 ? 1 / sqrt(acos(-1)) / (v[0] + 0.5 / (v[0] + 1 / v[0]))
                                : exp(v[0] * v[0]) * erfc(v[0]))
UNARY_FUNCTION(erfinv, inverse(erf, v[0], -5, 5))
UNARY_FUNCTION(erfcinv, inverse(erfc, v[0], -5, 15))
UNARY_FUNCTION(ndtr, ndtr(v[0]))
UNARY_FUNCTION(log_ndtr, log(ndtr(v[0])))
UNARY_FUNCTION(ndtri, inverse(ndtr, v[0], -20, 7))
UNARY_FUNCTION(lgamma, lgamma(v[0]))
UNARY_FUNCTION(digamma, digamma(v[0]))
FUNCTION(polygamma, ctn_polygamma(c->p[N], x[0]), polygamma((double)c->p[N], v[0]))
BINARY_FUNCTION(zeta, zeta(v[0], v[1]))
BINARY_FUNCTION(squared_difference, (v[0] - v[1]) * (v[0] - v[1]))
FUNCTION(linear_interpolate, ctn_linear_interpolate(x[0], x[1], x[2]),
         v[0] * v[1] + (1 - v[0]) * v[2])
UNARY_FUNCTION(selu, selu(v[0]))
UNARY_FUNCTION(hard_sigmoid, hard_sigmoid(v[0]))
UNARY_FUNCTION(hard_swish, v[0] * hard_sigmoid(v[0]))
UNARY_FUNCTION(mish, v[0] * tanh(log1p(exp(v[0]))))

/* clang-format off */
#define FUNCTIONS(LINE)                                                                            \
    LINE(sin) LINE(cos) LINE(tan) LINE(arcsin) LINE(arccos) LINE(arctan) LINE(arctan2)             \
    LINE(sinh) LINE(cosh) LINE(arcsinh) LINE(arccosh) LINE(arctanh) LINE(expm1) LINE(log1p)        \
    LINE(log2) LINE(log10) LINE(floor) LINE(ceil) LINE(round) LINE(trunc) LINE(fmod)               \
    LINE(signed_power) LINE(erf) LINE(erfc) LINE(erfcx) LINE(erfinv) LINE(erfcinv) LINE(ndtr)      \
    LINE(log_ndtr) LINE(ndtri) LINE(lgamma) LINE(digamma) LINE(polygamma) LINE(zeta)               \
    LINE(squared_difference) LINE(linear_interpolate) LINE(selu) LINE(hard_sigmoid)                \
    LINE(hard_swish) LINE(mish)
/* clang-format on */

#define NUMBER(op) number_##op,
enum { FUNCTIONS(NUMBER) };
typedef struct {
    ctn_tensor *(*call)(const op_case *c, ctn_tensor *const *x);
    double (*at)(const op_case *c, const double *v);
} function;
#define ENTRY(op) {call_##op, at_##op},
static const function functions[] = {FUNCTIONS(ENTRY)};

static ctn_tensor *call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *in[MAX_CASE_IN];
    for (int k = 0; k < c->nin; k++)
        in[k] = k == 0 && c->q[BEFORE] != 0 ? ctn_scale(x[0], c->q[BEFORE]) : x[k];
    ctn_tensor *y = functions[c->p[WHICH]].call(c, in);
    return c->q[AFTER] != 0 ? ctn_scale(y, c->q[AFTER]) : y;
}

/* The formula at every place of the result, with inputs broadcast to it. */
static void ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    int64_t at[CTN_MAX_DIMS], stride[CTN_MAX_DIMS];
    double v[MAX_CASE_IN];
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        for (int j = 0; j < c->nin; j++) {
            const case_in *in = &c->in[j];
            int64_t off = 0;
            case_strides(in->ndim, in->dim, stride);
            for (int m = 0; m < in->ndim; m++)
                if (in->dim[m] != 1) off += at[out->ndim - in->ndim + m] * stride[m];
            v[j] = x[j][off];
        }
        /* Large arguments of sin are multiplied by powers of 2, which is exact. */
        if (c->q[BEFORE] != 0) v[0] *= c->q[BEFORE];
        y[i] = functions[c->p[WHICH]].at(c, v) * (c->q[AFTER] != 0 ? c->q[AFTER] : 1);
    }
}

/* clang-format off */

/* f is the line of `functions`; op is the op that must be recorded, given by name for
 * compositions. */
#define RUN(f, ...) .call = call, .ref = ref, .p = {number_##f, __VA_ARGS__}
#define ONE(f, name, ord, in, ...)                                                                 \
    {#f, name, 1, {in}, RUN(f, 0), .grad = ord, .tol32 = 1e-6, __VA_ARGS__}
#define ONE_OF(op, f, name, ord, in, ...)                                                          \
    {op, name, 1, {in}, RUN(f, 0), .grad = ord, .tol32 = 1e-6, __VA_ARGS__}
#define TWO(f, name, ord, a, b, ...)                                                               \
    {#f, name, 2, {a, b}, RUN(f, 0), .grad = ord, .tol32 = 1e-6, __VA_ARGS__}
#define IN(...) {__VA_ARGS__}
#define BETWEEN(a, b) .fill = FILL_UNIFORM, .lo = a, .hi = b
#define INTEGERS(a, b) .fill = FILL_INDEX, .lo = a, .hi = b

/* in fills the input with values where the function is differentiable. */
#define UNARY(f, in, ...)                                                                          \
    ONE(f, "matrix", 2, IN(S2(5, 7), in), __VA_ARGS__),                                            \
    ONE(f, "scalar", 2, IN(S0(), in), __VA_ARGS__),                                                \
    ONE(f, "empty", 1, IN(S2(0, 7), in), __VA_ARGS__),                                             \
    ONE(f, "4d", 1, IN(S4(2, 3, 1, 5), in), __VA_ARGS__),                                          \
    ONE(f, "big", 1, IN(S2(131, 127), in), __VA_ARGS__)
#define COMPOSED(f, op, in, ...)                                                                   \
    ONE_OF(op, f, #f, 2, IN(S2(5, 7), in), __VA_ARGS__),                                           \
    ONE_OF(op, f, #f "_empty", 1, IN(S2(0, 7), in), __VA_ARGS__),                                  \
    ONE_OF(op, f, #f "_big", 1, IN(S2(131, 127), in), __VA_ARGS__)

/* Without a gradient. */
#define STEPS(f)                                                                                   \
    ONE(f, "matrix", 0, IN(S2(9, 7), BETWEEN(-3, 3))),                                             \
    ONE(f, "halves", 0, IN(S1(41), INTEGERS(-9, 10)), .q = {[BEFORE] = 0.5}),                      \
    ONE(f, "large", 0, IN(S1(41), BETWEEN(-1, 1)), .q = {[BEFORE] = 1e20}),                        \
    ONE(f, "empty", 0, IN(S2(0, 7))),                                                              \
    ONE(f, "big", 0, IN(S2(131, 127), BETWEEN(-9, 9)))

#define BINARY(f, in0, in1, ...)                                                                   \
    TWO(f, "same", 2, IN(S2(3, 5), in0), IN(S2(3, 5), in1), __VA_ARGS__),                          \
    TWO(f, "row", 2, IN(S2(3, 5), in0), IN(S1(5), in1), __VA_ARGS__),                              \
    TWO(f, "outer", 2, IN(S2(4, 1), in0), IN(S2(1, 7), in1), __VA_ARGS__),                         \
    TWO(f, "more_dims", 1, IN(S1(3), in0), IN(S4(2, 1, 2, 3), in1), __VA_ARGS__),                  \
    TWO(f, "scalars", 1, IN(S0(), in0), IN(S0(), in1), __VA_ARGS__),                               \
    TWO(f, "zero_rows", 1, IN(S2(0, 3), in0), IN(S1(3), in1), __VA_ARGS__),                        \
    TWO(f, "big", 1, IN(S2(131, 127), in0), IN(S1(127), in1), __VA_ARGS__)

/* -scale, 0 and scale; infinite results must be so */
#define FAR(f, scale) ONE(f, "far", 0, IN(S1(23), INTEGERS(-1, 2)), .q = {[BEFORE] = scale})
/* small arguments, where results are relative */
#define SMALL(f)                                                                                   \
    ONE(f, "small", 0, IN(S1(50), BETWEEN(-1, 1)), .q = {[BEFORE] = 0x1p-20, [AFTER] = 0x1p20})
#define WIDE(f, from, to) ONE(f, "wide", 0, IN(S1(500), BETWEEN(from, to)))

case_table cases_elementary = {
    UNARY(sin, BETWEEN(-4, 4)),
    SMALL(sin),
    WIDE(sin, -1e5, 1e5),
    ONE(sin, "huge", 0, IN(S1(300), BETWEEN(-1, 1)), .q = {[BEFORE] = 0x1p100}),
    ONE(sin, "mixed", 0, IN(S1(300), BETWEEN(-4e6, 4e6))),
    UNARY(cos, BETWEEN(-4, 4)),
    WIDE(cos, -1e5, 1e5),
    ONE(cos, "huge", 0, IN(S1(300), BETWEEN(-1, 1)), .q = {[BEFORE] = 0x1p100}),
    ONE(cos, "mixed", 0, IN(S1(300), BETWEEN(-4e6, 4e6))),
    UNARY(tan, BETWEEN(-1.2, 1.2)),
    SMALL(tan),
    WIDE(tan, -1e5, 1e5),
    ONE(tan, "mixed", 0, IN(S1(300), BETWEEN(-4e6, 4e6))),
    UNARY(arcsin, BETWEEN(-0.9, 0.9)),
    SMALL(arcsin),
    ONE(arcsin, "domain", 0, IN(S1(300), BETWEEN(-1.1, 1.1))),
    ONE(arcsin, "ends", 0, IN(S1(23), INTEGERS(-1, 2))),
    UNARY(arccos, BETWEEN(-0.9, 0.9)),
    ONE(arccos, "domain", 0, IN(S1(300), BETWEEN(-1.1, 1.1))),
    ONE(arccos, "ends", 0, IN(S1(23), INTEGERS(-1, 2))),
    ONE(arccos, "near_one", 0, IN(S1(50), BETWEEN(0.9999, 1)), .q = {[AFTER] = 100}),
    UNARY(arctan, BETWEEN(-4, 4)),
    SMALL(arctan),
    FAR(arctan, 0x1p100),
    BINARY(arctan2, BETWEEN(0.3, 2), BETWEEN(-2, 2)),
    TWO(arctan2, "below", 2, IN(S1(9), BETWEEN(-2, -0.3)), IN(S1(9), BETWEEN(-2, 2))),
    TWO(arctan2, "axes", 0, IN(S1(30), INTEGERS(-1, 2)), IN(S1(30), INTEGERS(-1, 2))),
    UNARY(sinh, BETWEEN(-2, 2)),
    SMALL(sinh),
    WIDE(sinh, -89.3, 89.3),
    FAR(sinh, 1000),
    UNARY(cosh, BETWEEN(-2, 2)),
    WIDE(cosh, -89.3, 89.3),
    FAR(cosh, 1000),
    UNARY(arcsinh, BETWEEN(-4, 4)),
    SMALL(arcsinh),
    WIDE(arcsinh, -1e10, 1e10),
    FAR(arcsinh, 0x1p126),
    UNARY(arccosh, BETWEEN(1.2, 4)),
    WIDE(arccosh, -10, 10),
    ONE(arccosh, "near_one", 0, IN(S1(50), BETWEEN(1, 1.0001)), .q = {[AFTER] = 100}),
    FAR(arccosh, 0x1p126),
    UNARY(arctanh, BETWEEN(-0.9, 0.9)),
    SMALL(arctanh),
    ONE(arctanh, "domain", 0, IN(S1(300), BETWEEN(-1.1, 1.1))),
    ONE(arctanh, "ends", 0, IN(S1(23), INTEGERS(-1, 2))),
    UNARY(expm1, BETWEEN(-2, 2)),
    SMALL(expm1),
    WIDE(expm1, -80, 80),
    FAR(expm1, 1000),
    UNARY(log1p, BETWEEN(-0.7, 4)),
    SMALL(log1p),
    WIDE(log1p, -1.2, 1e5),
    FAR(log1p, 1),
    UNARY(log2, BETWEEN(0.3, 4)),
    ONE(log2, "edges", 0, IN(S1(23), INTEGERS(-1, 2))),
    ONE(log2, "near_one", 0, IN(S1(50), BETWEEN(0.9999, 1.0001)), .q = {[AFTER] = 1e4}),
    WIDE(log2, 0, 1e5),
    UNARY(log10, BETWEEN(0.3, 4)),
    ONE(log10, "edges", 0, IN(S1(23), INTEGERS(-1, 2))),
    ONE(log10, "near_one", 0, IN(S1(50), BETWEEN(0.9999, 1.0001)), .q = {[AFTER] = 1e4}),
    WIDE(log10, 0, 1e5),
    STEPS(floor),
    STEPS(ceil),
    STEPS(round),
    STEPS(trunc),
    BINARY(fmod, BETWEEN(-7.4, 7.4), BETWEEN(0.9, 1.1)),
    TWO(fmod, "negative", 1, IN(S1(20), BETWEEN(-9.4, 9.4)), IN(S1(1), BETWEEN(-1.3, -1.2))),
    TWO(fmod, "by_zero", 0, IN(S1(20), INTEGERS(-1, 2)), IN(S1(1), INTEGERS(0, 1))),
    UNARY(signed_power, .fill = FILL_AWAY, .q = {1.7}),
    ONE(signed_power, "square", 2, IN(S1(9), .fill = FILL_AWAY), .q = {2}),
    ONE(signed_power, "one", 1, IN(S1(9), .fill = FILL_AWAY), .q = {1}),
    ONE(signed_power, "root", 2, IN(S1(9), BETWEEN(-2, -0.5)), .q = {0.5}),
    ONE(signed_power, "zeros", 0, IN(S1(19), INTEGERS(-1, 2)), .q = {0.5}),

    UNARY(erf, BETWEEN(-3, 3)),
    SMALL(erf),
    FAR(erf, 1000),
    UNARY(erfc, BETWEEN(-3, 3)),
    FAR(erfc, 1000),
    ONE(erfc, "tail", 0, IN(S1(50), BETWEEN(5, 5.5)), .q = {[AFTER] = 1e14}),
    ONE(erfc, "far_tail", 0, IN(S1(50), BETWEEN(8.9, 9)), .q = {[AFTER] = 1e36}),
    UNARY(erfcx, BETWEEN(-0.7, 3)),
    ONE(erfcx, "tail", 0, IN(S1(50), BETWEEN(5, 40)), .tol64 = 1e-8),
    UNARY(erfinv, BETWEEN(-0.95, 0.95)),
    SMALL(erfinv),
    ONE(erfinv, "ends", 0, IN(S1(50), BETWEEN(0.999, 0.99999)), .tol64 = 1e-10),
    UNARY(erfcinv, BETWEEN(0.1, 1.9)),
    ONE(erfcinv, "tail", 0, IN(S1(50), BETWEEN(0.1, 1)), .q = {[BEFORE] = 1e-30}, .tol64 = 1e-10),
    UNARY(ndtr, BETWEEN(-3, 3)),
    FAR(ndtr, 1000),
    ONE(ndtr, "tail", 0, IN(S1(50), BETWEEN(-7.5, -7)), .q = {[AFTER] = 1e13}),
    UNARY(log_ndtr, BETWEEN(-4, 3)),
    ONE(log_ndtr, "tail", 0, IN(S1(50), BETWEEN(-30, -4))),
    UNARY(ndtri, BETWEEN(0.05, 0.95)),
    ONE(ndtri, "tail", 0, IN(S1(50), BETWEEN(0.1, 1)), .q = {[BEFORE] = 1e-30}, .tol64 = 1e-10),
    UNARY(lgamma, BETWEEN(0.3, 5)),
    ONE(lgamma, "negative", 2, IN(S1(20), BETWEEN(-2.8, -2.2))),
    ONE(lgamma, "poles", 0, IN(S1(20), INTEGERS(-3, 4))),
    UNARY(digamma, BETWEEN(0.3, 5)),
    WIDE(digamma, 0.1, 500),
    ONE(digamma, "negative", 1, IN(S1(20), BETWEEN(-2.8, -2.2))),
    {"polygamma", "first_wide", 1, {{S1(500), BETWEEN(0.01, 500)}}, RUN(polygamma, 1),
     .tol32 = 1e-6},
    {"polygamma", "first_negative", 1, {{S1(20), BETWEEN(-2.8, -2.2)}}, RUN(polygamma, 1),
     .grad = 1, .tol32 = 1e-6},
    {"polygamma", "first", 1, {{S2(5, 7), BETWEEN(0.5, 5)}}, RUN(polygamma, 1), .grad = 2,
     .tol32 = 1e-6},
    {"polygamma", "second", 1, {{S2(5, 7), BETWEEN(0.8, 5)}}, RUN(polygamma, 2), .grad = 2,
     .tol32 = 1e-6},
    {"polygamma", "zeroth", 1, {{S1(13), BETWEEN(0.5, 5)}}, RUN(polygamma, 0), .grad = 2,
     .tol32 = 1e-6},
    {"polygamma", "empty", 1, {{S1(0)}}, RUN(polygamma, 3), .grad = 1},
    TWO(zeta, "same", 2, IN(S2(3, 5), BETWEEN(1.5, 5), .no_grad = 1), IN(S2(3, 5), BETWEEN(1, 3))),
    TWO(zeta, "row", 2, IN(S2(3, 5), BETWEEN(1.5, 5), .no_grad = 1), IN(S1(5), BETWEEN(1, 3))),
    TWO(zeta, "column", 1, IN(S0(), BETWEEN(1.5, 5), .no_grad = 1), IN(S2(3, 1), BETWEEN(1, 3))),
    TWO(zeta, "empty", 1, IN(S0(), BETWEEN(1.5, 5), .no_grad = 1), IN(S2(3, 0), BETWEEN(1, 3))),

    {"square", "squared_difference", 2, {{S2(3, 5), BETWEEN(-1, 1)}, {S1(5), BETWEEN(-1, 1)}},
     RUN(squared_difference, 0), .grad = 2},
    {"add", "linear_interpolate", 3, {{S2(3, 5)}, {S2(3, 5)}, {S1(5)}}, RUN(linear_interpolate, 0),
     .grad = 2},
    COMPOSED(selu, "elu", .fill = FILL_AWAY),
    COMPOSED(hard_sigmoid, "clip", BETWEEN(-2.8, 2.8)),
    ONE_OF("clip", hard_sigmoid, "hard_sigmoid_wide", 0, IN(S1(40), BETWEEN(-9, 9))),
    COMPOSED(hard_swish, "clip", BETWEEN(-2.8, 2.8)),
    ONE_OF("clip", hard_swish, "hard_swish_wide", 0, IN(S1(40), BETWEEN(-9, 9))),
    COMPOSED(mish, "softplus", BETWEEN(-4, 4)),
    ONE_OF("softplus", mish, "mish_wide", 0, IN(S1(40), BETWEEN(-40, 40))),
    {0},
};
