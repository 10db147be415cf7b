/* SPDX-License-Identifier: Apache-2.0
 *
 * Resize and Upsample. Each axis is resampled by itself. The rules of ONNX for coordinates and
 * kernels give, for every element of the result, weights of the elements of the input; they are
 * computed while recording. Nearest neighbours are gathered, and everything else is a product with
 * the matrix of weights, except for the two forms that ctn_resize has.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"

enum { HALF_PIXEL, SYMMETRIC, PYTORCH, ALIGN_CORNERS, ASYMMETRIC, CROP };
enum { NEAREST, LINEAR, CUBIC };
enum { PREFER_FLOOR, PREFER_CEIL, FLOOR, CEIL };
enum { LONGEST = 1000000000 }; /* axis that is resampled; a product of two fits an int64_t */

typedef struct {
    int mode, coordinates, nearest;
    bool antialias, exclude;
    double a, outside;
} method;

typedef struct {
    int64_t n, m;             /* elements of input and result */
    double scale, start, end; /* start, end: of the region of interest */
} axis_job;

static int choice(const ctn__onnx_call *c, const char *name, int n, const char *const *texts,
                  int otherwise)
{
    for (int i = 0; i < n; i++)
        if (ctn__onnx_text_is(c, name, texts[i], false)) return i;
    return otherwise;
}

static method method_of(const ctn__onnx_call *c)
{
    static const char *const coordinates[] = {"half_pixel",         "half_pixel_symmetric",
                                              "pytorch_half_pixel", "align_corners",
                                              "asymmetric",         "tf_crop_and_resize"};
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const nearest[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                          "ceil"};
    const bool old = c->node->opset < 11 || c->node->op->kind != 0;
    method m = {.mode = choice(c, "mode", 3, modes, NEAREST),
                .coordinates = choice(c, "coordinate_transformation_mode", 6, coordinates,
                                      old ? ASYMMETRIC : HALF_PIXEL),
                .nearest = choice(c, "nearest_mode", 4, nearest, old ? FLOOR : PREFER_FLOOR),
                .antialias = ctn__onnx_int(c, "antialias", 0),
                .exclude = ctn__onnx_int(c, "exclude_outside", 0),
                .a = ctn__onnx_float(c, "cubic_coeff_a", -0.75),
                .outside = ctn__onnx_float(c, "extrapolation_value", 0)};
    return m;
}

/* The place in the input that element o of the result shows. */
static double place(const method *h, const axis_job *j, int64_t o)
{
    const double n = (double)j->n, m = (double)j->m, x = (double)o;
    switch (h->coordinates) {
    case SYMMETRIC: return n / 2 * (1 - m / (j->scale * n)) + (x + 0.5) / j->scale - 0.5;
    case PYTORCH: return j->m > 1 ? (x + 0.5) / j->scale - 0.5 : 0;
    case ALIGN_CORNERS: return j->m > 1 ? x * (n - 1) / (j->scale * n - 1) : 0;
    case ASYMMETRIC: return x / j->scale;
    case CROP:
        return j->m > 1 ? j->start * (n - 1) + x * (j->end - j->start) * (n - 1) / (m - 1)
                        : 0.5 * (j->start + j->end) * (n - 1);
    default: return (x + 0.5) / j->scale - 0.5;
    }
}

static int64_t nearest_of(const method *h, const axis_job *j, int64_t o)
{
    const double x = place(h, j, o);
    double at = h->nearest == FLOOR         ? floor(x)
                : h->nearest == CEIL        ? ceil(x)
                : h->nearest == PREFER_CEIL ? floor(x + 0.5)
                                            : ceil(x - 0.5);
    if (!(at >= 0)) at = 0;
    return at > (double)(j->n - 1) ? j->n - 1 : (int64_t)at;
}

/* The weight of an element at distance t. */
static double kernel(const method *h, double t)
{
    const double a = h->a;
    t = fabs(t);
    if (h->mode == LINEAR) return t < 1 ? 1 - t : 0;
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((t - 5) * a * t + 8 * a) * t - 4 * a : 0;
}

/* A small factor widens the kernel, if it is to smooth. */
static double shrink_of(const method *h, const axis_job *j)
{
    return h->antialias && j->scale > 0 && j->scale < 1 ? j->scale : 1;
}

/* How far from its place an element of the result sees the input. */
static double reach_of(const method *h, const axis_job *j)
{
    return (h->mode == LINEAR ? 1 : 2) / shrink_of(h, j);
}

/* Row o of the matrix; elements beyond an end count as the element at the end. */
static void weights(const method *h, const axis_job *j, int64_t o, double *row)
{
    const double far = 1e9, there = place(h, j, o);
    const double x = there > far ? far : there > -far ? there : -far; /* fits an integer */
    const double shrink = shrink_of(h, j), reach = reach_of(h, j);
    double sum = 0;
    const int64_t last = (int64_t)ceil(x + reach);
    for (int64_t i = (int64_t)floor(x - reach); i <= last; i++) {
        const double w = kernel(h, ((double)i - x) * shrink);
        const bool inside = i >= 0 && i < j->n;
        if (w == 0 || (h->exclude && !inside)) continue;
        row[i < 0 ? 0 : inside ? i : j->n - 1] += w;
        sum += w;
    }
    for (int64_t i = 0; i < j->n && sum != 0; i++) row[i] /= sum;
}

/* Replaces the elements of an axis of y that lie outside of the input, which only regions have. */
static ctn_tensor *extrapolate(ctn__onnx_call *c, const method *h, const axis_job *j, int axis,
                               ctn_tensor *y)
{
    if (!y || h->coordinates != CROP) return y;
    uint8_t *out = ctn__onnx_memory(c->run, j->m, 1);
    int64_t dims[CTN_MAX_DIMS];
    bool any = false;
    if (!out) return NULL;
    for (int64_t o = 0; o < j->m; o++) {
        const double x = place(h, j, o);
        any |= out[o] = x < 0 || x > (double)(j->n - 1);
    }
    if (!any) return y;
    for (int i = 0; i < y->d.ndim; i++) dims[i] = i == axis ? j->m : 1;
    return ctn_masked_fill_at(c->at, y, ctn__onnx_array(c, out, CTN_BOOL, y->d.ndim, dims),
                              h->outside);
}

static ctn_tensor *resample(ctn__onnx_call *c, const method *h, const axis_job *j, int axis,
                            ctn_tensor *x)
{
    const char *at = c->at;
    if (h->mode == NEAREST) {
        int64_t *from = ctn__onnx_memory(c->run, j->m, sizeof *from);
        for (int64_t o = 0; o < j->m && from; o++) from[o] = nearest_of(h, j, o);
        ctn_tensor *index = ctn__onnx_array(c, from, CTN_I64, CTN_SHAPE(j->m));
        return extrapolate(c, h, j, axis, ctn_index_select_at(at, x, index, axis));
    }
    if (!x) return NULL;
    const ctn_dtype type = x->d.dtype;
    void *matrix = ctn__onnx_memory(c->run, ctn__onnx_times(j->m, j->n), ctn_dtype_size(type));
    double *row = ctn__onnx_memory(c->run, j->n, sizeof *row);
    const int64_t taps = ctn__onnx_to_int(2 * reach_of(h, j) + 3);
    if (!matrix || !row || ctn__onnx_spend_elements(c->run, ctn__onnx_times(j->m, taps), 0) < 0)
        return NULL;
    for (int64_t o = 0; o < j->m; o++) {
        memset(row, 0, (size_t)j->n * sizeof *row);
        weights(h, j, o, row);
        for (int64_t i = 0; i < j->n; i++) ctn__elem_set(matrix, type, o * j->n + i, row[i]);
    }
    ctn_tensor *y = ctn_moveaxis_at(at, x, axis, -1);
    y = ctn_matmul_at(at, y, ctn__onnx_array(c, matrix, type, CTN_SHAPE(j->m, j->n)), 0, 1);
    return extrapolate(c, h, j, axis, ctn_moveaxis_at(at, y, -1, axis));
}

/* Does ctn_resize compute this? It resamples all dimensions but the first two. Their lengths are
 * limited and paid for (check_sizes). */
static bool ready_made(const method *h, int ndim, const axis_job *j)
{
    if (ndim < 3 || ndim > 2 + CTN_MAX_SPATIAL || j[0].m != j[0].n || j[1].m != j[1].n)
        return false;
    if (h->mode == CUBIC || h->coordinates == CROP) return false;
    for (int i = 2; i < ndim; i++) {
        const bool exact =
            fabs(j[i].scale * (double)j[i].n - (double)j[i].m) < 1e-9 * (double)j[i].m;
        if (j[i].m < 1 || j[i].n < 1) return false;
        if (h->mode == LINEAR &&
            (!exact || h->exclude || (h->antialias && j[i].scale < 1) ||
             !(h->coordinates == HALF_PIXEL || (h->coordinates == PYTORCH && j[i].m > 1))))
            return false;
        if (h->mode != NEAREST || (j[i].m == j[i].n && j[i].scale == 1)) continue;
        for (int64_t o = 0; o < j[i].m; o++)
            if (nearest_of(h, &j[i], o) != o * j[i].n / j[i].m) return false;
    }
    return true;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* One size for all axes, so that the ratio of their lengths stays. */
static void keep_ratio(const ctn__onnx_call *c, int n, const int *axes, axis_job *j)
{
    const bool larger = ctn__onnx_text_is(c, "keep_aspect_ratio_policy", "not_smaller", false);
    if (!larger && !ctn__onnx_text_is(c, "keep_aspect_ratio_policy", "not_larger", false)) return;
    double scale = 0;
    for (int i = 0; i < n; i++) {
        const double s = (double)j[axes[i]].m / (double)j[axes[i]].n;
        if (i == 0 || (larger ? s > scale : s < scale)) scale = s;
    }
    for (int i = 0; i < n; i++) {
        j[axes[i]].scale = scale;
        j[axes[i]].m = ctn__onnx_to_int(floor(scale * (double)j[axes[i]].n + 0.5));
    }
}

static ctn_status check_sizes(ctn__onnx_call *c, int ndim, const axis_job *j)
{
    for (int i = 0; i < ndim; i++) {
        if (j[i].m == j[i].n && j[i].scale == 1) continue;
        if (j[i].m < 0 || j[i].m >= LONGEST || j[i].n >= LONGEST || (j[i].m > 0 && j[i].n == 0))
            return ctn__onnx_fail(c, CTN_ESHAPE, "size %lld of an axis of %lld", (long long)j[i].m,
                                  (long long)j[i].n);
        CTN_TRY(ctn__onnx_spend_elements(c->run, j[i].m, 0));
    }
    return CTN_OK;
}

static ctn_status axis_jobs(ctn__onnx_call *c, const ctn_desc *x, axis_job *j)
{
    int axes[CTN_MAX_DIMS], n = x->ndim;
    int64_t given[CTN_MAX_DIMS];
    const bool old = c->node->opset < 11 || c->node->op->kind != 0;
    const int roi = 1, scales = old ? 1 : 2, sizes = 3;
    int na;
    CTN_TRY(ctn__onnx_list(c, "axes", -1, given, CTN_MAX_DIMS, &na));
    for (int i = 0; i < x->ndim; i++) {
        j[i] = (axis_job){.n = x->dim[i], .m = x->dim[i], .scale = 1, .end = 1};
        axes[i] = i;
    }
    for (int i = 0; i < na; i++) CTN_TRY(ctn__onnx_axis(c, given[i], x->ndim, &axes[i]));
    if (na >= 0) n = na;
    const bool by_size = ctn__onnx_has(c, sizes) && ctn__onnx_count(c->in[sizes]) > 0;
    const int by = by_size ? sizes : scales;
    CTN_TRY(ctn__onnx_need(c, by));
    if (ctn__onnx_count(c->in[by]) != n)
        return ctn__onnx_fail(c, CTN_ESHAPE, "%lld %s for %d axes",
                              (long long)ctn__onnx_count(c->in[by]), by_size ? "sizes" : "scales",
                              n);
    const bool crop = !old && ctn__onnx_has(c, roi) && ctn__onnx_count(c->in[roi]) == 2 * n;
    if (crop) CTN_TRY(ctn__onnx_need(c, roi));
    for (int i = 0; i < n; i++) {
        axis_job *a = &j[axes[i]];
        const double v = ctn__onnx_number_of(c->in[by], i);
        if (crop) {
            a->start = ctn__onnx_number_of(c->in[roi], i);
            a->end = ctn__onnx_number_of(c->in[roi], n + i);
        }
        const double span = crop && ctn__onnx_text_is(c, "coordinate_transformation_mode",
                                                      "tf_crop_and_resize", false)
                                ? a->end - a->start
                                : 1;
        const double m = by_size ? v : floor((double)a->n * span * v);
        a->m = ctn__onnx_to_int(m);
        a->scale = by_size ? m / (double)a->n : v;
    }
    if (by_size) keep_ratio(c, n, axes, j);
    return check_sizes(c, x->ndim, j);
}

ctn_status ctn__onnx_do_resize(ctn__onnx_call *c)
{
    const method h = method_of(c);
    axis_job j[CTN_MAX_DIMS] = {{0}};
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = given;
    if (!x) return ctn_error_status();
    CTN_TRY(axis_jobs(c, &x->d, j));
    const int ndim = x->d.ndim;
    if (h.mode != NEAREST || ctn__is_float(x->d.dtype)) x = ctn__onnx_real(c->at, x);
    if (x && ctn__is_f32_f64(x->d.dtype) && ready_made(&h, ndim, j)) {
        int64_t size[CTN_MAX_SPATIAL] = {0};
        for (int i = 2; i < ndim; i++) size[i - 2] = j[i].m;
        x = ctn_resize_at(c->at, x, h.mode == NEAREST ? CTN_RESIZE_NEAREST : CTN_RESIZE_LINEAR,
                          ndim - 2, size);
        return ctn__onnx_set(c, 0, x ? ctn_cast_at(c->at, x, given->d.dtype) : NULL);
    }
    for (int i = 0; i < 2 * ndim;
         i++) { /* those that grow last: nothing is larger than the result */
        const axis_job *a = &j[i % ndim];
        if ((a->m > a->n) != (i >= ndim)) continue;
        if (a->m != a->n || a->scale != 1 || a->start != 0 || a->end != 1)
            x = resample(c, &h, a, i % ndim, x);
    }
    return ctn__onnx_set(c, 0, x ? ctn_cast_at(c->at, x, given->d.dtype) : NULL);
}

#endif
