/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress thread: neither Open MPI nor MPICH moves messages unless it is called, and a kernel may take longer than what the
 * network has buffered. The thread looks often while something is on its way, and rests otherwise. It shares the lock of pieces.c, so
 * MPI_THREAD_SERIALIZED is enough.
 */
#include <time.h>

#include "comm/comm.h"

static void *progress(void *arg)
{
    ctn_comm *c = arg;
    while (!c->stop) {
        bool busy = c->started != c->finished;
        if (busy && ctn__comm_poll(c) < 0) ctn_error_clear(); /* the failure is kept in c */
        nanosleep(&(struct timespec){.tv_nsec = busy ? 200000 : 1000000}, NULL);
    }
    return NULL;
}

ctn_status ctn__progress_start(ctn_comm *c)
{
    if (c->threaded || c->place.size == 1 || !c->net->vt->threads(c->net)) return CTN_OK;
    c->stop = false;
    if (pthread_create(&c->thread, NULL, progress, c) != 0)
        return ctn_fail(CTN_ENOMEM, "comm: no thread for progress");
    c->threaded = true;
    return CTN_OK;
}

void ctn__progress_stop(ctn_comm *c)
{
    if (!c->threaded) return;
    c->stop = true;
    pthread_join(c->thread, NULL);
    c->threaded = false;
}
