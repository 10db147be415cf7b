/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer sweeps: one fused pass over flat pools of parameters, gradients and optimizer state,
 * in f32 or f64, and the squared norm of a range. Called by optim; knows nothing about tensors or
 * graphs.
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
 * on the first step, where rest1 = 1 (s1 is 0 then); maximize is a negative gscale.
 *   RMSPROP   s1 = beta2 s1 + rest2 d d;  w = keep w - lr d / (sqrt(s1) + eps)
 *   _MOMENTUM s2 = beta1 s2 + d / (sqrt(s1) + eps);  w = keep w - lr s2
 *   _CENTERED s2 = beta2 s2 + rest2 d, and max(s1 - s2 s2, 0) instead of s1 under the root; without
 *             the maximum, rounding could take the root of a negative number
 *   _GRAVES   centered, with the momentum in s3
 *   ADAGRAD   s1 = s1 + start + d d;  w = keep w - lr d / (sqrt(s1) + eps)
 *   ADADELTA  s1 = beta2 s1 + rest2 d d;  u = sqrt(s2 + eps) / sqrt(s1 + eps) d;
 *             s2 = beta2 s2 + rest2 u u;  w = keep w - lr u
 *   ADAMAX    s1 as in ADAM;  s2 = max(beta2 s2, |d| + eps);  w = keep w - lr s1 / s2
 *   NADAM     s1, s2 as in ADAM;  w = keep w - (lr s1 + lr2 d) / (sqrt(s2) bias2 + eps)
 *   LION      w = keep w - lr sign(beta1 s1 + rest1 d);  s1 = beta2 s1 + rest2 d
 *   BOUND     s1, s2 as in ADAM;  w = keep w - min(max(lr / (sqrt(s2) + eps), least), most) s1
 *   AMSBOUND  like BOUND, with s3 = max(s3, s2) instead of s2 under the root
 *   SMORMS3   r = 1 / (1 + start + s3);  s1 = (1-r) s1 + r d;  s2 = (1-r) s2 + r d d;
 *             x = s1 s1 / (s2 + eps);  s3 = 1 + (start + s3) (1 - x);
 *             w = keep w - min(lr, x) d / (sqrt(s2) + eps)
 *   MSVAG     s1, s2 as in ADAM with beta1 for both;  m = bias2 s1;  v = bias2 s2;
 *             w = keep w - lr m m m / (m m + start max(v - m m, 0)); 0/0 counts as 0
 * Two kinds change g and not w:
 *   LAMB      s1, s2 as in ADAM;  g = lr s1 / (sqrt(s2) bias2 + eps) + lr2 w, without decay in d
 *   GRADIENT  g = min(max(gscale g, -clip), clip) + lasso sign(w) */
typedef enum {
    CTN__SWEEP_SGD,
    CTN__SWEEP_MOMENTUM,
    CTN__SWEEP_NESTEROV,
    CTN__SWEEP_ADAM,
    CTN__SWEEP_AMSGRAD,
    CTN__SWEEP_RMSPROP,
    CTN__SWEEP_RMSPROP_MOMENTUM,
    CTN__SWEEP_RMSPROP_CENTERED,
    CTN__SWEEP_RMSPROP_GRAVES,
    CTN__SWEEP_ADAGRAD,
    CTN__SWEEP_ADADELTA,
    CTN__SWEEP_ADAMAX,
    CTN__SWEEP_NADAM,
    CTN__SWEEP_LION,
    CTN__SWEEP_BOUND,
    CTN__SWEEP_AMSBOUND,
    CTN__SWEEP_SMORMS3,
    CTN__SWEEP_MSVAG,
    CTN__SWEEP_LAMB,
    CTN__SWEEP_GRADIENT,
    CTN__SWEEP_KINDS
} ctn__sweep_kind;

/* Elements [begin, end) of the pools and their hyperparameters. Everything that depends on the step
 * or on 1 - x is computed by the caller in double. A kernel rounds each number once to the type of
 * the pool, because 1 - 0.999f is wrong in the fifth digit. */
typedef struct {
    int64_t begin, end;
    double gscale;       /* multiplies g: 1 / loss scale, clipping factor, -1 to maximize */
    double lr;           /* Adam family: lr / (1 - beta1^t) */
    double lr2;          /* a second factor of this kind */
    double decay;        /* coupled weight decay */
    double keep;         /* decoupled weight decay; 1 for none */
    double beta1, rest1; /* rest1 = 1 - beta1 (Adam), 1 - dampening (momentum) */
    double beta2, rest2; /* rest2 = 1 - beta2 */
    /* 1 / sqrt(1 - beta2^t). A factor, so that only one division per element is left. */
    double bias2;
    double eps;
    double start;       /* what a state that begins with zeros lacks in the first step */
    double least, most; /* bounds */
    double clip, lasso; /* of GRADIENT: the largest gradient, the rate of L1 decay */
} ctn__sweep_seg;

/* The pools, all of the same type, length and layout, not overlapping; fastest if 64-byte aligned.
 * State that a kind does not name is not touched and may be NULL. */
typedef struct {
    void *w, *g;
    void *s1, *s2, *s3;
    uint16_t *low; /* NULL, or receives f32 w as bf16 (nearest even, NaN stays a quiet NaN) */
    bool f64;
} ctn__sweep_pool;

/* One update of every segment. Segments are in ascending order and do not overlap; gaps are not
 * touched. Each thread gets one contiguous share, cut at multiples of 16 elements. */
void ctn__sweep(ctn__sweep_kind kind, const ctn__sweep_pool *p, const ctn__sweep_seg *seg,
                int64_t segs, int threads);

#define CTN__SWEEP_BLOCK 4096 /* elements per partial sum of the norm */

/* Doubles of scratch that ctn__sweep_norm2 needs for n elements. */
static inline int64_t ctn__sweep_blocks(int64_t n)
{
    return (n + CTN__SWEEP_BLOCK - 1) / CTN__SWEEP_BLOCK;
}

/* Sum of a[i] b[i] over n elements, accumulated in double: first per block, into
 * partial[ctn__sweep_blocks(n)], then over the blocks in order. */
double ctn__sweep_dot(const void *a, const void *b, bool f64, int64_t n, double *partial,
                      int threads);
/* The dot product of g with itself. *finite: no infinity or NaN; in f64 also no overflow of the
 * sum. */
double ctn__sweep_norm2(const void *g, bool f64, int64_t n, double *partial, int threads,
                        bool *finite);

/* The kernels of one type, and of one instruction set: sweep_body.h compiled for it. */
typedef struct {
    void (*step[CTN__SWEEP_KINDS])(const ctn__sweep_pool *p, const ctn__sweep_seg *h, int64_t lo,
                                   int64_t hi);
    double (*dot)(const void *a, const void *b, int64_t n); /* n <= CTN__SWEEP_BLOCK */
} ctn__sweep_typed;

typedef struct {
    ctn__sweep_typed f32, f64;
    void (*narrow)(const float *w, uint16_t *low, int64_t n);
} ctn__sweep_kernels;

extern const ctn__sweep_kernels ctn__sweep_portable, ctn__sweep_avx2, ctn__sweep_avx512,
    ctn__sweep_sve;

#endif
