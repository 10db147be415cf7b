/* SPDX-License-Identifier: Apache-2.0
 *
 * Models in ONNX format. A model that can be opened is called with small inputs, all outputs are
 * read, and the plan is explained.
 */
#include "fuzz.h"

#include <catena/onnx.h>

enum { MOST = 8, ELEMENTS = 4096, READ = 1 << 24 };

/* Small numbers of this type, most of which are valid indices too. */
static const void *numbers(ctn_dtype type)
{
    static double f64[ELEMENTS];
    static float f32[ELEMENTS];
    static int64_t i64[ELEMENTS];
    static int32_t i32[ELEMENTS];
    static uint8_t u8[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++) {
        f64[i] = f32[i] = 0.5f * (float)(i % 7) - 1;
        i64[i] = i32[i] = u8[i] = i % 3 == 1;
    }
    switch (type) {
    case CTN_F64: return f64;
    case CTN_I64: return i64;
    case CTN_I32: return i32;
    case CTN_F32: return f32;
    default: return u8;
    }
}

static ctn_tensor *input(ctn_context *ctx, ctn_module *m, int i)
{
    ctn_onnx_port p;
    int64_t dims[CTN_MAX_DIMS], n = 1;
    if (ctn_onnx_input(m, i, &p) < 0 || p.ndim < 0 || !p.dtype) return NULL;
    for (int k = 0; k < p.ndim; k++) {
        dims[k] = p.dim[k] > 0 && p.dim[k] <= ELEMENTS ? p.dim[k] : 2;
        if (n * dims[k] > ELEMENTS) dims[k] = 1;
        n *= dims[k];
    }
    return ctn_input(ctx, numbers(p.dtype), p.dtype, p.ndim, dims);
}

static void read_tensor(ctn_tensor *y)
{
    const int64_t n = y ? ctn_count(y) : -1;
    if (n < 0 || n > READ) return;
    const size_t bytes = (size_t)n * ctn_dtype_size(ctn_dtype_of(y));
    void *to = malloc(bytes + 1);
    if (to && ctn_read(y, to, bytes) < 0) ctn_error_clear();
    free(to);
}

static void call(ctn_context *ctx, ctn_module *m)
{
    ctn_tensor *x[MOST] = {NULL}, *y[MOST] = {NULL};
    const int nx = ctn_onnx_inputs(m), ny = ctn_onnx_outputs(m);
    if (nx > MOST || ny > MOST || ctn_scope_begin(ctx) < 0) return;
    for (int i = 0; i < nx; i++) x[i] = input(ctx, m, i);
    if (ctn_onnx_run(m, nx, x, ny, y) < 0) ctn_error_clear();
    for (int i = 0; i < ny; i++) read_tensor(y[i]);
    if (ctn_scope_end(ctx) < 0) ctn_error_clear();
    const int n = ctn_context_plan_text(ctx, NULL, 0);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text) ctn_context_plan_text(ctx, text, (size_t)n + 1);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    setenv("CATENA_ONNX_MB", "64", 0);
    setenv("CATENA_ONNX_NODES", "20000", 0);
    if (ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)) < 0) abort();
    if (ctn_onnx_open(&m, ctx, fuzz_file("model.onnx", data, bytes), NULL) == CTN_OK) call(ctx, m);
    ctn_error_clear();
    ctn_module_free(m);
    ctn_context_free(ctx);
    return 0;
}
