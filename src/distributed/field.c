/* SPDX-License-Identifier: Apache-2.0
 *
 * Networks on a field that is divided over ranks. A convolution with kernel k, stride s, dilation d
 * and padding p at the begin of a dimension computes result j from the elements
 *   j s - p ... j s - p + d (k-1).
 * A rank whose block has n elements, a multiple of s, computes the n/s results that belong to it.
 * For the first one it needs p elements before the block, for the last one d (k-1) + 1 - s - p
 * after it. The halo has them, so the convolution itself needs no padding in that dimension.
 */
#include "distributed/grid.h"
#include "nn/nn.h"

/* One spatial dimension of a convolution. */
typedef struct {
    int64_t n, kernel, stride, dilation, pad, pad_end, out_pad;
} axis;

static int64_t setting(const int64_t *of, int i, int64_t none)
{
    const int64_t v = of[i] ? of[i] : of[0];
    return v ? v : none;
}

static axis axis_of(const ctn_tensor *x, const ctn_tensor *w, const ctn_conv_opt *how, int i)
{
    axis a = {.n = x->d.dim[2 + i],
              .kernel = w->d.dim[2 + i],
              .stride = setting(how->stride, i, 1),
              .dilation = setting(how->dilation, i, 1),
              .pad = setting(how->pad, i, 0),
              .pad_end = setting(how->pad_end, i, 0),
              .out_pad = setting(how->out_pad, i, 0)};
    if (a.pad_end == 0) a.pad_end = a.pad;
    if (a.pad == CTN_PAD_NONE) a.pad = 0;
    if (a.pad_end == CTN_PAD_NONE) a.pad_end = 0;
    if (a.out_pad == CTN_PAD_NONE) a.out_pad = 0;
    return a;
}

static ctn_status check(const ctn_dist_grid *g, const char *at, const ctn_tensor *x,
                        const ctn_tensor *w)
{
    char t[128], u[128];
    if (x->d.ndim == 2 + g->ndim && w->d.ndim == x->d.ndim) return CTN_OK;
    return ctn_fail(CTN_ESHAPE,
                    "dist_field: x is %s, weight is %s, but the field is divided in %d dimensions "
                    "(%s)",
                    ctn__shape_text(&x->d, t, sizeof t), ctn__shape_text(&w->d, u, sizeof u),
                    g->ndim, at);
}

/* The halo of a convolution in one dimension. */
static ctn_status halo_of(const axis *a, int i, const char *at, int64_t *before, int64_t *after)
{
    const int64_t reach = (a->kernel - 1) * a->dilation + 1, less = reach - a->pad - a->pad_end;
    if (a->n % a->stride != 0)
        return ctn_fail(
            CTN_ESHAPE,
            "dist_field: the block has %lld elements in dimension %d, not a multiple of "
            "the stride %lld (%s)",
            (long long)a->n, i, (long long)a->stride, at);
    if (less < 1 || less > a->stride)
        return ctn_fail(
            CTN_ESHAPE,
            "dist_field: a kernel that spans %lld elements with stride %lld and padding "
            "%lld and %lld does not give a result of the input's length divided by the "
            "stride (%s)",
            (long long)reach, (long long)a->stride, (long long)a->pad, (long long)a->pad_end, at);
    *before = a->pad;
    *after = reach - a->stride - a->pad > 0 ? reach - a->stride - a->pad : 0;
    return CTN_OK;
}

static ctn_tensor *conv(const ctn_dist_grid *g, const char *at, ctn_tensor *x, ctn_tensor *w,
                        ctn_tensor *b, const ctn_conv_opt *how)
{
    ctn_conv_opt local = {.struct_size = sizeof local, .groups = how->groups};
    ctn_dist_halo_opt halo = {.struct_size = sizeof halo};
    bool any = false;
    for (int i = 0; i < g->ndim; i++) {
        const axis a = axis_of(x, w, how, i);
        local.stride[i] = a.stride;
        local.dilation[i] = a.dilation;
        local.pad[i] = local.pad_end[i] = CTN_PAD_NONE;
        if (!ctn__grid_divides(g, i)) {
            if (a.pad) local.pad[i] = a.pad;
            if (a.pad_end) local.pad_end[i] = a.pad_end;
        } else if (halo_of(&a, i, at, &halo.before[i], &halo.after[i]) < 0) {
            return NULL;
        }
        any |= halo.before[i] + halo.after[i] > 0;
    }
    if (any) x = ctn_dist_halo_at(at, (ctn_dist_grid *)(uintptr_t)g, x, &halo);
    return ctn_conv_at(at, x, w, b, &local);
}

static ctn_tensor *conv_transpose(const ctn_dist_grid *g, const char *at, ctn_tensor *x,
                                  ctn_tensor *w, ctn_tensor *b, const ctn_conv_opt *how)
{
    for (int i = 0; i < g->ndim; i++) {
        const axis a = axis_of(x, w, how, i);
        const bool inside = (a.kernel - 1) * a.dilation < a.stride && a.pad + a.pad_end == 0;
        const int64_t length = (a.kernel - 1) * a.dilation + 1 + a.out_pad;
        if (!ctn__grid_divides(g, i) || (inside && length == a.stride)) continue;
        ctn_fail(CTN_ESHAPE,
                 "dist_field: a transposed convolution on a divided field needs a kernel as long "
                 "as its stride and no padding; in dimension %d they are %lld, %lld and %lld (%s)",
                 i, (long long)a.kernel, (long long)a.stride, (long long)a.pad, at);
        return NULL;
    }
    return ctn_conv_transpose_at(at, x, w, b, how);
}

static ctn_tensor *divided(void *user, const char *at, ctn_tensor *x, ctn_tensor *w, ctn_tensor *b,
                           const ctn_conv_opt *how, bool transposed)
{
    const ctn_dist_grid *g = user;
    if (!x || !w || check(g, at, x, w) < 0) return NULL;
    return transposed ? conv_transpose(g, at, x, w, b, how) : conv(g, at, x, w, b, how);
}

static void set(ctn_module *m, ctn_dist_grid *g)
{
    ctn__conv_set(m, g ? divided : NULL, g);
    for (int i = 0; i < ctn_module_children(m); i++) set(ctn_module_child(m, i), g);
}

ctn_status ctn_dist_field(ctn_module *m, ctn_dist_grid *g)
{
    if (!m) return ctn_fail(CTN_EARG, "dist_field: no module");
    set(m, g);
    return CTN_OK;
}
