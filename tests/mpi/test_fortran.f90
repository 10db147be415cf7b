! SPDX-License-Identifier: Apache-2.0
!
! The Fortran module catena alone, with an integer communicator: arrays of both kinds with 1 to 4
! dimensions, slices, the order of dimensions, errors as text, and a fit on all ranks.
! Run by test_insitu.sh. Exit code 0 means success.
program test_fortran
    use catena
    use mpi
    implicit none
    type(ctn_context) :: ctx
    type(ctn_comm) :: c
    integer :: rank, ranks, error, failures = 0
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    call ctn_context_new(ctx, seed=7, threads=1)
    call ctn_comm_from_mpi(c, MPI_COMM_WORLD)
    call check(ctn_comm_rank(c) == rank .and. ctn_comm_size(c) == ranks, 'rank and size')
    call arrays()
    call errors()
    call fit()
    call ctn_comm_free(c)
    call ctn_context_free(ctx)
    call check(ctn_error_message() == '', 'no error is left')
    call MPI_Finalize(error)
    if (failures > 0) stop 1
    if (rank == 0) write (*, '(a)') 'test_fortran: ok'

contains

    subroutine check(good, what)
        logical, intent(in) :: good
        character(*), intent(in) :: what
        if (good) return
        failures = failures + 1
        write (*, '(4a)') 'test_fortran: ', what, ': ', ctn_error_message()
    end subroutine

    subroutine expect(t, values, dims, what)
        type(ctn_tensor), intent(in) :: t
        real(4), intent(in) :: values(:)
        integer, intent(in) :: dims(:) ! Fortran's order
        character(*), intent(in) :: what
        real(4), allocatable :: got(:)
        integer :: i
        got = ctn_values(t)
        call check(size(got) == size(values), what//': size')
        if (size(got) == size(values)) call check(all(got == values), what//': values')
        do i = 1, size(dims)
            call check(ctn_dim(t, size(dims) - i) == dims(i), what//': dimension')
        end do
    end subroutine

    subroutine arrays()
        real(4), target :: a(4, 3, 2, 5)
        real(8), target :: b(4, 3, 2, 5)
        integer :: i
        a = reshape([(real(i), i=1, size(a))], shape(a))
        b = a + 0.1d0 ! not exact in real(4)
        call ctn_scope_begin(ctx)
        call expect(ctn_input(ctx, a), reshape(a, [size(a)]), [4, 3, 2, 5], 'real(4), 4')
        call expect(ctn_input(ctx, a(:, :, :, 2)), reshape(a(:, :, :, 2), [24]), [4, 3, 2], &
                    'real(4), 3')
        call expect(ctn_input(ctx, a(:, :, 1, 2)), reshape(a(:, :, 1, 2), [12]), [4, 3], &
                    'real(4), 2')
        call expect(ctn_input(ctx, a(:, 1, 1, 2)), a(:, 1, 1, 2), [4], 'real(4), 1')
        call expect(ctn_input(ctx, b), real(reshape(b, [size(b)]), 4), [4, 3, 2, 5], 'real(8), 4')
        call expect(ctn_input(ctx, b(:, :, 2, :)), real(reshape(b(:, :, 2, :), [60]), 4), &
                    [4, 3, 5], 'real(8), 3')
        call expect(ctn_input(ctx, b(2:3, 1, 1, ::2)), real(reshape(b(2:3, 1, 1, ::2), [6]), 4), &
                    [2, 3], 'real(8), 2')
        call expect(ctn_input(ctx, b(4:1:-1, 3, 1, 1)), real(b(4:1:-1, 3, 1, 1), 4), [4], &
                    'backwards')
        call expect(ctn_input(ctx, a(2:2, 3:3, :, 1)), a(2, 3, :, 1), [1, 1, 2], 'single elements')
        call expect(ctn_reshape(ctn_input(ctx, a(:, :, 1, 1)), [2, 6]), &
                    reshape(a(:, :, 1, 1), [12]), [6, 2], 'reshape')
        call expect(ctn_input(ctx, b(2:3, :, 1, 1), ndim=4), &
                    real(reshape(b(2:3, :, 1, 1), [6]), 4), [2, 3, 1, 1], 'ndim')
        call check(ctn_dim(ctn_input(ctx, a(:, 1:0, 1, 1)), 0) == 0, 'no elements')
        call ctn_scope_end(ctx)
    end subroutine

    subroutine errors()
        type(ctn_module) :: m
        type(ctn_optim) :: o
        real(4), target :: x(2, 3) = 0, y(5) = 0
        type(ctn_tensor) :: loss
        call ctn_activation_new(m, ctx, 'sine', stat=error)
        call check(error < 0, 'unknown activation')
        call check(ctn_error_message() /= '', 'a message about it')
        call ctn_error_clear()
        call ctn_linear_new(m, ctx, 2, 1)
        call ctn_adam_new(o, m)
        call check(ctn_optim_lr(o) == 1d-3, 'default rate')
        call ctn_scope_begin(ctx)
        loss = ctn_mean_squared_error(ctn_call(m, ctn_input(ctx, x)), ctn_input(ctx, y))
        call ctn_backward(o, loss, stat=error)
        call check(error < 0, 'shapes that do not fit')
        call check(index(ctn_error_message(), '(3,1)') > 0, 'the message names the shape')
        call ctn_scope_end(ctx, stat=error)
        call ctn_error_clear()
        call ctn_optim_free(o)
        call ctn_module_free(m)
    end subroutine

    ! Fits y = 2 p - q + 1 to points that differ between ranks. All ranks end with the same network.
    subroutine fit()
        type(ctn_module) :: m
        type(ctn_optim) :: o
        type(ctn_tensor) :: loss
        real(8), target :: x(2, 32), y(1, 32)
        real(8) :: last, answer(1), least(1), most(1)
        integer :: step, i
        call ctn_linear_new(m, ctx, 2, 1)
        call ctn_adam_new(o, m, lr=0.05d0)
        call check(ctn_optim_lr(o) == 0.05d0, 'rate')
        call ctn_dist_optim(o, c)
        do step = 1, 400
            do i = 1, 32
                x(:, i) = [sin(0.7d0 * i * step + rank), cos(1.3d0 * i + step * (rank + 1))]
            end do
            y(1, :) = 2 * x(1, :) - x(2, :) + 1
            call ctn_scope_begin(ctx)
            loss = ctn_mean_squared_error(ctn_call(m, ctn_input(ctx, x)), ctn_input(ctx, y))
            call ctn_backward(o, loss)
            call ctn_optim_step(o)
            last = ctn_item(loss)
            call ctn_scope_end(ctx)
        end do
        call check(last < 1d-4, 'the loss has fallen')
        x(:, 1) = [0.25d0, 0.5d0]
        call ctn_scope_begin(ctx)
        answer = ctn_values(ctn_call(m, ctn_input(ctx, x(:, 1:1))))
        call ctn_scope_end(ctx)
        call check(abs(answer(1) - 1) < 0.02d0, 'the network answers')
        call MPI_Allreduce(answer, least, 1, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD, error)
        call MPI_Allreduce(answer, most, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD, error)
        call check(least(1) == most(1), 'all ranks have the same network')
        if (rank == 0) call ctn_weights_save(m, 'fit.safetensors')
        call ctn_optim_free(o)
        call ctn_module_free(m)
    end subroutine
end program
