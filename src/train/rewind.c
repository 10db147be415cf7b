/* SPDX-License-Identifier: Apache-2.0
 *
 * Rewinding: after a run has failed because values are not finite, the newest saved state that is
 * finite is loaded, and the learning rate is multiplied by a factor. To the extensions this looks
 * like a run that has failed and another one that resumes; trainer.c does both in one call of
 * ctn_trainer_run.
 *
 * What a resumed run takes from the state, but a rewound one must not lose: how often the training
 * was rewound, the factor of the learning rate, and the time that was spent.
 */
#include "comm/comm.h"
#include "optim/optim.h"
#include "train/train.h"

/* The state just loaded is the newest one. */
static ctn_status put_aside(const ctn_trainer *tr, const char *dir)
{
    ctn__text path = {0};
    if (!ctn__writes(tr)) return CTN_OK;
    const int64_t number = ctn__numbered_below(dir, INT64_MAX);
    ctn_status st = ctn__numbered_path(&path, dir, number);
    if (st == CTN_OK) {
        ctn__warn("the state %s has values that are not finite: it is put aside", path.s);
        ctn__numbered_put_aside(path.s, dir, number);
    }
    ctn__text_free(&path);
    return st;
}

static ctn_status load_finite(ctn_trainer *tr)
{
    const char *dir = ctn__checkpoint_dir(tr), *name = NULL, *kind = NULL;
    for (bool bad = true; bad;) {
        CTN_TRY(ctn_trainer_load(tr, dir));
        CTN_TRY(ctn__nonfinite_anywhere(tr, &bad, &name, &kind));
        if (bad) CTN_TRY(ctn__comm_root_status(ctn__trainer_comm(tr), put_aside(tr, dir)));
    }
    return CTN_OK;
}

static ctn_status no_state(const ctn__nonfinite *x)
{
    ctn_error_clear();
    return ctn_fail(CTN_ENONFINITE,
                    "%s, and there is no saved state to rewind to: save states more often, or use "
                    "a smaller learning rate",
                    x->why);
}

ctn_status ctn__rewind(ctn_trainer *tr)
{
    ctn__nonfinite *x = tr->nonfinite;
    const int64_t rewinds = x->rewinds + 1, from = tr->iteration;
    const double rate = x->rate * x->o.factor;
    const double seconds = tr->seconds, ran = tr->ran;
    const double compute = tr->compute_s, input = tr->input_s, other = tr->other_s;
    tr->rewind = false;
    ctn_error_clear();
    CTN_TRY(ctn__trainer_settle(tr));
    CTN_TRY(ctn__checkpoint_settle(tr));
    /* Other states in the folder belong to another training. */
    if (!tr->resumed && tr->saves == 0) return no_state(x);
    ctn_status st = load_finite(tr);
    if (st == CTN_ENOTFOUND || st == CTN_EFORMAT) return no_state(x);
    CTN_TRY(st);
    x->rewinds = rewinds;
    x->rate = tr->optim->rate = rate;
    x->in_row = 0;
    tr->seconds = seconds;
    tr->ran = ran;
    tr->compute_s = compute;
    tr->input_s = input;
    tr->other_s = other;
    if (ctn__writes(tr))
        ctn__warn("%s: rewinding from iteration %lld to the state of iteration %lld with %g times "
                  "the learning rate (rewind %lld of %lld)",
                  x->why, (long long)from, (long long)tr->iteration, rate, (long long)rewinds,
                  (long long)x->o.max_rewinds);
    return ctn_trainer_observe(tr, "train/rewinds", (double)rewinds);
}
