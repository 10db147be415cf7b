! SPDX-License-Identifier: Apache-2.0
!
! What the generated modules share: references to objects of the library, errors, and text.
!
! Fortran finalizes variables in any order, but the library needs an order: a network before its
! context, an optimizer before its network. Therefore a handle does not free its object. It counts:
! an object is freed when no handle refers to it and no other object needs it. Handles may be
! copied; all copies refer to the same object. Reference counts are not atomic, so handles that
! share objects belong to one thread, like a context.
module catena_base
    use, intrinsic :: iso_c_binding
    use catena_c, only: CTN_OK, CTN_EARG, CTN_ESHAPE, ctn_tensor, &
        c_error_message => ctn_error_message, c_error_status => ctn_error_status, &
        c_error_clear => ctn_error_clear, c_error_trace => ctn_error_trace
    implicit none
    private
    public :: ctn_ref, address_of, own, borrow, need, give, keep, drop, holder
    public :: settle, settle_tensor, fail, same_length, fill, ctn_error_message, ctn_error_clear
    public :: texts, text_of, chars, set_chars, set_integers, here

    type :: link
        type(object), pointer :: to => null()
    end type

    ! What a callback gets from C: the object whose procedure it calls.
    type :: holder
        class(*), pointer :: it => null()
    end type

    ! One object of the library. free is NULL if the object belongs to another one.
    type :: object
        type(c_ptr) :: p = c_null_ptr
        type(c_funptr) :: free = c_null_funptr
        integer :: holders = 0
        type(link), allocatable :: needs(:)
        type(holder), allocatable :: kept(:) ! memory that lives as long as the object
    end type

    ! What every handle extends.
    type :: ctn_ref
        private
        type(object), pointer :: to => null()
    contains
        procedure, private :: copy_ref
        generic :: assignment(=) => copy_ref
        final :: finalize
    end type

    ! Texts as C wants them: addresses, with NULL at the end.
    type :: texts
        character(kind=c_char), allocatable :: chars(:, :)
        type(c_ptr), allocatable :: p(:)
    contains
        procedure :: set => set_texts
    end type

    interface ctn_error_message
        module procedure error_message
    end interface
    interface ctn_error_clear
        module procedure error_clear
    end interface

    interface fill
        module procedure fill_integers, fill_reals
    end interface

    abstract interface
        subroutine free_object(p) bind(C)
            import :: c_ptr
            type(c_ptr), value :: p
        end subroutine
    end interface
    interface
        function c_strlen(s) bind(C, name='strlen') result(n)
            import :: c_ptr, c_size_t
            type(c_ptr), value :: s
            integer(c_size_t) :: n
        end function
    end interface

    ! Error messages show this instead of a source line.
    character(kind=c_char), target, save :: &
        here(8) = ['F', 'o', 'r', 't', 'r', 'a', 'n', c_null_char]
    character(:), allocatable, save :: first ! the first error since ctn_error_clear

contains

    ! ---- references ----------------------------------------------------------------------------

    ! The address of the object, NULL if the handle is empty.
    function address_of(ref) result(p)
        class(ctn_ref), intent(in) :: ref
        type(c_ptr) :: p
        p = c_null_ptr
        if (associated(ref%to)) p = ref%to%p
    end function

    ! Make ref refer to a new object, which is freed by `free`.
    subroutine own(ref, p, free)
        class(ctn_ref), intent(inout) :: ref
        type(c_ptr), intent(in) :: p
        type(c_funptr), value :: free
        call drop(ref)
        allocate (ref%to)
        ref%to%p = p
        ref%to%free = free
        ref%to%holders = 1
        allocate (ref%to%needs(0), ref%to%kept(0))
    end subroutine

    ! Make ref refer to an object that belongs to `owner`, or to the library.
    subroutine borrow(ref, p, owner)
        class(ctn_ref), intent(inout) :: ref
        type(c_ptr), intent(in) :: p
        class(ctn_ref), intent(in), optional :: owner
        type(ctn_ref) :: kept ! ref and owner may be the same variable
        if (present(owner)) kept%to => owner%to
        if (associated(kept%to)) kept%to%holders = kept%to%holders + 1
        call own(ref, p, c_null_funptr)
        call need(ref, kept)
    end subroutine

    ! The object of `other` must live as long as that of ref.
    subroutine need(ref, other)
        class(ctn_ref), intent(in) :: ref, other
        if (.not. associated(ref%to) .or. .not. associated(other%to)) return
        if (associated(ref%to, other%to)) return
        call add_need(ref%to, other%to)
    end subroutine

    subroutine add_need(this, other)
        type(object), intent(inout) :: this
        type(object), pointer, intent(in) :: other
        type(link), allocatable :: more(:)
        integer :: i, n
        n = size(this%needs)
        do i = 1, n
            if (associated(this%needs(i)%to, other)) return
        end do
        allocate (more(n + 1))
        more(1:n) = this%needs
        more(n + 1)%to => other
        other%holders = other%holders + 1
        call move_alloc(more, this%needs)
    end subroutine

    ! The object of ref now belongs to that of `owner`, which also needs what ref needed.
    subroutine give(ref, owner)
        class(ctn_ref), intent(in) :: ref, owner
        integer :: i
        if (.not. associated(ref%to) .or. .not. associated(owner%to)) return
        ref%to%free = c_null_funptr
        do i = 1, size(ref%to%needs)
            if (.not. associated(ref%to%needs(i)%to, owner%to)) &
                call add_need(owner%to, ref%to%needs(i)%to)
        end do
        call need(ref, owner)
    end subroutine

    ! Deallocate `it`, which was allocated as a pointer, when the object of ref is freed.
    subroutine keep(ref, it)
        class(ctn_ref), intent(in) :: ref
        class(*), intent(in), target :: it
        type(holder), allocatable :: more(:)
        integer :: n
        n = size(ref%to%kept)
        allocate (more(n + 1))
        more(1:n) = ref%to%kept
        more(n + 1)%it => it
        call move_alloc(more, ref%to%kept)
    end subroutine

    ! Make the handle empty.
    subroutine drop(ref)
        class(ctn_ref), intent(inout) :: ref
        if (associated(ref%to)) call release(ref%to)
        ref%to => null()
    end subroutine

    recursive subroutine release(this)
        type(object), pointer, intent(in) :: this
        type(object), pointer :: dying
        procedure(free_object), pointer :: free
        integer :: i
        dying => this
        dying%holders = dying%holders - 1
        if (dying%holders > 0) return
        if (c_associated(dying%free)) then
            call c_f_procpointer(dying%free, free)
            call free(dying%p)
        end if
        do i = 1, size(dying%needs)
            call release(dying%needs(i)%to)
        end do
        do i = 1, size(dying%kept)
            deallocate (dying%kept(i)%it)
        end do
        deallocate (dying)
    end subroutine

    impure elemental subroutine copy_ref(to, from)
        class(ctn_ref), intent(inout) :: to
        class(ctn_ref), intent(in) :: from
        type(object), pointer :: p
        if (.not. same_type_as(to, from)) error stop 'catena: assignment of another type of handle'
        p => from%to
        if (associated(p)) p%holders = p%holders + 1
        call drop(to)
        to%to => p
    end subroutine

    impure elemental subroutine finalize(ref)
        type(ctn_ref), intent(inout) :: ref
        call drop(ref)
    end subroutine

    ! ---- errors --------------------------------------------------------------------------------

    ! What allocate does: without stat an error stops the program.
    subroutine settle(status, stat, errmsg)
        integer(c_int), intent(in) :: status
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        if (present(stat)) stat = status
        if (status >= 0) return
        call report(text_of(c_error_message()), present(stat), errmsg)
        call c_error_clear()
    end subroutine

    ! An error that Fortran found.
    subroutine fail(status, message, stat, errmsg)
        integer(c_int), intent(in) :: status
        character(*), intent(in) :: message
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        if (present(stat)) stat = status
        call report(message, present(stat), errmsg)
    end subroutine

    subroutine report(message, returned, errmsg)
        character(*), intent(in) :: message
        logical, intent(in) :: returned
        character(*), intent(inout), optional :: errmsg
        if (.not. allocated(first)) first = message
        if (present(errmsg)) errmsg = message
        if (.not. returned) error stop 'catena: '//message
    end subroutine

    ! An op only records. Without stat, its error is reported by the action that needs its result.
    subroutine settle_tensor(t, stat, errmsg)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        if (.not. present(stat)) return
        stat = CTN_OK
        if (c_associated(t%p)) return
        call settle(min(c_error_status(), merge(CTN_EARG, 0, c_error_status() >= 0)), stat, errmsg)
    end subroutine

    ! C reads or writes as many elements as another argument or an object has: an error of the
    ! library otherwise, which clears ok.
    subroutine same_length(ok, name, found, expected, why)
        logical, intent(inout) :: ok
        character(*), intent(in) :: name, why
        integer(c_int64_t), intent(in) :: found, expected
        if (found == expected) return
        ok = .false.
        call wrong_length(name, found, 'expected '//number_text(expected)//', '//why)
    end subroutine

    ! Set the first elements of an option; an error of the same kind if there are more than fit.
    subroutine fill_integers(ok, name, option, from)
        logical, intent(inout) :: ok
        character(*), intent(in) :: name
        integer(c_int64_t), intent(inout) :: option(:)
        integer, intent(in) :: from(:)
        call check_room(ok, name, size(from), size(option))
        if (size(from) <= size(option)) option(:size(from)) = from
    end subroutine

    subroutine fill_reals(ok, name, option, from)
        logical, intent(inout) :: ok
        character(*), intent(in) :: name
        real(c_double), intent(inout) :: option(:)
        real(c_double), intent(in) :: from(:)
        call check_room(ok, name, size(from), size(option))
        if (size(from) <= size(option)) option(:size(from)) = from
    end subroutine

    subroutine check_room(ok, name, found, room)
        logical, intent(inout) :: ok
        character(*), intent(in) :: name
        integer, intent(in) :: found, room
        if (found <= room) return
        ok = .false.
        call wrong_length(name, int(found, c_int64_t), &
                          'expected at most '//number_text(int(room, c_int64_t)))
    end subroutine

    subroutine wrong_length(name, found, expected)
        character(*), intent(in) :: name, expected
        integer(c_int64_t), intent(in) :: found
        integer(c_int) :: st
        st = c_error_trace(CTN_ESHAPE, here, 0_c_int, &
                           chars(name//' has '//number_text(found)//' elements, '//expected))
    end subroutine

    function number_text(n) result(text)
        integer(c_int64_t), intent(in) :: n
        character(:), allocatable :: text
        character(20) :: wide
        write (wide, '(i0)') n
        text = trim(wide)
    end function

    ! The text of the first error since ctn_error_clear, '' if there is none.
    function error_message() result(text)
        character(:), allocatable :: text
        text = text_of(c_error_message())
        if (allocated(first)) text = first
    end function

    subroutine error_clear()
        if (allocated(first)) deallocate (first)
        call c_error_clear()
    end subroutine

    ! ---- text ----------------------------------------------------------------------------------

    ! Text of C, '' for NULL.
    function text_of(p) result(text)
        type(c_ptr), intent(in) :: p
        character(:), allocatable :: text
        character(kind=c_char), pointer :: s(:)
        integer :: i
        text = ''
        if (.not. c_associated(p)) return
        call c_f_pointer(p, s, [c_strlen(p)])
        deallocate (text)
        allocate (character(size(s)) :: text)
        do i = 1, size(s)
            text(i:i) = s(i)
        end do
    end function

    ! Text for C, without trailing blanks.
    function chars(text) result(s)
        character(*), intent(in) :: text
        character(kind=c_char) :: s(len_trim(text) + 1)
        integer :: i
        do i = 1, len_trim(text)
            s(i) = text(i:i)
        end do
        s(size(s)) = c_null_char
    end function

    ! Optional arguments as C wants them; what is left out stays unallocated, which means NULL.
    subroutine set_chars(to, text)
        character(kind=c_char), allocatable, intent(out) :: to(:)
        character(*), intent(in), optional :: text
        if (.not. present(text)) return
        allocate (to(len_trim(text) + 1))
        to(:) = chars(text)
    end subroutine

    subroutine set_integers(to, from)
        integer(c_int64_t), allocatable, intent(out) :: to(:)
        integer, intent(in), optional :: from(:)
        if (.not. present(from)) return
        allocate (to(size(from)))
        to(:) = from
    end subroutine

    subroutine set_texts(self, text)
        class(texts), intent(inout), target :: self
        character(*), intent(in) :: text(:)
        integer :: i
        allocate (self%chars(len(text) + 1, size(text)), self%p(size(text) + 1))
        self%p = c_null_ptr
        do i = 1, size(text)
            self%chars(:len_trim(text(i)) + 1, i) = chars(text(i))
            self%p(i) = c_loc(self%chars(1, i))
        end do
    end subroutine
end module
