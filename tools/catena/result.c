/* SPDX-License-Identifier: Apache-2.0
 *
 * The result folder of a training, apart from the files that the trainer's extensions write: the
 * resolved configuration, machine and versions, class names, the plan with its kernels, and the
 * results of tuning.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "training.h"

/* ---- the folder ------------------------------------------------------------------------------ */

/* What a training writes, apart from its log and states. */
static const char *const results[] = {"best.safetensors",
                                      "weights.safetensors",
                                      "average.safetensors",
                                      "adapters.safetensors",
                                      "best_adapters.safetensors",
                                      "classes.txt",
                                      "loss.svg",
                                      "report.html",
                                      "plan.txt",
                                      "decisions.txt"};

/* --force removes what an earlier training has left, so this training cannot start from it. */
static int refuse_own_weights(const args *a)
{
    char path[4096];
    const char *weights = args_text(a, "weights"), *out = args_text(a, "out");
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        if (args_flag(a, "resume") || !weights[0]) break;
        if (!same_file(weights, join(path, sizeof path, out, results[i]))) continue;
        say(stderr,
            "catena train: --force would remove %s, which --weights names: use another --out\n",
            path);
        return EXIT_USAGE;
    }
    return -1;
}

static int refuse_full(const args *a)
{
    const char *out = args_text(a, "out");
    if (args_flag(a, "resume") || args_flag(a, "force") || folder_empty(out)) return -1;
    say(stderr,
        "catena train: %s is not empty: use --resume to continue it, --force to start over in "
        "it, or --out for another folder\n",
        out);
    return EXIT_USAGE;
}

/* Saving a state removes older ones beside it. In a folder that a link of somebody else leads to,
 * these would be the states of another training. */
static int check_states(const char *path)
{
    struct stat info;
    if (lstat(path, &info) == 0 && S_ISLNK(info.st_mode)) {
        say(stderr,
            "catena train: %s is a symbolic link, expected a folder: states of another "
            "training could be lost; remove the link, or let --out name the folder that the "
            "states belong to\n",
            path);
        return EXIT_USAGE;
    }
    return -1;
}

int result_check(const args *a)
{
    char path[4096];
    const char *out = args_text(a, "out");
    if (!out[0]) {
        say(stderr, "catena train: --out must name a folder\n");
        return EXIT_USAGE;
    }
    int code = refuse_full(a); /* a refused folder is not touched */
    if (code < 0) code = refuse_own_weights(a);
    if (code < 0) code = folder_take(a->job, out);
    if (code < 0) code = refuse_full(a); /* another job may have ended there in the meantime */
    if (code >= 0) return code;
    unlink(join(path, sizeof path, out, UNFINISHED));
    return check_states(join(path, sizeof path, out, "state"));
}

/* ---- files ----------------------------------------------------------------------------------- */

static ctn_status write_machine(const training *r)
{
    char path[4096];
    FILE *f = NULL;
    CTN_TRY(file_open(&f, join(path, sizeof path, r->out, "machine.json")));
    ctn_status st = info_json(&(json){.to = f});
    ctn_status end = file_close(f, path);
    return st < 0 ? st : end;
}

static ctn_status write_classes(const training *r)
{
    char path[4096];
    FILE *f = NULL;
    int64_t n = ctn_dataset_classes(r->t.set[0]);
    if (n == 0) return CTN_OK;
    CTN_TRY(file_open(&f, join(path, sizeof path, r->out, "classes.txt")));
    for (int64_t k = 0; k < n; k++) fprintf(f, "%s\n", ctn_dataset_class(r->t.set[0], k));
    return file_close(f, path);
}

/* With --force: a later --resume must not find the state of an earlier training, nor export its
 * best weights. Data and network are fine by now, so a mistake in an option costs nothing. */
static ctn_status remove_earlier(const training *r)
{
    char path[4096];
    struct stat info;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (lstat(join(path, sizeof path, r->out, results[i]), &info) == 0 && S_ISDIR(info.st_mode))
            return ctn_fail(CTN_EIO, "%s is a folder, expected a file", path);
    CTN_TRY(remove_states(join(path, sizeof path, r->out, "state"))); /* refuses, or removes all */
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (unlink(join(path, sizeof path, r->out, results[i])) != 0 && errno != ENOENT)
            return ctn_fail(CTN_EIO, "cannot remove %s, of an earlier training: %s", path,
                            strerror(errno));
    return CTN_OK;
}

ctn_status result_begin(training *r)
{
    char path[4096];
    if (r->t.a->job->rank != 0) return CTN_OK;
    if (!args_flag(r->t.a, "resume") && r->lives == 0) CTN_TRY(remove_earlier(r));
    CTN_TRY(
        config_write(r->t.a, join(path, sizeof path, r->out, "config.yaml"),
                     "resolved configuration; to repeat: catena train --config FILE --out OTHER"));
    CTN_TRY(write_machine(r));
    return write_classes(r);
}

/* Write a text that the library returns the way snprintf does. */
static ctn_status write_text(const training *r, const char *name,
                             int (*text)(ctn_context *ctx, char *buf, size_t n))
{
    char path[4096];
    FILE *f = NULL;
    int n = text(r->t.ctx, NULL, 0);
    if (n < 0) return ctn_error_status();
    char *buf = malloc((size_t)n + 1);
    if (!buf) return ctn_fail(CTN_ENOMEM, "no memory for %s", name);
    text(r->t.ctx, buf, (size_t)n + 1);
    ctn_status st = file_open(&f, join(path, sizeof path, r->out, name));
    if (st == CTN_OK) {
        fputs(n > 0 ? buf : "", f);
        st = file_close(f, path);
    }
    free(buf);
    return st;
}

static ctn_status write_plan(void *self, ctn_trainer *tr)
{
    (void)tr;
    return write_text(self, "plan.txt", ctn_context_plan_text);
}

bool result_complete(const training *r)
{
    const int64_t epochs = args_int(r->t.a, "epochs"), steps = args_int(r->t.a, "iterations");
    ctn_progress p;
    ctn_trainer_progress(r->trainer, &p);
    if ((epochs == 0 && steps == 0) || ctn_trainer_stopped(r->trainer)) return p.complete;
    return p.complete && ((epochs > 0 && (double)p.epoch + p.part > (double)epochs - 1e-9) ||
                          (steps > 0 && p.iteration >= steps));
}

/* The mark is made as soon as this run has saved a state, because from then on resuming makes
 * progress. A run that ends without having saved anything leaves no mark, so that a job script
 * does not restart it forever. */
static ctn_status mark_unfinished(void *self, ctn_trainer *tr)
{
    training *r = self;
    char path[4096];
    FILE *f = NULL;
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    if (r->marked || p.saved < 0 || result_complete(r)) return CTN_OK;
    CTN_TRY(file_open(&f, join(path, sizeof path, r->out, UNFINISHED)));
    fputs(
        "This training is incomplete and has a saved state: run its command again with --resume.\n",
        f);
    r->marked = true;
    return file_close(f, path);
}

void result_mark(const args *a, int code)
{
    char path[4096];
    if (a->job->rank != 0 || code == EXIT_REQUEUE || code == EXIT_OTHER_RANK) return;
    unlink(join(path, sizeof path, args_text(a, "out"), UNFINISHED));
}

ctn_status result_extend(training *r)
{
    CTN_TRY(ctn_trainer_extend(r->trainer,
                               &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                .name = UNFINISHED,
                                                .priority = -1, /* after the state is saved */
                                                .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                                .call = mark_unfinished,
                                                .finish = mark_unfinished,
                                                .rank0_only = 1,
                                                .self = r}));
    /* Before evaluation, because the text describes the last plan that ran. */
    return ctn_trainer_extend(r->trainer, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                           .name = "plan",
                                                           .priority = CTN_PRIORITY_EVALUATE + 1,
                                                           .trigger = {.kind = CTN_ONCE, .n = 1},
                                                           .call = write_plan,
                                                           .rank0_only = 1,
                                                           .self = r});
}

ctn_status result_end(training *r)
{
    if (r->t.a->job->rank != 0) return CTN_OK;
    return write_text(r, "decisions.txt", ctn_context_decisions_text);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Seconds that saving a checkpoint costs: the longest pause, and what writing slows steps down. */
static double save_cost(const ctn_progress *p)
{
    return p->saves > 0 ? p->pause_s + p->slowed_s / (double)p->saves : 0;
}

/* The interval that loses the least time to saving and to work done twice (Young and Daly). */
static double save_interval(const training *r, const ctn_progress *p)
{
    return sqrt(2 * save_cost(p) * 3600 * args_real(r->t.a, "mtbf"));
}

static void print_json(const training *r, const ctn_progress *p, const char *stopped)
{
    json j = {0};
    double v;
    json_open(&j, NULL, '{');
    json_text(&j, "network", r->t.a->operand);
    json_text(&j, "out", r->out);
    json_text(&j, "stopped", stopped);
    json_text(&j, "ended", stopped ? NULL : ctn_trainer_stopped(r->trainer));
    json_int(&j, "ranks", r->t.a->job->size);
    json_int(&j, "iterations", p->iteration);
    json_real(&j, "epochs", (double)p->epoch + p->part);
    json_int(&j, "samples", p->samples);
    json_real(&j, "seconds", p->seconds);
    json_real(&j, "compute_s", p->compute_s);
    json_real(&j, "input_s", p->input_s);
    json_real(&j, "other_s", p->other_s);
    json_int(&j, "saves", p->saves);
    json_real(&j, "pause_s", p->pause_s);
    json_real(&j, "save_cost_s", save_cost(p));
    json_real(&j, "save_interval_s", save_interval(r, p));
    const char *name;
    for (int i = 0; (name = ctn_trainer_name(r->trainer, i)); i++)
        if (ctn_trainer_value(r->trainer, name, &v)) json_real(&j, name, v);
    json_close(&j, '}');
}

/* Where saving takes long. */
static void print_saves(const training *r, const ctn_progress *p)
{
    const double noticed = 0.1; /* seconds */
    if (p->saves == 0 || p->pause_s < noticed) return;
    say(stdout,
        "Saving a checkpoint costs %.1f s: if a job fails every %g hours (--mtbf), save every "
        "%.0f minutes (--save-minutes).\n",
        save_cost(p), args_real(r->t.a, "mtbf"), ceil(save_interval(r, p) / 60));
}

void result_print(const training *r, const char *stopped)
{
    ctn_progress p;
    double v;
    if (r->t.a->job->rank != 0) return;
    ctn_trainer_progress(r->trainer, &p);
    if (args_flag(r->t.a, "json")) {
        print_json(r, &p, stopped);
        return;
    }
    say(stdout,
        "%s: %lld iteration%s, %.2f epochs, %.1f s (compute %.1f, input %.1f, other %.1f)\n",
        stopped ? "stopped" : "done", (long long)p.iteration, p.iteration == 1 ? "" : "s",
        (double)p.epoch + p.part, p.seconds, p.compute_s, p.input_s, p.other_s);
    const char *ended = ctn_trainer_stopped(r->trainer), *name;
    if (!stopped && ended) say(stdout, "Stopped early: %s.\n", ended);
    print_saves(r, &p);
    for (int i = 0; (name = ctn_trainer_name(r->trainer, i)); i++)
        if (ctn_trainer_value(r->trainer, name, &v)) say(stdout, "  %-24s %.6g\n", name, v);
    say(stdout, "The folder %s contains the weights, the log, report.html and more.\n", r->out);
}
