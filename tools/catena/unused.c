/* SPDX-License-Identifier: Apache-2.0
 *
 * Warns about options on the command line that have no effect with this data, network, schedule
 * or number of ranks.
 */
#include <string.h>

#include "task.h"

static bool arrays(const task *t)
{
    return t->kind == DATA_ARRAYS;
}

static bool tables(const task *t)
{
    return t->kind == DATA_TABLE;
}

static bool targets(const task *t)
{
    return arrays(t) || tables(t);
}

static bool images(const task *t)
{
    return is_small(t->kind) || t->kind == DATA_FOLDER || t->kind == DATA_SHARDS ||
           t->kind == DATA_IMAGES || t->kind == DATA_LIST || t->kind == DATA_MASKS;
}

static bool several_sizes(const task *t)
{
    return args_text(t->a, "image-sizes")[0] != 0;
}

static bool files_of_images(const task *t)
{
    return images(t) && !is_small(t->kind);
}

static bool shards(const task *t)
{
    return t->kind == DATA_SHARDS;
}

static bool tokens(const task *t)
{
    return t->kind == DATA_TOKENS;
}

static bool classes(const task *t)
{
    return t->classify;
}

static bool is_zoo(const task *t, const char *name)
{
    return t->zoo && strcmp(t->zoo, name) == 0;
}

static bool mlp(const task *t)
{
    return is_zoo(t, "mlp");
}

static bool fno(const task *t)
{
    return is_zoo(t, "fno");
}

static bool fields(const task *t)
{
    return is_zoo(t, "unet") || fno(t);
}

static bool gpt_bert(const task *t)
{
    return is_zoo(t, "gpt") || is_zoo(t, "bert");
}

static bool sized(const task *t)
{
    return fields(t) || gpt_bert(t);
}

static bool masked(const task *t)
{
    return t->masked;
}

static bool encoded(const task *t)
{
    return t->tokenizer != NULL;
}

static bool own(const task *t)
{
    return t->own != NULL;
}

static bool sgd(const task *t)
{
    return args_is(t->a, "optimizer", "sgd");
}

static bool moves(const task *t)
{
    return sgd(t) || args_is(t->a, "optimizer", "lars");
}

static bool ranks(const task *t)
{
    return t->a->job->comm != NULL;
}

static bool validation(const task *t)
{
    return t->set[1] != NULL;
}

static bool evaluated(const task *t)
{
    return t->use == FOR_EVALUATION || validation(t);
}

static bool any_of(const task *t, const char *names)
{
    char word[32];
    snprintf(word, sizeof word, " %.28s ", args_text(t->a, "schedule"));
    return strstr(names, word) != NULL;
}

static bool sched_step(const task *t)
{
    return any_of(t, " step ");
}

static bool sched_multistep(const task *t)
{
    return any_of(t, " multistep ");
}

static bool sched_gamma(const task *t)
{
    return any_of(t, " step multistep plateau exponential inverse ");
}

static bool sched_power(const task *t)
{
    return any_of(t, " polynomial inverse ");
}

static bool sched_end(const task *t)
{
    return any_of(t, " linear cosine polynomial ");
}

static bool sched_plateau(const task *t)
{
    return any_of(t, " plateau ");
}

static const struct {
    const char *option;
    bool (*works)(const task *t);
    const char *otherwise;
} uses[] = {
    {"target", targets, "only arrays and tables have targets to choose"},
    {"val-target", targets, "only arrays and tables have targets to choose"},
    {"standardize", targets, "only arrays and tables are standardised"},
    {"inputs", tables, "only tables have columns"},
    {"no-header", tables, "only tables have columns"},
    {"separator", tables, "only tables have cells"},
    {"fill", targets, "only tables and arrays have missing values"},
    {"size", images, "this data has no images to decode"},
    {"size-every", several_sizes, "there are no --image-sizes"},
    {"mean", images, "this data has no images to decode"},
    {"std", images, "this data has no images to decode"},
    {"augment", images, "this data has no images to decode"},
    {"jitter", images, "this data has no images to decode"},
    {"randaugment", images, "this data has no images to decode"},
    {"magnitude", images, "this data has no images to decode"},
    {"skip", files_of_images, "this data has no image files"},
    {"stage", shards, "this data is not stored in tar shards"},
    {"length", tokens, "this data has no tokens"},
    {"token-bytes", tokens, "this data has no tokens"},
    {"tokenizer", tokens, "this data has no tokens"},
    {"keep-case", encoded, "there is no tokenizer"},
    {"mask-share", masked, "only bert predicts hidden words"},
    {"mixup", classes, "the targets are not classes"},
    {"cutmix", classes, "the targets are not classes"},
    {"smoothing", classes, "the targets are not classes"},
    {"activation", mlp, "only mlp has it"},
    {"dropout", mlp, "only mlp has it"},
    {"hidden", mlp, "only mlp has configurable hidden layers"},
    {"width", sized, "only unet, fno, gpt and bert have a configurable width"},
    {"depth", sized, "only unet, fno, gpt and bert have a configurable depth"},
    {"heads", gpt_bert, "only gpt and bert have a configurable number of heads"},
    {"modes", fno, "only fno has modes"},
    {"spatial", fields, "only unet and fno have spatial dimensions to set"},
    {"model-args", own, "it is only passed to your own network"},
    {"momentum", moves, "it applies only to --optimizer sgd and lars"},
    {"nesterov", sgd, "it applies only to --optimizer sgd"},
    {"every", sched_step, "it applies only to --schedule step"},
    {"milestones", sched_multistep, "it applies only to --schedule multistep"},
    {"gamma", sched_gamma, "this --schedule uses no factor"},
    {"power", sched_power, "it applies only to --schedule polynomial and inverse"},
    {"lr-end", sched_end, "it applies only to --schedule linear, cosine and polynomial"},
    {"patience", sched_plateau, "it applies only to --schedule plateau"},
    {"metric", evaluated, "there is no validation data; use --val or --val-share"},
    {"eval-iterations", validation, "there is no validation data; use --val or --val-share"},
    {"allreduce", ranks, "there is only one rank"},
    {"wire", ranks, "there is only one rank"},
    {"bucket-mb", ranks, "there is only one rank"},
    {"shard", ranks, "there is only one rank"},
    {"progress", ranks, "there is only one rank"},
    {"sync-batch-norm", ranks, "there is only one rank"},
};

void warn_unused(const task *t)
{
    const args *a = t->a;
    if (a->job->rank != 0) return;
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        const int k = option_find(a->cmd, uses[i].option, strlen(uses[i].option));
        if (k < 0 || a->from[k] != FROM_FLAG || uses[i].works(t)) continue;
        char line[256];
        snprintf(line, sizeof line, "--%s has no effect: %s", uses[i].option, uses[i].otherwise);
        report_warning(NULL, line);
    }
}
