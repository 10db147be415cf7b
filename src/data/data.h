/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of data/ share: the sampler as a plain value (a loader keeps a copy of one), sizes
 * of fields, and reading of option structs.
 */
#ifndef CTN_DATA_DATA_H
#define CTN_DATA_DATA_H

#include <catena/data.h>
#include "base/base.h"

struct ctn__alias; /* alias.c */

struct ctn_sampler {
    int64_t total;            /* positions of an epoch over all ranks, also the number of samples */
    bool shuffle;             /* else in order */
    struct ctn__alias *alias; /* weighted: draws instead of an order; else NULL */
    int rank, size;           /* this rank's positions are rank, rank + size, ... of what is left */
    ctn_sampler_state state;  /* position: of all ranks */
};

/* Samples of this rank from a position of the whole order to the end of the epoch. */
int64_t ctn__sampler_left(const ctn_sampler *s, uint64_t position);
/* The one with number i of them; i is less than ctn__sampler_left(s, begin). */
int64_t ctn__sampler_sample(const ctn_sampler *s, uint64_t epoch, uint64_t begin, uint64_t i);

/* A table of draws from weights of samples. Errors: EARG, ENOMEM. */
ctn_status ctn__alias_new(struct ctn__alias **out, int64_t count, const double *weight);
struct ctn__alias *ctn__alias_retain(struct ctn__alias *a); /* NULL is fine, and for release */
void ctn__alias_release(struct ctn__alias *a);
/* The sample for two uniform numbers in [0,1). */
int64_t ctn__alias_draw(const struct ctn__alias *a, double column, double part);

/* The object behind a dataset whose samples come from `get`; NULL: it is of another kind. */
void *ctn__dataset_self(const ctn_dataset *ds,
                        ctn_status (*get)(void *self, const ctn_sample *s, void *const *dst));

/* Bytes of one sample's field, SIZE_MAX when they do not fit. dtype and shape are valid. */
size_t ctn__field_bytes(const ctn_field *f);
/* Checks the type and shape of a sample's field; `what` starts the message. */
ctn_status ctn__field_check(const char *what, int index, const ctn_field *f);

#endif
