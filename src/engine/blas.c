/* SPDX-License-Identifier: Apache-2.0
 *
 * The BLAS: the only file that calls it. OpenBLAS and Arm Performance Libraries have its C
 * interface. Used where oneDNN has only plain loops (onednn.h).
 */
#include "engine/blas.h"

#if CTN_HAVE_BLAS

#include <cblas.h>
#include <limits.h>

#include "catena_config.h"

const char *ctn__blas_name(void)
{
    return CTN_BUILD_BLAS;
}

bool ctn__blas_takes(int64_t m, int64_t n, int64_t k)
{
    return m <= INT_MAX && n <= INT_MAX && k <= INT_MAX;
}

void ctn__blas_gemm(const ctn__gemm_args *g)
{
    cblas_sgemm(CblasRowMajor, g->ta ? CblasTrans : CblasNoTrans, g->tb ? CblasTrans : CblasNoTrans,
                (int)g->m, (int)g->n, (int)g->k, 1.0f, g->a, (int)g->lda, g->b, (int)g->ldb,
                g->add ? 1.0f : 0.0f, g->c, (int)g->ldc);
}

#else

const char *ctn__blas_name(void)
{
    return NULL;
}

bool ctn__blas_takes(int64_t m, int64_t n, int64_t k)
{
    (void)m;
    (void)n;
    (void)k;
    return false;
}

void ctn__blas_gemm(const ctn__gemm_args *g)
{
    (void)g;
}

#endif
