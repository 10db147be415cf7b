/* SPDX-License-Identifier: Apache-2.0
 *
 * probe [BYTES]: each rank prints its host. With BYTES, each rank then sends that
 * many bytes to the next rank while it receives as many from the previous one, and rank 0 prints
 * the time of the slowest rank. Plain MPI, so that tests/cluster/test_cluster.sh tests the
 * cluster without Catena.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double ring_seconds(char *out, char *in, int bytes, int rank, int size)
{
    double t, slowest;
    MPI_Barrier(MPI_COMM_WORLD);
    t = MPI_Wtime();
    MPI_Sendrecv(out, bytes, MPI_BYTE, (rank + 1) % size, 0, in, bytes, MPI_BYTE,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    t = MPI_Wtime() - t;
    MPI_Allreduce(&t, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

int main(int argc, char **argv)
{
    char name[MPI_MAX_PROCESSOR_NAME];
    int rank, size, length, bytes = argc > 1 ? atoi(argv[1]) : 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    printf("rank %d of %d on %s\n", rank, size, name);
    if (bytes > 0) {
        char *out = calloc((size_t)bytes, 1), *in = calloc((size_t)bytes, 1);
        if (!out || !in) MPI_Abort(MPI_COMM_WORLD, 1);
        double s = ring_seconds(out, in, bytes, rank, size);
        if (rank == 0) printf("seconds %.3f\n", s);
        free(out);
        free(in);
    }
    MPI_Finalize();
    return 0;
}
