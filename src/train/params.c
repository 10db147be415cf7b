/* SPDX-License-Identifier: Apache-2.0
 *
 * All that a trainer trains, by its own optimizer and by those that were added to it. Code that
 * looks at values of the net between steps calls ctn__trainer_settle or ctn__trainer_values first:
 * an optimizer on several ranks may have left updates in flight.
 */
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/train.h"

int ctn__trainer_optims(const ctn_trainer *tr)
{
    return 1 + (int)tr->others.n;
}

ctn_optim *ctn__trainer_optim(const ctn_trainer *tr, int i)
{
    return i == 0 ? tr->optim : tr->others.at[i - 1].optim;
}

bool ctn__trainer_sharded(const ctn_trainer *tr)
{
    bool any = false;
    for (int i = 0; i < ctn__trainer_optims(tr); i++)
        any |= ctn__optim_sharded(ctn__trainer_optim(tr, i));
    return any;
}

/* The net may have parameters of an optimizer that the trainer does not know. */
static ctn_status settle_net(const ctn_trainer *tr)
{
    ctn_vars all = {0};
    if (tr->o.net) CTN_TRY(ctn__module_vars(tr->o.net, &all));
    for (int i = 0; i < all.n; i++) CTN_TRY(ctn__pool_settle(all.var[i]->pool));
    return CTN_OK;
}

ctn_status ctn__trainer_settle(const ctn_trainer *tr)
{
    for (int i = 0; i < ctn__trainer_optims(tr); i++)
        CTN_TRY(ctn__pool_settle(ctn__trainer_optim(tr, i)->pool));
    return settle_net(tr);
}

ctn_status ctn__trainer_values(const ctn_trainer *tr)
{
    for (int i = 0; i < ctn__trainer_optims(tr); i++)
        CTN_TRY(ctn__shard_values(ctn__trainer_optim(tr, i)));
    return settle_net(tr);
}

/* ---- a list of the parameters ---------------------------------------------------------------- */

static bool listed(const ctn_trainer *tr, const ctn_var *v)
{
    bool any = false;
    for (int i = 0; i < ctn__trainer_optims(tr); i++) {
        const ctn__pool *p = ctn__trainer_optim(tr, i)->pool;
        any |= v->pool == p || v->parked == p;
    }
    return any;
}

ctn_status ctn__trainer_params(const ctn_trainer *tr, ctn__common_params *out)
{
    ctn_vars net = {0};
    out->n = 0;
    for (int k = 0; k < ctn__trainer_optims(tr); k++) {
        const ctn_optim *o = ctn__trainer_optim(tr, k);
        for (int i = 0; i < ctn__optim_params(o); i++) {
            const ctn__common_param p = {k, o->name[i], ctn__optim_var(o, i)};
            if (p.var && !ctn__vec_push(out, p)) return CTN_ENOMEM;
        }
    }
    if (tr->o.net) CTN_TRY(ctn__module_vars(tr->o.net, &net));
    for (int i = 0; i < net.n; i++) {
        const ctn__common_param p = {-1, net.name[i], net.var[i]};
        if (p.var->kind != CTN_PARAM || listed(tr, p.var)) continue;
        if (!ctn__vec_push(out, p)) return CTN_ENOMEM;
    }
    return CTN_OK;
}

uint64_t ctn__common_hash(const ctn__common_param *p)
{
    return ctn__hash(p->var->data, ctn__bytes(&p->var->d)).lo;
}
