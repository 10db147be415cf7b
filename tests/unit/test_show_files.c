/* SPDX-License-Identifier: Apache-2.0
 *
 * What a training writes to its folder: charts and the page are well-formed whatever the values
 * and names are, event files are decoded by an independent reader, also after a resume, and a
 * failing allocation causes no leak and no crash.
 */
#define _GNU_SOURCE /* nftw */
#include <dirent.h>
#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/catena.h>
#include <catena/train.h>

#include "support/check.h"
#include "support/ok.h"
#include "train/show.h"
#include "train/svg.h"
#include "train/train.h"

#include <cmocka.h>

/* ---- an allocator that can fail -------------------------------------------------------------- */

static failing_once memory;

/* ---- markup ---------------------------------------------------------------------------------- */

static const char *skip_entity(const char *s)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < 5; i++)
        if (strncmp(s, known[i], strlen(known[i])) == 0) return s + strlen(known[i]);
    fail_msg("bare &: %.40s", s);
    return s;
}

/* Elements are nested and closed, attributes quoted, text escaped: XML as we write it. */
static void assert_markup(const char *s)
{
    char open[32][16];
    int depth = 0, roots = 0;
    if (strncmp(s, "<!DOCTYPE html>\n", 16) == 0) s += 16;
    while (*s != 0) {
        if (*s == '&') {
            s = skip_entity(s);
            continue;
        }
        if (*s != '<') {
            if (depth == 0) assert_true(*s == '\n');
            s++;
            continue;
        }
        bool close = s[1] == '/';
        s += 1 + close;
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789");
        assert_in_range(n, 1, 15);
        if (close) {
            assert_true(depth > 0);
            depth--;
            if (strlen(open[depth]) != n || strncmp(open[depth], s, n) != 0 || s[n] != '>')
                fail_msg("</%.*s> closes <%s>", (int)n, s, open[depth]);
            s += n + 1;
            continue;
        }
        assert_true(depth < 32);
        roots += depth == 0;
        memcpy(open[depth], s, n);
        open[depth++][n] = 0;
        for (s += n; *s == ' '; s++) {
            s += 1 + strcspn(s + 1, "=>");
            assert_true(s[0] == '=' && s[1] == '"');
            for (s += 2; *s != '"';) {
                assert_true(*s != 0 && *s != '<');
                s = *s == '&' ? skip_entity(s) : s + 1;
            }
        }
        if (*s == '/') {
            depth--;
            s++;
        }
        if (*s != '>') fail_msg("<%s is not closed: %.40s", open[depth], s);
        s++;
    }
    assert_int_equal(depth, 0);
    assert_int_equal(roots, 1);
}

static int count_of(const char *s, const char *what)
{
    int n = 0;
    for (; (s = strstr(s, what)) != NULL; s += strlen(what)) n++;
    return n;
}

static char *chart_of(const ctn__series *s, int n, bool may_log)
{
    ctn__text t = {0};
    ctn__chart c = {.title = "a <chart> & more",
                    .x_name = "iteration",
                    .width = 600,
                    .height = 300,
                    .may_log = may_log,
                    .alone = true,
                    .series = s,
                    .n = n};
    ctn__svg_chart(&t, &c);
    assert_false(t.failed);
    assert_markup(t.s);
    assert_null(strstr(t.s, "nan"));
    const char *curves = strstr(t.s, "<path");
    assert_true(curves == NULL || strstr(curves, "inf") == NULL);
    return t.s;
}

static void test_chart(void **state)
{
    (void)state;
    enum { N = 5000 };
    static double x[N], y[N];
    for (int i = 0; i < N; i++) {
        x[i] = i * 10;
        y[i] = i == 0 ? 1 : exp(-i / 500.0) * (i == 2345 ? 3 : 1);
    }
    ctn__series s = {.name = "train/\"loss\"", .n = 3, .x = x, .y = (const double[]){0, 1, 2}};
    char *t = chart_of(&s, 1, true);
    assert_non_null(strstr(t, "train/&quot;loss&quot; <tspan font-weight=\"600\">2.0000</tspan>"));
    /* (0,0), (10,1), (20,2): the corners and the middle of the area. */
    assert_non_null(strstr(t, "d=\"M58 254L320 155L582 56\""));
    assert_non_null(strstr(t, ">0.5</text>"));
    /* The numbers of the axes stand left of and below their lines. */
    assert_non_null(strstr(t, "x=\"50\" y=\"258\">0.0<"));
    assert_non_null(strstr(t, "x=\"58\" y=\"273\">0<"));
    ctn__free(t);
    s.y = (const double[]){5, 6, 7}; /* far from 0: the axis begins at 5 */
    t = chart_of(&s, 1, true);
    assert_non_null(strstr(t, "d=\"M58 254L320 155L582 56\""));
    ctn__free(t);

    s.x = (const double[]){30, 40, 50}; /* the ticks begin there too */
    t = chart_of(&s, 1, true);
    assert_non_null(strstr(t, "x=\"58\" y=\"273\">30<"));
    assert_non_null(strstr(t, "x=\"582\" y=\"273\">50<"));
    ctn__free(t);

    s = (ctn__series){.name = "loss", .n = N, .x = x, .y = y}; /* 1 to 4.5e-5 */
    t = chart_of(&s, 1, true);
    assert_non_null(strstr(t, ">0.0001</text>"));
    assert_null(strstr(t, ">0.2</text>"));
    assert_in_range(count_of(t, "L"), 700, 1700); /* thinned */
    ctn__free(t);
    t = chart_of(&s, 1, false);
    assert_non_null(strstr(t, ">0.2</text>"));
    ctn__free(t);

    const double gap[] = {1, INFINITY, 2, 3, NAN, -INFINITY, 4};
    const double odd[] = {-1e300, 1e300, 0, 5e-324, 1, 1, 1}, same[] = {7, 7, 7, 7, 7, 7, 7};
    const double zero[7] = {0}, near[] = {1, 1 + 1e-15, 1, 1, 1, 1, 1},
                 big[] = {1e6, 2e6, 3e6, 4e6, 5e6, 6e6, 7e6};
    const double *const ys[] = {gap, odd, same, zero, near, big};
    for (int k = 0; k < 6; k++)
        for (int n = 0; n <= 7; n++)
            for (int form = 0; form < 2; form++) {
                s = (ctn__series){.name = "loss", .n = n, .x = form ? big : x, .y = ys[k]};
                t = chart_of(&s, 1, true);
                if (k == 0 && n == 7) assert_int_equal(count_of(strstr(t, "d=\""), "M"), 3);
                if (k == 5 && n == 7) assert_non_null(strstr(t, ">4M</text>"));
                if (n == 0) assert_non_null(strstr(t, "no values yet"));
                ctn__free(t);
            }
}

/* ---- a training ------------------------------------------------------------------------------ */

static char folder[64];
static ctn__text shown;

static void show(void *user, const char *text)
{
    (void)user;
    ctn__text_add(&shown, "%s", text);
}

static ctn_tensor *loss(void *net, ctn_step *s)
{
    ctn_tensor *y = ctn_call(net, ctn_step_input(s, 0));
    return ctn_mean_squared_error(y, ctn_step_input(s, 1), CTN_MEAN);
}

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *opt;
    ctn_dataset *ds;
    ctn_sampler *order;
    ctn_loader *loader;
    ctn_trainer *tr;
} training;

static double a_value(void *self, ctn_trainer *tr)
{
    ctn_progress p;
    (void)self;
    ctn_trainer_progress(tr, &p);
    return p.epoch == 2 ? 0 : 100 + (double)p.epoch; /* a zero must be shown too */
}

static double no_number(void *self, ctn_trainer *tr)
{
    (void)self, (void)tr;
    return INFINITY;
}

#define ODD_NAME "a<b>&'c'"
static const char *const plotted[] = {"train/loss", ODD_NAME, NULL};
static const char *const facts[] = {"machine", "<script>alert('x')</script>", "odd & \x1b[0m", "",
                                    NULL};

/* terminal 0: nothing is shown. */
static void make(training *t, int64_t epochs, int terminal)
{
    static float x[12][2], y[12][1];
    const ctn_field field[2] = {{.dtype = CTN_F32, .ndim = 1, .shape = {2}},
                                {.dtype = CTN_F32, .ndim = 1, .shape = {1}}};
    for (int i = 0; i < 12; i++) {
        x[i][0] = (float)i / 12;
        x[i][1] = (float)(i % 5) / 5;
        y[i][0] = x[i][0] - x[i][1];
    }
    *t = (training){0};
    OK(ctn_context_new(&t->ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    OK(ctn_linear_new(&t->net, t->ctx, 2, 1, NULL));
    OK(ctn_sgd_new(&t->opt, ctn_params(t->net), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    OK(ctn_arrays_open(&t->ds, 12, 2, field, (const void *const[]){x, y}));
    OK(ctn_sampler_sequential(&t->order, 12));
    OK(ctn_loader_new(&t->loader, t->ds, t->order, CTN_OPT(ctn_loader_opt, .batch = 4)));
    OK(ctn_trainer_new(&t->tr, t->opt, t->loader, loss, t->net,
                       CTN_OPT(ctn_trainer_opt, .net = t->net, .epochs = epochs, .out = folder)));
    OK(ctn_extend_observe(t->tr, NULL, ODD_NAME, a_value, NULL));
    OK(ctn_extend_log(t->tr, NULL, "log.jsonl"));
    if (terminal == 0) return;
    const ctn_show_opt *to =
        CTN_OPT(ctn_show_opt, .write = show, .terminal = terminal, .columns = 60);
    OK(ctn_extend_progress(t->tr, terminal > 0 ? NULL : CTN_TRIGGER(CTN_EVERY_ITERATIONS, 1), to));
    OK(ctn_extend_print(t->tr, NULL, NULL, to));
    OK(ctn_extend_plot(t->tr, NULL, plotted, "a plot.svg"));
    OK(ctn_extend_html(t->tr, NULL, "report.html", "A <title> & more", facts));
#ifdef CTN_HAVE_PROTOBUFC
    OK(ctn_extend_tensorboard(t->tr, NULL, "events"));
#else
    assert_int_equal(ctn_extend_tensorboard(t->tr, NULL, "events"), CTN_EUNSUPPORTED);
    ctn_error_clear();
#endif
}

static void drop(training *t)
{
    ctn_trainer_free(t->tr);
    ctn_loader_free(t->loader);
    ctn_sampler_free(t->order);
    ctn_dataset_free(t->ds);
    ctn_optim_free(t->opt);
    ctn_module_free(t->net);
    ctn_context_free(t->ctx);
}

static char *file_text(const char *name, size_t *n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (f == NULL) fail_msg("%s is not there", path);
    static char text[1 << 20];
    size_t got = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[got] = 0;
    if (n != NULL) *n = got;
    return text;
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "show-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info, (void)kind, (void)at;
    return remove(path);
}

static int teardown(void **state)
{
    (void)state;
    return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void test_training(void **state)
{
    (void)state;
    training t;
    make(&t, 3, -1);
    OK(ctn_trainer_run(t.tr));
    char *s = shown.s;
    assert_null(strchr(s, 0x1b));
    assert_int_equal(count_of(s, "epoch "), 9); /* 8 steps after the first, one header */
    assert_int_equal(count_of(s, "\n    1 ") + count_of(s, "\n    2 ") + count_of(s, "\n    3 "),
                     3);
    assert_non_null(strstr(s, "100%  epoch 3 (100%), step 9, loss "));
    char *page = file_text("report.html", NULL);
    assert_markup(page);
    assert_null(strstr(page, "<script"));
    assert_int_equal(count_of(page, "http"), count_of(page, "xmlns=\"http")); /* no network */
    assert_non_null(strstr(page, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;"));
    assert_non_null(strstr(page, "<h1>A &lt;title&gt; &amp; more</h1>"));
    assert_non_null(strstr(page, "3 epochs, 9 steps, 36.0 samples"));
    assert_non_null(strstr(page, "a&lt;b&gt;&amp;&#39;c&#39;"));
    assert_int_equal(count_of(page, "</svg>"), 3); /* loss, the odd one, throughput */
    char *svg = file_text("a plot.svg", NULL);
    assert_markup(svg);
    assert_int_equal(count_of(svg, "<path "), 2);
    ctn__text_free(&shown);
    drop(&t);

    make(&t, 3, 1); /* on a terminal: never wider, ends below the bars */
    OK(ctn_trainer_run(t.tr));
    s = shown.s;
    /* The first step and every line of the log: the bars are redrawn below it at once. */
    assert_in_range(count_of(s, "\x1b[A"), 4, 9);
    assert_int_equal(count_of(s, "\n\rtotal "), 3);
    assert_string_equal(s + shown.n - 4, "\x1b[J\n");
    ctn__text_free(&shown);
    drop(&t);
}

/* JSON has neither NaN nor infinities. */
static void test_log_without_number(void **state)
{
    (void)state;
    training t;
    make(&t, 1, 0);
    OK(ctn_extend_observe(t.tr, NULL, "unknown", no_number, NULL));
    OK(ctn_trainer_run(t.tr));
    const char *text = file_text("log.jsonl", NULL);
    if (!strstr(text, "\"unknown\":null")) fail_msg("the log is %s", text);
    drop(&t);
}

/* The title is the last part of the name if all curves have the same one. */
static void test_plot_title(void **state)
{
    (void)state;
    training t;
    make(&t, 1, 0);
    OK(ctn_extend_observe(t.tr, NULL, "other/loss", a_value, NULL));
    OK(ctn_extend_plot(t.tr, NULL, (const char *const[]){"train/loss", "other/loss", NULL},
                       "same.svg"));
    OK(ctn_extend_plot(t.tr, NULL, plotted, "mixed.svg"));
    OK(ctn_trainer_run(t.tr));
    assert_non_null(strstr(file_text("same.svg", NULL), "<title>loss</title>"));
    assert_non_null(strstr(file_text("mixed.svg", NULL), "<title>values</title>"));
    drop(&t);
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Of a network that is not trained, so its values are known at the end. Half of them are equal. */
static void test_param_plot(void **state)
{
    (void)state;
    enum { IN = 50, OUT = 41, ALL = IN * OUT };
    static const struct {
        const char *name;
        double share;
    } points[] = {{"min", 0},    {"p2", 0.02},  {"p16", 0.16}, {"p50", 0.5},
                  {"p84", 0.84}, {"p98", 0.98}, {"max", 1}};
    static float w[ALL];
    training t;
    ctn_module *big = NULL;
    make(&t, 1, 0);
    ctn_trainer_free(t.tr);
    OK(ctn_linear_new(&big, t.ctx, IN, OUT, NULL));
    ctn_var *v = ctn_module_find(big, "weight");
    OK(ctn_var_get(v, w, sizeof w));
    for (int i = 0; i < ALL; i += 2) w[i] = 0;
    OK(ctn_var_set(v, w, sizeof w));
    OK(ctn_trainer_new(&t.tr, t.opt, t.loader, loss, t.net,
                       CTN_OPT(ctn_trainer_opt, .net = big, .epochs = 3, .out = folder)));
    OK(ctn_extend_log(t.tr, NULL, NULL));
    OK(ctn_extend_param_plot(t.tr, NULL, NULL, "a param plot.svg"));
    assert_int_equal(ctn_extend_param_plot(t.tr, NULL, NULL, "a param plot.svg"), CTN_EARG);
    assert_int_equal(ctn_extend_param_plot(t.tr, NULL, NULL, NULL), CTN_EARG);
    ctn_error_clear();
    OK(ctn_trainer_run(t.tr));
    qsort(w, ALL, sizeof *w, by_value);
    for (size_t k = 0; k < sizeof points / sizeof *points; k++) {
        const double at = points[k].share * (ALL - 1), low = (double)w[(int)floor(at)];
        char name[64];
        double found = NAN;
        snprintf(name, sizeof name, "param/weight/%s", points[k].name);
        assert_int_equal(ctn_trainer_value(t.tr, name, &found), 1);
        assert_true(fabs(found - (low + ((double)w[(int)ceil(at)] - low) * (at - floor(at)))) <
                    1e-12);
    }
    char *svg = file_text("a param plot.svg", NULL);
    assert_markup(svg);
    assert_int_equal(count_of(svg, "<path "), 2 * 7); /* weight and bias */
    assert_int_equal(count_of(svg, "</svg>"), 5);
    ctn_trainer_free(t.tr);
    t.tr = NULL;
    ctn_module_free(big);
    drop(&t);
}

static void test_refused(void **state)
{
    (void)state;
    training t;
    make(&t, 1, -1);
    assert_int_equal(ctn_extend_plot(t.tr, NULL, plotted, NULL), CTN_EARG);
    assert_int_equal(ctn_extend_plot(t.tr, NULL, NULL, "x.svg"), CTN_EARG);
    assert_int_equal(ctn_extend_plot(t.tr, NULL, plotted, "a plot.svg"), CTN_EARG); /* twice */
    assert_int_equal(ctn_extend_html(t.tr, NULL, "x.html", NULL, plotted + 1), CTN_EARG);
    assert_int_equal(ctn_extend_progress(NULL, NULL, NULL), CTN_EARG);
    ctn_error_clear();
    drop(&t);
}

/* ---- event files, with an independent reader ------------------------------------------------- */

#ifdef CTN_HAVE_PROTOBUFC

static uint32_t crc32c(const uint8_t *p, size_t n)
{
    uint32_t c = ~0u;
    for (size_t i = 0; i < n * 8; i++) {
        uint32_t bit = (c ^ (uint32_t)(p[i / 8] >> (i % 8))) & 1;
        c = c >> 1 ^ (bit ? 0x82f63b78u : 0);
    }
    return ~c;
}

static uint32_t masked(const uint8_t *p, size_t n)
{
    uint32_t c = crc32c(p, n);
    return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

typedef struct {
    int field, kind;
    uint64_t number; /* varint and fixed */
    const uint8_t *p;
    size_t n;
} item;

static uint64_t varint(const uint8_t **p)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        v |= (uint64_t)(**p & 0x7f) << shift;
        if (*(*p)++ < 0x80) return v;
    }
}

static bool next_item(const uint8_t **p, const uint8_t *end, item *out)
{
    if (*p >= end) return false;
    uint64_t key = varint(p);
    *out = (item){.field = (int)(key >> 3), .kind = (int)(key & 7)};
    size_t n = out->kind == 1 ? 8 : out->kind == 5 ? 4 : 0;
    if (out->kind == 0) out->number = varint(p);
    else if (out->kind == 2) n = varint(p);
    else assert_true(n > 0);
    assert_true(n <= (size_t)(end - *p));
    out->p = *p;
    out->n = n;
    if (n == 8 || n == 4) memcpy(&out->number, *p, n);
    *p += n;
    return true;
}

typedef struct {
    int files, versions, sessions, scalars;
    int64_t session_step;
} board_seen;

/* Compares one value with the row of the log at its step. */
static void check_value(const item *value, const ctn_trainer *tr, int64_t step)
{
    char tag[64] = "";
    float v = NAN;
    item i;
    for (const uint8_t *p = value->p; next_item(&p, value->p + value->n, &i);)
        if (i.field == 1) snprintf(tag, sizeof tag, "%.*s", (int)i.n, i.p);
        else if (i.field == 2 && i.kind == 5) memcpy(&v, i.p, 4);
    for (int64_t row = 0; row < ctn_trainer_rows(tr); row++) {
        ctn_progress p;
        ctn_trainer_row_progress(tr, row, &p);
        if (p.iteration != step) continue;
        assert_true(v == (float)ctn_trainer_row_value(tr, row, tag));
        return;
    }
    fail_msg("no row at step %lld", (long long)step);
}

static void check_events(const char *name, const ctn_trainer *tr, board_seen *seen)
{
    size_t n;
    char path[512];
    snprintf(path, sizeof path, "events/%s", name);
    const uint8_t *s = (const uint8_t *)file_text(path, &n), *end = s + n;
    while (s < end) {
        uint64_t bytes;
        uint32_t a, b;
        memcpy(&bytes, s, 8);
        memcpy(&a, s + 8, 4);
        assert_true(bytes < (uint64_t)(end - s));
        memcpy(&b, s + 12 + bytes, 4);
        assert_int_equal(a, masked(s, 8));
        assert_int_equal(b, masked(s + 12, bytes));
        int64_t step = 0;
        double wall = 0;
        item i, v;
        for (const uint8_t *p = s + 12; next_item(&p, s + 12 + bytes, &i);) {
            if (i.field == 1) memcpy(&wall, &i.number, 8);
            else if (i.field == 2) step = (int64_t)i.number;
            else if (i.field == 3)
                seen->versions += strncmp((const char *)i.p, "brain.Event:2", 13) == 0;
            else if (i.field == 7) {
                seen->sessions++;
                seen->session_step = step;
            } else if (i.field == 5) {
                for (const uint8_t *q = i.p; next_item(&q, i.p + i.n, &v); seen->scalars++)
                    check_value(&v, tr, step);
            }
        }
        assert_true(wall > 1.5e9);
        s += bytes + 16;
    }
}

static board_seen all_events(const ctn_trainer *tr)
{
    char path[128];
    board_seen seen = {0};
    snprintf(path, sizeof path, "%s/events", folder);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (strncmp(e->d_name, "events.out.tfevents.", 20) == 0) {
            seen.files++;
            check_events(e->d_name, tr, &seen);
        }
    closedir(d);
    return seen;
}

static void test_events(void **state)
{
    (void)state;
#ifndef CTN_HAVE_YYJSON
    skip(); /* a state is saved as safetensors */
#endif
    char saved[128];
    training t;
    assert_int_equal(crc32c((const uint8_t *)"123456789", 9), 0xe3069283u);
    make(&t, 2, -1);
    OK(ctn_trainer_run(t.tr));
    board_seen seen = all_events(t.tr);
    assert_int_equal(seen.files, 1);
    assert_int_equal(seen.versions, 1);
    assert_int_equal(seen.sessions, 0);
    assert_int_equal(seen.scalars, 4);
    snprintf(saved, sizeof saved, "%s/saved", folder);
    OK(ctn_trainer_save(t.tr, saved));
    drop(&t);
    make(&t, 3, -1);
    OK(ctn_trainer_load(t.tr, saved));
    OK(ctn_trainer_run(t.tr));
    seen = all_events(t.tr);
    assert_int_equal(seen.files, 2);
    assert_int_equal(seen.versions, 2);
    assert_int_equal(seen.sessions, 1);
    assert_int_equal(seen.session_step, 7); /* 6 steps were taken */
    assert_int_equal(seen.scalars, 6);      /* none twice */
    drop(&t);
    ctn__text_free(&shown);
}

#endif

/* ---- memory ---------------------------------------------------------------------------------- */

static void no_show(void *user, const char *text)
{
    (void)user, (void)text;
}

static ctn_status add_one(ctn_trainer *tr, int which)
{
    const ctn_show_opt *to = CTN_OPT(ctn_show_opt, .write = no_show, .terminal = 1);
    switch (which) {
    case 0: return ctn_extend_progress(tr, NULL, to);
    case 1: return ctn_extend_print(tr, NULL, plotted, to);
    case 2: return ctn_extend_plot(tr, NULL, plotted, "x.svg");
    case 3: return ctn_extend_html(tr, NULL, "x.html", "x", facts);
    case 4: return ctn_extend_param_plot(tr, NULL, NULL, "y.svg");
    default: return ctn_extend_tensorboard(tr, NULL, "x");
    }
}

/* Does everything that an extension does, once. */
static ctn_status fire(const ctn_extension *e, ctn_trainer *tr)
{
    if (e->start) CTN_TRY(e->start(e->self, tr));
    tr->rows.n = 2; /* both rows of the log are new to it */
    CTN_TRY(e->call(e->self, tr));
    return e->finish(e->self, tr);
}

/* Each extension with a failing allocation, when it is added and when it fires. */
static void test_memory(void **state)
{
    (void)state;
    training t;
#ifdef CTN_HAVE_PROTOBUFC
    const int kinds = 6;
#else
    const int kinds = 5;
#endif
    static const char *const name[] = {"progress",         "print",
                                       "plot:x.svg",       "html:x.html",
                                       "param_plot:y.svg", "tensorboard:x"};
    make(&t, 2, 0);
    OK(ctn_trainer_run(t.tr));
    assert_int_equal(t.tr->rows.n, 2);
    for (int which = 0; which < kinds; which++) {
        ctn_status st = CTN_ENOMEM;
        const size_t before = t.tr->ext.n;
        long n = 1;
        for (; st != CTN_OK && n < 1000; n++) {
            memory.calls = 0;
            memory.fail_at = n;
            st = add_one(t.tr, which);
            memory.fail_at = 0;
            assert_true(st == CTN_OK || st == CTN_ENOMEM);
            ctn_error_clear();
        }
        assert_in_range(n, 3, 999);
        assert_int_equal(t.tr->ext.n, before + 1);
        const ctn_extension *e = NULL;
        for (size_t i = 0; i < t.tr->ext.n; i++)
            if (strcmp(t.tr->ext.at[i]->e.name, name[which]) == 0) e = &t.tr->ext.at[i]->e;
        assert_non_null(e);
        st = CTN_ENOMEM;
        for (n = 1; st != CTN_OK && n < 1000; n++) {
            t.tr->rows.n = 0;
            memory.calls = 0;
            memory.fail_at = n;
            st = fire(e, t.tr);
            memory.fail_at = 0;
            t.tr->rows.n = 2;
            assert_true(st == CTN_OK || st == CTN_ENOMEM);
            ctn_error_clear();
        }
        assert_in_range(n, 3, 999);
    }
    drop(&t);
}

static void test_no_leak(void **state)
{
    (void)state;
    assert_int_equal(memory.live, 0);
}

int main(void)
{
    setenv("CATENA_TUNE", "0", 1);
    const ctn_allocator a = {failing_once_alloc, failing_once_release, &memory};
    if (ctn_set_allocator(&a) != CTN_OK) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chart),
        cmocka_unit_test_setup_teardown(test_training, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_without_number, setup, teardown),
        cmocka_unit_test_setup_teardown(test_plot_title, setup, teardown),
        cmocka_unit_test_setup_teardown(test_param_plot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
#ifdef CTN_HAVE_PROTOBUFC
        cmocka_unit_test_setup_teardown(test_events, setup, teardown),
#endif
        cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
        cmocka_unit_test(test_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
