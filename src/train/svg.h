/* SPDX-License-Identifier: Apache-2.0
 *
 * A line chart as SVG text, for a file of its own or inside a page. Readable on light and dark
 * ground.
 */
#ifndef CTN_TRAIN_SVG_H
#define CTN_TRAIN_SVG_H

#include <catena/train.h>

#include "base/base.h"

typedef struct {
    const char *name;
    int64_t n;
    const double *x, *y; /* x rises; what is not finite interrupts the line */
} ctn__series;

typedef struct {
    const char *title, *x_name; /* any text; x_name NULL: none */
    int width, height;          /* in pixels */
    bool may_log; /* logarithmic when values are positive and spread over more than 100 */
    bool amounts; /* of something: the axis begins at 0 */
    bool alone;   /* a whole file: with the style and a ground */
    const ctn__series *series;
    int n;
} ctn__chart;

void ctn__svg_chart(ctn__text *out, const ctn__chart *c);
extern const char ctn__svg_style[]; /* CSS, once per page */

/* Values of the log by name: x the iteration, y the values, absent ones left out.
 * Result: ctn__series_free. Errors: ENOMEM. */
CTN_MUST_CHECK ctn_status ctn__series_read(ctn__series *s, const ctn_trainer *tr, const char *name);
void ctn__series_free(ctn__series *s);
/* Whether its last part says that small is good. */
bool ctn__series_is_loss(const char *name);

#endif
