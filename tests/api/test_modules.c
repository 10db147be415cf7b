/* SPDX-License-Identifier: Apache-2.0
 *
 * A module of the user with several inputs and results, its copy as the target network of the
 * training, and a visit of its parts. Public headers only, linked to the shared library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <catena/catena.h>

#include "../support/ok.h"

#include <cmocka.h>

enum { N = 4, C = 3 };

typedef struct {
    ctn_module *value, *gate;
    double scale;
} critic;

/* x (N,C), mask (N,C) or left out -> value (N,1), gate (N,1) */
static ctn_tensors forward(void *self, ctn_module *m, ctn_tensors x)
{
    const critic *c = self;
    (void)m;
    ctn_tensor *in = x.t[1] ? ctn_mul(x.t[0], x.t[1]) : x.t[0];
    return CTN_TENSORS(ctn_scale(ctn_call(c->value, in), c->scale),
                       ctn_sigmoid(ctn_call(c->gate, in)));
}

static ctn_status copy(void *self, ctn_module *m, ctn_module **out);

static ctn_status critic_new(ctn_module **m, ctn_context *ctx, double scale)
{
    critic *c = calloc(1, sizeof *c);
    if (!c) return ctn_fail(CTN_ENOMEM, "critic: out of memory");
    c->scale = scale;
    OK(ctn_module_new_multi(m, ctx, forward, c, free));
    OK(ctn_linear_new(&c->value, ctx, C, 1, NULL));
    OK(ctn_module_add(*m, "value", c->value));
    OK(ctn_linear_new(&c->gate, ctx, C, 1, NULL));
    OK(ctn_module_add(*m, "gate", c->gate));
    return ctn_module_set_copy(*m, copy);
}

static ctn_status copy(void *self, ctn_module *m, ctn_module **out)
{
    return critic_new(out, ctn_module_context(m), ((critic *)self)->scale);
}

static ctn_status print_name(void *user, const char *name, ctn_module *m)
{
    assert_non_null(m);
    strcat(strcat(user, name), "/");
    return CTN_OK;
}

static void a_target_network(void **state)
{
    (void)state;
    static const float x[N][C] = {{1, 2, 3}, {-1, 0.5f, 2}, {0, 1, -1}, {2, -2, 1}};
    static const float mask[N][C] = {{1, 0, 1}, {1, 1, 1}, {0, 1, 1}, {1, 1, 0}};
    ctn_context *ctx;
    ctn_module *net, *target;
    ctn_optim *opt;
    char names[64] = "";
    float first[N], last[N], fixed[N], now[N];
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1, .threads = 1)));
    OK(critic_new(&net, ctx, 0.5));
    OK(ctn_module_copy(&target, net));
    OK(ctn_module_visit_modules(target, print_name, names));
    assert_string_equal(names, "/value/gate/");
    OK(ctn_sgd_new(&opt, ctn_params(net), CTN_OPT(ctn_sgd_opt, .lr = 0.1)));
    for (int step = 0; step < 3; step++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(N, C));
        ctn_tensors y = ctn_call_multi(net, in, ctn_input(ctx, mask, CTN_F32, CTN_SHAPE(N, C)));
        ctn_tensors want = ctn_call_multi(target, in, NULL);
        assert_int_equal(y.n, 2);
        ctn_keep(y.t[0]);
        ctn_keep(want.t[0]);
        ctn_tensor *error = ctn_square(ctn_sub(y.t[0], ctn_detach(want.t[0])));
        OK(ctn_backward(opt, ctn_mean(ctn_mul(error, y.t[1]), CTN_ALL_AXES, 0)));
        OK(ctn_optim_step(opt));
        OK(ctn_read(y.t[0], step ? last : first, sizeof last));
        OK(ctn_read(want.t[0], step ? now : fixed, sizeof now));
        OK(ctn_scope_end(ctx));
    }
    assert_memory_not_equal(first, last, sizeof first);
    assert_memory_equal(fixed, now, sizeof now);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_module_free(target);
    ctn_context_free(ctx);
}

static void several_tensors_leave_a_scope(void **state)
{
    (void)state;
    const float x[2] = {-1, 2};
    ctn_context *ctx;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_scope_begin(ctx));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2));
    ctn_tensor *both[2] = {ctn_sum(in, CTN_ALL_AXES, 0), ctn_sum(ctn_relu(in), CTN_ALL_AXES, 0)};
    OK(ctn_scope_return_n(ctx, 2, both));
    assert_true(ctn_item(both[0]) == 1 && ctn_item(both[1]) == 2);
    OK(ctn_scope_end(ctx));
    ctn_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_network),
        cmocka_unit_test(several_tensors_leave_a_scope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
