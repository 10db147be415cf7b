/* SPDX-License-Identifier: Apache-2.0
 *
 * The random words of one op call (rule 14). They are a pure function of the seed, the step, the
 * ordinal of the call and the element, so that threads may take blocks in any order. Word i is
 * word i%4 of Philox counter i/4.
 */
#ifndef CTN_OPS_COMMON_RANDOM_H
#define CTN_OPS_COMMON_RANDOM_H

#include "ops/ops.h"

enum { CTN__WORDS = 1024 }; /* words of a block, a multiple of 64 */

/* Fill w with the words of block b: of an op call, or of any stream. */
void ctn__random_words(const ctn_run_args *a, int64_t b, uint32_t *w);
void ctn__random_words_of(uint64_t seed, uint64_t stream, int64_t b, uint32_t *w);
/* The stream of an op call. */
uint64_t ctn__random_stream(const ctn_run_args *a);

/* 53 bits of two words as a multiple of 2^-53 in [0,1). */
static inline double ctn__words_unit(uint32_t hi, uint32_t lo)
{
    return (double)((int64_t)(hi >> 5) << 26 | (int64_t)(lo >> 6)) * 0x1p-53;
}

/* Compute one block of elements from its words: CTN__WORDS elements in f32, half as many in f64.
 * s0 and s1 are the op's scalars. */
typedef void ctn__random_f32(const uint32_t *w, float *y, double s0, double s1);
typedef void ctn__random_f64(const uint32_t *w, double *y, double s0, double s1);

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

/* infer of a random tensor; the attributes are dtype, ndim and the dimensions. */
static inline ctn_status ctn__random_infer(ctn_infer_args *a)
{
    ctn_dtype t = (ctn_dtype)a->attr[0];
    if (t != CTN_F32 && t != CTN_F64)
        return ctn_fail(CTN_EDTYPE, "%s: dtype is %s, expected f32 or f64", a->name,
                        ctn_dtype_name(t));
    return ctn__desc_set(&a->out[0], a->name, t, (int)a->attr[1], a->attr + 2);
}

/* Record a random tensor with two scalars. */
static inline ctn_tensor *ctn__random(const char *at, ctn_context *ctx, ctn_op *op, double s0,
                                      double s1, ctn_dtype dtype, int ndim, const int64_t *dims)
{
    int64_t attr[2 + CTN_MAX_DIMS] = {dtype, ndim};
    ctn_scalar scalar[2] = {CTN_CONST(s0), CTN_CONST(s1)};
    if (ndim < 0 || ndim > CTN_MAX_DIMS) {
        ctn_fail(CTN_ESHAPE, "%s: got %d dimensions, expected 0 to %d (%s)", op->name, ndim,
                 CTN_MAX_DIMS, at);
        return NULL;
    }
    if (ndim > 0) memcpy(attr + 2, dims, (size_t)ndim * sizeof *dims);
    return ctn__apply1(at, ctx, op, 0, NULL, 2 + ndim, attr, 2, scalar);
}

#endif
