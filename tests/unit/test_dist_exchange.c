/* SPDX-License-Identifier: Apache-2.0
 *
 * What the gradient exchange decides by itself, with threads as ranks: the bucket size together
 * with the algorithm, whether to use the progress thread, measured in the first steps, and the
 * type in which the values of sharded updates come back. Also a failing allocation.
 * Labels: threads
 */
#include "ranks.h"

#include "comm/comm.h"
#include "optim/optim.h"
#include "support/check.h"
#include "support/machine.h"

enum { IN = 96, HIDDEN = 400, OUT = 5, ROWS = 6, STEPS = 14, MOST_VARS = 8, BUCKET = 4096 };

static float noise(int s, int i)
{
    uint32_t h = (uint32_t)(s * 7919 + i) * 2654435761u;
    h ^= h >> 15;
    return (float)(h % 2001) / 1000.0f - 1;
}

static ctn_status make_net(ctn_context *ctx, ctn_module **net)
{
    ctn_module *m[4] = {0};
    CTN_TRY(ctn_linear_new(&m[0], ctx, IN, HIDDEN, NULL));
    CTN_TRY(ctn_layer_norm_new(&m[1], ctx, CTN_SHAPE(HIDDEN), NULL));
    CTN_TRY(ctn_activation_new(&m[2], ctx, ctn_tanh_at));
    CTN_TRY(ctn_linear_new(&m[3], ctx, HIDDEN, OUT, NULL));
    return ctn_sequential_new(net, ctx, 4, m);
}

static ctn_status step(ctn_context *ctx, ctn_module *net, ctn_optim *o, int s, int rank,
                       double *loss)
{
    float x[ROWS * IN];
    int64_t t[ROWS];
    for (int i = 0; i < ROWS * IN; i++) x[i] = noise(s * 16 + rank, i);
    for (int i = 0; i < ROWS; i++) t[i] = (i + s + rank) % OUT;
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(net, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(ROWS, IN)));
    ctn_tensor *l = ctn_softmax_cross_entropy(y, ctn_input(ctx, t, CTN_I64, CTN_SHAPE(ROWS)));
    CTN_TRY(ctn_backward(o, l));
    CTN_TRY(ctn_optim_step(o));
    *loss = ctn_item(l);
    return ctn_scope_end(ctx);
}

/* ---- buckets and progress -------------------------------------------------------------------- */

static void decide(job *j)
{
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    double loss;
    struct {
        int64_t bucket;
        int progress, padding;
        char algorithm[16];
    } mine = {0}, all[MOST];
    ctn_dist_stats d = {.struct_size = sizeof d};
    TRY(j, ctn_comm_set_algorithm(j->c, "auto"));
    TRY(j, make_net(j->ctx, &net));
    TRY(j, ctn_adam_new(&o, ctn_params(net), NULL));
    TRY(j, ctn_dist_optim(o, j->c, NULL));
    for (int s = 0; s < STEPS; s++) {
        TRY(j, step(j->ctx, net, o, s, j->rank, &loss));
        ctn_dist_get_stats(o, &d);
        CHECK(j, s > 10 || d.progress == 0, "decided after %d steps", s + 1);
    }
    CHECK(j, d.progress == CTN_DIST_POLLS || d.progress == CTN_DIST_THREAD, "progress is %d",
          d.progress);
    CHECK(j, d.bucket > 0 && d.bucket <= 1 << 20, "buckets of %lld bytes", (long long)d.bucket);
    mine.bucket = d.bucket;
    mine.progress = d.progress;
    snprintf(mine.algorithm, sizeof mine.algorithm, "%s", ctn_comm_algorithm(j->c));
    TRY(j, ctn_comm_allgather(j->c, &mine, sizeof mine, all));
    for (int r = 0; r < j->size; r++)
        CHECK(j, memcmp(&all[r], &mine, sizeof mine) == 0, "ranks differ: %s, %d", all[r].algorithm,
              all[r].progress);
    ctn_optim_free(o);
    ctn_module_free(net);
}

static void test_decisions(void **state)
{
    (void)state;
    on_ranks(3, CTN_MODE_PLANNED, decide, NULL);
}

static void choose(job *j)
{
    char chosen[64];
    TRY(j, ctn__comm_choose(j->c, 1 << 24, "ring, 16 MB", chosen, sizeof chosen));
    CHECK(j, strcmp(chosen, "ring, 16 MB") == 0 && j->c->bucket == 16 << 20, "known: %s", chosen);
    static const char *const useless[] = {"ring", "ring, 0 MB", "bell, 4 MB", ""};
    for (size_t i = 0; i < sizeof useless / sizeof *useless; i++) {
        int mb = 0;
        const char *told = j->rank == 0 ? useless[i] : "flat, 1 MB"; /* rank 0 decides */
        TRY(j, ctn__comm_choose(j->c, 3 << 20, told, chosen, sizeof chosen));
        CHECK(j, sscanf(chosen, "%*[^,], %d MB", &mb) == 1 && (mb == 1 || mb == 4),
              "of '%s' became '%s'", useless[i], chosen);
    }
}

static void test_known_choices(void **state)
{
    (void)state;
    on_ranks(2, CTN_MODE_PLANNED, choose, NULL);
}

/* ---- values in 16 bits ---------------------------------------------------------------------- */

typedef struct {
    ctn_context *ctx;
    ctn_module *net, *unused; /* the optimizer has the parameters of both */
    ctn_optim *o;
    uint64_t sent; /* in the last step */
} training;

static bool lamb; /* LAMB with decays instead of Adam */

static ctn_status begin_training(training *t, const job *j, ctn_precision policy, int shard,
                                 int unused, int bucket)
{
    CTN_TRY(ctn_context_new(&t->ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5,
                                             .precision = policy)));
    ctn_var *var[MOST_VARS];
    const char *name[MOST_VARS];
    ctn_vars all = {.var = var, .name = name};
    CTN_TRY(make_net(t->ctx, &t->net));
    if (unused > 0) CTN_TRY(ctn_linear_new(&t->unused, t->ctx, 10, unused, NULL));
    for (int k = 0; k < 1 + (unused > 0); k++) {
        const ctn_vars p = ctn_params(k ? t->unused : t->net);
        for (int i = 0; i < p.n; i++, all.n++) {
            var[all.n] = p.var[i];
            name[all.n] = k ? i ? "unused.bias" : "unused.weight" : p.name[i];
        }
    }
    const ctn_status made =
        lamb ? ctn_lamb_new(&t->o, all, CTN_OPT(ctn_lamb_opt, .lr = 0.1, .decay = 0.1))
             : ctn_adam_new(&t->o, all, CTN_OPT(ctn_adam_opt, .lr = 0.01));
    CTN_TRY(made);
    if (lamb) ctn_optim_set_lasso(t->o, 1e-3);
    return ctn_dist_optim(t->o, j->c,
                          CTN_OPT(ctn_dist_opt, .shard = shard, .bucket = bucket,
                                  .progress = CTN_DIST_POLLS));
}

static ctn_status train(training *t, const job *j, int s, double *loss)
{
    ctn_comm_stats before = {.struct_size = sizeof before}, after = before;
    ctn_comm_get_stats(j->c, &before);
    CTN_TRY(step(t->ctx, t->net, t->o, s, j->rank, loss));
    const ctn_vars p = ctn_params(t->net);
    float *v = malloc((size_t)IN * HIDDEN * sizeof *v);
    /* waits for all values */
    ctn_status st = ctn_var_get(p.var[0], v, (size_t)IN * HIDDEN * sizeof *v);
    free(v);
    ctn_comm_get_stats(j->c, &after);
    t->sent = after.sent - before.sent;
    return st;
}

static void end_training(training *t)
{
    ctn_optim_free(t->o);
    ctn_module_free(t->net);
    ctn_module_free(t->unused);
    ctn_context_free(t->ctx);
}

static bool is_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0xffff) == 0;
}

/* The largest difference between the parameters of both, and how many of b's do not fit in 16
 * bits. */
static double apart(const training *a, const training *b, int64_t *exact, int ndim)
{
    const ctn_vars p = ctn_params(a->net), q = ctn_params(b->net);
    double most = 0;
    *exact = 0;
    for (int i = 0; i < p.n; i++) {
        const int n = p.var[i]->d.ndim;
        const int64_t count = ctn__count(&p.var[i]->d);
        float *x = malloc((size_t)count * sizeof *x), *y = malloc((size_t)count * sizeof *y);
        if (ctn_var_get(p.var[i], x, (size_t)count * sizeof *x) < 0 ||
            ctn_var_get(q.var[i], y, (size_t)count * sizeof *y) < 0)
            most = INFINITY;
        for (int64_t k = 0; k < count; k++) {
            if (fabs((double)(x[k] - y[k])) > most) most = fabs((double)(x[k] - y[k]));
            *exact += n >= ndim && !is_bf16(y[k]);
        }
        free(x);
        free(y);
    }
    return most;
}

static ctn_status set_first_bias(const training *t, float value)
{
    float v[HIDDEN];
    for (int i = 0; i < HIDDEN; i++) v[i] = value + 1e-4f * (float)i;
    return ctn_var_set(ctn_params(t->net).var[1], v, sizeof v);
}

static void compare(job *j)
{
    training whole = {0}, f32 = {0}, low = {0};
    double want, got;
    int64_t exact;
    /* sums in the same order as short blocks */
    TRY(j, ctn_comm_set_algorithm(j->c, "rabenseifner"));
    TRY(j, begin_training(&whole, j, CTN_PRECISION_BF16, 0, 0, BUCKET));
    TRY(j, begin_training(&f32, j, CTN_PRECISION_F32, 1, 0, BUCKET));
    TRY(j, begin_training(&low, j, CTN_PRECISION_BF16, 1, 0, BUCKET));
    for (int s = 0; s < 12; s++) {
        TRY(j, train(&f32, j, s, &want));
        TRY(j, train(&whole, j, s, &want));
        TRY(j, train(&low, j, s, &got));
        CHECK(j, fabs(got - want) <= 1e-6 * fabs(want), "step %d: loss %.9g, unsharded %.9g", s,
              got, want);
        (void)apart(&whole, &low, &exact, 2);
        CHECK(j, exact == 0, "step %d: %lld weights have more than 16 bits", s, (long long)exact);
        if (s % 4 != 3) continue;
        TRY(j, ctn_dist_values(low.o)); /* as before saving */
        const double far = apart(&whole, &low, &exact, 1);
        CHECK(j, far <= 1e-6 && exact > 1000, "step %d: f32 values are %g apart", s, far);
        TRY(j, set_first_bias(&whole, 0.1f)); /* as after loading */
        TRY(j, set_first_bias(&low, 0.1f));
    }
    int64_t sent[2] = {(int64_t)low.sent, (int64_t)f32.sent}, theirs[2]; /* sent by all ranks */
    TRY(j, ctn__comm_sum(j->c, sent, 2, CTN_I64, theirs));
    CHECK(j, (double)sent[0] < 0.8 * (double)sent[1], "%lld bytes sent, in f32 %lld",
          (long long)sent[0], (long long)sent[1]);
    end_training(&whole);
    end_training(&f32);
    end_training(&low);
}

static void test_low_values(void **state)
{
    (void)state;
    if (!test_has_bf16()) skip();
    for (int size = 2; size <= MOST; size++) on_ranks(size, CTN_MODE_PLANNED, compare, NULL);
}

/* Norms and decays before the update must use the f32 values too. */
static void test_low_values_lamb(void **state)
{
    (void)state;
    if (!test_has_bf16()) skip();
    lamb = true;
    for (int size = 2; size <= MOST; size++) on_ranks(size, CTN_MODE_PLANNED, compare, NULL);
    lamb = false;
}

/* ---- deferred updates ------------------------------------------------------------------------ */

static ctn_status nothing(void *user, const char *name, ctn_dtype type, int ndim,
                          const int64_t *dim, void *data)
{
    (void)user, (void)name, (void)type, (void)ndim, (void)dim, (void)data;
    return CTN_OK;
}

static ctn_tensor *forward(const training *t, int s)
{
    static _Thread_local float x[ROWS * IN];
    for (int i = 0; i < ROWS * IN; i++) x[i] = noise(s, i);
    return ctn_call(t->net, ctn_input(t->ctx, x, CTN_F32, CTN_SHAPE(ROWS, IN)));
}

static ctn_status odd_step(training *t, int s, double *loss)
{
    const ctn_vars p = ctn_params(t->net);
    ctn_var *last = p.var[p.n - 1];
    float g[OUT];
    switch (s % 6) {
    case 0: ctn_var_set_trainable(last, s % 12 != 0); return CTN_OK;
    case 1: /* gradients that the next step adds to */
        if (s % 5 == 3) return CTN_OK;
        CTN_TRY(ctn_scope_begin(t->ctx));
        CTN_TRY(ctn_backward(t->o, ctn_mean(forward(t, s), CTN_ALL_AXES, 0)));
        CTN_TRY(ctn_scope_end(t->ctx));
        return ctn_var_grad(last, g, sizeof g);
    case 2: return ctn_optim_visit(t->o, nothing, NULL);
    case 3: /* forward only */
        CTN_TRY(ctn_scope_begin(t->ctx));
        *loss += ctn_item(ctn_sum(forward(t, s), CTN_ALL_AXES, 0));
        return ctn_scope_end(t->ctx);
    case 4: ctn_optim_set_lr(t->o, 0.01 / (s + 1)); return CTN_OK;
    default: return CTN_OK;
    }
}

static ctn_status maybe_empty(training *t, const job *j, int s, double *loss)
{
    if (s % 5 != 4 || j->rank != s % j->size) return step(t->ctx, t->net, t->o, s, j->rank, loss);
    CTN_TRY(ctn_scope_begin(t->ctx));
    CTN_TRY(ctn_dist_step_empty(t->o));
    return ctn_scope_end(t->ctx);
}

typedef struct {
    int unused;
    bool cut_later; /* the first step cuts other buckets */
} held_case;

static int64_t in_flight(const training *t)
{
    return t->o->pool->count - ctn__exchange_rest(t->o->pool->exchange);
}

/* One waits for all sums, because it clips (at a norm that is never reached). The other waits
 * only for what the forward pass needs. Both give the same bits. */
static void held_back(job *j)
{
    training all = {0}, some = {0};
    const held_case *c = j->arg;
    double want = 0, got = 0;
    int64_t exact;
    TRY(j, begin_training(&all, j, CTN_PRECISION_F32, 0, c->unused, BUCKET));
    TRY(j, begin_training(&some, j, CTN_PRECISION_F32, 0, c->unused, c->cut_later ? 0 : BUCKET));
    ctn_optim_set_clip(all.o, 1e30);
    TRY(j, odd_step(&all, 3, &want)); /* plans from before the first step */
    TRY(j, odd_step(&some, 3, &got));
    if (c->cut_later) j->c->bucket = BUCKET; /* as if measured */
    for (int s = 0; s < 30; s++) {
        TRY(j, maybe_empty(&all, j, s, &want));
        TRY(j, maybe_empty(&some, j, s, &got));
        CHECK(j, in_flight(&all) == 0, "step %d: clipped before all sums had arrived", s);
        CHECK(j, in_flight(&some) > 0, "step %d: nothing is held back", s);
        TRY(j, odd_step(&all, s, &want));
        TRY(j, odd_step(&some, s, &got));
        CHECK(j, want == got, "step %d: loss %.9g, %.9g without waiting", s, want, got);
        if (s % 4 == 0)
            CHECK(j, apart(&all, &some, &exact, 1) == 0, "step %d: parameters differ", s);
    }
    CHECK(j, apart(&all, &some, &exact, 1) == 0, "parameters differ");
    end_training(&all);
    TRY(j, step(some.ctx, some.net, some.o, 30, j->rank, &got));
    end_training(&some); /* with updates in flight */
}

static void test_held_back(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST; size++)
        for (int k = 0; k < 4; k++)
            on_ranks(size, CTN_MODE_PLANNED, held_back, &(held_case){1000 * (k % 3), k == 3});
}

/* ---- a failing allocation -------------------------------------------------------------------- */

static ctn_status open_exchange(void)
{
    float w[8] = {0}, g[8] = {0};
    ctn_comm *c = NULL;
    ctn__exchange *x = NULL;
    CTN_TRY(ctn_comm_loopback(&c, 1, NULL));
    const ctn_status st = ctn__exchange_new(&x, c, w, g, 8,
                                            &(ctn__exchange_opt){.type = CTN_F32,
                                                                 .wire = CTN_F32,
                                                                 .progress = CTN_DIST_POLLS});
    assert_false(ctn__exchange_free(x));
    ctn_comm_free(c);
    return st;
}

static void test_no_memory(void **state)
{
    failing_once memory = {0};
    (void)state;
    OK(ctn_set_allocator(&(ctn_allocator){failing_once_alloc, failing_once_release, &memory}));
    do {
        memory.fail_at++;
        memory.calls = 0;
        const ctn_status st = open_exchange();
        assert_int_equal(memory.live, 0);
        if (memory.calls < memory.fail_at) OK(st);
        else assert_fails(st, CTN_ENOMEM, "");
    } while (memory.calls >= memory.fail_at);
    OK(ctn_set_allocator(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decisions),  cmocka_unit_test(test_known_choices),
        cmocka_unit_test(test_low_values), cmocka_unit_test(test_low_values_lamb),
        cmocka_unit_test(test_held_back),  cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
