/* SPDX-License-Identifier: Apache-2.0
 *
 * Shape rule and dimension bookkeeping of reductions over axes, called by sum, mean, max, min and
 * prod.
 */
#include "ops/common/reduce.h"

static unsigned axis_mask(const int64_t *attr, int nattr, int ndim)
{
    unsigned m = 0;
    for (int i = CTN__R_AXIS0; i < nattr; i++) m |= 1u << ctn__axis(ndim, attr[i]);
    return nattr > CTN__R_AXIS0 ? m : (1u << ndim) - 1;
}

ctn_status ctn__reduce_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int axis;
    CTN_TRY(ctn__infer_arith(a, x));
    for (int i = CTN__R_AXIS0; i < a->nattr; i++) CTN_TRY(ctn__infer_axis(a, x, a->attr[i], &axis));
    unsigned m = axis_mask(a->attr, a->nattr, x->ndim);
    a->out[0].dtype = x->dtype;
    a->out[0].ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
        bool gone = m >> i & 1;
        if (!gone || a->attr[CTN__R_KEEP]) a->out[0].dim[a->out[0].ndim++] = gone ? 1 : x->dim[i];
    }
    return CTN_OK;
}

void ctn__reduce_in_order(ctn_prepare_args *a)
{
    if (a->din[0].dtype == CTN_F64) ctn__plain(&a->din[0]);
}

static void add_dim(ctn_desc *d, int64_t dim, int64_t stride)
{
    int k = d->ndim - 1;
    if (k >= 0 && d->stride[k] == dim * stride) {
        d->dim[k] *= dim;
        d->stride[k] = stride;
        return;
    }
    d->dim[d->ndim] = dim;
    d->stride[d->ndim++] = stride;
}

void ctn__reduce_split(ctn__reduce *s, const ctn_desc *x, const int64_t *attr, int nattr)
{
    unsigned m = axis_mask(attr, nattr, x->ndim);
    *s = (ctn__reduce){.kept.dtype = x->dtype, .red.dtype = x->dtype};
    int order[CTN_MAX_DIMS];
    ctn__by_stride(x, order);
    for (int i = 0; i < x->ndim; i++) {
        const int k = order[i]; /* reduced ones in memory order, so that they merge */
        if (!(m >> i & 1) && x->dim[i] != 1) add_dim(&s->kept, x->dim[i], x->stride[i]);
        if ((m >> k & 1) && x->dim[k] != 1) add_dim(&s->red, x->dim[k], x->stride[k]);
    }
    if (s->kept.ndim == 0) add_dim(&s->kept, 1, 0);
    if (s->red.ndim == 0) add_dim(&s->red, 1, 0);
    s->n = ctn__count(&s->kept);
    s->r = ctn__count(&s->red);
    s->last = s->red.dim[s->red.ndim - 1];
    s->last_step = s->red.stride[s->red.ndim - 1];
    s->C = s->kept.dim[s->kept.ndim - 1];
    s->outer = s->C > 0 ? s->n / s->C : 0;
    s->columns = s->C > 1 && s->kept.stride[s->kept.ndim - 1] == 1 && s->r > 1 && s->last_step != 1;
}

int64_t ctn__reduce_offset(const ctn_desc *d, int nd, int64_t i)
{
    int64_t off = 0;
    for (int k = nd - 1; k > 0; k--) {
        off += i % d->dim[k] * d->stride[k];
        i /= d->dim[k];
    }
    return nd > 0 ? off + i * d->stride[0] : 0;
}

ctn_tensor *ctn__reduce_kept(const ctn_grad_args *a, ctn_tensor *g)
{
    const ctn_desc *x = &a->in[0]->d;
    unsigned m = axis_mask(a->attr, a->nattr, x->ndim);
    int64_t dims[CTN_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) dims[i] = m >> i & 1 ? 1 : x->dim[i];
    return ctn_reshape_at(a->at, g, x->ndim, dims);
}

ctn_tensor *ctn__reduce_record(const char *at, ctn_op *op, int64_t kind, ctn_tensor *x, int naxes,
                               const int64_t *axes, int keep)
{
    int64_t attr[CTN__R_AXIS0 + CTN_MAX_DIMS] = {kind, keep != 0};
    if (naxes < 0 || naxes > CTN_MAX_DIMS) {
        ctn_fail(CTN_EARG, "%s: got %d axes, expected 0 to %d (%s)", op->name, naxes, CTN_MAX_DIMS,
                 at);
        return NULL;
    }
    if (naxes > 0) memcpy(attr + CTN__R_AXIS0, axes, (size_t)naxes * sizeof *axes);
    return ctn__apply1(at, NULL, op, 1, &x, CTN__R_AXIS0 + naxes, attr, 0, NULL);
}
