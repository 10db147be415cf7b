/* SPDX-License-Identifier: Apache-2.0
 *
 * catena launch: starts a command of catena on several ranks through the launcher of the MPI, and
 * starts it again when a rank or a host is lost, on the hosts that still answer. A training then
 * resumes from its last checkpoint. Whether it hangs is the business of the watchdog in the ranks,
 * which ends such a job.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "start/start.h"

#define FIRST_PAUSE_S 1.0 /* before the first restart; doubled for each further one */
#define LONGEST_PAUSE_S 60.0
#define LONG_RUN_S 600.0 /* a job that ran this long was healthy: the pauses begin anew */

typedef struct {
    const args *a;
    args own; /* options of a training */
    bool training;
    char program[PATH_MAX];
    placement p;
    hosts all;        /* of the job; none: not known, or only this machine */
    bool mpirun_asks; /* as long as all hosts answer, mpirun asks Slurm for them */
    int64_t ranks;    /* of the first start; 0: not known */
    outcome o;
    int64_t restarts;
    double began, pause;
} job;

/* ---- command lines --------------------------------------------------------------------------- */

/* --batch is for the first number of ranks. On fewer ranks a step keeps its samples. */
static int64_t kept_batch(const job *j)
{
    if (!j->training || j->p.ranks == 0 || j->p.ranks == j->ranks) return 0;
    const int k = option_find(j->own.cmd, "batch", strlen("batch"));
    if (j->own.from[k] != FROM_FLAG || args_int(&j->own, "total-batch") > 0) return 0;
    return args_int(&j->own, "batch") * j->ranks;
}

static void catena_words(words *w, const job *j)
{
    const int64_t batch = kept_batch(j);
    words_add(w, "%s", j->program);
    for (int i = 0; i < j->a->nextra; i++) {
        const char *word = j->a->extra[i];
        if (batch && strcmp(word, "--batch") == 0) i++;
        else if (!batch || strncmp(word, "--batch=", strlen("--batch=")) != 0)
            words_add(w, "%s", word);
    }
    if (batch) words_add(w, "--total-batch=%lld", (long long)batch);
    if (j->training && j->restarts > 0 && !args_flag(&j->own, "resume")) words_add(w, "--resume");
}

static ctn_status job_words(words *w, const job *j)
{
    mpirun_words(w, &j->p);
    catena_words(w, j);
    return w->bad ? ctn_fail(CTN_ENOMEM, "no memory for a command line") : CTN_OK;
}

/* ---- messages ------------------------------------------------------------------------------- */

static int refuse(const char *fmt, ...) CTN_PRINTF(1, 2);
static int refuse(const char *fmt, ...)
{
    va_list ap;
    say(stderr, "catena launch: ");
    va_start(ap, fmt);
    vsay(stderr, fmt, ap);
    va_end(ap);
    say(stderr, "\n");
    return EXIT_USAGE;
}

/* A line of the log, with the time like those of the ranks. */
static void tell(const char *fmt, ...) CTN_PRINTF(1, 2);
static void tell(const char *fmt, ...)
{
    char when[UTC];
    va_list ap;
    say(stderr, "%s catena launch: ", utc_now(when));
    va_start(ap, fmt);
    vsay(stderr, fmt, ap);
    va_end(ap);
    say(stderr, "\n");
}

/* ---- setup ----------------------------------------------------------------------------------- */

/* args_parse removes the variables that it has read, but the ranks have to read them too. */
static void restore_variables(const args *a)
{
    char name[128];
    for (int k = 0; a->cmd->options[k].name; k++)
        if (a->from[k] == FROM_ENVIRONMENT && config_variable(a->cmd, k, name, sizeof name))
            setenv(name, a->value[k] ? a->value[k] : "0", 1);
}

/* What the ranks will run. The options of a training are checked before anything is started, and
 * say where its result folder is. */
static int read_command(job *j)
{
    const args *a = j->a;
    if (a->nextra == 0)
        return refuse("expected -- and a command: catena launch -n 4 -- train mlp --data mnist");
    const command *cmd = command_find(a->extra[0]);
    if (!cmd) return refuse("catena has no command '%s' (catena --help lists them)", a->extra[0]);
    if (cmd->ranks != RANKS_JOB)
        return refuse("catena %s does not run on several ranks: start it without launch",
                      cmd->name);
    j->training = cmd == &cmd_train;
    if (!j->training) return -1;
    const int code = args_parse(&j->own, cmd, a->nextra - 1, a->extra + 1);
    if (code >= 0) return code;
    restore_variables(&j->own);
    j->o.out = args_text(&j->own, "out");
    return -1;
}

static ctn_status read_hosts(job *j)
{
    const char *list = args_text(j->a, "hosts"), *file = args_text(j->a, "hostfile");
    if (list[0]) return hosts_of_list(&j->all, list);
    if (file[0]) return hosts_of_file(&j->all, file);
    const char *slurm = getenv("SLURM_JOB_NODELIST");
    j->mpirun_asks = slurm && slurm[0];
    return j->mpirun_asks ? hosts_of_slurm(&j->all) : hosts_of_list(&j->all, "localhost");
}

/* Copies hosts, because those of a start are a part of those of the job. */
static ctn_status use_hosts(job *j, const hosts *from)
{
    hosts_free(&j->p.on);
    j->p.local = from->n > 0 && !hosts_several(from);
    if (from->n == 0) return CTN_OK;
    host *copy = malloc((size_t)from->n * sizeof *copy);
    if (!copy) return ctn_fail(CTN_ENOMEM, "no memory for the names of %d hosts", from->n);
    memcpy(copy, from->at, (size_t)from->n * sizeof *copy);
    j->p.on.at = copy;
    j->p.on.n = from->n;
    return CTN_OK;
}

static int place(job *j)
{
    const int64_t asked = args_int(j->a, "ranks");
    const bool named = args_given(j->a, "hosts") || args_given(j->a, "hostfile");
    if (args_given(j->a, "hosts") && args_given(j->a, "hostfile"))
        return refuse("give --hosts or --hostfile, not both");
    if (mpirun_find(&j->p.mpi, args_text(j->a, "mpirun")) < 0 || read_hosts(j) < 0)
        return report_failure("launch", DOING_SETUP);
    if (asked == 0 && !named && !j->mpirun_asks)
        return refuse("how many ranks? use -n N, or name the hosts with --hosts a,b");
    hosts_divide(&j->all, asked);
    const int64_t room = hosts_ranks(&j->all);
    if (named && asked > room)
        return refuse("%lld ranks do not fit on the hosts, which are for %lld", (long long)asked,
                      (long long)room);
    j->ranks = asked ? asked : room;
    j->p.ranks = named || asked ? j->ranks : 0;
    j->p.survive = args_flag(j->a, "survive") && mpirun_survives(&j->p.mpi);
    j->o.survives = j->p.survive;
    for (int i = 0; i < j->a->nextra; i++)
        if (strcmp(j->a->extra[i], "--oversubscribe") == 0) j->p.oversubscribe = true;
    if (use_hosts(j, &j->all) < 0) return report_failure("launch", DOING_SETUP);
    if (j->mpirun_asks) hosts_free(&j->p.on);
    return -1;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* A word as a shell reads it. */
static void print_quoted(const char *s)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "-_=+./,:@%";
    if (s[0] && s[strspn(s, plain)] == 0) {
        say(stdout, "%s", s);
        return;
    }
    say(stdout, "'");
    for (; *s; s += *s == '\'') {
        const int n = (int)strcspn(s, "'");
        say_lines(stdout, "%.*s%s", n, s, s[n] ? "'\\''" : "");
        s += n;
    }
    say(stdout, "'");
}

static int print_command(const job *j)
{
    words w = {0};
    if (job_words(&w, j) < 0) {
        words_free(&w);
        return report_failure("launch", DOING_SETUP);
    }
    if (args_flag(j->a, "json")) {
        json out = {0};
        json_open(&out, NULL, '{');
        json_text(&out, "mpi", j->p.mpi.name);
        json_bool(&out, "survive", j->p.survive);
        json_open(&out, "command", '[');
        for (int i = 0; i < w.n; i++) json_text(&out, NULL, w.word[i]);
        json_close(&out, ']');
        json_close(&out, '}');
    } else {
        for (int i = 0; i < w.n; i++) {
            if (i) say(stdout, " ");
            print_quoted(w.word[i]);
        }
        say(stdout, "\n");
    }
    words_free(&w);
    return EXIT_DONE;
}

static void print_end(const job *j, job_end end)
{
    static const char *const names[] = {[JOB_DONE] = "done",
                                        [JOB_STOPPED] = "stopped",
                                        [JOB_FAILED] = "failed",
                                        [JOB_LOST] = "lost"};
    const double seconds = now_s() - j->began;
    tell("%s after %.1f s and %lld restart%s, exit code %d", names[end], seconds,
         (long long)j->restarts, j->restarts == 1 ? "" : "s", j->o.code);
    if (!args_flag(j->a, "json")) return;
    json out = {0};
    json_open(&out, NULL, '{');
    json_text(&out, "end", names[end]);
    json_int(&out, "code", j->o.code);
    json_int(&out, "restarts", j->restarts);
    json_real(&out, "seconds", seconds);
    json_int(&out, "ranks", j->p.ranks ? j->p.ranks : j->ranks);
    json_text(&out, "mpi", j->p.mpi.name);
    json_text(&out, "cause", end == JOB_FAILED || end == JOB_LOST ? j->o.cause : NULL);
    json_close(&out, '}');
}

/* ---- the job --------------------------------------------------------------------------------- */

/* The hosts for the next start. A host that did not answer before gets another chance. */
static ctn_status choose_hosts(job *j, char *lost, size_t n)
{
    lost[0] = 0;
    if (j->all.n < 2) return CTN_OK;
    CTN_TRY(use_hosts(j, &j->all));
    CTN_TRY(process_probe(&j->p.on, &j->p.mpi, lost, n));
    if (j->p.on.n == 0)
        return ctn_fail(CTN_EIO,
                        "none of the %d hosts answers: check the network, or start again "
                        "later",
                        j->all.n);
    const int64_t room = hosts_ranks(&j->p.on);
    j->p.ranks = j->ranks < room ? j->ranks : room;
    j->p.local = !hosts_several(&j->p.on);
    if (j->mpirun_asks && !lost[0]) hosts_free(&j->p.on);
    return CTN_OK;
}

/* After a loss: whether the job is started again. Says why, and waits. */
static ctn_status try_again(job *j, double ran, job_end *end)
{
    char lost[400], without[460] = "";
    const int64_t most = args_int(j->a, "restarts");
    if (j->restarts >= most) {
        if (most == 0) tell("%s (--restarts N starts the job again)", j->o.cause);
        else tell("%s; all %lld restarts are used up", j->o.cause, (long long)most);
        return CTN_OK;
    }
    CTN_TRY(choose_hosts(j, lost, sizeof lost));
    if (lost[0]) snprintf(without, sizeof without, " without %s, which does not answer", lost);
    if (ran > LONG_RUN_S) j->pause = FIRST_PAUSE_S;
    j->restarts++;
    tell("%s; restart %lld of %lld in %.0f s, on %lld rank%s%s", j->o.cause, (long long)j->restarts,
         (long long)most, j->pause, (long long)(j->p.ranks ? j->p.ranks : j->ranks),
         j->ranks == 1 ? "" : "s", without);
    const int asked = process_pause(j->pause);
    j->pause = 2 * j->pause < LONGEST_PAUSE_S ? 2 * j->pause : LONGEST_PAUSE_S;
    if (asked) {
        *end = JOB_STOPPED;
        outcome_stop(&j->o, asked);
    }
    return CTN_OK;
}

/* One start, until mpirun has ended and nothing of it is left on this machine. */
static ctn_status run_once(job *j, job_end *end)
{
    child c = {.ended = true};
    words w = {0};
    outcome_begin(&j->o, j->p.local);
    ctn_status st = job_words(&w, j);
    if (st == CTN_OK)
        st = process_start(&c, w.word, args_flag(j->a, "json") ? OUTPUT_STDERR : OUTPUT_SAME);
    verdict_hide();
    words_free(&w);
    if (st < 0) verdict_close(&j->o.said);
    CTN_TRY(st);
    const int asked = process_wait(&c, args_real(j->a, "stop-seconds"), &j->o);
    const int left = process_sweep();
    *end = outcome_of(&j->o, &c, asked, j->restarts == 0);
    if (left > 0)
        return ctn_fail(CTN_EENGINE, "%d processes of the job cannot be killed: see ps", left);
    return CTN_OK;
}

static ctn_status run_job(job *j, job_end *end)
{
    for (;;) {
        const double since = now_s();
        const int64_t before = j->restarts;
        CTN_TRY(run_once(j, end));
        if (*end != JOB_LOST) return CTN_OK;
        CTN_TRY(try_again(j, now_s() - since, end));
        if (*end != JOB_LOST || j->restarts == before) return CTN_OK;
    }
}

static int start_job(job *j)
{
    job_end end = JOB_FAILED;
    if (j->training)
        tell("starting under %s; to stop and save: Ctrl-C or kill %ld", j->p.mpi.name,
             (long)getpid());
    ctn_status st = process_begin();
    if (st == CTN_OK) st = run_job(j, &end);
    if (st < 0) return report_failure("launch", DOING_SETUP);
    if (end == JOB_FAILED)
        tell("%s; not started again, because the error would come back", j->o.cause);
    print_end(j, end);
    return j->o.code;
}

static int run(args *a)
{
    job j = {.a = a, .began = now_s(), .pause = FIRST_PAUSE_S};
    int code = read_command(&j);
    if (code < 0) code = place(&j);
    if (code < 0 && child_program(j.program, sizeof j.program) < 0)
        code = report_failure("launch", DOING_SETUP);
    if (code < 0 && args_flag(a, "survive") && !j.p.survive)
        tell("ranks cannot survive a loss under %s: use --restarts N, which starts the job again",
             j.p.mpi.name);
    if (code < 0) code = args_flag(a, "dry-run") ? print_command(&j) : start_job(&j);
    hosts_free(&j.all);
    hosts_free(&j.p.on);
    args_free(&j.own);
    return code;
}

static const option options[] = {
    {"ranks", "N", "0", "number of ranks, also as -n N; 0: as many as fit on the hosts",
     GROUP_NONE},
    {"hosts", "H1,H2", "",
     "hosts to run on, with their numbers of ranks if these are not equal: a:2,b:1 (default: those "
     "of the Slurm job, else this machine)",
     GROUP_NONE},
    {"hostfile", "FILE", "", "file with one host per line, instead of --hosts", GROUP_NONE},
    {"restarts", "N", "0",
     "how often the job is started again after the loss of a rank or a host; a training resumes",
     GROUP_NONE},
    {"survive", NULL, NULL,
     "start the ranks in a way that the others may go on when one is lost (Open MPI 5)",
     GROUP_NONE},
    {"stop-seconds", "X", "60",
     "time that the ranks have to save after SIGTERM or Ctrl-C, before they are killed; SIGUSR1 "
     "sets no limit",
     GROUP_NONE},
    {"mpirun", "PATH", "", "launcher of the MPI (default: mpirun or mpiexec in PATH)", GROUP_NONE},
    {"dry-run", NULL, NULL, "only print the command that would be started", GROUP_NONE},
    {"json", NULL, NULL,
     "print one JSON object at the end; the output of the ranks goes to standard error",
     GROUP_NONE},
    {0},
};

const command cmd_launch = {
    .name = "launch",
    .operands = "",
    .summary = "Start a command on several ranks, and again after the loss of a rank or a host.",
    .options = options,
    .examples =
        "  catena launch -n 4 -- train resnet50 --data shards --out result\n"
        "  catena launch -n 8 --hosts a,b,c,d --restarts 5 -- train resnet50 --data shards\n"
        "  catena launch --hostfile hosts --restarts 5 -- train --resume --out result\n"
        "  catena launch -n 4 --dry-run -- selftest      what it would run\n",
    .run = run,
    .dash_n = "ranks",
    .after = "command of catena and its options",
    .ranks = RANKS_ONE,
};
