/* SPDX-License-Identifier: Apache-2.0
 *
 * What a distributed step leaves in flight, and everything that reads or writes it: plans made
 * before the first step, reads, assigns, gradients that other kernels still need. Each case must
 * be bitwise equal to a run with CTN_DIST_AFTER, where nothing is in flight. Random programs do
 * the same on a larger scale (tests/random).
 * Labels: threads
 */
#include "ranks.h"

#include "comm/comm.h"

enum { LAYERS = 6, WIDTH = 600, ROWS = 8 };

static float noise(int s, int i)
{
    uint32_t h = (uint32_t)(s * 7919 + i) * 2654435761u;
    h ^= h >> 15;
    return (float)(h % 2001) / 1000.0f - 1;
}

/* A chain of square layers, its optimizer, and its data. */
typedef struct {
    ctn_context *ctx;
    ctn_var *w[LAYERS];
    ctn_optim *o;
    int64_t width;
    float *x, *t; /* (ROWS, width) */
} net;

static ctn_status net_new(net *n, const job *j, int64_t width, const ctn_dist_opt *opt)
{
    *n = (net){.width = width};
    const size_t bytes = (size_t)(ROWS * width) * sizeof(float);
    n->x = malloc(bytes);
    n->t = malloc(bytes);
    float *w = malloc((size_t)(width * width) * sizeof *w);
    CTN_TRY(ctn_context_new(&n->ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5)));
    for (int i = 0; i < LAYERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "w%d", i);
        CTN_TRY(ctn_var_new(&n->w[i], n->ctx, name, CTN_PARAM, CTN_F32, CTN_SHAPE(width, width)));
        for (int k = 0; k < width * width; k++) w[k] = 0.05f * noise(i + 1, k);
        CTN_TRY(ctn_var_set(n->w[i], w, (size_t)(width * width) * sizeof *w));
    }
    free(w);
    CTN_TRY(ctn_sgd_new(&n->o, (ctn_vars){LAYERS, n->w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.0005)));
    return ctn_dist_optim(n->o, j->c, opt);
}

static void net_free(net *n)
{
    ctn_optim_free(n->o);
    for (int i = 0; i < LAYERS; i++) ctn_var_free(n->w[i]);
    ctn_context_free(n->ctx);
    free(n->x);
    free(n->t);
}

static ctn_tensor *forward(net *n, int seed)
{
    for (int i = 0; i < ROWS * n->width; i++) {
        n->x[i] = noise(seed, i);
        n->t[i] = noise(seed + 7, i);
    }
    ctn_tensor *h = ctn_input(n->ctx, n->x, CTN_F32, CTN_SHAPE(ROWS, n->width));
    for (int i = 0; i < LAYERS; i++) h = ctn_tanh(ctn_linear(h, ctn_use(n->w[i]), NULL));
    return ctn_mean_squared_error(h, ctn_input(n->ctx, n->t, CTN_F32, CTN_SHAPE(ROWS, n->width)),
                                  CTN_SUM);
}

/* Contributions in separate scopes, then the step. */
static ctn_status step(net *n, int seed, int contributions)
{
    for (int k = 0; k < contributions; k++) {
        CTN_TRY(ctn_scope_begin(n->ctx));
        CTN_TRY(ctn_backward(n->o, forward(n, seed + 13 * k)));
        if (k == contributions - 1) CTN_TRY(ctn_optim_step(n->o));
        CTN_TRY(ctn_scope_end(n->ctx));
    }
    return CTN_OK;
}

static ctn_status evaluate(net *n, double *loss)
{
    CTN_TRY(ctn_scope_begin(n->ctx));
    *loss = ctn_item(forward(n, 99));
    return ctn_scope_end(n->ctx);
}

/* The number of elements that differ; -1: an error. */
static int64_t apart(net *a, net *b)
{
    const size_t bytes = (size_t)(a->width * a->width) * sizeof(float);
    float *x = malloc(bytes), *y = malloc(bytes);
    int64_t n = 0;
    for (int i = 0; i < LAYERS && n >= 0; i++) {
        if (ctn_var_get(a->w[i], x, bytes) < 0 || ctn_var_get(b->w[i], y, bytes) < 0) n = -1;
        for (int k = 0; n >= 0 && k < a->width * a->width; k++) n += x[k] != y[k];
    }
    free(x);
    free(y);
    return n;
}

/* ---- plans from before the first step ------------------------------------------------------- */

static const ctn_dist_opt after = {.struct_size = sizeof after, .when = CTN_DIST_AFTER};

/* The first step cuts the pool into new buckets, after the plans of evaluation and of the first
 * contribution were built: as `auto` measures, or (arg) into short ones, as if that had been
 * measured. */
static void plans_before_the_first_step(job *j)
{
    net plain, n;
    double want = 0, got = 0;
    /* With ring. Sums of two ranks are the same with any algorithm. */
    TRY(j, net_new(&plain, j, WIDTH, &after));
    if (!j->arg) TRY(j, ctn_comm_set_algorithm(j->c, "auto"));
    TRY(j, net_new(&n, j, WIDTH, CTN_OPT(ctn_dist_opt, .progress = CTN_DIST_POLLS)));
    TRY(j, evaluate(&plain, &want));
    TRY(j, evaluate(&n, &got));
    if (j->arg) j->c->bucket = 65536;
    for (int s = 0; s < 4; s++) {
        TRY(j, step(&n, 100 * s + j->rank, 2));
        TRY(j, step(&plain, 100 * s + j->rank, 2));
        TRY(j, evaluate(&n, &got));
        TRY(j, evaluate(&plain, &want));
        CHECK(j, want == got, "step %d: loss %.9g, %.9g where nothing is in flight", s, got, want);
    }
    CHECK(j, apart(&plain, &n) == 0, "parameters differ");
    net_free(&n);
    net_free(&plain);
}

static void test_plans_before_the_first_step(void **state)
{
    (void)state;
    on_ranks(2, CTN_MODE_PLANNED, plans_before_the_first_step, NULL);
    on_ranks(2, CTN_MODE_PLANNED, plans_before_the_first_step, "short");
}

/* ---- gradients that other kernels read ------------------------------------------------------- */

/* The gradient of `a` is also the gradient of h, with which the backward pass continues. */
static ctn_status shared_gradient(net *n, ctn_var *a, int seed)
{
    CTN_TRY(ctn_scope_begin(n->ctx));
    for (int i = 0; i < ROWS * n->width; i++) n->x[i] = noise(seed, i);
    ctn_tensor *h = ctn_input(n->ctx, n->x, CTN_F32, CTN_SHAPE(ROWS, n->width));
    for (int i = 0; i < LAYERS; i++) {
        h = ctn_linear(h, ctn_use(n->w[i]), NULL);
        h = ctn_tanh(i == LAYERS - 2 ? ctn_add(h, ctn_use(a)) : h);
    }
    CTN_TRY(ctn_backward(n->o, ctn_sum(ctn_square(h), CTN_ALL_AXES, 0)));
    CTN_TRY(ctn_optim_step(n->o));
    return ctn_scope_end(n->ctx);
}

static ctn_status with_extra(net *n, ctn_var **a, const job *j, const ctn_dist_opt *opt)
{
    ctn_var *all[LAYERS + 1];
    CTN_TRY(net_new(n, j, 128, &after));
    ctn_optim_free(n->o);
    n->o = NULL;
    CTN_TRY(ctn_var_new(a, n->ctx, "a", CTN_PARAM, CTN_F32, CTN_SHAPE(ROWS, 128)));
    for (int i = 0; i <= LAYERS; i++)
        all[i] = i < LAYERS - 1 ? n->w[i] : i == LAYERS ? n->w[LAYERS - 1] : *a;
    CTN_TRY(
        ctn_sgd_new(&n->o, (ctn_vars){LAYERS + 1, all, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 0.001)));
    return ctn_dist_optim(n->o, j->c, opt);
}

static void gradient_read_in_flight(job *j)
{
    net plain, n;
    ctn_var *a = NULL, *b = NULL;
    const ctn_dist_opt bucketed = {.struct_size = sizeof bucketed,
                                   .bucket = 4096,
                                   .progress = CTN_DIST_POLLS};
    const ctn_dist_opt waits = {.struct_size = sizeof waits,
                                .bucket = 4096,
                                .when = CTN_DIST_AFTER};
    TRY(j, with_extra(&plain, &a, j, &waits));
    TRY(j, with_extra(&n, &b, j, &bucketed));
    for (int s = 0; s < 4; s++) {
        TRY(j, shared_gradient(&n, b, 10 * s + j->rank));
        TRY(j, shared_gradient(&plain, a, 10 * s + j->rank));
    }
    CHECK(j, apart(&plain, &n) == 0, "parameters differ");
    ctn_var_free(a);
    ctn_var_free(b);
    net_free(&n);
    net_free(&plain);
}

static void test_gradient_read_in_flight(void **state)
{
    (void)state;
    for (int size = 2; size <= 4; size += 2)
        on_ranks(size, CTN_MODE_PLANNED, gradient_read_in_flight, NULL);
}

/* ---- reads and writes after a step ---------------------------------------------------------- */

static ctn_status read_leaf(net *n, int i, float *to)
{
    CTN_TRY(ctn_scope_begin(n->ctx));
    CTN_TRY(ctn_read(ctn_use(n->w[i]), to, (size_t)(n->width * n->width) * sizeof *to));
    return ctn_scope_end(n->ctx);
}

static ctn_status assign_ones(net *n, int i)
{
    CTN_TRY(ctn_scope_begin(n->ctx));
    CTN_TRY(ctn_assign(n->w[i], ctn_full(n->ctx, 1, CTN_F32, CTN_SHAPE(n->width, n->width))));
    return ctn_scope_end(n->ctx);
}

static void reads_and_writes(job *j)
{
    enum { W = 128 };
    net n;
    const int last = LAYERS - 1, *shard = j->arg;
    float *a = malloc((size_t)W * W * sizeof *a), *b = malloc((size_t)W * W * sizeof *b);
    int wrong = 0;
    TRY(j, net_new(&n, j, W,
                   CTN_OPT(ctn_dist_opt, .bucket = 4096, .shard = *shard,
                           .progress = CTN_DIST_POLLS)));
    for (int s = 0; s < 4; s++) {
        TRY(j, step(&n, 10 * s + j->rank, 1));
        TRY(j, read_leaf(&n, last, a)); /* before anything else reads */
        TRY(j, ctn_var_get(n.w[last], b, (size_t)W * W * sizeof *b));
        for (int k = 0; k < W * W; k++) wrong += a[k] != b[k];
        CHECK(j, wrong == 0, "step %d: %d outdated values were read", s, wrong);
        TRY(j, step(&n, 10 * s + 5 + j->rank, 1));
        TRY(j, assign_ones(&n, last));
        TRY(j, ctn_var_get(n.w[last], b, (size_t)W * W * sizeof *b));
        for (int k = 0; k < W * W; k++) wrong += b[k] != 1;
        CHECK(j, wrong == 0, "step %d: %d elements are not what was assigned", s, wrong);
    }
    free(a);
    free(b);
    net_free(&n);
}

static void test_reads_and_writes(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST; size++)
        for (int shard = 0; shard < 2; shard++)
            on_ranks(size, CTN_MODE_PLANNED, reads_and_writes, &shard);
}

/* ---- another algorithm ---------------------------------------------------------------------- */

static void algorithm_changes(job *j)
{
    net plain, n;
    TRY(j, net_new(&plain, j, 64, &after));
    TRY(j, net_new(&n, j, 64, CTN_OPT(ctn_dist_opt, .bucket = 4096, .progress = CTN_DIST_POLLS)));
    static const char *const names[] = {"ring", "auto", "rsap", "auto", "hierarchical"};
    for (int s = 0; s < 5; s++) {
        TRY(j, ctn_comm_set_algorithm(j->c, names[s]));
        TRY(j, step(&n, 10 * s + j->rank, 1));
        TRY(j, step(&plain, 10 * s + j->rank, 1));
    }
    CHECK(j, apart(&plain, &n) == 0, "parameters differ");
    net_free(&n);
    net_free(&plain);
}

static void test_algorithm_changes(void **state)
{
    (void)state;
    on_ranks(2, CTN_MODE_PLANNED, algorithm_changes, NULL);
}

/* ---- variables that are freed first ---------------------------------------------------------- */

static void variables_go_first(job *j)
{
    net n;
    TRY(j, net_new(&n, j, 64, CTN_OPT(ctn_dist_opt, .bucket = 4096, .progress = CTN_DIST_POLLS)));
    TRY(j, step(&n, j->rank, 1));
    for (int i = 0; i < LAYERS; i++) {
        ctn_var_free(n.w[i]);
        n.w[i] = NULL;
    }
    net_free(&n);
}

static void test_variables_go_first(void **state)
{
    (void)state;
    on_ranks(3, CTN_MODE_PLANNED, variables_go_first, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans_before_the_first_step),
        cmocka_unit_test(test_gradient_read_in_flight),
        cmocka_unit_test(test_reads_and_writes),
        cmocka_unit_test(test_algorithm_changes),
        cmocka_unit_test(test_variables_go_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
