/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension module catena._core: contexts, tensors and variables as Python objects, on the
 * stable ABI of CPython, so that one binary serves every version from 3.11 on. Most functions are
 * generated from bindings/interface.json (bindings/generate/python.py) and use what is below.
 *
 * A Python tensor outlives its scope. While the scope is open it stands for a recorded tensor of
 * the library. A tensor made from an array, and one whose value was read or kept, has memory of its
 * own and can be used in any later scope. Outside of scopes every op runs at once.
 */
#ifndef CATENA_PYTHON_H
#define CATENA_PYTHON_H

/* One binary serves Python 3.11 and later. Do not parse arguments with a length, such as "y#":
 * compiled with the headers of Python 3.13, they fail in 3.11 and 3.12. Use "y*". */
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdbool.h>
#include <string.h>

#include <catena/catena.h>

typedef struct tensor tensor;

typedef struct {
    PyObject_HEAD ctn_context *c;
    int depth;             /* open scopes */
    int floor;             /* of these, scopes that Python's end() must not close */
    uint64_t serial;       /* number of the outermost scope */
    tensor *live;          /* tensors of the open scope */
    PyObject *held;        /* list of objects whose memory the open scope reads */
    struct burial *buried; /* what is freed when no scope is open */
} context;

struct tensor {
    PyObject_HEAD context *ctx;
    ctn_tensor *t;        /* valid while scope `serial` of ctx is open */
    uint64_t serial;      /* 0: none */
    tensor *next, **link; /* in ctx->live */
    bool kept;            /* its value is read when the scope ends */
    void *memory;         /* the value; NULL: only in the scope */
    bool own;             /* memory is ours; otherwise it belongs to view */
    bool lent;            /* memory is a loader's, whose `last` has this tensor */
    const char *at;       /* the source line that recorded it; NULL: made from an array */
    PyObject *failure;    /* the exception of the first read, for NumPy, which asks again */
    Py_buffer view;
    ctn_desc d; /* of memory */
};

typedef struct {
    PyObject_HEAD context *ctx;
    ctn_var *v;
    PyObject *owner; /* the object that frees v; NULL: this one does */
    PyObject *name;
} variable;

/* A kind of objects that Python only passes on. */
typedef struct {
    const char *name;
    void (*release)(void *p);
} handle_kind;

typedef struct {
    PyObject_HEAD context *ctx;
    const handle_kind *kind;
    void *p;
    bool owned;      /* this object frees p */
    PyObject *owner; /* otherwise: the object that does */
    PyObject *uses;  /* what must live longer; may be NULL */
    PyObject *last;  /* of a loader: tuple of the fields of the last batch, or NULL */
    bool shared;     /* of a loader: trainers take batches from it too */
    bool busy;       /* of a loader: a thread waits for a batch */
} handle;

extern PyTypeObject *context_type, *tensor_type, *variable_type, *handle_type;

/* Around a call of the library that may run long or call Python: other threads may run. */
#define CALL_BEGIN \
    running++;     \
    Py_BEGIN_ALLOW_THREADS
#define CALL_END         \
    Py_END_ALLOW_THREADS \
    running--;
extern int running; /* such calls, in all threads (handle.c) */

/* ---- errors (error.c) ------------------------------------------------------------------------ */

/* Raise: something named `what` was made in another context than the current one. Returns NULL. */
void *foreign(const char *at, const char *what);
/* Raise the library's error of this thread as a Python exception and clear it. Returns NULL. */
PyObject *raise_error(void);
/* True if st is no error; otherwise raises. */
bool check(ctn_status st);
int add_errors(PyObject *module);

/* ---- source lines (line.c) ------------------------------------------------------------------- */

/* File and line of the Python code outside of this package that is running. Lives forever. */
const char *here(void);
int set_package(PyObject *module, const char *folder);

/* ---- contexts and scopes (context.c) --------------------------------------------------------- */

/* The context that new objects belong to, borrowed; NULL after an error. */
context *current_context(void);
ctn_status begin_scope(context *c);
/* Read what is kept, then close the scope. */
ctn_status end_scope(context *c);
/* Let the open scope hold on to an object. */
bool hold(context *c, PyObject *o);
/* No scope is open any more: let go of what it held, and free what was to be freed later. */
void scopes_ended(context *c);
/* While the library calls Python code, that code must not close the scopes around the call. Returns
 * what unguard_scopes() needs, which closes those that the code has left open. */
int guard_scopes(context *c);
void unguard_scopes(context *c, int was);
/* Call release(p) as soon as no scope of c is open. */
void free_later(context *c, void (*release)(void *p), void *p);
int add_context(PyObject *module);

/* A scope for one op, if none is open. */
typedef struct {
    context *c;
    const char *at; /* the source line of the call */
    bool mine;
} one_op;

bool op_begin(one_op *op);
/* The result, or NULL and an exception. */
PyObject *op_end(one_op *op, ctn_tensor *t);
/* The same for several results, as a tuple; those that are NULL become None. */
PyObject *op_end_all(one_op *op, ctn_status st, int n, ctn_tensor *const *t);
/* The same without results. */
PyObject *op_end_none(one_op *op, ctn_status st);
/* After an error with a Python exception set. Returns NULL. */
PyObject *op_fail(one_op *op);

/* ---- tensors (tensor.c) ---------------------------------------------------------------------- */

/* at: the source line that recorded t. */
PyObject *wrap(context *c, ctn_tensor *t, const char *at);
/* Give x memory with its value. */
bool fetch(tensor *x);
/* The same for somebody who keeps the address: the memory lives as long as x. */
bool fetch_lasting(tensor *x);
/* Forget that x belongs to a scope. */
void detach(tensor *x);
/* The recorded tensor that an object stands for in the open scope: a tensor, a variable, a number
 * or an array. NULL after an error. */
ctn_tensor *recorded(context *c, PyObject *o);
int add_tensor(PyObject *module);
int add_variable(PyObject *module);
/* name NULL: the variable's own. owner NULL: the result frees it. c: unless the owner has one. */
PyObject *wrap_variable(context *c, ctn_var *v, const char *name, PyObject *owner);
/* A tensor without a scope that owns memory p, made by PyMem_Malloc. */
PyObject *wrap_memory(context *c, void *p, const ctn_desc *d);
PyObject *shape_tuple(int n, const int64_t *dims);
/* A tensor without a scope that shows memory of another object; owner NULL: of a loader. */
PyObject *wrap_field(context *c, const ctn_field *f, void *p, PyObject *owner);
/* The same with memory of its own, *p, which is not set. */
PyObject *wrap_new(context *c, const ctn_field *f, void **p);
/* Copy the memory that a loader has lent to x. */
bool own_memory(tensor *x);
/* Let x show the memory of an array (arrays.c). */
bool take_array(tensor *x, PyObject *o);
/* Are these elements of type t? */
bool has_type(const Py_buffer *b, ctn_dtype t);
bool row_major(const ctn_desc *d);
/* The buffer protocol of tensors (arrays.c); shape and strides are always given. */
int get_buffer(PyObject *self, Py_buffer *view, int flags);
void release_buffer(PyObject *self, Py_buffer *view);

PyObject *tensor_add(PyObject *a, PyObject *b);
PyObject *tensor_sub(PyObject *a, PyObject *b);
PyObject *tensor_mul(PyObject *a, PyObject *b);
PyObject *tensor_div(PyObject *a, PyObject *b);
PyObject *tensor_matmul(PyObject *a, PyObject *b);
PyObject *tensor_pow(PyObject *a, PyObject *b, PyObject *m);
PyObject *tensor_neg(PyObject *a);

/* ---- other objects (handle.c) ---------------------------------------------------------------- */

/* The kind with this name (generated). */
const handle_kind *kind_of(const char *name);
/* Steals the reference to `uses`. p NULL gives None. */
PyObject *wrap_handle(const handle_kind *kind, void *p, PyObject *uses);
/* out: a pointer to a pointer. o NULL gives NULL. o may be a Python object with a _handle. */
bool to_handle(const char *what, PyObject *o, const handle_kind *kind, void *out);
/* Does the module or optimizer in o belong to c? Raises if not. */
bool of_context(const context *c, const char *what, PyObject *o);
/* The library's object in `owner` now owns the one in `child`. */
bool give_to(PyObject *child, PyObject *owner);
int add_handles(PyObject *module);
int add_modules(PyObject *module);
int add_data(PyObject *module);
int add_exchange(PyObject *module);
int add_trainer(PyObject *module);
int add_weights(PyObject *module);

/* ---- arguments (arguments.c) ----------------------------------------------------------------- */

enum { MOST_ARGUMENTS = 24 };

typedef struct {
    const char *name;            /* of the function */
    int n;                       /* arguments */
    uint32_t required;           /* bit i: argument i must be given */
    int positional;              /* how many may be given without their name */
    const char *const *argument; /* their names */
} signature;

/* out[i]: argument i, borrowed, or NULL if it was not given or is None. */
bool arguments(const signature *s, PyObject *const *args, Py_ssize_t n, PyObject *names,
               PyObject **out);

typedef struct {
    int n;
    int64_t at[CTN_MAX_DIMS];
} numbers;

/* NULL leaves the value as it is. */
bool to_uint64(const char *what, PyObject *o, uint64_t *x);
bool to_int64(const char *what, PyObject *o, int64_t *x);
bool to_int(const char *what, PyObject *o, int *x);
bool to_double(const char *what, PyObject *o, double *x);
bool to_dtype(const char *what, PyObject *o, ctn_dtype *x);
/* One number or a sequence of at most CTN_MAX_DIMS. */
bool to_numbers(const char *what, PyObject *o, numbers *x);
/* One number for all, or as many as there are. */
bool to_array(const char *what, PyObject *o, int n, int64_t *x);
/* The same for padding, of which a 0 becomes CTN_PAD_NONE. */
bool to_pads(const char *what, PyObject *o, int n, int64_t *x);
bool to_doubles(const char *what, PyObject *o, int n, double *x);
/* Was one of n arguments given? */
bool any_given(PyObject *const *in, int n);
/* A name from the table, which ends with NULL, or a number. */
typedef struct {
    const char *name;
    int value;
} named;
bool to_enum(const char *what, PyObject *o, const named *table, int *x);
bool to_tensor(context *c, PyObject *o, ctn_tensor **x);
/* A sequence of at most `most` tensors. */
bool to_tensors(context *c, const char *what, PyObject *o, int most, ctn_tensor **x, int *n);
bool to_variable(const char *what, PyObject *o, ctn_var **x);
/* *x lives as long as o. */
bool to_text(const char *what, PyObject *o, const char **x);
/* A dictionary with the fields of ctn_init, such as {"kind": "he_normal"}, or a number. */
bool to_init(const char *what, PyObject *o, ctn_init *x);

/* Parameters as the library takes them. Call free_variables() after the call, also if
 * to_variables() has failed. */
typedef struct {
    ctn_vars vars;
    PyObject *all; /* tuple of the parameters */
} variables;
bool to_variables(PyObject *o, variables *x);
void free_variables(variables *x);
/* Parameters of an object as a list; raises if there are none because of an error. */
PyObject *list_variables(context *c, ctn_vars v, PyObject *owner);
/* The Handle in an object, borrowed. */
PyObject *owner_of(PyObject *o);
/* A trainer will take batches from the loader in o. */
bool share_loader(PyObject *o);
/* Nothing shows the loader's memory any more, except the open step of the context that is returned,
 * in which the loader is freed. */
context *loader_ends(handle *loader);

/* ---- ops (generated) ------------------------------------------------------------------------- */

extern PyMethodDef op_functions[];
extern PyMethodDef op_methods[]; /* of tensors */

typedef PyObject *call(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
/* Call f with x as its first argument. */
PyObject *as_method(call *f, PyObject *x, PyObject *const *args, Py_ssize_t n, PyObject *names);

#endif
