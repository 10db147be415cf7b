# SPDX-License-Identifier: Apache-2.0
"""Writes include/catena/cpp/generated.hpp: every function and every options struct for C++17.

One rule for names: a function of C loses ctn_ and _at. If its noun is the kind of its first
argument, it is a member of that class and loses the noun too. If it makes an object, it returns it;
ctn_NOUN_new and ctn_NOUN_open of a class of that name are its constructor. MEMBERS and BY_HAND list
the exceptions.
"""
from .cpp_call import Call
from .cpp_options import BASES, options
from .cpp_words import class_name, owned_handles, wrapped

PATH = "include/catena/cpp/generated.hpp"
HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// Every op, object and options struct of Catena for C++17. dev/interface writes this file from the
// public headers, and docs/reference explains the functions under their names in C. Include
// catena/catena.hpp.
#ifndef CATENA_CPP_GENERATED_HPP
#define CATENA_CPP_GENERATED_HPP

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <catena/catena.h>
#include <catena/cpp/error.hpp>
#include <catena/cpp/handle.hpp>
#include <catena/cpp/source.hpp>
#include <catena/cpp/support.hpp>
#include <catena/cpp/tensor.hpp>
#include <catena/cpp/views.hpp>

// clang-format off
namespace catena {
"""
# Members that every program calls, although their noun is not that of the class.
MEMBERS = {"ctn_call_at": "operator()", "ctn_call_multi_at": "call_multi", "ctn_params": "params",
           "ctn_use_at": "use", "ctn_assign_at": "assign", "ctn_backward_at": "backward",
           "ctn_flush": "flush", "ctn_report": "report", "ctn_weights_save_with": "save",
           "ctn_weights_load": "load",
           # get() returns the pointer, and the others are words of C++.
           "ctn_var_get": "read", "ctn_var_set": "write", "ctn_dataset_get": "sample_at",
           "ctn_comm_break": "break_group", "ctn_dataset_class": "class_name"}
# Functions of headers that hand-written files replace, or that C programs use.
BY_HAND_HEADERS = {"base.h", "mpi.h", "op.h"}
BY_HAND = {
    **dict.fromkeys(("ctn_ndim", "ctn_dim", "ctn_count", "ctn_dtype_of", "ctn_read", "ctn_item",
                     "ctn_data", "ctn_tensor_text"), "members of Tensor"),
    **dict.fromkeys(("ctn_scope_begin", "ctn_scope_end", "ctn_scope_return",
                     "ctn_scope_return_n"), "class Scope"),
    **dict.fromkeys(("ctn_recompute_begin", "ctn_recompute_end"), "class Recompute"),
    **dict.fromkeys(("ctn_module_visit", "ctn_module_visit_modules", "ctn_optim_visit",
                     "ctn_context_visit_plan", "ctn_tune_visit"), "visit.hpp"),
    **dict.fromkeys(("ctn_module_new", "ctn_module_new_multi", "ctn_module_set_copy"),
                    "module.hpp"),
    **dict.fromkeys(("ctn_trainer_new", "ctn_extend_evaluator", "ctn_evaluate",
                     "ctn_dist_evaluate", "ctn_extend_observe"), "train.hpp"),
    **dict.fromkeys(("ctn_dataset_new", "ctn_sampler_new", "ctn_dataset_transform"), "data.hpp"),
    "ctn_retain": "retain() of Retained",
    "ctn_weights_save": "save() has an optional argument",
}

OWNERS_BY_HAND = {"ctn_trainer"}  # train.hpp: owns loss functions too


def by_hand(function, frees):
    return (function["header"] in BY_HAND_HEADERS or function["name"] in BY_HAND
            or function["name"] in frees)


def files(description):
    return {PATH: text(description)}


def text(description):
    frees = {h["free"] for h in description["handles"]}
    calls = [Call(f, description, MEMBERS) for f in description["functions"]
             if not by_hand(f, frees)]
    out = [HEAD]
    classes = [h["name"] for h in description["handles"] if h["name"] != "ctn_tensor"]
    out += [f"class {class_name(c)}Ref;" for c in classes]
    out += [f"class {class_name(h)};" for h in owned_handles(description)]
    for name in classes:
        out += ["", *reference(name, [c for c in calls if c.owner == name])]
    for handle in description["handles"]:
        if handle["free"] and handle["name"] not in OWNERS_BY_HAND:
            made = [c for c in calls if c.constructs == handle["name"]]
            out += ["", *owner(handle, made)]
    out += ["", "// ---- options"]
    for struct in description["structs"]:
        if struct["kind"] == "options" and struct["name"] not in BASES:
            out += ["", *options(struct, classes)]
    place = None
    for call in calls:
        if call.header != place:
            place = call.header
            out += ["", f"// ---- {place}"]
        out += call.definition()
    return "\n".join([*out, "", "} // namespace catena", "// clang-format on", "#endif", ""])


def reference(name, calls):
    """The class of references, with its members."""
    ref = class_name(name) + "Ref"
    out = [f"class {ref} : public Ref<{name}> {{", "public:", "    using Ref::Ref;"]
    for call in calls:
        out += wrapped("    " + call.declaration() + ";")
    return [*out, "};"]


def owner(handle, made):
    """The class that owns an object, with its constructors."""
    name = class_name(handle["name"])
    out = [f"class {name} : public Owner<{name}Ref, {handle['free']}> {{", "public:",
           "    using Owner::Owner;"]
    if made and not any(call.needs_nothing() for call in made):
        out.append(f"    {name}() = default;")
    for call in made:
        out += wrapped("    " + call.declaration() + ";")
    return [*out, "};"]
