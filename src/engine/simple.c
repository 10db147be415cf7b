/* SPDX-License-Identifier: Apache-2.0
 *
 * oneDNN primitives with one source and one destination: reorder, softmax.
 */
#include "engine/onednn.h"

typedef dnnl_status_t (*make_pd)(dnnl_primitive_desc_t *pd, const ctn__engine *e,
                                 const dnnl_memory_desc_t *md, const_dnnl_primitive_attr_t attr,
                                 int axis);

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

static ctn_status one_to_one(ctn__prim **out, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst, const char *what, make_pd make, int axis)
{
    static const int args[2] = {DNNL_ARG_FROM, DNNL_ARG_TO}; /* equal to SRC and DST */
    ctn_status st = CTN_OK;
    dnnl_memory_desc_t md[2] = {NULL};
    dnnl_primitive_attr_t attr = NULL;
    dnnl_primitive_desc_t pd = NULL;
    *out = NULL;
    CTN_TRY_GOTO(st, done, describe(&md[0], e, src, dst));
    CTN_TRY_GOTO(st, done, describe(&md[1], e, dst, src));
    CTN_TRY_GOTO(st, done, ctn__dnnl_attr(&attr, CTN__ELT_NONE, 0));
    CTN__DNNL(st, done, what, make(&pd, e, md, attr, axis));
    st = ctn__prim_make(out, e, pd, 2, args, (const_dnnl_memory_desc_t *)md, what);
done:
    if (attr) dnnl_primitive_attr_destroy(attr);
    for (int i = 0; i < 2; i++)
        if (md[i]) dnnl_memory_desc_destroy(md[i]);
    return st;
}

static dnnl_status_t make_reorder(dnnl_primitive_desc_t *pd, const ctn__engine *e,
                                  const dnnl_memory_desc_t *md, const_dnnl_primitive_attr_t attr,
                                  int axis)
{
    (void)axis;
    return dnnl_reorder_primitive_desc_create(pd, md[0], e->engine, md[1], e->engine, attr);
}

ctn_status ctn__prim_reorder(ctn__prim **out, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst)
{
    return one_to_one(out, e, src, dst, "reorder", make_reorder, 0);
}

static dnnl_status_t make_softmax(dnnl_primitive_desc_t *pd, const ctn__engine *e,
                                  const dnnl_memory_desc_t *md, const_dnnl_primitive_attr_t attr,
                                  int axis)
{
    return dnnl_softmax_forward_primitive_desc_create(pd, e->engine, dnnl_forward_inference,
                                                      dnnl_softmax_accurate, md[0], md[1], axis,
                                                      attr);
}

ctn_status ctn__prim_softmax(ctn__prim **out, ctn__engine *e, const ctn_desc *src,
                             const ctn_desc *dst, int axis)
{
    return one_to_one(out, e, src, dst, "softmax", make_softmax, axis);
}
