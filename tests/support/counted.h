/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts what each rank of a loopback transport sends and receives, for tests that bound the
 * cost of an operation. Works for one group at a time.
 */
#ifndef TESTS_COUNTED_H
#define TESTS_COUNTED_H

#include <stdatomic.h>

#include "comm/comm.h"

enum { COUNTED_MOST = 256 };

static struct {
    const ctn__net_vt *real;
    ctn__net_vt vt;
    atomic_long sent[COUNTED_MOST], received[COUNTED_MOST]; /* messages of each rank */
    atomic_long bytes[COUNTED_MOST];                        /* that a rank has sent */
} counted;

static ctn_status counted_send(ctn__net *n, const void *buf, size_t bytes, int to, int tag,
                               ctn__net_req *r)
{
    counted.sent[n->rank]++;
    counted.received[to]++;
    counted.bytes[n->rank] += (long)bytes;
    return counted.real->send(n, buf, bytes, to, tag, r);
}

/* Call this before a communicator is created from net[n]. */
static void counted_use(ctn__net **net, int n)
{
    counted.real = net[0]->vt;
    counted.vt = *net[0]->vt;
    counted.vt.send = counted_send;
    for (int i = 0; i < n; i++) {
        net[i]->vt = &counted.vt;
        counted.sent[i] = counted.received[i] = counted.bytes[i] = 0;
    }
}

#endif
