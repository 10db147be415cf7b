/* SPDX-License-Identifier: Apache-2.0
 *
 * The features, and the optimizers that some of them choose. See pairs.h.
 */
#include "pairs.h"

#include <stddef.h>
#include <string.h>

#define OPTIM(name, type)                                                           \
    static ctn_status make_##name(ctn_optim **o, ctn_vars vars)                     \
    {                                                                               \
        return ctn_##name##_new(o, vars, CTN_OPT(ctn_##type##_opt, .decay = 1e-3)); \
    }
OPTIM(sgd, sgd)
OPTIM(adam, adam)
OPTIM(adamw, adam)
OPTIM(rmsprop, rmsprop)
OPTIM(adagrad, adagrad)
OPTIM(adadelta, adadelta)
OPTIM(adamax, adamax)
OPTIM(nadam, nadam)
OPTIM(radam, radam)
OPTIM(lion, lion)
OPTIM(lamb, lamb)
OPTIM(lars, lars)
OPTIM(adabound, adabound)
OPTIM(smorms3, smorms3)
OPTIM(msvag, msvag)
OPTIM(adafactor, adafactor)
static ctn_status make_momentum(ctn_optim **o, ctn_vars vars)
{
    return ctn_sgd_new(o, vars, CTN_OPT(ctn_sgd_opt, .momentum = 0.9, .nesterov = 1));
}
const optim_fn optims[OPTIMS] = {make_sgd,      make_momentum, make_adam,     make_adamw,
                                 make_rmsprop,  make_adagrad,  make_adadelta, make_adamax,
                                 make_nadam,    make_radam,    make_lion,     make_lamb,
                                 make_lars,     make_adabound, make_smorms3,  make_msvag,
                                 make_adafactor};

#define SET(field, number) .at = offsetof(setup, field), .value = number
#define ALSO(field, number) .also = offsetof(setup, field), .its = number
const feature features[] = {
    {"SGD with momentum", 'o', SET(optim, 1)},
    {"Adam", 'o', SET(optim, 2)},
    {"AdamW", 'o', SET(optim, 3)},
    {"RMSprop", 'o', SET(optim, 4)},
    {"Adagrad", 'o', SET(optim, 5)},
    {"Adadelta", 'o', SET(optim, 6)},
    {"Adamax", 'o', SET(optim, 7)},
    {"NAdam", 'o', SET(optim, 8)},
    {"RAdam", 'o', SET(optim, 9)},
    {"Lion", 'o', SET(optim, 10)},
    {"LAMB", 'o', SET(optim, 11)},
    {"LARS", 'o', SET(optim, 12)},
    {"AdaBound", 'o', SET(optim, 13)},
    {"SMORMS3", 'o', SET(optim, 14)},
    {"M-SVAG", 'o', SET(optim, 15)},
    {"Adafactor", 'o', SET(optim, 16)},
    {"a second optimizer", 0, SET(two, 1)},
    {"f64", 'p', SET(precision, CTN_PRECISION_F64)},
    {"bf16", 'p', SET(precision, CTN_PRECISION_BF16)},
    {"f16", 'p', SET(precision, CTN_PRECISION_F16)},
    {"clipping by norm", 0, SET(clip, 1)},
    {"clipping by value", 0, SET(clip_value, 1)},
    {"L1 decay", 0, SET(lasso, 1)},
    {"gradient noise", 0, SET(noise, 1)},
    {"static loss scale", 's', SET(scale, 1)},
    {"dynamic loss scale", 's', SET(scale, 2)},
    {"rates of groups", 0, SET(lr_scale, 1)},
    {"decay of groups", 0, SET(decay_group, 1)},
    {"schedule with warm-up", 0, SET(schedule, 1)},
    {"reduce on plateau", 0, SET(plateau, 1)},
    {"early stopping", 0, SET(early_stop, 1)},
    {"moving average", 'a', SET(average, 1)},
    {"stochastic weight averaging", 'a', SET(average, 2)},
    {"frozen layer", 'f', SET(freeze, 1)},
    {"unfreezing", 'f', SET(freeze, 1), ALSO(unfreeze, 1)},
    {"LoRA", 'f', SET(lora, 1)},
    {"LoRA on bf16 weights", 'f', SET(lora, 2)},
    {"recomputation", 0, SET(recompute, 1)},
    {"gradient accumulation", 0, SET(accumulate, 2)},
    {"batch normalisation", 'n', SET(norm, 1)},
    {"synchronised batch normalisation", 'n', SET(norm, 1), ALSO(sync, 1)},
    {"frozen statistics", 'n', SET(norm, 1), ALSO(frozen_statistics, 1)},
    {"dropout", 0, SET(dropout, 1)},
    {"tied parameters", 0, SET(tied, 1)},
    {"skipping bad steps", 'b', SET(nonfinite, 1)},
    {"rewinding after bad steps", 'b', SET(nonfinite, 2), ALSO(state, 1)},
    {"reports of spikes", 0, SET(spikes, 1)},
    {"parameter statistics", 0, SET(statistics, 1)},
    {"states during the run", 0, SET(state, 1)},
    {"states in memory", 0, SET(memory, 1)},
    {"best weights", 0, SET(weights, 1)},
    {"log every 3 steps", 0, SET(log, 1)},
    {"complete batches only", 0, SET(drop_last, 1)},
    {"loader threads", 0, SET(threads, 1)},
    {"2 ranks", 'r', SET(ranks, 2)},
    {"4 ranks", 'r', SET(ranks, 4)},
    {"sharded updates", 0, SET(shard, 1), ALSO(ranks, 2)},
    {"exact sums", 0, SET(exact, 1), ALSO(ranks, 2)},
    {"bf16 on the wire", 'w', SET(wire, CTN_BF16), ALSO(ranks, 2)},
    {"f16 on the wire", 'w', SET(wire, CTN_F16), ALSO(ranks, 2)},
    {"small buckets", 0, SET(bucket, 64), ALSO(ranks, 2)},
    {"exchange after backward", 'x', SET(when, CTN_DIST_AFTER), ALSO(ranks, 2)},
    {"exchange of each parameter", 'x', SET(when, CTN_DIST_PER_PARAMETER), ALSO(ranks, 2)},
    {"complete steps", 0, SET(complete, 1), ALSO(ranks, 2)},
    {"progress thread", 0, SET(progress, CTN_DIST_THREAD), ALSO(ranks, 2)},
    {"comparison of replicas", 0, SET(replicas, 1), ALSO(ranks, 2)},
};
const int nfeatures = sizeof features / sizeof *features;

static void put(setup *s, size_t at, int value)
{
    memcpy((char *)s + at, &value, sizeof value);
}

void apply(setup *s, const feature *f)
{
    put(s, f->at, f->value);
    if (f->its) put(s, f->also, f->its);
}
