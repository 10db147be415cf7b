/* SPDX-License-Identifier: Apache-2.0
 *
 * What carries messages: a communicator of some transport, seen by one rank. comm/loopback.c is one (ranks are
 * threads of a process), plugins/mpi.c the other. A plug-in is built on its own, on site too, so this header includes
 * public headers only; CTN__NET_ABI changes with it.
 *
 * One rank calls from one thread at a time. Sends and receives between two ranks match by tag, in order of
 * posting. Nothing blocks but what says so.
 */
#ifndef CTN_COMM_NET_H
#define CTN_COMM_NET_H

#include <stdbool.h>

#include <catena/base.h>
#include <catena/tensor.h>

#define CTN__NET_ABI 4
#define CTN__NET_TAGS 32768 /* tags are below it */

typedef struct ctn__net ctn__net;
typedef struct {
    uint64_t word[4]; /* the transport's */
} ctn__net_req;

typedef struct {
    ctn_status (*send)(ctn__net *n, const void *buf, size_t bytes, int to, int tag,
                       ctn__net_req *r);
    ctn_status (*recv)(ctn__net *n, void *buf, size_t bytes, int from, int tag, ctn__net_req *r);
    /* The transport's own sum over all ranks, in place. Ranks start these in the same order. f32 f64 i32 i64 bf16 f16, the last two
     * added in f32. again: 0, or a number under which all ranks will sum this very vector again, so that it is prepared once. */
    ctn_status (*allreduce)(ctn__net *n, void *buf, int64_t count, ctn_dtype type, uint64_t again,
                            ctn__net_req *r);
    /* What was prepared under the numbers [first, end); nothing of it is on its way. Local. */
    void (*forget)(ctn__net *n, uint64_t first, uint64_t end);
    /* Into the region of rank `to`, at byte `offset` of it; done: it is there. */
    ctn_status (*put)(ctn__net *n, const void *buf, size_t bytes, int to, size_t offset,
                      ctn__net_req *r);
    /* A message of this tag from any rank, if one is there. */
    ctn_status (*heard)(ctn__net *n, int tag, void *buf, size_t bytes, bool *got);
    /* Progress of everything; *done: this request is complete and gone. */
    ctn_status (*test)(ctn__net *n, ctn__net_req *r, bool *done);
    /* After a failure: give a request up. True: it is gone, and its memory is the caller's again; false: the transport may still use the
     * memory. Local, does not block. */
    bool (*cancel)(ctn__net *n, ctn__net_req *r);
    /* After a failure: take in and drop a message that nobody has asked for, so that its sender's request ends. True: one is dropped, there may be
     * more. Local, does not block. NULL: sends end by themselves. */
    bool (*drop)(ctn__net *n);
    /* Memory of `bytes` on each rank that other ranks put into and ranks of the same node see: at[i] is the region of rank i, NULL on
     * another node. Zeroed. Once per communicator; collective, blocks. */
    ctn_status (*region)(ctn__net *n, size_t bytes, void **at);
    /* Another thread may call, one at a time, whatever the caller's own threads do. */
    bool (*threads)(const ctn__net *n);
    void (*free)(ctn__net *n); /* collective */
    bool together;             /* free waits for the other ranks: not after a failure */
} ctn__net_vt;

struct ctn__net {
    const ctn__net_vt *vt;
    int rank, size;
    int *node; /* of each rank: the lowest rank of its node; the transport's memory */
    char name[128];
};

/* ctn_fail */
typedef ctn_status ctn__net_fail(ctn_status st, const char *fmt, ...) CTN_PRINTF(2, 3);

/* What a plug-in gives out as `catena_net`. */
typedef struct {
    uint32_t abi;    /* CTN__NET_ABI */
    const char *mpi; /* CTN_MPI_ABI of <catena/mpi.h> */
    /* Before anything else: where errors go. So a plug-in needs no symbol of libcatena. */
    void (*use)(ctn__net_fail *fail);
    ctn_status (*init)(int *argc, char ***argv);
    ctn_status (*finalize)(void);
    bool (*running)(void); /* initialised and not ended */
    ctn_status (*world)(ctn__net **out);
    ctn_status (*adopt)(ctn__net **out,
                        const void *handle); /* duplicates the MPI_Comm behind handle */
    ctn_status (*adopt_fortran)(ctn__net **out, int handle); /* an MPI_Fint */
} ctn__net_plugin;

#endif
