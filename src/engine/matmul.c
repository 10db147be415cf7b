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

ctn_status ctn__prim_matmul(ctn__prim **out, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                            const ctn_desc *bias, const ctn_desc *c, ctn__elt act, float alpha)
{
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[4] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    int nd = c->ndim;
    ctn_desc wa = widen(a, nd), wb = widen(b, nd);
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[0], &wa));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[1], &wb));
    if (bias) {
        ctn_desc wbias = widen(bias, nd);
        CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[2], &wbias));
    }
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[3], c));
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
