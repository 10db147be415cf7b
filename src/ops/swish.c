/* SPDX-License-Identifier: Apache-2.0
 *
 * swish (SiLU): y = x s with s = sigmoid(x). Gradient: gx = gy (s + x s (1 - s)).
 */
#include "ops/ops.h"
#include "ops/vmath.h"

#define SWISHF(x) ((x) * ctn__sigmoidf(x))
#define SWISH(x) ((x) * ctn__sigmoid(x))

CTN__KERNEL(swish)
{
    CTN__MAP1(a, SWISHF, SWISH);
}

static ctn_status swish_grad_of(const ctn_grad_args *a)
{
    a->gin[0] = ctn__binary(a->at, &ctn__op_swish_grad, a->in[0], a->gout[0]);
    return a->gin[0] ? CTN_OK : ctn_error_status();
}

ctn_op ctn__op_swish = {
    .struct_size = sizeof(ctn_op),
    .name = "swish",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = 1,
    .inplace = 1,
    .infer = ctn__infer_same,
    .grad = swish_grad_of,
    .run = swish_run,
    .tiles = &swish_tiles,
};

static inline float slopef(float x)
{
    float s = ctn__sigmoidf(x);
    return s * (1 + x * (1 - s));
}

static inline double slope(double x)
{
    double s = ctn__sigmoid(x);
    return s * (1 + x * (1 - s));
}

/* swish_grad(x, g) = g swish'(x). Gradients: by x gy g s (1 - s) (2 + x (1 - 2 s)), by g itself. */
#define PASSF(x, g) ((g) * slopef(x))
#define PASS(x, g) ((g) * slope(x))

CTN__KERNEL(swish_grad)
{
    CTN__MAP2(a, PASSF, PASS);
}

static ctn_status swish_grad_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *x = a->in[0], *g = a->in[1], *gy = a->gout[0];
    if (a->need[0]) {
        ctn_tensor *s = ctn_sigmoid_at(at, x);
        ctn_tensor *t = ctn__binary(at, &ctn__op_sigmoid_grad, s, ctn_mul_at(at, g, gy));
        ctn_tensor *d = ctn_mul_at(at, x, ctn_shift_at(at, ctn_scale_at(at, s, -2), 1));
        a->gin[0] = ctn_mul_at(at, t, ctn_shift_at(at, d, 2));
        if (!a->gin[0]) return ctn_error_status();
    }
    if (a->need[1] && !(a->gin[1] = ctn__binary(at, &ctn__op_swish_grad, x, gy)))
        return ctn_error_status();
    return CTN_OK;
}

ctn_op ctn__op_swish_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "swish_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = 3,
    .inplace = 3,
    .infer = ctn__infer_same,
    .grad = swish_grad_grad,
    .run = swish_grad_run,
    .tiles = &swish_grad_tiles,
};

ctn_tensor *ctn_swish_at(const char *at, ctn_tensor *x)
{
    return ctn__unary(at, &ctn__op_swish, x);
}
