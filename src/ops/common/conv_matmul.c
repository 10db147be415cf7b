/* SPDX-License-Identifier: Apache-2.0
 *
 * conv_weights as one matrix product over channels-last images. With the M rows of y, one per
 * sample and position,
 *   gW (O, K) = Y^T (O, M)  C (M, K),   K = kernel positions x input channels,
 * where row m of C holds the elements of x that element m of y reads. For a 1x1 kernel with
 * stride 1 C is x itself; otherwise it is gathered into scratch first. This beats the
 * convolution kernel for small images. The result is (O, kernel, I): row-major for 1x1,
 * otherwise reordered by the plan.
 */
#include "ops/common/conv.h"

enum { MOST_GATHERED = 32 << 20 }; /* bytes of C above which gathering never pays */

typedef struct {
    ctn__prim *product;
    size_t gathered; /* bytes of C; 0: C is x itself */
    int64_t K;
} gemm;

static void gemm_free(void *priv)
{
    gemm *g = priv;
    if (g) ctn__prim_free(g->product);
    ctn__free(g);
}

/* Gather row m of C from x. es: bytes of an element. */
static void gather_row(const ctn_run_args *a, int64_t m, char *row, size_t es)
{
    const ctn_desc *x = &a->din[0], *y = &a->din[1], *w = &a->dout[0];
    int s = x->ndim - 2;
    int64_t at[CTN_MAX_SPATIAL], taps = 1, n;
    for (int i = s - 1; i >= 0; i--) {
        at[i] = m % y->dim[2 + i] * a->attr[CTN__CONV_STRIDE + i] - a->attr[CTN__CONV_PAD + i];
        m /= y->dim[2 + i];
        taps *= w->dim[2 + i];
    }
    n = m;
    size_t bytes = (size_t)x->dim[1] * es;
    for (int64_t t = 0; t < taps; t++, row += bytes) {
        int64_t offset = n * x->stride[0], r = t;
        bool inside = true;
        for (int i = s - 1; i >= 0; i--) {
            int64_t p = at[i] + r % w->dim[2 + i] * a->attr[CTN__CONV_DILATION + i];
            r /= w->dim[2 + i];
            inside &= p >= 0 && p < x->dim[2 + i];
            offset += p * x->stride[2 + i];
        }
        if (inside) memcpy(row, (const char *)a->in[0] + (size_t)offset * es, bytes);
        else memset(row, 0, bytes);
    }
}

static ctn_status run_weights(const ctn_run_args *a)
{
    const gemm *g = a->priv;
    size_t es = ctn_dtype_size(a->din[0].dtype);
    char *gathered = a->scratch;
    void *c = (void *)(uintptr_t)a->in[0];
    if (g->gathered > 0) {
        int64_t M = ctn__count(&a->din[1]) / a->din[1].dim[1];
        c = gathered;
#pragma omp parallel for schedule(static)
        for (int64_t m = 0; m < M; m++) gather_row(a, m, gathered + (size_t)(m * g->K) * es, es);
    }
    void *ptr[4] = {(void *)(uintptr_t)a->in[1], c, NULL, a->out[0]};
    return ctn__prim_run(g->product, ptr, gathered + g->gathered);
}

static bool is_x_itself(const ctn_prepare_args *a)
{
    bool same = true;
    for (int i = 0; i < a->din[0].ndim - 2; i++)
        same &= a->dout[0].dim[2 + i] == 1 && a->attr[CTN__CONV_STRIDE + i] == 1 &&
                a->attr[CTN__CONV_PAD + i] == 0 && a->attr[CTN__CONV_PAD_END + i] == 0;
    return same;
}

static ctn_status prepare(ctn_prepare_args *a, bool outer)
{
    const ctn_desc *x = &a->din[0], *y = &a->din[1];
    ctn_desc *w = &a->dout[0];
    if (a->attr[CTN__CONV_GROUPS] != 1 || x->dtype == CTN_F64 || !ctn__is_channels_last(x) ||
        !ctn__is_channels_last(y) || ctn__count(x) == 0 || ctn__count(y) == 0)
        return CTN_END;
    int64_t O = y->dim[1], I = x->dim[1], M = ctn__count(y) / O, K = ctn__count(w) / O;
    size_t gathered = is_x_itself(a) ? 0 : (size_t)(M * K) * ctn_dtype_size(x->dtype);
    gathered = (gathered + CTN__ALIGN - 1) / CTN__ALIGN * CTN__ALIGN;
    if (gathered > MOST_GATHERED) return CTN_END;
    gemm *g = ctn__calloc(1, sizeof *g);
    if (!g) return CTN_ENOMEM;
    a->priv = g;
    a->priv_free = gemm_free;
    g->gathered = gathered;
    g->K = K;
    ctn_desc yt = {.dtype = y->dtype, .ndim = 2, .dim = {O, M}, .stride = {1, O}};
    ctn_desc c = {.dtype = x->dtype, .ndim = 2, .dim = {M, K}, .stride = {K, 1}};
    ctn_desc r = {.dtype = w->dtype, .ndim = 2, .dim = {O, K}, .stride = {K, 1}};
    if (outer) CTN_TRY(ctn__prim_inner(&g->product, a->engine, &yt, &c, NULL, &r, CTN__ELT_NONE));
    else CTN_TRY(ctn__prim_matmul(&g->product, a->engine, &yt, &c, NULL, &r, CTN__ELT_NONE));
    if (!g->product) return CTN_END;
    if (K != I) ctn__channels_last(w); /* (O, kernel, I) */
    a->scratch = gathered + ctn__prim_scratch(g->product);
    a->kernel = ctn__prim_name(g->product);
    a->priv_bytes = sizeof *g + ctn__prim_bytes(g->product);
    a->run = run_weights;
    return CTN_OK;
}

ctn_status ctn__conv_weights_matmul(ctn_prepare_args *a)
{
    return prepare(a, false);
}

ctn_status ctn__conv_weights_outer(ctn_prepare_args *a)
{
    return prepare(a, true);
}
