/* SPDX-License-Identifier: Apache-2.0
 *
 * Plan layer: from a recorded segment to a list of kernels over one arena, the cache of such plans, and the
 * executor. A plan is built by passes over nodes and values, each in its own file:
 *
 *   build      nodes of the segment, macros expanded, effects ordered, outputs chosen
 *   simplify   dead code, common subexpressions
 *   recompute  copies of marked blocks for the backward pass
 *   precision  casts of a low-precision policy
 *   fuse       declared rules (fuse/)
 *   layout     views resolved, reorders inserted where a kernel wants row-major elements
 *   schedule   final order
 *   exchange   gradients of a bucket start on their way when the last one is written
 *   memory     lifetimes, in-place, offsets in the arena
 *
 * A plan refers to the record only by tensor number, so it can be run for any later step whose tape hashes
 * to the same key.
 */
#ifndef CTN_PLAN_PLAN_H
#define CTN_PLAN_PLAN_H

#include "engine/engine.h"
#include "graph/graph.h"

typedef struct ctn__plan ctn__plan;
typedef struct ctn__planner ctn__planner;
typedef struct ctn__kept ctn__kept;

typedef enum {
    CTN__V_TEMP, /* in the arena */
    CTN__V_BIND, /* memory of a recorded tensor: an input, an earlier result, or an output */
    CTN__V_VAR,  /* memory of a variable */
    CTN__V_GRAD, /* gradient memory of a variable */
    CTN__V_KEPT  /* a copy of a variable that outlives the run (kept.c) */
} ctn__value_kind;

typedef struct {
    ctn_desc d;
    ctn__value_kind kind;
    bool output;     /* BIND: written by this plan into new storage of the scope */
    int node;        /* producer, -1 none */
    uint32_t tensor; /* BIND */
    ctn_var *var;    /* VAR, GRAD, KEPT */
    ctn__kept *kept; /* KEPT */
    int base;        /* a view: the value whose memory it shows, -1 none */
    int uses;        /* reading nodes */
    int first, last; /* schedule positions of its life */
    size_t offset;   /* TEMP: in the arena */
} ctn__value;

typedef struct {
    ctn_op *op;
    const char *at;
    int nin, nout, nattr, nscalar;
    int *in, *out; /* values */
    int64_t *attr;
    ctn_scalar *scalar;
    uint64_t ordinal;
    bool effect;    /* a root: runs in program order */
    uint32_t block; /* marked for recomputation, 0: not */
    bool gradient;  /* made by differentiation */
    bool again;     /* a recomputed copy */
    bool turned;    /* its kernel sees channels-last operands as row-major ones, channels last */
    bool dead;
    ctn__pool *pool;
    /* from prepare */
    ctn_status (*run)(const ctn_run_args *a);
    void *priv;
    void (*priv_free)(void *);
    size_t priv_bytes;
    size_t scratch;
    size_t scratch_offset;
    const char *kernel;
    int64_t flops;
    /* bound */
    ctn_run_args args;
    ctn__kept *makes; /* the copy of a variable that it makes, NULL: none */
    const void **pin;
    void **pout;
    double *values; /* scalars of this run */
    bool external;  /* some operand is not in the arena */
    uint64_t ns;    /* profiled */
} ctn__pnode;

typedef struct ctn__readers ctn__readers;

struct ctn__plan {
    ctn__hash128 key;
    ctn_context *ctx;
    ctn__arena mem; /* everything the plan owns but kernels */
    CTN__VEC(ctn__pnode) nodes;
    CTN__VEC(ctn__value) values;
    ctn__readers *readers;          /* while fusing */
    size_t arena_bytes, temp_bytes; /* with and without sharing */
    size_t bytes;                   /* what it counts in the cache's budget */
    int reorders, fused;
    size_t reorder_bytes; /* moved by reorders, reading and writing */
    ctn_comm *comm;       /* something of it exchanges with other ranks: polled between kernels */
    bool keeps_emitted; /* outputs include tensors that differentiation made: expand on a hit too */
    const void *arena_base; /* addresses were set for this arena */
    uint64_t *tape;         /* whole record, when checking is on */
    size_t ntape;
    uint64_t runs;
    ctn__plan *newer, *older, *chain; /* LRU list and hash bucket */
};

struct ctn__planner {
    ctn__engine *engine;
    ctn__fpmode *fp;
    ctn__coreset cores;
    char *arena;
    size_t arena_bytes;
    ctn__kept *kept; /* copies of variables */
    size_t kept_bytes;
    /* cache */
    ctn__plan **bucket;
    size_t nbucket;
    ctn__plan *newest, *oldest;
    int64_t nplans, max_plans;
    size_t plan_bytes, max_bytes;
    ctn__plan *last;     /* that ran */
    ctn__plan *uncached; /* eager mode: the last plan, not in the cache */
    bool check;
    bool tune, stepped; /* time kernels before the first step; it was taken */
    size_t guard;       /* guard bytes behind every buffer, 0: none */
    ctn_run_env env;
    ctn__trace *trace; /* the context's: where it counts */
    /* rule 8: misses that differ in one attribute */
    uint64_t *miss_tape;
    size_t miss_n, miss_cap, miss_at;
    int miss_run;
};

/* ---- building (build.c) --------------------------------------------------------------------------- */

ctn_status ctn__plan_build(ctn__plan **out, ctn_context *ctx, ctn__flush_kind kind);
void ctn__plan_free(ctn__plan *p);
int ctn__plan_value(ctn__plan *p, const ctn_desc *d, ctn__value_kind kind); /* -1: ENOMEM */
/* Appends a node; inputs are copied, one fresh TEMP value per output when outs is NULL. */
int ctn__plan_node(ctn__plan *p, ctn_op *op, const char *at, int nin, const int *in, int nout,
                   const int *outs);
/* Recount uses; after a pass that changed edges. */
void ctn__plan_uses(ctn__plan *p);
/* The same for one node: -1 before its edges change or it goes, 1 after. */
void ctn__node_uses(ctn__plan *p, const ctn__pnode *n, int by);
int ctn__value_base(const ctn__plan *p, int v); /* follows views */
/* d as the kernel of n sees it */
ctn_desc ctn__node_desc(const ctn__plan *p, const ctn__pnode *n, ctn_desc d);

/* ---- passes ------------------------------------------------------------------------------------------- */

ctn_status ctn__pass_simplify(ctn__plan *p);
ctn_status ctn__pass_recompute(ctn__plan *p);
ctn_status ctn__pass_precision(ctn__plan *p);
ctn_status ctn__pass_fuse(ctn__plan *p);   /* without fusion: just what low types need */
ctn_status ctn__pass_layout(ctn__plan *p); /* also calls prepare: kernels are chosen here */
ctn_status ctn__pass_schedule(ctn__plan *p);
ctn_status ctn__pass_exchange(ctn__plan *p); /* behind schedule: positions are final */
ctn_status ctn__pass_memory(ctn__plan *p);

/* Node i takes the place of node `to`, behind which nothing before reads its results; `to` goes. */
bool ctn__node_move(ctn__plan *p, int i, int to);
/* The inputs of n and one more; false: ENOMEM. */
bool ctn__node_append(ctn__plan *p, ctn__pnode *n, int value);
/* The nodes that read v, as they were when fusing began: some may be dead, and one that was moved is not listed. */
int ctn__plan_readers(const ctn__plan *p, int v, const int **at);
/* A fusion rule looks at one node and rewrites the plan around it; true when it did. */
typedef bool (*ctn__fuse_rule)(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_product_act(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_norm_act(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_norm_grad(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_elementwise(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_conv_affine(ctn__plan *p, int node, ctn_status *st);
/* Can n be a stage of an elementwise loop? Its kernel then need not know the low types. nodes: the list that
 * the values' producers are numbered in. */
bool ctn__can_chain(const ctn__plan *p, const ctn__pnode *nodes, const ctn__pnode *n);
/* A loop of one stage, for an elementwise node with low operands. */
bool ctn__chain_low(ctn__plan *p, int node, ctn_status *st);

/* ---- cache (cache.c) ------------------------------------------------------------------------------------ */

ctn__plan *ctn__cache_find(ctn__planner *pl, ctn__hash128 key);
ctn_status ctn__cache_add(ctn__planner *pl, ctn__plan *p); /* takes p over, evicts for room */
void ctn__cache_drop(ctn__planner *pl, ctn__plan *p);
void ctn__cache_clear(ctn__planner *pl);

/* ---- copies of variables (kept.c) ----------------------------------------------------------------------- */

/* The copy of v as d says, made by nobody yet or by another plan; NULL: ENOMEM. Lives as long as the variable. */
ctn__kept *ctn__kept_get(ctn__planner *pl, ctn_var *v, const ctn_desc *d);
void *ctn__kept_memory(const ctn__kept *k);
bool ctn__kept_fresh(const ctn__kept *k); /* it shows the variable as it is */
void ctn__kept_made(ctn__kept *k);
void ctn__kept_drop(ctn__planner *pl, const void *var); /* NULL: of all */

/* ---- executor (exec.c) ---------------------------------------------------------------------------------- */

ctn_status ctn__plan_run(ctn__planner *pl, ctn__plan *p);
ctn_status ctn__plan_args(ctn__planner *pl, ctn__plan *p); /* last step of building */

void ctn__note_miss(ctn_context *ctx, ctn__planner *pl); /* rule 8 (miss.c) */

/* ---- text (text.c) ---------------------------------------------------------------------------------------- */

void ctn__plan_print(const ctn__plan *p, ctn__text *t);

/* Ops of the plan itself (effects.c). */
extern ctn_op ctn__op_write;      /* copies in[0] to out[0]: assign, outputs that alias */
extern ctn_op ctn__op_accumulate; /* out[0] += in[0] */
extern ctn_op ctn__op_clear;      /* out[0] = 0 */
extern ctn_op ctn__op_reorder;    /* out[0] = in[0], row-major (layout pass) */

/* ---- decisions in saved states (decisions.c) ------------------------------------------------------ */

/* Errors: ENOMEM. */
ctn_status ctn__decisions_text(ctn_context *ctx, ctn__text *out);
/* CTN_END: they are of another machine, nothing has changed. Between scopes. Errors: EFORMAT, ENOMEM. */
ctn_status ctn__decisions_replace(ctn_context *ctx, const char *text);

#endif
