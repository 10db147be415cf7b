/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench NETWORK --exchange all: the cost of the gradient exchange. The speed of machines
 * drifts, so all ways of exchanging run alternately in one process, each with its own model, a
 * few steps at a time. The first step of a turn is a warm-up (and completes what a sharded
 * update left in flight); the other steps are timed.
 */
#include "bench/exchange.h"

#include <math.h>
#include <string.h>

#include "bench/allreduce.h"
#include "launch.h"

enum { TURN = 2, MOST = 512 }; /* timed steps per turn; maximum per way */

static const char *const ways[] = {"none", "overlap", "shard", "after", "per-parameter"};

enum { NONE, OVERLAP, SHARD, AFTER, WAYS = sizeof ways / sizeof *ways };

typedef struct {
    int steps;
    double ms[WAYS][MOST];
    double best_ms[WAYS], median_ms[WAYS];
} figures;

ctn_status exchange_comm(const args *a, ctn_comm **c)
{
    return ctn_comm_open(c, CTN_OPT(ctn_comm_opt, .algorithm = args_text(a, "algorithm"),
                                    .wire = args_is(a, "dtype", "bf16") ? CTN_BF16 : CTN_F32));
}

ctn_status exchange_by(const args *a, const model *m, ctn_comm *c, const char *way)
{
    if (strcmp(way, "none") == 0) return CTN_OK;
    int when = strcmp(way, "after") == 0           ? CTN_DIST_AFTER
               : strcmp(way, "per-parameter") == 0 ? CTN_DIST_PER_PARAMETER
                                                   : CTN_DIST_OVERLAP;
    return ctn_dist_optim(m->opt, c,
                          CTN_OPT(ctn_dist_opt,
                                  .shard = args_flag(a, "shard") || strcmp(way, "shard") == 0,
                                  .when = when, .progress = progress_of(a),
                                  .bucket = (int64_t)(1e6 * args_real(a, "bucket-mb"))));
}

bool exchange_undecided(const model *m)
{
    ctn_dist_stats s = {.struct_size = sizeof s};
    ctn_dist_get_stats(m->opt, &s);
    return s.buckets > 0 && s.progress == 0;
}

/* All ranks begin every step together, with or without an exchange, and a step ends when the
 * slowest rank is done. So differences in speed between ranks do not count as cost of the
 * exchange. */
static ctn_status turn(model *m, ctn_comm *c, double *ms)
{
    for (int s = 0; s <= TURN; s++) {
        double loss, start = now_s();
        CTN_TRY(model_step(m, &loss));
        double took = (now_s() - start) * 1e3;
        if (!isfinite(loss)) return ctn_fail(CTN_EENGINE, "the loss is %g", loss);
        CTN_TRY(slowest_rank(c, &took));
        if (s > 0) ms[s - 1] = took;
    }
    return CTN_OK;
}

static ctn_status measure(figures *f, model *m, ctn_comm *c)
{
    for (int w = 0; w < WAYS; w++) { /* plans, and what the first steps decide */
        do CTN_TRY(turn(&m[w], c, f->ms[w]));
        while (exchange_undecided(&m[w]));
    }
    for (int s = 0; s < f->steps; s += TURN)
        for (int w = 0; w < WAYS; w++) CTN_TRY(turn(&m[w], c, &f->ms[w][s]));
    for (int w = 0; w < WAYS; w++)
        best_and_median(f->ms[w], f->steps, &f->best_ms[w], &f->median_ms[w]);
    return CTN_OK;
}

/* The share of the exchange time that is hidden by overlapping it with kernels. */
static double hidden(const figures *f, int way)
{
    return 1 -
           (f->median_ms[way] - f->median_ms[NONE]) / (f->median_ms[AFTER] - f->median_ms[NONE]);
}

static void print(const args *a, const figures *f, const model *m, ctn_comm *c)
{
    if (!args_flag(a, "json")) {
        say(stdout, "%s, batch %lld on each of %d ranks, %d steps per way\n", m->name,
            (long long)m->batch, ctn_comm_size(c), f->steps);
        for (int w = 0; w < WAYS; w++)
            say(stdout, "  %-16s %9.1f ms best, %9.1f ms median\n", ways[w], f->best_ms[w],
                f->median_ms[w]);
        say(stdout, "  hidden: %.0f %%, %.0f %% with sharded updates\n", 100 * hidden(f, OVERLAP),
            100 * hidden(f, SHARD));
        return;
    }
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "model", m->name);
    json_int(&j, "batch", m->batch);
    json_int(&j, "ranks", ctn_comm_size(c));
    json_int(&j, "steps", f->steps);
    json_open(&j, "ways", '{');
    for (int w = 0; w < WAYS; w++) {
        json_open(&j, ways[w], '{');
        json_real(&j, "best_ms", f->best_ms[w]);
        json_real(&j, "median_ms", f->median_ms[w]);
        json_close(&j, '}');
    }
    json_close(&j, '}');
    json_real(&j, "hidden", hidden(f, OVERLAP));
    json_real(&j, "hidden_shard", hidden(f, SHARD));
    json_close(&j, '}');
}

ctn_status bench_exchange(const args *a, ctn_context *ctx, const model_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn_comm *c = NULL;
    model m[WAYS] = {0};
    const int64_t steps = (args_int(a, "steps") + TURN - 1) / TURN * TURN;
    figures f = {.steps = steps < MOST ? (int)steps : MOST};
    CTN_TRY_GOTO(st, done, exchange_comm(a, &c));
    for (int w = 0; w < WAYS; w++) {
        CTN_TRY_GOTO(st, done, model_new(&m[w], ctx, opt));
        CTN_TRY_GOTO(st, done, exchange_by(a, &m[w], c, ways[w]));
    }
    CTN_TRY_GOTO(st, done, measure(&f, m, c));
    if (a->job->rank == 0) print(a, &f, &m[0], c);
done:
    for (int w = 0; w < WAYS; w++) model_free(&m[w]);
    ctn_comm_free(c);
    return st;
}
