! SPDX-License-Identifier: Apache-2.0
!
! An error without stat= must stop the program with its message; run.py expects that.
program stops
    use catena
    implicit none
    type(ctn_context) :: ctx
    type(ctn_module) :: m
    call ctn_context_new(ctx, threads=1)
    call ctn_linear_new(m, ctx, -7, 2)
    print '(a)', 'the program went on'
end program
