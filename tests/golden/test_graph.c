/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph networks against formulas in PyTorch (graph.py): results, gradients of the features of
 * nodes and edges, and gradients of all parameters, to 1e-5. A copy of the network is tested.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph.inc"
#include "hashed.h"

enum { N = 6, E = 10, I = 3, G = 2, C = 4, ROOM = 512 };
/* The same list is in graph.py: (source, target). */
static const int64_t edges[E][2] = {{0, 1}, {1, 0}, {2, 1}, {3, 1}, {4, 2},
                                    {5, 2}, {5, 0}, {2, 4}, {0, 3}, {4, 1}};

typedef struct {
    const char *name;
    int features; /* of the edges: 0: none, 1: weights (E), 2: (E,2) */
    double shift; /* of the features */
    const double *results, *inputs, *params;
} golden_case;

#define VALUES(name) name##_results, name##_inputs, name##_params
static const golden_case cases[] = {
    {"gcn", 0, 0, VALUES(gcn)},
    {"gcn_weights", 1, 1.5, VALUES(gcn_weights)},
    {"gat", 0, 0, VALUES(gat)},
    {"meshgraphnet", 2, 0, VALUES(meshgraphnet)},
};
enum { NCASES = sizeof cases / sizeof *cases };

static void make(ctn_module **m, ctn_context *ctx, int c)
{
    if (c == 0)
        OK(ctn_zoo_gcn(m, ctx,
                       CTN_OPT(ctn_gcn_opt, .in_channels = I, .classes = C, .hidden = 5,
                               .dropout = -1)));
    if (c == 1)
        OK(ctn_zoo_gcn(m, ctx,
                       CTN_OPT(ctn_gcn_opt, .in_channels = I, .classes = C, .layers = 1,
                               .dropout = -1)));
    if (c == 2)
        OK(ctn_zoo_gat(m, ctx,
                       CTN_OPT(ctn_gat_opt, .in_channels = I, .classes = C, .hidden = 2, .heads = 3,
                               .dropout = -1)));
    if (c == 3)
        OK(ctn_zoo_meshgraphnet(m, ctx,
                                CTN_OPT(ctn_meshgraphnet_opt, .node_in = I, .edge_in = G, .out = C,
                                        .hidden = 5, .steps = 2, .mlp_layers = 1)));
}

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

static ctn_tensor *leaf(ctn_context *ctx, float *v, const char *name, double shift, int ndim,
                        const int64_t *dims)
{
    const uint32_t key = hashed_key(name);
    const int64_t n = ndim > 1 ? dims[0] * dims[1] : dims[0];
    for (uint32_t i = 0; i < (uint32_t)n; i++)
        v[i] = (float)((double)(float)hashed_uniform(key, i) + shift);
    return ctn_input(ctx, v, CTN_F32, ndim, dims);
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

static void run_case(ctn_context *ctx, int number)
{
    static float x[ROOM], e[ROOM], w[ROOM];
    const golden_case *c = &cases[number];
    ctn_module *net = NULL, *made = NULL;
    ctn_optim *sgd = NULL;
    make(&made, ctx, number);
    hashed_fill(made, NULL);
    OK(ctn_module_copy(&net, made));
    ctn_module_free(made);
    OK(ctn_sgd_new(&sgd, ctn_params(net), NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in[3] = {ctn_with_grad(leaf(ctx, x, "x", 0, CTN_SHAPE(N, I))),
                         ctn_input(ctx, edges, CTN_I64, CTN_SHAPE(E, 2)), NULL};
    if (c->features == 1) in[2] = leaf(ctx, e, "e", c->shift, CTN_SHAPE(E));
    if (c->features == 2) in[2] = leaf(ctx, e, "e", c->shift, CTN_SHAPE(E, G));
    if (in[2]) in[2] = ctn_with_grad(in[2]);
    ctn_tensor *y = ctn_call_multi(net, in[0], in[1], in[2]).t[0];
    ctn_tensor *sum =
        ctn_sum(ctn_mul(y, leaf(ctx, w, "weight", 0, CTN_SHAPE(N, C))), CTN_ALL_AXES, 0);
    ctn_tensor *leaves[2] = {in[0], in[2]}, *g[2];
    OK(ctn_grad(sum, in[2] ? 2 : 1, leaves, g));
    OK(ctn_backward(sgd, sum));
    check(c, "results", y, c->results);
    const double *rest = check(c, "gradient of x", g[0], c->inputs);
    if (in[2]) check(c, "gradient of the edges", g[1], rest);
    check_params(c, net);
    OK(ctn_scope_end(ctx));
    ctn_optim_free(sgd);
    ctn_module_free(net);
}

static void test_networks(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        ctn_context *ctx = NULL;
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = threads)));
        for (int i = 0; i < NCASES; i++) run_case(ctx, i);
        ctn_context_free(ctx);
    }
}

static void test_errors(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    ctn_module *net = NULL, *block = NULL;
    float x[N * I] = {0};
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_graph_conv_new(&net, ctx, I, C, NULL));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, I));
    assert_null(ctn_call(net, in));
    assert_non_null(strstr(ctn_error_message(), "graph_conv: no edges"));
    ctn_error_clear();
    assert_null(ctn_call_multi(net, in, in).t[0]);
    assert_non_null(strstr(ctn_error_message(), "edges are (6,3)"));
    ctn_error_clear();
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
    assert_int_equal(ctn_message_passing_new(&block, ctx, net, net, NULL), CTN_ESTATE);
    assert_null(block);
    ctn_error_clear();
    ctn_module_free(net); /* the caller has kept it */
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_networks),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
