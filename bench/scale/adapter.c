/* SPDX-License-Identifier: Apache-2.0
 *
 * See adapter.h. The simulated clock stands still while code runs, so a loop that polls would never
 * end. Therefore the transport blocks: when each request in flight has been tested once without
 * success, it waits for the next message to arrive. The contents of long messages are neither
 * copied nor added; the time that adding would take passes instead.
 */
#include <mpi.h>
#include <simgrid/actor.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <stdlib.h>

#include "adapter.h"

#define TICK 1e-9 /* the shortest time that the simulator knows */

/* Bytes of the message that follows a put; up to which contents are real, because ranks agree on
 * things with them; of buffers that each rank has for itself; of the memory that all share. */
enum { NOTICE = 1, SHORT = 4096, BUFFER = 1 << 18, FIRST = 1 << 28 };

typedef struct {
    bool used, done;
} slot;

typedef struct {
    ctn__net net;
    int active;   /* requests in flight */
    int found;    /* requests that are done and not collected yet */
    int misses;   /* tests without success since anything happened */
    bool puts;    /* there are regions */
    bool polls;   /* kernels run meanwhile: a test does not wait */
    double add_s; /* seconds to add or convert a byte */
    double messages, sent;
    double busy_s, since; /* seconds with requests in flight; when the first of them began */
    MPI_Request *request;
    slot *slot;
    int room;
    size_t *put; /* bytes put to each rank, without a notice yet; NULL: no region yet */
} sim;

double sim_now(void)
{
    return MPI_Wtime();
}

void sim_sent(const ctn__net *net, double out[3])
{
    const sim *s = (const sim *)net;
    out[0] = s->messages;
    out[1] = s->sent;
    out[2] = s->busy_s;
}

/* ---- bytes on links -------------------------------------------------------------------------- */

static bool counting;

static double *load_of(const_sg_link_t link)
{
    return sg_link_get_data(link);
}

static void count_on_links(int from, int to, double bytes)
{
    char name[2][32];
    int n = 0;
    if (!counting || from == to) return;
    snprintf(name[0], sizeof name[0], "n%d", from);
    snprintf(name[1], sizeof name[1], "n%d", to);
    const_sg_link_t *link =
        sg_host_get_route_links(sg_host_by_name(name[0]), sg_host_by_name(name[1]), &n);
    for (int i = 0; i < n; i++) *load_of(link[i]) += bytes;
    free((void *)link);
}

void sim_links_begin(void)
{
    const size_t n = sg_link_count();
    sg_link_t *link = sg_link_list();
    double *load = calloc(n, sizeof *load); /* until the end of the process */
    if (!link || !load) abort();
    for (size_t i = 0; i < n; i++) sg_link_set_data(link[i], &load[i]);
    free(link);
    counting = true;
}

void sim_links_end(double out[2])
{
    sg_link_t *link = sg_link_list();
    int used = 0;
    counting = false;
    out[0] = out[1] = 0;
    for (size_t i = 0; i < sg_link_count(); i++) {
        const double bytes = *load_of(link[i]);
        used += bytes > 0;
        out[0] += bytes;
        if (bytes > out[1]) out[1] = bytes;
    }
    if (used > 0) out[0] /= used;
    free(link);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* One memory for the data of all ranks. The simulator does not copy messages from or to it. If more
 * is needed, there is a new one, and the old one stays. */
static struct {
    char *at;
    size_t bytes;
} memory[16];
static int memories;

void *sim_memory(size_t bytes)
{
    if (memories > 0 && bytes <= memory[memories - 1].bytes) return memory[memories - 1].at;
    if (memories == (int)(sizeof memory / sizeof *memory)) abort();
    memory[memories].bytes = bytes < FIRST ? FIRST : 2 * bytes;
    memory[memories].at = SMPI_SHARED_MALLOC(memory[memories].bytes);
    if (!memory[memories].at) abort();
    return memory[memories++].at;
}

/* Long buffers of the library are that memory too. */
void *__real_ctn__aligned(size_t bytes);
void *__wrap_ctn__aligned(size_t bytes);
void *__wrap_ctn__aligned(size_t bytes)
{
    return bytes > BUFFER ? sim_memory(bytes) : __real_ctn__aligned(bytes);
}

void __real_ctn__free(void *p);
void __wrap_ctn__free(void *p);
void __wrap_ctn__free(void *p)
{
    for (int i = 0; i < memories; i++)
        if ((char *)p >= memory[i].at && (char *)p < memory[i].at + memory[i].bytes) return;
    __real_ctn__free(p);
}

static void *contents(const void *buf, size_t bytes)
{
    return bytes > SHORT ? sim_memory(bytes) : (void *)(uintptr_t)buf;
}

/* ---- work on messages ------------------------------------------------------------------------ */

/* Lets the time pass that the work on n elements would take. False: do the work. */
static bool skip(int64_t n, ctn_dtype type)
{
    const sim *s = smpi_process_get_user_data();
    const double bytes = (double)n * (double)ctn_dtype_size(type);
    if (!s || bytes <= SHORT) return false;
    sg_actor_sleep_for(s->add_s * bytes);
    return true;
}

/* The linker gives these the calls of sum.c's functions. */
#define WRAP(name, out, in)                                                                   \
    void __real_##name(void *out, const void *in, int64_t n, ctn_dtype type, ctn_dtype wire); \
    void __wrap_##name(void *out, const void *in, int64_t n, ctn_dtype type, ctn_dtype wire); \
    void __wrap_##name(void *out, const void *in, int64_t n, ctn_dtype type, ctn_dtype wire)  \
    {                                                                                         \
        if (!skip(n, wire)) __real_##name(out, in, n, type, wire);                            \
    }

WRAP(ctn__sum_into, y, x)
WRAP(ctn__to_wire, wire_out, x)
WRAP(ctn__from_wire, y, wire_in)

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

static ctn_status begin(sim *s, ctn__net_req *r, int *at)
{
    *at = new_slot(s);
    if (*at < 0) return ctn_fail(CTN_ENOMEM, "no memory for a request");
    s->slot[*at] = (slot){.used = true};
    if (s->active++ == 0) s->since = sim_now();
    s->misses = 0;
    r->word[0] = (uint64_t)*at;
    return CTN_OK;
}

static void end(sim *s)
{
    if (--s->active == 0) s->busy_s += sim_now() - s->since;
}

static ctn_status begin_sending(sim *s, ctn__net_req *r, size_t bytes, int to, int *at)
{
    count_on_links(s->net.rank, to, (double)bytes);
    s->messages++;
    s->sent += (double)bytes;
    return begin(s, r, at);
}

/* Sends the notice that follows a put together with what was put: the simulator's own puts are not
 * complete at the target when they are at the origin. */
static ctn_status sim_send(ctn__net *n, const void *buf, size_t bytes, int to, int tag,
                           ctn__net_req *r)
{
    sim *s = (sim *)n;
    const size_t put = bytes == NOTICE && s->put ? s->put[to] : 0;
    int at;
    if (put > 0) {
        s->put[to] = 0;
        buf = sim_memory(put);
        bytes = put;
    }
    CTN_TRY(begin_sending(s, r, bytes, to, &at));
    MPI_Isend(contents(buf, bytes), (int)bytes, MPI_BYTE, to, tag, MPI_COMM_WORLD, &s->request[at]);
    return CTN_OK;
}

static ctn_status sim_recv(ctn__net *n, void *buf, size_t bytes, int from, int tag, ctn__net_req *r)
{
    sim *s = (sim *)n;
    int at;
    CTN_TRY(begin(s, r, &at));
    if (bytes == NOTICE && s->put) {
        bytes = FIRST;
        buf = sim_memory(bytes);
    }
    MPI_Irecv(contents(buf, bytes), (int)bytes, MPI_BYTE, from, tag, MPI_COMM_WORLD,
              &s->request[at]);
    return CTN_OK;
}

/* Waits until a request is done. One at a time: the simulator would look at each of several. */
static void collect(sim *s)
{
    int i = 0;
    if (s->active == 0) return;
    MPI_Waitany(s->room, s->request, &i, MPI_STATUS_IGNORE);
    s->slot[i].done = true;
    s->request[i] = MPI_REQUEST_NULL;
    end(s);
    s->found++;
    s->misses = 0;
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
    CTN_TRY(begin(s, r, &at));
    MPI_Allreduce(MPI_IN_PLACE, contents(buf, (size_t)count * ctn_dtype_size(type)), (int)count,
                  type_of(type), MPI_SUM, MPI_COMM_WORLD);
    s->slot[at].done = true;
    end(s);
    s->found++;
    /* The simulator's own sums take no time. Good algorithms add every byte about once. */
    (void)skip(count, type);
    return CTN_OK;
}

static ctn_status sim_put(ctn__net *n, const void *buf, size_t bytes, int to, size_t offset,
                          ctn__net_req *r)
{
    sim *s = (sim *)n;
    int at;
    (void)buf, (void)offset;
    CTN_TRY(begin(s, r, &at));
    s->slot[at].done = true;
    end(s);
    s->found++;
    s->put[to] += bytes;
    return CTN_OK;
}

/* Nobody looks at what is put, and no other rank of the node at the counters. */
static ctn_status sim_region(ctn__net *n, size_t bytes, void **at)
{
    sim *s = (sim *)n;
    if (!s->puts) return ctn_fail(CTN_EUNSUPPORTED, "regions are not simulated");
    s->put = calloc((size_t)n->size, sizeof *s->put);
    if (!s->put) return ctn_fail(CTN_ENOMEM, "no memory for the puts of a rank");
    at[n->rank] = sim_memory(bytes);
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
    free(s->put);
    free(s->request);
    free(s->slot);
    free(n->node);
    free(s);
}

ctn_status sim_net(ctn__net **out, double add_s, bool puts)
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
    s->puts = puts;
    MPI_Comm_rank(MPI_COMM_WORLD, &s->net.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s->net.size);
    snprintf(s->net.name, sizeof s->net.name, "SimGrid");
    s->net.node = malloc((size_t)s->net.size * sizeof *s->net.node);
    if (!s->net.node) return ctn_fail(CTN_ENOMEM, "no memory for the nodes of the ranks");
    for (int i = 0; i < s->net.size; i++) s->net.node[i] = i;
    smpi_process_set_user_data(s);
    *out = &s->net;
    return CTN_OK;
}
