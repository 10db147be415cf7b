/* SPDX-License-Identifier: Apache-2.0
 *
 * Dynamic programs: a network whose depth is random in each step. There must be exactly as many
 * plans as depths, and each step must equal eager mode from the same weights (bitwise without
 * fusion), also if the cache has room for only three plans. Then 300 plans of different shapes
 * in one process: memory use is the largest arena plus the plans, not the sum of all arenas.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <catena/ops.h>
#include <catena/optim.h>

#include "support/ok.h"

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { STEPS = 60 }; /* eager mode creates every kernel anew */
#else
enum { STEPS = 1000 };
#endif
enum { DEPTH = 8, WIDTH = 24, BATCH = 6, PARAMS = 2 * DEPTH };

typedef struct {
    ctn_context *ctx;
    ctn_var *v[PARAMS];
    ctn_optim *opt;
} net;

static float noise(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return (float)(*s >> 8) / (float)(1 << 24) - 0.5f;
}

static void make(net *n, ctn_context_opt opt)
{
    uint32_t s = 5;
    opt.struct_size = sizeof opt;
    opt.threads = 2;
    OK(ctn_context_new(&n->ctx, &opt));
    for (int l = 0; l < DEPTH; l++) {
        float w[WIDTH * WIDTH], b[WIDTH];
        for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = 0.5f * noise(&s);
        for (int i = 0; i < WIDTH; i++) b[i] = 0.1f * noise(&s);
        OK(ctn_var_new(&n->v[2 * l], n->ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(WIDTH, WIDTH)));
        OK(ctn_var_new(&n->v[2 * l + 1], n->ctx, "b", CTN_PARAM, CTN_F32, CTN_SHAPE(WIDTH)));
        OK(ctn_var_set(n->v[2 * l], w, sizeof w));
        OK(ctn_var_set(n->v[2 * l + 1], b, sizeof b));
    }
    OK(ctn_adam_new(&n->opt, (ctn_vars){PARAMS, n->v, NULL}, NULL));
}

static void drop(net *n)
{
    ctn_optim_free(n->opt);
    for (int i = 0; i < PARAMS; i++) ctn_var_free(n->v[i]);
    ctn_context_free(n->ctx);
}

static double step(net *n, int depth, const float *x, const int64_t *t)
{
    OK(ctn_scope_begin(n->ctx));
    ctn_tensor *h = ctn_input(n->ctx, x, CTN_F32, CTN_SHAPE(BATCH, WIDTH));
    for (int l = 0; l < depth; l++)
        h = ctn_relu(ctn_linear(h, ctn_use(n->v[2 * l]), ctn_use(n->v[2 * l + 1])));
    ctn_tensor *loss =
        ctn_softmax_cross_entropy(h, ctn_input(n->ctx, t, CTN_I64, CTN_SHAPE(BATCH)));
    OK(ctn_backward(n->opt, loss));
    OK(ctn_optim_step(n->opt));
    double l = ctn_item(loss);
    OK(ctn_scope_end(n->ctx));
    return l;
}

static void copy_weights(net *to, net *from)
{
    float w[WIDTH * WIDTH];
    for (int i = 0; i < PARAMS; i++) {
        size_t bytes = i % 2 ? WIDTH * sizeof(float) : sizeof w;
        OK(ctn_var_get(from->v[i], w, bytes));
        OK(ctn_var_set(to->v[i], w, bytes));
    }
}

/* The largest difference of any weight after the same step. */
static double difference(net *a, net *b)
{
    float x[WIDTH * WIDTH], y[WIDTH * WIDTH];
    double d = 0;
    for (int i = 0; i < PARAMS; i++) {
        size_t bytes = i % 2 ? WIDTH * sizeof(float) : sizeof x;
        OK(ctn_var_get(a->v[i], x, bytes));
        OK(ctn_var_get(b->v[i], y, bytes));
        for (size_t k = 0; k < bytes / sizeof(float); k++)
            d = fmax(d, fabs((double)x[k] - (double)y[k]));
    }
    return d;
}

static void run(ctn_context_opt opt, int64_t plans, bool bitwise)
{
    net a = {0}, e = {0};
    uint32_t s = 11;
    make(&a, opt);
    make(&e, (ctn_context_opt){.mode = CTN_MODE_EAGER});
    for (int i = 0; i < STEPS; i++) {
        float x[BATCH * WIDTH];
        int64_t t[BATCH];
        for (int k = 0; k < BATCH * WIDTH; k++) x[k] = noise(&s);
        for (int k = 0; k < BATCH; k++) t[k] = (int64_t)((noise(&s) + 0.5f) * WIDTH);
        int depth = 1 + (int)((noise(&s) + 0.5f) * DEPTH);
        /* each step starts from the same weights; optimizer states stay equal */
        copy_weights(&e, &a);
        double la = step(&a, depth, x, t), le = step(&e, depth, x, t), d = difference(&a, &e);
        if (bitwise ? la != le || d != 0 : fabs(la - le) > 1e-6 * fmax(1, fabs(le)))
            fail_msg("step %d, depth %d: loss %.9g, eager %.9g, weights differ by %g", i, depth, la,
                     le, d);
    }
    ctn_plan_stats st;
    ctn_context_get_stats(a.ctx, &st);
    assert_int_equal(st.plans, plans);
    if (plans == DEPTH) {
        assert_int_equal(st.misses, DEPTH);
        assert_int_equal(st.evictions, 0);
    } else {
        assert_int_equal(st.evictions, (int64_t)st.misses - plans);
        assert_true(st.evictions > 0);
    }
    assert_int_equal(st.hits + st.misses, STEPS);
    drop(&a);
    drop(&e);
}

static void random_depth(void **state)
{
    (void)state;
    run((ctn_context_opt){0}, DEPTH, false);
}

static void random_depth_without_fusion(void **state)
{
    (void)state;
    run((ctn_context_opt){.no_fuse = 1}, DEPTH, true);
}

static void random_depth_with_room_for_three(void **state)
{
    (void)state;
    run((ctn_context_opt){.max_plans = 3}, 3, false);
}

static long resident_kb(void)
{
    long pages = 0, rss = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f) return 0;
    if (fscanf(f, "%ld %ld", &pages, &rss) != 2) rss = 0;
    fclose(f);
    return rss * (sysconf(_SC_PAGESIZE) / 1024);
}

static void many_shapes(void **state)
{
    (void)state;
    static float x[600 * 512];
    ctn_context *ctx;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2)));
    long start = 0;
    int64_t sum = 0;
    ctn_plan_stats st;
    for (int i = 1; i <= 300; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *h = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(300 + i, 512));
        OK(ctn_scope_begin(ctx));
        for (int k = 0; k < 4; k++) h = ctn_mul(ctn_relu(ctn_add(h, h)), ctn_relu(h));
        h = ctn_scope_return(ctx, ctn_sum(h, CTN_ALL_AXES, 0));
        assert_true(ctn_item(h) == 0);
        OK(ctn_scope_end(ctx));
        sum += (300 + i) * 512 * 4 * 2;
        if (i == 1) start = resident_kb();
    }
    ctn_context_get_stats(ctx, &st);
    assert_int_equal(st.plans, 300);
    assert_true(st.arena_bytes <= (int64_t)600 * 512 * 4 * 3);
    long grown = (resident_kb() - start) * 1024;
    print_message("300 plans: %lld bytes of plans, arena %lld, resident memory grew by %ld; "
                  "the sum of all arenas would be %lld\n",
                  (long long)st.plan_bytes, (long long)st.arena_bytes, grown, (long long)sum);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_true(grown < st.plan_bytes + 2 * st.arena_bytes + (8 << 20));
#endif
    ctn_context_free(ctx);
}

static void bounded_by_bytes(void **state)
{
    (void)state;
    static float x[400];
    ctn_context *ctx;
    ctn_plan_stats st;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1, .max_plan_bytes = 200000)));
    for (int i = 1; i <= 100; i++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *h = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(i, 4));
        assert_non_null(ctn_data(ctn_matmul(h, ctn_relu(h), 0, 1)));
        OK(ctn_scope_end(ctx));
        ctn_context_get_stats(ctx, &st);
        assert_true(st.plan_bytes <= 200000);
    }
    assert_int_equal(st.misses, 100);
    assert_int_equal(st.evictions, 100 - st.plans);
    assert_true(st.plans >= 2 && st.plans < 50);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_depth),
        cmocka_unit_test(random_depth_without_fusion),
        cmocka_unit_test(random_depth_with_room_for_three),
        cmocka_unit_test(many_shapes),
        cmocka_unit_test(bounded_by_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
