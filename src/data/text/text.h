/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of this folder share. A text goes through: special tokens (tokenizer.c), then for
 * BPE words by pattern (split.c) and merges (bpe.c), for WordPiece normalised words and longest
 * matches (wordpiece.c). Nothing of a tokenizer changes after it was opened.
 */
#ifndef CTN_DATA_TEXT_TEXT_H
#define CTN_DATA_TEXT_TEXT_H

#include <catena/text.h>
#include "base/base.h"

/* ---- characters (unicode.c) ------------------------------------------------------------------ */

#define CTN__BAD_CHAR 0xFFFDu /* stands for a byte that is not UTF-8 */

/* The classes that the patterns of tokenizers tell apart: \p{L}, \p{N}, \s and everything else,
 * which includes bytes that are not UTF-8. */
typedef enum { CTN__OTHER, CTN__LETTER, CTN__NUMBER, CTN__SPACE } ctn__kind;

extern const uint8_t ctn__ascii_kind[128];

/* Errors: EUNSUPPORTED in a build without utf8proc. */
ctn_status ctn__unicode_check(void);
/* The character at p < end; returns its bytes. A byte that is not part of a valid character is a
 * character by itself, CTN__BAD_CHAR. */
size_t ctn__utf8_get(const char *p, const char *end, uint32_t *c);
size_t ctn__utf8_put(uint32_t c, char *out); /* writes at most 4 bytes; returns their number */
ctn__kind ctn__kind_of(uint32_t c);
bool ctn__is_space(uint32_t c);   /* White_Space */
bool ctn__is_control(uint32_t c); /* Cc, Cf, Co */
bool ctn__is_mark(uint32_t c);    /* Mn */
bool ctn__is_punct(uint32_t c);
uint32_t ctn__lower(uint32_t c); /* of one character, which is one */
uint32_t ctn__upper(uint32_t c);
enum { CTN__DECOMPOSED = 8 };
/* Canonical decomposition; returns the number of characters. */
int ctn__decompose(uint32_t c, uint32_t out[CTN__DECOMPOSED]);
/* The text in NFC. *out is NULL if it is in NFC already, and otherwise to be freed. Errors:
 * ENOMEM. */
ctn_status ctn__nfc(const char *text, size_t bytes, char **out, size_t *n);

/* The kind of the character at p < end, and its bytes. */
static inline ctn__kind ctn__kind_at(const char *p, const char *end, size_t *n)
{
    const unsigned char b = (unsigned char)*p;
    *n = 1;
    if (b < 128) return (ctn__kind)ctn__ascii_kind[b];
    uint32_t c = 0;
    *n = ctn__utf8_get(p, end, &c);
    return ctn__kind_of(c);
}

/* ---- vocabulary (vocab.c) -------------------------------------------------------------------- */

#define CTN__TOKENS_MOST ((int64_t)1 << 24) /* tokens of a vocabulary */

typedef struct {
    uint32_t at, n; /* its bytes in ctn__vocab.text, where a 0 follows */
    bool used;      /* false: no token has this id */
    bool special;
    bool lstrip, rstrip; /* found in a text, it takes the white space before or after it */
} ctn__token;

/* Hash table from text to token. key: the text itself if n <= 8, otherwise a hash of it. */
typedef struct {
    uint64_t key;
    uint32_t n;
    int32_t id; /* -1: empty */
} ctn__word;
typedef struct {
    ctn__word *at;
    size_t room, n; /* room is 0 or a power of two */
    size_t longest; /* bytes */
    uint64_t seed;  /* of ctn__table_mix */
} ctn__words;

typedef struct {
    CTN__VEC(char) text;
    CTN__VEC(ctn__token) token; /* by id */
    ctn__words all;
} ctn__vocab;

static inline const char *ctn__token_text(const ctn__vocab *v, int32_t id)
{
    return v->text.at + v->token.at[id].at;
}
/* Adds a token. If another one has the same text, find returns this one if `replace` is set.
 * Errors: EFORMAT (an id out of range or used twice), ENOMEM. */
ctn_status ctn__vocab_add(ctn__vocab *v, int64_t id, const char *text, size_t n, bool replace);
void ctn__vocab_free(ctn__vocab *v);
/* The token with this text; -1: none. */
int32_t ctn__words_find(const ctn__words *w, const ctn__vocab *v, const char *text, size_t n);
/* Adds the last n bytes of token id. */
ctn_status ctn__words_add(ctn__words *w, const ctn__vocab *v, int32_t id, size_t n, bool replace);

/* ---- a tokenizer ----------------------------------------------------------------------------- */

enum { CTN__SPECIAL_MOST = 256 }; /* bytes of a token that is found in the text first */

typedef struct {
    uint32_t rank; /* UINT32_MAX: no merge */
    int32_t id;    /* of the result */
} ctn__merge;
typedef struct {
    uint64_t pair; /* left << 32 | right */
    ctn__merge merge;
} ctn__pair; /* empty: rank is UINT32_MAX */

typedef enum { CTN__SPLIT_GPT2, CTN__SPLIT_LLAMA3, CTN__SPLIT_QWEN2 } ctn__split;

enum { CTN__AROUND = 8, CTN__CHAT_FILES = 3 };

struct ctn_tokenizer {
    ctn__vocab vocab;
    ctn__words special;                 /* tokens that are found in the text first */
    uint16_t length[CTN__SPECIAL_MOST]; /* (lengths) different lengths of these, longest first */
    int lengths;
    bool starts[256]; /* their first bytes */
    bool edge[256];   /* bytes next to which text must not be cut, see ctn__tokenizer_cut */
    bool wordpiece;
    int32_t around[2][CTN__AROUND]; /* tokens before and after a text, */
    int arounds[2];                 /* and how many */

    /* BPE */
    ctn__split split;
    bool nfc, ignore_merges;
    int32_t byte[256]; /* token of each single byte */
    ctn__pair *pair;   /* (pairs), a hash table */
    size_t pairs;
    uint64_t seed;    /* of ctn__table_mix */
    ctn__words words; /* tokens that merging their own bytes gives */

    /* The bytes of the files that a chat template is in (chat.c); NULL: no such file. */
    char *chat[CTN__CHAT_FILES];
    size_t chat_bytes[CTN__CHAT_FILES];

    /* WordPiece */
    bool clean, cjk, strip, lower; /* BERT's normaliser */
    ctn__words rest;               /* tokens ##x by their x */
    int32_t unknown;
    int64_t longest; /* characters of a word that is not unknown */
};

/* The tokens that were found so far; only the first `room` are written. */
typedef struct {
    int32_t *at;
    size_t room, n;
} ctn__ids;

static inline void ctn__ids_put(ctn__ids *out, int32_t id)
{
    if (out->n < out->room) out->at[out->n] = id;
    out->n++;
}

/* ---- words (split.c), merges (bpe.c), WordPiece (wordpiece.c) -------------------------------- */

/* Bytes of the first word of a text that is not empty. */
size_t ctn__split_word(ctn__split s, const char *p, const char *end);

/* The tokens of one word. Errors: ENOMEM. */
ctn_status ctn__bpe_word(const ctn_tokenizer *t, const char *p, size_t n, ctn__ids *out);
/* Makes room for merges, before the first one is added. */
ctn_status ctn__bpe_room(ctn_tokenizer *t, size_t merges);
/* Adds the next merge; both parts are texts of tokens. Errors: EFORMAT. */
ctn_status ctn__bpe_merge(ctn_tokenizer *t, uint32_t rank, const char *left, size_t nl,
                          const char *right, size_t nr);
/* Checks and completes a tokenizer after its last merge. Errors: EFORMAT, ENOMEM. */
ctn_status ctn__bpe_ready(ctn_tokenizer *t);

void ctn__wordpiece(const ctn_tokenizer *t, const char *p, const char *end, ctn__ids *out);
/* Completes a tokenizer. Errors: EFORMAT (no token `unknown`), ENOMEM. */
ctn_status ctn__wordpiece_ready(ctn_tokenizer *t, const char *unknown, const char *prefix);
/* Maximum of ctn_tokenizer.longest; BERT has 100. A word of n characters takes n^2 lookups. */
enum { CTN__WORD_MOST = 200 };

/* ---- files (files.c, tokenizer_json.c) ------------------------------------------------------- */

ctn_status ctn__tokenizer_read(ctn_tokenizer *t, const char *path, const ctn_tokenizer_opt *opt);
/* Reads tokenizer.json, or a plain vocabulary {"token": id, ...}, in which case *plain is true and
 * the merges are still missing. Errors: EFORMAT, EUNSUPPORTED, ENOMEM. */
ctn_status ctn__tokenizer_json(ctn_tokenizer *t, const char *json, size_t bytes, bool *plain);
/* Adds a token that is written in the alphabet of byte-level BPE: "Ġthe" for " the". */
ctn_status ctn__bpe_token(ctn_tokenizer *t, int64_t id, const char *text, size_t n);
/* Adds a merge that is written in this alphabet: "Ġ t". */
ctn_status ctn__bpe_line(ctn_tokenizer *t, uint32_t rank, const char *line, size_t n);
/* Makes token id one that is found in the text first. Errors: EFORMAT (too long), ENOMEM. */
ctn_status ctn__special_add(ctn_tokenizer *t, int32_t id, bool lstrip, bool rstrip);
/* Reads the files beside `path`, or in it, that a chat template is in. Errors: EIO, ENOMEM. */
ctn_status ctn__chat_read(ctn_tokenizer *t, const char *path);

/* The last place where a text can be cut without changing its tokens; 0: none. It is before a
 * single space or after a single newline, between two characters that are not white space. */
size_t ctn__tokenizer_cut(const ctn_tokenizer *t, const char *text, size_t bytes);

#endif
