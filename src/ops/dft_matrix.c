/* SPDX-License-Identifier: Apache-2.0
 *
 * dft_matrix: the matrix of a Fourier transform of which only the k lowest frequencies are kept,
 * for products that compute no others (common/fft.h has the formulas). At k far below n such a
 * product is faster than a fast transform: it costs 4k operations per number at the speed of a
 * matrix product. The matrix is computed once per plan; a run copies it. No inputs, no gradient.
 */
#include "ops/common/fft.h"

enum { DTYPE, LENGTH, KEPT, COMPLEX, INVERSE, NATTR };
static const char *const attr_names[] = {"dtype", "length", "modes", "complex", "inverse"};

static ctn_status dft_matrix_infer(ctn_infer_args *a)
{
    const int64_t n = a->attr[LENGTH], k = a->attr[KEPT];
    const bool complex = a->attr[COMPLEX] != 0;
    if (n < 1 || k < 1 || n > INT64_C(1) << 40 || (complex ? k > n / 2 : k > n / 2 + 1))
        return ctn_fail(CTN_ESHAPE,
                        "dft_matrix: cannot keep %lld modes of %lld points, at most %lld",
                        (long long)k, (long long)n, (long long)(complex ? n / 2 : n / 2 + 1));
    const int64_t dim[2] = {complex ? 2 * n : n, complex ? 4 * k : 2 * k};
    return ctn__desc_set(&a->out[0], a->name, (ctn_dtype)a->attr[DTYPE], 2, dim);
}

/* Row j of a real transform: cos, -sin of each frequency. */
static void fill_real(void *m, ctn_dtype t, int64_t n, int64_t k, bool inverse)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t f = 0; f < k; f++) {
            double c, s, u = inverse ? (f == 0 || 2 * f == n ? 1 : 2) / (double)n : 1;
            ctn__fft_root(j * f, n, &c, &s);
            ctn__elem_set(m, t, 2 * (j * k + f), u * c);
            ctn__elem_set(m, t, 2 * (j * k + f) + 1, -u * s);
        }
}

/* Rows 2j and 2j + 1, for the real and imaginary part of x_j. */
static void fill_complex(void *m, ctn_dtype t, int64_t n, int64_t k, bool inverse)
{
    const double u = inverse ? 1 / (double)n : 1;
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = 0; i < 2 * k; i++) {
            const int64_t f = i < k ? i : n - 2 * k + i, row = 8 * j * k, at = row + 2 * i;
            double c, s;
            ctn__fft_root(j * f, n, &c, &s);
            ctn__elem_set(m, t, at, u * c);
            ctn__elem_set(m, t, at + 1, -u * s);
            ctn__elem_set(m, t, at + 4 * k, u * s);
            ctn__elem_set(m, t, at + 4 * k + 1, u * c);
        }
}

static ctn_status dft_matrix_prepare(ctn_prepare_args *a)
{
    const ctn_dtype t = a->dout[0].dtype;
    a->priv_bytes = (size_t)ctn__count(&a->dout[0]) * ctn_dtype_size(t);
    a->priv = ctn__malloc(a->priv_bytes);
    if (!a->priv) return CTN_ENOMEM;
    a->priv_free = ctn__free;
    a->kernel = "copy";
    (a->attr[COMPLEX] ? fill_complex : fill_real)(a->priv, t, a->attr[LENGTH], a->attr[KEPT],
                                                  a->attr[INVERSE] != 0);
    return CTN_OK;
}

static ctn_status dft_matrix_run(const ctn_run_args *a)
{
    memcpy(a->out[0], a->priv, (size_t)ctn__count(&a->dout[0]) * ctn_dtype_size(a->dout[0].dtype));
    return CTN_OK;
}

ctn_op ctn__op_dft_matrix = {
    .struct_size = sizeof(ctn_op),
    .name = "dft_matrix",
    .nin = 0,
    .nout = 1,
    .order = 0,
    .attr_names = attr_names,
    .infer = dft_matrix_infer,
    .prepare = dft_matrix_prepare,
    .run = dft_matrix_run,
};

ctn_tensor *ctn__dft_matrix(const char *at, ctn_context *ctx, ctn_dtype dtype, int64_t n, int64_t k,
                            bool complex, bool inverse)
{
    const int64_t attr[NATTR] = {dtype, n, k, complex, inverse};
    return ctn__apply1(at, ctx, &ctn__op_dft_matrix, 0, NULL, NATTR, attr, 0, NULL);
}
