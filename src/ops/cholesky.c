/* SPDX-License-Identifier: Apache-2.0
 *
 * cholesky: the lower triangular L with L L^T = a, of which the lower triangle is read. Gradient,
 * with P(m) the lower triangle of m and half of its diagonal: s = L^-T P(L^T gL) L^-1,
 * ga = (s + s^T) / 2.
 */
#include "ops/common/linalg.h"

static ctn_status cholesky_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__square_infer(a));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static bool cholesky_one(const ctn_run_args *a, const ctn__small *m, double *second)
{
    (void)a, (void)second;
    void *column = m->pivot; /* the room is as large */
    const bool ok = ctn__cholesky(m->a, m->n, column);
    memcpy(m->b, m->a, (size_t)(m->n * m->n) * sizeof *m->b);
    return ok;
}

static ctn_status cholesky_run(const ctn_run_args *a)
{
    return ctn__definite_run(a, "cholesky", cholesky_one);
}

static ctn_status cholesky_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *L = a->out[0], *m = ctn_matmul_at(at, L, a->gout[0], 1, 0);
    ctn_tensor *p = ctn_add_at(at, ctn_tril_at(at, m, 0), ctn_tril_at(at, m, -1));
    ctn_tensor *s = ctn_solve_triangular_at(at, L, p, 0, 1, 0);
    s = ctn_solve_triangular_at(at, L, ctn__swap_last(at, s), 0, 1, 0);
    s = ctn_add_at(at, s, ctn__swap_last(at, s)); /* p has a factor 2 */
    return ctn__grad_to(a, 0, ctn_scale_at(at, s, 0.25));
}

ctn_op ctn__op_cholesky = {
    .struct_size = sizeof(ctn_op),
    .name = "cholesky",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .infer = cholesky_infer,
    .grad = cholesky_grad,
    .prepare = ctn__square_prepare,
    .run = cholesky_run,
};

ctn_tensor *ctn_cholesky_at(const char *at, ctn_tensor *a)
{
    return ctn__unary(at, &ctn__op_cholesky, a);
}
