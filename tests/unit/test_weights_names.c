/* SPDX-License-Identifier: Apache-2.0
 *
 * Weights with the names of other programs: wrappers, timm, torchvision, old files without
 * counters; and how differences are explained. Written files of several types, names and sources.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catena/io.h>
#include <catena/log.h>
#include <catena/zoo.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "graph/graph.h"
#include "io/safetensors.h"

#define FILE_NAME "names.safetensors"
#define SAVED CTN_TESTS_DIR "/fuzz/corpus/pytorch/"

#ifndef CTN_HAVE_YYJSON

int main(void)
{
    return 0;
}

#else

static char noticed[512];

static void keep_notice(void *user, const char *text)
{
    (void)user;
    snprintf(noticed, sizeof noticed, "%s", text);
}

static void open_context(ctn_context **ctx, uint64_t seed)
{
    OK(ctn_context_new(ctx, CTN_OPT(ctn_context_opt, .seed = seed, .threads = 1)));
}

/* A module with one child "fc", 3 -> 2. */
static void make_linear(ctn_module **m, ctn_context *ctx)
{
    ctn_module *fc = NULL;
    OK(ctn_module_new(m, ctx, NULL, NULL, NULL));
    OK(ctn_linear_new(&fc, ctx, 3, 2, NULL));
    OK(ctn_module_add(*m, "fc", fc));
}

static void assert_linear(ctn_module *m)
{
    float w[6], b[2];
    OK(ctn_var_get(ctn_module_find(m, "fc.weight"), w, sizeof w));
    OK(ctn_var_get(ctn_module_find(m, "fc.bias"), b, sizeof b));
    for (int i = 0; i < 6; i++) assert_true(w[i] == (float)i);
    assert_true(b[0] == 0 && b[1] == 1);
}

static void test_pytorch(void **state)
{
    static const char *const files[] = {SAVED "training.pt", SAVED "data_parallel.pt"};
    (void)state;
    ctn_set_notice(keep_notice, NULL);
    for (int i = 0; i < 2; i++) {
        ctn_context *ctx = NULL;
        ctn_module *m = NULL;
        noticed[0] = 0;
        open_context(&ctx, 1);
        make_linear(&m, ctx);
        OK(ctn_weights_load(m, files[i], NULL));
        assert_linear(m);
        assert_int_equal(strstr(noticed, "prefix module.") != NULL, i == 1);
        ctn_module_free(m);
        ctn_context_free(ctx);
    }
    ctn_set_notice(NULL, NULL);
}

/* pytorch_model.bin, and several files with an index. */
static void test_pytorch_folder(void **state)
{
    static char bytes[4096];
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    const char *index = "{\"weight_map\":{\"fc.weight\":\"a.bin\",\"fc.bias\":\"a.bin\"}}";
    const char *hostile = "{\"weight_map\":{\"fc.weight\":\"../a.bin\"}}";
    (void)state;
    FILE *f = fopen(SAVED "training.pt", "rb");
    assert_non_null(f);
    const size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    mkdir("published", 0777);
    write_bytes("published/pytorch_model.bin", bytes, n);
    open_context(&ctx, 1);
    make_linear(&m, ctx);
    OK(ctn_weights_load(m, "published", NULL));
    assert_linear(m);
    unlink("published/pytorch_model.bin");
    write_bytes("published/a.bin", bytes, n);
    write_bytes("published/pytorch_model.bin.index.json", index, strlen(index));
    OK(ctn_weights_load(m, "published", NULL));
    write_bytes("published/pytorch_model.bin.index.json", hostile, strlen(hostile));
    assert_fails(ctn_weights_load(m, "published", NULL), CTN_EFORMAT, "in the folder of the index");
    unlink("published/a.bin");
    unlink("published/pytorch_model.bin.index.json");
    rmdir("published");
    ctn_module_free(m);
    ctn_context_free(ctx);
}

/* The first file of an index that is missing ends it, before its other names are compared. */
static void test_many_files(void **state)
{
    enum { FILES = 1000000 };
    ctn_weights *w = NULL;
    (void)state;
    mkdir("published", 0777);
    FILE *f = fopen("published/pytorch_model.bin.index.json", "wb");
    assert_non_null(f);
    fputs("{\"weight_map\":{", f);
    for (int i = 0; i < FILES; i++) fprintf(f, "%s\"a%d\":\"file%07d\"", i ? "," : "", i, i);
    fputs("}}", f);
    fclose(f);
    assert_fails(ctn_weights_open(&w, "published"), CTN_EIO, "file0000000");
    unlink("published/pytorch_model.bin.index.json");
    rmdir("published");
}

/* ---- vision transformers -------------------------------------------------------------------- */

enum { WIDTH = 8, HIDDEN = 16 };

static void make_vit(ctn_module **m, ctn_context *ctx)
{
    OK(ctn_zoo_vit(m, ctx,
                   CTN_OPT(ctn_vit_opt, .classes = 3, .image = 8, .patch = 4, .width = WIDTH,
                           .hidden = HIDDEN, .layers = 2, .heads = 2)));
}

/* Pairs of our beginning and the other; q: the query matrix, whose array has key and value too. */
typedef struct {
    const char *own, *other;
} pair;

static const pair timm[] = {
    {"vit.embeddings.cls_token", "cls_token"},
    {"vit.embeddings.position_embeddings", "pos_embed"},
    {"vit.embeddings.patch_embeddings.projection.", "patch_embed.proj."},
    {"vit.encoder.layer.0.layernorm_before.", "blocks.0.norm1."},
    {"vit.encoder.layer.0.attention.attention.query.", "blocks.0.attn.qkv."},
    {"vit.encoder.layer.0.attention.output.dense.", "blocks.0.attn.proj."},
    {"vit.encoder.layer.0.layernorm_after.", "blocks.0.norm2."},
    {"vit.encoder.layer.0.intermediate.dense.", "blocks.0.mlp.fc1."},
    {"vit.encoder.layer.0.output.dense.", "blocks.0.mlp.fc2."},
    {"vit.encoder.layer.1.layernorm_before.", "blocks.1.norm1."},
    {"vit.encoder.layer.1.attention.attention.query.", "blocks.1.attn.qkv."},
    {"vit.encoder.layer.1.attention.output.dense.", "blocks.1.attn.proj."},
    {"vit.encoder.layer.1.layernorm_after.", "blocks.1.norm2."},
    {"vit.encoder.layer.1.intermediate.dense.", "blocks.1.mlp.fc1."},
    {"vit.encoder.layer.1.output.dense.", "blocks.1.mlp.fc2."},
    {"vit.layernorm.", "norm."},
    {"classifier.", "head."},
    {NULL, NULL},
};

#define LAYER(i) "encoder.layers.encoder_layer_" i "."
static const pair torchvision[] = {
    {"vit.embeddings.cls_token", "class_token"},
    {"vit.embeddings.position_embeddings", "encoder.pos_embedding"},
    {"vit.embeddings.patch_embeddings.projection.", "conv_proj."},
    {"vit.encoder.layer.0.layernorm_before.", LAYER("0") "ln_1."},
    {"vit.encoder.layer.0.attention.attention.query.", LAYER("0") "self_attention.in_proj_"},
    {"vit.encoder.layer.0.attention.output.dense.", LAYER("0") "self_attention.out_proj."},
    {"vit.encoder.layer.0.layernorm_after.", LAYER("0") "ln_2."},
    {"vit.encoder.layer.0.intermediate.dense.", LAYER("0") "mlp.0."},
    {"vit.encoder.layer.0.output.dense.", LAYER("0") "mlp.3."},
    {"vit.encoder.layer.1.layernorm_before.", LAYER("1") "ln_1."},
    {"vit.encoder.layer.1.attention.attention.query.", LAYER("1") "self_attention.in_proj_"},
    {"vit.encoder.layer.1.attention.output.dense.", LAYER("1") "self_attention.out_proj."},
    {"vit.encoder.layer.1.layernorm_after.", LAYER("1") "ln_2."},
    {"vit.encoder.layer.1.intermediate.dense.", LAYER("1") "mlp.linear_1."},
    {"vit.encoder.layer.1.output.dense.", LAYER("1") "mlp.linear_2."},
    {"vit.layernorm.", "encoder.ln."},
    {"classifier.", "heads.head."},
    {NULL, NULL},
};

typedef struct {
    const pair *pairs;
    const char *prefix;
    ctn_module *m;
    ctn__st_writer *w;
    bool put;
    bool short_query; /* its array has only the rows of one matrix */
} rewriting;

/* The rows of query, key and value, one after the other. */
static void gather(const rewriting *r, const char *name, size_t bytes, char *to)
{
    static const char *const parts[] = {"query", "key", "value"};
    const char *query = strstr(name, "query");
    for (int i = 0; i < 3; i++) {
        char other[256];
        snprintf(other, sizeof other, "%.*s%s%s", (int)(query - name), name, parts[i], query + 5);
        OK(ctn_var_get(ctn_module_find(r->m, other), to + (size_t)i * bytes, bytes));
    }
}

static ctn_status rewrite(void *user, const char *name, ctn_dtype dtype, int ndim,
                          const int64_t *dims, void *data)
{
    const rewriting *r = user;
    const bool query = strstr(name, ".query.") != NULL;
    int64_t shape[4] = {1, 1, 1, 1};
    char other[256], all[3 * WIDTH * WIDTH * sizeof(float)];
    size_t bytes = ctn_dtype_size(dtype);
    for (const pair *p = r->pairs; p->own; p++) {
        if (strncmp(name, p->own, strlen(p->own)) != 0) continue;
        snprintf(other, sizeof other, "%s%s%s", r->prefix, p->other, name + strlen(p->own));
        for (int i = 0; i < ndim; i++) {
            shape[i] = dims[i];
            bytes *= (size_t)dims[i];
        }
        if (query && !r->short_query) shape[0] *= 3;
        if (!r->put) return ctn__st_add(r->w, other, dtype, ndim, shape);
        if (query) gather(r, name, bytes, all);
        return ctn__st_put(r->w, other, query ? all : data);
    }
    return CTN_OK; /* key and value */
}

static void write_rewritten(rewriting *r)
{
    OK(ctn__st_begin(&r->w, FILE_NAME));
    OK(ctn_module_visit(r->m, rewrite, r));
    r->put = true;
    OK(ctn_module_visit(r->m, rewrite, r));
    OK(ctn__st_finish(r->w));
    ctn__st_writer_free(r->w);
}

static void write_as(ctn_module *m, const pair *pairs, const char *prefix)
{
    write_rewritten(&(rewriting){.pairs = pairs, .prefix = prefix, .m = m});
}

static void assert_same(ctn_module *a, ctn_module *b)
{
    const ctn_vars x = ctn_params(a), y = ctn_params(b);
    static float p[1 << 12], q[1 << 12];
    assert_int_equal(x.n, y.n);
    for (int i = 0; i < x.n; i++) {
        const size_t bytes = ctn__bytes(&x.var[i]->d);
        assert_true(bytes <= sizeof p);
        OK(ctn_var_get(x.var[i], p, bytes));
        OK(ctn_var_get(y.var[i], q, bytes));
        if (memcmp(p, q, bytes) != 0) fail_msg("%s differs", x.name[i]);
    }
}

static void test_vit(void **state)
{
    static const struct {
        const pair *pairs;
        const char *prefix, *notice;
    } cases[] = {{timm, "", "names of timm"},
                 {timm, "module.", "names of timm, prefix module."},
                 {torchvision, "", "names of torchvision"},
                 {torchvision, "model.", "names of torchvision, prefix model."}};
    (void)state;
    ctn_set_notice(keep_notice, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ctn_context *ctx[2] = {NULL, NULL};
        ctn_module *m[2] = {NULL, NULL};
        for (int k = 0; k < 2; k++) {
            open_context(&ctx[k], (uint64_t)k + 1);
            make_vit(&m[k], ctx[k]);
        }
        write_as(m[0], cases[i].pairs, cases[i].prefix);
        noticed[0] = 0;
        OK(ctn_weights_load(m[1], FILE_NAME, NULL));
        assert_same(m[0], m[1]);
        assert_true(strstr(noticed, cases[i].notice) != NULL);
        for (int k = 0; k < 2; k++) {
            ctn_module_free(m[k]);
            ctn_context_free(ctx[k]);
        }
    }
    ctn_set_notice(NULL, NULL);
    unlink(FILE_NAME);
}

/* An array of one matrix has as many rows as the query, but it is not divisible by 3. */
static void test_short_parts(void **state)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    open_context(&ctx, 1);
    make_vit(&m, ctx);
    write_rewritten(&(rewriting){.pairs = timm, .prefix = "", .m = m, .short_query = true});
    for (int partial = 0; partial < 2; partial++)
        assert_fails(ctn_weights_load(m, FILE_NAME, CTN_OPT(ctn_weights_opt, .partial = partial)),
                     CTN_ESHAPE,
                     "attention.query.weight is (8,8) in the model and part 1 of 3 of (8,8) in the "
                     "file");
    unlink(FILE_NAME);
    ctn_module_free(m);
    ctn_context_free(ctx);
}

/* ---- differences ---------------------------------------------------------------------------- */

/* The arrays of a network, without those that end in `without`, with other names. */
static void save_changed(ctn_module *m, const char *without, const char *old, const char *new)
{
    ctn_weights *w = NULL;
    ctn_weights_item items[128];
    int n = 0;
    OK(ctn_weights_save(m, FILE_NAME));
    OK(ctn_weights_open(&w, FILE_NAME));
    for (int64_t i = 0; i < ctn_weights_arrays(w); i++) {
        ctn_weights_array a;
        OK(ctn_weights_get_array(w, i, &a));
        if (without && strstr(a.name, without)) continue;
        const bool renamed = old && strcmp(a.name, old) == 0;
        items[n++] = (ctn_weights_item){.from = w, .array = i, .name = renamed ? new : NULL};
    }
    OK(ctn_weights_write("changed.safetensors", n, items));
    ctn_weights_free(w);
    unlink(FILE_NAME);
}

static void test_counters(void **state)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    open_context(&ctx, 1);
    OK(ctn_zoo_new(&m, ctx, "resnet20_cifar", NULL));
    save_changed(m, "num_batches_tracked", NULL, NULL);
    OK(ctn_weights_load(m, "changed.safetensors", NULL));
    save_changed(m, "layer1.0.bn1.num_batches_tracked", NULL, NULL); /* only one is missing */
    assert_fails(ctn_weights_load(m, "changed.safetensors", NULL), CTN_ENOTFOUND,
                 "missing in the file: layer1.0.bn1.num_batches_tracked ()");
    unlink("changed.safetensors");
    ctn_module_free(m);
    ctn_context_free(ctx);
}

typedef struct {
    int fit, problems;
    char text[1024];
} found;

static ctn_status count(void *user, const ctn_weights_match *m)
{
    found *f = user;
    if (!m->problem) {
        assert_string_equal(m->name, m->array);
        f->fit++;
    } else {
        const size_t n = strlen(f->text);
        f->problems++;
        snprintf(f->text + n, sizeof f->text - n, "%s\n", m->problem);
    }
    return CTN_OK;
}

static void test_explained(void **state)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL, *other = NULL;
    found f = {0};
    (void)state;
    open_context(&ctx, 1);
    OK(ctn_zoo_new(&m, ctx, "resnet20_cifar", NULL));
    OK(ctn_zoo_new(&other, ctx, "resnet20_cifar", CTN_OPT(ctn_zoo_opt, .classes = 7)));
    save_changed(other, NULL, "layer2.0.conv1.weight", "layer2.0.convolution1.weight");
    OK(ctn_weights_compare(m, "changed.safetensors", NULL, count, &f));
    assert_int_equal(f.problems, 4);
    assert_true(f.fit > 50);
    assert_string_equal(f.text, "missing in the file: layer2.0.conv1.weight (32,16,3,3), nearest: "
                                "layer2.0.convolution1.weight (32,16,3,3)\n"
                                "linear.weight is (10,64) in the model and (7,64) in the file\n"
                                "linear.bias is (10) in the model and (7) in the file\n"
                                "not in the model: layer2.0.convolution1.weight (32,16,3,3)\n");
    assert_fails(ctn_weights_load(m, "changed.safetensors", NULL), CTN_ESHAPE,
                 "nearest: layer2.0.convolution1.weight (32,16,3,3)");
    save_changed(other, NULL, "linear.weight", "head.linear.weight");
    assert_fails(ctn_weights_load(m, "changed.safetensors", NULL), CTN_ESHAPE,
                 "linear.weight (10,64), nearest: head.linear.weight (7,64)");
    unlink("changed.safetensors");
    ctn_module_free(other);
    ctn_module_free(m);
    ctn_context_free(ctx);
}

/* The map under which the most variables have an array is used, even if some are missing. Without
 * any, and next to the options rename or map, names stay as they are. */
static void test_incomplete(void **state)
{
    static const char *const rename[] = {"other", "x", NULL};
    static const pair none[] = {{"vit.layernorm.", "nothing."}, {NULL, NULL}};
    enum { PAIRS = sizeof timm / sizeof *timm };
    pair some[PAIRS];
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    memcpy(some, timm, sizeof some);
    memmove(some + PAIRS - 3, some + PAIRS - 2, 2 * sizeof *some); /* without norm */
    open_context(&ctx, 1);
    make_vit(&m, ctx);
    write_as(m, some, "");
    assert_fails(ctn_weights_load(m, FILE_NAME, NULL), CTN_ENOTFOUND,
                 "does not fit the model (names of timm); missing in the file: "
                 "vit.layernorm.weight (8), vit.layernorm.bias (8); if");
    write_as(m, none, "");
    assert_fails(ctn_weights_load(m, FILE_NAME, NULL), CTN_ENOTFOUND,
                 "does not fit the model; missing in the file: vit.");
    write_as(m, timm, "");
    assert_fails(ctn_weights_load(m, FILE_NAME, CTN_OPT(ctn_weights_opt, .rename = rename)),
                 CTN_ENOTFOUND, "does not fit the model; missing in the file: vit.");
    ctn_module_free(m);
    /* A prefix is one, too, and only one of these two needs it. */
    make_linear(&m, ctx);
    OK(ctn_weights_load(m, SAVED "training.pt", CTN_OPT(ctn_weights_opt, .rename = rename)));
    assert_fails(ctn_weights_load(m, SAVED "data_parallel.pt",
                                  CTN_OPT(ctn_weights_opt, .rename = rename)),
                 CTN_ENOTFOUND, "does not fit the model; missing");
    /* A name is renamed by whole parts: f is not fc. */
    OK(ctn_weights_load(m, SAVED "training.pt",
                        CTN_OPT(ctn_weights_opt, .rename = (const char *const[]){"f", "x", NULL})));
    assert_fails(ctn_weights_load(NULL, SAVED "training.pt", NULL), CTN_EARG, "needs a module");
    assert_fails(ctn_weights_load(m, NULL, NULL), CTN_EARG, "needs a module and a path");
    ctn_module_free(m);
    ctn_context_free(ctx);
    unlink(FILE_NAME);
}

/* A tied variable takes the array of the first of its names that has one. */
static void test_tied(void **state)
{
    static const float zeros[6], ones[6] = {1, 1, 1, 1, 1, 1};
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    open_context(&ctx, 1);
    make_linear(&m, ctx);
    OK(ctn_module_tie(m, "again", ctn_module_find(m, "fc.weight")));
    const ctn_vars all = ctn_params(m);
    const bool again_first = strcmp(all.name[0], "again") == 0;
    for (int files = 0; files < 3; files++) { /* again and fc.weight, and each of them alone */
        float w[6];
        ctn__st_writer *out = NULL;
        OK(ctn__st_begin(&out, FILE_NAME));
        if (files != 2) OK(ctn__st_add(out, "again", CTN_F32, 2, (int64_t[]){2, 3}));
        if (files != 1) OK(ctn__st_add(out, "fc.weight", CTN_F32, 2, (int64_t[]){2, 3}));
        OK(ctn__st_add(out, "fc.bias", CTN_F32, 1, (int64_t[]){2}));
        if (files != 2) OK(ctn__st_put(out, "again", zeros));
        if (files != 1) OK(ctn__st_put(out, "fc.weight", ones));
        OK(ctn__st_put(out, "fc.bias", zeros));
        OK(ctn__st_finish(out));
        ctn__st_writer_free(out);
        OK(ctn_weights_load(m, FILE_NAME, NULL));
        OK(ctn_var_get(ctn_module_find(m, "fc.weight"), w, sizeof w));
        const bool zero = files == 1 || (files == 0 && again_first);
        assert_memory_equal(w, zero ? zeros : ones, sizeof w);
    }
    unlink(FILE_NAME);
    ctn_module_free(m);
    ctn_context_free(ctx);
}

/* ---- nearest names -------------------------------------------------------------------------- */

/* A file with fc.bias and up to two arrays, in this order, of the shape of fc.weight. The name of
 * one with another shape begins with an exclamation mark. */
static void write_two(const char *const names[2])
{
    static const float zeros[6];
    ctn__st_writer *w = NULL;
    OK(ctn__st_begin(&w, FILE_NAME));
    OK(ctn__st_add(w, "fc.bias", CTN_F32, 1, (int64_t[]){2}));
    for (int i = 0; i < 2 && names[i]; i++) {
        const bool other = names[i][0] == '!';
        OK(ctn__st_add(w, names[i] + other, CTN_F32, other ? 1 : 2, (int64_t[]){other ? 6 : 2, 3}));
    }
    OK(ctn__st_put(w, "fc.bias", zeros));
    for (int i = 0; i < 2 && names[i]; i++)
        OK(ctn__st_put(w, names[i] + (names[i][0] == '!'), zeros));
    OK(ctn__st_finish(w));
    ctn__st_writer_free(w);
}

/* Asserts which array is said to be the nearest to the missing fc.weight; NULL: none. */
static void assert_nearest(ctn_module *m, const char *first, const char *second, const char *want)
{
    char line[128];
    found f = {0};
    write_two((const char *const[]){first, second});
    OK(ctn_weights_compare(m, FILE_NAME, NULL, count, &f));
    snprintf(line, sizeof line, "missing in the file: fc.weight (2,3)%s%s%s\n",
             want ? ", nearest: " : "", want ? want + (want[0] == '!') : "",
             !want            ? ""
             : want[0] == '!' ? " (6)"
                              : " (2,3)");
    if (strncmp(f.text, line, strlen(line)) != 0)
        fail_msg("%s and %s: expected %sgot %s", first, second ? second : "nothing", line, f.text);
}

/* How far a name is from fc.weight: the first of two that are equally far is the nearest. A ruler
 * with k characters replaced is k away. */
static void test_nearest(void **state)
{
    static const char *const ruler[] = {"",          "xc.weight", "xx.weight", "xxxweight",
                                        "xxxxeight", "xxxxxight", "xxxxxxght"};
    enum { MOST = 6 }; /* two thirds of the name's length */
    static const struct {
        const char *name;
        int far; /* MOST + 1: too far */
    } cases[] = {
        {"fc.weighx", 1},    {"fc.wxight", 1},     {"fc.weights", 1},      {"fc.wweight", 1},
        {"afc.weight", 1},   {"c.weight", 1},      {"fc.weigh", 1},        {"fc.wight", 1},
        {"fc.wieght", 2},    {"fc.weightabc", 3},  {"abcfc.weigh", 4},     {"c.weighxyz", 4},
        {"weighx", 4},       {"eighx", 5},         {"fc.weixxx", 3},       {"fxxxxxxht", 6},
        {"fc.wab", 5},       {"xfxcx.wxeight", 4}, {"fc.weightabcdef", 6}, {"fc.weightabcdefg", 7},
        {"xxxxxxxfc.we", 7}, {"xxxxxxxht", 7},     {"x.fc.weight", 1},     {"weight", 1},
        {"!fc.weighx", 5},   {"!xx.weight", 6},    {"!xxxweight", 7},      {"!x.fc.weight", 5},
    };
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    (void)state;
    open_context(&ctx, 1);
    make_linear(&m, ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *name = cases[i].name;
        const int far = cases[i].far;
        assert_nearest(m, name, NULL, far <= MOST ? name : NULL);
        if (far <= MOST) assert_nearest(m, ruler[far], name, ruler[far]);
        if (far < MOST) assert_nearest(m, ruler[far + 1], name, name);
    }
    ctn_module_free(m);
    /* An array that another variable has is not offered. */
    found f = {0};
    ctn_module *fd = NULL;
    make_linear(&m, ctx);
    OK(ctn_linear_new(&fd, ctx, 3, 2, NULL));
    OK(ctn_module_add(m, "fd", fd));
    write_two((const char *const[]){"fc.weight", NULL});
    OK(ctn_weights_compare(m, FILE_NAME, NULL, count, &f));
    assert_string_equal(f.text, "missing in the file: fd.weight (2,3)\n"
                                "missing in the file: fd.bias (2)\n");
    unlink(FILE_NAME);
    ctn_module_free(m);
    ctn_context_free(ctx);
}

static ctn_status count_nearest(void *user, const ctn_weights_match *m)
{
    int *n = user;
    if (!m->array) n[0]++;
    if (!m->array && strstr(m->problem, ", nearest: ")) n[1]++;
    return CTN_OK;
}

/* Only the first 256 characters of names are compared, and only 64 names are searched for. */
static void test_nearest_limits(void **state)
{
    enum { LONG = 300, LAYERS = 33 };
    char layer[LONG + 1] = "", name[LONG + 16], shifted[LONG + 16], same[LONG + 16], text[1024];
    char names[2 * LAYERS][64];
    ctn_weights_item items[2 * LAYERS];
    ctn_context *ctx = NULL;
    ctn_module *m = NULL, *fc = NULL;
    ctn_weights *w = NULL;
    found f = {0};
    int n[2] = {0};
    (void)state;
    open_context(&ctx, 1);
    for (int i = 0; i < LONG; i++) layer[i] = (char)('a' + i * i % 23);
    snprintf(name, sizeof name, "%s.weight", layer);
    snprintf(shifted, sizeof shifted, "%s", name + 1); /* 2 changes: one removed, one added */
    snprintf(same, sizeof same, "%s.weighx", layer);   /* none in the first 256 */
    OK(ctn_module_new(&m, ctx, NULL, NULL, NULL));
    OK(ctn_linear_new(&fc, ctx, 3, 2, NULL));
    OK(ctn_module_add(m, layer, fc));
    write_two((const char *const[]){shifted, same});
    OK(ctn_weights_compare(m, FILE_NAME, NULL, count, &f));
    snprintf(text, sizeof text, "missing in the file: %s (2,3), nearest: %s (2,3)\n", name, same);
    assert_true(strncmp(f.text, text, strlen(text)) == 0);
    ctn_module_free(m);

    OK(ctn_module_new(&m, ctx, NULL, NULL, NULL));
    for (int i = 0; i < LAYERS; i++) {
        char own[32];
        snprintf(own, sizeof own, "layer%d", i);
        OK(ctn_linear_new(&fc, ctx, 3, 2, NULL));
        OK(ctn_module_add(m, own, fc));
    }
    OK(ctn_weights_save(m, FILE_NAME));
    OK(ctn_weights_open(&w, FILE_NAME));
    for (int i = 0; i < 2 * LAYERS; i++) {
        ctn_weights_array a;
        OK(ctn_weights_get_array(w, i, &a));
        snprintf(names[i], sizeof names[i], "%sx", a.name);
        items[i] = (ctn_weights_item){.from = w, .array = i, .name = names[i]};
    }
    OK(ctn_weights_write("changed.safetensors", 2 * LAYERS, items));
    OK(ctn_weights_compare(m, "changed.safetensors", NULL, count_nearest, n));
    assert_int_equal(n[0], 2 * LAYERS);
    assert_int_equal(n[1], 64);
    ctn_weights_free(w);
    unlink("changed.safetensors");
    unlink(FILE_NAME);
    ctn_module_free(m);
    ctn_context_free(ctx);
}

/* ---- written files -------------------------------------------------------------------------- */

static void test_write(void **state)
{
    ctn_weights *a = NULL, *b = NULL;
    ctn_weights_array array;
    float x[6];
    (void)state;
    OK(ctn_weights_open(&a, SAVED "types.pt"));
    OK(ctn_weights_open(&b, SAVED "training.pt"));
    const ctn_weights_item items[] = {
        {.from = a, .array = ctn_weights_find(a, "f32"), .name = "half", .dtype = CTN_BF16},
        {.from = b, .array = ctn_weights_find(b, "fc.weight")},
        {.from = a, .array = ctn_weights_find(a, "i64")},
        {.from = a, .array = ctn_weights_find(a, "i64"), .dtype = CTN_F32},
    };
    OK(ctn_weights_write(FILE_NAME, 3, items));
    assert_fails(ctn_weights_write("x.safetensors", 4, items), CTN_EARG, "'i64' was already added");
    assert_fails(ctn_weights_write("x.safetensors", 1, items + 3), CTN_EDTYPE,
                 "cannot be converted");
    assert_int_equal(access("x.safetensors", F_OK), -1);
    ctn_weights_free(a);
    ctn_weights_free(b);
    OK(ctn_weights_open(&a, FILE_NAME));
    assert_string_equal(ctn_weights_format(a), "safetensors");
    assert_int_equal(ctn_weights_arrays(a), 3);
    OK(ctn_weights_get_array(a, ctn_weights_find(a, "half"), &array));
    assert_int_equal(array.dtype, CTN_BF16);
    OK(ctn_weights_read(a, ctn_weights_find(a, "half"), CTN_F32, x, sizeof x));
    for (int i = 0; i < 6; i++) assert_true(x[i] == (float)i);
    ctn_weights_free(a);
    unlink(FILE_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pytorch),        cmocka_unit_test(test_pytorch_folder),
        cmocka_unit_test(test_many_files),     cmocka_unit_test(test_vit),
        cmocka_unit_test(test_short_parts),    cmocka_unit_test(test_counters),
        cmocka_unit_test(test_explained),      cmocka_unit_test(test_incomplete),
        cmocka_unit_test(test_tied),           cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_nearest_limits), cmocka_unit_test(test_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
