/* SPDX-License-Identifier: Apache-2.0
 *
 * The distribution of each parameter over time: its percentiles are observed as "param/NAME/p2" and
 * so on, before the log is written, and plotted from the rows of the log. So the curves of a
 * resumed training continue; until the end of a run, they lack the last row. 2, 16, 84 and 98 %
 * of a normal distribution are two and one deviations from its mean.
 */
#include <math.h>

#include "optim/optim.h"
#include "train/show.h"
#include "train/svg.h"
#include "train/train.h"

enum { LINES = 7, WIDTH = 720, HEIGHT = 300 };

static const struct {
    const char *name;
    double share;
} lines[LINES] = {{"max", 1},    {"p98", 0.98}, {"p84", 0.84}, {"p50", 0.5},
                  {"p16", 0.16}, {"p2", 0.02},  {"min", 0}};

typedef struct {
    char *pattern;
    ctn__text path;
} plot;

/* ---- percentiles ----------------------------------------------------------------------------- */

/* Sorts x[lo, hi) so far that x[r] is in its place for each r of the n ascending ranks. Equal
 * elements, such as many zeros, are put aside together. NaN must not occur. */
static void place(double *x, int64_t lo, int64_t hi, const int64_t *rank, int n)
{
    while (n > 0 && hi - lo > 1) {
        const double a = x[lo], b = x[lo + (hi - lo) / 2], c = x[hi - 1];
        const double pivot = fmax(fmin(a, b), fmin(fmax(a, b), c)); /* the median of the three */
        int64_t less = lo, more = hi; /* x[lo, less) < pivot, x[more, hi) > pivot */
        for (int64_t i = lo; i < more;) {
            const double v = x[i];
            if (v < pivot) {
                x[i++] = x[less];
                x[less++] = v;
            } else if (v > pivot) {
                x[i] = x[--more];
                x[more] = v;
            } else {
                i++;
            }
        }
        int left = 0, right = n;
        while (left < n && rank[left] < less) left++;
        while (right > left && rank[right - 1] >= more) right--;
        place(x, lo, less, rank, left);
        rank += right;
        n -= right;
        lo = more;
    }
}

/* Values between two elements are interpolated. x is reordered; all are NaN if it has a NaN. */
static void percentiles(double *x, int64_t n, double out[LINES])
{
    int64_t rank[2 * LINES];
    bool finite = true;
    for (int64_t i = 0; i < n; i++) finite &= !isnan(x[i]);
    for (int k = 0; k < LINES; k++) {
        const double at = lines[LINES - 1 - k].share * (double)(n - 1);
        rank[2 * k] = (int64_t)floor(at);
        rank[2 * k + 1] = (int64_t)ceil(at);
    }
    if (finite) place(x, 0, n, rank, 2 * LINES);
    for (int k = 0; k < LINES; k++) {
        const double at = lines[k].share * (double)(n - 1), low = x[(int64_t)floor(at)];
        out[k] = finite ? low + (x[(int64_t)ceil(at)] - low) * (at - floor(at)) : NAN;
    }
}

static ctn_status observe_one(ctn_trainer *tr, const char *name, const ctn_var *v)
{
    const int64_t n = ctn__count(&v->d);
    double out[LINES], *x = ctn__malloc((size_t)n * sizeof *x);
    ctn_status st = CTN_OK;
    if (!x) return CTN_ENOMEM;
    for (int64_t i = 0; i < n; i++) x[i] = ctn__elem_get(v->data, v->d.dtype, i);
    percentiles(x, n, out);
    for (int k = 0; k < LINES && st == CTN_OK; k++) {
        char full[512];
        snprintf(full, sizeof full, "param/%s/%s", name, lines[k].name);
        st = ctn_trainer_observe(tr, full, out[k]);
    }
    ctn__free(x);
    return st;
}

static ctn_status observe(void *self, ctn_trainer *tr)
{
    CTN_TRY(ctn__trainer_settle(tr));
    const plot *to = self;
    const ctn_vars p = ctn_params(tr->o.net);
    for (int i = 0; i < p.n; i++)
        if (ctn__match(to->pattern, p.name[i]) && ctn__count(&p.var[i]->d) > 0)
            CTN_TRY(observe_one(tr, p.name[i], p.var[i]));
    return CTN_OK;
}

/* ---- charts ---------------------------------------------------------------------------------- */

static ctn_status add_chart(ctn__text *out, const ctn_trainer *tr, const char *name, int place_of)
{
    ctn__series series[LINES] = {{0}};
    char full[LINES][512];
    ctn_status st = CTN_OK;
    for (int k = 0; k < LINES && st == CTN_OK; k++) {
        snprintf(full[k], sizeof full[k], "param/%s/%s", name, lines[k].name);
        st = ctn__series_read(&series[k], tr, full[k]);
        series[k].name = lines[k].name;
    }
    if (st == CTN_OK) {
        ctn__text_add(out, "<svg y=\"%d\" width=\"%d\" height=\"%d\">\n", place_of * HEIGHT, WIDTH,
                      HEIGHT);
        ctn__svg_chart(out, &(ctn__chart){.title = name,
                                          .x_name = "iteration",
                                          .width = WIDTH,
                                          .height = HEIGHT,
                                          .series = series,
                                          .n = LINES});
        ctn__text_add(out, "</svg>\n");
    }
    for (int k = 0; k < LINES; k++) ctn__series_free(&series[k]);
    return st;
}

static ctn_status draw(void *self, ctn_trainer *tr)
{
    const plot *p = self;
    const ctn_vars v = ctn_params(tr->o.net);
    ctn__text charts = {0}, out = {0};
    ctn_status st = CTN_OK;
    int n = 0;
    if (!ctn__writes(tr)) return CTN_OK;
    for (int i = 0; i < v.n && st == CTN_OK; i++)
        if (ctn__match(p->pattern, v.name[i]) && ctn__count(&v.var[i]->d) > 0)
            st = add_chart(&charts, tr, v.name[i], n++);
    ctn__text_add(&out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"%d\" "
                  "height=\"%d\"><style>%s</style>\n"
                  "<rect class=\"ground\" width=\"100%%\" height=\"100%%\"/>\n%s</svg>\n",
                  WIDTH, n * HEIGHT, ctn__svg_style, charts.s ? charts.s : "");
    if (charts.failed && st == CTN_OK) st = CTN_ENOMEM;
    ctn__text_free(&charts);
    if (st == CTN_OK) return ctn__show_file(p->path.s, &out);
    ctn__text_free(&out);
    return st;
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    CTN_TRY(observe(self, tr));
    return ctn__show_forgive(draw(self, tr));
}

static void release(void *self)
{
    plot *p = self;
    ctn__free(p->pattern);
    ctn__text_free(&p->path);
    ctn__free(p);
}

ctn_status ctn_extend_param_plot(ctn_trainer *tr, const ctn_trigger *when, const char *pattern,
                                 const char *file)
{
    ctn_status st = CTN_OK;
    if (!tr || !tr->o.net)
        return ctn_fail(tr ? CTN_ESTATE : CTN_EARG,
                        "extend_param_plot: needs a trainer with a net (ctn_trainer_opt.net)");
    plot *p = ctn__calloc(1, sizeof *p);
    if (!p) return CTN_ENOMEM;
    p->pattern = ctn__strdup(pattern ? pattern : "*");
    if (!p->pattern) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    CTN_TRY_GOTO(st, fail, ctn__show_path(&p->path, "extend_param_plot", tr, file));
    return ctn__show_extend(tr, "param_plot", file, when,
                            (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1},
                            (ctn_extension){.priority = CTN_PRIORITY_EVALUATE,
                                            .call = call,
                                            .finish = draw,
                                            .release = release,
                                            .self = p});
fail:
    release(p);
    return st;
}
