/* SPDX-License-Identifier: Apache-2.0
 *
 * The source line of the running Python code. The text of a line is made once and lives as long as
 * the process, because plans refer to it. The table holds a reference to each code object, so that
 * no other can take its address.
 */
#include "python.h"

typedef struct {
    PyCodeObject *code;
    int line;
    bool inside; /* of this package */
    char *text;
} entry;

static entry *table;
static size_t room, used;
static char *package;

static size_t slot_of(const entry *t, size_t n, const PyCodeObject *code, int line)
{
    size_t h = (((uintptr_t)code >> 4) * 31 + (size_t)line) * UINT64_C(0x9e3779b97f4a7c15) >> 20;
    for (h &= n - 1; t[h].code && (t[h].code != code || t[h].line != line);) h = (h + 1) & (n - 1);
    return h;
}

static bool grow(void)
{
    const size_t n = room ? 2 * room : 256;
    entry *t = PyMem_Calloc(n, sizeof *t);
    if (!t) return false;
    for (size_t i = 0; i < room; i++)
        if (table[i].code) t[slot_of(t, n, table[i].code, table[i].line)] = table[i];
    PyMem_Free(table);
    table = t;
    room = n;
    return true;
}

static bool fill(entry *e, PyCodeObject *code, int line)
{
    PyObject *file = PyObject_GetAttrString((PyObject *)code, "co_filename");
    PyObject *bytes = file ? PyUnicode_AsUTF8String(file) : NULL;
    const char *name = bytes ? PyBytes_AsString(bytes) : NULL;
    char *text = name ? PyMem_Malloc(strlen(name) + 16) : NULL;
    if (text) {
        PyOS_snprintf(text, strlen(name) + 16, "%s:%d", name, line);
        *e = (entry){code, line, package && strncmp(name, package, strlen(package)) == 0, text};
        Py_INCREF((PyObject *)code);
        used++;
    }
    Py_XDECREF(bytes);
    Py_XDECREF(file);
    return text != NULL;
}

static const entry *entry_of(PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    const int line = PyFrame_GetLineNumber(frame);
    entry *e = NULL;
    if (2 * used >= room && !grow()) goto done;
    e = &table[slot_of(table, room, code, line)];
    if (!e->code && !fill(e, code, line)) e = NULL;
done:
    Py_DECREF((PyObject *)code);
    return e;
}

const char *here(void)
{
    PyFrameObject *frame = PyEval_GetFrame();
    const entry *e = frame ? entry_of(frame) : NULL;
    PyObject *held = NULL;
    while (e && e->inside) { /* go to the caller */
        PyObject *back = PyObject_GetAttrString(held ? held : (PyObject *)frame, "f_back");
        Py_XDECREF(held);
        held = back;
        if (!back || back == Py_None) break;
        e = entry_of((PyFrameObject *)back);
    }
    Py_XDECREF(held);
    if (!e) PyErr_Clear();
    return e ? e->text : "python";
}

int set_package(PyObject *module, const char *folder)
{
    (void)module;
    char *copy = PyMem_Malloc(strlen(folder) + 1);
    if (!copy) return -1;
    memcpy(copy, folder, strlen(folder) + 1);
    PyMem_Free(package);
    package = copy;
    return 0;
}
