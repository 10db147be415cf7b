/* SPDX-License-Identifier: Apache-2.0
 *
 * Low-rank adapters: catena train --lora trains them instead of the network's own weights, and
 * --adapters of other commands adds those of a folder.
 */
#include <catena/io.h>

#include "training.h"

#define BEST_ADAPTERS "best_adapters.safetensors"

static const char *const only[] = {"lora_A.weight", "lora_B.weight", NULL};

ctn_status adapters_add(task *t)
{
    const int64_t rank = args_int(t->a, "lora");
    const ctn_dtype base = args_is(t->a, "lora-base", "bf16")  ? CTN_BF16
                           : args_is(t->a, "precision", "f64") ? CTN_F64
                                                               : CTN_F32;
    if (rank == 0) return CTN_OK;
    return ctn_lora_add(t->net, CTN_OPT(ctn_lora_opt, .rank = rank, .base = base));
}

ctn_status adapters_open(const args *a, ctn_module *net)
{
    const char *folder = args_text(a, "adapters");
    if (!folder[0]) return CTN_OK;
    CTN_TRY(ctn_lora_open(net, folder));
    return ctn_lora_merge(net);
}

static ctn_status write_adapters(ctn_module *net, const char *out, const char *name)
{
    char path[4096];
    return ctn_weights_save_with(net, join(path, sizeof path, out, name),
                                 CTN_OPT(ctn_weights_save_opt, .only = only));
}

static ctn_status keep_best(void *self, ctn_trainer *tr)
{
    const training *r = self;
    (void)tr;
    return write_adapters(r->t.net, r->out, BEST_ADAPTERS);
}

ctn_status adapters_best(training *r, const ctn_trigger *when)
{
    return ctn_trainer_extend(r->trainer, &(ctn_extension){.struct_size = sizeof(ctn_extension),
                                                           .name = BEST_ADAPTERS,
                                                           .priority = CTN_PRIORITY_SAVE,
                                                           .trigger = *when,
                                                           .call = keep_best,
                                                           .self = r,
                                                           .rank0_only = 1});
}

/* The folder of adapters that other programs read, if they read the network itself. */
static ctn_status write_folder(const task *t, ctn_module *net, const char *out)
{
    char path[4096];
    if (!t->published) return CTN_OK;
    return ctn_published_write(net, t->a->operand, join(path, sizeof path, out, "adapters"));
}

/* The network with the best adapters merged. They may be those of an earlier run of a resumed
 * training. */
static ctn_status write_best(const task *t, const char *out)
{
    char path[4096];
    ctn_module *best = NULL;
    if (!is_found(join(path, sizeof path, out, BEST_ADAPTERS))) return CTN_OK;
    CTN_TRY(ctn_module_copy(&best, t->net));
    ctn_status st = ctn_weights_load(best, path, CTN_OPT(ctn_weights_opt, .partial = 1));
    if (st == CTN_OK) st = write_folder(t, best, out);
    if (st == CTN_OK) st = ctn_lora_merge(best);
    if (st == CTN_OK) st = ctn_weights_save(best, join(path, sizeof path, out, "best.safetensors"));
    ctn_module_free(best);
    return st;
}

ctn_status adapters_write(task *t, const char *out)
{
    char path[4096];
    if (args_int(t->a, "lora") == 0 || t->a->job->rank != 0) return CTN_OK;
    CTN_TRY(write_adapters(t->net, out, "adapters.safetensors"));
    CTN_TRY(write_folder(t, t->net, out));      /* the best ones replace it */
    const ctn_status best = write_best(t, out); /* a damaged file of them does not end the rest */
    CTN_TRY(ctn_lora_merge(t->net));
    CTN_TRY(ctn_weights_save(t->net, join(path, sizeof path, out, "weights.safetensors")));
    return best;
}
