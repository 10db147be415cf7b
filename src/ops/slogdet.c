/* SPDX-License-Identifier: Apache-2.0
 *
 * slogdet: the logarithm of |det a|, the sum of those of the pivots of LU, and the sign of det a.
 * Gradient of the logarithm: ga = gy a^-T; the sign has none.
 */
#include "ops/common/linalg.h"

#include <math.h>

enum { LOGABS, SIGN, NOUT };

static ctn_status slogdet_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__square_infer(a));
    for (int i = 0; i < NOUT; i++) {
        a->out[i] = *a->in[0];
        a->out[i].ndim -= 2;
    }
    return CTN_OK;
}

static bool slogdet_one(const ctn_run_args *a, const ctn__small *m, double *sign)
{
    (void)a;
    *m->b = 0;
    *sign = ctn__lu(m->a, m->n, m->pivot);
    for (int64_t i = 0; i < m->n; i++) {
        const double p = m->a[i * m->n + i];
        *m->b += log(fabs(p));
        *sign *= p > 0 ? 1 : p < 0 ? -1 : p;
    }
    return true;
}

static ctn_status slogdet_prepare(ctn_prepare_args *a)
{
    return ctn__small_prepare(a, 1);
}

static ctn_status slogdet_run(const ctn_run_args *a)
{
    ctn__small_run(a, 1, 1, slogdet_one);
    return CTN_OK;
}

static ctn_status slogdet_grad(const ctn_grad_args *a)
{
    if (!a->gout[LOGABS]) return CTN_OK;
    ctn_tensor *g = ctn_unsqueeze_at(a->at, ctn_unsqueeze_at(a->at, a->gout[LOGABS], -1), -1);
    ctn_tensor *inverse = ctn__swap_last(a->at, ctn_inverse_at(a->at, a->in[0]));
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, g, inverse));
}

ctn_op ctn__op_slogdet = {
    .struct_size = sizeof(ctn_op),
    .name = "slogdet",
    .nin = 1,
    .nout = NOUT,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .infer = slogdet_infer,
    .grad = slogdet_grad,
    .prepare = slogdet_prepare,
    .run = slogdet_run,
};

ctn_status ctn_slogdet_at(const char *at, ctn_tensor *a, ctn_tensor **sign, ctn_tensor **logabs)
{
    ctn_tensor *out[NOUT] = {NULL};
    const ctn_status st = ctn_apply_at(at, NULL, &ctn__op_slogdet, 1, &a, NULL, out);
    if (sign) *sign = out[SIGN];
    if (logabs) *logabs = out[LOGABS];
    return st;
}
