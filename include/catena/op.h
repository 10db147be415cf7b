/* SPDX-License-Identifier: Apache-2.0
 *
 * The definition of an op. Built-in and custom ops fill in the same struct and are recorded by
 * the same function, ctn_apply.
 *
 * Attributes are int64 numbers and part of the plan's hash: a new value needs a new plan.
 * Scalars are doubles that are passed to the plan at run time and may change every step without
 * a new plan. The arrays of an op call live as long as the scope.
 */
#ifndef CATENA_OP_H
#define CATENA_OP_H

#include <catena/context.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CTN_MAX_IN 16  /* maximum number of inputs of one op */
#define CTN_MAX_OUT 16 /* maximum number of outputs of one op */

/* A number that is passed to the plan at run time. In an op call slot is -1. In a grad function
 * the scalars of the node carry the slot they came from: pass them on unchanged, or make a
 * constant with CTN_CONST. */
typedef struct {
    double value;
    int32_t slot;
} ctn_scalar;
#ifdef __cplusplus
#define CTN_CONST(v) (ctn_scalar{(v), -1})
#else
#define CTN_CONST(v) ((ctn_scalar){(v), -1})
#endif

/* Arguments of infer, which reads in and attr and fills in out (dtype, ndim, dim) and, if it
 * varies, nout. */
typedef struct {
    const char *name; /* name of the op, for messages */
    int nin, nout, nattr;
    const ctn_desc *const *in;
    const int64_t *attr;
    ctn_desc *out;
} ctn_infer_args;

/* Arguments of grad, which records the gradients with ordinary ops. gout[i] is NULL where no
 * gradient arrives. Set gin[i] for each input with need[i]; NULL means zero. */
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

/* The state of the random numbers (rule 14), the samples of the step that a run computes, and its
 * number of threads. */
typedef struct {
    uint64_t seed, step;
    int threads;
    ctn_share share;
} ctn_run_env;

/* Arguments of run. in and out point to elements as din and dout describe them; out[i] is NULL
 * if that output is not needed. priv was set by prepare. */
typedef struct {
    int nin, nout, nattr, nscalar;
    const void *const *in;
    void *const *out;
    const ctn_desc *din, *dout;
    const int64_t *attr;
    const double *scalar;
    uint64_t ordinal; /* number of this op among the random ops of the step */
    const ctn_run_env *env;
    void *priv;
    void *scratch;
} ctn_run_args;

/* Arguments of prepare, which is called once per plan for each node and chooses a kernel for
 * these descriptions. It may change strides and layout in din and dout; the plan then reorders
 * its data into din[i] and out of dout[i]. It may set the scratch size, a run function for this
 * node only, and priv with its free function. */
typedef struct ctn_prepare_args {
    const char *name;
    int nin, nout, nattr, nscalar;
    ctn_desc *din;
    ctn_desc *dout;
    const int64_t *attr;
    int threads;
    void *engine;                             /* built-in ops only */
    size_t scratch;                           /* out */
    int64_t flops;                            /* out: for explain; 0: negligible */
    const char *kernel;                       /* out: name for explain; borrowed while priv lives */
    ctn_status (*run)(const ctn_run_args *a); /* out: NULL: run of the op */
    void *priv;                               /* out */
    void (*priv_free)(void *priv);
    size_t priv_bytes; /* out: size of priv, counted in the memory limit of plans; 0: small */
} ctn_prepare_args;

/* Masks of inputs or outputs of an op: operand i, and the first n operands. */
#define CTN_OPERAND(i) (UINT32_C(1) << (i))
#define CTN_OPERANDS(n) ((UINT32_C(1) << (n)) - 1)

/* How the precision policy treats the op (rule 15). */
typedef enum { CTN_PREC_ANY = 0, CTN_PREC_LOW, CTN_PREC_F32 } ctn_prec;

enum {
    CTN_OP_RANDOM = 1,  /* draws random numbers (rule 14) */
    CTN_OP_STRIDED = 2, /* reads inputs with any strides; otherwise they are made row-major first */
    /* Behaves differently in training; the training flag becomes part of the hash. */
    CTN_OP_TRAIN = 4,
    /* Output 0 is input 0 seen with other strides; the op does not run where changing strides
     * is enough. */
    CTN_OP_VIEW = 8,
    CTN_OP_ELEMENTWISE = 16, /* each output element depends on the same element of each input */
    /* An effect (rule 1): each call runs exactly once, in the order of recording. */
    CTN_OP_ORDERED = 32,
    /* changes a small part of operand 0, which it may overwrite (inplace): if the result is
     * assigned to the variable that operand 0 is, the op writes into the variable */
    CTN_OP_UPDATE = 64,
    /* Its gradient is an effect, such as a message to another rank: the op is differentiated
     * wherever a gradient arrives, even if none of its inputs leads to a parameter. */
    CTN_OP_REMOTE = 128
};

typedef struct ctn_op {
    size_t struct_size;
    const char *name;
    int nin;  /* inputs; -1: any number up to CTN_MAX_IN */
    int nout; /* maximum number of outputs */
    uint32_t flags;
    int order; /* how often it can be differentiated; -1: any number of times, 0: not at all */
    ctn_prec prec;
    /* Masks of operands: CTN_OPERAND(1) | CTN_OPERAND(3), or CTN_OPERANDS(2) for the first two. */
    uint32_t grad_in;  /* bit i: grad reads in[i] */
    uint32_t grad_out; /* bit i: grad reads out[i] */
    /* Bit i: out[0] may share the memory of in[i] if both have the same description. */
    uint32_t inplace;
    /* Bit i: in[i], out[i] is (N,C,spatial...). The plan passes either all of them row-major or
     * all of them channels-last, as their strides say, and the op's kernels must support both. */
    uint32_t spatial_in, spatial_out;
    /* Bit i: in[i], out[i] may have the low type under a low-precision policy. If one of them
     * has it, all get it; the other operands stay f32. For an op with CTN_PREC_ANY; spatial
     * operands count as well. */
    uint32_t low_in, low_out;
    const char *const *attr_names; /* one name per attribute, for messages; may be NULL */
    ctn_status (*infer)(ctn_infer_args *a);
    ctn_status (*grad)(const ctn_grad_args *a);
    ctn_status (*prepare)(ctn_prepare_args *a); /* NULL: use run, on row-major elements */
    ctn_status (*run)(const ctn_run_args *a);
    uint64_t uid;                   /* 0 in a custom op; set when it is first used */
    const struct ctn__tiles *tiles; /* for built-in ops; NULL in a custom op */
} ctn_op;

typedef struct {
    int nattr, nscalar;
    const int64_t *attr;
    const ctn_scalar *scalar;
} ctn_op_args;

/* Record one call of op. out receives op->nout tensors, or fewer if infer says so. ctx may be
 * NULL if there is an input. A NULL input gives NULL outputs and keeps the first error. op must
 * outlive the plans of the context. Local. Result: scope. Errors: those of infer; the message
 * has the op, the shapes and `at`. */
CTN_API ctn_status ctn_apply_at(const char *at, ctn_context *ctx, ctn_op *op, int nin,
                                ctn_tensor *const *in, const ctn_op_args *args, ctn_tensor **out);
#define ctn_apply(...) ctn_apply_at(CTN_HERE, __VA_ARGS__)

/* Compare the gradients of loss = sum(weights * fn(x...)) with finite differences in f64. fn
 * records the function of n inputs; x[i] are their shapes and f64 values. *worst is the largest
 * error relative to max(1, |gradient|). Local. Errors: EGRAD if an error is above tol; the
 * message names the input and the element. */
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
