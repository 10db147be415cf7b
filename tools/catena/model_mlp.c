/* SPDX-License-Identifier: Apache-2.0
 *
 * The perceptron of the benchmarks, written as a user would. Values are made here and not read, so that
 * the command needs no data; they are the same in every run.
 */
#include "model_mlp.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <catena/ops.h>

static const int64_t width[MLP_LAYERS + 1] = {784, 1000, 1000, 10};

static ctn_tensor *forward(void *self, ctn_module *m, ctn_tensor *x)
{
    (void)self;
    for (int l = 0; l < MLP_LAYERS; l++) {
        x = ctn_call(ctn_module_child(m, l), x);
        if (l + 1 < MLP_LAYERS) x = ctn_relu(x);
    }
    return x;
}

/* Weights uniform in +-scale/sqrt(in), biases 0. */
static ctn_status add_layer(ctn_module *net, ctn_context *ctx, int l, double scale)
{
    char name[32];
    ctn_module *fc = NULL;
    double limit = scale / sqrt((double)width[l]);
    const ctn_init *weight =
        CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = -limit, .high = limit);
    const ctn_init *bias = CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT);
    CTN_TRY(ctn_linear_new(&fc, ctx, width[l], width[l + 1],
                           CTN_OPT(ctn_linear_opt, .weight = weight, .bias = bias)));
    snprintf(name, sizeof name, "fc%d", l + 1);
    ctn_status st = ctn_module_add(net, name, fc);
    if (st < 0) ctn_module_free(fc);
    return st;
}

/* Uniform in [0, 1): a 64-bit linear congruence is random enough for a benchmark's data. */
static float uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * 0x1p-24f;
}

static ctn_status batch_new(mlp *m, float scale)
{
    uint64_t state = 1;
    size_t n = MLP_BATCH * (size_t)width[0];
    m->x = aligned_alloc(64, n * sizeof *m->x);
    m->t = malloc(MLP_BATCH * sizeof *m->t);
    if (!m->x || !m->t) return ctn_fail(CTN_ENOMEM, "no memory for a batch");
    for (size_t i = 0; i < n; i++) m->x[i] = uniform(&state) * scale;
    for (int i = 0; i < MLP_BATCH; i++)
        m->t[i] = (int64_t)(uniform(&state) * (float)width[MLP_LAYERS]);
    return CTN_OK;
}

ctn_status mlp_new(mlp *m, ctn_context *ctx, int tiny)
{
    /* Tiny: x and the first weights are normal numbers around 1e-20, so that every product of them is
     * subnormal. The later weights are ordinary: activations stay subnormal from layer to layer, and
     * so do the gradients of the later weights, which are products with activations; those of the
     * first are about 1e-22 and their squares, Adam's second moments, are subnormal too. A rate of
     * 1e-42 keeps the biases, whose gradients are ordinary, from lifting everything up again. */
    *m = (mlp){.ctx = ctx};
    CTN_TRY(ctn_module_new(&m->net, ctx, forward, NULL, NULL));
    for (int l = 0; l < MLP_LAYERS; l++)
        CTN_TRY(add_layer(m->net, ctx, l, tiny && l == 0 ? 1e-19 : 1.0));
    CTN_TRY(batch_new(m, tiny ? 1e-20f : 1.0f));
    return ctn_adam_new(&m->opt, ctn_params(m->net),
                        tiny ? CTN_OPT(ctn_adam_opt, .lr = 1e-42) : NULL);
}

void mlp_free(mlp *m)
{
    ctn_optim_free(m->opt);
    ctn_module_free(m->net);
    free(m->x);
    free(m->t);
}

ctn_tensor *mlp_loss(mlp *m)
{
    ctn_tensor *x = ctn_input(m->ctx, m->x, CTN_F32, CTN_SHAPE(MLP_BATCH, width[0]));
    ctn_tensor *t = ctn_input(m->ctx, m->t, CTN_I64, CTN_SHAPE(MLP_BATCH));
    return ctn_softmax_cross_entropy(ctn_call(m->net, x), t);
}

ctn_status mlp_step(mlp *m, double *loss)
{
    CTN_TRY(ctn_scope_begin(m->ctx));
    ctn_tensor *y = mlp_loss(m);
    ctn_status st = ctn_backward(m->opt, y);
    if (st == CTN_OK) st = ctn_optim_step(m->opt);
    if (st == CTN_OK) {
        *loss = ctn_item(y);
        st = ctn_error_status();
    }
    ctn_status end = ctn_scope_end(m->ctx);
    return st < 0 ? st : end;
}
