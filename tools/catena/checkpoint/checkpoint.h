/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena checkpoint` share. checkpoint.c is the command and finds the states
 * that an operand means; list.c, verify.c and diff.c look at them.
 */
#ifndef CATENA_CHECKPOINT_H
#define CATENA_CHECKPOINT_H

#include <limits.h>

#include <catena/train.h>

#include "cli.h"

/* What an operand means: a folder of numbered states, or one state. */
typedef struct {
    char path[PATH_MAX];
    bool one;
} place;

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

/* The states that a result folder, its folder `state`, or the folder of one state means. Errors:
 * ENOTFOUND. */
ctn_status place_find(place *p, const char *operand);
/* Makes it the newest state if it is a folder of states. Errors: ENOTFOUND (there is none). */
ctn_status place_newest(place *p);

/* ---- list.c, verify.c ------------------------------------------------------------------------ */

/* Lists the states of a folder, or the arrays of one state. j NULL: as text. */
ctn_status list_place(const place *p, json *j);
/* Compares all states with what was saved. *damaged: number of states that differ from it. */
ctn_status verify_place(const place *p, json *j, int64_t *damaged);

/* ---- diff.c ---------------------------------------------------------------------------------- */

/* An array of two states that is not the same. */
typedef struct {
    const char *name, *what; /* "differs", or what is missing or changed */
} difference;

/* Calls fn for each array that differs between two states. *arrays: number of names in both
 * together. Errors: those of ctn_state_arrays, what fn returns. */
ctn_status states_compare(const char *a, const char *b, int64_t *arrays,
                          ctn_status (*fn)(void *user, const difference *d), void *user);
/* Lists the differences. *differences: their number. */
ctn_status diff_places(const place *a, const place *b, json *j, int64_t *differences);

#endif
