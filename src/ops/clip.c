/* SPDX-License-Identifier: Apache-2.0
 *
 * clip: y = min(max(x, lo), hi); lo and hi are scalars of the plan. Gradient: gy where
 * lo <= x <= hi, else 0. NaN stays NaN.
 */
#include "ops/ops.h"

enum { LO, HI, NSCALAR };

#define ABOVE(x) ((x) < lo ? lo : (x))
#define CLIP(x) (ABOVE(x) > hi ? hi : ABOVE(x))

CTN__KERNEL(clip)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float lo = (float)a->scalar[LO], hi = (float)a->scalar[HI];
        CTN__MAP1_T(a, float, CLIP);
    } else {
        const double lo = a->scalar[LO], hi = a->scalar[HI];
        CTN__MAP1_T(a, double, CLIP);
    }
}

static ctn_tensor *clip_grad(const ctn_grad_args *a, ctn_tensor *x, ctn_tensor *g)
{
    ctn_tensor *in[2] = {x, g};
    return ctn__apply1(a->at, NULL, &ctn__op_clip_grad, 2, in, 0, NULL, NSCALAR, a->scalar);
}

static ctn_status clip_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, clip_grad(a, a->in[0], a->gout[0]));
}

ctn_op ctn__op_clip = {
    CTN__ELEMENTWISE_OP(clip, 1),
    .grad_in = CTN_OPERAND(0),
    .grad = clip_grad_of,
};

/* clip_grad(x, gy) = gy where lo <= x <= hi: linear in gy, so it is its own gradient. */
#define PASS(x, g) ((x) >= lo && (x) <= hi ? (g) : 0)

CTN__KERNEL(clip_grad)
{
    if (a->dout[0].dtype == CTN_F32) {
        const float lo = (float)a->scalar[LO], hi = (float)a->scalar[HI];
        CTN__MAP2_T(a, float, float, PASS);
    } else {
        const double lo = a->scalar[LO], hi = a->scalar[HI];
        CTN__MAP2_T(a, double, double, PASS);
    }
}

static ctn_status clip_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[1]) return CTN_OK;
    return ctn__grad_to(a, 1, clip_grad(a, a->in[0], a->gout[0]));
}

ctn_op ctn__op_clip_grad = {
    CTN__ELEMENTWISE_OP(clip_grad, 2),
    .grad_in = CTN_OPERAND(0),
    .grad = clip_grad_grad,
};

ctn_tensor *ctn_clip_at(const char *at, ctn_tensor *x, double lo, double hi)
{
    ctn_scalar s[NSCALAR] = {CTN_CONST(lo), CTN_CONST(hi)};
    return ctn__apply1(at, NULL, &ctn__op_clip, 1, &x, 0, NULL, NSCALAR, s);
}
