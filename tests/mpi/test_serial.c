/* SPDX-License-Identifier: Apache-2.0
 *
 * An MPI that grants no more than MPI_THREAD_SERIALIZED. One communicator exchanges gradients with
 * a progress thread, another one belongs to an op of the network and a third one is made meanwhile:
 * no two threads may be inside MPI at the same time. The functions of MPI that Catena's threads
 * call are wrapped here (PMPI).
 */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include <catena/dist.h>
#include <catena/ops.h>
#include <catena/zoo.h>

#include "cases.h"

static atomic_int inside, overlaps, by_thread;
static pthread_t main_thread;

/* A call of Catena's thread takes a while, so that an overlap is found even if few are made. */
static void enter(void)
{
    const bool thread = !pthread_equal(pthread_self(), main_thread);
    by_thread += thread;
    overlaps += inside++ > 0;
    if (thread) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

#define EXPORT __attribute__((visibility("default")))
#define WRAP(name, parameters, arguments)    \
    EXPORT int MPI_##name parameters         \
    {                                        \
        enter();                             \
        const int e = PMPI_##name arguments; \
        inside--;                            \
        return e;                            \
    }
WRAP(Test, (MPI_Request * r, int *flag, MPI_Status *s), (r, flag, s))
WRAP(Isend, (const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r),
     (b, n, t, to, tag, c, r))
WRAP(Irecv, (void *b, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r),
     (b, n, t, from, tag, c, r))
WRAP(Iprobe, (int from, int tag, MPI_Comm c, int *flag, MPI_Status *s), (from, tag, c, flag, s))
WRAP(Comm_dup, (MPI_Comm from, MPI_Comm *to), (from, to))
WRAP(Comm_free, (MPI_Comm * c), (c))

EXPORT int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    (void)required;
    return PMPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, provided);
}

int main(int argc, char **argv)
{
    enum { WIDTH = 700, ROWS = 16, STEPS = 12 };
    static float x[ROWS * WIDTH];
    const int64_t size[] = {WIDTH, WIDTH, WIDTH, 8};
    ctn_comm *gradients = NULL, *op = NULL, *third = NULL;
    ctn_context *ctx = NULL;
    ctn_module *part[2], *net = NULL;
    ctn_optim *o = NULL;
    main_thread = pthread_self();
    DONE(ctn_mpi_init(&argc, &argv));
    DONE(ctn_comm_open(&gradients, CTN_OPT(ctn_comm_opt, .algorithm = "ring")));
    DONE(ctn_comm_again(&op, gradients, CTN_OPT(ctn_comm_opt, .algorithm = "ring")));
    DONE(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1)));
    DONE(ctn_linear_new(&part[0], ctx, WIDTH, WIDTH, NULL));
    DONE(ctn_zoo_mlp(&part[1], ctx, CTN_OPT(ctn_mlp_opt, .n = 4, .size = size)));
    DONE(ctn_module_list_new(&net, ctx, 2, part));
    DONE(ctn_sgd_new(&o, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = 1e-4)));
    DONE(ctn_dist_optim(o, gradients,
                        CTN_OPT(ctn_dist_opt, .progress = CTN_DIST_THREAD, .bucket = 1 << 18)));
    for (int i = 0; i < STEPS; i++) {
        DONE(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(part[0], ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDTH)));
        y = ctn_call(part[1], ctn_dist_allreduce(op, y));
        DONE(ctn_backward(o, ctn_mean(ctn_square(y), CTN_ALL_AXES, 0)));
        DONE(ctn_optim_step(o));
        DONE(ctn_scope_end(ctx));
        if (i % 4 == 3) { /* blocks, while gradients may be in flight */
            DONE(ctn_comm_again(&third, op, NULL));
            ctn_comm_free(third);
        }
    }
    if (ctn_comm_rank(op) == 0)
        printf("%d calls by Catena's thread, %d while another thread was inside MPI\n", by_thread,
               overlaps);
    CHECK(by_thread > 0 && overlaps == 0);
    ctn_optim_free(o);
    ctn_comm_free(op);
    ctn_comm_free(gradients);
    ctn_module_free(net);
    ctn_context_free(ctx);
    DONE(ctn_mpi_finalize());
    return 0;
}
