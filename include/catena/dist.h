/* SPDX-License-Identifier: Apache-2.0
 *
 * Training on several ranks. Every rank runs the same program on its own samples.
 * ctn_dist_optim makes an optimizer exchange its gradients; the rest of the program stays the
 * same. Collective functions must be called by all ranks in the same order.
 */
#ifndef CATENA_DIST_H
#define CATENA_DIST_H

#include <catena/comm.h>
#include <catena/dist_ops.h>
#include <catena/nn.h>
#include <catena/optim.h>
#include <catena/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When gradients are exchanged. CTN_DIST_OVERLAP is the default; the others are for comparison. */
enum {
    CTN_DIST_OVERLAP = 0,      /* during the backward pass, as soon as each bucket is ready */
    CTN_DIST_AFTER = 1,        /* after the backward pass */
    CTN_DIST_PER_PARAMETER = 2 /* after the backward pass, one parameter after another */
};

/* What advances messages while kernels run. */
enum {
    CTN_DIST_POLLS = 1, /* polling between kernels */
    CTN_DIST_THREAD = 2 /* polling and a thread, if MPI allows it */
};

/* Whether a step returns before the last layers are up to date. */
enum {
    CTN_DIST_DEFER = 1,   /* their updates overlap with the next forward pass */
    CTN_DIST_COMPLETE = 2 /* when a step returns, nothing is in flight */
};

/* Zero in a field means its default. */
typedef struct {
    size_t struct_size;
    /* Bytes of gradients per bucket. 0: measured together with the allreduce algorithm; if the
     * algorithm is given, 4 MB or more, depending on the number of ranks. */
    int64_t bucket;
    /* Each rank keeps only its part of the optimizer state and updates only that part, as in
     * ZeRO stage 1. Only with f32 parameters. */
    int shard;
    /* CTN_DIST_POLLS or CTN_DIST_THREAD; 0: whichever is faster in the first steps */
    int progress;
    int when; /* 0: CTN_DIST_OVERLAP; else CTN_DIST_AFTER or CTN_DIST_PER_PARAMETER */
    /* CTN_DIST_DEFER or CTN_DIST_COMPLETE. 0: complete on a communicator made from the
     * program's own (ctn_comm_from_mpi), deferred on any other. */
    int defer;
    /* The largest number of contributions of all ranks to a step. They are then summed exactly,
     * with the same bits for any number of ranks and any order, provided that the contributions
     * themselves have the same bits: a trainer whose loader delivers blocks
     * (ctn_loader_opt.block), with one thread per rank, sees to that. Nothing overlaps, and twice
     * as many bytes are sent. Not with shard, nor with a wire type or f64 parameters. 0: ordinary
     * sums. */
    int64_t exact;
} ctn_dist_opt;

/* Which calls are collective: steps always are. With CTN_DIST_COMPLETE, everything else that
 * reads or writes parameters is local: one rank may call ctn_read, ctn_var_get or
 * ctn_weights_save, or evaluate, while the other ranks do something else. With CTN_DIST_DEFER
 * these calls may wait until every other rank has made progress, which happens only inside
 * Catena or in its progress thread. The other ranks must therefore continue to their next step
 * or make the same call. ctn_dist_values and saving the state of a sharded optimizer are always
 * collective. */

/* Make every step of o average its gradients over the ranks of c. The average is weighted: a
 * trainer weights a rank's gradients by its samples, a plain ctn_backward has weight 1.
 * Parameters are set to those of rank 0; ctn_dist_broadcast_vars or a trainer does this for
 * states too. f64 gradients are summed and sent in f64, whatever the wire type. c is borrowed until
 * o is freed. Call it between scopes, before the first step. Collective. Errors: ESTATE, EARG,
 * EDTYPE, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_optim(ctn_optim *o, ctn_comm *c,
                                                 const ctn_dist_opt *opt);
/* Statistics since ctn_dist_optim; all zeros for an optimizer that is not distributed.
 * exposed_s: seconds spent waiting for the exchange. hidden_s: seconds of exchange that
 * overlapped with kernels. Local. */
typedef struct {
    size_t struct_size;
    double exposed_s, hidden_s;
    int64_t buckets;
    int64_t state_bytes; /* optimizer state on this rank */
    int64_t bucket;      /* bytes of the first bucket */
    int progress;        /* CTN_DIST_POLLS or CTN_DIST_THREAD; 0: not decided yet */
} ctn_dist_stats;
CTN_API void ctn_dist_get_stats(const ctn_optim *o, ctn_dist_stats *out);
/* Take part in a step without samples. Call it inside a scope. Collective with the steps of the
 * other ranks. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_step_empty_at(const char *at, ctn_optim *o);
#define ctn_dist_step_empty(o) ctn_dist_step_empty_at(CTN_HERE, o)
/* With sharded updates under a 16-bit policy, parameters hold 16-bit values between steps,
 * those that the forward pass reads. This call restores the f32 values, which the rank that
 * updates each part has, on every rank, so that they can be saved; ctn_trainer_save and
 * ctn_extend_weights call it. It does nothing for other optimizers. Call it between scopes.
 * Collective. Errors: EARG, ESTATE, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_values(ctn_optim *o);
/* Copy the values of all variables, parameters and states, from root to every rank. Call it
 * between scopes. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_broadcast_vars(ctn_comm *c, ctn_vars vars, int root);

/* Synchronised batch normalisation: every batch normalisation in the module computes its mean
 * and variance over the batches of all ranks. The batches may differ in size; a rank without
 * samples calls the network with zero rows. c is borrowed as long as the module is called; c NULL:
 * turn it off again. Local; the training steps after it are collective, evaluation stays
 * local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_sync_batch_norm(ctn_module *m, ctn_comm *c);

/* ---- samples and values ------------------------------------------------------------------------
 * To give each rank its part of the samples, call ctn_sampler_shard(s, ctn_comm_rank(c),
 * ctn_comm_size(c)) before the loader is made. Without it, each rank's dataset is that rank's
 * own. */

/* Weighted means over all ranks. On entry value[i] is this rank's mean over samples of total
 * weight weight[i]; on return it is the mean over all ranks, and weight[i] the total weight.
 * Weights are positive, or 0 for "no value"; the result is NaN if no rank has a value.
 * Collective. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_mean(ctn_comm *c, int n, double *value, double *weight);
/* ctn_evaluate over the batches of all ranks. Each sample counts once, however uneven the parts
 * are, and fn gets the same numbers on every rank. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_evaluate(ctn_comm *c, ctn_context *ctx,
                                                    ctn_loader *loader, ctn_loss_fn loss,
                                                    void *self, ctn_value_fn fn, void *user);
/* Make a trainer report means over all ranks: whenever `when` fires (when NULL: every epoch), just
 * before the log is written, reported values are averaged over the ranks, and its evaluators
 * work like ctn_dist_evaluate. Extensions must be called on all ranks after the same steps:
 * their triggers count steps or epochs, or depend on these averages. Local; the run is
 * collective. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_trainer(ctn_trainer *tr, ctn_comm *c,
                                                   const ctn_trigger *when);

/* ---- networks in parts -------------------------------------------------------------------------
 * A trainer's checkpoints assume that all ranks have the same network. For a network whose parts
 * are on different ranks, such as a chain, each rank saves and restores what it has. */

/* Save the states of all ranks as one checkpoint in a numbered folder of dir: every rank writes its
 * parts, under the names rank0.prefix.name, rank1.prefix.name, and so on. It becomes visible after
 * all ranks have written, so a job that is killed keeps the last one. The last two are kept. All
 * ranks must see dir. Each part of a split communicator needs a folder of its own. c NULL: this
 * rank alone. Call it between scopes. Collective. Errors, the same on all ranks: EARG (also a
 * sharded optimizer, and a folder in which another part saves), EIO, ESTATE, ENOMEM, EPEER,
 * EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_state_save(ctn_comm *c, const char *dir, int n,
                                                      const ctn_state_part *parts);
/* Restore the newest intact checkpoint of ctn_dist_state_save in dir. There must be as many ranks
 * as have saved it, with the same parts; all of it is checked before anything is changed. c NULL:
 * this rank alone. Call it between scopes. Collective. Errors, the same on all ranks: EARG,
 * ENOTFOUND, ESHAPE, EDTYPE, EFORMAT, EIO, ESTATE, ENOMEM, EPEER, EUNSUPPORTED. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_state_load(ctn_comm *c, const char *dir, int n,
                                                      const ctn_state_part *parts);

/* ---- where the time goes -----------------------------------------------------------------------
 * One Chrome trace of all ranks, or of a sample of them, on a common clock: kernels, gradients
 * in flight, waits, and input. Perfetto shows it, and `catena timeline` summarises it. The
 * contexts must be made with ctn_context_opt.spans, which limits the number of events kept;
 * ranks outside the sample do not need it.
 *
 * `ranks` is the maximum number of ranks in the trace; 0: 64. Rank 0 is always included and the
 * others are evenly spread. */

/* Whether this rank is in a timeline of at most `ranks` of `size` ranks: 1 or 0. Local. */
CTN_API int ctn_dist_timeline_has(int rank, int size, int ranks);
/* Start recording gradients in flight as well. Call it after ctn_dist_optim. Local. Errors:
 * EARG, ESTATE (no spans). */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_timeline_begin(ctn_context *ctx);
/* Write the last `steps` steps of an optimizer, or as many of them as all ranks of the sample
 * still have. Rank 0 writes the file, atomically. c NULL: this rank alone. Call it between
 * scopes. Collective, with the same arguments on all ranks. Errors, the same on all ranks:
 * EARG, ESTATE, ENOMEM, EIO, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_timeline_write(ctn_context *ctx, ctn_comm *c,
                                                          const char *path, int64_t steps,
                                                          int ranks);
/* ctn_dist_timeline_begin and _write for a trainer, including its waits for input. The file is
 * written when the run ends, but not after an error. Call it after ctn_dist_optim. Local; the
 * run is collective. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_extend_timeline(ctn_trainer *tr, const char *path,
                                                      int64_t steps, int ranks);

#ifdef __cplusplus
}
#endif
#endif
