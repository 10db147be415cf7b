/* SPDX-License-Identifier: Apache-2.0
 *
 * The methods of values in chat templates, which are those of Python's str, dict and list, and the
 * global functions.
 */
#include <time.h>

#include "data/text/template.h"

typedef ctn__trun run;
typedef ctn__tvalue value;

/* ---- text ------------------------------------------------------------------------------------ */

static ctn_status strip(run *r, const value *v, const value *arg, value *out)
{
    return ctn__t_strip(r, v, &arg[0], 3, out);
}

static ctn_status lstrip(run *r, const value *v, const value *arg, value *out)
{
    return ctn__t_strip(r, v, &arg[0], 1, out);
}

static ctn_status rstrip(run *r, const value *v, const value *arg, value *out)
{
    return ctn__t_strip(r, v, &arg[0], 2, out);
}

static ctn_status upper(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return ctn__t_case(r, v, CTN__T_UPPER, out);
}

static ctn_status lower(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return ctn__t_case(r, v, CTN__T_LOWER, out);
}

static ctn_status title(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return ctn__t_case(r, v, CTN__T_TITLE, out);
}

static ctn_status capitalize(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return ctn__t_case(r, v, CTN__T_CAPITAL, out);
}

/* A number of times; not given: any. */
static ctn_status times(const run *r, const value *arg, int64_t *n)
{
    *n = -1;
    if (arg->kind == CTN__T_ABSENT) return CTN_OK;
    if (!ctn__t_is_whole(arg))
        return ctn__t_fail(r, CTN_EFORMAT, "expected an integer, found a value of type %s",
                           ctn__t_type(arg));
    *n = arg->i;
    return CTN_OK;
}

static ctn_status split(run *r, const value *v, const value *arg, value *out)
{
    int64_t most = 0;
    CTN_TRY(times(r, &arg[1], &most));
    return ctn__t_split(r, v, &arg[0], most, out);
}

static ctn_status replace(run *r, const value *v, const value *arg, value *out)
{
    int64_t most = 0;
    CTN_TRY(times(r, &arg[2], &most));
    return ctn__t_replace(r, v, &arg[0], &arg[1], most, out);
}

static ctn_status join(run *r, const value *v, const value *arg, value *out)
{
    value list = {0};
    CTN_TRY(ctn__t_items(r, &arg[0], &list));
    for (size_t i = 0; i < list.n; i++)
        if (list.list[i].kind != CTN__T_TEXT)
            return ctn__t_fail(r, CTN_EFORMAT, "join of a value of type %s",
                               ctn__t_type(&list.list[i]));
    return ctn__t_join(r, v, &list, out);
}

static bool has_end(const value *v, const value *part, bool end)
{
    if (part->kind != CTN__T_TEXT || part->n > v->n) return false;
    return memcmp(end ? v->s + v->n - part->n : v->s, part->s, part->n) == 0;
}

static ctn_status check_end(run *r, const value *v, const value *part, bool end, value *out)
{
    bool yes = has_end(v, part, end);
    if (part->kind != CTN__T_TEXT && part->kind != CTN__T_TUPLE)
        return ctn__t_fail(r, CTN_EFORMAT, "expected a text or a tuple of texts, found %s",
                           ctn__t_type(part));
    for (size_t i = 0; part->kind == CTN__T_TUPLE && !yes && i < part->n; i++)
        yes = has_end(v, &part->list[i], end);
    *out = ctn__t_bool(yes);
    return ctn__t_work(r, part->n / 16);
}

static ctn_status startswith(run *r, const value *v, const value *arg, value *out)
{
    return check_end(r, v, &arg[0], false, out);
}

static ctn_status endswith(run *r, const value *v, const value *arg, value *out)
{
    return check_end(r, v, &arg[0], true, out);
}

static ctn_status removeprefix(run *r, const value *v, const value *arg, value *out)
{
    CTN_TRY(check_end(r, v, &arg[0], false, out));
    const size_t n = out->i ? arg[0].n : 0;
    *out = ctn__t_text(v->s + n, v->n - n);
    return CTN_OK;
}

static ctn_status removesuffix(run *r, const value *v, const value *arg, value *out)
{
    CTN_TRY(check_end(r, v, &arg[0], true, out));
    *out = ctn__t_text(v->s, v->n - (out->i ? arg[0].n : 0));
    return CTN_OK;
}

static ctn_status find(run *r, const value *v, const value *arg, value *out)
{
    if (arg[0].kind != CTN__T_TEXT)
        return ctn__t_fail(r, CTN_EFORMAT, "expected a text, found %s", ctn__t_type(&arg[0]));
    CTN_TRY(ctn__t_work(r, v->n / 16 * (arg[0].n / 64 + 1)));
    const char *at = ctn__t_search(v->s, v->n, arg[0].s, arg[0].n);
    *out = ctn__t_int(at ? (int64_t)ctn__t_characters(v->s, (size_t)(at - v->s)) : -1);
    return CTN_OK;
}

static ctn_status count(run *r, const value *v, const value *arg, value *out)
{
    if (arg[0].kind != CTN__T_TEXT || arg[0].n == 0)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "'count' of anything but a text");
    CTN_TRY(ctn__t_work(r, v->n / 16 * (arg[0].n / 64 + 1)));
    *out = ctn__t_int(0);
    for (const char *p = v->s, *end = p + v->n;
         (p = ctn__t_search(p, (size_t)(end - p), arg[0].s, arg[0].n)) != NULL; p += arg[0].n)
        out->i++;
    return CTN_OK;
}

/* ---- dicts ----------------------------------------------------------------------------------- */

typedef enum { KEYS, VALUES, ITEMS } part;

static ctn_status parts_of(run *r, const value *v, part what, value *out)
{
    const size_t n = v->n;
    value *to = ctn__t_take(r, n * sizeof *to);
    value *pair = what == ITEMS ? ctn__t_take(r, 2 * n * sizeof *pair) : NULL;
    if (!to || (what == ITEMS && !pair)) return r->status;
    for (size_t i = 0; i < n; i++) {
        to[i] = what == KEYS ? v->dict[i].key : v->dict[i].value;
        if (what != ITEMS) continue;
        pair[2 * i] = v->dict[i].key;
        pair[2 * i + 1] = v->dict[i].value;
        to[i] = (value){.kind = CTN__T_TUPLE, .n = 2, .list = pair + 2 * i};
    }
    *out = (value){.kind = CTN__T_LIST, .n = n, .list = to};
    return ctn__t_work(r, n);
}

static ctn_status keys(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return parts_of(r, v, KEYS, out);
}

static ctn_status values(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return parts_of(r, v, VALUES, out);
}

static ctn_status items(run *r, const value *v, const value *arg, value *out)
{
    (void)arg;
    return parts_of(r, v, ITEMS, out);
}

static ctn_status get(run *r, const value *v, const value *arg, value *out)
{
    const value *found = NULL;
    CTN_TRY(ctn__t_find(r, v->dict, v->n, &arg[0], &found));
    *out = found ? *found : arg[1];
    if (out->kind == CTN__T_ABSENT) out->kind = CTN__T_NONE;
    return CTN_OK;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static ctn_status index_of(run *r, const value *v, const value *arg, value *out)
{
    CTN_TRY(ctn__t_work(r, v->n / 4));
    for (size_t i = 0; i < v->n; i++) {
        bool same = false;
        CTN_TRY(ctn__t_equal(r, &v->list[i], &arg[0], &same));
        if (!same) continue;
        *out = ctn__t_int((int64_t)i);
        return CTN_OK;
    }
    return ctn__t_fail(r, CTN_EFORMAT, "'index' of a value that is not in the list");
}

static ctn_status refuse_change(run *r, const value *v, const value *arg, value *out)
{
    (void)v, (void)arg, (void)out;
    return ctn__t_fail(r, CTN_EUNSUPPORTED, "templates cannot change lists and dicts");
}

/* ---- tables ---------------------------------------------------------------------------------- */

static const ctn__tbuiltin of_text[] = {
    {"capitalize", capitalize, 0, {NULL}},
    {"count", count, 1, {""}},
    {"endswith", endswith, 1, {""}},
    {"find", find, 1, {""}},
    {"join", join, 1, {""}},
    {"lower", lower, 0, {NULL}},
    {"lstrip", lstrip, 0, {""}},
    {"removeprefix", removeprefix, 1, {""}},
    {"removesuffix", removesuffix, 1, {""}},
    {"replace", replace, 2, {"", "", "count"}},
    {"rstrip", rstrip, 0, {""}},
    {"split", split, 0, {"sep", "maxsplit"}},
    {"startswith", startswith, 1, {""}},
    {"strip", strip, 0, {""}},
    {"title", title, 0, {NULL}},
    {"upper", upper, 0, {NULL}},
    {NULL, NULL, 0, {NULL}},
};
static const ctn__tbuiltin of_dict[] = {
    {"get", get, 1, {"", ""}},
    {"items", items, 0, {NULL}},
    {"keys", keys, 0, {NULL}},
    {"pop", refuse_change, 0, {"", ""}},
    {"update", refuse_change, 0, {""}},
    {"values", values, 0, {NULL}},
    {NULL, NULL, 0, {NULL}},
};
static const ctn__tbuiltin of_list[] = {
    {"append", refuse_change, 0, {""}}, {"extend", refuse_change, 0, {""}},
    {"index", index_of, 1, {""}},       {"insert", refuse_change, 0, {"", ""}},
    {"pop", refuse_change, 0, {""}},    {NULL, NULL, 0, {NULL}},
};

const ctn__tbuiltin *ctn__t_method(const value *self, const char *name, size_t n)
{
    const ctn__tbuiltin *m = self->kind == CTN__T_TEXT   ? of_text
                             : self->kind == CTN__T_DICT ? of_dict
                             : ctn__t_is_list(self)      ? of_list
                                                         : NULL;
    for (; m && m->name; m++)
        if (ctn__t_same(name, n, m->name)) return m;
    return NULL;
}

/* ---- functions ------------------------------------------------------------------------------- */

static ctn_status range(run *r, const value *v, const value *arg, value *out)
{
    (void)v;
    const bool one = arg[1].kind == CTN__T_ABSENT;
    const value step = arg[2].kind == CTN__T_ABSENT ? ctn__t_int(1) : arg[2];
    const value from = one ? ctn__t_int(0) : arg[0], to = one ? arg[0] : arg[1];
    if (!ctn__t_is_whole(&from) || !ctn__t_is_whole(&to) || !ctn__t_is_whole(&step) || step.i == 0)
        return ctn__t_fail(r, CTN_EFORMAT, "range() needs integers, and a step that is not 0");
    /* unsigned, because the difference may not fit */
    const bool up = step.i > 0, any = up ? to.i > from.i : to.i < from.i;
    const uint64_t by = up ? (uint64_t)step.i : 0 - (uint64_t)step.i;
    const uint64_t far = up ? (uint64_t)to.i - (uint64_t)from.i : (uint64_t)from.i - (uint64_t)to.i;
    const uint64_t n = any ? (far - 1) / by + 1 : 0;
    if (n > CTN__T_RANGE)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "range() of more than %d numbers", CTN__T_RANGE);
    value *at = ctn__t_take(r, n * sizeof *at);
    if (!at) return r->status;
    for (uint64_t i = 0; i < n; i++)
        at[i] = ctn__t_int((int64_t)((uint64_t)from.i + i * (uint64_t)step.i));
    *out = (value){.kind = CTN__T_LIST, .n = n, .list = at};
    return ctn__t_work(r, n);
}

static ctn_status raise_exception(run *r, const value *v, const value *arg, value *out)
{
    value text = {0};
    (void)v, (void)out;
    CTN_TRY(ctn__t_str(r, &arg[0], &text));
    return ctn__t_fail(r, CTN_EARG, "the template refuses the conversation: %.*s",
                       text.n < 500 ? (int)text.n : 500, text.s);
}

static ctn_status strftime_now(run *r, const value *v, const value *arg, value *out)
{
    char format[100], text[400];
    struct tm now;
    const time_t seconds = time(NULL);
    (void)v;
    if (arg[0].kind != CTN__T_TEXT || arg[0].n >= sizeof format || !localtime_r(&seconds, &now))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "strftime_now() needs a short text");
    memcpy(format, arg[0].s, arg[0].n);
    format[arg[0].n] = 0;
    const size_t n = strftime(text, sizeof text, format, &now);
    char *to = ctn__t_take(r, n);
    if (!to) return r->status;
    memcpy(to, text, n);
    *out = ctn__t_text(to, n);
    return CTN_OK;
}

/* What namespace() and dict() begin with. */
static ctn_status make_space(run *r, const ctn__targs *args, bool dict, value *out)
{
    ctn__tspace *space = ctn__t_take(r, sizeof *space);
    if (!space) return r->status;
    *space = (ctn__tspace){0};
    if (args->n > 1 || (args->n == 1 && args->at[0].kind != CTN__T_DICT))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "namespace() and dict() take a dict and names");
    for (size_t i = 0; args->n && i < args->at[0].n; i++)
        CTN_TRY(ctn__t_space_set(r, space, &args->at[0].dict[i].key, &args->at[0].dict[i].value));
    for (size_t i = 0; i < args->names; i++)
        CTN_TRY(ctn__t_space_set(r, space, &args->named[i].key, &args->named[i].value));
    *out = dict ? (value){.kind = CTN__T_DICT, .n = space->n, .dict = space->at}
                : (value){.kind = CTN__T_SPACE, .space = space};
    return CTN_OK;
}

static const ctn__tbuiltin functions[] = {
    {"dict", NULL, 0, {NULL}},
    {"namespace", NULL, 0, {NULL}},
    {"raise_exception", raise_exception, 1, {"message"}},
    {"range", range, 1, {"", "", ""}},
    {"strftime_now", strftime_now, 1, {"format"}},
};

int ctn__t_function(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (ctn__t_same(name, n, functions[i].name)) return (int)i;
    return -1;
}

ctn_status ctn__t_call_function(run *r, int function, const ctn__targs *args, value *out)
{
    const value none = {0};
    if (!functions[function].call) return make_space(r, args, function == 0, out);
    return ctn__t_call(r, &functions[function], &none, args, out);
}
