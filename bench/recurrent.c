/* SPDX-License-Identifier: Apache-2.0
 *
 * recurrent lstm|gru [STEPS [THREADS]]: training steps of a recurrent network of 2 layers x 512,
 * 32 samples x 100 steps, with SGD. Prints the best wall and CPU time of a step, and, to compare
 * with dev/peers/recurrent_torch.py, the loss and the norms of the gradients of the first step.
 * Weights and inputs are computed from their index, the same there and here.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <catena/catena.h>
#include <catena/ops.h>

enum { T = 100, N = 32, H = 512, LAYERS = 2 };

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *opt;
    float *x, *room; /* x (T,N,H); room for the largest parameter */
} bench;

/* Element i of array k, from -0.5 to 0.5. */
static float value(int64_t i, int64_t k)
{
    return (float)((i * 7919 + k * 104729) % 10007) / 10007.0f - 0.5f;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int64_t count(const ctn_var *v)
{
    const ctn_desc *d = ctn_var_desc(v);
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    return n;
}

static ctn_status fill(const bench *b)
{
    const ctn_vars p = ctn_params(b->net);
    const float scale = 2 / sqrtf(H);
    for (int64_t i = 0; i < (int64_t)T * N * H; i++) b->x[i] = value(i, 100);
    for (int k = 0; k < p.n; k++) {
        const int64_t n = count(p.var[k]);
        for (int64_t i = 0; i < n; i++) b->room[i] = value(i, k) * scale;
        CTN_TRY(ctn_var_set(p.var[k], b->room, (size_t)n * sizeof *b->room));
    }
    return CTN_OK;
}

static ctn_status print_first(const bench *b, ctn_tensor *loss)
{
    const ctn_vars p = ctn_params(b->net);
    printf("{\"loss\": %.9g, \"norms\": [", ctn_item(loss));
    for (int k = 0; k < p.n; k++) {
        const int64_t n = count(p.var[k]);
        double sum = 0;
        CTN_TRY(ctn_var_grad(p.var[k], b->room, (size_t)n * sizeof *b->room));
        for (int64_t i = 0; i < n; i++) sum += (double)b->room[i] * (double)b->room[i];
        printf("%s%.9g", k ? ", " : "", sqrt(sum));
    }
    printf("], ");
    return CTN_OK;
}

static ctn_status step(const bench *b, int first)
{
    CTN_TRY(ctn_scope_begin(b->ctx));
    ctn_tensor *y = ctn_call(b->net, ctn_input(b->ctx, b->x, CTN_F32, CTN_SHAPE(T, N, H)));
    ctn_tensor *loss = ctn_mean(ctn_square(y), CTN_ALL_AXES, 0);
    CTN_TRY(ctn_backward(b->opt, loss));
    if (first) CTN_TRY(print_first(b, loss));
    CTN_TRY(ctn_optim_step(b->opt));
    return ctn_scope_end(b->ctx);
}

static ctn_status run(bench *b, const char *kind, int steps, int threads)
{
    double wall = 1e30, cpu = 1e30;
    const ctn_rnn_module_opt *opt = CTN_OPT(ctn_rnn_module_opt, .layers = LAYERS);
    CTN_TRY(ctn_context_new(&b->ctx, CTN_OPT(ctn_context_opt, .threads = threads)));
    CTN_TRY(strcmp(kind, "gru") == 0 ? ctn_gru_new(&b->net, b->ctx, H, H, opt)
                                     : ctn_lstm_new(&b->net, b->ctx, H, H, opt));
    CTN_TRY(ctn_sgd_new(&b->opt, ctn_params(b->net), CTN_OPT(ctn_sgd_opt, .lr = 1e-6)));
    CTN_TRY(fill(b));
    CTN_TRY(step(b, 1));
    CTN_TRY(step(b, 0)); /* makes the plan that the others use */
    for (int i = 0; i < steps; i++) {
        const double w = seconds(CLOCK_MONOTONIC), c = seconds(CLOCK_PROCESS_CPUTIME_ID);
        CTN_TRY(step(b, 0));
        wall = fmin(wall, seconds(CLOCK_MONOTONIC) - w);
        cpu = fmin(cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - c);
    }
    printf("\"best_ms\": %.3f, \"best_cpu_ms\": %.3f}\n", wall * 1e3, cpu * 1e3);
    return CTN_OK;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    if (strcmp(kind, "lstm") != 0 && strcmp(kind, "gru") != 0) {
        fprintf(stderr, "usage: recurrent lstm|gru [STEPS [THREADS]]\n");
        return 2;
    }
    bench b = {.x = malloc((size_t)T * N * H * sizeof(float)),
               .room = malloc((size_t)4 * H * H * sizeof(float))};
    ctn_status st = b.x && b.room
                        ? run(&b, kind, argc > 2 ? atoi(argv[2]) : 5, argc > 3 ? atoi(argv[3]) : 1)
                        : CTN_ENOMEM;
    if (st < 0) fprintf(stderr, "recurrent: %s\n", ctn_error_message());
    ctn_optim_free(b.opt);
    ctn_module_free(b.net);
    ctn_context_free(b.ctx);
    free(b.x);
    free(b.room);
    return st < 0;
}
