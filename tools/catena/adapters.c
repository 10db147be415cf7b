/* SPDX-License-Identifier: Apache-2.0
 *
 * catena train --lora: low-rank adapters are trained instead of the network's own weights.
 */
#include <catena/io.h>

#include "task.h"

ctn_status adapters_add(task *t)
{
    const int64_t rank = args_int(t->a, "lora");
    const ctn_dtype base = args_is(t->a, "lora-base", "bf16") ? CTN_BF16 : CTN_F32;
    if (rank == 0) return CTN_OK;
    return ctn_lora_add(t->net, CTN_OPT(ctn_lora_opt, .rank = rank, .base = base));
}

ctn_status adapters_write(task *t, const char *out)
{
    static const char *const only[] = {"lora_A.weight", "lora_B.weight", NULL};
    char path[4096];
    if (args_int(t->a, "lora") == 0 || t->a->job->rank != 0) return CTN_OK;
    CTN_TRY(ctn_weights_save_with(t->net, join(path, sizeof path, out, "adapters.safetensors"),
                                  CTN_OPT(ctn_weights_save_opt, .only = only)));
    CTN_TRY(ctn_lora_merge(t->net));
    return ctn_weights_save(t->net, join(path, sizeof path, out, "weights.safetensors"));
}
