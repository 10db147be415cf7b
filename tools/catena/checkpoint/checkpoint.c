/* SPDX-License-Identifier: Apache-2.0
 *
 * catena checkpoint: lists, verifies, compares, removes and exports the states that a training has
 * saved. It needs no network and no data, only the result folder.
 */
#include "checkpoint/checkpoint.h"

#include <string.h>
#include <unistd.h>

#include "task.h"

/* ---- operands -------------------------------------------------------------------------------- */

/* Whether the last part of a path is the number of a state. */
static bool is_number(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strlen(name) == 9 && strspn(name, "0123456789") == 9;
}

ctn_status place_find(place *p, const char *operand)
{
    char inside[PATH_MAX];
    *p = (place){.one = false};
    snprintf(p->path, sizeof p->path, "%s", operand);
    for (size_t n = strlen(p->path); n > 1 && p->path[n - 1] == '/';) p->path[--n] = 0;
    if (!is_folder(p->path))
        return ctn_fail(CTN_ENOTFOUND,
                        "no folder %s: give the result folder of a training, its folder state, or "
                        "the folder of one state",
                        p->path);
    join(inside, sizeof inside, p->path, "manifest.txt");
    p->one = is_number(p->path) || access(inside, F_OK) == 0;
    join(inside, sizeof inside, p->path, "state");
    if (!p->one && is_folder(inside)) memcpy(p->path, inside, sizeof inside);
    return CTN_OK;
}

static ctn_status take(void *user, const ctn_state_info *s)
{
    snprintf(user, PATH_MAX, "%s", s->path);
    return CTN_OK;
}

ctn_status place_newest(place *p)
{
    char newest[PATH_MAX] = "";
    if (p->one) return CTN_OK;
    CTN_TRY(ctn_states_visit(p->path, take, newest));
    if (!newest[0]) return ctn_fail(CTN_ENOTFOUND, "%s has no saved state", p->path);
    memcpy(p->path, newest, sizeof newest);
    p->one = true;
    return CTN_OK;
}

/* ---- actions --------------------------------------------------------------------------------- */

static ctn_status list(args *a, json *j, int *code)
{
    (void)code;
    for (int i = 0; i < a->nextra; i++) {
        place p;
        CTN_TRY(place_find(&p, a->extra[i]));
        CTN_TRY(list_place(&p, j));
    }
    return CTN_OK;
}

static ctn_status verify(args *a, json *j, int *code)
{
    int64_t damaged = 0;
    for (int i = 0; i < a->nextra; i++) {
        place p;
        CTN_TRY(place_find(&p, a->extra[i]));
        CTN_TRY(verify_place(&p, j, &damaged));
    }
    if (damaged) *code = EXIT_DATA;
    return CTN_OK;
}

static ctn_status diff(args *a, json *j, int *code)
{
    place p[2];
    int64_t differences = 0;
    for (int i = 0; i < 2; i++) {
        CTN_TRY(place_find(&p[i], a->extra[i]));
        CTN_TRY(place_newest(&p[i]));
    }
    CTN_TRY(diff_places(&p[0], &p[1], j, &differences));
    if (differences) *code = EXIT_DATA;
    return CTN_OK;
}

static ctn_status count(void *user, const ctn_state_info *s)
{
    (void)s;
    ++*(int64_t *)user;
    return CTN_OK;
}

static ctn_status prune_place(const place *p, int64_t keep, json *j)
{
    int64_t before = 0, after = 0;
    if (p->one)
        return ctn_fail(CTN_EARG, "%s is one state: give the folder that has all of them", p->path);
    CTN_TRY(ctn_states_visit(p->path, count, &before));
    CTN_TRY(ctn_states_prune(p->path, keep));
    CTN_TRY(ctn_states_visit(p->path, count, &after));
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "folder", p->path);
        json_int(j, "removed", before - after);
        json_int(j, "kept", after);
        json_close(j, '}');
    } else {
        say(stdout, "%s: removed %lld states, kept %lld\n", p->path, (long long)(before - after),
            (long long)after);
    }
    return CTN_OK;
}

static ctn_status prune(args *a, json *j, int *code)
{
    (void)code;
    for (int i = 0; i < a->nextra; i++) {
        place p;
        CTN_TRY(place_find(&p, a->extra[i]));
        CTN_TRY(prune_place(&p, args_int(a, "keep"), j));
    }
    return CTN_OK;
}

static ctn_status export(args *a, json *j, int *code)
{
    place p;
    const char *file = args_text(a, "out");
    (void)code;
    CTN_TRY(place_find(&p, a->extra[0]));
    CTN_TRY(place_newest(&p));
    CTN_TRY(ctn_state_export(p.path, file));
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "path", p.path);
        json_text(j, "file", file);
        json_close(j, '}');
    } else {
        say(stdout, "wrote the weights of %s to %s\n", p.path, file);
    }
    return CTN_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct action {
    const char *name;
    int least, most;    /* operands; most 0: any number */
    const char *option; /* that it needs; NULL: none */
    const char *list;   /* key of the list in its JSON object; NULL: it prints the object itself */
    ctn_status (*run)(args *a, json *j, int *code);
} actions[] = {
    {"ls", 1, 0, NULL, "folders", list},   {"verify", 1, 0, NULL, "states", verify},
    {"diff", 2, 2, NULL, NULL, diff},      {"prune", 1, 0, "keep", "folders", prune},
    {"export", 1, 1, "out", NULL, export},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static const char *const *names(void)
{
    static const char *list_of[ACTIONS + 1];
    for (int i = 0; i < ACTIONS; i++) list_of[i] = actions[i].name;
    return list_of;
}

static int wrong_use(const struct action *x, const args *a)
{
    static const char *const options[] = {"keep", "out"};
    if (a->nextra < x->least || (x->most > 0 && a->nextra > x->most)) {
        say(stderr,
            "catena checkpoint %s: got %d folders, expected %s%d (see catena checkpoint "
            "--help)\n",
            x->name, a->nextra, x->most == 0 ? "at least " : "", x->least);
        return EXIT_USAGE;
    }
    for (int i = 0; i < 2; i++) {
        const bool needed = x->option && strcmp(x->option, options[i]) == 0;
        if (args_given(a, options[i]) == needed) continue;
        say(stderr, "catena checkpoint %s: %s --%s (see catena checkpoint --help)\n", x->name,
            needed ? "give" : "remove", options[i]);
        return EXIT_USAGE;
    }
    return -1;
}

static int run(args *a)
{
    json out = {0}, *j = args_flag(a, "json") ? &out : NULL;
    const struct action *x = actions;
    while (strcmp(x->name, a->operand) != 0) x++;
    int code = wrong_use(x, a);
    if (code >= 0) return code;
    code = EXIT_DONE;
    if (j && x->list) {
        json_open(j, NULL, '{');
        json_open(j, x->list, '[');
    }
    const ctn_status st = x->run(a, j, &code);
    if (j && x->list) {
        json_close(j, ']');
        json_close(j, '}');
    }
    return st < 0 ? report_failure("checkpoint", DOING_DATA) : code;
}

static const option options[] = {
    {"keep", "N", "",
     "prune: number of states to keep, at least 1; the last intact one always "
     "stays",
     GROUP_NONE},
    {"out", "FILE", "",
     "export: safetensors file for the weights, which catena eval --weights reads", GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_checkpoint = {
    .name = "checkpoint",
    .operands = "ACTION FOLDER...",
    .summary = "List, verify, compare, remove or export the saved states of a training.",
    .words = names,
    .options = options,
    .examples =
        "  catena checkpoint ls result                 the states of a result folder\n"
        "  catena checkpoint ls result/state/000000004      the arrays of one state\n"
        "  catena checkpoint verify result             exit code 4 if a state is damaged\n"
        "  catena checkpoint diff first second         the newest states; exit code 4 if they "
        "differ\n"
        "  catena checkpoint prune result --keep 1\n"
        "  catena checkpoint export result --out result/resumed.safetensors\n",
    .run = run,
    .more = true,
    .ranks = RANKS_ONE,
};
