/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication inside a network: ops over ranks that gradients flow through, networks whose
 * parts are on different ranks, and fields that are divided over ranks. Training copies of one
 * network on several ranks needs none of these (<catena/dist.h>).
 *
 * Each communicating op runs exactly once, in the order of recording, and is never dropped (rule
 * 1). Gradients of communicating ops run in the reverse of that order on every rank. Therefore a
 * program whose forward pass cannot deadlock has a backward pass that cannot either.
 *
 * The gradient is that of the sum of all ranks' losses. A rank without a loss of its own takes
 * part with a loss of 0.
 */
#ifndef CATENA_DIST_OPS_H
#define CATENA_DIST_OPS_H

#include <catena/comm.h>
#include <catena/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- all ranks together -------------------------------------------------------------------------
 * Collective when they run: all ranks must record these ops in the same order and with equal
 * shapes, and gradients must flow through them on all ranks or on none. Result: scope. */

/* y = sum of x over ranks; gradient: sum of gy over ranks. f32, f64. */
CTN_API ctn_tensor *ctn_dist_allreduce_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_allreduce(c, x) ctn_dist_allreduce_at(CTN_HERE, c, x)
/* y = the largest or smallest x of all ranks, element by element, NaN if there is one; gradient:
 * the sum of gy over ranks, shared evenly by the ranks whose x is equal to y. f32, f64. */
CTN_API ctn_tensor *ctn_dist_allreduce_max_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_allreduce_max(c, x) ctn_dist_allreduce_max_at(CTN_HERE, c, x)
CTN_API ctn_tensor *ctn_dist_allreduce_min_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_allreduce_min(c, x) ctn_dist_allreduce_min_at(CTN_HERE, c, x)
/* The same for one rank: y is the sum, maximum or minimum at root and zero elsewhere; gradient: as
 * above with the gy of root. f32, f64. */
CTN_API ctn_tensor *ctn_dist_reduce_at(const char *at, ctn_comm *c, ctn_tensor *x, int root);
#define ctn_dist_reduce(c, x, root) ctn_dist_reduce_at(CTN_HERE, c, x, root)
CTN_API ctn_tensor *ctn_dist_reduce_max_at(const char *at, ctn_comm *c, ctn_tensor *x, int root);
#define ctn_dist_reduce_max(c, x, root) ctn_dist_reduce_max_at(CTN_HERE, c, x, root)
CTN_API ctn_tensor *ctn_dist_reduce_min_at(const char *at, ctn_comm *c, ctn_tensor *x, int root);
#define ctn_dist_reduce_min(c, x, root) ctn_dist_reduce_min_at(CTN_HERE, c, x, root)
/* y = x of root, of any type; gradient: sum over ranks at root, zero elsewhere. */
CTN_API ctn_tensor *ctn_dist_broadcast_at(const char *at, ctn_comm *c, ctn_tensor *x, int root);
#define ctn_dist_broadcast(c, x, root) ctn_dist_broadcast_at(CTN_HERE, c, x, root)
/* y (size*N,...): the x (N,...) of all ranks in rank order, of any type; gradient:
 * reduce_scatter. */
CTN_API ctn_tensor *ctn_dist_allgather_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_allgather(c, x) ctn_dist_allgather_at(CTN_HERE, c, x)
/* y (N,...): this rank's part of the sum of x (size*N,...) over ranks; gradient: allgather. */
CTN_API ctn_tensor *ctn_dist_reduce_scatter_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_reduce_scatter(c, x) ctn_dist_reduce_scatter_at(CTN_HERE, c, x)
/* y (size*N,...): at root, the x (N,...) of all ranks in rank order, of any type; zero elsewhere;
 * gradient: scatter. */
CTN_API ctn_tensor *ctn_dist_gather_at(const char *at, ctn_comm *c, ctn_tensor *x, int root);
#define ctn_dist_gather(c, x, root) ctn_dist_gather_at(CTN_HERE, c, x, root)
/* y (N,...): this rank's part of the x (size*N,...) of root, of any type. The x of other ranks
 * only gives the shape; gradient: gather. */
CTN_API ctn_tensor *ctn_dist_scatter_at(const char *at, ctn_comm *c, ctn_tensor *x, int root);
#define ctn_dist_scatter(c, x, root) ctn_dist_scatter_at(CTN_HERE, c, x, root)
/* Part r of y (size*N,...) is this rank's part of the x (size*N,...) of rank r, of any type;
 * gradient: alltoall. */
CTN_API ctn_tensor *ctn_dist_alltoall_at(const char *at, ctn_comm *c, ctn_tensor *x);
#define ctn_dist_alltoall(c, x) ctn_dist_alltoall_at(CTN_HERE, c, x)

/* ---- one rank to another ------------------------------------------------------------------------
 * A send does not wait: it copies x. A receive waits for its message. Messages from one rank to
 * another are received in the order in which they are sent. So a program can deadlock only if
 * ranks wait in a circle, each for a message that the next would send later. */

/* Send x, f32 or f64, to another rank. The result is the number 0 in the type of x. It stands for
 * what the other rank computes from x: add it to the loss, or use it as the loss of a rank that
 * has no other, and the backward pass receives the gradient of x from there. Do so exactly if the
 * loss of the other rank depends on what it receives. Local; when it
 * runs, the other rank must receive. Result: scope. Errors: EARG, EDTYPE. */
CTN_API ctn_tensor *ctn_dist_send_at(const char *at, ctn_comm *c, ctn_tensor *x, int rank);
#define ctn_dist_send(c, x, rank) ctn_dist_send_at(CTN_HERE, c, x, rank)
/* Receive a tensor of this type and shape from another rank. The backward pass sends its gradient
 * back. Gradients of first order only, like those of ctn_dist_send. Local; when it runs, it waits
 * for the other rank. Result: scope. Errors: EARG,
 * EDTYPE, ESHAPE; when it runs, ESHAPE if another type or shape arrives. */
CTN_API ctn_tensor *ctn_dist_recv_at(const char *at, ctn_comm *c, ctn_context *ctx, int rank,
                                     ctn_dtype dtype, int ndim, const int64_t *dims);
#define ctn_dist_recv(c, ctx, ...) ctn_dist_recv_at(CTN_HERE, c, ctx, __VA_ARGS__)

/* ---- a network whose parts are on different ranks -----------------------------------------------
 * Each rank adds its parts to a chain, in the order in which they run, and says where the input
 * of each part comes from and where its result goes:
 *
 *   rank 0: ctn_dist_chain_add(chain, first);      ctn_dist_chain_send(chain, 1);
 *   rank 1: ctn_dist_chain_add(chain, second);     ctn_dist_chain_recv(chain, 0, CTN_F32,
 *                                                                      CTN_SHAPE(-1, 100));
 *
 * Before the first call, all ranks compare what they have added. If a message is sent but never
 * received, or expected but never sent, or if ranks would wait for each other in a circle, the
 * call fails on every rank with one message that names both source lines. */

typedef struct ctn_dist_chain ctn_dist_chain;

/* An empty chain. ctx and c are borrowed until it is freed. Local. Result: owned,
 * ctn_dist_chain_free. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_chain_new(ctn_dist_chain **out, ctn_context *ctx,
                                                     ctn_comm *c);
/* Free a chain, but not its modules; NULL is allowed. Local. */
CTN_API void ctn_dist_chain_free(ctn_dist_chain *chain);
/* Add a part. m is borrowed until the chain is freed. Local. Errors: EARG, ESTATE (the chain was
 * called), ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_chain_add_at(const char *at, ctn_dist_chain *chain,
                                                        ctn_module *m);
#define ctn_dist_chain_add(chain, m) ctn_dist_chain_add_at(CTN_HERE, chain, m)
/* The part that was added last receives an input of this type and shape from another rank. A
 * length of -1 is the number of rows that the call says. Call it once for each input of the
 * module; without it, the input is that of the chain. Local. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_chain_recv_at(const char *at, ctn_dist_chain *chain,
                                                         int rank, ctn_dtype dtype, int ndim,
                                                         const int64_t *dims);
#define ctn_dist_chain_recv(chain, ...) ctn_dist_chain_recv_at(CTN_HERE, chain, __VA_ARGS__)
/* The result of the part that was added last is sent to another rank; call it once for each
 * rank. Without it, the result is that of the chain. Local. Errors: EARG, ESTATE, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_chain_send_at(const char *at, ctn_dist_chain *chain,
                                                         int rank);
#define ctn_dist_chain_send(chain, rank) ctn_dist_chain_send_at(CTN_HERE, chain, rank)
/* Call the parts of this rank. x is the input of the parts without a sender; x NULL: there are
 * none. The result is that of the last part without a receiver, or the number 0 if all results
 * are sent; in both cases every rank must use it in its loss if any does (ctn_dist_send).
 * Collective. Result: scope. Errors: EARG (also if the ranks do not fit together), those of the
 * modules, EPEER. */
CTN_API ctn_tensor *ctn_dist_chain_call_at(const char *at, ctn_dist_chain *chain, ctn_tensor *x,
                                           int64_t rows);
#define ctn_dist_chain_call(chain, x, rows) ctn_dist_chain_call_at(CTN_HERE, chain, x, rows)

/* ---- a field that is divided over ranks ---------------------------------------------------------
 * A field (N,C,H,W), or with one or three spatial dimensions, can be too large for one rank. Then
 * the ranks form a grid, and each has one block. A convolution also needs the elements next to
 * its block, which belong to other ranks: the halo. */

typedef struct ctn_dist_grid ctn_dist_grid;

/* Arrange the ranks of c in a grid: ranks[i] of them along spatial dimension i, numbered in
 * row-major order. Their product is the number of ranks. periodic: bit i is set if the field
 * continues at its other end in dimension i; otherwise it is surrounded by zeros. c is borrowed
 * until the grid is freed. Local. Result: owned, ctn_dist_grid_free. Errors: EARG, ENOMEM. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_grid_new(ctn_dist_grid **out, ctn_comm *c, int ndim,
                                                    const int64_t *ranks, unsigned periodic);
/* Free a grid; NULL is allowed. No module may use it any more. Local. */
CTN_API void ctn_dist_grid_free(ctn_dist_grid *g);
/* The block of this rank if a field of this length is divided as evenly as possible: its length,
 * and its beginning. Local. */
CTN_API int64_t ctn_dist_grid_length(const ctn_dist_grid *g, int dimension, int64_t length);
CTN_API int64_t ctn_dist_grid_begin(const ctn_dist_grid *g, int dimension, int64_t length);

/* Arrays have one number per spatial dimension. */
typedef struct {
    size_t struct_size;
    int64_t before[CTN_MAX_SPATIAL], after[CTN_MAX_SPATIAL]; /* elements of the halo */
} ctn_dist_halo_opt;

/* x (N,C,...), the block of this rank, with its halo: elements of the neighbouring blocks, also of
 * those at the corners, or zeros outside of the field. No block may be shorter than the halo.
 * Gradient: that of the halo is added to the elements it was copied from. f32, f64. Collective when
 * it runs. Result: scope. Errors: EARG, ESHAPE, EDTYPE. */
CTN_API ctn_tensor *ctn_dist_halo_at(const char *at, ctn_dist_grid *g, ctn_tensor *x,
                                     const ctn_dist_halo_opt *opt);
#define ctn_dist_halo(...) ctn_dist_halo_at(CTN_HERE, __VA_ARGS__)

/* Run a network on a divided field: every convolution in the module exchanges its halo first, so
 * that the ranks together compute what one rank would. Its results must be as long as its input,
 * divided by the stride. A transposed convolution, a pooling window or a resize must not reach
 * beyond a block, as when kernel and stride are both 2 and blocks have even lengths. Batch
 * normalisation needs ctn_dist_sync_batch_norm as well. A layer that sees the whole field, such as
 * global pooling, sees only the block. Each rank's loss is that of its block: with equal blocks,
 * the mean over ranks is that of the whole field, and so are the gradients after
 * ctn_dist_optim. g is borrowed as long as the module is called; g NULL: turn it off again. Local;
 * calls of the module are collective. Errors: EARG, and ESHAPE when the module is called. */
CTN_API CTN_MUST_CHECK ctn_status ctn_dist_field(ctn_module *m, ctn_dist_grid *g);

#ifdef __cplusplus
}
#endif
#endif
