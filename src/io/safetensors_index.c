/* SPDX-License-Identifier: Apache-2.0
 *
 * Several safetensors files read as one through their index, the model.safetensors.index.json of
 * Hugging Face:
 *     {"metadata":{..}, "weight_map":{"array":"file in the folder of the index", ..}}
 * The index is untrusted: it can name only files in its own folder. Every array that it names must
 * be in its file, and no two files may have the same array. Arrays that it does not name are
 * present too. Called by safetensors.c.
 */
#include "base/readfile.h"
#include "io/safetensors_json.h"

static ctn_status check_file_name(const ctn__st_file *f, const char *array, const char *file)
{
    if (*file && !strchr(file, '/') && !strstr(file, "..")) return CTN_OK;
    return ctn_fail(CTN_EFORMAT,
                    "safetensors: %s: '%s' is said to be in '%s', expected the name of a file in "
                    "the folder of the index",
                    f->path, array, file);
}

/* Length of the folder in a path, with its slash; 0: there is none. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

static ctn__st_file *part_named(const ctn__st_file *f, const char *file)
{
    for (size_t i = 0; i < f->parts.n; i++) {
        const char *path = f->parts.at[i]->path;
        if (strcmp(path + folder_length(path), file) == 0) return f->parts.at[i];
    }
    return NULL;
}

static ctn_status open_part(ctn__st_file *f, const char *file, ctn__st_file **part)
{
    ctn_status st = CTN_OK;
    ctn__text path = {0};
    ctn__st_file *made = NULL;
    ctn__text_add(&path, "%.*s%s", (int)folder_length(f->path), f->path, file);
    if (path.failed) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    CTN_TRY_GOTO(st, done, ctn__st_open_one(&made, path.s));
    if (!ctn__vec_push(&f->parts, made)) CTN_TRY_GOTO(st, done, CTN_ENOMEM);
    *part = made;
    made = NULL;
done:
    ctn__st_close(made);
    ctn__text_free(&path);
    return st;
}

/* One pair of the weight_map. */
static ctn_status add_pair(void *user, const char *array, const char *file)
{
    ctn__st_file *f = user;
    CTN_TRY(check_file_name(f, array, file));
    ctn__st_file *part = part_named(f, file);
    if (!part) CTN_TRY(open_part(f, file, &part));
    if (ctn__st_find(part, array)) return CTN_OK;
    return ctn_fail(CTN_EFORMAT,
                    "safetensors: %s: the index says that '%s' is in %s, but that file lacks it",
                    f->path, array, file);
}

/* The entries of all parts, one after the other. */
static ctn_status join(ctn__st_file *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->parts.n; i++) n += f->parts.at[i]->n;
    f->entry = ctn__calloc(n, sizeof *f->entry);
    if (!f->entry) return CTN_ENOMEM;
    for (size_t i = 0; i < f->parts.n; i++) {
        const ctn__st_file *part = f->parts.at[i];
        if (part->n) memcpy(f->entry + f->n, part->entry, part->n * sizeof *part->entry);
        f->n += part->n;
    }
    return CTN_OK;
}

ctn_status ctn__st_index_read(ctn__st_file *f)
{
    char *json = NULL;
    size_t bytes = 0;
    CTN_TRY(ctn__file_whole("safetensors", f->path, CTN__ST_HEADER_MAX, &json, &bytes));
    ctn_status st = ctn__st_json_index(f->path, json, bytes, add_pair, f);
    ctn__free(json);
    return st < 0 ? st : join(f);
}
