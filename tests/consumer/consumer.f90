! SPDX-License-Identifier: Apache-2.0
!
! A user's program in Fortran: a few steps of training with module catena.
program consumer
    use catena
    implicit none
    type(ctn_context) :: ctx
    type(ctn_module) :: net
    type(ctn_optim) :: opt
    type(ctn_tensor) :: loss
    real(4), target :: x(2, 8) = 1, y(1, 8) = 2
    real(8) :: first, last
    integer :: i
    call ctn_context_new(ctx, threads=1, seed=1)
    call ctn_linear_new(net, ctx, 2, 1)
    call ctn_sgd_new(opt, net, lr=0.1d0)
    do i = 1, 10
        call ctn_scope_begin(ctx)
        loss = ctn_mean_squared_error(ctn_call(net, ctn_input(ctx, x)), ctn_input(ctx, y))
        call ctn_backward(opt, loss)
        call opt%step()
        last = ctn_item(loss)
        if (i == 1) first = last
        call ctn_scope_end(ctx)
    end do
    if (last >= first) error stop 'consumer: the loss has not fallen'
    print '(2a)', 'Fortran program, Catena ', ctn_version_text()
end program
