/* SPDX-License-Identifier: Apache-2.0
 *
 * Weight and spectral normalisation against PyTorch (weight_norm.py): the losses of 10 steps of a
 * net with both, along several dimensions, its results in evaluation, and every parameter and
 * state. Also: the first u and v find the largest singular value, and errors.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/nn.h>
#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "support/ok.h"
#include "weight_norm.inc"

enum { STEPS = 10, LAYERS = 5 };

static void value(int seed, double scale, double shift, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(shift + scale * (double)(((i * 37 + seed * 101) * 7919) % 257 - 128) / 128);
}

static ctn_var *find(ctn_module *m, const char *name)
{
    ctn_var *v = ctn_module_find(m, name);
    assert_non_null(v);
    return v;
}

static int64_t elements(const ctn_var *v)
{
    const ctn_desc *d = ctn_var_desc(v);
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    return n;
}

static void set_unit(ctn_var *v, int seed)
{
    float x[16];
    double sum = 0;
    const int64_t n = elements(v);
    value(seed, 1, 1.5, n, x);
    for (int64_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    for (int64_t i = 0; i < n; i++) x[i] = (float)((double)x[i] / sqrt(sum));
    OK(ctn_var_set(v, x, (size_t)n * sizeof *x));
}

static void make(ctn_context *ctx, ctn_module **l)
{
    OK(ctn_conv_new(&l[0], ctx, 2, 3, CTN_SHAPE(2, 2), NULL));
    OK(ctn_linear_new(&l[1], ctx, 12, 5, NULL));
    OK(ctn_linear_new(&l[2], ctx, 5, 4, NULL));
    OK(ctn_linear_new(&l[3], ctx, 4, 4, NULL));
    OK(ctn_linear_new(&l[4], ctx, 4, 2, NULL));
    for (int i = 0, seed = 1; i < LAYERS; i++) {
        static const char *const names[] = {"weight", "bias"};
        for (int k = 0; k < 2; k++) {
            float x[64];
            ctn_var *v = find(l[i], names[k]);
            value(seed++, 0.6, 0, elements(v), x);
            OK(ctn_var_set(v, x, (size_t)elements(v) * sizeof *x));
        }
    }
    OK(ctn_weight_norm_add(l[0], "weight", 0));
    OK(ctn_spectral_norm_add(l[1], "weight", NULL));
    OK(ctn_spectral_norm_add(l[2], "weight",
                             CTN_OPT(ctn_spectral_norm_opt, .dim = 1, .iterations = 2)));
    OK(ctn_weight_norm_add(l[3], "weight", 1));
    OK(ctn_weight_norm_add(l[4], "weight", -1));
    set_unit(find(l[1], "weight_u"), 43);
    set_unit(find(l[1], "weight_v"), 44);
    set_unit(find(l[2], "weight_u"), 45);
    set_unit(find(l[2], "weight_v"), 46);
}

static ctn_tensor *forward(ctn_module **l, ctn_tensor *x)
{
    x = ctn_reshape(ctn_tanh(ctn_call(l[0], x)), CTN_SHAPE(4, 12));
    x = ctn_tanh(ctn_call(l[2], ctn_tanh(ctn_call(l[1], x))));
    return ctn_call(l[4], ctn_call(l[3], x));
}

static void near(int i, double got)
{
    if (!(fabs(got - golden[i]) <= 1e-5))
        fail_msg("value %d is %.9g, PyTorch has %.9g", i, got, golden[i]);
}

static void check_var(ctn_module *m, const char *name, int *at)
{
    float x[64];
    ctn_var *v = find(m, name);
    OK(ctn_var_get(v, x, (size_t)elements(v) * sizeof *x));
    for (int64_t i = 0; i < elements(v); i++) near((*at)++, (double)x[i]);
}

static void train(ctn_context *ctx, ctn_module **l)
{
    ctn_optim *o;
    ctn_var *var[32];
    int n = 0;
    for (int i = 0; i < LAYERS; i++) {
        const ctn_vars p = ctn_params(l[i]);
        for (int k = 0; k < p.n; k++) var[n++] = p.var[k];
    }
    OK(ctn_sgd_new(&o, (ctn_vars){n, var, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    for (int step = 0; step < STEPS; step++) {
        static float x[72], t[8];
        value(20 + step, 1, 0, 72, x);
        value(60 + step, 1, 0, 8, t);
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = forward(l, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4, 2, 3, 3)));
        ctn_tensor *loss =
            ctn_mean_squared_error(y, ctn_input(ctx, t, CTN_F32, CTN_SHAPE(4, 2)), CTN_MEAN);
        OK(ctn_backward(o, loss));
        OK(ctn_optim_step(o));
        near(step, (double)ctn_item(loss));
        OK(ctn_scope_end(ctx));
    }
    ctn_optim_free(o);
}

static void agrees_with_pytorch(void **state)
{
    (void)state;
    for (int eager = 0; eager < 2; eager++) {
        ctn_context *ctx;
        ctn_module *l[LAYERS];
        int at = STEPS;
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt,
                                         .mode = eager ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
        make(ctx, l);
        train(ctx, l);
        static float x[72];
        float y[8];
        value(90, 1, 0, 72, x);
        ctn_context_set_training(ctx, 0);
        OK(ctn_scope_begin(ctx));
        OK(ctn_read(forward(l, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4, 2, 3, 3))), y, sizeof y));
        OK(ctn_scope_end(ctx));
        for (int i = 0; i < 8; i++) near(at++, (double)y[i]);
        for (int i = 0; i < LAYERS; i++) {
            const bool spectral = i == 1 || i == 2;
            check_var(l[i], "weight", &at);
            check_var(l[i], "bias", &at);
            check_var(l[i], spectral ? "weight_u" : "weight_g", &at);
            if (spectral) check_var(l[i], "weight_v", &at);
        }
        assert_int_equal(at, sizeof golden / sizeof *golden);
        for (int i = 0; i < LAYERS; i++) ctn_module_free(l[i]);
        ctn_context_free(ctx);
    }
}

/* diag(3,1,0.5) / 3 */
static void starts_near_the_singular_value(void **state)
{
    (void)state;
    const float w[9] = {3, 0, 0, 0, 1, 0, 0, 0, 0.5f};
    static const float x[3] = {3, 3, 3};
    float y[3];
    ctn_context *ctx;
    ctn_module *m, *copy = NULL;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_linear_new(&m, ctx, 3, 3, CTN_OPT(ctn_linear_opt, .no_bias = 1)));
    OK(ctn_var_set(find(m, "weight"), w, sizeof w));
    OK(ctn_spectral_norm_add(m, "weight", NULL));
    ctn_context_set_training(ctx, 0);
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 3))), y, sizeof y));
    OK(ctn_scope_end(ctx));
    assert_true(fabs((double)y[0] - 3) < 1e-5 && fabs((double)y[1] - 1) < 1e-5);
    assert_int_equal(ctn_spectral_norm_add(m, "weight", NULL), CTN_ESTATE);
    assert_int_equal(ctn_weight_norm_add(m, "bias", 0), CTN_ENOTFOUND);
    assert_int_equal(ctn_lora_add(m, NULL), CTN_ESTATE);
    assert_int_equal(ctn_module_copy(&copy, m), CTN_EUNSUPPORTED);
    ctn_error_clear();
    ctn_module_free(m);
    OK(ctn_linear_new(&m, ctx, 3, 3, NULL));
    assert_int_equal(ctn_weight_norm_add(m, "weight", 2), CTN_ESHAPE);
    assert_int_equal(ctn_spectral_norm_add(m, "bias", NULL), CTN_ESHAPE);
    ctn_error_clear();
    ctn_module_free(m);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_pytorch),
        cmocka_unit_test(starts_near_the_singular_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
