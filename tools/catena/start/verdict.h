/* SPDX-License-Identifier: Apache-2.0
 *
 * How rank 0 tells `catena launch` that the job has ended, and with which exit code. Launchers lose
 * exit codes: MPICH's returns 0 after some failures, and Open MPI's does if ranks may survive the
 * loss of others, even if none is left. So a job is complete only if its rank 0 has said so.
 */
#ifndef CATENA_VERDICT_H
#define CATENA_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

/* A connection whose line is not complete. */
typedef struct {
    int fd; /* -1: none */
    size_t n;
    char line[64];
} verdict_caller;

enum { VERDICT_CALLERS = 8 };

/* What has arrived from the ranks of one start. */
typedef struct {
    int door; /* listening socket; -1: none */
    char token[33];
    bool known; /* rank 0 has said it */
    int code;
    verdict_caller caller[VERDICT_CALLERS];
    unsigned next; /* place of the next one; whoever is there has to go */
} verdict;

/* ---- in catena launch ------------------------------------------------------------------------ */

/* Listens, and puts where into the environment, which the ranks inherit. local: all ranks are on
 * this host. Without a socket nothing will arrive. */
void verdict_open(verdict *v, bool local);
/* The processes that are started from now on do not belong to the job. */
void verdict_hide(void);
/* Takes what has arrived, without waiting. Returns v->known. */
bool verdict_read(verdict *v);
void verdict_close(verdict *v);

/* ---- in the ranks ---------------------------------------------------------------------------- */

/* Reads the environment, before the library does. */
void verdict_begin(void);
/* Rank 0's exit code, or that of the rank that failed first. Without `catena launch`: no effect. */
void verdict_send(int code);

#endif
