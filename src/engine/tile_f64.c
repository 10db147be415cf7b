/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/tile_f64.h"

#include <string.h>

#include "engine/isa.h"

/* V: elements per vector. The tile has MR rows of NV vectors. */
#define DEFINE_TILE(name, target, V, MR, NV)                                                     \
    target static void name(int64_t k, const double *a, int64_t step, const double *const *from, \
                            const int64_t *at, double *c, int64_t row, bool add)                 \
    {                                                                                            \
        typedef double vec __attribute__((vector_size((V) * sizeof(double))));                   \
        vec sum[MR][NV];                                                                         \
        const double *p[NV];                                                                     \
        memcpy(p, from, sizeof p);                                                               \
        _Pragma("GCC unroll 8") for (int i = 0; i < (MR); i++)                                   \
        {                                                                                        \
            _Pragma("GCC unroll 4") for (int j = 0; j < (NV); j++)                               \
            {                                                                                    \
                sum[i][j] = (vec){0};                                                            \
                __builtin_prefetch(c + i * row + j * (V), 1);                                    \
            }                                                                                    \
        }                                                                                        \
        for (int64_t l = 0; l < k; l++, a += step) {                                             \
            vec x[NV];                                                                           \
            const int64_t o = at[l];                                                             \
            _Pragma("GCC unroll 4") for (int j = 0; j < (NV); j++)                               \
                memcpy(&x[j], p[j] + o, sizeof x[j]);                                            \
            _Pragma("GCC unroll 8") for (int i = 0; i < (MR); i++)                               \
            {                                                                                    \
                _Pragma("GCC unroll 4") for (int j = 0; j < (NV); j++) sum[i][j] += x[j] * a[i]; \
            }                                                                                    \
        }                                                                                        \
        _Pragma("GCC unroll 8") for (int i = 0; i < (MR); i++, c += row)                         \
        {                                                                                        \
            _Pragma("GCC unroll 4") for (int j = 0; j < (NV); j++)                               \
            {                                                                                    \
                vec y = {0};                                                                     \
                if (add) memcpy(&y, c + j * (V), sizeof y);                                      \
                y += sum[i][j];                                                                  \
                memcpy(c + j * (V), &y, sizeof y);                                               \
            }                                                                                    \
        }                                                                                        \
    }

#if defined(__x86_64__) && defined(__GNUC__)
DEFINE_TILE(tile_portable, , 2, 4, 2)
DEFINE_TILE(tile_avx2, __attribute__((target("avx2,fma"))), 4, 4, 3)
DEFINE_TILE(tile_avx512, __attribute__((target("avx512f,prefer-vector-width=512"))), 8, 8, 3)
#elif defined(__aarch64__) && defined(__GNUC__)
DEFINE_TILE(tile_portable, , 2, 6, 4) /* NEON: 32 registers */
#define TYPE double
#define VEC svfloat64_t
#define ZERO svdup_f64(0)
#define COUNT svcntd
#define BELOW svwhilelt_b64_s64
#include "engine/sve_tile.h"

CTN__FOR_SVE static int sve_lanes(void)
{
    return (int)svcntd();
}

CTN__FOR_SVE static void tile_sve(int64_t k, const double *a, int64_t step, const double *const *x,
                                  const int64_t *at, double *c, int64_t row, bool add)
{
    const int64_t n = 2 * (int64_t)svcntd();
    sve_tile(SVE_ROWS, n, k, a, 1, step, x[0], x[1], 0, at, c, row, add);
}
#else
DEFINE_TILE(tile_portable, , 2, 4, 2)
#endif

ctn__f64_tile ctn__f64_tile_best(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    static const ctn__f64_tile of[] = {{tile_portable, 4, 2, 2},
                                       {tile_avx2, 4, 3, 4},
                                       {tile_avx512, 8, 3, 8}};
    return of[ctn__isa_in_use()];
#elif defined(__aarch64__) && defined(__GNUC__)
    if (ctn__isa_in_use() == CTN__ISA_SVE)
        return (ctn__f64_tile){tile_sve, SVE_ROWS, 2, sve_lanes()};
    return (ctn__f64_tile){tile_portable, 6, 4, 2};
#else
    return (ctn__f64_tile){tile_portable, 4, 2, 2};
#endif
}
