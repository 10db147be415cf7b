/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses that are means over fewer targets than samples (ctn_report_targets, ctn_report_weight):
 * weights, losses and evaluations of any number of ranks, of batches per step and of samples per
 * batch are those of one rank, in f64 to all digits. Some batches have no targets at all; the loss
 * may be 0 / 0 then.
 * Labels: threads
 */
#include "ranks.h"

#include <catena/datasets.h>
#include <catena/train.h>

enum { SAMPLES = 46, WORDS = 5, WIDTH = 4, CLASSES = 3, STEP = 12, EPOCHS = 3, IGNORED = -100 };
enum { WEIGHTS = WIDTH * CLASSES + CLASSES };

static float words[SAMPLES][WORDS][WIDTH];
static int64_t targets[SAMPLES][WORDS];

/* Samples have 0 to 4 targets, and half of them have none. */
static void fill(void)
{
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < WORDS; k++) {
            for (int c = 0; c < WIDTH; c++)
                words[i][k][c] = (float)((i * 37 + k * 11 + c * 101) * 7919 % 257 - 128) / 128;
            targets[i][k] = i % 2 == 0 && k < i % 5 ? (i + k) % CLASSES : IGNORED;
        }
}

typedef struct {
    int64_t accumulate; /* 0: 1 */
    int64_t batch;      /* of the evaluation; 0: 4 */
    int by_hand;        /* ctn_report_weight with a number */
    int quotient;       /* the loss is a sum divided by the number of targets */
    int norm;           /* synchronised batch normalisation, so that losses depend on all samples */
    int bad;            /* a wrong call; 0: none */
    double w[WEIGHTS];
    double loss, val, accuracy;
    char error[400];
} life;

typedef struct {
    ctn_module *net;
    life *l;
    int epoch;
} subject;

static double count(const ctn_batch *b)
{
    double n = 0;
    for (int64_t i = 0; i < b->n * WORDS; i++) n += ((const int64_t *)b->data[1])[i] != IGNORED;
    return n;
}

/* The mean of the squared logits of the targets; 0 / 0 if there are none. */
static ctn_tensor *quotient(ctn_tensor *y, ctn_tensor *t)
{
    const ctn_dtype type = ctn_dtype_of(y);
    ctn_tensor *is = ctn_greater_equal(ctn_cast(t, type), ctn_scale(ctn_cast(t, type), 0));
    ctn_tensor *mask = ctn_cast(is, type), *each = ctn_mean(ctn_square(y), CTN_SHAPE(-1), 0);
    ctn_tensor *sum = ctn_sum(ctn_mul(each, mask), CTN_ALL_AXES, 0);
    return ctn_div(sum, ctn_sum(mask, CTN_ALL_AXES, 0));
}

static ctn_tensor *loss_of(void *self, ctn_step *s)
{
    const subject *x = self;
    ctn_tensor *y = ctn_call(x->net, ctn_step_input(s, 0)), *t = ctn_step_input(s, 1);
    if (x->l->by_hand) ctn_report_weight(s, 2.5 * count(ctn_step_batch(s))); /* any unit will do */
    else ctn_report_targets(s, 1, IGNORED);
    if (x->l->bad == 1) ctn_report_targets(s, 2, IGNORED);
    if (x->l->bad == 2) ctn_report_targets(s, 0, IGNORED);
    if (x->l->bad == 3) ctn_report_weight(s, -1);
    ctn_report(s, "accuracy", ctn_accuracy(y, t, 1));
    return x->l->quotient ? quotient(y, t) : ctn_softmax_cross_entropy(y, t);
}

static ctn_status note(void *self, ctn_trainer *tr)
{
    subject *x = self;
    if (x->epoch++ == 0) ctn_trainer_value(tr, "train/loss", &x->l->loss);
    ctn_trainer_value(tr, "val/loss", &x->l->val);
    ctn_trainer_value(tr, "val/accuracy", &x->l->accuracy);
    return CTN_OK;
}

static ctn_status open_loader(ctn_loader **l, const job *j, ctn_dataset *ds, int64_t batch)
{
    ctn_sampler *s = NULL;
    CTN_TRY(ctn_sampler_sequential(&s, SAMPLES));
    ctn_status st = ctn_sampler_shard(s, j->rank, j->size);
    if (st == CTN_OK) st = ctn_loader_new(l, ds, s, CTN_OPT(ctn_loader_opt, .batch = batch));
    ctn_sampler_free(s);
    return st;
}

static ctn_status run(const job *j, subject *x, ctn_optim *o, ctn_loader *train, ctn_loader *eval)
{
    ctn_trainer *tr = NULL;
    const ctn_extension e = {.struct_size = sizeof e,
                             .name = "note",
                             .call = note,
                             .self = x,
                             .priority = -1,
                             .trigger = {.kind = CTN_EVERY_EPOCHS, .n = 1}};
    CTN_TRY(ctn_trainer_new(&tr, o, train, loss_of, x,
                            CTN_OPT(ctn_trainer_opt, .net = x->net, .epochs = EPOCHS,
                                    .accumulate = x->l->accumulate)));
    ctn_status st = ctn_extend_evaluator(tr, NULL, eval, loss_of, x);
    if (st == CTN_OK && j->size > 1) st = ctn_dist_trainer(tr, j->c, NULL);
    if (st == CTN_OK) st = ctn_trainer_extend(tr, &e);
    if (st == CTN_OK) st = ctn_trainer_run(tr);
    if (st < 0) snprintf(x->l->error, sizeof x->l->error, "%s", ctn_error_message());
    if (x->l->bad) ctn_error_clear();
    ctn_trainer_free(tr);
    return x->l->bad ? CTN_OK : st;
}

/* The weights of the net, row-major, then its biases. */
static ctn_status get_weights(ctn_module *net, double *out)
{
    float f[WEIGHTS];
    for (int i = 0, at = 0; i < 2; i++) {
        ctn_var *v = ctn_module_find(net, i == 0 ? "0.weight" : "0.bias");
        const int n = i == 0 ? WIDTH * CLASSES : CLASSES;
        const bool f64 = ctn_var_desc(v)->dtype == CTN_F64;
        const size_t bytes = (size_t)n * (f64 ? sizeof *out : sizeof *f);
        CTN_TRY(ctn_var_get(v, f64 ? (void *)(out + at) : f, bytes));
        for (int k = 0; k < n && !f64; k++) out[at + k] = (double)f[k];
        at += n;
    }
    return CTN_OK;
}

static ctn_status make_net(subject *x, const job *j)
{
    ctn_module *m[2] = {NULL};
    CTN_TRY(ctn_linear_new(&m[0], j->ctx, WIDTH, CLASSES, NULL));
    if (x->l->norm) CTN_TRY(ctn_batch_norm_new(&m[1], j->ctx, WORDS, NULL));
    CTN_TRY(ctn_sequential_new(&x->net, j->ctx, x->l->norm ? 2 : 1, m));
    return ctn_dist_sync_batch_norm(x->net, j->size > 1 ? j->c : NULL);
}

static void run_training(job *j)
{
    life *l = j->arg, other = *l;
    const ctn_field field[] = {{.dtype = CTN_F32, .ndim = 2, .shape = {WORDS, WIDTH}},
                               {.dtype = CTN_I64, .ndim = 1, .shape = {WORDS}}};
    const void *const data[] = {words, targets};
    subject x = {.l = j->rank == 0 ? l : &other};
    ctn_dataset *ds = NULL;
    ctn_loader *train = NULL, *eval = NULL;
    ctn_optim *o = NULL;
    TRY(j, ctn_arrays_open(&ds, SAMPLES, 2, field, data));
    TRY(j, open_loader(&train, j, ds, STEP / j->size / (l->accumulate ? l->accumulate : 1)));
    TRY(j, open_loader(&eval, j, ds, l->batch ? l->batch : 4));
    TRY(j, make_net(&x, j));
    TRY(j, ctn_sgd_new(&o, ctn_params(x.net), CTN_OPT(ctn_sgd_opt, .lr = 0.5, .momentum = 0.9)));
    if (j->size > 1) TRY(j, ctn_dist_optim(o, j->c, NULL));
    TRY(j, run(j, &x, o, train, eval));
    TRY(j, get_weights(x.net, x.l->w));
    ctn_loader_free(train);
    ctn_loader_free(eval);
    ctn_dataset_free(ds);
    ctn_optim_free(o);
    ctn_module_free(x.net);
}

static void near(const char *what, const char *which, double got, double want)
{
    const bool f64 = precision == CTN_PRECISION_F64 && !strstr(which, "accuracy"); /* an f32 */
    if (!(fabs(got - want) < (f64 ? 1e-12 : 1e-5)))
        fail_msg("%s: %s is %.15g, expected %.15g", what, which, got, want);
}

static void compare(ctn_mode mode, int quotient, int norm)
{
    static const struct {
        int ranks;
        int64_t accumulate, batch;
        int by_hand;
    } c[] = {{1, 3, 1, 0}, {1, 6, 5, 0}, {1, 12, 46, 1}, {2, 1, 3, 0},
             {3, 1, 2, 0}, {4, 1, 1, 0}, {4, 3, 2, 0},   {2, 3, 1, 1}};
    life one = {.quotient = quotient, .norm = norm};
    on_ranks(1, mode, run_training, &one);
    assert_true(isfinite(one.loss) && isfinite(one.val) && one.accuracy > (quotient ? 0 : 0.2));
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char what[100];
        if (norm && c[i].accumulate > 1) continue; /* its batches have statistics of their own */
        life l = {.accumulate = c[i].accumulate,
                  .batch = c[i].batch,
                  .by_hand = c[i].by_hand,
                  .quotient = quotient,
                  .norm = norm};
        on_ranks(c[i].ranks, mode, run_training, &l);
        snprintf(what, sizeof what, "%d ranks, %d batches per step, batch %d%s", c[i].ranks,
                 (int)c[i].accumulate, (int)c[i].batch, quotient ? ", quotient" : "");
        for (int k = 0; k < WEIGHTS; k++) near(what, "a weight", l.w[k], one.w[k]);
        near(what, "train/loss", l.loss, one.loss);
        near(what, "val/loss", l.val, one.val);
        near(what, "val/accuracy", l.accuracy, one.accuracy);
    }
}

static void same(void **state)
{
    (void)state;
    fill();
    for (int m = 0; m < 6; m++) compare(modes[m / 3], m % 3 == 1, m % 3 == 2);
}

static void same_in_f64(void **state)
{
    (void)state;
    fill();
    precision = CTN_PRECISION_F64;
    for (int m = 0; m < 6; m++) compare(modes[m / 3], m % 3 == 1, m % 3 == 2);
    precision = CTN_PRECISION_F32;
}

static void refused(void **state)
{
    (void)state;
    static const char *const why[] = {"no field 2", "field 0 is f32, expected i64", "weight is -1"};
    fill();
    for (int bad = 1; bad <= 3; bad++) {
        life l = {.bad = bad};
        on_ranks(1, CTN_MODE_PLANNED, run_training, &l);
        if (!strstr(l.error, why[bad - 1])) fail_msg("\"%s\" not in \"%s\"", why[bad - 1], l.error);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same), cmocka_unit_test(same_in_f64),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
