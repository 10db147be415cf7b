/* SPDX-License-Identifier: Apache-2.0
 *
 * lyapunov: x with a x + x a = b, for a symmetric positive definite a. With the eigenvectors of a
 * as the rows of R and its eigenvalues w, element (i,j) of R x R^T is that of R b R^T divided by
 * w_i + w_j. Gradients, with u the solution of a u + u a = gx:
 *   gb = u,  ga = the symmetric part of -(u x^T + x^T u)
 */
#include "ops/common/linalg.h"

static ctn_status lyapunov_infer(ctn_infer_args *a)
{
    char ta[128], tb[128];
    CTN_TRY(ctn__solve_infer(a));
    if (ctn__same_shape(a->in[0], a->in[1])) return CTN_OK;
    return ctn_fail(CTN_ESHAPE, "lyapunov: a is %s, b is %s; expected the same shape",
                    ctn__shape_text(a->in[0], ta, sizeof ta),
                    ctn__shape_text(a->in[1], tb, sizeof tb));
}

/* b := b r; row has room for n elements. */
static void times(double *b, const double *r, int64_t n, double *row)
{
    for (int64_t i = 0; i < n; i++) {
        double *y = b + i * n;
        memset(row, 0, (size_t)n * sizeof *row);
        for (int64_t k = 0; k < n; k++) {
            const double c = y[k], *x = r + k * n;
#pragma omp simd
            for (int64_t j = 0; j < n; j++) row[j] += c * x[j];
        }
        memcpy(y, row, (size_t)n * sizeof *row);
    }
}

static void transpose(double *a, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++) {
            const double t = a[i * n + j];
            a[i * n + j] = a[j * n + i];
            a[j * n + i] = t;
        }
}

static bool lyapunov_one(const ctn_run_args *a, const ctn__small *m, double *second)
{
    (void)a, (void)second;
    const int64_t n = m->n;
    void *room = m->pivot;
    double *w = room, *row = w + n;
    if (!ctn__eigen(m->a, n, w)) return false;
    transpose(m->a, n);
    times(m->b, m->a, n, row); /* b R^T */
    transpose(m->b, n);
    times(m->b, m->a, n, row); /* R b^T R^T */
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) m->b[i * n + j] /= w[i] + w[j];
    transpose(m->a, n);
    times(m->b, m->a, n, row);
    transpose(m->b, n);
    times(m->b, m->a, n, row);
    return true;
}

static ctn_status lyapunov_run(const ctn_run_args *a)
{
    return ctn__definite_run(a, "lyapunov", lyapunov_one);
}

static ctn_status lyapunov_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->out[0], *u = ctn_lyapunov_at(at, a->in[0], a->gout[0]);
    if (a->need[1]) CTN_TRY(ctn__grad_to(a, 1, u));
    if (!a->need[0]) return CTN_OK;
    ctn_tensor *g = ctn_add_at(at, ctn_matmul_at(at, u, x, 0, 1), ctn_matmul_at(at, x, u, 1, 0));
    g = ctn_add_at(at, g, ctn__swap_last(at, g));
    return ctn__grad_to(a, 0, ctn_scale_at(at, g, -0.5));
}

ctn_op ctn__op_lyapunov = {
    .struct_size = sizeof(ctn_op),
    .name = "lyapunov",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(1),
    .infer = lyapunov_infer,
    .grad = lyapunov_grad,
    .prepare = ctn__square_prepare,
    .run = lyapunov_run,
};

ctn_tensor *ctn_lyapunov_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    ctn_tensor *in[2] = {a, b};
    return ctn__apply1(at, NULL, &ctn__op_lyapunov, 2, in, 0, NULL, 0, NULL);
}
