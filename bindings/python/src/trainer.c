/* SPDX-License-Identifier: Apache-2.0
 *
 * The trainer: the loss function and extensions are Python functions. The trainer's own scope is
 * open while the loss function runs. An exception stops the run and comes out of it again. The
 * steps of L-BFGS are like that too: its closure is a loss function.
 */
#include "python.h"

static ctn_step *step_now; /* while a loss function runs */
static PyObject *failure;  /* the exception that stopped the run */

static void release_function(void *function)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)function);
    PyGILState_Release(gil);
}

/* Keep the exception for the end of the run, and report it to the library. */
static ctn_status stop_run(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) PyException_SetTraceback(value, trace);
    if (!failure) failure = Py_XNewRef(value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    ctn_error_clear();
    return ctn_fail(CTN_EARG, "a Python function raised an exception");
}

/* Raise what a run that failed has left. Returns NULL. */
static PyObject *raise_failure(void)
{
    if (!failure) return raise_error();
    ctn_error_clear();
    PyErr_SetObject((PyObject *)Py_TYPE(failure), failure);
    Py_DECREF(failure);
    failure = NULL;
    return NULL;
}

/* ---- loss ------------------------------------------------------------------------------------ */

static PyObject *fields_of(context *c, ctn_step *s)
{
    const ctn_batch *b = ctn_step_batch(s);
    PyObject *all = PyTuple_New(b->fields);
    for (int f = 0; all && f < b->fields; f++) {
        ctn_tensor *t = ctn_step_input_at("batch", s, f);
        PyObject *x = t ? wrap(c, t, "batch") : raise_error();
        if (x && PyTuple_SetItem(all, f, x) == 0) continue;
        Py_DECREF(all);
        return NULL;
    }
    return all;
}

/* Call a loss function in a scope that the library has opened, and ends before the next call.
 * s NULL: without arguments. */
static ctn_tensor *call_function(PyObject *function, ctn_step *s)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    context *c = current_context();
    ctn_tensor *loss = NULL;
    PyObject *result = NULL;
    if (c->depth == 0) scopes_ended(c);
    if (c->depth++ == 0) c->serial++;
    const int was = guard_scopes(c);
    step_now = s;
    PyObject *fields = s ? fields_of(c, s) : PyTuple_New(0);
    if (fields) result = PyObject_CallObject(function, fields);
    if (result && c->depth > c->floor)
        PyErr_SetString(PyExc_RuntimeError, "the loss function has left a step open: end it there");
    else if (result) loss = recorded(c, result);
    if (!loss) (void)stop_run();
    step_now = NULL;
    unguard_scopes(c, was);
    if (--c->depth == 0)
        while (c->live) detach(c->live);
    Py_XDECREF(result);
    Py_XDECREF(fields);
    PyGILState_Release(gil);
    return loss;
}

/* self: the loss function, which the Python object of the trainer holds. */
static ctn_tensor *call_loss(void *self, ctn_step *s)
{
    return call_function(self, s);
}

static ctn_tensor *call_closure(void *user, ctn_context *ctx)
{
    (void)ctx;
    return call_function(user, NULL);
}

/* What the last step has held is needed no more. */
static void run_ended(void)
{
    context *c = current_context();
    if (c && c->depth == 0) scopes_ended(c);
}

/* lbfgs_step(optimizer, closure): the loss before the step. */
static PyObject *lbfgs_step(PyObject *self, PyObject *args)
{
    PyObject *opt, *closure;
    ctn_optim *o;
    ctn_status st;
    double loss = 0;
    context *c = current_context();
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "OO", &opt, &closure) ||
        !to_handle("optimizer", opt, kind_of("optim"), &o) || !of_context(c, "optimizer", opt))
        return NULL;
    CALL_BEGIN
        st = ctn_lbfgs_step(o, call_closure, closure, &loss);
    CALL_END
    run_ended();
    return st < 0 ? raise_failure() : PyFloat_FromDouble(loss);
}

/* The context, if a loss function is running. */
static context *context_of_step(const char *who)
{
    context *c = current_context();
    if (!c || step_now) return c;
    PyErr_Format(PyExc_RuntimeError, "%s() works only in a loss function", who);
    return NULL;
}

/* report(name, value): log a number of this step. */
static PyObject *report(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *value;
    ctn_tensor *t;
    context *c = context_of_step("report");
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "sO", &name, &value)) return NULL;
    if (!to_tensor(c, value, &t)) return NULL;
    return check(ctn_report(step_now, name, t)) ? Py_NewRef(Py_None) : NULL;
}

/* report_ratio(name, above, below): log a sum divided by another one. */
static PyObject *report_ratio(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *value[2];
    ctn_tensor *t[2];
    context *c = context_of_step("report_ratio");
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "sOO", &name, &value[0], &value[1])) return NULL;
    if (!to_tensor(c, value[0], &t[0]) || !to_tensor(c, value[1], &t[1])) return NULL;
    return check(ctn_report_ratio(step_now, name, t[0], t[1])) ? Py_NewRef(Py_None) : NULL;
}

/* report_weight(weight): the loss is a mean over this many targets. */
static PyObject *report_weight(PyObject *self, PyObject *value)
{
    const double weight = PyFloat_AsDouble(value);
    (void)self;
    if (PyErr_Occurred() || !context_of_step("report_weight")) return NULL;
    return check(ctn_report_weight(step_now, weight)) ? Py_NewRef(Py_None) : NULL;
}

/* report_targets(field, ignore=-100): the same, counted in a field of the batch. */
static PyObject *report_targets(PyObject *self, PyObject *args)
{
    int field;
    long long ignore = -100;
    (void)self;
    if (!context_of_step("report_targets") || !PyArg_ParseTuple(args, "i|L", &field, &ignore))
        return NULL;
    return check(ctn_report_targets(step_now, field, ignore)) ? Py_NewRef(Py_None) : NULL;
}

/* report_metric(name, y, t, metric=None): log a metric of all samples of an evaluation. */
static PyObject *report_metric(PyObject *self, PyObject *args)
{
    const char *name, *metric = NULL;
    PyObject *value[2];
    ctn_tensor *t[2];
    context *c = context_of_step("report_metric");
    (void)self;
    if (!c || !PyArg_ParseTuple(args, "sOO|z", &name, &value[0], &value[1], &metric)) return NULL;
    if (!to_tensor(c, value[0], &t[0]) || !to_tensor(c, value[1], &t[1])) return NULL;
    return check(ctn_report_metric(step_now, name, metric, t[0], t[1])) ? Py_NewRef(Py_None) : NULL;
}

/* trainer_new(optimizer, loader, loss, net, epochs, iterations, seconds, accumulate, out) */
static PyObject *trainer_new(PyObject *self, PyObject *args)
{
    PyObject *opt, *loader, *loss, *net;
    long long epochs, iterations, accumulate;
    ctn_trainer_opt o = {.struct_size = sizeof o};
    ctn_optim *optim;
    ctn_loader *data;
    ctn_trainer *tr = NULL;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOOLLdLz", &opt, &loader, &loss, &net, &epochs, &iterations,
                          &o.seconds, &accumulate, &o.out) ||
        !to_handle("optimizer", opt, kind_of("optim"), &optim) ||
        !to_handle("loader", loader, kind_of("loader"), &data) ||
        (net != Py_None && !to_handle("net", net, kind_of("module"), &o.net)) ||
        !share_loader(loader))
        return NULL;
    o.epochs = epochs;
    o.iterations = iterations;
    o.accumulate = accumulate;
    if (!check(ctn_trainer_new(&tr, optim, data, call_loss, loss, &o))) return NULL;
    PyObject *uses = PyTuple_Pack(4, opt, loader, loss, net);
    return uses ? wrap_handle(kind_of("trainer"), tr, uses) : NULL;
}

static PyObject *trainer_run(PyObject *self, PyObject *object)
{
    ctn_trainer *tr;
    ctn_status st;
    (void)self;
    if (!to_handle("trainer", object, kind_of("trainer"), &tr)) return NULL;
    CALL_BEGIN
        st = ctn_trainer_run(tr);
    CALL_END
    run_ended();
    return st < 0 ? raise_failure() : Py_NewRef(Py_None);
}

/* ---- extensions ------------------------------------------------------------------------------ */

/* Points of a trigger: a list of numbers. */
static bool to_points(PyObject *list, ctn_trigger *t)
{
    const Py_ssize_t n = PyList_Size(list);
    if (t->kind != CTN_EVERY_EPOCHS && t->kind != CTN_EVERY_ITERATIONS) {
        PyErr_SetString(PyExc_ValueError, "a list of points is in 'epochs' or 'iterations'");
        return false;
    }
    if (n < 1 || n > CTN_TRIGGER_AT) {
        PyErr_Format(PyExc_ValueError, "a trigger has 1 to %d points, got %zd", CTN_TRIGGER_AT, n);
        return false;
    }
    t->kind = t->kind == CTN_EVERY_EPOCHS ? CTN_AT_EPOCHS : CTN_AT_ITERATIONS;
    for (Py_ssize_t i = 0; i < n; i++)
        if (!to_double("trigger", PyList_GetItem(list, i), &t->at[i])) return false;
    return true;
}

/* A trigger: None for the default, (n, "epochs" | "iterations" | "seconds"), (n, "once"),
 * ([n, ...], "epochs" | "iterations"), (0, "end"), or ("name of a value", "max" | "min"). */
static bool to_trigger(PyObject *o, ctn_trigger *t, const ctn_trigger **out)
{
    static const named kinds[] = {{"epochs", CTN_EVERY_EPOCHS},
                                  {"iterations", CTN_EVERY_ITERATIONS},
                                  {"seconds", CTN_EVERY_SECONDS},
                                  {"once", CTN_ONCE},
                                  {"end", CTN_AT_END},
                                  {"max", CTN_WHEN_MAX},
                                  {"min", CTN_WHEN_MIN},
                                  {"percent", CTN_SHARE_OF_TIME},
                                  {NULL, 0}};
    PyObject *n, *kind;
    int k = 0;
    *out = o == Py_None ? NULL : t;
    if (o == Py_None) return true;
    if (!PyTuple_Check(o) || !PyArg_ParseTuple(o, "OO", &n, &kind)) {
        PyErr_SetString(PyExc_TypeError, "a trigger is (number, 'epochs'), (number, 'iterations'), "
                                         "('val/loss', 'min') and so on");
        return false;
    }
    if (!to_enum("trigger", kind, kinds, &k)) return false;
    t->kind = (ctn_trigger_kind)k;
    if (PyList_Check(n)) return to_points(n, t);
    return PyUnicode_Check(n) ? to_text("trigger", n, &t->key) : to_double("trigger", n, &t->n);
}

static ctn_status call_extension(void *self, ctn_trainer *tr)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    (void)tr;
    PyObject *y = PyObject_CallNoArgs(self);
    const ctn_status st = y ? CTN_OK : stop_run();
    Py_XDECREF(y);
    PyGILState_Release(gil);
    return st;
}

/* extend(trainer, name, trigger, function) */
static PyObject *extend(PyObject *self, PyObject *args)
{
    PyObject *object, *when, *function;
    ctn_trainer *tr;
    const ctn_trigger *t;
    const char *name;
    ctn_extension e = {.struct_size = sizeof e,
                       .priority = CTN_PRIORITY_CHANGE,
                       .trigger = {.kind = CTN_EVERY_EPOCHS, .n = 1},
                       .call = call_extension,
                       .release = release_function};
    (void)self;
    if (!PyArg_ParseTuple(args, "OsOO", &object, &name, &when, &function) ||
        !to_handle("trainer", object, kind_of("trainer"), &tr) || !to_trigger(when, &e.trigger, &t))
        return NULL;
    e.name = name;
    e.self = function;
    if (!check(ctn_trainer_extend(tr, &e))) return NULL;
    Py_INCREF(function); /* the trainer has it now */
    return Py_NewRef(Py_None);
}

/* extend_evaluator(trainer, trigger, loader, loss) */
static PyObject *extend_evaluator(PyObject *self, PyObject *args)
{
    PyObject *object, *when, *loader, *loss;
    ctn_trainer *tr;
    ctn_loader *data;
    ctn_trigger trigger = {0};
    const ctn_trigger *t;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOOO", &object, &when, &loader, &loss) ||
        !to_handle("trainer", object, kind_of("trainer"), &tr) ||
        !to_handle("loader", loader, kind_of("loader"), &data) || !to_trigger(when, &trigger, &t) ||
        !share_loader(loader))
        return NULL;
    return check(ctn_extend_evaluator(tr, t, data, call_loss, loss)) ? Py_NewRef(Py_None) : NULL;
}

/* What an extension writes for people goes to Python's sys.stdout. */
static void show(void *user, const char *text)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    (void)user;
    PySys_FormatStdout("%s", text);
    PyGILState_Release(gil);
}

/* extend_ready(trainer, kind, trigger, text): the ready-made extensions that need a trigger and at
 * most one text. */
static PyObject *extend_ready(PyObject *self, PyObject *args)
{
    PyObject *object, *when;
    const char *kind, *text;
    ctn_trainer *tr;
    ctn_trigger trigger = {0};
    const ctn_trigger *t;
    const ctn_show_opt out = {.struct_size = sizeof out, .write = show, .terminal = -1};
    ctn_status st = CTN_EARG;
    (void)self;
    if (!PyArg_ParseTuple(args, "OsOz", &object, &kind, &when, &text) ||
        !to_handle("trainer", object, kind_of("trainer"), &tr) || !to_trigger(when, &trigger, &t))
        return NULL;
    if (strcmp(kind, "log") == 0) st = ctn_extend_log(tr, t, text);
    else if (strcmp(kind, "print") == 0) st = ctn_extend_print(tr, t, NULL, &out);
    else if (strcmp(kind, "progress") == 0) st = ctn_extend_progress(tr, t, &out);
    else if (strcmp(kind, "weights") == 0) st = ctn_extend_weights(tr, t, text);
    else if (strcmp(kind, "state") == 0) st = ctn_extend_state(tr, t);
    else if (strcmp(kind, "tensorboard") == 0) st = ctn_extend_tensorboard(tr, t, text);
    else if (strcmp(kind, "html") == 0) st = ctn_extend_html(tr, t, text, NULL, NULL);
    else if (strcmp(kind, "fail_on_nonfinite") == 0) st = ctn_extend_fail_on_nonfinite(tr, t);
    else if (strcmp(kind, "skip_nonfinite") == 0)
        st = ctn_extend_on_nonfinite(tr, t,
                                     CTN_OPT(ctn_nonfinite_opt, .policy = CTN_NONFINITE_SKIP));
    else if (strcmp(kind, "rewind_on_nonfinite") == 0)
        st = ctn_extend_on_nonfinite(tr, t,
                                     CTN_OPT(ctn_nonfinite_opt, .policy = CTN_NONFINITE_REWIND));
    else if (strcmp(kind, "spikes") == 0) st = ctn_extend_spikes(tr, NULL);
    else st = ctn_fail(CTN_EARG, "there is no extension '%s'", kind);
    return check(st) ? Py_NewRef(Py_None) : NULL;
}

/* ---- what a trainer knows -------------------------------------------------------------------- */

static PyObject *trainer_values(PyObject *self, PyObject *object)
{
    ctn_trainer *tr;
    (void)self;
    if (!to_handle("trainer", object, kind_of("trainer"), &tr)) return NULL;
    PyObject *all = PyDict_New();
    for (int i = 0; all && ctn_trainer_name(tr, i); i++) {
        double v = 0;
        if (!ctn_trainer_value(tr, ctn_trainer_name(tr, i), &v)) continue;
        PyObject *x = PyFloat_FromDouble(v);
        if (!x || PyDict_SetItemString(all, ctn_trainer_name(tr, i), x) < 0) {
            Py_DECREF(all);
            all = NULL;
        }
        Py_XDECREF(x);
    }
    return all;
}

static PyObject *trainer_progress(PyObject *self, PyObject *object)
{
    ctn_trainer *tr;
    ctn_progress p;
    (void)self;
    if (!to_handle("trainer", object, kind_of("trainer"), &tr)) return NULL;
    ctn_trainer_progress(tr, &p);
    return Py_BuildValue("{sL sL sd sd sL sd}", "iteration", (long long)p.iteration, "epoch",
                         (long long)p.epoch, "part", p.part, "total", p.total, "samples",
                         (long long)p.samples, "seconds", p.seconds);
}

static PyObject *trainer_stop(PyObject *self, PyObject *object)
{
    ctn_trainer *tr;
    (void)self;
    if (!to_handle("trainer", object, kind_of("trainer"), &tr)) return NULL;
    ctn_trainer_stop(tr, "the program asked for it");
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"trainer_new", trainer_new, METH_VARARGS, "A trainer with a loss function of Python."},
    {"trainer_run", trainer_run, METH_O, "Train until a limit is reached."},
    {"lbfgs_step", lbfgs_step, METH_VARARGS,
     "lbfgs_step($module, optimizer, closure, /)\n--\n\nTake a step of L-BFGS."},
    {"trainer_stop", trainer_stop, METH_O, "Stop after the current step."},
    {"trainer_values", trainer_values, METH_O, "The last observed values by name."},
    {"trainer_progress", trainer_progress, METH_O, "Counts and times of the training run."},
    {"extend", extend, METH_VARARGS, "Call a function when a trigger fires."},
    {"extend_evaluator", extend_evaluator, METH_VARARGS, "Evaluate on another loader."},
    {"extend_ready", extend_ready, METH_VARARGS, "Add an extension of the library."},
    {"report", report, METH_VARARGS,
     "report($module, name, value, /)\n--\n\nIn a loss function: log a number under a name."},
    {"report_ratio", report_ratio, METH_VARARGS,
     "report_ratio($module, name, above, below, /)\n--\n\n"
     "In a loss function: log the sum of `above` divided by the sum of `below`, over all batches."},
    {"report_weight", report_weight, METH_O,
     "report_weight($module, weight, /)\n--\n\n"
     "In a loss function: the loss, and what `report` logs, are means over this many targets, not "
     "over the samples of the batch."},
    {"report_targets", report_targets, METH_VARARGS,
     "report_targets($module, field, ignore=-100, /)\n--\n\n"
     "In a loss function: the same, with the elements of a field of the batch that are not "
     "`ignore`."},
    {"report_metric", report_metric, METH_VARARGS,
     "report_metric($module, name, y, t, metric=None, /)\n--\n\n"
     "In a loss function: log a metric of all samples of an evaluation, such as \"f1\", \"auc\" or "
     "\"r2\". metric None: the one that is called like the name."},
    {NULL, NULL, 0, NULL},
};

int add_trainer(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
