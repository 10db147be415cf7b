/* SPDX-License-Identifier: Apache-2.0
 *
 * Errors of the library as exceptions. catena.Error is the base class. An error that Python has a
 * class for is also of that class, so `except ValueError` works as usual.
 */
#include "python.h"

#define FAILED_BEFORE                                                                            \
    "an op of this step has failed before, and its exception was caught inside the step: leave " \
    "the step when an op fails"

static PyObject *base;

static const struct {
    ctn_status status;
    const char *name, *doc;
    PyObject **also;
} classes[] = {
    {CTN_ENOMEM, "catena.OutOfMemory", "There is not enough memory.", &PyExc_MemoryError},
    {CTN_EARG, "catena.ArgumentError", "An argument is not valid.", &PyExc_ValueError},
    {CTN_ESHAPE, "catena.ShapeError", "Shapes do not fit.", &PyExc_ValueError},
    {CTN_EDTYPE, "catena.DtypeError", "A data type is not supported.", &PyExc_TypeError},
    {CTN_EIO, "catena.FileError", "Input or output failed.", &PyExc_OSError},
    {CTN_EFORMAT, "catena.FormatError", "A file is malformed.", &PyExc_ValueError},
    {CTN_ENOTFOUND, "catena.NotFound", "There is no such name.", &PyExc_LookupError},
};
enum { CLASSES = sizeof classes / sizeof *classes };
static PyObject *made[CLASSES];

static PyObject *class_of(ctn_status st)
{
    for (int i = 0; i < CLASSES; i++)
        if (classes[i].status == st) return made[i];
    return base;
}

/* The library's message with the names of Python, cast instead of ctn_cast; the lines after the
 * first, which say where it was raised, as they are. */
static PyObject *message(void)
{
    const char *said = ctn_error_message(), *trace = strchr(said, '\n');
    const size_t n = trace ? (size_t)(trace - said) : strlen(said);
    PyObject *first = PyUnicode_DecodeUTF8(said, (Py_ssize_t)n, "replace"); /* it may be cut */
    PyObject *prefix = PyUnicode_FromString("ctn_"), *none = PyUnicode_FromString("");
    PyObject *spoken = first && prefix && none ? PyUnicode_Replace(first, prefix, none, -1) : NULL;
    PyObject *text = spoken ? PyUnicode_FromFormat("%U%s", spoken, said + n) : NULL;
    Py_XDECREF(spoken);
    Py_XDECREF(first);
    Py_XDECREF(prefix);
    Py_XDECREF(none);
    return text;
}

PyObject *raise_error(void)
{
    const ctn_status st = ctn_error_status();
    PyObject *text = st < 0 ? message() : PyUnicode_FromString(FAILED_BEFORE);
    PyObject *e = text ? PyObject_CallFunctionObjArgs(class_of(st), text, NULL) : NULL;
    PyObject *code = e ? PyLong_FromLong(st) : NULL;
    ctn_error_clear();
    if (code && PyObject_SetAttrString(e, "status", code) == 0)
        PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    Py_XDECREF(code);
    Py_XDECREF(e);
    Py_XDECREF(text);
    return NULL;
}

void *foreign(const char *at, const char *what)
{
    PyErr_Format(PyExc_ValueError,
                 "%s: this %s belongs to another context than the current one: make both in the "
                 "same context, or call use_context() before",
                 at, what);
    return NULL;
}

bool check(ctn_status st)
{
    if (st >= 0) return true;
    raise_error();
    return false;
}

static int add_class(PyObject *module, const char *name, PyObject *c)
{
    return c ? PyModule_AddObjectRef(module, strchr(name, '.') + 1, c) : -1;
}

int add_errors(PyObject *module)
{
    base = PyErr_NewExceptionWithDoc("catena.Error",
                                     "An error of the library. `status` is its code; the message "
                                     "names the line of your program that recorded the op.",
                                     NULL, NULL);
    if (add_class(module, "catena.Error", base) < 0) return -1;
    for (int i = 0; i < CLASSES; i++) {
        PyObject *bases = PyTuple_Pack(2, base, *classes[i].also);
        if (!bases) return -1;
        made[i] = PyErr_NewExceptionWithDoc(classes[i].name, classes[i].doc, bases, NULL);
        Py_DECREF(bases);
        if (add_class(module, classes[i].name, made[i]) < 0) return -1;
    }
    return 0;
}
