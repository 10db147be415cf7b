/* SPDX-License-Identifier: Apache-2.0
 *
 * One line over TCP, "token code", on a connection of its own: the ranks may be on other hosts,
 * whose files `catena launch` does not see. It listens on every address of its host and rank 0 uses
 * all of them, since nobody knows which one works. The line is in the buffer of the other host's
 * kernel when rank 0 goes on, so nobody waits for `catena launch` to read it. What comes without
 * the token is ignored, and `catena launch` waits for no connection: anybody can open one.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "start/verdict.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"

#define VARIABLE "CATENA_LAUNCHED_BY" /* "token port address address ..." */
#define CONNECT_S 2.0                 /* for all addresses together */
enum { ADDRESSES = 16, LINE = sizeof((verdict_caller *)0)->line, TEXT = 512, CALLS = 256 };

/* ---- in catena launch ------------------------------------------------------------------------ */

static bool is_offered(const struct ifaddrs *i, bool local)
{
    if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP)) return false;
    return ((i->ifa_flags & IFF_LOOPBACK) != 0) == local;
}

/* Appends the addresses of this host. */
static void add_addresses(char *text, size_t room, bool local)
{
    struct ifaddrs *all = NULL;
    int n = 0;
    if (getifaddrs(&all) != 0) return;
    for (const struct ifaddrs *i = all; i && n < ADDRESSES; i = i->ifa_next) {
        struct sockaddr_in a;
        char name[INET_ADDRSTRLEN];
        const size_t used = strlen(text);
        if (!is_offered(i, local)) continue;
        memcpy(&a, i->ifa_addr, sizeof a);
        if (!inet_ntop(AF_INET, &a.sin_addr, name, sizeof name)) continue;
        n += snprintf(text + used, room - used, " %s", name) > 0;
    }
    freeifaddrs(all);
}

static bool make_token(verdict *v)
{
    unsigned char random[(sizeof v->token - 1) / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) return false;
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(v->token + 2 * i, sizeof v->token - 2 * i, "%02x", random[i]);
    return true;
}

void verdict_open(verdict *v, bool local)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t n = sizeof a;
    char text[TEXT];
    a.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
    *v = (verdict){.door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    for (int i = 0; i < VERDICT_CALLERS; i++) v->caller[i].fd = -1;
    if (v->door < 0) return;
    if (!make_token(v) || bind(v->door, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(v->door, SOMAXCONN) != 0 || getsockname(v->door, (struct sockaddr *)&a, &n) != 0) {
        verdict_close(v);
        return;
    }
    snprintf(text, sizeof text, "%s %d", v->token, ntohs(a.sin_port));
    add_addresses(text, sizeof text, local);
    setenv(VARIABLE, text, 1);
}

void verdict_hide(void)
{
    unsetenv(VARIABLE);
}

static void hang_up(verdict_caller *c)
{
    if (c->fd >= 0) close(c->fd);
    *c = (verdict_caller){.fd = -1};
}

/* Success is the last word: whoever says something else has lost the others. */
static void take_line(verdict *v, const char *line)
{
    char token[LINE];
    int code = 0;
    if (sscanf(line, "%40s %d", token, &code) != 2 || strcmp(token, v->token) != 0) return;
    if (v->known && v->code == EXIT_DONE) return;
    v->known = true;
    v->code = code;
}

/* Takes what the caller has said so far. */
static void hear(verdict *v, verdict_caller *c)
{
    ssize_t k = 1;
    while (k > 0 && c->n < sizeof c->line - 1) {
        k = recv(c->fd, c->line + c->n, sizeof c->line - 1 - c->n, MSG_DONTWAIT);
        if (k > 0) c->n += (size_t)k;
    }
    if (k < 0 && (errno == EAGAIN || errno == EINTR) && !strchr(c->line, '\n')) return;
    take_line(v, c->line);
    hang_up(c);
}

bool verdict_read(verdict *v)
{
    for (int i = 0; i < VERDICT_CALLERS; i++)
        if (v->caller[i].fd >= 0) hear(v, &v->caller[i]);
    for (int i = 0; i < CALLS && v->door >= 0; i++) {
        const int fd = accept4(v->door, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) break;
        verdict_caller *c = &v->caller[v->next++ % VERDICT_CALLERS];
        hang_up(c);
        c->fd = fd;
        hear(v, c);
    }
    return v->known;
}

void verdict_close(verdict *v)
{
    for (int i = 0; i < VERDICT_CALLERS; i++) hang_up(&v->caller[i]);
    if (v->door >= 0) close(v->door);
    v->door = -1;
}

/* ---- in the ranks ---------------------------------------------------------------------------- */

static char where[TEXT]; /* the value of VARIABLE; "": not started by catena launch */

void verdict_begin(void)
{
    const char *s = getenv(VARIABLE);
    snprintf(where, sizeof where, "%s", s ? s : "");
    unsetenv(VARIABLE); /* the library would warn about it */
}

static int begin_connect(const char *address, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    if (inet_pton(AF_INET, address, &a.sin_addr) != 1) return -1;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EINPROGRESS)
        return fd; /* poll says how it went */
    close(fd);
    return -1;
}

/* Closing waits until the other host's kernel has the line. */
static void finish(int fd, const char *line)
{
    const struct linger linger = {.l_onoff = 1, .l_linger = (int)CONNECT_S};
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0 &&
        send(fd, line, strlen(line), MSG_NOSIGNAL) == (ssize_t)strlen(line)) {
        (void)fcntl(fd, F_SETFL, 0);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    }
    close(fd);
}

void verdict_send(int code)
{
    struct pollfd p[ADDRESSES];
    char text[sizeof where], line[LINE], *rest = NULL;
    int n = 0, open = 0;
    snprintf(text, sizeof text, "%s", where);
    const char *token = strtok_r(text, " ", &rest), *port = strtok_r(NULL, " ", &rest);
    if (!token || !port) return;
    snprintf(line, sizeof line, "%.40s %d\n", token, code);
    for (const char *s; n < ADDRESSES && (s = strtok_r(NULL, " ", &rest)) != NULL; n++)
        p[n] = (struct pollfd){.fd = begin_connect(s, (uint16_t)atoi(port)), .events = POLLOUT};
    for (int i = 0; i < n; i++) open += p[i].fd >= 0;
    for (double end = now_s() + CONNECT_S; open > 0 && now_s() < end;) {
        if (poll(p, (nfds_t)n, 50) <= 0) continue;
        for (int i = 0; i < n; i++) {
            if (p[i].fd < 0 || !p[i].revents) continue;
            finish(p[i].fd, line);
            p[i].fd = -1;
            open--;
        }
    }
    for (int i = 0; i < n; i++)
        if (p[i].fd >= 0) close(p[i].fd);
}
