/* SPDX-License-Identifier: Apache-2.0
 *
 * deform_conv: a convolution whose taps have offsets. It is not an op of its own: grid_sample reads
 * x at the places of all taps, and a matrix product multiplies what it finds by the weights.
 */
#include "ops/common/conv.h"

/* What the shapes and options say: arrays have a number per dimension, vertical first. */
typedef struct {
    int64_t N, I, O, kernel[2], out[2];
    int64_t stride[2], pad[2], dilation[2];
} sizes;

static ctn_status refuse(const char *at, ctn_tensor *x, ctn_tensor *offset, ctn_tensor *w)
{
    char tx[128], to[128], tw[128];
    return ctn_fail(CTN_ESHAPE,
                    "deform_conv: x is %s, offset is %s, the weight is %s; expected (N,I,H,W), "
                    "(N,2 kh kw,h,w) and (O,I,kh,kw), where h and w are the sizes of the result "
                    "(%s)",
                    ctn__shape_text(&x->d, tx, sizeof tx),
                    ctn__shape_text(&offset->d, to, sizeof to),
                    ctn__shape_text(&w->d, tw, sizeof tw), at);
}

static ctn_status find_sizes(const char *at, ctn_tensor *x, ctn_tensor *offset, ctn_tensor *w,
                             const ctn_conv_opt *opt, sizes *s)
{
    int64_t attr[CTN__CONV_NATTR];
    ctn_conv_opt o;
    CTN_TRY(ctn__conv_opt(attr, &o, "deform_conv", opt));
    if (attr[CTN__CONV_GROUPS] != 1 || o.pad_mode != CTN_PAD_ZEROS)
        return ctn_fail(CTN_EARG,
                        "deform_conv: groups is %lld and pad_mode %d, expected 1 and CTN_PAD_ZEROS "
                        "(%s)",
                        (long long)attr[CTN__CONV_GROUPS], (int)o.pad_mode, at);
    if (x->d.ndim != 4 || offset->d.ndim != 4 || w->d.ndim != 4 || w->d.dim[2] > CTN__CONV_MOST ||
        w->d.dim[3] > CTN__CONV_MOST)
        return refuse(at, x, offset, w);
    *s = (sizes){.N = x->d.dim[0], .I = x->d.dim[1], .O = w->d.dim[0]};
    bool ok = w->d.dim[1] == s->I && offset->d.dim[0] == s->N &&
              offset->d.dim[1] == 2 * w->d.dim[2] * w->d.dim[3];
    for (int i = 0; i < 2; i++) {
        s->kernel[i] = w->d.dim[2 + i];
        s->out[i] = offset->d.dim[2 + i];
        s->stride[i] = attr[CTN__CONV_STRIDE + i];
        s->pad[i] = attr[CTN__CONV_PAD + i];
        s->dilation[i] = attr[CTN__CONV_DILATION + i];
        if (s->stride[i] < 1 || s->dilation[i] < 1)
            return ctn_fail(CTN_EARG, "deform_conv: strides and dilations must be at least 1 (%s)",
                            at);
        const int64_t room = x->d.dim[2 + i] + s->pad[i] + attr[CTN__CONV_PAD_END + i] -
                             s->dilation[i] * (s->kernel[i] - 1) - 1;
        ok = ok && room >= 0 && s->out[i] == room / s->stride[i] + 1;
    }
    return ok ? CTN_OK : refuse(at, x, offset, w);
}

/* first, first + step, ...: n numbers along one of 5 dimensions. */
static ctn_tensor *numbers(const char *at, const ctn_tensor *like, int64_t n, int64_t first,
                           int64_t step, int along)
{
    int64_t dims[5] = {1, 1, 1, 1, 1};
    dims[along] = n;
    ctn_tensor *one = ctn_full_at(at, like->ctx, 1, like->d.dtype, 5, dims);
    ctn_tensor *count = ctn_cumsum_at(at, one, along, 0); /* from 1 */
    return ctn_shift_at(at, ctn_scale_at(at, count, (double)step), (double)(first - step));
}

/* The places of all taps, (N,kh kw,h w,2), from offset (N,2 kh kw,h,w). */
static ctn_tensor *places(const char *at, ctn_tensor *offset, const sizes *s)
{
    const int64_t taps = s->kernel[0] * s->kernel[1], points = s->out[0] * s->out[1];
    ctn_tensor *part[2];
    for (int i = 0; i < 2; i++) { /* horizontal, vertical */
        const int dim = 1 - i;
        ctn_tensor *tap =
            numbers(at, offset, s->kernel[dim], -s->pad[dim], s->dilation[dim], 1 + dim);
        ctn_tensor *corner = numbers(at, offset, s->out[dim], 0, s->stride[dim], 3 + dim);
        ctn_tensor *moved =
            ctn_reshape_at(at, ctn_slice_at(at, offset, 1, i * taps, taps),
                           CTN_SHAPE(s->N, s->kernel[0], s->kernel[1], s->out[0], s->out[1]));
        part[i] = ctn_add_at(at, moved, ctn_add_at(at, tap, corner));
    }
    return ctn_reshape_at(at, ctn_stack_at(at, 2, part, -1), CTN_SHAPE(s->N, taps, points, 2));
}

/* found (N,I,kh kw,h w) times mask (N,kh kw,h,w) */
static ctn_tensor *masked(const char *at, ctn_tensor *found, ctn_tensor *mask, const sizes *s)
{
    const int64_t taps = s->kernel[0] * s->kernel[1];
    char t[128];
    if (mask->d.ndim != 4 || mask->d.dim[0] != s->N || mask->d.dim[1] != taps ||
        mask->d.dim[2] != s->out[0] || mask->d.dim[3] != s->out[1]) {
        ctn_fail(CTN_ESHAPE, "deform_conv: mask is %s, expected (%lld,%lld,%lld,%lld) (%s)",
                 ctn__shape_text(&mask->d, t, sizeof t), (long long)s->N, (long long)taps,
                 (long long)s->out[0], (long long)s->out[1], at);
        return NULL;
    }
    mask = ctn_reshape_at(at, mask, CTN_SHAPE(s->N, 1, taps, s->out[0] * s->out[1]));
    return ctn_mul_at(at, found, mask);
}

ctn_tensor *ctn_deform_conv_at(const char *at, ctn_tensor *x, ctn_tensor *offset, ctn_tensor *w,
                               ctn_tensor *b, ctn_tensor *mask, const ctn_conv_opt *opt)
{
    sizes s = {0};
    if (!x || !offset || !w) return ctn_reshape_at(at, NULL, 0, NULL);
    if (find_sizes(at, x, offset, w, opt, &s) < 0) return NULL;
    const int64_t depth = s.I * s.kernel[0] * s.kernel[1], points = s.out[0] * s.out[1];
    ctn_tensor *found = ctn__sample_pixels(at, x, places(at, offset, &s));
    if (found && mask) found = masked(at, found, mask, &s);
    ctn_tensor *y = ctn_matmul_at(at, ctn_reshape_at(at, w, CTN_SHAPE(s.O, depth)),
                                  ctn_reshape_at(at, found, CTN_SHAPE(s.N, depth, points)), 0, 0);
    y = ctn_reshape_at(at, y, CTN_SHAPE(s.N, s.O, s.out[0], s.out[1]));
    return b ? ctn_add_at(at, y, ctn_reshape_at(at, b, CTN_SHAPE(s.O, 1, 1))) : y;
}
