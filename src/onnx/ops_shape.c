/* SPDX-License-Identifier: Apache-2.0
 *
 * Ops that only move elements: shapes, slices, joins. Each works on arrays, for computations on
 * shapes, and on recorded tensors.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "onnx/kinds.h"

/* Output k is the part of array v that d describes, with `offset` elements before it. */
static ctn_status host_view(ctn__onnx_call *c, int k, const ctn__onnx_value *v, const ctn_desc *d,
                            int64_t offset)
{
    const size_t es = ctn_dtype_size(v->dtype);
    char *to = ctn__onnx_set_host(c, k, v->dtype, d->ndim, d->dim);
    if (!to) return ctn_error_status();
    const int64_t n = ctn__count(d);
    if (n == 0) return CTN_OK; /* the offset may lie outside of an empty array */
    const char *from = (const char *)v->host + offset * (int64_t)es;
    for (int64_t i = 0; i < n; i++)
        memcpy(to + (size_t)i * es, from + ctn__onnx_offset(d, i, d) * (int64_t)es, es);
    return CTN_OK;
}

/* Output 0 is input 0 in another shape with as many elements. */
static ctn_status reshaped(ctn__onnx_call *c, int ndim, const int64_t *dims)
{
    ctn_desc d;
    CTN_TRY(ctn__desc_set(&d, c->node->op->name, c->in[0]->dtype, ndim, dims));
    if (!ctn__onnx_is_host(c->in[0]))
        return ctn__onnx_set(c, 0, ctn_reshape_at(c->at, ctn__onnx_in(c, 0), ndim, dims));
    if (ctn__count(&d) != ctn__onnx_count(c->in[0]))
        return ctn__onnx_fail(c, CTN_ESHAPE, "cannot change %lld elements to %lld",
                              (long long)ctn__onnx_count(c->in[0]), (long long)ctn__count(&d));
    ctn__onnx_value v = *c->in[0];
    v.t = NULL;
    v.ndim = ndim;
    memcpy(v.dim, d.dim, sizeof v.dim);
    return ctn__onnx_set_value(c, 0, &v);
}

/* A diagonal; those far outside of a matrix are all alike. */
static int64_t diagonal(int64_t k)
{
    return k < -CTN__ONNX_LARGE ? -CTN__ONNX_LARGE : k > CTN__ONNX_LARGE ? CTN__ONNX_LARGE : k;
}

static ctn_status need_tensor(const ctn__onnx_call *c, int i)
{
    if (!ctn__onnx_has(c, i) || c->in[i]->item)
        return ctn__onnx_fail(c, CTN_EFORMAT, "input %d is not a tensor", i);
    return CTN_OK;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static int clamp_axis(int64_t axis, int ndim)
{
    if (axis < 0) axis += ndim;
    return axis < 0 ? 0 : axis > ndim ? ndim : (int)axis;
}

ctn_status ctn__onnx_do_shape(ctn__onnx_call *c)
{
    CTN_TRY(need_tensor(c, 0));
    const ctn__onnx_value *x = c->in[0];
    const int from = clamp_axis(ctn__onnx_int(c, "start", 0), x->ndim);
    const int to = clamp_axis(ctn__onnx_int(c, "end", x->ndim), x->ndim);
    const int64_t n = to > from ? to - from : 0;
    int64_t dims[CTN_MAX_DIMS];
    memcpy(dims, x->dim, sizeof dims);
    int64_t *y = ctn__onnx_set_host(c, 0, CTN_I64, 1, &n);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < n; i++) y[i] = dims[from + i];
    return CTN_OK;
}

ctn_status ctn__onnx_do_size(ctn__onnx_call *c)
{
    CTN_TRY(need_tensor(c, 0));
    int64_t *y = ctn__onnx_set_host(c, 0, CTN_I64, 0, NULL);
    if (!y) return ctn_error_status();
    *y = ctn__onnx_count(c->in[0]);
    return CTN_OK;
}

ctn_status ctn__onnx_do_reshape(ctn__onnx_call *c)
{
    int64_t dims[CTN_MAX_DIMS];
    int n, free_axis = -1;
    CTN_TRY(need_tensor(c, 0));
    CTN_TRY(ctn__onnx_list(c, "shape", 1, dims, CTN_MAX_DIMS, &n));
    if (n < 0) return ctn__onnx_fail(c, CTN_EFORMAT, "there is no shape");
    const ctn__onnx_value *x = c->in[0];
    const bool zero = ctn__onnx_int(c, "allowzero", 0) != 0;
    int64_t rest = 1;
    for (int i = 0; i < n; i++) {
        if (dims[i] == 0 && !zero) {
            if (i >= x->ndim) return ctn__onnx_fail(c, CTN_ESHAPE, "0 in dimension %d", i);
            dims[i] = x->dim[i];
        }
        if (dims[i] == -1 && free_axis < 0) free_axis = i;
        else if (dims[i] < 0 || dims[i] > CTN__ONNX_LARGE)
            return ctn__onnx_fail(c, CTN_ESHAPE, "dimension %d is %lld", i, (long long)dims[i]);
        else rest = dims[i] == 0 || rest <= INT64_MAX / dims[i] ? rest * dims[i] : 0;
    }
    if (free_axis >= 0) dims[free_axis] = rest > 0 ? ctn__onnx_count(x) / rest : 0;
    return reshaped(c, n, dims);
}

ctn_status ctn__onnx_do_flatten(ctn__onnx_call *c)
{
    CTN_TRY(need_tensor(c, 0));
    const ctn__onnx_value *x = c->in[0];
    const int axis = clamp_axis(ctn__onnx_int(c, "axis", 1), x->ndim);
    int64_t dims[2] = {1, 1};
    for (int i = 0; i < x->ndim; i++) dims[i >= axis] *= x->dim[i];
    return reshaped(c, 2, dims);
}

ctn_status ctn__onnx_do_squeeze(ctn__onnx_call *c)
{
    int64_t axes[CTN_MAX_DIMS], dims[CTN_MAX_DIMS];
    bool gone[CTN_MAX_DIMS] = {false};
    int n, axis, ndim = 0;
    CTN_TRY(need_tensor(c, 0));
    CTN_TRY(ctn__onnx_list(c, "axes", 1, axes, CTN_MAX_DIMS, &n));
    const ctn__onnx_value *x = c->in[0];
    for (int i = 0; i < x->ndim && n < 0; i++) gone[i] = x->dim[i] == 1;
    for (int i = 0; i < n; i++) {
        CTN_TRY(ctn__onnx_axis(c, axes[i], x->ndim, &axis));
        if (x->dim[axis] != 1)
            return ctn__onnx_fail(c, CTN_ESHAPE, "axis %d has length %lld, expected 1", axis,
                                  (long long)x->dim[axis]);
        gone[axis] = true;
    }
    for (int i = 0; i < x->ndim; i++)
        if (!gone[i]) dims[ndim++] = x->dim[i];
    return reshaped(c, ndim, dims);
}

ctn_status ctn__onnx_do_unsqueeze(ctn__onnx_call *c)
{
    int64_t axes[CTN_MAX_DIMS], dims[CTN_MAX_DIMS];
    bool made[CTN_MAX_DIMS] = {false};
    int n, axis, from = 0;
    CTN_TRY(need_tensor(c, 0));
    CTN_TRY(ctn__onnx_list(c, "axes", 1, axes, CTN_MAX_DIMS, &n));
    const ctn__onnx_value *x = c->in[0];
    const int ndim = x->ndim + (n > 0 ? n : 0);
    if (ndim > CTN_MAX_DIMS) return ctn__onnx_fail(c, CTN_ESHAPE, "%d dimensions", ndim);
    for (int i = 0; i < n; i++) {
        CTN_TRY(ctn__onnx_axis(c, axes[i], ndim, &axis));
        if (made[axis]) return ctn__onnx_fail(c, CTN_EFORMAT, "axis %d is given twice", axis);
        made[axis] = true;
    }
    for (int i = 0; i < ndim; i++) dims[i] = made[i] ? 1 : x->dim[from++];
    return reshaped(c, ndim, dims);
}

ctn_status ctn__onnx_do_transpose(ctn__onnx_call *c)
{
    int64_t perm[CTN_MAX_DIMS];
    bool used[CTN_MAX_DIMS] = {false};
    int n, axis;
    CTN_TRY(need_tensor(c, 0));
    const ctn__onnx_value *x = c->in[0];
    CTN_TRY(ctn__onnx_list(c, "perm", -1, perm, CTN_MAX_DIMS, &n));
    for (int i = 0; i < x->ndim && n < 0; i++) perm[i] = x->ndim - 1 - i;
    if (n >= 0 && n != x->ndim)
        return ctn__onnx_fail(c, CTN_ESHAPE, "%d axes for %d dimensions", n, x->ndim);
    const ctn_desc from = ctn__onnx_desc(x);
    ctn_desc to = from;
    for (int i = 0; i < x->ndim; i++) {
        CTN_TRY(ctn__onnx_axis(c, perm[i], x->ndim, &axis));
        if (used[axis]) return ctn__onnx_fail(c, CTN_EFORMAT, "axis %d is given twice", axis);
        used[axis] = true;
        to.dim[i] = from.dim[axis];
        to.stride[i] = from.stride[axis];
    }
    if (ctn__onnx_is_host(x)) return host_view(c, 0, x, &to, 0);
    return ctn__onnx_set(c, 0, ctn_transpose_at(c->at, ctn__onnx_in(c, 0), x->ndim, perm));
}

ctn_status ctn__onnx_do_expand(ctn__onnx_call *c)
{
    int n;
    ctn_desc to = {0}, all = {0};
    int64_t dims[CTN_MAX_DIMS];
    CTN_TRY(need_tensor(c, 0));
    CTN_TRY(ctn__onnx_list(c, NULL, 1, dims, CTN_MAX_DIMS, &n));
    if (n < 0) return ctn__onnx_fail(c, CTN_EFORMAT, "there is no shape");
    const ctn_desc x = ctn__onnx_desc(c->in[0]);
    CTN_TRY(ctn__desc_set(&to, "Expand", x.dtype, n, dims));
    CTN_TRY(ctn__onnx_broadcast(c, &all, &x, &to));
    if (ctn__same_shape(&all, &x)) return ctn__onnx_set_value(c, 0, c->in[0]);
    if (!ctn__onnx_is_host(c->in[0]) || ctn__count(&all) > CTN__ONNX_SMALL)
        return ctn__onnx_set(c, 0,
                             ctn_broadcast_to_at(c->at, ctn__onnx_in(c, 0), all.ndim, all.dim));
    const ctn_desc view = ctn__broadcast_view(&x, &all);
    return host_view(c, 0, c->in[0], &view, 0);
}

ctn_status ctn__onnx_do_tile(ctn__onnx_call *c)
{
    int64_t reps[CTN_MAX_DIMS];
    int n;
    CTN_TRY(ctn__onnx_list(c, NULL, 1, reps, CTN_MAX_DIMS, &n));
    if (n < 0) return ctn__onnx_fail(c, CTN_EFORMAT, "there are no repeats");
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    int64_t all = 1; /* elements of the result, where an empty dimension counts as 1 */
    for (int i = 0; i < x->d.ndim; i++)
        all = ctn__onnx_times(all, x->d.dim[i] > 0 ? x->d.dim[i] : 1);
    for (int i = 0; i < n; i++) all = ctn__onnx_times(all, reps[i] == 0 ? 1 : reps[i]);
    if (all > INT64_MAX / (int64_t)sizeof(double))
        return ctn__onnx_fail(c, CTN_ESHAPE, "a repeat is negative or the result too large");
    return ctn__onnx_set(c, 0, ctn_tile_at(c->at, x, n, reps));
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Start and number of elements of a slice of an axis, as in NumPy. */
static void slice_range(int64_t n, int64_t step, int64_t *start, int64_t end, int64_t *count)
{
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    if (*start < 0) *start += n;
    if (end < 0) end += n;
    *start = *start < low ? low : *start > high ? high : *start;
    end = end < low ? low : end > high ? high : end;
    const int64_t room = step > 0 ? end - *start : *start - end;
    const uint64_t by = step > 0 ? (uint64_t)step : -(uint64_t)step;
    *count = room > 0 ? (int64_t)(((uint64_t)room - 1) / by + 1) : 0;
}

ctn_status ctn__onnx_do_slice(ctn__onnx_call *c)
{
    int64_t starts[CTN_MAX_DIMS], ends[CTN_MAX_DIMS], axes[CTN_MAX_DIMS], steps[CTN_MAX_DIMS];
    int n, ne, na, ns, axis;
    CTN_TRY(need_tensor(c, 0));
    CTN_TRY(ctn__onnx_list(c, "starts", 1, starts, CTN_MAX_DIMS, &n));
    CTN_TRY(ctn__onnx_list(c, "ends", 2, ends, CTN_MAX_DIMS, &ne));
    CTN_TRY(ctn__onnx_list(c, "axes", 3, axes, CTN_MAX_DIMS, &na));
    CTN_TRY(ctn__onnx_list(c, NULL, 4, steps, CTN_MAX_DIMS, &ns));
    if (n < 0 || ne != n || (na >= 0 && na != n) || (ns >= 0 && ns != n))
        return ctn__onnx_fail(c, CTN_EFORMAT, "the lists of starts, ends, axes and steps differ");
    ctn_desc d = ctn__onnx_desc(c->in[0]);
    const bool host = ctn__onnx_is_host(c->in[0]);
    ctn_tensor *x = host ? NULL : ctn__onnx_in(c, 0);
    int64_t offset = 0;
    for (int i = 0; i < n; i++) {
        int64_t start = starts[i], count;
        const int64_t step = ns < 0 ? 1 : steps[i];
        CTN_TRY(ctn__onnx_axis(c, na < 0 ? i : axes[i], d.ndim, &axis));
        if (step == 0) return ctn__onnx_fail(c, CTN_EFORMAT, "a step is 0");
        slice_range(d.dim[axis], step, &start, ends[i], &count);
        if (count == 0) start = 0;
        if (!host && step == 1 && count < d.dim[axis])
            x = ctn_slice_at(c->at, x, axis, start, count);
        else if (!host && step != 1)
            x = ctn_slice_step_at(c->at, x, axis, start, count, count > 0 ? step : 1);
        offset += start * d.stride[axis];
        d.dim[axis] = count;
        d.stride[axis] *= count > 1 ? step : 1;
    }
    return host ? host_view(c, 0, c->in[0], &d, offset) : ctn__onnx_set(c, 0, x);
}

/* The sizes of the pieces of a Split. */
static ctn_status split_sizes(ctn__onnx_call *c, int64_t length, int64_t *sizes)
{
    int n;
    if (c->nout < 1) return ctn__onnx_fail(c, CTN_EFORMAT, "there are no outputs");
    CTN_TRY(ctn__onnx_list(c, "split", 1, sizes, c->nout, &n));
    if (n >= 0 && n != c->nout)
        return ctn__onnx_fail(c, CTN_EFORMAT, "%d sizes for %d outputs", n, c->nout);
    const int64_t even = (length + c->nout - 1) / c->nout;
    int64_t left = length;
    for (int i = 0; i < c->nout; i++) {
        if (n < 0) sizes[i] = left < even ? left : even;
        if (sizes[i] < 0 || sizes[i] > left)
            return ctn__onnx_fail(c, CTN_ESHAPE, "piece %d of %lld elements has size %lld", i,
                                  (long long)length, (long long)sizes[i]);
        left -= sizes[i];
    }
    return left == 0
               ? CTN_OK
               : ctn__onnx_fail(c, CTN_ESHAPE, "%lld elements are left over", (long long)left);
}

ctn_status ctn__onnx_do_split(ctn__onnx_call *c)
{
    int axis;
    CTN_TRY(need_tensor(c, 0));
    const ctn__onnx_value x = *c->in[0];
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 0), x.ndim, &axis));
    int64_t *sizes = ctn__onnx_memory(c->run, c->nout + 1, sizeof *sizes);
    ctn_tensor **y = ctn__onnx_memory(c->run, c->nout + 1, sizeof(ctn_tensor *));
    if (!sizes || !y) return ctn_error_status();
    CTN_TRY(split_sizes(c, x.dim[axis], sizes));
    if (!ctn__onnx_is_host(&x)) {
        CTN_TRY(ctn_split_at(c->at, ctn__onnx_in(c, 0), axis, c->nout, sizes, y));
        for (int i = 0; i < c->nout; i++) CTN_TRY(ctn__onnx_set(c, i, y[i]));
        return CTN_OK;
    }
    ctn_desc d = ctn__onnx_desc(&x);
    int64_t offset = 0;
    for (int i = 0; i < c->nout; i++) {
        d.dim[axis] = sizes[i];
        CTN_TRY(host_view(c, i, &x, &d, offset));
        offset += sizes[i] * d.stride[axis];
    }
    return CTN_OK;
}

/* ---- joins ----------------------------------------------------------------------------------- */

static ctn_status host_concat(ctn__onnx_call *c, int axis)
{
    const ctn__onnx_value *x = c->in[0];
    int64_t dims[CTN_MAX_DIMS], outer = 1, inner = 1, total = 0, at = 0;
    memcpy(dims, x->dim, sizeof dims);
    for (int i = 0; i < c->nin; i++) {
        for (int k = 0; k < x->ndim; k++)
            if (c->in[i]->ndim != x->ndim || c->in[i]->dtype != x->dtype ||
                (k != axis && c->in[i]->dim[k] != x->dim[k]))
                return ctn__onnx_fail(c, CTN_ESHAPE, "input %d does not fit input 0", i);
        total += c->in[i]->dim[axis]; /* only lengths of empty arrays are that large */
        if (total > CTN__ONNX_LARGE) return ctn__onnx_fail(c, CTN_ESHAPE, "the result is too long");
    }
    dims[axis] = total;
    for (int k = 0; k < x->ndim; k++) {
        if (k < axis) outer *= dims[k];
        if (k > axis) inner *= dims[k];
    }
    const size_t unit = (size_t)inner * ctn_dtype_size(x->dtype);
    char *y = ctn__onnx_set_host(c, 0, x->dtype, x->ndim, dims);
    if (!y) return ctn_error_status();
    for (int i = 0; i < c->nin; i++) {
        const size_t n = (size_t)c->in[i]->dim[axis] * unit;
        for (int64_t o = 0; o < outer && n > 0; o++)
            memcpy(y + (size_t)(o * total + at) * unit,
                   (const char *)c->in[i]->host + (size_t)o * n, n);
        at += c->in[i]->dim[axis];
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_concat(ctn__onnx_call *c)
{
    int axis;
    for (int i = 0; i < c->nin || i == 0; i++) CTN_TRY(need_tensor(c, i));
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", 1), c->in[0]->ndim, &axis));
    if (ctn__onnx_all_host(c)) return host_concat(c, axis);
    ctn_tensor **x = ctn__onnx_memory(c->run, c->nin, sizeof *x);
    if (!x) return ctn_error_status();
    for (int i = 0; i < c->nin; i++) x[i] = ctn__onnx_in(c, i);
    return ctn__onnx_set(c, 0, ctn_concat_at(c->at, c->nin, x, axis));
}

/* ---- padding --------------------------------------------------------------------------------- */

/* Pads of all axes from the lists of Pad. */
static ctn_status pad_lists(ctn__onnx_call *c, int ndim, int64_t *before, int64_t *after)
{
    int64_t pads[2 * CTN_MAX_DIMS], axes[CTN_MAX_DIMS];
    int n, na, axis;
    CTN_TRY(ctn__onnx_list(c, "pads", 1, pads, 2 * CTN_MAX_DIMS, &n));
    CTN_TRY(ctn__onnx_list(c, NULL, 3, axes, CTN_MAX_DIMS, &na));
    const int count = na < 0 ? ndim : na;
    if (n != 2 * count)
        return ctn__onnx_fail(c, CTN_ESHAPE, "%d pads for %d axes, expected twice as many", n,
                              count);
    for (int i = 0; i < ndim; i++) before[i] = after[i] = 0;
    for (int i = 0; i < n; i++)
        if (pads[i] < -CTN__ONNX_LARGE || pads[i] > CTN__ONNX_LARGE)
            return ctn__onnx_fail(c, CTN_ESHAPE, "padding of %lld", (long long)pads[i]);
    for (int i = 0; i < count; i++) {
        CTN_TRY(ctn__onnx_axis(c, na < 0 ? i : axes[i], ndim, &axis));
        before[axis] = pads[i];
        after[axis] = pads[count + i];
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_pad(ctn__onnx_call *c)
{
    int64_t before[CTN_MAX_DIMS] = {0}, after[CTN_MAX_DIMS] = {0};
    const char *at = c->at;
    CTN_TRY(need_tensor(c, 0));
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(pad_lists(c, x->d.ndim, before, after));
    bool any = false;
    for (int i = 0; i < c->in[0]->ndim; i++) { /* negative padding removes elements */
        const int64_t front = before[i] < 0 ? -before[i] : 0, end = after[i] < 0 ? -after[i] : 0;
        if (front + end > 0) x = ctn_slice_at(at, x, i, front, c->in[0]->dim[i] - front - end);
        before[i] += front;
        after[i] += end;
        any |= before[i] > 0 || after[i] > 0;
    }
    if (!any) return ctn__onnx_set(c, 0, x);
    if (!ctn__onnx_text_is(c, "mode", "constant", true)) {
        const ctn_pad_mode mode = ctn__onnx_text_is(c, "mode", "reflect", false) ? CTN_PAD_REFLECT
                                  : ctn__onnx_text_is(c, "mode", "edge", false)  ? CTN_PAD_REPLICATE
                                                                                 : CTN_PAD_WRAP;
        const ctn_dtype type = c->in[0]->dtype;
        x = ctn_pad_by_at(at, ctn__onnx_real(at, x), mode, before, after);
        return ctn__onnx_set(c, 0, x ? ctn_cast_at(at, x, type) : NULL);
    }
    double value = ctn__onnx_float(c, "value", 0);
    CTN_TRY(ctn__onnx_one_number(c, 2, &value));
    return ctn__onnx_set(c, 0, ctn_pad_at(at, x, before, after, value));
}

ctn_status ctn__onnx_do_center_crop_pad(ctn__onnx_call *c)
{
    int64_t size[CTN_MAX_DIMS], axes[CTN_MAX_DIMS];
    int64_t before[CTN_MAX_DIMS] = {0}, after[CTN_MAX_DIMS] = {0};
    int n, na, axis;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_list(c, NULL, 1, size, CTN_MAX_DIMS, &n));
    CTN_TRY(ctn__onnx_list(c, "axes", -1, axes, CTN_MAX_DIMS, &na));
    if (n != (na < 0 ? x->d.ndim : na)) return ctn__onnx_fail(c, CTN_ESHAPE, "%d sizes", n);
    for (int i = 0; i < n; i++) {
        CTN_TRY(ctn__onnx_axis(c, na < 0 ? i : axes[i], c->in[0]->ndim, &axis));
        if (size[i] < 0 || size[i] > CTN__ONNX_LARGE)
            return ctn__onnx_fail(c, CTN_ESHAPE, "size %lld", (long long)size[i]);
        const int64_t more = size[i] - c->in[0]->dim[axis];
        if (more < 0) x = ctn_slice_at(c->at, x, axis, -more / 2, size[i]);
        before[axis] = more > 0 ? more / 2 : 0;
        after[axis] = more > 0 ? more - more / 2 : 0;
    }
    return ctn__onnx_set(c, 0, ctn_pad_at(c->at, x, before, after, 0));
}

/* ---- made from numbers ----------------------------------------------------------------------- */

ctn_status ctn__onnx_do_constant(ctn__onnx_call *c)
{
    return ctn__onnx_fail(c, CTN_EFORMAT, "constants are read when the model is opened");
}

ctn_status ctn__onnx_do_constant_of_shape(ctn__onnx_call *c)
{
    int64_t dims[CTN_MAX_DIMS];
    int n;
    ctn__onnx_value v = {.dtype = CTN_F32};
    const Onnx__AttributeProto *a = ctn__onnx_attr(c->node, "value");
    CTN_TRY(ctn__onnx_list(c, NULL, 0, dims, CTN_MAX_DIMS, &n));
    if (n < 0) return ctn__onnx_fail(c, CTN_EFORMAT, "there is no shape");
    if (a && a->t) {
        CTN_TRY(ctn__onnx_shape(&v, NULL, c->run->model->path, a->t));
        if (ctn__onnx_count(&v) != 1)
            return ctn__onnx_fail(c, CTN_EFORMAT, "the value is not one number");
        CTN_TRY(ctn__onnx_load(&v, &c->ctx->arena, c->run->model->path, a->t));
    }
    ctn_desc d;
    CTN_TRY(ctn__desc_set(&d, "ConstantOfShape", v.dtype, n, dims));
    const int64_t count = ctn__count(&d);
    if (count > CTN__ONNX_SMALL)
        return ctn__onnx_set(c, 0,
                             ctn_full_at(c->at, c->ctx, v.host ? ctn__onnx_number_of(&v, 0) : 0,
                                         v.dtype, n, dims));
    char *y = ctn__onnx_set_host(c, 0, v.dtype, n, dims);
    if (!y) return ctn_error_status();
    const size_t es = ctn_dtype_size(v.dtype);
    for (int64_t i = 0; i < count; i++) {
        if (v.host) memcpy(y + (size_t)i * es, v.host, es);
        else memset(y + (size_t)i * es, 0, es);
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_range(ctn__onnx_call *c)
{
    double given[3] = {0};
    for (int i = 0; i < 3; i++) {
        CTN_TRY(ctn__onnx_need(c, i));
        CTN_TRY(ctn__onnx_one_number(c, i, &given[i]));
    }
    const ctn_dtype type = c->in[0]->dtype;
    const double start = given[0], end = given[1], step = given[2];
    const double count = step != 0 ? (end - start) / step : 0;
    if (!(count < 1e12)) return ctn__onnx_fail(c, CTN_ESHAPE, "the range has no end");
    int64_t n = count > 0 ? (int64_t)count : 0;
    n += (double)n < count;
    void *y = ctn__onnx_set_host(c, 0, type, 1, &n);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < n; i++) ctn__onnx_put_number(y, type, i, start + (double)i * step);
    return CTN_OK;
}

ctn_status ctn__onnx_do_eye_like(ctn__onnx_call *c)
{
    CTN_TRY(need_tensor(c, 0));
    const ctn__onnx_value x = *c->in[0];
    const int64_t to = ctn__onnx_int(c, "dtype", 0), k = diagonal(ctn__onnx_int(c, "k", 0));
    const ctn_dtype type = to > 0 && to < 100 ? ctn__onnx_dtype((int32_t)to) : x.dtype;
    if (x.ndim != 2 || type == 0) return ctn__onnx_fail(c, CTN_ESHAPE, "expected a matrix");
    void *y = ctn__onnx_set_host(c, 0, type, 2, x.dim);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < x.dim[0] && x.dim[1] > 0; i++)
        for (int64_t j = 0; j < x.dim[1]; j++)
            ctn__onnx_put_int(y, type, i * x.dim[1] + j, j == i + k);
    return CTN_OK;
}

/* ---- triangles and blocks -------------------------------------------------------------------- */

ctn_status ctn__onnx_do_trilu(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    int64_t k = 0;
    CTN_TRY(ctn__onnx_one_int(c, 1, &k));
    k = diagonal(k);
    if (!ctn__onnx_int(c, "upper", 1)) return ctn__onnx_set(c, 0, ctn_tril_at(c->at, x, k));
    if (x->d.ndim < 2) return ctn__onnx_fail(c, CTN_ESHAPE, "expected matrices");
    const int64_t R = ctn_dim(x, -2), C = ctn_dim(x, -1);
    ctn_tensor *low = ctn_full_at(c->at, c->ctx, 1, CTN_BOOL, CTN_SHAPE(R, C));
    low = ctn_tril_at(c->at, low, k - 1);
    return ctn__onnx_set(c, 0, ctn_where_at(c->at, low, ctn__onnx_like(c->at, x, 0), x));
}

/* (N, r, r, C, H, W) or (N, C, r, r, H, W) -> (N, C, H, r, W, r) */
ctn_status ctn__onnx_do_depth_to_space(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    const int64_t r = ctn__onnx_int(c, "blocksize", 0);
    if (!x) return ctn_error_status();
    if (x->d.ndim != 4 || r < 1 || r > INT16_MAX || x->d.dim[1] % (r * r) != 0)
        return ctn__onnx_fail(c, CTN_ESHAPE, "blocks of %lld do not fit", (long long)r);
    if (ctn__onnx_text_is(c, "mode", "CRD", false))
        return ctn__onnx_set(c, 0, ctn_depth_to_space_at(c->at, x, r));
    const int64_t *d = x->d.dim, C = d[1] / (r * r);
    ctn_tensor *y = ctn_reshape_at(c->at, x, CTN_SHAPE(d[0], r, r, C, d[2], d[3]));
    y = ctn_transpose_at(c->at, y, CTN_SHAPE(0, 3, 4, 1, 5, 2));
    return ctn__onnx_set(c, 0,
                         ctn_reshape_at(c->at, y,
                                        CTN_SHAPE(d[0], C, ctn__onnx_times(d[2], r),
                                                  ctn__onnx_times(d[3], r))));
}

ctn_status ctn__onnx_do_space_to_depth(ctn__onnx_call *c)
{
    ctn_tensor *x = ctn__onnx_in(c, 0);
    const int64_t r = ctn__onnx_int(c, "blocksize", 0);
    if (!x) return ctn_error_status();
    if (x->d.ndim != 4 || r < 1 || r > INT16_MAX || x->d.dim[2] % r != 0 || x->d.dim[3] % r != 0)
        return ctn__onnx_fail(c, CTN_ESHAPE, "blocks of %lld do not fit", (long long)r);
    if (ctn__onnx_text_is(c, "mode", "CRD", false))
        return ctn__onnx_set(c, 0, ctn_space_to_depth_at(c->at, x, r));
    const int64_t *d = x->d.dim, H = d[2] / r, W = d[3] / r;
    ctn_tensor *y = ctn_reshape_at(c->at, x, CTN_SHAPE(d[0], d[1], H, r, W, r));
    y = ctn_transpose_at(c->at, y, CTN_SHAPE(0, 3, 5, 1, 2, 4));
    return ctn__onnx_set(c, 0,
                         ctn_reshape_at(c->at, y,
                                        CTN_SHAPE(d[0], ctn__onnx_times(d[1], r * r), H, W)));
}

#endif
