/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokenizers: words of the patterns, merges against a plain implementation, round trips of any
 * bytes, special tokens, WordPiece, decoding of streams, refused and damaged files, and text files
 * packed on several threads in pieces of any size. The comparison with the package `tokenizers` is
 * tests/golden/test_text.c.
 * Labels: threads
 */
#include <ctype.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/text/text.h"
#include "support/check.h"
#include "support/ok.h"

#if defined(CTN_HAVE_UTF8PROC) && defined(CTN_HAVE_YYJSON)

enum { MERGES = 12 };
/* Merges of a small BPE; token 256 + i is the result of merge i. */
static const char *const merges[MERGES][2] = {{"a", "b"},  {"b", "c"},   {"ab", "c"},  {"a", "bc"},
                                              {"c", "a"},  {" ", "a"},   {"c", "c"},   {"cc", "cc"},
                                              {"ca", "b"}, {"abc", "a"}, {" a", "bc"}, {"b", "b"}};

#define GPT2 "{\"type\":\"ByteLevel\",\"add_prefix_space\":false}"
#define LLAMA3                                                                                  \
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"     \
    "\"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}{1,3}| ?"   \
    "[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+(?!\\\\S)|\\\\s+\"},"     \
    "\"behavior\":\"Isolated\",\"invert\":false},{\"type\":\"ByteLevel\",\"add_prefix_space\":" \
    "false,\"use_regex\":false}]}"
#define END_TOKEN "{\"id\":300,\"content\":\"<|endoftext|>\",\"special\":true}"

static void put_token(FILE *f, const char *s)
{
    for (; *s; s++) fputs(*s == ' ' ? "\xC4\xA0" : (char[]){*s, 0}, f);
}

/* Writes tokenizer.json of the small BPE. `options` is more of the model: "\"x\":1,". */
static const char *write_bpe(const char *path, const char *pre, const char *added,
                             const char *normalizer, const char *options)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fprintf(f, "{\"added_tokens\":[%s],\"normalizer\":%s,\"pre_tokenizer\":%s,\"model\":{%s", added,
            normalizer, pre, options);
    fprintf(f, "\"type\":\"BPE\",\"vocab\":{");
    for (int b = 0, more = 256; b < 256; b++) {
        char c[5] = {0};
        const int same = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        ctn__utf8_put((uint32_t)(same ? b : more++), c);
        fprintf(f, "\"%s%s\":%d,", b == '"' || b == '\\' ? "\\" : "", c, b);
    }
    for (int i = 0; i < MERGES; i++) {
        fputc('"', f);
        put_token(f, merges[i][0]);
        put_token(f, merges[i][1]);
        /* "abc" is the result of two merges. */
        fprintf(f, "%s\":%d%s", i == 3 ? "(unused)" : "", 256 + i, i + 1 < MERGES ? "," : "");
    }
    fprintf(f, "},\"merges\":[");
    for (int i = 0; i < MERGES; i++) {
        fputs(i % 2 ? "[\"" : "\"", f);
        put_token(f, merges[i][0]);
        fputs(i % 2 ? "\",\"" : " ", f);
        put_token(f, merges[i][1]);
        fprintf(f, "%s%s", i % 2 ? "\"]" : "\"", i + 1 < MERGES ? "," : "");
    }
    fprintf(f, "]}}");
    assert_int_equal(fclose(f), 0);
    return path;
}

static ctn_tokenizer *open_bpe(const char *pre, const char *added)
{
    ctn_tokenizer *t = NULL;
    OK(ctn_tokenizer_open(&t, write_bpe("bpe.json", pre, added, "null", ""), NULL));
    return t;
}

static const char vocabulary[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\naff\n"
                                 "the\nhello\n##s\n!\n中\n文\ne\nE\n##é\nx\n##x\n\xE1\x84\x92\n"
                                 "##\xE1\x85\xA1\n##\xE1\x86\xAB\n";

static ctn_tokenizer *open_bert(int keep_case)
{
    ctn_tokenizer *t = NULL;
    write_bytes("vocab.txt", vocabulary, sizeof vocabulary - 1);
    OK(ctn_tokenizer_open(&t, "vocab.txt", CTN_OPT(ctn_tokenizer_opt, .keep_case = keep_case)));
    return t;
}

/* The tokens of a text as "un ##aff ##able". */
static const char *tokens_of(const ctn_tokenizer *t, const char *text)
{
    static char out[4096];
    int32_t ids[512];
    size_t n = 0;
    const int64_t k = ctn_tokenizer_encode(t, text, strlen(text), ids, 512);
    assert_true(k >= 0 && k <= 512);
    out[0] = 0;
    for (int64_t i = 0; i < k; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", i ? "|" : "",
                              ctn_tokenizer_token(t, ids[i], NULL));
    return out;
}

static uint32_t seed = 1;

static uint32_t below(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void check_words(ctn__split s, const char *text, const char *want)
{
    char got[512];
    size_t n = 0;
    for (const char *p = text, *end = text + strlen(text); p < end;) {
        const size_t k = ctn__split_word(s, p, end);
        n += (size_t)snprintf(got + n, sizeof got - n, "%s%.*s", n ? "|" : "", (int)k, p);
        p += k;
    }
    assert_string_equal(got, want);
}

static void words_of_patterns(void **state)
{
    (void)state;
    static const char *const gpt2[][2] = {
        {"Hello world", "Hello| world"},
        {"it's we'RE they'll", "it|'s| we|'|RE| they|'ll"},
        {"a  b   c", "a| | b|  | c"},
        {"x \n y\n", "x| \n| y|\n"},
        {"end   ", "end|   "},
        {"1234 5a", "1234| 5|a"},
        {"a\tb", "a|\t|b"},
        {"''s", "''|s"},
        {" 's", " '|s"},
        {"naïve €5.", "naïve| €|5|."},
        {"\xFF\xFE"
         "a",
         "\xFF\xFE|a"},
        {"a\xE3\x80\x80"
         "b",
         "a|\xE3\x80\x80|b"},
    };
    static const char *const llama[][2] = {
        {"Hello world", "Hello| world"},
        {"it'S we'RE they'll 'ſ", "it|'S| we|'RE| they|'ll| '|ſ"},
        {"it'ſx", "it|'ſ|x"},
        {"12345 6", "123|45| |6"},
        {"(a", "(a"},
        {"a!!\n\nb", "a|!!\n\n|b"},
        {"a \n\n  b", "a| \n\n| | b"},
        {"a\n b", "a|\n| b"},
        {"\tx  ", "\tx|  "},
        {" .", " ."},
        {"a  .", "a| | ."},
    };
    for (size_t i = 0; i < sizeof gpt2 / sizeof *gpt2; i++)
        check_words(CTN__SPLIT_GPT2, gpt2[i][0], gpt2[i][1]);
    for (size_t i = 0; i < sizeof llama / sizeof *llama; i++)
        check_words(CTN__SPLIT_LLAMA3, llama[i][0], llama[i][1]);
    check_words(CTN__SPLIT_QWEN2, "12345 6", "1|2|3|4|5| |6");
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* Merges the tokens of a word one pair at a time. */
static int64_t plain_merges(const char *text, size_t n, char (*part)[8])
{
    for (size_t i = 0; i < n; i++) snprintf(part[i], 8, "%c", text[i]);
    for (;;) {
        size_t best = 0;
        int rank = MERGES;
        for (size_t i = 0; i + 1 < n; i++)
            for (int r = 0; r < rank; r++)
                if (!strcmp(part[i], merges[r][0]) && !strcmp(part[i + 1], merges[r][1])) {
                    rank = r;
                    best = i;
                }
        if (rank == MERGES) return (int64_t)n;
        snprintf(part[best], sizeof *part, "%s%s", merges[rank][0], merges[rank][1]);
        memmove(part + best + 1, part + best + 2, (n - best - 2) * sizeof *part);
        n--;
    }
}

static void merges_are_in_order(void **state)
{
    (void)state;
    static char part[400][8];
    ctn_tokenizer *t = open_bpe(GPT2, "");
    for (int trial = 0; trial < 3000; trial++) {
        char text[400];
        int32_t ids[400];
        size_t n = 1 + below(trial % 10 ? 12 : 300);
        for (size_t i = 0; i < n; i++) text[i] = "aabbccc"[below(7)];
        const int64_t want = plain_merges(text, n, part);
        const int64_t k = ctn_tokenizer_encode(t, text, n, ids, 400);
        assert_int_equal(k, want);
        for (int64_t i = 0; i < k; i++)
            assert_string_equal(ctn_tokenizer_token(t, ids[i], NULL), part[i]);
    }
    ctn_tokenizer_free(t);
}

/* With quadratic time, this would take minutes. */
static void a_long_word(void **state)
{
    (void)state;
    enum { N = 400000 };
    char *text = malloc(N);
    int32_t *ids = malloc(N * sizeof *ids);
    ctn_tokenizer *t = open_bpe(GPT2, "");
    assert_true(text && ids);
    for (int i = 0; i < N; i++) text[i] = "abcc"[below(4)];
    const int64_t n = ctn_tokenizer_encode(t, text, N, ids, N);
    assert_true(n > N / 4 && n < N);
    assert_int_equal(ctn_tokenizer_decode(t, ids, (size_t)n, NULL, 0), N);
    memset(text, 'c', N);
    assert_int_equal(ctn_tokenizer_encode(t, text, N, ids, N), N / 4);
    ctn_tokenizer_free(t);
    free(text);
    free(ids);
}

static void merges_are_ignored_on_request(void **state)
{
    (void)state;
    ctn_tokenizer *t = NULL;
    /* Merges never give "cab", because "ab" comes before "ca". */
    OK(ctn_tokenizer_open(&t, write_bpe("i.json", GPT2, "", "null", "\"ignore_merges\":true,"),
                          NULL));
    assert_string_equal(tokens_of(t, "cab"), "cab");
    ctn_tokenizer_free(t);
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void any_bytes_come_back(void **state)
{
    (void)state;
    static const char *const pre[] = {GPT2, LLAMA3};
    for (int k = 0; k < 2; k++) {
        ctn_tokenizer *t = open_bpe(pre[k], END_TOKEN);
        for (int trial = 0; trial < 300; trial++) {
            char text[600], back[601];
            int32_t ids[600];
            const size_t n = below(600), most = trial % 3 ? 256 : 128;
            for (size_t i = 0; i < n; i++)
                text[i] = (char)(unsigned char)(below(3) ? below((uint32_t)most)
                                                         : (unsigned)" \n'ab"[below(5)]);
            const int64_t m = ctn_tokenizer_encode(t, text, n, ids, 600);
            assert_true(m >= 0 && m <= (int64_t)n);
            assert_int_equal(ctn_tokenizer_decode(t, ids, (size_t)m, back, sizeof back), n);
            assert_memory_equal(back, text, n);
            assert_int_equal(back[n], 0);
        }
        ctn_tokenizer_free(t);
    }
}

static void counts_are_those_of_snprintf(void **state)
{
    (void)state;
    ctn_tokenizer *t = open_bpe(GPT2, "");
    int32_t ids[4] = {-1, -1, -1, -1};
    char text[8] = "1234567";
    assert_int_equal(ctn_tokenizer_encode(t, "abc a x", 7, NULL, 0), 4);
    assert_int_equal(ctn_tokenizer_encode(t, "abc a x", 7, ids, 2), 4);
    assert_true(ids[0] == 258 && ids[1] == 261 && ids[2] == -1);
    assert_int_equal(ctn_tokenizer_encode(t, NULL, 0, NULL, 0), 0);
    assert_int_equal(ctn_tokenizer_decode(t, ids, 2, text, 5), 5);
    assert_string_equal(text, "abc ");
    assert_int_equal(ctn_tokenizer_decode(t, NULL, 0, text, 6), 0);
    assert_string_equal(text, "");
    ctn_tokenizer_free(t);
}

/* ---- special tokens -------------------------------------------------------------------------- */

static void special_tokens(void **state)
{
    (void)state;
    ctn_tokenizer *t = open_bpe(GPT2, END_TOKEN ",{\"id\":301,\"content\":\"<|end\"},"
                                                "{\"id\":302,\"content\":\"<m>\",\"lstrip\":true,"
                                                "\"rstrip\":true,\"special\":true}");
    assert_string_equal(tokens_of(t, "ab<|endoftext|>ab"), "ab|<|endoftext|>|ab");
    assert_string_equal(tokens_of(t, "<|endoftex"), "<|end|o|f|t|e|x");
    assert_string_equal(tokens_of(t, "a \xE3\x80\x80\n<m> \tb"), "a|<m>|b");
    assert_string_equal(tokens_of(t, " <m> <m>"), "<m>|<m>");
    assert_int_equal(ctn_tokenizer_end(t), 300);
    assert_int_equal(ctn_tokenizer_tokens(t), 303);
    assert_int_equal(ctn_tokenizer_special(t, 300), 1);
    assert_int_equal(ctn_tokenizer_special(t, 301), 0);
    assert_int_equal(ctn_tokenizer_special(t, 299), 0);
    assert_null(ctn_tokenizer_token(t, 299, NULL));
    assert_null(ctn_tokenizer_token(t, -1, NULL));
    assert_int_equal(ctn_tokenizer_id(t, "<m>", 3), 302);
    assert_int_equal(ctn_tokenizer_id(t, " a", 2), 261);
    assert_int_equal(ctn_tokenizer_id(t, "\0", 1), 0);
    assert_int_equal(ctn_tokenizer_id(t, "no such token", 13), -1);
    ctn_tokenizer_free(t);
    OK(ctn_tokenizer_open(&t, "bpe.json", CTN_OPT(ctn_tokenizer_opt, .ignore_special = 1)));
    assert_string_equal(tokens_of(t, "<m>"), "<|m|>");
    assert_int_equal(ctn_tokenizer_end(t), 300);
    ctn_tokenizer_free(t);
}

/* ---- the post-processor ---------------------------------------------------------------------- */

#define TEMPLATE                                                                              \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},"       \
    "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<e>\"}}],\"special_tokens\":{" \
    "\"<s>\":{\"ids\":[300]},\"<e>\":{\"ids\":[97,98]}}}"

/* Tokens that belong around a text, and post-processors that are refused. */
static void tokens_around(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        int before, after; /* -1: the first token; 0: none */
    } right[] = {
        {"null", 0, 0},
        {"{\"type\":\"ByteLevel\"}", 0, 0},
        {TEMPLATE, 300, 97},
        {"{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"}," TEMPLATE "]}", 300, 97},
        {"{\"type\":\"RobertaProcessing\",\"cls\":[\"x\",300],\"sep\":[\"a\",97]}", 300, 97},
    };
    static const struct {
        const char *json;
        ctn_status st;
    } wrong[] = {
        {"{\"type\":\"Other\"}", CTN_EUNSUPPORTED},
        {"{\"type\":\"BertProcessing\",\"cls\":[\"x\",301],\"sep\":[\"a\",97]}", CTN_EFORMAT},
        {"{\"type\":\"BertProcessing\",\"cls\":[\"x\",-1],\"sep\":[\"a\",97]}", CTN_EFORMAT},
        {"{\"type\":\"BertProcessing\"}", CTN_EFORMAT},
        {"{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":5}]}", CTN_EFORMAT},
        {"{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"s\"}}],"
         "\"special_tokens\":{\"s\":{\"ids\":[1,2,3,4,5,6,7,8,9]}}}",
         CTN_EUNSUPPORTED},
    };
    char normalizer[1000];
    ctn_tokenizer *t = NULL;
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        int32_t ids[2] = {0, 0};
        snprintf(normalizer, sizeof normalizer, "null,\"post_processor\":%s", right[i].json);
        write_bpe("around.json", GPT2, END_TOKEN, normalizer, "");
        OK(ctn_tokenizer_open(&t, "around.json", NULL));
        assert_int_equal(ctn_tokenizer_around(t, 0, ids, 2), right[i].before ? 1 : 0);
        assert_int_equal(ids[0], right[i].before);
        ids[0] = ids[1] = 0;
        const int both = strstr(right[i].json, "98") != NULL;
        assert_int_equal(ctn_tokenizer_around(t, 1, ids, 2), (right[i].after ? 1 : 0) + both);
        assert_true(ids[0] == right[i].after && ids[1] == (both ? 98 : 0));
        assert_int_equal(ctn_tokenizer_around(t, 1, NULL, 0), (right[i].after ? 1 : 0) + both);
        ctn_tokenizer_free(t);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(normalizer, sizeof normalizer, "null,\"post_processor\":%s", wrong[i].json);
        write_bpe("around.json", GPT2, END_TOKEN, normalizer, "");
        assert_fails(ctn_tokenizer_open(&t, "around.json", NULL), wrong[i].st, "post-processor");
    }
}

/* Tokens that begin like every place of the text. */
static void many_special_tokens(void **state)
{
    (void)state;
    enum { TOKENS = 200000, BYTES = 2000000 };
    char *added = malloc(64 * TOKENS), *p = added, *text = malloc(BYTES + 8);
    assert_true(added && text);
    for (int i = 0; i < TOKENS; i++)
        p += sprintf(p, "%s{\"id\":%d,\"content\":\"a%d\"}", i ? "," : "", 300 + i, i);
    ctn_tokenizer *t = open_bpe(GPT2, added);
    memset(text, 'a', BYTES);
    memcpy(text + BYTES, "1234567", 8); /* a1, a12, a123, ... are tokens, a1234567 is none */
    assert_int_equal(ctn_tokenizer_encode(t, text, BYTES + 7, NULL, 0), BYTES - 1 + 2);
    assert_string_equal(tokens_of(t, "a1234567"), "a123456|7");
    ctn_tokenizer_free(t);
    memset(text, 'x', CTN__SPECIAL_MOST + 1);
    sprintf(added, "{\"id\":300,\"content\":\"%.*s\"}", CTN__SPECIAL_MOST + 1, text);
    assert_fails(ctn_tokenizer_open(&t, write_bpe("n.json", GPT2, added, "null", ""), NULL),
                 CTN_EFORMAT, "has 257 bytes, at most 256 are possible");
    sprintf(added, "{\"id\":300,\"content\":\"%.*s\"}", CTN__SPECIAL_MOST, text);
    t = open_bpe(GPT2, added);
    assert_int_equal(ctn_tokenizer_encode(t, text, CTN__SPECIAL_MOST + 1, NULL, 0), 2);
    ctn_tokenizer_free(t);
    free(added);
    free(text);
}

/* Words of 8 bytes that a table would have in one slot if it multiplied them by a known number. */
static void words_of_one_slot(void **state)
{
    (void)state;
    enum { WORDS = 2000000 };
    const uint64_t factor = 0x9E3779B97F4A7C15u;
    uint64_t inverse = factor;
    for (int i = 0; i < 5; i++) inverse *= 2 - factor * inverse;
    assert_true(factor * inverse == 1);
    ctn__vocab v = {0};
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t i = 0; i < WORDS; i++) {
            char text[8];
            const uint64_t word = ((i & 255) << 21 | i >> 8 << 50) * inverse - sizeof text;
            memcpy(text, &word, sizeof text);
            if (pass == 0) OK(ctn__vocab_add(&v, (int64_t)i, text, sizeof text, false));
            else if (ctn__words_find(&v.all, &v, text, sizeof text) != (int32_t)i)
                fail_msg("word %d is not found", (int)i);
        }
    ctn__vocab_free(&v);
}

static void text_is_normalised(void **state)
{
    (void)state;
    ctn_tokenizer *t = NULL;
    int32_t ids[16];
    char back[16];
    OK(ctn_tokenizer_open(&t, write_bpe("n.json", LLAMA3, "", "{\"type\":\"NFC\"}", ""), NULL));
    const int64_t n = ctn_tokenizer_encode(t, "e\xCC\x81\xFF", 4, ids, 16);
    assert_int_equal(ctn_tokenizer_decode(t, ids, (size_t)n, back, sizeof back), 5);
    assert_string_equal(back, "é\xEF\xBF\xBD");
    ctn_tokenizer_free(t);
    /* Examples of UAX 15: marks in the order of their classes, also at the beginning of a text;
     * Hangul; a character that decomposes only; characters of 4 bytes. */
    static const char *const nfc[][2] = {
        {"\u0301\u0323", "\u0323\u0301"},  {"q\u0307\u0323", "q\u0323\u0307"},
        {"D\u0307\u0323", "\u1E0C\u0307"}, {"\u1E9B\u0323", "\u1E9B\u0323"},
        {"\u1112\u1161\u11AB", "\uD55C"},  {"\u212B", "\u00C5"},
        {"\u0958", "\u0915\u093C"},        {"\U0001F600\U0001F600", "\U0001F600\U0001F600"},
    };
    for (size_t i = 0; i < sizeof nfc / sizeof *nfc; i++) {
        char *out = NULL;
        size_t bytes = 0;
        OK(ctn__nfc(nfc[i][0], strlen(nfc[i][0]), &out, &bytes));
        assert_non_null(out);
        assert_int_equal(bytes, strlen(nfc[i][1]));
        assert_memory_equal(out, nfc[i][1], bytes);
        ctn__free(out);
    }
}

/* A million marks that each come before the million marks written first. */
static void many_marks(void **state)
{
    (void)state;
    enum { MARKS = 1000000 };
    char *text = malloc(4 * MARKS + 1), *out = NULL;
    size_t n = 0;
    assert_non_null(text);
    text[0] = 'q';
    for (int i = 0; i < 2 * MARKS; i++)
        memcpy(text + 1 + 2 * i, i < MARKS ? "\u0307" : "\u0323", 2);
    OK(ctn__nfc(text, 4 * MARKS + 1, &out, &n));
    assert_int_equal(n, 4 * MARKS + 1);
    assert_true(out[0] == 'q');
    assert_memory_equal(out + 1, text + 1 + 2 * MARKS, 2 * MARKS);
    assert_memory_equal(out + 1 + 2 * MARKS, text + 1, 2 * MARKS);
    ctn__free(out);
    free(text);
}

/* ---- WordPiece ------------------------------------------------------------------------------- */

static void wordpiece(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"unaffable", "un|##aff|##able"},
        {"  UnAffable\tTHE\r\n", "un|##aff|##able|the"},
        {"unknown", "[UNK]"},
        {"hello!hellos", "hello|!|hello|##s"},
        {"the[MASK]the", "the|[MASK]|the"},
        {"the [mask]", "the|[UNK]|[UNK]|[UNK]"},
        {"É é e\xCC\x81", "e|e|e"},
        {"中文the", "中|文|the"},
        {"h\xC2\xAD"
         "ello\x01\xEF\xBF\xBD\xFF",
         "hello"},
        {"한", "\xE1\x84\x92|##\xE1\x85\xA1|##\xE1\x86\xAB"},
        {"", ""},
    };
    ctn_tokenizer *t = open_bert(0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(tokens_of(t, cases[i][0]), cases[i][1]);
    char word[102] = "";
    memset(word, 'x', 100);
    assert_int_equal(ctn_tokenizer_encode(t, word, 100, NULL, 0), 100);
    word[100] = 'x';
    assert_string_equal(tokens_of(t, word), "[UNK]");
    const int32_t ids[] = {2, 9, 5, 6, 7, 3};
    char back[64];
    assert_int_equal(ctn_tokenizer_decode(t, ids, 6, back, sizeof back), 25);
    assert_string_equal(back, "[CLS] the unaffable [SEP]");
    assert_int_equal(ctn_tokenizer_end(t), 3);
    ctn_tokenizer_free(t);
    t = open_bert(1);
    assert_string_equal(tokens_of(t, "E eé THE"), "E|e|##é|[UNK]");
    ctn_tokenizer_free(t);
}

static void wordpiece_of_json(void **state)
{
    (void)state;
    static const char json[] =
        "{\"added_tokens\":[{\"id\":1,\"content\":\"[UNK]\",\"special\":true}],\"normalizer\":"
        "{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":false,"
        "\"strip_accents\":false,\"lowercase\":true},\"pre_tokenizer\":{\"type\":"
        "\"BertPreTokenizer\"},\"model\":{\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":"
        "\"##\",\"max_input_chars_per_word\":3,\"vocab\":{\"[UNK]\":1,\"é\":0,\"##i\xCC\x87\":2}}}";
    ctn_tokenizer *t = NULL;
    write_bytes("w.json", json, sizeof json - 1);
    OK(ctn_tokenizer_open(&t, "w.json", NULL));
    assert_string_equal(tokens_of(t, "ÉİX é éééé"), "[UNK]|é|[UNK]");
    assert_string_equal(tokens_of(t, "Éİ"), "é|##i\xCC\x87");
    ctn_tokenizer_free(t);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void characters_are_not_torn(void **state)
{
    (void)state;
    static const char text[] = "a€😀\xF0\x9F z";
    ctn_tokenizer *t = open_bpe(GPT2, "");
    ctn_decode_state s = {0};
    char all[64] = "", piece[16];
    for (const char *p = text; *p; p++) {
        const int32_t id = ctn_tokenizer_id(t, p, 1);
        const int64_t n = ctn_tokenizer_decode_next(t, &s, id, piece, sizeof piece);
        assert_true(n >= 0 && n < 5);
        if (*p == 'a') assert_int_equal(n, 1);
        if (p == text + 1 || p == text + 2) assert_int_equal(n, 0);
        if (p == text + 3) assert_string_equal(piece, "€");
        strcat(all, piece);
    }
    assert_int_equal(ctn_tokenizer_decode_next(t, &s, 0xE2, piece, sizeof piece), 0);
    assert_int_equal(ctn_tokenizer_decode_next(t, &s, -1, piece, 1), 1); /* no room: try again */
    assert_int_equal(ctn_tokenizer_decode_next(t, &s, -1, piece, sizeof piece), 1);
    assert_string_equal(all, text);
    assert_string_equal(piece, "\xE2");
    assert_int_equal(ctn_tokenizer_decode_next(t, &s, -1, piece, sizeof piece), 0);
    ctn_tokenizer_free(t);
    t = open_bert(0);
    assert_int_equal(ctn_tokenizer_decode_next(t, &s, 5, piece, sizeof piece), 2);
    assert_int_equal(ctn_tokenizer_decode_next(t, &s, 7, piece, sizeof piece), 4);
    assert_int_equal(ctn_tokenizer_decode_next(t, &s, 9, piece, sizeof piece), 4);
    assert_string_equal(piece, " the");
    ctn_tokenizer_free(t);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void refused(const char *pre, const char *added, const char *normalizer, const char *options,
                    ctn_status want, const char *part)
{
    ctn_tokenizer *t = NULL;
    assert_fails(ctn_tokenizer_open(&t, write_bpe("r.json", pre, added, normalizer, options), NULL),
                 want, part);
    assert_null(t);
}

static void damaged(const char *name, const char *text, ctn_status want, const char *part)
{
    ctn_tokenizer *t = NULL;
    write_bytes(name, text, strlen(text));
    assert_fails(ctn_tokenizer_open(&t, name, NULL), want, part);
    assert_null(t);
}

static void other_tokenizers_are_refused_by_name(void **state)
{
    (void)state;
    const ctn_status no = CTN_EUNSUPPORTED;
    refused("{\"type\":\"Metaspace\"}", "", "null", "", no, "'Metaspace'");
    refused("{\"type\":\"ByteLevel\"}", "", "null", "", no, "add_prefix_space");
    refused("{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}", "", "null",
            "", no, "without a pattern");
    refused("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"}]}", "", "null", "", no,
            "'Digits'");
    refused("{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":"
            "\"x+y\"}}," GPT2 "]}",
            "", "null", "", no, "x+y");
    refused(GPT2, "", "{\"type\":\"NFKC\"}", "", no, "'NFKC'");
    refused(GPT2, "", "null", "\"dropout\":0.1,", no, "dropout");
    refused(GPT2, "{\"id\":9,\"content\":\"a\",\"single_word\":true}", "null", "", no,
            "single_word");
    refused(GPT2, "{\"id\":300,\"content\":\"a\",\"normalized\":true}", "{\"type\":\"NFC\"}", "",
            no, "normalized");
    refused(GPT2, "{\"id\":9,\"content\":\"other\"}", "null", "", CTN_EFORMAT, "the number 9");
    refused(GPT2, "{\"id\":99999999,\"content\":\"x\"}", "null", "", CTN_EFORMAT, "99999999");
    refused(GPT2, "{\"content\":\"x\"}", "null", "", CTN_EFORMAT, "no id");
    damaged("u.json", "{\"model\":{\"type\":\"Unigram\"}}", no, "'Unigram'");
}

static void damaged_files(void **state)
{
    (void)state;
    ctn_tokenizer *t = NULL;
    const ctn_status bad = CTN_EFORMAT;
    damaged("d.json", "{", bad, "d.json: not JSON");
    damaged("d.json", "[]", bad, "not an object");
    damaged("d.json", "{\"a\":1.5}", bad, "'a'");
    damaged("d.json", "{\"a\":-1}", bad, "'a'");
    damaged("d.json", "{\"a\":1,\"b\":1}", bad, "same number 1");
    damaged("d.json", "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0}}}", bad, "merges");
    damaged("d.json", "{\"model\":{\"merges\":[],\"vocab\":{\"a\":0}}}", bad, "no token for byte");
    damaged("d.json", "{\"model\":{\"merges\":[\"ab\"],\"vocab\":{\"a\":0}}}", bad, "one space");
    damaged("d.json", "{\"model\":{\"merges\":[[1]],\"vocab\":{\"a\":0}}}", bad, "a pair");
    damaged("d.json", "{\"model\":{\"merges\":[\"a b\"],\"vocab\":{\"a\":0}}}", bad, "the second");
    damaged("d.json", "{\"model\":{\"type\":\"WordPiece\",\"vocab\":{\"a\":0}}}", bad, "unknown");
    damaged("d.json", "{\"model\":{\"max_input_chars_per_word\":201}}", bad, "1 to 200");
    damaged("d.txt", "a\nb\n", bad, "[UNK]");
    assert_fails(ctn_tokenizer_open(&t, "missing.json", NULL), CTN_EIO, "missing.json");
    mkdir("empty", 0777);
    assert_fails(ctn_tokenizer_open(&t, "empty", NULL), CTN_ENOTFOUND, "empty");
    mkdir("alone", 0777);
    write_bytes("alone/vocab.json", "{\"a\":0}", 7);
    assert_fails(ctn_tokenizer_open(&t, "alone", NULL), CTN_EIO, "alone/merges.txt");
    assert_fails(ctn_tokenizer_open(NULL, "x", NULL), CTN_EARG, "NULL");
    t = open_bpe(GPT2, "");
    const int32_t wrong = 5000;
    assert_fails((ctn_status)ctn_tokenizer_decode(t, &wrong, 1, NULL, 0), CTN_EARG, "5000");
    assert_fails((ctn_status)ctn_tokenizer_encode(t, NULL, 1, NULL, 0), CTN_EARG, "NULL");
    ctn_tokenizer_free(t);
    ctn_tokenizer_free(NULL);
}

/* ---- packing --------------------------------------------------------------------------------- */

enum { TEXT = 6000 };

/* Odd text: few places to cut, white space of all kinds, bytes that are not UTF-8. */
static size_t odd_text(char *text, int kind)
{
    static const char *const part[] = {
        "ab", "abc",      " ",      "\n",    "  ",       "\r\n",          "\xE3\x80\x80", "'s",
        "12", "!!",       "é",      "中",    "<m>",      "<|endoftext|>", "\xFF",         "\x80",
        "x",  "\xCC\x81", "[MASK]", "hello", "\xC2\xA0", "\xE3"};
    size_t n = 0;
    while (n < TEXT - 32) {
        const char *s = part[below(sizeof part / sizeof *part)];
        if (kind == 1 && (*s == ' ' || *s == '\n')) s = "abc";
        memcpy(text + n, s, strlen(s));
        n += strlen(s);
    }
    return n;
}

static void check_pack(const ctn_tokenizer *t, const char *text, size_t n, int threads,
                       int64_t piece)
{
    static int32_t ids[2 * TEXT];
    static uint8_t packed[8 * TEXT];
    const char *const path[] = {"empty.in", "odd.in"};
    int64_t tokens = 0;
    const int32_t end = ctn_tokenizer_end(t);
    const int width = ctn_tokenizer_tokens(t) > 65536 ? 4 : 2;
    OK(ctn_tokens_pack(t, 2, path, "packed.bin", &tokens,
                       CTN_OPT(ctn_tokens_pack_opt, .threads = threads, .piece = piece)));
    const int64_t k = ctn_tokenizer_encode(t, text, n, ids + 1, 2 * TEXT - 2);
    assert_true(k >= 0 && k <= 2 * TEXT - 2);
    ids[0] = ids[k + 1] = end;
    assert_int_equal(tokens, k + 2);
    FILE *f = fopen("packed.bin", "rb");
    assert_non_null(f);
    assert_int_equal(fread(packed, 1, sizeof packed, f), (k + 2) * width);
    fclose(f);
    for (int64_t i = 0; i < k + 2; i++) {
        uint32_t v = 0;
        for (int b = 0; b < width; b++) v |= (uint32_t)packed[i * width + b] << 8 * b;
        if ((int32_t)v != ids[i])
            fail_msg("token %lld is %u, expected %d (threads %d, piece %lld)", (long long)i, v,
                     ids[i], threads, (long long)piece);
    }
}

static void pieces_do_not_matter(void **state)
{
    (void)state;
    static char text[TEXT];
    static const char *const strip = END_TOKEN ",{\"id\":70000,\"content\":\"<m>\",\"lstrip\":true,"
                                               "\"rstrip\":true}";
    static const int64_t sizes[] = {1, 8, 13, 64, 100, 1000, 0};
    ctn_tokenizer *t[4] = {open_bpe(GPT2, END_TOKEN), open_bpe(LLAMA3, strip), open_bert(0), NULL};
    OK(ctn_tokenizer_open(&t[3], write_bpe("n.json", LLAMA3, END_TOKEN, "{\"type\":\"NFC\"}", ""),
                          NULL));
    write_bytes("empty.in", "", 0);
    for (int trial = 0; trial < 6; trial++) {
        const size_t n = odd_text(text, trial % 3);
        write_bytes("odd.in", text, n);
        for (int k = 0; k < 4; k++)
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
                check_pack(t[k], text, n, i % 2 ? 3 : 1, sizes[i]);
    }
    for (int k = 0; k < 4; k++) ctn_tokenizer_free(t[k]);
}

/* A token takes 2 bytes if the vocabulary has at most 65536 tokens, otherwise 4. */
static void tokens_have_two_or_four_bytes(void **state)
{
    (void)state;
    enum { MOST = 65536 };
    static char words[(MOST + 1) * 8];
    const char *const path[] = {"odd.in"};
    write_bytes("odd.in", "w1 w65535", 9);
    for (int more = 0; more < 2; more++) { /* the last token, which ends a document, is 0 */
        static const uint8_t two[] = {1, 0, 255, 255, 0, 0},
                             four[] = {1, 0, 0, 0, 255, 255, 0, 0, 0, 0, 0, 0};
        uint8_t got[16];
        ctn_tokenizer *t = NULL;
        int64_t tokens = 0;
        size_t n = (size_t)sprintf(words, "[UNK]\n");
        for (int i = 1; i < MOST + more; i++) n += (size_t)sprintf(words + n, "w%d\n", i);
        write_bytes("vocab.txt", words, n);
        OK(ctn_tokenizer_open(&t, "vocab.txt", NULL));
        assert_int_equal(ctn_tokenizer_tokens(t), MOST + more);
        OK(ctn_tokens_pack(t, 1, path, "out.bin", &tokens,
                           CTN_OPT(ctn_tokens_pack_opt, .end = "[UNK]", .threads = 1)));
        assert_int_equal(tokens, 3);
        FILE *f = fopen("out.bin", "rb");
        assert_non_null(f);
        assert_int_equal(fread(got, 1, sizeof got, f), more ? sizeof four : sizeof two);
        fclose(f);
        assert_memory_equal(got, more ? four : two, more ? sizeof four : sizeof two);
        ctn_tokenizer_free(t);
    }
}

static void list_progress(void *user, int64_t done, int64_t all)
{
    char *text = user;
    sprintf(text + strlen(text), "%lld/%lld ", (long long)done, (long long)all);
}

/* Told before each round of four pieces per thread, and at the end. A piece of 16 bytes ends before
 * its last space that five bytes follow: the first has 11 bytes, the next ones 6. */
static void progress_is_told(void **state)
{
    (void)state;
    const char *const path[] = {"odd.in", "other.in"};
    char text[256] = "";
    ctn_tokenizer *t = open_bpe(GPT2, "");
    write_bytes("odd.in", "aaaaa bbbbb ccccc aaaaa bbbbb ccccc aaaaa bbbbb", 47);
    write_bytes("other.in", "abc", 3);
    OK(ctn_tokens_pack(t, 2, path, "out.bin", NULL,
                       CTN_OPT(ctn_tokens_pack_opt, .end = "", .threads = 1, .piece = 16,
                               .progress = list_progress, .user = text)));
    assert_string_equal(text, "0/50 29/50 50/50 ");
    ctn_tokenizer_free(t);
}

static void count_progress(void *user, int64_t done, int64_t all)
{
    int64_t *seen = user;
    assert_true(done >= seen[0] && done <= all);
    seen[0] = done;
    seen[1] = all;
}

static void packing_fails_cleanly(void **state)
{
    (void)state;
    const char *const path[] = {"odd.in", "missing.in"};
    int64_t tokens = 7, seen[2] = {0};
    ctn_tokenizer *t = open_bpe(GPT2, "");
    write_bytes("odd.in", "abc abc", 7);
    unlink("out.bin"); /* of an earlier run */
    assert_fails(ctn_tokens_pack(t, 1, path, "out.bin", &tokens, NULL), CTN_ENOTFOUND,
                 "end a document");
    const ctn_tokens_pack_opt *none = CTN_OPT(ctn_tokens_pack_opt, .end = "", .threads = 2,
                                              .progress = count_progress, .user = seen);
    assert_fails(ctn_tokens_pack(t, 2, path, "out.bin", &tokens, none), CTN_EIO, "missing.in");
    assert_int_equal(tokens, 0);
    assert_int_not_equal(access("out.bin", F_OK), 0);
    assert_fails(ctn_tokens_pack(t, 1, path, "no/folder/out.bin", NULL, none), CTN_EIO, "folder");
    assert_fails(ctn_tokens_pack(t, 0, path, "out.bin", NULL, none), CTN_EARG, "no file");
    assert_fails(ctn_tokens_pack(NULL, 1, path, "out.bin", NULL, none), CTN_EARG, "NULL");
    assert_fails(ctn_tokens_pack(t, 1, NULL, "out.bin", NULL, none), CTN_EARG, "NULL");
    assert_fails(ctn_tokens_pack(t, 1, path, NULL, NULL, none), CTN_EARG, "NULL");
    assert_fails(ctn_tokens_pack(t, 1, path, "out.bin", NULL,
                                 CTN_OPT(ctn_tokens_pack_opt, .threads = -1)),
                 CTN_EARG, "threads is -1");
    assert_fails(ctn_tokens_pack(t, 1, path, "out.bin", NULL,
                                 CTN_OPT(ctn_tokens_pack_opt, .threads = 4097)),
                 CTN_EARG, "threads is 4097");
    assert_fails(ctn_tokens_pack(t, 1, path, "out.bin", NULL,
                                 CTN_OPT(ctn_tokens_pack_opt, .piece = -1)),
                 CTN_EARG, "piece is -1");
    assert_fails(ctn_tokens_pack(t, 1, path, "out.bin", NULL,
                                 CTN_OPT(ctn_tokens_pack_opt, .piece = (int64_t)INT32_MAX + 1)),
                 CTN_EARG, "piece is 2147483648");
    OK(ctn_tokens_pack(t, 1, path, "out.bin", &tokens, none));
    assert_int_equal(tokens, 3);
    assert_true(seen[0] == 7 && seen[1] == 7);
    ctn_tokenizer_free(t);
}

/* ---- memory and threads ---------------------------------------------------------------------- */

static ctn_status everything(const char *file)
{
    static char word[200];
    ctn_tokenizer *t = NULL;
    const char *path = "odd.in";
    int64_t n = 0;
    CTN_TRY(ctn_tokenizer_open(&t, file, NULL));
    memset(word, 'c', sizeof word);
    n = ctn_tokenizer_encode(t, word, sizeof word, NULL, 0);
    if (n > 0) n = ctn_tokenizer_encode(t, "e\xCC\x81", 3, NULL, 0);
    ctn_status st = n < 0 ? (ctn_status)n
                          : ctn_tokens_pack(t, 1, &path, "out.bin", NULL,
                                            CTN_OPT(ctn_tokens_pack_opt, .end = "", .threads = 1));
    ctn_tokenizer_free(t);
    return st;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    static failing_once memory;
    const char *const file[] = {write_bpe("n.json", LLAMA3, END_TOKEN, "{\"type\":\"NFC\"}", ""),
                                "vocab.txt"};
    write_bytes("vocab.txt", vocabulary, sizeof vocabulary - 1);
    write_bytes("odd.in", "abc abc", 7);
    ctn_allocator a = {failing_once_alloc, failing_once_release, &memory};
    OK(ctn_set_allocator(&a));
    for (int k = 0; k < 2; k++) {
        memory.fail_at = 0;
        memory.calls = 0;
        OK(everything(file[k]));
        const long calls = memory.calls, step = calls > 400 ? calls / 200 : 1;
        for (long i = 1; i <= calls; i += i + 60 < calls ? step : 1) {
            memory.fail_at = i;
            memory.calls = 0;
            const ctn_status st = everything(file[k]);
            /* The last one is for syncing the folder, which may fail. */
            if (st != (i < calls ? CTN_ENOMEM : CTN_OK) || ctn_error_message()[0] == 0 ||
                memory.live)
                fail_msg("allocation %ld of %ld: status %d, %ld blocks left: %s", i, calls, st,
                         (long)memory.live, ctn_error_message());
            ctn_error_clear();
        }
    }
    OK(ctn_set_allocator(NULL));
}

static void *encode_often(void *arg)
{
    const ctn_tokenizer *t = arg;
    char text[3000];
    int64_t sum = 0;
    for (size_t i = 0; i < sizeof text; i++) text[i] = "abc abccca12!"[i * i % 13];
    for (int i = 0; i < 20; i++) sum += ctn_tokenizer_encode(t, text, sizeof text, NULL, 0);
    return (void *)(intptr_t)sum;
}

static void several_threads(void **state)
{
    (void)state;
    pthread_t thread[4];
    ctn_tokenizer *t = open_bpe(GPT2, END_TOKEN);
    void *want = encode_often(t), *got = NULL;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, encode_often, t), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], &got);
        assert_ptr_equal(got, want);
    }
    ctn_tokenizer_free(t);
}

/* The first and last characters of each length, and what is not a character. */
static void utf8_at_the_borders(void **state)
{
    (void)state;
    static const struct {
        uint32_t c;
        const char *bytes;
    } all[] = {
        {0x1, "\x01"},
        {0x7F, "\x7f"},
        {0x80, "\xc2\x80"},
        {0x7FF, "\xdf\xbf"},
        {0x800, "\xe0\xa0\x80"},
        {0xD7FF, "\xed\x9f\xbf"},
        {0xE000, "\xee\x80\x80"},
        {0xFFFF, "\xef\xbf\xbf"},
        {0x10000, "\xf0\x90\x80\x80"},
        {0x20000, "\xf0\xa0\x80\x80"},
        {0x10FFFF, "\xf4\x8f\xbf\xbf"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char out[5] = {0};
        uint32_t c = 0;
        const size_t n = strlen(all[i].bytes);
        assert_int_equal(ctn__utf8_put(all[i].c, out), n);
        assert_string_equal(out, all[i].bytes);
        assert_int_equal(ctn__utf8_get(out, out + n, &c), n);
        assert_int_equal(c, all[i].c);
        for (size_t k = 1; k < n; k++) { /* cut off, or with another byte in it */
            assert_int_equal(ctn__utf8_get(out, out + k, &c), 1);
            assert_int_equal(c, CTN__BAD_CHAR);
            for (int other = 0; other < 2; other++) {
                out[k] = "A\xc0"[other];
                assert_int_equal(ctn__utf8_get(out, out + n, &c), 1);
                assert_int_equal(c, CTN__BAD_CHAR);
            }
            out[k] = all[i].bytes[k];
        }
    }
    /* Too long forms, surrogates, beyond the last one, cut off, and no first byte. */
    static const char *const bad[] = {
        "\xc1\xbf",         "\xe0\x9f\xbf",     "\xed\xa0\x80", "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xe0\xa0",     "\xf0\xbf\xbf",
        "\xf5\x80\x80\x80", "\x80\x80",         "\xff"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t c = 0;
        assert_int_equal(ctn__utf8_get(bad[i], bad[i] + strlen(bad[i]), &c), 1);
        assert_int_equal(c, CTN__BAD_CHAR);
    }
}

/* The property White_Space of all characters; classes of ASCII, as those of the C library. */
static void classes_of_characters(void **state)
{
    (void)state;
    static const uint32_t range[][2] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},
                                        {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
                                        {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                        {0x3000, 0x3000}};
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        bool space = false;
        for (size_t i = 0; i < sizeof range / sizeof *range; i++)
            space = space || (c >= range[i][0] && c <= range[i][1]);
        if (ctn__is_space(c) != space) fail_msg("U+%04X", c);
        if (space) assert_int_equal(ctn__kind_of(c), CTN__SPACE);
    }
    for (uint32_t c = 0; c < 0x81; c++) {
        const bool letter = c < 0x80 && isalpha((int)c), digit = c < 0x80 && isdigit((int)c);
        const ctn__kind kind = letter             ? CTN__LETTER
                               : digit            ? CTN__NUMBER
                               : ctn__is_space(c) ? CTN__SPACE
                                                  : CTN__OTHER;
        assert_int_equal(ctn__kind_of(c), kind);
        assert_int_equal(ctn__is_punct(c), c < 0x80 && ispunct((int)c));
        assert_int_equal(ctn__is_control(c), c < 32 || c >= 127);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_patterns),
        cmocka_unit_test(merges_are_in_order),
        cmocka_unit_test(a_long_word),
        cmocka_unit_test(merges_are_ignored_on_request),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(counts_are_those_of_snprintf),
        cmocka_unit_test(special_tokens),
        cmocka_unit_test(tokens_around),
        cmocka_unit_test(many_special_tokens),
        cmocka_unit_test(words_of_one_slot),
        cmocka_unit_test(text_is_normalised),
        cmocka_unit_test(many_marks),
        cmocka_unit_test(wordpiece),
        cmocka_unit_test(wordpiece_of_json),
        cmocka_unit_test(characters_are_not_torn),
        cmocka_unit_test(utf8_at_the_borders),
        cmocka_unit_test(classes_of_characters),
        cmocka_unit_test(other_tokenizers_are_refused_by_name),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(tokens_have_two_or_four_bytes),
        cmocka_unit_test(progress_is_told),
        cmocka_unit_test(packing_fails_cleanly),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(several_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("skipped: built without utf8proc or yyjson");
    return 77;
}

#endif
