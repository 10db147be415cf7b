/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench NETWORK --exchange all, which bench.c calls.
 */
#ifndef CATENA_BENCH_EXCHANGE_H
#define CATENA_BENCH_EXCHANGE_H

#include <catena/dist.h>

#include "cli.h"
#include "model.h"

/* The optimizer of m exchanges gradients over c as `way` says, a word of --exchange; "none": it does not. */
ctn_status exchange_by(const args *a, const model *m, ctn_comm *c, const char *way);
/* A communicator of the job's ranks with the options of the command line. */
ctn_status exchange_comm(const args *a, ctn_comm **c);
/* Which way of progress is faster is still being tried. */
bool exchange_undecided(const model *m);
/* Every way of exchanging gradients in turn, on all ranks of the job: the step, and how much of the exchange is hidden. */
ctn_status bench_exchange(const args *a, ctn_context *ctx, const model_opt *opt);

#endif
