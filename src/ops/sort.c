/* SPDX-License-Identifier: Apache-2.0
 *
 * sort: the elements of the last axis in ascending or descending order, and their indices (i64).
 * Equal elements keep their order, NaN comes last. Other axes are transposed to the end first.
 * Gradient: gy added to zeros at the indices. argsort is the second output.
 */
#include <omp.h>

#include "ops/common/along.h"

enum { DESCENDING };
static const char *const attr_names[] = {"descending"};

enum { SHORT = 48 }; /* length up to which insertion is faster */

static ctn_status sort_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int axis;
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    CTN_TRY(ctn__infer_axis(a, x, -1, &axis));
    if (x->dim[axis] > UINT32_MAX)
        return ctn_fail(CTN_ESHAPE, "sort: x is %s, an axis of at most %lld elements can be sorted",
                        ctn__shape_text(x, t, sizeof t), (long long)UINT32_MAX);
    a->out[0] = a->out[1] = *x;
    a->out[1].dtype = CTN_I64;
    return CTN_OK;
}

#define T float
#define KEY uint32_t
#define NAME(x) x##_f32
#include "ops/common/sort_body.h"

#define T double
#define KEY uint64_t
#define NAME(x) x##_f64
#include "ops/common/sort_body.h"

static size_t room(const ctn_desc *x)
{
    const size_t item = x->dtype == CTN_F32 ? sizeof(item_f32) : sizeof(item_f64);
    return 2 * item * (size_t)x->dim[x->ndim - 1];
}

static ctn_status sort_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const int64_t n = x->dim[x->ndim - 1], rows = n > 0 ? ctn__count(x) / n : 0;
    const size_t each = room(x);
    const bool down = a->attr[DESCENDING] != 0;
#pragma omp parallel for schedule(static) if (rows * n > 1024)
    for (int64_t r = 0; r < rows; r++) {
        void *mine = (char *)a->scratch + (size_t)omp_get_thread_num() * each;
        int64_t *place = a->out[1] ? (int64_t *)a->out[1] + r * n : NULL;
        if (x->dtype == CTN_F32)
            sort_line_f32((const float *)a->in[0] + r * n, n, down,
                          a->out[0] ? (float *)a->out[0] + r * n : NULL, place, mine);
        else
            sort_line_f64((const double *)a->in[0] + r * n, n, down,
                          a->out[0] ? (double *)a->out[0] + r * n : NULL, place, mine);
    }
    return CTN_OK;
}

static ctn_status sort_prepare(ctn_prepare_args *a)
{
    a->scratch = (size_t)a->threads * room(&a->din[0]);
    return CTN_OK;
}

static ctn_status sort_grad(const ctn_grad_args *a)
{
    const ctn_desc *x = &a->in[0]->d;
    ctn_tensor *zero = ctn_full_at(a->at, a->ctx, 0, x->dtype, x->ndim, x->dim);
    return ctn__grad_to(a, 0, ctn_scatter_add_at(a->at, zero, a->out[1], a->gout[0], -1));
}

ctn_op ctn__op_sort = {
    .struct_size = sizeof(ctn_op),
    .name = "sort",
    .nin = 1,
    .nout = 2,
    .order = -1,
    .grad_out = CTN_OPERAND(1),
    .attr_names = attr_names,
    .infer = sort_infer,
    .grad = sort_grad,
    .prepare = sort_prepare,
    .run = sort_run,
};

static ctn_status sorted(const char *who, const char *at, ctn_tensor *x, int64_t axis,
                         int descending, ctn_tensor **values, ctn_tensor **indices)
{
    const int64_t attr = descending != 0;
    const ctn_op_args args = {.nattr = 1, .attr = &attr};
    ctn_tensor *out[2];
    if (values) *values = NULL;
    if (indices) *indices = NULL;
    if (x && ctn__axis_of(who, at, x, axis) < 0) return ctn_error_status();
    if (x) x = ctn_swapaxes_at(at, x, axis, -1);
    CTN_TRY(ctn_apply_at(at, NULL, &ctn__op_sort, 1, &x, &args, out));
    if (values && !(*values = ctn_swapaxes_at(at, out[0], axis, -1))) return ctn_error_status();
    if (indices && !(*indices = ctn_swapaxes_at(at, out[1], axis, -1))) return ctn_error_status();
    return CTN_OK;
}

ctn_status ctn_sort_at(const char *at, ctn_tensor *x, int64_t axis, int descending,
                       ctn_tensor **values, ctn_tensor **indices)
{
    return sorted("sort", at, x, axis, descending, values, indices);
}

ctn_tensor *ctn_argsort_at(const char *at, ctn_tensor *x, int64_t axis, int descending)
{
    ctn_tensor *y;
    return sorted("argsort", at, x, axis, descending, NULL, &y) < 0 ? NULL : y;
}
