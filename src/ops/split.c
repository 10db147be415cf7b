/* SPDX-License-Identifier: Apache-2.0
 *
 * split: pieces of given lengths along an axis, one output each. Attributes: the axis, then the
 * lengths. Gradient: the concatenation of the pieces' gradients.
 */
#include "ops/common/along.h"

enum { AXIS, SIZE0 };

static ctn_status split_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    int axis;
    int64_t sum = 0;
    char t[128];
    CTN_TRY(ctn__infer_axis(a, x, a->attr[AXIS], &axis));
    a->nout = a->nattr - SIZE0;
    for (int i = 0; i < a->nout; i++) {
        int64_t n = a->attr[SIZE0 + i];
        if (n < 0 || n > x->dim[axis])
            return ctn_fail(CTN_ESHAPE, "split: piece %d of axis %d of %s has length %lld", i, axis,
                            ctn__shape_text(x, t, sizeof t), (long long)n);
        a->out[i] = *x;
        a->out[i].dim[axis] = n;
        sum += n;
    }
    if (sum != x->dim[axis])
        return ctn_fail(
            CTN_ESHAPE,
            "split: the lengths of the pieces add up to %lld, axis %d of %s has length %lld",
            (long long)sum, axis, ctn__shape_text(x, t, sizeof t), (long long)x->dim[axis]);
    return CTN_OK;
}

static ctn_status split_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->din[0];
    int axis = ctn__axis(x->ndim, a->attr[AXIS]);
    ctn__along s = ctn__along_axis(x, axis);
    int64_t at = 0;
    for (int i = 0; i < a->nout; i++) {
        int64_t n = a->attr[SIZE0 + i];
        if (a->out[i])
            ctn__copy_block(&(ctn__block_copy){.dst = a->out[i],
                                               .src = a->in[0],
                                               .dn = n,
                                               .sn = s.n,
                                               .sat = at,
                                               .outer = s.outer,
                                               .len = n,
                                               .inner = s.inner,
                                               .dtype = x->dtype});
        at += n;
    }
    return CTN_OK;
}

static ctn_status split_grad(const ctn_grad_args *a)
{
    ctn_tensor *g[CTN_MAX_OUT];
    for (int i = 0; i < a->nout; i++) {
        const ctn_desc *d = &a->out[i]->d;
        g[i] = a->gout[i] ? a->gout[i] : ctn_full_at(a->at, a->ctx, 0, d->dtype, d->ndim, d->dim);
    }
    return ctn__grad_to(a, 0, ctn_concat_at(a->at, a->nout, g, a->attr[AXIS]));
}

ctn_op ctn__op_split = {
    .struct_size = sizeof(ctn_op),
    .name = "split",
    .nin = 1,
    .nout = CTN_MAX_OUT,
    .order = -1,
    .low_in = CTN_OPERAND(0),
    .low_out = CTN_OPERANDS(CTN_MAX_OUT),
    .infer = split_infer,
    .grad = split_grad,
    .run = split_run,
};

static ctn_status split_few(const char *at, ctn_tensor *x, int64_t axis, int n,
                            const int64_t *sizes, ctn_tensor **out)
{
    int64_t attr[SIZE0 + CTN_MAX_OUT] = {axis};
    ctn_tensor *piece[CTN_MAX_OUT]; /* all outputs of the op are set, out may be shorter */
    ctn_op_args args = {.nattr = SIZE0 + n, .attr = attr};
    memcpy(attr + SIZE0, sizes, (size_t)n * sizeof *sizes);
    CTN_TRY(ctn_apply_at(at, NULL, &ctn__op_split, 1, &x, &args, piece));
    memcpy(out, piece, (size_t)n * sizeof(ctn_tensor *));
    return CTN_OK;
}

/* More pieces than an op has outputs: x is split into groups of pieces, and these again, so every
 * element is copied log(n) / log(CTN_MAX_OUT) times, rounded up. */
static ctn_status split_any(const char *at, ctn_tensor *x, int64_t axis, int n,
                            const int64_t *sizes, ctn_tensor **out)
{
    int64_t sum[CTN_MAX_OUT] = {0}, group = 1; /* pieces per output of the first split */
    ctn_tensor *part[CTN_MAX_OUT];
    while (group * CTN_MAX_OUT < n) group *= CTN_MAX_OUT;
    if (group == 1) return split_few(at, x, axis, n, sizes, out);
    for (int i = 0; i < n; i++) sum[i / group] += sizes[i];
    const int parts = (int)((n + group - 1) / group);
    CTN_TRY(split_few(at, x, axis, parts, sum, part));
    for (int64_t i = 0; i < n; i += group)
        CTN_TRY(split_any(at, part[i / group], axis, (int)(n - i < group ? n - i : group),
                          sizes + i, out + i));
    return CTN_OK;
}

ctn_status ctn_split_at(const char *at, ctn_tensor *x, int64_t axis, int n, const int64_t *sizes,
                        ctn_tensor **out)
{
    char t[128];
    for (int i = 0; i < n; i++) out[i] = NULL;
    if (n < 1) return ctn_fail(CTN_EARG, "split: got %d pieces, expected at least 1 (%s)", n, at);
    const int64_t most = x && n > CTN_MAX_OUT ? ctn__count(&x->d) : INT64_MAX;
    for (int i = 0; i < n; i++) /* so that sums of groups neither overflow nor hide an error */
        if (x && n > CTN_MAX_OUT && (sizes[i] < 0 || sizes[i] > most))
            return ctn_fail(CTN_ESHAPE, "split: piece %d of %s has length %lld (%s)", i,
                            ctn__shape_text(&x->d, t, sizeof t), (long long)sizes[i], at);
    ctn_status st = split_any(at, x, axis, n, sizes, out);
    for (int i = 0; i < n && st < 0; i++) out[i] = NULL;
    return st;
}
