/* SPDX-License-Identifier: Apache-2.0
 *
 * catena timeline: shows where the time of the steps in a timeline went. A rank's step consists
 * of compute (a kernel is running), exposed communication (the rank waits for gradients),
 * progress of messages between kernels, input (it waits for data) and the rest. Hidden
 * communication is the part of compute during which gradients were in flight.
 */
#include "timeline/timeline.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <catena/dist.h>

#include "launch.h"

/* ---- sets of intervals: sorted, without overlap ---------------------------------------------- */

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->t0 > y->t0) - (x->t0 < y->t0);
}

static void unite(spans *s)
{
    size_t n = 0;
    if (s->n == 0) return;
    qsort(s->at, s->n, sizeof *s->at, by_begin);
    for (size_t i = 1; i < s->n; i++) {
        if (s->at[i].t0 > s->at[n].t1) s->at[++n] = s->at[i];
        else s->at[n].t1 = fmax(s->at[n].t1, s->at[i].t1);
    }
    s->n = n + 1;
}

/* The first span that ends after t. */
static size_t first_behind(const spans *s, double t)
{
    size_t lo = 0, hi = s->n;
    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (s->at[mid].t1 > t) hi = mid;
        else lo = mid + 1;
    }
    return lo;
}

static double overlap(span a, span b)
{
    return fmax(0, fmin(a.t1, b.t1) - fmax(a.t0, b.t0));
}

static double inside(const spans *s, span step)
{
    double sum = 0;
    for (size_t i = first_behind(s, step.t0); i < s->n && s->at[i].t0 < step.t1; i++)
        sum += overlap(s->at[i], step);
    return sum;
}

static double both(const spans *a, const spans *b, span step)
{
    double sum = 0;
    for (size_t i = first_behind(a, step.t0); i < a->n && a->at[i].t0 < step.t1; i++) {
        const span x = {fmax(a->at[i].t0, step.t0), fmin(a->at[i].t1, step.t1)};
        sum += inside(b, x);
    }
    return sum;
}

/* ---- the split ------------------------------------------------------------------------------- */

enum { STEP, COMPUTE, EXPOSED, PROGRESS, INPUT, OTHER, HIDDEN, OPTIMIZER, AHEAD, PARTS };
static const char *const parts[PARTS] = {"step",  "compute", "exposed",   "progress", "input",
                                         "other", "hidden",  "optimizer", "ahead"};

typedef struct {
    double ms[PARTS]; /* per step */
} split;

typedef struct {
    int ranks;
    size_t steps;
    split *rank, mean; /* [ranks] */
    double imbalance_ms;
    int slowest;
} result;

static split split_step(const rank_spans *r, span step)
{
    split s = {{0}};
    s.ms[STEP] = step.t1 - step.t0;
    s.ms[COMPUTE] = inside(&r->of[SPAN_COMPUTE], step);
    s.ms[OPTIMIZER] = inside(&r->of[SPAN_OPTIMIZER], step);
    s.ms[EXPOSED] = inside(&r->of[SPAN_WAIT], step);
    s.ms[PROGRESS] = inside(&r->of[SPAN_PROGRESS], step);
    s.ms[INPUT] = inside(&r->of[SPAN_INPUT], step);
    s.ms[HIDDEN] = both(&r->of[SPAN_EXCHANGE], &r->of[SPAN_COMPUTE], step);
    s.ms[OTHER] = s.ms[STEP];
    for (int k = COMPUTE; k < OTHER; k++) s.ms[OTHER] -= s.ms[k];
    s.ms[OTHER] = fmax(0, s.ms[OTHER]);
    return s;
}

/* Optimizer kernels and kernels that only start an exchange count as compute too. */
static ctn_status prepare(rank_spans *r)
{
    static const span_kind more[] = {SPAN_OPTIMIZER, SPAN_START};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < r->of[more[k]].n; i++)
            if (!spans_add(&r->of[SPAN_COMPUTE], r->of[more[k]].at[i]))
                return ctn_fail(CTN_ENOMEM, "no memory for the spans");
    for (int k = 0; k < SPAN_STEP; k++) unite(&r->of[k]);
    spans *step = &r->of[SPAN_STEP];
    if (step->n > 0) qsort(step->at, step->n, sizeof(span), by_begin);
    for (size_t i = 1; i < step->n; i++) { /* each span counts for one step only */
        step->at[i].t0 = fmax(step->at[i].t0, step->at[i - 1].t1);
        step->at[i].t1 = fmax(step->at[i].t1, step->at[i].t0);
    }
    return CTN_OK;
}

/* One step of all ranks. The rank that waits least is the one that the others wait for. */
static void add_step(result *s, const timeline *t, size_t k)
{
    double least = INFINITY, most = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int r = 0; r < t->ranks; r++) {
            split x = split_step(&t->rank[r], t->rank[r].of[SPAN_STEP].at[k]);
            least = fmin(least, x.ms[EXPOSED]);
            most = fmax(most, x.ms[EXPOSED]);
            x.ms[AHEAD] = x.ms[EXPOSED] - least;
            for (int i = 0; pass == 1 && i < PARTS; i++)
                s->rank[r].ms[i] += x.ms[i] / (double)s->steps;
        }
    s->imbalance_ms += (most - least) / (double)s->steps;
}

static ctn_status split_all(result *s, timeline *t, const char *path)
{
    s->ranks = t->ranks;
    s->rank = calloc((size_t)t->ranks + 1, sizeof *s->rank);
    if (!s->rank) return ctn_fail(CTN_ENOMEM, "no memory for %d ranks", t->ranks);
    for (int r = 0; r < t->ranks; r++) {
        CTN_TRY(prepare(&t->rank[r]));
        const size_t n = t->rank[r].of[SPAN_STEP].n;
        if (r == 0 || n < s->steps) s->steps = n;
    }
    if (s->steps == 0) return ctn_fail(CTN_EFORMAT, "%s contains no complete optimizer step", path);
    for (size_t k = 0; k < s->steps; k++) add_step(s, t, k);
    for (int r = 0; r < t->ranks; r++) {
        for (int i = 0; i < PARTS; i++) s->mean.ms[i] += s->rank[r].ms[i] / t->ranks;
        if (s->rank[r].ms[AHEAD] < s->rank[s->slowest].ms[AHEAD]) s->slowest = r;
    }
    return CTN_OK;
}

/* The share of communication that is overlapped with kernels; NAN: no communication. */
static double hidden_share(const split *s)
{
    return s->ms[HIDDEN] / (s->ms[HIDDEN] + s->ms[EXPOSED]);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void print_row(const char *name, const split *s)
{
    say(stdout, "%-20s", name);
    for (int i = 0; i < PARTS; i++) say(stdout, " %10.3f", s->ms[i]);
    say(stdout, "\n");
}

static void print_text(const result *s, const timeline *t, const char *path)
{
    const double step = s->mean.ms[STEP];
    say(stdout, "%s: %d", path, s->ranks);
    if (t->job_ranks > s->ranks) say(stdout, " of %d", t->job_ranks);
    say(stdout, " rank%s, %zu steps of %.3f ms", t->job_ranks == 1 ? "" : "s", s->steps, step);
    if (t->clock_within_us > 0) say(stdout, ", clocks accurate to %.1f us", t->clock_within_us);
    say(stdout, "\n\n%-20s", "ms per step");
    for (int i = 0; i < PARTS; i++) say(stdout, " %10s", parts[i]);
    say(stdout, "\n");
    for (int r = 0; r < s->ranks; r++) print_row(t->rank[r].name, &s->rank[r]);
    if (s->ranks > 1) print_row("mean", &s->mean);
    say(stdout, "%-20s", "percent");
    for (int i = 0; i < PARTS; i++) say(stdout, " %10.1f", 100 * s->mean.ms[i] / step);
    say(stdout, "\n\nA step is the sum of compute, exposed, progress, input and other; hidden and "
                "optimizer are parts of compute.\n");
    if (s->ranks > 1 && isfinite(hidden_share(&s->mean)))
        say(stdout,
            "Communication: %.1f %% is overlapped with compute.\n"
            "Imbalance: waiting times differ by %.3f ms (%.1f %%) per step; %s waits least, so the "
            "other ranks wait for it.\n",
            100 * hidden_share(&s->mean), s->imbalance_ms, 100 * s->imbalance_ms / step,
            t->rank[s->slowest].name);
}

static void json_split(json *j, const split *s)
{
    char name[32];
    for (int i = 0; i < PARTS; i++) {
        snprintf(name, sizeof name, "%s_ms", parts[i]);
        json_real(j, name, s->ms[i]);
    }
    json_real(j, "hidden_share", hidden_share(s));
}

static void print_json(const result *s, const timeline *t, const char *path)
{
    json j = {0};
    json_open(&j, NULL, '{');
    json_text(&j, "file", path);
    json_int(&j, "ranks", s->ranks);
    json_int(&j, "job_ranks", t->job_ranks);
    json_int(&j, "steps", (int64_t)s->steps);
    json_split(&j, &s->mean);
    json_real(&j, "imbalance_ms", s->imbalance_ms);
    json_int(&j, "slowest_rank", t->rank[s->slowest].rank);
    json_real(&j, "clock_within_us", t->clock_within_us);
    json_int(&j, "lost_spans", t->lost);
    json_open(&j, "by_rank", '[');
    for (int r = 0; r < s->ranks; r++) {
        json_open(&j, NULL, '{');
        json_int(&j, "rank", t->rank[r].rank);
        json_text(&j, "name", t->rank[r].name);
        json_split(&j, &s->rank[r]);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
}

/* ---- the subcommand -------------------------------------------------------------------------- */

static int run(args *a)
{
    timeline t = {0};
    result s = {0};
    ctn_status st = timeline_read(&t, a->operand);
    if (st == CTN_OK) st = split_all(&s, &t, a->operand);
    if (st == CTN_OK) (args_flag(a, "json") ? print_json : print_text)(&s, &t, a->operand);
    timeline_free(&t);
    free(s.rank);
    return st < 0 ? report_failure("timeline", DOING_DATA) : EXIT_DONE;
}

int timeline_ranks(const args *a)
{
    const int64_t n = args_int(a, "timeline-ranks");
    return n <= 0 || n > INT_MAX ? INT_MAX : (int)n;
}

bool timeline_records(const args *a)
{
    return args_text(a, "timeline")[0] &&
           ctn_dist_timeline_has(a->job->rank, a->job->size, timeline_ranks(a));
}

/* The largest networks of the zoo run a few thousand kernels per step. */
int64_t timeline_room(const args *a)
{
    const int64_t per_step = 10000, least = 100000, steps = args_int(a, "timeline-steps");
    if (!timeline_records(a)) return 0;
    return steps * per_step > least ? steps * per_step : least;
}

static const option options[] = {
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_timeline = {
    .name = "timeline",
    .operands = "FILE",
    .summary = "Show where the time of the steps in a timeline went, by rank.",
    .options = options,
    .examples =
        "  mpirun -np 4 catena train mlp --data mnist --out digits --timeline mlp.json\n"
        "  catena timeline mlp.json                compute, communication, input, imbalance\n"
        "  catena timeline mlp.json --json         for a program to read\n",
    .run = run,
    .free_words = 1,
};
