/* SPDX-License-Identifier: Apache-2.0
 *
 * generate [TOKENS [PROMPT [BATCH]]]: GPT-2 (124 million parameters, random weights) continues a
 * prompt. Prints one JSON line: tokens per second after the first, and the bound that the memory
 * sets, which is the bandwidth of reading an array as large as the weights once. BENCH_THREADS sets
 * the number of threads (default: that of contexts).
 */
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <catena/generate.h>
#include <catena/zoo.h>

enum { MOST = 1024, ROUNDS = 7 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int64_t parameters(ctn_module *m)
{
    const ctn_vars all = ctn_params(m);
    int64_t n = 0;
    for (int i = 0; i < all.n; i++) {
        int64_t one = 1;
        int first = 0;
        while (all.var[first] != all.var[i]) first++;
        const ctn_desc *d = ctn_var_desc(all.var[i]);
        for (int k = 0; k < d->ndim; k++) one *= d->dim[k];
        if (first == i) n += one;
    }
    return n;
}

/* Seconds to read n floats, best of several. */
static double read_time(const float *x, int64_t n, int threads)
{
    double best = 1e9, total = 0;
    for (int r = 0; r < ROUNDS; r++) {
        const double t = now();
        float sum = 0;
#pragma omp parallel for simd reduction(+ : sum) schedule(static) num_threads(threads)
        for (int64_t i = 0; i < n; i++) sum += x[i];
        best = fmin(best, now() - t);
        total += (double)sum;
    }
    return total > 1e30 ? 0 : best; /* so that the sums are computed */
}

static ctn_status generate(ctn_module *m, int tokens, int prompt, int batch, double *seconds)
{
    static int32_t text[MOST], next[64];
    const int32_t *prompts[64];
    int64_t length[64];
    ctn_generator *g = NULL;
    for (int i = 0; i < prompt; i++) text[i] = i * 7919 % 50257;
    for (int i = 0; i < batch; i++) prompts[i] = text, length[i] = prompt;
    CTN_TRY(ctn_generator_new(&g, m, NULL));
    ctn_status st = ctn_generator_start(g, batch, prompts, length, next);
    double start = now();
    for (int i = 0; st == CTN_OK && i < tokens; i++) {
        if (i == 2) start = now(); /* the plan is made, and warm */
        st = ctn_generator_next(g, next, next);
    }
    *seconds = (now() - start) / (tokens - 2);
    ctn_generator_free(g);
    return st;
}

int main(int argc, char **argv)
{
    const int tokens = argc > 1 ? atoi(argv[1]) : 64, prompt = argc > 2 ? atoi(argv[2]) : 32;
    const int batch = argc > 3 ? atoi(argv[3]) : 1;
    const char *given = getenv("BENCH_THREADS");
    const int threads = given ? atoi(given) : omp_get_max_threads();
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    double seconds = 0;
    if (prompt < 1 || tokens < 3 || prompt + tokens > MOST || batch < 1 || batch > 64) return 2;
    ctn_status st = ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = threads));
    if (st == CTN_OK) st = ctn_zoo_new(&m, ctx, "gpt2", NULL);
    if (st == CTN_OK) st = generate(m, tokens, prompt, batch, &seconds);
    if (st < 0) {
        fprintf(stderr, "generate: %s\n", ctn_error_message());
        return 1;
    }
    const int64_t n = parameters(m);
    float *x = calloc((size_t)n + 1, sizeof *x);
    for (int64_t i = 0; x && i < n; i++) x[i] = (float)(i % 7);
    const double bound = x ? read_time(x, n, threads) : NAN;
    printf("{\"ms_per_token\": %.3f, \"tokens_per_s\": %.2f, \"bound_ms\": %.3f, "
           "\"of_bound\": %.3f, \"gb_per_s\": %.2f}\n",
           seconds * 1e3, batch / seconds, bound * 1e3, bound / seconds, (double)n * 4e-9 / bound);
    free(x);
    ctn_module_free(m);
    ctn_context_free(ctx);
    return 0;
}
