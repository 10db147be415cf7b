/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench loader, which bench.c calls.
 */
#ifndef CATENA_BENCH_LOADER_H
#define CATENA_BENCH_LOADER_H

#include "cli.h"

/* Uses --data, --threads and --json. Returns the exit code. */
int bench_loader(const args *a);

#endif
