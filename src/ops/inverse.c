/* SPDX-License-Identifier: Apache-2.0
 *
 * inverse: y = a^-1 by LU with partial pivoting. Gradient: ga = -y^T gy y^T.
 */
#include "ops/common/linalg.h"

static ctn_status inverse_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__square_infer(a));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static bool inverse_one(const ctn_run_args *a, const ctn__small *m, double *second)
{
    (void)a, (void)second;
    ctn__lu(m->a, m->n, m->pivot);
    ctn__lu_inverse(m->a, m->n, m->pivot, m->b);
    return true;
}

static ctn_status inverse_run(const ctn_run_args *a)
{
    const int64_t n = a->din[0].dim[a->din[0].ndim - 1];
    ctn__small_run(a, n, n, inverse_one);
    return CTN_OK;
}

static ctn_status inverse_grad(const ctn_grad_args *a)
{
    ctn_tensor *left = ctn_matmul_at(a->at, a->out[0], a->gout[0], 1, 0);
    return ctn__grad_to(a, 0, ctn_neg_at(a->at, ctn_matmul_at(a->at, left, a->out[0], 0, 1)));
}

ctn_op ctn__op_inverse = {
    .struct_size = sizeof(ctn_op),
    .name = "inverse",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .infer = inverse_infer,
    .grad = inverse_grad,
    .prepare = ctn__square_prepare,
    .run = inverse_run,
};

ctn_tensor *ctn_inverse_at(const char *at, ctn_tensor *a)
{
    return ctn__unary(at, &ctn__op_inverse, a);
}
