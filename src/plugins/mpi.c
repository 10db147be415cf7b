/* SPDX-License-Identifier: Apache-2.0
 *
 * libcatena_mpi_<kind>.so: messages by MPI. One source file, built once for each kind of MPI, with
 * Catena or on site by `catena mpi-setup`. No other file includes mpi.h. Loaded by comm/plugin.c.
 * MPI 3.1 and MPI_THREAD_FUNNELED are enough. With MPI_THREAD_SERIALIZED all communicators share
 * one lock, because each may have a thread.
 *
 * Invariant (rule 16): everything uses a duplicate of the caller's communicator, whose errors are
 * returned as statuses. MPI is started and finalised only when init and finalize are called.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <catena/mpi.h>
#include "comm/net.h"
#include "tensor/half.h"

/* Maximum elements per MPI call, whose counts are ints. Tests use less, to test the cuts. */
#ifndef CTN__MPI_MOST
#define CTN__MPI_MOST (1 << 30)
#endif

typedef struct {
    uint64_t number;
    MPI_Request request;
} prepared;

typedef struct {
    ctn__net net;
    MPI_Comm comm, node; /* all ranks; the ranks that share memory with this one */
    bool threads, revoked;
    MPI_Op bf16, f16; /* sums in f32; MPI_OP_NULL until they are needed */
    bool shared_made, window_made;
    MPI_Win shared; /* the memory of the node's regions */
    MPI_Win window; /* all ranks, over the same memory; only with several nodes */
    char **at;      /* [size]: regions of the node's ranks */
    prepared *sums; /* in the order of first use */
    size_t nsums, sums_room, next_sum;
    int active;     /* of these, in flight */
    char *dropping; /* a message that is received to be dropped; NULL: none */
    MPI_Request drop;
} mpi_net;

/* Functions that some libraries of an ABI lack; NULL where missing. Prepared (persistent) sums came
 * with MPI 4; Fortran handle conversions are macros in older libraries.
 * NOLINTNEXTLINE(readability-redundant-declaration): older headers do not declare it */
extern int MPI_Allreduce_init(const void *from, void *to, int count, MPI_Datatype type, MPI_Op op,
                              MPI_Comm comm, MPI_Info info, MPI_Request *q);
#pragma weak MPI_Allreduce_init
#ifndef MPI_Comm_f2c
#pragma weak MPI_Comm_f2c
#endif

/* Recovery from lost ranks (ULFM): in Open MPI since 5.0, if mpirun was started with it. */
#ifdef OPEN_MPI
extern bool ompi_ftmpi_enabled;
extern int MPIX_Comm_revoke(MPI_Comm comm);
extern int MPIX_Comm_shrink(MPI_Comm comm, MPI_Comm *left);
extern int MPIX_Comm_agree(MPI_Comm comm, int *flag);
#pragma weak ompi_ftmpi_enabled
#pragma weak MPIX_Comm_revoke
#pragma weak MPIX_Comm_shrink
#pragma weak MPIX_Comm_agree
#endif

/* Words of a ctn__net_req: one request or a pointer to an array of COUNT requests; PEER is 1 + the
 * rank that is written to or received from; 0: none. KIND is 1 + the bytes that are expected. */
enum { REQUEST, COUNT, PEER, KIND };
enum { OTHER, RECEIVE }; /* KIND; RECEIVE and more: a receive */
_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request must fit a word");

static ctn__net_fail *fail;

static void use(ctn__net_fail *f)
{
    fail = f;
}

/* Does the error say that a rank is gone? */
static bool gone(int error)
{
#ifdef MPI_ERR_PROC_FAILED
    int class = MPI_SUCCESS;
    if (MPI_Error_class(error, &class) != MPI_SUCCESS) return false;
    return class == MPI_ERR_PROC_FAILED || class == MPI_ERR_PROC_FAILED_PENDING ||
           class == MPI_ERR_REVOKED;
#else
    (void)error;
    return false;
#endif
}

/* `call` ends in "to" or "from" if a rank follows; rank < 0: none. */
static ctn_status wrong(int error, const char *call, int rank)
{
    /* Long enough for any MPI library of the same ABI. */
    char text[MPI_MAX_ERROR_STRING > 1024 ? MPI_MAX_ERROR_STRING : 1024] = "", to[32] = "";
    int n = 0;
    if (MPI_Error_string(error, text, &n) != MPI_SUCCESS)
        snprintf(text, sizeof text, "error %d", error);
    if (rank >= 0) snprintf(to, sizeof to, " rank %d", rank);
    return fail(gone(error) ? CTN_EPEER : CTN_EENGINE, "%s%s: %s", call, to, text);
}

#define MPI_TRY(call, ...)                                          \
    do {                                                            \
        int error_ = call(__VA_ARGS__);                             \
        if (error_ != MPI_SUCCESS) return wrong(error_, #call, -1); \
    } while (0)

/* A request lives in its ctn__net_req until mpi_test; clang's checker cannot follow that.
 * NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

/* ---- one thread at a time -------------------------------------------------------------------- */

static pthread_mutex_t turns = PTHREAD_MUTEX_INITIALIZER; /* to call MPI, if it asks for that */

static bool take_turns(void)
{
    int level = MPI_THREAD_SINGLE;
    return MPI_Query_thread(&level) == MPI_SUCCESS && level == MPI_THREAD_SERIALIZED;
}

static void lock_calls(void)
{
    if (take_turns()) pthread_mutex_lock(&turns);
}

static void unlock_calls(void)
{
    if (take_turns()) pthread_mutex_unlock(&turns);
}

/* Before a call that blocks under the lock: waits without it until all ranks are here. Otherwise a
 * rank could wait in MPI for one that waits for a message from another thread of this rank. */
static int meet(MPI_Comm comm)
{
    MPI_Request q;
    int there = 0;
    if (!take_turns()) return MPI_SUCCESS;
    pthread_mutex_lock(&turns);
    int error = MPI_Ibarrier(comm, &q);
    if (error == MPI_SUCCESS) error = MPI_Test(&q, &there, MPI_STATUS_IGNORE);
    while (error == MPI_SUCCESS && !there) {
        pthread_mutex_unlock(&turns);
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
        pthread_mutex_lock(&turns);
        error = MPI_Test(&q, &there, MPI_STATUS_IGNORE);
    }
    pthread_mutex_unlock(&turns);
    return error;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void keep(ctn__net_req *r, MPI_Request q, int peer, uint64_t kind)
{
    r->word[REQUEST] = 0;
    memcpy(&r->word[REQUEST], &q, sizeof q);
    r->word[COUNT] = 1;
    r->word[PEER] = (uint64_t)peer + 1;
    r->word[KIND] = kind;
}

static const ctn__net_req nothing;

/* A count and a type for any number of bytes. *made: free the type, which MPI allows as soon as it
 * is in use. */
static int span(size_t bytes, int *count, MPI_Datatype *type, bool *made)
{
    *made = bytes > (size_t)CTN__MPI_MOST;
    *count = *made ? 1 : (int)bytes;
    *type = MPI_BYTE;
    if (!*made) return MPI_SUCCESS;
    if (bytes / CTN__MPI_MOST > INT_MAX) return MPI_ERR_COUNT;
    const size_t whole = bytes / CTN__MPI_MOST;
    int length[2] = {(int)whole, (int)(bytes % CTN__MPI_MOST)};
    MPI_Aint begin[2] = {0, (MPI_Aint)(whole * CTN__MPI_MOST)};
    MPI_Datatype part[2] = {MPI_DATATYPE_NULL, MPI_BYTE};
    int error = MPI_Type_contiguous(CTN__MPI_MOST, MPI_BYTE, &part[0]);
    if (error != MPI_SUCCESS) return error;
    error = MPI_Type_create_struct(2, length, begin, part, type);
    MPI_Type_free(&part[0]);
    return error == MPI_SUCCESS ? MPI_Type_commit(type) : error;
}

static ctn_status post(mpi_net *n, bool send, void *buf, size_t bytes, int peer, int tag,
                       ctn__net_req *r)
{
    const char *call = send ? "MPI_Isend to" : "MPI_Irecv from";
    int count;
    MPI_Datatype type;
    bool made;
    MPI_Request q;
    int error = span(bytes, &count, &type, &made);
    if (error != MPI_SUCCESS) return wrong(error, call, peer);
    error = send ? MPI_Isend(buf, count, type, peer, tag, n->comm, &q)
                 : MPI_Irecv(buf, count, type, peer, tag, n->comm, &q);
    if (made) MPI_Type_free(&type);
    if (error != MPI_SUCCESS) return wrong(error, call, peer);
    keep(r, q, send ? -1 : peer, send ? OTHER : RECEIVE + (uint64_t)bytes);
    return CTN_OK;
}

static ctn_status mpi_send(ctn__net *net, const void *buf, size_t bytes, int to, int tag,
                           ctn__net_req *r)
{
    return post((mpi_net *)net, true, (void *)(uintptr_t)buf, bytes, to, tag, r);
}

static ctn_status mpi_recv(ctn__net *net, void *buf, size_t bytes, int from, int tag,
                           ctn__net_req *r)
{
    return post((mpi_net *)net, false, buf, bytes, from, tag, r);
}

/* *done: all are complete and freed. status: of one request. */
static int test_all(MPI_Request *q, int n, int *done, MPI_Status *status)
{
    return n == 1 ? MPI_Test(q, done, status) : MPI_Testall(n, q, done, MPI_STATUSES_IGNORE);
}

/* A receive has ended. MPI takes a message that is shorter than expected for a success. */
static ctn_status received(const mpi_net *n, int error, const MPI_Status *status, int from,
                           uint64_t expected)
{
    MPI_Count bytes = 0;
    int class = MPI_SUCCESS;
    if (error != MPI_SUCCESS && MPI_Error_class(error, &class) == MPI_SUCCESS &&
        class == MPI_ERR_TRUNCATE)
        return ctn__net_length(fail, from, n->net.rank, (size_t)expected, true);
    if (error != MPI_SUCCESS) return wrong(error, "MPI_Test of a message from", from);
    MPI_TRY(MPI_Get_elements_x, status, MPI_BYTE, &bytes);
    if ((uint64_t)bytes == expected) return CTN_OK;
    return ctn__net_length(fail, from, n->net.rank, (size_t)expected, false);
}

static ctn_status mpi_test(ctn__net *net, ctn__net_req *r, bool *done)
{
    mpi_net *n = (mpi_net *)net;
    const int count = (int)r->word[COUNT], peer = (int)r->word[PEER] - 1;
    const uint64_t kind = r->word[KIND];
    MPI_Status status;
    *done = true;
    if (count == 0) return CTN_OK;
    MPI_Request one;
    memcpy(&one, &r->word[REQUEST], sizeof one);
    MPI_Request *all = count == 1 ? &one : (MPI_Request *)(uintptr_t)r->word[REQUEST];
    int flag = 0;
    const int error = test_all(all, count, &flag, &status);
    if (count == 1) memcpy(&r->word[REQUEST], &one, sizeof one); /* freed, even on an error */
    if (kind >= RECEIVE && (flag || error != MPI_SUCCESS)) {
        if (error == MPI_SUCCESS) *r = nothing;
        return received(n, error, &status, peer, kind - RECEIVE);
    }
    if (error != MPI_SUCCESS)
        return wrong(error, peer < 0 ? "MPI_Test" : "MPI_Test of a put to", peer);
    *done = flag;
    if (!flag) return CTN_OK;
    if (count == 1 && one != MPI_REQUEST_NULL) n->active--; /* a prepared request is kept */
    if (count > 1) free(all);
    *r = nothing;
    if (peer < 0) return CTN_OK;
    /* The bytes have left. MPI has no non-blocking test for whether they have arrived. */
    const int flushed = MPI_Win_flush(peer, n->window);
    return flushed == MPI_SUCCESS ? CTN_OK : wrong(flushed, "MPI_Win_flush to", peer);
}

/* A receive can be cancelled if no part of it has arrived. Sends, puts and sums cannot be
 * cancelled, so this only tests whether they are complete. */
static bool mpi_cancel(ctn__net *net, ctn__net_req *r)
{
    if (((mpi_net *)net)->revoked) return false; /* MPI has ended it, but may still write to it */
    const int count = (int)r->word[COUNT];
    if (count == 0) return true;
    MPI_Request one;
    memcpy(&one, &r->word[REQUEST], sizeof one);
    MPI_Request *all = count == 1 ? &one : (MPI_Request *)(uintptr_t)r->word[REQUEST];
    int done = 0;
    if (r->word[KIND] >= RECEIVE) {
        MPI_Cancel(&one);
        r->word[KIND] = OTHER; /* cancel only once */
    }
    if (test_all(all, count, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return false;
    if (count == 1) memcpy(&r->word[REQUEST], &one, sizeof one);
    if (!done) return false;
    if (count > 1) free(all);
    *r = nothing;
    return true;
}

static bool mpi_drop(ctn__net *net)
{
    mpi_net *n = (mpi_net *)net;
    int there = 0, bytes = 0;
    MPI_Status from;
    if (!n->dropping) {
        if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, n->comm, &there, &from) != MPI_SUCCESS ||
            !there)
            return false;
        MPI_Get_count(&from, MPI_BYTE, &bytes);
        if (!(n->dropping = malloc((size_t)bytes + 1))) return false;
        MPI_Irecv(n->dropping, bytes, MPI_BYTE, from.MPI_SOURCE, from.MPI_TAG, n->comm, &n->drop);
    }
    there = 0;
    if (MPI_Test(&n->drop, &there, MPI_STATUS_IGNORE) != MPI_SUCCESS || !there) return false;
    free(n->dropping);
    n->dropping = NULL;
    return true;
}

static bool running(void)
{
    int begun = 0, ended = 0;
    MPI_Initialized(&begun);
    MPI_Finalized(&ended);
    return begun && !ended;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static void add_bf16(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const uint16_t *x = in;
    uint16_t *y = inout;
    (void)type;
    for (int i = 0, n = *len; i < n; i++)
        y[i] = ctn__bf16_put(ctn__bf16_get(x[i]) + ctn__bf16_get(y[i]));
}

static void add_f16(void *in, void *inout, int *len, MPI_Datatype *type)
{
    const uint16_t *x = in;
    uint16_t *y = inout;
    (void)type;
    for (int i = 0, n = *len; i < n; i++)
        y[i] = ctn__f16_put(ctn__f16_get(x[i]) + ctn__f16_get(y[i]));
}

/* Type, operation and bytes of an element. */
static ctn_status sum_of(mpi_net *n, ctn_dtype dtype, MPI_Datatype *type, MPI_Op *op, size_t *bytes)
{
    *op = MPI_SUM;
    switch (dtype) {
    case CTN_F32: *type = MPI_FLOAT, *bytes = 4; return CTN_OK;
    case CTN_F64: *type = MPI_DOUBLE, *bytes = 8; return CTN_OK;
    case CTN_I32: *type = MPI_INT32_T, *bytes = 4; return CTN_OK;
    case CTN_I64: *type = MPI_INT64_T, *bytes = 8; return CTN_OK;
    case CTN_BF16:
    case CTN_F16: break;
    default: return fail(CTN_EDTYPE, "MPI_Iallreduce: cannot sum data type %d", (int)dtype);
    }
    MPI_Op *own = dtype == CTN_BF16 ? &n->bf16 : &n->f16;
    if (*own == MPI_OP_NULL) MPI_TRY(MPI_Op_create, dtype == CTN_BF16 ? add_bf16 : add_f16, 1, own);
    *type = MPI_UINT16_T, *op = *own, *bytes = 2;
    return CTN_OK;
}

/* Finds or adds the sum with this number. Ranks use sums in the same order, so it is usually the
 * one after the last. */
static prepared *find_sum(mpi_net *n, uint64_t number)
{
    for (size_t i = 0; i < n->nsums; i++) {
        prepared *s = &n->sums[(n->next_sum + i) % n->nsums];
        if (s->number != number) continue;
        n->next_sum = (size_t)(s - n->sums) + 1;
        return s;
    }
    if (n->nsums == n->sums_room) {
        const size_t more = n->sums_room > 0 ? 2 * n->sums_room : 64;
        prepared *grown = realloc(n->sums, more * sizeof *grown);
        if (!grown) return NULL;
        n->sums = grown;
        n->sums_room = more;
    }
    n->sums[n->nsums] = (prepared){number, MPI_REQUEST_NULL};
    n->next_sum = n->nsums + 1;
    return &n->sums[n->nsums++];
}

static ctn_status start_prepared(mpi_net *n, void *buf, int count, MPI_Datatype type, MPI_Op op,
                                 uint64_t number, ctn__net_req *r)
{
    prepared *s = find_sum(n, number);
    if (!s) return fail(CTN_ENOMEM, "out of memory for a request");
    if (s->request == MPI_REQUEST_NULL)
        MPI_TRY(MPI_Allreduce_init, MPI_IN_PLACE, buf, count, type, op, n->comm, MPI_INFO_NULL,
                &s->request);
    MPI_TRY(MPI_Start, &s->request);
    n->active++;
    keep(r, s->request, -1, OTHER);
    return CTN_OK;
}

static void mpi_forget(ctn__net *net, uint64_t first, uint64_t end)
{
    mpi_net *n = (mpi_net *)net;
    size_t left = 0;
    for (size_t i = 0; i < n->nsums; i++) {
        prepared *s = &n->sums[i];
        if (s->number < first || s->number >= end) n->sums[left++] = *s;
        else if (s->request != MPI_REQUEST_NULL && n->active == 0 && running())
            MPI_Request_free(&s->request);
    }
    n->nsums = left;
}

static ctn_status mpi_allreduce(ctn__net *net, void *buf, int64_t count, ctn_dtype dtype,
                                uint64_t again, ctn__net_req *r)
{
    mpi_net *n = (mpi_net *)net;
    MPI_Datatype type = MPI_BYTE;
    MPI_Op op = MPI_SUM;
    size_t bytes = 0;
    ctn_status st = sum_of(n, dtype, &type, &op, &bytes);
    if (st < 0) return st;
    *r = nothing;
    const int64_t parts = (count + CTN__MPI_MOST - 1) / CTN__MPI_MOST;
    if (parts == 0) return CTN_OK;
    if (parts == 1 && again && MPI_Allreduce_init)
        return start_prepared(n, buf, (int)count, type, op, again, r);
    if (parts > INT_MAX)
        return fail(CTN_EARG, "MPI_Iallreduce: %lld elements are too many", (long long)count);
    MPI_Request one, *q = &one;
    if (parts > 1 && !(q = malloc((size_t)parts * sizeof *q)))
        return fail(CTN_ENOMEM, "out of memory for %lld requests", (long long)parts);
    char *p = buf;
    for (int64_t i = 0; i < parts; i++, p += (size_t)CTN__MPI_MOST * bytes) {
        const int64_t rest = count - i * CTN__MPI_MOST;
        const int part = rest < CTN__MPI_MOST ? (int)rest : CTN__MPI_MOST;
        const int error = MPI_Iallreduce(MPI_IN_PLACE, p, part, type, op, n->comm, &q[i]);
        /* Do not free the array, because the sums already started still use it. */
        if (error != MPI_SUCCESS) return wrong(error, "MPI_Iallreduce", -1);
    }
    if (parts == 1) {
        keep(r, one, -1, OTHER);
    } else {
        r->word[REQUEST] = (uint64_t)(uintptr_t)q;
        r->word[COUNT] = (uint64_t)parts;
        r->word[KIND] = OTHER;
    }
    return CTN_OK;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* ---- memory that other ranks see ------------------------------------------------------------ */

static ctn_status mpi_put(ctn__net *net, const void *buf, size_t bytes, int to, size_t offset,
                          ctn__net_req *r)
{
    mpi_net *n = (mpi_net *)net;
    *r = nothing;
    if (!n->at) return fail(CTN_ESTATE, "put: no region was made");
    if (n->at[to]) {
        memcpy(n->at[to] + offset, buf, bytes);
        MPI_TRY(MPI_Win_sync, n->shared);
        return CTN_OK;
    }
    int count;
    MPI_Datatype type;
    bool made;
    MPI_Request q;
    int error = span(bytes, &count, &type, &made);
    if (error != MPI_SUCCESS) return wrong(error, "datatype of MPI_Rput to", to);
    error = MPI_Rput(buf, count, type, to, (MPI_Aint)offset, count, type, n->window, &q);
    if (made) MPI_Type_free(&type);
    if (error != MPI_SUCCESS) return wrong(error, "MPI_Rput to", to);
    keep(r, q, to, OTHER);
    return CTN_OK;
}

/* The shared memory of the node. Each rank allocates its own part, so its pages are local to it. */
static ctn_status share(mpi_net *n, size_t bytes, char **mine)
{
    MPI_Info info;
    MPI_TRY(MPI_Info_create, &info);
    MPI_TRY(MPI_Info_set, info, "alloc_shared_noncontig", "true");
    int error = MPI_Win_allocate_shared((MPI_Aint)bytes, 1, info, n->node, mine, &n->shared);
    MPI_Info_free(&info);
    if (error != MPI_SUCCESS) return wrong(error, "MPI_Win_allocate_shared", -1);
    n->shared_made = true;
    MPI_TRY(MPI_Win_set_errhandler, n->shared, MPI_ERRORS_RETURN);
    MPI_TRY(MPI_Win_lock_all, MPI_MODE_NOCHECK, n->shared);
    int locals;
    MPI_TRY(MPI_Comm_size, n->node, &locals);
    /* Ranks of the node are numbered in communicator order. */
    for (int i = 0, l = 0; i < n->net.size && l < locals; i++) {
        if (n->net.node[i] != n->net.node[n->net.rank]) continue;
        MPI_Aint size;
        int unit;
        MPI_TRY(MPI_Win_shared_query, n->shared, l++, &size, &unit, &n->at[i]);
    }
    return CTN_OK;
}

static ctn_status region(mpi_net *n, size_t bytes, void **at)
{
    ctn__net *net = &n->net;
    if (n->at) return fail(CTN_ESTATE, "region: it was already made");
    if (!(n->at = calloc((size_t)net->size, sizeof *n->at)))
        return fail(CTN_ENOMEM, "out of memory for %d addresses", net->size);
    char *mine = NULL;
    ctn_status st = share(n, bytes, &mine);
    if (st < 0) return st;
    if (!mine) return fail(CTN_ENOMEM, "MPI_Win_allocate_shared: cannot allocate %zu bytes", bytes);
    memset(mine, 0, bytes);
    MPI_TRY(MPI_Win_sync, n->shared);
    bool alone = true; /* one node */
    for (int i = 0; i < net->size; i++) alone = alone && n->at[i];
    if (!alone) {
        MPI_TRY(MPI_Win_create, mine, (MPI_Aint)bytes, 1, MPI_INFO_NULL, n->comm, &n->window);
        n->window_made = true;
        MPI_TRY(MPI_Win_set_errhandler, n->window, MPI_ERRORS_RETURN);
        MPI_TRY(MPI_Win_lock_all, MPI_MODE_NOCHECK, n->window);
    }
    MPI_TRY(MPI_Barrier, n->comm);
    MPI_TRY(MPI_Win_sync, n->shared);
    for (int i = 0; i < net->size; i++) at[i] = n->at[i];
    return CTN_OK;
}

static ctn_status mpi_region(ctn__net *net, size_t bytes, void **at)
{
    mpi_net *n = (mpi_net *)net;
    MPI_TRY(meet, n->comm);
    lock_calls();
    const ctn_status st = region(n, bytes, at);
    unlock_calls();
    return st;
}

/* ---- communicators --------------------------------------------------------------------------- */

static bool mpi_threads(const ctn__net *net)
{
    return ((const mpi_net *)net)->threads;
}

static void mpi_free(ctn__net *net)
{
    mpi_net *n = (mpi_net *)net;
    const bool runs = running();
    if (runs) (void)meet(n->comm);
    if (runs) lock_calls();
    mpi_forget(net, 0, UINT64_MAX);
    if (runs) {
        if (n->window_made) {
            MPI_Win_unlock_all(n->window);
            MPI_Win_free(&n->window);
        }
        if (n->shared_made) {
            MPI_Win_unlock_all(n->shared);
            MPI_Win_free(&n->shared);
        }
        if (n->bf16 != MPI_OP_NULL) MPI_Op_free(&n->bf16);
        if (n->f16 != MPI_OP_NULL) MPI_Op_free(&n->f16);
        MPI_Comm_free(&n->node);
        MPI_Comm_free(&n->comm);
        unlock_calls();
    }
    free(n->at);
    free(n->sums);
    free(net->node);
    free(n);
}

static ctn_status mpi_heard(ctn__net *net, int tag, void *buf, size_t bytes, bool *got)
{
    mpi_net *n = (mpi_net *)net;
    int there = 0;
    MPI_Status from;
    MPI_TRY(MPI_Iprobe, MPI_ANY_SOURCE, tag, n->comm, &there, &from);
    *got = there;
    if (there)
        MPI_TRY(MPI_Recv, buf, (int)bytes, MPI_BYTE, from.MPI_SOURCE, tag, n->comm,
                MPI_STATUS_IGNORE);
    return CTN_OK;
}

static ctn_status make(ctn__net **out, MPI_Comm from);

/* Held while communicators are made. Then `beat` keeps still: Open MPI 5.0.7 can crash if two
 * threads take part in that, and the thread that waits moves the heartbeat itself. */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

static void begin_making(void)
{
    lock_calls();
    pthread_mutex_lock(&making);
}

static void end_making(void)
{
    pthread_mutex_unlock(&making);
    unlock_calls();
}

static ctn_status mpi_again(ctn__net *net, ctn__net **out)
{
    return make(out, ((mpi_net *)net)->comm);
}

static ctn_status mpi_split(ctn__net *net, int color, int key, ctn__net **out)
{
    MPI_Comm part = MPI_COMM_NULL;
    MPI_TRY(meet, ((mpi_net *)net)->comm);
    begin_making();
    const int error =
        MPI_Comm_split(((mpi_net *)net)->comm, color < 0 ? MPI_UNDEFINED : color, key, &part);
    end_making();
    if (error != MPI_SUCCESS) return wrong(error, "MPI_Comm_split", -1);
    *out = NULL;
    if (part == MPI_COMM_NULL) return CTN_OK;
    ctn_status st = make(out, part); /* duplicates it */
    if (st < 0) return st;
    (void)meet(part);
    lock_calls();
    MPI_Comm_free(&part);
    unlock_calls();
    return CTN_OK;
}

static bool survives(void)
{
#ifdef OPEN_MPI
    return &ompi_ftmpi_enabled && MPIX_Comm_revoke && MPIX_Comm_shrink && MPIX_Comm_agree &&
           ompi_ftmpi_enabled;
#else
    return false;
#endif
}

static void mpi_revoke(ctn__net *net)
{
#ifdef OPEN_MPI
    mpi_net *n = (mpi_net *)net;
    if (survives() && !n->revoked) MPIX_Comm_revoke(n->comm);
    n->revoked = true;
#else
    (void)net;
#endif
}

#ifdef OPEN_MPI
enum { SHRINKS = 8 }; /* attempts; each one finds at least one more rank lost */

/* Makes a net of the ranks of *comm that are left. *sound: all of them have one. *comm becomes
 * theirs, or MPI_COMM_NULL if that fails. */
static ctn_status shrink_once(MPI_Comm *comm, ctn__net **out, bool *sound)
{
    MPI_Comm left = MPI_COMM_NULL;
    begin_making();
    const int error = MPIX_Comm_shrink(*comm, &left);
    end_making();
    *comm = left;
    if (error != MPI_SUCCESS) return wrong(error, "MPIX_Comm_shrink", -1);
    MPI_TRY(MPI_Comm_set_errhandler, left, MPI_ERRORS_RETURN);
    const ctn_status st = make(out, left);
    int made = st == CTN_OK;
    begin_making();
    if (!made) MPIX_Comm_revoke(left); /* other ranks may wait there */
    const bool agreed = MPIX_Comm_agree(left, &made) == MPI_SUCCESS;
    end_making();
    *sound = agreed && made;
    return *sound ? CTN_OK : st;
}

/* A rank that was lost at the same time may not be known to be lost yet. It is then among those
 * that seem to be left, and making the net fails. */
static ctn_status shrink(ctn__net *net, ctn__net **out)
{
    MPI_Comm comm = ((mpi_net *)net)->comm;
    ctn_status st = CTN_OK;
    bool sound = false;
    mpi_revoke(net);
    for (int i = 0; i < SHRINKS && !sound; i++) {
        ctn__net *made = NULL;
        st = shrink_once(&comm, &made, &sound);
        if (sound) *out = made;
        else if (made) mpi_revoke(made); /* not freed: that is collective */
        else if (comm == MPI_COMM_NULL) return st;
    }
    if (sound || st < 0) return st;
    return fail(CTN_EPEER, "other ranks cannot continue");
}
#endif

static ctn_status mpi_shrink(ctn__net *net, ctn__net **out)
{
#ifdef OPEN_MPI
    if (survives()) return shrink(net, out);
#endif
    (void)net, (void)out;
    return fail(CTN_ESTATE, "this MPI cannot continue without a lost rank");
}

static const ctn__net_vt vt = {.send = mpi_send,
                               .recv = mpi_recv,
                               .allreduce = mpi_allreduce,
                               .forget = mpi_forget,
                               .put = mpi_put,
                               .heard = mpi_heard,
                               .test = mpi_test,
                               .cancel = mpi_cancel,
                               .drop = mpi_drop,
                               .revoke = mpi_revoke,
                               .shrink = mpi_shrink,
                               .again = mpi_again,
                               .split = mpi_split,
                               .region = mpi_region,
                               .threads = mpi_threads,
                               .free = mpi_free,
                               .together = true};

/* The words up to the first number of a text such as "Open MPI v5.0.7, package: ..." or
 * "MPICH Version:  4.2.1\n...". */
static void name_of(char *out, size_t room)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING > 8192 ? MPI_MAX_LIBRARY_VERSION_STRING : 8192] = "";
    int length = 0;
    if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) text[0] = 0;
    size_t n = 0;
    char *rest = NULL;
    out[0] = 0;
    for (char *w = strtok_r(text, " \t\n,", &rest); w; w = strtok_r(NULL, " \t\n,", &rest)) {
        const bool last = strpbrk(w, "0123456789") != NULL;
        if (strcmp(w, "Version:") == 0 || strcmp(w, "version") == 0) continue;
        if (last && w[0] == 'v') w++;
        int more = snprintf(out + n, room - n, "%s%s", n ? " " : "", w);
        if (last || more < 0 || (n += (size_t)more) >= room) break;
    }
    if (!out[0]) snprintf(out, room, "MPI");
}

/* Finds the ranks that share memory; a node is known by its lowest rank. */
static ctn_status find_nodes(mpi_net *n)
{
    MPI_TRY(MPI_Comm_split_type, n->comm, MPI_COMM_TYPE_SHARED, n->net.rank, MPI_INFO_NULL,
            &n->node);
#ifdef CTN__MPI_NODE_RANKS /* for tests: nodes of this many ranks on one machine */
    MPI_Comm whole = n->node;
    MPI_TRY(MPI_Comm_split, whole, n->net.rank / CTN__MPI_NODE_RANKS, n->net.rank, &n->node);
    MPI_TRY(MPI_Comm_free, &whole);
#endif
    int lowest = n->net.rank;
    MPI_TRY(MPI_Bcast, &lowest, 1, MPI_INT, 0, n->node);
    MPI_TRY(MPI_Allgather, &lowest, 1, MPI_INT, n->net.node, 1, MPI_INT, n->comm);
    return CTN_OK;
}

static bool own_mpi; /* Catena has started MPI; the program makes no MPI calls of its own */

static ctn_status fill(mpi_net *n, MPI_Comm from)
{
    MPI_TRY(MPI_Comm_dup, from, &n->comm);
    MPI_TRY(MPI_Comm_set_errhandler, n->comm, MPI_ERRORS_RETURN);
    MPI_TRY(MPI_Comm_rank, n->comm, &n->net.rank);
    MPI_TRY(MPI_Comm_size, n->comm, &n->net.size);
    if (!(n->net.node = malloc((size_t)n->net.size * sizeof *n->net.node)))
        return fail(CTN_ENOMEM, "out of memory for the nodes of %d ranks", n->net.size);
    int level = MPI_THREAD_SINGLE;
    MPI_TRY(MPI_Query_thread, &level);
    /* If the program calls MPI itself, only MPI can serialise its calls with our thread's. */
    n->threads = level >= (own_mpi ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE);
    name_of(n->net.name, sizeof n->net.name);
    n->net.survives = survives();
    return find_nodes(n);
}

static ctn_status make(ctn__net **out, MPI_Comm from)
{
    if (!running()) return fail(CTN_ESTATE, "MPI is not running; call MPI_Init first");
    int inter = 0;
    if (from == MPI_COMM_NULL) return fail(CTN_EARG, "the communicator is MPI_COMM_NULL");
    MPI_TRY(MPI_Comm_test_inter, from, &inter);
    if (inter) return fail(CTN_EARG, "got an intercommunicator, expected an intracommunicator");
    MPI_TRY(meet, from);
    mpi_net *n = calloc(1, sizeof *n);
    if (!n) return fail(CTN_ENOMEM, "out of memory for a communicator");
    n->net.vt = &vt;
    n->bf16 = n->f16 = MPI_OP_NULL;
    n->comm = n->node = MPI_COMM_NULL;
    if (take_turns()) n->net.lock = &turns;
    begin_making();
    ctn_status st = fill(n, from);
    end_making();
    if (st < 0) {
        /* Do not free MPI's part: that is collective, and other ranks may not have failed. If they
         * wait for this one, they must learn of it. */
#ifdef OPEN_MPI
        if (survives() && n->comm != MPI_COMM_NULL) MPIX_Comm_revoke(n->comm);
        if (survives() && n->node != MPI_COMM_NULL) MPIX_Comm_revoke(n->node);
#endif
        free(n->net.node);
        free(n);
        return st;
    }
    *out = &n->net;
    return CTN_OK;
}

static ctn_status world(ctn__net **out)
{
    return make(out, MPI_COMM_WORLD);
}

static ctn_status adopt(ctn__net **out, const void *handle)
{
    MPI_Comm comm;
    memcpy(&comm, handle, sizeof comm);
    return make(out, comm);
}

static MPI_Comm from_fortran(int handle)
{
#ifndef MPI_Comm_f2c
    if (!MPI_Comm_f2c) { /* then a handle is the same integer as in C */
        MPI_Comm same = MPI_COMM_NULL;
        memcpy(&same, &handle, sizeof handle);
        return same;
    }
#endif
    return MPI_Comm_f2c((MPI_Fint)handle);
}

static ctn_status adopt_fortran(ctn__net **out, int handle)
{
    if (!running()) return fail(CTN_ESTATE, "MPI is not running; call MPI_Init first");
    return make(out, from_fortran(handle));
}

/* Open MPI's heartbeat, by which ranks notice that another one is lost, is moved by whoever calls
 * MPI, and a rank that computes does not. Open MPI can use a thread of its own
 * (mpi_ft_detector_thread), but that thread sends its first message while other ranks are still in
 * MPI_Init, which crashes them (5.0.7). */
static pthread_t heart;
static atomic_bool beating;

static void *beat(void *unused)
{
    while (atomic_load(&beating)) {
        int there;
        if (pthread_mutex_trylock(&making) == 0) {
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &there, MPI_STATUS_IGNORE);
            pthread_mutex_unlock(&making);
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    return unused;
}

static ctn_status start_heart(void)
{
    sigset_t all, before;
    sigfillset(&all); /* signals belong to the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    atomic_store(&beating, true);
    const int e = pthread_create(&heart, NULL, beat, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e == 0) return CTN_OK;
    atomic_store(&beating, false);
    return fail(CTN_ENOMEM, "cannot start a thread: %s", strerror(e));
}

static ctn_status init(int *argc, char ***argv)
{
    int begun = 0, ended = 0, level;
    MPI_TRY(MPI_Initialized, &begun);
    MPI_TRY(MPI_Finalized, &ended); /* after it, old MPI libraries forget MPI_Init */
    if (begun || ended)
        return fail(CTN_ESTATE,
                    "MPI was already started in this process and can be started only once");
    MPI_TRY(MPI_Init_thread, argc, argv, MPI_THREAD_MULTIPLE, &level);
    own_mpi = true;
    /* Some MPI libraries use these error handlers for calls without a communicator, such as
     * MPI_Test. In a guest, the program's handlers are kept. */
    MPI_TRY(MPI_Comm_set_errhandler, MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_TRY(MPI_Comm_set_errhandler, MPI_COMM_SELF, MPI_ERRORS_RETURN);
    return survives() && level == MPI_THREAD_MULTIPLE ? start_heart() : CTN_OK;
}

static ctn_status finalize(void)
{
    if (atomic_exchange(&beating, false)) pthread_join(heart, NULL);
    MPI_TRY(MPI_Finalize);
    return CTN_OK;
}

extern const ctn__net_plugin catena_net;
__attribute__((visibility("default"))) const ctn__net_plugin catena_net = {
    CTN__NET_ABI, CTN_MPI_ABI, use, init, finalize, running, world, adopt, adopt_fortran,
};
