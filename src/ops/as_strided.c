/* SPDX-License-Identifier: Apache-2.0
 *
 * as_strided: y[i,j,...] = element offset + i s_0 + j s_1 + ... of x, counted in row-major order.
 * It is one strided copy. Gradient: as_strided_grad, which adds the elements of gy back to where
 * they came from; its gradient is as_strided again.
 */
#include "ops/common/along.h"

/* Attributes: offset, dimensions of y, then a length and a stride per dimension of y, then the
 * lengths of x. */
enum { OFFSET, NDIM, LENGTHS };

/* The elements of a row-major tensor that y has, as y sees them. The stride of a single element may
 * be anything and becomes 0. */
static ctn_desc seen(const int64_t *attr, ctn_dtype t)
{
    ctn_desc d = {.dtype = t, .ndim = (int)attr[NDIM]};
    for (int i = 0; i < d.ndim; i++) {
        d.dim[i] = attr[LENGTHS + 2 * i];
        d.stride[i] = d.dim[i] > 1 ? attr[LENGTHS + 2 * i + 1] : 0;
    }
    return d;
}

/* Does y read only elements 0 to count - 1? Numbers that overflow do not. */
static bool fits(const ctn_desc *y, int64_t offset, int64_t count)
{
    int64_t low = offset, high = offset, part;
    for (int i = 0; i < y->ndim; i++) {
        if (y->dim[i] == 0) return true;
        if (__builtin_mul_overflow(y->dim[i] - 1, y->stride[i], &part)) return false;
        if (__builtin_add_overflow(part < 0 ? low : high, part, part < 0 ? &low : &high))
            return false;
    }
    return low >= 0 && high < count;
}

static ctn_status as_strided_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], y = seen(a->attr, x->dtype);
    char tx[128], ty[128], ts[128];
    for (int i = 0; i < y.ndim; i++)
        if (y.dim[i] < 0)
            return ctn_fail(CTN_ESHAPE, "as_strided: dimension %d of the result has length %lld", i,
                            (long long)y.dim[i]);
    if (!fits(&y, a->attr[OFFSET], ctn__count(x))) {
        ctn_desc strides = y;
        for (int i = 0; i < y.ndim; i++) strides.dim[i] = a->attr[LENGTHS + 2 * i + 1];
        return ctn_fail(CTN_ESHAPE,
                        "as_strided: x is %s; shape %s with strides %s and offset %lld reads "
                        "outside of its %lld elements",
                        ctn__shape_text(x, tx, sizeof tx), ctn__shape_text(&y, ty, sizeof ty),
                        ctn__shape_text(&strides, ts, sizeof ts), (long long)a->attr[OFFSET],
                        (long long)ctn__count(x));
    }
    return ctn__desc_set(&a->out[0], a->name, x->dtype, y.ndim, y.dim);
}

static ctn_status as_strided_grad_infer(ctn_infer_args *a)
{
    const int from = LENGTHS + 2 * (int)a->attr[NDIM];
    return ctn__desc_set(&a->out[0], a->name, a->in[0]->dtype, a->nattr - from, a->attr + from);
}

static ctn_status as_strided_run(const ctn_run_args *a)
{
    const ctn_desc from = seen(a->attr, a->din[0].dtype);
    if (ctn__count(&from) == 0) return CTN_OK; /* the offset may be anywhere */
    ctn__copy_view(a->out[0], &a->dout[0],
                   (const char *)a->in[0] + a->attr[OFFSET] * (int64_t)ctn_dtype_size(from.dtype),
                   &from);
    return CTN_OK;
}

/* The first and the last + 1 of n elements base, base + step, ... that are in begin to end - 1. */
static void inside(int64_t base, int64_t step, int64_t n, int64_t begin, int64_t end,
                   int64_t *first, int64_t *last)
{
    if (step == 0) {
        *first = 0;
        *last = base >= begin && base < end ? n : 0;
        return;
    }
    if (step < 0) { /* the same from the other side: -base, -base - step, ... */
        const int64_t turned = 1 - end;
        end = 1 - begin;
        begin = turned;
        base = -base;
        step = -step;
    }
    *first = base >= begin ? 0 : (begin - base + step - 1) / step;
    *last = base >= end ? 0 : (end - base + step - 1) / step;
    if (*last > n) *last = n;
}

/* Elements begin to end - 1 of gx. Each row of gy, along its last dimension, adds what belongs
 * there, in the order of the rows. */
#define DEFINE_ADD(T)                                                                           \
    static void add_##T(T *gx, const T *g, const ctn_desc *y, int64_t offset, int64_t begin,    \
                        int64_t end)                                                            \
    {                                                                                           \
        const int last = y->ndim - 1;                                                           \
        const int64_t run = last < 0 ? 1 : y->dim[last], step = last < 0 ? 0 : y->stride[last]; \
        const int64_t rows = run > 0 ? ctn__count(y) / run : 0;                                 \
        int64_t index[CTN_MAX_DIMS] = {0}, base = offset, from, to;                             \
        memset(gx + begin, 0, (size_t)(end - begin) * sizeof(T));                               \
        for (int64_t r = 0; r < rows; r++, g += run) {                                          \
            inside(base, step, run, begin, end, &from, &to);                                    \
            T *at = gx + base;                                                                  \
            if (step == 1)                                                                      \
                for (int64_t k = from; k < to; k++) at[k] += g[k];                              \
            else                                                                                \
                for (int64_t k = from; k < to; k++) at[k * step] += g[k];                       \
            for (int i = last - 1; i >= 0; i--) { /* the next row */                            \
                base += y->stride[i];                                                           \
                if (++index[i] < y->dim[i]) break;                                              \
                base -= index[i] * y->stride[i];                                                \
                index[i] = 0;                                                                   \
            }                                                                                   \
        }                                                                                       \
    }
DEFINE_ADD(float)
DEFINE_ADD(double)

static ctn_status as_strided_grad_run(const ctn_run_args *a)
{
    const ctn_desc y = seen(a->attr, a->din[0].dtype);
    const int64_t n = ctn__count(&a->dout[0]), parts = a->env ? a->env->threads : 1;
#pragma omp parallel for schedule(static) if (n + ctn__count(&y) > CTN__GRAIN)
    for (int64_t p = 0; p < parts; p++) {
        const int64_t begin = n * p / parts, end = n * (p + 1) / parts;
        if (y.dtype == CTN_F32) add_float(a->out[0], a->in[0], &y, a->attr[OFFSET], begin, end);
        else add_double(a->out[0], a->in[0], &y, a->attr[OFFSET], begin, end);
    }
    return CTN_OK;
}

static ctn_status record(const ctn_grad_args *a, ctn_op *op)
{
    return ctn__grad_to(a, 0, ctn__apply1(a->at, NULL, op, 1, a->gout, a->nattr, a->attr, 0, NULL));
}

static ctn_status as_strided_grad_of(const ctn_grad_args *a)
{
    return record(a, &ctn__op_as_strided_grad);
}

static ctn_status as_strided_grad_grad(const ctn_grad_args *a)
{
    return record(a, &ctn__op_as_strided);
}

ctn_op ctn__op_as_strided = {
    .struct_size = sizeof(ctn_op),
    .name = "as_strided",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .infer = as_strided_infer,
    .grad = as_strided_grad_of,
    .run = as_strided_run,
};

ctn_op ctn__op_as_strided_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "as_strided_grad",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .infer = as_strided_grad_infer,
    .grad = as_strided_grad_grad,
    .run = as_strided_grad_run,
};

ctn_tensor *ctn_as_strided_at(const char *at, ctn_tensor *x, int ndim, const int64_t *dims,
                              const int64_t *strides, int64_t offset)
{
    int64_t attr[LENGTHS + 3 * CTN_MAX_DIMS] = {offset, ndim};
    int n = LENGTHS;
    if (ndim < 0 || ndim > CTN_MAX_DIMS) {
        ctn_fail(CTN_ESHAPE, "as_strided: the result has %d dimensions, expected 0 to %d (%s)",
                 ndim, CTN_MAX_DIMS, at);
        return NULL;
    }
    for (int i = 0; i < ndim; i++) {
        attr[n++] = dims[i];
        attr[n++] = strides[i];
    }
    for (int i = 0; x && i < x->d.ndim; i++) attr[n++] = x->d.dim[i];
    return ctn__apply1(at, NULL, &ctn__op_as_strided, 1, &x, n, attr, 0, NULL);
}
