/* SPDX-License-Identifier: Apache-2.0
 *
 * Export to ONNX: networks and recorded graphs as files for onnxruntime, OpenVINO and other
 * programs. Parameters and states become initializers under their names ("fc1.weight"), everything
 * else becomes nodes with operators of the standard. A model computes in the types of the recorded
 * graph; a policy of 16-bit types is ignored. A build without protobuf-c returns EUNSUPPORTED.
 */
#ifndef CATENA_ONNX_EXPORT_H
#define CATENA_ONNX_EXPORT_H

#include <catena/data.h>
#include <catena/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    size_t struct_size;
    int opset; /* version of the operators, 18 to 21; 0: 18 */
    /* 1: convolution followed by batch normalisation becomes one convolution, whose weights
     * include the normalisation. They keep the name of the convolution's weight. */
    int fold_batch_norm;
    /* 1: the values of parameters and states are written to a second file, PATH.data. Without it,
     * this happens only if they take more than ONNX allows in one file (2 GB). */
    int external;
    /* ctn_onnx_export_module only: the one batch size of the model. 0: the model takes any. */
    int64_t batch;
    /* ctn_onnx_export only, the batch size that was recorded: the model takes any, and each size in
     * the graph that is a multiple of this number follows it. Record with a prime number that is
     * no other size, such as 1009; nothing is computed. 0: the model takes the recorded size. */
    int64_t any_batch;
    /* The same for a second size of the inputs, usually the length of sequences. */
    int64_t any_length;
    /* Names, ended by NULL. in_names NULL: "input", "input2", ...; out_names NULL: "output",
     * "output2", .... They differ from each other and from those of variables. */
    const char *const *in_names, *const *out_names;
    /* Variables get the names that they have in this module. NULL: the exported module;
     * ctn_onnx_export: the names that they were made with. */
    ctn_module *module;
} ctn_onnx_export_opt;

/* Write the graph of the open scope from inputs to outputs as an ONNX model. Inputs are tensors of
 * the scope, usually those of ctn_input. Other leaves are stored: variables as initializers, data
 * as constants. Record in evaluation mode (ctn_context_set_training). Local. Errors: EUNSUPPORTED
 * (the message lists all ops that have no form in ONNX), EARG, ESTATE, EIO, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_onnx_export(const char *path, ctn_tensors inputs,
                                                  ctn_tensors outputs,
                                                  const ctn_onnx_export_opt *opt);

/* Record one call of m in evaluation mode and write it as an ONNX model. in[i] has the type and the
 * shape of one sample of input i; the model has the batch size as a further first dimension.
 * Local. Errors: those of m and of ctn_onnx_export. */
CTN_API CTN_MUST_CHECK ctn_status ctn_onnx_export_module(ctn_module *m, const char *path, int n,
                                                         const ctn_field *in,
                                                         const ctn_onnx_export_opt *opt);

#ifdef __cplusplus
}
#endif
#endif
