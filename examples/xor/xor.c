/* SPDX-License-Identifier: Apache-2.0
 *
 * A small network learns exclusive or: xor [WEIGHTS]. The weights are saved if a file is named.
 * xor.cpp, xor.f90 and xor.py are the same program. All print the same losses and write the same
 * file, to the bit.
 */
#include <stdio.h>
#include <stdlib.h>

#include <catena/catena.h>

#define CHECK(call) \
    if ((call) < 0) exit((fprintf(stderr, "xor: %s\n", ctn_error_message()), 1))

int main(int argc, char **argv)
{
    const float x[] = {0, 0, 0, 1, 1, 0, 1, 1}, y[] = {0, 1, 1, 0};
    ctn_context *ctx;
    ctn_module *layer[3], *net;
    ctn_optim *opt;
    CHECK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    CHECK(ctn_linear_new(&layer[0], ctx, 2, 16, NULL));
    CHECK(ctn_activation_new(&layer[1], ctx, ctn_tanh_at));
    CHECK(ctn_linear_new(&layer[2], ctx, 16, 1, NULL));
    CHECK(ctn_sequential_new(&net, ctx, 3, layer));
    CHECK(ctn_adam_new(&opt, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.05)));
    for (int step = 1; step <= 100; step++) {
        CHECK(ctn_scope_begin(ctx));
        ctn_tensor *in = ctn_input(ctx, x, CTN_F32, CTN_SHAPE(4, 2));
        ctn_tensor *want = ctn_input(ctx, y, CTN_F32, CTN_SHAPE(4, 1));
        ctn_tensor *loss = ctn_mean_squared_error(ctn_call(net, in), want, CTN_MEAN);
        CHECK(ctn_backward(opt, loss));
        CHECK(ctn_optim_step(opt));
        if (step % 20 == 0) printf("step %3d  loss %.6f\n", step, ctn_item(loss));
        CHECK(ctn_scope_end(ctx));
    }
    if (argc > 1) CHECK(ctn_weights_save(net, argv[1]));
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return 0;
}
