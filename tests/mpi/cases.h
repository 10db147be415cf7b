/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over ranks, compared exactly: values are small whole numbers, so that every order of adding
 * gives the same. Public headers only.
 */
#ifndef TESTS_MPI_CASES_H
#define TESTS_MPI_CASES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <catena/comm.h>

/* Ends the program, which ends the job, with what is wrong. */
#define CHECK(ok)                                         \
    do {                                                  \
        if (!(ok)) check_failed(__FILE__, __LINE__, #ok); \
    } while (0)
#define DONE(call) CHECK((call) >= 0)
void check_failed(const char *file, int line, const char *what);

/* buf[0..count) of this rank becomes the sum that is expected. */
typedef void reference(void *buf, int64_t count, ctn_dtype type);

/* Every algorithm that fits, every type and size up to `most` elements (the largest in f32
 * only). The wire is the communicator's. ref NULL: the sum is computed from what the ranks are
 * known to have put in. */
void run_cases(ctn_comm *c, const char *name, ctn_dtype wire, int64_t most, reference *ref);
/* Broadcast, allgather, barrier. */
void run_others(ctn_comm *c);

#endif
