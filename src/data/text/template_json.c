/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON in chat templates: conversations and settings are read as values, and the filter tojson
 * writes values as Python's json.dumps does.
 */
#include <math.h>

#include "data/text/template.h"

typedef ctn__trun run;
typedef ctn__tvalue value;

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct {
    run *r;
    ctn__tout out;
    bool ascii;
    int64_t indent; /* -1: all in one line */
    value between, after_key;
} writer;

static ctn_status put(writer *w, const char *s)
{
    return ctn__t_put(w->r, &w->out, s, strlen(s));
}

static ctn_status new_line(writer *w, int level)
{
    const int64_t spaces = w->indent * level;
    if (w->indent < 0) return CTN_OK;
    CTN_TRY(put(w, "\n"));
    for (int64_t i = 0; i < spaces; i++) CTN_TRY(put(w, " "));
    return ctn__t_work(w->r, (size_t)spaces);
}

static ctn_status write_character(writer *w, const char *p, size_t n, uint32_t c)
{
    static const char from[] = "\"\\\n\r\t\b\f";
    static const char *const to[] = {"\\\"", "\\\\", "\\n", "\\r", "\\t", "\\b", "\\f"};
    char text[16];
    const char *known = c && c < 128 ? strchr(from, (int)c) : NULL;
    if (known) return put(w, to[known - from]);
    if (c >= 0x20 && (!w->ascii || c < 0x7f)) return ctn__t_put(w->r, &w->out, p, n);
    if (c < 0x10000) snprintf(text, sizeof text, "\\u%04x", (unsigned)c);
    else
        snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xD800 + ((c - 0x10000) >> 10)),
                 (unsigned)(0xDC00 + (c & 0x3FF)));
    return put(w, text);
}

static ctn_status write_text(writer *w, const char *s, size_t n)
{
    CTN_TRY(ctn__t_work(w->r, n / 4));
    CTN_TRY(put(w, "\""));
    for (const char *p = s, *end = s + n; p < end;) {
        uint32_t c = 0;
        const size_t k = ctn__utf8_get(p, end, &c);
        CTN_TRY(write_character(w, p, k, c));
        p += k;
    }
    return put(w, "\"");
}

/* A number, a boolean or none. */
static ctn_status write_plain(writer *w, const value *v)
{
    if (v->kind == CTN__T_NONE) return put(w, "null");
    if (v->kind == CTN__T_BOOL) return put(w, v->i ? "true" : "false");
    if (v->kind == CTN__T_REAL && !isfinite(v->x))
        return put(w, isnan(v->x) ? "NaN" : v->x > 0 ? "Infinity" : "-Infinity");
    if (!ctn__t_is_number(v))
        return ctn__t_fail(w->r, CTN_EFORMAT, "'tojson' of a value of type %s", ctn__t_type(v));
    return ctn__t_print(w->r, &w->out, v);
}

static ctn_status write_key(writer *w, const value *key)
{
    if (key->kind == CTN__T_TEXT) return write_text(w, key->s, key->n);
    CTN_TRY(put(w, "\""));
    CTN_TRY(write_plain(w, key));
    return put(w, "\"");
}

static ctn_status write_value(writer *w, const value *v, int level);

static ctn_status write_elements(writer *w, const value *v, int level)
{
    const bool dict = v->kind == CTN__T_DICT;
    CTN_TRY(put(w, dict ? "{" : "["));
    for (size_t i = 0; i < v->n; i++) {
        if (i) CTN_TRY(ctn__t_put(w->r, &w->out, w->between.s, w->between.n));
        CTN_TRY(new_line(w, level + 1));
        if (dict) CTN_TRY(write_key(w, &v->dict[i].key));
        if (dict) CTN_TRY(ctn__t_put(w->r, &w->out, w->after_key.s, w->after_key.n));
        CTN_TRY(write_value(w, dict ? &v->dict[i].value : &v->list[i], level + 1));
    }
    if (v->n) CTN_TRY(new_line(w, level));
    return put(w, dict ? "}" : "]");
}

static ctn_status write_value(writer *w, const value *v, int level)
{
    if (v->kind == CTN__T_TEXT) return write_text(w, v->s, v->n);
    if (!ctn__t_is_list(v) && v->kind != CTN__T_DICT) return write_plain(w, v);
    CTN_TRY(ctn__t_enter(w->r));
    CTN_TRY(write_elements(w, v, level));
    w->r->depth--;
    return CTN_OK;
}

static ctn_status take_separators(writer *w, const value *v)
{
    if (!ctn__t_is_list(v) || v->n != 2 || v->list[0].kind != CTN__T_TEXT ||
        v->list[1].kind != CTN__T_TEXT)
        return ctn__t_fail(w->r, CTN_EFORMAT, "'tojson' needs two texts as separators");
    w->between = v->list[0];
    w->after_key = v->list[1];
    return CTN_OK;
}

static ctn_status tojson(run *r, const value *v, const value *arg, value *out)
{
    const bool lines = arg[1].kind != CTN__T_ABSENT && arg[1].kind != CTN__T_NONE;
    writer w = {.r = r, .ascii = ctn__t_true(&arg[0]), .indent = -1};
    w.between = lines ? ctn__t_text(",", 1) : ctn__t_text(", ", 2);
    w.after_key = ctn__t_text(": ", 2);
    if (lines && (arg[1].kind != CTN__T_INT || arg[1].i < 0 || arg[1].i > 100))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "'tojson' needs an indent from 0 to 100");
    if (lines) w.indent = arg[1].i;
    if (ctn__t_true(&arg[2])) CTN_TRY(take_separators(&w, &arg[2]));
    if (ctn__t_true(&arg[3]))
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "'tojson' with sort_keys is not supported");
    const ctn_status st = write_value(&w, v, 0);
    return ctn__t_keep(r, st, &w.out, out);
}

const ctn__tbuiltin ctn__t_filter_tojson = {"tojson",
                                            tojson,
                                            0,
                                            {"ensure_ascii", "indent", "separators", "sort_keys"}};

/* ---- reading --------------------------------------------------------------------------------- */

#ifdef CTN_HAVE_YYJSON

#include "base/json.h"

static ctn_status convert(run *r, yyjson_val *v, value *out);

static ctn_status convert_text(run *r, yyjson_val *v, value *out)
{
    const size_t n = yyjson_get_len(v);
    char *s = ctn__t_take(r, n + 1);
    if (!s) return r->status;
    memcpy(s, yyjson_get_str(v), n + 1);
    *out = ctn__t_text(s, n);
    return CTN_OK;
}

static ctn_status convert_list(run *r, yyjson_val *v, value *out)
{
    size_t i, max;
    yyjson_val *e;
    const size_t n = yyjson_arr_size(v);
    value *at = ctn__t_take(r, n * sizeof *at);
    if (!at) return r->status;
    yyjson_arr_foreach(v, i, max, e) CTN_TRY(convert(r, e, &at[i]));
    *out = (value){.kind = CTN__T_LIST, .n = n, .list = at};
    return CTN_OK;
}

/* Of equal keys, the last one counts. */
static ctn_status convert_object(run *r, yyjson_val *v, value *out)
{
    size_t i, max;
    yyjson_val *k, *e;
    ctn__tspace space = {0};
    yyjson_obj_foreach(v, i, max, k, e)
    {
        value key = {0}, member = {0};
        CTN_TRY(convert_text(r, k, &key));
        CTN_TRY(convert(r, e, &member));
        CTN_TRY(ctn__t_space_set(r, &space, &key, &member));
    }
    *out = (value){.kind = CTN__T_DICT, .n = space.n, .dict = space.at};
    return CTN_OK;
}

static ctn_status convert_any(run *r, yyjson_val *v, value *out)
{
    if (yyjson_is_str(v)) return convert_text(r, v, out);
    if (yyjson_is_arr(v)) return convert_list(r, v, out);
    if (yyjson_is_obj(v)) return convert_object(r, v, out);
    *out = (value){.kind = CTN__T_NONE};
    if (yyjson_is_bool(v)) *out = ctn__t_bool(yyjson_get_bool(v));
    if (yyjson_is_real(v)) *out = (value){.kind = CTN__T_REAL, .x = yyjson_get_real(v)};
    if (yyjson_is_uint(v) && yyjson_get_uint(v) > INT64_MAX)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "an integer with more than 64 bits");
    if (yyjson_is_int(v)) *out = ctn__t_int(yyjson_get_sint(v));
    return CTN_OK;
}

static ctn_status convert(run *r, yyjson_val *v, value *out)
{
    CTN_TRY(ctn__t_enter(r));
    CTN_TRY(convert_any(r, v, out));
    r->depth--;
    return CTN_OK;
}

ctn_status ctn__t_parse_json(run *r, const char *what, const char *json, size_t bytes, value *out)
{
    yyjson_read_err err = {0};
    /* yyjson does not write to it without the in-situ flag */
    yyjson_doc *doc = yyjson_read_opts((char *)(uintptr_t)json, bytes, 0, &ctn__json_memory, &err);
    if (!doc && err.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return CTN_ENOMEM;
    if (!doc) return ctn_fail(CTN_EFORMAT, "%s: not JSON: %s at byte %zu", what, err.msg, err.pos);
    const ctn_status st = convert(r, yyjson_doc_get_root(doc), out);
    yyjson_doc_free(doc);
    return st;
}

#else

ctn_status ctn__t_parse_json(run *r, const char *what, const char *json, size_t bytes, value *out)
{
    (void)r, (void)json, (void)bytes, (void)out;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "%s: Catena was built without yyjson, which reads JSON; install it (Debian: "
                    "libyyjson-dev) and rebuild",
                    what);
}

#endif
