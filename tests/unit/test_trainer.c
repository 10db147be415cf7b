/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer. Its loop is bitwise equal to a loop written by hand, triggers fire at exactly the
 * right steps, the accumulated gradients of several batches equal those of one large batch,
 * means are exact over batches of different sizes, evaluation changes nothing, a stop from
 * another thread ends the training, and errors leave everything in a usable state.
 */
#include <pthread.h>
#include <string.h>

#include "support/clock.h"
#include "train_case.h"

/* ---- the loop -------------------------------------------------------------------------------- */

static void by_hand(train_case *c, int64_t epochs, double *last_loss)
{
    ctn_batch b;
    for (int64_t e = 0; e < epochs; e++) {
        double sum = 0;
        while (ctn_loader_next(c->loader, &b) == CTN_OK) {
            OK(ctn_scope_begin(c->ctx));
            ctn_tensor *y = ctn_call(c->net, ctn_batch_tensor(c->ctx, &b, 0));
            ctn_tensor *t = ctn_batch_tensor(c->ctx, &b, 1);
            ctn_tensor *loss = ctn_shift(ctn_softmax_cross_entropy(y, t), 0.0);
            OK(ctn_backward(c->optim, loss));
            OK(ctn_optim_step(c->optim));
            sum += ctn_item(loss) * (double)b.n;
            OK(ctn_scope_end(c->ctx));
        }
        *last_loss = sum / SAMPLES;
    }
}

static ctn_status no_op(void *self, ctn_trainer *tr)
{
    (void)self, (void)tr;
    return CTN_OK;
}

/* Planned and eager, with and without loader threads; no plan is built after the first epoch. */
static void test_loop(void **state)
{
    (void)state;
    float a[WEIGHTS], b[WEIGHTS];
    double by_hand_loss = 0, loss = 0;
    for (int k = 0; k < 4; k++) {
        const train_opt o = {.dropout = 0.3,
                             .mode = k & 1 ? CTN_MODE_EAGER : CTN_MODE_PLANNED,
                             .loader_threads = k & 2};
        train_case c;
        ctn_trainer *tr = NULL;
        train_case_new(&c, &o);
        by_hand(&c, 3, &by_hand_loss);
        train_weights(&c, a);
        train_case_free(&c);

        train_case_new(&c, &o);
        char dir[] = "loop.XXXXXX";
        assert_non_null(mkdtemp(dir));
        OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                           CTN_OPT(ctn_trainer_opt, .net = c.net, .epochs = 3, .out = dir)));
        OK(ctn_extend_log(tr, NULL, "log"));
        OK(ctn_trainer_run(tr));
        train_weights(&c, b);
        assert_memory_equal(a, b, sizeof a);
        assert_true(ctn_trainer_value(tr, "train/loss", &loss));
        assert_true(fabs(loss - by_hand_loss) <= 1e-12);
        ctn_progress p;
        ctn_trainer_progress(tr, &p);
        assert_int_equal(p.iteration, 18);
        assert_int_equal(p.epoch, 3);
        assert_int_equal(p.samples, 3 * SAMPLES);
        assert_true(p.part == 0 && p.total == 1 && p.epoch_ended);
        assert_true(p.seconds > 0 && p.compute_s > 0 && p.input_s > 0 && p.other_s > 0);
        assert_true(p.compute_s + p.input_s + p.other_s <= p.seconds * (1 + 1e-9) + 1e-6);
        assert_null(ctn_trainer_stopped(tr));
        ctn_plan_stats stats;
        ctn_context_get_stats(c.ctx, &stats);
        if (o.mode == CTN_MODE_PLANNED) assert_int_equal(stats.misses, 2); /* batches of 4 and 3 */
        if (o.mode == CTN_MODE_PLANNED) assert_int_equal(stats.runs, 18);
        ctn_trainer_free(tr);
        train_case_free(&c);
    }
}

/* The loader's position is that of the training, not one batch ahead; a second run continues. */
static void test_in_pieces(void **state)
{
    (void)state;
    float a[WEIGHTS], b[WEIGHTS];
    train_case c;
    ctn_trainer *tr = NULL;
    double unused;
    train_case_new(&c, &(train_opt){.dropout = 0.3});
    by_hand(&c, 2, &unused);
    train_weights(&c, a);
    train_case_free(&c);
    train_case_new(&c, &(train_opt){.dropout = 0.3, .loader_threads = 2});
    for (int64_t i = 0; i < 12; i++) {
        OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                           CTN_OPT(ctn_trainer_opt, .iterations = 1)));
        OK(ctn_trainer_run(tr));
        ctn_trainer_free(tr);
        const ctn_sampler_state s = ctn_loader_get_state(c.loader);
        assert_int_equal(s.epoch, (uint64_t)(i + 1) / 6);
        assert_int_equal(s.position, (uint64_t)((i + 1) % 6) * BATCH);
    }
    train_weights(&c, b);
    assert_memory_equal(a, b, sizeof a);
    train_case_free(&c);
}

/* ---- triggers -------------------------------------------------------------------------------- */

typedef struct {
    int64_t at[64];
    int n;
} firings;

static ctn_status note(void *self, ctn_trainer *tr)
{
    firings *f = self;
    ctn_progress p;
    ctn_trainer_progress(tr, &p);
    f->at[f->n++] = p.iteration;
    return CTN_OK;
}

static void add_note(ctn_trainer *tr, const char *name, firings *f, ctn_trigger t)
{
    OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = name, .trigger = t, .call = note,
                                      .self = f)));
}

static void assert_fired(const firings *f, int n, const int64_t *at)
{
    for (int i = 0; i < n && i < f->n; i++) assert_int_equal(f->at[i], at[i]);
    assert_int_equal(f->n, n);
}
#define AT(...)                                                                  \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) \
    {                                                                            \
        __VA_ARGS__                                                              \
    }

/* 3 5 2 2 6 1 4 1 ... observed after steps 2, 4, 6, ... */
static ctn_status observe(void *self, ctn_trainer *tr)
{
    static const double v[] = {3, 5, 2, 2, NAN, 6, 1, 4, 1};
    int *k = self;
    return ctn_trainer_observe(tr, "val/x", v[(*k)++ % 9]);
}

static void test_triggers(void **state)
{
    (void)state;
    train_case c;
    ctn_trainer *tr = NULL;
    firings f[13] = {0};
    int k = 0;
    train_case_new(&c, &(train_opt){0});
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .iterations = 20)));
    OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "observe",
                                      .priority = CTN_PRIORITY_EVALUATE,
                                      .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 2},
                                      .call = observe, .self = &k)));
    add_note(tr, "epoch", &f[0], (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
    add_note(tr, "half", &f[1], (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 0.5});
    add_note(tr, "two", &f[2], (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 2});
    add_note(tr, "seven", &f[3], (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 7});
    add_note(tr, "once", &f[4], (ctn_trigger){.kind = CTN_ONCE, .n = 5});
    add_note(tr, "end", &f[5], (ctn_trigger){.kind = CTN_AT_END});
    add_note(tr, "max", &f[6], (ctn_trigger){.kind = CTN_WHEN_MAX, .key = "val/x"});
    add_note(tr, "min", &f[7], (ctn_trigger){.kind = CTN_WHEN_MIN, .key = "val/x"});
    add_note(tr, "often", &f[8], (ctn_trigger){.kind = CTN_EVERY_SECONDS, .n = 1e-9});
    add_note(tr, "steps", &f[9], (ctn_trigger){.kind = CTN_AT_ITERATIONS, .at = {1, 4, 19, 40}});
    add_note(tr, "points", &f[10], (ctn_trigger){.kind = CTN_AT_EPOCHS, .at = {0.5, 1, 2.6}});
    add_note(tr, "apart", &f[11], (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1, .apart = 1e6});
    add_note(tr, "close", &f[12],
             (ctn_trigger){.kind = CTN_EVERY_ITERATIONS, .n = 7, .apart = 1e-9});
    OK(ctn_trainer_run(tr));
    assert_fired(&f[0], AT(6, 12, 18, 20)); /* the last one too */
    assert_fired(&f[11], AT(6, 20));
    assert_fired(&f[12], AT(7, 14));
    /* An epoch has 23 samples in 6 steps: half of it is reached with the third batch (12). */
    assert_fired(&f[1], AT(3, 6, 9, 12, 15, 18, 20));
    assert_fired(&f[2], AT(12, 20));
    assert_fired(&f[3], AT(7, 14));
    assert_fired(&f[4], AT(5));
    assert_fired(&f[5], AT(20));
    assert_fired(&f[6], AT(2, 4, 12));
    assert_fired(&f[7], AT(2, 6, 14));
    assert_int_equal(f[8].n, 20);
    assert_fired(&f[9], AT(1, 4, 19));
    assert_fired(&f[10], AT(3, 6, 16)); /* after 12, 23 and, of 59.8 samples, 46 + 16 */
    ctn_trainer_free(tr);
    train_case_free(&c);
}

/* In order of priority; equal ones in the order they were added. */
static char order[16];
static ctn_status write_name(void *self, ctn_trainer *tr)
{
    (void)tr;
    strncat(order, self, 1);
    return CTN_OK;
}

static void test_priorities(void **state)
{
    (void)state;
    train_case c;
    ctn_trainer *tr = NULL;
    static const struct {
        const char *name;
        int priority;
    } e[] = {{"c", 200}, {"a", 500}, {"d", 200}, {"e", -5}, {"b", 300}};
    train_case_new(&c, &(train_opt){0});
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .iterations = 1)));
    for (size_t i = 0; i < 5; i++)
        OK(ctn_trainer_extend(tr,
                              CTN_OPT(ctn_extension, .name = e[i].name, .priority = e[i].priority,
                                      .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                      .start = write_name, .call = write_name, .finish = write_name,
                                      .self = (void *)e[i].name)));
    OK(ctn_trainer_run(tr));
    assert_string_equal(order, "abcdeabcdeabcde");
    ctn_trainer_free(tr);
    train_case_free(&c);
}

/* ---- gradients of several batches ------------------------------------------------------------ */

static void run_accumulated(int64_t batch, int64_t accumulate, int scale, float out[WEIGHTS],
                            int64_t *iterations)
{
    train_case c;
    ctn_trainer *tr = NULL;
    ctn_progress p;
    train_case_new(
        &c, &(train_opt){.batch = batch, .sequential = 1, .sgd = 1, .lr = 0.5, .scale = scale});
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .epochs = 3, .accumulate = accumulate)));
    OK(ctn_trainer_run(tr));
    train_weights(&c, out);
    ctn_trainer_progress(tr, &p);
    *iterations = p.iteration;
    ctn_trainer_free(tr);
    train_case_free(&c);
}

/* 23 samples: 3 batches of 4 make one of 12, and the second step of an epoch has 4 + 4 + 3 = 11.
 * With 2 of 8, the second step has only one batch of 7. */
static void test_accumulate(void **state)
{
    (void)state;
    static const struct {
        int64_t big, small, k, steps;
    } cases[] = {{12, 4, 3, 6}, {16, 8, 2, 6}, {23, 4, 6, 3}, {23, 5, 100, 3}, {4, 4, 1, 18}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int scale = 0; scale < 2; scale++) {
            float a[WEIGHTS], b[WEIGHTS];
            int64_t na, nb;
            run_accumulated(cases[i].big, 1, 0, a, &na);
            run_accumulated(cases[i].small, cases[i].k, scale, b, &nb);
            assert_int_equal(na, cases[i].steps);
            assert_int_equal(nb, cases[i].steps);
            for (int k = 0; k < WEIGHTS; k++)
                if (!(fabs((double)(a[k] - b[k])) <= 2e-6))
                    fail_msg("case %zu, weight %d: %.9g and %.9g", i, k, (double)a[k],
                             (double)b[k]);
        }
}

/* ---- values ---------------------------------------------------------------------------------- */

/* The batch mean of the first feature, whose mean over an epoch is known. */
static ctn_tensor *known_loss(void *self, ctn_step *s)
{
    train_case *c = self;
    ctn_tensor *x = ctn_step_input(s, 0);
    ctn_report(s, "first", ctn_mean(ctn_slice(x, 1, 0, 1), CTN_ALL_AXES, 0));
    assert_ptr_equal(ctn_step_context(s), c->ctx);
    assert_true(ctn_step_batch(s)->n <= BATCH);
    return ctn_softmax_cross_entropy(ctn_call(c->net, x), ctn_step_input(s, 1));
}

static double mean_first(int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++) sum += (double)train_x[i][0];
    return sum / n;
}

static ctn_status take_first(void *user, const char *name, double value)
{
    if (strcmp(name, "first") == 0) *(double *)user = value;
    return CTN_OK;
}

static void test_means(void **state)
{
    (void)state;
    train_case c;
    ctn_trainer *tr = NULL;
    double v = 0, by_hand_v = 0;
    char dir[] = "means.XXXXXX";
    assert_non_null(mkdtemp(dir));
    train_case_new(&c, &(train_opt){0});
    OK(ctn_trainer_new(&tr, c.optim, c.loader, known_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .epochs = 2, .out = dir)));
    OK(ctn_extend_log(tr, NULL, "log.jsonl"));
    OK(ctn_extend_evaluator(tr, NULL, c.eval, known_loss, &c));
    OK(ctn_trainer_run(tr));
    assert_int_equal(ctn_trainer_rows(tr), 2);
    for (int r = 0; r < 2; r++) {
        ctn_progress p;
        ctn_trainer_row_progress(tr, r, &p);
        assert_int_equal(p.iteration, 6 * (r + 1));
        assert_true(fabs(ctn_trainer_row_value(tr, r, "train/first") - mean_first(SAMPLES)) <=
                    1e-7);
        assert_true(fabs(ctn_trainer_row_value(tr, r, "val/first") - mean_first(EVAL)) <= 1e-7);
        assert_true(ctn_trainer_row_value(tr, r, "train/loss") > 0);
        assert_true(isnan(ctn_trainer_row_value(tr, r, "val/nothing")));
    }
    assert_true(isnan(ctn_trainer_row_value(tr, 2, "train/loss")));
    assert_string_equal(ctn_trainer_name(tr, 0), "train/first");
    assert_string_equal(ctn_trainer_name(tr, 1), "train/loss");
    assert_string_equal(ctn_trainer_name(tr, 2), "val/first");
    assert_null(ctn_trainer_name(tr, 4));
    assert_true(ctn_trainer_value(tr, "val/first", &v));
    OK(ctn_evaluate(c.ctx, c.eval, known_loss, &c, take_first, &by_hand_v));
    assert_true(v == by_hand_v);
    assert_false(ctn_trainer_value(tr, "val/none", &v));
    FAILS(ctn_trainer_observe(tr, "a\"b", 1), CTN_EARG, "quotes");
    ctn_trainer_free(tr);
    train_case_free(&c);
}

/* Evaluation does not change the weights of a training, except for the context's step count that
 * random ops use; hence no dropout. */
static void test_evaluation_changes_nothing(void **state)
{
    (void)state;
    float w[2][WEIGHTS];
    for (int k = 0; k < 2; k++) {
        train_case c;
        ctn_trainer *tr = NULL;
        train_case_new(&c, &(train_opt){0});
        OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                           CTN_OPT(ctn_trainer_opt, .net = c.net, .epochs = 2)));
        if (k) {
            OK(ctn_extend_evaluator(tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 2), c.eval,
                                    train_loss, &c));
            OK(ctn_extend_average(tr, 0.9));
            OK(ctn_extend_param_stats(tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 5), "*weight"));
        }
        OK(ctn_trainer_run(tr));
        train_weights(&c, w[k]);
        assert_int_equal(ctn_context_training(c.ctx), 1);
        double v;
        assert_int_equal(ctn_trainer_value(tr, "param/3.weight/std", &v), k);
        ctn_trainer_free(tr);
        train_case_free(&c);
    }
    assert_memory_equal(w[0], w[1], sizeof w[0]);
}

/* ---- the average ----------------------------------------------------------------------------- */

typedef struct {
    train_case *c;
    float avg[WEIGHTS], rate;
    int n;
} averaging;

static ctn_status follow(void *self, ctn_trainer *tr)
{
    averaging *a = self;
    float w[WEIGHTS];
    (void)tr;
    train_weights(a->c, w);
    for (int i = 0; i < WEIGHTS; i++) a->avg[i] += (1 - a->rate) * (w[i] - a->avg[i]);
    a->n++;
    return CTN_OK;
}

/* The mean after steps 3, 5, 7, ..., and the weights themselves before. Skipped steps are none. */
static ctn_status follow_mean(void *self, ctn_trainer *tr)
{
    averaging *a = self;
    float w[WEIGHTS];
    const int step = (int)ctn_optim_steps(ctn_trainer_optim(tr)), used = (step - 1) / 2;
    train_weights(a->c, w);
    if (step == a->n) return CTN_OK;
    a->n = step;
    if (step > 3 && step % 2 == 0) return CTN_OK;
    for (int i = 0; i < WEIGHTS; i++)
        a->avg[i] = step <= 3 ? w[i] : a->avg[i] + (w[i] - a->avg[i]) / (float)used;
    return CTN_OK;
}

/* Called in evaluation only, where the net has the averaged weights. */
static ctn_tensor *see_average(void *self, ctn_step *s)
{
    averaging *a = self;
    float w[WEIGHTS];
    const ctn_vars p = ctn_params(a->c->net);
    size_t at = 0;
    for (int i = 0; i < p.n; i++) {
        ctn_tensor *t = ctn_use(p.var[i]);
        OK(ctn_read(t, w + at, (size_t)ctn_count(t) * sizeof(float)));
        at += (size_t)ctn_count(t);
    }
    for (int i = 0; i < WEIGHTS; i++) assert_true(fabsf(w[i] - a->avg[i]) <= 1e-6f);
    return train_loss(a->c, s);
}

static void test_average(void **state)
{
    (void)state;
#ifndef CTN_HAVE_YYJSON
    skip(); /* the averaged weights are saved as safetensors */
#endif
    train_case c;
    ctn_trainer *tr = NULL;
    char dir[] = "average.XXXXXX", path[64];
    float w[WEIGHTS], saved[WEIGHTS];
    assert_non_null(mkdtemp(dir));
    train_case_new(&c, &(train_opt){0});
    averaging a = {.c = &c, .rate = 0.8f};
    train_weights(&c, a.avg);
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .net = c.net, .epochs = 2, .out = dir)));
    OK(ctn_extend_average(tr, 0.8));
    OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "follow", .priority = 1000,
                                      .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                      .call = follow, .self = &a)));
    OK(ctn_extend_evaluator(tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 1), c.eval, see_average,
                            &a));
    OK(ctn_trainer_run(tr));
    assert_int_equal(a.n, 12);
    ctn_trainer_free(tr);
    train_weights(&c, w);
    snprintf(path, sizeof path, "%s/average.safetensors", dir);
    OK(ctn_weights_load(c.net, path, NULL));
    train_weights(&c, saved);
    for (int i = 0; i < WEIGHTS; i++) assert_true(fabsf(saved[i] - a.avg[i]) <= 1e-6f);
    assert_memory_not_equal(w, saved, sizeof w);
    train_case_free(&c);
}

/* Every fourth loss is infinite. */
static ctn_tensor *infinite_loss(void *self, ctn_step *s)
{
    ctn_context_state at;
    ctn_context_get_state(ctn_step_context(s), &at);
    ctn_tensor *loss = train_loss(self, s);
    return at.step % 4 == 3 ? ctn_scale(loss, INFINITY) : loss;
}

/* skips: some losses are infinite, and the optimizer skips their steps. */
static void average_steps(bool skips)
{
    train_case c;
    ctn_trainer *tr = NULL;
    train_case_new(&c, &(train_opt){0});
    averaging a = {.c = &c};
    ctn_optim_set_skip_nonfinite(c.optim, skips);
    OK(ctn_trainer_new(&tr, c.optim, c.loader, skips ? infinite_loss : train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .net = c.net, .epochs = 2)));
    FAILS(ctn_extend_swa(tr, -1, 2), CTN_EARG, "start is -1");
    OK(ctn_extend_swa(tr, 3, 2));
    FAILS(ctn_extend_average(tr, 0.9), CTN_ESTATE, "already has an average");
    OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "follow", .priority = 1000,
                                      .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                      .call = follow_mean, .self = &a)));
    OK(ctn_extend_evaluator(tr, CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = 1), c.eval, see_average,
                            &a));
    OK(ctn_trainer_run(tr));
    assert_int_equal(a.n, 12 - ctn_optim_skipped(c.optim));
    assert_int_equal(ctn_optim_skipped(c.optim) > 1, skips);
    ctn_trainer_free(tr);
    train_case_free(&c);
}

static void test_swa(void **state)
{
    (void)state;
    average_steps(false);
    average_steps(true);
}

/* ---- ends ------------------------------------------------------------------------------------ */

typedef struct {
    train_case c;
    ctn_trainer *tr;
    atomic_int calls; /* batches seen by the loss function */
    int stop_at;
} stopping;

static ctn_tensor *stopping_loss(void *self, ctn_step *s)
{
    stopping *t = self;
    if (++t->calls == t->stop_at) ctn_trainer_stop(t->tr, "told to");
    return train_loss(&t->c, s);
}

/* In a thread of its own, after the training has begun. */
static void *stop_from_outside(void *self)
{
    stopping *t = self;
    while (t->calls == 0) usleep(1000);
    ctn_trainer_stop(t->tr, "told to");
    return NULL;
}

static void test_stop(void **state)
{
    (void)state;
    stopping t = {.stop_at = 0};
    firings end = {0};
    pthread_t thread;
    ctn_progress p;
    train_case_new(&t.c, &(train_opt){.loader_threads = 1});
    OK(ctn_trainer_new(&t.tr, t.c.optim, t.c.loader, stopping_loss, &t,
                       CTN_OPT(ctn_trainer_opt, .epochs = 100000000)));
    add_note(t.tr, "end", &end, (ctn_trigger){.kind = CTN_AT_END});
    assert_int_equal(pthread_create(&thread, NULL, stop_from_outside, &t), 0);
    OK(ctn_trainer_run(t.tr));
    pthread_join(thread, NULL);
    assert_string_equal(ctn_trainer_stopped(t.tr), "told to");
    assert_int_equal(end.n, 0); /* the end was not reached */
    ctn_trainer_progress(t.tr, &p);
    assert_true(p.iteration > 0 && p.total < 1);
    OK(ctn_trainer_run(t.tr)); /* still stopped: not one more step */
    int64_t was = p.iteration;
    ctn_trainer_progress(t.tr, &p);
    assert_int_equal(p.iteration, was);
    ctn_trainer_free(t.tr);
    train_case_free(&t.c);
}

static ctn_tensor *second_long_loss(void *c, ctn_step *s)
{
    clock_pass(1000);
    return train_loss(c, s);
}

static void test_seconds(void **state)
{
    (void)state;
    train_case c;
    ctn_trainer *tr = NULL;
    ctn_progress p;
    train_case_new(&c, &(train_opt){0});
    OK(ctn_trainer_new(&tr, c.optim, c.loader, second_long_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .seconds = 9.5)));
    clock_stop();
    OK(ctn_trainer_run(tr));
    clock_run();
    ctn_trainer_progress(tr, &p);
    assert_int_equal(p.iteration, 10);
    assert_true(fabs(p.seconds - 10) < 1e-6 && p.total == 1 && p.complete);
    ctn_trainer_free(tr);
    train_case_free(&c);
}

static ctn_status stop_now(void *self, ctn_trainer *tr)
{
    (void)self;
    ctn_trainer_stop(tr, "told to");
    return CTN_OK;
}

/* Of 6 steps: a request during the fifth leaves work to do, a later one does not. */
static void test_stop_near_the_end(void **state)
{
    (void)state;
    for (int at = 4; at <= 7; at++) {
        stopping t = {.stop_at = at};
        firings end = {0};
        ctn_progress p;
        train_case_new(&t.c, &(train_opt){0});
        OK(ctn_trainer_new(&t.tr, t.c.optim, t.c.loader, stopping_loss, &t,
                           CTN_OPT(ctn_trainer_opt, .epochs = 1)));
        add_note(t.tr, "end", &end, (ctn_trigger){.kind = CTN_AT_END});
        if (at == 7) /* after the last step */
            OK(ctn_trainer_extend(t.tr,
                                  CTN_OPT(ctn_extension, .name = "stop", .priority = 1000,
                                          .trigger = {.kind = CTN_AT_END}, .call = stop_now)));
        OK(ctn_trainer_run(t.tr));
        ctn_trainer_progress(t.tr, &p);
        assert_int_equal(p.iteration, at < 6 ? at : 6);
        assert_int_equal(p.complete, at >= 6);
        assert_int_equal(end.n, at >= 6);
        assert_int_equal(ctn_trainer_stopped(t.tr) == NULL, at >= 6);
        ctn_trainer_free(t.tr);
        train_case_free(&t.c);
    }
}

static ctn_status observe_list(void *self, ctn_trainer *tr)
{
    double **v = self;
    return ctn_trainer_observe(tr, "val/loss", *(*v)++);
}

/* The value improves until the fourth epoch, so with patience 3 the seventh is the last.
 * Plateau: the rate is lowered after 2 epochs without improvement, and again after 2 more, but
 * not below its minimum. A schedule of the rate, here one that does not change it, continues from
 * the lower one. */
static void run_with_patience(bool scheduled)
{
    static double v[] = {4, 3, 2, 1, 1, 1.5, 1 - 5e-5, 0, 0, 0}, *at;
    at = v;
    train_case c;
    ctn_trainer *tr = NULL;
    firings end = {0};
    ctn_progress p;
    train_case_new(&c, &(train_opt){.lr = 0.1});
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .epochs = 10)));
    OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "values",
                                      .priority = CTN_PRIORITY_EVALUATE,
                                      .trigger = {.kind = CTN_EVERY_EPOCHS, .n = 1},
                                      .call = observe_list, .self = &at)));
    add_note(tr, "end", &end, (ctn_trigger){.kind = CTN_AT_END});
    OK(ctn_extend_early_stop(tr, NULL,
                             CTN_OPT(ctn_patience_opt, .key = "val/loss", .patience = 3)));
    OK(ctn_extend_plateau(tr, NULL, "lr",
                          CTN_OPT(ctn_patience_opt, .key = "val/loss", .patience = 2,
                                  .factor = 0.5)));
    if (scheduled)
        OK(ctn_extend_schedule(tr, "lr",
                               CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_STEP, .every = 1000,
                                       .gamma = 0.5)));
    OK(ctn_trainer_run(tr));
    ctn_trainer_progress(tr, &p);
    assert_int_equal(p.epoch, 7);
    assert_fired(&end, AT(42));
    assert_non_null(strstr(ctn_trainer_stopped(tr), "val/loss"));
    assert_true(ctn_optim_lr(c.optim) == 0.05);
    ctn_trainer_free(tr);
    train_case_free(&c);
}

static void test_patience(void **state)
{
    (void)state;
    run_with_patience(false);
    run_with_patience(true);
}

static double lr_seen[8];
static ctn_status see_lr(void *self, ctn_trainer *tr)
{
    int *k = self;
    lr_seen[(*k)++] = ctn_optim_hyper(ctn_trainer_optim(tr), "lr");
    return CTN_OK;
}

/* The training has 2 epochs of 2 steps of up to 3 batches. After step k, the rate is that of
 * step k + 1. */
static void test_schedule(void **state)
{
    (void)state;
    train_case c;
    ctn_trainer *tr = NULL;
    int k = 0;
    train_case_new(&c, &(train_opt){.lr = 0.2});
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                       CTN_OPT(ctn_trainer_opt, .epochs = 2, .accumulate = 3)));
    OK(ctn_extend_schedule(tr, "lr", CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_LINEAR)));
    OK(ctn_extend_schedule(tr, "beta1",
                           CTN_OPT(ctn_sched_opt, .kind = CTN_SCHED_STEP, .every = 2,
                                   .gamma = 0.5)));
    OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "see",
                                      .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                                      .start = see_lr, .call = see_lr, .self = &k)));
    FAILS(ctn_extend_schedule(tr, "momentum", NULL), CTN_ENOTFOUND, "beta1");
    OK(ctn_trainer_run(tr));
    assert_int_equal(k, 5);
    for (int i = 0; i < 5; i++) assert_true(fabs(lr_seen[i] - 0.2 * (1 - i / 4.0)) < 1e-15);
    assert_true(ctn_optim_hyper(c.optim, "beta1") == 0.9 * 0.25);
    ctn_trainer_free(tr);
    train_case_free(&c);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static int finished;
static ctn_status fail_at_7(void *self, ctn_trainer *tr)
{
    ctn_progress p;
    (void)self;
    ctn_trainer_progress(tr, &p);
    return p.iteration == 7 ? ctn_fail(CTN_EIO, "seven") : CTN_OK;
}
static ctn_status finish(void *self, ctn_trainer *tr)
{
    (void)self, (void)tr;
    finished++;
    return CTN_OK;
}

static int bad_kind;
static ctn_tensor *bad_loss(void *self, ctn_step *s)
{
    train_case *c = self;
    ctn_tensor *x = ctn_step_input(s, 0);
    char name[16];
    if (bad_kind == 0) return NULL;
    if (bad_kind == 1) ctn_report(s, "x", x);
    if (bad_kind == 2) ctn_report(s, "x", ctn_add(x, ctn_slice(x, 1, 0, 2)));
    for (int i = 0; bad_kind == 3 && i < 33; i++) {
        snprintf(name, sizeof name, "v%d", i);
        ctn_report(s, name, ctn_mean(x, CTN_ALL_AXES, 0));
    }
    if (bad_kind == 4) return x;
    if (bad_kind == 5) ctn_scope_begin(c->ctx);
    if (bad_kind == 5) return NULL;
    return train_loss(c, s);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        ctn_status st;
        const char *part;
    } bad[] = {{CTN_EARG, "no tensor"}, {CTN_EARG, "one float"}, {CTN_ESHAPE, ""},
               {CTN_ESTATE, "32"},      {CTN_EARG, "one float"}, {CTN_EARG, "no tensor"}};
    train_case c;
    ctn_trainer *tr = NULL;
    ctn_progress p;
    train_case_new(&c, &(train_opt){0});
    FAILS(ctn_trainer_new(&tr, c.optim, NULL, train_loss, &c, NULL), CTN_EARG, "loader");
    FAILS(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                          CTN_OPT(ctn_trainer_opt, .epochs = -1)),
          CTN_EARG, "negative");
    assert_null(tr);
    for (bad_kind = 0; bad_kind < 6; bad_kind++) {
        OK(ctn_trainer_new(&tr, c.optim, c.loader, bad_loss, &c,
                           CTN_OPT(ctn_trainer_opt, .epochs = 1)));
        ctn_error_clear();
        ctn_status st = ctn_trainer_run(tr);
        if (st != bad[bad_kind].st || !strstr(ctn_error_message(), bad[bad_kind].part))
            fail_msg("kind %d: %d, %s", bad_kind, st, ctn_error_message());
        ctn_error_clear();
        ctn_trainer_free(tr);
    }
    OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c, NULL));
    FAILS(ctn_trainer_run(tr), CTN_EARG, "never end");
    const ctn_extension e = {.struct_size = sizeof e,
                             .name = "e",
                             .trigger = {.kind = CTN_EVERY_ITERATIONS, .n = 1},
                             .call = fail_at_7,
                             .finish = finish};
    OK(ctn_trainer_extend(tr, &e));
    FAILS(ctn_trainer_extend(tr, &e), CTN_EARG, "named e");
    FAILS(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "f")), CTN_EARG, "kind 0");
    FAILS(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "f",
                                         .trigger = {.kind = CTN_ONCE, .n = 1.5})),
          CTN_EARG, "whole");
    static const ctn_trigger apart[] = {
        {.kind = CTN_EVERY_EPOCHS, .n = 1, .apart = -1},
        {.kind = CTN_EVERY_EPOCHS, .n = 1, .apart = NAN},
        {.kind = CTN_WHEN_MIN, .key = "val/x", .apart = 1},
        {.kind = CTN_AT_END, .apart = 1},
    };
    for (int i = 0; i < 4; i++)
        FAILS(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "f", .trigger = apart[i])),
              CTN_EARG, "apart is");
    FAILS(ctn_extend_log(tr, NULL, "log"), CTN_ESTATE, "folder");
    FAILS(ctn_extend_weights(tr, NULL, "w"), CTN_ESTATE, "folder");
    FAILS(ctn_extend_state(tr, NULL), CTN_ESTATE, "folder");
    FAILS(ctn_extend_average(tr, 0), CTN_ESTATE, "net");
    FAILS(ctn_extend_evaluator(tr, NULL, c.loader, train_loss, &c), CTN_EARG, "its own");
    OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "g", .trigger = {.kind = CTN_AT_END},
                                      .call = no_op)));
    FAILS(ctn_trainer_run(tr), CTN_EIO, "seven");
    assert_int_equal(finished, 1);
    ctn_trainer_progress(tr, &p);
    assert_int_equal(p.iteration, 7);
    ctn_trainer_free(tr);
    FAILS(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                          CTN_OPT(ctn_trainer_opt, .out = "/proc/none/x")),
          CTN_EIO, "/proc/none/x");
    train_case_free(&c);
}

static ctn_status spoil_loss(void *self, ctn_trainer *tr)
{
    train_case *c = self;
    (void)tr;
    c->spoil = NAN;
    return CTN_OK;
}

static ctn_status spoil_bias(void *self, ctn_trainer *tr)
{
    train_case *c = self;
    const float b[CLASSES] = {0, INFINITY, 0};
    (void)tr;
    return ctn_var_set(ctn_module_find(c->net, "3.bias"), b, sizeof b);
}

/* A reported value is checked at once, a parameter when the trigger fires: 4 comes after step 3. */
static void test_nonfinite(void **state)
{
    (void)state;
    static const struct {
        ctn_status (*spoil)(void *self, ctn_trainer *tr);
        double every;
        const char *part;
    } cases[] = {{spoil_loss, 100, "train/loss is nan at iteration 4; all parameters"},
                 {spoil_bias, 1, "parameter 3.bias is not finite at iteration 3"},
                 {spoil_bias, 100, "at iteration 4; the first tensor that is not finite is"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        train_case c;
        ctn_trainer *tr = NULL;
        train_case_new(&c, &(train_opt){0});
        OK(ctn_trainer_new(&tr, c.optim, c.loader, train_loss, &c,
                           CTN_OPT(ctn_trainer_opt, .net = c.net, .epochs = 9)));
        OK(ctn_extend_fail_on_nonfinite(tr,
                                        CTN_TRIGGER(CTN_EVERY_ITERATIONS, .n = cases[i].every)));
        OK(ctn_trainer_extend(tr, CTN_OPT(ctn_extension, .name = "spoil", .priority = 1000,
                                          .trigger = {.kind = CTN_ONCE, .n = 3},
                                          .call = cases[i].spoil, .self = &c)));
        FAILS(ctn_trainer_run(tr), CTN_ENONFINITE, cases[i].part);
        ctn_trainer_free(tr);
        train_case_free(&c);
    }
    assert_string_equal(ctn_status_text(CTN_ENONFINITE), "not finite");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loop),
                                       cmocka_unit_test(test_in_pieces),
                                       cmocka_unit_test(test_triggers),
                                       cmocka_unit_test(test_priorities),
                                       cmocka_unit_test(test_accumulate),
                                       cmocka_unit_test(test_means),
                                       cmocka_unit_test(test_evaluation_changes_nothing),
                                       cmocka_unit_test(test_average),
                                       cmocka_unit_test(test_swa),
                                       cmocka_unit_test(test_stop),
                                       cmocka_unit_test(test_seconds),
                                       cmocka_unit_test(test_stop_near_the_end),
                                       cmocka_unit_test(test_patience),
                                       cmocka_unit_test(test_schedule),
                                       cmocka_unit_test(test_errors),
                                       cmocka_unit_test(test_nonfinite)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
