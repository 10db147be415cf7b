/* SPDX-License-Identifier: Apache-2.0
 *
 * What the showing extensions share: where text goes and what it may look like there, numbers in
 * few characters, names made safe for terminals and pages, the files of the result folder. The
 * parts that turn plain values into text are declared here too, so that tests see them without a
 * training.
 */
#ifndef CTN_TRAIN_SHOW_H
#define CTN_TRAIN_SHOW_H

#include <catena/train.h>

#include "base/base.h"

typedef struct {
    void (*write)(void *user, const char *text);
    void *user;
    int columns; /* 0: looked up every time, terminals change */
    bool terminal, utf8, colour;
} ctn__show;

CTN_MUST_CHECK ctn_status ctn__show_init(ctn__show *s, const char *who, const ctn_show_opt *opt);
/* Columns of the terminal; a file is as wide as it must be: 1000. */
int ctn__show_columns(const ctn__show *s);

/* Short forms, with a point whatever the program's locale says. buf: 16 bytes. */
const char *ctn__show_value(char *buf, double v); /* 0.4312, 1.2e-05: at most 9 characters */
const char *ctn__show_count(char *buf, double v); /* 12.3k: 5 characters; "-" when < 0 */
const char *ctn__show_time(char *buf,
                           double seconds); /* 12:34, 1:02:03, 3d 04h; "--:--" when < 0 */
/* Replaces what the locale has for a decimal point in a printed number. Result: buf. */
const char *ctn__show_point(char *buf);

/* Text of a user: control characters and what is not UTF-8 replaced, with markup also escaped for
 * HTML and XML. */
void ctn__show_text(ctn__text *out, const char *s, bool markup);

/* Path of a file in the result folder. Errors: EARG (no file), ESTATE (no folder), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__show_path(ctn__text *path, const char *who, const ctn_trainer *tr,
                                         const char *file);
/* Replace a file by a text, whole or not at all; frees the text. Errors: EIO, ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__show_file(const char *path, ctn__text *text);
/* A picture is not worth a training: an EIO in its middle becomes a warning. */
ctn_status ctn__show_forgive(ctn_status st);
/* Add e, named by kind and file (NULL: kind alone); e.self is released when that fails. */
CTN_MUST_CHECK ctn_status ctn__show_extend(ctn_trainer *tr, const char *kind, const char *file,
                                           const ctn_trigger *when, ctn_trigger usual,
                                           ctn_extension e);
/* Values of parameters are too many to be shown by default. */
bool ctn__show_hidden(const char *name);
/* What follows the last slash: "loss" of "val/loss". */
const char *ctn__show_last(const char *name);

/* ---- progress.c ------------------------------------------------------------------------------ */

typedef struct {
    ctn_progress p;
    double rate; /* samples per second of late; < 0: not known yet, as is left */
    double left; /* seconds */
    double loss; /* NaN: none */
} ctn__view;
/* Two lines without the last newline, at most columns - 1 wide; colours as s says. */
void ctn__progress_bars(ctn__text *out, const ctn__view *v, const ctn__show *s, int columns);
/* One plain line. */
void ctn__progress_line(ctn__text *out, const ctn__view *v);

/* ---- print.c --------------------------------------------------------------------------------- */

/* Header and one line of the table of n names in so many columns. Both choose the same columns. */
void ctn__table_header(ctn__text *out, const char *const *names, int n, const ctn__show *s,
                       int columns);
void ctn__table_line(ctn__text *out, const char *const *names, const double *values, int n,
                     const ctn_progress *p, int columns);

#endif
