/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of the watchdog, the thread of every rank except 0, start-up and shutdown.
 *
 * A process that ends in any way closes its connection; a host that is down or whose link is cut
 * no longer answers the keepalive probes of the kernel. So nothing is sent while all is well,
 * and the thread of a rank sleeps.
 */
#include "watchdog/net.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "start/verdict.h"

/* ---- messages -------------------------------------------------------------------------------- */

void message_fill(message *m)
{
    ctn_comm_stats s = {.struct_size = sizeof s}, more = {.struct_size = sizeof more};
    ctn_comm_get_stats(dog.l->comm, &s);
    pthread_mutex_lock(&dog.lock);
    if (dog.also) ctn_comm_get_stats(dog.also, &more);
    pthread_mutex_unlock(&dog.lock);
    m->rank = dog.l->rank;
    m->activity = atomic_load(&dog.activity);
    m->step = atomic_load(&dog.step);
    m->started = s.started + more.started;
    m->finished = s.finished + more.finished;
    m->waiting = s.waiting || more.waiting;
}

bool message_send(int fd, message *m)
{
    m->bytes = (uint32_t)(offsetof(message, text) + strlen(m->text) + 1);
    return send(fd, m, m->bytes, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)m->bytes;
}

int message_receive(int fd, message *m)
{
    const size_t head = offsetof(message, text);
    ssize_t n;
    do n = recv(fd, m, sizeof *m, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (n == 0) errno = 0;
    if (n <= 0) return -1;
    if ((size_t)n < head) return 0;
    if (m->bytes <= head || m->bytes > sizeof *m) { /* not our protocol */
        errno = EPROTO;
        return -1;
    }
    if ((size_t)n < m->bytes) return 0;
    ((char *)m)[m->bytes - 1] = 0;
    char taken[sizeof *m];
    return recv(fd, taken, m->bytes, MSG_DONTWAIT) == (ssize_t)m->bytes ? 1 : -1;
}

int hung_up(int fd)
{
    int error = 0;
    socklen_t n = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 ? error : errno;
}

void watchdog_post(message *m)
{
    message_fill(m);
    pthread_mutex_lock(&dog.lock);
    if (dog.to >= 0) (void)message_send(dog.to, m); /* reading detects a broken connection */
    pthread_mutex_unlock(&dog.lock);
}

void watchdog_wake(void)
{
    uint64_t one = 1;
    ssize_t n = write(dog.wake, &one, sizeof one);
    (void)n;
}

bool watchdog_listen(int fd, uint64_t name)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.u64 = name};
    return epoll_ctl(dog.epoll, EPOLL_CTL_ADD, fd, &e) == 0 ||
           epoll_ctl(dog.epoll, EPOLL_CTL_MOD, fd, &e) == 0;
}

void end_process(int code)
{
    if (dog.l->rank == 0) verdict_send(watchdog_verdict(code));
    _exit(code);
}

/* ---- ranks other than 0 ---------------------------------------------------------------------- */

static void take(const message *m, bool *ended)
{
    message here = {.kind = MSG_HERE}, bye = {.kind = MSG_BYE};
    if (m->kind == MSG_WHERE) watchdog_post(&here);
    if (m->kind == MSG_TAKEN) atomic_store(&dog.taken, true);
    if (m->kind == MSG_BYE) *ended = true;
    if (m->kind != MSG_FAILED && m->kind != MSG_LOST) return;
    *ended = true;
    atomic_store(&dog.lost, m->kind == MSG_LOST);
    watchdog_cause(m->text, false, false);
    watchdog_post(&bye);
    if (m->code != 0) nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * FIRST_S)}, NULL);
}

static void lost(int why)
{
    char text[TEXT];
    const bool closed = why == 0 || why == ECONNRESET || why == EPIPE;
    snprintf(text, sizeof text,
             closed ? "rank 0 on %s died, step %lld (its connection closed%s%s)"
                    : "rank 0 on %s cannot be reached, step %lld (%s%s)",
             dog.l->hosts[0], (long long)atomic_load(&dog.step), closed ? "" : strerror(why), "");
    atomic_store(&dog.lost, true);
    watchdog_cause(text, true, !closed);
}

static void hear(uint32_t events, bool *ended)
{
    message in;
    int r = 0;
    while (!*ended && (r = message_receive(dog.to, &in)) == 1) take(&in, ended);
    if (*ended) return;
    if (r < 0) lost(errno);
    else if (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) lost(hung_up(dog.to));
    else return;
    *ended = true;
}

static void *follow(void *unused)
{
    bool ended = false;
    (void)unused;
    watchdog_listen(dog.to, (uint64_t)dog.to);
    while (!atomic_load(&dog.stop)) {
        struct epoll_event e = {.events = 0};
        const int n = epoll_wait(dog.epoll, &e, 1, watchdog_broken() ? 100 : -1);
        if (n == 1 && e.data.u64 == (uint64_t)dog.to) hear(e.events, &ended);
        /* End now: this rank has nothing to report, and MPI may soon abort on its own. */
        if (watchdog_broken() && !atomic_load(&dog.failing) && !watchdog_waits())
            end_process(EXIT_OTHER_RANK);
    }
    message bye = {.kind = MSG_BYE};
    watchdog_post(&bye);
    return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* The thread blocks all signals; the main thread handles them. */
static ctn_status start(void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&dog.thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e == 0 ? CTN_OK
                  : ctn_fail(CTN_ENOMEM, "watchdog: cannot start a thread: %s", strerror(e));
}

/* The first rank on another host finds the address that works and tells all ranks. If it finds
 * none, every rank tries all addresses. */
static ctn_status find_rank_0(const launch *l, invitation *v)
{
    int32_t way = -1;
    const bool scout = l->rank == l->first_elsewhere;
    if (l->first_elsewhere < l->size) {
        if (scout) way = watchdog_join(v);
        CTN_TRY(ctn_comm_broadcast(l->comm, &way, sizeof way, l->first_elsewhere));
    }
    if (way >= 0) {
        v->at[0] = v->at[way];
        v->n = 1;
    }
    if (l->rank == 0 && way >= 0) {
        atomic_store(&dog.keep, way);
        watchdog_wake();
    }
    if (l->rank != 0 && !scout) (void)watchdog_join(v);
    return CTN_OK;
}

ctn_status watchdog_begin(launch *l)
{
    static invitation v;
    v = (invitation){.n = 0};
    dog.to = -1;
    atomic_store(&dog.keep, -1);
    dog.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    dog.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (dog.wake < 0 || dog.epoll < 0 || !watchdog_listen(dog.wake, 0))
        return ctn_fail(CTN_EIO, "watchdog: %s", strerror(errno));
    dog.l = l;
    if (l->rank == 0) {
        watchdog_invite(&v, ctn_comm_nodes(l->comm) == 1 && l->first_elsewhere == l->size);
        CTN_TRY(start(watchdog_hub, &v));
    }
    CTN_TRY(ctn_comm_broadcast(l->comm, &v, sizeof v, 0));
    CTN_TRY(find_rank_0(l, &v));
    if (dog.to >= 0) CTN_TRY(start(follow, NULL));
    else if (l->rank != 0) dog.l = NULL;
    CTN_TRY(ctn_comm_barrier(l->comm));
    atomic_store(&dog.joined, true);
    if (l->rank == 0) watchdog_wake();
    return CTN_OK;
}

void watchdog_close(void)
{
    for (int i = 0; i < dog.doors; i++)
        if (dog.door[i] >= 0) close(dog.door[i]);
    if (dog.to >= 0) close(dog.to);
    if (dog.wake >= 0) close(dog.wake);
    if (dog.epoll >= 0) close(dog.epoll);
    dog.to = dog.wake = dog.epoll = -1;
    dog.doors = 0;
}
