/* SPDX-License-Identifier: Apache-2.0
 *
 * What the end of a job means: complete, stopped on request, failed for a reason that will not go
 * away, or lost, so that starting it again makes sense. It is complete only if rank 0 has said so
 * (verdict.h). The result folder of a training knows more, unless it is on the disk of another
 * host: the file `unfinished` exists while there is work left, job.txt says whether the training is
 * complete, and failures.txt has the cause.
 */
#include <string.h>
#include <unistd.h>

#include "start/start.h"
#include "training.h"

#define CONTINUE_S 20.0 /* for the ranks that are left to continue after a loss */
#define CANNOT_S 2.0    /* after rank 0 has said that they cannot; some may try once more */

static FILE *failures_open(const outcome *o)
{
    char path[4096];
    return o->out ? open_regular(join(path, sizeof path, o->out, FAILURES)) : NULL;
}

static long failures_size(const outcome *o)
{
    FILE *f = failures_open(o);
    if (!f) return 0;
    const long n = fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;
    fclose(f);
    return n;
}

static void read_job(const outcome *o, char *text, size_t n)
{
    char path[4096];
    FILE *f = o->out ? open_regular(join(path, sizeof path, o->out, JOB_FILE)) : NULL;
    text[f ? fread(text, 1, n - 1, f) : 0] = 0;
    if (f) fclose(f);
}

/* Whether this start has written this into job.txt. */
static bool job_says(const outcome *o, const char *what)
{
    char text[sizeof o->job];
    read_job(o, text, sizeof text);
    return strncmp(text, what, strlen(what)) == 0 && strcmp(text, o->job) != 0;
}

void outcome_begin(outcome *o, bool local)
{
    verdict_open(&o->said, local);
    o->failures = o->seen = failures_size(o);
    o->cause[0] = 0;
    read_job(o, o->job, sizeof o->job);
}

/* How long to wait for ranks that survive, according to the last line of failures.txt (survive.c,
 * launch.c); negative: they continue. */
static double wait_for_survivors(const outcome *o)
{
    char line[1200];
    double wait = CONTINUE_S;
    FILE *f = failures_open(o);
    while (f && fgets(line, sizeof line, f)) {
        wait = strstr(line, "continuing without") ? -1 : CONTINUE_S;
        if (strstr(line, "cannot continue without")) wait = CANNOT_S;
    }
    if (f) fclose(f);
    return wait;
}

/* If ranks survive, one that fails may be cut off from those that continue. */
static bool has_ended(outcome *o)
{
    if (!verdict_read(&o->said)) return job_says(o, JOB_COMPLETE);
    return !o->survives || o->said.code == EXIT_DONE || o->said.code == EXIT_REQUEUE;
}

bool outcome_over(outcome *o)
{
    if (has_ended(o)) return true;
    const long size = failures_size(o);
    if (size <= o->failures) return false;
    if (!o->survives) return true;
    if (size != o->seen) o->seen_at = now_s();
    o->seen = size;
    const double wait = wait_for_survivors(o);
    return wait >= 0 && now_s() > o->seen_at + wait;
}

/* The last line that this job has added, without the time and the rank that wrote it. Returns
 * whether there is one. */
static bool read_cause(outcome *o)
{
    char line[1200];
    FILE *f = failures_open(o);
    if (!f) return false;
    bool found = false;
    (void)fseek(f, o->failures, SEEK_SET); /* on a failure, all lines are looked at */
    while (fgets(line, sizeof line, f)) {
        const char *text = strstr(line, "error: ");
        if (!text) continue;
        text += strlen("error: ");
        snprintf(o->cause, sizeof o->cause, "%.*s", (int)strcspn(text, "\n"), text);
        found = true;
    }
    fclose(f);
    return found;
}

/* The watchdog's words for a rank or a host that is gone (watchdog/hub.c). */
static bool is_loss(const char *cause)
{
    return strstr(cause, " died") || strstr(cause, " cannot be reached");
}

/* Whether another start would meet the same error. Exit code 3 may come from what an earlier start
 * has left behind, such as a result folder that is still in use. */
static bool repeats(int code, bool first)
{
    switch (code) {
    case EXIT_USAGE:
    case EXIT_DATA:
    case EXIT_MEMORY:
    case EXIT_NONFINITE: return true;
    case EXIT_ENVIRONMENT: return first;
    default: return false;
    }
}

static bool work_left(const outcome *o)
{
    char path[4096];
    return o->out && access(join(path, sizeof path, o->out, UNFINISHED), F_OK) == 0;
}

void outcome_stop(outcome *o, int asked)
{
    o->code = work_left(o) ? EXIT_REQUEUE : 128 + asked;
}

/* Whether rank 0 has said how the job ended; its exit code then replaces that of mpirun, which may
 * be that of a lost rank, or 0 after a failure, or mpirun had to be killed. */
static bool read_verdict(outcome *o)
{
    if (verdict_read(&o->said)) o->code = o->said.code;
    else if (job_says(o, JOB_COMPLETE)) o->code = EXIT_DONE; /* it could not reach this host */
    else return false;
    return true;
}

static void guess_cause(outcome *o, bool said)
{
    if (!said && o->code == EXIT_DONE)
        snprintf(o->cause, sizeof o->cause,
                 "the job ended, but its rank 0 has not reported a result");
    else if (o->code == EXIT_OTHER_RANK) snprintf(o->cause, sizeof o->cause, "a rank is lost");
    else snprintf(o->cause, sizeof o->cause, "the job ended with exit code %d", o->code);
}

job_end outcome_of(outcome *o, const child *c, int asked, bool first)
{
    o->code = process_code(c);
    const bool left = work_left(o), said = read_verdict(o), known = read_cause(o);
    verdict_close(&o->said);
    if (!known) guess_cause(o, said);
    if (said && o->code == EXIT_DONE) return JOB_DONE;
    if (asked && (left || !said)) outcome_stop(o, asked);
    if (asked || o->code == EXIT_REQUEUE) return JOB_STOPPED;
    if (repeats(o->code, first) && !(known && is_loss(o->cause))) return JOB_FAILED;
    if (o->code == EXIT_DONE) o->code = left ? EXIT_REQUEUE : EXIT_OTHER_RANK;
    return JOB_LOST;
}
