/* SPDX-License-Identifier: Apache-2.0
 *
 * The type Parameter: a variable of the library, usually one of a module. It can be used wherever a
 * tensor can.
 */
#include "python.h"

PyTypeObject *variable_type;

PyObject *wrap_variable(context *c, ctn_var *v, const char *name, PyObject *owner)
{
    variable *x =
        (variable *)((allocfunc)PyType_GetSlot(variable_type, Py_tp_alloc))(variable_type, 0);
    if (!x) return NULL;
    if (owner && PyObject_TypeCheck(owner, handle_type)) c = ((handle *)owner)->ctx;
    x->ctx = (context *)Py_NewRef((PyObject *)c);
    x->v = v;
    x->owner = Py_XNewRef(owner);
    x->name = PyUnicode_FromString(name ? name : ctn_var_name(v));
    if (x->name) return (PyObject *)x;
    Py_DECREF((PyObject *)x);
    return NULL;
}

static void free_var(void *v)
{
    ctn_var_free(v);
}

static void variable_free(PyObject *self)
{
    variable *x = (variable *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (!x->owner && x->v) free_later(x->ctx, free_var, x->v);
    Py_XDECREF(x->owner);
    Py_XDECREF(x->name);
    Py_XDECREF((PyObject *)x->ctx);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static size_t bytes_of(const ctn_desc *d)
{
    size_t n = ctn_dtype_size(d->dtype);
    for (int i = 0; i < d->ndim; i++) n *= (size_t)d->dim[i];
    return n;
}

/* A tensor without a scope that has the value of v, or its gradient. */
static PyObject *copy_out(PyObject *self, ctn_status (*get)(ctn_var *v, void *dst, size_t bytes))
{
    variable *x = (variable *)self;
    const ctn_desc *d = ctn_var_desc(x->v);
    ctn_status st;
    void *p = PyMem_Malloc(bytes_of(d) + 1);
    if (!p) return PyErr_NoMemory();
    CALL_BEGIN
        st = get(x->v, p, bytes_of(d));
    CALL_END
    if (check(st)) return wrap_memory(x->ctx, p, d);
    PyMem_Free(p);
    return NULL;
}

static PyObject *get_data(PyObject *self, void *unused)
{
    (void)unused;
    return copy_out(self, ctn_var_get);
}

static PyObject *get_grad(PyObject *self, void *unused)
{
    (void)unused;
    return copy_out(self, ctn_var_grad);
}

static int set_data(PyObject *self, PyObject *array, void *unused)
{
    variable *x = (variable *)self;
    const ctn_desc *d = ctn_var_desc(x->v);
    Py_buffer b;
    (void)unused;
    if (!array) {
        PyErr_SetString(PyExc_TypeError, "the value of a parameter cannot be deleted");
        return -1;
    }
    if (PyObject_GetBuffer(array, &b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return -1;
    bool same = b.ndim == d->ndim && has_type(&b, d->dtype);
    for (int i = 0; i < b.ndim && same; i++) same = b.shape[i] == d->dim[i];
    if (!same)
        PyErr_Format(PyExc_ValueError,
                     "%U: the array has another shape or type than the parameter, %s", x->name,
                     ctn_dtype_name(d->dtype));
    const bool ok = same && check(ctn_var_set(x->v, b.buf, (size_t)b.len));
    PyBuffer_Release(&b);
    return ok ? 0 : -1;
}

static PyObject *get_shape(PyObject *self, void *unused)
{
    const ctn_desc *d = ctn_var_desc(((variable *)self)->v);
    (void)unused;
    return shape_tuple(d->ndim, d->dim);
}

static PyObject *get_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(ctn_dtype_name(ctn_var_desc(((variable *)self)->v)->dtype));
}

static PyObject *get_name(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((variable *)self)->name);
}

static PyObject *get_trainable(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(ctn_var_trainable(((variable *)self)->v));
}

static int set_trainable(PyObject *self, PyObject *on, void *unused)
{
    const int yes = on ? PyObject_IsTrue(on) : -1;
    (void)unused;
    if (yes < 0) return -1;
    ctn_var_set_trainable(((variable *)self)->v, yes);
    return 0;
}

static PyObject *assign(PyObject *self, PyObject *value)
{
    variable *x = (variable *)self;
    ctn_tensor *t;
    if (x->ctx != current_context()) return foreign(here(), "parameter");
    if (x->ctx->depth == 0)
        return PyErr_Format(PyExc_RuntimeError,
                            "assign() is recorded in a step; outside of steps, set .data");
    if (!to_tensor(x->ctx, value, &t)) return NULL;
    return check(ctn_assign_at(here(), x->v, t)) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *variable_repr(PyObject *self)
{
    variable *x = (variable *)self;
    PyObject *shape = get_shape(self, NULL);
    if (!shape) return NULL;
    PyObject *s = PyUnicode_FromFormat("Parameter(%R, %s, shape=%R)", x->name,
                                       ctn_dtype_name(ctn_var_desc(x->v)->dtype), shape);
    Py_DECREF(shape);
    return s;
}

static PyMethodDef methods[] = {
    {"assign", assign, METH_O,
     "assign($self, value, /)\n--\n\nRecord a write of a tensor, which runs with the step."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"data", get_data, set_data, "A copy of the value; assigning an array writes it.", NULL},
    {"grad", get_grad, NULL, "A copy of the gradient, between backward and the optimizer's step.",
     NULL},
    {"shape", get_shape, NULL, "Lengths of the dimensions.", NULL},
    {"dtype", get_dtype, NULL, "Data type.", NULL},
    {"name", get_name, NULL, "Dotted name in the module that listed it.", NULL},
    {"trainable", get_trainable, set_trainable, "False: optimizers leave it alone.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, variable_free},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_repr, variable_repr},
    {Py_nb_add, tensor_add},
    {Py_nb_subtract, tensor_sub},
    {Py_nb_multiply, tensor_mul},
    {Py_nb_true_divide, tensor_div},
    {Py_nb_matrix_multiply, tensor_matmul},
    {Py_nb_power, tensor_pow},
    {Py_nb_negative, tensor_neg},
    {Py_tp_doc, "A parameter or state of a module."},
    {0, NULL},
};

static PyType_Spec spec = {"catena.Parameter", sizeof(variable), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

int add_variable(PyObject *module)
{
    variable_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!variable_type) return -1;
    return PyModule_AddObjectRef(module, "Parameter", (PyObject *)variable_type);
}
