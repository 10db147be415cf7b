/* SPDX-License-Identifier: Apache-2.0
 *
 * The graph layer: what a context records. It holds the nodes and tensors of the open scope, the
 * tape that is hashed, variables, gradient pools and differentiation. Nothing here computes; the
 * runner that plan/ defines does.
 *
 * The tape is a list of 64-bit words, one short entry per event (leaf, op, scope, keep, backward,
 * step, assign). It holds everything a plan depends on and nothing that changes from step to step
 * (rule 8). The hash of the tape since the outermost scope began is therefore the key of a plan.
 */
#ifndef CTN_GRAPH_GRAPH_H
#define CTN_GRAPH_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>

#include <catena/op.h>

#include "comm/exchange.h"
#include "tensor/tensor.h"
#include "trace/trace.h"

typedef struct ctn__node ctn__node;
typedef struct ctn__pool ctn__pool;

/* Kinds of events. Ops are CTN__EV_OP; all others have no kernel or are expanded by the planner. */
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
       CTN__T_KEPT_GRAPH = 4, /* value and what its gradient needs survive a step */
       CTN__T_OUTPUT = 8      /* loss or retained: an output of the plan that computes it */
};

#define CTN__EMITTED 0x80000000u /* set in the ids of tensors made by differentiation */

struct ctn_tensor {
    ctn_context *ctx;
    ctn__node *node; /* producer; NULL: a leaf */
    uint32_t id;     /* index in ctx->tensors; with CTN__EMITTED: in ctx->emitted_tensors */
    uint16_t out;    /* which output of node */
    uint8_t flags;
    uint8_t level;     /* level of the scope that can name it; 255: none any more */
    const char *at;    /* source line of the call */
    void *data;        /* leaf memory, or where a flush left the value; NULL: not computed */
    ctn_var *var;      /* variable of this leaf; NULL: not a variable's leaf */
    uint64_t version;  /* version of var that the leaf shows */
    ctn_tensor *alias; /* planning: the tensor that replaces this one */
    ctn_tensor *grad;  /* differentiation: gradient accumulated so far */
    uint32_t mark;     /* differentiation: visited */
    float number;      /* value of a number leaf; data points to it */
    ctn_desc d;
};

/* One recorded call or effect. Effects (assign, backward, step) are nodes without outputs. */
struct ctn__node {
    ctn__event event;
    ctn_op *op;
    const char *at;
    uint16_t nin, nout, nattr, nscalar;
    bool needs_grad; /* some output carries a gradient */
    bool emitted;    /* made by differentiation, not recorded */
    uint32_t block;  /* number of the recomputed block it is in; 0: none */
    uint64_t ordinal;
    uint64_t place; /* program order: an emitted node comes after the event that emits it */
    ctn_tensor **in, **out;
    int64_t *attr;
    ctn_scalar *scalar;
    ctn_var *var;    /* assign, contribute */
    ctn__pool *pool; /* backward, step */
    bool first;      /* backward: the pool is clean; contribute: overwrite */
    /* contribute: no other leaf has this gradient, so its producer may write into the pool */
    bool direct;
    uint32_t mark;
};

/* Memory shared by one or more variables; freed when the last of them releases it. */
typedef struct {
    atomic_int refs; /* variables of several contexts may share it */
    void *mem;
} ctn__slab;

/* What the variables of several contexts share that are the same weights (ctn_module_share): nobody
 * may write them any more. The lock is for `copies`, in the layouts that kernels prefer
 * (plan/kept.c). */
typedef struct ctn__shared {
    atomic_int refs;
    pthread_mutex_t lock;
    ctn__slab *slab;
    struct ctn__kept *copies;
} ctn__shared;

struct ctn_var {
    ctn_context *ctx;
    uint64_t uid;
    char *name;
    ctn_var_kind kind;
    ctn_desc d; /* plain */
    bool trainable;
    uint64_t version;
    /* done is the version before the writes that are pending until flush number done_flush */
    uint64_t done, done_flush;
    uint64_t seen;          /* planning: its version at the node being expanded */
    uint64_t mark;          /* the last search that met it, see ctn__var_first */
    const char *written_at; /* line of the last effect that wrote it */
    void *data;             /* lies in its slab */
    ctn__slab *slab;        /* memory it shares with the other variables of its pool */
    ctn__shared *shared;    /* NULL, or what it shares with variables of other contexts */
    void *grad;             /* lies in the pool's gradient memory; NULL outside a pool */
    ctn__pool *pool;
    ctn__pool *parked;               /* if frozen and outside: the pool of its optimizer */
    uint64_t scope_id, base_version; /* version when outermost scope scope_id began */
    ctn_tensor *leaf;                /* its newest leaf in this scope */
    /* NULL, or what ctn_use returns instead of the leaf (nn/weight_norm.c). `derived` is freed with
     * the variable. */
    ctn_tensor *(*derive)(const char *at, void *derived, ctn_tensor *leaf);
    void *derived;
    bool leaf_grad;
    ctn_var *next, **link;
};

/* The parameters of one optimizer: a contiguous range of values, and one of gradients. Owned by the
 * optimizer. */
struct ctn__pool {
    ctn_context *ctx;
    uint64_t uid;
    int nvar;
    ctn_var **var;
    ctn_var **parked; /* frozen parameters of the optimizer, kept outside the pool */
    int nparked;
    /* called between scopes after trainable flags have changed; sets ctx->regroup to be called
     * again */
    ctn_status (*arrange)(void *owner);
    int64_t *begin;   /* element offset of each variable, a multiple of 16; begin[nvar] = count */
    int64_t count;    /* number of elements, including padding */
    ctn_dtype dtype;  /* of all its variables: f32 or f64 */
    size_t unit;      /* bytes of an element */
    void *w, *g;      /* both 64-byte aligned */
    uint64_t touched; /* counts writes to w other than by effects and ctn_var_set */
    uint64_t mark;    /* the last search that met it, as of a variable */
    ctn__slab *slab;  /* memory of w; the pool holds one reference */
    ctn_op *step_op;  /* run with a->priv == owner */
    void *owner;
    ctn__exchange *exchange; /* with other ranks, installed by distributed/; NULL: none */
    double scale;            /* seed of backward; the owner sets it before each contribution */
    int contributions;       /* recorded since the last step */
    int contributions_done;  /* of these, already computed */
    ctn__pool *next, **link;
};

struct ctn_retained {
    ctn_context *ctx;
    ctn_desc d;
    void *buf[2];
    size_t cap[2];
    int current;         /* buffer of the last finished scope; -1: none yet */
    ctn_tensor *pending; /* copied to a buffer when this scope ends */
    ctn_retained *next, **link;
};

/* The functions that plan/ provides: the library's only upward call. */
typedef enum { CTN__FLUSH_READ, CTN__FLUSH_STEP, CTN__FLUSH_END } ctn__flush_kind;
typedef struct {
    ctn_status (*start)(ctn_context *ctx, const ctn_context_opt *opt);
    void (*stop)(ctn_context *ctx);
    ctn_status (*flush)(ctn_context *ctx, ctn__flush_kind kind);
    void (*forget)(ctn_context *ctx, const void *var_or_pool); /* drop plans that point to it */
    void (*free_copies)(struct ctn__kept *copies);             /* of a shared variable */
    void (*stats)(const ctn_context *ctx, ctn_plan_stats *out);
    int (*text)(ctn_context *ctx, char *buf, size_t n);
    ctn_status (*trace)(ctn_context *ctx, const char *path);
} ctn__runner;
extern const ctn__runner ctn__plan_runner; /* defined in plan/run.c */

struct ctn_context {
    ctn_context_opt opt;
    int threads;
    bool eager, fuse, profile;
    bool regroup; /* a variable was frozen or unfrozen since the last scope began */
    bool training, grad_on;
    uint64_t seed, step; /* saved state */
    ctn_share share;     /* which samples of the step the open scope has */

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
    uint32_t blocks;        /* recomputed blocks of this scope so far */
    int recompute_level;    /* level of the scope that opened the outermost block */
    int recompute;          /* nesting depth of marked blocks here */
    size_t flushed_nodes, flushed_tensors, flushed_tape; /* what precedes these has run */
    uint32_t step_mark;  /* tensors before it are gone unless kept */
    const char *step_at; /* line of the last step */
    uint64_t flushes;    /* number so far, in all scopes */
    int effects;         /* recorded but not run yet */
    ctn_status broken;   /* status of a failed flush of this scope */
    ctn__hasher *hasher;
    uint32_t marks;
    uint64_t searches; /* over variables, see ctn__var_first */

    /* emission: nodes made by differentiation during planning, which are not on the tape */
    bool emitting;
    uint64_t expanding; /* place of the event that emits */
    CTN__VEC(ctn__node *) emitted;
    CTN__VEC(ctn_tensor *) emitted_tensors;

    uint64_t next_uid, next_var; /* next number of a pool, of a variable */
    uint64_t recorded_ops;
    ctn_var *vars;
    ctn__pool *pools;
    ctn_retained *retained;
    void *planner; /* owned by the runner */
    ctn__trace *trace;
};

/* Does a 16-bit policy apply? */
static inline bool ctn__low_policy(const ctn_context *ctx)
{
    return ctx->opt.precision == CTN_PRECISION_BF16 || ctx->opt.precision == CTN_PRECISION_F16;
}

/* ---- recording (record.c) ------------------------------------------------------------------- */

ctn_status ctn__need_scope(ctn_context *ctx, const char *who);
/* Registered in the scope; the caller fills in the description. */
ctn_tensor *ctn__tensor_new(ctn_context *ctx, const char *at);
ctn__node *ctn__node_new(ctn_context *ctx, ctn__event ev, const char *at, int nin,
                         ctn_tensor *const *in, int nout);
static inline ctn_tensor *ctn__tensor_by_id(const ctn_context *ctx, uint32_t id)
{
    return id & CTN__EMITTED ? ctx->emitted_tensors.at[id & ~CTN__EMITTED] : ctx->tensors.at[id];
}
bool ctn__tape_add(ctn_context *ctx, ctn__event ev, uint64_t a, uint64_t b);
/* OK if the user may still read the value; otherwise EGONE, with the source lines involved. */
ctn_status ctn__usable(const ctn_tensor *t, const char *who, const char *at);
ctn_status ctn__after_record(ctn_context *ctx); /* eager mode: flush */
/* Run everything recorded so far; t->data is set afterwards. */
ctn_status ctn__materialise(ctn_tensor *t, const char *who);
void ctn__flush_failed(ctn_context *ctx, ctn_status st);

/* An op call inside the library: ctn_apply with one output. attr and scalar may be NULL. */
ctn_tensor *ctn__apply1(const char *at, ctn_context *ctx, ctn_op *op, int nin,
                        ctn_tensor *const *in, int nattr, const int64_t *attr, int nscalar,
                        const ctn_scalar *scalar);

/* ---- effects (effect.c) --------------------------------------------------------------------- */

/* The value of a variable itself: ctn_use without `derive`. */
ctn_tensor *ctn__leaf(const char *at, ctn_var *v);
ctn_status ctn__record_backward(const char *at, ctn__pool *pool, ctn_tensor *loss);
ctn_status ctn__record_step(const char *at, ctn__pool *pool);

/* ---- variables (var.c) ---------------------------------------------------------------------- */

ctn__slab *ctn__slab_new(size_t bytes, int refs, int threads); /* zeroed */
/* Give v another type. It must not belong to an optimizer. Call it between scopes. */
ctn_status ctn__var_convert(ctn_var *v, ctn_dtype dtype);
void ctn__slab_release(ctn__slab *s);
/* Make `to`, of another context, the same weights as `from`. */
ctn_status ctn__var_share(ctn_var *to, ctn_var *from);
/* Does search `mark` (a new ++ctx->searches of the variable's context) meet v for the first time?
 * So duplicates among n variables are found in n steps. */
static inline bool ctn__var_first(ctn_var *v, uint64_t mark)
{
    const bool first = v->mark != mark;
    v->mark = mark;
    return first;
}
/* ESTATE if v is shared: `who` cannot write it. */
ctn_status ctn__var_writable(const ctn_var *v, const char *who);

/* ---- pools (pool.c) ------------------------------------------------------------------------- */

/* Move the first n variables into one pool; the nparked ones after them are parked. Errors: ESTATE
 * if one already belongs to another pool. */
ctn_status ctn__pool_new(ctn__pool **pool, ctn_context *ctx, int n, ctn_var *const *vars,
                         int nparked);
/* The element at which a variable of the pool begins. */
static inline int64_t ctn__pool_place(const ctn__pool *p, const ctn_var *v)
{
    return ((char *)v->data - (char *)p->w) / (int64_t)p->unit;
}
/* The index of the variable that contains this element. */
static inline int ctn__pool_index(const ctn__pool *p, int64_t element)
{
    int lo = 0, hi = p->nvar;
    while (hi - lo > 1) {
        int mid = (lo + hi) / 2;
        if (p->begin[mid] <= element) lo = mid;
        else hi = mid;
    }
    return lo;
}
/* The index of a variable of the pool. Empty ones begin where the next one does. */
static inline int ctn__pool_find(const ctn__pool *p, const ctn_var *v)
{
    int i = ctn__pool_index(p, ctn__pool_place(p, v));
    while (p->var[i] != v) i--;
    return i;
}
/* The address of element i of w, g or another array that is laid out like them. */
static inline void *ctn__pool_at(const ctn__pool *p, const void *array, int64_t i)
{
    return (char *)array + i * (int64_t)p->unit;
}
/* Number of elements, including padding, of a pool with these variables. */
int64_t ctn__pool_length(int n, ctn_var *const *vars);
/* Rebuild the pool with `vars` in it and `parked` outside. It gets new memory and a new uid; plans
 * that use it are dropped. Pending gradients stay, those of new variables are zero. */
ctn_status ctn__pool_remake(ctn__pool *pool, int n, ctn_var *const *vars, int nparked,
                            ctn_var *const *parked);
/* Let optimizers rearrange their pools if variables were frozen or unfrozen. Between scopes. */
ctn_status ctn__pools_arrange(ctn_context *ctx);
void ctn__pool_free(ctn__pool *pool); /* variables keep their values */
/* Wait until nothing of the pool is in flight. Code that reads or writes values or gradients
 * outside of a plan calls it first. NULL is allowed and does nothing. Errors: EPEER. */
ctn_status ctn__pool_settle(ctn__pool *pool);
/* The same before memory is freed; does nothing if the group of ranks has failed. */
void ctn__pool_leave(ctn__pool *pool);

/* ---- differentiation (grad.c) --------------------------------------------------------------- */

/* Emit the gradient of y with respect to each x, weighted by gy (NULL: ones). gx[i] is NULL if y
 * does not depend on xs[i]. */
ctn_status ctn__differentiate(const char *at, ctn_tensor *y, ctn_tensor *gy, int n,
                              ctn_tensor *const *xs, ctn_tensor **gx);
/* The nodes that y was computed by, followed through tensors that carry gradients; inputs first. */
typedef CTN__VEC(ctn__node *) ctn__node_list;
ctn_status ctn__history(ctn_tensor *y, ctn__node_list *out);
/* The same, without the nodes that earlier calls with these marks have found. */
typedef struct {
    uint32_t seen, done;
} ctn__walked;
ctn__walked ctn__walked_none(ctn_context *ctx);
ctn_status ctn__history_more(ctn_tensor *y, ctn__walked w, ctn__node_list *out);
/* Append nodes [begin,end) to `out` in order, each macro node (backward, grad) replaced by its
 * expansion. Gradient contributions are nodes of event CTN__EV_ASSIGN with var and pool set. */
ctn_status ctn__expand(ctn_context *ctx, size_t begin, size_t end, ctn__node_list *out);
static inline ctn_tensor *ctn__real(ctn_tensor *t)
{
    while (t->alias) t = t->alias;
    return t;
}

/* Ops that differentiation itself needs; defined in ops/. */
extern ctn_op ctn__op_add, ctn__op_full;

/* ---- printing (print.c) --------------------------------------------------------------------- */

int ctn__tensor_format(const ctn_desc *d, const void *data, char *buf, size_t n);

#endif
