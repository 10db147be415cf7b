/* SPDX-License-Identifier: Apache-2.0
 *
 * Replay: runs the nodes of a plan again, with each value in its own guarded buffer. In an
 * arena, a kernel may write one element too far without touching a guard zone of the allocator.
 * Here that is always detected.
 */
#include "check.h"

typedef struct {
    ctn_context *ctx;
    ctn__plan *p;
    void **buf; /* one for each value that is not a view */
    bool *own;
} player;

static void place_values(player *r)
{
    for (size_t i = 0; i < r->p->values.n; i++) {
        const ctn__value *v = &r->p->values.at[i];
        if (v->base >= 0) continue;
        bool made = v->kind == CTN__V_TEMP || (v->kind == CTN__V_BIND && v->output);
        if (made) {
            r->buf[i] = guard_new(ctn__bytes(&v->d));
            r->own[i] = true;
        } else if (v->kind == CTN__V_BIND) {
            r->buf[i] = ctn__tensor_by_id(r->ctx, v->tensor)->data;
        } else {
            r->buf[i] = v->kind == CTN__V_VAR ? v->var->data : v->var->grad;
        }
    }
}

static uint64_t content(const player *r, const ctn__pnode *n)
{
    uint64_t h = 0;
    for (int k = 0; k < n->nin; k++) {
        int b = ctn__value_base(r->p, n->in[k]);
        if (r->own[b]) h = ctn__mix(h, ctn__hash(r->buf[b], guard_size(r->buf[b])).lo);
    }
    return h;
}

static bool play(const player *r, ctn__pnode *n, fault *f)
{
    const void *in[CTN_MAX_IN];
    void *out[CTN_MAX_OUT];
    ctn_run_args a = n->args;
    for (int k = 0; k < n->nin; k++) in[k] = r->buf[ctn__value_base(r->p, n->in[k])];
    for (int k = 0; k < n->nout; k++)
        out[k] = n->pout[k] ? r->buf[ctn__value_base(r->p, n->out[k])] : NULL;
    a.in = in;
    a.out = out;
    a.scratch = guard_new(n->scratch);
    uint64_t before = content(r, n);
    ctn_status st = n->run(&a);
    bool ok = guard_check(f);
    fault why = *f;
    guard_free(a.scratch);
    if (st < 0) return fail_case(f, "replay: %s fails: %s", n->op->name, ctn_error_message());
    if (!ok) return fail_case(f, "kernel %s (%s): %s", n->op->name, n->kernel, why.text);
    if (content(r, n) != before)
        return fail_case(f, "kernel %s (%s) writes its input", n->op->name, n->kernel);
    return true;
}

static bool same_outputs(const player *r, fault *f)
{
    for (size_t i = 0; i < r->p->values.n; i++) {
        const ctn__value *v = &r->p->values.at[i];
        if (v->base >= 0 || v->kind != CTN__V_BIND || !v->output) continue;
        const char *x = ctn__tensor_by_id(r->ctx, v->tensor)->data, *y = r->buf[i];
        size_t es = ctn_dtype_size(v->d.dtype), n = (size_t)ctn__count(&v->d);
        for (size_t k = 0; k < n; k++) {
            if (memcmp(x + k * es, y + k * es, es) == 0) continue;
            return fail_case(f,
                             "replay in separate memory: element %zu of tensor %u is %.10g, the "
                             "plan gave %.10g",
                             k, v->tensor, ctn__elem_get(y, v->d.dtype, (int64_t)k),
                             ctn__elem_get(x, v->d.dtype, (int64_t)k));
        }
    }
    return true;
}

bool replay_plan(ctn_context *ctx, fault *f)
{
    ctn__planner *pl = ctx->planner;
    player r = {.ctx = ctx, .p = pl->last};
    bool ok = true;
    if (!r.p) return true;
    r.buf = calloc(r.p->values.n + 1, sizeof *r.buf);
    r.own = calloc(r.p->values.n + 1, sizeof *r.own);
    place_values(&r);
    int was = ctn__threads_enter(ctx->threads);
    ctn__fpmode_enter(pl->fp);
    for (size_t i = 0; i < r.p->nodes.n && ok; i++) ok = play(&r, &r.p->nodes.at[i], f);
    ctn__fpmode_leave(pl->fp);
    ctn__threads_leave(was);
    ok = ok && same_outputs(&r, f);
    for (size_t i = 0; i < r.p->values.n; i++)
        if (r.own[i]) guard_free(r.buf[i]);
    free(r.buf);
    free(r.own);
    return ok;
}
