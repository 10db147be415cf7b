/* SPDX-License-Identifier: Apache-2.0
 *
 * The operators of chat templates, with the rules of Python: integers and floats mix, // and %
 * round down, text and lists are joined by + and repeated by *.
 */
#include <math.h>

#include "data/text/template.h"

static ctn_status too_large(const ctn__trun *r)
{
    return ctn__t_fail(r, CTN_EUNSUPPORTED, "an integer with more than 64 bits");
}

static ctn_status power(const ctn__trun *r, int64_t a, int64_t b, int64_t *out)
{
    *out = 1;
    if (b < 0) return ctn__t_fail(r, CTN_EUNSUPPORTED, "a negative exponent is not supported");
    if (a == 0 || a == 1 || a == -1) {
        *out = b == 0 ? 1 : a == -1 && b % 2 == 0 ? 1 : a;
        return CTN_OK;
    }
    for (; b > 0; b--)
        if (__builtin_mul_overflow(*out, a, out)) return too_large(r);
    return CTN_OK;
}

static ctn_status divide(const ctn__trun *r, ctn__top op, int64_t a, int64_t b, int64_t *out)
{
    if (b == 0) return ctn__t_fail(r, CTN_EFORMAT, "division by zero");
    if (b == -1) {
        *out = 0;
        return op == CTN__TO_FLOOR && __builtin_sub_overflow(0, a, out) ? too_large(r) : CTN_OK;
    }
    const bool down = a % b != 0 && (a < 0) != (b < 0);
    *out = op == CTN__TO_FLOOR ? a / b - down : a % b + (down ? b : 0);
    return CTN_OK;
}

static ctn_status whole(const ctn__trun *r, ctn__top op, int64_t a, int64_t b, int64_t *out)
{
    bool over = false;
    switch (op) {
    case CTN__TO_ADD: over = __builtin_add_overflow(a, b, out); break;
    case CTN__TO_SUBTRACT: over = __builtin_sub_overflow(a, b, out); break;
    case CTN__TO_MULTIPLY: over = __builtin_mul_overflow(a, b, out); break;
    case CTN__TO_POWER: return power(r, a, b, out);
    default: return divide(r, op, a, b, out);
    }
    return over ? too_large(r) : CTN_OK;
}

static ctn_status real(const ctn__trun *r, ctn__top op, double a, double b, double *out)
{
    if (op >= CTN__TO_DIVIDE && op <= CTN__TO_MODULO && b == 0)
        return ctn__t_fail(r, CTN_EFORMAT, "division by zero");
    switch (op) {
    case CTN__TO_ADD: *out = a + b; break;
    case CTN__TO_SUBTRACT: *out = a - b; break;
    case CTN__TO_MULTIPLY: *out = a * b; break;
    case CTN__TO_DIVIDE: *out = a / b; break;
    case CTN__TO_MODULO:
        *out = fmod(a, b);
        if (*out != 0 && (*out < 0) != (b < 0)) *out += b;
        break;
    default: return ctn__t_fail(r, CTN_EUNSUPPORTED, "this operator between floats");
    }
    return CTN_OK;
}

static ctn_status numbers(const ctn__trun *r, ctn__top op, const ctn__tvalue *a,
                          const ctn__tvalue *b, ctn__tvalue *out)
{
    if (op != CTN__TO_DIVIDE && ctn__t_is_whole(a) && ctn__t_is_whole(b)) {
        *out = ctn__t_int(0);
        return whole(r, op, a->i, b->i, &out->i);
    }
    const double x = ctn__t_real(a), y = ctn__t_real(b);
    *out = (ctn__tvalue){.kind = CTN__T_REAL};
    return real(r, op, x, y, &out->x);
}

/* Text or lists, one after the other. */
static ctn_status join(ctn__trun *r, const ctn__tvalue *a, const ctn__tvalue *b, ctn__tvalue *out)
{
    const bool text = a->kind == CTN__T_TEXT;
    const size_t size = text ? 1 : sizeof *a, na = a->n * size, nb = b->n * size;
    if (text && na + nb > CTN__T_OUTPUT)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "a text is longer than %d MB", CTN__T_OUTPUT >> 20);
    char *to = ctn__t_take(r, na + nb);
    if (!to) return r->status;
    if (na) memcpy(to, text ? (const void *)a->s : a->list, na);
    if (nb) memcpy(to + na, text ? (const void *)b->s : b->list, nb);
    const ctn__tkind kind = a->kind;
    *out = (ctn__tvalue){.kind = kind, .n = (na + nb) / size};
    if (text) out->s = to;
    else out->list = (const void *)to;
    return ctn__t_work(r, (na + nb) / 16);
}

static ctn_status repeat(ctn__trun *r, const ctn__tvalue *v, int64_t times, ctn__tvalue *out)
{
    const bool text = v->kind == CTN__T_TEXT;
    const size_t size = (text ? 1 : sizeof *v) * v->n, n = times > 0 ? (size_t)times : 0;
    const size_t most = text ? CTN__T_OUTPUT : CTN__T_MEMORY;
    if (size && n > most / size)
        return ctn__t_fail(r, CTN_EUNSUPPORTED, "a text or list is longer than %zu MB", most >> 20);
    char *to = ctn__t_take(r, size * n);
    if (!to) return r->status;
    for (size_t i = 0; size && i < n; i++)
        memcpy(to + i * size, text ? (const void *)v->s : v->list, size);
    const ctn__tkind kind = v->kind;
    *out = (ctn__tvalue){.kind = kind, .n = v->n * n};
    if (text) out->s = to;
    else out->list = (const void *)to;
    return ctn__t_work(r, size * n / 16 + (size ? n / 4 : 0));
}

static bool is_sequence(const ctn__tvalue *v)
{
    return v->kind == CTN__T_TEXT || ctn__t_is_list(v);
}

ctn_status ctn__t_binary(ctn__trun *r, ctn__top op, const ctn__tvalue *a, const ctn__tvalue *b,
                         ctn__tvalue *out)
{
    if (op == CTN__TO_JOIN) {
        ctn__tvalue x = {0}, y = {0};
        CTN_TRY(ctn__t_str(r, a, &x));
        CTN_TRY(ctn__t_str(r, b, &y));
        return join(r, &x, &y, out);
    }
    if (ctn__t_is_number(a) && ctn__t_is_number(b)) return numbers(r, op, a, b, out);
    if (op == CTN__TO_ADD && is_sequence(a) && a->kind == b->kind) return join(r, a, b, out);
    if (op == CTN__TO_MULTIPLY && is_sequence(a) && ctn__t_is_whole(b))
        return repeat(r, a, b->i, out);
    if (op == CTN__TO_MULTIPLY && is_sequence(b) && ctn__t_is_whole(a))
        return repeat(r, b, a->i, out);
    static const char *const names[] = {"+", "-", "~", "*", "/", "//", "%", "**"};
    for (int i = 0; i < 2; i++) {
        const ctn__tvalue *v = i ? b : a;
        if (v->kind == CTN__T_UNDEFINED)
            return ctn__t_fail(r, CTN_EFORMAT, "'%.*s' is undefined, and '%s' needs a value",
                               v->n < 80 ? (int)v->n : 80, v->s, names[op]);
    }
    return ctn__t_fail(r, op == CTN__TO_MODULO && is_sequence(a) ? CTN_EUNSUPPORTED : CTN_EFORMAT,
                       "'%s' between values of the types %s and %s", names[op], ctn__t_type(a),
                       ctn__t_type(b));
}

/* ---- comparisons ----------------------------------------------------------------------------- */

static ctn_status contains(ctn__trun *r, const ctn__tvalue *v, const ctn__tvalue *what, bool *yes)
{
    const ctn__tvalue *found = NULL;
    ctn__tvalue list = {0};
    *yes = false;
    if (v->kind == CTN__T_EACH) {
        CTN_TRY(ctn__t_items(r, v, &list));
        v = &list;
    }
    if (v->kind == CTN__T_DICT) {
        CTN_TRY(ctn__t_find(r, v->dict, v->n, what, &found));
        *yes = found != NULL;
        return CTN_OK;
    }
    if (v->kind == CTN__T_TEXT) {
        if (what->kind != CTN__T_TEXT)
            return ctn__t_fail(r, CTN_EFORMAT, "'in' looks for a value of type %s in a text",
                               ctn__t_type(what));
        CTN_TRY(ctn__t_work(r, v->n / 16 * (what->n / 64 + 1)));
        *yes = ctn__t_search(v->s, v->n, what->s, what->n) != NULL;
        return CTN_OK;
    }
    if (v->kind == CTN__T_UNDEFINED) return CTN_OK;
    if (!ctn__t_is_list(v))
        return ctn__t_fail(r, CTN_EFORMAT, "'in' looks into a value of type %s", ctn__t_type(v));
    for (size_t i = 0; !*yes && i < v->n; i++) CTN_TRY(ctn__t_equal(r, &v->list[i], what, yes));
    return ctn__t_work(r, v->n / 4);
}

ctn_status ctn__t_compare(ctn__trun *r, ctn__top op, const ctn__tvalue *a, const ctn__tvalue *b,
                          bool *yes)
{
    int order = 0;
    if (op == CTN__TO_EQUAL || op == CTN__TO_UNEQUAL) {
        CTN_TRY(ctn__t_equal(r, a, b, yes));
        *yes = *yes == (op == CTN__TO_EQUAL);
        return CTN_OK;
    }
    if (op == CTN__TO_IN || op == CTN__TO_NOT_IN) {
        CTN_TRY(contains(r, b, a, yes));
        *yes = *yes == (op == CTN__TO_IN);
        return CTN_OK;
    }
    CTN_TRY(ctn__t_order(r, a, b, &order));
    *yes = op == CTN__TO_BELOW     ? order < 0
           : op == CTN__TO_ABOVE   ? order > 0
           : op == CTN__TO_AT_MOST ? order <= 0
                                   : order >= 0;
    return CTN_OK;
}
