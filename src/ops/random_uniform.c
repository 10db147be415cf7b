/* SPDX-License-Identifier: Apache-2.0
 *
 * random_uniform: elements uniform in [lo, hi). f32 uses 24 random bits from one word, f64 uses
 * 53 bits from two words. If lo + (hi - lo) u rounds up to hi, the element is the next number
 * below hi. No inputs, no gradient.
 */
#include <math.h>

#include "ops/common/random.h"

static void fill32(const uint32_t *w, int n, float *y, double lo, double hi)
{
    float from = (float)lo, to = (float)hi, by = (float)(hi - lo) * 0x1p-24f;
    float last = to > from ? nextafterf(to, from) : from;
#pragma omp simd
    for (int i = 0; i < n; i++) {
        float v = from + by * (float)(int32_t)(w[i] >> 8);
        y[i] = v < to ? v : last;
    }
}

static void fill64(const uint32_t *w, int n, double *y, double lo, double hi)
{
    double by = hi - lo, last = hi > lo ? nextafter(hi, lo) : lo;
    for (int i = 0; i < n / 2; i++) {
        double v = lo + by * ctn__words_unit(w[2 * i], w[2 * i + 1]);
        y[i] = v < hi ? v : last;
    }
}

static ctn_status random_uniform_run(const ctn_run_args *a)
{
    return ctn__random_run(a, fill32, fill64);
}

ctn_op ctn__op_random_uniform = {
    .struct_size = sizeof(ctn_op),
    .name = "random_uniform",
    .nin = 0,
    .nout = 1,
    .flags = CTN_OP_RANDOM,
    .order = 0,
    .prec = CTN_PREC_F32,
    .infer = ctn__random_infer,
    .run = random_uniform_run,
};

ctn_tensor *ctn_random_uniform_at(const char *at, ctn_context *ctx, double lo, double hi,
                                  ctn_dtype dtype, int ndim, const int64_t *dims)
{
    if (!(lo <= hi) || !isfinite(hi - lo)) {
        ctn_fail(
            CTN_EARG,
            "random_uniform: range is %g to %g; expected finite numbers in ascending order (%s)",
            lo, hi, at);
        return NULL;
    }
    return ctn__random(at, ctx, &ctn__op_random_uniform, lo, hi, dtype, ndim, dims);
}
