/* SPDX-License-Identifier: Apache-2.0
 *
 * im2col: the windows of a convolution, without padding, which is an op of its own:
 *   y[n,c,k...,o...] = x[n,c,o stride + k dilation...]
 * It is one strided copy. Gradient: im2col_grad, which adds the windows back to where they came
 * from; its gradient is im2col again. The public function joins c and k.
 */
#include "ops/common/along.h"
#include "ops/common/conv.h"

/* Attributes of spatial dimension i. */
enum { KERNEL, STRIDE, DILATION, SIZE, PER_DIM };
static const char *const attr_names[] = {"kernel 0", "stride 0", "dilation 0", "size 0",
                                         "kernel 1", "stride 1", "dilation 1", "size 1",
                                         "kernel 2", "stride 2", "dilation 2", "size 2"};

/* x, of shape (N,C,spatial...), seen as its windows (N,C,k...,o...). */
static ctn_desc windows(const ctn_desc *x, const int64_t *attr, int n)
{
    ctn_desc w = *x;
    w.ndim = 2 + 2 * n;
    for (int i = 0; i < n; i++) {
        const int64_t *d = attr + PER_DIM * i;
        w.dim[2 + i] = d[KERNEL];
        w.stride[2 + i] = x->stride[2 + i] * d[DILATION];
        w.dim[2 + n + i] = (d[SIZE] - d[DILATION] * (d[KERNEL] - 1) - 1) / d[STRIDE] + 1;
        w.stride[2 + n + i] = x->stride[2 + i] * d[STRIDE];
    }
    return w;
}

static ctn_status im2col_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0];
    const int n = a->nattr / PER_DIM;
    char t[128];
    CTN_TRY(ctn__infer_arith(a, x));
    for (int i = 0; i < n; i++) {
        const int64_t *d = a->attr + PER_DIM * i;
        if (d[KERNEL] < 1 || d[STRIDE] < 1 || d[DILATION] < 1 || d[SIZE] < d[KERNEL] ||
            (d[KERNEL] > 1 && d[DILATION] > (d[SIZE] - 1) / (d[KERNEL] - 1)))
            return ctn_fail(CTN_ESHAPE,
                            "im2col: x is %s with its padding; a kernel of %lld with stride %lld "
                            "and dilation %lld does not fit spatial dimension %d",
                            ctn__shape_text(x, t, sizeof t), (long long)d[KERNEL],
                            (long long)d[STRIDE], (long long)d[DILATION], i);
    }
    const ctn_desc w = windows(x, a->attr, n);
    return ctn__desc_set(&a->out[0], a->name, x->dtype, w.ndim, w.dim);
}

static ctn_status im2col_grad_infer(ctn_infer_args *a)
{
    const ctn_desc *g = a->in[0];
    const int n = a->nattr / PER_DIM;
    int64_t dims[2 + CTN_MAX_SPATIAL] = {g->dim[0], g->dim[1]};
    for (int i = 0; i < n; i++) dims[2 + i] = a->attr[PER_DIM * i + SIZE];
    return ctn__desc_set(&a->out[0], a->name, g->dtype, 2 + n, dims);
}

static ctn_status im2col_run(const ctn_run_args *a)
{
    const ctn_desc from = windows(&a->din[0], a->attr, a->nattr / PER_DIM);
    ctn__copy_view(a->out[0], &a->dout[0], a->in[0], &from);
    return CTN_OK;
}

/* gx of one channel, of shape `size`, from the windows w of it, in the order of the windows. */
#define DEFINE_ADD(T)                                                       \
    static void add_##T(T *gx, const T *g, const ctn_desc *w, int64_t size) \
    {                                                                       \
        const int last = w->ndim - 1;                                       \
        const int64_t run = w->dim[last], step = w->stride[last];           \
        int64_t rows = 1;                                                   \
        for (int i = 2; i < last; i++) rows *= w->dim[i];                   \
        memset(gx, 0, (size_t)size * sizeof(T));                            \
        for (int64_t r = 0; r < rows; r++, g += run) {                      \
            int64_t to = 0, q = r;                                          \
            for (int i = last - 1; i >= 2; i--) {                           \
                to += q % w->dim[i] * w->stride[i];                         \
                q /= w->dim[i];                                             \
            }                                                               \
            for (int64_t o = 0; o < run; o++) gx[to + o * step] += g[o];    \
        }                                                                   \
    }
DEFINE_ADD(float)
DEFINE_ADD(double)

static ctn_status im2col_grad_run(const ctn_run_args *a)
{
    const ctn_desc *x = &a->dout[0], w = windows(x, a->attr, a->nattr / PER_DIM);
    const int64_t channels = x->dim[0] * x->dim[1];
    const int64_t size = channels > 0 ? ctn__count(x) / channels : 0;
    const int64_t each = channels > 0 ? ctn__count(&w) / channels : 0;
#pragma omp parallel for schedule(static) if (channels * each > CTN__GRAIN)
    for (int64_t c = 0; c < channels; c++) {
        if (x->dtype == CTN_F32)
            add_float((float *)a->out[0] + c * size, (const float *)a->in[0] + c * each, &w, size);
        else
            add_double((double *)a->out[0] + c * size, (const double *)a->in[0] + c * each, &w,
                       size);
    }
    return CTN_OK;
}

static ctn_status record(const ctn_grad_args *a, ctn_op *op)
{
    return ctn__grad_to(a, 0, ctn__apply1(a->at, NULL, op, 1, a->gout, a->nattr, a->attr, 0, NULL));
}

static ctn_status im2col_grad_of(const ctn_grad_args *a)
{
    return record(a, &ctn__op_im2col_grad);
}

static ctn_status im2col_grad_grad(const ctn_grad_args *a)
{
    return record(a, &ctn__op_im2col);
}

ctn_op ctn__op_im2col = {
    .struct_size = sizeof(ctn_op),
    .name = "im2col",
    .nin = 1,
    .nout = 1,
    .flags = CTN_OP_STRIDED,
    .order = -1,
    .attr_names = attr_names,
    .infer = im2col_infer,
    .grad = im2col_grad_of,
    .run = im2col_run,
};

ctn_op ctn__op_im2col_grad = {
    .struct_size = sizeof(ctn_op),
    .name = "im2col_grad",
    .nin = 1,
    .nout = 1,
    .order = -1,
    .attr_names = attr_names,
    .infer = im2col_grad_infer,
    .grad = im2col_grad_grad,
    .run = im2col_grad_run,
};

ctn_tensor *ctn_im2col_at(const char *at, ctn_tensor *x, int spatial, const int64_t *kernel,
                          const ctn_conv_opt *opt)
{
    int64_t attr[PER_DIM * CTN_MAX_SPATIAL], how[CTN__CONV_NATTR], dims[2 + CTN_MAX_SPATIAL];
    char t[128];
    ctn_conv_opt o;
    if (ctn__conv_opt(how, &o, "im2col", opt) < 0) return NULL;
    if (x && (spatial < 1 || spatial > CTN_MAX_SPATIAL || x->d.ndim != 2 + spatial)) {
        ctn_fail(CTN_ESHAPE,
                 "im2col: x is %s, the kernel has %d dimensions; expected (N,C,...) with 1 to 3 "
                 "spatial dimensions (%s)",
                 ctn__shape_text(&x->d, t, sizeof t), spatial, at);
        return NULL;
    }
    if (x) x = ctn__conv_pad(at, x, o.pad_mode, how);
    for (int i = 0; x && i < spatial; i++) {
        int64_t *d = attr + PER_DIM * i;
        d[KERNEL] = kernel[i];
        d[STRIDE] = how[CTN__CONV_STRIDE + i];
        d[DILATION] = how[CTN__CONV_DILATION + i];
        d[SIZE] = x->d.dim[2 + i];
    }
    ctn_tensor *y =
        ctn__apply1(at, NULL, &ctn__op_im2col, 1, &x, x ? PER_DIM * spatial : 0, attr, 0, NULL);
    if (!y) return NULL;
    dims[0] = y->d.dim[0];
    dims[1] = y->d.dim[1];
    for (int i = 0; i < spatial; i++) {
        dims[1] *= kernel[i];
        dims[2 + i] = y->d.dim[2 + spatial + i];
    }
    return ctn_reshape_at(at, y, 2 + spatial, dims);
}
