/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place that knows the simulator. Programs here are built with SimGrid's smpicc, together
 * with the unchanged sources of comm/, and run under smpirun: every rank is a fiber of one process,
 * and clocks show simulated time. Ranks share memory, so globals are common to all of them.
 */
#ifndef CATENA_SCALE_ADAPTER_H
#define CATENA_SCALE_ADAPTER_H

#include "comm/comm.h"

/* A transport whose messages travel through the simulated network. per_node: ranks of a node.
 * add_s: seconds to add or convert one received byte. Errors: ENOMEM. */
ctn_status sim_net(ctn__net **out, int per_node, double add_s);
double sim_now(void); /* seconds */
/* Kernels run until this time, while the communicator makes progress. */
ctn_status sim_compute(ctn_comm *c, double until);
/* Memory for data that nobody looks at: the same few pages again and again, for all ranks. It is
 * never freed. Ends the process if there is none. */
void *sim_memory(size_t bytes);
/* Messages and bytes that this rank has sent. */
void sim_sent(const ctn__net *net, double *messages, double *bytes);

#endif
