/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors of other packages (DLPack, both ways), the start of MPI, and messages between ranks.
 */
#include <stdlib.h>

#include "python.h"

/* ---- DLPack ---------------------------------------------------------------------------------- */

/* The structures of the DLPack standard, version 0. */
typedef struct {
    int32_t type, id;
} dl_device;
typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} dl_type;
typedef struct {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_type dtype;
    int64_t *shape, *strides;
    uint64_t offset;
} dl_tensor;
typedef struct dl_managed {
    dl_tensor t;
    void *owner;
    void (*deleter)(struct dl_managed *self);
    int64_t dims[2 * CTN_MAX_DIMS]; /* ours: shape and strides */
} dl_managed;

enum { DL_CPU = 1, DL_INT = 0, DL_UINT = 1, DL_FLOAT = 2, DL_BFLOAT = 4, DL_BOOL = 6 };

static dl_type dl_type_of(ctn_dtype t)
{
    const uint8_t bits = (uint8_t)(8 * ctn_dtype_size(t));
    const uint8_t code = t == CTN_BF16                  ? DL_BFLOAT
                         : t == CTN_BOOL                ? DL_BOOL
                         : t == CTN_U8                  ? DL_UINT
                         : t == CTN_I64 || t == CTN_I32 ? DL_INT
                                                        : DL_FLOAT;
    return (dl_type){code, bits, 1};
}

static ctn_dtype type_of_dl(dl_type d)
{
    for (int t = CTN_F32; t <= CTN_BOOL && d.lanes == 1; t++) {
        const dl_type one = dl_type_of((ctn_dtype)t);
        if (one.code == d.code && one.bits == d.bits) return (ctn_dtype)t;
    }
    return 0;
}

static void dl_delete(dl_managed *m)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    Py_XDECREF((PyObject *)m->owner);
    PyMem_Free(m);
    PyGILState_Release(gil);
}

static void capsule_free(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor")) return; /* somebody has taken it */
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (m) m->deleter(m);
}

/* to_dlpack(tensor): a capsule that shares the memory of the value, and holds the tensor. */
static PyObject *to_dlpack(PyObject *self, PyObject *object)
{
    tensor *x = (tensor *)object;
    (void)self;
    if (!PyObject_TypeCheck(object, tensor_type))
        return PyErr_Format(PyExc_TypeError, "expected a tensor");
    if (!fetch_lasting(x)) return NULL;
    const size_t n = (size_t)x->d.ndim;
    dl_managed *m = PyMem_Calloc(1, sizeof *m);
    if (!m) return PyErr_NoMemory();
    m->t = (dl_tensor){.data = x->memory,
                       .device = {DL_CPU, 0},
                       .ndim = x->d.ndim,
                       .dtype = dl_type_of(x->d.dtype),
                       .shape = m->dims,
                       .strides = m->dims + n};
    memcpy(m->t.shape, x->d.dim, n * sizeof(int64_t));
    memcpy(m->t.strides, x->d.stride, n * sizeof(int64_t));
    m->owner = Py_NewRef(object);
    m->deleter = dl_delete;
    PyObject *capsule = PyCapsule_New(m, "dltensor", capsule_free);
    if (!capsule) dl_delete(m);
    return capsule;
}

static void taken_free(PyObject *capsule)
{
    dl_managed *m = PyCapsule_GetPointer(capsule, "used_dltensor");
    if (m && m->deleter) m->deleter(m);
}

/* from_dlpack(capsule): a tensor that shares the memory. */
static PyObject *from_dlpack(PyObject *self, PyObject *capsule)
{
    context *c = current_context();
    (void)self;
    dl_managed *m = c ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    if (!m) return NULL;
    const dl_tensor *t = &m->t;
    const ctn_dtype dtype = type_of_dl(t->dtype);
    bool fits = t->device.type == DL_CPU && dtype != 0 && t->ndim >= 0 && t->ndim <= CTN_MAX_DIMS;
    for (int i = 0; fits && i < t->ndim; i++) fits = t->shape[i] >= 0;
    if (!fits)
        return PyErr_Format(PyExc_TypeError,
                            "from_dlpack: expected a tensor in the memory of the CPU with at most "
                            "%d dimensions and a type that Catena has",
                            CTN_MAX_DIMS);
    ctn_field f = {.dtype = dtype, .ndim = t->ndim};
    for (int i = 0; i < t->ndim; i++) f.shape[i] = t->shape[i];
    if (PyCapsule_SetName(capsule, "used_dltensor") < 0 ||
        PyCapsule_SetDestructor(capsule, taken_free) < 0)
        return NULL;
    PyObject *x = wrap_field(c, &f, (char *)t->data + t->offset, capsule);
    for (int i = 0; x && t->strides && i < t->ndim; i++) ((tensor *)x)->d.stride[i] = t->strides[i];
    return x;
}

/* ---- MPI ------------------------------------------------------------------------------------- */

/* Did a launcher of MPI start this process? */
static bool launched(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK",
                                        "SLURM_STEP_NUM_TASKS", "MPI_LOCALNRANKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return true;
    return false;
}

/* True if this call has started MPI. */
static PyObject *mpi_init(PyObject *self, PyObject *unused)
{
    ctn_status st;
    (void)self, (void)unused;
    if (!launched()) return PyBool_FromLong(0);
    CALL_BEGIN
        st = ctn_mpi_init(NULL, NULL);
    CALL_END
    return check(st) ? PyBool_FromLong(1) : NULL;
}

/* comm_send_bytes(comm, bytes, to) */
static PyObject *send_bytes(PyObject *self, PyObject *args)
{
    PyObject *o = NULL;
    Py_buffer bytes;
    int to = 0;
    ctn_comm *c = NULL;
    ctn_status st = CTN_EARG;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oy*i", &o, &bytes, &to)) return NULL;
    const bool known = to_handle("comm", o, kind_of("comm"), &c);
    if (known) {
        CALL_BEGIN
            st = ctn_comm_send_bytes(c, bytes.buf, (size_t)bytes.len, to);
        CALL_END
    }
    PyBuffer_Release(&bytes);
    return known && check(st) ? Py_NewRef(Py_None) : NULL;
}

/* comm_recv_bytes(comm, from): the next message. */
static PyObject *recv_bytes(PyObject *self, PyObject *args)
{
    PyObject *o = NULL;
    int from = 0;
    size_t n = 0;
    ctn_comm *c = NULL;
    ctn_status st;
    (void)self;
    if (!PyArg_ParseTuple(args, "Oi", &o, &from) || !to_handle("comm", o, kind_of("comm"), &c))
        return NULL;
    CALL_BEGIN
        st = ctn_comm_recv_size(c, from, &n);
    CALL_END
    if (!check(st)) return NULL;
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)n);
    if (!result) return NULL;
    char *at = PyBytes_AsString(result);
    CALL_BEGIN
        st = ctn_comm_recv_bytes(c, at, n, from);
    CALL_END
    if (check(st)) return result;
    Py_DECREF(result);
    return NULL;
}

static PyMethodDef functions[] = {
    {"to_dlpack", to_dlpack, METH_O, "A DLPack capsule that shares the value of a tensor."},
    {"from_dlpack_capsule", from_dlpack, METH_O, "A tensor that shares the memory of a capsule."},
    {"mpi_init", mpi_init, METH_NOARGS, "Start MPI if a launcher started this process."},
    {"comm_send_bytes", send_bytes, METH_VARARGS, "Send bytes to a rank without waiting."},
    {"comm_recv_bytes", recv_bytes, METH_VARARGS, "Wait for the next message from a rank."},
    {NULL, NULL, 0, NULL},
};

int add_exchange(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
