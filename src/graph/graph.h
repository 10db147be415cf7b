/* SPDX-License-Identifier: Apache-2.0
 *
 * Graph layer: what a context records. Nodes and tensors of the open scope, the tape that is hashed,
 * variables and gradient pools, differentiation. Nothing here computes: plan/ installs a runner.
 *
 * The tape is a list of 64-bit words, one short entry per event (leaf, op, scope, keep, backward, step,
 * assign). It holds everything a plan depends on and nothing that changes from step to step (rule 8):
 * the hash of the tape since the outermost scope began is the key of a plan.
 */
#ifndef CTN_GRAPH_GRAPH_H
#define CTN_GRAPH_GRAPH_H

#include <catena/op.h>

#include "comm/exchange.h"
#include "tensor/tensor.h"
#include "trace/trace.h"

typedef struct ctn__node ctn__node;
typedef struct ctn__pool ctn__pool;

/* Kinds of events; ops are EVENT_OP, the others have no kernel or are expanded by the planner. */
typedef enum {
    CTN__EV_OP = 1,
    CTN__EV_INPUT,
    CTN__EV_NUMBER,
    CTN__EV_VAR,
    CTN__EV_SCOPE,
    CTN__EV_RETURN,
    CTN__EV_END,
    CTN__EV_KEEP,
    CTN__EV_RETAIN,
    CTN__EV_ASSIGN,
    CTN__EV_BACKWARD,
    CTN__EV_STEP,
    CTN__EV_GRAD,
    CTN__EV_LEAF,
    CTN__EV_RECOMPUTE,
    CTN__EV_FLUSH
} ctn__event;

enum {                        /* ctn_tensor.flags */
       CTN__T_GRAD = 1,       /* a gradient can flow to it */
       CTN__T_KEPT = 2,       /* value survives a step */
       CTN__T_KEPT_GRAPH = 4, /* and so does what its gradient needs */
       CTN__T_OUTPUT = 8      /* loss or retained: an output of the plan that computes it */
};

#define CTN__EMITTED 0x80000000u /* ids of tensors that differentiation made */

struct ctn_tensor {
    ctn_context *ctx;
    ctn__node *node; /* producer; NULL: a leaf */
    uint32_t id;     /* index in ctx->tensors; with CTN__EMITTED: in ctx->emitted_tensors */
    uint16_t out;    /* which output of node */
    uint8_t flags;
    uint8_t level;     /* innermost scope it can be seen from */
    const char *at;    /* user's line */
    void *data;        /* leaf memory, or where a flush left the value; NULL: not computed */
    ctn_var *var;      /* leaf of a variable ... */
    uint64_t version;  /* ... as it was at this version */
    ctn_tensor *alias; /* planning: what a macro node's output became */
    ctn_tensor *grad;  /* differentiation: gradient so far */
    uint32_t mark;     /* differentiation: visited */
    float number;      /* memory of a number leaf */
    ctn_desc d;
};

/* One recorded call or effect. Effects (assign, backward, step) are nodes without outputs. */
struct ctn__node {
    ctn__event event;
    ctn_op *op;
    const char *at;
    uint16_t nin, nout, nattr, nscalar;
    bool needs_grad; /* some output carries a gradient */
    bool emitted;    /* by differentiation */
    uint32_t block;  /* in a block that is recomputed for its gradient, 0: not */
    uint64_t ordinal;
    ctn_tensor **in, **out;
    int64_t *attr;
    ctn_scalar *scalar;
    ctn_var *var;    /* assign, contribute */
    ctn__pool *pool; /* backward, step */
    bool first;      /* backward: the pool is clean; contribute: overwrite */
    bool
        direct; /* contribute: nobody else has this gradient, its producer may write into the pool */
    uint32_t mark;
};

/* Memory of one or more variables; freed with the last of them. */
typedef struct {
    int refs;
    void *mem;
} ctn__slab;

struct ctn_var {
    ctn_context *ctx;
    uint64_t uid;
    char *name;
    ctn_var_kind kind;
    ctn_desc d; /* plain */
    bool trainable;
    uint64_t version;
    uint64_t done, done_flush; /* version before the writes that wait for flush done_flush */
    uint64_t seen;             /* planning: its version at the node being expanded */
    const char *written_at;    /* line of the last effect that wrote it */
    void *data;                /* in its slab */
    ctn__slab *slab;           /* memory it shares with the other variables of its pool */
    void *grad;                /* in the pool's gradient memory; NULL outside a pool */
    ctn__pool *pool;
    ctn__pool *parked;               /* frozen: the pool whose optimizer has it */
    uint64_t scope_id, base_version; /* version when the current outermost scope began */
    ctn_tensor *leaf;                /* its newest leaf in this scope */
    bool leaf_grad;
    ctn_var *next, **link;
};

/* Parameters of one optimizer: one contiguous range of values and one of gradients. Owner: optim. */
struct ctn__pool {
    ctn_context *ctx;
    uint64_t uid;
    int nvar;
    ctn_var **var;
    ctn_var **parked; /* frozen parameters of the optimizer, which are outside */
    int nparked;
    ctn_status (*arrange)(void *owner); /* trainable flags have changed; between scopes */
    int64_t *begin;   /* element offset of each, multiple of 16; begin[nvar] = count */
    int64_t count;    /* elements with padding */
    float *w, *g;     /* both 64-byte aligned */
    uint64_t touched; /* times that w was written by other than effects and ctn_var_set */
    ctn__slab *slab;  /* of w; the pool's own share in it */
    ctn_op *step_op;  /* run with a->priv == owner */
    void *owner;
    ctn__exchange *exchange; /* with other ranks; NULL: none. dist/ installs it */
    double scale; /* seed of backward (loss scaling); owner sets it before the first contribution */
    int contributions;      /* recorded since the last step */
    int contributions_done; /* of them, computed */
    ctn__pool *next, **link;
};

struct ctn_retained {
    ctn_context *ctx;
    ctn_desc d;
    void *buf[2];
    size_t cap[2];
    int current;         /* buffer of the last finished scope; -1: none yet */
    ctn_tensor *pending; /* written at the end of this scope */
    ctn_retained *next, **link;
};

/* What plan/ installs (the only upward call). */
typedef enum { CTN__FLUSH_READ, CTN__FLUSH_STEP, CTN__FLUSH_END } ctn__flush_kind;
typedef struct {
    ctn_status (*start)(ctn_context *ctx, const ctn_context_opt *opt);
    void (*stop)(ctn_context *ctx);
    ctn_status (*flush)(ctn_context *ctx, ctn__flush_kind kind);
    void (*forget)(ctn_context *ctx, const void *var_or_pool); /* drop plans that point to it */
    void (*stats)(const ctn_context *ctx, ctn_plan_stats *out);
    int (*text)(ctn_context *ctx, char *buf, size_t n);
    ctn_status (*trace)(ctn_context *ctx, const char *path);
} ctn__runner;
extern const ctn__runner ctn__plan_runner; /* defined in plan/run.c */

struct ctn_context {
    ctn_context_opt opt;
    int threads;
    bool eager, fuse, profile;
    bool regroup; /* a variable was frozen or thawed since the last scope began */
    bool training, grad_on;
    uint64_t seed, step; /* saved state */

    /* the open outermost scope */
    uint64_t scope_id;
    int level;
    ctn__arena arena;
    ctn__storage storage;
    CTN__VEC(ctn_tensor *) tensors;
    CTN__VEC(ctn__node *) nodes;
    CTN__VEC(uint64_t) tape;
    CTN__VEC(double) slots; /* scalars of this scope */
    uint64_t ordinals;      /* random ops so far */
    uint32_t blocks;        /* recomputed ones of this scope so far */
    int recompute_level;    /* scope in which the outermost was opened */
    int recompute;          /* how deep in marked blocks recording is */
    size_t flushed_nodes, flushed_tensors, flushed_tape; /* all before these is done */
    uint32_t step_mark;  /* tensors before it are gone unless kept */
    const char *step_at; /* line of the last step */
    uint64_t flushes;    /* of all scopes so far */
    int effects;         /* pending */
    ctn_status broken;   /* a flush of this scope failed */
    ctn__hasher *hasher;
    uint32_t marks;

    /* emission: nodes made by differentiation during planning; not on the tape */
    bool emitting;
    CTN__VEC(ctn__node *) emitted;
    CTN__VEC(ctn_tensor *) emitted_tensors;

    uint64_t next_uid, next_var; /* of pools, of variables */
    uint64_t recorded_ops;
    ctn_var *vars;
    ctn__pool *pools;
    ctn_retained *retained;
    void *planner; /* the runner's */
    ctn__trace *trace;
};

/* ---- recording (record.c) ------------------------------------------------------------------------ */

ctn_status ctn__need_scope(ctn_context *ctx, const char *who);
ctn_tensor *ctn__tensor_new(ctn_context *ctx,
                            const char *at); /* registered; description left open */
ctn__node *ctn__node_new(ctn_context *ctx, ctn__event ev, const char *at, int nin,
                         ctn_tensor *const *in, int nout);
static inline ctn_tensor *ctn__tensor_by_id(const ctn_context *ctx, uint32_t id)
{
    return id & CTN__EMITTED ? ctx->emitted_tensors.at[id & ~CTN__EMITTED] : ctx->tensors.at[id];
}
bool ctn__tape_add(ctn_context *ctx, ctn__event ev, uint64_t a, uint64_t b);
/* Can the user still see its value? EGONE with the lines otherwise. */
ctn_status ctn__usable(const ctn_tensor *t, const char *who, const char *at);
ctn_status ctn__after_record(ctn_context *ctx); /* eager mode: flush */
/* Compute what is recorded; after it t->data is set. */
ctn_status ctn__materialise(ctn_tensor *t, const char *who);
void ctn__flush_failed(ctn_context *ctx, ctn_status st);

/* An op call from inside the library: like ctn_apply with one output; attr and scalar may be NULL. */
ctn_tensor *ctn__apply1(const char *at, ctn_context *ctx, ctn_op *op, int nin,
                        ctn_tensor *const *in, int nattr, const int64_t *attr, int nscalar,
                        const ctn_scalar *scalar);

/* ---- effects (effect.c) --------------------------------------------------------------------------- */

ctn_status ctn__record_backward(const char *at, ctn__pool *pool, ctn_tensor *loss);
ctn_status ctn__record_step(const char *at, ctn__pool *pool);

/* ---- variables (var.c) --------------------------------------------------------------------------- */

ctn__slab *ctn__slab_new(size_t bytes, int refs, int threads); /* zeroed */
void ctn__slab_release(ctn__slab *s);

/* ---- pools (pool.c) -------------------------------------------------------------------------------- */

/* Move the variables into one pool. Errors: ESTATE when one belongs to another pool. */
ctn_status ctn__pool_new(ctn__pool **pool, ctn_context *ctx, int n, ctn_var *const *vars);
/* Elements of a pool with these variables, padding included. */
int64_t ctn__pool_length(int n, ctn_var *const *vars);
/* The same pool with these variables in it and those parked: new memory, a new uid, gradients of zero. Plans with it go. */
ctn_status ctn__pool_remake(ctn__pool *pool, int n, ctn_var *const *vars, int nparked,
                            ctn_var *const *parked);
/* Where variables were frozen or thawed, let optimizers arrange their pools; between scopes. */
ctn_status ctn__pools_arrange(ctn_context *ctx);
void ctn__pool_free(ctn__pool *pool); /* variables keep their values */
/* Wait until nothing of the pool is in flight. Whoever reads or writes values or gradients outside of a plan calls it first. NULL: nothing to
 * wait for. Errors: EPEER. */
ctn_status ctn__pool_settle(ctn__pool *pool);
void ctn__pool_leave(ctn__pool *pool); /* the same before something is freed: not after a failure */

/* ---- differentiation (grad.c) ------------------------------------------------------------------------ */

/* Emit gradients of y (weighted by gy, NULL: ones) by each x; gx[i] NULL where y does not depend on it. */
ctn_status ctn__differentiate(const char *at, ctn_tensor *y, ctn_tensor *gy, int n,
                              ctn_tensor *const *xs, ctn_tensor **gx);
/* Nodes reachable from y through tensors that carry gradients, inputs first. */
typedef CTN__VEC(ctn__node *) ctn__node_list;
ctn_status ctn__history(ctn_tensor *y, ctn__node_list *out);
/* The same without what earlier calls with these marks have found. */
typedef struct {
    uint32_t seen, done;
} ctn__walked;
ctn__walked ctn__walked_none(ctn_context *ctx);
ctn_status ctn__history_more(ctn_tensor *y, ctn__walked w, ctn__node_list *out);
/* Expand the macro nodes (backward, grad) of nodes [begin,end): every node of the segment with what it
 * became, in order. Contributions are nodes of event CTN__EV_ASSIGN with var and pool set. */
ctn_status ctn__expand(ctn_context *ctx, size_t begin, size_t end, ctn__node_list *out);
static inline ctn_tensor *ctn__real(ctn_tensor *t)
{
    while (t->alias) t = t->alias;
    return t;
}

/* Ops that differentiation itself needs; defined in ops/. */
extern ctn_op ctn__op_add, ctn__op_full;

/* ---- printing (print.c) ------------------------------------------------------------------------------- */

int ctn__tensor_format(const ctn_desc *d, const void *data, char *buf, size_t n);

#endif
