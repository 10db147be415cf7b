/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress extension: two bars on a terminal, plain lines elsewhere.
 *
 * Between updates the cursor stays at the start of the first bar. Code that prints a line in the
 * meantime (print.c) erases everything below the cursor first, and the bars are redrawn under
 * the line, so the two need not know of each other. No line is as wide as the terminal, so none
 * wraps.
 */
#include <math.h>

#include "train/show.h"

/* ---- text ------------------------------------------------------------------------------------ */

enum { LEVELS = 4 }; /* of detail: everything, no units, only time and loss, only bars */

/* The text to the right of both bars. Its width does not depend on the values, so the bars keep
 * their length. */
static void texts(const ctn__view *v, int level, ctn__text *whole, ctn__text *epoch)
{
    char rate[16], time[16], loss[16];
    bool known = v->p.total >= 0; /* else show the elapsed time instead of the time left */
    ctn__show_count(rate, v->rate);
    ctn__show_time(time, known ? v->left : v->p.seconds);
    ctn__show_value(loss, v->loss);
    switch (level) {
    case 0:
        ctn__text_add(whole, "  %5s items/s  %7s %s", rate, time, known ? "left" : "elapsed");
        ctn__text_add(epoch, "  step %-8lld loss %-9s", (long long)v->p.iteration, loss);
        break;
    case 1:
        ctn__text_add(whole, " %5s/s %7s", rate, time);
        ctn__text_add(epoch, " loss %-9s", loss);
        break;
    case 2:
        ctn__text_add(whole, " %9s", time);
        ctn__text_add(epoch, " %9s", loss);
        break;
    default: break;
    }
}

static void add_bar(ctn__text *out, double part, int width, const ctn__show *s)
{
    if (width <= 0) return;
    part = part > 0 ? fmin(part, 1) : 0;
    int halves = (int)(part * 2 * width), full = halves / 2;
    bool half = s->utf8 && halves % 2 != 0;
    if (s->colour && full + half > 0) ctn__text_add(out, "\x1b[36m");
    for (int i = 0; i < full; i++) ctn__text_add(out, s->utf8 ? "━" : "#");
    if (half) ctn__text_add(out, "╸");
    if (s->colour) ctn__text_add(out, "\x1b[0;2m");
    for (int i = full + half; i < width; i++) ctn__text_add(out, s->utf8 ? "─" : ".");
    if (s->colour) ctn__text_add(out, "\x1b[0m");
}

static void add_percent(ctn__text *out, double part, int width)
{
    if (!(part >= 0)) ctn__text_add(out, "%*s", width, "--");
    /* rounded down: 100 % appears only at the end */
    else ctn__text_add(out, "%*d%%", width - 1, (int)(fmin(part, 1) * 100));
}

/* The current epoch and the fraction of it that is done. The last step of an epoch still belongs
 * to it. */
static double in_epoch(const ctn_progress *p, long long *epoch)
{
    *epoch = (long long)p->epoch + !p->epoch_ended;
    return p->epoch_ended ? 1 : p->part;
}

void ctn__progress_bars(ctn__text *out, const ctn__view *v, const ctn__show *s, int columns)
{
    static const int least[LEVELS] = {16, 8, 6, 2}; /* minimum length of a bar */
    ctn__text whole = {0}, epoch = {0};
    char label[32];
    long long number;
    double part = in_epoch(&v->p, &number);
    int room = columns - 1, bar = 0, names = snprintf(label, sizeof label, "epoch %lld ", number);
    for (int level = 0; level < LEVELS && bar == 0; level++) {
        whole.n = epoch.n = 0;
        texts(v, level, &whole, &epoch);
        bar = room - names - 5 - (int)(whole.n > epoch.n ? whole.n : epoch.n);
        if (bar < least[level]) bar = 0;
    }
    if (bar == 0) { /* very narrow */
        whole.n = epoch.n = 0;
        names = 0;
        bar = room > 7 ? room - 5 : 0;
    }
    while (epoch.n > 0 && epoch.s[epoch.n - 1] == ' ') epoch.n--;
    ctn__text_add(out, "%-*.*s", names, names, "total");
    add_bar(out, v->p.total, bar, s);
    add_percent(out, v->p.total, 5);
    ctn__text_add(out, "%.*s%s\n", (int)whole.n, whole.n > 0 ? whole.s : "",
                  s->terminal ? "\x1b[K" : "");
    ctn__text_add(out, "%.*s", names, label);
    add_bar(out, part, bar, s);
    add_percent(out, part, 5);
    ctn__text_add(out, "%.*s", (int)epoch.n, epoch.n > 0 ? epoch.s : "");
    out->failed |= whole.failed || epoch.failed;
    ctn__text_free(&whole);
    ctn__text_free(&epoch);
}

void ctn__progress_line(ctn__text *out, const ctn__view *v)
{
    char a[16];
    long long epoch;
    double part = in_epoch(&v->p, &epoch);
    if (v->p.total >= 0) add_percent(out, v->p.total, 4);
    ctn__text_add(out, "%sepoch %lld (%d%%), step %lld", v->p.total >= 0 ? "  " : "", epoch,
                  (int)(part * 100), (long long)v->p.iteration);
    if (!isnan(v->loss)) ctn__text_add(out, ", loss %s", ctn__show_value(a, v->loss));
    if (v->rate >= 0) ctn__text_add(out, ", %s items/s", ctn__show_count(a, v->rate));
    ctn__text_add(out, ", %s", ctn__show_time(a, v->p.seconds));
    if (v->left >= 0) ctn__text_add(out, ", %s left", ctn__show_time(a, v->left));
    ctn__text_add(out, "\n");
}

/* ---- the extension --------------------------------------------------------------------------- */

enum { POINTS = 24 };
#define POINT_S 0.5 /* seconds between points: the rate is the average over the last 12 s */
#define QUIET_S 30  /* seconds between plain lines; there is also one every tenth of the run */

typedef struct {
    ctn__show show;
    struct point {
        double seconds;
        int64_t samples;
    } point[POINTS]; /* a ring */
    int64_t points;
    ctn_progress first; /* after the first step shown; planning and tuning happened before it */
    int64_t line_at;    /* iteration of the last plain line */
    int line_tenth;
    double line_s;
    bool any;
    bool drawn;
    /* With the default trigger the bars are redrawn when POINT_S seconds have passed, or when the
     * log has new rows, which print.c may have written over the bars. */
    bool usual;
    double at_s;
    int64_t rows;
} progress;

static void look(progress *b, const ctn_trainer *tr, ctn__view *v)
{
    *v = (ctn__view){.rate = -1, .left = -1, .loss = NAN};
    const ctn_progress *p = &v->p;
    ctn_trainer_progress(tr, &v->p);
    if (!ctn_trainer_value(tr, "train/loss", &v->loss)) v->loss = NAN;
    if (!b->any) {
        b->first = *p;
        b->line_s = p->seconds;
        b->line_tenth = (int)(p->total * 10);
    }
    b->any = true;
    if (b->points == 0 || p->seconds - b->point[(b->points - 1) % POINTS].seconds >= POINT_S)
        b->point[b->points++ % POINTS] = (struct point){p->seconds, p->samples};
    const struct point *from = &b->point[b->points > POINTS ? b->points % POINTS : 0];
    if (p->seconds > from->seconds)
        v->rate = (double)(p->samples - from->samples) / (p->seconds - from->seconds);
    else if (p->seconds > 0 && b->points == 1) v->rate = (double)p->samples / p->seconds;
    /* The time left follows from the mean of this run, because evaluations and slow steps
     * recur. */
    if (p->total >= 1) v->left = 0;
    else if (p->total > b->first.total && p->seconds > b->first.seconds)
        v->left = (1 - p->total) * (p->seconds - b->first.seconds) / (p->total - b->first.total);
}

static ctn_status draw(progress *b, const ctn__view *v, bool last)
{
    ctn__text t = {0};
    if (b->show.terminal) {
        ctn__text_add(&t, "\r");
        ctn__progress_bars(&t, v, &b->show, ctn__show_columns(&b->show));
        ctn__text_add(&t, "\x1b[J%s", last ? "\n" : "\x1b[A\r");
        b->drawn = true;
    } else {
        int tenth = (int)(v->p.total * 10);
        bool due = tenth > b->line_tenth || v->p.seconds - b->line_s >= QUIET_S || last;
        if (due && v->p.iteration != b->line_at) {
            ctn__progress_line(&t, v);
            b->line_tenth = tenth;
            b->line_s = v->p.seconds;
            b->line_at = v->p.iteration;
        }
    }
    if (!t.failed && t.n > 0) b->show.write(b->show.user, t.s);
    ctn_status st = t.failed ? CTN_ENOMEM : CTN_OK;
    ctn__text_free(&t);
    return st;
}

static ctn_status progress_call(void *self, ctn_trainer *tr)
{
    progress *b = self;
    ctn__view v;
    ctn_trainer_progress(tr, &v.p);
    if (b->usual && b->any && b->rows == ctn_trainer_rows(tr) && v.p.seconds - b->at_s < POINT_S)
        return CTN_OK;
    b->at_s = v.p.seconds;
    b->rows = ctn_trainer_rows(tr);
    look(b, tr, &v);
    return draw(b, &v, false);
}

static ctn_status progress_finish(void *self, ctn_trainer *tr)
{
    progress *b = self;
    ctn__view v;
    look(b, tr, &v);
    return b->drawn || v.p.iteration > 0 ? draw(b, &v, true) : CTN_OK;
}

ctn_status ctn_extend_progress(ctn_trainer *tr, const ctn_trigger *when, const ctn_show_opt *opt)
{
    if (tr == NULL) return ctn_fail(CTN_EARG, "extend_progress: no trainer");
    ctn__show show;
    CTN_TRY(ctn__show_init(&show, "extend_progress", opt));
    progress *b = ctn__calloc(1, sizeof *b);
    if (b == NULL) return CTN_ENOMEM;
    b->show = show;
    b->line_at = -1;
    b->usual = when == NULL;
    ctn_extension e = {.rank0_only = 1,
                       .priority = CTN_PRIORITY_SHOW - 1, /* after print.c, to stay below it */
                       .call = progress_call,
                       .finish = progress_finish,
                       .release = ctn__free,
                       .self = b};
    return ctn__show_extend(tr, "progress", NULL, when,
                            (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 1}, e);
}
