/* SPDX-License-Identifier: Apache-2.0
 *
 * gelu: y = x P(x), P the normal distribution function (the exact form, by erf). With p = P' the
 * density, gx = gy (P(x) + x p(x)). Not by oneDNN: its AVX-512 kernel is wrong by 1e-6 and has no
 * correct digit in the negative tail.
 */
#include "ops/ops.h"
#include "ops/vmath.h"

#define INV_SQRT_2PI 0.39894228040143267794

#define GELUF(x) ((x) * ctn__normcdff(x))
#define GELU(x) ((x) * ctn__normcdf(x))

CTN__KERNEL(gelu)
{
    CTN__MAP1(a, GELUF, GELU);
}

static ctn_status gelu_grad_of(const ctn_grad_args *a)
{
    a->gin[0] = ctn__binary(a->at, &ctn__op_gelu_grad, a->in[0], a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_gelu = {
    .struct_size = sizeof(ctn_op),
    .name = "gelu",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = gelu_grad_of,
    .run = gelu_run,
    .tiles = &gelu_tiles,
};

/* gelu_grad(x, g) = g (P(x) + x p(x)). Gradients: by x gy g p(x) (2 - x^2), by g itself. */
#define PASSF(x, g) \
    ((g) * (ctn__normcdff(x) + (x) * ((float)INV_SQRT_2PI * ctn__expf(-0.5f * (x) * (x)))))
#define PASS(x, g) ((g) * (ctn__normcdf(x) + (x) * (INV_SQRT_2PI * exp(-0.5 * (x) * (x)))))

CTN__KERNEL(gelu_grad)
{
    CTN__MAP2(a, PASSF, PASS);
}

static ctn_status gelu_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0], *g = a->in[1], *gy = a->gout[0];
    if (a->need[0]) {
        ctn_tensor *q = ctn_square_at(at, x);
        ctn_tensor *p = ctn_scale_at(at, ctn_exp_at(at, ctn_scale_at(at, q, -0.5)), INV_SQRT_2PI);
        ctn_tensor *d = ctn_mul_at(at, p, ctn_shift_at(at, ctn_neg_at(at, q), 2));
        a->gin[0] = ctn_mul_at(at, ctn_mul_at(at, g, gy), d);
        if (!a->gin[0]) return ctn_error_status();
    }
    if (a->need[1] && !(a->gin[1] = ctn__binary(at, &ctn__op_gelu_grad, x, gy)))
        return ctn_error_status();
    return CTN_OK;
}

ctn_op ctn__op_gelu_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "gelu_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 3,
    .inplace = 3,
    .infer = ctn__infer_same,
    .grad = gelu_grad_grad,
    .run = gelu_grad_run,
    .tiles = &gelu_grad_tiles,
};

ctn_tensor *ctn_gelu_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_gelu, x);
}
