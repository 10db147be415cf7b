/* SPDX-License-Identifier: Apache-2.0
 *
 * Line charts as SVG:
 *
 *     title
 *     o train/loss 0.4312   o val/loss 0.5023        legend, on as many lines as needed
 *     2.0 |---------------------------------         ticks at 1, 2, 5 times powers of ten
 *     1.0 |---------------------------------
 *         0        5k       10k     15k
 *                               iteration
 *
 * All numbers in the text are printed as integers, so the program's locale cannot break them. A
 * long log is thinned to the minimum and maximum of each group of rows, which looks the same.
 */
#include "train/svg.h"

#include <math.h>

#include "train/show.h"

enum {
    EDGE = 16,
    LEFT = 58,
    RIGHT = 18,
    BOTTOM = 46,
    TITLE = 30,
    LEGEND = 20,
    COLOURS = 8,
    POINTS = 800
};

const char ctn__svg_style[] =
    ".chart{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    ".chart text{fill:#64748b;stroke:none}.chart .name{fill:#334155}"
    ".chart .title{fill:#0f172a;font-size:14px;font-weight:600}"
    ".chart .grid{stroke:#e2e8f0}.chart .axis{stroke:#94a3b8}"
    ".chart .ground{fill:#fff;stroke:none}.chart circle{stroke:none}"
    ".chart path{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}"
    ".s0{stroke:#2563eb;fill:#2563eb}.s1{stroke:#ea580c;fill:#ea580c}"
    ".s2{stroke:#059669;fill:#059669}.s3{stroke:#9333ea;fill:#9333ea}"
    ".s4{stroke:#db2777;fill:#db2777}.s5{stroke:#0891b2;fill:#0891b2}"
    ".s6{stroke:#a16207;fill:#a16207}.s7{stroke:#64748b;fill:#64748b}"
    "@media (prefers-color-scheme:dark){"
    ".chart text{fill:#94a3b8}.chart .name{fill:#cbd5e1}.chart .title{fill:#f1f5f9}"
    ".chart .grid{stroke:#263244}.chart .axis{stroke:#64748b}.chart .ground{fill:#0f172a}"
    ".s0{stroke:#60a5fa;fill:#60a5fa}.s1{stroke:#fb923c;fill:#fb923c}"
    ".s2{stroke:#34d399;fill:#34d399}.s3{stroke:#c084fc;fill:#c084fc}"
    ".s4{stroke:#f472b6;fill:#f472b6}.s5{stroke:#22d3ee;fill:#22d3ee}"
    ".s6{stroke:#facc15;fill:#facc15}.s7{stroke:#94a3b8;fill:#94a3b8}"
    "}";

/* ---- axes ------------------------------------------------------------------------------------ */

typedef struct {
    double lo, hi, step; /* exponents if the axis is logarithmic */
    bool log;
    double from, to; /* pixels */
} axis;

static double nice_step(double span, int about)
{
    double raw = span / about, ten = pow(10, floor(log10(raw))), f = raw / ten;
    return ten * (f <= 1.0001 ? 1 : f <= 2.0001 ? 2 : f <= 5.0001 ? 5 : 10);
}

/* True if v can be drawn on the axis. */
static bool has_place(const axis *a, double v)
{
    return isfinite(v) && (!a->log || v > 0);
}

static double place(const axis *a, double v)
{
    if (a->log) v = log10(v);
    double part = (v - a->lo) / (a->hi - a->lo);
    return a->from + fmin(fmax(part, 0), 1) * (a->to - a->from);
}

static void span(const ctn__chart *c, bool of_x, double *lo, double *hi)
{
    *lo = INFINITY;
    *hi = -INFINITY;
    for (int k = 0; k < c->n; k++)
        for (int64_t i = 0; i < c->series[k].n; i++) {
            double v = of_x ? c->series[k].x[i] : c->series[k].y[i];
            if (!isfinite(v)) continue;
            *lo = fmin(*lo, v);
            *hi = fmax(*hi, v);
        }
}

/* Makes the range non-empty, and wide enough that a step changes a double. */
static void widen(double *lo, double *hi)
{
    double least = 1e-9 * fmax(fabs(*lo), fabs(*hi));
    if (*hi - *lo > least && *hi - *lo > 1e-300) return;
    double by = fmax(fabs(*hi) * 0.1, *hi == 0 ? 1 : 1e-290);
    *lo -= by;
    *hi += by;
}

static axis x_axis(const ctn__chart *c)
{
    axis a = {.from = LEFT, .to = c->width - RIGHT};
    span(c, true, &a.lo, &a.hi);
    if (a.lo > 0 && a.lo < 0.2 * a.hi) a.lo = 0;
    widen(&a.lo, &a.hi);
    a.step = nice_step(a.hi - a.lo, c->width / 90);
    return a;
}

static axis y_axis(const ctn__chart *c, double top)
{
    axis a = {.from = c->height - BOTTOM, .to = top};
    span(c, false, &a.lo, &a.hi);
    if (c->may_log && a.lo > 0 && a.hi / a.lo > 100) {
        a.log = true;
        a.lo = floor(log10(a.lo) + 1e-9);
        a.hi = ceil(log10(a.hi) - 1e-9);
        a.step = ceil((a.hi - a.lo) / 6);
        return a;
    }
    widen(&a.lo, &a.hi);
    if (a.lo > 0 && (a.lo < 0.1 * a.hi || c->amounts)) a.lo = 0;
    a.step = nice_step(a.hi - a.lo, 5);
    a.lo = floor(a.lo / a.step + 1e-6) * a.step;
    a.hi = ceil(a.hi / a.step - 1e-6) * a.step;
    return a;
}

static void tick_text(char *buf, size_t n, const axis *a, double v)
{
    static const char *const unit[] = {"", "k", "M", "G"};
    int u = 0;
    double step = a->step, most = fmax(fabs(a->lo), fabs(a->hi));
    if (a->log && fabs(v) > 4) {
        snprintf(buf, n, "1e%d", (int)v);
        return;
    }
    if (a->log) v = step = pow(10, v);
    else if (fabs(v) < 1e-6 * step) v = 0;
    if (!a->log && (step < 1e-5 || most >= 1e13)) {
        snprintf(buf, n, "%.3g", v);
    } else {
        while (!a->log && most >= (u > 0 ? 1000 : 10000) && step >= 100 && u < 3) {
            most /= 1000;
            step /= 1000;
            v /= 1000;
            u++;
        }
        snprintf(buf, n, "%.*f%s", step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-6), v,
                 v != 0 ? unit[u] : "");
    }
    ctn__show_point(buf);
}

/* ---- text ------------------------------------------------------------------------------------ */

/* A length in tenths of a pixel, clamped to 0. */
static void add_px(ctn__text *out, const char *before, double v)
{
    long t = lround(fmax(v, 0) * 10);
    ctn__text_add(out, t % 10 != 0 ? "%s%ld.%ld" : "%s%ld", before, t / 10, t % 10);
}

static void add_line(ctn__text *out, const char *kind, double x1, double y1, double x2, double y2)
{
    ctn__text_add(out, "<line class=\"%s", kind);
    add_px(out, "\" x1=\"", x1);
    add_px(out, "\" y1=\"", y1);
    add_px(out, "\" x2=\"", x2);
    add_px(out, "\" y2=\"", y2);
    ctn__text_add(out, "\"/>");
}

static void add_label(ctn__text *out, const char *attributes, double x, double y, const char *text)
{
    ctn__text_add(out, "<text %s", attributes);
    add_px(out, " x=\"", x);
    add_px(out, "\" y=\"", y);
    ctn__text_add(out, "\">");
    ctn__show_text(out, text, true);
    ctn__text_add(out, "</text>\n");
}

static void add_axes(ctn__text *out, const ctn__chart *c, const axis *x, const axis *y)
{
    char text[32];
    for (int i = 0; i <= 40; i++) {
        double v = y->lo + i * y->step;
        if (v > y->hi + 1e-6 * y->step) break;
        double at = place(y, y->log ? pow(10, v) : v);
        add_line(out, i == 0 ? "axis" : "grid", LEFT, at, x->to, at);
        tick_text(text, sizeof text, y, v);
        add_label(out, "text-anchor=\"end\"", LEFT - 8, at + 4, text);
    }
    for (int i = 0; i <= 40; i++) {
        double v = (ceil(x->lo / x->step - 1e-6) + i) * x->step;
        if (v > x->hi + 1e-6 * x->step) break;
        double at = place(x, v);
        add_line(out, "axis", at, y->from, at, y->from + 5);
        tick_text(text, sizeof text, x, v);
        add_label(out, "text-anchor=\"middle\"", at, y->from + 19, text);
    }
    if (y->log) add_label(out, "text-anchor=\"start\"", LEFT + 6, y->to + 12, "log scale");
    if (c->x_name != NULL) add_label(out, "text-anchor=\"end\"", x->to, y->from + 36, c->x_name);
}

/* Draws the legend with the last values and returns its height. If out is NULL, only measures
 * it. */
static double add_legend(ctn__text *out, const ctn__chart *c, double top)
{
    double x = EDGE, y = top;
    char value[16];
    for (int k = 0; k < c->n; k++) {
        const ctn__series *s = &c->series[k];
        double wide = 7.0 * (double)(strlen(s->name) + 8) + 22;
        if (x > EDGE && x + wide > c->width - RIGHT) {
            x = EDGE;
            y += LEGEND;
        }
        if (out != NULL) {
            ctn__text_add(out, "<circle class=\"s%d\" r=\"4\"", k % COLOURS);
            add_px(out, " cx=\"", x + 4);
            add_px(out, "\" cy=\"", y + 6);
            ctn__text_add(out, "\"/><text class=\"name\"");
            add_px(out, " x=\"", x + 14);
            add_px(out, "\" y=\"", y + 10);
            ctn__text_add(out, "\">");
            ctn__show_text(out, s->name, true);
            double last = s->n > 0 ? s->y[s->n - 1] : NAN;
            ctn__text_add(out, " <tspan font-weight=\"600\">%s</tspan></text>\n",
                          c->amounts ? ctn__show_count(value, last) : ctn__show_value(value, last));
        }
        x += wide;
    }
    return y + LEGEND - top;
}

typedef struct {
    ctn__text *out;
    const axis *x, *y;
    bool down; /* the last point was drawn */
} pen;

static void move(pen *p, const ctn__series *s, int64_t i)
{
    if (!has_place(p->y, s->y[i])) {
        p->down = false;
        return;
    }
    add_px(p->out, p->down ? "L" : "M", place(p->x, s->x[i]));
    add_px(p->out, " ", place(p->y, s->y[i]));
    p->down = true;
}

static void add_curve(ctn__text *out, const ctn__series *s, int k, const axis *x, const axis *y)
{
    pen p = {out, x, y, false};
    int64_t group = (s->n + POINTS - 1) / POINTS;
    ctn__text_add(out, "<path class=\"s%d\"%s d=\"", k % COLOURS,
                  k >= COLOURS ? " stroke-dasharray=\"6 4\"" : "");
    for (int64_t i = 0; i < s->n; i += group > 2 ? group : 1) {
        int64_t low = i, high = i;
        for (int64_t j = i + 1; group > 2 && j < i + group && j < s->n; j++) {
            if (!has_place(y, s->y[j])) continue;
            if (!(s->y[j] >= s->y[low])) low = j;
            if (!(s->y[j] <= s->y[high])) high = j;
        }
        move(&p, s, low < high ? low : high);
        if (low != high) move(&p, s, low < high ? high : low);
    }
    ctn__text_add(out, "\"/>\n");
    for (int64_t i = s->n; i-- > 0;) { /* a dot at the last value */
        if (!has_place(y, s->y[i])) continue;
        ctn__text_add(out, "<circle class=\"s%d\" r=\"3\"", k % COLOURS);
        add_px(out, " cx=\"", place(x, s->x[i]));
        add_px(out, "\" cy=\"", place(y, s->y[i]));
        ctn__text_add(out, "\"/>\n");
        break;
    }
}

void ctn__svg_chart(ctn__text *out, const ctn__chart *c)
{
    double lo, hi, top = TITLE + add_legend(NULL, c, 0) + 6;
    ctn__text_add(out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" "
                  "viewBox=\"0 0 %d %d\"",
                  c->width, c->height);
    if (c->alone)
        ctn__text_add(out,
                      " width=\"%d\" height=\"%d\"><style>%s</style>\n"
                      "<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>",
                      c->width, c->height, ctn__svg_style);
    else ctn__text_add(out, ">\n");
    ctn__text_add(out, "<title>");
    ctn__show_text(out, c->title, true);
    ctn__text_add(out, "</title>\n");
    add_label(out, "class=\"title\"", EDGE, 22, c->title);
    span(c, false, &lo, &hi);
    if (lo <= hi) {
        axis x = x_axis(c), y = y_axis(c, top);
        add_axes(out, c, &x, &y);
        add_legend(out, c, TITLE);
        for (int k = 0; k < c->n; k++) add_curve(out, &c->series[k], k, &x, &y);
    } else {
        add_label(out, "text-anchor=\"middle\"", c->width / 2.0, c->height / 2.0, "no values yet");
    }
    ctn__text_add(out, "</svg>\n");
}

/* ---- series of a training -------------------------------------------------------------------- */

ctn_status ctn__series_read(ctn__series *s, const ctn_trainer *tr, const char *name)
{
    int64_t rows = ctn_trainer_rows(tr), n = 0;
    double *x = ctn__malloc(ctn__mul((size_t)rows, 2 * sizeof *x));
    *s = (ctn__series){.name = name};
    if (x == NULL) return CTN_ENOMEM;
    double *y = x + rows;
    for (int64_t i = 0; i < rows; i++) {
        ctn_progress p;
        y[n] = ctn_trainer_row_value(tr, i, name);
        if (isnan(y[n])) continue;
        ctn_trainer_row_progress(tr, i, &p);
        x[n++] = (double)p.iteration;
    }
    s->n = n;
    s->x = x;
    s->y = y;
    return CTN_OK;
}

void ctn__series_free(ctn__series *s)
{
    ctn__free((void *)s->x);
    s->x = s->y = NULL;
    s->n = 0;
}

bool ctn__series_is_loss(const char *name)
{
    const char *last = ctn__show_last(name);
    return strstr(last, "loss") != NULL || strstr(last, "error") != NULL;
}
