/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing an ONNX graph node by node. An emitter writes the ONNX nodes for one recorded node;
 * emit.def says which function does it for which op. Values are names. All of them live in the
 * arena of the export. If something fails, the first error stays in `st`, and later calls go on
 * with names that are never written to a file, so emitters need no checks of their own.
 *
 * Sizes that the model leaves open (the batch size, the length) were recorded as prime numbers, the
 * marks. Every recorded size that is a multiple of a mark follows that size, and so do those that
 * ops have made of them (ctn__emit_follow).
 */
#ifndef CTN_ONNX_EMIT_H
#define CTN_ONNX_EMIT_H

#include <catena/onnx_export.h>

#include "ops/ops.h"

#ifdef CTN_HAVE_PROTOBUFC
#include <onnx.pb-c.h>

enum { CTN__ONNX_MARKS = 2 };

typedef struct {
    int64_t mark;     /* 0: there is no such size */
    const char *name; /* in the model */
    char *value;      /* (1) i64: the size when the model runs */
} ctn__onnx_any;

/* A size that an op has made of open ones, such as n - 1 or the sum of two. */
typedef struct {
    int64_t size; /* as recorded */
    char *value;
} ctn__onnx_made;

/* Which keys each query sees, shared by all layers (emit_sequence.c). */
typedef struct {
    int64_t L, M, causal, window;
    char *value;
} ctn__onnx_visible;

typedef struct {
    ctn_context *ctx;
    ctn_onnx_export_opt opt;
    int opset;
    ctn_status st; /* the first error */
    ctn__arena arena;
    ctn__onnx_any any[CTN__ONNX_MARKS];
    char **name;         /* by the id of a tensor; NULL: not written */
    uint32_t *uses;      /* by the id of a tensor: how many needed nodes read it, and outputs */
    unsigned char *want; /* by the index of a node: it is needed */
    int64_t numbered;    /* for the names of values */
    const char *op;      /* name of the op that is being written */
    CTN__VEC(Onnx__NodeProto *) nodes;
    CTN__VEC(Onnx__TensorProto *) stored; /* initializers */
    CTN__VEC(ctn__onnx_made) made;
    CTN__VEC(ctn__onnx_visible) visible;
    Onnx__AttributeProto nowhere; /* what attributes are written to after an error */
    ctn_vars names;               /* of opt.module */
} ctn__emit;

typedef void ctn__emitter(ctn__emit *e, const ctn__node *n, const char *word);
typedef struct {
    const ctn_op *op;
    ctn__emitter *emit;
    const char *word; /* what the function needs to know, usually the name of an ONNX operator */
    uint32_t reads;   /* mask of the inputs that it reads; 0: all */
} ctn__emit_entry;
/* NULL: the op has no form in ONNX. */
const ctn__emit_entry *ctn__emit_find(const ctn_op *op);

/* Records the error and returns NULL. The message begins with the name of the op. */
char *ctn__emit_fail(ctn__emit *e, const char *fmt, ...) CTN_PRINTF(2, 3);

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Add a node with one output and return its name. An input "" is one that is left out. */
char *ctn__emit_node(ctn__emit *e, const char *type, int nin, char *const *in);
#define CTN__NODE(e, type, ...)                                                      \
    ctn__emit_node(e, type, (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)), \
                   (char *[]){__VA_ARGS__})
/* Add to the node that was made last: a further output, or attributes. */
char *ctn__emit_more(ctn__emit *e);
void ctn__emit_int(ctn__emit *e, const char *name, int64_t v);
void ctn__emit_ints(ctn__emit *e, const char *name, int n, const int64_t *v);
void ctn__emit_float(ctn__emit *e, const char *name, double v);
void ctn__emit_text(ctn__emit *e, const char *name, const char *v);
void ctn__emit_texts(ctn__emit *e, const char *name, int n, const char *const *v);

/* The value of input i of a recorded node, and the name of its result i from now on. */
char *ctn__emit_in(const ctn__emit *e, const ctn__node *n, int i);
void ctn__emit_out(ctn__emit *e, const ctn__node *n, int i, char *value);
/* Is result i read by anything? */
bool ctn__emit_used(const ctn__emit *e, const ctn__node *n, int i);

/* ---- constants and sizes --------------------------------------------------------------------- */

int ctn__onnx_type(ctn_dtype t);
/* A message of a tensor; data is borrowed. */
Onnx__TensorProto *ctn__emit_tensor(ctn__emit *e, const char *name, const ctn_desc *d,
                                    const void *data);
/* Names of variables in the model (export.c), and the one for a bias that a convolution gets when
 * its batch normalisation is folded. */
const char *ctn__emit_var_name(ctn__emit *e, const ctn_var *v);
const char *ctn__emit_bias_name(ctn__emit *e, const ctn_var *weight);
/* Makes sure that the value of a leaf is in its variable. OK if t is not a variable's leaf. */
ctn_status ctn__emit_ready(const ctn_tensor *t);
/* An initializer; data is borrowed. */
char *ctn__emit_stored(ctn__emit *e, const char *name, const ctn_desc *d, const void *data);
/* Constants. data is copied, row-major. */
char *ctn__emit_array(ctn__emit *e, ctn_dtype t, int ndim, const int64_t *dims, const void *data);
char *ctn__emit_list(ctn__emit *e, int n, const int64_t *v); /* (n) i64 */
char *ctn__emit_number(ctn__emit *e, ctn_dtype t, double v); /* no dimensions */
char *ctn__emit_reals(ctn__emit *e, ctn_dtype t, int ndim, const int64_t *dims, const double *v);

/* Is this size part of the model, or does it follow an open one? */
bool ctn__emit_fixed(const ctn__emit *e, int64_t size);
bool ctn__emit_all_fixed(const ctn__emit *e, const ctn_desc *d);
char *ctn__emit_size(ctn__emit *e, int64_t size);                   /* (1) i64 */
char *ctn__emit_shape(ctn__emit *e, int ndim, const int64_t *dims); /* (ndim) i64 */
/* From now on, the recorded size `to` stands for `value` when the model runs. */
void ctn__emit_follow(ctn__emit *e, int64_t to, char *value);

/* ---- nodes that many emitters need ----------------------------------------------------------- */

char *ctn__emit_shaped(ctn__emit *e, char *x, int ndim, const int64_t *dims);
char *ctn__emit_turned(ctn__emit *e, char *x, int ndim, const int64_t *axes);
/* x with the two axes exchanged; x itself if they are the same. */
char *ctn__emit_swap(ctn__emit *e, char *x, int ndim, int a, int b);
char *ctn__emit_as(ctn__emit *e, char *x, ctn_dtype t);
char *ctn__emit_scale(ctn__emit *e, char *x, ctn_dtype t, double by);
char *ctn__emit_unsqueeze(ctn__emit *e, char *x, int64_t axis);
/* type: ReduceSum and so on. */
char *ctn__emit_over(ctn__emit *e, const char *type, char *x, int n, const int64_t *axes,
                     bool keep);
/* 0, 1, ... size - 1 as i64. */
char *ctn__emit_range(ctn__emit *e, int64_t size);
/* A tensor of one value. */
char *ctn__emit_filled(ctn__emit *e, const ctn_desc *d, double v);

/* The batch normalisation of evaluation that a channel_affine was recorded for. False: it was
 * recorded for something else. */
typedef struct {
    ctn_tensor *x, *scale, *shift, *mean, *var;
    double eps;
} ctn__batch_norm_of;
bool ctn__emit_batch_norm_of(const ctn__node *n, ctn__batch_norm_of *b);
/* The convolution that a batch normalisation can be folded into; NULL: none. */
const ctn__node *ctn__emit_folds(const ctn__emit *e, const ctn__node *n);

/* What the products of a recurrent layer with its inputs are made of. bias NULL: none. */
typedef struct {
    ctn_tensor *x, *weight, *bias;
} ctn__rnn_of;
bool ctn__emit_rnn_of(const ctn__node *n, ctn__rnn_of *r);

#define CTN__EMIT(op, function, word, reads) ctn__emitter ctn__emit_##function;
#include "onnx/emit.def"
#undef CTN__EMIT

#endif
#endif
