/* SPDX-License-Identifier: Apache-2.0
 *
 * The job a command is part of: who started it, on how many ranks, on which cores. A command that
 * nobody launched is a job of one rank; MPI is not even loaded then.
 *
 * launch.c finds the launcher, starts MPI and carries rank 0's settings to the others; cores.c
 * divides the cores of a machine among its ranks; distribute.c makes a training one of all ranks.
 */
#ifndef CATENA_LAUNCH_H
#define CATENA_LAUNCH_H

#include <catena/comm.h>

#include "cli.h"

typedef struct launch {
    ctn_comm *comm; /* NULL: one rank */
    int rank, size;
    char host[64];
    const char *launcher; /* "mpirun", "srun"; NULL: none */
    int machine_ranks;    /* ranks on this machine, whatever its hosts are called */
    int first_elsewhere;  /* the lowest rank on another host than rank 0; size: none is */
    char (*hosts)[64];    /* of each rank on rank 0, elsewhere of rank 0 only; NULL: one rank */
    struct cores *cores;  /* cores.c */
} launch;

/* Options of every command that runs on several ranks. */
#define LAUNCH_OPTIONS                                                                      \
    {"oversubscribe", NULL, NULL, "several ranks: take more of them than there are cores"}, \
        {"stall-seconds", "N", "120",                                                       \
         "several ranks: report where each is after N seconds without progress; 0: never"}, \
        {"memory-gb", "X", "0",                                                             \
         "memory of this host for all its ranks; 0: the limit of its cgroup"}

/* ---- launch.c -------------------------------------------------------------------------------- */

/* Look who started this process; several tasks: start MPI. -1: go on; else the exit code, all told.
 */
int launch_begin(launch *l, const command *cmd);
/* args_parse on rank 0; the others get what it found. */
int launch_args(launch *l, args *a, const command *cmd, int argc, char **argv);
/* Rank 0's code and settings for all. Collective. */
int launch_share(launch *l, args *a, int code);
/* Bytes of rank 0, whose number only it knows; elsewhere *p is allocated (free). Collective.
 * Errors: ENOMEM, EPEER. */
ctn_status launch_bytes(launch *l, void **p, size_t *n);
/* ctn_comm_agree. When ranks differ they end together, with the same exit code. Collective. Errors: EARG, ENOMEM, EPEER. */
ctn_status launch_agree(launch *l, const char *text);
/* End the job: together when all is well, else at once, without MPI, which would wait for the
 * others. */
int launch_end(launch *l, int code);

/* ---- cores.c --------------------------------------------------------------------------------- */

/* Give this rank its share of the machine's cores and refuse what cannot go well. Before anything
 * asks for the number of cores. Collective. -1: go on; else the exit code. */
int cores_divide(launch *l, const args *a);
/* Rank 0 shows which rank computes where. Collective. */
ctn_status cores_show(launch *l, int threads, int loaders);
/* Every thread of this process may run on its rank's cores only: they are asked one by one. Errors:
 * EENGINE. */
ctn_status cores_verify(const launch *l);
/* The CPUs of this rank as the kernel writes them: "0-3,8". */
void cores_text(const launch *l, char *buf, size_t n);
void cores_free(launch *l);

/* ---- distribute.c ---------------------------------------------------------------------------- */

int progress_of(const args *a); /* --progress, as ctn_dist_opt has it */

#endif
