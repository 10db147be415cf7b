/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ops on regions of interest share: attributes, checks, the points of a region, and the
 * loop over all regions. A region is the product of two lines, one per dimension of the image. A
 * line is divided into bins, and each bin has some points: those of a regular grid (roi_align) or
 * the pixels of the bin (roi_pool). A point lies between two pixels or on one.
 *
 * The points are computed in double from the regions alone, so forward and backward passes find the
 * same ones and need not store them.
 */
#ifndef CTN_OPS_COMMON_ROI_H
#define CTN_OPS_COMMON_ROI_H

#include "ops/common/along.h"

enum {
    CTN__ROI_ALIGN,        /* 1: roi_align, 0: roi_pool */
    CTN__ROI_EDGE,         /* the option aligned of roi_align or inclusive of roi_pool */
    CTN__ROI_SIZE,         /* bins along both dimensions */
    CTN__ROI_SAMPLING = 4, /* points of a bin along both; 0: as many as it has pixels, rounded up */
    CTN__ROI_IN = 6,       /* height and width of the images */
    CTN__ROI_IMAGES = 8,   /* how many there are */
    CTN__ROI_NATTR
};
extern const char *const ctn__roi_attr_names[CTN__ROI_NATTR];

typedef struct {
    int64_t at;       /* a pixel */
    double near, far; /* the weights of that pixel and of the next one, which may not exist if its
                         weight is 0; then near is 1 */
} ctn__roi_point;

typedef struct {
    int64_t bins, *first;  /* (bins+1): bin i has the points first[i] to first[i+1] - 1 */
    ctn__roi_point *point; /* without those outside of the image */
    double total;          /* points of each bin with those outside; 0: there are none outside */
} ctn__roi_line;

/* A unit of work: a region and some channels. y is the first of their elements in a tensor
 * (R,C,bins...), x that in a tensor (N,C,H,W). room has space for what ctn__roi_prepare was
 * asked for. */
typedef struct {
    const ctn_run_args *a;
    const ctn__roi_line *line; /* vertical, horizontal */
    int64_t x, y, channels;
    void *room;
    int isa;
} ctn__roi_unit;
typedef void ctn__roi_fn(const ctn__roi_unit *u);

/* The maximum number of points along a dimension. */
int64_t ctn__roi_points(const int64_t *attr, int dim);
/* In a prepare: scratch for the lines and for `room` bytes of each thread. */
void ctn__roi_prepare(ctn_prepare_args *a, size_t room);
/* Call fn for all regions and channels in parallel. The last two inputs are the regions and their
 * index. back: fn adds to x, which is cleared first; a thread owns channels of an image and goes
 * through the regions in order. Errors: EARG for an index out of range. */
ctn_status ctn__roi_run(const ctn_run_args *a, bool back, size_t room, ctn__roi_fn *fn);

/* infer of ops whose output 0 is (R,C,bins...), or that of the images (N,C,H,W). */
ctn_status ctn__roi_infer(ctn_infer_args *a);
ctn_status ctn__roi_back_infer(ctn_infer_args *a);
/* Record roi_mean or roi_max. */
ctn_tensor *ctn__roi_record(const char *at, bool align, ctn_tensor *x, ctn_tensor *rois,
                            ctn_tensor *index, const ctn_roi_opt *opt);
/* In a grad: op of g, places (NULL: op has no such input) and the regions. */
ctn_tensor *ctn__roi_again(const ctn_grad_args *a, ctn_op *op, ctn_tensor *g, ctn_tensor *places);

#endif
