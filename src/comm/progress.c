/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress thread. Neither Open MPI nor MPICH moves messages unless it is called, and a kernel
 * may run longer than the network has data in its buffers. The thread sleeps until an operation
 * starts, then polls. It backs off while it finds nothing, because every poll takes the core from a
 * kernel. It does not poll while another thread waits and polls, and it ends when the group fails.
 * It shares the lock of pieces.c, and with MPI_THREAD_SERIALIZED all communicators have the same
 * lock, so that is enough if only Catena calls MPI. A program that calls MPI itself needs
 * MPI_THREAD_MULTIPLE.
 */
#include <time.h>

#include "comm/comm.h"

enum { SHORTEST = 50000, LONGEST = 1000000 }; /* ns between two polls */

/* Waits until there is something to do; false: stop. */
static bool called(ctn_comm *c)
{
    pthread_mutex_lock(c->lock);
    while ((!c->first || c->parked) && !c->stop) pthread_cond_wait(&c->begun, c->lock);
    pthread_mutex_unlock(c->lock);
    return !c->stop;
}

static void *progress(void *arg)
{
    ctn_comm *c = arg;
    long rest = SHORTEST;
    while (called(c) && !c->failed) {
        uint64_t moves = c->moves;
        /* On failure c keeps the error. */
        if (c->waiting == 0 && ctn__comm_poll(c) < 0) ctn_error_clear();
        rest = c->moves != moves ? rest * 3 / 4 : rest * 4 / 3;
        rest = rest < SHORTEST ? SHORTEST : rest > LONGEST ? LONGEST : rest;
        nanosleep(&(struct timespec){.tv_nsec = rest}, NULL);
    }
    return NULL;
}

ctn_status ctn__progress_start(ctn_comm *c)
{
    if (c->threaded || c->place.size == 1 || !c->net->vt->threads(c->net)) return CTN_OK;
    c->stop = false;
    if (pthread_create(&c->thread, NULL, progress, c) != 0)
        return ctn_fail(CTN_ENOMEM, "comm: cannot start the progress thread");
    c->threaded = true;
    return CTN_OK;
}

void ctn__progress_park(ctn_comm *c, bool parked)
{
    pthread_mutex_lock(c->lock);
    c->parked = parked;
    if (!parked) pthread_cond_signal(&c->begun);
    pthread_mutex_unlock(c->lock);
}

void ctn__progress_stop(ctn_comm *c)
{
    if (!c->threaded) return;
    pthread_mutex_lock(c->lock);
    c->stop = true;
    pthread_cond_signal(&c->begun);
    pthread_mutex_unlock(c->lock);
    pthread_join(c->thread, NULL);
    c->threaded = false;
}
