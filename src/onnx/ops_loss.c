/* SPDX-License-Identifier: Apache-2.0
 *
 * The losses of models that were exported for training. Classes are in dimension 1.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include "onnx/kinds.h"

/* Targets without the ignored ones, which become class 0 with weight 0. Result: the weight of each
 * target, with the shape of the targets. */
static ctn_tensor *target_weights(ctn__onnx_call *c, const ctn_tensor *x, ctn_tensor **target)
{
    const char *at = c->at;
    ctn_tensor *t = ctn_cast_at(at, *target, CTN_F64), *one = ctn__onnx_like(at, x, 1), *w = NULL;
    const ctn__onnx_value *v = c->in[1];
    if (!t || !one) return NULL;
    ctn_tensor *keep = NULL;
    if (ctn__onnx_has_attr(c, "ignore_index")) {
        const double ignored = (double)ctn__onnx_int(c, "ignore_index", 0);
        keep = ctn_not_equal_at(at, t, ctn__onnx_like(at, t, ignored));
        t = ctn_where_at(at, keep, t, ctn__onnx_like(at, t, 0));
    }
    *target = ctn_cast_at(at, t, CTN_I64);
    if (ctn__onnx_has(c, 2)) {
        ctn_tensor *flat = ctn_reshape_at(at, *target, CTN_SHAPE(ctn__onnx_count(v)));
        w = ctn_index_select_at(at, ctn__onnx_in(c, 2), flat, 0);
        w = ctn_reshape_at(at, w, v->ndim, v->dim);
    } else {
        w = ctn_broadcast_to_at(at, one, v->ndim, v->dim);
    }
    return keep ? ctn_where_at(at, keep, w, ctn__onnx_like(at, x, 0)) : w;
}

/* -w[t] x[t], where x are logarithms of probabilities; kind 1 makes them from logits. */
ctn_status ctn__onnx_do_nll_loss(ctn__onnx_call *c)
{
    const char *at = c->at;
    ctn_tensor *x = ctn__onnx_in(c, 0), *target = ctn__onnx_in(c, 1);
    if (!x || !target) return ctn_error_status();
    if (x->d.ndim < 2 || target->d.ndim != x->d.ndim - 1)
        return ctn__onnx_fail(c, CTN_ESHAPE, "expected (N,C,...) and (N,...)");
    if (c->node->op->kind) x = ctn_log_softmax_at(at, x, 1);
    CTN_TRY(ctn__onnx_set(c, 1, x));
    ctn_tensor *w = target_weights(c, x, &target);
    ctn_tensor *y = ctn_gather_at(at, x, ctn_unsqueeze_at(at, target, 1), 1);
    y = ctn_neg_at(at, ctn_mul_at(at, ctn_squeeze_at(at, y, 1), w));
    if (ctn__onnx_text_is(c, "reduction", "none", false)) return ctn__onnx_set(c, 0, y);
    y = ctn_sum_at(at, y, CTN_ALL_AXES, 0);
    if (!ctn__onnx_text_is(c, "reduction", "sum", false))
        y = ctn_div_at(at, y, ctn_sum_at(at, w, CTN_ALL_AXES, 0));
    return ctn__onnx_set(c, 0, y);
}

#endif
