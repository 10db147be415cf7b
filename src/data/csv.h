/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells of a table of text, and the set of distinct texts in a column (csv_cells.c), for csv.c.
 */
#ifndef CTN_DATA_CSV_H
#define CTN_DATA_CSV_H

#include <locale.h>

#include "base/base.h"

/* Part of a file in memory. */
typedef struct {
    const char *p;
    size_t n;
    bool quoted; /* quotes inside are doubled */
    bool bad;    /* the closing quote is missing, or something follows it */
} ctn__cell;

/* The cell that begins at p. Returns its end: a separator, the end of its line, or `end`, that of
 * the file. */
const char *ctn__cell_read(const char *p, const char *end, char separator, ctn__cell *c);
/* An empty cell, NA, N/A, NaN, null or ?. */
bool ctn__cell_missing(const ctn__cell *c);
/* The number in a cell; false: there is none. The byte after the cell, which must exist, is not
 * part of any number. `locale` has a decimal point. */
bool ctn__cell_number(const ctn__cell *c, locale_t locale, double *out);
/* Text without its doubled quotes; the caller frees it. NULL with ENOMEM recorded. */
char *ctn__cell_text(const ctn__cell *c);

/* The value of a column of text in one row. */
typedef struct {
    ctn__cell c; /* p NULL: missing */
    int64_t id;  /* texts are numbered as they come */
} ctn__cell_value;

/* Distinct texts, in a hash table with open addressing. */
typedef struct {
    CTN__VEC(ctn__cell_value) texts;
    int64_t *slot; /* (slots) index + 1, 0: free */
    size_t slots;  /* a power of 2, at least twice the number of texts */
} ctn__cell_set;
/* The number of a text, which is added if it is new. c must not have doubled quotes. Errors:
 * ENOMEM. */
ctn_status ctn__cell_set_id(ctn__cell_set *s, const ctn__cell *c, int64_t *id);
/* Sorts the texts by their bytes; no more can be added. */
void ctn__cell_set_sort(ctn__cell_set *s);
void ctn__cell_set_free(ctn__cell_set *s);

#endif
