/* SPDX-License-Identifier: Apache-2.0
 *
 * tril: zeros above diagonal k of the last two dimensions: y[r,c] = x[r,c] where c <= r + k.
 * Gradient: tril of gy.
 */
#include "ops/common/along.h"

enum { DIAGONAL };
static const char *const attr_names[] = {"diagonal"};

static ctn_status tril_infer(ctn_infer_args *a)
{
    char t[128];
    if (a->in[0]->ndim < 2)
        return ctn_fail(CTN_ESHAPE, "tril: %s needs at least 2 dimensions",
                        ctn__shape_text(a->in[0], t, sizeof t));
    a->out[0] = *a->in[0];
    return CTN_OK;
}

static ctn_status tril_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    const int64_t R = x->dim[x->ndim - 2], C = x->dim[x->ndim - 1], k = a->attr[DIAGONAL];
    const int64_t rows = C > 0 ? ctn__count(x) / C : 0, es = (int64_t)ctn_dtype_size(x->dtype);
#pragma omp parallel for schedule(static) if (rows * C > CTN__GRAIN)
    for (int64_t r = 0; r < rows; r++) {
        const char *from = (const char *)a->in[0] + r * C * es;
        char *to = (char *)a->out[0] + r * C * es;
        int64_t row = r % R, keep = k >= C ? C : k < -R ? 0 : row + k + 1;
        keep = keep < 0 ? 0 : keep > C ? C : keep;
        if (from != to) memcpy(to, from, (size_t)(keep * es));
        memset(to + keep * es, 0, (size_t)((C - keep) * es));
    }
    return CTN_OK;
}

static ctn_status tril_grad(const ctn_grad_args *a)
{
    return ctn__grad_to(a, 0, ctn_tril_at(a->at, a->gout[0], a->attr[DIAGONAL]));
}

ctn_op ctn__op_tril = {
    .struct_size = sizeof(ctn_op),
    .name = "tril",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .inplace = CTN_OPERAND(0),
    .attr_names = attr_names,
    .infer = tril_infer,
    .grad = tril_grad,
    .run = tril_run,
};

ctn_tensor *ctn_tril_at(const char *at, ctn_tensor *x, int64_t diagonal)
{
    return ctn__apply1(at, NULL, &ctn__op_tril, 1, &x, 1, &diagonal, 0, NULL);
}
