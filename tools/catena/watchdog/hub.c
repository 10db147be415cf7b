/* SPDX-License-Identifier: Apache-2.0
 *
 * Rank 0's watchdog: a thread with a connection to every other rank. It finds the root cause of
 * a failure, prints it once and sends it to all ranks. If rank 0 makes no progress, it asks
 * every rank where it is and prints the answers; ranks run in lockstep, so watching rank 0 is
 * enough.
 *
 * Invariants: a rank has at most one connection. Connections without the token are closed; their
 * number and lifetime are limited, and they never delay ranks. After all ranks have joined,
 * nothing listens any more. While all is well, the thread only checks its own rank twice per
 * second, regardless of the number of ranks.
 */
#include "watchdog/net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    STRANGERS = 256,  /* maximum connections without the token; a new one replaces the oldest */
    GREETED = 128,    /* connections accepted at a time, before serving ranks that have joined */
    EVENTS = 64,      /* events fetched from the kernel at a time */
    REMEMBERED = 64,  /* recent lines that are not repeated */
    REPORT_LINES = 64 /* maximum length of a report on where ranks are */
};

typedef struct {
    int fd; /* -1: none */
    double since;
} stranger;

/* What is known about a rank. */
typedef struct {
    int fd; /* -1: none */
    bool known, bye, answered;
    int32_t activity, waiting;
    int64_t step;
    uint64_t started, finished;
} member;

/* Names of connections: 0 is the wake, 1 to size - 1 are ranks, then strangers, then doors. */
typedef struct {
    const invitation *v; /* from the main thread; before `complete`, only the token may be used */
    int size;
    member *r; /* [size] */
    stranger s[STRANGERS];
    uint64_t came;       /* strangers so far; each replaces the oldest */
    bool more;           /* more connections may be pending */
    int joined;          /* number of ranks that have joined */
    int staying;         /* of these, neither gone nor about to end */
    bool open;           /* accepting connections */
    bool complete;       /* every rank has joined or given up */
    bool told;           /* the cause was sent to all ranks */
    int first;           /* the rank that failed, which ends before the others; 0: none */
    uint64_t moves;      /* progress counter of rank 0 at the last check */
    double moved, asked; /* when rank 0 last made progress; when all ranks were asked, 0: not */
    bool stalled, reported;
    int answers;
} hub;

/* ---- failures -------------------------------------------------------------------------------- */

static void tell_all(hub *h, message_kind kind, const char *text)
{
    message m = {.kind = kind, .code = atomic_load(&dog.code)};
    snprintf(m.text, sizeof m.text, "%s", text);
    for (int i = 1; i < h->size; i++)
        if (h->r[i].fd >= 0) (void)message_send(h->r[i].fd, &m);
}

static void tell_cause(hub *h)
{
    if (h->told || (h->first && h->r[h->first].fd >= 0 && now_s() < dog.broken_at + FIRST_S))
        return;
    tell_all(h, atomic_load(&dog.lost) ? MSG_LOST : MSG_FAILED, dog.cause);
    h->told = true;
}

static void goes(hub *h, member *r)
{
    if (!r->bye) h->staying--;
    r->bye = true;
}

static void ended(hub *h, int rank, int why)
{
    char text[TEXT];
    member *r = &h->r[rank];
    const bool expected = r->bye || watchdog_broken();
    close(r->fd);
    r->fd = -1;
    goes(h, r);
    if (expected) return;
    const bool closed = why == 0 || why == ECONNRESET || why == EPIPE;
    /* Ranks run in lockstep, so its step was about the same as ours. */
    const long long step = atomic_load(&dog.step);
    if (closed)
        snprintf(text, sizeof text, "rank %d on %s died, step %lld (its connection closed)", rank,
                 dog.l->hosts[rank], step);
    else
        snprintf(text, sizeof text, "rank %d on %s cannot be reached, step %lld (%s)", rank,
                 dog.l->hosts[rank], step, strerror(why));
    atomic_store(&dog.lost, true);
    watchdog_cause(text, false, false);
    tell_cause(h);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Avoids repetition: all ranks tend to print the same warnings. */
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

static void note(member *r, const message *m)
{
    r->activity = m->activity;
    r->waiting = m->waiting;
    r->step = m->step;
    r->started = m->started;
    r->finished = m->finished;
}

static void take(hub *h, int rank, const message *m)
{
    member *r = &h->r[rank];
    message answer = {.kind = MSG_TAKEN};
    if (m->kind == MSG_HERE) {
        note(r, m);
        h->answers += !r->answered;
        r->answered = true;
    }
    if (m->kind == MSG_BYE) goes(h, r);
    if (m->kind == MSG_LINE && watchdog_new(m->text))
        log_line_of(stderr, rank, dog.l->hosts[rank], m->text);
    if (m->kind != MSG_FAILED) return;
    goes(h, r);
    if (watchdog_cause(m->text, false, false)) {
        h->first = rank;
        atomic_store(&dog.first_code, m->code);
    }
    (void)message_send(r->fd, &answer);
}

static void hear(hub *h, int rank, uint32_t events)
{
    message m;
    int r = 0;
    const int fd = h->r[rank].fd;
    if (fd < 0) return;
    while ((r = message_receive(fd, &m)) == 1) take(h, rank, &m);
    if (r < 0) ended(h, rank, errno);
    else if (events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) ended(h, rank, hung_up(fd));
}

/* ---- who joins ------------------------------------------------------------------------------- */

static void close_door(hub *h)
{
    for (int i = 0; i < dog.doors; i++) {
        if (dog.door[i] >= 0) close(dog.door[i]);
        dog.door[i] = -1;
    }
    for (int i = 0; i < STRANGERS; i++) {
        if (h->s[i].fd >= 0) close(h->s[i].fd);
        h->s[i].fd = -1;
    }
    h->open = false;
}

/* Takes the same time wherever the tokens differ. */
static bool same_token(const char *a, const char *b)
{
    unsigned char differ = 0;
    const size_t n = strlen(b);
    if (n == 0 || strlen(a) != n) return false;
    for (size_t i = 0; i < n; i++) differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

/* A stranger sent a message: it proves to be a rank, or its connection is closed. */
static void greet(hub *h, stranger *s, const message *m)
{
    message answer = {.kind = MSG_TAKEN};
    const int fd = s->fd;
    s->fd = -1;
    if (m->kind != MSG_HELLO || m->rank <= 0 || m->rank >= h->size || h->r[m->rank].known ||
        !same_token(m->text, h->v->token) || !watchdog_listen(fd, (uint64_t)m->rank) ||
        !message_send(fd, &answer)) {
        close(fd);
        return;
    }
    h->r[m->rank] = (member){.fd = fd, .known = true};
    h->joined++;
    h->staying++;
    hear(h, m->rank, 0);
    if (h->joined == h->size - 1 || h->joined >= dog.room) close_door(h);
}

static void read_stranger(hub *h, stranger *s, uint32_t events)
{
    message m;
    if (s->fd < 0) return;
    const int r = message_receive(s->fd, &m);
    if (r == 1) {
        greet(h, s, &m);
    } else if (r < 0 || events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) {
        close(s->fd);
        s->fd = -1;
    }
}

static void accept_from(hub *h, int door)
{
    for (int n = 0; n < GREETED && h->open; n++) {
        const int fd = door >= 0 ? watchdog_accept(door) : -1;
        if (fd < 0) return;
        const int k = (int)(h->came++ % STRANGERS);
        if (h->s[k].fd >= 0) close(h->s[k].fd);
        h->s[k] = (stranger){.fd = fd, .since = now_s()};
        watchdog_listen(fd, (uint64_t)h->size + (uint64_t)k);
        read_stranger(h, &h->s[k], 0); /* most ranks have sent their hello by now */
    }
    h->more = true;
}

/* Warn about ranks that have given up joining. */
static void tell_missing(const hub *h)
{
    char why[192] = "is a port of its host blocked?", address[INET_ADDRSTRLEN] = "";
    int first = 1;
    while (h->r[first].known) first++;
    if (h->v->n == 1) inet_ntop(AF_INET, &h->v->at[0].sin_addr, address, sizeof address);
    if (address[0]) snprintf(why, sizeof why, "at %s: is a port blocked there?", address);
    if (h->v->n == 0) snprintf(why, sizeof why, "%s", dog.no_door);
    else if (h->joined >= dog.room)
        snprintf(
            why, sizeof why,
            "rank 0 may open only %lld connections: raise the limit on open files (ulimit -Hn)",
            (long long)dog.room);
    log_line("warning: %d of %d ranks, the first of them rank %d on %s, have no connection to the "
             "watchdog of rank 0 (%s): if they fail, only MPI will notice",
             h->size - 1 - h->joined, h->size, first, dog.l->hosts[first], why);
}

/* While connections are accepted: close those that stay silent. */
static void keep_door(hub *h)
{
    const int keep = atomic_load(&dog.keep);
    for (int i = 0; i < dog.doors; i++) {
        if (keep >= 0 && i != keep && dog.door[i] >= 0) {
            close(dog.door[i]);
            dog.door[i] = -1;
        }
        accept_from(h, dog.door[i]);
    }
    for (int i = 0; i < STRANGERS; i++)
        if (h->s[i].fd >= 0 && now_s() - h->s[i].since > HELLO_S) {
            close(h->s[i].fd);
            h->s[i].fd = -1;
        }
}

static void complete(hub *h)
{
    close_door(h);
    if (h->joined < h->size - 1) tell_missing(h);
    h->complete = true;
}

/* ---- a job that makes no progress ------------------------------------------------------------ */

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

static void print_member(const hub *h, int rank)
{
    const member *r = &h->r[rank];
    if (!r->answered)
        say(stderr, "  rank %d on %s: %s\n", rank, dog.l->hosts[rank],
            r->fd >= 0 ? "does not answer" : "has no connection");
    else
        say(stderr, "  rank %d on %s: step %lld, %s, collective %llu (%llu done)%s\n", rank,
            dog.l->hosts[rank], (long long)r->step, activity_name(r->activity),
            (unsigned long long)r->started, (unsigned long long)r->finished,
            r->waiting ? ", waiting for other ranks" : "");
}

/* Whether other ranks wait for this one: it does not answer, or it has started fewer collectives
 * and is not waiting itself. */
static bool is_missing(const member *r, uint64_t most)
{
    return r->answered ? r->started < most && !r->waiting : r->fd >= 0;
}

/* If all ranks wait: whether this one started other collectives than most ranks. */
static bool is_odd(const member *r, uint64_t most, bool few_at_most)
{
    return r->answered && (r->started == most) == few_at_most;
}

/* Which ranks are suspicious, and why. */
typedef struct {
    uint64_t most;
    bool missing, odd, few_at_most;
} suspicion;

static suspicion suspect(const hub *h)
{
    suspicion s = {0};
    int at_most = 0, answered = 0;
    for (int i = 0; i < h->size; i++)
        if (h->r[i].answered && h->r[i].started > s.most) s.most = h->r[i].started;
    for (int i = 0; i < h->size; i++) {
        s.missing = s.missing || is_missing(&h->r[i], s.most);
        answered += h->r[i].answered;
        at_most += h->r[i].answered && h->r[i].started == s.most;
    }
    s.odd = !s.missing && at_most < answered;
    s.few_at_most = 2 * at_most <= answered;
    return s;
}

static void report_stall(const hub *h, double limit)
{
    const suspicion s = suspect(h);
    char list[512] = "";
    size_t used = 0;
    int lines = 0;
    log_line("warning: no progress for %.0f s; where each rank is:", limit);
    for (int i = 0; i < h->size; i++) {
        const bool look = s.missing ? is_missing(&h->r[i], s.most)
                                    : s.odd && is_odd(&h->r[i], s.most, s.few_at_most);
        if (look && used + 32 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%d", used ? ", " : "", i);
        if (lines == REPORT_LINES || (h->size > REPORT_LINES && i > 0 && !look)) continue;
        print_member(h, i);
        lines++;
    }
    if (lines < h->size) say(stderr, "  %d other ranks are not listed\n", h->size - lines);
    if (s.missing) log_line("warning: missing: rank %s", list);
    else if (s.odd)
        log_line("warning: all ranks wait, but not in the same collective: check rank %s", list);
}

static void ask_all(hub *h, double now)
{
    message m = {0};
    message_fill(&m);
    for (int i = 0; i < h->size; i++) h->r[i].answered = false;
    note(&h->r[0], &m);
    h->r[0].answered = true;
    h->answers = 0;
    h->asked = now;
    tell_all(h, MSG_WHERE, "");
}

static void watch(hub *h)
{
    const double now = now_s(), limit = (double)atomic_load(&dog.stall_ms) / 1e3;
    const uint64_t moves = atomic_load(&dog.moves);
    if (moves != h->moves) h->moved = now;
    h->moves = moves;
    const bool still = limit > 0 && now - h->moved > limit && !watchdog_broken();
    if (still && !h->stalled) ask_all(h, now);
    h->stalled = still;
    if (!still) {
        if (h->reported) log_line("the job makes progress again");
        h->reported = false;
        h->asked = 0;
    } else if (h->asked > 0 && (h->answers == h->staying || now - h->asked > ROLL_S)) {
        report_stall(h, limit);
        h->reported = true;
        h->asked = 0;
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void wait_for_any(hub *h, int ms)
{
    struct epoll_event e[EVENTS];
    const int n = epoll_wait(dog.epoll, e, EVENTS, h->more ? 0 : ms);
    h->more = false;
    for (int i = 0; i < n; i++) {
        const uint64_t name = e[i].data.u64, size = (uint64_t)h->size;
        if (name == 0) continue;
        if (name < size) hear(h, (int)name, e[i].events);
        else if (name < size + STRANGERS) read_stranger(h, &h->s[name - size], e[i].events);
    }
    if (h->open) keep_door(h);
}

static void say_goodbye(hub *h)
{
    tell_all(h, MSG_BYE, "");
    for (double end = now_s() + TAKEN_S; h->staying > 0 && now_s() < end;) wait_for_any(h, 10);
}

static void serve(hub *h)
{
    while (!atomic_load(&dog.stop)) {
        wait_for_any(h, watchdog_broken() ? 10 : (int)(1e3 * TURN_S));
        if (!h->complete && atomic_load(&dog.joined)) complete(h);
        watch(h);
        if (!watchdog_broken()) continue;
        tell_cause(h);
        if (watchdog_waits()) continue;
        const bool late = now_s() > dog.broken_at + TOLD_S;
        if (!h->told || (h->staying > 0 && !late)) continue;
        atomic_store(&dog.told, true);
        if (!atomic_load(&dog.failing) || now_s() > dog.broken_at + TOLD_S + TAKEN_S)
            end_process(EXIT_OTHER_RANK);
    }
}

void *watchdog_hub(void *v)
{
    hub h = {.v = v, .size = dog.l->size, .open = true, .moved = now_s()};
    for (int i = 0; i < STRANGERS; i++) h.s[i].fd = -1;
    h.r = calloc((size_t)h.size, sizeof *h.r);
    if (!h.r) {
        log_line("warning: no memory for the watchdog: if a rank fails, only MPI will notice");
        close_door(&h);
        return NULL;
    }
    for (int i = 0; i < h.size; i++) h.r[i].fd = -1;
    for (int i = 0; i < dog.doors; i++)
        watchdog_listen(dog.door[i], (uint64_t)h.size + STRANGERS + (uint64_t)i);
    if (dog.room == 0) close_door(&h);
    serve(&h);
    if (!watchdog_broken()) say_goodbye(&h);
    close_door(&h);
    for (int i = 0; i < h.size; i++)
        if (h.r[i].fd >= 0) close(h.r[i].fd);
    free(h.r);
    return NULL;
}
