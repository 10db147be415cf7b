/* SPDX-License-Identifier: Apache-2.0
 *
 * power: y = x^p, where p is a scalar of the plan. The exponent of the gradient is a function of
 * p, so the op computes the k-th derivative of x^p, where k is an attribute:
 *   y = p (p-1) ... (p-k+1) x^(p-k)
 * Gradient: gx = gy times the next derivative.
 */
#include <math.h>

#include "ops/common/special_fine.h"
#include "ops/ops.h"

enum { ORDER, NATTR };
static const char *const attr_names[] = {"derivative"};

#define FILL(x) ((void)(x), c)
#define LINEAR(x) (c * (x))
#define SQUARE(x) (c * ((x) * (x)))
#define CUBE(x) (c * ((x) * (x) * (x)))
#define INVERSE(x) (c / (x))
#define ROOTF(x) (c * sqrtf(x))
#define ROOT(x) (c * sqrt(x))
#define GENERALF(x) (c * ctn__powf(x, e))
#define GENERAL(x) (c * pow(x, e))

/* Common exponents, and those of their derivatives, have loops of their own. */
#define RUN(T, root, general)                                  \
    do {                                                       \
        T c = (T)factor, e = (T)expo;                          \
        if (factor == 0 || expo == 0) CTN__MAP1_T(a, T, FILL); \
        else if (expo == 1) CTN__MAP1_T(a, T, LINEAR);         \
        else if (expo == 2) CTN__MAP1_T(a, T, SQUARE);         \
        else if (expo == 3) CTN__MAP1_T(a, T, CUBE);           \
        else if (expo == -1) CTN__MAP1_T(a, T, INVERSE);       \
        else if (expo == 0.5) CTN__MAP1_T(a, T, root);         \
        else CTN__MAP1_T(a, T, general);                       \
    } while (0)

CTN__KERNEL(power)
{
    double p = a->scalar[0], factor = 1, expo = p - (double)a->attr[ORDER];
    for (int64_t i = 0; i < a->attr[ORDER]; i++) factor *= p - (double)i;
    if (a->dout[0].dtype == CTN_F32) RUN(float, ROOTF, GENERALF);
    else RUN(double, ROOT, GENERAL);
}

static ctn_tensor *derivative(const char *at, ctn_tensor *x, const ctn_scalar *p, int64_t order)
{
    return ctn__apply1(at, NULL, &ctn__op_power, 1, &x, NATTR, &order, 1, p);
}

static ctn_status power_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = derivative(a->at, a->in[0], &a->scalar[0], a->attr[ORDER] + 1);
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_power = {
    .struct_size = sizeof(ctn_op),
    .name = "power",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = ctn__infer_same,
    .grad = power_grad,
    .run = power_run,
    .tiles = &power_tiles,
};

ctn_tensor *ctn_power_at(const char *at, ctn_tensor *x, double p)
{
    return derivative(at, x, &CTN_CONST(p), 0);
}
