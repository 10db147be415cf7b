/* SPDX-License-Identifier: Apache-2.0
 *
 * signed_power: y = sign(x) |x|^p, where p is a scalar of the plan. Like power, the op computes the
 * k-th derivative, where k is an attribute:
 *   y = p (p-1) ... (p-k+1) |x|^(p-k) sign(x)^(k+1)
 * Gradient: gx = gy times the next derivative.
 */
#include <math.h>

#include "ops/common/special_fine.h"
#include "ops/ops.h"

enum { ORDER, NATTR };
static const char *const attr_names[] = {"derivative"};

/* An even derivative is odd in x. */
#define EVENF(x) (c * ctn__powf(fabsf(x), e))
#define EVEN(x) (c * pow(fabs(x), e))
#define ODDF(x) (c * copysignf(ctn__powf(fabsf(x), e), x))
#define ODD(x) (c * copysign(pow(fabs(x), e), x))
#define FILL(x) ((void)(x), c)

#define RUN(T, odd, even)                                         \
    do {                                                          \
        const T c = (T)factor, e = (T)expo;                       \
        if (factor == 0) CTN__MAP1_T(a, T, FILL);                 \
        else if (a->attr[ORDER] % 2 == 0) CTN__MAP1_T(a, T, odd); \
        else CTN__MAP1_T(a, T, even);                             \
    } while (0)

CTN__KERNEL(signed_power)
{
    double p = a->scalar[0], factor = 1, expo = p - (double)a->attr[ORDER];
    for (int64_t i = 0; i < a->attr[ORDER]; i++) factor *= p - (double)i;
    if (a->dout[0].dtype == CTN_F32) RUN(float, ODDF, EVENF);
    else RUN(double, ODD, EVEN);
}

static ctn_tensor *derivative(const char *at, ctn_tensor *x, const ctn_scalar *p, int64_t order)
{
    return ctn__apply1(at, NULL, &ctn__op_signed_power, 1, &x, NATTR, &order, 1, p);
}

static ctn_status signed_power_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = derivative(a->at, a->in[0], &a->scalar[0], a->attr[ORDER] + 1);
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_signed_power = {
    CTN__ELEMENTWISE_OP(signed_power, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .attr_names = attr_names,
    .grad = signed_power_grad,
};

ctn_tensor *ctn_signed_power_at(const char *at, ctn_tensor *x, double p)
{
    return derivative(at, x, &CTN_CONST(p), 0);
}
