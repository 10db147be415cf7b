/* SPDX-License-Identifier: Apache-2.0
 *
 * The register tile of matrix products for SVE: up to 8 rows of C times two vectors of any length.
 * Included by tile_f64.c and tile.c, which define TYPE, VEC (its vector type), ZERO (such a
 * vector), COUNT (elements of a vector) and BELOW(i, n) (a predicate: i, i + 1, ... are less than
 * n).
 */
#include <arm_sve.h>

enum { SVE_ROWS = 8 };

/* C (m, n) = A B, or C += A B; m <= 8, and n <= two vectors. Row i of A begins at a + i * ai, and
 * its elements are ak apart. The two vectors of row l of B begin at b and d plus at[l], or plus
 * l * bk if at is NULL. Rows of C are ck apart. Rows from m on repeat row m - 1: they compute and
 * store the same values. */
__attribute__((target("+sve"))) static inline void sve_tile(int64_t m, int64_t n, int64_t k,
                                                            const TYPE *a, int64_t ai, int64_t ak,
                                                            const TYPE *b, const TYPE *d,
                                                            int64_t bk, const int64_t *at, TYPE *c,
                                                            int64_t ck, bool add)
{
    const int64_t w = (int64_t)COUNT();
    const svbool_t p = BELOW(0, n), q = BELOW(w, n);
#define ALL_ROWS(R) R(0) R(1) R(2) R(3) R(4) R(5) R(6) R(7)
#define BEGIN(i)                                \
    const int64_t r##i = (i) < m ? (i) : m - 1; \
    VEC s##i = ZERO, t##i = ZERO;
#define MULTIPLY(i)                           \
    s##i = svmla_x(p, s##i, x, a[r##i * ai]); \
    t##i = svmla_x(q, t##i, y, a[r##i * ai]);
#define ADD_OLD(i)                                    \
    s##i = svadd_x(p, s##i, svld1(p, c + r##i * ck)); \
    t##i = svadd_x(q, t##i, svld1(q, c + r##i * ck + w));
#define STORE(i)                   \
    svst1(p, c + r##i * ck, s##i); \
    svst1(q, c + r##i * ck + w, t##i);
    ALL_ROWS(BEGIN)
    for (int64_t l = 0; l < k; l++, a += ak) {
        const int64_t o = at ? at[l] : l * bk;
        const VEC x = svld1(p, b + o), y = svld1(q, d + o);
        ALL_ROWS(MULTIPLY)
    }
    if (add) {
        ALL_ROWS(ADD_OLD)
    }
    ALL_ROWS(STORE)
#undef ALL_ROWS
#undef BEGIN
#undef MULTIPLY
#undef ADD_OLD
#undef STORE
}
