/* SPDX-License-Identifier: Apache-2.0
 *
 * catena weights: lists, compares, converts and merges files of named arrays, and compares them
 * with networks of the zoo.
 */
#include "weights/weights.h"

#include <string.h>

#include <catena/zoo.h>

#include "task.h"

int64_t array_elements(const ctn_weights_array *a)
{
    return (int64_t)(a->bytes / ctn_dtype_size(a->dtype));
}

const char *bytes_text(double bytes, char buf[32])
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    int k = 0;
    for (; bytes >= 1000 && k < 4; k++) bytes /= 1000;
    snprintf(buf, 32, k == 0 ? "%.0f %s" : "%.1f %s", bytes, units[k]);
    return buf;
}

/* ---- list ----------------------------------------------------------------------------------- */

static void list_json(json *j, const ctn_weights_array *a)
{
    json_open(j, NULL, '{');
    json_text(j, "name", a->name);
    json_text(j, "type", ctn_dtype_name(a->dtype));
    json_open(j, "shape", '[');
    for (int i = 0; i < a->ndim; i++) json_int(j, NULL, a->shape[i]);
    json_close(j, ']');
    json_int(j, "bytes", (int64_t)a->bytes);
    json_close(j, '}');
}

static ctn_status list_arrays(const ctn_weights *w, json *j, int64_t *values, double *bytes)
{
    char shape[SHAPE_TEXT];
    for (int64_t i = 0; i < ctn_weights_arrays(w); i++) {
        ctn_weights_array a;
        CTN_TRY(ctn_weights_get_array(w, i, &a));
        *values += array_elements(&a);
        *bytes += (double)a.bytes;
        if (j) list_json(j, &a);
        else
            say(stdout, "%-4s %-18s %12zu  %s\n", ctn_dtype_name(a.dtype),
                shape_text(a.ndim, a.shape, shape), a.bytes, a.name);
    }
    return CTN_OK;
}

static ctn_status list(const char *path, json *j)
{
    ctn_weights *w = NULL;
    int64_t values = 0;
    double bytes = 0;
    char total[32];
    CTN_TRY(ctn_weights_open(&w, path));
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "file", path);
        json_text(j, "format", ctn_weights_format(w));
        json_open(j, "arrays", '[');
    } else {
        say(stdout, "%-4s %-18s %12s  %s\n", "type", "shape", "bytes", "name");
    }
    const ctn_status st = list_arrays(w, j, &values, &bytes);
    if (j) {
        json_close(j, ']');
        json_int(j, "values", values);
        json_int(j, "bytes", (int64_t)bytes);
        json_close(j, '}');
    } else if (st == CTN_OK) {
        say(stdout, "%lld arrays, %lld values, %s (%s)\n", (long long)ctn_weights_arrays(w),
            (long long)values, bytes_text(bytes, total), ctn_weights_format(w));
    }
    ctn_weights_free(w);
    return st;
}

/* ---- the command ---------------------------------------------------------------------------- */

enum { FILES_MAX = 256 };

/* Whether each part of --rename between commas has a '='. */
static bool are_pairs(const char *s)
{
    while (*s) {
        const size_t n = strcspn(s, ",");
        if (!memchr(s, '=', n)) return false;
        s += n + (s[n] == ',');
    }
    return true;
}

static int unknown_model(const char *name)
{
    const char *near = nearest(name, ctn_zoo_names());
    say(stderr, "catena weights: --model: no network is called '%s'", name);
    if (near) say(stderr, "; did you mean %s?", near);
    say(stderr, " (known:");
    for (const char *const *w = ctn_zoo_names(); *w; w++) say(stderr, " %s", *w);
    say(stderr, ", or a folder with config.json)\n");
    return EXIT_USAGE;
}

static bool is_network(const char *name)
{
    for (const char *const *w = ctn_zoo_names(); *w; w++)
        if (strcmp(*w, name) == 0) return true;
    return is_published(name);
}

static int wrong_use(const args *a, int files)
{
    static const char *const with_to[] = {"cast", "rename", "only"};
    const bool to = args_given(a, "to"), model = args_given(a, "model");
    const char *problem = NULL;
    if (to && model) problem = "give --to or --model, not both";
    else if (args_given(a, "classes") && !model) problem = "--classes needs --model";
    else if (model && files > 1) problem = "--model takes one file";
    else if (!to && files > 2) problem = "more than two files need --to, which merges them";
    else if (files > FILES_MAX) problem = "at most 256 files";
    else if (!are_pairs(args_text(a, "rename"))) problem = "--rename must be OLD=NEW";
    for (int i = 0; i < 3 && !to && !problem; i++)
        if (args_given(a, with_to[i])) problem = "--cast, --rename and --only need --to";
    if (!problem && model && !is_network(args_text(a, "model")))
        return unknown_model(args_text(a, "model"));
    if (!problem) return -1;
    say(stderr, "catena weights: %s (see catena weights --help)\n", problem);
    return EXIT_USAGE;
}

static int run(args *a)
{
    json out = {0}, *j = args_flag(a, "json") ? &out : NULL;
    const char *path[FILES_MAX + 1] = {a->operand};
    const int n = 1 + a->nextra;
    const int code = wrong_use(a, n);
    int64_t differences = 0;
    ctn_status st = CTN_OK;
    if (code >= 0) return code;
    for (int i = 0; i < a->nextra; i++) path[i + 1] = a->extra[i];
    if (args_given(a, "to")) st = weights_convert(a, n, path, j);
    else if (args_given(a, "model")) st = weights_model(a, path[0], j, &differences);
    else if (n == 2) st = weights_diff(path[0], path[1], j, &differences);
    else st = list(path[0], j);
    if (st < 0) return report_failure("weights", DOING_DATA);
    return differences ? EXIT_DATA : EXIT_DONE;
}

static const option options[] = {
    {"model", "NAME", "",
     "compare the file with this network of the zoo, or with the one that the config.json of a "
     "published model describes",
     GROUP_NONE},
    {"classes", "N", "0", "number of classes of --model; 0: its default", GROUP_NONE},
    {"to", "FILE", "", "write the arrays of all files to this safetensors file", GROUP_NONE},
    {"cast", "f32|f16|bf16|f64", "", "convert arrays of other float types", GROUP_NONE},
    {"rename", "OLD=NEW", "",
     "change names, several separated by commas; a name also stands for everything below it, and "
     "an empty one for all names: module= removes module., =model adds model.",
     GROUP_NONE},
    {"only", "PATTERN", "",
     "write only the arrays whose names in the input match one of these patterns, separated by "
     "commas, with * and ? as in the shell",
     GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_weights = {
    .name = "weights",
    .operands = "FILE...",
    .summary = "List, compare, convert or merge files of weights.",
    .options = options,
    .free_words = 1,
    .more = true,
    .examples =
        "  catena weights model.safetensors            names, types, shapes and sizes\n"
        "  catena weights resnet50.pth --model resnet50     exit code 4 if they do not fit\n"
        "  catena weights first.pt second.safetensors  exit code 4 if they differ\n"
        "  catena weights checkpoint.pt --to model.safetensors --rename module=\n"
        "  catena weights model.safetensors --to half.safetensors --cast bf16\n"
        "  catena weights body.safetensors head.safetensors --to model.safetensors\n",
    .run = run,
    .ranks = RANKS_ONE,
};
