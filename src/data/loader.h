/* SPDX-License-Identifier: Apache-2.0
 *
 * What loader.c (the ring of batches and its threads) and fill.c (reading one batch, leaving out
 * unreadable samples, and the warnings about them) share.
 */
#ifndef CTN_DATA_LOADER_H
#define CTN_DATA_LOADER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/data.h"

enum {
    CTN__NAMED = 10, /* maximum number of left-out samples that warnings name */
    CTN__TEXT = 512
};

struct ctn__left_out {
    int64_t sample;
    char why[2 * CTN__TEXT]; /* its name, and the first line of the dataset's error */
};

struct ctn__slot {
    char *memory;             /* field f of the batch at offset[f] */
    uint64_t epoch, position; /* of the batch, counted over all ranks */
    int64_t claimed, n;       /* positions of this rank, and samples that could be read */
    /* shape[1] of the batch's ragged fields; shape[0] if they are joined */
    int64_t padded[CTN_DATA_FIELDS];
    int64_t joined[CTN_DATA_FIELDS]; /* rows of the samples that were read, if they are joined */
    _Atomic int64_t at;              /* sample being read, for the stall warning */
    int64_t size;                    /* of its images; 0: that of the dataset */
    bool ready;
    int64_t skipped;                      /* number of samples left out */
    struct ctn__left_out out[CTN__NAMED]; /* the first of them, in order */
    bool failed;                          /* there is no batch; st and error say why */
    ctn_status st;                        /* if not failed: of the last sample left out */
    char error[2 * CTN__TEXT];            /* a copy, because error records are per thread */
};

struct ctn_loader {
    ctn_dataset *ds;
    ctn_sampler sampler; /* order and seed; changed only while no thread is filling */
    int64_t batch;       /* most samples of this rank */
    int64_t step;        /* samples of all ranks */
    int64_t block;       /* samples of a block; 0: a step is one batch */
    bool drop_last;
    int64_t allowed; /* maximum number of samples left out per epoch; 0: none */
    uint64_t stall_ns;
    ctn_mix_opt mix; /* classes 0: none */
    int fields;      /* with those of lengths */
    /* Field with the lengths of a ragged field, or the ids of its rows; 0: not ragged. */
    int lengths[CTN_DATA_FIELDS];
    bool join;                        /* ragged fields are joined (join.c) */
    int join_index;                   /* field with numbers of rows of field 0; 0: none */
    int64_t longest[CTN_DATA_FIELDS]; /* rows that a sample of a ragged field has room for */
    int64_t pad_multiple;
    uint64_t pad[CTN_DATA_FIELDS];    /* bytes of the element that pads */
    ctn_field field[CTN_DATA_FIELDS]; /* of a full batch */
    size_t bytes[CTN_DATA_FIELDS];    /* of one sample in the batch, or of one row if ragged */
    size_t offset[CTN_DATA_FIELDS];
    int64_t *sizes; /* [nsizes] that images can have (sizes.c) */
    int nsizes;     /* 0: images are as in the dataset */
    int64_t largest, size_every;
    size_t labels; /* with mix: offset of the labels of a batch before they are mixed */
    uint64_t slots;
    struct ctn__slot *slot;
    int threads; /* running */
    pthread_t *thread;
    _Atomic bool drop; /* batches being filled are no longer wanted */
    _Atomic uint64_t fill_ns;

    /* used by the caller's thread only */
    ctn_sampler_state next;    /* next batch to deliver */
    ctn_loader_stats stats;    /* except fill_ns */
    int64_t skipped;           /* samples left out in this epoch */
    bool unnamed;              /* some of them were not named by a warning */
    int64_t named[CTN__NAMED]; /* samples that a warning has named */
    int nnamed;

    /* guards everything below and slot[].ready; no thread takes another lock while holding it */
    pthread_mutex_t lock;
    pthread_cond_t work;     /* to the threads: a slot is free, or pause or stop changed */
    pthread_cond_t done;     /* to the caller: a slot became ready, or a thread idle */
    ctn_sampler_state ahead; /* next batch to claim */
    uint64_t claimed, taken; /* batches claimed by threads, and taken by the caller, so far */
    bool held;               /* the caller still has batch taken-1 */
    int busy;                /* threads that are filling a slot */
    bool pause, stop;
};

/* This rank's batch for the next step of all ranks. Like ctn_loader_next, but *b is empty (and the
 * result CTN_OK) if only other ranks have samples left or if all of this rank's were left out. All
 * ranks get CTN_END after the same number of batches. */
ctn_status ctn__loader_next_of_all(ctn_loader *l, ctn_batch *b);
/* Where the rows of the batch that the caller has lie in the order of all ranks: row i at position
 * first + i * every of the epoch, if no sample was left out. */
void ctn__loader_place(const ctn_loader *l, int64_t *first, int64_t *every);
/* A batch without samples, whose fields have zero rows and the shapes of the last batch that was
 * delivered or skipped. */
void ctn__loader_no_rows(const ctn_loader *l, ctn_batch *b);

/* The multiple of l->pad_multiple that holds n rows, at least 1 row. */
int64_t ctn__padded(const ctn_loader *l, int64_t n);

/* The bytes of an element of type t with this value. Errors: EARG (t cannot represent it). */
ctn_status ctn__pad_element(const char *who, int f, ctn_dtype t, double value, uint64_t *out);
/* Writes n such elements of `size` bytes each. */
void ctn__pad_fill(void *dst, uint64_t element, size_t size, size_t n);

/* Joined fields (join.c). Check the options after the fields are set. Errors: EARG. */
ctn_status ctn__join_check(const ctn_loader *l);
/* Rows that each sample of a batch must have room for, so that all of them and the padding fit. */
int64_t ctn__join_room(const ctn_loader *l, int64_t longest);
/* Take in the sample that was read to `dst`, whose ragged fields have these lengths: write the ids
 * of its rows, and make its numbers of rows those of the batch. Errors: EFORMAT. */
ctn_status ctn__join_sample(const ctn_loader *l, struct ctn__slot *slot, void *const *dst,
                            const int64_t *length);
/* Write the padding after the last sample. */
void ctn__join_end(const ctn_loader *l, struct ctn__slot *slot);

/* Image sizes that change (sizes.c). Copies the options. Errors: EARG, ENOMEM. */
ctn_status ctn__sizes_set(ctn_loader *l, const ctn_loader_opt *o);
/* Whether field f of the dataset changes its size. */
bool ctn__sized(const ctn_loader *l, int f);
/* Makes the last two dimensions of a field this long. */
void ctn__sizes_apply(ctn_field *f, int64_t size);
/* The size of the images in the batch at this position. */
int64_t ctn__sizes_draw(const ctn_loader *l, uint64_t epoch, uint64_t position);

/* Position of this rank's first sample in a batch, in the order of all ranks. */
uint64_t ctn__fill_first(const ctn_loader *l, const struct ctn__slot *slot);
/* Reads the samples of a slot whose epoch, position and claimed are set. Called on any thread. */
void ctn__fill(ctn_loader *l, struct ctn__slot *slot);
/* Count and report the samples left out of the batch that is being delivered, and at the end of
 * an epoch. Called on the caller's thread. Errors: the batch's own, or too many left out. */
ctn_status ctn__fill_result(ctn_loader *l, struct ctn__slot *slot);
void ctn__fill_epoch_end(ctn_loader *l);
/* Warns that the caller has waited this long while samples at[0 .. n-1] are being read. */
void ctn__fill_stalled(const ctn_loader *l, uint64_t waited_ns, const int64_t *at, int n);

#endif
