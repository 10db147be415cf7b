/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench NETWORK --inference: the time of a forward pass in evaluation mode, from an input in
 * the caller's memory to results in the caller's memory.
 */
#include <stdlib.h>

#include <catena/ops.h>

#include "bench/inference.h"
#include "model.h"

typedef struct {
    ctn_context *ctx;
    model m;
    float *y;
    int64_t n; /* elements of y */
} network;

/* One forward pass. The first call finds out how many results there are. */
static ctn_status forward(network *net)
{
    CTN_TRY(ctn_scope_begin(net->ctx));
    ctn_tensor *y = model_forward(&net->m);
    ctn_status st = y ? CTN_OK : ctn_error_status();
    if (y && !net->y) {
        net->n = ctn_count(y);
        net->y = malloc((size_t)net->n * sizeof *net->y + 1);
        if (!net->y) st = ctn_fail(CTN_ENOMEM, "no memory for the results");
    }
    if (st == CTN_OK) st = ctn_read(y, net->y, (size_t)net->n * sizeof *net->y);
    ctn_status end = ctn_scope_end(net->ctx);
    return st < 0 ? st : end;
}

static void print(const args *a, const network *net, double best, double median)
{
    const double rate = (double)net->m.batch * 1e3 / median;
    ctn_plan_stats s = {0};
    ctn_context_get_stats(net->ctx, &s);
    if (args_flag(a, "json")) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_text(&j, "model", a->operand);
        json_text(&j, "precision", args_text(a, "precision"));
        json_int(&j, "threads", ctn_context_threads(net->ctx));
        json_int(&j, "batch", net->m.batch);
        json_int(&j, "steps", args_int(a, "steps"));
        json_real(&j, "best_ms", best);
        json_real(&j, "median_ms", median);
        json_real(&j, "items_per_s", rate);
        json_int(&j, "arena_bytes", s.arena_bytes);
        json_close(&j, '}');
        return;
    }
    say(stdout, "%s, inference, batch %lld, %s, %d thread%s\n", a->operand, (long long)net->m.batch,
        args_text(a, "precision"), ctn_context_threads(net->ctx),
        ctn_context_threads(net->ctx) == 1 ? "" : "s");
    say(stdout, "  %-32s %.3f ms best, %.3f ms median of %lld\n", "forward pass", best, median,
        (long long)args_int(a, "steps"));
    say(stdout, "  %-32s %.1f items/s\n", "throughput", rate);
    say(stdout, "  %-32s %.1f MB\n", "activations and kept weights", (double)s.arena_bytes / 1e6);
}

ctn_status bench_inference(const args *a)
{
    enum { WARM_UP = 2 };
    ctn_status st = CTN_OK;
    network net = {0};
    const int64_t steps = args_int(a, "steps");
    double best, median, *ms = malloc((size_t)steps * sizeof *ms);
    if (!ms) return ctn_fail(CTN_ENOMEM, "no memory for %lld times", (long long)steps);
    CTN_TRY_GOTO(st, done, open_context(&net.ctx, a, 0));
    const model_opt opt = {.name = a->operand,
                           .batch = args_int(a, "batch"),
                           .size = args_int(a, "size"),
                           .inference = 1};
    CTN_TRY_GOTO(st, done, model_new(&net.m, net.ctx, &opt));
    ctn_context_set_training(net.ctx, 0);
    ctn_context_set_grad(net.ctx, 0);
    for (int i = 0; i < WARM_UP; i++) CTN_TRY_GOTO(st, done, forward(&net));
    for (int64_t i = 0; i < steps; i++) {
        const double start = now_s();
        CTN_TRY_GOTO(st, done, forward(&net));
        ms[i] = (now_s() - start) * 1e3;
    }
    best_and_median(ms, steps, &best, &median);
    print(a, &net, best, median);
done:
    model_free(&net.m);
    ctn_context_free(net.ctx);
    free(net.y);
    free(ms);
    return st;
}
