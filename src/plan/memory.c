/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: lifetimes over the schedule, in-place where an op allows it, and offsets in the context's arena.
 * First fit over a list of free ranges, 64-byte steps. Scratch of a kernel lives only while it runs and
 * never shares with a live value. The peak is known before the first run.
 */
#include "plan/plan.h"

typedef struct {
    size_t at, size;
} range;

typedef struct {
    CTN__VEC(range) free; /* sorted, disjoint, not touching */
    size_t top, peak;
} space;

static bool insert_range(space *s, size_t i, range r)
{
    if (!ctn__vec_reserve(&s->free, s->free.n + 1)) return false;
    memmove(&s->free.at[i + 1], &s->free.at[i], (s->free.n - i) * sizeof r);
    s->free.at[i] = r;
    s->free.n++;
    return true;
}

static void remove_range(space *s, size_t i)
{
    s->free.n--;
    memmove(&s->free.at[i], &s->free.at[i + 1], (s->free.n - i) * sizeof(range));
}

static size_t take(space *s, size_t bytes)
{
    for (size_t i = 0; i < s->free.n; i++) {
        range *r = &s->free.at[i];
        if (r->size < bytes) continue;
        size_t at = r->at;
        r->at += bytes;
        r->size -= bytes;
        if (r->size == 0) remove_range(s, i);
        return at;
    }
    size_t at = s->top;
    if (s->free.n > 0) { /* grow the last free range when it ends at the top */
        range *r = &s->free.at[s->free.n - 1];
        if (r->at + r->size == s->top) {
            at = r->at;
            s->free.n--;
        }
    }
    s->top = at + bytes;
    if (s->top > s->peak) s->peak = s->top;
    return at;
}

static ctn_status give(space *s, size_t at, size_t bytes)
{
    size_t i = 0; /* the first range behind */
    for (size_t end = s->free.n; i < end;) {
        const size_t mid = (i + end) / 2;
        if (s->free.at[mid].at < at) i = mid + 1;
        else end = mid;
    }
    if (!insert_range(s, i, (range){at, bytes})) return CTN_ENOMEM;
    if (i + 1 < s->free.n && at + bytes == s->free.at[i + 1].at) {
        s->free.at[i].size += s->free.at[i + 1].size;
        remove_range(s, i + 1);
    }
    if (i > 0 && s->free.at[i - 1].at + s->free.at[i - 1].size == at) {
        s->free.at[i - 1].size += s->free.at[i].size;
        remove_range(s, i);
    }
    return CTN_OK;
}

static size_t rounded(size_t bytes)
{
    return bytes == 0 ? CTN__ALIGN : (bytes + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
}

static void lifetimes(ctn__plan *p)
{
    for (size_t i = 0; i < p->values.n; i++) p->values.at[i].first = p->values.at[i].last = -1;
    for (size_t i = 0; i < p->nodes.n; i++) {
        const ctn__pnode *n = &p->nodes.at[i];
        for (int k = 0; k < n->nin; k++) p->values.at[ctn__value_base(p, n->in[k])].last = (int)i;
        for (int k = 0; k < n->nout; k++) {
            ctn__value *v = &p->values.at[n->out[k]];
            v->first = (int)i;
            if (v->last < (int)i) v->last = (int)i;
        }
    }
}

/* The input whose memory out[0] may take over: dies here, same place of elements, in the arena. */
static int in_place(const ctn__plan *p, const ctn__pnode *n, int step)
{
    const ctn__value *o = &p->values.at[n->out[0]];
    for (int k = 0; k < n->nin; k++) {
        const ctn__value *v = &p->values.at[n->in[k]];
        if (!(n->op->inplace >> k & 1) || v->base >= 0 || v->kind != CTN__V_TEMP || v->last != step)
            continue;
        bool again = false; /* the same memory read by another operand as well */
        for (int j = 0; j < n->nin; j++)
            again |= j != k && ctn__value_base(p, n->in[j]) == n->in[k];
        if (!again && ctn__same_desc(&v->d, &o->d)) return n->in[k];
    }
    return -1;
}

static ctn_status place_node(ctn__plan *p, space *s, int step, int *taken)
{
    size_t guard = ((ctn__planner *)p->ctx->planner)->guard;
    ctn__pnode *n = &p->nodes.at[step];
    for (int k = 0; k < n->nout; k++) {
        ctn__value *v = &p->values.at[n->out[k]];
        if (v->kind != CTN__V_TEMP || (k > 0 && v->uses == 0)) continue;
        int over = k == 0 ? in_place(p, n, step) : -1;
        if (over >= 0) {
            v->offset = p->values.at[over].offset;
            taken[over] = 1;
            continue;
        }
        v->offset = take(s, rounded(ctn__bytes(&v->d) + guard));
        p->temp_bytes += rounded(ctn__bytes(&v->d) + guard);
    }
    if (n->scratch > 0) {
        size_t bytes = rounded(n->scratch + guard);
        n->scratch_offset = take(s, bytes);
        CTN_TRY(give(s, n->scratch_offset, bytes));
    }
    for (int k = 0; k < n->nin + n->nout; k++) { /* values whose life ends here */
        int b = ctn__value_base(p, k < n->nin ? n->in[k] : n->out[k - n->nin]);
        ctn__value *v = &p->values.at[b];
        if (v->kind != CTN__V_TEMP || v->last != step || taken[b]) continue;
        if (k > n->nin && v->uses == 0) continue; /* was not given any */
        taken[b] = 1;
        CTN_TRY(give(s, v->offset, rounded(ctn__bytes(&v->d) + guard)));
    }
    return CTN_OK;
}

ctn_status ctn__pass_memory(ctn__plan *p)
{
    space s = {0};
    ctn_status st = CTN_OK;
    int *taken = ctn__calloc(p->values.n + 1, sizeof *taken);
    if (!taken) return CTN_ENOMEM;
    lifetimes(p);
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++) st = place_node(p, &s, (int)i, taken);
    p->arena_bytes = s.peak;
    ctn__vec_free(&s.free);
    ctn__free(taken);
    return st;
}
