/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of cheap elementwise ops (ops/common/cheap.c) are bitwise equal to the same ops one by
 * one: random chains with and without second operands, lengths around the vector step, signed
 * zeros, infinities and NaN, every instruction set of the machine, several threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "engine/isa.h"
#include "support/ok.h"

enum { MOST = 40000, ROWS = 3, LONGEST = 150 };
static float x[MOST], row[ROWS][MOST], y[2][MOST];

static uint32_t state;
static uint32_t draw(uint32_t below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static void fill(float *to)
{
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-30f, -1e30f};
    for (int i = 0; i < MOST; i++)
        to[i] = draw(20) == 0 ? odd[draw(7)] : (float)draw(2000) / 1000 - 1;
}

static ctn_tensor *one(ctn_tensor *t, ctn_tensor *r, uint32_t what)
{
    switch (what) {
    case 0: return ctn_scale(t, -0.75);
    case 1: return ctn_shift(t, 0.3);
    case 2: return ctn_square(t);
    case 3: return ctn_neg(t);
    case 4: return ctn_abs(t);
    case 5: return ctn_relu(t);
    case 6: return ctn_leaky_relu(t, -0.1);
    case 7: return ctn_add(t, r);
    case 8: return ctn_mul(r, t);
    case 9: return ctn_sub(t, r);
    case 10: return ctn_sub(r, t);
    case 11: return ctn_add(t, t);           /* used twice: ends a run */
    case 12: return ctn_mul(ctn_tanh(t), t); /* so does an op that is not cheap */
    default: return ctn_add(r, t);
    }
}

/* Runs the chain of this seed, fused or not. */
static void run(uint32_t seed, int64_t n, bool fuse, int threads, float *to)
{
    ctn_context *c;
    OK(ctn_context_new(&c, CTN_OPT(ctn_context_opt, .threads = threads, .no_fuse = !fuse)));
    state = seed;
    const uint32_t length = 1 + draw(seed % 5 == 0 ? LONGEST : 12);
    OK(ctn_scope_begin(c));
    ctn_tensor *t = ctn_input(c, x, CTN_F32, CTN_SHAPE(n)), *r[ROWS];
    for (int i = 0; i < ROWS; i++) r[i] = ctn_input(c, row[i], CTN_F32, CTN_SHAPE(n));
    OK(ctn_scope_begin(c));
    for (uint32_t i = 0; i < length; i++) {
        const uint32_t which = draw(ROWS);
        t = one(t, r[which], draw(seed % 3 == 0 ? 7 : 14));
    }
    OK(ctn_read(ctn_scope_return(c, t), to, (size_t)n * sizeof *to));
    OK(ctn_scope_end(c));
    ctn_context_free(c);
}

static bool same(const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if ((a[i] != b[i] || signbit(a[i]) != signbit(b[i])) && !(isnan(a[i]) && isnan(b[i])))
            return false;
    return true;
}

static void the_same_bits(void **state_)
{
    (void)state_;
    static const int64_t lengths[] = {1, 255, 256, 257, 1023, 1024, 1025, 16384, 16641, MOST};
    state = 1;
    fill(x);
    for (int i = 0; i < ROWS; i++) fill(row[i]);
    for (int isa = CTN__ISA_PORTABLE; isa <= CTN__ISA_BEST; isa++) {
        if (ctn__isa_limit((ctn__isa)isa) != (ctn__isa)isa) break;
        for (uint32_t seed = 1; seed <= 120; seed++) {
            const int64_t n = lengths[seed % 10];
            run(seed, n, true, 1 + (int)(seed % 2), y[0]);
            run(seed, n, false, 1, y[1]);
            if (!same(y[0], y[1], n)) fail_msg("seed %u, isa %d, %lld", seed, isa, (long long)n);
        }
    }
    ctn__isa_limit(CTN__ISA_BEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
