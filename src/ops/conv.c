/* SPDX-License-Identifier: Apache-2.0
 *
 * conv, conv_data and conv_weights (see conv.h) in one to three spatial dimensions, with stride,
 * padding, dilation and groups. oneDNN computes f32, bf16 and f16, conv_f64.c computes f64. What
 * oneDNN refuses is left to reference loops, which accept any strides.
 */
#include "ops/common/conv.h"

static const char *const attr_names[] = {"act",        "stride 0",  "stride 1",   "stride 2",
                                         "pad 0",      "pad 1",     "pad 2",      "pad end 0",
                                         "pad end 1",  "pad end 2", "dilation 0", "dilation 1",
                                         "dilation 2", "groups",    "size 0",     "size 1",
                                         "size 2"};

static int64_t span(const int64_t *attr, int i, int64_t k)
{
    return attr[CTN__CONV_DILATION + i] * (k - 1) + 1;
}

static int64_t padding(const int64_t *attr, int i)
{
    return attr[CTN__CONV_PAD + i] + attr[CTN__CONV_PAD_END + i];
}

/* ---- infer ----------------------------------------------------------------------------------- */

static ctn_status wrong(const ctn_infer_args *a, const char *p, const char *q, const char *why)
{
    char t0[128], t1[128];
    return ctn_fail(CTN_ESHAPE, "%s: %s is %s, %s is %s: %s", a->name, p,
                    ctn__shape_text(a->in[0], t0, sizeof t0), q,
                    ctn__shape_text(a->in[1], t1, sizeof t1), why);
}

static ctn_status check(const ctn_infer_args *a, const char *p, const char *q)
{
    const ctn_desc *x = a->in[0], *w = a->in[1];
    for (int i = 0; i < a->nin; i++)
        if (!ctn__is_f32_f64(a->in[i]->dtype) || a->in[i]->dtype != x->dtype)
            return ctn_fail(CTN_EDTYPE,
                            "%s: %s is %s, %s is %s; expected f32 or f64 for all inputs", a->name,
                            p, ctn_dtype_name(x->dtype), q, ctn_dtype_name(a->in[i]->dtype));
    if (x->ndim < 3 || x->ndim > 2 + CTN_MAX_SPATIAL || w->ndim != x->ndim)
        return wrong(a, p, q, "both need 2 dimensions followed by 1 to 3 spatial ones");
    for (int i = 0; i < CTN_MAX_SPATIAL; i++)
        if (a->attr[CTN__CONV_STRIDE + i] < 1 || a->attr[CTN__CONV_DILATION + i] < 1 ||
            a->attr[CTN__CONV_PAD + i] < 0 || a->attr[CTN__CONV_PAD_END + i] < 0)
            return wrong(a, p, q, "strides and dilations must be at least 1, padding at least 0");
    if (a->attr[CTN__CONV_GROUPS] < 1) return wrong(a, p, q, "groups must be at least 1");
    for (int i = 0; i < x->ndim; i++)
        if (x->dim[i] > CTN__CONV_MOST || w->dim[i] > CTN__CONV_MOST)
            return wrong(a, p, q, "no size may be larger than 1073741824");
    return CTN_OK;
}

static ctn_status conv_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *w = a->in[1], *b = a->nin > 2 ? a->in[2] : NULL;
    int64_t g = a->attr[CTN__CONV_GROUPS];
    CTN_TRY(check(a, "x", "the weight"));
    if (w->dim[1] * g != x->dim[1] || w->dim[0] % g != 0)
        return wrong(
            a, "x", "the weight",
            "the channels of x must be groups times the second dimension of the weight, and "
            "the first dimension of the weight must be a multiple of groups");
    if (b && (b->ndim != 1 || b->dim[0] != w->dim[0]))
        return ctn_fail(CTN_ESHAPE, "conv: the bias must have shape (%lld)", (long long)w->dim[0]);
    a->out[0].dtype = x->dtype;
    a->out[0].ndim = x->ndim;
    a->out[0].dim[0] = x->dim[0];
    a->out[0].dim[1] = w->dim[0];
    for (int i = 0; i < x->ndim - 2; i++) {
        int64_t room = x->dim[2 + i] + padding(a->attr, i) - span(a->attr, i, w->dim[2 + i]);
        if (w->dim[2 + i] < 1 || room < 0)
            return wrong(a, "x", "the weight", "the kernel is larger than x with its padding");
        a->out[0].dim[2 + i] = room / a->attr[CTN__CONV_STRIDE + i] + 1;
    }
    return CTN_OK;
}

/* in: y (N,O,...), w (O,I/groups,...) */
static ctn_status conv_data_infer(ctn_infer_args *a)
{
    const ctn_desc *y = a->in[0], *w = a->in[1];
    CTN_TRY(check(a, "x", "the weight"));
    if (w->dim[0] != y->dim[1] || w->dim[0] % a->attr[CTN__CONV_GROUPS] != 0)
        return wrong(
            a, "x", "the weight",
            "the channels of x must equal the first dimension of the weight, which must be a "
            "multiple of groups");
    a->out[0].dtype = y->dtype;
    a->out[0].ndim = y->ndim;
    a->out[0].dim[0] = y->dim[0];
    a->out[0].dim[1] = w->dim[1] * a->attr[CTN__CONV_GROUPS];
    for (int i = 0; i < y->ndim - 2; i++) {
        int64_t n = a->attr[CTN__CONV_SIZE + i];
        int64_t room = n + padding(a->attr, i) - span(a->attr, i, w->dim[2 + i]);
        if (n < 1 || room < 0 || room / a->attr[CTN__CONV_STRIDE + i] + 1 != y->dim[2 + i])
            return wrong(a, "x", "the weight", "no convolution has a result of that size");
        a->out[0].dim[2 + i] = n;
    }
    return CTN_OK;
}

static ctn_status conv_weights_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *y = a->in[1];
    int64_t g = a->attr[CTN__CONV_GROUPS];
    CTN_TRY(check(a, "x", "y"));
    if (x->dim[0] != y->dim[0] || x->dim[1] % g != 0 || y->dim[1] % g != 0)
        return wrong(a, "x", "y",
                     "they need the same batch size, and groups must divide the channels of both");
    a->out[0].dtype = x->dtype;
    a->out[0].ndim = x->ndim;
    a->out[0].dim[0] = y->dim[1];
    a->out[0].dim[1] = x->dim[1] / g;
    for (int i = 0; i < x->ndim - 2; i++) a->out[0].dim[2 + i] = a->attr[CTN__CONV_SIZE + i];
    return CTN_OK;
}

/* ---- reference kernel ------------------------------------------------------------------------ */

/* Always three spatial dimensions; missing ones are put first, with length 1. */
typedef struct {
    const void *x, *w, *y;
    ctn_dtype tx, tw, ty;
    int64_t N, I, O, G, Ig, Og; /* I and O over all groups */
    int64_t n[3], k[3], m[3];   /* sizes of x, kernel, y */
    int64_t sx[5], sw[5], sy[5];
    int64_t stride[3], pad[3], dil[3];
} problem;

static void spread(const ctn_desc *d, int64_t *size, int64_t *stride)
{
    int missing = 5 - d->ndim;
    stride[0] = d->stride[0];
    stride[1] = d->stride[1];
    for (int i = 0; i < 3; i++) {
        size[i] = i < missing ? 1 : d->dim[2 + i - missing];
        stride[2 + i] = i < missing ? 0 : d->stride[2 + i - missing];
    }
}

static problem pose(const int64_t *attr, const ctn_desc *x, const ctn_desc *w, const ctn_desc *y)
{
    int missing = 5 - x->ndim;
    problem p = {.tx = x->dtype, .tw = w->dtype, .ty = y->dtype};
    p.N = x->dim[0];
    p.I = x->dim[1];
    p.O = y->dim[1];
    p.G = attr[CTN__CONV_GROUPS];
    p.Ig = p.I / p.G;
    p.Og = p.O / p.G;
    spread(x, p.n, p.sx);
    spread(w, p.k, p.sw);
    spread(y, p.m, p.sy);
    for (int i = 0; i < 3; i++) {
        p.stride[i] = i < missing ? 1 : attr[CTN__CONV_STRIDE + i - missing];
        p.pad[i] = i < missing ? 0 : attr[CTN__CONV_PAD + i - missing];
        p.dil[i] = i < missing ? 1 : attr[CTN__CONV_DILATION + i - missing];
    }
    return p;
}

static double px(const problem *p, int64_t n, int64_t c, const int64_t *at)
{
    return ctn__elem_get(p->x, p->tx,
                         n * p->sx[0] + c * p->sx[1] + at[0] * p->sx[2] + at[1] * p->sx[3] +
                             at[2] * p->sx[4]);
}

static double py(const problem *p, int64_t n, int64_t c, const int64_t *at)
{
    return ctn__elem_get(p->y, p->ty,
                         n * p->sy[0] + c * p->sy[1] + at[0] * p->sy[2] + at[1] * p->sy[3] +
                             at[2] * p->sy[4]);
}

static double pw(const problem *p, int64_t o, int64_t i, const int64_t *at)
{
    return ctn__elem_get(p->w, p->tw,
                         o * p->sw[0] + i * p->sw[1] + at[0] * p->sw[2] + at[1] * p->sw[3] +
                             at[2] * p->sw[4]);
}

static bool next(int64_t *at, const int64_t *size)
{
    for (int i = 2; i >= 0; i--) {
        if (++at[i] < size[i]) return true;
        at[i] = 0;
    }
    return false;
}

/* Where kernel element k of y's element m reads in x; false in the padding. */
static bool reads(const problem *p, const int64_t *m, const int64_t *k, int64_t *at)
{
    for (int i = 0; i < 3; i++) {
        at[i] = m[i] * p->stride[i] - p->pad[i] + k[i] * p->dil[i];
        if (at[i] < 0 || at[i] >= p->n[i]) return false;
    }
    return true;
}

/* Which element of y reads element n of x through kernel element k; false if none does. */
static bool read_by(const problem *p, const int64_t *n, const int64_t *k, int64_t *m)
{
    for (int i = 0; i < 3; i++) {
        int64_t t = n[i] + p->pad[i] - k[i] * p->dil[i];
        if (t < 0 || t % p->stride[i] != 0 || t / p->stride[i] >= p->m[i]) return false;
        m[i] = t / p->stride[i];
    }
    return true;
}

static double forward_at(const problem *p, int64_t n, int64_t o, const int64_t *m)
{
    double s = 0;
    int64_t g = o / p->Og, at[3];
    for (int64_t i = 0; i < p->Ig; i++) {
        int64_t k[3] = {0};
        do {
            if (reads(p, m, k, at)) s += px(p, n, g * p->Ig + i, at) * pw(p, o, i, k);
        } while (next(k, p->k));
    }
    return s;
}

static double data_at(const problem *p, int64_t n, int64_t c, const int64_t *at)
{
    double s = 0;
    int64_t g = c / p->Ig, m[3];
    for (int64_t o = g * p->Og; o < (g + 1) * p->Og; o++) {
        int64_t k[3] = {0};
        do {
            if (read_by(p, at, k, m)) s += py(p, n, o, m) * pw(p, o, c % p->Ig, k);
        } while (next(k, p->k));
    }
    return s;
}

static double weights_at(const problem *p, int64_t o, int64_t i, const int64_t *k)
{
    double s = 0;
    int64_t c = o / p->Og * p->Ig + i, at[3];
    for (int64_t n = 0; n < p->N; n++) {
        int64_t m[3] = {0};
        do {
            if (reads(p, m, k, at)) s += px(p, n, c, at) * py(p, n, o, m);
        } while (next(m, p->m));
    }
    return s;
}

/* Set every element of out, which has strides s and spatial size `size`, from at(). */
static void fill(const problem *p, void *out, ctn_dtype t, int64_t rows, int64_t cols,
                 const int64_t *size, const int64_t *s, const void *bias, ctn_dtype tb, bool relu,
                 double (*at)(const problem *p, int64_t r, int64_t c, const int64_t *pos))
{
    if (size[0] * size[1] * size[2] == 0) return;
#pragma omp parallel for collapse(2) schedule(static)
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t c = 0; c < cols; c++) {
            int64_t pos[3] = {0};
            do {
                double v = at(p, r, c, pos) + (bias ? ctn__elem_get(bias, tb, c) : 0);
                if (relu && v < 0) v = 0;
                ctn__elem_set(out, t,
                              r * s[0] + c * s[1] + pos[0] * s[2] + pos[1] * s[3] + pos[2] * s[4],
                              v);
            } while (next(pos, size));
        }
    }
}

static ctn_status conv_run(const ctn_run_args *a)
{
    problem p = pose(a->attr, &a->din[0], &a->din[1], &a->dout[0]);
    p.x = a->in[0];
    p.w = a->in[1];
    const void *b = a->nin > 2 ? a->in[2] : NULL;
    fill(&p, a->out[0], p.ty, p.N, p.O, p.m, p.sy, b, b ? a->din[2].dtype : p.tx,
         a->attr[CTN__CONV_ACT] == CTN__ELT_RELU, forward_at);
    return CTN_OK;
}

static ctn_status conv_data_run(const ctn_run_args *a)
{
    problem p = pose(a->attr, &a->dout[0], &a->din[1], &a->din[0]);
    p.y = a->in[0];
    p.w = a->in[1];
    fill(&p, a->out[0], p.tx, p.N, p.I, p.n, p.sx, NULL, p.tx, false, data_at);
    return CTN_OK;
}

static ctn_status conv_weights_run(const ctn_run_args *a)
{
    problem p = pose(a->attr, &a->din[0], &a->dout[0], &a->din[1]);
    p.x = a->in[0];
    p.y = a->in[1];
    fill(&p, a->out[0], p.tw, p.O, p.Ig, p.k, p.sw, NULL, p.tw, false, weights_at);
    return CTN_OK;
}

/* ---- oneDNN ---------------------------------------------------------------------------------- */

static ctn_status run_forward(const ctn_run_args *a)
{
    void *ptr[7] = {(void *)(uintptr_t)a->in[0], (void *)(uintptr_t)a->in[1],
                    a->nin > 2 ? (void *)(uintptr_t)a->in[2] : NULL, a->out[0]};
    return ctn__prim_run(a->priv, ptr, a->scratch);
}

static ctn_status run_data(const ctn_run_args *a)
{
    void *ptr[7] = {a->out[0], (void *)(uintptr_t)a->in[1], NULL, (void *)(uintptr_t)a->in[0]};
    return ctn__prim_run(a->priv, ptr, a->scratch);
}

static ctn_status run_weights(const ctn_run_args *a)
{
    void *ptr[7] = {(void *)(uintptr_t)a->in[0], a->out[0], NULL, (void *)(uintptr_t)a->in[1]};
    return ctn__prim_run(a->priv, ptr, a->scratch);
}

ctn__conv_shape ctn__conv_shape_of(const ctn_prepare_args *a)
{
    ctn__conv_shape s = {.groups = a->attr[CTN__CONV_GROUPS]};
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        s.stride[i] = a->attr[CTN__CONV_STRIDE + i];
        s.pad[i] = a->attr[CTN__CONV_PAD + i];
        s.pad_end[i] = a->attr[CTN__CONV_PAD_END + i];
        s.dilation[i] = a->attr[CTN__CONV_DILATION + i];
    }
    return s;
}

/* Prepare one of the three. What oneDNN has no kernel for, and what has no elements, is left to
 * the reference loops. CTN_END: oneDNN has no second kernel. */
static ctn_status prepare(ctn_prepare_args *a, ctn__conv_kind kind, const ctn_desc *x, ctn_desc *w,
                          const ctn_desc *bias, const ctn_desc *y,
                          ctn_status (*run)(const ctn_run_args *a), bool second)
{
    ctn__conv_shape s = ctn__conv_shape_of(a);
    ctn__conv_post post = {.act = (ctn__elt)a->attr[CTN__CONV_ACT]};
    const bool empty = ctn__count(x) == 0 || ctn__count(y) == 0;
    a->kernel = empty ? "empty" : "reference";
    if (empty) return second ? CTN_END : CTN_OK;
    if (x->dtype == CTN_F64) return second ? CTN_END : ctn__conv_f64(a, kind);
    ctn__prim *prim = NULL;
    if (ctn__prim_conv(&prim, a->engine, kind, &s, x, w, bias, y, &post, second) < 0) {
        if (ctn_error_status() == CTN_ENOMEM) return CTN_ENOMEM;
        ctn_error_clear();
        return second ? CTN_END : CTN_OK;
    }
    return prim ? ctn__with_prim(a, prim, run) : CTN_END;
}

#define WAYS(name, ...)                                  \
    static ctn_status name##_first(ctn_prepare_args *a)  \
    {                                                    \
        return prepare(a, __VA_ARGS__, false);           \
    }                                                    \
    static ctn_status name##_second(ctn_prepare_args *a) \
    {                                                    \
        return prepare(a, __VA_ARGS__, true);            \
    }
WAYS(forward, CTN__CONV_FORWARD, &a->din[0], &a->din[1], a->nin > 2 ? &a->din[2] : NULL,
     &a->dout[0], run_forward)
WAYS(data, CTN__CONV_DATA, &a->dout[0], &a->din[1], NULL, &a->din[0], run_data)
WAYS(weights, CTN__CONV_WEIGHTS, &a->din[0], &a->dout[0], NULL, &a->din[1], run_weights)

int64_t ctn__conv_work(const ctn_desc *y, const ctn_desc *w)
{
    return 2 * ctn__count(y) * (ctn__count(w) / (w->dim[0] > 0 ? w->dim[0] : 1));
}

static ctn_status conv_prepare(ctn_prepare_args *a)
{
    static const ctn__way ways[] = {{"conv", forward_first}, {"conv2", forward_second}};
    return ctn__choose(a, ctn__conv_work(&a->dout[0], &a->din[1]), 2, ways);
}

static ctn_status conv_data_prepare(ctn_prepare_args *a)
{
    static const ctn__way ways[] = {{"conv", data_first}, {"conv2", data_second}};
    return ctn__choose(a, ctn__conv_work(&a->din[0], &a->din[1]), 2, ways);
}

static ctn_status conv_weights_prepare(ctn_prepare_args *a)
{
    static const ctn__way ways[] = {{"conv", weights_first},
                                    {"matmul", ctn__conv_weights_matmul},
                                    {"conv2", weights_second},
                                    {"outer", ctn__conv_weights_outer}};
    return ctn__choose(a, ctn__conv_work(&a->din[1], &a->dout[0]), 4, ways);
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* Record one of the three with the attributes of node a. size: spatial sizes of the result, NULL
 * for conv. */
static ctn_tensor *related(const ctn_grad_args *a, ctn_op *op, ctn_tensor *p, ctn_tensor *q,
                           const ctn_desc *like)
{
    int64_t attr[CTN__CONV_NATTR];
    ctn_tensor *in[2] = {p, q};
    memcpy(attr, a->attr, sizeof attr);
    attr[CTN__CONV_ACT] = CTN__ELT_NONE;
    for (int i = 0; i < CTN_MAX_SPATIAL; i++)
        attr[CTN__CONV_SIZE + i] = like && i < like->ndim - 2 ? like->dim[2 + i] : 0;
    return ctn__apply1(a->at, NULL, op, 2, in, CTN__CONV_NATTR, attr, 0, NULL);
}

static ctn_status conv_grad(const ctn_grad_args *a)
{
    ctn_tensor *x = a->in[0], *w = a->in[1], *g = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, related(a, &ctn__op_conv_data, g, w, &x->d)));
    if (a->need[1]) CTN_TRY(ctn__grad_to(a, 1, related(a, &ctn__op_conv_weights, x, g, &w->d)));
    if (a->nin > 2 && a->need[2]) {
        static const int64_t axes[] = {0, 2, 3, 4};
        CTN_TRY(ctn__grad_to(a, 2, ctn_sum_at(a->at, g, g->d.ndim - 1, axes, 0)));
    }
    return CTN_OK;
}

static ctn_status conv_data_grad(const ctn_grad_args *a)
{
    ctn_tensor *y = a->in[0], *w = a->in[1], *u = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, related(a, &ctn__op_conv, u, w, NULL)));
    if (a->need[1]) CTN_TRY(ctn__grad_to(a, 1, related(a, &ctn__op_conv_weights, u, y, &w->d)));
    return CTN_OK;
}

static ctn_status conv_weights_grad(const ctn_grad_args *a)
{
    ctn_tensor *x = a->in[0], *y = a->in[1], *u = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, related(a, &ctn__op_conv_data, y, u, &x->d)));
    if (a->need[1]) CTN_TRY(ctn__grad_to(a, 1, related(a, &ctn__op_conv, x, u, NULL)));
    return CTN_OK;
}

ctn_op ctn__op_conv = {
    .struct_size = sizeof(ctn_op),
    .name = "conv",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_LOW,
    .grad_in = CTN_OPERANDS(2),
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = conv_infer,
    .grad = conv_grad,
    .prepare = conv_prepare,
    .run = conv_run,
};

ctn_op ctn__op_conv_data = {
    .struct_size = sizeof(ctn_op),
    .name = "conv_data",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_LOW,
    .grad_in = CTN_OPERANDS(2),
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = conv_data_infer,
    .grad = conv_data_grad,
    .prepare = conv_data_prepare,
    .run = conv_data_run,
};

ctn_op ctn__op_conv_weights = {
    .struct_size = sizeof(ctn_op),
    .name = "conv_weights",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_LOW,
    .grad_in = CTN_OPERANDS(2),
    .spatial_in = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = conv_weights_infer,
    .grad = conv_weights_grad,
    .prepare = conv_weights_prepare,
    .run = conv_weights_run,
};

/* ---- public ---------------------------------------------------------------------------------- */

static void per_axis(int64_t *attr, const int64_t *from, int64_t none)
{
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        int64_t v = from[i] ? from[i] : from[0];
        attr[i] = v ? v : none;
    }
}

ctn_status ctn__conv_opt(int64_t *attr, ctn_conv_opt *o, const char *who, const ctn_conv_opt *opt)
{
    *o = (ctn_conv_opt){.struct_size = sizeof *o};
    CTN_TRY(ctn__opt(who, o, sizeof *o, opt));
    memset(attr, 0, CTN__CONV_NATTR * sizeof *attr);
    per_axis(attr + CTN__CONV_STRIDE, o->stride, 1);
    per_axis(attr + CTN__CONV_PAD, o->pad, 0);
    per_axis(attr + CTN__CONV_PAD_END, o->pad_end, 0);
    per_axis(attr + CTN__CONV_DILATION, o->dilation, 1);
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        int64_t *pad = &attr[CTN__CONV_PAD + i], *end = &attr[CTN__CONV_PAD_END + i];
        if (*end == 0) *end = *pad;
        if (*pad == CTN_PAD_NONE) *pad = 0;
        if (*end == CTN_PAD_NONE) *end = 0;
    }
    attr[CTN__CONV_GROUPS] = o->groups ? o->groups : 1;
    for (int i = 0; i < CTN__CONV_NATTR; i++)
        if (attr[i] > CTN__CONV_MOST || attr[i] < -CTN__CONV_MOST)
            return ctn_fail(CTN_EARG, "%s: %s is %lld, expected at most %lld", who, attr_names[i],
                            (long long)attr[i], (long long)CTN__CONV_MOST);
    return CTN_OK;
}

ctn_tensor *ctn__conv_pad(const char *at, ctn_tensor *x, ctn_pad_mode mode, int64_t *attr)
{
    int64_t before[CTN_MAX_DIMS] = {0}, after[CTN_MAX_DIMS] = {0};
    bool any = false;
    if (!x || x->d.ndim < 3 || x->d.ndim > 2 + CTN_MAX_SPATIAL) return x; /* conv refuses it */
    for (int i = 0; i < x->d.ndim - 2; i++) {
        before[2 + i] = attr[CTN__CONV_PAD + i];
        after[2 + i] = attr[CTN__CONV_PAD_END + i];
        any = any || before[2 + i] != 0 || after[2 + i] != 0;
        attr[CTN__CONV_PAD + i] = attr[CTN__CONV_PAD_END + i] = 0;
    }
    return any ? ctn_pad_by_at(at, x, mode, before, after) : x;
}

ctn_tensor *ctn_conv_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b,
                        const ctn_conv_opt *opt)
{
    int64_t attr[CTN__CONV_NATTR];
    ctn_conv_opt o;
    ctn_tensor *in[3] = {x, w, b};
    if (ctn__conv_opt(attr, &o, "conv", opt) < 0) return NULL;
    if (o.pad_mode != CTN_PAD_ZEROS) in[0] = ctn__conv_pad(at, x, o.pad_mode, attr);
    return ctn__apply1(at, NULL, &ctn__op_conv, b ? 3 : 2, in, CTN__CONV_NATTR, attr, 0, NULL);
}

ctn_tensor *ctn_conv_transpose_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b,
                                  const ctn_conv_opt *opt)
{
    int64_t attr[CTN__CONV_NATTR] = {0}, extra[CTN_MAX_SPATIAL];
    ctn_conv_opt o;
    ctn_tensor *in[2] = {x, w};
    if (ctn__conv_opt(attr, &o, "conv_transpose", opt) < 0) return NULL;
    if (o.pad_mode != CTN_PAD_ZEROS) {
        ctn_fail(CTN_EARG, "conv_transpose: pad_mode is %d, expected CTN_PAD_ZEROS (%s)",
                 (int)o.pad_mode, at);
        return NULL;
    }
    per_axis(extra, o.out_pad, 0);
    for (int i = 0; x && w && i < CTN_MAX_SPATIAL && i < x->d.ndim - 2 && i < w->d.ndim - 2; i++) {
        const int64_t n = x->d.dim[2 + i], k = w->d.dim[2 + i];
        const int64_t more = extra[i] == CTN_PAD_NONE ? 0 : extra[i];
        if (n > CTN__CONV_MOST || k > CTN__CONV_MOST || more < 0 || more > CTN__CONV_MOST) continue;
        attr[CTN__CONV_SIZE + i] =
            (n - 1) * attr[CTN__CONV_STRIDE + i] - padding(attr, i) + span(attr, i, k) + more;
    }
    ctn_tensor *y =
        ctn__apply1(at, NULL, &ctn__op_conv_data, 2, in, CTN__CONV_NATTR, attr, 0, NULL);
    if (!y || !b) return y;
    int64_t dims[2 + CTN_MAX_SPATIAL] = {1, y->d.dim[1], 1, 1, 1};
    return ctn_add_at(at, y, ctn_reshape_at(at, b, y->d.ndim, dims));
}
