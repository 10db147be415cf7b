/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ops of dist/ share. Their first attributes say which communicator: its address, and rank
 * and size beside it, so that a plan is never taken for another group that lies at the same
 * address.
 *
 * Invariant: every op that communicates has CTN_OP_ORDERED, and its grad emits the same ops on
 * every rank.
 */
#ifndef CTN_DIST_DIST_H
#define CTN_DIST_DIST_H

#include <catena/dist.h>

#include "comm/comm.h"
#include "graph/graph.h"

enum { CTN__DIST_COMM, CTN__DIST_RANK, CTN__DIST_SIZE, CTN__DIST_ROOT, CTN__DIST_NATTR };
extern const char *const ctn__dist_attr_names[]; /* allreduce.c */

static inline ctn_comm *ctn__dist_comm(const int64_t *attr)
{
    return (ctn_comm *)(intptr_t)attr[CTN__DIST_COMM];
}

/* The attributes into attr; EARG: no communicator, or no such root. */
ctn_status ctn__dist_attr(const char *who, ctn_comm *c, int root, int64_t *attr);
/* One call of an op of one input and one result. */
ctn_tensor *ctn__dist_apply(const char *at, ctn_op *op, ctn_comm *c, ctn_tensor *x, int root);
/* x is f32 or f64, which can be summed. */
ctn_status ctn__dist_summable(const ctn_infer_args *a);
/* x is (N,...). */
ctn_status ctn__dist_rows(const ctn_infer_args *a);
/* prepare and run: out[0] = sum of in[0] over ranks. */
ctn_status ctn__dist_sum_prepare(ctn_prepare_args *a);
ctn_status ctn__dist_sum(const ctn_run_args *a);
/* out[0] = in[0], where they are not the same memory. */
void ctn__dist_copy(const ctn_run_args *a);

#endif
