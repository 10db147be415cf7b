# SPDX-License-Identifier: Apache-2.0
"""Decides the kind of every argument: what a binding has to do with it.

Several C arguments may be one logical argument. Then one of them carries the kind and names the
others, which have the kind `count`, `bytes` or `user` and name it in `of`. A kind that no rule
decides comes from bindings/interface.toml; if that has no entry either, it is an error.

| kind | C type | meaning |
|---|---|---|
| source_line | const char *at | the line of the caller, which a macro passes |
| tensor, handle | T * | an object of the library |
| out_tensor, out_handle | T ** | receives an object |
| inout_handle | T ** | an object, or NULL, which is replaced by a new one |
| list, out_list | T *const *, T ** | objects, as many as `count` says |
| options | const T * | optional arguments: the first field is struct_size |
| struct, out_struct, inout_struct | const T *, T *, T * | one struct |
| value_struct | T | a struct that is passed by value |
| structs | const T * | as many as `count` says |
| shape | const int64_t * | lengths of dimensions, or axes, as many as `count` says |
| array, out_array, inout_array | const number *, number * | as many as `count` says |
| arrays | const number *const * | arrays of numbers, as many as `count` says |
| string | const char * | text that ends with 0 |
| strings | const char *const * | as many as `count` says, or `ended_by` NULL |
| text | char * | receives text, at most `count` bytes |
| buffer, out_buffer, inout_buffer | const void *, void * | memory of `bytes` bytes |
| buffers | void *const * | addresses of buffers, as many as `count` says |
| out_value | number * | receives one number |
| callback | function pointer | is called with `user`, if there is such an argument |
| count, bytes, user | | belongs to the arguments in `of` |
| number, enum | | a plain value |
| address | void * | memory that the library reads later, or a pointer of another library |
| foreign | | a type of another library |
| variadic | ... | |
"""
import re

from .wrong import Wrong

NUMBERS = {"int", "int32_t", "uint32_t", "int64_t", "uint64_t", "size_t", "double", "float",
           "unsigned char", "unsigned int"}
SHAPES = {("ndim", "dims"), ("naxes", "axes")}
COUNTS = {"n", "ndim", "naxes"}
SLAVES = {"count", "bytes", "user"}
KINDS = SLAVES | {
    "source_line", "tensor", "handle", "out_tensor", "out_handle", "inout_handle", "list",
    "out_list", "options", "struct", "out_struct", "inout_struct", "value_struct", "shape",
    "array", "out_array", "inout_array", "arrays", "structs", "strings", "string", "text",
    "buffer", "out_buffer", "inout_buffer", "buffers", "out_value", "callback", "number", "enum",
    "address", "foreign", "variadic"}


class Types:
    """The names of the public types."""

    def __init__(self):
        self.handles, self.options, self.plain = set(), set(), set()
        self.enums, self.callbacks = set(), set()

    @property
    def structs(self):
        return self.options | self.plain


def parts(spelling):
    """(base name, base is const, number of *, the last pointer but one is const)"""
    match = re.fullmatch(r"(const )?(?:struct )?([\w ]+?) ?((?:\*(?:const)? ?)*)", spelling)
    if not match:
        return spelling, False, 0, False
    stars = match.group(3)
    return match.group(2), bool(match.group(1)), stars.count("*"), "const" in stars


def nullable(name, prose):
    """Whether a comment says so: "x or NULL", "x (C) or NULL", "x and y (C) or NULL", "x NULL: X",
    "x may be NULL"."""
    names = r"(?:\b\w+(?:, | and ))*"
    after = r"(?: and \w+)?(?: \([^)]*\))?"
    given = rf"{names}\b{name}\b(?:, \w+)*{after}(?: or NULL|,? (?:each )?may be NULL)"
    return bool(re.search(rf"{given}|\b{name}\b(?: and \w+)? NULL(?::| means)", prose))


class Function:
    """Decides the kinds of one function's arguments."""

    def __init__(self, name, arguments, prose, types, table):
        self.name, self.arguments, self.prose = name, arguments, prose
        self.types, self.table = types, table

    def kinds(self):
        decided = []
        for i, argument in enumerate(self.arguments):
            said = self.table.get(argument["name"], {})
            if said.get("kind", "number") not in KINDS:
                raise Wrong(f"{self.name}: there is no kind {said['kind']}: generate/kinds.py "
                            "lists them")
            kind = {} if "kind" in said else self.rule(i, decided)
            if kind is None:
                raise Wrong(f"{self.name}: cannot decide the kind of `{argument['type']}` "
                            f"{argument['name']}: add [function.{self.name}.{argument['name']}] "
                            "with kind and reason to bindings/interface.toml")
            kind = {**kind, **{k: v for k, v in said.items() if k != "reason"}}
            if kind["kind"] not in ("number", "enum") and self.may_be_null(argument, kind):
                kind.setdefault("nullable", True)
            decided.append({**argument, **kind})
        self.join(decided)
        return decided

    def may_be_null(self, argument, kind):
        optional = kind["kind"] == "options" and argument["name"] in ("opt", "o")
        only = len(self.arguments) == 1 and "NULL is allowed" in self.prose
        return optional or only or nullable(argument["name"], self.prose)

    def join(self, decided):
        """Fill in `of` of the arguments that belong to others."""
        for argument in decided:
            for key in ("count", "bytes", "user"):
                slave = next((a for a in decided if a["name"] == argument.get(key)), None)
                if slave and slave["kind"] in ("number", *SLAVES):
                    slave["kind"] = key
                    slave.setdefault("of", []).append(argument["name"])

    def rule(self, i, decided):
        argument = self.arguments[i]
        name, spelling = argument["name"], argument["type"]
        base, const, depth, inner = parts(spelling)
        if spelling == "...":
            return {"kind": "variadic"}
        if i == 0 and name == "at" and self.name.endswith("_at"):
            return {"kind": "source_line"}
        if "callback" in argument or base in self.types.callbacks:
            return self.callback(i)
        if depth == 0:
            return self.value(base)
        count = self.count_before(i, decided)
        if count:
            return self.counted(count, base, const, depth, name)
        return (self.sized(i, base, const, depth) or self.user(i, decided) or
                self.pointer(name, base, const, depth, inner))

    def callback(self, i):
        after = self.arguments[i + 1] if i + 1 < len(self.arguments) else None
        if after and after["type"] == "void *" and after["name"] in ("user", "self"):
            return {"kind": "callback", "user": after["name"]}
        return {"kind": "callback"}

    def value(self, base):
        if base in self.types.structs:
            return {"kind": "value_struct"}
        if base in self.types.enums:
            return {"kind": "enum"}
        return {"kind": "number"} if base in NUMBERS else None

    def count_before(self, i, decided):
        """The argument that says how many elements argument i has: n, ndim or naxes before it, or
        before the arrays between them."""
        if not self.arrayish(i):
            return None
        for argument in reversed(decided):
            if argument["name"] in COUNTS and argument["type"] in ("int", "int64_t"):
                return argument["name"]
            if not argument.get("count"):
                return None
        return None

    def arrayish(self, i):
        base, const, depth, _ = parts(self.arguments[i]["type"])
        return base in NUMBERS or depth == 2 or (base in self.types.plain and const)

    def counted(self, count, base, const, depth, name):
        if (count, name) in SHAPES:
            return {"kind": "shape", "count": count}
        if base in self.types.handles:
            return {"kind": "list" if parts(self.type_of(name))[3] else "out_list",
                    "count": count}
        if base in NUMBERS and depth == 1:
            return {"kind": "array" if const else "out_array", "count": count}
        if base == "char" and depth == 2:
            return {"kind": "strings", "count": count}
        if base in self.types.structs and const:
            return {"kind": "structs", "count": count}
        return {"kind": "arrays", "count": count} if base in NUMBERS and const else None

    def type_of(self, name):
        return next(a["type"] for a in self.arguments if a["name"] == name)

    def sized(self, i, base, const, depth):
        """Memory whose size is the next argument."""
        after = self.arguments[i + 1] if i + 1 < len(self.arguments) else None
        if depth != 1 or not after or after["type"] != "size_t":
            return None
        size = after["name"]
        if base == "void" or (base == "char" and const):
            return {"kind": "buffer" if const else "out_buffer", "bytes": size}
        if base == "char":
            return {"kind": "text", "count": size}
        return {"kind": "array" if const else "out_array", "count": size}

    def user(self, i, decided):
        called = i > 0 and decided[i - 1].get("user") == self.arguments[i]["name"]
        return {"kind": "user"} if called else None

    def pointer(self, name, base, const, depth, inner):
        if base in self.types.handles:
            what = "tensor" if base == "ctn_tensor" else "handle"
            return {1: {"kind": what}, 2: None if inner else {"kind": f"out_{what}"}}.get(depth)
        if base in self.types.structs and depth == 1:
            if const:
                return {"kind": "options" if base in self.types.options else "struct"}
            return {"kind": "out_struct"}
        if base == "char" and const and depth == 1:
            return {"kind": "string"}
        ended = rf"\b{name}\b[^.]* end(?:s|ed)? (?:with|by) NULL"
        if base == "char" and depth == 2 and re.search(ended, self.prose):
            return {"kind": "strings", "ended_by": "NULL"}
        if base in NUMBERS and depth == 1 and not const:
            return {"kind": "out_value"}
        return None
