/* SPDX-License-Identifier: Apache-2.0
 *
 * What optimizers share: the pool, per-parameter groups, state pools, and the step op that turns
 * hyperparameters into sweep segments. An optimizer file gives its defaults and its `fill`.
 */
#ifndef CTN_OPTIM_OPTIM_H
#define CTN_OPTIM_OPTIM_H

#include <catena/optim.h>

#include "engine/sweep.h"
#include "graph/graph.h"

/* Of one parameter. t counts its own steps, as its state does: both stand still while it is frozen. */
typedef struct {
    double lr_scale, decay;
    int64_t t;
    int order;      /* of the parameter as it was given */
    bool own_decay; /* set by ctn_optim_group: the optimizer's does not touch it */
} ctn__group;

struct ctn_optim {
    ctn_context *ctx;
    ctn__pool *pool;
    ctn_op step_op; /* of its own, so that plans print its name */
    ctn__sweep_kind kind;
    int nstates;
    float *state[3]; /* pools of pool->count floats; sharded: of this rank's blocks */
    float *master;   /* sharded, values given to the others in 16 bits: this rank's in f32 */
    ctn_dtype given; /* the type in which they were given last */
    char **name;     /* of each variable of the pool, then of parked ones; so are groups */
    ctn__group *group;
    ctn__sweep_seg *seg; /* room for one per variable */
    int64_t nseg;        /* of the last step */
    double *partial;     /* room of the norm sweep */
    double lr, beta1, beta2, eps, dampening, decay;
    double clip, norm;
    bool decoupled;
    bool scaled; /* loss scaling is on, as scaling says (defaults filled in) */
    ctn_loss_scale_opt scaling;
    double scale;                /* now; a float's value */
    double seed;                 /* of what adds up until the next step: the scale it began with */
    double weights;              /* sum of weights in it, 0: contributions are plain sums */
    int64_t scale_good, skipped; /* taken since the scale changed; skipped in all */
    ctn_sched_opt sched;
    int64_t t; /* steps taken */
    /* hyperparameters of one segment at its step t (from 1) for a learning rate */
    void (*fill)(const struct ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s);
};

static inline bool ctn__trained(const ctn_optim *o, int i)
{
    return o->pool->var[i] && o->pool->var[i]->trainable;
}

/* All parameters: those of the pool first, then the parked ones; NULL where a variable was freed. */
static inline int ctn__optim_params(const ctn_optim *o)
{
    return o->pool->nvar + o->pool->nparked;
}

static inline ctn_var *ctn__optim_var(const ctn_optim *o, int i)
{
    const ctn__pool *p = o->pool;
    return i < p->nvar ? p->var[i] : p->parked[i - p->nvar];
}

/* Takes a half-filled optimizer description and makes the real one. */
ctn_status ctn__optim_new(ctn_optim **out, const ctn_optim *like, const char *name, ctn_vars vars,
                          double decay);

/* Frozen parameters out of the pool, others into it (arrange.c). Between scopes. Errors: ENOMEM, ESTATE. */
ctn_status ctn__optim_arrange(ctn_optim *o);

/* ctn_backward of a loss that counts `weight` times; the step divides by the sum of weights. All
 * contributions to a step are weighted or none is. */
ctn_status ctn__backward_weighted(const char *at, ctn_optim *o, ctn_tensor *loss, double weight);

/* A step of a distributed optimizer to which this rank contributes nothing. */
ctn_status ctn__step_empty(const char *at, ctn_optim *o);

/* ---- updates of parts of the pool (shard.c) ---------------------------------------------------------- */

/* The last step, for elements [begin, end) of an unsharded pool. owner: the optimizer. */
void ctn__update_range(void *owner, int64_t begin, int64_t end, int threads);

/* Keep the state of this rank's blocks only; before the first step. Errors: ENOMEM, ESTATE. */
ctn_status ctn__shard_state(ctn_optim *o);
int64_t ctn__state_bytes(const ctn_optim *o); /* held by this rank */
ctn_status ctn__shard_norm(ctn_optim *o, int threads,
                           bool *finite); /* of all ranks' blocks, into o->norm */
/* The segments of this step, as far as they are this rank's; then the new values go to all ranks. */
ctn_status ctn__shard_sweep(ctn_optim *o, int threads);
/* Values in f32 on every rank, where they came in 16 bits. Collective. */
ctn_status ctn__shard_values(ctn_optim *o);

/* Whole arrays of sharded state, one at a time and the same on every rank: room for one parameter and one bucket of
 * each state, never for all of it. */
typedef struct ctn__shard_view ctn__shard_view;
CTN_MUST_CHECK ctn_status ctn__shard_view_new(ctn__shard_view **v, ctn_optim *o);
void ctn__shard_view_free(ctn__shard_view *v);
/* State k of parameter i, until the next call. Collective. */
CTN_MUST_CHECK ctn_status ctn__shard_bring(ctn__shard_view *v, int i, int k, float **data);
/* What was brought last was changed: keep this rank's part of it. Local. */
void ctn__shard_keep(ctn__shard_view *v, int i, int k);

/* As ctn_optim_visit, but arrays of sharded state come without their data, NULL. Local once the pool is settled. */
ctn_status ctn__optim_list(ctn_optim *o, ctn_state_fn fn, void *user);

/* ---- schedules (schedule.c) ---------------------------------------------------------------------- */

/* Takes over a caller's schedule. steps: what 0 stands for, 0: must be given. Errors: EARG. */
ctn_status ctn__sched_check(ctn_sched_opt *out, const ctn_sched_opt *s, int64_t steps);

/* ---- loss scaling (loss_scale.c) ----------------------------------------------------------------- */

void ctn__scale_taken(ctn_optim *o);
void ctn__scale_skipped(ctn_optim *o);
ctn_status ctn__scale_visit(ctn_optim *o, ctn_state_fn fn, void *user);

#endif
