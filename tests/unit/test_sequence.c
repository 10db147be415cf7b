/* SPDX-License-Identifier: Apache-2.0
 *
 * Losses of sequences where there is no result, and the modules made of cells: conditional random
 * fields, tree LSTMs and the LSTM with peepholes, each held against plain loops.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/ops.h>

#include <cmocka.h>

#include "support/ok.h"

static ctn_context *ctx;

/* The call must have recorded an error with this status and these words; forgets it. */
static void assert_refused(ctn_status status, const char *words)
{
    if (ctn_error_status() != status || !strstr(ctn_error_message(), words))
        fail_msg("expected '%s', found: %s", words, ctn_error_message());
    ctn_error_clear();
}

static void assert_near(const char *what, const float *found, const double *expected, int n)
{
    for (int i = 0; i < n; i++)
        if (!(fabs((double)found[i] - expected[i]) <= 1e-5))
            fail_msg("%s: element %d is %.9g, expected %.9g", what, i, (double)found[i],
                     expected[i]);
}

/* ---- ctc ------------------------------------------------------------------------------------- */

enum { T = 4, N = 2, V = 3 };
static float logits[T][N][V];
static const int64_t two[N][2] = {{1, 1}, {1, 2}};

static ctn_tensor *ctc(const int64_t *labels, const int64_t *steps, const ctn_ctc_opt *with)
{
    ctn_ctc_opt o = *with;
    o.struct_size = sizeof o;
    if (steps) o.input_lengths = ctn_input(ctx, steps, CTN_I64, CTN_SHAPE(N));
    return ctn_ctc_loss(ctn_with_grad(ctn_input(ctx, logits, CTN_F32, CTN_SHAPE(T, N, V))),
                        ctn_input(ctx, labels, CTN_I64, CTN_SHAPE(N, 2)), &o);
}

/* Sample 0 has the labels 1 1, for which two steps are not enough: 1, blank, 1 is the shortest. */
static void test_no_alignment(void **state)
{
    static const int64_t steps[N] = {2, 2};
    float y[N], z[N], g[T * N * V], logits_nan;
    (void)state;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_with_grad(ctn_input(ctx, logits, CTN_F32, CTN_SHAPE(T, N, V))), *gx;
    ctn_tensor *labels = ctn_input(ctx, two, CTN_I64, CTN_SHAPE(N, 2));
    ctn_ctc_opt o = {.struct_size = sizeof o, .reduction = CTN_NONE};
    o.input_lengths = ctn_input(ctx, steps, CTN_I64, CTN_SHAPE(N));
    ctn_tensor *each = ctn_ctc_loss(x, labels, &o);
    OK(ctn_grad(ctn_sum(each, CTN_ALL_AXES, 0), 1, &x, &gx));
    o.zero_infinity = 1;
    ctn_tensor *finite_ones = ctn_ctc_loss(x, labels, &o);
    OK(ctn_read(each, y, sizeof y));
    OK(ctn_read(finite_ones, z, sizeof z));
    OK(ctn_read(gx, g, sizeof g));
    OK(ctn_scope_end(ctx));
    assert_true(y[0] == INFINITY && fabsf(y[1] - 2 * logf(3)) < 1e-6f);
    assert_true(z[0] == 0 && z[1] == y[1]);
    for (int i = 0; i < T * N * V; i++)
        if (i / V % N == 0 || i >= 2 * N * V) assert_true(g[i] == 0);
    logits_nan = logits[1][1][0];
    logits[1][1][0] = NAN; /* in sample 1 only */
    OK(ctn_scope_begin(ctx));
    OK(ctn_read(ctc(two[0], NULL, &(ctn_ctc_opt){.reduction = CTN_NONE}), y, sizeof y));
    OK(ctn_scope_end(ctx));
    logits[1][1][0] = logits_nan;
    assert_true(isfinite(y[0]) && isnan(y[1]));
}

static void refuse_ctc(const int64_t *labels, const int64_t *steps, const ctn_ctc_opt *o,
                       const char *words)
{
    float y;
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctc(labels, steps, o);
    assert_int_equal(t ? ctn_read(t, &y, sizeof y) : ctn_error_status(), CTN_EARG);
    assert_refused(CTN_EARG, words);
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
}

static void test_ctc_errors(void **state)
{
    static const int64_t blank[N][2] = {{1, 2}, {2, 0}}, large[N][2] = {{1, 3}, {1, 1}};
    static const int64_t steps[N] = {4, 5};
    (void)state;
    refuse_ctc(blank[0], NULL, &(ctn_ctc_opt){0}, "label 1 of sample 1 is 0");
    refuse_ctc(large[0], NULL, &(ctn_ctc_opt){0}, "label 1 of sample 0 is 3");
    refuse_ctc(two[0], steps, &(ctn_ctc_opt){0}, "sample 1 has 5 steps, expected 0 to 4");
    refuse_ctc(two[0], NULL, &(ctn_ctc_opt){.blank = 3}, "blank is 3, x has 3 classes");
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, logits, CTN_F32, CTN_SHAPE(T, N, V));
    assert_null(ctn_ctc_loss(x, ctn_input(ctx, two, CTN_I64, CTN_SHAPE(4)), NULL));
    assert_refused(CTN_ESHAPE, "x is (4,2,3), labels are (4)");
    assert_null(ctn_ctc_loss(x, ctn_input(ctx, logits, CTN_F32, CTN_SHAPE(2, 2)), NULL));
    assert_refused(CTN_EDTYPE, "indices are f32");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
}

/* ---- modules --------------------------------------------------------------------------------- */

enum { ROOM = 256 };

/* The values of the parameter `name` of m. */
static const float *param(ctn_module *m, const char *name)
{
    static float v[8][ROOM];
    static int next;
    ctn_var *var = ctn_module_find(m, name);
    assert_non_null(var);
    const ctn_desc *d = ctn_var_desc(var);
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->dim[i];
    assert_true(n <= ROOM);
    next = (next + 1) % 8;
    OK(ctn_var_get(var, v[next], (size_t)n * sizeof(float)));
    return v[next];
}

/* Element o of w x + b; b may be NULL. */
static double row(const float *w, const float *b, const double *x, int in, int o)
{
    double s = b ? (double)b[o] : 0;
    for (int i = 0; i < in; i++) s += (double)w[o * in + i] * x[i];
    return s;
}

static double logistic(double v)
{
    return 1 / (1 + exp(-v));
}

/* Numbers between -1 and 1. */
static void fill(float *v, int n, int seed)
{
    for (int i = 0; i < n; i++) v[i] = (float)sin((double)(i + 1) * 1.7 + seed);
}

static void widen(double *to, const float *from, int n)
{
    for (int i = 0; i < n; i++) to[i] = (double)from[i];
}

enum { NODES = 3, IN = 2, H = 4, CHILDREN = 2 };

/* The gates a, i, o, f_1, f_2 of node n, in row g of (5,H). */
typedef void gates_fn(ctn_module *m, const double *x, const double h[CHILDREN][H], double g[5][H]);

static void child_sum_gates(ctn_module *m, const double *x, const double h[CHILDREN][H],
                            double g[5][H])
{
    const float *wx = param(m, "W_x.weight"), *b = param(m, "W_x.bias");
    const float *aio = param(m, "W_h_aio.weight"), *f = param(m, "W_h_f.weight");
    double sum[H];
    for (int j = 0; j < H; j++) sum[j] = h[0][j] + h[1][j];
    for (int k = 0; k < 5; k++)
        for (int j = 0; j < H; j++)
            g[k][j] = k < 3 ? row(wx, b, x, IN, k * H + j) + row(aio, NULL, sum, H, k * H + j)
                            : row(wx, b, x, IN, 3 * H + j) + row(f, NULL, h[k - 3], H, j);
}

static void nary_gates(ctn_module *m, const double *x, const double h[CHILDREN][H], double g[5][H])
{
    const float *wx = param(m, "W_x.weight"), *b = param(m, "W_x.bias");
    const float *w[CHILDREN] = {param(m, "W_h1.weight"), param(m, "W_h2.weight")};
    for (int i = 0; i < 5 * H; i++)
        g[i / H][i % H] =
            row(wx, b, x, IN, i) + row(w[0], NULL, h[0], H, i) + row(w[1], NULL, h[1], H, i);
}

static void run_tree(ctn_module *made, gates_fn *gates, int leaves)
{
    float x[NODES][IN], h[CHILDREN][NODES][H], c[CHILDREN][NODES][H], got[2][NODES][H];
    double expected[2][NODES][H];
    ctn_module *m;
    OK(ctn_module_copy(&m, made));
    fill(x[0], NODES * IN, 0);
    fill(h[0][0], CHILDREN * NODES * H, 1);
    fill(c[0][0], CHILDREN * NODES * H, 2);
    for (int n = 0; n < NODES; n++) {
        double in[IN], hn[CHILDREN][H] = {{0}}, g[5][H];
        widen(in, x[n], IN);
        for (int k = 0; k < CHILDREN && !leaves; k++) widen(hn[k], h[k][n], H);
        gates(m, in, (const double(*)[H])hn, g);
        for (int j = 0; j < H; j++) {
            double v = tanh(g[0][j]) * logistic(g[1][j]);
            for (int k = 0; k < CHILDREN && !leaves; k++)
                v += logistic(g[3 + k][j]) * (double)c[k][n][j];
            expected[0][n][j] = tanh(v) * logistic(g[2][j]);
            expected[1][n][j] = v;
        }
    }
    OK(ctn_scope_begin(ctx));
    ctn_tensor *tx = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(NODES, IN));
    ctn_tensor *th = ctn_input(ctx, h, CTN_F32, CTN_SHAPE(CHILDREN, NODES, H));
    ctn_tensor *tc = ctn_input(ctx, c, CTN_F32, CTN_SHAPE(CHILDREN, NODES, H));
    ctn_tensors out = leaves ? ctn_call_multi(m, tx) : ctn_call_multi(m, tx, th, tc);
    assert_int_equal(out.n, 2);
    for (int i = 0; i < 2; i++) OK(ctn_read(out.t[i], got[i], sizeof got[i]));
    assert_int_equal(ctn_call_multi(m, tx, th).n, 0);
    assert_refused(CTN_EARG, "only one of h and c");
    assert_int_equal(ctn_call_multi(m, tx, tc, tx).n, 0);
    assert_refused(CTN_ESHAPE, "c is (3,2); expected (N,in) and twice (children,N,4)");
    ctn_tensor *narrow = ctn_slice(th, 2, 0, H - 1);
    assert_int_equal(ctn_call_multi(m, tx, narrow, narrow).n, 0);
    assert_refused(CTN_ESHAPE, "expected (N,in) and twice (children,N,4)");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
    assert_near("h", got[0][0], expected[0][0], NODES * H);
    assert_near("c", got[1][0], expected[1][0], NODES * H);
    ctn_module_free(m);
}

static void test_trees(void **state)
{
    ctn_module *sum, *nary;
    (void)state;
    OK(ctn_child_sum_tree_lstm_new(&sum, ctx, IN, H));
    OK(ctn_nary_tree_lstm_new(&nary, ctx, IN, H, CHILDREN));
    for (int leaves = 0; leaves < 2; leaves++) {
        run_tree(sum, child_sum_gates, leaves);
        run_tree(nary, nary_gates, leaves);
    }
    ctn_module_free(sum);
    ctn_module_free(nary);
    assert_int_equal(ctn_nary_tree_lstm_new(&nary, ctx, IN, H, 0), CTN_EARG);
    assert_refused(CTN_EARG, "0 children; all must be positive");
}

/* One step of the LSTM with peepholes of one sample, in place of h and c. */
static void peephole_step(ctn_module *m, const double *x, double *h, double *c)
{
    const float *up = param(m, "upward.weight"), *b = param(m, "upward.bias");
    const float *lateral = param(m, "lateral.weight"), *pi = param(m, "peep_i.weight");
    const float *pf = param(m, "peep_f.weight"), *po = param(m, "peep_o.weight");
    double g[H][4], next[H];
    for (int i = 0; i < 4 * H; i++)
        g[i / 4][i % 4] = row(up, b, x, IN, i) + row(lateral, NULL, h, H, i); /* a, i, f, o */
    for (int j = 0; j < H; j++)
        next[j] = tanh(g[j][0]) * logistic(g[j][1] + row(pi, NULL, c, H, j)) +
                  c[j] * logistic(g[j][2] + row(pf, NULL, c, H, j));
    for (int j = 0; j < H; j++)
        h[j] = tanh(next[j]) * logistic(g[j][3] + row(po, NULL, next, H, j));
    memcpy(c, next, sizeof next);
}

static void test_peepholes(void **state)
{
    enum { STEPS = 3 };
    float x[STEPS][N][IN], s[2][N][H], y[STEPS][N][H], end[2][N][H];
    double expected[STEPS][N][H], last[2][N][H];
    ctn_module *m;
    (void)state;
    OK(ctn_peephole_lstm_new(&m, ctx, IN, H));
    fill(x[0][0], STEPS * N * IN, 0);
    fill(s[0][0], 2 * N * H, 1);
    for (int given = 0; given < 2; given++) {
        memset(last, 0, sizeof last);
        if (given) widen(last[0][0], s[0][0], 2 * N * H);
        for (int t = 0; t < STEPS; t++)
            for (int n = 0; n < N; n++) {
                double in[IN];
                widen(in, x[t][n], IN);
                peephole_step(m, in, last[0][n], last[1][n]);
                memcpy(expected[t][n], last[0][n], sizeof last[0][n]);
            }
        OK(ctn_scope_begin(ctx));
        ctn_tensor *tx = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(STEPS, N, IN));
        ctn_tensor *h0 = ctn_input(ctx, s[0], CTN_F32, CTN_SHAPE(N, H));
        ctn_tensor *c0 = ctn_input(ctx, s[1], CTN_F32, CTN_SHAPE(N, H));
        ctn_tensors out = given ? ctn_call_multi(m, tx, h0, c0) : ctn_call_multi(m, tx);
        assert_int_equal(out.n, 3);
        OK(ctn_read(out.t[0], y, sizeof y));
        for (int i = 0; i < 2; i++) OK(ctn_read(out.t[1 + i], end[i], sizeof end[i]));
        assert_int_equal(ctn_call_multi(m, tx, tx).n, 0);
        assert_refused(CTN_ESHAPE, "h0 is (3,2,2), expected (2,4)");
        (void)ctn_scope_end(ctx);
        ctn_error_clear();
        assert_near("y", y[0][0], expected[0][0], STEPS * N * H);
        assert_near("state", end[0][0], last[0][0], 2 * N * H);
    }
    ctn_module_free(m);
}

/* A field of two labels whose costs forbid a change of the label. */
static void test_crf(void **state)
{
    static const float cost[2][2] = {{0, -50}, {-50, 0}};
    static const float x[3][1][2] = {{{1, 0}}, {{0, 0.5f}}, {{1, 0}}};
    static const int32_t labels[3][1] = {{0}, {0}, {0}}, wrong[3][1] = {{0}, {2}, {0}};
    static const int64_t length[1] = {2};
    int64_t path[3];
    float score, loss;
    ctn_module *m;
    (void)state;
    OK(ctn_crf_new(&m, ctx, 2, NULL));
    OK(ctn_var_set(ctn_module_find(m, "cost"), cost, sizeof cost));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *tx = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(3, 1, 2));
    ctn_tensor *tl = ctn_input(ctx, labels, CTN_I32, CTN_SHAPE(3, 1));
    ctn_tensor *len = ctn_input(ctx, length, CTN_I64, CTN_SHAPE(1));
    ctn_tensors best = ctn_call_multi(m, tx);
    assert_int_equal(best.n, 2);
    OK(ctn_read(best.t[0], path, sizeof path));
    OK(ctn_read(best.t[1], &score, sizeof score));
    assert_true(path[0] == 0 && path[1] == 0 && path[2] == 0 && score == 2);
    OK(ctn_read(ctn_call_multi(m, tx, tl).t[0], &loss, sizeof loss));
    assert_true(fabsf(loss - log1pf(expf(-1.5f))) < 1e-6f); /* all 0 or all 1 */
    OK(ctn_read(ctn_call_multi(m, tx, tl, len).t[0], &loss, sizeof loss));
    assert_true(fabsf(loss - log1pf(expf(-0.5f))) < 1e-6f);
    assert_int_equal(ctn_call_multi(m, tx, len).n, 0);
    assert_refused(CTN_ESHAPE, "x is (3,1,2), labels are (1)");
    ctn_tensor *bad = ctn_call_multi(m, tx, ctn_input(ctx, wrong, CTN_I32, CTN_SHAPE(3, 1))).t[0];
    assert_int_equal(ctn_read(bad, &loss, sizeof loss), CTN_EARG);
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
    ctn_module_free(m);
    OK(ctn_crf_new(&m, ctx, 1, NULL)); /* one label is possible, none is not */
    ctn_module_free(m);
    assert_int_equal(ctn_crf_new(&m, ctx, 0, NULL), CTN_EARG);
    assert_refused(CTN_EARG, "got 0 labels");
    assert_int_equal(ctn_crf_new(&m, ctx, 0, NULL), CTN_EARG);
    ctn_error_clear();
}

static int setup(void **state)
{
    (void)state;
    return ctn_context_new(&ctx, NULL) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    ctn_context_free(ctx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_alignment), cmocka_unit_test(test_ctc_errors),
        cmocka_unit_test(test_trees),        cmocka_unit_test(test_peepholes),
        cmocka_unit_test(test_crf),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
