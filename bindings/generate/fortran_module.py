# SPDX-License-Identifier: Apache-2.0
"""Writes the generated parts of module catena: catena_types.f90, catena_objects.f90 and
catena_ops.f90 in bindings/fortran. README.md there explains the modules to users."""
from . import fortran_arrays, fortran_callbacks
from .fortran import COLUMNS, Names, wrapped
from .fortran_arguments import Arguments, Unwrapped, bound_name, short
from .kinds import parts
from .wrong import Wrong

HEAD = """! SPDX-License-Identifier: Apache-2.0
!
! {what}
! dev/interface writes this file from the public headers.
"""
TYPES = "Constants, structs and tensors, as module catena passes them on."
OBJECTS = """Handles as types that free their objects, and the functions that work with them. An
! action is a subroutine with the optional arguments stat and errmsg; see catena_base.f90."""
OPS = "The ops as functions of tensors, and operators."
# name, function of two tensors, of a tensor and a number, of a number and a tensor (x: the tensor)
OPERATORS = [("+", "add", "f_shift(x, a)", "f_shift(x, a)"),
             ("-", "sub", "f_shift(x, -a)", "f_shift(f_neg(x), a)"),
             ("*", "mul", "f_scale(x, a)", "f_scale(x, a)"),
             ("/", "div", "f_scale(x, 1 / a)", "f_scale(f_power(x, -1.0_c_double), a)")]
STAT = ["integer, intent(out), optional :: stat", "character(*), intent(inout), optional :: errmsg"]
# By hand, in catena_base.f90 and fortran_callbacks.py.
OWN = {"ctn_error_message", "ctn_error_clear", "ctn_trainer_extend"}
# The program's MPI communicator has another type in Fortran than in C.
RENAMED = {"ctn_comm_adopt_fortran": "ctn_comm_from_mpi"}


def public_name(function):
    macros = function.get("macros")
    if function["name"] in RENAMED:
        return RENAMED[function["name"]]
    return macros[0]["name"] if macros else function["name"].removesuffix("_at")


def is_op(function):
    return function["header"].split("_")[0] in ("op.h", "ops.h", "ops")


class Wrapper:
    """One function of module catena: its name, and the lines of its body."""

    def __init__(self, description, function, variant=None):
        self.names = Names(description)
        self.function = function
        self.c_name = "c_" + function["name"].removeprefix("ctn_").removesuffix("_at")
        self.public = public_name(function)
        suffix = f"_{variant}" if variant else ""
        self.name = "f_" + self.public.removeprefix("ctn_") + suffix
        self.returns = function["returns"]
        self.call = Arguments(description, function, variant).call
        self.statuses = self.returns.get("kind") == "status"
        self.text = any(a["kind"] == "text" for a in function["arguments"])
        first = self.call.dummies[0].declared if self.call.dummies else ""
        self.bound = None
        if first.startswith("class("):
            handle = first[len("class("):first.index(")")]
            self.bound = (handle, bound_name(function["name"], handle))
        self.lines = self.write()

    def write(self):
        kind = self.returns.get("kind")
        writers = {"status": self.action, "tensor": self.expression, "void": self.nothing,
                   "number": self.value, "enum": self.value, "value_struct": self.value,
                   "string": self.string, "struct": self.borrowed_struct,
                   "handle": self.borrowed}
        if self.text:
            return self.long_text()
        if kind not in writers:
            raise Unwrapped(f"returns `{self.returns['type']}`")
        if self.call.checked and kind not in ("status", "tensor"):
            raise Wrong(f"{function['name']}: checks lengths, but returns "
                        f"`{self.returns['type']}`")
        return writers[kind]()

    # ---- the frame

    def procedure(self, word, result, body, stat, more=()):
        """A whole procedure. result: the declaration of its result, if it is a function. It is
        recursive because a callback may call it again."""
        ordered = sorted(self.call.dummies, key=lambda d: d.optional)
        names = [d.name for d in ordered] + (["stat", "errmsg"] if stat else [])
        ending = f" result({result[0]})" if result else ""
        declared = [d.declaration() for d in ordered]
        outcome = [f"{result[1]} :: {result[0]}"] if result else []
        self.interface = [f"{word} {self.public}({', '.join(names)}){ending}",
                          *("    " + line for line in declared + outcome)]
        declared += (STAT if stat else []) + outcome
        declared += list(dict.fromkeys([*self.call.locals, *more]))
        out = wrapped(f"    recursive {word} {self.name}({', '.join(names)}){ending}")
        for line in [*declared, *self.call.before, *body]:
            out += wrapped("        " + line)
        return [*out, f"    end {word}"]

    def called(self):
        return f"{self.c_name}({', '.join(self.call.actual)})"

    def guarded(self, result):
        """The call, unless the checks of arguments have failed."""
        line = f"{result} = {self.called()}"
        return f"if (ok_) {line}" if self.call.checked else line

    # ---- what follows the call

    def afterwards(self):
        """What is done after success, as lines."""
        out = list(self.call.after)
        for name, local, handle, owned, many in self.call.made:
            out += self.made(name, local, handle, owned, many)
        owner = (self.call.made or self.call.needed or [(None,)])[0][0]
        for name, many in self.call.taken:
            out += each(name, many, f"call give({{}}, {owner})")
        if not self.call.made:
            out += self.outliving()
        keeper = self.keeper()
        out += [f"call keep({keeper}, {name})" for name in self.call.kept if keeper]
        return out

    def keeper(self):
        """The object that keeps memory alive, None if it is not needed after the call."""
        lasting = any(a["kind"] in ("user", "string") and ("outlives" in a or a.get("taken"))
                      for a in self.function["arguments"])
        return (self.call.made or self.call.needed)[0][0] if lasting else None

    def made(self, name, local, handle, owned, many):
        if many:
            lines = [f"do i_ = 1, ubound({name}, 1)",
                     f"    call own({name}(i_), {local}(i_)%p, "
                     f"c_funloc(c_{short(handle)}_free))", "end do"]
        elif owned:
            lines = [f"call own({name}, {local}%p, c_funloc(c_{short(handle)}_free))"]
        else:
            owner = self.call.needed[0][0]
            lines = [f"call borrow({name}, {local}%p, {owner})"]
        if owned and not many:
            for other, optional, several in self.call.needed:
                there = f"if (present({other})) " if optional else ""
                lines += each(other, several, f"{there}call need({name}, {{}})")
        optional = next(d.optional for d in self.call.dummies if d.name == name)
        return [f"if (present({name})) then", *("    " + x for x in lines), "end if"] \
            if optional else lines

    def outliving(self):
        """need() for arguments that must outlive another one."""
        out, named = [], {n for n, _, _ in self.call.needed}
        for argument in self.function["arguments"]:
            of = argument.get("outlives")
            if argument["name"] in named and of in named:
                there = f"if (present({argument['name']})) " if argument.get("nullable") else ""
                out.append(f"{there}call need({of}, {argument['name']})")
        return out

    # ---- one way to return a result each

    def action(self):
        body = ["st_ = CTN_ESHAPE"] * self.call.checked + [self.guarded("st_")]
        after = self.afterwards()
        if after:
            body += ["if (st_ >= 0) then", *("    " + line for line in after), "end if"]
        unkept = [f"deallocate ({name})" for name in self.call.kept]
        if unkept and not self.keeper():
            body += unkept
        elif unkept:
            body += ["if (st_ < 0) then", *("    " + line for line in unkept), "end if"]
        body.append("call settle(st_, stat, errmsg)")
        return self.procedure("subroutine", None, body, True, ["integer(c_int) :: st_"])

    def expression(self):
        body = [self.guarded("res"), "call settle_tensor(res, stat, errmsg)"]
        return self.procedure("function", ("res", "type(ctn_tensor)"), body, True)

    def nothing(self):
        body = [f"call {self.called()}", *self.afterwards()]
        return self.procedure("subroutine", None, body, False)

    def value(self):
        fortran = self.names.value(self.returns["type"])
        body = [f"res = {self.called()}", *self.afterwards()]
        failure = self.returns.get("failure")
        if failure:
            failed = "ieee_is_nan(res)" if failure == "NaN" else "res < 0"
            body += [f"call settle(merge(c_error_status(), CTN_OK, {failed}), stat, errmsg)"]
        return self.procedure("function", ("res", fortran), body, bool(failure))

    def string(self):
        return self.procedure("function", ("res", "character(:), allocatable"),
                              [f"res = text_of({self.called()})"], False)

    def long_text(self):
        """The length of the text, and then the text."""
        failure = bool(self.returns.get("failure"))
        body = ["allocate (buf_(1))", f"n_ = {self.called()}", "if (n_ >= 0) then",
                "    deallocate (buf_)", "    allocate (buf_(n_ + 1))",
                f"    n_ = {self.called()}", "end if", "res = ''",
                "if (n_ >= 0) res = text_of(c_loc(buf_))"]
        if failure:
            body.append("call settle(merge(c_error_status(), CTN_OK, n_ < 0), stat, errmsg)")
        more = [f"{self.names.value(self.returns['type'])} :: n_",
                "character(kind=c_char), allocatable, target :: buf_(:)"]
        return self.procedure("function", ("res", "character(:), allocatable"), body, failure,
                              more)

    def borrowed_struct(self):
        struct = parts(self.returns["type"])[0]
        body = [f"p_ = {self.called()}", "if (.not. c_associated(p_)) return",
                "call c_f_pointer(p_, found_)", "res = found_"]
        return self.procedure("function", ("res", f"type({struct})"), body, False,
                              ["type(c_ptr) :: p_", f"type({struct}), pointer :: found_"])

    def borrowed(self):
        """The result is the last argument, because results of functions are finalized."""
        handle = parts(self.returns["type"])[0]
        self.call.dummy("found", f"type({handle}), intent(inout)")
        owner = self.call.needed[0][0]
        body = [f"found_ = {self.called()}", f"call borrow(found, found_%p, {owner})"]
        if "errors" not in self.function:
            return self.procedure("subroutine", None, body, False,
                                  [f"type(c_{short(handle)}) :: found_"])
        body = [body[0], "if (c_associated(found_%p)) " + body[1],
                "call settle(merge(CTN_OK, c_error_status(), c_associated(found_%p)), &",
                "            stat, errmsg)"]
        return self.procedure("subroutine", None, body, True,
                              [f"type(c_{short(handle)}) :: found_"])


def each(name, many, line):
    if not many:
        return [line.format(name)]
    return [f"do i_ = 1, ubound({name}, 1)", "    " + line.format(f"{name}(i_)"), "end do"]


def free_wrapper(handle):
    """ctn_optim_free makes a handle empty."""
    name = short(handle)
    return [f"    subroutine f_{name}_free(self)",
            f"        class(ctn_{name}), intent(inout) :: self", "        call drop(self)",
            "    end subroutine"]


def wrappers(description):
    """[Wrapper] of everything that can be generated, and {name: why not}."""
    found, left = [], {}
    frees = {h.get("free") for h in description["handles"]}
    for function in description["functions"]:
        if function["name"] in frees | OWN or function.get("inline"):
            continue
        takes_vars = any(a["type"] == "ctn_vars" for a in function["arguments"])
        for variant in [None, "module"] if takes_vars else [None]:
            try:
                found.append(Wrapper(description, function, variant))
            except Unwrapped as why:
                left[public_name(function)] = str(why)
    return found, left


def generics(names):
    """Interfaces that give procedures their public names. The procedures have other names because
    gfortran compares a procedure with the C function of its name."""
    out = []
    for public, procedures in names.items():
        out += [f"    interface {public}", *wrapped_list("        module procedure ", procedures),
                "    end interface"]
    return out


def wrapped_list(start, items):
    """A statement with a list, continued on lines of at most 100 columns."""
    return wrapped(start + ", ".join(items), 8)


def imports(lines, description, module_names):
    """The use statement for those names of catena_c that the lines mention."""
    text = "\n".join(lines)
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())
    given = []
    for function in description["functions"]:
        local = "c_" + function["name"].removeprefix("ctn_").removesuffix("_at")
        if local in words:
            given.append(f"{local} => {function['name']}")
    for handle in module_names:
        if f"c_{short(handle)}" in words:
            given.append(f"c_{short(handle)} => {handle}")
    return wrapped_list("    use catena_c, only: ", given)


def handle_names(description):
    return [h["name"] for h in description["handles"] if h["name"] != "ctn_tensor"]


def objects(description, found):
    handles = handle_names(description)
    freed = [h["name"] for h in description["handles"] if h.get("free")]
    mine = [w for w in found if not is_op(w.function)]
    public, bound = {}, {h: [] for h in handles}
    for wrapper in mine:
        public.setdefault(wrapper.public, []).append(wrapper.name)
        if wrapper.bound:
            bound[wrapper.bound[0]].append((wrapper.bound[1], wrapper.name))
    bound["ctn_trainer"].append(("extend", "f_trainer_extend"))
    for handle in freed:
        public[handle + "_free"] = [f"f_{short(handle)}_free"]
        bound[handle].append(("free", f"f_{short(handle)}_free"))
    body = [line for w in mine for line in ["", *w.lines]]
    body += [line for h in freed for line in ["", *free_wrapper(h)]]
    body += ["", *op_named(description)]
    types = []
    for handle in handles:
        types += [f"    type, extends(ctn_ref) :: {handle}"]
        if bound[handle]:
            types.append("    contains")
            types += [f"        procedure :: {n} => {p}" for n, p in bound[handle]]
        types += ["    end type"]
    types += fortran_callbacks.TYPES
    public["ctn_trainer_extend"] = ["f_trainer_extend"]
    body += fortran_callbacks.PROCEDURES
    return [HEAD.format(what=OBJECTS) + "module catena_objects",
            "    use, intrinsic :: iso_c_binding",
            "    use, intrinsic :: ieee_arithmetic, only: ieee_is_nan", "    use catena_base",
            "    use catena_types", *imports(body, description, handles), "    implicit none",
            "    private", *wrapped_list("    public :: ", handles + fortran_callbacks.NAMES),
            *wrapped_list("    public :: ", public), "    public :: op_named", "", *types, "",
            *generics(public), "", "contains", *body, "end module"]


def op_named(description):
    """Ops of one tensor by their names, for activations."""
    out = ["    ! The op of one tensor with this name, NULL if there is none.",
           "    function op_named(name) result(op)", "        character(*), intent(in) :: name",
           "        type(c_funptr) :: op", "        select case (name)"]
    for function in description["functions"]:
        if is_op(function) and [a["kind"] for a in function["arguments"]] == [
                "source_line", "tensor"]:
            name = public_name(function).removeprefix("ctn_")
            out += [f"        case ('{name}')", f"            op = c_funloc(c_{name})"]
    return [*out, "        case default", "            op = c_null_funptr",
            "        end select", "    end function"]


def operators():
    """The interfaces of + - * /, and the procedures of a tensor and a number."""
    interfaces, body = [], []
    for i, (sign, two, left, right) in enumerate(OPERATORS):
        names = [f"operator_{two}", f"left_{two}", f"right_{two}"]
        interfaces += [f"    interface operator({sign})",
                       *wrapped_list("        module procedure ",
                                     names + (["operator_neg"] if i == 1 else [])),
                       "    end interface"]
        body += ["", *binary(names[0], "x", "type(ctn_tensor)", "a", "type(ctn_tensor)",
                             f"f_{two}(x, a)"),
                 "", *binary(names[1], "x", "type(ctn_tensor)", "a", "real(c_double)", left),
                 "", *binary(names[2], "a", "real(c_double)", "x", "type(ctn_tensor)", right)]
    body += ["", "    function operator_neg(x) result(res)",
             "        type(ctn_tensor), intent(in) :: x", "        type(ctn_tensor) :: res",
             "        res = f_neg(x)", "    end function"]
    return interfaces, body


def binary(name, first, first_type, second, second_type, value):
    return [f"    function {name}({first}, {second}) result(res)",
            f"        {first_type}, intent(in) :: {first}",
            f"        {second_type}, intent(in) :: {second}", "        type(ctn_tensor) :: res",
            f"        res = {value}", "    end function"]


def ops(description, found):
    mine = [w for w in found if is_op(w.function)]
    public = {}
    for wrapper in mine:
        public.setdefault(wrapper.public, []).append(wrapper.name)
    interfaces, procedures = operators()
    body = [line for w in mine for line in ["", *w.lines]] + procedures
    signs = [f"operator({sign})" for sign, *_ in OPERATORS]
    return [HEAD.format(what=OPS) + "module catena_ops", "    use, intrinsic :: iso_c_binding",
            "    use catena_base", "    use catena_types", "    use catena_objects",
            *imports(body, description, handle_names(description)), "    implicit none",
            "    private", *wrapped_list("    public :: ", [*public, *signs]), "",
            *generics(public), "", *interfaces, "", "contains", *body, "end module"]


def enum_names(description):
    """Names of enum constants. Fortran does not tell CTN_SUM from ctn_sum, so that constant is
    CTN_REDUCTION_SUM."""
    functions = {public_name(f) for f in description["functions"]}
    for enum in description["enums"]:
        for value in enum["values"]:
            name = value["name"]
            if name.lower() in functions:
                longer = f"{enum['name'].upper()}_{name.removeprefix('CTN_')}"
                yield f"{longer} => {name}"
            else:
                yield name


def types(description):
    names = [c.get("fortran", c["name"]) for c in description["constants"]]
    names += enum_names(description)
    names += [s["name"] for s in description["structs"]] + ["ctn_tensor"]
    return [HEAD.format(what=TYPES) + "module catena_types",
            *wrapped_list("    use catena_c, only: ", names), "    implicit none", "    public",
            "end module"]


def files(description):
    found, _ = wrappers(description)
    made = {"types": types(description), "objects": objects(description, found),
            "ops": ops(description, found), "arrays": fortran_arrays.lines()}
    for name, lines in made.items():
        long = [line for line in "\n".join(lines).split("\n") if len(line) > COLUMNS]
        assert not long, long
    return {f"bindings/fortran/catena_{name}.f90": "\n".join(lines) + "\n"
            for name, lines in made.items()}
