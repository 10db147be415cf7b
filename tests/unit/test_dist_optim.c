/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizers that need norms of single parameters or change the gradients, with threads as ranks:
 * three ranks, sharded or not, train like one rank that has all samples. In f64 they do so to
 * 1e-12, with every algorithm. In f16, means are sent, not sums. Also: what cannot be distributed
 * is refused. Labels: threads
 */
#include "ranks.h"

#include "base/base.h"
#include "optim/optim.h"

enum { STEPS = 8, SAMPLES = 6, IN = 12, HIDDEN = 300, OUT = 3 };

typedef ctn_status (*maker)(ctn_optim **o, ctn_vars v);

typedef struct {
    maker make;
    int shard;
    bool hooks;
    double loss[STEPS];
} train_case;

static ctn_status make_lamb(ctn_optim **o, ctn_vars v)
{
    return ctn_lamb_new(o, v, CTN_OPT(ctn_lamb_opt, .lr = 0.02, .decay = 0.05));
}

static ctn_status make_lars(ctn_optim **o, ctn_vars v)
{
    return ctn_lars_new(o, v, CTN_OPT(ctn_lars_opt, .lr = 0.5, .trust = 0.02, .decay = 0.01));
}

static ctn_status make_bound(ctn_optim **o, ctn_vars v)
{
    return ctn_adabound_new(o, v, CTN_OPT(ctn_adabound_opt, .lr = 0.01, .gamma = 0.1));
}

static ctn_status make_graves(ctn_optim **o, ctn_vars v)
{
    return ctn_rmsprop_new(o, v,
                           CTN_OPT(ctn_rmsprop_opt, .lr = 0.001, .eps = 0.01, .momentum = 0.9,
                                   .centered = 1));
}

static ctn_status make_net(ctn_context *ctx, ctn_module **net)
{
    ctn_module *m[3] = {0};
    CTN_TRY(ctn_linear_new(&m[0], ctx, IN, HIDDEN, NULL)); /* several buckets */
    CTN_TRY(ctn_activation_new(&m[1], ctx, ctn_tanh_at));
    CTN_TRY(ctn_linear_new(&m[2], ctx, HIDDEN, OUT, NULL));
    return ctn_sequential_new(net, ctx, 3, m);
}

/* Steps on samples [first, first + rows); losses are means over these. */
static void run_steps(job *j, ctn_module *net, ctn_optim *o, int first, int rows, double *loss)
{
    float x[SAMPLES * IN];
    int64_t t[SAMPLES];
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < SAMPLES * IN; i++)
            x[i] = (float)ctn__uniform((uint64_t)s, 3, (uint64_t)i);
        for (int i = 0; i < SAMPLES; i++) t[i] = (i + s) % OUT;
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *y =
            ctn_call(net, ctn_input(j->ctx, x + first * IN, CTN_F32, CTN_SHAPE(rows, IN)));
        ctn_tensor *l =
            ctn_softmax_cross_entropy(y, ctn_input(j->ctx, t + first, CTN_I64, CTN_SHAPE(rows)));
        TRY(j, ctn__backward_weighted(CTN_HERE, o, l, (double)rows));
        TRY(j, ctn_optim_step(o));
        loss[s] = ctn_item(l);
        TRY(j, ctn_scope_end(j->ctx));
    }
}

static void run_training(job *j)
{
    train_case *c = j->arg;
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    double loss[STEPS], weight[STEPS];
    const int rows = SAMPLES / j->size;
    TRY(j, make_net(j->ctx, &net));
    TRY(j, c->make(&o, ctn_params(net)));
    if (c->hooks) {
        ctn_optim_set_clip_value(o, 0.02);
        ctn_optim_set_lasso(o, 0.001);
        ctn_optim_set_noise(o, 1e-4, 0.55, 7);
    }
    if (j->size > 1)
        TRY(j, ctn_dist_optim(o, j->c, CTN_OPT(ctn_dist_opt, .shard = c->shard, .bucket = 4096)));
    run_steps(j, net, o, j->rank * rows, rows, loss);
    if (j->why[0]) return;
    for (int s = 0; s < STEPS; s++) weight[s] = rows;
    TRY(j, ctn_dist_mean(j->c, STEPS, loss, weight));
    if (j->rank == 0) memcpy(c->loss, loss, sizeof loss);
    ctn_optim_free(o);
    ctn_module_free(net);
}

static void test_training(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        maker make;
        bool hooks;
    } all[] = {{"lamb", make_lamb, false},
               {"lars", make_lars, false},
               {"graves", make_graves, false},
               {"lamb with hooks", make_lamb, true},
               {"adabound with hooks", make_bound, true}};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        train_case one = {.make = all[k].make, .hooks = all[k].hooks};
        on_ranks(1, CTN_MODE_PLANNED, run_training, &one);
        for (int shard = 0; shard < 2; shard++) {
            train_case many = {.make = all[k].make, .hooks = all[k].hooks, .shard = shard};
            on_ranks(3, CTN_MODE_PLANNED, run_training, &many);
            for (int s = 0; s < STEPS; s++)
                if (!(fabs(many.loss[s] - one.loss[s]) <= 2e-5 * one.loss[s]))
                    fail_msg("%s, shard %d, step %d: %.8g, one rank has %.8g", all[k].name, shard,
                             s, many.loss[s], one.loss[s]);
        }
    }
}

/* ---- f64 ------------------------------------------------------------------------------------- */

enum { WEIGHTS = IN * HIDDEN + HIDDEN + HIDDEN * OUT + OUT };

typedef struct {
    const char *algorithm;
    ctn_dist_opt opt;
    double w[WEIGHTS];
} f64_case;

/* Steps on this rank's samples. The gradients differ by powers of ten, so that sums rounded to f32
 * anywhere would be noticed. */
static void f64_steps(job *j, ctn_context *ctx, ctn_module *net, ctn_optim *o)
{
    double x[SAMPLES * IN];
    int64_t t[SAMPLES];
    const int rows = SAMPLES / j->size, first = j->rank * rows;
    for (int s = 0; s < STEPS; s++) {
        for (int i = 0; i < SAMPLES * IN; i++)
            x[i] = ctn__uniform((uint64_t)s, 3, (uint64_t)i) * pow(10, i % 3);
        for (int i = 0; i < SAMPLES; i++) t[i] = (i + s) % OUT;
        TRY(j, ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(net, ctn_input(ctx, x + first * IN, CTN_F64, CTN_SHAPE(rows, IN)));
        ctn_tensor *l =
            ctn_softmax_cross_entropy(y, ctn_input(ctx, t + first, CTN_I64, CTN_SHAPE(rows)));
        TRY(j, ctn__backward_weighted(CTN_HERE, o, l, (double)rows));
        TRY(j, ctn_optim_step(o));
        TRY(j, ctn_scope_end(ctx));
    }
}

static void run_f64(job *j)
{
    f64_case *c = j->arg;
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *o = NULL;
    TRY(j, ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .seed = 5,
                                         .precision = CTN_PRECISION_F64)));
    TRY(j, make_net(ctx, &net));
    TRY(j, ctn_adam_new(&o, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.01, .eps = 1e-3)));
    if (j->size > 1) {
        TRY(j, ctn_comm_set_algorithm(j->c, c->algorithm));
        TRY(j, ctn_dist_optim(o, j->c, &c->opt));
        ctn_dist_stats stats = {.struct_size = sizeof stats};
        ctn_dist_get_stats(o, &stats);
        CHECK(j, c->opt.bucket == 0 || stats.bucket == c->opt.bucket, "buckets of %lld bytes",
              (long long)stats.bucket);
    }
    f64_steps(j, ctx, net, o);
    if (j->why[0]) return;
    double *w = c->w;
    for (int i = 0; j->rank == 0 && i < ctn_params(net).n; i++) {
        ctn_var *v = ctn_params(net).var[i];
        const size_t n = (size_t)ctn__count(ctn_var_desc(v));
        TRY(j, ctn_var_get(v, w, n * sizeof *w));
        w += n;
    }
    ctn_optim_free(o);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

static void compare_f64(const f64_case *one, const char *algorithm, ctn_dist_opt opt, int size)
{
    static f64_case many;
    many = (f64_case){.algorithm = algorithm, .opt = opt};
    many.opt.struct_size = sizeof opt;
    on_ranks(size, CTN_MODE_PLANNED, run_f64, &many);
    for (int i = 0; i < WEIGHTS; i++)
        if (!(fabs(many.w[i] - one->w[i]) <= 1e-12))
            fail_msg("%s, %d ranks: weight %d is %.17g, one rank has %.17g", algorithm, size, i,
                     many.w[i], one->w[i]);
}

static void test_f64(void **state)
{
    (void)state;
    static f64_case one;
    on_ranks(1, CTN_MODE_PLANNED, run_f64, &one);
    for (int i = 0; ctn_comm_algorithm_name(i); i++) {
        const char *name = ctn_comm_algorithm_name(i);
        compare_f64(&one, name, (ctn_dist_opt){.bucket = 4096}, 2);
        compare_f64(&one, name, (ctn_dist_opt){.bucket = 4096}, 6);
    }
    compare_f64(&one, "auto", (ctn_dist_opt){0}, 2);
    compare_f64(&one, "ring", (ctn_dist_opt){.when = CTN_DIST_AFTER}, 3);
    compare_f64(&one, "ring", (ctn_dist_opt){.when = CTN_DIST_PER_PARAMETER}, 3);
    compare_f64(&one, "ring", (ctn_dist_opt){.bucket = 4096, .defer = CTN_DIST_COMPLETE}, 3);
    wire = CTN_BF16; /* of f32 values only */
    compare_f64(&one, "ring", (ctn_dist_opt){.bucket = 4096}, 2);
    wire = 0;
}

/* ---- gradients in f16 ------------------------------------------------------------------------ */

/* Gradients of 30000 on each rank, whose sum f16 cannot hold. arg: sharded? */
static void run_f16(job *j)
{
    enum { N = 5000 };
    static const float large[N] = {[0] = 30000, [N / 2] = -30000, [N - 1] = 30000};
    static float w[ROOM][N];
    ctn_var *v = NULL;
    ctn_optim *o = NULL;
    const char *const name = "w";
    const int shard = *(const int *)j->arg;
    TRY(j, ctn_var_new(&v, j->ctx, name, CTN_PARAM, CTN_F32, CTN_SHAPE(N)));
    TRY(j, ctn_var_set(v, w[j->rank], sizeof w[j->rank]));
    TRY(j, ctn_sgd_new(&o, (ctn_vars){1, &v, &name}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
    TRY(j, ctn_dist_optim(o, j->c, CTN_OPT(ctn_dist_opt, .shard = shard)));
    for (int i = 0; i < 2; i++) {
        TRY(j, ctn_scope_begin(j->ctx));
        ctn_tensor *x = ctn_input(j->ctx, large, CTN_F32, CTN_SHAPE(N));
        TRY(j, ctn_backward(o, ctn_sum(ctn_mul(ctn_use(v), x), CTN_ALL_AXES, 0)));
        TRY(j, ctn_optim_step(o));
        TRY(j, ctn_scope_end(j->ctx));
    }
    TRY(j, ctn_var_get(v, w[j->rank], sizeof w[j->rank]));
    for (int k = 0; k < N; k++)
        CHECK(j, fabsf(w[j->rank][k] + 2 * large[k]) <= 30, "element %d is %g", k,
              (double)w[j->rank][k]);
    memset(w[j->rank], 0, sizeof w[j->rank]);
    ctn_optim_free(o);
    ctn_var_free(v);
}

static void test_f16(void **state)
{
    (void)state;
    wire = CTN_F16;
    for (int size = 2; size <= MOST; size++)
        for (int shard = 0; shard < 2; shard++) on_ranks(size, modes[shard], run_f16, &shard);
    wire = 0;
}

static void run_refused(job *j)
{
    ctn_var *v = NULL;
    ctn_optim *o = NULL;
    TRY(j, ctn_var_new(&v, j->ctx, "v", CTN_PARAM, CTN_F64, CTN_SHAPE(5)));
    TRY(j, ctn_sgd_new(&o, (ctn_vars){1, &v, NULL}, NULL));
    for (int k = 0; k < 2; k++) {
        CHECK(j,
              ctn_dist_optim(o, j->c, CTN_OPT(ctn_dist_opt, .shard = k, .exact = 1 - k)) ==
                  CTN_EDTYPE,
              "f64: %s", ctn_error_message());
        CHECK(j,
              strstr(ctn_error_message(), k ? "shard is possible with f32 parameters only"
                                            : "exact is possible with f32 parameters only"),
              "%s", ctn_error_message());
        ctn_error_clear();
    }
    CHECK(j, ctn_dist_step_empty(NULL) == CTN_EARG, "no optimizer");
    CHECK(j, ctn_dist_step_empty(o) == CTN_EARG, "not distributed");
    CHECK(j, strstr(ctn_error_message(), "not a distributed optimizer"), "%s", ctn_error_message());
    ctn_error_clear();
    ctn_optim_free(o);
    TRY(j, ctn_lbfgs_new(&o, (ctn_vars){1, &v, NULL}, NULL));
    CHECK(j, ctn_dist_optim(o, j->c, NULL) == CTN_EARG, "lbfgs: %s", ctn_error_message());
    ctn_error_clear();
    ctn_optim_free(o);
    ctn_var_free(v);
}

static void test_refused(void **state)
{
    (void)state;
    on_ranks(2, CTN_MODE_PLANNED, run_refused, NULL);
}

static ctn_status no_values(void *user, const char *name, ctn_dtype type, int ndim,
                            const int64_t *dims, void *data)
{
    (void)name, (void)type, (void)data;
    for (int d = 0; d < ndim; d++) *(int *)user += dims[d] == 0;
    return CTN_OK;
}

/* A pool without elements has no buckets. The address sanitizer sees what is read. */
static void train_nothing(job *j)
{
    for (int shard = 0; shard < 2; shard++) {
        ctn_var *v = NULL;
        ctn_optim *o = NULL;
        int empty = 0;
        ctn_dist_stats stats = {.struct_size = sizeof stats};
        TRY(j, ctn_var_new(&v, j->ctx, "v", CTN_PARAM, CTN_F32, 1, (const int64_t[]){0}));
        TRY(j, ctn_adam_new(&o, (ctn_vars){1, &v, NULL}, NULL));
        TRY(j, ctn_dist_optim(o, j->c, CTN_OPT(ctn_dist_opt, .shard = shard)));
        ctn_dist_get_stats(o, &stats);
        CHECK(j, stats.buckets == 0 && stats.bucket == 0, "%d buckets of %lld bytes",
              (int)stats.buckets, (long long)stats.bucket);
        TRY(j, ctn_dist_values(o));
        TRY(j, ctn_optim_visit(o, no_values, &empty));
        CHECK(j, empty == 2, "%d states without elements", empty);
        ctn_optim_free(o);
        ctn_var_free(v);
    }
}

static void test_nothing(void **state)
{
    (void)state;
    on_ranks(2, CTN_MODE_PLANNED, train_nothing, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_training), cmocka_unit_test(test_f64),     cmocka_unit_test(test_f16),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
