! SPDX-License-Identifier: Apache-2.0
!
! What the Fortran tests share: check(good, what) counts failures, finish() ends the program.
module support
    use catena
    implicit none
    integer :: failures = 0
contains
    subroutine check(good, what)
        logical, intent(in) :: good
        character(*), intent(in) :: what
        if (good) return
        failures = failures + 1
        print '(3a)', 'wrong: ', what, merge(': ', '  ', ctn_error_message() /= ''), &
            ctn_error_message()
        call ctn_error_clear()
    end subroutine

    subroutine finish(name)
        character(*), intent(in) :: name
        if (failures > 0) error stop 1
        print '(2a)', name, ': ok'
    end subroutine
end module
