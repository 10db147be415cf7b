/* SPDX-License-Identifier: Apache-2.0
 *
 * The HTML report: one self-contained page without scripts or network access. It is rewritten
 * atomically each time the extension fires and at the end. All text from outside is escaped.
 */
#include <math.h>

#include "train/show.h"
#include "train/svg.h"

enum { VALUES_MOST = 200 }; /* more charts than this help nobody; a log may have any number */

typedef struct {
    ctn__arena mem;
    CTN__VEC(const char *) facts; /* key, value, ... */
    const char *title;
    ctn__text path;
} page;

static const char style[] =
    ":root{color-scheme:light dark;--bg:#f1f5f9;--card:#fff;--ink:#0f172a;--soft:#64748b;"
    "--line:#e2e8f0;--a:#2563eb;--b:#ea580c;--c:#94a3b8}"
    "@media(prefers-color-scheme:dark){:root{--bg:#020617;--card:#0f172a;--ink:#f1f5f9;"
    "--soft:#94a3b8;--line:#1e293b;--a:#60a5fa;--b:#fb923c;--c:#475569}}"
    "*{box-sizing:border-box}body{margin:0 auto;padding:32px 24px;max-width:1200px;"
    "background:var(--bg);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "h1{font-size:26px;line-height:1.2;margin:0;overflow-wrap:anywhere}"
    "h2{font-size:14px;font-weight:600;margin:0 0 12px}p{margin:4px 0 0;color:var(--soft)}"
    "footer{margin-top:16px;color:var(--soft);font-size:13px}"
    ".grid{display:grid;gap:16px;margin-top:16px}"
    ".values{grid-template-columns:repeat(auto-fill,minmax(190px,1fr))}"
    ".charts{grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr))}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;"
    "padding:14px 16px;min-width:0}.charts .chart-card{padding:6px}.chart{display:block;width:100%}"
    ".values small{color:var(--soft);display:block;font-size:13px;overflow-wrap:anywhere}"
    ".values b{font-size:24px;line-height:1.3;font-variant-numeric:tabular-nums}"
    ".split{display:flex;height:22px;border-radius:6px;overflow:hidden;background:var(--line)}"
    ".split i{display:block}.key{display:flex;flex-wrap:wrap;gap:4px 20px;margin-top:10px;"
    "font-size:14px}.key i{display:inline-block;width:10px;height:10px;border-radius:3px;"
    "margin-right:6px}.a{background:var(--a)}.b{background:var(--b)}.c{background:var(--c)}"
    "table{border-collapse:collapse;width:100%;font-size:14px}"
    "td{padding:5px 12px 5px 0;border-top:1px solid var(--line);vertical-align:top}"
    "tr:first-child td{border-top:0}td:first-child{color:var(--soft);white-space:nowrap}"
    "td:last-child{overflow-wrap:anywhere;font-variant-numeric:tabular-nums;padding-right:0}";

/* ---- values ---------------------------------------------------------------------------------- */

/* The best value of a series, if its name tells whether lower or higher is better. */
static void add_best(ctn__text *out, const ctn__series *s)
{
    bool small = ctn__series_is_loss(s->name), large = strstr(s->name, "accuracy") != NULL;
    char value[16];
    int64_t best = -1;
    for (int64_t i = 0; i < s->n && (small || large); i++)
        if (isfinite(s->y[i]) &&
            (best < 0 || (small ? s->y[i] < s->y[best] : s->y[i] > s->y[best])))
            best = i;
    if (best >= 0)
        ctn__text_add(out, "<small>best %s at iteration %.0f</small>",
                      ctn__show_value(value, s->y[best]), s->x[best]);
}

static void add_values(ctn__text *out, const ctn__series *s, int n)
{
    char value[16];
    ctn__text_add(out, "<section class=\"grid values\">\n");
    for (int k = 0; k < n; k++) {
        if (s[k].n == 0) continue;
        ctn__text_add(out, "<div class=\"card\"><small>");
        ctn__show_text(out, s[k].name, true);
        ctn__text_add(out, "</small><b>%s</b>", ctn__show_value(value, s[k].y[s[k].n - 1]));
        add_best(out, &s[k]);
        ctn__text_add(out, "</div>\n");
    }
    ctn__text_add(out, "</section>\n");
}

/* ---- charts ---------------------------------------------------------------------------------- */

static void add_chart(ctn__text *out, const char *title, const ctn__series *s, int n, bool amounts)
{
    ctn__chart c = {.title = title,
                    .x_name = "iteration",
                    .width = 560,
                    .height = 320,
                    .may_log = ctn__series_is_loss(title),
                    .amounts = amounts,
                    .series = s,
                    .n = n};
    ctn__text_add(out, "<div class=\"card chart-card\">");
    ctn__svg_chart(out, &c);
    ctn__text_add(out, "</div>\n");
}

/* One chart for all names with the same last part, such as train/loss and val/loss; losses come
 * first. Reorders the series. */
static void add_curves(ctn__text *out, ctn__series *s, int n)
{
    for (int k = 0, losses = 0; k < n; k++)
        if (strcmp(ctn__show_last(s[k].name), "loss") == 0) {
            ctn__series loss = s[k];
            memmove(&s[losses + 1], &s[losses], (size_t)(k - losses) * sizeof *s);
            s[losses++] = loss;
        }
    for (int from = 0, to; from < n; from = to) {
        const char *last = ctn__show_last(s[from].name);
        to = from + 1;
        for (int k = to; k < n; k++) {
            if (strcmp(ctn__show_last(s[k].name), last) != 0) continue;
            ctn__series same = s[k];
            memmove(&s[to + 1], &s[to], (size_t)(k - to) * sizeof *s);
            s[to++] = same;
        }
        int64_t points = 0;
        for (int k = from; k < to; k++) points += s[k].n;
        if (points > 0) add_chart(out, last, s + from, to - from, false);
    }
}

/* Samples per second between the rows of the log. */
static ctn_status add_throughput(ctn__text *out, const ctn_trainer *tr)
{
    int64_t rows = ctn_trainer_rows(tr), n = 0;
    if (rows == 0) return CTN_OK;
    double *x = ctn__malloc(ctn__mul((size_t)rows, 2 * sizeof *x));
    if (x == NULL) return CTN_ENOMEM;
    ctn_progress was = {0}, p;
    for (int64_t i = 0; i < rows; i++, was = p) {
        ctn_trainer_row_progress(tr, i, &p);
        if (!(p.seconds > was.seconds)) continue;
        x[n] = (double)p.iteration;
        x[rows + n++] = (double)(p.samples - was.samples) / (p.seconds - was.seconds);
    }
    ctn__series s = {.name = "items/s", .n = n, .x = x, .y = x + rows};
    if (n > 0) add_chart(out, "throughput", &s, 1, true);
    ctn__free(x);
    return CTN_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void add_split(ctn__text *out, const ctn_progress *p)
{
    const struct {
        const char *name, *kind;
        double s;
    } part[] = {{"compute", "a", p->compute_s},
                {"waiting for data", "b", p->input_s},
                {"evaluation and other", "c", p->other_s}};
    double all = 0;
    char time[16];
    for (int i = 0; i < 3; i++) all += part[i].s;
    if (!(all > 0)) return;
    ctn__text_add(out, "<div class=\"card\"><h2>Time</h2><div class=\"split\">");
    for (int i = 0; i < 3; i++)
        ctn__text_add(out, "<i class=\"%s\" style=\"flex:%ld\"></i>", part[i].kind,
                      lround(part[i].s / all * 10000));
    ctn__text_add(out, "</div><div class=\"key\">");
    for (int i = 0; i < 3; i++) {
        long tenths = lround(part[i].s / all * 1000);
        ctn__text_add(out, "<span><i class=\"%s\"></i>%s %ld.%ld %%, %s</span>", part[i].kind,
                      part[i].name, tenths / 10, tenths % 10, ctn__show_time(time, part[i].s));
    }
    ctn__text_add(out, "</div></div>\n");
}

static void add_row(ctn__text *out, const char *key, const char *value)
{
    if (!value[0]) return; /* not given */
    ctn__text_add(out, "<tr><td>");
    ctn__show_text(out, key, true);
    ctn__text_add(out, "</td><td>");
    ctn__show_text(out, value, true);
    ctn__text_add(out, "</td></tr>\n");
}

static void add_plan(ctn__text *out, const ctn_trainer *tr)
{
    const ctn_context *ctx = ctn_trainer_context(tr);
    ctn_plan_stats s;
    char buf[96], count[16];
    if (ctx == NULL) return;
    ctn_context_get_stats(ctx, &s);
    ctn__text_add(out, "<div class=\"card\"><h2>Plan</h2><table>\n");
    snprintf(buf, sizeof buf, "%d", ctn_context_threads(ctx));
    add_row(out, "compute threads", buf);
    snprintf(buf, sizeof buf, "%sB", ctn__show_count(count, (double)s.arena_bytes));
    add_row(out, "activation memory", buf);
    snprintf(buf, sizeof buf, "%lld (%sB)", (long long)s.plans,
             ctn__show_count(count, (double)s.plan_bytes));
    add_row(out, "plans kept", buf);
    snprintf(buf, sizeof buf, "%llu (%llu plans made, %llu dropped)", (unsigned long long)s.runs,
             (unsigned long long)s.misses, (unsigned long long)s.evictions);
    add_row(out, "plan runs", buf);
    ctn__text_add(out, "</table></div>\n");
}

static void add_facts(ctn__text *out, const page *p)
{
    if (p->facts.n == 0) return;
    ctn__text_add(out, "<div class=\"card\"><h2>Setup</h2><table>\n");
    for (size_t i = 0; i + 1 < p->facts.n; i += 2) add_row(out, p->facts.at[i], p->facts.at[i + 1]);
    ctn__text_add(out, "</table></div>\n");
}

static void add_head(ctn__text *out, const page *pg, const ctn_trainer *tr, const ctn_progress *p,
                     bool end)
{
    char count[16], time[16];
    const char *why = ctn_trainer_stopped(tr);
    ctn__text_add(
        out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
             "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n<title>");
    ctn__show_text(out, pg->title, true);
    ctn__text_add(out, "</title>\n<style>%s%s</style></head>\n<body><h1>", style, ctn__svg_style);
    ctn__show_text(out, pg->title, true);
    ctn__text_add(out, "</h1>\n<p>%lld epoch%s, %lld step%s, %s samples in %s", (long long)p->epoch,
                  p->epoch == 1 ? "" : "s", (long long)p->iteration, p->iteration == 1 ? "" : "s",
                  ctn__show_count(count, (double)p->samples), ctn__show_time(time, p->seconds));
    if (!end && p->total >= 0)
        ctn__text_add(out, "; running, %d %% done", (int)(fmin(p->total, 1) * 100));
    else if (!end) ctn__text_add(out, "; running");
    if (end && why != NULL) {
        ctn__text_add(out, "; stopped early: ");
        ctn__show_text(out, why, true);
    }
    ctn__text_add(out, "</p>\n");
}

/* ---- the extension --------------------------------------------------------------------------- */

static ctn_status write_page(page *pg, ctn_trainer *tr, bool end)
{
    ctn_status st = CTN_OK;
    ctn__text out = {0};
    CTN__VEC(ctn__series) series = {0};
    ctn_progress p;
    const char *name;
    long long left_out = 0;
    for (int i = 0; (name = ctn_trainer_name(tr, i)) != NULL; i++) {
        ctn__series s;
        if (ctn__show_hidden(name)) continue;
        left_out += series.n >= VALUES_MOST;
        if (series.n >= VALUES_MOST) continue;
        CTN_TRY_GOTO(st, done, ctn__series_read(&s, tr, name));
        if (!ctn__vec_push(&series, s)) {
            ctn__series_free(&s);
            CTN_TRY_GOTO(st, done, CTN_ENOMEM);
        }
    }
    ctn_trainer_progress(tr, &p);
    add_head(&out, pg, tr, &p, end);
    add_values(&out, series.at, (int)series.n);
    ctn__text_add(&out, "<section class=\"grid charts\">\n");
    add_curves(&out, series.at, (int)series.n);
    CTN_TRY_GOTO(st, done, add_throughput(&out, tr));
    ctn__text_add(&out, "</section><section class=\"grid\">\n");
    if (left_out > 0)
        ctn__text_add(&out, "<p>%lld more values are only in the log.</p>\n", left_out);
    add_split(&out, &p);
    ctn__text_add(&out, "</section><section class=\"grid charts\">\n");
    add_plan(&out, tr);
    add_facts(&out, pg);
    ctn__text_add(&out, "</section>\n<footer>Catena %s</footer></body></html>\n",
                  ctn_version_text());
    CTN_TRY_GOTO(st, done, ctn__show_file(pg->path.s, &out));
done:
    for (size_t k = 0; k < series.n; k++) ctn__series_free(&series.at[k]);
    ctn__vec_free(&series);
    ctn__text_free(&out);
    return st;
}

static ctn_status html_call(void *self, ctn_trainer *tr)
{
    return ctn__show_forgive(write_page(self, tr, false));
}

static ctn_status html_finish(void *self, ctn_trainer *tr)
{
    return write_page(self, tr, true);
}

static void html_release(void *self)
{
    page *pg = self;
    if (pg == NULL) return;
    ctn__arena_free(&pg->mem);
    ctn__vec_free(&pg->facts);
    ctn__text_free(&pg->path);
    ctn__free(pg);
}

ctn_status ctn_extend_html(ctn_trainer *tr, const ctn_trigger *when, const char *file,
                           const char *title, const char *const *facts)
{
    ctn_status st = CTN_OK;
    page *pg = ctn__calloc(1, sizeof *pg);
    if (pg == NULL) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, fail, ctn__show_path(&pg->path, "extend_html", tr, file));
    pg->title = ctn__arena_str(&pg->mem, title != NULL ? title : "Training");
    if (pg->title == NULL) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    for (int i = 0; facts != NULL && facts[i] != NULL; i++) {
        const char *copy = ctn__arena_str(&pg->mem, facts[i]);
        if (copy == NULL || !ctn__vec_push(&pg->facts, copy)) CTN_TRY_GOTO(st, fail, CTN_ENOMEM);
    }
    if (pg->facts.n % 2 != 0)
        CTN_TRY_GOTO(st, fail,
                     ctn_fail(CTN_EARG, "extend_html: the fact '%s' has no value",
                              pg->facts.at[pg->facts.n - 1]));
    ctn_extension e = {.rank0_only = 1,
                       .call = html_call,
                       .finish = html_finish,
                       .release = html_release,
                       .self = pg};
    return ctn__show_extend(tr, "html", file, when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1},
                            e);
fail:
    html_release(pg);
    return st;
}
