/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench allreduce, which bench.c calls.
 */
#ifndef CATENA_BENCH_ALLREDUCE_H
#define CATENA_BENCH_ALLREDUCE_H

#include <catena/comm.h>

#include "cli.h"

/* With --count, --dtype, --algorithm, --steps and --json, on all ranks of the job; returns the exit code. */
int bench_allreduce(const args *a);
/* *ms becomes the largest of all ranks'. Collective. */
ctn_status slowest_rank(ctn_comm *c, double *ms);

#endif
