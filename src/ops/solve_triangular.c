/* SPDX-License-Identifier: Apache-2.0
 *
 * solve_triangular: x with op(a) x = b by substitution, where a is triangular and op transposes if
 * the attribute `trans` is set. Gradients: gb = op(a)^-T gx, ga = -gb x^T, or its transpose, on the
 * triangle that is read, without the diagonal if that counts as ones.
 */
#include "ops/common/linalg.h"

enum { UPPER, TRANS, UNIT, NATTR };
static const char *const attr_names[] = {"upper", "trans", "unit"};

static bool solve_one(const ctn_run_args *a, const ctn__small *m, double *second)
{
    (void)second;
    ctn__triangular_solve(m->a, m->n, m->b, m->k, a->attr[UPPER] != 0, a->attr[TRANS] != 0,
                          a->attr[UNIT] != 0);
    return true;
}

static ctn_status solve_triangular_prepare(ctn_prepare_args *a)
{
    return ctn__small_prepare(a, a->din[1].dim[a->din[1].ndim - 1]);
}

static ctn_status solve_triangular_run(const ctn_run_args *a)
{
    const ctn_desc *b = &a->din[1];
    ctn__small_run(a, b->dim[b->ndim - 2], b->dim[b->ndim - 1], solve_one);
    return CTN_OK;
}

static ctn_status solve_triangular_grad(const ctn_grad_args *a)
{
    const int64_t back[NATTR] = {a->attr[UPPER], !a->attr[TRANS], a->attr[UNIT]};
    const bool upper = a->attr[UPPER] != 0;
    ctn_tensor *x = a->out[0], *gb = ctn__solve_apply(a->at, &ctn__op_solve_triangular, a->in[0],
                                                      a->gout[0], NATTR, back);
    if (a->need[0]) { /* of an upper triangle the transpose, so that tril applies */
        const bool swapped = upper != (a->attr[TRANS] != 0);
        ctn_tensor *ga = ctn_matmul_at(a->at, swapped ? x : gb, swapped ? gb : x, 0, 1);
        ga = ctn_tril_at(a->at, ctn_neg_at(a->at, ga), a->attr[UNIT] ? -1 : 0);
        CTN_TRY(ctn__grad_to(a, 0, upper ? ctn__swap_last(a->at, ga) : ga));
    }
    return a->need[1] ? ctn__grad_to(a, 1, gb) : CTN_OK;
}

ctn_op ctn__op_solve_triangular = {
    .struct_size = sizeof(ctn_op),
    .name = "solve_triangular",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .prec = CTN_PREC_F32,
    .grad_in = CTN_OPERAND(0),
    .grad_out = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(1),
    .attr_names = attr_names,
    .infer = ctn__solve_infer,
    .grad = solve_triangular_grad,
    .prepare = solve_triangular_prepare,
    .run = solve_triangular_run,
};

ctn_tensor *ctn_solve_triangular_at(const char *at, ctn_tensor *a, ctn_tensor *b, int upper,
                                    int trans, int unit)
{
    const int64_t attr[NATTR] = {upper != 0, trans != 0, unit != 0};
    return ctn__solve_apply(at, &ctn__op_solve_triangular, a, b, NATTR, attr);
}
