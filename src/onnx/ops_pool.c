/* SPDX-License-Identifier: Apache-2.0
 *
 * Pooling. Ordinary windows use the pooling ops of Catena. Windows with dilation or with different
 * padding at both ends are computed from strided slices of the padded input, one for each element
 * of the kernel.
 */
#include "onnx/onnx.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <math.h>

#include "onnx/kinds.h"
#include "onnx/window.h"

enum { LARGEST = 1 << 24 }; /* of the numbers that describe a window */
enum { MOST_TAPS = 4096 };  /* elements of a kernel that is computed by slices */

static void fill(int64_t *to, int n, int64_t value)
{
    for (int i = 0; i < n; i++) to[i] = value;
}

static ctn_status auto_pads(ctn__onnx_call *c, const ctn_desc *x, ctn__onnx_window *w)
{
    const bool upper = ctn__onnx_text_is(c, "auto_pad", "SAME_UPPER", false);
    if (!upper && !ctn__onnx_text_is(c, "auto_pad", "SAME_LOWER", false)) return CTN_OK;
    for (int i = 0; i < w->n; i++) {
        const int64_t in = x->dim[2 + i], out = (in + w->stride[i] - 1) / w->stride[i];
        int64_t total = (out - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 - in;
        if (total < 0) total = 0;
        w->before[i] = upper ? total / 2 : total - total / 2;
        w->after[i] = total - w->before[i];
    }
    return CTN_OK;
}

/* A list of n numbers, which stay as they are if it is left out. */
static ctn_status window_list(ctn__onnx_call *c, const char *name, int64_t *to, int n, bool needed)
{
    int found;
    CTN_TRY(ctn__onnx_list(c, name, -1, to, n, &found));
    if (found == n || (found <= 0 && !needed)) return CTN_OK;
    return ctn__onnx_fail(c, CTN_EFORMAT, "%s has %d numbers, expected %d", name,
                          found > 0 ? found : 0, n);
}

ctn_status ctn__onnx_window_of(ctn__onnx_call *c, const ctn_desc *x, const int64_t *kernel,
                               ctn__onnx_window *w)
{
    int64_t pads[2 * CTN_MAX_SPATIAL] = {0};
    *w = (ctn__onnx_window){.n = x->ndim - 2};
    if (w->n < 1 || w->n > CTN_MAX_SPATIAL)
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "x has %d dimensions, expected 3 to %d", x->ndim,
                              2 + CTN_MAX_SPATIAL);
    fill(w->stride, w->n, 1);
    fill(w->dilation, w->n, 1);
    if (kernel) memcpy(w->kernel, kernel, (size_t)w->n * sizeof *kernel);
    else CTN_TRY(window_list(c, "kernel_shape", w->kernel, w->n, true));
    CTN_TRY(window_list(c, "strides", w->stride, w->n, false));
    CTN_TRY(window_list(c, "dilations", w->dilation, w->n, false));
    CTN_TRY(window_list(c, "pads", pads, 2 * w->n, false));
    for (int i = 0; i < w->n; i++) {
        w->before[i] = pads[i];
        w->after[i] = pads[w->n + i];
        if (w->kernel[i] < 1 || w->stride[i] < 1 || w->dilation[i] < 1 || w->before[i] < 0 ||
            w->after[i] < 0 || w->kernel[i] > LARGEST || w->stride[i] > LARGEST ||
            w->dilation[i] > LARGEST || w->before[i] > LARGEST || w->after[i] > LARGEST)
            return ctn__onnx_fail(c, CTN_EFORMAT, "invalid window in dimension %d", i);
    }
    return auto_pads(c, x, w);
}

/* ---- pooling by slices ----------------------------------------------------------------------- */

typedef struct {
    ctn__onnx_window w;
    int64_t in[CTN_MAX_SPATIAL], out[CTN_MAX_SPATIAL];
} pooling;

static ctn_status pool_sizes(ctn__onnx_call *c, const ctn_desc *x, pooling *p)
{
    const bool ceil = ctn__onnx_int(c, "ceil_mode", 0);
    CTN_TRY(ctn__onnx_window_of(c, x, NULL, &p->w));
    for (int i = 0; i < p->w.n; i++) {
        const ctn__onnx_window *w = &p->w;
        p->in[i] = x->dim[2 + i];
        const int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
        const int64_t room = p->in[i] + w->before[i] + w->after[i] - reach;
        if (room < 0)
            return ctn__onnx_fail(c, CTN_ESHAPE, "a kernel of %lld does not fit %lld elements",
                                  (long long)reach, (long long)p->in[i]);
        if (w->before[i] >= reach || w->after[i] >= reach)
            return ctn__onnx_fail(c, CTN_EFORMAT,
                                  "padding of %lld and %lld, expected less than the kernel, %lld",
                                  (long long)w->before[i], (long long)w->after[i],
                                  (long long)reach);
        const int64_t step = w->stride[i] > 0 ? w->stride[i] : 1;
        p->out[i] = (room + (ceil ? step - 1 : 0)) / step + 1;
        if (ceil && (p->out[i] - 1) * step >= p->in[i] + w->before[i]) p->out[i]--;
    }
    return CTN_OK;
}

/* x padded so that every window lies inside. */
static ctn_tensor *padded(ctn__onnx_call *c, ctn_tensor *x, const pooling *p, double value)
{
    int64_t before[CTN_MAX_DIMS] = {0}, after[CTN_MAX_DIMS] = {0};
    int64_t all = ctn__onnx_times(x->d.dim[0], x->d.dim[1]);
    bool any = false;
    for (int i = 0; i < p->w.n; i++) {
        const int64_t end = (p->out[i] - 1) * p->w.stride[i] +
                            (p->w.kernel[i] - 1) * p->w.dilation[i] + 1 - p->w.before[i];
        before[2 + i] = p->w.before[i];
        after[2 + i] = end > p->in[i] ? end - p->in[i] : 0;
        any |= before[2 + i] > 0 || after[2 + i] > 0;
        all = ctn__onnx_times(all, before[2 + i] + p->in[i] + after[2 + i]);
    }
    if (any && ctn__onnx_spend_elements(c->run, all, ctn_dtype_size(x->d.dtype)) < 0) return NULL;
    return any ? ctn_pad_at(c->at, x, before, after, value) : x;
}

static ctn_tensor *by_slices(ctn__onnx_call *c, ctn_tensor *x, const pooling *p, bool max)
{
    int64_t taps = 1, work = x ? ctn__onnx_times(x->d.dim[0], x->d.dim[1]) : 0;
    ctn_tensor *y = NULL;
    for (int i = 0; i < p->w.n; i++) taps *= p->w.kernel[i];
    for (int i = 0; i < p->w.n; i++) work = ctn__onnx_times(work, p->out[i]);
    if (!x || ctn__onnx_spend_elements(c->run, ctn__onnx_times(work, taps), 0) < 0) return NULL;
    x = padded(c, x, p, max ? -INFINITY : 0);
    for (int64_t k = 0; k < taps && x; k++) {
        if (ctn__onnx_spend_recorded(c->run) < 0) return NULL;
        ctn_tensor *part = x;
        int64_t left = k;
        for (int i = p->w.n; i-- > 0;) {
            const int64_t at = left % p->w.kernel[i] * p->w.dilation[i];
            left /= p->w.kernel[i];
            part = ctn_slice_step_at(c->at, part, 2 + i, at, p->out[i], p->w.stride[i]);
        }
        if (k == 0) y = part;
        else y = max ? ctn_maximum_at(c->at, y, part) : ctn_add_at(c->at, y, part);
    }
    return y;
}

/* The number of elements in each window, of x or with its padding, as (1,1,out...). */
static ctn_tensor *window_counts(ctn__onnx_call *c, const pooling *p, bool pads, ctn_dtype type)
{
    int64_t dims[CTN_MAX_DIMS] = {1, 1}, n = 1, edges = 0;
    for (int i = 0; i < p->w.n; i++) {
        n = ctn__onnx_times(n, dims[2 + i] = p->out[i]);
        edges += p->w.kernel[i];
    }
    void *count = ctn__onnx_memory(c->run, n, ctn_dtype_size(type));
    if (!count || ctn__onnx_spend_elements(c->run, ctn__onnx_times(n, edges), 0) < 0) return NULL;
    for (int64_t o = 0; o < n; o++) {
        int64_t left = o, all = 1;
        for (int i = p->w.n; i-- > 0;) {
            int64_t inside = 0;
            for (int64_t k = 0; k < p->w.kernel[i]; k++) {
                const int64_t at =
                    left % p->out[i] * p->w.stride[i] + k * p->w.dilation[i] - p->w.before[i];
                inside += pads ? at < p->in[i] + p->w.after[i] : at >= 0 && at < p->in[i];
            }
            left /= p->out[i];
            all *= inside;
        }
        ctn__elem_set(count, type, o, (double)(all > 0 ? all : 1));
    }
    return ctn__onnx_array(c, count, type, 2 + p->w.n, dims);
}

/* ---- the ops --------------------------------------------------------------------------------- */

/* Options of an ordinary pooling; false if the windows need slices. */
static bool ordinary(ctn__onnx_call *c, const pooling *p, ctn_pool_opt *opt)
{
    *opt =
        (ctn_pool_opt){.struct_size = sizeof *opt, .ceil = (int)ctn__onnx_int(c, "ceil_mode", 0)};
    opt->exclude_pad = !ctn__onnx_int(c, "count_include_pad", 0);
    for (int i = 0; i < p->w.n; i++) {
        if (p->w.dilation[i] != 1 || p->w.before[i] != p->w.after[i] ||
            2 * p->w.before[i] > p->w.kernel[i])
            return false;
        opt->kernel[i] = p->w.kernel[i];
        opt->stride[i] = p->w.stride[i];
        opt->pad[i] = p->w.before[i] > 0 ? p->w.before[i] : CTN_PAD_NONE;
    }
    return true;
}

/* Positions of the maxima in the flattened input, from their places in the windows. */
static ctn_status max_positions(ctn__onnx_call *c, const ctn_desc *x, const pooling *p,
                                ctn_tensor *places)
{
    const void *place = places ? ctn_data(places) : NULL;
    if (!place) return ctn_error_status();
    const ctn_desc d = places->d;
    const bool columns = ctn__onnx_int(c, "storage_order", 0);
    int64_t *y = ctn__onnx_set_host(c, 1, CTN_I64, d.ndim, d.dim), image = 1, all = 1;
    if (!y) return ctn_error_status();
    for (int i = 0; i < p->w.n; i++) {
        image *= p->in[i];
        all *= p->out[i];
    }
    for (int64_t o = 0; o < ctn__count(&d); o++) {
        int64_t k = (int64_t)ctn__elem_get(place, d.dtype, o), left = o, at = 0, step = 1;
        int64_t pos[CTN_MAX_SPATIAL];
        for (int i = p->w.n; i-- > 0;) {
            pos[i] = left % p->out[i] * p->w.stride[i] + k % p->w.kernel[i] - p->w.before[i];
            left /= p->out[i];
            k /= p->w.kernel[i];
        }
        for (int i = 0; i < p->w.n; i++) {
            const int a = columns ? i : p->w.n - 1 - i;
            at += pos[a] * step;
            step *= p->in[a];
        }
        y[o] = o / all * image + at;
    }
    (void)x;
    return CTN_OK;
}

ctn_status ctn__onnx_do_pool(ctn__onnx_call *c)
{
    const int kind = c->node->op->kind;
    const char *at = c->at;
    pooling p;
    ctn_pool_opt opt;
    ctn_tensor *given = ctn__onnx_in(c, 0), *x = ctn__onnx_real(at, given), *places = NULL;
    if (!x) return ctn_error_status();
    CTN_TRY(pool_sizes(c, &x->d, &p));
    const bool simple = ordinary(c, &p, &opt);
    int64_t taps = 1;
    for (int i = 0; i < p.w.n; i++) taps = ctn__onnx_times(taps, p.w.kernel[i]);
    if (taps > MOST_TAPS && !(simple && kind != CTN__ONNX_POOL_LP && !opt.ceil))
        return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "a kernel of more than %d elements", MOST_TAPS);
    const double power = (double)ctn__onnx_int(c, "p", 2);
    ctn_tensor *y = NULL;
    if (kind == CTN__ONNX_POOL_MAX && c->nout > 1 && c->out[1]) {
        if (!simple) return ctn__onnx_fail(c, CTN_EUNSUPPORTED, "indices with these windows");
        CTN_TRY(ctn_max_pool_places_at(at, x, &opt, &y, &places));
        CTN_TRY(max_positions(c, &x->d, &p, places));
    } else if (kind == CTN__ONNX_POOL_MAX) {
        y = simple ? ctn_max_pool_at(at, x, &opt) : by_slices(c, x, &p, true);
    } else if (kind == CTN__ONNX_POOL_LP) {
        y = by_slices(c, ctn_power_at(at, ctn_abs_at(at, x), power), &p, false);
        y = ctn_power_at(at, y, 1 / power);
    } else if (simple && !opt.ceil) {
        y = ctn_avg_pool_at(at, x, &opt);
    } else {
        ctn_tensor *count = window_counts(c, &p, !opt.exclude_pad, x->d.dtype);
        y = ctn_div_at(at, by_slices(c, x, &p, false), count);
    }
    return ctn__onnx_set(c, 0, y ? ctn_cast_at(at, y, given->d.dtype) : NULL);
}

ctn_status ctn__onnx_do_global_pool(ctn__onnx_call *c)
{
    const char *at = c->at;
    int64_t axes[CTN_MAX_DIMS];
    ctn_tensor *x = ctn__onnx_in(c, 0);
    if (!x) return ctn_error_status();
    const int n = x->d.ndim - 2, kind = c->node->op->kind;
    if (n < 1) return ctn__onnx_fail(c, CTN_ESHAPE, "expected (N,C,...)");
    for (int i = 0; i < n; i++) axes[i] = 2 + i;
    if (kind == CTN__ONNX_POOL_AVERAGE) return ctn__onnx_set(c, 0, ctn_global_avg_pool_at(at, x));
    if (kind == CTN__ONNX_POOL_MAX) return ctn__onnx_set(c, 0, ctn_max_at(at, x, n, axes, 1));
    const double p = (double)ctn__onnx_int(c, "p", 2);
    x = ctn_sum_at(at, ctn_power_at(at, ctn_abs_at(at, x), p), n, axes, 1);
    return ctn__onnx_set(c, 0, ctn_power_at(at, x, 1 / p));
}

#endif
