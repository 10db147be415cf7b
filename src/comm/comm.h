/* SPDX-License-Identifier: Apache-2.0
 *
 * Collective operations made of rounds. A vector is cut into pieces; every piece goes through the same rounds, each of them at most
 * one message out and one message in, and what came is added or takes its place. An algorithm is a pure function: rank, size and
 * the number of the round give the round. comm/pieces.c runs them, a window of pieces at a time, without ever blocking, so
 * that kernels can run in between.
 *
 * Invariant: all ranks start the same operations in the same order, hence number their pieces alike: the number is the tag and the slot.
 */
#ifndef CTN_COMM_COMM_H
#define CTN_COMM_COMM_H

#include <pthread.h>
#include <stdatomic.h>

#include <catena/comm.h>

#include "base/base.h"
#include "comm/net.h"
#include "trace/trace.h"

/* Where a rank stands. Tables are indexed by rank. */
typedef struct {
    int rank, size;
    bool pairwise;  /* what is sent is rounded: no partial sum goes through many hands (ring.h) */
    int rows, cols; /* grid of torus and rsap: rank = row * cols + col */
    int nodes, my_node, local, locals; /* my rank and the ranks in my node */
    int lanes; /* ranks that every node has: each exchanges one slice with its likes */
    const int *node_of, *local_of;
    const int *first;   /* of each node: where its ranks begin in `members` */
    const int *members; /* ranks by node, then by number */
} ctn__place;

typedef enum {
    CTN__ROUND_EXCHANGE, /* send and receive at the same time */
    CTN__ROUND_NATIVE,   /* the transport's own allreduce of the whole piece */
    CTN__ROUND_SHARE,    /* copy [sbegin, +scount) but for [rbegin, +rcount) into my region; */
    CTN__ROUND_SUM,      /* when all of my node have: [rbegin, +rcount) += the others' */
    CTN__ROUND_FETCH, /* when all have: everything but [rbegin, +rcount) from its owner's region */
    CTN__ROUND_PUT    /* [sbegin, +scount) into the regions of my row, then take theirs */
} ctn__round_kind;

/* Ranges are elements of the piece. A count of 0 means no message on either side. */
typedef struct {
    ctn__round_kind kind;
    int to, from;
    int64_t sbegin, scount, rbegin, rcount;
    bool add; /* what comes is added; else it takes the place of what was there */
} ctn__round;

typedef struct {
    const char *name;
    /* Round k (from 0) of a piece of n elements; false: the piece is done. */
    bool (*round)(const ctn__place *me, int64_t n, int k, ctn__round *r);
    /* Seconds for `bytes`: latency alpha, seconds per byte beta, seconds per byte added gamma. */
    double (*cost)(const ctn__place *me, double bytes, double alpha, double beta, double gamma);
    bool (*fits)(const ctn__place *me); /* NULL: always */
    /* Rank r owns block r of the vector, so a piece is the same slice of every block. */
    bool blocks;
    /* The longest message of any rank is one of so many parts of a piece: the same on all ranks, who must cut alike. NULL: size. */
    int (*parts)(const ctn__place *me);
    bool whole;  /* the vector is one piece: rounds send several blocks at once */
    bool region; /* pieces go through slots of regions */
    bool native; /* the transport adds, in the type that it sends */
} ctn__algorithm;

/* One per line of algorithms.c; NULL when there is none of this name. */
const ctn__algorithm *ctn__algorithm_find(const char *name);
const ctn__algorithm *ctn__algorithm_at(int i);
/* On these ranks, and with what they send: 16-bit values are never added in 16 bits. */
bool ctn__algorithm_fits(const ctn__algorithm *a, const ctn_comm *c);
extern const ctn__algorithm ctn__flat, ctn__ring, ctn__rabenseifner, ctn__hierarchical, ctn__torus,
    ctn__rsap;
extern const ctn__algorithm ctn__ring_scatter,
    ctn__ring_gather; /* halves of ring: rank r owns block r */
extern const ctn__algorithm ctn__halving_scatter,
    ctn__doubling_gather;                  /* the same for short blocks */
extern const ctn__algorithm ctn__doubling; /* for a few numbers */
/* Reduce-scatter and allgather of `count` elements, f32 at most: by a ring as long as its messages are worth one, else in
 * log2(size) rounds. The same on all ranks. Rank r owns block r. */
const ctn__algorithm *ctn__scatter_of(const ctn_comm *c, int64_t count);
const ctn__algorithm *ctn__gather_of(const ctn_comm *c, int64_t count);

/* Part i of n elements cut into `parts`: the first n % parts have one more. */
static inline int64_t ctn__part(int64_t n, int parts, int i)
{
    return n / parts * i + (i < n % parts ? i : n % parts);
}

/* Tags of messages between two ranks: pieces have the numbers below, everything else one of its own. */
enum {
    CTN__TAG_PIECES = CTN__NET_TAGS - 256, /* how many */
    CTN__TAG_BROADCAST,
    CTN__TAG_GATHER,
    CTN__TAG_BARRIER,
    CTN__TAG_SMALL,
    CTN__TAG_FAILED,
    CTN__TAG_CLOCK,
    CTN__TAG_SPANS,
    CTN__TAG_GONE
};

/* ---- operations (pieces.c) ------------------------------------------------------------------------------ */

typedef struct ctn__coll ctn__coll;

/* Start an operation on f32 (wire: what is sent) or another type (wire == type). Memory stays as it is until done. Collective, does not
 * block. alg NULL: the communicator's. */
ctn_status ctn__coll_start(ctn_comm *c, ctn__coll **out, const ctn__algorithm *alg, void *buf,
                           int64_t count, ctn_dtype type, ctn_dtype wire);
/* The same for a vector that is summed again and again, under a number from ctn__coll_numbers. */
ctn_status ctn__coll_again(ctn_comm *c, ctn__coll **out, const ctn__algorithm *alg, void *buf,
                           int64_t count, ctn_dtype type, ctn_dtype wire, uint64_t number);
uint64_t ctn__coll_numbers(ctn_comm *c, int n); /* the first of n new ones; collective */
void ctn__coll_forget(ctn_comm *c, uint64_t first, int n);
/* Move everything on as far as it goes. Cheap when nothing is on its way. */
ctn_status ctn__comm_poll(ctn_comm *c);
/* Until it is done; then it can be asked for its times, and is given back by release. wait does both. */
ctn_status ctn__coll_await(ctn__coll *x);
void ctn__coll_release(ctn__coll *x);
ctn_status ctn__coll_wait(ctn__coll *x);
bool ctn__coll_done(const ctn__coll *x);
/* After a failure: nothing is received any more, and ranks meet once more, for some seconds at most, to take what others have sent. True: the transport may still read or write the memory of operations that were on their way, which must
 * stay as long as the process. Of the thread that uses the communicator. */
bool ctn__comm_abandon(ctn_comm *c);
bool ctn__pieces_abandon(
    ctn_comm *c); /* of it: one look at the pieces, under the lock; true: all are gone */
/* Has another rank told of its failure? Cheap; between operations. */
ctn_status ctn__comm_listen(ctn_comm *c);
/* One turn of a wait that has taken `turns` so far: rests, and listens for the failure of another rank. */
ctn_status ctn__comm_turn(ctn_comm *c, int *turns);
/* When it was started and when it was found done, as ctn__now_ns(). */
void ctn__coll_times(const ctn__coll *x, uint64_t *start, uint64_t *end);

/* ---- sums and conversions (sum.c), one thread ------------------------------------------------------------ */

void ctn__sum_into(void *y, const void *x, int64_t n, ctn_dtype type,
                   ctn_dtype wire); /* y += x; x is of `wire` */
void ctn__to_wire(void *wire_out, const void *x, int64_t n, ctn_dtype type, ctn_dtype wire);
void ctn__from_wire(void *y, const void *wire_in, int64_t n, ctn_dtype type, ctn_dtype wire);

/* ---- the communicator (comm.c) ---------------------------------------------------------------------------- */

enum { CTN__WINDOW_MOST = 32 };

typedef struct ctn__piece ctn__piece; /* pieces.c */

struct ctn_comm {
    ctn__net *net;
    ctn__place place;
    int *tables; /* the place's */
    ctn_comm_opt opt;
    bool guest;                /* made from a communicator of the caller's, who calls MPI too */
    const ctn__algorithm *alg; /* NULL: not chosen yet */
    int64_t bucket;            /* bytes that long vectors are best cut into; 0: not measured */
    pthread_mutex_t lock;      /* guards everything below but the atomics */
    ctn__coll *first, *last;   /* on their way, oldest first */
    ctn__coll *spare;          /* to be used again */
    int active;                /* pieces on their way */
    ctn__piece *piece;         /* [window] */
    int window;
    uint64_t next_piece; /* number */
    uint64_t vectors;    /* numbers given to those that are summed again */
    void **region;       /* of each rank; NULL: no algorithm has needed them yet */
    size_t region_bytes, slot_bytes;
    atomic_bool failed;
    bool heard;     /* of the failure, from another rank */
    bool abandoned; /* ctn__comm_abandon was called */
    bool stuck;     /* the transport may still use memory of what was abandoned */
    char why[1024]; /* set before failed */
    char told[512]; /* to the others, by the rank that failed; empty: nothing */
    _Atomic uint64_t started, finished, sent, moves; /* moves: rounds that went through */
    _Atomic uint64_t messages,
        sent_small; /* handed to the transport; bytes of those beside pieces */
    atomic_int waiting;
    /* a progress thread (progress.c) */
    bool threaded;
    pthread_t thread;
    pthread_cond_t begun; /* an operation has, or stop */
    atomic_bool stop;
    bool parked; /* the thread stays away */
};

/* One message out and one in, either of no bytes: none. Waits. Tags are those beside pieces, below. */
ctn_status ctn__comm_swap(ctn_comm *c, int tag, const void *out, size_t nout, int to, void *in,
                          size_t nin, int from);
/* buf becomes its sum over ranks, the same bits on each, exact type on the wire; waits (small.c). It does not stand in the
 * line of pieces, so it neither waits for gradients on their way nor has to come at the same place between them. scratch: as long as buf. */
ctn_status ctn__comm_sum(ctn_comm *c, void *buf, int64_t count, ctn_dtype type, void *scratch);
/* The same, but only block `rank` of `size` has the sum afterwards. */
ctn_status ctn__comm_sum_scatter(ctn_comm *c, void *buf, int64_t count, ctn_dtype type,
                                 void *scratch);
/* The same for the largest of each of up to 16 values. */
ctn_status ctn__comm_max_small(ctn_comm *c, int n, double *value);
/* Rank 0's status on every rank, with its message; what the others give is not looked at. c NULL: st. Collective (agree.c). */
ctn_status ctn__comm_root_status(ctn_comm *c, ctn_status st);
ctn_status ctn__comm_new(ctn_comm **out, ctn__net *net,
                         const ctn_comm_opt *opt); /* takes net over */
/* Of the MPI that is running (plugin.c); *out NULL: none is. */
ctn_status ctn__net_world(ctn__net **out);
ctn_status ctn__net_adopt(ctn__net **out, const char *abi, const void *handle);
ctn_status ctn__net_adopt_fortran(ctn__net **out, int handle);
ctn_status ctn__net_loopback(ctn__net **out, int n); /* n of one group */
/* As if on several nodes: node[i] is the lowest rank of rank i's node. */
ctn_status ctn__net_loopback_nodes(ctn__net **out, int n, const int *node);
/* Choose the algorithm for vectors of so many bytes, and with `cut` also how long their parts should be: as is known from before
 * (text of an earlier choice, or NULL), or by measuring; rank 0's choice is everybody's. chosen: its text, or NULL. Collective. */
ctn_status ctn__comm_choose(ctn_comm *c, int64_t bytes, bool cut, const char *known, char *chosen,
                            size_t room);
/* A thread that polls while something is on its way (progress.c); nothing where the transport forbids it. */
ctn_status ctn__progress_start(ctn_comm *c);
void ctn__progress_stop(ctn_comm *c);
void ctn__progress_park(ctn_comm *c, bool parked); /* it stays away until called back */
ctn_status ctn__place_make(ctn_comm *c);           /* place.c: nodes, grid */
ctn_status ctn__pieces_make(ctn_comm *c);          /* window and slots */
ctn_status ctn__regions_make(ctn_comm *c); /* once; waits for what is on its way. Collective */
void ctn__pieces_free(ctn_comm *c);

#endif
