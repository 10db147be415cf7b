/* SPDX-License-Identifier: Apache-2.0
 *
 * The job that a command belongs to: who started it, on how many ranks and on which cores.
 * Without a launcher it is a job of one rank, and MPI is not loaded.
 *
 * launch.c finds the launcher, starts MPI and sends rank 0's settings to the other ranks;
 * cores.c divides the cores of a machine among its ranks; distribute.c spreads a training over
 * all ranks.
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
    int machine_ranks;    /* ranks on this machine, over all its host names */
    int first_elsewhere;  /* the lowest rank that is not on rank 0's host; size: there is none */
    char (*hosts)[64];    /* on rank 0: host of each rank; elsewhere: rank 0's; NULL: one rank */
    bool survives;        /* if ranks are lost, the others can continue */
    int lost;             /* how many were */
    struct cores *cores;  /* cores.c */
} launch;

/* Options of every command that can run on several ranks. */
/* clang-format off */
#define LAUNCH_OPTIONS                                                                           \
    {"oversubscribe", NULL, NULL, "allow more ranks than cores", GROUP_RANKS},                   \
    {"stall-seconds", "N", "120",                                                                \
     "seconds without progress until rank 0 reports where each rank is; 0: never", GROUP_RANKS}, \
    {"memory-gb", "X", "0",                                                                      \
     "memory limit in GB of this host for all its ranks; 0: the cgroup limit", GROUP_PRECISION}
/* clang-format on */

/* ---- launch.c -------------------------------------------------------------------------------- */

/* Find out who started this process; start MPI if there are several tasks. Returns -1 to
 * continue, else the exit code; the error was then printed. */
int launch_begin(launch *l, const command *cmd);
/* args_parse on rank 0; the other ranks receive the result. */
int launch_args(launch *l, args *a, const command *cmd, int argc, char **argv);
/* Broadcast rank 0's code and settings. Collective. */
int launch_share(launch *l, args *a, int code);
/* Broadcast rank 0's bytes. The other ranks need not know the size; their *p is allocated
 * (free). Collective. Errors: ENOMEM, EPEER. */
ctn_status launch_bytes(launch *l, void **p, size_t *n);
/* ctn_comm_agree. If the ranks differ, all of them end with the same exit code. Collective.
 * Errors: EARG, ENOMEM, EPEER. */
ctn_status launch_agree(launch *l, const char *text);
/* After the loss of ranks: make the job one of the ranks that are left. False: that is not the
 * failure, or not possible. Collective over these ranks. */
bool launch_shrink(launch *l);
/* End the job: together on success; after an error at once and without MPI, which would wait for
 * the other ranks. */
int launch_end(launch *l, int code);

/* ---- cores.c --------------------------------------------------------------------------------- */

/* Bind this rank to its share of the machine's cores, or refuse a bad binding. Call it before
 * anything asks for the number of cores. Collective. Returns -1 to continue, else the exit code. */
int cores_divide(launch *l, const args *a);
/* Rank 0 prints which rank computes where. Collective. */
ctn_status cores_show(launch *l, int threads, int loaders);
/* Check that every thread of this process is bound to the cores of its rank. Errors: EENGINE. */
ctn_status cores_verify(const launch *l);
/* The CPUs of this rank in the kernel's notation: "0-3,8". */
void cores_text(const launch *l, char *buf, size_t n);
void cores_free(launch *l);

/* ---- distribute.c ---------------------------------------------------------------------------- */

int progress_of(const args *a); /* --progress as a value of ctn_dist_opt.progress */

#endif
