/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise ops. Integers are recorded as f64, which is exact up to 2^53, because the kernels of
 * Catena compute in floats. Where all inputs are arrays, as in computations on shapes, the result
 * is an array too.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

ctn_tensor *ctn__onnx_real(const char *at, ctn_tensor *x)
{
    return !x || ctn__is_f32_f64(x->d.dtype) ? x : ctn_cast_at(at, x, CTN_F64);
}

ctn_tensor *ctn__onnx_like(const char *at, const ctn_tensor *x, double value)
{
    return x ? ctn_full_at(at, x->ctx, value, x->d.dtype, CTN_SCALAR_SHAPE) : NULL;
}

/* y as the type that x has. */
static ctn_tensor *back(const char *at, const ctn_tensor *x, ctn_tensor *y)
{
    return x && y ? ctn_cast_at(at, y, x->d.dtype) : NULL;
}

/* ---- one input ------------------------------------------------------------------------------- */

ctn_tensor *ctn__onnx_reciprocal(const char *at, ctn_tensor *x)
{
    return ctn_div_at(at, ctn__onnx_like(at, x, 1), x);
}

ctn_tensor *ctn__onnx_softsign(const char *at, ctn_tensor *x)
{
    return ctn_div_at(at, x, ctn_shift_at(at, ctn_abs_at(at, x), 1));
}

double ctn__onnx_num_neg(double x)
{
    return -x;
}

double ctn__onnx_num_sign(double x)
{
    return (x > 0) - (x < 0);
}

double ctn__onnx_num_reciprocal(double x)
{
    return 1 / x;
}

double ctn__onnx_num_not(double x)
{
    return x == 0;
}

static ctn_status host_unary(ctn__onnx_call *c)
{
    const ctn__onnx_value *x = c->in[0];
    void *y = ctn__onnx_set_host(c, 0, x->dtype, x->ndim, x->dim);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < ctn__onnx_count(x); i++)
        ctn__onnx_put_number(y, x->dtype, i, c->node->op->number(ctn__onnx_number_of(x, i)));
    return CTN_OK;
}

ctn_status ctn__onnx_do_unary(ctn__onnx_call *c)
{
    ctn_tensor *(*op)(const char *, ctn_tensor *) = c->node->op->unary;
    if (c->node->op->number && ctn__onnx_has(c, 0) && ctn__onnx_all_host(c)) return host_unary(c);
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (x && x->d.dtype == CTN_BOOL) return ctn__onnx_set(c, 0, op(c->at, x));
    return ctn__onnx_set(c, 0, back(c->at, x, op(c->at, ctn__onnx_real(c->at, x))));
}

ctn_status ctn__onnx_do_identity(ctn__onnx_call *c)
{
    if (!ctn__onnx_has(c, 0)) return CTN_OK;
    return ctn__onnx_set_value(c, 0, c->in[0]);
}

ctn_status ctn__onnx_do_isnan(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    return ctn__onnx_set(c, 0, ctn_not_equal_at(c->at, x, x));
}

ctn_status ctn__onnx_do_isinf(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    const bool low = ctn__onnx_int(c, "detect_negative", 1);
    const bool high = ctn__onnx_int(c, "detect_positive", 1);
    if (low && high) x = ctn_abs_at(c->at, x);
    const double inf = low && !high ? -INFINITY : low || high ? INFINITY : NAN;
    return ctn__onnx_set(c, 0, ctn_equal_at(c->at, x, ctn__onnx_like(c->at, x, inf)));
}

/* ---- activations with settings --------------------------------------------------------------- */

ctn_status ctn__onnx_do_leaky_relu(ctn__onnx_call *c)
{
    return ctn__onnx_set(c, 0,
                         ctn_leaky_relu_at(c->at, ctn__onnx_in(c, 0),
                                           ctn__onnx_float(c, "alpha", 0.01)));
}

ctn_status ctn__onnx_do_elu(ctn__onnx_call *c)
{
    return ctn__onnx_set(c, 0,
                         ctn_elu_at(c->at, ctn__onnx_in(c, 0), ctn__onnx_float(c, "alpha", 1)));
}

/* max(x, 0) + min(alpha (exp(x / alpha) - 1), 0) = elu with the input divided by alpha. */
ctn_status ctn__onnx_do_celu(ctn__onnx_call *c)
{
    const double alpha = ctn__onnx_float(c, "alpha", 1);
    ctn_tensor *x = ctn_scale_at(c->at, ctn__onnx_in(c, 0), 1 / alpha);
    return ctn__onnx_set(c, 0, ctn_scale_at(c->at, ctn_elu_at(c->at, x, 1), alpha));
}

ctn_status ctn__onnx_do_selu(ctn__onnx_call *c)
{
    const double alpha = ctn__onnx_float(c, "alpha", 1.67326319217681884765625);
    const double gamma = ctn__onnx_float(c, "gamma", 1.05070102214813232421875);
    return ctn__onnx_set(c, 0,
                         ctn_scale_at(c->at, ctn_elu_at(c->at, ctn__onnx_in(c, 0), alpha), gamma));
}

ctn_status ctn__onnx_do_thresholded_relu(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    ctn_tensor *limit = ctn__onnx_like(c->at, x, ctn__onnx_float(c, "alpha", 1));
    return ctn__onnx_set(c, 0,
                         ctn_where_at(c->at, ctn_greater_at(c->at, x, limit), x,
                                      ctn__onnx_like(c->at, x, 0)));
}

ctn_status ctn__onnx_do_shrink(ctn__onnx_call *c)
{
    const char *at = c->at;
    const double lambda = ctn__onnx_float(c, "lambd", 0.5), bias = ctn__onnx_float(c, "bias", 0);
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(at, given);
    ctn_tensor *low = ctn_less_at(at, x, ctn__onnx_like(at, x, -lambda));
    ctn_tensor *high = ctn_greater_at(at, x, ctn__onnx_like(at, x, lambda));
    ctn_tensor *y = ctn_where_at(at, high, ctn_shift_at(at, x, -bias), ctn__onnx_like(at, x, 0));
    y = ctn_where_at(at, low, ctn_shift_at(at, x, bias), y);
    return ctn__onnx_set(c, 0, back(at, given, y));
}

ctn_status ctn__onnx_do_hard_sigmoid(ctn__onnx_call *c)
{
    const double alpha = ctn__onnx_float(c, "alpha", 0.2), beta = ctn__onnx_float(c, "beta", 0.5);
    ctn_tensor *x = ctn__onnx_in(c, 0);
    x = ctn_shift_at(c->at, ctn_scale_at(c->at, x, alpha), beta);
    return ctn__onnx_set(c, 0, ctn_clip_at(c->at, x, 0, 1));
}

ctn_status ctn__onnx_do_gelu(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    return ctn__onnx_set(c, 0,
                         ctn__onnx_text_is(c, "approximate", "tanh", false)
                             ? ctn_gelu_tanh_at(c->at, x)
                             : ctn_gelu_at(c->at, x));
}

ctn_status ctn__onnx_do_swish(ctn__onnx_call *c)
{
    const double alpha = ctn__onnx_float(c, "alpha", 1);
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (alpha == 1) return ctn__onnx_set(c, 0, ctn_swish_at(c->at, x));
    return ctn__onnx_set(c, 0,
                         ctn_mul_at(c->at, x,
                                    ctn_sigmoid_at(c->at, ctn_scale_at(c->at, x, alpha))));
}

ctn_status ctn__onnx_do_prelu(ctn__onnx_call *c)
{
    const char *at = c->at;
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(at, given);
    ctn_tensor *slope = ctn__onnx_real(at, ctn__onnx_in(c, 1));
    ctn_tensor *zero = ctn__onnx_like(at, x, 0);
    ctn_tensor *y = ctn_where_at(at, ctn_less_at(at, x, zero), ctn_mul_at(at, x, slope), x);
    return ctn__onnx_set(c, 0, back(at, given, y));
}

ctn_status ctn__onnx_do_clip(ctn__onnx_call *c)
{
    const char *at = c->at;
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(at, given);
    double lo = ctn__onnx_float(c, "min", -INFINITY), hi = ctn__onnx_float(c, "max", INFINITY);
    CTN_TRY(ctn__onnx_one_number(c, 1, &lo));
    CTN_TRY(ctn__onnx_one_number(c, 2, &hi));
    if (lo == 0 && hi == INFINITY) return ctn__onnx_set(c, 0, back(at, given, ctn_relu_at(at, x)));
    return ctn__onnx_set(c, 0, back(at, given, ctn_clip_at(at, x, lo, hi)));
}

/* ---- two inputs ------------------------------------------------------------------------------ */

static int64_t int_result(int kind, int64_t a, int64_t b)
{
    switch (kind) {
    case CTN__ONNX_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case CTN__ONNX_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case CTN__ONNX_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case CTN__ONNX_DIV: return b == 0 || (b == -1 && a == INT64_MIN) ? 0 : a / b;
    case CTN__ONNX_MOD: /* the sign of b */
        if (b == 0 || b == -1) return 0;
        return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    case CTN__ONNX_FMOD: return b == 0 || b == -1 ? 0 : a % b; /* the sign of a */
    case CTN__ONNX_MAX: return a > b ? a : b;
    case CTN__ONNX_MIN: return a < b ? a : b;
    case CTN__ONNX_AND: return a & b;
    case CTN__ONNX_OR: return a | b;
    case CTN__ONNX_XOR: return a ^ b;
    case CTN__ONNX_LEFT: return b < 0 || b > 63 ? 0 : (int64_t)((uint64_t)a << b);
    case CTN__ONNX_RIGHT: return a >> (b < 0 || b > 63 ? 63 : b);
    case CTN__ONNX_EQUAL: return a == b;
    case CTN__ONNX_LESS: return a < b;
    case CTN__ONNX_LESS_EQUAL: return a <= b;
    case CTN__ONNX_GREATER: return a > b;
    case CTN__ONNX_GREATER_EQUAL: return a >= b;
    default: break;
    }
    const double p = pow((double)a, (double)b);
    return p >= 9.2e18 ? INT64_MAX : p > -9.2e18 ? (int64_t)p : INT64_MIN;
}

static double number_result(int kind, double a, double b)
{
    switch (kind) {
    case CTN__ONNX_ADD: return a + b;
    case CTN__ONNX_SUB: return a - b;
    case CTN__ONNX_MUL: return a * b;
    case CTN__ONNX_DIV: return a / b;
    case CTN__ONNX_FMOD: return fmod(a, b);
    case CTN__ONNX_MOD: a = fmod(a, b); return a != 0 && (a < 0) != (b < 0) ? a + b : a;
    case CTN__ONNX_MAX: return a > b || isnan(a) ? a : b;
    case CTN__ONNX_MIN: return a < b || isnan(a) ? a : b;
    case CTN__ONNX_EQUAL: return a == b;
    case CTN__ONNX_LESS: return a < b;
    case CTN__ONNX_LESS_EQUAL: return a <= b;
    case CTN__ONNX_GREATER: return a > b;
    case CTN__ONNX_GREATER_EQUAL: return a >= b;
    default: return pow(a, b);
    }
}

void ctn__onnx_put_int(void *p, ctn_dtype t, int64_t i, int64_t x)
{
    switch (t) {
    case CTN_I64: ((int64_t *)p)[i] = x; break;
    case CTN_I32: ((int32_t *)p)[i] = (int32_t)x; break;
    case CTN_U8: ((uint8_t *)p)[i] = (uint8_t)x; break;
    case CTN_BOOL: ((uint8_t *)p)[i] = x != 0; break;
    default: ctn__elem_set(p, t, i, (double)x); break;
    }
}

/* Numbers beyond int64_t become the nearest one. */
void ctn__onnx_put_number(void *p, ctn_dtype t, int64_t i, double x)
{
    if (ctn__is_float(t) || t == CTN_BOOL) ctn__elem_set(p, t, i, x);
    else ctn__onnx_put_int(p, t, i, ctn__onnx_to_int(x));
}

/* An empty dimension counts as 1, because strides are products of the others. */
ctn_status ctn__onnx_broadcast(const ctn__onnx_call *c, ctn_desc *out, const ctn_desc *a,
                               const ctn_desc *b)
{
    int64_t n = sizeof(double);
    for (int i = 1; i <= a->ndim || i <= b->ndim; i++) {
        const int64_t x = i <= a->ndim ? a->dim[a->ndim - i] : 1;
        const int64_t y = i <= b->ndim ? b->dim[b->ndim - i] : 1;
        const int64_t most = x > y ? x : y;
        n = ctn__onnx_times(n, most > 0 ? most : 1);
    }
    if (n == INT64_MAX)
        return ctn__onnx_fail(c, CTN_ESHAPE, "the result is too large for this machine");
    return ctn__broadcast(out, c->node->op->name, a, b);
}

ctn_desc ctn__onnx_desc(const ctn__onnx_value *v)
{
    ctn_desc d = {.dtype = v->dtype, .ndim = v->ndim};
    memcpy(d.dim, v->dim, sizeof d.dim);
    ctn__plain(&d);
    return d;
}

int64_t ctn__onnx_offset(const ctn_desc *d, int64_t i, const ctn_desc *shape)
{
    int64_t at = 0;
    for (int k = shape->ndim; k-- > 0;) {
        at += i % shape->dim[k] * d->stride[k];
        i /= shape->dim[k];
    }
    return at;
}

/* out = a kind b on arrays, with broadcasting. out_type: the type of the result. */
static ctn_status host_binary(ctn__onnx_call *c, int kind, const ctn__onnx_value *a,
                              const ctn__onnx_value *b, ctn_dtype out_type)
{
    ctn_desc da = ctn__onnx_desc(a), db = ctn__onnx_desc(b), out = {0};
    CTN_TRY(ctn__onnx_broadcast(c, &out, &da, &db));
    da = ctn__broadcast_view(&da, &out);
    db = ctn__broadcast_view(&db, &out);
    const ctn__onnx_value x = *a, z = *b; /* the output may be one of them */
    void *y = ctn__onnx_set_host(c, 0, out_type, out.ndim, out.dim);
    if (!y) return ctn_error_status();
    const bool real = ctn__is_float(x.dtype) || ctn__is_float(z.dtype);
    const int64_t n = ctn__count(&out);
    for (int64_t i = 0; i < n; i++) {
        const int64_t p = ctn__onnx_offset(&da, i, &out), q = ctn__onnx_offset(&db, i, &out);
        if (real)
            ctn__onnx_put_number(y, out_type, i,
                                 number_result(kind, ctn__onnx_number_of(&x, p),
                                               ctn__onnx_number_of(&z, q)));
        else
            ctn__onnx_put_int(y, out_type, i,
                              int_result(kind, ctn__onnx_int_of(&x, p), ctn__onnx_int_of(&z, q)));
    }
    return CTN_OK;
}

/* Are both inputs arrays, and the result small enough to be one? */
static bool host_pair(const ctn__onnx_call *c)
{
    const ctn__onnx_value *a = c->in[0], *b = c->in[1];
    return ctn__onnx_all_host(c) &&
           (ctn__onnx_count(a) * ctn__onnx_count(b) <= CTN__ONNX_SMALL || a->ndim + b->ndim <= 2);
}

/* Is the value a single f32 number that is known while recording? */
static bool known_number(const ctn__onnx_value *v, double *x)
{
    if (v->dtype != CTN_F32 || v->ndim != 0 || !ctn__onnx_is_host(v)) return false;
    *x = ctn__onnx_number_of(v, 0);
    return true;
}

/* The remainder with the sign of b. */
static ctn_tensor *mod_of(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    ctn_tensor *r = ctn_fmod_at(at, a, b);
    ctn_tensor *other = ctn_less_at(at, ctn_mul_at(at, ctn_sign_at(at, r), ctn_sign_at(at, b)),
                                    ctn__onnx_like(at, a, 0));
    return ctn_where_at(at, other, ctn_add_at(at, r, b), r);
}

static ctn_tensor *arithmetic(ctn__onnx_call *c, int kind, ctn_tensor *a, ctn_tensor *b)
{
    if (kind == CTN__ONNX_MOD) return mod_of(c->at, a, b);
    if (kind == CTN__ONNX_FMOD) return ctn_fmod_at(c->at, a, b);
    return c->node->op->binary(c->at, a, b);
}

ctn_status ctn__onnx_do_binary(ctn__onnx_call *c)
{
    int kind = c->node->op->kind;
    const char *at = c->at;
    double x;
    if (kind == CTN__ONNX_MOD && ctn__onnx_int(c, "fmod", 0)) kind = CTN__ONNX_FMOD;
    if (!ctn__onnx_has(c, 0) || !ctn__onnx_has(c, 1))
        return ctn__onnx_fail(c, CTN_EFORMAT, "expected two inputs");
    if (host_pair(c)) return host_binary(c, kind, c->in[0], c->in[1], c->in[0]->dtype);
    if (kind <= CTN__ONNX_MUL && known_number(c->in[1], &x))
        return ctn__onnx_set(c, 0,
                             kind == CTN__ONNX_MUL
                                 ? ctn_scale_at(at, ctn__onnx_in(c, 0), x)
                                 : ctn_shift_at(at, ctn__onnx_in(c, 0), kind ? -x : x));
    if ((kind == CTN__ONNX_MUL || kind == CTN__ONNX_ADD) && known_number(c->in[0], &x))
        return ctn__onnx_set(c, 0,
                             (kind == CTN__ONNX_MUL ? ctn_scale_at
                                                    : ctn_shift_at)(at, ctn__onnx_in(c, 1), x));
    ctn_tensor *a = ctn__onnx_in(c, 0), *b = ctn__onnx_in(c, 1);
    if (!a || !b) return ctn_error_status();
    const ctn_dtype type = a->d.dtype;
    if (ctn__is_f32_f64(type) && type == b->d.dtype)
        return ctn__onnx_set(c, 0, arithmetic(c, kind, a, b));
    ctn_tensor *y = arithmetic(c, kind, ctn_cast_at(at, a, CTN_F64), ctn_cast_at(at, b, CTN_F64));
    if (kind == CTN__ONNX_DIV && !ctn__is_float(type)) y = ctn_trunc_at(at, y);
    return ctn__onnx_set(c, 0, ctn_cast_at(at, y, type));
}

ctn_status ctn__onnx_do_pow(ctn__onnx_call *c)
{
    if (!ctn__onnx_has(c, 0) || !ctn__onnx_has(c, 1))
        return ctn__onnx_fail(c, CTN_EFORMAT, "expected two inputs");
    if (host_pair(c)) return host_binary(c, CTN__ONNX_POW, c->in[0], c->in[1], c->in[0]->dtype);
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(c->at, given);
    if (ctn__onnx_is_host(c->in[1]) && ctn__onnx_count(c->in[1]) == 1 &&
        c->in[1]->ndim <= c->in[0]->ndim) {
        const double p = ctn__onnx_number_of(c->in[1], 0);
        ctn_tensor *y = p == 2     ? ctn_square_at(c->at, x)
                        : p == 0.5 ? ctn_sqrt_at(c->at, x)
                                   : ctn_power_at(c->at, x, p);
        return ctn__onnx_set(c, 0, back(c->at, given, y));
    }
    ctn_tensor *p = ctn__onnx_in(c, 1);
    if (!x || !p) return ctn_error_status();
    p = ctn_cast_at(c->at, p, x->d.dtype);
    return ctn__onnx_set(c, 0, back(c->at, given, ctn_pow_at(c->at, x, p)));
}

ctn_status ctn__onnx_do_compare(ctn__onnx_call *c)
{
    const int kind = c->node->op->kind;
    if (!ctn__onnx_has(c, 0) || !ctn__onnx_has(c, 1))
        return ctn__onnx_fail(c, CTN_EFORMAT, "expected two inputs");
    if (host_pair(c)) return host_binary(c, kind, c->in[0], c->in[1], CTN_BOOL);
    return ctn__onnx_set(c, 0, c->node->op->binary(c->at, ctn__onnx_in(c, 0), ctn__onnx_in(c, 1)));
}

ctn_tensor *ctn__onnx_xor(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn_not_equal_at(at, a, b);
}

/* Operations on bits, which only arrays have. */
ctn_status ctn__onnx_do_bits(ctn__onnx_call *c)
{
    int kind = c->node->op->kind;
    CTN_TRY(ctn__onnx_need_all(c));
    if (!ctn__onnx_has(c, 0) || !ctn__onnx_has(c, 1))
        return ctn__onnx_fail(c, CTN_EFORMAT, "expected two inputs");
    if (kind == CTN__ONNX_LEFT && ctn__onnx_text_is(c, "direction", "RIGHT", false))
        kind = CTN__ONNX_RIGHT;
    if (c->in[0]->widened && kind == CTN__ONNX_LEFT)
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "bits of an integer type that Catena lacks");
    return host_binary(c, kind, c->in[0], c->in[1], c->in[0]->dtype);
}

ctn_status ctn__onnx_do_bitwise_not(ctn__onnx_call *c)
{
    CTN_TRY(ctn__onnx_need(c, 0));
    const ctn__onnx_value *x = c->in[0];
    if (x->widened)
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "bits of an integer type that Catena lacks");
    void *y = ctn__onnx_set_host(c, 0, x->dtype, x->ndim, x->dim);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < ctn__onnx_count(x); i++)
        ctn__onnx_put_int(y, x->dtype, i, ~ctn__onnx_int_of(x, i));
    return CTN_OK;
}

/* ---- any number of inputs -------------------------------------------------------------------- */

ctn_status ctn__onnx_do_variadic(ctn__onnx_call *c)
{
    const int kind = c->node->op->kind;
    if (c->nin == 2 && ctn__onnx_has(c, 0) && ctn__onnx_has(c, 1) && kind != CTN__ONNX_MEAN &&
        host_pair(c))
        return host_binary(c, kind, c->in[0], c->in[1], c->in[0]->dtype);
    ctn_tensor *given = ctn__onnx_in(c, 0), *y = ctn__onnx_real(c->at, given);
    for (int i = 1; i < c->nin; i++)
        y = c->node->op->binary(c->at, y, ctn__onnx_real(c->at, ctn__onnx_in(c, i)));
    if (kind == CTN__ONNX_MEAN) y = ctn_scale_at(c->at, y, 1.0 / c->nin);
    return ctn__onnx_set(c, 0, back(c->at, given, y));
}

ctn_status ctn__onnx_do_where(ctn__onnx_call *c)
{
    ctn_desc d[3], values = {0}, out = {0};
    for (int i = 0; i < 3; i++) {
        if (!ctn__onnx_has(c, i)) return ctn__onnx_fail(c, CTN_EFORMAT, "expected three inputs");
        d[i] = ctn__onnx_desc(c->in[i]);
    }
    if (d[1].dtype != d[2].dtype)
        return ctn__onnx_fail(c, CTN_EDTYPE, "the values are %s and %s, expected one type",
                              ctn_dtype_name(d[1].dtype), ctn_dtype_name(d[2].dtype));
    CTN_TRY(ctn__onnx_broadcast(c, &values, &d[1], &d[2]));
    CTN_TRY(ctn__onnx_broadcast(c, &out, &d[0], &values));
    if (!ctn__onnx_all_host(c) || ctn__count(&out) > CTN__ONNX_SMALL)
        return ctn__onnx_set(c, 0,
                             ctn_where_at(c->at, ctn__onnx_in(c, 0), ctn__onnx_in(c, 1),
                                          ctn__onnx_in(c, 2)));
    for (int i = 0; i < 3; i++) d[i] = ctn__broadcast_view(&d[i], &out);
    const ctn_dtype type = c->in[1]->dtype;
    char *y = ctn__onnx_set_host(c, 0, type, out.ndim, out.dim);
    if (!y) return ctn_error_status();
    const size_t es = ctn_dtype_size(type);
    const int64_t n = ctn__count(&out);
    for (int64_t i = 0; i < n; i++) {
        const int from = ctn__onnx_int_of(c->in[0], ctn__onnx_offset(&d[0], i, &out)) ? 1 : 2;
        const char *x = c->in[from]->host;
        memcpy(y + (size_t)i * es, x + (size_t)ctn__onnx_offset(&d[from], i, &out) * es, es);
    }
    return CTN_OK;
}

/* ---- types ----------------------------------------------------------------------------------- */

static ctn_status cast_to(ctn__onnx_call *c, ctn_dtype to)
{
    if (!ctn__onnx_has(c, 0)) return ctn__onnx_fail(c, CTN_EFORMAT, "there is no input");
    const ctn__onnx_value *x = c->in[0];
    if (!ctn__onnx_all_host(c))
        return ctn__onnx_set(c, 0, ctn_cast_at(c->at, ctn__onnx_in(c, 0), to));
    void *y = ctn__onnx_set_host(c, 0, to, x->ndim, x->dim);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < ctn__onnx_count(x); i++) {
        if (ctn__is_float(to)) ctn__elem_set(y, to, i, ctn__onnx_number_of(x, i));
        else if (to == CTN_BOOL) ctn__onnx_put_int(y, to, i, ctn__onnx_number_of(x, i) != 0);
        else ctn__onnx_put_int(y, to, i, ctn__onnx_int_of(x, i));
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_cast(ctn__onnx_call *c)
{
    const int64_t to = ctn__onnx_int(c, "to", 0);
    const ctn_dtype type = to > 0 && to < 100 ? ctn__onnx_dtype((int32_t)to) : 0;
    if (type == 0)
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "ONNX type %lld is not supported",
                              (long long)to);
    CTN_TRY(cast_to(c, type));
    if (c->nout > 0 && c->out[0]) c->out[0]->widened = ctn__onnx_widened((int32_t)to);
    return CTN_OK;
}

ctn_status ctn__onnx_do_cast_like(ctn__onnx_call *c)
{
    if (!ctn__onnx_has(c, 1)) return ctn__onnx_fail(c, CTN_EFORMAT, "expected two inputs");
    return cast_to(c, c->in[1]->dtype);
}

#endif
