/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts, finds and kills the processes of a training. The ranks of a job are found in /proc,
 * because mpirun may start them through helpers that do not stay their parents.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* vasprintf */
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"

enum {
    CANNOT_START = 127, /* exit code, as that of a shell */
    LINE = 1 << 16      /* bytes of a command line that are read */
};

void words_add(words *w, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    char **more = realloc(w->word, (size_t)(w->n + 2) * sizeof *more);
    if (more) w->word = more;
    va_start(ap, fmt);
    if (!more || vasprintf(&text, fmt, ap) < 0) w->bad = true;
    else w->word[w->n++] = text;
    va_end(ap);
    if (more) w->word[w->n] = NULL;
}

void words_free(words *w)
{
    for (int i = 0; i < w->n; i++) free(w->word[i]);
    free(w->word);
    *w = (words){0};
}

ctn_status child_program(char *path, size_t n)
{
    const ssize_t k = readlink("/proc/self/exe", path, n - 1);
    if (k < 0) return ctn_fail(CTN_EIO, "cannot read /proc/self/exe: %s", strerror(errno));
    path[k] = 0;
    return CTN_OK;
}

/* In the new process. */
static void become(char *const argv[], int log)
{
    const int in = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (in >= 0) dup2(in, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    execvp(argv[0], argv);
    dprintf(STDERR_FILENO, "cannot start %s: %s\n", argv[0], strerror(errno));
    _exit(CANNOT_START);
}

ctn_status child_start(child *c, char *const argv[], const char *log)
{
    *c = (child){.ended = true};
    const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) return ctn_fail(CTN_EIO, "cannot write %s: %s", log, strerror(errno));
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0) become(argv, fd);
    close(fd);
    if (c->pid < 0) return ctn_fail(CTN_EIO, "cannot start a process: %s", strerror(errno));
    c->ended = false;
    return CTN_OK;
}

bool child_ended(child *c)
{
    if (!c->ended) c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
    return c->ended;
}

void pause_s(double seconds)
{
    const struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

bool child_wait(child *c, double seconds)
{
    const double end = now_s() + seconds;
    while (!child_ended(c) && (seconds < 0 || now_s() < end)) pause_s(0.001);
    return c->ended;
}

const char *child_said(const char *log, char *text, size_t room)
{
    FILE *f = fopen(log, "r");
    const size_t n = f ? fread(text, 1, room - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    return text;
}

void child_kill(child *c)
{
    if (!child_ended(c)) kill(c->pid, SIGKILL);
}

/* ---- ranks ----------------------------------------------------------------------------------- */

pid_t child_parent(pid_t p)
{
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)p);
    FILE *f = fopen(path, "r");
    if (!f) return 0;
    const bool read = fgets(text, sizeof text, f) != NULL;
    const char *end = strrchr(text, ')'); /* of the name, which may contain blanks */
    if (!read || !end || sscanf(end, ") %*c %d", &parent) != 1) parent = 0;
    fclose(f);
    return parent;
}

static bool is_below(pid_t p, const void *ancestor)
{
    const pid_t top = *(const pid_t *)ancestor;
    while (p > 1 && p != top) p = child_parent(p);
    return p == top;
}

typedef struct {
    const char *first, *last; /* words of a command line */
} ends;

static bool has_words(pid_t p, const void *wanted)
{
    const ends *w = wanted;
    char path[64], line[LINE];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)p);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    const size_t n = fread(line, 1, sizeof line - 1, f);
    fclose(f);
    line[n] = 0;
    const size_t last = strlen(w->last) + 1; /* words end with a zero byte */
    return strcmp(line, w->first) == 0 && n > last && strcmp(line + n - last, w->last) == 0;
}

static int find(bool (*is)(pid_t p, const void *user), const void *user, int most, pid_t *found)
{
    int n = 0;
    DIR *d = opendir("/proc");
    for (const struct dirent *e; d && n < most && (e = readdir(d)) != NULL;) {
        const pid_t p = (pid_t)strtol(e->d_name, NULL, 10);
        if (p > 0 && is(p, user)) found[n++] = p;
    }
    if (d) closedir(d);
    return n;
}

int child_below(const child *c, int most, pid_t *found)
{
    return find(is_below, &c->pid, most, found);
}

int child_with(const char *first, const char *last, int most, pid_t *found)
{
    return find(has_words, &(ends){first, last}, most, found);
}
