# SPDX-License-Identifier: Apache-2.0
"""What help() shows about a function of the Python package, and its types for type checkers."""
import re
import textwrap

from .python_words import raised, spoken, words

KINDS = {"Operand": "tensor, parameter, array or number", "Sequence[Operand]": "tensors",
         "Sequence[Parameter]": "parameters", "Shape": "integer or sequence of integers",
         "Numbers": "number or sequence of numbers", "float": "number", "int": "integer",
         "str": "text",
         "Init": "initial value: a number, the name of a kind, or a dictionary",
         "Object": "object of the library", "Parameter": "parameter"}
VALUE = re.compile(r"(?:^|[;.] )(?:\w+ )?(?:0|None)(?: or \w+)?: [^;]*$")


def first_optional(arguments):
    """From this argument on, all may be left out."""
    return max((i + 1 for i, a in enumerate(arguments) if a.required), default=0)


def signature(name, arguments, self_):
    """The line from which inspect.signature reads names and defaults."""
    end = first_optional(arguments)
    shown = [a.name + (f"={a.default}" if i >= end else "") for i, a in enumerate(arguments)]
    return f"{name}({', '.join([self_, *shown])})\n--\n\n"


def parameter(a):
    """One line about an argument."""
    kind = a.kind
    if kind.startswith("Literal["):
        kind = kind[8:-1].replace("'", '"')
    parts = [KINDS.get(kind, kind)]
    if not a.required:
        note = spoken(a.note) or (a.default or "").replace("'", '"')
        parts[0] += f"; default: {note}" if note else ", optional"
    said = VALUE.sub("", spoken(a.said)).rstrip(".")
    if said:
        parts.append(said)
    return textwrap.fill(f"{a.name}: {'. '.join(parts)}", 88, initial_indent="    ",
                         subsequent_indent="        ")


def documentation(call, method=False):
    """The text of help(): signature, what it does, arguments, exceptions."""
    arguments = call.arguments[1:] if method else call.arguments
    parts = []
    said = spoken(words(call.known.text_of(call.f)))
    if said:
        parts.append(textwrap.fill(said, 88))
    if arguments:
        parts.append("\n".join(["Parameters:", *map(parameter, arguments)]))
    errors = raised(words(call.f.get("errors", {}).get("text")))
    if errors:
        parts.append(textwrap.fill(f"Raises: {errors}.", 88))
    return signature(call.name, arguments, "$self" if method else "$module") + "\n\n".join(parts)


def result(call):
    """The type of what the function returns."""
    kind = call.f["returns"]["kind"]
    if kind == "tensor":
        return "Tensor"
    if call.tensors:
        return f"tuple[{', '.join(['Tensor'] * len(call.tensors))}]"
    for what, _, base in call.results:
        if what != "value":
            return "tuple[Tensor, ...]" if what == "list" else "Handle"
        return "float" if base == "double" else "int"
    if kind == "handle":
        return "Parameter"
    if kind == "number":
        return "float" if call.f["returns"]["type"] == "double" else "int"
    return {"string": "str | None", "enum": "int", "value_struct": "list[Parameter]"}.get(
        kind, "None")


def stub(call, method=False):
    """The declaration for type checkers."""
    arguments, end = call.arguments, first_optional(call.arguments)
    given = []
    for i, a in enumerate(arguments):
        optional = "" if a.required else " | None" + (f" = {a.default}" if i >= end else "")
        given.append(f"{a.name}: {a.kind}{optional}")
    if method:
        given[0] = "self"
    before = "    " if method else ""
    line = f"{before}def {call.name}({', '.join(given)}) -> {result(call)}: ..."
    if len(line) <= 100:
        return line
    return f"{before}def {call.name}(\n{before}    " + f",\n{before}    ".join(given) + \
        f"\n{before}) -> {result(call)}: ..."
