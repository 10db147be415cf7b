/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds and reads the files of a tokenizer: tokenizer.json, vocab.json with merges.txt, or
 * vocab.txt. Also translates the alphabet in which byte-level BPE writes bytes as printable
 * characters.
 */
#include <unistd.h>

#include "base/readfile.h"
#include "data/text/text.h"

#define MOST ((size_t)1 << 28) /* bytes of a file */

/* ---- the alphabet of byte-level BPE ---------------------------------------------------------- */

/* Printable bytes of Latin-1 are written as themselves; the others, in ascending order, as the
 * characters from U+0100. */
static bool is_printable(uint32_t b)
{
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || (b >= 174 && b <= 255);
}

static int byte_of(uint32_t c)
{
    if (c < 256) return is_printable(c) ? (int)c : -1;
    for (uint32_t b = 0, at = 256; b < 256; b++)
        if (!is_printable(b) && at++ == c) return (int)b;
    return -1;
}

/* The bytes of a token; returns their number, or SIZE_MAX if it has other characters. */
static size_t to_bytes(const char *text, size_t n, char *out)
{
    size_t k = 0;
    for (const char *p = text, *end = text + n; p < end;) {
        uint32_t c = 0;
        p += ctn__utf8_get(p, end, &c);
        const int b = byte_of(c);
        if (b < 0) return SIZE_MAX;
        out[k++] = (char)(unsigned char)b;
    }
    return k;
}

ctn_status ctn__bpe_token(ctn_tokenizer *t, int64_t id, const char *text, size_t n)
{
    char *bytes = ctn__malloc(n + 1);
    if (!bytes) return CTN_ENOMEM;
    const size_t k = to_bytes(text, n, bytes);
    /* A token with other characters, which no text leads to, stands for itself. */
    ctn_status st = k == SIZE_MAX ? ctn__vocab_add(&t->vocab, id, text, n, false)
                                  : ctn__vocab_add(&t->vocab, id, bytes, k, true);
    ctn__free(bytes);
    return st;
}

ctn_status ctn__bpe_line(ctn_tokenizer *t, uint32_t rank, const char *line, size_t n)
{
    const char *space = memchr(line, ' ', n);
    const size_t left = space ? (size_t)(space - line) : 0, right = n - left - 1;
    char *bytes = ctn__malloc(n + 1);
    if (!bytes) return CTN_ENOMEM;
    const size_t a = space ? to_bytes(line, left, bytes) : SIZE_MAX;
    const size_t b = a != SIZE_MAX ? to_bytes(space + 1, right, bytes + a) : SIZE_MAX;
    ctn_status st =
        b == SIZE_MAX || a == 0 || b == 0
            ? ctn_fail(CTN_EFORMAT, "merge %lu is '%.*s', expected two tokens and one space",
                       (unsigned long)rank, n < 40 ? (int)n : 40, line)
            : ctn__bpe_merge(t, rank, bytes, a, bytes + a, b);
    ctn__free(bytes);
    return st;
}

/* ---- text files ------------------------------------------------------------------------------ */

/* The next line, without its end; false at the end of the text. */
static bool next_line(const char **p, const char *end, const char **line, size_t *n)
{
    if (*p >= end) return false;
    const char *stop = memchr(*p, '\n', (size_t)(end - *p));
    *line = *p;
    *n = (size_t)((stop ? stop : end) - *p);
    if (*n && (*line)[*n - 1] == '\r') --*n;
    *p = stop ? stop + 1 : end;
    return true;
}

static ctn_status take_merges(ctn_tokenizer *t, const char *text, size_t bytes)
{
    const char *p = text, *line = NULL;
    size_t n = 0, lines = 0;
    uint32_t rank = 0;
    for (; next_line(&p, text + bytes, &line, &n);) lines++;
    CTN_TRY(ctn__bpe_room(t, lines));
    for (p = text; next_line(&p, text + bytes, &line, &n);) {
        if (n == 0 || (n >= 8 && memcmp(line, "#version", 8) == 0)) continue;
        CTN_TRY(ctn__bpe_line(t, rank++, line, n));
    }
    return ctn__bpe_ready(t);
}

static ctn_status read_merges(ctn_tokenizer *t, const char *path)
{
    char *text = NULL;
    size_t bytes = 0;
    CTN_TRY(ctn__file_whole("tokenizer", path, MOST, &text, &bytes));
    ctn_status st = ctn__file_blame(take_merges(t, text, bytes), "tokenizer", path);
    ctn__free(text);
    return st;
}

static ctn_status take_words(ctn_tokenizer *t, const char *text, size_t bytes,
                             const ctn_tokenizer_opt *opt)
{
    const char *p = text, *line = NULL;
    size_t n = 0;
    t->longest = 100;
    t->clean = t->cjk = true;
    t->lower = t->strip = !opt->keep_case;
    for (int64_t id = 0; next_line(&p, text + bytes, &line, &n); id++) {
        while (n && (line[n - 1] == ' ' || line[n - 1] == '\t' || line[n - 1] == '\r')) n--;
        CTN_TRY(ctn__vocab_add(&t->vocab, id, line, n, true));
    }
    return ctn__wordpiece_ready(t, "[UNK]", "##");
}

/* ---- which file ------------------------------------------------------------------------------ */

/* The special tokens of a tokenizer whose files do not name them. */
static ctn_status known_specials(ctn_tokenizer *t)
{
    static const char *const bpe[] = {"<|endoftext|>", NULL};
    static const char *const bert[] = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", NULL};
    for (const char *const *s = t->wordpiece ? bert : bpe; *s; s++) {
        const int32_t id = ctn__words_find(&t->vocab.all, &t->vocab, *s, strlen(*s));
        if (id < 0) continue;
        t->vocab.token.at[id].special = true;
        CTN_TRY(ctn__special_add(t, id, false, false));
    }
    return CTN_OK;
}

/* path with its last part replaced by name. */
static void beside(ctn__text *out, const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    out->n = 0;
    ctn__text_add(out, "%.*s%s", slash ? (int)(slash + 1 - path) : 0, path, name);
}

static ctn_status find_merges(ctn_tokenizer *t, const char *path)
{
    ctn__text merges = {0};
    ctn_status st = CTN_OK;
    beside(&merges, path, "merges.txt");
    if (!merges.failed && access(merges.s, F_OK) != 0) {
        ctn__text other = {0};
        beside(&other, path, "vocab.bpe");
        if (!other.failed && access(other.s, F_OK) == 0) beside(&merges, path, "vocab.bpe");
        ctn__text_free(&other);
    }
    st = merges.failed ? CTN_ENOMEM : read_merges(t, merges.s);
    ctn__text_free(&merges);
    return st;
}

static ctn_status read_file(ctn_tokenizer *t, const char *path, const ctn_tokenizer_opt *opt)
{
    const size_t n = strlen(path);
    const bool json = n >= 5 && strcmp(path + n - 5, ".json") == 0;
    char *text = NULL;
    size_t bytes = 0;
    bool plain = true;
    CTN_TRY(ctn__file_whole("tokenizer", path, MOST, &text, &bytes));
    ctn_status st =
        json ? ctn__tokenizer_json(t, text, bytes, &plain) : take_words(t, text, bytes, opt);
    ctn__free(text);
    CTN_TRY(ctn__file_blame(st, "tokenizer", path));
    if (json && plain) CTN_TRY(find_merges(t, path));
    return plain ? known_specials(t) : CTN_OK;
}

ctn_status ctn__tokenizer_read(ctn_tokenizer *t, const char *path, const ctn_tokenizer_opt *opt)
{
    static const char *const names[] = {"tokenizer.json", "vocab.json", "encoder.json",
                                        "vocab.txt"};
    struct stat info = {0};
    ctn__text file = {0};
    ctn_status st = CTN_ENOTFOUND;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return read_file(t, path, opt);
    for (size_t i = 0; st == CTN_ENOTFOUND && i < sizeof names / sizeof *names; i++) {
        file.n = 0;
        ctn__text_add(&file, "%s/%s", path, names[i]);
        if (file.failed) st = CTN_ENOMEM;
        else if (access(file.s, F_OK) == 0) st = read_file(t, file.s, opt);
    }
    ctn__text_free(&file);
    if (st == CTN_ENOTFOUND)
        return ctn_fail(st,
                        "tokenizer: the folder %s has none of tokenizer.json, vocab.json, "
                        "encoder.json and vocab.txt",
                        path);
    return st;
}
