# SPDX-License-Identifier: Apache-2.0
"""The part of catena_objects.f90 that lets the library call Fortran: abstract types, which programs
extend, and the procedures that C calls. Written by hand, because each callback is different."""

NAMES = ["ctn_loss", "ctn_order", "ctn_layer", "ctn_layer_multi", "ctn_listener", "ctn_observer",
         "ctn_action"]

TYPES = """
    ! Types that a program extends, so that the library calls its procedures. An object of such a
    ! type must have the target attribute and live as long as what it was passed to.

    ! The loss of one batch: t = self%of(step).
    type, abstract :: ctn_loss
    contains
        procedure(loss_of), deferred :: of
    end type
    ! An order of samples: index = self%sample(at) is a pure function of `at`, counted from 0. It is
    ! called from several threads at once.
    type, abstract :: ctn_order
    contains
        procedure(order_sample), deferred :: sample
    end type
    ! The forward function of a module: y = self%forward(m, x).
    type, abstract :: ctn_layer
    contains
        procedure(layer_forward), deferred :: forward
    end type
    type, abstract :: ctn_layer_multi
    contains
        procedure(layer_forward_multi), deferred :: forward
    end type
    ! Gets the values of an evaluation: call self%hear(name, value).
    type, abstract :: ctn_listener
    contains
        procedure(listener_hear), deferred :: hear
    end type
    ! A value for the log: self%value(trainer).
    type, abstract :: ctn_observer
    contains
        procedure(observer_value), deferred :: value
    end type
    ! An extension of a trainer. A status less than 0 ends the run.
    type, abstract :: ctn_action
    contains
        procedure(action_call), deferred :: call
        procedure :: start => do_nothing
        procedure :: finish => do_nothing
    end type

    abstract interface
        function loss_of(self, s) result(t)
            import
            class(ctn_loss), intent(inout) :: self
            type(ctn_step), intent(in) :: s
            type(ctn_tensor) :: t
        end function
        function order_sample(self, at) result(index)
            import
            class(ctn_order), intent(in) :: self
            type(ctn_sampler_state), intent(in) :: at
            integer(c_int64_t) :: index
        end function
        function layer_forward(self, m, x) result(y)
            import
            class(ctn_layer), intent(inout) :: self
            type(ctn_module), intent(in) :: m
            type(ctn_tensor), intent(in) :: x
            type(ctn_tensor) :: y
        end function
        function layer_forward_multi(self, m, x) result(y)
            import
            class(ctn_layer_multi), intent(inout) :: self
            type(ctn_module), intent(in) :: m
            type(ctn_tensors), intent(in) :: x
            type(ctn_tensors) :: y
        end function
        subroutine listener_hear(self, name, value)
            import
            class(ctn_listener), intent(inout) :: self
            character(*), intent(in) :: name
            real(c_double), intent(in) :: value
        end subroutine
        function observer_value(self, tr) result(value)
            import
            class(ctn_observer), intent(inout) :: self
            type(ctn_trainer), intent(in) :: tr
            real(c_double) :: value
        end function
        subroutine action_call(self, tr, status)
            import
            class(ctn_action), intent(inout) :: self
            type(ctn_trainer), intent(in) :: tr
            integer, intent(inout) :: status
        end subroutine
    end interface""".split("\n")

PROCEDURES = """
    ! ---- procedures that C calls

    recursive function call_loss(self, s) bind(C, name='') result(t)
        type(c_ptr), value :: self
        type(c_step), value :: s
        type(ctn_tensor) :: t
        type(holder), pointer :: held
        type(ctn_step) :: step
        call c_f_pointer(self, held)
        call borrow(step, s%p)
        select type (it => held%it)
        class is (ctn_loss)
            t = it%of(step)
        end select
    end function

    recursive function call_order(user, at) bind(C, name='') result(index)
        type(c_ptr), value :: user, at
        integer(c_int64_t) :: index
        type(holder), pointer :: held
        type(ctn_sampler_state), pointer :: state
        call c_f_pointer(user, held)
        call c_f_pointer(at, state)
        index = -1
        select type (it => held%it)
        class is (ctn_order)
            index = it%sample(state)
        end select
    end function

    recursive function call_layer(self, m, x) bind(C, name='') result(y)
        type(c_ptr), value :: self
        type(c_module), value :: m
        type(ctn_tensor), value :: x
        type(ctn_tensor) :: y
        type(holder), pointer :: held
        type(ctn_module) :: module
        call c_f_pointer(self, held)
        call borrow(module, m%p)
        select type (it => held%it)
        class is (ctn_layer)
            y = it%forward(module, x)
        end select
    end function

    recursive function call_layer_multi(self, m, x) bind(C, name='') result(y)
        type(c_ptr), value :: self
        type(c_module), value :: m
        type(ctn_tensors), value :: x
        type(ctn_tensors) :: y
        type(holder), pointer :: held
        type(ctn_module) :: module
        call c_f_pointer(self, held)
        call borrow(module, m%p)
        select type (it => held%it)
        class is (ctn_layer_multi)
            y = it%forward(module, x)
        end select
    end function

    recursive function call_listener(user, name, value) bind(C, name='') result(status)
        type(c_ptr), value :: user, name
        real(c_double), value :: value
        integer(c_int) :: status
        type(holder), pointer :: held
        call c_f_pointer(user, held)
        select type (it => held%it)
        class is (ctn_listener)
            call it%hear(text_of(name), value)
        end select
        status = CTN_OK
    end function

    recursive function call_observer(self, tr) bind(C, name='') result(value)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        real(c_double) :: value
        type(holder), pointer :: held
        type(ctn_trainer) :: trainer
        call c_f_pointer(self, held)
        call borrow(trainer, tr%p)
        value = 0
        select type (it => held%it)
        class is (ctn_observer)
            value = it%value(trainer)
        end select
    end function

    ! ---- extensions

    ! trigger: when to call action%call, CTN_EVERY_EPOCHS with n = 1 if it is left out.
    subroutine f_trainer_extend(tr, name, action, trigger, priority, rank0_only, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: name
        class(ctn_action), intent(inout), target :: action
        type(ctn_trigger), intent(in), optional :: trigger
        integer, intent(in), optional :: priority, rank0_only
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_extension) :: e
        type(texts), target :: name_
        type(holder), pointer :: held
        integer(c_int) :: st
        call name_%set([name])
        allocate (held)
        held%it => action
        e%name = name_%p(1)
        e%trigger = ctn_trigger(kind=CTN_EVERY_EPOCHS, n=1)
        if (present(trigger)) e%trigger = trigger
        if (present(priority)) e%priority = priority
        if (present(rank0_only)) e%rank0_only = rank0_only
        e%start = c_funloc(start_action)
        e%call = c_funloc(call_action)
        e%finish = c_funloc(finish_action)
        e%self = c_loc(held)
        st = c_trainer_extend(c_trainer(address_of(tr)), e)
        if (st >= 0) call keep(tr, held)
        if (st < 0) deallocate (held)
        call settle(st, stat, errmsg)
    end subroutine

    recursive function start_action(self, tr) bind(C, name='') result(status)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        integer(c_int) :: status
        status = run_action(self, tr%p, 1)
    end function

    recursive function call_action(self, tr) bind(C, name='') result(status)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        integer(c_int) :: status
        status = run_action(self, tr%p, 2)
    end function

    recursive function finish_action(self, tr) bind(C, name='') result(status)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        integer(c_int) :: status
        status = run_action(self, tr%p, 3)
    end function

    recursive function run_action(self, tr, which) result(status)
        type(c_ptr), intent(in) :: self, tr
        integer, intent(in) :: which
        integer(c_int) :: status
        type(holder), pointer :: held
        type(ctn_trainer) :: trainer
        call c_f_pointer(self, held)
        call borrow(trainer, tr)
        status = CTN_OK
        select type (it => held%it)
        class is (ctn_action)
            if (which == 1) call it%start(trainer, status)
            if (which == 2) call it%call(trainer, status)
            if (which == 3) call it%finish(trainer, status)
        end select
    end function

    subroutine do_nothing(self, tr, status)
        class(ctn_action), intent(inout) :: self
        type(ctn_trainer), intent(in) :: tr
        integer, intent(inout) :: status
        associate (unused_self => self, unused_tr => tr, unused_status => status)
        end associate
    end subroutine""".split("\n")
