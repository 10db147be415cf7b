/* SPDX-License-Identifier: Apache-2.0
 *
 * The watchdog of a job: a thread in every rank, connected to rank 0's by TCP and independent of
 * MPI. When one rank fails, all ranks end soon, and rank 0 reports which one failed first and
 * why. When rank 0 makes no progress, it asks every rank where it is and prints the answers.
 */
#ifndef CATENA_WATCHDOG_H
#define CATENA_WATCHDOG_H

#include "launch.h"

/* What the main thread is doing. */
typedef enum { AT_START, AT_DATA, AT_INPUT, AT_COMPUTE, AT_EVALUATE, AT_END } activity;

/* Connect all ranks. Collective. Errors: EIO, ENOMEM, EPEER. */
ctn_status watchdog_begin(launch *l);
/* Report a stall after this time without progress on rank 0; 0: never. */
void watchdog_stall(double seconds);
/* Also append the root cause to this file, because a launcher that ends a job may lose its last
 * output. */
void watchdog_file(const char *path);
/* Print a line, and append it to that file. By one rank. */
void watchdog_record(const char *text);
/* A second communicator of the same ranks that is broken along with the first; NULL: none. */
void watchdog_also(ctn_comm *c);
/* Called by the main thread as often as it likes; every call counts as progress. step < 0:
 * unchanged. */
void watchdog_at(activity what, int64_t step);
bool watchdog_runs(void);
/* Let rank 0 print a line, unless it or another rank printed the same recently. False: the
 * caller prints it. */
bool watchdog_line(const char *text);
/* Report the error of this thread, once per job and by rank 0 if it is alive. Returns the exit
 * code. */
int watchdog_failed(ctn_status st, int code, const char *message);
/* All ranks have agreed to end with the same exit code. */
void watchdog_agree(void);
bool watchdog_agreed(void);
bool watchdog_broken(void); /* some rank failed */
/* The exit code of this rank if it has to end now; 0: nothing is broken. Safe in a signal
 * handler. */
int watchdog_code(void);
/* What rank 0 tells `catena launch`: the exit code of the rank that failed first, if that is known,
 * else `code`, its own. */
int watchdog_verdict(int code);
/* After an exchange failed: whether the cause is a lost rank. Waits for the cause. */
bool watchdog_lost(void);
/* Forget the lost rank and end the watchdog. Begin it again with the ranks that are left. */
void watchdog_reset(void);
/* Before a rank ends alone: wait until the other ranks know. Returns the exit code. */
int watchdog_leave(int code);
/* End the watchdog of a successful job; call it after a barrier. */
void watchdog_end(void);

#endif
