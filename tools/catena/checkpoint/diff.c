/* SPDX-License-Identifier: Apache-2.0
 *
 * catena checkpoint diff: the arrays that differ between two states. The hashes in the states are
 * compared, not the values, so that large states take no time.
 */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/checkpoint.h"

typedef struct {
    char *name, hash[33];
    ctn_dtype dtype;
    int ndim;
    int64_t shape[CTN_MAX_DIMS];
} array;

typedef struct {
    array *at;
    size_t n, room;
} arrays;

static ctn_status keep(void *user, const ctn_state_array *a)
{
    arrays *l = user;
    if (l->n == l->room) {
        const size_t room = l->room ? 2 * l->room : 64;
        array *at = realloc(l->at, room * sizeof *at);
        if (!at) return ctn_fail(CTN_ENOMEM, "no memory for the list of arrays");
        l->at = at;
        l->room = room;
    }
    array *to = &l->at[l->n];
    *to = (array){.name = strdup(a->name), .dtype = a->dtype, .ndim = a->ndim};
    if (!to->name) return ctn_fail(CTN_ENOMEM, "no memory for the list of arrays");
    snprintf(to->hash, sizeof to->hash, "%s", a->hash);
    memcpy(to->shape, a->shape, sizeof a->shape);
    l->n++;
    return CTN_OK;
}

static void free_arrays(arrays *l)
{
    for (size_t i = 0; i < l->n; i++) free(l->at[i].name);
    free(l->at);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const array *)a)->name, ((const array *)b)->name);
}

static ctn_status read_arrays(arrays *l, const char *path)
{
    CTN_TRY(ctn_state_arrays(path, keep, l));
    if (l->n) qsort(l->at, l->n, sizeof *l->at, by_name);
    return CTN_OK;
}

/* NULL: they are the same. */
static const char *compare(const array *a, const array *b)
{
    if (a->dtype != b->dtype) return "has another type";
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, sizeof a->shape) != 0)
        return "has another shape";
    return strcmp(a->hash, b->hash) != 0 ? "differs" : NULL;
}

ctn_status states_compare(const char *a, const char *b, int64_t *count,
                          ctn_status (*fn)(void *user, const difference *d), void *user)
{
    arrays x = {0}, y = {0};
    ctn_status st = read_arrays(&x, a);
    if (st == CTN_OK) st = read_arrays(&y, b);
    *count = 0;
    for (size_t i = 0, k = 0; st == CTN_OK && (i < x.n || k < y.n); ++*count) {
        const int c = i == x.n ? 1 : k == y.n ? -1 : by_name(&x.at[i], &y.at[k]);
        difference d = {.name = c <= 0 ? x.at[i].name : y.at[k].name};
        if (c < 0) d.what = "is only in the first";
        else if (c > 0) d.what = "is only in the second";
        else d.what = compare(&x.at[i], &y.at[k]);
        if (d.what) st = fn(user, &d);
        i += c <= 0;
        k += c >= 0;
    }
    free_arrays(&x);
    free_arrays(&y);
    return st;
}

typedef struct {
    json *j; /* NULL: text */
    int64_t n;
} view;

static ctn_status show(void *user, const difference *d)
{
    view *v = user;
    v->n++;
    if (!v->j) {
        say(stdout, "%s %s\n", d->name, d->what);
        return CTN_OK;
    }
    json_open(v->j, NULL, '{');
    json_text(v->j, "name", d->name);
    json_text(v->j, "what", d->what);
    json_close(v->j, '}');
    return CTN_OK;
}

ctn_status diff_places(const place *a, const place *b, json *j, int64_t *differences)
{
    view v = {.j = j};
    int64_t count = 0;
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "first", a->path);
        json_text(j, "second", b->path);
        json_open(j, "differences", '[');
    } else {
        say(stdout, "first:  %s\nsecond: %s\n", a->path, b->path);
    }
    const ctn_status st = states_compare(a->path, b->path, &count, show, &v);
    if (j) {
        json_close(j, ']');
        json_int(j, "arrays", count);
        json_bool(j, "identical", st == CTN_OK && v.n == 0);
        json_close(j, '}');
    } else if (st == CTN_OK) {
        say(stdout, "%lld of %lld arrays differ\n", (long long)v.n, (long long)count);
    }
    *differences = v.n;
    return st;
}
