/* SPDX-License-Identifier: Apache-2.0
 *
 * Between export.c, which makes the graph of a model, and export_file.c, which writes it.
 */
#ifndef CTN_ONNX_EXPORT_H
#define CTN_ONNX_EXPORT_H

#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

/* The inputs of a model, followed by its outputs. */
typedef struct {
    int n_in, n_out;
    char *name[2 * CTN_MAX_TENSORS];
    const ctn_desc *d[2 * CTN_MAX_TENSORS];
} ctn__onnx_ends;

/* The hash of the nodes, with their constants. */
ctn_status ctn__onnx_hash(const ctn__emit *e, ctn__hash128 *hash);
ctn_status ctn__onnx_write(ctn__emit *e, const char *path, const ctn__onnx_ends *ends);

#endif
#endif
