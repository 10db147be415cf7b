/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves the weights of the net to a file: the latest ones, including those at the end, or the
 * best ones if the trigger watches a value. Evaluators use the moving average if there is one,
 * so the best weights are then those of the average.
 */
#include "optim/optim.h"
#include "train/train.h"

typedef struct {
    ctn__text path;
    bool best;
    int64_t saved; /* iteration of the last save; -1: none */
} keeper;

static ctn_status call(void *self, ctn_trainer *tr)
{
    keeper *k = self;
    k->saved = tr->iteration;
    CTN_TRY(ctn__trainer_values(tr));
    if (!ctn__writes(tr)) return CTN_OK;
    if (k->best) CTN_TRY(ctn__average_swap(tr));
    ctn_status st = ctn_weights_save(tr->o.net, k->path.s);
    if (k->best) (void)ctn__average_swap(tr); /* cannot fail: nothing is in flight */
    return st;
}

static ctn_status finish(void *self, ctn_trainer *tr)
{
    const keeper *k = self;
    if (k->best || tr->status < 0 || k->saved == tr->iteration) return CTN_OK;
    return call(self, tr);
}

static void release(void *self)
{
    keeper *k = self;
    ctn__text_free(&k->path);
    ctn__free(k);
}

ctn_status ctn_extend_weights(ctn_trainer *tr, const ctn_trigger *when, const char *file)
{
    char name[256];
    CTN_TRY(ctn__need_out(tr, "extend_weights"));
    if (!tr->o.net)
        return ctn_fail(CTN_ESTATE, "extend_weights: the trainer has no net "
                                    "(set ctn_trainer_opt.net)");
    keeper *k = ctn__calloc(1, sizeof *k);
    if (!k) return CTN_ENOMEM;
    if (!file) file = "weights.safetensors";
    k->saved = -1;
    k->best = when && (when->kind == CTN_WHEN_MAX || when->kind == CTN_WHEN_MIN);
    ctn__text_add(&k->path, "%s/%s", tr->o.out, file);
    if (k->path.failed) {
        release(k);
        return CTN_ENOMEM;
    }
    snprintf(name, sizeof name, "weights:%s", file);
    return ctn__extend(tr,
                       &(ctn_extension){.name = name,
                                        .priority = CTN_PRIORITY_SAVE,
                                        .call = call,
                                        .finish = finish,
                                        .release = release,
                                        .self = k},
                       when, (ctn_trigger){.kind = CTN_EVERY_EPOCHS, .n = 1});
}
