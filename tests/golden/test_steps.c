/* SPDX-License-Identifier: Apache-2.0
 *
 * Twenty steps of an MLP with Adam and of ResNet-20 with momentum, on made-up data: the losses
 * must agree within a relative 1e-5 with those of x86-64 with AVX-512 (steps.inc, which
 * `test_steps print` writes). Every architecture and instruction set runs this. ResNet-20 learns
 * slowly here, so that rounding is not amplified: with a learning rate of 1e-2, AVX2 and AVX-512
 * differ by 7e-3.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "steps.inc"
#include "support/ok.h"

enum { STEPS = 20, BATCH = 4, SIDE = 16, CLASSES = 10 };

/* The same numbers everywhere, in [-1, 1). */
static void fill(float *x, size_t n, uint32_t seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1;
    }
}

static ctn_module *mlp(ctn_context *ctx)
{
    ctn_module *part[3], *net;
    OK(ctn_linear_new(&part[0], ctx, 3 * SIDE * SIDE, 64, NULL));
    OK(ctn_activation_new(&part[1], ctx, ctn_relu_at));
    OK(ctn_linear_new(&part[2], ctx, 64, CLASSES, NULL));
    OK(ctn_sequential_new(&net, ctx, 3, part));
    return net;
}

static void train(bool conv, double *losses)
{
    static float x[BATCH * 3 * SIDE * SIDE];
    int32_t label[BATCH];
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *opt;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 3)));
    if (conv) OK(ctn_zoo_new(&net, ctx, "resnet20_cifar", NULL));
    else net = mlp(ctx);
    if (conv)
        OK(ctn_sgd_new(&opt, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = 1e-4, .momentum = 0.9)));
    else OK(ctn_adam_new(&opt, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 1e-3)));
    for (int step = 0; step < STEPS; step++) {
        fill(x, sizeof x / sizeof *x, (uint32_t)step + 1);
        for (int i = 0; i < BATCH; i++) label[i] = (i * 7 + step) % CLASSES;
        OK(ctn_scope_begin(ctx));
        ctn_tensor *in = conv ? ctn_input(ctx, x, CTN_F32, CTN_SHAPE(BATCH, 3, SIDE, SIDE))
                              : ctn_input(ctx, x, CTN_F32, CTN_SHAPE(BATCH, 3 * SIDE * SIDE));
        ctn_tensor *want = ctn_input(ctx, label, CTN_I32, CTN_SHAPE(BATCH));
        ctn_tensor *loss = ctn_softmax_cross_entropy(ctn_call(net, in), want);
        OK(ctn_backward(opt, loss));
        OK(ctn_optim_step(opt));
        losses[step] = ctn_item(loss);
        OK(ctn_scope_end(ctx));
    }
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

static void compare(bool conv, const double *expected)
{
    double losses[STEPS], worst = 0;
    train(conv, losses);
    for (int i = 0; i < STEPS; i++) worst = fmax(worst, fabs(losses[i] / expected[i] - 1));
    print_message("%s: largest relative difference of %d losses %.1e\n", conv ? "ResNet-20" : "MLP",
                  STEPS, worst);
    assert_true(worst < 1e-5);
}

static void test_mlp(void **state)
{
    (void)state;
    compare(false, steps_mlp);
}

static void test_resnet20(void **state)
{
    (void)state;
    compare(true, steps_resnet20);
}

static void print(const char *name, bool conv)
{
    double losses[STEPS];
    train(conv, losses);
    printf("static const double %s[] = {", name);
    for (int i = 0; i < STEPS; i++) printf("%s%.9g,", i % 5 ? " " : "\n    ", losses[i]);
    printf("\n};\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mlp), cmocka_unit_test(test_resnet20)};
    if (argc > 1 && strcmp(argv[1], "print") == 0) {
        printf(
            "/* SPDX-License-Identifier: Apache-2.0\n *\n * Written by `test_steps print`.\n */\n");
        print("steps_mlp", false);
        print("steps_resnet20", true);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
