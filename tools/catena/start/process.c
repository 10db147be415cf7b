/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs mpirun and ends it in order. mpirun has a process group of its own, so that Ctrl-C reaches
 * only this process, which can then ask the ranks to save.
 *
 * Invariant: from process_begin on the signals are blocked and fetched with sigtimedwait, so none
 * is lost and no handler is needed. Processes that mpirun leaves behind become children of this
 * one (a subreaper) and are killed by process_sweep.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "start/start.h"

enum { CANNOT_START = 127, LEFT = 4096, PROBES = 16 };
#define TURN_S 0.5   /* how often a child is looked at, should its signal get lost */
#define OVER_S 5.0   /* for mpirun to end after the job is over */
#define KILL_S 3.0   /* from SIGTERM, which lets mpirun end its ranks, to SIGKILL */
#define GRACE_S 2.0  /* for processes that end by themselves after mpirun */
#define GONE_S 10.0  /* for killed processes */
#define ANSWER_S 5.0 /* for a host to run a program */
#define NEVER 1e300

static sigset_t stops, before; /* what is fetched here; the mask of the processes that we start */

ctn_status process_begin(void)
{
    sigset_t all;
    sigemptyset(&stops);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGUSR1);
    all = stops;
    sigaddset(&all, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &all, &before) != 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        return ctn_fail(CTN_EIO, "cannot prepare to watch processes: %s", strerror(errno));
    return CTN_OK;
}

/* ---- starting -------------------------------------------------------------------------------- */

/* In the new process. Standard input is empty: a process group in the background that reads from
 * the terminal would be stopped. */
static void become(char *const argv[], output to)
{
    const int none = open("/dev/null", O_RDWR);
    setpgid(0, 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    /* After SIGTERM mpirun also ends the ranks on other hosts. */
    prctl(PR_SET_PDEATHSIG, to == OUTPUT_NONE ? SIGKILL : SIGTERM);
    if (none >= 0) dup2(none, STDIN_FILENO);
    if (none >= 0 && to == OUTPUT_NONE) {
        dup2(none, STDOUT_FILENO);
        dup2(none, STDERR_FILENO);
    }
    if (to == OUTPUT_STDERR) dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "catena launch: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_START);
}

ctn_status process_start(child *c, char *const argv[], output to)
{
    *c = (child){.ended = true};
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) become(argv, to);
    if (c->pid < 0) return ctn_fail(CTN_EIO, "cannot start a process: %s", strerror(errno));
    setpgid(c->pid, c->pid); /* here too, so that it holds before either process goes on */
    c->ended = false;
    return CTN_OK;
}

int process_output(char *const argv[], char *text, size_t n)
{
    int ends[2], status = 0;
    size_t used = 0;
    text[0] = 0;
    if (pipe(ends) != 0) return CANNOT_START;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        const int none = open("/dev/null", O_RDWR);
        if (none >= 0) dup2(none, STDIN_FILENO);
        if (none >= 0) dup2(none, STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        execvp(argv[0], argv);
        _exit(CANNOT_START);
    }
    close(ends[1]);
    for (ssize_t k; pid > 0 && used < n - 1 && (k = read(ends[0], text + used, n - 1 - used)) > 0;)
        used += (size_t)k;
    text[used] = 0;
    close(ends[0]);
    if (pid < 0 || waitpid(pid, &status, 0) != pid) return CANNOT_START;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int process_code(const child *c)
{
    return WIFEXITED(c->status) ? WEXITSTATUS(c->status) : 128 + WTERMSIG(c->status);
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* The next signal within this time: one that asks to stop, SIGCHLD, or 0. */
static int next_signal(double seconds)
{
    sigset_t all = stops;
    sigaddset(&all, SIGCHLD);
    if (seconds < 0) seconds = 0;
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    const int number = sigtimedwait(&all, NULL, &t);
    return number > 0 ? number : 0;
}

/* How the end of a job is asked for, step by step. */
typedef enum { RUNNING, SAVING, ENDING, KILLED } phase;

/* Open MPI's mpirun kills its ranks right after SIGTERM, but passes SIGUSR1 on to them. */
static phase advance(const child *c, phase now)
{
    switch (now) {
    case RUNNING: kill(c->pid, SIGUSR1); return SAVING;
    case SAVING: kill(c->pid, SIGTERM); return ENDING;
    default: kill(-c->pid, SIGKILL); return KILLED;
    }
}

int process_wait(child *c, double patience, outcome *o)
{
    int asked = 0;
    phase now = RUNNING;
    double until = NEVER;
    while (!child_ended(c)) {
        const double left = until - now_s();
        const int number = next_signal(left < TURN_S ? left : TURN_S);
        if (number && number != SIGCHLD) {
            const bool again = asked != 0;
            if (!again) asked = number;
            if (now == RUNNING) now = advance(c, now);
            if (number != SIGUSR1 && now == SAVING && until == NEVER) until = now_s() + patience;
            if (number == SIGINT && again) until = now_s(); /* Ctrl-C twice: do not wait */
        }
        if (now == RUNNING && outcome_over(o)) {
            now = SAVING; /* the ranks are ending, or have ended */
            until = now_s() + OVER_S;
        }
        if (now_s() < until) continue;
        now = advance(c, now);
        until = now == KILLED ? NEVER : now_s() + KILL_S;
    }
    return asked;
}

int process_pause(double seconds)
{
    const double end = now_s() + seconds;
    while (now_s() < end) {
        const int number = next_signal(end - now_s());
        if (number && number != SIGCHLD) return number;
    }
    return 0;
}

/* ---- what is left ---------------------------------------------------------------------------- */

/* The processes below this one; kills them if asked to. */
static int below(bool kill_them)
{
    pid_t p[LEFT];
    const child self = {.pid = getpid()};
    int n = 0;
    const int found = child_below(&self, LEFT, p);
    for (int i = 0; i < found; i++) {
        if (p[i] == self.pid) continue;
        n++;
        if (kill_them) kill(p[i], SIGKILL);
    }
    return n;
}

int process_sweep(void)
{
    const double began = now_s();
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
        if (pid > 0) continue;
        const double waited = now_s() - began;
        if (waited > GRACE_S + GONE_S) return below(false);
        if (waited > GRACE_S) below(true);
        pause_s(0.02);
    }
    return 0;
}

/* ---- hosts that answer ----------------------------------------------------------------------- */

static ctn_status start_probe(child *c, const mpi_launcher *m, const host *h)
{
    words w = {0};
    mpirun_probe(&w, m, h);
    const ctn_status st = w.bad ? ctn_fail(CTN_ENOMEM, "no memory for a command line")
                                : process_start(c, w.word, OUTPUT_NONE);
    words_free(&w);
    return st;
}

/* Asks n hosts at the same time. */
static ctn_status ask(const host *h, int n, const mpi_launcher *m, bool *answers)
{
    child c[PROBES];
    ctn_status st = CTN_OK;
    int started = 0;
    while (started < n && st == CTN_OK) {
        st = start_probe(&c[started], m, &h[started]);
        started += st == CTN_OK;
    }
    const double end = now_s() + ANSWER_S;
    for (int i = 0; i < started; i++) {
        while (!child_ended(&c[i]) && now_s() < end) pause_s(0.01);
        answers[i] = c[i].ended && process_code(&c[i]) == 0;
        if (!c[i].ended) kill(-c[i].pid, SIGKILL);
        child_wait(&c[i], -1);
    }
    return st;
}

ctn_status process_probe(hosts *h, const mpi_launcher *m, char *lost, size_t room)
{
    bool answers[PROBES] = {false};
    size_t used = 0;
    int kept = 0;
    lost[0] = 0;
    for (int i = 0; i < h->n; i += PROBES) {
        const int n = h->n - i < PROBES ? h->n - i : PROBES;
        CTN_TRY(ask(h->at + i, n, m, answers));
        for (int k = 0; k < n; k++) {
            if (answers[k]) h->at[kept++] = h->at[i + k];
            else if (used + 1 < room)
                used += (size_t)snprintf(lost + used, room - used, "%s%s", used ? ", " : "",
                                         h->at[i + k].name);
            if (used >= room) used = room - 1;
        }
    }
    h->n = kept;
    return CTN_OK;
}
