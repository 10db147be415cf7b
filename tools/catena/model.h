/* SPDX-License-Identifier: Apache-2.0
 *
 * The networks that bench and explain train, each with one synthetic batch: the 784-1000-1000-10 perceptron
 * with Adam, and those of the zoo with momentum SGD.
 */
#ifndef CATENA_BENCH_MODEL_H
#define CATENA_BENCH_MODEL_H

#include <catena/nn.h>
#include <catena/optim.h>

typedef struct {
    const char *name;
    int64_t batch; /* 0: the model's usual one */
    int64_t size;  /* of images; 0: the usual one */
    int recompute; /* every block */
    int tiny;      /* mlp: so small that activations, weight gradients and Adam's second moments are
                    * subnormal and stay so */
} model_opt;

typedef struct {
    ctn_context *ctx; /* borrowed */
    const char *name;
    ctn_module *net;
    ctn_optim *opt;
    int64_t batch;
    int ndim; /* of the input */
    int64_t shape[5];
    int tokens; /* the input is i64 tokens, each of which has a label */
    int field;  /* regression: the target is shaped as the input */
    void *x;
    void *t;
    int64_t labels;
} model;

/* Names that model_new takes, ended by NULL. Result: borrowed forever. */
const char *const *model_names(void);
/* Make network, optimizer and batch. On failure what was made is in m: model_free. */
ctn_status model_new(model *m, ctn_context *ctx, const model_opt *opt);
void model_free(model *m);
/* Record forward and loss in the open scope. Result: scope. */
ctn_tensor *model_loss(model *m);
/* Another batch of at most model_new's, of images (or sequences) of at most its size. */
void model_resize(model *m, int64_t batch, int64_t size);
/* Mark the modules of modules two levels down, blocks of stages and layers of a list, to be computed again
 * for their gradients. */
ctn_status recompute_blocks(ctn_module *net);
/* Uniform in [0, 1), a linear congruence. */
float model_uniform(uint64_t *state);
/* One training step in a scope of its own. */
ctn_status model_step(model *m, double *loss);

#endif
