/* SPDX-License-Identifier: Apache-2.0
 *
 * A transport: a communicator that carries messages, as seen by one rank. comm/loopback.c is one
 * (ranks are threads of one process), plugins/mpi.c is the other. A plug-in may be built
 * separately, also on site, so this header includes only public headers. CTN__NET_ABI changes
 * with it.
 *
 * A rank calls from one thread at a time, and if the transport has a lock, holds it during every
 * call that does not block. Those that block take it themselves. Sends and receives between two
 * ranks match by tag, in the order in which they are posted. Nothing blocks unless noted.
 */
#ifndef CTN_COMM_NET_H
#define CTN_COMM_NET_H

#include <pthread.h>
#include <stdbool.h>

#include <catena/base.h>
#include <catena/tensor.h>

#define CTN__NET_ABI 7
#define CTN__NET_TAGS 32768 /* tags are smaller than this */

typedef struct ctn__net ctn__net;
typedef struct {
    uint64_t word[4]; /* for the transport */
} ctn__net_req;

typedef struct {
    ctn_status (*send)(ctn__net *n, const void *buf, size_t bytes, int to, int tag,
                       ctn__net_req *r);
    ctn_status (*recv)(ctn__net *n, void *buf, size_t bytes, int from, int tag, ctn__net_req *r);
    /* The transport's own sum over all ranks, in place. Ranks start these in the same order.
     * Types: f32 f64 i32 i64 bf16 f16; the last two are added in f32. again: 0, or a number under
     * which all ranks will sum this same vector repeatedly, so that it needs to be prepared only
     * once. */
    ctn_status (*allreduce)(ctn__net *n, void *buf, int64_t count, ctn_dtype type, uint64_t again,
                            ctn__net_req *r);
    /* Frees what was prepared under the numbers [first, end). None of it is in flight. Local. */
    void (*forget)(ctn__net *n, uint64_t first, uint64_t end);
    /* Writes to the region of rank `to` at byte `offset`. Done means that it has arrived. */
    ctn_status (*put)(ctn__net *n, const void *buf, size_t bytes, int to, size_t offset,
                      ctn__net_req *r);
    /* Receives a message with this tag from any rank, if there is one. */
    ctn_status (*heard)(ctn__net *n, int tag, void *buf, size_t bytes, bool *got);
    /* Advances everything. *done: this request is complete and freed. */
    ctn_status (*test)(ctn__net *n, ctn__net_req *r, bool *done);
    /* After a failure: gives up a request. True: it is gone, and its memory belongs to the caller
     * again. False: the transport may still use the memory. Local, does not block. */
    bool (*cancel)(ctn__net *n, ctn__net_req *r);
    /* After a failure: receives and drops a message that nobody has asked for, so that its sender's
     * request completes. True: one was dropped, and there may be more. Local, does not block. NULL:
     * sends complete by themselves. */
    bool (*drop)(ctn__net *n);
    /* Only if the transport survives the loss of ranks: makes every call of every rank fail with
     * EPEER. Local. */
    void (*revoke)(ctn__net *n);
    /* After that: a transport of the ranks that are left, in the same order. Collective over them,
     * blocks. */
    ctn_status (*shrink)(ctn__net *n, ctn__net **out);
    /* A second transport of the same ranks. Collective, blocks. NULL: cannot. */
    ctn_status (*again)(ctn__net *n, ctn__net **out);
    /* A transport of the ranks with the same color, in the order of key, then of rank. color < 0:
     * *out becomes NULL. Collective, blocks. NULL: cannot. */
    ctn_status (*split)(ctn__net *n, int color, int key, ctn__net **out);
    /* Allocates `bytes` of zeroed memory on each rank. Other ranks can put into it, and ranks of
     * the same node see it: at[i] is the region of rank i, NULL if that is on another node. Once
     * per communicator. Collective, blocks. */
    ctn_status (*region)(ctn__net *n, size_t bytes, void **at);
    /* May another thread call, one at a time, whatever the caller's own threads do? */
    bool (*threads)(const ctn__net *n);
    void (*free)(ctn__net *n); /* collective */
    bool together; /* free waits for the other ranks, so it is not called after a failure */
} ctn__net_vt;

struct ctn__net {
    const ctn__net_vt *vt;
    int rank, size;
    int *node; /* for each rank, the lowest rank of its node; the transport owns it */
    char name[128];
    bool survives; /* the loss of ranks; allreduce, put and region must not be used then */
    /* For all communicators of the process; NULL: several may be used at the same time. */
    pthread_mutex_t *lock;
};

/* The type of ctn_fail. */
typedef ctn_status ctn__net_fail(ctn_status st, const char *fmt, ...) CTN_PRINTF(2, 3);

/* Fails because a message is not as long as the receiver expects. */
static inline ctn_status ctn__net_length(ctn__net_fail *report, int from, int to, size_t expected,
                                         bool longer)
{
    return report(CTN_EENGINE,
                  "rank %d expected %zu bytes from rank %d, which sent %s: all ranks must pass the "
                  "same shape",
                  to, expected, from, longer ? "more" : "less");
}

/* What a plug-in exports as `catena_net`. */
typedef struct {
    uint32_t abi;    /* CTN__NET_ABI */
    const char *mpi; /* CTN_MPI_ABI of <catena/mpi.h> */
    /* Called first: sets where errors go, so that a plug-in needs no symbol of libcatena. */
    void (*use)(ctn__net_fail *fail);
    ctn_status (*init)(int *argc, char ***argv);
    ctn_status (*finalize)(void);
    bool (*running)(void); /* initialised and not finalised */
    ctn_status (*world)(ctn__net **out);
    /* Duplicates the MPI_Comm that handle points to. */
    ctn_status (*adopt)(ctn__net **out, const void *handle);
    ctn_status (*adopt_fortran)(ctn__net **out, int handle); /* an MPI_Fint */
} ctn__net_plugin;

#endif
