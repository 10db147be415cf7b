/* SPDX-License-Identifier: Apache-2.0
 *
 * The core plan of a job as a pure function, for cores.c and for its test: from where each rank may
 * run to which part of its set each rank gets.
 */
#ifndef CATENA_CORES_H
#define CATENA_CORES_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_set_t */
#endif
#include <sched.h>
#include <stdint.h>

/* What a rank tells rank 0. */
typedef struct {
    char machine[40];    /* what booted once */
    int32_t rank, cores; /* cores: how many there are in cpus */
    cpu_set_t cpus;      /* as the launcher left them */
} seat;

/* What a rank is told: part `part` of `parts` equal parts of its set. */
typedef struct {
    int32_t code; /* -1: go on; else the exit code */
    int32_t machine_ranks, parts, part;
} share;

typedef enum { CORES_FIT, CORES_OVERLAP, CORES_FEW } core_trouble;

typedef struct {
    core_trouble kind; /* the first one that was found */
    int count;         /* how many there are */
    seat one,
        other; /* OVERLAP: two ranks whose sets do; FEW: one is the first of those that share */
    int ranks; /* FEW: how many share the set of `one` */
    int room;  /* FEW: how many ranks its machine has cores for */
} core_report;

/* Ranks of a machine whose sets are equal share the set; sets that overlap without being equal are trouble,
 * and their ranks keep them as they are. Sorts s[n]; out[n] is indexed by rank, without the codes.
 * Cost: n log n. */
core_report cores_plan(seat *s, int n, share *out);

#endif
