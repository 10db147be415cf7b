/* SPDX-License-Identifier: Apache-2.0
 *
 * The extension module.
 */
#include "python.h"

static PyObject *package(PyObject *self, PyObject *folder)
{
    PyObject *bytes = PyUnicode_AsUTF8String(folder);
    const char *text = bytes ? PyBytes_AsString(bytes) : NULL;
    const int st = text ? set_package(self, text) : -1;
    Py_XDECREF(bytes);
    return st < 0 ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"set_package", package, METH_O, "Source lines in files of this folder are not shown."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "catena._core",
                                        "The part of catena that is written in C.",
                                        -1,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *m = PyModule_Create(&definition);
    if (!m) return NULL;
    if (add_errors(m) == 0 && add_context(m) == 0 && add_variable(m) == 0 && add_tensor(m) == 0 &&
        add_handles(m) == 0 && add_modules(m) == 0 && add_data(m) == 0 && add_exchange(m) == 0 &&
        add_trainer(m) == 0 && add_weights(m) == 0 && PyModule_AddFunctions(m, functions) == 0 &&
        PyModule_AddFunctions(m, op_functions) == 0)
        return m;
    Py_DECREF(m);
    return NULL;
}
