/* SPDX-License-Identifier: Apache-2.0
 *
 * Reorders by oneDNN: a copy in another layout or type.
 */
#include "engine/onednn.h"

/* Describes d, with groups if the layout of the other side has them */
static ctn_status describe(dnnl_memory_desc_t *md, const ctn__engine *e, const ctn_desc *d,
                           const ctn_desc *other)
{
    int nd = d->ndim;
    const dnnl_dims_t *dims = NULL;
    if (other->layout > 0 && d->layout == 0) {
        const_dnnl_memory_desc_t o = e->layouts.at[other->layout - 1];
        dnnl_memory_desc_query(o, dnnl_query_ndims_s32, &nd);
        dnnl_memory_desc_query(o, dnnl_query_dims, (void *)&dims);
    }
    return nd > d->ndim && dims ? ctn__dnnl_grouped(md, d, (*dims)[0]) : ctn__dnnl_desc(md, e, d);
}

ctn_status ctn__prim_reorder(ctn__prim **out, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst)
{
    static const int args[2] = {DNNL_ARG_FROM, DNNL_ARG_TO};
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[2] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    CTN_TRY_GOTO(st, done, describe(&md[0], e, src, dst));
    CTN_TRY_GOTO(st, done, describe(&md[1], e, dst, src));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, CTN__ELT_NONE));
    CTN__DNNL(st, done, "reorder",
              dnnl_reorder_primitive_desc_create(&pd, md[0], e->engine, md[1], e->engine, attr));
    st = ctn__prim_make(out, e, pd, 2, args, (const_dnnl_memory_desc_t *)md, "reorder");
done:
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 2; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}
