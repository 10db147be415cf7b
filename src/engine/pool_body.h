/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool kernels of one instruction set: pool_rows.h once per element type, and the table
 * POOL_TABLE. Included by pool.c, pool_avx2.c and pool_avx512.c, which set the target.
 */
#include <math.h>

#include "engine/pool.h"
#include "tensor/half.h"

#define WHOLE(x) (x)

enum { TILE = 256 }; /* elements of a row processed at a time */

typedef struct {
    int64_t lo, hi;
} span;

/* Elements of x in window o of dimension d. */
static inline span window(const ctn__windows *w, int d, int64_t o)
{
    int64_t lo = o * w->stride[d] - w->pad[d], hi = lo + w->kernel[d];
    return (span){lo < 0 ? 0 : lo, hi < w->in[d] ? hi : w->in[d]};
}

/* Windows of dimension d that contain element i. */
static inline span readers(const ctn__windows *w, int d, int64_t i)
{
    int64_t last = i + w->pad[d], before = last - w->kernel[d];
    int64_t lo = before < 0 ? 0 : before / w->stride[d] + 1, hi = last / w->stride[d] + 1;
    return (span){lo, hi < w->out[d] ? hi : w->out[d]};
}

/* Position of element i of x in window o. */
static inline int64_t place(const ctn__windows *w, int d, int64_t i, int64_t o)
{
    return i - (o * w->stride[d] - w->pad[d]);
}

#define T float
#define A float
#define GET WHOLE
#define PUT WHOLE
#define NAME(x) x##_f32
#include "engine/pool_rows.h"

#define T double
#define A double
#define GET WHOLE
#define PUT WHOLE
#define NAME(x) x##_f64
#include "engine/pool_rows.h"

#define T uint16_t
#define A float
#define GET ctn__bf16_get
#define PUT ctn__bf16_put
#define NAME(x) x##_bf16
#include "engine/pool_rows.h"

#define T uint16_t
#define A float
#define GET ctn__f16_get
#define PUT ctn__f16_put
#define NAME(x) x##_f16
#include "engine/pool_rows.h"

const ctn__pool_kernels POOL_TABLE[CTN__POOL_TYPES] = {
    [CTN__POOL_F32] = {max_f32, back_f32, pick_f32, sample_f32},
    [CTN__POOL_F64] = {max_f64, back_f64, pick_f64, sample_f64},
    [CTN__POOL_BF16] = {max_bf16, back_bf16, pick_bf16, sample_bf16},
    [CTN__POOL_F16] = {max_f16, back_f16, pick_f16, sample_f16},
};
