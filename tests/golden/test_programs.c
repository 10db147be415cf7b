/* SPDX-License-Identifier: Apache-2.0
 *
 * Small but complete training programs against PyTorch (programs.py): control flow that depends
 * on a value read in mid-step, gradient penalty, a GAN with two optimizers, gradient
 * accumulation, truncated backpropagation through a retained state. Each runs planned and eager.
 * With CATENA_PROGRAMS_OUT=FILE, all results are also written there, to the bit; the same programs
 * in other languages are compared with them (tests/python/test_programs.py).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include <cmocka.h>

#include "programs.inc"
#include "support/ok.h"

static ctn_context *ctx;
static float pool[64][64]; /* inputs of one scope */
static int used;

static void value(int seed, double scale, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(scale * (double)(((i * 37 + seed * 101) * 7919) % 257 - 128) / 128);
}

static ctn_tensor *data(int seed, int64_t rows, int64_t cols, double scale)
{
    float *x = pool[used++];
    value(seed, scale, rows * cols, x);
    return ctn_input(ctx, x, CTN_F32, CTN_SHAPE(rows, cols));
}

static ctn_var *param(int seed, double scale, int64_t rows, int64_t cols)
{
    ctn_var *v;
    float x[64];
    char name[16];
    int64_t dims[2] = {rows, cols};
    snprintf(name, sizeof name, "p%d", seed);
    OK(ctn_var_new(&v, ctx, name, CTN_PARAM, CTN_F32, cols ? 2 : 1, dims));
    value(seed, scale, rows * (cols ? cols : 1), x);
    OK(ctn_var_set(v, x, (size_t)(rows * (cols ? cols : 1)) * sizeof(float)));
    return v;
}

static double total(ctn_var *v)
{
    const ctn_desc *d = ctn_var_desc(v);
    int64_t n = d->dim[0] * (d->ndim > 1 ? d->dim[1] : 1);
    float x[64];
    double s = 0;
    OK(ctn_var_get(v, x, (size_t)n * sizeof(float)));
    for (int64_t i = 0; i < n; i++) s += (double)x[i];
    return s;
}

static FILE *out; /* NULL: none */

static void near(const char *what, int i, double got, double want)
{
    if (out) fprintf(out, "%s %d %a\n", what, i, got);
    if (!(fabs(got - want) <= 1e-5 * fmax(1, fabs(want))))
        fail_msg("%s[%d]: %.8g, PyTorch has %.8g", what, i, got, want);
}

static void begin(void)
{
    used = 0;
    OK(ctn_scope_begin(ctx));
}

static ctn_tensor *sum(ctn_tensor *x)
{
    return ctn_sum(x, CTN_ALL_AXES, 0);
}

static ctn_tensor *layer(ctn_var *w, ctn_var *b, ctn_tensor *x)
{
    return ctn_linear(x, ctn_use(w), ctn_use(b));
}

static void control_flow_run(void)
{
    ctn_var *p[2] = {param(1, 1.3, 4, 4), param(2, 0.1, 4, 0)};
    ctn_optim *o;
    OK(ctn_sgd_new(&o, (ctn_vars){2, p, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.03)));
    for (int step = 0; step < 8; step++) {
        begin();
        ctn_tensor *h = ctn_tanh(layer(p[0], p[1], data(10 + step, 4, 4, 0.25 * (step + 1))));
        int n = 0;
        while (ctn_item(sum(ctn_mul(h, h))) > 1.0 && n < 6) {
            h = ctn_tanh(layer(p[0], p[1], h));
            n++;
        }
        ctn_tensor *loss = sum(ctn_mul(h, h));
        OK(ctn_backward(o, loss));
        OK(ctn_optim_step(o));
        near("control_flow", 2 * step, ctn_item(loss), control_flow[2 * step]);
        near("control_flow", 2 * step + 1, n, control_flow[2 * step + 1]);
        OK(ctn_scope_end(ctx));
    }
    for (int i = 0; i < 2; i++) near("control_flow", 16 + i, total(p[i]), control_flow[16 + i]);
    ctn_optim_free(o);
    for (int i = 0; i < 2; i++) ctn_var_free(p[i]);
}

static void gradient_penalty_run(void)
{
    ctn_var *p[4] = {param(3, 0.8, 8, 4), param(4, 0.1, 8, 0), param(5, 0.8, 1, 8),
                     param(6, 0.1, 1, 0)};
    ctn_optim *o;
    OK(ctn_sgd_new(&o, (ctn_vars){4, p, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.05)));
    for (int step = 0; step < 6; step++) {
        begin();
        ctn_tensor *x = ctn_with_grad(data(30 + step, 5, 4, 1)), *g;
        ctn_tensor *y = layer(p[2], p[3], ctn_tanh(layer(p[0], p[1], x)));
        OK(ctn_grad(sum(y), 1, &x, &g));
        ctn_tensor *norm = ctn_sqrt(ctn_sum(ctn_mul(g, g), 1, (const int64_t[]){1}, 0));
        ctn_tensor *off = ctn_shift(norm, -1);
        ctn_tensor *loss =
            ctn_add(ctn_scale(sum(y), 1.0 / 5), ctn_scale(sum(ctn_mul(off, off)), 10.0 / 5));
        OK(ctn_backward(o, loss));
        OK(ctn_optim_step(o));
        near("gradient_penalty", step, ctn_item(loss), gradient_penalty[step]);
        OK(ctn_scope_end(ctx));
    }
    for (int i = 0; i < 4; i++)
        near("gradient_penalty", 6 + i, total(p[i]), gradient_penalty[6 + i]);
    ctn_optim_free(o);
    for (int i = 0; i < 4; i++) ctn_var_free(p[i]);
}

static ctn_tensor *net(ctn_var **p, ctn_tensor *x)
{
    return layer(p[2], p[3], ctn_tanh(layer(p[0], p[1], x)));
}

static ctn_tensor *bce(ctn_tensor *y, double target)
{
    return ctn_sigmoid_cross_entropy(y, ctn_full(ctx, target, CTN_F32, CTN_SHAPE(6, 1)), CTN_MEAN);
}

static void gan_run(void)
{
    ctn_var *p[8] = {param(7, 0.7, 4, 2),  param(8, 0.1, 4, 0),  param(9, 0.7, 3, 4),
                     param(10, 0.1, 3, 0), param(11, 0.7, 8, 3), param(12, 0.1, 8, 0),
                     param(13, 0.7, 1, 8), param(14, 0.1, 1, 0)};
    ctn_var **G = p, **D = p + 4;
    ctn_optim *og, *od;
    OK(ctn_adam_new(&og, (ctn_vars){4, G, NULL}, CTN_OPT(ctn_adam_opt, .lr = 0.02)));
    OK(ctn_adam_new(&od, (ctn_vars){4, D, NULL}, CTN_OPT(ctn_adam_opt, .lr = 0.02)));
    for (int step = 0; step < 10; step++) {
        begin();
        ctn_tensor *z = data(50 + step, 6, 2, 1), *real = data(80 + step, 6, 3, 1);
        ctn_tensor *fake = ctn_keep_graph(net(G, z));
        ctn_tensor *dl = ctn_add(bce(net(D, real), 1), bce(net(D, ctn_detach(fake)), 0));
        OK(ctn_backward(od, dl));
        OK(ctn_optim_step(od));
        ctn_tensor *gl = bce(net(D, fake), 1);
        OK(ctn_backward(og, gl));
        OK(ctn_optim_step(og));
        near("gan", 2 * step, ctn_item(dl), gan[2 * step]);
        near("gan", 2 * step + 1, ctn_item(gl), gan[2 * step + 1]);
        OK(ctn_scope_end(ctx));
    }
    for (int i = 0; i < 8; i++) near("gan", 20 + i, total(p[i]), gan[20 + i]);
    ctn_optim_free(og);
    ctn_optim_free(od);
    for (int i = 0; i < 8; i++) ctn_var_free(p[i]);
}

static void accumulation_run(void)
{
    ctn_var *p[2] = {param(15, 0.8, 3, 5), param(16, 0.1, 3, 0)};
    ctn_optim *o;
    OK(ctn_sgd_new(&o, (ctn_vars){2, p, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.1, .momentum = 0.9)));
    for (int step = 0; step < 5; step++) {
        for (int micro = 0; micro < 4; micro++) { /* one scope each; gradients stay in the pool */
            begin();
            ctn_tensor *y = layer(p[0], p[1], data(100 + 4 * step + micro, 2, 5, 1));
            ctn_tensor *loss = ctn_scale(sum(ctn_mul(y, y)), 0.25 / 6);
            OK(ctn_backward(o, loss));
            if (micro == 3) OK(ctn_optim_step(o));
            near("accumulation", 4 * step + micro, ctn_item(loss), accumulation[4 * step + micro]);
            OK(ctn_scope_end(ctx));
        }
    }
    for (int i = 0; i < 2; i++) near("accumulation", 20 + i, total(p[i]), accumulation[20 + i]);
    ctn_optim_free(o);
    for (int i = 0; i < 2; i++) ctn_var_free(p[i]);
}

static void truncated_run(void)
{
    ctn_var *p[3] = {param(17, 0.6, 6, 3), param(18, 0.6, 6, 6), param(19, 0.1, 6, 0)};
    ctn_retained *state = NULL;
    ctn_optim *o;
    OK(ctn_sgd_new(&o, (ctn_vars){3, p, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.05)));
    for (int step = 0; step < 8; step++) {
        begin();
        ctn_tensor *h =
            step > 0 ? ctn_retained_value(state) : ctn_full(ctx, 0, CTN_F32, CTN_SHAPE(2, 6));
        ctn_tensor *loss = NULL;
        for (int t = 0; t < 3; t++) {
            ctn_tensor *x = data(200 + 3 * step + t, 2, 3, 1);
            h = ctn_tanh(ctn_add(layer(p[0], p[2], x), ctn_linear(h, ctn_use(p[1]), NULL)));
            ctn_tensor *off = ctn_shift(h, -0.5), *l = ctn_scale(sum(ctn_mul(off, off)), 1.0 / 12);
            loss = loss ? ctn_add(loss, l) : l;
        }
        OK(ctn_backward(o, loss));
        OK(ctn_retain(&state, h));
        OK(ctn_optim_step(o));
        near("truncated", step, ctn_item(loss), truncated[step]);
        OK(ctn_scope_end(ctx));
    }
    for (int i = 0; i < 3; i++) near("truncated", 8 + i, total(p[i]), truncated[8 + i]);
    ctn_retained_free(state);
    ctn_optim_free(o);
    for (int i = 0; i < 3; i++) ctn_var_free(p[i]);
}

static void both_modes(void (*run)(void))
{
    for (int eager = 0; eager < 2; eager++) {
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt,
                                         .mode = eager ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
        run();
        ctn_context_free(ctx);
    }
}

#define TEST(name)                        \
    static void test_##name(void **state) \
    {                                     \
        (void)state;                      \
        both_modes(name##_run);           \
    }
TEST(control_flow)
TEST(gradient_penalty)
TEST(gan)
TEST(accumulation)
TEST(truncated)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_control_flow), cmocka_unit_test(test_gradient_penalty),
        cmocka_unit_test(test_gan),          cmocka_unit_test(test_accumulation),
        cmocka_unit_test(test_truncated),
    };
    const char *path = getenv("CATENA_PROGRAMS_OUT");
    out = path ? fopen(path, "w") : NULL;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return out && fclose(out) != 0 ? 1 : failed;
}
