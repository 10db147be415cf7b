/* SPDX-License-Identifier: Apache-2.0
 *
 * The arrays of a file of weights as tensors, for catena.weights.
 */
#include <catena/io.h>

#include "python.h"

/* Array i as a tensor; bf16, which NumPy does not have, as f32. */
static PyObject *read_array(context *c, const ctn_weights *w, int64_t i, const char **name)
{
    ctn_weights_array a;
    void *to = NULL;
    ctn_status st;
    if (!check(ctn_weights_get_array(w, i, &a))) return NULL;
    ctn_field f = {.dtype = a.dtype == CTN_BF16 ? CTN_F32 : a.dtype, .ndim = a.ndim};
    size_t bytes = ctn_dtype_size(f.dtype);
    for (int d = 0; d < a.ndim; d++) {
        f.shape[d] = a.shape[d];
        bytes *= (size_t)a.shape[d];
    }
    *name = a.name;
    PyObject *x = wrap_new(c, &f, &to);
    if (!x) return NULL;
    CALL_BEGIN
        st = ctn_weights_read(w, i, f.dtype, to, bytes);
    CALL_END
    if (check(st)) return x;
    Py_DECREF(x);
    return NULL;
}

static PyObject *read_all(context *c, const ctn_weights *w)
{
    PyObject *all = PyDict_New();
    for (int64_t i = 0; all && i < ctn_weights_arrays(w); i++) {
        const char *name = NULL;
        PyObject *x = read_array(c, w, i, &name);
        if (!x || PyDict_SetItemString(all, name, x) < 0) {
            Py_DECREF(all);
            all = NULL;
        }
        Py_XDECREF(x);
    }
    return all;
}

/* weights_values(path): a dictionary of tensors. */
static PyObject *weights_values(PyObject *self, PyObject *object)
{
    const char *path = NULL;
    ctn_weights *w = NULL;
    ctn_status st;
    context *c = current_context();
    (void)self;
    if (!c || !to_text("path", object, &path)) return NULL;
    CALL_BEGIN
        st = ctn_weights_open(&w, path);
    CALL_END
    PyObject *all = check(st) ? read_all(c, w) : NULL;
    ctn_weights_free(w);
    return all;
}

static PyMethodDef functions[] = {
    {"weights_values", weights_values, METH_O, "The arrays of a file of weights, by name."},
    {NULL, NULL, 0, NULL},
};

int add_weights(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
