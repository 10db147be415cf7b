/* SPDX-License-Identifier: Apache-2.0
 *
 * The solver of insitu.c, which knows nothing about Catena: the heat equation on a square with
 * cold walls, divided into slabs of rows, one for each rank of a communicator.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NX = 128, NY = 128, STEPS = 2000, SPARK = 100, REPORT = 400 };
typedef double row[NX]; /* rows 1 to ny belong to the slab; 0 and ny + 1 are halos or walls */

typedef struct {
    MPI_Comm comm; /* one-dimensional, one slab per rank */
    int rank, size, up, down;
    int first, ny; /* number of rows before this slab, and number of its own rows */
} place;

static place place_of(MPI_Comm world)
{
    place p;
    MPI_Comm_size(world, &p.size);
    MPI_Cart_create(world, 1, &p.size, (int[]){0}, 1, &p.comm);
    MPI_Comm_rank(p.comm, &p.rank);
    MPI_Cart_shift(p.comm, 0, 1, &p.up, &p.down);
    p.first = NY * p.rank / p.size;
    p.ny = NY * (p.rank + 1) / p.size - p.first;
    return p;
}

/* Add hot squares every SPARK steps, then exchange the halo rows. */
static void prepare(const place *p, row *u, int t)
{
    for (int j = 1; j <= p->ny && t % SPARK == 0; j++)
        for (int i = 1; i < NX - 1; i++)
            if (((p->first + j) / 16 * 3 + i / 16 * 7 + t) % 13 == 0) u[j][i] = 1;
    MPI_Sendrecv(u[1], NX, MPI_DOUBLE, p->up, 0, u[p->ny + 1], NX, MPI_DOUBLE, p->down, 0, p->comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(u[p->ny], NX, MPI_DOUBLE, p->down, 0, u[0], NX, MPI_DOUBLE, p->up, 0, p->comm,
                 MPI_STATUS_IGNORE);
}

static void step(row *u, row *next, int ny)
{
#pragma omp parallel for
    for (int j = 1; j <= ny; j++)
        for (int i = 1; i < NX - 1; i++)
            next[j][i] = u[j][i] + 0.2 * (u[j - 1][i] + u[j + 1][i] + u[j][i - 1] + u[j][i + 1] -
                                          4 * u[j][i]);
}

/* Print the total heat, and the means of *error and *change over all ranks and the last n calls
 * of learn; then reset both. */
static void report(const place *p, row *u, int t, int n, double *error, double *change)
{
    double sum[3] = {0, *error / n / p->size, *change / n / p->size}, all[3];
    for (int j = 1; j <= p->ny; j++)
        for (int i = 0; i < NX; i++) sum[0] += u[j][i];
    MPI_Reduce(sum, all, 3, MPI_DOUBLE, MPI_SUM, 0, p->comm);
    *error = *change = 0;
    if (p->rank > 0) return;
    printf("step %4d  heat %.6f", t, all[0]);
    if (all[1] > 0) printf("  loss %.2e  baseline %.2e", all[1], all[2]);
    printf("\n");
}

static void save(const place *p, row *u)
{
    MPI_File out;
    MPI_File_open(p->comm, "heat.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &out);
    MPI_File_write_at_all(out, p->first * (MPI_Offset)sizeof *u, u[1], p->ny * NX, MPI_DOUBLE,
                          MPI_STATUS_IGNORE);
    MPI_File_close(&out);
}
