/* SPDX-License-Identifier: Apache-2.0
 *
 * Save and resume. A state is a folder (numbered.c) with these files:
 *   state.safetensors   arrays of the net, optimizer, context, loader and extensions
 *   trainer.txt         counters, values, triggers, and the setup of the training
 *   decisions.txt       the kernels in use
 * Loading reads and checks all of it before it changes anything.
 *
 * On several ranks, only rank 0 writes and reads the state; the other ranks derive theirs from
 * it and from their rank. A state can be loaded on a different number of ranks as long as the
 * number of samples per step stays the same, because the saved position counts the samples of
 * all ranks together (data/sampler.c).
 */
#include "train/train.h"

#include "comm/comm.h"
#include "data/loader.h"
#include "io/state.h"
#include "optim/optim.h"
#include "plan/plan.h"

#define ARRAYS "state.safetensors"
#define TRAINER "trainer.txt"
#define DECISIONS "decisions.txt"
#define MAGIC "catena-trainer 2"

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The loader's position before it delivered the batch that the trainer holds, not its current
 * one. Loading only records it; ctn__group_resume moves the loader there. */
static ctn_status visit_loader(void *object, ctn_state_fn fn, void *user)
{
    ctn_trainer *tr = object;
    ctn_sampler_state *s = &tr->restored;
    *s = tr->held ? tr->at : ctn_loader_get_state(tr->loader);
    CTN_TRY(fn(user, "seed", CTN_I64, 0, NULL, &s->seed));
    CTN_TRY(fn(user, "epoch", CTN_I64, 0, NULL, &s->epoch));
    return fn(user, "position", CTN_I64, 0, NULL, &s->position);
}

typedef struct {
    ctn_state_part *at;
    int n;
    ctn__arena names;
} part_list;

static ctn_status make_parts(part_list *l, ctn_trainer *tr)
{
    l->at = ctn__calloc(4 + tr->ext.n, sizeof *l->at);
    if (!l->at) return CTN_ENOMEM;
    l->at[l->n++] = ctn_part_module("net", tr->o.net);
    l->at[l->n++] = ctn_part_optim("optim", tr->optim);
    l->at[l->n++] = ctn_part_context("context", tr->ctx);
    l->at[l->n++] = (ctn_state_part){"loader", visit_loader, tr};
    for (size_t i = 0; i < tr->ext.n; i++) {
        const ctn_extension *e = &tr->ext.at[i]->e;
        if (!e->visit || !e->self) continue;
        const char *prefix = ctn__arena_printf(&l->names, "extension[%s]", e->name);
        if (!prefix) return CTN_ENOMEM;
        l->at[l->n++] = (ctn_state_part){prefix, e->visit, e->self};
    }
    return CTN_OK;
}

static void free_parts(part_list *l)
{
    ctn__free(l->at);
    ctn__arena_free(&l->names);
}

/* ---- trainer.txt ----------------------------------------------------------------------------- */

static ctn__saved_by saved_by(const ctn_trainer *tr)
{
    const ctn_comm *c = ctn__trainer_comm(tr);
    return (ctn__saved_by){c ? ctn_comm_size(c) : 1, tr->loader->sampler.size, ctn__group_used(tr)};
}

/* What must not change for the state to be valid. A step is a step of all ranks together. The
 * text is stored in the file and compared when the state is loaded. */
static void add_setup(const ctn_trainer *tr, ctn__text *t)
{
    const ctn_loader *l = tr->loader;
    const long long batch = (long long)l->batch * l->sampler.size;
    if (ctn__group_apart(tr)) ctn__text_add(t, "samples of its own for each rank");
    else ctn__text_add(t, "%lld samples", (long long)l->sampler.total);
    ctn__text_add(t, " in steps of %lld", batch * (long long)tr->o.accumulate);
    if (l->drop_last) ctn__text_add(t, ", of which smaller batches than %lld are left out", batch);
}

static void write_trainer(const ctn_trainer *tr, ctn__text *t)
{
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    const ctn__saved_by by = saved_by(tr);
    ctn__text_add(t, MAGIC "\nranks\t%lld %lld %lld\nsetup\t", (long long)by.ranks,
                  (long long)by.parts, (long long)by.batches);
    add_setup(tr, t);
    ctn__text_add(t, "\ncount\t%lld %lld %lld\n", (long long)tr->iteration, (long long)tr->epoch,
                  (long long)tr->samples);
    ctn__text_add(t, "seconds\t%.6f %.6f %.6f %.6f\n", p.seconds, p.compute_s, p.input_s,
                  p.other_s);
    for (size_t i = 0; i < tr->values.n; i++) {
        const ctn__observed *v = &tr->values.at[i];
        ctn__text_add(t, "value\t%s\t%a %a %a %a %lld %d %d\n", v->name, v->value, v->sum,
                      v->weight, v->last, (long long)v->count, v->fresh, v->reported);
    }
    for (size_t i = 0; i < tr->ext.n; i++) {
        const ctn__extended *x = tr->ext.at[i];
        ctn__text_add(t, "extension\t%s\t%d %a %lld %d\n", x->e.name,
                      x->e.visit != NULL && x->e.self, x->trigger.best, (long long)x->trigger.seen,
                      x->trigger.has_best);
    }
}

static ctn__extended *find_extension(const ctn_trainer *tr, const char *name)
{
    for (size_t i = 0; i < tr->ext.n; i++)
        if (strcmp(tr->ext.at[i]->e.name, name) == 0) return tr->ext.at[i];
    return NULL;
}

static ctn_status malformed(const char *line)
{
    return ctn_fail(CTN_EFORMAT, "trainer_load: cannot parse a line of " TRAINER ": %s", line);
}

static ctn_status read_value(ctn_trainer *tr, const char *name, const char *rest, bool apply)
{
    ctn__observed v = {0}, *to;
    long long count;
    int fresh, reported;
    if (sscanf(rest, "%la %la %la %la %lld %d %d", &v.value, &v.sum, &v.weight, &v.last, &count,
               &fresh, &reported) != 7)
        return malformed(rest);
    if (!apply) return CTN_OK;
    CTN_TRY(ctn__value_get(tr, name, &to));
    v.name = to->name;
    v.count = count;
    v.fresh = fresh != 0;
    v.reported = reported != 0;
    if (!ctn__writes(tr)) v.sum = v.weight = 0; /* rank 0 has the sums of all ranks */
    *to = v;
    return CTN_OK;
}

static ctn_status read_extension(ctn_trainer *tr, const char *name, const char *rest, bool apply)
{
    int has_state, has_best;
    double best;
    long long seen;
    if (sscanf(rest, "%d %la %lld %d", &has_state, &best, &seen, &has_best) != 4)
        return malformed(rest);
    ctn__extended *x = find_extension(tr, name);
    if (!x && has_state && !apply)
        return ctn_fail(CTN_ESTATE,
                        "trainer_load: the state was saved with extension %s, which this "
                        "trainer does not have",
                        name);
    if (!x || !apply) return CTN_OK;
    x->trigger.best = best;
    x->trigger.seen = seen;
    x->trigger.has_best = has_best != 0;
    return CTN_OK;
}

/* Where each rank has its own dataset, a position within an epoch is meaningless for another
 * number of ranks. */
static ctn_status read_ranks(ctn_trainer *tr, const char *rest)
{
    long long n[3];
    if (sscanf(rest, "%lld %lld %lld", &n[0], &n[1], &n[2]) != 3 || n[0] < 1 || n[1] < 1 ||
        n[2] < 0)
        return malformed(rest);
    const ctn__saved_by by = {n[0], n[1], n[2]}, here = saved_by(tr);
    tr->loaded = by;
    if ((by.ranks == here.ranks && by.parts == here.parts) || by.batches == 0 ||
        (by.ranks == by.parts && here.ranks == here.parts))
        return CTN_OK;
    return ctn_fail(
        CTN_ESTATE,
        "trainer_load: the state was saved in the middle of an epoch by %lld ranks with "
        "%s; this job has %lld ranks with %s, so the remaining samples cannot be "
        "determined: load it on %lld ranks",
        n[0], by.parts == by.ranks ? "shares of one dataset" : "a dataset per rank",
        (long long)here.ranks,
        here.parts == here.ranks ? "shares of one dataset" : "a dataset per rank", n[0]);
}

static ctn_status read_setup(const ctn_trainer *tr, const char *rest)
{
    ctn__text now = {0};
    add_setup(tr, &now);
    ctn_status st = now.failed ? CTN_ENOMEM : CTN_OK;
    if (st == CTN_OK && strcmp(now.s, rest) != 0)
        st = ctn_fail(
            CTN_ESTATE,
            "trainer_load: the state was saved with %s, by %lld rank%s; this job has %s, "
            "on %lld. The dataset and the number of samples per step (ranks x batch x accumulate) "
            "must be the same",
            rest, (long long)tr->loaded.ranks, tr->loaded.ranks == 1 ? "" : "s", now.s,
            (long long)saved_by(tr).ranks);
    ctn__text_free(&now);
    return st;
}

static ctn_status read_counts(ctn_trainer *tr, const char *rest, bool apply)
{
    long long iteration, epoch, samples;
    if (sscanf(rest, "%lld %lld %lld", &iteration, &epoch, &samples) != 3 || iteration < 0 ||
        epoch < 0 || samples < 0)
        return malformed(rest);
    if (!apply) return CTN_OK;
    tr->iteration = iteration;
    tr->epoch = epoch;
    tr->samples = samples;
    return CTN_OK;
}

static ctn_status read_seconds(ctn_trainer *tr, const char *rest, bool apply)
{
    double s[4];
    if (sscanf(rest, "%lf %lf %lf %lf", &s[0], &s[1], &s[2], &s[3]) != 4) return malformed(rest);
    if (!apply) return CTN_OK;
    tr->seconds = s[0];
    tr->ran = 0;
    tr->compute_s = s[1];
    tr->input_s = s[2];
    tr->other_s = s[3];
    return CTN_OK;
}

static ctn_status read_line(ctn_trainer *tr, char *line, bool apply)
{
    char *rest = strchr(line, '\t');
    if (!rest) return malformed(line);
    *rest++ = 0;
    if (strcmp(line, "ranks") == 0) return read_ranks(tr, rest);
    if (strcmp(line, "setup") == 0) return read_setup(tr, rest);
    if (strcmp(line, "count") == 0) return read_counts(tr, rest, apply);
    if (strcmp(line, "seconds") == 0) return read_seconds(tr, rest, apply);
    char *name = rest;
    rest = strchr(name, '\t');
    if (!rest) return malformed(name);
    *rest++ = 0;
    if (strcmp(line, "value") == 0) return read_value(tr, name, rest, apply);
    if (strcmp(line, "extension") == 0) return read_extension(tr, name, rest, apply);
    return malformed(line);
}

/* Called twice: first to check, then to apply. */
static ctn_status read_trainer(ctn_trainer *tr, const char *text, bool apply)
{
    ctn_status st = CTN_OK;
    char *copy = ctn__strdup(text), *line = copy, *end;
    if (!copy) return CTN_ENOMEM;
    for (bool first = true; st == CTN_OK && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        if (!first) st = read_line(tr, line, apply);
        else if (strcmp(line, MAGIC) != 0)
            st = ctn_fail(CTN_EFORMAT,
                          "trainer_load: the state was saved by another version of Catena: found "
                          "%.40s, expected " MAGIC,
                          line);
        first = false;
    }
    ctn__free(copy);
    return st;
}

/* ---- save and load --------------------------------------------------------------------------- */

static ctn_status check(const ctn_trainer *tr, const char *dir, const char *who)
{
    if (!tr || !dir) return ctn_fail(CTN_EARG, "%s: needs a trainer and a folder", who);
    if (!tr->o.net)
        return ctn_fail(CTN_ESTATE,
                        "%s: the weights of the net are part of the state, but the trainer has "
                        "no net (set ctn_trainer_opt.net)",
                        who);
    if (tr->ctx->level > 0) return ctn_fail(CTN_ESTATE, "%s: a scope is open", who);
    return CTN_OK;
}

static ctn_status write_files(ctn_trainer *tr, const char *path)
{
    ctn_status st = CTN_OK;
    ctn__text arrays = {0}, text = {0}, decisions = {0};
    part_list parts = {0};
    ctn__text_add(&arrays, "%s/" ARRAYS, path);
    if (arrays.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, make_parts(&parts, tr));
    CTN_TRY_GOTO(st, done, ctn_state_save(arrays.s, parts.n, parts.at));
    write_trainer(tr, &text);
    CTN_TRY_GOTO(st, done, ctn__numbered_write(path, TRAINER, &text));
    CTN_TRY_GOTO(st, done, ctn__decisions_text(tr->ctx, &decisions));
    CTN_TRY_GOTO(st, done, ctn__numbered_write(path, DECISIONS, &decisions));
done:
    free_parts(&parts);
    ctn__text_free(&arrays);
    ctn__text_free(&text);
    ctn__text_free(&decisions);
    return st;
}

static ctn_status nothing(void *user, const char *name, ctn_dtype type, int ndim,
                          const int64_t *dim, void *data)
{
    (void)user, (void)name, (void)type, (void)ndim, (void)dim, (void)data;
    return CTN_OK;
}

/* Sends this rank's part of sharded state to rank 0, which writes it. */
static ctn_status take_part(ctn_trainer *tr)
{
    return ctn_optim_visit(tr->optim, nothing, NULL);
}

ctn_status ctn_trainer_save(ctn_trainer *tr, const char *dir)
{
    ctn_status st = CTN_OK;
    ctn__text path = {0};
    CTN_TRY(check(tr, dir, "trainer_save"));
    CTN_TRY(ctn__shard_values(tr->optim));
    CTN_TRY(ctn__group_values(tr));
    if (!ctn__writes(tr)) return take_part(tr);
    CTN_TRY_GOTO(st, done, ctn__numbered_begin(&path, dir));
    CTN_TRY_GOTO(st, done, write_files(tr, path.s));
    CTN_TRY_GOTO(st, done, ctn__numbered_commit(path.s, dir));
done:
    if (st < 0) ctn__numbered_drop(path.s);
    ctn__text_free(&path);
    return st;
}

static void forget_values(ctn_trainer *tr)
{
    for (size_t i = 0; i < tr->values.n; i++) ctn__free(tr->values.at[i].name);
    tr->values.n = 0;
}

/* The parts of a state besides its arrays, which rank 0 reads for all ranks. */
typedef struct {
    ctn__text path;
    char *trainer, *decisions;
    uint64_t seed[2]; /* of the context and the sampler before loading */
} source;

static void free_source(source *s)
{
    ctn__text_free(&s->path);
    ctn__free(s->trainer);
    ctn__free(s->decisions);
}

static ctn_status open_newest(ctn_trainer *tr, const char *dir, source *s)
{
    size_t n;
    CTN_TRY(ctn__numbered_latest(&s->path, dir));
    CTN_TRY(ctn__numbered_read(s->path.s, TRAINER, &s->trainer, &n));
    CTN_TRY(ctn__numbered_read(s->path.s, DECISIONS, &s->decisions, &n));
    CTN_TRY(read_trainer(tr, s->trainer, false));
    ctn__text_add(&s->path, "/" ARRAYS);
    return s->path.failed ? CTN_ENOMEM : CTN_OK;
}

/* For failures that only this rank has seen: without this, the other ranks would wait for it. */
static ctn_status alone(ctn_comm *c, ctn_status st)
{
    if (st < 0 && c) ctn_comm_break(c, ctn_error_message());
    return st;
}

/* Broadcasts rank 0's text. */
static ctn_status share_text(ctn_comm *c, char **text)
{
    uint64_t n = *text ? strlen(*text) : 0;
    CTN_TRY(ctn_comm_broadcast(c, &n, sizeof n, 0));
    if (!*text) *text = ctn__calloc((size_t)n + 1, 1);
    return *text ? ctn_comm_broadcast(c, *text, (size_t)n, 0) : alone(c, CTN_ENOMEM);
}

static ctn_status share(ctn_comm *c, source *s)
{
    if (!c) return CTN_OK;
    CTN_TRY(share_text(c, &s->trainer));
    CTN_TRY(share_text(c, &s->decisions));
    return ctn_comm_broadcast(c, s->seed, sizeof s->seed, 0);
}

/* Everything has been checked. */
static ctn_status apply(ctn_trainer *tr, const source *s, const char *dir)
{
    forget_values(tr);
    CTN_TRY(read_trainer(tr, s->trainer, true));
    ctn_status st = ctn__decisions_replace(tr->ctx, s->decisions);
    CTN_TRY(st);
    if (st == CTN_END)
        ctn__warn("the state in %s was saved on another machine, with another version, or with "
                  "another thread count: the training continues, but results will not be "
                  "bitwise identical",
                  dir);
    tr->resumed = true;
    return CTN_OK;
}

static ctn_status load(ctn_trainer *tr, const char *dir, source *s)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    part_list parts = {0};
    const uint64_t own[2] = {s->seed[0], s->seed[1]};
    ctn_status st = share(c, s);
    const uint64_t *first = s->seed; /* rank 0's seeds after share() */
    if (st == CTN_OK) st = alone(c, make_parts(&parts, tr));
    if (st == CTN_OK) st = ctn__state_load(c, s->path.s, parts.n, parts.at);
    if (st == CTN_OK) st = alone(c, apply(tr, s, dir));
    if (st == CTN_OK)
        st = alone(c, ctn__group_resume(tr, (uint64_t[]){own[0] - first[0], own[1] - first[1]}));
    free_parts(&parts);
    return st;
}

ctn_status ctn_trainer_load(ctn_trainer *tr, const char *dir)
{
    CTN_TRY(check(tr, dir, "trainer_load"));
    if (tr->running)
        return ctn_fail(CTN_ESTATE, "trainer_load: cannot load while the trainer is running");
    ctn_comm *c = ctn__trainer_comm(tr);
    ctn_context_state now;
    ctn_context_get_state(tr->ctx, &now);
    source s = {.seed = {now.seed, ctn_loader_get_state(tr->loader).seed}};
    ctn_status st = ctn__writes(tr) ? open_newest(tr, dir, &s) : CTN_OK;
    st = ctn__comm_root_status(c, st);
    if (st == CTN_OK) st = ctn__group_agree(tr, false);
    if (st == CTN_OK) st = load(tr, dir, &s);
    free_source(&s);
    return st;
}

/* ---- the extension --------------------------------------------------------------------------- */

typedef struct {
    ctn__text dir;
} saver;

static ctn_status call(void *self, ctn_trainer *tr)
{
    const saver *s = self;
    CTN_TRY(ctn_trainer_save(tr, s->dir.s));
    tr->saved = tr->iteration;
    return CTN_OK;
}

static ctn_status finish(void *self, ctn_trainer *tr)
{
    return tr->status < 0 || tr->saved == tr->iteration ? CTN_OK : call(self, tr);
}

static void release(void *self)
{
    saver *s = self;
    ctn__text_free(&s->dir);
    ctn__free(s);
}

ctn_status ctn_extend_state(ctn_trainer *tr, const ctn_trigger *when)
{
    CTN_TRY(ctn__need_out(tr, "extend_state"));
    CTN_TRY(check(tr, tr->o.out, "extend_state"));
    saver *s = ctn__calloc(1, sizeof *s);
    if (!s) return CTN_ENOMEM;
    ctn__text_add(&s->dir, "%s/state", tr->o.out);
    if (s->dir.failed) {
        release(s);
        return CTN_ENOMEM;
    }
    /* Runs after all other extensions, so that a resumed training repeats and misses nothing. */
    return ctn__extend(tr,
                       &(ctn_extension){.name = "state",
                                        .priority = 0,
                                        .call = call,
                                        .finish = finish,
                                        .release = release,
                                        .self = s},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
