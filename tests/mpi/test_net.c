/* SPDX-License-Identifier: Apache-2.0
 *
 * The transport alone: the plug-in argv[1] through comm/net.h. Messages of all sizes in both
 * directions, sums of all types, memory shared within a node, and puts to other nodes. A plug-in
 * built with a small CTN__MPI_MOST and CTN__MPI_NODE_RANKS splits messages and has several nodes
 * even on one machine.
 */
#include <dlfcn.h>
#include <string.h>

#include <catena/mpi.h>
#include "cases.h"
#include "comm/net.h"
#include "tensor/half.h"

static ctn__net *net;

static void wait_for(ctn__net_req *r)
{
    for (bool done = false; !done;) DONE(net->vt->test(net, r, &done));
}

/* Sends messages around the ring, with receives of two tags posted in reverse order. */
static void messages(size_t bytes)
{
    const int to = (net->rank + 1) % net->size, from = (net->rank + net->size - 1) % net->size;
    char *out[2], *in[2];
    ctn__net_req s[2], r[2];
    for (int k = 0; k < 2; k++) {
        out[k] = malloc(bytes + 1);
        in[k] = calloc(bytes + 1, 1);
        CHECK(out[k] && in[k]);
        for (size_t i = 0; i < bytes; i++)
            out[k][i] = (char)((size_t)net->rank * 31 + i * 7 + (size_t)k);
    }
    for (int k = 0; k < 2; k++)
        DONE(net->vt->recv(net, in[k], bytes, from, CTN__NET_TAGS - 1 - k, &r[k]));
    for (int k = 1; k >= 0; k--)
        DONE(net->vt->send(net, out[k], bytes, to, CTN__NET_TAGS - 1 - k, &s[k]));
    for (int k = 0; k < 2; k++) {
        wait_for(&r[k]);
        wait_for(&s[k]);
        for (size_t i = 0; i < bytes; i++)
            CHECK(in[k][i] == (char)((size_t)from * 31 + i * 7 + (size_t)k));
        CHECK(in[k][bytes] == 0);
        free(in[k]);
        free(out[k]);
    }
}

/* A message that is shorter or longer than expected is an error, and not the data of a success. */
static void lengths(void)
{
    static const size_t sent[] = {400, 16, 1600}, expected[] = {800, 1600, 800};
    const int to = (net->rank + 1) % net->size, from = (net->rank + net->size - 1) % net->size;
    char out[1600] = {0}, in[1600], want[128];
    for (int k = 0; k < 3; k++) {
        ctn__net_req s, r;
        ctn_status st = CTN_OK;
        DONE(net->vt->recv(net, in, expected[k], from, 3, &r));
        DONE(net->vt->send(net, out, sent[k], to, 3, &s));
        for (bool done = false; st == CTN_OK && !done;) st = net->vt->test(net, &r, &done);
        snprintf(want, sizeof want, "rank %d expected %zu bytes from rank %d, which sent %s",
                 net->rank, expected[k], from, sent[k] > expected[k] ? "more" : "less");
        CHECK(st == CTN_EENGINE && strstr(ctn_error_message(), want));
        ctn_error_clear();
        wait_for(&s);
    }
}

static void put_value(void *buf, int64_t i, ctn_dtype type, int v)
{
    switch (type) {
    case CTN_F32: ((float *)buf)[i] = (float)v; break;
    case CTN_F64: ((double *)buf)[i] = v; break;
    case CTN_I32: ((int32_t *)buf)[i] = v; break;
    case CTN_I64: ((int64_t *)buf)[i] = v; break;
    case CTN_BF16: ((uint16_t *)buf)[i] = ctn__bf16_put((float)v); break;
    default: ((uint16_t *)buf)[i] = ctn__f16_put((float)v); break;
    }
}

/* Two sums at a time. */
static void sums(int64_t n, ctn_dtype type)
{
    static const size_t bytes[] = {0, 4, 8, 2, 2, 8, 4};
    const size_t all = (size_t)n * bytes[type];
    char *buf[2], *want = malloc(all + 1);
    ctn__net_req r[2];
    for (int k = 0; k < 2; k++) {
        buf[k] = malloc(all + 1);
        CHECK(buf[k] && want);
        for (int64_t i = 0; i < n; i++) put_value(buf[k], i, type, (int)(i % 5) + net->rank + k);
        DONE(net->vt->allreduce(net, buf[k], n, type, 0, &r[k]));
    }
    for (int k = 1; k >= 0; k--) {
        wait_for(&r[k]);
        for (int64_t i = 0; i < n; i++)
            put_value(want, i, type,
                      net->size * ((int)(i % 5) + k) + net->size * (net->size - 1) / 2);
        CHECK(memcmp(buf[k], want, all) == 0);
        free(buf[k]);
    }
    free(want);
}

/* The same vectors repeatedly, three in flight, and new ones that reuse the numbers of forgotten
 * ones. */
static void prepared_sums(void)
{
    enum { N = 777, VECTORS = 3 };
    static float x[2][VECTORS][N];
    for (int round = 0; round < 8; round++) {
        float(*v)[N] = x[round / 4];
        ctn__net_req r[VECTORS];
        for (int k = 0; k < VECTORS; k++) {
            for (int i = 0; i < N; i++) v[k][i] = (float)(net->rank + i % 3 + k + round);
            DONE(net->vt->allreduce(net, v[k], N, CTN_F32, (uint64_t)k + 5, &r[k]));
        }
        for (int k = VECTORS; k-- > 0;) {
            wait_for(&r[k]);
            for (int i = 0; i < N; i++) {
                const int want = net->size * (i % 3 + k + round) + net->size * (net->size - 1) / 2;
                CHECK(v[k][i] == (float)want);
            }
        }
        if (round % 4 == 3) net->vt->forget(net, 5, 5 + VECTORS);
    }
}

static void barrier(void)
{
    int32_t one = 1;
    ctn__net_req r;
    DONE(net->vt->allreduce(net, &one, 1, CTN_I32, 0, &r));
    wait_for(&r);
    CHECK(one == net->size);
}

/* Every rank puts into its own slot of everybody's region. */
static void regions(size_t slot)
{
    const size_t bytes = slot * (size_t)net->size;
    void **at = calloc((size_t)net->size, sizeof *at);
    char *mine = malloc(slot);
    CHECK(at && mine);
    DONE(net->vt->region(net, bytes, at));
    CHECK(at[net->rank]);
    for (int i = 0; i < net->size; i++)
        CHECK((at[i] != NULL) == (net->node[i] == net->node[net->rank]));
    const char *seen = at[net->rank];
    for (size_t i = 0; i < bytes; i++) CHECK(seen[i] == 0);
    barrier();
    for (size_t i = 0; i < slot; i++) mine[i] = (char)((size_t)net->rank * 17 + i * 3 + 1);
    for (int to = 0; to < net->size; to++) {
        ctn__net_req r;
        DONE(net->vt->put(net, mine, slot, to, slot * (size_t)net->rank, &r));
        wait_for(&r);
    }
    barrier(); /* all puts have arrived */
    for (int from = 0; from < net->size; from++)
        for (size_t i = 0; i < slot; i++)
            CHECK(seen[slot * (size_t)from + i] == (char)((size_t)from * 17 + i * 3 + 1));
    for (int i = 0; i < net->size; i++) /* puts to other ranks of the node are visible from here */
        if (at[i]) CHECK(((const char *)at[i])[slot * (size_t)net->rank] == mine[0]);
    barrier();
    free(at);
    free(mine);
}

int main(int argc, char **argv)
{
    int level, errors = 0;
    CHECK(argc == 3); /* plug-in, ranks of a node or 0 */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    void *h = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!h) fprintf(stderr, "%s\n", dlerror());
    CHECK(h);
    const ctn__net_plugin *p = dlsym(h, "catena_net");
    CHECK(p && p->abi == CTN__NET_ABI && strcmp(p->mpi, CTN_MPI_ABI) == 0);
    p->use(ctn_fail);
    CHECK(p->running());
    CHECK(p->init(NULL, NULL) == CTN_ESTATE);
    ctn_error_clear();

    MPI_Comm world = MPI_COMM_WORLD;
    DONE(p->adopt(&net, &world));
    const int per = atoi(argv[2]);
    for (int i = 0; i < net->size; i++) CHECK(net->node[i] == (per > 0 ? i / per * per : 0));
    CHECK(net->vt->threads(net) == (level >= MPI_THREAD_SERIALIZED));
    if (net->rank == 0) printf("%s, %d ranks, nodes of %d\n", net->name, net->size, per);
    static const size_t sizes[] = {0, 1, 999, 1000, 1001, 65536, 3000000};
    for (int i = 0; i < 7; i++) messages(sizes[i]);
    lengths();
    static const ctn_dtype types[] = {CTN_F32, CTN_F64, CTN_I32, CTN_I64, CTN_BF16, CTN_F16};
    for (int t = 0; t < 6; t++)
        for (int i = 0; i < 6; i++) sums((int64_t)sizes[i], types[t]);
    prepared_sums();
    regions(5003);
    /* A wrong rank is returned as a status and does not reach the program's own error handler. */
    ctn__net_req r;
    errors += net->vt->send(net, &errors, 4, net->size + 5, 1, &r) == CTN_EENGINE;
    CHECK(errors == 1 && strstr(ctn_error_message(), "MPI_Isend to rank"));
    if (net->rank == 0) printf("an error: %s\n", ctn_error_message());
    ctn_error_clear();
    net->vt->free(net);
    DONE(p->world(&net));
    messages(1000);
    net->vt->free(net);
    MPI_Finalize();
    CHECK(!p->running());
    return 0;
}
