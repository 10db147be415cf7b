/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions that only return what an object was created with, for bindings and extensions.
 * Public headers only, linked to the shared library.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <catena/catena.h>
#include <catena/comm.h>
#include <catena/train.h>

#include "../support/ok.h"

#include <cmocka.h>

static ctn_tensor *loss(void *self, ctn_step *s)
{
    return ctn_mean(ctn_square(ctn_call(self, ctn_step_input(s, 0))), CTN_ALL_AXES, 0);
}

/* Returns the source line of the call, and passes it on to the op inside. */
static ctn_tensor *forward(void *self, ctn_module *m, ctn_tensor *x)
{
    *(const char **)self = ctn_module_source(m);
    return ctn_relu_at(ctn_module_source(m), x);
}

static void the_line_of_a_call(void **state)
{
    (void)state;
    const float x[2] = {1, 2};
    const char *seen = NULL;
    ctn_context *ctx;
    ctn_module *m;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_module_new(&m, ctx, forward, &seen, NULL));
    OK(ctn_scope_begin(ctx));
    assert_non_null(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2))));
    assert_non_null(strstr(seen, "test_getters.c:"));
    OK(ctn_scope_end(ctx));
    ctn_module_free(m);
    ctn_context_free(ctx);
}

static void variables_and_modules(void **state)
{
    (void)state;
    ctn_context *ctx;
    ctn_module *net;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_linear_new(&net, ctx, 2, 3, NULL));
    ctn_vars all = ctn_params(net);
    assert_int_equal(all.n, 2);
    assert_ptr_equal(ctn_var_context(all.var[0]), ctx);
    assert_int_equal(ctn_var_kind_of(all.var[0]), CTN_PARAM);
    assert_ptr_equal(ctn_module_context(net), ctx);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

static void a_context(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        ctn_context *ctx;
        OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = threads)));
        assert_int_equal(ctn_context_threads(ctx), threads);
        assert_int_equal(ctn_context_training(ctx), 1);
        assert_int_equal(ctn_context_set_training(ctx, 0), 1); /* returns what was set before */
        assert_int_equal(ctn_context_set_training(ctx, 1), 0);
        assert_int_equal(ctn_context_set_grad(ctx, 0), 1);
        assert_int_equal(ctn_context_set_grad(ctx, 1), 0);
        ctn_context_free(ctx);
    }
}

static void a_trainer(void **state)
{
    (void)state;
    const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const ctn_field field = {.dtype = CTN_F32, .ndim = 1, .shape = {2}};
    const void *data[1] = {x};
    ctn_context *ctx;
    ctn_module *net;
    ctn_optim *opt;
    ctn_dataset *set;
    ctn_sampler *order;
    ctn_loader *loader;
    ctn_trainer *tr;
    OK(ctn_context_new(&ctx, NULL));
    OK(ctn_linear_new(&net, ctx, 2, 3, NULL));
    OK(ctn_sgd_new(&opt, ctn_params(net), NULL));
    OK(ctn_arrays_open(&set, 4, 1, &field, data));
    OK(ctn_sampler_sequential(&order, 4));
    OK(ctn_loader_new(&loader, set, order, CTN_OPT(ctn_loader_opt, .batch = 2)));
    OK(ctn_trainer_new(&tr, opt, loader, loss, net,
                       CTN_OPT(ctn_trainer_opt, .net = net, .epochs = 1)));
    assert_ptr_equal(ctn_trainer_context(tr), ctx);
    assert_ptr_equal(ctn_trainer_loader(tr), loader);
    assert_ptr_equal(ctn_trainer_optim(tr), opt);
    assert_ptr_equal(ctn_trainer_net(tr), net);
    assert_null(ctn_trainer_out(tr));
    OK(ctn_trainer_run(tr));
    ctn_trainer_free(tr);
    ctn_loader_free(loader);
    ctn_sampler_free(order);
    ctn_dataset_free(set);
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
}

static void a_communicator(void **state)
{
    (void)state;
    ctn_comm *c;
    OK(ctn_comm_loopback(&c, 1, NULL));
    assert_int_equal(ctn_comm_node(c), 0);
    assert_int_equal(ctn_comm_nodes(c), 1);
    ctn_comm_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_line_of_a_call), cmocka_unit_test(variables_and_modules),
        cmocka_unit_test(a_context),          cmocka_unit_test(a_trainer),
        cmocka_unit_test(a_communicator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
