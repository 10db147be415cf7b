/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN primitives with one source and one destination: reorder, eltwise, softmax.
 */
#include "engine/dnnl.h"

static const int from_to[2] = {DNNL_ARG_FROM, DNNL_ARG_TO}; /* equal to SRC and DST */

ctn_status ctn__prim_reorder(ctn__prim **out, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst)
{
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[2] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[0], src));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[1], dst));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, CTN__ELT_NONE, 0));
    CTN__DNNL(st, done, "reorder",
              dnnl_reorder_primitive_desc_create(&pd, md[0], e->engine, md[1], e->engine, attr));
    st = ctn__prim_make(out, e, pd, 2, from_to, (const_dnnl_memory_desc_t *)md, "reorder");
done:
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 2; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}

ctn_status ctn__prim_eltwise(ctn__prim **out, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst, ctn__elt f, float alpha)
{
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[2] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[0], src));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[1], dst));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, CTN__ELT_NONE, 0));
    CTN__DNNL(st, done, "eltwise",
              dnnl_eltwise_forward_primitive_desc_create(&pd, e->engine, dnnl_forward_inference,
                                                         ctn__dnnl_alg(f), md[0], md[1], alpha, 0,
                                                         attr));
    st = ctn__prim_make(out, e, pd, 2, from_to, (const_dnnl_memory_desc_t *)md, "eltwise");
done:
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 2; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}

ctn_status ctn__prim_softmax(ctn__prim **out, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst, int axis, bool log)
{
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[2] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[0], src));
    CTN_TRY_GOTO(st, done, ctn__dnnl_desc(&md[1], dst));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, CTN__ELT_NONE, 0));
    CTN__DNNL(st, done, "softmax",
              dnnl_softmax_forward_primitive_desc_create(&pd, e->engine, dnnl_forward_inference,
                                                         log ? dnnl_softmax_log
                                                             : dnnl_softmax_accurate,
                                                         md[0], md[1], axis, attr));
    st = ctn__prim_make(out, e, pd, 2, from_to, (const_dnnl_memory_desc_t *)md, "softmax");
done:
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 2; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}
