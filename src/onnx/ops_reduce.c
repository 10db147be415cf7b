/* SPDX-License-Identifier: Apache-2.0
 *
 * Reductions over axes, softmax, and normalisations that consist of reductions.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

static ctn_tensor *reduce(const char *at, int kind, ctn_tensor *x, int n, const int64_t *axes,
                          int keep)
{
    switch (kind) {
    case CTN__ONNX_R_SUM: return ctn_sum_at(at, x, n, axes, keep);
    case CTN__ONNX_R_MEAN: return ctn_mean_at(at, x, n, axes, keep);
    case CTN__ONNX_R_MAX: return ctn_max_at(at, x, n, axes, keep);
    case CTN__ONNX_R_MIN: return ctn_min_at(at, x, n, axes, keep);
    case CTN__ONNX_R_PROD: return ctn_prod_at(at, x, n, axes, keep);
    case CTN__ONNX_R_L1: return ctn_norm_at(at, x, 1, n, axes, keep);
    case CTN__ONNX_R_L2: return ctn_norm_at(at, x, 2, n, axes, keep);
    case CTN__ONNX_R_LOG_SUM: return ctn_log_at(at, ctn_sum_at(at, x, n, axes, keep));
    case CTN__ONNX_R_LOG_SUM_EXP: return ctn_logsumexp_at(at, x, n, axes, keep);
    default: return ctn_sum_at(at, ctn_square_at(at, x), n, axes, keep);
    }
}

/* The reduction of single elements. */
static ctn_tensor *reduce_nothing(const char *at, int kind, ctn_tensor *x)
{
    switch (kind) {
    case CTN__ONNX_R_L1:
    case CTN__ONNX_R_L2: return ctn_abs_at(at, x);
    case CTN__ONNX_R_LOG_SUM: return ctn_log_at(at, x);
    case CTN__ONNX_R_SUM_SQUARE: return ctn_square_at(at, x);
    default: return x;
    }
}

/* The result over no elements, where the op of Catena refuses them. */
static double empty_result(int kind, ctn_dtype type)
{
    if (type == CTN_BOOL) return kind == CTN__ONNX_R_MIN;
    return kind == CTN__ONNX_R_MIN ? INFINITY : -INFINITY;
}

static ctn_status host_reduce(ctn__onnx_call *c, int kind, const bool *gone, int ndim,
                              const int64_t *dims)
{
    const ctn__onnx_value x = *c->in[0];
    const ctn_desc d = ctn__onnx_desc(&x);
    ctn_desc to = d;
    int64_t step = 1, count = 1;
    for (int i = x.ndim; i-- > 0;) {
        to.stride[i] = gone[i] ? 0 : step;
        if (!gone[i]) step *= x.dim[i];
    }
    int64_t *y = ctn__onnx_set_host(c, 0, CTN_I64, ndim, dims);
    if (!y) return ctn_error_status();
    for (int i = 0; i < ndim; i++) count *= dims[i];
    for (int64_t i = 0; i < count; i++)
        y[i] = kind == CTN__ONNX_R_PROD  ? 1
               : kind == CTN__ONNX_R_MAX ? INT64_MIN
               : kind == CTN__ONNX_R_MIN ? INT64_MAX
                                         : 0;
    for (int64_t i = 0; i < ctn__onnx_count(&x); i++) {
        const int64_t v = ctn__onnx_int_of(&x, i);
        int64_t *to_y = &y[ctn__onnx_offset(&to, i, &d)];
        if (kind == CTN__ONNX_R_PROD) *to_y = (int64_t)((uint64_t)*to_y * (uint64_t)v);
        else if (kind == CTN__ONNX_R_MAX) *to_y = v > *to_y ? v : *to_y;
        else if (kind == CTN__ONNX_R_MIN) *to_y = v < *to_y ? v : *to_y;
        else *to_y = (int64_t)((uint64_t)*to_y + (uint64_t)v);
    }
    return CTN_OK;
}

ctn_status ctn__onnx_do_reduce(ctn__onnx_call *c)
{
    const int kind = c->node->op->kind;
    const char *at = c->at;
    int64_t axes[CTN_MAX_DIMS], dims[CTN_MAX_DIMS], removed = 1;
    bool gone[CTN_MAX_DIMS] = {false};
    int n, axis, ndim = 0;
    if (!ctn__onnx_has(c, 0)) return ctn__onnx_fail(c, CTN_EFORMAT, "there is no input");
    CTN_TRY(ctn__onnx_list(c, "axes", 1, axes, CTN_MAX_DIMS, &n));
    const ctn__onnx_value *v = c->in[0];
    const int keep = ctn__onnx_int(c, "keepdims", 1) != 0;
    const bool nothing = n <= 0 && ctn__onnx_int(c, "noop_with_empty_axes", 0);
    for (int i = 0; i < n; i++) {
        CTN_TRY(ctn__onnx_axis(c, axes[i], v->ndim, &axis));
        gone[axis] = true;
    }
    for (int i = 0; i < v->ndim; i++) {
        gone[i] |= n <= 0 && !nothing;
        if (gone[i]) removed *= v->dim[i];
        if (keep || !gone[i]) dims[ndim++] = gone[i] ? 1 : v->dim[i];
    }
    const bool counted = kind == CTN__ONNX_R_SUM || kind == CTN__ONNX_R_PROD ||
                         kind == CTN__ONNX_R_MAX || kind == CTN__ONNX_R_MIN;
    if (counted && v->dtype == CTN_I64 && removed > 0 && ctn__onnx_is_host(v))
        return host_reduce(c, kind, gone, ndim, dims);
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(at, given);
    if (!x) return ctn_error_status();
    ctn_tensor *y = NULL;
    if (nothing) y = reduce_nothing(at, kind, x);
    else if (removed == 0 && (kind == CTN__ONNX_R_MAX || kind == CTN__ONNX_R_MIN ||
                              kind == CTN__ONNX_R_LOG_SUM_EXP))
        y = ctn_full_at(at, c->ctx, empty_result(kind, v->dtype), x->d.dtype, ndim, dims);
    else y = reduce(at, kind, x, n > 0 ? n : 0, axes, keep);
    return ctn__onnx_set(c, 0, y ? ctn_cast_at(at, y, given->d.dtype) : NULL);
}

/* ---- softmax --------------------------------------------------------------------------------- */

/* Before opset 13 all dimensions from the axis on are one. */
ctn_status ctn__onnx_do_softmax(ctn__onnx_call *c)
{
    const bool old = c->node->opset < 13;
    int axis;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", old ? 1 : -1), x->d.ndim, &axis));
    const int ndim = x->d.ndim;
    int64_t dims[CTN_MAX_DIMS], rows[2] = {1, 1};
    memcpy(dims, x->d.dim, sizeof dims);
    for (int i = 0; i < ndim; i++) rows[i >= axis] *= dims[i];
    const bool flat = old && axis != ndim - 1;
    if (flat) x = ctn_reshape_at(c->at, x, 2, rows);
    x = c->node->op->kind ? ctn_log_softmax_at(c->at, x, flat ? 1 : axis)
                          : ctn_softmax_at(c->at, x, flat ? 1 : axis);
    return ctn__onnx_set(c, 0, flat ? ctn_reshape_at(c->at, x, ndim, dims) : x);
}

/* ---- normalisations -------------------------------------------------------------------------- */

ctn_status ctn__onnx_do_lp_normalization(ctn__onnx_call *c)
{
    int axis;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", -1), x->d.ndim, &axis));
    const int64_t axes[1] = {axis}, p = ctn__onnx_int(c, "p", 2);
    ctn_tensor *norm = ctn_norm_at(c->at, x, (double)p, 1, axes, 1);
    ctn_tensor *zero = ctn_equal_at(c->at, norm, ctn__onnx_like(c->at, x, 0));
    norm = ctn_where_at(c->at, zero, ctn__onnx_like(c->at, x, 1), norm); /* 0 / 0 becomes 0 */
    return ctn__onnx_set(c, 0, ctn_div_at(c->at, x, norm));
}

ctn_status ctn__onnx_do_mean_variance(ctn__onnx_call *c)
{
    int64_t axes[CTN_MAX_DIMS] = {0, 2, 3};
    const char *at = c->at;
    int n;
    CTN_TRY(ctn__onnx_list(c, "axes", -1, axes, CTN_MAX_DIMS, &n));
    if (n < 0) n = 3;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    ctn_tensor *mean = ctn_mean_at(at, x, n, axes, 1);
    ctn_tensor *sd = ctn_shift_at(at, ctn_std_at(at, x, n, axes, 0, 1), 1e-9);
    return ctn__onnx_set(c, 0, ctn_div_at(at, ctn_sub_at(at, x, mean), sd));
}

/* Input i with the shape of the last n dimensions of x; NULL if it is left out. */
static ctn_tensor *last_dims(ctn__onnx_call *c, int i, const ctn_tensor *x, int n)
{
    if (!ctn__onnx_has(c, i)) return NULL;
    ctn_tensor *t = ctn__onnx_in(c, i);
    const int64_t *dims = x->d.dim + x->d.ndim - n;
    if (t && t->d.ndim == n && memcmp(t->d.dim, dims, (size_t)n * sizeof *dims) == 0) return t;
    return ctn_broadcast_to_at(c->at, t, n, dims);
}

ctn_status ctn__onnx_do_layer_norm(ctn__onnx_call *c)
{
    int axis;
    const char *at = c->at;
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    const bool rms = c->node->op->kind != 0;
    const double eps = ctn__onnx_float(c, "epsilon", 1e-5);
    CTN_TRY(ctn__onnx_axis(c, ctn__onnx_int(c, "axis", -1), x->d.ndim, &axis));
    const int n = x->d.ndim - axis;
    int64_t axes[CTN_MAX_DIMS];
    for (int i = 0; i < n; i++) axes[i] = axis + i;
    /* A scale with more dimensions than are normalised cannot be passed to the op. */
    const bool apart = ctn__onnx_has(c, 1) && c->in[1]->ndim > n;
    ctn_tensor *scale = apart ? NULL : last_dims(c, 1, x, n);
    ctn_tensor *bias = apart ? NULL : last_dims(c, 2, x, n);
    ctn_tensor *y =
        rms ? ctn_rms_norm_at(at, x, n, scale, eps) : ctn_layer_norm_at(at, x, n, scale, bias, eps);
    if (apart) y = ctn_mul_at(at, y, ctn__onnx_in(c, 1));
    if (apart && ctn__onnx_has(c, 2)) y = ctn_add_at(at, y, ctn__onnx_in(c, 2));
    CTN_TRY(ctn__onnx_set(c, 0, y));
    if (c->nout > 1 && c->out[1]) CTN_TRY(ctn__onnx_set(c, 1, ctn_mean_at(at, x, n, axes, 1)));
    if (c->nout > 2 && c->out[2]) {
        ctn_tensor *v = ctn_shift_at(at, ctn_variance_at(at, x, n, axes, 0, 1), eps);
        CTN_TRY(ctn__onnx_set(c, 2, ctn_rsqrt_at(at, v)));
    }
    return CTN_OK;
}

#endif
