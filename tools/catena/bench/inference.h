/* SPDX-License-Identifier: Apache-2.0
 *
 * catena bench NETWORK --inference, which bench.c calls.
 */
#ifndef CATENA_BENCH_INFERENCE_H
#define CATENA_BENCH_INFERENCE_H

#include "cli.h"

/* Uses --threads, --batch, --size, --precision, --steps and --json. */
ctn_status bench_inference(const args *a);

#endif
