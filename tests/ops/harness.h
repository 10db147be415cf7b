/* SPDX-License-Identifier: Apache-2.0
 *
 * The op test harness. A case says which op to call, on which inputs, and what a naive reference
 * in double precision computes. For f32 and f64 the harness checks:
 *
 *   - the planned result against the reference;
 *   - that a second run (a plan hit) is bitwise equal;
 *   - that 2 and 3 threads are bitwise equal to 1 (where our own kernels sum);
 *   - that eager mode is bitwise equal to a plan without fusion;
 *   - inputs in strided memory, and guard bytes around every buffer;
 *   - gradients up to order `grad` against finite differences in f64 (for inputs of more than
 *     1000 elements: f32 against f64 only).
 *
 * A failing case prints the command that repeats it: `test_ops OP/CASE`.
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

enum { MAX_CASE_IN = 8 };

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
    const char *op;   /* the name in ops.def that the case covers */
    const char *name; /* of the case */
    int nin;
    case_in in[MAX_CASE_IN];
    int64_t p[12]; /* parameters of call and ref: axes, sizes, ... */
    double q[4];
    /* Records the call with the public API. */
    ctn_tensor *(*call)(const op_case *c, ctn_context *ctx, ctn_tensor *const *x);
    /* Naive reference: x[i] holds input i row-major as double; y receives the output described
     * by out. NULL: only the other checks are made (random ops). */
    void (*ref)(const op_case *c, const double *const *x, const ctn_desc *out, double *y);
    /* Highest order of derivative to check: 0 none, usually 1, 2 where second order works. */
    int grad;
    double tol32;   /* relative-or-absolute tolerance in f32; 0: 1e-5 */
    double tol64;   /* 0: 1e-12 */
    int only_f32;   /* the op does not exist in f64 */
    int composed;   /* in f64 the call records other ops instead */
    int no_strided; /* do not repeat with strided inputs */
    /* f32: the engine splits its sums by threads, so thread counts agree only to tol32. 2: below
     * AVX-512 only. */
    int engine_sums;
};

/* Each cases_*.c file defines one of these tables, ending with a case whose op is NULL, and
 * lists it in case_tables.def as CASES(name). */
typedef const op_case case_table[];
#define CASES(name) extern case_table name;
#include "case_tables.def"
#undef CASES

/* Helpers for references. */
int64_t case_count(const case_in *in);
int64_t desc_count(const ctn_desc *d);
void case_strides(int ndim, const int64_t *dim, int64_t *stride); /* row-major */
/* The coordinates of element i of a row-major array. */
void unravel(int64_t i, int ndim, const int64_t *dim, int64_t *index);

#endif
