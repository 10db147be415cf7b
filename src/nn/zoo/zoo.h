/* SPDX-License-Identifier: Apache-2.0
 *
 * What the families of the zoo share: a module with its struct, a child made and put in its place,
 * the convolution and normalisation of torchvision's image models. A network that fails halfway is
 * freed from its root: ctn__zoo_end.
 */
#ifndef CTN_NN_ZOO_ZOO_H
#define CTN_NN_ZOO_ZOO_H

#include <catena/ops.h>
#include <catena/zoo.h>

#include "nn/nn.h"

/* A module that owns `bytes` zero bytes as its self (0: none); *m NULL on failure. */
ctn_status ctn__zoo_begin(ctn_module **m, ctn_context *ctx, ctn_forward_fn forward, size_t bytes);
/* *m freed and NULL if st is an error. Returns st. */
ctn_status ctn__zoo_end(ctn_module **m, ctn_status st);

/* Put *child, left by a constructor that returned st, into m: it is m's then, or gone and NULL. */
ctn_status ctn__zoo_put(ctn_module *m, const char *name, ctn_status st, ctn_module **child);
/* The same under a number. */
ctn_status ctn__zoo_put_at(ctn_module *m, int number, ctn_status st, ctn_module **child);

/* A square convolution of images without bias, padded by half the kernel, normal with variance 2 /
 * (out times kernel); child may be NULL. */
ctn_status ctn__zoo_conv(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                         int64_t out, int64_t kernel, int64_t stride, int64_t groups);
ctn_status ctn__zoo_norm(ctn_module **child, ctn_module *m, const char *name, int64_t channels);

/* An option: 0 becomes usual, a negative one is EARG. */
ctn_status ctn__zoo_default(const char *who, const char *what, int64_t *v, int64_t usual);

#endif
