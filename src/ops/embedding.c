/* SPDX-License-Identifier: Apache-2.0
 *
 * embedding: rows of a table (V,D) selected by indices (...) -> (...,D). Gradient: the rows of gy
 * with the same index are added up (segment_sum).
 */
#include "ops/common/rows.h"

static ctn_status embedding_infer(ctn_infer_args *a)
{
    const ctn_desc *table = a->in[0], *index = a->in[1];
    int64_t dims[CTN_MAX_DIMS + 1];
    char t[128];
    CTN_TRY(ctn__infer_index(a, index));
    if (table->ndim != 2)
        return ctn_fail(CTN_ESHAPE, "embedding: the table is %s, expected (rows, width)",
                        ctn__shape_text(table, t, sizeof t));
    for (int i = 0; i < index->ndim; i++) dims[i] = index->dim[i];
    dims[index->ndim] = table->dim[1];
    return ctn__desc_set(&a->out[0], a->name, table->dtype, index->ndim + 1, dims);
}

static ctn_status embedding_run(const ctn_run_args *a)
{
    return ctn__select_run("embedding", a, 0);
}

static ctn_status embedding_grad(const ctn_grad_args *a)
{
    const ctn_desc *table = &a->in[0]->d, *index = &a->in[1]->d;
    const int64_t n = ctn__count(index);
    ctn_tensor *ids = index->ndim == 1 ? a->in[1] : ctn_reshape_at(a->at, a->in[1], 1, &n);
    ctn_tensor *g = ctn_reshape_at(a->at, a->gout[0], 2, (const int64_t[]){n, table->dim[1]});
    return ctn__grad_to(a, 0, ctn_segment_sum_at(a->at, g, ids, table->dim[0]));
}

ctn_op ctn__op_embedding = {
    .struct_size = sizeof(ctn_op),
    .name = "embedding",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .infer = embedding_infer,
    .grad = embedding_grad,
    .run = embedding_run,
};

ctn_tensor *ctn_embedding_at(const char *at, ctn_tensor *table, ctn_tensor *index)
{
    ctn_tensor *in[2] = {table, index};
    return ctn__apply1(at, NULL, &ctn__op_embedding, 2, in, 0, NULL, 0, NULL);
}
