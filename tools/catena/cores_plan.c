/* SPDX-License-Identifier: Apache-2.0
 *
 * Which ranks share a set of cores, and how they divide it. Seats are sorted by machine and then
 * by set, so that the ranks of a machine are contiguous, and so are those of a set. Each set of
 * a machine is compared with the union of the sets before it.
 */
#include "cores.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int by_set(const seat *a, const seat *b)
{
    const int machine = strcmp(a->machine, b->machine);
    return machine ? machine : memcmp(&a->cpus, &b->cpus, sizeof a->cpus);
}

static int by_seat(const void *x, const void *y)
{
    const seat *a = x, *b = y;
    const int set = by_set(a, b);
    return set ? set : (a->rank > b->rank) - (a->rank < b->rank);
}

/* The end of the range of equal seats that begins at s[i]. */
static int end_of_machine(const seat *s, int n, int i)
{
    int end = i + 1;
    while (end < n && strcmp(s[end].machine, s[i].machine) == 0) end++;
    return end;
}

static int end_of_set(const seat *s, int n, int i)
{
    int end = i + 1;
    while (end < n && by_set(&s[end], &s[i]) == 0) end++;
    return end;
}

static bool meet(const cpu_set_t *a, const cpu_set_t *b)
{
    cpu_set_t both;
    CPU_AND(&both, a, b);
    return CPU_COUNT(&both) > 0;
}

/* Keep the first problem and count all of them. True: this is the first. */
static bool found(core_report *r, core_trouble kind, const seat *one)
{
    if (r->count++ > 0) return false;
    r->kind = kind;
    r->one = *one;
    return true;
}

/* Whether the sets of the machine s[0..n) are pairwise disjoint or equal. */
static bool apart(const seat *s, int n, core_report *r)
{
    cpu_set_t before = s[0].cpus;
    for (int i = end_of_set(s, n, 0); i < n; i = end_of_set(s, n, i)) {
        if (meet(&before, &s[i].cpus)) {
            int k = 0;
            while (!meet(&s[k].cpus, &s[i].cpus)) k++;
            if (found(r, CORES_OVERLAP, &s[k])) r->other = s[i];
            return false;
        }
        CPU_OR(&before, &before, &s[i].cpus);
    }
    return true;
}

static void plan_machine(const seat *s, int n, share *out, core_report *r)
{
    const bool divide = apart(s, n, r);
    int room = 0;
    for (int i = 0; i < n; i = end_of_set(s, n, i)) room += s[i].cores;
    for (int i = 0, end; i < n; i = end) {
        end = end_of_set(s, n, i);
        for (int k = i; k < end; k++)
            out[s[k].rank] = (share){.code = -1,
                                     .machine_ranks = n,
                                     .parts = divide ? end - i : 1,
                                     .part = divide ? k - i : 0};
        if (divide && end - i > s[i].cores && found(r, CORES_FEW, &s[i])) {
            r->ranks = end - i;
            r->room = room;
        }
    }
}

core_report cores_plan(seat *s, int n, share *out)
{
    core_report r = {.kind = CORES_FIT};
    qsort(s, (size_t)n, sizeof *s, by_seat);
    for (int i = 0, end; i < n; i = end) {
        end = end_of_machine(s, n, i);
        plan_machine(s + i, end - i, out, &r);
    }
    return r;
}
