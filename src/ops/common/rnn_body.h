/* SPDX-License-Identifier: Apache-2.0
 *
 * The kernels of the rnn ops for one element type, included by rnn.c once per type. T is the type,
 * NAME gives the functions their names, SIGMOID and TANH are the type's functions. The formulas
 * are in rnn.h. A kernel handles one sample in one step: H elements of each gate. An element is
 * read before it is written, so results may take the memory of operands with the same shape.
 */

/* ---- forward --------------------------------------------------------------------------------- */

typedef struct {
    const T *p, *q, *b; /* q without b */
    T *h, *c;           /* the state, updated in place */
    T *y, *act;         /* act: the gates, as the gradient needs them */
    T *more;            /* LSTM: a copy of c; GRU: q of gate n, with b */
} NAME(forward_row);

CTN__PER_ISA(NAME(lstm_forward), (int64_t H, const NAME(forward_row) * s), (H, s))
{
    const T *p = s->p, *q = s->q, *b = s->b;
    T *h = s->h, *c = s->c, *y = s->y, *act = s->act, *more = s->more;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const T i = SIGMOID(p[j] + (q[j] + b[j]));
        const T f = SIGMOID(p[H + j] + (q[H + j] + b[H + j]));
        const T g = TANH(p[2 * H + j] + (q[2 * H + j] + b[2 * H + j]));
        const T o = SIGMOID(p[3 * H + j] + (q[3 * H + j] + b[3 * H + j]));
        const T cell = f * c[j] + i * g;
        const T out = o * TANH(cell);
        act[j] = i;
        act[H + j] = f;
        act[2 * H + j] = g;
        act[3 * H + j] = o;
        c[j] = cell;
        more[j] = cell;
        h[j] = out;
        y[j] = out;
    }
}

CTN__PER_ISA(NAME(gru_forward), (int64_t H, const NAME(forward_row) * s), (H, s))
{
    const T *p = s->p, *q = s->q, *b = s->b;
    T *h = s->h, *y = s->y, *act = s->act, *more = s->more;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const T r = SIGMOID(p[j] + (q[j] + b[j]));
        const T z = SIGMOID(p[H + j] + (q[H + j] + b[H + j]));
        const T m = q[2 * H + j] + b[2 * H + j];
        const T n = TANH(p[2 * H + j] + r * m);
        const T out = n + z * (h[j] - n);
        act[j] = r;
        act[H + j] = z;
        act[2 * H + j] = n;
        more[j] = m;
        h[j] = out;
        y[j] = out;
    }
}

CTN__PER_ISA(NAME(tanh_forward), (int64_t H, const NAME(forward_row) * s), (H, s))
{
    const T *p = s->p, *q = s->q, *b = s->b;
    T *h = s->h, *y = s->y, *act = s->act;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const T out = TANH(p[j] + (q[j] + b[j]));
        act[j] = out;
        h[j] = out;
        y[j] = out;
    }
}

CTN__PER_ISA(NAME(relu_forward), (int64_t H, const NAME(forward_row) * s), (H, s))
{
    const T *p = s->p, *q = s->q, *b = s->b;
    T *h = s->h, *y = s->y, *act = s->act;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const T v = p[j] + (q[j] + b[j]);
        const T out = v < 0 ? 0 : v;
        act[j] = out;
        h[j] = out;
        y[j] = out;
    }
}

/* A sample that is beyond its length. */
static void NAME(rest)(const sizes *z, const ctn_run_args *a, int64_t at, const T *c)
{
    T *act = a->out[ACT], *y = a->out[Y], *more = a->nout > MORE ? a->out[MORE] : NULL;
    const size_t bytes = (size_t)z->H * sizeof(T);
    if (act) memset(act + at * z->K * z->H, 0, (size_t)z->K * bytes);
    if (y) memset(y + at * z->H, 0, bytes);
    if (more && c) memcpy(more + at * z->H, c, bytes);
    else if (more) memset(more + at * z->H, 0, bytes);
}

/* The memory of sample n in step t. What nobody needs is written over q, c and h. */
static NAME(forward_row) NAME(row_of)(const sizes *z, const ctn_run_args *a, int64_t t, int64_t n,
                                      const NAME(forward_row) * whole)
{
    const int64_t H = z->H, W = z->K * H, at = t * z->N + n;
    T *act = a->out[ACT], *y = a->out[Y], *more = a->nout > MORE ? a->out[MORE] : NULL;
    NAME(forward_row) s = *whole;
    s.p = (const T *)a->in[P] + at * W;
    s.q += n * W;
    s.h += n * H;
    if (s.c) s.c += n * H;
    s.y = y ? y + at * H : s.h;
    s.act = act ? act + at * W : whole->act + n * W;
    s.more = more ? more + at * H : s.c ? s.c : s.act;
    return s;
}

static ctn_status NAME(forward)(const ctn_run_args *a)
{
    static void (*const *const kernels[])(int64_t H, const NAME(forward_row) * s) = {
        NAME(lstm_forward), NAME(gru_forward), NAME(tanh_forward), NAME(relu_forward)};
    const sizes z = sizes_of(a->attr, &a->din[P]);
    const int64_t W = z.K * z.H, S = z.N * z.H;
    const bool lstm = a->attr[MODE] == CTN__RNN_LSTM;
    void *room = (char *)a->scratch + product_scratch(a);
    T *q = room;
    T *h = a->out[FINAL_H] ? a->out[FINAL_H] : q + z.N * W, *c = q + z.N * W + S, *b = c + S;
    if (lstm && a->out[FINAL_C]) c = a->out[FINAL_C];
    const NAME(forward_row) whole = {
        .q = q, .h = h, .c = lstm ? c : NULL, .act = q, .b = a->attr[BIAS] ? a->in[z.bias] : b};
    memcpy(h, a->in[H0], (size_t)S * sizeof(T));
    if (lstm) memcpy(c, a->in[C0], (size_t)S * sizeof(T));
    if (!a->attr[BIAS]) memset(b, 0, (size_t)W * sizeof(T));
    for (int64_t k = 0; k < z.steps; k++) {
        const int64_t t = a->attr[REVERSE] ? z.steps - 1 - k : k;
        CTN_TRY(multiply(a, &z, h, q, true));
#pragma omp parallel for schedule(static) if (S * z.K > CTN__GRAIN)
        for (int64_t n = 0; n < z.N; n++) {
            if (t >= length_of(a, z.lengths, &z, n)) {
                NAME(rest)(&z, a, t * z.N + n, lstm ? c + n * z.H : NULL);
                continue;
            }
            const NAME(forward_row) s = NAME(row_of)(&z, a, t, n, &whole);
            kernels[a->attr[MODE]][z.isa](z.H, &s);
        }
    }
    return CTN_OK;
}

/* ---- backward -------------------------------------------------------------------------------- */

typedef struct {
    const T *act, *more, *prev; /* prev: the state before the step, c in an LSTM, h in a GRU */
    const T *gy, *through;      /* through: the gradient of h by way of the next step's gates */
    T *gh, *gc;                 /* of the state by other ways; updated in place */
    T *gp, *gq;                 /* of p and q, which differ in a GRU only */
} NAME(backward_row);

CTN__PER_ISA(NAME(lstm_backward), (int64_t H, const NAME(backward_row) * s), (H, s))
{
    const T *act = s->act, *cell = s->more, *prev = s->prev, *gy = s->gy, *through = s->through;
    T *gh = s->gh, *gc = s->gc, *gp = s->gp;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const T i = act[j], f = act[H + j], g = act[2 * H + j], o = act[3 * H + j];
        const T e = gy[j] + (gh[j] + through[j]), u = TANH(cell[j]);
        const T d = gc[j] + e * o * (1 - u * u);
        gp[j] = d * g * (i * (1 - i));
        gp[H + j] = d * prev[j] * (f * (1 - f));
        gp[2 * H + j] = d * i * (1 - g * g);
        gp[3 * H + j] = e * u * (o * (1 - o));
        gc[j] = d * f;
        gh[j] = 0;
    }
}

CTN__PER_ISA(NAME(gru_backward), (int64_t H, const NAME(backward_row) * s), (H, s))
{
    const T *act = s->act, *more = s->more, *prev = s->prev, *gy = s->gy, *through = s->through;
    T *gh = s->gh, *gp = s->gp, *gq = s->gq;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const T r = act[j], z = act[H + j], n = act[2 * H + j];
        const T e = gy[j] + (gh[j] + through[j]);
        const T gn = e * (1 - z) * (1 - n * n);
        const T gr = gn * more[j] * (r * (1 - r));
        const T gz = e * (prev[j] - n) * (z * (1 - z));
        gp[j] = gr;
        gp[H + j] = gz;
        gp[2 * H + j] = gn;
        gq[j] = gr;
        gq[H + j] = gz;
        gq[2 * H + j] = gn * r;
        gh[j] = e * z;
    }
}

CTN__PER_ISA(NAME(tanh_backward), (int64_t H, const NAME(backward_row) * s), (H, s))
{
    const T *act = s->act, *gy = s->gy, *through = s->through;
    T *gh = s->gh, *gp = s->gp;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        gp[j] = (gy[j] + (gh[j] + through[j])) * (1 - act[j] * act[j]);
        gh[j] = 0;
    }
}

CTN__PER_ISA(NAME(relu_backward), (int64_t H, const NAME(backward_row) * s), (H, s))
{
    const T *act = s->act, *gy = s->gy, *through = s->through;
    T *gh = s->gh, *gp = s->gp;
#pragma omp simd
    for (int64_t j = 0; j < H; j++) {
        const T e = gy[j] + (gh[j] + through[j]);
        gp[j] = act[j] > 0 ? e : 0;
        gh[j] = 0;
    }
}

/* A sample that is beyond its length. */
static void NAME(pass)(const sizes *z, const NAME(backward_row) * s)
{
    for (int64_t j = 0; j < z->H; j++) s->gh[j] += s->through[j];
    memset(s->gp, 0, (size_t)(z->K * z->H) * sizeof(T));
    if (s->gq != s->gp) memset(s->gq, 0, (size_t)(z->K * z->H) * sizeof(T));
}

/* The state of sample n before step t. */
static const T *NAME(before)(const ctn_run_args *a, const sizes *z, const grad_in *in, int64_t t,
                             int64_t n)
{
    const bool back = a->attr[REVERSE];
    const int64_t last = length_of(a, in->lengths, z, n) - 1;
    if (t == (back ? last : 0)) return (const T *)a->in[in->first] + n * z->H;
    return (const T *)a->in[in->states] + ((back ? t + 1 : t - 1) * z->N + n) * z->H;
}

static NAME(backward_row)
    NAME(grad_row_of)(const ctn_run_args *a, const sizes *z, const grad_in *in, int64_t t,
                      int64_t n, const NAME(backward_row) * whole)
{
    const int64_t H = z->H, W = z->K * H, at = t * z->N + n;
    NAME(backward_row) s = *whole;
    s.act = (const T *)a->in[ACT] + at * W;
    if (in->more) s.more = (const T *)a->in[in->more] + at * H;
    if (in->first && t < length_of(a, in->lengths, z, n)) s.prev = NAME(before)(a, z, in, t, n);
    if (in->gy) s.gy = (const T *)a->in[in->gy] + at * H;
    s.through += n * H;
    s.gh += n * H;
    s.gc += n * H;
    s.gp += n * W;
    s.gq += n * W;
    return s;
}

static void NAME(start)(T *to, const ctn_run_args *a, int i, int64_t n)
{
    if (i) memcpy(to, a->in[i], (size_t)n * sizeof(T));
    else memset(to, 0, (size_t)n * sizeof(T));
}

static ctn_status NAME(backward)(const ctn_run_args *a)
{
    static void (*const *const kernels[])(int64_t H, const NAME(backward_row) * s) = {
        NAME(lstm_backward), NAME(gru_backward), NAME(tanh_backward), NAME(relu_backward)};
    const sizes z = sizes_of(a->attr, &a->din[ACT]);
    const grad_in in = grad_inputs(a->attr);
    const int64_t W = z.K * z.H, S = z.N * z.H;
    const bool lstm = a->attr[MODE] == CTN__RNN_LSTM, gru = a->attr[MODE] == CTN__RNN_GRU;
    void *room = (char *)a->scratch + product_scratch(a);
    T *through = room, *zero = through + 3 * S;
    T *gh = a->out[GH] ? a->out[GH] : through + S, *spare = zero + z.H; /* 2 (N,K H) */
    T *gc = lstm && a->out[GC] ? a->out[GC] : through + 2 * S;
    NAME(backward_row) whole = {.gy = zero, .through = through, .gh = gh, .gc = gc};
    NAME(start)(gh, a, in.gh, S);
    NAME(start)(gc, a, in.gc, S);
    memset(through, 0, (size_t)S * sizeof(T));
    memset(zero, 0, (size_t)z.H * sizeof(T));
    for (int64_t k = z.steps - 1; k >= 0; k--) {
        const int64_t t = a->attr[REVERSE] ? z.steps - 1 - k : k;
        const int64_t at = t * z.N * W;
        whole.gp = whole.gq = a->out[GP] ? (T *)a->out[GP] + at : spare;
        if (gru) whole.gq = a->out[GQ] ? (T *)a->out[GQ] + at : spare + z.N * W;
#pragma omp parallel for schedule(static) if (S * z.K > CTN__GRAIN)
        for (int64_t n = 0; n < z.N; n++) {
            const NAME(backward_row) s = NAME(grad_row_of)(a, &z, &in, t, n, &whole);
            if (t >= length_of(a, in.lengths, &z, n)) NAME(pass)(&z, &s);
            else kernels[a->attr[MODE]][z.isa](z.H, &s);
        }
        CTN_TRY(multiply(a, &z, whole.gq, through, false));
    }
    for (int64_t i = 0; i < S; i++) gh[i] += through[i];
    return CTN_OK;
}

#undef T
#undef NAME
#undef SIGMOID
#undef TANH
