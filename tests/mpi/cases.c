/* SPDX-License-Identifier: Apache-2.0
 *
 * The cases of tests/mpi: the input of each rank, every algorithm, and the comparison. Linked
 * into each program of the folder.
 */
#include "cases.h"

#include <string.h>

void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: %s\n%s\n", file, line, what, ctn_error_message());
    exit(1);
}

/* Sums over 7 ranks stay below 256, so they are exact in bf16 too. */
static int value(int rank, int64_t i)
{
    return (int)((rank * 3 + i) % 11) - 4;
}

static void set(void *buf, int64_t i, ctn_dtype type, int v)
{
    switch (type) {
    case CTN_F32: ((float *)buf)[i] = (float)v; break;
    case CTN_F64: ((double *)buf)[i] = v; break;
    case CTN_I32: ((int32_t *)buf)[i] = v; break;
    case CTN_I64: ((int64_t *)buf)[i] = v; break;
    default: check_failed(__FILE__, __LINE__, "a type that is summed");
    }
}

static void fill(void *buf, int64_t n, ctn_dtype type, int rank)
{
    for (int64_t i = 0; i < n; i++) set(buf, i, type, value(rank, i));
}

static void fill_sum(void *buf, int64_t n, ctn_dtype type, int size)
{
    int sum[11] = {0}; /* values repeat */
    for (int64_t i = 0; i < 11; i++)
        for (int r = 0; r < size; r++) sum[i] += value(r, i);
    for (int64_t i = 0; i < n; i++) set(buf, i, type, sum[i % 11]);
}

static void one(ctn_comm *c, const char *algorithm, int64_t n, ctn_dtype type, reference *ref)
{
    const size_t bytes = (size_t)n * ctn_dtype_size(type);
    const size_t guard = 64;
    char *got = malloc(bytes + guard), *want = malloc(bytes);
    CHECK(got && want);
    fill(got, n, type, ctn_comm_rank(c));
    memset(got + bytes, 0x5a, guard);
    if (ref) {
        fill(want, n, type, ctn_comm_rank(c));
        ref(want, n, type);
    } else {
        fill_sum(want, n, type, ctn_comm_size(c));
    }
    bool same = ctn_comm_allreduce(c, got, n, type) >= 0 && memcmp(got, want, bytes) == 0;
    for (size_t i = 0; i < guard; i++) same = same && got[bytes + i] == 0x5a;
    if (!same) {
        fprintf(stderr, "rank %d of %d: %s, %lld elements of %s: %s\n", ctn_comm_rank(c),
                ctn_comm_size(c), algorithm, (long long)n, ctn_dtype_name(type),
                ctn_error_status() < 0 ? ctn_error_message() : "the sum differs");
        exit(1);
    }
    free(got);
    free(want);
}

void run_cases(ctn_comm *c, const char *name, ctn_dtype wire, int64_t most, reference *ref)
{
    static const ctn_dtype types[] = {CTN_F32, CTN_F64, CTN_I32, CTN_I64};
    static const int64_t sizes[] = {
        1, 2, 3, 7, 64, 1000, 4097, 65537, (1 << 20) + 3, (1 << 24) + 3};
    int ran = 0, cases = 0;
    const char *algorithm;
    for (int k = 0; (algorithm = ctn_comm_algorithm_name(k)); k++) {
        /* this algorithm needs another number of ranks */
        if (ctn_comm_set_algorithm(c, algorithm) < 0) {
            if (ctn_comm_rank(c) == 0) printf("%s: %s\n", name, ctn_error_message());
            CHECK(ctn_error_status() == CTN_EARG);
            ctn_error_clear();
            continue;
        }
        ran++;
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
                if (sizes[s] > most || (types[t] != CTN_F32 && sizes[s] > (1 << 20) + 3)) continue;
                if (types[t] != CTN_F32 && wire != CTN_F32) continue;
                one(c, algorithm, sizes[s], types[t], ref);
                cases++;
            }
    }
    CHECK(ran > 0);
    if (ctn_comm_rank(c) == 0)
        printf("%s: %s, %d ranks on %d nodes, wire %s: %d algorithms, %d cases\n", name,
               ctn_comm_transport(c), ctn_comm_size(c), ctn_comm_nodes(c), ctn_dtype_name(wire),
               ran, cases);
    fflush(stdout);
}

void run_others(ctn_comm *c)
{
    const int size = ctn_comm_size(c), rank = ctn_comm_rank(c);
    static char text[100003];
    for (int root = 0; root < size; root++) {
        for (size_t i = 0; i < sizeof text; i++) text[i] = rank == root ? (char)(i * 7 + 1) : 0;
        DONE(ctn_comm_broadcast(c, text, sizeof text, root));
        for (size_t i = 0; i < sizeof text; i++) CHECK(text[i] == (char)(i * 7 + 1));
    }
    int64_t *all = malloc((size_t)size * sizeof *all), mine = rank * 1000 + 5;
    CHECK(all);
    DONE(ctn_comm_allgather(c, &mine, sizeof mine, all));
    for (int r = 0; r < size; r++) CHECK(all[r] == r * 1000 + 5);
    for (int root = 0; root < size; root++) {
        memset(all, 0, (size_t)size * sizeof *all);
        DONE(ctn_comm_gather(c, &mine, sizeof mine, all, root));
        for (int r = 0; rank == root && r < size; r++) CHECK(all[r]++ == r * 1000 + 5);
        int64_t back = 0;
        DONE(ctn_comm_scatter(c, all, sizeof back, &back, root));
        CHECK(back == mine + 1);
    }
    free(all);
    for (int to = 0; to < size; to++) { /* all send before any receives */
        memset(text, rank + to, sizeof text);
        DONE(ctn_comm_send_bytes(c, text, (size_t)(rank * 10000), to));
        DONE(ctn_comm_send_bytes(c, text, 1, to));
    }
    for (int from = 0; from < size; from++) {
        size_t bytes = 1;
        DONE(ctn_comm_recv_size(c, from, &bytes));
        CHECK(bytes == (size_t)(from * 10000));
        DONE(ctn_comm_recv_bytes(c, text, bytes, from));
        for (size_t i = 0; i < bytes; i++) CHECK(text[i] == rank + from);
        DONE(ctn_comm_recv_bytes(c, text, 1, from)); /* a length that is known */
        CHECK(text[0] == rank + from);
    }
    DONE(ctn_comm_barrier(c));
}
