/* SPDX-License-Identifier: Apache-2.0
 *
 * The random words of one op call (rule 14): a pure function of seed, step, ordinal of the call and
 * element, so that threads may take blocks in any order. Word i is word i%4 of the Philox counter
 * i/4.
 */
#ifndef CTN_OPS_RANDOM_H
#define CTN_OPS_RANDOM_H

#include "ops/ops.h"

enum { CTN__WORDS = 1024 }; /* per block, a multiple of 64 */

void ctn__random_words(const ctn_run_args *a, int64_t b, uint32_t *w); /* of block b */

/* 53 bits of two words as a multiple of 2^-53 in [0,1) */
static inline double ctn__words_unit(uint32_t hi, uint32_t lo)
{
    return (double)((int64_t)(hi >> 5) << 26 | (int64_t)(lo >> 6)) * 0x1p-53;
}

/* One block of elements from its words; s0 and s1 are the op's scalars. */
typedef void ctn__random_f32(const uint32_t *w, float *y, double s0, double s1);  /* CTN__WORDS */
typedef void ctn__random_f64(const uint32_t *w, double *y, double s0, double s1); /* half as many */

static inline ctn_status ctn__random_run(const ctn_run_args *a, ctn__random_f32 *f32,
                                         ctn__random_f64 *f64)
{
    bool single = a->dout[0].dtype == CTN_F32;
    size_t size = single ? sizeof(float) : sizeof(double);
    int64_t n = ctn__count(&a->dout[0]), per = single ? CTN__WORDS : CTN__WORDS / 2;
    int64_t nb = (n + per - 1) / per;
#pragma omp parallel for schedule(static) if (nb > 1)
    for (int64_t b = 0; b < nb; b++) {
        uint32_t w[CTN__WORDS];
        union {
            float f32[CTN__WORDS];
            double f64[CTN__WORDS / 2];
        } y;
        int64_t m = n - b * per < per ? n - b * per : per;
        ctn__random_words(a, b, w);
        if (single) f32(w, y.f32, a->scalar[0], a->scalar[1]);
        else f64(w, y.f64, a->scalar[0], a->scalar[1]);
        memcpy((char *)a->out[0] + (size_t)(b * per) * size, &y, (size_t)m * size);
    }
    return CTN_OK;
}

/* infer of a random tensor: attributes are dtype, ndim and the dimensions */
static inline ctn_status ctn__random_infer(ctn_infer_args *a)
{
    ctn_dtype t = (ctn_dtype)a->attr[0];
    if (t != CTN_F32 && t != CTN_F64)
        return ctn_fail(CTN_EDTYPE, "%s: %s, f32 or f64 is possible", a->name, ctn_dtype_name(t));
    return ctn__desc_set(&a->out[0], a->name, t, (int)a->attr[1], a->attr + 2);
}

/* Record a random tensor with two scalars. */
static inline ctn_tensor *ctn__random(const char *at, ctn_context *ctx, ctn_op *op, double s0,
                                      double s1, ctn_dtype dtype, int ndim, const int64_t *dims)
{
    int64_t attr[2 + CTN_MAX_DIMS] = {dtype, ndim};
    ctn_scalar scalar[2] = {CTN_CONST(s0), CTN_CONST(s1)};
    if (ndim < 0 || ndim > CTN_MAX_DIMS) {
        ctn_fail(CTN_ESHAPE, "%s: %d dimensions, at most %d are possible (%s)", op->name, ndim,
                 CTN_MAX_DIMS, at);
        return NULL;
    }
    if (ndim > 0) memcpy(attr + 2, dims, (size_t)ndim * sizeof *dims);
    return ctn__apply1(at, ctx, op, 0, NULL, 2 + ndim, attr, 2, scalar);
}

#endif
