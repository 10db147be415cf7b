/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends that do not wait. Each message is a copy in a list of the communicator and is freed when
 * the transport no longer needs it: at the next send, at any poll, or when the communicator is
 * freed. So a rank waits only for messages that it receives, and two ranks may send to each other
 * at the same time, however long their messages are.
 */
#include "comm/comm.h"

struct ctn__parcel {
    ctn__parcel *next;
    ctn__net_req req;
    unsigned char data[];
};

ctn_status ctn__parcels_look(ctn_comm *c)
{
    for (ctn__parcel **at = &c->outgoing; *at;) {
        ctn__parcel *p = *at;
        bool done = false;
        CTN_TRY(c->net->vt->test(c->net, &p->req, &done));
        if (!done) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        ctn__free(p);
    }
    return CTN_OK;
}

ctn_status ctn__comm_send(ctn_comm *c, int tag, const void *buf, size_t bytes, int to)
{
    if (c->failed) return ctn_fail(CTN_EPEER, "%s", c->why);
    ctn__parcel *p = ctn__malloc(sizeof *p + bytes);
    if (!p) return CTN_ENOMEM;
    if (bytes > 0) memcpy(p->data, buf, bytes);
    pthread_mutex_lock(c->lock);
    ctn_status st = ctn__parcels_look(c);
    if (st == CTN_OK) st = c->net->vt->send(c->net, p->data, bytes, to, tag, &p->req);
    if (st == CTN_OK) {
        c->messages++;
        c->sent_small += bytes;
        p->next = c->outgoing;
        c->outgoing = p;
        p = NULL;
        st = ctn__parcels_look(c); /* a transport that copies is done already */
    }
    pthread_mutex_unlock(c->lock);
    ctn__free(p);
    if (st < 0) ctn_comm_fail(c, ctn_error_message());
    return st;
}

void ctn__parcels_finish(ctn_comm *c)
{
    const ctn__coreset *cores = ctn__cores_pause();
    ctn_status st = c->failed ? CTN_EPEER : CTN_OK;
    for (int turns = 0; st == CTN_OK && c->outgoing;) {
        pthread_mutex_lock(c->lock);
        st = ctn__parcels_look(c);
        pthread_mutex_unlock(c->lock);
        if (st == CTN_OK && c->outgoing) st = ctn__comm_turn(c, &turns);
    }
    ctn__cores_resume(cores);
    if (st < 0 && !c->failed) ctn_comm_fail(c, ctn_error_message());
}

bool ctn__parcels_abandon(ctn_comm *c)
{
    for (ctn__parcel **at = &c->outgoing; *at;) {
        ctn__parcel *p = *at;
        if (!c->net->vt->cancel(c->net, &p->req)) {
            at = &p->next;
            continue;
        }
        *at = p->next;
        ctn__free(p);
    }
    return !c->outgoing;
}
