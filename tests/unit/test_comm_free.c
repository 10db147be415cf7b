/* SPDX-License-Identifier: Apache-2.0
 *
 * Freeing a communicator whose transport waits for the other ranks when it frees shared memory, as
 * MPI does. A rank that has failed does not free it, so the others must not either, even if they
 * have finished and know nothing of the failure yet.
 * Labels: threads
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"
#include "support/ok.h"

#include <cmocka.h>

enum { MOST = 3 };

static struct {
    const ctn__net_vt *real;
    ctn__net_vt vt;
    ctn__net *net[MOST];
    bool freed[MOST];
    atomic_int finished; /* ranks that have left the last barrier */
    atomic_int waiting;  /* ranks in the collective free */
} shared;

/* Called without the other ranks, MPI would wait forever. */
static void free_together(ctn__net *n)
{
    shared.freed[n->rank] = true;
    atomic_fetch_add(&shared.waiting, 1);
    shared.real->free(n);
}

typedef struct {
    ctn_comm *c;
    int size;
    bool fails;
    char why[400];
    pthread_t thread;
} rank;

static void *work(void *arg)
{
    rank *k = arg;
    float x[1000] = {1};
    ctn_error_clear();
    if (ctn_comm_allreduce(k->c, x, 1000, CTN_F32) < 0 || ctn_comm_barrier(k->c) < 0)
        snprintf(k->why, sizeof k->why, "%s", ctn_error_message());
    atomic_fetch_add(&shared.finished, 1);
    /* A rank that is still in the barrier would hear of the failure there. */
    while (k->fails && atomic_load(&shared.finished) < k->size) sched_yield();
    if (k->fails) ctn_comm_break(k->c, "cannot write the results");
    ctn_comm_free(k->c);
    if (!k->why[0] && ctn_error_status() < 0)
        snprintf(k->why, sizeof k->why, "freeing left the error %s", ctn_error_message());
    return NULL;
}

static void run(int size, int failing)
{
    rank k[MOST] = {{0}};
    OK(ctn__net_loopback(shared.net, size));
    shared.real = shared.net[0]->vt;
    shared.vt = *shared.real;
    shared.vt.free = free_together;
    shared.vt.together = true;
    atomic_store(&shared.finished, 0);
    atomic_store(&shared.waiting, 0);
    for (int i = 0; i < size; i++) {
        shared.freed[i] = false;
        shared.net[i]->vt = &shared.vt;
        k[i].size = size;
        k[i].fails = i == failing;
        OK(ctn__comm_new(&k[i].c, shared.net[i], CTN_OPT(ctn_comm_opt, .algorithm = "rsap")));
    }
    for (int i = 0; i < size; i++)
        assert_int_equal(pthread_create(&k[i].thread, NULL, work, &k[i]), 0);
    for (int i = 0; i < size; i++) pthread_join(k[i].thread, NULL);
    for (int i = 0; i < size; i++)
        if (k[i].why[0]) fail_msg("rank %d: %s", i, k[i].why);
    assert_int_equal(shared.waiting, failing < 0 ? size : 0);
    for (int i = 0; i < size; i++)
        if (!shared.freed[i]) shared.real->free(shared.net[i]);
}

static void all_free_together(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size++) run(size, -1);
}

static void one_fails_at_the_end(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST; size++)
        for (int failing = 0; failing < size; failing++) run(size, failing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_free_together),
        cmocka_unit_test(one_fails_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
