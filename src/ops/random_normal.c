/* SPDX-License-Identifier: Apache-2.0
 *
 * random_normal: mean + std z by the Box-Muller method, from uniform numbers u in (0,1] and v in
 * [0,1):
 *   z0 = sqrt(-2 ln u) cos(2 pi v),   z1 = sqrt(-2 ln u) sin(2 pi v)
 * f32 uses one word each for u and v, so |z| stays below 6.8; f64 uses two words each, so |z|
 * stays below 8.6. No inputs, no gradient.
 */
#include <math.h>

#include "ops/common/random.h"
#include "ops/common/vmath.h"

/* sin and cos of 2 pi turn / 2^32 with an error of 2e-7, without branches. */
static inline void sincos_turn(uint32_t turn, float *sine, float *cosine)
{
    uint32_t k = (turn + 0x20000000u) >> 30; /* the nearest quarter turn */
    float a = (float)(int32_t)(turn - (k << 30)) * (1.57079633f * 0x1p-30f); /* within pi/4 */
    float z = a * a;
    float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * a + a;
    float c = (2.4433157118e-5f * z - 1.3887316255e-3f) * z + 4.1666645683e-2f;
    c = c * z * z - 0.5f * z + 1.0f;
    uint32_t bs = ctn__bits_of(s), bc = ctn__bits_of(c), odd = 0u - (k & 1u);
    *sine = ctn__float_of(((bc & odd) | (bs & ~odd)) ^ (k & 2u) << 30);
    *cosine = ctn__float_of(((bs & odd) | (bc & ~odd)) ^ ((k + 1u) & 2u) << 30);
}

static void fill32(const uint32_t *w, int n, float *y, double mean, double std)
{
    float m = (float)mean, s = (float)std;
#pragma omp simd
    for (int i = 0; i < n / 2; i++) {
        uint32_t hi = w[2 * i] >> 16,
                 lo = w[2 * i] & 0xffffu; /* vector instructions convert only signed words */
        float u = ((float)(int32_t)hi * 0x1p16f + (float)(int32_t)lo + 0.5f) * 0x1p-32f;
        float r = s * sqrtf(-2.0f * ctn__logf(u)), sine, cosine;
        sincos_turn(w[2 * i + 1], &sine, &cosine);
        y[2 * i] = m + r * cosine;
        y[2 * i + 1] = m + r * sine;
    }
}

static void fill64(const uint32_t *w, int n, double *y, double mean, double std)
{
    for (int i = 0; i < n / 4; i++) {
        double u = 1 - ctn__words_unit(w[4 * i], w[4 * i + 1]);
        double v = 6.283185307179586477 * ctn__words_unit(w[4 * i + 2], w[4 * i + 3]);
        double r = std * sqrt(-2 * log(u));
        y[2 * i] = mean + r * cos(v);
        y[2 * i + 1] = mean + r * sin(v);
    }
}

static ctn_status random_normal_run(const ctn_run_args *a)
{
    return ctn__random_run(a, fill32, fill64);
}

ctn_op ctn__op_random_normal = {
    .struct_size = sizeof(ctn_op),
    .name = "random_normal",
    .nin = 0,
    .nout = 1,
    .flags = CTN_OP_RANDOM,
    .order = 0,
    .prec = CTN_PREC_F32,
    .infer = ctn__random_infer,
    .run = random_normal_run,
};

ctn_tensor *ctn_random_normal_at(const char *at, ctn_context *ctx, double mean, double std,
                                 ctn_dtype dtype, int ndim, const int64_t *dims)
{
    if (!isfinite(mean) || !(std >= 0) || !isfinite(std)) {
        ctn_fail(CTN_EARG,
                 "random_normal: mean is %g, deviation is %g; expected finite numbers, the "
                 "deviation at least 0 (%s)",
                 mean, std, at);
        return NULL;
    }
    return ctn__random(at, ctx, &ctn__op_random_normal, mean, std, dtype, ndim, dims);
}
