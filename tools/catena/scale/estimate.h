/* SPDX-License-Identifier: Apache-2.0
 *
 * The model of a job on a large machine, without the simulator: what a sum of gradients and a step
 * take, from formulas whose constants were fitted to simulations (fitted.c, made by dev/scale fit).
 */
#ifndef CATENA_SCALE_ESTIMATE_H
#define CATENA_SCALE_ESTIMATE_H

#include "scale/scale.h"

/* Of one algorithm on one machine with p ranks: a message takes alpha p^alpha_grows, and a byte
 * takes beta p^beta_grows, because more ranks are farther apart and share more links. To add a byte
 * takes gamma more, but only of about the first `alone` bytes: later ones are added while others
 * travel. */
typedef struct {
    const char *platform, *algorithm;
    double alpha, alpha_grows, beta, beta_grows, gamma, alone;
    int64_t most; /* ranks in a simulation */
} fitted;

extern const fitted fitted_costs[]; /* until platform is NULL */

typedef struct {
    const char *algorithm;
    int wire;       /* bytes of a gradient on the network */
    int64_t bucket; /* bytes of gradients, 4 for each */
    bool shard;     /* every rank updates a part of the parameters */
} exchange_way;

/* Seconds of an allreduce of this many bytes; < 0: the model does not know the algorithm. */
double estimate_sum(const char *machine, const char *algorithm, int64_t ranks, double bytes);
/* Seconds of a step; < 0: the same. */
double estimate_step(const events *e, const char *machine, int64_t ranks, const exchange_way *w);
/* Bytes that a rank sends in a step. */
double estimate_sent(const events *e, int64_t ranks, const exchange_way *w);
/* The fastest way: algorithm and bucket, and the type on the network if way->wire is 0. Of ways
 * that are as fast, the one that sends least. Sharded updates have one algorithm. Returns the
 * seconds of a step; < 0: the model does not know the algorithm. */
double estimate_best(const events *e, const char *machine, int64_t ranks, exchange_way *way);

#endif
