/* SPDX-License-Identifier: Apache-2.0
 *
 * train.c OUT: trains a small network with dropout and writes its weights. train.f90 is the same
 * program in Fortran, and run.py compares the bits of the two files.
 */
#include <math.h>
#include <stdio.h>
#include <catena/catena.h>

enum { N = 32, IN = 6, HIDDEN = 16, OUT = 3, STEPS = 40 };

static ctn_status make(ctn_module **net, ctn_context *ctx)
{
    ctn_module *part[4] = {NULL};
    CTN_TRY(ctn_linear_new(&part[0], ctx, IN, HIDDEN, NULL));
    CTN_TRY(ctn_activation_new(&part[1], ctx, ctn_tanh_at));
    CTN_TRY(ctn_dropout_new(&part[2], ctx, 0.25));
    CTN_TRY(ctn_linear_new(&part[3], ctx, HIDDEN, OUT, NULL));
    return ctn_sequential_new(net, ctx, 4, part);
}

static ctn_status step(ctn_context *ctx, ctn_module *net, ctn_optim *opt, int t)
{
    double x[N][IN];
    int64_t label[N];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < IN; j++) x[i][j] = (i * 7 + j * 3 + t * 5) % 17 / 16.0;
        label[i] = (i + t) % OUT;
    }
    CTN_TRY(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_cast(ctn_input(ctx, x, CTN_F64, CTN_SHAPE(N, IN)), CTN_F32);
    ctn_tensor *loss =
        ctn_softmax_cross_entropy_with(ctn_call(net, in),
                                       ctn_input(ctx, label, CTN_I64, CTN_SHAPE(N)),
                                       CTN_OPT(ctn_softmax_cross_entropy_opt, .smoothing = 0.1));
    CTN_TRY(ctn_backward(opt, loss));
    CTN_TRY(ctn_optim_step(opt));
    return ctn_scope_end(ctx);
}

static ctn_status train(const char *path)
{
    ctn_context *ctx = NULL;
    ctn_module *net = NULL;
    ctn_optim *opt = NULL;
    CTN_TRY(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 5, .threads = 2)));
    CTN_TRY(make(&net, ctx));
    CTN_TRY(ctn_adamw_new(&opt, ctn_params(net), CTN_OPT(ctn_adam_opt, .lr = 0.01, .decay = 0.1)));
    ctn_optim_set_clip(opt, 1);
    for (int t = 0; t < STEPS; t++) CTN_TRY(step(ctx, net, opt, t));
    CTN_TRY(ctn_weights_save(net, path));
    ctn_optim_free(opt);
    ctn_module_free(net);
    ctn_context_free(ctx);
    return CTN_OK;
}

int main(int argc, char **argv)
{
    if (argc == 2 && train(argv[1]) == CTN_OK) return 0;
    fprintf(stderr, "train: %s\n", argc == 2 ? ctn_error_message() : "usage: train OUT");
    return 1;
}
