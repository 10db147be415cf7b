/* SPDX-License-Identifier: Apache-2.0
 *
 * What loader.c (the ring and its threads) and fill.c (one batch: its samples, what is left out of
 * it and what is told of that) share.
 */
#ifndef CTN_DATA_LOADER_H
#define CTN_DATA_LOADER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/data.h"

enum {
    CTN__NAMED = 10, /* samples left out that are named by a warning */
    CTN__TEXT = 512
};

struct ctn__left_out {
    int64_t sample;
    char why[2 * CTN__TEXT]; /* its name, and the first line of the dataset's error */
};

struct ctn__slot {
    char *memory;             /* field f of the batch at offset[f] */
    uint64_t epoch, position; /* of the batch of all ranks */
    int64_t claimed, n;       /* positions of this rank, and samples that came of them */
    _Atomic int64_t at;       /* sample being read, for the warning of a stall */
    bool ready;
    int64_t skipped;                      /* samples left out, and the first of them */
    struct ctn__left_out out[CTN__NAMED]; /* of the batch, in order */
    bool failed;                          /* there is no batch: st and error say why */
    ctn_status st;                        /* or of the last sample left out */
    char error[2 * CTN__TEXT];            /* error records are per thread, so the text is kept */
};

struct ctn_loader {
    ctn_dataset *ds;
    ctn_sampler sampler; /* order and seed; changes only while no thread is filling */
    int64_t batch;
    bool drop_last;
    int64_t allowed; /* samples that may be left out in an epoch; 0: none */
    uint64_t stall_ns;
    ctn_mix_opt mix; /* classes 0: none */
    int fields;
    ctn_field field[CTN_DATA_FIELDS]; /* of a full batch */
    size_t bytes[CTN_DATA_FIELDS];    /* of one sample in the batch */
    size_t offset[CTN_DATA_FIELDS];
    size_t labels; /* with mix: where the classes of a batch stand until they are mixed */
    uint64_t slots;
    struct ctn__slot *slot;
    int threads; /* running */
    pthread_t *thread;
    _Atomic bool drop; /* what is being filled is not wanted any more */
    _Atomic uint64_t fill_ns;

    /* the caller's thread only */
    ctn_sampler_state next;    /* next batch to deliver */
    ctn_loader_stats stats;    /* but fill_ns */
    int64_t skipped;           /* samples left out of this epoch */
    bool unnamed;              /* some of them without a warning */
    int64_t named[CTN__NAMED]; /* samples that a warning told of */
    int nnamed;

    pthread_mutex_t lock;    /* guards all below and slot[].ready; threads hold no other under it */
    pthread_cond_t work;     /* to the threads: a slot is free, or pause or stop changed */
    pthread_cond_t done;     /* to the caller: a slot became ready, or a thread idle */
    ctn_sampler_state ahead; /* next batch to claim */
    uint64_t claimed, taken; /* batches claimed by threads, and taken by the caller, so far */
    bool held;               /* the caller still has batch taken-1 */
    int busy;                /* threads filling */
    bool pause, stop;
};

/* The batch of this rank at the next step of all ranks: as ctn_loader_next, but *b is empty (and the
 * result CTN_OK) when only others have samples left, or when all of this rank's were left out.
 * CTN_END comes on every rank after as many batches. */
ctn_status ctn__loader_next_of_all(ctn_loader *l, ctn_batch *b);

/* Read the samples of a slot whose epoch, position and claimed are set. On any thread. */
void ctn__fill(ctn_loader *l, struct ctn__slot *slot);
/* Count and tell what was left out of the batch now delivered; and at the end of an epoch. The
 * caller's thread. Errors: the batch's own, or too many left out. */
ctn_status ctn__fill_result(ctn_loader *l, struct ctn__slot *slot);
void ctn__fill_epoch_end(ctn_loader *l);
/* Warn that the caller has waited for so long while samples at[0 .. n-1] are being read. */
void ctn__fill_stalled(const ctn_loader *l, uint64_t waited_ns, const int64_t *at, int n);

#endif
