/* SPDX-License-Identifier: Apache-2.0
 *
 * rnn: one layer of an LSTM, a GRU or a plain recurrent network in one direction, as PyTorch
 * defines them. The formulas are in common/rnn.h, the kernels in common/rnn_body.h. The op
 * contains only what depends on the step before: one product with W_hh, which is packed for it, and
 * one pass over the gates per step. The products with W_ih and both weight gradients take all
 * steps at once and are ordinary ops.
 *
 * Measured, and the reason not to use oneDNN's own rnn primitives: see ARCHITECTURE.md.
 */
#include "ops/common/rnn.h"
#include "engine/isa.h"
#include "ops/common/vmath.h"

/* rnn:      p (T,N,K H), W_hh (K H,H), h0, [c0], [b_hh], [lengths] -> act, y, h, [more], [c]
 * rnn_grad: act, W_hh, [more, c0 or h0], [y], [lengths], [gy], [gh], [gc] -> gp, gh0, [gc0 or gq]
 * act are the gates (T,N,K H). more is c of each step in an LSTM, and q of gate n in a GRU. */
enum { P, WEIGHT, H0, C0 };
enum { ACT, Y, FINAL_H, MORE, FINAL_C };
enum { GP, GH, GC, GQ = GC };
enum { MODE, REVERSE, LENGTHS, BIAS, NATTR, GIVEN = BIAS }; /* GIVEN: bits for gy, gh, gc */
static const char *const attr_names[] = {"mode", "reverse", "lengths", "bias"};
static const char *const grad_attr_names[] = {"mode", "reverse", "lengths", "given"};

typedef struct {
    int64_t steps, N, H, K;
    int bias, lengths; /* input numbers in rnn; lengths 0: none */
    ctn__isa isa;
} sizes;

/* p: description of p or act. */
static sizes sizes_of(const int64_t *attr, const ctn_desc *p)
{
    const int64_t K = ctn__rnn_gates(attr[MODE]);
    sizes z = {.steps = p->dim[0], .N = p->dim[1], .H = p->dim[2] / K, .K = K};
    z.bias = attr[MODE] == CTN__RNN_LSTM ? C0 + 1 : C0;
    z.lengths = attr[LENGTHS] ? z.bias + (attr[BIAS] != 0) : 0;
    z.isa = ctn__isa_in_use();
    return z;
}

/* Input numbers in rnn_grad; 0: none. */
typedef struct {
    int more, first, states, lengths, gy, gh, gc;
} grad_in;

static grad_in grad_inputs(const int64_t *attr)
{
    grad_in in = {0};
    int n = WEIGHT + 1;
    if (attr[MODE] <= CTN__RNN_GRU) {
        in.more = in.states = n++;
        in.first = n++;
    }
    if (attr[MODE] == CTN__RNN_GRU) in.states = n++;
    if (attr[LENGTHS]) in.lengths = n++;
    if (attr[GIVEN] & 1) in.gy = n++;
    if (attr[GIVEN] & 2) in.gh = n++;
    if (attr[GIVEN] & 4) in.gc = n++;
    return in;
}

/* Steps of sample n; lengths is an input number, 0: none. */
static int64_t length_of(const ctn_run_args *a, int lengths, const sizes *z, int64_t n)
{
    return lengths ? ctn__index_get(a->in[lengths], a->din[lengths].dtype, n) : z->steps;
}

/* ---- products -------------------------------------------------------------------------------- */

static size_t padded(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The scratch of the products, which lies before that of the kernels. */
static size_t product_scratch(const ctn_run_args *a)
{
    return padded(a->priv ? ctn__prim_scratch(a->priv) : ctn__product_f64_scratch(a->env->threads));
}

static ctn_desc matrix(ctn_dtype t, int64_t rows, int64_t cols)
{
    ctn_desc d = {.dtype = t, .ndim = 2, .dim = {rows, cols}};
    ctn__plain(&d);
    return d;
}

/* y = x W^T (forward) or x W (backward) for one step. */
static ctn_status multiply(const ctn_run_args *a, const sizes *z, const void *x, void *y,
                           bool forward)
{
    const int64_t W = z->K * z->H;
    if (a->priv) {
        void *ptr[4] = {(void *)(uintptr_t)x, (void *)(uintptr_t)a->in[WEIGHT], NULL, y};
        return ctn__prim_run(a->priv, ptr, a->scratch);
    }
    const ctn_desc dx = matrix(CTN_F64, z->N, forward ? z->H : W);
    const ctn_desc dy = matrix(CTN_F64, z->N, forward ? W : z->H);
    ctn_desc w = matrix(CTN_F64, W, z->H);
    if (forward) w = (ctn_desc){.dtype = CTN_F64, .ndim = 2, .dim = {z->H, W}, .stride = {1, z->H}};
    ctn__product_f64(&dx, &w, &dy, x, a->in[WEIGHT], y, a->env->threads, a->scratch);
    return CTN_OK;
}

/* ---- kernels --------------------------------------------------------------------------------- */

#define T float
#define NAME(x) x##_f32
#define SIGMOID ctn__sigmoidf
#define TANH ctn__tanhf
#include "ops/common/rnn_body.h"

#define T double
#define NAME(x) x##_f64
#define SIGMOID ctn__sigmoid
#define TANH tanh
#include "ops/common/rnn_body.h"

static ctn_status rnn_run_any(const ctn_run_args *a)
{
    const int lengths = sizes_of(a->attr, &a->din[P]).lengths;
    if (lengths)
        CTN_TRY(
            ctn__index_check("lengths", a->in[lengths], &a->din[lengths], a->din[P].dim[0] + 1));
    return a->din[P].dtype == CTN_F32 ? forward_f32(a) : forward_f64(a);
}

static ctn_status rnn_grad_run_any(const ctn_run_args *a)
{
    return a->din[ACT].dtype == CTN_F32 ? backward_f32(a) : backward_f64(a);
}

/* Without samples there is nothing to compute. */
static ctn_status run_empty(const ctn_run_args *a)
{
    (void)a;
    return CTN_OK;
}

/* elements: of the scratch that the kernels need. */
static ctn_status prepare(ctn_prepare_args *a, bool forward, int64_t elements,
                          ctn_status (*run)(const ctn_run_args *a))
{
    const sizes z = sizes_of(a->attr, &a->din[P]);
    const int64_t W = z.K * z.H;
    const ctn_dtype t = a->din[P].dtype;
    a->kernel = "empty";
    if (z.N == 0) return CTN_OK;
    a->flops = 2 * z.steps * z.N * W * z.H;
    if (t == CTN_F32) {
        const ctn_desc x = matrix(t, z.N, forward ? z.H : W), y = matrix(t, z.N, forward ? W : z.H);
        ctn__prim *prim;
        CTN_TRY(ctn__prim_packed(&prim, a->engine, &x, &a->din[WEIGHT], forward, &y));
        CTN_TRY(ctn__with_prim(a, prim, run));
    } else {
        a->kernel = "own:blocked";
        a->scratch = ctn__product_f64_scratch(a->threads);
        a->run = run;
    }
    a->scratch = padded(a->scratch) + (size_t)elements * ctn_dtype_size(t);
    return CTN_OK;
}

static ctn_status rnn_prepare(ctn_prepare_args *a)
{
    const sizes z = sizes_of(a->attr, &a->din[P]);
    return prepare(a, true, (z.N + 1) * z.K * z.H + 2 * z.N * z.H, rnn_run_any);
}

static ctn_status rnn_grad_prepare(ctn_prepare_args *a)
{
    const sizes z = sizes_of(a->attr, &a->din[ACT]);
    return prepare(a, false, (3 * z.N + 1) * z.H + 2 * z.N * z.K * z.H, rnn_grad_run_any);
}

/* ---- the op ---------------------------------------------------------------------------------- */

/* Shapes were checked by check, below. */
static ctn_status rnn_infer(ctn_infer_args *a)
{
    const ctn_desc *p = a->in[P];
    const sizes z = sizes_of(a->attr, p);
    const int64_t steps[3] = {z.steps, z.N, z.H};
    CTN_TRY(ctn__infer_arith(a, p));
    a->nout = a->attr[MODE] == CTN__RNN_LSTM ? 5 : a->attr[MODE] == CTN__RNN_GRU ? 4 : 3;
    a->out[ACT] = *p;
    CTN_TRY(ctn__desc_set(&a->out[Y], a->name, p->dtype, 3, steps));
    a->out[FINAL_H] = *a->in[H0];
    if (a->nout > MORE) a->out[MORE] = a->out[Y];
    if (a->nout > FINAL_C) a->out[FINAL_C] = *a->in[C0];
    return CTN_OK;
}

/* h before each step, (T,N,H). It is y of the step before; in reverse, y of the step after, or h0
 * in a sample's last step. */
static ctn_tensor *states_before(const ctn_grad_args *a, ctn_tensor *lengths)
{
    const char *at = a->at;
    ctn_tensor *y = a->out[Y];
    const int64_t *d = y->d.dim;
    ctn_tensor *h0 = ctn_reshape_at(at, a->in[H0], CTN_SHAPE(1, d[1], d[2])), *in[2] = {h0, h0};
    if (d[0] == 1) return h0;
    const int back = a->attr[REVERSE] != 0;
    in[!back] = ctn_slice_at(at, y, 0, back, d[0] - 1);
    ctn_tensor *s = ctn_concat_at(at, 2, in, 0);
    return back && lengths ? ctn_where_at(at, ctn__rnn_within(at, lengths, d[0], 1), s, h0) : s;
}

/* gW_hh = gq^T h, gb_hh = sum of gq, over all steps and samples. */
static ctn_status weight_grads(const ctn_grad_args *a, const sizes *z, ctn_tensor *gq)
{
    const int64_t rows = z->steps * z->N;
    ctn_tensor *g = ctn_reshape_at(a->at, gq, CTN_SHAPE(rows, z->K * z->H));
    if (a->need[WEIGHT]) {
        ctn_tensor *h = states_before(a, z->lengths ? a->in[z->lengths] : NULL);
        h = ctn_reshape_at(a->at, h, CTN_SHAPE(rows, z->H));
        CTN_TRY(ctn__grad_to(a, WEIGHT, ctn_matmul_at(a->at, g, h, 1, 0)));
    }
    if (a->attr[BIAS] && a->need[z->bias])
        CTN_TRY(ctn__grad_to(a, z->bias, ctn_sum_at(a->at, g, 1, (const int64_t[]){0}, 0)));
    return CTN_OK;
}

static ctn_status rnn_grad_of(const ctn_grad_args *a)
{
    const sizes z = sizes_of(a->attr, &a->in[P]->d);
    const int64_t mode = a->attr[MODE];
    ctn_tensor *in[CTN_MAX_IN] = {a->out[ACT], a->in[WEIGHT]}, *out[CTN_MAX_OUT];
    ctn_tensor *gy = a->gout[Y], *gh = a->gout[FINAL_H];
    ctn_tensor *gc = mode == CTN__RNN_LSTM ? a->gout[FINAL_C] : NULL;
    int64_t attr[NATTR] = {mode, a->attr[REVERSE], a->attr[LENGTHS],
                           (gy != NULL) | (gh != NULL) << 1 | (gc != NULL) << 2};
    const grad_in i = grad_inputs(attr);
    if (i.more) in[i.more] = a->out[MORE];
    if (i.first) in[i.first] = mode == CTN__RNN_LSTM ? a->in[C0] : a->in[H0];
    if (mode == CTN__RNN_GRU) in[i.states] = a->out[Y];
    if (i.lengths) in[i.lengths] = a->in[z.lengths];
    if (gy) in[i.gy] = gy;
    if (gh) in[i.gh] = gh;
    if (gc) in[i.gc] = gc;
    int nin = 2;
    while (nin < CTN_MAX_IN && in[nin]) nin++;
    ctn_op_args args = {.nattr = NATTR, .attr = attr};
    CTN_TRY(ctn_apply_at(a->at, a->ctx, &ctn__op_rnn_grad, nin, in, &args, out));
    if (a->need[P]) a->gin[P] = out[GP];
    if (a->need[H0]) a->gin[H0] = out[GH];
    if (mode == CTN__RNN_LSTM && a->need[C0]) a->gin[C0] = out[GC];
    return weight_grads(a, &z, mode == CTN__RNN_GRU ? out[GQ] : out[GP]);
}

ctn_op ctn__op_rnn = {
    .struct_size = sizeof(ctn_op),
    .name = "rnn",
    .nin = -1,
    .nout = 5,
    .order = 1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(6) & ~CTN_OPERAND(P),
    .grad_out = CTN_OPERAND(ACT) | CTN_OPERAND(Y) | CTN_OPERAND(MORE),
    .inplace = CTN_OPERAND(P),
    .attr_names = attr_names,
    .infer = rnn_infer,
    .grad = rnn_grad_of,
    .prepare = rnn_prepare,
    .run = run_empty,
};

static ctn_status rnn_grad_infer(ctn_infer_args *a)
{
    const ctn_desc *act = a->in[ACT];
    const sizes z = sizes_of(a->attr, act);
    a->nout = a->attr[MODE] <= CTN__RNN_GRU ? 3 : 2;
    a->out[GP] = *act;
    CTN_TRY(ctn__desc_set(&a->out[GH], a->name, act->dtype, 2, (const int64_t[]){z.N, z.H}));
    if (a->nout > GC) a->out[GC] = a->attr[MODE] == CTN__RNN_LSTM ? a->out[GH] : *act;
    return CTN_OK;
}

static ctn_status rnn_grad_grad(const ctn_grad_args *a)
{
    return ctn_fail(CTN_EGRAD,
                    "the layer called at %s can be differentiated only once; set .composed = 1 in "
                    "its options for gradients of gradients",
                    a->at);
}

ctn_op ctn__op_rnn_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "rnn_grad",
    .nin = -1,
    .nout = 3,
    .order = 1,
    .prec = CTN_PREC_F32,
    .inplace = CTN_OPERAND(ACT),
    .attr_names = grad_attr_names,
    .infer = rnn_grad_infer,
    .grad = rnn_grad_grad,
    .prepare = rnn_grad_prepare,
    .run = run_empty,
};

/* ---- calls ----------------------------------------------------------------------------------- */

static bool is_shape(const ctn_tensor *t, int64_t a, int64_t b)
{
    return !t || (t->d.ndim == (b < 0 ? 1 : 2) && t->d.dim[0] == a && (b < 0 || t->d.dim[1] == b));
}

static ctn_status check_operand(const char *name, const char *what, const ctn_tensor *x,
                                const ctn_tensor *t, int64_t a, int64_t b)
{
    char found[128], expected[64];
    if (t && t->d.dtype != x->d.dtype)
        return ctn_fail(CTN_EDTYPE, "%s: x is %s, %s is %s; expected the same type", name,
                        ctn_dtype_name(x->d.dtype), what, ctn_dtype_name(t->d.dtype));
    if (is_shape(t, a, b)) return CTN_OK;
    if (b < 0) snprintf(expected, sizeof expected, "(%lld)", (long long)a);
    else snprintf(expected, sizeof expected, "(%lld,%lld)", (long long)a, (long long)b);
    return ctn_fail(CTN_ESHAPE, "%s: %s is %s, expected %s", name, what,
                    ctn__shape_text(&t->d, found, sizeof found), expected);
}

static ctn_status check(const char *name, ctn__rnn_mode mode, const ctn_tensor *x,
                        const ctn_rnn_weights *w, const ctn_rnn_opt *o)
{
    char t[128];
    if (x->d.ndim != 3 || x->d.dim[0] < 1)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, expected (steps,samples,inputs), at least 1 step",
                        name, ctn__shape_text(&x->d, t, sizeof t));
    const int64_t K = ctn__rnn_gates(mode), N = x->d.dim[1];
    if (w->w_hh->d.ndim != 2 || w->w_hh->d.dim[0] < K || w->w_hh->d.dim[0] % K)
        return ctn_fail(CTN_ESHAPE, "%s: w_hh is %s, expected (%lld H,H)", name,
                        ctn__shape_text(&w->w_hh->d, t, sizeof t), (long long)K);
    if (w->w_hr && mode != CTN__RNN_LSTM)
        return ctn_fail(CTN_EARG, "%s: only an LSTM has a projection (w_hr)", name);
    const int64_t W = w->w_hh->d.dim[0], H = W / K, out = w->w_hr ? w->w_hh->d.dim[1] : H;
    CTN_TRY(check_operand(name, "w_ih", x, w->w_ih, W, x->d.dim[2]));
    CTN_TRY(check_operand(name, "w_hh", x, w->w_hh, W, out));
    CTN_TRY(check_operand(name, "b_ih", x, w->b_ih, W, -1));
    CTN_TRY(check_operand(name, "b_hh", x, w->b_hh, W, -1));
    CTN_TRY(check_operand(name, "w_hr", x, w->w_hr, out, H));
    CTN_TRY(check_operand(name, "h0", x, o->h0, N, out));
    CTN_TRY(check_operand(name, "c0", x, mode == CTN__RNN_LSTM ? o->c0 : NULL, N, H));
    if (o->lengths && ((o->lengths->d.dtype != CTN_I64 && o->lengths->d.dtype != CTN_I32) ||
                       !is_shape(o->lengths, N, -1)))
        return ctn_fail(CTN_ESHAPE, "%s: lengths is %s %s, expected (%lld) of i64 or i32", name,
                        ctn_dtype_name(o->lengths->d.dtype),
                        ctn__shape_text(&o->lengths->d, t, sizeof t), (long long)N);
    return CTN_OK;
}

/* Records the op; out: y, h, c. */
static ctn_status apply(const ctn__rnn *l, ctn_tensor **out)
{
    const bool lstm = l->mode == CTN__RNN_LSTM;
    ctn_tensor *in[6] = {l->p, l->w_hh, l->h0}, *all[CTN_MAX_OUT];
    int n = C0;
    if (lstm) in[n++] = l->c0;
    if (l->b_hh) in[n++] = l->b_hh;
    if (l->lengths) in[n++] = l->lengths;
    int64_t attr[NATTR] = {l->mode, l->reverse, l->lengths != NULL, l->b_hh != NULL};
    ctn_op_args args = {.nattr = NATTR, .attr = attr};
    CTN_TRY(ctn_apply_at(l->at, NULL, &ctn__op_rnn, n, in, &args, all));
    out[0] = all[Y];
    out[1] = all[FINAL_H];
    out[2] = lstm ? all[FINAL_C] : NULL;
    return CTN_OK;
}

static ctn_status record(const char *at, const char *name, ctn__rnn_mode mode, ctn_tensor *x,
                         const ctn_rnn_weights *w, const ctn_rnn_opt *opt, ctn_tensor **out)
{
    ctn_rnn_opt o;
    CTN_TRY(ctn__opt(name, &o, sizeof o, opt));
    if (mode == CTN__RNN_TANH && o.relu) mode = CTN__RNN_RELU;
    if (!x || !w || !w->w_ih || !w->w_hh)
        return ctn_error_status() < 0
                   ? ctn_error_status()
                   : ctn_fail(CTN_EARG, "%s: x or weights are NULL (%s)", name, at);
    CTN_TRY(check(name, mode, x, w, &o));
    const int64_t K = ctn__rnn_gates(mode), N = x->d.dim[1], H = w->w_hh->d.dim[0] / K;
    const ctn_dtype t = x->d.dtype;
    ctn__rnn l = {.at = at, .mode = mode, .reverse = o.reverse != 0, .w_hh = w->w_hh};
    l.b_hh = w->b_hh;
    l.w_hr = w->w_hr;
    l.lengths = o.lengths;
    l.p = ctn_linear_at(at, x, w->w_ih, w->b_ih);
    l.h0 = o.h0 ? o.h0 : ctn_full_at(at, x->ctx, 0, t, CTN_SHAPE(N, w->w_hh->d.dim[1]));
    if (mode == CTN__RNN_LSTM) l.c0 = o.c0 ? o.c0 : ctn_full_at(at, x->ctx, 0, t, CTN_SHAPE(N, H));
    if (!l.p || !l.h0 || (mode == CTN__RNN_LSTM && !l.c0)) return ctn_error_status();
    return l.w_hr || o.composed ? ctn__rnn_composed(&l, out) : apply(&l, out);
}

static ctn_status give(ctn_status st, ctn_tensor *const *from, ctn_tensor **y, ctn_tensor **h,
                       ctn_tensor **c)
{
    if (y) *y = st < 0 ? NULL : from[0];
    if (h) *h = st < 0 ? NULL : from[1];
    if (c) *c = st < 0 ? NULL : from[2];
    return st;
}

ctn_status ctn_lstm_at(const char *at, ctn_tensor *x, const ctn_rnn_weights *w,
                       const ctn_rnn_opt *opt, ctn_tensor **y, ctn_tensor **h, ctn_tensor **c)
{
    ctn_tensor *out[3] = {NULL};
    return give(record(at, "lstm", CTN__RNN_LSTM, x, w, opt, out), out, y, h, c);
}

ctn_status ctn_gru_at(const char *at, ctn_tensor *x, const ctn_rnn_weights *w,
                      const ctn_rnn_opt *opt, ctn_tensor **y, ctn_tensor **h)
{
    ctn_tensor *out[3] = {NULL};
    return give(record(at, "gru", CTN__RNN_GRU, x, w, opt, out), out, y, h, NULL);
}

ctn_status ctn_rnn_at(const char *at, ctn_tensor *x, const ctn_rnn_weights *w,
                      const ctn_rnn_opt *opt, ctn_tensor **y, ctn_tensor **h)
{
    ctn_tensor *out[3] = {NULL};
    return give(record(at, "rnn", CTN__RNN_TANH, x, w, opt, out), out, y, h, NULL);
}
