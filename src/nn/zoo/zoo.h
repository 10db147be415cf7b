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

/* Far more layers than any published network has; they still make a network within a second. */
enum { CTN__ZOO_LAYERS = 4096 };

/* Megabytes of parameters that config.json may ask for; 0: the memory of the host. Tests set it. */
extern double ctn__config_mb;

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

/* A linear layer with normal weights and a bias of zeros, or none. */
ctn_status ctn__zoo_linear(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                           int64_t out, double std, bool bias);
ctn_status ctn__zoo_embedding(ctn_module **child, ctn_module *m, const char *name, int64_t rows,
                              int64_t width, double std);
/* The matrix (V,C) of the logits, lm_head.weight: a variable of its own, or `tied` under a second
 * name if that is not NULL. */
ctn_status ctn__zoo_head(ctn_var **head, ctn_module *m, int64_t vocabulary, int64_t width,
                         ctn_var *tied);

/* x (N,T,C) -> (N,H,T,C/H), and back. NULL gives NULL. */
ctn_tensor *ctn__zoo_split_heads(const char *at, ctn_tensor *x, int64_t heads);
ctn_tensor *ctn__zoo_join_heads(const char *at, ctn_tensor *x);
/* Causal attention of q (N,H,T,E) over k and v (N,K,T,E) and, with a cache, over the tokens of
 * layer i before them. */
ctn_tensor *ctn__zoo_attend(const char *at, ctn_tensor *q, ctn_tensor *k, ctn_tensor *v,
                            int64_t window, const ctn__cache *c, int i);
/* The end of a decode: logits of rows `last` of x (N,T,C). */
ctn_tensor *ctn__zoo_last_logits(const char *at, ctn_tensor *x, ctn_tensor *last, ctn_var *head);
/* The end of a forward pass: the logits x w^T + bias, or the mean loss of the targets, which does
 * not need all logits at once. bias may be NULL. */
ctn_tensors ctn__zoo_logits(const char *at, ctn_tensor *x, ctn_tensor *targets, ctn_tensor *w,
                            ctn_tensor *bias);
/* Errors: ESHAPE unless x is (N,T) with T at most block. */
ctn_status ctn__zoo_check_tokens(const char *who, const char *at, const ctn_tensor *x,
                                 int64_t block);

/* A module without a forward function, for a level of names. */
ctn_status ctn__zoo_group(ctn_module **child, ctn_module *m, const char *name);
ctn_status ctn__zoo_layer_norm(ctn_module **child, ctn_module *m, const char *name, int64_t width,
                               double eps);
/* A linear layer with the initial values of BERT. */
ctn_status ctn__zoo_dense(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                          int64_t out);

/* The layers of BERT and ViT (encoder.c). */
typedef struct {
    int64_t width, hidden;
    int layers, heads;
    double eps;
    bool norm_first; /* ViT: the input of a branch is normalised, not its sum with x */
} ctn__encoder_opt;
/* Set the defaults, the sizes of BERT base. Errors: EARG. */
ctn_status ctn__zoo_check_encoder(const char *who, ctn__encoder_opt *o);
/* Add m.encoder.layer, the list of the layers. */
ctn_status ctn__zoo_encoder(ctn_module **layers, ctn_module *m, const ctn__encoder_opt *o);
/* Apply them to x (N,T,C); token t of sample n is seen if t < lengths[n], all if that is NULL. */
ctn_tensor *ctn__zoo_encode(const char *at, const ctn_module *layers, ctn_tensor *x,
                            ctn_tensor *lengths);

/* Replace 0, an option that was not given, by `usual`. Errors: EARG if it is negative. */
ctn_status ctn__zoo_default(const char *who, const char *what, int64_t *v, int64_t usual);
/* The same for a number of layers, whose limit is lower. Errors: EARG. */
ctn_status ctn__zoo_layers(const char *who, int *layers, int usual);
/* Whether the machine can hold so many parameters, before any of them is made. Errors: ENOMEM. */
ctn_status ctn__zoo_fits(const char *who, double parameters);

#endif
