/* SPDX-License-Identifier: Apache-2.0
 *
 * solve: x with op(a) x = b by LU with partial pivoting, where op transposes if the attribute
 * `trans` is set. Gradients: gb = op(a)^-T gx, ga = -gb x^T, or its transpose.
 */
#include "ops/common/linalg.h"

enum { TRANS, NATTR };
static const char *const attr_names[] = {"trans"};

static bool solve_one(const ctn_run_args *a, const ctn__small *m, double *second)
{
    (void)second;
    ctn__lu(m->a, m->n, m->pivot);
    ctn__lu_solve(m->a, m->n, m->pivot, m->b, m->k, a->attr[TRANS] != 0);
    return true;
}

static ctn_status solve_prepare(ctn_prepare_args *a)
{
    return ctn__small_prepare(a, a->din[1].dim[a->din[1].ndim - 1]);
}

static ctn_status solve_run(const ctn_run_args *a)
{
    const ctn_desc *b = &a->din[1];
    ctn__small_run(a, b->dim[b->ndim - 2], b->dim[b->ndim - 1], solve_one);
    return CTN_OK;
}

static ctn_status solve_grad(const ctn_grad_args *a)
{
    const int64_t trans = a->attr[TRANS], back = !trans;
    ctn_tensor *x = a->out[0];
    ctn_tensor *gb = ctn__solve_apply(a->at, &ctn__op_solve, a->in[0], a->gout[0], NATTR, &back);
    if (a->need[0]) {
        ctn_tensor *ga = ctn_matmul_at(a->at, trans ? x : gb, trans ? gb : x, 0, 1);
        CTN_TRY(ctn__grad_to(a, 0, ctn_neg_at(a->at, ga)));
    }
    return a->need[1] ? ctn__grad_to(a, 1, gb) : CTN_OK;
}

ctn_op ctn__op_solve = {
    .struct_size = sizeof(ctn_op),
    .name = "solve",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(1),
    .attr_names = attr_names,
    .infer = ctn__solve_infer,
    .grad = solve_grad,
    .prepare = solve_prepare,
    .run = solve_run,
};

ctn_tensor *ctn_solve_at(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    const int64_t attr[NATTR] = {0};
    return ctn__solve_apply(at, &ctn__op_solve, a, b, NATTR, attr);
}
