/* SPDX-License-Identifier: Apache-2.0
 *
 * src/distributed with threads as ranks: differentiable communication, its order, and that no
 * pass drops, merges or repeats it; broadcasting the variables of one rank; means and evaluation
 * over parts of different sizes. Batch normalisation is in test_dist_norm.c.
 * Labels: threads
 */
#include "ranks.h"

/* ---- ops and their gradients ----------------------------------------------------------------- */

enum {
    ALLREDUCE,
    ALLGATHER,
    REDUCE_SCATTER,
    BROADCAST,
    REDUCE,
    GATHER,
    SCATTER,
    ALLTOALL,
    MAX,
    MIN,
    REDUCE_MAX,
    REDUCE_MIN,
    KINDS
};
enum { ROW = 3, X_MOST = 2 * MOST * ROW, Y_MOST = MOST * X_MOST };

typedef struct {
    int kind, long_x; /* long_x: too long for a short sum */
} op_case;

static ctn_tensor *apply(const job *j, int kind, ctn_tensor *x)
{
    switch (kind) {
    case ALLREDUCE: return ctn_dist_allreduce(j->c, x);
    case ALLGATHER: return ctn_dist_allgather(j->c, x);
    case REDUCE_SCATTER: return ctn_dist_reduce_scatter(j->c, x);
    case REDUCE: return ctn_dist_reduce(j->c, x, j->size - 1);
    case GATHER: return ctn_dist_gather(j->c, x, j->size - 1);
    case SCATTER: return ctn_dist_scatter(j->c, x, j->size - 1);
    case ALLTOALL: return ctn_dist_alltoall(j->c, x);
    case MAX: return ctn_dist_allreduce_max(j->c, x);
    case MIN: return ctn_dist_allreduce_min(j->c, x);
    case REDUCE_MAX: return ctn_dist_reduce_max(j->c, x, j->size - 1);
    case REDUCE_MIN: return ctn_dist_reduce_min(j->c, x, j->size - 1);
    default: return ctn_dist_broadcast(j->c, x, j->size - 1);
    }
}

/* Integer-valued, so that sums are exact. */
static float number(int what, int rank, int64_t i)
{
    return (float)((i * 7 + rank * 31 + what * 13) % 19 - 9);
}

static int64_t rows_of_y(const job *j, int kind, int64_t rows)
{
    if (kind == ALLGATHER || kind == GATHER) return rows * j->size;
    return kind == REDUCE_SCATTER || kind == SCATTER ? rows / j->size : rows;
}

/* The largest or smallest x[i] of all ranks, and how many ranks have it. */
static float extreme(const job *j, bool max, int64_t i, int *count)
{
    float best = number(0, 0, i);
    for (int q = 1; q < j->size; q++) {
        const float v = number(0, q, i);
        if (max ? v > best : v < best) best = v;
    }
    *count = 0;
    for (int q = 0; q < j->size; q++) *count += number(0, q, i) == best;
    return best;
}

static bool at_root(int kind) /* zero elsewhere */
{
    return kind == REDUCE || kind == GATHER || kind == REDUCE_MAX || kind == REDUCE_MIN;
}

static float want_y(const job *j, int kind, int64_t n, int64_t i)
{
    const int root = j->size - 1;
    const int64_t part = n / j->size;
    float sum = 0;
    int count;
    if (at_root(kind) && j->rank != root) return 0;
    if (kind == ALLGATHER || kind == GATHER) return number(0, (int)(i / n), i % n);
    if (kind == BROADCAST) return number(0, root, i);
    if (kind == SCATTER) return number(0, root, j->rank * part + i);
    if (kind == ALLTOALL) return number(0, (int)(i / part), j->rank * part + i % part);
    if (kind == MAX || kind == REDUCE_MAX) return extreme(j, true, i, &count);
    if (kind == MIN || kind == REDUCE_MIN) return extreme(j, false, i, &count);
    if (kind == REDUCE_SCATTER) i += part * j->rank;
    for (int q = 0; q < j->size; q++) sum += number(0, q, i);
    return sum;
}

/* The derivative of the sum over ranks of sum(w y) by x[i] of this rank; x has n elements. */
static float want_gx(const job *j, int kind, int64_t n, int64_t i)
{
    const int root = j->size - 1;
    const int64_t part = n / j->size;
    float sum = 0;
    int count = 1;
    if (kind == REDUCE_SCATTER) return number(1, (int)(i / part), i % part);
    if ((kind == BROADCAST || kind == SCATTER) && j->rank != root) return 0;
    if (kind == SCATTER) return number(1, (int)(i / part), i % part);
    if (kind == GATHER) return number(1, root, j->rank * n + i);
    if (kind == REDUCE) return number(1, root, i);
    if (kind == ALLTOALL) return number(1, (int)(i / part), j->rank * part + i % part);
    if (kind == MAX || kind == MIN || kind == REDUCE_MAX || kind == REDUCE_MIN)
        if (number(0, j->rank, i) != extreme(j, kind == MAX || kind == REDUCE_MAX, i, &count))
            return 0;
    if (at_root(kind)) return number(1, root, i) / (float)count;
    for (int q = 0; q < j->size; q++) sum += number(1, q, kind == ALLGATHER ? j->rank * n + i : i);
    return sum / (float)count;
}

static void run_op(job *j)
{
    const op_case *o = j->arg;
    const int64_t rows = (o->long_x ? 8000 : 2) * j->size, n = rows * ROW;
    const int64_t ny = rows_of_y(j, o->kind, rows) * ROW;
    float *x = malloc((size_t)n * sizeof *x), *w = malloc((size_t)ny * sizeof *w);
    float *y = malloc((size_t)ny * sizeof *y), *g = malloc((size_t)n * sizeof *g);
    for (int64_t i = 0; i < n; i++) x[i] = number(0, j->rank, i);
    for (int64_t i = 0; i < ny; i++) w[i] = number(1, j->rank, i);
    for (int step = 0; step < 2; step++) { /* a miss, then a hit */
        ctn_tensor *gx = NULL;
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *tx = ctn_with_grad(ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(rows, ROW)));
        ctn_tensor *ty = apply(j, o->kind, tx);
        CHECK(j, ty != NULL, "%s", ctn_error_message());
        ctn_tensor *tw = ctn_input(j->ctx, w, CTN_F32, CTN_SHAPE(ny / ROW, ROW));
        TRY(j, ctn_grad(ctn_sum(ctn_mul(ty, tw), CTN_ALL_AXES, 0), 1, &tx, &gx));
        TRY(j, ctn_read(gx, g, (size_t)n * sizeof *g));
        TRY(j, ctn_read(ty, y, (size_t)ny * sizeof *y));
        TRY(j, ctn_scope_end(j->ctx));
        for (int64_t i = 0; i < ny; i++)
            CHECK(j, y[i] == want_y(j, o->kind, n, i), "op %d: y[%d] is %g, %g expected", o->kind,
                  (int)i, (double)y[i], (double)want_y(j, o->kind, n, i));
        for (int64_t i = 0; i < n; i++)
            CHECK(j, g[i] == want_gx(j, o->kind, n, i), "op %d: gx[%d] is %g, %g expected", o->kind,
                  (int)i, (double)g[i], (double)want_gx(j, o->kind, n, i));
    }
    free(x);
    free(w);
    free(y);
    free(g);
}

static void test_ops(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 4, 7};
    for (int k = 0, size; k < 5; k++)
        for (int m = 0; m < 2; m++)
            for (int kind = 0; kind < KINDS; kind++) {
                size = sizes[k];
                on_ranks(size, modes[m], run_op, &(op_case){kind, 0});
                if (size > 1 && size <= MOST && m == 0)
                    on_ranks(size, modes[m], run_op, &(op_case){kind, 1});
            }
}

/* Only one rank has a gradient to ask for before the op. The others take part in its gradient all
 * the same, because their own loss depends on the op. */
static void run_constants(job *j)
{
    const int kind = ((const op_case *)j->arg)->kind, root = j->size - 1;
    const int64_t rows = 2 * j->size, n = rows * ROW, ny = rows_of_y(j, kind, rows) * ROW;
    float x[X_MOST], w[Y_MOST], g[Y_MOST];
    for (int64_t i = 0; i < n; i++) x[i] = number(0, j->rank, i);
    for (int64_t i = 0; i < ny; i++) w[i] = number(1, j->rank, i);
    for (int step = 0; step < 2; step++) {
        ctn_tensor *gx = NULL;
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *tx = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(rows, ROW));
        ctn_tensor *tw = ctn_with_grad(ctn_input(j->ctx, w, CTN_F32, CTN_SHAPE(ny / ROW, ROW)));
        if (j->rank == root) tx = ctn_with_grad(tx);
        ctn_tensor *to = j->rank == root ? tx : tw;
        ctn_tensor *ty = apply(j, kind, tx);
        TRY(j, ctn_grad(ctn_sum(ctn_mul(ty, tw), CTN_ALL_AXES, 0), 1, &to, &gx));
        TRY(j, ctn_read(gx, g, (size_t)(j->rank == root ? n : ny) * sizeof *g));
        TRY(j, ctn_scope_end(j->ctx));
        for (int64_t i = 0; j->rank == root && i < n; i++)
            CHECK(j, g[i] == want_gx(j, kind, n, i), "op %d: gx[%d] is %g, %g expected", kind,
                  (int)i, (double)g[i], (double)want_gx(j, kind, n, i));
        for (int64_t i = 0; j->rank != root && i < ny; i++)
            CHECK(j, g[i] == want_y(j, kind, n, i), "op %d: gw[%d] is %g", kind, (int)i,
                  (double)g[i]);
    }
}

static void test_constants(void **state)
{
    (void)state;
    for (int size = 2; size <= 3; size++)
        for (int m = 0; m < 2; m++)
            for (int kind = 0; kind < KINDS; kind++)
                on_ranks(size, modes[m], run_constants, &(op_case){kind, 0});
}

/* f = sum over ranks of sum(tanh(y)^2 w), in f64, so that second derivatives go through the op
 * twice. */
static double curve(job *j, int kind, const double *x, double *gx, double *ggx, int64_t rows)
{
    ctn_tensor *g = NULL, *gg = NULL;
    if (ctn_scope_begin(j->ctx) < 0) return NAN;
    ctn_tensor *tx = ctn_with_grad(ctn_input(j->ctx, x, CTN_F64, CTN_SHAPE(rows, ROW)));
    ctn_tensor *f = ctn_sum(ctn_square(ctn_tanh(apply(j, kind, tx))), CTN_ALL_AXES, 0);
    f = ctn_scale(f, 1 + 0.5 * j->rank);
    const size_t bytes = (size_t)rows * ROW * sizeof(double);
    double value = NAN;
    if (ctn_grad(f, 1, &tx, &g) == CTN_OK &&
        ctn_grad(ctn_sum(ctn_square(g), CTN_ALL_AXES, 0), 1, &tx, &gg) == CTN_OK &&
        ctn_read(gg, ggx, bytes) == CTN_OK && ctn_read(g, gx, bytes) == CTN_OK)
        value = ctn_item(f);
    if (ctn_scope_end(j->ctx) < 0) return NAN;
    return value;
}

/* Both derivatives against finite differences, for each rank's elements in turn. */
static void run_curve(job *j)
{
    const int kind = ((const op_case *)j->arg)->kind;
    const int64_t rows = j->size, n = rows * ROW;
    const double h = 1e-5;
    double x[X_MOST], gx[X_MOST], ggx[X_MOST], g[X_MOST], unused[X_MOST];
    /* no two ranks have the same value, where a maximum has no derivative */
    for (int i = 0; i < n; i++) x[i] = 0.1 * (double)number(2, j->rank, i) + 0.013 * j->rank;
    CHECK(j, isfinite(curve(j, kind, x, gx, ggx, rows)), "%s", ctn_error_message());
    for (int q = 0; q < j->size; q++)
        for (int i = q % 2; i < n; i += 2) { /* half of them: there are many kinds of ops */
            double f[2] = {0, 0};
            for (int s = 0; s < 2; s++) {
                double at = x[i], sum[2];
                if (j->rank == q) x[i] += s ? h : -h;
                sum[0] = curve(j, kind, x, g, unused, rows);
                x[i] = at;
                sum[1] = 0;
                for (int k = 0; k < n; k++) sum[1] += g[k] * g[k];
                TRY(j, ctn_comm_allreduce(j->c, sum, 2, CTN_F64));
                f[0] += (s ? 1 : -1) * sum[0] / (2 * h);
                f[1] += (s ? 1 : -1) * sum[1] / (2 * h);
            }
            if (j->rank != q) continue;
            CHECK(j, fabs(f[0] - gx[i]) < 1e-6 * fmax(1, fabs(f[0])), "op %d: %g, differences %g",
                  kind, gx[i], f[0]);
            CHECK(j, fabs(f[1] - ggx[i]) < 1e-6 * fmax(1, fabs(f[1])),
                  "op %d, order 2: %g, differences %g", kind, ggx[i], f[1]);
        }
}

static void test_second_derivatives(void **state)
{
    (void)state;
    for (int size = 1; size <= 3; size++)
        for (int kind = 0; kind < KINDS; kind++)
            on_ranks(size, CTN_MODE_PLANNED, run_curve, &(op_case){kind, 0});
}

static void run_refusals(job *j)
{
    const float x[2 * ROW] = {0};
    const int64_t k[1] = {0};
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *t = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(j->size + 1, 1));
    ctn_tensor *i = ctn_input(j->ctx, k, CTN_I64, CTN_SHAPE(1));
    CHECK(j, !ctn_dist_allreduce(j->c, i) && strstr(ctn_error_message(), "i64"), "integers");
    ctn_error_clear();
    CHECK(j, !ctn_dist_reduce_scatter(j->c, t) && strstr(ctn_error_message(), "not a multiple"),
          "rows");
    ctn_error_clear();
    CHECK(j, !ctn_dist_alltoall(j->c, t) && strstr(ctn_error_message(), "not a multiple"), "parts");
    ctn_error_clear();
    CHECK(j, !ctn_dist_scatter(j->c, t, 0) && strstr(ctn_error_message(), "not a multiple"),
          "parts");
    ctn_error_clear();
    CHECK(j, !ctn_dist_allreduce_max(j->c, i) && strstr(ctn_error_message(), "i64"), "integers");
    ctn_error_clear();
    CHECK(j, !ctn_dist_broadcast(j->c, t, 7) && strstr(ctn_error_message(), "root is 7"), "root");
    ctn_error_clear();
    CHECK(j, !ctn_dist_allgather(NULL, t) && strstr(ctn_error_message(), "communicator"), "none");
    ctn_error_clear();
    CHECK(j, !ctn_dist_allgather(j->c, ctn_number(j->ctx, 1)), "a number has no rows");
    ctn_error_clear();
    TRY(j, ctn_scope_end(j->ctx));
}

/* NaN wins, and the sign of zero is the same on all ranks. */
static void run_special(job *j)
{
    const float x[2] = {j->rank == 1 ? NAN : 1, j->rank == j->size - 1 ? 0.0f : -0.0f};
    float y[2][2];
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *t = ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(2));
    ctn_tensor *most = ctn_dist_allreduce_max(j->c, t), *least = ctn_dist_allreduce_min(j->c, t);
    TRY(j, ctn_read(most, y[0], sizeof y[0]));
    TRY(j, ctn_read(least, y[1], sizeof y[1]));
    TRY(j, ctn_scope_end(j->ctx));
    CHECK(j, isnan(y[0][0]) && isnan(y[1][0]), "%g and %g", (double)y[0][0], (double)y[1][0]);
    CHECK(j, y[0][1] == 0 && y[1][1] == 0 && !signbit(y[0][1]) && signbit(y[1][1]), "%g and %g",
          (double)y[0][1], (double)y[1][1]);
}

/* Rank 0 has more rows than the others, or fewer. All ranks report it, and none waits. */
static void run_uneven_rows(job *j)
{
    const op_case *o = j->arg;
    float x[2 * X_MOST * ROW] = {0}, y[2 * Y_MOST * ROW];
    const int64_t rows = (j->rank == 0) == o->long_x ? 2 * j->size : 4 * j->size;
    ctn_tensor *ty = NULL;
    ctn_status st = CTN_OK;
    TRY(j, ctn_scope_begin(j->ctx));
    ty = apply(j, o->kind, ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(rows, ROW)));
    st = ctn_read(ty, y, (size_t)rows_of_y(j, o->kind, rows) * ROW * sizeof *y);
    if (st == CTN_OK) st = ctn_comm_barrier(j->c); /* it only sends */
    CHECK(j, st < 0 && strstr(ctn_error_message(), "all ranks must pass the same shape"),
          "op %d: %s", o->kind, st < 0 ? ctn_error_message() : "no error");
    ctn_error_clear();
    (void)ctn_scope_end(j->ctx);
    ctn_error_clear();
}

static void test_refusals(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int more = 0; more < 2; more++)
            for (int size = 2; size <= 3; size++)
                on_ranks(size, CTN_MODE_PLANNED, run_uneven_rows, &(op_case){kind, more});
    for (int size = 2; size <= MOST; size++) on_ranks(size, CTN_MODE_PLANNED, run_special, NULL);
    on_ranks(2, CTN_MODE_PLANNED, run_refusals, NULL);
}

/* ---- communication is an effect (rule 1) ----------------------------------------------------- */

typedef struct {
    int calls;
    char order[64]; /* one letter per op that communicates */
} seen;

static ctn_status look(void *user, const ctn_plan_node *n)
{
    seen *s = user;
    if (strncmp(n->op, "dist_", 5) != 0 || s->calls == 63) return CTN_OK;
    s->order[s->calls++] = n->op[7]; /* fallback; known ops follow */
    if (strcmp(n->op, "dist_allgather") == 0) s->order[s->calls - 1] = 'g';
    if (strcmp(n->op, "dist_broadcast") == 0) s->order[s->calls - 1] = 'b';
    if (strcmp(n->op, "dist_reduce") == 0) s->order[s->calls - 1] = 'r';
    if (strcmp(n->op, "dist_allreduce") == 0) s->order[s->calls - 1] = 'a';
    if (strcmp(n->op, "dist_reduce_scatter") == 0) s->order[s->calls - 1] = 's';
    return CTN_OK;
}

/* Equal calls are not merged, unused ones are not dropped, those of a recomputed block are not
 * repeated for its gradient, and all stay in program order. */
static void run_order(job *j)
{
    const float data[4] = {1, 2, 3, 4};
    seen s = {0};
    ctn_tensor *gx = NULL;
    TRY(j, ctn_scope_begin(j->ctx));
    ctn_tensor *x = ctn_with_grad(ctn_input(j->ctx, data, CTN_F32, CTN_SHAPE(4)));
    ctn_tensor *a = ctn_dist_allreduce(j->c, x), *b = ctn_dist_allreduce(j->c, x);
    ctn_dist_broadcast(j->c, x, 0);
    TRY(j, ctn_recompute_begin(j->ctx));
    ctn_tensor *y = ctn_tanh(ctn_dist_allgather(j->c, ctn_tanh(ctn_add(a, b))));
    y = ctn_square(y);
    TRY(j, ctn_recompute_end(j->ctx));
    TRY(j, ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), 1, &x, &gx));
    ctn_dist_broadcast(j->c, x, 0);
    CHECK(j, ctn_keep(gx) != NULL, "%s", ctn_error_message());
    TRY(j, ctn_scope_end(j->ctx));
    TRY(j, ctn_context_visit_plan(j->ctx, look, &s));
    CHECK(j, strcmp(s.order, "aabgsaab") == 0, "order is %s", s.order);
}

/* One rank reads in mid-step, one reads a gradient, and the others read nothing: all calls still
 * match. */
static void run_uneven(job *j)
{
    float data[2] = {(float)j->rank, 1}, got[2] = {0};
    for (int step = 0; step < 3; step++) {
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *x = ctn_with_grad(ctn_input(j->ctx, data, CTN_F32, CTN_SHAPE(2))), *gx = NULL;
        ctn_tensor *a = ctn_dist_allreduce(j->c, x);
        if (j->rank == 0) TRY(j, ctn_read(a, got, sizeof got));
        ctn_tensor *b = ctn_dist_allreduce(j->c, ctn_square(a));
        TRY(j, ctn_grad(ctn_sum(b, CTN_ALL_AXES, 0), 1, &x, &gx));
        if (j->rank == 1) TRY(j, ctn_read(gx, got, sizeof got));
        ctn_dist_broadcast(j->c, a, 0);
        TRY(j, ctn_scope_end(j->ctx));
        /* b = size a^2 on each rank: d(sum of b)/dx = size^2 2 a, summed over ranks once more. */
        const int pairs = j->size * (j->size - 1) / 2;
        const float sum = (float)pairs, n = (float)j->size;
        if (j->rank == 0) CHECK(j, got[0] == sum, "%g", (double)got[0]);
        if (j->rank == 1) CHECK(j, got[0] == n * n * 2 * sum, "%g", (double)got[0]);
    }
}

static void test_order(void **state)
{
    (void)state;
    on_ranks(1, CTN_MODE_PLANNED, run_order, NULL);
    on_ranks(3, CTN_MODE_PLANNED, run_order, NULL);
    on_ranks(3, CTN_MODE_PLANNED, run_uneven, NULL);
    on_ranks(3, CTN_MODE_EAGER, run_uneven, NULL);
}

/* ---- variables, means, evaluation ------------------------------------------------------------ */

static void run_vars(job *j)
{
    ctn_module *m = NULL;
    float w[6];
    TRY(j, ctn_linear_new(&m, j->ctx, 3, 2, NULL));
    ctn_var *v = ctn_module_find(m, "weight");
    for (int i = 0; i < 6; i++) w[i] = (float)(10 * j->rank + i);
    TRY(j, ctn_var_set(v, w, sizeof w));
    TRY(j, ctn_dist_broadcast_vars(j->c, ctn_params(m), j->size - 1));
    TRY(j, ctn_var_get(v, w, sizeof w));
    for (int i = 0; i < 6; i++)
        CHECK(j, w[i] == (float)(10 * (j->size - 1) + i), "%g", (double)w[i]);
    ctn_vars part = ctn_params(m);
    part.n -= j->rank == j->size - 1; /* one rank has fewer: an error on all, nobody waits */
    CHECK(j, ctn_dist_broadcast_vars(j->c, part, 0) == CTN_EARG, "different variables");
    CHECK(j, strstr(ctn_error_message(), "variables of"), "%s", ctn_error_message());
    ctn_module_free(m);
}

static void run_means(job *j)
{
    /* 1 + rank samples of value rank; no rank has the second value; only rank 1 has the third. */
    double v[3] = {j->rank, NAN, j->rank == 1 ? 5 : NAN}, w[3] = {1 + j->rank, 0, j->rank == 1};
    double sum = 0, weight = 0;
    for (int q = 0; q < j->size; q++) {
        sum += q * (1.0 + q);
        weight += 1 + q;
    }
    TRY(j, ctn_dist_mean(j->c, 3, v, w));
    CHECK(j, v[0] == sum / weight && w[0] == weight, "%g of %g", v[0], w[0]);
    CHECK(j, isnan(v[1]) && w[1] == 0, "%g of %g", v[1], w[1]);
    if (j->size > 1) CHECK(j, v[2] == 5 && w[2] == 1, "%g of %g", v[2], w[2]);
}

static void test_vars_and_means(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size++) {
        if (size > 1) on_ranks(size, CTN_MODE_PLANNED, run_vars, NULL);
        on_ranks(size, CTN_MODE_PLANNED, run_means, NULL);
    }
}

enum { DATA = 10, BATCH = 2 };
static const float data_x[DATA] = {3, -1, 4, 1, -5, 9, 2, 6, 5, -3};

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    ctn_tensor *x = ctn_step_input(s, 0), *w = ctn_use(self);
    ctn_report(s, "plain", ctn_mean(x, CTN_ALL_AXES, 0));
    return ctn_mean(ctn_square(ctn_sub(x, w)), CTN_ALL_AXES, 0);
}

typedef struct {
    double loss, plain;
} evaluated;

static ctn_status take(void *user, const char *name, double value)
{
    evaluated *e = user;
    *(strcmp(name, "loss") == 0 ? &e->loss : &e->plain) = value;
    return CTN_OK;
}

/* A loader of this rank's part. `count` may be less than the number of ranks. */
static ctn_status open_part(const job *j, ctn_dataset **ds, ctn_loader **l, int64_t count)
{
    const ctn_field field = {.dtype = CTN_F32, .ndim = 0};
    const void *data = data_x;
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_arrays_open(ds, count, 1, &field, &data));
    CTN_TRY(ctn_sampler_shuffled(&s, count, 3));
    CTN_TRY(ctn_sampler_shard(s, ctn_comm_rank(j->c), ctn_comm_size(j->c)));
    ctn_status st = ctn_loader_new(l, *ds, s, CTN_OPT(ctn_loader_opt, .batch = BATCH));
    ctn_sampler_free(s);
    return st;
}

static void run_evaluate(job *j)
{
    const int64_t count = *(const int *)j->arg;
    ctn_dataset *ds = NULL;
    ctn_loader *l = NULL;
    ctn_var *w = NULL;
    ctn_trainer *tr = NULL;
    ctn_optim *o = NULL;
    evaluated got = {0}, want = {0};
    for (int64_t i = 0; i < count; i++) {
        want.plain += (double)data_x[i] / (double)count;
        want.loss += (double)(data_x[i] * data_x[i]) / (double)count;
    }
    TRY(j, open_part(j, &ds, &l, count));
    TRY(j, ctn_var_new(&w, j->ctx, "w", CTN_PARAM, CTN_F32, CTN_SCALAR_SHAPE));
    TRY(j, ctn_dist_evaluate(j->c, j->ctx, l, loss_of, w, take, &got));
    CHECK(j, fabs(got.loss - want.loss) < 1e-6 && fabs(got.plain - want.plain) < 1e-6, "%g %g",
          got.loss, got.plain);
    if (count >= j->size) { /* the same from a training that changes nothing */
        TRY(j, ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1e-30)));
        TRY(j, ctn_trainer_new(&tr, o, l, loss_of, w, CTN_OPT(ctn_trainer_opt, .epochs = 2)));
        TRY(j, ctn_dist_trainer(tr, j->c, NULL));
        TRY(j, ctn_trainer_run(tr));
        CHECK(j, ctn_trainer_value(tr, "train/loss", &got.loss), "no value");
        CHECK(j, fabs(got.loss - want.loss) < 1e-6, "train/loss is %g", got.loss);
        ctn_trainer_free(tr);
        ctn_optim_free(o);
    }
    ctn_var_free(w);
    ctn_loader_free(l);
    ctn_dataset_free(ds);
}

static void test_evaluation(void **state)
{
    (void)state;
    for (int size = 1; size <= MOST; size++) {
        on_ranks(size, CTN_MODE_PLANNED, run_evaluate, &(int){DATA});
        on_ranks(size, CTN_MODE_PLANNED, run_evaluate, &(int){2}); /* ranks without samples */
    }
}

static ctn_tensor *loss_fails(void *self, ctn_step *s)
{
    (void)s;
    (void)ctn_fail(CTN_EARG, "%s", (const char *)self);
    return NULL;
}

/* If a rank fails, the others do not wait for its sums. */
static void run_evaluate_fails(job *j)
{
    ctn_dataset *ds = NULL;
    ctn_loader *l = NULL;
    ctn_var *w = NULL;
    evaluated got = {0};
    const bool mine = j->rank == j->size - 1;
    TRY(j, open_part(j, &ds, &l, DATA));
    TRY(j, ctn_var_new(&w, j->ctx, "w", CTN_PARAM, CTN_F32, CTN_SCALAR_SHAPE));
    const ctn_status st =
        mine ? ctn_dist_evaluate(j->c, j->ctx, l, loss_fails, "no such loss", take, &got)
             : ctn_dist_evaluate(j->c, j->ctx, l, loss_of, w, take, &got);
    CHECK(j, st == (mine ? CTN_EARG : CTN_EPEER) && strstr(ctn_error_message(), "no such loss"),
          "%d: %s", st, ctn_error_message());
    ctn_error_clear();
    ctn_var_free(w);
    ctn_loader_free(l);
    ctn_dataset_free(ds);
}

static void test_evaluation_fails(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST; size++)
        on_ranks(size, CTN_MODE_PLANNED, run_evaluate_fails, NULL);
}

/* ---- a stop ---------------------------------------------------------------------------------- */

enum { STEPS = 2 * ((DATA + 2 * BATCH - 1) / (2 * BATCH)) }; /* of two ranks in two epochs */

static ctn_status stop_after(void *self, ctn_trainer *tr)
{
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    if (p.iteration == *(const int *)self) ctn_trainer_stop(tr, "told to");
    return CTN_OK;
}

/* Rank 1 is asked to stop after step `at`. The request is sent with the gradients of the next
 * step. */
static void run_stop(job *j)
{
    const int at = *(const int *)j->arg, steps = at + 1 < STEPS ? at + 1 : STEPS;
    ctn_dataset *ds = NULL;
    ctn_loader *l = NULL;
    ctn_var *w = NULL;
    ctn_trainer *tr = NULL;
    ctn_optim *o = NULL;
    ctn_progress p;
    TRY(j, open_part(j, &ds, &l, DATA));
    TRY(j, ctn_var_new(&w, j->ctx, "w", CTN_PARAM, CTN_F32, CTN_SCALAR_SHAPE));
    TRY(j, ctn_sgd_new(&o, (ctn_vars){1, &w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    TRY(j, ctn_dist_optim(o, j->c, NULL));
    TRY(j, ctn_trainer_new(&tr, o, l, loss_of, w, CTN_OPT(ctn_trainer_opt, .epochs = 2)));
    if (j->rank == 1)
        TRY(j, ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "stop",
                                              .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                              .call = stop_after, .self = j->arg)));
    TRY(j, ctn_dist_trainer(tr, j->c, NULL));
    TRY(j, ctn_trainer_run(tr));
    ctn_trainer_progress(tr, &p);
    CHECK(j, p.iteration == steps, "%d steps, expected %d", (int)p.iteration, steps);
    CHECK(j, p.complete == (steps == STEPS) && (p.total == 1) == (steps == STEPS),
          "after %d of %d steps complete is %d and total %g", steps, STEPS, p.complete, p.total);
    CHECK(j, !ctn_trainer_stopped(tr) == (steps == STEPS), "stopped: %s", ctn_trainer_stopped(tr));
    ctn_trainer_free(tr);
    ctn_optim_free(o);
    ctn_var_free(w);
    ctn_loader_free(l);
    ctn_dataset_free(ds);
}

static void test_stop(void **state)
{
    (void)state;
    for (int at = 1; at <= STEPS; at++) on_ranks(2, CTN_MODE_PLANNED, run_stop, &(int){at});
}

/* ---- an error of one rank ------------------------------------------------------------------- */

static void run_one_fails(job *j)
{
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    float x[4] = {1, 2, 3, 4};
    TRY(j, ctn_linear_new(&net, j->ctx, 4, 1, NULL));
    TRY(j, ctn_sgd_new(&o, ctn_params(net), NULL));
    ctn_status st = ctn_dist_optim(o, j->c, NULL);
    /* On a busy machine, rank 1 may already fail below while another rank is still in this call. */
    const int early = j->rank != 1 && st == CTN_EPEER;
    if (!early) CHECK(j, st == CTN_OK, "%s", ctn_error_message());
    if (!early) {
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *y = ctn_call(net, ctn_input(j->ctx, x, CTN_F32, CTN_SHAPE(1, 4)));
        st = ctn_backward(o, j->rank == 1 ? NULL : ctn_sum(y, CTN_ALL_AXES, 0));
        if (j->rank == 1) CHECK(j, st == CTN_EARG, "backward of nothing gives %d", (int)st);
        else CHECK(j, ctn_optim_step(o) == CTN_EPEER, "step: %s", ctn_error_message());
    }
    if (j->rank != 1) CHECK(j, strstr(ctn_error_message(), "rank 1: "), "%s", ctn_error_message());
    ctn_error_clear();
    (void)ctn_scope_end(j->ctx);
    ctn_error_clear();
    ctn_optim_free(o);
    ctn_module_free(net);
}

static void test_one_fails(void **state)
{
    (void)state;
    on_ranks(3, CTN_MODE_PLANNED, run_one_fails, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test(test_constants),
        cmocka_unit_test(test_second_derivatives),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_vars_and_means),
        cmocka_unit_test(test_evaluation),
        cmocka_unit_test(test_evaluation_fails),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_one_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
