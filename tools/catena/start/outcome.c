/* SPDX-License-Identifier: Apache-2.0
 *
 * What the end of a job means: complete, stopped on request, failed for a reason that will not go
 * away, or lost, so that starting it again makes sense. The result folder of a training knows more
 * than the exit code, which launchers may lose: the file `unfinished` exists while there is work
 * left, job.txt says whether the training is complete, and failures.txt has the cause. If the
 * folder is on the disk of another host, only the exit code is known.
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
    return o->out ? fopen(join(path, sizeof path, o->out, FAILURES), "r") : NULL;
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
    FILE *f = o->out ? fopen(join(path, sizeof path, o->out, JOB_FILE), "r") : NULL;
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

void outcome_begin(outcome *o)
{
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

bool outcome_over(outcome *o)
{
    if (job_says(o, JOB_COMPLETE)) return true;
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

job_end outcome_of(outcome *o, const child *c, int asked, bool first)
{
    const bool left = work_left(o), complete = job_says(o, JOB_COMPLETE);
    o->code = process_code(c);
    /* mpirun's exit code may be that of a lost rank, or mpirun had to be killed. */
    if (o->survives && complete) o->code = EXIT_DONE;
    const bool known = read_cause(o);
    if (!known && o->code == EXIT_DONE) /* the launcher has lost the exit code */
        snprintf(o->cause, sizeof o->cause, "the job ended before the training was complete");
    else if (!known)
        snprintf(o->cause, sizeof o->cause, "the job ended with exit code %d", o->code);
    if (o->code == EXIT_DONE && !left && !job_says(o, JOB_RUNNING)) return JOB_DONE;
    if (asked && left) o->code = EXIT_REQUEUE;
    if (asked || o->code == EXIT_REQUEUE) return JOB_STOPPED;
    if (repeats(o->code, first) && !(known && is_loss(o->cause))) return JOB_FAILED;
    if (o->code == EXIT_DONE) o->code = EXIT_REQUEUE;
    return JOB_LOST;
}
