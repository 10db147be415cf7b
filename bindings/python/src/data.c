/* SPDX-License-Identifier: Apache-2.0
 *
 * Data sets whose samples come from Python objects or from arrays, and batches of a loader. The
 * loader's threads take the GIL only while they ask a Python object for a sample.
 */
#include <stdatomic.h>
#include <time.h>

#include "python.h"

/* ---- threads and the end of the interpreter -------------------------------------------------- */

/* Once the interpreter ends, it stops any thread that asks for the GIL where it stands, also in the
 * middle of the loader. So no thread may ask after the exit handlers have run. */
static atomic_int asking; /* threads that ask an object for a sample */
static atomic_bool ending;

static bool may_ask(void)
{
    atomic_fetch_add(&asking, 1);
    if (!atomic_load(&ending)) return true;
    atomic_fetch_sub(&asking, 1);
    return false;
}

/* end_threads(): from now on, data sets of Python give no samples. Waits for those that are being
 * made, up to 10 s: an object may never return. */
static PyObject *end_threads(PyObject *self, PyObject *unused)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)self;
    (void)unused;
    atomic_store(&ending, true);
    Py_BEGIN_ALLOW_THREADS
        for (int i = 0; i < 10000 && atomic_load(&asking) > 0; i++) nanosleep(&pause, NULL);
    Py_END_ALLOW_THREADS
    return Py_NewRef(Py_None);
}

/* ---- data sets of Python --------------------------------------------------------------------- */

typedef struct {
    PyObject *object; /* has __getitem__ */
    int64_t count;
    int fields;
    ctn_field field[CTN_DATA_FIELDS];
} python_data;

static int64_t data_count(void *self)
{
    return ((python_data *)self)->count;
}

static int data_fields(void *self)
{
    return ((python_data *)self)->fields;
}

static void data_field(void *self, int f, ctn_field *out)
{
    *out = ((python_data *)self)->field[f];
}

static void data_free(void *self)
{
    python_data *d = self;
    const PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF(d->object);
    PyMem_Free(d);
    PyGILState_Release(gil);
}

static size_t bytes_of(const ctn_field *f)
{
    size_t n = ctn_dtype_size(f->dtype);
    for (int i = 0; i < f->ndim; i++) n *= (size_t)f->shape[i];
    return n;
}

/* Turn the Python exception into an error of the library. */
static ctn_status python_failed(int64_t index)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *s = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const ctn_status st = ctn_fail(CTN_EFORMAT, "sample %lld: %s", (long long)index,
                                   s ? s : "the data set raised an exception");
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return st;
}

/* Copy one value of a sample, an array or a number. */
static bool copy_value(PyObject *o, const ctn_field *f, void *to)
{
    Py_buffer b;
    if (!PyObject_CheckBuffer(o)) {
        const double v = PyFloat_AsDouble(o);
        if (v == -1 && PyErr_Occurred()) return false;
        if (f->ndim == 0 && f->dtype == CTN_F32) memcpy(to, &(float){(float)v}, sizeof(float));
        else if (f->ndim == 0 && f->dtype == CTN_F64) memcpy(to, &v, sizeof v);
        else if (f->ndim == 0 && f->dtype == CTN_I64)
            memcpy(to, &(int64_t){(int64_t)v}, sizeof(int64_t));
        else PyErr_SetString(PyExc_TypeError, "a number does not fit the field");
        return !PyErr_Occurred();
    }
    if (PyObject_GetBuffer(o, &b, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) < 0) return false;
    const bool fits = (size_t)b.len == bytes_of(f) && has_type(&b, f->dtype);
    if (fits) memcpy(to, b.buf, (size_t)b.len);
    else
        PyErr_Format(PyExc_ValueError,
                     "it has %zd bytes of type '%s', expected %zd bytes of type %s as in sample 0",
                     b.len, b.format ? b.format : "B", (Py_ssize_t)bytes_of(f),
                     ctn_dtype_name(f->dtype));
    PyBuffer_Release(&b);
    return fits;
}

static ctn_status data_get(void *self, const ctn_sample *s, void *const *to)
{
    python_data *d = self;
    if (!may_ask())
        return ctn_fail(CTN_ESTATE, "Python is ending: the data set gives no more samples");
    const PyGILState_STATE gil = PyGILState_Ensure();
    ctn_status st = CTN_OK;
    PyObject *index = PyLong_FromLongLong(s->index);
    PyObject *item = index ? PyObject_GetItem(d->object, index) : NULL;
    PyObject *all = !item ? NULL : PyTuple_Check(item) ? Py_NewRef(item) : PyTuple_Pack(1, item);
    if (!all || PyTuple_Size(all) != d->fields) {
        if (all) PyErr_SetString(PyExc_ValueError, "it has another number of fields than sample 0");
        st = python_failed(s->index);
    }
    for (int f = 0; f < d->fields && st == CTN_OK; f++)
        if (!copy_value(PyTuple_GetItem(all, f), &d->field[f], to[f])) st = python_failed(s->index);
    Py_XDECREF(all);
    Py_XDECREF(item);
    Py_XDECREF(index);
    PyGILState_Release(gil);
    atomic_fetch_sub(&asking, 1);
    return st;
}

/* One (dtype, shape). */
static bool to_field(PyObject *o, ctn_field *f)
{
    PyObject *type, *shape;
    numbers dims = {0};
    if (!PyArg_ParseTuple(o, "OO", &type, &shape) || !to_dtype("dtype", type, &f->dtype) ||
        !to_numbers("shape", shape, &dims))
        return false;
    f->ndim = dims.n;
    for (int i = 0; i < dims.n; i++) f->shape[i] = dims.at[i];
    return true;
}

/* dataset_new(object, count, [(dtype, shape), ...]) */
static PyObject *dataset_new(PyObject *self, PyObject *args)
{
    static const ctn_dataset_vt vt = {.struct_size = sizeof vt,
                                      .count = data_count,
                                      .fields = data_fields,
                                      .field = data_field,
                                      .get = data_get,
                                      .free = data_free};
    PyObject *object, *fields;
    long long count;
    ctn_dataset *ds = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "OLO", &object, &count, &fields)) return NULL;
    const Py_ssize_t n = PySequence_Size(fields);
    if (n < 1 || n > CTN_DATA_FIELDS)
        return PyErr_Format(PyExc_ValueError, "a sample has %zd fields, expected 1 to %d", n,
                            CTN_DATA_FIELDS);
    python_data *d = PyMem_Calloc(1, sizeof *d);
    if (!d) return PyErr_NoMemory();
    *d = (python_data){.count = count, .fields = (int)n};
    bool ok = true;
    for (int i = 0; ok && i < d->fields; i++) {
        PyObject *one = PySequence_GetItem(fields, i);
        ok = one && to_field(one, &d->field[i]);
        Py_XDECREF(one);
    }
    if (ok && check(ctn_dataset_new(&ds, &vt, d))) {
        d->object = Py_NewRef(object);
        return wrap_handle(kind_of("dataset"), ds, NULL);
    }
    PyMem_Free(d);
    return NULL;
}

/* arrays_open(tensors): sample i is row i of each. The tensors hold their arrays. */
static PyObject *arrays_open(PyObject *self, PyObject *list)
{
    ctn_field field[CTN_DATA_FIELDS] = {{0}};
    const void *data[CTN_DATA_FIELDS];
    ctn_dataset *ds = NULL;
    int64_t count = 0;
    (void)self;
    PyObject *all = PySequence_Tuple(list);
    const Py_ssize_t n = all ? PyTuple_Size(all) : -1;
    bool ok = n > 0 && n <= CTN_DATA_FIELDS;
    if (all && !ok) PyErr_Format(PyExc_ValueError, "expected 1 to %d arrays", CTN_DATA_FIELDS);
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        tensor *x = (tensor *)PyTuple_GetItem(all, i);
        ok = PyObject_TypeCheck((PyObject *)x, tensor_type) && fetch_lasting(x) && x->d.ndim > 0 &&
             row_major(&x->d);
        if (!ok) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_TypeError, "expected arrays that are stored row by row");
            break;
        }
        if (i == 0) count = x->d.dim[0];
        ok = x->d.dim[0] == count;
        if (!ok) PyErr_SetString(PyExc_ValueError, "the arrays have different lengths");
        field[i] = (ctn_field){.dtype = x->d.dtype, .ndim = x->d.ndim - 1};
        for (int k = 1; k < x->d.ndim; k++) field[i].shape[k - 1] = x->d.dim[k];
        data[i] = x->memory;
    }
    if (ok && check(ctn_arrays_open(&ds, count, (int)n, field, data)))
        return wrap_handle(kind_of("dataset"), ds, all);
    Py_XDECREF(all);
    return NULL;
}

/* dataset_get(dataset, index): the fields of a sample, in memory of their own. */
static PyObject *dataset_get(PyObject *self, PyObject *args)
{
    PyObject *object;
    long long index;
    ctn_dataset *ds;
    void *to[CTN_DATA_FIELDS];
    ctn_status st;
    context *c = current_context();
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "OL", &object, &index) ||
        !to_handle("dataset", object, kind_of("dataset"), &ds))
        return NULL;
    const int n = ctn_dataset_fields(ds);
    PyObject *all = PyTuple_New(n);
    for (int f = 0; all && f < n; f++) {
        ctn_field field = *ctn_dataset_field(ds, f);
        if (field.ndim > 0) field.shape[0] = ctn_dataset_length(ds, f, index);
        PyObject *x = field.shape[0] < 0 ? NULL : wrap_new(c, &field, &to[f]);
        if (!x || PyTuple_SetItem(all, f, x) < 0) {
            if (!PyErr_Occurred()) PyErr_SetString(PyExc_IndexError, "there is no such sample");
            Py_DECREF(all);
            all = NULL;
        }
    }
    if (!all) return NULL;
    CALL_BEGIN
        st = ctn_dataset_get(ds, index, to);
    CALL_END
    if (check(st)) return all;
    Py_DECREF(all);
    return NULL;
}

/* ---- batches --------------------------------------------------------------------------------- */

/* A loader lends its memory to the tensors of a batch, and writes the next one there. */

/* Fields of the last batch that somebody still has get memory of their own. reader: the context
 * whose open step goes on to read the loader's memory, or NULL. */
static bool settle(handle *loader, context **reader)
{
    const Py_ssize_t n = loader->last ? PyTuple_Size(loader->last) : 0;
    bool ok = true;
    *reader = NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        tensor *x = (tensor *)PyTuple_GetItem(loader->last, i);
        if (Py_REFCNT((PyObject *)x) < 2) continue;
        if (x->t) *reader = x->ctx;
        if (x->lent) ok = own_memory(x) && ok;
    }
    return ok;
}

static void forget_last(handle *loader)
{
    PyObject *last = loader->last;
    loader->last = NULL;
    Py_XDECREF(last);
}

/* Raises unless the loader may write the next batch. */
static bool may_advance(handle *loader)
{
    context *reader;
    if (!settle(loader, &reader)) return false;
    if (!reader) forget_last(loader);
    else
        PyErr_SetString(PyExc_RuntimeError, "the open step uses the last batch: end the step "
                                            "before the next batch is taken");
    return !reader;
}

context *loader_ends(handle *loader)
{
    context *reader;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!settle(loader, &reader)) /* without memory for copies, their values are gone */
        for (Py_ssize_t i = 0; i < PyTuple_Size(loader->last); i++) {
            tensor *x = (tensor *)PyTuple_GetItem(loader->last, i);
            if (x->lent) x->memory = NULL;
        }
    PyErr_Restore(type, value, trace);
    forget_last(loader);
    return reader ? reader : loader->ctx;
}

bool share_loader(PyObject *o)
{
    handle *loader = (handle *)owner_of(o);
    loader->shared = true;
    return may_advance(loader);
}

/* The fields of a batch as a tuple of tensors. */
static PyObject *batch_fields(const ctn_batch *b, bool copy)
{
    context *c = current_context();
    PyObject *all = c ? PyTuple_New(b->fields) : NULL;
    for (int f = 0; all && f < b->fields; f++) {
        tensor *x = (tensor *)wrap_field(c, &b->field[f], b->data[f], NULL);
        if (x) x->lent = true;
        const bool ok = x && (!copy || own_memory(x));
        if (ok && PyTuple_SetItem(all, f, (PyObject *)x) == 0) continue;
        if (!ok) Py_XDECREF((PyObject *)x);
        Py_DECREF(all);
        return NULL;
    }
    return all;
}

/* loader_next(loader): the fields of the next batch as a list; None at the end of an epoch. */
static PyObject *loader_next(PyObject *self, PyObject *object)
{
    ctn_loader *l;
    ctn_batch b;
    ctn_status st;
    (void)self;
    if (!to_handle("loader", object, kind_of("loader"), &l)) return NULL;
    handle *loader = (handle *)owner_of(object);
    if (loader->busy)
        return PyErr_Format(PyExc_RuntimeError, "another thread takes a batch of this loader: give "
                                                "each thread a loader of its own");
    if (!may_advance(loader)) return NULL;
    loader->busy = true;
    Py_INCREF((PyObject *)loader);
    CALL_BEGIN
        st = ctn_loader_next(l, &b);
    CALL_END
    loader->busy = false;
    PyObject *fields = NULL;
    if (!check(st)) fields = NULL;
    else if (st == CTN_END) fields = Py_NewRef(Py_None);
    else if ((loader->last = batch_fields(&b, loader->shared)))
        fields = PySequence_List(loader->last);
    Py_DECREF((PyObject *)loader);
    return fields;
}

static PyObject *loader_stats(PyObject *self, PyObject *object)
{
    ctn_loader *l;
    ctn_loader_stats s;
    (void)self;
    if (!to_handle("loader", object, kind_of("loader"), &l)) return NULL;
    ctn_loader_get_stats(l, &s);
    return Py_BuildValue("{sK sK sK sK sK}", "batches", s.batches, "samples", s.samples, "skipped",
                         s.skipped, "wait_ns", s.wait_ns, "fill_ns", s.fill_ns);
}

static PyMethodDef functions[] = {
    {"dataset_new", dataset_new, METH_VARARGS, "A data set of the samples of a Python object."},
    {"end_threads", end_threads, METH_NOARGS, "Data sets of Python give no more samples."},
    {"arrays_open", arrays_open, METH_O, "A data set of the rows of tensors."},
    {"dataset_get", dataset_get, METH_VARARGS, "One sample of a data set as tensors."},
    {"loader_next", loader_next, METH_O, "The next batch of a loader."},
    {"loader_stats", loader_stats, METH_O, "Counters of a loader."},
    {NULL, NULL, 0, NULL},
};

int add_data(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
