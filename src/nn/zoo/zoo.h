/* SPDX-License-Identifier: Apache-2.0
 *
 * What the families of the zoo share: creating a module with its struct, adding a child right after
 * its constructor, and the convolution and normalisation of torchvision's image models. If building
 * a network fails halfway, ctn__zoo_end frees it from its root.
 */
#ifndef CTN_NN_ZOO_ZOO_H
#define CTN_NN_ZOO_ZOO_H

#include <catena/ops.h>
#include <catena/zoo.h>

#include "nn/nn.h"

/* Create a module that owns `bytes` zeroed bytes as its self, whose first `refs` members are
 * pointers to modules and variables below it (ctn__module_own). *m is NULL on failure. */
ctn_status ctn__zoo_begin(ctn_module **m, ctn_context *ctx, ctn_forward_fn forward, size_t bytes,
                          size_t refs);
/* Free *m and set it to NULL if st is an error. Returns st. */
ctn_status ctn__zoo_end(ctn_module **m, ctn_status st);

/* Add *child to m; st is what its constructor returned. On success m owns it, on failure it is
 * freed and NULL. */
ctn_status ctn__zoo_put(ctn_module *m, const char *name, ctn_status st, ctn_module **child);
/* The same, with a number as the name. */
ctn_status ctn__zoo_put_at(ctn_module *m, int number, ctn_status st, ctn_module **child);

/* A square convolution of images without bias, padded by half the kernel. Weights are normal with
 * variance 2 / (out * kernel * kernel). child may be NULL. */
ctn_status ctn__zoo_conv(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                         int64_t out, int64_t kernel, int64_t stride, int64_t groups);
ctn_status ctn__zoo_norm(ctn_module **child, ctn_module *m, const char *name, int64_t channels);

/* Replace 0, an option that was not given, by `usual`. Errors: EARG if it is negative. */
ctn_status ctn__zoo_default(const char *who, const char *what, int64_t *v, int64_t usual);

#endif
