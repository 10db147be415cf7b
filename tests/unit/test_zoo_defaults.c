/* SPDX-License-Identifier: Apache-2.0
 *
 * What networks of the zoo have if options leave it open: sizes of BERT, ViT and Llama, the eps of
 * normalisations, the maximum length, and initial values.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

/* ---- sizes, eps and the maximum length ------------------------------------------------------- */

/* Sizes that are not given. test_zoo.c has those of smaller networks. */
static void test_default_sizes(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    /* width C: word and position embeddings, types, norm; 12 layers; bias, transform with norm */
    OK(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .vocabulary = 11, .width = 24)));
    const int64_t C = 24, layer = 4 * (C * C + C) + 2 * 4 * C * C + 4 * C + C + 4 * C;
    assert_int_equal(parameters(m), (11 + 512 + 2 + 2) * C + 12 * layer + 11 + (C * C + C) + 2 * C);
    ctn_module_free(m);
    OK(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .vocabulary = 2, .layers = 1, .hidden = 3)));
    assert_shape(m, "bert.embeddings.word_embeddings.weight", CTN_SHAPE(2, 768));
    assert_shape(m, "bert.encoder.layer.0.intermediate.dense.weight", CTN_SHAPE(3, 768));
    assert_shape(m, "cls.predictions.transform.LayerNorm.bias", CTN_SHAPE(768));
    ctn_module_free(m);
    /* class token, positions, patches; layers; norm; classifier */
    OK(ctn_zoo_vit(&m, ctx, CTN_OPT(ctn_vit_opt, .width = 24)));
    assert_int_equal(parameters(m), (1 + 197) * C + (3 * 16 * 16 * C + C) + 12 * layer + 2 * C +
                                        (1000 * C + 1000));
    ctn_module_free(m);
    OK(ctn_zoo_vit(&m, ctx, CTN_OPT(ctn_vit_opt, .layers = 1, .classes = 2, .hidden = 3)));
    assert_shape(m, "vit.embeddings.patch_embeddings.projection.weight", CTN_SHAPE(768, 3, 16, 16));
    assert_shape(m, "vit.layernorm.weight", CTN_SHAPE(768));
    assert_shape(m, "classifier.weight", CTN_SHAPE(2, 768));
    ctn_module_free(m);
    OK(ctn_zoo_vit(&m, ctx, /* one patch, and a rest that is left over */
                   CTN_OPT(ctn_vit_opt, .width = 24, .image = 17, .layers = 1)));
    assert_shape(m, "vit.embeddings.position_embeddings", CTN_SHAPE(1, 2, 24));
    ctn_module_free(m);
    /* Llama: 8 layers of 8 heads */
    OK(ctn_zoo_llama(&m, ctx, CTN_OPT(ctn_llama_opt, .width = 16)));
    assert_int_equal(parameters(m), 32000 * 16 + 8 * (4 * 16 * 16 + 3 * 16 * 64 + 2 * 16) + 16);
    ctn_module_free(m);
    OK(ctn_zoo_llama(&m, ctx, CTN_OPT(ctn_llama_opt, .vocabulary = 3, .layers = 1, .kv_heads = 2)));
    assert_shape(m, "model.embed_tokens.weight", CTN_SHAPE(3, 512));
    assert_shape(m, "model.layers.0.mlp.up_proj.weight", CTN_SHAPE(1408, 512)); /* 22 * 64 */
    assert_shape(m, "model.layers.0.self_attn.q_proj.weight", CTN_SHAPE(512, 512));
    assert_shape(m, "model.layers.0.self_attn.k_proj.weight", CTN_SHAPE(128, 512));
    ctn_module_free(m);
}

static void set_all(ctn_module *m, const char *name, const float *values)
{
    ctn_var *v = ctn_module_find(m, name);
    if (!v) fail_msg("%s", ctn_error_message());
    OK(ctn_var_set(v, values, (size_t)ctn__count(ctn_var_desc(v)) * sizeof *values));
}

static const float identity[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

/* All matrices and biases are 0, and the scales of normalisations stay 1. */
static void set_zero(ctn_module *m)
{
    const ctn_vars p = ctn_params(m);
    for (int i = 0; i < p.n; i++)
        if (ctn_var_desc(p.var[i])->ndim > 1)
            OK(ctn_var_init(p.var[i], CTN_OPT(ctn_init, .kind = CTN_INIT_CONSTANT)));
}

static void assert_row(ctn_context *ctx, ctn_module *m, ctn_dtype dtype, int ndim,
                       const int64_t *dims, const double *want)
{
    static const double zeros[64];
    float y[4];
    OK(ctn_scope_begin(ctx));
    ctn_tensor *t = ctn_call(m, ctn_input(ctx, zeros, dtype, ndim, dims));
    if (!t) fail_msg("%s", ctn_error_message());
    OK(ctn_read(t, y, sizeof y));
    OK(ctn_scope_end(ctx));
    for (int i = 0; i < 4; i++)
        if (!(fabs((double)y[i] - want[i]) < 1e-5))
            fail_msg("number %d is %g, expected %g", i, (double)y[i], want[i]);
    ctn_module_free(m);
}

/* (x - mean) / sqrt(variance + eps) of 4 numbers */
static void normalise(double *x, double eps)
{
    double mean = 0, var = 0;
    for (int i = 0; i < 4; i++) mean += x[i] / 4;
    for (int i = 0; i < 4; i++) var += (x[i] - mean) * (x[i] - mean) / 4;
    for (int i = 0; i < 4; i++) x[i] = (x[i] - mean) / sqrt(var + eps);
}

/* The eps of normalisations decides over numbers as small as its square root. */
static void test_default_eps(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    const float row[4] = {1e-6f, -1e-6f, 2e-6f, 0}, bias[4] = {1, 1, -1, 0};
    double want[4];
    for (int i = 0; i < 4; i++) want[i] = (double)row[i];
    normalise(want, 1e-12);
    OK(ctn_zoo_vit(&m, ctx,
                   CTN_OPT(ctn_vit_opt, .image = 2, .patch = 1, .width = 4, .layers = 1, .heads = 2,
                           .in_channels = 1, .classes = 4)));
    set_zero(m);
    set_all(m, "vit.embeddings.cls_token", row);
    set_all(m, "classifier.weight", identity);
    assert_row(ctx, m, CTN_F32, CTN_SHAPE(1, 1, 2, 2), want);

    OK(ctn_zoo_bert(&m, ctx,
                    CTN_OPT(ctn_bert_opt, .vocabulary = 1, .block = 3, .width = 4, .layers = 1,
                            .heads = 1, .classes = 4)));
    set_zero(m);
    set_all(m, "bert.embeddings.word_embeddings.weight", row);
    set_all(m, "bert.encoder.layer.0.attention.output.dense.bias", bias);
    set_all(m, "bert.pooler.dense.weight", identity);
    set_all(m, "classifier.weight", identity);
    for (int i = 0; i < 4; i++) want[i] += (double)bias[i];
    normalise(want, 1e-12);
    for (int i = 0; i < 4; i++) want[i] = tanh(want[i]);
    assert_row(ctx, m, CTN_I64, CTN_SHAPE(1, 3), want);

    /* RMS normalisation has no mean. The logits are products with rows of the embedding. */
    const float words[16] = {1e-3f, -1e-3f, 2e-3f, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0};
    const double root = sqrt(6e-6 / 4 + 1e-5);
    OK(ctn_zoo_llama(&m, ctx,
                     CTN_OPT(ctn_llama_opt, .vocabulary = 4, .width = 4, .layers = 1, .heads = 2)));
    set_zero(m);
    set_all(m, "model.embed_tokens.weight", words);
    const double logits[4] = {6e-6 / root, -1e-3 / root, 2e-3 / root, 1e-3 / root};
    assert_row(ctx, m, CTN_I64, CTN_SHAPE(1, 1), logits);
}

/* Sequences of up to `block` tokens, in two dimensions. */
static void test_block(void **state)
{
    ctn_context *ctx = *state;
    static const int64_t x[8];
    for (int which = 0; which < 3; which++) {
        ctn_module *m = NULL;
        const char *const name[] = {"gpt", "llama", "bert"};
        if (which == 0)
            OK(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .vocabulary = 3, .width = 8, .block = 4)));
        else if (which == 1)
            OK(ctn_zoo_llama(&m, ctx,
                             CTN_OPT(ctn_llama_opt, .vocabulary = 3, .width = 16, .block = 4)));
        else
            OK(ctn_zoo_bert(&m, ctx,
                            CTN_OPT(ctn_bert_opt, .vocabulary = 3, .width = 12, .block = 4)));
        OK(ctn_scope_begin(ctx));
        assert_non_null(ctn_call(m, ctn_input(ctx, x, CTN_I64, CTN_SHAPE(1, 4))));
        assert_null(ctn_call(m, ctn_input(ctx, x, CTN_I64, CTN_SHAPE(1, 5))));
        assert_fails(ctn_error_status(), CTN_ESHAPE, "T at most 4");
        assert_null(ctn_call(m, ctn_input(ctx, x, CTN_I64, CTN_SHAPE(4))));
        assert_fails(ctn_error_status(), CTN_ESHAPE, name[which]);
        OK(ctn_scope_end(ctx));
        ctn_module_free(m);
    }
}

/* ---- initial values -------------------------------------------------------------------------- */

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

/* The values have mean 0 and this standard deviation, up to 5 standard errors; 0: all are 0. */
static void assert_deviation(ctn_module *m, const char *name, double want)
{
    ctn_var *v = ctn_module_find(m, name);
    if (!v) fail_msg("%s", ctn_error_message());
    const int64_t n = ctn__count(ctn_var_desc(v));
    const float *x = v->data;
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++) mean += (double)x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) square += (double)(x[i] * x[i]) / (double)n;
    if (fabs(sqrt(square) - want) > 5 * want / sqrt(2 * (double)n) ||
        fabs(mean) > 5 * want / sqrt((double)n))
        fail_msg("%s: %d values of mean %g and deviation %g, expected 0 and %g", name, (int)n, mean,
                 sqrt(square), want);
}

/* As in torchvision and Hugging Face. */
static void test_initial_values(void **state)
{
    ctn_context *ctx = *state;
    ctn_module *m = NULL;
    OK(ctn_zoo_resnet(&m, ctx, CTN_OPT(ctn_resnet_opt, .depth = 18, .width = 16, .classes = 50)));
    assert_deviation(m, "conv1.weight", sqrt(2.0 / (16 * 7 * 7)));
    assert_deviation(m, "layer2.0.conv1.weight", sqrt(2.0 / (32 * 3 * 3)));
    assert_deviation(m, "layer4.0.downsample.0.weight", sqrt(2.0 / 128));
    assert_bound(m, "fc.weight", 1 / sqrt(128));
    ctn_module_free(m);
    OK(ctn_zoo_resnet_cifar(&m, ctx, CTN_OPT(ctn_resnet_cifar_opt, .classes = 50)));
    assert_deviation(m, "layer3.0.conv1.weight", sqrt(2.0 / (32 * 3 * 3)));
    assert_deviation(m, "linear.weight", sqrt(2.0 / 64));
    ctn_module_free(m);
    OK(ctn_zoo_mobilenet_v2(&m, ctx, CTN_OPT(ctn_mobilenet_v2_opt, .width = 0.5, .classes = 20)));
    assert_deviation(m, "features.17.conv.1.0.weight", sqrt(2.0 / (480 * 3 * 3)));
    assert_deviation(m, "features.17.conv.2.weight", sqrt(2.0 / 160));
    assert_deviation(m, "classifier.1.weight", 0.01);
    assert_deviation(m, "classifier.1.bias", 0);
    ctn_module_free(m);
    OK(ctn_inception_new(&m, ctx, 99,
                         CTN_OPT(ctn_inception_opt, .out1 = 9, .reduce3 = 9, .out3 = 9,
                                 .reduce5 = 9, .out5 = 9, .pool = 9, .batch_norm = 1)));
    assert_deviation(m, "branch3.1.conv.weight", 0.01);
    ctn_module_free(m);
    OK(ctn_zoo_googlenet(&m, ctx, CTN_OPT(ctn_googlenet_opt, .no_aux = 1)));
    assert_deviation(m, "conv3.conv.weight", sqrt(1.0 / (64 * 3 * 3)));
    assert_deviation(m, "conv3.conv.bias", 0);
    assert_deviation(m, "fc.weight", sqrt(1.0 / 1024));
    ctn_module_free(m);
    OK(ctn_zoo_gpt(&m, ctx, CTN_OPT(ctn_gpt_opt, .width = 64, .layers = 2, .untied = 1)));
    assert_deviation(m, "wte.weight", 0.02);
    assert_deviation(m, "wpe.weight", 0.02);
    assert_deviation(m, "lm_head.weight", 0.02);
    assert_deviation(m, "h.1.attn.c_attn.weight", 0.02);
    assert_deviation(m, "h.1.attn.c_proj.weight", 0.01);
    assert_deviation(m, "h.1.mlp.c_fc.weight", 0.02);
    assert_deviation(m, "h.1.mlp.c_proj.weight", 0.01);
    assert_deviation(m, "h.1.mlp.c_proj.bias", 0);
    ctn_module_free(m);
    OK(ctn_zoo_llama(&m, ctx, CTN_OPT(ctn_llama_opt, .vocabulary = 50, .width = 64, .layers = 1)));
    assert_deviation(m, "model.embed_tokens.weight", 0.02);
    assert_deviation(m, "model.layers.0.self_attn.o_proj.weight", 0.02);
    assert_deviation(m, "model.layers.0.mlp.down_proj.weight", 0.02);
    ctn_module_free(m);
    OK(ctn_zoo_bert(&m, ctx, CTN_OPT(ctn_bert_opt, .vocabulary = 50, .width = 60, .layers = 1)));
    assert_deviation(m, "bert.embeddings.word_embeddings.weight", 0.02);
    assert_deviation(m, "bert.embeddings.position_embeddings.weight", 0.02);
    assert_deviation(m, "bert.embeddings.token_type_embeddings.weight", 0.02);
    assert_deviation(m, "bert.encoder.layer.0.output.dense.weight", 0.02);
    assert_deviation(m, "bert.encoder.layer.0.output.dense.bias", 0);
    assert_deviation(m, "cls.predictions.bias", 0);
    ctn_module_free(m);
    OK(ctn_zoo_vit(&m, ctx, CTN_OPT(ctn_vit_opt, .width = 60, .layers = 1)));
    assert_deviation(m, "vit.embeddings.cls_token", 0.02);
    assert_deviation(m, "vit.embeddings.position_embeddings", 0.02);
    assert_deviation(m, "vit.embeddings.patch_embeddings.projection.weight", 0.02);
    assert_deviation(m, "vit.embeddings.patch_embeddings.projection.bias", 0);
    assert_deviation(m, "classifier.weight", 0.02);
    ctn_module_free(m);
    OK(ctn_zoo_fno(&m, ctx, NULL));
    assert_bound(m, "fc0.weight", 1 / sqrt(3));
    assert_bound(m, "w0.weight", 1 / sqrt(32));
    assert_bound(m, "fc1.bias", 1 / sqrt(32));
    ctn_module_free(m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_default_sizes),
        TEST(test_default_eps),
        TEST(test_block),
        TEST(test_initial_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
