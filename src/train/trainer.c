/* SPDX-License-Identifier: Apache-2.0
 *
 * The training loop: batch, scope, loss, backward, step, values, extensions. The next batch is
 * taken from the loader before the extensions run, so that they know whether an epoch has ended.
 * A saved state therefore holds the loader's position from before that batch was taken.
 *
 * Invariant: between steps, iteration, epoch and samples count what the weights have seen.
 */
#include "train/train.h"

#include <errno.h>
#include <math.h>

#include "data/loader.h"
#include "optim/optim.h"

/* ---- making and freeing ---------------------------------------------------------------------- */

static ctn_status check_options(const ctn_trainer_opt *o)
{
    if (o->epochs < 0 || o->iterations < 0 || !(o->seconds >= 0) || o->accumulate < 0)
        return ctn_fail(CTN_EARG, "trainer: epochs, iterations, seconds and accumulate must not be "
                                  "negative");
    return CTN_OK;
}

/* Only rank 0 uses the result folder; it need not be visible to the other ranks. */
static ctn_status make_out(ctn_trainer *tr, const char *out)
{
    if (!out) return CTN_OK;
    if (!(tr->o.out = ctn__strdup(out))) return CTN_ENOMEM;
    if (!ctn__writes(tr)) return CTN_OK;
    ctn_status st = ctn__make_folder(out, 0777);
    if (st == CTN_EIO)
        return ctn_fail(st, "trainer: cannot create the folder %s: %s", out, strerror(errno));
    return st;
}

ctn_status ctn_trainer_new(ctn_trainer **out, ctn_optim *opt, ctn_loader *loader, ctn_loss_fn loss,
                           void *self, const ctn_trainer_opt *o)
{
    ctn_status st = CTN_OK;
    ctn_trainer_opt options = {0};
    if (!out) return ctn_fail(CTN_EARG, "trainer: no place for the result");
    *out = NULL;
    if (!opt || !loader || !loss)
        return ctn_fail(CTN_EARG, "trainer: needs an optimizer, a loader and a loss function");
    CTN_TRY(ctn__opt("trainer", &options, sizeof options, o));
    CTN_TRY(check_options(&options));
    ctn_trainer *tr = ctn__calloc(1, sizeof *tr);
    if (!tr) return CTN_ENOMEM;
    tr->optim = opt;
    tr->loader = loader;
    tr->loss = loss;
    tr->self = self;
    tr->ctx = tr->step.ctx = opt->ctx;
    tr->o = options;
    tr->o.out = NULL;
    tr->saved = -1;
    tr->losses.mean = NAN;
    if (tr->o.accumulate == 0) tr->o.accumulate = 1;
    atomic_init(&tr->stop, NULL);
    CTN_TRY_GOTO(st, done, make_out(tr, options.out));
    *out = tr;
    tr = NULL;
done:
    ctn_trainer_free(tr);
    return st;
}

ctn_status ctn_trainer_add_optim(ctn_trainer *tr, const char *name, ctn_optim *opt,
                                 ctn_loss_fn loss, void *self)
{
    if (!tr || !name || !opt || !loss)
        return ctn_fail(CTN_EARG, "trainer_add_optim: needs a trainer, a name, an optimizer and a "
                                  "loss function");
    if (tr->running)
        return ctn_fail(CTN_ESTATE, "trainer_add_optim: cannot add %s while the trainer is running",
                        name);
    bool taken = strcmp(name, "loss") == 0 || opt == tr->optim;
    for (size_t i = 0; i < tr->others.n; i++)
        taken |= strcmp(name, tr->others.at[i].name) == 0 || opt == tr->others.at[i].optim;
    if (taken || opt->ctx != tr->ctx)
        return ctn_fail(CTN_EARG,
                        "trainer_add_optim: %s: the name and the optimizer must be new, "
                        "and in the trainer's context",
                        name);
    ctn__other o = {.name = ctn__strdup(name), .optim = opt, .loss = loss, .self = self};
    if (!o.name || !ctn__vec_push(&tr->others, o)) {
        ctn__free(o.name);
        return CTN_ENOMEM;
    }
    return CTN_OK;
}

static void free_extension(ctn__extended *x)
{
    if (x->e.release) x->e.release(x->e.self);
    ctn__free((char *)x->e.name);
    ctn__trigger_free(&x->trigger);
    ctn__free(x);
}

void ctn_trainer_free(ctn_trainer *tr)
{
    if (!tr) return;
    for (size_t i = 0; i < tr->ext.n; i++) free_extension(tr->ext.at[i]);
    for (size_t i = 0; i < tr->rows.n; i++) ctn__free(tr->rows.at[i].at);
    for (size_t i = 0; i < tr->others.n; i++) ctn__free(tr->others.at[i].name);
    ctn__vec_free(&tr->others);
    ctn__vec_free(&tr->ext);
    ctn__values_forget(tr);
    ctn__vec_free(&tr->rows);
    ctn__vec_free(&tr->unsynced);
    ctn__step_free(&tr->step);
    ctn__exact_free(tr);
    ctn__rounds_free(tr);
    ctn__free((char *)tr->o.out);
    ctn__free(tr);
}

/* ---- extensions ------------------------------------------------------------------------------ */

static ctn_status check_extension(const ctn_trainer *tr, const ctn_extension *e)
{
    if (!e->name || !*e->name)
        return ctn_fail(CTN_EARG, "trainer_extend: the extension needs a name");
    for (const char *p = e->name; *p; p++)
        if ((unsigned char)*p <= ' ')
            return ctn_fail(CTN_EARG,
                            "trainer_extend: the name '%s' must not contain white space or "
                            "control characters",
                            e->name);
    if (tr->running)
        return ctn_fail(CTN_ESTATE, "trainer_extend: cannot add %s while the trainer is running",
                        e->name);
    for (size_t i = 0; i < tr->ext.n; i++)
        if (strcmp(tr->ext.at[i]->e.name, e->name) == 0)
            return ctn_fail(CTN_EARG, "trainer_extend: there is already an extension named %s",
                            e->name);
    return CTN_OK;
}

static ctn_status add(ctn_trainer *tr, const ctn_extension *given, const ctn_trigger *when,
                      bool built_in)
{
    ctn_status st = CTN_OK;
    ctn_extension e = {0};
    if (!tr || !given)
        return ctn_fail(CTN_EARG, "trainer_extend: needs a trainer and an extension");
    CTN_TRY(ctn__opt("trainer_extend", &e, sizeof e, given));
    CTN_TRY(check_extension(tr, &e));
    ctn__extended *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    x->built_in = built_in;
    x->e.name = ctn__strdup(e.name);
    if (!x->e.name) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    CTN_TRY_GOTO(st, fail, ctn__trigger_init(&x->trigger, when, e.trigger));
    if (!ctn__vec_push(&tr->ext, x)) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    e.name = x->e.name;
    x->e = e;
    for (size_t i = tr->ext.n - 1; i > 0 && tr->ext.at[i - 1]->e.priority < e.priority; i--) {
        tr->ext.at[i] = tr->ext.at[i - 1];
        tr->ext.at[i - 1] = x;
    }
    return CTN_OK;
fail:
    x->e.release = NULL; /* the caller keeps ownership of self */
    free_extension(x);
    return st;
}

ctn_status ctn_trainer_extend(ctn_trainer *tr, const ctn_extension *e)
{
    return add(tr, e, NULL, false);
}

ctn_status ctn__extend(ctn_trainer *tr, const ctn_extension *e, const ctn_trigger *when,
                       ctn_trigger usual)
{
    ctn_extension full = *e;
    full.struct_size = sizeof full;
    full.trigger = usual;
    ctn_status st = add(tr, &full, when, true);
    if (st < 0 && e->release) e->release(e->self);
    return st;
}

ctn_status ctn__need_out(const ctn_trainer *tr, const char *who)
{
    if (!tr) return ctn_fail(CTN_EARG, "%s: no trainer", who);
    if (tr->o.out) return CTN_OK;
    return ctn_fail(CTN_ESTATE,
                    "%s: it writes files, but the trainer has no result folder "
                    "(set ctn_trainer_opt.out)",
                    who);
}

/* ---- progress -------------------------------------------------------------------------------- */

/* A batch that could not be read counts as not used: other ranks may have read theirs, and the
 * extensions that follow the step must run on all of them or on none. */
ctn_sampler_state ctn__trainer_position(const ctn_trainer *tr)
{
    return tr->held || tr->ahead < 0 ? tr->at : ctn_loader_get_state(tr->loader);
}

double ctn__trainer_epochs(const ctn_trainer *tr)
{
    double all = (double)tr->loader->sampler.total;
    double done = (double)ctn__trainer_position(tr).position;
    if (ctn__group_apart(tr)) { /* ranks differ in samples, but take the same number of batches */
        all = (double)ctn__group_batches(tr);
        done = (double)ctn__group_used(tr);
    }
    return (double)tr->epoch + (all > 0 ? fmin(done / all, 1) : 0);
}

int64_t ctn__trainer_length(const ctn_trainer *tr)
{
    const int64_t k = tr->o.accumulate;
    int64_t n = tr->o.iterations;
    const int64_t by_epochs = tr->o.epochs * ((ctn__group_batches(tr) + k - 1) / k);
    if (by_epochs > 0 && (n == 0 || by_epochs < n)) n = by_epochs;
    return n;
}

double ctn__trainer_clock(const ctn_trainer *tr)
{
    if (tr->running && ctn__trainer_comm(tr)) return ctn__group_clock(tr);
    return tr->running ? (double)(ctn__now_ns() - tr->began) * 1e-9 : tr->ran;
}

double ctn__trainer_total(const ctn_trainer *tr, int64_t iteration, double epochs, double seconds)
{
    double most = -1;
    if (tr->o.iterations > 0) most = fmax(most, (double)iteration / (double)tr->o.iterations);
    if (tr->o.epochs > 0) most = fmax(most, epochs / (double)tr->o.epochs);
    if (tr->o.seconds > 0) most = fmax(most, seconds / tr->o.seconds);
    return fmin(most, 1);
}

void ctn_trainer_progress(const ctn_trainer *tr, ctn_progress *out)
{
    const double epochs = ctn__trainer_epochs(tr), clock = ctn__trainer_clock(tr);
    *out = (ctn_progress){
        .iteration = tr->iteration,
        .epoch = tr->epoch,
        .part = epochs - (double)tr->epoch,
        .total = ctn__trainer_total(tr, tr->iteration, epochs, clock),
        .samples = tr->samples,
        .seconds = tr->seconds + clock,
        .compute_s = tr->compute_s,
        .input_s = tr->input_s,
        .other_s = tr->other_s,
        .epoch_ended = tr->epoch_ended,
        .complete = tr->complete,
        .saved = tr->saved,
        .saves = tr->saves,
        .pause_s = tr->pause,
        .pauses_s = tr->pauses,
        .slowed_s = fmax(tr->slowed, 0),
    };
}

ctn_optim *ctn_trainer_optim(const ctn_trainer *tr)
{
    return tr->optim;
}

ctn_loader *ctn_trainer_loader(const ctn_trainer *tr)
{
    return tr->loader;
}

ctn_module *ctn_trainer_net(const ctn_trainer *tr)
{
    return tr->o.net;
}

const char *ctn_trainer_out(const ctn_trainer *tr)
{
    return tr->o.out;
}

ctn_context *ctn_trainer_context(const ctn_trainer *tr)
{
    return tr->ctx;
}

/* Only an atomic store, because it may be called from a signal handler. */
void ctn_trainer_stop(ctn_trainer *tr, const char *why)
{
    atomic_store(&tr->stop, why);
}

/* A stop request that arrived after the last step did not stop anything. */
const char *ctn_trainer_stopped(const ctn_trainer *tr)
{
    if (tr->complete) return tr->ended;
    const char *why = atomic_load(&((ctn_trainer *)tr)->stop);
    if (!why && tr->agreed) why = "another rank was asked to stop";
    return why ? why : tr->ended;
}

void ctn__trainer_end(ctn_trainer *tr, const char *why)
{
    tr->ended = why;
}

/* ---- input ----------------------------------------------------------------------------------- */

static double since(uint64_t t0)
{
    return (double)(ctn__now_ns() - t0) * 1e-9;
}

/* Take the next batch. CTN_END: the epoch has ended and no batch is held. Batches whose samples
 * were all left out are skipped. */
static ctn_status take(ctn_trainer *tr)
{
    const uint64_t t0 = ctn__now_ns();
    ctn_status st;
    do {
        if (!tr->dry) tr->at = ctn_loader_get_state(tr->loader);
        st = ctn__trainer_comm(tr) ? ctn__group_next(tr) : ctn_loader_next(tr->loader, &tr->batch);
    } while (st == CTN_OK && tr->batch.n == 0 && !ctn__trainer_comm(tr));
    tr->held = st == CTN_OK;
    tr->input_s += since(t0);
    return st;
}

static ctn_status need_batch(ctn_trainer *tr)
{
    if (tr->ahead < 0) {
        ctn_status st = tr->ahead;
        tr->ahead = CTN_OK;
        return st;
    }
    if (tr->held) return CTN_OK;
    ctn_status st = take(tr);
    CTN_TRY(st);
    if (st == CTN_END) /* resumed at the very end of an epoch: start the next one */
        st = take(tr);
    CTN_TRY(st);
    if (st == CTN_END)
        return ctn_fail(CTN_EARG, "trainer: the loader delivered no batch in a whole epoch");
    return CTN_OK;
}

/* Returns the held batch to the loader, so that its next user continues where the training is. */
static ctn_status put_back(ctn_trainer *tr)
{
    if (!tr->held) return CTN_OK;
    tr->in_epoch = ctn__group_used(tr);
    tr->held = tr->dry = false;
    return ctn_loader_set_state(tr->loader, &tr->at);
}

/* ---- one step -------------------------------------------------------------------------------- */

static ctn_status read_value(void *user, const char *name, double value, double weight)
{
    ctn_trainer *tr = user;
    if (ctn__exact(tr)) value = ctn__exact_value(value);
    if (strcmp(name, "loss") == 0) {
        tr->losses.now.sum += value * weight;
        tr->losses.now.weight += weight;
    }
    return ctn__value_report(tr, name, value, weight);
}

/* A step of o after the scopes of its contributions have ended, or one without contributions. */
static ctn_status step_late(ctn_trainer *tr, ctn_optim *o)
{
    CTN_TRY(ctn_scope_begin(tr->ctx));
    ctn_status st = o->pool->contributions > 0 ? ctn_optim_step(o) : ctn__step_empty(CTN_HERE, o);
    ctn_status end = ctn_scope_end(tr->ctx);
    return st < 0 ? st : end;
}

/* Elements of a sample of the field in which targets were counted; 1 if ranks may differ. */
static double full_sample(const ctn_trainer *tr)
{
    const int f = tr->step.targets;
    double n = 1;
    if (f < 0 || ctn__group_apart(tr)) return n;
    const ctn_field *d = &tr->loader->field[f];
    for (int i = 1; i < d->ndim; i++) n *= d->shape[i] > 0 ? (double)d->shape[i] : 1;
    return n;
}

/* Do batches have weights? Not in a step of one batch on one rank. */
static bool is_weighted(const ctn_trainer *tr)
{
    return ctn__trainer_comm(tr) || tr->o.accumulate > 1;
}

/* The weight of a batch in its step, relative to the first batch; on several ranks, and if targets
 * count, relative to a full batch, so that ranks agree. */
static double weight_of(const ctn_trainer *tr, double first)
{
    const double weight = ctn__step_weight(&tr->step), full = full_sample(tr);
    if (ctn__exact(tr)) return ldexp(weight, -ilogb(full)); /* sums of such numbers are exact */
    if (tr->step.weight < 0 && !ctn__trainer_comm(tr)) return weight / first;
    return weight / ((double)tr->loader->batch * full);
}

/* Runs one batch for one optimizer. first: samples of the first batch of the step. step: also take
 * the optimizer step, in the same scope and so in the same plan. */
static ctn_status run_loss(ctn_trainer *tr, const ctn__other *o, double first, bool step)
{
    ctn_status st = CTN_OK;
    ctn__step_begin(&tr->step, &tr->batch);
    CTN_TRY(ctn_scope_begin(tr->ctx));
    ctn_tensor *loss = ctn__step_loss(&tr->step, o->name, o->loss, o->self, &st);
    const bool nothing = ctn__step_weight(&tr->step) == 0; /* to learn; the loss may be 0 / 0 */
    if (st == CTN_OK && o->optim == tr->optim && !nothing) loss = ctn__nonfinite_loss(tr, loss);
    if (st == CTN_OK)
        st = nothing ? ctn__empty_backward(o->optim, loss)
             : is_weighted(tr)
                 ? ctn__backward_weighted("trainer_run", o->optim, loss, weight_of(tr, first))
                 : ctn_backward_at("trainer_run", o->optim, loss);
    if (st == CTN_OK && step && !nothing) st = ctn_optim_step(o->optim);
    while (tr->ctx->level > 1) ctn_scope_end(tr->ctx); /* scopes a failed loss left open */
    ctn_status end = ctn_scope_end(tr->ctx);
    CTN_TRY(st < 0 ? st : end);
    if (step && nothing) CTN_TRY(step_late(tr, o->optim));
    return ctn__step_read(&tr->step, read_value, tr);
}

/* The same without samples. */
static ctn_status run_empty(ctn_trainer *tr, const ctn__other *o, bool step)
{
    if (ctn__empty_joins(tr)) CTN_TRY(ctn__empty_pass(tr, o));
    return step ? step_late(tr, o->optim) : CTN_OK;
}

static ctn_status run_batch(ctn_trainer *tr, int64_t round, double first, bool step)
{
    const ctn__other own = {.name = "loss", .optim = tr->optim, .loss = tr->loss, .self = tr->self};
    const bool empty = tr->batch.n == 0;
    if (!ctn__trainer_comm(tr)) tr->samples += tr->batch.n;
    const size_t others = ctn__rounds_needed(tr) ? 0 : tr->others.n; /* 0: see run_others */
    for (size_t i = 0; i <= others; i++) {
        const ctn__other *o = i == 0 ? &own : &tr->others.at[i - 1];
        ctn__group_place(tr, round, (int)i);
        if (ctn__rounds_needed(tr)) CTN_TRY(ctn__rounds_keep(tr));
        CTN_TRY(empty ? run_empty(tr, o, step) : run_loss(tr, o, first, step));
    }
    return CTN_OK;
}

/* Steps of the other optimizers, after the one of the trainer's own, if steps have several batches.
 * The next batch stays held. */
static ctn_status run_others(ctn_trainer *tr, double first)
{
    const ctn_batch next = tr->batch;
    const size_t n = ctn__rounds_count(tr);
    ctn_status st = CTN_OK;
    for (size_t i = 0; i < tr->others.n; i++)
        for (size_t k = 0; k < n && st == CTN_OK; k++) {
            ctn__rounds_take(tr, k, (int)i + 1);
            const ctn__other *o = &tr->others.at[i];
            const bool step = k == n - 1;
            st = tr->batch.n == 0 ? run_empty(tr, o, step) : run_loss(tr, o, first, step);
        }
    tr->batch = next;
    return st;
}

/* One optimizer step: up to `accumulate` batches of one epoch, each weighted by its samples.
 * Afterwards the next batch is held, or the epoch has ended. */
static ctn_status run_step(ctn_trainer *tr)
{
    const int64_t group = ctn__exact_rounds(tr);
    const bool exact = ctn__exact(tr);
    int64_t samples = 0;
    double first = 0;
    tr->epoch_ended = false;
    ctn__rounds_begin(tr);
    tr->losses.last = tr->losses.now;
    tr->losses.now = (ctn__step_sum){0};
    ctn__nonfinite_before(tr);
    CTN_TRY(need_batch(tr));
    tr->was = ctn__trainer_epochs(tr);
    tr->begin = (int64_t)tr->at.position;
    for (int64_t k = 0; k < group; k++) {
        const uint64_t t0 = ctn__now_ns();
        if (k == 0) first = (double)tr->batch.n;
        ctn__group_give(tr, samples += tr->batch.n);
        CTN_TRY(ctn__exact_before(tr, k));
        CTN_TRY(run_batch(tr, k, first, k == group - 1 && !exact));
        CTN_TRY(ctn__exact_after(tr));
        tr->compute_s += since(t0);
        tr->held = false; /* used */
        ctn_status st = take(tr);
        if (st < 0 && k < group - 1 && ctn__trainer_comm(tr)) return st; /* the others go on */
        if (st < 0) tr->ahead = st;
        tr->epoch_ended = st == CTN_END;
        const bool last = st != CTN_OK || k == group - 1;
        if (!last || (k == group - 1 && !exact)) continue;
        const uint64_t t1 = ctn__now_ns();
        CTN_TRY(step_late(tr, tr->optim));
        CTN_TRY(ctn__exact_step(tr));
        tr->compute_s += since(t1);
        break;
    }
    const uint64_t t2 = ctn__now_ns();
    CTN_TRY(run_others(tr, first));
    tr->compute_s += since(t2);
    ctn__group_take(tr);
    ctn__nonfinite_after(tr);
    tr->iteration++;
    tr->epoch += tr->epoch_ended;
    ctn__group_leave(tr);
    return CTN_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool reached_end(const ctn_trainer *tr)
{
    return tr->ended || (tr->o.iterations > 0 && tr->iteration >= tr->o.iterations) ||
           (tr->o.epochs > 0 && tr->epoch >= tr->o.epochs) ||
           (tr->o.seconds > 0 && ctn__trainer_clock(tr) >= tr->o.seconds);
}

static ctn_status call_extensions(ctn_trainer *tr, bool only_at_end)
{
    for (size_t i = 0; i < tr->ext.n; i++) {
        ctn__extended *x = tr->ext.at[i];
        if (only_at_end && x->trigger.t.kind != CTN_AT_END) continue;
        if (x->e.rank0_only && !ctn__writes(tr)) continue;
        if (!ctn__trigger_fires(&x->trigger, tr) || !x->e.call) continue;
        const uint64_t t0 = ctn__now_ns();
        CTN_TRY(x->e.call(x->e.self, tr));
        ctn__group_leave(tr);
        x->trigger.cost = since(t0);
    }
    return CTN_OK;
}

static ctn_status after_step(ctn_trainer *tr)
{
    const uint64_t t0 = ctn__now_ns();
    tr->last = reached_end(tr);
    CTN_TRY(ctn__checkpoint_step(tr));
    CTN_TRY(call_extensions(tr, false));
    if (!tr->last && tr->ended) { /* an extension ended the training */
        tr->last = true;
        CTN_TRY(call_extensions(tr, true));
    }
    tr->other_s += since(t0);
    return CTN_OK;
}

/* Where the clock goes on after a rewind, triggers by time begin again. */
static ctn_status start_extensions(ctn_trainer *tr, bool again, size_t *started)
{
    for (*started = 0; *started < tr->ext.n; ++*started) {
        ctn__extended *x = tr->ext.at[*started];
        x->trigger.fired = again ? ctn__trainer_clock(tr) : 0;
        if (x->e.rank0_only && !ctn__writes(tr)) continue;
        if (x->trigger.t.key) CTN_TRY(ctn__values_common(tr, x->e.name, x->trigger.t.key));
        if (x->e.start) CTN_TRY(x->e.start(x->e.self, tr));
    }
    return CTN_OK;
}

static bool asked_to_stop(const ctn_trainer *tr)
{
    return ctn__trainer_comm(tr) ? tr->agreed : atomic_load(&((ctn_trainer *)tr)->stop) != NULL;
}

/* Without this, the other ranks would wait for a rank that cannot continue. */
static void tell_others(ctn_trainer *tr, ctn_status st)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    if (st < 0 && c && !tr->shared) ctn_comm_break(c, ctn_error_message());
}

/* Runs until the end, a stop or a failure. again: after a rewind, as part of the same run for the
 * caller. */
static ctn_status run(ctn_trainer *tr, bool again)
{
    size_t started = 0;
    CTN_TRY(ctn__group_agree(tr, true));
    CTN_TRY(ctn__group_begin(tr));
    tr->running = true;
    tr->last = tr->epoch_ended = tr->complete = tr->agreed = tr->shared = tr->rewind = false;
    if (!again) {
        tr->began = ctn__now_ns();
        tr->seconds += tr->ran;
    }
    ctn_status st = start_extensions(tr, again, &started);
    bool end = reached_end(tr); /* true if the loaded state was saved at the end */
    while (st == CTN_OK && !end && !asked_to_stop(tr)) {
        st = run_step(tr);
        if (st == CTN_OK) st = after_step(tr);
        end = tr->last;
    }
    ctn__group_leave(tr);
    tr->status = st;
    tr->complete = st == CTN_OK && end;
    tell_others(tr, st);
    ctn_status back = put_back(tr);
    if (st == CTN_OK) st = back;
    for (size_t i = 0; i < started; i++) {
        ctn__extended *x = tr->ext.at[i];
        bool called = x->e.finish && (!x->e.rank0_only || ctn__writes(tr));
        ctn_status f = called ? x->e.finish(x->e.self, tr) : CTN_OK;
        ctn__group_leave(tr);
        if (st == CTN_OK) st = f;
    }
    tr->complete = tr->complete && st >= 0;
    tell_others(tr, st);
    tr->ran = ctn__trainer_clock(tr);
    tr->running = false;
    return st < 0 ? st : CTN_OK;
}

ctn_status ctn_trainer_run(ctn_trainer *tr)
{
    if (!tr) return ctn_fail(CTN_EARG, "trainer_run: no trainer");
    if (tr->running) return ctn_fail(CTN_ESTATE, "trainer_run: the trainer is already running");
    if (tr->ctx->level > 0) return ctn_fail(CTN_ESTATE, "trainer_run: a scope is open");
    if (tr->o.epochs == 0 && tr->o.iterations == 0 && tr->o.seconds <= 0 && tr->ext.n == 0)
        return ctn_fail(CTN_EARG, "trainer_run: the training would never end; set epochs, "
                                  "iterations or seconds, or add an extension that ends it");
    CTN_TRY(ctn__exact_check(tr));
    ctn_status st = run(tr, false);
    while (st == CTN_ENONFINITE && tr->rewind) {
        st = ctn__rewind(tr);
        if (st == CTN_OK) st = run(tr, true);
    }
    return st;
}
