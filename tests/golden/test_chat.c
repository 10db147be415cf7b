/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates against the package `transformers` (chat.py): small templates for the rules of
 * Jinja, and those of chat/ with several conversations. Where it raises an error, so must we.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <catena/catena.h>

#include "chat.inc"
#include "support/check.h"
#include "support/ok.h"

#if defined(CTN_HAVE_UTF8PROC) && defined(CTN_HAVE_YYJSON)

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* A tokenizer with this template. */
static ctn_tokenizer *open_with(const char *template)
{
    ctn_tokenizer *t = NULL;
    write_text("vocab.txt", "[UNK]\na\n");
    write_text("special_tokens_map.json",
               "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},"
               "\"unk_token\":\"<unk>\",\"pad_token\":\"<pad>\"}");
    write_text("chat_template.jinja", template);
    OK(ctn_tokenizer_open(&t, "vocab.txt", NULL));
    return t;
}

static int check(const char *name, const char *template, const char *messages, int prompt,
                 const char *want)
{
    ctn_tokenizer *t = open_with(template);
    static char text[1 << 16];
    const int64_t n =
        ctn_tokenizer_chat(t, messages, strlen(messages),
                           CTN_OPT(ctn_chat_opt, .no_prompt = !prompt), text, sizeof text);
    const int right = want ? n == (int64_t)strlen(want) && strcmp(text, want) == 0 : n < 0;
    if (!right)
        print_error("%s\n  %s\n  gives %s\n  wants %s\n", name, template,
                    n < 0 ? ctn_error_message() : text, want ? want : "an error");
    ctn_error_clear();
    ctn_tokenizer_free(t);
    return !right;
}

static void rules_of_jinja(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        wrong += check("rule", rules[i].template, rule_messages, 1, rules[i].want);
    assert_int_equal(wrong, 0);
}

static char *read_whole(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/golden/chat/%s", CTN_TESTS_DIR, name);
    FILE *f = fopen(path, "rb");
    char *text = calloc(1, 1 << 16);
    if (!f || !text) fail_msg("cannot open %s", path);
    assert_true(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

static void published_templates(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof chats / sizeof *chats; i++) {
        char *template = read_whole(chats[i].file), name[100];
        snprintf(name, sizeof name, "%s, %s", chats[i].file, chats[i].name);
        wrong += check(name, template, chats[i].messages, chats[i].prompt, chats[i].want);
        free(template);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_of_jinja),
        cmocka_unit_test(published_templates),
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
