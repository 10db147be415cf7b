/* SPDX-License-Identifier: Apache-2.0
 *
 * embedding: rows of a table (V,D) selected by indices (...) -> (...,D). Gradient:
 * embedding_grad, which adds the rows of gy to zeros at the indices; its gradient is embedding
 * again.
 *
 * The result of embedding_grad does not depend on the thread count: each row of the table
 * belongs to one thread, which adds in the order of the indices.
 */
#include <omp.h>

#include "ops/common/along.h"

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
    const ctn_desc *table = &a->din[0], *index = &a->din[1];
    const int64_t n = ctn__count(index), D = table->dim[1];
    const int64_t row = D * (int64_t)ctn_dtype_size(table->dtype);
    CTN_TRY(ctn__index_check("embedding", a->in[1], index, table->dim[0]));
#pragma omp parallel for schedule(static) if (n * D > CTN__GRAIN)
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)a->out[0] + i * row,
               (const char *)a->in[0] + ctn__index_get(a->in[1], index->dtype, i) * row,
               (size_t)row);
    return CTN_OK;
}

static ctn_status embedding_grad_of(const ctn_grad_args *a)
{
    ctn_tensor *in[2] = {a->in[1], a->gout[0]};
    ctn_tensor *g =
        ctn__apply1(a->at, NULL, &ctn__op_embedding_grad, 2, in, 1, &a->in[0]->d.dim[0], 0, NULL);
    return ctn__grad_to(a, 0, g);
}

ctn_op ctn__op_embedding = {
    .struct_size = sizeof(ctn_op),
    .name = "embedding",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .infer = embedding_infer,
    .grad = embedding_grad_of,
    .run = embedding_run,
};

/* ---- embedding_grad: index (...), gy (...,D) -> (V,D) ---------------------------------------- */

/* A fused op (plan/fuse/row_gradient.c) has a third input (V,D), to which the rows are added,
 * possibly in place. */

enum { ROWS };
static const char *const attr_names[] = {"rows"};

static ctn_status embedding_grad_infer(ctn_infer_args *a)
{
    const ctn_desc *g = a->in[1];
    CTN_TRY(ctn__infer_arith(a, g));
    return ctn__desc_set(&a->out[0], a->name, g->dtype, 2,
                         (const int64_t[]){a->attr[ROWS], g->dim[g->ndim - 1]});
}

#define DEFINE_ADD(T)                                                  \
    static void add_##T(T *restrict y, const T *restrict g, int64_t n) \
    {                                                                  \
        for (int64_t i = 0; i < n; i++) y[i] += g[i];                  \
    }
DEFINE_ADD(float)
DEFINE_ADD(double)

/* Rows are dealt out to the threads in turn, because frequent rows tend to be adjacent. */
static void add_own_rows(const ctn_run_args *a, int64_t me, int64_t team)
{
    const ctn_desc *index = &a->din[0], *g = &a->din[1];
    const int64_t n = ctn__count(index), V = a->attr[ROWS], D = g->dim[g->ndim - 1];
    const int64_t es = (int64_t)ctn_dtype_size(g->dtype);
    char *y = a->out[0];
    const char *sum = a->nin > 2 ? a->in[2] : NULL;
    for (int64_t v = me; v < V && !sum; v += team) memset(y + v * D * es, 0, (size_t)(D * es));
    for (int64_t v = me; v < V && sum && sum != y; v += team)
        memcpy(y + v * D * es, sum + v * D * es, (size_t)(D * es));
    for (int64_t i = 0; i < n; i++) {
        int64_t v = ctn__index_get(a->in[0], index->dtype, i);
        if (v % team != me) continue;
        if (g->dtype == CTN_F32)
            add_float((float *)a->out[0] + v * D, (const float *)a->in[1] + i * D, D);
        else add_double((double *)a->out[0] + v * D, (const double *)a->in[1] + i * D, D);
    }
}

static ctn_status embedding_grad_run(const ctn_run_args *a)
{
    CTN_TRY(ctn__index_check("embedding", a->in[0], &a->din[0], a->attr[ROWS]));
#pragma omp parallel if (ctn__count(&a->din[1]) + ctn__count(&a->dout[0]) > CTN__GRAIN)
    add_own_rows(a, omp_get_thread_num(), omp_get_num_threads());
    return CTN_OK;
}

static ctn_status embedding_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[1]) return CTN_OK;
    return ctn__grad_to(a, 1, ctn_embedding_at(a->at, a->gout[0], a->in[0]));
}

ctn_op ctn__op_embedding_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "embedding_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(2),
    .attr_names = attr_names,
    .infer = embedding_grad_infer,
    .grad = embedding_grad_grad,
    .run = embedding_grad_run,
};

ctn_tensor *ctn_embedding_at(const char *at, ctn_tensor *table, ctn_tensor *index)
{
    ctn_tensor *in[2] = {table, index};
    return ctn__apply1(at, NULL, &ctn__op_embedding, 2, in, 0, NULL, 0, NULL);
}
