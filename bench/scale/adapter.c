/* SPDX-License-Identifier: Apache-2.0
 *
 * See adapter.h. The simulated clock stands still while code runs, so a loop that polls would never
 * end. Therefore the transport blocks: when each request in flight has been tested once without
 * success, it waits for the next message to arrive.
 */
#include <mpi.h>
#include <simgrid/actor.h>
#include <stdlib.h>

#include "adapter.h"

#define TICK 1e-9 /* the shortest time that the simulator knows */

typedef struct {
    bool used, done;
    size_t bytes; /* received, that must still be added or converted */
} slot;

typedef struct {
    ctn__net net;
    int active;   /* requests in flight */
    int found;    /* requests that are done and not collected yet */
    int misses;   /* tests without success since anything happened */
    bool polls;   /* kernels run meanwhile: a test does not wait */
    double add_s; /* seconds to add or convert a byte that has arrived */
    double messages, sent;
    MPI_Request *request;
    slot *slot;
    int room;
    char *region;
    MPI_Win window;
    bool window_made;
} sim;

double sim_now(void)
{
    return MPI_Wtime();
}

void sim_sent(const ctn__net *net, double *messages, double *bytes)
{
    const sim *s = (const sim *)net;
    *messages = s->messages;
    *bytes = s->sent;
}

/* The data of all ranks. The simulator does not copy messages from or to this memory. */
static char *data;
static size_t data_bytes;

void *sim_memory(size_t bytes)
{
    if (bytes <= data_bytes) return data;
    data_bytes = bytes;
    data = SMPI_SHARED_MALLOC(bytes);
    if (!data) abort();
    return data;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int new_slot(sim *s)
{
    for (int i = 0; i < s->room; i++)
        if (!s->slot[i].used) return i;
    const int room = s->room ? 2 * s->room : 32, at = s->room;
    MPI_Request *request = realloc(s->request, (size_t)room * sizeof *request);
    if (request) s->request = request;
    slot *more = realloc(s->slot, (size_t)room * sizeof *more);
    if (more) s->slot = more;
    if (!request || !more) return -1;
    for (int i = s->room; i < room; i++) {
        s->request[i] = MPI_REQUEST_NULL;
        s->slot[i] = (slot){0};
    }
    s->room = room;
    return at;
}

static ctn_status begin(sim *s, ctn__net_req *r, size_t bytes, int *at)
{
    *at = new_slot(s);
    if (*at < 0) return ctn_fail(CTN_ENOMEM, "no memory for a request");
    s->slot[*at] = (slot){.used = true, .bytes = bytes};
    s->active++;
    s->misses = 0;
    r->word[0] = (uint64_t)*at;
    return CTN_OK;
}

static ctn_status begin_sending(sim *s, ctn__net_req *r, size_t bytes, int *at)
{
    s->messages++;
    s->sent += (double)bytes;
    return begin(s, r, 0, at);
}

static ctn_status sim_send(ctn__net *n, const void *buf, size_t bytes, int to, int tag,
                           ctn__net_req *r)
{
    sim *s = (sim *)n;
    int at;
    CTN_TRY(begin_sending(s, r, bytes, &at));
    MPI_Isend(buf, (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &s->request[at]);
    return CTN_OK;
}

static ctn_status sim_recv(ctn__net *n, void *buf, size_t bytes, int from, int tag, ctn__net_req *r)
{
    sim *s = (sim *)n;
    int at;
    const bool final = (char *)buf >= data && (char *)buf < data + data_bytes;
    CTN_TRY(begin(s, r, final ? 0 : bytes, &at));
    MPI_Irecv(buf, (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD, &s->request[at]);
    return CTN_OK;
}

/* The work on a message that has arrived. */
static void add_bytes(const sim *s, double bytes)
{
    if (bytes > 0) sg_actor_sleep_for(s->add_s * bytes);
}

/* Waits until a request is done. One at a time: the simulator would look at each of several. */
static void collect(sim *s)
{
    int i = 0;
    if (s->active == 0) return;
    MPI_Waitany(s->room, s->request, &i, MPI_STATUS_IGNORE);
    s->slot[i].done = true;
    s->request[i] = MPI_REQUEST_NULL;
    s->active--;
    s->found++;
    s->misses = 0;
    add_bytes(s, (double)s->slot[i].bytes);
}

static ctn_status sim_test(ctn__net *n, ctn__net_req *r, bool *done)
{
    sim *s = (sim *)n;
    slot *k = &s->slot[r->word[0]];
    if (!k->done && !s->polls && s->misses++ > s->active + s->found) collect(s);
    *done = k->done;
    if (!k->done) return CTN_OK;
    s->found--;
    s->misses = 0;
    *k = (slot){0};
    return CTN_OK;
}

ctn_status sim_compute(ctn_comm *c, double until)
{
    sim *s = (sim *)c->net;
    s->polls = true;
    for (double now; until - (now = sim_now()) > TICK;) {
        CTN_TRY(ctn__comm_poll(c));
        if (s->active == 0) sg_actor_sleep_for(until - now);
        collect(s);
    }
    s->polls = false;
    return CTN_OK;
}

/* Waiting loops of comm/ sleep after a while, because ranks may share a core. Here they do not, and
 * a test waits anyway. Without a request in flight they wait for another rank of their node. */
int __wrap_smpi_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_smpi_nanosleep(const struct timespec *t, struct timespec *left)
{
    (void)t, (void)left;
    const sim *s = smpi_process_get_user_data();
    if (!s || s->active + s->found == 0) sg_actor_sleep_for(1e-6);
    return 0;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static MPI_Datatype type_of(ctn_dtype t)
{
    return t == CTN_F64   ? MPI_DOUBLE
           : t == CTN_I32 ? MPI_INT
           : t == CTN_I64 ? MPI_INT64_T
                          : MPI_FLOAT;
}

/* Blocks. That is safe, because all ranks start these in the same order. */
static ctn_status sim_allreduce(ctn__net *n, void *buf, int64_t count, ctn_dtype type,
                                uint64_t again, ctn__net_req *r)
{
    sim *s = (sim *)n;
    int at;
    (void)again;
    CTN_TRY(begin(s, r, 0, &at));
    MPI_Allreduce(MPI_IN_PLACE, buf, (int)count, type_of(type), MPI_SUM, MPI_COMM_WORLD);
    s->slot[at].done = true;
    s->active--;
    s->found++;
    /* The simulator's own sums take no time. Good algorithms add every byte about once. */
    add_bytes(s, (double)count * (double)ctn_dtype_size(type));
    return CTN_OK;
}

static ctn_status sim_put(ctn__net *n, const void *buf, size_t bytes, int to, size_t offset,
                          ctn__net_req *r)
{
    sim *s = (sim *)n;
    int at;
    CTN_TRY(begin_sending(s, r, bytes, &at));
    MPI_Rput(buf, (int)bytes, MPI_BYTE, to, (MPI_Aint)offset, (int)bytes, MPI_BYTE, s->window,
             &s->request[at]);
    return CTN_OK;
}

static ctn_status sim_region(ctn__net *n, size_t bytes, void **at)
{
    sim *s = (sim *)n;
    s->region = ctn__calloc(1, bytes);
    if (!s->region) return CTN_ENOMEM;
    MPI_Win_create(s->region, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &s->window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, s->window);
    s->window_made = true;
    for (int i = 0; i < n->size; i++) {
        uint64_t mine = (uint64_t)(uintptr_t)s->region, theirs = 0;
        if (n->node[i] != n->node[n->rank]) continue;
        MPI_Sendrecv(&mine, 8, MPI_BYTE, i, CTN__NET_TAGS, &theirs, 8, MPI_BYTE, i, CTN__NET_TAGS,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        at[i] = (void *)(uintptr_t)theirs;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    return CTN_OK;
}

static void sim_forget(ctn__net *n, uint64_t first, uint64_t end)
{
    (void)n, (void)first, (void)end;
}

/* No rank fails here. */
static ctn_status sim_heard(ctn__net *n, int tag, void *buf, size_t bytes, bool *got)
{
    (void)n, (void)tag, (void)buf, (void)bytes;
    *got = false;
    return CTN_OK;
}

static bool sim_cancel(ctn__net *n, ctn__net_req *r)
{
    (void)n, (void)r;
    return false;
}

static bool sim_threads(const ctn__net *n)
{
    (void)n;
    return false;
}

static void sim_free(ctn__net *n)
{
    sim *s = (sim *)n;
    if (s->window_made) {
        MPI_Win_unlock_all(s->window);
        MPI_Win_free(&s->window);
        ctn__free(s->region);
    }
    free(s->request);
    free(s->slot);
    free(n->node);
    free(s);
}

ctn_status sim_net(ctn__net **out, int per_node, double add_s)
{
    static const ctn__net_vt vt = {.send = sim_send,
                                   .recv = sim_recv,
                                   .allreduce = sim_allreduce,
                                   .forget = sim_forget,
                                   .put = sim_put,
                                   .heard = sim_heard,
                                   .test = sim_test,
                                   .cancel = sim_cancel,
                                   .region = sim_region,
                                   .threads = sim_threads,
                                   .free = sim_free};
    sim *s = calloc(1, sizeof *s);
    if (!s) return ctn_fail(CTN_ENOMEM, "no memory for a simulated rank");
    s->net.vt = &vt;
    s->add_s = add_s;
    MPI_Comm_rank(MPI_COMM_WORLD, &s->net.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->net.size);
    snprintf(s->net.name, sizeof s->net.name, "SimGrid");
    s->net.node = malloc((size_t)s->net.size * sizeof *s->net.node);
    if (!s->net.node) return ctn_fail(CTN_ENOMEM, "no memory for the nodes of the ranks");
    for (int i = 0; i < s->net.size; i++) s->net.node[i] = i / per_node * per_node;
    smpi_process_set_user_data(s);
    *out = &s->net;
    return CTN_OK;
}
