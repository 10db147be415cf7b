/* SPDX-License-Identifier: Apache-2.0
 *
 * The watchdog's interface to the rest of the command: what the main thread is doing, how an
 * error is reported once for the whole job, and how a process ends after another one failed.
 * join.c connects ranks to rank 0; net.c has the thread of the other ranks, hub.c that of rank
 * 0.
 *
 * Invariant: the root cause is set once per rank. After that the communicator is broken, and the
 * watchdog ends the process as soon as everybody who must know the cause has it. Files are
 * written atomically, so nothing is lost.
 */
#include "watchdog/watchdog.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "watchdog/net.h"

watchdog_state dog = {.lock = PTHREAD_MUTEX_INITIALIZER};

void watchdog_stall(double seconds)
{
    atomic_store(&dog.stall_ms, (int64_t)(1e3 * seconds));
}

void watchdog_at(activity what, int64_t step)
{
    atomic_store_explicit(&dog.activity, (int)what, memory_order_relaxed);
    if (step >= 0) {
        const double now = now_s(), took = dog.stepped > 0 ? now - dog.stepped : 0;
        dog.stepped = now;
        if (took > atomic_load(&dog.slowest)) atomic_store(&dog.slowest, took);
        atomic_store_explicit(&dog.step, step, memory_order_relaxed);
    }
    atomic_fetch_add_explicit(&dog.moves, 1, memory_order_relaxed);
}

void watchdog_also(ctn_comm *c)
{
    pthread_mutex_lock(&dog.lock);
    dog.also = c;
    if (c && atomic_load(&dog.broken)) ctn_comm_fail(c, dog.cause);
    pthread_mutex_unlock(&dog.lock);
}

bool watchdog_broken(void)
{
    return atomic_load(&dog.broken);
}

int watchdog_code(void)
{
    if (atomic_load(&dog.failing)) return atomic_load(&dog.code);
    return watchdog_broken() ? EXIT_OTHER_RANK : 0;
}

int watchdog_verdict(int code)
{
    const int first = atomic_load(&dog.first_code);
    return first ? first : code;
}

void watchdog_agree(void)
{
    atomic_store(&dog.agreed, true);
}

bool watchdog_agreed(void)
{
    return atomic_load(&dog.agreed);
}

bool watchdog_runs(void)
{
    return dog.l != NULL;
}

bool watchdog_line(const char *text)
{
    if (!dog.l) return false;
    if (dog.l->rank == 0) return !watchdog_new(text);
    message m = {.kind = MSG_LINE};
    snprintf(m.text, sizeof m.text, "%s", text);
    watchdog_post(&m);
    return true;
}

/* ---- the root cause -------------------------------------------------------------------------- */

/* Without rank 0, only one rank prints the cause, so that a job does not print it a thousand
 * times: the lowest rank if rank 0 died, the lowest rank on another host if rank 0's host cannot
 * be reached. */
static bool speaks(bool lost, bool unreachable)
{
    if (dog.l->rank == 0) return true;
    if (!lost) return false;
    return dog.l->rank == (unreachable ? dog.l->first_elsewhere : 1);
}

void watchdog_file(const char *path)
{
    pthread_mutex_lock(&dog.lock);
    snprintf(dog.file, sizeof dog.file, "%s", path);
    pthread_mutex_unlock(&dog.lock);
}

void watchdog_record(const char *text)
{
    log_line_of(stderr, dog.l->rank, dog.l->host, text);
    const int to = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
    const int fd = dog.file[0] ? open(dog.file, to, 0666) : -1;
    FILE *f = fd >= 0 ? fdopen(fd, "a") : NULL;
    if (!f) return;
    log_line_of(f, dog.l->rank, dog.l->host, text);
    fclose(f);
}

static void speak(const char *text)
{
    char line[TEXT + 16];
    snprintf(line, sizeof line, "error: %s", text);
    watchdog_record(line);
}

bool watchdog_cause(const char *text, bool lost, bool unreachable)
{
    pthread_mutex_lock(&dog.lock);
    bool first = !atomic_load(&dog.broken);
    if (first && dog.also) ctn_comm_fail(dog.also, text);
    if (first) {
        snprintf(dog.cause, sizeof dog.cause, "%s", text);
        dog.broken_at = now_s();
        /* Before setting `broken`: the main thread ends the process as soon as it sees that. */
        if (speaks(lost, unreachable)) speak(text);
        atomic_store(&dog.broken, true);
    }
    pthread_mutex_unlock(&dog.lock);
    if (first) ctn_comm_fail(dog.l->comm, text);
    return first;
}

bool watchdog_waits(void)
{
    if (!atomic_load(&dog.lost) || !dog.l->survives) return false;
    return now_s() < dog.broken_at + SURVIVE_S + 2 * atomic_load(&dog.slowest);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Wait until the flag is set, at most this long. */
static bool await(atomic_bool *flag, double seconds)
{
    for (double end = now_s() + seconds; !atomic_load(flag) && now_s() < end;) sleep_ms(5);
    return atomic_load(flag);
}

int watchdog_failed(ctn_status st, int code, const char *text)
{
    char line[TEXT];
    const int64_t step = atomic_load(&dog.step);
    /* A broken exchange is only the symptom of another rank's failure; wait for the cause. If a
     * rank is lost and MPI goes on, it does not always say that this is why it fails. */
    if (st == CTN_EPEER || (st == CTN_EENGINE && dog.l->survives))
        await(&dog.broken, cause_s(dog.l->size));
    if (watchdog_broken()) return EXIT_OTHER_RANK;
    snprintf(line, sizeof line, "rank %d on %s, step %lld: %s", dog.l->rank, dog.l->host,
             (long long)step, text);
    atomic_store(&dog.code, code);
    atomic_store(&dog.failing, true);
    if (dog.l->rank == 0) {
        watchdog_cause(line, false, false);
        watchdog_wake();
        return code;
    }
    message m = {.kind = MSG_FAILED, .code = code};
    snprintf(m.text, sizeof m.text, "%s", line);
    watchdog_post(&m);
    if (!await(&dog.taken, TAKEN_S) && !watchdog_broken()) log_line("error: %s", line);
    return code;
}

bool watchdog_lost(void)
{
    return dog.l && await(&dog.broken, cause_s(dog.l->size)) && atomic_load(&dog.lost);
}

int watchdog_leave(int code)
{
    char text[64];
    if (!dog.l) return code;
    if (code == EXIT_DONE || code == EXIT_REQUEUE) code = EXIT_OTHER_RANK;
    if (!watchdog_broken() && !atomic_load(&dog.failing)) {
        if (code == EXIT_OTHER_RANK) await(&dog.broken, cause_s(dog.l->size));
        snprintf(text, sizeof text, "it ended with exit code %d", code);
        if (!watchdog_broken()) code = watchdog_failed(CTN_OK, code, text);
    }
    if (dog.l->rank == 0) await(&dog.told, TOLD_S);
    return code;
}

void watchdog_end(void)
{
    if (!dog.l) return;
    atomic_store(&dog.stop, true);
    watchdog_wake();
    pthread_join(dog.thread, NULL);
    watchdog_close();
    dog.l = NULL;
}

void watchdog_reset(void)
{
    watchdog_end();
    atomic_bool *flags[] = {&dog.broken, &dog.lost, &dog.stop, &dog.told, &dog.taken, &dog.joined};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) atomic_store(flags[i], false);
    atomic_store(&dog.first_code, 0);
    dog.also = NULL;
    dog.stepped = 0;
}
