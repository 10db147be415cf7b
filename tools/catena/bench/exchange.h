/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench NETWORK --exchange all, which bench.c calls.
 */
#ifndef CATENA_BENCH_EXCHANGE_H
#define CATENA_BENCH_EXCHANGE_H

#include <catena/dist.h>

#include "cli.h"
#include "model.h"

/* Make the optimizer of m exchange gradients over c. `way` is a word of --exchange; "none": no
 * exchange. */
ctn_status exchange_by(const args *a, const model *m, ctn_comm *c, const char *way);
/* A communicator of the job's ranks with the options of the command line. */
ctn_status exchange_comm(const args *a, ctn_comm **c);
/* Whether the first steps are still measuring if a progress thread is faster than polling. */
bool exchange_undecided(const model *m);
/* Time steps with every way of exchanging gradients alternately, on all ranks of the job, and
 * print how much of the exchange is hidden. */
ctn_status bench_exchange(const args *a, ctn_context *ctx, const model_opt *opt);

#endif
