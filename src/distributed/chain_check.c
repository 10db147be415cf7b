/* SPDX-License-Identifier: Apache-2.0
 *
 * Do the messages of all ranks of a chain fit together? Each rank has a list of sends and receives.
 * They are played through: a send always succeeds, a receive succeeds when the other rank has sent
 * the next message for it. What remains is an error: a receive without a send, a circle of ranks
 * that wait for each other, or a send without a receive. Every rank checks the same text, so all
 * fail with the same message.
 */
#include "distributed/chain.h"

typedef struct {
    int rank, peer;
    char kind;
    bool matched;   /* of a send: received */
    const char *at; /* source line; its length */
    int length;
} event;

/* rank r has the events [first[r], first[r+1]), and the next one that it does is next[r]. */
typedef struct {
    CTN__VEC(event) event;
    size_t *first, *next;
    int size;
} play;

void ctn__chain_line(ctn__text *t, int rank, ctn__chain_kind kind, int peer, const char *at)
{
    ctn__text_add(t, "%d %c %d %s\n", rank, (char)kind, peer, at);
}

static ctn_status read_lines(play *p, const char *text)
{
    while (*text) {
        event e = {.rank = -1};
        int n = 0;
        if (sscanf(text, "%d %c %d %n", &e.rank, &e.kind, &e.peer, &n) != 3 || e.rank < 0 ||
            e.rank >= p->size)
            return ctn_fail(CTN_EFORMAT, "dist_chain: cannot read the line %.80s", text);
        e.at = text + n;
        e.length = (int)strcspn(e.at, "\n");
        if (!ctn__vec_push(&p->event, e)) return CTN_ENOMEM;
        text = e.at + e.length;
        text += *text == '\n';
    }
    for (int r = 0; r <= p->size; r++) {
        size_t i = r > 0 ? p->first[r - 1] : 0;
        while (i < p->event.n && p->event.at[i].rank < r) i++;
        p->first[r] = i;
        if (r < p->size) p->next[r] = i;
    }
    return CTN_OK;
}

static bool is_over(const play *p, int r)
{
    return p->next[r] == p->first[r + 1];
}

/* The oldest message from `from` to `to` that was sent and not received. */
static event *find_message(const play *p, int from, int to)
{
    for (size_t i = p->first[from]; i < p->next[from]; i++) {
        event *e = &p->event.at[i];
        if (e->kind == CTN__CHAIN_SEND && e->peer == to && !e->matched) return e;
    }
    return NULL;
}

/* As far as rank r gets; true: it did something. */
static bool advance(play *p, int r)
{
    const size_t begin = p->next[r];
    for (; !is_over(p, r); p->next[r]++) {
        const event *e = &p->event.at[p->next[r]];
        event *m = e->kind == CTN__CHAIN_RECV ? find_message(p, e->peer, r) : NULL;
        if (e->kind == CTN__CHAIN_RECV && !m) break;
        if (m) m->matched = true;
    }
    return p->next[r] != begin;
}

/* Where another rank added its last message, for the second source line of an error. */
static void last_line(const play *p, int r, char *buf, size_t room)
{
    if (p->first[r] == p->first[r + 1]) {
        snprintf(buf, room, "it has no parts");
        return;
    }
    const event *e = &p->event.at[p->first[r + 1] - 1];
    snprintf(buf, room, "the last part of its chain is at %.*s", e->length, e->at);
}

/* Ranks that wait in a circle, of which r is one. */
static ctn_status circle(const play *p, int r)
{
    ctn__text t = {0};
    int at = r;
    do {
        const event *e = &p->event.at[p->next[at]];
        ctn__text_add(&t, "%srank %d receives from rank %d at %.*s", t.n ? ", " : "", at, e->peer,
                      e->length, e->at);
        at = e->peer;
    } while (at != r);
    ctn_status st = ctn_fail(CTN_EARG, "dist_chain: ranks wait for each other in a circle: %s",
                             t.s ? t.s : "out of memory");
    ctn__text_free(&t);
    return st;
}

/* Rank r waits. Its peer has finished, or waits as well: follow it, at most once to each rank. */
static ctn_status stuck(const play *p, int r)
{
    char other[256];
    for (int steps = 0; steps <= p->size; steps++) {
        const event *e = &p->event.at[p->next[r]];
        if (is_over(p, e->peer)) {
            last_line(p, e->peer, other, sizeof other);
            return ctn_fail(CTN_EARG,
                            "dist_chain: rank %d receives from rank %d at %.*s, but rank %d sends "
                            "it nothing more; %s",
                            r, e->peer, e->length, e->at, e->peer, other);
        }
        r = e->peer;
    }
    return circle(p, r);
}

static ctn_status check_ends(const play *p, int r)
{
    const event *end = NULL;
    for (size_t i = p->first[r]; i < p->first[r + 1]; i++) {
        const event *e = &p->event.at[i];
        char other[256];
        if (e->kind == CTN__CHAIN_SEND && !e->matched) {
            last_line(p, e->peer, other, sizeof other);
            return ctn_fail(CTN_EARG,
                            "dist_chain: rank %d sends to rank %d at %.*s, but rank %d never "
                            "receives it; %s",
                            r, e->peer, e->length, e->at, e->peer, other);
        }
        if (e->kind != CTN__CHAIN_END) continue;
        if (end)
            return ctn_fail(CTN_EARG,
                            "dist_chain: the parts of rank %d at %.*s and at %.*s both have no "
                            "receiver, but a chain has one result",
                            r, end->length, end->at, e->length, e->at);
        end = e;
    }
    return CTN_OK;
}

static ctn_status check(play *p, const char *text)
{
    CTN_TRY(read_lines(p, text));
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < p->size; r++) moved |= advance(p, r);
    }
    for (int r = 0; r < p->size; r++)
        if (!is_over(p, r)) return stuck(p, r);
    for (int r = 0; r < p->size; r++) CTN_TRY(check_ends(p, r));
    return CTN_OK;
}

ctn_status ctn__chain_check(const char *text, int size)
{
    play p = {.size = size};
    p.first = ctn__calloc(2 * (size_t)size + 1, sizeof *p.first);
    if (!p.first) return CTN_ENOMEM;
    p.next = p.first + size + 1;
    ctn_status st = check(&p, text);
    ctn__vec_free(&p.event);
    ctn__free(p.first);
    return st;
}
