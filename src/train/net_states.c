/* SPDX-License-Identifier: Apache-2.0
 *
 * The states of the net (running statistics) and a copy of their values, for steps that must not
 * change them (nonfinite.c) and for blocks that all begin with the same values (exact.c).
 */
#include "nn/nn.h"
#include "train/train.h"

ctn_status ctn__net_states_make(ctn__net_states *k, const ctn_trainer *tr)
{
    ctn_vars all = {0};
    size_t bytes = 0;
    k->var.n = 0;
    if (tr->o.net) CTN_TRY(ctn__module_vars(tr->o.net, &all));
    for (int i = 0; i < all.n; i++) {
        if (all.var[i]->kind != CTN_STATE) continue;
        if (!ctn__vec_push(&k->var, all.var[i])) return CTN_ENOMEM;
        bytes += ctn__bytes(&all.var[i]->d);
    }
    ctn__free(k->copy);
    k->copy = ctn__malloc(bytes + 1);
    return k->copy ? CTN_OK : CTN_ENOMEM;
}

void ctn__net_states_take(ctn__net_states *k)
{
    char *to = k->copy;
    for (size_t i = 0; i < k->var.n; i++) {
        const ctn_var *v = k->var.at[i];
        memcpy(to, v->data, ctn__bytes(&v->d));
        to += ctn__bytes(&v->d);
    }
}

void ctn__net_states_put_back(ctn__net_states *k)
{
    const char *from = k->copy;
    for (size_t i = 0; i < k->var.n; i++) {
        ctn_var *v = k->var.at[i];
        memcpy(v->data, from, ctn__bytes(&v->d));
        v->version++;
        from += ctn__bytes(&v->d);
    }
}

void ctn__net_states_free(ctn__net_states *k)
{
    ctn__vec_free(&k->var);
    ctn__free(k->copy);
    k->copy = NULL;
}
