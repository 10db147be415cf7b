/* SPDX-License-Identifier: Apache-2.0
 *
 * Models in ONNX format as networks of train, eval and predict.
 */
#include <string.h>

#include <catena/onnx.h>

#include "task.h"

bool is_onnx(const char *path)
{
    return path && ends_with(path, ".onnx");
}

/* A model that `catena export` has written standardises the data itself. */
static void keep_units(task *t)
{
    if (!ctn_module_find(t->net, "input_mean")) {
        ctn_error_clear();
        return;
    }
    args_settle(t->a, "standardize", "none");
}

ctn_status onnx_open(task *t, const char *path)
{
    CTN_TRY(ctn_onnx_open(&t->net, t->ctx, path, NULL));
    if (ctn_onnx_inputs(t->net) != 1 || ctn_onnx_outputs(t->net) < 1)
        return ctn_fail(CTN_EUNSUPPORTED,
                        "%s has %d inputs and %d outputs; the command takes models with one input. "
                        "Use others in C or Python (ctn_onnx_run)",
                        path, ctn_onnx_inputs(t->net), ctn_onnx_outputs(t->net));
    t->onnx = true;
    keep_units(t);
    return CTN_OK;
}

int64_t onnx_image_size(const task *t)
{
    ctn_onnx_port p;
    if (ctn_onnx_input(t->net, 0, &p) < 0) return 0;
    return p.ndim == 4 && p.dim[2] > 0 && p.dim[2] == p.dim[3] ? p.dim[2] : 0;
}

bool onnx_input(task *t)
{
    ctn_onnx_port p;
    if (ctn_onnx_input(t->net, 0, &p) < 0 || p.ndim < 1) return false;
    t->input = (ctn_field){.dtype = p.dtype, .ndim = p.ndim - 1};
    for (int i = 1; i < p.ndim; i++) {
        if (p.dim[i] < 1) return false;
        t->input.shape[i - 1] = p.dim[i];
    }
    return true;
}

ctn_status onnx_results(task *t)
{
    ctn_onnx_port p;
    CTN_TRY(ctn_onnx_output(t->net, 0, &p));
    if (p.ndim < 1) return CTN_OK;
    if (t->classify) {
        if (p.ndim != 2 || p.dim[1] < 1) return CTN_OK;
        if (t->classes > p.dim[1])
            return ctn_fail(CTN_ESHAPE, "the data has %lld classes, %s has %lld outputs",
                            (long long)t->classes, t->a->operand, (long long)p.dim[1]);
        t->classes = p.dim[1];
        return CTN_OK;
    }
    if (t->target.dtype != 0 || args_given(t->a, "target-shape")) return CTN_OK;
    for (int i = 1; i < p.ndim; i++)
        if (p.dim[i] < 0) return CTN_OK;
    t->target = (ctn_field){.dtype = CTN_F32, .ndim = p.ndim - 1};
    for (int i = 1; i < p.ndim; i++) t->target.shape[i - 1] = p.dim[i];
    return CTN_OK;
}
