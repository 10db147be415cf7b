/* SPDX-License-Identifier: Apache-2.0
 *
 * f64 products (engine/product.c) against a plain loop: sizes around the edges of tiles and
 * blocks, all transposes, gaps between rows, broadcast batches, every instruction set of the
 * machine. The bits do not depend on the thread count.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/engine.h"
#include "engine/isa.h"

static double *numbers(size_t n, uint32_t seed)
{
    double *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (double)(seed >> 8) / 8388608.0 - 1;
    }
    return x;
}

/* (batch, r, c) in rows with `gap` unused elements after each, or its transpose. */
static ctn_desc matrix(int64_t batch, int64_t r, int64_t c, bool turned, int64_t gap)
{
    const int64_t row = (turned ? r : c) + gap;
    ctn_desc d = {.dtype = CTN_F64, .ndim = 3, .dim = {batch, r, c}};
    d.stride[0] = (turned ? c : r) * row;
    d.stride[1] = turned ? 1 : row;
    d.stride[2] = turned ? row : 1;
    return d;
}

static double plain(const ctn_desc *a, const ctn_desc *b, const double *x, const double *y,
                    int64_t g, int64_t i, int64_t j)
{
    double s = 0;
    x += (a->dim[0] > 1 ? g : 0) * a->stride[0] + i * a->stride[1];
    y += (b->dim[0] > 1 ? g : 0) * b->stride[0] + j * b->stride[2];
    for (int64_t k = 0; k < a->dim[2]; k++) s += x[k * a->stride[2]] * y[k * b->stride[1]];
    return s;
}

typedef struct {
    int64_t ba, bb, m, n, k; /* batches of A and B */
} size;

static void check(const size *s, bool ta, bool tb, int threads)
{
    const int64_t nb = s->ba > s->bb ? s->ba : s->bb;
    const ctn_desc a = matrix(s->ba, s->m, s->k, ta, 3), b = matrix(s->bb, s->k, s->n, tb, 1);
    const ctn_desc c = matrix(nb, s->m, s->n, false, 0);
    const size_t count = (size_t)(nb * s->m * s->n);
    double *x = numbers((size_t)(s->ba * a.stride[0]), 1);
    double *y = numbers((size_t)(s->bb * b.stride[0]), 2);
    double *z = numbers(count + 8, 3), *one = numbers(count, 4);
    double *after = malloc(8 * sizeof *after);
    void *scratch = aligned_alloc(64, ctn__product_f64_scratch(threads));
    assert_true(after != NULL && scratch != NULL);
    memcpy(after, z + count, 8 * sizeof *after);
    ctn__product_f64(&a, &b, &c, x, y, z, threads, scratch);
    ctn__product_f64(&a, &b, &c, x, y, one, 1, scratch);
    assert_memory_equal(z, one, count * sizeof *z);
    assert_memory_equal(after, z + count, 8 * sizeof *after);
    for (int64_t g = 0, at = 0; g < nb; g++)
        for (int64_t i = 0; i < s->m; i++)
            for (int64_t j = 0; j < s->n; j++, at++)
                if (fabs(z[at] - plain(&a, &b, x, y, g, i, j)) > 1e-15 * (double)(s->k + 8))
                    fail_msg("%lld x %lld x %lld, element %lld, %lld, %lld: %.17g", (long long)s->m,
                             (long long)s->n, (long long)s->k, (long long)g, (long long)i,
                             (long long)j, z[at]);
    free(x);
    free(y);
    free(z);
    free(one);
    free(after);
    free(scratch);
}

static void every_size_and_instruction_set(void **state)
{
    (void)state;
    static const size sizes[] = {
        {1, 1, 1, 1, 1},      {1, 1, 8, 24, 5},   {1, 1, 7, 23, 130}, {3, 1, 9, 25, 64},
        {1, 4, 33, 11, 17},   {2, 2, 1, 100, 3},  {1, 1, 100, 1, 40}, {1, 1, 200, 49, 129},
        {1, 1, 12, 1600, 16}, {7, 7, 16, 48, 20}, {1, 1, 4, 12, 0},   {1, 1, 0, 5, 3},
    };
    for (int isa = CTN__ISA_PORTABLE; isa <= CTN__ISA_BEST; isa++) {
        if (ctn__isa_limit((ctn__isa)isa) != (ctn__isa)isa) break;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int t = 0; t < 4; t++) check(&sizes[i], t & 1, t & 2, 1 + (int)i % 4);
    }
    ctn__isa_limit(CTN__ISA_BEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_size_and_instruction_set)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
