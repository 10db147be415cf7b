/* SPDX-License-Identifier: Apache-2.0
 *
 * Every network of the zoo in a small form, with its random ops and with synchronised batch
 * normalisation, has the same losses on several ranks as on one. Networks with layers that cannot
 * be made small are in test_dist_zoo_long.c.
 */
#include "zoo_ranks.h"

/* ---- the networks ---------------------------------------------------------------------------- */

static ctn_status mlp(ctn_module **m, ctn_context *ctx)
{
    static const int64_t size[] = {6, 9, CLASSES};
    return ctn_zoo_mlp(m, ctx, CTN_OPT(ctn_mlp_opt, .n = 3, .size = size));
}
static ctn_status lenet5(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_lenet5(m, ctx, CTN_OPT(ctn_lenet5_opt, .classes = CLASSES));
}
static ctn_status resnet(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_resnet(m, ctx,
                          CTN_OPT(ctn_resnet_opt, .depth = 18, .classes = CLASSES, .width = 4));
}
static ctn_status cifar(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_resnet_cifar(m, ctx,
                                CTN_OPT(ctn_resnet_cifar_opt, .depth = 8, .classes = CLASSES,
                                        .width = 4));
}
static ctn_status mobilenet(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_mobilenet_v2(m, ctx,
                                CTN_OPT(ctn_mobilenet_v2_opt, .classes = CLASSES, .width = 0.1));
}
static ctn_status unet(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_unet(m, ctx, CTN_OPT(ctn_unet_opt, .width = 4, .depth = 2));
}
static ctn_status fno(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_fno(m, ctx,
                       CTN_OPT(ctn_fno_opt, .width = 4, .modes = {3}, .layers = 2, .hidden = 8));
}
static ctn_status gpt(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_gpt(m, ctx,
                       CTN_OPT(ctn_gpt_opt, .vocabulary = WORDS, .block = TOKENS, .width = 16,
                               .layers = 2, .heads = 2, .dropout = 0.2));
}
static ctn_status llama(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_llama(m, ctx,
                         CTN_OPT(ctn_llama_opt, .vocabulary = WORDS, .block = TOKENS, .width = 16,
                                 .hidden = 24, .layers = 2, .heads = 2));
}
static ctn_status bert(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_bert(m, ctx,
                        CTN_OPT(ctn_bert_opt, .vocabulary = WORDS, .block = TOKENS, .width = 16,
                                .hidden = 24, .layers = 2, .heads = 2));
}
static ctn_status vit(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_vit(m, ctx,
                       CTN_OPT(ctn_vit_opt, .classes = CLASSES, .image = 16, .patch = 8,
                               .width = 16, .hidden = 24, .layers = 2, .heads = 2));
}
static ctn_status seq2seq(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_seq2seq(m, ctx,
                           CTN_OPT(ctn_seq2seq_opt, .vocabulary = WORDS, .width = 8, .hidden = 8,
                                   .layers = 2, .bidirectional = 1, .dropout = 0.3));
}
static ctn_status gcn(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_gcn(m, ctx, CTN_OPT(ctn_gcn_opt, .in_channels = 6, .classes = CLASSES));
}
static ctn_status gat(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_gat(m, ctx,
                       CTN_OPT(ctn_gat_opt, .in_channels = 6, .classes = CLASSES, .heads = 2));
}
static ctn_status meshgraphnet(ctn_module **m, ctn_context *ctx)
{
    return ctn_zoo_meshgraphnet(m, ctx,
                                CTN_OPT(ctn_meshgraphnet_opt, .node_in = 6, .edge_in = 6,
                                        .out = CLASSES, .hidden = 8, .steps = 2));
}

static const network networks[] = {
    {"mlp", mlp, IMAGES, FLOATS(1, 6), 0.1, false},
    {"lenet5", lenet5, IMAGES, FLOATS(3, 1, 28, 28), 0.02, false},
    {"resnet18", resnet, IMAGES, FLOATS(3, 3, 16, 16), 0.01, true},
    {"resnet_cifar", cifar, IMAGES, FLOATS(3, 3, 8, 8), 0.01, true},
    {"mobilenet_v2", mobilenet, IMAGES, FLOATS(3, 3, 32, 32), 0.001, true},
    {"vit", vit, IMAGES, FLOATS(3, 3, 16, 16), 0.02, false},
    {"unet", unet, FIELDS, FLOATS(3, 1, 8, 8), 0.01, true},
    {"fno", fno, FIELDS, FLOATS(3, 1, 8, 8), 0.01, false},
    {"gpt", gpt, TEXT, WORDS_OF(TOKENS), 0.02, false},
    {"llama", llama, TEXT, WORDS_OF(TOKENS), 0.02, false},
    {"bert", bert, MASKED, WORDS_OF(TOKENS), 0.02, false},
    {"seq2seq", seq2seq, PAIRS, WORDS_OF(TOKENS), 0.1, false},
    {"gcn", gcn, GRAPHS, FLOATS(2, NODES, 6), 0.1, false},
    {"gat", gat, GRAPHS, FLOATS(2, NODES, 6), 0.1, false},
    {"meshgraphnet", meshgraphnet, MESHES, FLOATS(2, NODES, 6), 0.02, false},
};

static void all(void **state)
{
    (void)state;
    compare_all(sizeof networks / sizeof *networks, networks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
