/* SPDX-License-Identifier: Apache-2.0
 *
 * mlp [STEPS]: the training step of an MLP 784-1000-1000-10 with batch 100 and Adam, in C. mlp.cpp
 * is the same in C++, and dev/bench cpp compares them. Prints one JSON line with the best time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "mlp: %s\n", ctn_error_message()), 1))

enum { BATCH = 100, IN = 784, CLASSES = 10 };

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static double step(ctn_module *net, ctn_optim *opt, const float *x, const int64_t *t)
{
    ctn_context *ctx = ctn_module_context(net);
    const double start = now_ms();
    CHECK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(BATCH, IN)));
    ctn_tensor *want = ctn_input(ctx, t, CTN_I64, CTN_SHAPE(BATCH));
    CHECK(ctn_backward(opt, ctn_softmax_cross_entropy(y, want)));
    CHECK(ctn_optim_step(opt));
    CHECK(ctn_scope_end(ctx));
    return now_ms() - start;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : 200;
    static float x[BATCH * IN];
    static int64_t t[BATCH];
    for (int i = 0; i < BATCH * IN; i++) x[i] = (float)(i % 97) / 97;
    for (int i = 0; i < BATCH; i++) t[i] = i % CLASSES;
    ctn_context *ctx;
    ctn_module *layer[5], *net;
    ctn_optim *opt;
    CHECK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    CHECK(ctn_linear_new(&layer[0], ctx, IN, 1000, NULL));
    CHECK(ctn_activation_new(&layer[1], ctx, ctn_relu_at));
    CHECK(ctn_linear_new(&layer[2], ctx, 1000, 1000, NULL));
    CHECK(ctn_activation_new(&layer[3], ctx, ctn_relu_at));
    CHECK(ctn_linear_new(&layer[4], ctx, 1000, CLASSES, NULL));
    CHECK(ctn_sequential_new(&net, ctx, 5, layer));
    CHECK(ctn_adam_new(&opt, ctn_params(net), NULL));
    double best = step(net, opt, x, t);
    for (int i = 1; i < steps; i++) {
        const double ms = step(net, opt, x, t);
        if (ms < best) best = ms;
    }
    printf("{\"best_ms\": %.4f}\n", best);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return 0;
}
