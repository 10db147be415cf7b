/* SPDX-License-Identifier: Apache-2.0
 *
 * max_pool: y = the largest element of each window; padding never wins, NaN always does. The
 * second output is the index of that element in its window, the first among equal ones. The
 * gradient uses it:
 *   gx_i = sum of gy_o over the windows o whose maximum is element i
 * This is linear in gy; its own gradient picks the elements at the same indices.
 */
#include "ops/common/pool.h"

static const char *const attr_names[] = {CTN__P_SIZE_NAMES, CTN__P_WINDOW_NAMES};

static bool is_wide(const int64_t *attr)
{
    const int64_t *k = attr + CTN__P_KERNEL;
    return k[0] * k[1] * k[2] > 256;
}

static ctn_status max_pool_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__pool_infer(a));
    a->out[1] = a->out[0];
    a->out[1].dtype = is_wide(a->attr) ? CTN_I32 : CTN_U8;
    return CTN_OK;
}

/* x and y are the float operands of the op, in either order. */
static ctn__windows windows_of(const int64_t *attr, const ctn_desc *x, const ctn_desc *y,
                               const ctn_desc *index)
{
    ctn__windows w = {.dtype = x->dtype, .wide = is_wide(attr)};
    ctn__pool_layout(3, (const ctn_desc *[]){x, y, index}, &w.outer, &w.inner);
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        w.in[i] = attr[CTN__P_IN + i];
        w.out[i] = attr[CTN__P_OUT + i];
        w.kernel[i] = attr[CTN__P_KERNEL + i];
        w.stride[i] = attr[CTN__P_STRIDE + i];
        w.pad[i] = attr[CTN__P_PAD + i];
    }
    return w;
}

/* The indices get the layout of y, even if the plan has to keep both for the user. */
static ctn_status max_pool_prepare(ctn_prepare_args *a)
{
    if (ctn__is_channels_last(&a->din[0]) && ctn__is_channels_last(&a->dout[0]))
        ctn__channels_last(&a->dout[1]);
    return CTN_OK;
}

static ctn_status max_pool_run(const ctn_run_args *a)
{
    ctn__windows w = windows_of(a->attr, &a->din[0], &a->dout[0], &a->dout[1]);
    ctn__max_pool(&w, a->in[0], a->out[0], a->out[1]);
    return CTN_OK;
}

static ctn_tensor *by_index(const ctn_grad_args *a, ctn_op *op, ctn_tensor *index)
{
    ctn_tensor *in[2] = {a->gout[0], index};
    return ctn__apply1(a->at, NULL, op, 2, in, a->nattr, a->attr, 0, NULL);
}

static ctn_status max_pool_grad_of(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, by_index(a, &ctn__op_max_pool_grad, a->out[1]));
}

ctn_op ctn__op_max_pool = {
    .struct_size = sizeof(ctn_op),
    .name = "max_pool",
    .nin = 1,
    .nout = 2,
    .order = -1,
    .grad_out = CTN_OPERAND(1),
    .spatial_in = CTN_OPERAND(0),
    .spatial_out = CTN_OPERANDS(2),
    .attr_names = attr_names,
    .infer = max_pool_infer,
    .grad = max_pool_grad_of,
    .prepare = max_pool_prepare,
    .run = max_pool_run,
};

/* ---- (gy, index) -> gx ----------------------------------------------------------------------- */

static ctn_status max_pool_grad_prepare(ctn_prepare_args *a)
{
    ctn__windows w = windows_of(a->attr, &a->din[0], &a->dout[0], &a->din[1]);
    a->scratch = ctn__max_pool_scratch(&w, a->threads);
    return CTN_OK;
}

static ctn_status max_pool_grad_run(const ctn_run_args *a)
{
    ctn__windows w = windows_of(a->attr, &a->din[0], &a->dout[0], &a->din[1]);
    ctn__max_pool_back(&w, a->in[0], a->in[1], a->out[0], a->scratch);
    return CTN_OK;
}

static ctn_status max_pool_grad_grad_of(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, by_index(a, &ctn__op_max_pool_grad_grad, a->in[1]));
}

ctn_op ctn__op_max_pool_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "max_pool_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .spatial_in = CTN_OPERANDS(2),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = ctn__pool_grad_infer,
    .grad = max_pool_grad_grad_of,
    .prepare = max_pool_grad_prepare,
    .run = max_pool_grad_run,
};

/* ---- (gradient by gx, index) -> gradient by gy ----------------------------------------------- */

static ctn_status max_pool_grad_grad_run(const ctn_run_args *a)
{
    ctn__windows w = windows_of(a->attr, &a->din[0], &a->dout[0], &a->din[1]);
    ctn__max_pool_pick(&w, a->in[0], a->in[1], a->out[0]);
    return CTN_OK;
}

static ctn_status max_pool_grad_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, by_index(a, &ctn__op_max_pool_grad, a->in[1]));
}

ctn_op ctn__op_max_pool_grad_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "max_pool_grad_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .spatial_in = CTN_OPERANDS(2),
    .spatial_out = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = ctn__pool_infer,
    .grad = max_pool_grad_grad_grad,
    .run = max_pool_grad_grad_run,
};

/* ---- places of the user -> the same, checked ------------------------------------------------- */

/* Is position k of window o of one sample inside x? */
static bool is_inside(const int64_t *attr, int64_t o, int64_t k)
{
    for (int i = CTN_MAX_SPATIAL - 1; i >= 0; i--) {
        const int64_t K = attr[CTN__P_KERNEL + i], O = attr[CTN__P_OUT + i];
        const int64_t at = o % O * attr[CTN__P_STRIDE + i] - attr[CTN__P_PAD + i] + k % K;
        if (at < 0 || at >= attr[CTN__P_IN + i]) return false;
        o /= O;
        k /= K;
    }
    return k == 0;
}

/* The kernels of max_pool_grad trust their positions, because max_pool made them. */
static ctn_status max_unpool_places_run(const ctn_run_args *a)
{
    const ctn_desc *d = &a->din[0];
    const int64_t *O = a->attr + CTN__P_OUT, windows = O[0] * O[1] * O[2];
    for (int64_t i = 0; i < ctn__count(d); i++) {
        const int64_t k =
            d->dtype == CTN_I32 ? ((const int32_t *)a->in[0])[i] : ((const uint8_t *)a->in[0])[i];
        if (k < 0 || !is_inside(a->attr, i % windows, k))
            return ctn_fail(CTN_EARG,
                            "max_unpool: places has %lld at element %lld, which is not a position "
                            "of that window inside the result",
                            (long long)k, (long long)i);
    }
    if (a->out[0] != a->in[0]) memcpy(a->out[0], a->in[0], ctn__bytes(d));
    return CTN_OK;
}

static ctn_status max_unpool_places_infer(ctn_infer_args *a)
{
    a->out[0] = *a->in[0];
    return CTN_OK;
}

ctn_op ctn__op_max_unpool_places = {
    .struct_size = sizeof(ctn_op),
    .name = "max_unpool_places",
    .nin = 1,
    .nout = 1,
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = max_unpool_places_infer,
    .run = max_unpool_places_run,
};

ctn_status ctn_max_pool_places_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt,
                                  ctn_tensor **y, ctn_tensor **places)
{
    int64_t attr[CTN__P_WINDOWS];
    ctn_tensor *out[2];
    *y = *places = NULL;
    CTN_TRY(ctn__pool_windows("max_pool", at, x, opt, attr));
    ctn_op_args args = {.nattr = CTN__P_WINDOWS, .attr = attr};
    CTN_TRY(ctn_apply_at(at, NULL, &ctn__op_max_pool, 1, &x, &args, out));
    *y = out[0];
    *places = out[1];
    return CTN_OK;
}

ctn_tensor *ctn_max_pool_at(const char *at, ctn_tensor *x, const ctn_pool_opt *opt)
{
    ctn_tensor *y, *places;
    return ctn_max_pool_places_at(at, x, opt, &y, &places) < 0 ? NULL : y;
}

/* This is the gradient of the pooling, applied to y. */
ctn_tensor *ctn_max_unpool_at(const char *at, ctn_tensor *y, ctn_tensor *places,
                              const ctn_pool_opt *opt, int n, const int64_t *size)
{
    int64_t attr[CTN__P_WINDOWS];
    char ty[128], tp[128];
    ctn_tensor *in[2] = {y, places}, large;
    if (!y || !places)
        return ctn__apply1(at, NULL, &ctn__op_max_pool_grad, 2, in, 0, NULL, 0, NULL);
    large.d = y->d; /* only its shape is read, to find the windows */
    bool ok = n == y->d.ndim - 2 && ctn__same_shape(&y->d, &places->d);
    for (int i = 0; ok && i < n; i++) large.d.dim[2 + i] = size[i];
    if (ok && ctn__desc_check(&large.d, "max_unpool") < 0) return NULL;
    if (ok && ctn__pool_windows("max_unpool", at, &large, opt, attr) < 0) return NULL;
    for (int i = 0; ok && i < n; i++)
        ok = attr[CTN__P_OUT + CTN_MAX_SPATIAL - n + i] == y->d.dim[2 + i];
    if (!ok || places->d.dtype != (is_wide(attr) ? CTN_I32 : CTN_U8)) {
        ctn_fail(CTN_ESHAPE,
                 "max_unpool: y is %s, places is %s %s; they are not the results of such a pooling "
                 "(%s)",
                 ctn__shape_text(&y->d, ty, sizeof ty), ctn_dtype_name(places->d.dtype),
                 ctn__shape_text(&places->d, tp, sizeof tp), at);
        return NULL;
    }
    in[1] = ctn__apply1(at, NULL, &ctn__op_max_unpool_places, 1, &places, CTN__P_WINDOWS, attr, 0,
                        NULL);
    return ctn__apply1(at, NULL, &ctn__op_max_pool_grad, 2, in, CTN__P_WINDOWS, attr, 0, NULL);
}
