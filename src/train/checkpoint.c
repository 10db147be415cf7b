/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension that saves states while the training goes on. When its trigger fires, the state is
 * copied, and threads write the copy. After each step the ranks learn, from a number that travels
 * with the gradients, whether all of them are done; then they vote and rank 0 publishes the state.
 *
 * A state that cannot be written is reported, and the training goes on: the next one may succeed.
 * Only the last state of a run must be written.
 */
#include <math.h>

#include "optim/optim.h"
#include "train/train.h"

typedef struct ctn__checkpointer {
    ctn__text dir;
    ctn__saver *saver; /* made when a run begins */
    int64_t iteration; /* of the state in the making */
    bool failed;       /* the last one could not be written */
    int64_t begun;     /* states */
    int64_t steps;     /* of this run */
    double spent;      /* seconds in steps of this and earlier runs, after the last step */
    double usual;      /* seconds of a step while nothing is written; 0: not known yet */
} checkpointer;

/* Reports a failure that the training survives. Others, such as a lost rank, it does not. */
static ctn_status survive(ctn_trainer *tr, checkpointer *k, ctn_status st)
{
    if (st == CTN_OK || st == CTN_EPEER || st == CTN_ENOMEM) return st;
    k->failed = true;
    if (ctn__writes(tr))
        ctn__warn("the state of iteration %lld could not be saved, the training goes on and tries "
                  "again: %s",
                  (long long)k->iteration, ctn_error_message());
    ctn_error_clear();
    return CTN_OK;
}

static void count_pause(ctn_trainer *tr, uint64_t began)
{
    const double s = (double)(ctn__now_ns() - began) * 1e-9;
    tr->pauses += s;
    if (s > tr->pause) tr->pause = s;
}

/* Compares a step with those before, if a state was written meanwhile. The first steps of a run
 * make plans and count for nothing. */
static void measure_step(ctn_trainer *tr, checkpointer *k)
{
    enum { FIRST = 3 };
    const double now = tr->compute_s + tr->input_s, step = now - k->spent;
    k->spent = now;
    if (++k->steps <= FIRST) return;
    if (!ctn__saver_busy(k->saver)) k->usual += (step - k->usual) * (k->usual > 0 ? 0.1 : 1);
    else if (k->usual > 0) tr->slowed += step - k->usual;
}

double ctn__checkpoint_cost(const ctn_trainer *tr)
{
    const checkpointer *k = tr->checkpointer;
    return k->begun > 0 ? (tr->pauses + fmax(tr->slowed, 0)) / (double)k->begun : 0;
}

bool ctn__checkpoint_written(const ctn_trainer *tr)
{
    const checkpointer *k = tr->checkpointer;
    return k && k->saver && ctn__saver_busy(k->saver) && ctn__saver_written(k->saver);
}

/* All ranks have written: they vote, and rank 0 publishes. */
static ctn_status vote(ctn_trainer *tr, checkpointer *k)
{
    ctn_status st = ctn__saver_vote(k->saver);
    if (st < 0) return survive(tr, k, st);
    tr->saved = k->iteration;
    tr->saves++;
    k->failed = false;
    return CTN_OK;
}

ctn_status ctn__checkpoint_step(ctn_trainer *tr)
{
    checkpointer *k = tr->checkpointer;
    if (!k || !k->saver) return CTN_OK;
    measure_step(tr, k);
    const ctn_status late = ctn__saver_failure(k->saver);
    if (late < 0) CTN_TRY(survive(tr, k, late));
    const bool all = ctn__trainer_comm(tr) ? tr->written : ctn__checkpoint_written(tr);
    if (!ctn__saver_busy(k->saver) || !all) return CTN_OK;
    const uint64_t t0 = ctn__now_ns();
    const ctn_status st = vote(tr, k);
    count_pause(tr, t0);
    return st;
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    checkpointer *k = self;
    CTN_TRY(ctn__nonfinite_check(tr));
    const uint64_t t0 = ctn__now_ns();
    if (ctn__saver_busy(k->saver)) CTN_TRY(vote(tr, k)); /* the one before takes too long */
    k->iteration = tr->iteration;
    k->begun++;
    CTN_TRY(survive(tr, k, ctn__weights_sync(tr)));
    const ctn_status st = ctn__state_begin(tr, k->saver);
    count_pause(tr, t0);
    return survive(tr, k, st);
}

const char *ctn__checkpoint_dir(const ctn_trainer *tr)
{
    return tr->checkpointer ? tr->checkpointer->dir.s : NULL;
}

ctn_status ctn__checkpoint_settle(ctn_trainer *tr)
{
    checkpointer *k = tr->checkpointer;
    if (ctn__saver_busy(k->saver)) CTN_TRY(vote(tr, k));
    const ctn_status st = ctn__saver_wait(k->saver);
    if (st < 0) CTN_TRY(survive(tr, k, st));
    k->iteration = -1; /* what was saved differs from what the loaded state leads to */
    return CTN_OK;
}

static ctn_status begin(void *self, ctn_trainer *tr)
{
    checkpointer *k = self;
    k->steps = 0;
    if (!k->saver)
        CTN_TRY(ctn__saver_new(&k->saver, ctn__trainer_comm(tr), k->dir.s, CTN__STATES_KEPT));
    return ctn__state_check(tr, k->saver);
}

/* Only rank 0 knows whether a state was published that was not waited for. */
static ctn_status share_failure(const ctn_trainer *tr, checkpointer *k)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    return c ? ctn_comm_broadcast(c, &k->failed, sizeof k->failed, 0) : CTN_OK;
}

/* The last state must be on disk before the run ends. */
static ctn_status finish(void *self, ctn_trainer *tr)
{
    checkpointer *k = self;
    if (!k->saver || tr->status < 0) return CTN_OK;
    const bool busy = ctn__saver_busy(k->saver);
    ctn_status st = ctn__state_finish(k->saver);
    if (st == CTN_OK && busy) tr->saves++;
    CTN_TRY(share_failure(tr, k));
    if (st == CTN_OK && !k->failed && k->iteration == tr->iteration) {
        tr->saved = tr->iteration;
        return CTN_OK;
    }
    if (st < 0) CTN_TRY(survive(tr, k, st));
    k->iteration = tr->iteration;
    CTN_TRY(ctn__state_begin(tr, k->saver));
    CTN_TRY(ctn__state_finish(k->saver));
    tr->saved = tr->iteration;
    tr->saves++;
    return CTN_OK;
}

static void release(void *self)
{
    checkpointer *k = self;
    ctn__saver_free(k->saver);
    ctn__text_free(&k->dir);
    ctn__free(k);
}

ctn_status ctn_extend_state(ctn_trainer *tr, const ctn_trigger *when)
{
    CTN_TRY(ctn__need_out(tr, "extend_state"));
    CTN_TRY(ctn__state_possible(tr, "extend_state"));
    checkpointer *k = ctn__calloc(1, sizeof *k);
    if (!k) return CTN_ENOMEM;
    k->iteration = -1;
    ctn__text_add(&k->dir, "%s/state", tr->o.out);
    if (k->dir.failed) {
        release(k);
        return CTN_ENOMEM;
    }
    /* Runs after all other extensions, so that a resumed training repeats and misses nothing. */
    CTN_TRY(ctn__extend(tr,
                        &(ctn_extension){.name = "state",
                                         .priority = 0,
                                         .start = begin,
                                         .call = call,
                                         .finish = finish,
                                         .release = release,
                                         .self = k},
                        when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1}));
    tr->checkpointer = k;
    return CTN_OK;
}
