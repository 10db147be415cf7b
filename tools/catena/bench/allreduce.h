/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench allreduce, which bench.c calls.
 */
#ifndef CATENA_BENCH_ALLREDUCE_H
#define CATENA_BENCH_ALLREDUCE_H

#include <catena/comm.h>

#include "cli.h"

/* Uses --count, --dtype, --algorithm and --json; runs on all ranks of the job. Returns the exit
 * code. */
int bench_allreduce(const args *a);
/* Replace *ms by the largest value of all ranks. Collective. */
ctn_status slowest_rank(ctn_comm *c, double *ms);

#endif
