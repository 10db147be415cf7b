/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs. A seeded generator writes small programs of ops, views of views, variables
 * that are read and assigned, reads in mid-step, inner scopes, keep, gradients as tensors, two
 * optimizers, steps and retained values. Each program runs several times, with branches that
 * depend on the run, in every mode of a context. All modes must observe the same values, and the
 * same as a plain interpreter in double with its own reverse mode. In one mode, hostile calls that
 * the library has to refuse stand between the instructions. In two modes, everything is f64, and
 * equal to the bit on x86-64. Some programs have NaN and infinities among their data. A failing
 * case names its seed.
 *
 *   test_random_programs SEED          runs that program alone and prints it
 *   test_random_programs FIRST COUNT   runs COUNT programs, starting from the seed FIRST
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_machine.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__aarch64__)
enum { PROGRAMS = 60 }; /* AArch64: emulated by qemu */
#else
enum { PROGRAMS = 1000 };
#endif
#ifdef __x86_64__
#define F64_TOLERANCE 0
#else
#define F64_TOLERANCE 1e-13
#endif

/* ---- the program in Catena ------------------------------------------------------------------ */

typedef struct {
    const char *name;
    ctn_context_opt opt;
    bool check, guard, hostile;
} config;

static void run_catena(const program *g, const config *c, record *log)
{
    machine *m = calloc(1, sizeof *m);
    m->g = g;
    m->name = c->name;
    m->opt = c->opt;
    m->hostile = c->hostile;
    setenv("CATENA_CHECK", c->check ? "1" : "0", 1);
    setenv("CATENA_GUARD", c->guard ? "1" : "0", 1);
    rm_run(m);
    *log = m->log;
    if (m->why[0]) fail_msg("%s", m->why);
    free(m);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static long compared, unknown, special;

static void compare(const program *g, const record *a, const record *b, double tol,
                    const char *what)
{
    if (a->n != b->n) fail_msg("seed %u, %s: %d and %d observations", g->seed, what, a->n, b->n);
    for (int k = 0; k < a->n; k++) {
        const observation *x = &a->s[k], *y = &b->s[k];
        if (x->at != y->at || x->n != y->n)
            fail_msg("seed %u, %s: different observations", g->seed, what);
        if (!x->known || !y->known) {
            unknown++;
            continue;
        }
        compared++;
        double size = 1;
        for (int64_t e = 0; e < x->n; e++)
            if (isfinite(x->v[e])) size = fmax(size, fabs(x->v[e]));
        for (int64_t e = 0; e < x->n; e++) {
            const double d = fabs(x->v[e] - y->v[e]);
            const bool same = x->v[e] == y->v[e] || (isnan(x->v[e]) && isnan(y->v[e]));
            special += !isfinite(x->v[e]);
            if (!same && !(d <= tol * size))
                fail_msg("seed %u, %s: run %d, line %d (%s), element %lld: %.17g and %.17g",
                         g->seed, what, x->run, x->at,
                         x->at < g->n ? rp_op_name[g->p[x->at].op] : "variable", (long long)e,
                         x->v[e], y->v[e]);
        }
    }
}

/* Runs the program in a mode, and compares it with the reference and with eager mode in the same
 * type, which is empty in eager mode and then becomes the result. */
static void one_mode(const program *g, const config *c, const record *expect, record *eager)
{
    const bool f64 = c->opt.precision == CTN_PRECISION_F64;
    record log = {0};
    char what[64];
    run_catena(g, c, &log);
    snprintf(what, sizeof what, "%s against the reference", c->name);
    compare(g, expect, &log, f64 ? 1e-12 : 2e-4, what);
    if (eager->n == 0) {
        *eager = log;
        return;
    }
    snprintf(what, sizeof what, "%s against eager", c->name);
    compare(g, eager, &log, g->plain ? 0 : f64 ? F64_TOLERANCE : 1e-5, what);
    rp_forget(&log);
}

static void one_program(uint32_t seed, bool print)
{
    static const config configs[] = {
        {"eager", {.mode = CTN_MODE_EAGER, .threads = 1}, false, false, false},
        {"not fused", {.mode = CTN_MODE_PLANNED, .threads = 1, .no_fuse = 1}, true, false, false},
        {"fused", {.mode = CTN_MODE_PLANNED, .threads = 1}, false, false, false},
        {"fused, guarded, 2 threads", {.mode = CTN_MODE_PLANNED, .threads = 2}, true, true, false},
        {"two plans", {.mode = CTN_MODE_PLANNED, .threads = 1, .max_plans = 2}, false, true, false},
        {"hostile calls", {.mode = CTN_MODE_PLANNED, .threads = 1}, true, true, true},
    };
    static const config wide[] = {
        {"eager f64",
         {.mode = CTN_MODE_EAGER, .threads = 1, .precision = CTN_PRECISION_F64},
         false,
         false,
         false},
        {"fused f64",
         {.mode = CTN_MODE_PLANNED, .threads = 2, .precision = CTN_PRECISION_F64},
         true,
         true,
         false},
    };
    program *g = malloc(sizeof *g);
    rp_generate(g, seed);
    if (print) rp_print_program(g);
    for (int f64 = 0; f64 < 2; f64++) {
        const size_t n = f64 ? sizeof wide / sizeof *wide : sizeof configs / sizeof *configs;
        record expect = {0}, eager = {0};
        rp_run_reference(g, f64, &expect);
        for (size_t c = 0; c < n; c++) one_mode(g, f64 ? &wide[c] : &configs[c], &expect, &eager);
        rp_forget(&expect);
        rp_forget(&eager);
    }
    free(g);
}

static uint32_t first = 1;
static int count = PROGRAMS;

static void all_modes_agree(void **state)
{
    (void)state;
    for (int i = 0; i < count; i++) one_program(first + (uint32_t)i, count == 1);
    print_message(
        "%d programs, %ld values compared, %ld unknown to the reference, %ld elements not "
        "finite\n",
        count, compared, unknown, special);
    assert_true(count == 1 || compared > 20 * count);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_modes_agree)};
    if (argc > 1) {
        first = (uint32_t)strtoul(argv[1], NULL, 10);
        count = argc > 2 ? atoi(argv[2]) : 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
