# SPDX-License-Identifier: Apache-2.0
"""One function of the library for Python: its arguments, and the C code that converts them."""
from collections import namedtuple

from . import python_options as options
from .python_words import python_name, quoted, short, shown

PLAIN = {"int": ("int", "to_int"), "int64_t": ("int64_t", "to_int64"),
         "double": ("double", "to_double"), "int32_t": ("int32_t", "to_int"),
         "uint64_t": ("uint64_t", "to_uint64")}
# Ops need these to be of the current context.
OF_CONTEXT = {"ctn_module": "module", "ctn_optim": "optimizer"}
# default: Python text or None. note: what leaving it out means, in words. said: what it is.
Argument = namedtuple("Argument", "name kind required default note said")


class Skip(Exception):
    """This function has an argument that Python code cannot give."""


class Call:
    """One function: its arguments in Python, and the C code that converts them."""

    def __init__(self, function, known):
        self.f, self.known = function, known
        self.name = short(function["name"])
        self.op = function["name"].endswith("_at") or function["returns"]["kind"] == "tensor"
        self.arguments = []
        self.declared, self.converted, self.passed = [], [], []
        self.after, self.results, self.uses = [], [], []
        self.freed = []  # statements after the call
        self.tensors = []  # results that are tensors
        self.counts = set()  # counts that an array has given
        for a in function["arguments"]:
            self.argument(a)

    # ---- arguments

    def given(self, name, kind, required=True, default=None, note="", said=""):
        """A new argument of the Python function, in C."""
        value = None if default is None else repr(default)
        self.arguments.append(Argument(python_name(name), kind, required, value, note, said))
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
        make(a, "v_" + a["name"], a.get("default"))

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
            i = self.given(name, "Object", not nullable)
            self.converted.append(f"to_handle({shown(name)}, {i}, &{short(base)}_kind, &{name})")
            if self.op and base in OF_CONTEXT:
                self.converted.append(f"of_context(c, {quoted(OF_CONTEXT[base])}, {i})")
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
        i = self.given(name, self.known.literal(a["type"]), default is None, default)
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
        self.counts.add(a.get("count"))

    def take_array(self, a, name, default):
        if a["type"] != "const int64_t *":
            raise Skip("array of " + a["type"])
        nullable = a.get("nullable", False)
        i = self.given(name, "Shape", not nullable)
        self.declared.append(f"numbers {name} = {{0}};")
        self.converted.append(f"to_numbers({shown(name)}, {i}, &{name})")
        if self.counted(a) and a["count"] in self.counts:
            raise Skip("two arrays of one length")
        if self.counted(a):
            self.counts.add(a["count"])
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
        self.counts.add(a.get("count"))

    def take_out_list(self, a, name, default):
        if "ctn_tensor" not in a["type"]:
            raise Skip("out_list")
        counted = [p for p in self.passed if p.endswith(".n") or p.startswith("n_")]
        if not counted or a.get("count") not in self.counts:
            raise Skip("out_list without a list of sizes")
        self.declared.append(f"ctn_tensor *{name}[CTN_MAX_OUT] = {{NULL}};")
        self.passed.append(name)
        self.results.append(("list", name, counted[-1]))

    def take_value_struct(self, a, name, default):
        if a["type"] != "ctn_vars":
            raise Skip(a["type"])
        i = self.given("parameters", "Sequence[Parameter]")
        self.declared.append(f"variables {name} = {{{{0}}, NULL}};")
        self.converted.append(f"to_variables({i}, &{name})")
        self.passed.append(f"{name}.vars")
        self.uses.append(f"{name}.all")
        self.freed.append(f"    free_variables(&{name});")

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
        first = len(self.arguments)
        options.add(self, name, base)
        n = len(self.arguments) - first
        if a.get("nullable") and n > 0:  # NULL may mean something else than a struct of zeros
            self.passed.append(f"any_given(in + {first}, {n}) ? &{name} : NULL")
        else:
            self.passed.append(f"&{name}")

    # ---- code

    def text(self):
        n = max(len(self.arguments), 1)
        if len(self.arguments) > 24:
            raise Skip("more than 24 arguments")
        required = sum(1 << i for i, a in enumerate(self.arguments) if a.required)
        names = ", ".join(quoted(a.name) for a in self.arguments) or '""'
        lines = [f"static PyObject *call_{self.name}(PyObject *self, PyObject *const *args, "
                 "Py_ssize_t n, PyObject *names)", "{",
                 f"    static const char *const given[] = {{{names}}};",
                 f"    static const signature s = {{{quoted(self.name)}, {len(self.arguments)}, "
                 f"{required}u, {len(self.arguments)}, given}};",
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
        if conversions and not self.freed:
            lines.append(f"    if ({conversions})\n        return NULL;")
        elif conversions:
            lines += [f"    if ({conversions}) {{", *("    " + s for s in self.freed),
                      "        return NULL;", "    }"]
        return lines + self.finish()

    def finish_op(self):
        call = f"{self.f['name']}({', '.join(p if p != 'at' else 'op.at' for p in self.passed)})"
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
        return ["    const char *at = op.at;", "    ctn_status st;", "    CALL_BEGIN",
                f"    st = {call};", "    CALL_END",
                "    return op_end_none(&op, st);"]

    def finish(self):
        call = f"{self.f['name']}({', '.join(self.passed)})"
        kind, returns = self.f["returns"]["kind"], self.f["returns"]["type"]
        if self.tensors:
            raise Skip("out_tensor")
        if kind == "status":
            lines = ["    ctn_status st;", "    CALL_BEGIN", f"    st = {call};", "    CALL_END"]
            given = "".join(f" && give_to({i}, in[0])" for i, _ in self.after)
            result = f"check(st){given} ? {self.give(self.results)} : NULL"
            if not self.freed:
                return [*lines, f"    return {result};"]
            return [*lines, f"    PyObject *y = {result};", *self.freed, "    return y;"]
        if self.freed:
            raise ValueError(f"{self.f['name']}: parameters, but no status")
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
        """The result as an expression."""
        if not results:
            return "Py_NewRef(Py_None)"
        if len(results) > 1:
            raise Skip("several results")
        what, name, base = results[0]
        if what == "value":
            return self.number(name, base)
        uses = ", ".join(f"{u} ? {u} : Py_None" for u in self.uses)
        held = f"PyTuple_Pack({len(self.uses)}, {uses})" if self.uses else "NULL"
        return f"wrap_handle(&{short(base)}_kind, {name}, {held})"
