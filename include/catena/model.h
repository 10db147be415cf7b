/* SPDX-License-Identifier: Apache-2.0
 *
 * A network of your own for the catena command: a shared object that exports one struct.
 *
 *     const ctn_model catena_model = {
 *         .abi = CTN_MODEL_ABI, .struct_size = sizeof(ctn_model), .name = "mymodel", .make = make};
 *
 * Build it and train it with:
 *
 *     cc -shared -fPIC mymodel.c -o mymodel.so $(pkg-config --cflags --libs catena)
 *     catena train ./mymodel.so --data DIR --out result
 *
 * The command checks abi before it reads any other field. examples/own_model is a template.
 */
#ifndef CATENA_MODEL_H
#define CATENA_MODEL_H

#include <catena/train.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTN_MODEL_ABI 1 /* changes when the structs below change */

/* What the command knows about the data when it makes the network. */
typedef struct {
    size_t struct_size;
    ctn_field input;  /* one sample */
    ctn_field target; /* one target; a class is a scalar i64 */
    int64_t classes;  /* 0: the target is not a class */
    const char *args; /* the text of --model-args, "" if not given */
} ctn_model_opt;

typedef struct {
    uint32_t abi;       /* CTN_MODEL_ABI */
    size_t struct_size; /* sizeof(ctn_model) */
    const char *name;
    /* Make the network: a module that is called with x (N, shape of a sample). Result: *net,
     * owned by the command. */
    ctn_status (*make)(ctn_module **net, ctn_context *ctx, const ctn_model_opt *opt);
    /* Forward pass and loss of one batch; self is the network. NULL: call the network and apply
     * --loss. */
    ctn_loss_fn loss;
} ctn_model;

/* The symbol that the shared object defines. */
#if defined(__GNUC__)
extern __attribute__((visibility("default"))) const ctn_model catena_model;
#else
extern const ctn_model catena_model;
#endif

#ifdef __cplusplus
}
#endif
#endif
