/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks from the config.json of a published model: the keys of Hugging Face, translated to the
 * options of a family. A setting that would change the results and that Catena does not have is an
 * error, never ignored.
 */
#include <unistd.h>

#include "nn/zoo/zoo.h"

#ifdef CTN_HAVE_YYJSON
#include "base/json.h"
#include "base/readfile.h"

typedef struct {
    const char *path;
    yyjson_val *root;
    bool *wrong; /* a size was out of range, and the error is recorded */
} config;

/* ---- reading keys ---------------------------------------------------------------------------- */

/* A size, which fits an int. */
static int64_t whole(const config *c, const char *key, int64_t usual)
{
    yyjson_val *v = yyjson_obj_get(c->root, key);
    if (!yyjson_is_int(v)) return usual;
    const bool big = yyjson_is_uint(v) && yyjson_get_uint(v) > INT32_MAX;
    if (!big && yyjson_get_sint(v) >= 0) return yyjson_get_sint(v);
    if (!*c->wrong)
        ctn_fail(CTN_EFORMAT, "zoo_open: %s: '%s' is %s, expected an integer from 0 to %d", c->path,
                 key, big ? "too large" : "negative", INT32_MAX);
    *c->wrong = true;
    return -1; /* which no network takes */
}

static double real(const config *c, const char *key, double usual)
{
    yyjson_val *v = yyjson_obj_get(c->root, key);
    return yyjson_is_num(v) ? yyjson_get_num(v) : usual;
}

static bool flag(const config *c, const char *key, bool usual)
{
    yyjson_val *v = yyjson_obj_get(c->root, key);
    return yyjson_is_bool(v) ? yyjson_get_bool(v) : usual;
}

static const char *word(const config *c, const char *key, const char *usual)
{
    yyjson_val *v = yyjson_obj_get(c->root, key);
    return yyjson_is_str(v) ? yyjson_get_str(v) : usual;
}

static ctn_status unsupported(const config *c, const char *key, const char *what)
{
    return ctn_fail(CTN_EUNSUPPORTED, "zoo_open: %s: '%s' is %s, which Catena does not have",
                    c->path, key, what);
}

/* Errors: EUNSUPPORTED unless the text of the key is `only`, or the key is not there. */
static ctn_status must_be(const config *c, const char *key, const char *only)
{
    const char *v = word(c, key, only);
    return strcmp(v, only) == 0 ? CTN_OK : unsupported(c, key, v);
}

double ctn__config_mb;

/* A file of a few bytes can ask for a network of any size, so it is refused before it is made if
 * its parameters are larger than the memory of this host. rows: of all matrices beside the layers.
 */
static ctn_status check_size(const config *c, double layers, double width, double inner,
                             double hidden, double rows)
{
    const double layer_bytes = 1 << 16; /* modules, names, small arrays */
    const double each = 4 * width * (4 * inner + 2 * hidden) + layer_bytes;
    const double mb = (layers * each + 4 * width * rows) / (1 << 20);
    double most = ctn__config_mb;
    if (most == 0)
        most = (double)sysconf(_SC_PHYS_PAGES) / (1 << 20) * (double)sysconf(_SC_PAGESIZE);
    if (mb <= most || layers > CTN__ZOO_LAYERS) return CTN_OK; /* so many are refused later */
    return ctn_fail(CTN_ENOMEM,
                    "zoo_open: %s describes a network of about %.0f MB, but this host has only "
                    "%.0f MB of memory",
                    c->path, mb, most);
}

/* What a key that is missing, or 0, stands for is at most this. */
static double at_least(const config *c, const char *key, double usual)
{
    const int64_t n = whole(c, key, 0);
    return n > 0 ? (double)n : usual;
}

/* Rows of the matrices of tokens and positions. */
static double token_rows(const config *c, const char *positions)
{
    return 2 * at_least(c, "vocab_size", 50257) + at_least(c, positions, 1024);
}

/* The same for the families that share the keys of layers. */
static ctn_status check_layers(const config *c, double rows)
{
    const double width = at_least(c, "hidden_size", 1024);
    const double inner = at_least(c, "num_attention_heads", 16) * at_least(c, "head_dim", 0);
    return check_size(c, at_least(c, "num_hidden_layers", 24), width, inner > width ? inner : width,
                      1.5 * at_least(c, "intermediate_size", 4 * width), rows);
}

/* ---- families -------------------------------------------------------------------------------- */

static ctn_status open_gpt2(ctn_module **m, ctn_context *ctx, const config *c)
{
    const int64_t width = whole(c, "n_embd", 768);
    CTN_TRY(must_be(c, "activation_function", "gelu_new"));
    if (whole(c, "n_inner", 4 * width) != 4 * width)
        return unsupported(c, "n_inner", "not 4 n_embd");
    if (real(c, "layer_norm_epsilon", 1e-5) != 1e-5)
        return unsupported(c, "layer_norm_epsilon", "not 1e-5");
    const double w = at_least(c, "n_embd", 1024);
    CTN_TRY(check_size(c, at_least(c, "n_layer", 24), w, w, 4 * w, token_rows(c, "n_positions")));
    return ctn_zoo_gpt(m, ctx,
                       CTN_OPT(ctn_gpt_opt, .vocabulary = whole(c, "vocab_size", 50257),
                               .block = whole(c, "n_positions", 1024), .width = width,
                               .layers = (int)whole(c, "n_layer", 12),
                               .heads = (int)whole(c, "n_head", 12),
                               .untied = !flag(c, "tie_word_embeddings", true)));
}

/* The base of the rotary embedding, which newer files have in an object of its own. */
static ctn_status rotary_base(const config *c, double *base)
{
    config in = {c->path, yyjson_obj_get(c->root, "rope_parameters"), c->wrong};
    if (!in.root) in.root = yyjson_obj_get(c->root, "rope_scaling");
    *base = real(c, "rope_theta", 10000);
    if (!yyjson_is_obj(in.root)) return CTN_OK;
    *base = real(&in, "rope_theta", *base);
    CTN_TRY(must_be(&in, "rope_type", "default"));
    return must_be(&in, "type", "default");
}

static ctn_status open_llama(ctn_module **m, ctn_context *ctx, const config *c)
{
    const char *type = word(c, "model_type", "");
    const bool qwen = strcmp(type, "qwen2") == 0;
    const bool window = qwen ? flag(c, "use_sliding_window", false) : true;
    double base = 0;
    CTN_TRY(rotary_base(c, &base));
    CTN_TRY(must_be(c, "hidden_act", "silu"));
    if (flag(c, "mlp_bias", false)) return unsupported(c, "mlp_bias", "true");
    if (flag(c, "attention_bias", false)) return unsupported(c, "attention_bias", "true");
    CTN_TRY(check_layers(c, token_rows(c, "max_position_embeddings")));
    return ctn_zoo_llama(m, ctx,
                         CTN_OPT(ctn_llama_opt, .vocabulary = whole(c, "vocab_size", 0),
                                 .block = whole(c, "max_position_embeddings", 0),
                                 .width = whole(c, "hidden_size", 0),
                                 .hidden = whole(c, "intermediate_size", 0),
                                 .layers = (int)whole(c, "num_hidden_layers", 0),
                                 .heads = (int)whole(c, "num_attention_heads", 0),
                                 .kv_heads = (int)whole(c, "num_key_value_heads", 0),
                                 .head_width = whole(c, "head_dim", 0), .rotary_base = base,
                                 .eps = real(c, "rms_norm_eps", 1e-6),
                                 .window = window ? whole(c, "sliding_window", 0) : 0,
                                 .untied = !flag(c, "tie_word_embeddings", false),
                                 .qkv_bias = qwen));
}

/* The first word of the list `architectures`; NULL: there is none. */
static const char *architecture(const config *c)
{
    return yyjson_get_str(yyjson_arr_get_first(yyjson_obj_get(c->root, "architectures")));
}

static bool is_one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(*list, word) != 0) list++;
    return *list != NULL;
}

/* Labels of a classifier. Files have their names instead of the number, unless there are two. */
static int64_t labels(const config *c)
{
    yyjson_val *names = yyjson_obj_get(c->root, "id2label");
    return whole(c, "num_labels", yyjson_is_obj(names) ? (int64_t)yyjson_obj_size(names) : 2);
}

static ctn_status open_bert(ctn_module **m, ctn_context *ctx, const config *c)
{
    static const char *const masked[] = {"BertForMaskedLM", "BertForPreTraining", NULL};
    const char *kind = architecture(c);
    const bool classify = kind && strcmp(kind, "BertForSequenceClassification") == 0;
    if (kind && !classify && !is_one_of(kind, masked)) return unsupported(c, "architectures", kind);
    CTN_TRY(must_be(c, "hidden_act", "gelu"));
    CTN_TRY(must_be(c, "position_embedding_type", "absolute"));
    if (flag(c, "is_decoder", false)) return unsupported(c, "is_decoder", "true");
    if (!flag(c, "tie_word_embeddings", true))
        return unsupported(c, "tie_word_embeddings", "false");
    CTN_TRY(check_layers(c, token_rows(c, "max_position_embeddings") + (double)labels(c) +
                                (double)whole(c, "type_vocab_size", 0)));
    return ctn_zoo_bert(m, ctx,
                        CTN_OPT(ctn_bert_opt, .vocabulary = whole(c, "vocab_size", 0),
                                .block = whole(c, "max_position_embeddings", 0),
                                .types = whole(c, "type_vocab_size", 0),
                                .width = whole(c, "hidden_size", 0),
                                .hidden = whole(c, "intermediate_size", 3072),
                                .layers = (int)whole(c, "num_hidden_layers", 0),
                                .heads = (int)whole(c, "num_attention_heads", 0),
                                .eps = real(c, "layer_norm_eps", 0),
                                .classes = classify ? labels(c) : 0));
}

/* The side of a square. Errors: EUNSUPPORTED if the file has a list, of height and width. */
static ctn_status side(const config *c, const char *key, int64_t usual, int64_t *n)
{
    yyjson_val *v = yyjson_obj_get(c->root, key);
    *n = whole(c, key, usual);
    return !v || yyjson_is_int(v) ? CTN_OK : unsupported(c, key, "not a number");
}

static ctn_status open_vit(ctn_module **m, ctn_context *ctx, const config *c)
{
    const char *kind = architecture(c);
    int64_t image = 0, patch = 0;
    if (kind && strcmp(kind, "ViTForImageClassification") != 0)
        return unsupported(c, "architectures", kind);
    CTN_TRY(must_be(c, "hidden_act", "gelu"));
    if (!flag(c, "qkv_bias", true)) return unsupported(c, "qkv_bias", "false");
    CTN_TRY(side(c, "image_size", 224, &image));
    CTN_TRY(side(c, "patch_size", 16, &patch));
    const double patches = patch > 0 ? (double)image / (double)patch : 0;
    CTN_TRY(
        check_layers(c, (double)labels(c) + patches * patches +
                            (double)whole(c, "num_channels", 3) * (double)patch * (double)patch));
    return ctn_zoo_vit(m, ctx,
                       CTN_OPT(ctn_vit_opt, .classes = labels(c),
                               .in_channels = whole(c, "num_channels", 3), .image = image,
                               .patch = patch, .width = whole(c, "hidden_size", 0),
                               .hidden = whole(c, "intermediate_size", 3072),
                               .layers = (int)whole(c, "num_hidden_layers", 0),
                               .heads = (int)whole(c, "num_attention_heads", 0),
                               .eps = real(c, "layer_norm_eps", 0)));
}

static const struct {
    const char *type;
    ctn_status (*open)(ctn_module **m, ctn_context *ctx, const config *c);
} kinds[] = {
    {"gpt2", open_gpt2},   {"llama", open_llama}, {"mistral", open_llama},
    {"qwen2", open_llama}, {"bert", open_bert},   {"vit", open_vit},
};

static ctn_status open_kind(ctn_module **m, ctn_context *ctx, const config *c)
{
    const char *type = word(c, "model_type", NULL);
    ctn__text all = {0};
    if (!type) return ctn_fail(CTN_EFORMAT, "zoo_open: %s has no key 'model_type'", c->path);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].type, type) == 0) return kinds[i].open(m, ctx, c);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        ctn__text_add(&all, " %s", kinds[i].type);
    ctn_status st =
        all.failed ? CTN_ENOMEM
                   : ctn_fail(CTN_EUNSUPPORTED, "zoo_open: %s: model_type is '%s'; known types:%s",
                              c->path, type, all.s);
    ctn__text_free(&all);
    return st;
}

/* ---- the files ------------------------------------------------------------------------------- */

/* A file with one JSON object; free the document and the text. */
static ctn_status read_object(const char *file, yyjson_doc **doc, char **text)
{
    enum { MOST = 10000000 };
    size_t n = 0;
    yyjson_read_err err = {0};
    CTN_TRY(ctn__file_whole("zoo_open", file, MOST, text, &n));
    *doc = yyjson_read_opts(*text, n, 0, &ctn__json_memory, &err);
    if (!*doc && err.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION) return CTN_ENOMEM;
    if (*doc && yyjson_is_obj(yyjson_doc_get_root(*doc))) return CTN_OK;
    return ctn_fail(CTN_EFORMAT, "zoo_open: %s is not a JSON object: %s at byte %zu", file,
                    *doc ? "another value" : err.msg, *doc ? (size_t)0 : err.pos);
}

/* eos_token_id, a number or a list of them. */
static ctn_status read_ends(ctn_module *m, const config *c)
{
    size_t i, max;
    yyjson_val *v = yyjson_obj_get(c->root, "eos_token_id"), *id;
    const bool one = yyjson_is_int(v);
    if (!one && !yyjson_is_arr(v)) return CTN_OK;
    m->ends = 0;
    for (i = 0, max = one ? 1 : yyjson_arr_size(v); i < max; i++) {
        id = one ? v : yyjson_arr_get(v, i);
        if (!yyjson_is_uint(id) || yyjson_get_uint(id) > INT32_MAX || i == CTN__ENDS)
            return ctn_fail(CTN_EFORMAT, "zoo_open: %s: 'eos_token_id' must be at most %d tokens",
                            c->path, CTN__ENDS);
        m->end[m->ends++] = (int32_t)yyjson_get_uint(id);
    }
    return CTN_OK;
}

/* generation_config.json beside config.json, if it is there, counts more. */
static ctn_status read_generation(ctn_module *m, const char *beside)
{
    char file[4096];
    char *text = NULL;
    yyjson_doc *doc = NULL;
    const char *slash = strrchr(beside, '/');
    snprintf(file, sizeof file, "%.*sgeneration_config.json", slash ? (int)(slash + 1 - beside) : 0,
             beside);
    if (access(file, F_OK) != 0) return CTN_OK;
    ctn_status st = read_object(file, &doc, &text);
    if (st == CTN_OK) st = read_ends(m, &(config){file, yyjson_doc_get_root(doc), NULL});
    yyjson_doc_free(doc);
    ctn__free(text);
    return st;
}

ctn_status ctn_zoo_open(ctn_module **m, ctn_context *ctx, const char *path)
{
    char *text = NULL, file[4096];
    struct stat info;
    yyjson_doc *doc = NULL;
    bool wrong = false;
    if (!m || !ctx || !path) return ctn_fail(CTN_EARG, "zoo_open: NULL argument");
    *m = NULL;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    snprintf(file, sizeof file, "%s%s", path, folder ? "/config.json" : "");
    ctn_status st = read_object(file, &doc, &text);
    const config c = {file, doc ? yyjson_doc_get_root(doc) : NULL, &wrong};
    if (st == CTN_OK) st = open_kind(m, ctx, &c);
    if (wrong) st = CTN_EFORMAT;
    if (st == CTN_OK) st = read_ends(*m, &c);
    if (st == CTN_OK) st = read_generation(*m, file);
    if (st < 0) ctn_module_free(*m), *m = NULL;
    yyjson_doc_free(doc);
    ctn__free(text);
    return st;
}

#else

ctn_status ctn_zoo_open(ctn_module **m, ctn_context *ctx, const char *path)
{
    (void)ctx, (void)path;
    if (m) *m = NULL;
    return ctn_fail(CTN_EUNSUPPORTED, "zoo_open: Catena was built without yyjson");
}

#endif
