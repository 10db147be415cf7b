/* SPDX-License-Identifier: Apache-2.0
 *
 * LSTM, GRU and RNN. The usual forms, which PyTorch exports, use the recurrent ops of Catena after
 * their gates have been put into Catena's order. Other forms (peepholes, clipping, the GRU that
 * resets before the product) are recorded step by step.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "onnx/kinds.h"

enum { LSTM, GRU, RNN };
typedef ctn_tensor *activation(const char *at, ctn_tensor *x);

typedef struct {
    ctn__onnx_call *c;
    int kind, gates, directions;
    bool batch_first, reset_after;
    int64_t T, N, H;
    double clip; /* 0: none */
    ctn_tensor *x;
} layer;

/* ---- operands of one direction --------------------------------------------------------------- */

/* Entry d of input i along its first dimension; NULL if the input is left out. */
static ctn_tensor *entry(const layer *l, int i, int d)
{
    if (!ctn__onnx_has(l->c, i)) return NULL;
    return ctn_select_at(l->c->at, ctn__onnx_in(l->c, i), 0, d);
}

/* Initial state (N,H); with batch_first the input is (N,D,H). */
static ctn_tensor *initial(const layer *l, int i, int d)
{
    if (!ctn__onnx_has(l->c, i)) return NULL;
    return ctn_select_at(l->c->at, ctn__onnx_in(l->c, i), l->batch_first ? 1 : 0, d);
}

/* Rows [begin, begin + n) of blocks of H rows. */
static ctn_tensor *rows(const layer *l, ctn_tensor *w, int begin, int n)
{
    return w ? ctn_slice_at(l->c->at, w, 0, begin * l->H, n * l->H) : NULL;
}

/* The gates in the order of Catena: i o f c -> i f c o, z r h -> r z h. */
static ctn_tensor *ordered(const layer *l, ctn_tensor *w, int begin)
{
    static const int order[3][4] = {{0, 2, 3, 1}, {1, 0, 2}, {0}};
    ctn_tensor *part[4] = {NULL};
    if (!w) return NULL;
    if (l->gates == 1) return rows(l, w, begin, 1);
    for (int i = 0; i < l->gates; i++) part[i] = rows(l, w, begin + order[l->kind][i], 1);
    return ctn_concat_at(l->c->at, l->gates, part, 0);
}

/* ---- activations ----------------------------------------------------------------------------- */

static activation *activation_named(const ProtobufCBinaryData *name)
{
    static const struct {
        const char *name;
        activation *fn;
    } known[] = {{"Sigmoid", ctn_sigmoid_at},
                 {"Tanh", ctn_tanh_at},
                 {"Relu", ctn_relu_at},
                 {"Softplus", ctn_softplus_at},
                 {"Softsign", ctn__onnx_softsign}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (name->len == strlen(known[i].name) && memcmp(name->data, known[i].name, name->len) == 0)
            return known[i].fn;
    return NULL;
}

/* The activations of direction d: f, g, h. */
static ctn_status activations(const layer *l, int d, activation **f)
{
    const Onnx__AttributeProto *a = ctn__onnx_attr(l->c->node, "activations");
    const int n = l->kind == LSTM ? 3 : l->kind == GRU ? 2 : 1;
    f[0] = l->kind == RNN ? ctn_tanh_at : ctn_sigmoid_at;
    f[1] = f[2] = ctn_tanh_at;
    if (!a || a->n_strings == 0) return CTN_OK;
    if (a->n_strings != (size_t)n * (size_t)l->directions)
        return ctn__onnx_fail(l->c, CTN_EFORMAT, "%zu activations, expected %d", a->n_strings,
                              n * l->directions);
    for (int i = 0; i < n; i++) {
        f[i] = activation_named(&a->strings[d * n + i]);
        if (!f[i])
            return ctn__onnx_fail(l->c, CTN_EUNSUPPORTED, "activation %.*s is not supported",
                                  (int)a->strings[d * n + i].len, a->strings[d * n + i].data);
    }
    return CTN_OK;
}

static bool usual(const layer *l, activation *const *f)
{
    if (l->clip > 0 || ctn__onnx_has(l->c, 7) || ctn__onnx_int(l->c, "input_forget", 0))
        return false;
    if (l->kind == RNN) return f[0] == ctn_tanh_at || f[0] == ctn_relu_at;
    if (l->kind == GRU && !l->reset_after) return false;
    return f[0] == ctn_sigmoid_at && f[1] == ctn_tanh_at && f[2] == ctn_tanh_at;
}

/* ---- by the ops of Catena -------------------------------------------------------------------- */

static ctn_status whole_layer(const layer *l, int d, bool reverse, activation *f, ctn_tensor **y,
                              ctn_tensor **h, ctn_tensor **c)
{
    const char *at = l->c->at;
    ctn_tensor *b = entry(l, 3, d);
    const ctn_rnn_weights w = {.w_ih = ordered(l, entry(l, 1, d), 0),
                               .w_hh = ordered(l, entry(l, 2, d), 0),
                               .b_ih = ordered(l, b, 0),
                               .b_hh = ordered(l, b, l->gates)};
    ctn_rnn_opt opt = {.struct_size = sizeof opt,
                       .h0 = initial(l, 5, d),
                       .c0 = l->kind == LSTM ? initial(l, 6, d) : NULL,
                       .reverse = reverse,
                       .relu = f == ctn_relu_at};
    if (ctn__onnx_has(l->c, 4)) opt.lengths = ctn__onnx_in(l->c, 4);
    if (!w.w_ih || !w.w_hh || (b && (!w.b_ih || !w.b_hh))) return ctn_error_status();
    if (l->kind == LSTM) return ctn_lstm_at(at, l->x, &w, &opt, y, h, c);
    if (l->kind == GRU) return ctn_gru_at(at, l->x, &w, &opt, y, h);
    return ctn_rnn_at(at, l->x, &w, &opt, y, h);
}

/* ---- step by step ---------------------------------------------------------------------------- */

/* What the steps of one direction read. */
typedef struct {
    activation *f[3];
    ctn_tensor *xw;      /* (T,N,K H): x W^T and both biases */
    ctn_tensor *r, *r_b; /* (K H,H); GRU: bias of the recurrent product of its last gate */
    ctn_tensor *p;       /* (3 H): peepholes of the gates i, o, f */
} steps;

static ctn_tensor *clipped(const layer *l, ctn_tensor *x)
{
    return l->clip > 0 ? ctn_clip_at(l->c->at, x, -l->clip, l->clip) : x;
}

static ctn_tensor *gate(const layer *l, ctn_tensor *all, int k)
{
    return ctn_slice_at(l->c->at, all, -1, k * l->H, l->H);
}

static void lstm_step(const layer *l, const steps *s, ctn_tensor *xw, ctn_tensor **h,
                      ctn_tensor **c)
{
    const char *at = l->c->at;
    ctn_tensor *all = ctn_add_at(at, xw, ctn_matmul_at(at, *h, s->r, 0, 1));
    ctn_tensor *i = gate(l, all, 0), *o = gate(l, all, 1), *f = gate(l, all, 2);
    if (s->p) {
        i = ctn_add_at(at, i, ctn_mul_at(at, *c, rows(l, s->p, 0, 1)));
        f = ctn_add_at(at, f, ctn_mul_at(at, *c, rows(l, s->p, 2, 1)));
    }
    i = s->f[0](at, clipped(l, i));
    f = ctn__onnx_int(l->c, "input_forget", 0) ? ctn_shift_at(at, ctn_neg_at(at, i), 1)
                                               : s->f[0](at, clipped(l, f));
    ctn_tensor *g = s->f[1](at, clipped(l, gate(l, all, 3)));
    *c = ctn_add_at(at, ctn_mul_at(at, f, *c), ctn_mul_at(at, i, g));
    if (s->p) o = ctn_add_at(at, o, ctn_mul_at(at, *c, rows(l, s->p, 1, 1)));
    *h = ctn_mul_at(at, s->f[0](at, clipped(l, o)), s->f[2](at, *c));
}

static void gru_step(const layer *l, const steps *s, ctn_tensor *xw, ctn_tensor **h)
{
    const char *at = l->c->at;
    ctn_tensor *hr = ctn_matmul_at(at, *h, rows(l, s->r, 0, 2), 0, 1);
    ctn_tensor *zr = ctn_add_at(at, ctn_slice_at(at, xw, -1, 0, 2 * l->H), hr);
    ctn_tensor *z = s->f[0](at, clipped(l, gate(l, zr, 0)));
    ctn_tensor *r = s->f[0](at, clipped(l, gate(l, zr, 1)));
    ctn_tensor *u = rows(l, s->r, 2, 1);
    ctn_tensor *n = ctn_matmul_at(at, l->reset_after ? *h : ctn_mul_at(at, r, *h), u, 0, 1);
    if (s->r_b) n = ctn_add_at(at, n, s->r_b);
    if (l->reset_after) n = ctn_mul_at(at, r, n);
    n = s->f[1](at, clipped(l, ctn_add_at(at, gate(l, xw, 2), n)));
    *h = ctn_add_at(at, n, ctn_mul_at(at, z, ctn_sub_at(at, *h, n)));
}

static void rnn_step(const layer *l, const steps *s, ctn_tensor *xw, ctn_tensor **h)
{
    ctn_tensor *hr = ctn_matmul_at(l->c->at, *h, s->r, 0, 1);
    *h = s->f[0](l->c->at, clipped(l, ctn_add_at(l->c->at, xw, hr)));
}

static ctn_status step_by_step(const layer *l, int d, bool reverse, activation *const *f,
                               ctn_tensor **y, ctn_tensor **h, ctn_tensor **c)
{
    const char *at = l->c->at;
    const int K = l->gates;
    if (ctn__onnx_has(l->c, 4)) CTN_TRY(ctn__onnx_need(l->c, 4));
    for (int64_t i = 0; ctn__onnx_has(l->c, 4) && i < ctn__onnx_count(l->c->in[4]); i++)
        if (ctn__onnx_int_of(l->c->in[4], i) != l->T)
            return ctn__onnx_fail(l->c, CTN_EUNSUPPORTED, "sequence_lens with these settings");
    steps s = {.f = {f[0], f[1], f[2]}, .r = entry(l, 2, d), .p = entry(l, 7, d)};
    ctn_tensor *b = entry(l, 3, d), *wb = rows(l, b, 0, K), *rb = rows(l, b, K, K);
    if (rb && l->kind == GRU) { /* the last gate adds its recurrent bias by itself */
        s.r_b = rows(l, rb, 2, 1);
        ctn_tensor *zr = ctn_add_at(at, rows(l, wb, 0, 2), rows(l, rb, 0, 2));
        wb = ctn_concat_at(at, 2, (ctn_tensor *[]){zr, rows(l, wb, 2, 1)}, 0);
    } else if (rb) {
        wb = ctn_add_at(at, wb, rb);
    }
    s.xw = ctn_linear_at(at, l->x, entry(l, 1, d), wb);
    const ctn_dtype type = l->x->d.dtype;
    *h = initial(l, 5, d);
    *c = l->kind == LSTM ? initial(l, 6, d) : NULL;
    if (!*h) *h = ctn_full_at(at, l->c->ctx, 0, type, CTN_SHAPE(l->N, l->H));
    if (!*c) *c = ctn_full_at(at, l->c->ctx, 0, type, CTN_SHAPE(l->N, l->H));
    ctn_tensor **all = ctn__onnx_memory(l->c->run, l->T, sizeof *all);
    if (!all || !s.xw) return ctn_error_status();
    for (int64_t k = 0; k < l->T; k++) {
        const int64_t t = reverse ? l->T - 1 - k : k;
        CTN_TRY(ctn__onnx_spend_recorded(l->c->run));
        ctn_tensor *xw = ctn_select_at(at, s.xw, 0, t);
        if (l->kind == LSTM) lstm_step(l, &s, xw, h, c);
        else if (l->kind == GRU) gru_step(l, &s, xw, h);
        else rnn_step(l, &s, xw, h);
        all[t] = *h;
    }
    *y = ctn_stack_at(at, (int)l->T, all, 0);
    return *y ? CTN_OK : ctn_error_status();
}

/* ---- the ops --------------------------------------------------------------------------------- */

static ctn_status open_layer(ctn__onnx_call *c, layer *l)
{
    *l = (layer){.c = c, .kind = c->node->op->kind};
    l->gates = l->kind == LSTM ? 4 : l->kind == GRU ? 3 : 1;
    l->directions = ctn__onnx_text_is(c, "direction", "bidirectional", false) ? 2 : 1;
    l->batch_first = ctn__onnx_int(c, "layout", 0);
    l->reset_after = ctn__onnx_int(c, "linear_before_reset", 0);
    l->clip = ctn__onnx_float(c, "clip", 0);
    l->x = ctn__onnx_in(c, 0);
    if (l->x && l->batch_first) l->x = ctn_swapaxes_at(c->at, l->x, 0, 1);
    ctn_tensor *r = ctn__onnx_in(c, 2);
    if (!l->x || !r) return ctn_error_status();
    if (l->x->d.ndim != 3 || r->d.ndim != 3 || r->d.dim[0] != l->directions ||
        r->d.dim[1] != ctn__onnx_times(l->gates, r->d.dim[2]))
        return ctn__onnx_fail(c, CTN_ESHAPE, "x or R has an unexpected shape");
    l->T = l->x->d.dim[0];
    l->N = l->x->d.dim[1];
    l->H = r->d.dim[2];
    return CTN_OK;
}

ctn_status ctn__onnx_do_recurrent(ctn__onnx_call *c)
{
    layer l;
    const char *at = c->at;
    ctn_tensor *y[2] = {NULL}, *h[2] = {NULL}, *s[2] = {NULL};
    CTN_TRY(open_layer(c, &l));
    const bool backwards = ctn__onnx_text_is(c, "direction", "reverse", false);
    for (int d = 0; d < l.directions; d++) {
        activation *f[3];
        CTN_TRY(activations(&l, d, f));
        const bool reverse = backwards || d == 1;
        if (usual(&l, f)) CTN_TRY(whole_layer(&l, d, reverse, f[0], &y[d], &h[d], &s[d]));
        else CTN_TRY(step_by_step(&l, d, reverse, f, &y[d], &h[d], &s[d]));
    }
    const int D = l.directions; /* y (T,D,N,H) or (N,T,D,H), states (D,N,H) or (N,D,H) */
    ctn_tensor *all = ctn_stack_at(at, D, y, 1);
    if (l.batch_first) all = ctn_transpose_at(at, all, CTN_SHAPE(2, 0, 1, 3));
    CTN_TRY(ctn__onnx_set(c, 0, all));
    CTN_TRY(ctn__onnx_set(c, 1, ctn_stack_at(at, D, h, l.batch_first)));
    if (l.kind != LSTM) return CTN_OK;
    return ctn__onnx_set(c, 2, ctn_stack_at(at, D, s, l.batch_first));
}

#endif
