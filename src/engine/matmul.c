/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by oneDNN: C = act(A B + bias) with any strides, so transposes cost nothing. Leading
 * dimensions are batches; oneDNN wants the same number of dimensions everywhere.
 */
#include "engine/dnnl.h"

/* d with `nd` dimensions, ones in front */
static ctn_desc widen(const ctn_desc *d, int nd)
{
    ctn_desc r = *d;
    int add = nd - d->ndim;
    int64_t outer = d->ndim > 0 ? d->dim[0] * d->stride[0] : 1;
    if (outer <= 0) outer = 1;
    r.ndim = nd;
    for (int i = nd - 1; i >= 0; i--) {
        r.dim[i] = i >= add ? d->dim[i - add] : 1;
        r.stride[i] = i >= add ? d->stride[i - add] : outer;
    }
    return r;
}

ctn_status ctn__prim_outer(ctn__prim **out, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                           const ctn_desc *c)
{
    *out = NULL;
    int64_t m = c->dim[0], n = c->dim[1], k = b->dim[0];
    if (a->dtype != CTN_F32 || c->dtype != CTN_F32 || a->stride[0] != 1 || a->stride[1] != m ||
        b->stride[1] != 1 || b->stride[0] != n)
        return CTN_OK;
    static const int args[4] = {DNNL_ARG_DIFF_DST, DNNL_ARG_SRC, 0, DNNL_ARG_DIFF_WEIGHTS};
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[4] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t hint = NULL, pd = NULL;
    const char *name = NULL;
    ctn_desc at = *a;
    at.dim[0] = k;
    at.dim[1] = m;
    ctn__plain(&at);
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[0], e, &at));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[1], e, b));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[3], e, c));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, CTN__ELT_NONE, 0));
    CTN__DNNL(st, done, "inner product",
              dnnl_inner_product_forward_primitive_desc_create(&hint, e->engine,
                                                               dnnl_forward_training, md[1], md[3],
                                                               NULL, md[0], attr));
    CTN__DNNL(st, done, "inner product",
              dnnl_inner_product_backward_weights_primitive_desc_create(&pd, e->engine, md[1],
                                                                        md[3], NULL, md[0], hint,
                                                                        attr));
    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    if (name && strstr(name, "gemm:jit"))
        st = ctn__prim_make(out, e, pd, 4, args, (const_dnnl_memory_desc_t *)md, "inner product");
    else dnnl_primitive_desc_destroy(pd);
done:
    if (hint) dnnl_primitive_desc_destroy(hint);
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 4; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}

ctn_status ctn__prim_matmul(ctn__prim **out, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                            const ctn_desc *bias, const ctn_desc *c, ctn__elt act, float alpha)
{
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[4] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    int nd = c->ndim;
    /* The gradient of a linear layer's weights, its inner dimension the batch. */
    int64_t k = b->dim[b->ndim - 2];
    if (nd == 2 && !bias && act == CTN__ELT_NONE && k >= 16 && c->dim[0] >= 2 * k &&
        c->dim[1] >= 2 * k) {
        CTN_TRY(ctn__prim_outer(out, e, a, b, c));
        if (*out) return CTN_OK;
    }
    ctn_desc wa = widen(a, nd), wb = widen(b, nd);
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[0], e, &wa));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[1], e, &wb));
    if (bias) {
        ctn_desc wbias = widen(bias, nd);
        CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[2], e, &wbias));
    }
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[3], e, c));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, act, alpha));
    CTN__DNNL(st, done, "matmul",
              dnnl_matmul_primitive_desc_create(&pd, e->engine, md[0], md[1], md[2], md[3], attr));
    static const int args[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    st = ctn__prim_make(out, e, pd, 4, args, (const_dnnl_memory_desc_t *)md, "matmul");
done:
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 4; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}
