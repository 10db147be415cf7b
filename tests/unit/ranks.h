/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads as ranks, for tests of src/distributed. Each has its own context and communicator. No
 * rank has cores of its own, so their runs take turns except while they wait for each other
 * (rule 17).
 */
#ifndef RANKS_H
#define RANKS_H

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/dist.h>
#include <catena/ops.h>

#include <cmocka.h>

#include "support/ok.h"

enum { MOST = 4, ROOM = 8 }; /* ranks of most tests, and of any */

typedef struct job job;
struct job {
    ctn_comm *c;
    ctn_context *ctx;
    int rank, size;
    void (*work)(job *j);
    void *arg;
    /* The first error. cmocka's asserts work only in the thread that runs the test. */
    char why[600];
    pthread_t thread;
};

#define CHECK(j, ok, ...)                                                                        \
    do {                                                                                         \
        if (!(ok)) {                                                                             \
            int n_ = (j)->why[0]                                                                 \
                         ? (int)sizeof(j)->why /* keep the first one */                          \
                         : snprintf((j)->why, sizeof(j)->why,                                    \
                                    "rank %d of %d, line %d: ", (j)->rank, (j)->size, __LINE__); \
            snprintf((j)->why + n_, sizeof(j)->why - (size_t)n_, __VA_ARGS__);                   \
            return;                                                                              \
        }                                                                                        \
    } while (0)
#define TRY(j, call) CHECK(j, (call) == CTN_OK, "%s: %s", #call, ctn_error_message())

static void *begin(void *p)
{
    job *j = p;
    ctn_error_clear();
    j->work(j);
    for (int i = 0; j->why[0] && i < j->size; i++) ctn_comm_fail(j[i - j->rank].c, j->why);
    return NULL;
}

/* The type in which the ranks send gradients, and their precision; a test may set them. */
static ctn_dtype wire;
static ctn_precision precision;

static void on_ranks(int size, ctn_mode mode, void (*work)(job *), void *arg)
{
    job j[ROOM] = {{0}};
    ctn_comm *c[ROOM];
    OK(ctn_comm_loopback(c, size, CTN_OPT(ctn_comm_opt, .algorithm = "ring", .wire = wire)));
    for (int i = 0; i < size; i++) {
        j[i] = (job){.c = c[i], .rank = i, .size = size, .work = work, .arg = arg};
        OK(ctn_context_new(&j[i].ctx,
                           CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5, .mode = mode,
                                   .precision = precision, .slow_precision = 1)));
    }
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_create(&j[i].thread, NULL, begin, &j[i]), 0);
    for (int i = 0; i < size; i++) pthread_join(j[i].thread, NULL);
    for (int i = 0; i < size; i++)
        if (j[i].why[0] && !strstr(j[i].why, "another rank")) fail_msg("%s", j[i].why);
    for (int i = 0; i < size; i++) {
        ctn_context_free(j[i].ctx);
        ctn_comm_free(c[i]);
    }
}

static const ctn_mode modes[] = {CTN_MODE_PLANNED, CTN_MODE_EAGER};

#endif
