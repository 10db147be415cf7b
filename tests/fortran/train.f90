! SPDX-License-Identifier: Apache-2.0
!
! train.f90 OUT: train.c in Fortran. The files that the two write must have the same bits.
program train
    use catena
    implicit none
    integer, parameter :: n = 32, inputs = 6, hidden = 16, outputs = 3, steps = 40
    type(ctn_context) :: ctx
    type(ctn_module) :: net
    type(ctn_optim) :: opt
    character(200) :: path
    integer :: t
    call get_command_argument(1, path)
    call ctn_context_new(ctx, seed=5, threads=2)
    call make()
    call ctn_adamw_new(opt, net, lr=0.01d0, decay=0.1d0)
    call opt%set_clip(1d0)
    do t = 0, steps - 1
        call step(t)
    end do
    call ctn_weights_save(net, path)

contains

    subroutine make()
        type(ctn_module) :: part(4)
        call ctn_linear_new(part(1), ctx, inputs, hidden)
        call ctn_activation_new(part(2), ctx, 'tanh')
        call ctn_dropout_new(part(3), ctx, 0.25d0)
        call ctn_linear_new(part(4), ctx, hidden, outputs)
        call ctn_sequential_new(net, ctx, part)
    end subroutine

    subroutine step(t)
        integer, intent(in) :: t
        real(8), target :: x(inputs, n)
        integer(8), target :: label(n)
        type(ctn_tensor) :: loss
        integer :: i, j
        do i = 0, n - 1
            do j = 0, inputs - 1
                x(j + 1, i + 1) = mod(i * 7 + j * 3 + t * 5, 17) / 16d0
            end do
            label(i + 1) = mod(i + t, outputs)
        end do
        call ctn_scope_begin(ctx)
        loss = ctn_softmax_cross_entropy(ctn_call(net, ctn_input(ctx, x)), ctn_input(ctx, label), &
                                         smoothing=0.1d0)
        call ctn_backward(opt, loss)
        call opt%step()
        call ctn_scope_end(ctx)
    end subroutine
end program
