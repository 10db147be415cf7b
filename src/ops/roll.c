/* SPDX-License-Identifier: Apache-2.0
 *
 * roll: y[(i + shift) mod n] = x[i] along an axis. The shift is a scalar of the plan, so that it
 * may change from step to step. Attribute BACK reverses it. Gradient: roll the other way.
 */
#include <math.h>

#include "ops/common/along.h"

enum { AXIS, BACK, NATTR };
static const char *const attr_names[] = {"axis", "back"};

static ctn_status roll_infer(ctn_infer_args *a)
{
    int axis;
    CTN_TRY(ctn__infer_axis(a, a->in[0], a->attr[AXIS], &axis));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static ctn_status roll_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const ctn__along s = ctn__along_axis(x, ctn__axis(x->ndim, a->attr[AXIS]));
    if (s.n == 0) return CTN_OK;
    const double by = fmod(a->attr[BACK] ? -a->scalar[0] : a->scalar[0], (double)s.n);
    const int64_t shift = (int64_t)(by < 0 ? by + (double)s.n : by);
    ctn__block_copy c = {.dst = a->out[0],
                         .src = a->in[0],
                         .dn = s.n,
                         .dat = shift,
                         .sn = s.n,
                         .outer = s.outer,
                         .len = s.n - shift,
                         .inner = s.inner,
                         .dtype = x->dtype};
    ctn__copy_block(&c);
    c.sat = c.len; /* the elements that come in again at the front */
    c.dat = 0;
    c.len = shift;
    ctn__copy_block(&c);
    return CTN_OK;
}

static ctn_status roll_grad(const ctn_grad_args *a)
{
    const int64_t attr[NATTR] = {a->attr[AXIS], !a->attr[BACK]};
    return ctn__grad_to(a, 0,
                        ctn__apply1(a->at, NULL, &ctn__op_roll, 1, a->gout, NATTR, attr, 1,
                                    a->scalar));
}

ctn_op ctn__op_roll = {
    .struct_size = sizeof(ctn_op),
    .name = "roll",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .low_in = CTN_OPERAND(0),
    .low_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = roll_infer,
    .grad = roll_grad,
    .run = roll_run,
};

ctn_tensor *ctn_roll_at(const char *at, ctn_tensor *x, int64_t axis, int64_t shift)
{
    const int64_t attr[NATTR] = {axis, 0};
    return ctn__apply1(at, NULL, &ctn__op_roll, 1, &x, NATTR, attr, 1, &CTN_CONST((double)shift));
}
