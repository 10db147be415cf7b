/* SPDX-License-Identifier: Apache-2.0
 *
 * Hostile files out of valid ones: numbers, words and blocks are changed, and then what a reader
 * compares first, such as the length of a header or a checksum, is made right again, so that the
 * change is not refused at once. The format is known from the bytes.
 */
#include "fuzz.h"

#include <ctype.h>

uint64_t fuzz_draw(fuzz_random *r, uint64_t n)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u; /* SplitMix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return n ? z % n : 0;
}

uint64_t fuzz_number(fuzz_random *r, uint64_t old)
{
    static const uint64_t numbers[] = {
        0,          1,
        2,          3,
        7,          8,
        9,          127,
        128,        255,
        256,        1000,
        32767,      65535,
        1u << 20,   INT32_MAX,
        1u << 31,   UINT32_MAX,
        1ull << 32, 1ull << 40,
        1ull << 60, 1ull << 61,
        1ull << 62, INT64_MAX,
        1ull << 63, 1ull << 63 | 1,
        UINT64_MAX, UINT64_MAX - 1,
    };
    enum { NUMBERS = sizeof numbers / sizeof *numbers };
    const uint64_t k = fuzz_draw(r, NUMBERS + 10);
    if (k < NUMBERS) return numbers[k];
    switch (k - NUMBERS) {
    case 0: return old + 1;
    case 1: return old - 1;
    case 2: return -old;
    case 3: return old * 2;
    case 4: return old + (1ull << 32);
    case 5: return UINT64_MAX - fuzz_draw(r, 9);
    default: return fuzz_draw(r, 20);
    }
}

bool fuzz_splice(fuzz_doc *d, size_t from, size_t to, const void *with, size_t n)
{
    const size_t rest = d->bytes - to;
    if (from + n + rest > d->room) return false;
    memmove(d->data + from + n, d->data + to, rest);
    if (n) memcpy(d->data + from, with, n);
    d->bytes = from + n + rest;
    return true;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool is_word(int c)
{
    return isalnum(c) || c == '_' || c == '.' || c == '-' || c == '+';
}

static bool is_digit(int c)
{
    return isdigit(c);
}

/* A run of characters of a kind near a random place of [from, to); false: there is none. */
static bool find_run(fuzz_doc *d, bool (*kind)(int), size_t from, size_t to, size_t *begin,
                     size_t *end)
{
    const size_t n = to - from, start = from + (size_t)fuzz_draw(&d->random, n);
    size_t at = start;
    for (size_t i = 0; i < n && !kind(d->data[at]); i++) at = at + 1 < to ? at + 1 : from;
    if (n == 0 || !kind(d->data[at])) return false;
    for (*begin = at; *begin > from && kind(d->data[*begin - 1]);) --*begin;
    for (*end = at; *end < to && kind(d->data[*end]);) ++*end;
    return true;
}

static void change_number(fuzz_doc *d, size_t from, size_t to)
{
    static const char *const texts[] = {"-1",  "1e308",  "1e999",  "-0",
                                        "nan", "inf",    "-inf",   "",
                                        "1e9", "1e-320", "0x10",   "007",
                                        "1.5", "null",   "1e-999", "18446744073709551616"};
    char text[512];
    size_t begin, end;
    uint64_t old = 0;
    if (!find_run(d, is_digit, from, to, &begin, &end)) return;
    for (size_t i = begin; i < end; i++) old = old * 10 + (uint64_t)(d->data[i] - '0');
    const uint64_t how = fuzz_draw(&d->random, 16), number = fuzz_number(&d->random, old);
    if (how == 0) snprintf(text, sizeof text, "%0400d", 9);
    else if (how < 6)
        snprintf(text, sizeof text, "%s",
                 texts[fuzz_draw(&d->random, sizeof texts / sizeof *texts)]);
    else snprintf(text, sizeof text, how < 11 ? "%lld" : "%llu", (long long)number);
    fuzz_splice(d, begin, end, text, strlen(text));
}

/* A word becomes another one of this file or of the other. */
static void change_word(fuzz_doc *d, size_t from, size_t to)
{
    fuzz_doc other = *d;
    uint8_t word[256];
    size_t begin, end, b, e;
    if (d->other_bytes && fuzz_draw(&d->random, 2)) {
        other.data = malloc(d->other_bytes);
        if (!other.data) return;
        memcpy(other.data, d->other, d->other_bytes);
        other.bytes = d->other_bytes;
    }
    const bool same = other.data == d->data;
    other.random.state = fuzz_draw(&d->random, 0) + d->random.state;
    if (find_run(&other, is_word, same ? from : 0, same ? to : other.bytes, &b, &e) &&
        e - b < sizeof word) {
        memcpy(word, other.data + b, e - b);
        if (find_run(d, is_word, from, to, &begin, &end)) fuzz_splice(d, begin, end, word, e - b);
    }
    if (!same) free(other.data);
}

/* Copies, moves or removes what is between two separators. */
static void change_block(fuzz_doc *d, size_t from, size_t to)
{
    static const char separators[] = "\n,{[ \t:;\"";
    const int c = separators[fuzz_draw(&d->random, sizeof separators - 1)];
    const size_t start = from + (size_t)fuzz_draw(&d->random, to - from);
    uint8_t block[1024];
    const uint8_t *p = memchr(d->data + start, c, to - start);
    if (!p) return;
    const size_t begin = (size_t)(p - d->data);
    const uint8_t *q = memchr(p + 1, c, to - begin - 1);
    const size_t end = q ? (size_t)(q - d->data) : to, n = end - begin;
    if (n > sizeof block) return;
    memcpy(block, d->data + begin, n);
    const uint64_t how = fuzz_draw(&d->random, 3);
    if (how != 0) fuzz_splice(d, begin, end, NULL, 0);
    const size_t now = how ? to - n : to;
    if (how != 1) {
        const size_t at = from + (size_t)fuzz_draw(&d->random, now - from);
        fuzz_splice(d, at, at, block, n);
    }
}

/* Brackets in brackets, and bytes that texts do not have. */
static void insert_text(fuzz_doc *d, size_t from, size_t to)
{
    static const char *const texts[] = {"[",  "{",    "(",    "\"",      "\\",   "{\"a\":", "- ",
                                        "]",  "}",    "\t",   ",",       "\033", "\xff",    "\r",
                                        "\n", "\xc3", "\\u0", "\\ud800", "&a ",  "*a",      "!!"};
    char text[4096] = "";
    const char *s = texts[fuzz_draw(&d->random, sizeof texts / sizeof *texts)];
    const size_t at = from + (size_t)fuzz_draw(&d->random, to - from), n = strlen(s);
    const size_t times = (size_t)fuzz_draw(&d->random, 8) ? 1 : sizeof text / n - 1;
    for (size_t i = 0; i < times; i++) memcpy(text + i * n, s, n);
    fuzz_splice(d, at, at, text, fuzz_draw(&d->random, 16) ? times * n : 1 + n);
}

void fuzz_change_text(fuzz_doc *d, size_t from, size_t to)
{
    if (to <= from) return;
    switch (fuzz_draw(&d->random, 8)) {
    case 0: insert_text(d, from, to); break;
    case 1: change_block(d, from, to); break;
    case 2:
    case 3: change_word(d, from, to); break;
    default: change_number(d, from, to); break;
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static uint64_t get_number(const uint8_t *p, int bytes, bool big)
{
    uint64_t n = 0;
    for (int i = 0; i < bytes; i++) n = n << 8 | p[big ? i : bytes - 1 - i];
    return n;
}

static void put_number(uint8_t *p, int bytes, bool big, uint64_t n)
{
    for (int i = 0; i < bytes; i++) p[big ? bytes - 1 - i : i] = (uint8_t)(n >> 8 * i);
}

/* Copies, moves or removes up to 64 bytes. */
static void move_bytes(fuzz_doc *d)
{
    uint8_t block[64];
    const size_t n = 1 + (size_t)fuzz_draw(&d->random, sizeof block);
    if (n >= d->bytes) return;
    const size_t at = (size_t)fuzz_draw(&d->random, d->bytes - n);
    memcpy(block, d->data + at, n);
    const uint64_t how = fuzz_draw(&d->random, 3);
    if (how != 0) fuzz_splice(d, at, at + n, NULL, 0);
    const size_t to = (size_t)fuzz_draw(&d->random, d->bytes);
    if (how != 1) fuzz_splice(d, to, to, block, n);
}

/* An integer of 1, 2, 4 or 8 bytes; half of them at the start, where headers are. */
static void change_bytes(fuzz_doc *d)
{
    const int width = 1 << fuzz_draw(&d->random, 4);
    const bool big = fuzz_draw(&d->random, 4) == 0;
    if ((size_t)width > d->bytes) return;
    size_t n = d->bytes - (size_t)width + 1;
    if (n > 512 && fuzz_draw(&d->random, 2)) n = 512;
    size_t at = (size_t)fuzz_draw(&d->random, n);
    if (fuzz_draw(&d->random, 2)) at -= at % (size_t)width;
    uint8_t *p = d->data + at;
    put_number(p, width, big, fuzz_number(&d->random, get_number(p, width, big)));
}

static void change_binary(fuzz_doc *d)
{
    const uint64_t how = fuzz_draw(&d->random, 12);
    if (how == 0 && d->bytes > 1) d->bytes = 1 + (size_t)fuzz_draw(&d->random, d->bytes - 1);
    else if (how < 3) move_bytes(d);
    else if (how == 3) fuzz_change_text(d, 0, d->bytes);
    else change_bytes(d);
}

/* ---- what a reader compares first ------------------------------------------------------------ */

/* A text header and its length, a number of `width` bytes in front of it. */
static void change_header(fuzz_doc *d, size_t length_at, int width)
{
    const size_t from = length_at + (size_t)width;
    const uint64_t n = get_number(d->data + length_at, width, false);
    if (d->bytes < from || n > d->bytes - from) return;
    const size_t before = d->bytes;
    fuzz_change_text(d, from, from + (size_t)n);
    put_number(d->data + length_at, width, false, n + (d->bytes - before));
}

static void mend_png(fuzz_doc *d)
{
    for (size_t at = 8; at + 12 <= d->bytes;) {
        const uint64_t n = get_number(d->data + at, 4, true);
        if (n > d->bytes - at - 12) return;
        uint32_t crc = UINT32_MAX;
        for (size_t i = at + 4; i < at + 8 + n; i++) {
            crc ^= d->data[i];
            for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
        put_number(d->data + at + 8 + n, 4, true, ~crc);
        at += 12 + (size_t)n;
    }
}

static void mend_tar(fuzz_doc *d)
{
    enum { BLOCK = 512, SUM = 148 };
    for (size_t at = 0; at + BLOCK <= d->bytes; at += BLOCK) {
        uint8_t *p = d->data + at;
        unsigned sum = 0;
        if (memcmp(p + 257, "ustar", 5) != 0) continue;
        memset(p + SUM, ' ', 8);
        for (int i = 0; i < BLOCK; i++) sum += p[i];
        snprintf((char *)p + SUM, 8, "%06o", sum);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool begins(const fuzz_doc *d, size_t at, const char *with)
{
    const size_t n = strlen(with);
    return d->bytes >= at + n && memcmp(d->data + at, with, n) == 0;
}

static bool is_text(const fuzz_doc *d)
{
    for (size_t i = 0; i < d->bytes && i < 256; i++)
        if (d->data[i] < 32 && !isspace(d->data[i])) return false;
    return true;
}

static void change_once(fuzz_doc *d)
{
    const bool header = fuzz_draw(&d->random, 3) != 0;
    if (is_text(d)) fuzz_change_text(d, 0, d->bytes);
    else if (fuzz_change_onnx(d)) return;
    else if (header && begins(d, 0, "\x93NUMPY\1")) change_header(d, 8, 2);
    else if (header && begins(d, 0, "\x93NUMPY")) change_header(d, 8, 4);
    else if (header && begins(d, 8, "{")) change_header(d, 0, 8);
    else change_binary(d);
    if (begins(d, 0, "\x89PNG")) mend_png(d);
    if (begins(d, 257, "ustar")) mend_tar(d);
}

void fuzz_change(fuzz_doc *d)
{
    const uint64_t times = 1 + fuzz_draw(&d->random, 4);
    for (uint64_t i = 0; i < times && d->bytes > 0; i++) change_once(d);
}
