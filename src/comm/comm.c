/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators: creation, freeing, and the calls that wait. Small messages (broadcast, allgather,
 * barrier) have tags of their own, so they may be used while operations of pieces.c are in flight.
 */
#include <sched.h>
#include <time.h>

#include "comm/comm.h"

static ctn_status check(const ctn_comm *c)
{
    if (c->failed) return ctn_fail(CTN_EPEER, "%s", c->why);
    return CTN_OK;
}

/* One message of a call that waits. It uses a buffer of its own, because the transport may still
 * use the buffer after a failure, when the caller is free to reuse its own memory. */
typedef struct {
    ctn__net_req req;
    void *copy; /* NULL: no message */
    void *to;   /* where a received message is copied to; NULL: it is a send */
    size_t bytes;
    bool done;
} parcel;

static ctn_status post(ctn_comm *c, parcel *m, const void *out, void *in, size_t bytes, int peer,
                       int tag)
{
    ctn__net *net = c->net;
    *m = (parcel){.to = in, .bytes = bytes};
    if (bytes == 0) return CTN_OK;
    m->copy = ctn__malloc(bytes);
    if (!m->copy) return CTN_ENOMEM;
    if (out) memcpy(m->copy, out, bytes);
    pthread_mutex_lock(c->lock);
    ctn_status st = out ? net->vt->send(net, m->copy, bytes, peer, tag, &m->req)
                        : net->vt->recv(net, m->copy, bytes, peer, tag, &m->req);
    c->messages += out != NULL;
    c->sent_small += out ? bytes : 0;
    pthread_mutex_unlock(c->lock);
    if (st < 0) {
        ctn__free(m->copy);
        m->copy = NULL;
    }
    return st;
}

/* Under the lock. */
static ctn_status look(ctn_comm *c, parcel *m)
{
    if (!m->copy || m->done) return CTN_OK;
    return c->net->vt->test(c->net, &m->req, &m->done);
}

static bool over(const parcel *m)
{
    return !m->copy || m->done;
}

static void take(ctn_comm *c, parcel *m)
{
    if (!m->copy) return;
    if (m->done && m->to) memcpy(m->to, m->copy, m->bytes);
    if (!m->done) { /* the group has failed */
        pthread_mutex_lock(c->lock);
        m->done = c->net->vt->cancel(c->net, &m->req);
        pthread_mutex_unlock(c->lock);
    }
    if (m->done) ctn__free(m->copy);
}

/* Waits until both are done, while everything else makes progress. */
static ctn_status wait_for(ctn_comm *c, parcel *a, parcel *b)
{
    ctn_status st = CTN_OK;
    int turns = 0;
    const ctn__coreset *cores = ctn__cores_pause();
    c->waiting++;
    while (st == CTN_OK && !(over(a) && over(b))) {
        pthread_mutex_lock(c->lock);
        st = look(c, a);
        if (st == CTN_OK) st = look(c, b);
        pthread_mutex_unlock(c->lock);
        if (st == CTN_OK) st = ctn__comm_poll(c);
        if (st == CTN_OK && !(over(a) && over(b))) st = ctn__comm_turn(c, &turns);
    }
    c->waiting--;
    ctn__cores_resume(cores);
    if (st < 0) ctn_comm_fail(c, ctn_error_message());
    take(c, a);
    take(c, b);
    return st;
}

ctn_status ctn__comm_swap(ctn_comm *c, int tag, const void *out, size_t nout, int to, void *in,
                          size_t nin, int from)
{
    parcel s = {0}, r = {0};
    CTN_TRY(check(c));
    CTN_TRY(post(c, &r, NULL, in, nin, from, tag));
    ctn_status st = post(c, &s, out, NULL, nout, to, tag);
    if (st < 0) { /* the receive would match another call's message */
        ctn_comm_fail(c, ctn_error_message());
        take(c, &r);
        return st;
    }
    return wait_for(c, &r, &s);
}

/* A binomial tree for one message, log2 p steps. */
static ctn_status broadcast(ctn_comm *c, void *buf, size_t bytes, int root)
{
    int size = c->place.size, me = (c->place.rank - root + size) % size, bit = 1;
    for (; bit < size && !(me & bit); bit <<= 1) continue;
    if (me != 0)
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_BROADCAST, NULL, 0, 0, buf, bytes,
                               (me - bit + root) % size));
    for (bit >>= 1; bit > 0; bit >>= 1)
        if (me + bit < size)
            CTN_TRY(ctn__comm_swap(c, CTN__TAG_BROADCAST, buf, bytes, (me + bit + root) % size,
                                   NULL, 0, 0));
    return CTN_OK;
}

ctn_status ctn_comm_broadcast(ctn_comm *c, void *buf, size_t bytes, int root)
{
    enum { MOST = 4 << 20 }; /* bytes that are copied at a time */
    char *at = buf;
    if (root < 0 || root >= c->place.size)
        return ctn_fail(CTN_EARG, "comm_broadcast: root %d does not exist, there are %d ranks",
                        root, c->place.size);
    CTN_TRY(check(c));
    for (size_t n; bytes > 0; bytes -= n, at += n) {
        n = bytes < MOST ? bytes : MOST;
        CTN_TRY(broadcast(c, at, n, root));
    }
    return CTN_OK;
}

/* Bruck's algorithm: in step k every rank sends the 2^k blocks that it has and receives as many
 * more. Until the end, blocks are kept in the order own, next rank, the one after it, ... */
ctn_status ctn_comm_allgather(ctn_comm *c, const void *mine, size_t bytes, void *all)
{
    const int size = c->place.size, rank = c->place.rank;
    ctn_status st = CTN_OK;
    char *a = all;
    CTN_TRY(check(c));
    if (bytes == 0) return CTN_OK;
    char *turned = ctn__malloc(ctn__mul((size_t)size, bytes));
    if (!turned) return CTN_ENOMEM;
    memcpy(turned, mine, bytes);
    for (int d = 1; d < size && st == CTN_OK; d <<= 1) {
        const size_t n = (size_t)(d < size - d ? d : size - d) * bytes;
        st = ctn__comm_swap(c, CTN__TAG_GATHER, turned, n, (rank - d + size) % size,
                            turned + (size_t)d * bytes, n, (rank + d) % size);
    }
    for (int i = 0; i < size && st == CTN_OK; i++)
        memcpy(a + (size_t)((rank + i) % size) * bytes, turned + (size_t)i * bytes, bytes);
    ctn__free(turned);
    return st;
}

/* Dissemination barrier: in step k every rank learns of 2^k more ranks. */
ctn_status ctn_comm_barrier(ctn_comm *c)
{
    int size = c->place.size, rank = c->place.rank;
    char mine = 0, theirs = 0;
    CTN_TRY(check(c));
    for (int d = 1; d < size; d <<= 1)
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_BARRIER, &mine, 1, (rank + d) % size, &theirs, 1,
                               (rank - d + size) % size));
    return CTN_OK;
}

ctn_status ctn_comm_allreduce(ctn_comm *c, void *buf, int64_t count, ctn_dtype type)
{
    ctn__coll *x = NULL;
    if (count < 0 || (!buf && count > 0))
        return ctn_fail(CTN_EARG, "comm_allreduce: count is %lld or the buffer is NULL",
                        (long long)count);
    if (type != CTN_F32 && type != CTN_F64 && type != CTN_I32 && type != CTN_I64)
        return ctn_fail(CTN_EDTYPE, "comm_allreduce: cannot sum %s, expected f32, f64, i32 or i64",
                        ctn_dtype_name(type));
    CTN_TRY(ctn__coll_start(c, &x, NULL, buf, count, type, c->opt.wire));
    return ctn__coll_wait(x);
}

/* ---- making --------------------------------------------------------------------------------- */

static ctn_status check_options(ctn_comm_opt *o)
{
    if (!o->wire) o->wire = CTN_F32;
    if (o->wire != CTN_F32 && o->wire != CTN_BF16 && o->wire != CTN_F16)
        return ctn_fail(CTN_EARG, "comm: wire is %s, expected f32, bf16 or f16",
                        ctn_dtype_name(o->wire));
    if (o->segment <= 0) o->segment = 128 * 1024;
    if (o->segment < 1024) o->segment = 1024;
    if (o->window <= 0) o->window = 8;
    if (o->window > CTN__WINDOW_MOST) o->window = CTN__WINDOW_MOST;
    return CTN_OK;
}

ctn_status ctn_comm_set_algorithm(ctn_comm *c, const char *name)
{
    const ctn__algorithm *a = NULL;
    if (name && strcmp(name, "auto") != 0) {
        a = ctn__algorithm_find(name);
        if (!a) return ctn_fail(CTN_EARG, "comm: unknown algorithm %s", name);
        if ((a->native || a->region) && c->net->survives && c->place.size > 1)
            return ctn_fail(CTN_EARG,
                            "comm: algorithm %s cannot continue without a lost rank, which this "
                            "job was started to do; choose another algorithm",
                            name);
        if (a->native && !ctn__algorithm_fits(a, c))
            return ctn_fail(
                CTN_EARG,
                "comm: algorithm %s cannot use wire type %s, because MPI would add in %s; choose "
                "another algorithm or wire f32",
                name, ctn_dtype_name(c->opt.wire), ctn_dtype_name(c->opt.wire));
        if (!ctn__algorithm_fits(a, c))
            return ctn_fail(
                CTN_EARG,
                "comm: algorithm %s cannot run with %d ranks on %d nodes and wire type %s", name,
                c->place.size, c->place.nodes, ctn_dtype_name(c->opt.wire));
        if (a->region) CTN_TRY(ctn__regions_make(c));
    }
    c->alg = c->latest = a;
    memset(c->choice, 0, sizeof c->choice);
    return CTN_OK;
}

ctn_status ctn__comm_new(ctn_comm **out, ctn__net *net, const ctn_comm_opt *opt)
{
    ctn_status st = CTN_OK;
    *out = NULL;
    ctn_comm *c = ctn__calloc(1, sizeof *c);
    if (!c) {
        net->vt->free(net);
        return CTN_ENOMEM;
    }
    c->net = net;
    pthread_mutex_init(&c->own_lock, NULL);
    c->lock = net->lock ? net->lock : &c->own_lock;
    pthread_cond_init(&c->begun, NULL);
    CTN_TRY_GOTO(st, fail, ctn__opt("comm", &c->opt, sizeof c->opt, opt));
    CTN_TRY_GOTO(st, fail, check_options(&c->opt));
    CTN_TRY_GOTO(st, fail, ctn__place_make(c));
    c->place.pairwise = c->opt.wire != CTN_F32;
    CTN_TRY_GOTO(st, fail, ctn__pieces_make(c));
    CTN_TRY_GOTO(st, fail, ctn_comm_set_algorithm(c, c->opt.algorithm));
    c->opt.algorithm = NULL; /* the caller's string */
    if (c->place.size == 1) c->alg = c->latest = &ctn__flat;
    *out = c;
    return CTN_OK;
fail:
    ctn_comm_free(c);
    return st;
}

ctn_status ctn_comm_open(ctn_comm **out, const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    *out = NULL;
    CTN_TRY(ctn__net_world(&net));
    if (!net) CTN_TRY(ctn__net_loopback(&net, 1));
    return ctn__comm_new(out, net, opt);
}

static ctn_status new_like(ctn_comm **out, ctn__net *net, const ctn_comm_opt *opt,
                           const ctn_comm *like)
{
    CTN_TRY(ctn__comm_new(out, net, opt));
    (*out)->guest = like->guest;
    (*out)->family = like->family;
    (*out)->member = like->member;
    return CTN_OK;
}

static ctn_status new_guest(ctn_comm **out, ctn__net *net, const ctn_comm_opt *opt)
{
    CTN_TRY(ctn__comm_new(out, net, opt));
    (*out)->guest = true;
    return CTN_OK;
}

int ctn_comm_survives(const ctn_comm *c)
{
    return c && c->net->survives;
}

int ctn_comm_lost(const ctn_comm *c)
{
    return ctn_comm_survives(c) && c->failed && !c->heard && !c->told[0];
}

ctn_status ctn_comm_shrink(ctn_comm **out, ctn_comm *c, const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    *out = NULL;
    if (!ctn_comm_lost(c))
        return ctn_fail(CTN_ESTATE, c->net->survives
                                        ? "comm_shrink: no rank of this communicator is lost"
                                        : "comm_shrink: this job cannot continue without a lost "
                                          "rank: it needs Open MPI 5, started with mpirun "
                                          "--with-ft ulfm");
    ctn__progress_stop(c);
    CTN_TRY(c->net->vt->shrink(c->net, &net));
    return new_like(out, net, opt, c);
}

ctn_status ctn_comm_again(ctn_comm **out, ctn_comm *c, const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    *out = NULL;
    if (!c->net->vt->again)
        return ctn_fail(CTN_ESTATE, "comm_again: not possible with %s", c->net->name);
    CTN_TRY(c->net->vt->again(c->net, &net));
    return new_like(out, net, opt, c);
}

ctn_status ctn_comm_adopt(ctn_comm **out, const char *abi, const void *handle,
                          const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    *out = NULL;
    CTN_TRY(ctn__net_adopt(&net, abi, handle));
    return new_guest(out, net, opt);
}

ctn_status ctn_comm_adopt_fortran(ctn_comm **out, int handle, const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    *out = NULL;
    CTN_TRY(ctn__net_adopt_fortran(&net, handle));
    return new_guest(out, net, opt);
}

ctn_status ctn_comm_loopback(ctn_comm **out, int n, const ctn_comm_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn__net **net = NULL;
    if (n < 1 || n > 4096)
        return ctn_fail(CTN_EARG, "comm_loopback: got %d ranks, expected 1 to 4096", n);
    memset(out, 0, (size_t)n * sizeof *out);
    net = ctn__calloc((size_t)n, sizeof(ctn__net *));
    if (!net) return CTN_ENOMEM;
    CTN_TRY_GOTO(st, done, ctn__net_loopback(net, n));
    for (int i = 0; i < n; i++) {
        if (st == CTN_OK) st = ctn__comm_new(&out[i], net[i], opt);
        else net[i]->vt->free(net[i]);
    }
    for (int i = 0; i < n && st < 0; i++) {
        ctn_comm_free(out[i]);
        out[i] = NULL;
    }
done:
    ctn__free(net);
    return st;
}

/* A rank that has failed does not take part in the collective end of the transport. This rank must
 * know before it waits there: the barrier can still hear of the failure. Without regions nothing
 * waits, and a look is enough. */
static void hear_before_end(ctn_comm *c)
{
    const bool had_error = ctn_error_status() < 0;
    if (c->failed || !c->net->vt->together || c->place.size < 2) return;
    const ctn_status st = c->region ? ctn_comm_barrier(c) : ctn__comm_listen(c);
    if (st < 0 && !had_error) ctn_error_clear();
}

void ctn_comm_free(ctn_comm *c)
{
    if (!c) return;
    ctn__progress_stop(c);
    ctn__parcels_finish(c);
    hear_before_end(c);
    (void)ctn__comm_abandon(c);
    if (!c->failed || !c->net->vt->together) c->net->vt->free(c->net);
    ctn__pieces_free(c);
    ctn__free(c->coming);
    ctn__free(c->tables);
    pthread_cond_destroy(&c->begun);
    pthread_mutex_destroy(&c->own_lock);
    ctn__free(c);
}

/* ---- failures ------------------------------------------------------------------------------- */

enum { FAILED_BYTES = sizeof((ctn_comm *)0)->told, QUIET = 256 };

/* Under the lock. The request is never waited for: short messages need no further call. */
static void tell_rank(ctn_comm *c, int to)
{
    ctn__net_req q;
    bool done;
    if (c->net->vt->send(c->net, c->told, FAILED_BYTES, to, CTN__TAG_FAILED, &q) < 0) return;
    c->messages++;
    (void)c->net->vt->test(c->net, &q, &done);
}

/* Sends c->told to the ranks 1, 2, 4, ... further on and back. Each of them passes on the first
 * such message that it receives. So all ranks together send at most 2 p log2 p messages, however
 * many of them fail, and the ranks that are left reach each other in many ways if some are gone. */
static void tell_ranks(ctn_comm *c)
{
    const int size = c->place.size, rank = c->place.rank;
    pthread_mutex_lock(c->lock);
    for (int d = 1; d < size; d <<= 1) {
        const int on = (rank + d) % size, back = (rank - d + size) % size;
        tell_rank(c, on);
        /* The ranks that are d back may be those that are another power of two on. */
        const int far = size - d;
        if ((far & (far - 1)) != 0) tell_rank(c, back);
    }
    pthread_mutex_unlock(c->lock);
}

void ctn_comm_break(ctn_comm *c, const char *message)
{
    if (!c || c->heard || c->told[0]) return;
    if (c->failed && c->net->survives) { /* ranks are lost: messages may not arrive */
        pthread_mutex_lock(c->lock);
        c->net->vt->revoke(c->net);
        pthread_mutex_unlock(c->lock);
        return;
    }
    ctn_comm_fail(c, message);
    snprintf(c->told, FAILED_BYTES, "rank %d: %.480s", c->place.rank, c->why);
    tell_ranks(c);
}

/* First spin, then yield, then sleep, because ranks may share a core. A sleep takes 20 us at first,
 * and up to 1 ms the longer the wait has been, so that hundreds of ranks that wait leave the cores
 * to those that work. */
static void rest(int *turns)
{
    const int us = 20 * (1 + (*turns - QUIET) / 16);
    if (++*turns < 64) return;
    if (*turns < QUIET) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = 1000L * (us < 1000 ? us : 1000)}, NULL);
}

ctn_status ctn__comm_listen(ctn_comm *c)
{
    char text[FAILED_BYTES];
    bool got = false;
    CTN_TRY(check(c));
    pthread_mutex_lock(c->lock);
    ctn_status st = c->net->vt->heard(c->net, CTN__TAG_FAILED, text, sizeof text, &got);
    pthread_mutex_unlock(c->lock);
    if (st < 0 || !got) return st;
    c->heard = true;
    snprintf(c->told, sizeof c->told, "%.*s", (int)sizeof text - 1, text);
    ctn_comm_fail(c, c->told);
    tell_ranks(c);
    return check(c);
}

ctn_status ctn__comm_turn(ctn_comm *c, int *turns)
{
    rest(turns);
    return *turns < QUIET ? CTN_OK : ctn__comm_listen(c);
}

/* The last messages of a group that has failed: a dissemination barrier, as far as other ranks take
 * part. */
typedef struct {
    int rounds, sent;
    int far; /* the next round sends to the rank this far on, 2^sent */
    ctn__net_req in[31], out;
    bool came[31];
    char byte[32];
} farewell;

static void begin_farewell(ctn_comm *c, farewell *f)
{
    const int size = c->place.size, rank = c->place.rank;
    f->far = 1;
    for (int d = 1; d < size && f->rounds < 31; d <<= 1, f->rounds++)
        if (c->net->vt->recv(c->net, &f->byte[f->rounds], 1, (rank - d + size) % size,
                             CTN__TAG_GONE, &f->in[f->rounds]) < 0)
            break;
}

/* A round begins when the message of the previous one has arrived. Messages between two ranks have
 * the same tag and arrive in order. */
static void move_farewell(ctn_comm *c, farewell *f)
{
    const int size = c->place.size, rank = c->place.rank;
    for (int k = 0; k < f->rounds; k++)
        if (!f->came[k] && c->net->vt->test(c->net, &f->in[k], &f->came[k]) < 0) return;
    while (f->sent < f->rounds && (f->sent == 0 || f->came[f->sent - 1])) {
        const int to = (rank + f->far) % size;
        if (c->net->vt->send(c->net, &f->byte[31], 1, to, CTN__TAG_GONE, &f->out) < 0) return;
        f->sent++;
        f->far *= 2;
    }
}

static bool over_farewell(const farewell *f)
{
    return f->sent == f->rounds && (f->rounds == 0 || f->came[f->rounds - 1]);
}

/* True: the transport uses no memory of ours any more. */
static bool abandon_requests(ctn_comm *c)
{
    const bool pieces = ctn__pieces_abandon(c);
    return ctn__parcels_abandon(c) && pieces;
}

/* Every rank drops what others have sent until all ranks have seen their messages taken. Then no
 * request stays open, and MPI can be finalised. */
bool ctn__comm_abandon(ctn_comm *c)
{
    enum { SECONDS = 10 };
    const uint64_t until = ctn__now_ns() + SECONDS * UINT64_C(1000000000);
    farewell *f = c->failed && !c->abandoned ? ctn__calloc(1, sizeof *f) : NULL;
    if (!f) return c->stuck;
    const ctn__coreset *cores = ctn__cores_pause();
    /* Only if the other ranks know about the failure. If a rank has died, they are killed, or they
     * do not wait for anything any more. Where ranks can be lost without that, looking for messages
     * on a communicator of a lost rank can crash (Open MPI 5.0.7). */
    const bool meet = c->net->vt->drop != NULL && !c->net->survives && (c->heard || c->told[0]);
    c->abandoned = true;
    pthread_mutex_lock(c->lock);
    c->stuck = !abandon_requests(c);
    if (meet) begin_farewell(c, f);
    while (meet && (c->stuck || !over_farewell(f)) && ctn__now_ns() < until) {
        if (!c->stuck) move_farewell(c, f);
        while (c->net->vt->drop(c->net)) continue;
        c->stuck = !abandon_requests(c);
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    while (meet && c->net->vt->drop(c->net)) continue;
    bool open = false;
    for (int k = 0; k < f->rounds; k++)
        open |= !f->came[k] && !c->net->vt->cancel(c->net, &f->in[k]);
    pthread_mutex_unlock(c->lock);
    ctn__cores_resume(cores);
    if (!open) ctn__free(f);
    return c->stuck;
}

/* ---- queries -------------------------------------------------------------------------------- */

void ctn_comm_fail(ctn_comm *c, const char *message)
{
    /* Each communicator keeps its first message. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!c->failed) {
        snprintf(c->why, sizeof c->why, "%s",
                 message && *message ? message : "another rank failed");
        c->failed = true;
    }
    pthread_mutex_unlock(&lock);
}

void ctn_comm_get_stats(const ctn_comm *c, ctn_comm_stats *out)
{
    ctn_comm_stats s = {.struct_size = out->struct_size,
                        .started = c->started,
                        .finished = c->finished,
                        .sent = c->sent,
                        .waiting = c->waiting,
                        .messages = c->messages,
                        .control = c->sent_small};
    size_t n = out->struct_size < sizeof s ? out->struct_size : sizeof s;
    memcpy(out, &s, n);
}

int ctn_comm_rank(const ctn_comm *c)
{
    return c->place.rank;
}

int ctn_comm_size(const ctn_comm *c)
{
    return c->place.size;
}

int ctn_comm_nodes(const ctn_comm *c)
{
    return c->place.nodes;
}

int ctn_comm_node(const ctn_comm *c)
{
    return c->place.my_node;
}

int ctn_comm_local_rank(const ctn_comm *c)
{
    return c->place.local;
}

int ctn_comm_local_size(const ctn_comm *c)
{
    return c->place.locals;
}

const char *ctn_comm_transport(const ctn_comm *c)
{
    return c->net->name;
}

const char *ctn_comm_algorithm(const ctn_comm *c)
{
    return c->latest ? c->latest->name : "auto";
}

const char *ctn_comm_algorithm_name(int i)
{
    const ctn__algorithm *a = ctn__algorithm_at(i);
    return a ? a->name : NULL;
}
