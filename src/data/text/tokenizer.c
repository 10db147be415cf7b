/* SPDX-License-Identifier: Apache-2.0
 *
 * The public functions of tokenizers: opening, encoding and decoding. Special tokens are found in
 * the text first, the longest one of those that begin at the leftmost place; the text between them
 * goes to BPE or WordPiece.
 */
#include "data/text/text.h"

/* ---- special tokens -------------------------------------------------------------------------- */

/* White space in or next to a special token restricts where text can be cut: neither between a
 * token and the white space that belongs to it nor within a token. */
static void mark_edges(ctn_tokenizer *t, const ctn__token *s, const char *text)
{
    const size_t n = s->n;
    if (s->lstrip) t->edge[(unsigned char)text[0]] = true;
    if (s->rstrip) t->edge[(unsigned char)text[n - 1]] = true;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != ' ' && text[i] != '\n') continue;
        if (i > 0) t->edge[(unsigned char)text[i - 1]] = true;
        if (i + 1 < n) t->edge[(unsigned char)text[i + 1]] = true;
    }
}

static void add_length(ctn_tokenizer *t, uint16_t n)
{
    int i = 0;
    while (i < t->lengths && t->length[i] > n) i++;
    if (i < t->lengths && t->length[i] == n) return;
    memmove(t->length + i + 1, t->length + i, (size_t)(t->lengths++ - i) * sizeof *t->length);
    t->length[i] = n;
}

/* The first one of several with the same text is found. */
ctn_status ctn__special_add(ctn_tokenizer *t, int32_t id, bool lstrip, bool rstrip)
{
    const char *text = ctn__token_text(&t->vocab, id);
    ctn__token *s = &t->vocab.token.at[id];
    if (s->n > CTN__SPECIAL_MOST)
        return ctn_fail(CTN_EFORMAT, "added token '%.40s' has %lu bytes, at most %d are possible",
                        text, (unsigned long)s->n, CTN__SPECIAL_MOST);
    if (ctn__words_find(&t->special, &t->vocab, text, s->n) >= 0) return CTN_OK;
    CTN_TRY(ctn__words_add(&t->special, &t->vocab, id, s->n, false));
    s->lstrip = lstrip;
    s->rstrip = rstrip;
    add_length(t, (uint16_t)s->n);
    t->starts[(unsigned char)text[0]] = true;
    mark_edges(t, s, text);
    return CTN_OK;
}

/* The longest special token at p; -1: none. A file may have any number of them, but few lengths. */
static int32_t special_at(const ctn_tokenizer *t, const char *p, const char *end)
{
    int32_t id = -1;
    for (int i = 0; id < 0 && i < t->lengths; i++)
        if (t->length[i] <= end - p) id = ctn__words_find(&t->special, &t->vocab, p, t->length[i]);
    return id;
}

/* The first special token of a text and where it begins and ends; -1: none, both are the end. */
static int32_t next_special(const ctn_tokenizer *t, const char *text, const char *end,
                            const char **from, const char **to)
{
    int32_t id = -1;
    const char *p = t->lengths == 0 ? end : text;
    size_t n = 0;
    for (; p < end; p++)
        if (t->starts[(unsigned char)*p] && (id = special_at(t, p, end)) >= 0) break;
    *from = *to = p;
    if (id < 0) return id;
    const ctn__token *s = &t->vocab.token.at[id];
    *to = p + s->n;
    if (s->rstrip)
        while (*to < end && ctn__kind_at(*to, end, &n) == CTN__SPACE) *to += n;
    while (s->lstrip && *from > text) {
        const char *q = *from - 1;
        while (q > text && *from - q < 3 && ((unsigned char)*q & 0xC0) == 0x80) q--;
        if (ctn__kind_at(q, *from, &n) != CTN__SPACE || q + n != *from) break;
        *from = q;
    }
    return id;
}

/* ---- opening --------------------------------------------------------------------------------- */

ctn_status ctn_tokenizer_open(ctn_tokenizer **out, const char *path, const ctn_tokenizer_opt *opt)
{
    if (!out || !path) return ctn_fail(CTN_EARG, "tokenizer: NULL argument");
    *out = NULL;
    ctn_tokenizer_opt o;
    CTN_TRY(ctn__opt("tokenizer", &o, sizeof o, opt));
    CTN_TRY(ctn__unicode_check());
    ctn_tokenizer *t = ctn__calloc(1, sizeof *t);
    if (!t) return CTN_ENOMEM;
    ctn_status st = ctn__tokenizer_read(t, path, &o);
    if (st == CTN_OK) st = ctn__chat_read(t, path);
    if (st < 0) {
        ctn_tokenizer_free(t);
        return st;
    }
    if (o.ignore_special) t->lengths = 0;
    *out = t;
    return CTN_OK;
}

void ctn_tokenizer_free(ctn_tokenizer *t)
{
    if (!t) return;
    ctn__vocab_free(&t->vocab);
    ctn__free(t->special.at);
    ctn__free(t->pair);
    for (int i = 0; i < CTN__CHAT_FILES; i++) ctn__free(t->chat[i]);
    ctn__free(t->words.at);
    ctn__free(t->rest.at);
    ctn__free(t);
}

/* ---- encoding -------------------------------------------------------------------------------- */

static ctn_status encode_words(const ctn_tokenizer *t, const char *p, const char *end,
                               ctn__ids *out)
{
    while (p < end) {
        const size_t n = ctn__split_word(t->split, p, end);
        CTN_TRY(ctn__bpe_word(t, p, n, out));
        p += n;
    }
    return CTN_OK;
}

/* Text without special tokens. */
static ctn_status encode_plain(const ctn_tokenizer *t, const char *p, const char *end,
                               ctn__ids *out)
{
    char *composed = NULL;
    size_t n = 0;
    if (p == end) return CTN_OK;
    if (t->wordpiece) {
        ctn__wordpiece(t, p, end, out);
        return CTN_OK;
    }
    if (t->nfc) CTN_TRY(ctn__nfc(p, (size_t)(end - p), &composed, &n));
    ctn_status st =
        composed ? encode_words(t, composed, composed + n, out) : encode_words(t, p, end, out);
    ctn__free(composed);
    return st;
}

int64_t ctn_tokenizer_encode(const ctn_tokenizer *t, const char *text, size_t bytes, int32_t *ids,
                             size_t room)
{
    if (!t || (!text && bytes) || (!ids && room))
        return ctn_fail(CTN_EARG, "tokenizer_encode: NULL argument");
    ctn__ids out = {ids, room, 0};
    if (bytes == 0) return 0;
    for (const char *p = text, *end = text + bytes, *from, *to; p < end; p = to) {
        const int32_t id = next_special(t, p, end, &from, &to);
        const ctn_status st = encode_plain(t, p, from, &out);
        if (st < 0) return st;
        if (id >= 0) ctn__ids_put(&out, id);
    }
    return (int64_t)out.n;
}

static bool is_solid(const char *p, const char *end)
{
    size_t n = 0;
    return ctn__kind_at(p, end, &n) != CTN__SPACE;
}

size_t ctn__tokenizer_cut(const ctn_tokenizer *t, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    /* The character after the place must be there as a whole, which takes up to 4 bytes. */
    for (size_t i = bytes > 5 ? bytes - 5 : 0; i > 0; i--) {
        if (text[i] != ' ' && text[i] != '\n') continue;
        if (t->edge[(unsigned char)text[i - 1]] || t->edge[(unsigned char)text[i + 1]]) continue;
        size_t last = i - 1;
        while (last > 0 && i - last < 4 && ((unsigned char)text[last] & 0xC0) == 0x80) last--;
        if (is_solid(text + last, text + i) && is_solid(text + i + 1, end))
            return text[i] == ' ' ? i : i + 1;
    }
    return 0;
}

/* ---- decoding -------------------------------------------------------------------------------- */

/* What a token adds to a text: a space if it begins another word, then its n bytes. */
static const char *piece_of(const ctn_tokenizer *t, int32_t id, bool first, bool *space, size_t *n)
{
    size_t bytes = 0;
    const char *text = ctn_tokenizer_token(t, id, &bytes);
    *space = false;
    if (text && t->wordpiece) {
        const bool more = bytes > 2 && text[0] == '#' && text[1] == '#';
        if (more) {
            text += 2;
            bytes -= 2;
        }
        *space = !more && !first;
    }
    *n = bytes;
    return text;
}

static int64_t no_token(const char *who, const ctn_tokenizer *t, int32_t id)
{
    return ctn_fail(CTN_EARG, "%s: there is no token %ld; the vocabulary has %lld", who, (long)id,
                    (long long)ctn_tokenizer_tokens(t));
}

/* Appends to a text of n bytes, of which only room - 1 are written. */
static size_t append(char *text, size_t room, size_t n, const char *from, size_t bytes)
{
    if (n + 1 < room) memcpy(text + n, from, bytes < room - 1 - n ? bytes : room - 1 - n);
    return n + bytes;
}

int64_t ctn_tokenizer_decode(const ctn_tokenizer *t, const int32_t *ids, size_t n, char *text,
                             size_t room)
{
    if (!t || (!ids && n) || (!text && room))
        return ctn_fail(CTN_EARG, "tokenizer_decode: NULL argument");
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        bool space = false;
        size_t bytes = 0;
        const char *piece = piece_of(t, ids[i], i == 0, &space, &bytes);
        if (!piece) return no_token("tokenizer_decode", t, ids[i]);
        if (space) done = append(text, room, done, " ", 1);
        done = append(text, room, done, piece, bytes);
    }
    if (room) text[done < room ? done : room - 1] = 0;
    return (int64_t)done;
}

/* Bytes at the end of a text that may be the beginning of a character, at most 3. */
static size_t unfinished(const char *text, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        const unsigned char b = (unsigned char)text[n - k];
        if ((b & 0xC0) == 0x80) continue;
        const size_t need = b >= 0xF0 && b < 0xF5 ? 4 : b >= 0xE0 ? 3 : b >= 0xC2 ? 2 : 1;
        return b < 0xF5 && need > k ? k : 0;
    }
    return 0;
}

int64_t ctn_tokenizer_decode_next(const ctn_tokenizer *t, ctn_decode_state *state, int32_t id,
                                  char *text, size_t room)
{
    bool space = false;
    size_t bytes = 0, done = 0;
    const char *piece = "";
    if (!t || !state || (!text && room) || state->n < 0 || state->n > 3)
        return ctn_fail(CTN_EARG, "tokenizer_decode_next: NULL argument or an invalid state");
    if (id != -1) piece = piece_of(t, id, !state->started, &space, &bytes);
    if (!piece) return no_token("tokenizer_decode_next", t, id);
    /* The end of the text so far, to find out how much of it is complete. */
    char tail[8];
    size_t n = (size_t)state->n;
    memcpy(tail, state->held, n);
    if (space) tail[n++] = ' ';
    const size_t skip = bytes > 3 ? bytes - 3 : 0, begin = skip ? 0 : n;
    memcpy(tail + begin, piece + skip, bytes - skip);
    const size_t hold = id == -1 ? 0 : unfinished(tail, begin + bytes - skip);
    const size_t total = n + bytes - hold;
    if (total >= room) return (int64_t)total;
    done = append(text, room, 0, state->held, (size_t)state->n);
    if (space) done = append(text, room, done, " ", 1);
    append(text, room, done, piece, bytes);
    text[total] = 0;
    memcpy(state->held, tail + begin + bytes - skip - hold, hold);
    state->n = (int)hold;
    state->started = id != -1;
    return (int64_t)total;
}

/* ---- the vocabulary -------------------------------------------------------------------------- */

int64_t ctn_tokenizer_tokens(const ctn_tokenizer *t)
{
    return t ? (int64_t)t->vocab.token.n : 0;
}

const char *ctn_tokenizer_token(const ctn_tokenizer *t, int64_t id, size_t *bytes)
{
    if (bytes) *bytes = 0;
    if (id < 0 || id >= ctn_tokenizer_tokens(t) || !t->vocab.token.at[id].used) return NULL;
    if (bytes) *bytes = t->vocab.token.at[id].n;
    return ctn__token_text(&t->vocab, (int32_t)id);
}

int32_t ctn_tokenizer_id(const ctn_tokenizer *t, const char *text, size_t bytes)
{
    return t && text ? ctn__words_find(&t->vocab.all, &t->vocab, text, bytes) : -1;
}

int ctn_tokenizer_special(const ctn_tokenizer *t, int64_t id)
{
    return ctn_tokenizer_token(t, id, NULL) && t->vocab.token.at[id].special;
}

int ctn_tokenizer_around(const ctn_tokenizer *t, int after, int32_t *ids, int room)
{
    const int k = after != 0;
    for (int i = 0; t && ids && i < t->arounds[k] && i < room; i++) ids[i] = t->around[k][i];
    return t ? t->arounds[k] : 0;
}

int32_t ctn_tokenizer_end(const ctn_tokenizer *t)
{
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>",
                                        "[SEP]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const int32_t id = ctn_tokenizer_id(t, names[i], strlen(names[i]));
        if (id >= 0 && ctn_tokenizer_special(t, id)) return id;
    }
    return -1;
}
