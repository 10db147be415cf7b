/* SPDX-License-Identifier: Apache-2.0
 *
 * What optimizers share: the pool, per-parameter groups, state pools, and the step op that turns
 * hyperparameters into sweep segments. The file of an optimizer adds only its defaults and `fill`.
 */
#ifndef CTN_OPTIM_OPTIM_H
#define CTN_OPTIM_OPTIM_H

#include <catena/optim.h>

#include "engine/sweep.h"
#include "graph/graph.h"

/* Settings of one parameter. t counts the parameter's own steps. Like its state, t does not change
 * while the parameter is frozen. */
typedef struct {
    double lr_scale, decay;
    int64_t t;
    int order;      /* index of the parameter in the list given to the optimizer */
    bool own_decay; /* decay was set by ctn_optim_group and overrides the optimizer's */
    void *factors;  /* state of Adafactor, owned; NULL: none yet */
} ctn__group;

/* A hyperparameter besides lr and decay: its name and its place in ctn_optim. */
typedef struct {
    const char *name; /* NULL ends a table */
    size_t at;
    bool share; /* must be in [0,1) */
} ctn__hyper;
#define CTN__HYPER(name, field) {name, offsetof(ctn_optim, field), false}
#define CTN__HYPER_SHARE(name, field) {name, offsetof(ctn_optim, field), true}

/* Gradient noise; eta 0: none (hooks.c). */
typedef struct {
    double eta, gamma;
    uint64_t seed;
} ctn__noise;

typedef struct ctn__lbfgs ctn__lbfgs;

struct ctn_optim {
    ctn_context *ctx;
    ctn__pool *pool;
    ctn_op step_op; /* one per optimizer, so that plans print its name */
    ctn__sweep_kind kind;
    int nstates;
    void *state[3];  /* pool->count elements each; if sharded: this rank's blocks only */
    float *master;   /* f32 values of this rank's blocks, if values are sent in 16 bits */
    ctn_dtype given; /* the type in which values were last sent */
    char **name;     /* of the pool's variables, then of the parked ones; group likewise */
    ctn__group *group;
    ctn__sweep_seg *seg; /* room for one per variable */
    int64_t nseg;        /* number used by the last step */
    double *partial;     /* scratch memory of the norm sweep */
    double lr, beta1, beta2, eps, dampening, decay;
    double more[2];          /* what only this optimizer has */
    const ctn__hyper *hyper; /* table; NULL: none besides lr and decay */
    double clip, norm;
    double clip_value, lasso;
    ctn__noise noise;
    ctn__lbfgs *lbfgs; /* NULL: another optimizer */
    bool decoupled;
    bool factored; /* Adafactor: the state is in `group` */
    bool guarded;  /* steps with gradients that are not finite are skipped */
    double rate;   /* factor of the learning rate, besides the schedule (train/nonfinite.c) */
    bool scaled;   /* loss scaling is on, with the options `scaling` (defaults filled in) */
    ctn_loss_scale_opt scaling;
    double scale;                /* current loss scale; representable as a float */
    double seed;                 /* scale of all contributions to the next step */
    bool weighted;               /* they have weights, ... */
    double weights;              /* ... of which this is the sum */
    double collected;            /* the same of those that ctn__optim_collect has taken */
    int64_t scale_good, skipped; /* steps since the scale changed; skipped steps in total */
    ctn_sched_opt sched;
    int64_t t; /* steps taken */
    /* set the hyperparameters of one segment for its step t (from 1) and learning rate */
    void (*fill)(const struct ctn_optim *o, int64_t t, double lr, ctn__sweep_seg *s);
    /* NULL, or set what depends on the norms of a parameter and its gradient, after `first` has
     * run, a sweep over the gradients if it is not 0 (trust.c). */
    void (*trust)(const struct ctn_optim *o, const ctn__group *g, double lr, double w_norm,
                  double g_norm, ctn__sweep_seg *s);
    ctn__sweep_kind first;
    /* NULL, or change the gradients before their norms are taken. */
    ctn_status (*change)(struct ctn_optim *o, int threads);
};

/* Sum of the squares of n elements of an array that is laid out like the pool, from `begin` on. */
static inline double ctn__optim_norm2(const ctn_optim *o, const void *array, int64_t begin,
                                      int64_t n, int threads, bool *finite)
{
    return ctn__sweep_norm2(ctn__pool_at(o->pool, array, begin), o->pool->dtype == CTN_F64, n,
                            o->partial, threads, finite);
}

static inline bool ctn__trained(const ctn_optim *o, int i)
{
    return o->pool->var[i] && o->pool->var[i]->trainable;
}

/* The number of parameters, and parameter i: those of the pool come first, then the parked ones.
 * NULL: the variable was freed. */
static inline int ctn__optim_params(const ctn_optim *o)
{
    return o->pool->nvar + o->pool->nparked;
}

static inline ctn_var *ctn__optim_var(const ctn_optim *o, int i)
{
    const ctn__pool *p = o->pool;
    return i < p->nvar ? p->var[i] : p->parked[i - p->nvar];
}

/* Does each rank keep state for its own blocks of the pool only? */
static inline bool ctn__optim_sharded(const ctn_optim *o)
{
    return o->pool->exchange && ctn__exchange_sharded(o->pool->exchange);
}

/* beta1, beta2 and eps; beta1 and beta2 (adam.c). */
extern const ctn__hyper ctn__hyper_adam[], ctn__hyper_betas[];
/* Errors: EARG if a decay rate is not in [0,1). */
ctn_status ctn__check_betas(const char *who, double beta1, double beta2);
static inline void ctn__fill_betas(const ctn_optim *o, ctn__sweep_seg *s)
{
    s->beta1 = o->beta1;
    s->rest1 = 1 - o->beta1;
    s->beta2 = o->beta2;
    s->rest2 = 1 - o->beta2;
}
/* An option, or its default if it is 0. */
static inline double ctn__or(double value, double otherwise)
{
    return value != 0 ? value : otherwise;
}

/* Create an optimizer from `like`, which has the kind, the defaults and `fill` set. */
ctn_status ctn__optim_new(ctn_optim **out, const ctn_optim *like, const char *name, ctn_vars vars,
                          double decay);

/* Move frozen parameters out of the pool and the others into it (arrange.c). Between scopes.
 * Errors: ENOMEM, ESTATE. */
ctn_status ctn__optim_arrange(ctn_optim *o);
/* The state of v, which is in the pool, is no longer needed, so that it can leave if frozen. */
void ctn__optim_forget(ctn_optim *o, const ctn_var *v);

/* ctn_backward of a loss that counts `weight` times; the step divides by the sum of weights. Either
 * all contributions to a step are weighted, or none is. */
ctn_status ctn__backward_weighted(const char *at, ctn_optim *o, ctn_tensor *loss, double weight);
/* Exact sums (ctn_dist_opt.exact): puts the contributions so far aside for the step. Between
 * scopes. */
void ctn__optim_collect(ctn_optim *o);

/* A step of a distributed optimizer to which this rank contributes nothing. */
ctn_status ctn__step_empty(const char *at, ctn_optim *o);

/* ---- the update of a range of the pool (update.c) ------------------------------------------- */

/* Apply the last step to elements [begin, end) of an unsharded pool. owner: the optimizer. */
void ctn__update_range(void *owner, int64_t begin, int64_t end, int threads);
/* The same for elements whose state begins at index `packed` of the state arrays. */
void ctn__update_part(ctn_optim *o, int64_t begin, int64_t end, int64_t packed, int threads);
/* Run another kind of sweep, one that changes gradients, over all segments and all elements whose
 * gradients this rank has. */
void ctn__sweep_gradients(ctn_optim *o, ctn__sweep_kind kind, int threads);
/* Copy values that were set since the masters were last rounded to `type` into the masters. */
void ctn__master_follow(float *master, const float *w, int64_t n, ctn_dtype type);

/* ---- sharded updates (shard.c) -------------------------------------------------------------- */

/* Keep only the state of this rank's blocks. Before the first step. Errors: ENOMEM, ESTATE. */
ctn_status ctn__shard_state(ctn_optim *o);
int64_t ctn__state_bytes(const ctn_optim *o); /* held by this rank */
/* A range of the pool's elements that this rank updates, and the index at which its state begins.
 * Start with {0}; false: there are no more. */
typedef struct {
    int64_t begin, end, packed;
    int next;
} ctn__own;
bool ctn__own_next(const ctn_optim *o, ctn__own *k);
/* Norm of the gradients over the blocks of all ranks, stored in o->norm. Collective. */
ctn_status ctn__shard_norm(ctn_optim *o, int threads, bool *finite);
/* Update this rank's part of the segments of this step, then start sending it to all ranks. */
ctn_status ctn__shard_sweep(ctn_optim *o, int threads);
/* Put the exact f32 values of this rank's blocks into the pool, for what reads them before the
 * update. */
void ctn__shard_exact(ctn_optim *o);
/* Bring the exact f32 values to every rank, if they were sent in 16 bits. Collective. */
ctn_status ctn__shard_values(ctn_optim *o);

/* Access to whole arrays of sharded state, one at a time and in the same order on every rank. It
 * needs memory for one parameter and one bucket of each state, never for the whole state. */
typedef struct ctn__shard_view ctn__shard_view;
CTN_MUST_CHECK ctn_status ctn__shard_view_new(ctn__shard_view **v, ctn_optim *o);
void ctn__shard_view_free(ctn__shard_view *v);
/* Get state k of parameter i; valid until the next call. Collective. */
CTN_MUST_CHECK ctn_status ctn__shard_bring(ctn__shard_view *v, int i, int k, void **data);
/* Store this rank's part of the array brought last, after the caller has changed it. Local. */
void ctn__shard_keep(ctn__shard_view *v, int i, int k);
/* Calls fn with the slices of state k of parameter i that this rank has, in the order of their
 * elements. packed: see ctn__shard_packed. */
ctn_status ctn__shard_slices(ctn_optim *o, const int64_t *packed, int i, int k, ctn_state_fn fn,
                             void *user);
/* Where this rank's block of each bucket begins in the packed state. The caller frees it; NULL: no
 * memory. */
int64_t *ctn__shard_packed(const ctn_optim *o);

/* Like ctn_optim_visit, with NULL for the data of sharded state. Local once the pool is settled. */
ctn_status ctn__optim_list(ctn_optim *o, ctn_state_fn fn, void *user);
/* Like ctn_optim_visit, but of sharded state only what this rank has: slices named
 * "array[begin:end]". Local once the pool is settled. */
ctn_status ctn__optim_visit_own(ctn_optim *o, ctn_state_fn fn, void *user);
/* Is this memory of the optimizer's that has the same values on all ranks? */
bool ctn__optim_same(const ctn_optim *o, const void *p);

/* ---- before the update (hooks.c, trust.c) ---------------------------------------------------- */

/* Does the step change gradients before the update, or need norms of single parameters? */
static inline bool ctn__optim_hooked(const ctn_optim *o)
{
    return o->clip_value > 0 || o->lasso != 0 || o->noise.eta > 0;
}
/* Clipping of values, noise and L1 decay, in place in the gradients. */
void ctn__hooks_run(ctn_optim *o, int threads);
/* Finish the segments of an optimizer that has `trust`. Collective if sharded. */
ctn_status ctn__trust_run(ctn_optim *o, double lr, int threads);

/* ---- Adafactor (adafactor.c) ----------------------------------------------------------------- */

/* The state of parameter i of the pool. */
ctn_status ctn__factors_visit(ctn_optim *o, int i, ctn_state_fn fn, void *user);
bool ctn__factors_have(const ctn_optim *o, const void *p); /* is this memory part of it? */

/* ---- L-BFGS (lbfgs.c) ------------------------------------------------------------------------ */

void ctn__lbfgs_free(ctn__lbfgs *l);
/* Is a step being taken? */
bool ctn__lbfgs_steps(const ctn_optim *o);
ctn_status ctn__lbfgs_visit(ctn_optim *o, ctn_state_fn fn, void *user);

/* ---- schedules (schedule.c) ----------------------------------------------------------------- */

/* Check the caller's schedule and copy it to *out. steps: length of the run, used if the schedule
 * has none; 0: the schedule must have it. Errors: EARG. */
ctn_status ctn__sched_check(ctn_sched_opt *out, const ctn_sched_opt *s, int64_t steps);

/* ---- loss scaling (loss_scale.c) ------------------------------------------------------------ */

void ctn__scale_taken(ctn_optim *o);
void ctn__scale_skipped(ctn_optim *o);
ctn_status ctn__scale_visit(ctn_optim *o, ctn_state_fn fn, void *user);

#endif
