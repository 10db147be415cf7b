# SPDX-License-Identifier: Apache-2.0
"""How module catena passes each argument to C: dummy arguments, conversions before the call, and
what is to be done after it."""
from .fields import LENGTHS
from .fortran import NUMBERS, Names
from .lengths import rules
from .kinds import parts

SHORT = {"int", "int32_t", "uint32_t", "int64_t", "uint64_t", "unsigned int"}
NEGLECTED = {"source_line", "count", "bytes", "user"}  # the library gets them, callers do not
# Callbacks that are procedures of an abstract type (fortran_callbacks.py): type, C procedure.
CALLBACKS = {"ctn_loss_fn": ("ctn_loss", "call_loss"),
             "ctn_sampler_fn": ("ctn_order", "call_order"),
             "ctn_forward_fn": ("ctn_layer", "call_layer"),
             "ctn_forward_multi_fn": ("ctn_layer_multi", "call_layer_multi"),
             "ctn_value_fn": ("ctn_listener", "call_listener"),
             "double (*)(void *, ctn_trainer *)": ("ctn_observer", "call_observer")}


class Unwrapped(Exception):
    """This function is not part of the generated module; the text says why."""


class Dummy:
    """A dummy argument: its declaration, and whether it may be left out."""

    def __init__(self, name, declaration, optional=False):
        self.name, self.optional, self.declared = name, optional, declaration

    def declaration(self):
        kind, _, dimension = self.declared.partition(" :: ")
        optional = ", optional" if self.optional else ""
        return f"{kind}{optional} :: {self.name}{dimension}"


class Call:
    """Collects the parts of one wrapper."""

    def __init__(self):
        self.dummies, self.locals, self.before, self.actual, self.after = [], [], [], [], []
        self.checked = False  # whether `before` has checks, which clear ok_
        self.made = []    # new objects: (dummy, local, handle, owned, is an array)
        self.needed = []  # handles that the function got: (name, optional, is an array)
        self.taken = []   # handles that belong to the new object afterwards: (name, is an array)
        self.kept = []    # memory that must live as long as the owner: local pointers

    def check(self, line):
        if not self.checked:
            self.locals.append("logical :: ok_")
            self.before.append("ok_ = .true.")
        self.checked = True
        self.before.append(line)

    def dummy(self, name, declaration, optional=False):
        if any(d.name.lower() == name.lower() for d in self.dummies):
            raise Unwrapped(f"has two arguments named {name}")
        self.dummies.append(Dummy(name, declaration, optional))


def short(handle):
    return handle.removeprefix("ctn_")


def integer(spelling, name):
    """Integers are default integers, except numbers of bytes, which are often large."""
    long = spelling in ("int64_t", "uint64_t") and ("bytes" in name or name == "bucket")
    large = spelling == "size_t" or long
    return "integer(c_int64_t)" if large else "integer"


def given(name, optional, line):
    return f"if (present({name})) {line}" if optional else line


def converted(name, fortran):
    """A default integer as an integer of C; other numbers as they are."""
    kind = fortran[fortran.index("(") + 1:-1]
    return f"int({name}, {kind})" if fortran.startswith("integer") else name


class Arguments:
    """Turns the arguments of one function into a Call."""

    def __init__(self, description, function, variant=None):
        self.names = Names(description)
        self.function, self.variant, self.call = function, variant, Call()
        self.owned = (function.get("result") or {}).get("lifetime") == "owned"
        for argument in function["arguments"]:
            kind = argument["kind"]
            how = getattr(self, kind, None)
            if kind in NEGLECTED:
                self.call.actual.append(self.filled(argument))
            elif how:
                self.call.actual.append(how(argument))
            else:
                raise Unwrapped(f"takes `{argument['type']}` {argument['name']}")
        for rule in rules(function):
            self.check(rule)

    def called(self, name):
        """An argument as messages call it."""
        return f"'{short(self.function['name']).removesuffix('_at')}: {name}'"

    def check(self, rule):
        """The caller must know the length of what C reads or writes."""
        of = next(a for a in self.function["arguments"] if a["name"] == rule.of)
        if rule.call and of["kind"] == "tensor":
            expected = f"int(c_{short(rule.call)}({rule.of}), c_int64_t)"
        elif rule.call:
            handle = short(self.base(of))
            expected = f"int(c_{short(rule.call)}(c_{handle}(address_of({rule.of}))), c_int64_t)"
        elif rule.member:
            expected = f"int({rule.of}%{rule.member}, c_int64_t)"
        else:
            expected = f"ubound({rule.of}, 1, c_int64_t)"
        dummy = next(d for d in self.call.dummies if d.name == rule.name)
        self.call.check(given(rule.name, dummy.optional,
                              f"call same_length(ok_, {self.called(rule.name)}, &"))
        self.call.before += [f"    ubound({rule.name}, 1, c_int64_t), {expected}, &",
                             f"    '{rule.why}')"]

    def filled(self, argument):
        """The value of an argument that follows from another one."""
        if argument["kind"] == "source_line":
            return "c_loc(here)"
        of = next(a for a in self.function["arguments"] if a["name"] == argument["of"][0])
        fortran = NUMBERS.get(argument["type"], "integer(c_int)")
        kind = fortran[fortran.index("(") + 1:-1]
        if argument["kind"] == "user":
            if of["kind"] != "callback":
                raise Unwrapped("takes a table of functions")
            return f"c_loc({of['name']}_)"
        if argument["kind"] == "bytes":
            return f"int(len({of['name']}), {kind})"
        if of["kind"] == "text":
            return f"ubound(buf_, 1, kind={kind})"
        local = "_" if of["kind"] == "shape" and self.all_axes(of) else ""
        if of["kind"] == "strings":
            return f"ubound({of['name']}, 1, kind={kind})"
        return f"ubound({of['name']}{local}, 1, kind={kind})"

    def base(self, argument):
        return parts(argument["type"])[0]

    # ---- objects

    def tensor(self, argument):
        name, optional = argument["name"], argument.get("nullable", False)
        self.call.dummy(name, "type(ctn_tensor), intent(in)", optional)
        if not optional:
            return name
        self.call.locals.append(f"type(ctn_tensor) :: {name}_")
        self.call.before.append(f"if (present({name})) {name}_ = {name}")
        return f"{name}_"

    def out_tensor(self, argument):
        self.call.dummy(argument["name"], "type(ctn_tensor), intent(out)",
                        argument.get("nullable", False))
        return argument["name"]

    def handle(self, argument):
        name, handle = argument["name"], self.base(argument)
        optional = argument.get("nullable", False)
        first = not self.call.dummies
        word = "class" if first and bound_name(self.function["name"], handle) else "type"
        self.call.dummy(name, f"{word}({handle}), intent(in)", optional)
        if argument.get("taken"):
            self.call.taken.append((name, False))
        else:
            self.call.needed.append((name, optional, False))
        if not optional:
            return f"c_{short(handle)}(address_of({name}))"
        self.call.locals.append(f"type(c_{short(handle)}) :: {name}_")
        self.call.before.append(
            f"if (present({name})) {name}_ = c_{short(handle)}(address_of({name}))")
        return f"{name}_"

    def out_handle(self, argument):
        name, handle = argument["name"], self.base(argument)
        optional = argument.get("nullable", False)
        self.call.dummy(name, f"type({handle}), intent(inout)", optional)
        self.call.locals.append(f"type(c_{short(handle)}) :: {name}_")
        self.call.made.append((name, f"{name}_", handle, self.owned, False))
        return f"{name}_"

    def inout_handle(self, argument):
        name, handle = argument["name"], self.base(argument)
        self.call.dummy(name, f"type({handle}), intent(inout)")
        self.call.locals.append(f"type(c_{short(handle)}) :: {name}_")
        self.call.before.append(f"{name}_ = c_{short(handle)}(address_of({name}))")
        self.call.after.append(f"if (.not. c_associated(address_of({name}))) &")
        self.call.after.append(f"    call own({name}, {name}_%p, c_funloc(c_{short(handle)}_free))")
        return f"{name}_"

    def list(self, argument):
        name, handle = argument["name"], self.base(argument)
        self.call.dummy(name, f"type({handle}), intent(in) :: (:)")
        if handle == "ctn_tensor":
            return name
        self.call.locals += [f"type(c_{short(handle)}) :: {name}_(ubound({name}, 1))",
                             "integer :: i_"]
        self.call.before += [f"do i_ = 1, ubound({name}, 1)",
                             f"    {name}_(i_) = c_{short(handle)}(address_of({name}(i_)))",
                             "end do"]
        if argument.get("taken"):
            self.call.taken.append((name, True))
        else:
            self.call.needed.append((name, False, True))
        return f"{name}_"

    def out_list(self, argument):
        name, handle = argument["name"], self.base(argument)
        if handle == "ctn_tensor":
            self.call.dummy(name, "type(ctn_tensor), intent(inout) :: (:)")
            return name
        self.call.dummy(name, f"type({handle}), intent(inout) :: (:)")
        self.call.locals += [f"type(c_{short(handle)}) :: {name}_(ubound({name}, 1))",
                             "integer :: i_"]
        self.call.made.append((name, f"{name}_", handle, self.owned, True))
        return f"{name}_"

    # ---- numbers

    def number(self, argument):
        name, spelling = argument["name"], argument["type"]
        if spelling not in SHORT and spelling != "size_t":
            self.call.dummy(name, f"{self.names.base(spelling)}, intent(in)")
            return name
        flag = spelling == "int" and name in ("keep", "trans_a", "trans_b", "reverse")
        self.call.dummy(name, f"{integer(spelling, name)}, intent(in)", flag)
        fortran = NUMBERS[spelling]
        if not flag:
            return f"int({name}, {fortran[fortran.index('(') + 1:-1]})"
        self.call.locals.append(f"{fortran} :: {name}_")
        self.call.before += [f"{name}_ = 0", f"if (present({name})) {name}_ = {name}"]
        return f"{name}_"

    def enum(self, argument):
        name, optional = argument["name"], argument["type"] == "ctn_reduction"
        self.call.dummy(name, "integer(c_int), intent(in)", optional)
        if not optional:
            return name
        self.call.locals.append(f"integer(c_int) :: {name}_")
        self.call.before += [f"{name}_ = 0", f"if (present({name})) {name}_ = {name}"]
        return f"{name}_"

    def all_axes(self, argument):
        """Reductions over all axes, if the caller names none."""
        return argument.get("count") == "naxes" and any(
            a["name"] == "keep" for a in self.function["arguments"])

    def shape(self, argument):
        name = argument["name"]
        if self.all_axes(argument):
            self.call.dummy(name, "integer, intent(in) :: (:)", True)
            self.call.locals.append(f"integer(c_int64_t), allocatable :: {name}_(:)")
            self.call.before += [f"call set_integers({name}_, {name})",
                                 f"if (.not. allocated({name}_)) allocate ({name}_(0))"]
            return f"{name}_"
        return self.array(argument)

    def array(self, argument):
        name, optional = argument["name"], argument.get("nullable", False)
        base = self.base(argument)
        fortran = self.names.base(base)
        declared = "integer" if base in ("int", "int64_t") else fortran
        self.call.dummy(name, f"{declared}, intent(in) :: (:)", optional)
        if not optional:
            kind = fortran[fortran.index("(") + 1:-1]
            return f"int({name}, {kind})" if declared == "integer" else name
        self.call.locals.append(f"{fortran}, allocatable :: {name}_(:)")
        self.call.before.append(f"call set_integers({name}_, {name})")
        return f"{name}_"

    def out_array(self, argument):
        self.call.dummy(argument["name"],
                        f"{self.names.base(self.base(argument))}, intent(inout) :: (:)",
                        argument.get("nullable", False))
        return argument["name"]

    inout_array = out_array

    def out_value(self, argument):
        self.call.dummy(argument["name"], f"{self.names.base(self.base(argument))}, intent(out)",
                        argument.get("nullable", False))
        return argument["name"]

    # ---- text

    def string(self, argument):
        name, optional = argument["name"], argument.get("nullable", False)
        if "outlives" in argument:
            return self.kept_string(name, optional)
        self.call.dummy(name, "character(*), intent(in)", optional)
        if not optional:
            return f"chars({name})"
        self.call.locals.append(f"character(kind=c_char), allocatable :: {name}_(:)")
        self.call.before.append(f"call set_chars({name}_, {name})")
        return f"{name}_"

    def kept_string(self, name, optional):
        """Text whose address the library keeps."""
        self.call.dummy(name, "character(*), intent(in)", optional)
        self.call.locals.append(f"type(texts), pointer :: {name}_")
        self.call.before += [f"allocate ({name}_)"]
        if optional:
            self.call.before += [f"{name}_%p = [c_null_ptr]",
                                 f"if (present({name})) deallocate ({name}_%p)"]
        self.call.before.append(given(name, optional, f"call {name}_%set([{name}])"))
        self.call.kept.append(f"{name}_")
        return f"{name}_%p(1)"

    def strings(self, argument):
        name, optional = argument["name"], argument.get("nullable", False)
        self.call.dummy(name, "character(*), intent(in) :: (:)", optional)
        self.call.locals.append(f"type(texts), target :: {name}_")
        self.call.before.append(given(name, optional, f"call {name}_%set({name})"))
        return f"{name}_%p"

    def buffer(self, argument):
        if self.base(argument) != "char":
            raise Unwrapped("takes memory of any type")
        self.call.dummy(argument["name"], "character(*), intent(in)")
        return argument["name"]

    def address(self, argument):
        """A pointer of another library, such as argv of MPI: NULL, if C allows that."""
        if not argument.get("nullable"):
            raise Unwrapped("takes memory of any type")
        return "c_null_ptr"

    def text(self, argument):
        return "buf_"

    # ---- structs

    def struct(self, argument):
        self.call.dummy(argument["name"], f"type({self.base(argument)}), intent(in)",
                        argument.get("nullable", False))
        return argument["name"]

    def structs(self, argument):
        self.call.dummy(argument["name"], f"type({self.base(argument)}), intent(in) :: (:)")
        return argument["name"]

    def out_struct(self, argument):
        self.call.dummy(argument["name"], f"type({self.base(argument)}), intent(inout)")
        return argument["name"]

    inout_struct = out_struct

    def value_struct(self, argument):
        name, base = argument["name"], self.base(argument)
        if self.variant == "module" and base == "ctn_vars":
            self.call.dummy("m", "type(ctn_module), intent(in)")
            self.call.needed.append(("m", False, False))
            return "c_params(c_module(address_of(m)))"
        self.call.dummy(name, f"type({base}), intent(in)")
        return name

    def callback(self, argument):
        """An op by its name, or an object of an abstract type whose procedure is called."""
        name, spelling = argument["name"], argument["type"]
        if name == "op":
            self.call.dummy("op", "character(*), intent(in)")
            return "op_named(op)"
        if name == "release":
            return "c_null_funptr"  # the object belongs to the program
        if spelling not in CALLBACKS:
            raise Unwrapped("takes a callback")
        fortran, procedure = CALLBACKS[spelling]
        self.call.dummy(name, f"class({fortran}), intent(inout), target")
        self.call.locals.append(f"type(holder), pointer :: {name}_")
        self.call.before += [f"allocate ({name}_)", f"{name}_%it => {name}"]
        self.call.kept.append(f"{name}_")
        return f"c_funloc({procedure})"

    # ---- optional arguments

    def options(self, argument):
        """The fields of an options struct as optional arguments. NULL means something of its own
        where a setting is turned off, so those structs are passed as they are."""
        name, base = argument["name"], self.base(argument)
        if name not in ("opt", "o") or self.function["name"].startswith("ctn_optim_set"):
            return self.struct(argument)
        fields = self.names.structs[base]["fields"]
        self.call.locals.append(f"type({base}) :: opt_")
        lengths = {LENGTHS[f["name"]] for f in fields if f["name"] in LENGTHS and "*" in f["type"]}
        for field in fields:
            if field["name"] != "struct_size" and field["name"] not in lengths:
                self.option(field)
        return "opt_"

    def option(self, field):
        name, spelling = field["name"], field["type"]
        base, _, depth, _ = parts(spelling)
        set_it = f"opt_%{name} = {name}"
        if depth == 0 or base == "ctn_tensor":
            declared = self.plain_option(field)
        elif "(*)" in spelling or base == "void":
            declared = f"{self.names.value(spelling)}, intent(in)"
        elif base in self.names.handles:
            declared = f"type({base}), intent(in)"
            set_it = f"opt_%{name} = c_{short(base)}(address_of({name}))"
            self.call.needed.append((name, True, False))
        else:
            declared = self.pointed_option(field, base, depth)
            self.call.dummy(name, declared, True)
            return
        if "callback" in field and name == "activation":
            declared, set_it = "character(*), intent(in)", "opt_%activation = op_named(activation)"
        self.call.dummy(name, declared + " :: (:)" * ("length" in field), True)
        if "length" not in field:
            self.call.before.append(f"if (present({name})) {set_it}")
            return
        self.call.check(f"if (present({name})) call fill(ok_, {self.called(name)}, &")
        self.call.before.append(f"    opt_%{name}, {name})")

    def plain_option(self, field):
        spelling, name = field["type"], field["name"]
        if spelling in SHORT or spelling == "size_t":
            return f"{integer(spelling, name)}, intent(in)"
        return f"{self.names.value(spelling)}, intent(in)"

    def pointed_option(self, field, base, depth):
        """A field that points to text, numbers or a struct: the memory is a local variable."""
        name, before = field["name"], self.call.before
        if base == "char":
            many = depth == 2
            self.call.locals.append(f"type(texts), target :: {name}_")
            value = name if many else f"[{name}]"
            before += [f"if (present({name})) then", f"    call {name}_%set({value})",
                       f"    opt_%{name} = " + (f"c_loc({name}_%p)" if many else f"{name}_%p(1)"),
                       "end if"]
            return "character(*), intent(in)" + (" :: (:)" if many else "")
        if base in self.names.structs:
            before.append(f"if (present({name})) opt_%{name} = c_loc({name})")
            return f"type({base}), intent(in), target"
        fortran = self.names.base(base)
        many = name in LENGTHS
        self.call.locals.append(f"{fortran}, allocatable, target :: {name}_" + "(:)" * many)
        before += [f"if (present({name})) then",
                   f"    allocate ({name}_, source={converted(name, fortran)})",
                   f"    opt_%{name} = c_loc({name}_)"]
        if many:
            before.append(f"    opt_%{LENGTHS[name]} = ubound({name}, 1)")
        before.append("end if")
        declared = "integer" if base in SHORT else fortran
        return f"{declared}, intent(in)" + (" :: (:)" if many else "")


def bound_name(function, handle):
    """The name of a type-bound procedure: ctn_optim_step_at of ctn_optim is step."""
    name = function.removesuffix("_at")
    return name.removeprefix(handle + "_") if name.startswith(handle + "_") else None
