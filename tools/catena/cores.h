/* SPDX-License-Identifier: Apache-2.0
 *
 * The core plan of a job as a pure function, for cores.c and its test: from the CPUs that each
 * rank may use, it computes which part of them each rank gets.
 */
#ifndef CATENA_CORES_H
#define CATENA_CORES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_set_t */
#endif
#include <sched.h>
#include <stdint.h>

/* What a rank sends to rank 0. */
typedef struct {
    char machine[40];    /* boot id */
    int32_t rank, cores; /* cores: number of cores in cpus */
    cpu_set_t cpus;      /* as bound by the launcher */
} seat;

/* What a rank receives: it gets part `part` of `parts` equal parts of its set. */
typedef struct {
    int32_t code; /* -1: continue; else the exit code */
    int32_t machine_ranks, parts, part;
} share;

typedef enum { CORES_FIT, CORES_OVERLAP, CORES_FEW } core_trouble;

typedef struct {
    core_trouble kind; /* the first problem found */
    int count;         /* number of problems */
    /* OVERLAP: two ranks whose sets overlap; FEW: `one` is the first of the ranks that share. */
    seat one, other;
    int ranks; /* FEW: number of ranks that share the set of `one` */
    int room;  /* FEW: number of ranks that the machine has cores for */
} core_report;

/* Ranks of a machine with equal sets share the set. Sets that overlap without being equal are
 * reported, and their ranks keep them unchanged. Sorts s[n]; out[n] is indexed by rank, all
 * codes are -1. Cost: n log n. */
core_report cores_plan(seat *s, int n, share *out);

#endif
