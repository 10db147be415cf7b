/* SPDX-License-Identifier: Apache-2.0
 *
 * The notice that an op runs on a reference kernel: it names the op and its line, comes once per
 * context, in planned and eager mode, and not at all if the other kernels of the plan do more than
 * 99 % of the arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/log.h>

#include <cmocka.h>

#include "support/ok.h"

enum { N = 64 };
static const float numbers[N * N];
static char told[512];
static int notices;
static int64_t work; /* operations of the slow op */

static void hear(void *user, const char *message)
{
    (void)user;
    notices++;
    snprintf(told, sizeof told, "%s", message);
}

static ctn_status same(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static ctn_status prepare(ctn_prepare_args *a)
{
    a->kernel = "ref:loop";
    a->flops = work;
    return CTN_OK;
}

static ctn_status run(const ctn_run_args *a)
{
    memcpy(a->out[0], a->in[0], N * N * sizeof(float));
    return CTN_OK;
}

static ctn_op slow_op = {.struct_size = sizeof slow_op,
                         .name = "crawl",
                         .nin = 1,
                         .nout = 1,
                         .infer = same,
                         .prepare = prepare,
                         .run = run};

static void record(ctn_context *ctx)
{
    ctn_tensor *x = ctn_input(ctx, numbers, CTN_F32, CTN_SHAPE(N, N)), *y = NULL;
    OK(ctn_scope_begin(ctx));
    OK(ctn_apply(ctx, &slow_op, 1, &x, NULL, &y));
    y = ctn_matmul(y, x, 0, 0); /* 2 N^3 operations */
    assert_non_null(ctn_data(ctn_scope_return(ctx, y)));
}

static void names_the_line_once(void **state)
{
    (void)state;
    for (int eager = 0; eager < 2; eager++) {
        ctn_context *ctx = NULL;
        notices = 0;
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1,
                                         .mode = eager ? CTN_MODE_EAGER : CTN_MODE_PLANNED)));
        for (work = 100; work <= 1000000; work += 999900) {
            for (int i = 0; i < 2; i++) {
                OK(ctn_scope_begin(ctx));
                record(ctx);
                if (work > 100) record(ctx); /* another plan */
                OK(ctn_scope_end(ctx));
            }
            if (!eager) assert_int_equal(notices, work > 100);
            if (!eager) ctn_context_set_training(ctx, 0);
        }
        assert_int_equal(notices, 1);
        assert_non_null(strstr(told, "crawl"));
        assert_non_null(strstr(told, "test_slow_notice.c:"));
        ctn_context_free(ctx);
    }
}

int main(void)
{
    ctn_set_notice(hear, NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_the_line_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
