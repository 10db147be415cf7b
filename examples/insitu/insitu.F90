! SPDX-License-Identifier: Apache-2.0
!
! insitu.c in Fortran: a heat-equation solver under its own MPI that trains a surrogate while it
! runs.
!     mpirun -n 4 ./insitu [--no-train]
! The result, heat.bin, has the same bits with training, without training, without Catena
! (-DNO_CATENA), and from insitu.c.
#ifndef NO_CATENA
module surrogate
    use catena_f08
    use mpi_f08, only: MPI_Comm
    implicit none
    integer, parameter :: reach = 4, side = 2 * reach + 1, filters = 8
    type(ctn_context) :: ctx
    type(ctn_module) :: net
    type(ctn_optim) :: opt
    type(ctn_comm) :: group
contains
    logical function start(comm)
        type(MPI_Comm), intent(in) :: comm
        type(ctn_module) :: part(3)
        integer :: st(8)
        call ctn_context_new(ctx, seed=1, stat=st(1))
        call ctn_conv_new(part(1), ctx, 1, filters, [side, side], stat=st(2))
        call ctn_activation_new(part(2), ctx, 'relu', stat=st(3))
        call ctn_conv_new(part(3), ctx, filters, 1, [1, 1], stat=st(4))
        call ctn_sequential_new(net, ctx, part, stat=st(5))
        call ctn_adam_new(opt, net, lr=0.002d0, stat=st(6))
        call ctn_comm_from_mpi(group, comm, stat=st(7)) ! these two lines train ...
        call ctn_dist_optim(opt, group, stat=st(8))     ! ... one network on all ranks
        start = all(st == CTN_OK)
    end function

    ! The slab without edge cells on each side as a tensor (1,1,H,W): the solver's memory, no copy.
    function field(u, edge) result(t)
        real(8), intent(in), target :: u(:, :)
        integer, intent(in) :: edge
        type(ctn_tensor) :: t
        t = ctn_input(ctx, u(1 + edge:size(u, 1) - edge, 1 + edge:size(u, 2) - edge), ndim=4)
    end function

    ! Learn to predict the current field from the one ahead steps ago. Adds the squared error of the
    ! network to mean(1), and that of predicting "no change" to mean(2).
    logical function learn(old, u, mean)
        real(8), intent(in), target :: old(:, :), u(:, :)
        real(8), intent(inout) :: mean(2)
        type(ctn_tensor) :: y, loss, still
        integer :: st(5)
        st = CTN_OK
        call ctn_scope_begin(ctx, stat=st(1))
        y = field(u, reach)
        loss = ctn_mean_squared_error(ctn_call(net, field(old, 0)), y)
        still = ctn_keep(ctn_mean_squared_error(field(old, reach), y))
        call ctn_backward(opt, loss, stat=st(2))
        call opt%step(stat=st(3)) ! runs here
        learn = all(st(1:3) == CTN_OK)
        if (learn) mean = mean + [ctn_item(loss, stat=st(4)), ctn_item(still, stat=st(5))]
        call ctn_scope_end(ctx, stat=st(1))
        learn = learn .and. all(st == CTN_OK)
    end function
end module
#endif

program insitu
    use mpi_f08
    use, intrinsic :: iso_fortran_env, only: error_unit
#ifndef NO_CATENA
    use surrogate
#endif
    implicit none
    integer, parameter :: nx = 128, ny_all = 128, steps = 2000, ahead = 5, spark = 100, report = 400
    ! Columns 0 and ny+1 are halos or cold walls.
    real(8), allocatable, target :: u(:, :), next(:, :), old(:, :)
    integer :: level, rank, ranks, up, down, first, ny, t, i, j
    logical :: train
    real(8) :: sums(3) = 0, all(3) ! heat, and the two sums of learn
    character(16) :: argument
    type(MPI_Comm) :: comm ! the solver's own: one-dimensional, one slab per rank
    type(MPI_File) :: out
    call MPI_Init_thread(MPI_THREAD_FUNNELED, level)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.false.], .true., comm)
    call MPI_Comm_rank(comm, rank)
    call MPI_Cart_shift(comm, 0, 1, up, down)
    call get_command_argument(1, argument)
    train = argument /= '--no-train'
    if (rank == 0 .and. .not. train) write (*, '(a)') 'without training'
    first = ny_all * rank / ranks
    ny = ny_all * (rank + 1) / ranks - first
    allocate (u(nx, 0:ny + 1), next(nx, 0:ny + 1), old(nx, 0:ny + 1), source=0d0)
    do t = 0, steps
#ifndef NO_CATENA
        if (train .and. t == 0) then
            train = start(comm)
        else if (train .and. mod(t, ahead) == 0) then
            train = learn(old, u, sums(2:3))
        end if
        if (ctn_error_message() /= '') &
            write (error_unit, *) 'training stopped: ', ctn_error_message()
        call ctn_error_clear()
#endif
        if (t > 0 .and. mod(t, report) == 0) then
            do j = 1, ny
                do i = 1, nx
                    sums(1) = sums(1) + u(i, j)
                end do
            end do
            call MPI_Reduce(sums, all, 3, MPI_DOUBLE_PRECISION, MPI_SUM, 0, comm)
            if (rank == 0) write (*, '(a, i5, a, f13.6)', advance='no') 'step', t, '  heat', all(1)
            if (rank == 0 .and. all(3) > 0) write (*, '(a, es9.2, a, es9.2)', advance='no') &
                '  loss', all(2) * ahead / report / ranks, &
                '  baseline', all(3) * ahead / report / ranks
            if (rank == 0) write (*, *)
            sums = 0
        end if
        do j = 1, merge(ny, 0, mod(t, spark) == 0) ! hot squares every spark steps
            do i = 2, nx - 1
                if (mod((first + j) / 16 * 3 + (i - 1) / 16 * 7 + t, 13) == 0) u(i, j) = 1
            end do
        end do
        call MPI_Sendrecv(u(:, 1), nx, MPI_DOUBLE_PRECISION, up, 0, &
                          u(:, ny + 1), nx, MPI_DOUBLE_PRECISION, down, 0, comm, MPI_STATUS_IGNORE)
        call MPI_Sendrecv(u(:, ny), nx, MPI_DOUBLE_PRECISION, down, 0, &
                          u(:, 0), nx, MPI_DOUBLE_PRECISION, up, 0, comm, MPI_STATUS_IGNORE)
        if (mod(t, ahead) == 0) old = u
        call step(u, next)
    end do
    call MPI_File_open(comm, 'heat.bin', MPI_MODE_CREATE + MPI_MODE_WRONLY, MPI_INFO_NULL, out)
    call MPI_File_write_at_all(out, int(first, MPI_OFFSET_KIND) * nx * 8, u(:, 1:ny), nx * ny, &
                               MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE)
    call MPI_File_close(out)
#ifndef NO_CATENA
    call ctn_optim_free(opt)
    call ctn_comm_free(group)
    call ctn_module_free(net)
    call ctn_context_free(ctx)
#endif
    call MPI_Comm_free(comm)
    call MPI_Finalize()

contains

    subroutine step(u, next)
        real(8), intent(inout), allocatable :: u(:, :), next(:, :)
        real(8), allocatable :: last(:, :)
        integer :: i, j
        !$omp parallel do private(i)
        do j = 1, ubound(u, 2) - 1
            do i = 2, nx - 1
                next(i, j) = u(i, j) + 0.2d0 * (u(i, j - 1) + u(i, j + 1) + u(i - 1, j) &
                                                + u(i + 1, j) - 4 * u(i, j))
            end do
        end do
        call move_alloc(u, last)
        call move_alloc(next, u)
        call move_alloc(last, next)
    end subroutine
end program
