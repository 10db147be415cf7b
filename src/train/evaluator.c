/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluation: the means, over a loader, of what a loss function reports. Values are weighted by
 * the number of samples in their batch, so a smaller last batch counts less. Metrics of all samples
 * together (metrics.c) are not averaged: their parts are added up or collected. Each evaluation
 * reads the loader from the beginning and in the same order.
 */
#include "data/loader.h"
#include "train/train.h"

typedef struct {
    ctn_step step;
    ctn__weighted value[CTN__REPORTS + 1]; /* the step owns the names */
    int n;
    ctn__measured metric[CTN__REPORTS + 1];
    int metrics;
    uint64_t number; /* of the step that this evaluation is */
} evaluation;

static ctn_status add_value(void *user, const char *name, double value, double weight)
{
    evaluation *e = user;
    int i = 0;
    while (i < e->n && strcmp(e->value[i].name, name) != 0) i++;
    if (i == e->n) e->value[e->n++] = (ctn__weighted){.name = name};
    e->value[i].sum += value * weight;
    e->value[i].weight += weight;
    return CTN_OK;
}

/* Sums begin with zeros; what is collected is appended. */
static ctn_status add_parts(ctn__measured *v, const double *part, size_t n)
{
    const size_t begin = v->metric->all ? v->part.n : 0, end = begin + n;
    if (v->part.n < end) {
        if (!ctn__vec_reserve(&v->part, end)) return CTN_ENOMEM;
        memset(v->part.at + v->part.n, 0, (end - v->part.n) * sizeof *part);
        v->part.n = end;
    }
    for (size_t i = 0; i < n; i++) v->part.at[begin + i] += part[i];
    return CTN_OK;
}

static ctn_status add_metrics(evaluation *e)
{
    for (int k = 0; k < e->step.n; k++) {
        const ctn__report_slot *s = &e->step.slot[k];
        int i = 0;
        if (!s->given || !s->metric || s->kept->current < 0) continue;
        while (i < e->metrics && strcmp(e->metric[i].name, s->name) != 0) i++;
        if (i == e->metrics) e->metric[e->metrics++] = (ctn__measured){s->name, s->metric, {0}};
        CTN_TRY(add_parts(&e->metric[i], s->kept->buf[s->kept->current],
                          (size_t)ctn__count(&s->kept->d)));
    }
    return CTN_OK;
}

static ctn_status run_batch(evaluation *e, const ctn_batch *b, ctn_loss_fn loss, void *self)
{
    ctn_status st = CTN_OK;
    ctn__step_begin(&e->step, b);
    CTN_TRY(ctn_scope_begin(e->step.ctx));
    ctn__step_loss(&e->step, "loss", loss, self, &st);
    while (e->step.ctx->level > 1) ctn_scope_end(e->step.ctx);
    ctn_status end = ctn_scope_end(e->step.ctx);
    CTN_TRY(st < 0 ? st : end);
    CTN_TRY(ctn__step_read(&e->step, add_value, e));
    return add_metrics(e);
}

static ctn_status rewind_loader(ctn_loader *l)
{
    ctn_sampler_state now = ctn_loader_get_state(l), first = {.seed = now.seed};
    if (now.epoch == 0 && now.position == 0) return CTN_OK; /* keep what is prefetched */
    return ctn_loader_set_state(l, &first);
}

/* For random numbers, an evaluation is one step, so that they do not depend on how its samples are
 * divided among batches and ranks. */
static void place_batch(evaluation *e, const ctn_loader *l, int64_t rows)
{
    ctn_share s = {.rows = rows, .total = l->sampler.total};
    ctn__loader_place(l, &s.first, &s.every);
    s.part = (uint64_t)s.first;
    e->step.ctx->share = s;
    e->step.ctx->step = e->number;
}

static ctn_status run_loader(evaluation *e, ctn_loader *loader, ctn_loss_fn loss, void *self)
{
    ctn_batch b;
    ctn_status st;
    CTN_TRY(rewind_loader(loader));
    while ((st = ctn_loader_next(loader, &b)) == CTN_OK) {
        if (b.n == 0) continue;
        place_batch(e, loader, b.n);
        CTN_TRY(run_batch(e, &b, loss, self));
    }
    return st < 0 ? st : CTN_OK;
}

static ctn_status run_all(evaluation *e, ctn_loader *loader, ctn_loss_fn loss, void *self)
{
    ctn_context *ctx = e->step.ctx;
    const ctn_share was = ctx->share;
    e->number = ctx->step;
    const ctn_status st = run_loader(e, loader, loss, self);
    ctx->share = was;
    ctx->step = e->number + 1;
    return st;
}

typedef struct {
    ctn_value_fn fn;
    void *user;
} listener;

static ctn_status tell(void *user, const ctn__weighted *v)
{
    const listener *to = user;
    return to->fn(to->user, v->name, v->sum / v->weight);
}

static ctn_status tell_metric(void *user, ctn__measured *v)
{
    const listener *to = user;
    double value = 0;
    CTN_TRY(v->metric->finish(v->metric, (int64_t)v->part.n, v->part.at, &value));
    return to->fn(to->user, v->name, value);
}

static ctn_status tell_all(evaluation *e, listener *to, const ctn__merge *m)
{
    if (m && m->fn) {
        CTN_TRY(m->fn(m->self, e->n, e->value, tell, to));
        return m->measured(m->self, e->metrics, e->metric, tell_metric, to);
    }
    for (int i = 0; i < e->n; i++) CTN_TRY(tell(to, &e->value[i]));
    for (int i = 0; i < e->metrics; i++) CTN_TRY(tell_metric(to, &e->metric[i]));
    return CTN_OK;
}

ctn_status ctn__evaluate(ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss, void *self,
                         ctn_value_fn fn, void *user, const ctn__merge *m)
{
    if (!ctx || !loader || !loss || !fn)
        return ctn_fail(CTN_EARG, "evaluate: needs a context, a loader, a loss and a function");
    if (ctx->level > 0) return ctn_fail(CTN_ESTATE, "evaluate: a scope is open");
    evaluation *e = ctn__calloc(1, sizeof *e);
    if (!e) return CTN_ENOMEM;
    e->step.ctx = ctx;
    const int training = ctn_context_set_training(ctx, 0), grad = ctn_context_set_grad(ctx, 0);
    ctn_status st = run_all(e, loader, loss, self);
    ctn_context_set_training(ctx, training);
    ctn_context_set_grad(ctx, grad);
    listener to = {fn, user};
    if (st == CTN_OK) st = tell_all(e, &to, m);
    for (int i = 0; i < e->metrics; i++) ctn__vec_free(&e->metric[i].part);
    ctn__step_free(&e->step);
    ctn__free(e);
    return st;
}

ctn_status ctn_evaluate(ctn_context *ctx, ctn_loader *loader, ctn_loss_fn loss, void *self,
                        ctn_value_fn fn, void *user)
{
    return ctn__evaluate(ctx, loader, loss, self, fn, user, NULL);
}

/* ---- the extension --------------------------------------------------------------------------- */

typedef struct {
    ctn_loader *loader;
    ctn_loss_fn loss;
    void *self;
} evaluator;

static ctn_status observe(void *user, const char *name, double value)
{
    char full[256];
    snprintf(full, sizeof full, "val/%s", name);
    return ctn_trainer_observe(user, full, value);
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    const evaluator *v = self;
    CTN_TRY(ctn__group_states(tr));
    CTN_TRY(ctn__average_swap(tr));
    ctn_status st = ctn__evaluate(tr->ctx, v->loader, v->loss, v->self, observe, tr, &tr->merge);
    (void)ctn__average_swap(tr); /* cannot fail: nothing is in flight */
    return st;
}

ctn_status ctn_extend_evaluator(ctn_trainer *tr, const ctn_trigger *when, ctn_loader *loader,
                                ctn_loss_fn loss, void *self)
{
    if (!tr || !loader || !loss)
        return ctn_fail(CTN_EARG, "extend_evaluator: needs a trainer, a loader and a loss");
    if (loader == tr->loader)
        return ctn_fail(CTN_EARG, "extend_evaluator: cannot share the trainer's loader; it needs "
                                  "its own");
    evaluator *v = ctn__malloc(sizeof *v);
    if (!v) return CTN_ENOMEM;
    *v = (evaluator){loader, loss, self};
    return ctn__extend(tr,
                       &(ctn_extension){.name = "evaluator",
                                        .priority = CTN_PRIORITY_EVALUATE,
                                        .call = call,
                                        .release = ctn__free,
                                        .self = v},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
