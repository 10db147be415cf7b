/* SPDX-License-Identifier: Apache-2.0
 *
 * ragged_steps [STEPS]: trains a small GPT on batches of changing length (16 sequences of 10 to 250
 * tokens, bucketed, padded to multiples of 16), in turn with batches of one length, and compares
 * the time per token, padding included. Prints one JSON line with the number of plans and the
 * memory at half of the steps and at the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "ragged_steps: %s\n", ctn_error_message()), 1))

enum { COUNT = 8000, BATCH = 16, LONGEST = 250, MULTIPLE = 16, FIXED = 144, TURN = 50 };

static ctn_context *ctx;
static ctn_module *net;
static ctn_optim *opt;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double resident_mb(void)
{
    long pages = 0, unused = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &unused, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void step(const int64_t *x, const int64_t *t, int64_t n, int64_t length)
{
    CHECK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_I64, CTN_SHAPE(n, length));
    ctn_tensor *next = ctn_input(ctx, t, CTN_I64, CTN_SHAPE(n, length));
    CHECK(ctn_backward(opt, ctn_call_multi(net, in, next).t[0]));
    CHECK(ctn_optim_step(opt));
    CHECK(ctn_scope_end(ctx));
}

/* Seconds per token of `steps` batches from the loader. */
static double changing(ctn_loader *loader, int steps)
{
    double tokens = 0, spent = 0;
    for (int k = 0; k < steps;) {
        ctn_batch b;
        const ctn_status st = ctn_loader_next(loader, &b);
        CHECK(st);
        if (st == CTN_END) continue;
        const double start = now();
        step(b.data[0], b.data[1], b.n, b.field[0].shape[1]);
        spent += now() - start;
        tokens += (double)(b.n * b.field[0].shape[1]);
        k++;
    }
    return spent / tokens;
}

static double fixed(int steps)
{
    static int64_t x[BATCH * FIXED], t[BATCH * FIXED];
    for (int i = 0; i < BATCH * FIXED; i++) x[i] = i % 251, t[i] = (i + 1) % 251;
    const double start = now();
    for (int k = 0; k < steps; k++) step(x, t, BATCH, FIXED);
    return (now() - start) / ((double)steps * BATCH * FIXED);
}

int main(int argc, char **argv)
{
    static int64_t length[COUNT], offset[COUNT + 1];
    const int steps = argc > 1 ? atoi(argv[1]) : 2000;
    double ours = 0, theirs = 0, half = 0;
    ctn_dataset *ds;
    ctn_sampler *order;
    ctn_loader *loader;
    for (int i = 0; i < COUNT; i++) {
        length[i] = 10 + rand() % (LONGEST - 9);
        offset[i + 1] = offset[i] + length[i];
    }
    int64_t *token = calloc((size_t)offset[COUNT] + 1, sizeof *token);
    if (!token) return 1;
    for (int64_t i = 0; i <= offset[COUNT]; i++) token[i] = i % 251;
    const ctn_field field[2] = {{CTN_I64, 1, {CTN_RAGGED}, 0}, {CTN_I64, 1, {CTN_RAGGED}, 0}};
    CHECK(ctn_ragged_open(&ds, COUNT, 2, field, (const void *[]){token, token + 1},
                          (const int64_t *[]){offset, offset}));
    CHECK(ctn_sampler_bucketed(&order, COUNT, length, BATCH, 1));
    CHECK(ctn_loader_new(&loader, ds, order,
                         CTN_OPT(ctn_loader_opt, .batch = BATCH, .threads = 1, .drop_last = 1,
                                 .pad_multiple = MULTIPLE, .pad_value = {0, -100})));
    CHECK(ctn_context_new(&ctx, NULL));
    CHECK(ctn_zoo_gpt(&net, ctx, CTN_OPT(ctn_gpt_opt, .block = 256)));
    CHECK(ctn_adamw_new(&opt, ctn_params(net), NULL));
    for (int k = 0; k < steps; k += TURN) {
        if (k == steps / 2 / TURN * TURN) half = resident_mb();
        /* the first turns make the plans */
        const double a = changing(loader, TURN), b = fixed(TURN);
        if (k >= 4 * TURN) ours += a, theirs += b;
    }
    ctn_plan_stats stats;
    ctn_context_get_stats(ctx, &stats);
    printf("{\"steps\": %d, \"plans\": %lld, \"changing_of_fixed_speed\": %.3f, \"half_mb\": %.1f, "
           "\"end_mb\": %.1f}\n",
           steps, (long long)stats.plans, theirs / ours, half, resident_mb());
    ctn_loader_free(loader);
    ctn_sampler_free(order);
    ctn_dataset_free(ds);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    free(token);
    return 0;
}
