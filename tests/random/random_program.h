/* SPDX-License-Identifier: Apache-2.0
 *
 * Random programs (test_random_programs.c): what a program is, and what a run of it observes. A
 * program is a list of instructions on registers of known shape and is valid in every mode of a
 * context. In runs whose bit is missing in `cond`, an instruction does something else, or
 * nothing.
 */
#ifndef RANDOM_PROGRAM_H
#define RANDOM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum { REGS = 64, VARS = 5, PARAMS = 3, POOLS = 2, RETAINED = 2, RUNS = 4, MAXDIM = 4, LEN = 400 };

/* clang-format off */
#define OPS(X) \
    X(INPUT) X(NUMBER) X(FULL) X(USE) X(DETACH) X(WITH_GRAD) X(RETAINED_VALUE) \
    X(RELU) X(TANH) X(NEG) X(SQUARE) X(ABS) X(SIGMOID) X(SCALE) X(SHIFT) \
    X(ADD) X(SUB) X(MUL) X(MAXIMUM) X(WHERE) X(MATMUL) X(LINEAR) \
    X(TRANSPOSE) X(RESHAPE) X(BROADCAST) X(SUM) X(MEAN) X(SLICE) X(SKIP) X(CONCAT) X(SPLIT) \
    X(GATHER) \
    X(RANDOM) X(DROPOUT) X(GRAD) \
    X(ASSIGN) X(SWAP) X(ASSIGN_OLD) X(READ) X(READ_VAR) X(READ_GRAD) X(SET_VAR) X(FLUSH) X(BEGIN) \
    X(RETURN) X(KEEP) X(KEEP_GRAPH) X(BACKWARD) X(STEP) X(RETAIN) X(GRAD_OFF) X(GRAD_ON) \
    X(NEW_SCOPE)
/* clang-format on */
typedef enum {
#define ID(x) x,
    OPS(ID)
#undef ID
} op_id;

typedef struct {
    int nd;
    int64_t d[MAXDIM];
} shape;

typedef struct {
    op_id op, other; /* other: replaces op in runs whose bit is missing in cond */
    unsigned cond;
    int out, out2, in[3], nin;
    int var, var2, pool;
    shape sh; /* of out */
    int64_t axis, at;
    int n;
    int64_t axes[MAXDIM];
    bool flag[2];
    double s;
} ins;

typedef struct {
    bool alive, grad, stale, kept, kept_graph, free_leaf; /* free_leaf: survives steps */
    int level, var;
    unsigned vars, pools; /* variables in its history; pools it depends on */
    uint64_t deps;        /* registers in its history */
    shape sh;
} reg;

typedef struct {
    uint32_t seed, s;
    bool plain, big, random, zero; /* plain: bitwise equal without fusion */
    bool nan, infinite;            /* some data are NaN; some are infinite too */
    int n, nreg, level, contributions[POOLS];
    bool grad_on, full;
    reg r[REGS];
    shape var[VARS], retained[RETAINED];
    bool has_retained[RETAINED], retained_now[RETAINED];
    ins p[LEN];
} program;

/* One value that was observed. */
typedef struct {
    int at, run;
    int64_t n;
    double *v;
    bool known; /* reference: false for values it cannot compute */
} observation;

typedef struct {
    int n, cap;
    observation *s;
} record;

extern const char *const rp_op_name[];
#define rp_rate 0.05 /* learning rate of the optimizers */

void rp_generate(program *g, uint32_t seed);
void rp_print_program(const program *g);
int rp_pool_of(int var); /* -1: a state */
int64_t rp_count(const shape *s);
/* The coordinates at[s->nd] of element i, and the reverse. */
void rp_unravel(const shape *s, int64_t i, int64_t *at);
int64_t rp_ravel(const shape *s, const int64_t *at);

/* Data of a run: element i of input k or of a variable, and of the index of a gather from n
 * elements. */
double rp_value(const program *g, int run, int k, int64_t i);
int64_t rp_gather_index(int run, int k, int64_t i, int64_t n);

double *rp_note(record *o, int at, int run, int64_t n, bool known); /* memory for n values */
void rp_forget(record *o);

/* Executes all runs of the program, one instruction at a time, in double. f64: results are not
 * rounded to f32 (random_reference.c). */
void rp_run_reference(const program *g, bool f64, record *log);

#endif
