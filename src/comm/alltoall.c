/* SPDX-License-Identifier: Apache-2.0
 *
 * Every rank sends a part of its own to every rank. In step d a rank sends to the rank d above it
 * and receives from the rank d below it, so every rank sends and receives one message at a time.
 *
 * Cost: (size - 1) (alpha + beta bytes), for parts of `bytes` bytes.
 */
#include "comm/comm.h"

ctn_status ctn__comm_alltoall(ctn_comm *c, const void *from, size_t bytes, void *to)
{
    const int size = c->place.size, rank = c->place.rank;
    const char *out = from;
    char *in = to;
    if (bytes == 0) return CTN_OK;
    memcpy(in + (size_t)rank * bytes, out + (size_t)rank * bytes, bytes);
    for (int d = 1; d < size; d++) {
        const int above = (rank + d) % size, below = (rank - d + size) % size;
        CTN_TRY(ctn__comm_swap(c, CTN__TAG_ALLTOALL, out + (size_t)above * bytes, bytes, above,
                               in + (size_t)below * bytes, bytes, below));
    }
    return CTN_OK;
}
