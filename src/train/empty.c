/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank that has no samples in a batch of all ranks. Usually it has nothing to do before the step.
 * But if the batch normalisations of the net are synchronised, the passes of the other ranks wait
 * for the sums of this one, and it calls the loss functions with zero rows. Values and gradients of
 * such a call are dropped and not weighted by 0, because means of no rows are NaN. Gradients of a
 * batch without targets have weight 0 and are dropped if they are NaN.
 */
#include "data/loader.h"
#include "nn/nn.h"
#include "optim/optim.h"
#include "train/train.h"

bool ctn__empty_joins(const ctn_trainer *tr)
{
    return tr->o.net && ctn__trainer_comm(tr) && ctn__batch_norm_is_set(tr->o.net);
}

/* The gradients that earlier batches of this step have contributed. */
typedef struct {
    void *g; /* NULL: there are none */
    int contributions;
    double weights;
    bool weighted;
} gradients;

static ctn_status keep(const ctn_optim *o, gradients *k)
{
    const ctn__pool *p = o->pool;
    const size_t bytes = (size_t)p->count * p->unit;
    *k = (gradients){.contributions = p->contributions,
                     .weights = o->weights,
                     .weighted = o->weighted};
    CTN_TRY(ctn__pool_settle(o->pool));
    if (p->contributions == 0) return CTN_OK;
    k->g = ctn__malloc(bytes + 1);
    if (!k->g) return CTN_ENOMEM;
    memcpy(k->g, p->g, bytes);
    return CTN_OK;
}

static void put_back(ctn_optim *o, const gradients *k)
{
    ctn__pool *p = o->pool;
    const size_t bytes = (size_t)p->count * p->unit;
    if (k->g) memcpy(p->g, k->g, bytes);
    else ctn__zero(p->g, bytes, o->ctx->threads);
    p->contributions = k->contributions;
    o->weights = k->weights;
    o->weighted = k->weighted;
}

static ctn_status pass(ctn_trainer *tr, const ctn__other *o, const ctn_batch *none)
{
    ctn_status st = CTN_OK;
    ctn__step_begin(&tr->step, none);
    CTN_TRY(ctn_scope_begin(tr->ctx));
    ctn_tensor *loss = ctn__step_loss(&tr->step, o->name, o->loss, o->self, &st);
    if (st == CTN_OK) st = ctn_backward(o->optim, loss);
    while (tr->ctx->level > 1) ctn_scope_end(tr->ctx); /* scopes a failed loss left open */
    ctn_status end = ctn_scope_end(tr->ctx);
    return st < 0 ? st : end;
}

ctn_status ctn__empty_pass(ctn_trainer *tr, const ctn__other *o)
{
    gradients before;
    ctn_batch none;
    ctn__loader_no_rows(tr->loader, &none);
    CTN_TRY(keep(o->optim, &before));
    const ctn_status st = pass(tr, o, &none);
    put_back(o->optim, &before);
    ctn__free(before.g);
    return st;
}

/* The losses of other ranks may depend on these samples, through synchronised statistics. Hence the
 * gradients count, although the loss does not. */
ctn_status ctn__empty_backward(ctn_optim *o, ctn_tensor *loss)
{
    gradients before;
    bool finite = true;
    CTN_TRY(keep(o, &before));
    ctn_status st = ctn__backward_weighted(CTN_HERE, o, loss, 0);
    if (st == CTN_OK) st = ctn_flush(o->ctx);
    (void)ctn__optim_norm2(o, o->pool->g, 0, o->pool->count, o->ctx->threads, &finite);
    if (st < 0 || !finite) put_back(o, &before);
    ctn__free(before.g);
    return st;
}
