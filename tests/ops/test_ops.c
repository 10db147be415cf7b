/* SPDX-License-Identifier: Apache-2.0
 *
 * Every op against its cases: `test_ops`, `test_ops OP`, `test_ops OP/CASE`. Prints one line for
 * each case that fails, with the command that repeats it. `test_ops --list` prints the op of each
 * case, and `test_ops --hostile [OP]` only tries hostile operands (hostile.c). An op of the library
 * without a case is a failure too. Without arguments, the harness itself is tested first, with ops
 * that are wrong on purpose.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "check.h"
#include "ops/ops.h"

#define CASES(name) name,
static const op_case *const tables[] = {
#include "case_tables.def"
};
#undef CASES
enum { NTABLES = sizeof tables / sizeof *tables };

static const char *wanted; /* OP or OP/CASE; NULL: all */

static bool selected(const op_case *c)
{
    if (!wanted) return true;
    size_t n = strlen(c->op);
    if (strncmp(wanted, c->op, n) != 0) return false;
    return wanted[n] == 0 || (wanted[n] == '/' && strcmp(wanted + n + 1, c->name) == 0);
}

static void test_cases(void **state)
{
    (void)state;
    int ran = 0, failed = 0;
    for (int t = 0; t < NTABLES; t++) {
        for (const op_case *c = tables[t]; c->op; c++) {
            fault f;
            if (!selected(c)) continue;
            ran++;
            if (check_case(c, &f)) continue;
            failed++;
            for (char *p = f.text; *p; p++) /* traces have several lines */
                if (*p == '\n') *p = ' ';
            print_error("test_ops %s/%s: %s\n", c->op, c->name, f.text);
        }
    }
    if (ran == 0) fail_msg("no case is named %s", wanted);
    if (failed) fail_msg("%d of %d cases failed", failed, ran);
}

static void test_hostile(void **state)
{
    (void)state;
    int failed = 0;
    fault f;
    if (!hostile_start(&f)) fail_msg("%s", f.text);
    for (int t = 0; t < NTABLES; t++) {
        for (const op_case *c = tables[t]; c->op; c++) {
            if (!selected(c) || check_hostile(c, &f)) continue;
            failed++;
            print_error("%s\n", f.text);
        }
    }
    hostile_finish();
    assert_int_equal(failed, 0);
}

static bool has_case(const char *op, size_t n, int grad)
{
    for (int t = 0; t < NTABLES; t++)
        for (const op_case *c = tables[t]; c->op; c++)
            if (strlen(c->op) == n && strncmp(c->op, op, n) == 0 && c->grad >= grad) return true;
    return false;
}

static ctn_op *const all_ops[] = {
#define CTN__OP(name) &ctn__op_##name,
#include "ops/ops.def"
#undef CTN__OP
};

/* x_grad, x_grad_weight and so on are covered by gradients of x, and so is conv_weights.
 * conv_affine is made by fusion only (tests/unit). */
static void test_coverage(void **state)
{
    (void)state;
    int missing = 0;
    for (size_t i = 0; i < sizeof all_ops / sizeof *all_ops; i++) {
        const char *op = all_ops[i]->name, *grad = strstr(op, "_grad");
        if (!grad) grad = strstr(op, "_weights");
        if (!all_ops[i]->infer) continue;
        if (has_case(op, strlen(op), 0)) continue;
        if (grad && has_case(op, (size_t)(grad - op), 1)) continue;
        print_error("op %s has no case in tests/ops\n", op);
        missing++;
    }
    assert_int_equal(missing, 0);
}

/* A name must identify the case to repeat. */
static void test_names(void **state)
{
    (void)state;
    for (int t = 0; t < NTABLES; t++) {
        for (const op_case *c = tables[t]; c->op; c++) {
            for (int u = 0; u <= t; u++)
                for (const op_case *d = tables[u]; d->op && d != c; d++)
                    if (strcmp(c->op, d->op) == 0 && strcmp(c->name, d->name) == 0)
                        fail_msg("two cases are named %s/%s", c->op, c->name);
        }
    }
}

/* d(x + detach(x))/dx = 1: finite differences cannot show it. */
static void test_detach_stops_gradients(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    float x[3] = {1, 2, 3}, g[3] = {0};
    ctn_tensor *gx;
    assert_int_equal(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)), CTN_OK);
    assert_int_equal(ctn_scope_begin(ctx), CTN_OK);
    ctn_tensor *t = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(3)));
    assert_int_equal(ctn_grad(ctn_add(t, ctn_detach(t)), 1, &t, &gx), CTN_OK);
    assert_int_equal(ctn_read(gx, g, sizeof g), CTN_OK);
    for (int i = 0; i < 3; i++) assert_true(g[i] == 1.0f);
    assert_int_equal(ctn_scope_end(ctx), CTN_OK);
    ctn_context_free(ctx);
}

static void test_memory(void **state)
{
    (void)state;
    fault f;
    if (!check_finish(&f)) fail_msg("%s", f.text);
}

static int list_ops(void)
{
    for (int t = 0; t < NTABLES; t++)
        for (const op_case *c = tables[t]; c->op; c++) puts(c->op);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest all[] = {
        cmocka_unit_test(selftest_right),
        cmocka_unit_test(selftest_wrong_forward),
        cmocka_unit_test(selftest_wrong_gradient),
        cmocka_unit_test(selftest_wrong_second_gradient),
        cmocka_unit_test(selftest_too_far),
        cmocka_unit_test(selftest_not_repeatable),
        cmocka_unit_test(selftest_threads),
        cmocka_unit_test(selftest_writes_input),
        cmocka_unit_test(selftest_unwritten_scratch),
        cmocka_unit_test(selftest_eager),
        cmocka_unit_test(selftest_strides),
        cmocka_unit_test(selftest_not_recorded),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_coverage),
        cmocka_unit_test(test_detach_stops_gradients),
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_memory),
    };
    const struct CMUnitTest some[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_memory),
    };
    const struct CMUnitTest hostile[] = {
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_memory),
    };
    const bool attack = argc > 1 && strcmp(argv[1], "--hostile") == 0;
    if (attack) {
        argc--;
        argv++;
    }
    if (argc == 3 && strcmp(argv[1], "--onnx") == 0) return write_onnx(argv[2], tables, NTABLES);
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return list_ops();
    if (argc > 2) {
        print_error("usage: %s [OP | OP/CASE | --hostile [OP] | --list | --onnx FOLDER]\n",
                    argv[0]);
        return 2;
    }
    if (guard_install() < 0) {
        print_error("%s\n", ctn_error_message());
        return 1;
    }
    wanted = argc > 1 ? argv[1] : NULL;
    if (attack) return cmocka_run_group_tests(hostile, NULL, NULL);
    return wanted ? cmocka_run_group_tests(some, NULL, NULL)
                  : cmocka_run_group_tests(all, NULL, NULL);
}
