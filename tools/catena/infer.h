/* SPDX-License-Identifier: Apache-2.0
 *
 * The forward pass over a dataset, for eval and predict.
 */
#ifndef CATENA_INFER_H
#define CATENA_INFER_H

#include "task.h"

/* One batch of results: y (b->n, per) row-major, of samples first, first + 1, ... */
typedef ctn_status (*infer_fn)(void *user, const ctn_batch *b, const float *y, int64_t per,
                               int64_t first);
/* The first set in order; ends with the first call of fn that fails. */
ctn_status infer(task *t, infer_fn fn, void *user);

/* What a subcommand that wants --weights does around its work: checks, settings that stand beside the weights,
 * the error it ends with. Returns the exit code. */
int infer_command(args *a, ctn_status (*work)(task *t, args *a));

/* Mean and deviation of the targets, spread over the elements of a result. */
typedef struct {
    int64_t n;
    double *mean, *std; /* NULL: results are as they are */
} units;
ctn_status units_get(units *u, const task *t);
void units_free(units *u);
/* Element i of a result of `per` elements in physical units. */
double units_value(const units *u, double y, int64_t i, int64_t per);
double units_scale(const units *u, int64_t i, int64_t per);

#endif
