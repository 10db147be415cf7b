/* SPDX-License-Identifier: Apache-2.0
 *
 * What the cases of tests/ops cannot express about attention: dropout, whose mask shows when the
 * values are the identity matrix, with its gradients; memory that is linear in the length; operands
 * in bf16; and refused calls.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <catena/optim.h>

#include "ops/common/attend.h"
#include "ops/ops.h"
#include "support/machine.h"
#include "support/ok.h"

enum { L = 70, M = 150, E = 8 };
#define RATE 0.3

static ctn_context *context(int threads)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = threads, .seed = 5)));
    return ctx;
}

static float q[L * E], k[M * E], eye[M * M], g[L * M];

static void fill(float *x, int n, uint64_t stream)
{
    for (int i = 0; i < n; i++) x[i] = (float)ctn__normal(7, stream, (uint64_t)i);
}

static void make_data(void)
{
    fill(q, L * E, 1);
    fill(k, M * E, 2);
    fill(g, L * M, 3);
    memset(eye, 0, sizeof eye);
    for (int i = 0; i < M; i++) eye[i * M + i] = 1;
}

typedef struct {
    float y[L * M], gq[L * E], gk[M * E], gv[M * M];
} result;

/* Attention with v = identity, so that y is the matrix of probabilities. */
static void run(int threads, double rate, result *r)
{
    ctn_context *ctx = context(threads);
    ctn_tensor *grad[3];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in[3] = {ctn_with_grad(ctn_input(ctx, q, CTN_F32, CTN_SHAPE(L, E))),
                         ctn_with_grad(ctn_input(ctx, k, CTN_F32, CTN_SHAPE(M, E))),
                         ctn_with_grad(ctn_input(ctx, eye, CTN_F32, CTN_SHAPE(M, M)))};
    ctn_tensor *y =
        ctn_attention(in[0], in[1], in[2], NULL, CTN_OPT(ctn_attention_opt, .dropout = rate));
    ctn_tensor *loss =
        ctn_sum(ctn_mul(y, ctn_input(ctx, g, CTN_F32, CTN_SHAPE(L, M))), CTN_ALL_AXES, 0);
    OK(ctn_grad(loss, 3, in, grad));
    OK(ctn_read(y, r->y, sizeof r->y));
    OK(ctn_read(grad[0], r->gq, sizeof r->gq));
    OK(ctn_read(grad[1], r->gk, sizeof r->gk));
    OK(ctn_read(grad[2], r->gv, sizeof r->gv));
    OK(ctn_scope_end(ctx));
    ctn_context_free(ctx);
}

static void assert_near(const char *what, const float *x, const double *y, int n)
{
    for (int i = 0; i < n; i++)
        if (fabs((double)x[i] - y[i]) > 2e-5 * fmax(1, fabs(y[i])))
            fail_msg("%s %d: %.8g, expected %.8g", what, i, (double)x[i], y[i]);
}

/* The gradients in double, from the probabilities p and what dropout made of them. */
static void check_gradients(const float *p, const result *r)
{
    static double gq[L * E], gk[M * E], gv[M * M];
    const double scale = 1 / sqrt((double)E);
    memset(gq, 0, sizeof gq);
    memset(gk, 0, sizeof gk);
    memset(gv, 0, sizeof gv);
    for (int i = 0; i < L; i++) {
        double dot = 0, dp[M];
        for (int j = 0; j < M; j++) {
            const double kept = r->y[i * M + j] > 0 ? 1 / (1 - RATE) : 0;
            dp[j] = (double)g[i * M + j] * kept;
            dot += dp[j] * (double)p[i * M + j];
        }
        for (int j = 0; j < M; j++) {
            const double ds = (double)p[i * M + j] * (dp[j] - dot) * scale;
            for (int e = 0; e < E; e++) {
                gq[i * E + e] += ds * (double)k[j * E + e];
                gk[j * E + e] += ds * (double)q[i * E + e];
            }
            for (int c = 0; c < M; c++)
                gv[j * M + c] += (double)r->y[i * M + j] * (double)g[i * M + c];
        }
    }
    assert_near("gq", r->gq, gq, L * E);
    assert_near("gk", r->gk, gk, M * E);
    assert_near("gv", r->gv, gv, M * M);
}

static void dropout(void **state)
{
    (void)state;
    static result plain, once, again;
    int dropped = 0;
    make_data();
    run(1, 0, &plain);
    run(1, RATE, &once);
    run(3, RATE, &again);
    assert_memory_equal(&once, &again, sizeof once);
    for (int i = 0; i < L * M; i++) {
        dropped += once.y[i] == 0;
        const double expected = (double)plain.y[i] / (1 - RATE);
        if (once.y[i] != 0) assert_true(fabs((double)once.y[i] - expected) < 1e-6);
    }
    assert_true(fabs((double)dropped / (L * M) - RATE) < 5 * sqrt(RATE * (1 - RATE) / (L * M)));
    check_gradients(plain.y, &once);
}

/* The arena of a plan with forward and backward pass. */
static int64_t arena(int64_t length)
{
    ctn_context *ctx = context(1);
    float *x = ctn__calloc((size_t)length * E, sizeof *x);
    ctn_tensor *grad;
    ctn_plan_stats s;
    assert_non_null(x);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_with_grad(ctn_input(ctx, x, CTN_F32, CTN_SHAPE(length, E)));
    ctn_tensor *y = ctn_attention(in, in, in, NULL, CTN_OPT(ctn_attention_opt, .causal = 1));
    OK(ctn_grad(ctn_sum(y, CTN_ALL_AXES, 0), 1, &in, &grad));
    OK(ctn_read(grad, x, (size_t)length * E * sizeof *x));
    OK(ctn_scope_end(ctx));
    ctn_context_get_stats(ctx, &s);
    ctn__free(x);
    ctn_context_free(ctx);
    return s.arena_bytes;
}

static void linear_memory(void **state)
{
    (void)state;
    const int64_t once = arena(512), twice = arena(1024);
    assert_true(twice < once * 5 / 2);
}

static void refused(void **state)
{
    (void)state;
    ctn_context *ctx = context(1);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(2, 3, 4));
    ctn_tensor *n = ctn_full(ctx, 1, CTN_F32, CTN_SHAPE(2));
    assert_null(ctn_attention(x, x, x, NULL, CTN_OPT(ctn_attention_opt, .dropout = 1)));
    assert_non_null(strstr(ctn_error_message(), "dropout is 1"));
    ctn_error_clear();
    assert_null(ctn_attention(x, x, x, NULL, CTN_OPT(ctn_attention_opt, .window = -1)));
    ctn_error_clear();
    assert_null(ctn_attention(x, x, x, NULL, CTN_OPT(ctn_attention_opt, .lengths = n)));
    assert_non_null(strstr(ctn_error_message(), "lengths is f32"));
    (void)ctn_scope_end(ctx);
    ctn_context_free(ctx);
}

/* ---- operands in bf16 ------------------------------------------------------------------------ */

enum { HEADS = 2, WIDE = 16, ROWS = 2 * 6 }; /* two samples of six tokens, or twelve of one */

typedef struct {
    float value[2][3 * WIDE * WIDE];
    char plan[20000];
} trained;

/* x through a linear layer, attention of two heads, and a second layer. */
static ctn_tensor *block_of(ctn_context *ctx, ctn_var *const *w, int64_t tokens)
{
    static float x[ROWS * WIDE];
    fill(x, ROWS * WIDE, 4);
    const int64_t n = ROWS / tokens;
    ctn_tensor *t = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(n, tokens, WIDE)), *qkv[3];
    t = ctn_linear(t, ctn_use(w[0]), NULL);
    t = ctn_reshape(t, CTN_SHAPE(n, tokens, 3, HEADS, WIDE / HEADS));
    for (int i = 0; i < 3; i++) {
        qkv[i] = ctn_reshape(ctn_slice(t, 2, i, 1), CTN_SHAPE(n, tokens, HEADS, WIDE / HEADS));
        qkv[i] = ctn_transpose(qkv[i], CTN_SHAPE(0, 2, 1, 3));
    }
    t = ctn_attention(qkv[0], qkv[1], qkv[2], NULL, CTN_OPT(ctn_attention_opt, .causal = 1));
    t = ctn_reshape(ctn_transpose(t, CTN_SHAPE(0, 2, 1, 3)), CTN_SHAPE(n, tokens, WIDE));
    return ctn_mean(ctn_square(ctn_linear(t, ctn_use(w[1]), NULL)), CTN_ALL_AXES, 0);
}

static void train_block(ctn_precision precision, int64_t tokens, trained *r)
{
    static float v[3 * WIDE * WIDE];
    ctn_context *ctx = NULL;
    ctn_var *w[2];
    ctn_optim *o = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2, .precision = precision,
                                     .slow_precision = 1)));
    for (int i = 0; i < 2; i++) {
        const int64_t rows = i == 0 ? 3 * WIDE : WIDE;
        OK(ctn_var_new(&w[i], ctx, "w", CTN_PARAM, CTN_F32, CTN_SHAPE(rows, WIDE)));
        fill(v, 3 * WIDE * WIDE, (uint64_t)i + 8);
        for (int j = 0; j < 3 * WIDE * WIDE; j++) v[j] *= 0.3f;
        OK(ctn_var_set(w[i], v, (size_t)(rows * WIDE) * sizeof *v));
    }
    OK(ctn_sgd_new(&o, (ctn_vars){2, w, NULL}, CTN_OPT(ctn_sgd_opt, .lr = 1)));
    OK(ctn_scope_begin(ctx));
    OK(ctn_backward(o, block_of(ctx, w, tokens)));
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    assert_true(ctn_context_plan_text(ctx, r->plan, sizeof r->plan) < (int)sizeof r->plan);
    for (int i = 0; i < 2; i++)
        OK(ctn_var_get(w[i], r->value[i], (i == 0 ? 3u : 1u) * WIDE * WIDE * sizeof(float)));
    ctn_optim_free(o);
    for (int i = 0; i < 2; i++) ctn_var_free(w[i]);
    ctn_context_free(ctx);
}

/* The kernel reads and writes bf16 itself; the results are near those in f32. */
static void in_bf16(void **state)
{
    (void)state;
    static trained f32, bf16;
    if (!test_has_bf16()) skip();
    for (int64_t tokens = 1; tokens <= 6; tokens += 5) {
        train_block(CTN_PRECISION_F32, tokens, &f32);
        train_block(CTN_PRECISION_BF16, tokens, &bf16);
        for (int i = 0; i < 2; i++) {
            double d = 0, s = 0;
            for (int j = 0; j < (i == 0 ? 3 : 1) * WIDE * WIDE; j++) {
                d += pow((double)(bf16.value[i][j] - f32.value[i][j]), 2);
                s += pow((double)f32.value[i][j], 2);
            }
            if (!(sqrt(d) <= 0.03 * sqrt(s)))
                fail_msg("matrix %d differs by %g of %g", i, sqrt(d), sqrt(s));
        }
        assert_non_null(strstr(bf16.plan, "attention                    bf16("));
        assert_non_null(strstr(bf16.plan, "attention_grad               bf16("));
    }
}

/* ---- rows of operands ------------------------------------------------------------------------ */

/* All types that an operand may have, with columns beside each other and apart. The numbers are
 * exact in all of them. */
static void rows_of_operands(void **state)
{
    (void)state;
    enum { N = 2, H = 3, R = 4, COLS = 5, ALL = N * H * R * COLS };
    static const ctn_dtype type[] = {CTN_F32, CTN_BF16, CTN_F16};
    static const int64_t stride[][4] = {{60, 20, 5, 1}, {1, 2, 30, 6}};
    float memory[ALL], row[COLS], apart[3 * COLS];
    for (int t = 0; t < 3; t++)
        for (int s = 0; s < 2; s++)
            for (int i = 0; i < N * H * R; i++) {
                const int n = i / (H * R), h = i / R % H, r = i % R;
                const int64_t *d = stride[s], at = n * d[0] + h * d[1] + r * d[2];
                for (int j = 0; j < ALL; j++) ctn__elem_set(memory, type[t], j, j);
                ctn__attend_read(row, &(ctn__attend_in){memory, d, type[t]}, n, h, r, COLS, 0.5F);
                for (int j = 0; j < COLS; j++) {
                    assert_true(row[j] == 0.5F * (float)(at + j * d[3]));
                    apart[3 * j] = (float)(100 + j);
                }
                ctn__attend_write(&(ctn__attend_out){memory, d, type[t]}, n, h, r, apart, 3, COLS,
                                  2);
                for (int j = 0; j < ALL; j++) {
                    const int64_t c = (j - at) / d[3];
                    const bool in = j >= at && (j - at) % d[3] == 0 && c < COLS;
                    assert_true(ctn__elem_get(memory, type[t], j) ==
                                (double)(in ? 2 * (100 + c) : j));
                }
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dropout), cmocka_unit_test(linear_memory),
        cmocka_unit_test(in_bf16), cmocka_unit_test(rows_of_operands),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
