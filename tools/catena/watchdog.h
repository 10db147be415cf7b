/* SPDX-License-Identifier: Apache-2.0
 *
 * The watchdog of a job: a thread in every rank, connected to rank 0's by TCP, outside of MPI. When
 * one rank fails, all end soon and rank 0 says which was first and why; when rank 0 does not move, it
 * asks where each rank is and says that.
 */
#ifndef CATENA_WATCHDOG_H
#define CATENA_WATCHDOG_H

#include "launch.h"

/* What the main thread is doing. */
typedef enum { AT_START, AT_DATA, AT_INPUT, AT_COMPUTE, AT_EVALUATE, AT_END } activity;

/* Connect all ranks. Collective. Errors: EIO, ENOMEM, EPEER. */
ctn_status watchdog_begin(launch *l);
/* Report a job in which rank 0 does not move for so long; 0: never. */
void watchdog_stall(double seconds);
/* The first cause is also written to the end of this file: a launcher that ends a job may lose what it says last. */
void watchdog_file(const char *path);
/* A second communicator of the same ranks that breaks with the first; NULL: none any more. */
void watchdog_also(ctn_comm *c);
/* From the main thread, as often as it likes: that counts as moving. step < 0: as before. */
void watchdog_at(activity what, int64_t step);
bool watchdog_runs(void);
/* A line for rank 0 to write, which does not repeat what it or another rank said lately. False: the
 * caller writes it. */
bool watchdog_line(const char *text);
/* The error of this thread; told once in the job, by rank 0 where it lives. Returns the exit code.
 */
int watchdog_failed(ctn_status st, int code, const char *message);
/* All ranks are about to end with the same exit code, by agreement. */
void watchdog_agree(void);
bool watchdog_agreed(void);
bool watchdog_broken(void); /* some rank failed */
/* What this rank ends with when it is told to end now; 0: nothing is broken. Safe in a signal
 * handler. */
int watchdog_code(void);
/* Before a rank ends without the others: until they know. Returns the exit code. */
int watchdog_leave(int code);
/* All is well: after a barrier. */
void watchdog_end(void);

#endif
