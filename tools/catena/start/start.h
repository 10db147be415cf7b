/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena launch` share. start.c is the command, mpirun.c finds the launcher of
 * the MPI and makes its command line, hosts.c knows the hosts of the job and which of them answer,
 * process.c runs and ends processes, verdict.c hears from rank 0 that the job has ended, and
 * outcome.c decides what that means.
 */
#ifndef CATENA_START_H
#define CATENA_START_H

#include <limits.h>

#include "child.h"
#include "start/verdict.h"

/* ---- hosts.c --------------------------------------------------------------------------------- */

typedef struct {
    char name[256];
    int64_t ranks; /* that fit on it; 0: not known */
} host;

typedef struct {
    host *at;
    int n; /* 0: mpirun finds the hosts by itself */
} hosts;

/* "a,b" or "a:2,b:2". Errors: EARG, ENOMEM. */
ctn_status hosts_of_list(hosts *h, const char *list);
/* A file with one host per line, as Open MPI (a slots=2), MPICH (a:2) and PBS (one line for each
 * rank) have it. Errors: EARG, EIO, ENOMEM. */
ctn_status hosts_of_file(hosts *h, const char *path);
/* The hosts of this Slurm job; none outside of a job and without scontrol. Errors: ENOMEM. */
ctn_status hosts_of_slurm(hosts *h);
/* Divides `ranks` evenly among hosts that have no number of their own; 0: one for each host. */
void hosts_divide(hosts *h, int64_t ranks);
int64_t hosts_ranks(const hosts *h); /* that fit on all hosts */
/* Whether the job has more hosts than this one. */
bool hosts_several(const hosts *h);
void hosts_free(hosts *h);

/* ---- mpirun.c -------------------------------------------------------------------------------- */

typedef enum { OPEN_MPI, HYDRA } mpi_kind;

/* The program that starts ranks. */
typedef struct {
    char path[PATH_MAX];
    char name[64]; /* "Open MPI 5.0.7" */
    mpi_kind kind; /* HYDRA: MPICH and MPIs derived from it */
    int major;     /* version of Open MPI */
} mpi_launcher;

/* What mpirun is asked to start. */
typedef struct {
    mpi_launcher mpi;
    hosts on;      /* none: mpirun's own choice */
    bool local;    /* all ranks are on this machine */
    int64_t ranks; /* 0: mpirun's own choice */
    bool survive, oversubscribe;
} placement;

/* Finds it: `path`, or the first of mpirun and mpiexec in PATH if that is "". Errors:
 * EUNSUPPORTED. */
ctn_status mpirun_find(mpi_launcher *m, const char *path);
bool mpirun_survives(const mpi_launcher *m); /* the other ranks may go on after a loss */
/* The words up to the program that the ranks run. */
void mpirun_words(words *w, const placement *p);
/* The words that run `true` on one host. */
void mpirun_probe(words *w, const mpi_launcher *m, const host *h);

/* ---- outcome.c ------------------------------------------------------------------------------- */

/* What is left to do when mpirun has ended. */
typedef enum { JOB_DONE, JOB_STOPPED, JOB_FAILED, JOB_LOST } job_end;

typedef struct {
    const char *out; /* result folder; NULL: not a training */
    verdict said;    /* what rank 0 of this start has said */
    bool survives;   /* a failure of a rank is not the end */
    long failures;   /* size of its failures.txt when the job was started */
    long seen;       /* its size when it was last looked at, and */
    double seen_at;  /* since when it has this size */
    char job[1024];  /* job.txt when the job was started */
    int code;        /* exit code of the job */
    char cause[512]; /* of its failure */
} outcome;

void outcome_begin(outcome *o, bool local); /* before each start; local: all ranks are here */
/* Whether this start has ended, even if mpirun does not know: rank 0 has said so, or a rank has
 * reported a failure and the others do not continue. */
bool outcome_over(outcome *o);
/* asked: the signal that asked to stop; first: the job was not restarted before. */
job_end outcome_of(outcome *o, const child *c, int asked, bool first);
/* Sets the code of a job that a signal has ended between two starts. */
void outcome_stop(outcome *o, int asked);

/* ---- process.c ------------------------------------------------------------------------------- */

/* Signals are received by process_wait and process_pause from now on, and processes whose parent
 * ends become children of this one. Errors: EIO. */
ctn_status process_begin(void);
typedef enum { OUTPUT_SAME, OUTPUT_STDERR, OUTPUT_NONE } output;
/* Runs argv in a process group of its own. It ends if this process is killed. Errors: EIO. */
ctn_status process_start(child *c, char *const argv[], output to);
/* Waits until it has ended. After a signal, asks its ranks to save and stop; if they have not
 * ended `patience` seconds later, it is killed. Also kills it if the job of `o` is over but
 * mpirun does not end: it may wait forever for a host that is gone. Returns the first
 * signal; 0: none. */
int process_wait(child *c, double patience, outcome *o);
/* Waits. Returns the signal that ended the wait; 0: none. */
int process_pause(double seconds);
/* Kills what is left of the job on this machine. Returns the number of processes that stay. */
int process_sweep(void);
/* The standard output of argv, up to n - 1 bytes. Returns its exit code; 127: not started. */
int process_output(char *const argv[], char *text, size_t n);
int process_code(const child *c); /* exit code, or 128 + signal */
/* Keeps the hosts that run a program within a few seconds. The names of the others go to `lost`.
 * Errors: EIO, ENOMEM. */
ctn_status process_probe(hosts *h, const mpi_launcher *m, char *lost, size_t room);

#endif
