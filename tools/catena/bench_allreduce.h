/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench allreduce, which bench.c calls.
 */
#ifndef CATENA_BENCH_ALLREDUCE_H
#define CATENA_BENCH_ALLREDUCE_H

#include "cli.h"

/* With --count, --dtype, --algorithm, --steps and --json, on all ranks of the job; returns the exit code. */
int bench_allreduce(const args *a);

#endif
