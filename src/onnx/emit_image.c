/* SPDX-License-Identifier: Apache-2.0
 *
 * Emitters of ops on (N,C,spatial...): convolution, batch normalisation, pooling, resampling.
 * Spatial sizes are fixed in the model.
 */
#include "onnx/emit.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "ops/common/conv.h"
#include "ops/common/pool.h"

#define IN(i) ctn__emit_in(e, n, i)
#define NODE(...) CTN__NODE(e, __VA_ARGS__)

static void give(ctn__emit *e, const ctn__node *n, char *y)
{
    ctn__emit_out(e, n, 0, y);
}

/* ---- convolution ----------------------------------------------------------------------------- */

/* The attributes of Conv and ConvTranspose, from a conv or a conv_data. */
static void conv_attributes(ctn__emit *e, const ctn__node *n)
{
    const int s = n->in[0]->d.ndim - 2;
    int64_t pads[2 * CTN_MAX_SPATIAL];
    for (int i = 0; i < s; i++) {
        pads[i] = n->attr[CTN__CONV_PAD + i];
        pads[s + i] = n->attr[CTN__CONV_PAD_END + i];
    }
    ctn__emit_ints(e, "kernel_shape", s, n->in[1]->d.dim + 2);
    ctn__emit_ints(e, "strides", s, n->attr + CTN__CONV_STRIDE);
    ctn__emit_ints(e, "pads", 2 * s, pads);
    ctn__emit_ints(e, "dilations", s, n->attr + CTN__CONV_DILATION);
    ctn__emit_int(e, "group", n->attr[CTN__CONV_GROUPS]);
}

void ctn__emit_conv(ctn__emit *e, const ctn__node *n, const char *word)
{
    (void)word;
    give(e, n, NODE("Conv", IN(0), IN(1), n->nin > 2 ? IN(2) : ""));
    conv_attributes(e, n);
}

void ctn__emit_conv_transpose(ctn__emit *e, const ctn__node *n, const char *word)
{
    const int s = n->in[0]->d.ndim - 2;
    int64_t extra[CTN_MAX_SPATIAL];
    (void)word;
    for (int i = 0; i < s; i++) {
        const int64_t k = n->in[1]->d.dim[2 + i];
        extra[i] = n->attr[CTN__CONV_SIZE + i] -
                   ((n->in[0]->d.dim[2 + i] - 1) * n->attr[CTN__CONV_STRIDE + i] -
                    n->attr[CTN__CONV_PAD + i] - n->attr[CTN__CONV_PAD_END + i] +
                    n->attr[CTN__CONV_DILATION + i] * (k - 1) + 1);
    }
    give(e, n, NODE("ConvTranspose", IN(0), IN(1)));
    conv_attributes(e, n);
    ctn__emit_ints(e, "output_padding", s, extra);
}

/* ---- batch normalisation --------------------------------------------------------------------- */

enum { ACT, ADD, BIAS }; /* attributes of channel_affine */

static const ctn__node *made_by(const ctn_tensor *t, const ctn_op *op)
{
    return t->node && t->node->event == CTN__EV_OP && t->node->op == op ? t->node : NULL;
}

/* a = scale rsqrt(var + eps) and b = shift - mean a, as ops/batch_norm.c records them. */
bool ctn__emit_batch_norm_of(const ctn__node *n, ctn__batch_norm_of *b)
{
    if (n->op != &ctn__op_channel_affine || !n->attr[BIAS] || n->attr[ADD] || n->attr[ACT])
        return false;
    const ctn__node *a = made_by(n->in[1], &ctn__op_mul), *sub = made_by(n->in[2], &ctn__op_sub);
    const ctn__node *root = a ? made_by(a->in[1], &ctn__op_rsqrt) : NULL;
    const ctn__node *eps = root ? made_by(root->in[0], &ctn__op_shift) : NULL;
    const ctn__node *ma = sub ? made_by(sub->in[1], &ctn__op_mul) : NULL;
    if (!eps || !ma || ma->in[1] != n->in[1]) return false;
    *b = (ctn__batch_norm_of){.x = n->in[0],
                              .scale = a->in[0],
                              .shift = sub->in[0],
                              .mean = ma->in[0],
                              .var = eps->in[0],
                              .eps = eps->scalar[0].value};
    const ctn_desc *d = &b->scale->d;
    return d->ndim == 1 && ctn__same_shape(d, &b->shift->d) && ctn__same_shape(d, &b->mean->d) &&
           ctn__same_shape(d, &b->var->d);
}

/* Values are at hand of variables and of constants that were recorded with ctn_full. */
static bool is_known(const ctn_tensor *t)
{
    return t->var || made_by(t, &ctn__op_full);
}

static double known(const ctn_tensor *t, int64_t i)
{
    return t->var ? ctn__elem_get(t->var->data, t->d.dtype, i) : t->node->scalar[0].value;
}

const ctn__node *ctn__emit_folds(const ctn__emit *e, const ctn__node *n)
{
    ctn__batch_norm_of b;
    if (!e->opt.fold_batch_norm || !ctn__emit_batch_norm_of(n, &b)) return NULL;
    const ctn__node *conv = made_by(b.x, &ctn__op_conv);
    if (!conv || !conv->in[1]->var) return NULL;
    /* the result without the normalisation, or the weight as it is, is needed elsewhere */
    if (e->uses[b.x->id] > 1 || e->uses[conv->in[1]->id] > 1) return NULL;
    const bool all = is_known(b.scale) && is_known(b.shift) && is_known(b.mean) && is_known(b.var);
    return all && (conv->nin < 3 || conv->in[2]->var) ? conv : NULL;
}

/* w a and (bias - mean) a + shift, a = scale / sqrt(var + eps), one per channel. */
static void fold(ctn__emit *e, const ctn__node *n, const ctn__node *conv,
                 const ctn__batch_norm_of *b)
{
    const ctn_tensor *w = conv->in[1];
    const ctn_desc *d = &w->d, bias = {.dtype = d->dtype, .ndim = 1, .dim = {d->dim[0]}};
    const int64_t C = d->dim[0], per = C > 0 ? ctn__count(d) / C : 0;
    const ctn_tensor *const read[] = {w, b->scale, b->shift, b->mean, b->var};
    for (int i = 0; i < 5 && e->st == CTN_OK; i++) e->st = ctn__emit_ready(read[i]);
    if (conv->nin > 2 && e->st == CTN_OK) e->st = ctn__emit_ready(conv->in[2]);
    void *folded = ctn__arena_get(&e->arena, ctn__bytes(d) + 1);
    void *added = ctn__arena_get(&e->arena, (size_t)C * ctn_dtype_size(d->dtype) + 1);
    if (!folded || !added) e->st = CTN_ENOMEM;
    if (e->st < 0) return;
    for (int64_t c = 0; c < C; c++) {
        const double a = known(b->scale, c) / sqrt(known(b->var, c) + b->eps);
        const double was = conv->nin > 2 ? known(conv->in[2], c) : 0;
        for (int64_t i = c * per; i < (c + 1) * per; i++)
            ctn__elem_set(folded, d->dtype, i, known(w, i) * a);
        ctn__elem_set(added, d->dtype, c, (was - known(b->mean, c)) * a + known(b->shift, c));
    }
    char *wn = ctn__emit_stored(e, ctn__emit_var_name(e, w->var), d, folded);
    char *bn = ctn__emit_stored(e,
                                conv->nin > 2 ? ctn__emit_var_name(e, conv->in[2]->var)
                                              : ctn__emit_bias_name(e, w->var),
                                &bias, added);
    give(e, n, NODE("Conv", e->name[conv->in[0]->id], wn, bn));
    conv_attributes(e, conv);
}

void ctn__emit_channel_affine(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *x = &n->in[0]->d;
    int64_t dims[CTN_MAX_DIMS] = {x->dim[1], 1, 1, 1, 1, 1, 1, 1};
    ctn__batch_norm_of b;
    (void)word;
    if (ctn__emit_batch_norm_of(n, &b)) {
        const ctn__node *conv = ctn__emit_folds(e, n);
        if (conv) {
            fold(e, n, conv, &b);
            return;
        }
        give(e, n,
             NODE("BatchNormalization", e->name[b.x->id], e->name[b.scale->id],
                  e->name[b.shift->id], e->name[b.mean->id], e->name[b.var->id]));
        ctn__emit_float(e, "epsilon", b.eps);
        return;
    }
    char *y = NODE("Mul", IN(0), ctn__emit_shaped(e, IN(1), x->ndim - 1, dims));
    if (n->attr[BIAS]) y = NODE("Add", y, ctn__emit_shaped(e, IN(2), x->ndim - 1, dims));
    if (n->attr[ADD]) y = NODE("Add", y, IN(n->nin - 1));
    give(e, n, n->attr[ACT] ? NODE("Relu", y) : y);
}

/* ---- pooling --------------------------------------------------------------------------------- */

typedef struct {
    int s;                                           /* spatial dimensions */
    const int64_t *in, *out, *kernel, *stride, *pad; /* s of each */
    int64_t pads[2 * CTN_MAX_SPATIAL];
    bool beyond; /* a window reaches further than the padding, because of `ceil` */
    bool global; /* one window covers everything */
} windows;

static windows windows_of(const ctn__node *n)
{
    windows w = {.s = n->in[0]->d.ndim - 2, .global = true};
    const int first = CTN_MAX_SPATIAL - w.s;
    w.in = n->attr + CTN__P_IN + first;
    w.out = n->attr + CTN__P_OUT + first;
    w.kernel = n->attr + CTN__P_KERNEL + first;
    w.stride = n->attr + CTN__P_STRIDE + first;
    w.pad = n->attr + CTN__P_PAD + first;
    for (int i = 0; i < w.s; i++) {
        const int64_t end = (w.out[i] - 1) * w.stride[i] + w.kernel[i] - w.in[i] - w.pad[i];
        w.pads[i] = w.pad[i];
        w.pads[w.s + i] = end > 0 ? end : 0;
        w.beyond = w.beyond || end > w.pad[i];
        w.global = w.global && w.kernel[i] == w.in[i] && w.pad[i] == 0 && w.out[i] == 1;
    }
    return w;
}

static void pool(ctn__emit *e, const ctn__node *n, const char *type, const windows *w)
{
    give(e, n, NODE(type, IN(0)));
    ctn__emit_ints(e, "kernel_shape", w->s, w->kernel);
    ctn__emit_ints(e, "strides", w->s, w->stride);
    ctn__emit_ints(e, "pads", 2 * w->s, w->pads);
}

void ctn__emit_max_pool(ctn__emit *e, const ctn__node *n, const char *word)
{
    const windows w = windows_of(n);
    (void)word;
    if (ctn__emit_used(e, n, 1)) {
        ctn__emit_fail(e, "the places of the maxima have no form in ONNX");
        return;
    }
    pool(e, n, "MaxPool", &w);
}

void ctn__emit_avg_pool(ctn__emit *e, const ctn__node *n, const char *word)
{
    const windows w = windows_of(n);
    const bool exclude = n->attr[CTN__P_WINDOWS] != 0;
    (void)word;
    if (w.global) {
        give(e, n, NODE("GlobalAveragePool", IN(0)));
        return;
    }
    if (w.beyond && !exclude) {
        ctn__emit_fail(e, "a window reaches beyond the padding, which counts in the mean");
        return;
    }
    pool(e, n, "AveragePool", &w);
    ctn__emit_int(e, "count_include_pad", !exclude);
}

/* x times a matrix (size,to) along one axis. */
static char *times(ctn__emit *e, char *x, int ndim, int axis, char *matrix)
{
    x = ctn__emit_swap(e, x, ndim, axis, ndim - 1);
    return ctn__emit_swap(e, NODE("MatMul", x, matrix), ndim, axis, ndim - 1);
}

/* ONNX has no windows of unequal sizes. Each dimension is a product with the matrix of means. */
void ctn__emit_adaptive_avg_pool(ctn__emit *e, const ctn__node *n, const char *word)
{
    const windows w = windows_of(n);
    const ctn_desc *x = &n->in[0]->d;
    char *y = IN(0);
    (void)word;
    for (int i = 0; i < w.s; i++) {
        const int64_t from = w.in[i], to = w.out[i];
        double *mean = ctn__calloc((size_t)(from * to + 1), sizeof *mean);
        if (!mean) {
            e->st = CTN_ENOMEM;
            return;
        }
        for (int64_t o = 0; o < to; o++) {
            const int64_t lo = o * from / to, hi = ((o + 1) * from + to - 1) / to;
            for (int64_t k = lo; k < hi; k++) mean[k * to + o] = 1 / (double)(hi - lo);
        }
        char *matrix = ctn__emit_reals(e, x->dtype, CTN_SHAPE(from, to), mean);
        ctn__free(mean);
        y = times(e, y, x->ndim, 2 + i, matrix);
    }
    give(e, n, y);
}

/* ---- resampling ------------------------------------------------------------------------------ */

void ctn__emit_resize(ctn__emit *e, const ctn__node *n, const char *word)
{
    const ctn_desc *y = &n->out[0]->d;
    const bool linear = n->attr[CTN__P_SIZES] == CTN_RESIZE_LINEAR;
    (void)word;
    give(e, n, NODE("Resize", IN(0), "", "", ctn__emit_shape(e, y->ndim, y->dim)));
    ctn__emit_text(e, "mode", linear ? "linear" : "nearest");
    ctn__emit_text(e, "coordinate_transformation_mode", linear ? "half_pixel" : "asymmetric");
    if (!linear) ctn__emit_text(e, "nearest_mode", "floor");
}

void ctn__emit_grid_sample(ctn__emit *e, const ctn__node *n, const char *word)
{
    enum { ALIGN, DX, DY };
    (void)word;
    if (n->attr[DX] || n->attr[DY]) {
        ctn__emit_fail(e, "derivatives have no form in ONNX");
        return;
    }
    give(e, n, NODE("GridSample", IN(0), IN(1)));
    ctn__emit_text(e, "mode", e->opset < 20 ? "bilinear" : "linear");
    ctn__emit_text(e, "padding_mode", "zeros");
    ctn__emit_int(e, "align_corners", n->attr[ALIGN]);
}

/* Along each dimension, position o of window place k is element o stride + k dilation: one Gather,
 * which makes the two dimensions k and o of the one. */
void ctn__emit_im2col(ctn__emit *e, const ctn__node *n, const char *word)
{
    enum { KERNEL, STRIDE, DILATION, SIZE, PER_DIM };
    const int s = n->nattr / PER_DIM;
    int64_t axes[CTN_MAX_DIMS] = {0, 1};
    char *y = IN(0);
    (void)word;
    for (int i = 0; i < s; i++) {
        const int64_t *a = n->attr + PER_DIM * i, out = n->out[0]->d.dim[2 + s + i];
        int64_t *from = ctn__calloc((size_t)(a[KERNEL] * out + 1), sizeof *from);
        if (!from) {
            e->st = CTN_ENOMEM;
            return;
        }
        for (int64_t k = 0; k < a[KERNEL] * out; k++)
            from[k] = k % out * a[STRIDE] + k / out * a[DILATION];
        const int64_t dims[] = {a[KERNEL], out};
        y = NODE("Gather", y, ctn__emit_array(e, CTN_I64, 2, dims, from));
        ctn__emit_int(e, "axis", 2 + 2 * i);
        ctn__free(from);
        axes[2 + i] = 2 + 2 * i;
        axes[2 + s + i] = 3 + 2 * i;
    }
    give(e, n, ctn__emit_turned(e, y, 2 + 2 * s, axes));
}

#endif
