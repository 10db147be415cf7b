/* SPDX-License-Identifier: Apache-2.0
 *
 * The windows of convolutions and pooling.
 */
#ifndef CTN_ONNX_WINDOW_H
#define CTN_ONNX_WINDOW_H

#include "onnx/onnx.h"

typedef struct {
    int n; /* spatial dimensions */
    int64_t kernel[CTN_MAX_SPATIAL], stride[CTN_MAX_SPATIAL], dilation[CTN_MAX_SPATIAL];
    int64_t before[CTN_MAX_SPATIAL], after[CTN_MAX_SPATIAL]; /* padding */
} ctn__onnx_window;

/* The windows over x (N,C,...) from the attributes of the node. kernel: sizes of the weight, for a
 * node without kernel_shape; NULL: none. Errors: ESHAPE, EFORMAT. */
ctn_status ctn__onnx_window_of(ctn__onnx_call *c, const ctn_desc *x, const int64_t *kernel,
                               ctn__onnx_window *w);

#endif
