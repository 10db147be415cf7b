/* SPDX-License-Identifier: Apache-2.0
 *
 * log_softmax along one axis: y = (x - max) - log(sum(exp(x - max))), with the sum in double.
 * Where one class is nearly certain, y is near 0 and keeps its digits (oneDNN has errors of 2e-6
 * there). Gradient: gx = gy - exp(y) sum(gy), one kernel, which can be differentiated again.
 */
#include <math.h>

#include "engine/isa.h"
#include "ops/common/softmax.h"
#include "ops/common/vmath.h"

enum { AXIS, NATTR };
enum { LANES = 64, SUMS = 16 };
static const char *const attr_names[] = {"axis"};

#define T float
#define EXP ctn__expf
#define NAME(x) x##_f32
#define LOG 1
#include "ops/common/log_softmax_body.h"

#define T double
#define EXP exp
#define NAME(x) x##_f64
#define LOG 1
#include "ops/common/log_softmax_body.h"

static ctn_status log_softmax_run(const ctn_run_args *a)
{
    const ctn__isa isa = ctn__isa_in_use();
    const ctn__axis_kernels f32 = {forward_row_f32[isa], forward_cols_f32[isa]};
    const ctn__axis_kernels f64 = {forward_row_f64[isa], forward_cols_f64[isa]};
    return ctn__axis_run(a, &f32, &f64);
}

static ctn_status log_softmax_grad(const ctn_grad_args *a)
{
    ctn_tensor *in[2] = {a->out[0], a->gout[0]};
    ctn_tensor *g =
        ctn__apply1(a->at, NULL, &ctn__op_log_softmax_grad, 2, in, NATTR, a->attr, 0, NULL);
    return ctn__grad_to(a, 0, g);
}

ctn_op ctn__op_log_softmax = {
    .struct_size = sizeof(ctn_op),
    .name = "log_softmax",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = ctn__softmax_infer,
    .grad = log_softmax_grad,
    .run = log_softmax_run,
};

static ctn_status log_softmax_grad_run(const ctn_run_args *a)
{
    static const ctn__axis_kernels f32 = {grad_row_f32, grad_cols_f32};
    static const ctn__axis_kernels f64 = {grad_row_f64, grad_cols_f64};
    return ctn__axis_run(a, &f32, &f64);
}

/* By g: v - sum(v exp(y)). By y: -v exp(y) sum(g). exp(y) is softmax(y), as y is normalised. */
static ctn_status log_softmax_grad_grad(const ctn_grad_args *a)
{
    ctn_tensor *v = a->gout[0];
    const char *at = a->at;
    ctn_tensor *vp = ctn_mul_at(at, v, ctn_softmax_at(at, a->in[0], (int)a->attr[AXIS]));
    if (a->need[1]) {
        ctn_tensor *s = ctn_sum_at(at, vp, 1, a->attr, 1);
        CTN_TRY(ctn__grad_to(a, 1, ctn_add_at(at, v, ctn__scaled(at, s, -1))));
    }
    if (a->need[0]) {
        ctn_tensor *s = ctn_sum_at(at, a->in[1], 1, a->attr, 1);
        CTN_TRY(ctn__grad_to(a, 0, ctn_mul_at(at, vp, ctn__scaled(at, s, -1))));
    }
    return CTN_OK;
}

ctn_op ctn__op_log_softmax_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "log_softmax_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERANDS(2),
    .inplace = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = ctn__softmax_infer,
    .grad = log_softmax_grad_grad,
    .run = log_softmax_grad_run,
};

ctn_tensor *ctn_log_softmax_at(const char *at, ctn_tensor *x, int axis)
{
    int64_t attr[NATTR] = {axis};
    return ctn__apply1(at, NULL, &ctn__op_log_softmax, 1, &x, NATTR, attr, 0, NULL);
}
