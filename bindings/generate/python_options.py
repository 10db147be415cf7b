# SPDX-License-Identifier: Apache-2.0
"""Fields of an options struct as keyword arguments. A field that Python cannot give is left out."""
import re

from .fields import LENGTHS
from .python_words import python_name, shown, words

NUMBER = re.compile(r"-?[0-9][0-9.]*(e-?[0-9]+)?")
NUMBERS = {"int": "to_int", "int64_t": "to_int64", "double": "to_double", "int32_t": "to_int",
           "uint64_t": "to_uint64"}
ARRAYS = {"int64_t": ("Shape", "to_array"), "double": ("Numbers", "to_doubles")}
# In C, a 0 in these arrays stands for another value; in Python it is a 0.
PADS = ("pad", "pad_end", "out_pad")


def add(call, struct, base):
    """Add the fields of `base` to the arguments of a call, which set the C variable `struct`."""
    fields = call.known.structs[base]["fields"][1:]
    lengths = {LENGTHS[f["name"]] for f in fields if f["name"] in LENGTHS and "*" in f["type"]}
    taken = {a.name for a in call.arguments}
    for field in fields:
        make = maker(call.known, field)
        if make and field["name"] not in lengths and python_name(field["name"]) not in taken:
            make(call, struct, field)


def maker(known, field):
    """The function for fields of this type."""
    kind, pointed = field["type"], field["type"].removeprefix("const ").removesuffix(" *")
    if field.get("callback"):
        return None
    if "length" in field:
        return array if kind in ARRAYS else None
    if kind in NUMBERS:
        return number
    if kind in known.enums:
        return enum
    if kind == "const int64_t *" and field["name"] in LENGTHS:
        return several
    if kind.startswith("const ") and pointed in ("int64_t", "double"):
        return one
    if known.structs.get(pointed, {}).get("kind") == "options" and pointed != "ctn_init":
        return nested
    return {"ctn_tensor *": tensor, "const char *": text, "const ctn_init *": init}.get(kind)


def given(call, field, kind):
    """A new optional argument, in C."""
    note = field.get("default", "")
    default = None
    if NUMBER.fullmatch(note):
        default = float(note) if kind in ("float", "Numbers") else int(float(note))
    return call.given(field["name"], kind, False, default, note, words(field.get("comment")))


def number(call, struct, field):
    i = given(call, field, "float" if field["type"] == "double" else "int")
    to = f"{struct}.{field['name']}"
    call.converted.append(f"{NUMBERS[field['type']]}({shown(field['name'])}, {i}, &{to})")


def array(call, struct, field):
    kind, convert = ARRAYS[field["type"]]
    if field["name"] in PADS and kind == "Shape":
        convert = "to_pads"
    i = given(call, field, kind)
    to = f"{struct}.{field['name']}"
    call.converted.append(f"{convert}({shown(field['name'])}, {i}, {field['length']}, {to})")


def enum(call, struct, field):
    name, kind = field["name"], field["type"]
    i = given(call, field, call.known.literal(kind))
    call.declared.append(f"int {struct}_{name} = 0;")
    call.converted.append(f"to_enum({shown(name)}, {i}, {kind}_names, &{struct}_{name}) &&"
                          f" ({struct}.{name} = ({kind}){struct}_{name}, true)")


def tensor(call, struct, field):
    i = given(call, field, "Operand")
    call.converted.append(f"to_tensor(c, {i}, &{struct}.{field['name']})")


def text(call, struct, field):
    i = given(call, field, "str")
    call.converted.append(f"to_text({shown(field['name'])}, {i}, &{struct}.{field['name']})")


def one(call, struct, field):
    """A pointer to one number, NULL if it is not given."""
    name, base = field["name"], field["type"].removeprefix("const ").removesuffix(" *")
    i = given(call, field, "float" if base == "double" else "int")
    call.declared.append(f"{base} {struct}_{name} = 0;")
    call.converted.append(f"{NUMBERS[base]}({shown(name)}, {i}, &{struct}_{name}) && "
                          f"({struct}.{name} = {i} ? &{struct}_{name} : NULL, true)")


def several(call, struct, field):
    """An array whose length is another field."""
    name = field["name"]
    i = given(call, field, "Shape")
    call.declared.append(f"numbers {struct}_{name} = {{0}};")
    call.converted.append(
        f"to_numbers({shown(name)}, {i}, &{struct}_{name}) && ({struct}.{name} = "
        f"{struct}_{name}.at, {struct}.{LENGTHS[name]} = {struct}_{name}.n, true)")


def init(call, struct, field):
    name = field["name"]
    i = given(call, field, "Init")
    call.declared.append(f"ctn_init {struct}_{name} = {{.struct_size = sizeof(ctn_init)}};")
    call.converted.append(f"to_init({shown(name)}, {i}, &{struct}_{name}) && "
                          f"({struct}.{name} = {i} ? &{struct}_{name} : NULL, true)")


def nested(call, struct, field):
    """Options within options: their fields are arguments too, NULL if none of them is given."""
    name, base = f"{struct}_{field['name']}", field["type"].removeprefix("const ")[:-2]
    first = len(call.arguments)
    call.declared.append(f"{base} {name} = {{.struct_size = sizeof {name}}};")
    add(call, name, base)
    call.converted.append(f"({struct}.{field['name']} = any_given(in + {first}, "
                          f"{len(call.arguments) - first}) ? &{name} : NULL, true)")
