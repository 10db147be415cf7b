/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes what a step does (events.h).
 */
#include "scale/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST = 1 << 16, /* parameters, and events */
    MOST_STEPS = 64 /* each costs the model all buckets */
};

/* What a recorded step may contain at most: elements, bytes and seconds. */
#define MOST_ELEMENTS 100000000000
#define MOST_BYTES 1e15
#define MOST_SECONDS 1e6
/* A name is also drawn into pictures, where others would be markup. */
#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

ctn_status events_new(events *s)
{
    *s = (events){.param = calloc(MOST + 1, sizeof *s->param),
                  .event = calloc(MOST, sizeof *s->event)};
    if (s->param && s->event) return CTN_OK;
    events_free(s);
    return ctn_fail(CTN_ENOMEM, "no memory for a recorded step");
}

void events_add(events *s, event e)
{
    if (!s->event || s->n == MOST) return;
    s->event[s->n++] = e;
    s->compute_s += e.seconds;
}

void events_param(events *s, int64_t begin)
{
    if (!s->param || s->params == MOST) return;
    s->param[s->params++] = begin;
    s->param[s->params] = s->elements;
}

void events_scale(events *s, double seconds)
{
    const double factor = seconds / s->compute_s;
    for (int i = 0; i < s->n; i++) s->event[i].seconds *= factor;
    s->update_s *= factor;
    s->compute_s = seconds;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The next integer from 0 to `most`, after a space. */
static bool take(const char **at, double most, int64_t *out)
{
    char *end = NULL;
    if (**at != ' ' || (*at)[1] < '0' || (*at)[1] > '9') return false;
    errno = 0;
    *out = strtoll(*at + 1, &end, 10);
    *at = end;
    return errno == 0 && (double)*out <= most;
}

static bool take_seconds(const char **at, double *out)
{
    char *end = NULL;
    if (**at != ' ') return false;
    *out = strtod(*at + 1, &end);
    if (end == *at + 1) return false;
    *at = end;
    return *out >= 0 && *out <= MOST_SECONDS; /* not NaN either */
}

static bool push(events *s, event e)
{
    if (s->n == MOST) return false;
    events_add(s, e);
    return true;
}

/* The rest of a line after its word. Elements lie in the pool, and parameters ascend in it. */
static bool parse(events *s, const char *word, const char *at)
{
    const double most = (double)s->elements;
    event e = {.kind = KERNEL};
    bool ok = false;
    if (strcmp(word, "batch") == 0) {
        ok = take(&at, INT32_MAX, &s->batch) && s->batch > 0;
    } else if (strcmp(word, "memory") == 0) {
        ok = take(&at, MOST_BYTES, &s->results) && take(&at, MOST_BYTES, &s->state);
    } else if (strcmp(word, "elements") == 0) {
        ok = s->elements == 0 && take(&at, MOST_ELEMENTS, &s->elements) && s->elements > 0;
    } else if (strcmp(word, "update") == 0) {
        ok = s->update_s == 0 && take_seconds(&at, &s->update_s);
        s->compute_s += s->update_s;
    } else if (strcmp(word, "param") == 0) {
        ok = take(&at, most, &e.begin) && e.begin < s->elements && s->params < MOST &&
             (s->params == 0 || e.begin > s->param[s->params - 1]);
        if (ok) events_param(s, e.begin);
    } else if (strcmp(word, "kernel") == 0) {
        ok = take_seconds(&at, &e.seconds) && push(s, e);
    } else if (strcmp(word, "ready") == 0) {
        e.kind = READY;
        ok = take(&at, most, &e.begin) && take(&at, most, &e.end) && e.begin <= e.end && push(s, e);
    } else if (strcmp(word, "need") == 0) {
        e.kind = NEED;
        ok = take(&at, most, &e.end) && push(s, e);
    } else if (strcmp(word, "step") == 0) {
        e.kind = STEP;
        ok = s->steps++ < MOST_STEPS && push(s, e);
    }
    return ok && *at == 0;
}

static bool read_line(events *s, char *line)
{
    const size_t n = strcspn(line, "\n"), word = strcspn(line, " \n");
    char first[16];
    if (line[n] != '\n' || word >= sizeof first) return false;
    line[n] = 0;
    snprintf(first, sizeof first, "%.*s", (int)word, line);
    if (strcmp(first, "name") != 0) return parse(s, first, line + word);
    snprintf(s->name, sizeof s->name, "%s", line + word + (line[word] == ' '));
    return s->name[0] && s->name[strspn(s->name, NAME_CHARACTERS)] == 0;
}

ctn_status events_read(events *s, const char *path)
{
    char line[256];
    ctn_status st = events_new(s);
    FILE *f = st == CTN_OK ? fopen(path, "r") : NULL;
    if (st == CTN_OK && !f) st = ctn_fail(CTN_EIO, "cannot open %s: %s", path, strerror(errno));
    for (int n = 1; f && st == CTN_OK && fgets(line, sizeof line, f); n++)
        if (!read_line(s, line))
            st = ctn_fail(CTN_EFORMAT,
                          "%s: line %d does not belong to a recorded step: a number is missing or "
                          "out of range, or there are too many lines; record the step again "
                          "(catena scale --save)",
                          path, n);
    if (f) fclose(f);
    if (st == CTN_OK && !(s->elements > 0 && s->batch > 0 && s->compute_s > 0))
        st = ctn_fail(CTN_EFORMAT, "%s contains no recorded step", path);
    if (st < 0) events_free(s);
    return st;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_event(FILE *f, const event *e)
{
    switch (e->kind) {
    case KERNEL: fprintf(f, "kernel %.9f\n", e->seconds); break;
    case READY: fprintf(f, "ready %lld %lld\n", (long long)e->begin, (long long)e->end); break;
    case NEED: fprintf(f, "need %lld\n", (long long)e->end); break;
    case STEP: fprintf(f, "step\n"); break;
    }
}

ctn_status events_write(const events *s, const char *path)
{
    FILE *f = fopen(path, "w");
    bool bad = !f;
    if (f) {
        fprintf(f, "name %s\nbatch %lld\nmemory %lld %lld\nelements %lld\nupdate %.9f\n", s->name,
                (long long)s->batch, (long long)s->results, (long long)s->state,
                (long long)s->elements, s->update_s);
        for (int i = 0; i < s->params; i++) fprintf(f, "param %lld\n", (long long)s->param[i]);
        for (int i = 0; i < s->n; i++) write_event(f, &s->event[i]);
        bad = ferror(f) != 0;
        bad |= fclose(f) != 0;
    }
    return bad ? ctn_fail(CTN_EIO, "cannot write %s: %s", path, strerror(errno)) : CTN_OK;
}

void events_free(events *s)
{
    free(s->param);
    free(s->event);
    *s = (events){0};
}
