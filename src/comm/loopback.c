/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport inside one process, in which ranks are threads. A message is copied when it is sent
 * and again when the receiver asks for it. So no thread ever touches another rank's buffers, and a
 * rank that gives up may free its own at once. Used by ctn_comm_loopback and by tests, also under
 * sanitizers.
 *
 * Locks: each rank's `lock` guards its inbox; the lock of the group guards sums, regions and the
 * number of users. A thread holds one lock at a time. Posted requests belong to the rank's own
 * thread.
 */
#include "comm/comm.h"

typedef struct message message;
struct message {
    message *next;
    int from, tag;
    size_t bytes;
    unsigned char data[];
};

/* One allreduce of all ranks, which number their allreduces alike. */
typedef struct sum sum;
struct sum {
    sum *next;
    uint64_t number;
    int64_t count;
    ctn_dtype type;
    int came, took;
    /* (size, count): the contributions in rank order; at the end the first one is the sum. */
    unsigned char *part;
    float *wide; /* (count): 16-bit types are added here */
};

/* Something that does not complete at once: a receive, or a part in a sum. */
typedef struct request request;
struct request {
    request *next;
    void *buf;
    size_t bytes;
    int from, tag;
    sum *sum; /* NULL: a receive */
    bool done;
};

typedef struct group group;
typedef struct {
    ctn__net net; /* must be first, because a net is cast to its loop */
    group *g;
    pthread_mutex_t lock;
    message *inbox;   /* oldest first */
    request *posted;  /* oldest first */
    uint64_t sums;    /* number begun; guarded by the group's lock */
    atomic_bool left; /* freed; sends nothing any more */
} loop;

struct group {
    int size, users;
    pthread_mutex_t lock;
    sum *sums; /* not yet taken by all */
    void **region;
    size_t region_bytes;
    int *node;
    loop rank[];
};

/* ---- messages ------------------------------------------------------------------------------- */

static ctn_status loop_send(ctn__net *n, const void *buf, size_t bytes, int to, int tag,
                            ctn__net_req *r)
{
    loop *peer = &((loop *)n)->g->rank[to];
    message *m = ctn__malloc(sizeof *m + bytes);
    if (m == NULL) return CTN_ENOMEM;
    *m = (message){.from = n->rank, .tag = tag, .bytes = bytes};
    if (bytes > 0) memcpy(m->data, buf, bytes);
    pthread_mutex_lock(&peer->lock);
    message **at = &peer->inbox;
    while (*at != NULL) at = &(*at)->next;
    if (!peer->left) {
        *at = m;
        m = NULL;
    }
    pthread_mutex_unlock(&peer->lock);
    ctn__free(m); /* the receiver has left */
    r->word[0] = 0;
    return CTN_OK;
}

static ctn_status post(loop *l, const request *what, ctn__net_req *r)
{
    request *q = ctn__malloc(sizeof *q);
    if (q == NULL) return CTN_ENOMEM;
    *q = *what;
    request **at = &l->posted;
    while (*at != NULL) at = &(*at)->next;
    *at = q;
    r->word[0] = (uintptr_t)q;
    return CTN_OK;
}

static ctn_status loop_recv(ctn__net *n, void *buf, size_t bytes, int from, int tag,
                            ctn__net_req *r)
{
    return post((loop *)n, &(request){.buf = buf, .bytes = bytes, .from = from, .tag = tag}, r);
}

/* Takes the first matching message from the inbox. A sender that left before the search sends no
 * more messages. Called with the rank's lock held. */
static ctn_status receive(loop *l, request *q)
{
    bool gone = l->g->rank[q->from].left;
    message **at = &l->inbox, *m;
    while ((m = *at) != NULL && (m->from != q->from || m->tag != q->tag)) at = &m->next;
    if (m == NULL && gone)
        return ctn_fail(CTN_EPEER, "rank %d has left, but rank %d is waiting for a message from it",
                        q->from, l->net.rank);
    if (m == NULL) return CTN_OK;
    if (m->bytes != q->bytes)
        return ctn__net_length(ctn_fail, q->from, l->net.rank, q->bytes, m->bytes > q->bytes);
    if (m->bytes > 0) memcpy(q->buf, m->data, m->bytes);
    *at = m->next;
    ctn__free(m);
    q->done = true;
    return CTN_OK;
}

static ctn_status loop_heard(ctn__net *n, int tag, void *buf, size_t bytes, bool *got)
{
    loop *l = (loop *)n;
    pthread_mutex_lock(&l->lock);
    message **at = &l->inbox, *m;
    while ((m = *at) != NULL && m->tag != tag) at = &m->next;
    if (m != NULL) *at = m->next;
    pthread_mutex_unlock(&l->lock);
    *got = m != NULL;
    if (m != NULL) memcpy(buf, m->data, bytes < m->bytes ? bytes : m->bytes);
    ctn__free(m);
    return CTN_OK;
}

/* ---- sums: each rank gives a copy, the last one adds, each takes the result ----------------- */

static void sum_free(sum *s)
{
    if (s == NULL) return;
    ctn__free(s->part);
    ctn__free(s->wide);
    ctn__free(s);
}

static ctn_status sum_new(sum **out, const group *g, uint64_t number, int64_t count, ctn_dtype type)
{
    size_t bytes = (size_t)count * ctn_dtype_size(type);
    bool narrow = type == CTN_BF16 || type == CTN_F16;
    sum *s = *out = ctn__calloc(1, sizeof *s);
    if (s == NULL) return CTN_ENOMEM;
    *s = (sum){.number = number, .count = count, .type = type};
    s->part = ctn__malloc(ctn__mul((size_t)g->size, bytes));
    if (narrow) s->wide = ctn__malloc(ctn__mul((size_t)count, sizeof *s->wide));
    if (s->part != NULL && (s->wide != NULL || !narrow)) return CTN_OK;
    sum_free(s);
    *out = NULL;
    return CTN_ENOMEM;
}

static void sum_up(const group *g, sum *s)
{
    size_t bytes = (size_t)s->count * ctn_dtype_size(s->type);
    void *y = s->wide != NULL ? (void *)s->wide : s->part;
    ctn_dtype type = s->wide != NULL ? CTN_F32 : s->type;
    if (s->wide != NULL) ctn__from_wire(y, s->part, s->count, type, s->type);
    for (int i = 1; i < g->size; i++)
        ctn__sum_into(y, s->part + (size_t)i * bytes, s->count, type, s->type);
    if (s->wide != NULL) ctn__to_wire(s->part, y, s->count, type, s->type);
}

/* Called with the group's lock held. */
static ctn_status give(loop *l, const void *buf, int64_t count, ctn_dtype type, sum **out)
{
    group *g = l->g;
    size_t bytes = (size_t)count * ctn_dtype_size(type);
    sum **at = &g->sums;
    while (*at != NULL && (*at)->number != l->sums) at = &(*at)->next;
    if (*at == NULL) CTN_TRY(sum_new(at, g, l->sums, count, type));
    sum *s = *out = *at;
    if (s->count != count || s->type != type)
        return ctn_fail(CTN_EENGINE, "rank %d sums %lld elements of %s, other ranks sum %lld of %s",
                        l->net.rank, (long long)count, ctn_dtype_name(type), (long long)s->count,
                        ctn_dtype_name(s->type));
    if (bytes > 0) memcpy(s->part + (size_t)l->net.rank * bytes, buf, bytes);
    l->sums++;
    if (++s->came == g->size) sum_up(g, s);
    return CTN_OK;
}

static ctn_status loop_allreduce(ctn__net *n, void *buf, int64_t count, ctn_dtype type,
                                 uint64_t again, ctn__net_req *r)
{
    (void)again;
    loop *l = (loop *)n;
    sum *s = NULL;
    pthread_mutex_lock(&l->g->lock);
    ctn_status st = give(l, buf, count, type, &s);
    pthread_mutex_unlock(&l->g->lock);
    CTN_TRY(st);
    size_t bytes = (size_t)count * ctn_dtype_size(type);
    return post(l, &(request){.buf = buf, .bytes = bytes, .sum = s}, r);
}

/* Called with the group's lock held. */
static ctn_status take(loop *l, request *q)
{
    group *g = l->g;
    sum *s = q->sum;
    for (int i = 0; i < g->size && s->came < g->size; i++)
        if (g->rank[i].left && g->rank[i].sums <= s->number)
            return ctn_fail(CTN_EPEER, "rank %d has left, but rank %d is waiting for a sum with it",
                            i, l->net.rank);
    if (s->came < g->size) return CTN_OK;
    if (q->bytes > 0) memcpy(q->buf, s->part, q->bytes);
    q->done = true;
    if (++s->took < g->size) return CTN_OK;
    sum **at = &g->sums;
    while (*at != s) at = &(*at)->next;
    *at = s->next;
    sum_free(s);
    return CTN_OK;
}

/* ---- progress ------------------------------------------------------------------------------- */

/* In the order of posting and under one lock, so that the first of two receives with the same tag
 * gets the first message. */
static ctn_status progress(loop *l)
{
    ctn_status st = CTN_OK;
    bool sums = false;
    pthread_mutex_lock(&l->lock);
    for (request *q = l->posted; q != NULL && st == CTN_OK; q = q->next) {
        if (q->sum != NULL) sums = true;
        else if (!q->done) st = receive(l, q);
    }
    pthread_mutex_unlock(&l->lock);
    if (!sums || st != CTN_OK) return st;
    pthread_mutex_lock(&l->g->lock);
    for (request *q = l->posted; q != NULL && st == CTN_OK; q = q->next)
        if (q->sum != NULL && !q->done) st = take(l, q);
    pthread_mutex_unlock(&l->g->lock);
    return st;
}

static ctn_status loop_test(ctn__net *n, ctn__net_req *r, bool *done)
{
    loop *l = (loop *)n;
    request *q = (request *)(uintptr_t)r->word[0];
    *done = true;
    if (q == NULL) return CTN_OK;
    if (!q->done) CTN_TRY(progress(l));
    *done = q->done;
    if (!q->done) return CTN_OK;
    request **at = &l->posted;
    while (*at != q) at = &(*at)->next;
    *at = q->next;
    ctn__free(q);
    r->word[0] = 0;
    return CTN_OK;
}

static bool loop_cancel(ctn__net *n, ctn__net_req *r)
{
    request **at = &((loop *)n)->posted, *q = (request *)(uintptr_t)r->word[0];
    while (q != NULL && *at != q) at = &(*at)->next;
    if (q != NULL) *at = q->next;
    ctn__free(q);
    r->word[0] = 0;
    return true;
}

/* ---- regions -------------------------------------------------------------------------------- */

/* Readers are told by a message; its lock orders the write before their read. */
static ctn_status loop_put(ctn__net *n, const void *buf, size_t bytes, int to, size_t offset,
                           ctn__net_req *r)
{
    const group *g = ((loop *)n)->g;
    if (bytes > 0) memcpy((char *)g->region[to] + offset, buf, bytes);
    r->word[0] = 0;
    return CTN_OK;
}

static ctn_status regions_new(group *g, size_t bytes)
{
    void **at = ctn__calloc((size_t)g->size, sizeof *at);
    bool ok = at != NULL;
    for (int i = 0; ok && i < g->size; i++) {
        ok = (at[i] = ctn__aligned(bytes)) != NULL;
        if (ok) memset(at[i], 0, bytes);
    }
    for (int i = 0; !ok && at != NULL && i < g->size; i++) ctn__free(at[i]);
    if (!ok) ctn__free(at);
    if (!ok) return CTN_ENOMEM;
    g->region = at;
    g->region_bytes = bytes;
    return CTN_OK;
}

/* The first rank to ask makes all regions, so that it does not wait for others: one thread may make
 * all communicators. */
static ctn_status loop_region(ctn__net *n, size_t bytes, void **at)
{
    group *g = ((loop *)n)->g;
    ctn_status st = CTN_OK;
    pthread_mutex_lock(&g->lock);
    if (g->region == NULL) st = regions_new(g, bytes);
    else if (g->region_bytes != bytes)
        st = ctn_fail(CTN_EARG, "rank %d wants a region of %zu bytes, other ranks want %zu",
                      n->rank, bytes, g->region_bytes);
    for (int i = 0; st == CTN_OK && i < g->size; i++)
        at[i] = g->node[i] == g->node[n->rank] ? g->region[i] : NULL;
    pthread_mutex_unlock(&g->lock);
    return st;
}

static bool loop_threads(const ctn__net *n)
{
    (void)n;
    return true;
}

/* ---- the group ------------------------------------------------------------------------------ */

static void group_free(group *g)
{
    while (g->sums != NULL) {
        sum *s = g->sums;
        g->sums = s->next;
        sum_free(s);
    }
    for (int i = 0; i < g->size; i++) {
        if (g->region != NULL) ctn__free(g->region[i]);
        pthread_mutex_destroy(&g->rank[i].lock);
    }
    pthread_mutex_destroy(&g->lock);
    ctn__free(g->region);
    ctn__free(g->node);
    ctn__free(g);
}

static void loop_free(ctn__net *n)
{
    loop *l = (loop *)n;
    group *g = l->g;
    pthread_mutex_lock(&l->lock);
    l->left = true;
    while (l->inbox != NULL) {
        message *m = l->inbox;
        l->inbox = m->next;
        ctn__free(m);
    }
    pthread_mutex_unlock(&l->lock);
    while (l->posted != NULL) {
        request *q = l->posted;
        l->posted = q->next;
        ctn__free(q);
    }
    pthread_mutex_lock(&g->lock);
    int users = --g->users;
    pthread_mutex_unlock(&g->lock);
    if (users == 0) group_free(g);
}

static const ctn__net_vt loopback = {.send = loop_send,
                                     .recv = loop_recv,
                                     .allreduce = loop_allreduce,
                                     .put = loop_put,
                                     .heard = loop_heard,
                                     .test = loop_test,
                                     .cancel = loop_cancel,
                                     .region = loop_region,
                                     .threads = loop_threads,
                                     .free = loop_free};

ctn_status ctn__net_loopback_nodes(ctn__net **out, int n, const int *node)
{
    group *g = ctn__calloc(1, sizeof *g + (size_t)n * sizeof *g->rank);
    int *map = ctn__calloc((size_t)n, sizeof *map);
    if (g == NULL || map == NULL) {
        ctn__free(g);
        ctn__free(map);
        return CTN_ENOMEM;
    }
    if (node != NULL) memcpy(map, node, (size_t)n * sizeof *map);
    g->size = g->users = n;
    g->node = map;
    pthread_mutex_init(&g->lock, NULL);
    for (int i = 0; i < n; i++) {
        loop *l = &g->rank[i];
        l->g = g;
        l->net = (ctn__net){.vt = &loopback, .rank = i, .size = n, .node = map};
        snprintf(l->net.name, sizeof l->net.name, "loopback, %d threads", n);
        pthread_mutex_init(&l->lock, NULL);
        out[i] = &l->net;
    }
    return CTN_OK;
}

ctn_status ctn__net_loopback(ctn__net **out, int n)
{
    return ctn__net_loopback_nodes(out, n, NULL);
}

bool ctn__net_is_loopback(const ctn__net *net)
{
    return net->vt == &loopback;
}
