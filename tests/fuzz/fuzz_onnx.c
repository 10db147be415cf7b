/* SPDX-License-Identifier: Apache-2.0
 *
 * Models in ONNX format. A model that can be opened is also recorded once, with small inputs.
 */
#include "fuzz.h"

#include <catena/onnx.h>

enum { MOST = 8, ELEMENTS = 4096 };

static void call(ctn_context *ctx, ctn_module *m)
{
    static const double zeros[ELEMENTS];
    ctn_tensor *x[MOST] = {NULL}, *y[MOST] = {NULL};
    const int nx = ctn_onnx_inputs(m), ny = ctn_onnx_outputs(m);
    if (nx > MOST || ny > MOST || ctn_scope_begin(ctx) < 0) return;
    for (int i = 0; i < nx; i++) {
        ctn_onnx_port p;
        int64_t dims[CTN_MAX_DIMS], n = 1;
        if (ctn_onnx_input(m, i, &p) < 0 || p.ndim < 0 || !p.dtype) continue;
        for (int k = 0; k < p.ndim; k++) {
            dims[k] = p.dim[k] > 0 && p.dim[k] <= ELEMENTS ? p.dim[k] : 2;
            n *= dims[k];
            if (n > ELEMENTS) n = dims[k] = 1;
        }
        x[i] = ctn_input(ctx, zeros, p.dtype, p.ndim, dims);
    }
    if (ctn_onnx_run(m, nx, x, ny, y) < 0) ctn_error_clear();
    if (ctn_scope_end(ctx) < 0) ctn_error_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static ctn_context *ctx;
    ctn_module *m = NULL;
    if (!ctx && ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)) < 0) abort();
    if (ctn_onnx_open(&m, ctx, fuzz_file("model.onnx", data, bytes), NULL) == CTN_OK) call(ctx, m);
    ctn_error_clear();
    ctn_module_free(m);
    return 0;
}
