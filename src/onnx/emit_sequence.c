/* SPDX-License-Identifier: Apache-2.0
 *
 * Emitters of products, normalisation over the last dimensions, attention, rotary position
 * embedding and recurrent layers (emit.h).
 */
#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "ops/common/norm.h"
#include "ops/common/rnn.h"

#define IN(i) ctn__emit_in(e, n, i)
#define NODE(...) CTN__NODE(e, __VA_ARGS__)

static void give(ctn__emit *e, const ctn__node *n, char *y)
{
    ctn__emit_out(e, n, 0, y);
}

/* Results that only gradients read have no form in ONNX. */
static bool only_result(ctn__emit *e, const ctn__node *n, int first)
{
    for (int i = first; i < n->nout; i++)
        if (ctn__emit_used(e, n, i)) {
            ctn__emit_fail(e, "result %d has no form in ONNX", i);
            return false;
        }
    return true;
}

/* ---- products -------------------------------------------------------------------------------- */

void ctn__emit_linear(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Gemm", IN(0), IN(1), n->nin > 2 ? IN(2) : ""));
    ctn__emit_int(e, "transB", 1);
}

void ctn__emit_matmul(ctn__emit *e, const ctn__node *n, const char *word)
{
    char *x[2];
    (void)word;
    for (int i = 0; i < 2; i++) {
        const int ndim = n->in[i]->d.ndim;
        x[i] = n->attr[i] ? ctn__emit_swap(e, IN(i), ndim, ndim - 2, ndim - 1) : IN(i);
    }
    give(e, n, NODE("MatMul", x[0], x[1]));
}

/* ---- normalisation --------------------------------------------------------------------------- */

void ctn__emit_layer_norm(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    const int64_t count = n->attr[CTN__NORM_N];
    const bool weight = n->attr[CTN__NORM_WEIGHT] != 0, bias = n->attr[CTN__NORM_BIAS] != 0;
    ctn_desc tail = {.dtype = x->dtype, .ndim = (int)count};
    (void)word;
    if (!only_result(e, n, 1)) return;
    for (int i = 0; i < tail.ndim; i++) tail.dim[i] = x->dim[x->ndim - tail.ndim + i];
    char *scale = weight ? IN(1) : ctn__emit_filled(e, &tail, 1);
    give(e, n, NODE("LayerNormalization", IN(0), scale, bias ? IN(1 + weight) : ""));
    ctn__emit_int(e, "axis", -count);
    ctn__emit_float(e, "epsilon", n->scalar[0].value);
}

void ctn__emit_rms_norm(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_dtype t = n->in[0]->d.dtype;
    int64_t axes[CTN_MAX_DIMS];
    const int count = (int)n->attr[CTN__NORM_N];
    (void)word;
    if (!only_result(e, n, 1)) return;
    for (int i = 0; i < count; i++) axes[i] = i - count;
    char *mean = ctn__emit_over(e, "ReduceMean", NODE("Mul", IN(0), IN(0)), count, axes, true);
    char *root = NODE("Sqrt", NODE("Add", mean, ctn__emit_number(e, t, n->scalar[0].value)));
    char *y = NODE("Div", IN(0), root);
    give(e, n, n->attr[CTN__NORM_WEIGHT] ? NODE("Mul", y, IN(1)) : y);
}

/* ---- attention ------------------------------------------------------------------------------- */

enum { CAUSAL, WINDOW, MASK, LENGTHS, FIRST }; /* attributes of attention */

static char *also(ctn__emit *e, char *a, char *b)
{
    return a ? NODE("And", a, b) : b;
}

/* By position: key j of M is visible to query i of L. `first` is added to i; NULL: nothing. */
static char *by_position(ctn__emit *e, const ctn__node *n, char *first)
{
    const int64_t L = n->in[0]->d.dim[2], M = n->in[1]->d.dim[2], window = n->attr[WINDOW];
    char *see = NULL, *i = ctn__emit_unsqueeze(e, ctn__emit_range(e, L), 1);
    char *j = ctn__emit_range(e, M), *width = ctn__emit_number(e, CTN_I64, (double)window);
    if (first) i = NODE("Add", i, first);
    if (n->attr[CAUSAL]) see = NODE("LessOrEqual", j, i);
    if (window > 0) see = also(e, see, NODE("Greater", j, NODE("Sub", i, width)));
    if (window > 0 && !n->attr[CAUSAL]) see = also(e, see, NODE("Less", j, NODE("Add", i, width)));
    return see;
}

/* The same for all samples: made once for all layers. */
static char *shared_positions(ctn__emit *e, const ctn__node *n)
{
    ctn__onnx_visible v = {.L = n->in[0]->d.dim[2],
                           .M = n->in[1]->d.dim[2],
                           .causal = n->attr[CAUSAL],
                           .window = n->attr[WINDOW]};
    for (size_t i = 0; i < e->visible.n; i++) {
        const ctn__onnx_visible *w = &e->visible.at[i];
        if (w->L == v.L && w->M == v.M && w->causal == v.causal && w->window == v.window)
            return w->value;
    }
    v.value = by_position(e, n, NULL);
    if (!ctn__vec_push(&e->visible, v)) e->st = CTN_ENOMEM;
    return v.value;
}

/* (N) of any integer type as (N,1,1,1) in i64. */
static char *per_sample(ctn__emit *e, const ctn__node *n, int i)
{
    const int64_t dims[] = {n->in[i]->d.dim[0], 1, 1, 1};
    return ctn__emit_as(e, ctn__emit_shaped(e, IN(i), 4, dims), CTN_I64);
}

/* k or v (N,K,M,E), repeated to the H heads of q. */
static char *all_heads(ctn__emit *e, const ctn__node *n, int i)
{
    const ctn_desc *d = &n->in[i]->d;
    const int64_t H = n->in[0]->d.dim[1], K = d->dim[1], repeat[] = {1, 1, H / K, 1, 1};
    if (H == K) return IN(i);
    char *x = NODE("Expand", ctn__emit_unsqueeze(e, IN(i), 2), ctn__emit_list(e, 5, repeat));
    return ctn__emit_shaped(e, x, CTN_SHAPE(d->dim[0], H, d->dim[2], d->dim[3]));
}

/* softmax(q k^T scale + mask) v, with 0 instead of a softmax over no keys. */
void ctn__emit_attention(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_dtype t = n->in[0]->d.dtype;
    const bool first = n->attr[FIRST] != 0, position = n->attr[CAUSAL] || n->attr[WINDOW] > 0;
    int more = 3;
    (void)word;
    if (!only_result(e, n, 1)) return;
    char *k = ctn__emit_swap(e, all_heads(e, n, 1), 4, 2, 3);
    char *s = NODE("MatMul", ctn__emit_scale(e, IN(0), t, n->scalar[0].value), k);
    char *none = ctn__emit_number(e, t, -1e30), *see = NULL;
    if (n->attr[MASK]) {
        s = NODE("Add", s, IN(more++));
        see = NODE("Greater", s, none);
    }
    if (n->attr[LENGTHS])
        see = also(e, see,
                   NODE("Less", ctn__emit_range(e, n->in[1]->d.dim[2]), per_sample(e, n, more++)));
    if (position)
        see = also(e, see,
                   first ? by_position(e, n, per_sample(e, n, more)) : shared_positions(e, n));
    if (see) s = NODE("Where", see, s, none);
    char *p = NODE("Softmax", s);
    ctn__emit_int(e, "axis", -1);
    if (see && !(n->attr[CAUSAL] && more == 3 && n->attr[WINDOW] == 0))
        p = NODE("Where", see, p, ctn__emit_number(e, t, 0));
    give(e, n, NODE("MatMul", p, all_heads(e, n, 2)));
}

/* ---- rotary position embedding --------------------------------------------------------------- */

enum { DIMS, INTERLEAVED, BACK };
enum { BASE, START };

/* cos and sin (T,D/2) as constants. */
static void constant_turns(ctn__emit *e, const ctn__node *n, char *turn[2])
{
    const ctn_desc *x = &n->in[0]->d;
    const int64_t T = x->dim[x->ndim - 2], half = n->attr[DIMS] / 2;
    double *v = ctn__calloc((size_t)(T * half + 1), sizeof *v);
    if (!v) {
        e->st = CTN_ENOMEM;
        return;
    }
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < T * half; i++) {
            const int64_t row = i / half;
            const double p = n->scalar[START].value + (double)row;
            const double a = p * pow(n->scalar[BASE].value, -(double)(i % half) / (double)half);
            v[i] = k == 0 ? cos(a) : n->attr[BACK] ? -sin(a) : sin(a);
        }
        turn[k] = ctn__emit_reals(e, x->dtype, CTN_SHAPE(T, half), v);
    }
    ctn__free(v);
}

/* The same when the length is open or samples have positions of their own; computed in f64, because
 * angles are large. */
static void open_turns(ctn__emit *e, const ctn__node *n, char *turn[2])
{
    const ctn_desc *x = &n->in[0]->d;
    const int64_t half = n->attr[DIMS] / 2;
    int64_t dims[CTN_MAX_DIMS] = {x->dim[0], 1, 1, 1, 1, 1, 1, 1};
    double *v = ctn__calloc((size_t)half + 1, sizeof *v);
    if (!v) {
        e->st = CTN_ENOMEM;
        return;
    }
    for (int64_t i = 0; i < half; i++) v[i] = pow(n->scalar[BASE].value, -(double)i / (double)half);
    char *speed = ctn__emit_reals(e, CTN_F64, CTN_SHAPE(half), v);
    ctn__free(v);
    char *p = ctn__emit_as(e, ctn__emit_range(e, x->dim[x->ndim - 2]), CTN_F64);
    p = NODE("Add", p, ctn__emit_number(e, CTN_F64, n->scalar[START].value));
    p = ctn__emit_unsqueeze(e, p, 1);
    if (n->nin > 1)
        p = NODE("Add", p, ctn__emit_as(e, ctn__emit_shaped(e, IN(1), x->ndim, dims), CTN_F64));
    char *angle = NODE("Mul", p, speed);
    turn[0] = ctn__emit_as(e, NODE("Cos", angle), x->dtype);
    char *s = ctn__emit_as(e, NODE("Sin", angle), x->dtype);
    turn[1] = n->attr[BACK] ? NODE("Neg", s) : s;
}

/* Elements from, from + step, ... before `to` of the last dimension. */
static char *part(ctn__emit *e, char *x, int64_t from, int64_t to, int64_t step)
{
    const int64_t axis = -1;
    return NODE("Slice", x, ctn__emit_list(e, 1, &from), ctn__emit_list(e, 1, &to),
                ctn__emit_list(e, 1, &axis), ctn__emit_list(e, 1, &step));
}

void ctn__emit_rotary(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    const int64_t D = n->attr[DIMS], E = x->dim[x->ndim - 1], half = D / 2;
    const bool pairs = n->attr[INTERLEAVED] != 0;
    char *turn[2] = {NULL, NULL};
    (void)word;
    if (n->nin == 1 && ctn__emit_fixed(e, x->dim[x->ndim - 2])) constant_turns(e, n, turn);
    else open_turns(e, n, turn);
    char *u = pairs ? part(e, IN(0), 0, D, 2) : part(e, IN(0), 0, half, 1);
    char *v = pairs ? part(e, IN(0), 1, D, 2) : part(e, IN(0), half, D, 1);
    char *a = NODE("Sub", NODE("Mul", u, turn[0]), NODE("Mul", v, turn[1]));
    char *b = NODE("Add", NODE("Mul", v, turn[0]), NODE("Mul", u, turn[1]));
    if (pairs) {
        a = ctn__emit_unsqueeze(e, a, -1);
        b = ctn__emit_unsqueeze(e, b, -1);
    }
    char *y = NODE("Concat", a, b);
    ctn__emit_int(e, "axis", -1);
    if (pairs) {
        int64_t dims[CTN_MAX_DIMS];
        memcpy(dims, x->dim, sizeof dims);
        dims[x->ndim - 1] = D;
        y = ctn__emit_shaped(e, y, x->ndim, dims);
    }
    if (D < E) {
        y = NODE("Concat", y, part(e, IN(0), D, E, 1));
        ctn__emit_int(e, "axis", -1);
    }
    give(e, n, y);
}

/* ---- recurrent layers ------------------------------------------------------------------------ */

enum { MODE, REVERSE, WITH_LENGTHS, WITH_BIAS }; /* attributes of rnn */
enum { ACT, Y, FINAL_H, MORE, FINAL_C };         /* its results */

/* p is linear(x, W_ih, b_ih), with reshapes around it if x has more than two dimensions. */
bool ctn__emit_rnn_of(const ctn__node *n, ctn__rnn_of *r)
{
    const ctn_tensor *p = n->op == &ctn__op_rnn ? n->in[0] : NULL;
    if (p && p->node && p->node->op == &ctn__op_reshape) p = p->node->in[0];
    if (!p || !p->node || p->node->op != &ctn__op_linear) return false;
    const ctn__node *linear = p->node;
    *r = (ctn__rnn_of){.x = linear->in[0], .weight = linear->in[1]};
    r->bias = linear->nin > 2 ? linear->in[2] : NULL;
    return true;
}

/* The blocks of the gates in another order: ONNX has i o f c and z r h. */
static char *reorder(ctn__emit *e, char *w, int64_t mode, int64_t H)
{
    static const int lstm[] = {0, 3, 1, 2}, gru[] = {1, 0, 2};
    const int K = (int)ctn__rnn_gates(mode);
    char *gate[4] = {NULL}, *sorted[4] = {NULL};
    if (K == 1) return w;
    gate[0] = NODE("Split", w, ctn__emit_list(e, K, (const int64_t[]){H, H, H, H}));
    ctn__emit_int(e, "axis", 0);
    for (int i = 1; i < K; i++) gate[i] = ctn__emit_more(e);
    for (int i = 0; i < K; i++) sorted[i] = gate[K == 4 ? lstm[i] : gru[i]];
    char *y = ctn__emit_node(e, "Concat", K, sorted);
    ctn__emit_int(e, "axis", 0);
    return y;
}

static char *both_biases(ctn__emit *e, const ctn__node *n, const ctn__rnn_of *r, int64_t H)
{
    const int64_t mode = n->attr[MODE], K = ctn__rnn_gates(mode);
    const ctn_desc zeros = {.dtype = n->in[0]->d.dtype, .ndim = 1, .dim = {K * H}};
    char *ih = r->bias ? e->name[r->bias->id] : NULL;
    char *hh = n->attr[WITH_BIAS] ? IN(mode == CTN__RNN_LSTM ? 4 : 3) : NULL;
    if (!ih && !hh) return "";
    ih = ih ? reorder(e, ih, mode, H) : ctn__emit_filled(e, &zeros, 0);
    hh = hh ? reorder(e, hh, mode, H) : ctn__emit_filled(e, &zeros, 0);
    char *b = NODE("Concat", ih, hh);
    ctn__emit_int(e, "axis", 0);
    return ctn__emit_unsqueeze(e, b, 0);
}

void ctn__emit_rnn(ctn__emit *e, const ctn__node *n, const char *word)
{
    static const char *const type[] = {"LSTM", "GRU", "RNN", "RNN"};
    const ctn_desc *p = &n->in[0]->d;
    const int64_t mode = n->attr[MODE], H = n->in[1]->d.dim[1];
    const bool lstm = mode == CTN__RNN_LSTM, lengths = n->attr[WITH_LENGTHS] != 0;
    ctn__rnn_of r;
    (void)word;
    if (ctn__emit_used(e, n, ACT) || ctn__emit_used(e, n, MORE) || !ctn__emit_rnn_of(n, &r)) {
        ctn__emit_fail(e, "only recurrent layers as ctn_lstm, ctn_gru and ctn_rnn record them");
        return;
    }
    const int64_t I = r.weight->d.dim[1];
    char *x = ctn__emit_shaped(e, e->name[r.x->id], CTN_SHAPE(p->dim[0], p->dim[1], I));
    char *w = ctn__emit_unsqueeze(e, reorder(e, e->name[r.weight->id], mode, H), 0);
    char *h = ctn__emit_unsqueeze(e, reorder(e, IN(1), mode, H), 0);
    char *b = both_biases(e, n, &r, H);
    char *count = lengths ? ctn__emit_as(e, IN(n->nin - 1), CTN_I32) : "";
    char *h0 = ctn__emit_unsqueeze(e, IN(2), 0), *c0 = lstm ? ctn__emit_unsqueeze(e, IN(3), 0) : "";
    char *y = NODE(type[mode], x, w, h, b, count, h0, c0);
    char *yh = ctn__emit_more(e), *yc = lstm ? ctn__emit_more(e) : NULL;
    ctn__emit_int(e, "hidden_size", H);
    ctn__emit_text(e, "direction", n->attr[REVERSE] ? "reverse" : "forward");
    if (mode == CTN__RNN_GRU) ctn__emit_int(e, "linear_before_reset", 1);
    if (mode == CTN__RNN_RELU) ctn__emit_texts(e, "activations", 1, (const char *const[]){"Relu"});
    const int64_t second = 1, zero = 0;
    ctn__emit_out(e, n, Y, NODE("Squeeze", y, ctn__emit_list(e, 1, &second)));
    ctn__emit_out(e, n, FINAL_H, NODE("Squeeze", yh, ctn__emit_list(e, 1, &zero)));
    if (lstm) ctn__emit_out(e, n, FINAL_C, NODE("Squeeze", yc, ctn__emit_list(e, 1, &zero)));
}

#endif
