/* SPDX-License-Identifier: Apache-2.0
 *
 * One job at a time in a result folder. Rank 0 takes the folder before it changes anything there
 * and gives it back at the end; the folder's file job.txt says which job has it. Two things show
 * whether that job lives:
 *
 *   lock   a lock of the kernel on job.txt (fcntl, by open file description). It goes with its
 *          process, however that ends, so a killed job leaves no lock. NFS, GPFS, CephFS and Lustre
 *          (mounted with flock) pass such locks on to all hosts; flock() is less widely passed on.
 *   beat   job.txt is rewritten every BEAT_S seconds. Some file systems have no locks (Lustre with
 *          noflock), and others keep them to the host without a word (Lustre with localflock, NFS
 *          with local_lock, BeeGFS by default).
 *
 * On one host the lock alone decides, at once. Between hosts a free lock counts only after job.txt
 * has not changed for SILENT_S seconds. A lock that is held while job.txt does not change is waited
 * for LEASE_S seconds: a file server keeps the locks of a host that crashed for a while (NFS for
 * 90 s), and a requeued job must start then. Only changes are looked at, never clocks, which differ
 * between hosts.
 *
 * Two jobs that start at the same moment where there are no locks, or a job that was suspended so
 * long that another one took its folder: whoever finds another name in job.txt at a beat ends
 * itself. So at most one job goes on.
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
#include "watchdog.h"

enum { BEAT_S = 5, SILENT_S = 30, LEASE_S = 150, TEXT = 1024 };

static struct {
    char out[4096], path[4096]; /* the folder, and job.txt in it */
    char name[TEXT - 64];       /* this job, as job.txt has it */
    size_t made; /* length of the part of `out` that was made first; 0: all of it was there */
    int fd;
    bool taken;
    unsigned beat;
    pthread_t thread;
    int wake[2]; /* a pipe that is closed to end the thread */
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

/* Which kernel this is: processes of one kernel see each other's locks on any file system. */
static void read_boot(char *buf, size_t n)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (!f || !fgets(buf, (int)n, f)) gethostname(buf, n);
    buf[strcspn(buf, "\n")] = 0;
    if (f) fclose(f);
}

static void name_job(const char *host)
{
    char id[128], boot[64] = "", since[32] = "";
    time_t t = time(NULL);
    struct tm tm;
    read_boot(boot, sizeof boot);
    if (gmtime_r(&t, &tm)) strftime(since, sizeof since, "%Y-%m-%dT%H:%M:%SZ", &tm);
    snprintf(mine.name, sizeof mine.name, "host %s\npid %ld\njob %s\nsince %s\nboot %s\n", host,
             (long)getpid(), job_id(id, sizeof id), since, boot);
}

/* The value of a line of job.txt, "?" where there is none. */
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

/* By the path each time: that is when a client of NFS asks its server for what others wrote. False:
 * it cannot be read. */
static bool read_job(char text[TEXT])
{
    memset(text, 0, TEXT);
    int fd = open(mine.path, O_RDONLY | O_CLOEXEC);
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

/* Nothing may be written there any more, so there is nothing to end in order. */
static void end_job(const char *other)
{
    char name[512], line[1024];
    snprintf(line, sizeof line,
             "another job has taken %.256s (%s); this one ends before it writes there again",
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
        (void)write_job("running"); /* a full disk is told by whoever writes results */
    }
    return unused;
}

static int start_beat(void)
{
    sigset_t all, before;
    if (pipe2(mine.wake, O_CLOEXEC) != 0) return errno;
    sigfillset(&all); /* signals are the main thread's */
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
    fprintf(stderr,
            "catena train: another job works in %s (%s): wait until it has ended, end it, or give "
            "this job another folder by --out%s\n",
            mine.out, who(text, name, sizeof name), last);
    return EXIT_ENVIRONMENT;
}

/* Until the folder is free, or is known not to be. One look a second. */
static int await_folder(void)
{
    char text[TEXT], was[TEXT] = "", boot[64], theirs[64], name[512];
    read_boot(boot, sizeof boot);
    for (int waited = 0;; waited++) {
        const lock_state lock = try_lock();
        if (lock == LOCK_NONE && waited == 0)
            log_line("warning: %s has no file locks (%s): two jobs that start here at the same "
                     "moment are noticed only %d s later",
                     mine.out, strerror(errno), BEAT_S);
        read_job(text);
        const bool left = strncmp(text, "running", 7) == 0; /* by its name somebody is here */
        const bool here = left && strcmp(value(text, "boot", theirs, sizeof theirs), boot) == 0;
        if (lock == LOCK_MINE && here) return -1;
        if (lock != LOCK_HELD && !left) return -1;
        if (lock == LOCK_HELD && here) return refuse(text, false);
        if (waited > 0 && strcmp(text, was) != 0) return refuse(text, false);
        if (waited == 0 && left)
            log_line(
                "%s belongs to a job that has not given it back (%s): waiting up to %d s for a "
                "sign of life",
                mine.out, who(text, name, sizeof name), lock == LOCK_HELD ? LEASE_S : SILENT_S);
        if (lock == LOCK_HELD && waited >= LEASE_S) return refuse(text, true);
        if (lock != LOCK_HELD && waited >= SILENT_S) return -1;
        memcpy(was, text, sizeof was);
        nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
        if (!stop_asked()) continue;
        fprintf(stderr, "catena train: stopped by a signal while it waited for %s\n", mine.out);
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

/* Missing folders are made, and it is remembered which, see remove_folders. */
static void make_folders(void)
{
    char part[sizeof mine.out];
    for (size_t n = 1; n <= strlen(mine.out); n++) {
        if (mine.out[n] != '/' && mine.out[n] != 0) continue;
        snprintf(part, sizeof part, "%.*s", (int)n, mine.out);
        if (mkdir(part, 0777) == 0 && mine.made == 0) mine.made = n;
    }
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
    fprintf(stderr, "catena train: cannot %s %s: %s\n", what, mine.path, strerror(errno));
    return EXIT_ENVIRONMENT;
}

/* Is the file still the one that has the name? A job that found nothing to do removes it. */
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
        fprintf(stderr, "catena train: the path of --out is too long\n");
        return EXIT_USAGE;
    }
    name_job(l->host);
    make_folders();
    do {
        if (mine.fd >= 0) close(mine.fd);
        mine.fd = open(mine.path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (mine.fd < 0) code = cannot("write");
        if (code < 0) code = await_folder();
    } while (code < 0 && replaced());
    if (code < 0 && !write_job("running")) code = cannot("write");
    if (code < 0 && (errno = start_beat()) != 0) code = cannot("start the thread that rewrites");
    mine.taken = code < 0;
    if (!mine.taken && mine.fd >= 0) close(mine.fd);
    return code;
}

void folder_release(void)
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
        (void)write_job("ended"); /* if it cannot, the next job waits for a sign of life */
    }
    close(mine.fd);
}
