# SPDX-License-Identifier: Apache-2.0
"""Writes bindings/fortran/catena_c.f90: every function, struct and constant for Fortran."""
import textwrap

from .kinds import parts

COLUMNS = 100
HEAD = """! SPDX-License-Identifier: Apache-2.0
!
! The C interface of Catena for Fortran: every public function, struct, enum and constant, under its
! name in C. dev/interface writes this file from the public headers; docs/reference explains the
! functions. Module catena (catena.f90) is easier to use, but covers less.
!
! - A handle is a type that holds the pointer: ctn_tensor() is NULL.
! - An optional argument that is left out is NULL.
! - Text that is passed to C ends with c_null_char. Text that C returns or keeps is a c_ptr.
! - `at` is such a text, which messages show instead of a source line. It must live as long as the
!   context.
! - The type of an options struct sets struct_size by itself, and all other fields to 0.
! - Callbacks are procedures with bind(C) and the interface of the same name; pass c_funloc(f).
"""
NUMBERS = {"int": "integer(c_int)", "unsigned int": "integer(c_int)",
           "int32_t": "integer(c_int32_t)", "uint32_t": "integer(c_int32_t)",
           "int64_t": "integer(c_int64_t)", "uint64_t": "integer(c_int64_t)",
           "size_t": "integer(c_size_t)", "unsigned char": "integer(c_signed_char)",
           "double": "real(c_double)", "float": "real(c_float)"}
# Intent of arguments that are passed by reference, and whether they are arrays.
REFERENCES = {"out_tensor": ("out", False), "out_handle": ("out", False),
              "inout_handle": ("inout", False), "list": ("in", True), "out_list": ("inout", True),
              "options": ("in", False), "struct": ("in", False), "inout_struct": ("inout", False),
              "structs": ("in", True), "shape": ("in", True), "array": ("in", True),
              "out_array": ("out", True), "inout_array": ("inout", True),
              "out_value": ("out", False), "string": ("in", True), "text": ("out", True),
              "strings": ("in", True), "buffers": ("in", True), "arrays": ("in", True),
              "buffer": ("in", True), "out_buffer": ("inout", True),
              "inout_buffer": ("inout", True)}
POINTERS = {"strings", "buffers", "arrays"}  # arrays of addresses


class Names:
    """Types of C and what Fortran calls them."""

    def __init__(self, description):
        self.handles = {h["name"] for h in description["handles"]}
        self.structs = {s["name"]: s for s in description["structs"]}
        self.enums = {e["name"] for e in description["enums"] if e["named"]}
        self.callbacks = {c["name"] for c in description["callbacks"]}

    def value(self, spelling):
        """A value of this C type, such as a field or an argument passed by value."""
        base, _, depth, _ = parts(spelling)
        if "(*)" in spelling or (base in self.callbacks and depth == 0):
            return "type(c_funptr)"
        if base in self.handles and depth == 1:
            return f"type({base})"
        return "type(c_ptr)" if depth else self.base(base)

    def base(self, base):
        if base in self.structs or base in self.handles:
            return f"type({base})"
        if base in self.enums:
            return "integer(c_int)"
        return {"char": "character(kind=c_char)", "void": "type(*)"}.get(base) or NUMBERS[base]

    def argument(self, argument):
        """The declaration of a dummy argument."""
        kind, name = argument["kind"], argument["name"]
        base = parts(argument["type"])[0]
        if kind == "out_struct":
            sized = self.structs[base]["kind"] == "options"  # the library reads struct_size
            intent, array = "inout" if sized else "out", False
        elif kind in REFERENCES and not (kind == "string" and "outlives" in argument):
            intent, array = REFERENCES[kind]
        else:
            return f"{self.value(argument['type'])}, value :: {name}"
        fortran = "type(c_ptr)" if kind in POINTERS else self.base(base)
        optional = ", optional" if argument.get("nullable") else ""
        return f"{fortran}, intent({intent}){optional} :: {name}{'(*)' if array else ''}"


def text(description):
    names = Names(description)
    out = [HEAD + "module catena_c", "    use, intrinsic :: iso_c_binding", "    implicit none",
           "    public", "", *constants(description), "", *types(description, names),
           "    ! ---- callbacks", "    abstract interface"]
    for callback in description["callbacks"]:
        dummies = [f"{names.value(a['type'])}, value :: {a['name']}"
                   for a in callback["arguments"]]
        out += procedure(callback["name"], callback["returns"], dummies,
                         [a["name"] for a in callback["arguments"]], names)
    out += ["    end interface", "", *functions(description, names), "end module"]
    return "\n".join(out) + "\n"


def constants(description):
    out = ["    ! ---- constants"]
    for constant in description["constants"]:
        name = constant.get("fortran", constant["name"])
        out.append(f"    integer(c_int), parameter :: {name} = {constant['value']}")
    for enum in description["enums"]:
        out += ["", f"    ! {enum['name']}" if enum["named"] else f"    ! {enum['header']}"]
        for value in enum["values"]:
            out.append(f"    integer(c_int), parameter :: {value['name']} = {value['value']}")
    return out


def types(description, names):
    out = ["    ! ---- handles"]
    for handle in description["handles"]:
        out += [f"    type, bind(C) :: {handle['name']}", "        type(c_ptr) :: p = c_null_ptr",
                "    end type"]
    out += ["", "    ! ---- structs"]
    for struct in ordered(description["structs"]):
        out.append(f"    type, bind(C) :: {struct['name']}")
        out += [field(f, struct, names) for f in struct["fields"]] + ["    end type"]
    return out + [""]


def ordered(structs):
    """Structs after those that they contain."""
    done, waiting = [], list(structs)
    while waiting:
        names = {s["name"] for s in waiting}
        ready = [s for s in waiting
                 if not any(f["type"] in names - {s["name"]} for f in s["fields"])]
        done += ready
        waiting = [s for s in waiting if s not in ready]
    return done


def field(entry, struct, names):
    fortran = names.value(entry["type"])
    start = {"type(c_ptr)": " = c_null_ptr", "type(c_funptr)": " = c_null_funptr",
             "character(kind=c_char)": " = c_null_char"}.get(fortran, " = 0")
    if start == " = 0" and fortran.startswith("type("):
        start = ""  # that type has initial values of its own
    if entry["name"] == "struct_size" and struct["kind"] == "options":
        start = f" = {struct['size']}"
    dimension = f"({entry['length']})" if "length" in entry else ""
    return f"        {fortran} :: {entry['name']}{dimension}{start}"


def left_out(function):
    """Why Fortran cannot call a function, or None."""
    if any(a["kind"] == "variadic" for a in function["arguments"]):
        return "takes any number of arguments"
    return "is defined in a header" if function.get("inline") else None


def functions(description, names):
    out, place = [], None
    for function in description["functions"]:
        here = (function["header"], function.get("section"))
        if here != place:
            out += ["    end interface", ""] if place else []
            title = f"---- {here[0]}" + (f": {here[1]}" if here[1] else "")
            out += textwrap.wrap(title, COLUMNS, initial_indent="    ! ",
                                 subsequent_indent="    ! ") + ["    interface"]
            place = here
        why = left_out(function)
        if why:
            out.append(f"        ! {function['name']} {why}.")
            continue
        out += procedure(function["name"], function["returns"]["type"],
                         [names.argument(a) for a in function["arguments"]],
                         [a["name"] for a in function["arguments"]], names)
    return [*out, "    end interface"]


def procedure(name, returns, dummies, arguments, names):
    """The interface of a function, or of a subroutine if it returns nothing."""
    word = "subroutine" if returns == "void" else "function"
    result = "" if returns == "void" else " result(res)"
    out = wrapped(f"        {word} {name}({', '.join(arguments)}) bind(C){result}")
    out.append("            import")
    out += ["            " + dummy for dummy in dummies]
    if result:
        out.append(f"            {names.value(returns)} :: res")
    return [*out, f"        end {word}"]


def wrapped(line, indent=16):
    """Continued lines of at most 100 columns."""
    out = []
    while len(line) > COLUMNS:
        cut = line.rindex(" ", 0, COLUMNS - 1)
        out.append(line[:cut] + " &")
        line = " " * indent + line[cut + 1:]
    return [*out, line]


def files(description):
    return {"bindings/fortran/catena_c.f90": text(description)}
