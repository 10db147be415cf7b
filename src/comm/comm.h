/* SPDX-License-Identifier: Apache-2.0
 *
 * Collective operations made of rounds. A vector is cut into pieces, and every piece goes through
 * the same rounds. In a round a rank sends at most one message and receives at most one, which is
 * added to the local data or replaces it. An algorithm is a pure function that gives the round
 * for a rank, a size and a round number. comm/pieces.c runs a window of pieces at a time without
 * ever blocking, so that kernels can run in between.
 *
 * Invariant: all ranks start the same operations in the same order, so they number their pieces
 * alike. The number determines the tag and the slot.
 */
#ifndef CTN_COMM_COMM_H
#define CTN_COMM_COMM_H

#include <pthread.h>
#include <stdatomic.h>

#include <catena/comm.h>

#include "base/base.h"
#include "comm/net.h"
#include "trace/trace.h"

/* A rank's position in nodes and grid. Tables are indexed by rank. */
typedef struct {
    int rank, size;
    /* Messages are rounded to 16 bits, so a partial sum must not be passed on many times
     * (ring.h). */
    bool pairwise;
    int rows, cols; /* grid of torus and rsap: rank = row * cols + col */
    /* local: my number among the `locals` ranks of my node. */
    int nodes, my_node, local, locals;
    int lanes; /* ranks that every node has; each exchanges one slice between nodes */
    const int *node_of, *local_of;
    const int *first;   /* for each node, where its ranks begin in `members` */
    const int *members; /* ranks by node, then by number */
} ctn__place;

typedef enum {
    CTN__ROUND_EXCHANGE, /* send and receive at the same time */
    CTN__ROUND_NATIVE,   /* the transport's own allreduce of the whole piece */
    /* Copy [sbegin, +scount), except [rbegin, +rcount), into my region. */
    CTN__ROUND_SHARE,
    /* When all ranks of my node have shared: add their [rbegin, +rcount) to mine. */
    CTN__ROUND_SUM,
    /* When all have shared: copy everything except [rbegin, +rcount) from its owner's region. */
    CTN__ROUND_FETCH,
    /* Put [sbegin, +scount) into the regions of my row, then take theirs. */
    CTN__ROUND_PUT
} ctn__round_kind;

/* Ranges are in elements of the piece. With a count of 0 there is no message on either side. */
typedef struct {
    ctn__round_kind kind;
    int to, from;
    int64_t sbegin, scount, rbegin, rcount;
    bool add; /* the received data is added; otherwise it overwrites */
} ctn__round;

typedef struct {
    const char *name;
    /* Round k (counted from 0) of a piece of n elements; false: the piece is done. */
    bool (*round)(const ctn__place *me, int64_t n, int k, ctn__round *r);
    /* Seconds for `bytes`: alpha is the latency, beta the time per byte, gamma per byte added. */
    double (*cost)(const ctn__place *me, double bytes, double alpha, double beta, double gamma);
    bool (*fits)(const ctn__place *me); /* NULL: always */
    /* Rank r owns block r of the vector, so a piece is the same slice of every block. */
    bool blocks;
    /* Length of a piece divided by that of the longest message of any rank. The same on all ranks,
     * because they must cut alike. NULL: size. */
    int (*parts)(const ctn__place *me);
    bool whole;  /* the vector is one piece; rounds send several blocks at once */
    bool region; /* pieces use slots of the regions */
    bool native; /* the transport adds, in the type that is sent */
} ctn__algorithm;

enum { CTN__ALGORITHMS = 7 };

/* The algorithms of algorithms.c; NULL: no such name or index. */
const ctn__algorithm *ctn__algorithm_find(const char *name);
const ctn__algorithm *ctn__algorithm_at(int i);
/* Can it run on these ranks and with their wire type? 16-bit values are never added in 16 bits. */
bool ctn__algorithm_fits(const ctn__algorithm *a, const ctn_comm *c);
extern const ctn__algorithm ctn__flat, ctn__ring, ctn__rabenseifner, ctn__hierarchical, ctn__torus,
    ctn__rsap;
/* The two halves of ring, in which rank r owns block r; the same for short blocks; allreduce for a
 * few numbers. */
extern const ctn__algorithm ctn__ring_scatter, ctn__ring_gather;
extern const ctn__algorithm ctn__halving_scatter, ctn__doubling_gather;
extern const ctn__algorithm ctn__doubling;
/* The algorithm for a reduce-scatter or allgather of `count` elements of at most 32 bits: a ring if
 * its messages are long enough, else one with log2(size) rounds. The same on all ranks. Rank r owns
 * block r. */
const ctn__algorithm *ctn__scatter_of(const ctn_comm *c, int64_t count);
const ctn__algorithm *ctn__gather_of(const ctn_comm *c, int64_t count);

/* Where part i begins if n elements are cut into `parts`; the first n % parts have one more. */
static inline int64_t ctn__part(int64_t n, int parts, int i)
{
    return n / parts * i + (i < n % parts ? i : n % parts);
}

/* Tags of messages between two ranks. Pieces use the numbers below CTN__TAG_PIECES, and everything
 * else has a tag of its own. */
enum {
    CTN__TAG_PIECES = CTN__NET_TAGS - 256, /* number of tags for pieces */
    CTN__TAG_BROADCAST,
    CTN__TAG_GATHER,
    CTN__TAG_BARRIER,
    CTN__TAG_SMALL,
    CTN__TAG_FAILED,
    CTN__TAG_CLOCK,
    CTN__TAG_SPANS,
    CTN__TAG_GONE,
    CTN__TAG_ALLTOALL,
    CTN__TAG_DIRECT, /* from one rank to another, in an order that only these two agree on */
    CTN__TAG_HALO,
    CTN__TAG_BYTES /* messages of the caller, and their lengths (bytes.c) */
};

/* ---- operations (pieces.c) ------------------------------------------------------------------ */

typedef struct ctn__coll ctn__coll;

/* Starts an operation on f32 (wire: the type sent) or on another type (wire == type). The caller
 * must not touch the memory until it is done. alg NULL: the communicator's. Collective, does not
 * block. */
ctn_status ctn__coll_start(ctn_comm *c, ctn__coll **out, const ctn__algorithm *alg, void *buf,
                           int64_t count, ctn_dtype type, ctn_dtype wire);
/* The same for a vector that is summed repeatedly, under a number from ctn__coll_numbers. */
ctn_status ctn__coll_again(ctn_comm *c, ctn__coll **out, const ctn__algorithm *alg, void *buf,
                           int64_t count, ctn_dtype type, ctn_dtype wire, uint64_t number);
uint64_t ctn__coll_numbers(ctn_comm *c, int n); /* the first of n new ones; collective */
void ctn__coll_forget(ctn_comm *c, uint64_t first, int n);
/* Advances everything as far as possible without blocking. Cheap when nothing is in flight. */
ctn_status ctn__comm_poll(ctn_comm *c);
/* await waits until x is done. Then its times can be read, and release returns it. wait does
 * both. */
ctn_status ctn__coll_await(ctn__coll *x);
void ctn__coll_release(ctn__coll *x);
ctn_status ctn__coll_wait(ctn__coll *x);
bool ctn__coll_done(const ctn__coll *x);
/* After a failure: stops all receives. The ranks then meet once more, for a few seconds at most, to
 * take the messages that others have already sent. Returns true if the transport may still read or
 * write the memory of operations that were in flight; that memory must then stay until the end of
 * the process. Call it from the thread that uses the communicator. */
bool ctn__comm_abandon(ctn_comm *c);
/* Its part for pieces: checks them once, under the lock. True: all are gone. */
bool ctn__pieces_abandon(ctn_comm *c);
/* Fails if another rank has reported a failure. Cheap; call it between operations. */
ctn_status ctn__comm_listen(ctn_comm *c);
/* One iteration of a waiting loop that has run `turns` times: rests, and checks whether another
 * rank has reported a failure. */
ctn_status ctn__comm_turn(ctn_comm *c, int *turns);
/* When x was started and when it was found done, in the time of ctn__now_ns(). */
void ctn__coll_times(const ctn__coll *x, uint64_t *start, uint64_t *end);

/* ---- sums and conversions (sum.c), one thread ----------------------------------------------- */

/* y += x, where x has type `wire`. */
void ctn__sum_into(void *y, const void *x, int64_t n, ctn_dtype type, ctn_dtype wire);
void ctn__to_wire(void *wire_out, const void *x, int64_t n, ctn_dtype type, ctn_dtype wire);
void ctn__from_wire(void *y, const void *wire_in, int64_t n, ctn_dtype type, ctn_dtype wire);

/* ---- the communicator (comm.c) -------------------------------------------------------------- */

enum { CTN__WINDOW_MOST = 32 };

typedef struct ctn__piece ctn__piece;   /* pieces.c */
typedef struct ctn__parcel ctn__parcel; /* send.c */

struct ctn_comm {
    ctn__net *net;
    ctn__place place;
    int *tables; /* memory of the place's tables */
    ctn_comm_opt opt;
    bool guest;                /* made from a communicator of the caller, who calls MPI too */
    uint64_t family, member;   /* of a split: the same for all parts; this part (0: the whole) */
    uint64_t splits;           /* number so far */
    const ctn__algorithm *alg; /* NULL: one for each length of vector, in `choice` */
    const ctn__algorithm *choice[32];
    const ctn__algorithm *latest; /* the last one that was chosen */
    int64_t bucket;           /* best length in bytes for cutting long vectors; 0: not measured */
    pthread_mutex_t own_lock; /* used if the transport has none for all communicators */
    pthread_mutex_t *lock;    /* guards everything below except the atomics */
    ctn__coll *first, *last;  /* in flight, oldest first */
    ctn__coll *spare;         /* for reuse */
    int active;               /* pieces in flight */
    ctn__piece *piece;        /* [window] */
    int window;
    uint64_t next_piece; /* number of the next piece */
    uint64_t vectors;    /* numbers handed out for vectors that are summed repeatedly */
    void **region;       /* of each rank; NULL: no algorithm has needed them yet */
    size_t region_bytes, slot_bytes;
    atomic_bool failed;
    bool heard;     /* another rank has reported the failure */
    bool abandoned; /* ctn__comm_abandon was called */
    bool stuck;     /* the transport may still use memory of abandoned operations */
    char why[1024]; /* set before failed */
    char told[512]; /* what this rank told others about a failure; empty: nothing */
    _Atomic uint64_t started, finished, sent, moves; /* moves: rounds completed */
    /* Messages handed to the transport; bytes of those that do not belong to pieces. */
    _Atomic uint64_t messages, sent_small;
    atomic_int waiting;
    ctn__parcel *outgoing; /* sent by ctn__comm_send and not yet known to be taken */
    uint64_t *coming;      /* [size] for bytes.c; NULL: none was received yet */
    /* a progress thread (progress.c) */
    bool threaded;
    pthread_t thread;
    pthread_cond_t begun; /* signalled when an operation begins, and for stop */
    atomic_bool stop;
    bool parked; /* the thread does not poll */
};

/* Sends one message and receives one, and waits for both. A size of 0 means no message. For tags
 * that do not belong to pieces. */
ctn_status ctn__comm_swap(ctn_comm *c, int tag, const void *out, size_t nout, int to, void *in,
                          size_t nin, int from);
/* Sends a copy of buf and does not wait until it is taken (send.c). */
ctn_status ctn__comm_send(ctn_comm *c, int tag, const void *buf, size_t bytes, int to);
/* Waits for one message. */
static inline ctn_status ctn__comm_receive(ctn_comm *c, int tag, void *buf, size_t bytes, int from)
{
    return ctn__comm_swap(c, tag, NULL, 0, 0, buf, bytes, from);
}
/* Frees the copies that have been taken; under the lock. */
ctn_status ctn__parcels_look(ctn_comm *c);
/* Waits until all have been taken, before the communicator is freed. */
void ctn__parcels_finish(ctn_comm *c);
/* After a failure: true if no copy is in use any more; under the lock. */
bool ctn__parcels_abandon(ctn_comm *c);
/* One message of a gather, of its two sides. */
static inline ctn_status ctn__gather_send(ctn_comm *c, const void *buf, size_t bytes, int to)
{
    return ctn__comm_swap(c, CTN__TAG_GATHER, buf, bytes, to, NULL, 0, 0);
}
static inline ctn_status ctn__gather_receive(ctn_comm *c, void *buf, size_t bytes, int from)
{
    return ctn__comm_swap(c, CTN__TAG_GATHER, NULL, 0, 0, buf, bytes, from);
}
/* Replaces buf by its sum over all ranks, with the same bits on each. Sends the exact type, and
 * waits (small.c). It is independent of the sequence of pieces, so it does not wait for gradients
 * in flight, and ranks may call it at different points of that sequence. scratch: as long as buf.
 * */
ctn_status ctn__comm_sum(ctn_comm *c, void *buf, int64_t count, ctn_dtype type, void *scratch);
/* The same, but afterwards only block `rank` of `size` contains the sum. */
ctn_status ctn__comm_sum_scatter(ctn_comm *c, void *buf, int64_t count, ctn_dtype type,
                                 void *scratch);
/* Replaces buf by its maximum or minimum over all ranks, f32 or f64, with the same bits on each;
 * NaN if there is one. scratch: as long as buf. */
ctn_status ctn__comm_extreme(ctn_comm *c, bool max, void *buf, int64_t count, ctn_dtype type,
                             void *scratch);
/* Part r of `to` becomes this rank's part of the `from` of rank r; a part has this many bytes.
 * Collective (alltoall.c). */
ctn_status ctn__comm_alltoall(ctn_comm *c, const void *from, size_t bytes, void *to);
/* The maximum of each of up to 16 values. */
ctn_status ctn__comm_max_small(ctn_comm *c, int n, double *value);
/* Returns the root's status, with its message, on every rank; ignores the status of the other
 * ranks. c NULL: returns st. Collective (agree.c). */
ctn_status ctn__comm_status_of(ctn_comm *c, ctn_status st, int root);
ctn_status ctn__comm_root_status(ctn_comm *c, ctn_status st); /* of rank 0 */
/* Returns st. If it is a failure that only this rank has seen, breaks the group, because the other
 * ranks would wait for this one. c NULL: one rank. Local (agree.c). */
ctn_status ctn__comm_alone(ctn_comm *c, ctn_status st);
/* Appends the texts of the ranks above this one to t, which on rank 0 then has those of all ranks
 * in order. c NULL: nothing to do. Collective (texts.c). Errors: ENOMEM, EPEER. */
ctn_status ctn__comm_collect(ctn_comm *c, ctn__text *t);
/* Adds up the bits of all ranks, where each element is zero on all of them but one. c NULL: nothing
 * to do. Collective (join.c). Errors: ENOMEM, EPEER. */
ctn_status ctn__comm_join(ctn_comm *c, float *data, int64_t count);
/* Gives every rank a copy of rank 0's text; on the other ranks *text is NULL before. */
ctn_status ctn__comm_share_text(ctn_comm *c, char **text);
/* Takes ownership of net. */
ctn_status ctn__comm_new(ctn_comm **out, ctn__net *net, const ctn_comm_opt *opt);
/* The world of the running MPI (plugin.c); *out NULL: no MPI is running. */
ctn_status ctn__net_world(ctn__net **out);
ctn_status ctn__net_adopt(ctn__net **out, const char *abi, const void *handle);
ctn_status ctn__net_adopt_fortran(ctn__net **out, int handle);
ctn_status ctn__net_loopback(ctn__net **out, int n); /* n ranks of one group */
/* The same, as if on several nodes: node[i] is the lowest rank of rank i's node. */
ctn_status ctn__net_loopback_nodes(ctn__net **out, int n, const int *node);
bool ctn__net_is_loopback(const ctn__net *net);
/* Chooses the communicator's algorithm for this many bytes of gradients, and the length of the
 * buckets into which they are cut. Uses `known`, the text of an earlier choice, or measures if it
 * is NULL. Rank 0's choice applies to all ranks. chosen: receives the text of the choice.
 * Collective. */
ctn_status ctn__comm_choose(ctn_comm *c, int64_t bytes, const char *known, char *chosen,
                            size_t room);
/* Gives the algorithm for a vector of this many bytes; measures at the first one of about its
 * length. Collective. */
ctn_status ctn__comm_choose_one(ctn_comm *c, int64_t bytes, const ctn__algorithm **out);
/* A thread that polls while something is in flight (progress.c); none if the transport forbids
 * it. */
ctn_status ctn__progress_start(ctn_comm *c);
void ctn__progress_stop(ctn_comm *c);
void ctn__progress_park(ctn_comm *c, bool parked); /* parked: it does not poll until unparked */
ctn_status ctn__place_make(ctn_comm *c);           /* place.c: nodes, grid */
ctn_status ctn__pieces_make(ctn_comm *c);          /* window and slots */
/* Only once per communicator; waits for everything in flight. Collective. */
ctn_status ctn__regions_make(ctn_comm *c);
void ctn__pieces_free(ctn_comm *c);

#endif
