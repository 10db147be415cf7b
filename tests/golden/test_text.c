/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of 10 MB of mixed text (mixed_text.h) against the package `tokenizers` (text.py): number
 * and hash for each MB, so that a difference can be located; `dev/tokens` then shows it. WordPiece
 * with text/vocab.txt, and BPE in the manner of Llama 3 with text/llama.json. With CATENA_DATA also
 * GPT-2's BPE, from vocab.json with merges.txt and from a tokenizer.json that is made of them, and
 * tinyshakespeare as part 0.
 *
 * `test_text --write FILE` writes the text for text.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "hashed.h"
#include "mixed_text.h"
#include "text.inc"

#if defined(CTN_HAVE_UTF8PROC) && defined(CTN_HAVE_YYJSON)

static char part_text[MIXED_ROOM + 200000]; /* tinyshakespeare has 1.1 MB */
static int32_t ids[sizeof part_text];

static char *read_whole(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("cannot open %s", path);
    fseek(f, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(f);
    fseek(f, 0, SEEK_SET);
    char *text = malloc(bytes + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, bytes, f), bytes);
    fclose(f);
    text[bytes] = 0;
    *n = bytes;
    return text;
}

/* Part 0 is tinyshakespeare; returns 0 if it is not there. */
static size_t make_part(int part)
{
    char path[1024];
    size_t n = 0;
    if (part > 0) return mixed_make(part_text, (uint32_t)part);
    if (!data_path(path, sizeof path, "tinyshakespeare/input.txt")) return 0;
    char *text = read_whole(path, &n);
    assert_true(n < sizeof part_text);
    memcpy(part_text, text, n);
    free(text);
    return n;
}

static void compare(const char *what, const char *path, const struct golden *want)
{
    ctn_tokenizer *t = NULL;
    OK(ctn_tokenizer_open(&t, path, NULL));
    for (int part = 0; part <= MIXED_PARTS; part++) {
        const size_t bytes = make_part(part);
        if (bytes == 0) {
            print_message("%s: part 0 skipped: needs CATENA_DATA\n", what);
            continue;
        }
        const int64_t n = ctn_tokenizer_encode(t, part_text, bytes, ids, sizeof ids / sizeof *ids);
        uint64_t hash = 0xCBF29CE484222325u;
        for (int64_t i = 0; i < n; i++) hash = (hash ^ (uint64_t)ids[i]) * 0x100000001B3u;
        if (n != want[part].tokens || hash != want[part].hash)
            fail_msg("%s: part %d has %lld tokens and hash %016llx, `tokenizers` has %lld and "
                     "%016llx (dev/tokens shows the first difference)",
                     what, part, (long long)n, (unsigned long long)hash,
                     (long long)want[part].tokens, (unsigned long long)want[part].hash);
    }
    ctn_tokenizer_free(t);
}

static void wordpiece(void **state)
{
    (void)state;
    compare("WordPiece", CTN_TESTS_DIR "/golden/text/vocab.txt", golden_wordpiece);
}

static void llama(void **state)
{
    (void)state;
    compare("Llama 3", CTN_TESTS_DIR "/golden/text/llama.json", golden_llama);
}

static void gpt2(void **state)
{
    (void)state;
    char path[1024];
    if (!data_path(path, sizeof path, "gpt2-tokenizer")) {
        print_message("skipped: needs CATENA_DATA\n");
        skip();
    }
    compare("GPT-2", path, golden_gpt2);
}

/* Writes the lines of merges.txt as JSON texts. */
static void write_merges(FILE *f, char *text)
{
    const char *between = "";
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "#version", 8) == 0) continue;
        fprintf(f, "%s\"", between);
        for (; *line; line++) {
            if (*line == '"' || *line == '\\') fputc('\\', f);
            fputc(*line, f);
        }
        fputc('"', f);
        between = ",";
    }
}

static void gpt2_json(void **state)
{
    (void)state;
    char path[1024];
    size_t n = 0;
    if (!data_path(path, sizeof path, "gpt2-tokenizer/encoder.json")) {
        print_message("skipped: needs CATENA_DATA\n");
        skip();
    }
    char *vocabulary = read_whole(path, &n);
    data_path(path, sizeof path, "gpt2-tokenizer/vocab.bpe");
    char *merges = read_whole(path, &n);
    FILE *f = fopen("gpt2.json", "wb");
    assert_non_null(f);
    fprintf(f,
            "{\"added_tokens\":[{\"id\":50256,\"content\":\"<|endoftext|>\",\"single_word\":false,"
            "\"lstrip\":false,\"rstrip\":false,\"normalized\":true,\"special\":true}],"
            "\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":"
            "false,\"trim_offsets\":true},\"model\":{\"dropout\":null,\"unk_token\":null,"
            "\"continuing_subword_prefix\":\"\",\"end_of_word_suffix\":\"\",\"vocab\":%s,"
            "\"merges\":[",
            vocabulary);
    write_merges(f, merges);
    fprintf(f, "]}}");
    fclose(f);
    free(vocabulary);
    free(merges);
    compare("GPT-2's tokenizer.json", "gpt2.json", golden_gpt2);
    unlink("gpt2.json");
}

static int write_text(const char *path)
{
    FILE *f = fopen(path, "wb");
    if (!f) return 1;
    for (int part = 0; part <= MIXED_PARTS; part++) {
        const size_t n = make_part(part);
        fprintf(f, "%zu\n", n);
        fwrite(part_text, 1, n, f);
    }
    return fclose(f) != 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--write") == 0) return write_text(argv[2]);
    const struct CMUnitTest tests[] = {cmocka_unit_test(wordpiece), cmocka_unit_test(llama),
                                       cmocka_unit_test(gpt2), cmocka_unit_test(gpt2_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
    puts("skipped: built without utf8proc or yyjson");
    return 77;
}

#endif
