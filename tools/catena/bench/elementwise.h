/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench elementwise, which bench.c calls.
 */
#ifndef CATENA_BENCH_ELEMENTWISE_H
#define CATENA_BENCH_ELEMENTWISE_H

#include "cli.h"

/* Uses --threads and --json. Returns the exit code. */
int bench_elementwise(const args *a);

#endif
