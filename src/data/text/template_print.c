/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of a chat template as text, as Python's str() and repr() write them.
 */
#include <math.h>

#include "data/text/template.h"

ctn_status ctn__t_put(ctn__trun *r, ctn__tout *out, const char *s, size_t n)
{
    if (n > CTN__T_OUTPUT || out->n > CTN__T_OUTPUT - n)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "its text is longer than %d MB",
                           CTN__T_OUTPUT >> 20);
    if (n == 0) return CTN_OK;
    if (!ctn__vec_reserve(out, out->n + n) || !out->at) return CTN_ENOMEM;
    memcpy(out->at + out->n, s, n);
    out->n += n;
    return ctn__t_work(r, n / 16);
}

static ctn_status put(ctn__trun *r, ctn__tout *out, const char *s)
{
    return ctn__t_put(r, out, s, strlen(s));
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* The shortest digits that give x again, and the power of ten of the first one. */
static int digits_of(double x, char digits[24], int *power)
{
    char text[40];
    for (int n = 1; n <= 17; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, x);
        if (strtod(text, NULL) == x) break;
    }
    int n = 0;
    const char *p = text;
    for (; *p && *p != 'e'; p++)
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    *power = *p ? atoi(p + 1) : 0;
    while (n > 1 && digits[n - 1] == '0') n--;
    digits[n] = 0;
    return n;
}

size_t ctn__t_print_real(double x, char out[40])
{
    char digits[24];
    int power = 0;
    if (!isfinite(x))
        return (size_t)snprintf(out, 40, "%s", isnan(x) ? "nan" : x > 0 ? "inf" : "-inf");
    const char *sign = signbit(x) ? "-" : "";
    const int n = digits_of(fabs(x), digits, &power);
    if (power < -4 || power >= 16)
        return (size_t)snprintf(out, 40, "%s%c%s%se%c%02d", sign, digits[0], n > 1 ? "." : "",
                                digits + 1, power < 0 ? '-' : '+', abs(power));
    if (power < 0) return (size_t)snprintf(out, 40, "%s0.%.*s%s", sign, -power - 1, "000", digits);
    const int whole = power + 1;
    if (n <= whole)
        return (size_t)snprintf(out, 40, "%s%s%.*s.0", sign, digits, whole - n, "0000000000000000");
    return (size_t)snprintf(out, 40, "%s%.*s.%s", sign, whole, digits, digits + whole);
}

/* ---- repr ------------------------------------------------------------------------------------ */

static bool is_printable(uint32_t c)
{
    if (c < 0x80) return c >= 0x20 && c != 0x7f;
    return !ctn__is_control(c) && !ctn__t_is_space(c);
}

static ctn_status put_character(ctn__trun *r, ctn__tout *out, const char *p, size_t n, uint32_t c,
                                char quote)
{
    char text[16];
    if (c == '\n') return put(r, out, "\\n");
    if (c == '\r') return put(r, out, "\\r");
    if (c == '\t') return put(r, out, "\\t");
    if (c == (unsigned char)quote || c == '\\') CTN_TRY(put(r, out, "\\"));
    if (is_printable(c)) return ctn__t_put(r, out, p, n);
    snprintf(text, sizeof text,
             c < 0x100     ? "\\x%02x"
             : c < 0x10000 ? "\\u%04x"
                           : "\\U%08x",
             (unsigned)c);
    return put(r, out, text);
}

static ctn_status put_quoted(ctn__trun *r, ctn__tout *out, const ctn__tvalue *v)
{
    const bool twice = v->n && memchr(v->s, '\'', v->n) && !memchr(v->s, '"', v->n);
    const char quote = twice ? '"' : '\'';
    CTN_TRY(ctn__t_put(r, out, &quote, 1));
    for (const char *p = v->s, *end = p + v->n; p < end;) {
        uint32_t c = 0;
        const size_t n = ctn__utf8_get(p, end, &c);
        CTN_TRY(put_character(r, out, p, n, c, quote));
        p += n;
    }
    CTN_TRY(ctn__t_work(r, v->n / 4));
    return ctn__t_put(r, out, &quote, 1);
}

static ctn_status put_repr(ctn__trun *r, ctn__tout *out, const ctn__tvalue *v);

static ctn_status put_elements(ctn__trun *r, ctn__tout *out, const ctn__tvalue *v)
{
    const bool tuple = v->kind == CTN__T_TUPLE;
    CTN_TRY(put(r, out, tuple ? "(" : "["));
    for (size_t i = 0; i < v->n; i++) {
        if (i) CTN_TRY(put(r, out, ", "));
        CTN_TRY(put_repr(r, out, &v->list[i]));
    }
    return put(r, out, !tuple ? "]" : v->n == 1 ? ",)" : ")");
}

static ctn_status put_pairs(ctn__trun *r, ctn__tout *out, const ctn__tvalue *v)
{
    CTN_TRY(put(r, out, "{"));
    for (size_t i = 0; i < v->n; i++) {
        if (i) CTN_TRY(put(r, out, ", "));
        CTN_TRY(put_repr(r, out, &v->dict[i].key));
        CTN_TRY(put(r, out, ": "));
        CTN_TRY(put_repr(r, out, &v->dict[i].value));
    }
    return put(r, out, "}");
}

static ctn_status put_repr(ctn__trun *r, ctn__tout *out, const ctn__tvalue *v)
{
    CTN_TRY(ctn__t_enter(r));
    if (v->kind == CTN__T_TEXT) CTN_TRY(put_quoted(r, out, v));
    else if (v->kind == CTN__T_UNDEFINED) CTN_TRY(put(r, out, "Undefined"));
    else if (ctn__t_is_list(v)) CTN_TRY(put_elements(r, out, v));
    else if (v->kind == CTN__T_DICT) CTN_TRY(put_pairs(r, out, v));
    else CTN_TRY(ctn__t_print(r, out, v));
    r->depth--;
    return CTN_OK;
}

ctn_status ctn__t_print(ctn__trun *r, ctn__tout *out, const ctn__tvalue *v)
{
    char text[40];
    switch (v->kind) {
    case CTN__T_ABSENT:
    case CTN__T_UNDEFINED: return CTN_OK;
    case CTN__T_NONE: return put(r, out, "None");
    case CTN__T_BOOL: return put(r, out, v->i ? "True" : "False");
    case CTN__T_INT: snprintf(text, sizeof text, "%lld", (long long)v->i); return put(r, out, text);
    case CTN__T_REAL: return ctn__t_put(r, out, text, ctn__t_print_real(v->x, text));
    case CTN__T_TEXT: return ctn__t_put(r, out, v->s, v->n);
    case CTN__T_LIST:
    case CTN__T_TUPLE:
    case CTN__T_DICT: return put_repr(r, out, v);
    default:
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "cannot print a value of type %s", ctn__t_type(v));
    }
}

/* ---- texts of the run ------------------------------------------------------------------------ */

ctn_status ctn__t_keep(ctn__trun *r, ctn_status st, ctn__tout *out, ctn__tvalue *text)
{
    char *s = st == CTN_OK ? ctn__t_take(r, out->n) : NULL;
    if (s && out->n) memcpy(s, out->at, out->n);
    if (st == CTN_OK && !s) st = r->status;
    *text = ctn__t_text(s, out->n);
    ctn__vec_free(out);
    return st;
}

ctn_status ctn__t_str(ctn__trun *r, const ctn__tvalue *v, ctn__tvalue *text)
{
    ctn__tout out = {0};
    *text = *v;
    if (v->kind == CTN__T_TEXT) return CTN_OK;
    return ctn__t_keep(r, ctn__t_print(r, &out, v), &out, text);
}
