/* SPDX-License-Identifier: Apache-2.0
 *
 * A small classification problem for tests of the trainer: 23 samples in batches of 4 (the last
 * has 3), a network of two layers with dropout, Adam, and 10 samples for evaluation.
 */
#ifndef TRAIN_CASE_H
#define TRAIN_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <catena/ops.h>
#include <catena/train.h>

#include "support/ok.h"

#include <cmocka.h>

#define FAILS(call, want, part)                                                                  \
    do {                                                                                         \
        ctn_error_clear();                                                                       \
        ctn_status st_ = (call);                                                                 \
        if (st_ != (want) || !strstr(ctn_error_message(), part))                                 \
            fail_msg("%s: status %d, expected %d; \"%s\" not in \"%s\"", #call, st_, want, part, \
                     ctn_error_message());                                                       \
        ctn_error_clear();                                                                       \
    } while (0)

enum { SAMPLES = 23, BATCH = 4, WIDTH = 5, CLASSES = 3, EVAL = 10 };

typedef struct {
    double dropout;
    ctn_mode mode;
    int64_t batch; /* 0: BATCH */
    int loader_threads;
    int sequential;
    int sgd;
    double lr;   /* 0: 0.01 */
    int scale;   /* dynamic loss scale */
    int threads; /* of the context; 0: 1 */
} train_opt;

typedef struct {
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *optim;
    ctn_dataset *data, *eval_data;
    ctn_loader *loader, *eval;
    float spoil; /* added to the loss, for example a NaN */
} train_case;

static float train_x[SAMPLES][WIDTH];
static int64_t train_t[SAMPLES];

static void train_fill(void)
{
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < WIDTH; k++)
            train_x[i][k] = (float)((i * 37 + k * 101) * 7919 % 257 - 128) / 128;
        train_t[i] = (i * 7 + i / 3) % CLASSES;
    }
}

static ctn_tensor *train_loss(void *self, ctn_step *s)
{
    train_case *c = self;
    ctn_tensor *y = ctn_call(c->net, ctn_step_input(s, 0)), *t = ctn_step_input(s, 1);
    ctn_report(s, "accuracy", ctn_accuracy(y, t, 1));
    return ctn_shift(ctn_softmax_cross_entropy(y, t), (double)c->spoil);
}

static ctn_dataset *train_data(int count)
{
    ctn_dataset *ds = NULL;
    const ctn_field field[2] = {{.dtype = CTN_F32, .ndim = 1, .shape = {WIDTH}},
                                {.dtype = CTN_I64}};
    const void *const data[2] = {train_x, train_t};
    OK(ctn_arrays_open(&ds, count, 2, field, data));
    return ds;
}

static void train_net(train_case *c, double dropout)
{
    ctn_module *m[4] = {0};
    OK(ctn_linear_new(&m[0], c->ctx, WIDTH, 8, NULL));
    OK(ctn_activation_new(&m[1], c->ctx, ctn_tanh_at));
    OK(ctn_dropout_new(&m[2], c->ctx, dropout));
    OK(ctn_linear_new(&m[3], c->ctx, 8, CLASSES, NULL));
    OK(ctn_sequential_new(&c->net, c->ctx, 4, m));
}

static void train_case_new(train_case *c, const train_opt *o)
{
    ctn_sampler *s = NULL;
    const double lr = o->lr > 0 ? o->lr : 0.01;
    *c = (train_case){0};
    train_fill();
    OK(ctn_context_new(&c->ctx, CTN_OPT(ctn_context_opt, .seed = 7, .mode = o->mode,
                                        .threads = o->threads ? o->threads : 1)));
    train_net(c, o->dropout);
    if (o->sgd) OK(ctn_sgd_new(&c->optim, ctn_params(c->net), CTN_OPT(ctn_sgd_opt, .lr = lr)));
    else OK(ctn_adam_new(&c->optim, ctn_params(c->net), CTN_OPT(ctn_adam_opt, .lr = lr)));
    if (o->scale)
        OK(ctn_optim_set_loss_scale(c->optim, CTN_OPT(ctn_loss_scale_opt, .dynamic = 1,
                                                      .scale = 1024, .interval = 3)));
    c->data = train_data(SAMPLES);
    c->eval_data = train_data(EVAL);
    if (o->sequential) OK(ctn_sampler_sequential(&s, SAMPLES));
    else OK(ctn_sampler_shuffled(&s, SAMPLES, 3));
    OK(ctn_loader_new(&c->loader, c->data, s,
                      CTN_OPT(ctn_loader_opt, .batch = o->batch ? o->batch : BATCH,
                              .threads = o->loader_threads)));
    ctn_sampler_free(s);
    OK(ctn_sampler_sequential(&s, EVAL));
    OK(ctn_loader_new(&c->eval, c->eval_data, s, CTN_OPT(ctn_loader_opt, .batch = BATCH)));
    ctn_sampler_free(s);
}

static void train_case_free(train_case *c)
{
    ctn_loader_free(c->loader);
    ctn_loader_free(c->eval);
    ctn_dataset_free(c->data);
    ctn_dataset_free(c->eval_data);
    ctn_optim_free(c->optim);
    ctn_module_free(c->net);
    ctn_context_free(c->ctx);
}

/* All parameters, concatenated. */
enum { WEIGHTS = WIDTH * 8 + 8 + 8 * CLASSES + CLASSES };
static void train_weights(const train_case *c, float out[WEIGHTS])
{
    const ctn_vars p = ctn_params(c->net);
    size_t at = 0;
    for (int i = 0; i < p.n; i++) {
        const ctn_desc *d = ctn_var_desc(p.var[i]);
        size_t n = 1;
        for (int k = 0; k < d->ndim; k++) n *= (size_t)d->dim[k];
        OK(ctn_var_get(p.var[i], out + at, n * sizeof(float)));
        at += n;
    }
    assert_int_equal(at, WEIGHTS);
}

#endif
