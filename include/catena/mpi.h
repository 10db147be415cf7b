/* SPDX-License-Identifier: Apache-2.0
 *
 * For programs that call MPI themselves: a communicator of Catena from one of theirs. The one
 * public header that includes mpi.h, hence not part of <catena.h>. The program is compiled and
 * linked by its own mpicc; Catena loads the plug-in that was built for the same kind of MPI.
 */
#ifndef CATENA_MPI_H
#define CATENA_MPI_H

#include <mpi.h>

#include <catena/comm.h>

/* MPIs of one kind have the same handles and constants. Any other has a plug-in made by `catena
 * mpi-setup`. */
#if defined(OPEN_MPI)
#define CTN_MPI_ABI "openmpi"
#elif defined(MPICH) || defined(MPICH_VERSION) || defined(I_MPI_VERSION) || \
    defined(MVAPICH_VERSION) || defined(MVAPICH2_VERSION)
#define CTN_MPI_ABI "mpich"
#else
#define CTN_MPI_ABI "site"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The ranks of comm, in its order. comm is duplicated and otherwise left alone: its error
 * handler, its messages and MPI itself stay the program's; MPI_THREAD_FUNNELED is enough. To be
 * freed before MPI_Finalize. Collective over comm. opt may be NULL. Result: owned,
 * ctn_comm_free. Errors: EARG, ESTATE (MPI is not running), EUNSUPPORTED (no plug-in for this
 * MPI), ENOMEM, EENGINE. */
CTN_MUST_CHECK static inline ctn_status ctn_comm_from_mpi(ctn_comm **out, MPI_Comm comm,
                                                          const ctn_comm_opt *opt)
{
    return ctn_comm_adopt(out, CTN_MPI_ABI, &comm, opt);
}

#ifdef __cplusplus
}
#endif
#endif
