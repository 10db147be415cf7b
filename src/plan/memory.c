/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory: computes lifetimes over the schedule, reuses inputs in place where an op allows it, and
 * assigns offsets in the context's arena by first fit over the free ranges, aligned to 64 bytes.
 * The scratch of a kernel lives only while it runs and never overlaps a live value. The peak is
 * known before the first run.
 */
#include "plan/plan.h"

/* A treap of free ranges, ordered by address. Every node stores the largest size in its subtree, so
 * the first range that is large enough is found in logarithmic time. Node 0 is not a range. */
typedef struct {
    size_t at, size, largest;
    uint32_t order; /* heap order: a hash of the address, which keeps the tree balanced */
    int left, right;
} range;

typedef struct {
    CTN__VEC(range) node;
    CTN__VEC(int) unused;
    int root;
    size_t top, peak;
} space;

static int update(space *s, int t)
{
    range *r = &s->node.at[t];
    const size_t a = s->node.at[r->left].largest, b = s->node.at[r->right].largest;
    r->largest = r->size;
    if (a > r->largest) r->largest = a;
    if (b > r->largest) r->largest = b;
    return t;
}

/* Split t into the ranges before `at` and all others. */
static void split(space *s, int t, size_t at, int *before, int *others)
{
    *before = *others = 0;
    if (t == 0) return;
    range *r = &s->node.at[t];
    if (r->at < at) {
        split(s, r->right, at, &r->right, others);
        *before = update(s, t);
    } else {
        split(s, r->left, at, before, &r->left);
        *others = update(s, t);
    }
}

/* Merge both trees; all of a lies before all of b. */
static int merge(space *s, int a, int b)
{
    if (a == 0 || b == 0) return a + b;
    range *x = &s->node.at[a], *y = &s->node.at[b];
    if (x->order > y->order) {
        x->right = merge(s, x->right, b);
        return update(s, a);
    }
    y->left = merge(s, a, y->left);
    return update(s, b);
}

static bool insert_range(space *s, size_t at, size_t size)
{
    int t, before, others;
    const range r = {.at = at, .size = size, .order = (uint32_t)ctn__mix(at, 1)};
    if (s->unused.n > 0) {
        t = s->unused.at[--s->unused.n];
        s->node.at[t] = r;
    } else {
        t = (int)s->node.n;
        if (!ctn__vec_push(&s->node, r)) return false;
    }
    update(s, t);
    split(s, s->root, at, &before, &others);
    s->root = merge(s, merge(s, before, t), others);
    return true;
}

static bool remove_range(space *s, size_t at)
{
    int before, it, others;
    split(s, s->root, at, &before, &others);
    split(s, others, at + 1, &it, &others);
    s->root = merge(s, before, others);
    return ctn__vec_push(&s->unused, it);
}

/* The first range of at least `bytes`; 0: none. */
static int first_fit(const space *s, size_t bytes)
{
    int t = s->root;
    if (t == 0 || s->node.at[t].largest < bytes) return 0;
    for (;;) {
        const range *r = &s->node.at[t];
        if (s->node.at[r->left].largest >= bytes) t = r->left;
        else if (r->size >= bytes) return t;
        else t = r->right;
    }
}

/* The last range that begins before `at`; 0: none. */
static int last_before(const space *s, size_t at)
{
    int found = 0;
    for (int t = s->root; t != 0;) {
        const range *r = &s->node.at[t];
        if (r->at < at) found = t;
        t = r->at < at ? r->right : r->left;
    }
    return found;
}

static bool take(space *s, size_t bytes, size_t *at)
{
    const int t = first_fit(s, bytes);
    if (bytes > CTN__MAX_BYTES || s->top > CTN__MAX_BYTES) { /* so that no sum wraps around */
        ctn_fail(CTN_ENOMEM, "the plan needs more memory than any machine has");
        return false;
    }
    if (t != 0) {
        const range r = s->node.at[t];
        *at = r.at;
        return remove_range(s, r.at) &&
               (r.size == bytes || insert_range(s, r.at + bytes, r.size - bytes));
    }
    *at = s->top;
    const int last = last_before(s, s->top);
    if (last != 0 && s->node.at[last].at + s->node.at[last].size == s->top) {
        *at = s->node.at[last].at; /* extend the last free range if it ends at the top */
        if (!remove_range(s, *at)) return false;
    }
    s->top = *at + bytes;
    if (s->top > s->peak) s->peak = s->top;
    return true;
}

static ctn_status give(space *s, size_t at, size_t bytes)
{
    bool ok = true;
    const int before = last_before(s, at);
    if (before != 0 && s->node.at[before].at + s->node.at[before].size == at) {
        at = s->node.at[before].at;
        bytes += s->node.at[before].size;
        ok = remove_range(s, at);
    }
    const int after = last_before(s, at + bytes + 1);
    if (ok && after != 0 && s->node.at[after].at == at + bytes) {
        const size_t behind = s->node.at[after].at;
        bytes += s->node.at[after].size;
        ok = remove_range(s, behind);
    }
    return ok && insert_range(s, at, bytes) ? CTN_OK : CTN_ENOMEM;
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

/* The input whose memory out[0] may reuse: in the arena, of the same layout, read here for the last
 * time. -1: none. */
static int in_place(const ctn__plan *p, const ctn__pnode *n, int step)
{
    const ctn__value *o = &p->values.at[n->out[0]];
    for (int k = 0; k < n->nin; k++) {
        const ctn__value *v = &p->values.at[n->in[k]];
        if (!(n->op->inplace >> k & 1) || v->base >= 0 || v->kind != CTN__V_TEMP || v->last != step)
            continue;
        bool again = false; /* another operand reads the same memory */
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
        if (!take(s, rounded(ctn__bytes(&v->d) + guard), &v->offset)) return CTN_ENOMEM;
        p->temp_bytes += rounded(ctn__bytes(&v->d) + guard);
    }
    if (n->scratch > 0) {
        size_t bytes = rounded(n->scratch + guard);
        if (!take(s, bytes, &n->scratch_offset)) return CTN_ENOMEM;
        CTN_TRY(give(s, n->scratch_offset, bytes));
    }
    for (int k = 0; k < n->nin + n->nout; k++) { /* free the values whose lifetime ends here */
        int b = ctn__value_base(p, k < n->nin ? n->in[k] : n->out[k - n->nin]);
        ctn__value *v = &p->values.at[b];
        if (v->kind != CTN__V_TEMP || v->last != step || taken[b]) continue;
        if (k > n->nin && v->uses == 0) continue; /* it has no memory */
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
    if (!taken || !ctn__vec_push(&s.node, (range){0})) {
        ctn__free(taken);
        return CTN_ENOMEM;
    }
    lifetimes(p);
    for (size_t i = 0; i < p->nodes.n && st == CTN_OK; i++) st = place_node(p, &s, (int)i, taken);
    p->arena_bytes = s.peak;
    ctn__vec_free(&s.node);
    ctn__vec_free(&s.unused);
    ctn__free(taken);
    return st;
}
