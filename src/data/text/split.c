/* SPDX-License-Identifier: Apache-2.0
 *
 * The patterns that cut text into words before BPE, each written as a scanner:
 *
 *   GPT-2    's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *   Llama 3  (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
 *            ` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+` (in one line)
 *   Qwen 2   as Llama 3 with \p{N} instead of \p{N}{1,3}
 *
 * Every character belongs to exactly one word. The time is linear in the length of the text.
 */
#include "data/text/text.h"

/* Bytes of the characters of kind k at the start of the text. */
static size_t run_of(ctn__kind k, const char *start, const char *end)
{
    const char *p = start;
    for (size_t n; p < end; p += n)
        if (ctn__kind_at(p, end, &n) != k) break;
    return (size_t)(p - start);
}

static size_t contraction(const char *p, const char *end, bool any_case)
{
    static const char *const tails[] = {"s", "t", "re", "ve", "m", "ll", "d"};
    const size_t room = (size_t)(end - p);
    const char fold = any_case ? 0x20 : 0;
    if (*p != '\'') return 0;
    for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
        const size_t n = strlen(tails[i]);
        size_t k = 0;
        while (k < n && 1 + k < room && (p[1 + k] | fold) == tails[i][k]) k++;
        if (k == n) return 1 + n;
    }
    /* U+017F is a lower-case s too if case is ignored. */
    return any_case && room > 2 && memcmp(p + 1, "\xC5\xBF", 2) == 0 ? 3 : 0;
}

/* \s+(?!\S)|\s+: leaves the last one of several white-space characters to the next word. */
static size_t white_space(const char *start, const char *end)
{
    const char *p = start, *last = start;
    for (size_t n; p < end && ctn__kind_at(p, end, &n) == CTN__SPACE; p += n) last = p;
    return (size_t)((p == end || last == start ? p : last) - start);
}

static size_t gpt2_word(const char *p, const char *end)
{
    size_t n = contraction(p, end, false);
    if (n) return n;
    ctn__kind k = ctn__kind_at(p, end, &n);
    if (k != CTN__SPACE) return n + run_of(k, p + n, end);
    if (*p != ' ' || p + 1 == end) return white_space(p, end);
    k = ctn__kind_at(p + 1, end, &n);
    if (k == CTN__SPACE) return white_space(p, end);
    return 1 + n + run_of(k, p + 1 + n, end);
}

/* \s*[\r\n]+: white space up to its last line end; 0: it has none. */
static size_t line_ends(const char *start, const char *end)
{
    const char *p = start, *after = start;
    for (size_t n; p < end && ctn__kind_at(p, end, &n) == CTN__SPACE; p += n)
        if (*p == '\r' || *p == '\n') after = p + 1;
    return (size_t)(after - start);
}

static size_t numbers(const char *start, const char *end, int most)
{
    const char *p = start;
    for (size_t n; most > 0 && p < end && ctn__kind_at(p, end, &n) == CTN__NUMBER; most--) p += n;
    return (size_t)(p - start);
}

static size_t llama3_word(const char *start, const char *end, int digits)
{
    const char *p = start;
    size_t n = contraction(p, end, true), m;
    if (n) return n;
    ctn__kind k = ctn__kind_at(p, end, &n);
    if (k == CTN__LETTER) return n + run_of(k, p + n, end);
    if (k == CTN__NUMBER) return numbers(p, end, digits);
    if (*p != '\r' && *p != '\n' && p + n < end && ctn__kind_at(p + n, end, &m) == CTN__LETTER)
        return n + m + run_of(CTN__LETTER, p + n + m, end);
    if (*p == ' ' && p + 1 < end) k = ctn__kind_at(++p, end, &n);
    if (k == CTN__OTHER) {
        p += n + run_of(k, p + n, end);
        while (p < end && (*p == '\r' || *p == '\n')) p++;
        return (size_t)(p - start);
    }
    n = line_ends(start, end);
    return n ? n : white_space(start, end);
}

size_t ctn__split_word(ctn__split s, const char *p, const char *end)
{
    if (s == CTN__SPLIT_GPT2) return gpt2_word(p, end);
    return llama3_word(p, end, s == CTN__SPLIT_LLAMA3 ? 3 : 1);
}
