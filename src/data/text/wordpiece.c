/* SPDX-License-Identifier: Apache-2.0
 *
 * WordPiece as BERT uses it. The normaliser drops control characters, puts spaces around Chinese
 * characters, strips accents (NFD without nonspacing marks) and lowers the case, each if the
 * tokenizer says so. White space and punctuation separate words. A word becomes the longest token
 * that it begins with, then the longest token ##x that continues it, and so on. If there is none,
 * the whole word is [UNK].
 *
 * All steps run character by character on one word, which needs no memory besides its buffer. The
 * canonical order of marks is not restored: nearly all of them are dropped.
 */
#include "data/text/text.h"

struct state {
    const ctn_tokenizer *t;
    ctn__ids *out;
    int64_t chars; /* of the word */
    size_t n;      /* bytes of the word; characters beyond the longest word are only counted */
    char word[4 * CTN__WORD_MOST];
};

/* Bytes of the longest token at the start of the text; 0: none. */
static size_t longest(const ctn_tokenizer *t, const ctn__words *w, const char *p, size_t n,
                      int32_t *id)
{
    const size_t most = n < w->longest ? n : w->longest;
    for (size_t k = most; k > 0; k--) {
        if (k < n && ((unsigned char)p[k] & 0xC0) == 0x80) continue; /* within a character */
        *id = ctn__words_find(w, &t->vocab, p, k);
        if (*id >= 0) return k;
    }
    return 0;
}

static void end_word(struct state *s)
{
    const ctn_tokenizer *t = s->t;
    const size_t first = s->out->n;
    bool known = s->chars <= t->longest;
    for (size_t at = 0, k; known && at < s->n; at += k) {
        int32_t id = -1;
        k = longest(t, at ? &t->rest : &t->vocab.all, s->word + at, s->n - at, &id);
        known = k > 0;
        ctn__ids_put(s->out, id);
    }
    if (!known) {
        s->out->n = first;
        ctn__ids_put(s->out, t->unknown);
    }
    s->chars = 0;
    s->n = 0;
}

static void add(struct state *s, uint32_t c)
{
    if (s->chars++ < s->t->longest) s->n += ctn__utf8_put(c, s->word + s->n);
}

/* A normalised character. */
static void take(struct state *s, uint32_t c)
{
    const bool space = ctn__is_space(c), alone = !space && ctn__is_punct(c);
    if ((space || alone) && s->chars) end_word(s);
    if (!space) add(s, c);
    if (alone) end_word(s);
}

static void lower(struct state *s, uint32_t c)
{
    if (c == 0x130) { /* the only character whose lower case is two characters */
        take(s, 'i');
        c = 0x307;
    }
    take(s, ctn__lower(c));
}

static void normalise(struct state *s, uint32_t c)
{
    uint32_t part[CTN__DECOMPOSED] = {c};
    const int n = s->t->strip ? ctn__decompose(c, part) : 1;
    for (int i = 0; i < n; i++) {
        if (s->t->strip && ctn__is_mark(part[i])) continue;
        if (s->t->lower) lower(s, part[i]);
        else take(s, part[i]);
    }
}

static bool is_cjk(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static void character(struct state *s, uint32_t c)
{
    const ctn_tokenizer *t = s->t;
    if (t->clean) {
        if (c == '\t' || c == '\n' || c == '\r') c = ' ';
        if (c == 0 || c == CTN__BAD_CHAR || ctn__is_control(c)) return;
    }
    const bool apart = t->cjk && is_cjk(c);
    if (apart && s->chars) end_word(s);
    normalise(s, c);
    if (apart && s->chars) end_word(s);
}

void ctn__wordpiece(const ctn_tokenizer *t, const char *p, const char *end, ctn__ids *out)
{
    struct state s;
    s.t = t;
    s.out = out;
    s.chars = 0;
    s.n = 0;
    while (p < end) {
        uint32_t c = (unsigned char)*p;
        const ctn__kind k = c < 128 ? (ctn__kind)ctn__ascii_kind[c] : CTN__OTHER;
        if (k == CTN__LETTER || k == CTN__NUMBER) {
            add(&s, t->lower && c >= 'A' && c <= 'Z' ? c | 0x20 : c);
            p++;
            continue;
        }
        p += ctn__utf8_get(p, end, &c);
        character(&s, c);
    }
    if (s.chars) end_word(&s);
}

ctn_status ctn__wordpiece_ready(ctn_tokenizer *t, const char *unknown, const char *prefix)
{
    ctn__vocab *v = &t->vocab;
    const size_t np = strlen(prefix);
    t->wordpiece = true;
    t->unknown = ctn__words_find(&v->all, v, unknown, strlen(unknown));
    if (t->unknown < 0)
        return ctn_fail(CTN_EFORMAT, "the vocabulary has no token %s for unknown words", unknown);
    for (size_t i = 0; i < v->token.n; i++) {
        const size_t n = v->token.at[i].n;
        if (n > np && memcmp(ctn__token_text(v, (int32_t)i), prefix, np) == 0)
            CTN_TRY(ctn__words_add(&t->rest, v, (int32_t)i, n - np, true));
    }
    return CTN_OK;
}
