/* SPDX-License-Identifier: Apache-2.0
 *
 * Regions of interest, see roi.h.
 */
#include "ops/common/roi.h"

#include <math.h>
#include <omp.h>

enum { MOST_BINS = 1 << 20, CHANNELS = 16 }; /* channels of a unit, for which lines are made once */
#define FAR_AWAY 1e9 /* no coordinate that is meant is larger; integers stay exact */

const char *const ctn__roi_attr_names[CTN__ROI_NATTR] = {"roi_align",    "aligned or inclusive",
                                                         "height",       "width",
                                                         "sampling 0",   "sampling 1",
                                                         "image height", "image width",
                                                         "images"};

/* ---- lines ----------------------------------------------------------------------------------- */

/* Points of a grid whose distance follows from the size of the bins are more than half a pixel
 * apart, or there is one per bin. Neighbouring bins share at most one pixel, or have at most two
 * pixels each. */
int64_t ctn__roi_points(const int64_t *attr, int dim)
{
    const int64_t n = attr[CTN__ROI_IN + dim], bins = attr[CTN__ROI_SIZE + dim];
    const int64_t sampling = attr[CTN__ROI_SAMPLING + dim];
    if (!attr[CTN__ROI_ALIGN]) return n + 2 * bins;
    return sampling > 0 ? sampling * bins : 2 * n + 3 + bins;
}

/* The points of a grid, from begin to end in pixels. */
static int64_t align(ctn__roi_line *l, const int64_t *attr, int dim, double begin, double end)
{
    const int64_t n = attr[CTN__ROI_IN + dim], sampling = attr[CTN__ROI_SAMPLING + dim];
    double size = end - begin;
    if (!attr[CTN__ROI_EDGE] && size < 1) size = 1;
    const double bin = size / (double)l->bins, many = sampling > 0 ? (double)sampling : ceil(bin);
    const double step = bin / fmax(many, 1);
    int64_t k = 0;
    l->total = fmax(many, 1);
    for (int64_t b = 0; b < l->bins; b++) {
        const double base = begin + (double)b * bin;
        /* Skip what is certainly outside: a region may be much larger than the image. */
        const double low = step > 0 ? fmax(0, floor((-1 - base) / step - 1)) : 0;
        const double high = step > 0 ? ceil(((double)n - base) / step + 1) : many;
        const int64_t last = (int64_t)fmin(many, fmax(0, high));
        l->first[b] = k;
        for (int64_t i = (int64_t)fmin(many, low); i < last; i++) {
            double p = base + ((double)i + 0.5) * step;
            if (!(p >= -1 && p <= (double)n)) continue;
            p = fmin(fmax(p, 0), (double)(n - 1));
            const int64_t at = (int64_t)p;
            const double far = p - (double)at;
            l->point[k++] = (ctn__roi_point){at, 1 - far, far};
        }
    }
    return k;
}

/* The pixels of bins between rounded bounds. */
static int64_t pool(ctn__roi_line *l, const int64_t *attr, int dim, double begin, double end)
{
    const int64_t n = attr[CTN__ROI_IN + dim], from = (int64_t)round(begin), bins = l->bins;
    int64_t size = (int64_t)round(end) - from + attr[CTN__ROI_EDGE], k = 0;
    if (size < 1) size = 1;
    l->total = 0;
    for (int64_t b = 0; b < bins; b++) {
        int64_t at = from + b * size / bins, stop = from + ((b + 1) * size + bins - 1) / bins;
        if (at < 0) at = 0;
        if (stop > n) stop = n;
        l->first[b] = k;
        for (; at < stop; at++) l->point[k++] = (ctn__roi_point){at, 1, 0};
    }
    return k;
}

static double coordinate(const ctn_run_args *a, int64_t roi, int i)
{
    const void *rois = a->in[a->nin - 2];
    const int64_t at = 4 * roi + i;
    const double p = a->din[a->nin - 2].dtype == CTN_F32 ? (double)((const float *)rois)[at]
                                                         : ((const double *)rois)[at];
    return p * a->scalar[0];
}

/* The lines of a region. If it is not finite or if images are empty, it has no points. */
static void set_lines(ctn__roi_line line[2], const ctn_run_args *a, int64_t roi)
{
    const int64_t *attr = a->attr;
    const double shift = attr[CTN__ROI_ALIGN] && attr[CTN__ROI_EDGE] ? 0.5 : 0;
    for (int dim = 0; dim < 2; dim++) {
        ctn__roi_line *l = &line[dim];
        const double begin = coordinate(a, roi, dim) - shift;
        const double end = coordinate(a, roi, 2 + dim) - shift;
        const bool good = fabs(begin) < FAR_AWAY && fabs(end) < FAR_AWAY;
        int64_t k = 0;
        l->total = 1;
        if (!good || attr[CTN__ROI_IN + dim] == 0)
            for (int64_t b = 0; b < l->bins; b++) l->first[b] = 0;
        else k = (attr[CTN__ROI_ALIGN] ? align : pool)(l, attr, dim, begin, end);
        l->first[l->bins] = k;
    }
}

/* ---- the loop over regions ------------------------------------------------------------------- */

/* Bytes that a thread needs for its lines, a multiple of the cache line. */
static size_t lines_room(const int64_t *attr)
{
    size_t bytes = 0;
    for (int dim = 0; dim < 2; dim++)
        bytes += (size_t)ctn__roi_points(attr, dim) * sizeof(ctn__roi_point) +
                 (size_t)(attr[CTN__ROI_SIZE + dim] + 1) * sizeof(int64_t);
    return (bytes + 63) / 64 * 64;
}

static size_t thread_room(const int64_t *attr, size_t room)
{
    return lines_room(attr) + (room + 63) / 64 * 64;
}

void ctn__roi_prepare(ctn_prepare_args *a, size_t room)
{
    a->scratch = thread_room(a->attr, room) * (size_t)a->threads;
    a->flops = 2 * a->dout[0].dim[1] * ctn__roi_points(a->attr, 0) * ctn__roi_points(a->attr, 1) *
               a->din[a->nin - 1].dim[0];
}

static void take_room(ctn__roi_line line[2], const int64_t *attr, char *room)
{
    for (int dim = 0; dim < 2; dim++) {
        line[dim].bins = attr[CTN__ROI_SIZE + dim];
        line[dim].point = (void *)room;
        room += (size_t)ctn__roi_points(attr, dim) * sizeof(ctn__roi_point);
        line[dim].first = (void *)room;
        room += (size_t)(line[dim].bins + 1) * sizeof(int64_t);
    }
}

/* What all units of a run have in common. */
typedef struct {
    const ctn_run_args *a;
    ctn__roi_fn *fn;
    size_t room;
    int64_t R, C, bins, plane;
    int isa;
} job;

static void region(const job *j, ctn__roi_line line[2], char *scratch, int64_t r, int64_t image,
                   int64_t c)
{
    set_lines(line, j->a, r);
    j->fn(&(ctn__roi_unit){.a = j->a,
                           .line = line,
                           .x = (image * j->C + c) * j->plane,
                           .y = (r * j->C + c) * j->bins,
                           .channels = j->C - c < CHANNELS ? j->C - c : CHANNELS,
                           .room = scratch + lines_room(j->a->attr),
                           .isa = j->isa});
}

/* All regions of an image, which add to some of its channels. */
static void image_back(const job *j, ctn__roi_line line[2], char *scratch, int64_t image, int64_t c)
{
    const ctn_desc *d = &j->a->dout[0];
    const int64_t many = j->C - c < CHANNELS ? j->C - c : CHANNELS;
    const size_t es = ctn_dtype_size(d->dtype);
    const void *index = j->a->in[j->a->nin - 1];
    memset((char *)j->a->out[0] + (size_t)((image * j->C + c) * j->plane) * es, 0,
           (size_t)(many * j->plane) * es);
    for (int64_t r = 0; r < j->R; r++)
        if (ctn__index_get(index, j->a->din[j->a->nin - 1].dtype, r) == image)
            region(j, line, scratch, r, image, c);
}

ctn_status ctn__roi_run(const ctn_run_args *a, bool back, size_t room, ctn__roi_fn *fn)
{
    const int64_t *attr = a->attr, images = attr[CTN__ROI_IMAGES];
    const ctn_desc *index = &a->din[a->nin - 1];
    const job j = {.a = a,
                   .fn = fn,
                   .room = thread_room(attr, room),
                   .R = index->dim[0],
                   .C = a->dout[0].dim[1],
                   .bins = attr[CTN__ROI_SIZE] * attr[CTN__ROI_SIZE + 1],
                   .plane = attr[CTN__ROI_IN] * attr[CTN__ROI_IN + 1],
                   .isa = (int)ctn__isa_in_use()};
    const char *name = attr[CTN__ROI_ALIGN] ? "roi_align" : "roi_pool";
    const int64_t parts = (j.C + CHANNELS - 1) / CHANNELS, units = (back ? images : j.R) * parts;
    CTN_TRY(ctn__index_check(name, a->in[a->nin - 1], index, images));
#pragma omp parallel for schedule(static) if (j.R * j.C * j.bins > 1024)
    for (int64_t u = 0; u < units; u++) {
        char *scratch = (char *)a->scratch + (size_t)omp_get_thread_num() * j.room;
        const int64_t i = u / parts, c = u % parts * CHANNELS;
        ctn__roi_line line[2];
        take_room(line, attr, scratch);
        if (back) image_back(&j, line, scratch, i, c);
        else region(&j, line, scratch, i, ctn__index_get(a->in[a->nin - 1], index->dtype, i), c);
    }
    return CTN_OK;
}

/* ---- recording ------------------------------------------------------------------------------- */

ctn_status ctn__roi_infer(ctn_infer_args *a)
{
    const ctn_desc *x = a->in[0], *rois = a->in[a->nin - 2], *index = a->in[a->nin - 1];
    const char *name = a->attr[CTN__ROI_ALIGN] ? "roi_align" : "roi_pool";
    char tx[128], tr[128], ti[128];
    if (!ctn__is_f32_f64(x->dtype) || x->dtype != rois->dtype)
        return ctn_fail(CTN_EDTYPE,
                        "%s: x is %s, rois is %s; expected f32 or f64 for both; use ctn_cast", name,
                        ctn_dtype_name(x->dtype), ctn_dtype_name(rois->dtype));
    if (index->dtype != CTN_I64 && index->dtype != CTN_I32)
        return ctn_fail(CTN_EDTYPE, "%s: roi_index is %s, expected i64 or i32", name,
                        ctn_dtype_name(index->dtype));
    if (x->ndim != 4 || rois->ndim != 2 || rois->dim[1] != 4 || index->ndim != 1 ||
        index->dim[0] != rois->dim[0])
        return ctn_fail(CTN_ESHAPE,
                        "%s: x is %s, rois is %s, roi_index is %s; expected (N,C,H,W), (R,4) and "
                        "(R)",
                        name, ctn__shape_text(x, tx, sizeof tx),
                        ctn__shape_text(rois, tr, sizeof tr),
                        ctn__shape_text(index, ti, sizeof ti));
    return ctn__desc_set(&a->out[0], name, x->dtype,
                         CTN_SHAPE(rois->dim[0], x->dim[1], a->attr[CTN__ROI_SIZE],
                                   a->attr[CTN__ROI_SIZE + 1]));
}

ctn_status ctn__roi_back_infer(ctn_infer_args *a)
{
    return ctn__desc_set(&a->out[0], a->name, a->in[0]->dtype,
                         CTN_SHAPE(a->attr[CTN__ROI_IMAGES], a->in[0]->dim[1], a->attr[CTN__ROI_IN],
                                   a->attr[CTN__ROI_IN + 1]));
}

static ctn_status check_options(const char *name, const char *at, const ctn_roi_opt *o)
{
    for (int i = 0; i < 2; i++) {
        if (o->size[i] < 1 || o->size[i] > MOST_BINS)
            return ctn_fail(CTN_EARG, "%s: size is %lld x %lld, expected 1 to %d (%s)", name,
                            (long long)o->size[0], (long long)o->size[1], MOST_BINS, at);
        if (o->sampling[i] < 0 || o->sampling[i] > MOST_BINS)
            return ctn_fail(CTN_EARG, "%s: sampling is %lld x %lld, expected 0 to %d (%s)", name,
                            (long long)o->sampling[0], (long long)o->sampling[1], MOST_BINS, at);
    }
    if (!(o->scale > 0 && o->scale < INFINITY))
        return ctn_fail(CTN_EARG, "%s: scale is %g, expected a positive number (%s)", name,
                        o->scale, at);
    return CTN_OK;
}

ctn_tensor *ctn__roi_record(const char *at, bool is_align, ctn_tensor *x, ctn_tensor *rois,
                            ctn_tensor *index, const ctn_roi_opt *opt)
{
    const char *name = is_align ? "roi_align" : "roi_pool";
    ctn_tensor *in[3] = {x, rois, index}, *out[2] = {NULL, NULL};
    int64_t attr[CTN__ROI_NATTR] = {is_align};
    ctn_roi_opt o;
    if (ctn__opt(name, &o, sizeof o, opt) < 0) return NULL;
    if (o.size[1] == 0) o.size[1] = o.size[0];
    if (o.sampling[1] == 0) o.sampling[1] = o.sampling[0];
    if (o.scale == 0) o.scale = 1;
    if (check_options(name, at, &o) < 0) return NULL;
    attr[CTN__ROI_EDGE] = (is_align ? o.aligned : o.inclusive) != 0;
    attr[CTN__ROI_IMAGES] = x && x->d.ndim == 4 ? x->d.dim[0] : 0;
    for (int i = 0; i < 2; i++) {
        attr[CTN__ROI_SIZE + i] = o.size[i];
        attr[CTN__ROI_SAMPLING + i] = is_align ? o.sampling[i] : 0;
        attr[CTN__ROI_IN + i] = x && x->d.ndim == 4 ? x->d.dim[2 + i] : 0;
    }
    const ctn_scalar scale = CTN_CONST(o.scale);
    const ctn_op_args args = {CTN__ROI_NATTR, 1, attr, &scale};
    ctn_op *op = o.max ? &ctn__op_roi_max : &ctn__op_roi_mean;
    return ctn_apply_at(at, NULL, op, 3, in, &args, out) < 0 ? NULL : out[0];
}

ctn_tensor *ctn__roi_again(const ctn_grad_args *a, ctn_op *op, ctn_tensor *g, ctn_tensor *places)
{
    ctn_tensor *in[4] = {g, places};
    const int n = places ? 2 : 1;
    in[n] = a->in[a->nin - 2];
    in[n + 1] = a->in[a->nin - 1];
    return ctn__apply1(a->at, NULL, op, n + 2, in, a->nattr, a->attr, a->nscalar, a->scalar);
}
