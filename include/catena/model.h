/* SPDX-License-Identifier: Apache-2.0
 *
 * A network of your own for the command: a shared object that exports one struct.
 *
 *     const ctn_model catena_model = {
 *         .abi = CTN_MODEL_ABI, .struct_size = sizeof(ctn_model), .name = "mymodel", .make = make};
 *
 * cc -shared -fPIC mymodel.c -o mymodel.so $(pkg-config --cflags --libs catena)
 * catena train ./mymodel.so --data DIR --out result
 *
 * The command looks at abi before anything else in it. examples/own_model is a template.
 */
#ifndef CATENA_MODEL_H
#define CATENA_MODEL_H

#include <catena/train.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTN_MODEL_ABI 1 /* changes with the structs below */

/* What the command knows about the data when the network is made. */
typedef struct {
    size_t struct_size;
    ctn_field input;  /* one sample */
    ctn_field target; /* one target; a class is a scalar i64 */
    int64_t classes;  /* 0: the target is not a class */
    const char *args; /* --model-args as it was given, "" without */
} ctn_model_opt;

typedef struct {
    uint32_t abi;       /* CTN_MODEL_ABI */
    size_t struct_size; /* sizeof(ctn_model) */
    const char *name;
    /* Make the network: a module whose call takes (N, a sample's shape). Result: *net, owned by the
     * command. */
    ctn_status (*make)(ctn_module **net, ctn_context *ctx, const ctn_model_opt *opt);
    /* Forward pass and loss of a batch; self is the network. NULL: as --loss says, by a call of net. */
    ctn_loss_fn loss;
} ctn_model;

/* What the shared object defines. */
#if defined(__GNUC__)
extern __attribute__((visibility("default"))) const ctn_model catena_model;
#else
extern const ctn_model catena_model;
#endif

#ifdef __cplusplus
}
#endif
#endif
