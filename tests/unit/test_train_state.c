/* SPDX-License-Identifier: Apache-2.0
 *
 * Save and resume. A training that is interrupted at any step, also in mid-epoch, and resumed in
 * new objects ends with bitwise the same weights, optimizer, average and log as an uninterrupted
 * one. If any file of a state is damaged, the previous state is used. A state of another setup
 * is refused and changes nothing. A failing allocation breaks and leaks nothing.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <catena/log.h>

#include "plan/plan.h"
#include "train/train.h"
#include "train_case.h"

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { EPOCHS = 4 };
static const train_opt options = {.dropout = 0.4, .scale = 1};

/* A training with everything that has a state. */
typedef struct {
    train_case c;
    ctn_trainer *tr;
} training;

static double rate(void *self, ctn_trainer *tr)
{
    (void)self;
    return ctn_optim_lr(ctn_trainer_optim(tr));
}

static void training_new(training *t, const char *out, const train_opt *o, int64_t accumulate)
{
    train_case_new(&t->c, o);
    OK(ctn_trainer_new(&t->tr, t->c.optim, t->c.loader, train_loss, &t->c,
                       CTN_OPT(ctn_trainer_opt, .net = t->c.net, .epochs = EPOCHS, .out = out,
                               .accumulate = accumulate)));
    OK(ctn_extend_log(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 5), "log"));
    OK(ctn_extend_evaluator(t->tr, CTN_TRIGGER(CTN_EVERY_EPOCHS, .n = 0.5), t->c.eval, train_loss,
                            &t->c));
    OK(ctn_extend_schedule(t->tr, "lr", CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_ONE_CYCLE)));
    OK(ctn_extend_plateau(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 1), "beta2",
                          CTN_OPT(ctn_patience_opt, .key = "val/loss", .patience = 1,
                                  .difference = 0.5, .factor = 0.9)));
    OK(ctn_extend_average(t->tr, 0.9));
    OK(ctn_extend_early_stop(t->tr, NULL,
                             CTN_OPT(ctn_patience_opt, .key = "val/loss", .patience = 2,
                                     .difference = 0.6)));
    OK(ctn_extend_observe(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 3), "lr", rate, NULL));
    OK(ctn_extend_param_stats(t->tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 10), "0.*"));
    OK(ctn_extend_weights(t->tr, CTN_TRIGGER(CTN_WHEN_MAX, .key = "val/accuracy"),
                          "best.safetensors"));
    OK(ctn_extend_fail_on_nonfinite(t->tr, NULL));
}

static void training_free(training *t)
{
    ctn_trainer_free(t->tr);
    train_case_free(&t->c);
}

/* ---- what is compared ------------------------------------------------------------------------ */

static char *read_text(const char *dir, const char *file, size_t *bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, file);
    FILE *f = fopen(path, "rb");
    if (!f) fail_msg("no file %s", path);
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    fseek(f, 0, SEEK_SET);
    char *text = calloc(1, *bytes + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, *bytes, f), *bytes);
    fclose(f);
    return text;
}

/* The log without times. */
static char *log_of(const char *dir)
{
    size_t n;
    char *text = read_text(dir, "log", &n);
    static const char *const times[] = {"\"seconds\":", "\"compute_s\":", "\"input_s\":",
                                        "\"other_s\":"};
    for (int i = 0; i < 4; i++)
        for (char *p = text; (p = strstr(p, times[i])) != NULL;) {
            p += strlen(times[i]);
            size_t k = strcspn(p, ",}");
            memmove(p, p + k, strlen(p + k) + 1);
        }
    return text;
}

typedef struct {
    char *log, *average, *best, *optim;
    size_t naverage, nbest, noptim;
    float w[WEIGHTS];
} result;

static void result_of(result *r, const training *t, const char *dir)
{
    char path[256];
    snprintf(path, sizeof path, "%s/optim", dir);
    const ctn_state_part p[2] = {ctn_part_optim("optim", t->c.optim),
                                 ctn_part_context("context", t->c.ctx)};
    OK(ctn_state_save(path, 2, p));
    *r = (result){.log = log_of(dir)};
    r->average = read_text(dir, "average.safetensors", &r->naverage);
    r->best = read_text(dir, "best.safetensors", &r->nbest);
    r->optim = read_text(dir, "optim", &r->noptim);
    train_weights(&t->c, r->w);
}

static void result_free(result *r)
{
    free(r->log);
    free(r->average);
    free(r->best);
    free(r->optim);
}

static void assert_same(const result *a, const result *b)
{
    assert_memory_equal(a->w, b->w, sizeof a->w);
    assert_string_equal(a->log, b->log);
    assert_int_equal(a->naverage, b->naverage);
    assert_memory_equal(a->average, b->average, a->naverage);
    assert_int_equal(a->nbest, b->nbest);
    assert_memory_equal(a->best, b->best, a->nbest);
    assert_int_equal(a->noptim, b->noptim);
    assert_memory_equal(a->optim, b->optim, a->noptim);
}

static void reference(result *r, const train_opt *o, int64_t accumulate, int64_t *steps)
{
    training t;
    ctn_progress p;
    char dir[] = "whole.XXXXXX";
    assert_non_null(mkdtemp(dir));
    training_new(&t, dir, o, accumulate);
    OK(ctn_trainer_run(t.tr));
    ctn_trainer_progress(t.tr, &p);
    *steps = p.iteration;
    result_of(r, &t, dir);
    training_free(&t);
}

/* ---- interrupt and resume -------------------------------------------------------------------- */

static ctn_status stop(void *self, ctn_trainer *tr)
{
    (void)self;
    ctn_trainer_stop(tr, "cut");
    return CTN_OK;
}

static void state_dir(char *buf, size_t n, const char *out)
{
    snprintf(buf, n, "%s/state", out);
}

/* One life: resumes if there is a state, runs up to step `cut` (0: to the end), and saves. */
static void live(const char *dir, const train_opt *o, int64_t accumulate, int64_t cut, result *end)
{
    training t;
    char state[256];
    state_dir(state, sizeof state, dir);
    training_new(&t, dir, o, accumulate);
    const ctn_status st = ctn_trainer_load(t.tr, state);
    if (st != CTN_ENOTFOUND) OK(st);
    ctn_error_clear();
    OK(ctn_extend_state(t.tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 1000)));
    ctn_extension e = {.struct_size = sizeof e,
                       .name = "cut",
                       .priority = 10000,
                       .call = stop,
                       .trigger = {.kind = CTN_ONCE, .n = (double)cut}};
    if (cut > 0) OK(ctn_trainer_extend(t.tr, &e));
    OK(ctn_trainer_run(t.tr));
    if (end) result_of(end, &t, dir);
    training_free(&t);
}

static void test_every_step(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        train_opt o = options;
        const int64_t accumulate = k == 1 ? 4 : 1;
        int64_t steps;
        result want, got;
        o.loader_threads = k == 2 ? 2 : 0;
        reference(&want, &o, accumulate, &steps);
        assert_true(strchr(want.log, '\n') != NULL);
        for (int64_t cut = 1; cut <= steps; cut++) {
            char dir[] = "cut.XXXXXX";
            assert_non_null(mkdtemp(dir));
            live(dir, &o, accumulate, cut, NULL);
            live(dir, &o, accumulate, 0, &got);
            assert_same(&want, &got);
            result_free(&got);
        }
        result_free(&want);
    }
}

/* One life per step. */
static void test_many_lives(void **state)
{
    (void)state;
    int64_t steps;
    result want, got;
    char dir[] = "lives.XXXXXX";
    assert_non_null(mkdtemp(dir));
    reference(&want, &options, 1, &steps);
    for (int64_t cut = 1; cut <= steps; cut++) live(dir, &options, 1, cut, NULL);
    live(dir, &options, 1, 0, &got);
    assert_same(&want, &got);
    result_free(&got);
    result_free(&want);
}

/* ---- sudden death ---------------------------------------------------------------------------- */

static ctn_status die(void *self, ctn_trainer *tr)
{
    (void)self, (void)tr;
    _exit(3);
}

/* A process that resumes if it can, saves every `every` steps, and dies at step `death` (0:
 * never). */
static pid_t spawn(const char *dir, int64_t every, int64_t death)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0) return child;
    training t;
    char where[256];
    ctn_extension e = {.struct_size = sizeof e,
                       .name = "die",
                       .priority = -10000,
                       .call = die,
                       .trigger = {.kind = CTN_ONCE, .n = (double)death}};
    state_dir(where, sizeof where, dir);
    training_new(&t, dir, &options, 1);
    if (ctn_extend_state(t.tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = (double)every)) < 0 ||
        (death > 0 && ctn_trainer_extend(t.tr, &e) < 0) ||
        (ctn_trainer_load(t.tr, where) < 0 && ctn_error_status() != CTN_ENOTFOUND)) {
        fprintf(stderr, "%s\n", ctn_error_message());
        _exit(1);
    }
    ctn_error_clear();
    _exit(ctn_trainer_run(t.tr) == CTN_OK ? 0 : 2);
}

/* Adds lines that a life that got further might have left in the log. */
static void add_lines(const char *dir)
{
    char path[256];
    snprintf(path, sizeof path, "%s/log", dir);
    FILE *f = fopen(path, "a");
    assert_non_null(f);
    for (int i = 0; i < 100; i++) fprintf(f, "{\"iteration\":%d,\"train/loss\":1e9}\n", 90 + i);
    fclose(f);
}

/* Steps after the last state are repeated, and their lines appear once in the log. */
static void test_death(void **state)
{
    (void)state;
    int64_t steps;
    result want, got;
    reference(&want, &options, 1, &steps);
    for (int64_t death = 2; death < steps; death++) {
        int status;
        char dir[] = "death.XXXXXX";
        assert_non_null(mkdtemp(dir));
        assert_true(waitpid(spawn(dir, 1 + death % 7, death), &status, 0) > 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
        add_lines(dir);
        live(dir, &options, 1, 0, &got);
        assert_same(&want, &got);
        result_free(&got);
    }
    result_free(&want);
}

/* Killed anywhere, even while writing, as often as it takes: the end is always the same, and no
 * kill leaves a state that cannot be read. */
static void test_kills(void **state)
{
    (void)state;
    int64_t steps;
    int kills = 0;
    unsigned wait = 1;
    result want, got;
    reference(&want, &options, 1, &steps);
    for (int round = 0; round < 4; round++) {
        char dir[] = "kill.XXXXXX";
        assert_non_null(mkdtemp(dir));
        for (int k = 0, done = 0; k < 15 && !done; k++) {
            int status;
            const pid_t child = spawn(dir, 1, 0);
            wait = wait * 1103515245u + 12345u;
            usleep(10000 + (wait >> 8) % 120000);
            kill(child, SIGKILL);
            assert_true(waitpid(child, &status, 0) > 0);
            done = WIFEXITED(status);
            if (done) assert_int_equal(WEXITSTATUS(status), 0);
            kills += !done;
        }
        live(dir, &options, 1, 0, &got);
        assert_same(&want, &got);
        result_free(&got);
    }
    print_message("%d kills\n", kills);
    result_free(&want);
}

/* A second run of one trainer, and rows of the log from an earlier life. */
static void test_rows(void **state)
{
    (void)state;
    training t;
    char dir[] = "rows.XXXXXX", where[256];
    double loss[2];
    assert_non_null(mkdtemp(dir));
    state_dir(where, sizeof where, dir);
    for (int life = 0; life < 2; life++) {
        ctn_extension e = {.struct_size = sizeof e,
                           .name = "cut",
                           .call = stop,
                           .trigger = {.kind = CTN_ONCE, .n = life ? 16 : 11}};
        training_new(&t, dir, &options, 1);
        OK(ctn_trainer_extend(t.tr, &e));
        OK(ctn_extend_state(t.tr, NULL));
        if (life) OK(ctn_trainer_load(t.tr, where));
        OK(ctn_trainer_run(t.tr));
        assert_int_equal(ctn_trainer_rows(t.tr), life ? 3 : 2);
        loss[life] = ctn_trainer_row_value(t.tr, 1, "train/loss");
        ctn_progress p;
        ctn_trainer_row_progress(t.tr, 1, &p);
        assert_int_equal(p.iteration, 10);
        assert_int_equal(p.epoch, 1);
        assert_true(fabs(p.part - 16.0 / SAMPLES) < 1e-9);
        assert_true(fabs(p.total - 10.0 / 24) < 0.02);
        training_free(&t);
    }
    assert_true(loss[0] == loss[1] && loss[0] > 0);
}

static ctn_status far_away(void *user, const char *name, ctn_dtype dtype, int ndim,
                           const int64_t *dim, void *data)
{
    (void)user, (void)name, (void)dtype, (void)ndim, (void)dim;
    *(int64_t *)data = INT64_MAX; /* where the log ends, says the state */
    return CTN_OK;
}

/* A log with a new name in every row takes no more memory than in proportion to its size. */
static void test_many_names(void **state)
{
    (void)state;
    enum { ROWS = 30000, MEGABYTES = 400 };
    training t;
    struct rusage before, after;
    char dir[] = "names.XXXXXX", path[256], name[32];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/log", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < ROWS; i++) fprintf(f, "{\"iteration\":%d,\"a%d\":%d,\"b\":1}\n", i, i, i);
    fprintf(f, "{\"a1\":1}\nanything\n");
    assert_int_equal(fclose(f), 0);
    training_new(&t, dir, &options, 1);
    OK(ctn_extend_html(t.tr, NULL, "report.html", NULL, NULL));
    for (size_t i = 0; i < t.tr->ext.n; i++) {
        const ctn_extension *e = &t.tr->ext.at[i]->e;
        if (strcmp(e->name, "log") == 0) OK(e->visit(e->self, far_away, NULL));
    }
    getrusage(RUSAGE_SELF, &before);
    OK(ctn_trainer_run(t.tr));
    getrusage(RUSAGE_SELF, &after);
    assert_in_range((after.ru_maxrss - before.ru_maxrss) / 1024, 0, MEGABYTES);
    assert_true(ctn_trainer_rows(t.tr) > ROWS);
    for (int i = 0; i < ROWS; i += ROWS / 7) {
        snprintf(name, sizeof name, "a%d", i);
        assert_true(ctn_trainer_row_value(t.tr, i, name) == i);
        assert_true(isnan(ctn_trainer_row_value(t.tr, i + 1, name)));
        assert_true(ctn_trainer_row_value(t.tr, i, "b") == 1);
    }
    training_free(&t);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static int warnings;
static void count_warning(void *user, const char *text)
{
    (void)user;
    warnings += strstr(text, "damaged") || strstr(text, "another machine");
}

/* The names of the states in a folder, newest first. */
static int list_states(const char *where, char name[8][16])
{
    int n = 0;
    struct dirent **d = NULL;
    int found = scandir(where, &d, NULL, alphasort);
    for (int i = found - 1; i >= 0; i--) {
        if (strspn(d[i]->d_name, "0123456789") == 9 && n < 8)
            snprintf(name[n++], 16, "%.15s", d[i]->d_name);
        free(d[i]);
    }
    free(d);
    return n;
}

/* how 0: truncated, 1: a byte changed, 2: removed. */
static void damage(const char *where, const char *state, const char *file, int how)
{
    char path[512];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s/%s", where, state, file);
    assert_int_equal(stat(path, &info), 0);
    if (how == 2) {
        assert_int_equal(unlink(path), 0);
    } else if (how == 0) {
        assert_int_equal(truncate(path, info.st_size / 2), 0);
    } else {
        int fd = open(path, O_RDWR);
        char b;
        assert_true(fd >= 0 && pread(fd, &b, 1, info.st_size - 3) == 1);
        b ^= 4;
        assert_int_equal(pwrite(fd, &b, 1, info.st_size - 3), 1);
        close(fd);
    }
}

static void test_damage(void **state)
{
    (void)state;
    static const char *const files[] = {"state.safetensors", "trainer.txt", "decisions.txt",
                                        "manifest.txt"};
    ctn_set_log(count_warning, NULL);
    for (int k = 0; k < 12; k++) {
        training t;
        char dir[] = "damage.XXXXXX", where[256], name[8][16], path[512];
        float older[WEIGHTS], got[WEIGHTS];
        ctn_progress p;
        assert_non_null(mkdtemp(dir));
        state_dir(where, sizeof where, dir);
        training_new(&t, dir, &options, 1);
        for (int i = 1; i <= 4; i++) { /* four states, of which two are kept */
            ctn_extension e = {.struct_size = sizeof e,
                               .call = stop,
                               .trigger = {.kind = CTN_ONCE, .n = 3 * i}};
            char at[16];
            snprintf(at, sizeof at, "cut%d", i);
            e.name = at;
            OK(ctn_trainer_extend(t.tr, &e));
            ctn_trainer_stop(t.tr, NULL);
            OK(ctn_trainer_run(t.tr));
            OK(ctn_trainer_save(t.tr, where));
            if (i == 3) train_weights(&t.c, older);
        }
        training_free(&t);
        assert_int_equal(list_states(where, name), 2);
        assert_string_equal(name[0], "000000003");
        damage(where, name[0], files[k / 3], k % 3);
        /* What a kill leaves in the middle of writing is ignored. */
        snprintf(path, sizeof path, "%s/unfinished-1", where);
        assert_int_equal(mkdir(path, 0777), 0);
        training_new(&t, dir, &options, 1);
        warnings = 0;
        OK(ctn_trainer_load(t.tr, where));
        assert_int_equal(warnings, 1);
        train_weights(&t.c, got);
        assert_memory_equal(older, got, sizeof got);
        ctn_trainer_progress(t.tr, &p);
        assert_int_equal(p.iteration, 9);
        /* The damaged one does not count: two complete ones are kept. */
        OK(ctn_trainer_save(t.tr, where));
        assert_int_equal(list_states(where, name), 2);
        assert_string_equal(name[0], "000000003");
        assert_string_equal(name[1], "000000002");
        damage(where, name[0], "trainer.txt", 0);
        damage(where, name[1], "trainer.txt", k % 3 == 2 ? 0 : 2);
        FAILS(ctn_trainer_load(t.tr, where), CTN_EFORMAT, "damaged");
        training_free(&t);
    }
    ctn_set_log(NULL, NULL);
}

/* ---- decisions ------------------------------------------------------------------------------- */

static ctn__planner *planner(const training *t)
{
    return t->c.ctx->planner;
}

/* Decisions are kept: nothing is timed again, and what has been stored on disk meanwhile does
 * not matter. Another thread count counts as another machine. */
static void test_decisions(void **state)
{
    (void)state;
    training t;
    char dir[] = "decide.XXXXXX", where[256], text[4096];
    train_opt o = options;
    assert_non_null(mkdtemp(dir));
    state_dir(where, sizeof where, dir);
    training_new(&t, dir, &o, 1);
    OK(ctn_trainer_run(t.tr));
    OK(ctn__choice_put(planner(&t)->engine, "a problem", "second"));
    OK(ctn_trainer_save(t.tr, where));
    assert_true(ctn_context_decisions_text(t.c.ctx, text, sizeof text) > 0);
    assert_non_null(strstr(text, "a problem\tsecond\n"));
    training_free(&t);

    training_new(&t, dir, &o, 1);
    OK(ctn__choice_put(planner(&t)->engine, "a problem", "first"));
    OK(ctn__choice_put(planner(&t)->engine, "another", "first"));
    assert_false(planner(&t)->stepped);
    OK(ctn_trainer_load(t.tr, where));
    assert_true(planner(&t)->stepped);
    assert_string_equal(ctn__choice_find(planner(&t)->engine, "a problem"), "second");
    assert_null(ctn__choice_find(planner(&t)->engine, "another"));
    training_free(&t);

    o.threads = 2;
    training_new(&t, dir, &o, 1);
    ctn_set_log(count_warning, NULL);
    warnings = 0;
    OK(ctn_trainer_load(t.tr, where));
    ctn_set_log(NULL, NULL);
    assert_int_equal(warnings, 1);
    assert_false(planner(&t)->stepped);
    training_free(&t);
}

/* ---- another setup --------------------------------------------------------------------------- */

static ctn_status no_state(void *self, ctn_state_fn fn, void *user)
{
    return fn(user, "x", CTN_I64, 0, NULL, self);
}

static void test_refusals(void **state)
{
    (void)state;
    training t;
    char dir[] = "refuse.XXXXXX", where[256];
    float before[WEIGHTS], after[WEIGHTS];
    int64_t x = 5;
    assert_non_null(mkdtemp(dir));
    state_dir(where, sizeof where, dir);
    training_new(&t, dir, &options, 1);
    FAILS(ctn_trainer_load(t.tr, where), CTN_ENOTFOUND, "none");
    ctn_extension e = {.struct_size = sizeof e,
                       .name = "mine",
                       .visit = no_state,
                       .self = &x,
                       .trigger = {.kind = CTN_AT_END}};
    OK(ctn_trainer_extend(t.tr, &e));
    OK(ctn_trainer_run(t.tr));
    OK(ctn_trainer_save(t.tr, where));
    training_free(&t);

    training_new(&t, dir, &options, 1); /* without the extension */
    train_weights(&t.c, before);
    FAILS(ctn_trainer_load(t.tr, where), CTN_ESTATE, "extension mine");
    x = 0;
    OK(ctn_trainer_extend(t.tr, &e));
    e.name = "more"; /* and with an additional one that has a state */
    OK(ctn_trainer_extend(t.tr, &e));
    FAILS(ctn_trainer_load(t.tr, where), CTN_ENOTFOUND, "more");
    assert_int_equal(x, 0);
    train_weights(&t.c, after);
    assert_memory_equal(before, after, sizeof before);
    training_free(&t);

    train_opt o = options;
    o.batch = 5;
    training_new(&t, dir, &o, 1);
    OK(ctn_trainer_extend(t.tr, &(ctn_extension){.struct_size = sizeof e,
                                                 .name = "mine",
                                                 .visit = no_state,
                                                 .self = &x,
                                                 .trigger = {.kind = CTN_AT_END}}));
    FAILS(ctn_trainer_load(t.tr, where), CTN_ESTATE, "in steps of 4");
    training_free(&t);

    o = options;
    o.sgd = 1;
    train_case_new(&t.c, &o);
    OK(ctn_trainer_new(&t.tr, t.c.optim, t.c.loader, train_loss, &t.c,
                       CTN_OPT(ctn_trainer_opt, .epochs = 1)));
    FAILS(ctn_trainer_save(t.tr, where), CTN_ESTATE, "net");
    training_free(&t);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t left; /* allocations that still succeed; < 0: all do */

static void *alloc(void *user, size_t bytes, size_t align)
{
    (void)user;
    void *p = NULL;
    if (left == 0) return NULL;
    if (left > 0) left--;
    return posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes) ? NULL : p;
}

static void release(void *user, void *p)
{
    (void)user;
    free(p);
}

/* One failing allocation in save and in load: the previous state is still the latest, and the
 * next attempt works. */
static void test_no_memory(void **state)
{
    (void)state;
    training t, u;
    char dir[] = "memory.XXXXXX", where[256];
    bool failed = true;
    const ctn_allocator a = {alloc, release, NULL};
    assert_non_null(mkdtemp(dir));
    state_dir(where, sizeof where, dir);
    left = -1;
    OK(ctn_set_allocator(&a));
    training_new(&t, dir, &options, 1);
    training_new(&u, dir, &options, 1);
    OK(ctn_trainer_run(t.tr));
    for (int64_t n = 0; failed; n++) {
        left = n;
        ctn_error_clear();
        ctn_status st = ctn_trainer_save(t.tr, where);
        failed = left == 0;
        left = -1;
        if (failed && st != CTN_OK) assert_int_equal(st, CTN_ENOMEM);
    }
    failed = true;
    for (int64_t n = 0; failed; n++) {
        left = n;
        ctn_error_clear();
        ctn_status st = ctn_trainer_load(u.tr, where);
        failed = left == 0;
        left = -1;
        if (failed && st != CTN_OK) assert_int_equal(st, CTN_ENOMEM);
    }
    float w[2][WEIGHTS];
    train_weights(&t.c, w[0]);
    train_weights(&u.c, w[1]);
    assert_memory_equal(w[0], w[1], sizeof w[0]);
    training_free(&t);
    training_free(&u);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),  cmocka_unit_test(test_every_step),
        cmocka_unit_test(test_many_lives), cmocka_unit_test(test_death),
        cmocka_unit_test(test_kills),      cmocka_unit_test(test_rows),
        cmocka_unit_test(test_many_names), cmocka_unit_test(test_damage),
        cmocka_unit_test(test_decisions),  cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
