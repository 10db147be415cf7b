/* SPDX-License-Identifier: Apache-2.0
 *
 * attention BATCH LENGTH [causal] [THREADS]: the best times of attention over 12 heads of 64, its
 * forward and backward pass through a plan, and of the bare products of the same work: two oneDNN
 * matmuls of the forward pass and four of the backward pass. Prints one JSON line.
 */
#include "bare.h"

#include <math.h>
#include <sys/resource.h>

#include <catena/catena.h>
#include <catena/ops.h>

enum { HEADS = 12, WIDTH = 64, PRODUCTS = 6 };

/* One pass over all six products, as many times as there are rounds; the best time in seconds. */
static double bare_products(int64_t batch, int64_t L, int rounds)
{
    const int64_t b = batch * HEADS;
    const bare_call call[PRODUCTS] = {
        bare_product(b, L, WIDTH, L, 0, 1),
        bare_product(b, L, L, WIDTH, 0, 0), /* scores, result */
        bare_product(b, L, L, WIDTH, 1, 0),
        bare_product(b, L, WIDTH, L, 0, 1), /* of v, of probabilities */
        bare_product(b, L, L, WIDTH, 0, 0),
        bare_product(b, L, L, WIDTH, 1, 0), /* of q, of k */
    };
    double best = 1e9;
    for (int i = 0; i < rounds; i++) {
        const double t = bare_seconds();
        for (int k = 0; k < PRODUCTS; k++) bare_run(&call[k]);
        MUST(dnnl_stream_wait(bare_stream));
        best = fmin(best, bare_seconds() - t);
    }
    return best;
}

static ctn_status step(ctn_context *ctx, int64_t batch, int64_t L, int causal, float *const *x)
{
    ctn_tensor *in[4], *g[3];
    CTN_TRY(ctn_scope_begin(ctx));
    for (int i = 0; i < 4; i++) {
        ctn_tensor *t = ctn_input(ctx, x[i], CTN_F32, CTN_SHAPE(batch, HEADS, L, WIDTH));
        in[i] = i < 3 ? ctn_with_grad(t) : t;
    }
    ctn_tensor *y =
        ctn_attention(in[0], in[1], in[2], NULL, CTN_OPT(ctn_attention_opt, .causal = causal));
    CTN_TRY(ctn_grad(ctn_sum(ctn_mul(y, in[3]), 0, NULL, 0), 3, in, g));
    for (int i = 0; i < 3; i++)
        if (!ctn_keep(g[i])) return ctn_error_status();
    CTN_TRY(ctn_flush(ctx));
    return ctn_scope_end(ctx);
}

static ctn_status measure(ctn_context *ctx, int64_t batch, int64_t L, int causal, int rounds,
                          float *data)
{
    const size_t n = (size_t)(batch * HEADS * L * WIDTH);
    float *const x[4] = {data, data + n, data + 2 * n, data + 3 * n};
    double best = 1e9;
    for (size_t k = 0; k < 4 * n; k++) data[k] = (float)((k * 2654435761u >> 7) % 1999) / 999 - 1;
    for (int i = 0; i < rounds; i++) {
        const double t = bare_seconds();
        CTN_TRY(step(ctx, batch, L, causal, x));
        best = fmin(best, bare_seconds() - t);
    }
    ctn_plan_stats s;
    struct rusage peak;
    ctn_context_get_stats(ctx, &s);
    getrusage(RUSAGE_SELF, &peak);
    const double bare = L > 8192 ? NAN : bare_products(batch, L, rounds);
    printf(
        "{\"best_ms\": %.3f, \"bare_ms\": %.3f, \"arena_bytes\": %lld, \"peak_rss_bytes\": %lld}\n",
        best * 1e3, isnan(bare) ? 0 : bare * 1e3, (long long)s.arena_bytes,
        (long long)peak.ru_maxrss * 1024);
    return CTN_OK;
}

int main(int argc, char **argv)
{
    const int64_t batch = argc > 1 ? atoll(argv[1]) : 1, L = argc > 2 ? atoll(argv[2]) : 1024;
    const int causal = argc > 3 && strcmp(argv[3], "causal") == 0;
    ctn_context *ctx = NULL;
    bare_begin();
    ctn_status st =
        ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = argc > 4 ? atoi(argv[4]) : 0));
    float *data = malloc((size_t)(4 * batch * HEADS * L * WIDTH) * sizeof *data);
    if (!data) return 1;
    if (st == CTN_OK) st = measure(ctx, batch, L, causal, L >= 4096 ? 4 : 12, data);
    if (st < 0) fprintf(stderr, "attention: %s\n", ctn_error_message());
    ctn_context_free(ctx);
    free(data);
    return st < 0;
}
