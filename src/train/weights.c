/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves the weights of the net to a file: the latest ones, including those at the end, or the
 * best ones if the trigger watches a value. Evaluators use the moving average if there is one,
 * so the best weights are then those of the average.
 *
 * If states are saved too, a file is synced when the next state is, or at the end: what a resumed
 * training goes on from is then on the disk, and short epochs do not wait for it.
 */
#include "base/newfile.h"
#include "optim/optim.h"
#include "train/train.h"

typedef struct {
    ctn__text path;
    bool best;
    int64_t saved; /* iteration of the last save; -1: none */
} keeper;

ctn_status ctn__weights_sync(ctn_trainer *tr)
{
    ctn_status st = CTN_OK;
    for (; tr->unsynced.n > 0 && st == CTN_OK; tr->unsynced.n--)
        st = ctn__newfile_sync(tr->unsynced.at[tr->unsynced.n - 1]);
    return st;
}

/* Is the file of this path synced later? */
static bool sync_later(ctn_trainer *tr, const char *path)
{
    if (!ctn__checkpoint_dir(tr)) return false;
    for (size_t i = 0; i < tr->unsynced.n; i++)
        if (tr->unsynced.at[i] == path) return true;
    return ctn__vec_push(&tr->unsynced, path);
}

static ctn_status call(void *self, ctn_trainer *tr)
{
    keeper *k = self;
    k->saved = tr->iteration;
    CTN_TRY(ctn__trainer_values(tr));
    if (!ctn__writes(tr)) return CTN_OK;
    if (k->best) CTN_TRY(ctn__average_swap(tr));
    const ctn_status st =
        ctn_weights_save_with(tr->o.net, k->path.s,
                              CTN_OPT(ctn_weights_save_opt, .no_sync = sync_later(tr, k->path.s)));
    if (k->best) (void)ctn__average_swap(tr); /* cannot fail: nothing is in flight */
    return st;
}

static ctn_status finish(void *self, ctn_trainer *tr)
{
    const keeper *k = self;
    if (tr->status < 0) return CTN_OK;
    if (!k->best && k->saved != tr->iteration) CTN_TRY(call(self, tr));
    return ctn__weights_sync(tr);
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
