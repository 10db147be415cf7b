/* SPDX-License-Identifier: Apache-2.0
 *
 * Operations on text that the filters and methods of chat templates share. Upper and lower case are
 * those of single characters: a character whose upper case is two characters is refused.
 */
#include "data/text/template.h"

bool ctn__t_is_space(uint32_t c)
{
    return ctn__is_space(c) || (c >= 0x1c && c <= 0x1f);
}

const char *ctn__t_search(const char *s, size_t n, const char *what, size_t bytes)
{
    if (bytes == 0) return s;
    for (const char *p = s, *end = s + n; (size_t)(end - p) >= bytes; p++) {
        p = memchr(p, *what, (size_t)(end - p) - bytes + 1);
        if (!p) return NULL;
        if (memcmp(p, what, bytes) == 0) return p;
    }
    return NULL;
}

static ctn_status need_text(ctn__trun *r, const ctn__tvalue *v)
{
    if (v->kind == CTN__T_TEXT) return CTN_OK;
    return ctn__t_fail(r, CTN_EFORMAT, "expected a text, found a value of type %s", ctn__t_type(v));
}

/* ---- strip ----------------------------------------------------------------------------------- */

static bool is_stripped(const char *p, size_t n, uint32_t c, const ctn__tvalue *chars)
{
    if (chars->kind != CTN__T_TEXT) return ctn__t_is_space(c);
    return ctn__t_search(chars->s, chars->n, p, n) != NULL;
}

/* Where the last character before `end` begins. */
static const char *last_character(const char *begin, const char *end)
{
    const char *q = end - 1;
    while (q > begin && ((unsigned char)*q & 0xC0) == 0x80) q--;
    return q;
}

ctn_status ctn__t_strip(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *chars, int side,
                        ctn__tvalue *out)
{
    const bool given = chars->kind != CTN__T_ABSENT && chars->kind != CTN__T_NONE;
    if (given) CTN_TRY(need_text(r, chars));
    const char *p = text->s, *end = text->s + text->n;
    uint32_t c = 0;
    while (side & 1 && p < end) {
        const size_t n = ctn__utf8_get(p, end, &c);
        if (!is_stripped(p, n, c, chars)) break;
        p += n;
    }
    while (side & 2 && end > p) {
        const char *q = last_character(p, end);
        const size_t n = ctn__utf8_get(q, end, &c);
        if (!is_stripped(q, n, c, chars)) break;
        end = q;
    }
    const size_t left = (size_t)(end - p), gone = text->n - left;
    *out = ctn__t_text(p, left);
    return ctn__t_work(r, gone * (given ? chars->n / 64 + 1 : 1) / 8);
}

/* ---- replace, split, join -------------------------------------------------------------------- */

/* The costs of a search that compares much. */
static ctn_status search_work(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *what)
{
    return ctn__t_work(r, text->n / 16 * (what->n / 64 + 1));
}

/* An empty text is found before each character and at the end. */
static ctn_status replace_empty(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *with,
                                int64_t most, ctn__tout *out)
{
    const char *p = text->s, *end = p + text->n;
    for (int64_t i = 0; i < most; i++) {
        uint32_t c = 0;
        CTN_TRY(ctn__t_work(r, 1));
        CTN_TRY(ctn__t_put(r, out, with->s, with->n));
        if (p == end) return CTN_OK;
        const size_t n = ctn__utf8_get(p, end, &c);
        CTN_TRY(ctn__t_put(r, out, p, n));
        p += n;
    }
    return ctn__t_put(r, out, p, (size_t)(end - p));
}

static ctn_status replace_all(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *old,
                              const ctn__tvalue *with, int64_t most, ctn__tout *out)
{
    const char *p = text->s, *end = p + text->n;
    if (old->n == 0) return replace_empty(r, text, with, most, out);
    CTN_TRY(search_work(r, text, old));
    for (int64_t i = 0; i < most; i++) {
        const char *at = ctn__t_search(p, (size_t)(end - p), old->s, old->n);
        if (!at) break;
        CTN_TRY(ctn__t_put(r, out, p, (size_t)(at - p)));
        CTN_TRY(ctn__t_put(r, out, with->s, with->n));
        CTN_TRY(ctn__t_work(r, 1));
        p = at + old->n;
    }
    return ctn__t_put(r, out, p, (size_t)(end - p));
}

ctn_status ctn__t_replace(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *old,
                          const ctn__tvalue *with, int64_t most, ctn__tvalue *to)
{
    ctn__tout out = {0};
    CTN_TRY(need_text(r, old));
    CTN_TRY(need_text(r, with));
    if (most < 0) most = INT64_MAX;
    return ctn__t_keep(r, replace_all(r, text, old, with, most, &out), &out, to);
}

/* The next part of a text from *p on; false: it was the last one. */
static bool next_part(const ctn__tvalue *by, const char **p, const char *end, bool cut,
                      ctn__tvalue *part)
{
    const char *at = cut ? ctn__t_search(*p, (size_t)(end - *p), by->s, by->n) : NULL;
    *part = ctn__t_text(*p, (size_t)((at ? at : end) - *p));
    if (at) *p = at + by->n;
    return at != NULL;
}

static const char *skip_spaces(const char *p, const char *end, bool spaces)
{
    while (p < end) {
        uint32_t c = 0;
        const size_t n = ctn__utf8_get(p, end, &c);
        if (ctn__t_is_space(c) != spaces) break;
        p += n;
    }
    return p;
}

typedef CTN__VEC(ctn__tvalue) values;

static ctn_status add_part(ctn__trun *r, values *parts, const ctn__tvalue *part)
{
    CTN_TRY(ctn__t_work(r, 8));
    return ctn__vec_push(parts, *part) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status split_words(ctn__trun *r, const ctn__tvalue *text, int64_t most, values *parts)
{
    const char *p = text->s, *end = p + text->n;
    for (int64_t i = 0;; i++) {
        p = skip_spaces(p, end, true);
        if (p == end) return CTN_OK;
        const char *stop = skip_spaces(p, end, false);
        ctn__tvalue part = ctn__t_text(p, (size_t)((i < most ? stop : end) - p));
        CTN_TRY(add_part(r, parts, &part));
        if (i == most) return CTN_OK;
        p = stop;
    }
}

static ctn_status split_by(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *by,
                           int64_t most, values *parts)
{
    const char *p = text->s, *end = p + text->n;
    bool more = true;
    for (int64_t i = 0; more; i++) {
        ctn__tvalue part = {0};
        more = next_part(by, &p, end, i < most, &part);
        CTN_TRY(add_part(r, parts, &part));
    }
    return CTN_OK;
}

ctn_status ctn__t_split(ctn__trun *r, const ctn__tvalue *text, const ctn__tvalue *by, int64_t most,
                        ctn__tvalue *out)
{
    values parts = {0};
    const bool words = by->kind == CTN__T_ABSENT || by->kind == CTN__T_NONE;
    if (!words) CTN_TRY(need_text(r, by));
    if (!words && by->n == 0) return ctn__t_fail(r, CTN_EFORMAT, "split with an empty separator");
    if (!words) CTN_TRY(search_work(r, text, by));
    if (most < 0) most = INT64_MAX;
    ctn_status st =
        words ? split_words(r, text, most, &parts) : split_by(r, text, by, most, &parts);
    ctn__tvalue *at = st == CTN_OK ? ctn__t_take(r, parts.n * sizeof *at) : NULL;
    if (st == CTN_OK && !at) st = r->status;
    if (at && parts.n) memcpy(at, parts.at, parts.n * sizeof *at);
    *out = (ctn__tvalue){.kind = CTN__T_LIST, .n = parts.n, .list = at};
    if (st == CTN_OK) st = ctn__t_work(r, text->n / 16 + parts.n);
    ctn__vec_free(&parts);
    return st;
}

ctn_status ctn__t_join(ctn__trun *r, const ctn__tvalue *by, const ctn__tvalue *list,
                       ctn__tvalue *to)
{
    ctn__tout out = {0};
    ctn_status st = CTN_OK;
    for (size_t i = 0; st == CTN_OK && i < list->n; i++) {
        if (i) st = ctn__t_print(r, &out, by);
        if (st == CTN_OK) st = ctn__t_print(r, &out, &list->list[i]);
        if (st == CTN_OK) st = ctn__t_work(r, 1);
    }
    return ctn__t_keep(r, st, &out, to);
}

/* ---- upper and lower case -------------------------------------------------------------------- */

static bool is_cased(uint32_t c)
{
    return ctn__upper(c) != c || ctn__lower(c) != c;
}

/* After such a character, the filter title begins a word. */
static bool begins_word(uint32_t c)
{
    return ctn__t_is_space(c) || (c && c < 128 && strchr("-({[<", (int)c));
}

/* Characters whose other case is not one character, or depends on the place. */
static bool is_odd(uint32_t c, bool upper)
{
    if (!upper) return c == 0x130 || c == 0x3A3;
    return c == 0xDF || c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 || c == 0x587 ||
           (c >= 0x1C4 && c <= 0x1CC) || (c >= 0x1F1 && c <= 0x1F3) ||
           (c >= 0x1E96 && c <= 0x1E9A) || (c >= 0x1F50 && c <= 0x1FFC) ||
           (c >= 0xFB00 && c <= 0xFB17);
}

static bool wants_upper(ctn__tcase to, bool first, bool inside)
{
    if (to == CTN__T_CAPITAL) return first;
    if (to == CTN__T_TITLE || to == CTN__T_WORDS) return !inside;
    return to == CTN__T_UPPER;
}

static ctn_status change_case(ctn__trun *r, const ctn__tvalue *text, ctn__tcase to, ctn__tout *out)
{
    bool inside = false; /* of a word */
    for (const char *p = text->s, *end = p + text->n; p < end;) {
        char put[4];
        uint32_t c = 0;
        const bool first = p == text->s;
        p += ctn__utf8_get(p, end, &c);
        const bool upper = wants_upper(to, first, inside);
        if (is_odd(c, upper))
            return ctn__t_fail(r, CTN_EUNSUPPORTED,
                               "upper and lower case of the character U+%04X "
                               "are not supported",
                               (unsigned)c);
        inside = to == CTN__T_WORDS ? !begins_word(c) : is_cased(c);
        CTN_TRY(ctn__t_put(r, out, put, ctn__utf8_put(upper ? ctn__upper(c) : ctn__lower(c), put)));
    }
    return ctn__t_work(r, text->n / 4);
}

ctn_status ctn__t_case(ctn__trun *r, const ctn__tvalue *text, ctn__tcase to, ctn__tvalue *result)
{
    ctn__tout out = {0};
    return ctn__t_keep(r, change_case(r, text, to, &out), &out, result);
}

/* ---- reverse --------------------------------------------------------------------------------- */

static ctn_status reverse_text(ctn__trun *r, const ctn__tvalue *v, ctn__tout *out)
{
    for (const char *end = v->s + v->n; end > v->s;) {
        const char *q = last_character(v->s, end);
        CTN_TRY(ctn__t_put(r, out, q, (size_t)(end - q)));
        end = q;
    }
    return ctn__t_work(r, v->n / 4);
}

ctn_status ctn__t_reverse(ctn__trun *r, const ctn__tvalue *v, ctn__tvalue *result)
{
    ctn__tout out = {0};
    if (v->kind == CTN__T_TEXT) return ctn__t_keep(r, reverse_text(r, v, &out), &out, result);
    ctn__tvalue list = {0};
    CTN_TRY(ctn__t_items(r, v, &list));
    ctn__tvalue *at = ctn__t_take(r, list.n * sizeof *at);
    if (!at) return r->status;
    for (size_t i = 0; i < list.n; i++) at[i] = list.list[list.n - 1 - i];
    *result = (ctn__tvalue){.kind = CTN__T_LIST, .n = list.n, .list = at};
    return ctn__t_work(r, list.n / 4);
}
