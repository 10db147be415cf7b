/* SPDX-License-Identifier: Apache-2.0
 *
 * A solver that trains between its own MPI calls: what it may do between steps, and what it can
 * still do after another rank has failed.
 *
 *   mpirun -n N test_solver LEVEL alone       Rank 0 reads and saves while the other ranks are in
 *                                             the solver's barrier. Below MPI_THREAD_MULTIPLE,
 *                                             no thread of Catena calls MPI.
 *   mpirun -n N test_solver LEVEL fails SEED  Some rank fails at a random moment. The others are
 *                                             told, free everything and continue.
 * LEVEL: 1 FUNNELED, 2 SERIALIZED, 3 MULTIPLE.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <catena/catena.h>
#include <catena/dist.h>
#include <catena/mpi.h>

enum { ROWS = 8, IN = 64, HIDDEN = 500, STEPS = 12 };

static int rank, size;
static pthread_t main_thread;
static atomic_int foreign; /* MPI calls from other threads */

/* The program's own definition takes precedence over MPI's. */
int MPI_Test(MPI_Request *r, int *flag, MPI_Status *s)
{
    if (!pthread_equal(pthread_self(), main_thread)) foreign++;
    return PMPI_Test(r, flag, s);
}

static _Noreturn void wrong(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", rank, what, ctn_error_message());
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

#define MUST(call)                    \
    do {                              \
        if ((call) < 0) wrong(#call); \
    } while (0)

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *opt;
    ctn_comm *group;
    float x[ROWS][IN], y[ROWS][1];
} training;

/* Another rank may have finished this, and failed, before this one has. */
static ctn_status make(training *t, const char *algorithm)
{
    const int64_t sizes[] = {IN, HIDDEN, HIDDEN, 1};
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < IN; k++) t->x[i][k] = (float)((i * 7 + k * 3 + rank) % 11) / 11;
    for (int i = 0; i < ROWS; i++) t->y[i][0] = t->x[i][0];
    MUST(ctn_context_new(&t->ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1)));
    MUST(ctn_zoo_mlp(&t->net, t->ctx, CTN_OPT(ctn_mlp_opt, .n = 4, .size = sizes)));
    MUST(ctn_adam_new(&t->opt, ctn_params(t->net), NULL));
    MUST(ctn_comm_from_mpi(&t->group, MPI_COMM_WORLD,
                           CTN_OPT(ctn_comm_opt, .algorithm = algorithm)));
    return ctn_dist_optim(t->opt, t->group, CTN_OPT(ctn_dist_opt, .bucket = 64 * 1024));
}

static void clear(training *t)
{
    ctn_optim_free(t->opt);
    ctn_comm_free(t->group);
    ctn_module_free(t->net);
    ctn_context_free(t->ctx);
}

/* fail: 1 the loss is NULL, 2 the program gives up. */
static ctn_status step(training *t, int fail)
{
    CTN_TRY(ctn_scope_begin(t->ctx));
    ctn_tensor *x = ctn_input(t->ctx, t->x, CTN_F32, CTN_SHAPE(ROWS, IN));
    ctn_tensor *y = ctn_input(t->ctx, t->y, CTN_F32, CTN_SHAPE(ROWS, 1));
    ctn_tensor *loss = ctn_mean_squared_error(ctn_call(t->net, x), y, CTN_MEAN);
    ctn_status st = CTN_OK;
    if (fail == 2) {
        ctn_comm_break(t->group, "the solver has lost its mesh");
        st = CTN_ESTATE;
    } else {
        st = ctn_backward(t->opt, fail == 1 ? NULL : loss);
    }
    if (st == CTN_OK) st = ctn_optim_step(t->opt);
    ctn_status end = ctn_scope_end(t->ctx);
    return st < 0 ? st : end;
}

static void solve(int turns)
{
    for (int i = 0; i < turns; i++) {
        double sum = 0, mine = rank;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (sum != size * (size - 1) / 2.0) wrong("the solver's own sum is wrong");
    }
}

static void alone(int level)
{
    static training t;
    char path[64];
    snprintf(path, sizeof path, "solver.%d.safetensors", (int)getpid());
    MUST(make(&t, "ring"));
    for (int i = 0; i < 5; i++) {
        MUST(step(&t, 0));
        if (rank == 0) MUST(ctn_weights_save(t.net, path));
        MPI_Barrier(MPI_COMM_WORLD); /* stands for the solver's next exchange */
        solve(20);
    }
    if (rank == 0) unlink(path);
    if (level < MPI_THREAD_MULTIPLE && foreign > 0) wrong("another thread has called MPI");
    clear(&t);
}

static void nap(unsigned *seed)
{
    const struct timespec t = {.tv_nsec = rand_r(seed) % 3000000};
    if (rand_r(seed) % 3 == 0) nanosleep(&t, NULL);
}

static void fails(unsigned seed)
{
    static const char *const names[] = {"ring", "auto", "rabenseifner", "torus", "rsap", "ring"};
    static training t;
    unsigned all = seed * 2654435761u, own = all + (unsigned)rank * 977;
    const int who = rand_r(&all) % size, when = rand_r(&all) % STEPS, how = 1 + rand_r(&all) % 2;
    ctn_status st = make(&t, names[rand_r(&all) % 6]);
    for (int i = 0; i < STEPS && st == CTN_OK; i++) {
        nap(&own);
        st = step(&t, rank == who && i == when ? how : 0);
    }
    if (st == CTN_OK) wrong("the failure was not reported");
    if (rank != who && st != CTN_EPEER) wrong("the error is not that of the failed rank");
    ctn_error_clear();
    clear(&t);
    /* The solver continues and uses memory. */
    enum { BLOCKS = 32, BYTES = 256 * 1024 };
    unsigned char *block[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BYTES);
        if (!block[i]) wrong("no memory");
        memset(block[i], 0xaa, BYTES);
    }
    solve(50);
    for (int i = 0; i < BLOCKS; i++) {
        for (int k = 0; k < BYTES; k++)
            if (block[i][k] != 0xaa) wrong("memory of the solver has changed by itself");
        free(block[i]);
    }
}

int main(int argc, char **argv)
{
    static const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED,
                                 MPI_THREAD_MULTIPLE};
    int got;
    if (argc < 3) return 2;
    const int level = levels[atoi(argv[1])];
    main_thread = pthread_self();
    MPI_Init_thread(&argc, &argv, level, &got);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(argv[2], "alone") == 0) alone(level < got ? got : level);
    else fails(argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (rank == 0) printf("%s: the solver continued\n", argv[2]);
    return 0;
}
