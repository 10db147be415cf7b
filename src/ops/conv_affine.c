/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_affine: y = act(a (x * w) + b + residual), with one a and b per channel. This is a
 * convolution followed by the batch normalisation of evaluation, in one kernel that scales, adds
 * and clips while the result is in registers. Only fusion creates it (plan/fuse/conv_affine.c),
 * so it has no infer or grad. Inputs: x, w, a, b and the optional residual. Attributes: those of
 * conv.
 */
#include "ops/common/conv.h"

enum { X, W, A, B, RESIDUAL };

static ctn_status conv_affine_run(const ctn_run_args *a)
{
    void *ptr[7] = {(void *)(uintptr_t)a->in[X],
                    (void *)(uintptr_t)a->in[W],
                    NULL,
                    a->out[0],
                    (void *)(uintptr_t)a->in[A],
                    (void *)(uintptr_t)a->in[B],
                    a->nin > RESIDUAL ? (void *)(uintptr_t)a->in[RESIDUAL] : NULL};
    return ctn__prim_run(a->priv, ptr, a->scratch);
}

static ctn_status conv_affine_prepare(ctn_prepare_args *a)
{
    ctn__conv_shape s = ctn__conv_shape_of(a);
    ctn__conv_post post = {.act = (ctn__elt)a->attr[CTN__CONV_ACT],
                           .scale = &a->din[A],
                           .shift = &a->din[B],
                           .residual = a->nin > RESIDUAL ? &a->din[RESIDUAL] : NULL};
    ctn__prim *prim = NULL;
    a->flops = ctn__conv_work(&a->dout[0], &a->din[W]);
    CTN_TRY(ctn__prim_conv(&prim, a->engine, CTN__CONV_FORWARD, &s, &a->din[X], &a->din[W], NULL,
                           &a->dout[0], &post, false));
    return ctn__with_prim(a, prim, conv_affine_run);
}

ctn_op ctn__op_conv_affine = {
    .struct_size = sizeof(ctn_op),
    .name = "conv_affine",
    .nin = -1,
    .nout = 1,
    .prec = CTN_PREC_LOW,
    .spatial_in = 1u << X | 1u << RESIDUAL,
    .spatial_out = CTN_OPERAND(0),
    .prepare = conv_affine_prepare,
};
