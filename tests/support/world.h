/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads as the ranks of a job, for random tests: on one node or on nodes of different sizes, and
 * all ranks together or in groups, beside which other groups work and other ranks do nothing.
 */
#ifndef CTN_TESTS_WORLD_H
#define CTN_TESTS_WORLD_H

#include <stdint.h>

#include <catena/comm.h>

enum { WORLD_GROUP = 4, WORLD_GROUPS = 2, WORLD_OUTSIDE = 2 }; /* at most */
enum { WORLD_MOST = WORLD_GROUP * WORLD_GROUPS + WORLD_OUTSIDE };

typedef struct {
    int ranks;            /* of each group */
    int groups;           /* that do the same, without knowing of each other */
    int outside;          /* ranks of no group: the first ones */
    int node[WORLD_MOST]; /* the lowest rank of each rank's node */
} test_world;

/* One group on one node. */
test_world test_world_plain(int ranks);
/* What random bits choose: half of the worlds have several nodes, a quarter several groups, a
 * quarter ranks outside of them. */
test_world test_world_random(int ranks, uint32_t bits);
/* "3 ranks of 7, nodes 0 0 2 ..." */
void test_world_text(const test_world *w, char *out, size_t room);
/* Number of ranks, the group of a rank (-1: none), and its rank in it. */
int test_world_size(const test_world *w);
int test_world_group(const test_world *w, int rank);
int test_world_rank(const test_world *w, int rank);
/* Whether each rank of some group has a node of its own, where hierarchical cannot run. */
int test_world_scattered(const test_world *w);

/* One communicator for each rank. If all ranks are one group, opt applies to them. Local. */
ctn_status test_world_open(ctn_comm **out, const test_world *w, const ctn_comm_opt *opt);
/* The communicator of this rank's group, `world` itself if all ranks are one group, NULL if the
 * rank is in none. Collective. Result: owned, unless it is `world`. */
ctn_status test_world_join(ctn_comm **out, const test_world *w, ctn_comm *world,
                           const ctn_comm_opt *opt);

/* From now on the process ends with a message that names what hangs, unless the next call comes
 * within so many seconds. 0: no limit. what: borrowed until then. */
void test_deadline(unsigned seconds, const char *what);

#endif
