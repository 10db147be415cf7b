/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0's watchdog: a thread that holds a connection to every other rank. It finds the first cause
 * of a failure, writes it once and tells all; and it knows how far each rank is, for a report when
 * the job does not move.
 *
 * Invariant: a rank has at most one connection; what comes without the token is closed unheard.
 */
#include "watchdog_net.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STRANGERS = 64, REMEMBERED = 64 };

typedef struct {
    int fd;   /* -1: none */
    int rank; /* -1: has not said its name */
    double since;
    bool bye;
    message in;
    uint32_t have;
} connection;

typedef struct {
    message last;
    double heard, moved;
    bool known, gone;
} rank_state;

typedef struct {
    const char *token;
    int size, most;
    connection *c; /* [most] */
    struct pollfd *p;
    rank_state *r; /* [size] */
    bool told, stalled;
    connection *first; /* whose rank failed, and is to end before the others */
} hub;

/* ---- failures -------------------------------------------------------------------------------- */

static void tell_all(hub *h, message_kind kind, const char *text)
{
    message m = {.kind = kind, .code = atomic_load(&dog.code)};
    message_fill(&m);
    snprintf(m.text, sizeof m.text, "%s", text);
    for (int i = 0; i < h->most; i++)
        if (h->c[i].fd >= 0 && h->c[i].rank >= 0) (void)message_send(h->c[i].fd, &m);
}

static void tell_cause(hub *h)
{
    if (h->told || (h->first && h->first->fd >= 0 && now_s() < dog.broken_at + FIRST_S)) return;
    tell_all(h, MSG_FAILED, dog.cause);
    h->told = true;
}

static void ended(hub *h, connection *c, int why)
{
    char text[TEXT];
    const int rank = c->rank;
    close(c->fd);
    c->fd = -1;
    if (rank < 0) return;
    h->r[rank].gone = true;
    if (c->bye || watchdog_broken()) return;
    const bool closed = why == 0 || why == ECONNRESET || why == EPIPE;
    /* Ranks keep step, so one that has told nothing newer was at least where this one is. */
    const int64_t here = atomic_load(&dog.step), told = h->r[rank].last.step;
    const long long step = here > told ? here : told;
    if (closed)
        snprintf(text, sizeof text, "rank %d on %s died, step %lld (its connection closed)", rank,
                 dog.l->hosts[rank], step);
    else
        snprintf(text, sizeof text, "rank %d on %s cannot be reached, step %lld (%s)", rank,
                 dog.l->hosts[rank], step, strerror(why));
    watchdog_cause(text, false, false);
    tell_cause(h);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Whether a line was not written lately: all ranks warn of the same things. */
bool watchdog_new(const char *text)
{
    static uint64_t seen[REMEMBERED];
    static int next;
    bool found = false;
    uint64_t hash = 1469598103934665603u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    pthread_mutex_lock(&dog.lock);
    for (int i = 0; i < REMEMBERED; i++) found = found || seen[i] == hash;
    if (!found) seen[next++ % REMEMBERED] = hash;
    pthread_mutex_unlock(&dog.lock);
    return !found;
}

static void greet(hub *h, connection *c)
{
    const message *m = &c->in;
    message answer = {.kind = MSG_TAKEN};
    bool right = m->kind == MSG_HELLO && strcmp(m->text, h->token) == 0 && m->rank > 0 &&
                 m->rank < h->size && !h->r[m->rank].known;
    if (!right || !message_send(c->fd, &answer)) {
        close(c->fd);
        c->fd = -1;
        return;
    }
    c->rank = m->rank;
    h->r[c->rank].known = true;
    h->r[c->rank].moved = now_s();
}

static void take(hub *h, connection *c)
{
    const message *m = &c->in;
    rank_state *r = &h->r[c->rank];
    message answer = {.kind = MSG_TAKEN};
    if (m->moves != r->last.moves || m->activity != r->last.activity) r->moved = now_s();
    memcpy(&r->last, m, offsetof(message, text));
    r->heard = now_s();
    if (m->kind == MSG_BYE) c->bye = true;
    if (m->kind == MSG_LINE && watchdog_new(m->text))
        log_line_of(stderr, c->rank, dog.l->hosts[c->rank], m->text);
    if (m->kind != MSG_FAILED) return;
    c->bye = true;
    if (watchdog_cause(m->text, false, false)) h->first = c;
    (void)message_send(c->fd, &answer);
}

static void read_one(hub *h, connection *c)
{
    int r = 0;
    while (c->fd >= 0 && (r = message_receive(c->fd, &c->in, &c->have)) == 1) {
        if (c->rank < 0) greet(h, c);
        else take(h, c);
    }
    if (r < 0) ended(h, c, errno);
}

static void accept_all(hub *h)
{
    for (int i = 0; i < h->most; i++) {
        if (h->c[i].fd >= 0) continue;
        int fd = watchdog_accept(dog.to);
        if (fd < 0) return;
        h->c[i] = (connection){.fd = fd, .rank = -1, .since = now_s()};
    }
}

/* ---- a job that does not move ---------------------------------------------------------------- */

static const char *activity_name(int what)
{
    static const char *const names[] = {[AT_START] = "starting",
                                        [AT_DATA] = "opening data",
                                        [AT_INPUT] = "between steps, or waiting for data",
                                        [AT_COMPUTE] = "in a step",
                                        [AT_EVALUATE] = "evaluating",
                                        [AT_END] = "ending"};
    return what >= 0 && what <= AT_END ? names[what] : "?";
}

static void report_stall(const hub *h, double now, double limit)
{
    uint64_t most = 0;
    char missing[512] = "";
    size_t used = 0;
    for (int i = 0; i < h->size; i++)
        if (h->r[i].last.started > most) most = h->r[i].last.started;
    log_line("warning: no progress for %.0f s; where each rank is:", limit);
    for (int i = 0; i < h->size; i++) {
        const rank_state *r = &h->r[i];
        const bool silent = now - r->heard > 4 * BEAT_S;
        const bool behind = silent || (r->last.started < most && !r->last.waiting);
        char heard[64] = "";
        if (silent) snprintf(heard, sizeof heard, ", not heard of for %.0f s", now - r->heard);
        fprintf(stderr, "  rank %d on %s: step %lld, %s, collective %llu (%llu done)%s%s\n", i,
                dog.l->hosts[i], (long long)r->last.step, activity_name(r->last.activity),
                (unsigned long long)r->last.started, (unsigned long long)r->last.finished,
                r->last.waiting ? ", waiting for others" : "", heard);
        if (behind && used + 32 < sizeof missing)
            used += (size_t)snprintf(missing + used, sizeof missing - used, "%s%d",
                                     used ? ", " : "", i);
    }
    if (used) log_line("warning: missing: rank %s", missing);
}

static void watch(hub *h)
{
    const double now = now_s(), limit = (double)atomic_load(&dog.stall_ms) / 1e3;
    rank_state *own = &h->r[0];
    message m = {0};
    bool still = false;
    message_fill(&m);
    if (m.moves != own->last.moves || m.activity != own->last.activity) own->moved = now;
    own->last = m;
    own->heard = now;
    for (int i = 0; i < h->size; i++)
        still = still || (!h->r[i].gone && h->r[i].known && now - h->r[i].moved > limit);
    if (limit <= 0) still = false;
    if (still && !h->stalled) report_stall(h, now, limit);
    if (!still && h->stalled) log_line("the job goes on");
    h->stalled = still;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void wait_for_any(hub *h, int ms)
{
    uint64_t count;
    h->p[0] = (struct pollfd){.fd = dog.to, .events = POLLIN};
    h->p[1] = (struct pollfd){.fd = dog.wake, .events = POLLIN};
    for (int i = 0; i < h->most; i++)
        h->p[i + 2] = (struct pollfd){.fd = h->c[i].fd, .events = POLLIN};
    poll(h->p, (nfds_t)h->most + 2, ms);
    if (h->p[1].revents && read(dog.wake, &count, sizeof count) < 0) count = 0;
    if (h->p[0].revents) accept_all(h);
    for (int i = 0; i < h->most; i++)
        if (h->p[i + 2].revents && h->c[i].fd == h->p[i + 2].fd) read_one(h, &h->c[i]);
    for (int i = 0; i < h->most; i++)
        if (h->c[i].fd >= 0 && h->c[i].rank < 0 && now_s() - h->c[i].since > CONNECT_S)
            ended(h, &h->c[i], 0);
}

/* Whether every rank has said that it knows, or is gone. */
static bool all_left(const hub *h)
{
    for (int i = 0; i < h->most; i++)
        if (h->c[i].fd >= 0 && h->c[i].rank >= 0 && !h->c[i].bye) return false;
    return true;
}

static void say_goodbye(hub *h)
{
    tell_all(h, MSG_BYE, "");
    for (double end = now_s() + TAKEN_S; !all_left(h) && now_s() < end;) wait_for_any(h, 10);
}

static void serve(hub *h)
{
    for (double next = 0; !atomic_load(&dog.stop);) {
        const bool broken = watchdog_broken();
        wait_for_any(h, broken ? 10 : (int)(1e3 * BEAT_S));
        if (now_s() >= next) {
            tell_all(h, MSG_BEAT, "");
            watch(h);
            next = now_s() + BEAT_S;
        }
        if (!watchdog_broken()) continue;
        tell_cause(h);
        const bool late = now_s() > dog.broken_at + TOLD_S;
        if (!h->told || (!all_left(h) && !late)) continue;
        atomic_store(&dog.told, true);
        if (!atomic_load(&dog.failing) || now_s() > dog.broken_at + TOLD_S + TAKEN_S)
            end_process(EXIT_OTHER_RANK);
    }
}

void *watchdog_hub(void *token)
{
    hub h = {.token = token, .size = dog.l->size, .most = dog.l->size + STRANGERS};
    h.c = calloc((size_t)h.most, sizeof *h.c);
    h.p = calloc((size_t)h.most + 2, sizeof *h.p);
    h.r = calloc((size_t)h.size, sizeof *h.r);
    if (h.c && h.p && h.r) {
        for (int i = 0; i < h.most; i++) h.c[i].fd = -1;
        h.r[0].known = true;
        h.r[0].moved = now_s();
        serve(&h);
        say_goodbye(&h);
        for (int i = 0; i < h.most; i++)
            if (h.c[i].fd >= 0) close(h.c[i].fd);
    }
    free(h.c);
    free(h.p);
    free(h.r);
    return NULL;
}
