! SPDX-License-Identifier: Apache-2.0
!
! Module catena for programs that use mpi_f08: call ctn_comm_from_mpi(c, comm) takes a
! type(MPI_Comm). It is a separate file because not every MPI has mpi_f08. The module re-exports
! all of module catena, so a program uses it instead.
module catena_f08
    use catena
    use mpi_f08, only: MPI_Comm
    implicit none
    public
    private :: MPI_Comm, comm_from_f08

    interface ctn_comm_from_mpi
        module procedure comm_from_f08
    end interface

contains

    subroutine comm_from_f08(c, comm, algorithm, stat, errmsg)
        type(ctn_comm), intent(inout) :: c
        type(MPI_Comm), intent(in) :: comm
        character(*), intent(in), optional :: algorithm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        call ctn_comm_from_mpi(c, comm%MPI_VAL, algorithm=algorithm, stat=stat, errmsg=errmsg)
    end subroutine
end module
