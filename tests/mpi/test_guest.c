/* SPDX-License-Identifier: Apache-2.0
 *
 * Catena as a guest of an MPI program with MPI_THREAD_FUNNELED. Compares sums with plain
 * MPI_Allreduce on the program's world, on a part of it in another order, and while the program
 * sends its own messages. Signals, affinity and error handlers must not change. argv[1]: the
 * maximum number of elements of a sum.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <catena/mpi.h>

#include <fenv.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "cases.h"

static MPI_Comm now;

static void plain(void *buf, int64_t count, ctn_dtype type)
{
    MPI_Datatype t = type == CTN_F32   ? MPI_FLOAT
                     : type == CTN_F64 ? MPI_DOUBLE
                     : type == CTN_I32 ? MPI_INT32_T
                                       : MPI_INT64_T;
    CHECK(MPI_Allreduce(MPI_IN_PLACE, buf, (int)count, t, MPI_SUM, now) == MPI_SUCCESS);
}

typedef struct {
    struct sigaction signal[32];
    cpu_set_t cpus;
    int rounding;
    MPI_Errhandler world, self;
} host;

static void look(host *h)
{
    memset(h, 0, sizeof *h);
    for (int s = 1; s < 32; s++) sigaction(s, NULL, &h->signal[s]);
    sched_getaffinity(0, sizeof h->cpus, &h->cpus);
    h->rounding = fegetround();
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &h->world);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &h->self);
}

static void check_same(const host *a, const host *b)
{
    for (int s = 1; s < 32; s++) CHECK(a->signal[s].sa_handler == b->signal[s].sa_handler);
    CHECK(CPU_EQUAL(&a->cpus, &b->cpus));
    CHECK(a->rounding == b->rounding);
    CHECK(a->world == b->world && a->self == b->self);
}

static void on(MPI_Comm comm, const char *name, int64_t most)
{
    static const ctn_dtype wires[] = {CTN_F32, CTN_BF16, CTN_F16};
    int rank, size;
    now = comm;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int w = 0; w < 3; w++) {
        ctn_comm *c = NULL;
        ctn_comm_opt opt = {.struct_size = sizeof opt, .wire = wires[w]};
        /* The program's own message is in flight all the time, with a tag that Catena uses too. */
        int token = rank, got = -1;
        MPI_Request r[2];
        MPI_Irecv(&got, 1, MPI_INT, (rank + size - 1) % size, 0, comm, &r[0]);
        DONE(ctn_comm_from_mpi(&c, comm, &opt));
        CHECK(ctn_comm_rank(c) == rank && ctn_comm_size(c) == size);
        run_cases(c, name, wires[w], w == 0 ? most : 65537, plain);
        MPI_Isend(&token, 1, MPI_INT, (rank + 1) % size, 0, comm, &r[1]);
        if (w == 0) run_others(c);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        CHECK(got == (rank + size - 1) % size);
        ctn_comm_free(c);
    }
}

int main(int argc, char **argv)
{
    int level, rank, size;
    ctn_comm *c = NULL;
    CHECK(ctn_comm_from_mpi(&c, MPI_COMM_WORLD, NULL) == CTN_ESTATE); /* before MPI_Init */
    ctn_error_clear();
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    host before, after;
    look(&before);

    CHECK(ctn_mpi_init(&argc, &argv) == CTN_ESTATE); /* the program has started MPI */
    ctn_error_clear();
    CHECK(ctn_comm_from_mpi(&c, MPI_COMM_NULL, NULL) == CTN_EARG);
    ctn_error_clear();
    on(MPI_COMM_WORLD, "guest", argc > 1 ? atoi(argv[1]) : (1 << 24) + 3);
    DONE(ctn_comm_open(&c, NULL)); /* the same world */
    CHECK(ctn_comm_size(c) == size && ctn_comm_rank(c) == rank);
    ctn_comm_free(c);

    MPI_Comm part;
    /* even and odd ranks, in reverse order */
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    on(part, "part", 65537);
    MPI_Comm_free(&part);

    look(&after);
    check_same(&before, &after);
    MPI_Finalize();
    return 0;
}
