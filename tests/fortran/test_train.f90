! SPDX-License-Identifier: Apache-2.0
!
! A trainer whose loss, order of samples, layer and extension are written in Fortran; evaluation;
! weights and states in files; networks of the zoo.
module parts
    use catena
    use, intrinsic :: iso_c_binding
    implicit none

    ! y = relu(fc x) + gain, with a parameter of its own
    type, extends(ctn_layer) :: gained
        type(ctn_module) :: fc
        type(ctn_var) :: gain
    contains
        procedure :: forward
    end type

    type, extends(ctn_loss) :: squared
        type(ctn_module) :: net
        integer :: calls = 0
    contains
        procedure :: of => squared_error
    end type

    type, extends(ctn_order) :: backwards
        integer :: samples = 0
    contains
        procedure :: sample => from_the_end
    end type

    type, extends(ctn_action) :: counter
        integer :: starts = 0, calls = 0, ends = 0
        real(8) :: loss = 0
    contains
        procedure :: start => count_start
        procedure :: call => count_call
        procedure :: finish => count_end
    end type

    type, extends(ctn_listener) :: listener
        real(8) :: loss = -1, error = -1
    contains
        procedure :: hear
    end type

contains

    function forward(self, m, x) result(y)
        class(gained), intent(inout) :: self
        type(ctn_module), intent(in) :: m
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor) :: y
        if (m%children() /= 1) error stop 'the layer is called with another module'
        y = ctn_relu(ctn_call(self%fc, x)) + ctn_use(self%gain)
    end function

    function squared_error(self, s) result(t)
        class(squared), intent(inout) :: self
        type(ctn_step), intent(in) :: s
        type(ctn_tensor) :: t, y
        y = ctn_call(self%net, s%input(0))
        call ctn_report(s, 'error', ctn_mean_absolute_error(y, s%input(1)))
        t = ctn_mean_squared_error(y, s%input(1))
        self%calls = self%calls + 1
    end function

    function from_the_end(self, at) result(index)
        class(backwards), intent(in) :: self
        type(ctn_sampler_state), intent(in) :: at
        integer(c_int64_t) :: index
        index = self%samples - 1 - at%position
    end function

    subroutine count_start(self, tr, status)
        class(counter), intent(inout) :: self
        type(ctn_trainer), intent(in) :: tr
        integer, intent(inout) :: status
        self%starts = self%starts + 1
        if (tr%rows() /= 0) status = CTN_EARG
    end subroutine

    subroutine count_call(self, tr, status)
        class(counter), intent(inout) :: self
        type(ctn_trainer), intent(in) :: tr
        integer, intent(inout) :: status
        self%calls = self%calls + 1
        if (tr%value('train/loss', self%loss) /= 1) status = CTN_EARG
    end subroutine

    subroutine count_end(self, tr, status)
        class(counter), intent(inout) :: self
        type(ctn_trainer), intent(in) :: tr
        integer, intent(inout) :: status
        type(ctn_progress) :: progress
        call tr%progress(progress)
        if (progress%epoch /= 20) status = CTN_EARG
        self%ends = self%ends + 1
    end subroutine

    subroutine hear(self, name, value)
        class(listener), intent(inout) :: self
        character(*), intent(in) :: name
        real(8), intent(in) :: value
        if (name == 'loss') self%loss = value
        if (name == 'error') self%error = value
    end subroutine
end module

program test_train
    use support
    use parts
    implicit none
    type(ctn_context) :: ctx
    real(4), target :: x(3, 40), y(2, 40)
    integer :: i
    call ctn_context_new(ctx, threads=1, seed=11)
    do i = 1, 40
        x(:, i) = [sin(0.3 * i), cos(0.7 * i), 0.1 * mod(i, 7)]
    end do
    y(1, :) = x(1, :) * 2 - x(3, :)
    y(2, :) = x(2, :) + 0.5
    call trains()
    call files()
    call zoo()
    call finish('test_train')

contains

    subroutine trains()
        type(gained), target :: layer
        type(squared), target :: loss
        type(backwards), target :: order
        type(counter), target :: action
        type(listener), target :: heard
        type(ctn_module) :: body, head
        type(ctn_optim) :: opt, same
        type(ctn_dataset) :: ds
        type(ctn_sampler) :: sampler
        type(ctn_loader) :: loader
        type(ctn_trainer) :: tr
        call ctn_module_new(body, ctx, layer)
        call ctn_linear_new(layer%fc, ctx, 3, 16)
        call body%add('fc', layer%fc)
        call ctn_module_param(body, 'gain', CTN_F32, [16], v=layer%gain)
        call ctn_linear_new(head, ctx, 16, 2)
        call ctn_sequential_new(loss%net, ctx, [body, head])
        call ctn_adam_new(opt, loss%net, lr=0.02d0)
        call ctn_arrays_open(ds, [ctn_array(x), ctn_array(y)])
        order%samples = 40
        call ctn_sampler_new(sampler, 40, order, 0)
        call check(sampler%index(0, 0) == 39, 'the order begins at the end')
        call ctn_loader_new(loader, ds, sampler, batch=10)
        call ctn_trainer_new(tr, opt, loader, loss, net=loss%net, epochs=20)
        call tr%extend('counter', action)
        call tr%run()
        call check(loss%calls == 80, 'calls of the loss')
        call check(action%starts == 1 .and. action%calls == 20 .and. action%ends == 1, 'extension')
        call tr%optim(same)
        call check(same%steps() == 80, 'the optimizer of the trainer')
        call ctn_evaluate(ctx, loader, loss, heard)
        call check(heard%loss > 0 .and. heard%error > 0, 'evaluation')
        call check(heard%loss < action%loss / 2, 'the loss is less than the mean of the run')
    end subroutine

    subroutine files()
        type(ctn_module) :: a, b
        real(4) :: w(3, 2), v(3, 2)
        type(ctn_var) :: var
        character(200) :: message
        integer :: st
        call ctn_linear_new(a, ctx, 3, 2)
        call ctn_linear_new(b, ctx, 3, 2)
        call ctn_weights_save(a, 'a.safetensors')
        call ctn_weights_load(b, 'a.safetensors')
        call ctn_module_find(a, 'weight', var)
        call ctn_var_get(var, w)
        call ctn_module_find(b, 'weight', var)
        call ctn_var_get(var, v)
        call check(all(abs(w - v) <= 0), 'weights')
        call ctn_state_save('a.state', [ctn_part_module('net', a), ctn_part_context('', ctx)])
        call ctn_state_load('a.state', [ctn_part_module('net', b)])
        message = ''
        call ctn_weights_load(a, 'missing', stat=st, errmsg=message)
        call check(st == CTN_EIO .and. index(message, 'missing') > 0, 'no such file')
        call ctn_error_clear()
    end subroutine

    subroutine zoo()
        type(ctn_module) :: mlp, net
        type(ctn_tensor) :: t
        type(ctn_vars) :: vars
        real(4), target :: image(28, 28, 1, 2) = 0.5
        call ctn_zoo_mlp(mlp, ctx, size=[3, 8, 2], activation='tanh')
        vars = ctn_params(mlp)
        call check(vars%n == 4, 'mlp')
        call ctn_zoo_new(net, ctx, 'lenet5')
        call ctn_scope_begin(ctx)
        t = ctn_call(net, ctn_input(ctx, image))
        call check(ctn_dim(t, 0) == 2 .and. ctn_dim(t, 1) == 10, 'lenet5')
        call ctn_scope_end(ctx)
    end subroutine
end program
