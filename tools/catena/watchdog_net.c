/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections of the watchdog: messages, how a rank finds rank 0, and the thread of every other
 * rank.
 *
 * Both sides send twice a second and let the kernel judge the link (TCP_USER_TIMEOUT): a cut link
 * or a dead host does not acknowledge, while the kernel of a process that was only stopped does. A
 * process that ends closes its connection, however it ends. Rank 0 listens on all its interfaces;
 * the token keeps out whoever else finds the port.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "watchdog_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ADDRESSES = 16, BACKLOG_BYTES = 16 << 10 };

typedef struct {
    char token[40];
    uint16_t port;
    int n;
    struct in_addr at[ADDRESSES];
} invitation;

/* ---- messages -------------------------------------------------------------------------------- */

void message_fill(message *m)
{
    ctn_comm_state s = {.struct_size = sizeof s}, more = {.struct_size = sizeof more};
    ctn_comm_look(dog.l->comm, &s);
    pthread_mutex_lock(&dog.lock);
    if (dog.also) ctn_comm_look(dog.also, &more);
    pthread_mutex_unlock(&dog.lock);
    m->rank = dog.l->rank;
    m->activity = atomic_load(&dog.activity);
    m->step = atomic_load(&dog.step);
    m->moves = atomic_load(&dog.moves);
    m->started = s.started + more.started;
    m->finished = s.finished + more.finished;
    m->waiting = s.waiting || more.waiting;
}

bool message_send(int fd, message *m)
{
    int waiting = 0;
    m->bytes = (uint32_t)(offsetof(message, text) + strlen(m->text) + 1);
    if (m->kind == MSG_BEAT && ioctl(fd, SIOCOUTQ, &waiting) == 0 && waiting > BACKLOG_BYTES)
        return true;
    ssize_t n = send(fd, m, m->bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n == (ssize_t)m->bytes;
}

int message_receive(int fd, message *m, uint32_t *have)
{
    const uint32_t head = offsetof(message, text);
    for (;;) {
        uint32_t want = *have < head ? head : m->bytes;
        if (*have >= head && (want <= head || want > sizeof *m)) { /* not one of ours */
            errno = EPROTO;
            return -1;
        }
        if (*have >= head && *have == want) {
            ((char *)m)[want - 1] = 0;
            *have = 0;
            return 1;
        }
        ssize_t n = recv(fd, (char *)m + *have, want - *have, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
        if (n == 0) errno = 0;
        if (n <= 0) return -1;
        *have += (uint32_t)n;
    }
}

void watchdog_post(message *m)
{
    message_fill(m);
    pthread_mutex_lock(&dog.lock);
    if (dog.to >= 0) (void)message_send(dog.to, m); /* a broken connection shows when it is read */
    pthread_mutex_unlock(&dog.lock);
}

void watchdog_wake(void)
{
    uint64_t one = 1;
    ssize_t n = write(dog.wake, &one, sizeof one);
    (void)n;
}

void end_process(int code)
{
    _exit(code);
}

/* ---- a rank that is not 0 -------------------------------------------------------------------- */

static void take(const message *m, bool *ended)
{
    message bye = {.kind = MSG_BYE};
    if (m->kind == MSG_TAKEN) atomic_store(&dog.taken, true);
    if (m->kind == MSG_BYE) *ended = true;
    if (m->kind != MSG_FAILED) return;
    *ended = true;
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
    watchdog_cause(text, true, !closed);
}

static void *follow(void *unused)
{
    message in;
    uint32_t have = 0;
    double next = 0;
    bool ended = false;
    (void)unused;
    for (;;) {
        struct pollfd p[2] = {{.fd = ended ? -1 : dog.to, .events = POLLIN},
                              {.fd = dog.wake, .events = POLLIN}};
        uint64_t count;
        message beat = {.kind = atomic_load(&dog.stop) ? MSG_BYE : MSG_BEAT};
        poll(p, 2, (int)(1e3 * BEAT_S));
        if (p[1].revents && read(dog.wake, &count, sizeof count) < 0) count = 0;
        if (atomic_load(&dog.stop)) {
            beat.kind = MSG_BYE;
            watchdog_post(&beat);
            return NULL;
        }
        if (now_s() >= next) {
            watchdog_post(&beat);
            next = now_s() + BEAT_S;
        }
        int r = 0;
        while (!ended && (r = message_receive(dog.to, &in, &have)) == 1) take(&in, &ended);
        if (r < 0 && !ended) {
            lost(errno);
            ended = true;
        }
        /* This rank has nothing to write, and MPI may be about to abort by itself. */
        if (watchdog_broken() && !atomic_load(&dog.failing)) end_process(EXIT_OTHER_RANK);
    }
}

/* ---- finding rank 0 -------------------------------------------------------------------------- */

static void tune(int fd)
{
    int on = 1;
    unsigned ms = 1000 * LOST_S;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

int watchdog_accept(int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) tune(fd);
    return fd;
}

/* Addresses of this host, those that only it can reach last. */
static void list_addresses(invitation *v)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return;
    for (int loopback = 0; loopback < 2; loopback++)
        for (struct ifaddrs *i = all; i && v->n < ADDRESSES; i = i->ifa_next) {
            if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
                !!(i->ifa_flags & IFF_LOOPBACK) != loopback)
                continue;
            struct sockaddr_in a;
            memcpy(&a, i->ifa_addr, sizeof a);
            v->at[v->n++] = a.sin_addr;
        }
    freeifaddrs(all);
}

static ctn_status invite(invitation *v)
{
    unsigned char random[16];
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t n = sizeof any;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return ctn_fail(CTN_EIO, "watchdog: no random numbers: %s", strerror(errno));
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(v->token + 2 * i, sizeof v->token - 2 * i, "%02x", random[i]);
    dog.to = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (dog.to < 0 || bind(dog.to, (struct sockaddr *)&any, sizeof any) != 0 ||
        listen(dog.to, SOMAXCONN) != 0 || getsockname(dog.to, (struct sockaddr *)&any, &n) != 0)
        return ctn_fail(CTN_EIO, "watchdog: cannot listen: %s", strerror(errno));
    v->port = any.sin_port;
    list_addresses(v);
    return CTN_OK;
}

/* One address: connected and greeted, or given up (-1). *have counts what came. */
static int court(int fd, const invitation *v, short events, bool *greeted, message *in,
                 uint32_t *have)
{
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0 || error != 0) return -1;
    if (!*greeted && (events & POLLOUT)) {
        message hello = {.kind = MSG_HELLO, .rank = dog.l->rank};
        snprintf(hello.text, sizeof hello.text, "%s", v->token);
        *greeted = message_send(fd, &hello);
        if (!*greeted) return -1;
    }
    int r = message_receive(fd, in, have);
    return r == 1 && in->kind != MSG_TAKEN ? -1 : r;
}

/* All of them at once: the first that rank 0 answers on is taken. */
static bool find_rank_0(const invitation *v)
{
    struct pollfd p[ADDRESSES];
    bool greeted[ADDRESSES] = {false};
    message in[ADDRESSES];
    uint32_t have[ADDRESSES] = {0};
    for (int i = 0; i < v->n; i++) {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = v->port, .sin_addr = v->at[i]};
        p[i] =
            (struct pollfd){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        if (p[i].fd < 0) continue;
        tune(p[i].fd);
        if (connect(p[i].fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EINPROGRESS)
            continue;
        close(p[i].fd);
        p[i].fd = -1;
    }
    for (double end = now_s() + CONNECT_S; dog.to < 0 && now_s() < end;) {
        for (int i = 0; i < v->n; i++) p[i].events = (short)(greeted[i] ? POLLIN : POLLOUT);
        poll(p, (nfds_t)v->n, 100);
        for (int i = 0; i < v->n && dog.to < 0; i++) {
            if (p[i].fd < 0 || !p[i].revents) continue;
            int r = court(p[i].fd, v, p[i].revents, &greeted[i], &in[i], &have[i]);
            if (r == 1) dog.to = p[i].fd;
            if (r < 0) close(p[i].fd);
            if (r != 0) p[i].fd = -1;
        }
    }
    for (int i = 0; i < v->n; i++)
        if (p[i].fd >= 0) close(p[i].fd);
    return dog.to >= 0;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* The thread takes no signals: they are the main thread's. */
static ctn_status start(void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(&dog.thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return e == 0 ? CTN_OK : ctn_fail(CTN_ENOMEM, "watchdog: no thread: %s", strerror(e));
}

static void more_files(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0) return;
    r.rlim_cur = r.rlim_max;
    setrlimit(RLIMIT_NOFILE, &r);
}

/* Who is not connected fails unseen; rank 0 says so once. */
static ctn_status check_all(launch *l, char ok)
{
    char all[l->size];
    int missing = 0, first = -1;
    CTN_TRY(ctn_comm_allgather(l->comm, &ok, 1, all));
    for (int i = l->size - 1; i >= 0; i--)
        if (!all[i]) {
            missing++;
            first = i;
        }
    if (missing > 0 && l->rank == 0)
        log_line(
            "warning: %d ranks, rank %d on %s first, cannot reach rank 0 by TCP: when they fail, "
            "only MPI will notice",
            missing, first, l->hosts[first]);
    return CTN_OK;
}

ctn_status watchdog_begin(launch *l)
{
    static invitation v;
    bool ok = true;
    dog.to = -1;
    dog.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (dog.wake < 0) return ctn_fail(CTN_EIO, "watchdog: %s", strerror(errno));
    dog.l = l;
    if (l->rank == 0) {
        more_files();
        CTN_TRY(invite(&v));
        CTN_TRY(start(watchdog_hub, v.token));
    }
    CTN_TRY(ctn_comm_broadcast(l->comm, &v, sizeof v, 0));
    if (l->rank != 0) {
        ok = find_rank_0(&v);
        if (ok) CTN_TRY(start(follow, NULL));
        else dog.l = NULL;
    }
    return check_all(l, ok);
}

void watchdog_close(void)
{
    if (dog.to >= 0) close(dog.to);
    if (dog.wake >= 0) close(dog.wake);
    dog.to = dog.wake = -1;
}
