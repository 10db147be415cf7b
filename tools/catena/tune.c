/* SPDX-License-Identifier: Apache-2.0
 *
 * catena tune: lists the files with tuning results, or every entry in them, or removes them. It
 * times nothing.
 */
#include <stdlib.h>
#include <time.h>

#include <catena/tune.h>

#include "cli.h"

typedef struct {
    bool show; /* entries too */
    json *j;   /* NULL: text */
    bool open; /* JSON: the object of a file is not closed yet */
    int64_t files, entries, bytes;
} view;

static void close_file(view *v)
{
    if (!v->open) return;
    if (v->show) json_close(v->j, '}');
    json_close(v->j, '}');
    v->open = false;
}

static void file_json(view *v, const ctn_tune_file *f)
{
    close_file(v);
    json_open(v->j, NULL, '{');
    json_text(v->j, "path", f->path);
    json_text(v->j, "machine", f->machine);
    json_int(v->j, "entries", f->entries);
    json_int(v->j, "bytes", f->bytes);
    json_int(v->j, "modified", f->modified);
    if (v->show) json_open(v->j, "results", '{');
    v->open = true;
}

static void file_text(const ctn_tune_file *f)
{
    char date[32] = "?";
    time_t t = (time_t)f->modified;
    struct tm tm;
    if (localtime_r(&t, &tm)) strftime(date, sizeof date, "%Y-%m-%d %H:%M", &tm);
    say(stdout, "\n%s\n  %s\n", f->path,
        f->machine ? f->machine : "damaged or from another version: not used");
    say(stdout, "  %lld entries, %lld bytes, %s\n", (long long)f->entries, (long long)f->bytes,
        date);
}

static ctn_status look(void *user, const ctn_tune_file *f, const char *key, const char *value)
{
    view *v = user;
    if (!key) {
        v->files++;
        v->entries += f->entries;
        v->bytes += f->bytes;
        if (v->j) file_json(v, f);
        else file_text(f);
    } else if (v->show && v->j) {
        json_text(v->j, key, value);
    } else if (v->show) {
        say(stdout, "    %s  ->  %s\n", key, value);
    }
    return CTN_OK;
}

static ctn_status list(const char *folder, bool show, json *j)
{
    view v = {.show = show, .j = j};
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "folder", folder[0] ? folder : NULL);
        json_open(j, "files", '[');
    } else {
        say(stdout, "Folder: %s\n", folder[0] ? folder : "none (set CATENA_CACHE_DIR)");
    }
    ctn_status st = ctn_tune_visit(look, &v);
    if (j) {
        close_file(&v);
        json_close(j, ']');
        json_close(j, '}');
    } else if (st == CTN_OK) {
        say(stdout, "%s%lld files, %lld entries, %lld bytes\n", v.files ? "\n" : "",
            (long long)v.files, (long long)v.entries, (long long)v.bytes);
    }
    return st;
}

static ctn_status clear(const char *folder, json *j)
{
    int64_t files = 0;
    CTN_TRY(ctn_tune_clear(&files));
    if (j) {
        json_open(j, NULL, '{');
        json_text(j, "folder", folder[0] ? folder : NULL);
        json_int(j, "removed", files);
        json_close(j, '}');
    } else {
        say(stdout, "Removed %lld files from %s\n", (long long)files,
            folder[0] ? folder : "nowhere");
    }
    return CTN_OK;
}

static int run(args *a)
{
    json out = {0}, *j = args_flag(a, "json") ? &out : NULL;
    bool show = args_flag(a, "show"), remove = args_flag(a, "clear");
    if (args_flag(a, "list") + show + remove > 1) {
        say(stderr, "catena tune: give only one of --list, --show and --clear\n");
        return EXIT_USAGE;
    }
    int n = ctn_tune_folder(NULL, 0);
    char *folder = n < 0 ? NULL : malloc((size_t)n + 1);
    if (!folder) {
        ctn_fail(CTN_ENOMEM, "no memory for the name of the folder");
        return report_error("tune");
    }
    ctn_status st = (ctn_status)ctn_tune_folder(folder, (size_t)n + 1);
    if (st >= 0) st = remove ? clear(folder, j) : list(folder, show, j);
    free(folder);
    return st < 0 ? report_error("tune") : EXIT_DONE;
}

static const option options[] = {
    {"list", NULL, NULL, "list the files with machine, number of entries and size (the default)",
     GROUP_NONE},
    {"show", NULL, NULL, "list every entry too", GROUP_NONE},
    {"clear", NULL, NULL, "remove the files", GROUP_NONE},
    {"json", NULL, NULL, "print one JSON object", GROUP_NONE},
    {0},
};

const command cmd_tune = {
    .name = "tune",
    .operands = "",
    .summary = "Show or remove the stored choices of the fastest kernels for this machine.",
    .words = NULL,
    .options = options,
    .examples = "  catena tune                     list the files with tuning results\n"
                "  catena tune --show --json       every entry, for a program to read\n"
                "  catena tune --clear             time everything again from now on\n",
    .run = run,
    .ranks = RANKS_ONE,
};
