/* SPDX-License-Identifier: Apache-2.0
 *
 * A growing text buffer, used to print plans and tensors; text from outside made
 * safe for terminals; and shell patterns.
 *
 * Invariant: after a failed allocation the text keeps its contents, still 0-terminated, and ignores
 * further additions, so a writer needs to check `failed` only once, at the end.
 */
#include "base/base.h"

#include <stdarg.h>

void ctn__text_add(ctn__text *t, const char *fmt, ...)
{
    if (t->failed) return;
    size_t room = t->cap - t->n;
    va_list args;
    va_start(args, fmt);
    int k = vsnprintf(t->s != NULL ? t->s + t->n : NULL, room, fmt, args);
    va_end(args);
    if (k >= 0 && (size_t)k >= room) {
        size_t cap = t->cap < 64 ? 128 : ctn__mul(t->cap, 2);
        if (cap < t->n + (size_t)k + 1) cap = t->n + (size_t)k + 1;
        char *s = ctn__grow(t->s, t->n, cap);
        if (s == NULL) {
            k = -1;
        } else {
            t->s = s;
            t->cap = cap;
            va_start(args, fmt);
            k = vsnprintf(t->s + t->n, cap - t->n, fmt, args);
            va_end(args);
        }
    }
    if (k < 0) {
        t->failed = true;
        if (t->s != NULL) t->s[t->n] = 0;
        return;
    }
    t->n += (size_t)k;
}

void ctn__text_free(ctn__text *t)
{
    ctn__free(t->s);
    memset(t, 0, sizeof *t);
}

int ctn__character(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7f;
    int n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;
    unsigned long code = n > 0 ? s[0] & (0x7fu >> n) : 0;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (s[i] & 0x3f);
    }
    static const unsigned long least[] = {0, 0, 0xa0, 0x800, 0x10000}; /* no C1 controls */
    bool fits = n > 0 && s[0] < 0xf8 && code >= least[n] && code <= 0x10ffff;
    return fits && (code & 0xfffe) != 0xfffe && (code < 0xd800 || code > 0xdfff) ? n : 0;
}

void ctn__text_clean(char *s)
{
    while (*s != 0) {
        const int n = ctn__character(s);
        if (n == 0 && *s != '\n' && *s != '\t') *s = '?';
        s += n > 0 ? n : 1;
    }
}

void ctn__text_join(const char *fmt, char *s)
{
    if (strchr(fmt, '\n') != NULL || strcmp(fmt, "%s") == 0) return;
    for (char *p = s; (p = strchr(p, '\n')) != NULL; p++)
        if (strncmp(p, "\n  at ", 6) != 0) *p = ' ';
}

bool ctn__match(const char *pattern, const char *s)
{
    /* On a mismatch the last * takes one more character. Earlier ones never need to. */
    const char *star = NULL, *from = NULL;
    while (*s != 0) {
        if (*pattern == '*') {
            star = pattern++;
            from = s;
        } else if (*pattern == '?' || *pattern == *s) {
            pattern++;
            s++;
        } else if (star != NULL) {
            pattern = star + 1;
            s = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return *pattern == 0;
}

bool ctn__match_below(const char *pattern, const char *name)
{
    char part[512];
    if (ctn__match(pattern, name)) return true;
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        const size_t n = (size_t)(dot - name);
        if (n >= sizeof part) return false;
        memcpy(part, name, n);
        part[n] = 0;
        if (ctn__match(pattern, part)) return true;
    }
    return false;
}
