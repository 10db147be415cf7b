/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators: making, freeing, and the calls that wait. Small control messages (broadcast, allgather, barrier) have tags of their
 * own, so they may be used while operations of pieces.c are on their way.
 */
#include <sched.h>
#include <time.h>

#include "comm/comm.h"

static ctn_status check(const ctn_comm *c)
{
    if (c->failed) return ctn_fail(CTN_EPEER, "%s", c->why);
    return CTN_OK;
}

/* Until both are done (NULL: none), with everything else moving on. */
static ctn_status wait_for(ctn_comm *c, ctn__net_req *a, ctn__net_req *b)
{
    ctn_status st = CTN_OK;
    int turns = 0;
    bool done_a = !a, done_b = !b;
    const ctn__coreset *cores = ctn__cores_pause();
    c->waiting++;
    while (st == CTN_OK && !(done_a && done_b)) {
        pthread_mutex_lock(&c->lock);
        if (!done_a) st = c->net->vt->test(c->net, a, &done_a);
        if (st == CTN_OK && !done_b) st = c->net->vt->test(c->net, b, &done_b);
        pthread_mutex_unlock(&c->lock);
        if (st == CTN_OK) st = ctn__comm_poll(c);
        if (st == CTN_OK && !(done_a && done_b)) st = ctn__comm_turn(c, &turns);
    }
    c->waiting--;
    ctn__cores_resume(cores);
    if (st < 0) ctn_comm_fail(c, ctn_error_message()); /* what was posted may still write */
    return st;
}

static ctn_status post(ctn_comm *c, bool send, void *buf, size_t bytes, int peer, int tag,
                       ctn__net_req *r)
{
    pthread_mutex_lock(&c->lock);
    ctn_status st = send ? c->net->vt->send(c->net, buf, bytes, peer, tag, r)
                         : c->net->vt->recv(c->net, buf, bytes, peer, tag, r);
    pthread_mutex_unlock(&c->lock);
    return st;
}

ctn_status ctn__comm_swap(ctn_comm *c, int tag, const void *out, size_t nout, int to, void *in,
                          size_t nin, int from)
{
    ctn__net_req s, r;
    CTN_TRY(check(c));
    if (nin > 0) CTN_TRY(post(c, false, in, nin, from, tag, &r));
    if (nout > 0) CTN_TRY(post(c, true, (void *)(uintptr_t)out, nout, to, tag, &s));
    return wait_for(c, nin > 0 ? &r : NULL, nout > 0 ? &s : NULL);
}

/* Binomial tree: log2 p steps. */
ctn_status ctn_comm_broadcast(ctn_comm *c, void *buf, size_t bytes, int root)
{
    int size = c->place.size, me = (c->place.rank - root + size) % size, bit = 1;
    ctn__net_req r;
    if (root < 0 || root >= size)
        return ctn_fail(CTN_EARG, "comm_broadcast: root %d of %d ranks", root, size);
    CTN_TRY(check(c));
    if (bytes == 0) return CTN_OK;
    for (; bit < size && !(me & bit); bit <<= 1) continue;
    if (me != 0) {
        CTN_TRY(post(c, false, buf, bytes, (me - bit + root) % size, CTN__TAG_BROADCAST, &r));
        CTN_TRY(wait_for(c, &r, NULL));
    }
    for (bit >>= 1; bit > 0; bit >>= 1) {
        if (me + bit >= size) continue;
        CTN_TRY(post(c, true, buf, bytes, (me + bit + root) % size, CTN__TAG_BROADCAST, &r));
        CTN_TRY(wait_for(c, &r, NULL));
    }
    return CTN_OK;
}

ctn_status ctn_comm_allgather(ctn_comm *c, const void *mine, size_t bytes, void *all)
{
    int size = c->place.size, rank = c->place.rank;
    char *a = all;
    CTN_TRY(check(c));
    memmove(a + (size_t)rank * bytes, mine, bytes);
    for (int k = 0; k < size - 1 && bytes > 0; k++) {
        ctn__net_req in, out;
        size_t s = (size_t)((rank - k + size) % size), r = (size_t)((rank - k - 1 + size) % size);
        CTN_TRY(
            post(c, false, a + r * bytes, bytes, (rank + size - 1) % size, CTN__TAG_GATHER, &in));
        CTN_TRY(post(c, true, a + s * bytes, bytes, (rank + 1) % size, CTN__TAG_GATHER, &out));
        CTN_TRY(wait_for(c, &in, &out));
    }
    return CTN_OK;
}

/* Dissemination: in step k everybody hears of 2^k ranks more. */
ctn_status ctn_comm_barrier(ctn_comm *c)
{
    int size = c->place.size, rank = c->place.rank;
    char mine = 0, theirs = 0;
    CTN_TRY(check(c));
    for (int d = 1; d < size; d <<= 1) {
        ctn__net_req in, out;
        CTN_TRY(post(c, false, &theirs, 1, (rank - d + size) % size, CTN__TAG_BARRIER, &in));
        CTN_TRY(post(c, true, &mine, 1, (rank + d) % size, CTN__TAG_BARRIER, &out));
        CTN_TRY(wait_for(c, &in, &out));
    }
    return CTN_OK;
}

ctn_status ctn_comm_allreduce(ctn_comm *c, void *buf, int64_t count, ctn_dtype type)
{
    ctn__coll *x = NULL;
    if (count < 0 || (!buf && count > 0))
        return ctn_fail(CTN_EARG, "comm_allreduce: %lld elements", (long long)count);
    if (type != CTN_F32 && type != CTN_F64 && type != CTN_I32 && type != CTN_I64)
        return ctn_fail(CTN_EDTYPE, "comm_allreduce: %s; f32, f64, i32 and i64 can be summed",
                        ctn_dtype_name(type));
    char chosen[64];
    if (!c->alg)
        CTN_TRY(ctn__comm_choose(c, count * (int64_t)ctn_dtype_size(type), false, NULL, chosen,
                                 sizeof chosen));
    CTN_TRY(ctn__coll_start(c, &x, NULL, buf, count, type, c->opt.wire));
    return ctn__coll_wait(x);
}

/* ---- making --------------------------------------------------------------------------------------------- */

static ctn_status check_options(ctn_comm_opt *o)
{
    if (!o->wire) o->wire = CTN_F32;
    if (o->wire != CTN_F32 && o->wire != CTN_BF16 && o->wire != CTN_F16)
        return ctn_fail(CTN_EARG, "comm: wire is %s; f32, bf16 or f16", ctn_dtype_name(o->wire));
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
        if (!a) return ctn_fail(CTN_EARG, "comm: no algorithm is called %s", name);
        if (a->fits && !a->fits(&c->place))
            return ctn_fail(CTN_EARG, "comm: %s cannot run on %d ranks of %d nodes", name,
                            c->place.size, c->place.nodes);
    }
    c->alg = a;
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
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->begun, NULL);
    CTN_TRY_GOTO(st, fail, ctn__opt("comm", &c->opt, sizeof c->opt, opt));
    CTN_TRY_GOTO(st, fail, check_options(&c->opt));
    CTN_TRY_GOTO(st, fail, ctn__place_make(c));
    CTN_TRY_GOTO(st, fail, ctn__pieces_make(c));
    CTN_TRY_GOTO(st, fail, ctn_comm_set_algorithm(c, c->opt.algorithm));
    c->opt.algorithm = NULL; /* the caller's string */
    if (c->place.size == 1) c->alg = &ctn__flat;
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

ctn_status ctn_comm_adopt(ctn_comm **out, const char *abi, const void *handle,
                          const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    *out = NULL;
    CTN_TRY(ctn__net_adopt(&net, abi, handle));
    return ctn__comm_new(out, net, opt);
}

ctn_status ctn_comm_adopt_fortran(ctn_comm **out, int handle, const ctn_comm_opt *opt)
{
    ctn__net *net = NULL;
    *out = NULL;
    CTN_TRY(ctn__net_adopt_fortran(&net, handle));
    return ctn__comm_new(out, net, opt);
}

ctn_status ctn_comm_loopback(ctn_comm **out, int n, const ctn_comm_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn__net **net = NULL;
    if (n < 1 || n > 4096) return ctn_fail(CTN_EARG, "comm_loopback: %d ranks", n);
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

void ctn_comm_free(ctn_comm *c)
{
    if (!c) return;
    ctn__progress_stop(c);
    if (!c->failed || !c->net->vt->together) c->net->vt->free(c->net);
    ctn__pieces_free(c);
    ctn__free(c->tables);
    pthread_cond_destroy(&c->begun);
    pthread_mutex_destroy(&c->lock);
    ctn__free(c);
}

/* ---- failures -------------------------------------------------------------------------------- */

enum { FAILED_BYTES = sizeof((ctn_comm *)0)->told, QUIET = 256 };

void ctn__comm_break(ctn_comm *c, const char *message)
{
    char *text = c->told; /* stays while it is sent */
    if (c->failed) return;
    ctn_comm_fail(c, message);
    snprintf(text, FAILED_BYTES, "rank %d: %.480s", c->place.rank, c->why);
    pthread_mutex_lock(&c->lock);
    for (int r = 0; r < c->place.size; r++) {
        ctn__net_req q; /* short messages need no further call, and nobody waits for it */
        bool done;
        if (r == c->place.rank) continue;
        if (c->net->vt->send(c->net, text, FAILED_BYTES, r, CTN__TAG_FAILED, &q) == CTN_OK)
            (void)c->net->vt->test(c->net, &q, &done);
    }
    pthread_mutex_unlock(&c->lock);
}

/* First spin, then let others run, then sleep: ranks may share a core. */
static void rest(int *turns)
{
    if (++*turns < 64) return;
    if (*turns < 256) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

ctn_status ctn__comm_turn(ctn_comm *c, int *turns)
{
    char text[FAILED_BYTES];
    bool got = false;
    rest(turns);
    if (*turns < QUIET) return CTN_OK;
    pthread_mutex_lock(&c->lock);
    ctn_status st = c->net->vt->heard(c->net, CTN__TAG_FAILED, text, sizeof text, &got);
    pthread_mutex_unlock(&c->lock);
    if (st == CTN_OK && got) {
        text[sizeof text - 1] = 0;
        ctn_comm_fail(c, text);
        st = check(c);
    }
    return st;
}

/* ---- looking --------------------------------------------------------------------------------------------- */

void ctn_comm_fail(ctn_comm *c, const char *message)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the first message of each stays */
    pthread_mutex_lock(&lock);
    if (!c->failed) {
        snprintf(c->why, sizeof c->why, "%s",
                 message && *message ? message : "another rank failed");
        c->failed = true;
    }
    pthread_mutex_unlock(&lock);
}

void ctn_comm_look(const ctn_comm *c, ctn_comm_state *out)
{
    ctn_comm_state s = {.struct_size = out->struct_size,
                        .started = c->started,
                        .finished = c->finished,
                        .sent = c->sent,
                        .waiting = c->waiting};
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
    return c->alg ? c->alg->name : "auto";
}

const char *ctn_comm_algorithm_name(int i)
{
    const ctn__algorithm *a = ctn__algorithm_at(i);
    return a ? a->name : NULL;
}
