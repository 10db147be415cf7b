/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of the elementwise ops. Each op has one line in `function`: how it is called, and its
 * formula for a single element. That is all a reference needs, because broadcasting is done here
 * for all of them. Cases named "gradient_*" compute a derivative themselves where finite
 * differences do not work: ties, edges, casts.
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

/* Parameters of a case: p[KIND] relation or type, p[BY] input to differentiate by; q[0], q[1]
 * scalars of the op, q[BEFORE] multiplies input 0 and q[AFTER] the result (0: no factor). AFTER
 * scales small results up to where the tolerance is relative. */
enum { KIND, BY };
enum { BEFORE = 2, AFTER = 3 };
enum { EQ, NE, LT, LE, GT, GE };
enum { AND, OR };

/* ---- how each op is called ------------------------------------------------------------------ */

#define CALL(op, ...)                                                    \
    static ctn_tensor *call_##op(const op_case *c, ctn_tensor *const *x) \
    {                                                                    \
        (void)c;                                                         \
        return ctn_##op(__VA_ARGS__);                                    \
    }
CALL(mul, x[0], x[1])
CALL(sub, x[0], x[1])
CALL(div, x[0], x[1])
CALL(maximum, x[0], x[1])
CALL(minimum, x[0], x[1])
CALL(pow, x[0], x[1])
CALL(where, x[0], x[1], x[2])
CALL(neg, x[0])
CALL(abs, x[0])
CALL(sign, x[0])
CALL(square, x[0])
CALL(sqrt, x[0])
CALL(rsqrt, x[0])
CALL(exp, x[0])
CALL(log, x[0])
CALL(power, x[0], c->q[0])
CALL(scale, x[0], c->q[0])
CALL(shift, x[0], c->q[0])
CALL(clip, x[0], c->q[0], c->q[1])
CALL(leaky_relu, x[0], c->q[0])
CALL(elu, x[0], c->q[0])
CALL(sigmoid, x[0])
CALL(tanh, x[0])
CALL(softplus, x[0])
CALL(gelu, x[0])
CALL(gelu_tanh, x[0])
CALL(swish, x[0])
CALL(logical_not, x[0])
CALL(cast, x[0], (ctn_dtype)c->p[KIND])

static ctn_tensor *call_compare(const op_case *c, ctn_tensor *const *x)
{
    switch (c->p[KIND]) {
    case EQ: return ctn_equal(x[0], x[1]);
    case NE: return ctn_not_equal(x[0], x[1]);
    case LT: return ctn_less(x[0], x[1]);
    case LE: return ctn_less_equal(x[0], x[1]);
    case GT: return ctn_greater(x[0], x[1]);
    default: return ctn_greater_equal(x[0], x[1]);
    }
}

static ctn_tensor *call_logical(const op_case *c, ctn_tensor *const *x)
{
    return c->p[KIND] == AND ? ctn_logical_and(x[0], x[1]) : ctn_logical_or(x[0], x[1]);
}

/* ---- what each op computes; v are the elements of the inputs at one place -------------------- */

#define FORMULA(op, ...)                                     \
    static double at_##op(const op_case *c, const double *v) \
    {                                                        \
        (void)c;                                             \
        return __VA_ARGS__;                                  \
    }
FORMULA(mul, v[0] * v[1])
FORMULA(sub, v[0] - v[1])
FORMULA(div, v[0] / v[1])
FORMULA(maximum, fmax(v[0], v[1]))
FORMULA(minimum, fmin(v[0], v[1]))
FORMULA(pow, pow(v[0], v[1]))
FORMULA(where, v[0] != 0 ? v[1] : v[2])
FORMULA(neg, -v[0])
FORMULA(abs, fabs(v[0]))
FORMULA(sign, v[0] > 0 ? 1 : v[0] < 0 ? -1 : 0)
FORMULA(square, v[0] * v[0])
FORMULA(sqrt, sqrt(v[0]))
FORMULA(rsqrt, pow(v[0], -0.5))
FORMULA(exp, exp(v[0]))
FORMULA(log, log(v[0]))
FORMULA(power, pow(v[0], c->q[0]))
FORMULA(scale, c->q[0] * v[0])
FORMULA(shift, v[0] + c->q[0])
FORMULA(clip, fmin(fmax(v[0], c->q[0]), c->q[1]))
FORMULA(leaky_relu, v[0] > 0 ? v[0] : c->q[0] * v[0])
FORMULA(elu, v[0] > 0 ? v[0] : c->q[0] * expm1(v[0]))
FORMULA(sigmoid, 1 / (1 + exp(-v[0])))
FORMULA(tanh, tanh(v[0]))
FORMULA(softplus, v[0] > 30 ? v[0] + exp(-v[0]) : log1p(exp(v[0])))
FORMULA(gelu, 0.5 * v[0] * erfc(-v[0] / sqrt(2)))
FORMULA(swish, v[0] / (1 + exp(-v[0])))
FORMULA(logical, c->p[KIND] == AND ? v[0] != 0 && v[1] != 0 : v[0] != 0 || v[1] != 0)
FORMULA(logical_not, v[0] == 0)

static double at_gelu_tanh(const op_case *c, const double *v)
{
    (void)c;
    double u = sqrt(2 / acos(-1)) * (v[0] + 0.044715 * v[0] * v[0] * v[0]);
    return u > -2 ? 0.5 * v[0] * (1 + tanh(u)) : v[0] * exp(2 * u) / (1 + exp(2 * u));
}

static double at_compare(const op_case *c, const double *v)
{
    switch (c->p[KIND]) {
    case EQ: return v[0] == v[1];
    case NE: return v[0] != v[1];
    case LT: return v[0] < v[1];
    case LE: return v[0] <= v[1];
    case GT: return v[0] > v[1];
    default: return v[0] >= v[1];
    }
}

static double at_cast(const op_case *c, const double *v)
{
    switch ((ctn_dtype)c->p[KIND]) {
    case CTN_I64: return trunc(v[0]);
    case CTN_I32: return fmin(fmax(trunc(v[0]), -2147483648.0), 2147483647.0);
    case CTN_U8: return fmin(fmax(trunc(v[0]), 0), 255);
    case CTN_BOOL: return v[0] != 0;
    default: return v[0]; /* within the tolerance of the type */
    }
}

/* ---- derivatives by input p[BY], where the definition is a matter of choice ------------------ */

static double by_abs(const op_case *c, const double *v)
{
    return at_sign(c, v);
}

static double by_maximum(const op_case *c, const double *v)
{
    double d = c->p[BY] == 0 ? v[0] - v[1] : v[1] - v[0];
    return d > 0 ? 1 : d < 0 ? 0 : 0.5;
}

static double by_minimum(const op_case *c, const double *v)
{
    return 1 - by_maximum(c, v);
}

static double by_clip(const op_case *c, const double *v)
{
    return v[0] >= c->q[0] && v[0] <= c->q[1];
}

static double by_pow(const op_case *c, const double *v)
{
    if (c->p[BY] == 0) return v[1] == 0 ? 0 : v[1] * pow(v[0], v[1] - 1);
    return v[0] == 0 ? 0 : pow(v[0], v[1]) * log(v[0]);
}

static double by_power(const op_case *c, const double *v)
{
    return c->q[0] == 0 ? 0 : c->q[0] * pow(v[0], c->q[0] - 1);
}

static double by_cast(const op_case *c, const double *v)
{
    (void)c, (void)v;
    return 1;
}

typedef struct {
    const char *op;
    ctn_tensor *(*call)(const op_case *c, ctn_tensor *const *x);
    double (*at)(const op_case *c, const double *v);
    double (*by)(const op_case *c, const double *v);
} function;

static const function functions[] = {
    {"mul", call_mul, at_mul, NULL},
    {"sub", call_sub, at_sub, NULL},
    {"div", call_div, at_div, NULL},
    {"maximum", call_maximum, at_maximum, by_maximum},
    {"minimum", call_minimum, at_minimum, by_minimum},
    {"pow", call_pow, at_pow, by_pow},
    {"power", call_power, at_power, by_power},
    {"where", call_where, at_where, NULL},
    {"neg", call_neg, at_neg, NULL},
    {"abs", call_abs, at_abs, by_abs},
    {"sign", call_sign, at_sign, NULL},
    {"square", call_square, at_square, NULL},
    {"sqrt", call_sqrt, at_sqrt, NULL},
    {"rsqrt", call_rsqrt, at_rsqrt, NULL},
    {"exp", call_exp, at_exp, NULL},
    {"log", call_log, at_log, NULL},
    {"scale", call_scale, at_scale, NULL},
    {"shift", call_shift, at_shift, NULL},
    {"clip", call_clip, at_clip, by_clip},
    {"leaky_relu", call_leaky_relu, at_leaky_relu, NULL},
    {"elu", call_elu, at_elu, NULL},
    {"sigmoid", call_sigmoid, at_sigmoid, NULL},
    {"tanh", call_tanh, at_tanh, NULL},
    {"softplus", call_softplus, at_softplus, NULL},
    {"gelu", call_gelu, at_gelu, NULL},
    {"gelu_tanh", call_gelu_tanh, at_gelu_tanh, NULL},
    {"swish", call_swish, at_swish, NULL},
    {"compare", call_compare, at_compare, NULL},
    {"logical", call_logical, at_logical, NULL},
    {"logical_not", call_logical_not, at_logical_not, NULL},
    {"cast", call_cast, at_cast, by_cast},
};

static const function *function_of(const op_case *c)
{
    const function *f = functions;
    while (strcmp(f->op, c->op) != 0) f++;
    return f;
}

static ctn_tensor *call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *in[MAX_CASE_IN];
    for (int k = 0; k < c->nin; k++)
        in[k] = k == 0 && c->q[BEFORE] != 0 ? ctn_scale(x[0], c->q[BEFORE]) : x[k];
    ctn_tensor *y = function_of(c)->call(c, in);
    return c->q[AFTER] != 0 ? ctn_scale(y, c->q[AFTER]) : y;
}

/* The derivative of the sum of the results. The cast at the end makes it a float of the type
 * under test. */
static ctn_tensor *derivative(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    ctn_tensor *in[MAX_CASE_IN], *g;
    for (int k = 0; k < c->nin; k++) in[k] = x[k];
    ctn_tensor *t = in[c->p[BY]] = ctn_with_grad(x[c->p[BY]]);
    ctn_tensor *y = ctn_cast(function_of(c)->call(c, in), ctn_dtype_of(t));
    return ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), 1, &t, &g) < 0 ? NULL : g;
}

/* Computes f at every place of the result, with inputs broadcast to it. */
static void for_each(const op_case *c, const double *const *x, const ctn_desc *out, double *y,
                     double (*f)(const op_case *c, const double *v))
{
    double v[MAX_CASE_IN];
    int64_t n = 1, stride[CTN_MAX_DIMS];
    for (int k = 0; k < out->ndim; k++) n *= out->dim[k];
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < c->nin; j++) {
            const case_in *in = &c->in[j];
            int64_t off = 0, r = i;
            case_strides(in->ndim, in->dim, stride);
            for (int k = out->ndim - 1, m = in->ndim - 1; m >= 0; k--, m--) {
                if (in->dim[m] != 1) off += r % out->dim[k] * stride[m];
                r /= out->dim[k];
            }
            v[j] = x[j][off] * (j == 0 && c->q[BEFORE] != 0 ? c->q[BEFORE] : 1);
        }
        y[i] = f(c, v) * (c->q[AFTER] != 0 ? c->q[AFTER] : 1);
    }
}

static void ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for_each(c, x, out, y, function_of(c)->at);
}

static void derivative_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    for_each(c, x, out, y, function_of(c)->by);
}

/* clang-format off */

/* One input of shape s... that is filled by f...; tolerances for ops that are one correctly
 * rounded operation or accurate to a few units in the last place. */
#define RUN .call = call, .ref = ref
#define ONE(op, name, ord, in, ...)                                                                \
    {op, name, 1, {in}, RUN, .grad = ord, .tol32 = 1e-6, __VA_ARGS__}
#define TWO(op, name, ord, a, b, ...)                                                              \
    {op, name, 2, {a, b}, RUN, .grad = ord, .tol32 = 1e-6, __VA_ARGS__}
#define IN(...) {__VA_ARGS__}
#define BETWEEN(a, b) .fill = FILL_UNIFORM, .lo = a, .hi = b
#define INTEGERS(a, b) .fill = FILL_INDEX, .lo = a, .hi = b

/* f... fills the input with values where the op is differentiable; q... are the scalars. */
#define UNARY(op, f, ...)                                                                          \
    ONE(op, "matrix", 2, IN(S2(5, 7), f), __VA_ARGS__),                                            \
    ONE(op, "scalar", 2, IN(S0(), f), __VA_ARGS__),                                                \
    ONE(op, "empty", 1, IN(S2(0, 7), f), __VA_ARGS__),                                             \
    ONE(op, "4d", 1, IN(S4(2, 3, 1, 5), f), __VA_ARGS__),                                          \
    ONE(op, "big", 1, IN(S2(131, 127), f), __VA_ARGS__)

/* -1000, 0 and 1000 */
#define FAR(op, ...) ONE(op, "far", 0, IN(S1(23), INTEGERS(-1, 2)), __VA_ARGS__)

#define BINARY(op, f, g, ...)                                                                      \
    TWO(op, "same", 2, IN(S2(3, 5), f), IN(S2(3, 5), g), __VA_ARGS__),                             \
    TWO(op, "row", 2, IN(S2(3, 5), f), IN(S1(5), g), __VA_ARGS__),                                 \
    TWO(op, "column", 2, IN(S2(3, 5), f), IN(S2(3, 1), g), __VA_ARGS__),                           \
    TWO(op, "outer", 2, IN(S2(4, 1), f), IN(S2(1, 7), g), __VA_ARGS__),                            \
    TWO(op, "middle", 1, IN(S3(2, 1, 3), f), IN(S3(2, 4, 3), g), __VA_ARGS__),                     \
    TWO(op, "more_dims", 1, IN(S1(3), f), IN(S4(2, 1, 2, 3), g), __VA_ARGS__),                     \
    TWO(op, "scalar_first", 1, IN(S0(), f), IN(S2(2, 3), g), __VA_ARGS__),                         \
    TWO(op, "scalar_second", 1, IN(S2(2, 3), f), IN(S0(), g), __VA_ARGS__),                        \
    TWO(op, "scalars", 1, IN(S0(), f), IN(S0(), g), __VA_ARGS__),                                  \
    TWO(op, "zero_rows", 1, IN(S2(0, 3), f), IN(S1(3), g), __VA_ARGS__),                           \
    TWO(op, "big", 1, IN(S2(131, 127), f), IN(S1(127), g), __VA_ARGS__)

#define BOOLS .dtype = CTN_BOOL, INTEGERS(0, 2)
#define TYPED(t, a, b) .dtype = t, INTEGERS(a, b)
#define WHERE(name, ord, c, a, b)                                                                  \
    {"where", name, 3, {c, a, b}, RUN, .grad = ord}

#define COMPARE(name, r)                                                                           \
    TWO("compare", name, 0, IN(S2(5, 7), INTEGERS(0, 3)), IN(S2(5, 7), INTEGERS(0, 3)), .p = {r}), \
    TWO("compare", name "_row", 0, IN(S3(2, 5, 7), INTEGERS(0, 3)), IN(S1(7), INTEGERS(0, 3)),     \
        .p = {r}),                                                                                 \
    TWO("compare", name "_scalar", 0, IN(S0(), INTEGERS(0, 3)), IN(S2(4, 6), INTEGERS(0, 3)),      \
        .p = {r}),                                                                                 \
    TWO("compare", name "_i64", 0, IN(S2(5, 7), TYPED(CTN_I64, -2, 2)),                \
        IN(S2(5, 1), TYPED(CTN_I64, -2, 2)), .p = {r})

#define P(...) __VA_ARGS__
#define CAST(name, in, to) ONE("cast", name, 0, IN(S2(9, 7), in), .p = {to})
#define SMALL {S2(6, 5), INTEGERS(0, 3)} /* with ties */
#define GRADIENT .call = derivative, .ref = derivative_ref, .tol32 = 1e-6

case_table cases_math = {
    BINARY("mul", BETWEEN(-2, 2), BETWEEN(-2, 2)),
    BINARY("sub", BETWEEN(-2, 2), BETWEEN(-2, 2)),
    BINARY("div", BETWEEN(-2, 2), BETWEEN(0.5, 2)),
    TWO("div", "by_zero", 0, IN(S1(20), INTEGERS(-1, 2)), IN(S1(1), INTEGERS(0, 1))),
    BINARY("maximum", BETWEEN(-2, 2), BETWEEN(-2, 2)),
    BINARY("minimum", BETWEEN(-2, 2), BETWEEN(-2, 2)),
    BINARY("pow", BETWEEN(0.5, 2), BETWEEN(-2, 2)),
    TWO("pow", "integers", 1, IN(S2(4, 5), BETWEEN(-2, 2)),
        IN(S1(5), INTEGERS(0, 4), .no_grad = 1)),

    {"maximum", "gradient_ties", 2, {SMALL, SMALL}, GRADIENT},
    {"maximum", "gradient_ties_second", 2, {SMALL, SMALL}, GRADIENT, .p = {[BY] = 1}},
    {"minimum", "gradient_ties", 2, {SMALL, SMALL}, GRADIENT},
    {"minimum", "gradient_ties_second", 2, {SMALL, SMALL}, GRADIENT, .p = {[BY] = 1}},
    {"pow", "gradient_edges", 2, {SMALL, SMALL}, GRADIENT},
    {"pow", "gradient_edges_second", 2, {SMALL, SMALL}, GRADIENT, .p = {[BY] = 1}},
    {"power", "gradient_zero", 1, {{S1(9), INTEGERS(0, 3)}}, GRADIENT, .q = {0}},
    {"power", "gradient_one", 1, {{S1(9), INTEGERS(0, 3)}}, GRADIENT, .q = {1}},
    {"abs", "gradient_zero", 1, {{S1(19), INTEGERS(-1, 2)}}, GRADIENT},
    {"clip", "gradient_ends", 1, {{S1(31), INTEGERS(-3, 4)}}, GRADIENT, .q = {-1, 2}},

    UNARY("neg", BETWEEN(-3, 3)),
    UNARY("abs", .fill = FILL_AWAY),
    ONE("sign", "integers", 0, IN(S2(3, 7), INTEGERS(-2, 3))),
    ONE("sign", "empty", 0, IN(S2(3, 0))),
    UNARY("square", BETWEEN(-3, 3)),
    UNARY("sqrt", BETWEEN(0.5, 3)),
    UNARY("rsqrt", BETWEEN(0.5, 3)),
    UNARY("exp", BETWEEN(-3, 2)),
    FAR("exp", .q = {[BEFORE] = 1000}),
    ONE("exp", "wide", 0, IN(S1(500), BETWEEN(-80, 80))),
    UNARY("log", BETWEEN(0.3, 4)),
    ONE("log", "edges", 0, IN(S1(23), INTEGERS(-1, 2))),
    ONE("log", "near_one", 0, IN(S1(50), BETWEEN(0.9999, 1.0001)), .q = {[AFTER] = 1e4}),
    ONE("log", "wide", 0, IN(S1(50), BETWEEN(0, 1)), .q = {[BEFORE] = 1e-30}),

    UNARY("power", BETWEEN(0.5, 2), .q = {1.7}),
    ONE("power", "square", 2, IN(S1(9)), .q = {2}),
    ONE("power", "cube", 2, IN(S1(9), BETWEEN(-1, 1)), .q = {3}),
    ONE("power", "fourth", 2, IN(S1(9), BETWEEN(-1, 1)), .q = {4}),
    ONE("power", "one", 1, IN(S1(9)), .q = {1}),
    ONE("power", "zero", 0, IN(S1(9)), .q = {0}),
    ONE("power", "root", 2, IN(S1(9), BETWEEN(0.5, 2)), .q = {0.5}),
    ONE("power", "inverse", 2, IN(S1(9), BETWEEN(0.5, 2)), .q = {-1}),
    ONE("power", "inverse_root", 2, IN(S1(9), BETWEEN(0.5, 2)), .q = {-0.5}),
    UNARY("scale", BETWEEN(-3, 3), .q = {-1.5}),
    UNARY("shift", BETWEEN(-3, 3), .q = {0.3}),
    UNARY("clip", BETWEEN(-2, 2), .q = {-0.5, 0.75}),
    ONE("clip", "crossed", 0, IN(S1(9)), .q = {1, -1}),

    UNARY("leaky_relu", .fill = FILL_AWAY, .q = {0.1}),
    ONE("leaky_relu", "negative_slope", 2, IN(S1(17), .fill = FILL_AWAY), .q = {-0.5}),
    UNARY("elu", .fill = FILL_AWAY, .q = {1.3}),
    FAR("elu", .q = {1, [BEFORE] = 1000}),
    ONE("elu", "small", 0, IN(S1(50), BETWEEN(-1, 1)), .q = {1, [BEFORE] = 1e-6, [AFTER] = 1e6}),
    ONE("elu", "wide", 0, IN(S1(500), BETWEEN(-20, 1)), .q = {1}),
    UNARY("sigmoid", BETWEEN(-4, 4)),
    FAR("sigmoid", .q = {[BEFORE] = 1000}),
    ONE("sigmoid", "tail", 0, IN(S1(50), BETWEEN(-20, -15)), .q = {[AFTER] = 1e8}),
    UNARY("tanh", BETWEEN(-3, 3)),
    FAR("tanh", .q = {[BEFORE] = 1000}),
    ONE("tanh", "small", 0, IN(S1(50), BETWEEN(-1, 1)), .q = {[BEFORE] = 1e-6, [AFTER] = 1e6}),
    UNARY("softplus", BETWEEN(-4, 4)),
    FAR("softplus", .q = {[BEFORE] = 1000}),
    ONE("softplus", "tail", 0, IN(S1(50), BETWEEN(-20, -15)), .q = {[AFTER] = 1e8}),
    UNARY("gelu", BETWEEN(-4, 4)),
    FAR("gelu", .q = {[BEFORE] = 1000}),
    ONE("gelu", "tail", 0, IN(S1(50), BETWEEN(-5, -4)), .q = {[AFTER] = 1e5}),
    UNARY("gelu_tanh", BETWEEN(-4, 4)),
    FAR("gelu_tanh", .q = {[BEFORE] = 1000}),
    {"gelu_tanh", "tail", 1, {{S1(50), BETWEEN(-5, -4)}}, RUN, .q = {[AFTER] = 1e5}, .tol32 = 5e-6},
    UNARY("swish", BETWEEN(-4, 4)),
    FAR("swish", .q = {[BEFORE] = 1000}),
    ONE("swish", "tail", 0, IN(S1(50), BETWEEN(-20, -15)), .q = {[AFTER] = 1e7}),

    WHERE("same", 2, IN(S2(3, 5), BOOLS), IN(S2(3, 5)), IN(S2(3, 5))),
    WHERE("row", 2, IN(S1(5), BOOLS), IN(S2(3, 5)), IN(S2(3, 1))),
    WHERE("column", 2, IN(S2(3, 1), BOOLS), IN(S2(3, 5)), IN(S2(3, 5))),
    WHERE("scalar_values", 1, IN(S3(2, 3, 5), BOOLS), IN(S0()), IN(S0())),
    WHERE("scalar_a", 2, IN(S2(9, 5), BOOLS), IN(S0()), IN(S2(9, 5))),
    WHERE("scalar_b", 2, IN(S2(9, 5), BOOLS), IN(S2(9, 5)), IN(S0())),
    WHERE("scalar_condition", 1, IN(S0(), BOOLS), IN(S2(2, 3)), IN(S1(3))),
    WHERE("wide_condition", 1, IN(S3(4, 1, 3), BOOLS), IN(S2(2, 1)), IN(S1(3))),
    WHERE("zero_rows", 1, IN(S2(0, 3), BOOLS), IN(S1(3)), IN(S2(1, 3))),
    WHERE("i64", 0, IN(S2(4, 5), BOOLS), IN(S2(4, 5), TYPED(CTN_I64, 0, 99)),
          IN(S1(5), TYPED(CTN_I64, -99, 0))),
    WHERE("u8", 0, IN(S2(4, 5), BOOLS), IN(S2(4, 5), TYPED(CTN_U8, 0, 99)),
          IN(S0(), TYPED(CTN_U8, 100, 200))),
    WHERE("big", 1, IN(S2(131, 127), BOOLS), IN(S2(131, 127)), IN(S1(127))),

    COMPARE("equal", EQ),
    COMPARE("not_equal", NE),
    COMPARE("less", LT),
    COMPARE("less_equal", LE),
    COMPARE("greater", GT),
    COMPARE("greater_equal", GE),
    TWO("compare", "i32", 0, IN(S1(40), TYPED(CTN_I32, -2, 2)),
        IN(S1(40), TYPED(CTN_I32, -2, 2)), .p = {LT}),
    TWO("compare", "u8", 0, IN(S1(40), TYPED(CTN_U8, 126, 130)),
        IN(S1(1), TYPED(CTN_U8, 128, 129)), .p = {GE}),
    TWO("compare", "bool", 0, IN(S1(40), BOOLS), IN(S1(40), BOOLS), .p = {EQ}),
    TWO("compare", "zero_rows", 0, IN(S2(0, 4)), IN(S1(4)), .p = {EQ}),
    TWO("compare", "big", 0, IN(S2(131, 127), INTEGERS(0, 3)),
        IN(S1(127), INTEGERS(0, 3)), .p = {LT}),

    TWO("logical", "and", 0, IN(S2(5, 7), BOOLS), IN(S2(5, 7), BOOLS), .p = {AND}),
    TWO("logical", "and_row", 0, IN(S2(5, 7), BOOLS), IN(S1(7), BOOLS), .p = {AND}),
    TWO("logical", "or", 0, IN(S2(5, 7), BOOLS), IN(S2(5, 7), BOOLS), .p = {OR}),
    TWO("logical", "or_column", 0, IN(S2(5, 1), BOOLS), IN(S2(5, 7), BOOLS), .p = {OR}),
    TWO("logical", "zero_rows", 0, IN(S2(0, 4), BOOLS), IN(S1(4), BOOLS), .p = {OR}),
    ONE("logical_not", "matrix", 0, IN(S2(5, 7), BOOLS)),
    ONE("logical_not", "empty", 0, IN(S1(0), BOOLS)),

    CAST("to_i64", BETWEEN(-9, 9), CTN_I64),
    CAST("to_i32", BETWEEN(-9, 9), CTN_I32),
    CAST("to_i32_saturates", BETWEEN(-9e9, 9e9), CTN_I32),
    CAST("to_u8", BETWEEN(-100, 400), CTN_U8),
    CAST("to_bool", INTEGERS(-1, 2), CTN_BOOL),
    {"cast", "to_bf16", 1, {{S2(9, 7), BETWEEN(-9, 9)}}, {CTN_BF16}, RUN,
     .tol32 = 4e-3, .tol64 = 4e-3},
    CAST("to_bf16_exact", INTEGERS(-255, 256), CTN_BF16),
    {"cast", "to_f16", 1, {{S2(9, 7), BETWEEN(-9, 9)}}, {CTN_F16}, RUN,
     .tol32 = 5e-4, .tol64 = 5e-4},
    CAST("to_f16_exact", INTEGERS(-2047, 2048), CTN_F16),
    {"cast", "f32_to_f64", 1, {{S2(9, 7), .dtype = CTN_F32}}, {CTN_F64}, RUN},
    {"cast", "f64_to_f32", 1, {{S2(9, 7), .dtype = CTN_F64}}, {CTN_F32}, RUN, .tol64 = 1e-7},
    CAST("f64_to_bf16", P(TYPED(CTN_F64, -255, 256)), CTN_BF16),
    CAST("bf16_to_f32", P(TYPED(CTN_BF16, -255, 256)), CTN_F32),
    CAST("bf16_to_f16", P(TYPED(CTN_BF16, -255, 256)), CTN_F16),
    CAST("f16_to_f32", P(TYPED(CTN_F16, -2047, 2048)), CTN_F32),
    CAST("i64_to_f32", P(TYPED(CTN_I64, -2047, 2048)), CTN_F32),
    CAST("i32_to_i64", P(TYPED(CTN_I32, -2e9, 2e9)), CTN_I64),
    CAST("i64_to_i32", P(TYPED(CTN_I64, -9e9, 9e9)), CTN_I32),
    CAST("u8_to_f32", P(TYPED(CTN_U8, 0, 256)), CTN_F32),
    CAST("bool_to_f32", P(BOOLS), CTN_F32),
    {"cast", "empty", 1, {{S2(0, 7)}}, {CTN_BF16}, RUN},
    {"cast", "big", 1, {{S2(131, 127), INTEGERS(-9, 9)}}, {CTN_I64}, RUN},
    {"cast", "big_bf16", 1, {{S2(131, 127), INTEGERS(-9, 9)}}, {CTN_BF16}, RUN},
    {"cast", "gradient_bf16", 1, {{S2(4, 5)}}, {CTN_BF16}, GRADIENT},
    {0},
};
