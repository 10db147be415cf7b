! SPDX-License-Identifier: Apache-2.0
!
! A communicator of one rank within this process: collectives on arrays, a distributed optimizer.
! tests/mpi/test_fortran.f90 has several ranks.
program test_comm
    use support
    implicit none
    type(ctn_comm) :: group(1)
    integer(8) :: total(2) = [3_8, 4_8]
    real(8) :: field(2, 2) = 1.5d0
    call ctn_comm_loopback(group)
    call check(group(1)%rank() == 0 .and. group(1)%size() == 1, 'rank and size')
    call ctn_comm_allreduce(group(1), total)
    call ctn_comm_broadcast(group(1), field, 0)
    call check(all(total == [3, 4]) .and. all(abs(field - 1.5d0) <= 0), 'values')
    call group(1)%barrier()
    call check(len(group(1)%transport()) > 0, 'transport')
    call steps()
    call finish('test_comm')

contains

    subroutine steps()
        type(ctn_context) :: ctx
        type(ctn_module) :: net
        type(ctn_optim) :: opt
        real(4), target :: x(2, 4) = 1, y(1, 4) = 3
        real(8) :: first, last
        integer :: i
        call ctn_context_new(ctx, threads=1, seed=1)
        call ctn_linear_new(net, ctx, 2, 1)
        call ctn_sgd_new(opt, net, lr=0.05d0, momentum=0.5d0)
        call ctn_dist_optim(opt, group(1))
        do i = 1, 20
            call ctn_scope_begin(ctx)
            associate (loss => ctn_mean_squared_error(ctn_call(net, ctn_input(ctx, x)), &
                                                      ctn_input(ctx, y)))
                call ctn_backward(opt, loss)
                call opt%step()
                last = ctn_item(loss)
            end associate
            if (i == 1) first = last
            call ctn_scope_end(ctx)
        end do
        call check(last < first / 10, 'the loss has fallen')
    end subroutine
end program
