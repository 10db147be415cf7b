/* SPDX-License-Identifier: Apache-2.0
 *
 * channel_affine: y = act(a x + b + residual) with one a and b per channel of x (N,C,...).
 * Gradients of a recorded call, which has neither act nor residual (only fusion adds them):
 *   gx = a gy,  ga = sum(gy x) and gb = sum(gy) over everything but C
 * The kernels are those of batch_norm (engine/bnorm.h).
 */
#include "engine/bnorm.h"

#include "ops/ops.h"

enum { ACT, ADD, BIAS, NATTR }; /* act: 0 none, 1 relu; a residual needs b */
enum { X, A, B, RESIDUAL };     /* inputs; B if BIAS is set, RESIDUAL if ADD is */

static const char *const attr_names[] = {"act", "add", "bias"};

static ctn_status channel_affine_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[X];
    const bool bias = a->attr[BIAS] != 0, add = a->attr[ADD] != 0;
    char tx[128], tv[128];
    CTN_TRY(ctn__infer_same(a));
    if ((add && !bias) || a->nin != 2 + bias + add)
        return ctn_fail(CTN_EARG,
                        "channel_affine: got %d inputs with bias %d, add %d; a residual needs b",
                        a->nin, bias, add);
    if (x->ndim < 2)
        return ctn_fail(CTN_ESHAPE, "channel_affine: x is %s, expected (N,C,...)",
                        ctn__shape_text(x, tx, sizeof tx));
    for (int i = 1; i < a->nin; i++) {
        const ctn_desc *v = a->in[i];
        bool fits = i == RESIDUAL ? ctn__same_shape(v, x) : v->ndim == 1 && v->dim[0] == x->dim[1];
        if (v->dtype != x->dtype)
            return ctn_fail(CTN_EDTYPE,
                            "channel_affine: x is %s, input %d is %s; expected the same type",
                            ctn_dtype_name(x->dtype), i, ctn_dtype_name(v->dtype));
        if (!fits)
            return ctn_fail(CTN_ESHAPE, "channel_affine: x is %s, input %d is %s, expected %s",
                            ctn__shape_text(x, tx, sizeof tx), i, ctn__shape_text(v, tv, sizeof tv),
                            i == RESIDUAL ? "the shape of x" : "one number per channel");
    }
    return CTN_OK;
}

/* Bytes of two doubles per channel, which are placed before the engine's scratch. */
static size_t rows_bytes(int64_t C)
{
    return (2 * (size_t)C * sizeof(double) + 63) / 64 * 64;
}

static ctn_status channel_affine_prepare(ctn_prepare_args *a)
{
    a->scratch = rows_bytes(a->dout[0].dim[1]) + ctn__bnorm_scratch(&a->dout[0]);
    a->kernel = ctn__bnorm_name(&a->dout[0]);
    return CTN_OK;
}

static void to_double(const ctn_run_args *a, int i, double *v, int64_t C)
{
    if (a->din[i].dtype == CTN_F64) memcpy(v, a->in[i], (size_t)C * sizeof *v);
    else
        for (int64_t c = 0; c < C; c++) v[c] = (double)((const float *)a->in[i])[c];
}

static ctn__bnorm_arg input(const ctn_run_args *a, int i)
{
    return (ctn__bnorm_arg){(void *)(uintptr_t)a->in[i], &a->din[i]};
}

static ctn_status channel_affine_run(const ctn_run_args *a)
{
    const int64_t C = a->din[X].dim[1];
    double *k = a->scratch, *b = a->attr[BIAS] ? k + C : NULL;
    const ctn__bnorm_arg none = {NULL, &a->din[X]}, y = {a->out[0], &a->dout[0]};
    to_double(a, A, k, C);
    if (b) to_double(a, B, b, C);
    ctn__bnorm_apply(input(a, X), k, b, a->attr[ADD] ? input(a, RESIDUAL) : none, a->attr[ACT] != 0,
                     y, (char *)a->scratch + rows_bytes(C));
    return CTN_OK;
}

/* g (N,C,...) -> (C) */
static ctn_tensor *channel_sum(const char *at, ctn_tensor *g)
{
    int64_t axes[CTN_MAX_DIMS] = {0};
    if (!g) return NULL;
    for (int i = 2; i < g->d.ndim; i++) axes[i - 1] = i;
    return ctn_sum_at(at, g, g->d.ndim - 1, axes, 0);
}

static ctn_status channel_affine_grad(const ctn_grad_args *a)
{
    const char *at = a->at;
    ctn_tensor *gy = a->gout[0];
    if (a->need[X]) a->gin[X] = ctn_channel_affine_at(at, gy, a->in[A], NULL);
    if (a->need[A]) a->gin[A] = channel_sum(at, ctn_mul_at(at, gy, a->in[X]));
    if (a->attr[BIAS] && a->need[B]) a->gin[B] = channel_sum(at, gy);
    for (int i = 0; i < a->nin; i++)
        if (a->need[i] && !a->gin[i]) return ctn_error_status();
    return CTN_OK;
}

ctn_op ctn__op_channel_affine = {
    .struct_size = sizeof(ctn_op),
    .name = "channel_affine",
    .nin = -1,
    .nout = 1,
    .order = -1,
    .grad_in = 1u << X | 1u << A,
    .inplace = 1u << X | 1u << RESIDUAL,
    .spatial_in = 1u << X | 1u << RESIDUAL,
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = channel_affine_infer,
    .grad = channel_affine_grad,
    .prepare = channel_affine_prepare,
    .run = channel_affine_run,
};

ctn_tensor *ctn_channel_affine_at(const char *at, ctn_tensor *x, ctn_tensor *a, ctn_tensor *b)
{
    int64_t attr[NATTR] = {0, 0, b != NULL};
    ctn_tensor *in[3] = {x, a, b};
    return ctn__apply1(at, NULL, &ctn__op_channel_affine, b ? 3 : 2, in, NATTR, attr, 0, NULL);
}
