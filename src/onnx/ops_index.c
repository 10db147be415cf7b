/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops with indices: gathering, scattering, sorting and searching. ONNX indices may be negative and
 * then count from the end of the axis. Ops whose result has a shape that depends on values (NonZero
 * and others) read their inputs and have no gradient.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

/* Input i as indices of an axis of length n, none of them negative. */
static ctn_tensor *indices(ctn__onnx_call *c, int i, int64_t n)
{
    if (!ctn__onnx_has(c, i)) return ctn__onnx_in(c, i);
    const ctn__onnx_value *v = c->in[i];
    if (!ctn__onnx_is_host(v)) {
        ctn_tensor *t = ctn_cast_at(c->at, ctn__onnx_in(c, i), CTN_F64);
        ctn_tensor *low = ctn_less_at(c->at, t, ctn__onnx_like(c->at, t, 0));
        t = ctn_where_at(c->at, low, ctn_shift_at(c->at, t, (double)n), t);
        return ctn_cast_at(c->at, t, CTN_I64);
    }
    const int64_t count = ctn__onnx_count(v);
    int64_t *to = ctn__onnx_memory(c->run, count, sizeof *to);
    for (int64_t k = 0; k < count && to; k++) {
        const int64_t at = ctn__onnx_int_of(v, k);
        to[k] = at < 0 ? at + n : at;
    }
    return ctn__onnx_array(c, to, CTN_I64, v->ndim, v->dim);
}

/* ---- gathering ------------------------------------------------------------------------------- */

static ctn_status host_gather(ctn__onnx_call *c, int axis, int ndim, const int64_t *dims)
{
    const ctn__onnx_value *x = c->in[0], *index = c->in[1];
    int64_t outer = 1, inner = 1;
    for (int i = 0; i < axis; i++) outer *= x->dim[i];
    for (int i = axis + 1; i < x->ndim; i++) inner *= x->dim[i];
    const size_t unit = (size_t)inner * ctn_dtype_size(x->dtype);
    const int64_t k = ctn__onnx_count(index), n = x->dim[axis];
    char *y = ctn__onnx_set_host(c, 0, x->dtype, ndim, dims);
    if (!y) return ctn_error_status();
    if (unit == 0) return CTN_OK; /* outer is the length of dimensions that are not there */
    for (int64_t i = 0; i < outer * k; i++) {
        int64_t at = ctn__onnx_int_of(index, i % k);
        if (at < 0) at += n;
        if (at < 0 || at >= n)
            return ctn__onnx_fail(c, CTN_EARG, "index %lld of an axis of %lld", (long long)at,
                                  (long long)n);
        memcpy(y + (size_t)i * unit, (const char *)x->host + (size_t)(i / k * n + at) * unit, unit);
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_gather(ctn__onnx_call *c)
{
    int axis;
    int64_t dims[2 * CTN_MAX_DIMS];
    if (!ctn__onnx_has(c, 0) || !ctn__onnx_has(c, 1))
        return ctn__onnx_fail(c, CTN_EFORMAT, "expected two inputs");
    const ctn__onnx_value *x = c->in[0], *index = c->in[1];
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 0), x->ndim, &axis));
    const int ndim = x->ndim - 1 + index->ndim;
    if (ndim > CTN_MAX_DIMS) return ctn__onnx_fail(c, CTN_ESHAPE, "%d dimensions", ndim);
    for (int i = 0; i < ndim; i++)
        dims[i] = i < axis                 ? x->dim[i]
                  : i < axis + index->ndim ? index->dim[i - axis]
                                           : x->dim[i - index->ndim + 1];
    if (ctn__onnx_all_host(c)) return host_gather(c, axis, ndim, dims);
    const bool one = ctn__onnx_is_host(index) && ctn__onnx_count(index) == 1;
    ctn_tensor *t = ctn__onnx_in(c, 0);
    if (one) /* a slice may move without a new plan */
        t = ctn_slice_at(c->at, t, axis, ctn__onnx_int_of(index, 0), 1);
    else if (x->ndim == 2 && axis == 0 && ctn__is_f32_f64(x->dtype))
        return ctn__onnx_set(c, 0, ctn_embedding_at(c->at, t, indices(c, 1, x->dim[0])));
    else
        t = ctn_index_select_at(c->at, t,
                                ctn_reshape_at(c->at, indices(c, 1, x->dim[axis]),
                                               CTN_SHAPE(ctn__onnx_count(index))),
                                axis);
    return ctn__onnx_set(c, 0, ctn_reshape_at(c->at, t, ndim, dims));
}

ctn_status ctn__onnx_do_gather_elements(ctn__onnx_call *c)
{
    int axis;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 0), x->d.ndim, &axis));
    return ctn__onnx_set(c, 0, ctn_gather_at(c->at, x, indices(c, 1, c->in[0]->dim[axis]), axis));
}

/* The rows that the tuples in the last dimension of input 1 name in an array (dims...,rest), the
 * first `batch` dimensions of both counted together. Result: (number of tuples) i64. */
static ctn_tensor *tuple_rows(ctn__onnx_call *c, const int64_t *dims, int batch)
{
    const ctn__onnx_value *v = c->in[1];
    const int64_t k = v->dim[v->ndim - 1], n = k > 0 ? ctn__onnx_count(v) / k : 0;
    double *size = ctn__onnx_memory(c->run, k + 1, sizeof *size);
    double *step = ctn__onnx_memory(c->run, k + 1, sizeof *step);
    double *base = ctn__onnx_memory(c->run, n, sizeof *base);
    if (!size || !step || !base) return NULL;
    int64_t rows = 1, batches = 1;
    for (int64_t i = k; i-- > 0;) {
        size[i] = (double)dims[batch + i];
        step[i] = (double)rows;
        rows *= dims[batch + i];
    }
    for (int i = 0; i < batch; i++) batches *= dims[i];
    for (int64_t i = 0; i < n; i++) {
        const int64_t batch_of = i / (n / batches);
        base[i] = (double)(batch_of * rows);
    }
    const char *at = c->at;
    ctn_tensor *index = ctn_cast_at(at, ctn__onnx_in(c, 1), CTN_F64);
    index = ctn_reshape_at(at, index, CTN_SHAPE(n, k));
    ctn_tensor *low = ctn_less_at(at, index, ctn__onnx_like(at, index, 0));
    ctn_tensor *end = ctn__onnx_array(c, size, CTN_F64, CTN_SHAPE(k));
    index = ctn_where_at(at, low, ctn_add_at(at, index, end), index);
    index = ctn_mul_at(at, index, ctn__onnx_array(c, step, CTN_F64, CTN_SHAPE(k)));
    index = ctn_sum_at(at, index, 1, (const int64_t[]){1}, 0);
    index = ctn_add_at(at, index, ctn__onnx_array(c, base, CTN_F64, CTN_SHAPE(n)));
    return ctn_cast_at(at, index, CTN_I64);
}

/* Checks the inputs of GatherND and ScatterND; *rows and *rest: input 0 as a matrix. */
static ctn_status check_tuples(ctn__onnx_call *c, int batch, int64_t *rows, int64_t *rest)
{
    if (!ctn__onnx_has(c, 0) || !ctn__onnx_has(c, 1))
        return ctn__onnx_fail(c, CTN_EFORMAT, "expected two inputs");
    const ctn__onnx_value *x = c->in[0], *index = c->in[1];
    if (index->ndim < 1 || index->dim[index->ndim - 1] < 1 || batch < 0 || batch >= index->ndim ||
        batch + index->dim[index->ndim - 1] > x->ndim)
        return ctn__onnx_fail(c, CTN_ESHAPE, "the indices do not fit %d dimensions", x->ndim);
    *rows = *rest = 1;
    for (int i = 0; i < batch; i++)
        if (x->dim[i] != index->dim[i] || x->dim[i] == 0)
            return ctn__onnx_fail(c, CTN_ESHAPE, "dimension %d is %lld and %lld", i,
                                  (long long)x->dim[i], (long long)index->dim[i]);
    for (int i = 0; i < x->ndim; i++)
        *(i < batch + index->dim[index->ndim - 1] ? rows : rest) *= x->dim[i];
    return CTN_OK;
}

ctn_status ctn__onnx_do_gather_nd(ctn__onnx_call *c)
{
    const int64_t given = ctn__onnx_int(c, "batch_dims", 0);
    const int batch = given < 0 || given > CTN_MAX_DIMS ? -1 : (int)given;
    int64_t rows = 1, rest = 1, dims[2 * CTN_MAX_DIMS];
    CTN_TRY(check_tuples(c, batch, &rows, &rest));
    const ctn__onnx_value *x = c->in[0], *index = c->in[1];
    int ndim = 0;
    for (int i = 0; i < index->ndim - 1; i++) dims[ndim++] = index->dim[i];
    for (int i = batch + (int)index->dim[index->ndim - 1]; i < x->ndim; i++)
        dims[ndim++] = x->dim[i];
    ctn_tensor *t = ctn_reshape_at(c->at, ctn__onnx_in(c, 0), CTN_SHAPE(rows, rest));
    t = ctn_index_select_at(c->at, t, tuple_rows(c, x->dim, batch), 0);
    return ctn__onnx_set(c, 0, ctn_reshape_at(c->at, t, ndim, dims));
}

/* ---- scattering ------------------------------------------------------------------------------ */

/* The name is looked up once, not for each element. */
static int reduction_of(const ctn__onnx_call *c)
{
    if (ctn__onnx_text_is(c, "reduction", "mul", false)) return CTN__ONNX_MUL;
    if (ctn__onnx_text_is(c, "reduction", "max", false)) return CTN__ONNX_MAX;
    if (ctn__onnx_text_is(c, "reduction", "min", false)) return CTN__ONNX_MIN;
    return ctn__onnx_text_is(c, "reduction", "add", false) ? CTN__ONNX_ADD : -1;
}

static double combine(int reduction, double a, double b)
{
    switch (reduction) {
    case CTN__ONNX_MUL: return a * b;
    case CTN__ONNX_MAX: return a > b ? a : b;
    case CTN__ONNX_MIN: return a < b ? a : b;
    case CTN__ONNX_ADD: return a + b;
    default: return b;
    }
}

static bool simple_reduction(const ctn__onnx_call *c, bool *add)
{
    *add = ctn__onnx_text_is(c, "reduction", "add", false);
    return *add || ctn__onnx_text_is(c, "reduction", "none", true);
}

/* A copy of input 0 as output 0. */
static void *copied(ctn__onnx_call *c)
{
    const ctn__onnx_value x = *c->in[0];
    void *y = ctn__onnx_set_host(c, 0, x.dtype, x.ndim, x.dim);
    if (y) memcpy(y, x.host, (size_t)ctn__onnx_count(&x) * ctn_dtype_size(x.dtype));
    return y;
}

static ctn_status host_scatter(ctn__onnx_call *c, int axis)
{
    CTN_TRY(ctn__onnx_need_all(c));
    const ctn__onnx_value *x = c->in[0], *index = c->in[1], *src = c->in[2];
    void *y = copied(c);
    if (!y) return ctn_error_status();
    ctn_desc to = ctn__onnx_desc(x), shape = ctn__onnx_desc(index);
    const int reduction = reduction_of(c);
    const int64_t step = to.stride[axis];
    to.stride[axis] = 0;
    for (int64_t i = 0; i < ctn__count(&shape); i++) {
        int64_t at = ctn__onnx_int_of(index, i);
        at += at < 0 ? x->dim[axis] : 0;
        if (at < 0 || at >= x->dim[axis])
            return ctn__onnx_fail(c, CTN_EARG, "index %lld is out of range", (long long)at);
        const int64_t p = ctn__onnx_offset(&to, i, &shape) + at * step;
        ctn__onnx_put_number(y, x->dtype, p,
                             combine(reduction, ctn__elem_get(y, x->dtype, p),
                                     ctn__onnx_number_of(src, i)));
    }
    return CTN_OK;
}

/* Sums are made in f32 or f64, which has all integers that occur as counts and positions. */
static ctn_tensor *summable(const char *at, ctn_tensor *t)
{
    return t && !ctn__is_float(ctn_dtype_of(t)) ? ctn_cast_at(at, t, CTN_F64) : t;
}

ctn_status ctn__onnx_do_scatter_elements(ctn__onnx_call *c)
{
    int axis;
    bool add;
    for (int i = 0; i < 3; i++)
        if (!ctn__onnx_has(c, i)) return ctn__onnx_fail(c, CTN_EFORMAT, "expected three inputs");
    const ctn__onnx_value *x = c->in[0];
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 0), x->ndim, &axis));
    for (int i = 0; i < x->ndim; i++)
        if (c->in[1]->ndim != x->ndim || c->in[2]->ndim != x->ndim ||
            c->in[1]->dim[i] != c->in[2]->dim[i] || (i != axis && c->in[1]->dim[i] > x->dim[i]))
            return ctn__onnx_fail(c, CTN_ESHAPE, "indices and updates do not fit");
    if (ctn__onnx_all_host(c) || !simple_reduction(c, &add)) return host_scatter(c, axis);
    ctn_tensor *index = indices(c, 1, x->dim[axis]), *t = ctn__onnx_in(c, 0);
    ctn_tensor *src = ctn__onnx_in(c, 2);
    if (!add) return ctn__onnx_set(c, 0, ctn_scatter_at(c->at, t, index, src, axis));
    t = ctn_scatter_add_at(c->at, summable(c->at, t), index, summable(c->at, src), axis);
    return ctn__onnx_set(c, 0, ctn_cast_at(c->at, t, x->dtype));
}

static ctn_status host_scatter_nd(ctn__onnx_call *c, int64_t rest)
{
    CTN_TRY(ctn__onnx_need_all(c));
    const ctn__onnx_value *x = c->in[0], *index = c->in[1], *src = c->in[2];
    const int64_t k = index->dim[index->ndim - 1], n = ctn__onnx_count(index) / k;
    const int reduction = reduction_of(c);
    void *y = copied(c);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < n; i++) {
        int64_t row = 0;
        for (int64_t j = 0; j < k; j++) {
            int64_t at = ctn__onnx_int_of(index, i * k + j);
            at += at < 0 ? x->dim[j] : 0;
            if (at < 0 || at >= x->dim[j])
                return ctn__onnx_fail(c, CTN_EARG, "index %lld is out of range", (long long)at);
            row = row * x->dim[j] + at;
        }
        for (int64_t j = 0; j < rest; j++) {
            const int64_t p = row * rest + j;
            ctn__onnx_put_number(y, x->dtype, p,
                                 combine(reduction, ctn__elem_get(y, x->dtype, p),
                                         ctn__onnx_number_of(src, i * rest + j)));
        }
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_scatter_nd(ctn__onnx_call *c)
{
    int64_t rows = 1, rest = 1;
    bool add;
    const char *at = c->at;
    CTN_TRY(check_tuples(c, 0, &rows, &rest));
    const ctn__onnx_value *x = c->in[0], *index = c->in[1];
    const int64_t n = ctn__onnx_count(index) / index->dim[index->ndim - 1];
    if (!ctn__onnx_has(c, 2) || ctn__onnx_count(c->in[2]) != ctn__onnx_times(n, rest))
        return ctn__onnx_fail(c, CTN_ESHAPE, "the updates do not fit the indices");
    if (ctn__onnx_all_host(c) || !simple_reduction(c, &add)) return host_scatter_nd(c, rest);
    ctn_tensor *t = ctn_reshape_at(at, ctn__onnx_in(c, 0), CTN_SHAPE(rows, rest));
    ctn_tensor *src = ctn_reshape_at(at, ctn__onnx_in(c, 2), CTN_SHAPE(n, rest));
    ctn_tensor *row = tuple_rows(c, x->dim, 0);
    if (add) {
        t = ctn_index_add_at(at, summable(at, t), row, summable(at, src), 0);
        t = ctn_cast_at(at, t, x->dtype);
    } else {
        row = ctn_reshape_at(at, row, CTN_SHAPE(n, 1));
        t = ctn_scatter_at(at, t, ctn_broadcast_to_at(at, row, CTN_SHAPE(n, rest)), src, 0);
    }
    return ctn__onnx_set(c, 0, ctn_reshape_at(at, t, x->ndim, x->dim));
}

/* ---- one-hot, sorting, sums along an axis ---------------------------------------------------- */

ctn_status ctn__onnx_do_one_hot(ctn__onnx_call *c)
{
    const char *at = c->at;
    int axis;
    for (int i = 0; i < 3; i++)
        if (!ctn__onnx_has(c, i)) return ctn__onnx_fail(c, CTN_EFORMAT, "expected three inputs");
    int64_t depth = 0;
    CTN_TRY(ctn__onnx_one_int(c, 1, &depth));
    const int ndim = c->in[0]->ndim + 1;
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", -1), ndim, &axis));
    ctn_tensor *index = ctn__onnx_real(at, ctn__onnx_in(c, 0)), *values = ctn__onnx_in(c, 2);
    if (!index || !values) return ctn_error_status();
    index = ctn_cast_at(at, index, CTN_F64);
    ctn_tensor *low = ctn_less_at(at, index, ctn__onnx_like(at, index, 0));
    index = ctn_where_at(at, low, ctn_shift_at(at, index, (double)depth), index);
    if (depth < 0) return ctn__onnx_fail(c, CTN_ESHAPE, "depth %lld", (long long)depth);
    double *classes = ctn__onnx_memory(c->run, depth, sizeof *classes);
    if (!classes) return ctn_error_status();
    for (int64_t i = 0; i < depth; i++) classes[i] = (double)i;
    ctn_tensor *is = ctn_equal_at(at, ctn_unsqueeze_at(at, index, -1),
                                  ctn__onnx_array(c, classes, CTN_F64, CTN_SHAPE(depth)));
    ctn_tensor *off = ctn_select_at(at, values, 0, 0), *on = ctn_select_at(at, values, 0, 1);
    ctn_tensor *y = ctn_where_at(at, is, on, off);
    return ctn__onnx_set(c, 0, ctn_moveaxis_at(at, y, -1, axis));
}

/* The last of equal elements is the first one of the reversed axis. */
ctn_status ctn__onnx_do_arg(ctn__onnx_call *c)
{
    int axis;
    const char *at = c->at;
    ctn_tensor *x = ctn__onnx_real(at, ctn__onnx_in(c, 0));
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 0), x->d.ndim, &axis));
    const bool last = ctn__onnx_int(c, "select_last_index", 0);
    const int64_t axes[1] = {axis}, n = x->d.dim[axis];
    if (last) x = ctn_flip_at(at, x, 1, axes);
    ctn_tensor *y = c->node->op->kind == CTN__ONNX_MAX ? ctn_argmax_at(at, x, axis)
                                                       : ctn_argmin_at(at, x, axis);
    if (last) {
        y = ctn_shift_at(at, ctn_neg_at(at, ctn_cast_at(at, y, CTN_F64)), (double)(n - 1));
        y = ctn_cast_at(at, y, CTN_I64);
    }
    return ctn__onnx_set(c, 0, ctn__onnx_int(c, "keepdims", 1) ? ctn_unsqueeze_at(at, y, axis) : y);
}

ctn_status ctn__onnx_do_hardmax(ctn__onnx_call *c)
{
    int axis;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", c->node->opset < 13 ? 1 : -1), x->d.ndim,
                           &axis));
    ctn_tensor *best = ctn_argmax_at(c->at, x, axis);
    ctn_tensor *y = ctn_one_hot_at(c->at, best, x->d.dim[axis], x->d.dtype);
    return ctn__onnx_set(c, 0, ctn_moveaxis_at(c->at, y, -1, axis));
}

ctn_status ctn__onnx_do_topk(ctn__onnx_call *c)
{
    int axis;
    const char *at = c->at;
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(at, given);
    ctn_tensor *values = NULL, *index = NULL;
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", -1), x->d.ndim, &axis));
    int64_t k = ctn__onnx_int(c, "k", 1);
    CTN_TRY(ctn__onnx_one_int(c, 1, &k));
    const bool largest = ctn__onnx_int(c, "largest", 1);
    if (!largest) x = ctn_neg_at(at, x);
    CTN_TRY(ctn_topk_at(at, x, k, axis, &values, &index));
    if (!largest) values = ctn_neg_at(at, values);
    CTN_TRY(ctn__onnx_set(c, 0, values ? ctn_cast_at(at, values, given->d.dtype) : NULL));
    return ctn__onnx_set(c, 1, index);
}

/* exclusive: the sum before each element, so the result moves by one place. */
ctn_status ctn__onnx_do_cumulate(ctn__onnx_call *c)
{
    int axis;
    const char *at = c->at;
    const bool prod = c->node->op->kind == CTN__ONNX_MUL, reverse = ctn__onnx_int(c, "reverse", 0);
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(at, given);
    if (!x) return ctn_error_status();
    int64_t given_axis = 0;
    CTN_TRY(ctn__onnx_need(c, 1));
    CTN_TRY(ctn__onnx_one_int(c, 1, &given_axis));
    CTN_TRY(ctn__onnx_axis(c, given_axis, x->d.ndim, &axis));
    const int64_t n = x->d.dim[axis];
    if (ctn__onnx_int(c, "exclusive", 0) && n > 0) {
        int64_t before[CTN_MAX_DIMS] = {0}, after[CTN_MAX_DIMS] = {0};
        (reverse ? after : before)[axis] = 1;
        x = ctn_slice_at(at, x, axis, reverse ? 1 : 0, n - 1);
        x = ctn_pad_at(at, x, before, after, prod);
    }
    x = (prod ? ctn_cumprod_at : ctn_cumsum_at)(at, x, axis, reverse);
    return ctn__onnx_set(c, 0, x ? ctn_cast_at(at, x, given->d.dtype) : NULL);
}

/* ---- results whose shape depends on values --------------------------------------------------- */

ctn_status ctn__onnx_do_non_zero(ctn__onnx_call *c)
{
    CTN_TRY(ctn__onnx_need(c, 0));
    const ctn__onnx_value x = *c->in[0];
    const ctn_desc d = ctn__onnx_desc(&x);
    const int64_t n = ctn__onnx_count(&x);
    int64_t found = 0, k = 0;
    for (int64_t i = 0; i < n; i++) found += ctn__onnx_number_of(&x, i) != 0;
    int64_t *y = ctn__onnx_set_host(c, 0, CTN_I64, CTN_SHAPE(x.ndim, found));
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < n; i++) {
        if (ctn__onnx_number_of(&x, i) == 0) continue;
        for (int a = 0; a < x.ndim; a++) y[a * found + k] = i / d.stride[a] % d.dim[a];
        k++;
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_compress(ctn__onnx_call *c)
{
    int axis = 0;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_need(c, 1));
    if (ctn__onnx_has_attr(c, "axis"))
        CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 0), x->d.ndim, &axis));
    else x = ctn_reshape_at(c->at, x, CTN_SHAPE(ctn__onnx_count(c->in[0])));
    if (!x) return ctn_error_status();
    const int64_t n = ctn__onnx_count(c->in[1]);
    int64_t *index = ctn__onnx_memory(c->run, n, sizeof *index), k = 0;
    if (!index) return ctn_error_status();
    for (int64_t i = 0; i < n && i < x->d.dim[axis]; i++)
        if (ctn__onnx_int_of(c->in[1], i)) index[k++] = i;
    ctn_tensor *t = ctn__onnx_array(c, index, CTN_I64, CTN_SHAPE(k));
    return ctn__onnx_set(c, 0, ctn_index_select_at(c->at, x, t, axis));
}

/* ---- reversed sequences ---------------------------------------------------------------------- */

ctn_status ctn__onnx_do_reverse_sequence(ctn__onnx_call *c)
{
    const int64_t time = ctn__onnx_int(c, "time_axis", 0);
    const int64_t batch = ctn__onnx_int(c, "batch_axis", 1);
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_need(c, 1));
    if (x->d.ndim < 2 || time < 0 || time > 1 || batch != 1 - time ||
        ctn__onnx_count(c->in[1]) != x->d.dim[batch])
        return ctn__onnx_fail(c, CTN_ESHAPE, "lengths, time and batch axis do not fit");
    const int64_t T = x->d.dim[time], *d = x->d.dim, n = ctn__onnx_times(d[0], d[1]);
    int64_t *row = ctn__onnx_memory(c->run, n, sizeof *row);
    if (!row) return ctn_error_status();
    for (int64_t i = 0; i < n; i++) {
        const int64_t t = time == 0 ? i / d[1] : i % d[1], b = time == 0 ? i % d[1] : i / d[1];
        const int64_t length = ctn__onnx_int_of(c->in[1], b);
        const int64_t from = t < length && length <= T ? length - 1 - t : t;
        row[i] = time == 0 ? from * d[1] + b : b * d[1] + from;
    }
    const int64_t rest = n > 0 ? ctn__onnx_count(c->in[0]) / n : 0;
    ctn_tensor *y = ctn_reshape_at(c->at, x, CTN_SHAPE(n, rest));
    y = ctn_index_select_at(c->at, y, ctn__onnx_array(c, row, CTN_I64, CTN_SHAPE(n)), 0);
    return ctn__onnx_set(c, 0, ctn_reshape_at(c->at, y, c->in[0]->ndim, c->in[0]->dim));
}

#endif
