/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs operations: cuts vectors into pieces and takes a window of them through the rounds of their
 * algorithm. Only ctn__coll_wait waits. Everything advances in ctn__comm_poll, which is called
 * between kernels, by waits and by the progress thread.
 *
 * Piece number q uses slot q % window and begins when piece q - window is done. All ranks use the
 * same numbers, so a slot of a region means the same piece everywhere. The region of a rank
 * contains one counter per slot, each on its own cache line, and then the slots. A counter tells
 * how far its owner is: 4u + s after the s-th share of the u-th use of the slot, 4(u+1) when that
 * use is over.
 */
#include "comm/comm.h"

enum { LINE = 64 };

struct ctn__coll {
    ctn_comm *c;
    const ctn__algorithm *alg;
    char *buf;
    int64_t count; /* elements */
    /* Length that is cut into pieces: the vector or its longest block; length of a piece. */
    int64_t length, step;
    int64_t begun, left; /* part of the length already given to pieces; pieces not done */
    ctn_dtype type, wire;
    uint64_t number; /* of a vector that is summed repeatedly; 0: once */
    uint64_t t0, t1;
    atomic_bool done;
    ctn__coll *next;
};

struct ctn__piece {
    ctn__coll *x; /* NULL: free */
    uint64_t number;
    char *at; /* begin of n elements of the vector */
    int64_t n;
    int64_t slice, slice_count; /* with blocks: which part of every block */
    int k;                      /* rounds begun */
    bool busy;                  /* round r is in progress */
    ctn__round r;
    int shares;
    bool sending, receiving, begun; /* begun: the transport's own sum is in `send` */
    ctn__net_req send, recv;
    char *out, *in; /* send and receive buffers, if not the vector itself */
    size_t out_bytes, in_bytes;
    /* For a put, three requests for each rank of the row: put, notice sent, notice received. */
    ctn__net_req *row;
    char *row_state;
    char notice;
};

/* ---- slots of regions ----------------------------------------------------------------------- */

static int slot_of(const ctn_comm *c, const ctn__piece *p)
{
    return (int)(p->number % (uint64_t)c->window);
}

static _Atomic uint64_t *counter(const ctn_comm *c, int rank, int slot)
{
    return (_Atomic uint64_t *)((char *)c->region[rank] + (size_t)slot * LINE);
}

static size_t slot_offset(const ctn_comm *c, int slot)
{
    return (size_t)c->window * LINE + (size_t)slot * c->slot_bytes;
}

static char *slot_data(const ctn_comm *c, int rank, int slot)
{
    return (char *)c->region[rank] + slot_offset(c, slot);
}

static const int *my_node(const ctn_comm *c)
{
    return c->place.members + c->place.first[c->place.my_node];
}

static uint64_t uses_before(const ctn_comm *c, const ctn__piece *p)
{
    return 4 * (p->number / (uint64_t)c->window);
}

static bool node_reached(const ctn_comm *c, const ctn__piece *p, uint64_t value)
{
    const int *rank = my_node(c);
    for (int i = 0; i < c->place.locals; i++)
        if (atomic_load_explicit(counter(c, rank[i], slot_of(c, p)), memory_order_acquire) < value)
            return false;
    return true;
}

static void reach(const ctn_comm *c, const ctn__piece *p, uint64_t value)
{
    if (c->region)
        atomic_store_explicit(counter(c, c->place.rank, slot_of(c, p)), value,
                              memory_order_release);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static size_t size_of(ctn_dtype t)
{
    return ctn_dtype_size(t);
}

static bool room(char **buf, size_t *have, size_t want)
{
    if (*have >= want) return true;
    ctn__free(*buf);
    *buf = ctn__aligned(want);
    *have = *buf ? want : 0;
    return *buf != NULL;
}

static int tag_of(const ctn__piece *p)
{
    return (int)(p->number % CTN__TAG_PIECES);
}

/* The received data would be added to data that is still being sent. */
static bool overlaps(const ctn__round *r)
{
    return r->add && r->sbegin < r->rbegin + r->rcount && r->rbegin < r->sbegin + r->scount;
}

/* Gives the data to send. A final value that is rounded is also stored in the vector, so that all
 * ranks end with the same bits. */
static ctn_status outgoing(ctn__piece *p, bool final, const void **from)
{
    const ctn__coll *x = p->x;
    char *v = p->at + (size_t)p->r.sbegin * size_of(x->type);
    *from = v;
    if (x->wire == x->type && !overlaps(&p->r)) return CTN_OK;
    if (!room(&p->out, &p->out_bytes, (size_t)p->r.scount * size_of(x->wire))) return CTN_ENOMEM;
    ctn__to_wire(p->out, v, p->r.scount, x->type, x->wire);
    if (final) ctn__from_wire(v, p->out, p->r.scount, x->type, x->wire);
    *from = p->out;
    return CTN_OK;
}

static ctn_status begin_exchange(ctn_comm *c, ctn__piece *p)
{
    const ctn__coll *x = p->x;
    const ctn__round *r = &p->r;
    ctn__net *net = c->net;
    if (r->rcount > 0) {
        size_t bytes = (size_t)r->rcount * size_of(x->wire);
        void *to = p->at + (size_t)r->rbegin * size_of(x->type);
        if (r->add || x->wire != x->type) {
            if (!room(&p->in, &p->in_bytes, bytes)) return CTN_ENOMEM;
            to = p->in;
        }
        CTN_TRY(net->vt->recv(net, to, bytes, r->from, tag_of(p), &p->recv));
        p->receiving = true;
    }
    if (r->scount > 0) {
        const void *from;
        size_t bytes = (size_t)r->scount * size_of(x->wire);
        CTN_TRY(outgoing(p, !r->add, &from));
        CTN_TRY(net->vt->send(net, from, bytes, r->to, tag_of(p), &p->send));
        p->sending = true;
        c->messages++;
        c->sent += bytes;
    }
    return CTN_OK;
}

static ctn_status move_exchange(ctn_comm *c, ctn__piece *p, bool *done)
{
    const ctn__coll *x = p->x;
    const ctn__round *r = &p->r;
    bool ready = true;
    if (p->receiving) {
        CTN_TRY(c->net->vt->test(c->net, &p->recv, &ready));
        /* Do not test the send yet: every test polls the network. */
        if (!ready) return CTN_OK;
        char *v = p->at + (size_t)r->rbegin * size_of(x->type);
        p->receiving = false;
        if (r->add) ctn__sum_into(v, p->in, r->rcount, x->type, x->wire);
        else if (x->wire != x->type) ctn__from_wire(v, p->in, r->rcount, x->type, x->wire);
    }
    if (p->sending) CTN_TRY(c->net->vt->test(c->net, &p->send, &ready));
    p->sending = !ready;
    *done = ready;
    return CTN_OK;
}

/* The number of a vector's first piece; each piece has its own. */
static uint64_t again_of(uint64_t vector)
{
    return vector << 24;
}

static ctn_status begin_native(ctn_comm *c, ctn__piece *p)
{
    const ctn__coll *x = p->x;
    void *v = p->at;
    uint64_t again = x->number ? again_of(x->number) + (uint64_t)(p->slice / x->step) : 0;
    if (x->wire != x->type) {
        again = 0; /* the send buffer differs each time */
        if (!room(&p->out, &p->out_bytes, (size_t)p->n * size_of(x->wire))) return CTN_ENOMEM;
        ctn__to_wire(p->out, p->at, p->n, x->type, x->wire);
        v = p->out;
    }
    c->sent += (uint64_t)p->n * size_of(x->wire);
    CTN_TRY(c->net->vt->allreduce(c->net, v, p->n, x->wire, again, &p->send));
    p->begun = true;
    c->messages++;
    return CTN_OK;
}

static ctn_status move_native(ctn_comm *c, ctn__piece *p, bool *done)
{
    CTN_TRY(c->net->vt->test(c->net, &p->send, done));
    p->begun = !*done;
    if (*done && p->x->wire != p->x->type)
        ctn__from_wire(p->at, p->out, p->n, p->x->type, p->x->wire);
    return CTN_OK;
}

static bool share(ctn_comm *c, ctn__piece *p)
{
    size_t es = size_of(p->x->type);
    if (p->shares == 0 && !node_reached(c, p, uses_before(c, p))) return false;
    char *slot = slot_data(c, c->place.rank, slot_of(c, p));
    size_t begin = (size_t)p->r.sbegin * es, end = begin + (size_t)p->r.scount * es;
    size_t skip = (size_t)p->r.rbegin * es, after = skip + (size_t)p->r.rcount * es;
    if (skip == after) skip = after = end;
    memcpy(slot + begin, p->at + begin, skip - begin);
    memcpy(slot + after, p->at + after, end - after);
    reach(c, p, uses_before(c, p) + (uint64_t)++p->shares);
    return true;
}

static bool sum_shares(ctn_comm *c, ctn__piece *p)
{
    size_t es = size_of(p->x->type), begin = (size_t)p->r.rbegin * es;
    const int *rank = my_node(c);
    if (!node_reached(c, p, uses_before(c, p) + (uint64_t)p->shares)) return false;
    for (int i = 0; i < c->place.locals; i++)
        if (i != c->place.local && p->r.rcount > 0)
            ctn__sum_into(p->at + begin, slot_data(c, rank[i], slot_of(c, p)) + begin, p->r.rcount,
                          p->x->type, p->x->type);
    return true;
}

static bool fetch_shares(ctn_comm *c, ctn__piece *p)
{
    size_t es = size_of(p->x->type);
    const int *rank = my_node(c);
    if (!node_reached(c, p, uses_before(c, p) + (uint64_t)p->shares)) return false;
    for (int i = 0; i < c->place.lanes; i++) {
        size_t begin = (size_t)ctn__part(p->n, c->place.lanes, i) * es;
        size_t end = (size_t)ctn__part(p->n, c->place.lanes, i + 1) * es;
        if (i != c->place.local)
            memcpy(p->at + begin, slot_data(c, rank[i], slot_of(c, p)) + begin, end - begin);
    }
    return true;
}

/* ---- put: into every region of the row, each followed by a notice --------------------------- */

enum { PUTTING = 1, TELLING = 2, HEARING = 4 };

static int row_rank(const ctn_comm *c, int i)
{
    return c->place.rank / c->place.cols * c->place.cols + i;
}

static int my_column(const ctn_comm *c)
{
    return c->place.rank % c->place.cols;
}

static ctn_status begin_put(ctn_comm *c, ctn__piece *p)
{
    ctn__net *net = c->net;
    const void *from;
    size_t cols = (size_t)c->place.cols, es = size_of(p->x->wire);
    if (!p->row) p->row = ctn__calloc(3 * cols, sizeof *p->row);
    if (!p->row_state) p->row_state = ctn__calloc(cols, 1);
    if (!p->row || !p->row_state) return CTN_ENOMEM;
    CTN_TRY(outgoing(p, true, &from));
    size_t offset = slot_offset(c, slot_of(c, p)) + (size_t)p->r.sbegin * es;
    for (int i = 0; i < c->place.cols; i++) {
        if (i == my_column(c)) continue;
        size_t bytes = (size_t)p->r.scount * es;
        CTN_TRY(net->vt->recv(net, &p->notice, 1, row_rank(c, i), tag_of(p), &p->row[3 * i + 2]));
        CTN_TRY(net->vt->put(net, from, bytes, row_rank(c, i), offset, &p->row[3 * i]));
        p->row_state[i] = PUTTING | HEARING;
        c->messages += 2; /* the put and the notice */
        c->sent += bytes;
    }
    return CTN_OK;
}

static void take_block(ctn_comm *c, ctn__piece *p, int column)
{
    const ctn__coll *x = p->x;
    int64_t begin = ctn__part(p->n, c->place.cols, column);
    int64_t count = ctn__part(p->n, c->place.cols, column + 1) - begin;
    ctn__from_wire(p->at + (size_t)begin * size_of(x->type),
                   slot_data(c, c->place.rank, slot_of(c, p)) + (size_t)begin * size_of(x->wire),
                   count, x->type, x->wire);
}

static ctn_status move_put(ctn_comm *c, ctn__piece *p, bool *done)
{
    ctn__net *net = c->net;
    *done = true;
    for (int i = 0; i < c->place.cols; i++) {
        char *s = &p->row_state[i];
        bool ready = false;
        if (*s & PUTTING) {
            CTN_TRY(net->vt->test(net, &p->row[3 * i], &ready));
            if (ready) {
                CTN_TRY(net->vt->send(net, &p->notice, 1, row_rank(c, i), tag_of(p),
                                      &p->row[3 * i + 1]));
                *s = (char)((*s & ~PUTTING) | TELLING);
            }
        } else if (*s & TELLING) {
            CTN_TRY(net->vt->test(net, &p->row[3 * i + 1], &ready));
            if (ready) *s = (char)(*s & ~TELLING);
        }
        if (*s & HEARING) {
            CTN_TRY(net->vt->test(net, &p->row[3 * i + 2], &ready));
            if (ready) {
                take_block(c, p, i);
                *s = (char)(*s & ~HEARING);
            }
        }
        *done &= *s == 0;
    }
    return CTN_OK;
}

/* ---- pieces --------------------------------------------------------------------------------- */

static ctn_status begin_round(ctn_comm *c, ctn__piece *p)
{
    switch (p->r.kind) {
    case CTN__ROUND_EXCHANGE: return begin_exchange(c, p);
    case CTN__ROUND_NATIVE: return begin_native(c, p);
    case CTN__ROUND_PUT: return begin_put(c, p);
    case CTN__ROUND_SHARE:
    case CTN__ROUND_SUM:
    case CTN__ROUND_FETCH: break;
    }
    return CTN_OK;
}

static ctn_status move_round(ctn_comm *c, ctn__piece *p, bool *done)
{
    switch (p->r.kind) {
    case CTN__ROUND_EXCHANGE: return move_exchange(c, p, done);
    case CTN__ROUND_NATIVE: return move_native(c, p, done);
    case CTN__ROUND_PUT: return move_put(c, p, done);
    case CTN__ROUND_SHARE: *done = share(c, p); break;
    case CTN__ROUND_SUM: *done = sum_shares(c, p); break;
    case CTN__ROUND_FETCH: *done = fetch_shares(c, p); break;
    }
    return CTN_OK;
}

static void finish_piece(ctn_comm *c, ctn__piece *p)
{
    ctn__coll *x = p->x;
    reach(c, p, uses_before(c, p) + 4);
    p->x = NULL;
    c->active--;
    if (--x->left > 0 || x->begun < x->length) return;
    x->t1 = ctn__now_ns();
    c->finished++;
    atomic_store_explicit(&x->done, true, memory_order_release);
}

static void narrow(int64_t *begin, int64_t *count, int64_t slice, int64_t most)
{
    int64_t rest = *count - slice;
    *begin += slice;
    *count = rest < 0 ? 0 : rest < most ? rest : most;
}

static bool next_round(const ctn_comm *c, ctn__piece *p)
{
    if (!p->x->alg->round(&c->place, p->n, p->k, &p->r)) return false;
    p->k++;
    if (p->x->alg->blocks) {
        narrow(&p->r.sbegin, &p->r.scount, p->slice, p->slice_count);
        narrow(&p->r.rbegin, &p->r.rcount, p->slice, p->slice_count);
    }
    return true;
}

/* Runs as many rounds as can complete now. */
static ctn_status move_piece(ctn_comm *c, ctn__piece *p, bool *moved)
{
    for (;;) {
        bool done = false;
        if (!p->busy) {
            if (!next_round(c, p)) {
                finish_piece(c, p);
                *moved = true;
                return CTN_OK;
            }
            p->busy = true;
            CTN_TRY(begin_round(c, p));
        }
        CTN_TRY(move_round(c, p, &done));
        if (!done) return CTN_OK;
        p->busy = false;
        c->moves++;
        *moved = true;
    }
}

static void begin_pieces(ctn_comm *c)
{
    for (ctn__coll *x = c->first; x; x = x->next) {
        while (x->begun < x->length) {
            ctn__piece *p = &c->piece[c->next_piece % (uint64_t)c->window];
            if (p->x) return;
            p->x = x;
            p->number = c->next_piece++;
            int64_t n = x->length - x->begun < x->step ? x->length - x->begun : x->step;
            bool blocks = x->alg->blocks;
            p->at = x->buf + (blocks ? 0 : (size_t)x->begun * size_of(x->type));
            p->n = blocks ? x->count : n;
            p->slice = x->begun;
            p->slice_count = n;
            p->k = p->shares = 0;
            p->busy = false;
            x->begun += n;
            x->left++;
            c->active++;
        }
    }
}

static ctn_status broken(ctn_comm *c)
{
    return ctn_fail(CTN_EPEER, "%s", c->why);
}

static ctn_status poll_locked(ctn_comm *c)
{
    bool moved = true;
    while (moved && (c->active > 0 || c->first)) {
        moved = false;
        begin_pieces(c);
        for (int i = 0; i < c->window && c->active > 0; i++) {
            /* oldest first, because other ranks wait for its message */
            ctn__piece *p = &c->piece[(c->next_piece + (uint64_t)i) % (uint64_t)c->window];
            if (p->x) CTN_TRY(move_piece(c, p, &moved));
        }
        while (c->first && c->first->done) {
            c->first = c->first->next;
            if (!c->first) c->last = NULL;
        }
    }
    return CTN_OK;
}

ctn_status ctn__comm_poll(ctn_comm *c)
{
    if (c->failed) return broken(c);
    pthread_mutex_lock(c->lock);
    ctn_status st = poll_locked(c);
    if (st == CTN_OK && c->outgoing) st = ctn__parcels_look(c);
    pthread_mutex_unlock(c->lock);
    if (st < 0) ctn_comm_fail(c, ctn_error_message());
    return st;
}

/* ---- operations ----------------------------------------------------------------------------- */

/* Length of a piece, such that its longest message has the requested length and its data fits a
 * slot of a region. */
static int64_t piece_length(const ctn_comm *c, const ctn__algorithm *alg, ctn_dtype type,
                            ctn_dtype wire)
{
    int64_t parts = alg->blocks ? 1 : alg->parts ? alg->parts(&c->place) : c->place.size;
    int64_t n = parts * c->opt.segment / (int64_t)size_of(wire);
    int64_t slot = (int64_t)(c->slot_bytes / size_of(type));
    return alg->region && n > slot ? slot : n;
}

static ctn__coll *take_coll(ctn_comm *c)
{
    pthread_mutex_lock(c->lock);
    ctn__coll *x = c->spare;
    if (x) c->spare = x->next;
    pthread_mutex_unlock(c->lock);
    return x ? x : ctn__malloc(sizeof *x);
}

uint64_t ctn__coll_numbers(ctn_comm *c, int n)
{
    uint64_t first = c->vectors + 1;
    c->vectors += (uint64_t)n;
    return first;
}

void ctn__coll_forget(ctn_comm *c, uint64_t first, int n)
{
    if (!first || !c->net->vt->forget) return;
    pthread_mutex_lock(c->lock);
    c->net->vt->forget(c->net, again_of(first), again_of(first + (uint64_t)n));
    pthread_mutex_unlock(c->lock);
}

ctn_status ctn__coll_start(ctn_comm *c, ctn__coll **out, const ctn__algorithm *alg, void *buf,
                           int64_t count, ctn_dtype type, ctn_dtype wire)
{
    return ctn__coll_again(c, out, alg, buf, count, type, wire, 0);
}

ctn_status ctn__coll_again(ctn_comm *c, ctn__coll **out, const ctn__algorithm *alg, void *buf,
                           int64_t count, ctn_dtype type, ctn_dtype wire, uint64_t number)
{
    *out = NULL;
    if (c->failed) return broken(c);
    if (!alg) alg = c->alg;
    if (!alg) CTN_TRY(ctn__comm_choose_one(c, count * (int64_t)size_of(type), &alg));
    ctn__coll *x = take_coll(c);
    if (!x) return CTN_ENOMEM;
    *x = (ctn__coll){.c = c,
                     .alg = alg,
                     .buf = buf,
                     .count = count,
                     .type = type,
                     .wire = type == CTN_F32 ? wire : type,
                     .number = number,
                     .t0 = ctn__now_ns()};
    bool nothing = count == 0 || c->place.size == 1;
    x->length = x->alg->blocks ? ctn__part(count, c->place.size, 1) : count;
    x->step = x->alg->whole ? count : piece_length(c, x->alg, type, x->wire);
    c->started++;
    *out = x;
    if (nothing) {
        x->t1 = x->t0;
        c->finished++;
        x->done = true;
        return CTN_OK;
    }
    pthread_mutex_lock(c->lock);
    if (c->last) c->last->next = x;
    else c->first = x;
    c->last = x;
    pthread_cond_signal(&c->begun);
    pthread_mutex_unlock(c->lock);
    return ctn__comm_poll(c);
}

bool ctn__coll_done(const ctn__coll *x)
{
    return atomic_load_explicit(&x->done, memory_order_acquire);
}

void ctn__coll_times(const ctn__coll *x, uint64_t *start, uint64_t *end)
{
    *start = x->t0;
    *end = x->t1;
}

static bool busy(ctn_comm *c)
{
    pthread_mutex_lock(c->lock);
    const bool any = c->first != NULL;
    pthread_mutex_unlock(c->lock);
    return any;
}

/* Waits until x is done; NULL: until all operations are. */
static ctn_status await(ctn_comm *c, const ctn__coll *x)
{
    ctn_status st = CTN_OK;
    int turns = 0;
    const ctn__coreset *cores = ctn__cores_pause();
    c->waiting++;
    while (st == CTN_OK && (x ? !ctn__coll_done(x) : busy(c))) {
        st = ctn__comm_poll(c);
        if (st == CTN_OK && !(x && ctn__coll_done(x))) st = ctn__comm_turn(c, &turns);
    }
    c->waiting--;
    ctn__cores_resume(cores);
    return st;
}

ctn_status ctn__coll_await(ctn__coll *x)
{
    return ctn__coll_done(x) ? CTN_OK : await(x->c, x);
}

void ctn__coll_release(ctn__coll *x)
{
    ctn_comm *c = x->c;
    pthread_mutex_lock(c->lock);
    ctn__coll **p = &c->first;
    while (*p && *p != x) p = &(*p)->next;
    if (*p) *p = x->next; /* done, but after one that is not */
    c->last = c->first;
    while (c->last && c->last->next) c->last = c->last->next;
    x->next = c->spare;
    c->spare = x;
    pthread_mutex_unlock(c->lock);
}

ctn_status ctn__coll_wait(ctn__coll *x)
{
    if (!x) return CTN_OK;
    ctn_status st = ctn__coll_await(x);
    if (st < 0) (void)ctn__comm_abandon(x->c); /* the caller may free its memory */
    else ctn__coll_release(x);
    return st;
}

/* ---- after a failure ------------------------------------------------------------------------ */

/* Cancels the piece's requests. False: the transport still has some of them. */
static bool give_up(ctn_comm *c, ctn__piece *p)
{
    ctn__net *net = c->net;
    bool gone = true;
    if (!p->x || !p->busy) return true;
    if (p->receiving) p->receiving = !net->vt->cancel(net, &p->recv);
    if (p->sending) p->sending = !net->vt->cancel(net, &p->send);
    if (p->r.kind == CTN__ROUND_NATIVE && p->begun) p->begun = !net->vt->cancel(net, &p->send);
    for (int i = 0; p->r.kind == CTN__ROUND_PUT && p->row_state && i < c->place.cols; i++) {
        char *s = &p->row_state[i];
        if ((*s & PUTTING) && net->vt->cancel(net, &p->row[3 * i])) *s &= (char)~PUTTING;
        if ((*s & TELLING) && net->vt->cancel(net, &p->row[3 * i + 1])) *s &= (char)~TELLING;
        if ((*s & HEARING) && net->vt->cancel(net, &p->row[3 * i + 2])) *s &= (char)~HEARING;
        gone &= *s == 0;
    }
    return gone && !p->receiving && !p->sending && !p->begun;
}

bool ctn__pieces_abandon(ctn_comm *c)
{
    bool all = true;
    for (int i = 0; i < c->window; i++) {
        const bool gone = give_up(c, &c->piece[i]);
        if (gone) c->piece[i].x = NULL;
        all &= gone;
    }
    return all;
}

/* ---- making --------------------------------------------------------------------------------- */

ctn_status ctn__pieces_make(ctn_comm *c)
{
    c->window = c->opt.window;
    c->slot_bytes = 4 * (size_t)c->opt.segment;
    c->piece = ctn__calloc((size_t)c->window, sizeof *c->piece);
    return c->piece ? CTN_OK : CTN_ENOMEM;
}

/* Earlier pieces have used the slots without counters, so the counters begin at the values that
 * other ranks expect. */
static void set_counters(ctn_comm *c)
{
    for (int slot = 0; slot < c->window; slot++) {
        const uint64_t window = (uint64_t)c->window, s = (uint64_t)slot;
        const uint64_t uses = c->next_piece / window + (c->next_piece % window > s);
        atomic_store_explicit(counter(c, c->place.rank, slot), 4 * uses, memory_order_release);
    }
}

ctn_status ctn__regions_make(ctn_comm *c)
{
    if (c->region || c->place.size == 1) return CTN_OK;
    void **region = ctn__calloc((size_t)c->place.size, sizeof *region);
    if (!region) return CTN_ENOMEM;
    /* Making regions blocks, and other ranks may be waiting for operations in flight. */
    ctn_status st = await(c, NULL);
    if (st == CTN_OK) st = c->net->vt->region(c->net, slot_offset(c, c->window), region);
    pthread_mutex_lock(c->lock);
    if (st == CTN_OK) {
        c->region = region;
        set_counters(c);
    }
    pthread_mutex_unlock(c->lock);
    if (st < 0) ctn__free(region);
    return st;
}

void ctn__pieces_free(ctn_comm *c)
{
    for (int i = 0; c->piece && !c->stuck && i < c->window; i++) {
        ctn__free(c->piece[i].in);
        ctn__free(c->piece[i].out);
        ctn__free(c->piece[i].row);
        ctn__free(c->piece[i].row_state);
    }
    while (c->first) {
        ctn__coll *x = c->first;
        c->first = x->next;
        ctn__free(x);
    }
    while (c->spare) {
        ctn__coll *x = c->spare;
        c->spare = x->next;
        ctn__free(x);
    }
    if (!c->stuck) ctn__free(c->piece); /* otherwise messages may still arrive in it */
    ctn__free(c->region);
}
