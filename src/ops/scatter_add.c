/* SPDX-License-Identifier: Apache-2.0
 *
 * scatter_add: y = x with src added at the indices. For axis 1 of 3 and every position of index:
 *   y[i,index[i,j,k],k] += src[i,j,k]
 * Gradients: gx = gy, gsrc = gather(gy, index).
 */
#include "ops/common/scatter.h"

enum { AXIS };

static ctn_status scatter_add_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__infer_arith(a, a->in[0]));
    return ctn__infer_scatter(a);
}

/* The loop over positions, with a line as the inner loop if it is contiguous in index. */
#define DEFINE_ADD(T, INDEX)                                                                   \
    static void add_##T##_##INDEX(const ctn_run_args *a, const ctn__scatter_unit *u, int axis) \
    {                                                                                          \
        const INDEX *index = a->in[1];                                                         \
        const T *src = a->in[2];                                                               \
        T *y = a->out[0];                                                                      \
        const int64_t n = a->din[1].dim[axis], step = a->din[1].stride[axis];                  \
        const int64_t ys = a->din[0].stride[axis], ss = a->din[2].stride[axis];                \
        const bool along = step == 1;                                                          \
        for (int64_t p = 0; p < (along ? u->n : n); p++)                                       \
            for (int64_t q = 0; q < (along ? n : u->n); q++) {                                 \
                const int64_t i = along ? q : p, k = along ? p : q;                            \
                const int64_t to = index[u->index[k] + i * step];                              \
                if (to >= u->begin && to < u->end)                                             \
                    y[u->y[k] + to * ys] += src[u->src[k] + i * ss];                           \
            }                                                                                  \
    }
DEFINE_ADD(float, int32_t)
DEFINE_ADD(float, int64_t)
DEFINE_ADD(double, int32_t)
DEFINE_ADD(double, int64_t)

static ctn_status scatter_add_run(const ctn_run_args *a)
{
    static ctn__scatter_fn *const add[2][2] = {/* f32, i64 */
                                               {add_double_int32_t, add_double_int64_t},
                                               {add_float_int32_t, add_float_int64_t}};
    return ctn__scatter_run("scatter_add", a,
                            add[a->din[0].dtype == CTN_F32][a->din[1].dtype == CTN_I64]);
}

static ctn_status scatter_add_grad(const ctn_grad_args *a)
{
    a->gin[0] = a->gout[0];
    if (!a->need[2]) return CTN_OK;
    ctn_tensor *g = ctn_gather_at(a->at, a->gout[0], a->in[1], a->attr[AXIS]);
    return ctn__grad_to(a, 2, ctn__scatter_pad(a, g));
}

ctn_op ctn__op_scatter_add = {
    .struct_size = sizeof(ctn_op),
    .name = "scatter_add",
    .nin = 3,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .inplace = CTN_OPERAND(0),
    .infer = scatter_add_infer,
    .grad = scatter_add_grad,
    .run = scatter_add_run,
};

ctn_tensor *ctn_scatter_add_at(const char *at, ctn_tensor *x, ctn_tensor *index, ctn_tensor *src,
                               int64_t axis)
{
    ctn_tensor *in[3] = {x, index, src};
    return ctn__apply1(at, NULL, &ctn__op_scatter_add, 3, in, 1, &axis, 0, NULL);
}
