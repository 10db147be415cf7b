/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts, scopes, inputs, variables, and gradients as tensors. A context records the ops that
 * a program calls, plans them once and then replays the plan. What was recorded runs at the next
 * flush: an optimizer step, the read of a value, ctn_flush, or the end of the outermost scope; in
 * eager mode, every op runs immediately. A flush must run the pending effects (writes to variables,
 * gradients, optimizer updates, kept values, communication; rule 1) and may skip ops that nothing
 * depends on. Only one thread may use a context at a time; different threads may use different
 * contexts.
 */
#ifndef CATENA_CONTEXT_H
#define CATENA_CONTEXT_H

#include <catena/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { CTN_MODE_DEFAULT = 0, CTN_MODE_PLANNED, CTN_MODE_EAGER } ctn_mode;
/* f32: strict f32 arithmetic. bf16, f16: activations and the operands of matrix products and
 * convolutions have this 16-bit type; variables, gradients, statistics, losses and everything
 * that the user reads stay f32. f64: modules make their variables in f64, and ctn_step_input
 * returns f32 fields as f64; other tensors keep the type that they were made with. */
typedef enum {
    CTN_PRECISION_F32 = 0,
    CTN_PRECISION_BF16,
    CTN_PRECISION_F16,
    CTN_PRECISION_F64
} ctn_precision;

typedef struct {
    size_t struct_size;
    int threads;             /* 0: from CATENA_THREADS, else OMP_NUM_THREADS, else physical cores */
    uint64_t seed;           /* 0: from CATENA_SEED */
    ctn_mode mode;           /* 0: planned, or eager with CATENA_EAGER=1 */
    ctn_precision precision; /* EUNSUPPORTED if the engine has no kernels for it */
    int slow_precision;      /* 1: allow f16 on a CPU that runs it with slow kernels; 0: refuse */
    int no_fuse;             /* 1: do not fuse ops, as with CATENA_FUSE=0 */
    int64_t max_plans;       /* maximum number of cached plans; 0: from CATENA_PLANS */
    int64_t max_plan_bytes;  /* maximum size of cached plans; 0: from CATENA_PLAN_MB */
    /* Numbers of the logical CPUs that this context uses. Contexts without a CPU in common run
     * in parallel. NULL: takes turns with all other contexts (rule 17). */
    const int *cores;
    int ncores;
    /* Number of latest kernel runs to keep for ctn_context_write_trace; 0: none. */
    int64_t spans;
} ctn_context_opt;

/* Make a context; opt may be NULL. Local. Result: owned, ctn_context_free. Errors: ENOMEM,
 * EENGINE, EARG, EUNSUPPORTED (precision). */
CTN_API CTN_MUST_CHECK ctn_status ctn_context_new(ctn_context **ctx, const ctn_context_opt *opt);
/* Free a context and its plans. Free its variables, modules and optimizers first. NULL is
 * allowed. Local. */
CTN_API void ctn_context_free(ctn_context *ctx);
/* Number of compute threads. Local. */
CTN_API int ctn_context_threads(const ctn_context *ctx);
/* The type of modules' variables: f64 under the policy f64, otherwise f32. Local. */
CTN_API ctn_dtype ctn_context_float_type(const ctn_context *ctx);

/* The state of a context that influences results, apart from variables: the seed, and a counter
 * that grows by 1 when an outermost scope ends. Random ops use both. Local. Errors of set_state:
 * ESTATE (a scope is open). */
typedef struct {
    uint64_t seed, step;
} ctn_context_state;
CTN_API void ctn_context_get_state(const ctn_context *ctx, ctn_context_state *out);
CTN_API CTN_MUST_CHECK ctn_status ctn_context_set_state(ctn_context *ctx,
                                                        const ctn_context_state *in);

/* Which samples of a step the next scopes compute, if other ranks or other batches whose gradients
 * are added up compute the rest: row i of `rows` rows is row first + i * every of `total`, and
 * `part` is the number of this batch among those of the step, from 0. Random numbers then depend on
 * the place of a sample in the step: results with one or more lines for each row draw the same
 * numbers as if one rank computed all samples at once. Other results draw numbers that no other
 * part draws. rows 0: no result belongs to samples. */
typedef struct {
    uint64_t part;
    int64_t rows, first, every, total;
} ctn_share;
/* Applies until the next call. The trainer and evaluations set it themselves; ctn_dist_optim makes
 * `part` the rank. Step counters of all parts must be the same (ctn_context_set_state). NULL: all
 * samples. Local. Errors: ESTATE (a scope is open), EARG (rows outside of total). */
CTN_API CTN_MUST_CHECK ctn_status ctn_context_set_share(ctn_context *ctx, const ctn_share *share);

/* Open and close a scope. Scopes nest. Tensors live until the outermost scope ends, but those
 * of an inner scope cannot be used after the inner scope has ended. The end of the outermost
 * scope runs effects that are still pending (rule 1). Local. Errors: ESTATE, any error of the
 * flush; ctn_scope_end closes the scope even if it fails. */
CTN_API ctn_status ctn_scope_begin(ctn_context *ctx);
CTN_API ctn_status ctn_scope_end(ctn_context *ctx);
/* Close an inner scope and let one tensor escape to the enclosing scope. Local. Result: t. */
CTN_API ctn_tensor *ctn_scope_return(ctn_context *ctx, ctn_tensor *t);
/* The same with n tensors, each of which may be NULL. Closes the scope even if it fails; then no
 * tensor escapes. Local. Errors: EARG, ESTATE (no inner scope is open), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_scope_return_n(ctn_context *ctx, int n, ctn_tensor *const *t);

/* set_training chooses training or evaluation behaviour of ops such as dropout (default:
 * training). set_grad chooses whether ops that are recorded from now on can be differentiated
 * (default: yes). Both return the previous setting. Local. */
CTN_API int ctn_context_set_training(ctn_context *ctx, int on);
CTN_API int ctn_context_set_grad(ctn_context *ctx, int on);
/* 1 in training, 0 in evaluation. Local. */
CTN_API int ctn_context_training(const ctn_context *ctx);

/* The caller's memory as a row-major tensor, without a copy. The memory is borrowed and read
 * when the plan runs, so it must stay unchanged until the outermost scope ends (rule 7). A
 * dimension may be 0. Local. Result: scope. */
CTN_API ctn_tensor *ctn_input_at(const char *at, ctn_context *ctx, const void *data,
                                 ctn_dtype dtype, int ndim, const int64_t *dims);
#define ctn_input(...) ctn_input_at(CTN_HERE, __VA_ARGS__)
/* The same with strides in elements, for column-major arrays and slices of larger arrays.
 * Local. Result: scope. */
CTN_API ctn_tensor *ctn_input_strided_at(const char *at, ctn_context *ctx, const void *data,
                                         ctn_dtype dtype, int ndim, const int64_t *dims,
                                         const int64_t *strides);
#define ctn_input_strided(...) ctn_input_strided_at(CTN_HERE, __VA_ARGS__)
/* One f32 number as a tensor of shape (). The value may change from step to step without a new
 * plan. Local. Result: scope. */
CTN_API ctn_tensor *ctn_number_at(const char *at, ctn_context *ctx, double value);
#define ctn_number(...) ctn_number_at(CTN_HERE, __VA_ARGS__)

/* Keep the value of a tensor, so that it can be read after the next ctn_optim_step of this
 * scope (rule 3). The loss given to ctn_backward is always kept. Local. Result: t. */
CTN_API ctn_tensor *ctn_keep(ctn_tensor *t);
/* The same, and also keep what the gradient of t needs, so that ctn_backward can go through t
 * after the step, for example through the fake batch of a GAN. Local. Result: t. */
CTN_API ctn_tensor *ctn_keep_graph(ctn_tensor *t);

/* A value carried from one scope to the next (rule 6), for recurrent state and truncated
 * backpropagation. */
typedef struct ctn_retained ctn_retained;
/* Save the value of t, detached, when the outermost scope ends. If *r is NULL, a new object is
 * made. Local. Result: *r, owned, ctn_retained_free. Errors: ENOMEM, EARG, ESTATE, EGONE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_retain(ctn_retained **r, ctn_tensor *t);
/* The last value that a finished scope retained, as a leaf of this scope. Local. Result: scope.
 * Errors: ESTATE (r is NULL, or no scope that retained a value has ended yet). */
CTN_API ctn_tensor *ctn_retained_value_at(const char *at, ctn_retained *r);
#define ctn_retained_value(r) ctn_retained_value_at(CTN_HERE, r)
/* Free a retained value. NULL is allowed. Local. */
CTN_API void ctn_retained_free(ctn_retained *r);

/* Gradient checkpointing. Activations of the ops recorded between the two calls are not kept
 * for the backward pass but recomputed there, which saves memory and costs time. Pairs of calls
 * may nest, and then only the outermost pair counts; a pair left open ends with its scope. The
 * results are bit-identical to those without recomputation, even with random ops and batch
 * statistics. Local. Errors: ESTATE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_recompute_begin(ctn_context *ctx);
CTN_API CTN_MUST_CHECK ctn_status ctn_recompute_end(ctn_context *ctx);

/* t without its history: no gradient flows through it. Local. Result: scope. */
CTN_API ctn_tensor *ctn_detach_at(const char *at, ctn_tensor *t);
#define ctn_detach(t) ctn_detach_at(CTN_HERE, t)

/* Gradients of sum(y) with respect to each of the n tensors xs, as tensors that can be
 * differentiated again (rule 4). gxs[i] has the shape of xs[i]. Local. Result: scope. Errors: EARG,
 * ESTATE, EGONE, EGRAD (one of xs is neither a trainable parameter, nor made by ctn_with_grad, nor
 * computed from these). If y does not depend on one of xs, the next flush fails with EGRAD. */
CTN_API CTN_MUST_CHECK ctn_status ctn_grad_at(const char *at, ctn_tensor *y, int n,
                                              ctn_tensor *const *xs, ctn_tensor **gxs);
#define ctn_grad(...) ctn_grad_at(CTN_HERE, __VA_ARGS__)
/* The value of t, detached, as a leaf that ctn_grad can differentiate with respect to. Local.
 * Result: scope. */
CTN_API ctn_tensor *ctn_with_grad(ctn_tensor *t);

/* Variables have a name and are saved in checkpoints. There are two kinds: parameters, which an
 * optimizer trains, and state, which ctn_assign writes. They are usually made by modules
 * (catena/nn.h). */
typedef enum { CTN_PARAM = 1, CTN_STATE = 2 } ctn_var_kind;
/* Make a variable filled with zeros. Local. Result: *v, owned, ctn_var_free. Errors: EARG,
 * ESHAPE, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_new(ctn_var **v, ctn_context *ctx, const char *name,
                                              ctn_var_kind kind, ctn_dtype dtype, int ndim,
                                              const int64_t *dims);
/* Free a variable. Call it between scopes. NULL is allowed. Local. */
CTN_API void ctn_var_free(ctn_var *v);
/* Properties of a variable. ctn_var_set_trainable(v, 0) freezes a parameter; states are never
 * trainable. Local. Result: borrowed from v. */
CTN_API const char *ctn_var_name(const ctn_var *v);
CTN_API const ctn_desc *ctn_var_desc(const ctn_var *v); /* always row-major */
CTN_API ctn_var_kind ctn_var_kind_of(const ctn_var *v);
CTN_API void ctn_var_set_trainable(ctn_var *v, int on);
CTN_API int ctn_var_trainable(const ctn_var *v);
CTN_API ctn_context *ctn_var_context(const ctn_var *v);
/* Copy the values out or in, row-major, whatever their layout in memory is. bytes must be the
 * exact size. Pending effects run first. Local. Errors: EARG, any error of the flush. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_get(ctn_var *v, void *dst, size_t bytes);
CTN_API CTN_MUST_CHECK ctn_status ctn_var_set(ctn_var *v, const void *src, size_t bytes);
/* Copy the accumulated gradient out, row-major. Pending effects run first. Local. Errors: EARG,
 * ESTATE (no ctn_backward since the last step), any error of the flush. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_grad(ctn_var *v, void *dst, size_t bytes);
/* The variable as a tensor of the current scope, with the value it has after all writes
 * recorded so far (rule 2). Local. Result: scope. */
CTN_API ctn_tensor *ctn_use_at(const char *at, ctn_var *v);
#define ctn_use(v) ctn_use_at(CTN_HERE, v)
/* Record a write of t into v, which runs at the next flush (rule 1). Local. Errors: ESHAPE (the
 * shape or the type differs), EARG, ESTATE, EGONE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_assign_at(const char *at, ctn_var *v, ctn_tensor *t);
#define ctn_assign(v, t) ctn_assign_at(CTN_HERE, v, t)

/* A list of variables with their names, as ctn_params() returns it. The arrays are borrowed. A
 * variable with several names is listed once for each name. */
typedef struct {
    int n;
    ctn_var *const *var;
    const char *const *name; /* NULL: each variable's own name */
} ctn_vars;

/* Called once for each array, row-major, of the state of a module, an optimizer or another
 * object. The function may read or overwrite data, which is valid until the function returns. */
typedef ctn_status (*ctn_state_fn)(void *user, const char *name, ctn_dtype dtype, int ndim,
                                   const int64_t *dims, void *data);

/* Run now what was recorded, without waiting for a step or a read. Local. Errors: ESTATE (no
 * scope is open), any error of the run. */
CTN_API CTN_MUST_CHECK ctn_status ctn_flush(ctn_context *ctx);

/* Counters of the plan cache since the context was made. Local. */
typedef struct {
    uint64_t hits, misses, evictions; /* lookups with and without success; plans removed */
    uint64_t runs;                    /* number of plan runs */
    uint64_t recorded_ops;
    uint64_t underflow_runs; /* runs in which a thread flushed a denormal result to zero */
    int64_t plans;           /* plans in the cache now */
    int64_t plan_bytes;      /* memory of these plans, without the arena (see below) */
    /* Memory of the arena, which holds the intermediate results of whichever plan runs and is as
     * large as the largest plan needs, and of copies of weights in another type or layout. */
    int64_t arena_bytes;
} ctn_plan_stats;
CTN_API void ctn_context_get_stats(const ctn_context *ctx, ctn_plan_stats *out);

/* The last plan that ran, as text: nodes, kernels, layouts, bytes, and times if profiling is
 * on. Returns the full length, as snprintf does. Local. */
CTN_API int ctn_context_plan_text(ctn_context *ctx, char *buf, size_t n);

/* The decision table as text: which kernel is used where several can do the work (see
 * catena/tune.h). Saved states contain this table. Returns the full length, as snprintf does;
 * < 0 on error. Local. */
CTN_API int ctn_context_decisions_text(ctn_context *ctx, char *buf, size_t n);

/* One kernel of a plan, as ctn_context_visit_plan passes it to fn. Pointers are valid only during
 * the call. */
enum {
    CTN_LAYOUT_ROW_MAJOR = 1,
    CTN_LAYOUT_CHANNELS_LAST = 2,
    CTN_LAYOUT_ENGINE = 4, /* blocked layout that only the engine knows */
    CTN_LAYOUT_STRIDED = 8 /* views and inputs with strides */
};
typedef struct {
    size_t struct_size;
    int index;                    /* number in ctn_context_plan_text */
    const char *op, *kernel, *at; /* at: source line of the user's program */
    const char *slow;             /* why it runs on a slow reference kernel; NULL: it does not */
    int nin, nout;
    const ctn_desc *in, *out;
    /* CTN_LAYOUT_ bits of the operands with two or more dimensions; 0: there are none. */
    int layouts;
    int reordered; /* number of inputs that had to be reordered */
    /* Bytes read and written, each operand counted once. For an optimizer step these are the
     * parameters and gradients; the plan does not know the size of the optimizer state. */
    int64_t bytes;
    int64_t flops; /* operations of matrix products and convolutions, 0 for other ops */
    uint64_t ns;   /* shortest time of all runs; 0: not profiled */
    /* Nodes that exchange gradients or values with other ranks (kernel "comm"): the elements of
     * the parameters that are ready, or up to which a wait goes (begin). 0 for others. */
    int64_t begin, end;
    int gradient; /* 1: a kernel of the backward pass */
} ctn_plan_node;
typedef ctn_status (*ctn_plan_fn)(void *user, const ctn_plan_node *node);
/* Call fn for each kernel of the last plan that ran, in the order in which the kernels run; does
 * nothing if no plan has run yet. Stops at the first call that does not return CTN_OK. Local.
 * Errors: EARG, what fn returns. */
CTN_API CTN_MUST_CHECK ctn_status ctn_context_visit_plan(ctn_context *ctx, ctn_plan_fn fn,
                                                         void *user);

/* Write the recorded kernel runs (see ctn_context_opt.spans) and counters as a Chrome trace,
 * for chrome://tracing or Perfetto. Local. Errors: EIO. */
CTN_API CTN_MUST_CHECK ctn_status ctn_context_write_trace(ctn_context *ctx, const char *path);
/* Measure the time of each kernel in every run (default: off). Local. */
CTN_API void ctn_context_set_profile(ctn_context *ctx, int on);

#ifdef __cplusplus
}
#endif
#endif
