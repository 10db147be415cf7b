/* SPDX-License-Identifier: Apache-2.0
 *
 * Contexts and scopes. One context is the current one; it is made at the first use if the program
 * made none.
 */
#include "python.h"

PyTypeObject *context_type;
static context *now; /* owned */

/* ---- scopes ---------------------------------------------------------------------------------- */

ctn_status begin_scope(context *c)
{
    const ctn_status st = ctn_scope_begin(c->c);
    if (st >= 0 && c->depth++ == 0) c->serial++;
    return st;
}

struct burial {
    void (*release)(void *p);
    void *p;
    struct burial *next;
};

/* Without the GIL, because it may wait for threads that need it. */
static void release_now(void (*release)(void *p), void *p)
{
    Py_BEGIN_ALLOW_THREADS
        release(p);
    Py_END_ALLOW_THREADS
}

void free_later(context *c, void (*release)(void *p), void *p)
{
    struct burial *b = c->depth > 0 ? PyMem_Malloc(sizeof *b) : NULL;
    if (!b) {
        release_now(release, p);
        return;
    }
    struct burial **end = &c->buried;
    while (*end) end = &(*end)->next;
    *b = (struct burial){release, p, NULL};
    *end = b;
}

static void bury(context *c)
{
    while (c->buried) {
        struct burial *b = c->buried;
        c->buried = b->next;
        release_now(b->release, b->p);
        PyMem_Free(b);
    }
}

/* Read the values that were kept. A value that cannot be read is lost, not an error: the scope may
 * have ended early. */
static void fetch_kept(context *c)
{
    for (tensor *x = c->live, *next; x; x = next) {
        next = x->next;
        if (x->kept && !x->memory && !fetch(x)) PyErr_Clear();
    }
}

ctn_status end_scope(context *c)
{
    ctn_status st;
    if (c->depth == 1 && !PyErr_Occurred() && ctn_error_status() == CTN_OK) fetch_kept(c);
    CALL_BEGIN
        st = ctn_scope_end(c->c);
    CALL_END
    if (--c->depth == 0) scopes_ended(c);
    return st;
}

void scopes_ended(context *c)
{
    PyObject *held = c->held;
    while (c->live) detach(c->live);
    c->held = NULL;
    Py_XDECREF(held);
    bury(c);
}

int guard_scopes(context *c)
{
    const int was = c->floor;
    c->floor = c->depth;
    return was;
}

void unguard_scopes(context *c, int was)
{
    while (c->depth > c->floor) (void)end_scope(c);
    c->floor = was;
}

bool hold(context *c, PyObject *o)
{
    if (!c->held && !(c->held = PyList_New(0))) return false;
    return PyList_Append(c->held, o) == 0;
}

bool op_begin(one_op *op)
{
    *op = (one_op){.c = current_context(), .at = here()};
    if (!op->c) return false;
    if (op->c->depth > 0) return true;
    op->mine = true;
    return check(begin_scope(op->c));
}

PyObject *op_fail(one_op *op)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (op->mine) (void)end_scope(op->c);
    ctn_error_clear();
    PyErr_Restore(type, value, trace);
    return NULL;
}

PyObject *op_end(one_op *op, ctn_tensor *t)
{
    PyObject *y = t ? wrap(op->c, t, op->at) : raise_error();
    if (!op->mine) return y;
    if (!y || !fetch((tensor *)y)) {
        Py_XDECREF(y);
        return op_fail(op);
    }
    if (check(end_scope(op->c))) return y;
    Py_DECREF(y);
    return NULL;
}

PyObject *op_end_all(one_op *op, ctn_status st, int n, ctn_tensor *const *t)
{
    if (!check(st)) return op_fail(op);
    PyObject *all = PyTuple_New(n);
    for (int i = 0; all && i < n; i++) {
        PyObject *y = t[i] ? wrap(op->c, t[i], op->at) : Py_NewRef(Py_None);
        if (!y || (op->mine && t[i] && !fetch((tensor *)y)) || PyTuple_SetItem(all, i, y) < 0) {
            Py_DECREF(all);
            all = NULL;
        }
    }
    if (!all) return op_fail(op);
    if (!op->mine || check(end_scope(op->c))) return all;
    Py_DECREF(all);
    return NULL;
}

PyObject *op_end_none(one_op *op, ctn_status st)
{
    if (!check(st)) return op_fail(op);
    if (op->mine && !check(end_scope(op->c))) return NULL;
    return Py_NewRef(Py_None);
}

/* ---- the type -------------------------------------------------------------------------------- */

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"threads", "seed", "eager", "precision", "fuse", "spans", NULL};
    int threads = 0, eager = -1, fuse = 1;
    unsigned long long seed = 0;
    long long spans = 0;
    const char *precision = "f32";
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$iKpspL:Context", names, &threads, &seed,
                                     &eager, &precision, &fuse, &spans))
        return NULL;
    ctn_context_opt o = {.struct_size = sizeof o, .threads = threads, .seed = seed, .spans = spans};
    o.no_fuse = !fuse;
    o.mode = eager < 0 ? CTN_MODE_DEFAULT : eager ? CTN_MODE_EAGER : CTN_MODE_PLANNED;
    if (strcmp(precision, "bf16") == 0) o.precision = CTN_PRECISION_BF16;
    else if (strcmp(precision, "f16") == 0) o.precision = CTN_PRECISION_F16;
    else if (strcmp(precision, "f64") == 0) o.precision = CTN_PRECISION_F64;
    else if (strcmp(precision, "f32") != 0)
        return PyErr_Format(PyExc_ValueError, "precision is '%s', expected f32, bf16, f16 or f64",
                            precision);
    context *c = (context *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!c) return NULL;
    if (check(ctn_context_new(&c->c, &o))) return (PyObject *)c;
    Py_DECREF(c);
    return NULL;
}

static void context_free(PyObject *self)
{
    context *c = (context *)self;
    PyTypeObject *type = Py_TYPE(self);
    while (c->c && c->depth > 0) (void)end_scope(c);
    Py_XDECREF(c->held);
    ctn_context_free(c->c);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

context *current_context(void)
{
    if (!now) now = (context *)PyObject_CallNoArgs((PyObject *)context_type);
    return now;
}

static PyObject *context_begin(PyObject *self, PyObject *unused)
{
    (void)unused;
    return check(begin_scope((context *)self)) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *context_end(PyObject *self, PyObject *unused)
{
    context *c = (context *)self;
    (void)unused;
    if (c->depth <= c->floor)
        return PyErr_Format(PyExc_RuntimeError,
                            c->depth == 0 ? "no step is open"
                                          : "end: the open step belongs to the caller of this "
                                            "function, which ends it");
    return check(end_scope(c)) ? Py_NewRef(Py_None) : NULL;
}

/* End a scope because of an exception: errors of the library are its consequences. */
static PyObject *context_abandon(PyObject *self, PyObject *unused)
{
    context *c = (context *)self;
    (void)unused;
    for (tensor *x = c->live; x; x = x->next) x->kept = false;
    if (c->depth > c->floor) (void)end_scope(c);
    ctn_error_clear();
    return Py_NewRef(Py_None);
}

static PyObject *context_flush(PyObject *self, PyObject *unused)
{
    ctn_status st;
    (void)unused;
    CALL_BEGIN
        st = ctn_flush(((context *)self)->c);
    CALL_END
    return check(st) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *context_set_training(PyObject *self, PyObject *on)
{
    const int yes = PyObject_IsTrue(on);
    return yes < 0 ? NULL : PyBool_FromLong(ctn_context_set_training(((context *)self)->c, yes));
}

static PyObject *context_set_grad(PyObject *self, PyObject *on)
{
    const int yes = PyObject_IsTrue(on);
    return yes < 0 ? NULL : PyBool_FromLong(ctn_context_set_grad(((context *)self)->c, yes));
}

static PyObject *context_plan(PyObject *self, PyObject *unused)
{
    ctn_context *c = ((context *)self)->c;
    (void)unused;
    const int n = ctn_context_plan_text(c, NULL, 0);
    char *text = n < 0 ? NULL : PyMem_Malloc((size_t)n + 1);
    if (!text) return n < 0 ? raise_error() : PyErr_NoMemory();
    (void)ctn_context_plan_text(c, text, (size_t)n + 1);
    PyObject *s = PyUnicode_FromStringAndSize(text, n);
    PyMem_Free(text);
    return s;
}

static PyObject *context_stats(PyObject *self, PyObject *unused)
{
    ctn_plan_stats s;
    (void)unused;
    ctn_context_get_stats(((context *)self)->c, &s);
    return Py_BuildValue("{sK sK sK sK sK sK sL sL sL}", "hits", s.hits, "misses", s.misses,
                         "evictions", s.evictions, "runs", s.runs, "recorded_ops", s.recorded_ops,
                         "underflow_runs", s.underflow_runs, "plans", (long long)s.plans,
                         "plan_bytes", (long long)s.plan_bytes, "arena_bytes",
                         (long long)s.arena_bytes);
}

static PyObject *get_threads(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(ctn_context_threads(((context *)self)->c));
}

static PyObject *get_training(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(ctn_context_training(((context *)self)->c));
}

static PyObject *get_depth(PyObject *self, void *unused)
{
    (void)unused;
    return PyLong_FromLong(((context *)self)->depth);
}

static PyMethodDef methods[] = {
    {"begin", context_begin, METH_NOARGS, "begin($self)\n--\n\nOpen a scope."},
    {"end", context_end, METH_NOARGS, "end($self)\n--\n\nClose the scope that was opened last."},
    {"abandon", context_abandon, METH_NOARGS,
     "abandon($self)\n--\n\nClose the scope after an exception."},
    {"flush", context_flush, METH_NOARGS, "flush($self)\n--\n\nRun now what was recorded."},
    {"set_training", context_set_training, METH_O,
     "set_training($self, on, /)\n--\n\n"
     "Choose training or evaluation; returns the previous setting."},
    {"set_grad", context_set_grad, METH_O,
     "set_grad($self, on, /)\n--\n\n"
     "Choose whether ops can be differentiated; returns the previous setting."},
    {"plan", context_plan, METH_NOARGS, "plan($self)\n--\n\nThe last plan that ran, as text."},
    {"stats", context_stats, METH_NOARGS, "stats($self)\n--\n\nCounters of the plan cache."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getters[] = {
    {"threads", get_threads, NULL, "Number of compute threads.", NULL},
    {"training", get_training, NULL, "True in training, False in evaluation.", NULL},
    {"depth", get_depth, NULL, "Number of open scopes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, context_new},
    {Py_tp_dealloc, context_free},
    {Py_tp_methods, methods},
    {Py_tp_getset, getters},
    {Py_tp_doc,
     "Context(*, threads=0, seed=0, eager=None, precision='f32', fuse=True, spans=0)\n--\n\n"
     "Records the ops that a program calls, plans them once and replays the plan.\n\n"
     "Parameters:\n"
     "    threads: compute threads; 0: OMP_NUM_THREADS, or all cores\n"
     "    seed: of initial values and random ops\n"
     "    eager: True: run every op at once, also in steps\n"
     "    precision: f32, bf16 or f16, of the ops that gain from it, or f64 for everything\n"
     "    fuse: False: one kernel per op\n"
     "    spans: number of kernels whose times are kept\n\n"
     "Raises: Error if this CPU cannot run the precision, ValueError."},
    {0, NULL},
};

static PyType_Spec spec = {"catena.Context", sizeof(context), 0, Py_TPFLAGS_DEFAULT, slots};

/* ---- functions of the module ----------------------------------------------------------------- */

static PyObject *get_current(PyObject *self, PyObject *unused)
{
    (void)self, (void)unused;
    return Py_XNewRef((PyObject *)current_context());
}

static PyObject *set_current(PyObject *self, PyObject *c)
{
    (void)self;
    if (!PyObject_TypeCheck(c, context_type))
        return PyErr_Format(PyExc_TypeError, "use: expected a Context");
    if (now && now->depth > 0)
        return PyErr_Format(PyExc_RuntimeError, "use: a step of the current context is open");
    context *was = now;
    now = (context *)Py_NewRef(c);
    Py_XDECREF((PyObject *)was);
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"current_context", get_current, METH_NOARGS,
     "current_context($module)\n--\n\nThe context that new objects belong to."},
    {"use_context", set_current, METH_O,
     "use_context($module, context, /)\n--\n\nMake a context the current one. Modules and tensors "
     "belong to the context in which they were made.\n\nRaises: RuntimeError inside a step."},
    {NULL, NULL, 0, NULL},
};

int add_context(PyObject *module)
{
    context_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!context_type || PyModule_AddFunctions(module, functions) < 0) return -1;
    return PyModule_AddObjectRef(module, "Context", (PyObject *)context_type);
}
