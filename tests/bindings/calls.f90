! SPDX-License-Identifier: Apache-2.0
!
! Calls the library through module catena_c, once for each way in which arguments and results are
! passed: handles, NULL, options, arrays, structs by value, several results, text, callbacks.
program calls
    use catena_c
    implicit none
    character(kind=c_char), target :: here(6) = ['c', 'a', 'l', 'l', 's', c_null_char]
    type(ctn_context) :: ctx
    type(ctn_context_opt) :: opt
    type(ctn_plan_stats) :: stats
    type(ctn_module) :: m
    type(ctn_vars) :: vars
    type(ctn_tensor) :: x, y, largest
    real(c_float), target :: a(3, 2), b(3, 2)
    character(kind=c_char) :: text(200)
    integer(c_int), target :: visited

    opt%threads = 1
    call check('ctn_context_new', ctn_context_new(ctx, opt) == CTN_OK)
    call check('threads', ctn_context_threads(ctx) == 1)
    call check('ctn_linear_new', ctn_linear_new(m, ctx, 3_c_int64_t, 4_c_int64_t) == CTN_OK)

    vars = ctn_params(m)
    call check('ctn_params', vars%n == 2)
    visited = 0
    call check('ctn_module_visit', ctn_module_visit(m, c_funloc(visit), c_loc(visited)) == CTN_OK)
    call check('visited', visited == 4 * 3 + 4)

    a = reshape([1., 5., 3., 6., 2., 4.], [3, 2])
    call check('ctn_scope_begin', ctn_scope_begin(ctx) == CTN_OK)
    x = ctn_input_at(c_loc(here), ctx, c_loc(a), CTN_F32, 2, [2_c_int64_t, 3_c_int64_t])
    y = ctn_scale_at(c_loc(here), x, 2.0_c_double)
    call check('ctn_read', ctn_read(y, b, c_sizeof(b)) == CTN_OK)
    call check('values', maxval(abs(b - 2 * a)) < 1e-6)
    call check('ctn_topk', &
               ctn_topk_at(c_loc(here), x, 1_c_int64_t, -1_c_int64_t, values=largest) == CTN_OK)
    y = ctn_sum_at(c_loc(here), largest, 0, [integer(c_int64_t) ::], 0)
    call check('ctn_item', abs(ctn_item(y) - 11) < 1e-6)
    call check('ctn_tensor_text', ctn_tensor_text(x, text, size(text, kind=c_size_t)) > 0)
    ! A tensor of no scope is NULL: the result is NULL, and the error is recorded.
    y = ctn_relu_at(c_loc(here), ctn_tensor())
    call check('NULL', .not. c_associated(y%p))
    call ctn_error_clear()
    call check('ctn_scope_end', ctn_scope_end(ctx) == CTN_OK)

    call ctn_context_get_stats(ctx, stats)
    call check('ctn_context_get_stats', stats%runs > 0)
    call ctn_module_free(m)
    call ctn_context_free(ctx)
    print '(a)', 'bindings: Fortran calls are right'

contains

    subroutine check(what, fine)
        character(*), intent(in) :: what
        logical, intent(in) :: fine
        if (fine) return
        print '(2a)', 'bindings: wrong: ', what
        error stop
    end subroutine

    ! Adds the number of elements to the integer that user points to.
    function visit(user, name, dtype, ndim, dims, data) bind(C) result(st)
        type(c_ptr), value :: user, name, dims, data
        integer(c_int), value :: dtype, ndim
        integer(c_int) :: st
        integer(c_int), pointer :: total
        integer(c_int64_t), pointer :: length(:)
        call c_f_pointer(user, total)
        call c_f_pointer(dims, length, [ndim])
        total = total + int(product(length), c_int)
        st = merge(CTN_OK, CTN_EARG, dtype == CTN_F32 .and. c_associated(name) .and. &
                   c_associated(data))
    end function
end program
