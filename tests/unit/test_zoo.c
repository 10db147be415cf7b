/* SPDX-License-Identifier: Apache-2.0
 *
 * The zoo and the modules it is made of: names and numbers of parameters as in PyTorch, shapes
 * of results, a few training steps of a small member of each family, refused options, a failing
 * allocator.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <catena/catena.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/ok.h"

#include "nn/nn.h"

static int set_up(void **state)
{
    ctn_context *ctx = NULL;
    OK(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .seed = 1)));
    *state = ctx;
    return 0;
}

static int tear_down(void **state)
{
    assert_string_equal(ctn_error_message(), "");
    ctn_context_free(*state);
    return 0;
}

/* ---- numbers, names and shapes of the whole networks ----------------------------------------- */

/* The number of elements of all parameters; a tied one counts once. */
static int64_t parameters(ctn_module *m)
{
    ctn_vars p = ctn_params(m);
    int64_t n = 0;
    for (int i = 0; i < p.n; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen |= p.var[k] == p.var[i];
        if (!seen) n += ctn__count(ctn_var_desc(p.var[i]));
    }
    return n;
}

static ctn_status count_one(void *user, const char *name, ctn_dtype dtype, int ndim,
                            const int64_t *dims, void *data)
{
    (void)name, (void)dtype, (void)ndim, (void)dims, (void)data;
    ++*(int *)user;
    return CTN_OK;
}

static void assert_shape(ctn_module *m, const char *name, int ndim, const int64_t *dims)
{
    ctn_var *v = ctn_module_find(m, name);
    if (!v) fail_msg("%s", ctn_error_message());
    const ctn_desc *d = ctn_var_desc(v);
    assert_int_equal(d->ndim, ndim);
    for (int i = 0; i < ndim; i++)
        if (d->dim[i] != dims[i])
            fail_msg("%s: dimension %d is %lld, expected %lld", name, i, (long long)d->dim[i],
                     (long long)dims[i]);
}

/* Known members: elements of the parameters; arrays in the file, including states; a shape of
 * input and of result, both ending with 0. */
static const struct {
    const char *name;
    int64_t parameters;
    int arrays;
    ctn_dtype in_type;
    int64_t in[5], out[5];
} known[] = {
    {"fno", 2368001, 22, CTN_F32, {2, 1, 24, 30}, {2, 1, 24, 30}},
    {"googlenet", 13378280, 128, CTN_F32, {1, 3, 64, 33}, {1, 1000}},
    {"gpt", 842496, 52, CTN_I64, {2, 7}, {2, 7, 256}},
    {"lenet5", 61706, 10, CTN_F32, {3, 1, 28, 28}, {3, 10}},
    {"mlp", 1796010, 6, CTN_F32, {5, 784}, {5, 10}},
    {"mobilenet_v2", 3504872, 314, CTN_F32, {2, 3, 64, 96}, {2, 1000}},
    {"resnet18", 11689512, 122, CTN_F32, {2, 3, 64, 64}, {2, 1000}},
    {"resnet34", 21797672, 218, CTN_F32, {2, 3, 64, 64}, {2, 1000}},
    {"resnet50", 25557032, 320, CTN_F32, {2, 3, 224, 224}, {2, 1000}},
    {"resnet101", 44549160, 626, CTN_F32, {1, 3, 65, 33}, {1, 1000}},
    {"resnet20_cifar", 269722, 116, CTN_F32, {2, 3, 32, 32}, {2, 10}},
    {"resnet56_cifar", 853018, 332, CTN_F32, {2, 3, 33, 31}, {2, 10}},
    {"unet", 7762465, 118, CTN_F32, {1, 1, 32, 48}, {1, 1, 32, 48}},
#if !defined(__SANITIZE_ADDRESS__) /* these take minutes there */
    {"bert", 109514298, 202, CTN_I64, {2, 7}, {2, 7, 30522}},
    {"gpt2", 124439808, 148, CTN_I64, {2, 7}, {2, 7, 50257}},
    {"resnet152", 60192808, 932, CTN_F32, {1, 3, 64, 64}, {1, 1000}},
    {"vgg16", 138357544, 32, CTN_F32, {1, 3, 64, 64}, {1, 1000}},
    {"vit", 86567656, 200, CTN_F32, {2, 3, 224, 224}, {2, 1000}},
#endif
};

static int length(const int64_t *dims)
{
    int n = 0;
    while (n < 5 && dims[n] > 0) n++;
    return n;
}

/* In evaluation mode only the shapes are computed here. */
static void check_result(ctn_context *ctx, ctn_module *m, size_t k)
{
    static float data[2 * 3 * 224 * 224]; /* not read */
    const int ndim = length(known[k].out);
    ctn_context_set_training(ctx, 0);
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y =
        ctn_call(m, ctn_input(ctx, data, known[k].in_type, length(known[k].in), known[k].in));
    if (!y) fail_msg("%s: %s", known[k].name, ctn_error_message());
    assert_int_equal(ctn_ndim(y), ndim);
    for (int i = 0; i < ndim; i++) assert_int_equal(ctn_dim(y, i), known[k].out[i]);
    OK(ctn_scope_end(ctx));
    ctn_context_set_training(ctx, 1);
}

static bool memory_for(int64_t elements)
{
    int64_t bytes = (int64_t)sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGESIZE);
    return bytes > 4 * elements * 4;
}

static void test_known(void **state)
{
    ctn_context *ctx = *state;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        ctn_module *m = NULL;
        int arrays = 0;
        if (!memory_for(known[k].parameters)) {
            print_message("skipped, not enough memory: %s\n", known[k].name);
            continue;
        }
        OK(ctn_zoo_new(&m, ctx, known[k].name, NULL));
        OK(ctn_module_visit(m, count_one, &arrays));
        if (parameters(m) != known[k].parameters || arrays != known[k].arrays)
            fail_msg("%s: %lld parameters in %d arrays, expected %lld in %d", known[k].name,
                     (long long)parameters(m), arrays, (long long)known[k].parameters,
                     known[k].arrays);
        check_result(ctx, m, k);
        ctn_module_free(m);
    }
}

static void test_names(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    OK(ctn_zoo_resnet(&m, ctx, NULL));
    assert_shape(m, "conv1.weight", CTN_SHAPE(64, 3, 7, 7));
    assert_shape(m, "bn1.num_batches_tracked", CTN_SCALAR_SHAPE);
    assert_shape(m, "layer1.0.conv1.weight", CTN_SHAPE(64, 64, 1, 1));
    assert_shape(m, "layer1.0.downsample.0.weight", CTN_SHAPE(256, 64, 1, 1));
    assert_shape(m, "layer1.0.downsample.1.running_var", CTN_SHAPE(256));
    assert_shape(m, "layer2.0.conv2.weight", CTN_SHAPE(128, 128, 3, 3));
    assert_shape(m, "layer4.2.bn3.running_mean", CTN_SHAPE(2048));
    assert_shape(m, "fc.weight", CTN_SHAPE(1000, 2048));
    assert_string_equal(ctn_params(m).name[2], "bn1.bias");
    ctn_module_free(m);
    OK(ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .depth = 18, .width = 4, .classes = 7)));
    assert_shape(m, "layer2.0.downsample.0.weight", CTN_SHAPE(8, 4, 1, 1));
    assert_shape(m, "layer4.1.conv2.weight", CTN_SHAPE(32, 32, 3, 3));
    assert_shape(m, "fc.bias", CTN_SHAPE(7));
    ctn_module_free(m);
    OK(ctn_zoo_mobilenet_v2(&m, ctx, NULL));
    assert_shape(m, "features.0.0.weight", CTN_SHAPE(32, 3, 3, 3));
    assert_shape(m, "features.1.conv.0.0.weight", CTN_SHAPE(32, 1, 3, 3));
    assert_shape(m, "features.1.conv.1.weight", CTN_SHAPE(16, 32, 1, 1));
    assert_shape(m, "features.2.conv.1.0.weight", CTN_SHAPE(96, 1, 3, 3));
    assert_shape(m, "features.2.conv.3.running_mean", CTN_SHAPE(24));
    assert_shape(m, "features.18.0.weight", CTN_SHAPE(1280, 320, 1, 1));
    assert_shape(m, "classifier.1.bias", CTN_SHAPE(1000));
    ctn_module_free(m);
    OK(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .vocabulary = 11, .width = 8, .heads = 2)));
    assert_shape(m, "h.3.attn.c_attn.weight", CTN_SHAPE(24, 8));
    assert_shape(m, "h.3.mlp.c_proj.weight", CTN_SHAPE(8, 32));
    assert_shape(m, "h.0.ln_1.bias", CTN_SHAPE(8));
    assert_ptr_equal(ctn_module_find(m, "lm_head.weight"), ctn_module_find(m, "wte.weight"));
    ctn_module_free(m);
    OK(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .width = 8, .untied = 1)));
    assert_ptr_not_equal(ctn_module_find(m, "lm_head.weight"), ctn_module_find(m, "wte.weight"));
    ctn_module_free(m);
    OK(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .vocabulary = 11, .width = 24)));
    assert_shape(m, "bert.embeddings.position_embeddings.weight", CTN_SHAPE(512, 24));
    assert_shape(m, "bert.encoder.layer.11.intermediate.dense.weight", CTN_SHAPE(96, 24));
    assert_ptr_equal(ctn_module_find(m, "cls.predictions.decoder.weight"),
                     ctn_module_find(m, "bert.embeddings.word_embeddings.weight"));
    assert_ptr_equal(ctn_module_find(m, "cls.predictions.decoder.bias"),
                     ctn_module_find(m, "cls.predictions.bias"));
    ctn_module_free(m);
    OK(ctn_zoo_unet(&m, ctx, CTN_OPT(ctn_unet_opt, .in_channels = 3, .width = 64)));
    assert_int_equal(parameters(m), 31037633); /* the usual one for images */
    assert_shape(m, "up.0.weight", CTN_SHAPE(1024, 512, 2, 2));
    assert_shape(m, "dec.3.conv1.weight", CTN_SHAPE(64, 128, 3, 3));
    ctn_module_free(m);
}

/* Names in the table above are not built again, and large networks not at all under a sanitizer. Of
 * the VGGs, half a gigabyte each, only one is tested. */
static bool is_known(const char *name)
{
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k].name, name) == 0) return true;
    return strncmp(name, "vgg", 3) == 0 || strcmp(name, "gpt2") == 0 || strcmp(name, "bert") == 0 ||
           strcmp(name, "resnet152") == 0 || strcmp(name, "vit") == 0;
}

static void test_every_name(void **state)
{
    ctn_context *ctx = *state;
    int n = 0;
    for (const char *const *name = ctn_zoo_names(); *name; name++) {
        ctn_module *m = NULL;
        n++;
        if (is_known(*name)) continue;
        OK(ctn_zoo_new(&m, ctx, *name, CTN_OPT(ctn_zoo_opt, .classes = 3, .in_channels = 2)));
        ctn_module_free(m);
    }
    assert_int_equal(n, 23);
    ctn_module *m = NULL;
    OK(ctn_zoo_new(&m, ctx, "mlp", CTN_OPT(ctn_zoo_opt, .classes = 3, .in_channels = 2)));
    assert_shape(m, "0.weight", CTN_SHAPE(1000, 2));
    assert_shape(m, "4.bias", CTN_SHAPE(3));
    ctn_module_free(m);
}

/* ---- training of small members --------------------------------------------------------------- */

enum { MOST = 2 * 3 * 64 * 64 };

/* Steps on one batch: the loss is finite and decreases. targets NULL: the loss is the squared
 * result. */
static void train(ctn_context *ctx, ctn_module *m, ctn_dtype dtype, int ndim, const int64_t *dims,
                  const int64_t *targets)
{
    static float x[MOST];
    static int64_t tokens[MOST];
    ctn_optim *opt = NULL;
    double first = 0, last = 0;
    for (int i = 0; i < MOST; i++) {
        tokens[i] = i * 7 % 11;
        x[i] = (float)sin(0.37 * i) + (float)(i % 5) * 0.2f;
    }
    const void *data = dtype == CTN_I64 ? (const void *)tokens : x;
    OK(ctn_sgd_new(&opt, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 0.01)));
    for (int step = 0; step < 5; step++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *y = ctn_call(m, ctn_input(ctx, data, dtype, ndim, dims));
        if (!y) fail_msg("%s", ctn_error_message());
        ctn_tensor *loss = targets ? ctn_softmax_cross_entropy(y, ctn_input(ctx, targets, CTN_I64,
                                                                            ctn_ndim(y) - 1, dims))
                                   : ctn_mean(ctn_square(y), CTN_ALL_AXES, 0);
        OK(ctn_backward(opt, loss));
        OK(ctn_optim_step(opt));
        last = ctn_item(loss);
        if (step == 0) first = last;
        OK(ctn_scope_end(ctx));
    }
    if (!(isfinite(last) && last < first)) fail_msg("loss went from %g to %g", first, last);
    ctn_optim_free(opt);
    ctn_module_free(m);
}

static const int64_t classes[2 * 8] = {1, 0, 2, 1, 0, 3, 4, 1, 2, 2, 0, 1, 3, 4, 0, 2};

static void test_train_resnet(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    int64_t batches = -1;
    OK(ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .depth = 18, .width = 8, .classes = 5)));
    train(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 64, 64), classes);
    OK(ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .width = 4, .classes = 5)));
    train(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 64, 64), classes);
    OK(ctn_zoo_resnet_cifar(&m, ctx, CTN_OPT(ctn_resnet_cifar_opt, .width = 8)));
    ctn_var *count = ctn_module_find(m, "layer2.0.bn1.num_batches_tracked");
    OK(ctn_scope_begin(ctx));
    static const float x[2 * 3 * 32 * 32];
    for (int i = 0; i < 3; i++) {
        ctn_context_set_training(ctx, i < 2); /* evaluation does not count */
        assert_non_null(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3, 32, 32))));
    }
    ctn_context_set_training(ctx, 1);
    OK(ctn_scope_end(ctx));
    OK(ctn_var_get(count, &batches, sizeof batches));
    assert_int_equal(batches, 2);
    train(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 32, 32), classes);
}

/* The sizes are those that torchvision states. The auxiliary classifiers are results of training,
 * and are trained by their own losses. */
static void test_googlenet(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    ctn_optim *opt = NULL;
    static float x[2 * 3 * 64 * 64];
    double last = 0;
    float before[5], after[5];
    OK(ctn_zoo_googlenet(&m, ctx, CTN_OPT(ctn_googlenet_opt, .batch_norm = 1, .no_aux = 1)));
    assert_int_equal(parameters(m), 6624904);
    ctn_module_free(m);
    OK(ctn_zoo_googlenet(&m, ctx,
                         CTN_OPT(ctn_googlenet_opt, .batch_norm = 1, .classes = 5, .dropout = -1)));
    assert_shape(m, "conv1.conv.weight", CTN_SHAPE(64, 3, 7, 7));
    assert_shape(m, "inception3a.branch3.1.conv.weight", CTN_SHAPE(32, 16, 3, 3));
    assert_shape(m, "inception5b.branch4.1.bn.running_var", CTN_SHAPE(128));
    assert_shape(m, "aux2.conv.conv.weight", CTN_SHAPE(128, 528, 1, 1));
    assert_shape(m, "aux1.fc1.weight", CTN_SHAPE(1024, 2048));
    for (int i = 0; i < 2 * 3 * 64 * 64; i++) x[i] = (float)sin(0.37 * i + i / 12288);
    ctn_var *bias = ctn_module_find(m, "aux1.fc2.bias");
    OK(ctn_var_get(bias, before, sizeof before));
    OK(ctn_sgd_new(&opt, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 0.05)));
    for (int step = 0; step < 2; step++) {
        OK(ctn_scope_begin(ctx));
        ctn_tensor *t = ctn_input(ctx, classes, CTN_I64, CTN_SHAPE(2));
        ctn_tensors y = ctn_call_multi(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 3, 64, 64)));
        assert_int_equal(y.n, 3);
        ctn_tensor *loss = ctn_softmax_cross_entropy(y.t[0], t);
        for (int i = 1; i < 3; i++)
            loss = ctn_add(loss, ctn_scale(ctn_softmax_cross_entropy(y.t[i], t), 0.3));
        OK(ctn_backward(opt, loss));
        OK(ctn_optim_step(opt));
        last = ctn_item(loss);
        OK(ctn_scope_end(ctx));
    }
    assert_true(isfinite(last));
    OK(ctn_var_get(bias, after, sizeof after));
    assert_memory_not_equal(before, after, sizeof after);
    ctn_optim_free(opt);
    ctn_module_free(m);
}

static void assert_result(ctn_context *ctx, ctn_module *m, const int64_t *in, const int64_t *out)
{
    static const float x[2 * 6 * 9 * 8];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(m, ctn_input(ctx, x, CTN_F32, 4, in));
    if (!y) fail_msg("%s", ctn_error_message());
    for (int i = 0; i < 4; i++) assert_int_equal(ctn_dim(y, i), out[i]);
    OK(ctn_scope_end(ctx));
}

static void test_inception(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    const int64_t in[] = {2, 6, 9, 8};
    ctn_inception_opt o = {sizeof o,     .out1 = 3, .reduce3 = 2, .out3 = 4,
                           .reduce5 = 1, .out5 = 2, .pool = 5};
    OK(ctn_inception_new(&m, ctx, 6, &o));
    assert_shape(m, "branch1.conv.bias", CTN_SHAPE(3));
    assert_shape(m, "branch3.1.conv.weight", CTN_SHAPE(2, 1, 5, 5));
    assert_result(ctx, m, in, (const int64_t[]){2, 14, 9, 8});
    train(ctx, m, CTN_F32, 4, in, NULL);
    int64_t *const sizes[] = {&o.out1, &o.reduce3, &o.out3, &o.reduce5, &o.out5, &o.pool};
    for (int i = 0; i < 6; i++) {
        const int64_t was = *sizes[i];
        *sizes[i] = 0;
        assert_fails(ctn_inception_new(&m, ctx, 6, &o), CTN_EARG, "must be positive");
        *sizes[i] = was;
    }
    assert_fails(ctn_inception_new(&m, ctx, 0, &o), CTN_EARG, "channels is 0");
    ctn_inception_bn_opt b = {sizeof b,      .out1 = 3,  .reduce3 = 2, .out3 = 4,
                              .reduce33 = 1, .out33 = 2, .pool = 5,    .average = 1};
    OK(ctn_inception_bn_new(&m, ctx, 6, &b));
    assert_shape(m, "branch3.2.conv.weight", CTN_SHAPE(2, 2, 3, 3));
    assert_shape(m, "branch4.1.bn.weight", CTN_SHAPE(5));
    assert_result(ctx, m, in, (const int64_t[]){2, 14, 9, 8});
    train(ctx, m, CTN_F32, 4, in, NULL);
    int64_t *const needed[] = {&b.reduce3, &b.out3, &b.reduce33, &b.out33};
    int64_t *const optional[] = {&b.out1, &b.pool, &b.stride};
    for (int i = 0; i < 4; i++) {
        const int64_t was = *needed[i];
        *needed[i] = 0;
        assert_fails(ctn_inception_bn_new(&m, ctx, 6, &b), CTN_EARG, "must be positive");
        *needed[i] = was;
    }
    for (int i = 0; i < 3; i++) {
        const int64_t was = *optional[i];
        *optional[i] = -1;
        assert_fails(ctn_inception_bn_new(&m, ctx, 6, &b), CTN_EARG, "must not be negative");
        *optional[i] = was;
    }
    b.stride = 2;
    assert_fails(ctn_inception_bn_new(&m, ctx, 6, &b), CTN_EARG, "out1 must be 0");
    b.out1 = b.pool = b.average = 0;
    OK(ctn_inception_bn_new(&m, ctx, 6, &b));
    assert_result(ctx, m, in, (const int64_t[]){2, 4 + 2 + 6, 5, 4});
    train(ctx, m, CTN_F32, 4, in, NULL);
}

static void test_train_others(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    OK(ctn_zoo_lenet5(&m, ctx, NULL));
    train(ctx, m, CTN_F32, CTN_SHAPE(2, 1, 28, 28), classes);
    OK(ctn_zoo_mlp(&m, ctx,
                   CTN_OPT(ctn_mlp_opt, .n = 3, .size = (const int64_t[]){6, 9, 5},
                           .activation = ctn_tanh_at)));
    train(ctx, m, CTN_F32, CTN_SHAPE(2, 6), classes);
    OK(ctn_zoo_mobilenet_v2(&m, ctx,
                            CTN_OPT(ctn_mobilenet_v2_opt, .width = 0.25, .classes = 5,
                                    .dropout = -1)));
    train(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 64, 64), classes);
    for (int spatial = 1; spatial <= 3; spatial++) {
        OK(ctn_zoo_unet(&m, ctx,
                        CTN_OPT(ctn_unet_opt, .spatial = spatial, .width = 4, .depth = 2)));
        train(ctx, m, CTN_F32, 2 + spatial, (const int64_t[]){2, 1, 8, 8, 8}, NULL);
    }
    OK(ctn_zoo_unet(&m, ctx, CTN_OPT(ctn_unet_opt, .spatial = 1, .width = 1, .depth = 8)));
    assert_shape(m, "enc.8.conv2.weight", CTN_SHAPE(256, 256, 3));
    ctn_module_free(m);
    const int many[] = {-1, 4097, INT32_MAX};
    for (int i = 0; i < 3; i++) {
        assert_fails(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .layers = many[i])), CTN_EARG,
                     "expected 1 to 4096");
        assert_fails(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .layers = many[i])), CTN_EARG,
                     "expected 1 to 4096");
        assert_fails(ctn_zoo_llama(&m, ctx, CTN_OPT(ctn_llama_opt, .layers = many[i])), CTN_EARG,
                     "expected 1 to 4096");
    }
    assert_fails(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .layers = 4096, .width = INT32_MAX - 3)),
                 CTN_ENOMEM, "check the sizes");
    assert_fails(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .width = (int64_t)1 << 31)), CTN_EARG,
                 "width is 2147483648");
    const int wrong[][2] = {{-1, 2}, {4, 2}, {2, -1}, {2, 100}}; /* spatial, depth */
    for (int i = 0; i < 4; i++)
        assert_fails(ctn_zoo_unet(&m, ctx,
                                  CTN_OPT(ctn_unet_opt, .spatial = wrong[i][0],
                                          .depth = wrong[i][1])),
                     CTN_EARG, "expected 1 to");
    OK(ctn_zoo_fno(&m, ctx,
                   CTN_OPT(ctn_fno_opt, .spatial = 1, .width = 1, .modes = {1}, .layers = 64)));
    assert_shape(m, "w63.weight", CTN_SHAPE(1, 1, 1));
    ctn_module_free(m);
    for (int i = 0; i < 4; i++) /* spatial, layers */
        assert_fails(ctn_zoo_fno(&m, ctx,
                                 CTN_OPT(ctn_fno_opt, .spatial = wrong[i][0],
                                         .layers = wrong[i][1])),
                     CTN_EARG, "expected 1 to");
    for (int spatial = 1; spatial <= 3; spatial++) {
        OK(ctn_zoo_fno(&m, ctx,
                       CTN_OPT(ctn_fno_opt, .spatial = spatial, .width = 4, .modes = {3},
                               .layers = 2, .pad = spatial - 1)));
        train(ctx, m, CTN_F32, 2 + spatial, (const int64_t[]){2, 1, 8, 7, 6}, NULL);
    }
    OK(ctn_zoo_gpt(&m, ctx,
                   CTN_OPT(ctn_gpt_opt, .vocabulary = 11, .block = 8, .width = 16, .layers = 2)));
    train(ctx, m, CTN_I64, CTN_SHAPE(2, 8), classes);
    ctn_bert_opt bert = {sizeof bert, .vocabulary = 11, .width = 16, .layers = 2, .heads = 2};
    OK(ctn_zoo_bert(&m, ctx, &bert));
    train(ctx, m, CTN_I64, CTN_SHAPE(2, 8), classes);
    bert.classes = 5;
    OK(ctn_zoo_bert(&m, ctx, &bert));
    train(ctx, m, CTN_I64, CTN_SHAPE(2, 8), classes);
    OK(ctn_zoo_vit(&m, ctx,
                   CTN_OPT(ctn_vit_opt, .image = 8, .patch = 4, .width = 16, .layers = 2,
                           .heads = 2, .classes = 5)));
    train(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 8, 8), classes);
}

/* A BERT that is called with targets returns the loss of those that are not -100. */
static void test_masked_loss(void **state)
{
    ctn_context *ctx = *state;
    static const int64_t tokens[2 * 4] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const int64_t targets[2 * 4] = {-100, 9, -100, 4, 1, -100, -100, -100};
    ctn_bert_opt o = {sizeof o, .vocabulary = 11, .width = 16, .layers = 1, .heads = 2};
    ctn_module *m = NULL, *classifier = NULL, *gpt = NULL;
    OK(ctn_zoo_bert(&m, ctx, &o));
    o.classes = 3;
    OK(ctn_zoo_bert(&classifier, ctx, &o));
    OK(ctn_zoo_gpt(&gpt, ctx, NULL));
    OK(ctn_var_init(ctn_module_find(m, "cls.predictions.bias"),
                    CTN_OPT(ctn_init, .kind = CTN_INIT_NORMAL)));
    OK(ctn_scope_begin(ctx));
    ctn_tensor *x = ctn_input(ctx, tokens, CTN_I64, CTN_SHAPE(2, 4));
    ctn_tensor *t = ctn_input(ctx, targets, CTN_I64, CTN_SHAPE(2, 4));
    ctn_tensor *loss = ctn_call_multi(m, x, NULL, NULL, t).t[0];
    ctn_tensor *same = ctn_softmax_cross_entropy(ctn_call(m, x), t);
    assert_true(fabs(ctn_item(loss) - ctn_item(same)) < 1e-5);
    assert_int_equal(ctn_call_multi(classifier, x, NULL, NULL, t).n, 0);
    assert_fails(ctn_error_status(), CTN_EARG, "masked-language head");
    OK(ctn_scope_end(ctx));
    assert_int_equal(ctn_module_predicts(m), CTN_PREDICTS_MASKED);
    assert_int_equal(ctn_module_predicts(gpt), CTN_PREDICTS_NEXT);
    assert_int_equal(ctn_module_predicts(classifier), CTN_PREDICTS_OTHER);
    ctn_module_free(m);
    ctn_module_free(classifier);
    ctn_module_free(gpt);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* All values of the variable are within the bound, and some come close to it. */
static void assert_bound(ctn_module *m, const char *name, double bound)
{
    ctn_var *v = ctn_module_find(m, name);
    assert_non_null(v);
    const int64_t n = ctn__count(ctn_var_desc(v));
    const float *x = v->data;
    double most = 0;
    for (int64_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
    if (most > bound * (1 + 1e-6) || most < 0.8 * bound)
        fail_msg("%s: largest value is %g, expected just below %g", name, most, bound);
}

static void call_once(ctn_context *ctx, ctn_module *m, ctn_dtype dtype, int ndim,
                      const int64_t *dims, int out_ndim, const int64_t *out)
{
    static double data[4096];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *y = ctn_call(m, ctn_input(ctx, data, dtype, ndim, dims));
    if (!y || !ctn_data(y)) fail_msg("%s", ctn_error_message());
    assert_int_equal(ctn_ndim(y), out_ndim);
    for (int i = 0; i < out_ndim; i++) assert_int_equal(ctn_dim(y, i), out[i]);
    OK(ctn_scope_end(ctx));
    ctn_module_free(m);
}

static void test_conv_modules(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    OK(ctn_conv_new(&m, ctx, 4, 6, CTN_SHAPE(3, 5),
                    CTN_OPT(ctn_conv_module_opt, .stride = {2, 1}, .pad = {1, 2}, .groups = 2)));
    assert_shape(m, "weight", CTN_SHAPE(6, 2, 3, 5));
    assert_bound(m, "weight", 1 / sqrt(2 * 3 * 5));
    assert_bound(m, "bias", 1 / sqrt(2 * 3 * 5));
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 4, 9, 8), CTN_SHAPE(2, 6, 5, 8));
    OK(ctn_conv_new(&m, ctx, 2, 3, CTN_SHAPE(3), CTN_OPT(ctn_conv_module_opt, .no_bias = 1)));
    assert_int_equal(ctn_params(m).n, 1);
    call_once(ctx, m, CTN_F32, CTN_SHAPE(1, 2, 7), CTN_SHAPE(1, 3, 5));
    OK(ctn_conv_transpose_new(&m, ctx, 4, 6, CTN_SHAPE(3, 3),
                              CTN_OPT(ctn_conv_module_opt, .stride = {2}, .pad = {1},
                                      .out_pad = {1}, .groups = 2)));
    assert_shape(m, "weight", CTN_SHAPE(4, 3, 3, 3));
    assert_bound(m, "weight", 1 / sqrt(3 * 3 * 3));
    call_once(ctx, m, CTN_F32, CTN_SHAPE(1, 4, 5, 4), CTN_SHAPE(1, 6, 10, 8));
    assert_fails(ctn_conv_new(&m, ctx, 3, 4, CTN_SHAPE(3, 3),
                              CTN_OPT(ctn_conv_module_opt, .groups = 2)),
                 CTN_EARG, "3 inputs and 4 outputs in 2 groups");
    assert_fails(ctn_conv_new(&m, ctx, 3, 4, CTN_SHAPE(3, 0), NULL), CTN_EARG, "kernel size 1");
    assert_fails(ctn_conv_transpose_new(&m, ctx, 3, 4, CTN_SHAPE(1, 1, 1, 1), NULL), CTN_EARG,
                 "4 dimensions");
    assert_null(m);
}

static void test_other_modules(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    OK(ctn_batch_norm_new(&m, ctx, 3, NULL));
    assert_shape(m, "running_var", CTN_SHAPE(3));
    assert_bound(m, "running_var", 1);
    assert_bound(m, "weight", 1);
    assert_int_equal(ctn_params(m).n, 2);
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 4, 4), CTN_SHAPE(2, 3, 4, 4));
    OK(ctn_batch_norm_new(&m, ctx, 3, CTN_OPT(ctn_batch_norm_module_opt, .no_affine = 1)));
    assert_int_equal(ctn_params(m).n, 0);
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 4), CTN_SHAPE(2, 3, 4));
    OK(ctn_group_norm_new(&m, ctx, 2, 4, NULL));
    assert_int_equal(ctn_params(m).n, 2);
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 4, 5), CTN_SHAPE(2, 4, 5));
    OK(ctn_layer_norm_new(&m, ctx, CTN_SHAPE(4, 5), CTN_OPT(ctn_norm_opt, .no_bias = 1)));
    assert_shape(m, "weight", CTN_SHAPE(4, 5));
    assert_int_equal(ctn_params(m).n, 1);
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 4, 5), CTN_SHAPE(2, 4, 5));
    OK(ctn_embedding_new(&m, ctx, 7, 3, NULL));
    call_once(ctx, m, CTN_I64, CTN_SHAPE(2, 4), CTN_SHAPE(2, 4, 3));
    OK(ctn_embedding_new(&m, ctx, 1, 1, NULL));
    call_once(ctx, m, CTN_I64, CTN_SHAPE(2, 4), CTN_SHAPE(2, 4, 1));
    OK(ctn_dropout_new(&m, ctx, 0.5));
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 4), CTN_SHAPE(2, 4));
    OK(ctn_max_pool_new(&m, ctx, CTN_OPT(ctn_pool_opt, .kernel = {2})));
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 4, 6), CTN_SHAPE(2, 3, 2, 3));
    OK(ctn_avg_pool_new(&m, ctx, CTN_OPT(ctn_pool_opt, .kernel = {3}, .stride = {1})));
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 4, 6), CTN_SHAPE(2, 3, 2, 4));
    OK(ctn_flatten_new(&m, ctx));
    call_once(ctx, m, CTN_F32, CTN_SHAPE(2, 3, 4), CTN_SHAPE(2, 12));
    OK(ctn_flatten_new(&m, ctx));
    call_once(ctx, m, CTN_F32, 0, NULL, CTN_SHAPE(1, 1)); /* a scalar */
    assert_fails(ctn_batch_norm_new(&m, ctx, 0, NULL), CTN_EARG, "0 channels");
    assert_fails(ctn_group_norm_new(&m, ctx, 2, 3, NULL), CTN_EARG, "3 channels in 2 groups");
    static const int64_t ones[CTN_MAX_DIMS + 1] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    assert_fails(ctn_layer_norm_new(&m, ctx, 0, ones, NULL), CTN_EARG, "got 0 dimensions");
    assert_fails(ctn_layer_norm_new(&m, ctx, 1, NULL, NULL), CTN_EARG, "got 1 dimensions");
    assert_fails(ctn_layer_norm_new(&m, ctx, CTN_MAX_DIMS + 1, ones, NULL), CTN_EARG, "1 to 8");
    assert_fails(ctn_embedding_new(&m, ctx, 0, 3, NULL), CTN_EARG, "0 rows");
    assert_fails(ctn_embedding_new(&m, ctx, 3, 0, NULL), CTN_EARG, "3 rows of 0");
    assert_fails(ctn_dropout_new(&m, ctx, 1), CTN_EARG, "rate is 1");
    assert_fails(ctn_max_pool_new(&m, ctx, NULL), CTN_EARG, "kernel is 0");
    assert_null(m);
}

/* ---- refused options and lack of memory ------------------------------------------------------ */

static void test_refusals(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    assert_fails(ctn_zoo_new(&m, ctx, "resnet51", NULL), CTN_ENOTFOUND, "resnet50");
    assert_fails(ctn_zoo_new(&m, ctx, "gpt", CTN_OPT(ctn_zoo_opt, .in_channels = 3)), CTN_EARG,
                 "gpt does not take it");
    assert_fails(ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .depth = 20)), CTN_EARG, "20");
    assert_fails(ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .classes = -1)), CTN_EARG,
                 "classes is -1");
    assert_fails(ctn_zoo_resnet_cifar(&m, ctx, CTN_OPT(ctn_resnet_cifar_opt, .depth = 21)),
                 CTN_EARG, "21");
    assert_fails(ctn_zoo_vgg(&m, ctx, CTN_OPT(ctn_vgg_opt, .depth = 12)), CTN_EARG, "12");
    assert_fails(ctn_zoo_unet(&m, ctx, CTN_OPT(ctn_unet_opt, .depth = 9)), CTN_EARG, "depth 9");
    assert_fails(ctn_zoo_fno(&m, ctx, CTN_OPT(ctn_fno_opt, .spatial = 4)), CTN_EARG,
                 "spatial is 4");
    assert_fails(ctn_zoo_fno(&m, ctx, CTN_OPT(ctn_fno_opt, .modes = {3, -1})), CTN_EARG,
                 "modes is -1");
    assert_fails(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .heads = 3)), CTN_EARG, "3 heads");
    static const ctn_llama_opt llama[] = {
        {sizeof *llama, .layers = -1},
        {sizeof *llama, .heads = -1},
        {sizeof *llama, .heads = 6, .kv_heads = 4},
        {sizeof *llama, .kv_heads = -1},
        {sizeof *llama, .width = 24}, /* 3 for each of 8 heads */
        {sizeof *llama, .width = 7},  /* 0 */
        {sizeof *llama, .head_width = 3},
        {sizeof *llama, .window = -1},
        {sizeof *llama, .rotary_base = -1},
        {sizeof *llama, .eps = -1e-5},
    };
    for (size_t i = 0; i < sizeof llama / sizeof *llama; i++)
        assert_fails(ctn_zoo_llama(&m, ctx, &llama[i]), CTN_EARG,
                     llama[i].layers < 0 ? "expected 1 to 4096"
                     : i < 4             ? "must divide heads"
                                         : "must be even and positive");
    assert_fails(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .heads = 7)), CTN_EARG, "7 heads");
    assert_fails(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .heads = -1)), CTN_EARG, "-1 heads");
    assert_fails(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .layers = -1)), CTN_EARG, "-1 layers");
    assert_fails(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .eps = -1)), CTN_EARG, "eps is -1");
    assert_fails(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .layers = -1)), CTN_EARG, "-1 layers");
    assert_fails(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .dropout = 1)), CTN_EARG,
                 "dropout is 1");
    assert_fails(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .dropout = -0.1)), CTN_EARG, "-0.1");
    assert_fails(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .classes = -1)), CTN_EARG,
                 "classes is -1");
    assert_fails(ctn_zoo_vit(&m, ctx, CTN_OPT(ctn_vit_opt, .image = 8)), CTN_EARG, "patches of 16");
    assert_fails(ctn_zoo_seq2seq(&m, ctx,
                                 CTN_OPT(ctn_seq2seq_opt, .hidden = 3, .bidirectional = 1)),
                 CTN_EARG, "hidden is 3");
    assert_fails(ctn_zoo_mlp(&m, ctx, CTN_OPT(ctn_mlp_opt, .n = 1)), CTN_EARG, "1 sizes");
    assert_null(m);

    static const float x[2 * 12];
    OK(ctn_zoo_unet(&m, ctx, CTN_OPT(ctn_unet_opt, .spatial = 1, .depth = 3, .width = 2)));
    OK(ctn_scope_begin(ctx));
    assert_null(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 1, 12))));
    assert_fails(ctn_error_status(), CTN_ESHAPE, "not a multiple of 8");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
    ctn_module_free(m);
    OK(ctn_zoo_fno(&m, ctx, CTN_OPT(ctn_fno_opt, .spatial = 1)));
    OK(ctn_scope_begin(ctx));
    assert_null(ctn_call(m, ctn_input(ctx, x, CTN_F32, CTN_SHAPE(2, 1, 12))));
    assert_fails(ctn_error_status(), CTN_ESHAPE, "too few points along dimension 2 for 12 modes");
    (void)ctn_scope_end(ctx);
    ctn_error_clear();
    ctn_module_free(m);
}

static failing_once memory;

static ctn_status build(int which)
{
    ctn_status st = CTN_OK;
    ctn_context *ctx = NULL;
    ctn_module *m = NULL;
    CTN_TRY(ctn_context_new(&ctx, CTN_OPT(ctn_context_opt, .threads = 1)));
    switch (which) {
    case 0: st = ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .depth = 18, .width = 1)); break;
    case 1: st = ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .width = 4, .layers = 1)); break;
    case 2: st = ctn_zoo_unet(&m, ctx, CTN_OPT(ctn_unet_opt, .width = 1, .depth = 1)); break;
    case 3: st = ctn_zoo_lenet5(&m, ctx, NULL); break;
    case 4: st = ctn_zoo_new(&m, ctx, "nothing", NULL); break;
    case 5:
        st = ctn_zoo_bert(&m, ctx,
                          CTN_OPT(ctn_bert_opt, .vocabulary = 5, .width = 4, .layers = 1,
                                  .heads = 1));
        break;
    case 6:
        st = ctn_zoo_vit(&m, ctx,
                         CTN_OPT(ctn_vit_opt, .image = 4, .patch = 2, .width = 4, .layers = 1,
                                 .heads = 1));
        break;
    case 7:
        st = ctn_zoo_seq2seq(&m, ctx,
                             CTN_OPT(ctn_seq2seq_opt, .vocabulary = 3, .width = 2, .hidden = 2));
        break;
    default: st = ctn_max_pool_new(&m, ctx, CTN_OPT(ctn_pool_opt, .kernel = {2})); break;
    }
    if (st < 0) assert_null(m);
    ctn_module_free(m);
    ctn_context_free(ctx);
    return st;
}

static void test_failing_allocator(void **state)
{
    (void)state;
    OK(ctn_set_allocator(&(ctn_allocator){failing_once_alloc, failing_once_release, &memory}));
    for (int which = 0; which < 9; which++) {
        const ctn_status whole = which == 4 ? CTN_ENOTFOUND : CTN_OK;
        ctn_status st = CTN_ENOMEM;
        for (memory.fail_at = 1; st == CTN_ENOMEM; memory.fail_at++) {
            memory.calls = 0;
            st = build(which);
            if (memory.live != 0)
                fail_msg("network %d: %ld left after failure %ld", which, memory.live,
                         memory.fail_at);
            if (st != CTN_ENOMEM && st != whole) fail_msg("%s", ctn_error_message());
            ctn_error_clear();
        }
        assert_int_equal(st, whole);
        assert_true(memory.fail_at > 3);
    }
    OK(ctn_set_allocator(NULL));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- a loss inside the network -------------------------------------------------------------- */

enum { WORDS = 11, WIDTH = 16 };

/* The loss of a small GPT or BERT, with logits or without; the gradients of its tied matrix and, of
 * BERT, of the bias of the logits. */
static double loss_of(ctn_context *ctx, ctn_module *m, ctn_optim *o, bool bert, bool inside,
                      float *grad)
{
    static const int64_t x[2][5] = {{1, 2, 3, 4, 5}, {9, 8, 7, 6, 10}};
    static const int64_t t[2][5] = {{2, 3, 4, 5, 0}, {8, -100, 6, 10, 1}};
    const char *matrix = bert ? "bert.embeddings.word_embeddings.weight" : "wte.weight";
    OK(ctn_scope_begin(ctx));
    ctn_tensor *in = ctn_input(ctx, x, CTN_I64, CTN_SHAPE(2, 5));
    ctn_tensor *target = ctn_input(ctx, t, CTN_I64, CTN_SHAPE(2, 5));
    ctn_tensor *y = !inside ? ctn_softmax_cross_entropy(ctn_call(m, in), target)
                    : bert  ? ctn_call_multi(m, in, NULL, NULL, target).t[0]
                            : ctn_call_multi(m, in, target).t[0];
    OK(ctn_backward(o, y));
    OK(ctn_var_grad(ctn_module_find(m, matrix), grad, WORDS * WIDTH * sizeof *grad));
    if (bert)
        OK(ctn_var_grad(ctn_module_find(m, "cls.predictions.bias"), grad + WORDS * WIDTH,
                        WORDS * sizeof *grad));
    const double loss = ctn_item(y);
    OK(ctn_optim_step(o));
    OK(ctn_scope_end(ctx));
    return loss;
}

static void test_loss_inside(void **state)
{
    ctn_context *ctx = *state;
    for (int bert = 0; bert < 2; bert++) {
        ctn_module *m = NULL;
        ctn_optim *o = NULL;
        float grad[2][WORDS * WIDTH + WORDS] = {{0}};
        double loss[2];
        if (bert)
            OK(ctn_zoo_bert(&m, ctx,
                            CTN_OPT(ctn_bert_opt, .vocabulary = WORDS, .block = 8, .width = WIDTH,
                                    .layers = 2, .heads = 2)));
        else
            OK(ctn_zoo_gpt(&m, ctx,
                           CTN_OPT(ctn_gpt_opt, .vocabulary = WORDS, .block = 8, .width = WIDTH,
                                   .layers = 2)));
        OK(ctn_sgd_new(&o, ctn_params(m), CTN_OPT(ctn_sgd_opt, .lr = 1e-30)));
        for (int i = 0; i < 2; i++) loss[i] = loss_of(ctx, m, o, bert, i == 1, grad[i]);
        assert_true(fabs(loss[0] - loss[1]) < 1e-6);
        for (int i = 0; i < WORDS * WIDTH + WORDS; i++)
            assert_true(fabsf(grad[0][i] - grad[1][i]) < 1e-6f);
        ctn_optim_free(o);
        ctn_module_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_allocator), /* must run before anything else allocates */
        TEST(test_loss_inside),
        TEST(test_known),
        TEST(test_names),
        TEST(test_every_name),
        TEST(test_train_resnet),
        TEST(test_googlenet),
        TEST(test_inception),
        TEST(test_train_others),
        TEST(test_masked_loss),
        TEST(test_conv_modules),
        TEST(test_other_modules),
        TEST(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
