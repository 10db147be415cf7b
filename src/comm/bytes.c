/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages whose length the receiver does not know: the length travels first, as a message of its
 * own. The receiver keeps a length that it has received until it receives the bytes. Sends do not
 * wait (send.c).
 */
#include "comm/comm.h"

static ctn_status check_rank(const ctn_comm *c, const char *who, int rank)
{
    if (rank < 0 || rank >= c->place.size)
        return ctn_fail(CTN_EARG, "%s: got rank %d, expected 0 to %d", who, rank,
                        c->place.size - 1);
    return CTN_OK;
}

ctn_status ctn_comm_send_bytes(ctn_comm *c, const void *buf, size_t bytes, int to)
{
    static const char who[] = "comm_send_bytes";
    if (!c || (!buf && bytes > 0)) return ctn_fail(CTN_EARG, "%s: NULL argument", who);
    CTN_TRY(check_rank(c, who, to));
    const uint64_t length = bytes;
    CTN_TRY(ctn__comm_send(c, CTN__TAG_BYTES, &length, sizeof length, to));
    return bytes > 0 ? ctn__comm_send(c, CTN__TAG_BYTES, buf, bytes, to) : CTN_OK;
}

/* The length of the next message from a rank, plus 1; 0: not known yet. */
static ctn_status next_length(ctn_comm *c, int from, uint64_t **out)
{
    if (!c->coming) {
        c->coming = ctn__calloc((size_t)c->place.size, sizeof *c->coming);
        if (!c->coming) return CTN_ENOMEM;
    }
    *out = &c->coming[from];
    if (**out > 0) return CTN_OK;
    uint64_t length = 0;
    CTN_TRY(ctn__comm_receive(c, CTN__TAG_BYTES, &length, sizeof length, from));
    **out = length + 1;
    return CTN_OK;
}

ctn_status ctn_comm_recv_size(ctn_comm *c, int from, size_t *bytes)
{
    static const char who[] = "comm_recv_size";
    uint64_t *next = NULL;
    if (!c || !bytes) return ctn_fail(CTN_EARG, "%s: NULL argument", who);
    *bytes = 0;
    CTN_TRY(check_rank(c, who, from));
    CTN_TRY(next_length(c, from, &next));
    *bytes = (size_t)(*next - 1);
    return CTN_OK;
}

ctn_status ctn_comm_recv_bytes(ctn_comm *c, void *buf, size_t bytes, int from)
{
    static const char who[] = "comm_recv_bytes";
    uint64_t *next = NULL;
    if (!c || (!buf && bytes > 0)) return ctn_fail(CTN_EARG, "%s: NULL argument", who);
    CTN_TRY(check_rank(c, who, from));
    CTN_TRY(next_length(c, from, &next));
    if (*next - 1 != bytes)
        return ctn_fail(CTN_EARG,
                        "%s: the message from rank %d has %llu bytes, there is room for "
                        "%zu; call comm_recv_size first",
                        who, from, (unsigned long long)(*next - 1), bytes);
    *next = 0;
    return bytes > 0 ? ctn__comm_receive(c, CTN__TAG_BYTES, buf, bytes, from) : CTN_OK;
}
