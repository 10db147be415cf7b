/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of small f32 matrices for kernels that work tile by tile (attention). The shape is fixed
 * when a tile is made; running it is thread-safe, uses the calling thread only and allocates
 * nothing. oneDNN's BRGEMM micro-kernels do the work where the library and the CPU have them, loops
 * of our own elsewhere.
 */
#ifndef CTN_ENGINE_TILE_H
#define CTN_ENGINE_TILE_H

#include "tensor/tensor.h"

typedef struct ctn__tile ctn__tile;

typedef struct {
    int64_t m, n, k;       /* A (m,k), B (k,n), C (m,n), all row-major */
    int64_t lda, ldb, ldc; /* elements from one row to the next */
    bool add;              /* C += A B instead of C = A B */
} ctn__tile_shape;

ctn_status ctn__tile_new(ctn__tile **t, const ctn__tile_shape *s);
void ctn__tile_free(ctn__tile *t); /* NULL is allowed */
void ctn__tile_run(const ctn__tile *t, const float *a, const float *b, float *c);
const char *ctn__tile_name(const ctn__tile *t); /* "brgemm" or "own" */

#endif
