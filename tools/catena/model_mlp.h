/* SPDX-License-Identifier: Apache-2.0
 *
 * The 784-1000-1000-10 perceptron with one synthetic batch, as bench and explain train it.
 */
#ifndef CATENA_MODEL_MLP_H
#define CATENA_MODEL_MLP_H

#include <catena/nn.h>
#include <catena/optim.h>

enum { MLP_LAYERS = 3, MLP_BATCH = 100 };

typedef struct {
    ctn_context *ctx; /* borrowed */
    ctn_module *net;
    ctn_optim *opt;
    float *x;   /* (MLP_BATCH, 784) */
    int64_t *t; /* (MLP_BATCH) */
} mlp;

/* Make model, Adam and batch. tiny: values so small that activations, weight gradients and Adam's second
 * moments are subnormal and stay so. On failure what was made is in m: mlp_free. */
ctn_status mlp_new(mlp *m, ctn_context *ctx, int tiny);
void mlp_free(mlp *m);
/* Record forward and loss in the open scope. Result: scope. */
ctn_tensor *mlp_loss(mlp *m);
/* One training step in a scope of its own. */
ctn_status mlp_step(mlp *m, double *loss);

#endif
