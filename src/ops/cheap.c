/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs of cheap elementwise ops in f32, each reading what the one before has made: a few vectors at a time stay in registers from the first to
 * the last, where kernels of their own would load and store them once per op. Every op is rounded as its own kernel does it.
 */
#include <string.h>

#include "ops/ops.h"

/* V: elements of a vector; N of them are taken at a time. */
#define ALL(statement)                                          \
    do {                                                        \
        _Pragma("GCC unroll 16") for (int k = 0; k < MANY; k++) \
        {                                                       \
            statement;                                          \
        }                                                       \
    } while (0)
#define WITH_ROW(statement) ALL(vec r; memcpy(&r, p->row + at + k * LANES, sizeof r); statement)
#define PICK(mask, yes, no) (vec)(((mask) & (ints)(yes)) | (~(mask) & (ints)(no)))

#define DEFINE_RUN(name, target, V, N)                                                             \
    target static void name(const ctn__cheap_op *op, int n, const float *x, float *y,              \
                            int64_t count)                                                         \
    {                                                                                              \
        typedef float vec __attribute__((vector_size((V) * sizeof(float))));                       \
        typedef int32_t ints __attribute__((vector_size((V) * sizeof(float))));                    \
        enum { LANES = (V), MANY = (N) };                                                          \
        const vec zero = {0};                                                                      \
        for (int64_t at = 0; at < count; at += MANY * LANES) {                                     \
            vec v[MANY];                                                                           \
            ALL(memcpy(&v[k], x + at + k * LANES, sizeof v[k]));                                   \
            ALL(__builtin_prefetch(x + at + (MANY + k) * LANES));                                  \
            for (const ctn__cheap_op *p = op; p < op + n; p++) {                                   \
                const float c = p->c;                                                              \
                switch (p->what) {                                                                 \
                case CTN__CHEAP_SCALE: ALL(v[k] = c * v[k]); break;                                \
                case CTN__CHEAP_SHIFT: ALL(v[k] = v[k] + c); break;                                \
                case CTN__CHEAP_SQUARE: ALL(v[k] = v[k] * v[k]); break;                            \
                case CTN__CHEAP_NEG: ALL(v[k] = -v[k]); break;                                     \
                case CTN__CHEAP_ABS: ALL(v[k] = (vec)((ints)v[k] & INT32_MAX)); break;             \
                case CTN__CHEAP_RELU: ALL(v[k] = (vec)(~(ints)(v[k] < zero) & (ints)v[k])); break; \
                case CTN__CHEAP_LEAKY:                                                             \
                    ALL(const vec w = c * v[k]; v[k] = PICK((ints)(v[k] > zero), v[k], w));        \
                    break;                                                                         \
                case CTN__CHEAP_ADD: WITH_ROW(v[k] = v[k] + r); break;                             \
                case CTN__CHEAP_MUL: WITH_ROW(v[k] = v[k] * r); break;                             \
                case CTN__CHEAP_SUB: WITH_ROW(v[k] = v[k] - r); break;                             \
                case CTN__CHEAP_FROM: WITH_ROW(v[k] = r - v[k]); break;                            \
                default: break;                                                                    \
                }                                                                                  \
            }                                                                                      \
            ALL(memcpy(y + at + k * LANES, &v[k], sizeof v[k]));                                   \
        }                                                                                          \
    }

DEFINE_RUN(run_portable, , 4, 8)
#if defined(__x86_64__) && defined(__GNUC__)
DEFINE_RUN(run_avx2, CTN__FOR_AVX2, 8, 8)
DEFINE_RUN(run_avx512, CTN__FOR_AVX512, 16, 16)
#else
#define run_avx2 run_portable
#define run_avx512 run_portable
#endif

void ctn__cheap_run(int isa, const ctn__cheap_op *op, int n, const float *x, float *y,
                    int64_t count)
{
    static void (*const of[])(const ctn__cheap_op *, int, const float *, float *,
                              int64_t) = {run_portable, run_avx2, run_avx512};
    of[isa](op, n, x, y, count);
}
