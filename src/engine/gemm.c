/* SPDX-License-Identifier: Apache-2.0
 *
 * A matrix product without a primitive, for kernels that multiply parts of their operands: any
 * number of rows, and results that are added to. oneDNN runs it with the kernel of its inner
 * product.
 */
#include "engine/onednn.h"

ctn_status ctn__gemm(const ctn__gemm_args *g)
{
    const dnnl_status_t s =
        dnnl_sgemm(g->ta ? 'T' : 'N', g->tb ? 'T' : 'N', g->m, g->n, g->k, 1.0f, g->a, g->lda, g->b,
                   g->ldb, g->add ? 1.0f : 0.0f, g->c, g->ldc);
    return s == dnnl_success ? CTN_OK : ctn__dnnl_fail(s, "matrix product");
}
