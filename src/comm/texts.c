/* SPDX-License-Identifier: Apache-2.0
 *
 * Collects a text of each rank on rank 0, along a binomial tree: in round k, a rank whose number
 * is an odd multiple of 2^k sends all it has to the rank 2^k below it. A rank handles at most two
 * messages per round, log2(size) rounds in all.
 */
#include "comm/comm.h"

/* The length goes first. A text that could not be made has the length UINT64_MAX. */
static ctn_status send_text(ctn_comm *c, const ctn__text *t, int to)
{
    const uint64_t n = t->failed ? UINT64_MAX : t->n;
    CTN_TRY(ctn__gather_send(c, &n, sizeof n, to));
    return t->failed || n == 0 ? CTN_OK : ctn__gather_send(c, t->s, (size_t)n, to);
}

static ctn_status receive_text(ctn_comm *c, ctn__text *t, int from)
{
    uint64_t n = 0;
    CTN_TRY(ctn__gather_receive(c, &n, sizeof n, from));
    if (n == UINT64_MAX) t->failed = true;
    if (n == 0 || n == UINT64_MAX) return CTN_OK;
    char *s = ctn__calloc((size_t)n + 1, 1);
    if (!s) return CTN_ENOMEM;
    ctn_status st = ctn__gather_receive(c, s, (size_t)n, from);
    if (st == CTN_OK) ctn__text_add(t, "%s", s);
    ctn__free(s);
    return st;
}

ctn_status ctn__comm_collect(ctn_comm *c, ctn__text *t)
{
    ctn_status st = CTN_OK;
    const int rank = c ? c->place.rank : 0, size = c ? c->place.size : 1;
    for (int k = 1; k < size && st == CTN_OK; k *= 2) {
        if (rank & k) {
            st = send_text(c, t, rank - k);
            break;
        }
        if (rank + k < size) st = receive_text(c, t, rank + k);
    }
    CTN_TRY(ctn__comm_alone(c, st));
    if (t->failed && rank == 0) return ctn_fail(CTN_ENOMEM, "a rank has no memory for its report");
    return CTN_OK;
}

ctn_status ctn__comm_share_text(ctn_comm *c, char **text)
{
    if (!c) return CTN_OK;
    uint64_t n = *text ? strlen(*text) : 0;
    CTN_TRY(ctn_comm_broadcast(c, &n, sizeof n, 0));
    if (!*text) *text = ctn__calloc((size_t)n + 1, 1);
    if (!*text) return ctn__comm_alone(c, CTN_ENOMEM);
    return ctn_comm_broadcast(c, *text, (size_t)n, 0);
}
