! SPDX-License-Identifier: Apache-2.0
!
! Ops with optional arguments, operators, several results, and errors of ops.
program test_ops
    use support
    use, intrinsic :: iso_c_binding
    implicit none
    type(ctn_context) :: ctx
    call ctn_context_new(ctx, threads=1)
    call arithmetic()
    call options()
    call several()
    call lengths()
    call errors()
    call finish('test_ops')

contains

    subroutine arithmetic()
        real(4), target :: a(3) = [1., 2., 4.], b(3) = [8., 4., 2.]
        real(4) :: y(3)
        type(ctn_tensor) :: p, q
        call ctn_scope_begin(ctx)
        p = ctn_input(ctx, a)
        q = ctn_input(ctx, b)
        call ctn_read((p + q) * p - q / p, y)
        call check(all(near(y, (a + b) * a - b / a)), 'operators of two tensors')
        call ctn_read(2d0 - (-p) * 3d0 + 1d0 - 4d0 / p, y)
        call check(all(near(y, 2 + 3 * a + 1 - 4 / a)), 'operators with numbers on the left')
        call ctn_read((p - 1d0) / 4d0 + 5d0, y)
        call check(all(near(y, (a - 1) / 4 + 5)), 'operators with numbers on the right')
        call ctn_read(ctn_exp(ctn_log(p)), y)
        call check(all(near(y, a)), 'functions')
        call ctn_scope_end(ctx)
    end subroutine

    elemental logical function near(x, y)
        real(4), intent(in) :: x, y
        near = abs(x - y) < 1e-5 * (1 + abs(y))
    end function

    subroutine options()
        real(4), target :: a(4, 2), w(3, 1, 1)
        real(4) :: rows(2), y(4, 1, 2), last(2, 2)
        real(4), target :: x(4, 1, 2)
        type(ctn_tensor) :: t
        a = reshape([1., 2., 3., 4., 5., 6., 7., 8.], [4, 2])
        x = reshape(a, [4, 1, 2])
        w = 1
        call ctn_scope_begin(ctx)
        t = ctn_input(ctx, a)
        call check(near(real(ctn_item(ctn_sum(t))), 36.), 'sum of all')
        call ctn_read(ctn_sum(t, axes=[1]), rows)
        call check(all(near(rows, [10., 26.])), 'sum over the last axis')
        call check(ctn_ndim(ctn_sum(t, axes=[1], keep=1)) == 2, 'keep')
        call ctn_read(ctn_conv(ctn_input(ctx, x), ctn_input(ctx, w), pad=[1]), y)
        call check(all(near(y(:, 1, 1), [3., 6., 9., 7.])), 'pad')
        call ctn_read(ctn_slice(t, axis=-1, start=-2, length=2), last)
        call check(all(near(last(:, 2), [7., 8.])), 'slice')
        call ctn_read(ctn_matmul(t, t, trans_b=1), last)
        call check(all(near(last, matmul(transpose(a), a))), 'matmul')
        call ctn_scope_end(ctx)
    end subroutine

    subroutine several()
        real(4), target :: a(4) = [3., 1., 4., 2.]
        integer(8) :: places(2)
        real(4) :: largest(2), g(4)
        type(ctn_tensor) :: t, values, indices, part(2), gradient(1)
        call ctn_scope_begin(ctx)
        t = ctn_with_grad(ctn_input(ctx, a))
        call ctn_topk(t, 2, -1, values=values, indices=indices)
        call ctn_read(values, largest)
        call ctn_read(indices, places)
        call check(all(near(largest, [4., 3.])) .and. all(places == [2, 0]), 'topk')
        call ctn_split(t, 0, [1, 3], part)
        call check(ctn_dim(part(2), 0) == 3, 'split')
        call check(ctn_dim(ctn_concat([part, part], 0), 0) == 8, 'concat')
        call ctn_grad(ctn_sum(ctn_square(t)), [t], gradient)
        call ctn_read(gradient(1), g)
        call check(all(near(g, 2 * a)), 'gradient')
        call ctn_scope_end(ctx)
    end subroutine

    ! What the library takes to be of one length must be.
    subroutine lengths()
        real(4), target :: a(3, 2)
        type(ctn_tensor) :: x, t, parts(1)
        character(300) :: message
        integer :: st
        a = 1
        call ctn_scope_begin(ctx)
        x = ctn_input(ctx, a)
        t = ctn_pad(x, 0d0, before=[0, 1])
        call check(ctn_dim(t, 1) == 4, 'pad')
        message = ''
        t = ctn_pad(x, 0d0, before=[1], stat=st, errmsg=message)
        call check(st == CTN_ESHAPE .and. index(message, 'pad: before has 1 elements, '// &
                   'expected 2, one per dimension of x') > 0, 'pad before: '//trim(message))
        t = ctn_pad(x, 0d0, after=[1, 1, 1], stat=st)
        call check(st == CTN_ESHAPE, 'pad after')
        t = ctn_pad_by(x, CTN_PAD_REPLICATE, before=[1], stat=st)
        call check(st == CTN_ESHAPE, 'pad_by')
        t = ctn_tensordot(x, x, [0, 1], [0], stat=st, errmsg=message)
        call check(st == CTN_ESHAPE .and. index(message, 'axes_b has 1 elements') > 0, 'tensordot')
        t = ctn_as_strided(x, [2, 2], [1], 0, stat=st)
        call check(st == CTN_ESHAPE, 'as_strided')
        call ctn_split(x, 0, [1, 1], parts, stat=st)
        call check(st == CTN_ESHAPE, 'split')
        call ctn_grad(x, [x, x], parts, stat=st)
        call check(st == CTN_ESHAPE, 'grad')
        t = ctn_avg_pool(x, kernel=[1, 2, 3, 4, 5, 6, 7, 8, 9], stat=st, errmsg=message)
        call check(st == CTN_ESHAPE .and. index(message, 'kernel has 9 elements, '// &
                   'expected at most') > 0, 'an option: '//trim(message))
        call ctn_scope_end(ctx)
        ! Without stat, the next action reports it.
        call ctn_scope_begin(ctx)
        t = ctn_relu(ctn_pad(ctn_input(ctx, a), 0d0, before=[1]))
        call ctn_read(t, a, stat=st, errmsg=message)
        call check(st < 0 .and. index(message, 'pad: before has 1') > 0, 'read: '//trim(message))
        call ctn_scope_end(ctx, stat=st)
        call ctn_error_clear()
    end subroutine

    subroutine errors()
        real(4), target :: a(4) = 0, b(3) = 0
        character(200) :: message
        type(ctn_tensor) :: t
        integer :: st
        message = ''
        call ctn_scope_begin(ctx)
        t = ctn_add(ctn_input(ctx, a), ctn_input(ctx, b), stat=st, errmsg=message)
        call check(st == CTN_ESHAPE, 'status of an op')
        call check(index(message, '(4)') > 0 .and. index(message, '(3)') > 0, 'message of an op')
        call ctn_error_clear()
        t = ctn_relu(ctn_input(ctx, a) + ctn_input(ctx, b)) ! reported by the next action
        call ctn_read(t, a, stat=st, errmsg=message)
        call check(st < 0 .and. index(message, '(3)') > 0, 'the error of an operator')
        call ctn_scope_end(ctx, stat=st)
        call ctn_error_clear()
    end subroutine
end program
