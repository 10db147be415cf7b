! SPDX-License-Identifier: Apache-2.0
!
! Catena for Fortran programs. README.md explains the module, docs/reference the functions: names
! and order of arguments are those of the C headers, optional arguments come last. The module does
! not use MPI itself; catena_f08.f90 adds the communicators of mpi_f08. It consists of
!   catena_types    constants and structs
!   catena_objects  contexts, modules, optimizers, data, trainers, communicators
!   catena_ops      ops and operators
!   catena_arrays   arrays of the program
! Compile them in the order of the file SOURCES, after catena_c and catena_base.
module catena
    use catena_types
    use catena_base, only: ctn_error_message, ctn_error_clear
    use catena_objects
    use catena_ops
    use catena_arrays
    implicit none
    public
    private :: op_named
end module
