/* SPDX-License-Identifier: Apache-2.0
 *
 * catena weights A B: names that only one file has, other shapes, and the largest absolute and
 * relative differences of the values. Float types are compared by value, so that a file can be
 * compared with its conversion.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "weights/weights.h"

typedef struct {
    const ctn_weights *w[2];
    json *j; /* NULL: text */
    int64_t differences, compared;
} view;

typedef struct {
    bool same;                 /* bit by bit, or equal values of other types */
    double absolute, relative; /* largest; of |a| and |b| the larger one */
} distance;

static bool is_float(ctn_dtype t)
{
    return t == CTN_F32 || t == CTN_F64 || t == CTN_F16 || t == CTN_BF16;
}

/* Element i of an array that was read in a type of C. */
static double element(const void *p, ctn_dtype t, int64_t i)
{
    switch (t) {
    case CTN_F64: return ((const double *)p)[i];
    case CTN_F32: return (double)((const float *)p)[i];
    case CTN_I64: return (double)((const int64_t *)p)[i];
    case CTN_I32: return (double)((const int32_t *)p)[i];
    default: return (double)((const uint8_t *)p)[i];
    }
}

static distance measure(const void *a, const void *b, ctn_dtype t, int64_t n)
{
    distance d = {.same = true};
    for (int64_t i = 0; i < n; i++) {
        const double x = element(a, t, i), y = element(b, t, i);
        if (x == y || (isnan(x) && isnan(y))) continue;
        double far = fabs(x - y), share = far / fmax(fabs(x), fabs(y));
        if (!isfinite(far)) far = share = HUGE_VAL; /* only one of them is finite */
        d.same = false;
        d.absolute = fmax(d.absolute, far);
        d.relative = fmax(d.relative, share);
    }
    return d;
}

/* The type in which two arrays are compared; 0: their types do not fit. */
static ctn_dtype common_type(ctn_dtype a, ctn_dtype b)
{
    if (!is_float(a) || !is_float(b)) return a == b ? a : 0;
    return a == CTN_F64 || b == CTN_F64 ? CTN_F64 : CTN_F32;
}

static ctn_status measure_arrays(const view *v, const int64_t index[2], ctn_dtype type, int64_t n,
                                 distance *d)
{
    const size_t bytes = (size_t)n * ctn_dtype_size(type);
    void *p[2] = {malloc(bytes + 1), malloc(bytes + 1)};
    ctn_status st = CTN_ENOMEM;
    if (!p[0] || !p[1]) {
        ctn_fail(CTN_ENOMEM, "no memory for two arrays");
        goto done;
    }
    st = ctn_weights_read(v->w[0], index[0], type, p[0], bytes);
    if (st == CTN_OK) st = ctn_weights_read(v->w[1], index[1], type, p[1], bytes);
    if (st == CTN_OK) {
        *d = (distance){.same = true};
        if (memcmp(p[0], p[1], bytes) != 0) *d = measure(p[0], p[1], type, n);
    }
done:
    free(p[0]);
    free(p[1]);
    return st;
}

/* `what` is text; d is NULL unless values differ. */
static void show(view *v, const char *name, const char *what, const distance *d)
{
    v->differences++;
    if (!v->j) {
        if (d)
            say(stdout, "%s differs by at most %.3g, relatively %.3g\n", name, d->absolute,
                d->relative);
        else say(stdout, "%s %s\n", name, what);
        return;
    }
    json_open(v->j, NULL, '{');
    json_text(v->j, "name", name);
    json_text(v->j, "what", what);
    if (d) {
        json_real(v->j, "absolute", d->absolute);
        json_real(v->j, "relative", d->relative);
    }
    json_close(v->j, '}');
}

static ctn_status compare(view *v, const ctn_weights_array *a, const ctn_weights_array *b,
                          const int64_t index[2])
{
    char text[2 * SHAPE_TEXT + 64], s[SHAPE_TEXT], t[SHAPE_TEXT];
    distance d = {0};
    v->compared++;
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0) {
        snprintf(text, sizeof text, "is %s in the first and %s in the second",
                 shape_text(a->ndim, a->shape, s), shape_text(b->ndim, b->shape, t));
        show(v, a->name, text, NULL);
        return CTN_OK;
    }
    const ctn_dtype type = common_type(a->dtype, b->dtype);
    if (!type) {
        snprintf(text, sizeof text, "is %s in the first and %s in the second",
                 ctn_dtype_name(a->dtype), ctn_dtype_name(b->dtype));
        show(v, a->name, text, NULL);
        return CTN_OK;
    }
    CTN_TRY(measure_arrays(v, index, type, array_elements(a), &d));
    if (!d.same) show(v, a->name, "differs", &d);
    return CTN_OK;
}

/* Arrays of file k; those of the first file are also compared. */
static ctn_status walk(view *v, int k)
{
    for (int64_t i = 0; i < ctn_weights_arrays(v->w[k]); i++) {
        ctn_weights_array a, b;
        CTN_TRY(ctn_weights_get_array(v->w[k], i, &a));
        const int64_t other = ctn_weights_find(v->w[1 - k], a.name);
        if (other < 0) {
            show(v, a.name, k == 0 ? "is only in the first" : "is only in the second", NULL);
        } else if (k == 0) {
            CTN_TRY(ctn_weights_get_array(v->w[1], other, &b));
            CTN_TRY(compare(v, &a, &b, (const int64_t[2]){i, other}));
        }
    }
    return CTN_OK;
}

static ctn_status diff(view *v, const char *first, const char *second)
{
    if (v->j) {
        json_open(v->j, NULL, '{');
        json_text(v->j, "first", first);
        json_text(v->j, "second", second);
        json_open(v->j, "differences", '[');
    } else {
        say(stdout, "first:  %s\nsecond: %s\n", first, second);
    }
    ctn_status st = walk(v, 0);
    if (st == CTN_OK) st = walk(v, 1);
    if (v->j) {
        json_close(v->j, ']');
        json_int(v->j, "compared", v->compared);
        json_bool(v->j, "identical", st == CTN_OK && v->differences == 0);
        json_close(v->j, '}');
    } else if (st == CTN_OK) {
        say(stdout, "%lld differences, %lld arrays are in both\n", (long long)v->differences,
            (long long)v->compared);
    }
    return st;
}

ctn_status weights_diff(const char *first, const char *second, json *j, int64_t *differences)
{
    view v = {.j = j};
    ctn_weights *w[2] = {NULL, NULL};
    ctn_status st = ctn_weights_open(&w[0], first);
    if (st == CTN_OK) st = ctn_weights_open(&w[1], second);
    v.w[0] = w[0];
    v.w[1] = w[1];
    if (st == CTN_OK) st = diff(&v, first, second);
    ctn_weights_free(w[0]);
    ctn_weights_free(w[1]);
    *differences = v.differences;
    return st;
}
