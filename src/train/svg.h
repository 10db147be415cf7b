/* SPDX-License-Identifier: Apache-2.0
 *
 * A line chart as SVG text, as a separate file or inside a page. Readable on a light and on a
 * dark background.
 */
#ifndef CTN_TRAIN_SVG_H
#define CTN_TRAIN_SVG_H

#include <catena/train.h>

#include "base/base.h"

typedef struct {
    const char *name;
    int64_t n;
    const double *x, *y; /* x increases; values that are not finite interrupt the line */
} ctn__series;

typedef struct {
    const char *title, *x_name; /* any text; x_name NULL: none */
    int width, height;          /* in pixels */
    bool may_log; /* logarithmic if all values are positive and their ratio exceeds 100 */
    bool amounts; /* values are amounts: the axis starts at 0 */
    bool alone;   /* a separate file, with the style and a background */
    const ctn__series *series;
    int n;
} ctn__chart;

void ctn__svg_chart(ctn__text *out, const ctn__chart *c);
extern const char ctn__svg_style[]; /* CSS, once per page */

/* The values of one name in the log, with the iteration as x. Rows without a value are left out.
 * Result: ctn__series_free. Errors: ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__series_read(ctn__series *s, const ctn_trainer *tr, const char *name);
void ctn__series_free(ctn__series *s);
/* True if the last part of the name says that lower is better. */
bool ctn__series_is_loss(const char *name);

#endif
