/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers of ops on spatial dimensions (see pool.h).
 */
#include "ops/common/pool.h"

/* The largest spatial size, kernel and stride: sums of a few cannot overflow. */
#define MOST (INT64_C(1) << 30)

static ctn_status infer(ctn_infer_args *a, int from, int to)
{
    const ctn_desc *x = a->in[0];
    char t[128];
    CTN_TRY(ctn__infer_same(a));
    int n = x->ndim - 2;
    bool ok = n >= 1 && n <= CTN_MAX_SPATIAL;
    for (int i = 0; i < n && ok; i++) ok = x->dim[2 + i] == a->attr[from + CTN_MAX_SPATIAL - n + i];
    if (!ok)
        return ctn_fail(CTN_ESHAPE, "%s: %s does not have the sizes that it was recorded with",
                        a->name, ctn__shape_text(x, t, sizeof t));
    int64_t dims[CTN_MAX_DIMS] = {x->dim[0], x->dim[1]};
    for (int i = 0; i < n; i++) dims[2 + i] = a->attr[to + CTN_MAX_SPATIAL - n + i];
    return ctn__desc_set(&a->out[0], a->name, x->dtype, x->ndim, dims);
}

ctn_status ctn__pool_infer(ctn_infer_args *a)
{
    return infer(a, CTN__P_IN, CTN__P_OUT);
}

ctn_status ctn__pool_grad_infer(ctn_infer_args *a)
{
    return infer(a, CTN__P_OUT, CTN__P_IN);
}

static ctn_status check_image(const char *who, const char *at, const ctn_tensor *x)
{
    char t[128];
    if (!x)
        return ctn_error_status() < 0 ? ctn_error_status()
                                      : ctn_fail(CTN_EARG, "%s: x is NULL (%s)", who, at);
    int n = x->d.ndim - 2;
    if (n < 1 || n > CTN_MAX_SPATIAL)
        return ctn_fail(CTN_ESHAPE,
                        "%s: x is %s, expected (N,C,...) with 1 to 3 spatial dimensions (%s)", who,
                        ctn__shape_text(&x->d, t, sizeof t), at);
    for (int i = 0; i < n; i++)
        if (x->d.dim[2 + i] < 1 || x->d.dim[2 + i] > MOST)
            return ctn_fail(CTN_ESHAPE,
                            "%s: x is %s, expected spatial dimensions of 1 to %lld (%s)", who,
                            ctn__shape_text(&x->d, t, sizeof t), (long long)MOST, at);
    return CTN_OK;
}

ctn_status ctn__pool_sizes(const char *who, const char *at, const ctn_tensor *x, int n,
                           const int64_t *size, int64_t *attr)
{
    char t[128];
    CTN_TRY(check_image(who, at, x));
    if (n != x->d.ndim - 2 || !size)
        return ctn_fail(CTN_ESHAPE, "%s: x is %s, but got %d sizes (%s)", who,
                        ctn__shape_text(&x->d, t, sizeof t), n, at);
    for (int i = 0; i < CTN__P_SIZES; i++) attr[i] = 1;
    for (int i = 0; i < n; i++) {
        if (size[i] < 1 || size[i] > MOST)
            return ctn_fail(CTN_ESHAPE, "%s: size %d is %lld, expected 1 to %lld (%s)", who, i,
                            (long long)size[i], (long long)MOST, at);
        attr[CTN__P_IN + CTN_MAX_SPATIAL - n + i] = x->d.dim[2 + i];
        attr[CTN__P_OUT + CTN_MAX_SPATIAL - n + i] = size[i];
    }
    return CTN_OK;
}

/* Length of the result; 0 if the window is larger than x. */
static int64_t length(int64_t n, int64_t k, int64_t s, int64_t p, bool up)
{
    int64_t room = n + 2 * p - k;
    if (room < 0) return 0;
    int64_t m = (room + (up ? s - 1 : 0)) / s + 1;
    return up && (m - 1) * s >= n + p ? m - 1 : m; /* it would start in the padding after x */
}

ctn_status ctn__pool_windows(const char *who, const char *at, const ctn_tensor *x,
                             const ctn_pool_opt *opt, int64_t *attr)
{
    ctn_pool_opt o;
    int64_t size[CTN_MAX_SPATIAL] = {0};
    size_t volume = 1;
    CTN_TRY(ctn__opt(who, &o, sizeof o, opt));
    CTN_TRY(check_image(who, at, x));
    int n = x->d.ndim - 2;
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        attr[CTN__P_KERNEL + i] = attr[CTN__P_STRIDE + i] = 1;
        attr[CTN__P_PAD + i] = 0;
    }
    for (int i = 0; i < n; i++) {
        int64_t k = o.kernel[i] ? o.kernel[i] : o.kernel[0];
        int64_t s = o.stride[i] ? o.stride[i] : o.stride[0] ? o.stride[0] : k;
        int64_t p = o.pad[i] ? o.pad[i] : o.pad[0], len = x->d.dim[2 + i];
        if (p == CTN_PAD_NONE) p = 0;
        if (k < 1 || k > MOST || s < 1 || s > MOST || p < 0 || p > k / 2)
            return ctn_fail(CTN_ESHAPE,
                            "%s: kernel %lld, stride %lld, padding %lld; kernel and stride must be "
                            "positive, padding at most half the kernel (%s)",
                            who, (long long)k, (long long)s, (long long)p, at);
        size[i] = length(len, k, s, p, o.ceil != 0);
        if (size[i] < 1)
            return ctn_fail(CTN_ESHAPE,
                            "%s: a kernel of %lld does not fit dimension %d of length %lld and "
                            "padding %lld (%s)",
                            who, (long long)k, 2 + i, (long long)len, (long long)p, at);
        int to = CTN_MAX_SPATIAL - n + i;
        attr[CTN__P_KERNEL + to] = k;
        attr[CTN__P_STRIDE + to] = s;
        attr[CTN__P_PAD + to] = p;
        volume = ctn__mul(volume, (size_t)k);
    }
    if (volume > INT32_MAX)
        return ctn_fail(CTN_ESHAPE, "%s: the kernel has more than %d elements (%s)", who, INT32_MAX,
                        at);
    return ctn__pool_sizes(who, at, x, n, size, attr);
}

void ctn__pool_layout(int n, const ctn_desc *const *d, int64_t *outer, int64_t *inner)
{
    bool last = true;
    for (int i = 0; i < n; i++) last = last && ctn__is_channels_last(d[i]);
    *outer = last ? d[0]->dim[0] : d[0]->dim[0] * d[0]->dim[1];
    *inner = last ? d[0]->dim[1] : 1;
}

ctn_status ctn__sample_prepare(ctn_prepare_args *a, ctn__taps_rule *rule, bool transposed)
{
    const int64_t *in = a->attr + (transposed ? CTN__P_OUT : CTN__P_IN);
    const int64_t *out = a->attr + (transposed ? CTN__P_IN : CTN__P_OUT);
    ctn__sampling like = {.dtype = a->din[0].dtype}, *s;
    if (a->din[0].dtype != a->dout[0].dtype)
        return ctn_fail(CTN_EUNSUPPORTED, "%s: cannot convert from %s to %s", a->name,
                        ctn_dtype_name(a->din[0].dtype), ctn_dtype_name(a->dout[0].dtype));
    ctn__pool_layout(2, (const ctn_desc *[]){&a->din[0], &a->dout[0]}, &like.outer, &like.inner);
    for (int i = 0; i < CTN_MAX_SPATIAL; i++) {
        like.in[i] = in[i];
        like.out[i] = out[i];
    }
    CTN_TRY(ctn__sampling_new(&s, &like, rule, a->attr, transposed));
    a->priv = s;
    a->priv_free = ctn__free;
    a->scratch = ctn__sample_scratch(s, a->threads);
    a->kernel = s->inner > 1 ? "own:channels" : "own:rows";
    return CTN_OK;
}

ctn_status ctn__sample_run(const ctn_run_args *a)
{
    ctn__sample(a->priv, a->in[0], a->out[0], a->scratch);
    return CTN_OK;
}

ctn_status ctn__sample_grad(const ctn_grad_args *a, ctn_op *with)
{
    ctn_tensor *g = ctn__apply1(a->at, NULL, with, 1, &a->gout[0], a->nattr, a->attr, 0, NULL);
    return ctn__grad_to(a, 0, g);
}
