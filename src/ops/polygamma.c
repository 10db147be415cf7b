/* SPDX-License-Identifier: Apache-2.0
 *
 * polygamma: y = the n-th derivative of digamma at x, where n is an attribute. Gradient: gx = gy
 * polygamma(n + 1, x).
 */
#include "ops/common/special.h"
#include "ops/common/special_fine.h"
#include "ops/ops.h"

enum { ORDER, NATTR };
static const char *const attr_names[] = {"n"};

#define AT(x) ctn__polygamma(order, (double)(x))

CTN__KERNEL(polygamma)
{
    const int64_t order = a->attr[ORDER];
    if (order == 0) CTN__MAP1(a, ctn__digamma_fine, AT);
    else if (order == 1) CTN__MAP1(a, ctn__trigamma_fine, AT); /* the gradient of digamma */
    else CTN__MAP1(a, AT, AT);
}

static ctn_status polygamma_grad(const ctn_grad_args *a)
{
    ctn_tensor *d = ctn_polygamma_at(a->at, a->attr[ORDER] + 1, a->in[0]);
    return ctn__grad_to(a, 0, ctn_mul_at(a->at, a->gout[0], d));
}

ctn_op ctn__op_polygamma = {
    CTN__ELEMENTWISE_OP(polygamma, 1), .prec = CTN_PREC_F32,   .grad_in = CTN_OPERAND(0),
    .attr_names = attr_names,          .grad = polygamma_grad,
};

ctn_tensor *ctn_polygamma_at(const char *at, int64_t n, ctn_tensor *x)
{
    if (n < 0) {
        ctn_fail(CTN_EARG, "polygamma: n is %lld, expected at least 0 (%s)", (long long)n, at);
        return NULL;
    }
    return ctn__apply1(at, NULL, &ctn__op_polygamma, 1, &x, NATTR, &n, 0, NULL);
}
