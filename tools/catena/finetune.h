/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of fine-tuning that train, explain and bench share: what is frozen.
 */
#ifndef CATENA_FINETUNE_H
#define CATENA_FINETUNE_H

#include <catena/nn.h>
#include <catena/optim.h>

#include "cli.h"

/* clang-format off */
#define FREEZE_OPTIONS(group)                                                                      \
    {"freeze", "PATTERNS", "",                                                                     \
     "parameters that are not trained: names of modules or patterns such as '*.bias', separated "  \
     "by commas; they cost no gradient and no optimizer state", group},                            \
    {"train-only", "PATTERNS", "", "freeze all parameters but these", group},                      \
    {"freeze-statistics", "auto|all|none", "auto",                                                 \
     "batch normalisations that use and keep their running statistics; auto: those whose "         \
     "parameters are frozen", group}
/* clang-format on */

/* Freeze what these options say. Errors: ENOTFOUND (a pattern matches nothing), EARG (nothing would
 * be trained). */
ctn_status finetune_freeze(const args *a, ctn_module *net);
/* --lr-scale. Errors: EARG, ENOTFOUND. */
ctn_status finetune_rates(const args *a, ctn_module *net, ctn_optim *o);
/* Whether the options can be combined; otherwise says so. */
bool finetune_possible(const args *a);

#endif
