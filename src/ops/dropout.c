/* SPDX-License-Identifier: Apache-2.0
 *
 * dropout: y = x / (1 - rate) where the element is kept, else 0. An element is kept if its word of
 * the call's random stream is at least rate 2^32. The second output is the mask, which the
 * gradient reuses: gx = gy / (1 - rate) where kept. In evaluation nothing is recorded. The
 * attribute is the dimension of the samples.
 */
#include "ops/common/random.h"

static const char *const attr_names[] = {"axis"};

static ctn_status dropout_infer(ctn_infer_args *a)
{
    CTN_TRY(ctn__infer_same(a));
    a->out[1] = a->out[0];
    a->out[1].dtype = CTN_U8;
    return CTN_OK;
}

#define APPLY(T)                                                                               \
    static void apply_##T(const T *x, const unsigned char *mask, T *y, int64_t n, double rate) \
    {                                                                                          \
        T scale = (T)(1 / (1 - rate));                                                         \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                                    \
        {                                                                                      \
            T v = x[i] * scale;                                                                \
            y[i] = mask[i] ? v : 0;                                                            \
        }                                                                                      \
    }
APPLY(float)
APPLY(double)

/* n elements, starting with element i. */
static void apply(const ctn_run_args *a, const unsigned char *mask, int64_t i, int64_t n)
{
    if (a->dout[0].dtype == CTN_F32)
        apply_float((const float *)a->in[0] + i, mask, (float *)a->out[0] + i, n, a->scalar[0]);
    else apply_double((const double *)a->in[0] + i, mask, (double *)a->out[0] + i, n, a->scalar[0]);
}

static ctn_status dropout_run(const ctn_run_args *a)
{
    int64_t n = ctn__count(&a->dout[0]), nb = (n + CTN__WORDS - 1) / CTN__WORDS;
    const uint32_t limit = (uint32_t)(a->scalar[0] * 0x1p32);
    const ctn__draws draws = ctn__draws_of(a, &a->dout[0], (int)a->attr[0]);
#pragma omp parallel for schedule(static) if (nb > 1)
    for (int64_t b = 0; b < nb; b++) {
        uint32_t w[CTN__WORDS];
        unsigned char mask[CTN__WORDS];
        int64_t i = b * CTN__WORDS, m = n - i < CTN__WORDS ? n - i : CTN__WORDS;
        ctn__random_elements(&draws, i, m, w);
#pragma omp simd
        for (int k = 0; k < m; k++) mask[k] = w[k] >= limit;
        apply(a, mask, i, m);
        if (a->out[1]) memcpy((unsigned char *)a->out[1] + i, mask, (size_t)m);
    }
    return CTN_OK;
}

static ctn_tensor *masked(const ctn_grad_args *a, ctn_tensor *g, ctn_tensor *mask)
{
    ctn_tensor *in[2] = {g, mask};
    return ctn__apply1(a->at, NULL, &ctn__op_dropout_grad, 2, in, 0, NULL, 1, a->scalar);
}

static ctn_status dropout_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, masked(a, a->gout[0], a->out[1]));
}

ctn_op ctn__op_dropout = {
    .struct_size = sizeof(ctn_op),
    .name = "dropout",
    .nin = 1,
    .nout = 2,
    .flags = CTN_OP_RANDOM | CTN_OP_TRAIN,
    .order = -1,
    .grad_out = CTN_OPERAND(1),
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = dropout_infer,
    .grad = dropout_grad,
    .run = dropout_run,
};

/* (gy, mask) -> gx: linear in gy, so it is its own gradient. */
static ctn_status dropout_grad_run(const ctn_run_args *a)
{
    int64_t n = ctn__count(&a->dout[0]), nb = (n + CTN__WORDS - 1) / CTN__WORDS;
#pragma omp parallel for schedule(static) if (n > CTN__GRAIN)
    for (int64_t b = 0; b < nb; b++) {
        int64_t i = b * CTN__WORDS, m = n - i < CTN__WORDS ? n - i : CTN__WORDS;
        apply(a, (const unsigned char *)a->in[1] + i, i, m);
    }
    return CTN_OK;
}

static ctn_status dropout_grad_grad(const ctn_grad_args *a)
{
    if (!a->need[0]) return CTN_OK;
    return ctn__grad_to(a, 0, masked(a, a->gout[0], a->in[1]));
}

ctn_op ctn__op_dropout_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "dropout_grad",
    .nin = 2,
    .nout = 1,
    .order = -1,
    .grad_in = CTN_OPERAND(1),
    .inplace = CTN_OPERAND(0),
    .infer = ctn__infer_same,
    .grad = dropout_grad_grad,
    .run = dropout_grad_run,
};

ctn_tensor *ctn__dropout_along(const char *at, ctn_tensor *x, double rate, int64_t axis)
{
    if (!(rate >= 0 && rate < 1)) {
        ctn_fail(CTN_EARG, "dropout: rate is %g, expected at least 0 and below 1 (%s)", rate, at);
        return NULL;
    }
    if (!x || !ctn_context_training(x->ctx)) return x;
    return ctn__apply1(at, NULL, &ctn__op_dropout, 1, &x, 1, &axis, 1, &CTN_CONST(rate));
}

ctn_tensor *ctn_dropout_at(const char *at, ctn_tensor *x, double rate)
{
    return ctn__dropout_along(at, x, rate, 0);
}
