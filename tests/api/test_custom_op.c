/* SPDX-License-Identifier: Apache-2.0
 *
 * A user's own op, with public headers only and linked to the shared library. y = s x^n, with an
 * attribute n and a scalar s, uses the same struct and the same entry point as built-in ops. It
 * is trained, differentiated twice and gradient-checked. The checker must find and name a wrong
 * gradient and a missing one.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/op.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include "../support/ok.h"

#include <cmocka.h>

static ctn_context *ctx;

static int setup(void **state)
{
    (void)state;
    ctn_error_clear();
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2, .seed = 3)) < 0;
}

static int teardown(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

static int64_t elements(const ctn_desc *d)
{
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    return n;
}

/* ---- power: y = s x^n ----------------------------------------------------------------------- */

static ctn_status power_infer(ctn_infer_args *a)
{
    if (a->in[0]->dtype != CTN_F32 && a->in[0]->dtype != CTN_F64)
        return ctn_fail(CTN_EDTYPE, "%s: x is %s, f32 or f64 is needed", a->name,
                        ctn_dtype_name(a->in[0]->dtype));
    if (a->nattr != 1 || a->attr[0] < 0)
        return ctn_fail(CTN_EARG, "%s: one exponent, not below 0, is needed", a->name);
    a->out[0] = *a->in[0];
    return CTN_OK;
}

#define POWER(T)                                                           \
    static void power_##T(const T *x, T *y, int64_t count, int64_t n, T s) \
    {                                                                      \
        for (int64_t i = 0; i < count; i++) {                              \
            T v = s;                                                       \
            for (int64_t k = 0; k < n; k++) v *= x[i];                     \
            y[i] = v;                                                      \
        }                                                                  \
    }
POWER(float)
POWER(double)

static ctn_status power_run(const ctn_run_args *a)
{
    int64_t count = elements(&a->dout[0]);
    if (a->dout[0].dtype == CTN_F32)
        power_float(a->in[0], a->out[0], count, a->attr[0], (float)a->scalar[0]);
    else power_double(a->in[0], a->out[0], count, a->attr[0], a->scalar[0]);
    return CTN_OK;
}

static ctn_tensor *power_at(const char *at, ctn_tensor *x, int64_t n, ctn_scalar s);

/* gx = gy n (s x^(n-1)), made of the op itself and built-in ones, so any order works. */
static ctn_status power_grad(const ctn_grad_args *a)
{
    int64_t n = a->attr[0];
    if (n == 0) return CTN_OK;
    ctn_tensor *slope = power_at(a->at, a->in[0], n - 1, a->scalar[0]);
    a->gin[0] = ctn_mul_at(a->at, a->gout[0], ctn_scale_at(a->at, slope, (double)n));
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

static const char *const power_attrs[] = {"exponent"};
static ctn_op power_op = {
    .struct_size = sizeof(ctn_op),
    .name = "my_power",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .attr_names = power_attrs,
    .infer = power_infer,
    .grad = power_grad,
    .run = power_run,
};

static ctn_tensor *power_at(const char *at, ctn_tensor *x, int64_t n, ctn_scalar s)
{
    ctn_tensor *y;
    ctn_op_args args = {.nattr = 1, .attr = &n, .nscalar = 1, .scalar = &s};
    return ctn_apply_at(at, NULL, &power_op, 1, &x, &args, &y) < 0 ? NULL : y;
}
#define power(x, n, s) power_at(CTN_HERE, x, n, CTN_CONST(s))

/* ---- wrong: y = a b^2, whose gradient by b lacks the 2; blind: no gradient at all ------------ */

static ctn_status first_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static ctn_status wrong_run(const ctn_run_args *a)
{
    const double *x = a->in[0], *z = a->in[1];
    double *y = a->out[0];
    for (int64_t i = 0; i < elements(&a->dout[0]); i++) y[i] = x[i] * z[i] * z[i];
    return CTN_OK;
}

static ctn_status wrong_grad(const ctn_grad_args *a)
{
    ctn_tensor *gb = ctn_mul(a->gout[0], a->in[1]);
    a->gin[0] = ctn_mul(gb, a->in[1]);
    a->gin[1] = ctn_mul(gb, a->in[0]);
    return a->gin[0] && a->gin[1] ? CTN_OK : ctn_error_status();
}

static ctn_op wrong_op = {
    .struct_size = sizeof(ctn_op),
    .name = "my_wrong",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERANDS(2),
    .infer = first_infer,
    .grad = wrong_grad,
    .run = wrong_run,
};

static ctn_status blind_run(const ctn_run_args *a)
{
    memcpy(a->out[0], a->in[0], (size_t)elements(&a->dout[0]) * sizeof(float));
    return CTN_OK;
}

static ctn_op blind_op = {
    .struct_size = sizeof(ctn_op),
    .name = "my_blind",
    .nin = 1,
    .nout = 1,
    .order = -1, /* promises gradients but has none */
    .infer = first_infer,
    .run = blind_run,
};

/* ---- tests ---------------------------------------------------------------------------------- */

static ctn_plan_stats stats(void)
{
    ctn_plan_stats s;
    ctn_context_get_stats(ctx, &s);
    return s;
}

static void values_of_both_types(void **state)
{
    (void)state;
    float f[6] = {1, -2, 3, 0.5f, 0, -1}, y[6];
    double d[6] = {1, -2, 3, 0.5, 0, -1}, z[6];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_input(ctx, f, CTN_F32, CTN_SHAPE(2, 3));
    /* reaches `run` in row-major order */
    ctn_tensor *turned = ctn_transpose(t, 2, (const int64_t[]){1, 0});
    OK(ctn_read(power(turned, 3, 2), y, sizeof y));
    for (int i = 0; i < 6; i++) {
        float v = f[i % 2 * 3 + i / 2];
        assert_float_equal(y[i], 2 * v * v * v, 0);
    }
    OK(ctn_read(power(ctn_input(ctx, d, CTN_F64, CTN_SHAPE(6)), 2, 0.5), z, sizeof z));
    for (int i = 0; i < 6; i++) assert_true(z[i] == 0.5 * d[i] * d[i]);
    OK(ctn_scope_end(ctx));
}

static void scalars_are_values_and_attributes_are_not(void **state)
{
    (void)state;
    float x = 2;
    for (int i = 0; i < 6; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_with_grad(ctn_input(ctx, &x, CTN_F32, CTN_SHAPE(1))), *g;
        ctn_tensor *y = power(t, 3, i);
        OK(ctn_grad(y, 1, &t, &g));
        /* The new scalar also reaches the gradient. */
        assert_float_equal(ctn_item(g), (float)(12 * i), 0);
        OK(ctn_scope_end(ctx));
    }
    uint64_t misses = stats().misses;
    assert_int_equal(misses, 1);
    for (int n = 1; n < 5; n++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_input(ctx, &x, CTN_F32, CTN_SHAPE(1));
        assert_float_equal(ctn_item(power(t, n, 1)), pow(2, n), 0);
        OK(ctn_scope_end(ctx));
    }
    assert_int_equal(stats().misses - misses, 4);
}

static void second_derivative(void **state)
{
    (void)state;
    double x = 3;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_with_grad(ctn_input(ctx, &x, CTN_F64, CTN_SHAPE(1))), *g, *gg, *ggg;
    OK(ctn_grad(power(t, 3, 0.5), 1, &t, &g));
    OK(ctn_grad(g, 1, &t, &gg));
    OK(ctn_grad(gg, 1, &t, &ggg));
    assert_true(fabs(ctn_item(g) - 13.5) < 1e-12);
    assert_true(fabs(ctn_item(gg) - 9) < 1e-12);
    assert_true(fabs(ctn_item(ggg) - 3) < 1e-12);
    OK(ctn_scope_end(ctx));
}

/* Fits y = 2 (w x)^3 with w = 0.8 by the op between two linear layers. Both modes give one
 * curve. */
static void train(ctn_mode mode, int no_fuse, float *curve, int steps)
{
    ctn_context *c;
    OK(ctn_context_new(&c,
                       CTN_OPT(ctn_context_opt, .threads = 2, .mode = mode, .no_fuse = no_fuse)));
    ctn_var *w[2];
    float init[2][4] = {{0.5f, -0.3f, 0.2f, 0.6f}, {0.4f, 0.3f, -0.5f, 0.2f}};
    OK(ctn_var_new(&w[0], c, "w1", CTN_PARAM, CTN_F32, CTN_SHAPE(4, 1)));
    OK(ctn_var_new(&w[1], c, "w2", CTN_PARAM, CTN_F32, CTN_SHAPE(1, 4)));
    for (int i = 0; i < 2; i++) OK(ctn_var_set(w[i], init[i], sizeof init[i]));
    ctn_optim *o;
    OK(ctn_adam_new(&o, (ctn_vars){2, w, NULL}, CTN_OPT(ctn_adam_opt, .lr = 0.05)));
    float x[16], t[16];
    for (int i = 0; i < 16; i++) {
        x[i] = (float)(i - 8) / 8;
        t[i] = 1.024f * x[i] * x[i] * x[i];
    }
    for (int i = 0; i < steps; i++) {
        OK(ctn_scope_begin(c));
        ctn_tensor *h = ctn_linear(ctn_input(c, x, CTN_F32, CTN_SHAPE(16, 1)), ctn_use(w[0]), NULL);
        ctn_tensor *y = ctn_linear(power(h, 3, 2), ctn_use(w[1]), NULL);
        ctn_tensor *loss =
            ctn_mean_squared_error(y, ctn_input(c, t, CTN_F32, CTN_SHAPE(16, 1)), CTN_MEAN);
        OK(ctn_backward(o, loss));
        OK(ctn_optim_step(o));
        curve[i] = (float)ctn_item(loss);
        OK(ctn_scope_end(c));
    }
    ctn_plan_stats s;
    ctn_context_get_stats(c, &s);
    if (mode == CTN_MODE_PLANNED) assert_int_equal(s.misses, 1);
    ctn_optim_free(o);
    for (int i = 0; i < 2; i++) ctn_var_free(w[i]);
    ctn_context_free(c);
}

static void trained_in_a_net(void **state)
{
    (void)state;
    float planned[100], plain[100], eager[100];
    train(CTN_MODE_PLANNED, 0, planned, 100);
    train(CTN_MODE_PLANNED, 1, plain, 100);
    train(CTN_MODE_EAGER, 0, eager, 100);
    assert_true(planned[0] > 0.05f && planned[99] < 1e-3f);
    for (int i = 0; i < 100; i++) {
        assert_float_equal(planned[i], plain[i], 1e-5);
        assert_float_equal(planned[i], eager[i], 1e-5);
    }
}

static ctn_tensor *checked(void *self, ctn_context *c, ctn_tensor *const *x)
{
    (void)c;
    return power(x[0], *(int *)self, 0.7);
}

static ctn_tensor *wrong(void *self, ctn_context *c, ctn_tensor *const *x)
{
    (void)self;
    ctn_tensor *y;
    return ctn_apply(c, &wrong_op, 2, x, NULL, &y) < 0 ? NULL : y;
}

static void gradient_is_checked(void **state)
{
    (void)state;
    double x[6] = {1, -2, 3, 0.5, 0, -1}, worst;
    ctn_gradcheck_input in[2] = {{CTN_SHAPE(2, 3), x}, {CTN_SHAPE(2, 3), x}};
    for (int n = 1; n < 5; n++) {
        OK(ctn_gradcheck(ctx, checked, &n, 1, in, 1e-6, &worst));
        assert_true(worst < 1e-6);
    }
    /* The gradient by b lacks its factor of 2. */
    assert_int_equal(ctn_gradcheck(ctx, wrong, NULL, 2, in, 1e-6, &worst), CTN_EGRAD);
    assert_true(worst > 0.5);
    assert_non_null(strstr(ctn_error_message(), "input 1, element"));
    assert_non_null(strstr(ctn_error_message(), "(2,3)"));
    assert_int_equal(ctn_gradcheck(NULL, wrong, NULL, 2, in, 1e-6, &worst), CTN_EARG);
    assert_int_equal(ctn_gradcheck(ctx, NULL, NULL, 2, in, 1e-6, &worst), CTN_EARG);
    assert_int_equal(ctn_gradcheck(ctx, wrong, NULL, 2, NULL, 1e-6, &worst), CTN_EARG);
    assert_int_equal(ctn_gradcheck(ctx, wrong, NULL, 0, in, 1e-6, &worst), CTN_EARG);
    ctn_error_clear();
}

static void errors_name_the_op(void **state)
{
    (void)state;
    float x[2] = {1, 2};
    int64_t k[2] = {1, 2};
    ctn_var *w;
    ctn_optim *o;
    OK(ctn_var_new(&w, ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(2)));
    OK(ctn_var_set(w, x, sizeof x));
    OK(ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, NULL));
    /* `infer` refuses: the message names the op and the line */
    OK(ctn_scope_begin(ctx));
    assert_null(ctn_relu(power(ctn_input(ctx, k, CTN_I64, CTN_SHAPE(2)), 2, 1)));
    assert_int_equal(ctn_error_status(), CTN_EDTYPE);
    assert_non_null(strstr(ctn_error_message(), "my_power: x is i64"));
    assert_non_null(strstr(ctn_error_message(), "test_custom_op.c"));
    ctn_error_clear();
    assert_null(power(ctn_use(w), -1, 1));
    assert_int_equal(ctn_error_status(), CTN_EARG);
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    /* Without a gradient, forward works, and backward names the op and where it was called. */
    OK(ctn_scope_begin(ctx));
    ctn_tensor *u = ctn_use(w), *y;
    OK(ctn_apply(ctx, &blind_op, 1, &u, NULL, &y));
    assert_float_equal(((const float *)ctn_data(y))[1], 2, 0);
    OK(ctn_backward(o, ctn_sum(y, CTN_ALL_AXES, 0)));
    assert_int_equal(ctn_optim_step(o), CTN_EGRAD);
    assert_non_null(strstr(ctn_error_message(), "my_blind"));
    assert_non_null(strstr(ctn_error_message(), "has no gradient"));
    assert_non_null(strstr(ctn_error_message(), "test_custom_op.c"));
    ctn_error_clear();
    ctn_scope_end(ctx);
    ctn_error_clear();
    OK(ctn_scope_begin(ctx)); /* the next step works */
    OK(ctn_backward(o, ctn_sum(power(ctn_use(w), 2, 1), CTN_ALL_AXES, 0)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    OK(ctn_var_get(w, x, sizeof x));
    assert_float_equal(x[1], 1.96f, 1e-6);
    ctn_optim_free(o);
    ctn_var_free(w);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(values_of_both_types), T(scalars_are_values_and_attributes_are_not),
        T(second_derivative),    T(trained_in_a_net),
        T(gradient_is_checked),  T(errors_name_the_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
