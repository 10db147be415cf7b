! SPDX-License-Identifier: Apache-2.0
!
! Handles: local variables free their objects in the order that the library needs, copies share one
! object, parts that another object owns are not freed twice. The library's own count of memory
! tells whether everything is freed.
module counting_memory
    use, intrinsic :: iso_c_binding
    implicit none
    interface
        function posix_memalign(p, align, n) bind(C) result(st)
            import
            type(c_ptr), intent(out) :: p
            integer(c_size_t), value :: align, n
            integer(c_int) :: st
        end function
        subroutine c_release(p) bind(C, name='free')
            import
            type(c_ptr), value :: p
        end subroutine
    end interface
    integer :: blocks = 0
contains
    function take(user, bytes, align) bind(C) result(p)
        type(c_ptr), value :: user
        integer(c_size_t), value :: bytes, align
        type(c_ptr) :: p
        if (c_associated(user)) error stop
        if (posix_memalign(p, max(align, 16_c_size_t), bytes) /= 0) p = c_null_ptr
        !$omp atomic
        blocks = blocks + 1
    end function

    subroutine give_back(user, p) bind(C)
        type(c_ptr), value :: user, p
        if (c_associated(user)) error stop
        if (.not. c_associated(p)) return
        !$omp atomic
        blocks = blocks - 1
        call c_release(p)
    end subroutine
end module

program test_handles
    use support
    use counting_memory
    implicit none
    type(ctn_allocator) :: counting
    integer :: before, i
    counting%alloc = c_funloc(take)
    counting%release = c_funloc(give_back)
    call ctn_set_allocator(counting)
    call train() ! what the library keeps for good is allocated here
    before = blocks
    do i = 1, 3
        call train()
        call copies()
        call owned()
        call failed()
    end do
    call check(blocks == before, 'all memory was freed')
    call finish('test_handles')

contains

    ! The context is declared first and last, so one of the two is finalized before the rest.
    subroutine train()
        type(ctn_context) :: first
        type(ctn_module) :: net, part(3)
        type(ctn_optim) :: opt
        type(ctn_dataset) :: ds
        type(ctn_sampler) :: order
        type(ctn_loader) :: loader
        type(ctn_batch) :: batch
        type(ctn_context) :: last
        real(4), target :: x(4, 8), y(1, 8)
        type(ctn_tensor) :: loss
        x = 0.5
        y = 1
        call ctn_context_new(last, threads=1, seed=3)
        first = last
        call ctn_linear_new(part(1), last, 4, 5)
        call ctn_activation_new(part(2), last, 'tanh')
        call ctn_linear_new(part(3), last, 5, 1)
        call ctn_sequential_new(net, last, part)
        call ctn_sgd_new(opt, net, lr=0.1d0)
        call ctn_arrays_open(ds, [ctn_array(x), ctn_array(y)])
        call ctn_sampler_shuffled(order, 8, seed=1)
        call ctn_loader_new(loader, ds, order, batch=4)
        call loader%next(batch)
        call ctn_scope_begin(last)
        loss = ctn_mean_squared_error(ctn_call(net, ctn_batch_tensor(last, batch, 0)), &
                                      ctn_batch_tensor(last, batch, 1))
        call ctn_backward(opt, loss)
        call opt%step()
        call check(ctn_item(loss) > 0, 'loss')
        call ctn_scope_end(last)
        call check(opt%steps() == 1, 'one step')
    end subroutine

    subroutine copies()
        type(ctn_context) :: ctx
        type(ctn_module) :: a, b, net
        type(ctn_var) :: weight
        call ctn_context_new(ctx, threads=1)
        call ctn_linear_new(a, ctx, 2, 2)
        b = a
        call a%free()
        call ctn_module_find(b, 'bias', weight)
        call ctn_linear_new(a, ctx, 2, 2)
        call ctn_sequential_new(net, ctx, [a, b])
        call check(net%children() == 2, 'children')
        call net%child(1, b) ! replaces what b referred to
        call net%free()      ! weight still needs it
        call check(weight%name() == '1.bias' .or. weight%name() == 'bias', 'still there')
    end subroutine

    ! The parts of a network outlive their handles, because the network owns them.
    subroutine owned()
        type(ctn_context) :: ctx
        type(ctn_module) :: net
        call ctn_context_new(ctx, threads=1)
        call make(ctx, net)
        call check(net%children() == 2, 'parts without handles')
    end subroutine

    subroutine make(ctx, net)
        type(ctn_context), intent(in) :: ctx
        type(ctn_module), intent(inout) :: net
        type(ctn_module) :: part(2)
        call ctn_linear_new(part(1), ctx, 2, 2)
        call ctn_linear_new(part(2), ctx, 2, 2)
        call ctn_sequential_new(net, ctx, part)
    end subroutine

    subroutine failed()
        type(ctn_context) :: ctx
        type(ctn_module) :: m
        integer :: st
        call ctn_context_new(ctx, threads=1)
        call ctn_linear_new(m, ctx, -1, 2, stat=st)
        call check(st == CTN_EARG, 'an error leaves the handle empty')
        call ctn_error_clear()
    end subroutine
end program
