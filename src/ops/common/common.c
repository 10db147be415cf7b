/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of op files: common shape rules, recording with one or two inputs, gradients, and
 * running oneDNN primitives.
 */
#include "ops/ops.h"

ctn_status ctn__infer_same(ctn_infer_args *a)
{
    if (!ctn__is_f32_f64(a->in[0]->dtype))
        return ctn_fail(CTN_EDTYPE, "%s: input is %s, expected f32 or f64; use ctn_cast", a->name,
                        ctn_dtype_name(a->in[0]->dtype));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

ctn_status ctn__infer_broadcast(ctn_infer_args *a)
{
    if (a->in[0]->dtype != a->in[1]->dtype || !ctn__is_float(a->in[0]->dtype))
        return ctn_fail(CTN_EDTYPE,
                        "%s: inputs are %s and %s, expected the same float type; use ctn_cast",
                        a->name, ctn_dtype_name(a->in[0]->dtype), ctn_dtype_name(a->in[1]->dtype));
    a->out[0].dtype = a->in[0]->dtype;
    return ctn__broadcast(&a->out[0], a->name, a->in[0], a->in[1]);
}

ctn_tensor *ctn__unary(const char *at, ctn_op *op, ctn_tensor *x)
{
    return ctn__apply1(at, NULL, op, 1, &x, 0, NULL, 0, NULL);
}

ctn_tensor *ctn__binary(const char *at, ctn_op *op, ctn_tensor *a, ctn_tensor *b)
{
    ctn_tensor *in[2] = {a, b};
    return ctn__apply1(at, NULL, op, 2, in, 0, NULL, 0, NULL);
}

ctn_status ctn__grad_to(const ctn_grad_args *a, int i, ctn_tensor *g)
{
    a->gin[i] = a->gin[i] ? ctn_add_at(a->at, a->gin[i], g) : g;
    return a->gin[i] ? CTN_OK : ctn_error_status();
}

ctn_status ctn__slope_grad(const ctn_grad_args *a, ctn_op *op, ctn__bend *bend)
{
    ctn_tensor *v = a->in[0], *g = a->in[1], *u = a->gout[0];
    if (a->need[0]) CTN_TRY(ctn__grad_to(a, 0, bend(a->at, v, ctn_mul_at(a->at, g, u))));
    return a->need[1] ? ctn__grad_to(a, 1, ctn__binary(a->at, op, v, u)) : CTN_OK;
}

ctn_tensor *ctn__sum_to(const char *at, ctn_tensor *g, const ctn_desc *d)
{
    if (!g || ctn__same_shape(&g->d, d)) return g;
    int64_t axes[CTN_MAX_DIMS];
    int n = 0, extra = g->d.ndim - d->ndim;
    for (int i = 0; i < g->d.ndim; i++)
        if (i < extra || (d->dim[i - extra] == 1 && g->d.dim[i] != 1)) axes[n++] = i;
    const bool low = !ctn__is_f32_f64(g->d.dtype);
    if (n > 0 && low) g = ctn_cast_at(at, g, CTN_F32);
    if (n > 0) g = ctn_sum_at(at, g, n, axes, 1);
    if (n > 0 && low) g = ctn_cast_at(at, g, d->dtype);
    return ctn_reshape_at(at, g, d->ndim, d->dim);
}

/* The argument is masked as well as the result, so that no infinite derivative appears. */
ctn_tensor *ctn__root(const char *at, ctn_tensor *x)
{
    if (!x) return NULL;
    ctn_tensor *zero = ctn_full_at(at, x->ctx, 0, x->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *one = ctn_full_at(at, x->ctx, 1, x->d.dtype, CTN_SCALAR_SHAPE);
    ctn_tensor *none = ctn_equal_at(at, x, zero);
    return ctn_where_at(at, none, zero, ctn_sqrt_at(at, ctn_where_at(at, none, one, x)));
}

ctn_tensor *ctn__rows_of(const char *at, ctn_tensor *x)
{
    if (!x || x->d.ndim == 2) return x;
    int64_t rows = 1;
    for (int i = 0; i < x->d.ndim - 1; i++) rows *= x->d.dim[i];
    return ctn_reshape_at(at, x, CTN_SHAPE(rows, x->d.dim[x->d.ndim - 1]));
}

ctn_status ctn__run_prim(const ctn_run_args *a)
{
    void *ptr[CTN_MAX_IN + 1];
    for (int i = 0; i < a->nin; i++) ptr[i] = (void *)(uintptr_t)a->in[i];
    ptr[a->nin] = a->out[0];
    return ctn__prim_run(a->priv, ptr, a->scratch);
}

/* Are the elements along dimension j next to each other, and these lines one after another? A
 * vector along i is not seen as lines of one element, because oneDNN may take it for plain. */
static bool has_lines(const ctn_desc *d, int i, int j)
{
    if (d->dim[i] == 1) return d->stride[j] == 1 || d->dim[j] == 1;
    return d->dim[j] > 1 && d->stride[j] == 1 && d->stride[i] >= d->dim[j];
}

void ctn__ask_matrix(ctn_desc *d)
{
    const int i = d->ndim - 2, j = d->ndim - 1;
    bool fits = d->layout > 0 || has_lines(d, i, j) || has_lines(d, j, i);
    for (int k = 0; k < i && d->layout == 0; k++) fits &= d->stride[k] > 0 || d->dim[k] == 1;
    if (!fits) ctn__plain(d);
}

ctn_status ctn__with_prim(ctn_prepare_args *a, ctn__prim *p,
                          ctn_status (*run)(const ctn_run_args *a))
{
    a->priv = p;
    a->priv_free = ctn__prim_free;
    a->scratch = ctn__prim_scratch(p);
    a->kernel = ctn__prim_name(p);
    a->priv_bytes = ctn__prim_bytes(p);
    a->run = run;
    return CTN_OK;
}
