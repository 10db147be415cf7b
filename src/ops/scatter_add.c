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

#define DEFINE_ADD(T)                                                                          \
    static void add_##T(const ctn_run_args *a, const ctn__scatter_unit *u, int axis)           \
    {                                                                                          \
        const T *src = a->in[2];                                                               \
        T *y = a->out[0];                                                                      \
        const ctn_desc *d = a->din;                                                            \
        for (int64_t i = 0; i < d[1].dim[axis]; i++)                                           \
            for (int64_t k = 0; k < u->n; k++) {                                               \
                int64_t to =                                                                   \
                    ctn__index_get(a->in[1], d[1].dtype, u->index[k] + i * d[1].stride[axis]); \
                if (to < u->begin || to >= u->end) continue;                                   \
                y[u->y[k] + to * d[0].stride[axis]] += src[u->src[k] + i * d[2].stride[axis]]; \
            }                                                                                  \
    }
DEFINE_ADD(float)
DEFINE_ADD(double)

static ctn_status scatter_add_run(const ctn_run_args *a)
{
    return ctn__scatter_run("scatter_add", a, a->din[0].dtype == CTN_F32 ? add_float : add_double);
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
