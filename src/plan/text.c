/* SPDX-License-Identifier: Apache-2.0
 *
 * The printed plan: one line per kernel with shapes, place of the result, kernel name, work, and, when
 * profiling was on, time and rate.
 */
#include "plan/plan.h"

static void place(const ctn__plan *p, int v, char *buf, size_t n)
{
    const ctn__value *val = &p->values.at[ctn__value_base(p, v)];
    switch (val->kind) {
    case CTN__V_TEMP: snprintf(buf, n, "+%zu", val->offset); break;
    case CTN__V_VAR: snprintf(buf, n, "%s", val->var->name); break;
    case CTN__V_GRAD: snprintf(buf, n, "grad:%s", val->var->name); break;
    case CTN__V_BIND:
        snprintf(buf, n, "%s%u", val->output ? "out:" : "in:", val->tensor & ~CTN__EMITTED);
    }
}

static void print_node(const ctn__plan *p, const ctn__pnode *n, size_t i, ctn__text *t)
{
    char shape[128], where[128];
    ctn__text_add(t, "%4zu %-28s ", i, n->op->name);
    for (int k = 0; k < n->nout; k++) {
        const ctn_desc *d = &p->values.at[n->out[k]].d;
        place(p, n->out[k], where, sizeof where);
        ctn__text_add(t, "%s%s%s@%s", k ? "," : "", ctn_dtype_name(d->dtype),
                      ctn__shape_text(d, shape, sizeof shape), where);
    }
    ctn__text_add(t, " <-");
    for (int k = 0; k < n->nin; k++) {
        const ctn_desc *d = &p->values.at[n->in[k]].d;
        place(p, n->in[k], where, sizeof where);
        ctn__text_add(t, " %s%s@%s", ctn__shape_text(d, shape, sizeof shape),
                      ctn__is_plain(d) ? "" : "~", where);
    }
    ctn__text_add(t, "  [%s]", n->kernel);
    if (n->ns > 0) {
        ctn__text_add(t, " %.1f us", (double)n->ns / 1e3);
        if (n->flops > 0) ctn__text_add(t, " %.1f GFLOP/s", (double)n->flops / (double)n->ns);
    }
    ctn__text_add(t, "  %s\n", n->at);
}

void ctn__plan_print(const ctn__plan *p, ctn__text *t)
{
    ctn__text_add(
        t,
        "plan %016llx%016llx: %zu kernels, %d fused, %d reorders (%zu bytes), arena %zu bytes "
        "(%zu without sharing), run %llu times\n",
        (unsigned long long)p->key.hi, (unsigned long long)p->key.lo, p->nodes.n, p->fused,
        p->reorders, p->reorder_bytes, p->arena_bytes, p->temp_bytes, (unsigned long long)p->runs);
    uint64_t total = 0;
    for (size_t i = 0; i < p->nodes.n; i++) {
        print_node(p, &p->nodes.at[i], i, t);
        total += p->nodes.at[i].ns;
    }
    if (total > 0) ctn__text_add(t, "sum of best kernel times %.1f us\n", (double)total / 1e3);
}
