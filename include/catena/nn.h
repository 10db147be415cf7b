/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules, the counterpart of torch.nn.Module. Modules form a tree. Each one owns parameters and
 * states (PyTorch: buffers), gives them names ("fc1.weight", as in PyTorch), and has a forward
 * function. Your own model is usually a struct with pointers to the modules in it. Calling a
 * module opens an inner scope from which only the results escape.
 */
#ifndef CATENA_NN_H
#define CATENA_NN_H

#include <catena/context.h>
#include <catena/ops_image.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_module ctn_module;

/* ---- initial values ------------------------------------------------------------------------- */

/* For a shape (O,I,k...), `in` (fan-in) is I times the product of k..., and `out` (fan-out) is O
 * times that product. */
typedef enum {
    CTN_INIT_CONSTANT = 0, /* all elements are value */
    CTN_INIT_NORMAL,       /* normal with mean and std */
    CTN_INIT_UNIFORM,      /* uniform from low to high */
    CTN_INIT_LECUN_NORMAL, /* variance 1 / in */
    CTN_INIT_LECUN_UNIFORM,
    CTN_INIT_GLOROT_NORMAL, /* variance 2 / (in + out) */
    CTN_INIT_GLOROT_UNIFORM,
    CTN_INIT_HE_NORMAL, /* variance 2 / in */
    CTN_INIT_HE_UNIFORM,
    /* Seen as a matrix (O, I*k...), the rows are orthonormal, or the columns if there are fewer
     * of them. */
    CTN_INIT_ORTHOGONAL,
    CTN_INIT_IDENTITY, /* ones on the diagonal of a matrix */
    /* The kernel of linear interpolation, as a weight (C,C,k...) from each channel to itself, or
     * (C,1,k...) for C groups. For a transposed convolution with a stride of (k + 1) / 2, rounded
     * down, which enlarges images. */
    CTN_INIT_UPSAMPLE,
    CTN_INIT_DOWNSAMPLE /* the same kernel with a sum of 1, for a convolution that reduces images */
} ctn_init_kind;

/* Initial values of a variable: CTN_OPT(ctn_init, .kind = CTN_INIT_HE_NORMAL). Zero in a field
 * means its default. */
typedef struct {
    size_t struct_size;
    ctn_init_kind kind;
    double value;
    double mean, std;        /* std 0: 1 */
    double low, high;        /* both 0: 0 to 1 */
    double gain;             /* factor for all kinds from LECUN_NORMAL on; 0: 1 */
    int64_t fan_in, fan_out; /* 0: from the shape */
} ctn_init;

/* Fill a variable; init NULL: zeros. The values depend only on the context's seed and on how
 * many variables the context had made before this one. Local. Errors: EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_var_init(ctn_var *v, const ctn_init *init);

/* ---- the tree ------------------------------------------------------------------------------- */

/* The forward function. x and the result are tensors of the open scope. Return NULL after an
 * error. */
typedef ctn_tensor *(*ctn_forward_fn)(void *self, ctn_module *m, ctn_tensor *x);

/* A short list of tensors: the inputs or the results of a module. n is 0 after an error. In a list
 * that the library passes to a function or returns, the pointers after the first n are NULL. */
#define CTN_MAX_TENSORS 8
typedef struct {
    int n;
    ctn_tensor *t[CTN_MAX_TENSORS];
} ctn_tensors;
/* A list of 1 to CTN_MAX_TENSORS tensors: CTN_TENSORS(x, mask). C only. */
#define CTN_TENSORS(...)                                                                \
    ((ctn_tensors){(int)(sizeof((ctn_tensor *[]){__VA_ARGS__}) / sizeof(ctn_tensor *)), \
                   {__VA_ARGS__}})
/* The forward function of a module with several inputs or results. An input other than the first
 * may be NULL, which means that the caller left it out. Return the results, none of them NULL, for
 * example `return CTN_TENSORS(y, state);`, or an empty list after an error. A list that contains
 * NULL because an op failed is such an error too. */
typedef ctn_tensors (*ctn_forward_multi_fn)(void *self, ctn_module *m, ctn_tensors x);

/* Make a module. forward may be NULL for a module that is never called itself. self is your own
 * data, passed to forward. On success the module owns self and frees it with release(self)
 * (release NULL: nothing to free); on failure the caller keeps ownership. Local. Result: *m, owned,
 * ctn_module_free. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_new(ctn_module **m, ctn_context *ctx,
                                                 ctn_forward_fn forward, void *self,
                                                 void (*release)(void *self));
/* The same for a module with several inputs or results. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_new_multi(ctn_module **m, ctn_context *ctx,
                                                       ctn_forward_multi_fn forward, void *self,
                                                       void (*release)(void *self));
/* Free a module with its children, parameters and states, and remove it from its parent. Call
 * it between scopes, after freeing the optimizer of its parameters. NULL is allowed. Local. */
CTN_API void ctn_module_free(ctn_module *m);

/* Add a child to m under a name. On success m owns the child; on failure the caller keeps
 * ownership. Names are unique within a module, not empty and without dots. Local. Errors: EARG,
 * ESTATE (it already has a parent), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_add(ctn_module *m, const char *name,
                                                 ctn_module *child);
/* The number of children, and child i in the order they were added (NULL if there is none).
 * Local. Result: borrowed from m. */
CTN_API int ctn_module_children(const ctn_module *m);
CTN_API ctn_module *ctn_module_child(const ctn_module *m, int i);
/* The context that m was made in. Local. Result: borrowed from m. */
CTN_API ctn_context *ctn_module_context(const ctn_module *m);

/* What a network of the zoo predicts for the tokens of a text. */
typedef enum {
    CTN_PREDICTS_OTHER = 0, /* something else; also for modules that are not of the zoo */
    CTN_PREDICTS_NEXT,      /* the token that follows each token: gpt, llama */
    CTN_PREDICTS_MASKED     /* the tokens that ctn_dataset_mask has hidden: bert */
} ctn_predicts;
CTN_API ctn_predicts ctn_module_predicts(const ctn_module *m); /* Local. */
/* The tokens that end a text, of a network from ctn_zoo_open whose files name them. Writes at most
 * `room` to ids and returns their number; 0: unknown. Local. */
CTN_API int ctn_module_ends(const ctn_module *m, int32_t *ids, int room);

/* Make a parameter (trained by an optimizer) or a state (written by ctn_assign) of m. init NULL:
 * zeros. v may be NULL. Local. Result: *v, borrowed from m. Errors: EARG, ESHAPE, EDTYPE,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_param(ctn_var **v, ctn_module *m, const char *name,
                                                   ctn_dtype dtype, int ndim, const int64_t *dims,
                                                   const ctn_init *init);
CTN_API CTN_MUST_CHECK ctn_status ctn_module_state(ctn_var **v, ctn_module *m, const char *name,
                                                   ctn_dtype dtype, int ndim, const int64_t *dims,
                                                   const ctn_init *init);
/* Tie a parameter: give a variable of another module, which must outlive m, another name in m.
 * It stays one variable with one gradient and one update, and is saved once. Local. Errors:
 * EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_tie(ctn_module *m, const char *name, ctn_var *v);

/* Call m's forward function in an inner scope, which is closed even if forward fails. A module
 * with several inputs gets a list of one, and its first result is returned. Local. Result: scope.
 * Errors: EARG, ESTATE, those of forward. */
CTN_API ctn_tensor *ctn_call_at(const char *at, ctn_module *m, ctn_tensor *x);
#define ctn_call(m, x) ctn_call_at(CTN_HERE, m, x)
/* The same with 1 to CTN_MAX_TENSORS inputs: ctn_tensors y = ctn_call_multi(m, x, mask). All
 * inputs but the first may be NULL. While an error is recorded, NULL stands for the result of the
 * op that failed, and the call fails too. A module with one input must get exactly one. To pass a
 * list, call ctn_call_multi_at(CTN_HERE, m, list). Local. Result: scope; n is 0 after an error.
 * Errors: EARG, ESTATE, those of forward. */
CTN_API ctn_tensors ctn_call_multi_at(const char *at, ctn_module *m, ctn_tensors x);
#define ctn_call_multi(m, ...) ctn_call_multi_at(CTN_HERE, m, CTN_TENSORS(__VA_ARGS__))
/* Gradient checkpointing for calls of m (see ctn_recompute_begin): activations inside m are
 * recomputed in the backward pass instead of kept. Use it for the blocks of a deep network; it
 * roughly halves the memory of ResNet-50. A module that is never called itself, such as a list,
 * sets it for its children. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_set_recompute(ctn_module *m, int on);
/* The source line of the current call of m, for forward functions to pass on to ops. Local.
 * Result: borrowed from the caller. */
CTN_API const char *ctn_module_source(const ctn_module *m);

/* All parameters of m and its descendants with their names; a tied parameter is listed under each
 * of its names. Local. Result: borrowed until the tree changes; on failure n is 0. Errors: EARG,
 * ENOMEM. */
CTN_API ctn_vars ctn_params(ctn_module *m);
/* The parameter or state of m or its descendants with this dotted name ("fc1.weight"). Local.
 * Result: borrowed from m. Errors: ENOTFOUND, EARG. */
CTN_API ctn_var *ctn_module_find(ctn_module *m, const char *name);
/* Call fn for every parameter and state of m and its descendants, once each, under its first
 * name. Call it between scopes. Local. Errors: ESTATE, ENOMEM, those of fn. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_visit(ctn_module *m, ctn_state_fn fn, void *user);

/* Call fn for m and all of its descendants, parents before their children. Names are dotted as in
 * ctn_params; that of m is "". fn may add modules, but must not free any. Stops at the first call
 * that does not return CTN_OK. Local. Errors: EARG, ENOMEM, what fn returns. */
typedef ctn_status (*ctn_module_fn)(void *user, const char *name, ctn_module *m);
CTN_API CTN_MUST_CHECK ctn_status ctn_module_visit_modules(ctn_module *m, ctn_module_fn fn,
                                                           void *user);

/* ---- frozen parameters ---------------------------------------------------------------------- */

/* Freeze (on 0) or train (on 1) the parameters of m and its descendants that a pattern stands for:
 * a shell pattern of their names ("*.bias"), or of the names of modules that contain them ("layer1"
 * and "layer?" stand for everything below); pattern NULL: all. A frozen parameter costs no gradient
 * and, if it is frozen before the optimizer is made, no memory for gradients and state; the
 * backward pass ends where no trained parameter comes before. To train only some parameters, freeze
 * all and then train these. On several ranks, do the same on all of them. Returns the number of
 * parameters, < 0 on error. Local. Errors: ENOTFOUND (there is none; the message says which names
 * there are), EARG, ENOMEM. */
CTN_API int ctn_module_set_trainable(ctn_module *m, const char *pattern, int on);
/* Let batch normalisations of m and its descendants use their running statistics in training too,
 * and not change them (on 1), or normalise with the statistics of the batch again (on 0). pattern
 * is that of their names, as in ctn_module_set_trainable; pattern NULL: those whose weight and bias
 * are frozen, or all of them if on is 0. A frozen layer with frozen statistics computes the same as
 * in evaluation. Returns the number of batch normalisations, which may be 0, < 0 on error. Local.
 * Errors: EARG, ENOMEM. */
CTN_API int ctn_module_freeze_statistics(ctn_module *m, const char *pattern, int on);

/* ---- copies --------------------------------------------------------------------------------- */

/* Copy m with all of its descendants, like copy.deepcopy in Python, for target networks and
 * averaged weights. The copy has variables of its own with the same names, values and trainable
 * flags. Names that share a variable in m share one in the copy; a variable that m is tied to but
 * does not contain gets a copy too. Settings such as those of ctn_module_set_recompute and
 * ctn_dist_sync_batch_norm are copied. Each module of the tree must be one of the library, have
 * NULL as its self, or have a copy function. Call it between scopes. Local. Result: *copy, owned,
 * ctn_module_free. Errors: EUNSUPPORTED (a module has no copy function), EARG and ESHAPE (a copy
 * function made something else), ESTATE, ENOMEM, those of copy functions. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_copy(ctn_module **copy, ctn_module *m);
/* A copy of m in another context that reads the same weights, for threads that evaluate one
 * network, each with a context of its own. The weights, and the copies that kernels prefer of them,
 * are in memory once. From then on nobody can write them: ctn_var_set, assignments (as by batch
 * normalisation in training mode), optimizers and loading of weights are ESTATE for both modules. m
 * may be freed first. Call it while no thread uses m. Modules need what ctn_module_copy says.
 * Local. Result: *copy, owned, ctn_module_free. Errors: those of ctn_module_copy; EARG (ctx is that
 * of m), ESTATE (a parameter belongs to an optimizer). */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_share(ctn_module **copy, ctn_context *ctx,
                                                   ctn_module *m);
/* A function that makes another module with the settings of m, in the same context; self is that
 * of m. It may leave out children and variables that are only used through ctn_module_child and
 * ctn_module_find: ctn_module_copy adds what is missing, and then copies all values. If it fails,
 * it frees what it has made. */
typedef ctn_status (*ctn_copy_fn)(void *self, ctn_module *m, ctn_module **copy);
/* Set that function; fn NULL: none. The copy gets the same function. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_set_copy(ctn_module *m, ctn_copy_fn fn);

/* ---- ready-made modules --------------------------------------------------------------------- */

/* Modules that are called one after the other, named "0", "1", ... On success *m owns them; on
 * failure the caller keeps ownership. Local. Result: *m, owned. Errors: as ctn_module_add. */
CTN_API CTN_MUST_CHECK ctn_status ctn_sequential_new(ctn_module **m, ctn_context *ctx, int n,
                                                     ctn_module *const *modules);
/* The same without a forward function, like torch.nn.ModuleList: call its children yourself. */
CTN_API CTN_MUST_CHECK ctn_status ctn_module_list_new(ctn_module **m, ctn_context *ctx, int n,
                                                      ctn_module *const *modules);

typedef struct {
    size_t struct_size;
    int no_bias;
    const ctn_init *weight, *bias; /* NULL: uniform from -1/sqrt(in) to 1/sqrt(in) */
} ctn_linear_opt;
/* y = x weight^T + bias. x (...,in), weight (out,in), bias (out) -> (...,out). Local. Result: *m,
 * owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_linear_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                                 int64_t out, const ctn_linear_opt *opt);

/* Defaults as in ctn_conv_opt (catena/ops_image.h). weight and bias NULL: uniform from -b to b,
 * b = 1/sqrt(second dimension of weight * number of elements of the kernel). */
typedef struct {
    size_t struct_size;
    int64_t stride[CTN_MAX_SPATIAL], pad[CTN_MAX_SPATIAL], pad_end[CTN_MAX_SPATIAL];
    int64_t dilation[CTN_MAX_SPATIAL];
    int64_t groups;
    int64_t out_pad[CTN_MAX_SPATIAL]; /* transposed convolution only */
    int no_bias;
    const ctn_init *weight, *bias;
    ctn_pad_mode pad_mode; /* convolution only: what the padding contains */
} ctn_conv_module_opt;
/* Convolution with as many spatial dimensions as the kernel has. Example: ctn_conv_new(&m, ctx,
 * 3, 64, CTN_SHAPE(7, 7), opt). weight (out,in/groups,k...), bias (out). x (N,in,...) ->
 * (N,out,...). Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_conv_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                               int64_t out, int spatial, const int64_t *kernel,
                                               const ctn_conv_module_opt *opt);
/* Transposed convolution. weight (in,out/groups,k...), bias (out). Local. Result: *m, owned.
 * Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_conv_transpose_new(ctn_module **m, ctn_context *ctx,
                                                         int64_t in, int64_t out, int spatial,
                                                         const int64_t *kernel,
                                                         const ctn_conv_module_opt *opt);

/* Deformable convolution of images (ctn_deform_conv): the child offset_conv, a convolution with the
 * same kernel and options, computes the offsets from x. It starts with zeros, so that the module
 * starts as a usual convolution. kernel: height and width. weight (out,in,kh,kw), bias (out);
 * groups is 1, padding is zeros, out_pad is not used. x (N,in,H,W) -> (N,out,h,w). Local. Result:
 * *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_deform_conv_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                                      int64_t out, int spatial,
                                                      const int64_t *kernel,
                                                      const ctn_conv_module_opt *opt);

typedef struct {
    size_t struct_size;
    const ctn_init *weight; /* NULL: uniform from 0 to 1/(in out), as in the original */
} ctn_spectral_conv_opt;
/* The convolution of Fourier neural operators: each of the lowest frequencies of x is multiplied by
 * a complex matrix (in,out), all others become 0. modes[i] frequencies are kept along the last
 * spatial dimension, and modes[i] of each sign along the others. Complex weights are pairs in the
 * last dimension: weights1 (in,out,modes...,2) for positive frequencies, and one array for each
 * other choice of signs, the first dimension changing fastest: weights2 in 2-D, weights2 to
 * weights4 in 3-D. x (N,in,...) of any resolution -> (N,out,...). Local. Result: *m, owned.
 * Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_spectral_conv_new(ctn_module **m, ctn_context *ctx,
                                                        int64_t in, int64_t out, int spatial,
                                                        const int64_t *modes,
                                                        const ctn_spectral_conv_opt *opt);

typedef struct {
    size_t struct_size;
    double eps, momentum;          /* eps 0: 1e-5; momentum 0: 0.1 */
    int no_affine;                 /* 1: without weight and bias */
    const ctn_init *weight, *bias; /* NULL: ones, zeros */
} ctn_batch_norm_module_opt;
/* Batch normalisation of x (N,channels,...). Parameters: weight, bias. States: running_mean,
 * running_var (channels), and num_batches_tracked (i64), which counts the calls in training and
 * influences nothing. Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_batch_norm_new(ctn_module **m, ctn_context *ctx,
                                                     int64_t channels,
                                                     const ctn_batch_norm_module_opt *opt);

/* Decorrelated batch normalisation of x (N,channels,...), see ctn_decorrelated_batch_norm. States
 * as in Chainer: avg_mean (groups,channels/groups), zeros at first, and avg_projection
 * (groups,channels/groups,channels/groups), at first the identity. Local. Result: *m, owned.
 * Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_decorrelated_batch_norm_new(
    ctn_module **m, ctn_context *ctx, int64_t channels, const ctn_decorrelated_batch_norm_opt *opt);

typedef struct {
    size_t struct_size;
    double eps, momentum;          /* 0: 1e-5, 0.1 */
    double rmax, dmax;             /* 0: 3, 5; see ctn_batch_renorm */
    int no_affine;                 /* 1: without weight and bias */
    const ctn_init *weight, *bias; /* NULL: ones, zeros */
} ctn_batch_renorm_module_opt;
/* Batch renormalisation of x (N,channels,...), with the parameters and states of
 * ctn_batch_norm_new. ctn_dist_sync_batch_norm does not change it. Local. Result: *m, owned.
 * Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_batch_renorm_new(ctn_module **m, ctn_context *ctx,
                                                       int64_t channels,
                                                       const ctn_batch_renorm_module_opt *opt);
/* Change the limits of such a module, for example to relax them in the course of a training: rmax
 * from 1 and dmax from 0. They are not part of a saved state. Local. Errors: EARG. */
CTN_API CTN_MUST_CHECK ctn_status ctn_batch_renorm_set_limits(ctn_module *m, double rmax,
                                                              double dmax);

typedef struct {
    size_t struct_size;
    double eps;             /* 0: 1e-5 */
    int no_affine, no_bias; /* no_affine 1: without weight and bias; no_bias 1: without bias */
} ctn_norm_opt;
/* Group normalisation of x (N,channels,...). weight, bias (channels). Local. Result: *m, owned.
 * Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_group_norm_new(ctn_module **m, ctn_context *ctx,
                                                     int64_t groups, int64_t channels,
                                                     const ctn_norm_opt *opt);
/* Layer normalisation over the last ndim dimensions of x, whose lengths must be dims. weight and
 * bias have the shape dims. Example: ctn_layer_norm_new(&m, ctx, CTN_SHAPE(128), NULL). Local.
 * Result: *m, owned.
 * Errors: EARG, ESHAPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_layer_norm_new(ctn_module **m, ctn_context *ctx, int ndim,
                                                     const int64_t *dims, const ctn_norm_opt *opt);
/* The same with the root mean square instead of mean and variance, and without bias. */
CTN_API CTN_MUST_CHECK ctn_status ctn_rms_norm_new(ctn_module **m, ctn_context *ctx, int ndim,
                                                   const int64_t *dims, const ctn_norm_opt *opt);

/* Embedding: looks up rows of weight (rows,width). weight NULL: normal with standard
 * deviation 1. x (...) i64 or i32 -> (...,width). Local. Result: *m, owned. Errors: EARG,
 * ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_embedding_new(ctn_module **m, ctn_context *ctx, int64_t rows,
                                                    int64_t width, const ctn_init *weight);

typedef struct {
    size_t struct_size;
    int layers;        /* 0: 1 */
    int bidirectional; /* 1: each layer also runs in reverse; y has both, next to each other */
    int batch_first;   /* 1: x and y are (N,T,...) instead of (T,N,...) */
    int no_bias;
    double dropout;     /* rate of the dropout after each layer but the last */
    int64_t projection; /* LSTM only: h is projected to this many elements; 0: none */
    int relu;           /* ctn_rnn_new only, 1: ReLU instead of tanh */
    int composed;       /* 1: for gradients of gradients, as in ctn_rnn_opt; slower */
} ctn_rnn_module_opt;
/* Recurrent networks, like torch.nn.LSTM, GRU and RNN, with the same parameters: weight_ih_l0
 * (K hidden,in), weight_hh_l0 (K hidden,hidden), bias_ih_l0, bias_hh_l0 (K hidden), in reverse
 * weight_ih_l0_reverse and so on, with a projection weight_hr_l0; K is 4, 3 or 1. Initial values
 * are uniform from -1/sqrt(hidden) to 1/sqrt(hidden). ctn_call(m, x): x (T,N,in) -> y (T,N,D H)
 * with D directions. Inputs of ctn_call_multi: x, h0, c0 (LSTM only), lengths. h0 (layers D,N,H)
 * and c0 (layers D,N,hidden): NULL means zeros; lengths (N) as in ctn_rnn_opt. Outputs: y, final
 * h, final c (LSTM only), shaped like h0 and c0. Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lstm_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                               int64_t hidden, const ctn_rnn_module_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_gru_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                              int64_t hidden, const ctn_rnn_module_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_rnn_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                              int64_t hidden, const ctn_rnn_module_opt *opt);

/* Tree LSTM whose nodes have any number of children, without an order (Tai et al.). Inputs of
 * ctn_call_multi: x (N,in); h and c (children,N,hidden), the states of the children of each node,
 * zeros where a node has fewer; both NULL: leaves. Outputs: h and c (N,hidden). With the sum s of
 * the h_k and [a, i, o, b] = x W_x^T + bias: ctn_tree_lstm of the gates [a, i, o] + s W_h_aio^T and
 * f_k = b + h_k W_h_f^T. Parameters as in Chainer: W_x.weight (4 hidden,in), W_x.bias,
 * W_h_aio.weight (3 hidden,hidden), W_h_f.weight (hidden,hidden). Local. Result: *m, owned. Errors:
 * EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_child_sum_tree_lstm_new(ctn_module **m, ctn_context *ctx,
                                                              int64_t in, int64_t hidden);
/* Tree LSTM whose nodes have `children` children in a fixed order (Bowman et al.), with the same
 * inputs and outputs: ctn_tree_lstm of the gates x W_x^T + bias + sum over k of h_k W_hk^T.
 * Parameters: W_x.weight ((3+children) hidden,in), W_x.bias, W_h1.weight ((3+children)
 * hidden,hidden), W_h2.weight and so on. Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_nary_tree_lstm_new(ctn_module **m, ctn_context *ctx,
                                                         int64_t in, int64_t hidden,
                                                         int64_t children);
/* LSTM with peepholes: its gates see the state c, too. Inputs of ctn_call_multi: x (T,N,in), h0 and
 * c0 (N,hidden), NULL: zeros. Outputs: y (T,N,hidden), the h of every step, and the final h and c.
 * With [a, i, f, o] = x upward^T + bias + h lateral^T, the four gates of each element of the state
 * next to each other, and s(v) = 1/(1+exp(-v)):
 *   c' = tanh(a) s(i + c peep_i^T) + c s(f + c peep_f^T),  h' = tanh(c') s(o + c' peep_o^T)
 * Parameters as in Chainer: upward.weight (4 hidden,in), upward.bias, lateral.weight (4
 * hidden,hidden), peep_i.weight, peep_f.weight, peep_o.weight (hidden,hidden). Local. Result: *m,
 * owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_peephole_lstm_new(ctn_module **m, ctn_context *ctx,
                                                        int64_t in, int64_t hidden);

/* Linear-chain conditional random field of K labels. Inputs of ctn_call_multi: x (T,N,K), labels
 * (T,N), lengths (N). Output: the mean loss of ctn_crf_loss. With labels NULL, and in ctn_call: the
 * path (T,N) and its score (N) of ctn_crf_decode. Parameter: cost (K,K); init NULL: zeros. Local.
 * Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_crf_new(ctn_module **m, ctn_context *ctx, int64_t K,
                                              const ctn_init *init);

typedef struct {
    size_t struct_size;
    int no_bias;
} ctn_graph_conv_opt;
/* Graph convolution (GCN, Kipf and Welling): y = D^-1/2 (A + I) D^-1/2 x weight^T + bias, where A
 * are the edges and D is the diagonal of the row sums of A + I. Inputs of ctn_call_multi: x (N,in);
 * edges (E,2) i64 or i32, rows (source, target), without those from a node to itself; weights (E)
 * of the edges, not negative, NULL: all 1. Output (N,out). Parameters have the names of PyTorch
 * Geometric: lin.weight (out,in), bias (out). Local. Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_graph_conv_new(ctn_module **m, ctn_context *ctx, int64_t in,
                                                     int64_t out, const ctn_graph_conv_opt *opt);

typedef struct {
    size_t struct_size;
    int64_t heads;  /* 0: 1 */
    int mean;       /* 1: the mean of the heads (N,out); 0: all of them (N,heads out) */
    double slope;   /* of the leaky ReLU; 0: 0.2 */
    double dropout; /* of the attention weights; default 0 */
    int no_bias;
} ctn_graph_attention_opt;
/* Graph attention (GAT, Velickovic et al.): each node takes the mean of its neighbours and itself,
 * weighted by a softmax. Inputs x and edges as in ctn_graph_conv_new. Parameters have the names of
 * PyTorch Geometric: lin.weight (heads out,in), att_src and att_dst (1,heads,out), bias. Local.
 * Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_graph_attention_new(ctn_module **m, ctn_context *ctx,
                                                          int64_t in, int64_t out,
                                                          const ctn_graph_attention_opt *opt);

/* What a node does with the messages of its edges; without edges the result is 0. */
typedef enum { CTN_AGGREGATE_SUM = 0, CTN_AGGREGATE_MEAN, CTN_AGGREGATE_MAX } ctn_aggregate;
typedef struct {
    size_t struct_size;
    ctn_aggregate aggregate; /* 0: sum */
    int residual;            /* 1: add x and the features of the edges to their new values */
} ctn_message_passing_opt;
/* Message passing with two networks: e' = edge([x[source], x[target], e]) for each edge, and
 * x' = node([x, aggregate of e' over the edges to the node]). Inputs of ctn_call_multi: x (N,F);
 * edges (E,2) as in ctn_graph_conv_new; e (E,G), features of the edges, NULL: none. Outputs: x' and
 * e'. On success *m owns edge and node, its children of these names; on failure the caller keeps
 * ownership. Local. Result: *m, owned. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_message_passing_new(ctn_module **m, ctn_context *ctx,
                                                          ctn_module *edge, ctn_module *node,
                                                          const ctn_message_passing_opt *opt);

/* Dropout, pooling, and flatten (N,...) -> (N,rest), for sequential models. Local. Result: *m,
 * owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dropout_new(ctn_module **m, ctn_context *ctx, double rate);
CTN_API CTN_MUST_CHECK ctn_status ctn_max_pool_new(ctn_module **m, ctn_context *ctx,
                                                   const ctn_pool_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_avg_pool_new(ctn_module **m, ctn_context *ctx,
                                                   const ctn_pool_opt *opt);
CTN_API CTN_MUST_CHECK ctn_status ctn_flatten_new(ctn_module **m, ctn_context *ctx);

/* Channels of the branches of an Inception block; all are needed. */
typedef struct {
    size_t struct_size;
    int64_t out1;          /* 1x1 convolution */
    int64_t reduce3, out3; /* 1x1, then 3x3 */
    int64_t reduce5, out5; /* 1x1, then 5x5 */
    int64_t pool;          /* 1x1 after a 3x3 maximum pooling */
    /* 1: batch normalisation after each convolution, and 3x3 instead of 5x5, as in torchvision's
     * GoogLeNet. */
    int batch_norm;
} ctn_inception_opt;
/* The block of GoogLeNet: four branches with ReLU, joined along the channels. x (N,channels,H,W) ->
 * (N,out1 + out3 + out5 + pool,H,W). Names as in torchvision: branch1.conv, branch2.0.conv,
 * branch2.1.conv, branch3.0.conv, branch3.1.conv, branch4.1.conv, and .bn beside .conv. Local.
 * Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_inception_new(ctn_module **m, ctn_context *ctx,
                                                    int64_t channels, const ctn_inception_opt *opt);
typedef struct {
    size_t struct_size;
    int64_t out1;            /* 1x1 convolution; 0: none, and none is possible with a stride */
    int64_t reduce3, out3;   /* 1x1, then 3x3 */
    int64_t reduce33, out33; /* 1x1, then two times 3x3 */
    int64_t pool;            /* 1x1 after a 3x3 pooling; 0: the pooling alone */
    int64_t stride;          /* of the last convolution of a branch and of the pooling; 0: 1 */
    int average;             /* 1: average pooling, 0: maximum pooling */
} ctn_inception_bn_opt;
/* The block of the Inception network with batch normalisation (Ioffe and Szegedy, 2015), whose
 * third branch has two 3x3 convolutions. Names as for ctn_inception_new, and branch3.2. Local.
 * Result: *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_inception_bn_new(ctn_module **m, ctn_context *ctx,
                                                       int64_t channels,
                                                       const ctn_inception_bn_opt *opt);

/* An op with one input as a module: ctn_activation_new(&m, ctx, ctn_relu_at). Local. Result:
 * *m, owned. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_activation_new(ctn_module **m, ctn_context *ctx,
                                                     ctn_tensor *(*op)(const char *at,
                                                                       ctn_tensor *x));

/* ---- adapters ------------------------------------------------------------------------------- */

/* Fine-tuning with low-rank adapters (LoRA), like the Python package peft. */
typedef struct {
    size_t struct_size;
    int64_t rank; /* 0: 8 */
    double alpha; /* an adapter is scaled by alpha / rank; 0: 2 rank */
    /* Endings of the names of linear modules that get an adapter, ended by NULL:
     * {"q_proj", "v_proj", NULL}. An ending consists of whole parts between dots. NULL: all. */
    const char *const *only;
    /* Type in which the weights of these modules are stored while they are frozen: the float type
     * of the context (f32, or f64 under the policy f64), or bf16, which rounds them and takes less
     * memory. 0: the float type. */
    ctn_dtype base;
} ctn_lora_opt;
/* Give linear modules (those of ctn_linear_new) in m an adapter and freeze everything else:
 * y = x weight^T + bias + (alpha / rank) (x A^T) B^T. The adapter of a linear module named fc is
 * the parameters fc.lora_A.weight (rank,in), uniform from -1/sqrt(in) to 1/sqrt(in), and
 * fc.lora_B.weight (out,rank), zeros, so results do not change at first. All other parameters of m
 * become not trainable; to train some of them too, call ctn_var_set_trainable afterwards. Make the
 * optimizer after this call. If it fails, m is unchanged, except that weights may have been rounded
 * to bf16 before the memory ran out. Call it between scopes. Local. Errors: ESTATE (also if m has
 * adapters already), ENOTFOUND (no linear module has one of the endings), EARG, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lora_add(ctn_module *m, const ctn_lora_opt *opt);
/* Add (alpha / rank) B A to the weight of every linear module in m that has an adapter, and remove
 * the adapters. Results stay the same up to rounding. What is trainable does not change: the
 * parameters that ctn_lora_add froze stay frozen. Call it between scopes, after freeing the
 * optimizer. If it fails, m is unchanged. Local. Errors: ESTATE (also without adapters, or if a
 * weight with an adapter is tied), ENOMEM, those of a pending exchange. */
CTN_API CTN_MUST_CHECK ctn_status ctn_lora_merge(ctn_module *m);

/* Weight normalisation: wherever the parameter `name` of m itself, usually "weight", is used, it is
 * g w / |w| instead of its value w. The norm is over all dimensions except dim; -1: over all of
 * them. g is the new parameter name_g of m, at first |w|, so results do not change. m cannot be
 * copied afterwards. Call it between scopes, before making the optimizer. Local. Errors: ESTATE,
 * ENOTFOUND, ESHAPE, EDTYPE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_weight_norm_add(ctn_module *m, const char *name, int dim);
typedef struct {
    size_t struct_size;
    int dim;        /* the rows of the matrix; 1 for weights of transposed convolutions */
    int iterations; /* of the power method in every use; 0: 1 */
    double eps;     /* smallest norm that vectors are divided by; 0: 1e-12 */
} ctn_spectral_norm_opt;
/* Spectral normalisation: wherever the parameter `name` of m itself, usually "weight", is used, it
 * is w / s instead of its value w, where s is the largest singular value of w as a matrix with
 * dimension dim as rows. s is found by the power method: s = u W v with the new states name_u and
 * name_v of m, which every use in training improves. They start with 15 iterations from random
 * vectors. m cannot be copied afterwards. Call it between scopes. Local. Errors: ESTATE, ENOTFOUND,
 * ESHAPE, EDTYPE, EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_spectral_norm_add(ctn_module *m, const char *name,
                                                        const ctn_spectral_norm_opt *opt);

#ifdef __cplusplus
}
#endif
#endif
