/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads and writes what a step does (events.h).
 */
#include "scale/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 }; /* parameters, and events */

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
    if (s->n == MOST) return;
    s->event[s->n++] = e;
    s->compute_s += e.seconds;
}

void events_param(events *s, int64_t begin)
{
    if (s->params == MOST) return;
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

static bool parse(events *s, const char *line)
{
    long long a, b;
    double x;
    if (sscanf(line, "name %63s", s->name) == 1) return true;
    if (sscanf(line, "batch %lld", &a) == 1) s->batch = a;
    else if (sscanf(line, "memory %lld %lld", &a, &b) == 2) s->results = a, s->state = b;
    else if (sscanf(line, "elements %lld", &a) == 1) s->elements = a;
    else if (sscanf(line, "update %lf", &x) == 1) s->compute_s += s->update_s = x;
    else if (sscanf(line, "param %lld", &a) == 1) events_param(s, a);
    else if (sscanf(line, "kernel %lf", &x) == 1) events_add(s, (event){KERNEL, x, 0, 0});
    else if (sscanf(line, "ready %lld %lld", &a, &b) == 2) events_add(s, (event){READY, 0, a, b});
    else if (sscanf(line, "need %lld", &a) == 1) events_add(s, (event){NEED, 0, 0, a});
    else if (strcmp(line, "step\n") == 0) events_add(s, (event){.kind = STEP});
    else return false;
    return true;
}

ctn_status events_read(events *s, const char *path)
{
    char line[256];
    ctn_status st = events_new(s);
    FILE *f = st == CTN_OK ? fopen(path, "r") : NULL;
    if (st == CTN_OK && !f) st = ctn_fail(CTN_EIO, "cannot open %s: %s", path, strerror(errno));
    for (int n = 1; f && st == CTN_OK && fgets(line, sizeof line, f); n++)
        if (!parse(s, line))
            st = ctn_fail(CTN_EFORMAT, "%s: line %d does not belong to a recorded step", path, n);
    if (f) fclose(f);
    if (st == CTN_OK && (s->elements <= 0 || s->compute_s <= 0))
        st = ctn_fail(CTN_EFORMAT, "%s contains no recorded step", path);
    if (st < 0) events_free(s);
    return st;
}

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
