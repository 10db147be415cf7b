/* SPDX-License-Identifier: Apache-2.0
 *
 * The op test harness. A case says what to call, on which inputs, and what a naive double-precision
 * reference gives; the harness then checks, for f32 and f64: planned result against the reference, a second
 * run (a plan hit) bitwise equal, 2 and 3 threads bitwise equal to 1 (where our own kernels sum), eager mode bitwise equal to planned
 * without fusion, inputs in strided memory, guard bytes around every buffer, and gradients (of order `grad`)
 * against finite differences in f64 (inputs of more than 1000 elements: in f32 against f64 only). A failing
 * case prints the command that repeats it: `test_ops OP/CASE`.
 */
#ifndef CTN_TESTS_OPS_HARNESS_H
#define CTN_TESTS_OPS_HARNESS_H

#include <catena/ops.h>

typedef enum {
    FILL_NORMAL,   /* standard normal */
    FILL_UNIFORM,  /* uniform in [lo, hi) */
    FILL_INDEX,    /* integers in [lo, hi), as f32/f64/i64/i32/u8 */
    FILL_DISTINCT, /* distinct numbers in random order, spread over [lo, hi): for max, sort, topk */
    FILL_AWAY      /* normal, but at least 0.2 away from 0 (kinks) */
} fill_kind;

enum { MAX_CASE_IN = 6 };

typedef struct {
    ctn_dtype dtype; /* 0: the float type under test */
    int ndim;
    int64_t dim[CTN_MAX_DIMS];
    fill_kind fill;
    double lo, hi;
    int no_grad; /* this input carries no gradient (integers never do) */
} case_in;

typedef struct op_case op_case;
struct op_case {
    const char *op;   /* name in ops.def that it covers */
    const char *name; /* of the case */
    int nin;
    case_in in[MAX_CASE_IN];
    int64_t p[12]; /* parameters of call and ref: axes, sizes, ... */
    double q[4];
    /* Records the call with the public API. */
    ctn_tensor *(*call)(const op_case *c, ctn_context *ctx, ctn_tensor *const *x);
    /* Naive reference: x[i] holds input i row-major as double; y receives the output described by out.
     * NULL: only the other checks are made (random ops). */
    void (*ref)(const op_case *c, const double *const *x, const ctn_desc *out, double *y);
    int grad; /* highest order of derivative to check; 0: none, usual: 1; 2 where second order works */
    double tol32;   /* relative-or-absolute tolerance in f32; 0: 1e-5 */
    double tol64;   /* 0: 1e-12 */
    int only_f32;   /* the op does not exist in f64 */
    int no_strided; /* do not repeat with strided inputs */
    /* f32: the engine cuts its sums by threads, which then agree to tol32 only; 2: below AVX-512 */
    int engine_sums;
};

/* Each cases_*.c file defines one of these tables, ended by a case with op NULL, and lists it in
 * case_tables.def as CASES(name). */
typedef const op_case case_table[];
#define CASES(name) extern case_table name;
#include "case_tables.def"
#undef CASES

/* Helpers for references. */
int64_t case_count(const case_in *in);
void case_strides(int ndim, const int64_t *dim, int64_t *stride); /* row-major */

#endif
