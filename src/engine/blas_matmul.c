/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products by a BLAS: C = act(A B + bias), one gemm per batch. Few batches share the
 * threads inside the BLAS; many batches run side by side, one thread each.
 */
#include "engine/blas.h"

/* A matrix as a gemm takes it: its rows are contiguous, or its columns are (turned). */
typedef struct {
    int64_t ld;
    bool turned;
} matrix;

typedef struct {
    ctn_desc a, b, c; /* with the number of dimensions of C; 1 broadcasts */
    matrix ma, mb;
    bool relu, add;
    int threads;
} product;

/* False: neither. A dimension of length 1 may have any stride. */
static bool is_matrix(matrix *m, const ctn_desc *d)
{
    const int n = d->ndim;
    const int64_t rows = d->dim[n - 2], cols = d->dim[n - 1];
    const int64_t down = d->stride[n - 2], across = d->stride[n - 1];
    if ((across == 1 || cols == 1) && (down >= cols || rows == 1)) {
        *m = (matrix){rows == 1 ? cols : down, false};
        return true;
    }
    if ((down == 1 || rows == 1) && (across >= rows || cols == 1)) {
        *m = (matrix){cols == 1 ? rows : across, true};
        return true;
    }
    return false;
}

static ctn_desc widened(const ctn_desc *d, int nd)
{
    ctn_desc r = *d;
    const int more = nd - d->ndim;
    r.ndim = nd;
    for (int i = nd - 1; i >= 0; i--) {
        r.dim[i] = i < more ? 1 : d->dim[i - more];
        r.stride[i] = i < more ? 0 : d->stride[i - more];
    }
    return r;
}

static int64_t offset(const ctn_desc *batch, const ctn_desc *d, int64_t i)
{
    int64_t at = 0;
    for (int k = batch->ndim - 3; k >= 0; k--) {
        if (d->dim[k] > 1) at += i % batch->dim[k] * d->stride[k];
        i /= batch->dim[k];
    }
    return at;
}

/* Adds the bias and applies relu to a matrix (m,n). */
static void finish(float *c, int64_t m, int64_t n, int64_t ld, const float *bias, bool relu)
{
    for (int64_t i = 0; i < m; i++) {
        float *y = c + i * ld;
        if (bias)
#pragma omp simd
            for (int64_t j = 0; j < n; j++) y[j] += bias[j];
        if (relu)
#pragma omp simd
            for (int64_t j = 0; j < n; j++) y[j] = y[j] < 0 ? 0 : y[j];
    }
}

static ctn_status run(const ctn__prim *prim, void *const *ptr, void *scratch)
{
    const product *p = prim->data;
    const int nd = p->c.ndim;
    const int64_t m = p->c.dim[nd - 2], n = p->c.dim[nd - 1], k = p->a.dim[nd - 1];
    const int64_t ld = m == 1 ? n : p->c.stride[nd - 2];
    int64_t batches = 1;
    (void)scratch;
    for (int i = 0; i < nd - 2; i++) batches *= p->c.dim[i];
    /* Inside a parallel region, the BLAS does not start threads. */
#pragma omp parallel for schedule(static) num_threads(p->threads) if (batches >= p->threads)
    for (int64_t i = 0; i < batches; i++) {
        float *c = (float *)ptr[3] + offset(&p->c, &p->c, i);
        const ctn__gemm_args g = {.m = m,
                                  .n = n,
                                  .k = k,
                                  .a = (const float *)ptr[0] + offset(&p->c, &p->a, i),
                                  .b = (const float *)ptr[1] + offset(&p->c, &p->b, i),
                                  .c = c,
                                  .lda = p->ma.ld,
                                  .ldb = p->mb.ld,
                                  .ldc = ld,
                                  .ta = p->ma.turned,
                                  .tb = p->mb.turned,
                                  .add = p->add};
        ctn__blas_gemm(&g);
        if (!ptr[2] && !p->relu) continue;
        if (batches > 1) {
            finish(c, m, n, ld, ptr[2], p->relu);
            continue;
        }
#pragma omp parallel for schedule(static) num_threads(p->threads)
        for (int64_t r = 0; r < m; r++) finish(c + r * ld, 1, n, ld, ptr[2], p->relu);
    }
    return CTN_OK;
}

ctn_status ctn__blas_matmul(ctn__prim **out, ctn__engine *e, const ctn_desc *a, const ctn_desc *b,
                            const ctn_desc *bias, const ctn_desc *c, ctn__elt act)
{
    const int nd = c->ndim;
    matrix mc;
    product p = {.a = widened(a, nd),
                 .b = widened(b, nd),
                 .c = *c,
                 .relu = act == CTN__ELT_RELU,
                 .add = act == CTN__ELT_ADD,
                 .threads = e->threads};
    *out = NULL;
    if (a->dtype != CTN_F32 || b->dtype != CTN_F32 || c->dtype != CTN_F32 || a->layout > 0 ||
        b->layout > 0 || c->layout > 0 ||
        !ctn__blas_takes(c->dim[nd - 2], c->dim[nd - 1], p.a.dim[nd - 1]) ||
        !is_matrix(&p.ma, &p.a) || !is_matrix(&p.mb, &p.b) || !is_matrix(&mc, &p.c) || mc.turned ||
        (bias && (bias->dtype != CTN_F32 || ctn__count(bias) != c->dim[nd - 1] ||
                  bias->dim[bias->ndim - 1] != c->dim[nd - 1] || !ctn__is_plain(bias))))
        return CTN_OK;
    return ctn__prim_own(out, e, "blas:matmul", run, &p, sizeof p, 0);
}
