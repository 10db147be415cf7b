/* SPDX-License-Identifier: Apache-2.0
 *
 * The forward pass over a dataset, for eval and predict.
 */
#ifndef CATENA_INFER_H
#define CATENA_INFER_H

#include "task.h"

/* One batch of results: y (b->n, per), row-major, for the samples first, first + 1, ... */
typedef ctn_status (*infer_fn)(void *user, const ctn_batch *b, const float *y, int64_t per,
                               int64_t first);
/* Runs set[0] in order and calls fn for each batch; stops at the first call that fails. expected:
 * values of a sample, which fn relies on; 0: any number. Errors: ESHAPE, those of fn. */
ctn_status infer(task *t, int64_t expected, infer_fn fn, void *user);
/* Room for so many results of `per` values; NULL: no memory, or more than there can be. */
void *room_for(int64_t count, int64_t per, size_t bytes);

/* The frame of a subcommand that needs --weights: checks, settings from beside the weights, and
 * error reporting. Returns the exit code. */
int infer_command(args *a, ctn_status (*work)(task *t, args *a));

/* Mean and deviation of the targets; each pair applies to consecutive elements of a result. */
typedef struct {
    int64_t n;
    double *mean, *std; /* NULL: results are not standardised */
} units;
ctn_status units_get(units *u, const task *t);
void units_free(units *u);
/* Element i of a result of `per` elements in physical units. */
double units_value(const units *u, double y, int64_t i, int64_t per);
double units_scale(const units *u, int64_t i, int64_t per);

#endif
