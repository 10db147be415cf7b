/* SPDX-License-Identifier: Apache-2.0
 *
 * Peak rates of this machine, measured on the spot with the library itself. `catena explain`
 * shows the speed of each kernel as a share of them.
 */
#ifndef CATENA_MACHINE_H
#define CATENA_MACHINE_H

#include "cli.h"

typedef struct {
    double f32_gflops;  /* a large matrix product in f32 */
    double low_gflops;  /* the same with --precision bf16 or f16; 0: not requested */
    const char *low;    /* name of that precision; NULL: f32 */
    double stream_gbps; /* adding two large tensors: two are read, one is written */
} machine_peak;

/* Takes a few hundred milliseconds. Uses the thread count and precision of the command line. */
ctn_status machine_measure(machine_peak *m, const args *a);
/* The peak for matrix products of this type in GFLOP/s; 0: not measured. */
double machine_gflops(const machine_peak *m, ctn_dtype type);

#endif
