/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks as folders that other programs read: those of published models, as `transformers` reads
 * them, and those of adapters, as `peft` does. The names and layouts of the weights are part of
 * each network (ctn__published). Everything else comes from the folder of the model that the
 * network began with.
 */
#include <errno.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/weights.h"

#ifdef CTN_HAVE_YYJSON
#include "base/json.h"
#include "base/newfile.h"
#include "base/readfile.h"

#define ADAPTERS "adapter_model.safetensors"
#define ADAPTER_CONFIG "adapter_config.json"
#define BEFORE_ADAPTERS "base_model.model."

enum { FILE_MOST = 1 << 28 }; /* bytes of a file that is copied, or of a configuration */

static const char *const adapter_names[] = {"lora_A.weight", "lora_B.weight", NULL};

/* ---- files ----------------------------------------------------------------------------------- */

/* Joins a folder, or the folder of a config.json, and a name. */
static ctn_status path_of(ctn__text *out, const char *folder, const char *name)
{
    static const char config[] = "config.json";
    size_t n = strlen(folder);
    out->n = 0;
    if (n >= sizeof config && strcmp(folder + n - sizeof config, "/config.json") == 0)
        n -= sizeof config;
    while (n > 1 && folder[n - 1] == '/') n--;
    ctn__text_add(out, "%.*s/%s", (int)n, folder, name);
    return out->failed ? CTN_ENOMEM : CTN_OK;
}

static ctn_status write_file(const char *path, const char *text, size_t n)
{
    ctn__newfile f = {.fd = -1};
    ctn_status st = ctn__newfile_open(&f, path);
    if (st == CTN_OK) st = ctn__newfile_write(&f, text, n);
    if (st == CTN_OK) st = ctn__newfile_commit(&f);
    ctn__newfile_close(&f);
    return st;
}

static ctn_status write_json(const yyjson_mut_doc *doc, const char *folder, const char *name)
{
    size_t n = 0;
    ctn__text path = {0};
    char *text =
        yyjson_mut_write_opts(doc, YYJSON_WRITE_PRETTY_TWO_SPACES, &ctn__json_memory, &n, NULL);
    ctn_status st = text ? path_of(&path, folder, name) : CTN_ENOMEM;
    if (st == CTN_OK) st = write_file(path.s, text, n);
    ctn__text_free(&path);
    ctn__free(text);
    return st;
}

/* The object in a file; free the document and the text. */
static ctn_status read_json(const char *who, const char *folder, const char *name, yyjson_doc **doc,
                            char **text)
{
    size_t n = 0;
    ctn__text path = {0};
    ctn_status st = path_of(&path, folder, name);
    if (st == CTN_OK) st = ctn__file_whole(who, path.s, FILE_MOST, text, &n);
    if (st == CTN_OK) {
        *doc = yyjson_read_opts(*text, n, 0, &ctn__json_memory, NULL);
        if (!*doc || !yyjson_is_obj(yyjson_doc_get_root(*doc)))
            st = ctn_fail(CTN_EFORMAT, "%s: %s is not a JSON object", who, path.s);
    }
    ctn__text_free(&path);
    return st;
}

/* A file that is not there is left out. */
static ctn_status copy_file(const char *from, const char *to, const char *name)
{
    size_t n = 0;
    char *text = NULL;
    ctn__text a = {0}, b = {0};
    ctn_status st = path_of(&a, from, name);
    if (st == CTN_OK) st = path_of(&b, to, name);
    if (st == CTN_OK && access(a.s, F_OK) == 0) {
        st = ctn__file_whole("published_write", a.s, FILE_MOST, &text, &n);
        if (st == CTN_OK) st = write_file(b.s, text, n);
    }
    ctn__free(text);
    ctn__text_free(&a);
    ctn__text_free(&b);
    return st;
}

/* ---- a published model ----------------------------------------------------------------------- */

/* What describes the model beside its weights. */
static const char *const beside[] = {
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "special_tokens_map.json",
    "encoder.json",
    "vocab.bpe",
    "chat_template.jinja",
    "preprocessor_config.json",
};

/* config.json with the type that the weights have now. */
static ctn_status write_config(const char *from, const char *folder, ctn_dtype type)
{
    static const char *const keys[] = {"torch_dtype", "dtype"};
    yyjson_doc *doc = NULL;
    yyjson_mut_doc *to = NULL;
    char *text = NULL;
    ctn_status st = read_json("published_write", from, "config.json", &doc, &text);
    if (st == CTN_OK) {
        to = yyjson_doc_mut_copy(doc, &ctn__json_memory);
        st = to ? CTN_OK : CTN_ENOMEM;
    }
    for (int i = 0; i < 2 && st == CTN_OK; i++) {
        yyjson_mut_val *v = yyjson_mut_obj_get(yyjson_mut_doc_get_root(to), keys[i]);
        if (v) yyjson_mut_set_str(v, type == CTN_F64 ? "float64" : "float32");
    }
    if (st == CTN_OK) st = write_json(to, folder, "config.json");
    yyjson_mut_doc_free(to);
    yyjson_doc_free(doc);
    ctn__free(text);
    return st;
}

static ctn_status save_model(ctn_module *m, const char *from, const char *folder)
{
    ctn__text path = {0};
    CTN_TRY(write_config(from, folder, ctn_context_float_type(m->ctx)));
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        CTN_TRY(copy_file(from, folder, beside[i]));
    ctn_status st = path_of(&path, folder, "model.safetensors");
    if (st == CTN_OK) st = ctn__weights_save_published(m, path.s, "", NULL);
    ctn__text_free(&path);
    return st;
}

/* ---- adapters -------------------------------------------------------------------------------- */

typedef struct {
    ctn_module *root;
    yyjson_mut_doc *doc; /* NULL: only count */
    yyjson_mut_val *list;
    int n; /* modules with an adapter */
    int64_t rank;
    double scale;
} adapters;

static ctn_status add_adapted(void *user, const char *name, ctn_module *m)
{
    adapters *a = user;
    char full[1024];
    const ctn__linear *l = ctn__linear_of(m);
    if (!l || !l->lora_a) return CTN_OK;
    const int64_t rank = l->lora_a->d.dim[0];
    if (a->n++ > 0 && (rank != a->rank || l->scale != a->scale))
        return ctn_fail(CTN_EUNSUPPORTED,
                        "published_write: the adapter of '%s' has rank %lld and scale %g, others "
                        "have %lld and %g",
                        name, (long long)rank, l->scale, (long long)a->rank, a->scale);
    a->rank = rank;
    a->scale = l->scale;
    if (!a->doc) return CTN_OK;
    CTN_TRY(ctn__published_name(a->root, "", name, full, sizeof full));
    return yyjson_mut_arr_add_strcpy(a->doc, a->list, full) ? CTN_OK : CTN_ENOMEM;
}

static bool fill_config(const adapters *a, yyjson_mut_val *o, const char *from)
{
    yyjson_mut_doc *d = a->doc;
    const double alpha = a->scale * (double)a->rank;
    const bool turned = a->root->published->turned != NULL;
    const char *task = a->root->decoder ? "CAUSAL_LM" : NULL;
    return yyjson_mut_obj_add_str(d, o, "peft_type", "LORA") &&
           (task ? yyjson_mut_obj_add_str(d, o, "task_type", task)
                 : yyjson_mut_obj_add_null(d, o, "task_type")) &&
           yyjson_mut_obj_add_strcpy(d, o, "base_model_name_or_path", from) &&
           yyjson_mut_obj_add_int(d, o, "r", a->rank) &&
           (alpha == floor(alpha) && alpha < 1e15
                ? yyjson_mut_obj_add_int(d, o, "lora_alpha", (int64_t)alpha)
                : yyjson_mut_obj_add_real(d, o, "lora_alpha", alpha)) &&
           yyjson_mut_obj_add_real(d, o, "lora_dropout", 0) &&
           yyjson_mut_obj_add_str(d, o, "bias", "none") &&
           yyjson_mut_obj_add_bool(d, o, "fan_in_fan_out", turned) &&
           yyjson_mut_obj_add_bool(d, o, "inference_mode", true) &&
           yyjson_mut_obj_add_val(d, o, "target_modules", a->list);
}

static ctn_status save_adapters(adapters *a, const char *from, const char *folder)
{
    ctn__text path = {0};
    ctn_status st = CTN_ENOMEM;
    a->doc = yyjson_mut_doc_new(&ctn__json_memory);
    yyjson_mut_val *root = a->doc ? yyjson_mut_obj(a->doc) : NULL;
    a->list = root ? yyjson_mut_arr(a->doc) : NULL;
    if (!a->list) goto done;
    yyjson_mut_doc_set_root(a->doc, root);
    CTN_TRY_GOTO(st, done, ctn_module_visit_modules(a->root, add_adapted, a));
    CTN_TRY_GOTO(st, done, fill_config(a, root, from) ? CTN_OK : CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, write_json(a->doc, folder, ADAPTER_CONFIG));
    CTN_TRY_GOTO(st, done, path_of(&path, folder, ADAPTERS));
    CTN_TRY_GOTO(st, done,
                 ctn__weights_save_published(a->root, path.s, BEFORE_ADAPTERS, adapter_names));
done:
    ctn__text_free(&path);
    yyjson_mut_doc_free(a->doc);
    return st;
}

/* ---- save ------------------------------------------------------------------------------------ */

static ctn_status check_folders(const char *from, const char *folder)
{
    struct stat a, b;
    ctn__text path = {0};
    CTN_TRY(ctn__make_folder(folder, 0777) == CTN_OK
                ? CTN_OK
                : ctn_fail(CTN_EIO, "published_write: cannot make the folder %s: %s", folder,
                           strerror(errno)));
    ctn_status st = path_of(&path, from, "");
    if (st == CTN_OK && stat(path.s, &a) == 0 && stat(folder, &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        st = ctn_fail(CTN_EARG,
                      "published_write: %s is the folder of the model itself: choose another one",
                      folder);
    ctn__text_free(&path);
    return st;
}

ctn_status ctn_published_write(ctn_module *m, const char *from, const char *folder)
{
    if (!m || !from || !*from || !folder || !*folder)
        return ctn_fail(CTN_EARG, "published_write: needs a network and two folders");
    if (!m->published)
        return ctn_fail(CTN_EARG, "published_write: the network is none that ctn_zoo_open makes");
    adapters a = {.root = m};
    CTN_TRY(ctn_module_visit_modules(m, add_adapted, &a));
    CTN_TRY(check_folders(from, folder));
    if (a.n == 0) return save_model(m, from, folder);
    a.n = 0;
    return save_adapters(&a, from, folder);
}

/* ---- load adapters --------------------------------------------------------------------------- */

typedef struct {
    const ctn_module *m;
    CTN__VEC(const char *) only; /* names of modules, ended by NULL */
    ctn__arena names;
    int64_t rank; /* 0: not known yet */
} found;

/* Settings that say nothing about the results, or that are checked elsewhere. */
static const char *const harmless[] = {
    "auto_mapping",    "base_model_name_or_path", "ensure_weight_tying",
    "exclude_modules", "fan_in_fan_out",          "inference_mode",
    "layers_pattern",  "layers_to_transform",     "lora_alpha",
    "lora_dropout",    "megatron_core",           "peft_type",
    "peft_version",    "qalora_group_size",       "r",
    "revision",        "target_modules",          "task_type",
    "use_rslora",
};

static bool is_off(yyjson_val *v)
{
    return yyjson_is_null(v) || yyjson_is_false(v) ||
           ((yyjson_is_arr(v) || yyjson_is_obj(v) || yyjson_is_str(v)) &&
            unsafe_yyjson_get_len(v) == 0);
}

static bool is_known(const char *key, yyjson_val *v)
{
    for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
        if (strcmp(key, harmless[i]) == 0) return true;
    if (strcmp(key, "bias") == 0) return yyjson_equals_str(v, "none");
    /* Others begin with changed weights of the model. */
    if (strcmp(key, "init_lora_weights") == 0)
        return yyjson_is_bool(v) || yyjson_equals_str(v, "gaussian");
    return is_off(v);
}

/* Whatever else is set may change the results. */
static ctn_status check_config(yyjson_val *o, const char *folder)
{
    size_t i, n;
    yyjson_val *key, *v;
    const char *wrong =
        yyjson_equals_str(yyjson_obj_get(o, "peft_type"), "LORA") ? NULL : "peft_type";
    yyjson_obj_foreach(o, i, n, key, v)
    {
        if (!wrong && !is_known(yyjson_get_str(key), v)) wrong = yyjson_get_str(key);
    }
    if (!wrong) return CTN_OK;
    return ctn_fail(CTN_EUNSUPPORTED,
                    "lora_open: %s/" ADAPTER_CONFIG " sets '%.100s' to something that Catena does "
                    "not have",
                    folder, wrong);
}

/* The name of a module in m for that of an array of adapters, without the ending. */
static const char *module_of(found *f, const char *array, size_t n)
{
    const size_t before = strlen(BEFORE_ADAPTERS);
    const char *prefix = f->m->published ? f->m->published->prefix : "";
    if (n <= before || strncmp(array, BEFORE_ADAPTERS, before) != 0) return NULL;
    array += before;
    n -= before;
    const size_t k = strlen(prefix);
    if (f->m->published && f->m->published->bare && n > k && strncmp(array, prefix, k) == 0) {
        array += k;
        n -= k;
    }
    return ctn__arena_printf(&f->names, "%.*s", (int)n, array);
}

static ctn_status take_array(found *f, const ctn_weights_array *a, const char *path)
{
    static const char first[] = ".lora_A.weight", second[] = ".lora_B.weight";
    const size_t n = strlen(a->name), end = sizeof first - 1;
    const bool is_a = n > end && strcmp(a->name + n - end, first) == 0;
    if (!is_a && (n <= end || strcmp(a->name + n - end, second) != 0))
        return ctn_fail(CTN_EUNSUPPORTED,
                        "lora_open: %s has '%s', which is no adapter of a linear layer", path,
                        a->name);
    if (!is_a) return CTN_OK;
    if (a->ndim != 2 || (f->rank > 0 && a->shape[0] != f->rank))
        return ctn_fail(CTN_EUNSUPPORTED, "lora_open: '%s' of %s has another rank than others",
                        a->name, path);
    f->rank = a->shape[0];
    const char *name = module_of(f, a->name, n - end);
    if (!name)
        return ctn_fail(CTN_EFORMAT, "lora_open: '%s' of %s does not begin with " BEFORE_ADAPTERS,
                        a->name, path);
    return ctn__vec_push(&f->only, name) ? CTN_OK : CTN_ENOMEM;
}

static ctn_status list_adapters(found *f, const char *path)
{
    ctn_weights *w = NULL;
    CTN_TRY(ctn_weights_open(&w, path));
    ctn_status st = CTN_OK;
    for (int64_t i = 0; i < ctn_weights_arrays(w) && st == CTN_OK; i++)
        st = take_array(f, ctn__weights_at(w, i), path);
    if (st == CTN_OK && f->only.n == 0)
        st = ctn_fail(CTN_EFORMAT, "lora_open: %s has no adapters", path);
    if (st == CTN_OK && !ctn__vec_push(&f->only, NULL)) st = CTN_ENOMEM;
    ctn_weights_free(w);
    return st;
}

static const char *adapter_name(void *user, const char *name, char *buf, size_t n)
{
    return ctn__published_name(user, BEFORE_ADAPTERS, name, buf, n) == CTN_OK ? buf : NULL;
}

/* The file of the adapters: safetensors, or what older versions wrote. */
static ctn_status find_file(ctn__text *path, const char *folder)
{
    CTN_TRY(path_of(path, folder, ADAPTERS));
    if (access(path->s, F_OK) == 0) return CTN_OK;
    CTN_TRY(path_of(path, folder, "adapter_model.bin"));
    if (access(path->s, F_OK) == 0) return CTN_OK;
    return ctn_fail(CTN_EIO, "lora_open: %s has neither " ADAPTERS " nor adapter_model.bin",
                    folder);
}

static ctn_status scale_of(yyjson_val *o, const found *f, const char *folder, double *alpha)
{
    const double r = yyjson_get_num(yyjson_obj_get(o, "r"));
    yyjson_val *a = yyjson_obj_get(o, "lora_alpha");
    *alpha = yyjson_is_num(a) ? yyjson_get_num(a) : 8;
    if (r != (double)f->rank || !(*alpha > 0))
        return ctn_fail(CTN_EFORMAT,
                        "lora_open: %s/" ADAPTER_CONFIG " says rank %g and alpha %g, and the "
                        "adapters have rank %lld",
                        folder, r, *alpha, (long long)f->rank);
    if (yyjson_get_bool(yyjson_obj_get(o, "use_rslora"))) *alpha *= sqrt(r);
    return CTN_OK;
}

ctn_status ctn_lora_open(ctn_module *m, const char *folder)
{
    char *text = NULL;
    double alpha = 0;
    yyjson_doc *doc = NULL;
    ctn__text path = {0};
    found f = {.m = m};
    ctn_status st = CTN_OK;
    if (!m || !folder) return ctn_fail(CTN_EARG, "lora_open: needs a network and a folder");
    CTN_TRY_GOTO(st, done, read_json("lora_open", folder, ADAPTER_CONFIG, &doc, &text));
    CTN_TRY_GOTO(st, done, check_config(yyjson_doc_get_root(doc), folder));
    CTN_TRY_GOTO(st, done, find_file(&path, folder));
    CTN_TRY_GOTO(st, done, list_adapters(&f, path.s));
    CTN_TRY_GOTO(st, done, scale_of(yyjson_doc_get_root(doc), &f, folder, &alpha));
    CTN_TRY_GOTO(st, done,
                 ctn_lora_add(m, CTN_OPT(ctn_lora_opt, .rank = f.rank, .alpha = alpha,
                                         .only = f.only.at)));
    CTN_TRY_GOTO(st, done,
                 ctn_weights_load(m, path.s,
                                  CTN_OPT(ctn_weights_opt, .partial = 1, .map = adapter_name,
                                          .user = m)));
done:
    yyjson_doc_free(doc);
    ctn__free(text);
    ctn__text_free(&path);
    ctn__vec_free(&f.only);
    ctn__arena_free(&f.names);
    return st;
}

#else

ctn_status ctn_published_write(ctn_module *m, const char *from, const char *folder)
{
    (void)m, (void)from, (void)folder;
    return ctn_fail(CTN_EUNSUPPORTED, "published_write: Catena was built without yyjson");
}

ctn_status ctn_lora_open(ctn_module *m, const char *folder)
{
    (void)m, (void)folder;
    return ctn_fail(CTN_EUNSUPPORTED, "lora_open: Catena was built without yyjson");
}

#endif
