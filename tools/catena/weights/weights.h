/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of `catena weights` share. weights.c is the command and lists files; diff.c,
 * convert.c and model.c do what its options ask for.
 */
#ifndef CATENA_WEIGHTS_H
#define CATENA_WEIGHTS_H

#include <catena/io.h>

#include "cli.h"

/* ---- weights.c ------------------------------------------------------------------------------ */

/* Number of elements of an array. */
int64_t array_elements(const ctn_weights_array *a);
/* "102.5 MB" in buf. */
const char *bytes_text(double bytes, char buf[32]);

/* ---- diff.c --------------------------------------------------------------------------------- */

/* Lists the differences between two files. j NULL: as text. *differences: their number. */
ctn_status weights_diff(const char *first, const char *second, json *j, int64_t *differences);

/* ---- convert.c ------------------------------------------------------------------------------ */

/* Writes the arrays of n files to the file --to, as --cast, --rename and --only say. */
ctn_status weights_convert(const args *a, int n, const char *const *path, json *j);

/* ---- model.c -------------------------------------------------------------------------------- */

/* Lists the differences between a file and the network --model. *differences: their number. */
ctn_status weights_model(const args *a, const char *path, json *j, int64_t *differences);

#endif
