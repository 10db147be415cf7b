/* SPDX-License-Identifier: Apache-2.0
 *
 * one_hot: indices (...) -> (..., classes), 1 at the index and 0 elsewhere. No gradient.
 */
#include "ops/common/along.h"

enum { CLASSES, DTYPE, NATTR };
static const char *const attr_names[] = {"classes", "dtype"};

static ctn_status one_hot_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int64_t dims[CTN_MAX_DIMS + 1];
    CTN_TRY(ctn__infer_index(a, x));
    for (int i = 0; i < x->ndim; i++) dims[i] = x->dim[i];
    dims[x->ndim] = a->attr[CLASSES];
    return ctn__desc_set(&a->out[0], a->name, (ctn_dtype)a->attr[DTYPE], x->ndim + 1, dims);
}

static ctn_status one_hot_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    int64_t C = a->attr[CLASSES], rows = ctn__count(x);
    size_t es = ctn_dtype_size(a->dout[0].dtype);
    _Alignas(8) char one[8];
    CTN_TRY(ctn__index_check("one_hot", a->in[0], x, C));
    ctn__elem_set(one, a->dout[0].dtype, 0, 1);
#pragma omp parallel for schedule(static) if (rows * C > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        char *y = (char *)a->out[0] + (size_t)(r * C) * es;
        memset(y, 0, (size_t)C * es); /* all-zero bytes are 0 in every type */
        memcpy(y + (size_t)ctn__index_get(a->in[0], x->dtype, r) * es, one, es);
    }
    return CTN_OK;
}

ctn_op ctn__op_one_hot = {
    .struct_size = sizeof(ctn_op),
    .name = "one_hot",
    .nin = 1,
    .nout = 1,
    .order = 0,
    .attr_names = attr_names,
    .infer = one_hot_infer,
    .run = one_hot_run,
};

ctn_tensor *ctn_one_hot_at(const char *at, ctn_tensor *index, int64_t classes, ctn_dtype dtype)
{
    int64_t attr[NATTR] = {classes, dtype};
    return ctn__apply1(at, NULL, &ctn__op_one_hot, 1, &index, NATTR, attr, 0, NULL);
}
