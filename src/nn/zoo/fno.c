/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier neural operator for one to three spatial dimensions, as in the original code of Li et al.
 * (2020), with channels first:
 *     x, coordinates - fc0 - [ conv + w, GELU ] x layers - fc1 - GELU - fc2
 * conv is a spectral convolution, all others are the same matrix at each point. There is no GELU
 * after the last layer. Between fc0 and fc1, fields that are not periodic may be padded with zeros.
 */
#include <math.h>

#include "nn/zoo/zoo.h"

enum { MOST_LAYERS = 64 };

/* ---- the same matrix at each point ----------------------------------------------------------- */

typedef struct {
    ctn_var *weight, *bias; /* (out,in), followed by ones as in a convolution with kernel 1 */
} pointwise;

/* x (N,in,...) -> (N,out,...): one product per sample, without moving the channels. */
static ctn_tensor *pointwise_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const pointwise *p = self;
    const char *at = m->at;
    ctn_tensor *w = ctn_use_at(at, p->weight), *b = ctn_use_at(at, p->bias);
    int64_t dims[CTN_MAX_DIMS];
    if (!x || !w || !b) return NULL;
    const int nd = x->d.ndim;
    const int64_t out = w->d.dim[0], in = w->d.dim[1], N = x->d.dim[0];
    for (int i = 0; i < nd; i++) dims[i] = i == 1 ? out : x->d.dim[i];
    x = ctn_reshape_at(at, x, CTN_SHAPE(N, in, -1));
    x = ctn_matmul_at(at, ctn_reshape_at(at, w, CTN_SHAPE(out, in)), x, 0, 0);
    x = ctn_add_at(at, x, ctn_reshape_at(at, b, CTN_SHAPE(out, 1)));
    return ctn_reshape_at(at, x, nd, dims);
}

/* With the initial values of PyTorch's Linear and Conv. */
static ctn_status put_pointwise(ctn_module **child, ctn_module *m, const char *name, int64_t in,
                                int64_t out, int ones)
{
    const int64_t dims[2 + CTN_MAX_SPATIAL] = {out, in, 1, 1, 1};
    const double bound = 1 / sqrt((double)in);
    const ctn_init *usual =
        CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = -bound, .high = bound);
    CTN_TRY(ctn__zoo_put(m, name,
                         ctn__zoo_begin(child, m->ctx, pointwise_forward, sizeof(pointwise),
                                        CTN__ALL_REFS(pointwise)),
                         child));
    pointwise *p = (*child)->self;
    CTN_TRY(ctn_module_param(&p->weight, *child, "weight", ctn_context_float_type((*child)->ctx),
                             2 + ones, dims, usual));
    return ctn_module_param(&p->bias, *child, "bias", ctn_context_float_type((*child)->ctx), 1,
                            dims, usual);
}

/* ---- the network ----------------------------------------------------------------------------- */

typedef struct {
    ctn_module *fc0, *fc1, *fc2, *conv[MOST_LAYERS], *w[MOST_LAYERS];
    int layers, spatial, no_grid;
    int64_t in_channels, pad;
} fno;

/* x with one more channel per dimension: the coordinate, from 0 at the first point to 1 at the
 * last. As in the original, a dimension of one point has 0. */
static ctn_tensor *with_grid(const fno *f, const char *at, ctn_context *ctx, ctn_tensor *x)
{
    ctn_tensor *all[1 + CTN_MAX_SPATIAL] = {x};
    int64_t dims[CTN_MAX_DIMS], line[CTN_MAX_DIMS];
    const int nd = x->d.ndim;
    for (int i = 0; i < nd; i++) dims[i] = i == 1 ? 1 : x->d.dim[i];
    for (int i = 2; i < nd; i++) {
        const double step = dims[i] > 1 ? 1 / (double)(dims[i] - 1) : 0;
        for (int k = 0; k < nd; k++) line[k] = k == i ? dims[i] : 1;
        ctn_tensor *c = ctn_full_at(at, ctx, step, x->d.dtype, nd, line);
        c = ctn_shift_at(at, ctn_cumsum_at(at, c, i, 0), -step);
        all[i - 1] = ctn_broadcast_to_at(at, c, nd, dims);
    }
    return ctn_concat_at(at, 1 + f->spatial, all, 1);
}

/* Add zeros at the end of each spatial dimension, or remove them. */
static ctn_tensor *padded(const fno *f, const char *at, ctn_tensor *x)
{
    int64_t after[CTN_MAX_DIMS] = {0};
    for (int i = 0; i < f->spatial; i++) after[2 + i] = f->pad;
    return f->pad > 0 ? ctn_pad_at(at, x, NULL, after, 0) : x;
}

static ctn_tensor *cropped(const fno *f, const char *at, ctn_tensor *x)
{
    for (int i = 0; i < f->spatial && f->pad > 0 && x; i++)
        x = ctn_slice_at(at, x, 2 + i, 0, x->d.dim[2 + i] - f->pad);
    return x;
}

static ctn_tensor *fno_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const fno *f = self;
    const char *at = m->at;
    char t[128];
    if (!x) return NULL;
    if (x->d.ndim != 2 + f->spatial || x->d.dim[1] != f->in_channels) {
        ctn_fail(CTN_ESHAPE, "fno: x is %s, expected (N,%lld) and %d spatial dimensions (%s)",
                 ctn__shape_text(&x->d, t, sizeof t), (long long)f->in_channels, f->spatial, at);
        return NULL;
    }
    if (!f->no_grid) x = with_grid(f, at, m->ctx, x);
    x = padded(f, at, ctn_call_at(at, f->fc0, x));
    for (int i = 0; i < f->layers; i++) {
        x = ctn_add_at(at, ctn_call_at(at, f->conv[i], x), ctn_call_at(at, f->w[i], x));
        if (i + 1 < f->layers) x = ctn_gelu_at(at, x);
    }
    x = ctn_gelu_at(at, ctn_call_at(at, f->fc1, cropped(f, at, x)));
    return ctn_call_at(at, f->fc2, x);
}

static ctn_status fill_fno(ctn_module *m, const ctn_fno_opt *o)
{
    fno *f = m->self;
    char name[16];
    f->layers = o->layers;
    f->spatial = o->spatial;
    f->no_grid = o->no_grid;
    f->in_channels = o->in_channels;
    f->pad = o->pad;
    const int64_t in = o->in_channels + (o->no_grid ? 0 : o->spatial);
    CTN_TRY(put_pointwise(&f->fc0, m, "fc0", in, o->width, 0));
    for (int i = 0; i < o->layers; i++) {
        snprintf(name, sizeof name, "conv%d", i);
        CTN_TRY(ctn__zoo_put(m, name,
                             ctn_spectral_conv_new(&f->conv[i], m->ctx, o->width, o->width,
                                                   o->spatial, o->modes, NULL),
                             &f->conv[i]));
    }
    for (int i = 0; i < o->layers; i++) {
        snprintf(name, sizeof name, "w%d", i);
        CTN_TRY(put_pointwise(&f->w[i], m, name, o->width, o->width, o->spatial));
    }
    CTN_TRY(put_pointwise(&f->fc1, m, "fc1", o->width, o->hidden, 0));
    return put_pointwise(&f->fc2, m, "fc2", o->hidden, o->out_channels, 0);
}

ctn_status ctn_zoo_fno(ctn_module **m, ctn_context *ctx, const ctn_fno_opt *opt)
{
    ctn_fno_opt o;
    if (!m) return ctn_fail(CTN_EARG, "fno: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("fno", &o, sizeof o, opt));
    if (o.spatial == 0) o.spatial = 2;
    if (o.layers == 0) o.layers = 4;
    if (o.spatial < 1 || o.spatial > CTN_MAX_SPATIAL || o.layers < 1 || o.layers > MOST_LAYERS)
        return ctn_fail(CTN_EARG, "fno: spatial is %d and layers %d, expected 1 to %d and 1 to %d",
                        o.spatial, o.layers, CTN_MAX_SPATIAL, MOST_LAYERS);
    CTN_TRY(ctn__zoo_default("fno", "in_channels", &o.in_channels, 1));
    CTN_TRY(ctn__zoo_default("fno", "out_channels", &o.out_channels, 1));
    CTN_TRY(ctn__zoo_default("fno", "width", &o.width, 32));
    CTN_TRY(ctn__zoo_default("fno", "hidden", &o.hidden, 128));
    CTN_TRY(ctn__zoo_default("fno", "pad", &o.pad, 0));
    for (int i = 0; i < o.spatial; i++)
        CTN_TRY(ctn__zoo_default("fno", "modes", &o.modes[i], i ? o.modes[0] : 12));
    CTN_TRY(ctn__zoo_begin(m, ctx, fno_forward, sizeof(fno), CTN__REFS(fno, layers)));
    return ctn__zoo_end(m, fill_fno(*m, &o));
}
