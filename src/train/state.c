/* SPDX-License-Identifier: Apache-2.0
 *
 * Save and resume. A state is a folder (numbered.c) of
 *   state.safetensors   arrays: net, optimizer, context, loader, extensions
 *   trainer.txt         counters, values, triggers, and what the training was made of
 *   decisions.txt       which kernels are in use
 * Loading reads and checks all of it before it changes anything.
 */
#include "train/train.h"

#include "data/loader.h"
#include "optim/optim.h"
#include "plan/plan.h"

#define ARRAYS "state.safetensors"
#define TRAINER "trainer.txt"
#define DECISIONS "decisions.txt"
#define MAGIC "catena-trainer 1"

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Where the batch that the trainer holds came from, not where the loader is by now. */
static ctn_status visit_loader(void *object, ctn_state_fn fn, void *user)
{
    ctn_trainer *tr = object;
    const ctn_sampler_state was = tr->held ? tr->at : ctn_loader_state_get(tr->loader);
    ctn_sampler_state s = was;
    CTN_TRY(fn(user, "seed", CTN_I64, 0, NULL, &s.seed));
    CTN_TRY(fn(user, "epoch", CTN_I64, 0, NULL, &s.epoch));
    CTN_TRY(fn(user, "position", CTN_I64, 0, NULL, &s.position));
    if (s.seed == was.seed && s.epoch == was.epoch && s.position == was.position) return CTN_OK;
    return ctn_loader_state_set(tr->loader, &s);
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

/* What must be the same for the state to mean the same. */
static void add_setup(const ctn_trainer *tr, ctn__text *t)
{
    ctn__text_add(t, "%lld samples in batches of %lld%s, %lld batches to a step",
                  (long long)tr->loader->sampler.total, (long long)tr->loader->batch,
                  tr->loader->drop_last ? " without the last smaller one" : "",
                  (long long)tr->o.accumulate);
}

static void write_trainer(const ctn_trainer *tr, ctn__text *t)
{
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    ctn__text_add(t, MAGIC "\nsetup\t");
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
    return ctn_fail(CTN_EFORMAT, "trainer_load: " TRAINER " has a line that is not understood: %s",
                    line);
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
    if (!x && has_state)
        return ctn_fail(CTN_ESTATE,
                        "trainer_load: the state was saved with the extension %s, which this "
                        "trainer does not have",
                        name);
    if (!x || !apply) return CTN_OK;
    x->trigger.best = best;
    x->trigger.seen = seen;
    x->trigger.has_best = has_best != 0;
    return CTN_OK;
}

static ctn_status read_setup(const ctn_trainer *tr, const char *rest)
{
    ctn__text now = {0};
    add_setup(tr, &now);
    ctn_status st = now.failed ? CTN_ENOMEM : CTN_OK;
    if (st == CTN_OK && strcmp(now.s, rest) != 0)
        st = ctn_fail(CTN_ESTATE, "trainer_load: the state was saved with %s; here there are %s",
                      rest, now.s);
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

/* Twice: to check, and to apply. */
static ctn_status read_trainer(ctn_trainer *tr, const char *text, bool apply)
{
    ctn_status st = CTN_OK;
    char *copy = ctn__strdup(text), *line = copy, *end;
    if (!copy) return CTN_ENOMEM;
    for (bool first = true; st == CTN_OK && (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = 0;
        if (!first) st = read_line(tr, line, apply);
        else if (strcmp(line, MAGIC) != 0) st = malformed(line);
        first = false;
    }
    ctn__free(copy);
    return st;
}

/* ---- save and load --------------------------------------------------------------------------- */

static ctn_status check(const ctn_trainer *tr, const char *dir, const char *who)
{
    if (!tr || !dir) return ctn_fail(CTN_EARG, "%s: trainer and folder are needed", who);
    if (!tr->o.net)
        return ctn_fail(CTN_ESTATE,
                        "%s: the trainer was made without a net (ctn_trainer_opt.net), "
                        "whose weights are part of a state",
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

/* Rank 0 writes; what is spread over the ranks is brought there. */
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

/* From a folder whose files are whole. */
static ctn_status load(ctn_trainer *tr, const char *path)
{
    ctn_status st = CTN_OK;
    ctn__text arrays = {0};
    char *text = NULL, *decisions = NULL;
    size_t n;
    part_list parts = {0};
    ctn__text_add(&arrays, "%s/" ARRAYS, path);
    if (arrays.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__numbered_read(path, TRAINER, &text, &n));
    CTN_TRY_GOTO(st, done, ctn__numbered_read(path, DECISIONS, &decisions, &n));
    CTN_TRY_GOTO(st, done, read_trainer(tr, text, false));
    CTN_TRY_GOTO(st, done, make_parts(&parts, tr));
    CTN_TRY_GOTO(st, done, ctn_state_load(arrays.s, parts.n, parts.at));
    forget_values(tr);
    CTN_TRY_GOTO(st, done, read_trainer(tr, text, true));
    CTN_TRY_GOTO(st, done, ctn__decisions_replace(tr->ctx, decisions));
    if (st == CTN_END)
        ctn__warn("%s was saved on another machine, with another version or number of threads; the "
                  "training goes on, but not bit by bit",
                  path);
    st = CTN_OK;
    tr->resumed = true;
done:
    free_parts(&parts);
    ctn__text_free(&arrays);
    ctn__free(text);
    ctn__free(decisions);
    return st;
}

ctn_status ctn_trainer_load(ctn_trainer *tr, const char *dir)
{
    ctn__text path = {0};
    CTN_TRY(check(tr, dir, "trainer_load"));
    if (tr->running) return ctn_fail(CTN_ESTATE, "trainer_load: the trainer runs");
    ctn_status st = ctn__numbered_latest(&path, dir);
    if (st == CTN_OK) st = load(tr, path.s);
    if (st == CTN_OK) st = ctn__group_resume(tr);
    ctn__text_free(&path);
    return st;
}

/* ---- the extension --------------------------------------------------------------------------- */

typedef struct {
    ctn__text dir;
    int64_t saved; /* iteration, -1: none */
} saver;

static ctn_status call(void *self, ctn_trainer *tr)
{
    saver *s = self;
    CTN_TRY(ctn_trainer_save(tr, s->dir.s));
    s->saved = tr->iteration;
    return CTN_OK;
}

static ctn_status finish(void *self, ctn_trainer *tr)
{
    const saver *s = self;
    return tr->status < 0 || s->saved == tr->iteration ? CTN_OK : call(self, tr);
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
    s->saved = -1;
    ctn__text_add(&s->dir, "%s/state", tr->o.out);
    if (s->dir.failed) {
        release(s);
        return CTN_ENOMEM;
    }
    /* Behind everything else, so that a resumed training does nothing twice or never. */
    return ctn__extend(tr,
                       &(ctn_extension){.name = "state",
                                        .priority = 0,
                                        .call = call,
                                        .finish = finish,
                                        .release = release,
                                        .self = s},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
