/* SPDX-License-Identifier: Apache-2.0
 *
 * Reference kernels of the engine compute element by element and are hundreds of times slower than
 * its other kernels. This file says why a node runs on one, and notifies the host if a plan spends
 * more than 1 % of its arithmetic there.
 */
#include "plan/plan.h"

/* As far as the operands show it. */
const char *ctn__why_slow(const ctn__plan *p, const ctn__pnode *n)
{
    bool f16 = false, stride = false;
    if (!strstr(n->kernel, "ref")) return NULL;
    for (int i = 0; i < n->nin + n->nout; i++) {
        const ctn_desc *d = &p->values.at[i < n->nin ? n->in[i] : n->out[i - n->nin]].d;
        f16 |= d->dtype == CTN_F16;
        for (int k = 0; k < d->ndim && d->layout == 0; k++)
            stride |= d->dim[k] > 1 && d->stride[k] <= 0;
    }
    if (f16 && !ctn__engine_trains_f16()) return "f16 is slow on CPUs without AMX-FP16";
    if (stride) return "an operand is broadcast or reversed: a stride is 0 or negative";
    for (int i = 0; i < n->nattr && n->op->attr_names; i++)
        if (strcmp(n->op->attr_names[i], "groups") == 0 && n->attr[i] > 1)
            return "the engine has no faster kernel for this number of groups and channels";
    return "the engine has no faster kernel for these operands";
}

void ctn__note_slow(ctn__planner *pl, const ctn__plan *p)
{
    const ctn__pnode *most = NULL;
    double all = 0, slow = 0;
    for (size_t i = 0; i < p->nodes.n && !pl->slow_told; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        all += (double)n->flops;
        if (!ctn__why_slow(p, n)) continue;
        slow += (double)n->flops;
        if (!most || n->flops > most->flops) most = n;
    }
    if (!most || slow <= 0.01 * all) return;
    pl->slow_told = true;
    ctn__notice("%s (%s) runs on a reference kernel, which is hundreds of times slower than other "
                "kernels: %s",
                most->op->name, most->at ? most->at : "no line", ctn__why_slow(p, most));
}
