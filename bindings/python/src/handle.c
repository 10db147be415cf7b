/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects of the library that Python only passes on: modules, optimizers, data sets and so on. Each
 * is a Python object that frees the library's one, unless another object owns that. It holds
 * references to whatever it was made from, so that this lives longer.
 */
#include "python.h"

PyTypeObject *handle_type;
int running;

PyObject *wrap_handle(const handle_kind *kind, void *p, PyObject *uses)
{
    if (!p) {
        Py_XDECREF(uses);
        return Py_NewRef(Py_None);
    }
    handle *h = (handle *)((allocfunc)PyType_GetSlot(handle_type, Py_tp_alloc))(handle_type, 0);
    context *c = current_context();
    if (!h || !c) {
        Py_XDECREF(uses);
        return NULL;
    }
    h->kind = kind;
    h->p = p;
    h->ctx = (context *)Py_NewRef((PyObject *)c);
    h->uses = uses;
    h->owned = true;
    return (PyObject *)h;
}

static void release(handle *h)
{
    context *c = h->last ? loader_ends(h) : h->ctx;
    if (h->owned && h->p && h->kind->release) free_later(c, h->kind->release, h->p);
    h->p = NULL;
}

static PyObject *handle_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (running > 0)
        return PyErr_Format(
            PyExc_RuntimeError,
            "close: the library is running and may use this %s: close it afterwards",
            ((handle *)self)->kind->name);
    release((handle *)self);
    return Py_NewRef(Py_None);
}

static void handle_free(PyObject *self)
{
    handle *h = (handle *)self;
    PyTypeObject *type = Py_TYPE(self);
    release(h);
    Py_XDECREF(h->uses);
    Py_XDECREF(h->owner);
    Py_XDECREF((PyObject *)h->ctx);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

bool to_handle(const char *what, PyObject *o, const handle_kind *kind, void *out)
{
    void *p = NULL;
    if (o && PyObject_HasAttrString(o, "_handle")) { /* a Python class around it */
        PyObject *inner = PyObject_GetAttrString(o, "_handle");
        const bool ok = inner && to_handle(what, inner, kind, out);
        Py_XDECREF(inner);
        return ok;
    }
    if (o) {
        if (!PyObject_TypeCheck(o, handle_type) || ((handle *)o)->kind != kind) {
            PyErr_Format(PyExc_TypeError, "%s is %R, expected a %s", what, o, kind->name);
            return false;
        }
        p = ((handle *)o)->p;
        if (!p) {
            PyErr_Format(PyExc_RuntimeError, "%s: this %s was freed", what, kind->name);
            return false;
        }
    }
    memcpy(out, &p, sizeof p);
    return true;
}

static handle *inner_handle(PyObject *o)
{
    if (PyObject_TypeCheck(o, handle_type)) return (handle *)Py_NewRef(o);
    return (handle *)PyObject_GetAttrString(o, "_handle");
}

bool of_context(const context *c, const char *what, PyObject *o)
{
    handle *h = inner_handle(o);
    const bool same = h && h->ctx == c;
    Py_XDECREF((PyObject *)h);
    if (h && !same) (void)foreign(here(), what);
    return same;
}

PyObject *owner_of(PyObject *o)
{
    handle *h = inner_handle(o); /* the object keeps it alive */
    Py_XDECREF((PyObject *)h);
    if (!h) PyErr_Clear();
    return h ? (PyObject *)h : o;
}

bool give_to(PyObject *child, PyObject *owner)
{
    handle *c = inner_handle(child), *o = inner_handle(owner);
    if (c && o) {
        c->owned = false;
        Py_XDECREF(c->owner);
        c->owner = Py_NewRef((PyObject *)o);
    }
    Py_XDECREF((PyObject *)c);
    Py_XDECREF((PyObject *)o);
    return c && o;
}

static PyObject *handle_repr(PyObject *self)
{
    const handle *h = (handle *)self;
    return PyUnicode_FromFormat("<catena %s at %p>", h->kind->name, h->p);
}

static PyObject *get_kind(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(((handle *)self)->kind->name);
}

static PyGetSetDef getters[] = {
    {"kind", get_kind, NULL, "What it is: 'module', 'optim' and so on.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"close", handle_close, METH_NOARGS, "Free the object of the library now."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, handle_free},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_repr, handle_repr},
    {Py_tp_doc, "An object of the library."},
    {0, NULL},
};

static PyType_Spec spec = {"catena.Handle", sizeof(handle), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

int add_handles(PyObject *module)
{
    handle_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!handle_type) return -1;
    return PyModule_AddObjectRef(module, "Handle", (PyObject *)handle_type);
}
