/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention in f32 without the matrix of probabilities: the kernels behind ops/attention.c.
 *
 * Queries and keys are cut into blocks. The forward pass goes through the blocks of keys for each
 * block of queries, and keeps the maximum and the sum of each row so far (online softmax). It
 * saves one number per row, the logarithm of the sum, from which the backward pass recomputes the
 * probabilities block by block. Memory is therefore linear in the length. Results do not depend on
 * the number of threads.
 */
#ifndef CTN_OPS_COMMON_ATTEND_H
#define CTN_OPS_COMMON_ATTEND_H

#include "engine/tile.h"
#include "ops/ops.h"

/* Products of one forward or backward block, in the order of their use. */
enum { CTN__ATTEND_TILES = 5 };

typedef struct {
    int64_t N, H, K; /* samples, heads of queries, heads of keys (a divisor of H) */
    int64_t L, M;    /* queries, keys */
    int64_t E, F;    /* width of queries and keys, of values */
    bool causal;
    int64_t window;         /* keys a query sees up to its own, and from its own on; 0: all */
    int64_t bq, bk, nq, nk; /* rows of a block of queries and of keys; numbers of blocks */
    int64_t parts;          /* into how many tasks a head is cut */
    ctn__tile *tile[CTN__ATTEND_TILES];
} ctn__attend;

/* One operand (N,heads,rows,columns) with any strides. */
typedef struct {
    const float *at;
    const int64_t *stride;
} ctn__attend_in;
typedef struct {
    float *at;
    const int64_t *stride;
} ctn__attend_out;

typedef struct {
    float scale;
    ctn__attend_in q, k, v;
    ctn__attend_in bias; /* at NULL: none; dimensions of length 1 have stride 0 */
    const void *lengths; /* number of visible keys of each sample; NULL: all */
    ctn_dtype length_type;
    float drop; /* probability that a probability is set to zero */
    uint64_t seed, stream;
} ctn__attend_args;

/* The caller has set the members up to window. On failure nothing is left to free. */
ctn_status ctn__attend_make(ctn__attend *t, bool backward, int threads);
void ctn__attend_drop(ctn__attend *t);
size_t ctn__attend_scratch(const ctn__attend *t, bool backward, int threads);

/* y (N,H,L,F) and sums (N,H,L), row-major: the logarithm of the sum of each row; infinity where a
 * query sees no key, and the result is zero. */
void ctn__attend_forward(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_out y,
                         float *sums, int threads, float *scratch);
/* Gradients of q, k and v (at NULL: not wanted) from y, its gradient g, and sums. */
void ctn__attend_backward(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_in y,
                          ctn__attend_in g, const float *sums, const ctn__attend_out grad[3],
                          int threads, float *scratch);

#endif
