! SPDX-License-Identifier: Apache-2.0
!
! Catena for Fortran programs: an iso_c_binding interface to the part of the C library that is
! needed to train a surrogate inside a solver. Compile it with the program's own compiler. It does
! not use MPI itself; catena_f08.f90 adds the communicators of mpi_f08.
!
! Names and order of arguments are those of the C headers; optional arguments come last. Actions
! return a status: less than 0 is an error, and ctn_error_message() returns its text. A tensor
! computed from a failed tensor is in error too, which ctn_backward reports. Fortran's a(nx,ny) is
! Catena's (ny,nx): see ctn_input.
module catena
    use, intrinsic :: iso_c_binding
    implicit none
    private

    integer(c_int), parameter, public :: CTN_OK = 0
    integer(c_int), parameter, public :: CTN_MEAN = 0, CTN_SUM = 1 ! reductions of a loss

    ! Handles: the pointers of C, each with a type of its own. A struct that holds one pointer is
    ! passed like the pointer itself.
    type, bind(C), public :: ctn_context
        private
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C), public :: ctn_module
        private
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C), public :: ctn_optim
        private
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C), public :: ctn_comm
        private
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C), public :: ctn_tensor
        private
        type(c_ptr) :: p = c_null_ptr
    end type

    public :: ctn_error_message, ctn_error_clear
    public :: ctn_context_new, ctn_context_free, ctn_scope_begin, ctn_scope_end
    public :: ctn_linear_new, ctn_conv_new, ctn_activation_new, ctn_sequential_new, ctn_module_free
    public :: ctn_adam_new, ctn_optim_free, ctn_optim_lr
    public :: ctn_comm_from_mpi, ctn_comm_rank, ctn_comm_size, ctn_comm_free, ctn_dist_optim
    public :: ctn_input, ctn_reshape, ctn_call, ctn_mean_squared_error, ctn_keep
    public :: ctn_backward, ctn_optim_step, ctn_item, ctn_dim, ctn_values, ctn_weights_save

    ! st = ctn_comm_from_mpi(c, comm): make a Catena communicator from one of the program's.
    ! Collective over comm.
    interface ctn_comm_from_mpi
        module procedure comm_from_integer
    end interface

    ! t = ctn_input(ctx, a): the program's array as a tensor, without a copy. The array is
    ! real(4) or real(8), which is converted to real(4) when the step runs, and has 1 to 4
    ! dimensions; slices are allowed. The fastest-varying index is the first in Fortran and the
    ! last in Catena, so a(nx,ny,n) is the tensor (n,ny,nx). With ndim=4 a field a(nx,ny) is
    ! (1,1,ny,nx), the shape that convolutions need. The array must have the target attribute,
    ! must not be an expression, and must stay unchanged until the scope ends.
    interface ctn_input
        module procedure input_r4_1, input_r4_2, input_r4_3, input_r4_4
        module procedure input_r8_1, input_r8_2, input_r8_3, input_r8_4
    end interface

    integer(c_int), parameter :: F32 = 1, F64 = 2 ! ctn_dtype
    ! Error messages show this instead of a source line.
    character(kind=c_char), target, save :: &
        here(8) = ['F', 'o', 'r', 't', 'r', 'a', 'n', c_null_char]

    ! Option structs stop after the last field that is used here; struct_size tells the library.
    type, bind(C) :: context_opt
        integer(c_size_t) :: struct_size
        integer(c_int) :: threads
        integer(c_int64_t) :: seed
    end type
    type, bind(C) :: adam_opt
        integer(c_size_t) :: struct_size
        real(c_double) :: lr
    end type
    type, bind(C) :: ctn_vars
        integer(c_int) :: n
        type(c_ptr) :: var, name
    end type

    ! ---- C functions that Fortran can call directly --------------------------------------------
    interface
        subroutine ctn_error_clear() bind(C)
        end subroutine
        subroutine ctn_context_free(ctx) bind(C)
            import :: ctn_context
            type(ctn_context), value :: ctx
        end subroutine
        function ctn_scope_begin(ctx) bind(C) result(st)
            import :: ctn_context, c_int
            type(ctn_context), value :: ctx
            integer(c_int) :: st
        end function
        function ctn_scope_end(ctx) bind(C) result(st) ! tensors are gone after the outermost one
            import :: ctn_context, c_int
            type(ctn_context), value :: ctx
            integer(c_int) :: st
        end function
        subroutine ctn_module_free(m) bind(C) ! with its children; after the optimizer
            import :: ctn_module
            type(ctn_module), value :: m
        end subroutine
        subroutine ctn_optim_free(o) bind(C)
            import :: ctn_optim
            type(ctn_optim), value :: o
        end subroutine
        function ctn_optim_lr(o) bind(C) result(lr)
            import :: ctn_optim, c_double
            type(ctn_optim), value :: o
            real(c_double) :: lr
        end function
        subroutine ctn_comm_free(c) bind(C) ! collective; after the optimizer, before MPI_Finalize
            import :: ctn_comm
            type(ctn_comm), value :: c
        end subroutine
        function ctn_comm_rank(c) bind(C) result(n)
            import :: ctn_comm, c_int
            type(ctn_comm), value :: c
            integer(c_int) :: n
        end function
        function ctn_comm_size(c) bind(C) result(n)
            import :: ctn_comm, c_int
            type(ctn_comm), value :: c
            integer(c_int) :: n
        end function
        function ctn_keep(t) bind(C) result(same) ! so that it can be read after the step
            import :: ctn_tensor
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: same
        end function
        function ctn_item(t) bind(C) result(value) ! the only element; NaN on error
            import :: ctn_tensor, c_double
            type(ctn_tensor), value :: t
            real(c_double) :: value
        end function
        function ctn_dim(t, axis) bind(C) result(n) ! axes count from 0, or from the end: -1
            import :: ctn_tensor, c_int, c_int64_t
            type(ctn_tensor), value :: t
            integer(c_int), value :: axis
            integer(c_int64_t) :: n
        end function
    end interface

    ! ---- C functions that the functions below call ---------------------------------------------
    interface
        function c_error_message() bind(C, name='ctn_error_message') result(s)
            import :: c_ptr
            type(c_ptr) :: s
        end function
        function c_strlen(s) bind(C, name='strlen') result(n)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: s
            integer(c_size_t) :: n
        end function
        function c_context_new(ctx, opt) bind(C, name='ctn_context_new') result(st)
            import :: ctn_context, context_opt, c_int
            type(ctn_context), intent(out) :: ctx
            type(context_opt), intent(in) :: opt
            integer(c_int) :: st
        end function
        function c_linear_new(m, ctx, in, out, opt) bind(C, name='ctn_linear_new') result(st)
            import :: ctn_module, ctn_context, c_int64_t, c_ptr, c_int
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in, out
            type(c_ptr), value :: opt
            integer(c_int) :: st
        end function
        function c_conv_new(m, ctx, in, out, spatial, kernel, opt) &
                bind(C, name='ctn_conv_new') result(st)
            import :: ctn_module, ctn_context, c_int64_t, c_ptr, c_int
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in, out
            integer(c_int), value :: spatial
            integer(c_int64_t), intent(in) :: kernel(*)
            type(c_ptr), value :: opt
            integer(c_int) :: st
        end function
        function c_activation_new(m, ctx, op) bind(C, name='ctn_activation_new') result(st)
            import :: ctn_module, ctn_context, c_funptr, c_int
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(c_funptr), value :: op
            integer(c_int) :: st
        end function
        function c_relu(at, x) bind(C, name='ctn_relu_at') result(y)
            import :: c_ptr
            type(c_ptr), value :: at, x
            type(c_ptr) :: y
        end function
        function c_tanh(at, x) bind(C, name='ctn_tanh_at') result(y)
            import :: c_ptr
            type(c_ptr), value :: at, x
            type(c_ptr) :: y
        end function
        function c_sequential_new(m, ctx, n, parts) bind(C, name='ctn_sequential_new') result(st)
            import :: ctn_module, ctn_context, c_int
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int), value :: n
            type(ctn_module), intent(in) :: parts(*)
            integer(c_int) :: st
        end function
        function c_params(m) bind(C, name='ctn_params') result(vars)
            import :: ctn_module, ctn_vars
            type(ctn_module), value :: m
            type(ctn_vars) :: vars
        end function
        function c_adam_new(o, vars, opt) bind(C, name='ctn_adam_new') result(st)
            import :: ctn_optim, ctn_vars, adam_opt, c_int
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(adam_opt), intent(in) :: opt
            integer(c_int) :: st
        end function
        function c_comm_adopt_fortran(c, handle, opt) &
                bind(C, name='ctn_comm_adopt_fortran') result(st)
            import :: ctn_comm, c_ptr, c_int
            type(ctn_comm), intent(out) :: c
            integer(c_int), value :: handle
            type(c_ptr), value :: opt
            integer(c_int) :: st
        end function
        function c_dist_optim(o, c, opt) bind(C, name='ctn_dist_optim') result(st)
            import :: ctn_optim, ctn_comm, c_ptr, c_int
            type(ctn_optim), value :: o
            type(ctn_comm), value :: c
            type(c_ptr), value :: opt
            integer(c_int) :: st
        end function
        function c_input(at, ctx, data, dtype, ndim, dims, strides) &
                bind(C, name='ctn_input_strided_at') result(t)
            import :: ctn_context, ctn_tensor, c_ptr, c_int, c_int64_t
            type(c_ptr), value :: at, data
            type(ctn_context), value :: ctx
            integer(c_int), value :: dtype, ndim
            integer(c_int64_t), intent(in) :: dims(*), strides(*)
            type(ctn_tensor) :: t
        end function
        function c_cast(at, x, dtype) bind(C, name='ctn_cast_at') result(y)
            import :: ctn_tensor, c_ptr, c_int
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: dtype
            type(ctn_tensor) :: y
        end function
        function c_reshape(at, x, ndim, dims) bind(C, name='ctn_reshape_at') result(y)
            import :: ctn_tensor, c_ptr, c_int, c_int64_t
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: y
        end function
        function c_call(at, m, x) bind(C, name='ctn_call_at') result(y)
            import :: ctn_module, ctn_tensor, c_ptr
            type(c_ptr), value :: at
            type(ctn_module), value :: m
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: y
        end function
        function c_mean_squared_error(at, x, t, reduction) &
                bind(C, name='ctn_mean_squared_error_at') result(y)
            import :: ctn_tensor, c_ptr, c_int
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x, t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: y
        end function
        function c_backward(at, o, loss) bind(C, name='ctn_backward_at') result(st)
            import :: ctn_optim, ctn_tensor, c_ptr, c_int
            type(c_ptr), value :: at
            type(ctn_optim), value :: o
            type(ctn_tensor), value :: loss
            integer(c_int) :: st
        end function
        function c_optim_step(at, o) bind(C, name='ctn_optim_step_at') result(st)
            import :: ctn_optim, c_ptr, c_int
            type(c_ptr), value :: at
            type(ctn_optim), value :: o
            integer(c_int) :: st
        end function
        function c_count(t) bind(C, name='ctn_count') result(n)
            import :: ctn_tensor, c_int64_t
            type(ctn_tensor), value :: t
            integer(c_int64_t) :: n
        end function
        function c_read(t, values, bytes) bind(C, name='ctn_read') result(st)
            import :: ctn_tensor, c_float, c_size_t, c_int
            type(ctn_tensor), value :: t
            real(c_float), intent(out) :: values(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: st
        end function
        function c_weights_save(m, path) bind(C, name='ctn_weights_save') result(st)
            import :: ctn_module, c_char, c_int
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: st
        end function
    end interface

contains

    ! The first error since ctn_error_clear, '' if there is none.
    function ctn_error_message() result(text)
        character(:), allocatable :: text
        character(kind=c_char), pointer :: s(:)
        type(c_ptr) :: p
        integer :: i
        p = c_error_message()
        call c_f_pointer(p, s, [c_strlen(p)])
        allocate (character(size(s)) :: text)
        do i = 1, size(s)
            text(i:i) = s(i)
        end do
    end function

    ! threads 0: from CATENA_THREADS, else OMP_NUM_THREADS, else physical cores.
    function ctn_context_new(ctx, seed, threads) result(st)
        type(ctn_context), intent(out) :: ctx
        integer, intent(in), optional :: seed, threads
        integer(c_int) :: st
        type(context_opt) :: opt
        opt = context_opt(c_sizeof(opt), 0, 0)
        if (present(seed)) opt%seed = seed
        if (present(threads)) opt%threads = threads
        st = c_context_new(ctx, opt)
    end function

    function ctn_linear_new(m, ctx, in, out) result(st)
        type(ctn_module), intent(out) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in, out
        integer(c_int) :: st
        st = c_linear_new(m, ctx, int(in, c_int64_t), int(out, c_int64_t), c_null_ptr)
    end function

    ! Convolution without padding. kernel is in Catena's order: [ky, kx] for (n,channels,ny,nx).
    function ctn_conv_new(m, ctx, in, out, kernel) result(st)
        type(ctn_module), intent(out) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in, out, kernel(:)
        integer(c_int) :: st
        st = c_conv_new(m, ctx, int(in, c_int64_t), int(out, c_int64_t), size(kernel), &
                        int(kernel, c_int64_t), c_null_ptr)
    end function

    ! name: 'relu' or 'tanh'
    function ctn_activation_new(m, ctx, name) result(st)
        type(ctn_module), intent(out) :: m
        type(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: name
        integer(c_int) :: st
        type(c_funptr) :: op
        op = c_null_funptr
        if (name == 'relu') op = c_funloc(c_relu)
        if (name == 'tanh') op = c_funloc(c_tanh)
        st = c_activation_new(m, ctx, op)
    end function

    ! On success m owns the parts.
    function ctn_sequential_new(m, ctx, parts) result(st)
        type(ctn_module), intent(out) :: m
        type(ctn_context), intent(in) :: ctx
        type(ctn_module), intent(in) :: parts(:)
        integer(c_int) :: st
        st = c_sequential_new(m, ctx, size(parts), parts)
    end function

    ! Adam for all parameters of m.
    function ctn_adam_new(o, m, lr) result(st)
        type(ctn_optim), intent(out) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        integer(c_int) :: st
        type(adam_opt) :: opt
        opt = adam_opt(c_sizeof(opt), 0)
        if (present(lr)) opt%lr = lr
        st = c_adam_new(o, c_params(m), opt)
    end function

    function comm_from_integer(c, comm) result(st)
        type(ctn_comm), intent(out) :: c
        integer, intent(in) :: comm
        integer(c_int) :: st
        st = c_comm_adopt_fortran(c, int(comm, c_int), c_null_ptr)
    end function

    function ctn_dist_optim(o, c) result(st)
        type(ctn_optim), intent(in) :: o
        type(ctn_comm), intent(in) :: c
        integer(c_int) :: st
        st = c_dist_optim(o, c, c_null_ptr)
    end function

    ! dims is in Catena's order; one dimension may be -1.
    function ctn_reshape(x, dims) result(y)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: dims(:)
        type(ctn_tensor) :: y
        y = c_reshape(c_loc(here), x, size(dims), int(dims, c_int64_t))
    end function

    function ctn_call(m, x) result(y)
        type(ctn_module), intent(in) :: m
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor) :: y
        y = c_call(c_loc(here), m, x)
    end function

    function ctn_mean_squared_error(x, t, reduction) result(y)
        type(ctn_tensor), intent(in) :: x, t
        integer(c_int), intent(in) :: reduction
        type(ctn_tensor) :: y
        y = c_mean_squared_error(c_loc(here), x, t, reduction)
    end function

    function ctn_backward(o, loss) result(st)
        type(ctn_optim), intent(in) :: o
        type(ctn_tensor), intent(in) :: loss
        integer(c_int) :: st
        st = c_backward(c_loc(here), o, loss)
    end function

    function ctn_optim_step(o) result(st)
        type(ctn_optim), intent(in) :: o
        integer(c_int) :: st
        st = c_optim_step(c_loc(here), o)
    end function

    ! All elements in memory order; an empty array on error. a = reshape(ctn_values(t), shape(a))
    ! fills a(nx,ny), real(4) or real(8), from the tensor (ny,nx).
    function ctn_values(t) result(values)
        type(ctn_tensor), intent(in) :: t
        real(c_float), allocatable :: values(:)
        allocate (values(max(c_count(t), 0_c_int64_t)))
        if (c_read(t, values, int(4 * size(values, kind=c_int64_t), c_size_t)) < 0) &
            values = [real(c_float) ::]
    end function

    function ctn_weights_save(m, path) result(st)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: path
        integer(c_int) :: st
        st = c_weights_save(m, trim(path)//c_null_char)
    end function

    ! ---- arrays of the program -----------------------------------------------------------------

    ! first: address of the array; second(d): address of its second element along dimension d, or
    ! first if there is none.
    function leaf(ctx, dtype, dims, first, second, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        integer(c_intptr_t), intent(in) :: first, second(:)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer(c_int64_t), allocatable :: all_dims(:), strides(:)
        integer :: n
        n = size(dims)
        if (present(ndim)) n = max(n, ndim)
        allocate (all_dims(n), source=1_c_int64_t)
        allocate (strides(n), source=0_c_int64_t)
        all_dims(n:n - size(dims) + 1:-1) = dims
        strides(n:n - size(dims) + 1:-1) = (second - first) / merge(4, 8, dtype == F32)
        t = c_input(c_loc(here), ctx, transfer(first, c_null_ptr), dtype, n, all_dims, strides)
        if (dtype /= F32) t = c_cast(c_loc(here), t, F32)
    end function

    function place4(x) result(n)
        real(c_float), intent(in), target :: x
        integer(c_intptr_t) :: n
        n = transfer(c_loc(x), n)
    end function

    function place8(x) result(n)
        real(c_double), intent(in), target :: x
        integer(c_intptr_t) :: n
        n = transfer(c_loc(x), n)
    end function

    function input_r4_1(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(1)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F32, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F32, shape(a), place4(a(1)), &
                     [place4(a(n(1)))], ndim)
        end if
    end function

    function input_r4_2(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:, :)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(2)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F32, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F32, shape(a), place4(a(1, 1)), &
                     [place4(a(n(1), 1)), place4(a(1, n(2)))], ndim)
        end if
    end function

    function input_r4_3(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:, :, :)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(3)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F32, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F32, shape(a), place4(a(1, 1, 1)), &
                     [place4(a(n(1), 1, 1)), place4(a(1, n(2), 1)), place4(a(1, 1, n(3)))], ndim)
        end if
    end function

    function input_r4_4(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_float), intent(in), target :: a(:, :, :, :)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(4)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F32, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F32, shape(a), place4(a(1, 1, 1, 1)), &
                     [place4(a(n(1), 1, 1, 1)), place4(a(1, n(2), 1, 1)), &
                      place4(a(1, 1, n(3), 1)), place4(a(1, 1, 1, n(4)))], ndim)
        end if
    end function

    function input_r8_1(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(1)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F64, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F64, shape(a), place8(a(1)), &
                     [place8(a(n(1)))], ndim)
        end if
    end function

    function input_r8_2(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:, :)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(2)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F64, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F64, shape(a), place8(a(1, 1)), &
                     [place8(a(n(1), 1)), place8(a(1, n(2)))], ndim)
        end if
    end function

    function input_r8_3(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:, :, :)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(3)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F64, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F64, shape(a), place8(a(1, 1, 1)), &
                     [place8(a(n(1), 1, 1)), place8(a(1, n(2), 1)), place8(a(1, 1, n(3)))], ndim)
        end if
    end function

    function input_r8_4(ctx, a, ndim) result(t)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in), target :: a(:, :, :, :)
        integer, intent(in), optional :: ndim
        type(ctn_tensor) :: t
        integer :: n(4)
        n = min(shape(a), 2)
        if (any(n == 0)) then
            t = leaf(ctx, F64, shape(a), 0_c_intptr_t, 0_c_intptr_t * n, ndim)
        else
            t = leaf(ctx, F64, shape(a), place8(a(1, 1, 1, 1)), &
                     [place8(a(n(1), 1, 1, 1)), place8(a(1, n(2), 1, 1)), &
                      place8(a(1, 1, n(3), 1)), place8(a(1, 1, 1, n(4)))], ndim)
        end if
    end function
end module
