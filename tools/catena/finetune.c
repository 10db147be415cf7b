/* SPDX-License-Identifier: Apache-2.0
 *
 * Fine-tuning: --freeze, --train-only, --freeze-statistics and --lr-scale. Patterns are those of
 * ctn_module_set_trainable.
 */
#include "finetune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Calls fn with each part of a list that is separated by commas. */
static ctn_status each(const char *list, ctn_status (*fn)(void *user, const char *part), void *user)
{
    ctn_status st = CTN_OK;
    char *copy = strdup(list), *rest = NULL;
    if (!copy) return ctn_fail(CTN_ENOMEM, "no memory for a list of patterns");
    for (char *p = strtok_r(copy, ",", &rest); p && st == CTN_OK; p = strtok_r(NULL, ",", &rest))
        st = fn(user, p);
    free(copy);
    return st;
}

static ctn_status freeze(void *net, const char *pattern)
{
    const int n = ctn_module_set_trainable(net, pattern, 0);
    return n < 0 ? (ctn_status)n : CTN_OK;
}

static ctn_status train(void *net, const char *pattern)
{
    const int n = ctn_module_set_trainable(net, pattern, 1);
    return n < 0 ? (ctn_status)n : CTN_OK;
}

static ctn_status need_trained(ctn_module *net)
{
    const ctn_vars p = ctn_params(net);
    for (int i = 0; i < p.n; i++)
        if (ctn_var_trainable(p.var[i])) return CTN_OK;
    return ctn_fail(CTN_EARG, "--freeze leaves no parameter to train");
}

ctn_status finetune_freeze(const args *a, ctn_module *net)
{
    const char *frozen = args_text(a, "freeze"), *only = args_text(a, "train-only");
    if (only[0]) {
        const int n = ctn_module_set_trainable(net, NULL, 0);
        if (n < 0) return (ctn_status)n;
    }
    CTN_TRY(each(only, train, net));
    CTN_TRY(each(frozen, freeze, net));
    CTN_TRY(need_trained(net));
    if (args_is(a, "freeze-statistics", "none")) return CTN_OK;
    const bool all = args_is(a, "freeze-statistics", "all");
    const int n = ctn_module_freeze_statistics(net, all ? "*" : NULL, 1);
    return n < 0 ? (ctn_status)n : CTN_OK;
}

typedef struct {
    ctn_module *net;
    ctn_optim *optim;
} rates;

static ctn_status set_rate(void *user, const char *part)
{
    const rates *r = user;
    char pattern[512], *end = NULL;
    const char *sign = strrchr(part, '=');
    const double x = sign ? strtod(sign + 1, &end) : 0;
    if (!sign || end == sign + 1 || *end || !isfinite(x) || x <= 0)
        return ctn_fail(CTN_EARG,
                        "--lr-scale is '%s', expected PATTERN=X with X above 0; use --freeze for "
                        "parameters that are not trained",
                        part);
    snprintf(pattern, sizeof pattern, "%.*s", (int)(sign - part), part);
    const int n = ctn_optim_group(r->optim, pattern, CTN_OPT(ctn_group_opt, .lr_scale = x));
    /* If nothing matches, this changes nothing and fails with the names that there are. */
    return n == 0 ? train(r->net, pattern) : n < 0 ? (ctn_status)n : CTN_OK;
}

ctn_status finetune_rates(const args *a, ctn_module *net, ctn_optim *o)
{
    rates r = {net, o};
    return each(args_text(a, "lr-scale"), set_rate, &r);
}

bool finetune_possible(const args *a)
{
    const bool some = args_text(a, "freeze")[0] || args_text(a, "train-only")[0];
    const bool later = args_int(a, "unfreeze-at") > 0;
    const char *why = NULL;
    if (some && args_int(a, "lora") > 0)
        why = "--lora freezes the network itself; it cannot be combined with --freeze and "
              "--train-only";
    else if (later && !some) why = "--unfreeze-at needs --freeze or --train-only";
    else if (later && args_flag(a, "shard"))
        why = "--unfreeze-at cannot be combined with --shard, which divides the optimizer state "
              "once at the start";
    if (why) say(stderr, "catena train: %s\n", why);
    return !why;
}
