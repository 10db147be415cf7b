/* SPDX-License-Identifier: Apache-2.0
 *
 * How the ranks of a job find rank 0's watchdog. If all ranks are on its host, rank 0 listens on
 * the loopback address, otherwise on every other address of its host. As soon as the first rank
 * on another host has found an address that works, the other addresses are closed, and all ranks
 * use that one. The addresses, and a token that ranks must present, are sent by MPI. After all
 * ranks have joined, rank 0 stops listening.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "watchdog/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <math.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { OWN_FILES = 512 }; /* open files reserved for training and MPI */
#define AGAIN_S 0.05      /* time to the next attempt */

/* Let the kernel check the link: a cut link or a dead host does not acknowledge probes, but the
 * kernel of a merely suspended process does. */
static void tune(int fd)
{
    const int probe = probe_s(dog.l->size);
    int on = 1, idle = probe, between = probe / 2;
    unsigned ms = 1000 * (unsigned)lost_s(dog.l->size);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &between, sizeof between);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

static int new_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

int watchdog_accept(int listening)
{
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) tune(fd);
    return fd;
}

static void listen_on(invitation *v, struct in_addr address)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = address};
    socklen_t n = sizeof a;
    int fd = v->n < ADDRESSES ? new_socket() : -1;
    if (fd < 0) return;
    if (bind(fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &n) != 0) {
        snprintf(dog.no_door, sizeof dog.no_door, "rank 0 cannot listen: %s", strerror(errno));
        close(fd);
        return;
    }
    dog.door[dog.doors++] = fd;
    v->at[v->n++] = a;
}

/* All addresses except the loopback. */
static void listen_on_addresses(invitation *v)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return;
    for (struct ifaddrs *i = all; i; i = i->ifa_next) {
        if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
            (i->ifa_flags & IFF_LOOPBACK))
            continue;
        struct sockaddr_in a;
        memcpy(&a, i->ifa_addr, sizeof a);
        listen_on(v, a.sin_addr);
    }
    freeifaddrs(all);
}

/* One file descriptor per rank. The soft limit is raised only as far as needed, because some
 * libraries cannot use high file descriptors. */
static int64_t make_room(int ranks)
{
    struct rlimit r;
    const rlim_t want = (rlim_t)ranks + OWN_FILES;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0) return ranks;
    if (r.rlim_cur < want) {
        const rlim_t before = r.rlim_cur;
        r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &r) != 0) r.rlim_cur = before;
    }
    if (r.rlim_cur >= want) return ranks;
    return r.rlim_cur > OWN_FILES ? (int64_t)r.rlim_cur - OWN_FILES : 0;
}

void watchdog_invite(invitation *v, bool one_host)
{
    unsigned char random[16];
    dog.doors = 0;
    dog.no_door[0] = 0;
    dog.room = make_room(dog.l->size);
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        snprintf(dog.no_door, sizeof dog.no_door, "cannot get random numbers: %s", strerror(errno));
        return;
    }
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(v->token + 2 * i, sizeof v->token - 2 * i, "%02x", random[i]);
    if (!one_host) listen_on_addresses(v);
    if (v->n == 0) listen_on(v, (struct in_addr){.s_addr = htonl(INADDR_LOOPBACK)});
}

/* ---- the other ranks ------------------------------------------------------------------------- */

/* A connection attempt to one address. Under load rank 0 may close a connection that has not yet
 * presented the token; then the attempt is repeated. */
typedef struct {
    int fd; /* -1: none */
    bool greeted;
    double again; /* when to try again; INFINITY: never */
} attempt;

static void try_again(attempt *t, double when)
{
    if (t->fd >= 0) close(t->fd);
    *t = (attempt){.fd = -1, .again = when};
}

static void begin(attempt *t, const struct sockaddr_in *a)
{
    t->fd = new_socket();
    if (t->fd >= 0) tune(t->fd);
    if (t->fd < 0 ||
        (connect(t->fd, (const struct sockaddr *)a, sizeof *a) != 0 && errno != EINPROGRESS))
        try_again(t, INFINITY);
}

/* Send the hello, then wait for the answer. True: it has arrived. */
static bool go_on(attempt *t, const char *token)
{
    int error = 0;
    socklen_t n = sizeof error;
    message in;
    if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0) error = errno;
    if (error != 0) {
        const bool crowd = error == ETIMEDOUT || error == ECONNRESET;
        try_again(t, crowd || t->greeted ? now_s() + AGAIN_S : INFINITY);
        return false;
    }
    if (!t->greeted) {
        message hello = {.kind = MSG_HELLO, .rank = dog.l->rank};
        snprintf(hello.text, sizeof hello.text, "%s", token);
        t->greeted = message_send(t->fd, &hello);
        if (!t->greeted) try_again(t, now_s() + AGAIN_S);
        return false;
    }
    const int r = message_receive(t->fd, &in);
    if (r < 0) try_again(t, now_s() + AGAIN_S);
    return r == 1 && in.kind == MSG_TAKEN;
}

/* Try all addresses at once and use the first one on which rank 0 answers. */
int watchdog_join(const invitation *v)
{
    attempt t[ADDRESSES];
    struct pollfd p[ADDRESSES];
    int which = -1, left = v->n;
    for (int i = 0; i < v->n; i++) t[i] = (attempt){.fd = -1};
    for (double end = now_s() + CONNECT_S; which < 0 && left > 0 && now_s() < end;) {
        left = 0;
        for (int i = 0; i < v->n; i++) {
            if (t[i].fd < 0 && now_s() >= t[i].again) begin(&t[i], &v->at[i]);
            p[i] = (struct pollfd){t[i].fd, t[i].greeted ? POLLIN : POLLOUT, 0};
            left += t[i].fd >= 0 || isfinite(t[i].again);
        }
        poll(p, (nfds_t)v->n, 20);
        for (int i = 0; i < v->n && which < 0; i++)
            if (t[i].fd >= 0 && p[i].revents && go_on(&t[i], v->token)) which = i;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    for (int i = 0; i < v->n; i++)
        if (i != which) try_again(&t[i], INFINITY);
    if (which >= 0) dog.to = t[which].fd;
    return which;
}
