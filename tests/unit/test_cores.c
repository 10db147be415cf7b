/* SPDX-License-Identifier: Apache-2.0
 *
 * The core plan of a job: disjoint core sets are kept, a set that several ranks share is divided
 * among them, overlapping sets are reported, and ten thousand ranks are planned at once.
 */
#include "cores.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { MOST = 10240 };
static seat seats[MOST];
static share shares[MOST];

/* Places rank r on CPUs first to last of a machine; each CPU is a core. */
static void sit(int r, const char *machine, int first, int last)
{
    seat *s = &seats[r];
    memset(s, 0, sizeof *s);
    s->rank = r;
    s->cores = last - first + 1;
    snprintf(s->machine, sizeof s->machine, "%s", machine);
    for (int i = first; i <= last; i++) CPU_SET((size_t)i, &s->cpus);
}

static void expect(int r, int machine_ranks, int part, int parts)
{
    assert_int_equal(shares[r].code, -1);
    assert_int_equal(shares[r].machine_ranks, machine_ranks);
    assert_int_equal(shares[r].part, part);
    assert_int_equal(shares[r].parts, parts);
}

static void bound_apart(void **state)
{
    (void)state;
    for (int r = 0; r < 4; r++) sit(r, "a", 2 * r, 2 * r + 1);
    assert_int_equal(cores_plan(seats, 4, shares).kind, CORES_FIT);
    for (int r = 0; r < 4; r++) expect(r, 4, 0, 1);
}

static void bound_not_at_all(void **state)
{
    (void)state;
    for (int r = 0; r < 3; r++) sit(r, "a", 0, 5);
    for (int r = 3; r < 5; r++) sit(r, "b", 0, 5);
    assert_int_equal(cores_plan(seats, 5, shares).kind, CORES_FIT);
    for (int r = 0; r < 3; r++) expect(r, 3, r, 3);
    for (int r = 3; r < 5; r++) expect(r, 2, r - 3, 2);
}

/* Two NUMA nodes, assigned alternately; a third set belongs to one rank alone. */
static void bound_in_groups(void **state)
{
    (void)state;
    for (int r = 0; r < 5; r++) sit(r, "a", r % 2 ? 4 : 0, r % 2 ? 7 : 3);
    sit(5, "a", 8, 8);
    assert_int_equal(cores_plan(seats, 6, shares).kind, CORES_FIT);
    for (int r = 0; r < 5; r++) expect(r, 6, r / 2, r % 2 ? 2 : 3);
    expect(5, 6, 0, 1);
}

static void too_many_in_a_group(void **state)
{
    (void)state;
    for (int r = 0; r < 4; r++) sit(r, "a", r < 3 ? 0 : 2, r < 3 ? 1 : 3);
    const core_report r = cores_plan(seats, 4, shares);
    assert_int_equal(r.kind, CORES_FEW);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.one.rank, 0);
    assert_int_equal(r.ranks, 3);
    assert_int_equal(r.room, 4);
    for (int i = 0; i < 3; i++) expect(i, 4, i, 3);
}

static void sets_that_overlap(void **state)
{
    (void)state;
    sit(0, "b", 0, 3);
    sit(1, "a", 0, 3);
    sit(2, "a", 6, 7);
    sit(3, "a", 3, 5);
    sit(4, "a", 0, 3);
    const core_report r = cores_plan(seats, 5, shares);
    assert_int_equal(r.kind, CORES_OVERLAP);
    assert_int_equal(r.count, 1);
    const int one = r.one.rank < r.other.rank ? r.one.rank : r.other.rank;
    assert_int_equal(r.one.rank + r.other.rank - one, 3);
    assert_true(one == 1 || one == 4);
    expect(0, 1, 0, 1);
    for (int i = 1; i < 5; i++) expect(i, 4, 0, 1);
}

/* This takes milliseconds; a quadratic or cubic algorithm would take minutes. */
static void many_ranks(void **state)
{
    (void)state;
    char machine[40];
    const clock_t begin = clock();
    for (int r = 0; r < MOST; r++) {
        snprintf(machine, sizeof machine, "machine %d", r % 80);
        sit(r, machine, r / 80 % 8 * 16, r / 80 % 8 * 16 + 15);
    }
    assert_int_equal(cores_plan(seats, MOST, shares).kind, CORES_FIT);
    for (int r = 0; r < MOST; r++) expect(r, 128, r / 640, 16);
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_apart),       cmocka_unit_test(bound_not_at_all),
        cmocka_unit_test(bound_in_groups),   cmocka_unit_test(too_many_in_a_group),
        cmocka_unit_test(sets_that_overlap), cmocka_unit_test(many_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
