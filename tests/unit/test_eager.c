/* SPDX-License-Identifier: Apache-2.0
 *
 * Planned against eager mode after three training steps of whole networks: docs/tutorial-plan.md
 * says what is equal to the bit and what only up to rounding.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/zoo.h>

#include <cmocka.h>

#include "support/ok.h"

enum { N = 8, PIXELS = 3 * 32 * 32, T = 32, STEPS = 3 };

typedef enum { MLP, LENET5, GPT, RESNET20 } network;

/* Losses and then all parameters. */
typedef struct {
    int64_t n;
    double *v;
} result;

static ctn_module *make(ctn_context *ctx, network net)
{
    ctn_module *m = NULL;
    switch (net) {
    case MLP: OK(ctn_zoo_mlp(&m, ctx, NULL)); break;
    case LENET5: OK(ctn_zoo_lenet5(&m, ctx, NULL)); break;
    case GPT:
        OK(ctn_zoo_gpt(&m, ctx,
                       CTN_OPT(ctn_gpt_opt, .vocabulary = 50, .block = T, .layers = 2, .heads = 2,
                               .width = 32)));
        break;
    case RESNET20: OK(ctn_zoo_resnet_cifar(&m, ctx, NULL)); break;
    }
    return m;
}

static ctn_tensor *input(ctn_context *ctx, network net, const int64_t *tokens)
{
    static float narrow[N * PIXELS];
    static double wide[N * PIXELS];
    const ctn_dtype type = ctn_context_float_type(ctx);
    const void *x = type == CTN_F64 ? (const void *)wide : narrow;
    for (int i = 0; i < N * PIXELS; i++) wide[i] = narrow[i] = (float)(i * 7919 % 2003) / 1000 - 1;
    switch (net) {
    case MLP: return ctn_input(ctx, x, type, CTN_SHAPE(N, 784));
    case LENET5: return ctn_input(ctx, x, type, CTN_SHAPE(N, 1, 28, 28));
    case RESNET20: return ctn_input(ctx, x, type, CTN_SHAPE(N, 3, 32, 32));
    case GPT: break;
    }
    return ctn_input(ctx, tokens, CTN_I64, CTN_SHAPE(N, T));
}

static void add(result *r, const ctn_var *v, const void *values)
{
    const ctn_desc *d = v ? ctn_var_desc(v) : NULL;
    int64_t n = 1;
    for (int i = 0; d && i < d->ndim; i++) n *= d->dim[i];
    r->v = realloc(r->v, (size_t)(r->n + n) * sizeof *r->v);
    assert_non_null(r->v);
    for (int64_t i = 0; i < n; i++)
        r->v[r->n++] = d && d->dtype == CTN_F32 ? (double)((const float *)values)[i]
                                                : ((const double *)values)[i];
}

static result train(network net, ctn_mode mode, ctn_precision precision)
{
    ctn_context *ctx = NULL;
    ctn_optim *opt = NULL;
    result r = {0};
    int64_t classes[N * T];
    for (int i = 0; i < N * T; i++) classes[i] = i * 7 % 10;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 2, .seed = 3, .mode = mode,
                                     .precision = precision)));
    ctn_module *m = make(ctx, net);
    OK(ctn_sgd_new(&opt, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 0.01)));
    for (int s = 0; s < STEPS; s++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = net == GPT ? ctn_input(ctx, classes, CTN_I64, CTN_SHAPE(N, T))
                                   : ctn_input(ctx, classes, CTN_I64, CTN_SHAPE(N));
        ctn_tensor *l = ctn_softmax_cross_entropy(ctn_call(m, input(ctx, net, classes)), t);
        OK(ctn_backward(opt, l));
        OK(ctn_optim_step(opt));
        const double loss = ctn_item(l);
        add(&r, NULL, &loss);
        OK(ctn_scope_end(ctx));
    }
    const ctn_vars p = ctn_params(m);
    for (int i = 0; i < p.n; i++) {
        const size_t most = 1 << 24;
        const ctn_desc *d = ctn_var_desc(p.var[i]);
        size_t bytes = ctn_dtype_size(d->dtype);
        for (int k = 0; k < d->ndim; k++) bytes *= (size_t)d->dim[k];
        assert_true(bytes <= most);
        void *values = malloc(bytes);
        OK(ctn_var_get(p.var[i], values, bytes));
        add(&r, p.var[i], values);
        free(values);
    }
    ctn_optim_free(opt);
    ctn_module_free(m);
    ctn_context_free(ctx);
    return r;
}

/* The largest difference between the modes. */
static double difference(network net, ctn_precision precision)
{
    result e = train(net, CTN_MODE_EAGER, precision), p = train(net, CTN_MODE_PLANNED, precision);
    double most = 0;
    assert_int_equal(e.n, p.n);
    for (int64_t i = 0; i < e.n; i++) {
        assert_true(isfinite(e.v[i]) && isfinite(p.v[i]));
        most = fmax(most, fabs(e.v[i] - p.v[i]));
    }
    free(e.v);
    free(p.v);
    return most;
}

enum { ROWS = 70, WIDTH = 64 };

/* Norms of the rows of a transposed matrix. In a scope of its own, whose plan need not keep the
 * squares. */
static void norms(ctn_mode mode, double y[WIDTH])
{
    static double x[ROWS * WIDTH];
    ctn_context *ctx = NULL;
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = sin(i + 0.1);
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .mode = mode)));
    OK(ctn_scope_begin(ctx));
    OK(ctn_scope_begin(ctx));
    const int64_t turned[] = {1, 0}, axis[] = {1};
    ctn_tensor *t = ctn_transpose(ctn_input(ctx, x, CTN_F64, CTN_SHAPE(ROWS, WIDTH)), 2, turned);
    t = ctn_scope_return(ctx, ctn_norm(t, 2, 1, axis, 0));
    OK(ctn_read(t, y, WIDTH * sizeof *y));
    OK(ctn_scope_end(ctx));
    ctn_context_free(ctx);
}

/* A sum of squares adds in the order of its operand, which a view must not change. */
static void norms_are_equal(void **state)
{
    double eager[WIDTH], planned[WIDTH];
    (void)state;
    norms(CTN_MODE_EAGER, eager);
    norms(CTN_MODE_PLANNED, planned);
    assert_memory_equal(eager, planned, sizeof eager);
}

static void f64_is_equal(void **state)
{
    (void)state;
    for (network net = MLP; net <= RESNET20; net++)
        assert_true(difference(net, CTN_PRECISION_F64) == 0);
}

static void f32_is_equal(void **state)
{
    (void)state;
#if defined(__x86_64__) /* elsewhere a BLAS may take part */
    for (network net = MLP; net <= GPT; net++) assert_true(difference(net, CTN_PRECISION_F32) == 0);
#endif
}

/* Kernels for channels-last operands add in another order. Where a ReLU then cuts off another
 * element, the difference grows from 2e-7 to 5e-4 in three steps. */
static void f32_is_close(void **state)
{
    (void)state;
    const double most = difference(RESNET20, CTN_PRECISION_F32);
    if (!(most < 0.01)) fail_msg("resnet20: the modes differ by %g", most);
}

int main(void)
{
    setenv("CATENA_TUNE", "0", 1); /* eager mode never times kernels */
    const struct CMUnitTest tests[] = {cmocka_unit_test(norms_are_equal),
                                       cmocka_unit_test(f64_is_equal),
                                       cmocka_unit_test(f32_is_equal),
                                       cmocka_unit_test(f32_is_close)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
