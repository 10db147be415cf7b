/* SPDX-License-Identifier: Apache-2.0
 *
 * det: the determinant of a (...,n,n), the product of the pivots of LU. Gradient: ga = gy y a^-T.
 */
#include "ops/common/linalg.h"

static ctn_status det_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__square_infer(a));
    a->out[0] = *a->in[0];
    a->out[0].ndim -= 2;
    return CTN_OK;
}

static bool det_one(const ctn_run_args *a, const ctn__small *m, double *second)
{
    (void)a, (void)second;
    *m->b = ctn__lu(m->a, m->n, m->pivot);
    for (int64_t i = 0; i < m->n; i++) *m->b *= m->a[i * m->n + i];
    return true;
}

static ctn_status det_prepare(ctn_prepare_args *a)
{
    return ctn__small_prepare(a, 1);
}

static ctn_status det_run(const ctn_run_args *a)
{
    ctn__small_run(a, 1, 1, det_one);
    return CTN_OK;
}

static ctn_status det_grad(const ctn_grad_args *a)
{
    ctn_tensor *g = ctn_mul_at(a->at, a->gout[0], a->out[0]);
    g = ctn_unsqueeze_at(a->at, ctn_unsqueeze_at(a->at, g, -1), -1);
    ctn_tensor *inverse = ctn__swap_last(a->at, ctn_inverse_at(a->at, a->in[0]));
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, g, inverse));
}

ctn_op ctn__op_det = {
    .struct_size = sizeof(ctn_op),
    .name = "det",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .infer = det_infer,
    .grad = det_grad,
    .prepare = det_prepare,
    .run = det_run,
};

ctn_tensor *ctn_det_at(const char *at, ctn_tensor *a)
{
    return ctn__unary(at, &ctn__op_det, a);
}
