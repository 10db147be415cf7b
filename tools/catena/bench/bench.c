/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench: the time of a training step, the cost of recording it, and its allocations.
 * dev/bench runs it alternately with the bare engine and other libraries; one run alone says
 * little, because the speed of machines drifts.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <catena/dist.h>
#include <catena/ops.h>

#include "bench/allreduce.h"
#include "bench/elementwise.h"
#include "bench/exchange.h"
#include "bench/inference.h"
#include "bench/loader.h"
#include "finetune.h"
#include "launch.h"
#include "model.h"

/* Operands that are not networks. */
#define LOADER "loader"
#define ALLREDUCE "allreduce"
#define ELEMENTWISE "elementwise"

/* Steps that build plans and allocate memory; measurement starts with the third step. A macro
 * because the help text contains it. */
#define WARM_UP 2

enum {
    RECORD_STEPS = 2000, /* recording time per op: N and 2N steps are timed */
    RECORD_ROUNDS = 10,
    LOOKUP_STEPS = 100,
    LOOKUP_REPEATS = 40 /* forward passes in one of these steps */
};

typedef struct {
    double best_ms, median_ms, loss;
    double first_step_ms;        /* from the start of bench_model to the end of the first step */
    int64_t finished_us;         /* end of the first step since 1970, for dev/bench */
    double allocations;          /* Catena's own per step, by its counter */
    double heap_own, heap_other; /* per step, from the counting preload; NaN without it */
    double record_ns, record_hash_lookup_ns; /* per op */
    int threads;
    int64_t steps, batch, slow; /* slow: number of reference kernels in the plan of a step */
    const char *name, *precision;
    int ranks;
    double exposed_ms, hidden_ms; /* of the exchange, per step */
    ctn_dist_stats exchange;
    ctn_plan_stats stats;
} figures;

/* ---- allocations: Catena's counter, and tests/preload/count.c when it is loaded -------------- */

typedef struct {
    uint64_t counted, own, other;
} allocations;

static allocations allocations_now(void)
{
    static void (*preloaded)(uint64_t *own, uint64_t *other);
    static bool asked;
    if (!asked) *(void **)&preloaded = dlsym(RTLD_DEFAULT, "preload_counts");
    asked = true;
    allocations a = {.counted = ctn_allocations(), .own = UINT64_MAX};
    if (preloaded) preloaded(&a.own, &a.other);
    return a;
}

static void set_allocations(figures *f, allocations from, allocations to)
{
    double n = (double)f->steps;
    f->allocations = (double)(to.counted - from.counted) / n;
    f->heap_own = f->heap_other = NAN;
    if (from.own == UINT64_MAX) return;
    f->heap_own = (double)(to.own - from.own) / n;
    f->heap_other = (double)(to.other - from.other) / n;
}

/* ---- the step -------------------------------------------------------------------------------- */

static ctn_status checked_step(model *m, double *loss)
{
    CTN_TRY(model_step(m, loss));
    if (isfinite(*loss)) return CTN_OK;
    return ctn_fail(CTN_EENGINE, "the loss is %g: the step computes wrong values", *loss);
}

static ctn_status time_steps(figures *f, model *m)
{
    ctn_status st = CTN_OK;
    double *ms = malloc((size_t)f->steps * sizeof *ms);
    if (!ms) return ctn_fail(CTN_ENOMEM, "no memory for %lld times", (long long)f->steps);
    for (int s = 1; s < WARM_UP || exchange_undecided(m); s++)
        CTN_TRY_GOTO(st, done, checked_step(m, &f->loss));
    ctn_dist_stats before = {.struct_size = sizeof before}, after = before;
    ctn_dist_get_stats(m->opt, &before);
    allocations from = allocations_now();
    for (int64_t s = 0; s < f->steps; s++) {
        double start = now_s();
        CTN_TRY_GOTO(st, done, checked_step(m, &f->loss));
        ms[s] = (now_s() - start) * 1e3;
    }
    set_allocations(f, from, allocations_now());
    ctn_dist_get_stats(m->opt, &after);
    f->exchange = after;
    f->exposed_ms = (after.exposed_s - before.exposed_s) * 1e3 / (double)f->steps;
    f->hidden_ms = (after.hidden_s - before.hidden_s) * 1e3 / (double)f->steps;
    ctn_context_get_stats(m->ctx, &f->stats);
    best_and_median(ms, f->steps, &f->best_ms, &f->median_ms);
done:
    free(ms);
    return st;
}

/* ---- changing shapes ------------------------------------------------------------------------- */

static int64_t rss_bytes(void)
{
    long all = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%ld %ld", &all, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

/* Steps with random batch sizes from 1 to the largest and five random image sizes, 32 apart, up
 * to the largest; the sequence is the same in every run. Shows the throughput, and whether
 * memory stays constant once the caches are full. */
static ctn_status bench_dynamic(figures *f, model *m, bool as_json)
{
    const int64_t batch = m->batch, size = m->shape[m->ndim - 1];
    uint64_t state = 1;
    int64_t items = 0, resident[4] = {0};
    double start = now_s();
    for (int64_t s = 0; s < f->steps; s++) {
        int64_t b = 1 + (int64_t)(model_uniform(&state) * (float)batch);
        int64_t n = size - 32 * (int64_t)(model_uniform(&state) * 5);
        model_resize(m, b, n);
        CTN_TRY(checked_step(m, &f->loss));
        items += b;
        resident[s * 4 / f->steps] = rss_bytes();
    }
    double seconds = now_s() - start;
    ctn_context_get_stats(m->ctx, &f->stats);
    if (as_json) {
        json j = {0};
        json_open(&j, NULL, '{');
        json_text(&j, "model", f->name);
        json_int(&j, "steps", f->steps);
        json_real(&j, "seconds", seconds);
        json_real(&j, "items_per_s", (double)items / seconds);
        json_int(&j, "plan_misses", (int64_t)f->stats.misses);
        json_int(&j, "plan_evictions", (int64_t)f->stats.evictions);
        json_int(&j, "plan_bytes", f->stats.plan_bytes);
        json_int(&j, "arena_bytes", f->stats.arena_bytes);
        json_open(&j, "rss_bytes_after_quarters", '[');
        for (int i = 0; i < 4; i++) json_int(&j, NULL, resident[i]);
        json_close(&j, ']');
        json_close(&j, '}');
        return CTN_OK;
    }
    say(stdout, "%s, %lld steps of changing batch and size: %.1f s, %.1f items/s\n", f->name,
        (long long)f->steps, seconds, (double)items / seconds);
    say(stdout, "  %-32s %llu built, %llu evicted, %.1f MB\n", "plans",
        (unsigned long long)f->stats.misses, (unsigned long long)f->stats.evictions,
        (double)f->stats.plan_bytes / 1e6);
    say(stdout, "  %-32s %.0f, %.0f, %.0f, %.0f MB (arena %.0f)\n", "resident after each quarter",
        (double)resident[0] / 1e6, (double)resident[1] / 1e6, (double)resident[2] / 1e6,
        (double)resident[3] / 1e6, (double)f->stats.arena_bytes / 1e6);
    return CTN_OK;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Record one step in its own scope. Nothing runs except what the function itself reads. */
typedef ctn_status (*record_fn)(void *self, ctn_context *ctx);

/* Nothing reads the loss, so the end of the scope discards it: this measures recording only. */
static ctn_status record_model(void *self, ctn_context *ctx)
{
    (void)ctx;
    return model_loss(self) ? CTN_OK : ctn_error_status();
}

/* Record the model many times in an inner scope, after whose end nothing of it can be read, and
 * then read the result of one op without elements. Everything recorded is hashed and looked up,
 * and the plan found runs one kernel that returns immediately. Its fixed cost is spread over all
 * ops. */
static ctn_status record_looked_up(void *self, ctn_context *ctx)
{
    float nothing = 0;
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_status st = CTN_OK;
    for (int i = 0; i < LOOKUP_REPEATS && st == CTN_OK; i++) st = record_model(self, ctx);
    CTN_TRY(ctn_scope_end(ctx));
    CTN_TRY(st);
    ctn_tensor *y = ctn_relu(ctn_input(ctx, &nothing, CTN_F32, CTN_SHAPE(0, 1)));
    return y ? ctn_read(y, &nothing, 0) : ctn_error_status();
}

static ctn_status time_records(double *seconds, ctn_context *ctx, record_fn fn, void *self, int n)
{
    double start = now_s();
    for (int i = 0; i < n; i++) {
        CTN_TRY(ctn_scope_begin(ctx));
        ctn_status st = fn(self, ctx);
        ctn_status end = ctn_scope_end(ctx);
        if (st < 0) return st;
        CTN_TRY(end);
    }
    *seconds = now_s() - start;
    return CTN_OK;
}

/* (T(2n) - T(n)) / (n ops), so that one-time costs cancel; T is the best of several rounds. */
static ctn_status time_per_op(double *ns, ctn_context *ctx, record_fn fn, void *self, int n)
{
    double once = INFINITY, twice = INFINITY, t = INFINITY;
    ctn_plan_stats before, after;
    CTN_TRY(time_records(&t, ctx, fn, self, WARM_UP));
    ctn_context_get_stats(ctx, &before);
    CTN_TRY(time_records(&t, ctx, fn, self, 1));
    ctn_context_get_stats(ctx, &after);
    double ops = (double)(after.recorded_ops - before.recorded_ops);
    if (!(ops > 0)) return ctn_fail(CTN_ESTATE, "a recorded step counts no ops");
    if (ops > 20) n = (int)(n * 20 / ops) + 1; /* about as long for every network */
    for (int r = 0; r < RECORD_ROUNDS; r++) {
        CTN_TRY(time_records(&t, ctx, fn, self, n));
        if (t < once) once = t;
        CTN_TRY(time_records(&t, ctx, fn, self, 2 * n));
        if (t < twice) twice = t;
    }
    *ns = (twice - once) * 1e9 / (n * ops);
    return CTN_OK;
}

/* ---- output ---------------------------------------------------------------------------------- */

static int64_t peak_rss_bytes(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (int64_t)u.ru_maxrss * 1024 : 0;
}

static void print_json(const figures *f, bool first_only)
{
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "model", f->name);
    json_text(&j, "precision", f->precision);
    json_text(&j, "version", ctn_version_text());
    json_int(&j, "threads", f->threads);
    json_real(&j, "first_step_ms_from_main", f->first_step_ms);
    json_int(&j, "first_step_finished_us", f->finished_us);
    json_int(&j, "peak_rss_bytes", peak_rss_bytes());
    json_real(&j, "loss", f->loss);
    json_int(&j, "reference_kernels", f->slow);
    if (!first_only) {
        json_int(&j, "steps", f->steps);
        json_int(&j, "batch", f->batch);
        json_real(&j, "best_ms", f->best_ms);
        json_real(&j, "median_ms", f->median_ms);
        json_real(&j, "items_per_s", (double)(f->batch * f->ranks) * 1e3 / f->median_ms);
        json_int(&j, "ranks", f->ranks);
        json_real(&j, "exchange_exposed_ms", f->exposed_ms);
        json_real(&j, "exchange_hidden_ms", f->hidden_ms);
        json_int(&j, "exchange_bucket_bytes", f->exchange.bucket);
        json_text(&j, "exchange_progress",
                  f->exchange.progress == CTN_DIST_THREAD ? "thread" : "polls");
        json_real(&j, "allocations_per_step", f->allocations);
        json_real(&j, "heap_catena_per_step", f->heap_own);
        json_real(&j, "heap_other_per_step", f->heap_other);
        json_int(&j, "plan_hits", (int64_t)f->stats.hits);
        json_int(&j, "plan_misses", (int64_t)f->stats.misses);
        json_int(&j, "runs", (int64_t)f->stats.runs);
        json_int(&j, "underflow_runs", (int64_t)f->stats.underflow_runs);
        json_int(&j, "arena_bytes", f->stats.arena_bytes);
        json_real(&j, "record_ns_per_op", f->record_ns);
        json_real(&j, "record_hash_lookup_ns_per_op", f->record_hash_lookup_ns);
    }
    json_close(&j, '}');
}

static const char *progress_name(const figures *f)
{
    return f->exchange.progress == CTN_DIST_THREAD ? "a thread" : "polls between kernels";
}

static void print_text(const figures *f, bool first_only)
{
    say(stdout, "%s, batch %lld, %s, %d thread%s\n", f->name, (long long)f->batch, f->precision,
        f->threads, f->threads == 1 ? "" : "s");
    say(stdout, "  %-32s %.1f ms after main began\n", "first step done", f->first_step_ms);
    if (!first_only) {
        say(stdout, "  %-32s %.3f ms best, %.3f ms median of %lld\n", "step", f->best_ms,
            f->median_ms, (long long)f->steps);
        say(stdout, "  %-32s %.0f items/s\n", "throughput",
            (double)(f->batch * f->ranks) * 1e3 / f->median_ms);
        if (f->exchange.buckets > 0) {
            say(stdout,
                "  %-32s %.1f ms exposed, %.1f ms overlapped with kernels, per step of %d ranks\n",
                "exchange", f->exposed_ms, f->hidden_ms, f->ranks);
            say(stdout, "  %-32s buckets of %.1f MB, progressed by %s\n", "",
                (double)f->exchange.bucket * 1e-6, progress_name(f));
        }
        say(stdout, "  %-32s %.0f ns per op\n", "recording", f->record_ns);
        say(stdout, "  %-32s %.0f ns per op\n", "recording, hash, lookup",
            f->record_hash_lookup_ns);
        say(stdout, "  %-32s %g per step\n", "allocations by Catena", f->allocations);
        if (!isnan(f->heap_own))
            say(stdout, "  %-32s %g by libcatena, %g by others, per step\n", "heap calls (preload)",
                f->heap_own, f->heap_other);
        say(stdout, "  %-32s %llu hits, %llu misses\n", "plans", (unsigned long long)f->stats.hits,
            (unsigned long long)f->stats.misses);
        say(stdout, "  %-32s %llu of %llu\n", "runs with underflow",
            (unsigned long long)f->stats.underflow_runs, (unsigned long long)f->stats.runs);
    }
    say(stdout, "  %-32s %.1f MB\n", "peak memory", (double)peak_rss_bytes() / 1e6);
    say(stdout, "  %-32s %.6f\n", "loss of the last step", f->loss);
}

/* ---- the subcommand -------------------------------------------------------------------------- */

static ctn_status first_step(figures *f, model *m, double start)
{
    struct timespec t;
    CTN_TRY(checked_step(m, &f->loss));
    f->first_step_ms = (now_s() - start) * 1e3;
    clock_gettime(CLOCK_REALTIME, &t);
    f->finished_us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
    return slow_kernels(m->ctx, &f->slow);
}

/* Connect the optimizer to the other ranks as --exchange says. */
static ctn_status share_gradients(const args *a, const model *m, ctn_comm **c, figures *f)
{
    f->ranks = a->job->size;
    if (!a->job->comm || args_is(a, "exchange", "none")) return CTN_OK;
    CTN_TRY(exchange_comm(a, c));
    return exchange_by(a, m, *c, args_text(a, "exchange"));
}

static ctn_status bench_model(const args *a)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    ctn_comm *comm = NULL;
    model m = {0};
    figures f = {.steps = args_int(a, "steps"),
                 .name = a->operand,
                 .precision = args_text(a, "precision")};
    bool first_only = args_flag(a, "first-step");
    const char *timeline = args_text(a, "timeline");
    double start = now_s();
    CTN_TRY_GOTO(st, done, open_context(&ctx, a, timeline_room(a)));
    f.threads = ctn_context_threads(ctx);
    const model_opt opt = {.name = a->operand,
                           .batch = args_int(a, "batch"),
                           .size = args_int(a, "size"),
                           .recompute = args_flag(a, "recompute"),
                           .lora = args_int(a, "lora"),
                           .lora_base = args_is(a, "lora-base", "bf16") ? CTN_BF16 : CTN_F32,
                           .freeze = a,
                           .tiny = args_flag(a, "denormal")};
    if (a->job->comm && args_is(a, "exchange", "all")) {
        CTN_TRY_GOTO(st, done, bench_exchange(a, ctx, &opt));
        goto done;
    }
    CTN_TRY_GOTO(st, done, model_new(&m, ctx, &opt));
    f.batch = m.batch;
    CTN_TRY_GOTO(st, done, share_gradients(a, &m, &comm, &f));
    if (timeline_records(a)) CTN_TRY_GOTO(st, done, ctn_dist_timeline_begin(ctx));
    if (args_flag(a, "dynamic")) {
        CTN_TRY_GOTO(st, done, bench_dynamic(&f, &m, args_flag(a, "json")));
        goto done;
    }
    CTN_TRY_GOTO(st, done, first_step(&f, &m, start));
    if (!first_only) {
        CTN_TRY_GOTO(st, done, time_steps(&f, &m));
        if (timeline[0])
            CTN_TRY_GOTO(st, done,
                         ctn_dist_timeline_write(ctx, a->job->comm, timeline,
                                                 args_int(a, "timeline-steps"), timeline_ranks(a)));
        if (f.ranks > 1) goto told;
        ctn_context_set_training(ctx, 0); /* running statistics are effects and would run */
        CTN_TRY_GOTO(st, done, time_per_op(&f.record_ns, ctx, record_model, &m, RECORD_STEPS));
        CTN_TRY_GOTO(st, done,
                     time_per_op(&f.record_hash_lookup_ns, ctx, record_looked_up, &m,
                                 LOOKUP_STEPS));
    }
told:
    if (a->job->rank == 0) (args_flag(a, "json") ? print_json : print_text)(&f, first_only);
done:
    model_free(&m);
    ctn_comm_free(comm);
    ctn_context_free(ctx);
    return st;
}

static int run(args *a)
{
    if (args_int(a, "steps") < 1) {
        say(stderr, "catena bench: --steps must be at least 1\n");
        return EXIT_USAGE;
    }
    if (!a->job->comm && args_is(a, "exchange", "all")) {
        say(stderr,
            "catena bench: --exchange all needs several ranks: mpirun -np 2 catena bench %s "
            "--exchange all\n",
            a->operand);
        return EXIT_USAGE;
    }
    int code = check_threads(a);
    if (code >= 0) return code;
    if (strcmp(a->operand, LOADER) == 0) return bench_loader(a);
    if (strcmp(a->operand, ALLREDUCE) == 0) return bench_allreduce(a);
    if (strcmp(a->operand, ELEMENTWISE) == 0) return bench_elementwise(a);
    code = check_precision(a);
    if (code >= 0) return code;
    const ctn_status st = args_flag(a, "inference") ? bench_inference(a) : bench_model(a);
    return st < 0 ? report_error("bench") : EXIT_DONE;
}

/* The networks, plus the other benchmarks. */
static const char *const *bench_words(void)
{
    enum { MOST = 64 };
    static const char *words[MOST + 4];
    const char *const *names = model_names();
    int n = 0;
    for (; n < MOST && names[n]; n++) words[n] = names[n];
    words[n] = LOADER;
    words[n + 1] = ALLREDUCE;
    words[n + 2] = ELEMENTWISE;
    words[n + 3] = NULL;
    return words;
}

static const option options[] = {
    {"threads", "N", "0", "number of compute threads; 0: as shown by catena info", GROUP_PRECISION},
    {"batch", "N", "0", "batch size, per rank; 0: the network's usual one", GROUP_NONE},
    {"size", "N", "0", "image height and width, or sequence length; 0: the network's usual one",
     GROUP_NONE},
    {"precision", "P", "f32", "precision of activations and matrix products: f32, bf16, f16 or f64",
     GROUP_PRECISION},
    {"slow-precision", NULL, NULL,
     "allow a precision that this CPU runs with slow reference kernels", GROUP_PRECISION},
    {"lora", "N", "0", "rank of low-rank adapters to train instead of the weights; 0: none",
     GROUP_NONE},
    {"lora-base", "f32|bf16", "f32", "type of the frozen weights under the adapters",
     GROUP_PRECISION},
    FREEZE_OPTIONS(GROUP_NONE),
    {"recompute", NULL, NULL, "recompute blocks in the backward pass: less memory, more time",
     GROUP_PRECISION},
    {"steps", "N", "200", "number of measured steps, after " CTN_STR(WARM_UP) " warm-up steps",
     GROUP_NONE},
    {"data", "DIR", NULL, "loader: folder with JPEG files, or with tar files that contain them",
     GROUP_NONE},
    {"count", "N", "25600000", "allreduce: number of elements", GROUP_NONE},
    {"dtype", "T", "f32",
     "data type; allreduce: f32, f64, i32, i64, or f32 sent as bf16 or f16; "
     "networks: f32 or bf16, for gradients",
     GROUP_NONE},
    {"algorithm", "NAME", "auto",
     "allreduce algorithm: auto, flat, ring, rabenseifner, hierarchical, torus, rsap or doubling",
     GROUP_RANKS},
    {"exchange", "overlap|after|per-parameter|none|all", "overlap",
     "gradient exchange: overlapped with the kernels, after them, after them one parameter at a "
     "time, none, or all of these alternately",
     GROUP_RANKS},
    {"bucket-mb", "X", "0", "bucket size for the gradient exchange in MB; 0: automatic",
     GROUP_RANKS},
    {"shard", NULL, NULL, "sharded updates: each rank updates only its part of the parameters",
     GROUP_RANKS},
    {"progress", "auto|polls|thread", "auto", "what drives the gradient exchange while kernels run",
     GROUP_RANKS},
    {"json", NULL, NULL, "print one JSON object", GROUP_OUTPUT},
    {"inference", NULL, NULL, "time forward passes in evaluation mode instead of training steps",
     GROUP_NONE},
    {"dynamic", NULL, NULL,
     "different batch sizes (1 to --batch) and image sizes (up to --size) from step to step",
     GROUP_NONE},
    {"first-step", NULL, NULL, "stop after the first step and report when it ended", GROUP_NONE},
    {"denormal", NULL, NULL, "mlp: values so small that the step computes with subnormal numbers",
     GROUP_NONE},
    TIMELINE_OPTIONS,
    LAUNCH_OPTIONS,
    {0},
};

const command cmd_bench = {
    .name = "bench",
    .operands = "NETWORK|loader|allreduce|elementwise",
    .summary = "Measure the time of training steps on synthetic data, and of recording them.",
    .words = bench_words,
    .options = options,
    .examples =
        "  catena bench mlp                        784-1000-1000-10, batch 100, Adam, f32\n"
        "  catena bench resnet50 --batch 16 --precision bf16 --steps 10\n"
        "  catena bench resnet50 --inference --batch 1\n"
        "  catena bench resnet18 --dynamic --batch 64 --steps 200\n"
        "  catena bench mlp --threads 1 --json     one thread, for a program to read\n"
        "  catena bench mlp --steps 100 --denormal activations and gradients around 1e-40\n"
        "  catena bench loader --data photos --threads 2\n"
        "  catena bench elementwise --threads 1    chains of 1 to 64 ops, compared with one loop\n"
        "  mpirun -np 4 catena bench allreduce     102 MB summed over four ranks\n"
        "  mpirun -np 4 catena bench resnet50 --exchange all --steps 6\n",
    .run = run,
    .ranks = RANKS_JOB,
};
