/* SPDX-License-Identifier: Apache-2.0
 *
 * A trainer with two optimizers: a small GAN, whose discriminator and generator have losses of
 * their own. Interrupted at any step and resumed in new objects, it ends with bitwise the same
 * weights and optimizer states. Several small batches in a step train like a large one. Wrong calls
 * are refused.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/catena.h>

#include "support/ok.h"

#include <cmocka.h>

#ifndef CTN_HAVE_YYJSON
int main(void)
{
    printf("skipped: built without yyjson\n");
    return 77;
}
#else

enum { SAMPLES = 50, BATCH = 8, NOISE = 3, STEPS = 20, STATE = 4096 };

typedef struct {
    ctn_context *ctx;
    ctn_module *net, *generator, *judge;
    ctn_optim *trains_judge, *trains_generator;
    ctn_dataset *data;
    ctn_loader *loader;
    ctn_trainer *tr;
} gan;

static float points[SAMPLES][2];

static ctn_tensor *made(gan *g, ctn_step *s)
{
    const int64_t n = ctn_step_batch(s)->n;
    ctn_tensor *z = ctn_random_normal(g->ctx, 0, 1, CTN_F32, CTN_SHAPE(n, NOISE));
    return ctn_call(g->generator, z);
}

/* The logits of the judge compared with one answer for all. */
static ctn_tensor *judged(gan *g, ctn_tensor *x, double answer)
{
    ctn_tensor *y = ctn_call(g->judge, x);
    ctn_tensor *t = y ? ctn_full(g->ctx, answer, CTN_F32, CTN_SHAPE(ctn_dim(y, 0), 1)) : NULL;
    return ctn_sigmoid_cross_entropy(y, t, CTN_MEAN);
}

static ctn_tensor *judge_loss(void *self, ctn_step *s)
{
    gan *g = self;
    ctn_report(s, "real", ctn_mean(ctn_call(g->judge, ctn_step_input(s, 0)), CTN_ALL_AXES, 0));
    return ctn_add(judged(g, ctn_step_input(s, 0), 1), judged(g, ctn_detach(made(g, s)), 0));
}

static ctn_tensor *generator_loss(void *self, ctn_step *s)
{
    return judged(self, made(self, s), 1);
}

/* batch: samples in a batch, of which a step has `accumulate`. */
static void gan_make(gan *g, int64_t iterations, int64_t accumulate, int64_t batch)
{
    const int64_t from_noise[] = {NOISE, 16, 2}, to_answer[] = {2, 16, 1};
    const ctn_field field = {.dtype = CTN_F32, .ndim = 1, .shape = {2}};
    ctn_sampler *order;
    OK(ctn_context_new(&g->ctx, CTN_OPT(ctn_context_opt, .seed = 3, .threads = 1)));
    OK(ctn_zoo_mlp(&g->generator, g->ctx, CTN_OPT(ctn_mlp_opt, .n = 3, .size = from_noise)));
    OK(ctn_zoo_mlp(&g->judge, g->ctx, CTN_OPT(ctn_mlp_opt, .n = 3, .size = to_answer)));
    ctn_module *both[2] = {g->generator, g->judge};
    OK(ctn_module_list_new(&g->net, g->ctx, 2, both));
    OK(ctn_adam_new(&g->trains_judge, ctn_params(g->judge), NULL));
    OK(ctn_adam_new(&g->trains_generator, ctn_params(g->generator), NULL));
    for (int i = 0; i < SAMPLES; i++) {
        points[i][0] = (float)(i % 7) / 7;
        points[i][1] = (float)(i % 5) / 5 + 1;
    }
    OK(ctn_arrays_open(&g->data, SAMPLES, 1, &field, (const void *[]){points}));
    OK(ctn_sampler_shuffled(&order, SAMPLES, 1));
    OK(ctn_loader_new(&g->loader, g->data, order, CTN_OPT(ctn_loader_opt, .batch = batch)));
    ctn_sampler_free(order);
    OK(ctn_trainer_new(&g->tr, g->trains_judge, g->loader, judge_loss, g,
                       CTN_OPT(ctn_trainer_opt, .net = g->net, .iterations = iterations,
                               .accumulate = accumulate)));
    OK(ctn_trainer_add_optim(g->tr, "generator", g->trains_generator, generator_loss, g));
}

static void gan_new(gan *g, int64_t iterations, int64_t accumulate)
{
    gan_make(g, iterations, accumulate, BATCH);
}

static void gan_free(gan *g)
{
    ctn_trainer_free(g->tr);
    ctn_loader_free(g->loader);
    ctn_dataset_free(g->data);
    ctn_optim_free(g->trains_generator);
    ctn_optim_free(g->trains_judge);
    ctn_module_free(g->net);
    ctn_context_free(g->ctx);
}

/* ---- everything that was trained, as bytes --------------------------------------------------- */

typedef struct {
    size_t n;
    char at[STATE * 8];
} bytes;

static ctn_status collect(void *user, const char *name, ctn_dtype dtype, int ndim,
                          const int64_t *dims, void *data)
{
    bytes *b = user;
    size_t n = ctn_dtype_size(dtype);
    (void)name;
    for (int i = 0; i < ndim; i++) n *= (size_t)dims[i];
    assert_true(b->n + n <= sizeof b->at);
    memcpy(b->at + b->n, data, n);
    b->n += n;
    return CTN_OK;
}

static void state_of(gan *g, bytes *b)
{
    b->n = 0;
    OK(ctn_module_visit(g->net, collect, b));
    OK(ctn_optim_visit(g->trains_judge, collect, b));
    OK(ctn_optim_visit(g->trains_generator, collect, b));
}

/* The second optimizer sees what the first has done, for all batches of the step. */
static void test_accumulate(void **unused)
{
    (void)unused;
    static bytes net[2];
    for (int64_t accumulate = 1; accumulate <= BATCH; accumulate *= 2) {
        bytes *b = &net[accumulate > 1];
        gan g = {0};
        gan_make(&g, STEPS, accumulate, BATCH / accumulate);
        OK(ctn_trainer_run(g.tr));
        b->n = 0;
        OK(ctn_module_visit(g.net, collect, b));
        gan_free(&g);
        const float *one = (const float *)(const void *)net[0].at;
        const float *now = (const float *)(const void *)b->at;
        for (size_t i = 0; i < net[0].n / sizeof *one; i++)
            if (!(fabsf(now[i] - one[i]) < 1e-5f))
                fail_msg("%d batches: weight %d is %g, expected %g", (int)accumulate, (int)i,
                         (double)now[i], (double)one[i]);
    }
}

static void check_resumed(int64_t at, int64_t accumulate)
{
    static bytes whole, resumed;
    gan g = {0};
    gan_new(&g, STEPS, accumulate);
    OK(ctn_trainer_run(g.tr));
    state_of(&g, &whole);
    assert_true(whole.n > 3 * 100 * sizeof(float));
    gan_free(&g);

    gan_new(&g, at, accumulate);
    OK(ctn_trainer_run(g.tr));
    OK(ctn_trainer_save(g.tr, "gan-state"));
    gan_free(&g);

    gan_new(&g, STEPS, accumulate);
    OK(ctn_trainer_load(g.tr, "gan-state"));
    OK(ctn_trainer_run(g.tr));
    state_of(&g, &resumed);
    gan_free(&g);
    assert_int_equal(resumed.n, whole.n);
    assert_memory_equal(resumed.at, whole.at, whole.n);
}

static void test_resume(void **unused)
{
    (void)unused;
    check_resumed(1, 1);
    check_resumed(9, 1); /* in the second epoch */
    check_resumed(5, 2);
}

static void test_both_learn(void **unused)
{
    (void)unused;
    gan g = {0};
    static bytes before, after;
    gan_new(&g, STEPS, 1);
    state_of(&g, &before);
    OK(ctn_trainer_run(g.tr));
    state_of(&g, &after);
    assert_int_equal(ctn_optim_steps(g.trains_judge), STEPS);
    assert_int_equal(ctn_optim_steps(g.trains_generator), STEPS);
    assert_true(memcmp(before.at, after.at, after.n) != 0);
    gan_free(&g);
}

static void test_refused(void **unused)
{
    (void)unused;
    gan g = {0};
    gan_new(&g, STEPS, 1);
    ctn_module *free_net = NULL;
    ctn_optim *free_optim = NULL;
    OK(ctn_zoo_mlp(&free_net, g.ctx,
                   CTN_OPT(ctn_mlp_opt, .n = 2, .size = (const int64_t[]){2, 1})));
    OK(ctn_adam_new(&free_optim, ctn_params(free_net), NULL));
    assert_int_equal(ctn_trainer_add_optim(g.tr, "generator", g.trains_judge, judge_loss, &g),
                     CTN_EARG);
    assert_int_equal(ctn_trainer_add_optim(g.tr, "loss", g.trains_judge, judge_loss, &g), CTN_EARG);
    assert_int_equal(ctn_trainer_add_optim(g.tr, "new", NULL, judge_loss, &g), CTN_EARG);
    /* A taken name, a taken optimizer; a third one is accepted if both are new. */
    assert_int_equal(ctn_trainer_add_optim(g.tr, "generator", free_optim, judge_loss, &g),
                     CTN_EARG);
    assert_int_equal(ctn_trainer_add_optim(g.tr, "new", g.trains_generator, judge_loss, &g),
                     CTN_EARG);
    OK(ctn_trainer_add_optim(g.tr, "new", free_optim, judge_loss, &g));
    ctn_error_clear();
    ctn_trainer_free(g.tr);
    g.tr = NULL;
    ctn_optim_free(free_optim);
    ctn_module_free(free_net);
    gan_free(&g);
}

static char folder[] = "/tmp/catena-gan-XXXXXX";

static int enter(void **unused)
{
    (void)unused;
    return mkdtemp(folder) ? chdir(folder) : -1;
}

static int leave(void **unused)
{
    char command[64];
    (void)unused;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") == 0 ? system(command) : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accumulate),
        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_both_learn),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
#endif
