# SPDX-License-Identifier: Apache-2.0
"""Options structs for C++17, which has no designated initializers: a class per struct that derives
from it, fills in struct_size and has one setter per field."""
from .cpp_words import class_name, wrapped
from .kinds import parts

# Structs that hand-written classes fill in, that the library fills in, or that only ops need.
BASES = {"ctn_dataset_vt", "ctn_extension", "ctn_op", "ctn_plan_node", "ctn_model_opt",
         "ctn_comm_stats", "ctn_dist_stats"}


def options(struct, classes):
    name = class_name(struct["name"])
    out = [f"struct {name} : detail::Sized<{struct['name']}> {{"]
    for field in struct["fields"]:
        if field["name"] != "struct_size":
            out += setter(name, field, classes)
    return [*out, "};"]


def setter(name, field, classes):
    what, said = field["name"], field["type"]
    target = f"Struct::{what}"
    if "length" in field:
        given, act = (f"Span<const {said}> v", f"detail::fill({target}, v)")
    else:
        given, value = argument(said, classes)
        act = f"{target} = {value}"
    return wrapped(f"    {name} &{what}({given}) {{ {act}; return *this; }}")


def argument(said, classes):
    """(parameter, value) of a setter for a field of this type."""
    if "(*)" in said:
        return said.replace("(*)", "(*v)"), "v"
    base, const, depth, _ = parts(said)
    if base == "ctn_tensor":
        return "const Tensor &v", "v.get()"
    if base in classes and depth == 1:
        return f"{class_name(base)}Ref v", "v.get()"
    if base == "char" and depth == 1:
        return "Text v", "v.get()"
    if base.startswith("ctn_") and const and depth == 1:
        return f"const {base} &v", "&v"
    if depth:
        return f"{said}v", "v"
    return f"{said} v", "v"
