/* SPDX-License-Identifier: Apache-2.0
 *
 * put_rows: x (N,...,M,E) with rows first[n] to first[n] + T - 1 of sample n replaced by those of y
 * (N,...,T,E). If the result is assigned to the variable that x is, and nothing else reads x, the
 * plan writes the rows into the variable and copies nothing (CTN_OP_UPDATE).
 */
#include "ops/common/along.h"

static ctn_status put_rows_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *y = a->in[1], *first = a->in[2];
    char tx[128], ty[128], tf[128];
    CTN_TRY(ctn__infer_index(a, first));
    bool fits = x->ndim >= 3 && x->ndim == y->ndim && first->ndim == 1 &&
                first->dim[0] == x->dim[0] && x->dtype == y->dtype;
    for (int i = 0; fits && i < x->ndim; i++)
        fits = i == x->ndim - 2 ? y->dim[i] <= x->dim[i] : y->dim[i] == x->dim[i];
    if (!fits)
        return ctn_fail(CTN_ESHAPE,
                        "put_rows: x is %s %s, y is %s %s, first is %s; expected (N,...,M,E), "
                        "(N,...,T,E) of the same type with T at most M, and (N)",
                        ctn_dtype_name(x->dtype), ctn__shape_text(x, tx, sizeof tx),
                        ctn_dtype_name(y->dtype), ctn__shape_text(y, ty, sizeof ty),
                        ctn__shape_text(first, tf, sizeof tf));
    a->out[0] = *x;
    return CTN_OK;
}

static ctn_status put_rows_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0], *y = &a->din[1];
    const int64_t M = x->dim[x->ndim - 2], T = y->dim[x->ndim - 2], N = x->dim[0];
    const size_t row = (size_t)x->dim[x->ndim - 1] * ctn_dtype_size(x->dtype);
    const int64_t parts = N * M > 0 && row > 0 ? (int64_t)(ctn__bytes(x) / row) / N / M : 0;
    char *out = a->out[0];
    const char *from = a->in[1];
    CTN_TRY(ctn__index_check("put_rows", a->in[2], &a->din[2], M - T + 1));
    if (a->out[0] != a->in[0]) memcpy(out, a->in[0], ctn__bytes(x));
    for (int64_t n = 0; n < N; n++) {
        const int64_t first = ctn__index_get(a->in[2], a->din[2].dtype, n);
        for (int64_t p = n * parts; p < (n + 1) * parts; p++)
            memcpy(out + (size_t)(p * M + first) * row, from + (size_t)(p * T) * row,
                   (size_t)T * row);
    }
    return CTN_OK;
}

static ctn_status put_rows_grad(const ctn_grad_args *a)
{
    return ctn_fail(CTN_EGRAD, "put_rows has no gradient; call ctn_detach on its operands (%s)",
                    a->at);
}

ctn_op ctn__op_put_rows = {
    .struct_size = sizeof(ctn_op),
    .name = "put_rows",
    .nin = 3,
    .nout = 1,
    .flags = CTN_OP_UPDATE,
    .order = 1,
    .inplace = CTN_OPERAND(0),
    .infer = put_rows_infer,
    .grad = put_rows_grad,
    .run = put_rows_run,
};

ctn_tensor *ctn_put_rows_at(const char *at, ctn_tensor *x, ctn_tensor *y, ctn_tensor *first)
{
    ctn_tensor *in[3] = {x, y, first};
    return ctn__apply1(at, NULL, &ctn__op_put_rows, 3, in, 0, NULL, 0, NULL);
}
