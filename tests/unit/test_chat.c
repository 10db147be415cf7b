/* SPDX-License-Identifier: Apache-2.0
 *
 * Chat templates: where the template and the special tokens come from, sizes of results, messages
 * of errors, and hostile templates and conversations, which must end with an error. The comparison
 * with the package `transformers` is tests/golden/test_chat.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "data/text/template.h"
#include "support/check.h"
#include "support/ok.h"

#if defined(CTN_HAVE_UTF8PROC) && defined(CTN_HAVE_YYJSON)

#define HELLO "[{\"role\":\"user\",\"content\":\"Hello\"}]"

static void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* The folder "m" with these files; NULL: without one. */
static ctn_tokenizer *open_model(const char *jinja, const char *config)
{
    ctn_tokenizer *t = NULL;
    mkdir("m", 0777);
    unlink("m/chat_template.jinja");
    unlink("m/tokenizer_config.json");
    write_text("m/vocab.txt", "[UNK]\na\n");
    if (jinja) write_text("m/chat_template.jinja", jinja);
    if (config) write_text("m/tokenizer_config.json", config);
    OK(ctn_tokenizer_open(&t, "m", NULL));
    return t;
}

/* The text, or the message of the error. */
static const char *chat(const char *jinja, const char *config, const char *messages,
                        ctn_status want)
{
    static char text[4096];
    ctn_tokenizer *t = open_model(jinja, config);
    const int64_t n = ctn_tokenizer_chat(t, messages, strlen(messages), NULL, text, sizeof text);
    assert_int_equal(n < 0 ? n : 0, want);
    if (n < 0) snprintf(text, sizeof text, "%s", ctn_error_message());
    ctn_error_clear();
    ctn_tokenizer_free(t);
    return text;
}

static const char *render(const char *template)
{
    return chat(template, NULL, HELLO, CTN_OK);
}

static void fails(const char *template, ctn_status want, const char *with)
{
    const char *message = chat(template, NULL, HELLO, want);
    if (!strstr(message, with)) fail_msg("'%s' is not in: %s", with, message);
}

/* ---- files and results ----------------------------------------------------------------------- */

static void sources(void **state)
{
    (void)state;
    const char *two = "{\"chat_template\":[{\"name\":\"rag\",\"template\":\"r\"},"
                      "{\"name\":\"default\",\"template\":\"d\"}]}";
    assert_string_equal(chat("j", "{\"chat_template\":\"c\"}", HELLO, CTN_OK), "j");
    assert_string_equal(chat(NULL, "{\"chat_template\":\"c\"}", HELLO, CTN_OK), "c");
    assert_string_equal(chat(NULL, two, HELLO, CTN_OK), "d");
    assert_non_null(strstr(chat(NULL, "{}", HELLO, CTN_ENOTFOUND), "no chat template"));
    assert_non_null(strstr(chat(NULL, NULL, HELLO, CTN_ENOTFOUND), "chat_template.jinja"));
    assert_non_null(strstr(chat(NULL, "{\"chat_template\":[]}", HELLO, CTN_ENOTFOUND), "default"));
    chat(NULL, "{", HELLO, CTN_EFORMAT);
    chat(NULL, "[]", HELLO, CTN_EFORMAT);
}

static void special_tokens(void **state)
{
    (void)state;
    const char *config = "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"</s>\"},"
                         "\"pad_token\":null}";
    write_text("m/special_tokens_map.json", "{\"unk_token\":\"<unk>\",\"bos_token\":\"no\"}");
    assert_string_equal(chat("{{ bos_token }}{{ eos_token }}{{ unk_token }}{{ pad_token is "
                             "defined }}{{ tools is none }}{{ other is defined }}",
                             config, HELLO, CTN_OK),
                        "<s></s><unk>FalseTrueFalse");
    unlink("m/special_tokens_map.json");
}

static void results(void **state)
{
    (void)state;
    char text[8] = "-------";
    ctn_tokenizer *t = open_model("{{ messages[0].content }}{% if add_generation_prompt %}:"
                                  "{% endif %}",
                                  NULL);
    assert_int_equal(ctn_tokenizer_chat(t, HELLO, strlen(HELLO), NULL, NULL, 0), 6);
    assert_int_equal(ctn_tokenizer_chat(t, HELLO, strlen(HELLO), NULL, text, 4), 6);
    assert_string_equal(text, "Hel");
    assert_int_equal(text[4], '-');
    assert_int_equal(ctn_tokenizer_chat(t, HELLO, strlen(HELLO),
                                        CTN_OPT(ctn_chat_opt, .no_prompt = 1), text, 8),
                     5);
    assert_string_equal(text, "Hello");
    assert_int_equal(ctn_tokenizer_chat(NULL, "", 0, NULL, NULL, 0), CTN_EARG);
    ctn_error_clear();
    assert_int_equal(ctn_tokenizer_chat(t, NULL, 0, NULL, NULL, 0), CTN_EARG);
    ctn_error_clear();
    assert_int_equal(ctn_tokenizer_chat(t, HELLO, 1, NULL, NULL, 4), CTN_EARG);
    ctn_error_clear();
    ctn_tokenizer_free(t);
    const char *wrong[] = {"", "{", "1", "{}", "[1]", "[[]]", "{\"messages\":1}", "[{}] x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        chat("x", NULL, wrong[i], CTN_EFORMAT);
    assert_string_equal(chat("{{ messages|length }}", NULL, "[]", CTN_OK), "0");
    assert_string_equal(chat("{{ tools[0].n }}", NULL, "{\"messages\":[],\"tools\":[{\"n\":5}]}",
                             CTN_OK),
                        "5");
    assert_string_equal(chat("{{ messages[0].a }}", NULL, "[{\"a\":1,\"a\":2}]", CTN_OK), "2");
}

static void date(void **state)
{
    (void)state;
    char before[32], after[32];
    const char *year = "%Y-%m-%d";
    time_t now = time(NULL);
    strftime(before, sizeof before, year, localtime(&now));
    const char *text = render("{{ strftime_now('%Y-%m-%d') }}");
    now = time(NULL);
    strftime(after, sizeof after, year, localtime(&now));
    assert_true(strcmp(text, before) == 0 || strcmp(text, after) == 0);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void messages(void **state)
{
    (void)state;
    fails("a\n\n{{ x|sort }}", CTN_EUNSUPPORTED, "chat template, line 3: the filter 'sort'");
    fails("{{ x is escaped }}", CTN_EUNSUPPORTED, "test 'escaped'");
    fails("\n{% include 'x' %}", CTN_EUNSUPPORTED, "line 2: the tag 'include'");
    fails("{% for x in y recursive %}{% endfor %}", CTN_EUNSUPPORTED, "recursive");
    fails("{{ f(*x) }}", CTN_EUNSUPPORTED, "arguments *");
    fails("{% if 1 %}\n{{ 'a'.encode() }}{% endif %}", CTN_EUNSUPPORTED, "method 'encode'");
    fails("{{ cycler(1) }}", CTN_EUNSUPPORTED, "'cycler' is not defined");
    fails("{{ loop.depth }}", CTN_EFORMAT, "'loop' is undefined");
    fails("{% for x in [1] %}{{ loop.depth }}{% endfor %}", CTN_EUNSUPPORTED, "loop.depth");
    fails("{{ nothing.x }}", CTN_EFORMAT, "'nothing' is undefined");
    fails("{{ raise_exception('No \n such') }}", CTN_EARG, "refuses the conversation: No");
    fails("{{ 'a %s' % 1 }}", CTN_EUNSUPPORTED, "'%'");
    fails("{{ 9223372036854775807 + 1 }}", CTN_EUNSUPPORTED, "64 bits");
    fails("{{ 92233720368547758070 }}", CTN_EUNSUPPORTED, "too large");
    fails("{{ (-9223372036854775807 - 1) // -1 }}", CTN_EUNSUPPORTED, "64 bits");
    fails("{{ messages[0].update({}) }}", CTN_EUNSUPPORTED, "cannot change");
    fails("\xFFx", CTN_EFORMAT, "UTF-8");
    fails("{% if 1 %}", CTN_EFORMAT, "endif");
    fails("{% raw %}", CTN_EFORMAT, "endraw");
    fails("{{ '\\N{DASH}' }}", CTN_EUNSUPPORTED, "escape");
    fails("{{ 'stra\xC3\x9F"
          "e'|upper }}",
          CTN_EUNSUPPORTED, "U+00DF");
}

/* ---- hostile templates ----------------------------------------------------------------------- */

static char big[1 << 19];

/* begin, then `times` times `part`, then end */
static const char *repeated(const char *begin, const char *part, size_t times, const char *end)
{
    size_t n = (size_t)snprintf(big, sizeof big, "%s", begin);
    for (size_t i = 0; i < times; i++) {
        assert_true(n + strlen(part) + strlen(end) < sizeof big);
        memcpy(big + n, part, strlen(part));
        n += strlen(part);
    }
    memcpy(big + n, end, strlen(end) + 1);
    return big;
}

static void hostile_depth(void **state)
{
    (void)state;
    static const char *const parts[] = {
        "(",  "[",  "{1:",          "-",       "not ",     "1 if ",           "{% if 1 %}",
        "a[", "f(", "1 if 1 else ", "x|join(", "x is eq(", "{% for x in y %}"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const int tag = parts[i][1] == '%';
        char text[4096];
        ctn_tokenizer *t = open_model(repeated(tag ? "" : "{{ ", parts[i], 12000, ""), NULL);
        assert_true(ctn_tokenizer_chat(t, HELLO, strlen(HELLO), NULL, text, sizeof text) < 0);
        ctn_error_clear();
        ctn_tokenizer_free(t);
    }
    fails(repeated("{{ 1", " + 1", 60000, " }}"), CTN_EUNSUPPORTED, "levels deep");
    fails(repeated("{{ a", ".b", 60000, " }}"), CTN_EUNSUPPORTED, "levels deep");
    fails(repeated("{{ 'a'", "|trim", 30000, " }}"), CTN_EUNSUPPORTED, "levels deep");
    fails(repeated("{% if 0 %}", "{% elif 0 %}", 20000, "{% endif %}"), CTN_EUNSUPPORTED, "deep");
    fails("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", CTN_EUNSUPPORTED, "levels deep");
    fails("{% set ns = namespace(x=[]) %}{% for i in range(10000) %}{% set ns.x = [ns.x] %}"
          "{% endfor %}{{ ns.x }}",
          CTN_EUNSUPPORTED, "levels deep");
    fails("{% set ns = namespace(x=[], y=[]) %}{% for i in range(10000) %}{% set ns.x = [ns.x] %}"
          "{% set ns.y = [ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
          CTN_EUNSUPPORTED, "levels deep");
    chat("{{ messages|tojson }}", NULL, repeated("[{\"a\":", "[", 20000, ""), CTN_EFORMAT);
    memset(big + 6, '[', 20000);
    memset(big + 20006, ']', 20000);
    memcpy(big + 40006, "}]", 3);
    chat("{{ messages|tojson }}", NULL, big, CTN_EUNSUPPORTED);
}

static void hostile_work(void **state)
{
    (void)state;
    const char *loops = "{% for a in range(100000) %}{% for b in range(100000) %}"
                        "{% for c in range(100000) %}";
    const char *ends = "{% endfor %}{% endfor %}{% endfor %}";
    char text[500];
    snprintf(text, sizeof text, "%s%s", loops, ends);
    fails(text, CTN_EUNSUPPORTED, "more than");
    fails("{% set r = range(100000) %}{% for a in r %}{% for b in r %}{% endfor %}{% endfor %}",
          CTN_EUNSUPPORTED, "more than");
    snprintf(text, sizeof text, "%s%s%s", loops, "{{ 'x' * 10000 }}", ends);
    fails(text, CTN_EUNSUPPORTED, "");
    fails("{{ range(1000000) }}", CTN_EUNSUPPORTED, "range()");
    fails("{{ 'x' * 1000000000000 }}", CTN_EUNSUPPORTED, "MB");
    fails("{{ [1] * 1000000000000 }}", CTN_EUNSUPPORTED, "MB");
    fails("{% set ns = namespace(s='xx') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}"
          "{% endfor %}",
          CTN_EUNSUPPORTED, "");
    fails("{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}"
          "{% endfor %}",
          CTN_EUNSUPPORTED, "");
    fails("{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}"
          "{% endfor %}{{ ns.s }}",
          CTN_EUNSUPPORTED, "");
    fails("{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{{ 'y' in s }}{% endfor %}",
          CTN_EUNSUPPORTED, "steps");
    fails("{% set s = 'x' * 100000 %}{% for i in range(100000) %}{{ (s ~ 'y') in s * 9 }}"
          "{% endfor %}",
          CTN_EUNSUPPORTED, "");
    fails("{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{% set t = s.split('x') %}"
          "{% endfor %}",
          CTN_EUNSUPPORTED, "");
    fails("{{ ('x' * 10000000)|list }}", CTN_EUNSUPPORTED, "");
    fails("{{ [[], []]|tojson(indent=100) * 100000000 }}", CTN_EUNSUPPORTED, "");
    fails("{{ 2 ** 9000000000 }}", CTN_EUNSUPPORTED, "64 bits");
    assert_string_equal(render("{{ 1 ** 9000000000 }}{{ range(9, -9223372036854775807, "
                               "-9223372036854775807)|length }}"),
                        "12");
    char *source = malloc(CTN__T_SOURCE + 2);
    assert_non_null(source);
    memset(source, 'x', CTN__T_SOURCE + 1);
    source[CTN__T_SOURCE + 1] = 0;
    fails(source, CTN_EUNSUPPORTED, "bytes");
    free(source);
}

/* All beginnings of a template, and one with each byte damaged. */
static void damaged(void **state)
{
    (void)state;
    static const char whole[] =
        "{%- macro f(a, b='x') -%}{{ a ~ b[1:2] }}{%- endmacro -%}{# c #}{% set ns = "
        "namespace(x=1.5) %}{% for m in messages if m.role != \"a\\u00e9\" %}{% if loop.first and "
        "m is mapping %}{{ f(m.content|trim, b=(1, [2, {'k': -3}])|tojson(indent=2)) }}{% elif not "
        "x %}{% break %}{% else %}{% set ns.x = ns.x + 1 // 2 %}{% endif %}{% endfor %}{% raw %}{{"
        "{% endraw %}{% generation %}{{ ns.x is odd }}{% endgeneration %}";
    static const char bytes[] = "{}%'\"|.(\\\n\xC3";
    char text[sizeof whole + 1] = {0}; /* a damaged end is not the last byte */
    for (size_t i = 0; i < sizeof whole; i++)
        for (size_t k = 0; k < sizeof bytes; k++) {
            memcpy(text, whole, sizeof whole);
            text[i] = bytes[k];
            ctn__template t = {0};
            ctn__trun r = {.who = "test"};
            ctn__tout out = {0};
            ctn_status st = ctn__template_open(&t, "test", text, strlen(text));
            if (st == CTN_OK) st = ctn__t_open_scope(&r, NULL);
            if (st == CTN_OK) st = ctn__template_run(&t, &r, &out);
            assert_int_equal(st < 0, ctn_error_status() < 0);
            ctn_error_clear();
            ctn__vec_free(&out);
            ctn__arena_free(&r.memory);
            ctn__template_free(&t);
        }
}

/* ---- no memory ------------------------------------------------------------------------------- */

/* Each allocation of opening a tokenizer and rendering fails once. */
static void no_memory(void **state)
{
    (void)state;
    static failing_once memory;
    ctn_tokenizer_free(open_model(NULL, "{\"bos_token\":\"<s>\",\"chat_template\":\"{% macro f(a) "
                                        "%}{{ a|tojson }}{% endmacro %}{% set x %}{{ f(messages) }}"
                                        "{% endset %}{{ x.split(' ')|join('-')|upper|trim }}{{ "
                                        "messages|map(attribute='role')|list }}\"}"));
    OK(ctn_set_allocator(&(ctn_allocator){failing_once_alloc, failing_once_release, &memory}));
    int64_t n = CTN_ENOMEM;
    for (int failures = 1; n == CTN_ENOMEM; failures++) {
        ctn_tokenizer *t = NULL;
        memory.calls = 0;
        memory.fail_at = failures;
        n = ctn_tokenizer_open(&t, "m", NULL);
        if (n == CTN_OK) n = ctn_tokenizer_chat(t, HELLO, strlen(HELLO), NULL, NULL, 0);
        ctn_tokenizer_free(t);
        ctn_error_clear();
        assert_int_equal(memory.live, 0);
        if (n != CTN_ENOMEM) assert_true(failures > 20);
    }
    assert_true(n > 0);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory),      cmocka_unit_test(sources),
        cmocka_unit_test(special_tokens), cmocka_unit_test(results),
        cmocka_unit_test(date),           cmocka_unit_test(messages),
        cmocka_unit_test(hostile_depth),  cmocka_unit_test(hostile_work),
        cmocka_unit_test(damaged),
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
