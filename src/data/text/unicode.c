/* SPDX-License-Identifier: Apache-2.0
 *
 * Unicode for tokenizers: UTF-8, classes of characters, lower case and normal forms. The tables are
 * those of utf8proc, which is used in this file only. In a build without it, no tokenizer can be
 * opened.
 */
#include "data/text/text.h"

#define O CTN__OTHER
#define L CTN__LETTER
#define N CTN__NUMBER
#define S CTN__SPACE
/* clang-format off */
const uint8_t ctn__ascii_kind[128] = {
    O, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O,
    S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O,
};
/* clang-format on */
#undef O
#undef L
#undef N
#undef S

static bool tail(unsigned char b)
{
    return (b & 0xC0) == 0x80;
}

size_t ctn__utf8_get(const char *text, const char *end, uint32_t *c)
{
    const unsigned char *p = (const unsigned char *)text;
    const size_t n = (size_t)(end - text);
    const uint32_t b = p[0];
    *c = b;
    if (b < 0x80) return 1;
    if (b >= 0xC2 && b < 0xE0 && n > 1 && tail(p[1])) {
        *c = (b & 0x1F) << 6 | (p[1] & 0x3Fu);
        return 2;
    }
    if (b >= 0xE0 && b < 0xF0 && n > 2 && tail(p[1]) && tail(p[2])) {
        *c = (b & 0xF) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
        if (*c >= 0x800 && (*c < 0xD800 || *c > 0xDFFF)) return 3;
    }
    if (b >= 0xF0 && b < 0xF5 && n > 3 && tail(p[1]) && tail(p[2]) && tail(p[3])) {
        *c = (b & 7) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
        if (*c >= 0x10000 && *c <= 0x10FFFF) return 4;
    }
    *c = CTN__BAD_CHAR;
    return 1;
}

size_t ctn__utf8_put(uint32_t c, char *out)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    const unsigned head = n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0;
    out[0] = (char)(unsigned char)(head | c >> 6 * (n - 1));
    for (size_t i = 1; i < n; i++)
        out[i] = (char)(unsigned char)(0x80 | (c >> 6 * (n - 1 - i) & 0x3F));
    return n;
}

bool ctn__is_space(uint32_t c)
{
    if (c < 0x80) return ctn__ascii_kind[c] == CTN__SPACE;
    return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

#ifdef CTN_HAVE_UTF8PROC

#include <utf8proc.h>

ctn_status ctn__unicode_check(void)
{
    return CTN_OK;
}

ctn__kind ctn__kind_of(uint32_t c)
{
    if (ctn__is_space(c)) return CTN__SPACE;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return CTN__LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return CTN__NUMBER;
    default: return CTN__OTHER;
    }
}

bool ctn__is_control(uint32_t c)
{
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

bool ctn__is_mark(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_MN;
}

bool ctn__is_punct(uint32_t c)
{
    if (c < 0x80) return c > 32 && c < 127 && ctn__ascii_kind[c] == CTN__OTHER;
    const utf8proc_category_t k = utf8proc_category((utf8proc_int32_t)c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

uint32_t ctn__lower(uint32_t c)
{
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)c);
}

uint32_t ctn__upper(uint32_t c)
{
    return (uint32_t)utf8proc_toupper((utf8proc_int32_t)c);
}

int ctn__decompose(uint32_t c, uint32_t out[CTN__DECOMPOSED])
{
    utf8proc_int32_t to[CTN__DECOMPOSED];
    int boundary = 0;
    const utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)c, to, CTN__DECOMPOSED,
                                                       UTF8PROC_DECOMPOSE, &boundary);
    if (n < 0 || n > CTN__DECOMPOSED) {
        out[0] = c;
        return 1;
    }
    for (utf8proc_ssize_t i = 0; i < n; i++) out[i] = (uint32_t)to[i];
    return (int)n;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Characters in canonical order: the marks after a starter, which may be any number, are sorted by
 * their combining classes, and those of one class stay in their order. */
typedef struct {
    CTN__VEC(utf8proc_int32_t) c;
    CTN__VEC(uint64_t) marks; /* since the last starter: class, place and character */
} ordered;

enum { CHAR_BITS = 21, PLACE_BITS = 35 };

static bool order_marks(ordered *o)
{
    if (o->marks.n > 1) qsort(o->marks.at, o->marks.n, sizeof *o->marks.at, by_value);
    for (size_t i = 0; i < o->marks.n; i++) {
        const uint64_t c = o->marks.at[i] & (((uint64_t)1 << CHAR_BITS) - 1);
        if (!ctn__vec_push(&o->c, (utf8proc_int32_t)c)) return false;
    }
    o->marks.n = 0;
    return true;
}

static bool add_ordered(ordered *o, uint32_t c)
{
    const uint64_t class = (uint64_t)utf8proc_get_property((utf8proc_int32_t)c)->combining_class;
    const uint64_t place = o->marks.n;
    if (class != 0)
        return ctn__vec_push(&o->marks, class << (PLACE_BITS + CHAR_BITS) | place << CHAR_BITS | c);
    return order_marks(o) && ctn__vec_push(&o->c, (utf8proc_int32_t)c);
}

/* Valid text with characters below U+0300 only is in NFC. */
static bool is_simple(const char *p, const char *end)
{
    while (p < end) {
        uint32_t c = 0;
        p += ctn__utf8_get(p, end, &c);
        if (c >= 0x300) return false;
    }
    return true;
}

ctn_status ctn__nfc(const char *text, size_t bytes, char **out, size_t *n)
{
    ordered o = {0};
    ctn_status st = CTN_OK;
    *out = NULL;
    *n = 0;
    if (is_simple(text, text + bytes)) return CTN_OK;
    for (const char *p = text, *end = text + bytes; p < end;) {
        uint32_t one = 0, part[CTN__DECOMPOSED];
        p += ctn__utf8_get(p, end, &one);
        const int parts = ctn__decompose(one, part);
        for (int i = 0; i < parts; i++)
            if (!add_ordered(&o, part[i])) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    }
    if (!order_marks(&o)) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    const utf8proc_ssize_t k =
        utf8proc_normalize_utf32(o.c.at, (utf8proc_ssize_t)o.c.n,
                                 (utf8proc_option_t)(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    *out = ctn__malloc(4 * o.c.n + 1);
    if (!*out) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    for (utf8proc_ssize_t i = 0; o.c.at && i < k; i++)
        *n += ctn__utf8_put((uint32_t)o.c.at[i], *out + *n);
done:
    ctn__vec_free(&o.c);
    ctn__vec_free(&o.marks);
    return st;
}

#else

ctn_status ctn__unicode_check(void)
{
    return ctn_fail(CTN_EUNSUPPORTED,
                    "tokenizer: Catena was built without utf8proc, which knows the classes of "
                    "characters; install it (Debian: libutf8proc-dev) and rebuild");
}

ctn__kind ctn__kind_of(uint32_t c)
{
    return ctn__is_space(c) ? CTN__SPACE : CTN__OTHER;
}

bool ctn__is_control(uint32_t c)
{
    (void)c;
    return false;
}

bool ctn__is_mark(uint32_t c)
{
    (void)c;
    return false;
}

bool ctn__is_punct(uint32_t c)
{
    (void)c;
    return false;
}

uint32_t ctn__lower(uint32_t c)
{
    return c;
}

uint32_t ctn__upper(uint32_t c)
{
    return c;
}

int ctn__decompose(uint32_t c, uint32_t out[CTN__DECOMPOSED])
{
    out[0] = c;
    return 1;
}

ctn_status ctn__nfc(const char *text, size_t bytes, char **out, size_t *n)
{
    (void)text, (void)bytes;
    *out = NULL;
    *n = 0;
    return CTN_OK;
}

#endif
