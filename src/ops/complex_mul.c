/* SPDX-License-Identifier: Apache-2.0
 *
 * complex_mul: y = a b of complex numbers (...,2); attributes say whether a or b is conjugated.
 * Gradients, with conj of what is not conjugated: ga = gy b*, gb = gy a*; of a conjugated operand
 * the conjugate of that.
 */
#include "ops/ops.h"

enum { CONJ_A, CONJ_B, NATTR };
static const char *const attr_names[] = {"conj_a", "conj_b"};

static ctn_status complex_mul_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    CTN_TRY(ctn__infer_broadcast(a));
    CTN_TRY(ctn__infer_same(a));
    if (x->ndim < 1 || x->dim[x->ndim - 1] != 2)
        return ctn_fail(CTN_ESHAPE, "complex_mul: a is %s, expected complex numbers (...,2)",
                        ctn__shape_text(x, t, sizeof t));
    return CTN_OK;
}

#define DEFINE_PRODUCT(T)                                                            \
    CTN__PER_ISA(product_##T, (const T *x, const T *y, T *z, int64_t n, T sx, T sy), \
                 (x, y, z, n, sx, sy))                                               \
    {                                                                                \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                          \
        {                                                                            \
            const T xr = x[2 * i], xi = sx * x[2 * i + 1];                           \
            const T yr = y[2 * i], yi = sy * y[2 * i + 1];                           \
            z[2 * i] = xr * yr - xi * yi;                                            \
            z[2 * i + 1] = xr * yi + xi * yr;                                        \
        }                                                                            \
    }
DEFINE_PRODUCT(float)
DEFINE_PRODUCT(double)

static ctn_status complex_mul_run(const ctn_run_args *a)
{
    const int64_t n = ctn__count(&a->dout[0]) / 2;
    const ctn__isa isa = ctn__isa_in_use();
    const int sx = a->attr[CONJ_A] ? -1 : 1, sy = a->attr[CONJ_B] ? -1 : 1;
#pragma omp parallel for schedule(static) if (n > CTN__GRAIN)
    for (int64_t i = 0; i < n; i += CTN__TILE) {
        const int64_t m = n - i < CTN__TILE ? n - i : CTN__TILE;
        if (a->dout[0].dtype == CTN_F32)
            product_float[isa]((const float *)a->in[0] + 2 * i, (const float *)a->in[1] + 2 * i,
                               (float *)a->out[0] + 2 * i, m, (float)sx, (float)sy);
        else
            product_double[isa]((const double *)a->in[0] + 2 * i, (const double *)a->in[1] + 2 * i,
                                (double *)a->out[0] + 2 * i, m, sx, sy);
    }
    return CTN_OK;
}

static ctn_tensor *product(const char *at, ctn_tensor *x, ctn_tensor *y, bool conj_x, bool conj_y)
{
    ctn_tensor *in[2] = {x, y};
    const int64_t attr[NATTR] = {conj_x, conj_y};
    return ctn__apply1(at, NULL, &ctn__op_complex_mul, 2, in, NATTR, attr, 0, NULL);
}

static ctn_status complex_mul_grad(const ctn_grad_args *a)
{
    const bool ca = a->attr[CONJ_A] != 0, cb = a->attr[CONJ_B] != 0;
    if (a->need[0])
        CTN_TRY(ctn__grad_to(a, 0, product(a->at, a->gout[0], a->in[1], ca, ca ? cb : !cb)));
    if (a->need[1])
        CTN_TRY(ctn__grad_to(a, 1, product(a->at, a->gout[0], a->in[0], cb, cb ? ca : !ca)));
    return CTN_OK;
}

ctn_op ctn__op_complex_mul = {
    .struct_size = sizeof(ctn_op),
    .name = "complex_mul",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = complex_mul_infer,
    .grad = complex_mul_grad,
    .run = complex_mul_run,
};

ctn_tensor *ctn_complex_mul_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    ctn_desc both = {0};
    if (a && b && !ctn__same_shape(&a->d, &b->d)) {
        if (ctn__broadcast(&both, "complex_mul", &a->d, &b->d) < 0) return NULL;
        a = ctn_broadcast_to_at(at, a, both.ndim, both.dim);
        b = ctn_broadcast_to_at(at, b, both.ndim, both.dim);
    }
    return product(at, a, b, false, false);
}
