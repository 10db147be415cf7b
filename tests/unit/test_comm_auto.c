/* SPDX-License-Identifier: Apache-2.0
 *
 * What measurement chooses on two ranks. The clock stands still except for messages of pieces,
 * which take a latency and a time per byte, so every choice follows from these two numbers. Nodes
 * with different numbers of ranks measure the same algorithms.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "support/clock.h"
#include "support/ok.h"

#include <cmocka.h>

enum { MOST = 8, MB = 1 << 20 };

/* The ranks, and the lowest rank of each one's node. */
static struct {
    int size;
    int node[MOST];
} job = {2, {0, 1}};

static struct {
    const ctn__net_vt *real;
    ctn__net_vt vt;
    uint64_t latency, native; /* ns of a message and of a sum by the transport */
    uint64_t bytes;           /* that take 1 ns; 0: no time */
} slow;

static ctn_status slow_send(ctn__net *n, const void *buf, size_t bytes, int to, int tag,
                            ctn__net_req *r)
{
    if (tag < CTN__TAG_PIECES)
        clock_stopped += slow.latency + (slow.bytes ? bytes / slow.bytes : 0);
    return slow.real->send(n, buf, bytes, to, tag, r);
}

static ctn_status slow_allreduce(ctn__net *n, void *buf, int64_t count, ctn_dtype type,
                                 uint64_t again, ctn__net_req *r)
{
    clock_stopped += slow.native;
    return slow.real->allreduce(n, buf, count, type, again, r);
}

static ctn_status no_region(ctn__net *n, size_t bytes, void **at)
{
    (void)n, (void)bytes, (void)at;
    return ctn_fail(CTN_EUNSUPPORTED, "no memory that other ranks can see");
}

/* ---- two ranks ------------------------------------------------------------------------------ */

typedef struct {
    ctn_comm *c;
    int64_t bytes; /* > 0: of gradients, to be cut into buckets; < 0: of one vector */
    char chosen[64], why[400];
} rank;

static void *choose(void *arg)
{
    rank *k = arg;
    const ctn__algorithm *a = NULL;
    ctn_status st = k->bytes > 0
                        ? ctn__comm_choose(k->c, k->bytes, NULL, k->chosen, sizeof k->chosen)
                        : ctn__comm_choose_one(k->c, -k->bytes, &a);
    if (st != CTN_OK) {
        snprintf(k->why, sizeof k->why, "%s", ctn_error_message());
        ctn_comm_fail(k->c, k->why);
    } else if (a) {
        snprintf(k->chosen, sizeof k->chosen, "%s", a->name);
    }
    ctn_error_clear();
    return NULL;
}

static void open_ranks(rank *k)
{
    ctn__net *net[MOST];
    OK(ctn__net_loopback_nodes(net, job.size, job.node));
    slow.real = net[0]->vt;
    slow.vt = *net[0]->vt;
    slow.vt.send = slow_send;
    slow.vt.allreduce = slow_allreduce;
    if (job.size == 2) slow.vt.region = no_region;
    for (int i = 0; i < job.size; i++) {
        net[i]->vt = &slow.vt;
        k[i] = (rank){0};
        /* A vector is one message. */
        OK(ctn__comm_new(&k[i].c, net[i], CTN_OPT(ctn_comm_opt, .segment = 5 * MB)));
    }
}

static void choose_on_all(rank *k, int64_t bytes)
{
    pthread_t thread[MOST];
    clock_stop();
    for (int i = 0; i < job.size; i++) {
        k[i].bytes = bytes;
        assert_int_equal(pthread_create(&thread[i], NULL, choose, &k[i]), 0);
    }
    for (int i = 0; i < job.size; i++) pthread_join(thread[i], NULL);
    clock_run();
    for (int i = 0; i < job.size; i++)
        if (k[i].why[0]) fail_msg("rank %d: %s", i, k[i].why);
    for (int i = 1; i < job.size; i++) assert_string_equal(k[0].chosen, k[i].chosen);
}

static void free_ranks(rank *k)
{
    for (int i = 0; i < job.size; i++) ctn_comm_free(k[i].c);
}

static void check(int64_t bytes, const char *want)
{
    rank k[MOST];
    open_ranks(k);
    choose_on_all(k, bytes);
    if (strcmp(k[0].chosen, want) != 0)
        fail_msg("%lld bytes, latency %llu: %s, expected %s", (long long)bytes,
                 (unsigned long long)slow.latency, k[0].chosen, want);
    free_ranks(k);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Doubling needs one message of each rank, ring two with half of the vector each. */
static void the_fastest_algorithm(void **state)
{
    (void)state;
    slow.latency = 1000;
    slow.bytes = 1000;
    slow.native = 0;
    check(100000, "flat, 1 MB");
    slow.native = 1000000000;
    check(100000, "doubling, 1 MB");
    check(-100000, "doubling");
    slow.latency = 0; /* no difference: the first of the table, except for the slow sum */
    check(100000, "ring, 1 MB");
}

/* Each bucket costs a latency, so long ones are faster. Lengths that are no longer than the
 * gradients are tried, and the first that is longer or equal. */
static void buckets_for_latency(void **state)
{
    (void)state;
    slow.latency = 1000000;
    slow.bytes = 0;
    slow.native = 1000000000;
    check(MB, "doubling, 1 MB");
    check(MB + 4, "doubling, 4 MB");
    check(4 * MB, "doubling, 4 MB");
    check(4 * MB + 4, "doubling, 16 MB");
}

/* The shortest bucket within 5 % of the best time. 4 MB + 8 bytes are 5, 2 and 1 buckets, each of
 * two messages, and the 8 MB + 16 bytes of both ranks take c = 2097156 ns. With a = 2 latencies,
 * 5a + c <= 1.05 (a + c) up to a = 0.01265 c, and 2a + c <= 1.05 (a + c) up to a = 0.0526 c. */
static void buckets_for_rate(void **state)
{
    (void)state;
    slow.bytes = 4;
    slow.native = 1000000000;
    slow.latency = 13100;
    check(4 * MB + 4, "doubling, 1 MB");
    slow.latency = 13400;
    check(4 * MB + 4, "doubling, 4 MB");
    slow.latency = 55800;
    check(4 * MB + 4, "doubling, 16 MB");
}

/* Vectors share a choice if their lengths are in the same power of four. */
static void lengths_share_a_choice(void **state)
{
    (void)state;
    static const struct {
        int64_t bytes;
        int at;
    } cases[] = {{1, 0}, {3, 0}, {4, 1}, {15, 1}, {16, 2}, {63, 2}, {64, 3}, {100000, 8}};
    slow.latency = 1000;
    slow.bytes = 1000;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rank k[MOST];
        slow.native = 1000000000;
        open_ranks(k);
        choose_on_all(k, -cases[i].bytes);
        assert_string_not_equal(k[0].chosen, "flat");
        for (int j = 0; j < 16; j++) assert_int_equal(k[0].c->choice[j] != NULL, j == cases[i].at);
        slow.native = 0; /* flat would be faster, but is not measured */
        choose_on_all(k, -cases[i].bytes);
        assert_string_not_equal(k[0].chosen, "flat");
        free_ranks(k);
    }
}

/* By the formulas, ranks that share a node with others would leave out another algorithm than ranks
 * that are alone. */
static void uneven_nodes(void **state)
{
    (void)state;
    static const struct {
        int size, node[MOST];
    } maps[] = {{3, {0, 0, 2}}, {8, {0, 0, 0, 0, 0, 0, 0, 7}}, {6, {0, 1, 1, 1, 4, 4}}};
    slow.latency = slow.native = slow.bytes = 0;
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        rank k[MOST];
        job.size = maps[i].size;
        memcpy(job.node, maps[i].node, sizeof job.node);
        open_ranks(k);
        choose_on_all(k, 100000);
        choose_on_all(k, -100000);
        free_ranks(k);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_algorithm), cmocka_unit_test(buckets_for_latency),
        cmocka_unit_test(buckets_for_rate),      cmocka_unit_test(lengths_share_a_choice),
        cmocka_unit_test(uneven_nodes), /* last, because it changes the job */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
