/* SPDX-License-Identifier: Apache-2.0
 *
 * inverse_sqrt: the symmetric y with y y a = 1, for a symmetric positive definite a = sum over k of
 * w_k v_k v_k^T: y = sum of w_k^(-1/2) v_k v_k^T. Gradient: from dy y + y dy = -y^2 da y^2 follows
 * ga = -y^2 x y^2, where x is the solution of y x + x y = (gy + gy^T) / 2. Unlike gradients of
 * eigenvectors, it does not mind equal eigenvalues.
 */
#include "ops/common/linalg.h"

#include <math.h>

static ctn_status inverse_sqrt_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__square_infer(a));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static bool inverse_sqrt_one(const ctn_run_args *a, const ctn__small *m, double *second)
{
    (void)a, (void)second;
    const int64_t n = m->n;
    void *room = m->pivot;
    double *w = room;
    memset(m->b, 0, (size_t)(n * n) * sizeof *m->b);
    if (!ctn__eigen(m->a, n, w)) return false;
    for (int64_t k = 0; k < n; k++) {
        const double *v = m->a + k * n, f = 1 / sqrt(w[k]);
        for (int64_t i = 0; i < n; i++) {
            double *y = m->b + i * n, c = f * v[i];
#pragma omp simd
            for (int64_t j = 0; j < n; j++) y[j] += c * v[j];
        }
    }
    return true;
}

static ctn_status inverse_sqrt_run(const ctn_run_args *a)
{
    return ctn__definite_run(a, "inverse_sqrt", inverse_sqrt_one);
}

static ctn_status inverse_sqrt_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *y = a->out[0], *g = a->gout[0], *square = ctn_matmul_at(at, y, y, 0, 0);
    g = ctn_scale_at(at, ctn_add_at(at, g, ctn__swap_last(at, g)), -0.5);
    ctn_tensor *x = ctn_lyapunov_at(at, y, g);
    x = ctn_matmul_at(at, ctn_matmul_at(at, square, x, 0, 0), square, 0, 0);
    return ctn__grad_to(a, 0, x);
}

ctn_op ctn__op_inverse_sqrt = {
    .struct_size = sizeof(ctn_op),
    .name = "inverse_sqrt",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .infer = inverse_sqrt_infer,
    .grad = inverse_sqrt_grad,
    .prepare = ctn__square_prepare,
    .run = inverse_sqrt_run,
};

ctn_tensor *ctn_inverse_sqrt_at(const char *at, ctn_tensor *a)
{
    return ctn__unary(at, &ctn__op_inverse_sqrt, a);
}
