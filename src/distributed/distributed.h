/* SPDX-License-Identifier: Apache-2.0
 *
 * What the communicating ops share. Their first attributes identify the communicator: its address,
 * and also its rank and size, so that a cached plan is never used for another communicator that
 * happens to have the same address.
 *
 * Invariant: every op that communicates has CTN_OP_ORDERED, and its grad emits the same ops on
 * every rank.
 */
#ifndef CTN_DISTRIBUTED_DISTRIBUTED_H
#define CTN_DISTRIBUTED_DISTRIBUTED_H

#include <catena/dist.h>
#include <catena/ops.h>

#include "comm/comm.h"
#include "graph/graph.h"

enum { CTN__DIST_COMM, CTN__DIST_RANK, CTN__DIST_SIZE, CTN__DIST_ROOT, CTN__DIST_NATTR };
extern const char *const ctn__dist_attr_names[];

/* The fields that all communicating ops have in common: one input, one result, and gradients of any
 * order. All ranks take part in the gradient, including those whose input is a constant, because
 * the input of another rank may lead to parameters. */
#define CTN__DIST_FIELDS                                                                         \
    .struct_size = sizeof(ctn_op), .nin = 1, .nout = 1, .flags = CTN_OP_ORDERED | CTN_OP_REMOTE, \
    .order = -1, .prec = CTN_PREC_F32, .attr_names = ctn__dist_attr_names
extern ctn_op ctn__dist_allgather, ctn__dist_reduce_scatter; /* each is the gradient of the other */

static inline ctn_comm *ctn__dist_comm(const int64_t *attr)
{
    return (ctn_comm *)(intptr_t)attr[CTN__DIST_COMM];
}

/* Fills in attr. Errors: EARG (no communicator, or root is not one of its ranks). */
ctn_status ctn__dist_attr(const char *who, ctn_comm *c, int root, int64_t *attr);
/* What `run` returns: tells the other ranks of a failure that only this one has seen. */
static inline ctn_status ctn__dist_ran(const ctn_run_args *a, ctn_status st)
{
    return ctn__comm_alone(ctn__dist_comm(a->attr), st);
}
/* Record one call of a communicating op. */
ctn_tensor *ctn__dist_apply(const char *at, ctn_op *op, ctn_comm *c, ctn_tensor *x, int root);
/* grad: gx = op(gy), with the communicator and the root of the op that is differentiated. */
ctn_status ctn__dist_grad(const ctn_grad_args *a, ctn_op *op);
/* infer: the result has the type and shape of x. */
ctn_status ctn__dist_same(ctn_infer_args *a);
/* The same, after checking that x can be summed. */
ctn_status ctn__dist_same_sum(ctn_infer_args *a);
/* Checks that x can be summed: f32 or f64. */
ctn_status ctn__dist_summable(const ctn_infer_args *a);
/* Checks that x is (N,...). */
ctn_status ctn__dist_rows(const ctn_infer_args *a);
/* Checks that x is (size*N,...). */
ctn_status ctn__dist_parts(const ctn_infer_args *a);
/* infer: (size*N,...) -> (N,...), and (N,...) -> (size*N,...). */
ctn_status ctn__dist_one_part(ctn_infer_args *a);
ctn_status ctn__dist_all_parts(ctn_infer_args *a);
/* prepare and run: out[0] = sum of in[0] over ranks. */
ctn_status ctn__dist_sum_prepare(ctn_prepare_args *a);
ctn_status ctn__dist_sum(const ctn_run_args *a);
/* out[0] = in[0], unless they are the same memory. */
void ctn__dist_copy(const ctn_run_args *a);

#endif
