/* SPDX-License-Identifier: Apache-2.0
 *
 * Models in ONNX format as modules. The float weights of a model become parameters of the module,
 * so an imported network can be evaluated, trained further and saved like any other. Every call
 * records the ops of the model for the shapes of its inputs, so batch size and sequence length may
 * change from call to call. docs/onnx-ops.md lists the supported ONNX ops. All functions fail with
 * EUNSUPPORTED if the library was built without protobuf-c.
 */
#ifndef CATENA_ONNX_H
#define CATENA_ONNX_H

#include <catena/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t struct_size;
    /* 1: parameters are not trainable, batch normalisation always uses the stored statistics, and
     * dropout does nothing. 0: all of them behave as in other modules. */
    int frozen;
} ctn_onnx_opt;

/* Read a model of opset 7 or newer; opsets before 11 only as far as their ops did not change later.
 * Weights may lie in external files inside the folder of the model. The module's variables have the
 * names of the model's weights. Float constants become parameters, except single numbers and those
 * that an op needs while it is recorded; the statistics of batch normalisation, and f64 constants
 * that the model casts, become states. Half-precision values become f32, and integer types that
 * Catena does not have become i32 or i64. ctn_call_multi passes inputs and returns outputs in the
 * order of the model; models with more than CTN_MAX_TENSORS of either need ctn_onnx_run. If the
 * model contains ops that are not supported, the message lists all of them with the names of their
 * nodes. Local. Result: *m, owned, ctn_module_free. Errors: EIO, EFORMAT, EUNSUPPORTED, EARG,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_onnx_open(ctn_module **m, ctn_context *ctx, const char *path,
                                                const ctn_onnx_opt *opt);

/* One input or output of a model. */
typedef struct {
    const char *name;          /* borrowed from the module */
    ctn_dtype dtype;           /* 0: not known */
    int ndim;                  /* -1: not known */
    int64_t dim[CTN_MAX_DIMS]; /* -1: any length */
} ctn_onnx_port;
/* The number of inputs and outputs of a module made by ctn_onnx_open; -1 for another module.
 * Weights do not count as inputs. Local. */
CTN_API int ctn_onnx_inputs(const ctn_module *m);
CTN_API int ctn_onnx_outputs(const ctn_module *m);
/* Input or output i. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_onnx_input(const ctn_module *m, int i, ctn_onnx_port *out);
CTN_API CTN_MUST_CHECK ctn_status ctn_onnx_output(const ctn_module *m, int i, ctn_onnx_port *out);

/* Call a module made by ctn_onnx_open with all of its nx inputs, and set its first ny outputs. An
 * input may be NULL if the model does not need it. Local. Result: scope; all y are NULL after an
 * error. Errors: EARG, ESTATE, ESHAPE, EDTYPE, EUNSUPPORTED, those of ops. */
CTN_API ctn_status ctn_onnx_run_at(const char *at, ctn_module *m, int nx, ctn_tensor *const *x,
                                   int ny, ctn_tensor **y);
#define ctn_onnx_run(...) ctn_onnx_run_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
