/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks that bench and explain train, as a user would train them. The data is synthetic,
 * so the commands need no files, and it is the same in every run.
 */
#include "model.h"

#include "finetune.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <catena/ops.h>
#include <catena/zoo.h>

/* ---- the perceptron -------------------------------------------------------------------------- */

enum { MLP_LAYERS = 3 };
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

static ctn_status mlp_new(model *m, const model_opt *opt)
{
    const int tiny = opt->tiny;
    /* Tiny: x and the first weights are normal numbers around 1e-20, so that every product of
     * them is subnormal. The later weights have ordinary values, so activations stay subnormal
     * from layer to layer, and so do the gradients of the later weights, which are products with
     * activations. The gradients of the first weights are about 1e-22, and their squares, Adam's
     * second moments, are subnormal too. The biases have ordinary gradients; a learning rate of
     * 1e-42 keeps them from making everything normal again. */
    CTN_TRY(ctn_module_new(&m->net, m->ctx, forward, NULL, NULL));
    for (int l = 0; l < MLP_LAYERS; l++)
        CTN_TRY(add_layer(m->net, m->ctx, l, tiny && l == 0 ? 1e-19 : 1.0));
    if (opt->freeze) CTN_TRY(finetune_freeze(opt->freeze, m->net));
    m->states = 2;
    return ctn_adam_new(&m->opt, ctn_params(m->net),
                        tiny ? CTN_OPT(ctn_adam_opt, .lr = 1e-42) : NULL);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* Input shapes of the networks in the zoo, by name prefix; the last entry matches all names. */
static const struct input {
    const char *name;
    int64_t batch, channels, size, classes;
    int tokens; /* one in this many tokens has a target; 0: the input is not tokens */
    int field;
} inputs[] = {
    {"mlp", 100, 0, 784, 10, 0, 0},    {"lenet5", 100, 1, 28, 10, 0, 0},
    {"resnet20", 64, 3, 32, 10, 0, 0}, {"resnet32", 64, 3, 32, 10, 0, 0},
    {"resnet44", 64, 3, 32, 10, 0, 0}, {"resnet56", 64, 3, 32, 10, 0, 0},
    {"unet", 8, 1, 128, 0, 0, 1},      {"fno", 8, 1, 128, 0, 0, 1},
    {"gpt2", 4, 0, 256, 50257, 1, 0},  {"gpt", 8, 0, 128, 256, 1, 0},
    {"bert", 4, 0, 256, 30522, 7, 0},  {"", 16, 3, 224, 1000, 0, 0},
};

static const struct input *input_of(const char *name)
{
    const struct input *i = inputs;
    while (strncmp(i->name, name, strlen(i->name)) != 0) i++;
    return i;
}

void model_usual(const char *name, int64_t *channels, int64_t *size, int64_t *classes)
{
    const struct input *i = input_of(name);
    *channels = i->channels;
    *size = i->size;
    *classes = i->classes;
}

/* Uniform in [0, 1). A 64-bit linear congruential generator is good enough for benchmark data. */
float model_uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (float)(*state >> 40) * 0x1p-24f;
}

static ctn_status batch_new(model *m, const struct input *in, float scale)
{
    uint64_t state = 1;
    int64_t n = 1;
    for (int i = 0; i < m->ndim; i++) n *= m->shape[i];
    m->labels = in->field || in->tokens ? n : m->batch;
    m->x = aligned_alloc(64, ((size_t)n * 8 + 63) / 64 * 64);
    m->t = aligned_alloc(64, ((size_t)m->labels * 8 + 63) / 64 * 64);
    if (!m->x || !m->t) return ctn_fail(CTN_ENOMEM, "no memory for a batch");
    float *x = m->x, *ft = m->t;
    int64_t *tokens = m->x, *t = m->t;
    for (int64_t i = 0; i < n; i++) {
        if (in->tokens) tokens[i] = (int64_t)(model_uniform(&state) * (float)in->classes);
        else x[i] = model_uniform(&state) * scale;
    }
    for (int64_t i = 0; i < m->labels; i++) {
        if (in->field) ft[i] = model_uniform(&state);
        else if (in->tokens > 1 && i % in->tokens) t[i] = -100;
        else t[i] = (int64_t)(model_uniform(&state) * (float)in->classes);
    }
    return CTN_OK;
}

/* ---- the model ------------------------------------------------------------------------------- */

const char *const *model_names(void)
{
    return ctn_zoo_names();
}

ctn_status recompute_blocks(ctn_module *net)
{
    for (int i = 0; i < ctn_module_children(net); i++) {
        ctn_module *stage = ctn_module_child(net, i);
        for (int k = 0; k < ctn_module_children(stage); k++)
            if (ctn_module_children(ctn_module_child(stage, k)) > 0)
                CTN_TRY(ctn_module_set_recompute(ctn_module_child(stage, k), 1));
    }
    return CTN_OK;
}

ctn_status model_new(model *m, ctn_context *ctx, const model_opt *opt)
{
    const struct input *in = input_of(opt->name);
    *m = (model){.ctx = ctx,
                 .name = opt->name,
                 .batch = opt->batch ? opt->batch : in->batch,
                 .tokens = in->tokens,
                 .field = in->field};
    int64_t size = opt->size ? opt->size : in->size;
    m->shape[m->ndim++] = m->batch;
    if (in->channels) m->shape[m->ndim++] = in->channels;
    m->shape[m->ndim++] = size;
    if (in->channels) m->shape[m->ndim++] = size;
    CTN_TRY(batch_new(m, in, opt->tiny ? 1e-20f : 1.0f));
    if (strcmp(opt->name, "mlp") == 0) return mlp_new(m, opt);
    CTN_TRY(ctn_zoo_new(&m->net, ctx, opt->name, NULL));
    if (opt->recompute) CTN_TRY(recompute_blocks(m->net));
    if (opt->lora > 0)
        CTN_TRY(
            ctn_lora_add(m->net, CTN_OPT(ctn_lora_opt, .rank = opt->lora, .base = opt->lora_base)));
    if (opt->inference) return CTN_OK;
    if (opt->freeze) CTN_TRY(finetune_freeze(opt->freeze, m->net));
    m->states = m->tokens ? 2 : 1;
    if (m->tokens)
        return ctn_adamw_new(&m->opt, ctn_params(m->net), CTN_OPT(ctn_adam_opt, .lr = 1e-4));
    return ctn_sgd_new(&m->opt, ctn_params(m->net),
                       CTN_OPT(ctn_sgd_opt, .lr = 0.1, .momentum = 0.9, .decay = 1e-4));
}

void model_resize(model *m, int64_t batch, int64_t size)
{
    m->labels = m->labels / m->batch * batch;
    m->batch = m->shape[0] = batch;
    for (int i = m->ndim - 1; i > 0 && i >= m->ndim - 2; i--)
        if (i > 1 || m->ndim == 2) m->shape[i] = size;
}

void model_free(model *m)
{
    ctn_optim_free(m->opt);
    ctn_module_free(m->net);
    free(m->x);
    free(m->t);
}

ctn_tensor *token_loss(ctn_module *net, ctn_tensor *tokens, ctn_tensor *targets)
{
    return ctn_module_predicts(net) == CTN_PREDICTS_MASKED
               ? ctn_call_multi(net, tokens, NULL, NULL, targets).t[0]
               : ctn_call_multi(net, tokens, targets).t[0];
}

static ctn_tensor *input(model *m)
{
    ctn_tensor *x = ctn_input(m->ctx, m->x, m->tokens ? CTN_I64 : CTN_F32, m->ndim, m->shape);
    return m->tokens ? x : ctn_cast(x, ctn_context_float_type(m->ctx));
}

ctn_tensor *model_forward(model *m)
{
    return ctn_cast(ctn_call(m->net, input(m)), CTN_F32);
}

ctn_tensor *model_loss(model *m)
{
    const ctn_dtype real = ctn_context_float_type(m->ctx);
    ctn_tensor *x = input(m);
    if (m->tokens)
        return token_loss(m->net, x, ctn_input(m->ctx, m->t, CTN_I64, m->ndim, m->shape));
    ctn_tensor *y = ctn_call(m->net, x);
    if (m->field)
        return ctn_mean_squared_error(
            y, ctn_cast(ctn_input(m->ctx, m->t, CTN_F32, m->ndim, m->shape), real), CTN_MEAN);
    ctn_tensor *t = ctn_input(m->ctx, m->t, CTN_I64, CTN_SHAPE(m->labels));
    return ctn_softmax_cross_entropy(y, t);
}

ctn_status model_step(model *m, double *loss)
{
    CTN_TRY(ctn_scope_begin(m->ctx));
    ctn_tensor *y = model_loss(m);
    ctn_status st = ctn_backward(m->opt, y);
    if (st == CTN_OK) st = ctn_optim_step(m->opt);
    if (st == CTN_OK) {
        *loss = ctn_item(y);
        st = ctn_error_status();
    }
    ctn_status end = ctn_scope_end(m->ctx);
    return st < 0 ? st : end;
}
