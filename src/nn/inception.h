/* SPDX-License-Identifier: Apache-2.0
 *
 * What Inception blocks and GoogLeNet share (inception.c).
 */
#ifndef CTN_NN_INCEPTION_H
#define CTN_NN_INCEPTION_H

#include "nn/zoo/zoo.h"

/* A square convolution, padded by half the kernel, and ReLU. Children: conv, and bn if there is
 * batch normalisation between them. */
typedef struct {
    int64_t in, out, kernel, stride;
    bool batch_norm;
} ctn__conv_relu;
ctn_status ctn__conv_relu_new(ctn_module **m, ctn_context *ctx, const ctn__conv_relu *o);

#endif
