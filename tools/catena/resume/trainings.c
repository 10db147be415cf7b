/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a training without interruption, and again while it is killed at random moments and resumed.
 * Both save a state after every step, so that many kills hit the writing of one. Every second kill
 * waits for that. A training that reaches its end before all kills are used up is compared, and the
 * next one begins.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "checkpoint/checkpoint.h"
#include "model.h"
#include "resume/resume.h"

#define SAVE_MINUTES "0.00001" /* after every step */
#define LOG "output.txt"       /* of the last process */
enum { OWN_WORDS = 32, START_S = 60, PATIENCE_S = 60 };

/* ---- folders --------------------------------------------------------------------------------- */

static const char *inside(const trainings *t, char *buf, const char *name)
{
    return join(buf, PATH_MAX, t->folder, name);
}

/* Whether the folder of the states has an entry whose name begins like this. */
static bool has_entry(const char *states, const char *begin)
{
    bool found = false;
    DIR *d = opendir(states);
    for (const struct dirent *e; d && !found && (e = readdir(d)) != NULL;)
        found = strncmp(e->d_name, begin, strlen(begin)) == 0;
    if (d) closedir(d);
    return found;
}

static bool has_state(const char *states)
{
    return has_entry(states, "0");
}

static bool is_saving(const char *states)
{
    return has_entry(states, "unfinished-");
}

/* ---- one process ----------------------------------------------------------------------------- */

/* Options that limit a training. */
typedef struct {
    char word[2][40]; /* "": none */
} limits;

/* The command line of a training. The options that this command needs come last and override those
 * of the user. */
static char **command_of(const trainings *t, const char *out, const limits *limit)
{
    static char ranks[24];
    const char **word = calloc((size_t)t->options + OWN_WORDS + SAMPLE_WORDS, sizeof *word);
    int n = 0;
    if (!word) return NULL;
    snprintf(ranks, sizeof ranks, "%lld", (long long)t->ranks);
    if (t->ranks > 1)
        for (const char *const *w = (const char *const[]){"mpirun", "-n", ranks, NULL}; *w; w++)
            word[n++] = *w;
    const char *const first[] = {t->program, "train", t->network, NULL};
    for (const char *const *w = first; *w; w++) word[n++] = *w;
    if (t->ranks > 1) { /* the fastest algorithm is measured anew by each job */
        word[n++] = "--oversubscribe";
        word[n++] = "--allreduce=ring";
    }
    for (int i = 0; t->data.word[i]; i++) word[n++] = t->data.word[i];
    for (int i = 0; i < t->options; i++) word[n++] = t->option[i];
    for (int i = 0; i < 2; i++)
        if (limit->word[i][0]) word[n++] = limit->word[i];
    const char *const last[] = {"--save-minutes", SAVE_MINUTES, "--quiet",
                                "--resume",       "--out",      out};
    for (size_t i = 0; i < sizeof last / sizeof *last; i++) word[n++] = last[i];
    return (char **)word;
}

static ctn_status start(const trainings *t, child *c, const char *out, const limits *limit)
{
    char log[PATH_MAX];
    char **argv = command_of(t, out, limit);
    if (!argv) return ctn_fail(CTN_ENOMEM, "no memory for a command line");
    const ctn_status st = child_start(c, argv, inside(t, log, LOG));
    free(argv);
    return st;
}

static bool ended_with(const child *c, int code)
{
    return WIFEXITED(c->status) && WEXITSTATUS(c->status) == code;
}

/* A training that has failed by itself: what it said. */
static ctn_status failed(trainings *t, const child *c)
{
    char log[PATH_MAX], text[1500];
    size_t n = strlen(child_said(inside(t, log, LOG), text, sizeof text));
    while (n > 0 && text[n - 1] == '\n') text[--n] = 0;
    if (!WIFEXITED(c->status))
        return ctn_fail(CTN_EENGINE, "the training was ended by signal %d:\n%s",
                        WTERMSIG(c->status), text);
    t->failed = WEXITSTATUS(c->status);
    return ctn_fail(CTN_EENGINE,
                    "the training failed with exit code %d (options of catena train come after "
                    "--):\n%s",
                    t->failed, text);
}

static ctn_status newest(const char *out, char path[PATH_MAX])
{
    place p;
    CTN_TRY(place_find(&p, out));
    CTN_TRY(place_newest(&p));
    memcpy(path, p.path, sizeof p.path);
    return CTN_OK;
}

/* ---- without interruption -------------------------------------------------------------------- */

static ctn_status last_iteration(void *user, const ctn_state_info *s)
{
    *(int64_t *)user = s->iteration;
    return CTN_OK;
}

static ctn_status run_whole(trainings *t, const char *out, const limits *limit, int code)
{
    child c;
    place p;
    char states[PATH_MAX];
    const double began = now_s();
    join(states, sizeof states, out, "state");
    CTN_TRY(start(t, &c, out, limit));
    while (!child_ended(&c) && !has_state(states)) pause_s(0.001);
    t->first_state = now_s() - began;
    child_wait(&c, -1);
    t->length = now_s() - began;
    if (!ended_with(&c, code)) return failed(t, &c);
    CTN_TRY(place_find(&p, out));
    return ctn_states_visit(p.path, last_iteration, &t->iterations);
}

/* The number of steps that take `seconds`. A limit in seconds would end every training after
 * another number of steps. */
static ctn_status count_steps(trainings *t)
{
    char out[PATH_MAX];
    limits l = {{"--iterations=1000000000"}}; /* schedules need a number of steps */
    snprintf(l.word[1], sizeof l.word[1], "--hours=%.9f", t->seconds / 3600);
    const ctn_status st = run_whole(t, inside(t, out, "timed"), &l, EXIT_REQUEUE);
    remove_tree(out);
    return st;
}

static limits limits_of(const trainings *t)
{
    limits l = {{""}};
    if (!t->limited)
        snprintf(l.word[0], sizeof l.word[0], "--iterations=%lld", (long long)t->iterations);
    return l;
}

ctn_status trainings_whole(trainings *t)
{
    char out[PATH_MAX];
    if (!t->limited) CTN_TRY(count_steps(t));
    const limits l = limits_of(t);
    return run_whole(t, inside(t, out, "whole"), &l, EXIT_DONE);
}

/* ---- with interruptions ---------------------------------------------------------------------- */

static void wait_for_save(child *c, const char *states, double most)
{
    const double end = now_s() + most;
    while (!child_ended(c) && !is_saving(states) && now_s() < end) pause_s(0.0002);
}

/* Kills one rank or all of them. mpirun ends the others. If no rank runs on this host, mpirun
 * itself is killed. Errors: EPEER (it does not end). */
static ctn_status kill_ranks(trainings *t, child *c, const char *out)
{
    pid_t rank[MOST_RANKS];
    const double end = now_s() + START_S;
    int n = 0;
    while (!child_ended(c) && now_s() < end &&
           (n = child_with(t->program, out, MOST_RANKS, rank)) < t->ranks)
        pause_s(0.001);
    if (n == 0) child_kill(c);
    const int one = (int)(model_uniform(&t->random) * (float)n);
    const bool all = model_uniform(&t->random) < 0.5f;
    for (int i = 0; i < n; i++)
        if (all || i == one) kill(rank[i], SIGKILL);
    if (child_wait(c, PATIENCE_S)) return CTN_OK;
    for (int i = 0; i < n; i++) kill(rank[i], SIGKILL);
    child_kill(c);
    child_wait(c, -1);
    return ctn_fail(CTN_EPEER, "%d s after %s killed, mpirun has not ended", PATIENCE_S,
                    all ? "all ranks were" : "one rank was");
}

/* Lets the training run for a while and kills it, unless it ends before. */
static ctn_status interrupt(trainings *t, child *c, const char *out, const char *states)
{
    const double share = 2 * (t->length - t->first_state) / (double)t->rounds;
    child_wait(c, (double)model_uniform(&t->random) * (t->first_state + share));
    if (t->kills % 2) {
        wait_for_save(c, states, t->length);
        pause_s(0.003 * (double)model_uniform(&t->random));
    }
    if (child_ended(c)) return CTN_OK;
    if (t->ranks > 1) CTN_TRY(kill_ranks(t, c, out));
    else child_kill(c);
    child_wait(c, -1);
    if (ended_with(c, EXIT_DONE)) return CTN_OK; /* it was faster */
    t->kills++;
    t->during_save += is_saving(states);
    return CTN_OK;
}

static void report(trainings *t, const char *name, const char *what)
{
    fprintf(t->report, "%s %s\n", name, what);
    t->wrong++;
}

static ctn_status report_damage(void *user, const char *text)
{
    report(user, "after a kill:", text);
    return CTN_OK;
}

/* A kill must leave all states intact. */
static ctn_status verify_state(void *user, const ctn_state_info *s)
{
    const ctn_status st = ctn_state_verify(s->path, report_damage, user);
    if (st != CTN_EFORMAT) return st;
    ctn_error_clear();
    return CTN_OK;
}

/* The length of the log depends on the times in it, and so does the saved position of its end. */
static ctn_status report_difference(void *user, const difference *d)
{
    trainings *t = user;
    if (strcmp(d->name, "extension[log].position") == 0) t->passed_over++;
    else report(t, d->name, d->what);
    return CTN_OK;
}

static ctn_status compare(trainings *t, const char *out)
{
    char whole[PATH_MAX], a[PATH_MAX], b[PATH_MAX];
    CTN_TRY(newest(inside(t, whole, "whole"), a));
    CTN_TRY(newest(out, b));
    t->trainings++;
    t->passed_over = 0;
    CTN_TRY(states_compare(a, b, &t->arrays, report_difference, t));
    t->arrays -= t->passed_over;
    return CTN_OK;
}

/* One training, from its beginning to its end. */
static ctn_status run_interrupted(trainings *t, const char *out, void (*show)(const trainings *t))
{
    char states[PATH_MAX];
    const limits l = limits_of(t);
    child c;
    join(states, sizeof states, out, "state");
    for (;;) {
        const int64_t kills = t->kills;
        CTN_TRY(start(t, &c, out, &l));
        if (kills < t->rounds) CTN_TRY(interrupt(t, &c, out, states));
        child_wait(&c, -1);
        if (ended_with(&c, EXIT_DONE)) return compare(t, out);
        if (t->kills == kills) return failed(t, &c);
        if (has_state(states)) CTN_TRY(ctn_states_visit(states, verify_state, t));
        show(t);
    }
}

ctn_status trainings_interrupted(trainings *t, void (*show)(const trainings *t))
{
    char out[PATH_MAX];
    inside(t, out, "interrupted");
    do {
        remove_tree(out);
        CTN_TRY(run_interrupted(t, out, show));
    } while (t->kills < t->rounds && t->wrong == 0);
    return CTN_OK;
}
