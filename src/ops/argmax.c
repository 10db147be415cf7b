/* SPDX-License-Identifier: Apache-2.0
 *
 * argmax: index of the largest element along one axis, the first among equal ones. NaN counts as
 * the largest. No gradient.
 */
#include "ops/common/along.h"

enum { AXIS };

static ctn_status argmax_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int axis;
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    CTN_TRY(ctn__infer_axis(a, x, a->attr[AXIS], &axis));
    a->out[0].dtype = CTN_I64;
    a->out[0].ndim = x->ndim - 1;
    for (int i = 0, k = 0; i < x->ndim; i++)
        if (i != axis) a->out[0].dim[k++] = x->dim[i];
    if (x->dim[axis] == 0 && ctn__count(&a->out[0]) > 0)
        return ctn_fail(CTN_ESHAPE, "argmax: %s has no elements along axis %d",
                        ctn__shape_text(x, t, sizeof t), axis);
    return CTN_OK;
}

#define DEFINE_ARGMAX(T)                                           \
    static int64_t argmax_##T(const T *v, int64_t n, int64_t step) \
    {                                                              \
        int64_t best = 0;                                          \
        T q = v[0];                                                \
        for (int64_t i = 1; i < n; i++) {                          \
            T p = v[i * step];                                     \
            if (!(p > q || (p != p && q == q))) continue;          \
            best = i;                                              \
            q = p;                                                 \
        }                                                          \
        return best;                                               \
    }
DEFINE_ARGMAX(float)
DEFINE_ARGMAX(double)

static ctn_status argmax_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const ctn__along s = ctn__along_axis(x, ctn__axis(x->ndim, a->attr[AXIS]));
    const int64_t rows = s.outer * s.inner;
    int64_t *y = a->out[0];
#pragma omp parallel for schedule(static) if (rows * s.n > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        int64_t at = r / s.inner * s.n * s.inner + r % s.inner;
        y[r] = x->dtype == CTN_F32 ? argmax_float((const float *)a->in[0] + at, s.n, s.inner)
                                   : argmax_double((const double *)a->in[0] + at, s.n, s.inner);
    }
    return CTN_OK;
}

ctn_op ctn__op_argmax = {
    .struct_size = sizeof(ctn_op),
    .name = "argmax",
    .nin = 1,
    .nout = 1,
    .order = 0,
    .infer = argmax_infer,
    .run = argmax_run,
};

ctn_tensor *ctn_argmax_at(const char *at, ctn_tensor *x, int64_t axis)
{
    return ctn__apply1(at, NULL, &ctn__op_argmax, 1, &x, 1, &axis, 0, NULL);
}
