! SPDX-License-Identifier: Apache-2.0
!
! A small network learns exclusive or: xor [WEIGHTS]. The weights are saved if a file is named.
! xor.c, xor.cpp and xor.py are the same program. All print the same losses and write the same file,
! to the bit.
program xor
    use catena
    implicit none
    real(4), target :: x(2, 4) = reshape([0., 0., 0., 1., 1., 0., 1., 1.], [2, 4])
    real(4), target :: y(1, 4) = reshape([0., 1., 1., 0.], [1, 4])
    type(ctn_context) :: ctx
    type(ctn_module) :: layer(3), net
    type(ctn_optim) :: opt
    type(ctn_tensor) :: loss
    character(4096) :: weights
    integer :: step
    call ctn_context_new(ctx, seed=1)
    call ctn_linear_new(layer(1), ctx, 2, 16)
    call ctn_activation_new(layer(2), ctx, 'tanh')
    call ctn_linear_new(layer(3), ctx, 16, 1)
    call ctn_sequential_new(net, ctx, layer)
    call ctn_adam_new(opt, net, lr=0.05d0)
    do step = 1, 100
        call ctn_scope_begin(ctx)
        loss = ctn_mean_squared_error(ctn_call(net, ctn_input(ctx, x)), ctn_input(ctx, y))
        call ctn_backward(opt, loss)
        call opt%step() ! what was recorded runs here
        if (mod(step, 20) == 0) print '(a, i3, a, f8.6)', 'step ', step, '  loss ', ctn_item(loss)
        call ctn_scope_end(ctx)
    end do
    call get_command_argument(1, weights)
    if (weights /= '') call ctn_weights_save(net, trim(weights))
end program
