/* SPDX-License-Identifier: Apache-2.0
 *
 * Recurrent modules: LSTM, GRU and plain recurrent networks of several layers, in one or both
 * directions, with PyTorch's parameter names, shapes and initial values. A layer in one direction
 * is a call of ctn_lstm, ctn_gru or ctn_rnn.
 */
#include <math.h>

#include "nn/nn.h"
#include "ops/ops.h"

typedef enum { LSTM, GRU, PLAIN } recurrent_kind;
static const char *const maker[] = {"lstm_new", "gru_new", "rnn_new"};

enum { W_IH, W_HH, B_IH, B_HH, W_HR, NVARS };
static const char *const var_names[NVARS] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh",
                                             "weight_hr"};

typedef struct {
    recurrent_kind kind;
    int64_t in, hidden;
    ctn_rnn_module_opt opt; /* layers is at least 1 */
    ctn_var *var[][NVARS];  /* layer by layer, forward before reverse; NULL: none */
} recurrent;

static int directions(const recurrent *r)
{
    return r->opt.bidirectional ? 2 : 1;
}

/* Elements of h. */
static int64_t width(const recurrent *r)
{
    return r->opt.projection ? r->opt.projection : r->hidden;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Checks an initial state (layers * directions,N,H). */
static ctn_status check_state(const recurrent *r, const char *what, const ctn_tensor *s, int64_t N,
                              int64_t H)
{
    const int64_t rows = (int64_t)r->opt.layers * directions(r);
    char t[128];
    if (!s || (s->d.ndim == 3 && s->d.dim[0] == rows && s->d.dim[1] == N && s->d.dim[2] == H))
        return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "%s is %s, expected (%lld,%lld,%lld)", what,
                    ctn__shape_text(&s->d, t, sizeof t), (long long)rows, (long long)N,
                    (long long)H);
}

static ctn_status check_inputs(const recurrent *r, const ctn_tensors *x)
{
    const ctn_desc *d = &x->t[0]->d;
    const int most = r->kind == LSTM ? 4 : 3;
    char t[128];
    if (x->n > most)
        return ctn_fail(CTN_EARG, "got %d inputs, expected x, h0, %slengths", x->n,
                        r->kind == LSTM ? "c0, " : "");
    if (d->ndim != 3 || d->dim[2] != r->in)
        return ctn_fail(CTN_ESHAPE, "x is %s, expected %s,%lld)", ctn__shape_text(d, t, sizeof t),
                        r->opt.batch_first ? "(samples,steps" : "(steps,samples", (long long)r->in);
    const int64_t N = d->dim[r->opt.batch_first ? 0 : 1];
    CTN_TRY(check_state(r, "h0", x->t[1], N, width(r)));
    return r->kind == LSTM ? check_state(r, "c0", x->t[2], N, r->hidden) : CTN_OK;
}

/* Row i of a state (rows,N,H) as (N,H); NULL: zeros. */
static ctn_tensor *state_of(const char *at, ctn_tensor *s, int i)
{
    if (!s) return NULL;
    return ctn_reshape_at(at, ctn_slice_at(at, s, 0, i, 1), CTN_SHAPE(s->d.dim[1], s->d.dim[2]));
}

/* Layer and direction i on x (T,N,I): y, and the final state in h and c. */
static ctn_tensor *run_layer(const recurrent *r, const char *at, int i, ctn_tensor *x,
                             const ctn_tensors *given, ctn_tensor **h, ctn_tensor **c)
{
    const bool lstm = r->kind == LSTM;
    ctn_tensor *w[NVARS] = {NULL}, *y = NULL;
    for (int k = 0; k < NVARS; k++)
        if (r->var[i][k] && !(w[k] = ctn_use_at(at, r->var[i][k]))) return NULL;
    ctn_tensor *h0 = state_of(at, given->t[1], i), *c0 = lstm ? state_of(at, given->t[2], i) : NULL;
    if ((given->t[1] && !h0) || (lstm && given->t[2] && !c0)) return NULL;
    const ctn_rnn_weights weights = {w[W_IH], w[W_HH], w[B_IH], w[B_HH], w[W_HR]};
    const ctn_rnn_opt *o =
        CTN_OPT(ctn_rnn_opt, .h0 = h0, .c0 = c0, .lengths = given->t[lstm ? 3 : 2],
                .reverse = i % directions(r), .relu = r->opt.relu, .composed = r->opt.composed);
    const ctn_status st = lstm             ? ctn_lstm_at(at, x, &weights, o, &y, h, c)
                          : r->kind == GRU ? ctn_gru_at(at, x, &weights, o, &y, h)
                                           : ctn_rnn_at(at, x, &weights, o, &y, h);
    return st < 0 ? NULL : y;
}

/* All layers on x (T,N,I); h and c get the final states, one per layer and direction. */
static ctn_tensor *run_layers(const recurrent *r, const char *at, ctn_tensor *x,
                              const ctn_tensors *given, ctn_tensor **h, ctn_tensor **c)
{
    const int D = directions(r);
    for (int l = 0; l < r->opt.layers && x; l++) {
        ctn_tensor *y[2] = {NULL};
        for (int d = 0, i = l * D; d < D; d++, i++)
            if (!(y[d] = run_layer(r, at, i, x, given, &h[i], &c[i]))) return NULL;
        x = D == 2 ? ctn_concat_at(at, 2, y, 2) : y[0];
        if (r->opt.dropout > 0 && l + 1 < r->opt.layers)
            x = ctn__dropout_along(at, x, r->opt.dropout, 1);
    }
    return x;
}

static ctn_tensor *swapped(const recurrent *r, const char *at, ctn_tensor *x)
{
    return r->opt.batch_first ? ctn_transpose_at(at, x, CTN_SHAPE(1, 0, 2)) : x;
}

static ctn_tensors recurrent_forward(void *self, ctn_module *m, ctn_tensors x)
{
    const recurrent *r = self;
    const char *at = m->at;
    const int rows = r->opt.layers * directions(r);
    ctn_tensors out = {0};
    if (check_inputs(r, &x) < 0) return out;
    ctn_tensor **h = ctn__calloc(2 * (size_t)rows, sizeof(ctn_tensor *)), **c = h ? h + rows : NULL;
    if (!h) return out;
    ctn_tensor *y = run_layers(r, at, swapped(r, at, x.t[0]), &x, h, c);
    if (y) {
        out.t[0] = swapped(r, at, y);
        out.t[1] = ctn_stack_at(at, rows, h, 0);
        if (r->kind == LSTM) out.t[2] = ctn_stack_at(at, rows, c, 0);
        out.n = r->kind == LSTM ? 3 : 2;
    }
    ctn__free(h);
    return out;
}

/* ---- making --------------------------------------------------------------------------------- */

/* The variables of layer and direction i. */
static ctn_status add_vars(recurrent *r, ctn_module *m, int i)
{
    const int l = i / directions(r), K = r->kind == LSTM ? 4 : r->kind == GRU ? 3 : 1;
    const int64_t H = r->hidden, P = width(r), I = l == 0 ? r->in : directions(r) * P;
    const int64_t dims[NVARS][2] = {{K * H, I}, {K * H, P}, {K * H}, {K * H}, {P, H}};
    const double bound = 1 / sqrt((double)H);
    const ctn_init *usual =
        CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = -bound, .high = bound);
    for (int k = 0; k < NVARS; k++) {
        const bool bias = k == B_IH || k == B_HH;
        char name[64];
        if ((bias && r->opt.no_bias) || (k == W_HR && !r->opt.projection)) continue;
        snprintf(name, sizeof name, "%s_l%d%s", var_names[k], l,
                 i % directions(r) ? "_reverse" : "");
        CTN_TRY(ctn_module_param(&r->var[i][k], m, name, ctn_context_float_type(m->ctx),
                                 bias ? 1 : 2, dims[k], usual));
    }
    return CTN_OK;
}

static ctn_status check_options(recurrent_kind kind, int64_t in, int64_t hidden,
                                const ctn_rnn_module_opt *o)
{
    const char *who = maker[kind];
    if (in < 1 || hidden < 1 || o->layers < 0)
        return ctn_fail(CTN_EARG, "%s: %lld inputs, state of %lld, %d layers; all must be positive",
                        who, (long long)in, (long long)hidden, o->layers);
    if (!(o->dropout >= 0 && o->dropout < 1))
        return ctn_fail(CTN_EARG, "%s: dropout is %g, expected 0 or more and less than 1", who,
                        o->dropout);
    if (o->projection && kind != LSTM)
        return ctn_fail(CTN_EARG, "%s: only an LSTM has a projection", who);
    if (o->projection < 0 || o->projection >= hidden)
        return ctn_fail(CTN_EARG, "%s: projection is %lld, expected less than the state of %lld",
                        who, (long long)o->projection, (long long)hidden);
    return CTN_OK;
}

static ctn_status make(ctn_module **m, ctn_context *ctx, recurrent_kind kind, int64_t in,
                       int64_t hidden, const ctn_rnn_module_opt *opt);

static ctn_status recurrent_copy(void *self, ctn_module *m, ctn_module **copy)
{
    const recurrent *r = self;
    return make(copy, m->ctx, r->kind, r->in, r->hidden, &r->opt);
}

static ctn_status make(ctn_module **m, ctn_context *ctx, recurrent_kind kind, int64_t in,
                       int64_t hidden, const ctn_rnn_module_opt *opt)
{
    ctn_status st = CTN_OK;
    ctn_rnn_module_opt o;
    if (!m) return ctn_fail(CTN_EARG, "%s: NULL argument", maker[kind]);
    *m = NULL;
    CTN_TRY(ctn__opt(maker[kind], &o, sizeof o, opt));
    CTN_TRY(check_options(kind, in, hidden, &o));
    if (o.layers == 0) o.layers = 1;
    const int rows = o.layers * (o.bidirectional ? 2 : 1);
    recurrent *r = ctn__calloc(1, sizeof *r + (size_t)rows * sizeof *r->var);
    if (!r) return CTN_ENOMEM;
    r->kind = kind;
    r->in = in;
    r->hidden = hidden;
    r->opt = o;
    st = ctn_module_new_multi(m, ctx, recurrent_forward, r, ctn__free);
    if (st < 0) {
        ctn__free(r);
        return st;
    }
    for (int i = 0; i < rows; i++) CTN_TRY_GOTO(st, fail, add_vars(r, *m, i));
    CTN_TRY_GOTO(st, fail, ctn_module_set_copy(*m, recurrent_copy));
    return CTN_OK;
fail:
    ctn_module_free(*m);
    *m = NULL;
    return st;
}

ctn_status ctn_lstm_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t hidden,
                        const ctn_rnn_module_opt *opt)
{
    return make(m, ctx, LSTM, in, hidden, opt);
}

ctn_status ctn_gru_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t hidden,
                       const ctn_rnn_module_opt *opt)
{
    return make(m, ctx, GRU, in, hidden, opt);
}

ctn_status ctn_rnn_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t hidden,
                       const ctn_rnn_module_opt *opt)
{
    return make(m, ctx, PLAIN, in, hidden, opt);
}
