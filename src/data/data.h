/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of data/ share: the sampler struct (a loader keeps a copy of it), weighted draws,
 * and the sizes and checks of fields.
 */
#ifndef CTN_DATA_DATA_H
#define CTN_DATA_DATA_H

#include <catena/data.h>
#include "base/base.h"

struct ctn__alias;   /* alias.c */
struct ctn__buckets; /* buckets.c */

struct ctn_sampler {
    int64_t total;                /* samples, and so positions in an epoch, over all ranks */
    bool shuffle;                 /* false: in order */
    struct ctn__alias *alias;     /* weighted draws instead of a fixed order; NULL: none */
    struct ctn__buckets *buckets; /* similar lengths come together; NULL: not */
    ctn_sampler_fn fn;            /* the user's order; NULL: none */
    void *user;
    int rank, size;          /* this rank takes rank, rank + size, ... of the remaining positions */
    ctn_sampler_state state; /* its position counts the samples of all ranks */
};

/* Keep and release the tables of a copied sampler. */
void ctn__sampler_retain(const ctn_sampler *s);
void ctn__sampler_release(const ctn_sampler *s);

/* Number of this rank's samples from a position of the whole order to the end of the epoch. */
int64_t ctn__sampler_left(const ctn_sampler *s, uint64_t position);
/* Sample i of these; i is less than ctn__sampler_left(s, begin). */
int64_t ctn__sampler_sample(const ctn_sampler *s, uint64_t epoch, uint64_t begin, uint64_t i);

/* Element `position` of a permutation of {0 .. count-1}, one for each (seed, epoch). */
int64_t ctn__permute(uint64_t seed, uint64_t epoch, uint64_t position, uint64_t count);

/* A table of samples by length. Errors: EARG, ENOMEM. */
ctn_status ctn__buckets_new(struct ctn__buckets **out, int64_t count, const int64_t *length,
                            int64_t batch);
struct ctn__buckets *ctn__buckets_retain(struct ctn__buckets *b); /* both accept NULL */
void ctn__buckets_release(struct ctn__buckets *b);
int64_t ctn__buckets_sample(const struct ctn__buckets *b, uint64_t seed, uint64_t epoch,
                            uint64_t position);

/* A table for drawing samples by weight. Errors: EARG, ENOMEM. */
ctn_status ctn__alias_new(struct ctn__alias **out, int64_t count, const double *weight);
struct ctn__alias *ctn__alias_retain(struct ctn__alias *a); /* both accept NULL */
void ctn__alias_release(struct ctn__alias *a);
/* The sample that two uniform random numbers in [0,1) select. */
int64_t ctn__alias_draw(const struct ctn__alias *a, double column, double part);

/* The self pointer of a dataset whose `get` is this function; NULL if it has another one. */
void *ctn__dataset_self(const ctn_dataset *ds,
                        ctn_status (*get)(void *self, const ctn_sample *s, void *const *dst));

bool ctn__ragged(const ctn_field *f); /* f describes a sample */
/* Bytes of a field of one sample, or of one row of a ragged field; SIZE_MAX on overflow. dtype and
 * shape must be valid. */
size_t ctn__field_bytes(const ctn_field *f);
/* Checks the type and shape of a sample's field; `what` starts the message. */
ctn_status ctn__field_check(const char *what, int index, const ctn_field *f);
/* The same for places where fields must not be ragged. */
ctn_status ctn__field_check_fixed(const char *what, int index, const ctn_field *f);
/* Checks that the count + 1 offsets of a ragged field do not decrease, from 0 or more on. Errors:
 * EARG. */
ctn_status ctn__offsets_check(const char *what, int64_t count, const int64_t *offset);
/* The largest ctn_dataset_length of field f over all samples, at least 0. */
int64_t ctn__longest(const ctn_dataset *ds, int f);

#endif
