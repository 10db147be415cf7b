/* SPDX-License-Identifier: Apache-2.0
 *
 * The plan layer turns a recorded segment into a list of kernels over one arena. It also contains
 * the cache of these plans and the executor. A plan is built by passes over nodes and values,
 * each in its own file:
 *
 *   build      nodes of the segment with macros expanded, effects ordered, outputs chosen
 *   simplify   dead code, common subexpressions
 *   recompute  copies of marked blocks for the backward pass
 *   precision  casts of a low-precision policy
 *   fuse       declared rules (fuse/)
 *   spread     casts of variables next to each of their readers
 *   layout     views resolved, layouts and kernels chosen, reorders inserted
 *   schedule   final order
 *   exchange   starts the exchange of gradients when they are ready, waits for it where needed
 *   memory     lifetimes, in-place, offsets in the arena
 *
 * A plan refers to the record only by tensor number, so it can be run for any later step whose
 * tape hashes to the same key.
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
    CTN__V_KEPT, /* a copy of a variable that outlives the run (kept.c) */
    CTN__V_CONST /* made of variables, in the plan's own memory (constant.c) */
} ctn__value_kind;

typedef struct {
    ctn_desc d;
    ctn__value_kind kind;
    bool output;     /* BIND: written by this plan into new storage of the scope */
    int node;        /* producer; -1: none */
    uint32_t tensor; /* BIND */
    ctn_var *var;    /* VAR, GRAD, KEPT */
    ctn__kept *kept; /* KEPT */
    int base;        /* of a view: the value whose memory it shows; -1: not a view */
    int uses;        /* number of reads by nodes */
    int first, last; /* lifetime, as positions in the schedule */
    size_t offset;   /* TEMP: in the arena; CONST: in the plan's own memory */
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
    uint32_t block; /* recomputed block it is in; 0: none */
    bool gradient;  /* made by differentiation */
    bool again;     /* a recomputed copy */
    bool turned;    /* its kernel sees channels-last operands as row-major (N,spatial...,C) */
    bool dead;
    bool constant; /* skipped if the variables it depends on have not changed */
    ctn__pool *pool;
    /* set by prepare */
    ctn_status (*run)(const ctn_run_args *a);
    void *priv;
    void (*priv_free)(void *);
    size_t priv_bytes;
    size_t scratch;
    size_t scratch_offset;
    const char *kernel;
    int64_t flops;
    /* set before a run */
    ctn_run_args args;
    ctn__kept *makes; /* the copy of a variable that it makes; NULL: none */
    const void **pin;
    void **pout;
    double *values; /* scalars of this run */
    bool external;  /* some operand is not in the arena */
    uint64_t ns;    /* shortest time measured while profiling */
} ctn__pnode;

typedef struct ctn__readers ctn__readers;
typedef struct ctn__constants ctn__constants;

struct ctn__plan {
    ctn__hash128 key;
    ctn_context *ctx;
    ctn__arena mem; /* everything the plan owns except kernels */
    CTN__VEC(ctn__pnode) nodes;
    CTN__VEC(ctn__value) values;
    ctn__readers *readers;          /* valid while fusing */
    size_t arena_bytes, temp_bytes; /* with and without sharing of memory */
    size_t bytes;                   /* charged to the cache's budget */
    size_t recorded, needed;        /* nodes before and after simplification, including gradients */
    int reorders, fused;
    size_t reorder_bytes; /* read and written by reorders */
    ctn_comm *comm;       /* polled between kernels; NULL: the plan does not communicate */
    /* some output was made by differentiation, so macros are expanded on a hit too */
    bool keeps_emitted;
    ctn__constants *constants; /* NULL: none */
    const void *arena_base;    /* arena for which the addresses were set */
    uint64_t *tape;            /* the whole tape, if checking is on */
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
    ctn__plan *last;     /* the last plan that ran */
    ctn__plan *uncached; /* eager mode: the last plan, which is not in the cache */
    bool check;
    bool tune, stepped; /* time kernels before the first step; that step was taken */
    size_t guard;       /* guard bytes after every buffer; 0: none */
    ctn_run_env env;
    ctn__trace *trace; /* the context's trace, which holds the counters */
    /* rule 8: misses that differ in one attribute */
    uint64_t *miss_tape;
    size_t miss_n, miss_cap, miss_at;
    int miss_run;
    bool slow_told; /* the host knows of a reference kernel */
};

/* ---- building (build.c) --------------------------------------------------------------------- */

ctn_status ctn__plan_build(ctn__plan **out, ctn_context *ctx, ctn__flush_kind kind);
void ctn__plan_free(ctn__plan *p);
int ctn__plan_value(ctn__plan *p, const ctn_desc *d, ctn__value_kind kind); /* -1: ENOMEM */
/* Append a node; the lists of inputs and outputs are copied. Returns its index; -1: ENOMEM. */
int ctn__plan_node(ctn__plan *p, ctn_op *op, const char *at, int nin, const int *in, int nout,
                   const int *outs);
/* Recount all uses, after a pass that changed edges. */
void ctn__plan_uses(ctn__plan *p);
/* Add `by` to the uses of what n reads: -1 before its edges change or it is removed, 1 after. */
void ctn__node_uses(ctn__plan *p, const ctn__pnode *n, int by);
int ctn__value_base(const ctn__plan *p, int v); /* follows views */
/* unwritten[i]: value i, of the first n, is a variable that the plan does not write (layout.c). */
void ctn__find_unwritten(const ctn__plan *p, size_t n, bool *unwritten);
/* The description d as the kernel of n sees it. */
ctn_desc ctn__node_desc(const ctn__plan *p, const ctn__pnode *n, ctn_desc d);

/* ---- passes --------------------------------------------------------------------------------- */

ctn_status ctn__pass_simplify(ctn__plan *p);
ctn_status ctn__pass_recompute(ctn__plan *p);
ctn_status ctn__pass_precision(ctn__plan *p);
ctn_status ctn__pass_fuse(ctn__plan *p); /* with fusion off: only what the low types need */
ctn_status ctn__pass_spread(ctn__plan *p);
ctn_status ctn__pass_layout(ctn__plan *p); /* also calls prepare: kernels are chosen here */
ctn_status ctn__pass_schedule(ctn__plan *p);
ctn_status ctn__pass_exchange(ctn__plan *p); /* after schedule: positions are final */
ctn_status ctn__pass_constant(ctn__plan *p); /* finds what need not run again */
ctn_status ctn__pass_memory(ctn__plan *p);

/* Move node i to the place of node `to`, which it replaces. False, with nothing changed, if a
 * node in between reads its results. */
bool ctn__node_move(ctn__plan *p, int i, int to);
/* Append an input to n. False: ENOMEM. */
bool ctn__node_append(ctn__plan *p, ctn__pnode *n, int value);
/* The nodes that read v, as found when fusion began: some may be dead by now, and moved nodes are
 * not listed. Returns their number. */
int ctn__plan_readers(const ctn__plan *p, int v, const int **at);
/* A fusion rule inspects one node and may rewrite the plan around it; true if it did. */
typedef bool (*ctn__fuse_rule)(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_product_act(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_norm_act(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_norm_grad(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_loss_seed(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_sum_squares(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_row_gradient(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_elementwise(ctn__plan *p, int node, ctn_status *st);
bool ctn__fuse_conv_affine(ctn__plan *p, int node, ctn_status *st);
/* Whether n can be a stage of an elementwise loop; its kernel then need not support the low types.
 * nodes: the list that ctn__value.node indexes. */
bool ctn__can_chain(const ctn__plan *p, const ctn__pnode *nodes, const ctn__pnode *n);
/* Make an elementwise node with low-precision operands a loop, even if it has one stage only. */
bool ctn__chain_low(ctn__plan *p, int node, ctn_status *st);

/* ---- cache (cache.c) ------------------------------------------------------------------------ */

ctn__plan *ctn__cache_find(ctn__planner *pl, ctn__hash128 key);
/* Takes ownership of p, and evicts other plans to make room. */
ctn_status ctn__cache_add(ctn__planner *pl, ctn__plan *p);
void ctn__cache_drop(ctn__planner *pl, ctn__plan *p);
void ctn__cache_clear(ctn__planner *pl);

/* ---- the state of a variable (kept.c) ------------------------------------------------------- */

/* Every write to a variable changes one of the two: effects and ctn_var_set change the version, all
 * other writes into a pool ctn__pool.touched. */
typedef struct {
    const ctn_var *var;
    uint64_t version, touched;
} ctn__seen;

void ctn__seen_now(ctn__seen *s);
bool ctn__seen_same(const ctn__seen *s); /* nobody has written it since ctn__seen_now */

/* ---- values made of variables (constant.c) -------------------------------------------------- */

void *ctn__constants_at(const ctn__plan *p, size_t offset);
size_t ctn__constants_bytes(const ctn__plan *p);
bool ctn__constants_fresh(const ctn__plan *p); /* all have been computed and are up to date */
void ctn__constants_made(ctn__plan *p, bool well);
void ctn__constants_free(ctn__constants *c);

/* ---- copies of variables (kept.c) ----------------------------------------------------------- */

/* The copy of v with description d, which another plan may have made already, of a shared variable
 * also one of another context. It lives as long as the variable. NULL: ENOMEM. */
ctn__kept *ctn__kept_get(ctn__planner *pl, ctn_var *v, const ctn_desc *d);
void *ctn__kept_memory(const ctn__kept *k);
/* It equals the variable's current value. If not, make it and call ctn__kept_made; another context
 * that needs the copy waits until then. */
bool ctn__kept_fresh(ctn__kept *k);
void ctn__kept_made(ctn__kept *k, bool well);           /* well false: making it failed */
void ctn__kept_drop(ctn__planner *pl, const void *var); /* NULL: the copies of all */
void ctn__kept_free_all(ctn__kept *list);

/* ---- executor (exec.c) ---------------------------------------------------------------------- */

ctn_status ctn__plan_run(ctn__planner *pl, ctn__plan *p);
ctn_status ctn__plan_args(ctn__planner *pl, ctn__plan *p); /* last step of building */

void ctn__note_miss(ctn_context *ctx, ctn__planner *pl); /* rule 8 (miss.c) */

/* ---- reference kernels (slow.c) ------------------------------------------------------------- */

const char *ctn__why_slow(const ctn__plan *p, const ctn__pnode *n); /* NULL: it is not slow */
/* Notify the host, once per context, if the plan spends too much of its arithmetic there. */
void ctn__note_slow(ctn__planner *pl, const ctn__plan *p);

/* ---- text (text.c) -------------------------------------------------------------------------- */

void ctn__plan_print(const ctn__plan *p, ctn__text *t);

/* Ops that only plans contain (effects.c). */
extern ctn_op ctn__op_write;      /* copies in[0] to out[0]: assigns, outputs that alias */
extern ctn_op ctn__op_accumulate; /* out[0] += in[0] */
extern ctn_op ctn__op_clear;      /* out[0] = 0 */
extern ctn_op ctn__op_reorder;    /* out[0] = in[0] in another layout or type */

/* ---- decisions in saved states (decisions.c) ------------------------------------------------ */

/* Errors: ENOMEM. */
ctn_status ctn__decisions_text(ctn_context *ctx, ctn__text *out);
/* CTN_END: the decisions are from another machine, and nothing has changed. Between scopes. Errors:
 * EFORMAT, ENOMEM. */
ctn_status ctn__decisions_replace(ctn_context *ctx, const char *text);

#endif
