/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the cells of a table of text as of RFC 4180, and collects distinct texts. The functions
 * keep no state, and threads call them at the same time.
 */
#define _GNU_SOURCE /* strtod_l */
#include "data/csv.h"

#include <strings.h>

/* ---- cells ----------------------------------------------------------------------------------- */

const char *ctn__cell_read(const char *p, const char *end, char separator, ctn__cell *c)
{
    const char *q = p;
    *c = (ctn__cell){.p = p};
    if (q < end && *q == '"') {
        c->quoted = true;
        c->p = ++q;
        while ((q = memchr(q, '"', (size_t)(end - q))) && q + 1 < end && q[1] == '"') q += 2;
        c->bad = q == NULL;
        if (!q) q = end;
        c->n = (size_t)(q - c->p);
        if (q < end) q++;
        for (; q < end && *q != separator && *q != '\n'; q++)
            if (*q != ' ' && *q != '\r') c->bad = true;
        return q;
    }
    while (q < end && *q != separator && *q != '\n') q++;
    c->n = (size_t)(q - p);
    if (c->n > 0 && (q == end || *q == '\n') && q[-1] == '\r') c->n--;
    while (c->n > 0 && (c->p[0] == ' ' || c->p[0] == '\t')) c->p++, c->n--;
    while (c->n > 0 && (c->p[c->n - 1] == ' ' || c->p[c->n - 1] == '\t')) c->n--;
    return q;
}

bool ctn__cell_missing(const ctn__cell *c)
{
    static const char *const word[] = {"na", "n/a", "nan", "null", "?"};
    if (c->n == 0) return true;
    for (size_t i = 0; i < sizeof word / sizeof *word && c->n <= 4; i++)
        if (strlen(word[i]) == c->n && strncasecmp(c->p, word[i], c->n) == 0) return true;
    return false;
}

char *ctn__cell_text(const ctn__cell *c)
{
    char *to = ctn__malloc(c->n + 1);
    size_t n = 0;
    for (size_t i = 0; to && i < c->n; i++) {
        to[n++] = c->p[i];
        if (c->quoted && c->p[i] == '"' && i + 1 < c->n) i++;
    }
    if (to) to[n] = 0;
    return to;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* An optional sign, digits with an optional point, and an optional exponent. A mantissa below 2^53
 * and a power of ten up to 22 are exact, so their product or quotient is rounded correctly. The
 * C library does the rest; it stops at the end of the cell, whose next character is not part of any
 * number. */
bool ctn__cell_number(const ctn__cell *c, locale_t locale, double *out)
{
    static const double ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { MOST_DIGITS = 19, MOST_TEN = 22, MOST_EXPONENT = 100000 };
    const char *p = c->p, *end = c->p + c->n;
    const bool negative = p < end && *p == '-';
    uint64_t mantissa = 0;
    int64_t digits = 0, kept = 0, exponent = 0, given = 0;
    bool point = false;
    if (p < end && (*p == '-' || *p == '+')) p++;
    for (; p < end && (is_digit(*p) || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        digits++;
        exponent -= point;
        kept += mantissa > 0 || *p != '0';
        if (kept <= MOST_DIGITS) mantissa = 10 * mantissa + (uint64_t)(*p - '0');
    }
    if (digits == 0) return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        const bool down = ++p < end && *p == '-';
        if (p < end && (*p == '-' || *p == '+')) p++;
        if (p == end) return false;
        for (; p < end && is_digit(*p); p++)
            if (given < MOST_EXPONENT) given = 10 * given + (*p - '0');
        exponent += down ? -given : given;
    }
    if (p != end) return false;
    if (kept <= MOST_DIGITS && mantissa >> 53 == 0 && exponent <= MOST_TEN &&
        exponent >= -MOST_TEN) {
        const double m = (double)mantissa,
                     v = exponent < 0 ? m / ten[-exponent] : m * ten[exponent];
        *out = negative ? -v : v;
    } else {
        *out = strtod_l(c->p, NULL, locale);
    }
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool same_text(const ctn__cell *a, const ctn__cell *b)
{
    return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
}

/* The slot of a text, or the free one where it belongs. */
static int64_t *slot_of(const ctn__cell_set *s, const ctn__cell *c)
{
    size_t at = (size_t)ctn__table_hash(c->p, c->n) & (s->slots - 1);
    while (s->slot[at] && !same_text(&s->texts.at[s->slot[at] - 1].c, c))
        at = (at + 1) & (s->slots - 1);
    return &s->slot[at];
}

static ctn_status set_grow(ctn__cell_set *s)
{
    enum { FEW = 64 };
    const size_t slots = s->slots ? 2 * s->slots : FEW;
    int64_t *slot = ctn__calloc(slots, sizeof *slot);
    if (!slot) return CTN_ENOMEM;
    ctn__free(s->slot);
    s->slot = slot;
    s->slots = slots;
    for (size_t i = 0; i < s->texts.n; i++) *slot_of(s, &s->texts.at[i].c) = (int64_t)i + 1;
    return CTN_OK;
}

ctn_status ctn__cell_set_id(ctn__cell_set *s, const ctn__cell *c, int64_t *id)
{
    if (2 * (s->texts.n + 1) > s->slots) CTN_TRY(set_grow(s));
    int64_t *slot = slot_of(s, c);
    if (*slot == 0) {
        const ctn__cell_value v = {.c = *c, .id = (int64_t)s->texts.n};
        if (!ctn__vec_push(&s->texts, v)) return CTN_ENOMEM;
        *slot = (int64_t)s->texts.n;
    }
    *id = *slot - 1;
    return CTN_OK;
}

static int by_text(const void *a, const void *b)
{
    const ctn__cell_value *x = a, *y = b;
    const size_t n = x->c.n < y->c.n ? x->c.n : y->c.n;
    const int order = memcmp(x->c.p, y->c.p, n);
    return order ? order : (x->c.n > y->c.n) - (x->c.n < y->c.n);
}

void ctn__cell_set_sort(ctn__cell_set *s)
{
    if (s->texts.n > 1) qsort(s->texts.at, s->texts.n, sizeof *s->texts.at, by_text);
}

void ctn__cell_set_free(ctn__cell_set *s)
{
    ctn__free(s->slot);
    ctn__vec_free(&s->texts);
    *s = (ctn__cell_set){0};
}
