/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline: a Chrome trace of what the ranks did in the last steps, on one common clock. Each
 * rank is a process of the trace; its rows are the steps, the thread that issues kernels, the
 * waits for input, and every bucket of gradients in flight.
 *
 * A step ends where the optimizer's kernel ends. All ranks take the same number of steps, so
 * counting from the end selects the same steps on every rank. Clocks are compared once, right
 * after these steps, so that they have little time to drift.
 *
 * If there are many ranks, only a sample of them is in the file. Cost: four messages and those of
 * its clock for a rank of the sample, as many for each rank of the sample on rank 0, and one
 * broadcast for all other ranks.
 */
#include "distributed/timeline.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/newfile.h"
#include "distributed/distributed.h"
#include "optim/optim.h"
#include "train/train.h"

enum { ROW_STEPS = 3 };

static uint64_t own_clock(void *unused)
{
    (void)unused;
    return ctn__now_ns();
}

/* ---- spans of this rank ---------------------------------------------------------------------- */

/* What a span counts as when the time of a step is split up. `catena timeline` reads these
 * names. */
typedef enum { COMPUTE, OPTIMIZER, START, WAIT, PROGRESS, INPUT, EXCHANGE, STEP } kind;
static const char *const kinds[] = {"compute",  "optimizer", "start",    "wait",
                                    "progress", "input",     "exchange", "step"};

/* A span as it is sent; its name is an index into a list. */
typedef struct {
    uint64_t t0, t1;
    int64_t bytes;
    int32_t lane, name, kind, unused;
} record;

typedef struct {
    CTN__VEC(ctn__span) span;
    CTN__VEC(uint64_t) end; /* ends of the steps, increasing; the first is where step 0 begins */
    CTN__VEC(record) record;
    CTN__VEC(const char *) name; /* names of the records, each once */
    ctn__text text;              /* these names, 0-terminated */
    const char *optimizer[16];
    int noptimizer;
} own;

static void own_free(own *o)
{
    ctn__vec_free(&o->span);
    ctn__vec_free(&o->end);
    ctn__vec_free(&o->record);
    ctn__vec_free(&o->name);
    ctn__text_free(&o->text);
}

static bool of_optimizer(const own *o, const ctn__span *s)
{
    for (int i = 0; i < o->noptimizer; i++)
        if (s->name == o->optimizer[i]) return true;
    return false;
}

static kind kind_of(const own *o, const ctn__span *s)
{
    if (s->lane == ROW_STEPS) return STEP;
    if (s->lane == CTN__LANE_INPUT) return INPUT;
    if (s->lane != CTN__LANE_KERNELS) return EXCHANGE;
    if (of_optimizer(o, s)) return OPTIMIZER;
    if (strcmp(s->name, "allreduce") == 0) return START;
    if (strcmp(s->name, "progress") == 0) return PROGRESS;
    /* nodes of plan/exchange.c, and communicating ops, which wait for other ranks within a plan */
    bool waits = strncmp(s->name, "wait_", 5) == 0 || strncmp(s->name, "dist_", 5) == 0;
    return waits ? WAIT : COMPUTE;
}

/* Copies the ring and finds the ends of steps in it. A step whose beginning was overwritten does
 * not count. */
static ctn_status look_back(own *o, const ctn_context *ctx)
{
    const int64_t n = ctn__trace_spans(ctx->trace);
    uint64_t first = UINT64_MAX;
    for (const ctn__pool *p = ctx->pools; p && o->noptimizer < 16; p = p->next)
        o->optimizer[o->noptimizer++] = p->step_op->name;
    if (!ctn__vec_reserve(&o->span, (size_t)n)) return CTN_ENOMEM;
    ctn__span s;
    for (int64_t i = 0; i < n && ctn__trace_get(ctx->trace, i, &s); i++) {
        o->span.at[o->span.n++] = s;
        if (s.t0 < first) first = s.t0;
    }
    if (ctn__trace_lost(ctx->trace) == 0 && n > 0 && !ctn__vec_push(&o->end, first))
        return CTN_ENOMEM;
    for (size_t i = 0; i < o->span.n; i++)
        if (of_optimizer(o, &o->span.at[i]) && !ctn__vec_push(&o->end, o->span.at[i].t1))
            return CTN_ENOMEM;
    return CTN_OK;
}

static int64_t steps_kept(const own *o)
{
    return o->end.n > 0 ? (int64_t)o->end.n - 1 : 0;
}

static int32_t name_of(own *o, const char *name)
{
    size_t i = 0;
    while (i < o->name.n && o->name.at[i] != name) i++;
    if (i == o->name.n && !ctn__vec_push(&o->name, name)) return -1;
    return (int32_t)i;
}

static ctn_status add_record(own *o, const ctn__span *s)
{
    const record r = {.t0 = s->t0,
                      .t1 = s->t1 < s->t0 ? s->t0 : s->t1,
                      .bytes = s->bytes,
                      .lane = s->lane,
                      .name = name_of(o, s->name),
                      .kind = (int32_t)kind_of(o, s)};
    return r.name >= 0 && ctn__vec_push(&o->record, r) ? CTN_OK : CTN_ENOMEM;
}

/* Selects the spans that overlap the last `steps` steps, or all spans if there is no step. The
 * steps themselves become spans too, whose `bytes` is the number of the step, counted from 0. */
static ctn_status cut(own *o, int64_t steps)
{
    static const char step[] = "step";
    const size_t first = o->end.n - 1 - (size_t)steps;
    const bool all = steps == 0;
    for (size_t i = first; !all && i + 1 < o->end.n; i++)
        CTN_TRY(add_record(o, &(ctn__span){step, o->end.at[i], o->end.at[i + 1], ROW_STEPS,
                                           (int64_t)(i - first)}));
    for (size_t i = 0; i < o->span.n; i++) {
        const ctn__span *s = &o->span.at[i];
        if (all || (s->t1 > o->end.at[first] && s->t0 < o->end.at[o->end.n - 1]))
            CTN_TRY(add_record(o, s));
    }
    for (size_t i = 0; i < o->name.n; i++) {
        ctn__text_add(&o->text, "%s", o->name.at[i]);
        ctn__text_add(&o->text, "%c", 0);
    }
    return o->text.failed ? CTN_ENOMEM : CTN_OK;
}

/* ---- the file -------------------------------------------------------------------------------- */

typedef struct {
    char host[64];
    int64_t records, text, lost;
    uint64_t first; /* earliest start of a span */
    int64_t st;     /* if it is an error, no spans follow */
} summary;

typedef struct {
    ctn__newfile file;
    ctn__text text;
    ctn_status st; /* the first error; spans of other ranks are still received */
    bool more;
} output;

static void flush(output *o, size_t room)
{
    if (o->st == CTN_OK && o->text.failed) o->st = CTN_ENOMEM;
    if (o->st == CTN_OK && o->text.n > room)
        o->st = ctn__newfile_write(&o->file, o->text.s, o->text.n);
    if (o->text.n > room) o->text.n = 0;
}

static void put_string(ctn__text *t, const char *s)
{
    ctn__text_add(t, "\"");
    for (; *s; s++) {
        const unsigned char ch = (unsigned char)*s;
        if (ch == '"' || ch == '\\') ctn__text_add(t, "\\%c", ch);
        else if (ch < 0x20) ctn__text_add(t, "\\u%04x", ch);
        else ctn__text_add(t, "%c", ch);
    }
    ctn__text_add(t, "\"");
}

/* A time in microseconds. Printed as integers, because %f depends on the program's locale. */
static void put_us(ctn__text *t, const char *key, uint64_t ns)
{
    ctn__text_add(t, ",\"%s\":%" PRIu64 ".%03u", key, ns / 1000, (unsigned)(ns % 1000));
}

static void put_head(output *o, const char *name)
{
    ctn__text_add(&o->text, o->more ? ",\n{\"name\":" : "\n{\"name\":");
    put_string(&o->text, name);
    o->more = true;
}

/* The label of a process or row, and its sort position. */
static void put_label(output *o, const char *what, int r, int row, const char *label, int place)
{
    static const char *const form[] = {"%s_name", "%s_sort_index"};
    for (int i = 0; i < 2; i++) {
        char name[32];
        snprintf(name, sizeof name, form[i], what);
        put_head(o, name);
        ctn__text_add(&o->text, ",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{", r, row);
        if (i == 0) ctn__text_add(&o->text, "\"name\":");
        if (i == 0) put_string(&o->text, label);
        else ctn__text_add(&o->text, "\"sort_index\":%d", place);
        ctn__text_add(&o->text, "}}");
    }
}

static void put_row(output *o, int r, int row)
{
    char label[64];
    int place = row;
    if (row == CTN__LANE_KERNELS) snprintf(label, sizeof label, "kernels");
    else if (row == CTN__LANE_INPUT) snprintf(label, sizeof label, "input");
    else if (row == CTN__LANE_CONTROL) snprintf(label, sizeof label, "control");
    else if (row == ROW_STEPS) snprintf(label, sizeof label, "steps");
    else if (row >= CTN__LANE_VALUES)
        snprintf(label, sizeof label, "values %d", row - CTN__LANE_VALUES);
    else snprintf(label, sizeof label, "bucket %d", row - CTN__LANE_BUCKET);
    if (row == ROW_STEPS) place = -1;
    put_label(o, "thread", r, row, label, place);
}

static void put_rows(output *o, int r, const record *at, int64_t n)
{
    bool few[CTN__LANE_BUCKET] = {0};
    int last[2] = {CTN__LANE_BUCKET - 1, CTN__LANE_VALUES - 1};
    for (int64_t i = 0; i < n; i++) {
        const int lane = at[i].lane, k = lane >= CTN__LANE_VALUES;
        if (lane < CTN__LANE_BUCKET) few[lane] = true;
        else if (lane > last[k]) last[k] = lane;
    }
    for (int i = 0; i < CTN__LANE_BUCKET; i++)
        if (few[i]) put_row(o, r, i);
    for (int i = CTN__LANE_BUCKET; i <= last[0]; i++) put_row(o, r, i);
    for (int i = CTN__LANE_VALUES; i <= last[1]; i++) put_row(o, r, i);
}

static void put_span(output *o, int r, const record *s, const char *name, uint64_t start)
{
    put_head(o, name);
    ctn__text_add(&o->text, ",\"cat\":\"%s\",\"ph\":\"X\"", kinds[s->kind]);
    put_us(&o->text, "ts", s->t0 > start ? s->t0 - start : 0);
    put_us(&o->text, "dur", s->t1 - s->t0);
    ctn__text_add(&o->text, ",\"pid\":%d,\"tid\":%d", r, s->lane);
    if (s->kind == STEP || s->bytes > 0)
        ctn__text_add(&o->text, ",\"args\":{\"%s\":%" PRId64 "}",
                      s->kind == STEP ? "step" : "bytes", s->bytes);
    ctn__text_add(&o->text, "}");
    flush(o, 1 << 20);
}

static void put_spans(output *o, int r, const summary *s, const record *at, const char *text,
                      uint64_t start)
{
    CTN__VEC(const char *) name = {0};
    char label[100];
    snprintf(label, sizeof label, "rank %d (%s)", r, s->host);
    put_label(o, "process", r, 0, label, r);
    put_rows(o, r, at, s->records);
    for (const char *p = text; p < text + s->text; p += strlen(p) + 1)
        if (!ctn__vec_push(&name, p)) o->text.failed = true;
    for (int64_t i = 0; name.at && i < s->records && at[i].name < (int64_t)name.n; i++)
        put_span(o, r, &at[i], name.at[at[i].name], start);
    ctn__vec_free(&name);
}

/* ---- all ranks ------------------------------------------------------------------------------- */

typedef struct {
    ctn_comm *c; /* NULL: one rank */
    int rank;
    ctn__sample sample;
    int mine;                 /* this rank's number in the sample; -1: not in it */
    int64_t steps;            /* that all ranks of the sample have */
    summary *all;             /* [sample.n], on rank 0 */
    ctn__clock_offset *clock; /* [sample.n], on rank 0 */
} group;

static ctn_status group_room(group *g)
{
    g->all = ctn__calloc((size_t)g->sample.n, sizeof *g->all);
    g->clock = ctn__calloc((size_t)g->sample.n, sizeof *g->clock);
    return g->all && g->clock ? CTN_OK : CTN_ENOMEM;
}

static group group_of(ctn_comm *c, int ranks)
{
    group g = {.c = c, .rank = c ? ctn_comm_rank(c) : 0};
    g.sample = ctn__sample_of(c ? ctn_comm_size(c) : 1, ranks);
    g.mine = ctn__sample_number(g.sample, g.rank);
    return g;
}

/* Gathers one message from every rank of the sample on rank 0, which has filled in its own. */
static ctn_status gather(const group *g, const void *mine, size_t bytes, void *all)
{
    if (g->rank > 0) return ctn__comm_swap(g->c, CTN__TAG_SPANS, mine, bytes, 0, NULL, 0, 0);
    for (int i = 1; i < g->sample.n; i++)
        CTN_TRY(ctn__comm_swap(g->c, CTN__TAG_SPANS, NULL, 0, 0, (char *)all + (size_t)i * bytes,
                               bytes, ctn__sample_rank(g->sample, i)));
    return CTN_OK;
}

/* What rank 0 broadcasts, so that no rank sends anything that is not received. */
typedef struct {
    int64_t steps;
    int32_t st, rank; /* status, and the rank that failed */
} verdict;

/* kept: the number of steps that this rank has, or its error. */
static ctn_status ask_all(const group *g, int64_t kept, int64_t most, verdict *v)
{
    int64_t *all = ctn__calloc((size_t)g->sample.n, sizeof *all);
    if (!all) return CTN_ENOMEM;
    all[0] = kept;
    ctn_status st = gather(g, &kept, sizeof kept, all);
    v->steps = most;
    for (int i = 0; i < g->sample.n; i++) {
        if (all[i] < v->steps) v->steps = all[i];
        if (all[i] < 0 && v->st == CTN_OK)
            *v = (verdict){.st = (int32_t)all[i], .rank = ctn__sample_rank(g->sample, i)};
    }
    ctn__free(all);
    return st;
}

/* Agrees on the number of steps to write. If one rank has failed, all ranks fail. Costs one
 * broadcast on ranks that are not in the sample. */
static ctn_status agree(group *g, output *o, const char *path, ctn_status mine, int64_t kept,
                        int64_t most)
{
    verdict v = {0};
    if (mine < 0) kept = mine;
    if (g->rank == 0) {
        CTN_TRY(ask_all(g, kept, most, &v));
        if (v.st == CTN_OK) v.st = ctn__newfile_open(&o->file, path);
    } else if (g->mine >= 0) {
        CTN_TRY(gather(g, &kept, sizeof kept, NULL));
    }
    if (g->c) CTN_TRY(ctn_comm_broadcast(g->c, &v, sizeof v, 0));
    g->steps = v.steps;
    if (mine < 0) return mine;
    if (v.st >= 0 || v.rank == g->rank) return (ctn_status)v.st;
    return ctn_fail((ctn_status)v.st, "timeline: rank %d failed, so %s was not written", v.rank,
                    path);
}

/* Sends what rank 0 must know before it receives the spans of this rank. */
static ctn_status summarise(group *g, const own *o, const ctn_context *ctx, ctn_status st)
{
    summary mine = {.st = st,
                    .records = (int64_t)o->record.n,
                    .text = (int64_t)o->text.n,
                    .lost = ctn__trace_lost(ctx->trace),
                    .first = UINT64_MAX};
    if (gethostname(mine.host, sizeof mine.host - 1) != 0) strcpy(mine.host, "?");
    for (size_t i = 0; i < o->record.n; i++)
        if (o->record.at[i].t0 < mine.first) mine.first = o->record.at[i].t0;
    if (g->rank == 0) g->all[0] = mine;
    CTN_TRY(gather(g, &mine, sizeof mine, g->all));
    if (!g->c) return CTN_OK;
    return ctn__clock_offsets(g->c, g->sample, own_clock, NULL, g->clock);
}

/* The start of the trace on rank 0's clock. */
static uint64_t beginning(const group *g)
{
    uint64_t start = UINT64_MAX;
    for (int i = 0; i < g->sample.n; i++) {
        const uint64_t t = g->all[i].first - (uint64_t)g->clock[i].ahead_ns;
        if (g->all[i].records > 0 && t < start) start = t;
    }
    return start;
}

static ctn_status put_rank(const group *g, output *o, int i, uint64_t start)
{
    const summary *s = &g->all[i];
    const int r = ctn__sample_rank(g->sample, i);
    const size_t bytes = (size_t)s->records * sizeof(record);
    ctn_status st = CTN_OK;
    record *at = ctn__malloc(bytes + 1);
    char *text = ctn__malloc((size_t)s->text + 1);
    if (!at || !text) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__comm_swap(g->c, CTN__TAG_SPANS, NULL, 0, 0, at, bytes, r));
    CTN_TRY_GOTO(st, done,
                 ctn__comm_swap(g->c, CTN__TAG_SPANS, NULL, 0, 0, text, (size_t)s->text, r));
    put_spans(o, r, s, at, text, start + (uint64_t)g->clock[i].ahead_ns);
done:
    ctn__free(at);
    ctn__free(text);
    return st;
}

/* Lists with one number for each rank in the file, in the order of `names`. */
static void put_facts(const group *g, output *o)
{
    static const char *const names[] = {"recorded_ranks", "clock_ahead_ns", "clock_within_ns",
                                        "lost_spans"};
    ctn__text_add(&o->text,
                  "],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"catena_timeline\":1");
    ctn__text_add(&o->text, ",\n\"ranks\":%d,\n\"steps\":%" PRId64, g->sample.size, g->steps);
    for (int k = 0; k < 4; k++) {
        ctn__text_add(&o->text, ",\n\"%s\":[", names[k]);
        for (int i = 0; i < g->sample.n; i++)
            ctn__text_add(&o->text, "%s%" PRId64, i > 0 ? "," : "",
                          k == 0   ? (int64_t)ctn__sample_rank(g->sample, i)
                          : k == 1 ? g->clock[i].ahead_ns
                          : k == 2 ? g->clock[i].within_ns
                                   : g->all[i].lost);
        ctn__text_add(&o->text, "]");
    }
    ctn__text_add(&o->text, "}}\n");
    flush(o, 0);
}

static ctn_status send_spans(const group *g, const own *mine)
{
    const size_t bytes = mine->record.n * sizeof(record);
    CTN_TRY(ctn__comm_swap(g->c, CTN__TAG_SPANS, mine->record.at, bytes, 0, NULL, 0, 0));
    return ctn__comm_swap(g->c, CTN__TAG_SPANS, mine->text.s, mine->text.n, 0, NULL, 0, 0);
}

static ctn_status write_all(const group *g, const own *mine, output *o)
{
    const uint64_t start = beginning(g);
    ctn__text_add(&o->text, "{\"traceEvents\":[");
    for (int i = 0; i < g->sample.n; i++) {
        const summary *s = &g->all[i];
        if (s->st < 0 && o->st == CTN_OK)
            o->st = ctn_fail((ctn_status)s->st, "timeline: rank %d failed",
                             ctn__sample_rank(g->sample, i));
        if (i == 0) put_spans(o, 0, s, mine->record.at, mine->text.s, start);
        else if (s->st >= 0) CTN_TRY(put_rank(g, o, i, start));
    }
    put_facts(g, o);
    return o->st == CTN_OK ? ctn__newfile_commit(&o->file) : o->st;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static ctn_status check(const ctn_context *ctx, const char *who)
{
    if (!ctx) return ctn_fail(CTN_EARG, "%s: no context", who);
    if (!ctn__trace_spans_on(ctx->trace))
        return ctn_fail(CTN_ESTATE, "%s: the context records no spans (set ctn_context_opt.spans)",
                        who);
    return CTN_OK;
}

ctn_status ctn_dist_timeline_begin(ctn_context *ctx)
{
    CTN_TRY(check(ctx, "dist_timeline_begin"));
    for (ctn__pool *p = ctx->pools; p; p = p->next)
        if (p->exchange) ctn__exchange_trace(p->exchange, ctx->trace);
    return CTN_OK;
}

/* Called on ranks of the sample after all have agreed. A rank that runs out of memory reports that
 * instead of sending its spans. */
static ctn_status give_part(group *g, own *mine, output *o, const ctn_context *ctx)
{
    const ctn_status st = cut(mine, g->steps);
    if (g->rank == 0 && (!g->all || !g->clock)) return CTN_ENOMEM; /* all ranks know by now */
    CTN_TRY(summarise(g, mine, ctx, st));
    if (g->rank == 0) return write_all(g, mine, o);
    return st < 0 ? st : send_spans(g, mine);
}

ctn_status ctn_dist_timeline_write(ctn_context *ctx, ctn_comm *c, const char *path, int64_t steps,
                                   int ranks)
{
    own mine = {0};
    output o = {.file = {.fd = -1}};
    ctn_status st = CTN_OK;
    if (!ctx || !path || steps < 1 || ranks < 0)
        return ctn_fail(CTN_EARG, "dist_timeline_write: needs a context, a path and at least one "
                                  "step, and the number of ranks must not be negative");
    group g = group_of(c, ranks);
    if (g.mine >= 0) st = check(ctx, "dist_timeline_write");
    if (g.mine >= 0 && st == CTN_OK) st = look_back(&mine, ctx);
    if (g.rank == 0 && st == CTN_OK) st = group_room(&g);
    st = agree(&g, &o, path, st, steps_kept(&mine), steps);
    if (st == CTN_OK && g.mine >= 0) st = give_part(&g, &mine, &o, ctx);
    ctn__newfile_close(&o.file);
    ctn__text_free(&o.text);
    own_free(&mine);
    ctn__free(g.all);
    ctn__free(g.clock);
    return st;
}

/* ---- the extension --------------------------------------------------------------------------- */

typedef struct {
    char *path;
    int64_t steps;
    int ranks;
    bool records;   /* this rank is in the timeline */
    double input_s; /* seconds waited for input before this step */
} extension;

/* Tries to open the file now, so that a bad path is reported here and not after the last step. */
static ctn_status start(void *self, ctn_trainer *tr)
{
    extension *x = self;
    ctn__newfile f = {.fd = -1};
    x->input_s = tr->input_s;
    if (ctn__writes(tr)) {
        ctn_status st = ctn__newfile_open(&f, x->path);
        ctn__newfile_close(&f);
        CTN_TRY(st);
    }
    return x->records ? ctn_dist_timeline_begin(tr->ctx) : CTN_OK;
}

/* Runs before all other extensions, right after the wait for the next batch. If a step has several
 * batches, their waits are drawn as one. */
static ctn_status call(void *self, ctn_trainer *tr)
{
    extension *x = self;
    const uint64_t now = ctn__now_ns(), ns = (uint64_t)((tr->input_s - x->input_s) * 1e9);
    /* the name that Horovod's timeline uses */
    if (x->records)
        ctn__trace_span(tr->ctx->trace, "WAIT_FOR_DATA", now - ns, now, CTN__LANE_INPUT);
    x->input_s = tr->input_s;
    return CTN_OK;
}

static ctn_status finish(void *self, ctn_trainer *tr)
{
    const extension *x = self;
    if (tr->status < 0) return CTN_OK; /* other ranks may not get here */
    return ctn_dist_timeline_write(tr->ctx, ctn__trainer_comm(tr), x->path, x->steps, x->ranks);
}

static void release(void *self)
{
    extension *x = self;
    ctn__free(x->path);
    ctn__free(x);
}

ctn_status ctn_extend_timeline(ctn_trainer *tr, const char *path, int64_t steps, int ranks)
{
    if (!tr || !path || steps < 1 || ranks < 0)
        return ctn_fail(CTN_EARG, "extend_timeline: needs a trainer, a path and at least one step, "
                                  "and the number of ranks must not be negative");
    const bool records = group_of(ctn__trainer_comm(tr), ranks).mine >= 0;
    if (records) CTN_TRY(check(tr->ctx, "extend_timeline"));
    extension *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    x->steps = steps;
    x->ranks = ranks;
    x->records = records;
    if (!(x->path = ctn__strdup(path))) {
        release(x);
        return CTN_ENOMEM;
    }
    return ctn__extend(tr,
                       &(ctn_extension){.name = "timeline",
                                        .priority = 2 * CTN_PRIORITY_EVALUATE,
                                        .start = start,
                                        .call = call,
                                        .finish = finish,
                                        .release = release,
                                        .self = x},
                       NULL, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1});
}
