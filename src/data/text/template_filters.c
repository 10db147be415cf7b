/* SPDX-License-Identifier: Apache-2.0
 *
 * The filters of chat templates.
 */
#include <errno.h>
#include <math.h>

#include "data/text/template.h"

typedef ctn__trun run;
typedef ctn__tvalue value;

static bool is_given(const value *v)
{
    return v->kind != CTN__T_ABSENT;
}

/* ---- text ------------------------------------------------------------------------------------ */

static ctn_status trim(run *r, const value *v, const value *arg, value *out)
{
    value text = {0};
    CTN_TRY(ctn__t_str(r, v, &text));
    return ctn__t_strip(r, &text, &arg[0], 3, out);
}

static ctn_status to_case(run *r, const value *v, ctn__tcase to, value *out)
{
    value text = {0};
    CTN_TRY(ctn__t_str(r, v, &text));
    return ctn__t_case(r, &text, to, out);
}

static ctn_status upper(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return to_case(r, v, CTN__T_UPPER, out);
}

static ctn_status lower(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return to_case(r, v, CTN__T_LOWER, out);
}

static ctn_status capitalize(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return to_case(r, v, CTN__T_CAPITAL, out);
}

static ctn_status title(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return to_case(r, v, CTN__T_WORDS, out);
}

static ctn_status replace(run *r, const value *v, const value *arg, value *out)
{
    value text = {0}, old = {0}, with = {0};
    CTN_TRY(ctn__t_str(r, v, &text));
    CTN_TRY(ctn__t_str(r, &arg[0], &old));
    CTN_TRY(ctn__t_str(r, &arg[1], &with));
    return ctn__t_replace(r, &text, &old, &with, ctn__t_is_whole(&arg[2]) ? arg[2].i : -1, out);
}

static ctn_status string(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return ctn__t_str(r, v, out);
}

/* Text from `p` on with spaces before each line, except empty ones. */
static ctn_status put_indented(run *r, ctn__tout *out, const value *text, const value *by,
                               bool first)
{
    const char *p = text->s, *end = p + text->n;
    for (bool begin = true; p < end; begin = false) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const char *to = stop ? stop + 1 : end;
        if ((!begin || first) && *p != '\n') CTN_TRY(ctn__t_put(r, out, by->s, by->n));
        CTN_TRY(ctn__t_put(r, out, p, (size_t)(to - p)));
        CTN_TRY(ctn__t_work(r, 1));
        p = to;
    }
    return CTN_OK;
}

static ctn_status indent(run *r, const value *v, const value *arg, value *out)
{
    value text, by = ctn__t_text(" ", 1), four = ctn__t_int(4);
    ctn__tout made = {0};
    if (ctn__t_true(&arg[2]))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "'indent' with blank is not supported");
    CTN_TRY(ctn__t_str(r, v, &text));
    if (arg[0].kind == CTN__T_TEXT) by = arg[0];
    else CTN_TRY(ctn__t_binary(r, CTN__TO_MULTIPLY, &by, is_given(&arg[0]) ? &arg[0] : &four, &by));
    if (ctn__t_search(text.s, text.n, "\r", 1))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "'indent' of a text with \\r is not supported");
    return ctn__t_keep(r, put_indented(r, &made, &text, &by, ctn__t_true(&arg[1])), &made, out);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static ctn_status length(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    *out = ctn__t_int(0);
    return ctn__t_length(r, v, &out->i);
}

/* The number that a text is, as a float. */
static bool read_real(const char *s, size_t n, double *x)
{
    char text[64], *end = NULL;
    if (n == 0 || n >= sizeof text || memchr(s, 'x', n) || memchr(s, 'X', n)) return false;
    memcpy(text, s, n);
    text[n] = 0;
    *x = strtod(text, &end);
    return *end == 0;
}

static bool read_whole(const char *s, size_t n, int64_t *i)
{
    char text[64], *end = NULL;
    if (n == 0 || n >= sizeof text) return false;
    memcpy(text, s, n);
    text[n] = 0;
    errno = 0;
    *i = strtoll(text, &end, 10);
    return *end == 0 && errno == 0;
}

static ctn_status to_int(run *r, const value *v, const value *arg, value *out)
{
    value text = *v;
    double x = v->kind == CTN__T_REAL ? v->x : NAN;
    *out = is_given(&arg[0]) ? arg[0] : ctn__t_int(0);
    if (ctn__t_is_whole(v)) *out = ctn__t_int(v->i);
    if (v->kind == CTN__T_TEXT) {
        int64_t i = 0;
        CTN_TRY(ctn__t_strip(r, v, &(value){0}, 3, &text));
        if (read_whole(text.s, text.n, &i)) *out = ctn__t_int(i);
        else if (!read_real(text.s, text.n, &x)) x = NAN;
    }
    if (fabs(x) < 9e18) *out = ctn__t_int((int64_t)x);
    return CTN_OK;
}

static ctn_status to_float(run *r, const value *v, const value *arg, value *out)
{
    value text = {0};
    double x = 0;
    *out = is_given(&arg[0]) ? arg[0] : (value){.kind = CTN__T_REAL};
    if (ctn__t_is_number(v)) *out = (value){.kind = CTN__T_REAL, .x = ctn__t_real(v)};
    if (v->kind != CTN__T_TEXT) return CTN_OK;
    CTN_TRY(ctn__t_strip(r, v, &(value){0}, 3, &text));
    if (read_real(text.s, text.n, &x)) *out = (value){.kind = CTN__T_REAL, .x = x};
    return CTN_OK;
}

static ctn_status absolute(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    if (v->kind == CTN__T_REAL) {
        *out = (value){.kind = CTN__T_REAL, .x = fabs(v->x)};
        return CTN_OK;
    }
    const value zero = ctn__t_int(0);
    const bool below = ctn__t_is_whole(v) && v->i < 0;
    return ctn__t_binary(r, below ? CTN__TO_SUBTRACT : CTN__TO_ADD, &zero, v, out);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static ctn_status element(run *r, const value *v, bool last, value *out)
{
    value list = {0};
    CTN_TRY(ctn__t_items(r, v, &list));
    *out = list.n == 0 ? ctn__t_undefined("element", 7) : list.list[last ? list.n - 1 : 0];
    return CTN_OK;
}

static ctn_status first(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return element(r, v, false, out);
}

static ctn_status last(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return element(r, v, true, out);
}

static ctn_status list(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    CTN_TRY(ctn__t_items(r, v, out));
    out->kind = CTN__T_LIST;
    return CTN_OK;
}

static ctn_status reverse(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    CTN_TRY(ctn__t_reverse(r, v, out));
    return v->kind == CTN__T_TEXT ? CTN_OK : ctn__t_once(r, out);
}

/* The attribute of each element, which may have dots, or each element. */
static ctn_status attribute(run *r, const value *v, const value *name, value *out)
{
    *out = *v;
    if (!is_given(name) || name->kind == CTN__T_NONE) return CTN_OK;
    if (name->kind != CTN__T_TEXT || memchr(name->s, '.', name->n))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "only a name is supported as attribute");
    return ctn__t_item(r, v, name, out);
}

/* Room for the results of a list. */
static ctn_status each_of(run *r, const value *v, value *from, value **to)
{
    CTN_TRY(ctn__t_items(r, v, from));
    CTN_TRY(ctn__t_work(r, from->n));
    *to = ctn__t_take(r, from->n * sizeof **to);
    return *to ? CTN_OK : r->status;
}

static ctn_status join(run *r, const value *v, const value *arg, value *out)
{
    value from = {0}, *to = NULL;
    const value by = is_given(&arg[0]) ? arg[0] : ctn__t_text("", 0);
    CTN_TRY(each_of(r, v, &from, &to));
    for (size_t i = 0; i < from.n; i++) CTN_TRY(attribute(r, &from.list[i], &arg[1], &to[i]));
    return ctn__t_join(r, &by, &(value){.kind = CTN__T_LIST, .n = from.n, .list = to}, out);
}

/* The arguments from number `at` on that were given. */
static ctn__targs rest_of(const value *arg, int at)
{
    ctn__targs args = {.at = arg + at};
    while (at + (int)args.n < 4 && is_given(&arg[at + (int)args.n])) args.n++;
    return args;
}

static ctn_status map(run *r, const value *v, const value *arg, value *out)
{
    value from = {0}, *to = NULL;
    const ctn__targs args = rest_of(arg, 1);
    const ctn__tbuiltin *filter = NULL;
    const bool named = arg[0].kind == CTN__T_TEXT;
    if (named) filter = ctn__t_filter(arg[0].s, arg[0].n);
    if (named == is_given(&arg[4]) || (named && !filter))
        return ctn__t_fail(r, CTN_EUNSUPPORTED,
                           "'map' needs attribute=, or the name of a filter "
                           "that is supported");
    CTN_TRY(each_of(r, v, &from, &to));
    for (size_t i = 0; i < from.n; i++)
        CTN_TRY(filter ? ctn__t_call(r, filter, &from.list[i], &args, &to[i])
                       : attribute(r, &from.list[i], &arg[4], &to[i]));
    *out = (value){.kind = CTN__T_LIST, .n = from.n, .list = to};
    return ctn__t_once(r, out);
}

/* The elements for which a test of them, or of their attribute arg[0], says `keep`. */
static ctn_status select_by(run *r, const value *v, const value *arg, bool attr, bool keep,
                            value *out)
{
    value from = {0}, *to = NULL;
    const int at = attr ? 1 : 0;
    const ctn__targs args = rest_of(arg, at + 1);
    const ctn__tbuiltin *test = NULL;
    size_t n = 0;
    if (is_given(&arg[at])) {
        if (arg[at].kind == CTN__T_TEXT) test = ctn__t_test(arg[at].s, arg[at].n);
        if (!test)
            return ctn__t_fail(r, CTN_EUNSUPPORTED, "a selection by this test is not supported");
    }
    CTN_TRY(each_of(r, v, &from, &to));
    for (size_t i = 0; i < from.n; i++) {
        value part = from.list[i], yes;
        if (attr) CTN_TRY(attribute(r, &from.list[i], &arg[0], &part));
        yes = part;
        if (test) CTN_TRY(ctn__t_call(r, test, &part, &args, &yes));
        if (ctn__t_true(&yes) == keep) to[n++] = from.list[i];
    }
    *out = (value){.kind = CTN__T_LIST, .n = n, .list = to};
    return ctn__t_once(r, out);
}

static ctn_status selectattr(run *r, const value *v, const value *arg, value *out)
{
    return select_by(r, v, arg, true, true, out);
}

static ctn_status rejectattr(run *r, const value *v, const value *arg, value *out)
{
    return select_by(r, v, arg, true, false, out);
}

static ctn_status select_(run *r, const value *v, const value *arg, value *out)
{
    return select_by(r, v, arg, false, true, out);
}

static ctn_status reject(run *r, const value *v, const value *arg, value *out)
{
    return select_by(r, v, arg, false, false, out);
}

static ctn_status items(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    value dict = *v;
    if (v->kind == CTN__T_UNDEFINED) dict = (value){.kind = CTN__T_DICT};
    const ctn__tbuiltin *method = ctn__t_method(&dict, "items", 5);
    if (dict.kind != CTN__T_DICT || !method)
        return ctn__t_fail(r, CTN_EFORMAT, "'items' of a value of type %s", ctn__t_type(v));
    CTN_TRY(method->call(r, &dict, arg, out));
    return ctn__t_once(r, out);
}

/* The least element, or the greatest. */
static ctn_status extreme(run *r, const value *v, bool most, value *out)
{
    value from = {0};
    CTN_TRY(ctn__t_items(r, v, &from));
    *out = ctn__t_undefined("element", 7);
    for (size_t i = 0; i < from.n; i++) {
        int order = -1;
        if (i && from.list[i].kind == CTN__T_TEXT)
            return ctn__t_fail(r, CTN_EUNSUPPORTED, "'min' and 'max' of texts are not supported");
        if (i) CTN_TRY(ctn__t_order(r, &from.list[i], out, &order));
        if (i == 0 || (most ? order > 0 : order < 0)) *out = from.list[i];
    }
    return ctn__t_work(r, from.n);
}

static ctn_status least(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return extreme(r, v, false, out);
}

static ctn_status greatest(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return extreme(r, v, true, out);
}

/* ---- others ---------------------------------------------------------------------------------- */

static ctn_status usual(run *r, const value *v, const value *arg, value *out)
{
    (void)r;
    const bool replaced = v->kind == CTN__T_UNDEFINED || (ctn__t_true(&arg[1]) && !ctn__t_true(v));
    *out = !replaced ? *v : is_given(&arg[0]) ? arg[0] : ctn__t_text("", 0);
    return CTN_OK;
}

const ctn__tbuiltin *ctn__t_filter(const char *name, size_t n)
{
    static const ctn__tbuiltin all[] = {
        {"abs", absolute, 0, {NULL}},
        {"capitalize", capitalize, 0, {NULL}},
        {"count", length, 0, {NULL}},
        {"d", usual, 0, {"default_value", "boolean"}},
        {"default", usual, 0, {"default_value", "boolean"}},
        {"first", first, 0, {NULL}},
        {"float", to_float, 0, {"default"}},
        {"indent", indent, 0, {"width", "first", "blank"}},
        {"int", to_int, 0, {"default"}},
        {"items", items, 0, {NULL}},
        {"join", join, 0, {"d", "attribute"}},
        {"last", last, 0, {NULL}},
        {"length", length, 0, {NULL}},
        {"list", list, 0, {NULL}},
        {"lower", lower, 0, {NULL}},
        {"map", map, 0, {"", "", "", "", "attribute"}},
        {"max", greatest, 0, {NULL}},
        {"min", least, 0, {NULL}},
        {"reject", reject, 0, {"", "", "", ""}},
        {"rejectattr", rejectattr, 1, {"", "", "", ""}},
        {"replace", replace, 2, {"old", "new", "count"}},
        {"reverse", reverse, 0, {NULL}},
        {"safe", string, 0, {NULL}},
        {"select", select_, 0, {"", "", "", ""}},
        {"selectattr", selectattr, 1, {"", "", "", ""}},
        {"string", string, 0, {NULL}},
        {"title", title, 0, {NULL}},
        {"trim", trim, 0, {"chars"}},
        {"upper", upper, 0, {NULL}},
    };
    if (ctn__t_same(name, n, "tojson")) return &ctn__t_filter_tojson;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (ctn__t_same(name, n, all[i].name)) return &all[i];
    return NULL;
}
