/* SPDX-License-Identifier: Apache-2.0
 *
 * What this machine can do at most, measured on the spot and through the library itself, so that the figures of
 * a plan have something to be a share of.
 */
#ifndef CATENA_MACHINE_H
#define CATENA_MACHINE_H

#include "cli.h"

typedef struct {
    double f32_gflops;  /* a large matrix product in f32 */
    double low_gflops;  /* the same under --precision bf16 or f16; 0: not asked for */
    const char *low;    /* name of that precision, NULL: f32 */
    double stream_gbps; /* a sum of two large tensors: three times their bytes */
} machine_peak;

/* Takes a few hundred milliseconds with the threads and the precision of the command line. */
ctn_status machine_measure(machine_peak *m, const args *a);
/* The peak for products of this type, GFLOP/s; 0: none was measured. */
double machine_gflops(const machine_peak *m, ctn_dtype type);

#endif
