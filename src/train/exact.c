/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps with the same bits on any number of ranks. The loader divides the samples of a step into
 * blocks that do not depend on the number of ranks. Each block is computed on its own, by the same
 * plan, from the parameters and states (running statistics) before the step, with random numbers
 * that follow from its place (group.c). Gradients, states and reported values are rounded and added
 * as integers or as multiples of a power of two, so that neither order nor grouping matters.
 */
#include <math.h>

#include "comm/comm.h"
#include "comm/exchange.h"
#include "data/loader.h"
#include "optim/optim.h"
#include "train/train.h"

/* Changes of states are rounded to multiples of 2^-STATE_BITS, reported values of 2^-VALUE_BITS. */
enum { STATE_BITS = 36, VALUE_BITS = 30 };

typedef struct ctn__blocks {
    ctn__net_states states; /* states of the net before the step */
    int64_t n;              /* their elements */
    int64_t *sum;           /* of their changes by blocks, weighted by samples; then the samples */
} blocks;

bool ctn__exact(const ctn_trainer *tr)
{
    return tr->loader->block > 0;
}

static int64_t blocks_of(const ctn_trainer *tr)
{
    return (tr->loader->step - 1) / tr->loader->block + 1;
}

int64_t ctn__exact_rounds(const ctn_trainer *tr)
{
    return ctn__exact(tr) ? (blocks_of(tr) - 1) / tr->loader->sampler.size + 1 : tr->o.accumulate;
}

ctn_status ctn__exact_check(const ctn_trainer *tr)
{
    const ctn__exchange *x = tr->optim->pool->exchange;
    if (ctn__exact(tr) != (x && ctn__exchange_is_exact(x)))
        return ctn_fail(CTN_EARG,
                        "trainer: a loader with blocks needs an optimizer with exact sums "
                        "(ctn_dist_opt.exact), and only such a loader does");
    if (!ctn__exact(tr)) return CTN_OK;
    if (tr->others.n > 0)
        return ctn_fail(CTN_EARG,
                        "trainer: a loader with blocks trains one optimizer, but %s was "
                        "added",
                        tr->others.at[0].name);
    if (ctn__group_apart(tr))
        return ctn_fail(CTN_EARG,
                        "trainer: a loader with blocks needs samples that all ranks share; "
                        "each rank has its own: call ctn_sampler_shard");
    if (tr->o.accumulate > 1)
        return ctn_fail(CTN_EARG, "trainer: a loader with blocks does not accumulate; increase its "
                                  "total");
    if (ctn__empty_joins(tr))
        return ctn_fail(CTN_EARG,
                        "trainer: a loader with blocks normalises each block by itself; turn off "
                        "ctn_dist_sync_batch_norm");
    if (tr->ctx->threads > 1)
        return ctn_fail(CTN_EARG,
                        "trainer: a loader with blocks needs a context with one thread, "
                        "because kernels divide their sums among threads; use more ranks");
    return CTN_OK;
}

double ctn__exact_value(double value)
{
    return ldexp(rint(ldexp(value, VALUE_BITS)), -VALUE_BITS);
}

/* ---- states of the net ----------------------------------------------------------------------- */

static ctn_status make(ctn_trainer *tr)
{
    blocks *b = tr->blocks = ctn__calloc(1, sizeof *b);
    if (!b) return CTN_ENOMEM;
    CTN_TRY(ctn__net_states_make(&b->states, tr));
    for (size_t i = 0; i < b->states.var.n; i++) {
        const ctn_var *v = b->states.var.at[i];
        if (v->d.dtype != CTN_F32 && v->d.dtype != CTN_F64 && v->d.dtype != CTN_I64)
            return ctn_fail(CTN_EDTYPE,
                            "trainer: the state %s is %s, only f32, f64 and i64 can be "
                            "summed exactly",
                            v->name, ctn_dtype_name(v->d.dtype));
        b->n += ctn__count(&v->d);
    }
    b->sum = ctn__calloc((size_t)b->n + 1, sizeof *b->sum);
    return b->sum ? CTN_OK : CTN_ENOMEM;
}

void ctn__exact_free(ctn_trainer *tr)
{
    blocks *b = tr->blocks;
    if (!b) return;
    ctn__net_states_free(&b->states);
    ctn__free(b->sum);
    ctn__free(b);
    tr->blocks = NULL;
}

ctn_status ctn__exact_before(ctn_trainer *tr, int64_t round)
{
    if (!ctn__exact(tr)) return CTN_OK;
    if (!tr->blocks) CTN_TRY(make(tr));
    if (round == 0) ctn__net_states_take(&tr->blocks->states);
    return CTN_OK;
}

/* Counters are whole numbers already. */
static double units(const ctn_var *v)
{
    return v->d.dtype == CTN_I64 ? 1 : ldexp(1, STATE_BITS);
}

static double element(const ctn_var *v, const void *data, int64_t k)
{
    return v->d.dtype == CTN_I64   ? (double)((const int64_t *)data)[k]
           : v->d.dtype == CTN_F64 ? ((const double *)data)[k]
                                   : (double)((const float *)data)[k];
}

/* Adds how the block has changed the states, weighted by its samples. */
static ctn_status add_changes(ctn_trainer *tr, blocks *b, int64_t samples)
{
    const double most = ldexp(1, 62) / (double)tr->loader->step;
    const char *before = b->states.copy;
    int64_t *sum = b->sum;
    for (size_t i = 0; i < b->states.var.n; i++) {
        const ctn_var *v = b->states.var.at[i];
        for (int64_t k = 0; k < ctn__count(&v->d); k++) {
            const double change = (element(v, v->data, k) - element(v, before, k)) * units(v);
            if (!(fabs(change) < most))
                return ctn_fail(CTN_ENONFINITE,
                                "trainer: %s changes by %g in a step, too much for an exact sum",
                                v->name, change / units(v));
            *sum++ += samples * llrint(change);
        }
        before += ctn__bytes(&v->d);
    }
    *sum += samples;
    return CTN_OK;
}

ctn_status ctn__exact_after(ctn_trainer *tr)
{
    blocks *b = tr->blocks;
    if (!ctn__exact(tr)) return CTN_OK;
    ctn__optim_collect(tr->optim);
    if (tr->batch.n > 0) CTN_TRY(add_changes(tr, b, tr->batch.n));
    ctn__net_states_put_back(&b->states);
    return CTN_OK;
}

/* Changes the states by the mean over all blocks. */
static void apply_changes(blocks *b)
{
    const int64_t *sum = b->sum;
    const double samples = (double)b->sum[b->n];
    for (size_t i = 0; i < b->states.var.n; i++) {
        ctn_var *v = b->states.var.at[i];
        for (int64_t k = 0; k < ctn__count(&v->d); k++, sum++) {
            const double now = element(v, v->data, k) + (double)*sum / samples / units(v);
            if (v->d.dtype == CTN_I64) ((int64_t *)v->data)[k] = llrint(now);
            else if (v->d.dtype == CTN_F64) ((double *)v->data)[k] = now;
            else ((float *)v->data)[k] = (float)now;
        }
        v->version++;
    }
}

ctn_status ctn__exact_step(ctn_trainer *tr)
{
    blocks *b = tr->blocks;
    if (!ctn__exact(tr) || b->n == 0) return CTN_OK;
    CTN_TRY(ctn_comm_allreduce(ctn__trainer_comm(tr), b->sum, b->n + 1, CTN_I64));
    if (b->sum[b->n] > 0) apply_changes(b);
    memset(b->sum, 0, ((size_t)b->n + 1) * sizeof *b->sum);
    return CTN_OK;
}
