/* SPDX-License-Identifier: Apache-2.0
 *
 * What modules and optimizers need beside the generated functions: modules whose forward function
 * is Python code, parameters, and backward passes.
 */
#include "python.h"

static const handle_kind *module_kind(void)
{
    static const handle_kind *kind;
    if (!kind) kind = kind_of("module");
    return kind;
}

/* The forward function of a module of Python, for callers in C: self is the Python object, which
 * is not owned, because it owns the module. */
static ctn_tensor *forward(void *self, ctn_module *m, ctn_tensor *x)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    ctn_tensor *result = NULL;
    context *c = current_context();
    const int was = c ? guard_scopes(c) : 0;
    (void)m;
    PyObject *in = c ? wrap(c, x, here()) : NULL;
    PyObject *y = in ? PyObject_CallFunctionObjArgs(self, in, NULL) : NULL;
    if (y && c->depth > c->floor)
        PyErr_SetString(PyExc_RuntimeError, "the module has left a step open: end it there");
    else if (y) result = recorded(c, y);
    if (!result && PyErr_Occurred()) {
        ctn_fail(CTN_EARG, "the forward function of a module raised an exception");
        PyErr_WriteUnraisable(self);
    }
    if (c) unguard_scopes(c, was);
    Py_XDECREF(y);
    Py_XDECREF(in);
    PyGILState_Release(gil);
    return result;
}

static PyObject *module_new(PyObject *self, PyObject *object)
{
    context *c = current_context();
    ctn_module *m = NULL;
    (void)self;
    if (!c || !check(ctn_module_new(&m, c->c, object == Py_None ? NULL : forward, object, NULL)))
        return NULL;
    return wrap_handle(module_kind(), m, NULL);
}

static PyObject *add_variable_to(PyObject *args, bool state)
{
    PyObject *object, *shape, *init = Py_None, *type = Py_None;
    const char *name;
    ctn_module *m;
    ctn_var *v = NULL;
    ctn_dtype dtype = CTN_F32;
    numbers dims = {0};
    ctn_init values = {.struct_size = sizeof values};
    if (!PyArg_ParseTuple(args, "OsO|OO", &object, &name, &shape, &init, &type)) return NULL;
    init = init == Py_None ? NULL : init;
    if (!to_handle("module", object, module_kind(), &m) || !to_numbers("shape", shape, &dims) ||
        !to_init("init", init, &values) ||
        !to_dtype("dtype", type == Py_None ? NULL : type, &dtype))
        return NULL;
    const ctn_status st =
        (state ? ctn_module_state : ctn_module_param)(&v, m, name, dtype, dims.n, dims.at,
                                                      init ? &values : NULL);
    if (!check(st)) return NULL;
    return wrap_variable(current_context(), v, name, owner_of(object));
}

static PyObject *module_param(PyObject *self, PyObject *args)
{
    (void)self;
    return add_variable_to(args, false);
}

static PyObject *module_state(PyObject *self, PyObject *args)
{
    (void)self;
    return add_variable_to(args, true);
}

typedef struct {
    ctn_module *m;
    PyObject *list, *owner;
} listing;

static ctn_status add_listed(void *user, const char *name, ctn_dtype dtype, int ndim,
                             const int64_t *dims, void *data)
{
    listing *l = user;
    (void)dtype, (void)ndim, (void)dims, (void)data;
    ctn_var *v = ctn_module_find(l->m, name);
    PyObject *p = v ? wrap_variable(current_context(), v, name, l->owner) : NULL;
    const bool ok = p && PyList_Append(l->list, p) == 0;
    Py_XDECREF(p);
    return ok ? CTN_OK : ctn_fail(CTN_ENOMEM, "out of memory");
}

/* All parameters and states, under their first names. */
static PyObject *module_variables(PyObject *self, PyObject *object)
{
    listing l = {.owner = owner_of(object)};
    (void)self;
    if (!to_handle("module", object, module_kind(), &l.m)) return NULL;
    l.list = PyList_New(0);
    if (l.list && check(ctn_module_visit(l.m, add_listed, &l))) return l.list;
    Py_XDECREF(l.list);
    return NULL;
}

static void add_fresh(void *list, const char *name, const ctn_desc *here, const ctn_desc *file)
{
    PyObject *text = PyUnicode_FromString(name);
    (void)here, (void)file;
    if (text && PyList_Append(list, text) < 0) PyErr_Clear(); /* only a report */
    Py_XDECREF(text);
}

/* Load weights with another head; returns the names of the parameters that keep their values. */
static PyObject *load_new_head(PyObject *self, PyObject *args)
{
    PyObject *object;
    const char *path;
    ctn_module *m;
    (void)self;
    if (!PyArg_ParseTuple(args, "Os", &object, &path) ||
        !to_handle("module", object, module_kind(), &m))
        return NULL;
    PyObject *list = PyList_New(0);
    if (list && check(ctn_weights_load(m, path,
                                       CTN_OPT(ctn_weights_opt, .new_head = 1, .fresh = add_fresh,
                                               .user = list))))
        return list;
    Py_XDECREF(list);
    return NULL;
}

/* Contribute gradients; the loss can be read after the step. */
static PyObject *backward(PyObject *self, PyObject *args)
{
    PyObject *object, *loss;
    ctn_optim *o;
    context *c = current_context();
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "OO", &object, &loss) ||
        !to_handle("optimizer", object, kind_of("optim"), &o) ||
        !of_context(c, "optimizer", object))
        return NULL;
    if (c->depth == 0)
        return PyErr_Format(PyExc_RuntimeError,
                            "backward() needs a step: compute the loss and call it inside "
                            "`with catena.step():`");
    ctn_tensor *t = recorded(c, loss);
    if (!t || !check(ctn_backward_at(here(), o, t))) return NULL;
    if (PyObject_TypeCheck(loss, tensor_type)) ((tensor *)loss)->kept = true;
    return Py_NewRef(Py_None);
}

/* grad(y, xs): gradients as tensors. */
static PyObject *grad(PyObject *self, PyObject *args)
{
    PyObject *y, *xs;
    ctn_tensor *t, *x[CTN_MAX_OUT], *g[CTN_MAX_OUT] = {NULL};
    context *c = current_context();
    int n = 0;
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "OO", &y, &xs)) return NULL;
    if (c->depth == 0)
        return PyErr_Format(PyExc_RuntimeError, "grad() needs a step: `with catena.step():`");
    if (!to_tensor(c, y, &t) || !to_tensors(c, "xs", xs, CTN_MAX_OUT, x, &n)) return NULL;
    one_op op = {.c = c, .at = here()};
    return op_end_all(&op, ctn_grad_at(op.at, t, n, x, g), n, g);
}

/* retain(t, into): carry the value of t to the next step; into: what an earlier call returned. */
static PyObject *retain(PyObject *self, PyObject *args)
{
    PyObject *x, *into = Py_None;
    ctn_retained *r = NULL;
    ctn_tensor *t;
    context *c = current_context();
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "O|O", &x, &into)) return NULL;
    if (into != Py_None && !to_handle("into", into, kind_of("retained"), &r)) return NULL;
    if (!to_tensor(c, x, &t) || !check(ctn_retain(&r, t))) return NULL;
    return into == Py_None ? wrap_handle(kind_of("retained"), r, NULL) : Py_NewRef(into);
}

/* onnx_export(module, path, shape, dtype, batch, fold, external, opset): a module with one input.
 * The scope is open for modules of Python, whose ops would otherwise run at once. */
static PyObject *onnx_export(PyObject *self, PyObject *args)
{
    PyObject *object, *shape, *type;
    const char *path;
    long long batch;
    int fold, external, opset;
    ctn_module *m;
    numbers dims = {0};
    ctn_field in = {.dtype = CTN_F32};
    context *c = current_context();
    (void)self;
    if (!c ||
        !PyArg_ParseTuple(args, "OsOOLppi", &object, &path, &shape, &type, &batch, &fold, &external,
                          &opset) ||
        !to_handle("module", object, module_kind(), &m) || !of_context(c, "module", object) ||
        !to_numbers("shape", shape, &dims) || !to_dtype("dtype", type, &in.dtype))
        return NULL;
    in.ndim = dims.n;
    memcpy(in.shape, dims.at, sizeof in.shape);
    if (!check(begin_scope(c))) return NULL;
    const ctn_status st =
        ctn_onnx_export_module(m, path, 1, &in,
                               CTN_OPT(ctn_onnx_export_opt, .batch = batch, .fold_batch_norm = fold,
                                       .external = external, .opset = opset));
    const bool ok = check(st);
    const ctn_status ended = end_scope(c);
    return ok && check(ended) ? Py_NewRef(Py_None) : NULL;
}

static PyMethodDef functions[] = {
    {"module_new", module_new, METH_O,
     "A module whose forward function is the object that is given; None: it is never called."},
    {"module_param", module_param, METH_VARARGS,
     "module_param($module, module, name, shape, init=None, dtype='f32', /)\n--\n\n"
     "Add a parameter."},
    {"module_state", module_state, METH_VARARGS,
     "module_state($module, module, name, shape, init=None, dtype='f32', /)\n--\n\nAdd a state."},
    {"module_variables", module_variables, METH_O, "All parameters and states of a module."},
    {"load_new_head", load_new_head, METH_VARARGS,
     "load_new_head($module, module, path, /)\n--\n\n"
     "Load weights whose last layer may have another number of outputs."},
    {"onnx_export", onnx_export, METH_VARARGS, "Write a module as an ONNX model."},
    {"backward", backward, METH_VARARGS,
     "backward($module, optimizer, loss, /)\n--\n\nContribute the gradients of the loss."},
    {"retain", retain, METH_VARARGS,
     "retain($module, t, into=None, /)\n--\n\nCarry the value of a tensor to the next step, where "
     "retained_value() returns it.\n\nParameters:\n    t: tensor\n    into: what an earlier call "
     "returned; it gets the new value\n\nRaises: Error without an open step."},
    {"grad", grad, METH_VARARGS,
     "grad($module, y, xs, /)\n--\n\nGradients of sum(y) with respect to tensors, which can be "
     "differentiated again.\n\nParameters:\n    y: tensor\n    xs: parameters, and tensors "
     "on which with_grad() was called\n\nRaises: Error if y does not depend on one of them, "
     "RuntimeError without an open step."},
    {NULL, NULL, 0, NULL},
};

int add_modules(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
