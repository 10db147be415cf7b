/* SPDX-License-Identifier: Apache-2.0
 *
 * A network of your own for `catena train`: a small convolutional network for images and a
 * perceptron for everything else. Copy it and change forward() and add_parts(); README.md has
 * the line that builds it.
 */
#include <stdlib.h>

#include <catena/catena.h>
#include <catena/model.h>

typedef struct {
    ctn_module *conv, *norm; /* NULL if the samples are not images */
    ctn_module *hidden, *out;
} mymodel;

static void release(void *self)
{
    free(self); /* the modules belong to their parent */
}

/* x (N,C,H,W) or (N,...) -> (N,outputs) */
static ctn_tensor *forward(void *self, ctn_module *m, ctn_tensor *x)
{
    mymodel *net = self;
    (void)m;
    if (net->conv) {
        x = ctn_relu(ctn_call(net->norm, ctn_call(net->conv, x)));
        x = ctn_max_pool(x, CTN_OPT(ctn_pool_opt, .kernel = {2}));
    }
    x = ctn_reshape(x, CTN_SHAPE(ctn_dim(x, 0), -1));
    return ctn_call(net->out, ctn_relu(ctn_call(net->hidden, x)));
}

/* Add a module to its parent, which then owns it. */
static ctn_status add(ctn_module *parent, const char *name, ctn_module *part)
{
    ctn_status st = ctn_module_add(parent, name, part);
    if (st < 0) ctn_module_free(part);
    return st;
}

static ctn_status add_parts(mymodel *net, ctn_module *m, ctn_context *ctx, const ctn_model_opt *opt)
{
    enum { CHANNELS = 16 };
    int64_t hidden = strtoll(opt->args, NULL, 10), n = 1, outputs = 1;
    const ctn_field *x = &opt->input;
    if (hidden < 1) hidden = 64; /* --model-args 128 overrides it */
    if (x->ndim == 3) {
        ctn_conv_module_opt same = {.struct_size = sizeof same, .pad = {1, 1}};
        CTN_TRY(ctn_conv_new(&net->conv, ctx, x->shape[0], CHANNELS, CTN_SHAPE(3, 3), &same));
        CTN_TRY(add(m, "conv", net->conv));
        CTN_TRY(ctn_batch_norm_new(&net->norm, ctx, CHANNELS, NULL));
        CTN_TRY(add(m, "norm", net->norm));
        n = CHANNELS * (x->shape[1] / 2) * (x->shape[2] / 2);
    } else {
        for (int i = 0; i < x->ndim; i++) n *= x->shape[i];
    }
    for (int i = 0; i < opt->target.ndim; i++) outputs *= opt->target.shape[i];
    if (opt->classes > 0) outputs = opt->classes;
    CTN_TRY(ctn_linear_new(&net->hidden, ctx, n, hidden, NULL));
    CTN_TRY(add(m, "hidden", net->hidden));
    CTN_TRY(ctn_linear_new(&net->out, ctx, hidden, outputs, NULL));
    return add(m, "out", net->out);
}

static ctn_status make(ctn_module **m, ctn_context *ctx, const ctn_model_opt *opt)
{
    mymodel *net = calloc(1, sizeof *net);
    if (!net) return ctn_fail(CTN_ENOMEM, "mymodel: out of memory");
    ctn_status st = ctn_module_new(m, ctx, forward, net, release);
    if (st < 0) {
        free(net);
        return st;
    }
    return add_parts(net, *m, ctx, opt); /* the command frees *m if this fails */
}

const ctn_model catena_model = {
    .abi = CTN_MODEL_ABI,
    .struct_size = sizeof(ctn_model),
    .name = "mymodel",
    .make = make,
};
