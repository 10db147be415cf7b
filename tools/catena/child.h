/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that the command starts: trainings and launchers (child.c).
 */
#ifndef CATENA_CHILD_H
#define CATENA_CHILD_H

#include <sys/types.h>

#include "cli.h"

/* A command line that grows. Free it with words_free. */
typedef struct {
    char **word; /* ended by NULL; NULL: empty */
    int n;
    bool bad; /* out of memory: words are missing */
} words;

void words_add(words *w, const char *fmt, ...) CTN_PRINTF(2, 3);
void words_free(words *w);

/* A training as a process of its own, or mpirun with the ranks of one. */
typedef struct {
    pid_t pid;
    bool ended;
    int status; /* of waitpid, when it has ended */
} child;

/* The path of this program. Errors: EIO. */
ctn_status child_program(char *path, size_t n);
/* Runs argv; its output goes to the file `log`. The process dies with this one. Errors: EIO. */
ctn_status child_start(child *c, char *const argv[], const char *log);
bool child_ended(child *c);
/* Reads what it has printed, as far as there is room. Returns text. */
const char *child_said(const char *log, char *text, size_t room);
/* Waits until it has ended, for at most this many seconds; < 0: forever. Returns child_ended. */
bool child_wait(child *c, double seconds);
/* Kills it (SIGKILL). */
void child_kill(child *c);
/* It and the processes below it, at most `most`. Returns their number. */
int child_below(const child *c, int most, pid_t *found);
/* The processes of this host whose command line begins and ends with these words, at most `most`.
 * Returns their number. */
int child_with(const char *first, const char *last, int most, pid_t *found);
pid_t child_parent(pid_t p); /* 0: there is no such process */
void pause_s(double seconds);

#endif
