/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over ranks that are compared exactly. The values are small integers, so the order of
 * additions does not matter. Public headers only.
 */
#ifndef TESTS_MPI_CASES_H
#define TESTS_MPI_CASES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <catena/comm.h>

/* Reports what is wrong and ends the program, which ends the job. */
#define CHECK(ok)                                         \
    do {                                                  \
        if (!(ok)) check_failed(__FILE__, __LINE__, #ok); \
    } while (0)
#define DONE(call) CHECK((call) >= 0)
void check_failed(const char *file, int line, const char *what);

/* Replaces buf[0..count) of this rank by the expected sum. */
typedef void reference(void *buf, int64_t count, ctn_dtype type);

/* Runs every algorithm that fits, with every type and size up to `most` elements (the largest
 * size in f32 only). The wire type is the communicator's. With ref NULL, the expected sum is
 * computed from the known inputs of the ranks. */
void run_cases(ctn_comm *c, const char *name, ctn_dtype wire, int64_t most, reference *ref);
/* Broadcast, allgather, messages between two ranks, barrier. For at most 10 ranks. */
void run_others(ctn_comm *c);

#endif
