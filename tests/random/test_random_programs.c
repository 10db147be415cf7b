/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs. A seeded generator writes small programs of ops, views of views, variables
 * that are read and assigned, reads in mid-step, inner scopes, keep, gradients as tensors, two
 * optimizers, steps and retained values. Each program runs several times, with branches that
 * depend on the run, in every mode of a context. All modes must observe the same values, and the
 * same as a plain interpreter in double with its own reverse mode. In one mode, hostile calls that
 * the library has to refuse stand between the instructions. A failing case names its seed.
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

static long compared, unknown;

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
        for (int64_t e = 0; e < x->n; e++) size = fmax(size, fabs((double)x->v[e]));
        for (int64_t e = 0; e < x->n; e++) {
            double d = fabs((double)x->v[e] - (double)y->v[e]);
            bool nan = isnan(x->v[e]) && isnan(y->v[e]);
            if (!nan && !(d <= tol * size))
                fail_msg("seed %u, %s: run %d, line %d (%s), element %lld: %.9g and %.9g", g->seed,
                         what, x->run, x->at,
                         x->at < g->n ? rp_op_name[g->p[x->at].op] : "variable", (long long)e,
                         (double)x->v[e], (double)y->v[e]);
        }
    }
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
    program *g = malloc(sizeof *g);
    record expect = {0}, eager = {0};
    rp_generate(g, seed);
    if (print) rp_print_program(g);
    rp_run_reference(g, &expect);
    for (size_t c = 0; c < sizeof configs / sizeof *configs; c++) {
        record log = {0};
        char what[64];
        run_catena(g, &configs[c], &log);
        snprintf(what, sizeof what, "%s against the reference", configs[c].name);
        compare(g, &expect, &log, 2e-4, what);
        if (c == 0) {
            eager = log;
            continue;
        }
        snprintf(what, sizeof what, "%s against eager", configs[c].name);
        /* What is left of a refused call can be read too, which changes how ops are fused. */
        if (!configs[c].hostile) compare(g, &eager, &log, g->plain ? 0 : 1e-5, what);
        rp_forget(&log);
    }
    rp_forget(&expect);
    rp_forget(&eager);
    free(g);
}

static uint32_t first = 1;
static int count = PROGRAMS;

static void all_modes_agree(void **state)
{
    (void)state;
    for (int i = 0; i < count; i++) one_program(first + (uint32_t)i, count == 1);
    print_message("%d programs, %ld values compared, %ld unknown to the reference\n", count,
                  compared, unknown);
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
