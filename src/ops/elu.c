/* SPDX-License-Identifier: Apache-2.0
 *
 * elu: y = x where x > 0, else alpha (e^x - 1); alpha is a scalar of the plan. The op
 * elu_grad(x, g) is g times the k-th derivative, where k is an attribute. Below 0 every
 * derivative is alpha e^x; above 0 the first is 1 and the others are 0. So
 *   elu:       gx = elu_grad_1(x, gy)
 *   elu_grad:  gx = elu_grad_k+1(x, g gy),  gg = elu_grad_k(x, gy)
 * oneDNN is not used: it subtracts 1 from e^x, which loses the digits of small x.
 */
#include "ops/common/vmath.h"
#include "ops/ops.h"

enum { ORDER, NATTR };
static const char *const attr_names[] = {"derivative"};

/* min(x, 0) keeps e^x finite where it is not used. */
#define BELOW(x) ((x) > 0 ? 0 : (x))
#define ELUF(x) ((x) > 0 ? (x) : alpha * ctn__expm1f(BELOW(x)))
#define ELU(x) ((x) > 0 ? (x) : alpha * expm1(BELOW(x)))

CTN__KERNEL(elu)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float alpha = (float)a->scalar[0];
        CTN__MAP1_T(a, float, ELUF);
    } else {
        const double alpha = a->scalar[0];
        CTN__MAP1_T(a, double, ELU);
    }
}

static ctn_tensor *derivative(const ctn_grad_args *a, ctn_tensor *g, int64_t order)
{
    ctn_tensor *in[2] = {a->in[0], g};
    return ctn__apply1(a->at, NULL, &ctn__op_elu_grad, 2, in, NATTR, &order, 1, a->scalar);
}

static ctn_status elu_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, derivative(a, a->gout[0], 1));
}

ctn_op ctn__op_elu = {
    CTN__ELEMENTWISE_OP(elu, 1),
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad = elu_grad_of,
};

#define PASSF(x, g) ((g) * ((x) > 0 ? above : alpha * ctn__expf(BELOW(x))))
#define PASS(x, g) ((g) * ((x) > 0 ? above : alpha * exp(BELOW(x))))

CTN__KERNEL(elu_grad)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float alpha = (float)a->scalar[0], above = a->attr[ORDER] == 1;
        CTN__MAP2_T(a, float, float, PASSF);
    } else {
        const double alpha = a->scalar[0], above = a->attr[ORDER] == 1;
        CTN__MAP2_T(a, double, double, PASS);
    }
}

static ctn_status elu_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *gy = a->gout[0];
    if (a->need[0]) {
        ctn_tensor *g = ctn_mul_at(a->at, a->in[1], gy);
        CTN_TRY(ctn__grad_to(a, 0, derivative(a, g, a->attr[ORDER] + 1)));
    }
    if (a->need[1]) CTN_TRY(ctn__grad_to(a, 1, derivative(a, gy, a->attr[ORDER])));
    return CTN_OK;
}

ctn_op ctn__op_elu_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "elu_grad",
    .nin = 2,
    .nout = 1,
    .flags = CTN_OP_ELEMENTWISE,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__infer_same,
    .grad = elu_grad_grad,
    .run = elu_grad_run,
    .tiles = &elu_grad_tiles,
};

ctn_tensor *ctn_elu_at(const char *at, ctn_tensor *x, double alpha)
{
    return ctn__apply1(at, NULL, &ctn__op_elu, 1, &x, 0, NULL, 1, &CTN_CONST(alpha));
}
