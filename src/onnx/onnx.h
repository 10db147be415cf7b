/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the ONNX import share. A model is opened once (import.c, import_graph.c): names
 * become numbers of slots, constants become variables or arrays. A call (import_run.c) walks the
 * nodes, and the converter of each node (ops_*.c, listed in onnx_ops.def) records ops of Catena.
 *
 * A value of a call is a recorded tensor, an array that is known while recording, or both. Shapes
 * are always known while recording, so everything that a model computes from shapes stays an array
 * and never becomes part of a plan. If a converter needs an array, such as the shape of a Reshape
 * or the condition of an If, and has only a recorded tensor, that tensor is read, which runs what
 * was recorded so far.
 */
#ifndef CTN_ONNX_ONNX_H
#define CTN_ONNX_ONNX_H

#include <catena/onnx.h>

#include "nn/nn.h"

#ifdef CTN_HAVE_PROTOBUFC

#include <onnx.pb-c.h>

enum { CTN__ONNX_OLDEST = 7, CTN__ONNX_NEWEST = 28 }; /* opsets */
enum { CTN__ONNX_DEPTH = 64 };                        /* of messages and graphs in each other */
enum { CTN__ONNX_SMALL = 16384 }; /* elements of an array that is worth computing while recording */
#define CTN__ONNX_LARGE ((int64_t)1 << 40) /* beyond any length of an axis */

typedef struct ctn__onnx_value ctn__onnx_value;
struct ctn__onnx_value {
    ctn_dtype dtype; /* 0: there is no value, or it is a sequence */
    int ndim;
    int64_t dim[CTN_MAX_DIMS];
    ctn_tensor *t;          /* NULL: not recorded */
    const void *host;       /* row-major array; NULL: not known while recording */
    ctn_var *var;           /* the variable that it is; NULL: none */
    ctn__onnx_value **item; /* of a sequence; NULL: it is a tensor */
    int64_t items;
    bool widened; /* the model has another integer type here, see ctn__onnx_dtype */
};

typedef struct ctn__onnx_node ctn__onnx_node;
typedef struct ctn__onnx_call ctn__onnx_call;
typedef ctn_status ctn__onnx_fn(ctn__onnx_call *c);

/* An entry of onnx_ops.def. */
typedef struct {
    const char *name;
    ctn__onnx_fn *convert;
    /* For the converters that serve many ops. */
    ctn_tensor *(*unary)(const char *at, ctn_tensor *x);
    ctn_tensor *(*binary)(const char *at, ctn_tensor *a, ctn_tensor *b);
    double (*number)(double x);
    int kind;
    /* Bit i is set if input i is a weight even if it is a single number, is needed while recording,
     * or is a running statistic. */
    uint32_t weights, hosts, states;
} ctn__onnx_op;

typedef struct {
    int nin, nout, nnode;
    int *in, *out; /* slots */
    ctn__onnx_node *node;
} ctn__onnx_graph;

struct ctn__onnx_node {
    const Onnx__NodeProto *proto;
    const ctn__onnx_op *op;
    const Onnx__FunctionProto *function; /* NULL: an op of the table */
    const ctn__onnx_node *caller;        /* the call of the function that contains this node */
    int64_t opset;
    int nin, nout;
    int *in, *out;           /* slots; -1: left out */
    ctn__onnx_graph body[2]; /* of If (then, else), Loop and Scan, or the function */
};

/* Where the values of a tensor lie: bytes of a file, or an address in the model (file 0). */
typedef struct {
    uint64_t device, file, begin, end;
} ctn__onnx_place;

/* A slot that does not depend on the inputs. */
typedef struct {
    int slot;
    const char *name;
    Onnx__TensorProto *proto; /* NULL: value has the array from the start */
    ctn__onnx_place place;    /* of the values of proto */
    ctn__onnx_value value;    /* type and shape; the array unless it is a variable */
    uint32_t uses;            /* CTN__ONNX_USE_ bits of the nodes that read it */
    int var;                  /* number of its variable; -1: none */
} ctn__onnx_constant;
enum {
    CTN__ONNX_USE_PLAIN = 1,
    CTN__ONNX_USE_WEIGHT = 2,
    CTN__ONNX_USE_HOST = 4,
    CTN__ONNX_USE_STATE = 8
};

/* What opening a model, or a call of it, may still cost (import_limits.c). */
typedef struct {
    const char *path;
    int64_t nodes, bytes;
} ctn__onnx_budget;

/* An opened model, shared by a module and its copies. */
typedef struct {
    int refs;
    bool frozen;
    bool norms; /* the model normalises batches */
    char *path;
    Onnx__ModelProto *proto;
    ctn__arena arena; /* everything below, except the vector */
    ctn__onnx_graph graph;
    int slots, vars;
    CTN__VEC(ctn__onnx_constant) constants;
    ctn_onnx_port *in, *out;
    bool *in_widened;
} ctn__onnx_model;

/* One call of a model. */
typedef struct {
    const ctn__onnx_model *model;
    ctn_context *ctx;
    const char *at;
    ctn__onnx_value *values; /* one per slot */
    const ctn__batch_norm_hook *norm;
    ctn__onnx_budget budget;
    size_t recorded; /* nodes of the record that are paid for */
} ctn__onnx_run;

/* One node of it. */
struct ctn__onnx_call {
    ctn__onnx_run *run;
    ctn_context *ctx;
    const char *at;
    const ctn__onnx_node *node;
    int nin, nout;
    ctn__onnx_value **in;  /* NULL: left out */
    ctn__onnx_value **out; /* NULL: nobody reads it */
};

/* ---- limits (import_limits.c) ---------------------------------------------------------------- */

void ctn__onnx_budget_begin(ctn__onnx_budget *b, const char *path); /* path is borrowed */
/* Errors: EUNSUPPORTED, with a message that says how to raise the limit. */
ctn_status ctn__onnx_spend(ctn__onnx_budget *b, int64_t nodes, size_t bytes);
/* Pays for work on n elements, and for their memory of `size` bytes each (0: none). */
ctn_status ctn__onnx_spend_elements(ctn__onnx_run *run, int64_t n, size_t size);
/* Pays for the ops that have been recorded since the last call. A loop that records, and whose
 * length comes from the file, calls it at every turn. */
ctn_status ctn__onnx_spend_recorded(ctn__onnx_run *run);
/* a b, or INT64_MAX if the product is larger or a factor is negative: more than any budget. */
int64_t ctn__onnx_times(int64_t a, int64_t b);
/* Memory for `count` elements that lives as long as the scope. NULL: a negative count, or above the
 * budget, or ENOMEM. */
void *ctn__onnx_memory(ctn__onnx_run *run, int64_t count, size_t size);

/* ---- reading a model (import_file.c, import_graph.c) ---------------------------------------- */

/* Unpacks the bytes of a file. Errors: EFORMAT, EUNSUPPORTED, ENOMEM. */
ctn_status ctn__onnx_unpack(Onnx__ModelProto **out, ctn__onnx_budget *budget, const void *bytes,
                            size_t n);
void ctn__onnx_drop(Onnx__ModelProto *proto); /* NULL is fine */
/* The type of Catena that stands for an ONNX type; 0: none. */
ctn_dtype ctn__onnx_dtype(int32_t elem);
bool ctn__onnx_widened(int32_t elem); /* is that type a wider one? */
/* The type and shape of a tensor, whose values exist as often as the shape says, and their place
 * (NULL: not asked for). Errors: EFORMAT, EUNSUPPORTED, EIO. */
ctn_status ctn__onnx_shape(ctn__onnx_value *out, ctn__onnx_place *place, const char *path,
                           const Onnx__TensorProto *t);
/* The same with its values. External files lie in the folder of path. Memory from the arena.
 * Errors: EFORMAT, EIO, EUNSUPPORTED, ENOMEM. */
ctn_status ctn__onnx_load(ctn__onnx_value *out, ctn__arena *arena, const char *path,
                          const Onnx__TensorProto *t);
/* Builds the graph from model->proto. Errors: EFORMAT, EUNSUPPORTED, EIO, ENOMEM. */
ctn_status ctn__onnx_build(ctn__onnx_model *model, ctn__onnx_budget *budget);
const ctn__onnx_op *ctn__onnx_find(const char *domain, const char *name); /* NULL: not supported */
/* Opens a model whose bytes are in memory; path is for messages and external files. */
ctn_status ctn__onnx_open_bytes(ctn_module **m, ctn_context *ctx, const char *path,
                                const void *bytes, size_t n, const ctn_onnx_opt *opt);

/* ---- a call (import_run.c) ------------------------------------------------------------------- */

ctn_status ctn__onnx_graph_run(ctn__onnx_run *run, const ctn__onnx_graph *g);
int64_t ctn__onnx_count(const ctn__onnx_value *v);
bool ctn__onnx_has(const ctn__onnx_call *c, int i); /* is input i there? */
/* Is the value a small array, whose use instead of a recorded tensor loses no gradient? */
bool ctn__onnx_is_host(const ctn__onnx_value *v);
bool ctn__onnx_all_host(const ctn__onnx_call *c); /* of all inputs */
/* Input i, or value v, as a recorded tensor. Result: NULL if it is missing or after an error. */
ctn_tensor *ctn__onnx_in(ctn__onnx_call *c, int i);
ctn_tensor *ctn__onnx_record(ctn__onnx_run *run, ctn__onnx_value *v);
/* Makes sure that the value has an array. */
ctn_status ctn__onnx_read(ctn__onnx_run *run, ctn__onnx_value *v);
/* The same for input i. Fails if it is missing. */
ctn_status ctn__onnx_need(ctn__onnx_call *c, int i);
/* The same for an op that computes its result from the array. Errors: also EGRAD. */
ctn_status ctn__onnx_need_all(ctn__onnx_call *c);
/* Element i of an array, which must have more than i elements. */
int64_t ctn__onnx_int_of(const ctn__onnx_value *v, int64_t i);
double ctn__onnx_number_of(const ctn__onnx_value *v, int64_t i);
int64_t ctn__onnx_to_int(double x); /* the nearest int64_t below 2^63 in size */
/* The only element of input i; *x stays as it is if the input is left out. Errors: ESHAPE (not one
 * element), those of a read. */
ctn_status ctn__onnx_one_int(ctn__onnx_call *c, int i, int64_t *x);
ctn_status ctn__onnx_one_number(ctn__onnx_call *c, int i, double *x);
/* Sets output k to a recorded tensor (NULL: fails), to a new array, or to another value. */
ctn_status ctn__onnx_set(ctn__onnx_call *c, int k, ctn_tensor *t);
void *ctn__onnx_set_host(ctn__onnx_call *c, int k, ctn_dtype dtype, int ndim, const int64_t *dims);
ctn_status ctn__onnx_set_value(ctn__onnx_call *c, int k, const ctn__onnx_value *v);
/* The row-major array as a tensor of the scope; data must come from ctn__onnx_memory. */
ctn_tensor *ctn__onnx_array(const ctn__onnx_call *c, const void *data, ctn_dtype dtype, int ndim,
                            const int64_t *dims);
/* Records an error that begins with the op and its node. Returns st. */
ctn_status ctn__onnx_fail(const ctn__onnx_call *c, ctn_status st, const char *fmt, ...)
    CTN_PRINTF(3, 4);
#if defined(__clang_analyzer__)
/* Let the analyzer see that it returns the status it is given. */
#define ctn__onnx_fail(c, st, ...) ((void)(ctn__onnx_fail)(c, st, __VA_ARGS__), (st))
#endif

/* ---- attributes (import_attr.c) -------------------------------------------------------------- */

const Onnx__AttributeProto *ctn__onnx_attr(const ctn__onnx_node *n, const char *name);
bool ctn__onnx_has_attr(const ctn__onnx_call *c, const char *name);
int64_t ctn__onnx_int(const ctn__onnx_call *c, const char *name, int64_t otherwise);
double ctn__onnx_float(const ctn__onnx_call *c, const char *name, double otherwise);
/* Is the string equal to this text? otherwise: if there is no such attribute. */
bool ctn__onnx_text_is(const ctn__onnx_call *c, const char *name, const char *text, bool otherwise);
/* A list of at most `most` integers, from attribute `name` (NULL: none) or input i (-1: none),
 * whichever there is; n is -1 if there is neither. Errors: ESHAPE (too many), those of a read. */
ctn_status ctn__onnx_list(ctn__onnx_call *c, const char *name, int i, int64_t *to, int most,
                          int *n);
/* Refuses attributes without names, too many of them, and values of another type than they claim.
 * Errors: EFORMAT. */
ctn_status ctn__onnx_check_attrs(const char *path, const char *who, size_t n,
                                 Onnx__AttributeProto *const *a);
/* Axis counted from 0, of ndim. Errors: ESHAPE. */
ctn_status ctn__onnx_axis(const ctn__onnx_call *c, int64_t axis, int ndim, int *out);

/* ---- helpers of several converters (ops_math.c) ---------------------------------------------- */

/* x if it is f32 or f64, else x as f64, in which integers up to 2^53 are exact. */
ctn_tensor *ctn__onnx_real(const char *at, ctn_tensor *x);
/* A number with the type of x, to be used with it. */
ctn_tensor *ctn__onnx_like(const char *at, const ctn_tensor *x, double value);

#define CTN__ONNX_OP(name, fn, ...) ctn__onnx_fn ctn__onnx_do_##fn;
#include "onnx/onnx_ops.def"
#undef CTN__ONNX_OP
ctn__onnx_fn ctn__onnx_do_function; /* a call of a function of the model */

#endif
#endif
