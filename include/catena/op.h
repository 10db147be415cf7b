/* SPDX-License-Identifier: Apache-2.0
 *
 * What an op is. Built-in and custom ops fill the same struct and go through the same door, ctn_apply.
 *
 * Attributes are int64 numbers and part of the plan's hash; scalars are doubles, values of the plan
 * that may change every step without a new plan. Arrays of an op call live as long as the scope.
 */
#ifndef CATENA_OP_H
#define CATENA_OP_H

#include <catena/context.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTN_MAX_IN 16  /* inputs of one op (concat and stack take more through chains) */
#define CTN_MAX_OUT 16 /* outputs of one op */

/* A value of the plan. In an op call slot is -1; inside grad functions the scalars of the node carry
 * the slot they came from: pass them on as they are, or make a constant with CTN_CONST. */
typedef struct {
    double value;
    int32_t slot;
} ctn_scalar;
#ifdef __cplusplus
#define CTN_CONST(v) (ctn_scalar{(v), -1})
#else
#define CTN_CONST(v) ((ctn_scalar){(v), -1})
#endif

/* Arguments of infer: read in, attr; fill out (dtype, ndim, dim) and, if it varies, nout. */
typedef struct {
    const char *name; /* of the op, for messages */
    int nin, nout, nattr;
    const ctn_desc *const *in;
    const int64_t *attr;
    ctn_desc *out;
} ctn_infer_args;

/* Arguments of grad: gout[i] is NULL where no gradient arrives; set gin[i] for inputs with need[i],
 * NULL meaning zero. The function records with ordinary ops. */
typedef struct {
    const char *at;
    ctn_context *ctx;
    int nin, nout, nattr, nscalar;
    ctn_tensor *const *in, *const *out, *const *gout;
    ctn_tensor **gin;
    const unsigned char *need;
    const int64_t *attr;
    const ctn_scalar *scalar;
} ctn_grad_args;

/* Values of a random op's stream (rule 14) and other facts of a run. */
typedef struct {
    uint64_t seed, step;
    int threads;
} ctn_run_env;

/* Arguments of run. in and out point to elements as din and dout describe them; out[i] is NULL when
 * nobody wants that output. priv is what prepare made. */
typedef struct {
    int nin, nout, nattr, nscalar;
    const void *const *in;
    void *const *out;
    const ctn_desc *din, *dout;
    const int64_t *attr;
    const double *scalar;
    uint64_t ordinal; /* of this op among the random ops of the step */
    const ctn_run_env *env;
    void *priv;
    void *scratch;
} ctn_run_args;

/* Arguments of prepare, called once per plan for each node: choose a kernel for these descriptions.
 * It may change the place of elements in din and dout (strides, layout): the plan then reorders what it has
 * into din[i], or out of dout[i]. It may set scratch bytes, a run function for just this node, and priv with
 * its free function. */
typedef struct ctn_prepare_args {
    const char *name;
    int nin, nout, nattr, nscalar;
    ctn_desc *din;
    ctn_desc *dout;
    const int64_t *attr;
    int threads;
    void *engine;                             /* built-in ops only */
    size_t scratch;                           /* out */
    int64_t flops;                            /* out: for explain, 0 if it does not matter */
    const char *kernel;                       /* out: name for explain; borrowed while priv lives */
    ctn_status (*run)(const ctn_run_args *a); /* out: NULL keeps the op's */
    void *priv;                               /* out */
    void (*priv_free)(void *priv);
    size_t priv_bytes; /* out: what priv takes in the budget of plans; 0: a little */
} ctn_prepare_args;

/* How the precision policy treats the op (rule 15). */
typedef enum { CTN_PREC_ANY = 0, CTN_PREC_LOW, CTN_PREC_F32 } ctn_prec;

enum {
    CTN_OP_RANDOM = 1,  /* draws from the stream of the step */
    CTN_OP_STRIDED = 2, /* reads inputs of any strides; otherwise they are made row-major first */
    CTN_OP_TRAIN = 4,   /* behaves differently in training: the flag is part of the hash */
    CTN_OP_VIEW = 8,    /* out 0 is in 0 seen with other strides: never runs where that is enough */
    CTN_OP_ELEMENTWISE = 16, /* one output element from the same element of each input */
    CTN_OP_ORDERED = 32 /* an effect (rule 1): each call runs, once, in the order of recording */
};

typedef struct ctn_op {
    size_t struct_size;
    const char *name;
    int nin;  /* inputs; -1: any number up to CTN_MAX_IN */
    int nout; /* outputs, the most of them */
    uint32_t flags;
    int order; /* how often it can be differentiated; -1: any, 0: not at all */
    ctn_prec prec;
    uint32_t grad_in;  /* bit i: grad reads in[i] */
    uint32_t grad_out; /* bit i: grad reads out[i] */
    uint32_t inplace;  /* bit i: out[0] may share memory with in[i] of the same description */
    /* bit i: in[i], out[i] is (N,C,spatial...). The plan gives all of them row-major or all channels-last, as
     * the strides say, and the op's kernels take both. Under a low-precision policy an op of CTN_PREC_ANY with
     * such operands gets just these in the low type, the others stay f32. */
    uint32_t spatial_in, spatial_out;
    const char *const *attr_names; /* for messages, as many as attributes; may be NULL */
    ctn_status (*infer)(ctn_infer_args *a);
    ctn_status (*grad)(const ctn_grad_args *a);
    ctn_status (*prepare)(ctn_prepare_args *a); /* NULL: run, on row-major elements */
    ctn_status (*run)(const ctn_run_args *a);
    uint64_t uid;                   /* 0 in a custom op: set at its first use */
    const struct ctn__tiles *tiles; /* of the library's own ops; NULL in a custom op */
} ctn_op;

typedef struct {
    int nattr, nscalar;
    const int64_t *attr;
    const ctn_scalar *scalar;
} ctn_op_args;

/* Record one call of op. out receives op->nout tensors (fewer where infer says so). ctx may be NULL when
 * there is an input. A NULL input gives NULL outputs and keeps the first error. op must outlive the
 * context's plans. Local. Errors: what infer reports, with op, shapes and `at`. */
CTN_API ctn_status ctn_apply_at(const char *at, ctn_context *ctx, ctn_op *op, int nin,
                                ctn_tensor *const *in, const ctn_op_args *args, ctn_tensor **out);
#define ctn_apply(...) ctn_apply_at(CTN_HERE, __VA_ARGS__)

/* Compare the gradients of loss = sum(weights * fn(x...)) with finite differences in f64. fn records the
 * function on n inputs; x[i] are f64 values of the given shapes. *worst is the largest error relative
 * to max(1, |gradient|). Local. Errors: EGRAD above tol, naming input and element. */
typedef ctn_tensor *(*ctn_gradcheck_fn)(void *self, ctn_context *ctx, ctn_tensor *const *x);
typedef struct {
    int ndim;
    const int64_t *dims;
    const double *values;
} ctn_gradcheck_input;
CTN_API CTN_MUST_CHECK ctn_status ctn_gradcheck(ctn_context *ctx, ctn_gradcheck_fn fn, void *self,
                                                int n, const ctn_gradcheck_input *x, double tol,
                                                double *worst);

#ifdef __cplusplus
}
#endif
#endif
