/* SPDX-License-Identifier: Apache-2.0
 *
 * The type Tensor: values, operators and methods.
 */
#include "python.h"

PyTypeObject *tensor_type;
static PyObject *index_function; /* of catena/_index.py */

/* ---- life ------------------------------------------------------------------------------------ */

static tensor *tensor_alloc(context *c)
{
    static allocfunc alloc;
    if (!alloc) alloc = (allocfunc)PyType_GetSlot(tensor_type, Py_tp_alloc);
    tensor *x = (tensor *)alloc(tensor_type, 0);
    if (x) x->ctx = (context *)Py_NewRef((PyObject *)c);
    return x;
}

static void enter(tensor *x, ctn_tensor *t)
{
    context *c = x->ctx;
    x->t = t;
    x->serial = c->serial;
    x->next = c->live;
    x->link = &c->live;
    if (x->next) x->next->link = &x->next;
    c->live = x;
}

void detach(tensor *x)
{
    if (!x->link) return;
    *x->link = x->next;
    if (x->next) x->next->link = x->link;
    x->link = NULL;
    x->next = NULL;
    x->t = NULL;
}

PyObject *wrap(context *c, ctn_tensor *t, const char *at)
{
    tensor *x = tensor_alloc(c);
    if (!x) return NULL;
    enter(x, t);
    x->at = at;
    return (PyObject *)x;
}

PyObject *wrap_memory(context *c, void *p, const ctn_desc *d)
{
    tensor *x = tensor_alloc(c);
    if (!x) {
        PyMem_Free(p);
        return NULL;
    }
    x->memory = p;
    x->own = true;
    x->d = *d;
    return (PyObject *)x;
}

static ctn_desc desc_of(const ctn_field *f)
{
    int64_t n = 1;
    ctn_desc d = {.dtype = f->dtype, .ndim = f->ndim};
    for (int i = f->ndim; i-- > 0;) {
        d.dim[i] = f->shape[i];
        d.stride[i] = n;
        n *= f->shape[i];
    }
    if (f->channels_last && f->ndim >= 3) { /* (...,C,H,W) stored as (...,H,W,C) */
        int64_t *stride = &d.stride[f->ndim - 3];
        stride[0] = 1;
        stride[2] = f->shape[f->ndim - 3];
        stride[1] = stride[2] * f->shape[f->ndim - 1];
    }
    return d;
}

static size_t bytes_of(const ctn_desc *d)
{
    size_t n = ctn_dtype_size(d->dtype);
    for (int i = 0; i < d->ndim; i++) n *= (size_t)d->dim[i];
    return n;
}

PyObject *wrap_field(context *c, const ctn_field *f, void *p, PyObject *owner)
{
    tensor *x = tensor_alloc(c);
    if (!x) return NULL;
    x->d = desc_of(f);
    x->memory = p;
    x->view.obj = Py_XNewRef(owner);
    return (PyObject *)x;
}

PyObject *wrap_new(context *c, const ctn_field *f, void **p)
{
    const ctn_desc d = desc_of(f);
    *p = PyMem_Malloc(bytes_of(&d) + 1);
    return *p ? wrap_memory(c, *p, &d) : PyErr_NoMemory();
}

bool own_memory(tensor *x)
{
    const size_t n = bytes_of(&x->d);
    void *p = PyMem_Malloc(n + 1);
    if (!p) return PyErr_NoMemory() != NULL;
    memcpy(p, x->memory, n);
    x->memory = p;
    x->own = true;
    x->lent = false;
    return true;
}

static void tensor_free(PyObject *self)
{
    tensor *x = (tensor *)self;
    static freefunc release;
    PyTypeObject *type = Py_TYPE(self);
    if (!release) release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    detach(x);
    Py_XDECREF(x->failure);
    if (x->own) PyMem_Free(x->memory);
    else if (x->memory) PyBuffer_Release(&x->view);
    Py_XDECREF((PyObject *)x->ctx);
    release(self);
    Py_DECREF(type);
}

/* Raises. Returns NULL. */
static void *gone(const tensor *x)
{
    PyErr_Format(PyExc_RuntimeError,
                 "%s: the value of this tensor is gone, because the step in which it was computed "
                 "has ended: read it inside the step, or call keep() on it there",
                 x->at ? x->at : here());
    return NULL;
}

/* Raise what the first read of x has raised, or remember what this one does. */
static bool failed(tensor *x)
{
    PyObject *type, *trace;
    if (x->failure) PyErr_SetObject((PyObject *)Py_TYPE(x->failure), x->failure);
    else {
        PyErr_Fetch(&type, &x->failure, &trace);
        PyErr_NormalizeException(&type, &x->failure, &trace);
        PyErr_Restore(type, Py_XNewRef(x->failure), trace);
    }
    return false;
}

bool fetch(tensor *x)
{
    if (x->memory) return true;
    if (x->failure) return failed(x);
    if (!x->t) return gone(x) != NULL;
    ctn_desc d = {.dtype = ctn_dtype_of(x->t), .ndim = ctn_ndim(x->t)};
    int64_t n = 1;
    for (int i = d.ndim; i-- > 0;) {
        d.dim[i] = ctn_dim(x->t, i);
        d.stride[i] = n;
        n *= d.dim[i];
    }
    const size_t bytes = (size_t)n * ctn_dtype_size(d.dtype);
    void *p = PyMem_Malloc(bytes + 1);
    ctn_status st;
    if (!p) return PyErr_NoMemory() != NULL;
    CALL_BEGIN
        st = ctn_read(x->t, p, bytes);
    CALL_END
    if (!check(st)) {
        PyMem_Free(p);
        return failed(x);
    }
    x->memory = p;
    x->own = true;
    x->d = d;
    return true;
}

bool fetch_lasting(tensor *x)
{
    return fetch(x) && (!x->lent || own_memory(x));
}

/* ---- tensors in ops -------------------------------------------------------------------------- */

static PyObject *tensor_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *array;
    context *c = current_context();
    static char *names[] = {"array", NULL};
    (void)type;
    if (!c || !PyArg_ParseTupleAndKeywords(args, keywords, "O:Tensor", names, &array)) return NULL;
    tensor *x = tensor_alloc(c);
    if (x && take_array(x, array)) return (PyObject *)x;
    Py_XDECREF((PyObject *)x);
    return NULL;
}

static ctn_tensor *recorded_tensor(context *c, tensor *x)
{
    if (x->ctx != c) return foreign(x->at ? x->at : here(), "tensor");
    if (x->t) return x->t;
    if (!x->memory) return gone(x);
    ctn_tensor *t =
        ctn_input_strided_at(here(), c->c, x->memory, x->d.dtype, x->d.ndim, x->d.dim, x->d.stride);
    if (!t || !hold(c, (PyObject *)x)) return t ? NULL : (ctn_tensor *)raise_error();
    enter(x, t);
    return t;
}

ctn_tensor *recorded(context *c, PyObject *o)
{
    ctn_tensor *t = NULL;
    if (PyObject_TypeCheck(o, tensor_type)) return recorded_tensor(c, (tensor *)o);
    if (PyObject_TypeCheck(o, variable_type)) {
        if (((variable *)o)->ctx != c) return foreign(here(), "parameter");
        t = ctn_use_at(here(), ((variable *)o)->v);
        if (!t) raise_error();
        return t;
    }
    if (PyFloat_Check(o) || PyLong_Check(o)) {
        const double v = PyFloat_AsDouble(o);
        if (v == -1 && PyErr_Occurred()) return NULL;
        t = ctn_number_at(here(), c->c, v);
        if (!t) raise_error();
        return t;
    }
    if (!PyObject_CheckBuffer(o)) {
        PyErr_Format(PyExc_TypeError,
                     "expected a tensor, a parameter, an array or a number, not %R",
                     (PyObject *)Py_TYPE(o));
        return NULL;
    }
    tensor *x = tensor_alloc(c);
    if (x && take_array(x, o)) t = recorded_tensor(c, x);
    Py_XDECREF((PyObject *)x);
    return t;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool is_number(PyObject *o)
{
    return PyFloat_Check(o) || PyLong_Check(o);
}

typedef ctn_tensor *binary_op(const char *at, ctn_tensor *a, ctn_tensor *b);
typedef ctn_tensor *number_op(const char *at, ctn_tensor *x, double c);

/* An operand; a number has the type of the other operand if that is f64. */
static bool to_operand(one_op *op, PyObject *o, const ctn_tensor *other, ctn_tensor **t)
{
    if (!is_number(o) || !other || ctn_dtype_of(other) != CTN_F64) return to_tensor(op->c, o, t);
    const double value = PyFloat_AsDouble(o);
    if (value == -1 && PyErr_Occurred()) return false;
    *t = ctn_full_at(op->at, op->c->c, value, CTN_F64, 0, NULL);
    return *t || raise_error();
}

static PyObject *binary(PyObject *a, PyObject *b, binary_op *f)
{
    one_op op;
    ctn_tensor *ta = NULL, *tb = NULL;
    const bool swap = is_number(a);
    if (!op_begin(&op)) return NULL;
    const bool ok = swap ? to_tensor(op.c, b, &tb) && to_operand(&op, a, tb, &ta)
                         : to_tensor(op.c, a, &ta) && to_operand(&op, b, ta, &tb);
    return ok ? op_end(&op, f(op.at, ta, tb)) : op_fail(&op);
}

/* f(a, b), or g(a, c) if b is a number; in the second case the plan does not depend on it. */
static PyObject *mixed(PyObject *a, PyObject *b, binary_op *f, number_op *g, double sign)
{
    one_op op;
    ctn_tensor *t;
    if (!is_number(b)) return binary(a, b, f);
    const double c = PyFloat_AsDouble(b);
    if ((c == -1 && PyErr_Occurred()) || !op_begin(&op)) return NULL;
    if (!to_tensor(op.c, a, &t)) return op_fail(&op);
    return op_end(&op, g(op.at, t, sign * c));
}

PyObject *tensor_add(PyObject *a, PyObject *b)
{
    return is_number(a) ? mixed(b, a, ctn_add_at, ctn_shift_at, 1)
                        : mixed(a, b, ctn_add_at, ctn_shift_at, 1);
}

PyObject *tensor_sub(PyObject *a, PyObject *b)
{
    return mixed(a, b, ctn_sub_at, ctn_shift_at, -1);
}

PyObject *tensor_mul(PyObject *a, PyObject *b)
{
    return is_number(a) ? mixed(b, a, ctn_mul_at, ctn_scale_at, 1)
                        : mixed(a, b, ctn_mul_at, ctn_scale_at, 1);
}

PyObject *tensor_div(PyObject *a, PyObject *b)
{
    return binary(a, b, ctn_div_at);
}

static ctn_tensor *plain_matmul(const char *at, ctn_tensor *a, ctn_tensor *b)
{
    return ctn_matmul_at(at, a, b, 0, 0);
}

PyObject *tensor_matmul(PyObject *a, PyObject *b)
{
    return binary(a, b, plain_matmul);
}

PyObject *tensor_pow(PyObject *a, PyObject *b, PyObject *m)
{
    (void)m;
    return mixed(a, b, ctn_pow_at, ctn_power_at, 1);
}

static PyObject *unary(PyObject *a, ctn_tensor *(*f)(const char *at, ctn_tensor *x))
{
    one_op op;
    ctn_tensor *t;
    if (!op_begin(&op)) return NULL;
    if (!to_tensor(op.c, a, &t)) return op_fail(&op);
    return op_end(&op, f(op.at, t));
}

PyObject *tensor_neg(PyObject *a)
{
    return unary(a, ctn_neg_at);
}

static PyObject *tensor_abs(PyObject *a)
{
    return unary(a, ctn_abs_at);
}

static PyObject *tensor_compare(PyObject *a, PyObject *b, int how)
{
    static binary_op *const ops[] = {
        [Py_LT] = ctn_less_at,      [Py_LE] = ctn_less_equal_at, [Py_EQ] = ctn_equal_at,
        [Py_NE] = ctn_not_equal_at, [Py_GT] = ctn_greater_at,    [Py_GE] = ctn_greater_equal_at};
    if (b == Py_None && (how == Py_EQ || how == Py_NE)) return PyBool_FromLong(how == Py_NE);
    return binary(a, b, ops[how]);
}

static Py_hash_t tensor_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)self >> 4);
}

/* The only element as a number; false after an error. */
static bool only(PyObject *self, double *v)
{
    one_op op;
    ctn_tensor *t;
    if (!op_begin(&op)) return false;
    if (!to_tensor(op.c, self, &t)) {
        op_fail(&op);
        return false;
    }
    CALL_BEGIN
        *v = ctn_item(t);
    CALL_END
    const bool ok = ctn_error_status() == CTN_OK;
    if (!ok) {
        raise_error();
        op_fail(&op);
        return false;
    }
    return !op.mine || check(end_scope(op.c));
}

static bool is_float(const tensor *x)
{
    const ctn_dtype t = x->t ? ctn_dtype_of(x->t) : x->d.dtype;
    return t == CTN_F32 || t == CTN_F64 || t == CTN_BF16 || t == CTN_F16;
}

static PyObject *tensor_item(PyObject *self, PyObject *unused)
{
    double v;
    (void)unused;
    if (!only(self, &v)) return NULL;
    return is_float((tensor *)self) ? PyFloat_FromDouble(v) : PyLong_FromDouble(v);
}

static PyObject *tensor_float(PyObject *self)
{
    double v;
    return only(self, &v) ? PyFloat_FromDouble(v) : NULL;
}

static PyObject *tensor_int(PyObject *self)
{
    double v;
    return only(self, &v) ? PyLong_FromDouble(v) : NULL;
}

static int tensor_bool(PyObject *self)
{
    double v;
    return only(self, &v) ? v != 0 : -1;
}

PyObject *shape_tuple(int n, const int64_t *dims)
{
    PyObject *shape = PyTuple_New(n);
    for (int i = 0; shape && i < n; i++) {
        PyObject *v = PyLong_FromLongLong(dims[i]);
        if (v && PyTuple_SetItem(shape, i, v) == 0) continue;
        Py_DECREF(shape);
        return NULL;
    }
    return shape;
}

/* ---- methods --------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *unused)
{
    const tensor *x = (tensor *)self;
    (void)unused;
    if (!x->t && !x->memory) return gone(x);
    int64_t dims[CTN_MAX_DIMS];
    const int n = x->t ? ctn_ndim(x->t) : x->d.ndim;
    for (int i = 0; i < n; i++) dims[i] = x->t ? ctn_dim(x->t, i) : x->d.dim[i];
    return shape_tuple(n, dims);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    const tensor *x = (tensor *)self;
    (void)unused;
    if (!x->t && !x->memory) return gone(x);
    return PyUnicode_FromString(ctn_dtype_name(x->t ? ctn_dtype_of(x->t) : x->d.dtype));
}

static Py_ssize_t tensor_length(PyObject *self)
{
    const tensor *x = (tensor *)self;
    if (!x->t && !x->memory) return gone(x) ? 0 : -1;
    if ((x->t ? ctn_ndim(x->t) : x->d.ndim) > 0)
        return (Py_ssize_t)(x->t ? ctn_dim(x->t, 0) : x->d.dim[0]);
    PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no length");
    return -1;
}

static PyObject *tensor_keep(PyObject *self, PyObject *unused)
{
    tensor *x = (tensor *)self;
    (void)unused;
    if (!x->t && !x->memory) return gone(x);
    if (x->t && !x->memory && !ctn_keep(x->t)) return raise_error();
    x->kept = true;
    return Py_NewRef(self);
}

static PyObject *tensor_keep_graph(PyObject *self, PyObject *unused)
{
    tensor *x = (tensor *)self;
    (void)unused;
    if (!x->t) return gone(x);
    if (!ctn_keep_graph(x->t)) return raise_error();
    x->kept = true;
    return Py_NewRef(self);
}

static PyObject *tensor_detach(PyObject *self, PyObject *unused)
{
    (void)unused;
    return unary(self, ctn_detach_at);
}

static ctn_tensor *leaf(const char *at, ctn_tensor *t)
{
    (void)at;
    return ctn_with_grad(t);
}

static PyObject *tensor_with_grad(PyObject *self, PyObject *unused)
{
    (void)unused;
    return unary(self, leaf);
}

static PyObject *tensor_get(PyObject *self, PyObject *key)
{
    if (!index_function) return PyErr_Format(PyExc_RuntimeError, "import catena first");
    return PyObject_CallFunctionObjArgs(index_function, self, key, NULL);
}

static PyObject *tensor_repr(PyObject *self)
{
    tensor *x = (tensor *)self;
    one_op op;
    ctn_tensor *t;
    char text[4096];
    if (!x->t && !x->memory) return PyUnicode_FromString("Tensor(gone: its step has ended)");
    if (!op_begin(&op)) return NULL;
    if (!to_tensor(op.c, self, &t)) return op_fail(&op);
    if (ctn_tensor_text(t, text, sizeof text) < 0) {
        raise_error();
        return op_fail(&op);
    }
    if (op.mine && !check(end_scope(op.c))) return NULL;
    return PyUnicode_FromFormat("Tensor(%s)", text);
}

static PyMethodDef methods[] = {
    {"item", tensor_item, METH_NOARGS,
     "item($self)\n--\n\nThe only element as a Python number. Runs what it needs.\n\nRaises: "
     "ShapeError if there are several elements, RuntimeError if the step has ended."},
    {"keep", tensor_keep, METH_NOARGS,
     "keep($self)\n--\n\n"
     "Keep the value, so that it can be read after the optimizer step and after the end of the "
     "step. Returns the tensor."},
    {"keep_graph", tensor_keep_graph, METH_NOARGS,
     "keep_graph($self)\n--\n\n"
     "The same as keep(), and backward can still go through the tensor after an optimizer step."},
    {"detach", tensor_detach, METH_NOARGS,
     "detach($self)\n--\n\nThe same value; no gradient flows through it."},
    {"with_grad", tensor_with_grad, METH_NOARGS,
     "with_grad($self)\n--\n\n"
     "The same value as a leaf that grad() can differentiate with respect to."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"shape", get_shape, NULL, "Lengths of the dimensions.", NULL},
    {"dtype", get_dtype, NULL, "Data type: 'f32', 'i64' and so on.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, tensor_new},
    {Py_tp_dealloc, tensor_free},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_repr, tensor_repr},
    {Py_tp_hash, tensor_hash},
    {Py_tp_richcompare, tensor_compare},
    {Py_mp_subscript, tensor_get},
    {Py_mp_length, tensor_length},
    {Py_nb_add, tensor_add},
    {Py_nb_subtract, tensor_sub},
    {Py_nb_multiply, tensor_mul},
    {Py_nb_true_divide, tensor_div},
    {Py_nb_matrix_multiply, tensor_matmul},
    {Py_nb_power, tensor_pow},
    {Py_nb_negative, tensor_neg},
    {Py_nb_absolute, tensor_abs},
    {Py_nb_float, tensor_float},
    {Py_nb_int, tensor_int},
    {Py_nb_bool, tensor_bool},
    {Py_bf_getbuffer, get_buffer},
    {Py_bf_releasebuffer, release_buffer},
    {Py_tp_doc,
     "Tensor(array)\n--\n\nAn array without a copy, to be used in ops. Any object with the "
     "buffer protocol will do,\nsuch as a NumPy array; do not change it in a step that "
     "uses it. Ops are methods too:\nx.relu() is relu(x).\n\nWhat an op returns in a "
     "step can be used until the step ends. keep() keeps its value.\n\nRaises: "
     "TypeError for a type that Catena does not have."},
    {0, NULL},
};

static PyType_Spec spec = {"catena.Tensor", sizeof(tensor), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

static PyObject *set_index(PyObject *self, PyObject *f)
{
    (void)self;
    Py_XDECREF(index_function);
    index_function = Py_NewRef(f);
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"set_index", set_index, METH_O, "Set the function that tensor[key] calls."},
    {NULL, NULL, 0, NULL},
};

int add_tensor(PyObject *module)
{
    tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!tensor_type || PyModule_AddFunctions(module, functions) < 0) return -1;
    for (PyMethodDef *m = op_methods; m->ml_name; m++) {
        PyObject *method = PyDescr_NewMethod(tensor_type, m);
        if (!method || PyObject_SetAttrString((PyObject *)tensor_type, m->ml_name, method) < 0)
            return -1;
        Py_DECREF(method);
    }
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type);
}
