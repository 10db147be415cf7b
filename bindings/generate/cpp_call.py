# SPDX-License-Identifier: Apache-2.0
"""One function of C as a function, member or constructor of C++: what a caller passes, what the
call passes on, and what it returns. The kinds of arguments are those of kinds.py."""
from . import lengths
from .cpp_words import bare, class_name, wrapped
from .kinds import parts
from .wrong import Wrong

# Numbers that may be left out at the end: 0 is what they mean then.
ZERO = {"trans_a", "trans_b", "keep", "reverse", "reduction", "diagonal"}


class Call:
    def __init__(self, function, description, members):
        self.function, self.name = function, function["name"]
        self.header = function["header"]
        self.arguments = {a["name"]: a for a in function["arguments"]}
        self.structs = {s["name"]: s for s in description["structs"]}
        self.returned = function["returns"]
        self.given, self.before, self.passed = [], [], {}
        self.results, self.after = [], []  # (type, expression); statements after the call
        self.constructs, self.owner, self.short = None, None, bare(self.name)
        self.place(members)
        for argument in function["arguments"]:
            self.argument(argument)
        self.checks = [line for rule in lengths.rules(function) for line in self.check(rule)]
        self.at = any(a["kind"] == "source_line" for a in function["arguments"])

    # ---- where it goes

    def place(self, members):
        first = next((a for a in self.function["arguments"] if a["kind"] != "source_line"), None)
        if not first:
            return
        base = parts(first["type"])[0]
        noun = base.removeprefix("ctn_")
        if first["kind"] == "out_handle" and self.short in (f"{noun}_new", f"{noun}_open"):
            self.constructs = base
        elif first["kind"] == "out_handle" and self.outs() == 1 and self.makes_part():
            self.owner = self.self_argument()["type"].removeprefix("const ").removesuffix(" *")
            self.short = self.short.removeprefix(self.owner.removeprefix("ctn_") + "_")
        elif first["kind"] == "handle" and self.name in members:
            self.owner, self.short = base, members[self.name]
        elif first["kind"] == "handle" and self.short.startswith(noun + "_"):
            self.owner, self.short = base, self.short.removeprefix(noun + "_")

    def outs(self):
        return sum(a["kind"] == "out_handle" for a in self.function["arguments"])

    def self_argument(self):
        return next((a for a in self.function["arguments"] if a["kind"] == "handle"), None)

    def makes_part(self):
        """Whether it makes an object from one that its name begins with: ctn_module_param."""
        whole = self.self_argument()
        noun = whole and parts(whole["type"])[0].removeprefix("ctn_")
        return bool(whole) and self.short.startswith(noun + "_") and not whole.get("taken")

    def is_self(self, argument):
        return bool(self.owner) and argument is self.self_argument()

    # ---- arguments

    def argument(self, argument):
        name, kind = argument["name"], argument["kind"]
        if self.is_self(argument):
            self.passed[name] = "get()"
            return
        action = getattr(self, "take_" + kind, None)
        if not action:
            raise Wrong(f"{self.name}: bindings/generate/cpp_call.py has no rule for the kind "
                        f"{kind} of {name}: add one, or add the function to BY_HAND in cpp.py")
        action(argument, name, *parts(argument["type"])[:2])

    def give(self, declaration, name, passed, default=None):
        self.given.append((declaration, default))
        self.passed[name] = passed

    def take_source_line(self, _argument, name, _base, _const):
        self.passed[name] = "at.text()"

    def take_tensor(self, argument, name, _base, _const):
        self.give(f"const Tensor &{name}", name, f"{name}.get()",
                  "{}" if argument.get("nullable") else None)

    def take_handle(self, argument, name, base, _const):
        kind = class_name(base)
        if argument.get("taken"):
            self.give(f"{kind} {name}", name, f"{name}.get()")
            self.after.append(f"{kind}Ref {name}_ref({name}.release());")
            if not self.outs():
                self.results.append((f"{kind}Ref", f"{name}_ref"))
            else:
                self.after[-1] = f"static_cast<void>({name}.release());"
            return
        self.give(f"{kind}Ref {name}", name, f"{name}.get()",
                  "{}" if argument.get("nullable") else None)

    def take_out_tensor(self, _argument, name, _base, _const):
        self.before.append(f"ctn_tensor *{name} = nullptr;")
        self.results.append(("Tensor", f"Tensor({name})"))
        self.passed[name] = f"&{name}"

    def take_out_handle(self, _argument, name, base, _const):
        owned = (self.function.get("result") or {}).get("lifetime") == "owned"
        kind = class_name(base) + ("" if owned else "Ref")
        self.before.append(f"{base} *{name} = nullptr;")
        self.results.append((kind, f"{kind}({name})"))
        self.passed[name] = f"&{name}"

    def take_list(self, argument, name, base, _const):
        if base == "ctn_tensor":
            self.give(f"Span<const Tensor> {name}", name, f"detail::pointers({name})")
        else:
            kind = class_name(base)
            taken = argument.get("taken")
            self.give(f"{'std::vector<' + kind + '>' if taken else 'Span<const ' + kind + '>'} "
                      f"{name}", name, f"detail::pointers({name}).data()")
            if taken:
                self.after.append(f"detail::release({name});")
        self.count(argument, f"{name}.size()")

    def take_out_list(self, argument, name, base, _const):
        count = argument.get("count")
        if count not in self.arguments:
            raise Wrong(f"{self.name}: C++ does not know how long {name} is: add the function to "
                        "BY_HAND in bindings/generate/cpp.py")
        others = [a["name"] for a in self.arguments.values()
                  if a.get("count") == count and a["kind"] in ("list", "array", "shape")]
        size = f"{others[0]}.size()" if others else f"static_cast<std::size_t>({count})"
        if not others:
            self.give(f"{self.arguments[count]['type']} {count}", count, count)
        self.before.append(f"std::vector<{base} *> {name}({size});")
        kind = class_name(base)
        self.results.append((f"std::vector<{kind}>", f"detail::objects<{kind}>({name})"))
        self.passed[name] = f"{name}.data()"

    def take_options(self, argument, name, base, _const):
        if argument.get("nullable"):
            self.give(f"Maybe<{base}> {name}", name, f"{name}.get()", "{}")
        else:
            self.give(f"const {base} &{name}", name, f"&{name}")

    take_struct = take_options

    def take_out_struct(self, _argument, name, base, _const):
        if self.returned.get("may_end"):
            self.give(f"{base} &{name}", name, f"&{name}")
            return
        self.before.append(f"{base} {name} = {{}};")
        if self.structs[base]["kind"] == "options":
            self.before.append(f"{name}.struct_size = sizeof {name};")
        self.results.append((base, name))
        self.passed[name] = f"&{name}"

    def take_inout_struct(self, _argument, name, base, _const):
        self.give(f"{base} &{name}", name, f"&{name}")

    def take_value_struct(self, argument, name, _base, _const):
        self.give(f"{argument['type']} {name}", name, name)

    def take_shape(self, argument, name, _base, _const):
        self.give(f"Shape {name}", name, f"{name}.data()",
                  "{}" if name == "axes" and self.short != "transpose" else None)
        self.count(argument, f"{name}.size()")

    def take_array(self, argument, name, base, _const):
        self.give(f"Span<const {base}> {name}", name, f"{name}.data()",
                  "{}" if argument.get("nullable") else None)
        self.count(argument, f"{name}.size()")

    def take_out_array(self, argument, name, base, _const):
        if self.returned.get("length"):
            self.grows(argument, name, f"std::vector<{base}>", "{}")
            return
        self.give(f"Span<{base}> {name}", name, f"{name}.data()")
        self.count(argument, f"{name}.size()")

    take_inout_array = take_out_array

    def take_arrays(self, argument, name, base, _const):
        self.give(f"Span<const {base} *const> {name}", name, f"{name}.data()")
        self.count(argument, f"{name}.size()")

    def take_structs(self, argument, name, base, _const):
        self.give(f"Span<const {base}> {name}", name, f"{name}.data()")
        self.count(argument, f"{name}.size()")

    def take_string(self, argument, name, _base, _const):
        if "outlives" in argument:  # kept by the library, so it cannot be a std::string
            self.give(f"const char *{name}", name, name,
                      "nullptr" if argument.get("nullable") else None)
            return
        self.give(f"Text {name}", name, f"{name}.get()",
                  "{}" if argument.get("nullable") else None)

    def take_strings(self, argument, name, _base, _const):
        if argument.get("count") in self.arguments:
            self.give(f"Span<const char *const> {name}", name, f"{name}.data()")
            self.count(argument, f"{name}.size()")
        else:
            self.give(f"const Names &{name}", name, f"{name}.get()",
                      "{}" if argument.get("nullable") else None)

    def take_text(self, argument, name, _base, _const):
        self.grows(argument, name, "std::string", "{}")

    def grows(self, argument, name, kind, start):
        """A result whose length the call returns: called again if it did not fit."""
        self.results.append((kind, name))
        self.before.append(f"{kind} {name}{start};")
        self.passed[name] = f"{name}.data()"
        self.passed[argument.get("count") or argument["bytes"]] = f"{name}.size()"

    def take_buffer(self, argument, name, base, _const):
        size = argument.get("bytes")
        if size not in self.arguments:
            self.give(f"const void *{name}", name, name)
        elif base == "char":
            self.give(f"std::string_view {name}", name, f"{name}.data()")
            self.passed[size] = f"{name}.size()"
        else:
            self.give(f"Bytes {name}", name, f"{name}.data()")
            self.passed[size] = f"{name}.size()"

    def take_out_buffer(self, argument, name, _base, _const):
        size = argument.get("bytes")
        if self.returned.get("length"):
            self.grows(argument, name, "std::vector<unsigned char>", "{}")
        elif size not in self.arguments or size in self.passed:
            self.give(f"void *{name}", name, name)
        else:
            self.give(f"OutBytes {name}", name, f"{name}.data()")
            self.passed[size] = f"{name}.size()"

    def take_inout_buffer(self, argument, name, _base, _const):
        count = argument.get("count")
        if count in self.arguments:
            self.give(f"void *{name}", name, name)
            self.give(f"{self.arguments[count]['type']} {count}", count, count)
        else:
            self.take_out_buffer(argument, name, None, None)

    def take_buffers(self, argument, name, _base, const):
        self.give(f"Span<{'const ' if const else ''}void *const> {name}", name, f"{name}.data()")
        self.count(argument, f"{name}.size()")

    def take_out_value(self, _argument, name, base, _const):
        self.before.append(f"{base} {name} = 0;")
        self.passed[name] = f"&{name}"
        if self.returned["kind"] == "status":
            self.results.append((base, name))
        elif self.returned["type"] == "int":  # whether there is one
            self.results.append((f"std::optional<{base}>",
                                 f"found ? std::optional<{base}>({name}) : std::nullopt"))
        else:  # the length of a text
            self.results.append(("std::string_view", f"found ? std::string_view(found, {name}) : "
                                 "std::string_view()"))

    def take_callback(self, argument, name, _base, _const):
        """A function of C, which must not throw; lambdas are for the hand-written functions."""
        said = argument["type"]
        declared = said.replace("(*)", f"(*{name})") if "(*)" in said else f"{said} {name}"
        self.give(declared, name, name, "nullptr" if argument.get("nullable") else None)

    def take_user(self, _argument, name, _base, _const):
        self.give(f"void *{name}", name, name, "nullptr")

    def take_number(self, argument, name, _base, _const):
        self.give(f"{argument['type']} {name}", name, name, self.zero(argument))

    take_enum = take_number

    def zero(self, argument):
        if argument["name"] not in ZERO:
            return None
        return "CTN_MEAN" if argument["name"] == "reduction" else "0"

    def take_address(self, argument, name, _base, _const):
        said = argument["type"]
        self.give(f"{said}{'' if said.endswith('*') else ' '}{name}", name, name,
                  "nullptr" if argument.get("nullable") else None)

    def take_count(self, _argument, _name, _base, _const):
        """Passed by the argument that it belongs to."""

    take_bytes = take_count

    def count(self, argument, size):
        count = argument.get("count")
        if count in self.arguments and count not in self.passed:
            said = self.arguments[count]["type"]
            self.passed[count] = size if said == "size_t" else f"detail::length<{said}>({size})"

    def check(self, rule):
        """That an argument of the caller has the right length, before the call. If it may be NULL,
        an empty one is."""
        if self.arguments[rule.name]["kind"] == "out_list":
            return []  # made here, as long as it must be
        of = self.passed[rule.of]
        if rule.call:
            expected = f"{rule.call}({of})"
        elif rule.member:
            expected = f"{of}->{rule.member}"
        else:
            expected = f"detail::length<int64_t>({rule.of}.size())"
        there = ""
        if self.arguments[rule.name].get("nullable"):
            there = f"if ({rule.name}.size()) "
            self.passed[rule.name] = f"{rule.name}.size() ? {rule.name}.data() : nullptr"
        return [f'{there}detail::same_length("{self.short}: {rule.name}", {rule.name}.size(), '
                f'{expected}, "{rule.why}");']

    # ---- the C++ text

    def needs_nothing(self):
        return all(default for _, default in self.given)

    def result(self):
        """(type, how the C call is wrapped)"""
        kind, said = self.returned["kind"], self.returned["type"]
        failure = self.returned.get("failure")
        if kind == "tensor":
            return "Tensor", "Tensor(detail::check({}))"
        if kind == "handle":
            name = class_name(parts(said)[0]) + "Ref"
            return name, f"{name}(detail::check_borrowed({{}}))"
        if kind == "value_struct" and said in ("ctn_vars", "ctn_tensors"):
            return said, "detail::check_list({})"
        if failure == "negative":
            return said, "detail::check_number({})"
        return said, "{}"

    def type(self):
        """The type of the result, None for a constructor."""
        if self.constructs:
            return None
        if self.returned.get("may_end"):
            return "bool"
        types = [t for t, _ in self.results]
        if len(types) > 1:
            return f"std::tuple<{', '.join(types)}>"
        if types:
            return types[0]
        return "void" if self.returned["kind"] == "status" else self.result()[0]

    def parameters(self, defaults):
        given = [*self.given, ("Where at", "Where::here()")] if self.at else self.given
        last = max((i for i, (_, d) in enumerate(given) if d is None), default=-1)
        return ", ".join(f"{d} = {v}" if defaults and v and i > last else d
                         for i, (d, v) in enumerate(given))

    def declaration(self):
        """In the class."""
        if self.constructs:
            return f"explicit {class_name(self.constructs)}({self.parameters(True)})"
        return f"{self.marked()}{self.spaced()}{self.short}({self.parameters(True)}) const"

    def marked(self):
        return "[[nodiscard]] " if self.type() == "Tensor" else ""

    def spaced(self):
        said = self.type()
        return said if said.endswith("*") else said + " "

    def definition(self):
        if self.constructs:
            name = class_name(self.constructs)
            head = f"inline {name}::{name}({self.parameters(False)})"
        elif self.owner:
            scope = class_name(self.owner) + "Ref"
            head = (f"inline {self.spaced()}{scope}::{self.short}({self.parameters(False)}) "
                    "const")
        else:
            head = f"{self.marked()}inline {self.spaced()}{self.short}({self.parameters(True)})"
        out = wrapped(head) + ["{"]
        for line in self.body():
            out += wrapped("    " + line)
        return [*out, "}"]

    def body(self):
        return [*self.checks, *self.called()]

    def called(self):
        call = f"{self.name}({', '.join(self.passed[a] for a in self.arguments)})"
        if self.returned.get("may_end"):
            return [f"const ctn_status status = {call};", "detail::check(status);",
                    "return status != CTN_END;"]
        if self.returned.get("length"):
            return self.growing(call)
        values = [v for _, v in self.results]
        if self.returned["kind"] == "status":
            return [*self.before, f"detail::check({call});", *self.after, *self.returning(values)]
        if values:
            found = "" if self.returned["kind"] == "void" else "const auto found = "
            return [*self.before, f"{found}{call};", *self.returning(values)]
        wrap = self.result()[1].format(call)
        return [f"{'' if self.type() == 'void' else 'return '}{wrap};"]

    def growing(self, call):
        kind, name = self.results[0]
        helper = "grow_text" if kind == "std::string" else "grow"
        return [*self.before,
                f"detail::{helper}({name}, [&] {{ return {call}; }});", f"return {name};"]

    def returning(self, values):
        if self.constructs:
            made = self.passed[next(iter(self.arguments))].removeprefix("&")
            return [f"reset({made});"]
        if len(values) > 1:
            return [f"return {{{', '.join(values)}}};"]
        return [f"return {values[0]};"] if values else []
