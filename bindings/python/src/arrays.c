/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrays in and out of tensors through the buffer protocol, without a copy.
 */
#include "python.h"

static ctn_dtype type_of_format(const char *f, Py_ssize_t size)
{
    if (!f) return CTN_U8;
    if (*f == '@' || *f == '=' || *f == '<') f++;
    if (f[0] == 0 || f[1] != 0) return 0;
    switch (*f) {
    case 'f': return CTN_F32;
    case 'd': return CTN_F64;
    case 'e': return CTN_F16;
    case '?': return CTN_BOOL;
    case 'B': return CTN_U8;
    case 'i':
    case 'l':
    case 'q': return size == 8 ? CTN_I64 : CTN_I32;
    default: return 0;
    }
}

bool has_type(const Py_buffer *b, ctn_dtype t)
{
    if (t == CTN_BF16) return b->format && strcmp(b->format, "H") == 0; /* its bits */
    return type_of_format(b->format, b->itemsize) == t;
}

bool take_array(tensor *x, PyObject *o)
{
    if (PyObject_GetBuffer(o, &x->view, PyBUF_RECORDS_RO) < 0) return false;
    x->memory = x->view.buf;
    const ctn_dtype t = type_of_format(x->view.format, x->view.itemsize);
    if (t == 0 || x->view.ndim > CTN_MAX_DIMS) {
        PyErr_Format(PyExc_TypeError,
                     "the array has %d dimensions of type '%s', expected at most %d dimensions of "
                     "f32, f64, f16, i64, i32, u8 or bool",
                     x->view.ndim, x->view.format, CTN_MAX_DIMS);
        return false;
    }
    x->d = (ctn_desc){.dtype = t, .ndim = x->view.ndim};
    for (int i = 0; i < x->view.ndim; i++) {
        if (x->view.strides[i] % x->view.itemsize != 0) {
            PyErr_SetString(PyExc_ValueError, "the array's strides are no multiples of an element");
            return false;
        }
        x->d.dim[i] = x->view.shape[i];
        x->d.stride[i] = x->view.strides[i] / x->view.itemsize;
    }
    return true;
}

static const char *format_of(ctn_dtype t)
{
    switch (t) {
    case CTN_F32: return "f";
    case CTN_F64: return "d";
    case CTN_F16: return "e";
    case CTN_I64: return "q";
    case CTN_I32: return "i";
    case CTN_BOOL: return "?";
    default: return t == CTN_BF16 ? "H" : "B"; /* bf16: its bits */
    }
}

bool row_major(const ctn_desc *d)
{
    int64_t n = 1;
    for (int i = d->ndim; i-- > 0; n *= d->dim[i])
        if (d->dim[i] != 1 && d->stride[i] != n) return false;
    return true;
}

/* Can the value be shown as somebody has asked for? */
static bool can_show(const tensor *x, int flags)
{
    const bool strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    const bool rows = !strides || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
    if ((flags & PyBUF_WRITABLE) && !x->own && x->view.readonly)
        PyErr_SetString(PyExc_BufferError, "the tensor shows an array that cannot be changed");
    else if (rows && !row_major(&x->d))
        PyErr_SetString(PyExc_BufferError, "the tensor is not stored row by row: use numpy()");
    return !PyErr_Occurred();
}

int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    tensor *x = (tensor *)self;
    if (!fetch_lasting(x) || !can_show(x, flags)) return -1;
    const Py_ssize_t size = (Py_ssize_t)ctn_dtype_size(x->d.dtype);
    Py_ssize_t *shape = PyMem_Malloc(2 * CTN_MAX_DIMS * sizeof *shape);
    if (!shape) {
        PyErr_NoMemory();
        return -1;
    }
    view->len = size;
    for (int i = 0; i < x->d.ndim; i++) {
        shape[i] = (Py_ssize_t)x->d.dim[i];
        shape[CTN_MAX_DIMS + i] = (Py_ssize_t)x->d.stride[i] * size;
        view->len *= shape[i];
    }
    view->obj = Py_NewRef(self);
    view->buf = x->memory;
    view->readonly = !x->own && x->view.readonly;
    view->itemsize = size;
    view->format = (char *)format_of(x->d.dtype);
    view->ndim = x->d.ndim;
    view->shape = shape;
    view->strides = shape + CTN_MAX_DIMS;
    view->suboffsets = NULL;
    view->internal = shape;
    return 0;
}

void release_buffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    PyMem_Free(view->internal);
}
