/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers of a step that ranks and batches share (rule 14). For every random op: rows of
 * samples draw what one rank with all samples draws, wherever they are computed; everything else
 * draws different numbers in each part. Then whole trainings: any number of ranks and of batches
 * per step ends with the weights of one rank, with evaluations in between. Labels: threads
 */
#include "ops/ops.h"

#include "ranks.h"

#include <catena/datasets.h>
#include <catena/log.h>
#include <catena/train.h>

/* ---- one op ---------------------------------------------------------------------------------- */

enum { N = 12, ELEMENTS = 3 * N * 1100 };

/* A random result of `lines` lines. */
typedef struct {
    const char *name;
    ctn_tensor *(*draw)(ctn_context *ctx, int64_t lines);
    int64_t line; /* elements of a line */
    int grad;     /* the gradient shows the numbers, too */
} random_op;

static double ones[ELEMENTS];

static ctn_tensor *input(ctn_context *ctx, ctn_dtype type, int ndim, const int64_t *dims)
{
    for (int i = 0; i < ELEMENTS; i++) ones[i] = 1;
    return ctn_with_grad(ctn_cast(ctn_input(ctx, ones, CTN_F64, ndim, dims), type));
}

static ctn_tensor *dropout(ctn_context *ctx, int64_t n)
{
    return ctn_dropout(input(ctx, CTN_F32, CTN_SHAPE(n, 7, 3)), 0.5);
}
static ctn_tensor *dropout_f64(ctn_context *ctx, int64_t n)
{
    return ctn_dropout(input(ctx, CTN_F64, CTN_SHAPE(n, 1, 1, 1100)), 0.5);
}
static ctn_tensor *dropout_one(ctn_context *ctx, int64_t n)
{
    return ctn_dropout(input(ctx, CTN_F32, CTN_SHAPE(n)), 0.5);
}
static ctn_tensor *spatial_dropout(ctn_context *ctx, int64_t n)
{
    return ctn_spatial_dropout(input(ctx, CTN_F32, CTN_SHAPE(n, 20, 3)), 0.5);
}
static ctn_tensor *normal(ctn_context *ctx, int64_t n)
{
    return ctn_random_normal(ctx, 0, 1, CTN_F32, CTN_SHAPE(n, 5));
}
static ctn_tensor *normal_f64(ctn_context *ctx, int64_t n)
{
    return ctn_random_normal(ctx, 0, 1, CTN_F64, CTN_SHAPE(n, 515));
}
static ctn_tensor *uniform(ctn_context *ctx, int64_t n)
{
    return ctn_random_uniform(ctx, 0, 1, CTN_F32, CTN_SHAPE(n, 1025));
}
static ctn_tensor *uniform_f64(ctn_context *ctx, int64_t n)
{
    return ctn_random_uniform(ctx, 0, 1, CTN_F64, CTN_SHAPE(n, 3));
}
static ctn_tensor *gaussian(ctn_context *ctx, int64_t n)
{
    ctn_tensor *x = input(ctx, CTN_F32, CTN_SHAPE(n, 9));
    return ctn_gaussian(x, x);
}
static ctn_tensor *rrelu(ctn_context *ctx, int64_t n)
{
    return ctn_rrelu(ctn_neg(input(ctx, CTN_F32, CTN_SHAPE(n, 9))), 0.1, 0.4);
}
static ctn_tensor *gumbel(ctn_context *ctx, int64_t n)
{
    return ctn_gumbel_softmax(input(ctx, CTN_F32, CTN_SHAPE(n, 9)), 0.5, 1);
}
/* Values with a large last column, so that each probability shows in the result. */
static ctn_tensor *attend(ctn_context *ctx, ctn_dtype type, int64_t n, int composed)
{
    enum { HEADS = 2, T = 5, E = 4 };
    ctn_tensor *x = input(ctx, type, CTN_SHAPE(n, HEADS, T, E));
    return ctn_attention(x, x, x, NULL,
                         CTN_OPT(ctn_attention_opt, .dropout = 0.5, .composed = composed));
}
static ctn_tensor *attention(ctn_context *ctx, int64_t n)
{
    return attend(ctx, CTN_F32, n, 0);
}
static ctn_tensor *attention_composed(ctn_context *ctx, int64_t n)
{
    return attend(ctx, CTN_F64, n, 1);
}

static const random_op random_ops[] = {
    {"dropout", dropout, .line = 21, .grad = 1},
    {"dropout, f64", dropout_f64, .line = 1100, .grad = 1},
    {"dropout, no columns", dropout_one, .line = 1, .grad = 1},
    {"spatial_dropout", spatial_dropout, .line = 60, .grad = 1},
    {"random_normal", normal, .line = 5},
    {"random_normal, f64", normal_f64, .line = 515},
    {"random_uniform", uniform, .line = 1025},
    {"random_uniform, f64", uniform_f64, .line = 3},
    {"gaussian", gaussian, .line = 9},
    {"rrelu", rrelu, .line = 9, .grad = 1},
    {"gumbel_softmax", gumbel, .line = 9},
    {"attention_dropout", attention, .line = 40, .grad = 1},
    {"attention, composed", attention_composed, .line = 40, .grad = 1},
};
enum { OPS = sizeof random_ops / sizeof *random_ops };

static double as_f64(ctn_dtype type, const void *data, int64_t i)
{
    return type == CTN_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* The values of a result with its gradient, if asked for, added 100 times to tell them apart. */
static void draw(ctn_context *ctx, const random_op *op, int64_t lines, const ctn_share *share,
                 double *out)
{
    static char data[2][ELEMENTS * sizeof(double)];
    const ctn_context_state at = {.seed = 5, .step = 9};
    OK(ctn_context_set_state(ctx, &at));
    OK(ctn_context_set_share(ctx, share));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *first = ctn_random_uniform(ctx, 0, 1, CTN_F32, CTN_SCALAR_SHAPE), *y, *g = NULL;
    float unused;
    OK(ctn_read(first, &unused, sizeof unused)); /* the op is not the first of its step */
    y = op->draw(ctx, lines);
    assert_non_null(y);
    const ctn_dtype type = ctn_dtype_of(y);
    const size_t bytes = (size_t)(lines * op->line) * ctn_dtype_size(type);
    if (op->grad) g = ctn_square(y); /* so that the gradient is not a constant */
    OK(ctn_read(y, data[0], bytes));
    if (g) OK(ctn_read(g, data[1], bytes));
    for (int64_t i = 0; i < lines * op->line; i++)
        out[i] = as_f64(type, data[0], i) + (g ? 100 * as_f64(type, data[1], i) : 0);
    OK(ctn_scope_end(ctx));
}

static ctn_context *context(ctn_mode mode)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .mode = mode)));
    return ctx;
}

/* `lines` lines for each of N rows, of which each part has every `every`-th one. */
static void check_parts(ctn_context *ctx, const random_op *op, int64_t lines, const double *whole,
                        int64_t every)
{
    static double part[ELEMENTS];
    for (int64_t r = 0; r < every; r++) {
        const ctn_share s = {.part = (uint64_t)r,
                             .rows = (N - r - 1) / every + 1,
                             .first = r,
                             .every = every,
                             .total = N};
        draw(ctx, op, s.rows * lines, &s, part);
        for (int64_t i = 0; i < s.rows; i++)
            if (memcmp(part + i * lines * op->line, whole + (r + i * every) * lines * op->line,
                       (size_t)(lines * op->line) * sizeof *part) != 0)
                fail_msg("%s: row %d of part %d of %d, %d lines, differs", op->name, (int)i, (int)r,
                         (int)every, (int)lines);
    }
}

/* Parts of consecutive rows, as the batches of a step are on one rank. */
static void check_batches(ctn_context *ctx, const random_op *op, const double *whole)
{
    static double part[ELEMENTS];
    for (int64_t first = 0, n = 1; first < N; first += n, n = first == 1 ? 7 : N - first) {
        const ctn_share s = {
            .part = (uint64_t)first, .rows = n, .first = first, .every = 1, .total = N};
        draw(ctx, op, n, &s, part);
        assert_memory_equal(part, whole + first * op->line, (size_t)(n * op->line) * sizeof *part);
    }
}

static void samples(void **state)
{
    static double whole[ELEMENTS];
    (void)state;
    for (int m = 0; m < 2; m++)
        for (int k = 0; k < OPS; k++) {
            const random_op *op = &random_ops[k];
            const ctn_share all = {.rows = N, .every = 1, .total = N};
            ctn_context *ctx = context(modes[m]);
            draw(ctx, op, N, NULL, whole); /* as without ranks and a trainer */
            for (int64_t every = 1; every < 6; every++) check_parts(ctx, op, 1, whole, every);
            check_batches(ctx, op, whole);
            draw(ctx, op, 3 * N, &all, whole); /* several lines for each sample */
            for (int64_t every = 1; every < 6; every++) check_parts(ctx, op, 3, whole, every);
            ctn_context_free(ctx);
        }
}

static int64_t common(const double *x, const double *y, int64_t n)
{
    int64_t same = 0;
    for (int64_t i = 0; i < n; i++) same += x[i] == y[i];
    return same;
}

/* Results that belong to no sample: 25 lines for 12 rows, or unknown rows. */
static void others(void **state)
{
    static double whole[ELEMENTS], part[2][ELEMENTS];
    (void)state;
    enum { LINES = 25 };
    for (int k = 0; k < OPS; k++) {
        const random_op *op = &random_ops[k];
        const int64_t n = LINES * op->line;
        ctn_context *ctx = context(CTN_MODE_PLANNED);
        draw(ctx, op, LINES, NULL, whole);
        for (int rows = 0; rows <= N; rows += N) {
            for (int r = 0; r < 2; r++) {
                const ctn_share s = {
                    .part = (uint64_t)r, .rows = rows, .first = r, .every = 2, .total = 2 * N};
                draw(ctx, op, LINES, &s, part[r]);
            }
            assert_memory_equal(part[0], whole, (size_t)n * sizeof **part);
            if (n > 100 && common(part[0], part[1], n) > n * 3 / 4)
                fail_msg("%s: ranks draw the same numbers", op->name);
            assert_memory_not_equal(part[0], part[1], (size_t)n * sizeof **part);
        }
        ctn_context_free(ctx);
    }
}

/* Two ranks whose results have different numbers of lines for a sample. */
static void unequal_lines(void **state)
{
    static double x[ELEMENTS], y[ELEMENTS];
    (void)state;
    ctn_context *ctx = context(CTN_MODE_PLANNED);
    const random_op *op = &random_ops[7];
    draw(ctx, op, 2 * N, &(ctn_share){0, N, 0, 2, 2 * N}, x);
    draw(ctx, op, 3 * N, &(ctn_share){1, N, 1, 2, 2 * N}, y);
    for (int64_t i = 0; i < 2 * N * op->line; i++)
        for (int64_t k = 0; k < 3 * N * op->line; k++) assert_true(x[i] != y[k]);
    ctn_context_free(ctx);
}

/* Steps before samples, as between the layers of an LSTM. */
static void samples_second(void **state)
{
    enum { T = 5, C = 3 };
    static float whole[T][N][C], part[T * N * C];
    (void)state;
    ctn_context *ctx = context(CTN_MODE_PLANNED);
    for (int64_t every = 0; every < 6; every++)
        for (int64_t r = 0; r == 0 || r < every; r++) {
            const int64_t n = every ? (N - r - 1) / every + 1 : N;
            const ctn_share s = {(uint64_t)r, n, r, every, N};
            OK(ctn_context_set_state(ctx, &(ctn_context_state){5, 9}));
            OK(ctn_context_set_share(ctx, every ? &s : NULL));
            OK(ctn_scope_begin(ctx));
            ctn_tensor *x = ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(T, n, C));
            OK(ctn_read(ctn__dropout_along(CTN_HERE, x, 0.5, 1), every ? part : whole[0][0],
                        (size_t)(T * n * C) * sizeof(float)));
            OK(ctn_scope_end(ctx));
            for (int64_t t = 0; every && t < T; t++)
                for (int64_t i = 0; i < n; i++)
                    assert_memory_equal(part + (t * n + i) * C, whole[t][r + i * every],
                                        sizeof whole[0][0]);
        }
    ctn_context_free(ctx);
}

/* A share is data of a step: plans do not depend on it. */
static void plans(void **state)
{
    static double out[ELEMENTS];
    (void)state;
    ctn_context *ctx = context(CTN_MODE_PLANNED);
    ctn_plan_stats once, later;
    draw(ctx, &random_ops[0], N, NULL, out);
    ctn_context_get_stats(ctx, &once);
    for (int64_t i = 0; i < 5; i++)
        draw(ctx, &random_ops[0], N, &(ctn_share){(uint64_t)i, N, i * N, 1, 5 * N}, out);
    ctn_context_get_stats(ctx, &later);
    assert_int_equal(later.misses, once.misses);
    ctn_context_free(ctx);
}

static void refused(void **state)
{
    (void)state;
    ctn_context *ctx = context(CTN_MODE_PLANNED);
    static const ctn_share wrong[] = {{.rows = -1},
                                      {.rows = 3, .every = 1, .total = 2},
                                      {.rows = 3, .every = 0, .total = 3},
                                      {.rows = 3, .first = 1, .every = 2, .total = 5},
                                      {.rows = 1, .first = 4, .every = 1, .total = 4},
                                      {.rows = 1, .first = -1, .every = 1, .total = 4}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(ctn_context_set_share(ctx, &wrong[i]), CTN_EARG);
        assert_non_null(strstr(ctn_error_message(), "are not in a step of"));
        ctn_error_clear();
    }
    OK(ctn_context_set_share(ctx, &(ctn_share){.rows = 3, .first = 1, .every = 2, .total = 6}));
    OK(ctn_scope_begin(ctx));
    assert_int_equal(ctn_context_set_share(ctx, NULL), CTN_ESTATE);
    ctn_error_clear();
    OK(ctn_scope_end(ctx));
    ctn_context_free(ctx);
}

/* ---- a training ------------------------------------------------------------------------------ */

enum { SAMPLES = 58, WIDTH = 6, HIDDEN = 9, CLASSES = 3, EVAL = 11, STEP = 12, EPOCHS = 3 };
enum { WEIGHTS = WIDTH * HIDDEN + HIDDEN + HIDDEN * CLASSES + CLASSES };

static float images[SAMPLES][WIDTH];
static int64_t labels[SAMPLES];

static void fill(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++)
            images[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        labels[i] = (i * 7 + i / 3) % CLASSES;
    }
}

typedef struct {
    int64_t accumulate;
    int evaluate; /* every so many steps; 0: never */
    float w[WEIGHTS];
    double loss, val; /* of the first epoch; at the end */
} life;

typedef struct {
    ctn_module *net;
    int epoch;
    life *l;
} subject;

/* Noise is added to the input in evaluation, too. */
static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    const subject *x = self;
    ctn_tensor *in = ctn_step_input(s, 0);
    ctn_tensor *noise =
        ctn_random_normal(ctn_step_context(s), 0, 0.1, CTN_F32, CTN_SHAPE(ctn_dim(in, 0), WIDTH));
    return ctn_softmax_cross_entropy(ctn_call(x->net, ctn_add(in, noise)), ctn_step_input(s, 1));
}

static ctn_status note(void *self, ctn_trainer *tr)
{
    subject *x = self;
    if (x->epoch++ == 0) ctn_trainer_value(tr, "train/loss", &x->l->loss);
    ctn_trainer_value(tr, "val/loss", &x->l->val);
    return CTN_OK;
}

static ctn_status loader_of(ctn_loader **l, const job *j, ctn_dataset *data, int64_t n,
                            int64_t batch)
{
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_sampler_shuffled(&s, n, 3));
    ctn_status st = ctn_sampler_shard(s, j->rank, j->size);
    if (st == CTN_OK) st = ctn_loader_new(l, data, s, CTN_OPT(ctn_loader_opt, .batch = batch));
    ctn_sampler_free(s);
    return st;
}

static ctn_status make_net(ctn_context *ctx, ctn_module **net)
{
    ctn_module *m[4] = {0};
    CTN_TRY(ctn_linear_new(&m[0], ctx, WIDTH, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&m[1], ctx, ctn_tanh_at));
    CTN_TRY(ctn_dropout_new(&m[2], ctx, 0.4));
    CTN_TRY(ctn_linear_new(&m[3], ctx, HIDDEN, CLASSES, NULL));
    return ctn_sequential_new(net, ctx, 4, m);
}

static ctn_status add_extensions(ctn_trainer *tr, const job *j, life *l, subject *x,
                                 ctn_loader *eval)
{
    const ctn_extension e = {.struct_size = sizeof e,
                             .name = "note",
                             .call = note,
                             .self = x,
                             .priority = -1,
                             .trigger = {.kind = CTN_EVERY_EPOCHS, .n = 1}};
    if (l->evaluate)
        CTN_TRY(ctn_extend_evaluator(tr,
                                     &(ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = l->evaluate},
                                     eval, loss_of, x));
    if (j->size > 1) CTN_TRY(ctn_dist_trainer(tr, j->c, NULL));
    return ctn_trainer_extend(tr, &e);
}

static void run_training(job *j)
{
    life *l = j->arg, other = *l;
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}}, {.dtype = CTN_I64}};
    const void *const data[] = {images, labels};
    subject x = {.l = j->rank == 0 ? l : &other};
    ctn_dataset *ds = NULL, *few = NULL;
    ctn_loader *train = NULL, *eval = NULL;
    ctn_optim *o = NULL;
    ctn_trainer *tr = NULL;
    TRY(j, ctn_arrays_open(&ds, SAMPLES, 2, field, data));
    TRY(j, ctn_arrays_open(&few, EVAL, 2, field, data));
    const int64_t batch = STEP / j->size / (l->accumulate ? l->accumulate : 1);
    TRY(j, loader_of(&train, j, ds, SAMPLES, batch));
    TRY(j, loader_of(&eval, j, few, EVAL, 1 + j->size % 3));
    TRY(j, make_net(j->ctx, &x.net));
    TRY(j, ctn_adam_new(&o, ctn_params(x.net), CTN_OPT(ctn_adam_opt, .lr = 0.01)));
    if (j->size > 1) TRY(j, ctn_dist_optim(o, j->c, NULL));
    TRY(j, ctn_trainer_new(&tr, o, train, loss_of, &x,
                           CTN_OPT(ctn_trainer_opt, .net = x.net, .epochs = EPOCHS,
                                   .accumulate = l->accumulate)));
    TRY(j, add_extensions(tr, j, l, &x, eval));
    TRY(j, ctn_trainer_run(tr));
    size_t at = 0;
    const ctn_vars p = ctn_params(x.net);
    for (int i = 0; i < p.n; i++) {
        const size_t n = (size_t)ctn__count(ctn_var_desc(p.var[i]));
        TRY(j, ctn_var_get(p.var[i], x.l->w + at, n * sizeof(float)));
        at += n;
    }
    ctn_trainer_free(tr);
    ctn_loader_free(train);
    ctn_loader_free(eval);
    ctn_dataset_free(ds);
    ctn_dataset_free(few);
    ctn_optim_free(o);
    ctn_module_free(x.net);
}

static void compare(const char *what, const life *got, const life *want)
{
    for (int i = 0; i < WEIGHTS; i++)
        if (fabsf(got->w[i] - want->w[i]) > 2e-5f)
            fail_msg("%s: weight %d is %g, expected %g", what, i, (double)got->w[i],
                     (double)want->w[i]);
    if (fabs(got->loss - want->loss) > 1e-5)
        fail_msg("%s: train/loss is %g, expected %g", what, got->loss, want->loss);
    if (fabs(got->val - want->val) > 1e-5)
        fail_msg("%s: val/loss is %g, expected %g", what, got->val, want->val);
}

/* 58 samples in steps of 12: the last one has 10, so some ranks and batches have fewer than others.
 * One rank without an evaluation gets the same weights, too. */
static void trainings(void **state)
{
    (void)state;
    static const struct {
        int ranks;
        int64_t accumulate;
        int evaluate;
    } c[] = {{1, 1, 0}, {1, 3, 2}, {1, 4, 3}, {2, 1, 2}, {3, 1, 2}, {4, 1, 2}, {2, 3, 2}};
    fill();
    for (int m = 0; m < 2; m++) {
        life one = {.evaluate = 2};
        on_ranks(1, modes[m], run_training, &one);
        for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
            char what[80];
            life l = {.accumulate = c[i].accumulate, .evaluate = c[i].evaluate};
            on_ranks(c[i].ranks, modes[m], run_training, &l);
            if (c[i].evaluate != one.evaluate) l.val = one.val;
            snprintf(what, sizeof what, "%d ranks, %d batches per step", c[i].ranks,
                     (int)c[i].accumulate);
            compare(what, &l, &one);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples),   cmocka_unit_test(samples_second),
        cmocka_unit_test(others),    cmocka_unit_test(unequal_lines),
        cmocka_unit_test(plans),     cmocka_unit_test(refused),
        cmocka_unit_test(trainings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
