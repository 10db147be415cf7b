/* SPDX-License-Identifier: Apache-2.0
 *
 * The spectral convolution of Fourier neural operators. Only a few of the lowest frequencies are
 * kept, so the transforms are products with the matrices of those (ctn__dft_matrix): a fast
 * transform would compute all frequencies, and zeros would be transformed back. Along the last
 * dimension x is real. Each other dimension is moved behind the ones that are done and transformed
 * as a complex one, so that the frequencies of all are (N,C,m_last,...,m_first,2) in the end. Every
 * mode is then a complex product of (N,in) and (in,out).
 */
#include <catena/ops.h>

#include "nn/nn.h"
#include "ops/common/fft.h"

enum { MOST_WEIGHTS = 1 << (CTN_MAX_SPATIAL - 1) };

typedef struct {
    ctn_var *weights[MOST_WEIGHTS]; /* owned by the module */
    int64_t in, out, modes[CTN_MAX_SPATIAL];
    int spatial;
} spectral;

static int weights_of(int spatial)
{
    return spatial > 1 ? 1 << (spatial - 1) : 1;
}

/* Modes of the last dimension, or of dimension i, where both signs are kept. */
static int64_t kept(const spectral *s, int i)
{
    return i == s->spatial - 1 ? s->modes[i] : 2 * s->modes[i];
}

/* x (...,n) times D (n,k), or (...,k) times D^T. */
static ctn_tensor *times(const char *at, ctn_tensor *x, ctn_tensor *d, int trans)
{
    int64_t dims[CTN_MAX_DIMS];
    if (!x || !d) return NULL;
    const int nd = x->d.ndim;
    for (int i = 0; i < nd; i++) dims[i] = x->d.dim[i];
    dims[nd - 1] = d->d.dim[trans ? 0 : 1];
    const int64_t n = x->d.dim[nd - 1];
    x = ctn_matmul_at(at, ctn_reshape_at(at, x, CTN_SHAPE(-1, n)), d, 0, trans);
    return ctn_reshape_at(at, x, nd, dims);
}

/* Move axis `from` of x to place `to`. */
static ctn_tensor *moved(const char *at, ctn_tensor *x, int from, int to)
{
    int64_t axes[CTN_MAX_DIMS];
    if (!x) return NULL;
    const int nd = x->d.ndim;
    for (int i = 0, k = 0; i < nd; i++) {
        if (k == from) k++;
        axes[i] = i == to ? from : k++;
    }
    return ctn_transpose_at(at, x, nd, axes);
}

/* x (rows,d_1,...,d_s) -> (rows,m_s,...,m_1,2) */
static ctn_tensor *analysed(const spectral *s, const char *at, ctn_context *ctx, ctn_tensor *x,
                            const int64_t *dims, int64_t rows)
{
    const int last = s->spatial - 1;
    const ctn_dtype t = x->d.dtype;
    int64_t shape[CTN_MAX_DIMS] = {rows};
    int nd = 1;
    x = times(at, x, ctn__dft_matrix(at, ctx, t, dims[last], s->modes[last], false, false), 0);
    for (int i = 0; i < last; i++) shape[nd++] = dims[i];
    shape[nd++] = s->modes[last];
    for (int i = last - 1; i >= 0; i--) { /* x is (rows,d_1,...,d_i,m_s,...,m_(i+1),2) */
        ctn_tensor *d = ctn__dft_matrix(at, ctx, t, dims[i], s->modes[i], true, false);
        shape[nd] = 2;
        x = moved(at, ctn_reshape_at(at, x, nd + 1, shape), i + 1, nd - 1);
        for (int k = i + 1; k < nd - 1; k++) shape[k] = shape[k + 1];
        shape[nd - 1] = 2 * dims[i];
        x = times(at, ctn_reshape_at(at, x, nd, shape), d, 0);
        shape[nd - 1] = kept(s, i);
    }
    shape[nd] = 2;
    return ctn_reshape_at(at, x, nd + 1, shape);
}

/* And back, the other frequencies being 0: x (rows,m_s,...,m_1,2) -> (rows,d_1,...,d_s) */
static ctn_tensor *synthesised(const spectral *s, const char *at, ctn_context *ctx, ctn_tensor *x,
                               const int64_t *dims)
{
    const int last = s->spatial - 1, nd = s->spatial + 1;
    int64_t shape[CTN_MAX_DIMS] = {0};
    if (!x) return NULL;
    const ctn_dtype t = x->d.dtype;
    for (int i = 0; i <= nd; i++) shape[i] = x->d.dim[i];
    for (int i = 0; i < last; i++) { /* x is (rows,d_1,...,d_(i-1),m_s,...,m_i,2) */
        ctn_tensor *d = ctn__dft_matrix(at, ctx, t, dims[i], s->modes[i], true, true);
        shape[nd - 1] *= 2;
        x = times(at, ctn_reshape_at(at, x, nd, shape), d, 1);
        shape[nd - 1] = dims[i];
        shape[nd] = 2;
        x = moved(at, ctn_reshape_at(at, x, nd + 1, shape), nd - 1, i + 1);
        for (int k = nd - 1; k > i + 1; k--) shape[k] = shape[k - 1];
        shape[i + 1] = dims[i];
    }
    shape[nd - 1] *= 2;
    x = ctn_reshape_at(at, x, nd, shape);
    return times(at, x, ctn__dft_matrix(at, ctx, t, dims[last], s->modes[last], false, true), 1);
}

/* All weights as (m_s ... m_1,in,2 out), the real parts of the outputs first. */
static ctn_tensor *matrices(const spectral *s, const char *at)
{
    ctn_tensor *w[MOST_WEIGHTS];
    int64_t axes[CTN_MAX_DIMS];
    int n = weights_of(s->spatial), nd = 0;
    for (int i = 0; i < n; i++) w[i] = ctn_use_at(at, s->weights[i]);
    for (int k = 0; n > 1; k++, n /= 2)
        for (int i = 0; i < n / 2; i++) w[i] = ctn_concat_at(at, 2, &w[2 * i], 2 + k);
    for (int i = s->spatial - 1; i >= 0; i--) axes[nd++] = 2 + i;
    axes[nd++] = 0;
    axes[nd++] = 2 + s->spatial;
    axes[nd++] = 1;
    return ctn_reshape_at(at, ctn_transpose_at(at, w[0], nd, axes),
                          CTN_SHAPE(-1, s->in, 2 * s->out));
}

/* x (M,2N,in), the real parts first, times w (M,in,2 out) -> (M,2,N,out): all products of real and
 * imaginary parts are one product of matrices. */
static ctn_tensor *mixed(const spectral *s, const char *at, ctn_tensor *x, ctn_tensor *w)
{
    ctn_tensor *part[2][2], *sum[2];
    if (!x) return NULL;
    const int64_t M = x->d.dim[0], N = x->d.dim[1] / 2;
    x = ctn_reshape_at(at, ctn_matmul_at(at, x, w, 0, 0), CTN_SHAPE(M, 2, N, 2, s->out));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            part[i][k] = ctn_slice_at(at, ctn_slice_at(at, x, 1, i, 1), 3, k, 1);
    sum[0] = ctn_sub_at(at, part[0][0], part[1][1]);
    sum[1] = ctn_add_at(at, part[0][1], part[1][0]);
    return ctn_reshape_at(at, ctn_concat_at(at, 2, sum, 1), CTN_SHAPE(M, 2, N, s->out));
}

static ctn_status check_input(const spectral *s, const ctn_module *m, const ctn_tensor *x)
{
    char t[128];
    if (x->d.ndim != 2 + s->spatial || x->d.dim[1] != s->in)
        return ctn_fail(CTN_ESHAPE, "spectral_conv: x is %s, expected (N,%lld) and %d more (%s)",
                        ctn__shape_text(&x->d, t, sizeof t), (long long)s->in, s->spatial, m->at);
    for (int i = 0; i < s->spatial; i++) {
        const int64_t n = x->d.dim[2 + i];
        if (s->modes[i] <= (i == s->spatial - 1 ? n / 2 + 1 : n / 2)) continue;
        return ctn_fail(CTN_ESHAPE,
                        "spectral_conv: x is %s, too few points along dimension %d for %lld modes "
                        "(%s)",
                        ctn__shape_text(&x->d, t, sizeof t), 2 + i, (long long)s->modes[i], m->at);
    }
    return CTN_OK;
}

static ctn_tensor *spectral_forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const spectral *s = self;
    const char *at = m->at;
    static const int64_t to_modes[] = {2, 3, 0, 1}; /* (N,C,M,2) to (M,2,N,C), and back */
    int64_t dims[CTN_MAX_SPATIAL] = {0}, shape[CTN_MAX_DIMS], out[CTN_MAX_DIMS];
    if (!x || check_input(s, m, x) < 0) return NULL;
    const int nd = x->d.ndim;
    const int64_t N = x->d.dim[0];
    for (int i = 0; i < s->spatial; i++) shape[1 + i] = dims[i] = out[2 + i] = x->d.dim[2 + i];
    shape[0] = N * s->in;
    x = analysed(s, at, m->ctx, ctn_reshape_at(at, x, nd - 1, shape), dims, shape[0]);
    x = ctn_reshape_at(at, x, CTN_SHAPE(N, s->in, -1, 2));
    x = ctn_transpose_at(at, x, 4, to_modes);
    x = mixed(s, at, ctn_reshape_at(at, x, CTN_SHAPE(-1, 2 * N, s->in)), matrices(s, at));
    x = ctn_transpose_at(at, x, 4, to_modes);
    shape[0] = N * s->out;
    for (int i = 0; i < s->spatial; i++) shape[1 + i] = kept(s, s->spatial - 1 - i);
    shape[nd - 1] = 2;
    x = synthesised(s, at, m->ctx, ctn_reshape_at(at, x, nd, shape), dims);
    out[0] = N;
    out[1] = s->out;
    return ctn_reshape_at(at, x, nd, out);
}

static ctn_status add_weights(ctn_module *m, spectral *s, const ctn_init *given)
{
    static const char *const names[] = {"weights1", "weights2", "weights3", "weights4"};
    int64_t dims[CTN_MAX_DIMS] = {s->in, s->out};
    const ctn_init *usual = CTN_OPT(ctn_init, .kind = CTN_INIT_UNIFORM, .low = 0,
                                    .high = 1 / ((double)s->in * (double)s->out));
    for (int i = 0; i < s->spatial; i++) dims[2 + i] = s->modes[i];
    dims[2 + s->spatial] = 2;
    for (int i = 0; i < weights_of(s->spatial); i++)
        CTN_TRY(ctn_module_param(&s->weights[i], m, names[i], ctn_context_float_type(m->ctx),
                                 3 + s->spatial, dims, given ? given : usual));
    return CTN_OK;
}

ctn_status ctn_spectral_conv_new(ctn_module **m, ctn_context *ctx, int64_t in, int64_t out,
                                 int spatial, const int64_t *modes,
                                 const ctn_spectral_conv_opt *opt)
{
    ctn_spectral_conv_opt o;
    if (!m) return ctn_fail(CTN_EARG, "spectral_conv_new: NULL argument");
    *m = NULL;
    CTN_TRY(ctn__opt("spectral_conv_new", &o, sizeof o, opt));
    if (spatial < 1 || spatial > CTN_MAX_SPATIAL || !modes)
        return ctn_fail(CTN_EARG, "spectral_conv_new: got modes of %d dimensions, expected 1 to %d",
                        spatial, CTN_MAX_SPATIAL);
    if (in < 1 || out < 1)
        return ctn_fail(CTN_EARG,
                        "spectral_conv_new: %lld inputs and %lld outputs, both must be positive",
                        (long long)in, (long long)out);
    for (int i = 0; i < spatial; i++)
        if (modes[i] < 1)
            return ctn_fail(CTN_EARG,
                            "spectral_conv_new: modes of dimension %d are %lld, they "
                            "must be positive",
                            i, (long long)modes[i]);
    spectral *s = ctn__calloc(1, sizeof *s);
    if (s) {
        s->in = in;
        s->out = out;
        s->spatial = spatial;
        memcpy(s->modes, modes, (size_t)spatial * sizeof *modes);
    }
    CTN_TRY(ctn__module_own(m, ctx, spectral_forward, s, sizeof *s, CTN__REFS(spectral, in)));
    ctn_status st = s ? add_weights(*m, s, o.weight) : CTN_ENOMEM;
    if (st < 0) {
        ctn_module_free(*m);
        *m = NULL;
    }
    return st;
}
