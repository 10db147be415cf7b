/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention without the matrix of probabilities: the kernels behind ops/attention.c. They compute
 * in f32; operands may also be stored in a 16-bit type (attend_rows.c).
 *
 * Queries and keys are cut into blocks. The forward pass goes through the blocks of keys for each
 * block of queries, and keeps the maximum and the sum of each row so far (online softmax). It
 * saves one number per row, the logarithm of the sum, from which the backward pass recomputes the
 * probabilities block by block. Memory is therefore linear in the length. Results do not depend on
 * the number of threads.
 */
#ifndef CTN_OPS_COMMON_ATTEND_H
#define CTN_OPS_COMMON_ATTEND_H

#include "engine/isa.h"
#include "engine/tile.h"
#include "ops/common/along.h"
#include "ops/common/random.h"

/* Products of one forward or backward block, in the order of their use. */
enum { CTN__ATTEND_TILES = 5 };
enum { CTN__FEW = 16 }; /* queries of a head of keys that ctn__attend_few takes at most */

typedef struct {
    int64_t N, H, K; /* samples, heads of queries, heads of keys (a divisor of H) */
    int64_t L, M;    /* queries, keys */
    int64_t E, F;    /* width of queries and keys, of values */
    bool causal;
    int64_t window;         /* keys a query sees up to its own, and from its own on; 0: all */
    int64_t bq, bk, nq, nk; /* rows of a block of queries and of keys; numbers of blocks */
    int64_t parts;          /* into how many tasks a head is cut */
    bool few;               /* forward: ctn__attend_few is faster */
    ctn__isa isa;           /* asked once: asking takes a lock */
    ctn__tile *tile[CTN__ATTEND_TILES];
} ctn__attend;

/* One operand (N,heads,rows,columns) with any strides. */
typedef struct {
    const void *at;
    const int64_t *stride;
    ctn_dtype type;
} ctn__attend_in;
typedef struct {
    void *at;
    const int64_t *stride;
    ctn_dtype type;
} ctn__attend_out;

/* The mask: f32, with stride 0 in dimensions of length 1. */
typedef struct {
    const float *at; /* NULL: none */
    const int64_t *stride;
} ctn__attend_bias;

typedef struct {
    float scale;
    ctn__attend_in q, k, v;
    ctn__attend_bias bias;
    const void *lengths; /* number of visible keys of each sample; NULL: all */
    ctn_dtype length_type;
    const void *first; /* position of query 0 of each sample; NULL: 0 */
    ctn_dtype first_type;
    float drop; /* probability that a probability is set to zero */
    ctn__draws draws;
} ctn__attend_args;

/* Beyond every key; sums of such positions do not overflow. */
#define CTN__ATTEND_FAR (INT64_C(1) << 48)

/* Keys [lo,hi). */
typedef struct {
    int64_t lo, hi;
} ctn__keys;

/* What a query at position i sees of `keys` keys. */
static inline ctn__keys ctn__attend_visible(const ctn__attend *t, int64_t keys, int64_t i)
{
    ctn__keys r = {0, keys};
    if (t->causal && r.hi > i + 1) r.hi = i + 1;
    if (t->window > 0 && r.lo < i + 1 - t->window) r.lo = i + 1 - t->window;
    if (t->window > 0 && r.hi > i + t->window) r.hi = i + t->window;
    if (r.lo > keys) r.lo = keys;
    if (r.hi < r.lo) r.hi = r.lo;
    return r;
}

/* The number of keys of sample n, and the position of its first query. */
static inline int64_t ctn__attend_keys(const ctn__attend *t, const ctn__attend_args *a, int64_t n)
{
    if (!a->lengths) return t->M;
    const int64_t k = ctn__index_get(a->lengths, a->length_type, n);
    return k < 0 ? 0 : k < t->M ? k : t->M;
}

static inline int64_t ctn__attend_first(const ctn__attend_args *a, int64_t n)
{
    const int64_t far = CTN__ATTEND_FAR;
    const int64_t i = a->first ? ctn__index_get(a->first, a->first_type, n) : 0;
    return i < -far ? -far : i < far ? i : far;
}

/* to = row i of head h of sample n, times c. */
void ctn__attend_read(float *to, const ctn__attend_in *x, int64_t n, int64_t h, int64_t i,
                      int64_t cols, float c);
/* That row of y = from[0], from[next], ..., times c. */
void ctn__attend_write(const ctn__attend_out *y, int64_t n, int64_t h, int64_t i, const float *from,
                       int64_t next, int64_t cols, float c);

/* The caller has set the members up to window. On failure nothing is left to free. */
ctn_status ctn__attend_make(ctn__attend *t, bool backward, int threads);
void ctn__attend_drop(ctn__attend *t);
size_t ctn__attend_scratch(const ctn__attend *t, bool backward, int threads);

/* y (N,H,L,F) and sums (N,H,L), row-major: the logarithm of the sum of each row; infinity where a
 * query sees no key, and the result is zero. */
void ctn__attend_forward(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_out y,
                         float *sums, int threads, float *scratch);
/* The same for a few queries, as when text is generated: without packing, so each key and value is
 * read once for all queries that share it. */
void ctn__attend_few(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_out y,
                     float *sums, int threads, float *scratch);
size_t ctn__attend_few_floats(const ctn__attend *t); /* scratch of a thread */
/* Gradients of q, k and v (at NULL: not wanted) from y, its gradient g, and sums. */
void ctn__attend_backward(const ctn__attend *t, const ctn__attend_args *a, ctn__attend_in y,
                          ctn__attend_in g, const float *sums, const ctn__attend_out grad[3],
                          int threads, float *scratch);

#endif
