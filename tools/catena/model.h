/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks that bench and explain train, each on one synthetic batch: the 784-1000-1000-10
 * MLP with Adam, and the networks of the zoo with momentum SGD.
 */
#ifndef CATENA_BENCH_MODEL_H
#define CATENA_BENCH_MODEL_H

#include <catena/nn.h>
#include <catena/optim.h>

#include "cli.h"

typedef struct {
    const char *name;
    int64_t batch;       /* 0: the network's usual one */
    int64_t size;        /* of images or sequences; 0: the network's usual one */
    int recompute;       /* recompute every block in the backward pass */
    int64_t lora;        /* rank of adapters that are trained instead of the weights; 0: none */
    ctn_dtype lora_base; /* type of the weights under them */
    int inference;       /* make no optimizer */
    const args *freeze;  /* options of finetune.c; NULL: none */
    /* mlp: values so small that activations, weight gradients and Adam's second moments are and
     * stay subnormal. */
    int tiny;
} model_opt;

typedef struct {
    ctn_context *ctx; /* borrowed */
    const char *name;
    ctn_module *net;
    ctn_optim *opt;
    int states; /* arrays of state that opt has for a parameter */
    int64_t batch;
    int ndim; /* of the input */
    int64_t shape[5];
    int tokens; /* the input is i64 tokens, each with a label */
    int field;  /* regression: the target has the shape of the input */
    void *x;
    void *t;
    int64_t labels;
} model;

/* Names that model_new accepts, NULL-terminated. Result: borrowed forever. */
const char *const *model_names(void);
/* Usual channels and size of the inputs of a network, and its outputs. */
void model_usual(const char *name, int64_t *channels, int64_t *size, int64_t *classes);
/* Make network, optimizer and batch. Call model_free after a failure too. */
ctn_status model_new(model *m, ctn_context *ctx, const model_opt *opt);
void model_free(model *m);
/* The mean loss as a language model computes it itself, without the logits of all tokens at once.
 * Result: scope. */
ctn_tensor *token_loss(ctn_module *net, ctn_tensor *tokens, ctn_tensor *targets);
/* Record the forward pass in the open scope. Result: scope. */
ctn_tensor *model_forward(model *m);
/* Record the forward pass and the loss in the open scope. Result: scope. */
ctn_tensor *model_loss(model *m);
/* Change the batch size and the size of images (or sequences); neither may exceed that of
 * model_new. */
void model_resize(model *m, int64_t batch, int64_t size);
/* Mark modules two levels down that have children (blocks of stages, layers of a list) for
 * recomputation in the backward pass. */
ctn_status recompute_blocks(ctn_module *net);
/* Uniform in [0, 1), from a linear congruential generator. */
float model_uniform(uint64_t *state);
/* One training step in its own scope. */
ctn_status model_step(model *m, double *loss);

#endif
