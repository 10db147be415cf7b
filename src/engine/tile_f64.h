/* SPDX-License-Identifier: Apache-2.0
 *
 * The register tile of matrix products and convolutions in f64. One operand is packed; the other
 * is read where it lies, through a table of offsets, so that a convolution need not copy each
 * element once per tap of its kernel.
 */
#ifndef CTN_ENGINE_TILE_F64_H
#define CTN_ENGINE_TILE_F64_H

#include <stdbool.h>
#include <stdint.h>

enum { CTN__F64_ROWS = 8, CTN__F64_VECTORS = 4, CTN__F64_COLS = 64 }; /* at most */

/* For i < rows and v < vectors, with lanes l:
 *   c[i * row + v * lanes + l] = sum over j < k of a[j * step + i] * x[v][at[j] + l]
 * or, with add, the old value of c plus that sum. */
typedef void ctn__f64_tile_fn(int64_t k, const double *a, int64_t step, const double *const *x,
                              const int64_t *at, double *c, int64_t row, bool add);

typedef struct {
    ctn__f64_tile_fn *run;
    int rows, vectors, lanes;
} ctn__f64_tile;

ctn__f64_tile ctn__f64_tile_best(void); /* for the instruction set in use */

#endif
