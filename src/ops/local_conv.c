/* SPDX-License-Identifier: Apache-2.0
 *
 * local_conv: a convolution with a kernel of its own at every position. It is not an op of its own:
 * the windows of x are multiplied by the kernels, one matrix product per position.
 */
#include "ops/ops.h"

ctn_tensor *ctn_local_conv_at(const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b,
                              const ctn_conv_opt *opt)
{
    char tx[128], tw[128];
    if (!x || !w) return ctn_matmul_at(at, x, w, 0, 0);
    const int n = x->d.ndim - 2;
    const int64_t *wd = w->d.dim;
    bool ok = n >= 1 && n <= CTN_MAX_SPATIAL && w->d.ndim == 2 + 2 * n && wd[1 + n] == x->d.dim[1];
    ctn_tensor *col = ok ? ctn_im2col_at(at, x, n, wd + 2 + n, opt) : NULL;
    if (ok && !col) return NULL;
    for (int i = 0; i < n && ok; i++) ok = col->d.dim[2 + i] == wd[1 + i];
    if (!ok) {
        ctn_fail(CTN_ESHAPE,
                 "local_conv: x is %s, the weight is %s; expected (N,I,...) and (O,out...,I,k...), "
                 "where out are the sizes of the result (%s)",
                 ctn__shape_text(&x->d, tx, sizeof tx), ctn__shape_text(&w->d, tw, sizeof tw), at);
        return NULL;
    }
    int64_t dims[2 + CTN_MAX_SPATIAL] = {x->d.dim[0], wd[0]}, places = 1;
    for (int i = 0; i < n; i++) {
        dims[2 + i] = wd[1 + i];
        places *= wd[1 + i];
    }
    const int64_t taps = col->d.dim[1];
    ctn_tensor *in[2] = {ctn_reshape_at(at, col, CTN_SHAPE(dims[0], taps, places)),
                         ctn_reshape_at(at, w, CTN_SHAPE(dims[1], places, taps))};
    ctn_tensor *y = ctn_einsum_at(at, "nkp,opk->nop", 2, in);
    y = ctn_reshape_at(at, y, 2 + n, dims);
    return b ? ctn_add_at(at, y, b) : y;
}
