/* SPDX-License-Identifier: Apache-2.0
 *
 * The random numbers of one op call (rule 14). They are a pure function of the seed, the step, the
 * ordinal of the call and the place of the element in the step, so that threads may take blocks in
 * any order, and neither ranks nor batches whose gradients are added up draw the same ones.
 *
 * The place: if the dimension of the samples (the first one, unless the op says otherwise) is k
 * times the rows of this run (ctn_share), it counts the k lines of each sample. An element is then
 * at the place that it has in the result for all samples of the step, and draws the same number on
 * any number of ranks. If k > 1, it also selects the stream, because ranks whose results have
 * different k would overlap. Any other result belongs to no sample: its elements are counted as
 * they lie, and the number of this run selects the stream. With one run per step these are the
 * elements of the result in their order.
 */
#ifndef CTN_OPS_COMMON_RANDOM_H
#define CTN_OPS_COMMON_RANDOM_H

#include "ops/ops.h"

enum { CTN__WORDS = 1024 }; /* words of a block, a multiple of 64 */

/* Where the numbers of a call come from. Its result has lines, `here` of them along the dimension
 * of the samples, of `inner` elements each. ctn__draws_line says which of the `there` lines of all
 * samples line n is. */
typedef struct {
    uint64_t seed, stream;
    int64_t first, every, lines, inner, here, there;
} ctn__draws;

/* axis: the dimension of the samples in the result d. */
ctn__draws ctn__draws_of(const ctn_run_args *a, const ctn_desc *d, int axis);
static inline int64_t ctn__draws_line(const ctn__draws *w, int64_t n)
{
    return (w->first + n / w->lines * w->every) * w->lines + n % w->lines;
}

/* n consecutive words, at most CTN__WORDS, from word `at` of the stream. Word i is word i%4 of
 * Philox counter i/4. */
void ctn__random_words(const ctn__draws *w, uint64_t at, int64_t n, uint32_t *to);
/* The words of the elements [i,i+n) of the result, one for each; at most CTN__WORDS. */
void ctn__random_elements(const ctn__draws *w, int64_t i, int64_t n, uint32_t *to);

/* 53 bits of two words as a multiple of 2^-53 in [0,1). */
static inline double ctn__words_unit(uint32_t hi, uint32_t lo)
{
    return (double)((int64_t)(hi >> 5) << 26 | (int64_t)(lo >> 6)) * 0x1p-53;
}

/* Compute elements from n words, a multiple of 4: n elements in f32, half as many in f64. s0 and s1
 * are the op's scalars. */
typedef void ctn__random_f32(const uint32_t *w, int n, float *y, double s0, double s1);
typedef void ctn__random_f64(const uint32_t *w, int n, double *y, double s0, double s1);

/* run of a random tensor. */
ctn_status ctn__random_run(const ctn_run_args *a, ctn__random_f32 *f32, ctn__random_f64 *f64);

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
