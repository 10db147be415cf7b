/* SPDX-License-Identifier: Apache-2.0
 *
 * catena weights --to: writes the arrays of one or several files to one safetensors file, with
 * other types and names.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "weights/weights.h"

typedef struct {
    const args *a;
    ctn_weights **file;
    ctn_weights_item *item;
    char **name; /* of each item, owned; NULL: as in its file */
    int n;
    double bytes;
} output;

/* Whether a name matches one of the patterns in a list with commas. */
static bool is_chosen(const char *name, const char *patterns)
{
    while (*patterns) {
        const size_t n = strcspn(patterns, ",");
        char one[512];
        snprintf(one, sizeof one, "%.*s", (int)n, patterns);
        if (fnmatch(one, name, 0) == 0) return true;
        patterns += n + (patterns[n] == ',');
    }
    return false;
}

/* Index at which the part of name below `top`, n bytes long, begins; -1: name is not below it. */
static int below(const char *name, const char *top, size_t n)
{
    if (n == 0) return 0;
    if (strncmp(name, top, n) != 0 || (name[n] && name[n] != '.')) return -1;
    return (int)n + (name[n] == '.');
}

/* The new name by the first pair that fits; *out NULL: the name stays. */
static ctn_status rename_array(const char *name, const char *pairs, char **out)
{
    *out = NULL;
    while (*pairs) {
        const size_t n = strcspn(pairs, ","), old = strcspn(pairs, "=");
        const char *new = pairs + old + 1;
        const int at = below(name, pairs, old), k = (int)(n - old - 1);
        if (at >= 0) {
            const char *rest = name + at;
            if (asprintf(out, "%.*s%s%s", k, new, k > 0 && *rest ? "." : "", rest) >= 0)
                return CTN_OK;
            *out = NULL;
            return ctn_fail(CTN_ENOMEM, "no memory for names");
        }
        pairs += n + (pairs[n] == ',');
    }
    return CTN_OK;
}

static ctn_dtype cast_type(const args *a, ctn_dtype from)
{
    static const struct {
        const char *name;
        ctn_dtype type;
    } types[] = {{"f32", CTN_F32}, {"f16", CTN_F16}, {"bf16", CTN_BF16}, {"f64", CTN_F64}};
    const bool is_float = from == CTN_F32 || from == CTN_F16 || from == CTN_BF16 || from == CTN_F64;
    for (int i = 0; is_float && i < 4; i++)
        if (args_is(a, "cast", types[i].name)) return types[i].type;
    return from;
}

static const char *name_of(const output *o, int i)
{
    ctn_weights_array a = {.name = ""};
    if (o->name[i]) return o->name[i];
    return ctn_weights_get_array(o->item[i].from, o->item[i].array, &a) == CTN_OK ? a.name : "";
}

typedef struct {
    const char *name;
    int item;
} named;

static int compare_names(const void *a, const void *b)
{
    const named *x = a, *y = b;
    const int c = strcmp(x->name, y->name);
    return c != 0 ? c : (x->item > y->item) - (x->item < y->item);
}

static const char *path_of(const output *o, const char *const *path, int item)
{
    int file = 0;
    while (o->file[file] != o->item[item].from) file++;
    return path[file];
}

/* Two arrays must not get the same name. The message names the first one that does. */
static ctn_status check_names(const output *o, const char *const *path)
{
    const named *first = NULL;
    named *by_name = malloc(((size_t)o->n + 1) * sizeof *by_name);
    if (!by_name) return ctn_fail(CTN_ENOMEM, "no memory for the list of arrays");
    for (int i = 0; i < o->n; i++) by_name[i] = (named){name_of(o, i), i};
    qsort(by_name, (size_t)o->n, sizeof *by_name, compare_names);
    for (int i = 1; i < o->n; i++)
        if (strcmp(by_name[i - 1].name, by_name[i].name) == 0 &&
            (!first || by_name[i - 1].item < first->item))
            first = &by_name[i - 1];
    ctn_status st = CTN_OK;
    if (first)
        st = ctn_fail(CTN_EARG, "'%s' is in %s and in %s: use --rename or --only", first->name,
                      path_of(o, path, first->item), path_of(o, path, first[1].item));
    free(by_name);
    return st;
}

static ctn_status add_file(output *o, const ctn_weights *w)
{
    const char *only = args_text(o->a, "only");
    const int64_t n = ctn_weights_arrays(w);
    const size_t room = (size_t)o->n + (size_t)n;
    ctn_weights_item *item = realloc(o->item, (room + 1) * sizeof *item);
    if (item) o->item = item;
    char **name = realloc(o->name, (room + 1) * sizeof *name);
    if (name) o->name = name;
    if (!item || !name) return ctn_fail(CTN_ENOMEM, "no memory for the list of arrays");
    for (int64_t i = 0; i < n; i++) {
        ctn_weights_array a;
        CTN_TRY(ctn_weights_get_array(w, i, &a));
        if (only[0] && !is_chosen(a.name, only)) continue;
        const ctn_dtype type = cast_type(o->a, a.dtype);
        CTN_TRY(rename_array(a.name, args_text(o->a, "rename"), &name[o->n]));
        item[o->n] = (ctn_weights_item){w, i, name[o->n], type};
        o->bytes += (double)array_elements(&a) * (double)ctn_dtype_size(type);
        o->n++;
    }
    return CTN_OK;
}

static ctn_status convert(output *o, int n, const char *const *path)
{
    const char *to = args_text(o->a, "to");
    for (int i = 0; i < n; i++) {
        CTN_TRY(ctn_weights_open(&o->file[i], path[i]));
        CTN_TRY(add_file(o, o->file[i]));
    }
    CTN_TRY(check_names(o, path));
    if (o->n == 0)
        return ctn_fail(CTN_ENOTFOUND, "no array matches --only %s", args_text(o->a, "only"));
    return ctn_weights_write(to, o->n, o->item);
}

ctn_status weights_convert(const args *a, int n, const char *const *path, json *j)
{
    output o = {.a = a, .file = calloc((size_t)n, sizeof(ctn_weights *))};
    char total[32];
    ctn_status st = o.file ? convert(&o, n, path) : ctn_fail(CTN_ENOMEM, "no memory for files");
    if (st == CTN_OK && j) {
        json_open(j, NULL, '{');
        json_text(j, "file", args_text(a, "to"));
        json_int(j, "arrays", o.n);
        json_int(j, "bytes", (int64_t)o.bytes);
        json_close(j, '}');
    } else if (st == CTN_OK) {
        say(stdout, "wrote %d arrays, %s, to %s\n", o.n, bytes_text(o.bytes, total),
            args_text(a, "to"));
    }
    for (int i = 0; i < o.n; i++) free(o.name[i]);
    for (int i = 0; o.file && i < n; i++) ctn_weights_free(o.file[i]);
    free(o.name);
    free(o.item);
    free(o.file);
    return st;
}
