/* SPDX-License-Identifier: Apache-2.0
 *
 * Reports loss spikes: steps whose loss lies far above its running mean. The mean and the deviation
 * are exponential averages, and a loss far away counts as one at the limit, so that a spike hardly
 * changes what the next losses are compared with, but a lasting change does.
 *
 * On several ranks the loss is the mean over all ranks. It travels with the gradients of the next
 * step (group.c), so a spike is seen one step later, and by all ranks.
 */
#include <math.h>

#include "train/train.h"

typedef struct {
    ctn_spike_opt o; /* defaults are filled in */
    ctn_trainer *tr;
    int64_t n; /* losses seen */
    double mean, variance;
    int64_t spikes, warned; /* number of spikes; iteration of the last warning */
} spikes;

/* A loss that hardly varies would make spikes of its noise: a deviation counts as at least this
 * share of the mean. */
static const double LEAST = 0.01;

static double deviation(const spikes *x)
{
    return fmax(sqrt(x->variance), LEAST * fabs(x->mean));
}

static void learn(spikes *x, double loss)
{
    const double limit = x->o.deviations * deviation(x);
    const double part = 1 / (double)(x->n < x->o.window ? x->n + 1 : x->o.window);
    double d = loss - x->mean;
    if (x->n >= x->o.window) d = fmin(fmax(d, -limit), limit);
    x->mean += part * d;
    x->variance = (1 - part) * (x->variance + part * d * d);
    x->n++;
}

static void warn(spikes *x, const ctn_trainer *tr, int64_t iteration, double loss)
{
    const bool soon = x->warned > 0 && iteration - x->warned < x->o.window;
    if (soon) return;
    x->warned = iteration;
    if (ctn__writes(tr))
        ctn__warn("loss spike: the loss of iteration %lld is %.4g, %.1f deviations above its "
                  "running mean of %.4g",
                  (long long)iteration, loss, (loss - x->mean) / deviation(x), x->mean);
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    spikes *x = self;
    int64_t iteration;
    const double loss = ctn__trainer_loss(tr, &iteration);
    ctn_status st = CTN_OK;
    if (!isfinite(loss)) return CTN_OK; /* another extension's business */
    if (x->n >= x->o.window && loss > x->mean + x->o.deviations * deviation(x)) {
        x->spikes++;
        warn(x, tr, iteration, loss);
        st = ctn_trainer_observe(tr, "train/spikes", (double)x->spikes);
    }
    learn(x, loss);
    return st;
}

/* The loss that the next step brings to all ranks is known to rank 0 alone, which saves it. */
static ctn_status visit(void *self, ctn_state_fn fn, void *user)
{
    spikes *x = self;
    ctn__step_losses *l = &x->tr->losses;
    CTN_TRY(fn(user, "n", CTN_I64, 0, NULL, &x->n));
    CTN_TRY(fn(user, "mean", CTN_F64, 0, NULL, &x->mean));
    CTN_TRY(fn(user, "variance", CTN_F64, 0, NULL, &x->variance));
    CTN_TRY(fn(user, "spikes", CTN_I64, 0, NULL, &x->spikes));
    CTN_TRY(fn(user, "warned", CTN_I64, 0, NULL, &x->warned));
    CTN_TRY(fn(user, "pending", CTN_F64, 0, NULL, &l->now.sum));
    CTN_TRY(fn(user, "pending_samples", CTN_F64, 0, NULL, &l->now.weight));
    if (!ctn__writes(x->tr)) l->now = (ctn__step_sum){0};
    return CTN_OK;
}

ctn_status ctn_extend_spikes(ctn_trainer *tr, const ctn_spike_opt *opt)
{
    ctn_spike_opt o;
    if (!tr) return ctn_fail(CTN_EARG, "extend_spikes: no trainer");
    CTN_TRY(ctn__opt("extend_spikes", &o, sizeof o, opt));
    if (o.deviations == 0) o.deviations = 10;
    if (o.window == 0) o.window = 100;
    if (!(o.deviations > 0 && isfinite(o.deviations)) || o.window < 2)
        return ctn_fail(CTN_EARG,
                        "extend_spikes: deviations is %g and window %lld; they must be above 0 and "
                        "at least 2",
                        o.deviations, (long long)o.window);
    spikes *x = ctn__calloc(1, sizeof *x);
    if (!x) return CTN_ENOMEM;
    x->o = o;
    x->tr = tr;
    CTN_TRY(ctn__extend(tr,
                        &(ctn_extension){.name = "spikes",
                                         .priority = CTN_PRIORITY_EVALUATE + 40,
                                         .call = call,
                                         .visit = visit,
                                         .release = ctn__free,
                                         .self = x},
                        NULL, (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1}));
    tr->losses.wanted = true;
    return CTN_OK;
}
