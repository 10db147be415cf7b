/* SPDX-License-Identifier: Apache-2.0
 *
 * Arguments of Python functions, for the generated code.
 */
#include "python.h"

/* The argument with this name; -1: there is none. */
static int find(const signature *s, PyObject *name)
{
    for (int i = 0; i < s->n; i++)
        if (PyUnicode_CompareWithASCIIString(name, s->argument[i]) == 0) return i;
    return -1;
}

static bool named_arguments(const signature *s, PyObject *const *args, PyObject *names,
                            PyObject **out)
{
    const Py_ssize_t n = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t k = 0; k < n; k++) {
        PyObject *name = PyTuple_GetItem(names, k);
        const int i = find(s, name);
        if (i < 0 || out[i]) {
            PyErr_Format(PyExc_TypeError,
                         i < 0 ? "%s() has no argument '%U'" : "%s(): '%U' was given twice",
                         s->name, name);
            return false;
        }
        out[i] = args[k];
    }
    return true;
}

bool arguments(const signature *s, PyObject *const *args, Py_ssize_t n, PyObject *names,
               PyObject **out)
{
    if (n > s->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d arguments without names, %zd were given",
                     s->name, s->positional, n);
        return false;
    }
    for (int i = 0; i < s->n; i++) out[i] = i < n ? args[i] : NULL;
    if (names && !named_arguments(s, args + n, names, out)) return false;
    for (int i = 0; i < s->n; i++) {
        if (out[i] == Py_None) out[i] = NULL;
        if (out[i] || !(s->required >> i & 1)) continue;
        PyErr_Format(PyExc_TypeError, "%s(): '%s' is missing", s->name, s->argument[i]);
        return false;
    }
    return true;
}

static bool wrong(const char *what, const char *expected, PyObject *o)
{
    PyErr_Format(PyExc_TypeError, "%s is %R, expected %s", what, o, expected);
    return false;
}

bool to_int64(const char *what, PyObject *o, int64_t *x)
{
    if (!o) return true;
    const long long v = PyLong_AsLongLong(o);
    if (v == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return wrong(what, "an integer", o);
    }
    *x = v;
    return true;
}

bool to_uint64(const char *what, PyObject *o, uint64_t *x)
{
    if (!o) return true;
    const unsigned long long v = PyLong_AsUnsignedLongLong(o);
    if (v == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear();
        return wrong(what, "an integer that is not negative", o);
    }
    *x = v;
    return true;
}

bool to_int(const char *what, PyObject *o, int *x)
{
    int64_t v = *x;
    if (!to_int64(what, o, &v)) return false;
    if (v < INT32_MIN || v > INT32_MAX) return wrong(what, "a smaller integer", o);
    *x = (int)v;
    return true;
}

bool to_double(const char *what, PyObject *o, double *x)
{
    if (!o) return true;
    const double v = PyFloat_AsDouble(o);
    if (v == -1 && PyErr_Occurred()) {
        PyErr_Clear();
        return wrong(what, "a number", o);
    }
    *x = v;
    return true;
}

bool to_enum(const char *what, PyObject *o, const named *table, int *x)
{
    if (!o) return true;
    if (!PyUnicode_Check(o)) return to_int(what, o, x);
    for (const named *t = table; t->name; t++)
        if (PyUnicode_CompareWithASCIIString(o, t->name) == 0) {
            *x = t->value;
            return true;
        }
    char all[256] = "";
    for (const named *t = table; t->name; t++)
        PyOS_snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", all[0] ? ", " : "",
                      t->name);
    PyErr_Format(PyExc_ValueError, "%s is %R, expected one of %s", what, o, all);
    return false;
}

bool to_dtype(const char *what, PyObject *o, ctn_dtype *x)
{
    static const named table[] = {
        {"f32", CTN_F32},     {"f64", CTN_F64},     {"bf16", CTN_BF16},   {"f16", CTN_F16},
        {"i64", CTN_I64},     {"i32", CTN_I32},     {"u8", CTN_U8},       {"bool", CTN_BOOL},
        {"float32", CTN_F32}, {"float64", CTN_F64}, {"float16", CTN_F16}, {"bfloat16", CTN_BF16},
        {"int64", CTN_I64},   {"int32", CTN_I32},   {"uint8", CTN_U8},    {NULL, 0}};
    int v = (int)*x;
    if (!to_enum(what, o, table, &v)) return false;
    *x = (ctn_dtype)v;
    return true;
}

/* The items of a sequence, or the number itself; -1: an error. */
static int sequence(const char *what, PyObject *o, int most, int64_t *x)
{
    if (PyLong_Check(o)) return to_int64(what, o, x) ? 1 : -1;
    PyObject *all = PySequence_Tuple(o);
    if (!all) {
        PyErr_Clear();
        return wrong(what, "an integer or a sequence of integers", o) - 1;
    }
    const Py_ssize_t n = PyTuple_Size(all);
    int found = (int)n;
    if (n > most) {
        PyErr_Format(PyExc_ValueError, "%s has %zd numbers, at most %d are allowed", what, n, most);
        found = -1;
    }
    for (int i = 0; i < found; i++)
        if (!to_int64(what, PyTuple_GetItem(all, i), &x[i])) found = -1;
    Py_DECREF(all);
    return found;
}

bool to_numbers(const char *what, PyObject *o, numbers *x)
{
    if (!o) return true;
    x->n = sequence(what, o, CTN_MAX_DIMS, x->at);
    return x->n >= 0;
}

bool to_array(const char *what, PyObject *o, int n, int64_t *x)
{
    if (!o) return true;
    const int found = sequence(what, o, n, x);
    if (found < 0) return false;
    if (PyLong_Check(o))
        for (int i = 1; i < n; i++) x[i] = x[0];
    return true;
}

bool to_pads(const char *what, PyObject *o, int n, int64_t *x)
{
    if (!o) return true;
    const int found = sequence(what, o, n, x);
    for (int i = 0; i < found; i++) {
        if (x[i] < 0) {
            PyErr_Format(PyExc_ValueError, "%s is %lld, it must not be negative", what,
                         (long long)x[i]);
            return false;
        }
        if (x[i] == 0) x[i] = CTN_PAD_NONE;
    }
    return found >= 0;
}

static bool doubles(const char *what, PyObject *all, int n, double *x)
{
    const Py_ssize_t found = PyTuple_Size(all);
    if (found != n) {
        PyErr_Format(PyExc_ValueError, "%s has %zd numbers, expected one or %d", what, found, n);
        return false;
    }
    for (int i = 0; i < n; i++)
        if (!to_double(what, PyTuple_GetItem(all, i), &x[i])) return false;
    return true;
}

bool to_doubles(const char *what, PyObject *o, int n, double *x)
{
    if (!o) return true;
    if (PyFloat_Check(o) || PyLong_Check(o)) {
        if (!to_double(what, o, x)) return false;
        for (int i = 1; i < n; i++) x[i] = x[0];
        return true;
    }
    PyObject *all = PySequence_Tuple(o);
    if (!all) {
        PyErr_Clear();
        return wrong(what, "a number or a sequence of numbers", o);
    }
    const bool ok = doubles(what, all, n, x);
    Py_DECREF(all);
    return ok;
}

bool any_given(PyObject *const *in, int n)
{
    for (int i = 0; i < n; i++)
        if (in[i]) return true;
    return false;
}

bool to_tensor(context *c, PyObject *o, ctn_tensor **x)
{
    *x = o ? recorded(c, o) : NULL;
    return !o || *x;
}

bool to_tensors(context *c, const char *what, PyObject *o, int most, ctn_tensor **x, int *n)
{
    PyObject *all = PySequence_Tuple(o);
    if (!all) return false;
    const Py_ssize_t found = PyTuple_Size(all);
    bool ok = found <= most;
    if (!ok)
        PyErr_Format(PyExc_ValueError, "%s has %zd tensors, at most %d are allowed", what, found,
                     most);
    for (Py_ssize_t i = 0; ok && i < found; i++) ok = to_tensor(c, PyTuple_GetItem(all, i), &x[i]);
    *n = (int)found;
    Py_DECREF(all);
    return ok;
}

bool to_variable(const char *what, PyObject *o, ctn_var **x)
{
    if (!o || PyObject_TypeCheck(o, variable_type)) {
        *x = o ? ((variable *)o)->v : NULL;
        return true;
    }
    return wrong(what, "a Parameter", o);
}

bool to_text(const char *what, PyObject *o, const char **x)
{
    Py_ssize_t n;
    if (!o) return true;
    if (!PyUnicode_Check(o)) return wrong(what, "a string", o);
    *x = PyUnicode_AsUTF8AndSize(o, &n);
    return *x != NULL;
}

static bool init_field(PyObject *d, const char *name, double *x)
{
    PyObject *v = PyDict_GetItemString(d, name);
    return !v || to_double(name, v, x);
}

bool to_init(const char *what, PyObject *o, ctn_init *x)
{
    static const named kinds[] = {{"constant", CTN_INIT_CONSTANT},
                                  {"normal", CTN_INIT_NORMAL},
                                  {"uniform", CTN_INIT_UNIFORM},
                                  {"lecun_normal", CTN_INIT_LECUN_NORMAL},
                                  {"lecun_uniform", CTN_INIT_LECUN_UNIFORM},
                                  {"glorot_normal", CTN_INIT_GLOROT_NORMAL},
                                  {"glorot_uniform", CTN_INIT_GLOROT_UNIFORM},
                                  {"he_normal", CTN_INIT_HE_NORMAL},
                                  {"he_uniform", CTN_INIT_HE_UNIFORM},
                                  {"orthogonal", CTN_INIT_ORTHOGONAL},
                                  {"identity", CTN_INIT_IDENTITY},
                                  {"upsample", CTN_INIT_UPSAMPLE},
                                  {"downsample", CTN_INIT_DOWNSAMPLE},
                                  {NULL, 0}};
    int kind = CTN_INIT_CONSTANT;
    if (!o) return true;
    if (PyUnicode_Check(o)) {
        if (!to_enum(what, o, kinds, &kind)) return false;
    } else if (!PyDict_Check(o)) {
        return to_double(what, o, &x->value);
    } else {
        PyObject *k = PyDict_GetItemString(o, "kind");
        if (!to_enum(what, k, kinds, &kind) || !init_field(o, "value", &x->value) ||
            !init_field(o, "mean", &x->mean) || !init_field(o, "std", &x->std) ||
            !init_field(o, "low", &x->low) || !init_field(o, "high", &x->high) ||
            !init_field(o, "gain", &x->gain))
            return false;
    }
    x->kind = (ctn_init_kind)kind;
    return true;
}

bool to_variables(PyObject *o, variables *x)
{
    x->all = PySequence_Tuple(o);
    if (!x->all) return false;
    const Py_ssize_t n = PyTuple_Size(x->all);
    ctn_var **var = PyMem_Calloc((size_t)n + 1, sizeof *var);
    const char **name = PyMem_Calloc((size_t)n + 1, sizeof *name);
    x->vars = (ctn_vars){(int)n, var, name};
    bool ok = var && name;
    if (!ok) PyErr_NoMemory();
    for (Py_ssize_t i = 0; ok && i < n; i++) {
        PyObject *p = PyTuple_GetItem(x->all, i);
        ok = to_variable("a parameter", p, &var[i]) &&
             to_text("name", ((variable *)p)->name, &name[i]);
    }
    return ok;
}

void free_variables(variables *x)
{
    PyMem_Free((void *)x->vars.var);
    PyMem_Free((void *)x->vars.name);
    Py_XDECREF(x->all);
}

PyObject *list_variables(context *c, ctn_vars v, PyObject *owner)
{
    if (v.n == 0 && ctn_error_status() != CTN_OK) return raise_error();
    PyObject *all = PyList_New(0);
    for (int i = 0; all && i < v.n; i++) {
        PyObject *p = wrap_variable(c, v.var[i], v.name ? v.name[i] : NULL, owner);
        if (!p || PyList_Append(all, p) < 0) {
            Py_DECREF(all);
            all = NULL;
        }
        Py_XDECREF(p);
    }
    return all;
}

PyObject *as_method(call *f, PyObject *x, PyObject *const *args, Py_ssize_t n, PyObject *names)
{
    PyObject *all[MOST_ARGUMENTS + 1] = {x};
    const Py_ssize_t more = n + (names ? PyTuple_Size(names) : 0);
    if (more > MOST_ARGUMENTS) return PyErr_Format(PyExc_TypeError, "too many arguments");
    for (Py_ssize_t i = 0; i < more; i++) all[i + 1] = args[i];
    return f(NULL, all, n + 1, names);
}
