/* SPDX-License-Identifier: Apache-2.0
 *
 * Training on several ranks: the same program on each, every rank with its own samples.
 * ctn_dist_optim makes an optimizer exchange its gradients; nothing else of a program changes.
 * Collective calls are made by all ranks in the same order.
 */
#ifndef CATENA_DIST_H
#define CATENA_DIST_H

#include <catena/comm.h>
#include <catena/nn.h>
#include <catena/optim.h>
#include <catena/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When gradients are exchanged; the others are for comparison. */
enum {
    CTN_DIST_OVERLAP = 0,      /* behind the kernels of backward, as soon as they are there */
    CTN_DIST_AFTER = 1,        /* behind backward */
    CTN_DIST_PER_PARAMETER = 2 /* behind backward, each parameter by itself, one after another */
};

/* What moves messages on while kernels run. */
enum {
    CTN_DIST_POLLS = 1, /* looks between kernels */
    CTN_DIST_THREAD = 2 /* and a thread, where MPI allows it */
};

/* Whether a step returns before the last layers are up to date. */
enum {
    CTN_DIST_DEFER = 1,   /* their updates overlap with the next forward pass */
    CTN_DIST_COMPLETE = 2 /* when a step returns, nothing is in flight */
};

/* Zero in a field means its default. */
typedef struct {
    size_t struct_size;
    int64_t bucket; /* bytes of gradients that are exchanged at a time, 0: as measured with the
                       algorithm, or 4 MB or more by the number of ranks where that is given */
    int shard;      /* each rank keeps the optimizer state of its part only and updates that part */
    int progress;   /* CTN_DIST_POLLS, CTN_DIST_THREAD, 0: the faster one of the first steps */
    int when;       /* CTN_DIST_OVERLAP */
    int defer;      /* CTN_DIST_DEFER, CTN_DIST_COMPLETE; 0: complete on a communicator made from a
                       program's own (ctn_comm_from_mpi), deferred on any other */
} ctn_dist_opt;

/* What is collective. Steps are. With CTN_DIST_COMPLETE everything else that reads or writes
 * parameters is local: ctn_read, ctn_var_get, ctn_weights_save, evaluation may happen on one rank
 * while the others do something else. With CTN_DIST_DEFER these calls may wait until every other
 * rank has made progress, which a rank makes only inside of Catena (or by Catena's progress
 * thread): all ranks go on to their next step, or make the same call. ctn_dist_values and saving
 * the state of a sharded optimizer are always collective. */

/* From now on every step of o averages gradients over the ranks of c: a rank's contributions
 * count by their weights (samples), a plain ctn_backward counts 1. Parameters become rank 0's
 * (states too with ctn_dist_broadcast_vars or a trainer). c is borrowed until o is freed. Between scopes, before the first step. Collective.
 * Errors: ESTATE, EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_optim(ctn_optim *o, ctn_comm *c,
                                                 const ctn_dist_opt *opt);
/* Seconds since it was distributed: waited for the exchange, and exchanged while kernels ran.
 * Local; zeros for an optimizer that is not. */
typedef struct {
    size_t struct_size;
    double exposed_s, hidden_s;
    int64_t buckets;
    int64_t state_bytes; /* of the optimizer on this rank */
    int64_t bucket;      /* bytes of the first one */
    int progress;        /* CTN_DIST_POLLS, CTN_DIST_THREAD, 0: not decided yet */
} ctn_dist_stats;
CTN_API void ctn_dist_look(const ctn_optim *o, ctn_dist_stats *out);
/* Take part in a step without samples. Inside a scope. Collective with the other ranks' steps. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_step_empty_at(const char *at, ctn_optim *o);
#define ctn_dist_step_empty(o) ctn_dist_step_empty_at(CTN_HERE, o)
/* With sharded updates under a 16-bit policy, parameters have 16-bit values between steps: those that
 * forward reads. This makes them f32 on every rank, as the optimizer of each part has them, to be
 * saved; ctn_trainer_save and ctn_extend_weights do it. Nothing is done for others. Between scopes.
 * Collective. Errors: EARG, ESTATE, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_values(ctn_optim *o);
/* Values of root on every rank, parameters and states. Between scopes. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_broadcast_vars(ctn_comm *c, ctn_vars vars, int root);

/* ---- communication that gradients flow through --------------------------------------------------
 * Collective when they run: all ranks record them in the same order, with equal shapes, and
 * gradients flow through them on all ranks or on none. The gradient is that of the sum of all
 * ranks' losses. They run once each, in the order of recording, and are never left out (rule 1).
 * Result: scope. */

/* y = sum of x over ranks; gradient: sum of gy over ranks. f32, f64. */
CTN_API ctn_tensor *ctn_dist_allreduce_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_allreduce(c, x) ctn_dist_allreduce_at(CTN_HERE, c, x)
/* y (size*N,...): all x (N,...) in rank order, of any type; gradient: reduce_scatter. */
CTN_API ctn_tensor *ctn_dist_allgather_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_allgather(c, x) ctn_dist_allgather_at(CTN_HERE, c, x)
/* y (N,...): this rank's part of the sum of x (size*N,...) over ranks; gradient: allgather. */
CTN_API ctn_tensor *ctn_dist_reduce_scatter_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_reduce_scatter(c, x) ctn_dist_reduce_scatter_at(CTN_HERE, c, x)
/* y = x of root, of any type; gradient: sum over ranks at root, zero elsewhere. */
CTN_API ctn_tensor *ctn_dist_broadcast_at(const char *at, ctn_comm *c, ctn_tensor *x, int root);
#define ctn_dist_broadcast(c, x, root) ctn_dist_broadcast_at(CTN_HERE, c, x, root)

/* Every batch normalisation of the module takes mean and variance over the batches of all ranks,
 * which may differ in size; a rank without samples calls the network with zero rows. c is
 * borrowed as long as the module is called; NULL: each rank by itself again. Local; the training
 * steps after it are collective, evaluation stays local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_sync_batch_norm(ctn_module *m, ctn_comm *c);

/* ---- samples and values -------------------------------------------------------------------------
 * A rank's part of the samples: ctn_sampler_shard(s, ctn_comm_rank(c), ctn_comm_size(c)) before
 * the loader is made; without it a rank has samples of its own. */

/* value[i], this rank's mean over samples of summed weight weight[i], becomes the mean over all
 * ranks, and weight[i] its weight; NaN where nobody has any. Weights are 0 (no value) or
 * positive. Collective. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_mean(ctn_comm *c, int n, double *value, double *weight);
/* ctn_evaluate over the batches of all ranks, each sample counted once however uneven the parts
 * are; fn gets the same numbers on every rank. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_evaluate(ctn_comm *c, ctn_context *ctx,
                                                    ctn_loader *loader, ctn_loss_fn loss,
                                                    void *self, ctn_value_fn fn, void *user);
/* What a training reports becomes means over all ranks whenever `when` fires (every epoch), just
 * before the log is written, and its evaluators work as ctn_dist_evaluate. Extensions are called
 * on all ranks at the same steps: triggers count steps or epochs, or look at these values.
 * Local; the run is collective. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_trainer(ctn_trainer *tr, ctn_comm *c,
                                                   const ctn_trigger *when);

/* ---- where the time goes ------------------------------------------------------------------------
 * One Chrome trace of all ranks, or of a sample of them (Perfetto shows it, `catena timeline` sums it up):
 * kernels, gradients on their way, waits, input, on one clock. For contexts made with
 * ctn_context_opt.spans, which keep so many of the latest events; ranks that are not in the sample need none.
 *
 * `ranks` is the maximum number of ranks in the trace, 0: 64. Rank 0 is always in it, the others are evenly spread. */

/* 1: a timeline of at most `ranks` of `size` ranks has this rank; 0: it does not. Local. */
CTN_API int ctn_dist_timeline_has(int rank, int size, int ranks);
/* Gradients on their way are kept too from now on. After ctn_dist_optim. Local. Errors: EARG, ESTATE
 * (no spans). */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_timeline_begin(ctn_context *ctx);
/* The last `steps` steps of an optimizer, or as many of them as all ranks of the sample still have; rank 0
 * writes the file, whole or not at all. c NULL: of this rank alone. Between scopes. Collective, with the same
 * arguments. Errors, the same on all ranks: EARG, ESTATE, ENOMEM, EIO, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_timeline_write(ctn_context *ctx, ctn_comm *c,
                                                          const char *path, int64_t steps,
                                                          int ranks);
/* Both for a training, with its waits for input: written when the run ends, unless by an error. After
 * ctn_dist_optim. Local; the run is collective. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_timeline(ctn_trainer *tr, const char *path,
                                                      int64_t steps, int ranks);

#ifdef __cplusplus
}
#endif
#endif
