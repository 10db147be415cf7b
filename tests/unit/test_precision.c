/* SPDX-License-Identifier: Apache-2.0
 *
 * Training in bf16 and f16. Everything the user sees stays f32 and close to training in f32. f16
 * is refused where it is slow, unless it is explicitly allowed. Loss scales that are powers of
 * two change no bit. A step whose gradients overflow is skipped, but its running statistics are
 * kept.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "graph/graph.h"
#include "support/machine.h"
#include "support/ok.h"

#define CONV(...) CTN_OPT(ctn_conv_opt, __VA_ARGS__)

enum {
    N = 4,
    C = 16,
    SIDE = 12,
    PARAMS = 9,
    NORMS = 2,
    MOST = C * C * 9,
    IMAGES = N * C * SIDE * SIDE
};

/* Three kernels, two normalisations, a linear layer with its bias. */
static const int64_t shape[PARAMS][4] = {{C, C, 3, 3}, {C},          {C},     {C, C, 3, 3}, {C},
                                         {C},          {C, C, 1, 1}, {10, C}, {10}};

typedef struct {
    ctn_context *c;
    ctn_var *p[PARAMS], *mean[NORMS], *var[NORMS];
    ctn_optim *o;
    ctn_tensor *kept;
    bool emulate;
} model;

typedef ctn_tensor *(*net)(model *m, ctn_tensor *x);

typedef struct {
    float loss, grad[PARAMS][MOST], value[PARAMS][MOST], mean[NORMS][C], var[NORMS][C];
    float kept[IMAGES];
    char text[65536];
} outcome;

static float images[IMAGES], pattern[IMAGES];

static float noise(uint32_t i)
{
    return (float)(i * 2654435761u >> 8) / (float)(1 << 23) - 1;
}

static int64_t count(const int64_t *d)
{
    int64_t n = 1;
    for (int i = 0; i < 4 && d[i]; i++) n *= d[i];
    return n;
}

static void model_new(model *m, ctn_precision precision, int no_fuse)
{
    static float v[MOST];
    *m = (model){NULL};
    OK(ctn_context_new(&m->c,
                       CTN_OPT(ctn_context_opt, .threads = 2, .seed = 9, .precision = precision,
                               .no_fuse = no_fuse, .slow_precision = 1)));
    for (int i = 0; i < PARAMS; i++) {
        int nd = 0;
        while (nd < 4 && shape[i][nd]) nd++;
        OK(ctn_var_new(&m->p[i], m->c, "p", CTN_PARAM, CTN_F32, nd, shape[i]));
        for (uint32_t k = 0; k < MOST; k++)
            v[k] = (nd > 1 ? 0.2f : 0.3f) * noise((uint32_t)i * 7919 + k) +
                   (i == 1 || i == 4 ? 1.0f : 0);
        OK(ctn_var_set(m->p[i], v, (size_t)count(shape[i]) * sizeof *v));
    }
    for (int i = 0; i < NORMS; i++) {
        OK(ctn_var_new(&m->mean[i], m->c, "mean", CTN_STATE, CTN_F32, CTN_SHAPE(C)));
        OK(ctn_var_new(&m->var[i], m->c, "var", CTN_STATE, CTN_F32, CTN_SHAPE(C)));
    }
    OK(ctn_sgd_new(&m->o, (ctn_vars){PARAMS, m->p, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    for (uint32_t i = 0; i < IMAGES; i++) {
        images[i] = noise(i + 5) + 0.2f;
        pattern[i] = 8 * noise(i + 12345);
    }
}

static void model_free(model *m)
{
    ctn_optim_free(m->o);
    for (int i = 0; i < PARAMS; i++) ctn_var_free(m->p[i]);
    for (int i = 0; i < NORMS; i++) {
        ctn_var_free(m->mean[i]);
        ctn_var_free(m->var[i]);
    }
    ctn_context_free(m->c);
}

/* ---- nets ----------------------------------------------------------------------------------- */

/* In f32, rounds x and its gradient where the policy would. */
static ctn_tensor *rounded(const model *m, ctn_tensor *x)
{
    return m->emulate ? ctn_cast(ctn_cast(x, CTN_BF16), CTN_F32) : x;
}

static ctn_tensor *conv(model *m, ctn_tensor *x, int w)
{
    ctn_tensor *k = rounded(m, ctn_use(m->p[w]));
    return rounded(m, ctn_conv(rounded(m, x), k, NULL, CONV(.pad = {shape[w][2] / 2})));
}

static ctn_tensor *norm(model *m, ctn_tensor *x, int scale)
{
    int k = scale / 3;
    return rounded(m, ctn_batch_norm(x, ctn_use(m->p[scale]), ctn_use(m->p[scale + 1]), m->mean[k],
                                     m->var[k], NULL));
}

/* A gradient that is constant over an image would nearly vanish in a normalisation, and only
 * rounding errors would be left. The pattern prevents that. */
static ctn_tensor *head(model *m, ctn_tensor *x)
{
    static const int64_t label[N] = {3, 1, 9, 0};
    x = ctn_mul(x, ctn_input(m->c, pattern, CTN_F32, CTN_SHAPE(N, C, SIDE, SIDE)));
    x = ctn_reshape(ctn_global_avg_pool(x), CTN_SHAPE(N, C));
    x = ctn_linear(x, ctn_use(m->p[7]), ctn_use(m->p[8]));
    assert_int_equal(ctn_dtype_of(x), CTN_F32);
    return ctn_softmax_cross_entropy(x, ctn_input(m->c, label, CTN_I64, CTN_SHAPE(N)));
}

static ctn_tensor *residual(model *m, ctn_tensor *x)
{
    ctn_tensor *h = ctn_relu(norm(m, conv(m, x, 0), 1));
    h = ctn_relu(ctn_add(norm(m, conv(m, h, 3), 4), h));
    return head(m, ctn_relu(conv(m, h, 6)));
}

/* The shortcut is an input in f32, and the activation is kept in f32. */
static ctn_tensor *residual_of_input(model *m, ctn_tensor *x)
{
    ctn_tensor *h = ctn_relu(ctn_add(norm(m, conv(m, x, 0), 1), x));
    m->kept = ctn_keep(h);
    h = ctn_relu(norm(m, conv(m, h, 3), 4));
    return head(m, conv(m, h, 6));
}

/* Kept values are not rounded, and neither is the normalisation that reads them. */
static ctn_tensor *kept_conv(model *m, ctn_tensor *x)
{
    const bool emulate = m->emulate;
    ctn_tensor *w = rounded(m, ctn_use(m->p[0])), *in = rounded(m, x);
    m->emulate = false;
    ctn_tensor *h = m->kept = ctn_keep(ctn_conv(in, w, NULL, CONV(.pad = {1})));
    h = ctn_relu(norm(m, h, 1));
    m->emulate = emulate;
    return head(m, ctn_tanh(conv(m, norm(m, ctn_relu(conv(m, h, 3)), 4), 6)));
}

static ctn_tensor *mixed(model *m, ctn_tensor *x)
{
    ctn_tensor *h = ctn_relu(norm(m, conv(m, x, 0), 1));
    ctn_tensor *g = ctn_sigmoid(ctn_global_avg_pool(conv(m, h, 6)));
    h = ctn_mul(h, g); /* a mask (N,C,1,1) */
    ctn_tensor *part[2] = {ctn_slice(h, 1, 4, 12), ctn_slice(h, 1, 0, 4)};
    h = ctn_dropout(ctn_concat(2, part, 1), 0.2);
    h = ctn_max_pool(h, CTN_OPT(ctn_pool_opt, .kernel = {3}, .stride = {1}, .pad = {1}));
    h = ctn_transpose(ctn_transpose(h, CTN_SHAPE(0, 2, 3, 1)), CTN_SHAPE(0, 3, 1, 2));
    return head(m, norm(m, conv(m, ctn_add(h, x), 3), 4));
}

/* ---- comparisons ---------------------------------------------------------------------------- */

static void record(model *m, outcome *out)
{
    for (int i = 0; i < PARAMS; i++) {
        size_t bytes = (size_t)count(shape[i]) * sizeof(float);
        assert_int_equal(ctn_var_desc(m->p[i])->dtype, CTN_F32);
        memcpy(out->grad[i], m->p[i]->grad, bytes);
        OK(ctn_var_get(m->p[i], out->value[i], bytes));
    }
    for (int i = 0; i < NORMS; i++) {
        assert_int_equal(ctn_var_desc(m->mean[i])->dtype, CTN_F32);
        OK(ctn_var_get(m->mean[i], out->mean[i], sizeof out->mean[i]));
        OK(ctn_var_get(m->var[i], out->var[i], sizeof out->var[i]));
    }
}

static void step(model *m, net n, outcome *out)
{
    memset(out, 0, sizeof *out);
    OK(ctn_scope_begin(m->c));
    ctn_tensor *loss = n(m, ctn_input(m->c, images, CTN_F32, CTN_SHAPE(N, C, SIDE, SIDE)));
    assert_int_equal(ctn_dtype_of(loss), CTN_F32);
    OK(ctn_backward(m->o, loss));
    OK(ctn_optim_step(m->o));
    out->loss = (float)ctn_item(loss);
    if (m->kept) {
        assert_int_equal(ctn_dtype_of(m->kept), CTN_F32);
        OK(ctn_read(m->kept, out->kept, sizeof out->kept));
    }
    assert_true(ctn_context_plan_text(m->c, out->text, sizeof out->text) < (int)sizeof out->text);
    OK(ctn_scope_end(m->c));
    record(m, out);
}

static void near(const char *name, const char *what, int i, const float *a, const float *b, int n,
                 double tolerance)
{
    double d = 0, s = 0;
    for (int k = 0; k < n; k++) {
        if (!isfinite(a[k]))
            fail_msg("%s: %s %d, element %d is %g", name, what, i, k, (double)a[k]);
        d += pow((double)a[k] - (double)b[k], 2);
        s += pow((double)b[k], 2);
    }
    if (!(sqrt(d) <= tolerance * sqrt(s)))
        fail_msg("%s: %s %d differs by %g of %g", name, what, i, sqrt(d), sqrt(s));
}

static void compare(const char *name, const outcome *a, const outcome *b, double tolerance,
                    double of_gradients)
{
    near(name, "loss", 0, &a->loss, &b->loss, 1, tolerance);
    near(name, "kept", 0, a->kept, b->kept, IMAGES, tolerance);
    for (int i = 0; i < PARAMS; i++) {
        near(name, "gradient", i, a->grad[i], b->grad[i], MOST, of_gradients);
        near(name, "value", i, a->value[i], b->value[i], MOST, tolerance);
    }
    for (int i = 0; i < NORMS; i++) {
        near(name, "mean", i, a->mean[i], b->mean[i], C, tolerance);
        near(name, "variance", i, a->var[i], b->var[i], C, tolerance);
    }
}

static void one_step(net n, ctn_precision p, int no_fuse, bool emulate, outcome *out)
{
    model m;
    model_new(&m, p, no_fuse);
    m.emulate = emulate;
    step(&m, n, out);
    model_free(&m);
}

static const struct {
    const char *name;
    net n;
} nets[] = {{"residual", residual},
            {"residual_of_input", residual_of_input},
            {"kept_conv", kept_conv},
            {"mixed", mixed}};
enum { NETS = sizeof nets / sizeof *nets };

/* If rounding changes the sign of a ReLU's input, whole gradients change. So gradients are
 * compared with those of f32 arithmetic that rounds at the same places; fusion rounds less
 * often. */
static void bf16_is_near_f32(void **state)
{
    (void)state;
    static outcome f32, emulated, bf16;
    if (!test_has_bf16()) skip();
    for (int i = 0; i < NETS; i++) {
        one_step(nets[i].n, CTN_PRECISION_F32, 0, false, &f32);
        assert_null(strstr(f32.text, "bf16"));
        one_step(nets[i].n, CTN_PRECISION_F32, 0, true, &emulated);
        for (int k = 0; k < 3; k++) { /* fused, not fused, guarded */
            char name[64];
            snprintf(name, sizeof name, "%s %d", nets[i].name, k);
            setenv("CATENA_GUARD", k == 2 ? "1" : "0", 1);
            one_step(nets[i].n, CTN_PRECISION_BF16, k == 1, false, &bf16);
            setenv("CATENA_GUARD", "0", 1);
            assert_non_null(strstr(bf16.text, "bf16("));
            compare(name, &bf16, &f32, 0.015, 0.3);
            compare(name, &bf16, &emulated, 0.01, 0.03);
        }
    }
}

/* A read of an inner value in mid-step, a gradient as a tensor, and training after that. */
static void bf16_seen_by_the_user(void **state)
{
    (void)state;
    static float h[2][IMAGES], g[2][IMAGES];
    if (!test_has_bf16()) skip();
    for (int k = 0; k < 2; k++) {
        model m;
        model_new(&m, k ? CTN_PRECISION_BF16 : CTN_PRECISION_F32, 0);
        OK(ctn_scope_begin(m.c));
        ctn_tensor *x = ctn_with_grad(ctn_input(m.c, images, CTN_F32, CTN_SHAPE(N, C, SIDE, SIDE))),
                   *gx;
        ctn_tensor *y = ctn_tanh(norm(&m, conv(&m, x, 0), 1));
        OK(ctn_read(y, h[k], sizeof h[k]));
        ctn_tensor *loss = head(&m, ctn_add(conv(&m, y, 3), y));
        OK(ctn_grad(loss, 1, &x, &gx));
        assert_int_equal(ctn_dtype_of(gx), CTN_F32);
        OK(ctn_read(gx, g[k], sizeof g[k]));
        OK(ctn_backward(m.o, loss));
        OK(ctn_optim_step(m.o));
        assert_true(isfinite(ctn_item(loss)));
        OK(ctn_scope_end(m.c));
        model_free(&m);
    }
    near("read", "value", 0, h[1], h[0], IMAGES, 0.015);
    near("grad", "value", 0, g[1], g[0], IMAGES, 0.03);
}

static void bf16_needs_kernels(void **state)
{
    (void)state;
    if (test_has_bf16()) skip();
    ctn_context *c = NULL;
    assert_int_equal(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .precision = CTN_PRECISION_BF16)),
                     CTN_EUNSUPPORTED);
    assert_non_null(strstr(ctn_error_message(), "no kernels for bf16: use f32"));
    assert_null(c);
    ctn_error_clear();
}

static void f16_is_asked_for(void **state)
{
    (void)state;
    static outcome f32, f16;
    const bool has = test_has_f16();
    ctn_context *c = NULL;
    ctn_status st = ctn_context_new(&c, CTN_OPT(ctn_context_opt, .precision = CTN_PRECISION_F16));
    if (has && ctn__engine_trains_f16()) {
        OK(st);
        /* As on most CPUs. Where f16 is only slow, the message names the option that allows it. */
    } else {
        assert_int_equal(st, CTN_EUNSUPPORTED);
        assert_non_null(strstr(ctn_error_message(), has ? "bf16" : "no kernels for f16: use f32"));
        assert_int_equal(strstr(ctn_error_message(), "slow_precision") != NULL, has);
        assert_null(c);
        ctn_error_clear();
    }
    ctn_context_free(c);
    if (!has) skip();
    one_step(residual, CTN_PRECISION_F32, 0, false, &f32);
    one_step(residual, CTN_PRECISION_F16, 0, false, &f16);
    assert_non_null(strstr(f16.text, "f16("));
    compare("f16", &f16, &f32, 0.004, 0.06);
}

/* ---- loss scaling --------------------------------------------------------------------------- */

static void scales_change_no_bit(void **state)
{
    (void)state;
    static outcome plain, scaled;
    for (int i = 0; i < 2; i++) {
        for (int p = 0; p < 1 + test_has_bf16(); p++) {
            for (int k = 0; k < 2; k++) {
                model m;
                model_new(&m, p ? CTN_PRECISION_BF16 : CTN_PRECISION_F32, 0);
                if (k)
                    OK(ctn_optim_set_loss_scale(m.o, CTN_OPT(ctn_loss_scale_opt, .scale = 1024)));
                for (int s = 0; s < 3; s++) step(&m, nets[i].n, k ? &scaled : &plain);
                assert_int_equal(ctn_optim_skipped(m.o), 0);
                model_free(&m);
            }
            assert_memory_equal(&scaled.loss, &plain.loss, sizeof plain.loss);
            assert_memory_equal(scaled.value, plain.value, sizeof plain.value);
            assert_memory_equal(scaled.mean, plain.mean, sizeof plain.mean);
            assert_memory_equal(scaled.var, plain.var, sizeof plain.var);
        }
    }
}

static void overflow_skips_the_step_alone(void **state)
{
    (void)state;
    static outcome before, after, usual;
    for (int p = 0; p < 1 + test_has_bf16(); p++) {
        model m;
        ctn_precision precision = p ? CTN_PRECISION_BF16 : CTN_PRECISION_F32;
        model_new(&m, precision, 0);
        record(&m, &before);
        OK(ctn_optim_set_loss_scale(m.o, CTN_OPT(ctn_loss_scale_opt, .dynamic = 1, .scale = 1e30,
                                                 .max = 1e30)));
        /* Large weights in the last layer make the gradient overflow. */
        for (int i = 0; i < PARAMS; i++) {
            if (i != 7) continue;
            for (int k = 0; k < 10 * C; k++) before.value[i][k] *= 1e10f;
            OK(ctn_var_set(m.p[i], before.value[i], 10 * C * sizeof(float)));
        }
        step(&m, residual, &after);
        assert_int_equal(ctn_optim_skipped(m.o), 1);
        assert_int_equal(ctn_optim_steps(m.o), 0);
        assert_true(ctn_optim_loss_scale(m.o) < 1e30);
        assert_memory_equal(after.value, before.value, sizeof after.value);
        model_free(&m);
        one_step(residual, precision, 0, false, &usual);
        /* The statistics do not depend on the layers after them. */
        assert_memory_equal(after.mean, usual.mean, sizeof usual.mean);
        assert_memory_equal(after.var, usual.var, sizeof usual.var);
        assert_memory_not_equal(after.mean, before.mean, sizeof usual.mean);
    }
}

int main(void)
{
    setenv("CATENA_TUNE", "0", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_needs_kernels),    cmocka_unit_test(bf16_is_near_f32),
        cmocka_unit_test(bf16_seen_by_the_user), cmocka_unit_test(f16_is_asked_for),
        cmocka_unit_test(scales_change_no_bit),  cmocka_unit_test(overflow_skips_the_step_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
