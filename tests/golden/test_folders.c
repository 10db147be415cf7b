/* SPDX-License-Identifier: Apache-2.0
 *
 * Folders of published models that Catena writes, and adapters from and for the package `peft`
 * (adapters.py). What was loaded from a folder and saved again is the same to the bit, under the
 * same names; a model with adapters of peft has the logits that it has there to 1e-4.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/io.h>
#include <catena/zoo.h>

#include "../support/ok.h"

#include <cmocka.h>

#include "adapters.inc"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

static const int64_t tokens[] = {3, 17, 0, 39, 8, 21, 5};
enum { T = sizeof tokens / sizeof *tokens, V = 40 };

static ctn_context *ctx;

#define FAILS(call, code, part)                                     \
    do {                                                            \
        assert_int_equal(call, code);                               \
        if (!strstr(ctn_error_message(), part))                     \
            fail_msg("line %d: %s", __LINE__, ctn_error_message()); \
        ctn_error_clear();                                          \
    } while (0)

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

static const char *golden(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/golden/published/%s", CTN_TESTS_DIR, name);
    return path;
}

static ctn_module *load(const char *path)
{
    ctn_module *m = NULL;
    OK(ctn_zoo_open(&m, ctx, path));
    OK(ctn_weights_load(m, path, NULL));
    return m;
}

static void put(const char *folder, const char *name, const char *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* The test may have run here before. */
static void make_folder(const char *folder)
{
    static const char *const old[] = {"adapter_model.safetensors", "adapter_config.json"};
    char path[128];
    assert_true(mkdir(folder, 0777) == 0 || errno == EEXIST);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, old[i]);
        unlink(path);
    }
}

static bool has(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void same_parameters(ctn_module *a, ctn_module *b)
{
    const ctn_vars p = ctn_params(a), q = ctn_params(b);
    assert_int_equal(p.n, q.n);
    for (int i = 0; i < p.n; i++) {
        const ctn_desc *d = ctn_var_desc(p.var[i]);
        size_t bytes = ctn_dtype_size(d->dtype);
        for (int k = 0; k < d->ndim; k++) bytes *= (size_t)d->dim[k];
        void *x = malloc(bytes), *y = malloc(bytes);
        assert_string_equal(p.name[i], q.name[i]);
        OK(ctn_var_get(p.var[i], x, bytes));
        OK(ctn_var_get(q.var[i], y, bytes));
        if (memcmp(x, y, bytes) != 0) fail_msg("%s differs", p.name[i]);
        free(x);
        free(y);
    }
}

/* Every array of one file is in the other one, with the same bytes. */
static void same_arrays(const char *ours, const char *theirs)
{
    ctn_weights *a = NULL, *b = NULL;
    OK(ctn_weights_open(&a, ours));
    OK(ctn_weights_open(&b, theirs));
    for (int64_t i = 0; i < ctn_weights_arrays(a); i++) {
        ctn_weights_array x, y;
        OK(ctn_weights_get_array(a, i, &x));
        const int64_t at = ctn_weights_find(b, x.name);
        if (at < 0) fail_msg("%s has no %s", theirs, x.name);
        OK(ctn_weights_get_array(b, at, &y));
        assert_int_equal(x.ndim, y.ndim);
        assert_memory_equal(x.shape, y.shape, (size_t)x.ndim * sizeof *x.shape);
        assert_int_equal(x.bytes, y.bytes);
        void *p = malloc(x.bytes), *q = malloc(x.bytes);
        OK(ctn_weights_read(a, i, 0, p, x.bytes));
        OK(ctn_weights_read(b, at, 0, q, x.bytes));
        if (memcmp(p, q, x.bytes) != 0) fail_msg("%s differs", x.name);
        free(p);
        free(q);
    }
    ctn_weights_free(a);
    ctn_weights_free(b);
}

static void models(void **state)
{
    static const char *const names[] = {"gpt2",         "llama", "mistral", "qwen2",
                                        "bert_classes", "vit",   "bert"};
    (void)state;
    for (int i = 0; i < 7; i++) {
        char to[64];
        snprintf(to, sizeof to, "written/%s", names[i]);
        ctn_module *m = load(golden(names[i]));
        OK(ctn_published_write(m, golden(names[i]), to));
        ctn_module *again = load(to);
        same_parameters(m, again);
        if (strcmp(names[i], "bert") != 0) same_arrays(to, golden(names[i])); /* it has old names */
        ctn_module_free(again);
        ctn_module_free(m);
    }
}

/* The files beside the weights go along, and the type of the weights is said. */
static void files(void **state)
{
    static const char config[] = "{\"model_type\":\"gpt2\",\"n_embd\":8,\"n_layer\":1,"
                                 "\"n_head\":2,\"vocab_size\":20,\"n_positions\":8,"
                                 "\"tie_word_embeddings\":false,\"dtype\":\"bfloat16\"}";
    ctn_module *m = NULL, *again = NULL;
    char text[4096] = "";
    (void)state;
    make_folder("base");
    put("base", "config.json", config);
    put("base", "tokenizer.json", "{}");
    put("base", "private.txt", "");
    OK(ctn_zoo_open(&m, ctx, "base/config.json"));
    OK(ctn_published_write(m, "base/config.json", "deep/er"));
    assert_true(has("deep/er", "tokenizer.json"));
    assert_false(has("deep/er", "private.txt"));
    FILE *f = fopen("deep/er/config.json", "r");
    assert_non_null(f);
    assert_true(fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(text, "float32"));
    assert_null(strstr(text, "bfloat16"));
    again = load("deep/er");
    same_parameters(m, again);
    ctn_weights *w = NULL;
    OK(ctn_weights_open(&w, "deep/er"));
    assert_true(ctn_weights_find(w, "transformer.wte.weight") >= 0);
    assert_true(ctn_weights_find(w, "lm_head.weight") >= 0); /* which is not tied */
    ctn_weights_free(w);
    ctn_module_free(again);
    FAILS(ctn_published_write(m, "base", "base/"), CTN_EARG, "choose another");
    FAILS(ctn_published_write(m, "none", "other"), CTN_EIO, "none/config.json");
    FAILS(ctn_published_write(m, "base", "base/config.json/x"), CTN_EIO, "cannot make");
    ctn_module_free(m);
    OK(ctn_zoo_new(&m, ctx, "lenet5", NULL));
    FAILS(ctn_published_write(m, "base", "other"), CTN_EARG, "ctn_zoo_open");
    ctn_module_free(m);
}

/* ---- adapters -------------------------------------------------------------------------------- */

static void logits(ctn_module *m, float *out)
{
    ctn_context_set_training(ctx, 0);
    OK(ctn_scope_begin(ctx));
    const float *y = ctn_data(ctn_call(m, ctn_input(ctx, tokens, CTN_I64, CTN_SHAPE(1, T))));
    if (!y) fail_msg("%s", ctn_error_message());
    memcpy(out, y, T * V * sizeof *y);
    OK(ctn_scope_end(ctx));
}

static void check_adapters(const char *base, const char *name, const double *expected)
{
    float y[T * V], z[T * V];
    char to[64], path[4096];
    snprintf(path, sizeof path, "%s", golden(name));
    snprintf(to, sizeof to, "written/%s", name);
    ctn_module *m = load(golden(base)), *again = load(golden(base));
    OK(ctn_lora_open(m, path));
    logits(m, y);
    for (int i = 0; i < T * V; i++)
        if (!(fabs((double)y[i] - expected[i]) <= 1e-4 * fmax(1, fabs(expected[i]))))
            fail_msg("%s: logit %d is %.9g, peft has %.9g", name, i, (double)y[i], expected[i]);
    OK(ctn_published_write(m, golden(base), to));
    char ours[128], theirs[8192];
    snprintf(ours, sizeof ours, "%s/adapter_model.safetensors", to);
    snprintf(theirs, sizeof theirs, "%s/adapter_model.safetensors", path);
    same_arrays(ours, theirs);
    OK(ctn_lora_open(again, to));
    logits(again, z);
    assert_memory_equal(y, z, sizeof y);
    FAILS(ctn_lora_open(again, to), CTN_ESTATE, "already has an adapter");
    OK(ctn_lora_merge(m));
    logits(m, z);
    for (int i = 0; i < T * V; i++)
        assert_true(fabsf(y[i] - z[i]) <= 1e-4f * fmaxf(1, fabsf(y[i])));
    ctn_module_free(m);
    ctn_module_free(again);
}

static void adapters(void **state)
{
    (void)state;
    check_adapters("gpt2", "gpt2_lora", gpt2_lora_expected);
    check_adapters("llama", "llama_lora", llama_lora_expected);
}

static void refused(void **state)
{
    static const struct {
        const char *config, *part;
        ctn_status st;
    } wrong[] = {
        {"[]", "not a JSON object", CTN_EFORMAT},
        {"{}", "peft_type", CTN_EUNSUPPORTED},
        {"{'peft_type':'LOHA'}", "peft_type", CTN_EUNSUPPORTED},
        {"{'peft_type':'LORA','bias':'all'}", "bias", CTN_EUNSUPPORTED},
        {"{'peft_type':'LORA','use_dora':true}", "use_dora", CTN_EUNSUPPORTED},
        {"{'peft_type':'LORA','rank_pattern':{'a':2}}", "rank_pattern", CTN_EUNSUPPORTED},
        {"{'peft_type':'LORA','modules_to_save':['lm_head']}", "modules_to_save", CTN_EUNSUPPORTED},
        {"{'peft_type':'LORA','init_lora_weights':'pissa'}", "init_lora_weights", CTN_EUNSUPPORTED},
        {"{'peft_type':'LORA','of_the_future':1}", "of_the_future", CTN_EUNSUPPORTED},
        {"{'peft_type':'LORA','r':2147483647,'lora_alpha':1}", "the adapters have rank 3",
         CTN_EFORMAT},
        {"{'peft_type':'LORA','r':3,'lora_alpha':-1}", "alpha -1", CTN_EFORMAT},
        {"{'peft_type':'LORA','r':3,'lora_alpha':'x'}", NULL, CTN_OK},
    };
    char text[256], file[8192];
    (void)state;
    make_folder("odd");
    snprintf(file, sizeof file, "%s/adapter_model.safetensors", golden("gpt2_lora"));
    assert_int_equal(symlink(file, "odd/adapter_model.safetensors"), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ctn_module *m = load(golden("gpt2"));
        snprintf(text, sizeof text, "%s", wrong[i].config);
        for (char *c = text; *c; c++) *c = *c == '\'' ? '"' : *c;
        put("odd", "adapter_config.json", text);
        const ctn_status st = ctn_lora_open(m, "odd");
        if (st != wrong[i].st || (st < 0 && !strstr(ctn_error_message(), wrong[i].part)))
            fail_msg("%s: %d, %s", wrong[i].config, st, ctn_error_message());
        ctn_error_clear();
        ctn_module_free(m);
    }
    ctn_module *m = load(golden("llama"));
    put("odd", "adapter_config.json", "{\"peft_type\":\"LORA\",\"r\":3}");
    FAILS(ctn_lora_open(m, "odd"), CTN_ENOTFOUND, "c_attn"); /* adapters of another network */
    unlink("odd/adapter_model.safetensors");
    FAILS(ctn_lora_open(m, "odd"), CTN_EIO, "neither");
    snprintf(file, sizeof file, "%s/model.safetensors", golden("gpt2"));
    assert_int_equal(symlink(file, "odd/adapter_model.safetensors"), 0);
    FAILS(ctn_lora_open(m, "odd"), CTN_EUNSUPPORTED, "no adapter");
    FAILS(ctn_lora_open(m, "nowhere"), CTN_EIO, "nowhere");
    ctn_module_free(m);
}

int main(void)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(models),
        cmocka_unit_test(files),
        cmocka_unit_test(adapters),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(all, setup, teardown);
}
#endif
