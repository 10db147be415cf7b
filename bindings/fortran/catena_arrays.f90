! SPDX-License-Identifier: Apache-2.0
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
    interface ctn_input
        module procedure input_r4_1, input_r4_2, input_r4_3, input_r4_4, input_r4_5
        module procedure input_r8_1, input_r8_2, input_r8_3, input_r8_4, input_r8_5
        module procedure input_i4_1, input_i4_2, input_i4_3, input_i4_4, input_i4_5
        module procedure input_i8_1, input_i8_2, input_i8_3, input_i8_4, input_i8_5
    end interface
    interface ctn_array
        module procedure array_r4_1, array_r4_2, array_r4_3, array_r4_4, array_r4_5
        module procedure array_r8_1, array_r8_2, array_r8_3, array_r8_4, array_r8_5
        module procedure array_i4_1, array_i4_2, array_i4_3, array_i4_4, array_i4_5
        module procedure array_i8_1, array_i8_2, array_i8_3, array_i8_4, array_i8_5
    end interface
    interface ctn_read
        module procedure read_r4_0, read_r4_1, read_r4_2, read_r4_3, read_r4_4, read_r4_5
        module procedure read_r8_0, read_r8_1, read_r8_2, read_r8_3, read_r8_4, read_r8_5
        module procedure read_i4_0, read_i4_1, read_i4_2, read_i4_3, read_i4_4, read_i4_5
        module procedure read_i8_0, read_i8_1, read_i8_2, read_i8_3, read_i8_4, read_i8_5
    end interface
    interface ctn_var_get
        module procedure var_get_r4_0, var_get_r4_1, var_get_r4_2, var_get_r4_3, var_get_r4_4, &
                var_get_r4_5
        module procedure var_get_r8_0, var_get_r8_1, var_get_r8_2, var_get_r8_3, var_get_r8_4, &
                var_get_r8_5
        module procedure var_get_i4_0, var_get_i4_1, var_get_i4_2, var_get_i4_3, var_get_i4_4, &
                var_get_i4_5
        module procedure var_get_i8_0, var_get_i8_1, var_get_i8_2, var_get_i8_3, var_get_i8_4, &
                var_get_i8_5
    end interface
    interface ctn_var_set
        module procedure var_set_r4_0, var_set_r4_1, var_set_r4_2, var_set_r4_3, var_set_r4_4, &
                var_set_r4_5
        module procedure var_set_r8_0, var_set_r8_1, var_set_r8_2, var_set_r8_3, var_set_r8_4, &
                var_set_r8_5
        module procedure var_set_i4_0, var_set_i4_1, var_set_i4_2, var_set_i4_3, var_set_i4_4, &
                var_set_i4_5
        module procedure var_set_i8_0, var_set_i8_1, var_set_i8_2, var_set_i8_3, var_set_i8_4, &
                var_set_i8_5
    end interface
    interface ctn_var_grad
        module procedure var_grad_r4_0, var_grad_r4_1, var_grad_r4_2, var_grad_r4_3, &
                var_grad_r4_4, var_grad_r4_5
        module procedure var_grad_r8_0, var_grad_r8_1, var_grad_r8_2, var_grad_r8_3, &
                var_grad_r8_4, var_grad_r8_5
        module procedure var_grad_i4_0, var_grad_i4_1, var_grad_i4_2, var_grad_i4_3, &
                var_grad_i4_4, var_grad_i4_5
        module procedure var_grad_i8_0, var_grad_i8_1, var_grad_i8_2, var_grad_i8_3, &
                var_grad_i8_4, var_grad_i8_5
    end interface
    interface ctn_comm_allreduce
        module procedure allreduce_r4_0, allreduce_r4_1, allreduce_r4_2, allreduce_r4_3, &
                allreduce_r4_4, allreduce_r4_5
        module procedure allreduce_r8_0, allreduce_r8_1, allreduce_r8_2, allreduce_r8_3, &
                allreduce_r8_4, allreduce_r8_5
        module procedure allreduce_i4_0, allreduce_i4_1, allreduce_i4_2, allreduce_i4_3, &
                allreduce_i4_4, allreduce_i4_5
        module procedure allreduce_i8_0, allreduce_i8_1, allreduce_i8_2, allreduce_i8_3, &
                allreduce_i8_4, allreduce_i8_5
    end interface
    interface ctn_comm_broadcast
        module procedure broadcast_r4_0, broadcast_r4_1, broadcast_r4_2, broadcast_r4_3, &
                broadcast_r4_4, broadcast_r4_5
        module procedure broadcast_r8_0, broadcast_r8_1, broadcast_r8_2, broadcast_r8_3, &
                broadcast_r8_4, broadcast_r8_5
        module procedure broadcast_i4_0, broadcast_i4_1, broadcast_i4_2, broadcast_i4_3, &
                broadcast_i4_4, broadcast_i4_5
        module procedure broadcast_i8_0, broadcast_i8_1, broadcast_i8_2, broadcast_i8_3, &
                broadcast_i8_4, broadcast_i8_5
    end interface

contains

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

    subroutine copy_r4(what, p, dtype, flat, stat, errmsg)
        integer, intent(in) :: what
        type(c_ptr), intent(in) :: p
        integer(c_int), intent(in) :: dtype
        real(c_float), intent(inout) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int64_t) :: n
        integer(c_int) :: st
        real(c_double), allocatable :: r8(:)
        integer(c_int32_t), allocatable :: i4(:)
        integer(c_int64_t), allocatable :: i8(:)
        integer(c_signed_char), allocatable :: i1(:)
        n = size(flat, kind=c_int64_t)
        select case (dtype)
        case (CTN_F64)
            allocate (r8(n))
            st = fetch(what, p, r8, 8 * n)
            if (st >= 0) flat = real(r8, c_float)
        case (CTN_I32)
            allocate (i4(n))
            st = fetch(what, p, i4, 4 * n)
            if (st >= 0) flat = real(i4, c_float)
        case (CTN_I64)
            allocate (i8(n))
            st = fetch(what, p, i8, 8 * n)
            if (st >= 0) flat = real(i8, c_float)
        case (CTN_U8, CTN_BOOL)
            allocate (i1(n))
            st = fetch(what, p, i1, n)
            if (st >= 0) flat = real(iand(int(i1, c_int32_t), 255), c_float)
        case default
            st = fetch(what, p, flat, 4 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    subroutine store_r4(v, flat, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(in) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_size_t) :: n
        integer(c_int) :: st
        n = size(flat, kind=c_size_t)
        select case (dtype_of_var(v))
        case (CTN_F64)
            st = c_var_set(c_var(address_of(v)), real(flat, c_double), 8 * n)
        case (CTN_I32)
            st = c_var_set(c_var(address_of(v)), int(flat, c_int32_t), 4 * n)
        case (CTN_I64)
            st = c_var_set(c_var(address_of(v)), int(flat, c_int64_t), 8 * n)
        case default
            st = c_var_set(c_var(address_of(v)), flat, 4 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    function place_r4(x) result(n)
        real(c_float), intent(in), target :: x
        integer(c_intptr_t) :: n
        n = transfer(c_loc(x), n)
    end function

    subroutine read_r4_0(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_float), intent(inout), target :: a
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_r4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r4_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), target :: a
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_r4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r4_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), target :: a
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_r4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r4_0(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), target :: a
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F32), stat, errmsg)
    end subroutine

    subroutine broadcast_r4_0(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), target :: a
        real(c_float), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r4_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(in), target :: a
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call store_r4(v, flat, stat, errmsg)
    end subroutine

    function input_r4_1(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(1), n(1)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F32, 4, dims, place_r4(a(1)), [place_r4(a(n(1)))], ndim, dtype)
        end if
    end function

    function array_r4_1(a) result(array)
        real(c_float), intent(in), contiguous, target :: a(:)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F32, 4, shape(a, c_int64_t))
    end function

    subroutine read_r4_1(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_float), intent(inout), contiguous, target :: a(:)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r4_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r4_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r4_1(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F32), stat, errmsg)
    end subroutine

    subroutine broadcast_r4_1(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:)
        real(c_float), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r4_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(in), contiguous, target :: a(:)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r4(v, flat, stat, errmsg)
    end subroutine

    function input_r4_2(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(2), n(2)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F32, 4, dims, place_r4(a(1, 1)), [place_r4(a(n(1), 1)), &
                place_r4(a(1, n(2)))], ndim, dtype)
        end if
    end function

    function array_r4_2(a) result(array)
        real(c_float), intent(in), contiguous, target :: a(:, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F32, 4, shape(a, c_int64_t))
    end function

    subroutine read_r4_2(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_float), intent(inout), contiguous, target :: a(:, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r4_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r4_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r4_2(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F32), stat, errmsg)
    end subroutine

    subroutine broadcast_r4_2(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :)
        real(c_float), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r4_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(in), contiguous, target :: a(:, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r4(v, flat, stat, errmsg)
    end subroutine

    function input_r4_3(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(3), n(3)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F32, 4, dims, place_r4(a(1, 1, 1)), [place_r4(a(n(1), 1, 1)), &
                place_r4(a(1, n(2), 1)), place_r4(a(1, 1, n(3)))], ndim, dtype)
        end if
    end function

    function array_r4_3(a) result(array)
        real(c_float), intent(in), contiguous, target :: a(:, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F32, 4, shape(a, c_int64_t))
    end function

    subroutine read_r4_3(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_float), intent(inout), contiguous, target :: a(:, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r4_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r4_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r4_3(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F32), stat, errmsg)
    end subroutine

    subroutine broadcast_r4_3(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r4_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(in), contiguous, target :: a(:, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r4(v, flat, stat, errmsg)
    end subroutine

    function input_r4_4(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(4), n(4)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F32, 4, dims, place_r4(a(1, 1, 1, 1)), [place_r4(a(n(1), 1, 1, 1)), &
                place_r4(a(1, n(2), 1, 1)), place_r4(a(1, 1, n(3), 1)), place_r4(a(1, 1, 1, &
                n(4)))], ndim, dtype)
        end if
    end function

    function array_r4_4(a) result(array)
        real(c_float), intent(in), contiguous, target :: a(:, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F32, 4, shape(a, c_int64_t))
    end function

    subroutine read_r4_4(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r4_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r4_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r4_4(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F32), stat, errmsg)
    end subroutine

    subroutine broadcast_r4_4(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r4_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(in), contiguous, target :: a(:, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r4(v, flat, stat, errmsg)
    end subroutine

    function input_r4_5(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:, :, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(5), n(5)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F32, 4, dims, place_r4(a(1, 1, 1, 1, 1)), [place_r4(a(n(1), 1, 1, 1, &
                1)), place_r4(a(1, n(2), 1, 1, 1)), place_r4(a(1, 1, n(3), 1, 1)), place_r4(a(1, &
                1, 1, n(4), 1)), place_r4(a(1, 1, 1, 1, n(5)))], ndim, dtype)
        end if
    end function

    function array_r4_5(a) result(array)
        real(c_float), intent(in), contiguous, target :: a(:, :, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F32, 4, shape(a, c_int64_t))
    end function

    subroutine read_r4_5(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r4_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r4_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r4_5(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F32), stat, errmsg)
    end subroutine

    subroutine broadcast_r4_5(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_float), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r4_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_float), intent(in), contiguous, target :: a(:, :, :, :, :)
        real(c_float), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r4(v, flat, stat, errmsg)
    end subroutine

    subroutine copy_r8(what, p, dtype, flat, stat, errmsg)
        integer, intent(in) :: what
        type(c_ptr), intent(in) :: p
        integer(c_int), intent(in) :: dtype
        real(c_double), intent(inout) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int64_t) :: n
        integer(c_int) :: st
        real(c_float), allocatable :: r4(:)
        integer(c_int32_t), allocatable :: i4(:)
        integer(c_int64_t), allocatable :: i8(:)
        integer(c_signed_char), allocatable :: i1(:)
        n = size(flat, kind=c_int64_t)
        select case (dtype)
        case (CTN_F32)
            allocate (r4(n))
            st = fetch(what, p, r4, 4 * n)
            if (st >= 0) flat = real(r4, c_double)
        case (CTN_I32)
            allocate (i4(n))
            st = fetch(what, p, i4, 4 * n)
            if (st >= 0) flat = real(i4, c_double)
        case (CTN_I64)
            allocate (i8(n))
            st = fetch(what, p, i8, 8 * n)
            if (st >= 0) flat = real(i8, c_double)
        case (CTN_U8, CTN_BOOL)
            allocate (i1(n))
            st = fetch(what, p, i1, n)
            if (st >= 0) flat = real(iand(int(i1, c_int32_t), 255), c_double)
        case default
            st = fetch(what, p, flat, 8 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    subroutine store_r8(v, flat, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(in) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_size_t) :: n
        integer(c_int) :: st
        n = size(flat, kind=c_size_t)
        select case (dtype_of_var(v))
        case (CTN_F32)
            st = c_var_set(c_var(address_of(v)), real(flat, c_float), 4 * n)
        case (CTN_I32)
            st = c_var_set(c_var(address_of(v)), int(flat, c_int32_t), 4 * n)
        case (CTN_I64)
            st = c_var_set(c_var(address_of(v)), int(flat, c_int64_t), 8 * n)
        case default
            st = c_var_set(c_var(address_of(v)), flat, 8 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    function place_r8(x) result(n)
        real(c_double), intent(in), target :: x
        integer(c_intptr_t) :: n
        n = transfer(c_loc(x), n)
    end function

    subroutine read_r8_0(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(inout), target :: a
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_r8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r8_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), target :: a
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_r8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r8_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), target :: a
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_r8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r8_0(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), target :: a
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F64), stat, errmsg)
    end subroutine

    subroutine broadcast_r8_0(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), target :: a
        real(c_double), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r8_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(in), target :: a
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call store_r8(v, flat, stat, errmsg)
    end subroutine

    function input_r8_1(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(1), n(1)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F64, 8, dims, place_r8(a(1)), [place_r8(a(n(1)))], ndim, dtype)
        end if
    end function

    function array_r8_1(a) result(array)
        real(c_double), intent(in), contiguous, target :: a(:)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F64, 8, shape(a, c_int64_t))
    end function

    subroutine read_r8_1(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(inout), contiguous, target :: a(:)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r8_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r8_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r8_1(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F64), stat, errmsg)
    end subroutine

    subroutine broadcast_r8_1(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:)
        real(c_double), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r8_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(in), contiguous, target :: a(:)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r8(v, flat, stat, errmsg)
    end subroutine

    function input_r8_2(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(2), n(2)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F64, 8, dims, place_r8(a(1, 1)), [place_r8(a(n(1), 1)), &
                place_r8(a(1, n(2)))], ndim, dtype)
        end if
    end function

    function array_r8_2(a) result(array)
        real(c_double), intent(in), contiguous, target :: a(:, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F64, 8, shape(a, c_int64_t))
    end function

    subroutine read_r8_2(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(inout), contiguous, target :: a(:, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r8_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r8_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r8_2(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F64), stat, errmsg)
    end subroutine

    subroutine broadcast_r8_2(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :)
        real(c_double), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r8_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(in), contiguous, target :: a(:, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r8(v, flat, stat, errmsg)
    end subroutine

    function input_r8_3(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(3), n(3)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F64, 8, dims, place_r8(a(1, 1, 1)), [place_r8(a(n(1), 1, 1)), &
                place_r8(a(1, n(2), 1)), place_r8(a(1, 1, n(3)))], ndim, dtype)
        end if
    end function

    function array_r8_3(a) result(array)
        real(c_double), intent(in), contiguous, target :: a(:, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F64, 8, shape(a, c_int64_t))
    end function

    subroutine read_r8_3(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(inout), contiguous, target :: a(:, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r8_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r8_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r8_3(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F64), stat, errmsg)
    end subroutine

    subroutine broadcast_r8_3(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r8_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(in), contiguous, target :: a(:, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r8(v, flat, stat, errmsg)
    end subroutine

    function input_r8_4(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(4), n(4)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F64, 8, dims, place_r8(a(1, 1, 1, 1)), [place_r8(a(n(1), 1, 1, 1)), &
                place_r8(a(1, n(2), 1, 1)), place_r8(a(1, 1, n(3), 1)), place_r8(a(1, 1, 1, &
                n(4)))], ndim, dtype)
        end if
    end function

    function array_r8_4(a) result(array)
        real(c_double), intent(in), contiguous, target :: a(:, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F64, 8, shape(a, c_int64_t))
    end function

    subroutine read_r8_4(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r8_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r8_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r8_4(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F64), stat, errmsg)
    end subroutine

    subroutine broadcast_r8_4(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r8_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(in), contiguous, target :: a(:, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r8(v, flat, stat, errmsg)
    end subroutine

    function input_r8_5(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:, :, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(5), n(5)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_F64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_F64, 8, dims, place_r8(a(1, 1, 1, 1, 1)), [place_r8(a(n(1), 1, 1, 1, &
                1)), place_r8(a(1, n(2), 1, 1, 1)), place_r8(a(1, 1, n(3), 1, 1)), place_r8(a(1, &
                1, 1, n(4), 1)), place_r8(a(1, 1, 1, 1, n(5)))], ndim, dtype)
        end if
    end function

    function array_r8_5(a) result(array)
        real(c_double), intent(in), contiguous, target :: a(:, :, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_F64, 8, shape(a, c_int64_t))
    end function

    subroutine read_r8_5(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_r8_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_r8_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_r8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_r8_5(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_F64), stat, errmsg)
    end subroutine

    subroutine broadcast_r8_5(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout), contiguous, target :: a(:, :, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_r8_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        real(c_double), intent(in), contiguous, target :: a(:, :, :, :, :)
        real(c_double), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_r8(v, flat, stat, errmsg)
    end subroutine

    subroutine copy_i4(what, p, dtype, flat, stat, errmsg)
        integer, intent(in) :: what
        type(c_ptr), intent(in) :: p
        integer(c_int), intent(in) :: dtype
        integer(c_int32_t), intent(inout) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int64_t) :: n
        integer(c_int) :: st
        real(c_float), allocatable :: r4(:)
        real(c_double), allocatable :: r8(:)
        integer(c_int64_t), allocatable :: i8(:)
        integer(c_signed_char), allocatable :: i1(:)
        n = size(flat, kind=c_int64_t)
        select case (dtype)
        case (CTN_F32)
            allocate (r4(n))
            st = fetch(what, p, r4, 4 * n)
            if (st >= 0) flat = int(r4, c_int32_t)
        case (CTN_F64)
            allocate (r8(n))
            st = fetch(what, p, r8, 8 * n)
            if (st >= 0) flat = int(r8, c_int32_t)
        case (CTN_I64)
            allocate (i8(n))
            st = fetch(what, p, i8, 8 * n)
            if (st >= 0) flat = int(i8, c_int32_t)
        case (CTN_U8, CTN_BOOL)
            allocate (i1(n))
            st = fetch(what, p, i1, n)
            if (st >= 0) flat = int(iand(int(i1, c_int32_t), 255), c_int32_t)
        case default
            st = fetch(what, p, flat, 4 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    subroutine store_i4(v, flat, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(in) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_size_t) :: n
        integer(c_int) :: st
        n = size(flat, kind=c_size_t)
        select case (dtype_of_var(v))
        case (CTN_F32)
            st = c_var_set(c_var(address_of(v)), real(flat, c_float), 4 * n)
        case (CTN_F64)
            st = c_var_set(c_var(address_of(v)), real(flat, c_double), 8 * n)
        case (CTN_I64)
            st = c_var_set(c_var(address_of(v)), int(flat, c_int64_t), 8 * n)
        case default
            st = c_var_set(c_var(address_of(v)), flat, 4 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    function place_i4(x) result(n)
        integer(c_int32_t), intent(in), target :: x
        integer(c_intptr_t) :: n
        n = transfer(c_loc(x), n)
    end function

    subroutine read_i4_0(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int32_t), intent(inout), target :: a
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_i4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i4_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), target :: a
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_i4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i4_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), target :: a
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_i4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i4_0(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), target :: a
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I32), stat, errmsg)
    end subroutine

    subroutine broadcast_i4_0(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), target :: a
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i4_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(in), target :: a
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call store_i4(v, flat, stat, errmsg)
    end subroutine

    function input_i4_1(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int32_t), intent(in), target :: a(:)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(1), n(1)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I32, 4, dims, place_i4(a(1)), [place_i4(a(n(1)))], ndim, dtype)
        end if
    end function

    function array_i4_1(a) result(array)
        integer(c_int32_t), intent(in), contiguous, target :: a(:)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I32, 4, shape(a, c_int64_t))
    end function

    subroutine read_i4_1(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int32_t), intent(inout), contiguous, target :: a(:)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i4_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i4_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i4_1(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I32), stat, errmsg)
    end subroutine

    subroutine broadcast_i4_1(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i4_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(in), contiguous, target :: a(:)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i4(v, flat, stat, errmsg)
    end subroutine

    function input_i4_2(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int32_t), intent(in), target :: a(:, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(2), n(2)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I32, 4, dims, place_i4(a(1, 1)), [place_i4(a(n(1), 1)), &
                place_i4(a(1, n(2)))], ndim, dtype)
        end if
    end function

    function array_i4_2(a) result(array)
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I32, 4, shape(a, c_int64_t))
    end function

    subroutine read_i4_2(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i4_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i4_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i4_2(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I32), stat, errmsg)
    end subroutine

    subroutine broadcast_i4_2(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i4_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i4(v, flat, stat, errmsg)
    end subroutine

    function input_i4_3(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int32_t), intent(in), target :: a(:, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(3), n(3)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I32, 4, dims, place_i4(a(1, 1, 1)), [place_i4(a(n(1), 1, 1)), &
                place_i4(a(1, n(2), 1)), place_i4(a(1, 1, n(3)))], ndim, dtype)
        end if
    end function

    function array_i4_3(a) result(array)
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I32, 4, shape(a, c_int64_t))
    end function

    subroutine read_i4_3(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i4_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i4_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i4_3(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I32), stat, errmsg)
    end subroutine

    subroutine broadcast_i4_3(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i4_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i4(v, flat, stat, errmsg)
    end subroutine

    function input_i4_4(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int32_t), intent(in), target :: a(:, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(4), n(4)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I32, 4, dims, place_i4(a(1, 1, 1, 1)), [place_i4(a(n(1), 1, 1, 1)), &
                place_i4(a(1, n(2), 1, 1)), place_i4(a(1, 1, n(3), 1)), place_i4(a(1, 1, 1, &
                n(4)))], ndim, dtype)
        end if
    end function

    function array_i4_4(a) result(array)
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I32, 4, shape(a, c_int64_t))
    end function

    subroutine read_i4_4(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i4_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i4_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i4_4(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I32), stat, errmsg)
    end subroutine

    subroutine broadcast_i4_4(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i4_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i4(v, flat, stat, errmsg)
    end subroutine

    function input_i4_5(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int32_t), intent(in), target :: a(:, :, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(5), n(5)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I32, 4, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I32, 4, dims, place_i4(a(1, 1, 1, 1, 1)), [place_i4(a(n(1), 1, 1, 1, &
                1)), place_i4(a(1, n(2), 1, 1, 1)), place_i4(a(1, 1, n(3), 1, 1)), place_i4(a(1, &
                1, 1, n(4), 1)), place_i4(a(1, 1, 1, 1, n(5)))], ndim, dtype)
        end if
    end function

    function array_i4_5(a) result(array)
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I32, 4, shape(a, c_int64_t))
    end function

    subroutine read_i4_5(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i4_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i4_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i4(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i4_5(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I32), stat, errmsg)
    end subroutine

    subroutine broadcast_i4_5(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int32_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 4 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i4_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int32_t), intent(in), contiguous, target :: a(:, :, :, :, :)
        integer(c_int32_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i4(v, flat, stat, errmsg)
    end subroutine

    subroutine copy_i8(what, p, dtype, flat, stat, errmsg)
        integer, intent(in) :: what
        type(c_ptr), intent(in) :: p
        integer(c_int), intent(in) :: dtype
        integer(c_int64_t), intent(inout) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int64_t) :: n
        integer(c_int) :: st
        real(c_float), allocatable :: r4(:)
        real(c_double), allocatable :: r8(:)
        integer(c_int32_t), allocatable :: i4(:)
        integer(c_signed_char), allocatable :: i1(:)
        n = size(flat, kind=c_int64_t)
        select case (dtype)
        case (CTN_F32)
            allocate (r4(n))
            st = fetch(what, p, r4, 4 * n)
            if (st >= 0) flat = int(r4, c_int64_t)
        case (CTN_F64)
            allocate (r8(n))
            st = fetch(what, p, r8, 8 * n)
            if (st >= 0) flat = int(r8, c_int64_t)
        case (CTN_I32)
            allocate (i4(n))
            st = fetch(what, p, i4, 4 * n)
            if (st >= 0) flat = int(i4, c_int64_t)
        case (CTN_U8, CTN_BOOL)
            allocate (i1(n))
            st = fetch(what, p, i1, n)
            if (st >= 0) flat = int(iand(int(i1, c_int32_t), 255), c_int64_t)
        case default
            st = fetch(what, p, flat, 8 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    subroutine store_i8(v, flat, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(in) :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_size_t) :: n
        integer(c_int) :: st
        n = size(flat, kind=c_size_t)
        select case (dtype_of_var(v))
        case (CTN_F32)
            st = c_var_set(c_var(address_of(v)), real(flat, c_float), 4 * n)
        case (CTN_F64)
            st = c_var_set(c_var(address_of(v)), real(flat, c_double), 8 * n)
        case (CTN_I32)
            st = c_var_set(c_var(address_of(v)), int(flat, c_int32_t), 4 * n)
        case default
            st = c_var_set(c_var(address_of(v)), flat, 8 * n)
        end select
        call settle(st, stat, errmsg)
    end subroutine

    function place_i8(x) result(n)
        integer(c_int64_t), intent(in), target :: x
        integer(c_intptr_t) :: n
        n = transfer(c_loc(x), n)
    end function

    subroutine read_i8_0(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int64_t), intent(inout), target :: a
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_i8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i8_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), target :: a
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_i8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i8_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), target :: a
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call copy_i8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i8_0(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), target :: a
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I64), stat, errmsg)
    end subroutine

    subroutine broadcast_i8_0(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), target :: a
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i8_0(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(in), target :: a
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call c_f_pointer(c_loc(a), flat, [1])
        call store_i8(v, flat, stat, errmsg)
    end subroutine

    function input_i8_1(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int64_t), intent(in), target :: a(:)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(1), n(1)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I64, 8, dims, place_i8(a(1)), [place_i8(a(n(1)))], ndim, dtype)
        end if
    end function

    function array_i8_1(a) result(array)
        integer(c_int64_t), intent(in), contiguous, target :: a(:)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I64, 8, shape(a, c_int64_t))
    end function

    subroutine read_i8_1(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int64_t), intent(inout), contiguous, target :: a(:)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i8_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i8_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i8_1(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I64), stat, errmsg)
    end subroutine

    subroutine broadcast_i8_1(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i8_1(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(in), contiguous, target :: a(:)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i8(v, flat, stat, errmsg)
    end subroutine

    function input_i8_2(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int64_t), intent(in), target :: a(:, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(2), n(2)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I64, 8, dims, place_i8(a(1, 1)), [place_i8(a(n(1), 1)), &
                place_i8(a(1, n(2)))], ndim, dtype)
        end if
    end function

    function array_i8_2(a) result(array)
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I64, 8, shape(a, c_int64_t))
    end function

    subroutine read_i8_2(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i8_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i8_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i8_2(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I64), stat, errmsg)
    end subroutine

    subroutine broadcast_i8_2(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i8_2(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i8(v, flat, stat, errmsg)
    end subroutine

    function input_i8_3(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int64_t), intent(in), target :: a(:, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(3), n(3)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I64, 8, dims, place_i8(a(1, 1, 1)), [place_i8(a(n(1), 1, 1)), &
                place_i8(a(1, n(2), 1)), place_i8(a(1, 1, n(3)))], ndim, dtype)
        end if
    end function

    function array_i8_3(a) result(array)
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I64, 8, shape(a, c_int64_t))
    end function

    subroutine read_i8_3(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i8_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i8_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i8_3(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I64), stat, errmsg)
    end subroutine

    subroutine broadcast_i8_3(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i8_3(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i8(v, flat, stat, errmsg)
    end subroutine

    function input_i8_4(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int64_t), intent(in), target :: a(:, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(4), n(4)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I64, 8, dims, place_i8(a(1, 1, 1, 1)), [place_i8(a(n(1), 1, 1, 1)), &
                place_i8(a(1, n(2), 1, 1)), place_i8(a(1, 1, n(3), 1)), place_i8(a(1, 1, 1, &
                n(4)))], ndim, dtype)
        end if
    end function

    function array_i8_4(a) result(array)
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I64, 8, shape(a, c_int64_t))
    end function

    subroutine read_i8_4(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i8_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i8_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i8_4(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I64), stat, errmsg)
    end subroutine

    subroutine broadcast_i8_4(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i8_4(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i8(v, flat, stat, errmsg)
    end subroutine

    function input_i8_5(ctx, a, ndim, dtype) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int64_t), intent(in), target :: a(:, :, :, :, :)
        integer, intent(in), optional :: ndim
        integer(c_int), intent(in), optional :: dtype
        type(ctn_tensor) :: t
        integer(c_int64_t) :: dims(5), n(5)
        dims = shape(a, c_int64_t)
        n = min(dims, 2_c_int64_t)
        if (any(n == 0)) then
            t = leaf(ctx, CTN_I64, 8, dims, 0_c_intptr_t, 0_c_intptr_t * n, ndim, dtype)
        else
            t = leaf(ctx, CTN_I64, 8, dims, place_i8(a(1, 1, 1, 1, 1)), [place_i8(a(n(1), 1, 1, 1, &
                1)), place_i8(a(1, n(2), 1, 1, 1)), place_i8(a(1, 1, n(3), 1, 1)), place_i8(a(1, &
                1, 1, n(4), 1)), place_i8(a(1, 1, 1, 1, n(5)))], ndim, dtype)
        end if
    end function

    function array_i8_5(a) result(array)
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :, :, :, :)
        type(ctn_array) :: array
        array = array_of(c_loc(a), CTN_I64, 8, shape(a, c_int64_t))
    end function

    subroutine read_i8_5(t, a, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(TENSOR, t%p, c_dtype_of(t), flat, stat, errmsg)
    end subroutine

    subroutine var_get_i8_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(VARIABLE, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine var_grad_i8_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call copy_i8(GRADIENT, address_of(v), dtype_of_var(v), flat, stat, errmsg)
    end subroutine

    subroutine allreduce_i8_5(c, a, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_allreduce(c_comm(address_of(c)), flat, size(flat, kind=c_int64_t), &
                CTN_I64), stat, errmsg)
    end subroutine

    subroutine broadcast_i8_5(c, a, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(inout), contiguous, target :: a(:, :, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call settle(c_comm_broadcast(c_comm(address_of(c)), flat, 8 * size(flat, kind=c_size_t), &
                root), stat, errmsg)
    end subroutine

    subroutine var_set_i8_5(v, a, stat, errmsg)
        type(ctn_var), intent(in) :: v
        integer(c_int64_t), intent(in), contiguous, target :: a(:, :, :, :, :)
        integer(c_int64_t), pointer :: flat(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        flat(1:size(a, kind=c_int64_t)) => a
        call store_i8(v, flat, stat, errmsg)
    end subroutine
end module
