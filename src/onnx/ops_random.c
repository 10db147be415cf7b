/* SPDX-License-Identifier: Apache-2.0
 *
 * Random numbers, windows of signals, and linear quantisation. Random numbers are those of Catena:
 * they depend on the seed of the context and not on that of the node.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

/* The type that attribute `name` asks for, or `otherwise`. */
static ctn_dtype asked_type(const ctn__onnx_call *c, const char *name, ctn_dtype otherwise)
{
    const int64_t elem = ctn__onnx_int(c, name, 0);
    return elem > 0 && elem < 100 ? ctn__onnx_dtype((int32_t)elem) : otherwise;
}

/* kind 0: normal, 1: uniform. The shape is an attribute or that of input 0. */
ctn_status ctn__onnx_do_random(ctn__onnx_call *c)
{
    int64_t dims[CTN_MAX_DIMS];
    int n;
    CTN_TRY(ctn__onnx_list(c, "shape", -1, dims, CTN_MAX_DIMS, &n));
    ctn_dtype type = asked_type(c, "dtype", CTN_F32);
    if (n < 0 && ctn__onnx_has(c, 0)) {
        n = c->in[0]->ndim;
        memcpy(dims, c->in[0]->dim, sizeof dims);
        type = asked_type(c, "dtype", c->in[0]->dtype);
    }
    if (n < 0 || !ctn__is_f32_f64(type))
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "no shape, or a type that is not a float");
    if (c->node->op->kind)
        return ctn__onnx_set(c, 0,
                             ctn_random_uniform_at(c->at, c->ctx, ctn__onnx_float(c, "low", 0),
                                                   ctn__onnx_float(c, "high", 1), type, n, dims));
    return ctn__onnx_set(c, 0,
                         ctn_random_normal_at(c->at, c->ctx, ctn__onnx_float(c, "mean", 0),
                                              ctn__onnx_float(c, "scale", 1), type, n, dims));
}

ctn_status ctn__onnx_do_bernoulli(ctn__onnx_call *c)
{
    ctn_tensor *p = ctn__onnx_in(c, 0);
    if (!p) return ctn_error_status();
    const ctn_dtype type = asked_type(c, "dtype", p->d.dtype);
    if (!type) return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "the type is not supported");
    ctn_tensor *u = ctn_random_uniform_at(c->at, c->ctx, 0, 1, p->d.dtype, p->d.ndim, p->d.dim);
    return ctn__onnx_set(c, 0, ctn_cast_at(c->at, ctn_less_at(c->at, u, p), type));
}

/* ---- windows --------------------------------------------------------------------------------- */

ctn_status ctn__onnx_do_window(ctn__onnx_call *c)
{
    static const double pi = 3.14159265358979323846;
    int64_t n = 0;
    CTN_TRY(ctn__onnx_need(c, 0));
    CTN_TRY(ctn__onnx_one_int(c, 0, &n));
    const int kind = c->node->op->kind;
    const ctn_dtype type = asked_type(c, "output_datatype", CTN_F32);
    if (n < 0 || !type) return ctn__onnx_fail(c, CTN_EARG, "a window of %lld", (long long)n);
    const double period = (double)(ctn__onnx_int(c, "periodic", 1) ? n : n - 1);
    CTN_TRY(ctn__onnx_spend_elements(c->run, ctn__onnx_times(n, 8), 0)); /* slow ones */
    void *y = ctn__onnx_set_host(c, 0, type, 1, &n);
    if (!y) return ctn_error_status();
    for (int64_t i = 0; i < n; i++) {
        const double t = 2 * pi * (double)i / (period > 0 ? period : 1);
        const double v = kind == CTN__ONNX_BLACKMAN  ? 0.42 - 0.5 * cos(t) + 0.08 * cos(2 * t)
                         : kind == CTN__ONNX_HAMMING ? 25.0 / 46 - 21.0 / 46 * cos(t)
                                                     : 0.5 - 0.5 * cos(t);
        ctn__elem_set(y, type, i, v);
    }
    return CTN_OK;
}

/* ---- quantisation ---------------------------------------------------------------------------- */

/* Input i, one number for each index of an axis of x or for each block of it, in a shape that
 * broadcasts to x. */
static ctn_tensor *per_axis(ctn__onnx_call *c, int i, const ctn_desc *x, int64_t block)
{
    ctn_tensor *t = ctn__onnx_in(c, i);
    int64_t dims[CTN_MAX_DIMS], axis = ctn__onnx_int(c, "axis", 1);
    if (axis < 0) axis += x->ndim;
    if (!t || ctn__onnx_count(c->in[i]) == 1) return ctn_reshape_at(c->at, t, CTN_SCALAR_SHAPE);
    if (axis < 0 || axis >= x->ndim) return t;
    if (block > 0) {
        const int64_t n = x->dim[axis], blocks = axis < t->d.ndim ? t->d.dim[axis] : 0;
        if (blocks != (n > 0 ? (n - 1) / block + 1 : 0)) {
            (void)ctn__onnx_fail(c, CTN_ESHAPE, "%lld blocks of %lld for %lld elements",
                                 (long long)blocks, (long long)block, (long long)n);
            return NULL;
        }
        t = ctn_repeat_at(c->at, t, block < n ? block : n, axis);
        return ctn_slice_at(c->at, t, axis, 0, n);
    }
    for (int k = 0; k < x->ndim; k++) dims[k] = k == axis ? x->dim[k] : 1;
    return ctn_reshape_at(c->at, t, x->ndim, dims);
}

/* y = (x - zero) scale */
ctn_status ctn__onnx_do_dequantize(ctn__onnx_call *c)
{
    const char *at = c->at;
    const int64_t block = ctn__onnx_int(c, "block_size", 0);
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    const ctn_desc d = x->d;
    ctn_tensor *scale = per_axis(c, 1, &d, block);
    if (!scale) return ctn_error_status();
    const ctn_dtype type = scale->d.dtype;
    ctn_tensor *y = ctn_cast_at(at, x, type);
    if (ctn__onnx_has(c, 2))
        y = ctn_sub_at(at, y, ctn_cast_at(at, per_axis(c, 2, &d, block), type));
    return ctn__onnx_set(c, 0, ctn_mul_at(at, y, scale));
}

/* y = x / scale + zero, rounded and limited to the type of zero. */
ctn_status ctn__onnx_do_quantize(ctn__onnx_call *c)
{
    const char *at = c->at;
    const int64_t block = ctn__onnx_int(c, "block_size", 0);
    ctn_tensor *x = ctn__onnx_real(at, ctn__onnx_in(c, 0));
    if (!x) return ctn_error_status();
    if (ctn__onnx_has(c, 2) ? c->in[2]->dtype != CTN_U8 : ctn__onnx_int(c, "output_dtype", 2) != 2)
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "only the type uint8 is supported");
    const ctn_desc d = x->d;
    ctn_tensor *y = ctn_div_at(at, x, ctn__onnx_real(at, per_axis(c, 1, &d, block)));
    y = ctn_round_at(at, y);
    if (y && ctn__onnx_has(c, 2))
        y = ctn_add_at(at, y, ctn_cast_at(at, per_axis(c, 2, &d, block), y->d.dtype));
    y = ctn_clip_at(at, y, 0, 255);
    return ctn__onnx_set(c, 0, y ? ctn_cast_at(at, y, CTN_U8) : NULL);
}

#endif
