/* SPDX-License-Identifier: Apache-2.0
 *
 * A heat-equation solver under its own MPI that trains a surrogate while it runs: a network that looks at the 9 x 9
 * cells around a point and says the temperature there AHEAD steps later.  mpirun -n 4 ./insitu [--no-train]
 * Every rank has a slab of rows and trains on it where it lies; gradients are averaged over the solver's own communicator.
 * The result, heat.bin, has the same bits with training, without it, and without Catena (-DNO_CATENA).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NX = 128, NY = 128, STEPS = 2000, AHEAD = 5, SPARK = 100, REPORT = 400 };
typedef double row[NX]; /* of a slab: 1 to ny; 0 and ny + 1 are the neighbours', or a cold wall */

#ifndef NO_CATENA
#include <catena/catena.h>
#include <catena/dist.h>
#include <catena/mpi.h>

enum { REACH = 4, SIDE = 2 * REACH + 1, FILTERS = 8 };
static ctn_context *ctx;
static ctn_module *net;
static ctn_optim *opt;
static ctn_comm *group;

static ctn_status start(MPI_Comm comm)
{
    ctn_module *part[3];
    CTN_TRY(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    CTN_TRY(ctn_conv_new(&part[0], ctx, 1, FILTERS, CTN_SHAPE(SIDE, SIDE), NULL));
    CTN_TRY(ctn_activation_new(&part[1], ctx, ctn_relu_at));
    CTN_TRY(ctn_conv_new(&part[2], ctx, FILTERS, 1, CTN_SHAPE(1, 1), NULL));
    CTN_TRY(ctn_sequential_new(&net, ctx, 3, part));
    CTN_TRY(ctn_adam_new(&opt, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.002)));
    CTN_TRY(ctn_comm_from_mpi(&group, comm, NULL)); /* these two lines ... */
    return ctn_dist_optim(opt, group, NULL);        /* ... make it one training on all ranks */
}

/* The slab without `edge` cells at each side as a tensor (1,1,H,W): the solver's memory, no copy. */
static ctn_tensor *field(row *u, int ny, int edge)
{
    const int64_t dims[] = {1, 1, ny + 2 - 2 * edge, NX - 2 * edge}, strides[] = {0, 0, NX, 1};
    return ctn_cast(ctn_input_strided(ctx, &u[edge][edge], CTN_F64, 4, dims, strides), CTN_F32);
}

/* From the field of AHEAD steps ago to that of now. mean[0]: the error squared, mean[1]: that of saying "no change". */
static ctn_status learn(row *old, row *u, int ny, double *mean)
{
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *y = field(u, ny, REACH);
    ctn_tensor *loss = ctn_mean_squared_error(ctn_call(net, field(old, ny, 0)), y, CTN_MEAN);
    ctn_tensor *still = ctn_keep(ctn_mean_squared_error(field(old, ny, REACH), y, CTN_MEAN));
    ctn_status st = ctn_backward(opt, loss);
    if (st == CTN_OK) st = ctn_optim_step(opt); /* runs here; gradients meet the other ranks' */
    if (st == CTN_OK) mean[0] += ctn_item(loss), mean[1] += ctn_item(still);
    const ctn_status end = ctn_scope_end(ctx);
    return st < 0 ? st : end;
}
#endif

static void step(row *u, row *next, int ny)
{
#pragma omp parallel for
    for (int j = 1; j <= ny; j++)
        for (int i = 1; i < NX - 1; i++)
            next[j][i] = u[j][i] + 0.2 * (u[j - 1][i] + u[j + 1][i] + u[j][i - 1] + u[j][i + 1] -
                                          4 * u[j][i]);
}

int main(int argc, char **argv)
{
    static row slab[3][NY + 2], *u = slab[0], *next = slab[1], *old = slab[2];
    int level, rank, size, up, down, train = argc < 2 || strcmp(argv[1], "--no-train") != 0;
    MPI_Comm comm; /* the solver's own, a line of slabs */
    MPI_File out;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, (int[]){0}, 1, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Cart_shift(comm, 0, 1, &up, &down);
    const int first = NY * rank / size, ny = NY * (rank + 1) / size - first;
    double sum[3] = {0}, all[3]; /* heat, and what learn says */
    if (rank == 0 && !train) printf("without training\n");
    for (int t = 0; t <= STEPS; t++) {
#ifndef NO_CATENA
        if (train && t % AHEAD == 0 && (t == 0 ? start(comm) : learn(old, u, ny, &sum[1])) < 0)
            train = 0, fprintf(stderr, "no more training: %s\n", ctn_error_message());
#endif
        if (t > 0 && t % REPORT == 0) {
            for (int j = 1; j <= ny; j++)
                for (int i = 0; i < NX; i++) sum[0] += u[j][i];
            MPI_Reduce(sum, all, 3, MPI_DOUBLE, MPI_SUM, 0, comm);
            const double n = (double)size * REPORT / AHEAD, loss = all[1] / n, still = all[2] / n;
            if (rank == 0) printf("step %4d  heat %.6f%s", t, all[0], still > 0 ? "  " : "\n");
            if (rank == 0 && still > 0) printf("loss %.2e, of no change %.2e\n", loss, still);
            memset(sum, 0, sizeof sum);
        }
        for (int j = 1; j <= ny && t % SPARK == 0; j++) /* now and then hot squares */
            for (int i = 1; i < NX - 1; i++)
                if (((first + j) / 16 * 3 + i / 16 * 7 + t) % 13 == 0) u[j][i] = 1;
        MPI_Sendrecv(u[1], NX, MPI_DOUBLE, up, 0, u[ny + 1], NX, MPI_DOUBLE, down, 0, comm,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(u[ny], NX, MPI_DOUBLE, down, 0, u[0], NX, MPI_DOUBLE, up, 0, comm,
                     MPI_STATUS_IGNORE);
        if (t % AHEAD == 0) memcpy(old, u, sizeof slab[0]);
        step(u, next, ny);
        row *last = u;
        u = next, next = last;
    }
    MPI_File_open(comm, "heat.bin", MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &out);
    MPI_File_write_at_all(out, first * (MPI_Offset)sizeof *u, u[1], ny * NX, MPI_DOUBLE,
                          MPI_STATUS_IGNORE);
    MPI_File_close(&out);
#ifndef NO_CATENA
    ctn_optim_free(opt), ctn_comm_free(group), ctn_module_free(net), ctn_context_free(ctx);
#endif
    MPI_Comm_free(&comm);
    return MPI_Finalize();
}
