/* SPDX-License-Identifier: Apache-2.0
 *
 * Tree LSTMs for nodes with any number of children (child_sum_tree_lstm) and with a fixed number in
 * a fixed order (nary_tree_lstm), and the LSTM with peepholes. Their matrices are linear modules
 * with the names that they have in Chainer. The formulas are in catena/nn.h.
 */
#include "nn/nn.h"

/* Make a linear module as a child of m. */
static ctn_status add_linear(ctn_module **lin, ctn_module *m, const char *name, int64_t in,
                             int64_t out, bool bias)
{
    CTN_TRY(ctn_linear_new(lin, m->ctx, in, out, CTN_OPT(ctn_linear_opt, .no_bias = !bias)));
    ctn_status st = ctn_module_add(m, name, *lin);
    if (st < 0) ctn_module_free(*lin);
    return st;
}

static ctn_status check_sizes(const char *who, int64_t in, int64_t hidden, int64_t children)
{
    if (in >= 1 && hidden >= 1 && children >= 1) return CTN_OK;
    return ctn_fail(CTN_EARG, "%s: %lld inputs, state of %lld, %lld children; all must be positive",
                    who, (long long)in, (long long)hidden, (long long)children);
}

/* Check the inputs x, h, c. children: -1 for any number. Sets *n to it, 0 for leaves. */
static ctn_status check_inputs(const ctn_tensors *in, int64_t hidden, int64_t children, int64_t *n)
{
    const ctn_tensor *x = in->t[0], *h = in->t[1], *c = in->t[2];
    char tx[128], th[128], tc[128];
    if (in->n > 3) return ctn_fail(CTN_EARG, "got %d inputs, expected x, h, c", in->n);
    *n = 0;
    if (!h && !c) return CTN_OK;
    if (!h || !c) return ctn_fail(CTN_EARG, "got only one of h and c, expected both or neither");
    if (x->d.ndim != 2 || h->d.ndim != 3 || !ctn__same_shape(&h->d, &c->d) ||
        h->d.dim[1] != x->d.dim[0] || h->d.dim[2] != hidden)
        return ctn_fail(CTN_ESHAPE,
                        "x is %s, h is %s, c is %s; expected (N,in) and twice (children,N,%lld)",
                        ctn__shape_text(&x->d, tx, sizeof tx),
                        ctn__shape_text(&h->d, th, sizeof th),
                        ctn__shape_text(&c->d, tc, sizeof tc), (long long)hidden);
    *n = h->d.dim[0];
    if (children >= 0 && *n != children)
        return ctn_fail(CTN_ESHAPE, "h is %s, expected %lld children",
                        ctn__shape_text(&h->d, th, sizeof th), (long long)children);
    return CTN_OK;
}

/* The results h, c of nodes with n children, whose states are c (n,N,H). */
static ctn_tensors cell(const char *at, int64_t n, ctn_tensor *c, ctn_tensor *gates)
{
    ctn_tensors out = {0};
    ctn_tensor **each = ctn__calloc((size_t)n + 1, sizeof(ctn_tensor *));
    if (!each) return out;
    if ((n == 0 || ctn_separate_at(at, c, 0, (int)n, each) >= 0) &&
        ctn_tree_lstm_at(at, (int)n, each, gates, &out.t[0], &out.t[1]) >= 0)
        out.n = 2;
    ctn__free(each);
    return out;
}

/* ---- any number of children ------------------------------------------------------------------ */

typedef struct {
    ctn_module *x, *aio, *f;
    int64_t hidden;
} child_sum;

static ctn_tensors child_sum_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const child_sum *s = self;
    const char *at = m->at;
    const int64_t H = s->hidden, zero = 0;
    int64_t n;
    ctn_tensor *h = in.t[1];
    if (check_inputs(&in, H, -1, &n) < 0) return (ctn_tensors){0};
    ctn_tensor *p = ctn_call_at(at, s->x, in.t[0]);
    ctn_tensor *aio = ctn_slice_at(at, p, 1, 0, 3 * H);
    if (n == 0 || !aio) return cell(at, 0, NULL, aio);
    aio = ctn_add_at(at, aio, ctn_call_at(at, s->aio, ctn_sum_at(at, h, 1, &zero, 0)));
    ctn_tensor *f = ctn_add_at(at, ctn_call_at(at, s->f, h), ctn_slice_at(at, p, 1, 3 * H, H));
    f = ctn_transpose_at(at, f, CTN_SHAPE(1, 0, 2)); /* (N,n,H) */
    ctn_tensor *gates[2] = {aio, ctn_reshape_at(at, f, CTN_SHAPE(aio->d.dim[0], n * H))};
    return cell(at, n, in.t[2], ctn_concat_at(at, 2, gates, 1));
}

ctn_status ctn_child_sum_tree_lstm_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t hidden)
{
    ctn_status st = CTN_OK;
    ctn_module *made = NULL;
    if (!m) return ctn_fail(CTN_EARG, "child_sum_tree_lstm_new: NULL argument");
    *m = NULL;
    CTN_TRY(check_sizes("child_sum_tree_lstm_new", in, hidden, 1));
    child_sum *s = ctn__calloc(1, sizeof *s);
    if (!s) return CTN_ENOMEM;
    s->hidden = hidden;
    CTN_TRY(ctn__module_own(&made, ctx, NULL, s, sizeof *s, CTN__REFS(child_sum, hidden)));
    made->forward_multi = child_sum_forward;
    CTN_TRY_GOTO(st, fail, add_linear(&s->x, made, "W_x", in, 4 * hidden, true));
    CTN_TRY_GOTO(st, fail, add_linear(&s->aio, made, "W_h_aio", hidden, 3 * hidden, false));
    CTN_TRY_GOTO(st, fail, add_linear(&s->f, made, "W_h_f", hidden, hidden, false));
    *m = made;
    return CTN_OK;
fail:
    ctn_module_free(made);
    return st;
}

/* ---- a fixed number of children -------------------------------------------------------------- */

typedef struct {
    int64_t hidden, children;
} nary; /* its children are W_x, W_h1, W_h2, ... */

static ctn_tensors nary_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const nary *s = self;
    const char *at = m->at;
    int64_t n;
    if (check_inputs(&in, s->hidden, s->children, &n) < 0) return (ctn_tensors){0};
    ctn_tensor *gates = ctn_call_at(at, ctn_module_child(m, 0), in.t[0]);
    for (int64_t k = 0; k < n && gates; k++) {
        ctn_tensor *h = ctn_select_at(at, in.t[1], 0, k);
        gates = ctn_add_at(at, gates, ctn_call_at(at, ctn_module_child(m, (int)k + 1), h));
    }
    if (n > 0 || !gates) return cell(at, n, in.t[2], gates);
    return cell(at, 0, NULL, ctn_slice_at(at, gates, 1, 0, 3 * s->hidden));
}

ctn_status ctn_nary_tree_lstm_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t hidden,
                                  int64_t children)
{
    ctn_status st = CTN_OK;
    ctn_module *made = NULL, *lin;
    if (!m) return ctn_fail(CTN_EARG, "nary_tree_lstm_new: NULL argument");
    *m = NULL;
    CTN_TRY(check_sizes("nary_tree_lstm_new", in, hidden, children));
    const int64_t out = (3 + children) * hidden;
    nary *s = ctn__calloc(1, sizeof *s);
    if (!s) return CTN_ENOMEM;
    *s = (nary){hidden, children};
    CTN_TRY(ctn__module_own(&made, ctx, NULL, s, sizeof *s, 0));
    made->forward_multi = nary_forward;
    CTN_TRY_GOTO(st, fail, add_linear(&lin, made, "W_x", in, out, true));
    for (int64_t k = 1; k <= children; k++) {
        char name[32];
        snprintf(name, sizeof name, "W_h%lld", (long long)k);
        CTN_TRY_GOTO(st, fail, add_linear(&lin, made, name, hidden, out, false));
    }
    *m = made;
    return CTN_OK;
fail:
    ctn_module_free(made);
    return st;
}

/* ---- peepholes ------------------------------------------------------------------------------- */

typedef struct {
    ctn_module *upward, *lateral, *peep_i, *peep_f, *peep_o;
    int64_t hidden;
} peephole;

/* One step: p (N,4 H) are the products with the inputs. */
static ctn_status peephole_step(const peephole *s, const char *at, ctn_tensor *p, ctn_tensor **h,
                                ctn_tensor **c)
{
    enum { A, I, F, O, GATES };
    ctn_tensor *g[GATES], *old = *c;
    p = ctn_add_at(at, p, ctn_call_at(at, s->lateral, *h));
    if (!p) return ctn_error_status();
    p = ctn_reshape_at(at, p, CTN_SHAPE(p->d.dim[0], s->hidden, GATES));
    CTN_TRY(ctn_separate_at(at, p, 2, GATES, g));
    ctn_tensor *i = ctn_sigmoid_at(at, ctn_add_at(at, g[I], ctn_call_at(at, s->peep_i, old)));
    ctn_tensor *f = ctn_sigmoid_at(at, ctn_add_at(at, g[F], ctn_call_at(at, s->peep_f, old)));
    *c = ctn_add_at(at, ctn_mul_at(at, ctn_tanh_at(at, g[A]), i), ctn_mul_at(at, f, old));
    if (!*c) return ctn_error_status();
    ctn_tensor *o = ctn_sigmoid_at(at, ctn_add_at(at, g[O], ctn_call_at(at, s->peep_o, *c)));
    *h = ctn_mul_at(at, o, ctn_tanh_at(at, *c));
    return *h ? CTN_OK : ctn_error_status();
}

static ctn_status check_sequence(const peephole *s, const ctn_tensors *in)
{
    const ctn_desc *d = &in->t[0]->d;
    char t[128];
    if (in->n > 3) return ctn_fail(CTN_EARG, "got %d inputs, expected x, h0, c0", in->n);
    if (d->ndim != 3 || d->dim[0] < 1)
        return ctn_fail(CTN_ESHAPE, "x is %s, expected (steps,samples,inputs)",
                        ctn__shape_text(d, t, sizeof t));
    for (int i = 1; i < 3; i++) {
        const ctn_tensor *v = in->t[i];
        if (v && (v->d.ndim != 2 || v->d.dim[0] != d->dim[1] || v->d.dim[1] != s->hidden))
            return ctn_fail(CTN_ESHAPE, "%s is %s, expected (%lld,%lld)", i == 1 ? "h0" : "c0",
                            ctn__shape_text(&v->d, t, sizeof t), (long long)d->dim[1],
                            (long long)s->hidden);
    }
    return CTN_OK;
}

static ctn_tensors peephole_forward(void *self, ctn_module *m, ctn_tensors in)
{
    const peephole *s = self;
    const char *at = m->at;
    ctn_tensors out = {0};
    if (check_sequence(s, &in) < 0) return out;
    const ctn_desc *d = &in.t[0]->d;
    const int64_t T = d->dim[0];
    ctn_tensor *zero = ctn_full_at(at, m->ctx, 0, d->dtype, CTN_SHAPE(d->dim[1], s->hidden));
    ctn_tensor *h = in.t[1] ? in.t[1] : zero, *c = in.t[2] ? in.t[2] : zero;
    ctn_tensor *p = ctn_call_at(at, s->upward, in.t[0]);
    ctn_tensor **y = ctn__calloc((size_t)T, sizeof(ctn_tensor *));
    ctn_status st = y && p && h && c ? CTN_OK : CTN_EARG;
    for (int64_t t = 0; t < T && st >= 0; t++) {
        st = peephole_step(s, at, ctn_select_at(at, p, 0, t), &h, &c);
        y[t] = h;
    }
    if (st >= 0 && (out.t[0] = ctn_stack_at(at, (int)T, y, 0))) {
        out.t[1] = h;
        out.t[2] = c;
        out.n = 3;
    }
    ctn__free(y);
    return out;
}

ctn_status ctn_peephole_lstm_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t hidden)
{
    ctn_status st = CTN_OK;
    ctn_module *made = NULL;
    if (!m) return ctn_fail(CTN_EARG, "peephole_lstm_new: NULL argument");
    *m = NULL;
    CTN_TRY(check_sizes("peephole_lstm_new", in, hidden, 1));
    peephole *s = ctn__calloc(1, sizeof *s);
    if (!s) return CTN_ENOMEM;
    s->hidden = hidden;
    CTN_TRY(ctn__module_own(&made, ctx, NULL, s, sizeof *s, CTN__REFS(peephole, hidden)));
    made->forward_multi = peephole_forward;
    CTN_TRY_GOTO(st, fail, add_linear(&s->upward, made, "upward", in, 4 * hidden, true));
    CTN_TRY_GOTO(st, fail, add_linear(&s->lateral, made, "lateral", hidden, 4 * hidden, false));
    CTN_TRY_GOTO(st, fail, add_linear(&s->peep_i, made, "peep_i", hidden, hidden, false));
    CTN_TRY_GOTO(st, fail, add_linear(&s->peep_f, made, "peep_f", hidden, hidden, false));
    CTN_TRY_GOTO(st, fail, add_linear(&s->peep_o, made, "peep_o", hidden, hidden, false));
    *m = made;
    return CTN_OK;
fail:
    ctn_module_free(made);
    return st;
}
