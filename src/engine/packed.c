/* SPDX-License-Identifier: Apache-2.0
 *
 * Products by oneDNN with one matrix that is used many times, such as the weights of a recurrent
 * layer. The matrix is laid out as the kernel prefers, once, so the single products pack nothing.
 */
#include "engine/blas.h"

/* Gives w the layout of md, which describes W or its transpose. */
static ctn_status lay_out(ctn__engine *e, ctn_desc *w, bool trans, const_dnnl_memory_desc_t md)
{
    static const int swap[2] = {1, 0};
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t own = NULL, plain = NULL;
    ctn__plain(w);
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&plain, e, w));
    CTN__DNNL(st, done, "memory descriptor",
              trans ? dnnl_memory_desc_permute_axes(&own, md, swap)
                    : dnnl_memory_desc_clone(&own, md));
    if (!dnnl_memory_desc_equal(plain, own)) st = ctn__dnnl_layout(e, w, own);
done:
    if (own) dnnl_memory_desc_destroy(own);
    if (plain) dnnl_memory_desc_destroy(plain);
    return st;
}

static ctn_status by_blas(ctn__prim **out, ctn__engine *e, const ctn_desc *a, ctn_desc *w,
                          bool trans, const ctn_desc *c)
{
    ctn__plain(w);
    ctn_desc b = *w;
    if (trans)
        for (int i = 0; i < 2; i++) {
            b.dim[i] = w->dim[1 - i];
            b.stride[i] = w->stride[1 - i];
        }
    return ctn__blas_matmul(out, e, a, &b, NULL, c, CTN__ELT_NONE);
}

ctn_status ctn__prim_packed(ctn__prim **out, ctn__engine *e, const ctn_desc *a, ctn_desc *w,
                            bool trans, const ctn_desc *c)
{
    static const int args[4] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS, DNNL_ARG_DST};
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t ma = NULL, mw = NULL, mc = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    const dnnl_dims_t dims = {a->dim[1], c->dim[1]};
    *out = NULL;
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&ma, e, a));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&mc, e, c));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, CTN__ELT_NONE));
    CTN__DNNL(st, done, "memory descriptor",
              dnnl_memory_desc_create_with_tag(&mw, 2, dims, ctn__dnnl_type(w->dtype),
                                               dnnl_format_tag_any));
    CTN__DNNL(st, done, "packed product",
              dnnl_matmul_primitive_desc_create(&pd, e->engine, ma, mw, NULL, mc, attr));
    CTN__DNNL(st, done, "packed product", ctn__dnnl_settle(pd));
    if (ctn__dnnl_is_loops(pd) && ctn__blas_name()) {
        CTN_TRY_GOTO(st, done, by_blas(out, e, a, w, trans, c));
        if (*out) goto done;
    }
    const_dnnl_memory_desc_t wanted = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    CTN_TRY_GOTO(st, done, lay_out(e, w, trans, wanted));
    const const_dnnl_memory_desc_t mds[4] = {ma, wanted, NULL, mc};
    st = ctn__prim_make(out, e, pd, 4, args, mds, "packed product");
    pd = NULL; /* ctn__prim_make owns it, even if it failed */
done:
    if (pd) dnnl_primitive_desc_destroy(pd);
    if (attr) dnnl_primitive_attr_destroy(attr);
    if (ma) dnnl_memory_desc_destroy(ma);
    if (mw) dnnl_memory_desc_destroy(mw);
    if (mc) dnnl_memory_desc_destroy(mc);
    return st;
}
