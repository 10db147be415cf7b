/* SPDX-License-Identifier: Apache-2.0
 *
 * A solver (heat.h) under its own MPI that trains a surrogate while it runs: a network that
 * predicts the temperature of a cell AHEAD steps later from the 9 x 9 cells around it. Every
 * rank trains on its slab in place, and gradients are averaged over the solver's own
 * communicator.
 *
 *     mpirun -n 4 ./insitu [--no-train]
 *
 * The result, heat.bin, has the same bits with training, without training, and without Catena
 * (-DNO_CATENA).
 */
#include "heat.h"
enum { AHEAD = 5 };
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
    CTN_TRY(ctn_comm_from_mpi(&group, comm, NULL)); /* these two lines train ... */
    return ctn_dist_optim(opt, group, NULL);        /* ... one network on all ranks */
}

/* The slab without `edge` cells on each side as a tensor (1,1,H,W): the solver's memory, no
 * copy. */
static ctn_tensor *field(row *u, int ny, int edge)
{
    const int64_t dims[] = {1, 1, ny + 2 - 2 * edge, NX - 2 * edge}, strides[] = {0, 0, NX, 1};
    return ctn_cast(ctn_input_strided(ctx, &u[edge][edge], CTN_F64, 4, dims, strides), CTN_F32);
}

/* Learn to predict the current field from the one AHEAD steps ago. Adds the squared error of
 * the network to *error, and that of predicting "no change" to *change. */
static ctn_status learn(row *old, row *u, int ny, double *error, double *change)
{
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *y = field(u, ny, REACH);
    ctn_tensor *loss = ctn_mean_squared_error(ctn_call(net, field(old, ny, 0)), y, CTN_MEAN);
    ctn_tensor *still = ctn_keep(ctn_mean_squared_error(field(old, ny, REACH), y, CTN_MEAN));
    ctn_status st = ctn_backward(opt, loss);
    /* The step runs here and averages gradients over the ranks. */
    if (st == CTN_OK) st = ctn_optim_step(opt);
    if (st == CTN_OK) *error += ctn_item(loss), *change += ctn_item(still);
    const ctn_status end = ctn_scope_end(ctx);
    return st < 0 ? st : end;
}
#endif

int main(int argc, char **argv)
{
    static row slab[3][NY + 2], *u = slab[0], *next = slab[1], *old = slab[2], *last;
    int level, train = argc < 2 || strcmp(argv[1], "--no-train") != 0;
    double error = 0, change = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    place p = place_of(MPI_COMM_WORLD);
    if (p.rank == 0 && !train) printf("without training\n");
    for (int t = 0; t <= STEPS; t++) {
#ifndef NO_CATENA
        if (train && t % AHEAD == 0 && (t ? learn(old, u, p.ny, &error, &change) : start(p.comm)))
            train = 0, fprintf(stderr, "training stopped: %s\n", ctn_error_message());
#endif
        if (t > 0 && t % REPORT == 0) report(&p, u, t, REPORT / AHEAD, &error, &change);
        prepare(&p, u, t);
        if (t % AHEAD == 0) memcpy(old, u, sizeof slab[0]);
        step(u, next, p.ny);
        last = u, u = next, next = last;
    }
    save(&p, u);
#ifndef NO_CATENA
    ctn_optim_free(opt), ctn_comm_free(group), ctn_module_free(net), ctn_context_free(ctx);
#endif
    MPI_Comm_free(&p.comm);
    return MPI_Finalize();
}
