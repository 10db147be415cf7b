/* SPDX-License-Identifier: Apache-2.0
 *
 * diagonal: (...,R,C) -> (...,n), the elements x[...,i,i + offset]; a negative offset counts rows
 * instead. diag_embed puts a diagonal into matrices of zeros. Each is the gradient of the other.
 */
#include "ops/common/along.h"

enum { OFFSET, ROWS, COLUMNS, NATTR }; /* diagonal has the offset only */
static const char *const attr_names[] = {"offset", "rows", "columns"};

/* Row and column of the first element, and the length. Returns false if there is none. */
static bool place(int64_t R, int64_t C, int64_t offset, int64_t *r, int64_t *c, int64_t *n)
{
    *r = offset < 0 ? -offset : 0;
    *c = offset > 0 ? offset : 0;
    *n = R - *r < C - *c ? R - *r : C - *c;
    return *n >= 0;
}

/* d, which is (...,R,C), becomes its diagonal; returns the offset of the first element. */
static int64_t along(ctn_desc *d, int64_t offset)
{
    const int i = d->ndim - 2, j = d->ndim - 1;
    int64_t r, c, n;
    place(d->dim[i], d->dim[j], offset, &r, &c, &n);
    const int64_t first = r * d->stride[i] + c * d->stride[j];
    d->ndim--;
    d->dim[i] = n;
    d->stride[i] += d->stride[j];
    return n > 0 ? first : 0;
}

static ctn_status diagonal_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    const int64_t offset = a->attr[OFFSET];
    int64_t r, c, n;
    char t[128];
    if (x->ndim < 2 || offset == INT64_MIN ||
        !place(x->dim[x->ndim - 2], x->dim[x->ndim - 1], offset, &r, &c, &n))
        return ctn_fail(CTN_ESHAPE, "diagonal: x is %s, which has no diagonal with offset %lld",
                        ctn__shape_text(x, t, sizeof t), (long long)offset);
    a->out[0] = *x;
    a->out[0].ndim = x->ndim - 1;
    a->out[0].dim[x->ndim - 2] = n;
    return CTN_OK;
}

static ctn_status diagonal_run(const ctn_run_args *a)
{
    ctn_desc from = a->din[0];
    const int64_t first = along(&from, a->attr[OFFSET]);
    ctn__copy_view(a->out[0], &a->dout[0],
                   (const char *)a->in[0] + first * (int64_t)ctn_dtype_size(from.dtype), &from);
    return CTN_OK;
}

static ctn_status diagonal_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    const int64_t attr[NATTR] = {a->attr[OFFSET], x->dim[x->ndim - 2], x->dim[x->ndim - 1]};
    return ctn__grad_to(a, 0,
                        ctn__apply1(a->at, NULL, &ctn__op_diag_embed, 1, a->gout, NATTR, attr, 0,
                                    NULL));
}

ctn_op ctn__op_diagonal = {
    .struct_size = sizeof(ctn_op),
    .name = "diagonal",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .low_in = CTN_OPERAND(0),
    .low_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = diagonal_infer,
    .grad = diagonal_grad,
    .run = diagonal_run,
};

static ctn_status diag_embed_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int64_t dims[CTN_MAX_DIMS + 1];
    for (int i = 0; i < x->ndim - 1; i++) dims[i] = x->dim[i];
    dims[x->ndim - 1] = a->attr[ROWS];
    dims[x->ndim] = a->attr[COLUMNS];
    return ctn__desc_set(&a->out[0], a->name, x->dtype, x->ndim + 1, dims);
}

static ctn_status diag_embed_run(const ctn_run_args *a)
{
    ctn_desc to = a->dout[0];
    const int64_t first = along(&to, a->attr[OFFSET]);
    ctn__zero(a->out[0], ctn__bytes(&a->dout[0]), a->env ? a->env->threads : 1);
    ctn__copy_view((char *)a->out[0] + first * (int64_t)ctn_dtype_size(to.dtype), &to, a->in[0],
                   &a->din[0]);
    return CTN_OK;
}

static ctn_status diag_embed_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_diagonal_at(a->at, a->gout[0], a->attr[OFFSET]));
}

ctn_op ctn__op_diag_embed = {
    .struct_size = sizeof(ctn_op),
    .name = "diag_embed",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .low_in = CTN_OPERAND(0),
    .low_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = diag_embed_infer,
    .grad = diag_embed_grad,
    .run = diag_embed_run,
};

ctn_tensor *ctn_diagonal_at(const char *at, ctn_tensor *x, int64_t offset)
{
    return ctn__apply1(at, NULL, &ctn__op_diagonal, 1, &x, 1, &offset, 0, NULL);
}

ctn_tensor *ctn_diag_embed_at(const char *at, ctn_tensor *x, int64_t offset)
{
    const int64_t most = INT64_C(1) << 40; /* so that the size cannot overflow */
    int64_t attr[NATTR] = {offset};
    char t[128];
    if (x && (x->d.ndim < 1 || offset > most || offset < -most)) {
        ctn_fail(CTN_ESHAPE, "diag_embed: x is %s, the offset is %lld; expected (...,n) (%s)",
                 ctn__shape_text(&x->d, t, sizeof t), (long long)offset, at);
        return NULL;
    }
    if (x) attr[ROWS] = x->d.dim[x->d.ndim - 1] + (offset < 0 ? -offset : offset);
    attr[COLUMNS] = attr[ROWS];
    return ctn__apply1(at, NULL, &ctn__op_diag_embed, 1, &x, NATTR, attr, 0, NULL);
}
