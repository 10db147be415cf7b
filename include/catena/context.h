/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts, scopes, inputs, variables, gradients as tensors. A context records what a program calls,
 * plans it once and replays the plan. It is used by one thread at a time; several contexts may live
 * in several threads.
 */
#ifndef CATENA_CONTEXT_H
#define CATENA_CONTEXT_H

#include <catena/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { CTN_MODE_DEFAULT = 0, CTN_MODE_PLANNED, CTN_MODE_EAGER } ctn_mode;
/* f32: strict math. bf16, f16: activations and the operands of products in the low type; variables,
 * gradients, statistics, losses and what the user sees in f32. */
typedef enum { CTN_PRECISION_F32 = 0, CTN_PRECISION_BF16, CTN_PRECISION_F16 } ctn_precision;

typedef struct {
    size_t struct_size;
    int threads;             /* 0: CATENA_THREADS, OMP_NUM_THREADS, physical cores */
    uint64_t seed;           /* 0: CATENA_SEED */
    ctn_mode mode;           /* default: planned, unless CATENA_EAGER=1 */
    ctn_precision precision; /* refused (CTN_EUNSUPPORTED) where the engine has no kernels for it */
    int slow_precision;      /* 1: allow f16 where its kernels are slow; 0 refuses that too */
    int no_fuse;             /* 1: as CATENA_FUSE=0 */
    int64_t max_plans;       /* 0: CATENA_PLANS */
    int64_t max_plan_bytes;  /* 0: CATENA_PLAN_MB */
    const int *cores;        /* logical CPUs promised to this context alone (rule 17), or NULL */
    int ncores;
    int64_t spans; /* kernel runs kept for ctn_trace_write, the latest ones; 0: none */
} ctn_context_opt;

/* Make a context. Local. Result: owned, ctn_context_free. Errors: ENOMEM, EENGINE, EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_context_new(ctn_context **ctx, const ctn_context_opt *opt);
/* Free it with every plan; variables, modules and optimizers of it must be freed before. */
CTN_API void ctn_context_free(ctn_context *ctx);
CTN_API int ctn_context_threads(const ctn_context *ctx);

/* Everything of a context that influences results and is not in variables: seed and step counter. */
typedef struct {
    uint64_t seed, step;
} ctn_context_state;
CTN_API void ctn_context_save(const ctn_context *ctx, ctn_context_state *out);
CTN_API CTN_MUST_CHECK ctn_status ctn_context_load(ctn_context *ctx, const ctn_context_state *in);

/* Open and close a scope. Scopes nest; tensors live until the outermost one ends, but those of an
 * inner scope cannot be read after it. The end of the outermost scope runs effects that are still
 * pending (rule 1). Local. Errors: ESTATE, whatever the flush reports; the scope is closed anyway. */
CTN_API ctn_status ctn_scope_begin(ctn_context *ctx);
CTN_API ctn_status ctn_scope_end(ctn_context *ctx);
/* Close an inner scope, letting one tensor escape to the scope around it. Result: t. */
CTN_API ctn_tensor *ctn_scope_return(ctn_context *ctx, ctn_tensor *t);

/* Training or evaluation behaviour of ops such as dropout (default: training), and whether gradients
 * may be asked for what is recorded now (default: yes). Return the previous setting. Local. */
CTN_API int ctn_set_training(ctn_context *ctx, int on);
CTN_API int ctn_set_grad(ctn_context *ctx, int on);
CTN_API int ctn_training(const ctn_context *ctx);

/* A user's memory as a tensor, row-major, without a copy: borrowed, read when the plan runs, must stay
 * unchanged until the outermost scope ends (rule 7). Zero rows are legal. Result: scope. */
CTN_API ctn_tensor *ctn_input_at(const char *at, ctn_context *ctx, const void *data,
                                 ctn_dtype dtype, int ndim, const int64_t *dims);
#define ctn_input(...) ctn_input_at(CTN_HERE, __VA_ARGS__)
/* The same with strides in elements (column-major, slices of a larger array). Result: scope. */
CTN_API ctn_tensor *ctn_input_strided_at(const char *at, ctn_context *ctx, const void *data,
                                         ctn_dtype dtype, int ndim, const int64_t *dims,
                                         const int64_t *strides);
#define ctn_input_strided(...) ctn_input_strided_at(CTN_HERE, __VA_ARGS__)
/* One f32 number as a tensor (); a value of the plan, not part of its hash. Result: scope. */
CTN_API ctn_tensor *ctn_number_at(const char *at, ctn_context *ctx, double value);
#define ctn_number(...) ctn_number_at(CTN_HERE, __VA_ARGS__)

/* Keep a tensor beyond the next step of this scope (rule 3). Result: t. */
CTN_API ctn_tensor *ctn_keep(ctn_tensor *t);
/* The same with what its gradient needs, so that backward can go through it after the step: a GAN's fake
 * batch. Result: t. */
CTN_API ctn_tensor *ctn_keep_graph(ctn_tensor *t);

/* A value carried from scope to scope (rule 6): recurrent state, truncated backpropagation. */
typedef struct ctn_retained ctn_retained;
/* Remember t when the outermost scope ends, detached. *r NULL makes one. Local. Result: owned,
 * ctn_retained_free. Errors: ENOMEM, EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_retain(ctn_retained **r, ctn_tensor *t);
/* What the last finished scope retained, as a leaf of this scope; NULL r or nothing retained yet is an
 * error. Result: scope. */
CTN_API ctn_tensor *ctn_retained_value_at(const char *at, ctn_retained *r);
#define ctn_retained_value(r) ctn_retained_value_at(CTN_HERE, r)
CTN_API void ctn_retained_free(ctn_retained *r);

/* What is recorded between the two is not kept for its gradient but computed again there, from what it read:
 * memory for time. Pairs nest (the outermost counts); one left open ends with its scope. Results are the
 * same to the bit, random ops and batch statistics too. Local. Errors: ESTATE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_recompute_begin(ctn_context *ctx);
CTN_API CTN_MUST_CHECK ctn_status ctn_recompute_end(ctn_context *ctx);

/* t without its history: no gradient flows through. Result: scope. */
CTN_API ctn_tensor *ctn_detach_at(const char *at, ctn_tensor *t);
#define ctn_detach(t) ctn_detach_at(CTN_HERE, t)

/* Gradients of sum(y) by each of xs as tensors, of any order (rule 4). gxs[i] is a tensor shaped as xs[i].
 * Local. Errors: EGRAD when y does not depend on an x. */
CTN_API CTN_MUST_CHECK ctn_status ctn_grad_at(const char *at, ctn_tensor *y, int n,
                                              ctn_tensor *const *xs, ctn_tensor **gxs);
#define ctn_grad(...) ctn_grad_at(CTN_HERE, __VA_ARGS__)
/* Make t a leaf of its own that gradients can be asked for. Result: scope. */
CTN_API ctn_tensor *ctn_with_grad(ctn_tensor *t);

/* Variables: parameters (trained by an optimizer) and state (written by ctn_assign), named,
 * checkpointed. Usually made by modules (catena/nn.h). */
typedef enum { CTN_PARAM = 1, CTN_STATE = 2 } ctn_var_kind;
/* Zero-filled. Local. Result: owned, ctn_var_free. Errors: ENOMEM, EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_new(ctn_var **v, ctn_context *ctx, const char *name,
                                              ctn_var_kind kind, ctn_dtype dtype, int ndim,
                                              const int64_t *dims);
CTN_API void ctn_var_free(ctn_var *v); /* between scopes */
CTN_API const char *ctn_var_name(const ctn_var *v);
CTN_API const ctn_desc *ctn_var_desc(const ctn_var *v); /* plain: row-major */
CTN_API ctn_var_kind ctn_var_kind_of(const ctn_var *v);
CTN_API void ctn_var_set_trainable(ctn_var *v, int on);
CTN_API int ctn_var_trainable(const ctn_var *v);
CTN_API ctn_context *ctn_var_context(const ctn_var *v);
/* Values in plain layout, whatever layout they live in. bytes: the exact size. Pending effects run
 * first. Local. Errors: EARG, whatever the flush reports. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_get(ctn_var *v, void *dst, size_t bytes);
CTN_API CTN_MUST_CHECK ctn_status ctn_var_set(ctn_var *v, const void *src, size_t bytes);
/* The accumulated gradient, plain. Errors: ESTATE when none was contributed. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_grad(ctn_var *v, void *dst, size_t bytes);
/* The variable as a tensor of the current scope, at its current version (rule 2). Result: scope. */
CTN_API ctn_tensor *ctn_use_at(const char *at, ctn_var *v);
#define ctn_use(v) ctn_use_at(CTN_HERE, v)
/* Write t into v when the step runs (an effect). Local. Errors: ESHAPE, EDTYPE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_assign_at(const char *at, ctn_var *v, ctn_tensor *t);
#define ctn_assign(v, t) ctn_assign_at(CTN_HERE, v, t)

/* Variables with the names they are known by; what ctn_params() of a module returns. Borrowed. A
 * variable with several names is in it once for each. */
typedef struct {
    int n;
    ctn_var *const *var;
    const char *const *name; /* NULL: each is known by its own name */
} ctn_vars;

/* Called for one array of a module's, optimizer's or other state, row-major; it may read or overwrite
 * data, which is valid until it returns. */
typedef ctn_status (*ctn_state_fn)(void *user, const char *name, ctn_dtype dtype, int ndim,
                                   const int64_t *dims, void *data);

/* Run everything recorded so far whose result somebody can still see. Local. */
CTN_API CTN_MUST_CHECK ctn_status ctn_flush(ctn_context *ctx);

/* What the plan cache did so far. */
typedef struct {
    uint64_t hits, misses, evictions; /* lookups; plans thrown out for room */
    uint64_t runs;                    /* plans run */
    uint64_t recorded_ops;
    uint64_t underflow_runs; /* runs in which a thread flushed a denormal result */
    int64_t plans;           /* in the cache now */
    int64_t plan_bytes;      /* what they take, without the arena */
    int64_t arena_bytes; /* the arena, sized to the largest plan, and the kept copies of weights */
} ctn_plan_stats;
CTN_API void ctn_context_stats(const ctn_context *ctx, ctn_plan_stats *out);

/* The last plan that ran, as text: nodes, kernels, layouts, bytes, and times when profiling is on.
 * As snprintf. Local. */
CTN_API int ctn_plan_text(ctn_context *ctx, char *buf, size_t n);

/* Which kernels are in use where several can do the work (see catena/tune.h): the table that saved states hold,
 * as text. As snprintf; < 0 on error. Local. */
CTN_API int ctn_decisions_text(ctn_context *ctx, char *buf, size_t n);

/* One kernel of a plan, in the order they run. Everything in it is borrowed during the call. */
enum {
    CTN_LAYOUT_ROW_MAJOR = 1,
    CTN_LAYOUT_CHANNELS_LAST = 2,
    CTN_LAYOUT_ENGINE = 4, /* blocks that only the engine knows */
    CTN_LAYOUT_STRIDED = 8 /* views and a user's strides */
};
typedef struct {
    size_t struct_size;
    int index;                    /* as ctn_plan_text counts */
    const char *op, *kernel, *at; /* at: the line of the user's program */
    const char *slow;             /* why a reference kernel runs it, NULL: none does */
    int nin, nout;
    const ctn_desc *in, *out;
    int layouts;   /* CTN_LAYOUT_ bits of its operands of two and more dimensions; 0: it has none */
    int reordered; /* inputs that a reorder made for it */
    /* Read and written: each operand once; of an optimizer's step the parameters and gradients, without its
     * state, which the plan does not know. */
    int64_t bytes;
    int64_t flops; /* of products, 0 otherwise */
    uint64_t ns;   /* best time of a run, 0: not profiled */
} ctn_plan_node;
typedef ctn_status (*ctn_plan_fn)(void *user, const ctn_plan_node *node);
/* Visit the kernels of the last plan that ran; none when there is no such plan. Ends with the first call of fn
 * that does not return CTN_OK. Local. Errors: EARG, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_plan_visit(ctn_context *ctx, ctn_plan_fn fn, void *user);

/* Kernel runs (see ctn_context_opt.spans) and counters as a Chrome trace, for chrome://tracing or Perfetto.
 * Local. Errors: EIO. */
CTN_API CTN_MUST_CHECK ctn_status ctn_trace_write(ctn_context *ctx, const char *path);
/* Measure each node of every run (off by default). Local. */
CTN_API void ctn_set_profile(ctn_context *ctx, int on);

#ifdef __cplusplus
}
#endif
#endif
