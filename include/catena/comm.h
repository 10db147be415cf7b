/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators: several ranks that train together. A communicator is made from a program's own MPI
 * communicator (<catena/mpi.h>), from the world of an MPI that the program has started, or in one process with
 * threads as ranks. Collective calls are made by all ranks in the same order.
 *
 * Catena never starts or ends MPI by itself: a program without MPI calls of its own asks for it with ctn_mpi_init.
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
    const char *
        algorithm; /* of allreduce: auto (default, by measurement), flat, ring, rabenseifner, hierarchical, torus, rsap */
    ctn_dtype
        wire; /* type on the network: 0 or CTN_F32: as the data; CTN_BF16, CTN_F16: f32 is rounded when it is sent and added in f32; a value is
                 rounded at most log2(ranks) + 1 times; not with flat, where MPI would add in 16 bits */
    int rows; /* of the grid of torus and rsap; 0: nearest to a square */
    int64_t segment; /* bytes of a message, 0: 128 kB */
    int window;      /* pieces on their way at a time, 0: 8 */
} ctn_comm_opt;

/* For programs that do not call MPI themselves: start the MPI whose launcher started this process (and end it, after
 * every communicator is freed). argc and argv may be NULL. Collective over all processes of the job.
 * Errors: EUNSUPPORTED no plug-in for this MPI, EENGINE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_mpi_init(int *argc, char ***argv);
CTN_API CTN_MUST_CHECK ctn_status ctn_mpi_finalize(void);

/* A communicator of all ranks of the MPI that is running; without one, of this process alone. Collective. Result: owned,
 * ctn_comm_free. Errors: EARG, ENOMEM, EUNSUPPORTED, EENGINE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_open(ctn_comm **out, const ctn_comm_opt *opt);
/* n communicators of one group in this process, one for each of n threads. Local. Results: owned, each to be freed by
 * ctn_comm_free; the group goes with the last. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_loopback(ctn_comm **out, int n, const ctn_comm_opt *opt);
/* What <catena/mpi.h> calls: handle points to an MPI_Comm of the MPI whose ABI is named. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_adopt(ctn_comm **out, const char *abi,
                                                 const void *handle, const ctn_comm_opt *opt);
/* The same for a handle as Fortran has it: an integer, or the MPI_VAL of a type(MPI_Comm). Of the MPI that the process has
 * loaded, unless CATENA_MPI names another plug-in. Errors: ESTATE (no MPI is there) too. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_adopt_fortran(ctn_comm **out, int handle,
                                                         const ctn_comm_opt *opt);
/* Collective; NULL is fine. */
CTN_API void ctn_comm_free(ctn_comm *c);

CTN_API int ctn_comm_rank(const ctn_comm *c);
CTN_API int ctn_comm_size(const ctn_comm *c);
/* Nodes are groups of ranks that share memory, numbered by their lowest rank. Local. */
CTN_API int ctn_comm_nodes(const ctn_comm *c);
CTN_API int ctn_comm_node(const ctn_comm *c);       /* of this rank */
CTN_API int ctn_comm_local_rank(const ctn_comm *c); /* of this rank in its node */
CTN_API int ctn_comm_local_size(const ctn_comm *c);
/* Name and version of what carries the messages. Local. Result: borrowed. */
CTN_API const char *ctn_comm_transport(const ctn_comm *c);
/* The algorithm in use for allreduce, "auto" before it was chosen. Local. Result: borrowed. */
CTN_API const char *ctn_comm_algorithm(const ctn_comm *c);
/* Name of algorithm i, NULL past the last. Local. Result: borrowed forever. */
CTN_API const char *ctn_comm_algorithm_name(int i);
/* Change it; "auto" measures anew. Collective. Errors: EARG (unknown, or it cannot run on these ranks). */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_set_algorithm(ctn_comm *c, const char *name);

/* buf[0..count) becomes its sum over all ranks, the same bits on each. f32 (as the wire option says), f64, i32, i64. Collective.
 * Errors: EDTYPE, EPEER, EENGINE. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_allreduce(ctn_comm *c, void *buf, int64_t count,
                                                     ctn_dtype type);
/* Root's bytes on every rank. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_broadcast(ctn_comm *c, void *buf, size_t bytes,
                                                     int root);
/* all (size x bytes) becomes every rank's `mine`, in rank order. Collective. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_allgather(ctn_comm *c, const void *mine, size_t bytes,
                                                     void *all);
/* On the root, all (size x bytes) becomes every rank's `mine`, in rank order; elsewhere `all` is not used. Costs a rank one message,
 * the first rank of a node one for each rank of its node, and the root one for each rank of its node and each other node.
 * Collective. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_gather(ctn_comm *c, const void *mine, size_t bytes,
                                                  void *all, int root);
/* The way back: `mine` becomes this rank's part of the root's `all`. Costs as much. Collective. Errors: EARG, ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_scatter(ctn_comm *c, const void *all, size_t bytes,
                                                   void *mine, int root);
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_barrier(ctn_comm *c);
/* Check that all ranks have the same: lines of text that can follow the word "has", such as "60000 training samples\nseed 1". If
 * a rank's text is not rank 0's, every rank fails with the same message, which names the ranks and the first line that differs:
 * "rank 3 has 59990 training samples, rank 0 has 60000 training samples". Costs O(log size) messages. Collective. Errors: EARG
 * (they differ), ENOMEM, EPEER. */
CTN_API CTN_MUST_CHECK ctn_status ctn_comm_agree(ctn_comm *c, const char *text);

/* Say that the group is broken: from now on every wait of this rank ends with EPEER and this message. From any thread; the
 * first message stays. Local. */
CTN_API void ctn_comm_fail(ctn_comm *c, const char *message);

/* Say so to all ranks: their waits end with EPEER too, with this message and the number of this rank. For a rank that cannot
 * go on for a reason of its own; errors of ctn_backward, ctn_optim_step and ctn_trainer_run do it by themselves. The group is of
 * no use afterwards: each rank frees what it has of it and goes on without. Local. */
CTN_API void ctn_comm_break(ctn_comm *c, const char *message);

/* What a rank is doing, for a watchdog in another thread: pieces started and finished since the communicator was made, and whether
 * it waits. Local. */
typedef struct {
    size_t struct_size;
    uint64_t started, finished; /* collective operations */
    uint64_t sent;              /* payload bytes of collective operations handed to the transport */
    int waiting;
    uint64_t messages; /* handed to the transport, of any kind; a sum of MPI's own counts one */
    uint64_t control;  /* bytes of messages that are not part of `sent`: broadcasts and the like */
} ctn_comm_state;
CTN_API void ctn_comm_look(const ctn_comm *c, ctn_comm_state *out);

#ifdef __cplusplus
}
#endif
#endif
