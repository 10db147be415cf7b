/* SPDX-License-Identifier: Apache-2.0
 *
 * Fused elementwise chains whose values have several types (plan/fuse/elementwise.c) are equal to
 * the bit to the same ops one by one: random programs of casts, comparisons, logic, where and
 * arithmetic on operands of every type, some of which are read again later.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/ok.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__aarch64__)
enum { PROGRAMS = 100 };
#else
enum { PROGRAMS = 1500 };
#endif
enum { ROWS = 70, COLS = 64, COUNT = ROWS * COLS, INPUTS = 4, MOST = 40, RESULTS = 3 };

static float in[INPUTS][COUNT];
static double y[2][RESULTS][COUNT];

static uint32_t state;
static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static ctn_tensor *one(ctn_tensor *a, ctn_tensor *b, ctn_tensor *c)
{
    static const ctn_dtype types[] = {CTN_F32, CTN_F32, CTN_F64, CTN_I64,
                                      CTN_I32, CTN_U8,  CTN_BOOL};
    const ctn_dtype t = ctn_dtype_of(a);
    const uint32_t what = draw(12);
    if (what < 3) return ctn_cast(a, types[draw(7)]);
    b = ctn_cast(b, t);
    switch (what) {
    case 3: return ctn_less(a, b);
    case 4: return ctn_equal(a, b);
    case 5:
    case 6:
    case 7: return ctn_where(ctn_cast(c, CTN_BOOL), a, b);
    case 8: return ctn_logical_and(ctn_cast(a, CTN_BOOL), ctn_cast(b, CTN_BOOL));
    case 9: return ctn_where(ctn_less(ctn_cast(c, CTN_F32), ctn_cast(b, CTN_F32)), a, b);
    default: break;
    }
    if (t != CTN_F32 && t != CTN_F64) return ctn_where(ctn_less(a, b), b, a);
    return what == 10 ? ctn_tanh(ctn_mul(a, b)) : ctn_sub(ctn_abs(a), b);
}

static void run(uint32_t seed, bool fuse, ctn_precision precision, double (*to)[COUNT])
{
    ctn_context *ctx;
    ctn_tensor *t[MOST];
    int n = 0;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .no_fuse = !fuse,
                                     .precision = precision)));
    state = seed * 2654435761u;
    OK(ctn_scope_begin(ctx));
    while (n < INPUTS) {
        t[n] = ctn_input(ctx, in[n], CTN_F32, CTN_SHAPE(ROWS, COLS));
        n++;
    }
    OK(ctn_scope_begin(ctx));
    for (const int end = INPUTS + 3 + (int)draw(MOST - INPUTS - 3); n < end; n++) {
        /* mostly the newest values, so that chains become long */
        ctn_tensor *a = t[n - 1 - (int)draw(n < 8 ? (uint32_t)n : 3)], *b = t[draw((uint32_t)n)];
        t[n] = one(a, b, t[draw((uint32_t)n)]);
        if (!t[n]) fail_msg("seed %u: %s", seed, ctn_error_message());
    }
    ctn_tensor *last[RESULTS];
    for (int k = 0; k < RESULTS; k++) last[k] = ctn_cast(t[n - 1 - k], CTN_F64);
    ctn_tensor *all = ctn_scope_return(ctx, ctn_concat(RESULTS, last, 0));
    OK(ctn_read(all, to, RESULTS * sizeof *to));
    OK(ctn_scope_end(ctx));
    ctn_context_free(ctx);
}

static void the_same_bits(void **state_)
{
    (void)state_;
    state = 1;
    for (int i = 0; i < INPUTS; i++)
        for (int k = 0; k < COUNT; k++) in[i][k] = (float)((int)draw(9) - 4) / (float)(1 + draw(2));
    for (uint32_t seed = 1; seed <= PROGRAMS; seed++) {
        const ctn_precision p = seed % 3 == 0 ? CTN_PRECISION_F64 : CTN_PRECISION_F32;
        run(seed, true, p, y[0]);
        run(seed, false, p, y[1]);
        if (memcmp(y[0], y[1], sizeof y[0]) != 0) fail_msg("seed %u", seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
