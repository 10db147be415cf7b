/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer sweeps: one fused pass over flat pools of parameters, gradients and optimizer state,
 * and the squared norm of a range. Called by optim; knows nothing about tensors or graphs.
 *
 * Invariant: every element goes through the same IEEE operations in the same order wherever it
 * lies, so results are bitwise equal for any thread count, segment offset, vector length and
 * instruction set. That is why the kernels are compiled without FMA contraction and without
 * -ffast-math. Speed does not suffer: the sweep is memory-bound (28 bytes per element for Adam).
 */
#ifndef CTN_ENGINE_SWEEP_H
#define CTN_ENGINE_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

/* With d = gscale g + decay w (the second term only where decay is not 0):
 *   SGD       w = keep w - lr d
 *   MOMENTUM  s1 = beta1 s1 + rest1 d;  w = keep w - lr s1
 *   NESTEROV  s1 = beta1 s1 + rest1 d;  w = keep w - lr (d + beta1 s1)
 *   ADAM      s1 = beta1 s1 + rest1 d;  s2 = beta2 s2 + rest2 d d;
 *             w = keep w - lr s1 / (sqrt(s2) bias2 + eps)
 *   AMSGRAD   like ADAM, with s3 = max(s3, s2) instead of s2 under the root
 * Adam has keep = 1 and its own decay. AdamW has decay = 0 and keep = 1 - lr * weight decay (lr
 * before bias correction). These are PyTorch's formulas: dampening is rest1 = 1 - dampening, except
 * on the first step, where rest1 = 1 (s1 is 0 then); maximize is a negative gscale. */
typedef enum {
    CTN__SWEEP_SGD,
    CTN__SWEEP_MOMENTUM,
    CTN__SWEEP_NESTEROV,
    CTN__SWEEP_ADAM,
    CTN__SWEEP_AMSGRAD,
    CTN__SWEEP_KINDS
} ctn__sweep_kind;

/* Floats [begin, end) of the pools and their hyperparameters. Everything that depends on the step
 * or on 1 - x is computed by the caller in double and rounded once, because 1 - 0.999f is wrong
 * in the fifth digit. */
typedef struct {
    int64_t begin, end;
    float gscale;       /* multiplies g: 1 / loss scale, clipping factor, -1 to maximize */
    float lr;           /* Adam family: lr / (1 - beta1^t) */
    float decay;        /* coupled weight decay */
    float keep;         /* decoupled weight decay; 1 for none */
    float beta1, rest1; /* rest1 = 1 - beta1 (Adam), 1 - dampening (momentum) */
    float beta2, rest2; /* rest2 = 1 - beta2 */
    /* 1 / sqrt(1 - beta2^t). A factor, so that only one division per element is left. */
    float bias2;
    float eps;
} ctn__sweep_seg;

/* The pools, all of the same length and layout, not overlapping; fastest if 64-byte aligned. State
 * that a kind does not name is not touched and may be NULL. */
typedef struct {
    float *w;
    const float *g;
    float *s1, *s2, *s3;
    uint16_t *low; /* NULL, or receives w as bf16 (nearest even, NaN stays a quiet NaN) */
} ctn__sweep_pool;

/* One update of every segment. Segments are in ascending order and do not overlap; gaps are not
 * touched. Each thread gets one contiguous share, cut at multiples of 16 floats. */
void ctn__sweep(ctn__sweep_kind kind, const ctn__sweep_pool *p, const ctn__sweep_seg *seg,
                int64_t segs, int threads);

#define CTN__SWEEP_BLOCK 4096 /* floats per partial sum of the norm */

/* Doubles of scratch that ctn__sweep_norm2 needs for n floats. */
static inline int64_t ctn__sweep_blocks(int64_t n)
{
    return (n + CTN__SWEEP_BLOCK - 1) / CTN__SWEEP_BLOCK;
}

/* Sum of g[i]^2 over n floats, accumulated in double: first per block, into
 * partial[ctn__sweep_blocks(n)], then over the blocks in order. *finite: no infinity or NaN. */
double ctn__sweep_norm2(const float *g, int64_t n, double *partial, int threads, bool *finite);

/* One instruction set's kernels: sweep_body.h compiled for it. */
typedef struct {
    void (*step[CTN__SWEEP_KINDS])(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                                   int64_t hi);
    void (*narrow)(const float *w, uint16_t *low, int64_t n);
    double (*sumsq)(const float *x, int64_t n); /* n <= CTN__SWEEP_BLOCK */
} ctn__sweep_kernels;

extern const ctn__sweep_kernels ctn__sweep_portable, ctn__sweep_avx2, ctn__sweep_avx512,
    ctn__sweep_sve;

#endif
