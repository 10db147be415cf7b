/* SPDX-License-Identifier: Apache-2.0
 *
 * where: y = a where the condition holds, else b. All three broadcast; a and b have the same
 * type, which may be any. Elements are only moved, so the kernels depend on their size alone.
 * Gradients: for a, gy where the condition holds and 0 elsewhere; for b, the reverse.
 */
#include "ops/ops.h"

static ctn_status where_infer(ctn_infer_args *a)
{
    if (a->in[0]->dtype != CTN_BOOL || a->in[1]->dtype != a->in[2]->dtype)
        return ctn_fail(
            CTN_EDTYPE,
            "where: the condition is %s, the values are %s and %s; expected bool, and values of "
            "the same type; use ctn_cast",
            ctn_dtype_name(a->in[0]->dtype), ctn_dtype_name(a->in[1]->dtype),
            ctn_dtype_name(a->in[2]->dtype));
    ctn_desc values = {0};
    CTN_TRY(ctn__broadcast(&values, a->name, a->in[1], a->in[2]));
    a->out[0].dtype = a->in[1]->dtype;
    return ctn__broadcast(&a->out[0], a->name, a->in[0], &values);
}

#define WHERE(T)                                            \
    do {                                                    \
        const uint8_t *c = a->in[0];                        \
        const T *x = a->in[1], *z = a->in[2];               \
        T *y = a->out[0];                                   \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++) \
        {                                                   \
            const T p = x[i], q = z[i];                     \
            y[i] = c[i] ? p : q;                            \
        }                                                   \
    } while (0)

CTN__KERNEL(where)
{
    switch (ctn_dtype_size(a->dout[0].dtype)) {
    case 1: WHERE(uint8_t); break;
    case 2: WHERE(uint16_t); break;
    case 4: WHERE(uint32_t); break;
    default: WHERE(uint64_t); break;
    }
}

static ctn_status where_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *zero = ctn_full_at(at, a->ctx, 0, a->out[0]->d.dtype, CTN_SCALAR_SHAPE);
    for (int i = 1; i <= 2; i++) {
        if (!a->need[i]) continue;
        ctn_tensor *g = i == 1 ? ctn_where_at(at, a->in[0], a->gout[0], zero)
                               : ctn_where_at(at, a->in[0], zero, a->gout[0]);
        CTN_TRY(ctn__grad_to(a, i, ctn__sum_to(at, g, &a->in[i]->d)));
    }
    return CTN_OK;
}

ctn_op ctn__op_where = {
    .struct_size = sizeof(ctn_op),
    .name = "where",
    .nin = 3,
    .nout = 1,
    .flags = CTN_OP_STRIDED | CTN_OP_ELEMENTWISE,
    .order = -1,
    .grad_in = CTN_OPERAND(0),
    .inplace = CTN_OPERAND(1) | CTN_OPERAND(2),
    .infer = where_infer,
    .grad = where_grad,
    .run = where_run,
    .tiles = &where_tiles,
};

ctn_tensor *ctn_where_at(const char *at, ctn_tensor *cond, ctn_tensor *a, ctn_tensor *b)
{
    ctn_tensor *in[3] = {cond, a, b};
    return ctn__apply1(at, NULL, &ctn__op_where, 3, in, 0, NULL, 0, NULL);
}
