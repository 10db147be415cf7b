# SPDX-License-Identifier: Apache-2.0
"""Writes bindings/fortran/catena_arrays.f90: procedures for arrays of every kind and rank. Fortran
has no templates, so each pair of kind and rank is a procedure; the work is done once per kind."""
from .fortran import wrapped

MAX_RANK = 5
# suffix, declaration, data type, conversion, bytes
KINDS = [("r4", "real(c_float)", "CTN_F32", "real({}, c_float)", 4),
         ("r8", "real(c_double)", "CTN_F64", "real({}, c_double)", 8),
         ("i4", "integer(c_int32_t)", "CTN_I32", "int({}, c_int32_t)", 4),
         ("i8", "integer(c_int64_t)", "CTN_I64", "int({}, c_int64_t)", 8)]
HEAD = """! SPDX-License-Identifier: Apache-2.0
!
! Arrays of the program: as tensors without a copy, as samples of a dataset, and as the place for
! values of tensors, variables and communicators. bindings/generate/fortran_arrays.py writes this
! file. Each generic procedure takes real(4), real(8), integer(4) and integer(8).
!
! The fastest-varying index is the first in Fortran and the last in Catena: a(nx,ny) is the tensor
! (ny,nx). No element moves.
module catena_arrays
    use, intrinsic :: iso_c_binding
    use catena_base
    use catena_types
    use catena_objects
    use catena_ops, only: ctn_cast
    use catena_c, only: c_var => ctn_var, c_dataset => ctn_dataset, c_comm => ctn_comm, &
        c_context => ctn_context, c_input_strided => ctn_input_strided_at, c_read => ctn_read, &
        c_var_get => ctn_var_get, c_var_set => ctn_var_set, c_var_grad => ctn_var_grad, &
        c_dtype_of => ctn_dtype_of, c_count => ctn_count, c_arrays_open => ctn_arrays_open, &
        c_dataset_free => ctn_dataset_free, c_comm_allreduce => ctn_comm_allreduce, &
        c_comm_broadcast => ctn_comm_broadcast, c_npy_save => ctn_npy_save
    implicit none
    private
    public :: ctn_input, ctn_read, ctn_var_get, ctn_var_set, ctn_var_grad, ctn_values
    public :: ctn_array, ctn_arrays_open, ctn_npy_save, ctn_comm_allreduce, ctn_comm_broadcast

    integer, parameter :: TENSOR = 1, VARIABLE = 2, GRADIENT = 3 ! what fetch reads

    ! An array of samples, the last index of which counts the samples: ctn_array(x).
    type :: ctn_array
        private
        type(ctn_field) :: field
        type(c_ptr) :: data = c_null_ptr
        integer(c_int64_t) :: count = 0, bytes = 0
    end type
    interface ctn_arrays_open
        module procedure arrays_open
    end interface
    interface ctn_npy_save
        module procedure npy_save
    end interface
    interface ctn_values
        module procedure values_of
    end interface
"""
COMMON = """
    ! All elements in memory order as real(4).
    function values_of(t, stat, errmsg) result(values)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(c_float), allocatable :: values(:)
        allocate (values(max(c_count(t), 0_c_int64_t)))
        call copy_r4(TENSOR, t%p, c_dtype_of(t), values, stat, errmsg)
    end function

    ! A dataset of the program's arrays, which must stay where they are until it is freed.
    subroutine arrays_open(ds, arrays, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_array), intent(in) :: arrays(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_field) :: fields(size(arrays))
        type(c_ptr) :: data(size(arrays))
        integer(c_int64_t) :: n
        integer(c_int) :: st
        n = 0
        if (size(arrays) > 0) n = arrays(1)%count
        if (any(arrays%count /= n)) then
            call fail(CTN_ESHAPE, 'ctn_arrays_open: the arrays have different numbers of '// &
                      'samples: the last dimensions must be equal', stat, errmsg)
            return
        end if
        fields = arrays%field
        data = arrays%data
        st = c_arrays_open(ds_, n, size(arrays), fields, data)
        if (st >= 0) call own(ds, ds_%p, c_funloc(c_dataset_free))
        call settle(st, stat, errmsg)
    end subroutine

    ! Write an array as a .npy file.
    subroutine npy_save(path, array, stat, errmsg)
        character(*), intent(in) :: path
        type(ctn_array), intent(in) :: array
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_signed_char), pointer :: memory(:)
        call c_f_pointer(array%data, memory, [array%bytes])
        call settle(c_npy_save(chars(path), array%count, array%field, memory), stat, errmsg)
    end subroutine

    function array_of(data, dtype, bytes, dims) result(array)
        type(c_ptr), intent(in) :: data
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: bytes
        integer(c_int64_t), intent(in) :: dims(:)
        type(ctn_array) :: array
        integer :: n
        n = size(dims) - 1
        array%field%dtype = dtype
        array%field%ndim = n
        array%field%shape(1:n) = dims(n:1:-1)
        array%data = data
        array%count = dims(n + 1)
        array%bytes = bytes * product(dims)
    end function

    ! first: address of the array; second(d): address of its second element along dimension d, or
    ! first if there is none.
    function leaf(ctx, dtype, bytes, dims, first, second, ndim, wanted) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: bytes
        integer(c_int64_t), intent(in) :: dims(:)
        integer(c_intptr_t), intent(in) :: first, second(:)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: wanted
        type(ctn_tensor) :: t
        integer(c_int64_t), allocatable :: all_dims(:), strides(:)
        integer(c_int) :: last
        integer :: n
        n = size(dims)
        if (present(ndim)) n = max(n, ndim)
        allocate (all_dims(n), source=1_c_int64_t)
        allocate (strides(n), source=0_c_int64_t)
        all_dims(n:n - size(dims) + 1:-1) = dims
        strides(n:n - size(dims) + 1:-1) = (second - first) / bytes
        t = c_input_strided(c_loc(here), c_context(address_of(ctx)), &
                            transfer(first, c_null_ptr), dtype, n, all_dims, strides)
        last = merge(CTN_F32, dtype, dtype == CTN_F64)
        if (present(wanted)) last = wanted
        if (last /= dtype) t = ctn_cast(t, last)
    end function

    function fetch(what, p, memory, bytes) result(st)
        integer, intent(in) :: what
        type(c_ptr), intent(in) :: p
        type(*), intent(inout) :: memory(*)
        integer(c_int64_t), intent(in) :: bytes
        integer(c_int) :: st
        select case (what)
        case (TENSOR)
            st = c_read(ctn_tensor(p), memory, int(bytes, c_size_t))
        case (VARIABLE)
            st = c_var_get(c_var(p), memory, int(bytes, c_size_t))
        case default
            st = c_var_grad(c_var(p), memory, int(bytes, c_size_t))
        end select
    end function

    function dtype_of_var(v) result(dtype)
        type(ctn_var), intent(in) :: v
        integer(c_int) :: dtype
        type(ctn_desc) :: desc
        desc = ctn_var_desc(v)
        dtype = desc%dtype
    end function
"""
STAT = ["integer, intent(out), optional :: stat", "character(*), intent(inout), optional :: errmsg"]


def procedure(word, head, declared, body):
    out = wrapped(f"    {word} {head}")
    for line in [*declared, *body]:
        out += wrapped("        " + line)
    return ["", *out, f"    end {word}"]


def dimension(rank):
    return f"({', '.join([':'] * rank)})" if rank else ""


def element(rank, axis=None):
    """a(1,1,1), or with n(axis) as the index along one axis."""
    return "a(" + ", ".join(f"n({i + 1})" if i == axis else "1" for i in range(rank)) + ")"


def input_procedure(kind, rank):
    suffix, fortran, dtype, _, bytes_ = kind
    second = ", ".join(f"place_{suffix}({element(rank, axis)})" for axis in range(rank))
    return procedure(
        "function", f"input_{suffix}_{rank}(ctx, a, ndim, dtype) result(t)",
        ["type(ctn_context), intent(in) :: ctx",
         f"{fortran}, intent(in), target :: a{dimension(rank)}",
         "integer, intent(in), optional :: ndim", "integer(c_int), intent(in), optional :: dtype",
         "type(ctn_tensor) :: t", f"integer(c_int64_t) :: dims({rank}), n({rank})"],
        ["dims = shape(a, c_int64_t)", "n = min(dims, 2_c_int64_t)", "if (any(n == 0)) then",
         f"    t = leaf(ctx, {dtype}, {bytes_}, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, "
         "dtype)", "else",
         f"    t = leaf(ctx, {dtype}, {bytes_}, dims, place_{suffix}({element(rank)}), "
         f"[{second}], ndim, dtype)", "end if"])


def flat(kind, rank, intent):
    """The declarations of an array and of its elements as a list, and the line that sets it."""
    declared = [f"{kind[1]}, intent({intent}), " + ("contiguous, " if rank else "") +
                f"target :: a{dimension(rank)}", f"{kind[1]}, pointer :: flat(:)"]
    line = "flat(1:size(a, kind=c_int64_t)) => a" if rank else \
        "call c_f_pointer(c_loc(a), flat, [1])"
    return declared, line


def memory_procedures(kind, rank):
    """Procedures that fill an array or read it."""
    suffix = f"{kind[0]}_{rank}"
    declared, line = flat(kind, rank, "inout")
    out = procedure("subroutine", f"read_{suffix}(t, a, stat, errmsg)",
                    ["type(ctn_tensor), intent(in) :: t", *declared, *STAT],
                    [line, f"call copy_{kind[0]}(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)"])
    for name, what in (("var_get", "VARIABLE"), ("var_grad", "GRADIENT")):
        out += procedure("subroutine", f"{name}_{suffix}(v, a, stat, errmsg)",
                         ["type(ctn_var), intent(in) :: v", *declared, *STAT],
                         [line, f"call copy_{kind[0]}({what}, address_of(v), dtype_of_var(v), "
                          "flat, stat, errmsg)"])
    out += procedure("subroutine", f"allreduce_{suffix}(c, a, stat, errmsg)",
                     ["type(ctn_comm), intent(in) :: c", *declared, *STAT],
                     [line, "call settle(c_comm_allreduce(c_comm(address_of(c)), flat, "
                      f"size(flat, kind=c_int64_t), {kind[2]}), stat, errmsg)"])
    out += procedure("subroutine", f"broadcast_{suffix}(c, a, root, stat, errmsg)",
                     ["type(ctn_comm), intent(in) :: c", *declared,
                      "integer, intent(in) :: root", *STAT],
                     [line, "call settle(c_comm_broadcast(c_comm(address_of(c)), flat, "
                      f"{kind[4]} * size(flat, kind=c_size_t), root), stat, errmsg)"])
    declared, line = flat(kind, rank, "in")
    return out + procedure("subroutine", f"var_set_{suffix}(v, a, stat, errmsg)",
                           ["type(ctn_var), intent(in) :: v", *declared, *STAT],
                           [line, f"call store_{kind[0]}(v, flat, stat, errmsg)"])


def array_procedure(kind, rank):
    suffix, fortran, dtype, _, bytes_ = kind
    return procedure("function", f"array_{suffix}_{rank}(a) result(array)",
                     [f"{fortran}, intent(in), contiguous, target :: a{dimension(rank)}",
                      "type(ctn_array) :: array"],
                     [f"array = array_of(c_loc(a), {dtype}, {bytes_}, shape(a, c_int64_t))"])


def copy_procedure(kind):
    """Read values of any type into a list of this kind."""
    own, fortran, _, convert, _ = kind
    declared = ["integer, intent(in) :: what", "type(c_ptr), intent(in) :: p",
                "integer(c_int), intent(in) :: dtype", f"{fortran}, intent(inout) :: flat(:)",
                *STAT, "integer(c_int64_t) :: n", "integer(c_int) :: st"]
    body = ["n = size(flat, kind=c_int64_t)", "select case (dtype)"]
    for suffix, other, dtype, _, bytes_ in KINDS:
        if suffix == own:
            continue
        declared.append(f"{other}, allocatable :: {suffix}(:)")
        body += [f"case ({dtype})", f"    allocate ({suffix}(n))",
                 f"    st = fetch(what, p, {suffix}, {bytes_} * n)",
                 f"    if (st >= 0) flat = {convert.format(suffix)}"]
    declared.append("integer(c_signed_char), allocatable :: i1(:)")
    body += ["case (CTN_U8, CTN_BOOL)", "    allocate (i1(n))", "    st = fetch(what, p, i1, n)",
             "    if (st >= 0) flat = " + convert.format("iand(int(i1, c_int32_t), 255)"),
             "case default", f"    st = fetch(what, p, flat, {kind[4]} * n)", "end select",
             "call settle(st, stat, errmsg)"]
    return procedure("subroutine", f"copy_{own}(what, p, dtype, flat, stat, errmsg)", declared,
                     body)


def store_procedure(kind):
    """Write a list of this kind into a variable of any type."""
    own, fortran, _, _, _ = kind
    declared = ["type(ctn_var), intent(in) :: v", f"{fortran}, intent(in) :: flat(:)", *STAT,
                "integer(c_size_t) :: n", "integer(c_int) :: st"]
    body = ["n = size(flat, kind=c_size_t)", "select case (dtype_of_var(v))"]
    for suffix, _, dtype, convert, bytes_ in KINDS:
        if suffix != own:
            body += [f"case ({dtype})", "    st = c_var_set(c_var(address_of(v)), "
                     f"{convert.format('flat')}, {bytes_} * n)"]
    body += ["case default", f"    st = c_var_set(c_var(address_of(v)), flat, {kind[4]} * n)",
             "end select", "call settle(st, stat, errmsg)"]
    return procedure("subroutine", f"store_{own}(v, flat, stat, errmsg)", declared, body)


def place_procedure(kind):
    return procedure("function", f"place_{kind[0]}(x) result(n)",
                     [f"{kind[1]}, intent(in), target :: x", "integer(c_intptr_t) :: n"],
                     ["n = transfer(c_loc(x), n)"])


def interface(public, name, ranks):
    out = [f"    interface {public}"]
    for kind in KINDS:
        names = ", ".join(f"{name}_{kind[0]}_{rank}" for rank in ranks)
        out += wrapped(f"        module procedure {names}")
    return [*out, "    end interface"]


def lines():
    arrays, all_ranks = range(1, MAX_RANK + 1), range(MAX_RANK + 1)
    out = HEAD.rstrip("\n").split("\n")
    for public, name, ranks in (
            ("ctn_input", "input", arrays), ("ctn_array", "array", arrays),
            ("ctn_read", "read", all_ranks), ("ctn_var_get", "var_get", all_ranks),
            ("ctn_var_set", "var_set", all_ranks), ("ctn_var_grad", "var_grad", all_ranks),
            ("ctn_comm_allreduce", "allreduce", all_ranks),
            ("ctn_comm_broadcast", "broadcast", all_ranks)):
        out += interface(public, name, ranks)
    out += ["", "contains", *COMMON.rstrip("\n").split("\n")]
    for kind in KINDS:
        out += copy_procedure(kind) + store_procedure(kind) + place_procedure(kind)
        for rank in all_ranks:
            if rank:
                out += input_procedure(kind, rank) + array_procedure(kind, rank)
            out += memory_procedures(kind, rank)
    return [*out, "end module"]
