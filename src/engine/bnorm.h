/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics and affine maps per channel of (N,C,spatial...): the kernels of batch_norm,
 * batch_norm_grad and channel_affine. M = N times the spatial lengths is the number of elements of
 * a channel. There are three ways, chosen by the types and strides of a call's operands:
 *   fast   channels-last (or two dimensions), f32 or bf16: vectors over channels, memory-bound
 *   plain  row-major, f32 or f64
 *   any    every other type or stride, element by element
 * Invariant: sums are split by shape, never by threads, and added in one order. So results are
 * bitwise equal for any thread count and, for the fast way, any instruction set (no FMA).
 */
#ifndef CTN_ENGINE_BNORM_H
#define CTN_ENGINE_BNORM_H

#include "tensor/tensor.h"

/* A spatial operand; p NULL: absent. All operands of a call have the same shape. */
typedef struct {
    void *p;
    const ctn_desc *d;
} ctn__bnorm_arg;

/* g = gy + gy2 where y > 0, else 0; gy2 may be absent. y is either an operand, or it is
 * recomputed from x by a[C] and b[C] as in ctn__bnorm_apply and not read, or neither, and then g
 * is not masked. Both forms of y give the same bits, except where bf16 or f16 rounds a positive y
 * to 0. */
typedef struct {
    ctn__bnorm_arg gy, gy2, y;
    const double *a, *b; /* both or none */
} ctn__bnorm_gradient;

/* Scratch bytes that each function below needs for operands shaped like x; 64-byte aligned. */
size_t ctn__bnorm_scratch(const ctn_desc *x);

/* The kernel for operands like x, for explain. Result: borrowed forever. */
const char *ctn__bnorm_name(const ctn_desc *x);

/* Mean and variance (divided by M) of each channel, mean[C] and var[C]; zeros if M is 0. Reads x
 * once. It never computes E[x^2] - m^2 directly, but sums x minus one of the summed elements. The
 * cancellation error is then at most as many units in the last place as a sum has elements: 64 in
 * the float sums of the fast way, while everything longer is summed in double. */
void ctn__bnorm_stats(ctn__bnorm_arg x, double *mean, double *var, void *scratch);

/* y = act(a x + b + residual), act relu or nothing; b NULL: none. y may be x or residual. */
void ctn__bnorm_apply(ctn__bnorm_arg x, const double *a, const double *b, ctn__bnorm_arg residual,
                      bool relu, ctn__bnorm_arg y, void *scratch);

/* sum[C] of g and dot[C] of g (x - mean); writes g to `out` if present. */
void ctn__bnorm_reduce(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *mean,
                       ctn__bnorm_arg out, double *sum, double *dot, void *scratch);

/* gx = p g + q x + r. gx may be any of the operands. */
void ctn__bnorm_grad_apply(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *p,
                           const double *q, const double *r, ctn__bnorm_arg gx, void *scratch);

/* ---- inside bnorm*.c ------------------------------------------------------------------------- */

/* Operands of a fast kernel, all f32 or all bf16, pointing to the element to begin with: `rows`
 * rows of `width` elements, `ld` elements apart. Numbers per column are f32. */
typedef struct {
    int64_t rows, width, ld;
    const void *x, *residual, *gy, *gy2, *y;
    void *out;
    const float *a, *b, *c;
    const float *ya, *yb; /* y = ya x + yb */
} ctn__bnorm_span;

/* Flags of kernels: which parts of the span are used. */
enum {
    CTN__BNORM_LOW = 1,    /* bf16 */
    CTN__BNORM_RELU = 2,   /* forward: act; backward: y is present */
    CTN__BNORM_SECOND = 4, /* forward: residual; backward: gy2 */
    CTN__BNORM_WRITE = 8,  /* reduce: out receives g */
    CTN__BNORM_BY_X = 16   /* backward, instead of RELU: ya and yb are present */
};

/* One instruction set's kernels: bnorm_body.h compiled for it. */
typedef struct {
    /* shift = row 0; s, q: sums over the rows of x - shift and of its square */
    void (*stats)(const ctn__bnorm_span *p, int flags, float *shift, float *s, float *q);
    /* sum, square[w] += the sums of n rows, converted to be relative to base */
    void (*gather)(int64_t w, double n, const float *base, const float *shift, const float *s,
                   const float *q, double *sum, double *square);
    /* s, q: sums over the rows of g and of g (x - a) */
    void (*reduce)(const ctn__bnorm_span *p, int flags, float *s, float *q);
    void (*apply)(const ctn__bnorm_span *p, int flags);      /* out = act(a x + b + residual) */
    void (*grad_apply)(const ctn__bnorm_span *p, int flags); /* out = a g + b x + c */
} ctn__bnorm_kernels;

extern const ctn__bnorm_kernels ctn__bnorm_portable, ctn__bnorm_avx2, ctn__bnorm_avx512,
    ctn__bnorm_sve;

/* The other ways (bnorm_other.c) of the functions above. */
void ctn__bnorm_stats_plain(ctn__bnorm_arg x, double *mean, double *var);
void ctn__bnorm_stats_any(ctn__bnorm_arg x, double *mean, double *var);
void ctn__bnorm_apply_plain(ctn__bnorm_arg x, const double *a, const double *b,
                            ctn__bnorm_arg residual, bool relu, ctn__bnorm_arg y);
void ctn__bnorm_apply_any(ctn__bnorm_arg x, const double *a, const double *b,
                          ctn__bnorm_arg residual, bool relu, ctn__bnorm_arg y);
void ctn__bnorm_reduce_plain(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *mean,
                             ctn__bnorm_arg out, double *sum, double *dot);
void ctn__bnorm_reduce_any(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *mean,
                           ctn__bnorm_arg out, double *sum, double *dot);
void ctn__bnorm_grad_apply_plain(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *p,
                                 const double *q, const double *r, ctn__bnorm_arg gx);
void ctn__bnorm_grad_apply_any(const ctn__bnorm_gradient *g, ctn__bnorm_arg x, const double *p,
                               const double *q, const double *r, ctn__bnorm_arg gx);

#endif
