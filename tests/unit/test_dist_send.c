/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a communicator, messages from one rank to another and their gradients, and networks
 * whose parts are on different ranks, with threads as ranks: against the same computation without
 * communication.
 * Labels: threads
 */
#include <catena/io.h>

#include "ranks.h"

static const int sizes[] = {1, 2, 3, 4, 7};
enum { SIZES = sizeof sizes / sizeof *sizes };

/* ---- parts of a communicator ----------------------------------------------------------------- */

/* Even and odd ranks, in reverse order; the last rank is in no part. */
static void run_split(job *j)
{
    ctn_comm *part = NULL, *inner = NULL;
    const int last = j->rank == j->size - 1 && j->size > 1;
    TRY(j, ctn_comm_split(&part, j->c, last ? -1 : j->rank % 2, -j->rank, NULL));
    CHECK(j, (part == NULL) == last, "a part");
    int members = 0, above = 0;
    int64_t sum = 0;
    for (int q = 0; q < j->size - (j->size > 1); q++) {
        if (q % 2 != j->rank % 2) continue;
        members++;
        above += q > j->rank;
        sum += q;
    }
    if (part) {
        int64_t mine = j->rank, all[ROOM];
        CHECK(j, ctn_comm_size(part) == members && ctn_comm_rank(part) == above, "rank %d of %d",
              ctn_comm_rank(part), ctn_comm_size(part));
        TRY(j, ctn_comm_allgather(part, &mine, sizeof mine, all));
        for (int i = 1; i < members; i++) CHECK(j, all[i] == all[i - 1] - 2, "order");
        TRY(j, ctn_comm_allreduce(part, &mine, 1, CTN_I64));
        CHECK(j, mine == sum, "%d", (int)mine);
        TRY(j, ctn_comm_split(&inner, part, 0, 0, NULL)); /* a part of a part */
        CHECK(j, ctn_comm_size(inner) == members && ctn_comm_rank(inner) == above, "inner");
        TRY(j, ctn_comm_barrier(inner));
    }
    TRY(j, ctn_comm_barrier(j->c)); /* the whole is as it was */
    ctn_comm_free(inner);
    ctn_comm_free(part);
}

static void test_split(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++) on_ranks(sizes[k], CTN_MODE_PLANNED, run_split, NULL);
}

/* ---- messages and their gradients ------------------------------------------------------------ */

enum { N = 5 };

static double value(int what, int rank, int i)
{
    return 0.1 * ((i * 7 + rank * 5 + what * 3) % 11 - 5);
}

static void fill(void *to, ctn_dtype type, int what, int rank)
{
    for (int i = 0; i < N; i++)
        if (type == CTN_F32) ((float *)to)[i] = (float)value(what, rank, i);
        else ((double *)to)[i] = value(what, rank, i);
}

static double get(const void *from, ctn_dtype type, int i)
{
    return type == CTN_F32 ? (double)((const float *)from)[i] : ((const double *)from)[i];
}

/* Every rank sends x to the next one: the sum over ranks of sum(w x tanh(x of the rank before)).
 * All of them send first, which must not block. */
static void run_ring(job *j)
{
    const ctn_dtype type = *(const ctn_dtype *)j->arg;
    const int next = (j->rank + 1) % j->size, before = (j->rank + j->size - 1) % j->size;
    double x[N], w[N], g[N];
    fill(x, type, 0, j->rank);
    fill(w, type, 1, j->rank);
    for (int step = 0; step < 3; step++) {
        ctn_tensor *gx = NULL;
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *tx = ctn_with_grad(ctn_input(j->ctx, x, type, CTN_SHAPE(N)));
        ctn_tensor *sent = ctn_dist_send(j->c, tx, next);
        ctn_tensor *y = ctn_dist_recv(j->c, j->ctx, before, type, CTN_SHAPE(N));
        y = ctn_mul(ctn_mul(ctn_tanh(y), tx), ctn_input(j->ctx, w, type, CTN_SHAPE(N)));
        ctn_tensor *loss = ctn_add(ctn_sum(y, CTN_ALL_AXES, 0), sent);
        TRY(j, ctn_grad(loss, 1, &tx, &gx));
        TRY(j, ctn_read(gx, g, N * ctn_dtype_size(type)));
        TRY(j, ctn_scope_end(j->ctx));
        for (int i = 0; i < N; i++) {
            const double t = tanh(value(0, j->rank, i));
            const double want = tanh(value(0, before, i)) * value(1, j->rank, i) +
                                (1 - t * t) * value(0, next, i) * value(1, next, i);
            CHECK(j, fabs(get(g, type, i) - want) < (type == CTN_F32 ? 1e-6 : 1e-14),
                  "gx[%d] is %g, %g expected", i, get(g, type, i), want);
        }
    }
}

/* Rank 0 sends two tensors, and the last rank uses them in the other order; both send a third one
 * back and forth. The order of the graph on a rank must not matter for the order of gradients. */
static void run_orders(job *j)
{
    const int last = j->size - 1;
    float x[2][N], w[2][N], g[2][N] = {{0}};
    for (int k = 0; k < 2; k++) {
        fill(x[k], CTN_F32, k, 0);
        fill(w[k], CTN_F32, 2 + k, 0);
    }
    TRY(j, ctn_scope_begin(j->ctx));
    if (j->rank == 0) {
        ctn_tensor *t[2], *gt[2], *sent[2];
        for (int k = 0; k < 2; k++) {
            t[k] = ctn_with_grad(ctn_input(j->ctx, x[k], CTN_F32, CTN_SHAPE(N)));
            sent[k] = ctn_dist_send(j->c, t[k], last);
        }
        ctn_tensor *back = ctn_dist_recv(j->c, j->ctx, last, CTN_F32, CTN_SHAPE(N));
        ctn_tensor *loss = ctn_add(ctn_sum(ctn_mul(back, t[1]), CTN_ALL_AXES, 0), sent[1]);
        TRY(j, ctn_grad(ctn_add(loss, sent[0]), 2, t, gt));
        for (int k = 0; k < 2; k++) TRY(j, ctn_read(gt[k], g[k], sizeof g[k]));
    } else if (j->rank == last) {
        ctn_tensor *a = ctn_dist_recv(j->c, j->ctx, 0, CTN_F32, CTN_SHAPE(N));
        ctn_tensor *b = ctn_dist_recv(j->c, j->ctx, 0, CTN_F32, CTN_SHAPE(N));
        ctn_tensor *sent = ctn_dist_send(j->c, ctn_square(a), 0);
        ctn_tensor *w0 = ctn_input(j->ctx, w[0], CTN_F32, CTN_SHAPE(N));
        ctn_tensor *w1 = ctn_input(j->ctx, w[1], CTN_F32, CTN_SHAPE(N));
        ctn_tensor *loss = ctn_add(ctn_mul(b, w1), ctn_mul(a, w0));
        ctn_tensor *dummy = ctn_with_grad(w0), *gw = NULL;
        loss =
            ctn_add(ctn_add(sent, ctn_sum(loss, CTN_ALL_AXES, 0)), ctn_sum(dummy, CTN_ALL_AXES, 0));
        TRY(j, ctn_grad(loss, 1, &dummy, &gw));
    }
    TRY(j, ctn_scope_end(j->ctx));
    for (int i = 0; i < N && j->rank == 0; i++) {
        /* loss = sum(a^2 b + a w0 + b w1) */
        const double a = value(0, 0, i), b = value(1, 0, i);
        const double ga = 2 * a * b + value(2, 0, i), gb = a * a + value(3, 0, i);
        CHECK(j, fabs((double)g[0][i] - ga) < 1e-6, "ga is %g, not %g", (double)g[0][i], ga);
        CHECK(j, fabs((double)g[1][i] - gb) < 1e-6, "gb is %g, not %g", (double)g[1][i], gb);
    }
}

/* The receiver expects another shape: it says so, and the sender does not wait for ever. */
static void run_other_shape(job *j)
{
    float x[N] = {0}, y[N];
    TRY(j, ctn_scope_begin(j->ctx));
    if (j->rank == 0) {
        ctn_dist_send(j->c, ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(N)), 1);
        ctn_tensor *t = ctn_dist_recv(j->c, j->ctx, 1, CTN_F32, CTN_SHAPE(N));
        CHECK(j, ctn_read(t, y, sizeof y) == CTN_EPEER, "%s", ctn_error_message());
    } else {
        ctn_tensor *t = ctn_dist_recv(j->c, j->ctx, 0, CTN_F32, CTN_SHAPE(1, N));
        CHECK(j, ctn_read(t, y, sizeof y) == CTN_ESHAPE, "%s", ctn_error_message());
    }
    CHECK(j, strstr(ctn_error_message(), "rank 0 sent f32 (5), expected f32 (1,5)"), "%s",
          ctn_error_message());
    ctn_error_clear();
    (void)ctn_scope_end(j->ctx);
    ctn_error_clear();
}

static void run_refused(job *j)
{
    float x[N] = {0};
    const int64_t k[1] = {0};
    ctn_tensor *g = NULL, *gg = NULL;
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *t = ctn_with_grad(ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(N)));
    CHECK(j, !ctn_dist_send(j->c, t, 1), "no such rank");
    ctn_error_clear();
    CHECK(j, !ctn_dist_send(j->c, ctn_input(j->ctx, k, CTN_I64, CTN_SHAPE(1)), 0), "integers");
    ctn_error_clear();
    CHECK(j, !ctn_dist_recv(j->c, j->ctx, 0, CTN_I64, CTN_SHAPE(1)), "integers");
    ctn_error_clear();
    ctn_tensor *sent = ctn_dist_send(j->c, t, 0);
    ctn_tensor *y = ctn_square(ctn_dist_recv(j->c, j->ctx, 0, CTN_F32, CTN_SHAPE(N)));
    TRY(j, ctn_grad(ctn_add(ctn_sum(y, CTN_ALL_AXES, 0), sent), 1, &t, &g));
    TRY(j, ctn_grad(ctn_sum(ctn_square(g), CTN_ALL_AXES, 0), 1, &t, &gg));
    CHECK(j, ctn_read(gg, x, sizeof x) == CTN_EGRAD, "second order");
    CHECK(j, strstr(ctn_error_message(), "dist_send_grad"), "%s", ctn_error_message());
    ctn_error_clear();
    (void)ctn_scope_end(j->ctx);
    ctn_error_clear();
}

static void test_messages(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++)
        for (int m = 0; m < 2; m++) {
            on_ranks(sizes[k], modes[m], run_ring, &(ctn_dtype){CTN_F32});
            on_ranks(sizes[k], modes[m], run_ring, &(ctn_dtype){CTN_F64});
            if (sizes[k] > 1) on_ranks(sizes[k], modes[m], run_orders, NULL);
        }
    on_ranks(2, CTN_MODE_PLANNED, run_other_shape, NULL);
    on_ranks(1, CTN_MODE_PLANNED, run_refused, NULL);
}

/* ---- chains ---------------------------------------------------------------------------------- */

enum { ROWS = 6, WIDE = 4, STEPS = 4 };

typedef struct {
    ctn_module *part[ROOM];
    ctn_optim *opt;
} net;

/* A layer per rank. All have the same values on every rank, whether it uses them or not. */
static ctn_status make_net(net *n, job *j)
{
    for (int r = 0; r < j->size; r++) {
        float w[WIDE * WIDE];
        CTN_TRY(ctn_linear_new(&n->part[r], j->ctx, WIDE, WIDE, NULL));
        for (int i = 0; i < WIDE * WIDE; i++) w[i] = (float)value(5, r, i);
        CTN_TRY(ctn_var_set(ctn_module_find(n->part[r], "weight"), w, sizeof w));
        for (int i = 0; i < WIDE; i++) w[i] = (float)value(6, r, i);
        CTN_TRY(ctn_var_set(ctn_module_find(n->part[r], "bias"), w, WIDE * sizeof *w));
    }
    return CTN_OK;
}

static void free_net(const net *n, const job *j)
{
    ctn_optim_free(n->opt);
    for (int r = 0; r < j->size; r++) ctn_module_free(n->part[r]);
}

static ctn_tensor *loss_of(ctn_tensor *y)
{
    return ctn_mean(ctn_square(ctn_tanh(y)), CTN_ALL_AXES, 0);
}

/* Training in a chain of one part per rank against training the whole on each rank. */
static void run_pipeline(job *j)
{
    net all = {.opt = NULL}, mine = {.opt = NULL};
    ctn_dist_chain *chain = NULL;
    ctn_module *whole = NULL;
    const ctn_sgd_opt how = {.struct_size = sizeof how, .lr = 0.1, .momentum = 0.9};
    float x[ROWS * WIDE], got[WIDE * WIDE], want[WIDE * WIDE];
    const int last = j->size - 1;
    for (int i = 0; i < ROWS * WIDE; i++) x[i] = (float)value(7, 0, i);
    TRY(j, make_net(&all, j));
    TRY(j, make_net(&mine, j));
    TRY(j, ctn_sequential_new(&whole, j->ctx, j->size, all.part));
    TRY(j, ctn_sgd_new(&all.opt, ctn_params(whole), &how));
    TRY(j, ctn_sgd_new(&mine.opt, ctn_params(mine.part[j->rank]), &how));
    TRY(j, ctn_dist_chain_new(&chain, j->ctx, j->c));
    TRY(j, ctn_dist_chain_add(chain, mine.part[j->rank]));
    if (j->rank > 0) TRY(j, ctn_dist_chain_recv(chain, j->rank - 1, CTN_F32, CTN_SHAPE(-1, WIDE)));
    if (j->rank < last) TRY(j, ctn_dist_chain_send(chain, j->rank + 1));
    for (int step = 0; step < STEPS; step++) {
        const int64_t rows = step == 2 ? ROWS - 1 : ROWS; /* another plan */
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(rows, WIDE));
        ctn_tensor *y = ctn_dist_chain_call(chain, j->rank == 0 ? tx : NULL, rows);
        TRY(j, ctn_backward(mine.opt, j->rank == last ? loss_of(y) : y));
        TRY(j, ctn_optim_step(mine.opt));
        TRY(j, ctn_scope_end(j->ctx));
        TRY(j, ctn_scope_begin(j->ctx));
        tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(rows, WIDE));
        TRY(j, ctn_backward(all.opt, loss_of(ctn_call(whole, tx))));
        TRY(j, ctn_optim_step(all.opt));
        TRY(j, ctn_scope_end(j->ctx));
    }
    TRY(j, ctn_var_get(ctn_module_find(mine.part[j->rank], "weight"), got, sizeof got));
    TRY(j, ctn_var_get(ctn_module_find(all.part[j->rank], "weight"), want, sizeof want));
    for (int i = 0; i < WIDE * WIDE; i++)
        CHECK(j, fabsf(got[i] - want[i]) < 1e-6f, "weight %d is %g, %g expected", i, (double)got[i],
              (double)want[i]);
    CHECK(j, ctn_dist_chain_add(chain, mine.part[0]) == CTN_ESTATE, "too late");
    ctn_error_clear();
    ctn_dist_chain_free(chain);
    ctn_optim_free(all.opt);
    ctn_module_free(whole);
    free_net(&mine, j);
}

/* Rank 0 computes twice: rank 0, rank 1, rank 0 again, with a loss and a message on one rank. */
static void run_there_and_back(job *j)
{
    net mine = {.opt = NULL}, all = {.opt = NULL};
    ctn_dist_chain *chain = NULL;
    float x[ROWS * WIDE], g[2][WIDE * WIDE];
    for (int i = 0; i < ROWS * WIDE; i++) x[i] = (float)value(7, 0, i);
    TRY(j, make_net(&mine, j));
    TRY(j, make_net(&all, j));
    TRY(j, ctn_dist_chain_new(&chain, j->ctx, j->c));
    TRY(j, ctn_dist_chain_add(chain, mine.part[j->rank]));
    if (j->rank == 1) TRY(j, ctn_dist_chain_recv(chain, 0, CTN_F32, CTN_SHAPE(ROWS, WIDE)));
    if (j->rank < 2) TRY(j, ctn_dist_chain_send(chain, 1 - j->rank));
    if (j->rank == 0) {
        TRY(j, ctn_dist_chain_add(chain, mine.part[2]));
        TRY(j, ctn_dist_chain_recv(chain, 1, CTN_F32, CTN_SHAPE(ROWS, WIDE)));
    }
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDE));
    ctn_tensor *y = ctn_dist_chain_call(chain, tx, ROWS), *gw[2] = {0};
    ctn_tensor *w = ctn_use(ctn_module_find(mine.part[j->rank], "weight"));
    TRY(j, ctn_grad(j->rank == 1 ? y : loss_of(y), 1, &w, &gw[0]));
    TRY(j, ctn_read(gw[0], g[0], sizeof g[0]));
    TRY(j, ctn_scope_end(j->ctx));
    TRY(j, ctn_scope_begin(j->ctx));
    y = tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDE));
    if (j->rank == 2) y = ctn_call(all.part[2], y); /* not connected with the others */
    for (int r = 0; r < 3 && j->rank < 2; r++) y = ctn_call(all.part[r], y);
    w = ctn_use(ctn_module_find(all.part[j->rank], "weight"));
    TRY(j, ctn_grad(loss_of(y), 1, &w, &gw[1]));
    TRY(j, ctn_read(gw[1], g[1], sizeof g[1]));
    TRY(j, ctn_scope_end(j->ctx));
    for (int i = 0; i < WIDE * WIDE; i++)
        CHECK(j, fabsf(g[0][i] - g[1][i]) < 1e-6f, "gradient %d is %g, %g expected", i,
              (double)g[0][i], (double)g[1][i]);
    ctn_dist_chain_free(chain);
    free_net(&mine, j);
    free_net(&all, j);
}

static ctn_tensors multiply(void *self, ctn_module *m, ctn_tensors x)
{
    (void)self, (void)m;
    return CTN_TENSORS(ctn_mul(x.t[0], x.t[1]));
}

/* Rank 0 sends its result to two ranks, and rank 2, which has no parameters, multiplies it with
 * that of rank 1. */
static void run_branches(job *j)
{
    net mine = {.opt = NULL}, all = {.opt = NULL};
    ctn_module *product = NULL;
    ctn_dist_chain *chain = NULL;
    float x[ROWS * WIDE], g[2][WIDE * WIDE];
    for (int i = 0; i < ROWS * WIDE; i++) x[i] = (float)value(7, 0, i);
    TRY(j, make_net(&mine, j));
    TRY(j, make_net(&all, j));
    TRY(j, ctn_module_new_multi(&product, j->ctx, multiply, NULL, NULL));
    TRY(j, ctn_sgd_new(&mine.opt, ctn_params(mine.part[j->rank]), NULL));
    TRY(j, ctn_dist_chain_new(&chain, j->ctx, j->c));
    TRY(j, ctn_dist_chain_add(chain, j->rank < 2 ? mine.part[j->rank] : product));
    if (j->rank == 0) TRY(j, ctn_dist_chain_send(chain, 2));
    if (j->rank == 0) TRY(j, ctn_dist_chain_send(chain, 1));
    if (j->rank > 0) TRY(j, ctn_dist_chain_recv(chain, 0, CTN_F32, CTN_SHAPE(ROWS, WIDE)));
    if (j->rank == 1) TRY(j, ctn_dist_chain_send(chain, 2));
    if (j->rank == 2) TRY(j, ctn_dist_chain_recv(chain, 1, CTN_F32, CTN_SHAPE(ROWS, WIDE)));
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDE));
    ctn_tensor *y = ctn_dist_chain_call(chain, tx, ROWS), *gw = NULL;
    ctn_var *v = ctn_module_find(mine.part[j->rank], "weight");
    TRY(j, ctn_backward(mine.opt, j->rank == 2 ? loss_of(y) : y));
    TRY(j, ctn_scope_end(j->ctx));
    TRY(j, ctn_var_grad(v, g[0], sizeof g[0]));
    TRY(j, ctn_scope_begin(j->ctx));
    tx = ctn_call(all.part[0], ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDE)));
    y = ctn_mul(tx, ctn_call(all.part[1], tx));
    ctn_tensor *w = ctn_use(ctn_module_find(all.part[j->rank % 2], "weight"));
    TRY(j, ctn_grad(loss_of(y), 1, &w, &gw));
    TRY(j, ctn_read(gw, g[1], sizeof g[1]));
    TRY(j, ctn_scope_end(j->ctx));
    for (int i = 0; i < WIDE * WIDE; i++) {
        const float want = j->rank < 2 ? g[1][i] : 0; /* rank 2 does not use its layer */
        CHECK(j, fabsf(g[0][i] - want) < 1e-6f, "gradient %d is %g, %g expected", i,
              (double)g[0][i], (double)want);
    }
    ctn_dist_chain_free(chain);
    ctn_module_free(product);
    free_net(&mine, j);
    free_net(&all, j);
}

/* A module that only one rank has is saved and loaded by that rank: the training continues with the
 * same bits. */
static void run_resume(job *j)
{
    const ctn_sgd_opt how = {.struct_size = sizeof how, .lr = 0.1, .momentum = 0.9};
    const int last = j->size - 1;
    float x[ROWS * WIDE], end[2][WIDE * WIDE];
    char path[64];
    snprintf(path, sizeof path, "dist_send_%d_of_%d.safetensors", j->rank, j->size);
    for (int i = 0; i < ROWS * WIDE; i++) x[i] = (float)value(7, 0, i);
    for (int round = 0; round < 2; round++) { /* from the beginning, then from the file */
        net mine = {.opt = NULL};
        ctn_dist_chain *chain = NULL;
        TRY(j, make_net(&mine, j));
        TRY(j, ctn_sgd_new(&mine.opt, ctn_params(mine.part[j->rank]), &how));
        const ctn_state_part parts[] = {ctn_part_module("net", mine.part[j->rank]),
                                        ctn_part_optim("optim", mine.opt)};
        TRY(j, ctn_dist_chain_new(&chain, j->ctx, j->c));
        TRY(j, ctn_dist_chain_add(chain, mine.part[j->rank]));
        if (j->rank > 0)
            TRY(j, ctn_dist_chain_recv(chain, j->rank - 1, CTN_F32, CTN_SHAPE(-1, WIDE)));
        if (j->rank < last) TRY(j, ctn_dist_chain_send(chain, j->rank + 1));
        if (round == 1) TRY(j, ctn_state_load(path, 2, parts));
        for (int step = round * STEPS / 2; step < STEPS; step++) {
            TRY(j, ctn_scope_begin(j->ctx));
            ctn_tensor *tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(ROWS, WIDE));
            ctn_tensor *y = ctn_dist_chain_call(chain, j->rank == 0 ? tx : NULL, ROWS);
            TRY(j, ctn_backward(mine.opt, j->rank == last ? loss_of(y) : y));
            TRY(j, ctn_optim_step(mine.opt));
            TRY(j, ctn_scope_end(j->ctx));
            if (round == 0 && step == STEPS / 2 - 1) TRY(j, ctn_state_save(path, 2, parts));
        }
        ctn_var *w = ctn_module_find(mine.part[j->rank], "weight");
        TRY(j, ctn_var_get(w, end[round], sizeof end[round]));
        ctn_dist_chain_free(chain);
        free_net(&mine, j);
    }
    CHECK(j, memcmp(end[0], end[1], sizeof end[0]) == 0, "other bits after loading");
    remove(path);
}

/* Two stages with two copies each: messages go from stage to stage, gradients between the copies of
 * a stage. Against one network with the samples of both copies. */
static void run_hybrid(job *j)
{
    const int stage = j->rank % 2, twin = j->rank / 2;
    const ctn_sgd_opt how = {.struct_size = sizeof how, .lr = 0.1, .momentum = 0.9};
    net all = {.opt = NULL}, mine = {.opt = NULL};
    ctn_comm *stages = NULL, *twins = NULL;
    ctn_dist_chain *chain = NULL;
    ctn_module *whole = NULL;
    float x[2 * ROWS * WIDE], got[WIDE * WIDE], want[WIDE * WIDE];
    for (int i = 0; i < 2 * ROWS * WIDE; i++) x[i] = (float)value(7, 0, i);
    TRY(j, ctn_comm_split(&stages, j->c, twin, stage, NULL));
    TRY(j, ctn_comm_split(&twins, j->c, stage, twin, CTN_OPT(ctn_comm_opt, .algorithm = "ring")));
    TRY(j, make_net(&all, j));
    TRY(j, make_net(&mine, j));
    TRY(j, ctn_sequential_new(&whole, j->ctx, 2, all.part));
    TRY(j, ctn_sgd_new(&all.opt, ctn_params(whole), &how));
    TRY(j, ctn_sgd_new(&mine.opt, ctn_params(mine.part[stage]), &how));
    TRY(j, ctn_dist_optim(mine.opt, twins, NULL));
    TRY(j, ctn_dist_chain_new(&chain, j->ctx, stages));
    TRY(j, ctn_dist_chain_add(chain, mine.part[stage]));
    if (stage == 1) TRY(j, ctn_dist_chain_recv(chain, 0, CTN_F32, CTN_SHAPE(-1, WIDE)));
    if (stage == 0) TRY(j, ctn_dist_chain_send(chain, 1));
    for (int step = 0; step < STEPS; step++) {
        TRY(j, ctn_scope_begin(j->ctx));
        const float *part = x + twin * ROWS * WIDE;
        ctn_tensor *tx = ctn_input(j->ctx, part, CTN_F32, CTN_SHAPE(ROWS, WIDE));
        ctn_tensor *y = ctn_dist_chain_call(chain, stage == 0 ? tx : NULL, ROWS);
        TRY(j, ctn_backward(mine.opt, stage == 1 ? loss_of(y) : y));
        TRY(j, ctn_optim_step(mine.opt));
        TRY(j, ctn_scope_end(j->ctx));
        TRY(j, ctn_scope_begin(j->ctx));
        tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(2 * ROWS, WIDE));
        TRY(j, ctn_backward(all.opt, loss_of(ctn_call(whole, tx))));
        TRY(j, ctn_optim_step(all.opt));
        TRY(j, ctn_scope_end(j->ctx));
    }
    TRY(j, ctn_var_get(ctn_module_find(mine.part[stage], "weight"), got, sizeof got));
    TRY(j, ctn_var_get(ctn_module_find(all.part[stage], "weight"), want, sizeof want));
    for (int i = 0; i < WIDE * WIDE; i++)
        CHECK(j, fabsf(got[i] - want[i]) < 1e-6f, "weight %d is %g, %g expected", i, (double)got[i],
              (double)want[i]);
    ctn_dist_chain_free(chain);
    ctn_optim_free(all.opt);
    ctn_module_free(whole);
    for (int r = 2; r < j->size; r++) ctn_module_free(all.part[r]);
    free_net(&mine, j);
    ctn_comm_free(stages);
    ctn_comm_free(twins);
}

enum { NO_RECEIVE, NO_SEND, CIRCLE, TWO_ENDS, MISTAKES };

/* A mistake is refused on all ranks, with both source lines. */
static void run_mistake(job *j)
{
    static const char *const text[] = {"rank 0 sends to rank 1 at",
                                       "rank 1 receives from rank 0 at",
                                       "in a circle: rank 0 receives from rank 1 at",
                                       "both have no receiver"};
    const int what = *(const int *)j->arg;
    net mine = {.opt = NULL};
    ctn_dist_chain *chain = NULL;
    float x[WIDE] = {0};
    TRY(j, make_net(&mine, j));
    TRY(j, ctn_dist_chain_new(&chain, j->ctx, j->c));
    TRY(j, ctn_dist_chain_add(chain, mine.part[0]));
    if (what == TWO_ENDS && j->rank == 1) TRY(j, ctn_dist_chain_add(chain, mine.part[0]));
    if (what == NO_RECEIVE && j->rank == 0) TRY(j, ctn_dist_chain_send(chain, 1));
    if ((what == NO_SEND && j->rank == 1) || (what == CIRCLE && j->rank < 2))
        TRY(j, ctn_dist_chain_recv(chain, 1 - j->rank, CTN_F32, CTN_SHAPE(-1, WIDE)));
    if (what == CIRCLE && j->rank < 2) TRY(j, ctn_dist_chain_send(chain, 1 - j->rank));
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(1, WIDE));
    CHECK(j, !ctn_dist_chain_call(chain, tx, 1) && ctn_error_status() == CTN_EARG, "refused");
    CHECK(j, strstr(ctn_error_message(), text[what]), "%s", ctn_error_message());
    const char *first = strstr(ctn_error_message(), "test_dist_send.c:");
    CHECK(j, first && strstr(first + 1, "test_dist_send.c:"), "%s", ctn_error_message());
    ctn_error_clear();
    TRY(j, ctn_scope_end(j->ctx));
    CHECK(j, ctn_dist_chain_send(chain, j->rank) == CTN_EARG, "to itself");
    ctn_error_clear();
    ctn_dist_chain_free(chain);
    free_net(&mine, j);
}

static void test_chain(void **state)
{
    (void)state;
    for (int k = 0; k < SIZES; k++)
        for (int m = 0; m < 2; m++) on_ranks(sizes[k], modes[m], run_pipeline, NULL);
    for (int m = 0; m < 2; m++) {
        on_ranks(3, modes[m], run_there_and_back, NULL);
        on_ranks(3, modes[m], run_branches, NULL);
        on_ranks(4, modes[m], run_hybrid, NULL);
        on_ranks(2, modes[m], run_resume, NULL);
    }
    for (int what = 0; what < MISTAKES; what++) on_ranks(3, CTN_MODE_PLANNED, run_mistake, &what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
