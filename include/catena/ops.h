/* SPDX-License-Identifier: Apache-2.0
 *
 * The ops. A call only records; nothing is computed until a result is needed. Every op is a
 * function ctn_name_at(at, ...), which takes the caller's source line for messages, and a macro
 * ctn_name(...) that passes it. All ops are Local and their results belong to the scope
 * (Result: scope). A NULL input gives a NULL result and keeps the first error. Axes may be
 * negative and then count from the end.
 */
#ifndef CATENA_OPS_H
#define CATENA_OPS_H

#include <catena/op.h>
#include <catena/ops_fft.h>

#include <catena/ops_graph.h>
#include <catena/ops_image.h>
#include <catena/ops_linalg.h>
#include <catena/ops_loss.h>
#include <catena/ops_math.h>
#include <catena/ops_sequence.h>
#include <catena/ops_shape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- matrix products ------------------------------------------------------------------------ */

/* C = op(A) op(B), where op swaps the last two dimensions if trans is set. (...,M,K) (...,K,N)
 * -> (...,M,N); leading dimensions broadcast. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_matmul_at(const char *at, ctn_tensor *a, ctn_tensor *b, int trans_a,
                                  int trans_b);
#define ctn_matmul(...) ctn_matmul_at(CTN_HERE, __VA_ARGS__)

/* y = x W^T + b. x (...,I), W (O,I), b (O) or NULL -> (...,O). Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_linear_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b);
#define ctn_linear(...) ctn_linear_at(CTN_HERE, __VA_ARGS__)

/* ---- arithmetic, with broadcasting ---------------------------------------------------------- */

/* y = a + b. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_add_at(const char *at, ctn_tensor *a, ctn_tensor *b);
#define ctn_add(...) ctn_add_at(CTN_HERE, __VA_ARGS__)

/* ---- activations ---------------------------------------------------------------------------- */

/* y = max(x, 0). NaN stays NaN. Where a plan computes it together with a linear layer or a
 * convolution that gives x, -infinity becomes NaN too. Errors: EDTYPE. */
CTN_API ctn_tensor *ctn_relu_at(const char *at, ctn_tensor *x);
#define ctn_relu(...) ctn_relu_at(CTN_HERE, __VA_ARGS__)

/* ---- reductions ----------------------------------------------------------------------------- */

/* Sum over the axes (naxes 0: all); with keep = 1 they stay, with length 1. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_sum_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes,
                               int keep);
#define ctn_sum(...) ctn_sum_at(CTN_HERE, __VA_ARGS__)

/* ---- shapes --------------------------------------------------------------------------------- */

/* The same elements in another shape; one dimension may be -1. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_reshape_at(const char *at, ctn_tensor *x, int ndim, const int64_t *dims);
#define ctn_reshape(...) ctn_reshape_at(CTN_HERE, __VA_ARGS__)

/* Permute the dimensions: axis i of the result is axis axes[i] of x. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_transpose_at(const char *at, ctn_tensor *x, int naxes, const int64_t *axes);
#define ctn_transpose(...) ctn_transpose_at(CTN_HERE, __VA_ARGS__)

/* x broadcast to a larger shape. Errors: ESHAPE. */
CTN_API ctn_tensor *ctn_broadcast_to_at(const char *at, ctn_tensor *x, int ndim,
                                        const int64_t *dims);
#define ctn_broadcast_to(...) ctn_broadcast_to_at(CTN_HERE, __VA_ARGS__)

/* A tensor filled with one value, which may change from step to step. Errors: ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_full_at(const char *at, ctn_context *ctx, double value, ctn_dtype dtype,
                                int ndim, const int64_t *dims);
#define ctn_full(...) ctn_full_at(CTN_HERE, __VA_ARGS__)

/* ---- losses --------------------------------------------------------------------------------- */

typedef struct {
    size_t struct_size;
    ctn_tensor *weights; /* (C) one weight per class; NULL: all 1 */
    /* mean: divides by the sum of the weights of the rows that count; none: one loss per row, which
     * is 0 for ignored rows */
    ctn_reduction reduction;
    const int64_t *ignore; /* rows of this class are ignored; NULL: -100 */
    double smoothing;      /* label smoothing, 0 to 1 */
    ctn_tensor *bias;      /* ctn_linear_cross_entropy: (V), added to the logits; NULL: none */
} ctn_softmax_cross_entropy_opt;

/* Cross-entropy: the mean of -log softmax(x)[t]. x (...,C); t (...) classes i64 or i32, or
 * (...,C) soft targets -> (), or (...) with CTN_NONE. Errors: ESHAPE, EDTYPE, EARG; EARG for a
 * class out of range, when the step runs. */
CTN_API ctn_tensor *ctn_softmax_cross_entropy_with_at(const char *at, ctn_tensor *x, ctn_tensor *t,
                                                      const ctn_softmax_cross_entropy_opt *opt);
#define ctn_softmax_cross_entropy(x, t) ctn_softmax_cross_entropy_with_at(CTN_HERE, x, t, NULL)
#define ctn_softmax_cross_entropy_with(...) ctn_softmax_cross_entropy_with_at(CTN_HERE, __VA_ARGS__)
/* The same of the logits x w^T, for many classes such as the words of a language model: in f32,
 * without class weights and smoothing, the logits of all rows never exist at the same time, and
 * those of ignored rows are not computed. x (...,C), w (V,C), t one class per row of x. Gradients
 * of first order. Errors: ESHAPE, EARG (a class out of range, when it runs). */
CTN_API ctn_tensor *ctn_linear_cross_entropy_at(const char *at, ctn_tensor *x, ctn_tensor *w,
                                                ctn_tensor *t,
                                                const ctn_softmax_cross_entropy_opt *opt);
#define ctn_linear_cross_entropy(...) ctn_linear_cross_entropy_at(CTN_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
