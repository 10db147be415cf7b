/* SPDX-License-Identifier: Apache-2.0
 *
 * The only place that knows the simulator. Programs here are built with SimGrid's smpicc, together
 * with the unchanged sources of comm/, and run under smpirun: every rank is a fiber of one process,
 * and clocks show simulated time. Ranks share memory, so globals are common to all of them.
 */
#ifndef CATENA_SCALE_ADAPTER_H
#define CATENA_SCALE_ADAPTER_H

#include "comm/comm.h"

/* A transport whose messages travel through the simulated network, for one rank on each node.
 * add_s: seconds to add or convert a byte. puts: it has regions. Errors: ENOMEM. */
ctn_status sim_net(ctn__net **out, double add_s, bool puts);
double sim_now(void); /* seconds */
/* Kernels run until this time, while the communicator makes progress. */
ctn_status sim_compute(ctn_comm *c, double until);
/* Memory for data that nobody looks at: the same few pages again and again, for all ranks. It is
 * never freed. Ends the process if there is none. */
void *sim_memory(size_t bytes);
/* Messages and bytes that this rank has sent, and seconds in which it had any in flight. */
void sim_sent(const ctn__net *net, double out[3]);
/* Count the bytes on the links of the network from here on; then give the mean and the most of
 * those that were used. Only one rank calls them. */
void sim_links_begin(void);
void sim_links_end(double out[2]);

#endif
