# SPDX-License-Identifier: Apache-2.0
"""Makes the description of the public interface: what the headers declare and what their comments
say, as plain dictionaries and lists. bindings/interface.json is this description.
"""
import re
import tomllib

from clang.cindex import CursorKind

from . import declare, headers, kinds, words
from .outline import Outline
from .wrong import Wrong

TABLES = {"function", "returns", "handle", "constant", "default"}


def describe(include, table_file):
    """The description as a dictionary. Raises Wrong with all problems that were found."""
    with open(table_file, "rb") as file:
        table = tomllib.load(file)
    found, integers = headers.read(include)
    description = Description(found, integers, table)
    description.make()
    if description.problems:
        raise Wrong("\n".join(description.problems))
    return description.parts


class Description:
    def __init__(self, found, integers, table):
        self.headers, self.integers, self.table = found, integers, table
        self.parts = {part: [] for part in ("headers", "handles", "constants", "enums", "structs",
                                            "callbacks", "functions", "variables", "macros")}
        self.types = kinds.Types()
        self.problems, self.used = [], set()
        self.defaults = {}  # of a header: {ranks, result, errors}
        self.functions = {}  # by name

    def make(self):
        for header in self.headers:
            for item in header.items:
                self.note_type(item)
        # A header that is included by another one and takes its words from it comes after it.
        for header in sorted(self.headers, key=lambda h: ("_" in h.name, h.name)):
            self.header(header)
        for part in self.parts.values():
            part.sort(key=lambda entry: entry.get("header", ""))
        self.parts["headers"].sort(key=lambda entry: entry["name"])
        self.free_functions()
        self.macros_of_functions()
        self.unused_entries()

    def note_type(self, item):
        if item.kind == "struct":
            first = next(item.cursor.underlying_typedef_type.get_fields()).spelling
            (self.types.options if first == "struct_size" else self.types.plain).add(item.name)
        elif item.kind in ("handle", "enum", "callback"):
            getattr(self.types, item.kind + "s").add(item.name)

    def header(self, header):
        outline = Outline(header, self.defaults)
        self.defaults[header.name] = outline.defaults
        make = {"function": self.function, "struct": declare.struct, "enum": self.enum,
                "callback": declare.callback, "handle": declare.handle,
                "variable": declare.variable, "macro": self.macro}
        for item, said in outline.items():
            entry = {"name": item.name, "header": header.name, **said.entry()}
            try:
                part, more = make[item.kind](item, said)
                self.parts[part].append({**entry, **more})
            except Wrong as wrong:
                self.problems.append(f"{header.name}:{item.first}: {wrong}")
        self.parts["headers"].append({"name": header.name, **outline.entry()})

    def enum(self, item, said):
        return "enums", declare.enum(item, declare.table_texts(self.headers))

    def macro(self, item, said):
        if item.name in self.integers:
            entry = {"value": self.integers[item.name]}
            other = self.entry("constant", item.name).get("fortran")
            return "constants", {**entry, **({"fortran": other} if other else {})}
        return "macros", {"tokens": item.tokens, "function_like": item.function_like}

    def entry(self, kind, name):
        self.used.add((kind, name))
        return self.table.get(kind, {}).get(name, {})

    def function(self, item, said):
        arguments = declare.arguments(item.cursor)
        if item.cursor.type.is_function_variadic():
            arguments.append({"name": "...", "type": "..."})
        table = self.entry("function", item.name)
        for name in set(table) - {a["name"] for a in arguments}:
            raise Wrong(f"{item.name} has no argument {name}: remove its entry from "
                        "bindings/interface.toml")
        prose = said.prose()
        decided = kinds.Function(item.name, arguments, prose, self.types, table).kinds()
        self.add_defaults(item.name, decided)
        returns = self.returns(item, prose)
        entry = {"returns": returns, "arguments": decided,
                 **self.words(item.name, said, returns, decided)}
        if any(c.kind == CursorKind.WARN_UNUSED_RESULT_ATTR for c in item.cursor.get_children()):
            entry["must_check"] = True
        if item.cursor.is_definition():
            entry["inline"] = True
        self.functions[item.name] = entry
        return "functions", entry

    def add_defaults(self, name, arguments):
        """What languages with default arguments assume."""
        table = self.entry("default", name)
        for other in set(table) - {a["name"] for a in arguments} - {"reason"}:
            raise Wrong(f"{name} has no argument {other}: remove its default from "
                        "bindings/interface.toml")
        for a in arguments:
            if a["name"] in table:
                a["default"] = table[a["name"]]

    def returns(self, item, prose):
        spelling = item.cursor.result_type.spelling
        base, const, depth, _ = kinds.parts(spelling)
        table = {k: v for k, v in self.entry("returns", item.name).items() if k != "reason"}
        if spelling == "void":
            kind = "void"
        elif depth == 0:
            kind = ("status" if base == "ctn_status" else "enum" if base in self.types.enums
                    else "value_struct" if base in self.types.structs else "number")
        elif base in self.types.handles and depth == 1:
            kind = "tensor" if base == "ctn_tensor" else "handle"
        elif base == "char" and const:
            kind = "string" if depth == 1 else "strings"
        else:
            kind = "struct" if base in self.types.structs else "address"
        found = {"type": spelling, "kind": kind}
        if "as snprintf does" in prose:
            found["length"] = True  # of everything, also if it did not fit
        if "CTN_END" in prose and kind == "status":
            found["may_end"] = True
        if re.search(r"< 0 on error|as a negative ctn_status", prose):
            found["failure"] = "negative"
        elif "Returns NaN and records an error" in prose:
            found["failure"] = "NaN"
        return {**found, **table}

    def words(self, name, said, returns, arguments):
        """ranks, result and errors of a function."""
        found = {}
        if not said.word("ranks"):
            raise Wrong(f"{name}: the comment does not say Local or Collective")
        found["ranks"] = words.ranks(said.word("ranks"))
        pointer = returns["kind"] in ("tensor", "handle", "string", "strings", "struct", "address")
        gives = pointer or any(a["kind"].startswith(("out_handle", "out_tensor", "out_list"))
                               for a in arguments)
        if gives and not said.word("result"):
            raise Wrong(f"{name}: the comment does not say `Result:`")
        fills = returns["kind"] == "value_struct" or \
            any(a["kind"].startswith("out_") for a in arguments)
        if said.word("result") and (gives or (fills and said.own("result"))):
            found["result"] = words.result(said.word("result"))
            if gives and found["result"]["lifetime"] == "value":
                raise Wrong(f"{name}: `Result:` must say owned, borrowed or scope")
            if found["result"].get("how_long") == "":
                raise Wrong(f"{name}: `Result: borrowed` must say from what, until when or forever")
        if said.word("errors"):
            found["errors"] = self.errors(name, said)
        return found

    def errors(self, name, said):
        found = words.errors(said.word("errors"))
        known = {s["name"].removeprefix("CTN_") for e in self.parts["enums"]
                 if e["name"] == "ctn_status" for s in e["values"]}
        for code in found["codes"]:
            if code not in known:
                raise Wrong(f"{name}: there is no status CTN_{code}")
        for other in words.references(found["text"]):
            if other not in self.functions:
                raise Wrong(f"{name}: the errors are those of {other}, which is not above it")
            found["codes"] += self.functions[other].get("errors", {}).get("codes", [])
        if found["text"][0].startswith("also ") and said.inherited("errors"):
            found["codes"] = words.errors(said.inherited("errors"))["codes"] + found["codes"]
        found["codes"] = list(dict.fromkeys(found["codes"]))
        return found

    def free_functions(self):
        """The function that frees each handle, and who owns the object."""
        free = {f["arguments"][0]["type"].removesuffix(" *"): f["name"]
                for f in self.parts["functions"] if f["name"].endswith("_free")}
        for handle in self.parts["handles"]:
            name = handle["name"]
            owner = self.entry("handle", name).get("owner")
            if name in free and not owner:
                handle.update(free=free[name], owner="caller")
            elif owner and name not in free:
                handle.update(free=None, owner=owner)
            else:
                self.problems.append(f"{handle['header']}: {name} needs either a function that "
                                     f"frees it or [handle.{name}] with owner in "
                                     "bindings/interface.toml")
        for function in self.parts["functions"]:
            declare.complete_free(function, free)

    def macros_of_functions(self):
        """Moves the macros that call a function to that function."""
        functions = {f["name"]: f for f in self.parts["functions"]}
        rest = []
        for macro in self.parts["macros"]:
            target = functions.get(declare.called(macro["tokens"]))
            if macro["name"].startswith("ctn_") and target:
                target.setdefault("macros", []).append(declare.macro_call(macro, target))
            elif macro["name"].startswith("ctn_"):
                self.problems.append(f"{macro['name']}: calls no public function")
            else:
                rest.append(declare.helper(macro))
        self.parts["macros"] = rest
        for function in self.parts["functions"]:
            if function["arguments"][:1] and function["arguments"][0]["kind"] == "source_line" \
                    and not function.get("macros"):
                self.problems.append(f"{function['name']}: no macro passes the source line")

    def unused_entries(self):
        for kind, entries in self.table.items():
            if kind not in TABLES:
                self.problems.append(f"interface.toml: [{kind}] is none of {sorted(TABLES)}")
                continue
            for name, entry in entries.items():
                if (kind, name) not in self.used:
                    self.problems.append(f"interface.toml: {kind}.{name} does not exist: remove "
                                         "the entry")
                each = entry.values() if kind == "function" else [entry]
                if not all("reason" in one for one in each):
                    self.problems.append(f"interface.toml: {kind}.{name} has no reason")
