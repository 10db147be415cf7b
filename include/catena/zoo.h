/* SPDX-License-Identifier: Apache-2.0
 *
 * Ready-made networks. Each is a module with the parameter names of its usual PyTorch version, so
 * that published weights load by ctn_weights_load, and with that version's initial values. Images
 * are (N,C,H,W). In every options struct zero means the default; all functions are Local; result:
 * *m, owned, ctn_module_free; errors: EARG, ENOMEM.
 */
#ifndef CATENA_ZOO_H
#define CATENA_ZOO_H

#include <catena/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- by name --------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    int64_t classes;     /* numbers in the result: also channels of unet's, vocabulary of gpt's */
    int64_t in_channels; /* also inputs of mlp's; gpt has none */
} ctn_zoo_opt;
/* A network by its name, one of ctn_zoo_names. Errors: ENOTFOUND too. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_new(ctn_module **m, ctn_context *ctx, const char *name,
                                              const ctn_zoo_opt *opt);
/* All names, ended by NULL. Local. Result: borrowed forever. */
CTN_API const char *const *ctn_zoo_names(void);

/* ---- by family ------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    int n; /* sizes: inputs, hidden layers, outputs; 0: 784, 1000, 1000, 10 */
    const int64_t *size;
    ctn_tensor *(*activation)(const char *at, ctn_tensor *x); /* NULL: ctn_relu_at */
} ctn_mlp_opt;
/* Linear layers with an activation between them, named as in a Sequential: 0.weight, 2.weight and
 * so on. (N,size[0]) -> (N,size[n-1]). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_mlp(ctn_module **m, ctn_context *ctx,
                                              const ctn_mlp_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t classes;     /* 10 */
    int64_t in_channels; /* 1 */
} ctn_lenet5_opt;
/* LeNet-5 with ReLU and max pooling. Names conv1, conv2, fc1, fc2, fc3. (N,C,28,28) ->
 * (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_lenet5(ctn_module **m, ctn_context *ctx,
                                                 const ctn_lenet5_opt *opt);

typedef struct {
    size_t struct_size;
    int depth;           /* 18, 34, 50 (default), 101, 152 */
    int64_t classes;     /* 1000 */
    int64_t in_channels; /* 3 */
    int64_t width;       /* channels of the first stage: 64 */
} ctn_resnet_opt;
/* ResNet (v1.5: the stride is in the 3x3 convolution), names of torchvision. (N,C,H,W) ->
 * (N,classes); every size from 1 up is legal, the usual one is 224. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_resnet(ctn_module **m, ctn_context *ctx,
                                                 const ctn_resnet_opt *opt);

typedef struct {
    size_t struct_size;
    int depth;           /* 6 n + 2: 20 (default), 32, 44, 56, 110, ... */
    int64_t classes;     /* 10 */
    int64_t in_channels; /* 3 */
    int64_t width;       /* channels of the first stage: 16 */
} ctn_resnet_cifar_opt;
/* The ResNet for CIFAR with shortcuts without parameters (option A): every second pixel, channels
 * padded with zeros. Names conv1, bn1, layer1.0.conv1, ..., linear. (N,C,32,32) -> (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_resnet_cifar(ctn_module **m, ctn_context *ctx,
                                                       const ctn_resnet_cifar_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t classes;     /* 1000 */
    int64_t in_channels; /* 3 */
    double width;        /* multiplies channels: 1 */
    double dropout;      /* before the classifier: 0.2; < 0: none */
} ctn_mobilenet_v2_opt;
/* MobileNetV2, names of torchvision. (N,C,H,W) -> (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_mobilenet_v2(ctn_module **m, ctn_context *ctx,
                                                       const ctn_mobilenet_v2_opt *opt);

typedef struct {
    size_t struct_size;
    int depth;           /* 11, 13, 16 (default), 19 */
    int64_t classes;     /* 1000 */
    int64_t in_channels; /* 3 */
    double dropout;      /* in the classifier: 0.5; < 0: none */
} ctn_vgg_opt;
/* VGG, names of torchvision. (N,C,H,W), H and W at least 32 -> (N,classes). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_vgg(ctn_module **m, ctn_context *ctx,
                                              const ctn_vgg_opt *opt);

typedef struct {
    size_t struct_size;
    int spatial;                       /* dimensions of a field: 1, 2 (default), 3 */
    int64_t in_channels, out_channels; /* 1, 1 */
    int64_t width;                     /* channels at full size, doubled at each level: 32 */
    int depth;                         /* times the size is halved: 4 */
} ctn_unet_opt;
/* U-Net for fields: no activation at the end. Names enc.0.conv1, enc.0.bn1, ..., up.0, dec.0.conv1,
 * ..., head; up.0 and dec.0 are the deepest. (N,C,...) -> (N,out,...), lengths are multiples of
 * 2^depth. */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_unet(ctn_module **m, ctn_context *ctx,
                                               const ctn_unet_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t vocabulary; /* 256 */
    int64_t block;      /* longest sequence: 128 */
    int64_t width;      /* 128 */
    int layers, heads;  /* 4, 4 */
    double dropout;     /* of embeddings and of what is added to the residual: 0 */
    int untied;         /* 1: lm_head.weight is a parameter of its own, not wte.weight */
} ctn_gpt_opt;
/* A GPT-2: names wte, wpe, h.0.ln_1, h.0.attn.c_attn, ..., ln_f, lm_head. Matrices are (out,in) as
 * in a linear module; files of GPT-2 have c_attn, c_proj and c_fc transposed. (N,T) i64 or i32 ->
 * (N,T,V). */
CTN_API CTN_MUST_CHECK ctn_status ctn_zoo_gpt(ctn_module **m, ctn_context *ctx,
                                              const ctn_gpt_opt *opt);

#ifdef __cplusplus
}
#endif
#endif
