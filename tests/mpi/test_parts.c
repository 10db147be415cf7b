/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks in parts, with processes as ranks: parts of a communicator, messages that are too long
 * to be buffered by MPI, a chain over all ranks, and a U-Net on a divided field, each against the
 * same computation on one rank. The rules of these functions are tested with threads
 * (tests/unit/test_dist_send.c and test_dist_halo.c); here the question is whether MPI carries
 * them. Prints the largest differences.
 */
#include <math.h>
#include <string.h>

#include <catena/catena.h>

#include "cases.h"

static void test_split(ctn_comm *c)
{
    const int rank = ctn_comm_rank(c), size = ctn_comm_size(c), last = rank == size - 1;
    ctn_comm *part = NULL;
    DONE(ctn_comm_split(&part, c, last ? -1 : rank % 2, -rank, NULL));
    CHECK((part == NULL) == last);
    if (!part) return;
    int64_t sum = rank, want = 0, members = 0;
    for (int q = rank % 2; q < size - 1; q += 2) {
        want += q;
        members++;
    }
    DONE(ctn_comm_allreduce(part, &sum, 1, CTN_I64));
    CHECK(sum == want && ctn_comm_size(part) == members);
    CHECK(ctn_comm_rank(part) == (int)members - 1 - rank / 2);
    ctn_comm_free(part);
}

/* Everybody sends to the next rank before it receives: sum over ranks of sum(x w y). */
static void test_ring(ctn_comm *c, ctn_context *ctx)
{
    enum { N = 1 << 20 };
    const int rank = ctn_comm_rank(c), size = ctn_comm_size(c);
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    float *x = malloc(N * sizeof *x), *g = malloc(N * sizeof *g);
    for (int i = 0; i < N; i++) x[i] = (float)((i + rank * 7) % 17 - 8);
    for (int step = 0; step < 3; step++) {
        ctn_tensor *gx = NULL;
        DONE(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N)));
        ctn_tensor *sent = ctn_dist_send(c, t, next);
        ctn_tensor *y = ctn_mul(t, ctn_dist_recv(c, ctx, before, CTN_F32, CTN_SHAPE(N)));
        DONE(ctn_grad(ctn_add(ctn_sum(y, CTN_ALL_AXES, 0), sent), 1, &t, &gx));
        DONE(ctn_read(gx, g, N * sizeof *g));
        DONE(ctn_scope_end(ctx));
        for (int i = 0; i < N; i++)
            CHECK(g[i] == (float)((i + before * 7) % 17 + (i + next * 7) % 17 - 16));
    }
    free(x);
    free(g);
}

/* Copies all parameters of one module to another. */
static void copy(ctn_module *to, ctn_module *from)
{
    const ctn_vars p = ctn_params(from), q = ctn_params(to);
    float buf[1 << 14];
    CHECK(p.n == q.n);
    for (int i = 0; i < p.n; i++) {
        const ctn_desc *d = ctn_var_desc(p.var[i]);
        size_t bytes = sizeof *buf;
        for (int k = 0; k < d->ndim; k++) bytes *= (size_t)d->dim[k];
        CHECK(bytes <= sizeof buf);
        DONE(ctn_var_get(p.var[i], buf, bytes));
        DONE(ctn_var_set(q.var[i], buf, bytes));
    }
}

static double distance(ctn_module *a, ctn_module *b)
{
    const ctn_vars p = ctn_params(a), q = ctn_params(b);
    float x[1 << 14], y[1 << 14];
    double most = 0;
    for (int i = 0; i < p.n; i++) {
        const ctn_desc *d = ctn_var_desc(p.var[i]);
        size_t n = 1;
        for (int k = 0; k < d->ndim; k++) n *= (size_t)d->dim[k];
        DONE(ctn_var_get(p.var[i], x, n * sizeof *x));
        DONE(ctn_var_get(q.var[i], y, n * sizeof *y));
        for (size_t k = 0; k < n; k++) most = fmax(most, fabs((double)x[k] - (double)y[k]));
    }
    return most;
}

static ctn_tensor *loss_of(ctn_tensor *y)
{
    return ctn_mean(ctn_square(ctn_shift(y, -0.3)), CTN_ALL_AXES, 0);
}

/* One layer per rank, trained in a chain and in one piece. */
static void test_chain(ctn_comm *c, ctn_context *ctx)
{
    enum { ROWS = 8, WIDE = 16, MOST = 16 };
    const int rank = ctn_comm_rank(c), size = ctn_comm_size(c), last = rank == size - 1;
    ctn_module *part[MOST], *whole = NULL, *mine = NULL;
    ctn_optim *o = NULL, *one = NULL;
    ctn_dist_chain *chain = NULL;
    float x[ROWS * WIDE];
    CHECK(size <= MOST);
    for (int i = 0; i < ROWS * WIDE; i++) x[i] = (float)sin(i);
    for (int r = 0; r < size; r++) DONE(ctn_linear_new(&part[r], ctx, WIDE, WIDE, NULL));
    DONE(ctn_linear_new(&mine, ctx, WIDE, WIDE, NULL));
    copy(mine, part[rank]);
    DONE(ctn_sequential_new(&whole, ctx, size, part));
    DONE(ctn_sgd_new(&one, ctn_params(whole), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    DONE(ctn_sgd_new(&o, ctn_params(mine), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    DONE(ctn_dist_chain_new(&chain, ctx, c));
    DONE(ctn_dist_chain_add(chain, mine));
    if (rank > 0) DONE(ctn_dist_chain_recv(chain, rank - 1, CTN_F32, CTN_SHAPE(-1, WIDE)));
    if (!last) DONE(ctn_dist_chain_send(chain, rank + 1));
    for (int step = 0; step < 5; step++) {
        DONE(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDE));
        ctn_tensor *y = ctn_dist_chain_call(chain, rank == 0 ? t : NULL, ROWS);
        DONE(ctn_backward(o, last ? loss_of(y) : y));
        DONE(ctn_optim_step(o));
        DONE(ctn_scope_end(ctx));
        DONE(ctn_scope_begin(ctx));
        t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDE));
        DONE(ctn_backward(one, loss_of(ctn_call(whole, t))));
        DONE(ctn_optim_step(one));
        DONE(ctn_scope_end(ctx));
    }
    const double far = distance(mine, ctn_module_child(whole, rank));
    CHECK(far < 1e-6);
    if (rank == 0) printf("chain of %d ranks: weights differ by %.1e\n", size, far);
    ctn_dist_chain_free(chain);
    ctn_optim_free(o);
    ctn_optim_free(one);
    ctn_module_free(mine);
    ctn_module_free(whole);
}

/* One step of a U-Net on an (h,w) part of the field that begins at (top,left). */
static void step_unet(ctn_context *ctx, ctn_module *m, ctn_optim *o, int64_t top, int64_t left,
                      int64_t h, int64_t w, float *y)
{
    static float x[64 * 64];
    for (int64_t i = 0; i < h * w; i++)
        x[i] = (float)sin(0.3 * (double)(top + i / w) + 0.7 * (double)((left + i % w) % 11));
    DONE(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_keep(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(1, 1, h, w))));
    DONE(ctn_backward(o, loss_of(t)));
    DONE(ctn_optim_step(o));
    DONE(ctn_read(t, y, (size_t)(h * w) * sizeof *y));
    DONE(ctn_scope_end(ctx));
}

static void test_field(ctn_comm *c, ctn_context *ctx)
{
    enum { BLOCK = 8 };
    const int size = ctn_comm_size(c);
    const int64_t cols = size % 2 == 0 ? 2 : 1, rows = size / cols, ranks[2] = {rows, cols};
    const int64_t H = rows * BLOCK, W = cols * BLOCK;
    static float all[64 * 64], y[BLOCK * BLOCK];
    ctn_module *m[2] = {0};
    ctn_optim *o[2] = {0};
    ctn_dist_grid *grid = NULL;
    double far = 0;
    CHECK(H <= 64 && W <= 64);
    for (int i = 0; i < 2; i++) {
        DONE(ctn_zoo_unet(&m[i], ctx, CTN_OPT(ctn_unet_opt, .width = 4, .depth = 2)));
        DONE(ctn_sgd_new(&o[i], ctn_params(m[i]), CTN_OPT(ctn_sgd_opt, .lr = 0.5)));
    }
    copy(m[1], m[0]);
    DONE(ctn_dist_grid_new(&grid, c, 2, ranks, 0));
    DONE(ctn_dist_field(m[1], grid));
    DONE(ctn_dist_sync_batch_norm(m[1], c));
    DONE(ctn_dist_optim(o[1], c, NULL));
    const int64_t top = ctn_dist_grid_begin(grid, 0, H), left = ctn_dist_grid_begin(grid, 1, W);
    ctn_context_set_training(ctx, 1);
    for (int step = 0; step < 3; step++) {
        step_unet(ctx, m[0], o[0], 0, 0, H, W, all);
        step_unet(ctx, m[1], o[1], top, left, BLOCK, BLOCK, y);
        for (int64_t i = 0; i < BLOCK * BLOCK; i++) {
            const float want = all[(top + i / BLOCK) * W + left + i % BLOCK];
            far = fmax(far, fabs((double)y[i] - (double)want));
        }
        far = fmax(far, distance(m[0], m[1]));
    }
    CHECK(far < 1e-5);
    if (ctn_comm_rank(c) == 0)
        printf("U-Net on %dx%d ranks: results and weights differ by %.1e\n", (int)rows, (int)cols,
               far);
    for (int i = 0; i < 2; i++) {
        ctn_optim_free(o[i]);
        ctn_module_free(m[i]);
    }
    ctn_dist_grid_free(grid);
}

int main(int argc, char **argv)
{
    ctn_comm *c = NULL;
    ctn_context *ctx = NULL;
    DONE(ctn_mpi_init(&argc, &argv));
    DONE(ctn_comm_open(&c, CTN_OPT(ctn_comm_opt, .algorithm = "ring")));
    if (argc > 1) CHECK(ctn_comm_size(c) == atoi(argv[1]));
    DONE(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 3)));
    if (ctn_comm_size(c) > 1) test_split(c);
    test_ring(c, ctx);
    test_chain(c, ctx);
    test_field(c, ctx);
    ctn_context_free(ctx);
    ctn_comm_free(c);
    DONE(ctn_mpi_finalize());
    return 0;
}
