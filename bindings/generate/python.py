# SPDX-License-Identifier: Apache-2.0
"""python3 -m generate.python OUT: write the functions of the Python module catena._core.

The build runs this with bindings/interface.json and compiles the C file that it writes. For Python
there are a file with the types of the functions and one with the list of ops.

Every function of the library becomes one of Python with the same name, without ctn_ and _at. The
context and the source line are not arguments, the fields of an options struct are keyword
arguments, and a shape is one argument. A function with an argument that has no counterpart in
Python is left out; where it matters, bindings/python/src has it by hand.
"""
import json
import sys
import textwrap
from pathlib import Path

from .python_call import Call, Skip
from .python_docs import documentation, stub
from .python_words import c_text, listed, quoted, short

CALLS, STUBS, OPS = "calls.c", "_core.pyi", "_ops.py"
# bindings/python/src has these, because they change what it knows about scopes, or call Python.
BY_HAND = {"ctn_scope_begin", "ctn_scope_end", "ctn_scope_return", "ctn_flush", "ctn_keep",
           "ctn_keep_graph", "ctn_with_grad", "ctn_backward_at", "ctn_grad_at",
           "ctn_context_set_training", "ctn_context_set_grad", "ctn_error_clear",
           "ctn_error_message", "ctn_error_status", "ctn_error_trace", "ctn_trainer_run",
           "ctn_trainer_stop", "ctn_trainer_extend", "ctn_report", "ctn_report_metric",
           "ctn_report_ratio", "ctn_report_weight", "ctn_report_targets", "ctn_lbfgs_step",
           "ctn_comm_send_bytes", "ctn_comm_recv_bytes"}
BINDINGS = Path(__file__).resolve().parent.parent
INTERFACE = BINDINGS / "interface.json"
TYPES = BINDINGS / "python" / "src" / "_core.pyi"  # of what bindings/python/src has by hand
HEAD = """/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the library for Python. The build wrote this file.
 */
#include "python.h"
"""


class Known:
    """What the generator looks up in the description."""

    def __init__(self, description):
        self.structs = {s["name"]: s for s in description["structs"]}
        self.enums = {e["name"]: e for e in description["enums"]}
        self.entries = {e["name"]: e for part in ("functions", "structs", "handles", "enums")
                        for e in description[part]}

    def text_of(self, entry):
        while "documented_by" in entry and not entry.get("description"):
            entry = self.entries.get(entry["documented_by"], {})
        return entry.get("description")

    def enum_name(self, kind, value):
        """CTN_SCHED_STEP is "step" in Python: without what all values of the type share."""
        values = [v["name"] for v in self.enums[kind]["values"]]
        parts = values[0].split("_")[:-1]
        while parts and not all(v.startswith("_".join(parts) + "_") for v in values):
            parts.pop()
        return value.removeprefix("_".join(parts) + "_").lower() if parts else value.lower()

    def literal(self, kind):
        """The type of an argument that is a name of this enum."""
        names = (self.enum_name(kind, v["name"]) for v in self.enums[kind]["values"])
        return f"Literal[{', '.join(map(repr, names))}]"


def enums(known, calls):
    text = "\n".join(calls)
    for name, entry in known.enums.items():
        if f"{name}_names" not in text:
            continue
        rows = ", ".join(f'{{"{known.enum_name(name, v["name"])}", {v["name"]}}}'
                         for v in entry["values"])
        lines = textwrap.wrap(f"{rows}, {{NULL, 0}}", 92)
        yield f"static const named {name}_names[] = {{\n    " + "\n    ".join(lines) + "};\n"


def kinds(description, calls):
    text = "\n".join(calls)
    for handle in description["handles"]:
        name = short(handle["name"])
        if f"&{name}_kind" not in text:
            continue
        release = "NULL"
        if handle.get("free"):
            release = f"free_{name}"
            yield (f"static void {release}(void *p)\n{{\n    {handle['free']}(p);\n}}\n")
        yield f"static const handle_kind {name}_kind = {{{quoted(name)}, {release}}};\n"
    names = [short(h["name"]) for h in description["handles"]
             if f"&{short(h['name'])}_kind" in text]
    listed = ", ".join(f"&{name}_kind" for name in names)
    yield ("const handle_kind *kind_of(const char *name)\n{\n"
           "    static const handle_kind *const all[] = {\n        " +
           "\n        ".join(textwrap.wrap(listed, 88)) + "};\n"
           "    for (size_t i = 0; i < sizeof all / sizeof *all; i++)\n"
           "        if (strcmp(all[i]->name, name) == 0) return all[i];\n    return NULL;\n}\n")


def made(description):
    """The calls that Python gets, and the names of functions it does not get with the reason."""
    known, calls, left = Known(description), [], []
    for function in description["functions"]:
        if function["name"].endswith("_free") or function.get("inline") or \
                function["name"] in BY_HAND:
            continue
        try:
            call = Call(function, known)
            calls.append((call, call.text()))
        except Skip as skip:
            left.append((function["name"], str(skip)))
    return known, calls, left


def files(description):
    known, calls, left = made(description)
    texts = [text for _, text in calls]
    table = "\n".join(f"    {{{quoted(c.name)}, (PyCFunction)(void (*)(void))call_{c.name}, "
                      f"METH_FASTCALL | METH_KEYWORDS,\n     {c_text(documentation(c))}}},"
                      for c, _ in calls)
    code = "\n".join([HEAD, *enums(known, texts), *kinds(description, texts), *texts,
                      "PyMethodDef op_functions[] = {", table, "    {NULL, NULL, 0, NULL},", "};",
                      "", *methods(c for c, _ in calls if method_of(c))])
    return {CALLS: code, STUBS: stubs(calls), OPS: op_list(calls)}


def op_list(calls):
    """The module that exports the ops."""
    names = sorted(c.name for c, _ in calls if is_op(c))
    quotes = [f'"{n}"' for n in names]
    return ('# SPDX-License-Identifier: Apache-2.0\n"""The ops. The build wrote this file."""\n'
            f"from ._core import (  # noqa: F401\n    {listed(names, 84)})\n\n"
            f"__all__ = [\n    {listed(quotes, 88)}]\n")


def is_op(call):
    return call.op and call.f["header"].startswith("ops")


def method_of(call):
    """Can it be a method of a tensor?"""
    return is_op(call) and call.arguments and call.arguments[0].kind == "Operand"


def methods(calls):
    """The ops as methods of a tensor."""
    calls = list(calls)
    for c in calls:
        yield (f"static PyObject *method_{c.name}(PyObject *self, PyObject *const *args, "
               "Py_ssize_t n,\n" + " " * (len(c.name) + 25) + "PyObject *names)\n{\n"
               f"    return as_method(call_{c.name}, self, args, n, names);\n}}\n")
    yield "PyMethodDef op_methods[] = {"
    for c in calls:
        yield (f"    {{{quoted(c.name)}, (PyCFunction)(void (*)(void))method_{c.name}, "
               f"METH_FASTCALL | METH_KEYWORDS,\n     {c_text(documentation(c, method=True))}}},")
    yield "    {NULL, NULL, 0, NULL},"
    yield "};\n"


def stubs(calls):
    """Types of the extension module: the part by hand, with the ops as methods, and the rest."""
    methods_ = "\n".join(stub(c, method=True) for c, _ in calls if method_of(c))
    by_hand = TYPES.read_text(encoding="utf-8").replace("    # the ops as methods", methods_)
    return by_hand + "\n" + "\n".join(stub(c) for c, _ in calls) + "\n"


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    description = json.loads(INTERFACE.read_text(encoding="utf-8"))
    for name, text in files(description).items():
        if not (out / name).exists() or (out / name).read_text(encoding="utf-8") != text:
            (out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
