/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena verify-resume` share. verify_resume.c is the command, trainings.c runs
 * and interrupts the trainings, and sample.c makes data.
 */
#ifndef CATENA_RESUME_H
#define CATENA_RESUME_H

#include <limits.h>

#include "child.h"

/* ---- sample.c -------------------------------------------------------------------------------- */

enum { SAMPLE_WORDS = 16 };

/* Small data for a network, and options of `catena train` that fit it. */
typedef struct {
    char path[3][PATH_MAX];
    const char *word[SAMPLE_WORDS]; /* ended by NULL */
} sample;

/* Writes the data to a folder. Errors: EIO, ENOMEM. */
ctn_status sample_make(sample *s, const char *network, const char *folder);

/* ---- trainings.c ----------------------------------------------------------------------------- */

enum { MOST_RANKS = 1024 };

/* The trainings of one call of the command. */
typedef struct {
    const char *network;
    char **option; /* of `catena train`, from the command line */
    int options;
    int64_t ranks, rounds;
    double seconds;                           /* length of a training that has no limit itself */
    char program[PATH_MAX], folder[PATH_MAX]; /* this program; data and results */
    sample data;                              /* empty if --data is among the options */
    bool limited;                             /* --epochs or --iterations is among them */
    uint64_t random;

    int64_t iterations;         /* of a whole training */
    double length, first_state; /* seconds that it takes, and until it has saved a state */
    int64_t kills, during_save; /* so far; of these, while a state was written */
    int64_t trainings, arrays;  /* compared with the whole one; arrays of a state */
    int64_t passed_over;        /* arrays that may differ, which do not count */
    int failed;                 /* exit code of a training that failed by itself; 0: none */
    int64_t wrong;              /* lines in `report` */
    FILE *report;               /* one line for everything that differs or is damaged */
} trainings;

/* Runs the training once from beginning to end. Errors: EIO, those of the training. */
ctn_status trainings_whole(trainings *t);
/* Kills and resumes trainings `rounds` times, and compares each that has reached its end. Calls
 * show after each kill. Errors: as above. */
ctn_status trainings_interrupted(trainings *t, void (*show)(const trainings *t));

#endif
