/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of several ranks. Every rank runs the same loop with its part of the samples and the same extensions; those that write or
 * show do so on rank 0 only. All ranks take the same number of steps: a rank whose samples are used up, or could not be read, takes
 * empty ones. What must be agreed on (the stop, the clock) goes with the gradients, so that a step sends no message for it.
 */
#include "data/loader.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/train.h"

static ctn__exchange *exchange(const ctn_trainer *tr)
{
    return tr->optim->pool->exchange;
}

ctn_comm *ctn__trainer_comm(const ctn_trainer *tr)
{
    return exchange(tr) ? exchange(tr)->comm : NULL;
}

bool ctn__writes(const ctn_trainer *tr)
{
    return !exchange(tr) || ctn_comm_rank(exchange(tr)->comm) == 0;
}

void ctn__group_give(ctn_trainer *tr, int64_t samples)
{
    ctn__exchange *x = exchange(tr);
    if (!x) return;
    x->give[CTN__GIVE_SAMPLES] = (double)samples;
    x->give[CTN__GIVE_STOP] = atomic_load(&tr->stop) != NULL;
    x->give[CTN__GIVE_CLOCK] = ctn__writes(tr) ? (double)(ctn__now_ns() - tr->began) * 1e-9 : 0;
}

void ctn__group_take(ctn_trainer *tr)
{
    const ctn__exchange *x = exchange(tr);
    if (!x) return;
    tr->samples += (int64_t)x->total[CTN__GIVE_SAMPLES];
    tr->agreed = x->total[CTN__GIVE_STOP] > 0;
}

double ctn__group_clock(const ctn_trainer *tr)
{
    return exchange(tr)->total[CTN__GIVE_CLOCK];
}

/* Rank 0 has as many samples as any: the sampler deals them out in turn. */
int64_t ctn__group_batches(const ctn_loader *l)
{
    const ctn_sampler *s = &l->sampler;
    if (l->drop_last) return s->total / s->size / l->batch;
    return ((s->total + s->size - 1) / s->size + l->batch - 1) / l->batch;
}

ctn_status ctn__group_next(ctn_trainer *tr)
{
    ctn_status st = CTN_OK;
    const int64_t batch = tr->loader->batch;
    if (tr->in_epoch == 0) tr->in_epoch = ((int64_t)tr->at.position + batch - 1) / batch;
    if (!tr->dry) st = ctn_loader_next(tr->loader, &tr->batch);
    if (st < 0) return st;
    bool ended = tr->in_epoch >= ctn__group_batches(tr->loader);
    tr->dry = !ended && (tr->dry || st == CTN_END);
    if (ended) {
        tr->in_epoch = 0;
        return CTN_END;
    }
    if (tr->dry) tr->batch = (ctn_batch){0};
    tr->in_epoch++;
    return CTN_OK;
}

/* Rank 0's position counts whole batches of all; this rank may have fewer samples. */
ctn_status ctn__group_resume(ctn_trainer *tr)
{
    tr->dry = false;
    tr->in_epoch = 0;
    if (!exchange(tr)) return CTN_OK;
    ctn_sampler_state s = ctn_loader_state_get(tr->loader);
    int64_t most = ctn_sampler_count(&tr->loader->sampler);
    int64_t position = (int64_t)s.position, batch = tr->loader->batch;
    if (position <= most) return CTN_OK;
    tr->in_epoch = (position + batch - 1) / batch;
    s.position = (uint64_t)most;
    return ctn_loader_state_set(tr->loader, &s);
}

ctn_status ctn__group_states(ctn_trainer *tr)
{
    ctn_comm *c = ctn__trainer_comm(tr);
    if (!c || !tr->o.net) return CTN_OK;
    ctn_vars all = {0};
    CTN_TRY(ctn__module_vars(tr->o.net, &all));
    for (int i = 0; i < all.n; i++) {
        const ctn_var *v = all.var[i];
        if (v->kind == CTN_STATE) CTN_TRY(ctn_comm_broadcast(c, v->data, ctn__bytes(&v->d), 0));
    }
    return CTN_OK;
}
