/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix product without a primitive, for kernels that multiply parts of their operands: any
 * number of rows, and results that are added to. On x86, oneDNN runs it with the kernel of its
 * inner product. Elsewhere oneDNN has loops, and a BLAS is used if there is one.
 */
#include "engine/blas.h"

ctn_status ctn__gemm(const ctn__gemm_args *g)
{
    if (ctn__blas_takes(g->m, g->n, g->k)) {
        ctn__blas_gemm(g);
        return CTN_OK;
    }
    const dnnl_status_t s =
        dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k, 1.0f, g->a, g->lda, g->b,
                   g->ldb, g->add ? 1.0f : 0.0f, g->c, g->ldc);
    return s == dnnl_success ? CTN_OK : ctn__dnnl_fail(s, "matrix product");
}
