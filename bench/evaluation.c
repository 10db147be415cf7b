/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluation [DEPTH [BATCH]]: evaluates a ResNet twice. For the second run, prints the time of
 * all kernels, the time of those that reorder weights and images, and whether the results are
 * bitwise equal to the first run. Output: one JSON line.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/zoo.h>

enum { SIDE = 224, CLASSES = 1000 };

typedef struct {
    double all, reorders; /* ms */
} times;

static ctn_status add(void *user, const ctn_plan_node *n)
{
    times *t = user;
    t->all += (double)n->ns * 1e-6;
    if (strcmp(n->op, "reorder") == 0) t->reorders += (double)n->ns * 1e-6;
    return CTN_OK;
}

static ctn_status evaluate(ctn_context *ctx, ctn_module *net, const float *x, int64_t batch,
                           float *y)
{
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(batch, 3, SIDE, SIDE));
    ctn_tensor *out = ctn_call(net, in);
    if (!out) return ctn_error_status();
    CTN_TRY(ctn_read(out, y, (size_t)(batch * CLASSES) * sizeof *y));
    return ctn_scope_end(ctx);
}

static ctn_status run(int depth, int64_t batch, const float *x, float *y)
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    times t = {0};
    float *again = y + batch * CLASSES;
    CTN_TRY(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    CTN_TRY(ctn_zoo_resnet(&net, ctx, CTN_OPT(ctn_resnet_opt, .depth = depth)));
    ctn_context_set_training(ctx, 0);
    ctn_context_set_grad(ctx, 0);
    CTN_TRY(evaluate(ctx, net, x, batch, y));
    ctn_context_set_profile(ctx, 1);
    CTN_TRY(evaluate(ctx, net, x, batch, again));
    CTN_TRY(ctn_context_visit_plan(ctx, add, &t));
    const int same = memcmp(y, again, (size_t)(batch * CLASSES) * sizeof *y) == 0;
    printf("{\"depth\": %d, \"batch\": %lld, \"kernels_ms\": %.3f, \"reorders_ms\": %.3f, "
           "\"share\": %.4f, \"same_bits\": %s}\n",
           depth, (long long)batch, t.all, t.reorders, t.reorders / t.all, same ? "true" : "false");
    ctn_module_free(net);
    ctn_context_free(ctx);
    return CTN_OK;
}

int main(int argc, char **argv)
{
    const int64_t batch = argc > 2 ? atoll(argv[2]) : 1, n = batch * 3 * SIDE * SIDE;
    float *x = malloc((size_t)n * sizeof *x);
    float *y = malloc((size_t)(2 * batch * CLASSES) * sizeof *y);
    for (int64_t i = 0; x && i < n; i++) x[i] = (float)(i % 255) / 255;
    const ctn_status st = x && y ? run(argc > 1 ? atoi(argv[1]) : 50, batch, x, y) : CTN_ENOMEM;
    if (st < 0) fprintf(stderr, "evaluation: %s\n", ctn_error_message());
    free(x);
    free(y);
    return st < 0;
}
