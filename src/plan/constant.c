/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that depend only on variables which the plan does not write: scale and shift of batch
 * normalisation in evaluation mode, a weight that is made of length and direction. The first run
 * computes them, and another run does so again only if one of the variables or a float operand has
 * changed since. Those that other kernels read lie in memory of the plan.
 */
#include "plan/plan.h"

struct ctn__constants {
    char *mem;
    size_t bytes;
    bool made;
    int n;
    ctn__seen of[];
};

/* The kernel may be skipped if all of its inputs are constant. Results that are larger than the
 * inputs are made anew, as they would cost more memory than the weights do. */
static bool suits(const ctn__plan *p, const ctn__pnode *n)
{
    const uint32_t never = CTN_OP_RANDOM | CTN_OP_ORDERED | CTN_OP_UPDATE | CTN_OP_REMOTE;
    size_t in = 0, out = 0;
    if (n->effect || n->pool || n->makes || n->nin == 0 || (n->op->flags & never)) return false;
    for (int k = 0; k < n->nin; k++) in += ctn__bytes(&p->values.at[n->in[k]].d);
    for (int k = 0; k < n->nout; k++) {
        const ctn__value *v = &p->values.at[n->out[k]];
        if (v->kind != CTN__V_TEMP || v->base >= 0) return false;
        out += ctn__bytes(&v->d);
    }
    return out <= in;
}

/* A variable that the plan does not write, or a kept copy of one. */
static bool source(const ctn__plan *p, int v)
{
    return p->values.at[v].kind == CTN__V_VAR || p->values.at[v].kind == CTN__V_KEPT;
}

/* Marks and counts the nodes; constant[v] is set for the values. */
static void mark(ctn__plan *p, bool *constant, int *count)
{
    ctn__find_unwritten(p, p->values.n, constant);
    for (size_t i = 0; i < p->values.n; i++) constant[i] |= p->values.at[i].kind == CTN__V_KEPT;
    for (size_t i = 0; i < p->nodes.n; i++) {
        ctn__pnode *n = &p->nodes.at[i];
        bool all = suits(p, n);
        for (int k = 0; k < n->nin && all; k++) all = constant[ctn__value_base(p, n->in[k])];
        n->constant = all;
        for (int k = 0; k < n->nout && all; k++) constant[n->out[k]] = true;
        *count += all;
    }
}

/* Gives the results that other kernels read a place in the memory of the plan; returns its size. */
static size_t place(ctn__plan *p, const bool *constant)
{
    size_t bytes = 0;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin && !n->constant; k++) {
            const int b = ctn__value_base(p, n->in[k]);
            ctn__value *v = &p->values.at[b];
            if (!constant[b] || v->kind != CTN__V_TEMP) continue;
            v->kind = CTN__V_CONST;
            v->offset = bytes;
            bytes += (ctn__bytes(&v->d) + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
        }
    }
    return bytes;
}

static ctn_status make_room(ctn__plan *p, const bool *constant)
{
    size_t sources = 0;
    for (size_t i = 0; i < p->values.n; i++) sources += source(p, (int)i);
    ctn__constants *c = ctn__calloc(1, sizeof *c + sources * sizeof c->of[0]);
    if (!c) return CTN_ENOMEM;
    p->constants = c;
    c->bytes = place(p, constant);
    c->mem = ctn__aligned(c->bytes + 1);
    if (!c->mem) return CTN_ENOMEM;
    const uint64_t search = ++p->ctx->searches;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin && n->constant; k++) {
            const int b = ctn__value_base(p, n->in[k]);
            if (source(p, b) && ctn__var_first(p->values.at[b].var, search))
                c->of[c->n++].var = p->values.at[b].var;
        }
    }
    return CTN_OK;
}

ctn_status ctn__pass_constant(ctn__plan *p)
{
    int count = 0;
    if (p->ctx->eager) return CTN_OK;
    bool *constant = ctn__calloc(p->values.n + 1, sizeof *constant);
    if (!constant) return CTN_ENOMEM;
    mark(p, constant, &count);
    const ctn_status st = count > 0 ? make_room(p, constant) : CTN_OK;
    ctn__free(constant);
    return st;
}

void *ctn__constants_at(const ctn__plan *p, size_t offset)
{
    return p->constants->mem + offset;
}

size_t ctn__constants_bytes(const ctn__plan *p)
{
    return p->constants ? p->constants->bytes : 0;
}

bool ctn__constants_fresh(const ctn__plan *p)
{
    const ctn__constants *c = p->constants;
    bool same = c && c->made;
    for (int i = 0; same && i < c->n; i++) same = ctn__seen_same(&c->of[i]);
    return same;
}

void ctn__constants_made(ctn__plan *p, bool well)
{
    ctn__constants *c = p->constants;
    if (!c) return;
    c->made = well;
    for (int i = 0; i < c->n; i++) ctn__seen_now(&c->of[i]);
}

void ctn__constants_free(ctn__constants *c)
{
    if (c) ctn__free(c->mem);
    ctn__free(c);
}
