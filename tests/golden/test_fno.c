/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier neural operators in one to three dimensions against PyTorch (fno.py): the result and the
 * gradients of the first step, and the losses and parameters of three steps of Adam, to 1e-5. The
 * one-dimensional case keeps all frequencies, the last of which stands for itself alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <catena/zoo.h>

#include "fno.inc"
#include "hashed.h"

enum { N = 2, IN = 2, OUT = 1, WIDTH = 3, LAYERS = 2, HIDDEN = 5, STEPS = 3, ROOM = 512 };

typedef struct {
    const char *name;
    int spatial;
    int64_t size[3], modes[3], pad;
    const double *result, *grads, *losses, *params;
} golden_case;

#define VALUES(name) name##_result, name##_grads, name##_losses, name##_params
static const golden_case cases[] = {
    {"one", 1, {8}, {5}, 0, VALUES(one)},
    {"two", 2, {8, 9}, {3, 4}, 0, VALUES(two)},
    {"padded", 2, {7, 6}, {2, 3}, 3, VALUES(padded)},
    {"three", 3, {4, 5, 6}, {2, 1, 3}, 0, VALUES(three)},
};
enum { NCASES = sizeof cases / sizeof *cases };

static void close_to(const golden_case *c, const char *what, int i, double found, double expected)
{
    if (!(fabs(found - expected) <= 1e-5 * fmax(1, fabs(expected))))
        fail_msg("%s: %s, number %d is %.9g, PyTorch has %.9g", c->name, what, i, found, expected);
}

typedef ctn_status reader(ctn_var *v, void *buf, size_t bytes);

/* The sum of each parameter or gradient times hashed numbers. */
static void check_all(const golden_case *c, ctn_module *net, reader *read, const double *expected)
{
    static float v[ROOM];
    const ctn_vars p = ctn_params(net);
    for (int k = 0; k < p.n; k++) {
        char name[64];
        double sum = 0;
        const uint32_t n = (uint32_t)hashed_count(ctn_var_desc(p.var[k]));
        snprintf(name, sizeof name, "u%s", p.name[k]);
        const uint32_t key = hashed_key(name);
        assert_true(n <= ROOM);
        OK(read(p.var[k], v, n * sizeof *v));
        for (uint32_t i = 0; i < n; i++) sum += (double)v[i] * hashed_uniform(key, i);
        close_to(c, p.name[k], k, sum, expected[k]);
    }
}

static ctn_tensor *array(ctn_context *ctx, const golden_case *c, const char *name, int64_t channels,
                         float *v)
{
    int64_t dims[5] = {N, channels}, n = N * channels;
    const uint32_t key = hashed_key(name);
    for (int i = 0; i < c->spatial; i++) n *= dims[2 + i] = c->size[i];
    assert_true(n <= ROOM);
    for (uint32_t i = 0; i < (uint32_t)n; i++) v[i] = (float)hashed_uniform(key, i);
    return ctn_input(ctx, v, CTN_F32, 2 + c->spatial, dims);
}

static void step(const golden_case *c, ctn_context *ctx, ctn_module *net, ctn_optim *adam, int i)
{
    static float x[ROOM], t[ROOM], found[ROOM];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(net, array(ctx, c, "x", IN, x));
    ctn_tensor *loss = ctn_mean_squared_error(y, array(ctx, c, "t", OUT, t), CTN_MEAN);
    OK(ctn_backward(adam, loss));
    close_to(c, "loss", i, ctn_item(loss), c->losses[i]);
    if (i == 0) {
        const int n = (int)ctn_count(y);
        OK(ctn_read(y, found, (size_t)n * sizeof *found));
        for (int k = 0; k < n; k++) close_to(c, "result", k, (double)found[k], c->result[k]);
        OK(ctn_flush(ctx));
        check_all(c, net, ctn_var_grad, c->grads);
    }
    OK(ctn_optim_step(adam));
    OK(ctn_scope_end(ctx));
}

static void test_steps(void **state)
{
    (void)state;
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, NULL));
    for (int k = 0; k < NCASES; k++) {
        const golden_case *c = &cases[k];
        ctn_module *net = NULL;
        ctn_optim *adam = NULL;
        ctn_fno_opt opt = {.struct_size = sizeof opt,
                           .spatial = c->spatial,
                           .in_channels = IN,
                           .out_channels = OUT,
                           .width = WIDTH,
                           .layers = LAYERS,
                           .hidden = HIDDEN,
                           .pad = c->pad};
        memcpy(opt.modes, c->modes, sizeof opt.modes);
        OK(ctn_zoo_fno(&net, ctx, &opt));
        hashed_fill(net, NULL);
        OK(ctn_adam_new(&adam, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 1e-2)));
        for (int i = 0; i < STEPS; i++) step(c, ctx, net, adam, i);
        check_all(c, net, ctn_var_get, c->params);
        ctn_optim_free(adam);
        ctn_module_free(net);
    }
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
