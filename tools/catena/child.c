/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts, finds and kills the processes of a training. The ranks of a job are found in /proc,
 * because mpirun may start them through helpers, so that they are not its children.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "child.h"

enum { CANNOT_START = 127 }; /* exit code, as that of a shell */

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

static bool is_below(pid_t p, pid_t ancestor)
{
    while (p > 1 && p != ancestor) p = child_parent(p);
    return p == ancestor;
}

static bool runs(pid_t p, const char *program)
{
    char path[64], is[PATH_MAX];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)p);
    const ssize_t n = readlink(path, is, sizeof is - 1);
    if (n < 0) return false;
    is[n] = 0;
    return strcmp(is, program) == 0;
}

int child_ranks(const child *c, const char *program, int most, pid_t *rank)
{
    int n = 0;
    DIR *d = opendir("/proc");
    for (const struct dirent *e; d && n < most && (e = readdir(d)) != NULL;) {
        const pid_t p = (pid_t)strtol(e->d_name, NULL, 10);
        if (p > 0 && (!program || runs(p, program)) && is_below(p, c->pid)) rank[n++] = p;
    }
    if (d) closedir(d);
    return n;
}
