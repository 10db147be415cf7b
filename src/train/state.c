/* SPDX-License-Identifier: Apache-2.0
 *
 * Save and resume. A state is a checkpoint (io/checkpoint) of these parts:
 *   arrays          of the net, optimizer, context, loader and extensions
 *   trainer.txt     counters, values, triggers, and the setup of the training
 *   decisions.txt   the kernels in use
 * Loading reads and checks all of it before it changes anything.
 *
 * On several ranks the state is rank 0's, except for what the optimizer has divided among the
 * ranks; the other ranks derive theirs from it and from their rank. A state can be loaded on a
 * different number of ranks as long as the number of samples per step stays the same, because the
 * saved position counts the samples of all ranks together (data/sampler.c).
 */
#include "train/train.h"

#include "comm/comm.h"
#include "data/loader.h"
#include "io/checkpoint/checkpoint.h"
#include "optim/optim.h"
#include "plan/plan.h"

#define MAGIC "catena-trainer 2"

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The loader's position before it delivered the batch that the trainer holds, not its current
 * one. Loading only records it; ctn__group_resume moves the loader there. */
static ctn_status visit_loader(void *object, ctn_state_fn fn, void *user)
{
    ctn_trainer *tr = object;
    ctn_sampler_state *s = &tr->restored;
    *s = ctn__trainer_position(tr);
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
    l->at = ctn__calloc(4 + tr->others.n + tr->ext.n, sizeof *l->at);
    if (!l->at) return CTN_ENOMEM;
    l->at[l->n++] = ctn_part_module("net", tr->o.net);
    l->at[l->n++] = ctn_part_optim("optim", tr->optim);
    l->at[l->n++] = ctn_part_context("context", tr->ctx);
    l->at[l->n++] = (ctn_state_part){"loader", visit_loader, tr};
    for (size_t i = 0; i < tr->others.n; i++) {
        const char *prefix = ctn__arena_printf(&l->names, "optim[%s]", tr->others.at[i].name);
        if (!prefix) return CTN_ENOMEM;
        l->at[l->n++] = ctn_part_optim(prefix, tr->others.at[i].optim);
    }
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
    const long long batch = (long long)l->step;
    if (ctn__group_apart(tr)) ctn__text_add(t, "samples of its own for each rank");
    else ctn__text_add(t, "%lld samples", (long long)l->sampler.total);
    ctn__text_add(t, " in steps of %lld", batch * (long long)tr->o.accumulate);
    if (l->drop_last) ctn__text_add(t, ", of which smaller batches than %lld are left out", batch);
    for (int i = 0; i < l->nsizes; i++)
        ctn__text_add(t, "%s%lld", i ? "," : ", images of size ", (long long)l->sizes[i]);
    if (l->nsizes > 0) ctn__text_add(t, " for %lld batches each", (long long)l->size_every);
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
    return ctn_fail(CTN_EFORMAT, "trainer_load: cannot parse a line of " CTN__STATE_TRAINER ": %s",
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
    const long long most = 1ll << 53; /* a training that goes on from here must not overflow */
    long long iteration, epoch, samples;
    if (sscanf(rest, "%lld %lld %lld", &iteration, &epoch, &samples) != 3 || iteration < 0 ||
        epoch < 0 || samples < 0 || iteration > most || epoch > most || samples > most)
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

ctn_status ctn__state_possible(const ctn_trainer *tr, const char *who)
{
    if (!tr->o.net)
        return ctn_fail(CTN_ESTATE,
                        "%s: the weights of the net are part of the state, but the trainer has "
                        "no net (set ctn_trainer_opt.net)",
                        who);
    if (tr->ctx->level > 0) return ctn_fail(CTN_ESTATE, "%s: a scope is open", who);
    return CTN_OK;
}

static ctn_status check(const ctn_trainer *tr, const char *dir, const char *who)
{
    if (!tr || !dir) return ctn_fail(CTN_EARG, "%s: needs a trainer and a folder", who);
    return ctn__state_possible(tr, who);
}

ctn_status ctn__state_texts(const ctn_trainer *tr, ctn__ckpt_text text[CTN__CKPT_TEXTS])
{
    text[0].name = CTN__STATE_TRAINER;
    text[1].name = CTN__STATE_DECISIONS;
    write_trainer(tr, &text[0].text);
    CTN_TRY(ctn__decisions_text(tr->ctx, &text[1].text));
    return text[0].text.failed || text[1].text.failed ? CTN_ENOMEM : CTN_OK;
}

ctn_status ctn__state_begin(ctn_trainer *tr, ctn__saver *s)
{
    part_list parts = {0};
    ctn__ckpt_text text[CTN__CKPT_TEXTS] = {{0}};
    const int n = ctn__writes(tr) ? CTN__CKPT_TEXTS : 0; /* rank 0 has the texts */
    CTN_TRY(ctn__trainer_values(tr));
    CTN_TRY(ctn__group_values(tr));
    ctn_status st = make_parts(&parts, tr);
    if (st == CTN_OK && n > 0) st = ctn__state_texts(tr, text);
    st = ctn__comm_root_status(ctn__trainer_comm(tr), st);
    if (st == CTN_OK) st = ctn__saver_begin(s, parts.n, parts.at, n, text);
    else
        for (int i = 0; i < CTN__CKPT_TEXTS; i++) ctn__text_free(&text[i].text);
    free_parts(&parts);
    return st;
}

ctn_status ctn__state_copy(ctn_trainer *tr, ctn__snapshot *s)
{
    part_list parts = {0};
    CTN_TRY(ctn__trainer_values(tr));
    CTN_TRY(ctn__group_values(tr));
    ctn_status st = make_parts(&parts, tr);
    if (st == CTN_OK)
        st = ctn__snapshot_take(s, ctn__trainer_comm(tr), CTN__SNAPSHOT_OWN, true, parts.n,
                                parts.at);
    free_parts(&parts);
    return st;
}

ctn_status ctn__state_check(ctn_trainer *tr, ctn__saver *s)
{
    part_list parts = {0};
    ctn_status st = make_parts(&parts, tr);
    if (st == CTN_OK) st = ctn__saver_check(s, parts.n, parts.at);
    free_parts(&parts);
    return st;
}

ctn_status ctn__state_finish(ctn__saver *s)
{
    if (ctn__saver_busy(s)) CTN_TRY(ctn__saver_vote(s));
    return ctn__saver_wait(s);
}

ctn_status ctn_trainer_save(ctn_trainer *tr, const char *dir)
{
    ctn__saver *s = NULL;
    CTN_TRY(check(tr, dir, "trainer_save"));
    CTN_TRY(ctn__saver_new(&s, ctn__trainer_comm(tr), dir, CTN__STATES_KEPT));
    ctn_status st = ctn__state_begin(tr, s);
    if (st == CTN_OK) st = ctn__state_finish(s);
    ctn__saver_free(s);
    return st;
}

/* The texts of a state, and the seeds of this rank before loading, then those of rank 0. */
typedef struct {
    char *trainer, *decisions;
    uint64_t seed[2]; /* of the context and the sampler */
} found;

static ctn_status read_texts(ctn_trainer *tr, const ctn__state_source *from, found *s)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    CTN_TRY(from->text(from->self, CTN__STATE_TRAINER, &s->trainer));
    CTN_TRY(from->text(from->self, CTN__STATE_DECISIONS, &s->decisions));
    CTN_TRY(ctn__comm_root_status(c, read_trainer(tr, s->trainer, false)));
    return c ? ctn_comm_broadcast(c, s->seed, sizeof s->seed, 0) : CTN_OK;
}

/* The epoch of a state decides which parameters the optimizer has state for (unfreeze.c). */
static ctn_status prepare_frozen(ctn_trainer *tr, const char *text)
{
    long long iteration, epoch;
    const char *at = strstr(text, "\ncount\t");
    if (!at || sscanf(at, "\ncount\t%lld %lld", &iteration, &epoch) != 2) return malformed("count");
    return ctn__unfreeze_at(tr, epoch);
}

/* Everything has been checked. */
static ctn_status apply(ctn_trainer *tr, const found *s, const char *where)
{
    ctn__values_forget(tr);
    CTN_TRY(read_trainer(tr, s->trainer, true));
    ctn_status st = ctn__decisions_replace(tr->ctx, s->decisions);
    CTN_TRY(st);
    if (st == CTN_END)
        ctn__warn("the state in %s was saved on another machine, with another version, or with "
                  "another thread count: the training continues, but results will not be "
                  "bitwise identical",
                  where);
    tr->resumed = true;
    return CTN_OK;
}

ctn_status ctn__state_restore(ctn_trainer *tr, const ctn__state_source *from)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    part_list parts = {0};
    ctn_context_state now;
    ctn_context_get_state(tr->ctx, &now);
    const uint64_t own[2] = {now.seed, ctn_loader_get_state(tr->loader).seed};
    found s = {.seed = {own[0], own[1]}};
    ctn_status st = read_texts(tr, from, &s);
    const uint64_t *first = s.seed; /* rank 0's after read_texts */
    if (st == CTN_OK) st = ctn__comm_alone(c, prepare_frozen(tr, s.trainer));
    if (st == CTN_OK) st = ctn__comm_alone(c, make_parts(&parts, tr));
    if (st == CTN_OK) st = from->load(from->self, parts.n, parts.at);
    if (st < 0) (void)ctn__unfreeze_at(tr, tr->epoch);
    if (st == CTN_OK) st = ctn__comm_alone(c, apply(tr, &s, from->where));
    if (st == CTN_OK)
        st = ctn__comm_alone(c, ctn__group_resume(tr, (uint64_t[]){own[0] - first[0],
                                                                   own[1] - first[1]}));
    free_parts(&parts);
    ctn__free(s.trainer);
    ctn__free(s.decisions);
    return st;
}

static ctn_status text_of(void *self, const char *file, char **text)
{
    return ctn__ckpt_read(self, file, text);
}

static ctn_status load_parts(void *self, int n, const ctn_state_part *parts)
{
    return ctn__ckpt_load(self, n, parts);
}

ctn_status ctn_trainer_load(ctn_trainer *tr, const char *dir)
{
    CTN_TRY(check(tr, dir, "trainer_load"));
    if (tr->running)
        return ctn_fail(CTN_ESTATE, "trainer_load: cannot load while the trainer is running");
    ctn__ckpt *k = NULL;
    ctn_status st = ctn__ckpt_open(&k, ctn__trainer_comm(tr), dir);
    if (st == CTN_OK) st = ctn__group_agree(tr, false);
    if (st == CTN_OK)
        st = ctn__state_restore(tr, &(ctn__state_source){text_of, load_parts, k, dir});
    ctn__ckpt_close(k);
    return st;
}
