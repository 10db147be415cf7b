/* SPDX-License-Identifier: Apache-2.0
 *
 * Published models against the package `transformers` (published.py): config.json and the weights
 * load as they are, from one file or several, and the logits agree to 1e-4. Generating with the
 * cache of keys and values gives the tokens that computing everything again gives.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/generate.h>
#include <catena/io.h>
#include <catena/zoo.h>

#include "../support/ok.h"

#include <cmocka.h>

#include "published.inc"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

static const int64_t tokens[] = {3, 17, 0, 39, 8, 21, 5};
enum { T = sizeof tokens / sizeof *tokens, V = 40, NEW = 8 };

static ctn_context *ctx;

static int setup(void **state)
{
    (void)state;
    return ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2)) == CTN_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

static ctn_module *load(const char *name)
{
    char path[4096];
    ctn_module *m = NULL;
    snprintf(path, sizeof path, "%s/golden/published/%s", CTN_TESTS_DIR, name);
    OK(ctn_zoo_open(&m, ctx, path));
    OK(ctn_weights_load(m, path, NULL));
    return m;
}

static void close_to(const char *name, const float *found, const double *expected, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs((double)found[i] - expected[i]) <= 1e-4 * fmax(1, fabs(expected[i]))))
            fail_msg("%s: logit %d is %.9g, transformers has %.9g", name, i, (double)found[i],
                     expected[i]);
}

/* The most likely token after n tokens, computed from all of them. */
static int32_t after(ctn_module *m, const int64_t *x, int64_t n)
{
    int32_t best = 0;
    OK(ctn_scope_begin(ctx));
    const float *y = ctn_data(ctn_call(m, ctn_input(ctx, x, CTN_I64, CTN_SHAPE(1, n))));
    assert_non_null(y);
    for (int i = 1; i < V; i++)
        if (y[(n - 1) * V + i] > y[(n - 1) * V + best]) best = i;
    OK(ctn_scope_end(ctx));
    return best;
}

/* Two prompts of different lengths at once, each as if it were alone. */
static void generate(ctn_module *m)
{
    const int64_t length[2] = {T, 3};
    int32_t prompt[2][T], next[2];
    int64_t all[2][T + NEW];
    ctn_generator *g = NULL;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < T; i++) prompt[k][i] = (int32_t)(all[k][i] = tokens[i]);
    OK(ctn_generator_new(&g, m, NULL));
    OK(ctn_generator_start(g, 2, (const int32_t *const[]){prompt[0], prompt[1]}, length, next));
    for (int i = 0; i < NEW; i++) {
        for (int k = 0; k < 2; k++) {
            assert_int_equal(next[k], after(m, all[k], length[k] + i));
            all[k][length[k] + i] = next[k];
        }
        if (i < NEW - 1) OK(ctn_generator_next(g, next, next));
    }
    ctn_generator_free(g);
}

static void check_decoder(const char *name, const double *expected)
{
    ctn_module *m = load(name);
    ctn_context_set_training(ctx, 0);
    OK(ctn_scope_begin(ctx));
    const float *y = ctn_data(ctn_call(m, ctn_input(ctx, tokens, CTN_I64, CTN_SHAPE(1, T))));
    assert_non_null(y);
    close_to(name, y, expected, T * V);
    OK(ctn_scope_end(ctx));
    generate(m);
    ctn_module_free(m);
}

/* One sequence alone, and two with lengths and token types; `each` logits per sequence. */
static void check_bert(const char *name, const double *alone, const double *padded, int each)
{
    static const int64_t two[2][T] = {{3, 17, 0, 39, 8, 21, 5}, {5, 21, 8, 39, 0, 17, 3}};
    static const int64_t types[2][T] = {{0, 0, 0, 1, 1, 1, 1}, {0, 0, 0, 1, 1, 1, 1}};
    static const int32_t lengths[2] = {T, 4};
    ctn_module *m = load(name);
    ctn_context_set_training(ctx, 0);
    OK(ctn_scope_begin(ctx));
    const float *y = ctn_data(ctn_call(m, ctn_input(ctx, tokens, CTN_I64, CTN_SHAPE(1, T))));
    if (!y) fail_msg("%s", ctn_error_message());
    close_to(name, y, alone, each);
    y = ctn_data(ctn_call_multi(m, ctn_input(ctx, two, CTN_I64, CTN_SHAPE(2, T)),
                                ctn_input(ctx, lengths, CTN_I32, CTN_SHAPE(2)),
                                ctn_input(ctx, types, CTN_I64, CTN_SHAPE(2, T)))
                     .t[0]);
    if (!y) fail_msg("%s", ctn_error_message());
    close_to(name, y, padded, 2 * each);
    OK(ctn_scope_end(ctx));
    ctn_module_free(m);
}

static void bert(void **state)
{
    (void)state;
    check_bert("bert", bert_expected, bert_padded_expected, T * V);
    check_bert("bert_classes", bert_classes_expected, bert_classes_padded_expected, 3);
}

static void vit(void **state)
{
    static float x[2 * 3 * 8 * 8];
    (void)state;
    for (int i = 0; i < 2 * 3 * 8 * 8; i++) x[i] = (float)sin(0.37 * i);
    ctn_module *m = load("vit");
    OK(ctn_scope_begin(ctx));
    const float *y = ctn_data(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3, 8, 8))));
    if (!y) fail_msg("%s", ctn_error_message());
    close_to("vit", y, vit_expected, 2 * 5);
    OK(ctn_scope_end(ctx));
    ctn_module_free(m);
}

/* Settings that Catena does not have, and sizes that nobody has. */
static void refusals(void **state)
{
    static const struct {
        const char *text, *part;
        ctn_status st;
    } wrong[] = {
        {"'model_type': 'bert', 'position_embedding_type': 'relative_key'", "relative_key",
         CTN_EUNSUPPORTED},
        {"'model_type': 'bert', 'architectures': ['BertModel']", "BertModel", CTN_EUNSUPPORTED},
        {"'model_type': 'bert', 'hidden_act': 'relu'", "relu", CTN_EUNSUPPORTED},
        {"'model_type': 'vit', 'image_size': [8, 16]", "image_size", CTN_EUNSUPPORTED},
        {"'model_type': 'llama', 'num_hidden_layers': 4096", "a network of about", CTN_ENOMEM},
        {"'model_type': 'llama', 'num_hidden_layers': 2147483647", "expected 1 to 4096", CTN_EARG},
        {"'model_type': 't5'", "bert vit", CTN_EUNSUPPORTED},
    };
    char path[] = "/tmp/catena_published_XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ctn_module *m = NULL;
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputc('{', f);
        for (const char *c = wrong[i].text; *c; c++) fputc(*c == '\'' ? '"' : *c, f);
        fputc('}', f);
        fclose(f);
        assert_int_equal(ctn_zoo_open(&m, ctx, path), wrong[i].st);
        assert_non_null(strstr(ctn_error_message(), wrong[i].part));
        assert_null(m);
        ctn_error_clear();
    }
    static const char *const other[] = {"[1]", "{", ""}; /* no object */
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        ctn_module *m = NULL;
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(other[i], f);
        fclose(f);
        assert_int_equal(ctn_zoo_open(&m, ctx, path), CTN_EFORMAT);
        assert_non_null(strstr(ctn_error_message(), "not a JSON object"));
        ctn_error_clear();
    }
    close(fd);
    unlink(path);
}

/* The tokens that end a text: a number or a list in config.json; generation_config.json wins. */
static void ends(void **state)
{
    static const struct {
        const char *config, *generation; /* eos_token_id */
        int n, first;
    } cases[] = {
        {"7", NULL, 1, 7},          {"null", NULL, 0, 0},
        {"[5,6]", NULL, 2, 5},      {"7", "[5,6]", 2, 5},
        {"7", "null", 1, 7},        {"[]", NULL, 0, 0},
        {"-1", NULL, -1, 0},        {"[1,\"a\"]", NULL, -1, 0},
        {"7", "4294967296", -1, 0}, {"[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]", NULL, -1, 0},
    };
    char folder[] = "/tmp/catena_ends_XXXXXX", file[2][64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(file[0], sizeof file[0], "%s/config.json", folder);
    snprintf(file[1], sizeof file[1], "%s/generation_config.json", folder);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ctn_module *m = NULL;
        int32_t ids[2] = {0, 0};
        for (int k = 0; k < 2; k++) {
            const char *value = k ? cases[i].generation : cases[i].config;
            if (!value) continue;
            FILE *f = fopen(file[k], "w");
            assert_non_null(f);
            fprintf(f,
                    "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":1,\"n_head\":2,"
                    "\"vocab_size\":20,\"n_positions\":8,\"eos_token_id\":%s}",
                    value);
            fclose(f);
        }
        const ctn_status st = ctn_zoo_open(&m, ctx, folder);
        assert_int_equal(st, cases[i].n < 0 ? CTN_EFORMAT : CTN_OK);
        if (st == CTN_OK) {
            assert_int_equal(ctn_module_ends(m, ids, 2), cases[i].n);
            assert_int_equal(ids[0], cases[i].first);
            assert_int_equal(ctn_module_ends(m, NULL, 0), cases[i].n);
            ctn_module *copy = NULL;
            OK(ctn_module_copy(&copy, m));
            assert_int_equal(ctn_module_ends(copy, ids, 2), cases[i].n);
            ctn_module_free(copy);
        }
        ctn_error_clear();
        ctn_module_free(m);
        unlink(file[0]);
        unlink(file[1]);
    }
    rmdir(folder);
}

#define DECODER(name)                          \
    static void name(void **state)             \
    {                                          \
        (void)state;                           \
        check_decoder(#name, name##_expected); \
    }
DECODER(gpt2)
DECODER(llama)
DECODER(mistral)
DECODER(qwen2)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt2), cmocka_unit_test(mistral), cmocka_unit_test(qwen2),
        cmocka_unit_test(bert), cmocka_unit_test(vit),     cmocka_unit_test(refusals),
        cmocka_unit_test(ends), cmocka_unit_test(llama),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
#endif
