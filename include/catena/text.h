/* SPDX-License-Identifier: Apache-2.0
 *
 * Text to tokens and back: byte-level BPE (GPT-2, Llama 3, Qwen 2) and WordPiece (BERT), from the
 * published files. The tokens are those of the Python package `tokenizers`. A tokenizer does not
 * change after it was opened, so any number of threads may use it at once.
 *
 * Text is UTF-8 and may contain any bytes, including 0. Byte-level BPE keeps them all: decoding the
 * tokens of a text gives the same bytes, unless the tokenizer normalises text (NFC).
 */
#ifndef CATENA_TEXT_H
#define CATENA_TEXT_H

#include <catena/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_tokenizer ctn_tokenizer;

typedef struct {
    size_t struct_size;
    /* 1: the text of a special token, such as <|endoftext|>, is encoded like any other text;
     * 0: it becomes that token. */
    int ignore_special;
    /* vocab.txt only. 1: keep upper case and accents, as cased BERT models need it. */
    int keep_case;
} ctn_tokenizer_opt;

/* Read a tokenizer. `path` is tokenizer.json; vocab.json with merges.txt beside it (or encoder.json
 * with vocab.bpe); vocab.txt, the WordPiece vocabulary of BERT; or a folder with one of these,
 * tried in this order. Local. Result: *t, owned, ctn_tokenizer_free. Errors: EIO, ENOTFOUND (a
 * folder without these files), EFORMAT, EUNSUPPORTED (a kind of tokenizer that the message names,
 * or a build without utf8proc or yyjson), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tokenizer_open(ctn_tokenizer **t, const char *path,
                                                     const ctn_tokenizer_opt *opt);
CTN_API void ctn_tokenizer_free(ctn_tokenizer *t); /* NULL is allowed. Local. */

/* Encode text. Writes at most `room` tokens to ids and returns the number of all tokens of the
 * text, as snprintf does; there is no need for more than ids[bytes] unless the tokenizer normalises
 * text. Adds no [CLS] or [SEP]. Local, thread-safe. Errors, as a negative ctn_status: EARG,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK int64_t ctn_tokenizer_encode(const ctn_tokenizer *t, const char *text,
                                                    size_t bytes, int32_t *ids, size_t room);

/* Decode n tokens. Writes at most room - 1 bytes and a 0 to text and returns the number of all
 * bytes of the text without the 0, as snprintf does. Special tokens are written as their text.
 * WordPiece tokens are joined to words, with one space between words. The text may end within a
 * UTF-8 character. Local, thread-safe. Errors, as a negative ctn_status: EARG (no such token). */
CTN_API CTN_MUST_CHECK int64_t ctn_tokenizer_decode(const ctn_tokenizer *t, const int32_t *ids,
                                                    size_t n, char *text, size_t room);

/* The state of ctn_tokenizer_decode_next; start with {0}. */
typedef struct {
    char held[4]; /* the beginning of a character */
    int n;        /* bytes of it */
    int started;
} ctn_decode_state;
/* Decode one token of a stream. Like ctn_tokenizer_decode, but holds back the bytes of a character
 * that is not complete until the next call; the result may therefore be 0. id -1 ends the stream
 * and writes what is held. If room is too small, nothing changes and the call may be repeated.
 * Local, thread-safe for different states. Errors: as ctn_tokenizer_decode. */
CTN_API CTN_MUST_CHECK int64_t ctn_tokenizer_decode_next(const ctn_tokenizer *t,
                                                         ctn_decode_state *state, int32_t id,
                                                         char *text, size_t room);

/* Size of the vocabulary: the largest token plus 1. Local. */
CTN_API int64_t ctn_tokenizer_tokens(const ctn_tokenizer *t);
/* The text of a token: for BPE the bytes it stands for (" the", not "Ġthe"), for WordPiece as in
 * vocab.txt ("##ing"). *bytes is its length (bytes may be NULL); a 0 follows. Returns NULL if
 * there is no such token. Local. Result: borrowed from t. */
CTN_API const char *ctn_tokenizer_token(const ctn_tokenizer *t, int64_t id, size_t *bytes);
/* The token with this text; -1: none. Local. */
CTN_API int32_t ctn_tokenizer_id(const ctn_tokenizer *t, const char *text, size_t bytes);
/* 1 if the token is a special one, such as <|endoftext|>, [CLS] or [PAD]. Local. */
CTN_API int ctn_tokenizer_special(const ctn_tokenizer *t, int64_t id);
/* The special token that ends a document: <|endoftext|>, <|end_of_text|>, </s>, <eos> or [SEP]; -1:
 * none. Local. */
CTN_API int32_t ctn_tokenizer_end(const ctn_tokenizer *t);

/* The tokens that belong before a text (after 0) or after it (1) by the post-processor of
 * tokenizer.json, such as <s> of many Llama models. Writes at most `room` to ids and returns their
 * number. Local. */
CTN_API int ctn_tokenizer_around(const ctn_tokenizer *t, int after, int32_t *ids, int room);

typedef struct {
    size_t struct_size;
    /* 1: the text ends with the last message; 0: what begins the answer follows. */
    int no_prompt;
} ctn_chat_opt;
/* The text of a conversation for a model that was trained to chat. `messages` is JSON: a list of
 * {"role": "user", "content": "..."} objects, or an object whose member "messages" is this list and
 * whose member "tools", if it has one, is a list of tools. The template of the model makes the
 * text: chat_template.jinja beside the tokenizer's file, or chat_template in tokenizer_config.json,
 * in the subset of Jinja that published templates use. Encode the text with ctn_tokenizer_encode
 * and without the tokens of ctn_tokenizer_around: the template writes them itself. Writes at most
 * room - 1 bytes and a 0 to text and returns the number of all bytes of the text without the 0, as
 * snprintf does. Local, thread-safe. Errors, as a negative ctn_status: ENOTFOUND (the model has no
 * template), EARG (the template refuses the conversation), EFORMAT (what is not JSON or not a valid
 * template), EUNSUPPORTED (a part of the template, which the message names, or more work than a
 * template may cause), ENOMEM. */
CTN_API CTN_MUST_CHECK int64_t ctn_tokenizer_chat(const ctn_tokenizer *t, const char *messages,
                                                  size_t bytes, const ctn_chat_opt *opt, char *text,
                                                  size_t room);

typedef struct {
    size_t struct_size;
    int threads;     /* 0: the default of contexts */
    const char *end; /* text of the token after each file; NULL: ctn_tokenizer_end; "": none */
    int64_t piece;   /* bytes of text that a thread encodes at a time; 0: 256 kB */
    /* Called with the number of bytes read so far and in all; may be NULL. */
    void (*progress)(void *user, int64_t done, int64_t all);
    void *user;
} ctn_tokens_pack_opt;
/* Encode text files, each of which is one document, and write the tokens to one file, atomically:
 * 2 bytes per token if the vocabulary has at most 65,536 tokens, otherwise 4, for ctn_tokens_open.
 * Files may be larger than memory: they are cut where no token can cross. The result does not
 * depend on the number of threads or the size of the pieces. Local. Result: *tokens, the number of
 * tokens; tokens may be NULL. Errors: EIO, EARG, ENOTFOUND (no token ends a document), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_tokens_pack(const ctn_tokenizer *t, int files,
                                                  const char *const *path, const char *out,
                                                  int64_t *tokens, const ctn_tokens_pack_opt *opt);

#ifdef __cplusplus
}
#endif
#endif
