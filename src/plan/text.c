/* SPDX-License-Identifier: Apache-2.0
 *
 * Output of a plan, in two forms. As text it has one line per kernel, with shapes, place of the
 * result, kernel name and, if profiling was on, time and rate. Programs get a struct of facts
 * about each kernel (ctn_context_visit_plan).
 */
#include "plan/plan.h"

/* ---- text ----------------------------------------------------------------------------------- */

static void place(const ctn__plan *p, int v, char *buf, size_t n)
{
    const ctn__value *val = &p->values.at[ctn__value_base(p, v)];
    switch (val->kind) {
    case CTN__V_TEMP: snprintf(buf, n, "+%zu", val->offset); break;
    case CTN__V_VAR: snprintf(buf, n, "%s", val->var->name); break;
    case CTN__V_GRAD: snprintf(buf, n, "grad:%s", val->var->name); break;
    case CTN__V_KEPT: snprintf(buf, n, "kept:%s", val->var->name); break;
    case CTN__V_CONST: snprintf(buf, n, "const:+%zu", val->offset); break;
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
        "plan %016llx%016llx: %zu kernels for %zu ops (%zu after simplification), %d fused, %d "
        "reorders (%zu bytes), arena %zu bytes (%zu without sharing), run %llu times\n",
        (unsigned long long)p->key.hi, (unsigned long long)p->key.lo, p->nodes.n, p->recorded,
        p->needed, p->fused, p->reorders, p->reorder_bytes, p->arena_bytes, p->temp_bytes,
        (unsigned long long)p->runs);
    uint64_t total = 0;
    for (size_t i = 0; i < p->nodes.n; i++) {
        print_node(p, &p->nodes.at[i], i, t);
        total += p->nodes.at[i].ns;
    }
    if (total > 0) ctn__text_add(t, "sum of best kernel times %.1f us\n", (double)total / 1e3);
}

/* ---- facts ---------------------------------------------------------------------------------- */

static int layout_of(const ctn_desc *d)
{
    if (d->layout) return CTN_LAYOUT_ENGINE;
    if (ctn__is_plain(d)) return CTN_LAYOUT_ROW_MAJOR;
    return ctn__is_channels_last(d) ? CTN_LAYOUT_CHANNELS_LAST : CTN_LAYOUT_STRIDED;
}

/* Images of one pixel or one channel are in both layouts at once, so they count only if there are
 * no others. */
static int layouts_of(const ctn_desc *d, int n)
{
    int sure = 0, both = 0;
    for (int i = 0; i < n; i++) {
        if (d[i].ndim < 2) continue;
        bool undecided = d[i].layout == 0 && d[i].ndim > 2 && ctn__is_plain(&d[i]) &&
                         ctn__is_channels_last(&d[i]);
        *(undecided ? &both : &sure) |= layout_of(&d[i]);
    }
    return sure ? sure : both;
}

/* Bytes accessed: a broadcast reads only what is stored, a slice only what it shows. */
static size_t bytes_of(const ctn__plan *p, int v)
{
    size_t shown = ctn__bytes(&p->values.at[v].d);
    size_t there = ctn__bytes(&p->values.at[ctn__value_base(p, v)].d);
    return shown < there ? shown : there;
}

static int64_t node_bytes(const ctn__plan *p, const ctn__pnode *n)
{
    size_t sum = 0;
    for (int k = 0; k < n->nin; k++) sum += bytes_of(p, n->in[k]);
    for (int k = 0; k < n->nout; k++) {
        const ctn__value *v = &p->values.at[n->out[k]];
        if (k == 0 || v->kind != CTN__V_TEMP || v->uses > 0) sum += bytes_of(p, n->out[k]);
    }
    /* a step reads and writes the parameters and reads their gradients */
    if (n->pool) sum += 3 * (size_t)n->pool->count * n->pool->unit;
    return (int64_t)sum;
}

static int reordered_inputs(const ctn__plan *p, const ctn__pnode *n)
{
    int count = 0;
    for (int k = 0; k < n->nin; k++) {
        int made = p->values.at[ctn__value_base(p, n->in[k])].node;
        count += made >= 0 && p->nodes.at[made].op == &ctn__op_reorder;
    }
    return count;
}

ctn_status ctn_context_visit_plan(ctn_context *ctx, ctn_plan_fn fn, void *user)
{
    if (!ctx || !fn)
        return ctn_fail(CTN_EARG, "context_visit_plan: %s is NULL", ctx ? "fn" : "ctx");
    const ctn__plan *p = ((const ctn__planner *)ctx->planner)->last;
    for (size_t i = 0; p && i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        ctn_desc d[CTN_MAX_IN + CTN_MAX_OUT] = {0};
        for (int k = 0; k < n->nin; k++) d[k] = p->values.at[n->in[k]].d;
        for (int k = 0; k < n->nout; k++) d[n->nin + k] = p->values.at[n->out[k]].d;
        ctn_plan_node facts = {.struct_size = sizeof facts,
                               .index = (int)i,
                               .op = n->op->name,
                               .kernel = n->kernel,
                               .at = n->at,
                               .slow = ctn__why_slow(p, n),
                               .nin = n->nin,
                               .nout = n->nout,
                               .in = d,
                               .out = d + n->nin,
                               .layouts = layouts_of(d, n->nin + n->nout),
                               .reordered = reordered_inputs(p, n),
                               .bytes = node_bytes(p, n),
                               .flops = n->flops,
                               .ns = n->ns,
                               .gradient = n->gradient};
        if (strcmp(n->kernel, "comm") == 0) {
            facts.begin = n->attr[0];
            facts.end = n->attr[1];
        }
        ctn_status st = fn(user, &facts);
        if (st != CTN_OK) return st;
    }
    return CTN_OK;
}
