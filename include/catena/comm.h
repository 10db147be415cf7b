/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators: groups of ranks that train together. A communicator is made from the program's
 * own MPI communicator (<catena/mpi.h>), from all ranks of an MPI that is already running, or
 * within one process with threads as ranks. Collective functions must be called by all ranks in
 * the same order.
 *
 * Catena never starts or ends MPI by itself. A program without MPI calls of its own can have it
 * started with ctn_mpi_init.
 */
#ifndef CATENA_COMM_H
#define CATENA_COMM_H

#include <catena/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ctn_comm ctn_comm;

/* Zero in a field means its default. */
typedef struct {
    size_t struct_size;
    /* Allreduce algorithm: auto, flat, ring, rabenseifner, hierarchical, torus, rsap or doubling.
     * NULL or auto: the fastest in a measurement, for each length of vector. */
    const char *algorithm;
    /* Data type on the network. 0 or CTN_F32: the type of the data. CTN_BF16, CTN_F16: f32
     * values are rounded before they are sent and added in f32; each value is rounded at most
     * log2(ranks) + 1 times. Not available with flat, because MPI would add in 16 bits. In f16,
     * partial sums must stay below 65504. Gradients of an optimizer are divided by the number of
     * ranks before they are sent, so this holds for their mean; use a loss scale with f16
     * (ctn_optim_set_loss_scale). */
    ctn_dtype wire;
    int rows;        /* rows of the grid of torus and rsap; 0: as square as possible */
    int64_t segment; /* bytes per message; 0: 128 kB */
    int window;      /* pieces in flight at a time; 0: 8 */
} ctn_comm_opt;

/* For programs that do not call MPI themselves. ctn_mpi_init starts the MPI whose launcher
 * started this process; argc and argv may be NULL. ctn_mpi_finalize ends it; free every
 * communicator before. Collective over all processes of the job. Errors: EUNSUPPORTED (no
 * plug-in for this MPI), EENGINE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_mpi_init(int *argc, char ***argv);
CTN_API CTN_MUST_CHECK ctn_status ctn_mpi_finalize(void);

/* A communicator of all ranks of the running MPI, or of this process alone if no MPI is
 * running. Collective. Result: owned, ctn_comm_free. Errors: EARG, ENOMEM, EUNSUPPORTED,
 * EENGINE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_open(ctn_comm **out, const ctn_comm_opt *opt);
/* A group of n ranks within this process: out receives n communicators, one for each of n
 * threads. Local. Results: owned; free each one with ctn_comm_free, the last one frees the
 * group. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_loopback(ctn_comm **out, int n, const ctn_comm_opt *opt);
/* Called by <catena/mpi.h>: handle points to an MPI_Comm, abi names the ABI of its MPI. Collective.
 * Result: owned, ctn_comm_free. Errors: as ctn_comm_open, and ESTATE (MPI is not running). */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_adopt(ctn_comm **out, const char *abi,
                                                 const void *handle, const ctn_comm_opt *opt);
/* The same for a Fortran handle: an integer, or the MPI_VAL of a type(MPI_Comm). It belongs to
 * the MPI that the process has loaded, unless CATENA_MPI names another plug-in. Errors: as
 * ctn_comm_open, and ESTATE (no MPI is loaded). */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_adopt_fortran(ctn_comm **out, int handle,
                                                         const ctn_comm_opt *opt);
/* Free a communicator; NULL is allowed. Collective. */
CTN_API void ctn_comm_free(ctn_comm *c);

/* The number of this rank, and the number of ranks. Local. */
CTN_API int ctn_comm_rank(const ctn_comm *c);
CTN_API int ctn_comm_size(const ctn_comm *c);
/* A node is a group of ranks that share memory. Nodes are numbered by their lowest rank. Local. */
CTN_API int ctn_comm_nodes(const ctn_comm *c);
CTN_API int ctn_comm_node(const ctn_comm *c);       /* node of this rank */
CTN_API int ctn_comm_local_rank(const ctn_comm *c); /* rank within its node */
CTN_API int ctn_comm_local_size(const ctn_comm *c);
/* Name and version of the library that carries the messages. Local. Result: borrowed from c. */
CTN_API const char *ctn_comm_transport(const ctn_comm *c);
/* The allreduce algorithm that was used last, "auto" before the first. Local. Result: borrowed from
 * c. */
CTN_API const char *ctn_comm_algorithm(const ctn_comm *c);
/* The name of algorithm i, NULL after the last one. Local. Result: borrowed forever. */
CTN_API const char *ctn_comm_algorithm_name(int i);
/* Change the allreduce algorithm; "auto" measures again. Collective. Errors: EARG (unknown, or
 * it cannot run on these ranks). */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_set_algorithm(ctn_comm *c, const char *name);

/* Replace buf[0..count) by its sum over all ranks, with the same bits on each. Types: f32 (sent
 * as ctn_comm_opt.wire says), f64, i32, i64. Collective. Errors: EDTYPE, EPEER, EENGINE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_allreduce(ctn_comm *c, void *buf, int64_t count,
                                                     ctn_dtype type);
/* Copy the root's bytes to every rank. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_broadcast(ctn_comm *c, void *buf, size_t bytes,
                                                     int root);
/* Collect every rank's `mine` in `all` (size x bytes), in rank order, on every rank.
 * Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_allgather(ctn_comm *c, const void *mine, size_t bytes,
                                                     void *all);
/* Collect every rank's `mine` in the root's `all` (size x bytes), in rank order; `all` is not
 * used on other ranks. Messages: one per rank. The first rank of a node handles one for each
 * rank of its node; the root handles one for each rank of its node and one for each other node.
 * Collective. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_gather(ctn_comm *c, const void *mine, size_t bytes,
                                                  void *all, int root);
/* The reverse of gather: `mine` becomes this rank's part of the root's `all`, with the same
 * number of messages. Collective. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_scatter(ctn_comm *c, const void *all, size_t bytes,
                                                   void *mine, int root);
/* Messages between two ranks whose length only the sender knows. Send a copy of the bytes to rank
 * `to`; does not wait until they are received, so all ranks may send first. Messages from one rank
 * to another arrive in the order in which they were sent. They do not disturb other operations.
 * Local. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_send_bytes(ctn_comm *c, const void *buf, size_t bytes,
                                                      int to);
/* Wait for the next message from rank `from` and give its length, without receiving it: a second
 * call gives the same. Local. Result: *bytes. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_recv_size(ctn_comm *c, int from, size_t *bytes);
/* Wait for the next message from rank `from` and receive it. Local. Errors: EARG (its length is not
 * `bytes`; the message stays), ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_recv_bytes(ctn_comm *c, void *buf, size_t bytes,
                                                      int from);
/* Wait until all ranks have called it. Collective. Errors: EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_barrier(ctn_comm *c);
/* Check that all ranks pass the same text. The text consists of lines that can follow the word
 * "has", such as "60000 training samples\nseed 1". If a rank's text differs from rank 0's,
 * every rank fails with the same message, which names the ranks and the first line that
 * differs: "rank 3 has 59990 training samples, rank 0 has 60000 training samples". Costs O(log
 * size) messages. Collective. Errors: EARG (the texts differ), ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_agree(ctn_comm *c, const char *text);

/* Mark the group as broken on this rank: from now on, every wait of this rank fails with EPEER
 * and this message. May be called from any thread; the first message is kept. Local. */
CTN_API void ctn_comm_fail(ctn_comm *c, const char *message);

/* Mark the group as broken on all ranks: their waits fail with EPEER too, with this message and
 * the number of this rank. Call it when this rank cannot continue for a reason that Catena does
 * not know; errors in ctn_backward, ctn_optim_step and ctn_trainer_run do it automatically. The
 * group cannot be used afterwards: each rank frees its communicator and may continue without
 * it. Local. */
CTN_API void ctn_comm_break(ctn_comm *c, const char *message);

/* Can the other ranks continue if some are lost? Only with Open MPI 5, started with mpirun
 * --with-ft ulfm. Local. */
CTN_API int ctn_comm_survives(const ctn_comm *c);
/* Can they continue, and has this communicator failed because ranks are lost? Local. */
CTN_API int ctn_comm_lost(const ctn_comm *c);
/* Make a communicator of the ranks that are left, in the same order. All of them must call it; a
 * rank that waits in c fails there first, with EPEER. c cannot be used any more; free it after what
 * was made with it. opt NULL: defaults. Collective over the ranks that are left. Result: owned,
 * ctn_comm_free. Errors: ESTATE (no rank is lost, or this MPI cannot), EPEER, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_shrink(ctn_comm **out, ctn_comm *c,
                                                  const ctn_comm_opt *opt);
/* Make a second communicator of the same ranks. opt NULL: defaults. Collective. Result: owned,
 * ctn_comm_free. Errors: ESTATE (a loopback group), EPEER, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_again(ctn_comm **out, ctn_comm *c,
                                                 const ctn_comm_opt *opt);
/* Make communicators of parts of the ranks: ranks that pass the same color get one together,
 * numbered by key, and by their rank in c where keys are equal. color < 0: this rank is in none
 * of them, and *out becomes NULL. opt NULL: defaults. Collective. Result: owned, ctn_comm_free.
 * Errors: ESTATE (the transport cannot), EARG, EPEER, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_split(ctn_comm **out, ctn_comm *c, int color, int key,
                                                 const ctn_comm_opt *opt);

/* Progress of a rank since its communicator was made, for a watchdog in another thread. Local. */
typedef struct {
    size_t struct_size;
    uint64_t started, finished; /* number of collective operations */
    uint64_t sent;              /* payload bytes of collective operations handed to the transport */
    int waiting;
    /* Messages of any kind handed to the transport. An allreduce done by MPI itself counts as
     * one. */
    uint64_t messages;
    uint64_t control; /* bytes of messages that are not part of `sent`, such as broadcasts */
} ctn_comm_stats;
CTN_API void ctn_comm_get_stats(const ctn_comm *c, ctn_comm_stats *out);

#ifdef __cplusplus
}
#endif
#endif
