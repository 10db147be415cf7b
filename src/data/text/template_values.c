/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a running chat template: the limits of a run, truth, equality, order, and what can be
 * iterated.
 */
#include <stdarg.h>

#include "data/text/template.h"

/* ---- limits ---------------------------------------------------------------------------------- */

ctn_status ctn__t_fail(const ctn__trun *r, ctn_status st, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ctn__text_clean(text);
    if (r->line == 0) return ctn_fail(st, "%s: %s", r->who, text);
    return ctn_fail(st, "%s, line %d: %s", r->who, r->line, text);
}

void *ctn__t_take(ctn__trun *r, size_t bytes)
{
    if (bytes > CTN__T_MEMORY || r->taken > CTN__T_MEMORY - bytes) {
        r->status = ctn__t_fail(r, CTN_EUNSUPPORTED, "its values need more than %d MB",
                                CTN__T_MEMORY >> 20);
        return NULL;
    }
    r->status = CTN_ENOMEM;
    r->taken += bytes + 16;
    return ctn__arena_get(&r->memory, bytes);
}

ctn_status ctn__t_work(ctn__trun *r, size_t amount)
{
    if (amount < (size_t)(CTN__T_STEPS - r->steps)) {
        r->steps += (int64_t)amount;
        return CTN_OK;
    }
    return ctn__t_fail(r, CTN_EUNSUPPORTED, "it takes more than %d steps", CTN__T_STEPS);
}

ctn_status ctn__t_enter(ctn__trun *r)
{
    if (r->depth++ < CTN__T_DEPTH) return ctn__t_work(r, 1);
    return ctn__t_fail(r, CTN_EUNSUPPORTED, "nested more than %d levels deep", CTN__T_DEPTH);
}

/* ---- properties ------------------------------------------------------------------------------ */

const char *ctn__t_type(const ctn__tvalue *v)
{
    switch (v->kind) {
    case CTN__T_NONE: return "None";
    case CTN__T_BOOL: return "bool";
    case CTN__T_INT: return "int";
    case CTN__T_REAL: return "float";
    case CTN__T_TEXT: return "str";
    case CTN__T_LIST: return "list";
    case CTN__T_TUPLE: return "tuple";
    case CTN__T_DICT: return "dict";
    case CTN__T_EACH: return "generator";
    case CTN__T_SPACE: return "namespace";
    case CTN__T_LOOP: return "loop";
    case CTN__T_MACRO: return "macro";
    case CTN__T_FUNCTION: return "function";
    case CTN__T_METHOD: return "method";
    default: return "undefined";
    }
}

bool ctn__t_true(const ctn__tvalue *v)
{
    switch (v->kind) {
    case CTN__T_ABSENT:
    case CTN__T_UNDEFINED:
    case CTN__T_NONE: return false;
    case CTN__T_BOOL:
    case CTN__T_INT: return v->i != 0;
    case CTN__T_REAL: return v->x != 0;
    case CTN__T_TEXT:
    case CTN__T_LIST:
    case CTN__T_TUPLE:
    case CTN__T_DICT: return v->n > 0;
    default: return true;
    }
}

size_t ctn__t_characters(const char *s, size_t n)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ((unsigned char)s[i] & 0xC0) != 0x80;
    return k;
}

ctn_status ctn__t_length(ctn__trun *r, const ctn__tvalue *v, int64_t *n)
{
    *n = (int64_t)v->n;
    switch (v->kind) {
    case CTN__T_TEXT: *n = (int64_t)ctn__t_characters(v->s, v->n); return ctn__t_work(r, v->n / 16);
    case CTN__T_LIST:
    case CTN__T_TUPLE:
    case CTN__T_DICT: return CTN_OK;
    case CTN__T_UNDEFINED: *n = 0; return CTN_OK;
    default: return ctn__t_fail(r, CTN_EFORMAT, "a value of type %s has no length", ctn__t_type(v));
    }
}

/* ---- equality and order ---------------------------------------------------------------------- */

static ctn_status equal_lists(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, bool *same)
{
    *same = a->n == b->n;
    for (size_t i = 0; *same && i < a->n; i++)
        CTN_TRY(ctn__t_equal(r, &a->list[i], &b->list[i], same));
    return CTN_OK;
}

static ctn_status equal_dicts(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, bool *same)
{
    *same = a->n == b->n;
    for (size_t i = 0; *same && i < a->n; i++) {
        const ctn__tvalue *other = NULL;
        CTN_TRY(ctn__t_find(r, b->dict, b->n, &a->dict[i].key, &other));
        *same = other != NULL;
        if (other) CTN_TRY(ctn__t_equal(r, &a->dict[i].value, other, same));
    }
    return CTN_OK;
}

static ctn_status equal_deep(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, bool *same)
{
    CTN_TRY(ctn__t_enter(r));
    CTN_TRY(a->kind == CTN__T_DICT ? equal_dicts(r, a, b, same) : equal_lists(r, a, b, same));
    r->depth--;
    return CTN_OK;
}

ctn_status ctn__t_equal(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, bool *same)
{
    *same = false;
    if (ctn__t_is_whole(a) && ctn__t_is_whole(b)) *same = a->i == b->i;
    else if (ctn__t_is_number(a) && ctn__t_is_number(b)) *same = ctn__t_real(a) == ctn__t_real(b);
    else if (a->kind != b->kind) *same = false;
    else if (a->kind == CTN__T_TEXT) *same = a->n == b->n && memcmp(a->s, b->s, a->n) == 0;
    else if (ctn__t_is_list(a) || a->kind == CTN__T_DICT) return equal_deep(r, a, b, same);
    else if (a->kind == CTN__T_EACH) *same = a->each == b->each;
    else if (a->kind == CTN__T_SPACE) *same = a->space == b->space;
    else *same = a->kind == CTN__T_NONE || a->kind == CTN__T_UNDEFINED;
    return a->kind == CTN__T_TEXT && *same ? ctn__t_work(r, a->n / 64) : CTN_OK;
}

ctn_status ctn__t_order(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, int *order)
{
    if (ctn__t_is_whole(a) && ctn__t_is_whole(b)) {
        *order = a->i < b->i ? -1 : a->i > b->i;
        return CTN_OK;
    }
    if (ctn__t_is_number(a) && ctn__t_is_number(b)) {
        const double x = ctn__t_real(a), y = ctn__t_real(b);
        *order = x < y ? -1 : x > y;
        return CTN_OK;
    }
    if (a->kind == CTN__T_TEXT && b->kind == CTN__T_TEXT) {
        const int c = memcmp(a->s, b->s, a->n < b->n ? a->n : b->n);
        *order = c ? c : a->n < b->n ? -1 : a->n > b->n;
        return ctn__t_work(r, a->n / 64);
    }
    return ctn__t_fail(r, a->kind == b->kind && ctn__t_is_list(a) ? CTN_EUNSUPPORTED : CTN_EFORMAT,
                       "values of the types %s and %s have no order", ctn__t_type(a),
                       ctn__t_type(b));
}

/* ---- parts ----------------------------------------------------------------------------------- */

ctn_status ctn__t_find(ctn__trun *r, const ctn__tpair *at, size_t n, const ctn__tvalue *key,
                       const ctn__tvalue **out)
{
    *out = NULL;
    CTN_TRY(ctn__t_work(r, n / 8));
    for (size_t i = 0; i < n; i++) {
        bool same = false;
        if (at[i].key.kind == CTN__T_TEXT && key->kind == CTN__T_TEXT)
            same = at[i].key.n == key->n && memcmp(at[i].key.s, key->s, key->n) == 0;
        else CTN_TRY(ctn__t_equal(r, &at[i].key, key, &same));
        if (!same) continue;
        *out = &at[i].value;
        return CTN_OK;
    }
    return CTN_OK;
}

static ctn_status characters_of(ctn__trun *r, const ctn__tvalue *v, ctn__tvalue *at)
{
    size_t k = 0;
    for (const char *p = v->s, *end = p + v->n; p < end;) {
        uint32_t c = 0;
        const size_t n = ctn__utf8_get(p, end, &c);
        at[k++] = ctn__t_text(p, n);
        p += n;
    }
    return ctn__t_work(r, k);
}

static ctn_status use_once(const ctn__trun *r, struct ctn__teach *each, ctn__tvalue *list)
{
    if (each->used)
        return ctn__t_fail(r, CTN_EUNSUPPORTED,
                           "the result of a filter such as map or select is "
                           "used twice; make a list of it");
    each->used = true;
    *list = each->list;
    return CTN_OK;
}

ctn_status ctn__t_once(ctn__trun *r, ctn__tvalue *list)
{
    struct ctn__teach *each = ctn__t_take(r, sizeof *each);
    if (!each) return r->status;
    *each = (struct ctn__teach){*list, false};
    *list = (ctn__tvalue){.kind = CTN__T_EACH, .each = each};
    return CTN_OK;
}

ctn_status ctn__t_items(ctn__trun *r, const ctn__tvalue *v, ctn__tvalue *list)
{
    int64_t n = 0;
    *list = *v;
    if (v->kind == CTN__T_EACH) return use_once(r, v->each, list);
    if (ctn__t_is_list(v)) return CTN_OK;
    if (v->kind != CTN__T_TEXT && v->kind != CTN__T_DICT && v->kind != CTN__T_UNDEFINED)
        return ctn__t_fail(r, CTN_EFORMAT, "a value of type %s has no elements", ctn__t_type(v));
    CTN_TRY(ctn__t_length(r, v, &n));
    ctn__tvalue *at = ctn__t_take(r, (size_t)n * sizeof *at);
    if (!at) return r->status;
    *list = (ctn__tvalue){.kind = CTN__T_LIST, .n = (size_t)n, .list = at};
    if (v->kind == CTN__T_TEXT) return characters_of(r, v, at);
    for (int64_t i = 0; i < n; i++) at[i] = v->dict[i].key;
    return ctn__t_work(r, (size_t)n);
}

ctn_status ctn__t_space_set(ctn__trun *r, ctn__tspace *s, const ctn__tvalue *key,
                            const ctn__tvalue *value)
{
    for (size_t i = 0; i < s->n; i++) {
        bool same = false;
        CTN_TRY(ctn__t_equal(r, &s->at[i].key, key, &same));
        if (!same) continue;
        s->at[i].value = *value;
        return ctn__t_work(r, i / 8);
    }
    if (s->n == s->room) {
        const size_t room = 2 * s->room + 4;
        ctn__tpair *at = ctn__t_take(r, room * sizeof *at);
        if (!at) return r->status;
        if (s->n) memcpy(at, s->at, s->n * sizeof *at);
        s->at = at;
        s->room = room;
    }
    s->at[s->n++] = (ctn__tpair){*key, *value};
    return ctn__t_work(r, s->n / 8);
}
