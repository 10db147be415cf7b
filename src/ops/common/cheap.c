/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of cheap elementwise ops in f32, each of which reads the result of the previous one. A few
 * vectors at a time stay in registers from the first op to the last, where separate kernels would
 * load and store them once per op. Every op rounds exactly as its own kernel does.
 */
#include <string.h>

#include "ops/ops.h"

/* Run a statement for each vector v[k]. WITH_ROW also loads r, the same elements of p->row. */
#define ALL(statement)                                          \
    do {                                                        \
        _Pragma("GCC unroll 16") for (int k = 0; k < MANY; k++) \
        {                                                       \
            statement;                                          \
        }                                                       \
    } while (0)
#define WITH_ROW(statement) ALL(vec r; memcpy(&r, p->row + at + k * LANES, sizeof r); statement)
#define PICK(mask, yes, no) (vec)(((mask) & (ints)(yes)) | (~(mask) & (ints)(no)))

#define RUN run_portable
#define TARGET
#define LANES 4
#define MANY 8
#include "ops/common/cheap_body.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define RUN run_avx2
#define TARGET CTN__FOR_AVX2
#define LANES 8
#define MANY 8
#include "ops/common/cheap_body.h"

#define RUN run_avx512
#define TARGET CTN__FOR_AVX512
#define LANES 16
#define MANY 16
#include "ops/common/cheap_body.h"
#elif defined(__aarch64__) && defined(__GNUC__)
#include "ops/common/cheap_block.h"
#endif

void ctn__cheap_run(int isa, const ctn__cheap_op *op, int n, const float *x, float *y,
                    int64_t count)
{
    static void (*const of[])(const ctn__cheap_op *, int, const float *, float *, int64_t) =
        CTN__ISA_TABLE(run);
    of[isa](op, n, x, y, count);
}
