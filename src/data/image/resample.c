/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns a view of decoded pixels into the result, one row of the result at a time. The source
 * rows under the filter are summed to one row of floats (vertical); that row is summed to pixels
 * (horizontal, mirrored by the order of its table), normalised, and stored in the requested type
 * and layout. The vertical pass comes first because its loop is faster and it leaves fewer rows
 * for the horizontal pass. There is no intermediate image, except for colour jitter, which needs
 * the mean of all pixels, and for RandAugment.
 *
 * The filter is a triangle as wide as the reduction (Pillow's BILINEAR), clipped to the view's
 * limit and normalised there. Sums are floats and are rounded only at the end, if at all.
 */
#include "data/image/image.h"

#include <math.h>
#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define RESAMPLE_TABLE ctn__resample_portable
#include "data/image/resample_body.h"

static const ctn__resample_kernels *kernels(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) return &ctn__resample_avx2;
#elif defined(__aarch64__) && defined(__linux__)
    enum { HAS_SVE = 1 << 22 };
    if (getauxval(AT_HWCAP) & HAS_SVE) return &ctn__resample_sve;
#endif
    return &ctn__resample_portable;
}

/* ---- filter ---------------------------------------------------------------------------------- */

/* One direction of a view: n results from `length` source pixels starting at `from`. */
typedef struct {
    double from, length;
    int64_t lo, hi; /* limit */
    int64_t n;
} axis;

static axis axis_x(const ctn__view *v)
{
    return (axis){v->x, v->w, v->limit.x, v->limit.x + v->limit.w, v->dst.w};
}

static axis axis_y(const ctn__view *v)
{
    return (axis){v->y, v->h, v->limit.y, v->limit.y + v->limit.h, v->dst.h};
}

/* Source pixels lo to hi-1, at least one, are under the filter of result i. */
static void taps_of(const axis *a, int64_t i, double *centre, double *support, int64_t *lo,
                    int64_t *hi)
{
    double scale = a->length / (double)a->n;
    *support = scale > 1 ? scale : 1;
    *centre = a->from + ((double)i + 0.5) * scale;
    *lo = (int64_t)floor(*centre - *support + 0.5);
    *hi = (int64_t)floor(*centre + *support + 0.5);
    if (*lo < a->lo) *lo = a->lo;
    if (*hi > a->hi) *hi = a->hi;
    if (*lo >= a->hi) *lo = a->hi - 1;
    if (*hi <= *lo) *hi = *lo + 1;
}

static void reach_of(const axis *a, int64_t *lo, int64_t *hi)
{
    double c, s;
    int64_t skip;
    taps_of(a, 0, &c, &s, lo, &skip);
    taps_of(a, a->n - 1, &c, &s, &skip, hi);
}

ctn__rect ctn__view_reach(const ctn__view *v)
{
    axis x = axis_x(v), y = axis_y(v);
    int64_t x0, x1, y0, y1;
    reach_of(&x, &x0, &x1);
    reach_of(&y, &y0, &y1);
    return (ctn__rect){x0, y0, x1 - x0, y1 - y0};
}

/* The first tap of each result and its weights. All results have the same number of weights, padded
 * with zeros. */
typedef struct {
    int64_t n, taps;
    int32_t *first; /* (n), relative to the reach */
    float *weight;  /* (n, taps) */
} filter;

static int64_t most_taps(const axis *a)
{
    double c, s;
    int64_t most = 1, lo, hi;
    for (int64_t i = 0; i < a->n; i++) {
        taps_of(a, i, &c, &s, &lo, &hi);
        if (hi - lo > most) most = hi - lo;
    }
    return most;
}

/* f->first and f->weight are allocated. mirror: result i uses the taps of n-1-i. */
static void fill_filter(filter *f, const axis *a, bool mirror)
{
    int64_t start, end;
    reach_of(a, &start, &end);
    for (int64_t i = 0; i < f->n; i++) {
        double centre, support, sum = 0;
        int64_t lo, hi;
        taps_of(a, mirror ? f->n - 1 - i : i, &centre, &support, &lo, &hi);
        int64_t first = lo + f->taps > end ? end - f->taps : lo;
        float *w = f->weight + i * f->taps;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < f->taps; k++) {
                double d = fabs(((double)(first + k) + 0.5 - centre) / support);
                bool in = first + k >= lo && first + k < hi && d < 1;
                if (pass == 0) sum += in ? 1 - d : 0;
                else w[k] = in ? (float)((1 - d) / sum) : 0;
            }
        if (sum <= 0) w[lo - first] = 1;
        f->first[i] = (int32_t)(first - start);
    }
}

/* ---- rows of the result ---------------------------------------------------------------------- */

/* Results in memory have one value per pixel, or four values of which the last is unused. */
static int lanes(int channels)
{
    return channels == 1 ? 1 : 4;
}

typedef struct {
    const ctn_image_opt *o;
    const ctn__resample_kernels *k;
    int channels;
    float scale[3], shift[3];
} finish;

static uint8_t level(float v)
{
    return (uint8_t)(v <= 0 ? 0 : v >= 255 ? 255 : v + 0.5f);
}

/* Stores row y of the result, n pixels in 0 to 255. Value c of pixel x is read from
 * in[x * step + c * apart] ... */
static void store_row(const finish *f, const float *in, int64_t step, int64_t apart, int64_t y,
                      void *dst)
{
    const int64_t n = f->o->width, area = n * f->o->height, C = f->channels;
    /* ... and written to base + x * to_step + c * to_apart. */
    const int64_t to_step = f->o->channels_last ? C : 1, to_apart = f->o->channels_last ? 1 : area;
    const int64_t base = y * n * to_step;
    for (int64_t c = 0; c < C; c++) {
        const float *v = in + c * apart;
        if (f->o->raw) {
            uint8_t *to = (uint8_t *)dst + base + c * to_apart;
            for (int64_t x = 0; x < n; x++) to[x * to_step] = level(v[x * step]);
        } else {
            float *to = (float *)dst + base + c * to_apart;
            for (int64_t x = 0; x < n; x++)
                to[x * to_step] = v[x * step] * f->scale[c] + f->shift[c];
        }
    }
}

/* The same from pixels of 1 or 4 values, with a fast path for the usual case. */
static void store_pixels(const finish *f, const float *in, int64_t y, void *dst)
{
    const int64_t n = f->o->width, area = n * f->o->height;
    if (f->o->raw || f->o->channels_last) {
        store_row(f, in, lanes(f->channels), 1, y, dst);
        return;
    }
    float *plane[3];
    for (int c = 0; c < 3; c++) plane[c] = (float *)dst + y * n + (c < f->channels ? c * area : 0);
    f->k->planes(plane, in, n, f->channels, f->scale, f->shift);
}

static finish finish_of(const ctn_image_opt *o, const ctn__resample_kernels *k, int channels)
{
    finish f = {.o = o, .k = k, .channels = channels};
    for (int c = 0; c < 3; c++) {
        f.scale[c] = (float)(1 / (255 * o->std[c]));
        f.shift[c] = (float)(-o->mean[c] / o->std[c]);
    }
    return f;
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* All buffers of one call, in one allocation. */
typedef struct {
    const ctn__pixels *src;
    const ctn__view *view;
    filter x, y;
    ctn__rect reach;
    const uint8_t **under; /* (y.taps) rows under the filter */
    float *row;            /* (reach.w, channels), and one value of padding */
    float *out;            /* (width, lanes) one row of the result */
    float *planes;         /* (channels, height, width) of the result; NULL: not needed */
    float *other;          /* a second one, for RandAugment */
    void *block;
} pass;

static size_t rounded(size_t bytes)
{
    return (bytes + CTN__ALIGN - 1) & ~(size_t)(CTN__ALIGN - 1);
}

static ctn_status pass_new(pass *p, const ctn_image_opt *o)
{
    enum { PARTS = 9 };
    const int channels = p->src->channels;
    const axis x = axis_x(p->view), y = axis_y(p->view);
    p->x = (filter){.n = x.n, .taps = most_taps(&x)};
    p->y = (filter){.n = y.n, .taps = most_taps(&y)};
    p->reach = ctn__view_reach(p->view);
    const bool whole = ctn__has_jitter(o) || o->randaugment;
    const int64_t count[PARTS] = {
        o->width * lanes(channels),
        p->reach.w * channels + 1,
        whole ? o->height * o->width * channels : 0,
        o->randaugment ? o->height * o->width * channels : 0,
        p->x.n * p->x.taps,
        p->y.n * p->y.taps,
        p->x.n,
        p->y.n,
        p->y.taps,
    };
    size_t all = 0, bytes[PARTS];
    for (int i = 0; i < PARTS; i++) {
        bytes[i] = rounded((size_t)count[i] * (i == PARTS - 1 ? sizeof *p->under : 4));
        all += bytes[i];
    }
    void *at[PARTS];
    p->block = at[0] = ctn__aligned(all);
    if (!p->block) return CTN_ENOMEM;
    for (int i = 1; i < PARTS; i++) at[i] = (char *)at[i - 1] + bytes[i - 1];
    p->out = at[0];
    p->row = at[1];
    p->planes = whole ? at[2] : NULL;
    p->other = at[3];
    p->x.weight = at[4];
    p->y.weight = at[5];
    p->x.first = at[6];
    p->y.first = at[7];
    p->under = at[8];
    p->row[p->reach.w * channels] = 0;
    memset(p->out, 0, bytes[0]); /* pixels outside the view stay black */
    fill_filter(&p->x, &x, p->view->mirror_x);
    fill_filter(&p->y, &y, p->view->mirror_y);
    return CTN_OK;
}

/* Row y of the result, (width, lanes); valid until the next call. */
static const float *pass_row(const pass *p, const finish *f, int64_t y)
{
    const int64_t i = y - p->view->dst.y;
    if (i < 0 || i >= p->view->dst.h) {
        memset(p->out, 0, (size_t)(f->o->width * lanes(f->channels)) * sizeof *p->out);
        return p->out;
    }
    const float *w = p->y.weight + i * p->y.taps;
    int64_t lo = 0, n = p->y.taps; /* trim zeros at both ends */
    while (n > 1 && w[n - 1] == 0) n--;
    while (lo < n - 1 && w[lo] == 0) lo++;
    const ctn__pixels *src = p->src;
    const int64_t step = src->part.w * src->channels;
    const uint8_t *corner =
        src->at + (p->reach.y - src->part.y) * step + (p->reach.x - src->part.x) * src->channels;
    for (int64_t t = lo; t < n; t++) p->under[t] = corner + (p->y.first[i] + t) * step;
    f->k->vertical(p->row, p->under + lo, w + lo, n - lo, p->reach.w * src->channels);
    f->k->horizontal(p->out + p->view->dst.x * lanes(src->channels), p->row, p->x.first,
                     p->x.weight, p->x.taps, p->x.n, src->channels);
    return p->out;
}

/* Collects all rows in planes, changes colours and more there, and stores the result. */
static void through_planes(const pass *p, const finish *f, const ctn_sample *s, void *dst)
{
    static const float one[3] = {1, 1, 1}, zero[3] = {0};
    const int64_t n = f->o->width, area = n * f->o->height;
    for (int64_t y = 0; y < f->o->height; y++) {
        float *plane[3];
        for (int c = 0; c < 3; c++) plane[c] = p->planes + y * n + (c < f->channels ? c * area : 0);
        f->k->planes(plane, pass_row(p, f, y), n, f->channels, one, zero);
    }
    if (f->o->randaugment) ctn__randaugment(f->o, s, p->planes, p->other, f->channels);
    ctn__jitter(f->o, s, p->planes, area, f->channels);
    for (int64_t y = 0; y < f->o->height; y++) store_row(f, p->planes + y * n, 1, area, y, dst);
}

ctn_status ctn__resample(const ctn_image_opt *o, const ctn_sample *s, const ctn__pixels *src,
                         const ctn__view *v, void *dst)
{
    pass p = {.src = src, .view = v};
    const finish f = finish_of(o, kernels(), src->channels);
    CTN_TRY(pass_new(&p, o));
    if (p.planes) through_planes(&p, &f, s, dst);
    else
        for (int64_t y = 0; y < o->height; y++) store_pixels(&f, pass_row(&p, &f, y), y, dst);
    ctn__free(p.block);
    return CTN_OK;
}
