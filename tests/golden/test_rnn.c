/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent modules against PyTorch (rnn.py): results, gradients of the inputs and initial states,
 * and gradients of all parameters, to 1e-5. The composed form must agree as well, a copy must give
 * the same bits, and a safetensors file with PyTorch's names must load.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hashed.h"
#include "rnn.inc"

enum { T = 4, N = 3, I = 2, H = 3, ROOM = 512 };

typedef ctn_status (*maker)(ctn_module **m, ctn_context *ctx, int64_t in, int64_t hidden,
                            const ctn_rnn_module_opt *opt);

typedef struct {
    const char *name;
    maker make;
    ctn_rnn_module_opt opt;
    int state, lengths;
    const double *results, *inputs, *params;
} golden_case;

#define OPT(...) {.struct_size = sizeof(ctn_rnn_module_opt), __VA_ARGS__}
#define VALUES(name) name##_results, name##_inputs, name##_params

static const golden_case cases[] = {
    {"lstm", ctn_lstm_new, OPT(.layers = 2, .bidirectional = 1), 1, 1, VALUES(lstm)},
    {"lstm_projection", ctn_lstm_new, OPT(.layers = 2, .bidirectional = 1, .projection = 2), 1, 1,
     VALUES(lstm_projection)},
    {"lstm_batch_first", ctn_lstm_new, OPT(.batch_first = 1, .no_bias = 1), 0, 0,
     VALUES(lstm_batch_first)},
    {"gru", ctn_gru_new, OPT(.layers = 2, .bidirectional = 1), 1, 1, VALUES(gru)},
    {"gru_three_layers", ctn_gru_new, OPT(.layers = 3), 1, 0, VALUES(gru_three_layers)},
    {"rnn_tanh", ctn_rnn_new, OPT(.layers = 2, .bidirectional = 1), 0, 1, VALUES(rnn_tanh)},
    {"rnn_relu", ctn_rnn_new, OPT(.relu = 1), 1, 0, VALUES(rnn_relu)},
};
enum { NCASES = sizeof cases / sizeof *cases };

static void close_to(const golden_case *c, const char *what, int i, double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-5 * fmax(1, fabs(expected))))
        fail_msg("%s: %s, number %d is %.9g, PyTorch has %.9g", c->name, what, i, found, expected);
}

/* Compares t with expected[0...], and returns the numbers after it. */
static const double *check(const golden_case *c, const char *what, ctn_tensor *t,
                           const double *expected)
{
    static float v[ROOM];
    const int n = (int)ctn_count(t);
    assert_true(n <= ROOM);
    OK(ctn_read(t, v, (size_t)n * sizeof *v));
    for (int i = 0; i < n; i++) close_to(c, what, i, (double)v[i], expected[i]);
    return expected + n;
}

/* An input that carries gradients; its memory must outlive the scope. */
static ctn_tensor *leaf(ctn_context *ctx, float *v, const char *name, int64_t a, int64_t b,
                        int64_t d)
{
    const uint32_t key = hashed_key(name);
    assert_true(a * b * d <= ROOM);
    for (uint32_t i = 0; i < (uint32_t)(a * b * d); i++) v[i] = (float)hashed_uniform(key, i);
    return ctn_with_grad(ctn_input(ctx, v, CTN_F32, CTN_SHAPE(a, b, d)));
}

/* The sum of t times hashed numbers. */
static ctn_tensor *weighted(ctn_context *ctx, ctn_tensor *t, int number)
{
    static float w[3][ROOM];
    char name[16];
    int64_t dims[3];
    for (int i = 0; i < 3; i++) dims[i] = ctn_dim(t, i);
    snprintf(name, sizeof name, "weight%d", number);
    const uint32_t key = hashed_key(name);
    for (uint32_t i = 0; i < (uint32_t)ctn_count(t); i++)
        w[number][i] = (float)hashed_uniform(key, i);
    ctn_tensor *u = ctn_input(ctx, w[number], CTN_F32, 3, dims);
    return ctn_sum(ctn_mul(t, u), CTN_ALL_AXES, 0);
}

static void check_params(const golden_case *c, ctn_module *net)
{
    static float g[ROOM];
    const ctn_vars p = ctn_params(net);
    for (int k = 0; k < p.n; k++) {
        char name[64];
        double sum = 0, square = 0;
        const int n = (int)hashed_count(ctn_var_desc(p.var[k]));
        snprintf(name, sizeof name, "u%s", p.name[k]);
        const uint32_t key = hashed_key(name);
        assert_true(n <= ROOM);
        OK(ctn_var_grad(p.var[k], g, (size_t)n * sizeof *g));
        for (uint32_t i = 0; i < (uint32_t)n; i++) {
            sum += (double)g[i] * hashed_uniform(key, i);
            square += (double)g[i] * (double)g[i];
        }
        close_to(c, p.name[k], 0, sum, c->params[2 * k]);
        close_to(c, p.name[k], 1, sqrt(square), c->params[2 * k + 1]);
    }
}

static void run_case(ctn_context *ctx, const golden_case *c, int composed)
{
    static float x[ROOM], h0[ROOM], c0[ROOM];
    static const int64_t lengths[N] = {3, 4, 1};
    const int lstm = c->make == ctn_lstm_new;
    const int64_t rows = (c->opt.layers ? c->opt.layers : 1) * (c->opt.bidirectional ? 2 : 1);
    ctn_rnn_module_opt opt = c->opt;
    ctn_module *net = NULL, *made = NULL;
    ctn_optim *sgd = NULL;
    opt.composed = composed;
    OK(c->make(&made, ctx, I, H, &opt));
    hashed_fill(made, NULL);
    OK(ctn_module_copy(&net, made));
    ctn_module_free(made);
    OK(ctn_sgd_new(&sgd, ctn_params(net), NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *len = c->lengths ? ctn_input(ctx, lengths, CTN_I64, CTN_SHAPE(N)) : NULL;
    ctn_tensor *in[3] = {NULL}, *gin[3];
    in[0] = c->opt.batch_first ? leaf(ctx, x, "x", N, T, I) : leaf(ctx, x, "x", T, N, I);
    if (c->state) in[1] = leaf(ctx, h0, "h0", rows, N, opt.projection ? opt.projection : H);
    if (c->state && lstm) in[2] = leaf(ctx, c0, "c0", rows, N, H);
    ctn_tensors out = lstm ? ctn_call_multi(net, in[0], in[1], in[2], len)
                           : ctn_call_multi(net, in[0], in[1], len);
    assert_int_equal(out.n, lstm ? 3 : 2);
    ctn_tensor *loss = weighted(ctx, out.t[0], 0);
    for (int i = 1; i < out.n; i++) loss = ctn_add(loss, weighted(ctx, out.t[i], i));
    OK(ctn_grad(loss, c->state ? 2 + lstm : 1, in, gin));
    OK(ctn_backward(sgd, loss));
    const double *expected = c->results;
    for (int i = 0; i < out.n; i++) expected = check(c, "result", out.t[i], expected);
    expected = c->inputs;
    for (int i = 0; i < 3 && in[i]; i++) expected = check(c, "gradient", gin[i], expected);
    OK(ctn_flush(ctx));
    check_params(c, net);
    OK(ctn_scope_end(ctx));
    ctn_optim_free(sgd);
    ctn_module_free(net);
}

static void test_modules(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, NULL));
    for (int i = 0; i < NCASES; i++)
        for (int composed = 0; composed < 2; composed++) run_case(ctx, &cases[i], composed);
    ctn_context_free(ctx);
}

static void test_weights_file(void **state)
{
    (void)state;
    const char *path = "golden_rnn.safetensors";
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(weights_file, 1, sizeof weights_file, f), sizeof weights_file);
    fclose(f);
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_lstm_new(&net, ctx, 2, 1, CTN_OPT(ctn_rnn_module_opt, .bidirectional = 1)));
    ctn_status st = ctn_weights_load(net, path, NULL);
    if (st != CTN_EUNSUPPORTED) OK(st); /* a build without yyjson reads no safetensors */
    const ctn_vars p = ctn_params(net);
    assert_int_equal(p.n, 8);
    for (int k = 0; k < p.n && st == CTN_OK; k++) {
        float v[16];
        const ctn_desc *d = ctn_var_desc(p.var[k]);
        const uint32_t n = (uint32_t)hashed_count(d), key = hashed_key(p.name[k]);
        const double a = d->ndim > 1 ? sqrt(3.0 / (double)d->dim[1]) : 0.25;
        OK(ctn_var_get(p.var[k], v, n * sizeof *v));
        for (uint32_t i = 0; i < n; i++) assert_true(v[i] == (float)(hashed_uniform(key, i) * a));
    }
    remove(path);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_modules),
        cmocka_unit_test(test_weights_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
