/* SPDX-License-Identifier: Apache-2.0
 *
 * catena weights --model: how a file fits a network, variable by variable, as loading would see it.
 */
#include <catena/zoo.h>

#include "task.h"
#include "weights/weights.h"

typedef struct {
    json *j; /* NULL: text */
    int64_t fit, problems;
    char map[128]; /* whose names the file has; "": those of the network */
} view;

static ctn_status show(void *user, const ctn_weights_match *m)
{
    view *v = user;
    if (m->map) snprintf(v->map, sizeof v->map, "%s", m->map);
    if (!m->problem) {
        v->fit++;
        return CTN_OK;
    }
    v->problems++;
    if (!v->j) {
        say(stdout, "%s\n", m->problem);
        return CTN_OK;
    }
    json_open(v->j, NULL, '{');
    json_text(v->j, "name", m->name);
    json_text(v->j, "array", m->array);
    json_text(v->j, "problem", m->problem);
    json_close(v->j, '}');
    return CTN_OK;
}

static ctn_status make(const args *a, ctn_context *ctx, ctn_module **net)
{
    const char *name = args_text(a, "model");
    if (is_published(name)) return ctn_zoo_open(net, ctx, name);
    return ctn_zoo_new(net, ctx, name, CTN_OPT(ctn_zoo_opt, .classes = args_int(a, "classes")));
}

static ctn_status compare(view *v, const args *a, ctn_module *net, const char *path)
{
    if (v->j) {
        json_open(v->j, NULL, '{');
        json_text(v->j, "file", path);
        json_text(v->j, "model", args_text(a, "model"));
        json_open(v->j, "problems", '[');
    }
    const ctn_status st = ctn_weights_compare(net, path, NULL, show, v);
    if (v->j) {
        json_close(v->j, ']');
        json_text(v->j, "map", v->map[0] ? v->map : NULL);
        json_int(v->j, "fit", v->fit);
        json_close(v->j, '}');
    } else if (st == CTN_OK) {
        if (v->map[0]) say(stdout, "the file has other names: %s\n", v->map);
        say(stdout, "%lld arrays fit %s, %lld problems\n", (long long)v->fit, args_text(a, "model"),
            (long long)v->problems);
    }
    return st;
}

ctn_status weights_model(const args *a, const char *path, json *j, int64_t *differences)
{
    view v = {.j = j};
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_status st = open_context(&ctx, a, 0);
    if (st == CTN_OK) st = make(a, ctx, &net);
    if (st == CTN_OK) st = compare(&v, a, net, path);
    ctn_module_free(net);
    ctn_context_free(ctx);
    *differences = v.problems;
    return st;
}
