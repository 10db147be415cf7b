/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ops of linear algebra share: kernels for one small row-major matrix in double, on one
 * thread, and loops over batches. LAPACK is not needed: at these sizes its calls cost as much as
 * the arithmetic, and a batch keeps all threads busy.
 */
#ifndef CTN_OPS_COMMON_LINALG_H
#define CTN_OPS_COMMON_LINALG_H

#include "ops/ops.h"

/* Errors: EDTYPE, ESHAPE unless in[0] is (...,n,n) of f32 or f64. */
ctn_status ctn__square_infer(const ctn_infer_args *a);
/* infer of op(a) x = b: out[0] is like in[1] (...,n,k). Errors: EDTYPE, ESHAPE. */
ctn_status ctn__solve_infer(ctn_infer_args *a);
/* Record such an op, with the leading dimensions of both operands broadcast. */
ctn_tensor *ctn__solve_apply(const char *at, ctn_op *op, ctn_tensor *a, ctn_tensor *b, int nattr,
                             const int64_t *attr);
/* x with its last two dimensions swapped. */
ctn_tensor *ctn__swap_last(const char *at, ctn_tensor *x);

/* One matrix of a batch, in the work space of a thread. */
typedef struct {
    int64_t n, k;   /* a is (n,n), b is (n,k) */
    double *a, *b;  /* in[0], converted; in[1] or room for the result */
    int64_t *pivot; /* room for 2 n */
} ctn__small;
/* Call fn for every matrix of in[0]. b holds in[1] if there is one. fn leaves the result in b,
 * (rows,k), which becomes the part of out[0] that belongs to the matrix, and in *second the number
 * that out[1] gets if there is one. Returns the lowest number of a matrix for which fn returned
 * false, or -1. */
typedef bool ctn__small_fn(const ctn_run_args *a, const ctn__small *m, double *second);
int64_t ctn__small_run(const ctn_run_args *a, int64_t rows, int64_t k, ctn__small_fn *fn);
/* prepare of an op that uses it; k: columns of b. */
ctn_status ctn__small_prepare(ctn_prepare_args *a, int64_t k);
/* prepare of an op on square matrices whose result is as large. */
ctn_status ctn__square_prepare(ctn_prepare_args *a);
/* run of such an op; fn returns false for a matrix that is not positive definite. */
ctn_status ctn__definite_run(const ctn_run_args *a, const char *who, ctn__small_fn *fn);

/* a = P^T L U in place, with partial pivoting: row i was swapped with row pivot[i]. Returns the
 * sign of the permutation. A column without a pivot is left alone, so U has a zero there. */
int ctn__lu(double *a, int64_t n, int64_t *pivot);
/* b := the solution of op(a) x = b after ctn__lu. */
void ctn__lu_solve(const double *a, int64_t n, const int64_t *pivot, double *b, int64_t k,
                   bool trans);
/* b := a^-1 after ctn__lu. */
void ctn__lu_inverse(const double *a, int64_t n, const int64_t *pivot, double *b);
/* The same as ctn__lu_solve with a triangular matrix. */
void ctn__triangular_solve(const double *a, int64_t n, double *b, int64_t k, bool upper, bool trans,
                           bool unit);
/* a := its lower Cholesky factor, zeros above the diagonal; column: room for n. False if a is not
 * positive definite. */
bool ctn__cholesky(double *a, int64_t n, double *column);
/* The eigenvectors of a symmetric positive definite a, of which the lower triangle is read: row k
 * of a becomes the k-th of them, with length 1, and value[k] its eigenvalue, in no particular
 * order. False if a is not positive definite. */
bool ctn__eigen(double *a, int64_t n, double *value);

#endif
