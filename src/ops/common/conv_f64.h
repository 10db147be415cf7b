/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernels of convolutions in f64 share. All are products of which one operand is read in
 * place, through a table of offsets (engine/tile_f64.h). What is read lies in a copy with zeros
 * around each image, so that no tap needs a check.
 */
#ifndef CTN_OPS_COMMON_CONV_F64_H
#define CTN_OPS_COMMON_CONV_F64_H

#include "engine/tile_f64.h"
#include "ops/common/conv.h"

/* Always three spatial dimensions; missing ones are put first, with length 1. */
typedef struct {
    ctn__conv_kind kind;
    ctn__f64_tile tile;
    int64_t cols; /* of a tile */
    int64_t N, G, Ig, Og, taps;
    int64_t x[3], w[3], y[3], stride[3], pad[3], dilation[3];
    int64_t image[2]; /* elements of a channel of x and of y */
    int threads;
} ctn__conv_f64_problem;

/* Scratch, of which `used` bytes have been given away. With base NULL it only counts. */
typedef struct {
    void *base;
    size_t used;
} ctn__conv_f64_room;

/* Room for n numbers of 8 bytes. */
static inline void *ctn__conv_f64_take(ctn__conv_f64_room *r, int64_t n)
{
    const size_t at = r->used;
    r->used += ((size_t)n + 7) / 8 * 64;
    return r->base ? (char *)r->base + at : NULL;
}

static inline int64_t ctn__round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* conv and conv_data, from an image (of y for conv_data) to an image (conv_f64_image.c). bias may
 * be NULL. Both functions only count the scratch if its base is NULL. */
void ctn__conv_f64_image(const ctn__conv_f64_problem *p, const double *from, const double *w,
                         const double *bias, bool relu, double *to, ctn__conv_f64_room *r);
/* conv_weights (conv_f64_weights.c). */
void ctn__conv_f64_weights(const ctn__conv_f64_problem *p, const double *x, const double *y,
                           double *w, ctn__conv_f64_room *r);

#endif
