/* SPDX-License-Identifier: Apache-2.0
 *
 * What the communicating ops share: their attributes, how they are recorded and differentiated,
 * checks of their input, and the sum over ranks.
 */
#include "distributed/distributed.h"
#include "ops/ops.h"

const char *const ctn__dist_attr_names[] = {"comm", "rank", "size", "root"};

ctn_status ctn__dist_attr(const char *who, ctn_comm *c, int root, int64_t *attr)
{
    if (!c) return ctn_fail(CTN_EARG, "%s: no communicator", who);
    if (root < 0 || root >= ctn_comm_size(c))
        return ctn_fail(CTN_EARG, "%s: root is %d, but there are %d ranks", who, root,
                        ctn_comm_size(c));
    attr[CTN__DIST_COMM] = (int64_t)(intptr_t)c;
    attr[CTN__DIST_RANK] = ctn_comm_rank(c);
    attr[CTN__DIST_SIZE] = ctn_comm_size(c);
    attr[CTN__DIST_ROOT] = root;
    return CTN_OK;
}

ctn_tensor *ctn__dist_apply(const char *at, ctn_op *op, ctn_comm *c, ctn_tensor *x, int root)
{
    int64_t attr[CTN__DIST_NATTR];
    if (ctn__dist_attr(op->name, c, root, attr) < 0) return NULL;
    return ctn__apply1(at, NULL, op, 1, &x, CTN__DIST_NATTR, attr, 0, NULL);
}

ctn_status ctn__dist_grad(const ctn_grad_args *a, ctn_op *op)
{
    return ctn__grad_to(a, 0,
                        ctn__dist_apply(a->at, op, ctn__dist_comm(a->attr), a->gout[0],
                                        (int)a->attr[CTN__DIST_ROOT]));
}

ctn_status ctn__dist_same(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    return CTN_OK;
}

ctn_status ctn__dist_summable(const ctn_infer_args *a)
{
    if (a->in[0]->dtype == CTN_F32 || a->in[0]->dtype == CTN_F64) return CTN_OK;
    return ctn_fail(CTN_EDTYPE, "%s: x is %s, expected f32 or f64", a->name,
                    ctn_dtype_name(a->in[0]->dtype));
}

ctn_status ctn__dist_same_sum(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_summable(a));
    return ctn__dist_same(a);
}

ctn_status ctn__dist_rows(const ctn_infer_args *a)
{
    if (a->in[0]->ndim > 0) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "%s: x is (), expected (N,...)", a->name);
}

ctn_status ctn__dist_parts(const ctn_infer_args *a)
{
    const int64_t size = a->attr[CTN__DIST_SIZE];
    char t[128];
    CTN_TRY(ctn__dist_rows(a));
    if (a->in[0]->dim[0] % size == 0) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "%s: x is %s, its length is not a multiple of %lld ranks", a->name,
                    ctn__shape_text(a->in[0], t, sizeof t), (long long)size);
}

ctn_status ctn__dist_one_part(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_parts(a));
    a->out[0] = *a->in[0];
    a->out[0].dim[0] /= a->attr[CTN__DIST_SIZE];
    return CTN_OK;
}

ctn_status ctn__dist_all_parts(ctn_infer_args *a)
{
    CTN_TRY(ctn__dist_rows(a));
    a->out[0] = *a->in[0];
    a->out[0].dim[0] *= a->attr[CTN__DIST_SIZE];
    return CTN_OK;
}

void ctn__dist_copy(const ctn_run_args *a)
{
    if (a->out[0] != a->in[0]) memcpy(a->out[0], a->in[0], ctn__bytes(&a->dout[0]));
}

ctn_status ctn__dist_sum_prepare(ctn_prepare_args *a)
{
    a->scratch = ctn__bytes(&a->dout[0]);
    return CTN_OK;
}

/* Not part of the sequence of buckets: when this sum starts depends on the plan, and ranks may run
 * different plans. */
ctn_status ctn__dist_sum(const ctn_run_args *a)
{
    const ctn_desc *d = &a->dout[0];
    ctn__dist_copy(a);
    return ctn__dist_ran(a, ctn__comm_sum(ctn__dist_comm(a->attr), a->out[0], ctn__count(d),
                                          d->dtype, a->scratch));
}
