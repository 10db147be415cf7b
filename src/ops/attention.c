/* SPDX-License-Identifier: Apache-2.0
 *
 * attention: softmax(q k^T scale + mask) v, with masks by position (causal, window, lengths,
 * first), grouped queries and dropout. In f32 it is one op whose memory is linear in the length
 * (common/attend.c) and which also reads and writes the 16-bit type of a policy; in other cases it
 * is composed of other ops (common/attention.c).
 *
 * The op has q (N,H,L,E), k (N,K,M,E), v (N,K,M,F), then the mask, the lengths and the positions of
 * the first queries, if there are any. It returns y (N,H,L,F), the logarithms of the sums of the
 * rows (N,H,L) and, with dropout, where its random numbers come from (ctn__draws). attention_grad
 * has q, k, v, the gradient of y, y, the logarithms, then mask, lengths, positions and random
 * numbers, and returns the gradients of q, k and v.
 */
#include <math.h>

#include "ops/common/attend.h"
#include "ops/common/attention.h"
#include "ops/common/random.h"

enum { CAUSAL, WINDOW, MASK, LENGTHS, FIRST, NATTR };
enum { SCALE, DROP, NSCALAR };
static const char *const attr_names[] = {"causal", "window", "mask", "lengths", "first"};

/* ---- the kernel ------------------------------------------------------------------------------ */

static ctn_status attention_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    a->out[0].dim[3] = a->in[2]->dim[3];
    a->out[1] = *a->in[0];
    a->out[1].ndim = 3;
    if (a->nout > 2)
        a->out[2] =
            (ctn_desc){.dtype = CTN_I64, .ndim = 1, .dim = {sizeof(ctn__draws) / sizeof(int64_t)}};
    return CTN_OK;
}

static ctn_status attention_grad_infer(ctn_infer_args *a)
{
    for (int i = 0; i < 3; i++) a->out[i] = *a->in[i];
    return CTN_OK;
}

static void attend_free(void *p)
{
    ctn__attend_drop(p);
    ctn__free(p);
}

/* (N,H,L,F) in memory as (N,L,H,F): a transpose to (N,L,H,F) is then free. */
static void heads_inside(ctn_desc *d)
{
    d->stride[3] = 1;
    d->stride[1] = d->dim[3];
    d->stride[2] = d->dim[1] * d->stride[1];
    d->stride[0] = d->dim[2] * d->stride[2];
}

static ctn_status prepare(ctn_prepare_args *a, bool backward)
{
    const ctn_desc *q = &a->din[0], *k = &a->din[1], *v = &a->din[2];
    const int products = backward ? 5 : 2;
    ctn__attend *t = ctn__calloc(1, sizeof *t);
    if (!t) return CTN_ENOMEM;
    *t = (ctn__attend){.N = q->dim[0], .H = q->dim[1], .K = k->dim[1], .L = q->dim[2]};
    t->M = k->dim[2];
    t->E = q->dim[3];
    t->F = v->dim[3];
    t->causal = a->attr[CAUSAL] != 0;
    t->window = a->attr[WINDOW] < CTN__ATTEND_FAR ? a->attr[WINDOW] : CTN__ATTEND_FAR;
    const ctn_status st = ctn__attend_make(t, backward, a->threads);
    if (st < 0) {
        ctn__free(t);
        return st;
    }
    a->priv = t;
    a->priv_free = attend_free;
    a->priv_bytes = sizeof *t + (size_t)products * 16384;
    a->kernel = ctn__tile_name(t->tile[0]);
    a->scratch = ctn__attend_scratch(t, backward, a->threads);
    const double pairs = (double)t->N * (double)t->H * (double)t->L * (double)t->M;
    a->flops =
        ctn__work(pairs * (double)(t->E + t->F) * (t->causal ? 1 : 2) * (backward ? 2.5 : 1));
    for (int i = 0; i < (backward ? 3 : 1); i++) heads_inside(&a->dout[i]);
    if (backward) ctn__plain(&a->din[5]);
    for (int i = backward ? 6 : 3; i < a->nin; i++)
        if (a->din[i].dtype != CTN_F32)
            ctn__plain(&a->din[i]); /* lengths, positions, random numbers */
    return CTN_OK;
}

static ctn_status attention_prepare(ctn_prepare_args *a)
{
    return prepare(a, false);
}

static ctn_status attention_grad_prepare(ctn_prepare_args *a)
{
    return prepare(a, true);
}

static ctn__attend_in operand(const ctn_run_args *a, int i)
{
    return (ctn__attend_in){a->in[i], a->din[i].stride, a->din[i].dtype};
}

static ctn__attend_out result(const ctn_run_args *a, int i)
{
    return (ctn__attend_out){a->out[i], a->dout[i].stride, a->dout[i].dtype};
}

/* The arguments that both ops have; the operands after the first ones begin at number `more`. */
static ctn__attend_args args_of(const ctn_run_args *a, int more, int64_t *bias)
{
    ctn__attend_args x = {.scale = (float)a->scalar[SCALE],
                          .q = operand(a, 0),
                          .k = operand(a, 1),
                          .v = operand(a, 2),
                          .drop = (float)a->scalar[DROP]};
    if (a->attr[MASK]) {
        const ctn_desc *d = &a->din[more];
        for (int i = 0; i < 4; i++) bias[i] = d->dim[i] > 1 ? d->stride[i] : 0;
        x.bias = (ctn__attend_bias){a->in[more++], bias};
    }
    if (a->attr[LENGTHS]) {
        x.length_type = a->din[more].dtype;
        x.lengths = a->in[more++];
    }
    if (a->attr[FIRST]) {
        x.first_type = a->din[more].dtype;
        x.first = a->in[more];
    }
    return x;
}

static ctn_status attention_run(const ctn_run_args *a)
{
    int64_t bias[4];
    ctn__attend_args x = args_of(a, 3, bias);
    if (a->nout > 2) {
        x.draws = ctn__draws_of(a, &a->dout[0], 0);
        if (a->out[2]) memcpy(a->out[2], &x.draws, sizeof x.draws);
    }
    ctn__attend_forward(a->priv, &x, result(a, 0), a->out[1], a->env->threads, a->scratch);
    return CTN_OK;
}

static ctn_status attention_grad_run(const ctn_run_args *a)
{
    int64_t bias[4];
    ctn__attend_args x = args_of(a, 6, bias);
    if (x.drop > 0) memcpy(&x.draws, a->in[a->nin - 1], sizeof x.draws);
    ctn__attend_out grad[3];
    for (int i = 0; i < 3; i++) grad[i] = result(a, i);
    ctn__attend_backward(a->priv, &x, operand(a, 4), operand(a, 3), a->in[5], grad, a->env->threads,
                         a->scratch);
    return CTN_OK;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* x (N,H,L,E) as (N,K,H/K,L,E), or (N,K,M,E) as (N,K,1,M,E). */
static ctn_tensor *grouped(const ctn_grad_args *a, ctn_tensor *x, int64_t K)
{
    if (!x) return NULL;
    const int64_t *d = x->d.dim;
    return ctn_reshape_at(a->at, x, CTN_SHAPE(d[0], K, d[1] / K, d[2], d[3]));
}

/* x, which has five dimensions, summed and reshaped to those of `like`. */
static ctn_tensor *ungrouped(const ctn_grad_args *a, ctn_tensor *x, const ctn_desc *like, int64_t K)
{
    const int64_t *d = like->dim;
    const ctn_desc five = {.dtype = like->dtype, .ndim = 5, .dim = {d[0], K, d[1] / K, d[2], d[3]}};
    x = x ? ctn__sum_to(a->at, x, &five) : NULL;
    return x ? ctn_reshape_at(a->at, x, 4, d) : NULL;
}

/* x (N) as a float type and with ndim dimensions. */
static ctn_tensor *per_sample(const char *at, ctn_tensor *x, ctn_dtype dtype, int ndim)
{
    int64_t d[CTN_MAX_DIMS];
    for (int i = 0; i < CTN_MAX_DIMS; i++) d[i] = i == 0 ? x->d.dim[0] : 1;
    return ctn_reshape_at(at, ctn_cast_at(at, x, dtype), ndim, d);
}

static ctn_status no_gradient(const ctn_grad_args *a, const char *what)
{
    return ctn_fail(CTN_EGRAD, "attention with dropout has no %s; set composed in its options (%s)",
                    what, a->at);
}

/* The call of an op as composed ops, in five dimensions. more: number of the operand that may be
 * the mask. */
static ctn__attention composed_of(const ctn_grad_args *a, int more)
{
    const int64_t K = a->in[1]->d.dim[1];
    ctn__attention c = {.at = a->at,
                        .q = grouped(a, a->in[0], K),
                        .k = grouped(a, a->in[1], K),
                        .v = grouped(a, a->in[2], K),
                        .scale = a->scalar[SCALE],
                        .causal = a->attr[CAUSAL] != 0,
                        .window = a->attr[WINDOW]};
    if (a->attr[MASK]) {
        const int64_t heads = a->in[more]->d.dim[1];
        c.mask = grouped(a, a->in[more++], heads > 1 ? K : 1);
    }
    if (a->attr[LENGTHS]) c.lengths = per_sample(a->at, a->in[more++], CTN_F32, 5);
    if (a->attr[FIRST]) c.first = per_sample(a->at, a->in[more], CTN_F32, 5);
    return c;
}

/* With a mask that needs its gradient, which is as large as the matrix itself. */
static ctn_status composed_grad(const ctn_grad_args *a)
{
    ctn_tensor *g[4];
    const int64_t K = a->in[1]->d.dim[1];
    if (a->nout > 2) return no_gradient(a, "gradient of the mask");
    const ctn__attention c = composed_of(a, 3);
    CTN_TRY(ctn__attention_grads(&c, grouped(a, a->gout[0], K), g));
    for (int i = 0; i < 4; i++) {
        const int64_t k = i < 3 || a->in[3]->d.dim[1] > 1 ? K : 1;
        if (a->need[i]) CTN_TRY(ctn__grad_to(a, i, ungrouped(a, g[i], &a->in[i]->d, k)));
    }
    return CTN_OK;
}

static ctn_status attention_grad(const ctn_grad_args *a)
{
    ctn_tensor *in[10] = {a->in[0], a->in[1], a->in[2], a->gout[0], a->out[0], a->out[1]}, *out[3];
    int nin = 6;
    if (a->attr[MASK] && a->need[3]) return composed_grad(a);
    for (int i = 3; i < a->nin; i++) in[nin++] = a->in[i];
    if (a->nout > 2) in[nin++] = a->out[2];
    const ctn_op_args args = {NATTR, NSCALAR, a->attr, a->scalar};
    CTN_TRY(ctn_apply_at(a->at, NULL, &ctn__op_attention_grad, nin, in, &args, out));
    for (int i = 0; i < 3; i++)
        if (a->need[i]) CTN_TRY(ctn__grad_to(a, i, out[i]));
    return CTN_OK;
}

static ctn_status attention_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *d[3], *out[4] = {NULL};
    const int64_t K = a->in[1]->d.dim[1];
    if (a->attr[MASK] && a->need[6])
        return ctn_fail(CTN_EGRAD,
                        "attention has no second derivative by its mask; set composed in its "
                        "options (%s)",
                        a->at);
    if (a->nin > 6 + (int)(a->attr[MASK] + a->attr[LENGTHS] + a->attr[FIRST]))
        return no_gradient(a, "second derivative");
    for (int i = 0; i < 3; i++) {
        d[i] = a->gout[i] ? grouped(a, a->gout[i], K) : NULL;
        if (a->gout[i] && !d[i]) return ctn_error_status();
    }
    const ctn__attention c = composed_of(a, 6);
    CTN_TRY(ctn__attention_seconds(&c, grouped(a, a->in[3], K), d, out));
    for (int i = 0; i < 4; i++) /* y and the logarithms are functions of q, k and v */
        if (a->need[i] && out[i])
            CTN_TRY(ctn__grad_to(a, i, ungrouped(a, out[i], &a->in[i]->d, K)));
    return CTN_OK;
}

/* ---- the ops --------------------------------------------------------------------------------- */

#define ATTENTION_OP                                                                  \
    .struct_size = sizeof(ctn_op), .nin = -1, .order = -1, .low_in = CTN_OPERANDS(3), \
    .low_out = CTN_OPERAND(0), .grad_in = CTN_OPERANDS(6), .attr_names = attr_names,  \
    .infer = attention_infer, .grad = attention_grad, .prepare = attention_prepare,   \
    .run = attention_run

ctn_op ctn__op_attention = {
    ATTENTION_OP,
    .name = "attention",
    .nout = 2,
    .flags = CTN_OP_STRIDED,
    .grad_out = CTN_OPERANDS(2),
};

ctn_op ctn__op_attention_dropout = {
    ATTENTION_OP,
    .name = "attention_dropout",
    .nout = 3,
    .flags = CTN_OP_STRIDED | CTN_OP_RANDOM | CTN_OP_TRAIN,
    .grad_out = CTN_OPERANDS(3),
};

ctn_op ctn__op_attention_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "attention_grad",
    .nin = -1,
    .nout = 3,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .low_in = CTN_OPERANDS(5),
    .low_out = CTN_OPERANDS(3),
    .grad_in = CTN_OPERANDS(10),
    .attr_names = attr_names,
    .infer = attention_grad_infer,
    .grad = attention_grad_grad,
    .prepare = attention_grad_prepare,
    .run = attention_grad_run,
};

/* ---- the call -------------------------------------------------------------------------------- */

typedef struct {
    const char *at;
    ctn_tensor *q, *k, *v, *mask;
    ctn_attention_opt o;
    double scale, dropout;
} call;

static int64_t heads(const ctn_desc *d)
{
    return d->ndim > 2 ? d->dim[d->ndim - 3] : 1;
}

static bool fits(const ctn_desc *q, const ctn_desc *k, const ctn_desc *v)
{
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2) return false;
    return q->dim[q->ndim - 1] == k->dim[k->ndim - 1] && k->dim[k->ndim - 2] == v->dim[v->ndim - 2];
}

static ctn_status check_per_sample(const call *c, const char *what, const ctn_tensor *l)
{
    char tq[128], tl[128];
    if (!l || (l->d.ndim == 1 && c->q->d.ndim >= 3 && l->d.dim[0] == c->q->d.dim[0] &&
               (l->d.dtype == CTN_I64 || l->d.dtype == CTN_I32)))
        return CTN_OK;
    return ctn_fail(CTN_ESHAPE,
                    "attention: %s is %s %s, expected one i64 or i32 for each sample of q %s (%s)",
                    what, ctn_dtype_name(l->d.dtype), ctn__shape_text(&l->d, tl, sizeof tl),
                    ctn__shape_text(&c->q->d, tq, sizeof tq), c->at);
}

static ctn_status check(const call *c)
{
    char tq[128], tk[128], tv[128];
    if (!fits(&c->q->d, &c->k->d, &c->v->d))
        return ctn_fail(
            CTN_ESHAPE,
            "attention: q is %s, k is %s, v is %s; expected (...,L,E), (...,M,E), (...,M,F) (%s)",
            ctn__shape_text(&c->q->d, tq, sizeof tq), ctn__shape_text(&c->k->d, tk, sizeof tk),
            ctn__shape_text(&c->v->d, tv, sizeof tv), c->at);
    if (c->o.window < 0 || !(c->o.dropout >= 0 && c->o.dropout < 1))
        return ctn_fail(CTN_EARG,
                        "attention: window is %lld and dropout is %g; expected a window of 0 or "
                        "more and a rate of at least 0 and below 1 (%s)",
                        (long long)c->o.window, c->o.dropout, c->at);
    CTN_TRY(check_per_sample(c, "lengths", c->o.lengths));
    return check_per_sample(c, "first", c->o.first);
}

/* x (...,L,E) as (N,H,L,E); a dimension that is missing has length 1. */
static ctn_tensor *four(const char *at, ctn_tensor *x)
{
    if (!x || x->d.ndim == 4) return x;
    int64_t d[4] = {1, 1, 1, 1};
    for (int i = 0; i < x->d.ndim; i++) d[4 - x->d.ndim + i] = x->d.dim[i];
    /* (N,L,E) has one head */
    if (x->d.ndim == 3) d[0] = d[1], d[1] = 1;
    return ctn_reshape_at(at, x, 4, d);
}

/* Can the kernel compute it? */
static bool has_kernel(const call *c)
{
    const ctn_desc *q = &c->q->d, *k = &c->k->d, *v = &c->v->d;
    if (c->o.composed || q->dtype != CTN_F32 || k->dtype != CTN_F32 || v->dtype != CTN_F32)
        return false;
    if (q->ndim > 4 || k->ndim != q->ndim || v->ndim != q->ndim) return false;
    if (ctn__count(q) == 0 || ctn__count(k) == 0 || ctn__count(v) == 0) return false;
    const bool group = q->ndim == 4 && k->dim[1] > 0 && q->dim[1] % k->dim[1] == 0;
    for (int i = 0; i < q->ndim - 2; i++)
        if (v->dim[i] != k->dim[i] || (k->dim[i] != q->dim[i] && !(i == 1 && group))) return false;
    const ctn_tensor *m = c->mask;
    if (m && (m->d.dtype != CTN_F32 || m->d.ndim > q->ndim)) return false;
    for (int i = 0; m && i < m->d.ndim; i++) {
        const int at = q->ndim - m->d.ndim + i;
        const int64_t n = at == q->ndim - 1 ? k->dim[q->ndim - 2] : q->dim[at];
        if (m->d.dim[i] != 1 && m->d.dim[i] != n) return false;
    }
    return true;
}

static ctn_tensor *by_kernel(const call *c)
{
    const ctn_desc *q = &c->q->d;
    ctn_tensor *in[6] = {four(c->at, c->q), four(c->at, c->k), four(c->at, c->v)}, *out[3];
    const int64_t attr[NATTR] = {c->o.causal != 0, c->o.window, c->mask != NULL,
                                 c->o.lengths != NULL, c->o.first != NULL};
    const ctn_scalar scalar[NSCALAR] = {CTN_CONST(c->scale), CTN_CONST(c->dropout)};
    int nin = 3;
    if (c->mask) { /* with the dimensions of q */
        ctn_desc d = {.ndim = q->ndim};
        for (int i = 0; i < q->ndim; i++) {
            const int from = i - (q->ndim - c->mask->d.ndim);
            d.dim[i] = from < 0 ? 1 : c->mask->d.dim[from];
        }
        in[nin++] = four(c->at, ctn_reshape_at(c->at, c->mask, d.ndim, d.dim));
    }
    if (c->o.lengths) in[nin++] = c->o.lengths;
    if (c->o.first) in[nin++] = c->o.first;
    ctn_op *op = c->dropout > 0 ? &ctn__op_attention_dropout : &ctn__op_attention;
    const ctn_op_args args = {NATTR, NSCALAR, attr, scalar};
    if (ctn_apply_at(c->at, NULL, op, nin, in, &args, out) < 0) return NULL;
    if (q->ndim == 4) return out[0];
    ctn_desc d = *q;
    d.dim[q->ndim - 1] = c->v->d.dim[c->v->d.ndim - 1];
    return ctn_reshape_at(c->at, out[0], d.ndim, d.dim);
}

/* x (...,H,L,E) as (...,K,H/K,L,E). */
static ctn_tensor *split_heads(const char *at, ctn_tensor *x, int64_t K)
{
    ctn_desc d = x->d;
    if (d.ndim >= CTN_MAX_DIMS) return x;
    for (int i = d.ndim; i > d.ndim - 2; i--) d.dim[i] = d.dim[i - 1];
    d.dim[d.ndim - 2] = heads(&x->d) / K;
    d.dim[d.ndim - 3] = K;
    d.ndim++;
    return ctn_reshape_at(at, x, d.ndim, d.dim);
}

static ctn_tensor *by_ops(const call *c)
{
    const int64_t H = heads(&c->q->d), K = heads(&c->k->d);
    const bool group = K > 1 && H != K && H % K == 0;
    ctn__attention a = {.at = c->at,
                        .q = c->q,
                        .k = c->k,
                        .v = c->v,
                        .mask = c->mask,
                        .scale = CTN_CONST(c->scale),
                        .causal = c->o.causal != 0,
                        .window = c->o.window,
                        .dropout = c->dropout};
    if (group) {
        a.q = split_heads(c->at, a.q, K);
        a.k = split_heads(c->at, a.k, K);
        a.v = split_heads(c->at, a.v, K);
        if (a.mask && a.mask->d.ndim > 2)
            a.mask = split_heads(c->at, a.mask, heads(&a.mask->d) > 1 ? K : 1);
    }
    const int ndim = c->q->d.ndim + group;
    if (c->o.lengths && !(a.lengths = per_sample(c->at, c->o.lengths, c->q->d.dtype, ndim)))
        return NULL;
    if (c->o.first && !(a.first = per_sample(c->at, c->o.first, c->q->d.dtype, ndim))) return NULL;
    if (!a.q || !a.k || !a.v || (c->mask && !a.mask)) return NULL;
    ctn_tensor *y = ctn__attention_composed(&a);
    if (!y || !group) return y;
    ctn_desc d = c->q->d;
    d.dim[d.ndim - 1] = c->v->d.dim[c->v->d.ndim - 1];
    return ctn_reshape_at(c->at, y, d.ndim, d.dim);
}

ctn_tensor *ctn_attention_at(const char *at, ctn_tensor *q, ctn_tensor *k, ctn_tensor *v,
                             ctn_tensor *mask, const ctn_attention_opt *opt)
{
    call c = {.at = at, .q = q, .k = k, .v = v, .mask = mask};
    if (!q || !k || !v) return ctn_matmul_at(at, NULL, NULL, 0, 1);
    if (ctn__opt("attention", &c.o, sizeof c.o, opt) < 0 || check(&c) < 0) return NULL;
    const int64_t E = q->d.dim[q->d.ndim - 1];
    c.scale = c.o.scale != 0 ? c.o.scale : 1 / sqrt((double)(E > 0 ? E : 1));
    c.dropout = ctn_context_training(q->ctx) ? c.o.dropout : 0;
    return has_kernel(&c) ? by_kernel(&c) : by_ops(&c);
}
