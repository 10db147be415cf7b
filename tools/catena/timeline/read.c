/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a timeline, which is a Chrome trace in JSON: complete events ("ph":"X") that have a
 * category, and the names of processes. Loads the whole file first; for malformed JSON the error
 * gives the position.
 */
#include "timeline/timeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 1 << 20, MOST_BYTES = 1 << 30 };

/* ---- JSON ------------------------------------------------------------------------------------ */

typedef struct {
    const char *p, *begin; /* zero-terminated */
    bool bad;
} scan;

static void blank(scan *s)
{
    while (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r') s->p++;
}

static bool take(scan *s, char c)
{
    blank(s);
    if (s->bad || *s->p != c) return false;
    s->p++;
    return true;
}

static void expect(scan *s, char c)
{
    if (!take(s, c)) s->bad = true;
}

/* Handles only one-character escapes: the names that are compared contain no others. */
static void text(scan *s, char *out, size_t room)
{
    size_t n = 0;
    expect(s, '"');
    while (!s->bad && *s->p && *s->p != '"') {
        if (*s->p == '\\' && s->p[1]) s->p++;
        if (n + 1 < room) out[n++] = *s->p;
        s->p++;
    }
    if (room > 0) out[n] = 0;
    expect(s, '"');
}

static double number(scan *s)
{
    blank(s);
    char *end = NULL;
    double v = s->bad ? 0 : strtod(s->p, &end);
    if (s->bad || end == s->p || !(fabs(v) < 1e18)) s->bad = true;
    else s->p = end;
    return v;
}

/* Advance to the next member of an object or array, and read its key in an object. False: no
 * more members. */
static bool member(scan *s, char open, bool *inside, char *key, size_t room)
{
    const char close = open == '{' ? '}' : ']';
    if (!*inside) expect(s, open);
    if (s->bad || take(s, close)) return false;
    if (*inside) expect(s, ',');
    *inside = true;
    if (open == '{') {
        text(s, key, room);
        expect(s, ':');
    }
    return !s->bad;
}

static void skip(scan *s, int depth)
{
    bool inside = false;
    blank(s);
    if (*s->p == '"') {
        text(s, NULL, 0);
    } else if (*s->p == '{' || *s->p == '[') {
        if (depth > 100) s->bad = true;
        for (const char open = *s->p; member(s, open, &inside, NULL, 0);) skip(s, depth + 1);
    } else {
        const char *from = s->p;
        while (*s->p && !strchr(",]} \n\t\r", *s->p)) s->p++;
        if (s->p == from) s->bad = true;
    }
}

/* ---- events ---------------------------------------------------------------------------------- */

typedef struct {
    char name[32], kind[16], phase[4], label[100];
    double ts, dur, pid;
} event;

static void read_label(scan *s, event *e)
{
    char key[32];
    bool inside = false;
    while (member(s, '{', &inside, key, sizeof key)) {
        if (strcmp(key, "name") == 0) text(s, e->label, sizeof e->label);
        else skip(s, 0);
    }
}

static void read_event(scan *s, event *e)
{
    char key[32];
    bool inside = false;
    *e = (event){.pid = -1};
    while (member(s, '{', &inside, key, sizeof key)) {
        if (strcmp(key, "name") == 0) text(s, e->name, sizeof e->name);
        else if (strcmp(key, "cat") == 0) text(s, e->kind, sizeof e->kind);
        else if (strcmp(key, "ph") == 0) text(s, e->phase, sizeof e->phase);
        else if (strcmp(key, "ts") == 0) e->ts = number(s);
        else if (strcmp(key, "dur") == 0) e->dur = number(s);
        else if (strcmp(key, "pid") == 0) e->pid = number(s);
        else if (strcmp(key, "args") == 0) read_label(s, e);
        else skip(s, 0);
    }
}

bool spans_add(spans *s, span x)
{
    if (s->n == s->room) {
        const size_t room = s->room ? 2 * s->room : 256;
        span *at = realloc(s->at, room * sizeof *at);
        if (!at) return false;
        s->at = at;
        s->room = room;
    }
    s->at[s->n++] = x;
    return true;
}

static bool grow(timeline *t, int ranks)
{
    rank_spans *r = realloc(t->rank, (size_t)ranks * sizeof *r);
    if (!r) return false;
    memset(r + t->ranks, 0, (size_t)(ranks - t->ranks) * sizeof *r);
    t->rank = r;
    t->ranks = ranks;
    return true;
}

static bool add_event(timeline *t, const event *e)
{
    static const char *const kinds[SPAN_KINDS] = {"compute",  "optimizer", "start",    "wait",
                                                  "progress", "input",     "exchange", "step"};
    if (!(e->pid >= 0 && e->pid < MOST_RANKS)) return true;
    const int r = (int)e->pid;
    if (r >= t->ranks && !grow(t, r + 1)) return false;
    if (strcmp(e->name, "process_name") == 0 && e->phase[0] == 'M')
        snprintf(t->rank[r].name, sizeof t->rank[r].name, "%s", e->label);
    for (int k = 0; e->phase[0] == 'X' && k < SPAN_KINDS; k++)
        if (strcmp(e->kind, kinds[k]) == 0)
            return spans_add(&t->rank[r].of[k], (span){e->ts * 1e-3, (e->ts + e->dur) * 1e-3});
    return true;
}

/* Keep only the ranks that are in the file, which may be a sample of the job's ranks. */
static void drop_absent(timeline *t)
{
    int n = 0;
    for (int r = 0; r < t->ranks; r++) {
        bool here = t->rank[r].name[0];
        for (int k = 0; k < SPAN_KINDS; k++) here = here || t->rank[r].of[k].n > 0;
        if (!here) continue;
        t->rank[n] = t->rank[r];
        t->rank[n++].rank = r;
    }
    t->ranks = n;
    if (t->job_ranks < n) t->job_ranks = n;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The largest number or the sum of an array with one number per rank. */
static double numbers(scan *s, bool sum)
{
    double v = 0;
    bool inside = false;
    while (member(s, '[', &inside, NULL, 0)) {
        const double x = number(s);
        v = sum ? v + x : x > v ? x : v;
    }
    return v;
}

static int read_count(scan *s)
{
    const double x = number(s);
    return x >= 0 && x < MOST_RANKS ? (int)x : 0;
}

static bool read_facts(scan *s, timeline *t)
{
    char key[32];
    bool inside = false, ours = false;
    while (member(s, '{', &inside, key, sizeof key)) {
        if (strcmp(key, "clock_within_ns") == 0) t->clock_within_us = numbers(s, false) * 1e-3;
        else if (strcmp(key, "lost_spans") == 0 && (blank(s), *s->p == '['))
            t->lost = (int64_t)fmin(fmax(numbers(s, true), 0), 1e18);
        else if (strcmp(key, "catena_timeline") == 0) ours = number(s) == 1;
        else if (strcmp(key, "ranks") == 0) t->job_ranks = read_count(s);
        else skip(s, 0);
    }
    return ours;
}

static ctn_status read_all(timeline *t, const char *path, scan *s)
{
    char key[32];
    bool inside = false, ours = false;
    while (member(s, '{', &inside, key, sizeof key)) {
        bool in_list = false;
        event e;
        if (strcmp(key, "otherData") == 0) {
            ours = read_facts(s, t);
        } else if (strcmp(key, "traceEvents") == 0) {
            while (member(s, '[', &in_list, NULL, 0)) {
                read_event(s, &e);
                if (!s->bad && !add_event(t, &e))
                    return ctn_fail(CTN_ENOMEM, "no memory for the spans of %s", path);
            }
        } else {
            skip(s, 0);
        }
    }
    if (s->bad)
        return ctn_fail(CTN_EFORMAT, "%s is not valid JSON at byte %lld", path,
                        (long long)(s->p - s->begin));
    if (!ours)
        return ctn_fail(CTN_EFORMAT, "%s is not a timeline; catena train --timeline writes one",
                        path);
    drop_absent(t);
    return CTN_OK;
}

static ctn_status load(char **out, const char *path)
{
    size_t n = 0, room = 1 << 16, k;
    ctn_status st = CTN_OK;
    FILE *f = fopen(path, "rb");
    if (!f) return ctn_fail(CTN_EIO, "cannot open %s: %s", path, strerror(errno));
    char *p = malloc(room);
    while (p && !feof(f) && !ferror(f) && n < MOST_BYTES) {
        k = fread(p + n, 1, room - n - 1, f);
        n += k;
        if (n + 1 < room) continue;
        char *more = realloc(p, room *= 2);
        if (!more) free(p);
        p = more;
    }
    if (!p) st = ctn_fail(CTN_ENOMEM, "no memory for %s", path);
    else if (ferror(f)) st = ctn_fail(CTN_EIO, "cannot read %s: %s", path, strerror(errno));
    else if (n >= MOST_BYTES)
        st = ctn_fail(CTN_EUNSUPPORTED,
                      "%s is larger than %d bytes: record fewer steps (--timeline-steps) or ranks "
                      "(--timeline-ranks)",
                      path, (int)MOST_BYTES);
    else p[n] = 0;
    fclose(f);
    *out = p;
    return st;
}

ctn_status timeline_read(timeline *t, const char *path)
{
    char *file = NULL;
    ctn_status st = load(&file, path);
    if (st == CTN_OK) st = read_all(t, path, &(scan){.p = file, .begin = file});
    free(file);
    return st;
}

void timeline_free(timeline *t)
{
    for (int r = 0; r < t->ranks; r++)
        for (int k = 0; k < SPAN_KINDS; k++) free(t->rank[r].of[k].at);
    free(t->rank);
}
