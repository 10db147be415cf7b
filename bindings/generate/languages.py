# SPDX-License-Identifier: Apache-2.0
"""Tells what a function or handle of C is in Python, C++ and Fortran.

Everything follows from the generators of those languages, and for Python also from the source of
its package, where a class or function that calls _core.NAME stands for that function. A function
without a counterpart has no entry.
"""
import ast

from . import cpp, fortran_module, python
from .cpp_words import class_name, wrapped
from .files import TOP
from .fortran import wrapped as continued
from .python_docs import first_optional

PACKAGE = TOP / "bindings" / "python" / "catena"
MODULES = ("nn", "optim", "data", "dist", "train", "zoo")
MAKES = ("_new", "_open")  # what a constructor stands for; other calls in it are details
COLUMNS = 80


def languages(description):
    """{name in C: {language: (name for highlighting, lines)}}"""
    found = {}
    for language, marked, made in (("Python", "python", python_names(description)),
                                   ("C++", "cpp", cpp_names(description)),
                                   ("Fortran", "fortran", fortran_names(description))):
        for name, lines in made.items():
            found.setdefault(name, {})[language] = (marked, lines)
    return found


# ---- Python

def python_names(description):
    _, calls, _ = python.made(description)
    calls = {call.name: call for call, _ in calls}
    found = {call.f["name"]: spread(f"ct.{call.name}", shown(call))
             for call in calls.values() if python.is_op(call)}
    # The modules data and zoo pass on functions by name.
    for name, call in calls.items():
        if name.startswith("zoo_"):
            found[call.f["name"]] = spread(f"ct.zoo.{name[4:]}", shown(call))
        elif call.f["header"] in ("data.h", "datasets.h", "image.h") and name.endswith("_open"):
            found[call.f["name"]] = spread(f"ct.data.{name[:-5]}", shown(call))
    core = {python.short(f["name"]): f["name"] for f in description["functions"]}
    for module in MODULES:
        tree = ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))
        for name, lines in by_hand(module, tree):
            if name in core:
                found.setdefault(core[name], lines)
    return found


def shown(call):
    """The arguments of a generated function, as a caller sees them."""
    end = first_optional(call.arguments)
    return [a.name + (f"={a.default}" if i >= end else "") for i, a in enumerate(call.arguments)]


def by_hand(module, tree):
    """(name in _core, lines) of the public classes, methods and functions of a module."""
    for item in tree.body:
        if item_is_public(item) and isinstance(item, ast.FunctionDef):
            yield from stands_for(item, f"ct.{module}.{item.name}", item.args.args)
        elif item_is_public(item) and isinstance(item, ast.ClassDef):
            for method in item.body:
                if isinstance(method, ast.FunctionDef):
                    yield from of_class(module, item.name, method)


def of_class(module, owner, method):
    """A constructor, a property or another method."""
    given, marks = method.args.args[1:], [ast.unparse(d) for d in method.decorator_list]
    if method.name == "__init__":
        yield from stands_for(method, f"ct.{module}.{owner}", given, MAKES)
    elif method.name == "forward":
        yield from stands_for(method, "Module.__call__", given)
    elif item_is_public(method):
        for name, lines in stands_for(method, f"{owner}.{method.name}", given):
            if marks == ["property"]:
                lines = [f"{owner}.{method.name}"]
            elif marks:
                lines = [f"{owner}.{method.name} = {given[0].arg}"]
            yield name, lines


def item_is_public(item):
    return not getattr(item, "name", "_").startswith("_")


def stands_for(function, name, given, endings=("",)):
    """The functions of _core that this one calls, if it is clear which one it stands for."""
    called = {node.func.attr for node in ast.walk(function)
              if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
              and isinstance(node.func.value, ast.Name) and node.func.value.id == "_core"}
    called = [c for c in called if c.endswith(endings)]
    if len(called) != 1:
        return
    args = function.args
    defaults = [None] * (len(args.args) - len(args.defaults)) + args.defaults
    defaults = defaults[len(args.args) - len(given):]
    words = [a.arg + (f"={ast.unparse(d)}" if d else "") for a, d in zip(given, defaults)]
    words += [f"*{args.vararg.arg}"] if args.vararg else []
    words += [a.arg + (f"={ast.unparse(d)}" if d else "")
              for a, d in zip(args.kwonlyargs, args.kw_defaults)]
    words += [f"**{args.kwarg.arg}"] if args.kwarg else []
    yield called[0], spread(name, words)


def spread(name, words):
    """A call, on one line or with its arguments below it."""
    line = f"{name}({', '.join(words)})"
    if len(line) <= COLUMNS:
        return [line]
    out, current = [f"{name}("], "    "
    for i, word in enumerate(words):
        word += "," if i + 1 < len(words) else ")"
        if len(current) + len(word) > COLUMNS:
            out.append(current.rstrip())
            current = "    "
        current += word + " "
    return [*out, current.rstrip()]


# ---- C++ and Fortran

def cpp_names(description):
    frees = {h["free"] for h in description["handles"]}
    found = {}
    for function in description["functions"]:
        if cpp.by_hand(function, frees):
            continue
        call = cpp.Call(function, description, cpp.MEMBERS)
        given = call.parameters(True).removesuffix("Where at = Where::here()").removesuffix(", ")
        if call.constructs:
            line = f"{class_name(call.constructs)}({given})"
        elif call.owner:
            line = f"{call.spaced()}{class_name(call.owner)}::{call.short}({given})"
        else:
            line = f"{call.spaced()}{call.short}({given})"
        found[function["name"]] = wrapped(f"{line};")
    for handle in description["handles"]:
        if handle["name"] != "ctn_tensor":
            name = class_name(handle["name"])
            owner = [f"class {name}; // owns the object"] if handle["free"] else []
            found[handle["name"]] = [*owner, f"class {name}Ref; // refers to it"]
    return found


def fortran_names(description):
    found = {}
    for wrapper in fortran_module.wrappers(description)[0]:
        lines = [part for line in wrapper.interface for part in continued(line)]
        if wrapper.bound:
            handle, name = wrapper.bound
            lines.append(f"! also: {wrapper.call.dummies[0].name}%{name}(...)")
        before = found.get(wrapper.function["name"], [])
        found[wrapper.function["name"]] = [*before, *([""] if before else []), *lines]
    return found | {h["name"]: [f"type({h['name']})"] for h in description["handles"]}
