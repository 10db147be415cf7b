/* SPDX-License-Identifier: Apache-2.0
 *
 * fno [STEPS [THREADS]]: training steps of a 2-D Fourier neural operator: 8 fields of 128 x 128,
 * 12 modes, width 32, 4 layers, Adam. Prints the best wall and CPU time of a step, and, to compare
 * with dev/peers/fno_torch.py, the losses of the first three steps. Weights and inputs are computed
 * from their index, the same there and here.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <catena/catena.h>
#include <catena/ops.h>
#include <catena/zoo.h>

enum { N = 8, SIZE = 128, WIDTH = 32, POINTS = N * SIZE * SIZE };

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *opt;
    float *x, *t; /* (N,1,SIZE,SIZE) */
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

/* The numbers of a parameter follow from the sum of the bytes of its name. */
static ctn_status fill(void *self, const char *name, ctn_dtype type, int ndim, const int64_t *dims,
                       void *data)
{
    const float scale = strstr(name, "weights") ? 2.0f / WIDTH : 0.5f;
    int64_t key = 0, n = 1;
    float *v = data;
    (void)self;
    if (type != CTN_F32) return ctn_fail(CTN_EDTYPE, "%s is not f32", name);
    for (const char *c = name; *c; c++) key += *c;
    for (int i = 0; i < ndim; i++) n *= dims[i];
    for (int64_t i = 0; i < n; i++) v[i] = value(i, key) * scale;
    return CTN_OK;
}

static ctn_status step(const bench *b, double *loss)
{
    CTN_TRY(ctn_scope_begin(b->ctx));
    ctn_tensor *x = ctn_input(b->ctx, b->x, CTN_F32, CTN_SHAPE(N, 1, SIZE, SIZE));
    ctn_tensor *t = ctn_input(b->ctx, b->t, CTN_F32, CTN_SHAPE(N, 1, SIZE, SIZE));
    ctn_tensor *y = ctn_mean_squared_error(ctn_call(b->net, x), t, CTN_MEAN);
    CTN_TRY(ctn_backward(b->opt, y));
    CTN_TRY(ctn_optim_step(b->opt));
    *loss = ctn_item(y);
    return ctn_scope_end(b->ctx);
}

static ctn_status run(bench *b, int steps, int threads)
{
    double wall = 1e30, cpu = 1e30, loss[3] = {0};
    CTN_TRY(ctn_context_new(&b->ctx, CTN_OPT(ctn_context_opt, .threads = threads)));
    CTN_TRY(ctn_zoo_fno(&b->net, b->ctx, CTN_OPT(ctn_fno_opt, .width = WIDTH)));
    CTN_TRY(ctn_module_visit(b->net, fill, NULL));
    CTN_TRY(ctn_adam_new(&b->opt, ctn_params(b->net), CTN_OPT(ctn_adam_opt, .lr = 1e-3)));
    for (int i = 0; i < 3; i++) CTN_TRY(step(b, &loss[i]));
    for (int i = 0; i < steps; i++) {
        const double w = seconds(CLOCK_MONOTONIC), c = seconds(CLOCK_PROCESS_CPUTIME_ID);
        double last;
        CTN_TRY(step(b, &last));
        wall = fmin(wall, seconds(CLOCK_MONOTONIC) - w);
        cpu = fmin(cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - c);
    }
    printf("{\"losses\": [%.9g, %.9g, %.9g], \"best_ms\": %.3f, \"best_cpu_ms\": %.3f}\n", loss[0],
           loss[1], loss[2], wall * 1e3, cpu * 1e3);
    return CTN_OK;
}

int main(int argc, char **argv)
{
    bench b = {.x = malloc(POINTS * sizeof(float)), .t = malloc(POINTS * sizeof(float))};
    for (int64_t i = 0; b.x && b.t && i < POINTS; i++) {
        b.x[i] = value(i, 1);
        b.t[i] = value(i, 2);
    }
    ctn_status st = b.x && b.t ? run(&b, argc > 1 ? atoi(argv[1]) : 5, argc > 2 ? atoi(argv[2]) : 1)
                               : CTN_ENOMEM;
    if (st < 0) fprintf(stderr, "fno: %s\n", ctn_error_message());
    ctn_optim_free(b.opt);
    ctn_module_free(b.net);
    ctn_context_free(b.ctx);
    free(b.x);
    free(b.t);
    return st < 0;
}
