/* SPDX-License-Identifier: Apache-2.0
 *
 * catena checkpoint ls: the states of a folder with their progress and size, or the arrays of one
 * state.
 */
#include "checkpoint/checkpoint.h"

typedef struct {
    json *j;   /* NULL: text */
    int64_t n; /* lines so far */
} view;

static void state_json(json *j, const ctn_state_info *s)
{
    json_open(j, NULL, '{');
    json_int(j, "number", s->number);
    json_text(j, "path", s->path);
    json_text(j, "problem", s->problem);
    if (!s->problem) {
        json_int(j, "iteration", s->iteration);
        json_int(j, "epoch", s->epoch);
        json_int(j, "samples", s->samples);
        json_int(j, "ranks", s->ranks);
        json_int(j, "arrays", s->arrays);
        json_int(j, "files", s->files);
        json_int(j, "bytes", s->bytes);
    }
    json_close(j, '}');
}

static ctn_status show_state(void *user, const ctn_state_info *s)
{
    view *v = user;
    if (v->j) {
        state_json(v->j, s);
        return CTN_OK;
    }
    if (v->n++ == 0)
        say(stdout, "%9s %10s %6s %11s %6s %7s %6s %13s\n", "number", "iteration", "epoch",
            "samples", "ranks", "arrays", "files", "bytes");
    if (s->problem) say(stdout, "%9lld %s\n", (long long)s->number, s->problem);
    else
        say(stdout, "%9lld %10lld %6lld %11lld %6lld %7lld %6lld %13lld\n", (long long)s->number,
            (long long)s->iteration, (long long)s->epoch, (long long)s->samples,
            (long long)s->ranks, (long long)s->arrays, (long long)s->files, (long long)s->bytes);
    return CTN_OK;
}

static void array_json(json *j, const ctn_state_array *a)
{
    json_open(j, NULL, '{');
    json_text(j, "name", a->name);
    json_text(j, "type", ctn_dtype_name(a->dtype));
    json_open(j, "shape", '[');
    for (int i = 0; i < a->ndim; i++) json_int(j, NULL, a->shape[i]);
    json_close(j, ']');
    json_text(j, "hash", a->hash);
    json_close(j, '}');
}

static ctn_status show_array(void *user, const ctn_state_array *a)
{
    const view *v = user;
    char shape[CTN_MAX_DIMS * 21 + 3] = "(";
    int n = 1;
    if (v->j) {
        array_json(v->j, a);
        return CTN_OK;
    }
    for (int i = 0; i < a->ndim; i++)
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%s%lld", i ? "," : "",
                      (long long)a->shape[i]);
    snprintf(shape + n, sizeof shape - (size_t)n, ")");
    say(stdout, "%s  %-4s %-14s %s\n", a->hash, ctn_dtype_name(a->dtype), shape, a->name);
    return CTN_OK;
}

ctn_status list_place(const place *p, json *j)
{
    view v = {.j = j};
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "folder", p->path);
        json_open(j, p->one ? "arrays" : "states", '[');
    } else {
        say(stdout, "%s\n", p->path);
    }
    const ctn_status st = p->one ? ctn_state_arrays(p->path, show_array, &v)
                                 : ctn_states_visit(p->path, show_state, &v);
    if (j) {
        json_close(j, ']');
        json_close(j, '}');
    } else if (st == CTN_OK && !p->one && v.n == 0) {
        say(stdout, "no states\n");
    }
    return st;
}
