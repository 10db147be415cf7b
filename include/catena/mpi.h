/* SPDX-License-Identifier: Apache-2.0
 *
 * For programs that call MPI themselves: makes a Catena communicator from one of the program's.
 * This is the only public header that includes mpi.h, so <catena/catena.h> does not include it.
 * The program is compiled and linked with its own mpicc; Catena loads the plug-in built for the
 * same MPI ABI.
 */
#ifndef CATENA_MPI_H
#define CATENA_MPI_H

#include <mpi.h>

#include <catena/comm.h>

/* MPI libraries with one ABI share handles and constants, and one plug-in. For any other MPI,
 * `catena mpi-setup` builds a plug-in. */
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

/* A communicator with the ranks of comm, in the same order. comm is duplicated and otherwise
 * left alone: Catena does not touch its error handler, its messages or MPI itself.
 * MPI_THREAD_FUNNELED is enough. opt may be NULL. Free the result before MPI_Finalize.
 * Collective over comm. Result: owned, ctn_comm_free. Errors: EARG, ESTATE (MPI is not
 * running), EUNSUPPORTED (no plug-in for this MPI), ENOMEM, EENGINE. */
CTN_MUST_CHECK static inline ctn_status ctn_comm_from_mpi(ctn_comm **out, MPI_Comm comm,
                                                          const ctn_comm_opt *opt)
{
    return ctn_comm_adopt(out, CTN_MPI_ABI, &comm, opt);
}

#ifdef __cplusplus
}
#endif
#endif
