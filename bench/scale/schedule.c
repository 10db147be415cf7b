/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a schedule (schedule.h).
 */
#include "schedule.h"

#include <errno.h>
#include <stdlib.h>

enum { LINES = 1 << 16 };

static bool parse(schedule *s, const char *line)
{
    event *e = &s->event[s->events];
    long long a, b;
    double x;
    *e = (event){0};
    if (sscanf(line, "elements %lld", &a) == 1) s->elements = a;
    else if (sscanf(line, "update %lf", &x) == 1) s->update_s = x;
    else if (sscanf(line, "param %lld", &a) == 1) s->param[s->params++] = a;
    else if (sscanf(line, "kernel %lf", &x) == 1) *e = (event){KERNEL, x, 0, 0};
    else if (sscanf(line, "ready %lld %lld", &a, &b) == 2) *e = (event){READY, 0, a, b};
    else if (sscanf(line, "need %lld", &a) == 1) *e = (event){NEED, 0, 0, a};
    else if (strcmp(line, "step\n") == 0) *e = (event){.kind = STEP};
    else return false;
    s->events += line[0] == 'k' || line[0] == 'r' || line[0] == 'n' || line[0] == 's';
    s->compute_s += e->seconds;
    return true;
}

ctn_status schedule_read(schedule *s, const char *path)
{
    char line[256];
    ctn_status st = CTN_OK;
    *s = (schedule){.param = calloc(LINES + 1, sizeof *s->param),
                    .event = calloc(LINES + 1, sizeof *s->event)};
    FILE *f = fopen(path, "r");
    if (!f) st = ctn_fail(CTN_EIO, "cannot open %s: %s", path, strerror(errno));
    else if (!s->param || !s->event) st = ctn_fail(CTN_ENOMEM, "no memory for a schedule");
    for (int n = 1; st == CTN_OK && fgets(line, sizeof line, f); n++)
        if (n > LINES || !parse(s, line))
            st = ctn_fail(CTN_EFORMAT, "%s: line %d is not a line of a schedule", path, n);
    if (f) fclose(f);
    if (st == CTN_OK && s->elements <= 0)
        st = ctn_fail(CTN_EFORMAT, "%s does not say how many elements are exchanged", path);
    if (st == CTN_OK) s->param[s->params] = s->elements;
    s->compute_s += s->update_s;
    if (st < 0) schedule_free(s);
    return st;
}

void schedule_free(schedule *s)
{
    free(s->param);
    free(s->event);
    *s = (schedule){0};
}
