/* SPDX-License-Identifier: Apache-2.0
 *
 * What the extensions that print or draw share: where text goes and what it may look like there,
 * short forms of numbers, names made safe for terminals and HTML, and the files of the result
 * folder. The functions that turn plain values into text are declared here too, so that tests can
 * call them without a training.
 */
#ifndef CTN_TRAIN_SHOW_H
#define CTN_TRAIN_SHOW_H

#include <catena/train.h>

#include "base/base.h"

typedef struct {
    void (*write)(void *user, const char *text);
    void *user;
    int columns; /* 0: looked up every time, because terminals are resized */
    bool terminal, utf8, colour;
} ctn__show;

CTN_MUST_CHECK ctn_status ctn__show_init(ctn__show *s, const char *who, const ctn_show_opt *opt);
/* Columns of the terminal; 1000, which means unlimited, for a file. */
int ctn__show_columns(const ctn__show *s);

/* Short forms, always with a decimal point whatever the program's locale. buf has 16 bytes. */
const char *ctn__show_value(char *buf, double v); /* 0.4312, 1.2e-05: at most 9 characters */
const char *ctn__show_count(char *buf, double v); /* 12.3k: 5 characters; "-" when < 0 */
/* 12:34, 1:02:03, 3d 04h; "--:--" when < 0 */
const char *ctn__show_time(char *buf, double seconds);
/* Replaces the locale's decimal separator in a printed number by a point. Result: buf. */
const char *ctn__show_point(char *buf);

/* Adds text from the user with control characters and invalid UTF-8 replaced. With markup, it is
 * also escaped for HTML and XML. */
void ctn__show_text(ctn__text *out, const char *s, bool markup);

/* Path of a file in the result folder. Errors: EARG (no file), ESTATE (no folder), ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__show_path(ctn__text *path, const char *who, const ctn_trainer *tr,
                                         const char *file);
/* Atomically replaces a file by the text, and frees the text. Errors: EIO, ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__show_file(const char *path, ctn__text *text);
/* Turns EIO into a warning: a picture that cannot be written must not end a training. */
ctn_status ctn__show_forgive(ctn_status st);
/* Registers e, named by kind and file (NULL: kind alone). On failure e.self is released. */
CTN_MUST_CHECK ctn_status ctn__show_extend(ctn_trainer *tr, const char *kind, const char *file,
                                           const ctn_trigger *when, ctn_trigger usual,
                                           ctn_extension e);
/* Statistics of parameters are hidden by default, because there are too many of them. */
bool ctn__show_hidden(const char *name);
/* What follows the last slash: "loss" of "val/loss". */
const char *ctn__show_last(const char *name);

/* ---- progress.c ------------------------------------------------------------------------------ */

typedef struct {
    ctn_progress p;
    double rate; /* recent samples per second; < 0: not known yet */
    double left; /* seconds to go; < 0: not known yet */
    double loss; /* NaN: none */
} ctn__view;
/* Two lines without the last newline, at most columns - 1 wide; coloured if s says so. */
void ctn__progress_bars(ctn__text *out, const ctn__view *v, const ctn__show *s, int columns);
/* One plain line. */
void ctn__progress_line(ctn__text *out, const ctn__view *v);

/* ---- print.c --------------------------------------------------------------------------------- */

/* Header and one line of the table of n names, at most `columns` wide. Both pick the same
 * names. */
void ctn__table_header(ctn__text *out, const char *const *names, int n, const ctn__show *s,
                       int columns);
void ctn__table_line(ctn__text *out, const char *const *names, const double *values, int n,
                     const ctn_progress *p, int columns);

#endif
