/* SPDX-License-Identifier: Apache-2.0
 *
 * catena explain: train a few profiled steps and print the plan that ran: kernels as oneDNN names
 * them, shapes, places in memory, times.
 */
#include <stdlib.h>

#include "cli.h"
#include "model.h"

static ctn_status print_plan(ctn_context *ctx)
{
    int n = ctn_plan_text(ctx, NULL, 0);
    if (n < 0) return (ctn_status)n;
    char *text = malloc((size_t)n + 1);
    if (!text) return ctn_fail(CTN_ENOMEM, "no memory for the text of the plan");
    int got = ctn_plan_text(ctx, text, (size_t)n + 1);
    if (got >= 0) fputs(text, stdout);
    free(text);
    return got < 0 ? (ctn_status)got : CTN_OK;
}

static ctn_status explain_model(const args *a)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    model m = {0};
    double loss;
    const char *trace = args_text(a, "trace");
    CTN_TRY_GOTO(st, done, open_context(&ctx, a, trace[0] ? 100000 : 0));
    CTN_TRY_GOTO(st, done,
                 model_new(&m, ctx,
                           &(model_opt){.name = a->operand,
                                        .batch = args_int(a, "batch"),
                                        .size = args_int(a, "size"),
                                        .recompute = args_flag(a, "recompute")}));
    ctn_set_profile(ctx, 1);
    for (int64_t s = args_int(a, "steps"); s > 0; s--)
        CTN_TRY_GOTO(st, done, model_step(&m, &loss));
    CTN_TRY_GOTO(st, done, print_plan(ctx));
    if (trace[0]) CTN_TRY_GOTO(st, done, ctn_trace_write(ctx, trace));
done:
    model_free(&m);
    ctn_context_free(ctx);
    return st;
}

static int run(const args *a)
{
    if (args_int(a, "steps") < 1) {
        fprintf(stderr, "catena explain: --steps must be at least 1\n");
        return EXIT_USAGE;
    }
    int code = check_threads(a);
    if (code >= 0) return code;
    code = check_precision(a);
    if (code >= 0) return code;
    return explain_model(a) < 0 ? report_error("explain") : EXIT_DONE;
}

static const option options[] = {
    {"threads", "N", "0", "compute threads; 0: as catena info shows"},
    {"batch", "N", "0", "samples per step; 0: the usual number of the network"},
    {"size", "N", "0", "height and width of images, length of sequences; 0: the usual one"},
    {"precision", "P", "f32", "f32, bf16 or f16"},
    {"slow-precision", NULL, NULL, "take a precision that has only reference kernels here"},
    {"recompute", NULL, NULL, "compute every block again for its gradient: memory for time"},
    {"steps", "N", "20", "profiled steps; the best time of each kernel is shown"},
    {"trace", "FILE", "", "also write a Chrome trace of the kernels, for Perfetto"},
    {0},
};

const command cmd_explain = {
    "explain",
    "NETWORK",
    "Train a few steps and print the plan: kernels, shapes, places in memory, times.",
    model_names,
    options,
    "  catena explain mlp                 the plan of an MLP training step\n"
    "  catena explain mlp --threads 1     the same on one thread\n"
    "  CATENA_FUSE=0 catena explain mlp   what fusion did\n",
    run,
};
