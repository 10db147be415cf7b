! SPDX-License-Identifier: Apache-2.0
!
! Arrays of all kinds with 1 to 5 dimensions as tensors, without copies and as slices; results and
! variables in arrays of all kinds with 0 to 5 dimensions; conversions.
program test_arrays
    use support
    use, intrinsic :: iso_c_binding
    implicit none
    type(ctn_context) :: ctx
    call ctn_context_new(ctx, threads=1)
    call reals()
    call integers()
    call ranks()
    call late()
    call large()
    call lengths()
    call variables()
    call finish('test_arrays')

contains

    subroutine reals()
        real(4), target :: a(2, 3)
        real(8), target :: b(2, 3)
        real(4) :: y(2, 3)
        real(8) :: z(2, 3)
        a = reshape([1., 2., 3., 4., 5., 6.], [2, 3])
        b = a + 0.1d0
        call ctn_scope_begin(ctx)
        call ctn_read(ctn_input(ctx, a), y)
        call check(all(abs(y - a) < 1e-7), 'real(4) to real(4)')
        call ctn_read(ctn_input(ctx, a), z)
        call check(all(abs(z - a) < 1e-7), 'real(4) to real(8)')
        call check(ctn_dtype_of(ctn_input(ctx, b)) == CTN_F32, 'real(8) becomes f32')
        call ctn_read(ctn_input(ctx, b, dtype=CTN_F64), z)
        call check(all(abs(z - b) < 1d-15), 'real(8) as f64')
        call ctn_read(ctn_input(ctx, a(2:1:-1, ::2)), y(:, 1:2))
        call check(all(abs(y(:, 1:2) - a(2:1:-1, ::2)) < 1e-7), 'a slice, into a slice')
        call ctn_scope_end(ctx)
    end subroutine

    subroutine integers()
        integer(4), target :: a(3) = [1, -2, 3]
        integer(8), target :: b(3) = [4_8, 5_8, 2_8**40]
        integer(4) :: x(3)
        integer(8) :: y(3)
        type(ctn_tensor) :: t
        call ctn_scope_begin(ctx)
        t = ctn_input(ctx, a)
        call check(ctn_dtype_of(t) == CTN_I32, 'integer(4) is i32')
        call ctn_read(t, y)
        call check(all(y == a), 'i32 to integer(8)')
        call ctn_read(ctn_input(ctx, b), y)
        call check(all(y == b), 'i64 to integer(8)')
        call ctn_read(ctn_equal(t, t), x)
        call check(all(x == 1), 'bool to integer(4)')
        call ctn_scope_end(ctx)
    end subroutine

    subroutine ranks()
        real(4), target :: a(2, 3, 4, 5, 2)
        real(4) :: b(2, 3, 4, 5, 2), c(2, 3, 4, 5), s
        integer :: i
        a = reshape([(real(i), i=1, size(a))], shape(a))
        call ctn_scope_begin(ctx)
        call ctn_read(ctn_input(ctx, a), b)
        call check(all(abs(a - b) < 1e-7), 'rank 5')
        call check(ctn_dim(ctn_input(ctx, a), 0) == 2 .and. ctn_dim(ctn_input(ctx, a), 1) == 5, &
                   'order of dimensions')
        call ctn_read(ctn_input(ctx, a(:, :, :, :, 2)), c)
        call check(all(abs(a(:, :, :, :, 2) - c) < 1e-7), 'rank 4')
        call ctn_read(ctn_sum(ctn_input(ctx, a(:, 1, 1, 1, 1))), s)
        call check(abs(s - 3) < 1e-6, 'rank 0')
        call ctn_scope_end(ctx)
    end subroutine

    ! Nothing is copied: the step reads what the array holds when it runs.
    subroutine late()
        real(8), target :: a(4, 4) = 1
        type(ctn_tensor) :: t
        call ctn_scope_begin(ctx)
        t = ctn_sum(ctn_input(ctx, a(::2, :)))
        a(3, 2) = 5
        call check(abs(ctn_item(t) - 12) < 1e-6, 'no copy')
        call ctn_scope_end(ctx)
    end subroutine

    ! Extents above 2^31. Nothing reads the elements, which are not there.
    subroutine large()
        real(4), target :: memory(8)
        real(4), pointer, contiguous :: a(:, :)
        type(ctn_dataset) :: ds
        type(ctn_tensor) :: t
        integer(8), parameter :: n = 2_8**32 + 3
        call c_f_pointer(c_loc(memory), a, [1_8, n])
        call ctn_scope_begin(ctx)
        t = ctn_input(ctx, a)
        call check(ctn_dim(t, 0) == n, 'input')
        call ctn_scope_end(ctx)
        call ctn_arrays_open(ds, [ctn_array(a)])
        call check(ds%count() == n, 'samples')
    end subroutine

    ! Statistics of a dataset in arrays of different lengths.
    subroutine lengths()
        real(4), target :: a(2, 6)
        real(8) :: one(1), two(2)
        type(ctn_dataset) :: ds
        character(300) :: message
        integer :: st
        a = 1
        call ctn_arrays_open(ds, [ctn_array(a)])
        call ds%moments(0, two, two)
        message = ''
        call ds%moments(0, two, one, stat=st, errmsg=message)
        call check(st == CTN_ESHAPE .and. index(message, 'std has 1 elements, expected 2') > 0, &
                   'moments: '//trim(message))
    end subroutine

    subroutine variables()
        type(ctn_module) :: m
        type(ctn_var) :: v
        type(ctn_desc) :: desc
        real(8) :: w(3, 2), back(3, 2)
        real(4) :: short(3, 2)
        character(200) :: message
        integer :: st
        call ctn_linear_new(m, ctx, 3, 2)
        call ctn_module_find(m, 'weight', v)
        desc = v%desc()
        call check(desc%ndim == 2 .and. desc%dim(1) == 2 .and. desc%dim(2) == 3, 'shape')
        call check(v%name() == 'weight', 'name')
        w = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [3, 2])
        call ctn_var_set(v, w)
        call ctn_var_get(v, back)
        call ctn_var_get(v, short)
        call check(all(abs(w - back) < 1d-15) .and. all(abs(w - short) < 1d-15), 'set and get')
        message = ''
        call ctn_var_get(v, back(:, 1), stat=st, errmsg=message)
        call check(st == CTN_EARG .and. message /= '', 'an array that is too small')
        call ctn_module_find(m, 'nothing', v, stat=st, errmsg=message)
        call check(st == CTN_ENOTFOUND, 'no such variable')
        call ctn_error_clear()
    end subroutine
end program
