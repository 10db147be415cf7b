/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks by name: the only table of the zoo. A new network is one line in it.
 */
#include "nn/zoo/zoo.h"

/* name, function below, depth if the family has one */
#define ZOO_TABLE(X)                        \
    X("bert", make_bert, 0)                 \
    X("fno", make_fno, 0)                   \
    X("googlenet", make_googlenet, 0)       \
    X("gpt", make_gpt, 0)                   \
    X("gpt2", make_gpt, 12)                 \
    X("lenet5", make_lenet5, 0)             \
    X("mlp", make_mlp, 0)                   \
    X("mobilenet_v2", make_mobilenet_v2, 0) \
    X("resnet18", make_resnet, 18)          \
    X("resnet34", make_resnet, 34)          \
    X("resnet50", make_resnet, 50)          \
    X("resnet101", make_resnet, 101)        \
    X("resnet152", make_resnet, 152)        \
    X("resnet20_cifar", make_cifar, 20)     \
    X("resnet32_cifar", make_cifar, 32)     \
    X("resnet44_cifar", make_cifar, 44)     \
    X("resnet56_cifar", make_cifar, 56)     \
    X("unet", make_unet, 0)                 \
    X("vgg11", make_vgg, 11)                \
    X("vgg13", make_vgg, 13)                \
    X("vgg16", make_vgg, 16)                \
    X("vgg19", make_vgg, 19)                \
    X("vit", make_vit, 0)

typedef ctn_status (*make_fn)(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o);

static ctn_status no_channels(const char *name, const ctn_zoo_opt *o)
{
    if (o->in_channels == 0) return CTN_OK;
    return ctn_fail(CTN_EARG, "zoo_new: in_channels is %lld, but %s does not take it",
                    (long long)o->in_channels, name);
}

static ctn_status make_bert(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    (void)depth;
    CTN_TRY(no_channels("bert", o));
    return ctn_zoo_bert(m, ctx, CTN_OPT(ctn_bert_opt, .vocabulary = o->classes));
}

static ctn_status make_fno(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    (void)depth;
    return ctn_zoo_fno(m, ctx,
                       CTN_OPT(ctn_fno_opt, .in_channels = o->in_channels,
                               .out_channels = o->classes));
}

static ctn_status make_googlenet(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    (void)depth;
    return ctn_zoo_googlenet(m, ctx,
                             CTN_OPT(ctn_googlenet_opt, .classes = o->classes,
                                     .in_channels = o->in_channels));
}

static ctn_status make_gpt(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    CTN_TRY(no_channels("gpt", o));
    if (depth == 0) return ctn_zoo_gpt(m, ctx, CTN_OPT(ctn_gpt_opt, .vocabulary = o->classes));
    return ctn_zoo_gpt(m, ctx,
                       CTN_OPT(ctn_gpt_opt, .vocabulary = o->classes ? o->classes : 50257,
                               .block = 1024, .width = 64 * depth, .layers = depth,
                               .heads = depth));
}

static ctn_status make_lenet5(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    (void)depth;
    return ctn_zoo_lenet5(m, ctx,
                          CTN_OPT(ctn_lenet5_opt, .classes = o->classes,
                                  .in_channels = o->in_channels));
}

static ctn_status make_mlp(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    (void)depth;
    const int64_t size[] = {o->in_channels ? o->in_channels : 784, 1000, 1000,
                            o->classes ? o->classes : 10};
    return ctn_zoo_mlp(m, ctx, CTN_OPT(ctn_mlp_opt, .n = 4, .size = size));
}

static ctn_status make_mobilenet_v2(ctn_module **m, ctn_context *ctx, int depth,
                                    const ctn_zoo_opt *o)
{
    (void)depth;
    return ctn_zoo_mobilenet_v2(m, ctx,
                                CTN_OPT(ctn_mobilenet_v2_opt, .classes = o->classes,
                                        .in_channels = o->in_channels));
}

static ctn_status make_resnet(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    return ctn_zoo_resnet(m, ctx,
                          CTN_OPT(ctn_resnet_opt, .depth = depth, .classes = o->classes,
                                  .in_channels = o->in_channels));
}

static ctn_status make_cifar(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    return ctn_zoo_resnet_cifar(m, ctx,
                                CTN_OPT(ctn_resnet_cifar_opt, .depth = depth, .classes = o->classes,
                                        .in_channels = o->in_channels));
}

static ctn_status make_unet(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    (void)depth;
    return ctn_zoo_unet(m, ctx,
                        CTN_OPT(ctn_unet_opt, .in_channels = o->in_channels,
                                .out_channels = o->classes));
}

static ctn_status make_vgg(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    return ctn_zoo_vgg(m, ctx,
                       CTN_OPT(ctn_vgg_opt, .depth = depth, .classes = o->classes,
                               .in_channels = o->in_channels));
}

static ctn_status make_vit(ctn_module **m, ctn_context *ctx, int depth, const ctn_zoo_opt *o)
{
    (void)depth;
    return ctn_zoo_vit(m, ctx,
                       CTN_OPT(ctn_vit_opt, .classes = o->classes, .in_channels = o->in_channels));
}

#define NAME(name, make, depth) name,
static const char *const names[] = {ZOO_TABLE(NAME) NULL};
#undef NAME

#define ROW(name, make, depth) {make, depth},
static const struct {
    make_fn make;
    int depth;
} rows[] = {ZOO_TABLE(ROW)};
#undef ROW

const char *const *ctn_zoo_names(void)
{
    return names;
}

ctn_status ctn_zoo_new(ctn_module **m, ctn_context *ctx, const char *name, const ctn_zoo_opt *opt)
{
    ctn_zoo_opt o;
    if (!m || !name) return ctn_fail(CTN_EARG, "zoo_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("zoo_new", &o, sizeof o, opt));
    for (size_t i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0) return rows[i].make(m, ctx, rows[i].depth, &o);
    ctn__text all = {0};
    for (size_t i = 0; names[i]; i++) ctn__text_add(&all, " %s", names[i]);
    ctn_status st =
        all.failed
            ? CTN_ENOMEM
            : ctn_fail(CTN_ENOTFOUND, "zoo_new: no network '%s'; known networks:%s", name, all.s);
    ctn__text_free(&all);
    return st;
}
