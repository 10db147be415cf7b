/* SPDX-License-Identifier: Apache-2.0
 *
 * Allows only one job at a time in a result folder. Rank 0 takes the folder before it changes
 * anything there and releases it at the end. The file job.txt names the job that has the folder.
 * Two signs show whether that job is alive:
 *
 *   lock   an fcntl lock on job.txt (by open file description). The kernel drops it when the
 *          process ends, so a killed job leaves no lock. NFS, GPFS, CephFS and Lustre (mounted
 *          with flock) enforce such locks across hosts; fewer file systems do so for flock().
 *   beat   job.txt is rewritten every BEAT_S seconds, because some file systems have no locks
 *          (Lustre with noflock) and others silently enforce them on one host only (Lustre with
 *          localflock, NFS with local_lock, BeeGFS by default).
 *
 * On one host the lock decides immediately. Between hosts, a free lock counts only if job.txt
 * has not changed for SILENT_S seconds. If the lock is held but job.txt does not change, the job
 * waits up to LEASE_S seconds: a file server keeps the locks of a crashed host for a while (NFS:
 * 90 s), and a requeued job must be able to start then. Only changes of job.txt count, never its
 * times, because clocks differ between hosts.
 *
 * Without locks two jobs can start at the same moment, and a job can be suspended so long that
 * another one takes its folder. Therefore a job that finds another name in job.txt at its next
 * beat ends itself, and at most one job continues.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK, pipe2 */
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "training.h"
#include "watchdog/watchdog.h"

enum { BEAT_S = 5, SILENT_S = 30, LEASE_S = 150, TEXT = 1024 };

static struct {
    char out[4096], path[4096]; /* the folder, and job.txt in it */
    char name[TEXT - 64];       /* this job as described in job.txt */
    size_t made; /* length of the topmost folder in `out` that we made; 0: all existed */
    int fd;
    bool taken;
    unsigned beat;
    pthread_t thread;
    int wake[2]; /* a pipe; closing it ends the thread */
} mine = {.fd = -1};

/* ---- the file -------------------------------------------------------------------------------- */

static const char *job_id(char *buf, size_t n)
{
    static const struct {
        const char *variable, *name;
    } queues[] = {{"SLURM_JOB_ID", "Slurm job"}, {"PBS_JOBID", "PBS job"},
                  {"LSB_JOBID", "LSF job"},      {"PJM_JOBID", "PJM job"},
                  {"FLUX_JOB_ID", "Flux job"},   {"JOB_ID", "Grid Engine job"}};
    snprintf(buf, n, "no batch job");
    for (size_t i = sizeof queues / sizeof *queues; i-- > 0;) {
        const char *id = getenv(queues[i].variable);
        if (id && id[0]) snprintf(buf, n, "%s %.64s", queues[i].name, id);
    }
    return buf;
}

/* The boot id of this kernel: processes of one kernel see each other's locks on any file system. */
static void read_boot(char *buf, size_t n)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!f || !fgets(buf, (int)n, f)) gethostname(buf, n);
    buf[strcspn(buf, "\n")] = 0;
    if (f) fclose(f);
}

static void name_job(const char *host)
{
    char id[128], boot[64] = "", since[UTC];
    read_boot(boot, sizeof boot);
    snprintf(mine.name, sizeof mine.name, "host %s\npid %ld\njob %s\nsince %s\nboot %s\n", host,
             (long)getpid(), job_id(id, sizeof id), utc_now(since), boot);
}

/* The value of a line in job.txt; "?" if there is none. */
static const char *value(const char *text, const char *key, char *buf, size_t n)
{
    const size_t k = strlen(key);
    snprintf(buf, n, "?");
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, k) == 0 && line[k] == ' ')
            snprintf(buf, n, "%.*s", (int)strcspn(line + k + 1, "\n"), line + k + 1);
    }
    return buf;
}

/* In a folder from somebody else, the name may be a link to any file of the user, or a pipe. */
static int open_job(void)
{
    struct stat info;
    const int fd = open(mine.path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0 || (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink < 2)) return fd;
    close(fd);
    errno = EMLINK;
    return -1;
}

/* Opens the file anew each time, because that is when an NFS client asks its server for changes.
 * False: it cannot be read. */
static bool read_job(char text[TEXT])
{
    memset(text, 0, TEXT);
    int fd = open(mine.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t n = fd >= 0 ? read(fd, text, TEXT - 1) : -1;
    if (fd >= 0) close(fd);
    return n >= 0;
}

static bool write_job(const char *what)
{
    char text[TEXT];
    const int n = snprintf(text, sizeof text, "%s\n%sbeat %u\n", what, mine.name, mine.beat++);
    if (n < 0 || n >= TEXT || pwrite(mine.fd, text, (size_t)n, 0) != n) return false;
    return ftruncate(mine.fd, n) == 0 && fdatasync(mine.fd) == 0;
}

/* ---- the beat -------------------------------------------------------------------------------- */

static const char *who(const char *text, char *buf, size_t n)
{
    char host[128], pid[32], job[128], since[32];
    snprintf(buf, n, "on %s, process %s, %s, since %s", value(text, "host", host, sizeof host),
             value(text, "pid", pid, sizeof pid), value(text, "job", job, sizeof job),
             value(text, "since", since, sizeof since));
    return buf;
}

/* End at once: nothing may be written to the folder any more, so there is nothing to clean up. */
static void end_job(const char *other)
{
    char name[512], line[1024];
    snprintf(line, sizeof line,
             "another job has taken over %.256s (%s); this job stops before it writes there again",
             mine.out, who(other, name, sizeof name));
    if (!watchdog_runs()) log_line("error: %s", line);
    else watchdog_failed(CTN_ESTATE, EXIT_ENVIRONMENT, line);
    _exit(watchdog_leave(EXIT_ENVIRONMENT));
}

static void *beat(void *unused)
{
    struct pollfd end = {.fd = mine.wake[0], .events = POLLIN};
    char text[TEXT];
    while (poll(&end, 1, 1000 * BEAT_S) == 0) {
        if (read_job(text) && text[0] && !strstr(text, mine.name)) end_job(text);
        (void)write_job(JOB_RUNNING); /* writing results will report a full disk */
    }
    return unused;
}

static int start_beat(void)
{
    sigset_t all, before;
    if (pipe2(mine.wake, O_CLOEXEC) != 0) return errno;
    sigfillset(&all); /* the main thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&mine.thread, NULL, beat, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e;
}

/* ---- taking it ------------------------------------------------------------------------------- */

typedef enum { LOCK_MINE, LOCK_HELD, LOCK_NONE } lock_state;

static lock_state try_lock(void)
{
    struct flock k = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(mine.fd, F_OFD_SETLK, &k) == 0) return LOCK_MINE;
    return errno == EAGAIN || errno == EACCES ? LOCK_HELD : LOCK_NONE;
}

static int refuse(const char *text, bool silent)
{
    char name[512], last[4352] = "";
    if (silent)
        snprintf(
            last, sizeof last,
            ". It holds its lock but has shown no sign of life for %d s: if you are sure that it "
            "is gone, remove %s",
            LEASE_S, mine.path);
    say(stderr,
        "catena train: another job is running in %s (%s): wait until it ends, stop it, or choose "
        "another folder with --out%s\n",
        mine.out, who(text, name, sizeof name), last);
    return EXIT_ENVIRONMENT;
}

/* Wait until the folder is free or is known to be in use; checks once per second. */
static int await_folder(void)
{
    char text[TEXT], was[TEXT] = "", boot[64], theirs[64], name[512];
    read_boot(boot, sizeof boot);
    for (int waited = 0;; waited++) {
        const lock_state lock = try_lock();
        if (lock == LOCK_NONE && waited == 0)
            log_line("warning: %s does not support file locks (%s): if two jobs start here at the "
                     "same moment, this is noticed only %d s later",
                     mine.out, strerror(errno), BEAT_S);
        read_job(text);
        /* a job did not release the folder */
        const bool left = strncmp(text, JOB_RUNNING, strlen(JOB_RUNNING)) == 0;
        const bool here = left && strcmp(value(text, "boot", theirs, sizeof theirs), boot) == 0;
        if (lock == LOCK_MINE && here) return -1;
        if (lock != LOCK_HELD && !left) return -1;
        if (lock == LOCK_HELD && here) return refuse(text, false);
        if (waited > 0 && strcmp(text, was) != 0) return refuse(text, false);
        if (waited == 0 && left)
            log_line(
                "%s belongs to a job that has not released it (%s): waiting up to %d s for a sign "
                "of life",
                mine.out, who(text, name, sizeof name), lock == LOCK_HELD ? LEASE_S : SILENT_S);
        if (lock == LOCK_HELD && waited >= LEASE_S) return refuse(text, true);
        if (lock != LOCK_HELD && waited >= SILENT_S) return -1;
        memcpy(was, text, sizeof was);
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        if (!stop_asked()) continue;
        say(stderr, "catena train: stopped by a signal while waiting for %s\n", mine.out);
        return EXIT_ENVIRONMENT;
    }
}

bool folder_empty(const char *path)
{
    bool found = false;
    DIR *d = opendir(path);
    if (!d) return true;
    for (struct dirent *e; !found && (e = readdir(d));)
        found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
                strcmp(e->d_name, JOB_FILE) != 0;
    closedir(d);
    return !found;
}

/* Make missing folders, and remember which for remove_folders. Returns the error of the last. */
static int make_folders(void)
{
    char part[sizeof mine.out];
    int error = 0;
    for (size_t n = 1; n <= strlen(mine.out); n++) {
        if (mine.out[n] != '/' && mine.out[n] != 0) continue;
        snprintf(part, sizeof part, "%.*s", (int)n, mine.out);
        error = mkdir(part, 0777) == 0 ? 0 : errno;
        if (error == 0 && mine.made == 0) mine.made = n;
    }
    return error;
}

static void remove_folders(void)
{
    for (size_t n = strlen(mine.out); mine.made > 0 && n >= mine.made; n--) {
        if (mine.out[n] != '/' && mine.out[n] != 0) continue;
        mine.out[n] = 0;
        if (rmdir(mine.out) != 0) return;
    }
}

static int cannot(const char *what)
{
    say(stderr, "catena train: cannot %s %s: %s\n", what, mine.path, strerror(errno));
    return EXIT_ENVIRONMENT;
}

/* Whether the path now names another file: a job that wrote no results removes its job.txt. */
static bool replaced(void)
{
    struct stat open_file, named;
    return fstat(mine.fd, &open_file) != 0 || stat(mine.path, &named) != 0 ||
           open_file.st_ino != named.st_ino || open_file.st_dev != named.st_dev;
}

int folder_take(const launch *l, const char *out)
{
    int code = -1;
    snprintf(mine.out, sizeof mine.out, "%s", out);
    if (!join(mine.path, sizeof mine.path, out, JOB_FILE)[0]) {
        say(stderr, "catena train: the path of --out is too long\n");
        return EXIT_USAGE;
    }
    name_job(l->host);
    const int error = make_folders();
    if (error != 0 && access(out, F_OK) != 0) {
        say(stderr, "catena train: cannot create the folder %s: %s\n", out, strerror(error));
        return EXIT_ENVIRONMENT;
    }
    do {
        if (mine.fd >= 0) close(mine.fd);
        mine.fd = open_job();
        if (mine.fd < 0) code = cannot("write");
        if (code < 0) code = await_folder();
    } while (code < 0 && replaced());
    if (code < 0 && !write_job(JOB_RUNNING)) code = cannot("write");
    if (code < 0 && (errno = start_beat()) != 0) code = cannot("start the thread that rewrites");
    mine.taken = code < 0;
    if (!mine.taken && mine.fd >= 0) close(mine.fd);
    return code;
}

int folder_inherit(const launch *l, const char *out)
{
    snprintf(mine.out, sizeof mine.out, "%s", out);
    join(mine.path, sizeof mine.path, out, JOB_FILE);
    name_job(l->host);
    mine.fd = open_job();
    if (mine.fd < 0) return cannot("write");
    (void)try_lock(); /* its file server may keep the lock of a lost host for a while */
    if (!write_job(JOB_RUNNING)) return cannot("write");
    if ((errno = start_beat()) != 0) return cannot("start the thread that rewrites");
    mine.taken = true;
    return -1;
}

void folder_release(bool complete)
{
    if (!mine.taken) return;
    mine.taken = false;
    close(mine.wake[1]);
    pthread_join(mine.thread, NULL);
    close(mine.wake[0]);
    if (mine.made > 0 && folder_empty(mine.out)) {
        unlink(mine.path);
        remove_folders();
    } else {
        /* If this fails, the next job waits for a sign of life. */
        (void)write_job(complete ? JOB_COMPLETE : "ended");
    }
    close(mine.fd);
}
