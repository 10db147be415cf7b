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
import keyword
import sys
import textwrap
from pathlib import Path

CALLS, STUBS, OPS = "calls.c", "_core.pyi", "_ops.py"
# bindings/python/src has these, because they change what it knows about scopes, or call Python.
BY_HAND = {"ctn_scope_begin", "ctn_scope_end", "ctn_scope_return", "ctn_flush", "ctn_keep",
           "ctn_keep_graph", "ctn_with_grad", "ctn_backward_at", "ctn_grad_at",
           "ctn_context_set_training", "ctn_context_set_grad", "ctn_error_clear",
           "ctn_error_message", "ctn_error_status", "ctn_error_trace", "ctn_trainer_run",
           "ctn_trainer_stop", "ctn_trainer_extend", "ctn_report"}
INTERFACE = Path(__file__).resolve().parent.parent / "interface.json"
NAMES = {"axes": "axis", "keep": "keepdims", "dims": "shape"}
NUMBERS = {"int": "int", "int64_t": "int64", "double": "double", "float": "float",
           "uint64_t": "uint64", "size_t": "size", "int32_t": "int32", "uint32_t": "uint32"}
PLAIN = {"int": ("int", "to_int"), "int64_t": ("int64_t", "to_int64"),
         "double": ("double", "to_double"), "int32_t": ("int32_t", "to_int"),
         "uint64_t": ("uint64_t", "to_uint64")}
HEAD = """/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the library for Python. The build wrote this file.
 */
#include "python.h"
"""


class Skip(Exception):
    """This function has an argument that Python code cannot give."""


def python_name(name):
    name = name.removeprefix("v_")
    name = NAMES.get(name, name)
    return name + "_" if keyword.iskeyword(name) else name


def short(name):
    return name.removeprefix("ctn_").removesuffix("_at").replace("_entropy_with", "_entropy")


def words(lines):
    return " ".join(line.strip() for line in lines or [])


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def shown(name):
    """The name of an argument in Python, as a C string."""
    return quoted(python_name(name))


class Call:
    """One function: its arguments in Python, and the C code that converts them."""

    def __init__(self, function, known):
        self.f, self.known = function, known
        self.name = short(function["name"])
        self.op = function["name"].endswith("_at") or function["returns"]["kind"] == "tensor"
        self.arguments = []  # (name, type, required, default)
        self.declared, self.converted, self.passed = [], [], []
        self.after, self.results, self.uses = [], [], []
        self.tensors = []  # results that are tensors
        for a in function["arguments"]:
            self.argument(a)

    # ---- arguments

    def given(self, name, kind, required=True, default=None):
        """The number of a new argument of the Python function."""
        self.arguments.append((python_name(name), kind, required, default))
        return f"in[{len(self.arguments) - 1}]"

    def argument(self, a):
        kind = a["kind"]
        make = getattr(self, "take_" + kind, None)
        if kind == "count":
            return  # its array passes it
        if not make:
            raise Skip(kind)
        if any(o.get("count") == a["name"] for o in self.f["arguments"]):
            raise Skip("count")
        make(a, "v_" + a["name"], self.default(a))

    def default(self, a):
        return a.get("default")

    def counted(self, a):
        """Is the number of elements the argument before?"""
        counts = [c["name"] for c in self.f["arguments"] if c["kind"] == "count"]
        return a.get("count") in counts

    def take_source_line(self, a, name, default):
        self.passed.append("at")

    def take_tensor(self, a, name, default):
        nullable = a.get("nullable", False)
        i = self.given(name, "Operand", not nullable)
        self.declared.append(f"ctn_tensor *{name};")
        self.converted.append(f"to_tensor(c, {i}, &{name})")
        self.passed.append(name)

    def take_handle(self, a, name, default):
        base = a["type"].replace("const ", "").removesuffix(" *")
        nullable = a.get("nullable", False)
        if base == "ctn_context":
            self.passed.append("c->c")
            return
        self.declared.append(f"{base} *{name};")
        if base == "ctn_var":
            i = self.given(name, "Parameter", not nullable)
            self.converted.append(f"to_variable({shown(name)}, {i}, &{name})")
        else:
            i = self.given(name, "Handle", not nullable)
            self.converted.append(f"to_handle({shown(name)}, {i}, &{short(base)}_kind, &{name})")
            self.uses.append(i)
            if a.get("taken"):
                self.after.append((i, "taken"))
        self.passed.append(name)

    def take_number(self, a, name, default):
        if a["type"] not in PLAIN:
            raise Skip(a["type"])
        c, convert = PLAIN[a["type"]]
        i = self.given(name, "float" if c == "double" else "int", default is None, default)
        self.declared.append(f"{c} {name} = {0 if default is None else default};")
        self.converted.append(f"{convert}({shown(name)}, {i}, &{name})")
        self.passed.append(name)

    def take_enum(self, a, name, default):
        i = self.given(name, "str", default is None, default)
        self.declared.append(f"int {name} = {self.enum_value(a['type'], default)};")
        self.converted.append(f"to_enum({shown(name)}, {i}, {a['type']}_names, &{name})")
        self.passed.append(f"({a['type']}){name}")

    def enum_value(self, kind, default):
        if default is None:
            return 0
        for value in self.known.enums[kind]["values"]:
            if self.known.enum_name(kind, value["name"]) == default:
                return value["name"]
        raise ValueError(f"{self.f['name']}: {default} is no value of {kind}")

    def take_string(self, a, name, default):
        nullable = a.get("nullable", False)
        i = self.given(name, "str", not nullable)
        self.declared.append(f"const char *{name} = NULL;")
        self.converted.append(f"to_text({shown(name)}, {i}, &{name})")
        self.passed.append(name)

    def take_shape(self, a, name, default):
        optional = a["name"] == "axes" or a.get("nullable", False)
        i = self.given(name, "Shape", not optional)
        self.declared.append(f"numbers {name} = {{0}};")
        self.converted.append(f"to_numbers({shown(name)}, {i}, &{name})")
        self.passed += [f"{name}.n", f"{name}.at"]

    def take_array(self, a, name, default):
        if a["type"] != "const int64_t *":
            raise Skip("array of " + a["type"])
        nullable = a.get("nullable", False)
        i = self.given(name, "Shape", not nullable)
        self.declared.append(f"numbers {name} = {{0}};")
        self.converted.append(f"to_numbers({shown(name)}, {i}, &{name})")
        if self.counted(a):
            self.passed.append(f"{name}.n")
            self.passed.append(f"{name}.at")
        else:
            self.passed.append(f"{i} ? {name}.at : NULL" if nullable else f"{name}.at")

    def take_list(self, a, name, default):
        if "ctn_tensor" not in a["type"]:
            raise Skip("list of " + a["type"])
        i = self.given(name, "Sequence[Operand]")
        self.declared.append(f"ctn_tensor *{name}[CTN_MAX_IN];\n    int n_{name} = 0;")
        self.converted.append(
            f"to_tensors(c, {shown(name)}, {i}, CTN_MAX_IN, {name}, &n_{name})")
        self.passed += [f"n_{name}", name]

    def take_out_list(self, a, name, default):
        if "ctn_tensor" not in a["type"]:
            raise Skip("out_list")
        self.declared.append(f"ctn_tensor *{name}[CTN_MAX_OUT] = {{NULL}};")
        self.passed.append(name)
        counted = [p for p in self.passed if p.endswith(".n") or p.startswith("n_")]
        self.results.append(("list", name, counted[-1]))

    def take_value_struct(self, a, name, default):
        if a["type"] != "ctn_vars":
            raise Skip(a["type"])
        i = self.given("parameters", "Sequence[Parameter]")
        self.declared.append(f"variables {name};")
        self.converted.append(f"to_variables({i}, &{name})")
        self.passed.append(f"{name}.vars")
        self.uses.append(i)

    def take_out_tensor(self, a, name, default):
        self.declared.append(f"ctn_tensor *{name} = NULL;")
        self.passed.append(f"&{name}")
        self.tensors.append(name)

    def take_out_handle(self, a, name, default):
        base = a["type"].removesuffix(" **")
        if base in ("ctn_context", "ctn_var", "ctn_tensor"):
            raise Skip("out_handle " + base)
        self.declared.append(f"{base} *{name} = NULL;")
        self.passed.append(f"&{name}")
        self.results.append(("handle", name, base))

    def take_out_value(self, a, name, default):
        base = a["type"].removesuffix(" *")
        if base not in PLAIN:
            raise Skip("out_value " + base)
        self.declared.append(f"{base} {name} = 0;")
        self.passed.append(f"&{name}")
        self.results.append(("value", name, base))

    def take_options(self, a, name, default):
        base = a["type"].removeprefix("const ").removesuffix(" *")
        self.declared.append(f"{base} {name} = {{.struct_size = sizeof {name}}};")
        for field in self.known.structs[base]["fields"][1:]:
            self.field(name, field)
        self.passed.append(f"&{name}")

    def field(self, struct, field):
        """A field of an options struct; one that Python cannot give is left out."""
        name, kind, to = field["name"], field["type"], f"{struct}.{field['name']}"
        if any(python_name(name) == n for n, *_ in self.arguments):
            return
        known = self.known
        if "length" in field and kind == "int64_t":
            i = self.given(name, "Shape", False)
            self.converted.append(f"to_array({shown(name)}, {i}, {field['length']}, {to})")
        elif "length" in field or field.get("callback"):
            return
        elif kind in PLAIN:
            i = self.given(name, "float" if kind == "double" else "int", False)
            self.converted.append(f"{PLAIN[kind][1]}({shown(name)}, {i}, &{to})")
        elif kind in known.enums:
            i = self.given(name, "str", False)
            self.declared.append(f"int {struct}_{name} = 0;")
            self.converted.append(f"to_enum({shown(name)}, {i}, {kind}_names, &{struct}_{name}) &&"
                                  f" ({to} = ({kind}){struct}_{name}, true)")
        elif kind == "ctn_tensor *":
            i = self.given(name, "Operand", False)
            self.converted.append(f"to_tensor(c, {i}, &{to})")
        elif kind == "const char *":
            i = self.given(name, "str", False)
            self.converted.append(f"to_text({shown(name)}, {i}, &{to})")
        elif kind == "const int64_t *":
            i = self.given(name, "int", False)
            self.declared.append(f"int64_t {struct}_{name} = 0;")
            self.converted.append(f"to_int64({shown(name)}, {i}, &{struct}_{name}) && "
                                  f"({to} = {i} ? &{struct}_{name} : NULL, true)")
        elif kind == "const ctn_init *":
            i = self.given(name, "Init", False)
            self.declared.append(f"ctn_init {struct}_{name} = {{.struct_size = sizeof(ctn_init)}};")
            self.converted.append(f"to_init({shown(name)}, {i}, &{struct}_{name}) && "
                                  f"({to} = {i} ? &{struct}_{name} : NULL, true)")

    # ---- code

    def text(self):
        n = max(len(self.arguments), 1)
        if len(self.arguments) > 24:
            raise Skip("more than 24 arguments")
        required = sum(1 << i for i, a in enumerate(self.arguments) if a[2])
        positional = len([a for a in self.arguments])
        names = ", ".join(quoted(a[0]) for a in self.arguments) or '""'
        lines = [f"static PyObject *call_{self.name}(PyObject *self, PyObject *const *args, "
                 "Py_ssize_t n, PyObject *names)", "{",
                 f"    static const char *const given[] = {{{names}}};",
                 f"    static const signature s = {{{quoted(self.name)}, {len(self.arguments)}, "
                 f"{required}u, {positional}, given}};",
                 f"    PyObject *in[{n}];"]
        lines += ["    " + d for d in self.declared]
        lines += ["    (void)self;"]
        lines += self.body()
        return "\n".join([*lines, "}", ""])

    def body(self):
        conversions = " ||\n        ".join(f"!({c})" if "&&" in c else f"!{c}"
                                            for c in self.converted)
        if self.op:
            lines = ["    one_op op;",
                     "    if (!arguments(&s, args, n, names, in) || !op_begin(&op)) return NULL;"]
            if conversions:
                if "(c," in conversions or "c->c" in str(self.passed):
                    lines.append("    context *c = op.c;")
                lines.append(f"    if ({conversions})\n        return op_fail(&op);")
            elif "c->c" in str(self.passed):
                lines.append("    context *c = op.c;")
            return lines + self.finish_op()
        lines = ["    context *c = current_context();",
                 "    if (!c || !arguments(&s, args, n, names, in)) return NULL;"]
        if conversions:
            lines.append(f"    if ({conversions})\n        return NULL;")
        return lines + self.finish()

    def finish_op(self):
        call = f"{self.f['name']}({', '.join(p if p != 'at' else 'here()' for p in self.passed)})"
        if self.f["returns"]["kind"] == "tensor":
            return [f"    return op_end(&op, {call});"]
        if self.f["returns"]["kind"] != "status":
            raise Skip("an op that returns " + self.f["returns"]["kind"])
        if self.tensors:
            all_ = ", ".join(self.tensors)
            return [f"    const ctn_status st = {call};",
                    f"    ctn_tensor *const out[] = {{{all_}}};",
                    f"    return op_end_all(&op, st, {len(self.tensors)}, out);"]
        if self.results and self.results[0][0] == "list":
            _, name, count = self.results[0]
            return [f"    const ctn_status st = {call};",
                    f"    return op_end_all(&op, st, {count}, {name});"]
        call = f"{self.f['name']}({', '.join(self.passed)})"
        return ["    const char *at = here();", "    ctn_status st;", "    Py_BEGIN_ALLOW_THREADS",
                f"    st = {call};", "    Py_END_ALLOW_THREADS",
                "    return op_end_none(&op, st);"]

    def finish(self):
        call = f"{self.f['name']}({', '.join(self.passed)})"
        kind, returns = self.f["returns"]["kind"], self.f["returns"]["type"]
        if self.tensors:
            raise Skip("out_tensor")
        if kind == "status":
            lines = ["    ctn_status st;", "    Py_BEGIN_ALLOW_THREADS",
                     f"    st = {call};", "    Py_END_ALLOW_THREADS",
                     "    if (!check(st)) return NULL;"]
            for i, _ in self.after:
                lines.append(f"    if (!give_to({i}, in[0])) return NULL;")
            return lines + self.give(self.results)
        if self.results:
            raise Skip("out_value of a function that returns a value")
        if kind == "void":
            return [f"    {call};", "    return Py_NewRef(Py_None);"]
        if kind == "string":
            return [f"    const char *y = {call};",
                    "    return y ? PyUnicode_FromString(y) : Py_NewRef(Py_None);"]
        if kind == "number" and returns in PLAIN:
            check = {"negative": "y < 0", "NaN": "y != y"}.get(self.f["returns"].get("failure"))
            lines = [f"    const {returns} y = {call};"]
            if check:
                lines.append(f"    if ({check}) return raise_error();")
            return [*lines, f"    return {self.number('y', returns)};"]
        if kind == "enum":
            return [f"    return PyLong_FromLong((long){call});"]
        if kind == "handle":
            base = returns.replace("const ", "").removesuffix(" *")
            if base == "ctn_var":
                return [f"    ctn_var *y = (ctn_var *){call};",
                        "    if (!y) return raise_error();",
                        "    return wrap_variable(c, y, NULL, owner_of(in[0]));"]
            raise Skip("a borrowed " + base)
        if kind == "value_struct" and returns == "ctn_vars":
            return [f"    const ctn_vars y = {call};",
                    "    return list_variables(c, y, owner_of(in[0]));"]
        raise Skip("returns " + kind)

    @staticmethod
    def number(name, kind):
        if kind == "double":
            return f"PyFloat_FromDouble({name})"
        if kind == "uint64_t":
            return f"PyLong_FromUnsignedLongLong({name})"
        return f"PyLong_FromLongLong((long long){name})"

    def give(self, results):
        if not results:
            return ["    return Py_NewRef(Py_None);"]
        if len(results) > 1:
            raise Skip("several results")
        what, name, base = results[0]
        if what == "value":
            return [f"    return {self.number(name, base)};"]
        uses = ", ".join(f"{u} ? {u} : Py_None" for u in self.uses)
        held = f"PyTuple_Pack({len(self.uses)}, {uses})" if self.uses else "NULL"
        return [f"    return wrap_handle(&{short(base)}_kind, {name}, {held});"]

    # ---- documentation

    def signature(self):
        shown = []
        for name, kind, required, default in self.arguments:
            value = "" if required else f"={default if default is not None else 'None'!s}"
            if isinstance(default, str):
                value = f"={default!r}"
            shown.append(name + value)
        return f"{self.name}({', '.join(shown)})"

    def documentation(self):
        said = words(self.known.text_of(self.f))
        return f"{self.signature()}\n\n{said}" if said else self.signature()

    def stub(self):
        given = []
        last = max((i for i, a in enumerate(self.arguments) if a[2]), default=-1)
        for i, (name, kind, required, default) in enumerate(self.arguments):
            value = "" if required else " | None" + (f" = {default!r}" if i > last else "")
            given.append(f"{name}: {kind}{value}")
        result = "Tensor" if self.f["returns"]["kind"] == "tensor" else \
            "tuple[Tensor, ...]" if self.tensors else "Any"
        line = f"def {self.name}({', '.join(given)}) -> {result}: ..."
        if len(line) <= 100:
            return line
        return f"def {self.name}(\n    " + ",\n    ".join(given) + f"\n) -> {result}: ..."


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
                      f"METH_FASTCALL | METH_KEYWORDS,\n     {wrapped(c.documentation())}}},"
                      for c, _ in calls)
    code = "\n".join([HEAD, *enums(known, texts), *kinds(description, texts), *texts,
                      "PyMethodDef op_functions[] = {", table, "    {NULL, NULL, 0, NULL},", "};",
                      "", *methods(c for c, _ in calls if method_of(c))])
    return {CALLS: code, STUBS: stubs(calls), OPS: op_list(calls)}


def op_list(calls):
    """The module that exports the ops."""
    names = sorted(c.name for c, _ in calls if is_op(c))
    lines = textwrap.wrap(", ".join(names), 84)
    return ('# SPDX-License-Identifier: Apache-2.0\n"""The ops. The build wrote this file."""\n'
            "from ._core import (  # noqa: F401\n    " + "\n    ".join(lines) + ")\n\n"
            "__all__ = [\n    " + "\n    ".join(
                textwrap.wrap(", ".join(f'"{n}"' for n in names), 88)) + "]\n")


def is_op(call):
    return call.op and call.f["header"].startswith("ops")


def method_of(call):
    """Can it be a method of a tensor?"""
    return is_op(call) and call.arguments and call.arguments[0][1] == "Operand"


def wrapped(text):
    parts = []
    for line in text.split("\n"):
        pieces = textwrap.wrap(line, 84) or [""]
        parts += [p + (" " if i + 1 < len(pieces) else "\n") for i, p in enumerate(pieces)]
    parts[-1] = parts[-1].rstrip("\n")
    return "\n     ".join(quoted(p).replace("\n", "\\n") for p in parts)


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
               f"METH_FASTCALL | METH_KEYWORDS,\n     {wrapped(c.documentation())}}},")
    yield "    {NULL, NULL, 0, NULL},"
    yield "};\n"


def stubs(calls):
    head = ('# SPDX-License-Identifier: Apache-2.0\n"""Types of catena._core. The build wrote '
            'this file."""\nfrom typing import Any, Sequence, Union\n\n'
            "Operand = Union[\"Tensor\", \"Parameter\", float, Any]\n"
            "Shape = Union[int, Sequence[int]]\nInit = Any\n\n\n"
            "class Tensor: ...\n\n\nclass Parameter: ...\n\n\nclass Handle: ...\n\n\n")
    return head + "\n".join(c.stub() for c, _ in calls) + "\n"


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    description = json.loads(INTERFACE.read_text(encoding="utf-8"))
    for name, text in files(description).items():
        if not (out / name).exists() or (out / name).read_text(encoding="utf-8") != text:
            (out / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
