! SPDX-License-Identifier: Apache-2.0
!
! Catena for Fortran programs: the part of the C library that is needed to train a surrogate inside
! a solver. Compile it with the program's own compiler, after catena_c.f90, which has the interfaces
! of all C functions. It does not use MPI itself; catena_f08.f90 adds the communicators of mpi_f08.
!
! Names and order of arguments are those of the C headers; optional arguments come last. Actions
! return a status: less than 0 is an error, and ctn_error_message() returns its text. A tensor
! computed from a failed tensor is in error too, which ctn_backward reports. Fortran's a(nx,ny) is
! Catena's (ny,nx): see ctn_input.
module catena
    use, intrinsic :: iso_c_binding
    use catena_c, only: CTN_OK, CTN_MEAN, CTN_SUM, F32 => CTN_F32, F64 => CTN_F64, &
        ctn_context, ctn_module, ctn_optim, ctn_comm, ctn_tensor, &
        context_opt => ctn_context_opt, adam_opt => ctn_adam_opt, &
        ctn_error_clear, ctn_context_free, ctn_scope_begin, ctn_scope_end, ctn_module_free, &
        ctn_optim_free, ctn_optim_lr, ctn_comm_free, ctn_comm_rank, ctn_comm_size, ctn_keep, &
        ctn_item, ctn_dim, &
        c_error_message => ctn_error_message, c_context_new => ctn_context_new, &
        c_linear_new => ctn_linear_new, c_conv_new => ctn_conv_new, &
        c_activation_new => ctn_activation_new, c_relu => ctn_relu_at, c_tanh => ctn_tanh_at, &
        c_sequential_new => ctn_sequential_new, c_params => ctn_params, &
        c_adam_new => ctn_adam_new, c_comm_adopt_fortran => ctn_comm_adopt_fortran, &
        c_dist_optim => ctn_dist_optim, c_input => ctn_input_strided_at, c_cast => ctn_cast_at, &
        c_reshape => ctn_reshape_at, c_call => ctn_call_at, &
        c_mean_squared_error => ctn_mean_squared_error_at, c_backward => ctn_backward_at, &
        c_optim_step => ctn_optim_step_at, c_count => ctn_count, c_read => ctn_read, &
        c_weights_save => ctn_weights_save
    implicit none
    private

    public :: CTN_OK, CTN_MEAN, CTN_SUM ! the last two: reductions of a loss
    public :: ctn_context, ctn_module, ctn_optim, ctn_comm, ctn_tensor ! handles

    public :: ctn_error_message, ctn_error_clear
    public :: ctn_context_new, ctn_context_free, ctn_scope_begin, ctn_scope_end
    public :: ctn_linear_new, ctn_conv_new, ctn_activation_new, ctn_sequential_new, ctn_module_free
    public :: ctn_adam_new, ctn_optim_free, ctn_optim_lr
    public :: ctn_comm_from_mpi, ctn_comm_rank, ctn_comm_size, ctn_comm_free, ctn_dist_optim
    public :: ctn_input, ctn_reshape, ctn_call, ctn_mean_squared_error, ctn_keep
    public :: ctn_backward, ctn_optim_step, ctn_item, ctn_dim, ctn_values, ctn_weights_save

    ! Functions that are easier to call than those of C with the same names. The specific names
    ! differ because gfortran compares a procedure with the C function of its name.
    interface ctn_error_message
        module procedure error_message
    end interface
    interface ctn_context_new
        module procedure context_new
    end interface
    interface ctn_linear_new
        module procedure linear_new
    end interface
    interface ctn_conv_new
        module procedure conv_new
    end interface
    interface ctn_activation_new
        module procedure activation_new
    end interface
    interface ctn_sequential_new
        module procedure sequential_new
    end interface
    interface ctn_adam_new
        module procedure adam_new
    end interface
    interface ctn_dist_optim
        module procedure dist_optim
    end interface
    interface ctn_weights_save
        module procedure weights_save
    end interface

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

    ! Error messages show this instead of a source line.
    character(kind=c_char), target, save :: &
        here(8) = ['F', 'o', 'r', 't', 'r', 'a', 'n', c_null_char]

    interface
        function c_strlen(s) bind(C, name='strlen') result(n)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: s
            integer(c_size_t) :: n
        end function
    end interface

contains

    ! The first error since ctn_error_clear, '' if there is none.
    function error_message() result(text)
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
    function context_new(ctx, seed, threads) result(st)
        type(ctn_context), intent(out) :: ctx
        integer, intent(in), optional :: seed, threads
        integer(c_int) :: st
        type(context_opt) :: opt
        if (present(seed)) opt%seed = seed
        if (present(threads)) opt%threads = threads
        st = c_context_new(ctx, opt)
    end function

    function linear_new(m, ctx, in, out) result(st)
        type(ctn_module), intent(out) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in, out
        integer(c_int) :: st
        st = c_linear_new(m, ctx, int(in, c_int64_t), int(out, c_int64_t))
    end function

    ! Convolution without padding. kernel is in Catena's order: [ky, kx] for (n,channels,ny,nx).
    function conv_new(m, ctx, in, out, kernel) result(st)
        type(ctn_module), intent(out) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in, out, kernel(:)
        integer(c_int) :: st
        st = c_conv_new(m, ctx, int(in, c_int64_t), int(out, c_int64_t), size(kernel), &
                        int(kernel, c_int64_t))
    end function

    ! name: 'relu' or 'tanh'
    function activation_new(m, ctx, name) result(st)
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
    function sequential_new(m, ctx, parts) result(st)
        type(ctn_module), intent(out) :: m
        type(ctn_context), intent(in) :: ctx
        type(ctn_module), intent(in) :: parts(:)
        integer(c_int) :: st
        st = c_sequential_new(m, ctx, size(parts), parts)
    end function

    ! Adam for all parameters of m.
    function adam_new(o, m, lr) result(st)
        type(ctn_optim), intent(out) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        integer(c_int) :: st
        type(adam_opt) :: opt
        if (present(lr)) opt%lr = lr
        st = c_adam_new(o, c_params(m), opt)
    end function

    function comm_from_integer(c, comm) result(st)
        type(ctn_comm), intent(out) :: c
        integer, intent(in) :: comm
        integer(c_int) :: st
        st = c_comm_adopt_fortran(c, int(comm, c_int))
    end function

    function dist_optim(o, c) result(st)
        type(ctn_optim), intent(in) :: o
        type(ctn_comm), intent(in) :: c
        integer(c_int) :: st
        st = c_dist_optim(o, c)
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

    function weights_save(m, path) result(st)
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
