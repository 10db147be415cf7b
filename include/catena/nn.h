/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules: a tree that owns parameters and states and gives them names ("fc1.weight", as in
 * PyTorch), and a forward function. A user's model is a struct of its own with modules in it;
 * calling a module opens an inner scope from which only the result escapes.
 */
#ifndef CATENA_NN_H
#define CATENA_NN_H

#include <catena/context.h>
#include <catena/ops_image.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_module ctn_module;

/* ---- initial values -------------------------------------------------------------------------- */

/* Fans are taken from a shape (O,I,...): in = I*..., out = O*... . */
typedef enum {
    CTN_INIT_CONSTANT = 0, /* value */
    CTN_INIT_NORMAL,       /* mean, std */
    CTN_INIT_UNIFORM,      /* low to high */
    CTN_INIT_LECUN_NORMAL, /* variance 1 / in */
    CTN_INIT_LECUN_UNIFORM,
    CTN_INIT_GLOROT_NORMAL, /* variance 2 / (in + out) */
    CTN_INIT_GLOROT_UNIFORM,
    CTN_INIT_HE_NORMAL, /* variance 2 / in */
    CTN_INIT_HE_UNIFORM,
    CTN_INIT_ORTHOGONAL, /* of (O, I*...): rows or columns, whichever are fewer, orthonormal */
    CTN_INIT_IDENTITY    /* ones on the diagonal of a matrix */
} ctn_init_kind;

/* Made with CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL). Zero in a field means its default. */
typedef struct {
    size_t struct_size;
    ctn_init_kind kind;
    double value;
    double mean, std;        /* std 0: 1 */
    double low, high;        /* both 0: 0 to 1 */
    double gain;             /* of all kinds from LeCun on: multiplies the values; 0: 1 */
    int64_t fan_in, fan_out; /* 0: from the shape */
} ctn_init;

/* Fill a variable (init NULL: zeros). Values are a pure function of the context's seed and of which
 * variable of the context it is, counted by creation. Local. Errors: EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_init(ctn_var *v, const ctn_init *init);

/* ---- the tree -------------------------------------------------------------------------------- */

/* What a module computes: x and the result are tensors of the open scope; NULL reports an error. */
typedef ctn_tensor *(*ctn_forward_fn)(void *self, ctn_module *m, ctn_tensor *x);

/* Make a module. forward NULL: one that is never called itself. self goes over to the module, which
 * ends with release(self) (NULL: nothing), and stays the caller's if this fails. Local. Result: *m,
 * owned, ctn_module_free. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_new(ctn_module **m, ctn_context *ctx,
                                                 ctn_forward_fn forward, void *self,
                                                 void (*release)(void *self));
/* Free it with its children, parameters and states; it leaves its parent. Between scopes, after the
 * optimizer. NULL is fine. */
CTN_API void ctn_module_free(ctn_module *m);

/* Put a child under a name into m, which owns it from now on; it stays the caller's if this fails.
 * Names are unique in a module, not empty and without dots. Local. Errors: EARG, ESTATE (it has a
 * parent already), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_add(ctn_module *m, const char *name,
                                                 ctn_module *child);
/* Children, in the order they were added; NULL when there is no child i. Local. Result: borrowed.
 * */
CTN_API int ctn_module_children(const ctn_module *m);
CTN_API ctn_module *ctn_module_child(const ctn_module *m, int i);
CTN_API ctn_context *ctn_module_context(const ctn_module *m);

/* Make a parameter (trained) or state (written by ctn_assign) of m. Local. Result: *v (v may be
 * NULL), borrowed from m. Errors: EARG, ESHAPE, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_param(ctn_var **v, ctn_module *m, const char *name,
                                                   ctn_dtype dtype, int ndim, const int64_t *dims,
                                                   const ctn_init *init);
CTN_API CTN_MUST_CHECK ctn_status ctn_module_state(ctn_var **v, ctn_module *m, const char *name,
                                                   ctn_dtype dtype, int ndim, const int64_t *dims,
                                                   const ctn_init *init);
/* Another name for a variable of another module, which must outlive m: a tied parameter. It is one
 * variable: one gradient, one update, saved once. Local. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_tie(ctn_module *m, const char *name, ctn_var *v);

/* m's forward function in an inner scope. Result: scope. Errors: EARG, ESTATE, forward's own; the
 * inner scope is closed in any case. */
CTN_API ctn_tensor *ctn_call_at(const char *at, ctn_module *m, ctn_tensor *x);
#define ctn_call(m, x) ctn_call_at(CTN_HERE, m, x)
/* Keep nothing inside calls of m for their gradients, compute it again there: memory for time
 * (ctn_recompute_begin). For blocks of a deep network: ResNet-50 then needs about half its memory.
 * Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_set_recompute(ctn_module *m, int on);
/* Inside forward: the line of the call, to pass on to ops. Local. Result: borrowed from the caller.
 * */
CTN_API const char *ctn_module_at(const ctn_module *m);

/* All parameters below m with their names, a tied one under each. Local. Result: borrowed until the
 * tree changes; n is 0 with ENOMEM recorded on failure. */
CTN_API ctn_vars ctn_params(ctn_module *m);
/* The parameter or state of a dotted name below m. Local. Result: borrowed. NULL with ENOTFOUND
 * recorded when there is none. */
CTN_API ctn_var *ctn_module_find(ctn_module *m, const char *name);
/* Every parameter and state below m, each once under its first name. Between scopes only. Local.
 * Errors: ESTATE, ENOMEM, fn's own. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_visit(ctn_module *m, ctn_state_fn fn, void *user);

/* ---- ready-made modules ---------------------------------------------------------------------- */

/* One module after the other, named "0", "1", .... They go over to it, and stay the caller's if
 * this fails. Local. Result: *m, owned. Errors: as ctn_module_add. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sequential_new(ctn_module **m, ctn_context *ctx, int n,
                                                     ctn_module *const *modules);
/* The same without a forward function: a list that gives names and is not called itself. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_list_new(ctn_module **m, ctn_context *ctx, int n,
                                                      ctn_module *const *modules);

typedef struct {
    size_t struct_size;
    int no_bias;
    const ctn_init *weight, *bias; /* NULL: uniform, -1/sqrt(in) to 1/sqrt(in) */
} ctn_linear_opt;
/* y = x weight^T + bias. x (...,in), weight (out,in), bias (out) -> (...,out). Local. Result: *m,
 * owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_linear_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                                 int64_t out, const ctn_linear_opt *opt);

/* Zero in a field means its default, as for ctn_conv. Weights and biases NULL: uniform, -b to b
 * with b = 1/sqrt(weight's second dimension times the kernel). */
typedef struct {
    size_t struct_size;
    int64_t stride[CTN_MAX_SPATIAL], pad[CTN_MAX_SPATIAL], pad_end[CTN_MAX_SPATIAL];
    int64_t dilation[CTN_MAX_SPATIAL];
    int64_t groups;
    int64_t out_pad[CTN_MAX_SPATIAL]; /* transposed only */
    int no_bias;
    const ctn_init *weight, *bias;
} ctn_conv_module_opt;
/* Convolution over as many spatial dimensions as the kernel has: ctn_conv_new(&m, ctx, 3, 64,
 * CTN_SHAPE(7, 7), opt). weight (out,in/groups,k...), bias (out). x (N,in,...) -> (N,out,...).
 * Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_conv_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                               int64_t out, int spatial, const int64_t *kernel,
                                               const ctn_conv_module_opt *opt);
/* Its transpose. weight (in,out/groups,k...), bias (out). */
CTN_API CTN_MUST_CHECK ctn_status ctn_conv_transpose_new(ctn_module **m, ctn_context *ctx,
                                                         int64_t in, int64_t out, int spatial,
                                                         const int64_t *kernel,
                                                         const ctn_conv_module_opt *opt);

typedef struct {
    size_t struct_size;
    double eps, momentum;          /* 0: 1e-5, 0.1 */
    int no_affine;                 /* without weight and bias */
    const ctn_init *weight, *bias; /* NULL: ones, zeros */
} ctn_batch_norm_module_opt;
/* Batch normalisation of x (N,channels,...). Parameters weight, bias; states running_mean,
 * running_var (channels) and num_batches_tracked, i64, which counts calls in training and on which
 * nothing depends. Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_batch_norm_new(ctn_module **m, ctn_context *ctx,
                                                     int64_t channels,
                                                     const ctn_batch_norm_module_opt *opt);

typedef struct {
    size_t struct_size;
    double eps;             /* 0: 1e-5 */
    int no_affine, no_bias; /* without weight and bias; without bias */
} ctn_norm_opt;
/* Group normalisation of x (N,channels,...). weight, bias (channels). Local. Result: *m, owned.
 * Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_group_norm_new(ctn_module **m, ctn_context *ctx,
                                                     int64_t groups, int64_t channels,
                                                     const ctn_norm_opt *opt);
/* Layer normalisation over the last dimensions, which are dims; weight and bias have this shape:
 * ctn_layer_norm_new(&m, ctx, CTN_SHAPE(128), NULL). Local. Result: *m, owned. Errors: EARG,
 * ESHAPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_layer_norm_new(ctn_module **m, ctn_context *ctx, int ndim,
                                                     const int64_t *dims, const ctn_norm_opt *opt);

/* Rows of weight (rows,width), initially normal with deviation 1 (weight NULL). x (...) i64 or i32
 * -> (...,width). Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_embedding_new(ctn_module **m, ctn_context *ctx, int64_t rows,
                                                    int64_t width, const ctn_init *weight);

/* Dropout, pooling, and (N,...) -> (N,rest), for sequential models. Local. Result: *m, owned.
 * Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dropout_new(ctn_module **m, ctn_context *ctx, double rate);
CTN_API CTN_MUST_CHECK ctn_status ctn_max_pool_new(ctn_module **m, ctn_context *ctx,
                                                   const ctn_pool_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_avg_pool_new(ctn_module **m, ctn_context *ctx,
                                                   const ctn_pool_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_flatten_new(ctn_module **m, ctn_context *ctx);

/* An op of one input as a module: ctn_activation_new(&m, ctx, ctn_relu_at). Local. Result: *m,
 * owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_activation_new(ctn_module **m, ctn_context *ctx,
                                                     ctn_tensor *(*op)(const char *at,
                                                                       ctn_tensor *x));

#ifdef __cplusplus
}
#endif
#endif
