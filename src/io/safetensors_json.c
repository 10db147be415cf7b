/* SPDX-License-Identifier: Apache-2.0
 *
 * The header text of safetensors files, read and written with yyjson, and the text of an index of
 * several files. Called by safetensors.c and safetensors_index.c. In a build without yyjson, these
 * functions return EUNSUPPORTED.
 */
#include "io/safetensors_json.h"

/* The types of the format; dtype 0: valid, but not supported by Catena. */
static const struct type {
    const char *name;
    ctn_dtype dtype;
} types[] = {
    {"F32", CTN_F32}, {"F64", CTN_F64}, {"BF16", CTN_BF16}, {"F16", CTN_F16}, {"I64", CTN_I64},
    {"I32", CTN_I32}, {"U8", CTN_U8},   {"BOOL", CTN_BOOL}, {"I8", 0},        {"I16", 0},
    {"U16", 0},       {"U32", 0},       {"U64", 0},         {"C64", 0},       {"F8_E4M3", 0},
    {"F8_E5M2", 0},   {"F8_E8M0", 0},   {"F6_E2M3", 0},     {"F6_E3M2", 0},   {"F4", 0},
};
enum { TYPES = sizeof types / sizeof types[0] };

const char *ctn__st_type_name(ctn_dtype dtype)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].dtype && types[i].dtype == dtype) return types[i].name;
    return NULL;
}

#ifdef CTN_HAVE_YYJSON

#include "base/json.h"

/* Text of a JSON string; NULL if it contains U+0000, which C strings cannot hold. */
static const char *text_of(yyjson_val *v)
{
    const char *s = yyjson_get_str(v);
    return s && strlen(s) == yyjson_get_len(v) ? s : NULL;
}

static ctn_status parse_dtype(const char *file, const char *name, yyjson_val *v, ctn_dtype *out)
{
    for (int i = 0; i < TYPES; i++) {
        if (!yyjson_equals_str(v, types[i].name)) continue;
        *out = types[i].dtype;
        if (*out) return CTN_OK;
        return ctn_fail(CTN_EDTYPE,
                        "safetensors: %s: '%s' has type %s, which Catena does not support", file,
                        name, types[i].name);
    }
    const char *s = text_of(v);
    return ctn_fail(CTN_EFORMAT, "safetensors: %s: dtype of '%s' is %s, expected F32, F16, ...",
                    file, name, s ? s : "not a plain string");
}

static ctn_status parse_shape(const char *file, ctn__st_array *a, yyjson_val *v)
{
    size_t i, max;
    yyjson_val *dim;
    if (!yyjson_is_arr(v) || yyjson_arr_size(v) > CTN_MAX_DIMS)
        return ctn_fail(CTN_EFORMAT,
                        "safetensors: %s: shape of '%s' is not an array of at most %d sizes", file,
                        a->name, CTN_MAX_DIMS);
    /* If one size is 0, the product of the others is checked too. */
    size_t bytes = ctn_dtype_size(a->dtype), nonzero = bytes;
    yyjson_arr_foreach(v, i, max, dim)
    {
        if (!yyjson_is_uint(dim) || yyjson_get_uint(dim) > INT64_MAX)
            return ctn_fail(CTN_EFORMAT, "safetensors: %s: size %zu of '%s' is not an integer >= 0",
                            file, i, a->name);
        a->shape[i] = (int64_t)yyjson_get_uint(dim);
        bytes = ctn__mul(bytes, (size_t)a->shape[i]);
        if (a->shape[i]) nonzero = ctn__mul(nonzero, (size_t)a->shape[i]);
    }
    if (nonzero > INT64_MAX)
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: shape of '%s' overflows", file, a->name);
    a->ndim = (int)yyjson_arr_size(v);
    a->bytes = bytes;
    return CTN_OK;
}

static ctn_status parse_entry(const char *file, yyjson_val *key, yyjson_val *v, ctn__st_entry *e)
{
    e->a.name = text_of(key);
    if (!e->a.name) return ctn_fail(CTN_EFORMAT, "safetensors: %s: a name contains U+0000", file);
    yyjson_val *dtype = yyjson_obj_get(v, "dtype"), *shape = yyjson_obj_get(v, "shape"),
               *offsets = yyjson_obj_get(v, "data_offsets");
    /* three keys, and these three were found, so none appears twice */
    if (!dtype || !shape || !offsets || yyjson_obj_size(v) != 3)
        return ctn_fail(
            CTN_EFORMAT,
            "safetensors: %s: '%s' is not an object of exactly dtype, shape, data_offsets", file,
            e->a.name);
    CTN_TRY(parse_dtype(file, e->a.name, dtype, &e->a.dtype));
    CTN_TRY(parse_shape(file, &e->a, shape));
    yyjson_val *begin = yyjson_arr_get(offsets, 0), *end = yyjson_arr_get(offsets, 1);
    if (yyjson_arr_size(offsets) != 2 || !yyjson_is_uint(begin) || !yyjson_is_uint(end))
        return ctn_fail(CTN_EFORMAT,
                        "safetensors: %s: data_offsets of '%s' are not two integers >= 0", file,
                        e->a.name);
    e->begin = yyjson_get_uint(begin);
    e->end = yyjson_get_uint(end);
    if (e->end < e->begin || e->end - e->begin != e->a.bytes)
        return ctn_fail(
            CTN_EFORMAT,
            "safetensors: %s: data_offsets of '%s' are %llu to %llu, its shape needs %zu bytes",
            file, e->a.name, (unsigned long long)e->begin, (unsigned long long)e->end, e->a.bytes);
    return CTN_OK;
}

static ctn_status parse_metadata(ctn__st_file *f, yyjson_val *v)
{
    size_t i, max;
    yyjson_val *key, *value;
    if (f->pair)
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: __metadata__ appears twice", f->path);
    if (!yyjson_is_obj(v))
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: __metadata__ is not an object", f->path);
    f->pair = ctn__calloc(yyjson_obj_size(v), sizeof *f->pair);
    if (!f->pair) return CTN_ENOMEM;
    yyjson_obj_foreach(v, i, max, key, value)
    {
        ctn__st_pair p = {text_of(key), text_of(value)};
        if (!p.key || !p.value)
            return ctn_fail(
                CTN_EFORMAT,
                "safetensors: %s: __metadata__ entry %zu is not a string without U+0000", f->path,
                i);
        f->pair[f->pairs++] = p;
    }
    return CTN_OK;
}

/* `what` names the text in messages. */
static ctn_status read_doc(const char *path, const char *what, const char *json, size_t bytes,
                           yyjson_doc **doc)
{
    yyjson_read_err err = {0};
    /* yyjson does not write to it without the in-situ flag */
    *doc = yyjson_read_opts((char *)(uintptr_t)json, bytes, 0, &ctn__json_memory, &err);
    if (*doc) return CTN_OK;
    if (err.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return ctn_fail(CTN_ENOMEM, "safetensors: %s: no memory for the %s", path, what);
    return ctn_fail(CTN_EFORMAT, "safetensors: %s: %s is not JSON: %s at byte %zu", path, what,
                    err.msg, err.pos);
}

ctn_status ctn__st_json_read(ctn__st_file *f, const char *json, size_t bytes)
{
    yyjson_doc *doc = NULL;
    if (bytes == 0 || json[0] != '{')
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: the header does not start with '{'",
                        f->path);
    CTN_TRY(read_doc(f->path, "header", json, bytes, &doc));
    f->doc = doc;
    yyjson_val *root = yyjson_doc_get_root(doc), *key, *v;
    f->entry = ctn__calloc(yyjson_obj_size(root), sizeof *f->entry);
    if (!f->entry) return CTN_ENOMEM;
    size_t i, max;
    yyjson_obj_foreach(root, i, max, key, v)
    {
        if (yyjson_equals_str(key, "__metadata__")) {
            CTN_TRY(parse_metadata(f, v));
            continue;
        }
        f->entry[f->n].order = i;
        f->entry[f->n].file = f;
        CTN_TRY(parse_entry(f->path, key, v, &f->entry[f->n]));
        f->n++;
    }
    return CTN_OK;
}

void ctn__st_json_free(ctn__st_file *f)
{
    yyjson_doc_free(f->doc);
    f->doc = NULL;
}

static ctn_status walk_map(const char *path, yyjson_val *map, ctn__st_index_fn fn, void *user)
{
    size_t i, max;
    yyjson_val *key, *value;
    if (!yyjson_is_obj(map))
        return ctn_fail(CTN_EFORMAT, "safetensors: %s: the index has no weight_map object", path);
    yyjson_obj_foreach(map, i, max, key, value)
    {
        const char *array = text_of(key), *file = text_of(value);
        if (!array || !file)
            return ctn_fail(CTN_EFORMAT,
                            "safetensors: %s: entry %zu of weight_map is not a pair of strings "
                            "without U+0000",
                            path, i);
        CTN_TRY(fn(user, array, file));
    }
    return CTN_OK;
}

ctn_status ctn__st_json_index(const char *path, const char *json, size_t bytes, ctn__st_index_fn fn,
                              void *user)
{
    yyjson_doc *doc = NULL;
    CTN_TRY(read_doc(path, "index", json, bytes, &doc));
    yyjson_val *root = yyjson_doc_get_root(doc);
    ctn_status st = walk_map(path, yyjson_obj_get(root, "weight_map"), fn, user);
    yyjson_doc_free(doc);
    return st;
}

static bool json_array(yyjson_mut_doc *doc, yyjson_mut_val *root, const ctn__st_array *a,
                       uint64_t *at)
{
    yyjson_mut_val *v = yyjson_mut_obj_add_obj(doc, root, a->name);
    bool ok = v && yyjson_mut_obj_add_str(doc, v, "dtype", ctn__st_type_name(a->dtype));
    yyjson_mut_val *shape = ok ? yyjson_mut_obj_add_arr(doc, v, "shape") : NULL;
    for (int d = 0; shape && d < a->ndim; d++)
        ok = ok && yyjson_mut_arr_add_uint(doc, shape, (uint64_t)a->shape[d]);
    yyjson_mut_val *offsets = shape ? yyjson_mut_obj_add_arr(doc, v, "data_offsets") : NULL;
    ok = ok && offsets && yyjson_mut_arr_add_uint(doc, offsets, *at) &&
         yyjson_mut_arr_add_uint(doc, offsets, *at + a->bytes);
    *at += a->bytes;
    return ok;
}

ctn_status ctn__st_json_write(const ctn__st_writer *w, char **out, size_t *bytes)
{
    ctn_status st = CTN_OK;
    char *json = NULL;
    size_t n = 0;
    uint64_t at = 0;
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&ctn__json_memory);
    yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL;
    bool ok = root != NULL;
    if (ok) yyjson_mut_doc_set_root(doc, root);
    yyjson_mut_val *meta =
        ok && w->strings.n ? yyjson_mut_obj_add_obj(doc, root, "__metadata__") : NULL;
    ok = ok && (meta || !w->strings.n);
    for (size_t i = 0; ok && i < w->strings.n; i += 2)
        ok = yyjson_mut_obj_add_str(doc, meta, w->strings.at[i], w->strings.at[i + 1]);
    for (size_t i = 0; ok && i < w->slots.n; i++)
        ok = json_array(doc, root, &w->slots.at[i].a, &at);
    yyjson_write_err err = {0};
    if (ok) json = yyjson_mut_write_opts(doc, 0, &ctn__json_memory, &n, &err);
    if (!ok || (!json && err.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION)) {
        st = ctn_fail(CTN_ENOMEM, "safetensors: %s: no memory for the header", w->path);
        goto done;
    }
    if (!json) {
        st = ctn_fail(CTN_EARG,
                      "safetensors: %s: header cannot be written: %s (names must be UTF-8)",
                      w->path, err.msg);
        goto done;
    }
    const size_t padded = (n + 7) / 8 * 8;
    if (padded > CTN__ST_HEADER_MAX) {
        st = ctn_fail(CTN_EARG, "safetensors: %s: header of %zu bytes, at most %d are allowed",
                      w->path, padded, CTN__ST_HEADER_MAX);
        goto done;
    }
    *bytes = 8 + padded;
    *out = ctn__malloc(*bytes);
    if (!*out) {
        st = CTN_ENOMEM;
        goto done;
    }
    memset(*out, ' ', *bytes);
    for (int i = 0; i < 8; i++) (*out)[i] = (char)(unsigned char)(padded >> 8 * i);
    memcpy(*out + 8, json, n);
done:
    ctn__free(json);
    yyjson_mut_doc_free(doc);
    return st;
}

ctn_status ctn__st_json_index_write(size_t n, const char *const *array, const char *const *file,
                                    uint64_t bytes, char **out)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(&ctn__json_memory);
    yyjson_mut_val *root = doc ? yyjson_mut_obj(doc) : NULL;
    yyjson_mut_val *meta = root ? yyjson_mut_obj_add_obj(doc, root, "metadata") : NULL;
    yyjson_mut_val *map = meta ? yyjson_mut_obj_add_obj(doc, root, "weight_map") : NULL;
    bool ok = map && yyjson_mut_obj_add_uint(doc, meta, "total_size", bytes);
    for (size_t i = 0; ok && i < n; i++) ok = yyjson_mut_obj_add_str(doc, map, array[i], file[i]);
    yyjson_write_err err = {0};
    if (ok) yyjson_mut_doc_set_root(doc, root);
    *out =
        ok ? yyjson_mut_write_opts(doc, YYJSON_WRITE_PRETTY, &ctn__json_memory, NULL, &err) : NULL;
    yyjson_mut_doc_free(doc);
    if (*out) return CTN_OK;
    if (!ok || err.code == YYJSON_WRITE_ERROR_MEMORY_ALLOCATION)
        return ctn_fail(CTN_ENOMEM, "safetensors: no memory for the index");
    return ctn_fail(CTN_EARG, "safetensors: the index cannot be written: %s", err.msg);
}

#else

static ctn_status no_yyjson(void)
{
    return ctn_fail(CTN_EUNSUPPORTED,
                    "safetensors: Catena was built without yyjson, which reads and writes the "
                    "header; install it (Debian: libyyjson-dev) and rebuild");
}

ctn_status ctn__st_json_read(ctn__st_file *f, const char *json, size_t bytes)
{
    (void)f, (void)json, (void)bytes;
    return no_yyjson();
}

void ctn__st_json_free(ctn__st_file *f)
{
    (void)f;
}

ctn_status ctn__st_json_index(const char *path, const char *json, size_t bytes, ctn__st_index_fn fn,
                              void *user)
{
    (void)path, (void)json, (void)bytes, (void)fn, (void)user;
    return no_yyjson();
}

ctn_status ctn__st_json_write(const ctn__st_writer *w, char **out, size_t *bytes)
{
    (void)w, (void)out, (void)bytes;
    return no_yyjson();
}

ctn_status ctn__st_json_index_write(size_t n, const char *const *array, const char *const *file,
                                    uint64_t bytes, char **out)
{
    (void)n, (void)array, (void)file, (void)bytes, (void)out;
    return no_yyjson();
}

#endif
