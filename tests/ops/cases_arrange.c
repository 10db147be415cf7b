/* SPDX-License-Identifier: Apache-2.0
 *
 * Cases of ops that rearrange: strided slices, diagonals, repetition, padding with elements of the
 * tensor itself, sorting, and sums of products described by labels. The references compute the
 * place of one element at a time.
 */
#include <math.h>
#include <string.h>

#include "harness.h"

/* clang-format off */
#define S0() .ndim = 0
#define S1(a) .ndim = 1, .dim = {a}
#define S2(a, b) .ndim = 2, .dim = {a, b}
#define S3(a, b, c) .ndim = 3, .dim = {a, b, c}
#define S4(a, b, c, d) .ndim = 4, .dim = {a, b, c, d}
#define S5(a, b, c, d, e) .ndim = 5, .dim = {a, b, c, d, e}
#define INDEX(n, ...) {.dtype = CTN_I64, .fill = FILL_INDEX, .lo = 0, .hi = n, __VA_ARGS__}
#define MASK(...) {.dtype = CTN_BOOL, .fill = FILL_INDEX, .lo = 0, .hi = 2, __VA_ARGS__}
#define DISTINCT(...) {.fill = FILL_DISTINCT, .lo = -3, .hi = 3, __VA_ARGS__}
/* clang-format on */

static int64_t ravel(int ndim, const int64_t *dim, const int64_t *index)
{
    int64_t i = 0;
    for (int k = 0; k < ndim; k++) i = i * dim[k] + index[k];
    return i;
}

static int axis_of(int ndim, int64_t axis)
{
    return (int)(axis < 0 ? axis + ndim : axis);
}

static int64_t mod(int64_t i, int64_t n)
{
    return (i % n + n) % n;
}

#define CALL(name, ...)                                                                      \
    static ctn_tensor *name##_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x) \
    {                                                                                        \
        (void)c, (void)ctx;                                                                  \
        return __VA_ARGS__;                                                                  \
    }

/* A reference that says which element of input 0 becomes element `at` of the result: the body
 * changes `at`, which has the dimensions of the result, to a place in the input. */
#define PLACE(name, ...)                                                                  \
    static void name##_ref(const op_case *c, const double *const *x, const ctn_desc *out, \
                           double *y)                                                     \
    {                                                                                     \
        const case_in *in = &c->in[0];                                                    \
        const int64_t *p = c->p;                                                          \
        (void)p;                                                                          \
        for (int64_t i = 0; i < desc_count(out); i++) {                                   \
            int64_t at[CTN_MAX_DIMS + 1] = {0};                                           \
            unravel(i, out->ndim, out->dim, at);                                          \
            __VA_ARGS__;                                                                  \
            y[i] = x[0][ravel(in->ndim, in->dim, at)];                                    \
        }                                                                                 \
    }

/* ---- slices with steps, flips, rolls --------------------------------------------------------- */

/* p: axis, start, length, step */
CALL(slice_step, ctn_slice_step(x[0], c->p[0], c->p[1], c->p[2], c->p[3]))
PLACE(slice_step, int ax = axis_of(in->ndim, p[0]);
      at[ax] = (p[1] < 0 ? p[1] + in->dim[ax] : p[1]) + at[ax] * p[3])

/* p: number of axes, axes */
CALL(flip, ctn_flip(x[0], (int)c->p[0], c->p + 1))
PLACE(
    flip, for (int k = 0; k < in->ndim; k++) {
        int turned = p[0] == 0;
        for (int j = 0; j < p[0]; j++) turned |= axis_of(in->ndim, p[1 + j]) == k;
        if (turned) at[k] = in->dim[k] - 1 - at[k];
    })

/* p: axis, shift */
CALL(roll, ctn_roll(x[0], c->p[0], c->p[1]))
PLACE(roll, int ax = axis_of(in->ndim, p[0]); at[ax] = mod(at[ax] - p[1], in->dim[ax]))

/* ---- repetition ------------------------------------------------------------------------------ */

/* p: n, axis */
CALL(repeat, ctn_repeat(x[0], c->p[0], c->p[1]))
PLACE(repeat, at[axis_of(in->ndim, p[1])] /= p[0])

/* p: number of dimensions, repetitions */
CALL(tile, ctn_tile(x[0], (int)c->p[0], c->p + 1))
PLACE(tile, for (int k = 0; k < in->ndim; k++) at[k] = at[k + out->ndim - in->ndim] % in->dim[k])

/* ---- axes ------------------------------------------------------------------------------------ */

/* p: from, to */
CALL(moveaxis, ctn_moveaxis(x[0], c->p[0], c->p[1]))
PLACE(moveaxis, int from = axis_of(in->ndim, p[0]); int to = axis_of(in->ndim, p[1]);
      int64_t own = at[to]; for (int k = to; k + 1 < in->ndim; k++) at[k] = at[k + 1];
      for (int k = in->ndim - 1; k > from; k--) at[k] = at[k - 1]; at[from] = own)

CALL(swapaxes, ctn_swapaxes(x[0], c->p[0], c->p[1]))
PLACE(swapaxes, int i1 = axis_of(in->ndim, p[0]); int i2 = axis_of(in->ndim, p[1]);
      int64_t own = at[i1]; at[i1] = at[i2]; at[i2] = own)

/* p: offset */
CALL(diagonal, ctn_diagonal(x[0], c->p[0]))
PLACE(diagonal, int r = in->ndim - 2; at[r + 1] = at[r] + (p[0] > 0 ? p[0] : 0);
      at[r] -= p[0] < 0 ? p[0] : 0)

CALL(diag_embed, ctn_diag_embed(x[0], c->p[0]))

static void diag_embed_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t m = out->dim[out->ndim - 1], off = c->p[0], n = m - (off < 0 ? -off : off);
    for (int64_t i = 0; i < desc_count(out); i++) {
        const int64_t row = i / m % m, col = i % m;
        y[i] = col - row == off ? x[0][i / m / m * n + (off < 0 ? col : row)] : 0;
    }
}

/* p: axis, index */
CALL(select, ctn_select(x[0], c->p[0], c->p[1]))
PLACE(select, int ax = axis_of(in->ndim, p[0]);
      for (int k = in->ndim - 1; k > ax; k--) at[k] = at[k - 1]; at[ax] = mod(p[1], in->dim[ax]))

/* p: axis, length. The slices are stacked along a new last axis. */
static ctn_tensor *separate_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *piece[64];
    (void)ctx;
    if (ctn_separate(x[0], c->p[0], (int)c->p[1], piece) < 0) return NULL;
    return ctn_stack((int)c->p[1], piece, -1);
}
PLACE(separate, int ax = axis_of(in->ndim, p[0]); int64_t own = at[in->ndim - 1];
      for (int k = in->ndim - 1; k > ax; k--) at[k] = at[k - 1]; at[ax] = own)

/* p: axis, pieces, which are as long as their number modulo 3 */
static ctn_tensor *split_many_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *piece[600];
    int64_t size[600] = {0};
    const int n = (int)c->p[1];
    (void)ctx;
    for (int i = 0; i < n; i++) size[i] = i % 3;
    if (ctn_split(x[0], c->p[0], n, size, piece) < 0) return NULL;
    for (int i = 0; i < n / 2; i++) {
        ctn_tensor *t = piece[i];
        piece[i] = piece[n - 1 - i];
        piece[n - 1 - i] = t;
    }
    return ctn_concat(n, piece, c->p[0]);
}
PLACE(
    split_many, int ax = axis_of(in->ndim, p[0]); int64_t piece = p[1] - 1, end = in->dim[ax];
    for (; at[ax] >= piece % 3; piece--) {
        at[ax] -= piece % 3;
        end -= piece % 3;
    } at[ax] += end - piece % 3)

/* ---- by indices and masks -------------------------------------------------------------------- */

CALL(select_item, ctn_select_item(x[0], x[1]))
PLACE(select_item, at[in->ndim - 1] = (int64_t)x[1][i])

CALL(permutate, ctn_permutate(x[0], x[1], c->p[0]))
PLACE(permutate, int ax = axis_of(in->ndim, p[0]); at[ax] = (int64_t)x[1][at[ax]])

CALL(masked_fill, ctn_masked_fill(x[0], x[1], c->q[0]))

static void masked_fill_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    const int64_t n = case_count(&c->in[1]); /* the mask has the last dimensions of x */
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = x[1][i % n] != 0 ? c->q[0] : x[0][i];
}

/* ---- padding: p = mode, before each dimension, from p[6] after each -------------------------- */

CALL(pad_by, ctn_pad_by(x[0], (ctn_pad_mode)c->p[0], c->p + 1, c->p + 6))

/* Walk one place at a time from position i, which is outside, until it is inside. */
static int64_t inside(int64_t mode, int64_t i, int64_t n)
{
    while (i < 0 || i >= n) {
        if (mode == CTN_PAD_REPLICATE) i += i < 0 ? 1 : -1;
        else if (mode == CTN_PAD_WRAP) i += i < 0 ? n : -n;
        else i = n == 1 ? 0 : i < 0 ? -i : 2 * (n - 1) - i;
    }
    return i;
}
PLACE(pad_by, for (int k = 0; k < in->ndim; k++) at[k] = inside(p[0], at[k] - p[1 + k], in->dim[k]))

/* p: mode, padding in front of H and W, then at their ends; stride 1 */
static ctn_tensor *padded_conv_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_conv(x[0], x[1], NULL,
                    CTN_OPT(ctn_conv_opt, .pad_mode = (ctn_pad_mode)c->p[0],
                            .pad = {c->p[1], c->p[2]}, .pad_end = {c->p[3], c->p[4]}));
}

static void padded_conv_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    const int64_t *n = c->in[0].dim, *k = c->in[1].dim;
    int64_t at[4];
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, 4, out->dim, at);
        y[i] = 0;
        for (int64_t j = 0; j < k[1] * k[2] * k[3]; j++) {
            const int64_t ch = j / k[3] / k[2], r = j / k[3] % k[2], s = j % k[3];
            const int64_t h = inside(c->p[0], at[2] + r - c->p[1], n[2]);
            const int64_t w = inside(c->p[0], at[3] + s - c->p[2], n[3]);
            y[i] += x[1][at[1] * k[1] * k[2] * k[3] + j] *
                    x[0][((at[0] * n[1] + ch) * n[2] + h) * n[3] + w];
        }
    }
}

/* ---- sorting: p = axis, descending ----------------------------------------------------------- */

static ctn_tensor *sort_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    ctn_tensor *y;
    (void)ctx;
    return ctn_sort(x[0], c->p[0], (int)c->p[1], &y, NULL) < 0 ? NULL : y;
}

CALL(argsort, ctn_argsort(x[0], c->p[0], (int)c->p[1]))
#define argsort_ref sort_ref

static void sort_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int ax = axis_of(out->ndim, c->p[0]);
    const double sign = c->p[1] ? -1 : 1;
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) { /* where does element i go? */
        int64_t before = 0;
        unravel(i, out->ndim, out->dim, at);
        const int64_t own = at[ax];
        for (at[ax] = 0; at[ax] < out->dim[ax]; at[ax]++) {
            const double v = sign * x[0][ravel(out->ndim, out->dim, at)], w = sign * x[0][i];
            before += v < w || (v == w && at[ax] < own);
        }
        at[ax] = before;
        y[ravel(out->ndim, out->dim, at)] = out->dtype == CTN_I64 ? (double)own : x[0][i];
    }
}

/* ---- sums of products: p[0] is the number of the equation ------------------------------------ */

/* The equation, and the same with letters in place of "...", as the reference reads it. */
static const char *const equation[][2] = {
    {"ij,jk->ik", "ij,jk->ik"},
    {"ij,jk->ki", "ij,jk->ki"},
    {"bij,bjk->bik", "bij,bjk->bik"},
    {"bij,bkj->bik", "bij,bkj->bik"},
    {"bij,jk", "bij,jk->bik"},
    {"bqhd,bkhd->bhqk", "bqhd,bkhd->bhqk"},
    {"ijb,jkb->ikb", "ijb,jkb->ikb"},
    {"ij->ji", "ij->ji"},
    {"ijk->", "ijk->"},
    {"ijk->k", "ijk->k"},
    {"ii->i", "ii->i"},
    {"bii", "bii->b"},
    {"iji->ij", "iji->ij"},
    {"iii->", "iii->"},
    {"i,j->ij", "i,j->ij"},
    {"i,i->", "i,i->"},
    {"bi,bi->b", "bi,bi->b"},
    {"ijk,kjl->il", "ijk,kjl->il"},
    {"abc,cd,de->abe", "abc,cd,de->abe"},
    {"ij,jk,kl,lm->mi", "ij,jk,kl,lm->mi"},
    {"...ij,...jk->...ik", "baij,bajk->baik"},
    {"i...,...->...", "ia,a->a"},
    {"ab,cd->abcd", "ab,cd->abcd"},
    {"ij,i->ij", "ij,i->ij"},
    {"ij,kl->i", "ij,kl->i"},
    {"ij,ij->ij", "ij,ij->ij"},
    {"aab,b->a", "aab,b->a"},
    {",i->i", ",i->i"},
    {"bcxy,coxy->boxy", "bcxy,coxy->boxy"},
    {"...ij,...jk", "baij,bajk->baik"},
};

CALL(einsum, ctn_einsum(equation[c->p[0]][0], c->nin, x))

/* The offset of the element of an operand that the labels p to end select, for label values v. */
static int64_t chosen(const char *p, const char *end, const int64_t *dim, const int64_t *v)
{
    int64_t i = 0;
    for (; p < end; p++, dim++) i = i * *dim + (*dim == 1 ? 0 : v[(unsigned char)*p]);
    return i;
}

static void einsum_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const char *eq = equation[c->p[0]][1], *arrow = strstr(eq, "->"), *part[9];
    int64_t size[128] = {0}, v[128] = {0}, total = 1;
    int n = 0;
    part[n++] = eq;
    for (const char *p = eq; p < arrow; p++)
        if (*p == ',') part[n++] = p + 1;
    part[n] = arrow + 1; /* the end of operand k is part[k + 1] - 1 */
    for (int k = 0; k < n; k++)
        for (const char *p = part[k]; p < part[k + 1] - 1; p++) {
            const int64_t m = c->in[k].dim[p - part[k]];
            if (m != 1 || size[(unsigned char)*p] == 0) size[(unsigned char)*p] = m;
        }
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int s = 0; s < 128; s++)
        if (strchr(eq, s) && s >= 'a') total *= size[s];
    for (int64_t i = 0; i < total; i++) {
        int64_t q = i;
        double product = 1;
        for (int s = 'a'; s < 128; s++)
            if (strchr(eq, s)) {
                v[s] = q % size[s];
                q /= size[s];
            }
        for (int k = 0; k < n; k++)
            product *= x[k][chosen(part[k], part[k + 1] - 1, c->in[k].dim, v)];
        y[chosen(arrow + 2, arrow + strlen(arrow), out->dim, v)] += product;
    }
}

/* p: number of axes, axes of a, from p[4] axes of b */
CALL(tensordot, ctn_tensordot(x[0], x[1], (int)c->p[0], c->p + 1, c->p + 4))

/* Visits every pair of elements and keeps those whose indices agree along the axes. */
static void tensordot_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *a = &c->in[0], *b = &c->in[1];
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < case_count(a); i++)
        for (int64_t j = 0; j < case_count(b); j++) {
            int64_t p[CTN_MAX_DIMS] = {0}, q[CTN_MAX_DIMS] = {0}, to = 0;
            int same = 1, used_a = 0, used_b = 0;
            unravel(i, a->ndim, a->dim, p);
            unravel(j, b->ndim, b->dim, q);
            for (int k = 0; k < c->p[0]; k++) {
                const int s = axis_of(a->ndim, c->p[1 + k]), t = axis_of(b->ndim, c->p[4 + k]);
                same = same && p[s] == q[t];
                used_a |= 1 << s;
                used_b |= 1 << t;
            }
            for (int k = 0; k < a->ndim; k++)
                if (!(used_a >> k & 1)) to = to * a->dim[k] + p[k];
            for (int k = 0; k < b->ndim; k++)
                if (!(used_b >> k & 1)) to = to * b->dim[k] + q[k];
            if (same) y[to] += x[0][i] * x[1][j];
        }
}

/* ---- windows of images ---------------------------------------------------------------------- */

/* p: kernel, stride, padding in front and at the end, dilation of all dimensions; mode */
static ctn_tensor *im2col_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    const int64_t kernel[3] = {c->p[0], c->p[0] + 1, c->p[0]};
    (void)ctx;
    return ctn_im2col(x[0], c->in[0].ndim - 2, kernel,
                      CTN_OPT(ctn_conv_opt, .stride = {c->p[1]}, .pad = {c->p[2]},
                              .pad_end = {c->p[3]}, .dilation = {c->p[4]},
                              .pad_mode = (ctn_pad_mode)c->p[5]));
}

static void im2col_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const case_in *in = &c->in[0];
    const int n = in->ndim - 2;
    int64_t at[CTN_MAX_DIMS] = {0};
    for (int64_t i = 0; i < desc_count(out); i++) {
        unravel(i, out->ndim, out->dim, at);
        int64_t k = at[1];
        int there = 1;
        for (int d = n - 1; d >= 0; d--) {
            const int64_t size = c->p[0] + (d == 1), N = in->dim[2 + d];
            at[2 + d] = at[2 + d] * c->p[1] + k % size * c->p[4] - c->p[2];
            k /= size;
            if (c->p[5] != CTN_PAD_ZEROS) at[2 + d] = inside(c->p[5], at[2 + d], N);
            there = there && at[2 + d] >= 0 && at[2 + d] < N;
        }
        at[1] = k;
        y[i] = there ? x[0][ravel(in->ndim, in->dim, at)] : 0;
    }
}

/* p: stride, padding; a kernel of its own at every position */
static ctn_tensor *local_conv_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    (void)ctx;
    return ctn_local_conv(x[0], x[1], x[2],
                          CTN_OPT(ctn_conv_opt, .stride = {c->p[0]}, .pad = {c->p[1]}));
}

static void local_conv_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t *n = c->in[0].dim, *k = c->in[1].dim + 4, *o = out->dim;
    for (int64_t i = 0; i < desc_count(out); i++) {
        const int64_t place = i % (o[1] * o[2] * o[3]), h = i / o[3] % o[2], w = i % o[3];
        const int64_t taps = n[1] * k[0] * k[1];
        y[i] = x[2][place];
        for (int64_t j = 0; j < taps; j++) {
            const int64_t r = h * c->p[0] + j / k[1] % k[0] - c->p[1];
            const int64_t q = w * c->p[0] + j % k[1] - c->p[1];
            const int64_t channel = i / (o[1] * o[2] * o[3]) * n[1] + j / k[1] / k[0];
            if (r >= 0 && r < n[2] && q >= 0 && q < n[3])
                y[i] += x[1][place * taps + j] * x[0][(channel * n[2] + r) * n[3] + q];
        }
    }
}

/* p: kernel, stride; x[0] chooses the places, x[1] is put there */
static ctn_tensor *max_unpool_call(const op_case *c, ctn_context *ctx, ctn_tensor *const *x)
{
    const ctn_pool_opt *opt = CTN_OPT(ctn_pool_opt, .kernel = {c->p[0]}, .stride = {c->p[1]});
    ctn_tensor *y, *places;
    (void)ctx;
    if (ctn_max_pool_places(x[0], opt, &y, &places) < 0) return NULL;
    return ctn_max_unpool(x[1], places, opt, 2, c->in[0].dim + 2);
}

static void max_unpool_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t H = out->dim[2], W = out->dim[3], *o = c->in[1].dim;
    for (int64_t i = 0; i < desc_count(out); i++) y[i] = 0;
    for (int64_t i = 0; i < case_count(&c->in[1]); i++) {
        const int64_t plane = i / o[3] / o[2] * H * W;
        const int64_t h = i / o[3] % o[2] * c->p[1], w = i % o[3] * c->p[1];
        int64_t best = plane + h * W + w;
        for (int64_t k = 0; k < c->p[0] * c->p[0]; k++) {
            const int64_t at = plane + (h + k / c->p[0]) * W + w + k % c->p[0];
            if (x[0][at] > x[0][best]) best = at;
        }
        y[best] += x[1][i];
    }
}

/* p: levels */
CALL(pyramid, ctn_spatial_pyramid_pool(x[0], (int)c->p[0]))

static void pyramid_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t *n = c->in[0].dim, all = out->dim[1];
    for (int64_t s = 0; s < n[0]; s++) {
        int64_t at = s * all;
        for (int64_t bins = 1; bins < INT64_C(1) << c->p[0]; bins *= 2) {
            const int64_t kh = (n[2] + bins - 1) / bins, kw = (n[3] + bins - 1) / bins;
            const int64_t ph = (kh * bins - n[2]) / 2, pw = (kw * bins - n[3]) / 2;
            for (int64_t i = 0; i < n[1] * bins * bins; i++, at++) {
                const int64_t r = i / bins % bins * kh - ph, q = i % bins * kw - pw;
                y[at] = -INFINITY;
                for (int64_t h = r; h < r + kh; h++)
                    for (int64_t w = q; w < q + kw; w++)
                        if (h >= 0 && h < n[2] && w >= 0 && w < n[3])
                            y[at] =
                                fmax(y[at],
                                     x[0][((s * n[1] + i / bins / bins) * n[2] + h) * n[3] + w]);
            }
        }
    }
}

/* p: size; q: k, alpha, beta */
CALL(response, ctn_local_response_norm(x[0], c->p[0], c->q[0], c->q[1], c->q[2]))

static void response_ref(const op_case *c, const double *const *x, const ctn_desc *out, double *y)
{
    const int64_t C = out->dim[1];
    const int64_t inner = C > 0 && out->dim[0] > 0 ? desc_count(out) / C / out->dim[0] : 1;
    for (int64_t i = 0; i < desc_count(out); i++) {
        double sum = 0;
        const int64_t ch = i / inner % C;
        for (int64_t j = ch - c->p[0] / 2; j <= ch + c->p[0] / 2; j++)
            if (j >= 0 && j < C) sum += x[0][i + (j - ch) * inner] * x[0][i + (j - ch) * inner];
        y[i] = x[0][i] * pow(c->q[0] + c->q[1] * sum, -c->q[2]);
    }
}

/* p: align_corners */
CALL(grid_sample, ctn_grid_sample(x[0], x[1], (int)c->p[0]))

static double hat(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

static double pixel(double p, int64_t n, int64_t align)
{
    return align ? (p + 1) / 2 * (double)(n - 1) : ((p + 1) * (double)n - 1) / 2;
}

static void grid_sample_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    const int64_t H = c->in[0].dim[2], W = c->in[0].dim[3], points = out->dim[2] * out->dim[3];
    for (int64_t i = 0; i < desc_count(out); i++) {
        const int64_t plane = i / points, sample = plane / out->dim[1];
        const double *p = x[1] + 2 * (sample * points + i % points);
        y[i] = 0;
        for (int64_t k = 0; k < H * W; k++)
            y[i] += x[0][plane * H * W + k] * hat(pixel(p[0], W, c->p[0]) - (double)(k % W)) *
                    hat(pixel(p[1], H, c->p[0]) - (double)(k / W));
    }
}

/* p: align_corners, height, width */
CALL(affine_grid, ctn_affine_grid(x[0], c->p[1], c->p[2], (int)c->p[0]))

static double coordinate(int64_t i, int64_t n, int64_t align)
{
    if (!align) return (2 * (double)i + 1) / (double)n - 1;
    return n > 1 ? 2 * (double)i / (double)(n - 1) - 1 : 0;
}

static void affine_grid_ref(const op_case *c, const double *const *x, const ctn_desc *out,
                            double *y)
{
    const int64_t h = c->p[1], w = c->p[2];
    for (int64_t i = 0; i < desc_count(out); i++) {
        const double *row = x[0] + (i / 2 / w / h * 2 + i % 2) * 3;
        y[i] = row[0] * coordinate(i / 2 % w, w, c->p[0]) +
               row[1] * coordinate(i / 2 / w % h, h, c->p[0]) + row[2];
    }
}

/* clang-format off */
#define ONE(o, n, c, ...) \
    {.op = o, .name = n, .nin = 1, .call = c##_call, .ref = c##_ref, __VA_ARGS__}
#define TWO(o, n, c, ...) \
    {.op = o, .name = n, .nin = 2, .call = c##_call, .ref = c##_ref, __VA_ARGS__}
#define EINSUM(o, n, count, ...) \
    {.op = o, .name = "einsum_" n, .nin = count, .call = einsum_call, .ref = einsum_ref, \
     .engine_sums = 1, __VA_ARGS__}

case_table cases_arrange = {
    ONE("slice_step", "every_third", slice_step, .in = {{S2(3, 11)}}, .p = {-1, 1, 3, 3},
        .grad = 2),
    ONE("slice_step", "backwards", slice_step, .in = {{S3(2, 9, 3)}}, .p = {1, -1, 4, -2},
        .grad = 2),
    ONE("slice_step", "whole_backwards", slice_step, .in = {{S2(5, 4)}}, .p = {0, 4, 5, -1},
        .grad = 2),
    ONE("slice_step", "one", slice_step, .in = {{S2(5, 4)}}, .p = {0, 2, 1, 100}, .grad = 1),
    ONE("slice_step", "nothing", slice_step, .in = {{S2(5, 4)}}, .p = {0, 7, 0, 2}, .grad = 1),
    ONE("slice_step", "no_rows", slice_step, .in = {{S2(0, 9)}}, .p = {1, 3, 2, 2}, .grad = 1),
    ONE("slice_step", "large", slice_step, .in = {{S3(7, 300, 31)}}, .p = {1, 299, 100, -3},
        .grad = 1),
    ONE("slice_step", "one_long_line", slice_step, .in = {{S1(40001)}}, .p = {0, 0, 20001, 2},
        .grad = 1),
    ONE("slice_step", "flip", flip, .in = {{S3(2, 3, 5)}}, .p = {2, 0, -1}, .grad = 2),
    ONE("slice_step", "flip_all", flip, .in = {{S3(2, 3, 5)}}, .p = {0}, .grad = 1),
    ONE("slice_step", "flip_large", flip, .in = {{S2(301, 67)}}, .p = {1, 1}, .grad = 1),
    ONE("slice_step", "flip_nothing", flip, .in = {{S2(0, 3)}}, .p = {0}, .grad = 1),
    ONE("slice_step", "flip_indices", flip, .in = {INDEX(9, S2(3, 4))}, .p = {1, 1}),
    ONE("slice_step", "flip_scalar", flip, .in = {{S0()}}, .p = {0}, .grad = 1),

    ONE("roll", "forwards", roll, .in = {{S3(2, 7, 3)}}, .p = {1, 2}, .grad = 2),
    ONE("roll", "backwards", roll, .in = {{S2(5, 6)}}, .p = {-1, -10}, .grad = 2),
    ONE("roll", "not_at_all", roll, .in = {{S2(5, 6)}}, .p = {0, 5}, .grad = 1),
    ONE("roll", "large", roll, .in = {{S2(150, 401)}}, .p = {0, 7}, .grad = 1),
    ONE("roll", "nothing", roll, .in = {{S2(0, 6)}}, .p = {0, 5}, .grad = 1),
    ONE("broadcast_to", "repeat", repeat, .in = {{S3(2, 3, 4)}}, .p = {3, 1}, .grad = 2),
    ONE("broadcast_to", "repeat_last", repeat, .in = {{S2(5, 7)}}, .p = {2, -1}, .grad = 1),
    ONE("broadcast_to", "repeat_nothing", repeat, .in = {{S2(5, 0)}}, .p = {2, -1}, .grad = 1),
    ONE("broadcast_to", "tile", tile, .in = {{S2(3, 2)}}, .p = {2, 2, 3}, .grad = 2),
    ONE("broadcast_to", "tile_more", tile, .in = {{S2(3, 2)}}, .p = {4, 2, 1, 1, 2}, .grad = 1),
    ONE("broadcast_to", "tile_fewer", tile, .in = {{S3(2, 3, 2)}}, .p = {1, 3}, .grad = 1),
    ONE("broadcast_to", "tile_scalar", tile, .in = {{S0()}}, .p = {1, 3}, .grad = 1),

    ONE("transpose", "moveaxis", moveaxis, .in = {{S4(2, 3, 4, 5)}}, .p = {1, -1}, .grad = 2),
    ONE("transpose", "moveaxis_back", moveaxis, .in = {{S4(2, 3, 4, 5)}}, .p = {3, 1}, .grad = 1),
    ONE("transpose", "swapaxes", swapaxes, .in = {{S4(2, 3, 4, 5)}}, .p = {0, -2}, .grad = 2),
    ONE("diagonal", "square", diagonal, .in = {{S2(4, 4)}}, .p = {0}, .grad = 2),
    ONE("diagonal", "above", diagonal, .in = {{S3(3, 4, 6)}}, .p = {1}, .grad = 2),
    ONE("diagonal", "below", diagonal, .in = {{S3(2, 7, 3)}}, .p = {-2}, .grad = 2),
    ONE("diagonal", "empty", diagonal, .in = {{S3(2, 3, 3)}}, .p = {3}, .grad = 1),
    ONE("diagonal", "many", diagonal, .in = {{S3(400, 50, 51)}}, .p = {-1}, .grad = 1),
    ONE("diag_embed", "rows", diag_embed, .in = {{S2(3, 4)}}, .p = {0}, .grad = 2),
    ONE("diag_embed", "above", diag_embed, .in = {{S1(3)}}, .p = {2}, .grad = 2),
    ONE("diag_embed", "below", diag_embed, .in = {{S2(2, 3)}}, .p = {-1}, .grad = 1),
    ONE("diag_embed", "nothing", diag_embed, .in = {{S2(2, 0)}}, .p = {-1}, .grad = 1),
    ONE("slice", "select", select, .in = {{S3(2, 5, 3)}}, .p = {1, -2}, .grad = 2),
    ONE("split", "separate", separate, .in = {{S3(2, 5, 3)}}, .p = {1, 5}, .grad = 2),
    ONE("split", "separate_many", separate, .in = {{S2(37, 3)}}, .p = {0, 37}, .grad = 1),
    ONE("split", "many_pieces", split_many, .in = {{S2(2, 40)}}, .p = {1, 41}, .grad = 2),
    ONE("split", "very_many_pieces", split_many, .in = {{S2(501, 2)}}, .p = {0, 501}, .grad = 1),

    TWO("gather", "select_item", select_item, .in = {{S2(5, 7)}, INDEX(7, S1(5))}, .grad = 2),
    TWO("gather", "select_item_rows", select_item, .in = {{S3(2, 3, 4)}, INDEX(4, S2(2, 3))},
        .grad = 1),
    TWO("embedding", "permutate", permutate, .in = {{S3(2, 7, 3)}, INDEX(7, S1(7))}, .p = {1},
        .grad = 2),
    TWO("embedding", "permutate_rows", permutate, .in = {{S2(7, 3)}, INDEX(7, S1(7))}, .p = {0},
        .grad = 1),
    TWO("where", "masked_fill", masked_fill, .in = {{S2(5, 7)}, MASK(S2(5, 7))}, .q = {-2.5},
        .grad = 2),
    TWO("where", "masked_fill_columns", masked_fill, .in = {{S3(4, 5, 7)}, MASK(S1(7))},
        .q = {1e9}, .grad = 1),

    ONE("pad_by", "reflect", pad_by, .in = {{S2(4, 5)}},
        .p = {CTN_PAD_REFLECT, 0, 2, 0, 0, 0, 3, 4}, .grad = 2),
    ONE("pad_by", "replicate", pad_by, .in = {{S3(3, 4, 5)}},
        .p = {CTN_PAD_REPLICATE, 1, 2, 0, 0, 0, 0, 3, 1}, .grad = 2),
    ONE("pad_by", "wrap", pad_by, .in = {{S3(3, 4, 5)}},
        .p = {CTN_PAD_WRAP, 1, 0, 2, 0, 0, 2, 1, 5}, .grad = 2),
    ONE("pad_by", "reflect_long", pad_by, .in = {{S1(3)}}, .p = {CTN_PAD_REFLECT, 8, 0, 0, 0, 0, 9},
        .grad = 2),
    ONE("pad_by", "wrap_long", pad_by, .in = {{S2(3, 2)}},
        .p = {CTN_PAD_WRAP, 8, 5, 0, 0, 0, 9, 0}, .grad = 1),
    ONE("pad_by", "reflect_one", pad_by, .in = {{S2(1, 3)}},
        .p = {CTN_PAD_REFLECT, 2, 0, 0, 0, 0, 1}, .grad = 1),
    ONE("pad_by", "fields", pad_by, .in = {{S5(2, 2, 3, 3, 2)}},
        .p = {CTN_PAD_REFLECT, 0, 0, 1, 2, 1, 0, 0, 2, 0, 1}, .grad = 2),
    ONE("pad_by", "large", pad_by, .in = {{S4(3, 5, 40, 41)}},
        .p = {CTN_PAD_WRAP, 0, 0, 3, 2, 0, 0, 0, 1, 4}, .grad = 1),
    ONE("pad_by", "nothing", pad_by, .in = {{S2(4, 0)}}, .p = {CTN_PAD_WRAP, 1, 0, 0, 0, 0, 2},
        .grad = 1),
    ONE("pad_by", "no_padding", pad_by, .in = {{S2(4, 3)}}, .p = {CTN_PAD_WRAP}, .grad = 1),
    TWO("conv", "reflected", padded_conv, .in = {{S4(2, 3, 6, 5)}, {S4(4, 3, 3, 3)}},
        .p = {CTN_PAD_REFLECT, 1, 2, 2, 1}, .grad = 2, .engine_sums = 1),
    TWO("conv", "wrapped", padded_conv, .in = {{S4(2, 3, 6, 5)}, {S4(4, 3, 3, 3)}},
        .p = {CTN_PAD_WRAP, 1, 1, 1, 1}, .grad = 1, .engine_sums = 1),

    ONE("sort", "rows", sort, .in = {DISTINCT(S2(5, 9))}, .p = {-1, 0}, .grad = 2),
    ONE("sort", "descending", sort, .in = {DISTINCT(S2(9, 5))}, .p = {0, 1}, .grad = 2),
    ONE("sort", "middle", sort, .in = {DISTINCT(S3(2, 7, 3))}, .p = {1, 0}, .grad = 1),
    ONE("sort", "long", sort, .in = {DISTINCT(S2(3, 1001))}, .p = {1, 0}, .grad = 1),
    ONE("sort", "long_ties", sort, .p = {1, 1},
        .in = {{S2(3, 500), .fill = FILL_INDEX, .lo = -20, .hi = 20}}),
    ONE("sort", "argsort", argsort, .in = {{S2(40, 60)}}, .p = {0, 1}),
    ONE("sort", "argsort_ties", argsort, .p = {-1, 0},
        .in = {{S2(9, 200), .fill = FILL_INDEX, .lo = -2, .hi = 3}}),
    ONE("sort", "argsort_short_ties", argsort, .p = {-1, 1},
        .in = {{S2(9, 20), .fill = FILL_INDEX, .lo = -2, .hi = 3}}),
    ONE("sort", "many_rows", sort, .in = {DISTINCT(S2(1000, 33))}, .p = {1, 1}, .grad = 1),
    ONE("sort", "nothing", sort, .in = {{S2(3, 0)}}, .p = {1, 1}, .grad = 1),
    ONE("sort", "no_rows", sort, .in = {{S2(0, 3)}}, .p = {1, 1}, .grad = 1),

    EINSUM("matmul", "matrices", 2, .in = {{S2(3, 4)}, {S2(4, 5)}}, .p = {0}, .grad = 2),
    EINSUM("matmul", "turned", 2, .in = {{S2(3, 4)}, {S2(4, 5)}}, .p = {1}, .grad = 2),
    EINSUM("matmul", "batched", 2, .in = {{S3(2, 3, 4)}, {S3(2, 4, 5)}}, .p = {2}, .grad = 2),
    EINSUM("matmul", "batched_turned", 2, .in = {{S3(2, 3, 4)}, {S3(2, 5, 4)}}, .p = {3},
           .grad = 1),
    EINSUM("matmul", "rows", 2, .in = {{S3(2, 3, 4)}, {S2(4, 5)}}, .p = {4}, .grad = 1),
    EINSUM("matmul", "attention", 2, .in = {{S4(2, 3, 4, 5)}, {S4(2, 6, 4, 5)}}, .p = {5},
           .grad = 2),
    EINSUM("matmul", "batch_last", 2, .in = {{S3(3, 4, 2)}, {S3(4, 5, 2)}}, .p = {6}, .grad = 1),
    EINSUM("transpose", "transpose", 1, .in = {{S2(3, 4)}}, .p = {7}, .grad = 1),
    EINSUM("sum", "all", 1, .in = {{S3(3, 4, 2)}}, .p = {8}, .grad = 1),
    EINSUM("sum", "leading", 1, .in = {{S3(3, 4, 2)}}, .p = {9}, .grad = 1),
    EINSUM("diagonal", "diagonal", 1, .in = {{S2(4, 4)}}, .p = {10}, .grad = 2),
    EINSUM("diagonal", "traces", 1, .in = {{S3(3, 4, 4)}}, .p = {11}, .grad = 1),
    EINSUM("diagonal", "apart", 1, .in = {{S3(3, 4, 3)}}, .p = {12}, .grad = 1),
    EINSUM("diagonal", "three_times", 1, .in = {{S3(3, 3, 3)}}, .p = {13}, .grad = 1),
    EINSUM("mul", "outer", 2, .in = {{S1(3)}, {S1(4)}}, .p = {14}, .grad = 2),
    EINSUM("mul", "dot", 2, .in = {{S1(7)}, {S1(7)}}, .p = {15}, .grad = 2),
    EINSUM("mul", "dots", 2, .in = {{S2(3, 7)}, {S2(3, 7)}}, .p = {16}, .grad = 1),
    EINSUM("matmul", "two_summed", 2, .in = {{S3(3, 4, 5)}, {S3(5, 4, 2)}}, .p = {17}, .grad = 1),
    EINSUM("matmul", "three_operands", 3, .in = {{S3(2, 3, 4)}, {S2(4, 5)}, {S2(5, 2)}},
           .p = {18}, .grad = 2),
    EINSUM("matmul", "chain", 4, .in = {{S2(2, 3)}, {S2(3, 4)}, {S2(4, 5)}, {S2(5, 2)}},
           .p = {19}, .grad = 1),
    EINSUM("sum", "dots_first", 2, .in = {{S2(3, 4)}, {S1(4)}}, .p = {21}, .grad = 1),
    EINSUM("mul", "outer_matrices", 2, .in = {{S2(2, 3)}, {S2(4, 5)}}, .p = {22}, .grad = 1),
    EINSUM("mul", "rows_scaled", 2, .in = {{S2(3, 4)}, {S1(3)}}, .p = {23}, .grad = 1),
    EINSUM("sum", "unrelated", 2, .in = {{S2(3, 4)}, {S2(2, 5)}}, .p = {24}, .grad = 1),
    EINSUM("mul", "elementwise", 2, .in = {{S2(3, 4)}, {S2(3, 4)}}, .p = {25}, .grad = 1),
    EINSUM("diagonal", "then_product", 2, .in = {{S3(3, 3, 4)}, {S1(4)}}, .p = {26}, .grad = 1),
    EINSUM("mul", "scalar", 2, .in = {{S0()}, {S1(4)}}, .p = {27}, .grad = 1),
    EINSUM("matmul", "modes", 2, .in = {{S4(2, 3, 4, 5)}, {S4(3, 2, 4, 5)}}, .p = {28}, .grad = 1),
    EINSUM("matmul", "broadcast", 2, .in = {{S4(3, 2, 2, 4)}, {S4(1, 2, 4, 3)}}, .p = {29},
           .grad = 1),
    EINSUM("matmul", "empty_sum", 2, .in = {{S2(3, 0)}, {S2(0, 5)}}, .p = {0}, .grad = 1),
    EINSUM("matmul", "no_rows", 2, .in = {{S3(0, 3, 4)}, {S3(0, 4, 5)}}, .p = {2}, .grad = 1),
    TWO("matmul", "tensordot", tensordot, .in = {{S3(3, 4, 5)}, {S3(5, 2, 4)}},
        .p = {2, 1, -1, 0, 2, 0}, .grad = 1, .engine_sums = 1),
    TWO("mul", "tensordot_outer", tensordot, .in = {{S2(3, 4)}, {S1(5)}}, .grad = 1),

    ONE("im2col", "image", im2col, .in = {{S4(2, 3, 5, 6)}}, .p = {2, 1, 0, CTN_PAD_NONE, 1},
        .grad = 2),
    ONE("im2col", "padded", im2col, .in = {{S4(2, 2, 5, 6)}}, .p = {3, 2, 1, 2, 1}, .grad = 2),
    ONE("im2col", "dilated", im2col, .in = {{S4(1, 2, 7, 9)}}, .p = {3, 1, 1, 1, 2}, .grad = 1),
    ONE("im2col", "reflected", im2col, .in = {{S4(1, 2, 5, 6)}},
        .p = {3, 1, 1, 1, 1, CTN_PAD_REFLECT}, .grad = 1),
    ONE("im2col", "signal", im2col, .in = {{S3(2, 3, 11)}}, .p = {3, 2, 1, 1, 1}, .grad = 1),
    ONE("im2col", "field", im2col, .in = {{S5(1, 2, 3, 4, 3)}}, .p = {2, 1, 0, CTN_PAD_NONE, 1},
        .grad = 1),
    ONE("im2col", "large", im2col, .in = {{S4(3, 8, 20, 21)}}, .p = {3, 1, 1, 1, 1}, .grad = 1),
    ONE("im2col", "no_samples", im2col, .in = {{S4(0, 2, 5, 6)}}, .p = {3, 2, 1, 2, 1}, .grad = 1),
    {.op = "im2col", .name = "local_conv", .nin = 3, .call = local_conv_call,
     .ref = local_conv_ref, .p = {2, 1}, .grad = 2, .engine_sums = 1,
     .in = {{S4(2, 3, 5, 6)}, {.ndim = 6, .dim = {2, 3, 3, 3, 3, 3}}, {S3(2, 3, 3)}}},
    TWO("max_pool", "unpool", max_unpool,
        .in = {DISTINCT(S4(2, 3, 6, 4), .no_grad = 1), {S4(2, 3, 3, 2)}}, .p = {2, 2}, .grad = 2),
    TWO("max_unpool_places", "of_pooling", max_unpool,
        .in = {DISTINCT(S4(2, 3, 9, 7), .no_grad = 1), {S4(2, 3, 4, 3)}}, .p = {3, 2}, .grad = 1),
    TWO("max_pool", "unpool_overlapping", max_unpool,
        .in = {DISTINCT(S4(2, 2, 7, 5), .no_grad = 1), {S4(2, 2, 3, 2)}}, .p = {3, 2}, .grad = 1),
    ONE("max_pool", "pyramid", pyramid, .in = {DISTINCT(S4(2, 3, 8, 7))}, .p = {3}, .grad = 2),
    ONE("max_pool", "pyramid_of_one", pyramid, .in = {DISTINCT(S4(2, 3, 5, 6))}, .p = {1},
        .grad = 1),
    ONE("avg_pool", "response_norm", response, .in = {{S4(2, 7, 3, 2)}}, .p = {5},
        .q = {2, 0.3, 0.75}, .grad = 2),
    ONE("avg_pool", "response_norm_rows", response, .in = {{S2(3, 4)}}, .p = {3},
        .q = {1, 0.5, 0.5}, .grad = 1),
    ONE("avg_pool", "response_norm_alone", response, .in = {{S3(3, 4, 2)}}, .p = {1},
        .q = {1, 0.5, 0.5}, .grad = 1),
    TWO("grid_sample", "inside", grid_sample,
        .in = {{S4(2, 3, 5, 4)}, {S4(2, 3, 2, 2), .fill = FILL_UNIFORM, .lo = -0.7, .hi = 0.7}},
        .grad = 2),
    TWO("grid_sample", "aligned", grid_sample,
        .in = {{S4(2, 2, 4, 6)}, {S4(2, 3, 3, 2), .fill = FILL_UNIFORM, .lo = -0.9, .hi = 0.9}},
        .p = {1}, .grad = 2),
    TWO("grid_sample", "across_the_edge", grid_sample,
        .in = {{S4(2, 2, 3, 3)}, {S4(2, 5, 4, 2), .fill = FILL_UNIFORM, .lo = -1.8, .hi = 1.8}},
        .grad = 2),
    TWO("grid_sample", "large", grid_sample, .tol32 = 1e-4,
        .in = {{S4(2, 19, 15, 17)},
               {S4(2, 13, 31, 2), .fill = FILL_UNIFORM, .lo = -1.2, .hi = 1.2}}, .grad = 1),
    TWO("grid_sample", "no_points", grid_sample, .in = {{S4(2, 3, 5, 4)}, {S4(2, 0, 2, 2)}},
        .grad = 1),
    ONE("matmul", "affine_grid", affine_grid, .in = {{S3(2, 2, 3)}}, .p = {0, 3, 4}, .grad = 1,
        .engine_sums = 1),
    ONE("matmul", "affine_grid_aligned", affine_grid, .in = {{S3(2, 2, 3)}}, .p = {1, 1, 4},
        .grad = 1, .engine_sums = 1),
    {0},
};
/* clang-format on */
