/* SPDX-License-Identifier: Apache-2.0
 *
 * pad_by: padding that repeats elements of x. Along a dimension of n elements, result o is element
 * s(o - before):
 *   replicate  the nearest element
 *   reflect    mirrored at the first and the last element, with period 2 (n - 1)
 *   wrap       with period n
 * Gradient: pad_by_grad, which adds every element of gy to the one it came from; its gradient is
 * pad_by again. Zeros are ctn_pad.
 *
 * Both work on dense tensors in any order of dimensions, so a padded convolution stays
 * channels-last. The dimensions inside the innermost padded one form units that are moved whole.
 */
#include "ops/common/along.h"

/* Attributes: the mode, then of each dimension the lengths before, of and after x. */
enum { MODE, DIM0, BEFORE = 0, SIZE, AFTER, PER_DIM };
static const char *const attr_names[] = {"mode",     "before 0", "size 0",   "after 0",  "before 1",
                                         "size 1",   "after 1",  "before 2", "size 2",   "after 2",
                                         "before 3", "size 3",   "after 3",  "before 4", "size 4",
                                         "after 4",  "before 5", "size 5",   "after 5",  "before 6",
                                         "size 6",   "after 6",  "before 7", "size 7",   "after 7"};

/* The element of n that is at position i, which may lie outside. */
static int64_t source(int64_t mode, int64_t n, int64_t i)
{
    if (i >= 0 && i < n) return i;
    if (mode == CTN_PAD_REPLICATE) return i < 0 ? 0 : n - 1;
    const bool wrap = mode == CTN_PAD_WRAP;
    const int64_t once = i < 0 ? (wrap ? i + n : -i) : wrap ? i - n : 2 * (n - 1) - i;
    if (once >= 0 && once < n) return once; /* the usual case needs no division */
    const int64_t period = wrap ? n : n > 1 ? 2 * (n - 1) : 1;
    i %= period;
    if (i < 0) i += period;
    return i < n ? i : period - i;
}

static ctn_status pad_by_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int64_t dims[CTN_MAX_DIMS];
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    for (int i = 0; i < x->ndim; i++) {
        const int64_t *d = a->attr + DIM0 + PER_DIM * i, most = INT64_MAX / 4;
        if (d[BEFORE] < 0 || d[AFTER] < 0 || d[BEFORE] > most || d[AFTER] > most ||
            (x->dim[i] == 0 && d[BEFORE] + d[AFTER] > 0))
            return ctn_fail(CTN_ESHAPE,
                            "pad_by: cannot add %lld elements before and %lld after dimension %d "
                            "of %s",
                            (long long)d[BEFORE], (long long)d[AFTER], i,
                            ctn__shape_text(x, t, sizeof t));
        dims[i] = d[BEFORE] + x->dim[i] + d[AFTER];
    }
    return ctn__desc_set(&a->out[0], a->name, x->dtype, x->ndim, dims);
}

static ctn_status pad_by_grad_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__infer_arith(a, a->in[0]));
    a->out[0] = *a->in[0];
    for (int i = 0; i < a->in[0]->ndim; i++) a->out[0].dim[i] = a->attr[DIM0 + PER_DIM * i + SIZE];
    return CTN_OK;
}

/* ---- the dimensions as the kernels see them -------------------------------------------------- */

typedef struct {
    int64_t mode, size, before, after;
    int64_t all;    /* size + before + after */
    int64_t xs, ys; /* strides in x and y */
} dimension;

typedef struct {
    int nd;                     /* dimensions outside the innermost padded one */
    dimension d[CTN_MAX_DIMS];  /* these, from the outside in */
    dimension line;             /* the innermost padded one */
    int64_t unit, xrows, yrows; /* elements of a unit; lines of x and y */
} shape;

/* x and y are dense, with their dimensions in the same order in memory. */
static shape shape_of(const int64_t *attr, const ctn_desc *x, const ctn_desc *y)
{
    shape s = {.unit = 1, .xrows = 1, .yrows = 1};
    dimension all[CTN_MAX_DIMS] = {{.size = 1, .all = 1}}; /* for a scalar */
    int order[CTN_MAX_DIMS], last = 0;
    ctn__by_stride(y, order);
    for (int k = 0; k < y->ndim; k++) {
        const int i = order[k];
        const int64_t *d = attr + DIM0 + PER_DIM * i;
        all[k] = (dimension){.mode = attr[MODE],
                             .size = x->dim[i],
                             .before = d[BEFORE],
                             .after = d[AFTER],
                             .all = y->dim[i],
                             .xs = x->stride[i],
                             .ys = y->stride[i]};
        if (d[BEFORE] + d[AFTER] > 0) last = k;
    }
    s.line = all[last];
    for (int k = last + 1; k < y->ndim; k++) s.unit *= all[k].size;
    for (int k = 0; k < last; k++) {
        s.xrows *= all[k].size;
        s.yrows *= all[k].all;
        dimension *before = s.nd > 0 ? &s.d[s.nd - 1] : NULL;
        if (before && before->size == before->all && all[k].size == all[k].all) {
            all[k].size = all[k].all = before->size * all[k].size; /* neither is padded */
            *before = all[k];
        } else {
            s.d[s.nd++] = all[k];
        }
    }
    return s;
}

static int64_t source_of(const dimension *d, int64_t o)
{
    return source(d->mode, d->size, o - d->before);
}

/* ---- y from x -------------------------------------------------------------------------------- */

/* Single elements are one move each. */
static void copy_unit(char *y, const char *x, size_t bytes)
{
    if (bytes == 4) memcpy(y, x, 4);
    else if (bytes == 8) memcpy(y, x, 8);
    else memcpy(y, x, bytes);
}

static ctn_status pad_by_run(const ctn_run_args *a)
{
    const shape s = shape_of(a->attr, &a->din[0], &a->dout[0]);
    const int64_t n = ctn__count(&a->dout[0]);
    const size_t es = ctn_dtype_size(a->dout[0].dtype), unit = (size_t)s.unit * es;
    const dimension *l = &s.line;
    if (n == 0) return CTN_OK;
#pragma omp parallel for schedule(static) if (n > CTN__GRAIN)
    for (int64_t row = 0; row < s.yrows; row++) {
        int64_t q = row, from = 0, to = 0;
        for (int k = s.nd - 1; k >= 0; k--) {
            const int64_t o = q % s.d[k].all;
            q /= s.d[k].all;
            from += source_of(&s.d[k], o) * s.d[k].xs;
            to += o * s.d[k].ys;
        }
        const char *x = (const char *)a->in[0] + from * (int64_t)es;
        char *y = (char *)a->out[0] + to * (int64_t)es;
        for (int64_t o = 0; o < l->before; o++)
            copy_unit(y + (size_t)o * unit, x + (size_t)source_of(l, o) * unit, unit);
        memcpy(y + (size_t)l->before * unit, x, (size_t)l->size * unit);
        for (int64_t o = l->before + l->size; o < l->all; o++)
            copy_unit(y + (size_t)o * unit, x + (size_t)source_of(l, o) * unit, unit);
    }
    return CTN_OK;
}

/* ---- gx from gy ------------------------------------------------------------------------------ */

/* The first position of y at or after o whose source is i; d->all if there is none. */
static int64_t next_of(const dimension *d, int64_t i, int64_t o)
{
    const int64_t inside = d->before + i;
    for (; o < d->all; o++) {
        if (o > d->before && o < inside) o = inside; /* of the middle, only one is from i */
        else if (o > inside && o < d->before + d->size) o = d->before + d->size;
        if (o < d->all && source_of(d, o) == i) return o;
    }
    return d->all;
}

#define DEFINE_FOLD(T)                                                                            \
    static void add_##T(T *restrict x, const T *restrict y, int64_t n)                            \
    {                                                                                             \
        for (int64_t i = 0; i < n; i++) x[i] += y[i];                                             \
    }                                                                                             \
    /* gx += one line of gy that came from it */                                                  \
    static void fold_##T(const shape *s, T *gx, const T *gy)                                      \
    {                                                                                             \
        const dimension *l = &s->line;                                                            \
        const int64_t u = s->unit;                                                                \
        for (int64_t o = 0; o < l->before; o++) add_##T(gx + source_of(l, o) * u, gy + o * u, u); \
        add_##T(gx, gy + l->before * u, l->size * u);                                             \
        for (int64_t o = l->before + l->size; o < l->all; o++)                                    \
            add_##T(gx + source_of(l, o) * u, gy + o * u, u);                                     \
    }                                                                                             \
    /* All lines of gy whose source is line `row` of gx, in their order. */                       \
    static void fold_row_##T(const shape *s, int64_t row, T *gx, const T *gy)                     \
    {                                                                                             \
        int64_t i[CTN_MAX_DIMS], o[CTN_MAX_DIMS], to = 0;                                         \
        for (int k = s->nd - 1; k >= 0; k--) {                                                    \
            i[k] = row % s->d[k].size;                                                            \
            row /= s->d[k].size;                                                                  \
            o[k] = next_of(&s->d[k], i[k], 0);                                                    \
            to += i[k] * s->d[k].xs;                                                              \
        }                                                                                         \
        memset(gx + to, 0, (size_t)(s->line.size * s->unit) * sizeof(T));                         \
        for (int k = 0; k >= 0;) {                                                                \
            int64_t from = 0;                                                                     \
            for (k = 0; k < s->nd; k++) from += o[k] * s->d[k].ys;                                \
            fold_##T(s, gx + to, gy + from);                                                      \
            for (k = s->nd - 1; k >= 0; k--) {                                                    \
                o[k] = next_of(&s->d[k], i[k], o[k] + 1);                                         \
                if (o[k] < s->d[k].all) break;                                                    \
                o[k] = next_of(&s->d[k], i[k], 0);                                                \
            }                                                                                     \
        }                                                                                         \
    }
DEFINE_FOLD(float)
DEFINE_FOLD(double)

static ctn_status pad_by_grad_run(const ctn_run_args *a)
{
    const shape s = shape_of(a->attr, &a->dout[0], &a->din[0]);
    if (ctn__count(&a->dout[0]) == 0) return CTN_OK;
#pragma omp parallel for schedule(static) if (ctn__count(&a->din[0]) > CTN__GRAIN)
    for (int64_t row = 0; row < s.xrows; row++) {
        if (a->dout[0].dtype == CTN_F32) fold_row_float(&s, row, a->out[0], a->in[0]);
        else fold_row_double(&s, row, a->out[0], a->in[0]);
    }
    return CTN_OK;
}

/* ---- the ops --------------------------------------------------------------------------------- */

static ctn_status record(const ctn_grad_args *a, ctn_op *op)
{
    return ctn__grad_to(a, 0, ctn__apply1(a->at, NULL, op, 1, a->gout, a->nattr, a->attr, 0, NULL));
}

static ctn_status pad_by_grad_of(const ctn_grad_args *a)
{
    return record(a, &ctn__op_pad_by_grad);
}

static ctn_status pad_by_grad_grad(const ctn_grad_args *a)
{
    return record(a, &ctn__op_pad_by);
}

ctn_op ctn__op_pad_by = {
    .struct_size = sizeof(ctn_op),
    .name = "pad_by",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = pad_by_infer,
    .grad = pad_by_grad_of,
    .run = pad_by_run,
};

ctn_op ctn__op_pad_by_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "pad_by_grad",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32, /* it adds */
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = pad_by_grad_infer,
    .grad = pad_by_grad_grad,
    .run = pad_by_grad_run,
};

ctn_tensor *ctn_pad_by_at(const char *at, ctn_tensor *x, ctn_pad_mode mode, const int64_t *before,
                          const int64_t *after)
{
    int64_t attr[DIM0 + PER_DIM * CTN_MAX_DIMS] = {mode};
    const int nd = x ? x->d.ndim : 0;
    if (mode == CTN_PAD_ZEROS) return ctn_pad_at(at, x, before, after, 0);
    if (mode != CTN_PAD_REFLECT && mode != CTN_PAD_REPLICATE && mode != CTN_PAD_WRAP) {
        ctn_fail(CTN_EARG, "pad_by: mode %d does not exist (%s)", (int)mode, at);
        return NULL;
    }
    for (int i = 0; i < nd; i++) {
        int64_t *d = attr + DIM0 + PER_DIM * i;
        d[BEFORE] = before ? before[i] : 0;
        d[SIZE] = x->d.dim[i];
        d[AFTER] = after ? after[i] : 0;
    }
    return ctn__apply1(at, NULL, &ctn__op_pad_by, 1, &x, DIM0 + PER_DIM * nd, attr, 0, NULL);
}
