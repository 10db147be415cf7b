/* SPDX-License-Identifier: Apache-2.0
 *
 * catena plan: what a job on a large machine needs and how fast it would be, from the model of
 * estimate.c. Memory of a rank, bytes on the network, the best way to exchange gradients, the time
 * of a step, and what starting, checkpoints and lost nodes cost. Refuses a job that does not fit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scale/estimate.h"

#define COPYING 5e9       /* bytes per second of the copy for a checkpoint: the training waits */
#define WRITER 64e6       /* bytes from which a rank writes a file of a checkpoint */
#define TRIED (4 << 20)   /* bytes of the vector with which auto measures */
#define STREAM (16 << 20) /* bytes that it then sends in buckets of three lengths */

typedef struct {
    events e;
    const char *machine;
    int64_t ranks;
    exchange_way way;
    double step_s;
    /* bytes of a rank */
    double parameters, gradients, state, results, copy, total;
    double checkpoint;                                            /* bytes of all ranks */
    double sent;                                                  /* bytes of a rank in a step */
    double start_s, tuning_s, pause_s, write_s, interval_s, lost; /* lost: part of the time */
} job;

static int log2_up(int64_t n)
{
    int k = 0;
    while ((int64_t)1 << k < n) k++;
    return k;
}

/* What auto takes: four times each algorithm that is not much slower than the fastest, and then
 * four times the fastest with buckets of three lengths. */
static double tuning_seconds(const job *j)
{
    double least = HUGE_VAL, sum = 0;
    for (int second = 0; second < 2; second++)
        for (const fitted *f = fitted_costs; f->platform; f++) {
            if (strcmp(f->platform, j->machine) != 0) continue;
            const double s = estimate_sum(j->machine, f->algorithm, j->ranks, TRIED);
            if (!second && s < least) least = s;
            if (second && s <= 3 * least) sum += 4 * s;
        }
    return sum + 3 * 4 * least * STREAM / TRIED;
}

/* The ranks that write copy equal parts of a checkpoint. If sharded state is small, rank 0 writes
 * all of it. */
static double copied(const job *j)
{
    const double state = (double)j->e.state, ranks = (double)j->ranks;
    double writers = fmin(fmax(floor(j->checkpoint / WRITER), 1), ranks);
    if (j->way.shard) writers = state >= WRITER ? ranks : 1;
    return j->checkpoint / writers;
}

static void plan_memory(job *j)
{
    const events *e = &j->e;
    const double share = j->way.shard ? 1.0 / (double)j->ranks : 1;
    j->parameters = j->gradients = 4.0 * (double)e->elements;
    j->state = (double)e->state * share;
    j->results = (double)e->results;
    j->checkpoint = 4.0 * (double)e->elements + (double)e->state;
    j->copy = copied(j);
    j->total = j->parameters + j->gradients + j->state + j->results + j->copy;
    j->sent = j->ranks > 1 ? estimate_sent(e, j->ranks, &j->way) : 0;
}

static void plan_job(job *j, const args *a)
{
    const double disk = args_real(a, "disk-gb-per-s") * 1e9;
    const double failure_s = args_real(a, "mtbf-hours") * 3600 / (double)j->ranks;
    const double hop_s = estimate_sum(j->machine, "doubling", 2, 8);
    j->start_s = 0.2 + 40 * log2_up(j->ranks) * hop_s; /* the program; then agreements */
    j->tuning_s = j->ranks > 1 ? tuning_seconds(j) : 0;
    j->pause_s = j->copy / COPYING;
    j->write_s = j->checkpoint / disk;
    /* Young and Daly; a checkpoint begins when the one before has been written. */
    j->interval_s = fmax(sqrt(2 * j->pause_s * failure_s), j->write_s);
    j->lost = j->pause_s / j->interval_s +
              (j->interval_s / 2 + j->start_s + j->checkpoint / disk) / failure_s;
}

/* Sharded updates do not use an algorithm for sums. */
static const char *algorithm_of(const job *j)
{
    return j->ranks < 2 ? "none" : j->way.shard ? "shard" : j->way.algorithm;
}

static void print_json(const job *j, double memory)
{
    json out = {0};
    json_open(&out, NULL, '{');
    json_text(&out, "model", j->e.name);
    json_text(&out, "platform", j->machine);
    json_int(&out, "ranks", j->ranks);
    json_int(&out, "batch", j->e.batch);
    json_bool(&out, "fits", j->total <= memory);
    json_open(&out, "memory", '{');
    json_real(&out, "parameters", j->parameters);
    json_real(&out, "gradients", j->gradients);
    json_real(&out, "state", j->state);
    json_real(&out, "results", j->results);
    json_real(&out, "checkpoint", j->copy);
    json_real(&out, "total", j->total);
    json_close(&out, '}');
    json_real(&out, "step_s", j->step_s);
    json_real(&out, "compute_s", j->e.compute_s);
    json_real(&out, "efficiency", j->e.compute_s / j->step_s);
    json_real(&out, "items_per_s", (double)(j->e.batch * j->ranks) / j->step_s);
    json_text(&out, "algorithm", algorithm_of(j));
    json_text(&out, "wire", j->way.wire == 2 ? "bf16" : "f32");
    json_int(&out, "bucket_bytes", j->way.bucket);
    json_real(&out, "bytes_sent", j->sent);
    json_real(&out, "start_s", j->start_s);
    json_real(&out, "tuning_s", j->tuning_s);
    json_real(&out, "checkpoint_bytes", j->checkpoint);
    json_real(&out, "checkpoint_pause_s", j->pause_s);
    json_real(&out, "checkpoint_write_s", j->write_s);
    json_real(&out, "checkpoint_interval_s", j->interval_s);
    json_real(&out, "lost", j->lost);
    json_close(&out, '}');
}

static void print_text(const job *j)
{
    const double mb = 1e-6;
    say(stdout, "%s, batch %lld per rank, %lld ranks, one on each node of %s\n\n", j->e.name,
        (long long)j->e.batch, (long long)j->ranks, j->machine);
    say(stdout,
        "memory of a rank  %9.0f MB   parameters %.0f, gradients %.0f, optimizer %.0f, "
        "results %.0f, copy for a checkpoint %.0f\n",
        j->total * mb, j->parameters * mb, j->gradients * mb, j->state * mb, j->results * mb,
        j->copy * mb);
    say(stdout,
        "step              %9.2f ms   kernels and update %.2f, efficiency %.1f %%, %.0f items/s\n",
        j->step_s * 1e3, j->e.compute_s * 1e3, 100 * j->e.compute_s / j->step_s,
        (double)(j->e.batch * j->ranks) / j->step_s);
    if (j->ranks > 1)
        say(stdout,
            "network           %9.0f MB   per rank and step: %s%s --wire %s --bucket-mb %lld\n",
            j->sent * mb, j->way.shard ? "--" : "--allreduce ", algorithm_of(j),
            j->way.wire == 2 ? "bf16" : "f32", (long long)j->way.bucket >> 20);
    say(stdout, "start             %9.2f s    and %.2f s to choose the algorithm once\n",
        j->start_s, j->tuning_s);
    say(stdout, "checkpoint        %9.0f MB   pause %.3f s, written in %.1f s\n",
        j->checkpoint * mb, j->pause_s, j->write_s);
    say(stdout, "lost nodes        %9.2f %%    of the time, with a checkpoint every %.0f s\n",
        100 * j->lost, j->interval_s);
}

static int refuse(const job *j, double memory)
{
    const double fixed = j->total - j->results;
    const double samples = floor((memory - fixed) / j->results * (double)j->e.batch);
    say(stderr, "catena plan: a rank needs %.0f MB, %.0f MB more than --memory allows",
        j->total * 1e-6, (j->total - memory) * 1e-6);
    if (samples >= 1) say(stderr, "; a batch of %.0f would fit", samples);
    else if (!j->way.shard && fixed > memory)
        say(stderr, "; try --shard, which divides the %.0f MB of the optimizer among the ranks",
            j->state * 1e-6);
    say(stderr, "\n");
    return EXIT_MEMORY;
}

static int plan_sums(const args *a, const char *machine, int64_t ranks)
{
    json j = {0};
    double bytes[32];
    const int n = args_list(a, "bytes", 32, bytes);
    const bool as_json = args_flag(a, "json");
    if (as_json) json_open(&j, NULL, '[');
    else say(stdout, "%7s %12s  %-13s %12s\n", "ranks", "bytes", "algorithm", "us");
    for (int i = 0; i < n; i++)
        for (const fitted *f = fitted_costs; f->platform; f++) {
            if (strcmp(f->platform, machine) != 0) continue;
            const double s = estimate_sum(machine, f->algorithm, ranks, bytes[i]);
            if (!as_json)
                say(stdout, "%7lld %12.0f  %-13s %12.1f\n", (long long)ranks, bytes[i],
                    f->algorithm, s * 1e6);
            if (!as_json) continue;
            json_open(&j, NULL, '{');
            json_int(&j, "ranks", ranks);
            json_real(&j, "bytes", bytes[i]);
            json_text(&j, "algorithm", f->algorithm);
            json_real(&j, "seconds", s);
            json_close(&j, '}');
        }
    if (as_json) json_close(&j, ']');
    return EXIT_DONE;
}

static int run(args *a)
{
    static job j;
    const char *wire = args_text(a, "wire"), *algorithm = args_text(a, "algorithm");
    const double gb = args_real(a, "memory"), memory = gb > 0 ? gb * 1e9 : HUGE_VAL;
    j = (job){.machine = args_text(a, "platform"), .ranks = args_int(a, "ranks")};
    if (j.ranks < 1 || args_real(a, "disk-gb-per-s") <= 0 || args_real(a, "mtbf-hours") <= 0) {
        say(stderr, "catena plan: --ranks, --disk-gb-per-s and --mtbf-hours must be positive\n");
        return EXIT_USAGE;
    }
    if (args_int(a, "record-steps") < 1) {
        say(stderr, "catena plan: --record-steps must be positive\n");
        return EXIT_USAGE;
    }
    if (strcmp(a->operand, ALLREDUCE) == 0) return plan_sums(a, j.machine, j.ranks);
    if (args_flag(a, "shard") && strcmp(algorithm, "auto") != 0) {
        say(stderr, "catena plan: --shard sums in its own way; leave out --algorithm %s\n",
            algorithm);
        return EXIT_USAGE;
    }
    int code = check_threads(a);
    if (code < 0) code = check_precision(a);
    if (code >= 0) return code;
    if (step_of(&j.e, a) < 0) return report_error("plan");
    j.way = (exchange_way){.algorithm = strcmp(algorithm, "auto") == 0 ? NULL : algorithm,
                           .wire = strcmp(wire, "f32") == 0    ? 4
                                   : strcmp(wire, "bf16") == 0 ? 2
                                                               : 0,
                           .bucket = 4 << 20,
                           .shard = args_flag(a, "shard")};
    j.step_s = j.ranks > 1 ? estimate_best(&j.e, j.machine, j.ranks, &j.way) : j.e.compute_s;
    if (j.step_s < 0) {
        events_free(&j.e);
        say(stderr,
            "catena plan: the model does not know the algorithm %s (catena plan allreduce "
            "lists those it knows)\n",
            algorithm);
        return EXIT_USAGE;
    }
    plan_memory(&j);
    plan_job(&j, a);
    if (args_flag(a, "json")) print_json(&j, memory);
    else if (j.total <= memory) print_text(&j);
    if (j.total > memory) code = refuse(&j, memory);
    else code = EXIT_DONE;
    events_free(&j.e);
    return code;
}

static const char *const *plan_words(void)
{
    static const char *words[MOST_WORDS], *const more[] = {ALLREDUCE, NULL};
    return networks_and(words, more);
}

static const option options[] = {
    {"platform", "fat-tree|torus|dragonfly|ethernet", "fat-tree",
     "the machine: an Omni-Path fat tree, Tofu-D, Slingshot, or 10 Gbit/s Ethernet", GROUP_NONE},
    {"ranks", "N", "16", "number of ranks, one on each node", GROUP_NONE},
    {"memory", "GB", "0", "memory of a rank; refuses a job that needs more; 0: no limit",
     GROUP_NONE},
    {"batch", "N", "0", "samples per rank; 0: the network's usual batch", GROUP_NONE},
    {"size", "N", "0", "image height and width, or sequence length; 0: the network's usual one",
     GROUP_NONE},
    {"items-per-s", "X", "0",
     "speed of a node in samples per second; 0: the kernels take as long as here", GROUP_NONE},
    {"precision", "P", "f32", "precision of activations and matrix products: f32, bf16, f16 or f64",
     GROUP_NONE},
    {"slow-precision", NULL, NULL,
     "allow a precision that this CPU runs with slow reference kernels", GROUP_NONE},
    {"threads", "N", "0", "number of compute threads; 0: as shown by catena info", GROUP_NONE},
    {"wire", "auto|f32|bf16", "auto", "type of gradients on the network; auto: the faster one",
     GROUP_NONE},
    {"algorithm", "NAME", "auto", "allreduce algorithm; auto: the fastest; not with --shard",
     GROUP_NONE},
    {"shard", NULL, NULL, "every rank updates a part of the parameters", GROUP_NONE},
    {"disk-gb-per-s", "X", "10", "rate at which the file system takes a checkpoint", GROUP_NONE},
    {"mtbf-hours", "X", "50000", "mean time between failures of one node", GROUP_NONE},
    {"bytes", "N,...", "4000,400000,40000000", "allreduce: lengths of the vectors", GROUP_NONE},
    {"record-steps", "N", "3", "number of profiled steps here", GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_plan = {
    .name = "plan",
    .operands = "NETWORK | FILE | allreduce",
    .summary = "Plan a job for a large machine: memory, time of a step, checkpoints, lost nodes.",
    .words = plan_words,
    .paths = RECORDED_STEP,
    .options = options,
    .examples =
        "  catena plan mlp --ranks 64 --platform torus         an MLP on 64 nodes of a torus\n"
        "  catena plan resnet50 --ranks 1024 --memory 16       does it fit into 16 GB per rank?\n"
        "  catena scale resnet50 --save resnet50.step\n"
        "  catena plan ./resnet50.step --ranks 4096            the same without training again\n",
    .run = run,
};
